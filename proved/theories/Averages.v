(* Long-run averages: a gain that does not grow, and a bias that pays for what is earned. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Basics Stationary Sums.
Import ListNotations.
Open Scope R_scope.

(* ---------- The checker ---------- *)

Definition unpaid (c : choice) : choice := Choice 0 (edges c).
Definition average_at (le : Q -> Q -> bool) (term : (nat -> Q) -> Q -> edge -> Q) (G : game) (K : nat) (pol : nat -> nat -> rule)
    (x bias : nat -> Q) (lam : nat -> nat -> support) (lam' : nat -> nat -> Q) (s : nat) : bool :=
  match ends G K s with
  | Some _ => false
  | None =>
      rule_le le (pol K s) (x s) (fun i c => backup (discount G) term x (lam s i) (unpaid c)) (choices_of G K s) &&
      rule_le le (pol K s) (Qplus (x s) (bias s)) (fun i c => backup (discount G) term bias (Box (lam' s i)) c) (choices_of G K s)
  end.

(* ---------- Proofs ---------- *)

Section Averages.
Variables (G : game) (pol : nat -> nat -> rule) (P : play) (K : nat).
Hypothesis (LA : legal_agent G pol (agent P)) (LN : legal_nature G (nature P)).
Notation cs s := (choices_of G K s).
Notation en s := (ends G K s).
Notation pl s := (pol K s).
Hypothesis St : forall j s, (K <= j)%nat -> choices_of G j s = cs s /\ ends G j s = en s /\ pol j s = pl s.
Hypothesis W : forall s c e, (s < size G)%nat -> In c (cs s) -> In e (edges c) -> (next e < size G)%nat.
Hypothesis D1 : Q2R (discount G) = 1.
Notation late := (late K).
Variables (x bias : nat -> Q) (lam : nat -> nat -> support) (lam' : nat -> nat -> Q).
Local Notation D0 := (D0 G D1).
Local Notation times_one := (times_one G P D1).
Local Notation edges_ge := (edges_ge G pol P K LN St).
Local Notation edges_le := (edges_le G pol P K LN St).

Lemma unpaid_at g term y sup c : Q2R (backup g term y sup (unpaid c)) = Q2R (backup g term y sup c) - Q2R (reward c).
Proof. unfold backup, unpaid. simpl. rewrite !Q2R_plus, Q2R_0. lra. Qed.

Lemma mean_one h s : late h -> (s < size G)%nat -> en s = None -> mean G P h s (fun _ => 0) (fun _ _ => 1) = 1.
Proof.
  intros Hl Hs Hb. apply Rle_antisym; [apply (at_most_ G pol P K LA St h s Hl Hs Hb)|apply (at_ge G pol P K LA St h s Hl Hs Hb)];
    intros i c [Hi _]; rewrite Rplus_0_l.
  - apply (edges_le h s Hl Hs Hb i c (fun _ => 1)); [exact Hi|]. intros; right; lra.
  - apply (edges_ge h s Hl Hs Hb i c (fun _ => 1)); [exact Hi|]. intros; right; lra.
Qed.
(* One step of k gain + bias + B. *)
Lemma split_mean h s k B : late h -> (s < size G)%nat -> en s = None ->
  mean G P h s (fun c => Q2R (reward c)) (fun _ t => INR k * Q2R (x t) + Q2R (bias t) + B) =
  mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (bias t)) + INR k * mean G P h s (fun _ => 0) (fun _ t => Q2R (x t)) + B.
Proof.
  intros Hl Hs Hb. pose proof (mean_one h s Hl Hs Hb) as M.
  transitivity (mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (bias t)) + INR k * mean G P h s (fun _ => 0) (fun _ t => Q2R (x t))
    + B * mean G P h s (fun _ => 0) (fun _ _ => 1)); [|rewrite M; lra].
  rewrite <- !mean_lin. apply mean_ext; intros; lra.
Qed.
Lemma once h s k : late h -> en s = None -> value G P (S k) h s =
  mean G P h s (fun c => Q2R (reward c)) (fun i t => value G P k ((s, i) :: h) t).
Proof. intros Hl Hb. rewrite (value_S G pol P K St k h s Hl Hb). apply mean_ext; [reflexivity|]. intros i t. rewrite D1. lra. Qed.
Lemma small d eps : 0 < eps -> exists k0, forall k, (k0 <= k)%nat -> 0 < INR k /\ d / INR k <= eps.
Proof.
  intros He. destruct (INR_above (d / eps)) as (n & Hn). exists (S n). intros k Hk.
  assert (L : INR (S n) <= INR k) by now apply le_INR. rewrite S_INR in L. pose proof (pos_INR n).
  assert (Hk0 : 0 < INR k) by lra. split; [exact Hk0|].
  apply (Rmult_le_reg_r (INR k)); [exact Hk0|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (E : d = d / eps * eps) by (field; lra). rewrite E. assert (d / eps < INR k) by lra. nra.
Qed.

Section Low.
Hypothesis C : forall s, (s < size G)%nat -> average_at Qle_bool low_term G K pol x bias lam lam' s = true.
Hypothesis Kn : known_low G (nature P) late x lam.

Lemma gain_low h s : late h -> (s < size G)%nat -> en s = None ->
  Q2R (x s) <= mean G P h s (fun _ => 0) (fun _ t => Q2R (x t)).
Proof.
  intros Hl Hs Hb. pose proof (C s Hs) as D. unfold average_at in D. rewrite Hb in D. apply andb_prop in D. destruct D as [D _].
  destruct (at_agent G pol P K LA St h s Hl Hs Hb) as (A0 & A1 & A2). rewrite (at_mean G pol P K St h s Hl).
  apply (rule_low (pl s) (cs s) (agent P h s) A0 A1 A2 (x s) _ _ D). intros i c Hi _. rewrite unpaid_at.
  pose proof (ended G pol K St h s Hl Hb) as Hb'. destruct (St (length h) s Hl) as (E1 & _ & _).
  assert (Hi' : nth_error (choices_of G (length h) s) i = Some c) by now rewrite E1.
  pose proof (backup_low G P LN D0 late h s i c x lam Hl Kn Hs Hb' Hi') as B.
  rewrite (sumi_ext (fun j e => nature P h s i j * (Q2R (discount G) * Q2R (x (next e))))
    (fun j e => nature P h s i j * Q2R (x (next e)))) in B by (intros; simpl; rewrite D1; lra). lra.
Qed.
Lemma bias_low h s : late h -> (s < size G)%nat -> en s = None ->
  Q2R (x s) + Q2R (bias s) <= mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (bias t)).
Proof.
  intros Hl Hs Hb. pose proof (C s Hs) as D. unfold average_at in D. rewrite Hb in D. apply andb_prop in D. destruct D as [_ D].
  rewrite <- Q2R_plus, <- times_one.
  apply (at_step_low G pol P K LA LN St h s Hl Hs Hb _ bias (fun s i => Box (lam' s i)) D0); [|exact D].
  intros h' s' i c b _ _ _ _ E. discriminate.
Qed.
Lemma grows_low B : (forall s, (s < size G)%nat -> Q2R (bias s) <= B) ->
  forall k h s, late h -> (s < size G)%nat -> INR k * Q2R (x s) + Q2R (bias s) - B <= value G P k h s.
Proof.
  intros HB. induction k as [|k IH]; intros h s Hl Hs; pose proof (C s Hs) as D; unfold average_at in D;
    (destruct (en s) eqn:Hb; [discriminate|]).
  - rewrite (value_0 G pol P K St h s Hl Hb). simpl. specialize (HB s Hs). lra.
  - rewrite once by assumption.
    apply Rle_trans with (mean G P h s (fun c => Q2R (reward c)) (fun _ t => INR k * Q2R (x t) + Q2R (bias t) + - B)).
    + rewrite split_mean by assumption. pose proof (gain_low h s Hl Hs Hb). pose proof (bias_low h s Hl Hs Hb).
      rewrite S_INR. pose proof (pos_INR k). nra.
    + apply (at_mono G pol P K LA LN St h s Hl Hs Hb). intros i c j e [Hi U] Hj. right.
      apply IH; [now apply late_cons|now apply (inside G K W s i c j)].
Qed.
Theorem average_low eps : 0 < eps -> exists k0, forall k h s, (k0 <= k)%nat -> late h -> (s < size G)%nat ->
  Q2R (x s) - eps <= value G P k h s / INR k.
Proof.
  intros He. destruct (bounded (fun s => Q2R (bias s)) (size G)) as (B & _ & HB).
  destruct (bounded (fun s => B - Q2R (bias s)) (size G)) as (D & D0 & HD).
  destruct (small D eps He) as (k0 & H0). exists k0. intros k h s Hk Hl Hs. destruct (H0 k Hk) as [Pk Hd].
  pose proof (grows_low B HB k h s Hl Hs) as V. specialize (HD s Hs).
  apply (Rmult_le_reg_r (INR k)); [exact Pk|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (D <= eps * INR k).
  { apply (Rmult_le_compat_r (INR k)) in Hd; [|lra]. unfold Rdiv in Hd. rewrite Rmult_assoc, Rinv_l, Rmult_1_r in Hd by lra. exact Hd. }
  lra.
Qed.
End Low.

Section High.
Hypothesis C : forall s, (s < size G)%nat -> average_at geb high_term G K pol x bias lam lam' s = true.
Hypothesis Kn : known_high G (nature P) late x lam.

Lemma gain_high h s : late h -> (s < size G)%nat -> en s = None ->
  mean G P h s (fun _ => 0) (fun _ t => Q2R (x t)) <= Q2R (x s).
Proof.
  intros Hl Hs Hb. pose proof (C s Hs) as D. unfold average_at in D. rewrite Hb in D. apply andb_prop in D. destruct D as [D _].
  destruct (at_agent G pol P K LA St h s Hl Hs Hb) as (A0 & A1 & A2). rewrite (at_mean G pol P K St h s Hl).
  apply (rule_high (pl s) (cs s) (agent P h s) A0 A1 A2 (x s) _ _ D). intros i c Hi _. rewrite unpaid_at.
  pose proof (ended G pol K St h s Hl Hb) as Hb'. destruct (St (length h) s Hl) as (E1 & _ & _).
  assert (Hi' : nth_error (choices_of G (length h) s) i = Some c) by now rewrite E1.
  pose proof (backup_high G P LN D0 late h s i c x lam Hl Kn Hs Hb' Hi') as B.
  rewrite (sumi_ext (fun j e => nature P h s i j * (Q2R (discount G) * Q2R (x (next e))))
    (fun j e => nature P h s i j * Q2R (x (next e)))) in B by (intros; simpl; rewrite D1; lra). lra.
Qed.
Lemma bias_high h s : late h -> (s < size G)%nat -> en s = None ->
  mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (bias t)) <= Q2R (x s) + Q2R (bias s).
Proof.
  intros Hl Hs Hb. pose proof (C s Hs) as D. unfold average_at in D. rewrite Hb in D. apply andb_prop in D. destruct D as [_ D].
  rewrite <- Q2R_plus, <- times_one.
  apply (at_step_high G pol P K LA LN St h s Hl Hs Hb _ bias (fun s i => Box (lam' s i)) D0); [|exact D].
  intros h' s' i c b _ _ _ _ E. discriminate.
Qed.
Lemma grows_high B : (forall s, (s < size G)%nat -> - Q2R (bias s) <= B) ->
  forall k h s, late h -> (s < size G)%nat -> value G P k h s <= INR k * Q2R (x s) + Q2R (bias s) + B.
Proof.
  intros HB. induction k as [|k IH]; intros h s Hl Hs; pose proof (C s Hs) as D; unfold average_at in D;
    (destruct (en s) eqn:Hb; [discriminate|]).
  - rewrite (value_0 G pol P K St h s Hl Hb). simpl. specialize (HB s Hs). lra.
  - rewrite once by assumption.
    apply Rle_trans with (mean G P h s (fun c => Q2R (reward c)) (fun _ t => INR k * Q2R (x t) + Q2R (bias t) + B)).
    + apply (at_mono G pol P K LA LN St h s Hl Hs Hb). intros i c j e [Hi U] Hj. right.
      apply IH; [now apply late_cons|now apply (inside G K W s i c j)].
    + rewrite split_mean by assumption. pose proof (gain_high h s Hl Hs Hb). pose proof (bias_high h s Hl Hs Hb).
      rewrite S_INR. pose proof (pos_INR k). nra.
Qed.
Theorem average_high eps : 0 < eps -> exists k0, forall k h s, (k0 <= k)%nat -> late h -> (s < size G)%nat ->
  value G P k h s / INR k <= Q2R (x s) + eps.
Proof.
  intros He. destruct (bounded (fun s => - Q2R (bias s)) (size G)) as (B & _ & HB).
  destruct (bounded (fun s => Q2R (bias s) + B) (size G)) as (D & D0 & HD).
  destruct (small D eps He) as (k0 & H0). exists k0. intros k h s Hk Hl Hs. destruct (H0 k Hk) as [Pk Hd].
  pose proof (grows_high B HB k h s Hl Hs) as V. specialize (HD s Hs).
  apply (Rmult_le_reg_r (INR k)); [exact Pk|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (D <= eps * INR k).
  { apply (Rmult_le_compat_r (INR k)) in Hd; [|lra]. unfold Rdiv in Hd. rewrite Rmult_assoc, Rinv_l, Rmult_1_r in Hd by lra. exact Hd. }
  lra.
Qed.
End High.
End Averages.
