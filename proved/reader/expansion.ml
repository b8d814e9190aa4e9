(* NOT BELIEVED. In doubles: the value of a policy at a corner of a cell, how it changes with each of some variables from there, how much
   less or more must be said so that what is left of the equations has one sign, and how long plays last. *)

(* Elimination: [pivot] of each step; what is before and after it, as (state, entry); entries that change, before by before. *)
type step = { state : int; pivot : int; before : (int * int) array; after : (int * int) array; changed : int array }
type elimination = { steps : step array; entries : int; diagonal : int array; entry : int array (* of terms to open states *) }

(* Open states come first, successors before others; then those that are known, between [low] and [high]. Terms of open states lie one
   after the other from [start] on: weight, number of the expression, next state. *)
type chain = { states : int array; number : (int, int) Hashtbl.t; labels : int array; earned : float array; low : float array; high : float array;
               start : int array; weight : float array; label : int array; next : int array; elimination : elimination }

exception Fails
type model = { value : float array; slope : float array array; curve : float array array array; slow : float array; rate : float }

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
    { state = k; pivot = diagonal.(k); before; after; changed }) in
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

(* Vectors have numbers for known states behind those of open ones. *)
let solve chain chance =
  let n = Array.length chain.states and { steps; entries; diagonal; entry } = chain.elimination in
  let value = Array.make entries 0.0 in
  Array.iter (fun e -> value.(e) <- 1.0) diagonal;
  Array.iteri (fun t e -> if e >= 0 then value.(e) <- value.(e) -. chain.weight.(t) *. chance.(chain.label.(t))) entry;
  Array.iter (fun { pivot; before; after; changed; _ } ->
    let p = value.(pivot) in
    if not (p > 1e-14) then raise Fails;
    Array.iter (fun (_, e) -> value.(e) <- value.(e) /. p) after;
    let width = Array.length after in
    Array.iteri (fun i (_, e) ->
      let v = value.(e) in
      for j = 0 to width - 1 do
        let c = changed.(i * width + j) in
        value.(c) <- value.(c) -. v *. value.(snd after.(j))
      done) before) steps;
  fun (rhs : float array) ->
    let x = Array.make (n + Array.length chain.low) 0.0 in
    Array.blit rhs 0 x 0 n;
    Array.iter (fun { state; pivot; before; _ } ->
      let v = x.(state) /. value.(pivot) in
      x.(state) <- v;
      if v <> 0.0 then Array.iter (fun (i, e) -> x.(i) <- x.(i) -. value.(e) *. v) before) steps;
    for i = n - 1 downto 0 do
      let { state; after; _ } = steps.(i) in
      let v = ref x.(state) in
      Array.iter (fun (j, e) -> v := !v -. value.(e) *. x.(j)) after;
      x.(state) <- !v
    done;
    if Array.exists (fun v -> not (Float.abs v < 1e200)) x then raise Fails;
    x

(* Σ weight·chance·f over the next states, of open states. *)
let onward chain (chance : float array) (f : float array) =
  let { start; weight; label; next; _ } = chain in
  Array.init (Array.length chain.states) (fun i ->
    let total = ref 0.0 in
    for t = start.(i) to start.(i + 1) - 1 do total := !total +. weight.(t) *. chance.(label.(t)) *. f.(next.(t)) done;
    !total)

(* A chain at a corner: the solution of its equations, [chance] of expressions, values; [along j]: how chances change with variable j,
   which is between 0 and height j. *)
type corner = { chain : chain; upward : bool; chance : float array; solve : float array -> float array; values : float array }
let at_corner chain upward chance =
  let chance = Array.map chance chain.labels in
  let solve = solve chain chance and n = Array.length chain.states in
  let known = if upward then chain.high else chain.low in
  let values = solve (Array.map2 (+.) chain.earned (onward chain chance (Array.append (Array.make n 0.0) known))) in
  Array.blit known 0 values n (Array.length known);
  { chain; upward; chance; solve; values }
let slopes corner along d = Array.init d (fun j -> corner.solve (onward corner.chain (Array.map (along j) corner.chain.labels) corner.values))

(* The least of c·y where every variable is between 0 and its height, and their sum at most the budget. *)
let least_of height budget c =
  let each = ref 0.0 and one = ref 0.0 in
  Array.iteri (fun j v -> each := !each +. height.(j) *. Float.min 0.0 v; one := Float.min !one v) c;
  Float.max !each (budget *. !one)

type draft = { corner : corner; slope : float array array; curve : float array array array; moves : float array array }

let draft corner along d =
  let moves = Array.init d (fun j -> Array.map (along j) corner.chain.labels) and slope = slopes corner along d in
  { corner; slope; curve = Array.init d (fun j -> Array.init d (fun k -> corner.solve (onward corner.chain moves.(j) slope.(k)))); moves }

let model { corner; slope; curve; moves } (height : float array) budget =
  let { chain; upward; chance; solve; values = value } = corner in
  let d = Array.length height and n = Array.length chain.states and sg = if upward then -1.0 else 1.0 in
  let open_only v = Array.init (Array.length v) (fun i -> if i < n then v.(i) else 0.0) in
  (* how long plays last at most, wherever in the cell *)
  let beside slow =
    let more = Array.init d (fun j -> onward chain moves.(j) slow) in
    Array.init n (fun i -> -. least_of height budget (Array.init d (fun j -> -. more.(j).(i)))) in
  let rec last slow left =
    let next = solve (Array.map (fun v -> 1.0 +. 1e-9 +. 1.01 *. v) (beside slow)) in
    if left = 0 || Array.exists (fun v -> not (v < 1e12)) next then raise Fails;
    let settled = ref true in
    Array.iteri (fun i v -> if v > 1.0001 *. slow.(i) then settled := false) next;
    if !settled then next else last next (left - 1) in
  let slow = last (solve (Array.make n (1.0 +. 1e-9))) 400 in
  let rate = ref 0.0 in
  let base = onward chain chance slow and more = beside slow in
  Array.iteri (fun i v -> rate := Float.max !rate ((v +. more.(i)) /. slow.(i))) base;
  if not (!rate < 1.0 -. 1e-12) then raise Fails;
  let rate = !rate +. (1.0 -. !rate) /. 64.0 in
  let most_of = Array.fold_left (fun m v -> Float.max m (Float.abs v)) 1e-300 in
  let most = most_of (open_only value) and size = Array.map Float.abs in
  (* more than what doubles lose in the equation of numbers [x], which has these sums *)
  let lost x sums =
    let floor = 1e-14 *. most_of (open_only x) +. 1e-15 *. most in
    let sizes = List.map (fun (weight, f) -> onward chain (size weight) (size f)) sums in
    Array.init n (fun i -> floor +. 1e-14 *. List.fold_left (fun t (size : float array) -> t +. size.(i)) 0.0 sizes) in
  let noise = Array.map2 (fun a b -> 1e-14 *. Float.abs a +. b) chain.earned (lost value [ chance, value ]) in
  let less = solve noise in
  let first = Array.init d (fun j ->
    solve (Array.map2 (fun a b -> 1.02 *. (a +. Float.abs b)) (lost slope.(j) [ chance, slope.(j); moves.(j), value ]) (onward chain moves.(j) less))) in
  (* what second-order parts must give, for cubic parts and for what they give themselves *)
  let pairs f = Array.init d (fun j -> Array.init d (f j)) in
  let cubic = pairs (fun j k -> Array.init d (fun l -> onward chain moves.(j) curve.(k).(l))) in
  let fixed = pairs (fun j k -> Array.map2 (+.) (onward chain moves.(j) first.(k)) (lost curve.(j).(k) [ chance, curve.(j).(k); moves.(j), slope.(k) ])) in
  let asked spare =
    let floor = 1e-14 *. Array.fold_left (Array.fold_left (fun m v -> Float.max m (most_of (open_only v)))) 0.0 spare in
    pairs (fun j k ->
    let carried = Array.init d (fun l -> onward chain moves.(j) spare.(k).(l)) in
    Array.init n (fun i -> floor +. fixed.(j).(k).(i) -. least_of height budget (Array.init d (fun l -> sg *. cubic.(j).(k).(l).(i) -. carried.(l).(i))))) in
  let every f a b = Array.for_all2 (Array.for_all2 (Array.for_all2 f)) a b in
  let rec settle before left =
    let given = Array.map (Array.map (Array.map (fun v -> v +. 0.02 *. Float.abs v))) before in
    let spare = Array.map (Array.map solve) given in
    if left = 0 || not (every (fun _ v -> v < 1e6 *. most) spare spare) then raise Fails;
    let now = asked spare in
    if every (fun g a -> a <= g) given now then spare else settle now (left - 1) in
  let spare = settle (asked (pairs (fun _ _ -> Array.make (Array.length value) 0.0))) 60 in
  let minus a less = Array.map2 (fun v less -> v -. sg *. less) a less in
  { value = minus value less; slope = Array.map2 minus slope first; curve = Array.map2 (Array.map2 minus) curve spare; slow; rate }

let least height budget value slope curve =
  value +. least_of height budget (Array.mapi (fun j s -> s +. least_of height budget curve.(j)) slope)
