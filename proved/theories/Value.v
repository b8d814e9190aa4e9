(* The checker of values, and why what it accepts is so. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Problem Basics Stationary Sums Rewards Averages.
Import ListNotations.
Open Scope R_scope.

(* ---------- The checker ---------- *)

(* Not believed: anything may stand here. *)
Record hints := Hints {
  x : nat -> nat -> Q; endless : nat -> bool; rank : nat -> nat; layer : nat -> nat;
  lam : nat -> nat -> nat -> support; witness : nat -> nat -> nat; pin : nat -> nat -> nat -> list Q;
  bias : nat -> Q; lam' : nat -> nat -> Q }.

(* BELIEVED *)
Fixpoint mapi {A B} (f : nat -> A -> B) (i : nat) (l : list A) : list B :=
  match l with [] => [] | a :: l' => f i a :: mapi f (S i) l' end.
(* END *)
Fixpoint pin_edges (l : list edge) (q : list Q) {struct l} : list edge :=
  match l with
  | [] => []
  | e :: l' => match q with
               | [] => Edge (next e) 0 0 :: pin_edges l' []
               | a :: q' => Edge (next e) a a :: pin_edges l' q'
               end
  end.
Definition pinned (p : problem) (q : nat -> nat -> nat -> list Q) : game :=
  Game (states p)
    (fun j s => mapi (fun i c => Choice (reward c) (pin_edges (edges c) (q (Nat.min j (horizon p)) s i))) 0 (rows p s))
    (ends_of p) (factor p).

Fixpoint is_pin (l : list edge) (q : list Q) {struct l} : bool :=
  match l, q with
  | [], [] => true
  | e :: l', a :: q' => Qle_bool 0 a && Qle_bool (lo e) a && Qle_bool a (hi e) && is_pin l' q'
  | _, _ => false
  end.
(* f j s at all steps up to the horizon and all states where the play has not ended *)
Definition whenever (p : problem) (f : nat -> nat -> bool) : bool :=
  below (S (horizon p)) (fun j => below (states p) (fun s => match ends_of p j s with Some _ => true | None => f j s end)).
Definition pins (p : problem) (q : nat -> nat -> nat -> list Q) : bool :=
  whenever p (fun j s => foralli (fun i c => is_pin (edges c) (q j s i) && Qeq_bool (qsum (fun a => a) (q j s i)) 1) 0 (rows p s)).

Definition step_at (le : Q -> Q -> bool) (term : (nat -> Q) -> Q -> edge -> Q) (G : game) (pol : nat -> nat -> rule)
    (x y : nat -> Q) (lam : nat -> nat -> support) (j s : nat) : bool :=
  match ends G j s with
  | Some b => le (x s) b
  | None => rule_le le (pol j s) (x s) (fun i c => backup (discount G) term y (lam s i) c) (choices_of G j s)
  end.
Fixpoint steps (le : Q -> Q -> bool) (term : (nat -> Q) -> Q -> edge -> Q) (G : game) (pol : nat -> nat -> rule)
    (h : hints) (k : nat) : bool :=
  match k with
  | O => true
  | S j => let y := x h (S j) in let z := x h j in
           below (size G) (step_at le term G pol z y (lam h j) j) && steps le term G pol h j
  end.

Definition base_low (p : problem) (G : game) (pol : nat -> nat -> rule) (h : hints) : nat -> bool :=
  let K := horizon p in let z := x h K in
  match last p with
  | Some _ => fun s => match ends G K s with Some b => Qle_bool (z s) b | None => Qle_bool (z s) 0 end
  | None =>
      match kind_of p with
      | Until | Total => sum_low_at G K pol z (endless h) (rank h) (layer h) (lam h K)
      | Reach_reward => reach_low_at G K pol z (endless h) (rank h) (lam h K)
      | Discounted => disc_low_at G K pol z (lam h K)
      | Average => average_at Qle_bool low_term G K pol z (bias h) (lam h K) (lam' h)
      | Next | Cumulative => fun _ => false
      end
  end.
Definition base_high (p : problem) (G : game) (pol : nat -> nat -> rule) (h : hints) : nat -> bool :=
  let K := horizon p in let z := x h K in
  match last p with
  | Some _ => fun s => match ends G K s with Some b => Qle_bool b (z s) | None => Qle_bool 0 (z s) end
  | None =>
      match kind_of p with
      | Until | Total => sum_high_at G K pol z (endless h) (lam h K)
      | Reach_reward => reach_high_at G K pol z (endless h) (rank h) (lam h K)
      | Discounted => disc_high_at G K pol z (lam h K)
      | Average => average_at geb high_term G K pol z (bias h) (lam h K) (lam' h)
      | Next | Cumulative => fun _ => false
      end
  end.
(* Infinite bounds and steps do not go together; nor do they with discounts. *)
Definition may_be_endless (p : problem) : bool :=
  match last p, horizon p with
  | None, O => match kind_of p with Discounted | Average => false | _ => true end
  | _, _ => false
  end.
Definition no_endless (p : problem) (h : hints) : bool :=
  may_be_endless p || below (states p) (fun s => negb (endless h s)).

Definition check_low p G pol h : bool :=
  no_endless p h && below (size G) (base_low p G pol h) && steps Qle_bool low_term G pol h (horizon p).
Definition check_high p G pol h : bool :=
  no_endless p h && below (size G) (base_high p G pol h) && steps geb high_term G pol h (horizon p).

(* What the owners do is written in the hints. *)
(* BELIEVED *)
Definition agent_owns (q : question) (max : bool) : bool :=
  match policy q with None => Bool.eqb (agent_max q) max | Some _ => false end.
(* END *)
Definition nature_owns (q : question) (max : bool) : bool :=
  match nature_is q with Some m => Bool.eqb m max | None => false end.
Definition rule_for (p : problem) (q : question) (max : bool) (h : hints) (j s : nat) : rule :=
  if agent_owns q max then Only (witness h (Nat.min j (horizon p)) s) else pol_of p q j s.
Definition arena (p : problem) (q : question) (max : bool) (h : hints) : game :=
  if nature_owns q max then pinned p (pin h) else game_of p.
Definition owners (p : problem) (q : question) (max : bool) (h : hints) : bool :=
  (if agent_owns q max then whenever p (fun j s => (witness h j s <? length (rows p s))%nat) else true) &&
  (if nature_owns q max then pins p (pin h) else true).

(* There is something to speak about: the problem is of its kind, sets are not empty, the policy is one. *)
Definition possible (p : problem) (c : choice) : bool :=
  forallb (fun e => (next e <? states p)%nat && Qle_bool 0 (lo e) && Qle_bool (lo e) (hi e)) (edges c) &&
  Qle_bool (qsum lo (edges c)) 1 && Qle_bool 1 (qsum hi (edges c)).
Definition well_posed (p : problem) : bool :=
  (initial p <? states p)%nat &&
  match kind_of p with
  | Until => match last p with Some k => (first p <=? k)%nat | None => true end && Qeq_bool (factor p) 1
  | Next => match last p with Some k => Nat.eqb k 1 | None => false end && Nat.eqb (first p) 0 && Qeq_bool (factor p) 1
  | Cumulative => match last p with Some _ => true | None => false end && Nat.eqb (first p) 0 && Qeq_bool (factor p) 1
  | Reach_reward | Total | Average => match last p with Some _ => false | None => true end && Nat.eqb (first p) 0 && Qeq_bool (factor p) 1
  | Discounted => match last p with Some _ => false | None => true end && Nat.eqb (first p) 0 &&
                  Qltb 0 (factor p) && Qltb (factor p) 1
  end.
Definition earns_rightly (p : problem) (c : choice) : bool :=
  match kind_of p with
  | Until | Next => Qeq_bool (reward c) 0
  | Reach_reward | Total => Qle_bool 0 (reward c)
  | Cumulative | Discounted | Average => true
  end.
Definition is_policy (r : rule) (cs : list choice) : bool :=
  match r with
  | Any => (0 <? length cs)%nat
  | Only i => (i <? length cs)%nat
  | Mix w => forallb (Qle_bool 0) w && Qeq_bool (mixed (fun _ _ => 1%Q) w 0 cs) 1
  end.
Definition playable (p : problem) (q : question) : bool :=
  well_posed p && below (states p) (fun s => forallb (possible p) (rows p s)) &&
  whenever p (fun j s => is_policy (pol_of p q j s) (rows p s) &&
                         rule_all (pol_of p q j s) (fun _ => earns_rightly p) (rows p s)).

(* What holds of all plays. *)
Definition never_negative (p : problem) : bool :=
  below (states p) (fun s => forallb (fun c => Qle_bool 0 (reward c)) (rows p s) &&
    match kind_of p with Reach_reward => Qle_bool 0 (terminal p s) | _ => true end).
Definition is_probability (p : problem) : bool := match kind_of p with Until | Next => true | _ => false end.

(* Numbers that hints give for means of x are proved by whoever calls these two. *)
Definition shows_low (p : problem) (q : question) (h : hints) (b : option Q) : bool :=
  playable p q &&
  ((match b with Some b => Qle_bool b 0 && never_negative p | None => false end) ||
   (owners p q true h && check_low p (arena p q true h) (rule_for p q true h) h &&
    ((may_be_endless p && unending (ends_of p 0) (endless h) (initial p)) ||
     match b with Some b => Qle_bool b (x h 0 (initial p)) | None => false end))).
Definition shows_high (p : problem) (q : question) (h : hints) (b : Q) : bool :=
  playable p q &&
  ((is_probability p && Qle_bool 1 b) ||
   (owners p q false h && check_high p (arena p q false h) (rule_for p q false h) h &&
    negb (endless h (initial p)) && Qle_bool (x h 0 (initial p)) b)).
Definition shows (p : problem) (q : question) (complement : bool) (lower upper : option Q) (low high : hints) : bool :=
  let (l, u) := if complement then (less upper, less lower) else (lower, upper) in
  shows_low p q low l && match u with Some u => shows_high p q high u | None => true end.
(* Without such numbers. *)
Definition alone (h : hints) : hints :=
  Hints (x h) (endless h) (rank h) (layer h)
    (fun j s i => match lam h j s i with Mean _ => Box 0 | box => box end) (witness h) (pin h) (bias h) (lam' h).
Definition prove (p : problem) (q : question) (complement : bool) (lower upper : option Q) (low high : hints) : bool :=
  shows p q complement lower upper (alone low) (alone high).
