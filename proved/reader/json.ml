(* The header: JSON text in UTF-8, without NaN or infinities, no name twice in an object. *)

open Refusal

type t =
  | Null
  | Bool of bool
  | Int of int
  | Real of float
  | Text of string
  | List of t list
  | Object of (string * t) list

let most_bytes = 1 lsl 20 and most_depth = 100
let wrong () = malformed "the header is no JSON text of ours"

let utf8 buffer code =
  let add n = Buffer.add_char buffer (Char.chr n) in
  if code < 0x80 then add code
  else if code < 0x800 then (add (0xc0 lor (code lsr 6)); add (0x80 lor (code land 63)))
  else if code < 0x10000 then
    (add (0xe0 lor (code lsr 12)); add (0x80 lor ((code lsr 6) land 63)); add (0x80 lor (code land 63)))
  else begin
    add (0xf0 lor (code lsr 18)); add (0x80 lor ((code lsr 12) land 63));
    add (0x80 lor ((code lsr 6) land 63)); add (0x80 lor (code land 63))
  end

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

let parse text =
  require (String.length text <= most_bytes) "the header is longer than 1 MiB";
  if not (is_utf8 text) then wrong ();
  let n = String.length text and at = ref 0 in
  let peek () = if !at < n then text.[!at] else '\000' in
  let next () = if !at >= n then wrong () else (let c = text.[!at] in incr at; c) in
  let rec blank () = match peek () with ' ' | '\n' | '\r' | '\t' when !at < n -> incr at; blank () | _ -> () in
  let expect c = if next () <> c then wrong () in
  let word w value = String.iter expect w; value in
  let hex4 () =
    let digit () = match next () with
      | '0' .. '9' as c -> Char.code c - 48 | 'a' .. 'f' as c -> Char.code c - 87
      | 'A' .. 'F' as c -> Char.code c - 55 | _ -> wrong () in
    let a = digit () in let b = digit () in let c = digit () in let d = digit () in
    (a lsl 12) lor (b lsl 8) lor (c lsl 4) lor d in
  let rec string_ buffer = match next () with
    | '"' -> Buffer.contents buffer
    | '\\' ->
      (match next () with
       | ('"' | '\\' | '/') as c -> Buffer.add_char buffer c
       | 'b' -> Buffer.add_char buffer '\b' | 'f' -> Buffer.add_char buffer '\012'
       | 'n' -> Buffer.add_char buffer '\n' | 'r' -> Buffer.add_char buffer '\r' | 't' -> Buffer.add_char buffer '\t'
       | 'u' ->
         let high = hex4 () in
         if high >= 0xd800 && high < 0xdc00 && !at + 1 < n && text.[!at] = '\\' && text.[!at + 1] = 'u' then begin
           let back = !at in
           at := !at + 2;
           let low = hex4 () in
           if low >= 0xdc00 && low < 0xe000 then utf8 buffer (0x10000 + ((high - 0xd800) lsl 10) + (low - 0xdc00))
           else (at := back; utf8 buffer high)
         end else utf8 buffer high
       | _ -> wrong ());
      string_ buffer
    | c when Char.code c < 32 -> wrong ()
    | c -> Buffer.add_char buffer c; string_ buffer in
  let digits () =
    let first = !at in
    while (match peek () with '0' .. '9' -> !at < n | _ -> false) do incr at done;
    if !at = first then wrong () in
  let number () =
    let first = !at in
    if peek () = '-' then incr at;
    if peek () = '0' then incr at else digits ();
    let whole = !at in
    if peek () = '.' then (incr at; digits ());
    if peek () = 'e' || peek () = 'E' then begin
      incr at; if peek () = '+' || peek () = '-' then incr at; digits ()
    end;
    let written = String.sub text first (!at - first) in
    if !at > whole then Real (float_of_string written)
    else if String.length written > 19 then wrong ()
    else match int_of_string_opt written with Some i -> Int i | None -> wrong () in
  let rec value depth =
    if depth > most_depth then wrong ();
    blank ();
    let result = match peek () with
      | 'n' -> word "null" Null
      | 't' -> word "true" (Bool true)
      | 'f' -> word "false" (Bool false)
      | '"' -> incr at; Text (string_ (Buffer.create 16))
      | '[' ->
        incr at; blank ();
        if peek () = ']' then (incr at; List []) else List (items depth [])
      | '{' ->
        incr at; blank ();
        if peek () = '}' then (incr at; Object []) else Object (fields depth (Hashtbl.create 8) [])
      | '-' | '0' .. '9' -> number ()
      | _ -> wrong () in
    blank (); result
  and items depth before =
    let item = value (depth + 1) in
    match next () with ',' -> items depth (item :: before) | ']' -> List.rev (item :: before) | _ -> wrong ()
  and fields depth seen before =
    blank (); expect '"';
    let name = string_ (Buffer.create 16) in
    require (not (Hashtbl.mem seen name)) "a name is there twice";
    Hashtbl.add seen name ();
    blank (); expect ':';
    let field = name, value (depth + 1) in
    match next () with ',' -> fields depth seen (field :: before) | '}' -> List.rev (field :: before) | _ -> wrong () in
  let result = value 0 in
  if !at <> n then wrong ();
  result
