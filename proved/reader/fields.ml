(* NOT BELIEVED: it can only refuse. The certificate's objects and arrays: exactly those that are declared, each of its type and
   within its range. *)

open Refusal
open Arrays

(* An array is as it is described: known types, lengths that fit, entries that mean something. *)
let check_array name recipe bytes =
  let wrong () = malformed (Printf.sprintf "the array '%s' is not as it is described" (plain name)) in
  let kind, coding, shape = match recipe with
    | Json.List [ Json.Text kind; Json.Text coding; Json.List shape ] ->
      kind, coding, List.map (function Json.Int n when n >= 0 -> n | _ -> wrong ()) shape
    | _ -> wrong () in
  if shape = [] || List.length shape > 3 then wrong ();
  let length = List.fold_left (fun total n -> if n > 0 && total > max_int / n then wrong () else total * n) 1 shape in
  let plainly = coding = "plain" in
  if not plainly && coding <> "difference" then wrong ();
  let width = match kind with
    | "int8" | "bool" -> 1 | "int16" -> 2 | "int32" -> 4 | "int64" | "float64" -> 8 | "text" -> 0 | _ -> wrong () in
  if width > 0 && (length > bytes / width || length * width <> bytes) then wrong ();
  if not plainly && (List.length shape <> 1 || not (List.mem kind [ "int8"; "int16"; "int32" ])) then wrong ();
  float_of_int length *. if kind = "bool" then 1.0 else 8.0

type arrays = (string, table) Hashtbl.t

let most_header = 1 lsl 20 and most_lines = 1_000_000 and most_parts = 2_500_000

(* Whether bytes are UTF-8: shortest forms, no surrogates. *)
let is_utf8 text =
  let n = String.length text in
  let byte i = if i < n then Char.code text.[i] else 0 in
  let more i = byte i land 0xc0 = 0x80 in
  let rec from i =
    i = n ||
    let b = byte i and c = byte (i + 1) in
    if b < 0x80 then from (i + 1)
    else if b >= 0xc2 && b < 0xe0 then more (i + 1) && from (i + 2)
    else if b >= 0xe0 && b < 0xf0 then
      more (i + 1) && more (i + 2) && (b <> 0xe0 || c >= 0xa0) && (b <> 0xed || c < 0xa0) && from (i + 3)
    else b >= 0xf0 && b < 0xf5 && more (i + 1) && more (i + 2) && more (i + 3)
      && (b <> 0xf0 || c >= 0x90) && (b <> 0xf4 || c < 0x90) && from (i + 4) in
  from 0

(* Escapes are those of JSON; a name stands in an object once. *)
let rec check_json = function
  | Json.Text text ->
    let n = String.length text in
    let hex c = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') in
    let rec from i = i >= n || (if text.[i] <> '\\' then from (i + 1)
      else i + 1 < n && (if text.[i + 1] = 'u' then i + 5 < n && String.for_all hex (String.sub text (i + 2) 4) && from (i + 6)
        else String.contains "\"\\/bfnrt" text.[i + 1] && from (i + 2))) in
    require (from 0) "the header is no JSON text of ours"
  | Json.List items -> List.iter check_json items
  | Json.Object fields ->
    require (List.length (List.sort_uniq compare (List.map fst fields)) = List.length fields) "a name is there twice";
    List.iter (fun (name, value) -> check_json (Json.Text name); check_json value) fields
  | _ -> ()

(* Numbers are written as JSON has them, whole ones with at most 19 characters. *)
let check_numbers text =
  let n = String.length text in
  let digit i = i < n && text.[i] >= '0' && text.[i] <= '9' and is i set = i < n && String.contains set text.[i] in
  let rec digits i = if digit i then digits (i + 1) else i in
  let some i = require (digit i) "the header is no JSON text of ours"; digits i in
  let rec text_end i = if i >= n then i else match text.[i] with '"' -> i + 1 | '\\' -> text_end (i + 2) | _ -> text_end (i + 1) in
  let rec from i =
    if i < n then
      if text.[i] = '"' then from (text_end (i + 1))
      else if is i "-+.0123456789" then begin
        let first = if is i "-" then i + 1 else i in
        let whole = if is first "0" then first + 1 else some first in
        let part = if is whole "." then some (whole + 1) else whole in
        let all = if is part "eE" then some (if is (part + 1) "+-" then part + 2 else part + 1) else part in
        require (not (is all "-+.eE0123456789") && (all > whole || all - i <= 19)) "the header is no JSON text of ours";
        from all
      end else from (i + 1) in
  from 0

(* Before anything is read: the header, the list of members, and what reading takes. *)
let check_members size members =
  require (Hashtbl.mem members "header.json") "there is no header";
  let length, header = Hashtbl.find members "header.json" in
  require (length <= most_header) "the header is longer than 1 MiB";
  let header = Lazy.force header in
  require (is_utf8 header) "the header is no JSON text of ours";
  check_numbers header;
  match (try Json.parse header with Json.Wrong | Failure _ -> malformed "the header is no JSON text of ours") with
  | Json.Object fields as head when List.sort compare (List.map fst fields) = [ "arrays"; "certificate"; "format" ] ->
    check_json head;
    require (List.assoc "format" fields = Json.Int 6) "a certificate of another format: format 6 is read";
    let recipes = match List.assoc "arrays" fields with Json.Object recipes -> recipes | _ -> malformed "no arrays" in
    require (List.length recipes = Hashtbl.length members - 1 && List.for_all (fun (name, _) -> Hashtbl.mem members name) recipes)
      "it lists other members";
    let unpacked = List.fold_left (fun total (name, recipe) ->
      total +. check_array name recipe (fst (Hashtbl.find members name))) 0.0 recipes in
    require (unpacked <= float_of_int (Archive.most_memory size)) "it would take too much memory"
  | _ -> malformed "the header has other fields"

(* One object of the header, with the arrays below its path. *)
type node = { fields : (string * Json.t) list; path : string; arrays : arrays }

let wrong node name words = malformed (Printf.sprintf "'%s%s' %s" node.path name words)

let node json path arrays names =
  match json with
  | Json.Object fields when List.for_all (fun name -> List.mem_assoc name fields) names ->
    List.iter (fun (name, _) -> if not (List.mem name names) then not_covered ("the field " ^ plain (path ^ name))) fields;
    { fields; path; arrays }
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
    | Truths get -> each table (fun i -> ignore (get i)); { size = table.length; get }
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
  let parts = String.split_on_char '/' unsigned in
  require (List.length parts <= 2) "no rational";
  List.iter (natural 4000) parts;
  Arrays.rational text

(* Factors (parameter, exponent) with their coefficient. *)
type polynomial = ((int * int) list * Q.t) list

let polynomial parameters line : polynomial =
  let check_factor text = match String.split_on_char '^' text with
    | [ i; e ] -> natural 5 i; natural 4 e
    | _ -> malformed "no power of a parameter" in
  let check_term text = match String.split_on_char '*' text with
    | coefficient :: factors -> ignore (rational coefficient); List.iter check_factor factors
    | [] -> malformed "no term" in
  if line <> "" then List.iter check_term (String.split_on_char ' ' line);
  let terms = List.map (fun (c, m) -> m, c) (Arrays.polynomial line) in
  let rec rises = function (i, _) :: ((j, _) :: _ as rest) -> i < j && rises rest | _ -> true in
  List.iter (fun (m, c) ->
    require (rises m && List.for_all (fun (i, e) -> i < parameters && e >= 1) m
      && List.fold_left (fun total (_, e) -> total + e) 0 m <= 4096 && Q.sign c <> 0) "no term of a polynomial") terms;
  require (List.length (List.sort_uniq compare (List.map fst terms)) = List.length terms)
    "a polynomial has a monomial twice";
  terms
