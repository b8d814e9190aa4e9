(* NOT BELIEVED, but that [complement] is a function of the model. Quotients f/g of polynomials: a quotient is f·r, where r is a
   parameter behind those of the domain. The theorems speak of points at which g·r = 1 (says.ml); everything about r follows from these
   equations, and from what is known of g. *)

open Refusal
open Region

type t = { parameters : int; denominators : Poly.t array }

let of_domain (domain : Problem.domain) =
  { parameters = List.length domain.lower; denominators = Array.map Poly.of_terms domain.denominators }
let reciprocal q k = Poly.parameter (q.parameters + k)

(* f and the number of g, which no polynomial has. *)
let split q (p : Poly.t) =
  let divisors = Hashtbl.create 2 in
  let top = Poly.M.fold (fun m c top ->
    let own, others = List.partition (fun (i, _) -> i < q.parameters) m in
    Hashtbl.replace divisors others (); Poly.put own c top) p Poly.zero in
  match List.of_seq (Hashtbl.to_seq_keys divisors) with
  | [] | [ [] ] -> p, None
  | [ [ i, 1 ] ] -> top, Some (i - q.parameters)
  | _ -> not_covered "an expression that is no quotient with one denominator"

let bottom q = function None -> Poly.one | Some k -> q.denominators.(k)
let over q top = function None -> top | Some k -> Poly.times top (reciprocal q k)
let form q p c = let top, k = split q p in Poly.plus ~times:(Q.neg c) top (bottom q k) (* f − c·g *)
let complement q p = let top, k = split q p in over q (Poly.minus (bottom q k) top) k

(* The numerator of 1 − Σ, over all denominators that are met. *)
let missing q polynomials =
  let above, below = List.fold_left (fun (above, below) (k, top) ->
    let g = bottom q k in Poly.plus (Poly.times above g) (Poly.times top below), Poly.times below g) (Poly.zero, Poly.one)
    (List.map (fun k -> k, List.fold_left (fun sum p -> let top, own = split q p in if own = k then Poly.plus sum top else sum) Poly.zero polynomials)
      (List.sort_uniq compare (List.map (fun p -> snd (split q p)) polynomials))) in
  Poly.minus below above

(* ---------- Facts ---------- *)

(* ±(g·r − 1) ≥ 0 *)
let equation q book k plus =
  let p = Poly.minus (over q q.denominators.(k) (Some k)) Poly.one in
  if plus then given book (Quotient k) p else given book (Minus_quotient k) (Poly.scale Q.minus_one p)

(* p ≥ 0 from multiples of facts and of equations. *)
let settle q book p parts =
  let rest = List.fold_left (fun rest (c, i) -> Poly.plus ~times:(Q.neg c) rest book.says.(i)) p parts in
  let _, parts = Array.fold_left (fun (k, parts) g ->
    let m, c = Poly.M.max_binding g in
    let times = Q.div (Poly.coefficient (Poly.join m [ q.parameters + k, 1 ]) rest) c in
    k + 1, if Q.sign times = 0 then parts else (Q.abs times, equation q book k (Q.sign times > 0)) :: parts) (0, parts) q.denominators in
  combine book p parts

(* Parts that sum to ±f·(g·r − 1): half of (1 + f)²·E − f²·E − E. *)
let times_equation q book f k plus =
  let half = Q.of_ints 1 2 and one = equation q book k plus and other = equation q book k (not plus) in
  let square p = note book (Poly.times p p) (Square p) in
  [ half, product book (square (Poly.plus f Poly.one)) one; half, product book (square f) other; half, other ]

(* Of a denominator, which lies between positive ends: g ≥ 0, r ≥ 0, and the ends of r. *)
type known = { least : Q.t; most : Q.t; above : int Lazy.t; positive : int Lazy.t; small : int Lazy.t; large : int Lazy.t }

let known q book k least most low_fact high_fact =
  if Q.sign least <= 0 then unproved "a denominator is not proved to be positive on the domain's box";
  let g = q.denominators.(k) and r = reciprocal q k in
  let positive = lazy ( (* r = r·(1 − g·r) + r²·(g − least) + least·r² *)
    let square = note book (Poly.times r r) (Square r) in
    combine book r (times_equation q book r k false @ [ Q.one, product book square (Lazy.force low_fact); least, square ])) in
  { least; most; above = lazy (combine book g [ Q.one, Lazy.force low_fact ]); positive;
    small = lazy (settle q book (Poly.minus (Poly.constant (Q.inv least)) r) [ Q.inv least, product book (Lazy.force positive) (Lazy.force low_fact) ]);
    large = lazy (settle q book (Poly.minus r (Poly.constant (Q.inv most))) [ Q.inv most, product book (Lazy.force positive) (Lazy.force high_fact) ]) }

(* From ±(c − f·r) ≥ 0 to ±(c·g − f) ≥ 0. *)
let cleared q book known p c upward own =
  let top, k = split q p in
  match k with
  | None -> Lazy.force own
  | Some k ->
    let wanted = form q p c in
    combine book (if upward then Poly.scale Q.minus_one wanted else wanted)
      ((Q.one, product book (Lazy.force known.(k).above) (Lazy.force own)) :: times_equation q book top k upward)

(* From ±(rest − (f − c·g)) ≥ 0 to ±(end − f·r) ≥ 0, with that end. *)
let divided q book known p c rest upward own =
  let _, k = split q p in
  match k with
  | None -> Q.add c rest, own
  | Some k ->
    let { least; most; positive; small; large; _ } = known.(k) in
    let by_least = (Q.sign rest > 0) = upward in
    let reached = Q.add c (Q.div rest (if by_least then least else most)) in
    let difference = Poly.minus (Poly.constant reached) p in
    reached, lazy (settle q book (if upward then difference else Poly.scale Q.minus_one difference)
      [ Q.one, product book (Lazy.force positive) (Lazy.force own); Q.abs rest, Lazy.force (if by_least then small else large) ])
