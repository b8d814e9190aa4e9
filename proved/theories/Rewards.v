(* Rewards until something is reached, which are infinite where it may be missed; discounted rewards. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Basics Stationary Sums.
Import ListNotations.
Open Scope R_scope.

(* ---------- The checker, at one state ---------- *)

Definition misses en endless (rank : nat -> nat) (r : rule) (s : nat) (cs : list choice) : bool :=
  forever r (fun c => surely (lower_layer en endless rank s) (edges c))
            (fun c => only_to (same_layer en endless rank s) (edges c)) (fun _ => true) cs.

Definition reach_low_at (G : game) (K : nat) (pol : nat -> nat -> rule) (x : nat -> Q) (endless : nat -> bool)
    (rank : nat -> nat) (lam : nat -> nat -> support) (s : nat) : bool :=
  match ends G K s with
  | Some b => Qle_bool (x s) b
  | None =>
      let cs := choices_of G K s in let r := pol K s in
      rule_all r (fun _ c => Qle_bool 0 (reward c)) cs &&
      (if endless s then misses (ends G K) endless rank r s cs
       else rule_le Qle_bool r (x s) (fun i c => backup (discount G) low_term x (lam s i) c) cs)
  end.

Definition near_end (en : nat -> option Q) (rank : nat -> nat) (s t : nat) : bool :=
  match en t with Some _ => true | None => (rank t <? rank s)%nat end.
Definition reach_high_at (G : game) (K : nat) (pol : nat -> nat -> rule) (x : nat -> Q) (endless : nat -> bool)
    (rank : nat -> nat) (lam : nat -> nat -> support) (s : nat) : bool :=
  if endless s then true else
  match ends G K s with
  | Some b => Qle_bool b (x s)
  | None =>
      let cs := choices_of G K s in let r := pol K s in
      rule_all r (fun _ => finite_edges endless) cs &&
      rule_le geb r (x s) (fun i c => backup (discount G) high_term x (lam s i) c) cs &&
      rule_some r (fun _ c => surely (near_end (ends G K) rank s) (edges c)) cs
  end.

Definition disc_low_at (G : game) (K : nat) (pol : nat -> nat -> rule) (x : nat -> Q) (lam : nat -> nat -> support) (s : nat) : bool :=
  match ends G K s with
  | Some b => Qle_bool (x s) b
  | None => rule_le Qle_bool (pol K s) (x s) (fun i c => backup (discount G) low_term x (lam s i) c) (choices_of G K s)
  end.
Definition disc_high_at (G : game) (K : nat) (pol : nat -> nat -> rule) (x : nat -> Q) (lam : nat -> nat -> support) (s : nat) : bool :=
  match ends G K s with
  | Some b => Qle_bool b (x s)
  | None => rule_le geb (pol K s) (x s) (fun i c => backup (discount G) high_term x (lam s i) c) (choices_of G K s)
  end.

(* ---------- Proofs ---------- *)

Section Rewards.
Variables (G : game) (pol : nat -> nat -> rule) (P : play) (K : nat).
Hypothesis (LA : legal_agent G pol (agent P)) (LN : legal_nature G (nature P)).
Notation cs s := (choices_of G K s).
Notation en s := (ends G K s).
Notation pl s := (pol K s).
Hypothesis St : forall j s, (K <= j)%nat -> choices_of G j s = cs s /\ ends G j s = en s /\ pol j s = pl s.
Hypothesis W : forall s c e, (s < size G)%nat -> In c (cs s) -> In e (edges c) -> (next e < size G)%nat.
Notation used s i c := (nth_error (cs s) i = Some c /\ usable (pl s) i = true).
Notation late := (late K).
Local Notation at_mono := (at_mono G pol P K LA LN St).
Local Notation at_ge := (at_ge G pol P K LA St).
Local Notation at_law := (at_law G pol P K LN St).
Local Notation at_agent := (at_agent G pol P K LA St).
Local Notation at_mean := (at_mean G pol P K St).
Local Notation at_const := (at_const G pol P K LA St).
Local Notation value_S := (value_S G pol P K St).
Local Notation value_end := (value_end G pol P K St).
Local Notation value_0 := (value_0 G pol P K St).
Local Notation missed_S := (missed_S G pol P K St).
Local Notation missed_end := (missed_end G pol P K St).
Local Notation missed_0 := (missed_0 G pol P K St).
Local Notation inside := (inside G K W).
Local Notation edges_ge := (edges_ge G pol P K LN St).
Local Notation edges_le := (edges_le G pol P K LN St).

Lemma missed_bounds k : forall h s, late h -> (s < size G)%nat -> 0 <= missed G P k h s <= 1.
Proof.
  induction k as [|k IH]; intros h s Hl Hs; destruct (en s) as [b|] eqn:Hb.
  1,3: rewrite (missed_end _ h s b Hl Hb); lra.
  - rewrite missed_0 by assumption. lra.
  - rewrite missed_S by assumption.
    assert (B : forall i c j e, used s i c -> nth_error (edges c) j = Some e -> 0 <= missed G P k ((s, i) :: h) (next e) <= 1).
    { intros i c j e [Hi U] Hj. apply IH; [now apply late_cons|now apply (inside s i c j)]. }
    split.
    + apply at_ge; auto. intros i c Hu. rewrite Rplus_0_l. apply (edges_ge h s Hl Hs Hb i c); [apply Hu|].
      intros j e Hj. right. now apply (B i c j).
    + apply (at_most_ G pol P K LA St h s Hl Hs Hb). intros i c Hu. rewrite Rplus_0_l.
      apply (edges_le h s Hl Hs Hb i c); [apply Hu|]. intros j e Hj. right. now apply (B i c j).
Qed.

Lemma missed_falls k : forall h s, late h -> (s < size G)%nat -> missed G P (S k) h s <= missed G P k h s.
Proof.
  induction k as [|k IH]; intros h s Hl Hs; destruct (en s) as [b|] eqn:Hb.
  1,3: rewrite !(missed_end _ h s b Hl Hb); lra.
  - rewrite missed_0 by assumption. now apply missed_bounds.
  - rewrite !(missed_S _ h s Hl Hb). apply at_mono; auto.
    intros i c j e [Hi U] Hj. right. apply IH; [now apply late_cons|now apply (inside s i c j)].
Qed.
Lemma missed_less k k' h s : (k <= k')%nat -> late h -> (s < size G)%nat -> missed G P k' h s <= missed G P k h s.
Proof. induction 1 as [|k' _ IH]; intros Hl Hs; [lra|]. specialize (IH Hl Hs). pose proof (missed_falls k' h s Hl Hs). lra. Qed.

Lemma mean_plus h s (r : choice -> R) (f g : nat -> nat -> R) B :
  mean G P h s r (fun i t => f i t + B * g i t) = mean G P h s r f + B * mean G P h s (fun _ => 0) g.
Proof. rewrite <- mean_lin. apply mean_ext; intros; lra. Qed.

(* ---------- Discounted ---------- *)

Section Discounted.
Hypothesis (D0 : 0 <= Q2R (discount G)) (D1 : Q2R (discount G) < 1).
Variables (x : nat -> Q) (lam : nat -> nat -> support).
Notation g := (Q2R (discount G)).

Lemma disc_telescoped_low B : known_low G (nature P) late x lam -> (forall s, (s < size G)%nat -> disc_low_at G K pol x lam s = true) ->
  (forall s, (s < size G)%nat -> Q2R (x s) <= B) -> 0 <= B ->
  forall k h s, late h -> (s < size G)%nat -> Q2R (x s) <= value G P k h s + g ^ k * B.
Proof.
  intros Kn C HB B0. induction k as [|k IH]; intros h s Hl Hs; pose proof (C s Hs) as D; unfold disc_low_at in D;
    destruct (en s) as [b|] eqn:Hb.
  1,3: rewrite (value_end _ h s b Hl Hb); apply Qle_bool_R in D;
    match goal with |- _ <= _ + ?p => assert (0 <= p) by (apply Rmult_le_pos; [now apply pow_le|lra]); lra end.
  - rewrite value_0 by assumption. specialize (HB s Hs). simpl. lra.
  - rewrite value_S by assumption.
    eapply Rle_trans; [apply (at_step_low G pol P K LA LN St h s Hl Hs Hb (x s) x lam D0 Kn D)|].
    apply Rle_trans with (mean G P h s (fun c => Q2R (reward c))
      (fun i t => g * value G P k ((s, i) :: h) t + (g ^ S k * B) * 1)).
    + apply at_mono; auto. intros i c j e [Hi U] Hj. right.
      specialize (IH ((s, i) :: h) (next e) (late_cons K _ _ Hl) (inside s i c j e Hs Hi Hj)).
      apply (Rmult_le_compat_l g) in IH; [|exact D0]. simpl. lra.
    + rewrite mean_plus. apply Rplus_le_compat_l. rewrite <- (Rmult_1_r (g ^ S k * B)) at 2.
      apply Rmult_le_compat_l; [apply Rmult_le_pos; [now apply pow_le|lra]|].
      apply (at_most_ G pol P K LA St h s Hl Hs Hb). intros i c [Hi U].
      assert (sumi (fun j e => nature P h s i j * (fun _ : nat => 1) (next e)) 0 (edges c) <= 1); [|lra].
      apply (edges_le h s Hl Hs Hb i c (fun _ => 1)); [exact Hi|]. intros; right; lra.
Qed.

Lemma disc_telescoped_high B : known_high G (nature P) late x lam -> (forall s, (s < size G)%nat -> disc_high_at G K pol x lam s = true) ->
  (forall s, (s < size G)%nat -> - Q2R (x s) <= B) -> 0 <= B ->
  forall k h s, late h -> (s < size G)%nat -> value G P k h s <= Q2R (x s) + g ^ k * B.
Proof.
  intros Kn C HB B0. induction k as [|k IH]; intros h s Hl Hs; pose proof (C s Hs) as D; unfold disc_high_at in D;
    destruct (en s) as [b|] eqn:Hb.
  1,3: rewrite (value_end _ h s b Hl Hb); apply Qle_bool_R in D;
    match goal with |- _ <= _ + ?p => assert (0 <= p) by (apply Rmult_le_pos; [now apply pow_le|lra]); lra end.
  - rewrite value_0 by assumption. specialize (HB s Hs). simpl. lra.
  - rewrite value_S by assumption.
    apply Rle_trans with (mean G P h s (fun c => Q2R (reward c))
      (fun i t => g * Q2R (x t) + (g ^ S k * B) * 1)).
    + apply at_mono; auto. intros i c j e [Hi U] Hj. right.
      specialize (IH ((s, i) :: h) (next e) (late_cons K _ _ Hl) (inside s i c j e Hs Hi Hj)).
      apply (Rmult_le_compat_l g) in IH; [|exact D0]. simpl. lra.
    + rewrite (mean_plus h s _ (fun _ t => g * Q2R (x t)) (fun _ _ => 1)). apply Rplus_le_compat.
      { apply (at_step_high G pol P K LA LN St h s Hl Hs Hb (x s) x lam D0 Kn D). }
      rewrite <- (Rmult_1_r (g ^ S k * B)) at 2.
      apply Rmult_le_compat_l; [apply Rmult_le_pos; [now apply pow_le|lra]|].
      apply (at_most_ G pol P K LA St h s Hl Hs Hb). intros i c [Hi U].
      assert (sumi (fun j e => nature P h s i j * (fun _ : nat => 1) (next e)) 0 (edges c) <= 1); [|lra].
      apply (edges_le h s Hl Hs Hb i c (fun _ => 1)); [exact Hi|]. intros; right; lra.
Qed.

Lemma small B eps : 0 <= B -> 0 < eps -> exists k1, forall k, (k1 <= k)%nat -> g ^ k * B <= eps.
Proof.
  intros B0 He. destruct (pow_lt_1_zero g) with (y := eps / (B + 1)) as (n & Hn).
  - rewrite Rabs_pos_eq; lra.
  - apply Rdiv_lt_0_compat; lra.
  - exists n. intros k Hk. specialize (Hn k Hk). rewrite Rabs_pos_eq in Hn by now apply pow_le.
    assert (0 <= g ^ k) by now apply pow_le.
    apply Rle_trans with (eps / (B + 1) * (B + 1)); [apply Rmult_le_compat; lra|right; field; lra].
Qed.

Theorem disc_low : known_low G (nature P) late x lam -> (forall s, (s < size G)%nat -> disc_low_at G K pol x lam s = true) ->
  forall eps, 0 < eps -> exists k1, forall k h s, (k1 <= k)%nat -> late h -> (s < size G)%nat ->
    Q2R (x s) - eps <= value G P k h s.
Proof.
  intros Kn C eps He. destruct (bounded (fun s => Q2R (x s)) (size G)) as (B & B0 & HB).
  destruct (small B eps B0 He) as (k1 & H1). exists k1. intros k h s Hk Hl Hs.
  pose proof (disc_telescoped_low B Kn C HB B0 k h s Hl Hs). specialize (H1 k Hk). lra.
Qed.
Theorem disc_high : known_high G (nature P) late x lam -> (forall s, (s < size G)%nat -> disc_high_at G K pol x lam s = true) ->
  forall eps, 0 < eps -> exists k1, forall k h s, (k1 <= k)%nat -> late h -> (s < size G)%nat ->
    value G P k h s <= Q2R (x s) + eps.
Proof.
  intros Kn C eps He. destruct (bounded (fun s => - Q2R (x s)) (size G)) as (B & B0 & HB).
  destruct (small B eps B0 He) as (k1 & H1). exists k1. intros k h s Hk Hl Hs.
  pose proof (disc_telescoped_high B Kn C HB B0 k h s Hl Hs). specialize (H1 k Hk). lra.
Qed.
End Discounted.

(* ---------- Until something is reached ---------- *)

Section Reach.
Hypothesis D1 : Q2R (discount G) = 1.
Variables (x : nat -> Q) (endless : nat -> bool) (rank : nat -> nat) (lam : nat -> nat -> support).
Local Notation sum_S := (sum_S G pol P K St D1).
Local Notation times_one := (times_one G P D1).
Local Notation D0 := (D0 G D1).
Notation unending := (unending (ends G K) endless).

Section Low.
Hypothesis C : forall s, (s < size G)%nat -> reach_low_at G K pol x endless rank lam s = true.
Hypothesis Kn : known_low G (nature P) late x lam.

Lemma reach_earns s i c : (s < size G)%nat -> en s = None -> used s i c -> 0 <= Q2R (reward c).
Proof.
  intros Hs Hb [Hi U]. pose proof (C s Hs) as D. unfold reach_low_at in D. rewrite Hb in D. apply andb_prop in D.
  destruct D as [D _]. pose proof (rule_all_spec _ _ _ D i c Hi U) as E. simpl in E. apply Qle_bool_R in E.
  now rewrite Q2R_0 in E.
Qed.

Lemma really_missed : exists c, 0 < c /\ forall k h s, late h -> (s < size G)%nat -> unending s = true ->
  c <= missed G P k h s.
Proof.
  destruct (sure_everywhere G K (fun s => lower_layer (ends G K) endless rank s)) as (a & Ha & GD).
  destruct (lasting_everywhere G pol K (fun s c => surely (lower_layer (ends G K) endless rank s) (edges c))
    (fun s c => only_to (same_layer (ends G K) endless rank s) (edges c)) (fun _ _ => true)) as (w & Hw & GW).
  destruct (bounded_nat rank (size G)) as (m & Hm).
  set (al := w * a). assert (Hal : 0 < al <= 1) by (unfold al; split; [apply Rmult_lt_0_compat; lra|nra]).
  assert (Hpow : forall j, 0 < al ^ j <= 1).
  { intros j. split; [apply pow_lt; lra|]. rewrite <- (pow1 j). apply pow_incr. lra. }
  assert (Less : forall i j, (i <= j)%nat -> al ^ j <= al ^ i).
  { intros i j Hij. replace j with (i + (j - i))%nat by lia. rewrite pow_add.
    rewrite <- (Rmult_1_r (al ^ i)) at 2. apply Rmult_le_compat_l; [left|]; apply Hpow. }
  assert (Main : forall k h s, late h -> (s < size G)%nat -> unending s = true -> al ^ S (rank s) <= missed G P k h s).
  { induction k as [|k IH]; intros h s Hl Hs Hu; destruct (unending_None G K endless s Hu) as [Hb He].
    - rewrite missed_0 by assumption. apply Hpow.
    - rewrite missed_S, at_mean by assumption. destruct (at_agent h s Hl Hs Hb) as (A0 & A1 & A2).
      pose proof (C s Hs) as D. unfold reach_low_at in D. rewrite Hb, He in D. apply andb_prop in D. destruct D as [_ D].
      assert (Next : forall i c j e, used s i c -> nth_error (edges c) j = Some e -> 0 <= missed G P k ((s, i) :: h) (next e)).
      { intros i c j e [Hi U] Hj. apply missed_bounds; [now apply late_cons|now apply (inside s i c j)]. }
      pose proof (Hpow (rank s)) as Hp.
      eapply Rle_trans; [|apply (GW s Hs D (agent P h s) A0 A1 A2
        (fun i c => 0 + sumi (fun j e => nature P h s i j * missed G P k ((s, i) :: h) (next e)) 0 (edges c))
        (al ^ S (rank s)) 0 (a * al ^ rank s)); [nra|lra| | | |]].
      + simpl pow. apply Rmin_glb; [|lra]. unfold al at 1. lra.
      + intros i c Hi U. rewrite Rplus_0_l. apply (edges_ge h s Hl Hs Hb i c); [exact Hi|]. intros j e Hj. right.
        now apply (Next i c j).
      + intros i c Hi U Hd. rewrite Rplus_0_l, <- (Rplus_0_l (a * al ^ rank s)).
        apply (gain_edges G pol P K LN St (lower_layer (ends G K) endless rank s) a h s i c
          (fun t => missed G P k ((s, i) :: h) t) 0 (al ^ rank s) Hl Hs Hb Hi (GD s Hs c (nth_error_In _ _ Hi) Hd)); [lra| |].
        * intros j e Hj. right. now apply (Next i c j).
        * intros j e Hj Hc. right. rewrite Rplus_0_l. apply andb_prop in Hc. destruct Hc as [Hc1 Hc2].
          apply Nat.ltb_lt in Hc2. apply Rle_trans with (al ^ S (rank (next e))); [apply Less; lia|].
          apply IH; [now apply late_cons|now apply (inside s i c j)|exact Hc1].
      + intros i c Hi U HS. rewrite Rplus_0_l. apply (edges_ge h s Hl Hs Hb i c); [exact Hi|]. intros j e Hj.
        destruct (at_outside G pol P K LN St h s Hl Hs Hb _ i c j e HS Hi Hj) as [Z|Z]; [now left|right].
        apply andb_prop in Z. destruct Z as [Z1 Z2]. apply Nat.leb_le in Z2.
        apply Rle_trans with (al ^ S (rank (next e))); [apply Less; lia|].
        apply IH; [now apply late_cons|now apply (inside s i c j)|exact Z1].
      + intros i c Hi U HS _. rewrite Rplus_0_l, Rplus_0_r. apply (edges_ge h s Hl Hs Hb i c); [exact Hi|]. intros j e Hj.
        destruct (at_outside G pol P K LN St h s Hl Hs Hb _ i c j e HS Hi Hj) as [Z|Z]; [now left|right].
        apply andb_prop in Z. destruct Z as [Z1 Z2]. apply Nat.leb_le in Z2.
        apply Rle_trans with (al ^ S (rank (next e))); [apply Less; lia|].
        apply IH; [now apply late_cons|now apply (inside s i c j)|exact Z1]. }
  exists (al ^ m). split; [apply Hpow|]. intros k h s Hl Hs Hu.
  eapply Rle_trans; [|apply (Main k h s Hl Hs Hu)]. apply Less. specialize (Hm s Hs). lia.
Qed.

Lemma reach_low : exists B, 0 <= B /\ forall k h s, late h -> (s < size G)%nat ->
  Q2R (x s) <= value G P k h s + B * missed G P k h s.
Proof.
  destruct (bounded (fun s => Q2R (x s)) (size G)) as (X & X0 & HX).
  destruct (bounded (fun s => match en s with Some b => - Q2R b | None => 0 end) (size G)) as (T & T0 & HT).
  destruct really_missed as (c & Hc & HM).
  assert (VT : forall k h s, late h -> (s < size G)%nat -> - T <= value G P k h s).
  { induction k as [|k IH]; intros h s Hl Hs; specialize (HT s Hs) as Ts; destruct (en s) as [b|] eqn:Hb.
    1,3: rewrite (value_end _ h s b Hl Hb); lra.
    - rewrite value_0 by assumption. lra.
    - rewrite sum_S by assumption. apply at_ge; auto. intros i c' Hu. pose proof (reach_earns s i c' Hs Hb Hu).
      destruct Hu as [Hi U].
      assert (- T <= sumi (fun j e => nature P h s i j * value G P k ((s, i) :: h) (next e)) 0 (edges c')); [|lra].
      apply (edges_ge h s Hl Hs Hb i c'); [exact Hi|]. intros j e Hj. right.
      apply IH; [now apply late_cons|now apply (inside s i c' j)]. }
  set (B := X + (X + T) / c).
  assert (HB : 0 <= (X + T) / c) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  exists B. split; [unfold B; lra|].
  assert (Inf : forall k h s, late h -> (s < size G)%nat -> unending s = true ->
    Q2R (x s) <= value G P k h s + B * missed G P k h s).
  { intros k h s Hl Hs Hu. specialize (VT k h s Hl Hs). specialize (HM k h s Hl Hs Hu). specialize (HX s Hs).
    assert (X + T <= B * missed G P k h s); [|lra].
    apply Rle_trans with (B * c).
    - unfold B. rewrite Rmult_plus_distr_r. replace ((X + T) / c * c) with (X + T) by (field; lra). nra.
    - apply Rmult_le_compat_l; [unfold B; lra|exact HM]. }
  induction k as [|k IH]; intros h s Hl Hs; pose proof (C s Hs) as D; unfold reach_low_at in D;
    destruct (en s) as [b|] eqn:Hb.
  1,3: rewrite (value_end _ h s b Hl Hb), (missed_end _ h s b Hl Hb); apply Qle_bool_R in D; lra.
  - destruct (endless s) eqn:He; [apply Inf; auto; unfold Sums.unending; now rewrite Hb|].
    rewrite value_0, missed_0 by assumption. specialize (HX s Hs). unfold B. lra.
  - destruct (endless s) eqn:He; [apply Inf; auto; unfold Sums.unending; now rewrite Hb|].
    apply andb_prop in D. destruct D as [_ D]. rewrite sum_S, missed_S by assumption. rewrite <- mean_plus.
    apply Rle_trans with (mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (x t))).
    + rewrite <- times_one. apply (at_step_low G pol P K LA LN St h s Hl Hs Hb (x s) x lam D0 Kn D).
    + apply at_mono; auto. intros i c' j e [Hi U] Hj. right. apply IH; [now apply late_cons|now apply (inside s i c' j)].
Qed.
End Low.

Section High.
Hypothesis C : forall s, (s < size G)%nat -> reach_high_at G K pol x endless rank lam s = true.
Hypothesis Kn : known_high G (nature P) late x lam.

Lemma high_open s : (s < size G)%nat -> en s = None -> endless s = false ->
  rule_all (pl s) (fun _ => finite_edges endless) (cs s) = true /\
  rule_le geb (pl s) (x s) (fun i c => backup (discount G) high_term x (lam s i) c) (cs s) = true /\
  rule_some (pl s) (fun _ c => surely (near_end (ends G K) rank s) (edges c)) (cs s) = true.
Proof.
  intros Hs Hb He. pose proof (C s Hs) as D. unfold reach_high_at in D. rewrite He, Hb in D.
  apply andb_prop in D. destruct D as [D D3]. apply andb_prop in D. now destruct D.
Qed.

Lemma goes_on h s i c j e : late h -> (s < size G)%nat -> en s = None -> endless s = false -> used s i c ->
  nth_error (edges c) j = Some e -> nature P h s i j = 0 \/ ((next e < size G)%nat /\ endless (next e) = false).
Proof.
  intros Hl Hs Hb He [Hi U] Hj. destruct (high_open s Hs Hb He) as (F & _ & _).
  pose proof (rule_all_spec _ _ _ F i c Hi U) as F'. simpl in F'. unfold finite_edges in F'.
  destruct (at_outside G pol P K LN St h s Hl Hs Hb _ i c j e F' Hi Hj) as [Z|Z]; [now left|right].
  split; [now apply (inside s i c j)|now apply negb_true_iff].
Qed.

Lemma is_reached : exists al m, 0 < al <= 1 /\ (forall s, (s < size G)%nat -> (rank s < m)%nat) /\
  forall j h s, late h -> (s < size G)%nat -> endless s = false -> (rank s < j)%nat -> missed G P j h s <= 1 - al ^ j.
Proof.
  destruct (sure_everywhere G K (near_end (ends G K) rank)) as (a & Ha & GS).
  destruct (portion_everywhere G pol K (fun s _ c => surely (near_end (ends G K) rank s) (edges c))) as (w & Hw & GP).
  destruct (bounded_nat rank (size G)) as (m & Hm).
  exists (w * a), m. assert (Hal : 0 < w * a <= 1) by (split; [apply Rmult_lt_0_compat; lra|nra]).
  split; [exact Hal|]. split; [exact Hm|].
  assert (Hpow : forall j, 0 < (w * a) ^ j <= 1).
  { intros j. split; [apply pow_lt; lra|]. rewrite <- (pow1 j). apply pow_incr. lra. }
  induction j as [|j IH]; intros h s Hl Hs He Hr; [lia|]. destruct (en s) as [b|] eqn:Hb.
  - rewrite (missed_end _ h s b Hl Hb). pose proof (Hpow (S j)). lra.
  - destruct (high_open s Hs Hb He) as (_ & _ & HM). destruct (at_agent h s Hl Hs Hb) as (A0 & A1 & A2).
    set (f := fun i t => 0 + -1 * missed G P j ((s, i) :: h) t).
    assert (E : mean G P h s (fun _ => 1) f = 1 - missed G P (S j) h s).
    { unfold f. rewrite (mean_plus h s (fun _ => 1) (fun _ _ => 0) (fun i t => missed G P j ((s, i) :: h) t)).
      rewrite at_const, missed_S by assumption. lra. }
    pose proof (Hpow j) as Hp.
    assert (L : w * (a * (w * a) ^ j) <= mean G P h s (fun _ => 1) f).
    { rewrite at_mean by assumption.
      assert (Low : forall i c j' e, used s i c -> nth_error (edges c) j' = Some e -> -1 <= f i (next e)).
      { intros i c j' e [Hi U] Hj. unfold f.
        pose proof (missed_bounds j ((s, i) :: h) (next e) (late_cons K _ _ Hl) (inside s i c j' e Hs Hi Hj)). lra. }
      apply (GP s Hs HM (agent P h s) A0 A1 A2
        (fun i c => 1 + sumi (fun j0 e => nature P h s i j0 * f i (next e)) 0 (edges c))); [nra| |].
      - intros i c Hi U.
        assert (-1 <= sumi (fun j0 e => nature P h s i j0 * f i (next e)) 0 (edges c)); [|lra].
        apply (edges_ge h s Hl Hs Hb i c (f i) _ Hi). intros j' e Hj. right. now apply (Low i c j').
      - intros i c Hi U M.
        assert (-1 + a * (w * a) ^ j <= sumi (fun j0 e => nature P h s i j0 * f i (next e)) 0 (edges c)); [|lra].
        apply (gain_edges G pol P K LN St (near_end (ends G K) rank s) a h s i c (f i) (-1) ((w * a) ^ j) Hl Hs Hb Hi
          (GS s Hs c (nth_error_In _ _ Hi) M)); [lra| |].
        + intros j' e Hj. right. now apply (Low i c j').
        + intros j' e Hj Hc. destruct (goes_on h s i c j' e Hl Hs Hb He (conj Hi U) Hj) as [Z|[Ht He']]; [now left|right].
          unfold f. unfold near_end in Hc. destruct (en (next e)) as [b|] eqn:Hb'.
          * rewrite (missed_end _ _ _ b (late_cons K _ _ Hl) Hb'). lra.
          * apply Nat.ltb_lt in Hc. specialize (IH ((s, i) :: h) (next e) (late_cons K _ _ Hl) Ht He' ltac:(lia)). lra. }
    rewrite E in L. simpl pow. replace (w * a * (w * a) ^ j) with (w * (a * (w * a) ^ j)) by ring. lra.
Qed.

Lemma missed_product b q : (forall h s, late h -> (s < size G)%nat -> endless s = false -> missed G P b h s <= q) -> 0 <= q ->
  forall k h s, late h -> (s < size G)%nat -> endless s = false -> missed G P (k + b) h s <= q * missed G P k h s.
Proof.
  intros Hq Q0. induction k as [|k IH]; intros h s Hl Hs He; destruct (en s) as [e0|] eqn:Hb.
  1,3: rewrite !(missed_end _ h s e0 Hl Hb); lra.
  - rewrite missed_0 by assumption. specialize (Hq h s Hl Hs He). simpl. lra.
  - simpl plus. rewrite !(missed_S _ h s Hl Hb).
    pose proof (mean_plus h s (fun _ => 0) (fun _ _ => 0) (fun i t => missed G P k ((s, i) :: h) t) q) as E.
    rewrite at_const, Rplus_0_l in E by assumption. rewrite <- E. apply at_mono; auto.
    intros i c j e Hu Hj. destruct (goes_on h s i c j e Hl Hs Hb He Hu Hj) as [Z|[Ht He']]; [now left|right].
    rewrite Rplus_0_l. apply IH; auto. now apply late_cons.
Qed.

Theorem reach_high eps : 0 < eps -> exists k1, forall k h s, (k1 <= k)%nat -> late h -> (s < size G)%nat ->
  endless s = false -> missed G P k h s <= eps /\ value G P k h s <= Q2R (x s) + eps.
Proof.
  intros Heps. destruct is_reached as (al & m & Hal & Hm & HE).
  destruct (bounded (fun s => - Q2R (x s)) (size G)) as (B & B0 & HB).
  assert (T : forall k h s, late h -> (s < size G)%nat -> endless s = false ->
    value G P k h s <= Q2R (x s) + B * missed G P k h s).
  { induction k as [|k IH]; intros h s Hl Hs He; pose proof (C s Hs) as D; unfold reach_high_at in D; rewrite He in D;
      destruct (en s) as [b|] eqn:Hb.
    1,3: rewrite (value_end _ h s b Hl Hb), (missed_end _ h s b Hl Hb); apply Qle_bool_R in D; lra.
    - rewrite value_0, missed_0 by assumption. specialize (HB s Hs). lra.
    - destruct (high_open s Hs Hb He) as (_ & HU & _). rewrite sum_S, missed_S by assumption.
      apply Rle_trans with (mean G P h s (fun c => Q2R (reward c)) (fun i t => Q2R (x t) + B * missed G P k ((s, i) :: h) t)).
      + apply at_mono; auto. intros i c j e Hu Hj.
        destruct (goes_on h s i c j e Hl Hs Hb He Hu Hj) as [Z|[Ht He']]; [now left|right].
        apply IH; auto. now apply late_cons.
      + rewrite (mean_plus h s _ (fun _ t => Q2R (x t))). apply Rplus_le_compat_r. rewrite <- times_one.
        apply (at_step_high G pol P K LA LN St h s Hl Hs Hb (x s) x lam D0 Kn HU). }
  assert (Hpow : 0 < al ^ m) by (apply pow_lt; lra).
  assert (Hpow1 : al ^ m <= 1) by (rewrite <- (pow1 m); apply pow_incr; lra).
  set (q := 1 - al ^ m). assert (Hq : 0 <= q < 1) by (unfold q; lra).
  assert (F : forall n h s, late h -> (s < size G)%nat -> endless s = false -> missed G P (n * m) h s <= q ^ n).
  { induction n as [|n IH]; intros h s Hl Hs He; [simpl; now apply (missed_bounds 0)|].
    replace (S n * m)%nat with (n * m + m)%nat by lia.
    eapply Rle_trans; [apply (missed_product m q)|]; auto; [|lra|].
    - intros h' s' Hl' Hs' He'. unfold q. now apply HE; [| | |apply Hm].
    - simpl. apply Rmult_le_compat_l; [lra|auto]. }
  destruct (pow_lt_1_zero q) with (y := eps / (B + 1)) as (n & Hn); [rewrite Rabs_pos_eq; lra|apply Rdiv_lt_0_compat; lra|].
  exists (n * m)%nat. intros k h s Hk Hl Hs He. specialize (Hn n (le_n n)).
  assert (0 <= q ^ n) by (apply pow_le; lra). rewrite Rabs_pos_eq in Hn by assumption.
  assert (Mi : missed G P k h s <= eps / (B + 1)).
  { apply Rle_trans with (missed G P (n * m) h s); [now apply missed_less|]. specialize (F n h s Hl Hs He). lra. }
  assert (E1 : eps / (B + 1) * (B + 1) = eps) by (field; lra).
  pose proof (missed_bounds k h s Hl Hs) as MB. specialize (T k h s Hl Hs He). split; nra.
Qed.
End High.
End Reach.
End Rewards.
