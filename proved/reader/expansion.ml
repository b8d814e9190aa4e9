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

type model = { value : float array; slope : float array array; curve : float array array array; slow : float array; rate : float }

exception Fails

(* x = rhs + P·x *)
let solve chain chance =
  let n = Array.length chain.states in
  let own = Array.make n 0.0 and others = Array.map (fun terms ->
    Array.of_list (List.filter_map (fun (w, e, t) -> match t with Open i -> Some (w *. chance e, i) | Known _ -> None) (Array.to_list terms))) chain.terms in
  Array.iteri (fun i l -> Array.iter (fun (p, j) -> if i = j then own.(i) <- own.(i) +. p) l) others;
  fun (rhs : float array) ->
    let x = Array.make n 0.0 and left = ref 20000 and again = ref true in
    while !again do
      let change = ref 0.0 and size = ref 0.0 in
      for i = 0 to n - 1 do
        let t = ref rhs.(i) in
        Array.iter (fun (p, j) -> if j <> i then t := !t +. p *. x.(j)) others.(i);
        let v = !t /. (1.0 -. own.(i)) in
        change := Float.max !change (Float.abs (v -. x.(i))); size := Float.max !size (Float.abs v); x.(i) <- v
      done;
      decr left;
      again := !change > 1e-17 *. !size && !left > 0;
      if not (!size < 1e200) then raise Fails
    done;
    x

(* Σ weight·chance·f over the next states. *)
let onward chain chance f = Array.map (fun terms -> Array.fold_left (fun total (w, e, t) -> total +. w *. chance e *. f t) 0.0 terms) chain.terms
let open_only x = function Open i -> x.(i) | Known _ -> 0.0

(* [chance]: of expressions at the corner; [along j]: how they change with variable j, which is between 0 and height j. *)
let values chain upward chance =
  let known = function Open _ -> 0.0 | Known (a, b) -> if upward then b else a in
  solve chain chance (Array.map2 (+.) chain.earned (onward chain chance known))
let slopes chain upward chance along d value =
  let at = function Open i -> value.(i) | Known (a, b) -> if upward then b else a in
  let solve = solve chain chance in
  Array.init d (fun j -> solve (onward chain (along j) at))

(* The least of c·y where every variable is between 0 and its height, and their sum at most the budget. *)
let least_of height budget c =
  let each = ref 0.0 and one = ref 0.0 in
  Array.iteri (fun j v -> each := !each +. height.(j) *. Float.min 0.0 v; one := Float.min !one v) c;
  Float.max !each (budget *. !one)

let expand chain upward chance along (height : float array) budget =
  let d = Array.length height and n = Array.length chain.states in
  let solve = solve chain chance and sg = if upward then -1.0 else 1.0 in
  let value = values chain upward chance in
  let slope = slopes chain upward chance along d value in
  let curve = Array.init d (fun j -> Array.init d (fun k -> solve (onward chain (along j) (open_only slope.(k))))) in
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
  let size = function Open i -> Float.abs value.(i) | Known (a, b) -> Float.max (Float.abs a) (Float.abs b) in
  let most = Array.fold_left (fun m v -> Float.max m (Float.abs v)) 1e-300 value in
  let noise = Array.map2 (fun a b -> 2e-15 *. (Float.abs a +. b) +. 1e-16 *. most) chain.earned (onward chain (fun e -> Float.abs (chance e)) size) in
  let less = solve noise in
  let value = Array.mapi (fun i v -> v -. sg *. less.(i)) value in
  (* cubic parts, then what first-order parts must give for them *)
  let cubic = Array.init d (fun j -> Array.init d (fun k -> Array.init d (fun l -> onward chain (along j) (open_only curve.(k).(l))))) in
  let beyond = Array.init d (fun j -> Array.init d (fun k -> Array.init n (fun i ->
    1e-13 *. most -. least_of height budget (Array.init d (fun l -> sg *. cubic.(j).(k).(l).(i)))))) in
  let spare = ref (Array.make_matrix d n 0.0) and rounds = ref 0 and settled = ref false in
  while not !settled do
    incr rounds;
    let next = Array.init d (fun j ->
      let mixed = Array.init d (fun k -> onward chain (along j) (open_only !spare.(k))) in
      solve (Array.init n (fun i ->
        1.01 *. (1e-14 *. most -. least_of height budget (Array.init d (fun k -> -. (mixed.(k).(i) +. beyond.(j).(k).(i)))))))) in
    let fits a b = let ok = ref true in Array.iteri (fun i x -> if not (x <= b.(i) *. 1.005) then ok := false) a; !ok in
    settled := !rounds > 1 && (let ok = ref true in Array.iteri (fun j a -> if not (fits a !spare.(j)) then ok := false) next; !ok);
    spare := next;
    if !rounds > 60 || Array.exists (Array.exists (fun v -> not (v < 1e6 *. most))) next then raise Fails
  done;
  { value; slope = Array.mapi (fun j s -> Array.mapi (fun i v -> v -. sg *. !spare.(j).(i)) s) slope; curve; slow; rate }

let least height budget value slope curve =
  value +. least_of height budget (Array.mapi (fun j s -> s +. least_of height budget curve.(j)) slope)
