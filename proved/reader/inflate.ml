(* NOT BELIEVED. Deflated bytes (RFC 1951) to a string of a length that is known. What comes out is compared with the digest of the
   file, so that a fault here can only refuse a file. *)

let bad = Refusal.malformed

(* A canonical code as a table: the next [width] bits, last one first, give symbol * 16 + length; 0 where there is none. *)
type code = { width : int; table : int array }

let reverse bits length =
  let result = ref 0 in
  for i = 0 to length - 1 do
    if bits land (1 lsl i) <> 0 then result := !result lor (1 lsl (length - 1 - i))
  done;
  !result

let code_of lengths =
  let width = max 1 (Array.fold_left max 0 lengths) in
  let count = Array.make (width + 2) 0 and next = Array.make (width + 2) 0 in
  Array.iter (fun l -> if l > 0 then count.(l) <- count.(l) + 1) lengths;
  for l = 1 to width do
    next.(l + 1) <- (next.(l) + count.(l)) * 2;
    if next.(l) + count.(l) > 1 lsl l then bad "a code has too many words"
  done;
  let table = Array.make (1 lsl width) 0 in
  Array.iteri (fun symbol l ->
    if l > 0 then begin
      let first = reverse next.(l) l in
      next.(l) <- next.(l) + 1;
      for i = 0 to (1 lsl (width - l)) - 1 do table.(first lor (i lsl l)) <- (symbol lsl 4) lor l done
    end) lengths;
  { width; table }

let order = [| 16; 17; 18; 0; 8; 7; 9; 6; 10; 5; 11; 4; 12; 3; 13; 2; 14; 1; 15 |]
let length_base = [| 3; 4; 5; 6; 7; 8; 9; 10; 11; 13; 15; 17; 19; 23; 27; 31; 35; 43; 51; 59; 67; 83; 99; 115; 131; 163;
                     195; 227; 258 |]
let length_more = [| 0; 0; 0; 0; 0; 0; 0; 0; 1; 1; 1; 1; 2; 2; 2; 2; 3; 3; 3; 3; 4; 4; 4; 4; 5; 5; 5; 5; 0 |]
let distance_base = [| 1; 2; 3; 4; 5; 7; 9; 13; 17; 25; 33; 49; 65; 97; 129; 193; 257; 385; 513; 769; 1025; 1537; 2049;
                       3073; 4097; 6145; 8193; 12289; 16385; 24577 |]
let distance_more = [| 0; 0; 0; 0; 1; 1; 2; 2; 3; 3; 4; 4; 5; 5; 6; 6; 7; 7; 8; 8; 9; 9; 10; 10; 11; 11; 12; 12; 13; 13 |]

let inflate data first packed size =
  let last = first + packed and place = ref first and held = ref 0 and bits = ref 0 in
  let fill n =
    while !bits < n do
      if !place >= last then bad "a member ends early";
      held := !held lor (Char.code (String.unsafe_get data !place) lsl !bits);
      incr place; bits := !bits + 8
    done in
  let drop n = held := !held lsr n; bits := !bits - n in
  let take n = if n = 0 then 0 else begin fill n; let v = !held land ((1 lsl n) - 1) in drop n; v end in
  let symbol code =
    while !bits < code.width && !place < last do fill (!bits + 8) done;
    let entry = code.table.(!held land ((1 lsl code.width) - 1)) in
    let length = entry land 15 in
    if length = 0 || length > !bits then bad "a member has a word of no code";
    drop length; entry lsr 4 in
  let out = Bytes.make size '\001' and at = ref 0 in (* filled: js_of_ocaml makes it an array when it is written to *)
  let room n = if !at + n > size then bad "a member is longer than it says" in
  let block literals distances =
    let rec go () =
      let s = symbol literals in
      if s < 256 then begin
        room 1; Bytes.unsafe_set out !at (Char.unsafe_chr s); incr at; go ()
      end else if s > 256 then begin
        if s > 285 then bad "a member has a word of no code";
        let length = length_base.(s - 257) + take length_more.(s - 257) in
        let d = symbol distances in
        if d > 29 then bad "a member has a word of no code";
        let distance = distance_base.(d) + take distance_more.(d) in
        if distance > !at then bad "a member repeats what is not there";
        room length;
        for i = !at to !at + length - 1 do
          Bytes.unsafe_set out i (Bytes.unsafe_get out (i - distance))
        done;
        at := !at + length; go ()
      end in
    go () in
  let fixed = lazy (
    code_of (Array.init 288 (fun i -> if i < 144 then 8 else if i < 256 then 9 else if i < 280 then 7 else 8)),
    code_of (Array.make 30 5)) in
  let dynamic () =
    let literals = take 5 + 257 in
    let distances = take 5 + 1 in
    let lengths_of = take 4 + 4 in
    if literals > 286 || distances > 30 then bad "a code has too many words";
    let own = Array.make 19 0 in
    for i = 0 to lengths_of - 1 do own.(order.(i)) <- take 3 done;
    let own = code_of own and lengths = Array.make (literals + distances) 0 and i = ref 0 in
    let repeat length times =
      if !i + times > literals + distances then bad "a code has too many words";
      Array.fill lengths !i times length; i := !i + times in
    while !i < literals + distances do
      match symbol own with
      | 16 -> if !i = 0 then bad "a code repeats nothing"; repeat lengths.(!i - 1) (3 + take 2)
      | 17 -> repeat 0 (3 + take 3)
      | 18 -> repeat 0 (11 + take 7)
      | length -> repeat length 1
    done;
    block (code_of (Array.sub lengths 0 literals)) (code_of (Array.sub lengths literals distances)) in
  let stored () =
    drop (!bits land 7);
    let length = take 16 in
    if length lxor take 16 <> 0xffff then bad "a member has a block of another length";
    room length;
    for _ = 1 to length do Bytes.set out !at (Char.chr (take 8)); incr at done in
  let rec blocks () =
    let final = take 1 in
    (match take 2 with
     | 0 -> stored ()
     | 1 -> let literals, distances = Lazy.force fixed in block literals distances
     | 2 -> dynamic ()
     | _ -> bad "a member has a block of no kind");
    if final = 0 then blocks () in
  blocks ();
  if !bits >= 8 || !place <> last || !at <> size then bad "a member has another length";
  Bytes.unsafe_to_string out
