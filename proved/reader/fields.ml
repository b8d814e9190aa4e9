(* The certificate's objects and arrays: exactly those that are declared, each of its type and within its range. *)

open Refusal

(* An array keeps the bytes of its member and is read entry by entry; running sums alone are written out. *)
type entries =
  | Ints of (int -> int)
  | Floats of (int -> float)
  | Truths of (int -> bool)
  | Lines of string

type table = { shape : int list; length : int; entries : entries }

let narrow n = n >= -0x80000000 && n < 0x80000000

(* The running sums of entries, in 4 bytes each where that is enough. *)
let running get length =
  let fits = ref true and total = ref 0 in
  for i = 0 to length - 1 do total := !total + get i; if not (narrow !total) then fits := false done;
  total := 0;
  if !fits then begin
    let sums = Bigarray.(Array1.create int32 c_layout length) in
    for i = 0 to length - 1 do total := !total + get i; sums.{i} <- Int32.of_int !total done;
    fun i -> Int32.to_int sums.{i}
  end else begin
    let sums = Bigarray.(Array1.create int c_layout length) in
    for i = 0 to length - 1 do total := !total + get i; sums.{i} <- !total done;
    fun i -> sums.{i}
  end

let long content i =
  let wide = String.get_int64_le content (8 * i) in
  let n = Int64.to_int wide in
  require (Int64.of_int n = wide) "an integer is out of range"; n

let table_of name recipe content =
  let wrong () = malformed (Printf.sprintf "the array '%s' is not as it is described" (plain name)) in
  let kind, coding, shape = match recipe with
    | Json.List [ Json.Text kind; Json.Text coding; Json.List shape ] ->
      kind, coding, List.map (function Json.Int n when n >= 0 && n < 1 lsl 40 -> n | _ -> wrong ()) shape
    | _ -> wrong () in
  if shape = [] || List.length shape > 3 then wrong ();
  let length = List.fold_left (fun total n -> if n > 0 && total > (1 lsl 60) / n then wrong () else total * n) 1 shape in
  let plainly = coding = "plain" in
  if not plainly && coding <> "difference" then wrong ();
  let width = match kind with
    | "int8" | "bool" -> 1 | "int16" -> 2 | "int32" -> 4 | "int64" | "float64" -> 8 | "text" -> 0 | _ -> wrong () in
  if width > 0 && length > String.length content then wrong ();
  if width > 0 && length * width <> String.length content then wrong ();
  let ints get =
    if plainly then Ints get
    else if List.length shape = 1 && width <= 4 then Ints (running get length) else wrong () in
  let entries = match kind with
    | "int8" -> ints (String.get_int8 content)
    | "int16" -> ints (fun i -> String.get_int16_le content (2 * i))
    | "int32" -> ints (fun i -> Int32.to_int (String.get_int32_le content (4 * i)))
    | "int64" -> ints (long content)
    | _ when not plainly -> wrong ()
    | "float64" -> Floats (fun i -> Int64.float_of_bits (String.get_int64_le content (8 * i)))
    | "bool" ->
      require (String.for_all (fun c -> c <= '\001') content) "an entry that is neither true nor false";
      Truths (fun i -> String.get content i = '\001')
    | _ -> Lines content in
  { shape; length; entries }

type arrays = (string, table) Hashtbl.t

let most_lines = 1_000_000 and most_parts = 2_500_000

(* (the certificate's object, its arrays, the digest) *)
let read path =
  let data = Archive.read_file path in
  let members, digest = Archive.read data in
  let head = Json.parse (Hashtbl.find members "header.json") in
  Hashtbl.remove members "header.json";
  match head with
  | Json.Object fields when List.sort compare (List.map fst fields) = [ "arrays"; "certificate"; "format" ] ->
    require (List.assoc "format" fields = Json.Int 6) "a certificate of another format: format 6 is read";
    let recipes = match List.assoc "arrays" fields with Json.Object recipes -> recipes | _ -> malformed "no arrays" in
    require (List.length recipes = Hashtbl.length members && List.for_all (fun (name, _) -> Hashtbl.mem members name) recipes)
      "it lists other members";
    let arrays = Hashtbl.create 50 in
    List.iter (fun (name, recipe) -> Hashtbl.add arrays name (table_of name recipe (Hashtbl.find members name))) recipes;
    let unpacked = Hashtbl.fold (fun _ t total ->
      total + t.length * (match t.entries with Truths _ -> 1 | _ -> 8)) arrays 0 in
    require (unpacked <= Archive.most_memory (String.length data)) "it would take too much memory";
    List.assoc "certificate" fields, arrays, digest
  | _ -> malformed "the header has other fields"

(* One object of the header, with the arrays below its path. *)
type node = { fields : (string * Json.t) list; path : string; arrays : arrays }

let wrong node name words = malformed (Printf.sprintf "'%s%s' %s" node.path name words)

let node json path arrays names =
  match json with
  | Json.Object fields when List.sort compare (List.map fst fields) = List.sort compare names -> { fields; path; arrays }
  | _ -> malformed (Printf.sprintf "the fields of '%s' are others" path)

let field node name = List.assoc name node.fields
let optional read node name = if field node name = Json.Null then None else Some (read node name)

let word node name words = match field node name with
  | Json.Text w when List.mem w words -> w
  | _ -> wrong node name "is none of its words"
let truth node name = match field node name with Json.Bool b -> b | _ -> wrong node name "is not true or false"
let whole ?(most = max_int) node name = match field node name with
  | Json.Int n when n >= 0 && n <= most -> n
  | _ -> wrong node name "is no whole number in range"
let real ?(infinite = false) ?(least = -.max_float) ?(most = max_float) node name = match field node name with
  | Json.Text "inf" when infinite -> infinity
  | Json.Real x when x >= least && x <= most -> x
  | _ -> wrong node name "is no number in range"
(* Strictly between 0 and 1. *)
let share node name = real ~least:(Int64.float_of_bits 1L) ~most:(1.0 -. epsilon_float /. 2.0) node name

let take node name =
  let path = node.path ^ name in
  let found = Hashtbl.find_opt node.arrays path in
  Hashtbl.remove node.arrays path; found

let shaped ?length node name table =
  require (List.length table.shape = 1) (Printf.sprintf "'%s%s' has several dimensions" node.path name);
  match length with
  | Some n when n <> table.length -> wrong node name "has another length"
  | _ -> ()

type 'a vector = { size : int; get : int -> 'a }

let each table f = for i = 0 to table.length - 1 do f i done

let integer_entries ?(least = 0) ?(most = max_int) node name table = match table.entries with
  | Ints get ->
    each table (fun i -> let n = get i in if n < least || n > most then wrong node name "is out of range");
    get
  | _ -> wrong node name "is of another type"
let real_entries ?(least = -.max_float) ?(most = max_float) node name table = match table.entries with
  | Floats get ->
    each table (fun i -> let x = get i in if not (x >= least && x <= most) then wrong node name "is out of range");
    get
  | _ -> wrong node name "is of another type"

let integers ?length ?least ?most node name =
  Option.map (fun table -> shaped ?length node name table;
    { size = table.length; get = integer_entries ?least ?most node name table }) (take node name)
let reals ?length ?least ?most node name =
  Option.map (fun table -> shaped ?length node name table;
    { size = table.length; get = real_entries ?least ?most node name table }) (take node name)
let truths ?length node name =
  Option.map (fun table -> shaped ?length node name table;
    match table.entries with
    | Truths get -> { size = table.length; get }
    | _ -> wrong node name "is of another type") (take node name)

let given node name = function Some value -> value | None -> wrong node name "is missing"

(* (rows, columns, entry) *)
let matrix entries node name =
  Option.map (fun table -> match table.shape with
    | [ rows; columns ] ->
      let get = entries node name table in
      rows, columns, fun i j -> get (i * columns + j)
    | _ -> wrong node name "has another number of dimensions") (take node name)

(* Texts: rationals and polynomials, one on a line. *)

let lines node name =
  Option.map (fun table -> match table.entries with
    | Lines content ->
      shaped node name table;
      let count = ref 0 and parts = ref 0 in
      String.iter (function '\n' -> incr count | ' ' | '*' -> incr parts | _ -> ()) content;
      if !count > most_lines || !count + !parts > most_parts then wrong node name "has too many lines, terms or factors";
      let all = String.split_on_char '\n' content in
      if List.length all <> table.length + 1 || List.nth all table.length <> "" then wrong node name "is no list of lines";
      List.filteri (fun i _ -> i < table.length) all
    | _ -> wrong node name "is of another type") (take node name)

let natural most text =
  let n = String.length text in
  require (n >= 1 && n <= most && String.for_all (fun c -> c >= '0' && c <= '9') text) "no number"

let rational text =
  let unsigned = if text <> "" && text.[0] = '-' then String.sub text 1 (String.length text - 1) else text in
  match String.split_on_char '/' unsigned with
  | [ above ] -> natural 4000 above; Q.of_bigint (Z.of_string text)
  | [ above; below ] ->
    natural 4000 above; natural 4000 below;
    let below = Z.of_string below in
    require (Z.sign below > 0) "a denominator is 0";
    let above = Z.of_string above in
    Q.make (if unsigned == text then above else Z.neg above) below
  | _ -> malformed "no rational"

(* Factors (parameter, exponent) with their coefficient. *)
type polynomial = ((int * int) list * Q.t) list

let polynomial parameters line : polynomial =
  let factor text = match String.split_on_char '^' text with
    | [ i; e ] -> natural 5 i; natural 4 e; int_of_string i, int_of_string e
    | _ -> malformed "no power of a parameter" in
  let term text = match String.split_on_char '*' text with
    | coefficient :: factors ->
      let monomial = List.map factor factors and c = rational coefficient in
      let rec rises = function (i, _) :: ((j, _) :: _ as rest) -> i < j && rises rest | _ -> true in
      require (rises monomial && List.for_all (fun (i, e) -> i < parameters && e >= 1) monomial
        && List.fold_left (fun total (_, e) -> total + e) 0 monomial <= 4096 && Q.sign c <> 0) "no term of a polynomial";
      monomial, c
    | [] -> malformed "no term" in
  let terms = if line = "" then [] else List.map term (String.split_on_char ' ' line) in
  require (List.length (List.sort_uniq compare (List.map fst terms)) = List.length terms)
    "a polynomial has a monomial twice";
  terms
