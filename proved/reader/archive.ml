(* The members of a certificate file: a zip archive without a byte that does not follow from its members, under a SHA-256
   digest. Caps are asked before memory is taken. *)

open Refusal

let crc_table = Array.init 256 (fun n ->
  let c = ref n in
  for _ = 1 to 8 do c := if !c land 1 = 1 then 0xedb88320 lxor (!c lsr 1) else !c lsr 1 done;
  !c)
let crc32 text =
  let c = ref 0xffffffff in
  String.iter (fun x -> c := Array.unsafe_get crc_table ((!c lxor Char.code x) land 255) lxor (!c lsr 8)) text;
  !c lxor 0xffffffff

(* SHA-256 (FIPS 180-4) of the concatenation of texts; words of 32 bits in OCaml's integers of 63. *)
module Sha = struct
  let primes =
    let rec from n known count = if count = 64 then List.rev known
      else if List.exists (fun p -> n mod p = 0) known then from (n + 1) known count else from (n + 1) (n :: known) (count + 1) in
    Array.of_list (from 2 [] 0)
  (* The first 32 bits of the fraction of a root of an integer. *)
  let fraction power n =
    Z.to_int (Z.extract (Z.root (Z.shift_left (Z.of_int n) (32 * power)) power) 0 32)
  let k = Array.map (fraction 3) primes
  let start = Array.map (fraction 2) (Array.sub primes 0 8)
  let mask = 0xffffffff
  let turn x n = ((x lsr n) lor (x lsl (32 - n))) land mask

  let block h w get =
    for i = 0 to 15 do
      w.(i) <- (get (4 * i) lsl 24) lor (get (4 * i + 1) lsl 16) lor (get (4 * i + 2) lsl 8) lor get (4 * i + 3)
    done;
    for i = 16 to 63 do
      let x = w.(i - 15) and y = w.(i - 2) in
      let s0 = turn x 7 lxor turn x 18 lxor (x lsr 3) and s1 = turn y 17 lxor turn y 19 lxor (y lsr 10) in
      w.(i) <- (w.(i - 16) + s0 + w.(i - 7) + s1) land mask
    done;
    let rec round i a b c d e f g hh =
      if i = 64 then List.iteri (fun j v -> h.(j) <- (h.(j) + v) land mask) [ a; b; c; d; e; f; g; hh ]
      else begin
        let s1 = turn e 6 lxor turn e 11 lxor turn e 25 and choice = (e land f) lxor (lnot e land mask land g) in
        let t1 = hh + s1 + choice + Array.unsafe_get k i + Array.unsafe_get w i in
        let s0 = turn a 2 lxor turn a 13 lxor turn a 22 and most = (a land b) lxor (a land c) lxor (b land c) in
        round (i + 1) ((t1 + s0 + most) land mask) a b c ((d + t1) land mask) e f g
      end in
    round 0 h.(0) h.(1) h.(2) h.(3) h.(4) h.(5) h.(6) h.(7)

  let hex texts =
    let h = Array.copy start and w = Array.make 64 0 and rest = Buffer.create 128 and total = ref 0 in
    let feed text =
      let n = String.length text and from = ref 0 in
      total := !total + n;
      if Buffer.length rest > 0 then begin
        from := min n (64 - Buffer.length rest);
        Buffer.add_substring rest text 0 !from;
        if Buffer.length rest = 64 then begin
          block h w (fun i -> Char.code (Buffer.nth rest i)); Buffer.clear rest
        end
      end;
      while n - !from >= 64 do
        let first = !from in
        block h w (fun i -> Char.code (String.unsafe_get text (first + i))); from := first + 64
      done;
      if n > !from then Buffer.add_substring rest text !from (n - !from) in
    List.iter feed texts;
    let bits = 8 * !total and zeros = (119 - (!total mod 64)) mod 64 in
    feed ("\x80" ^ String.make zeros '\000' ^ String.init 8 (fun i -> Char.chr ((bits lsr (56 - 8 * i)) land 255)));
    String.concat "" (List.map (Printf.sprintf "%08x") (Array.to_list h))
end

let most_members = 1000 and most_bytes = 1 lsl 31 and inflation = 40 and room = 1 lsl 28
let most_memory size = max room (inflation * size)

let u16 text i = Char.code text.[i] lor (Char.code text.[i + 1] lsl 8)
let u32 text i = u16 text i lor (u16 text (i + 2) lsl 16)
let le n bytes = String.init bytes (fun i -> Char.chr ((n lsr (8 * i)) land 255))

let read_file path =
  let channel = try open_in_bin path with Sys_error words -> raise (Refused (2, "cannot be read: " ^ words)) in
  Fun.protect ~finally:(fun () -> close_in_noerr channel) (fun () ->
    try
      let size = in_channel_length channel in
      require (size <= most_bytes) "it has more than 2 GiB";
      really_input_string channel size
    with Sys_error words -> raise (Refused (2, "cannot be read: " ^ words)) | End_of_file -> malformed "it ends early")

(* Name to bytes, without the digest, which must be that of all others; and the digest. *)
let read data =
  let size = String.length data and members = Hashtbl.create 50 in
  let directory = Buffer.create 4096 and left = ref (most_memory size) and place = ref 0 in
  let at i text = i + String.length text <= size && String.sub data i (String.length text) = text in
  while at !place "PK\003\004" do
    let p = !place in
    require (p + 30 <= size) "it ends early";
    let compressed = u16 data (p + 8) and crc = u32 data (p + 14) and packed = u32 data (p + 18) in
    let length = u32 data (p + 22) and name_length = u16 data (p + 26) in
    let fixed = le 20 2 ^ le 0 2 ^ le compressed 2 ^ le 0 2 ^ le 33 2 in
    let sizes = le crc 4 ^ le packed 4 ^ le length 4 ^ le name_length 2 in
    require (at (p + 4) (fixed ^ sizes ^ le 0 2) && (compressed = 0 || compressed = 8))
      "a member is encrypted or stored in another way";
    let first = p + 30 + name_length in
    require (first + packed <= size) "it ends early";
    let name = String.sub data (p + 30) name_length in
    require (String.for_all (fun c -> Char.code c < 128) name) "a member's name is no ASCII text";
    left := !left - length;
    require (!left >= 0) "it would take more than 40 times its own size in memory";
    require (not (Hashtbl.mem members name) && Hashtbl.length members < most_members)
      "too many members, or two of one name";
    require (compressed = 8 || packed = length) "a member has another length";
    let content = if compressed = 8 then Inflate.inflate data first packed length else String.sub data first packed in
    require (crc32 content = crc) "a member has another length or sum";
    Hashtbl.add members name content;
    List.iter (Buffer.add_string directory)
      [ "PK\001\002"; le 788 2; fixed; sizes; le 0 8; le (0o600 lsl 16) 4; le p 4; name ];
    place := first + packed
  done;
  let count = le (Hashtbl.length members) 2 and directory = Buffer.contents directory in
  let last = "PK\005\006" ^ le 0 4 ^ count ^ count ^ le (String.length directory) 4 ^ le !place 4 ^ le 0 2 in
  require (size - !place = String.length directory + 22 && at !place (directory ^ last))
    "there are bytes that belong to no member, or its directory is another one";
  let digest = Option.value ~default:"" (Hashtbl.find_opt members "digest") in
  Hashtbl.remove members "digest";
  let names = List.sort compare (List.of_seq (Hashtbl.to_seq_keys members)) in
  let texts = List.concat_map (fun name ->
    let content = Hashtbl.find members name in
    [ Printf.sprintf "%s\n%d\n" name (String.length content); content ]) names in
  require (Hashtbl.mem members "header.json") "there is no header";
  require (digest = Sha.hex texts) "the file's contents do not match its digest";
  members, digest
