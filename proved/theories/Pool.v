(* Lines below sums of logarithms: losses on what may be too rare, and what likelihoods take away. *)
From Coq Require Import List Reals Lra.
From Proved Require Import Ville.
Import ListNotations.
Open Scope R_scope.

Section Pool.
Variables (ts : list (R * R)) (k l : R). (* (how often, stake) *)
Hypothesis (K : 0 <= k) (L : 0 < l) (N : forall t, In t ts -> 0 <= fst t) (S : forall t, In t ts -> 0 <= snd t < l).
Definition pool (f : R) : R := rsum (fun t => fst t * (ln (f - snd t) - ln f)) ts - k * ln f.
Definition steep (f : R) : R := rsum (fun t => fst t * (snd t / (f - snd t))) ts - k.
Definition bends (f : R) : R := k - rsum (fun t => fst t * (snd t * (2 * f - snd t) / ((f - snd t) * (f - snd t)))) ts.

Lemma pool_slope f : l <= f -> derivable_pt_lim pool f (steep f / f).
Proof.
  intros Hf. unfold pool, steep.
  assert (G : forall us, (forall t, In t us -> 0 <= snd t < l) ->
    derivable_pt_lim (fun x => rsum (fun t => fst t * (ln (x - snd t) - ln x)) us) f (rsum (fun t => fst t * (snd t / (f - snd t))) us / f)).
  { induction us as [|t us IH]; intros H.
    - simpl. replace (0 / f) with 0 by (unfold Rdiv; lra). apply derivable_pt_lim_const.
    - cbn [rsum]. destruct (H t (or_introl eq_refl)) as [B1 B2].
      replace ((fst t * (snd t / (f - snd t)) + rsum (fun t => fst t * (snd t / (f - snd t))) us) / f) with
        (fst t * (/ (f - snd t) * (1 - 0) - / f) + rsum (fun t => fst t * (snd t / (f - snd t))) us / f) by (field; split; lra).
      apply (derivable_pt_lim_plus (fun x => fst t * (ln (x - snd t) - ln x))); [|apply IH; intros; apply H; simpl; auto].
      apply (derivable_pt_lim_scal (fun x => ln (x - snd t) - ln x)).
      apply (derivable_pt_lim_minus (fun x => ln (x - snd t)) ln).
      + apply (derivable_pt_lim_comp (fun x => x - snd t) ln).
        * apply (derivable_pt_lim_minus (fun x => x) (fun _ => snd t)); [apply derivable_pt_lim_id|apply derivable_pt_lim_const].
        * apply derivable_pt_lim_ln. lra.
      + apply derivable_pt_lim_ln. lra. }
  replace ((rsum (fun t => fst t * (snd t / (f - snd t))) ts - k) / f) with
    (rsum (fun t => fst t * (snd t / (f - snd t))) ts / f - k * / f) by (field; lra).
  apply (derivable_pt_lim_minus (fun x => rsum (fun t => fst t * (ln (x - snd t) - ln x)) ts) (fun x => k * ln x)); [now apply G|].
  apply (derivable_pt_lim_scal ln). apply derivable_pt_lim_ln. lra.
Qed.
Lemma steep_mean x y z : l <= x -> x <= y -> y <= z -> (z - x) * steep y <= (z - y) * steep x + (y - x) * steep z.
Proof.
  intros Hx Hy Hz. unfold steep.
  assert (G : forall us, (forall t, In t us -> 0 <= fst t /\ 0 <= snd t < l) ->
    (z - x) * rsum (fun t => fst t * (snd t / (y - snd t))) us <=
    (z - y) * rsum (fun t => fst t * (snd t / (x - snd t))) us + (y - x) * rsum (fun t => fst t * (snd t / (z - snd t))) us).
  { induction us as [|t us IH]; intros H; cbn [rsum]; [lra|]. specialize (IH ltac:(intros; apply H; simpl; auto)).
    destruct (H t (or_introl eq_refl)) as (A & B1 & B2).
    assert (M : (z - x) * (snd t / (y - snd t)) <= (z - y) * (snd t / (x - snd t)) + (y - x) * (snd t / (z - snd t))).
    { set (a := x - snd t). set (b := y - snd t). set (c := z - snd t). assert (0 < a) by (unfold a; lra).
      assert (a <= b) by (unfold a, b; lra). assert (b <= c) by (unfold b, c; lra).
      replace (z - x) with (c - a) by (unfold a, c; lra). replace (z - y) with (c - b) by (unfold b, c; lra).
      replace (y - x) with (b - a) by (unfold a, b; lra).
      assert (D : (c - b) * (snd t / a) + (b - a) * (snd t / c) - (c - a) * (snd t / b) =
        snd t * ((c - b) * (b - a) * (c - a)) / (a * b * c)) by (field; repeat split; lra).
      assert (0 <= snd t * ((c - b) * (b - a) * (c - a)) / (a * b * c)); [|lra].
      apply Rmult_le_pos.
      - repeat apply Rmult_le_pos; lra.
      - left. apply Rinv_0_lt_compat. repeat apply Rmult_lt_0_compat; lra. }
    apply (Rmult_le_compat_l (fst t)) in M; [|exact A]. nra. }
  specialize (G ts ltac:(intros t Ht; split; [now apply N|now apply S])). nra.
Qed.
(* From a point on where the line touches and what is left bends upwards. *)
Lemma steep_after q f s : l <= q -> q <= f -> steep q = s * q -> 0 <= bends q -> s * f <= steep f.
Proof.
  intros Hq Hf E B. unfold steep, bends in *.
  set (W := rsum (fun t => fst t * (snd t / ((q - snd t) * (q - snd t)))) ts).
  assert (G : rsum (fun t => fst t * (snd t / (q - snd t))) ts - (f - q) * W <= rsum (fun t => fst t * (snd t / (f - snd t))) ts).
  { unfold W. clear E B W. assert (H : forall t, In t ts -> 0 <= fst t /\ 0 <= snd t < l) by (intros t Ht; split; [now apply N|now apply S]).
    revert H. clear N S. induction ts as [|t us IH]; intros H; cbn [rsum]; [lra|]. specialize (IH ltac:(intros; apply H; simpl; auto)).
    destruct (H t (or_introl eq_refl)) as (A & B1 & B2). set (a := q - snd t) in *. set (b := f - snd t) in *.
    assert (0 < a) by (unfold a; lra). assert (a <= b) by (unfold a, b; lra). replace (f - q) with (b - a) in * by (unfold a, b; lra).
    assert (M : snd t / a - (b - a) * (snd t / (a * a)) <= snd t / b).
    { assert (D : snd t / b - (snd t / a - (b - a) * (snd t / (a * a))) = snd t * ((b - a) * (b - a)) / (a * a * b)) by (field; split; lra).
      assert (0 <= snd t * ((b - a) * (b - a)) / (a * a * b)); [|lra].
      apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra].
      apply Rmult_le_pos; [lra|]. apply Rle_0_sqr. }
    apply (Rmult_le_compat_l (fst t)) in M; [|exact A]. nra. }
  assert (D : rsum (fun t => fst t * (snd t * (2 * q - snd t) / ((q - snd t) * (q - snd t)))) ts =
    rsum (fun t => fst t * (snd t / (q - snd t))) ts + q * W).
  { unfold W. rewrite <- rsum_scal, <- rsum_add. apply rsum_ext. intros t Ht. destruct (S t Ht). field. lra. }
  rewrite D in B. set (A := rsum (fun t => fst t * (snd t / (q - snd t))) ts) in *.
  assert (Q : q * W <= - s * q) by lra. assert (W1 : W <= - s) by (apply (Rmult_le_reg_l q); lra). nra.
Qed.

Section Line.
Variables (s h q u f : R).
Hypothesis (Q : l <= q) (Hf : l <= f <= u) (HL : s * l + h <= pool l) (HQ : s * q + h <= pool q).
Notation rest := (fun x => pool x - s * x).
Lemma rest_slope x : l <= x -> derivable_pt_lim rest x ((steep x - s * x) / x).
Proof.
  intros Hx. replace ((steep x - s * x) / x) with (steep x / x - s * 1) by (field; lra).
  apply (derivable_pt_lim_minus pool (fun x => s * x)); [now apply pool_slope|].
  apply (derivable_pt_lim_scal (fun x => x)). apply derivable_pt_lim_id.
Qed.
Lemma before_it : f <= q -> steep q <= s * q -> s * f + h <= pool f.
Proof.
  intros Fq Sq. destruct (Req_dec f l) as [->|F1]; [exact HL|]. destruct (Req_dec f q) as [->|F2]; [exact HQ|].
  destruct (MVT_cor2 rest (fun x => (steep x - s * x) / x) l f ltac:(lra) ltac:(intros; apply rest_slope; lra)) as (x & E1 & X1 & X2).
  destruct (Rle_lt_dec 0 (steep x - s * x)) as [P|P].
  - assert (0 <= (steep x - s * x) / x * (f - l)); [|lra]. apply Rmult_le_pos; [|lra].
    apply Rmult_le_pos; [exact P|left; apply Rinv_0_lt_compat; lra].
  - destruct (MVT_cor2 rest (fun x => (steep x - s * x) / x) f q ltac:(lra) ltac:(intros; apply rest_slope; lra)) as (y & E2 & Y1 & Y2).
    pose proof (steep_mean x y q ltac:(lra) ltac:(lra) ltac:(lra)) as M.
    assert (Z : steep y - s * y <= 0).
    { assert ((q - x) * (steep y - s * y) <= 0); [|nra].
      replace ((q - x) * (steep y - s * y)) with ((q - x) * steep y - s * ((q - y) * x + (y - x) * q)) by ring.
      assert ((q - y) * (steep x - s * x) <= 0) by nra. assert ((y - x) * (steep q - s * q) <= 0) by nra. nra. }
    assert ((steep y - s * y) / y * (q - f) <= 0); [|lra].
    assert (0 <= - (steep y - s * y) / y * (q - f)); [|unfold Rdiv in *; nra].
    apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
Qed.
Lemma chord_line : q = u -> steep q <= s * q -> s * f + h <= pool f.
Proof. intros E Sq. apply before_it; [lra|exact Sq]. Qed.
Lemma tangent_line : steep q = s * q -> 0 <= bends q -> s * f + h <= pool f.
Proof.
  intros Sq B. destruct (Rle_lt_dec f q) as [C|C]; [apply before_it; lra|].
  destruct (MVT_cor2 rest (fun x => (steep x - s * x) / x) q f C ltac:(intros; apply rest_slope; lra)) as (x & E1 & X1 & X2).
  pose proof (steep_after q x s Q ltac:(lra) Sq B) as P.
  assert (0 <= (steep x - s * x) / x * (f - q)); [|lra]. apply Rmult_le_pos; [|lra].
  apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
Qed.
End Line.
End Pool.
