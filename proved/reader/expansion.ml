(* NOT BELIEVED. In doubles: the value of a policy at a corner of a cell, how it changes with each of some variables from there, how much
   less or more must be said so that what is left of the equations has one sign, and how long plays last. *)

type next = Open of int | Known of float * float
type chain = { states : int array; number : (int, int) Hashtbl.t; (* open states, successors first *)
               earned : float array; terms : (float * int * next) array array }

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
  let next t = match Hashtbl.find_opt number t with Some i -> Open i | None -> let a, b = bounds t in Known (a, b) in
  { states; number; earned = Array.map (fun s -> fst (taken s)) states;
    terms = Array.map (fun s -> Array.of_list (List.map (fun (w, e, t) -> w, e, next t) (snd (taken s)))) states }

exception Fails
type model = { value : float array; slope : float array array; curve : float array array array; slow : float array; rate : float }

module Least = Set.Make (struct type t = int * int let compare = compare end)

(* x = rhs + P·x by elimination: next the state through which the fewest pairs of others are joined. *)
let solve chain chance =
  let n = Array.length chain.states in
  let table _ = Hashtbl.create 8 in
  let row = Array.init n table and column = Array.init n table in
  let add i j v =
    Hashtbl.replace row.(i) j (v +. Option.value ~default:0.0 (Hashtbl.find_opt row.(i) j)); Hashtbl.replace column.(j) i () in
  Array.iteri (fun i terms ->
    add i i 1.0;
    Array.iter (fun (w, e, t) -> match t with Open j -> add i j (-. w *. chance e) | Known _ -> ()) terms) chain.terms;
  let joined i = Hashtbl.length row.(i) * Hashtbl.length column.(i), i in
  let left = ref (Least.of_list (List.init n joined)) in
  let change i act = left := Least.remove (joined i) !left; act (); left := Least.add (joined i) !left in
  let steps = Array.init n (fun _ ->
    let _, k as least = Least.min_elt !left in
    left := Least.remove least !left;
    let pivot = Hashtbl.find row.(k) k in
    if not (pivot > 1e-14) then raise Fails;
    let others t = List.filter (( <> ) k) (List.of_seq (Hashtbl.to_seq_keys t)) in
    let before = others column.(k) and after = others row.(k) in
    List.iter (fun j -> change j (fun () -> Hashtbl.remove column.(j) k)) after;
    let after = List.map (fun j -> j, Hashtbl.find row.(k) j /. pivot) after in
    let before = List.map (fun i -> i, Hashtbl.find row.(i) k) before in
    List.iter (fun (i, v) ->
      change i (fun () -> Hashtbl.remove row.(i) k);
      List.iter (fun (j, u) -> left := Least.remove (joined i) (Least.remove (joined j) !left); add i j (-. v *. u);
        left := Least.add (joined i) (Least.add (joined j) !left)) after) before;
    k, pivot, Array.of_list before, Array.of_list after) in
  fun (rhs : float array) ->
    let x = Array.copy rhs in
    Array.iter (fun (k, pivot, before, _) ->
      x.(k) <- x.(k) /. pivot;
      Array.iter (fun (i, v) -> x.(i) <- x.(i) -. v *. x.(k)) before) steps;
    for i = n - 1 downto 0 do
      let k, _, _, after = steps.(i) in
      Array.iter (fun (j, u) -> x.(k) <- x.(k) -. u *. x.(j)) after
    done;
    if Array.exists (fun v -> not (Float.abs v < 1e200)) x then raise Fails;
    x

(* Σ weight·chance·f over the next states. *)
let onward chain chance f = Array.map (fun terms -> Array.fold_left (fun total (w, e, t) -> total +. w *. chance e *. f t) 0.0 terms) chain.terms
let open_only x = function Open i -> x.(i) | Known _ -> 0.0

(* A chain at a corner: the solution of its equations, [chance] of expressions, values; [along j]: how chances change with variable j,
   which is between 0 and height j. *)
type corner = { chain : chain; upward : bool; chance : int -> float; solve : float array -> float array; values : float array }
let at_value corner = function Open i -> corner.values.(i) | Known (a, b) -> if corner.upward then b else a
let at_corner chain upward chance =
  let solve = solve chain chance in
  let known = function Open _ -> 0.0 | Known (a, b) -> if upward then b else a in
  { chain; upward; chance; solve; values = solve (Array.map2 (+.) chain.earned (onward chain chance known)) }
let slopes corner along d = Array.init d (fun j -> corner.solve (onward corner.chain (along j) (at_value corner)))

(* The least of c·y where every variable is between 0 and its height, and their sum at most the budget. *)
let least_of height budget c =
  let each = ref 0.0 and one = ref 0.0 in
  Array.iteri (fun j v -> each := !each +. height.(j) *. Float.min 0.0 v; one := Float.min !one v) c;
  Float.max !each (budget *. !one)

type draft = { corner : corner; slope : float array array; curve : float array array array }

let draft corner along d =
  let slope = slopes corner along d in
  { corner; slope; curve = Array.init d (fun j -> Array.init d (fun k -> corner.solve (onward corner.chain (along j) (open_only slope.(k))))) }

let model { corner; slope; curve } along (height : float array) budget =
  let { chain; upward; chance; solve; values = value } = corner in
  let d = Array.length height and n = Array.length chain.states and sg = if upward then -1.0 else 1.0 and known = at_value corner in
  (* how long plays last at most, wherever in the cell *)
  let beside slow =
    let more = Array.init d (fun j -> onward chain (along j) (open_only slow)) in
    Array.init n (fun i -> -. least_of height budget (Array.init d (fun j -> -. more.(j).(i)))) in
  let rec last slow left =
    let next = solve (Array.map (fun v -> 1.0 +. 1e-9 +. 1.01 *. v) (beside slow)) in
    if left = 0 || Array.exists (fun v -> not (v < 1e12)) next then raise Fails;
    let settled = ref true in
    Array.iteri (fun i v -> if v > 1.0001 *. slow.(i) then settled := false) next;
    if !settled then next else last next (left - 1) in
  let slow = last (solve (Array.make n (1.0 +. 1e-9))) 400 in
  let rate = ref 0.0 in
  let base = onward chain chance (open_only slow) and more = beside slow in
  Array.iteri (fun i e ->
    rate := Float.max !rate ((base.(i) +. more.(i)) /. e)) slow;
  if not (!rate < 1.0 -. 1e-12) then raise Fails;
  let rate = !rate +. (1.0 -. !rate) /. 64.0 in
  let most_of = Array.fold_left (fun m v -> Float.max m (Float.abs v)) 1e-300 in
  let most = most_of value in
  (* more than what doubles lose in the equation of numbers [x], which has these sums *)
  let lost x sums =
    let floor = 4e-15 *. most_of x +. 1e-16 *. most in
    let sizes = List.map (fun (weight, f) -> onward chain (fun e -> Float.abs (weight e)) (fun t -> Float.abs (f t))) sums in
    Array.init n (fun i -> floor +. 4e-15 *. List.fold_left (fun t (size : float array) -> t +. size.(i)) 0.0 sizes) in
  let noise = Array.map2 (fun a b -> 4e-15 *. Float.abs a +. b) chain.earned (lost value [ chance, known ]) in
  let less = solve noise in
  let value = Array.mapi (fun i v -> v -. sg *. less.(i)) value in
  (* cubic parts, then what first-order parts must give for them *)
  let cubic = Array.init d (fun j -> Array.init d (fun k -> Array.init d (fun l -> onward chain (along j) (open_only curve.(k).(l))))) in
  let beyond = Array.init d (fun j -> Array.init d (fun k ->
    let lost = lost curve.(j).(k) [ chance, open_only curve.(j).(k); along j, open_only slope.(k) ] in
    Array.init n (fun i -> lost.(i) -. least_of height budget (Array.init d (fun l -> sg *. cubic.(j).(k).(l).(i)))))) in
  let first = Array.init d (fun j -> lost slope.(j) [ chance, open_only slope.(j); along j, known ]) in
  let asked spare = Array.init d (fun j ->
    let mixed = Array.init d (fun k -> onward chain (along j) (open_only spare.(k))) in
    Array.init n (fun i -> first.(j).(i) -. least_of height budget (Array.init d (fun k -> -. (mixed.(k).(i) +. beyond.(j).(k).(i)))))) in
  let fits given asked = Array.for_all2 (Array.for_all2 (fun g a -> a <= g)) given asked in
  let rec settle asked_before left =
    let given = Array.map (Array.map (fun v -> 1.02 *. v)) asked_before in
    let spare = Array.map solve given in
    if left = 0 || Array.exists (Array.exists (fun v -> not (v < 1e6 *. most))) spare then raise Fails;
    let now = asked spare in
    if fits given now then spare else settle now (left - 1) in
  let spare = settle (asked (Array.make_matrix d n 0.0)) 60 in
  { value; slope = Array.map2 (Array.map2 (fun v less -> v -. sg *. less)) slope spare; curve; slow; rate }

let least height budget value slope curve =
  value +. least_of height budget (Array.mapi (fun j s -> s +. least_of height budget curve.(j)) slope)
