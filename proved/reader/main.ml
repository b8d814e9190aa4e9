(* TRUSTED for what is asked and printed. tightrope-proved-check FILE: every claim of a certificate is proved, or why not.

   Exit codes: 0 accepted; 1 refused: it does not prove its claims; 2 no certificate; 3 a kind that is not covered. *)

open Refusal

let number x = if x = infinity then "inf" else Printf.sprintf "%.17g" x

(* What is claimed, before the complement: the value is at least, and at most. *)
let claimed (file : Problem.t) (claim : Problem.claim) =
  let bound x = if x = infinity then None else Some (Q.of_float x) in
  if file.objective.complement then
    Option.map (Q.sub Q.one) (bound claim.upper), Option.map (Q.sub Q.one) (bound claim.lower)
  else bound claim.lower, bound claim.upper

let crossed (claim : Problem.claim) = match claim.low, claim.high with
  | Some low, Some high ->
    let found = ref false in
    for s = 0 to low.size - 1 do if low.get s > high.get s then found := true done; !found
  | _ -> false

let check_claim file problem (claim : Problem.claim) =
  let words = claim.name in
  demand (not (crossed claim)) (words ^ ": a lower bound above an upper one");
  let question = Game.question file claim in
  demand (Checker.playable problem question) (words ^ ": a choice has no distribution, or the policy is none");
  let low, high = claimed file claim in
  let hints upward = Hints.hints { file; problem; claim; question; upward } in
  demand (Checker.prove_low problem question (hints false) low) (words ^ ": the lower bound is not proved");
  (match high with
   | Some bound -> demand (Checker.prove_high problem question (hints true) bound) (words ^ ": the upper bound is not proved")
   | None -> ())

let run path =
  let begun = Sys.time () in
  let file = Problem.read path in
  let problem = Game.problem file None in
  List.iter (check_claim file problem) file.claims;
  List.iter (fun (claim : Problem.claim) ->
    Printf.printf "PROVED: %s in [%s, %s]\n" claim.name (number claim.lower) (number claim.upper)) file.claims;
  Printf.printf "digest: %s\nseconds: %.2f\n" file.digest (Sys.time () -. begun)

let () =
  match Sys.argv with
  | [| _; path |] ->
    (try run path with
     | Refused (code, words) ->
       Printf.printf "%s: %s\n" (match code with 1 -> "REFUSED" | 3 -> "NOT COVERED" | _ -> "NO CERTIFICATE") words;
       exit code
     | Stack_overflow | Out_of_memory -> print_endline "REFUSED: it takes more memory than there is"; exit 1
     | Division_by_zero | Not_found | Failure _ | Invalid_argument _ ->
       print_endline "NO CERTIFICATE: numbers or sizes that do not fit"; exit 2)
  | _ -> prerr_endline "usage: tightrope-proved-check CERTIFICATE"; exit 2
