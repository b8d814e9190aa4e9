(* NOT BELIEVED: what stands in a certificate, of all fields the types and ranges that they must have, and the hints. What it says
   is read once more by says.ml; this can only refuse. *)

open Refusal
open Arrays
open Fields

type graph = { states : int; choices : int; transitions : int; initial : int;
               choice_start : int vector; transition_start : int vector; successor : int vector }

type objective = { kind : string; agent : string; nature : string; complement : bool; lower_steps : int;
                   upper_steps : int option; discount : float option; reward : float vector option;
                   earned : int vector option; target : bool vector option; allowed : bool vector option;
                   terminal : float vector option }

type domain = { lower : Q.t list; upper : Q.t list; constraints : (Q.t list * Q.t * bool) list; denominators : polynomial array }

type data = { delta : float; methods : string list; intervals : bool; shared_by : string; design : string; repeats : bool; censored : bool;
              watched : bool; (* and how much there shall be is stated *) stated : int list; batch_start : int vector; batch_transition : int vector; batch_count : int vector }

type law =
  | Plain of float vector
  | Interval of float vector * float vector
  | Point
  | Domain of int vector * polynomial array * domain * data option

type region = { row : (int * int * int) array; size : int; box_basis : int array array; bounds : (int * int * int array * Q.t) array;
                choice_basis : int array array; box : (float array * float array) option; point : float array array }

(* Rows of a slab: points, shares of bets, and how much of the likelihood's evidence is taken off. *)
type stage = { within : region; near_points : float array array; shares : int array array; sides : int array; off : float array }

type learned = { ends : (float vector * float vector) option; region : region option; pilot_share : int vector option; slab : stage list;
                 coupled : (int * (int * int * int) array) list } (* of a claim, the rows of its cells *)

type claim = { name : string; policy : string; lower : float; upper : float; choice : int vector option;
               weight : float vector option; earlier : (int * int * int) array;
               low : float vector option; high : float vector option; low_rank : int vector option;
               high_rank : int vector option; witness : int vector option; low_bias : float vector option;
               high_bias : float vector option; low_basis : int vector option; high_basis : int vector option; pair : (int * int) option }

(* [graph]: of the product, where there is one; [model]: that of the file, with its states and transitions behind those of [graph]. *)
type t = { model : graph; node : int -> int; edge : int -> int; graph : graph; objective : objective; law : law; assumed_support : float option; learned : learned option;
           claims : claim list }

let domain file = match file.law with Domain (_, _, domain, _) -> domain | _ -> raise Not_found

(* Of a claim with cells: whether they prove it is a matter of the search. *)
let has_cells file number = match file.learned with Some l -> List.mem_assoc number l.coupled | None -> false

let offsets ?(rising = true) (start : int vector) total =
  let fits = ref (start.size > 0 && start.get 0 = 0 && start.get (start.size - 1) = total) in
  for i = 0 to start.size - 2 do
    let a = start.get i and b = start.get (i + 1) in
    if a > b || (rising && a = b) then fits := false
  done;
  !fits

let steps objective = if objective.kind = "NEXT" then Some 1 else objective.upper_steps

(* Between what the value lies, whatever the model is. *)
let range o =
  let negative = Option.fold ~none:false ~some:(fun (v : float vector) ->
    let found = ref false in
    for i = 0 to v.size - 1 do if v.get i < 0.0 then found := true done; !found) in
  if List.mem o.kind [ "UNTIL"; "NEXT"; "TEMPORAL" ] then 0.0, 1.0
  else
    (if o.earned <> None || negative o.reward || negative o.terminal then neg_infinity else 0.0),
    if List.mem o.kind [ "REACH_REWARD"; "TOTAL" ] then infinity else max_float

let read_graph json arrays =
  let own = node json "problem.graph." arrays [ "initial" ] in
  let choice_start = given own "choice_start" (integers own "choice_start") in
  let transition_start = given own "transition_start" (integers own "transition_start") in
  let successor = given own "successor" (integers own "successor" ~most:(max 0 (choice_start.size - 2))) in
  let states = choice_start.size - 1 and choices = transition_start.size - 1 in
  require (states >= 1 && states < 0x7fffffff && offsets choice_start choices) "the choices of states do not fit";
  require (offsets transition_start successor.size) "the transitions of choices do not fit";
  { states; choices; transitions = successor.size; initial = whole own "initial" ~most:(states - 1);
    choice_start; transition_start; successor }

let read_objective json arrays (graph : graph) =
  let own = node json "problem.objective." arrays
    [ "kind"; "agent"; "nature"; "complement"; "lower_steps"; "upper_steps"; "discount" ] in
  let kind = word own "kind"
    [ "UNTIL"; "NEXT"; "REACH_REWARD"; "CUMULATIVE"; "TOTAL"; "DISCOUNTED"; "AVERAGE"; "TEMPORAL" ] in
  let states = graph.states and choices = graph.choices in
  let o = { kind; agent = word own "agent" [ "MAX"; "MIN" ]; nature = word own "nature" [ "MAX"; "MIN"; "ANY" ];
    complement = truth own "complement"; lower_steps = whole own "lower_steps" ~most:1_000_000;
    upper_steps = optional (whole ~most:1_000_000) own "upper_steps"; discount = optional share own "discount";
    reward = reals own "reward" ~length:choices; earned = integers own "earned" ~length:choices;
    target = truths own "target" ~length:states; allowed = truths own "allowed" ~length:states;
    terminal = reals own "terminal" ~length:states } in
  let is = List.mem kind and there x = x <> None in
  let event = is [ "UNTIL"; "NEXT"; "TEMPORAL" ] in
  List.iter (fun fits -> require fits ("the fields of the objective are not those of " ^ kind)) [
    (o.discount <> None) = (kind = "DISCOUNTED");
    (not (there o.upper_steps)) || is [ "UNTIL"; "CUMULATIVE" ]; there o.upper_steps || kind <> "CUMULATIVE";
    o.lower_steps = 0 || kind = "UNTIL"; (match o.upper_steps with Some k -> o.lower_steps <= k | None -> true);
    (o.target <> None) = is [ "UNTIL"; "NEXT"; "REACH_REWARD" ]; (o.reward = None && o.earned = None) = event;
    o.reward = None || o.earned = None; o.allowed = None || kind = "UNTIL"; o.terminal = None || kind = "REACH_REWARD";
    (not o.complement) || event ];
  let made = o.lower_steps + Option.value ~default:0 o.upper_steps in
  require (float_of_int made *. float_of_int (max graph.transitions 20_000) <= 1e9) "more steps than are checked";
  o

let bits q = Z.numbits (Q.num q) + Z.numbits (Q.den q)

(* Every polynomial at the point is not too much work. *)
let check_work polynomials theta =
  let monomials = Hashtbl.create 100 in
  Array.iter (List.iter (fun (m, _) -> Hashtbl.replace monomials m ())) polynomials;
  let work = Hashtbl.fold (fun m _ total -> List.fold_left (fun t (i, e) -> t +. float_of_int e *. float_of_int (bits theta.(i))) total m) monomials 0.0 in
  require (work <= 1e7) "the expressions are too large to be evaluated at the point"

let rationals own name = List.map rational (given own name (lines own name))

let read_domain json arrays denominators =
  let own = node json "problem.domain." arrays [] in
  let lower = rationals own "lower" in
  let upper = rationals own "upper" in
  let coefficient = Array.of_list (rationals own "coefficient") in
  let bound = rationals own "bound" in
  let equal = given own "is_equality" (truths own "is_equality" ~length:(List.length bound)) in
  let size = List.length lower in
  require (List.length upper = size && Array.length coefficient = size * List.length bound)
    "the domain's constraints do not fit";
  { lower; upper; constraints = List.mapi (fun r b ->
    Array.to_list (Array.sub coefficient (r * size) size), b, equal.get r) bound;
    denominators = Array.of_list (List.map (polynomial size) denominators) }

let slabs = [ "slab"; "slab of few data"; "value slab"; "value slab of few data" ]
let of_the_best = [ "slab of the best"; "value slab of the best"; "9/10 value slab of the best" ]
let of_differences = [ "slab of the difference"; "value slab of the difference" ]

let most_counts = if Sys.int_size > 32 then 1 lsl 50 else 1 lsl 30
let read_data json arrays transitions =
  let own = node json "problem.data." arrays
    [ "delta"; "method"; "shared_by"; "design"; "repeats"; "censored"; "anytime"; "episodes"; "planned"; "costs" ] in
  List.iter (fun (name, words) -> if Hashtbl.mem arrays ("problem.data." ^ name) then not_covered words)
    [ "seen", "outcomes of episodes"; "seen_delta", "outcomes of episodes" ];
  let intervals = [ "clopper-pearson"; "hoeffding"; "beta-binomial" ] in
  let joint = List.concat_map (fun first -> List.map (fun second -> first ^ "+" ^ second) ("likelihood" :: "3/5 likelihood" :: "9/10 value slab" :: slabs @ of_the_best)) intervals in
  let method_ = word own "method" (intervals @ "weissman" :: "likelihood" :: "ellipsoid" :: "gamma-poisson" :: "unseen mass" :: slabs @ of_differences @ joint) in
  let methods = List.map Says.plain_method (String.split_on_char '+' method_) in
  let delta = share own "delta" in
  let shared_by = word own "shared_by" [ "events"; "outcomes"; "transitions" ] in
  let intervals = List.mem (List.hd methods) intervals in
  require (intervals || shared_by = "events") "the method shares its confidence in one way only";
  if List.length methods > 1 && shared_by = "transitions" then not_covered "a region beside intervals of transitions";
  Option.iter (fun (rows, columns, get) ->
    require (columns = 3 && method_ = "likelihood") "priors are of parameters, and of a likelihood";
    for i = 0 to rows - 1 do
      require (Float.is_integer (get i 0) && (i = 0 || get (i - 1) 0 < get i 0)) "priors are of parameters, in their order"
    done) (matrix (real_entries ~least:0.0 ~most:1e9) own "prior");
  let anytime = truth own "anytime" and came = optional whole own "episodes" and planned = optional whole own "planned" in
  if field own "costs" <> Json.Null then not_covered "costs that were seen";
  let batch_start = given own "batch_start" (integers own "batch_start") in
  let batch_transition = given own "batch_transition" (integers own "batch_transition" ~most:(transitions - 1)) in
  let batch_count = given own "batch_count"
    (integers own "batch_count" ~length:batch_transition.size ~least:1 ~most:most_counts) in
  require (offsets ~rising:false batch_start batch_transition.size) "the batches do not fit";
  let total = ref 0 in
  for i = 0 to batch_count.size - 1 do
    require (batch_count.get i <= most_counts - !total) "there are too many counts"; total := !total + batch_count.get i
  done;
  for b = 0 to batch_start.size - 2 do
    for i = batch_start.get b + 1 to batch_start.get (b + 1) - 1 do
      require (batch_transition.get (i - 1) < batch_transition.get i) "the transitions of a batch do not rise"
    done
  done;
  let stated = match integers own "stated" ~most:5 with
    | None -> [] | Some v -> List.init v.size v.get in
  require (List.sort_uniq compare stated = stated) "what is stated of the data does not rise";
  { delta; methods; intervals; shared_by; design = word own "design" [ "generative-fixed"; "trajectories"; "adaptive" ];
    repeats = truth own "repeats"; censored = truth own "censored"; watched = anytime && came <> None && (planned <> None || word own "design" [ "generative-fixed"; "trajectories"; "adaptive" ] = "trajectories"); stated; batch_start; batch_transition; batch_count }

let read_law own json arrays (graph : graph) (objective : objective) =
  let t = graph.transitions in
  let probability = reals own "probability" ~length:t ~least:0.0 ~most:1.0 in
  let lower = reals own "lower" ~length:t ~least:0.0 ~most:1.0 in
  let upper = reals own "upper" ~length:t ~least:0.0 ~most:1.0 in
  let expression = integers own "expression" ~length:t in
  let polynomials = lines own "polynomial" and theta = lines own "theta" in
  let quotients = lines own "denominator" in
  if quotients = Some [] then not_covered "a list of no denominators";
  let has_domain = field own "domain" <> Json.Null and has_data = field own "data" <> Json.Null in
  if Hashtbl.mem arrays "problem.misfit" then not_covered "misfits of the model";
  if Hashtbl.mem arrays "problem.unseen" then not_covered "outcomes that were never seen";
  if Hashtbl.mem arrays "problem.passing" then not_covered "states in the middle of a step";
  let polynomials_over parameters texts =
    let found = Array.of_list (List.map (polynomial parameters) texts) in
    let below = function None -> true | Some (v : int vector) ->
      let fits = ref true in
      for i = 0 to v.size - 1 do if v.get i >= Array.length found then fits := false done; !fits in
    require (below expression && below objective.earned) "an expression's number is out of range";
    found in
  ignore json;
  let law = match probability, lower, upper, expression, polynomials, theta, has_domain, has_data with
    | Some p, None, None, None, None, None, false, false -> Plain p
    | None, Some a, Some b, None, None, None, false, false -> Interval (a, b)
    | None, None, None, Some e, Some texts, Some point, false, false ->
      let theta = Array.of_list (List.map rational point) in
      ignore e; check_work (polynomials_over (Array.length theta) texts) theta; Point
    | None, None, None, Some e, Some texts, None, true, _ ->
      let domain = read_domain (field own "domain") arrays (Option.value ~default:[] quotients) in
      let found = polynomials_over (List.length domain.lower + Array.length domain.denominators) texts in
      let data = if has_data then Some (read_data (field own "data") arrays t) else None in
      if quotients <> None && Option.fold ~none:false ~some:(fun d -> not d.intervals || List.length d.methods > 1) data
      then not_covered "quotients of parameters beside other statements than intervals";
      Domain (e, found, domain, data)
    | _ -> malformed "not what labels the transitions of one model" in
  let is_interval = match law with Interval _ -> true | _ -> false in
  let is_domain = match law with Domain _ -> true | _ -> false in
  require (is_interval = (objective.nature <> "ANY")) "nature's direction does not fit the model";
  require ((objective.earned = None && quotients = None) || is_domain) "rewards with parameters and quotients are for models over a domain";
  require (objective.earned = None || objective.kind <> "AVERAGE") "averages are of rewards that are known";
  law, is_interval || is_domain

let read_claim arrays (of_policy : graph) (graph : graph) objective is_domain number claim hints =
  let own = node claim (Printf.sprintf "claims.%d." number) arrays [ "name"; "policy"; "lower"; "upper" ] in
  let help = node hints (Printf.sprintf "values.%d." number) arrays [] in
  let states = graph.states and choices = graph.choices in
  let vector = reals help ~length:states ~most:infinity and rank = integers help ~length:states in
  let bias = reals help ~length:states and basis = integers help ~length:choices ~least:(-1) in
  let low_rank = rank "lower_ranking" in
  let pair = Option.map (fun (v : int vector) -> v.get 0, v.get 1) (integers own "pair" ~length:2 ~most:3) in
  let c = { name = word own "name" [ "value"; "robust policy"; "given policy"; "difference" ]; pair;
    policy = word own "policy" [ "free"; "fixed"; "randomised"; "pair" ];
    lower = real ~infinite:true own "lower"; upper = real ~infinite:true own "upper";
    choice = integers own "choice" ~length:of_policy.states; weight = reals own "weight" ~length:of_policy.choices ~least:0.0 ~most:1.0;
    earlier = (match matrix (integer_entries ~least:0) own "earlier" with
      | None -> [||]
      | Some (rows, columns, get) ->
        require (columns = 3) "choices of earlier steps do not fit";
        Array.init rows (fun i -> get i 0, get i 1, get i 2));
    low = vector "lower"; high = vector "upper"; low_rank;
    high_rank = (match rank "upper_ranking" with None -> low_rank | found -> found);
    witness = integers help "witness" ~length:states; low_bias = bias "lower_bias"; high_bias = bias "upper_bias";
    low_basis = basis "lower_basis"; high_basis = basis "upper_basis" } in
  require (c.lower <= c.upper) "a lower bound above the upper one";
  require ((pair <> None) = (c.policy = "pair") && (pair <> None) = (c.name = "difference")) "a pair of policies where no difference is claimed, or none";
  require ((c.choice <> None) = (c.policy = "fixed")) "the policy does not fit";
  require ((c.weight <> None) = (c.policy = "randomised")) "the weights do not fit";
  List.iter (fun ((graph : graph), picked) -> Option.iter (fun (picked : int vector) ->
    for s = 0 to graph.states - 1 do
      let i = picked.get s in
      require (graph.choice_start.get s <= i && i < graph.choice_start.get (s + 1)) "a choice that its state does not have"
    done) picked) [ of_policy, c.choice; graph, c.witness ];
  Option.iter (fun (weight : float vector) ->
    for s = 0 to of_policy.states - 1 do
      let total = ref 0.0 in
      for i = of_policy.choice_start.get s to of_policy.choice_start.get (s + 1) - 1 do total := !total +. weight.get i done;
      require (Float.abs (!total -. 1.0) <= 0x1p-40) "the weights are no distribution"
    done) c.weight;
  let least, most = range objective in
  require (pair <> None || (least <= c.lower && c.upper <= most)) "what is claimed is no value of the quantity";
  require (c.witness = None || c.policy = "free") "a witness beside a policy that is given";
  let known = steps objective in
  let last = ref (Option.value ~default:objective.lower_steps known) and since = Hashtbl.create 16 in
  require (c.earlier = [||] || c.policy = "fixed") "choices of earlier steps do not fit";
  let first = !last in
  Array.iter (fun (step, s, picked) ->
    let before = Option.value ~default:first (Hashtbl.find_opt since s) in
    require (step < before && step <= !last && s < states
      && graph.choice_start.get s <= picked && picked < graph.choice_start.get (s + 1))
      "choices of earlier steps do not fit";
    last := step; Hashtbl.replace since s step) c.earlier;
  let plain = known = None && pair = None in
  require ((c.low <> None) = plain && (c.high <> None) = plain) "vectors do not fit";
  let average = objective.kind = "AVERAGE" and endless = List.mem objective.kind [ "REACH_REWARD"; "TOTAL" ] in
  let biased = average && pair = None in
  require ((c.low_bias <> None) = biased && (c.high_bias <> None) = biased) "a bias does not fit";
  require (not (average && c.policy = "randomised")) "the average of a randomised policy";
  let finite = Option.iter (fun (v : float vector) ->
    for s = 0 to states - 1 do require (v.get s < infinity) "a bound is infinite, the value is not" done) in
  if not endless then finite c.low;
  if average then finite c.high;
  let by_step = c.name = "robust policy" && (known <> None || objective.lower_steps > 0) in
  require ((c.policy = "free") = (c.name = "value") || by_step) "a policy of another kind than its name says";
  require (is_domain || (c.low_basis = None && c.high_basis = None)) "bases without a region";
  let has_basis = Option.fold ~none:false ~some:(fun (v : int vector) ->
    let found = ref false in
    for i = 0 to v.size - 1 do if v.get i >= 0 then found := true done; !found) in
  if average && (has_basis c.low_basis || has_basis c.high_basis) then not_covered "averages over a region";
  c

(* Hints about what a given policy reaches, as ones about the whole product. *)
let spread (nodes, _, choices, _) c =
  let put : 'a. 'a -> int array -> 'a vector -> 'a vector = fun otherwise places v -> { size = Array.length places; get = fun i -> if places.(i) < 0 then otherwise else v.get places.(i) } in
  let most (v : float vector) = List.fold_left (fun m i -> Float.max m (v.get i)) 1.0 (List.init v.size Fun.id) in
  { c with low = Option.map (put 0.0 nodes) c.low; high = Option.map (fun v -> put (most v) nodes v) c.high;
    low_rank = Option.map (put 0 nodes) c.low_rank; high_rank = Option.map (put 0 nodes) c.high_rank;
    low_basis = Option.map (put (-1) choices) c.low_basis; high_basis = Option.map (put (-1) choices) c.high_basis }

let read_region path json arrays quotients =
  let own = node json path arrays [] in
  let table name = match given own name (matrix (integer_entries ~least:0 ~most:0x7fffffff) own name) with
    | rows, columns, get -> columns, Array.init rows (fun i -> Array.init columns (get i)) in
  let three, row = table "row" in
  let points, size, point = given own "point" (matrix real_entries own "point") in
  let box_width, box_basis = table "box_basis" and bound_width, bound_basis = table "bound_basis" in
  let choice_width, choice_basis = table "choice_basis" in
  let bounds = Array.length bound_basis in
  let expression = given own "bound_expression" (integers own "bound_expression" ~length:bounds) in
  let side = given own "bound_side" (integers own "bound_side" ~length:bounds ~most:1) in
  let near = reals own "bound_near" ~length:bounds in
  let box_lower = reals own "box_lower" ~length:size and box_upper = reals own "box_upper" ~length:size in
  require (three = 3 && size > 0 && box_width = size && bound_width = size && choice_width = size
    && Array.length box_basis mod (2 * size) = 0) "the region does not fit the coordinates";
  if near <> None && not quotients then not_covered "bounds near a value";
  { row = Array.map (fun r -> r.(0), r.(1), r.(2)) row; size; box_basis; choice_basis;
    bounds = Array.mapi (fun i basis -> expression.get i, side.get i, basis, Option.fold ~none:Q.zero ~some:(fun (c : float vector) -> Q.of_float (c.get i)) near) bound_basis;
    box = (match box_lower, box_upper with
      | Some a, Some b -> Some (Array.init size a.get, Array.init size b.get)
      | _ -> None); point = Array.init points (fun i -> Array.init size (point i)) }

let most_rows = 64 and most_times = 1048576.0
let read_stage arrays number json =
  let path = Printf.sprintf "learned.slab.%d." number in
  let own = node json path arrays [ "region" ] in
  let within = read_region (path ^ "region.") (field own "region") arrays false in
  let rows, width, point = given own "point" (matrix real_entries own "point") in
  let count, scales, share = given own "share" (matrix (integer_entries ~least:0 ~most:1048576) own "share") in
  let side = integers own "side" ~length:rows ~most:1 and guard = reals own "guard" ~length:rows ~least:0.0 ~most:most_times in
  require (count = rows && width = within.size && rows <= most_rows) "the points or shares of a slab do not fit";
  for i = 0 to rows - 1 do
    let total = ref 0 in
    for k = 0 to scales - 1 do total := !total + share i k done;
    demand (!total > 0) "a row of a slab without shares"
  done;
  if side = None && rows > 1 then not_covered "rows of a slab without sides";
  { within; near_points = Array.init rows (fun i -> Array.init width (point i)); shares = Array.init rows (fun i -> Array.init scales (share i));
    sides = (match side with Some v -> Array.init rows v.get | None -> Array.make rows 0);
    off = (match guard with Some v -> Array.init rows v.get | None -> Array.make rows 0.0) }

(* Cells as they are declared, and of those the rows: models and hulls are found anew. [size]: of the region. *)
let read_coupled arrays size number json =
  let own = node json (Printf.sprintf "learned.coupled.%d." number) arrays [ "claim" ] in
  let lengths = Hashtbl.of_seq (List.to_seq (("3", 3) :: Option.to_list (Option.map (fun n -> "size", n) size))) in
  let length name = Hashtbl.find lengths name in
  let shaped name shape = (* equal names are equal lengths; a + behind one is one more *)
    let table = given own name (take own name) in
    let fits wanted n =
      let name, more = match String.split_on_char '+' wanted with [ name; _ ] -> name, 1 | _ -> wanted, 0 in
      if not (Hashtbl.mem lengths name) then Hashtbl.add lengths name (n - more);
      length name = n - more in
    let shape = String.split_on_char ' ' shape in
    if not (List.length shape = List.length table.shape && List.for_all2 fits shape table.shape) then wrong own name "has another shape"; table in
  let numbers ?least ?(most = 0x7fffffff) name shape = integer_entries ?least ~most own name (shaped name shape) in
  let reals ?least (name, shape) = ignore (real_entries ?least own name (shaped name shape)) in
  let split_node = numbers "split_node" "splits" and node = numbers "node" "proofs" and row = numbers "row" "rows 3" in
  List.iter reals [ "split_direction", "splits size"; "split_value", "splits"; "point", "points size"; "centre", "proofs size"; "axes", "proofs size size";
    "value", "models open"; "slope", "models open size"; "curve", "models open packed"; "dual", "duals open" ];
  List.iter (reals ~least:0.0) [ "multiplier", "rows"; "error", "models open" ];
  ignore (numbers "simplex" "points size");
  let splits = length "splits" and proofs = length "proofs" and size = length "size" in
  require (List.mem (length "models") [ 0; proofs ] && length "packed" = size * (size + 1) / 2) "models of cells do not fit";
  let most name of_what = (* in a cell *)
    let start = { size = proofs + 1; get = numbers ~most:max_int name "proofs+" } in
    require (offsets ~rising:false start (length of_what)) "rows or points of cells do not fit";
    List.fold_left (fun most i -> max most (start.get (i + 1) - start.get i)) 0 (List.init proofs Fun.id) in
  let rows = most "row_start" "rows" in
  let points = most "point_start" "points" in
  require (points <= 20_000 && size <= 40 && max (points * size) rows * size <= 50_000_000) "a cell has more points, rows or coordinates than are checked";
  List.iter (fun name ->
    let get = numbers name "proofs" ~least:(-1) in
    for i = 0 to proofs - 1 do require (get i < length "duals") "an occupancy that is not there" done) [ "lower_dual"; "upper_dual" ];
  let state = numbers "state" "open" and split = Hashtbl.create 100 in
  for i = 1 to length "open" - 1 do require (state (i - 1) < state i) "the open states do not rise" done;
  for i = 0 to splits - 1 do
    require (split_node i <= 2 * i && not (Hashtbl.mem split (split_node i))) "a split of a cell that is not there, or was split before";
    Hashtbl.add split (split_node i) ()
  done;
  for i = 0 to proofs - 1 do require (node i <= 2 * splits) "a proof about a cell that is not there" done;
  whole own "claim" ~most:3, Array.init (length "rows") (fun i -> row (3 * i), row (3 * i + 1), row (3 * i + 2))

let read_learned json arrays data quotients =
  let own = node json "learned." arrays [ "region"; "coupled"; "slab" ] in
  let lower = reals own "lower" ~least:0.0 ~most:1.0 and upper = reals own "upper" ~least:0.0 ~most:1.0 in
  let region = match field own "region" with Json.Null -> None | json -> Some (read_region "learned.region." json arrays quotients) in
  let coupled = match field own "coupled" with
    | Json.List l -> List.mapi (read_coupled arrays (Option.map (fun (r : region) -> r.size) region)) l | _ -> malformed "coupled proofs are no list" in
  let slab = match field own "slab" with Json.List l -> List.mapi (read_stage arrays) l | _ -> malformed "the stages of a slab are no list" in
  if Hashtbl.mem arrays "learned.cost_lower" then not_covered "costs that were seen";
  let pilot_share = integers own "pilot_share" ~most:4096 in
  Option.iter (fun (v : int vector) ->
    let total = List.fold_left (+) 0 (List.init v.size v.get) in
    require (total > 0 && total <= 4096) "shares of pilots that are none, or too many") pilot_share;
  let intervals = match data with Some d -> d.intervals | None -> false in
  let ends = match lower, upper with
    | Some a, Some b -> require (a.size = b.size) "intervals without one of their ends"; Some (a, b)
    | None, None -> None
    | _ -> malformed "intervals without one of their ends" in
  demand ((ends <> None) = intervals) "intervals do not fit the method";
  let ordered = match data with Some d -> List.exists (fun m -> List.mem m d.methods) ("likelihood" :: slabs @ of_the_best) | None -> false in
  demand (pilot_share = None || ordered) "shares of pilots where there are none";
  demand (slab = [] || match data with Some d -> List.exists (fun m -> List.mem m (slabs @ of_the_best)) d.methods | None -> false) "the region does not fit the statement";
  { ends; pilot_share; slab; coupled; region }

let about = function
  | Json.Object texts when List.length texts <= 64 ->
    let characters text = (* as written, an escape counting as one *)
      let rec from i n = if i >= String.length text then n
        else if text.[i] = '\\' then from (i + if text.[i + 1] = 'u' then 6 else 2) (n + 1)
        else from (i + 1) (if Char.code text.[i] land 0xc0 = 0x80 then n else n + 1) in
      from 0 0 in
    List.iter (function
      | name, Json.Text text -> require (characters name <= 64 && characters text <= 4096) "'about' has texts that are too long"
      | _ -> malformed "'about' has other things than texts") texts
  | _ -> malformed "'about' is no object of texts"

let read (file : Says.file) =
  let json = file.certificate and arrays = Hashtbl.copy file.tables in
  let top = node json "" arrays [ "problem"; "claims"; "values"; "learned"; "about" ] in
  about (field top "about");
  let own = node (field top "problem") "problem." arrays
    [ "graph"; "objective"; "domain"; "data"; "assumed_support"; "automaton" ] in
  if Hashtbl.mem arrays "problem.time" then not_covered "chains in continuous time";
  let graph = read_graph (field own "graph") arrays in
  let objective = read_objective (field own "objective") arrays graph in
  require ((field own "automaton" <> Json.Null) = (objective.kind = "TEMPORAL")) "an automaton is for temporal questions";
  let temporal = objective.kind = "TEMPORAL" and model = graph in
  if temporal then Runs.demand_size graph.states (Runs.check (field own "automaton") arrays graph.states);
  let law, uncertain = read_law own json arrays graph objective in
  let assumed_support = optional share own "assumed_support" in
  require (assumed_support = None || uncertain) "an assumption about supports that does not fit the model";
  let is_domain = match law with Domain _ -> true | _ -> false in
  require ((field top "learned" <> Json.Null) = is_domain) "hints about sets do not fit the model";
  let learned = match law with
    | Domain (_, _, domain, data) -> Some (read_learned (field top "learned") arrays data (domain.denominators <> [||]))
    | _ -> None in
  let product = Option.map (fun (runs : Checker.automaton) ->
    let last = List.fold_left (fun most s -> max most (runs.letter s)) 0 (List.init model.states Fun.id) in
    require (last + 1 = runs.letters) "the automaton does not read the letters that occur";
    let p = Runs.product (Says.graph file) runs in
    p, runs, { states = runs.nodes; choices = Array.length p.choice; transitions = Array.length p.transition; initial = runs.number (model.initial, 0);
      choice_start = p.choice_start; transition_start = p.transition_start; successor = p.successor }) (Says.runs file Runs.settling) in
  let graph = match product with Some (_, _, graph) -> graph | None -> graph in
  let part = match product with (* what a given policy reaches *)
    | Some (p, _, graph) when Says.text file "claims.0.name" = "given policy" ->
      let taken = if Says.there file "claims.0.choice" then
          (let choice = Says.ints file "claims.0.choice" and all = Hashtbl.create 1000 in
           for s = 0 to choice.size - 1 do Hashtbl.replace all (choice.get s) () done; Hashtbl.mem all)
        else (let weight = Says.floats file "claims.0.weight" in fun c -> weight.get c > 0.0) in
      Some (Runs.reached p graph.initial taken)
    | _ -> None in
  let of_policy, sizes = match part with
    | Some (_, states, _, choices) -> model, { graph with states; choices } | None -> graph, graph in
  let claims = match field top "claims", field top "values" with
    | Json.List claims, Json.List values when claims <> [] && List.length claims = List.length values
        && List.length claims <= 4 ->
      List.mapi (fun i (c, v) -> read_claim arrays of_policy sizes objective is_domain i c v) (List.combine claims values)
    | _ -> malformed "every claim needs its hints, and there must be one" in
  let names = List.map (fun (c : claim) -> c.name) claims in
  require (List.length (List.sort_uniq compare names) = List.length names) "two claims have one name";
  if temporal then List.iter (fun (c : claim) -> require (match c.name with
    | "given policy" -> List.length claims = 1 | "robust policy" -> is_domain && c.policy = "fixed" | _ -> c.policy = "free")
    "a policy without memory") claims;
  let bet = match law with Domain (_, _, _, Some d) -> List.exists (fun m -> List.mem m (slabs @ of_the_best @ of_differences)) d.methods | _ -> false in
  require (not (temporal && (bet || match learned with Some l -> l.coupled <> [] | None -> false))) "bets or coupled proofs of runs";
  let count = List.length claims and policy i = (List.nth claims i).policy in
  List.iteri (fun number (c : claim) -> Option.iter (fun (i, j) ->
    require (is_domain && i < number && j < number && not (List.mem "pair" [ policy i; policy j ]) && not (List.mem "free" [ policy i; policy j ]))
      "a difference of claims that are not there, or of no policies") c.pair) claims;
  Option.iter (fun l -> List.iter (fun (i, _) -> require (i < count) "a coupled proof of no claim";
    if steps objective <> None && (List.nth claims i).pair <> None then not_covered "differences with step bounds") l.coupled;
    match law with Domain (_, _, { denominators = [||]; _ }, _) -> () | _ -> if l.coupled <> [] then not_covered "coupled values of quotients") learned;
  Hashtbl.iter (fun name _ -> malformed ("unknown member '" ^ plain name ^ "'")) arrays;
  match product with
  | None -> { model; node = Fun.id; edge = Fun.id; graph; objective; law; assumed_support; learned; claims }
  | Some (p, runs, _) ->
    let target = { size = graph.states; get = fun k -> runs.settled (snd (runs.key k)) } in
    { model; node = p.state; edge = Array.get p.transition; graph; objective = { objective with kind = "UNTIL"; target = Some target }; law; assumed_support;
      learned; claims = match part with Some part -> List.map (spread part) claims | None -> claims }
