(* NOT BELIEVED, but that what [of_model] gives is a function of what was met before a batch. Bets against parameters: a gradient of the
   value of the policies that are best near the estimate, a direction with the domain's help, and stakes on classes of outcomes. *)

open Arrays

let pilot_share = 0.03 and least_pilot = 5 and renewed_after = 1.5 and open_pilot = 10 and few = 120 and frozen_from = 0.25
let most_stored = 50_000_000
let most_points = 32 and most_targets = 3 and alike = 0.999 and most_moves = 1 lsl 20 and never = 1e150 and most_cyclic = 20_000

(* ---------- When bets are placed ---------- *)

(* The amounts of data that bets are for, with their weights; [planned]: what the plan leaves after the first ones; the batches up to this
   one before which bets were placed, of sizes that are met, and what came before each. *)
type schedule = { scales : (float * Q.t) list; planned : float option; placed : int -> (int -> int) -> (int * float) list }
let renewed last before = before > 0 && match last with Some n -> float_of_int before >= renewed_after *. float_of_int n | None -> true
let rec placements last before from until =
  if from > until then []
  else begin
    let now = before from in
    if renewed last now then (from, float_of_int now) :: placements (Some now) before (from + 1) until
    else placements last before (from + 1) until
  end
let weight_of j = if j = 0 then Q.of_ints 1 2 else Q.of_ints 1 (4 * abs j * (abs j + 1))
let schedule watched : Says.plan -> schedule = function
  | Episodes (until, _, plan, batches) when List.length (Predictor.planned_ends until) = batches ->
    let ends = Array.of_list (Predictor.planned_ends until) and stated = Array.of_list (Predictor.planned_ends plan) in
    let early = Array.fold_left (fun n e -> if float_of_int e <= pilot_share *. float_of_int plan then n + 1 else n) 0 stated in
    let pilot = max early least_pilot and size = Array.length stated in
    let planned = if size = 0 then 1.0 else Float.max (float_of_int (plan - stated.(min pilot size - 1))) 1.0 in
    let all = placements None (fun b -> ends.(b - 1)) pilot (batches - 1) in
    { scales = [ planned, Q.one ]; planned = Some planned; placed = fun batch _ -> List.filter (fun (b, _) -> b <= batch) all }
  | _ ->
    if watched then Refusal.not_covered "slabs of data that were looked at while they came";
    { scales = List.init 12 (fun i -> Float.ldexp 4096.0 (2 * (i - 4)), weight_of (i - 4)); planned = None;
      placed = fun batch size ->
        let before = Array.make (batch + 1) 0 in
        for b = 1 to batch do before.(b) <- before.(b - 1) + size (b - 1) done;
        placements None (Array.get before) open_pilot batch }

(* ---------- The question ---------- *)

let span (start : int vector) i = start.get i, start.get (i + 1) - 1
let range (a, b) = List.init (b - a + 1) (fun i -> a + i)
let moves_of g c = range (span g.Problem.transition_start c)

type question = { graph : Problem.graph; origin : int array; expression : int array; maximises : bool; complement : bool;
                  earned : float array; fixed : bool array; value : float array; ends : bool array; reaching : bool; total : bool; rate : float;
                  bound : (bool array * float array) list option; first : float array }
(* [bound]: of every step from the last one on where the value is then set, and to what, if steps are bounded; [first]: what they begin with. *)

let question (file : Problem.t) (expression : int vector) =
  let g = file.graph and o = file.objective in
  let steps = Problem.steps o in
  if (o.lower_steps > 0 && steps = None) || not (List.mem o.kind [ "UNTIL"; "REACH_REWARD"; "TOTAL"; "CUMULATIVE"; "DISCOUNTED" ]) || o.earned <> None
  then Refusal.not_covered ("slabs of " ^ o.kind ^ " with late steps or averages");
  Option.iter (fun n -> if n * g.states > most_stored then Refusal.not_covered "slabs of so many steps") steps;
  let origin = Array.make g.transitions 0 in
  for s = 0 to g.states - 1 do
    for c = g.choice_start.get s to g.choice_start.get (s + 1) - 1 do
      for t = g.transition_start.get c to g.transition_start.get (c + 1) - 1 do origin.(t) <- s done
    done
  done;
  let marked v otherwise = match v with Some (v : bool vector) -> Array.init g.states v.get | None -> Array.make g.states otherwise in
  let target = marked o.target false and allowed = marked o.allowed true in
  let until = o.kind = "UNTIL" and reaching = o.kind = "REACH_REWARD" in
  let fixed = Array.init g.states (fun s -> if until then target.(s) || not allowed.(s) else reaching && target.(s)) in
  let value = Array.init g.states (fun s ->
    if until then (if target.(s) then 1.0 else 0.0)
    else match o.terminal with Some v when reaching && fixed.(s) -> v.get s | _ -> 0.0) in
  { graph = g; origin; expression = Array.init g.transitions expression.get; maximises = o.agent = "MAX"; complement = o.complement;
    earned = (match o.reward with Some r -> Array.init g.choices r.get | None -> Array.make g.choices 0.0);
    first = (if until then value else Array.make g.states 0.0);
    bound = Option.map (fun n -> List.init n (fun i ->
      if not until then Array.make g.states false, value
      else if i < n - o.lower_steps then fixed, value
      else Array.map not allowed, Array.make g.states 0.0)) steps;
    fixed; value; ends = Array.init g.states (fun s -> fixed.(s) && (not until || value.(s) > 0.0)); reaching; total = o.kind = "TOTAL"; rate = Option.value ~default:1.0 o.discount }

let reached states moves begins (* moves: lists of states after each *) =
  let found = Array.make states false and front = ref [] in
  List.iter (fun s -> if not found.(s) then (found.(s) <- true; front := s :: !front)) begins;
  while !front <> [] do
    let s = List.hd !front in
    front := List.tl !front;
    List.iter (fun v -> if not found.(v) then (found.(v) <- true; front := v :: !front)) moves.(s)
  done;
  found
let states_where f n = List.filter f (List.init n Fun.id)

(* What no policy changes, where these transitions are left and these states earn something. *)
let known q transitions earning = if q.rate < 1.0 then q.fixed, q.value else
  let n = q.graph.states in
  let back = Array.make n [] in
  List.iter (fun t -> if not q.fixed.(q.origin.(t)) then
    (let v = q.graph.successor.get t in back.(v) <- q.origin.(t) :: back.(v))) transitions;
  let found = reached n back (if q.total then earning else states_where (fun s -> q.ends.(s)) n) in
  Array.init n (fun s -> q.fixed.(s) || not found.(s)),
  Array.init n (fun s -> if q.reaching && not (found.(s) || q.fixed.(s)) then never else q.value.(s))

(* 1 - matrix, a row and a column eliminated after the other, those of few entries first; None where it is singular. *)
module Waiting = Set.Make (struct type t = int * int let compare = compare end)
type eliminated = { pivot : float array; sequence : int array; upper : (int * float) list array; lower : (int * float) list array }
let eliminate n entries =
  let upper = Array.init n (fun i -> let row = Hashtbl.create 4 in Hashtbl.replace row i 1.0; row) in
  let below = Array.init n (fun _ -> Hashtbl.create 4) and lower = Array.make n [] in
  let at row j = Option.value ~default:0.0 (Hashtbl.find_opt row j) in
  List.iter (fun (i, j, v) -> Hashtbl.replace upper.(i) j (at upper.(i) j -. v); Hashtbl.replace below.(j) i ()) entries;
  let work i = Hashtbl.length upper.(i) * Hashtbl.length below.(i) in
  let waiting = ref (Waiting.of_list (List.init n (fun i -> work i, i))) and sequence = ref [] and fine = ref true in
  let pivot = Array.make n 1.0 and kept = Array.make n [] in
  while not (Waiting.is_empty !waiting) do
    let (before, k) as first = Waiting.min_elt !waiting in
    waiting := Waiting.remove first !waiting;
    let now = work k in
    if now > 2 * before then waiting := Waiting.add (now, k) !waiting
    else begin
      let row = upper.(k) in
      pivot.(k) <- at row k;
      Hashtbl.remove row k;
      if pivot.(k) = 0.0 then (fine := false; waiting := Waiting.empty);
      sequence := k :: !sequence;
      kept.(k) <- List.sort compare (Hashtbl.fold (fun j v l -> (j, v) :: l) row []);
      List.iter (fun (j, _) -> Hashtbl.remove below.(j) k) kept.(k);
      Hashtbl.remove below.(k) k;
      List.iter (fun i ->
        let other = upper.(i) in
        let factor = at other k /. pivot.(k) in
        Hashtbl.remove other k;
        lower.(k) <- (i, factor) :: lower.(k);
        List.iter (fun (j, v) -> Hashtbl.replace other j (at other j -. factor *. v); Hashtbl.replace below.(j) i ()) kept.(k))
        (List.sort compare (Hashtbl.fold (fun i () l -> i :: l) below.(k) []))
    end
  done;
  if !fine then Some { pivot; sequence = Array.of_list (List.rev !sequence); upper = kept; lower } else None
let dots x = List.fold_left (fun t (j, v) -> t +. v *. x.(j)) 0.0
let solve f right =
  let x = Array.copy right in
  Array.iter (fun k -> List.iter (fun (i, c) -> x.(i) <- x.(i) -. c *. x.(k)) f.lower.(k)) f.sequence;
  for i = Array.length x - 1 downto 0 do let k = f.sequence.(i) in x.(k) <- (x.(k) -. dots x f.upper.(k)) /. f.pivot.(k) done;
  x
let solve_transposed f right =
  let x = Array.copy right in
  Array.iter (fun k -> x.(k) <- x.(k) /. f.pivot.(k); List.iter (fun (j, v) -> x.(j) <- x.(j) -. v *. x.(k)) f.upper.(k)) f.sequence;
  for i = Array.length x - 1 downto 0 do let k = f.sequence.(i) in x.(k) <- x.(k) -. dots x f.lower.(k) done;
  x

(* States in an order in which those that these moves lead to come first; None where there are cycles. *)
let ordered n after wanted =
  let seen = Array.make n 0 and order = ref [] and acyclic = ref true in
  let stack = Stack.create () in
  for s = 0 to n - 1 do
    if wanted.(s) && seen.(s) = 0 then begin
      Stack.push (s, after s) stack; seen.(s) <- 1;
      while not (Stack.is_empty stack) do
        match Stack.pop stack with
        | s, [] -> seen.(s) <- 2; order := s :: !order
        | s, v :: rest ->
          Stack.push (s, rest) stack;
          if wanted.(v) then begin
            if seen.(v) = 1 then (acyclic := false; Stack.clear stack)
            else if seen.(v) = 0 then (seen.(v) <- 1; Stack.push (v, after v) stack)
          end
      done
    end
  done;
  if !acyclic then Some (Array.of_list (List.rev !order)) else None

type prepared = { q : question; held : bool array; held_value : float array; order : int array option }
let prepare q =
  let g = q.graph in
  let earning = states_where (fun s -> List.exists (fun c -> q.earned.(c) > 0.0) (range (span g.choice_start s))) g.states in
  let held, held_value = known q (List.init g.transitions Fun.id) earning in
  let after s = List.concat_map (fun c -> List.map g.successor.get (moves_of g c)) (range (span g.choice_start s)) in
  { q; held; held_value; order = ordered g.states after (Array.map not held) }

(* A policy takes choices of each state, with weights; its transitions there. *)
let always policy = Array.map (fun c -> [ c, 1.0 ]) policy
let ways q policy s = List.concat_map (fun (c, w) -> List.map (fun t -> t, w) (moves_of q.graph c)) policy.(s)
let earns q policy s = List.fold_left (fun total (c, w) -> total +. w *. q.earned.(c)) 0.0 policy.(s)

(* The equations of a policy on these states: their numbers, and what is eliminated. *)
let equations q policy probability fixed wanted =
  let g = q.graph in
  let number = Array.make g.states (-1) and count = ref 0 in
  Array.iteri (fun s w -> if w && not fixed.(s) then (number.(s) <- !count; incr count)) wanted;
  let entries = List.concat (List.init g.states (fun s -> if number.(s) < 0 then [] else
    List.filter_map (fun (t, w) -> let v = number.(g.successor.get t) in if v < 0 then None else Some (number.(s), v, q.rate *. w *. probability.(t)))
      (ways q policy s))) in
  if !count > most_cyclic then Refusal.not_covered "slabs of so many states with cycles";
  number, !count, eliminate !count entries
let solved q policy probability fixed value wanted =
  let g = q.graph in
  let number, count, factor = equations q policy probability fixed wanted in
  Option.map (fun factor ->
    let values = Array.mapi (fun s v -> if fixed.(s) then v else 0.0) value and right = Array.make count 0.0 in
    Array.iteri (fun s i -> if i >= 0 then right.(i) <- earns q policy s +. List.fold_left (fun total (t, w) ->
      total +. q.rate *. w *. probability.(t) *. values.(g.successor.get t)) 0.0 (ways q policy s)) number;
    let found = solve factor right in
    Array.iteri (fun s i -> if i >= 0 then values.(s) <- found.(i)) number;
    number, factor, values) factor
let chain q policy =
  let n = q.graph.states in
  known q (List.concat (List.init n (fun s -> List.map fst (ways q policy s)))) (states_where (fun s -> earns q policy s > 0.0) n)

(* The best choice of a state at these values, and what it brings. *)
let choice q sign probability values s =
  let g = q.graph in
  let a, b = span g.choice_start s in
  let gain = Array.init (b - a + 1) (fun i ->
    let first, last = span g.transition_start (a + i) in
    let total = ref 0.0 in
    for t = first to last do total := !total +. probability.(t) *. values.(g.successor.get t) done;
    sign *. (q.earned.(a + i) +. q.rate *. !total)) in
  let most = Array.fold_left Float.max neg_infinity gain in
  let floor = most -. 1e-9 *. (1.0 +. Float.abs most) and i = ref 0 in
  while gain.(!i) < floor do incr i done;
  most, a + !i

(* A policy that takes shortest ways to where values are decided. *)
let ending p =
  let q = p.q in
  let g = q.graph in
  let policy = Array.init g.states g.choice_start.get and far = Array.make g.states (-1) and back = Array.make g.states [] in
  for s = g.states - 1 downto 0 do
    if not p.held.(s) then List.iter (fun c -> List.iter (fun t ->
      let v = g.successor.get t in back.(v) <- s :: back.(v)) (moves_of g c)) (range (span g.choice_start s))
  done;
  let front = ref (states_where (fun s -> if q.total then p.held.(s) else q.ends.(s)) g.states) and steps = ref 0 in
  List.iter (fun s -> far.(s) <- 0) !front;
  while !front <> [] do
    incr steps;
    front := List.concat_map (fun v -> List.filter (fun s -> far.(s) < 0 && (far.(s) <- !steps; true)) back.(v)) !front
  done;
  for s = 0 to g.states - 1 do
    if not p.held.(s) then match List.find_opt (fun c -> List.exists (fun t -> let d = far.(g.successor.get t) in d >= 0 && d < far.(s))
      (moves_of g c)) (range (span g.choice_start s)) with
      | Some c -> policy.(s) <- c | None -> ()
  done;
  policy

(* A choice for every state, best at these probabilities; policy iteration begins with [start]. *)
let best p start probability =
  let q = p.q and g = p.q.graph in
  let sign = if q.maximises then 1.0 else -1.0 in
  match p.order with
  | Some order ->
    let values = Array.mapi (fun s v -> if p.held.(s) then v else 0.0) p.held_value in
    let policy = Array.init g.states g.choice_start.get in
    Array.iter (fun s -> let most, c = choice q sign probability values s in values.(s) <- sign *. most; policy.(s) <- c) order;
    Some policy
  | None ->
    let policy = match start with Some policy -> Array.copy policy | None -> ending p in
    let rec improve rounds =
      let own = always policy in
      let fixed, value = chain q own in
      match solved q own probability fixed value (Array.make g.states true) with
      | None -> None
      | Some (_, _, values) ->
        let better = List.filter_map (fun s -> if p.held.(s) then None else
          let most, c = choice q sign probability values s in
          if most > sign *. values.(s) +. 1e-9 *. (1.0 +. Float.abs most) then Some (s, c) else None) (List.init g.states Fun.id) in
        List.iter (fun (s, c) -> policy.(s) <- c) better;
        if better = [] || rounds <= 1 then Some policy else improve (rounds - 1) in
    improve 200

(* Which of its choices a policy may come to take. *)
let met_choices p policy =
  let g = p.q.graph in
  let after = Array.init g.states (fun s -> if p.held.(s) then [] else List.map g.successor.get (moves_of g policy.(s))) in
  let found = reached g.states after [ g.initial ] in
  List.map (fun s -> policy.(s)) (states_where (fun s -> found.(s)) g.states)

(* The slopes of its value along expressions. *)
let slopes p policy probability expressions =
  let q = p.q and g = p.q.graph in
  let fixed, value = chain q policy in
  let after s = List.map (fun (t, _) -> g.successor.get t) (ways q policy s) in
  let met = reached g.states (Array.init g.states (fun s -> if fixed.(s) then [] else after s)) [ g.initial ] in
  if List.exists (fun s -> met.(s) && value.(s) >= never) (List.init g.states Fun.id) then None
  else match solved q policy probability fixed value met with
    | None -> None
    | Some (number, factor, values) ->
      let begins = Array.make (Array.length factor.pivot) 0.0 in
      if number.(g.initial) >= 0 then begins.(number.(g.initial)) <- 1.0;
      let visits = solve_transposed factor begins and slope = Array.make expressions 0.0 in
      Array.iteri (fun s i -> if i >= 0 then List.iter (fun (t, w) ->
        let e = q.expression.(t) in slope.(e) <- slope.(e) +. visits.(i) *. values.(g.successor.get t) *. w *. q.rate) (ways q policy s)) number;
      if Array.for_all Float.is_finite slope then Some (if q.complement then Array.map Float.neg slope else slope) else None

(* The same where steps are bounded: a choice for every state and step, the last one first, and the slopes of such a policy. *)
let best_steps q bound probability =
  let sign = if q.maximises then 1.0 else -1.0 and values = ref q.first in
  List.map (fun (held, value) ->
    let made = Array.init q.graph.states (choice q sign probability !values) in
    values := Array.mapi (fun s (most, _) -> if held.(s) then value.(s) else sign *. most) made;
    Array.map snd made) bound

let step_slopes q bound policies probability expressions =
  let g = q.graph in
  let before, _ = List.fold_left2 (fun (all, values) (held, value) policy ->
    (held, policy, values) :: all, Array.init g.states (fun s -> if held.(s) then value.(s) else
      List.fold_left (fun total (t, w) -> total +. q.rate *. w *. probability.(t) *. values.(g.successor.get t)) (earns q policy s) (ways q policy s)))
    ([], q.first) bound policies in
  let slope = Array.make expressions 0.0 and visits = ref (Array.init g.states (fun s -> if s = g.initial then 1.0 else 0.0)) in
  List.iter (fun (held, policy, values) ->
    let later = Array.make g.states 0.0 in
    Array.iteri (fun s often -> if often > 0.0 && not held.(s) then List.iter (fun (t, w) ->
      let e = q.expression.(t) and v = g.successor.get t in
      slope.(e) <- slope.(e) +. often *. q.rate *. w *. values.(v);
      later.(v) <- later.(v) +. often *. q.rate *. w *. probability.(t)) (ways q policy s)) !visits;
    visits := later) before;
  if Array.for_all Float.is_finite slope then Some (if q.complement then Array.map Float.neg slope else slope) else None

(* A policy to bet on, by the bound on the steps or without one. *)
let best_of p held probability = match p.q.bound with
  | Some bound -> Some (best_steps p.q bound probability)
  | None -> Option.map (fun policy -> [ policy ]) (best p (match held with [ policy ] :: _ -> Some policy | _ -> None) probability)
let slopes_of p policies probability expressions = match p.q.bound, policies with
  | Some bound, _ -> step_slopes p.q bound policies probability expressions
  | None, policy :: _ -> slopes p policy probability expressions
  | None, [] -> None
let name_of p = function [ policy ] when p.q.bound = None -> met_choices p policy | policies -> List.concat_map Array.to_list policies

(* ---------- Numbers ---------- *)

let shorten bits x =
  if x = 0.0 || not (Float.is_finite x) then x
  else begin
    let mantissa, exponent = Float.frexp x in
    let y = Float.ldexp mantissa bits in
    let floor = Float.floor y in
    let rest = y -. floor in
    let whole = if rest > 0.5 || (rest = 0.5 && Float.rem floor 2.0 <> 0.0) then floor +. 1.0 else floor in
    Float.ldexp whole (exponent - bits)
  end
let dot a b = let t = ref 0.0 in Array.iteri (fun i x -> t := !t +. x *. b.(i)) a; !t
let times m v = Array.map (fun row -> dot row v) m
let inverse m =
  let n = Array.length m in
  let unit = Array.init n (fun i -> 1.0 /. Float.sqrt (Float.max m.(i).(i) 1e-300)) in
  let scaled = Array.mapi (fun i row -> Array.mapi (fun j x -> x *. unit.(i) *. unit.(j)) row) m in
  let columns = Array.init n (fun k -> Predictor.solve scaled (Array.init n (fun i -> if i = k then 1.0 else 0.0))) in
  Array.init n (fun i -> Array.init n (fun j -> 0.5 *. (columns.(j).(i) +. columns.(i).(j)) *. unit.(i) *. unit.(j)))
let cholesky m =
  let n = Array.length m in
  let l = Array.make_matrix n n 0.0 in
  for i = 0 to n - 1 do
    for j = 0 to i do
      let t = ref m.(i).(j) in
      for k = 0 to j - 1 do t := !t -. l.(i).(k) *. l.(j).(k) done;
      l.(i).(j) <- (if i = j then Float.sqrt !t else !t /. l.(j).(j))
    done
  done;
  l

(* n = wanted + faces'·ν, ν ≥ 0, that minimises √(2·level·n'·inverse·n) + ν·room. *)
let with_help wanted inverse faces room level =
  let scale = Float.sqrt (2.0 *. level) in
  let bent = Array.map (times inverse) faces in
  let square = Array.mapi (fun k face -> dot face bent.(k)) faces in
  let useful = states_where (fun k -> square.(k) > 0.0 && room.(k) < scale *. Float.sqrt square.(k)) (Array.length faces) in
  let share = Array.make (Array.length faces) 0.0 and normal = ref (Array.copy wanted) and rounds = ref 400 in
  while !rounds > 0 do
    decr rounds;
    let before = Array.copy share in
    List.iter (fun k ->
      let own = share.(k) in
      let rest = Array.mapi (fun i x -> x -. own *. faces.(k).(i)) !normal in
      let middle = dot rest bent.(k) /. square.(k) in
      let spread = Float.max (dot rest (times inverse rest) /. square.(k) -. middle *. middle) 0.0 in
      let slope = room.(k) /. (scale *. Float.sqrt square.(k)) in
      let best = Float.max 0.0 (-. middle -. Float.sqrt spread *. slope /. Float.sqrt (1.0 -. slope *. slope)) in
      if best <> own then (share.(k) <- best; normal := Array.mapi (fun i x -> x +. best *. faces.(k).(i)) rest)) useful;
    let near = ref true in
    Array.iteri (fun k x -> if Float.abs (x -. before.(k)) > 1e-13 *. (1.0 +. Float.abs x) then near := false) share;
    if !near then rounds := 0
  done;
  !normal

let signs n =
  let index = Array.make (max n 1) 1 in
  for j = 1 to n - 1 do index.(j) <- (2 * index.(j - 1)) lxor (if index.(j - 1) >= 16 then 37 else 0) done;
  let rec bits x = if x = 0 then 0 else (x land 1) + bits (x lsr 1) in
  Array.init most_points (fun i -> Array.init n (fun j -> 1.0 -. 2.0 *. float_of_int (bits (i land index.(j)) mod 2)))

(* ---------- Bets ---------- *)

(* What the method says of its bets, and whether they are on both ends of the value: where a claim is of a policy that is given. *)
let with_bets (file : Problem.t) = match file.law with
  | Domain (_, _, _, Some data) -> List.find (String.starts_with ~prefix:"value slab") data.methods
  | _ -> assert false
let of_the_best file = with_bets file = "value slab of the best" and of_few file = with_bets file = "value slab of few data"
let on_both (file : Problem.t) = List.exists (fun (claim : Problem.claim) -> claim.name = "given policy") file.claims

(* Whether data were looked at while they came, of which a plan says how much there shall be. *)
let was_watched (file : Problem.t) = match file.law with Domain (_, _, _, Some data) -> data.watched | _ -> false

(* The weights of the choices of the policy that is bet on, if it is the one that is given. *)
let given (file : Problem.t) =
  let start = file.graph.choice_start in
  if of_the_best file then None else Option.map (fun (claim : Problem.claim) -> Array.init file.graph.states (fun s ->
    List.filter (fun (_, w) -> w > 0.0) (List.map (fun c -> c, match claim.choice, claim.weight with
      | Some picked, _ -> if picked.get s = c then 1.0 else 0.0
      | None, Some weight -> weight.get c
      | None, None -> 0.0) (range (span start s)))))
    (List.find_opt (fun (claim : Problem.claim) -> claim.name = "given policy") file.claims)

(* Groups of classes: (class, expression, how often it is among a choice's outcomes), expressions rising. *)
let bettors = 6
let rule (file : Problem.t) given both (space : Region.space) polynomials (expression : int vector) groups classes plan level =
  let q = prepare (question file expression) in
  let schedule = schedule (was_watched file) plan in
  let expressions = Array.length polynomials in
  let free = List.length space.free and size = Region.size space in
  let used = List.sort_uniq compare (Array.to_list q.q.expression) in
  let zero = Array.make size 0.0, 0.0 in
  let forms = Array.make expressions zero in
  List.iter (fun e -> let linear, constant, _ = Region.affine space polynomials.(e) in
    forms.(e) <- (Array.map Q.to_float linear, Q.to_float constant)) used;
  let unknown = Array.map (fun (linear, _) -> Array.exists (fun x -> x <> 0.0) linear) forms in
  let faces, bounds = Predictor.faces space in
  let s = { Predictor.products = space.products; linear = Array.map fst forms; constant = Array.map snd forms; faces; bounds } in
  let ends = Region.start_box space in
  let middle = Array.init free (fun k -> Q.to_float (Q.add ends.low.(k) ends.high.(k)) /. 2.0) in
  let centre = lazy (Predictor.maximise s (Predictor.interior s middle) (Array.make expressions 0.0)) in
  let few_data = match schedule.planned with Some n -> n < float_of_int (few * free) | None -> false in
  let alone = few_data || given <> None || schedule.planned = None in
  let smoothed = if few_data then 1.0 else Float.ldexp 1.0 (-6) in
  let room t = Array.mapi (fun i face -> bounds.(i) -. dot face t) faces in
  let estimate begins weight =
    let t = Predictor.maximise s (Predictor.maximise s begins weight) weight in
    let short = Array.map (shorten 28) t in
    let before = room t and left = room short in
    if Array.for_all Fun.id (Array.mapi (fun i l -> l > 0.5 *. before.(i)) left) then short else t in
  let jacobian t = let x = Predictor.lifted s t in x, Predictor.slopes s t x in
  let along jac linear = Array.init free (fun j ->
    let total = ref 0.0 in Array.iteri (fun i c -> if c <> 0.0 then total := !total +. c *. jac.(i).(j)) linear; !total) in
  let chance x e = let linear, constant = forms.(e) in dot linear x +. constant in
  let information t weight growth part =
    let x, jac = jacobian t in
    let m = Array.make_matrix free free 0.0 in
    let add c v = Array.iteri (fun i a -> Array.iteri (fun j b -> m.(i).(j) <- m.(i).(j) +. c *. a *. b) v) v in
    List.iter (fun e -> if weight.(e) > 0.0 then begin
      let p = Float.max (chance x e) 1e-300 in add (growth *. weight.(e) /. (p *. p)) (along jac (fst forms.(e))) end) used;
    let room = room t in
    Array.iteri (fun i face -> let r = Float.max room.(i) 1e-150 in add (part *. 0.5 /. (r *. r)) face) faces;
    m in
  let probability x = Array.map (fun e -> Float.min 1.0 (Float.max 0.0 (chance x e))) q.q.expression in
  let gradient slope = (* of the lifted coordinates *)
    let total = Array.make size 0.0 in
    List.iter (fun e -> if slope.(e) <> 0.0 then Array.iteri (fun k c -> if c <> 0.0 then total.(k) <- total.(k) +. slope.(e) *. c) (fst forms.(e))) used;
    total in
  (* the policies to bet on, as many as before *)
  let likely held first here t weight =
    let info = information t weight 1.0 1.0 in
    let unit = Array.init free (fun i -> 1.0 /. Float.sqrt info.(i).(i)) in
    let root = cholesky (inverse (Array.mapi (fun i row -> Array.mapi (fun j x -> x *. unit.(i) *. unit.(j)) row) info)) in
    let root = Array.mapi (fun i row -> Array.map (fun x -> x *. unit.(i)) row) root in
    let left = room t in
    let points = Array.map (fun sign ->
      let move = times root sign in
      let reach = ref 0.0 in
      Array.iteri (fun i face -> reach := Float.max !reach (dot face move /. Float.max left.(i) 1e-300)) faces;
      let length = Float.min 1.0 (0.9 /. Float.max !reach 1e-300) in
      Array.mapi (fun i x -> shorten 28 (t.(i) +. length *. x)) move) (signs free) in
    let count = min most_points (most_moves / ((1 + List.length (Option.value ~default:[] q.q.bound)) * max q.q.graph.transitions 1)) in
    let jac = snd (jacobian t) in
    let names = Hashtbl.create 16 and groups = ref [||] and counts = ref [||] in
    let group_of policy opens =
      let name = name_of q policy in
      let direction = match Hashtbl.find_opt names name with
        | Some d -> d
        | None ->
          let d = Option.map (fun slope ->
            let v = along jac (gradient slope) in
            let seen = Array.init free (fun j -> let total = ref 0.0 in Array.iteri (fun i x -> total := !total +. x *. root.(i).(j)) v; !total) in
            let length = Float.max (Float.sqrt (dot seen seen)) 1e-300 in
            Array.map (fun x -> x /. length) seen) (slopes_of q (List.map always policy) here expressions) in
          Hashtbl.add names name d; d in
      match direction with
      | None -> None
      | Some seen ->
        let found = ref None in
        Array.iteri (fun i (_, other) -> if !found = None && dot seen other > alike then found := Some i) !groups;
        if !found = None && opens then begin
          groups := Array.append !groups [| policy, seen |]; counts := Array.append !counts [| 0 |];
          found := Some (Array.length !groups - 1)
        end;
        !found in
    let others = List.filter_map (fun i -> best_of q [ first ] (probability (Predictor.lifted s points.(i)))) (List.init count Fun.id) in
    List.iter (fun policy -> match group_of policy true with Some k -> !counts.(k) <- !counts.(k) + 1 | None -> ()) (first :: others);
    let own = group_of first false in
    let order = List.sort (fun a b -> compare (own <> Some a, - !counts.(a), a) (own <> Some b, - !counts.(b), b)) (List.init (Array.length !groups) Fun.id) in
    let take n l = List.filteri (fun i _ -> i < n) l and policy k = fst !groups.(k) in
    if order = [] then (if held = [] then [ first ] else held)
    else if held = [] then List.map policy (take most_targets order)
    else begin
      let order = take (List.length held) order and own = Array.of_list (List.map (fun p -> group_of p false) held) in
      let free = ref (List.filter (fun k -> not (Array.mem (Some k) own)) order) in
      Array.iteri (fun place group ->
        let before = Array.to_list (Array.sub own 0 place) in
        match group with
        | Some k when List.mem k order && not (List.mem group before) -> ()
        | _ -> (match !free with
          | k :: rest -> own.(place) <- Some k; free := rest
          | [] -> own.(place) <- Some (List.hd order))) own;
      List.map (fun group -> policy (Option.value ~default:0 group)) (Array.to_list own)
    end in
  (* Stakes on classes for the direction h. *)
  let stakes t h =
    let x, jac = jacobian t in
    let found = Array.make classes Z.zero in
    Array.iter (fun members ->
      let slope = Array.map (fun (_, e, _) -> dot (along jac (fst forms.(e))) h) members in
      let excess = ref 0.0 and many = Array.fold_left (fun n (_, _, m) -> n + m) 0 members in
      Array.iteri (fun i (_, e, _) -> if slope.(i) < 0.0 then begin
        let part = -4.0 *. slope.(i) /. Float.max (chance x e) 0.0 in
        excess := Float.max !excess (if Float.is_nan part then infinity else part) end) members;
      if !excess *. Float.ldexp 1.0 (-30) <= 1.0 && many <= 4096 then begin
        let most = Float.max !excess 1.0 in
        let mantissa, exponent = Float.frexp most in
        let factor = Float.ldexp 1.0 (- (if mantissa = 0.5 then exponent - 1 else exponent)) in
        let units = Array.map (fun v -> Z.of_float (Float.floor (Float.ldexp (factor *. v) 50))) slope in
        let over = ref Z.zero in
        Array.iteri (fun i (_, _, m) -> over := Z.add !over (Z.mul (Z.of_int m) units.(i))) members;
        if Z.sign !over > 0 then (let _, _, m = members.(0) in units.(0) <- Z.sub units.(0) (Z.cdiv !over (Z.of_int m)));
        Array.iteri (fun i (k, _, _) -> found.(k) <- units.(i)) members
      end) groups;
    found in
  let place t wanted info =
    let inverse = inverse info and room = Array.map (fun r -> Float.max r 1e-300) (room t) in
    let normal = with_help wanted inverse faces room level in
    let step = times inverse normal in
    let length = dot normal step and alone = dot wanted (times inverse wanted) in
    if not (1e-6 *. alone < length && length < infinity) then Array.make classes Z.zero
    else stakes t (Array.map (fun v -> shorten 12 (v *. Float.sqrt (2.0 *. level /. length))) step) in
  let sides = if both then [ false; true ] else [ q.q.maximises = q.q.complement ] in
  (* One placement after the other: the estimate, the policies, whether they stay, and the stakes of each. *)
  let after (t, held, frozen, _) first (weight, so_far) =
    let t = estimate t weight in
    let share = match schedule.planned with Some n -> so_far /. (n +. first) | None -> 0.0 in
    let x, jac = jacobian t in
    let probability = probability x and ended = share >= 1.0 in
    let several = not (alone || frozen) in
    let held, frozen, current =
      if given <> None then [], true, []
      else if held = [] || not (frozen || (ended && List.length held > 1)) then begin
        match best_of q held probability with
        | None -> held, frozen, []
        | Some first ->
          let now = if several && not ended then likely held first probability t weight else [ first ] in
          if ended then held, frozen, now else now, share >= frozen_from, now
      end else held, frozen, held in
    let steps = match q.q.bound with Some bound -> List.length bound | None -> 1 in
    let current = match given with Some policy -> [ List.init steps (fun _ -> policy) ] | None -> List.map (List.map always) current in
    let every = List.map (fun policy -> slopes_of q policy probability expressions) current in
    let known = List.map (fun (amount, _) -> information t weight (amount /. so_far) smoothed) schedule.scales in
    let made = if List.mem None every then [] else List.concat_map (fun slope ->
      let direction = along jac (gradient (Option.get slope)) in
      List.map (fun info ->
        List.map (fun upward -> place t (if upward then Array.map Float.neg direction else direction) info) sides) known) every in
    t, held, frozen, made in
  let memo = Hashtbl.create 50 in
  let rec placed weights = match weights with (* the last one first *)
    | [] -> Lazy.force centre, [], false, []
    | weight :: before ->
      match Hashtbl.find_opt memo weights with
      | Some found -> found
      | None -> let found = after (placed before) (snd (List.nth weights (List.length before))) weight in Hashtbl.add memo weights found; found in
  let nothing = Array.make classes Z.zero in
  if of_few file then Refusal.demand (both && few_data) "bets of few data on one end, or on data that were not planned to be few";
  let weights = if alone then List.map snd schedule.scales else List.init bettors (fun _ -> Q.of_ints 1 bettors) in
  weights, fun of_class side j batch (met : int -> int -> int) ->
    let size b = List.fold_left (fun n k -> n + met b k) 0 (List.init classes Fun.id) in
    let weights = List.fold_left (fun weights (until, so_far) ->
      let weight = Array.make expressions 0.0 in
      for b = 0 to until - 1 do
        for k = 0 to classes - 1 do
          let e = of_class k in
          if unknown.(e) then weight.(e) <- weight.(e) +. float_of_int (met b k)
        done
      done;
      (weight, so_far) :: weights) [] (schedule.placed batch size) in
    let _, held, _, made = placed weights in
    let strategies = max 1 (List.length held) in
    let stakes = if made = [] then nothing else List.nth (List.nth made (if alone then j else j * strategies / bettors)) side in
    fun k -> stakes.(k)

(* What the base region has of the confidence of both: beside intervals and bets on the best policy a quarter, beside bets on both ends
   of a given policy's value a tenth, three with few data, else by dimension, at least 0.6. *)
let base_share file joint free delta =
  if on_both file && not (of_the_best file) then Q.of_ints (if of_few file then 3 else 1) 10
  else if joint then Q.of_ints 1 4
  else begin
    let percent = 100.0 *. exp ((1.0 -. 1.025 *. 1.025) *. (1.8 *. float_of_int free -. log (Q.to_float delta))) in
    Q.of_ints (max 60 (int_of_float (Float.round percent))) 100
  end

(* Who bets: classes are expressions of a group of choices that have the same outcomes, kinds their orders. *)
let of_model (file : Problem.t) (expression : int vector) polynomials plan delta =
  let given = given file and both = on_both file in
  let parties = if both then 2 else 1 in
  let alpha = Q.div delta (Q.of_int parties) in
  let polynomials = Array.map (fun p -> Poly.of_terms (List.map (fun (c, m) -> m, c) p)) polynomials in
  let used = List.sort_uniq compare (List.init expression.size expression.get) and g = file.graph in
  let space = Region.space (Region.with_fixed (Problem.domain file)) (List.map (fun e -> polynomials.(e)) used) in
  let groups = Hashtbl.create 100 and found = ref [] and classes = ref 0 and of_class = ref [] in
  let kinds = Hashtbl.create 100 and members = ref [] and kind_of = Array.make g.choices 0 in
  for c = 0 to g.choices - 1 do
    let own = List.map expression.get (moves_of g c) in
    let kind = match Hashtbl.find_opt kinds own with
      | Some kind -> kind
      | None ->
        let a, b = span g.transition_start c in
        let outcomes = Events.outcomes expression a (b + 1) in
        let group = match Hashtbl.find_opt groups outcomes with
          | Some group -> group
          | None ->
            let group = List.map (fun (e, m) -> incr classes; of_class := e :: !of_class; !classes - 1, e, m) outcomes in
            Hashtbl.add groups outcomes group; found := Array.of_list group :: !found; group in
        let kind = Hashtbl.length kinds in
        Hashtbl.add kinds own kind;
        members := List.map (fun e -> let k, _, _ = List.find (fun (_, f, _) -> e = f) group in k) own :: !members;
        kind in
    kind_of.(c) <- kind
  done;
  let of_class = Array.of_list (List.rev !of_class) and members = Array.of_list (List.rev !members) in
  let weights, stake = rule file given both space polynomials expression (Array.of_list (List.rev !found)) !classes plan (-. log (Q.to_float alpha)) in
  { Checker.kinds = Array.length members; kind_of_choice = (fun (s, i) -> kind_of.(g.choice_start.get s + i)); members = Array.get members;
    classes = !classes; of_class = Array.get of_class; parties; alpha;
    weights; stake = stake (Array.get of_class) }
