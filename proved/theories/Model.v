(* BELIEVED. Models with parameters, and what is said of the true one. *)
From Coq Require Import List Bool Arith QArith Qreals Reals.
From Proved Require Import Game Problem Polynomial Value Ville.
Import ListNotations.
Open Scope R_scope.

(* A choice earns a polynomial; every outcome leads somewhere with the probability of an expression; [shape] holds the rest of the problem.
   [domain] and [least] are what is assumed: these polynomials are not negative, and expressions are at least so large. *)
Record ledge := LEdge { goes : nat; expr : nat }.
Record lchoice := LChoice { gains : poly; outcomes : list ledge }.
Record model := Model {
  shape : problem; table : nat -> list lchoice; polys : nat -> poly; domain : list poly; least : nat -> Q }.

Definition chance (M : model) (theta : nat -> R) (e : ledge) : R := poly_at theta (polys M (expr e)).
Definition instance (M : model) (theta : nat -> R) : Prop :=
  (forall d, In d (domain M) -> 0 <= poly_at theta d) /\
  forall s c, (s < states (shape M))%nat -> In c (table M s) ->
    sumi (fun _ e => chance M theta e) 0 (outcomes c) = 1 /\
    forall e, In e (outcomes c) -> 0 <= chance M theta e /\ Q2R (least M (expr e)) <= chance M theta e.

(* The same with numbers that are earned and bounds [b state choice outcome] in place of expressions. *)
Definition boxed (M : model) (r : nat -> nat -> lchoice -> Q) (b : nat -> nat -> nat -> Q * Q) : problem :=
  let p := shape M in
  Problem (states p) (initial p)
    (fun s => mapi (fun i c => Choice (r s i c)
        (mapi (fun j e => let (l, u) := b s i j in Edge (goes e) l u) 0 (outcomes c))) 0 (table M s))
    (kind_of p) (target p) (allowed p) (terminal p) (first p) (last p) (factor p).
Definition skeleton (M : model) : problem := boxed M (fun _ _ _ => 0%Q) (fun _ _ _ => (0%Q, 1%Q)).

(* The expression of an outcome. Nature keeps to the truth. *)
Definition label (M : model) (c : nat * nat) (j : nat) : option nat :=
  match nth_error (table M (fst c)) (snd c) with
  | Some k => if (fst c <? states (shape M))%nat then option_map expr (nth_error (outcomes k) j) else None
  | None => None
  end.
Definition law (M : model) (theta : nat -> R) (c : nat * nat) (j : nat) : R :=
  match label M c j with Some e => poly_at theta (polys M e) | None => 0 end.
Definition truth (M : model) (theta : nat -> R) : hist -> nat -> nat -> nat -> R := fun _ s i j => law M theta (s, i) j.

(* What an agent can expect of the true model within k more steps; see [value] in Game.v. *)
Fixpoint true_value (M : model) (theta : nat -> R) (a : hist -> nat -> nat -> R) (k : nat) (h : hist) (s : nat) : R :=
  match ends_of (shape M) (length h) s, k with
  | Some b, _ => Q2R b
  | None, O => 0
  | None, S k' => sumi (fun i c => a h s i * (poly_at theta (gains c) + sumi (fun _ e => chance M theta e *
      (Q2R (factor (shape M)) * true_value M theta a k' ((s, i) :: h) (goes e))) 0 (outcomes c))) 0 (table M s)
  end.
(* What the policy is worth, or what a free agent can make sure of. *)
Definition true_bound (M : model) (theta : nat -> R) (q : question) (max : bool) (means : (nat -> R) -> (nat -> R) -> Prop) : Prop :=
  let A := legal_agent (game_of (skeleton M)) (pol_of (skeleton M) q) in
  let worth a := means (fun k => true_value M theta a k [] (initial (shape M)))
                       (fun k => missed (game_of (skeleton M)) (Play a (truth M theta)) k [] (initial (shape M))) in
  if agent_owns q max then exists a, A a /\ worth a else forall a, A a -> worth a.
Definition true_stated (M : model) (theta : nat -> R) (q : question) (complement : bool) (lower upper : option Q) : Prop :=
  let (l, u) := if complement then (less upper, less lower) else (lower, upper) in
  true_bound M theta q true (fun f m => low_means (shape M) f m l) /\
  match u with Some u => true_bound M theta q false (fun f m => high_means (shape M) f m u) | None => True end.
(* The value of one policy less that of another, whoever carries them out; of complements the other way round. *)
Definition true_difference (M : model) (theta : nat -> R) (q q' : question) (complement : bool) (lower upper : option Q) : Prop :=
  forall a a', legal_agent (game_of (skeleton M)) (pol_of (skeleton M) q) a -> legal_agent (game_of (skeleton M)) (pol_of (skeleton M) q') a' ->
    let worth a k := true_value M theta a k [] (initial (shape M)) in
    let lost a k := missed (game_of (skeleton M)) (Play a (truth M theta)) k [] (initial (shape M)) in
    let f k := (if complement then -1 else 1) * (worth a k - worth a' k) in let m k := lost a k + lost a' k in
    low_means (shape M) f m lower /\ match upper with Some u => high_means (shape M) f m u | None => True end.

(* What is seen: (state, choice) and the outcome, latest first. *)
Definition seen := log (nat * nat) nat.
Definition results (M : model) (c : nat * nat) : list nat :=
  match nth_error (table M (fst c)) (snd c) with Some k => seq 0 (length (outcomes k)) | None => [] end.
Definition same (c d : nat * nat) : bool := Nat.eqb (fst c) (fst d) && Nat.eqb (snd c) (snd d).
Fixpoint counts_of (h : seen) (s i j : nat) : nat :=
  match h with
  | [] => 0
  | (c, o) :: h' => if same c (s, i) && Nat.eqb o j then S (counts_of h' s i j) else counts_of h' s i j
  end.
(* [number]: of the batch to which the next trial will belong; how often outcomes with a label were met in batch b. *)
Fixpoint met (label : nat * nat -> nat -> option nat) (number : seen -> nat) (h : seen) (b e : nat) : nat :=
  match h with
  | [] => 0
  | (c, o) :: h' => let here := Nat.eqb (number h') b && match label c o with Some f => Nat.eqb e f | None => false end in
                    if here then S (met label number h' b e) else met label number h' b e
  end.
