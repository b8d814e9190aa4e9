(* NOT BELIEVED: what was read is named by its digest. The members of a certificate file: a zip archive without a byte that does
   not follow from its members. Caps are asked before memory is taken. *)

open Refusal

let crc_table = Array.init 256 (fun n ->
  let c = ref n in
  for _ = 1 to 8 do c := if !c land 1 = 1 then ((0xedb8 lsl 16) lor 0x8320) lxor (!c lsr 1) else !c lsr 1 done;
  !c)
let crc32 text =
  let ones = (0xffff lsl 16) lor 0xffff in
  let c = ref ones in
  for i = 0 to String.length text - 1 do
    c := Array.unsafe_get crc_table ((!c lxor Char.code (String.unsafe_get text i)) land 255) lxor (!c lsr 8)
  done;
  !c lxor ones

let most_members = 1000 and most_bytes = if Sys.int_size > 32 then 2 * (1 lsl 30) else 1 lsl 28 and inflation = 40 and room = 1 lsl 28
let most_memory size = max room (inflation * min size (max_int / inflation))

let u16 text i = Char.code text.[i] lor (Char.code text.[i + 1] lsl 8)
let u32 text i = u16 text i lor (u16 text (i + 2) lsl 16) (* negative, or not, where integers have 32 bits *)
let le n bytes = String.init bytes (fun i -> Char.chr ((n lsr (8 * i)) land 255))

let read_file path =
  let channel = try open_in_bin path with Sys_error words -> raise (Refused (2, "cannot be read: " ^ words)) in
  Fun.protect ~finally:(fun () -> close_in_noerr channel) (fun () ->
    try
      let size = in_channel_length channel in
      require (size <= most_bytes) "it has more bytes than this program reads";
      really_input_string channel size
    with Sys_error words -> raise (Refused (2, "cannot be read: " ^ words)) | End_of_file -> malformed "it ends early")

(* Name to length and bytes, which are unpacked when they are asked for, without the digest, which is to be that of all others; and
   the digest. *)
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
    require (packed >= 0 && length >= 0 && first <= size && packed <= size - first) "it ends early";
    let name = String.sub data (p + 30) name_length in
    require (String.for_all (fun c -> Char.code c < 128) name) "a member's name is no ASCII text";
    left := !left - length;
    require (!left >= 0) "it would take more than 40 times its own size in memory";
    require (not (Hashtbl.mem members name) && Hashtbl.length members < most_members)
      "too many members, or two of one name";
    require (compressed = 8 || packed = length) "a member has another length";
    let content = lazy (
      let content = if compressed = 8 then Inflate.inflate data first packed length else String.sub data first packed in
      require (crc32 content = crc) "a member has another length or sum";
      content) in
    Hashtbl.add members name (length, content);
    List.iter (Buffer.add_string directory)
      [ "PK\001\002"; le 788 2; fixed; sizes; le 0 8; le (0o600 lsl 16) 4; le p 4; name ];
    place := first + packed
  done;
  let count = le (Hashtbl.length members) 2 and directory = Buffer.contents directory in
  let last = "PK\005\006" ^ le 0 4 ^ count ^ count ^ le (String.length directory) 4 ^ le !place 4 ^ le 0 2 in
  require (size - !place = String.length directory + 22 && at !place (directory ^ last))
    "its members do not fill the file, or its directory is wrong";
  let digest = match Hashtbl.find_opt members "digest" with
    | Some (length, content) -> require (length <= 64) "the digest is longer"; Lazy.force content
    | None -> "" in
  Hashtbl.remove members "digest";
  members, digest
