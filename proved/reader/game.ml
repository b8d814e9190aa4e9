(* TRUSTED. The problem of a file as the proved checker takes it: the sets of distributions of every choice, the rewards,
   the question. Numbers are exact: a double is the rational that it is. *)

open Refusal
open Fields
open Problem

let exact = Q.of_float
let unit = Q.of_float epsilon_float (* 2^-52 *)

(* From a model over a domain: the bounds of every transition and the rewards of choices, which are proved elsewhere. *)
type sets = { bounds : int -> Q.t * Q.t; earns : (int -> Q.t) option }

let span (start : int vector) i = start.get i, start.get (i + 1)

(* The (lower, upper) of a choice's transitions, as written. *)
let written (file : Problem.t) (sets : sets option) a b =
  match file.law, sets with
  | Plain p, _ ->
    let margin = Q.mul (Q.of_int (b - a + 2)) unit in
    List.init (b - a) (fun i ->
      let q = exact (p.get (a + i)) in
      Q.mul q (Q.sub Q.one margin), Q.min Q.one (Q.mul q (Q.add Q.one margin)))
  | Interval (lower, upper), _ ->
    List.init (b - a) (fun i ->
      let low = lower.get (a + i) and high = upper.get (a + i) in
      let raised = match file.assumed_support with
        | Some least when low = 0.0 -> Float.min least high
        | _ -> low in
      exact raised, exact high)
  | Point (expression, values), _ ->
    List.init (b - a) (fun i -> let p = values.(expression.get (a + i)) in p, p)
  | Domain _, Some sets -> List.init (b - a) (fun i -> sets.bounds (a + i))
  | Domain _, None -> assert false

let sum = List.fold_left Q.add Q.zero

(* The set of a choice; where the bounds of an interval miss 1 as a whole by rounding, one distribution. *)
let bounds_of file sets c =
  let a, b = span file.graph.transition_start c in
  let row = written file sets a b in
  match file.law with
  | Interval _ ->
    let least = sum (List.map fst row) and most = sum (List.map snd row) in
    let rounding missed = Q.leq (Q.abs (Q.sub missed Q.one)) (Q.mul (Q.of_int (b - a + 2)) unit) in
    let scaled end_of total = List.map (fun ends -> let p = Q.div (end_of ends) total in p, p) row in
    if Q.gt least Q.one && rounding least then scaled fst least
    else if Q.lt most Q.one && rounding most then scaled snd most
    else row
  | _ -> row

let reward (file : Problem.t) (sets : sets option) c = match sets, file.objective.reward with
  | Some { earns = Some earned; _ }, _ -> earned c
  | _, Some r -> exact (r.get c)
  | _, None -> Q.zero

let choice file sets c =
  let a, _ = span file.graph.transition_start c in
  { Checker.reward = reward file sets c;
    edges = List.mapi (fun i (lo, hi) -> { Checker.next = file.graph.successor.get (a + i); lo; hi }) (bounds_of file sets c) }

let problem (file : Problem.t) sets =
  let o = file.objective in
  let truth_of otherwise = function Some (v : bool vector) -> v.get | None -> fun _ -> otherwise in
  { Checker.states = file.graph.states; initial = file.graph.initial;
    rows = (fun s -> let a, b = span file.graph.choice_start s in List.init (b - a) (fun i -> choice file sets (a + i)));
    kind_of = (match o.kind with
      | "UNTIL" -> Checker.Until | "NEXT" -> Checker.Next | "REACH_REWARD" -> Checker.Reach_reward
      | "CUMULATIVE" -> Checker.Cumulative | "TOTAL" -> Checker.Total | "DISCOUNTED" -> Checker.Discounted
      | "AVERAGE" -> not_covered "long-run averages"
      | kind -> not_covered kind);
    target = truth_of false o.target; allowed = truth_of true o.allowed;
    terminal = (match o.terminal with Some v -> fun s -> exact (v.get s) | None -> fun _ -> Q.zero);
    first = o.lower_steps; last = steps o;
    factor = (match o.discount with Some d -> exact d | None -> Q.one) }

(* What a policy does in a state at a step: until [earlier] says so no longer, another choice than [choice]. *)
let policy (file : Problem.t) (claim : claim) =
  let start = file.graph.choice_start in
  match claim.choice, claim.weight with
  | Some choice, _ ->
    let changes = Hashtbl.create 16 in (* latest step first *)
    Array.iter (fun (step, s, c) ->
      Hashtbl.replace changes s ((step, c) :: Option.value ~default:[] (Hashtbl.find_opt changes s))) claim.earlier;
    Some (fun step s ->
      let c = match Hashtbl.find_opt changes s with
        | None -> choice.get s
        | Some rows -> (* steps rise; the first that is not over *)
          (match List.find_opt (fun (until, _) -> until >= step) rows with Some (_, c) -> c | None -> choice.get s) in
      Checker.Only (c - start.get s))
  | None, Some weight ->
    Some (fun _ s ->
      let a, b = span start s in
      let weights = List.init (b - a) (fun i -> exact (weight.get (a + i))) in
      let total = sum weights in
      Checker.Mix (List.map (fun w -> Q.div w total) weights))
  | None, None -> None

let question (file : Problem.t) (claim : claim) =
  { Checker.agent_max = file.objective.agent = "MAX";
    nature_is = (match file.objective.nature with "MAX" -> Some true | "MIN" -> Some false | _ -> None);
    policy = policy file claim }
