(* NOT BELIEVED. Hints for the proved checker, from the vectors, rankings and witnesses of a file: multipliers of weak
   duality, nature's distributions, vectors of a bounded number of steps. The theorems hold whatever stands here. *)

open Refusal
open Arrays
open Fields
open Problem

let zero = Q.zero and one = Q.one

(* Denominators beyond 256 bits are rounded to the safe side. *)
let rounded upward q =
  if Z.numbits (Q.den q) <= 256 then q
  else begin
    let scaled = Z.shift_left (Q.num q) 192 in
    let whole = if upward then Z.cdiv scaled (Q.den q) else Z.fdiv scaled (Q.den q) in
    Q.make whole (Z.shift_left Z.one 192)
  end

type row = { next : int array; lo : Q.t array; hi : Q.t array; single : bool }

let row_of (c : Checker.choice) =
  let edges = Array.of_list c.edges in
  let lo = Array.map (fun (e : Checker.edge) -> e.lo) edges and hi = Array.map (fun (e : Checker.edge) -> e.hi) edges in
  let single = ref true in
  Array.iteri (fun i a -> if not (a == hi.(i) || Q.equal a hi.(i)) then single := false) lo;
  { next = Array.map (fun (e : Checker.edge) -> e.next) edges; lo; hi; single = !single }

(* Entries by a comparison, then by place. *)
let sorted compare row = let order = Array.init (Array.length row.next) Fun.id in Array.stable_sort compare order; order

let by_value x maximise row i j =
  let c = Q.compare x.(row.next.(i)) x.(row.next.(j)) in if maximise then -c else c

(* The distribution that fills entries in an order. *)
let filled row order =
  let left = ref (Array.fold_left Q.sub one row.lo) and p = Array.copy row.lo in
  Array.iter (fun i ->
    let extra = Q.max zero (Q.min !left (Q.sub row.hi.(i) row.lo.(i))) in
    left := Q.sub !left extra; p.(i) <- Q.add row.lo.(i) extra) order;
  p

let mean x row p =
  let total = ref zero in
  Array.iteri (fun i t -> if Q.sign p.(i) <> 0 then total := Q.add !total (Q.mul p.(i) x.(t))) row.next;
  !total

let optimum x maximise row =
  if row.single then row.lo else filled row (sorted (by_value x maximise row) row)

(* Where filling stops. *)
let pivot x maximise row =
  if row.single then zero
  else begin
    let order = sorted (by_value x maximise row) row in
    let left = ref (Array.fold_left Q.sub one row.lo) and last = ref (Array.length order - 1) and found = ref None in
    Array.iter (fun i ->
      if !found = None then
        let slack = Q.sub row.hi.(i) row.lo.(i) in
        if Q.leq !left slack then found := Some i else left := Q.sub !left slack) order;
    x.(row.next.(Option.value ~default:order.(!last) !found))
  end

let can_be_positive row i =
  let others = ref zero in
  Array.iteri (fun j a -> if j <> i then others := Q.add !others a) row.lo;
  Q.sign row.hi.(i) > 0 && (Q.sign row.lo.(i) > 0 || Q.lt !others one)

(* A distribution with as much as can be on one entry, then by value. *)
let towards x maximise row i =
  filled row (sorted (fun a b -> match a = i, b = i with
    | true, true -> 0 | true, false -> -1 | false, true -> 1 | false, false -> by_value x maximise row a b) row)

(* One bound of a claim. [over x s i]: what a region says of the mean of x at a choice, and why. *)
type 'why side = { file : Problem.t; problem : Checker.problem; claim : claim; question : Checker.question; upward : bool;
                   over : (Q.t array -> int -> int -> (Q.t * 'why) option) option }

(* The hints, and why the means are bounded that they name. *)
let hints { file; problem; claim; question; upward; over } =
  let o = file.objective and n = file.graph.states in
  let last = match steps o with Some k -> k | None -> o.lower_steps in
  let discounted q = match o.discount with None -> q | Some d -> Q.mul (Q.of_float d) q in
  let nature_owns row = not row.single && question.nature_is = Some (not upward) in
  let maximise = match question.nature_is with Some maximise -> maximise | None -> upward in
  let agent_owns = question.policy = None && question.agent_max <> upward in
  let target s = match o.target with Some t -> t.get s | None -> false in
  let barred s = match o.allowed with Some a -> not (a.get s) | None -> false in
  let vector = if upward then claim.high else claim.low in
  let endless s = match vector with Some v -> v.get s = infinity | None -> false in
  (* Infinite bounds get a large number that the rest does not see. *)
  let large = lazy (
    let most = ref one in
    (match vector with Some v -> for s = 0 to n - 1 do
      if v.get s < infinity then most := Q.max !most (Q.abs (Q.of_float (v.get s))) done | None -> ());
    Q.mul !most (Q.of_bigint (Z.shift_left Z.one 200))) in
  let base = lazy (match vector with
    | Some v -> Array.init n (fun s -> let x = v.get s in if x < infinity then Q.of_float x else Lazy.force large)
    | None -> Array.init n (fun s -> if target s then one else zero)) in
  let witness_of_file s = match claim.witness with
    | Some w -> w.get s - file.graph.choice_start.get s | None -> 0 in
  let rule step s = match question.policy with Some policy -> policy step s | None -> Checker.Any in
  let rows s = List.map row_of (problem.rows s) in
  (* Of the box and the region the better one. *)
  let by_region x s i row = match over with
    | None -> None
    | Some _ when Array.exists endless row.next -> None
    | Some over ->
      (match over x s i with
       | Some (b, why) when Q.lt (if upward then b else Q.neg b)
           (let m = mean x row (optimum x upward row) in if upward then m else Q.neg m) -> Some (b, why)
       | _ -> None) in
  let best_mean x s i row = match by_region x s i row with
    | Some (b, _) -> b | None -> mean x row (optimum x maximise row) in
  let backed x s = List.mapi (fun i (c : Checker.choice) ->
    Q.add c.reward (discounted (best_mean x s i (row_of c)))) (problem.rows s) in
  (* One step back: the value and the best choice of every state. *)
  let back step x =
    let best = Array.make n 0 in
    let value s =
      if o.kind = "UNTIL" && target s && steps o <> None && step >= o.lower_steps then one
      else if o.kind = "UNTIL" && barred s then zero
      else begin
        let values = backed x s in
        match rule step s with
        | Checker.Only i -> List.nth values i
        | Checker.Mix weights -> List.fold_left2 (fun total w v -> Q.add total (Q.mul w v)) zero weights values
        | Checker.Any ->
          let better a b = if question.agent_max then Q.gt a b else Q.lt a b in
          List.iteri (fun i v -> if better v (List.nth values best.(s)) then best.(s) <- i) values;
          List.nth values best.(s)
      end in
    let values = Array.init n (fun s -> rounded upward (value s)) in
    values, best in
  let at = ref last and now = lazy (ref (Lazy.force base)) and after = ref [||] and best = ref [||] in
  let rec at_step step =
    let now = Lazy.force now in
    if step = !at then !now
    else if step = !at + 1 && !after <> [||] then !after
    else if step < !at then begin
      let values, choices = back (!at - 1) !now in
      after := !now; now := values; best := choices; at := !at - 1; at_step step
    end else begin
      at := last; now := Lazy.force base; after := [||]; at_step step
    end in
  let x step s = (at_step step).(s) in
  (* What a choice looks at: the next step's vector, or without a next step its own. *)
  let behind step = if step < last then (ignore (at_step step); at_step (step + 1)) else Lazy.force base in
  let rank s = match (if upward then claim.high_rank else claim.low_rank) with Some r -> r.get s | None -> 0 in
  let layer s = rank s / (n + 1) in
  let bounded s = target s || (o.kind = "UNTIL" && barred s) in
  let good base s t =
    if upward then target t || rank t < rank s
    else bounded t || (not (endless t) && Q.sign base.(t) <= 0) || rank t < rank s in
  (* Nature's distribution at a choice of an open state without a next step. *)
  let biased = lazy (match (if upward then claim.high_bias else claim.low_bias) with
    | Some v -> Array.init n (fun s -> Q.of_float (v.get s)) | None -> Array.make n zero) in
  let chosen s i =
    let base = Lazy.force base in
    let row = List.nth (rows s) i in
    if o.kind = "AVERAGE" then begin (* of the best distributions for gain and for bias the one that will do *)
      let bias = Lazy.force biased and earned = (List.nth (problem.rows s) i).Checker.reward in
      let not_worse a b = if upward then Q.leq a b else Q.geq a b in
      let serves p = not_worse (mean base row p) base.(s)
        && not_worse (Q.add earned (mean bias row p)) (Q.add base.(s) bias.(s)) in
      let of_gain = optimum base maximise row in
      if serves of_gain then of_gain else optimum bias maximise row
    end else
    let kept = if not upward then row else
      { row with hi = Array.mapi (fun j h -> if endless row.next.(j) then zero else h) row.hi } in
    let weight good p = Array.exists Fun.id (Array.mapi (fun j t -> good t && Q.sign p.(j) > 0) row.next) in
    if upward && (endless s || Q.lt (Array.fold_left Q.add zero kept.hi) one) then optimum base maximise row
    else if endless s then begin
      let level = if o.kind = "TOTAL" then layer else rank in
      let smaller t = endless t && level t < level s and inside t = endless t && level t <= level s in
      let first good row = List.find_opt (fun j -> good row.next.(j) && can_be_positive row j)
        (List.init (Array.length row.next) Fun.id) in
      match first smaller row with
      | Some j -> towards base maximise row j
      | None ->
        let within = { row with hi = Array.mapi (fun j h -> if inside row.next.(j) then h else zero) row.hi } in
        (match first (fun t -> inside t && rank t < rank s) within with
         | Some j -> towards base maximise within j
         | None -> optimum base maximise within)
    end else begin
      let good = good base s in
      let tie a b = let c = by_value base maximise kept a b in
        if c <> 0 then c else compare (good kept.next.(b)) (good kept.next.(a)) in
      let best = filled kept (sorted tie kept) in
      if weight good best then best
      else begin
        let value p = discounted (mean base kept p) in
        let slack share = (* how much worse this choice may become *)
          let values = backed base s in
          let all = match rule last s with
            | Checker.Mix weights -> List.fold_left2 (fun total w v -> Q.add total (Q.mul w v)) zero weights values
            | _ -> List.nth values i in
          Q.div (Q.abs (Q.sub all base.(s))) share in
        let share = match rule last s with Checker.Mix weights -> List.nth weights i | _ -> one in
        let reach = List.find_opt (fun j -> good kept.next.(j) && can_be_positive kept j)
          (List.init (Array.length kept.next) Fun.id) in
        match reach with
        | None -> best
        | Some _ when Q.sign share <= 0 -> best
        | Some j ->
          let other = towards base maximise kept j in
          let loss = Q.abs (Q.sub (value best) (value other)) and slack = slack share in
          let part = if Q.leq loss slack then one else Q.div slack loss in
          let part = Q.min part (Q.of_ints 1 2) in
          Array.mapi (fun k p -> Q.add (Q.mul (Q.sub one part) p) (Q.mul part other.(k))) best
      end
    end in
  let known = Hashtbl.create 100 and known_at = ref (-1) in
  let support step s i =
    let row () = row_of (List.nth (problem.rows s) i) in
    let by_box () = Checker.Box (pivot (behind step) upward (row ())), None in
    let ends = bounded s && (step >= o.lower_steps || not (target s)) in
    let taken = match rule step s with
      | Checker.Any -> true | Only k -> k = i | Mix weights -> Q.sign (List.nth weights i) > 0 in
    match file.law, over with
    | Point, _ -> Checker.Box zero, None
    | _, None -> by_box ()
    | _ when ends || not taken -> Checker.Box zero, None
    | _ ->
      if !known_at <> step then (Hashtbl.reset known; known_at := step);
      match Hashtbl.find_opt known (s, i) with
      | Some found -> found
      | None ->
        let found = match by_region (behind step) s i (row ()) with
          | Some (b, why) -> Checker.Mean b, Some why | None -> by_box () in
        Hashtbl.add known (s, i) found; found in
  let why step s i = snd (support step s i) in
  why, { Checker.x; endless; rank; layer; lam = (fun step s i -> fst (support step s i));
    witness = (fun step s ->
      if not agent_owns then 0 else if step < last then (ignore (at_step step); !best.(s)) else witness_of_file s);
    pin = (fun step s i ->
      let row = List.nth (rows s) i in
      Array.to_list (if not (nature_owns row) then row.lo
        else if step < last then optimum (behind step) maximise row else chosen s i));
    bias = (fun s -> (Lazy.force biased).(s));
    lam' = (fun s i -> pivot (Lazy.force biased) upward (row_of (List.nth (problem.rows s) i))) }

let crossed (claim : claim) = match claim.low, claim.high with
  | Some low, Some high ->
    let found = ref false in
    for s = 0 to low.size - 1 do if low.get s > high.get s then found := true done; !found
  | _ -> false

(* What can only refuse; [cheap] and [dear]: with the least and the largest rewards. A file is refused, too, where its vectors prove nothing though its claim needs no proof. *)
let demand_hints (file : Problem.t) (claim : claim) cheap dear question low high =
  let unbounded = Problem.steps file.objective = None and words = claim.name in
  demand (not (crossed claim)) (words ^ ": a lower bound above an upper one");
  demand (claim.policy <> "free" || claim.witness <> None || not unbounded) (words ^ ": the agent's witness is missing");
  demand (claim.low_rank <> None || not unbounded || List.mem file.objective.kind [ "DISCOUNTED"; "AVERAGE" ]) (words ^ ": a ranking is missing");
  List.iter (fun problem -> demand (Checker.playable problem question)
    (words ^ ": a choice has no distribution, or the policy is none")) (if cheap == dear then [ cheap ] else [ cheap; dear ]);
  demand (claim.lower >= 0.0 || not (Checker.never_negative cheap)) (words ^ ": no value is below 0");
  let holds max check hints =
    let problem = if max then cheap else dear in
    Checker.owners problem question max hints
    && check problem (Checker.arena problem question max hints) (Checker.rule_for problem question max hints) hints in
  (* The theorem asks nothing of bounds that are not positive; a file is asked that they are inductive, too. *)
  if unbounded && List.mem file.objective.kind [ "UNTIL"; "TOTAL" ] then begin
    let last = file.objective.lower_steps and arena = Checker.arena cheap question true low in
    let rule = Checker.rule_for cheap question true low in
    for s = 0 to file.graph.states - 1 do
      if not (low.endless s) && Q.sign (low.x last s) <= 0 then
        demand (Checker.step_at Q.leq Checker.low_term arena rule (low.x last) (low.x last) (low.lam last) last s)
          (words ^ ": the lower bound is not inductive")
    done
  end;
  let least, most = if file.objective.complement then 1.0 -. claim.upper, 1.0 -. claim.lower else claim.lower, claim.upper in
  let sure = List.mem file.objective.kind [ "UNTIL"; "NEXT" ] in
  if least <= 0.0 then demand (holds true Checker.check_low low) (words ^ ": the lower bound is not inductive");
  if most = infinity || (sure && most >= 1.0) then
    demand (holds false Checker.check_high high) (words ^ ": the upper bound is not inductive")

(* Both sides of a claim about a value. *)
let of_claim (file : Problem.t) problem runs question number =
  let problem = match runs with Some a -> Checker.product problem a | None -> problem in
  let claim = List.nth file.claims number in
  let side upward = snd (hints { file; problem; claim; question; upward; over = None }) in
  let low = side false and high = side true in
  demand_hints file claim problem problem question low high;
  low, high
