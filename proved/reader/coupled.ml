(* NOT BELIEVED. Trees of cells for the claims of coupled values and differences, as the checker takes them. *)

open Refusal
open Arrays
open Problem

(* Where a play of a policy is: at a state; with bounded steps at a state and a step, numbered step by step. [known]: between what the value
   lies where no form is needed. *)
type places = { initial : int; rule : int -> Checker.rule; row : int -> Checker.lchoice list; onward : int -> int -> int;
                known : int -> (Q.t Lazy.t * Q.t Lazy.t) option }

let at_states (model : Checker.model) (question, (low : Checker.hints), (high : Checker.hints)) =
  let ends s = Checker.ends_of model.shape 0 s <> None in
  { initial = model.shape.initial; row = model.table; onward = (fun _ t -> t);
    rule = (fun s -> match question.Checker.policy with Some f -> f 0 s | None -> Any);
    known = (fun s -> if not (ends s || high.endless s || Q.equal (low.x 0 s) (high.x 0 s)) then None
      else Some (lazy (low.x 0 s), lazy (if high.endless s then unproved "a coupled value where the value may be infinite" else high.x 0 s))) }

let most_places = 200_000
let at_steps (model : Checker.model) last (question, _, _) =
  let n = model.shape.states in
  if n > most_places / (last + 1) then not_covered "coupled values of so many states and steps";
  let known q = Some (Lazy.from_val q, Lazy.from_val q) in
  { initial = model.shape.initial; row = (fun i -> model.table (i mod n)); onward = (fun i t -> (i / n + 1) * n + t);
    rule = (fun i -> Checker.pol_of model.shape question (i / n) (i mod n));
    known = (fun i -> match Checker.ends_of model.shape (i / n) (i mod n) with
      | Some q -> known q | None -> if i / n >= last then known Q.zero else None) }

(* The chain of a policy: weights, expressions, what is earned; open are places whose value is not known. *)
let chain discount { initial; rule; row; onward; known } =
  let float = Q.to_float in
  let taken i =
    let choices = row i in
    let weighed = match rule i with
      | Checker.Any -> not_covered "coupled values of free agents"
      | Only c -> [ 1.0, List.nth choices c ]
      | Mix w -> List.filter (fun (w, _) -> w > 0.0) (List.combine (List.map float w) choices) in
    List.fold_left (fun (total, terms) (w, (c : Checker.lchoice)) ->
      let earned = match c.gains with [] -> 0.0 | [ q, [] ] -> float q | _ -> not_covered "coupled values with rewards that have parameters" in
      total +. w *. earned, List.map (fun (e : Checker.ledge) -> w *. discount, e.expr, onward i e.goes) c.outcomes @ terms) (0.0, []) weighed in
  Expansion.chain initial taken (fun i -> known i = None)
    (fun i -> match known i with Some (low, high) -> float (Lazy.force low), float (Lazy.force high) | None -> assert false)

(* The weights of choices in whole parts, and what each earns, times these parts. *)
let shares (model : Checker.model) { rule; row; _ } i =
  let taken = List.map (fun (q, (c : Checker.lchoice)) ->
    Q.mul q model.shape.factor, match c.gains with [ g, [] ] -> Q.mul q g | _ -> Q.zero) (Checker.taken (rule i) (row i)) in
  let whole = List.fold_left (fun t (a, _) -> Z.lcm t (Q.den a)) Z.one taken in
  let times q = Q.mul (Q.of_bigint whole) q in
  whole, List.map (fun (a, b) -> Q.num (times a), times b) taken

let kept make = (* what is asked for more than once *)
  let known = Hashtbl.create 100 in
  fun (s : int) -> match Hashtbl.find_opt known s with Some v -> v | None -> let v = make s in Hashtbl.add known s v; v

let walk shares { known; _ } (cell : Cells.leaf) (chain : Expansion.chain) upward (model : Expansion.model) =
  let n = Array.length chain.states and unit_of = Q.of_bigint cell.unit_of in
  let d = Array.length model.slope / Array.length model.value in
  let down q = (if upward then Z.cdiv else Z.fdiv) (Q.num q) (Q.den q) in
  let parts = Q.mul unit_of (Q.of_bigint cell.grain) and scale = Z.to_float cell.unit_of in
  let exact size v = Z.of_float (v *. scale /. size) in
  let part size all from = List.init d (fun k -> exact size all.(from + k)) in
  let forms = Array.init n (fun i -> lazy (
    exact 1.0 model.value.(i), List.mapi (fun j s -> s, part 16.0 model.curve ((i * d + j) * d)) (part 4.0 model.slope (i * d)))) in
  { Checker.is_open = Hashtbl.mem chain.number; guess = (fun s -> Lazy.force forms.(Hashtbl.find chain.number s));
    beyond = kept (fun t -> match known t with
      | Some (low, high) -> down (Q.mul unit_of (Lazy.force (if upward then high else low)))
      | None -> Z.zero);
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
  let last = steps file.objective in
  if (last = None && file.objective.lower_steps > 0) || (last <> None && List.length parts > 1) then not_covered "coupled proofs of late steps, or of differences of so many steps";
  let discount = Option.value ~default:1.0 file.objective.discount in
  let places = List.map (match last with Some last -> at_steps model last | None -> at_states model) parts in
  let chains = List.map (chain discount) places in
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
  let walks = List.map (fun place -> walk (kept (shares model place)) place) places in
  let parts = List.mapi (fun i chain -> { Cells.chain; counts = if i = 0 then 1 else -1 }) chains in
  let found upward = Option.map (fun b ->
    List.iter (fun (c : Expansion.chain) -> demand (Hashtbl.mem c.number initial) (claim.name ^ ": the claim is not proved")) chains;
    let cover = Cells.cover space polytope.box rows envelopes affine labels parts upward b initial in
    share root cover; cover) (wanted upward) in
  let low = found false in
  let high = found true in
  let made = Option.map (tree root labels walks) in
  made low, made high
