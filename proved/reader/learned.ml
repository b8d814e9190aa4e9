(* Claims over a domain, and claims of the true parameters with data. TRUSTED: [model], [events] and [counts], which say what
   the file says; the rest are hints. *)

open Refusal
open Fields
open Problem

let terms (p : Poly.t) = List.map (fun (m, c) -> c, m) (Poly.to_terms p)

(* TRUSTED. Bounds of parameters, then rows; an equality is two. *)
let domain_polys (d : domain) =
  let parameter i = Poly.parameter i in
  List.concat (List.mapi (fun i (low, high) ->
    [ Poly.minus (parameter i) (Poly.constant low); Poly.minus (Poly.constant high) (parameter i) ])
    (List.combine d.lower d.upper))
  @ List.concat_map (fun (row, bound, equal) ->
    let sum = List.fold_left (fun p (i, c) -> Poly.plus ~times:c p (parameter i)) Poly.zero (List.mapi (fun i c -> i, c) row) in
    let below = Poly.minus (Poly.constant bound) sum in
    if equal then [ below; Poly.minus sum (Poly.constant bound) ] else [ below ]) d.constraints

(* TRUSTED. *)
let model (file : Problem.t) (expression : int vector) (polynomials : Poly.t array) domain =
  let graph = file.graph in
  let polys = Array.map terms polynomials in
  let choice c =
    let a, b = Game.span graph.transition_start c in
    { Checker.gains = Game.reward file None c;
      outcomes = List.init (b - a) (fun i -> { Checker.goes = graph.successor.get (a + i); expr = expression.get (a + i) }) } in
  { Checker.shape = { (Game.problem file None) with rows = (fun _ -> []) };
    table = (fun s -> let a, b = Game.span graph.choice_start s in List.init (b - a) (fun i -> choice (a + i)));
    polys = (fun e -> polys.(e)); domain = List.map terms (domain_polys domain); least = (fun _ -> Q.zero) }

(* TRUSTED. Events with their trials, all choices at which they are drawn; and for every event the number of its interval. *)
let events (file : Problem.t) (expression : int vector) polynomials (data : data) (of_model : Events.t option) =
  let graph = file.graph and known = Hashtbl.create 100 in
  let shared hits = match Hashtbl.find_opt known hits with Some h -> h | None -> Hashtbl.add known hits hits; hits in
  let each_choice f =
    for s = 0 to graph.states - 1 do
      let first, last = Game.span graph.choice_start s in
      for c = first to last - 1 do
        let a, b = Game.span graph.transition_start c in f s (c - first) a b
      done
    done in
  ignore data;
  match of_model with
  | Some events ->
    let trials = Array.make (Array.length events.chances) [] in
    each_choice (fun s i a b ->
      List.iter (fun (k, (opposite, e)) ->
        let hits = shared (List.init (b - a) (fun j -> (expression.get (a + j) = e) <> opposite)) in
        trials.(k) <- { Checker.t_state = s; t_choice = i; hits } :: trials.(k))
        (Events.of_choice events expression a b));
    Array.mapi (fun k g -> { Checker.about = terms g; trials = List.rev trials.(k) }) events.chances,
    Array.init (Array.length events.chances) Fun.id
  | None ->
    let found = ref [] in
    each_choice (fun s i a b ->
      for t = a to b - 1 do
        let p = polynomials.(expression.get t) in
        if not (Poly.is_number p) then begin
          let hits = shared (List.init (b - a) (fun j -> a + j = t)) in
          found := ({ Checker.about = terms p; trials = [ { Checker.t_state = s; t_choice = i; hits } ] }, t) :: !found
        end
      done);
    let found = Array.of_list (List.rev !found) in
    Array.map fst found, Array.map snd found

(* TRUSTED. *)
let counts (file : Problem.t) data =
  let seen = Events.counts data file.graph.transitions and graph = file.graph in
  fun s i j -> seen.(graph.transition_start.get (graph.choice_start.get s + i) + j)

(* Facts of a book as the checker takes them: combinations are written out, products are made. *)
let reasons (space : Region.space) (domain : domain) occurrence =
  let book = space.book and made = ref [] and count = ref 0 and known = Hashtbl.create 100 and sums = Hashtbl.create 100 in
  let add m = made := m :: !made; incr count; Checker.Made (!count - 1) in
  let parameters = List.length domain.lower in
  let place r = (* of constraint r among the polynomials of the domain *)
    let before = List.filteri (fun i _ -> i < r) domain.constraints in
    2 * parameters + List.fold_left (fun n (_, _, equal) -> n + if equal then 2 else 1) 0 before in
  let given : Region.given -> Checker.reference = function
    | Above i -> Dom (2 * i) | Below i -> Dom (2 * i + 1)
    | Row r -> Dom (place r) | Minus_row r -> Dom (place r + 1)
    | Event_low k -> Low k | Event_high k -> High k
    | Chance e -> let s, i, j = occurrence e in Least (s, i, j)
    | Chance_up e -> let s, i, j = occurrence e in Most (s, i, j) in
  let merge l = (* one multiplier for each reference *)
    let table = Hashtbl.create 8 in
    List.iter (fun (y, r) ->
      Hashtbl.replace table r (Q.add y (Option.value ~default:Q.zero (Hashtbl.find_opt table r)))) l;
    Hashtbl.fold (fun r y l -> (y, r) :: l) table [] in
  (* A fact as multiples of references; a number ≥ 0 is left over. *)
  let rec flat i = match Hashtbl.find_opt sums i with
    | Some l -> l
    | None ->
      let l = match book.why.(i) with
        | Region.Given g -> [ Q.one, given g ]
        | Product _ | Square _ -> [ Q.one, single i ]
        | Combine (parts, equal) ->
          merge (List.concat_map (fun (c, j) -> List.map (fun (y, r) -> Q.mul c y, r) (flat j)) parts
            @ List.map (fun (q, k) ->
              if not (Poly.is_number q) then not_covered "products with equalities of the domain";
              let c = Poly.constant_of q in (* c·(a·θ − b) *)
              if Q.sign c > 0 then c, Checker.Dom (place k + 1) else Q.neg c, Checker.Dom (place k)) equal) in
      Hashtbl.replace sums i l; l
  and single i = match Hashtbl.find_opt known i with
    | Some r -> r
    | None ->
      let r = match book.why.(i) with
        | Region.Given g -> given g
        | Product (a, b) -> let a = single a in let b = single b in add (Checker.Prod (a, b))
        | Square p -> add (Checker.Square (terms p))
        | Combine (parts, _) ->
          let l = flat i in
          let rest = List.fold_left (fun p (c, j) -> Poly.plus ~times:(Q.neg c) p book.says.(j)) book.says.(i) parts in
          ignore rest;
          (* the number that is left: the difference of constant terms at any point, here of the polynomials *)
          add (Checker.Comb (l, left i)) in
      Hashtbl.replace known i r; r
  (* The number by which a fact exceeds the multiples of its references. *)
  and left i = match book.why.(i) with
    | Region.Combine (parts, equal) ->
      let rest = List.fold_left (fun p (c, j) -> Poly.plus ~times:(Q.neg c) p book.says.(j)) book.says.(i) parts in
      let rest = List.fold_left (fun p (q, k) ->
        let row, bound, _ = List.nth domain.constraints k in
        let form = Poly.minus (Region.linear_form row) (Poly.constant bound) in
        Poly.minus p (Poly.times q form)) rest equal in
      List.fold_left (fun total (c, j) -> Q.add total (Q.mul c (left j))) (Poly.constant_of rest) parts
    | _ -> Q.zero in
  flat, single, (fun (c, k) -> if Q.sign c > 0 then c, Checker.Dom (place k + 1) else Q.neg c, Checker.Dom (place k)),
  fun () -> List.rev !made

(* NOT TRUSTED. What the region says of the mean of a vector at a choice that has a basis, and why. *)
let over_region file (expression : int vector) polynomials (sets : Sets.t) single equality upward (basis : int vector) =
  let graph = file.graph and forms = Hashtbl.create 100 in
  let region = match sets.polytope with Some r -> r | None -> unproved "bases of choices without a region" in
  let affine e = match Hashtbl.find_opt forms e with
    | Some f -> f
    | None -> let f = Region.affine sets.space polynomials.(e) in Hashtbl.add forms e f; f in
  fun x s i ->
    let c = graph.choice_start.get s + i in
    let k = basis.get c in
    if k < 0 then None
    else begin
      demand (k < Array.length sets.choice_basis) "bases of choices that are not there";
      let direction = Array.make (Region.size sets.space) Q.zero and level = ref Q.zero and equal = ref [] in
      let a, b = Game.span graph.transition_start c in
      for t = a to b - 1 do
        let v = x.(graph.successor.get t) in
        let v = if upward then v else Q.neg v in
        if Q.sign v <> 0 then begin
          let linear, constant, own = affine (expression.get t) in
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

let with_fixed (d : domain) = (* equalities that follow from the bounds are written out *)
  let size = List.length d.lower in
  let fixed = List.concat (List.mapi (fun i (low, high) ->
    if Q.equal low high then [ List.init size (fun j -> if i = j then Q.one else Q.zero), low, true ] else [])
    (List.combine d.lower d.upper)) in
  { d with constraints = d.constraints @ fixed }

(* NOT TRUSTED. Upper bounds of P(k+i)/P(k), k successes and m failures at chance p, until what is left is small. *)
let tails p k m =
  if Q.leq p Q.zero || Q.geq p Q.one then []
  else begin
    let rec more found u k m total =
      let above = Q.mul (Q.of_int m) p and below = Q.mul (Q.of_int (k + 1)) (Q.sub Q.one p) in
      let left = Q.sub below above in
      let small = Q.sign left > 0 && Q.leq (Q.mul (Q.mul u above) (Q.of_bigint (Z.shift_left Z.one 60))) (Q.mul total left) in
      if m = 0 || small then List.rev found
      else begin
        let v = Q.div (Q.mul u above) below in
        let v = Q.make (Z.cdiv (Z.shift_left (Q.num v) 200) (Q.den v)) (Z.shift_left Z.one 200) in
        more (v :: found) v (k + 1) (m - 1) (Q.add total v)
      end in
    more [] Q.one k m Q.one
  end

(* Every claim of the file, or a refusal; the names of the theorems. *)
let check (file : Problem.t) expression polynomials domain (data : data option) (hints : learned) demand_hints =
  let graph = file.graph and domain = with_fixed domain in
  let polynomials = Array.map Poly.of_terms polynomials in
  if file.objective.earned <> None then not_covered "rewards with parameters";
  if file.assumed_support <> None then not_covered "assumed supports of learned models";
  Option.iter (fun d ->
    if d.method_ <> "beta-binomial" && d.method_ <> "clopper-pearson" then not_covered ("the method " ^ d.method_);
    if d.method_ = "clopper-pearson" && d.design <> "generative-fixed" then not_covered "Clopper and Pearson without a fixed plan";
    demand (not d.censored && not (List.exists (fun i -> i = 1 || i = 2) d.stated))
      "the data were not collected as the guarantee needs: it would be nominal") data;
  let used = Hashtbl.create 1000 and place = Hashtbl.create 1000 in
  for s = 0 to graph.states - 1 do
    let first, last = Game.span graph.choice_start s in
    for c = first to last - 1 do
      let a, b = Game.span graph.transition_start c in
      for t = a to b - 1 do
        let e = expression.get t in
        if not (Hashtbl.mem used e) then (Hashtbl.add used e (); Hashtbl.add place e (s, c - first, t - a))
      done
    done
  done;
  let used = List.sort compare (List.of_seq (Hashtbl.to_seq_keys used)) in
  let untied = match data with Some d -> d.shared_by = "transitions" | None -> false in
  let of_model = match data with
    | Some d when not untied -> Some (Events.derive graph expression polynomials (d.shared_by = "events"))
    | _ -> None in
  let evs, interval_of = match data with
    | Some d -> events file expression polynomials d of_model | None -> [||], [||] in
  let wanted = if untied then graph.transitions else Array.length evs in
  let ends = match hints.ends with
    | Some (lower, upper) -> demand (lower.size = wanted) "the intervals do not fit the events"; lower.get, upper.get
    | None -> (fun _ -> 0.0), fun _ -> 1.0 in
  demand (not (untied && hints.region <> None)) "a region beside intervals of transitions";
  let words = if data = None then Sets.no_domain else Sets.contradiction in
  let sets = Sets.project domain polynomials used hints of_model words in
  let flat, single, equality, made = reasons sets.space domain (Hashtbl.find place) in
  let of_expression = Hashtbl.create 1000 in
  List.iter (fun e ->
    let b = Hashtbl.find sets.expressions e in
    Hashtbl.replace of_expression e { Checker.of_expr = e; blo = b.low; bhi = b.high;
      why_lo = flat (Lazy.force b.low_fact); why_hi = flat (Lazy.force b.high_fact) }) used;
  let event_of = Hashtbl.create 1000 in
  if untied then Array.iteri (fun k t -> Hashtbl.replace event_of t k) interval_of;
  let number = Hashtbl.create 1000 in
  List.iteri (fun i e -> Hashtbl.replace number e i) used;
  let expressions = Array.of_list (List.map (Hashtbl.find of_expression) used) in
  let bound_at k =
    if not untied then expressions.(k)
    else begin
      let whole : Checker.bound = Hashtbl.find of_expression (expression.get k) in
      match Hashtbl.find_opt event_of k with
      | None -> whole
      | Some g ->
        let low = Q.of_float (fst ends k) and high = Q.of_float (snd ends k) in
        let whole = if Q.gt low whole.blo then { whole with blo = low; why_lo = [ Q.one, Checker.Low g ] } else whole in
        if Q.lt high whole.bhi then { whole with bhi = high; why_hi = [ Q.one, Checker.High g ] } else whole
    end in
  let transition s i j = graph.transition_start.get (graph.choice_start.get s + i) + j in
  let slot s i j = let t = transition s i j in if untied then t else Hashtbl.find number (expression.get t) in
  let model = model file expression polynomials domain in
  let problem = Checker.boxed model (fun s i j -> let b = bound_at (slot s i j) in b.blo, b.bhi) in
  let delta = match data with Some d -> Q.of_float d.delta | None -> Q.zero in
  let fixed = match data with Some d -> d.method_ = "clopper-pearson" | None -> false in
  let level = Q.div delta (Q.of_int ((if fixed then 2 else 1) * max 1 (Array.length evs))) in
  let bound x = if x = infinity then None else Some (Q.of_float x) in
  List.iter (fun (claim : claim) ->
    let question = Game.question file claim in
    let side upward =
      let over = match if upward then claim.high_basis else claim.low_basis with
        | Some basis when has_basis basis -> Some (over_region file expression polynomials sets single equality upward basis)
        | _ -> None in
      let why, hints = Hints.hints { file; problem; claim; question; upward; over } in
      let why step s i = Option.value ~default:[] (why step s i) in
      (* All facts are made before the checker is called. *)
      if over <> None then begin
        if steps file.objective = None && file.objective.lower_steps = 0 then
          for s = 0 to graph.states - 1 do
            for i = 0 to graph.choice_start.get (s + 1) - graph.choice_start.get s - 1 do ignore (why 0 s i) done
          done
        else Option.iter (fun (r : Region.polytope) ->
          Array.iter (fun (row : Region.row) -> ignore (single (Lazy.force row.fact))) r.rows) sets.polytope
      end;
      why, hints in
    let why_low, low = side false in
    let why_high, high = side true in
    demand_hints file claim problem question low high;
    let cert = { Checker.ask = question; compl = file.objective.complement; lower = bound claim.lower; upper = bound claim.upper;
      low; high; elow = (fun g -> Q.of_float (fst ends interval_of.(g))); ehigh = (fun g -> Q.of_float (snd ends interval_of.(g)));
      parts = (fun q -> Q.num q, Q.den q); level; facts = made ();
      bounds = (if untied then graph.transitions else Array.length expressions); bound_at; slot; why_low; why_high } in
    let holds = match data with
      | None -> Checker.accept_domain model cert
      | Some d when fixed ->
        let seen = counts file d in
        let hints g =
          let k = Checker.tally true seen evs.(g).trials and m = Checker.tally false seen evs.(g).trials in
          tails (cert.elow g) k m, tails (Q.sub Q.one (cert.ehigh g)) m k in
        Checker.accept_fixed model (Array.length evs) (fun g -> evs.(g)) seen delta cert hints
      | Some d -> Checker.accept model (Array.length evs) (fun g -> evs.(g)) (counts file d) delta cert in
    demand holds (claim.name ^ ": the claim is not proved")) file.claims;
  if data = None then "domain_sound" else if fixed then "fixed_sound" else "learned_sound"
