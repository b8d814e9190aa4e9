(* The members of a certificate file: a zip archive without a byte that does not follow from its members, under a SHA-256
   digest. Caps are asked before memory is taken. *)

open Refusal

let crc_table = Array.init 256 (fun n ->
  let c = ref n in
  for _ = 1 to 8 do c := if !c land 1 = 1 then 0xedb88320 lxor (!c lsr 1) else !c lsr 1 done;
  !c)
let crc32 text =
  let c = ref 0xffffffff in
  for i = 0 to String.length text - 1 do
    c := Array.unsafe_get crc_table ((!c lxor Char.code (String.unsafe_get text i)) land 255) lxor (!c lsr 8)
  done;
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
  let twice x = x lor (x lsl 32) (* turned right by n: its bits from n on *)

  let block h w text first =
    for i = 0 to 15 do
      Array.unsafe_set w i (Int32.to_int (String.get_int32_be text (first + 4 * i)) land mask)
    done;
    for i = 16 to 63 do
      let x = Array.unsafe_get w (i - 15) and y = Array.unsafe_get w (i - 2) in
      let xx = twice x and yy = twice y in
      let s0 = (xx lsr 7) lxor (xx lsr 18) lxor (x lsr 3) and s1 = (yy lsr 17) lxor (yy lsr 19) lxor (y lsr 10) in
      Array.unsafe_set w i ((Array.unsafe_get w (i - 16) + (s0 land mask) + Array.unsafe_get w (i - 7) + (s1 land mask)) land mask)
    done;
    let rec round i a b c d e f g hh =
      if i = 64 then List.iteri (fun j v -> h.(j) <- (h.(j) + v) land mask) [ a; b; c; d; e; f; g; hh ]
      else begin
        let ee = twice e and aa = twice a in
        let s1 = ((ee lsr 6) lxor (ee lsr 11) lxor (ee lsr 25)) land mask and choice = g lxor (e land (f lxor g)) in
        let t1 = hh + s1 + choice + Array.unsafe_get k i + Array.unsafe_get w i in
        let s0 = ((aa lsr 2) lxor (aa lsr 13) lxor (aa lsr 22)) land mask and most = (a land b) lor (c land (a lor b)) in
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
          block h w (Buffer.contents rest) 0; Buffer.clear rest
        end
      end;
      while n - !from >= 64 do
        block h w text !from; from := !from + 64
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
