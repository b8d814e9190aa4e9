(* BELIEVED. Every claim of a certificate is proved, or why not: a code and words, of the bytes of a file.

   Codes: 0 accepted; 1 refused: it does not prove its claims, or they are nominal; 2 no certificate; 3 a kind that is not covered. *)

open Refusal

let read data : Says.file =
  let members, stated = Archive.read data in
  Fields.check_members (String.length data) members;
  let members = Hashtbl.of_seq (Seq.map (fun (name, (_, content)) -> name, Lazy.force content) (Hashtbl.to_seq members)) in
  let digest = Sha.digest members in
  require (digest = stated) "the file's contents do not match its digest";
  let head = Json.parse (Hashtbl.find members "header.json") and tables = Hashtbl.create 50 in
  (match Says.below head [ "arrays" ] with
   | Json.Object recipes -> List.iter (fun (name, recipe) ->
       Hashtbl.add tables name (Arrays.table recipe (Hashtbl.find members name))) recipes
   | _ -> raise Not_found);
  { certificate = Says.below head [ "certificate" ]; tables; digest }

(* The theorem; [hints]: of everything that is not believed. *)
let theorem (file : Says.file) (hints : Problem.t) claims =
  let complement = Says.complement file and runs = Says.runs file Runs.settling in
  let question = Says.question file runs in
  let upper_lower i = let lower, upper = Says.bounds file i in Says.ends lower, Says.ends upper in
  let each holds = List.iteri (fun i name -> if not (holds i) then
    if Problem.has_cells hints i then not_covered "coupled values that its cells do not prove" else demand false (name ^ ": the claim is not proved")) claims in
  if not (Says.is_over_domain file) then begin
    let problem = Says.problem file in
    each (fun i ->
      let lower, upper = upper_lower i in
      let low, high = Hints.of_claim hints problem runs (question i) i in
      Checker.accept_value problem runs (question i) complement lower upper low high);
    "value_sound"
  end else begin
    let model = Says.model file and data = Says.has_data file and expression = Says.ints file "problem.expression" in
    let polynomials = Says.polynomials file and graph = Says.graph file in
    let events, _, _ as derived = Events.of_model graph expression polynomials (Problem.domain hints) (if data then Says.shared_by file else "nothing") in
    let fixed = data && Says.is_fixed file and count = Array.length events and event g = events.(g) in
    let bets = data && Says.bets file and free = Predictor.free (Problem.domain hints) in
    let share = match if data then Says.methods file else [] with (* of delta, the likelihood's with the bets' *)
      | [ "likelihood" ] -> Q.one
      | [ _ ] when bets -> Q.one
      | [ _; _ ] -> Q.max Q.zero (Q.min Q.one (Option.value (Says.share file) ~default:(Predictor.share free count bets)))
      | _ -> Q.zero in
    let delta = if data then Says.delta file else Q.zero and expressions = 1 + List.fold_left max 0 (List.init expression.size expression.get) in
    let rest = Q.mul share delta and counts = if data then Says.counts file else fun _ _ _ -> 0 in
    let d1 = Q.sub delta rest and likelihood = Q.sign share > 0 in
    let d2 = if bets then Q.mul rest (Bettor.base_share hints (Q.sign d1 > 0) free rest) else rest in
    let d3 = Q.sub rest d2 in
    let pilots, batches, met = if likelihood then Predictor.pilots (Says.plan file), Says.batches file, Says.met_expressions file else [], 0, fun _ _ -> 0 in
    let predict = if likelihood then Predictor.of_model (Problem.domain hints) expression polynomials (Says.prior file) else fun _ _ -> [] in
    let scheme = if bets then Bettor.of_model hints expression polynomials (Says.plan file) d3 else Says.no_bets in
    let classes = if bets then Says.met_classes file scheme else fun _ _ -> 0 in
    let made = Array.of_list (Learned.certificates hints model runs complement question derived counts d1 fixed
      (expressions, pilots, predict, batches, met, d2) (scheme, classes, d3)) in
    each (fun i ->
      let lower, upper = upper_lower i and cert, tails = made.(i) in
      let one, other = match Says.pair file i with Some (one, other) -> one, Some (question other) | None -> i, None in
      let cert = { cert with Checker.ask = question one; versus = other; reader = runs; compl = complement; lower; upper } in
      if not data then Checker.accept_domain model cert
      else if fixed then Checker.accept_fixed model count event counts d1 expressions pilots predict batches met d2 cert tails
      else Checker.accept model count event counts d1 expressions pilots predict batches met d2 scheme classes d3 cert);
    if not data then "domain_sound" else if fixed then "fixed_sound" else "learned_sound"
  end

let proved data =
  let file = read data in
  let hints = Problem.read file in
  Says.check_known file;
  let claims = match Says.at file "claims" with
    | Json.List l -> List.mapi (fun i _ -> Says.text file (Printf.sprintf "claims.%d.name" i)) l | _ -> raise Not_found in
  let theorem = theorem file hints claims in
  let sure = (if Says.is_over_domain file && Says.has_data file
    then Printf.sprintf ", with probability 1 - %.17g" (Says.real file "problem.data.delta") else "") ^ Says.assumed file in
  String.concat "" (List.mapi (fun i name ->
    let lower, upper = Says.bounds file i in
    Printf.sprintf "PROVED: %s in [%.17g, %.17g]%s\n" name lower upper sure) claims)
  ^ Printf.sprintf "theorems: %s\ndigest: %s\nseconds: %.2f\n" theorem file.digest (Sys.time ())

let of_bytes data =
  try 0, proved (data ()) with
  | Refused (code, words) -> code, (match code with 1 -> "REFUSED" | 3 -> "NOT COVERED" | _ -> "NO CERTIFICATE") ^ ": " ^ words ^ "\n"
  | Stack_overflow | Out_of_memory -> 1, "REFUSED: it takes more memory than there is\n"
  | _ -> 2, "NO CERTIFICATE: numbers or sizes that do not fit\n"
