(* NOT BELIEVED. Polynomials of the parameters as maps from monomials to coefficients that are not 0. *)

let rec order (a : (int * int) list) (b : (int * int) list) = match a, b with
  | [], [] -> 0 | [], _ -> -1 | _, [] -> 1
  | (i, e) :: more, (j, f) :: others -> if i <> j then Int.compare i j else if e <> f then Int.compare e f else order more others
module M = Map.Make (struct type t = (int * int) list let compare = order end)

type t = Q.t M.t

let zero : t = M.empty
let put m c p = if Q.sign c = 0 then p else M.add m c p
let constant c = put [] c zero
let one = constant Q.one
let parameter i = M.singleton [ i, 1 ] Q.one
let of_terms terms : t = List.fold_left (fun p (m, c) -> put m c p) zero terms
let to_terms (p : t) = M.bindings p
let coefficient m (p : t) = Option.value ~default:Q.zero (M.find_opt m p)
let constant_of p = coefficient [] p
let is_number (p : t) = M.for_all (fun m _ -> m = []) p
let degree m = List.fold_left (fun d (_, e) -> d + e) 0 m

(* p + c·q *)
let plus ?(times = Q.one) (p : t) (q : t) : t =
  M.fold (fun m c p ->
    let sum = Q.add (coefficient m p) (Q.mul times c) in
    if Q.sign sum = 0 then M.remove m p else M.add m sum p) q p
let scale c (p : t) = if Q.sign c = 0 then zero else M.map (Q.mul c) p
let minus p q = plus ~times:Q.minus_one p q

let rec join (a : (int * int) list) (b : (int * int) list) = match a, b with
  | [], rest | rest, [] -> rest
  | (i, e) :: more, (j, f) :: others ->
    if i = j then (i, e + f) :: join more others
    else if i < j then (i, e) :: join more b else (j, f) :: join a others

let times (p : t) (q : t) : t =
  M.fold (fun m c total -> M.fold (fun n d total -> plus total (M.singleton (join m n) (Q.mul c d))) q total) p zero
