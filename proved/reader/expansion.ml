(* NOT BELIEVED. In doubles: the value of a policy at a corner of a cell, how it changes with each of some variables from there, how much
   less or more must be said so that what is left of the equations has one sign, and how long plays last. *)

(* Elimination: [pivot] of each step; the states before and after it, with their entries; entries that change, before by before. *)
type step = { state : int; pivot : int; before : int array; out_of : int array; after : int array; into : int array; changed : int array }
type elimination = { steps : step array; entries : int; diagonal : int array; entry : int array (* of terms to open states *) }

(* Open states come first, successors before others; then those that are known, between [low] and [high]. Terms of open states lie one
   after the other from [start] on: weight, number of the expression, next state. *)
type chain = { states : int array; number : (int, int) Hashtbl.t; labels : int array; earned : float array; low : float array; high : float array;
               start : int array; weight : float array; label : int array; next : int array; elimination : elimination }

exception Fails
type model = { value : float array; slope : float array; curve : float array; slow : float array; rate : float } (* state by state *)

module Least = Set.Make (struct type t = int * int let compare (a, b) (c, d) = let first = Int.compare a c in if first <> 0 then first else Int.compare b d end)

(* x = rhs + P·x by elimination: next the state through which the fewest pairs of others are joined. *)
let eliminate n start next =
  let table _ = Hashtbl.create 8 in
  let row = Array.init n table and column = Array.init n table and entries = ref 0 in
  let add i j = match Hashtbl.find_opt row.(i) j with
    | Some entry -> entry
    | None -> let entry = !entries in incr entries; Hashtbl.replace row.(i) j entry; Hashtbl.replace column.(j) i entry; entry in
  let diagonal = Array.init n (fun i -> add i i) in
  let entry = Array.make (Array.length next) (-1) in
  for i = 0 to n - 1 do
    for t = start.(i) to start.(i + 1) - 1 do if next.(t) < n then entry.(t) <- add i next.(t) done
  done;
  let joined i = Hashtbl.length row.(i) * Hashtbl.length column.(i), i in
  let left = ref (Least.of_list (List.init n joined)) in
  let steps = Array.init n (fun _ ->
    let _, k as least = Least.min_elt !left in
    left := Least.remove least !left;
    let others t = Array.of_list (List.filter (fun (j, _) -> j <> k) (List.sort compare (List.of_seq (Hashtbl.to_seq t)))) in
    let before = others column.(k) and after = others row.(k) in
    let near = List.sort_uniq Int.compare (Array.to_list (Array.map fst before) @ Array.to_list (Array.map fst after)) in
    List.iter (fun i -> left := Least.remove (joined i) !left) near;
    Array.iter (fun (j, _) -> Hashtbl.remove column.(j) k) after;
    Array.iter (fun (i, _) -> Hashtbl.remove row.(i) k) before;
    let changed = Array.concat (Array.to_list (Array.map (fun (i, _) -> Array.map (fun (j, _) -> add i j) after) before)) in
    List.iter (fun i -> left := Least.add (joined i) !left) near;
    { state = k; pivot = diagonal.(k); before = Array.map fst before; out_of = Array.map snd before;
      after = Array.map fst after; into = Array.map snd after; changed }) in
  { steps; entries = !entries; diagonal; entry }

(* What must be known of a policy: rows, the rule, whether the play goes on, what the vectors say. *)
let chain initial taken goes_on bounds =
  let number = Hashtbl.create 100 and order = ref [] and count = ref 0 and met = Hashtbl.create 100 in
  let stack = Stack.create () in
  let visit s = if goes_on s && not (Hashtbl.mem met s) then (Hashtbl.add met s (); Stack.push (s, ref (snd (taken s))) stack) in
  visit initial;
  while not (Stack.is_empty stack) do
    let s, rest = Stack.top stack in
    match !rest with
    | [] -> ignore (Stack.pop stack); Hashtbl.add number s !count; incr count; order := s :: !order
    | (_, _, t) :: more -> rest := more; visit t
  done;
  let states = Array.of_list (List.rev !order) in
  let n = Array.length states and ends = Hashtbl.create 100 and known = ref [] in
  let place t = match Hashtbl.find_opt number t with
    | Some i -> i
    | None -> match Hashtbl.find_opt ends t with
      | Some i -> i
      | None -> let i = n + Hashtbl.length ends in Hashtbl.add ends t i; known := bounds t :: !known; i in
  let rows = Array.map taken states in
  let terms = Array.of_list (List.concat_map snd (Array.to_list rows)) in
  let labels = Array.of_list (List.sort_uniq Int.compare (List.map (fun (_, e, _) -> e) (Array.to_list terms))) in
  let numbered = Hashtbl.create 100 in
  Array.iteri (fun i e -> Hashtbl.add numbered e i) labels;
  let start = Array.make (n + 1) 0 in
  Array.iteri (fun i (_, terms) -> start.(i + 1) <- start.(i) + List.length terms) rows;
  let next = Array.map (fun (_, _, t) -> place t) terms in
  let known = Array.of_list (List.rev !known) in
  { states; number; labels; earned = Array.map fst rows; low = Array.map fst known; high = Array.map snd known; start;
    weight = Array.map (fun (w, _, _) -> w) terms; label = Array.map (fun (_, e, _) -> Hashtbl.find numbered e) terms; next;
    elimination = eliminate n start next }

(* Vectors have numbers for known states behind those of open ones; several of them stand side by side, state by state. *)
let solve chain chance =
  let n = Array.length chain.states and { steps; entries; diagonal; entry } = chain.elimination in
  let value = Array.make entries 0.0 in
  Array.iter (fun e -> value.(e) <- 1.0) diagonal;
  Array.iteri (fun t e -> if e >= 0 then value.(e) <- value.(e) -. chain.weight.(t) *. chance.(chain.label.(t))) entry;
  Array.iter (fun { pivot; out_of; into; changed; _ } ->
    let p = value.(pivot) in
    if not (p > 1e-14) then raise Fails;
    Array.iter (fun e -> value.(e) <- value.(e) /. p) into;
    let width = Array.length into in
    for i = 0 to Array.length out_of - 1 do
      let v = value.(out_of.(i)) in
      for j = 0 to width - 1 do
        let c = changed.(i * width + j) in
        value.(c) <- value.(c) -. v *. value.(into.(j))
      done
    done) steps;
  fun width (rhs : float array) ->
    let x = Array.make ((n + Array.length chain.low) * width) 0.0 in
    Array.blit rhs 0 x 0 (n * width);
    let less target v source =
      for c = 0 to width - 1 do x.(target * width + c) <- x.(target * width + c) -. v *. x.(source * width + c) done in
    Array.iter (fun { state; pivot; before; out_of; _ } ->
      let p = value.(pivot) in
      for c = state * width to state * width + width - 1 do x.(c) <- x.(c) /. p done;
      for b = 0 to Array.length before - 1 do less before.(b) value.(out_of.(b)) state done) steps;
    for i = n - 1 downto 0 do
      let { state; after; into; _ } = steps.(i) in
      for a = 0 to Array.length after - 1 do less state value.(into.(a)) after.(a) done
    done;
    for i = 0 to Array.length x - 1 do if not (Float.abs x.(i) < 1e200) then raise Fails done;
    x

(* Σ weight·chance·f over the next states, of open states. *)
let onward chain width (chance : float array) (f : float array) =
  let { start; weight; label; next; _ } = chain and n = Array.length chain.states in
  let total = Array.make (n * width) 0.0 in
  for i = 0 to n - 1 do
    for t = start.(i) to start.(i + 1) - 1 do
      let p = weight.(t) *. chance.(label.(t)) and from = next.(t) * width in
      for c = 0 to width - 1 do total.(i * width + c) <- total.(i * width + c) +. p *. f.(from + c) done
    done
  done;
  total

(* How the chances of a chain change with coordinates: of each state the coordinates that matter, and with each of them terms. *)
type changes = { first : int array; coordinate : int array; from : int array; change : float array; target : int array }
let changes chain linear =
  let { start; weight; label; labels; next; _ } = chain and n = Array.length chain.states in
  let linear = Array.map linear labels in
  let first = Array.make (n + 1) 0 and slots = ref [] and from = ref [ 0 ] and count = ref 0 and terms = ref [] in
  for i = 0 to n - 1 do
    let met = ref [] in
    for t = start.(i + 1) - 1 downto start.(i) do
      Array.iteri (fun k (c : float) -> if c <> 0.0 then
        met := (k, (weight.(t) *. c, next.(t)) :: Option.value ~default:[] (List.assoc_opt k !met)) :: List.remove_assoc k !met) linear.(label.(t))
    done;
    List.iter (fun (k, own) ->
      slots := k :: !slots; terms := List.rev_append own !terms; count := !count + List.length own; from := !count :: !from)
      (List.sort (fun (k, _) (l, _) -> Int.compare k l) !met);
    first.(i + 1) <- first.(i) + List.length !met
  done;
  let listed l = Array.of_list (List.rev l) in
  { first; coordinate = listed !slots; from = listed !from; change = listed (List.map fst !terms); target = listed (List.map snd !terms) }

(* Σ change·f over the next states as variables move by 1, variable by variable, given to [use] state by state. *)
let moved changes (axes : float array array) width (f : float array) use =
  let { first; coordinate; from; change; target } = changes and d = Array.length axes in
  let part = Array.make width 0.0 and all = Array.make (d * width) 0.0 in
  for i = 0 to Array.length first - 2 do
    Array.fill all 0 (d * width) 0.0;
    for slot = first.(i) to first.(i + 1) - 1 do
      Array.fill part 0 width 0.0;
      for t = from.(slot) to from.(slot + 1) - 1 do
        let p = change.(t) and at = target.(t) * width in
        for c = 0 to width - 1 do part.(c) <- part.(c) +. p *. f.(at + c) done
      done;
      let k = coordinate.(slot) in
      for j = 0 to d - 1 do
        let a = axes.(j).(k) in
        if a <> 0.0 then for c = 0 to width - 1 do all.(j * width + c) <- all.(j * width + c) +. a *. part.(c) done
      done
    done;
    use i all
  done

let all_moved changes axes width f =
  let each = Array.length axes * width in
  let total = Array.make ((Array.length changes.first - 1) * each) 0.0 in
  moved changes axes width f (fun i all -> Array.blit all 0 total (i * each) each);
  total

(* A chain at a corner: the solution of its equations, [chance] of expressions, values. *)
type corner = { chain : chain; changes : changes; upward : bool; chance : float array; solve : int -> float array -> float array; values : float array }
let at_corner chain changes upward chance =
  let chance = Array.map chance chain.labels in
  let solve = solve chain chance and n = Array.length chain.states in
  let known = if upward then chain.high else chain.low in
  let values = solve 1 (Array.map2 (+.) chain.earned (onward chain 1 chance (Array.append (Array.make n 0.0) known))) in
  Array.blit known 0 values n (Array.length known);
  { chain; changes; upward; chance; solve; values }
(* [axes].(j): how coordinates move with variable j. *)
let slopes corner axes = corner.solve (Array.length axes) (all_moved corner.changes axes 1 corner.values)

(* The least of c·y where every variable is between 0 and its height, and their sum at most the budget. *)
let least_of (height : float array) budget (c : float array) from =
  let each = ref 0.0 and one = ref 0.0 in
  for j = 0 to Array.length height - 1 do
    let v = c.(from + j) in
    if v < 0.0 then (each := !each +. height.(j) *. v; if v < !one then one := v)
  done;
  Float.max !each (budget *. !one)

type draft = { corner : corner; axes : float array array; slope : float array; curve : float array }

let draft corner axes =
  let d = Array.length axes and slope = slopes corner axes in
  { corner; axes; slope; curve = corner.solve (d * d) (all_moved corner.changes axes d slope) }

(* In whole numbers of [step] where variables are 4 times as long. [hopeless]: that a model at least as far from the value is not enough. *)
let model { corner; axes; slope; curve } (height : float array) budget step hopeless =
  let { chain; changes; upward; chance; solve; values = value } = corner in
  let d = Array.length height and n = Array.length chain.states and sg = if upward then -1.0 else 1.0 in
  let size = Array.map Float.abs in
  let moves = moved changes axes and sizes = moved { changes with change = size changes.change } (Array.map size axes) in
  (* how long plays last at most, wherever in the cell *)
  let beside slow =
    let total = Array.make n 0.0 in
    moves 1 slow (fun i all -> total.(i) <- -. least_of height budget (Array.map (fun v -> -. v) all) 0);
    total in
  let rec last slow left =
    let next = solve 1 (Array.map (fun v -> 1.0 +. 1e-9 +. 1.01 *. v) (beside slow)) in
    if left = 0 || Array.exists (fun v -> not (v < 1e12)) next then raise Fails;
    let settled = ref true in
    Array.iteri (fun i v -> if v > 1.0001 *. slow.(i) then settled := false) next;
    if !settled then next else last next (left - 1) in
  let slow = last (solve 1 (Array.make n (1.0 +. 1e-9))) 400 in
  let rate = ref 0.0 in
  let base = onward chain 1 chance slow and more = beside slow in
  Array.iteri (fun i v -> rate := Float.max !rate ((v +. more.(i)) /. slow.(i))) base;
  if not (!rate < 1.0 -. 1e-12) then raise Fails;
  let rate = !rate +. (1.0 -. !rate) /. 64.0 in
  let most_of width v =
    let most = ref 1e-300 in
    for i = 0 to n * width - 1 do most := Float.max !most (Float.abs v.(i)) done;
    !most in
  let most = most_of 1 value in
  (* more than what doubles, and steps, lose in the equation of numbers [x], which has these sums *)
  let lost width x steps more =
    let floor = 1e-14 *. most_of width x +. 1e-15 *. most +. steps *. step in
    let total = Array.map (fun v -> floor +. 1e-14 *. v) (onward chain width (size chance) (size x)) in
    Option.iter (fun (width', f) ->
      sizes width' (size f) (fun i all -> Array.iteri (fun p v -> total.(i * width + p) <- total.(i * width + p) +. 1e-14 *. v) all)) more;
    total in
  let less = solve 1 (Array.map2 (fun a b -> 1e-14 *. Float.abs a +. b) chain.earned (lost 1 value 3.0 None)) in
  let first =
    solve d (Array.map2 (fun a b -> 1.02 *. (a +. Float.abs b)) (lost d slope 8.0 (Some (1, value))) (all_moved changes axes 1 less)) in
  (* what second-order parts must give, for cubic parts and for what they give themselves *)
  let fixed = Array.map2 (+.) (all_moved changes axes d first) (lost (d * d) curve (32.0 +. 16.0 *. float_of_int d) (Some (d, slope))) in
  let minus = Array.map2 (fun v less -> v -. sg *. less) in
  let value = minus value less and slope = minus slope first in
  let beyond spare curve =
    let floor = 1e-14 *. most_of (d * d) spare and total = Array.copy fixed in
    moves (d * d) curve (fun i all ->
      if sg < 0.0 then Array.iteri (fun p v -> all.(p) <- -. v) all;
      for p = 0 to d * d - 1 do total.(i * d * d + p) <- total.(i * d * d + p) +. floor -. least_of height budget all (p * d) done);
    total in
  let sum = Array.fold_left (+.) 0.0 in
  let rec settle before sums left =
    let given = Array.map (fun v -> v +. 0.02 *. Float.abs v) before in
    let spare = solve (d * d) given in
    if left = 0 || Array.exists (fun v -> not (v < 1e6 *. most)) spare then raise Fails;
    let curve = minus curve spare in
    if left mod 8 = 4 && hopeless { value; slope; curve; slow; rate } then raise Fails;
    let now = beyond spare curve in
    if Array.for_all2 (fun g a -> a <= g) given now then curve
    else match sums with (* every third time as far as the last steps lead *)
      | [ one; other ] ->
        let gain = (sum now -. one) /. (one -. other) in
        if gain >= 1.0 && left < 40 then raise Fails;
        let jump = if gain > 0.0 && gain < 0.9 then gain /. (1.0 -. gain) else 0.0 in
        settle (Array.map2 (fun a b -> a +. jump *. Float.max 0.0 (a -. b)) now before) [] (left - 1)
      | sums -> settle now (sum now :: sums) (left - 1) in
  let none = Array.make (Array.length curve) 0.0 in
  let curve = settle (beyond none curve) [] 60 in
  let whole size = Array.map (fun v -> Float.round (v /. (size *. step)) *. (size *. step)) in
  { value = whole 1.0 value; slope = whole 4.0 slope; curve = whole 16.0 curve; slow; rate }

let least height budget value slope curve =
  let curves = Array.map (fun c -> least_of height budget c 0) curve in
  value +. least_of height budget (Array.mapi (fun j s -> s +. curves.(j)) slope) 0
