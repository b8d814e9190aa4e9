(* BELIEVED. What a certificate says: the problem, the claims, the data, as the proved checker takes them. Numbers are exact:
   a double is the rational that it is. *)

open Refusal
open Arrays

type file = { certificate : Json.t; tables : (string, table) Hashtbl.t; digest : string }

let rec below json = function
  | [] -> json
  | name :: path -> (match json with
    | Json.Object fields -> below (List.assoc name fields) path
    | Json.List items -> below (List.nth items (int_of_string name)) path
    | _ -> raise Not_found)
let at file path = below file.certificate (String.split_on_char '.' path)
let missing file path = at file path = Json.Null
let text file path = match at file path with Json.Text t -> t | _ -> raise Not_found
let whole file path = match at file path with Json.Int n when n >= 0 -> n | _ -> raise Not_found
let truth file path = match at file path with Json.Bool b -> b | _ -> raise Not_found
let real file path = match at file path with Json.Real x -> x | Json.Text "inf" -> infinity | _ -> raise Not_found
let exact x = if Float.abs x <= max_float then Q.of_float x else raise Not_found
let ends x = if x = infinity then None else Some (exact x)

let there file name = Hashtbl.mem file.tables name
let table file name = Hashtbl.find file.tables name
let ints file name = match table file name with { entries = Ints get; length; _ } -> { size = length; get } | _ -> raise Not_found
let floats file name = match table file name with { entries = Floats get; length; _ } -> { size = length; get } | _ -> raise Not_found
let truths file name = match table file name with { entries = Truths get; length; _ } -> { size = length; get } | _ -> raise Not_found
let lines file name = match table file name with
  | { entries = Lines content; length; _ } -> List.filteri (fun i _ -> i < length) (String.split_on_char '\n' content)
  | _ -> raise Not_found

(* Nothing that is said of the problem or claimed is passed over: fields and arrays are these, or null. *)
let known = List.concat_map (fun (place, names) -> List.map (fun name -> place ^ "." ^ name) (String.split_on_char ' ' names)) [
  "problem.graph", "initial choice_start transition_start successor"; "problem.domain", "lower upper coefficient bound is_equality";
  "problem.objective", "kind agent nature complement lower_steps upper_steps discount reward earned target allowed terminal";
  "problem", "probability lower upper expression polynomial theta assumed_support denominator"; "problem.automaton", "atom successor avoided pair repeated believed";
  "problem.data", "delta method shared_by design repeats censored anytime episodes planned stated prior batch_start batch_transition batch_count";
  "claims", "name policy lower upper choice weight earlier pair" ]
let check_known file =
  let check path =
    let parts = List.filter (fun part -> int_of_string_opt part = None) (String.split_on_char '.' path) in
    if not (List.mem (String.concat "." parts) known) then not_covered ("what it says of " ^ plain path) in
  let rec leaves path = function
    | Json.Object fields -> List.iter (fun (name, value) -> leaves (path ^ "." ^ name) value) fields
    | Json.List items -> List.iteri (fun i value -> leaves (path ^ "." ^ string_of_int i) value) items
    | Json.Null -> ()
    | _ -> check path in
  List.iter (fun part -> leaves part (at file part)) [ "problem"; "claims" ];
  Hashtbl.iter (fun name _ -> match List.hd (String.split_on_char '.' name) with
    | "problem" | "claims" -> check name | _ -> ()) file.tables

(* ---------- The model ---------- *)

type graph = { choice_start : int vector; transition_start : int vector; successor : int vector }
let graph file = { choice_start = ints file "problem.graph.choice_start";
  transition_start = ints file "problem.graph.transition_start"; successor = ints file "problem.graph.successor" }
let span start i = start.get i, start.get (i + 1)
let from_to (a, b) f = List.init (b - a) (fun i -> f (a + i))

let support file = if missing file "problem.assumed_support" then 0.0 else real file "problem.assumed_support"
let unit = Q.of_float epsilon_float (* 2^-52 *)
let sum = List.fold_left Q.add Q.zero
let value theta p = sum (List.map (fun (c, m) -> List.fold_left (fun t (i, e) ->
  Q.mul t (Q.make (Z.pow (Q.num theta.(i)) e) (Z.pow (Q.den theta.(i)) e))) c m) p)

(* The least and the greatest probabilities of the transitions of choice c. A double p of a plain model stands for what was
   rounded to it, p·(1 ± (k + 2)·2^-52) among k; intervals that miss 1 as a whole by so little are one distribution. *)
let sets file =
  let start = ints file "problem.graph.transition_start" in
  let margin (a, b) = Q.mul (Q.of_int (b - a + 2)) unit in
  if there file "problem.probability" then
    let p = floats file "problem.probability" in
    fun c -> let row = span start c in from_to row (fun t ->
      let q = exact (p.get t) in
      Q.mul q (Q.sub Q.one (margin row)), Q.min Q.one (Q.mul q (Q.add Q.one (margin row))))
  else if there file "problem.theta" then
    let theta = Array.of_list (List.map rational (lines file "problem.theta")) and expression = ints file "problem.expression" in
    let values = Array.of_list (List.map (fun line -> value theta (polynomial line)) (lines file "problem.polynomial")) in
    fun c -> from_to (span start c) (fun t -> let p = values.(expression.get t) in p, p)
  else
    let lower = floats file "problem.lower" and upper = floats file "problem.upper" and support = support file in
    fun c -> let row = span start c in
      let bounds = from_to row (fun t ->
        let low = lower.get t and high = upper.get t in
        exact (if low = 0.0 then Float.min support high else low), exact high) in
      let least = sum (List.map fst bounds) and most = sum (List.map snd bounds) in
      let near total = Q.leq (Q.abs (Q.sub total Q.one)) (margin row) in
      let scaled total part = List.map (fun ends -> let p = Q.div (part ends) total in p, p) bounds in
      if Q.gt least Q.one && near least then scaled least fst
      else if Q.lt most Q.one && near most then scaled most snd
      else bounds

let objective name = "problem.objective." ^ name
let numbers file name = if there file name then (let v = floats file name in fun i -> exact (v.get i)) else fun _ -> Q.zero
let reward file = numbers file (objective "reward")
(* In place of a number, over a domain: a polynomial of the problem. *)
let earned file polys = if not (there file (objective "earned")) then (let r = reward file in fun c -> [ r c, [] ])
  else if there file (objective "reward") then raise Not_found
  else (let e = ints file (objective "earned") in fun c -> polys.(e.get c))

(* All but the choices. *)
let shape file =
  let own name = objective name in
  let marked name otherwise = if there file (own name) then (truths file (own name)).get else fun _ -> otherwise in
  let kind = text file (own "kind") in
  { Checker.states = (ints file "problem.graph.choice_start").size - 1; initial = whole file "problem.graph.initial";
    rows = (fun _ -> []);
    kind_of = (match kind with
      | "UNTIL" | "TEMPORAL" (* of the product *) -> Checker.Until | "NEXT" -> Checker.Next | "REACH_REWARD" -> Checker.Reach_reward | "AVERAGE" -> Checker.Average
      | "CUMULATIVE" -> Checker.Cumulative | "TOTAL" -> Checker.Total | "DISCOUNTED" -> Checker.Discounted
      | kind -> not_covered kind);
    target = marked "target" false; allowed = marked "allowed" true;
    terminal = numbers file (own "terminal"); first = whole file (own "lower_steps");
    last = (if kind = "NEXT" then Some 1 else if missing file (own "upper_steps") then None
      else Some (whole file (own "upper_steps")));
    factor = (if missing file (own "discount") then Q.one else exact (real file (own "discount"))) }

let problem file =
  let g = graph file and set = sets file and reward = reward file in
  if there file (objective "earned") then raise Not_found;
  let choice c =
    let a, _ = span g.transition_start c in
    { Checker.reward = reward c;
      edges = List.mapi (fun i (lo, hi) -> { Checker.next = g.successor.get (a + i); lo; hi }) (set c) } in
  { (shape file) with rows = (fun s -> from_to (span g.choice_start s) choice) }

(* ---------- Temporal formulas ---------- *)

(* The automaton, and its product with the graph: pairs (s, q) that the initial state reaches, in their order. Letters are the columns of atoms that
   occur, in the order of the numbers Σ atom·2^i. [settling]: hints about the automaton. *)
let runs file settling =
  let own name = "problem.automaton." ^ name in
  if text file (objective "kind") <> "TEMPORAL" then (if missing file "problem.automaton" then None else raise Not_found) else
    let g = graph file and rows name = List.hd (table file (own name)).shape and known = Hashtbl.create 100 and all n = List.init n Fun.id in
    let states = g.choice_start.size - 1 and memories = rows "successor" and atom = truths file (own "atom") and successor = ints file (own "successor") in
    let pair = ints file (own "pair") and avoided = truths file (own "avoided") and repeated = truths file (own "repeated") in
    let letters = successor.size / memories and place = Array.make (states * memories) (-1) in
    let column s = List.rev_map (fun i -> atom.get (i * states + s)) (all (rows "atom")) in
    List.iteri (fun l column -> Hashtbl.add known column l) (List.sort_uniq compare (List.init states column));
    let letter = Array.init states (fun s -> Hashtbl.find known (column s)) in
    let reads q l = successor.get (q * letters + l) and mark (v : bool vector) k q l = v.get ((k * memories + q) * letters + l) in
    let behind (s, q) = let q = reads q letter.(s) and first s = g.transition_start.get (g.choice_start.get s) in
      from_to (first s, first (s + 1)) (fun t -> g.successor.get t, q) in
    let rec visit = function [] -> () | (s, q) :: rest -> let k = s * memories + q in
      visit (if place.(k) >= 0 then rest else (place.(k) <- 0; List.rev_append (behind (s, q)) rest)) in
    visit [ whole file "problem.graph.initial", 0 ];
    let keys = Array.of_list (List.filter (fun k -> place.(k) >= 0) (all (states * memories))) in
    Array.iteri (fun i k -> place.(k) <- i) keys;
    let key = Array.get (Array.map (fun k -> k / memories, k mod memories) keys) in
    let number (s, q) = let i = place.(s * memories + q) in if i < 0 then raise Not_found else i in
    let pairs = List.map (fun k -> mark avoided k, List.map (mark repeated) (List.filter (fun i -> pair.get i = k) (all pair.size))) (all (rows "avoided")) in
    let settled, home = settling memories letters reads pairs in
    Some { Checker.letter = Array.get letter; reads; pairs; nodes = Array.length keys; key; number; memories; letters; settled; home }

(* ---------- The claims ---------- *)

let complement file = truth file (objective "complement")

(* A policy that sees a product's memory has choices in the order of the nodes; a given one is of the model. *)
let question file (runs : Checker.automaton option) number =
  let g = graph file and own name = Printf.sprintf "claims.%d.%s" number name in
  let choices, state = match runs with
    | Some a when text file "claims.0.name" <> "given policy" ->
      let sums = running (fun k -> let first, last = span g.choice_start (fst (a.key k)) in last - first) a.nodes in
      { size = a.nodes + 1; get = fun k -> if k = 0 then 0 else sums (k - 1) }, Fun.id
    | Some a -> g.choice_start, fun k -> fst (a.key k)
    | None -> g.choice_start, Fun.id in
  let policy = match text file (own "policy") with
    | "free" -> None
    | "randomised" ->
      let weight = floats file (own "weight") in
      Some (fun _ s ->
        let weights = from_to (span choices (state s)) (fun c -> exact (weight.get c)) in
        Checker.Mix (List.map (fun w -> Q.div w (sum weights)) weights))
    | _ ->
      (* [earlier] has rows (step, state, choice), steps falling: until that step another choice than [choice] *)
      let choice = ints file (own "choice") and changes = Hashtbl.create 16 in
      let rows = if there file (own "earlier") then ints file (own "earlier") else { size = 0; get = Fun.id } in
      for i = 0 to rows.size / 3 - 1 do Hashtbl.add changes (rows.get (3 * i + 1)) (rows.get (3 * i), rows.get (3 * i + 2)) done;
      Some (fun step s ->
        let c = match List.find_opt (fun (until, _) -> until >= step) (Hashtbl.find_all changes (state s)) with
          | Some (_, c) -> c | None -> choice.get (state s) in
        Checker.Only (c - choices.get (state s))) in
  { Checker.agent_max = text file (objective "agent") = "MAX"; policy;
    nature_is = (match text file (objective "nature") with "MAX" -> Some true | "MIN" -> Some false | _ -> None) }

(* The claims whose difference is claimed: the value of the first less that of the second. *)
let pair file number = if text file (Printf.sprintf "claims.%d.policy" number) <> "pair" then None
  else let v = ints file (Printf.sprintf "claims.%d.pair" number) in Some (v.get 0, v.get 1)

let bounds file number =
  let own name = real file (Printf.sprintf "claims.%d.%s" number name) in
  own "lower", own "upper"

(* ---------- Parameters and data ---------- *)

let is_over_domain file = not (missing file "problem.domain")

(* Bounds of parameters, then rows a·θ ≤ b; an equality is two. *)
let domain file =
  let own name = "problem.domain." ^ name in
  let read name = Array.of_list (List.map rational (lines file (own name))) in
  let lower = read "lower" and upper = read "upper" and coefficient = read "coefficient" and bound = read "bound" in
  let equal = truths file (own "is_equality") and size = Array.length lower in
  List.concat (List.init size (fun i ->
    [ [ Q.neg lower.(i), []; Q.one, [ i, 1 ] ]; [ upper.(i), []; Q.minus_one, [ i, 1 ] ] ]))
  @ List.concat (List.init (Array.length bound) (fun r ->
    let row sign = (Q.mul sign bound.(r), [])
      :: List.init size (fun i -> Q.neg (Q.mul sign coefficient.(r * size + i)), [ i, 1 ]) in
    if equal.get r then [ row Q.one; row Q.minus_one ] else [ row Q.one ]))

let sorted_lines file name = List.map (fun line -> List.sort (fun (_, m) (_, n) -> compare m n) (polynomial line)) (lines file name)
let polynomials file = Array.of_list (sorted_lines file "problem.polynomial")
(* Parameters behind those of the domain are reciprocals of denominators. *)
let reciprocals file = if not (there file "problem.denominator") then [] else
  let size = List.length (lines file "problem.domain.lower") in
  Option.get (Checker.reciprocals size size (sorted_lines file "problem.denominator"))
let model file =
  let g = graph file and expression = ints file "problem.expression" and polys = polynomials file in
  let earned = earned file polys in
  let choice c = { Checker.gains = earned c; outcomes = from_to (span g.transition_start c) (fun t ->
    { Checker.goes = g.successor.get t; expr = expression.get t }) } in
  { Checker.shape = shape file; table = (fun s -> from_to (span g.choice_start s) choice);
    polys = (fun e -> polys.(e)); domain = domain file @ reciprocals file;
    least = (fun e -> if List.for_all (fun (_, m) -> m = []) polys.(e) then Q.zero else exact (support file)) }

let has_data file = not (missing file "problem.data")
let delta file = exact (real file "problem.data.delta")
(* Intervals of events, a likelihood region, or both. *)
let named file = String.split_on_char '+' (text file "problem.data.method")
let shares = [ "3/5 likelihood", (Q.of_ints 3 5, "likelihood"); "9/10 value slab", (Q.of_ints 9 10, "value slab");
               "9/10 value slab of the best", (Q.of_ints 9 10, "value slab of the best") ]
let plain_method name = match List.assoc_opt name shares with Some (_, plain) -> plain | None -> name
let methods file = List.map plain_method (named file)
(* What the second of two methods has of delta; files from before do not say it. *)
let share file = match named file with [ _; second ] -> Option.map fst (List.assoc_opt second shares) | _ -> None
let has file names = List.exists (fun m -> List.mem m names) (methods file)
let of_given = [ "value slab"; "value slab of few data" ]
let bets file = has file ("value slab of the best" :: of_given)
let shared_by file = if List.mem (List.hd (methods file)) ("likelihood" :: of_given) then "nothing" else text file "problem.data.shared_by"
(* A parameter's number, and how often it counts as seen to happen and not to happen: stated beforehand. *)
let prior file = if not (there file "problem.data.prior") then []
  else let v = floats file "problem.data.prior" in List.init (v.size / 3) (fun i -> v.get (3 * i), v.get (3 * i + 1), v.get (3 * i + 2))

(* What was seen: batch, transition, how often. *)
let batches file = max 1 ((ints file "problem.data.batch_start").size - 1)
let each_seen file f =
  let start = ints file "problem.data.batch_start" in
  let which = ints file "problem.data.batch_transition" and times = ints file "problem.data.batch_count" in
  for b = 0 to start.size - 2 do for i = start.get b to start.get (b + 1) - 1 do f b (which.get i) (times.get i) done done

(* How often each outcome was seen, by state, choice and outcome; and how often expressions were met in batches. *)
let counts file =
  let g = graph file in
  let seen = Array.make g.successor.size 0 in
  each_seen file (fun _ t n -> seen.(t) <- plus seen.(t) n);
  fun s i j -> seen.(g.transition_start.get (g.choice_start.get s + i) + j)
let met file size label =
  let seen = Array.make_matrix (batches file) size 0 in
  each_seen file (fun b t n -> let e = label t in seen.(b).(e) <- plus seen.(b).(e) n);
  fun b e -> seen.(b).(e)
let met_expressions file = met file (Array.length (polynomials file)) (ints file "problem.expression").get
let met_classes file (scheme : Checker.scheme) =
  let g = graph file in
  let label = Array.make g.successor.size 0 in
  for s = 0 to g.choice_start.size - 2 do
    List.iteri (fun i c -> List.iteri (fun j k -> label.(g.transition_start.get c + j) <- k)
      (scheme.members (scheme.kind_of_choice (s, i)))) (from_to (span g.choice_start s) Fun.id)
  done;
  met file scheme.classes (Array.get label)

(* What was fixed beforehand: the sizes of batches; or the episodes, those of the pilot's plan, those of the plan of bets, and the
   batches; or nothing. *)
type plan = Sizes of int list | Episodes of int * int * int * int | Open
let plan file =
  let own name = "problem.data." ^ name and sizes = Array.make (batches file) 0 in
  let design = text file (own "design") in
  let planned = own (if design = "adaptive" then "planned" else "episodes") in
  let of_bets = if missing file (own "planned") then planned else own "planned" in
  each_seen file (fun b _ n -> sizes.(b) <- plus sizes.(b) n);
  if prior file <> [] then Open
  else if design = "generative-fixed" then Sizes (Array.to_list sizes)
  else if truth file (own "anytime") || missing file (own "episodes") || missing file planned then Open
  else Episodes (whole file (own "episodes"), whole file planned, whole file of_bets, batches file)

let is_given file = match at file "claims" with
  | Json.List l -> List.mem "given policy" (List.mapi (fun i _ -> text file (Printf.sprintf "claims.%d.name" i)) l)
  | _ -> false

(* What is assumed beside how the data came, and stands behind a claim. *)
let assumed file =
  let if_ words = ", if " ^ words and data = not (missing file "problem.data") in
  (if missing file "problem.assumed_support" then "" else if_ (Printf.sprintf "every possible transition has at least probability %.17g" (support file)))
  ^ (if missing file "problem.automaton" then "" else if_ "the automaton in the file recognises the formula that is meant")
  ^ (if data && prior file <> [] then if_ "the prior does not depend on the data" else "")
  ^ (if data && has file of_given && is_given file then if_ "the given policy was chosen without these data" else "")
  ^ (if not (data && (has file [ "likelihood" ] || bets file)) then "" else match plan file with
    | Episodes (came, _, planned, _) when planned <> came || text file "problem.data.design" = "adaptive" ->
      if_ (Printf.sprintf "%d episodes were planned in advance" planned)
    | _ -> "")

(* Nobody bets. *)
let no_bets = { Checker.kinds = 0; kind_of_choice = (fun _ -> 0); members = (fun _ -> []); classes = 0; of_class = Fun.id; parties = 0;
  alpha = Q.one; weights = []; stake = (fun _ _ _ _ _ -> Z.zero) }

(* Every condition on how data came: what is said of their ends (0) and their order (3), and that nothing was left out; visits or the
   amount that a method has fixed beforehand. Where one does not hold, or nobody says so, the confidence is nominal. *)
let check_collected file =
  let own name = "problem.data." ^ name and kept holds words = demand holds (words ^ ": the confidence is nominal") in
  let stated = if there file (own "stated") then let v = ints file (own "stated") in List.init v.size v.get else [] in
  let design = text file (own "design") and watched = truth file (own "anytime") and list = methods file in
  let once = design = "trajectories" && not (truth file (own "repeats")) && shared_by file = "transitions" in
  let fixed = List.mem (List.hd list) [ "clopper-pearson"; "hoeffding"; "weissman" ] in
  kept (not (truth file (own "censored"))) "rows were left out by their outcomes";
  kept (List.for_all (fun n -> n = 0 || n = 3) stated) "nobody says that ends or order in time of the data are known";
  kept (not fixed || (not watched && (design = "generative-fixed" || once))) "visits were not fixed in advance, or the data looked at while they came";
  kept (not (watched && design = "generative-fixed" && (List.mem "likelihood" list || bets file) && prior file = [])) "the amount was not fixed in advance: the data were looked at"

(* Which theorem speaks of them. *)
let is_fixed file =
  check_collected file;
  match methods file with
  | [ "beta-binomial" ] | [ "likelihood" ] | [ "beta-binomial"; "likelihood" ] -> false
  | [ _ ] when has file of_given -> false
  | [ "beta-binomial"; _ ] when bets file -> false
  | [ "clopper-pearson" ] | [ "clopper-pearson"; "likelihood" ] -> true (* a trajectory is a run that tries no choice twice *)
  | _ -> not_covered ("the method " ^ text file "problem.data.method")
