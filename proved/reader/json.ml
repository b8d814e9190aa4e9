(* BELIEVED. JSON text. Texts are kept as they are written, escapes included: no word of ours has one. What is not JSON is refused
   by fields.ml as far as it is not here. *)

type t = Null | Bool of bool | Int of int | Real of float | Text of string | List of t list | Object of (string * t) list

exception Wrong
let most_depth = 100

let parse text =
  let n = String.length text and at = ref 0 in
  let peek () = if !at < n then text.[!at] else '\000' in
  let next () = if !at >= n then raise Wrong else (let c = text.[!at] in incr at; c) in
  let rec blank () = match peek () with ' ' | '\n' | '\r' | '\t' -> incr at; blank () | _ -> () in
  let expect c = if next () <> c then raise Wrong in
  let word w value = String.iter expect w; value in
  let rec string_ first = match next () with
    | '"' -> String.sub text first (!at - 1 - first)
    | '\\' -> ignore (next ()); string_ first
    | c -> if c < ' ' then raise Wrong else string_ first in
  let number () =
    let first = !at in
    while (match peek () with '0' .. '9' | '-' | '+' | '.' | 'e' | 'E' -> true | _ -> false) do incr at done;
    let written = String.sub text first (!at - first) in
    match int_of_string_opt written with Some i -> Int i | None -> Real (float_of_string written) in
  let rec value depth =
    if depth > most_depth then raise Wrong;
    blank ();
    let result = match peek () with
      | 'n' -> word "null" Null
      | 't' -> word "true" (Bool true)
      | 'f' -> word "false" (Bool false)
      | '"' -> incr at; Text (string_ !at)
      | '[' -> incr at; blank (); if peek () = ']' then (incr at; List []) else List (items depth [])
      | '{' -> incr at; blank (); if peek () = '}' then (incr at; Object []) else Object (fields depth [])
      | _ -> number () in
    blank (); result
  and items depth before =
    let all = value (depth + 1) :: before in
    match next () with ',' -> items depth all | ']' -> List.rev all | _ -> raise Wrong
  and fields depth before =
    blank (); expect '"';
    let name = string_ !at in
    blank (); expect ':';
    let all = (name, value (depth + 1)) :: before in
    match next () with ',' -> fields depth all | '}' -> List.rev all | _ -> raise Wrong in
  let result = value 0 in
  if !at <> n then raise Wrong;
  result
