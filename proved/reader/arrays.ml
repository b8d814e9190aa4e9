(* BELIEVED. The arrays of a file, each as its recipe in the header says: type, coding, shape; and texts as numbers and
   polynomials. Bytes of members are read entry by entry. What is not there raises an exception: the file is refused. *)

type entries = Ints of (int -> int) | Floats of (int -> float) | Truths of (int -> bool) | Lines of string
type table = { shape : int list; length : int; entries : entries }
type 'a vector = { size : int; get : int -> 'a }

(* Sums do not leave the range of integers. *)
let plus a b = let sum = a + b in if (sum >= a) = (b >= 0) then sum else raise Not_found
let running get length =
  let sums = Bigarray.(Array1.create int c_layout length) and total = ref 0 in
  for i = 0 to length - 1 do total := plus !total (get i); sums.{i} <- !total done;
  fun i -> sums.{i}

let long content i =
  let wide = String.get_int64_le content (8 * i) in let n = Int64.to_int wide in
  if Int64.of_int n = wide then n else raise Not_found

let table recipe content =
  let kind, coding, shape = match recipe with
    | Json.List [ Json.Text kind; Json.Text coding; Json.List shape ] ->
      kind, coding, List.map (function Json.Int n -> n | _ -> raise Not_found) shape
    | _ -> raise Not_found in
  let length = List.fold_left ( * ) 1 shape in
  let ints get = Ints (match coding with "plain" -> get | "difference" -> running get length | _ -> raise Not_found) in
  let entries = match kind with
    | "int8" -> ints (String.get_int8 content)
    | "int16" -> ints (fun i -> String.get_int16_le content (2 * i))
    | "int32" -> ints (fun i -> Int32.to_int (String.get_int32_le content (4 * i)))
    | "int64" -> ints (long content)
    | "float64" -> Floats (fun i -> Int64.float_of_bits (String.get_int64_le content (8 * i)))
    | "bool" -> Truths (fun i -> match String.get content i with '\000' -> false | '\001' -> true | _ -> raise Not_found)
    | "text" -> Lines content
    | _ -> raise Not_found in
  { shape; length; entries }

let rational text = match String.split_on_char '/' text with
  | [ above ] -> Q.of_bigint (Z.of_string above)
  | [ above; below ] when Z.sign (Z.of_string below) > 0 -> Q.make (Z.of_string above) (Z.of_string below)
  | _ -> raise Not_found

(* Terms "c*i^e*j^f" with spaces between them: c times parameter i to the power e times … *)
let polynomial line : (Q.t * (int * int) list) list =
  let factor text = match String.split_on_char '^' text with [ i; e ] -> int_of_string i, int_of_string e | _ -> raise Not_found in
  let term text = match String.split_on_char '*' text with
    | coefficient :: factors -> rational coefficient, List.map factor factors
    | [] -> raise Not_found in
  if line = "" then [] else List.map term (String.split_on_char ' ' line)
