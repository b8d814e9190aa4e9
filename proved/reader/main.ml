(* TRUSTED for what is asked and printed. tightrope-proved-check FILE: every claim of a certificate is proved, or why not.

   Exit codes: 0 accepted; 1 refused: it does not prove its claims; 2 no certificate; 3 a kind that is not covered. *)

open Refusal

let number x = if x = infinity then "inf" else Printf.sprintf "%.17g" x

let crossed (claim : Problem.claim) = match claim.low, claim.high with
  | Some low, Some high ->
    let found = ref false in
    for s = 0 to low.size - 1 do if low.get s > high.get s then found := true done; !found
  | _ -> false

(* What can only refuse: a file is refused, too, where its vectors prove nothing though its claim needs no proof. *)
let demand_hints (file : Problem.t) (claim : Problem.claim) problem question low high =
  let unbounded = Problem.steps file.objective = None and words = claim.name in
  demand (not (crossed claim)) (words ^ ": a lower bound above an upper one");
  demand (claim.policy <> "free" || claim.witness <> None || not unbounded) (words ^ ": the agent's witness is missing");
  demand (claim.low_rank <> None || not unbounded || file.objective.kind = "DISCOUNTED") (words ^ ": a ranking is missing");
  demand (Checker.playable problem question) (words ^ ": a choice has no distribution, or the policy is none");
  let holds max check hints =
    Checker.owners problem question max hints
    && check problem (Checker.arena problem question max hints) (Checker.rule_for problem question max hints) hints in
  let least, most = if file.objective.complement then 1.0 -. claim.upper, 1.0 -. claim.lower else claim.lower, claim.upper in
  let sure = List.mem file.objective.kind [ "UNTIL"; "NEXT" ] in
  if least <= 0.0 then demand (holds true Checker.check_low low) (words ^ ": the lower bound is not inductive");
  if most = infinity || (sure && most >= 1.0) then
    demand (holds false Checker.check_high high) (words ^ ": the upper bound is not inductive")

let check_claim file problem (claim : Problem.claim) =
  let question = Game.question file claim in
  let hints upward = snd (Hints.hints { file; problem; claim; question; upward; over = None }) in
  let low = hints false and high = hints true in
  demand_hints file claim problem question low high;
  let bound x = if x = infinity then None else Some (Q.of_float x) in
  demand (Checker.prove problem question file.objective.complement (bound claim.lower) (bound claim.upper) low high)
    (claim.name ^ ": the claim is not proved")

let run path =
  let begun = Sys.time () in
  let file = Problem.read path in
  let theorem = match file.law, file.learned with
    | Domain (expression, polynomials, domain, data), Some hints ->
      Learned.check file expression polynomials domain data hints demand_hints
    | _ ->
      let problem = Game.problem file None in
      List.iter (check_claim file problem) file.claims;
      "value_sound" in
  let delta = match file.law with Domain (_, _, _, Some d) -> Printf.sprintf ", with probability 1 - %s" (number d.delta) | _ -> "" in
  List.iter (fun (claim : Problem.claim) ->
    Printf.printf "PROVED: %s in [%s, %s]%s\n" claim.name (number claim.lower) (number claim.upper) delta) file.claims;
  Printf.printf "theorems: %s\ndigest: %s\nseconds: %.2f\n" theorem file.digest (Sys.time () -. begun)

let () =
  match Sys.argv with
  | [| _; path |] ->
    (try run path with
     | Refused (code, words) ->
       Printf.printf "%s: %s\n" (match code with 1 -> "REFUSED" | 3 -> "NOT COVERED" | _ -> "NO CERTIFICATE") words;
       exit code
     | Stack_overflow | Out_of_memory -> print_endline "REFUSED: it takes more memory than there is"; exit 1
     | Division_by_zero | Not_found | Failure _ | Invalid_argument _ | Assert_failure _ ->
       print_endline "NO CERTIFICATE: numbers or sizes that do not fit"; exit 2)
  | _ -> prerr_endline "usage: tightrope-proved-check CERTIFICATE"; exit 2
