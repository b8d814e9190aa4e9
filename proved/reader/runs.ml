(* NOT BELIEVED: the checker proves that they settle what is accepted. Memories of an automaton from which a pair accepts whatever
   comes. *)

open Refusal
open Arrays
open Fields

(* Of every pair the largest set of memories that no letter leaves, and where all is marked well. *)
let settling memories letters reads pairs =
  let all n = List.init n Fun.id in
  let letters = all letters and before = Array.make memories [] in
  List.iter (fun q -> List.iter (fun l -> let next = reads q l in before.(next) <- q :: before.(next)) letters) (all memories);
  let homes = Array.of_list (List.map (fun (avoided, repeated) ->
    let inside = Array.init memories (fun q ->
      List.for_all (fun l -> not (avoided q l) && List.for_all (fun mark -> mark q l) repeated) letters) in
    let rec leave = function (* who leads to a memory that is out is out *)
      | [] -> ()
      | q :: rest ->
        leave (List.fold_left (fun rest p -> if inside.(p) then (inside.(p) <- false; p :: rest) else rest) rest before.(q)) in
    leave (List.filter (fun q -> not inside.(q)) (all memories)); inside) pairs) in
  let settled = Array.init memories (fun q -> Array.exists (fun home -> home.(q)) homes) in
  let only (_, repeated) = List.exists (fun mark ->
    List.for_all (fun q -> settled.(q) || List.for_all (fun l -> not (mark q l)) letters) (all memories)) repeated in
  if not (List.for_all only pairs) then not_covered "temporal formulas that no finite run decides";
  Array.get settled, fun k -> Array.get homes.(k)

(* The automaton's arrays fit each other and the states, and are not too large. *)
let check json arrays states =
  let own = node json "problem.automaton." arrays [ "believed" ] in
  ignore (truth own "believed");
  let shaped entries name dimensions =
    let table = given own name (take own name) in
    ignore (entries own name table);
    if List.length table.shape <> dimensions then wrong own name "has another number of dimensions"; table.shape in
  let bools own name table = match table.entries with
    | Truths get -> each table (fun i -> ignore (get i)); get | _ -> wrong own name "is of another type" in
  let memories, letters = match shaped (integer_entries ~least:0) "successor" 2 with [ m; l ] -> m, l | _ -> assert false in
  require (memories > 0 && letters > 0) "the automaton leads nowhere";
  let three name = match shaped bools name 3 with
    | [ n; m; l ] -> require (m = memories && l = letters) "the automaton's marks do not fit"; n | _ -> assert false in
  let pairs = three "avoided" in
  let marks = three "repeated" in
  let atoms = match shaped bools "atom" 2 with
    | [ n; s ] -> require (s = states) "the automaton's atoms do not fit the states"; n | _ -> assert false in
  atoms, memories, letters, pairs, marks, given own "pair" (integers own "pair" ~length:marks ~most:(pairs - 1))

let most_marks = 200_000 and most_nodes = 1 lsl 22
let demand_size states (atoms, memories, _, pairs, marks, _) =
  require (atoms <= 30 && max (memories * (pairs + marks)) (10 * memories) <= most_marks && states <= 1 lsl 28 / memories)
    "the automaton is larger than is checked";
  if states > most_nodes / memories then not_covered "products of more than 4,000,000 states and memories"

(* The product's choices and transitions, as those of the model behind them. *)
type product = { choice_start : int vector; transition_start : int vector; successor : int vector; state : int -> int; choice : int array;
                 transition : int array }

let vector array = { size = Array.length array; get = Array.get array }
let product (g : Says.graph) (a : Checker.automaton) =
  let state k = fst (a.key k) and range (first, last) = Array.init (last - first) (fun i -> first + i) in
  let ends start rows = (* offsets *)
    let total = ref 0 in
    vector (Array.append [| 0 |] (Array.map (fun row -> let first, last = Says.span start (row : int) in total := !total + last - first; !total) rows)) in
  let states = Array.init a.nodes state in
  let joined rows = Array.concat (Array.to_list rows) in
  let choice = joined (Array.map (fun s -> range (Says.span g.choice_start s)) states) in
  let transition = joined (Array.map (fun c -> range (Says.span g.transition_start c)) choice) in
  let choice_start = ends g.choice_start states and transition_start = ends g.transition_start choice in
  let successor = Array.make (Array.length transition) 0 in
  for k = 0 to a.nodes - 1 do
    let first, last = Says.span choice_start k in
    for t = transition_start.get first to transition_start.get last - 1 do
      successor.(t) <- a.number (Checker.behind a k (g.successor.get transition.(t)))
    done
  done;
  { choice_start; transition_start; successor = vector successor; state; choice; transition }

(* What is reached by choices that are [taken], and its choices: numbers in their order, -1 for all others. *)
let reached (p : product) initial taken =
  let nodes = Array.make (p.choice_start.size - 1) (-1) and choices = Array.make (Array.length p.choice) (-1) in
  let rec visit = function
    | [] -> ()
    | k :: rest when nodes.(k) >= 0 -> visit rest
    | k :: rest ->
      nodes.(k) <- 0;
      let first, last = Says.span p.choice_start k and more = ref rest in
      for c = first to last - 1 do
        if taken p.choice.(c) then begin
          choices.(c) <- 0;
          let a, b = Says.span p.transition_start c in
          for t = a to b - 1 do more := p.successor.get t :: !more done
        end
      done;
      visit !more in
  visit [ initial ];
  let numbered which = let next = ref 0 in
    Array.iteri (fun i n -> if n >= 0 then (which.(i) <- !next; incr next)) which; !next in
  let states = numbered nodes in
  nodes, states, choices, numbered choices
