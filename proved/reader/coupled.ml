(* NOT BELIEVED. Trees of cells for the claims of coupled values and differences, as the checker takes them. *)

open Refusal
open Arrays
open Problem

(* The chain of a policy: weights, expressions, what is earned; open are states whose value the vectors do not decide. *)
let chain (model : Checker.model) discount (question, (low : Checker.hints), (high : Checker.hints)) =
  let shape = model.shape and float = Q.to_float in
  let rule s = match question.Checker.policy with Some f -> f 0 s | None -> not_covered "coupled values of free agents" in
  let taken s =
    let choices = model.table s in
    let weighed = match rule s with
      | Checker.Any -> not_covered "coupled values of free agents"
      | Only i -> [ 1.0, List.nth choices i ]
      | Mix w -> List.filter (fun (w, _) -> w > 0.0) (List.combine (List.map float w) choices) in
    List.fold_left (fun (total, terms) (w, (c : Checker.lchoice)) ->
      let earned = match c.gains with [] -> 0.0 | [ q, [] ] -> float q | _ -> not_covered "coupled values with rewards that have parameters" in
      total +. w *. earned, List.map (fun (e : Checker.ledge) -> w *. discount, e.expr, e.goes) c.outcomes @ terms) (0.0, []) weighed in
  let goes_on s = Checker.ends_of shape 0 s = None && not (high.endless s) && not (Q.equal (low.x 0 s) (high.x 0 s)) in
  let bounds s = if high.endless s then unproved "a coupled value where the value may be infinite" else float (low.x 0 s), float (high.x 0 s) in
  Expansion.chain shape.initial taken goes_on bounds

(* The weights of choices in whole parts, and what each earns, times these parts. *)
let shares (model : Checker.model) (question, _, _) s =
  let rule = match question.Checker.policy with Some f -> f 0 s | None -> assert false in
  let taken = List.map (fun (q, (c : Checker.lchoice)) ->
    Q.mul q model.shape.factor, match c.gains with [ g, [] ] -> Q.mul q g | _ -> Q.zero) (Checker.taken rule (model.table s)) in
  let whole = List.fold_left (fun t (a, _) -> Z.lcm t (Q.den a)) Z.one taken in
  let times q = Q.mul (Q.of_bigint whole) q in
  whole, List.map (fun (a, b) -> Q.num (times a), times b) taken

let kept make = (* what is asked for more than once *)
  let known = Hashtbl.create 100 in
  fun (s : int) -> match Hashtbl.find_opt known s with Some v -> v | None -> let v = make s in Hashtbl.add known s v; v

let walk shares (_, (low : Checker.hints), (high : Checker.hints)) (cell : Cells.leaf) (chain : Expansion.chain) upward (model : Expansion.model) =
  let n = Array.length chain.states and unit_of = Q.of_bigint cell.unit_of in
  let d = Array.length model.slope / Array.length model.value in
  let down q = (if upward then Z.cdiv else Z.fdiv) (Q.num q) (Q.den q) in
  let parts = Q.mul unit_of (Q.of_bigint cell.grain) and scale = Z.to_float cell.unit_of in
  let exact size v = Z.of_float (v *. scale /. size) in
  let part size all from = List.init d (fun k -> exact size all.(from + k)) in
  let forms = Array.init n (fun i -> lazy (
    exact 1.0 model.value.(i), List.mapi (fun j s -> s, part 16.0 model.curve ((i * d + j) * d)) (part 4.0 model.slope (i * d)))) in
  { Checker.is_open = Hashtbl.mem chain.number; guess = (fun s -> Lazy.force forms.(Hashtbl.find chain.number s));
    beyond = kept (fun t -> down (Q.mul unit_of ((if upward then high else low).x 0 t)));
    whole = (fun s -> fst (shares s)); portions_at = (fun s -> List.map (fun (a, b) -> a, down (Q.mul parts b)) (snd (shares s)));
    slow = (fun s -> Z.of_float (Float.ceil (Float.ldexp model.slow.(Hashtbl.find chain.number s) 30))); rate = Q.of_float model.rate }

let tree (root : Reasons.t) labels walks cover =
  let label = Array.of_list labels and place = Hashtbl.create 100 in
  Array.iteri (fun k e -> Hashtbl.replace place e k) label;
  let behind path =
    let path = List.rev_map fst path in
    let position = Hashtbl.create 10 in
    List.iteri (fun i id -> Hashtbl.replace position id i) path;
    root.within (List.length path) (Hashtbl.find position) in
  let rec go = function
    | Cells.Split (d, a, b) -> Checker.Split (Events.terms d, go a, go b)
    | Hollow (path, fact) ->
      let own = behind path in
      let why = own.flat fact in
      Checker.Hollow (own.made (), why)
    | Leaf l ->
      let own = behind l.path and forms = Hashtbl.create 100 in
      List.iter (fun (e, f) -> Hashtbl.replace forms e f) l.forms;
      let axes = Array.to_list (Array.map (fun (p, h, low, high) -> ((Events.terms p, h), own.flat low), own.flat high) l.sides) in
      let walks = List.map2 (fun walk (chain, upward, model) -> walk l chain upward model) walks l.models in
      let why_budget = own.flat (snd l.budget) in
      Option.iter (fun fact -> ignore (own.single fact)) l.said; (* the last one *)
      Checker.Leaf { more = own.made (); axes; budget = fst l.budget; why_budget; grain = l.grain; unit_of = l.unit_of; goal = l.goal; labels = Array.length label; label_at = Array.get label;
        place_of = (fun e -> Option.value ~default:(Array.length label) (Hashtbl.find_opt place e)); linear = Hashtbl.find forms;
        first_walk = List.hd walks; second_walk = List.nth walks (List.length walks - 1) } in
  go cover

let rec share (root : Reasons.t) = function
  | Cells.Split (_, a, b) -> share root a; share root b
  | Hollow (_, fact) -> root.share fact
  | Leaf l -> Array.iter (fun (_, _, low, high) -> root.share low; root.share high) l.sides; root.share (snd l.budget); Option.iter root.share l.said

(* Trees for the two ends of a claim, None where vectors do. *)
let of_claim (file : Problem.t) model complement (claim : claim) space (sets : Sets.t) polynomials _ rows root parts =
  if steps file.objective <> None || file.objective.lower_steps > 0 then not_covered "coupled proofs of a bounded number of steps";
  let discount = Option.value ~default:1.0 file.objective.discount in
  let chains = List.map (chain model discount) parts in
  let initial = file.graph.initial in
  let exact = Q.of_float in
  let pair = List.length parts > 1 in
  let ends = if not complement then Some claim.lower, Some claim.upper
    else if pair then Some (-. claim.upper), Some (-. claim.lower) else Some (1.0 -. claim.upper), Some (1.0 -. claim.lower) in
  let vector upward =
    let of_part i up = let _, low, high = List.nth parts i in (if up then high else low).Checker.x 0 initial in
    if pair then Q.sub (of_part 0 upward) (of_part 1 (not upward)) else of_part 0 upward in
  let wanted upward = match (if upward then snd ends else fst ends) with
    | Some b when Float.is_finite b && (if upward then Q.gt (vector upward) (exact b) else Q.lt (vector upward) (exact b)) -> Some b
    | _ -> None in
  let polytope = match sets.polytope with Some p -> p | None -> unproved "coupled proofs without a region" in
  let n = Region.size space in
  let named = List.filter (fun (origin, _, _) -> origin <> 7 && origin <> 2) (List.sort_uniq compare (Array.to_list rows)) in
  let own = Array.sub polytope.rows (2 * n) (Array.length polytope.rows - 2 * n) in
  let rows = Array.append own (Array.of_list (List.map sets.named named)) in
  let envelopes box = Array.concat (List.init (Array.length space.products) (fun i ->
    let x, y = space.products.(i) in
    Array.map (Region.envelope space box i) (if x = y then [| 0; 4; 1; 2 |] else [| 0; 1; 2; 3 |]))) in
  let labels = List.sort_uniq compare (List.concat_map (fun (c : Expansion.chain) -> Array.to_list c.labels) chains) in
  let affine e = match Region.affine space polynomials.(e) with
    | l, c, [] -> l, c
    | _ -> not_covered "coupled values over a domain with equalities" in
  let walks = List.map (fun part -> walk (kept (shares model part)) part) parts in
  let parts = List.mapi (fun i chain -> { Cells.chain; counts = if i = 0 then 1 else -1 }) chains in
  let found upward = Option.map (fun b ->
    let cover = Cells.cover space polytope.box rows envelopes affine labels parts upward b initial in
    share root cover; cover) (wanted upward) in
  let low = found false in
  let high = found true in
  let made = Option.map (tree root labels walks) in
  made low, made high
