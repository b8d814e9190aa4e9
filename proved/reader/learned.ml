(* NOT BELIEVED. Certificates of claims over a domain, and of claims of the true parameters with data. *)

open Refusal
open Arrays
open Fields
open Problem

(* What the region says of the mean of a vector at a choice that has a basis, and why. *)
let over_region file (expression : int vector) polynomials (sets : Sets.t) single equality upward (basis : int vector) =
  let graph = file.graph and forms = Hashtbl.create 100 in
  let region = match sets.polytope with Some r -> r | None -> unproved "bases of choices without a region" in
  for c = 0 to basis.size - 1 do demand (basis.get c < Array.length sets.choice_basis) "bases of choices that are not there" done;
  let affine e = match Hashtbl.find_opt forms e with
    | Some f -> f
    | None -> let f = Region.affine sets.space polynomials.(e) in Hashtbl.add forms e f; f in
  fun x s i ->
    let c = graph.choice_start.get s + i in
    let k = basis.get c in
    if k < 0 then None
    else begin
      let direction = Array.make (Region.size sets.space) Q.zero and level = ref Q.zero and equal = ref [] in
      let a, b = Says.span graph.transition_start c in
      for t = a to b - 1 do
        let v = x.(graph.successor.get t) in
        let v = if upward then v else Q.neg v in
        if Q.sign v <> 0 then begin
          let linear, constant, own = affine (expression.get (file.edge t)) in
          level := Q.add !level (Q.mul v constant);
          Array.iteri (fun j y -> if Q.sign y <> 0 then direction.(j) <- Q.add direction.(j) (Q.mul v y)) linear;
          List.iter (fun (q, k) ->
            if not (Poly.is_number q) then not_covered "products with equalities of the domain";
            equal := (Q.neg (Q.mul v (Poly.constant_of q)), k) :: !equal) own
        end
      done;
      let exact, parts = Region.most ~cut:Region.shorter region direction sets.choice_basis.(k) in
      let bound = Hints.rounded true (Q.add !level exact) in
      Some ((if upward then bound else Q.neg bound),
        List.map (fun (c, fact) -> c, single (Lazy.force fact)) parts @ List.map equality !equal)
    end

let has_basis (basis : int vector) =
  let found = ref false in
  for i = 0 to basis.size - 1 do if basis.get i >= 0 then found := true done; !found

(* What takes longer than a minute is not begun. *)
let most_terms = 20_000 and most_trials = 1 lsl 21 and most_together = 1 lsl 25

(* Upper bounds of P(k+i)/P(k), k successes and m failures at chance p, until what is left is small. *)
let tails p k m =
  if Q.leq p Q.zero || Q.geq p Q.one then []
  else begin
    let rec more count found u k m total =
      let above = Q.mul (Q.of_int m) p and below = Q.mul (Q.of_int (k + 1)) (Q.sub Q.one p) in
      let left = Q.sub below above in
      let small = Q.sign left > 0 && Q.leq (Q.mul (Q.mul u above) (Q.of_bigint (Z.shift_left Z.one 60))) (Q.mul total left) in
      if m = 0 || small || count = most_terms then List.rev found
      else begin
        let v = Q.div (Q.mul u above) below in
        let v = Q.make (Z.cdiv (Z.shift_left (Q.num v) 200) (Q.den v)) (Z.shift_left Z.one 200) in
        more (count + 1) (v :: found) v (k + 1) (m - 1) (Q.add total v)
      end in
    more 0 [] Q.one k m Q.one
  end

let nothing : Checker.cert =
  let none = { Checker.x = (fun _ _ -> Q.zero); endless = (fun _ -> false); rank = (fun _ -> 0); layer = (fun _ -> 0);
    lam = (fun _ _ _ -> Checker.Box Q.zero); witness = (fun _ _ -> 0); pin = (fun _ _ _ -> []); bias = (fun _ -> Q.zero); lam' = (fun _ _ -> Q.zero) } in
  { Checker.ask = { Checker.agent_max = true; nature_is = None; policy = None }; compl = false; lower = None; upper = None; low = none; high = none;
    elow = (fun _ -> Q.zero); ehigh = (fun _ -> Q.one); parts = (fun q -> Q.num q, Q.den q); level = Q.one; shares = []; lg = (fun _ -> Z.zero);
    facts = []; bounds = 0; bound_at = (fun _ -> assert false); slot = (fun _ _ _ -> 0); paid = (fun _ _ -> 0); why_low = (fun _ _ _ -> []); why_high = (fun _ _ _ -> []);
    versus = None; reader = None; joint_low = None; joint_high = None; low2 = none; high2 = none; why_low2 = (fun _ _ _ -> []); why_high2 = (fun _ _ _ -> []) }

module Rationals = Map.Make (struct
  type t = Q.t
  let compare p q = let c = Z.compare (Q.num p) (Q.num q) in if c <> 0 then c else Z.compare (Q.den p) (Q.den q)
end)
let logarithm = let known = ref Rationals.empty in
  fun q -> match Rationals.find_opt q !known with Some y -> y | None -> let y = Predictor.log_below q in known := Rationals.add q y !known; y

(* Shares of pilots; and what tangents of the likelihood rest on: a point gives slopes t, and the least that Σ t·f can be. *)
let evidence (hints : Problem.learned) (data : Problem.data option) model used (expressions, pilots, predict, batches, met, delta) =
  match data with
  | Some data when List.exists (fun m -> m = "likelihood" || String.starts_with ~prefix:"value slab" m) data.methods ->
    let sizes = List.init (data.batch_start.size - 1) (fun b ->
      List.fold_left (fun total i -> total + data.batch_count.get i) 0
        (List.init (data.batch_start.get (b + 1) - data.batch_start.get b) (fun i -> data.batch_start.get b + i))) in
    let planned = List.length pilots = 1 in
    demand (not (planned && hints.pilot_share <> None)) "shares of pilots where a plan decides on one";
    let shares = if planned then [ 1 ] else match hints.pilot_share with
      | Some share -> List.init share.size share.get
      | None -> List.init (Predictor.usual sizes + 1) (fun j -> if j = Predictor.usual sizes then 1 else 0) in
    if List.length shares > List.length pilots then not_covered "so many pilots";
    let stub = { nothing with Checker.shares; lg = logarithm } in
    let within = List.for_all (fun p -> Q.sign p >= 0) in
    (* Of rewards nothing is predicted; the checker asks that none with a number among these is negative. *)
    let others = List.filter (fun e -> not (used e)) (List.init expressions Fun.id) in
    List.iteri (fun b _ -> if others <> [] && Checker.times_of b pilots shares > 0
      && not (within (List.map (fun e -> Checker.poly_val (predict b (Checker.earlier b met)) (model.Checker.polys e)) others))
      then not_covered "rewards among probabilities") sizes;
    let known = match Checker.likely model expressions pilots predict stub batches met delta with
      | Some known -> known | None -> unproved "there is nothing to cut" in
    List.iteri (fun b _ ->
      if Checker.times_of b pilots shares > 0 then
        demand (within (List.map (Checker.poly_val (predict b (Checker.earlier b met))) model.Checker.domain)) "there is nothing to cut") sizes;
    shares, known, Some (fun chance ->
      let slopes = Hashtbl.create 100 in
      List.iter (fun (e, k) ->
        let p = chance e in
        demand (p > 0.0) "a cut at a point where something seen has no probability";
        let slope = Z.to_float k /. p in
        demand (Float.is_finite slope && slope > 0.0) "a cut at a point where something seen has no probability";
        Hashtbl.replace slopes e (Q.of_float slope)) (snd known);
      let t e = Hashtbl.find slopes e in
      match Checker.room stub (snd known) t (fst known) with
      | Some y -> (t, Q.make y Checker.unit_log), List.map (fun (e, _) -> e, t e) (snd known)
      | None -> unproved "a logarithm that is not proved")
  | _ -> [], (Z.zero, []), None

(* Of every claim the certificate, and the hints of Clopper and Pearson's ends. [evs]: the events, and the numbers of their
   intervals. *)
let certificates (file : Problem.t) model runs complement question (evs, interval_of, of_model) counts delta fixed seen bets =
  let expression, polynomials, domain, data = match file.law with
    | Domain (e, p, d, data) -> e, Array.map Poly.of_terms p, d, data | _ -> assert false in
  let hints = Option.get file.learned in
  let graph = file.model and written = List.length domain.constraints in
  let domain = Region.with_fixed domain in
  let used = Hashtbl.create 1000 and place = Hashtbl.create 1000 in
  let nodes = Array.make graph.states (-1) in (* a node of every state, in whose terms facts are *)
  for k = 0 to file.graph.states - 1 do nodes.(file.node k) <- k done;
  let node_of s = if nodes.(s) < 0 then not_covered "a formula over a model with states that are not reached" else nodes.(s) in
  (* The theorems speak of instantiations whose probabilities sum to 1; a file is asked that all do. *)
  let quotients = Quotients.of_domain domain in
  let solved = Region.solve domain and groups = Hashtbl.create 1000 in
  let sums_to_one a b =
    let group = List.sort compare (List.init (b - a) (fun i -> expression.get (a + i))) in
    if not (Hashtbl.mem groups group) then begin
      Hashtbl.add groups group ();
      let total = Quotients.missing quotients (List.map (Array.get polynomials) group) in
      demand (Poly.M.is_empty (if quotients.denominators = [||] then fst (Region.reduce solved total) else total)) "probabilities of a choice do not sum to 1"
    end in
  for s = 0 to graph.states - 1 do
    let first, last = Says.span graph.choice_start s in
    for c = first to last - 1 do
      let a, b = Says.span graph.transition_start c in
      sums_to_one a b;
      for t = a to b - 1 do
        let e = expression.get t in
        if not (Hashtbl.mem used e) then (Hashtbl.add used e (); Hashtbl.add place e (node_of s, c - first, t - a))
      done
    done
  done;
  let used = List.sort compare (List.of_seq (Hashtbl.to_seq_keys used)) in
  let together = Array.fold_left (fun total (e : Checker.event) ->
    let trials = Checker.tally true counts e.trials + Checker.tally false counts e.trials in
    if trials > most_trials then not_covered "an event of more than 2,000,000 trials";
    total + trials) 0 evs in
  if together > most_together then not_covered "more than 30,000,000 trials of events";
  let untied = match data with Some d -> d.shared_by = "transitions" | None -> false in
  let wanted = if untied then graph.transitions else Array.length evs in
  let ends = match hints.ends with
    | Some (lower, upper) -> demand (lower.size = wanted) "the intervals do not fit the events"; lower.get, upper.get
    | None -> (fun _ -> 0.0), fun _ -> 1.0 in
  demand (not (untied && hints.region <> None)) "a region beside intervals of transitions";
  let words = if data = None then Sets.no_domain else Sets.contradiction in
  let shares, evident, known = evidence hints data model (Hashtbl.mem place) seen in
  let support = Q.of_float (Option.value ~default:0.0 file.assumed_support) in
  let earned = match file.objective.earned with Some v -> List.sort_uniq compare (List.init v.size v.get) | None -> [] in
  let space = Region.space domain (List.concat_map (fun e -> let f, k = Quotients.split quotients polynomials.(e) in
    [ f; Quotients.bottom quotients k ]) used) in
  (* Outcomes of several denominators sum to 1 by the equations alone. *)
  if quotients.denominators <> [||] && not (Array.for_all (Checker.event_ok model) evs) then not_covered "choices with several denominators";
  let wagers = Hashtbl.create 10 and stages = Hashtbl.create 4 in
  let slab_row stage part = match Hashtbl.find_opt wagers (stage, part) with
    | Some made -> let _, _, _, row = Lazy.force made in (row : Region.row)
    | None -> unproved "no such row of a slab" in
  let size, _, _, batches, _, _ = seen in
  List.iteri (fun i (stage : Problem.stage) ->
    let sets = Sets.project space polynomials used [] { hints with region = Some stage.within } of_model known support words (i + 1) slab_row in
    Hashtbl.replace stages (i + 1) sets;
    let scheme, _, _ = bets in
    Array.iter (fun side -> demand (side < scheme.Checker.parties) "a side of a slab that is not bet on") stage.sides;
    let rows = lazy (Wagers.prepare model size batches bets { nothing with lg = logarithm } evident) in
    Array.iteri (fun part point -> Hashtbl.replace wagers (i, part) (lazy (
      let wager, p = Wagers.make space (Lazy.force rows) polynomials sets.expressions point stage.shares.(part) stage.off.(part) stage.sides.(part) in
      i, sets.expressions, wager, Region.row_of space (Wagered (i * Problem.most_rows + part)) p))) stage.near_points) hints.slab;
  let sets = Sets.project space polynomials used earned hints of_model known support words 0 slab_row in
  Hashtbl.replace stages 0 sets;
  let { Reasons.flat; single; equality; made; _ } as root = Reasons.make space domain written (Hashtbl.find place)
    (fun k -> fst ((Hashtbl.find stages (k / Sets.of_stage)).Sets.tangent (k mod Sets.of_stage)))
    (fun k -> let stage, ends, wager, _ = Lazy.force (Hashtbl.find wagers (k / Problem.most_rows, k mod Problem.most_rows)) in stage, size, ends, wager) in
  let of_expression = Hashtbl.create 1000 in
  let bound_of table e =
    let b : Sets.ends = Hashtbl.find table e in
    { Checker.of_expr = e; blo = b.low; bhi = b.high; why_lo = flat (Lazy.force b.low_fact); why_hi = flat (Lazy.force b.high_fact) } in
  List.iter (fun e -> Hashtbl.replace of_expression e (bound_of sets.expressions e)) used;
  let rewards = Array.of_list (List.map (bound_of sets.rewards) earned) in
  let event_of = Hashtbl.create 1000 in
  if untied then Array.iteri (fun k t -> Hashtbl.replace event_of t k) interval_of;
  let number = Hashtbl.create 1000 in
  List.iteri (fun i e -> Hashtbl.replace number e i) used;
  let expressions = Array.of_list (List.map (Hashtbl.find of_expression) used) in
  let probabilities = if untied then graph.transitions else Array.length expressions in (* bounds of rewards come after these *)
  let bound_at k =
    if k >= probabilities then rewards.(k - probabilities)
    else if not untied then expressions.(k)
    else begin
      let whole : Checker.bound = Hashtbl.find of_expression (expression.get k) in
      match Hashtbl.find_opt event_of k with
      | None -> whole
      | Some g ->
        let low = Q.of_float (fst ends k) and high = Q.of_float (snd ends k) in
        let whole = if Q.gt low whole.blo then { whole with blo = low; why_lo = [ Q.one, Checker.Low g ] } else whole in
        let whole = if Q.lt high whole.bhi then { whole with bhi = high; why_hi = [ Q.one, Checker.High g ] } else whole in
        if Q.sign support > 0 && Q.geq support whole.bhi
        then { whole with blo = whole.bhi; why_lo = (let s, i, j = Hashtbl.find place (expression.get k) in [ Q.one, Checker.Least (s, i, j) ]) } else whole
    end in
  let transition s i j = graph.transition_start.get (graph.choice_start.get (file.node s) + i) + j in
  let slot s i j = let t = transition s i j in if untied then t else Hashtbl.find number (expression.get t) in
  let prices = Hashtbl.create 100 in
  List.iteri (fun i e -> Hashtbl.replace prices e (probabilities + i)) earned;
  let paid s i = match file.objective.earned with
    | Some v -> Hashtbl.find prices (v.get (graph.choice_start.get s + i)) | None -> 0 in
  let priced upward = Checker.boxed (Checker.of_runs model { nothing with reader = runs }) (Checker.pays { nothing with bound_at; paid } upward)
    (fun s i j -> let b = bound_at (slot s i j) in b.blo, b.bhi) in
  let cheap = priced false in
  let dear = if earned = [] then cheap else priced true in
  let level = if evs = [||] then Q.one else Q.div delta (Q.of_int ((if fixed then 2 else 1) * Array.length evs)) in
  let bound x = if x = infinity then None else Some (Q.of_float x) in
  let of_policy number (claim : claim) =
    let question = question number in
    let side upward =
      let over = match if upward then claim.high_basis else claim.low_basis with
        | Some basis when has_basis basis && quotients.denominators <> [||] -> not_covered "bases of choices with quotients"
        | Some basis when has_basis basis -> Some (over_region file expression polynomials sets single equality upward basis)
        | _ -> None in
      let why, hints = Hints.hints { file; problem = (if upward then dear else cheap); claim; question; upward; over } in
      let why step s i = Option.value ~default:[] (why step s i) in
      (* All facts are made before the checker is called. *)
      if over <> None then begin
        if steps file.objective = None && file.objective.lower_steps = 0 then
          for s = 0 to file.graph.states - 1 do
            for i = 0 to file.graph.choice_start.get (s + 1) - file.graph.choice_start.get s - 1 do ignore (why 0 s i) done
          done
        else Option.iter (fun (r : Region.polytope) ->
          Array.iter (fun (row : Region.row) -> ignore (single (Lazy.force row.fact))) r.rows) sets.polytope
      end;
      why, hints in
    let why_low, low = side false in
    let why_high, high = side true in
    Hints.demand_hints file claim cheap dear question low high;
    question, low, high, why_low, why_high in
  let policies = List.mapi (fun number (claim : claim) -> if claim.pair <> None then None else Some (of_policy number claim)) file.claims in
  List.mapi (fun number (claim : claim) ->
    let of_claim i = Option.get (List.nth policies i) in
    let one, other = match claim.pair with Some (one, other) -> one, Some (of_claim other) | None -> number, None in
    let ask, low, high, why_low, why_high as first = of_claim one in
    let second = Option.value ~default:first other in
    let _, low2, high2, why_low2, why_high2 = second in
    if claim.pair <> None && not (Float.is_finite claim.lower && Float.is_finite claim.upper) then not_covered "differences without an end";
    let joint_low, joint_high = match List.find_opt (fun (of_claim, _) -> of_claim = number) hints.coupled with
      | None -> None, None
      | Some (_, rows) ->
        let parts = List.map (fun (q, l, h, _, _) -> q, l, h) (if other = None then [ first ] else [ first; second ]) in
        Coupled.of_claim file model complement claim space sets polynomials expression rows root parts in
    let cert = { Checker.ask; versus = Option.map (fun (q, _, _, _, _) -> q) other; reader = runs; compl = complement; lower = bound claim.lower; upper = bound claim.upper;
      joint_low; joint_high; low2; high2; why_low2; why_high2; low; high; elow = (fun g -> Q.of_float (fst ends interval_of.(g))); ehigh = (fun g -> Q.of_float (snd ends interval_of.(g)));
      parts = (fun q -> Q.num q, Q.den q); level; shares; lg = logarithm; facts = made ();
      bounds = probabilities + Array.length rewards; bound_at; slot; paid; why_low; why_high } in
    let tails g =
      let k = Checker.tally true counts evs.(g).Checker.trials and m = Checker.tally false counts evs.(g).trials in
      tails (cert.elow g) k m, tails (Q.sub Q.one (cert.ehigh g)) m k in
    cert, tails) file.claims
