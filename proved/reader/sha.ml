(* BELIEVED. SHA-256 (FIPS 180-4) of the concatenation of texts; words of 32 bits in OCaml's integers, of 63 bits or (in a browser) of 32. *)

let primes =
  let rec from n known count = if count = 64 then List.rev known
    else if List.exists (fun p -> n mod p = 0) known then from (n + 1) known count else from (n + 1) (n :: known) (count + 1) in
  Array.of_list (from 2 [] 0)
(* The first 32 bits of the fraction of a root of an integer. *)
let fraction power n =
  let root = Z.root (Z.shift_left (Z.of_int n) (32 * power)) power in
  (Z.to_int (Z.extract root 16 16) lsl 16) lor Z.to_int (Z.extract root 0 16)
let k = Array.map (fraction 3) primes
let start = Array.map (fraction 2) (Array.sub primes 0 8)
let mask = (0xffff lsl 16) lor 0xffff
let turned x n = (x lsr n) lor (x lsl (32 - n))

let block h w text first =
  for i = 0 to 15 do w.(i) <- Int32.to_int (String.get_int32_be text (first + 4 * i)) land mask done;
  for i = 16 to 63 do
    let x = w.(i - 15) and y = w.(i - 2) in
    let s0 = turned x 7 lxor turned x 18 lxor (x lsr 3) and s1 = turned y 17 lxor turned y 19 lxor (y lsr 10) in
    w.(i) <- (w.(i - 16) + (s0 land mask) + w.(i - 7) + (s1 land mask)) land mask
  done;
  let rec round i a b c d e f g hh =
    if i = 64 then List.iteri (fun j v -> h.(j) <- (h.(j) + v) land mask) [ a; b; c; d; e; f; g; hh ]
    else begin
      let s1 = (turned e 6 lxor turned e 11 lxor turned e 25) land mask and choice = g lxor (e land (f lxor g)) in
      let t1 = hh + s1 + choice + k.(i) + w.(i) in
      let s0 = (turned a 2 lxor turned a 13 lxor turned a 22) land mask and most = (a land b) lor (c land (a lor b)) in
      round (i + 1) ((t1 + s0 + most) land mask) a b c ((d + t1) land mask) e f g
    end in
  round 0 h.(0) h.(1) h.(2) h.(3) h.(4) h.(5) h.(6) h.(7)

let hex texts =
  let size = List.fold_left (fun n text -> n + String.length text) 0 texts and bits = Bytes.create 8 in
  Bytes.set_int64_be bits 0 (Int64.mul 8L (Int64.of_int size));
  let padding = "\x80" ^ String.make ((119 - (size mod 64)) mod 64) '\000' ^ Bytes.to_string bits in
  let padded = String.concat "" (texts @ [ padding ]) and h = Array.copy start and w = Array.make 64 0 in
  for i = 0 to String.length padded / 64 - 1 do block h w padded (64 * i) done;
  String.concat "" (List.map (Printf.sprintf "%08x") (Array.to_list h))

(* Of the members of a file, each with its name and length. *)
let digest members =
  let names = List.sort compare (List.of_seq (Hashtbl.to_seq_keys members)) in
  hex (List.concat_map (fun name ->
    let content = Hashtbl.find members name in
    [ Printf.sprintf "%s\n%d\n" name (String.length content); content ]) names)
