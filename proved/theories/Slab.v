(* Slabs: bets on a shift of the truth. Whoever makes them does not grow rich, and while he is not, the truth lies in half-spaces. *)
From Coq Require Import List Bool Arith Reals Lra Lia.
From Proved Require Import Ville.
Import ListNotations.
Open Scope R_scope.

Lemma ln_below z : 0 < z -> ln z <= z - 1.
Proof.
  intros H. destruct (Req_dec z 1) as [->|N]; [rewrite ln_1; lra|].
  pose proof (exp_ineq1 (ln z) ltac:(intros E; apply N; rewrite <- (exp_ln z H), E; apply exp_0)) as K. rewrite exp_ln in K by exact H. lra.
Qed.

Section Bets.
Variables (C O : Type) (cs : list C) (os : C -> list O) (design : log C O -> C -> R) (law : C -> O -> R).
Hypothesis X : experiment C O cs os design law.
Notation log := (log C O).

(* ---------- One bettor ---------- *)

Section Bettor.
(* What is bet on the outcome of the next trial of a choice, given all that was seen: any rule, fixed beforehand. *)
Variable bet : log -> C -> O -> R.
Definition takes_part (h : log) (c : C) : bool :=
  forallb (fun o => if Rlt_dec (bet h c o) 0 then if Rle_dec (2 * - bet h c o) (law c o) then true else false else true) (os c).
(* An outcome without a probability is never seen. *)
Definition factor (h : log) (c : C) (o : O) : R :=
  if takes_part h c then if Req_EM_T (law c o) 0 then 1 else Rmax 0 (1 + bet h c o / law c o) else 1.
Fixpoint wealth (h : log) : R := match h with [] => 1 | (c, o) :: h' => wealth h' * factor h' c o end.

Lemma takes_part_spec h c o : takes_part h c = true -> In o (os c) -> bet h c o < 0 -> 2 * - bet h c o <= law c o.
Proof.
  unfold takes_part. rewrite forallb_forall. intros H Ho Hb. specialize (H o Ho).
  destruct (Rlt_dec (bet h c o) 0); [|lra]. destruct (Rle_dec (2 * - bet h c o) (law c o)); [assumption|discriminate].
Qed.
Lemma factor_pos h c o : 0 <= factor h c o.
Proof. unfold factor. destruct (takes_part h c); [|lra]. destruct (Req_EM_T (law c o) 0); [lra|apply Rmax_l]. Qed.
Lemma wealth_pos h : 0 <= wealth h.
Proof. induction h as [|[c o] h IH]; simpl; [lra|]. apply Rmult_le_pos; [exact IH|apply factor_pos]. Qed.
(* At an outcome that can be seen. *)
Lemma factor_is h c o : In o (os c) -> 0 < law c o -> takes_part h c = true ->
  factor h c o = 1 + bet h c o / law c o /\ 0 < 1 + bet h c o / law c o.
Proof.
  intros Ho Hl T. unfold factor. rewrite T. destruct (Req_EM_T (law c o) 0); [lra|].
  assert (P : 0 < 1 + bet h c o / law c o).
  { pose proof (takes_part_spec h c o T Ho) as K. assert (0 < / law c o) by (now apply Rinv_0_lt_compat).
    assert (E : law c o * / law c o = 1) by (field; lra). unfold Rdiv.
    destruct (Rlt_dec (bet h c o) 0) as [N|N]; [specialize (K N); nra|nra]. }
  split; [apply Rmax_right; lra|exact P].
Qed.

Hypothesis Fair : forall h c, In c cs -> rsum (bet h c) (os c) <= 0.
Lemma factor_fair h c : In c cs -> rsum (fun o => law c o * factor h c o) (os c) <= 1.
Proof.
  intros Hc. destruct (takes_part h c) eqn:T.
  - apply Rle_trans with (rsum (fun o => law c o + bet h c o) (os c)).
    + apply rsum_le. intros o Ho. pose proof (law_pos _ _ _ _ _ _ X c o Hc) as L. destruct (Req_EM_T (law c o) 0) as [Z|Z].
      * rewrite Z. assert (0 <= bet h c o); [|lra]. apply Rnot_lt_le. intros N.
        pose proof (takes_part_spec h c o T Ho N). lra.
      * destruct (factor_is h c o Ho ltac:(lra) T) as [-> _]. right. field. exact Z.
    + rewrite rsum_add, (law_one _ _ _ _ _ _ X c Hc). specialize (Fair h c Hc). lra.
  - right. rewrite <- (law_one _ _ _ _ _ _ X c Hc). apply rsum_ext. intros o _. unfold factor. rewrite T. lra.
Qed.
Lemma wealth_fair h c : In c cs -> rsum (fun o => law c o * wealth ((c, o) :: h)) (os c) <= wealth h.
Proof.
  intros Hc. simpl. rewrite (rsum_ext _ (fun o => wealth h * (law c o * factor h c o))) by (intros; lra).
  rewrite rsum_scal. pose proof (factor_fair h c Hc). pose proof (wealth_pos h). nra.
Qed.
End Bettor.

(* ---------- Several bettors, with shares ---------- *)

Variables (J : Type) (who : list J) (share : J -> R) (bets : J -> log -> C -> O -> R).
Hypothesis (Shares : forall j, 0 <= share j) (Whole : rsum share who = 1).
Hypothesis Fair : forall j h c, In j who -> In c cs -> rsum (bets j h c) (os c) <= 0.
Definition together (h : log) : R := rsum (fun j => share j * wealth (bets j) h) who.

Lemma together_pos h : 0 <= together h.
Proof.
  unfold together. clear -Shares. induction who as [|j l IH]; simpl; [lra|]. pose proof (Shares j). pose proof (wealth_pos (bets j) h). nra.
Qed.
Lemma together_fair h c : In c cs -> rsum (fun o => law c o * together ((c, o) :: h)) (os c) <= together h.
Proof.
  intros Hc. unfold together.
  apply Rle_trans with (rsum (fun j => rsum (fun o => share j * (law c o * wealth (bets j) ((c, o) :: h))) (os c)) who).
  - right. generalize (os c) as l. induction l as [|o l IH].
    + simpl. rewrite (rsum_ext (fun _ : J => 0) (fun _ => 0 * 0)) by (intros; lra). rewrite (rsum_scal 0 (fun _ => 0)). lra.
    + cbn [rsum]. rewrite IH, rsum_add. f_equal. rewrite <- rsum_scal. apply rsum_ext. intros; lra.
  - apply rsum_le. intros j Hj. rewrite rsum_scal. apply Rmult_le_compat_l; [apply Shares|].
    apply wealth_fair; [intros h' c' Hc'; now apply Fair|exact Hc].
Qed.
Lemma together_0 : together [] = 1.
Proof. unfold together. transitivity (rsum share who); [apply rsum_ext; intros; simpl; lra|exact Whole]. Qed.
(* At any time, whatever the design: the truth has been refuted with probability at most alpha. *)
Theorem slab_valid n alpha (refuted : log -> bool) : 0 <= alpha -> (forall h, refuted h = true -> 1 <= alpha * together h) ->
  prob C O cs os design law n (sometime C O refuted) <= alpha.
Proof.
  intros Ha HE. apply (ville C O cs os design law X together alpha refuted Ha together_pos together_fair HE n together_0).
Qed.

(* ---------- Rows ---------- *)

(* The logarithm of what a bettor owns is a sum over trials; whatever is below every term is below it. *)
Section Rows.
Variables (j : J) (line : log -> C -> O -> R).
Fixpoint possible (h : log) : Prop :=
  match h with [] => True | (c, o) :: h' => In o (os c) /\ 0 < law c o /\ possible h' end.
Fixpoint total (h : log) : R := match h with [] => 0 | (c, o) :: h' => line h' c o + total h' end.
Definition term (h : log) (c : C) (o : O) : R := if takes_part (bets j) h c then ln (1 + bets j h c o / law c o) else 0.
Definition below_terms (h0 : log) : Prop :=
  forall pre h c o, h0 = pre ++ (c, o) :: h -> In o (os c) -> 0 < law c o -> line h c o <= term h c o.
Lemma total_below h : below_terms h -> possible h -> 0 < wealth (bets j) h /\ total h <= ln (wealth (bets j) h).
Proof.
  intros HL. induction h as [|[c o] h IH]; simpl; [intros _; rewrite ln_1; lra|]. intros (Ho & Hl & Hp).
  destruct (IH ltac:(intros pre h' c' o' ->; apply (HL ((c, o) :: pre)); reflexivity) Hp) as [W L].
  specialize (HL [] h c o eq_refl Ho Hl). unfold term in HL.
  assert (F : 0 < factor (bets j) h c o /\ line h c o <= ln (factor (bets j) h c o)).
  { destruct (takes_part (bets j) h c) eqn:T.
    - destruct (factor_is (bets j) h c o Ho Hl T) as [-> P]. split; [exact P|exact HL].
    - unfold factor. rewrite T, ln_1. lra. }
  destruct F as [F1 F2]. split; [now apply Rmult_lt_0_compat|]. rewrite ln_mult by assumption. lra.
Qed.
(* Lines that need not know whether the choice takes part: 0, and for a negative bet what it is at least where it does. *)
Lemma partly_zero h c o : In o (os c) -> 0 < law c o -> 0 <= bets j h c o -> 0 <= term h c o.
Proof.
  intros Ho Hl Hb. unfold term. destruct (takes_part (bets j) h c); [|lra]. rewrite <- ln_1 at 1.
  assert (0 <= bets j h c o / law c o) by (apply Rmult_le_pos; [exact Hb|left; now apply Rinv_0_lt_compat]).
  destruct (Req_dec (bets j h c o / law c o) 0) as [->|]; [rewrite Rplus_0_r; lra|]. left. apply ln_increasing; lra.
Qed.
Lemma partly_below h c o low : In o (os c) -> 0 < law c o -> bets j h c o < 0 -> low <= law c o ->
  ln (1 + bets j h c o / Rmax low (2 * - bets j h c o)) <= term h c o.
Proof.
  intros Ho Hl Hb Hlow. set (b := bets j h c o) in *. set (m := Rmax low (2 * - b)).
  assert (M : 2 * - b <= m) by apply Rmax_r. assert (I : 0 < / m) by (apply Rinv_0_lt_compat; lra).
  assert (E : m * / m = 1) by (field; lra). assert (P : 0 < 1 + b / m) by (unfold Rdiv; nra).
  unfold term. fold b. destruct (takes_part (bets j) h c) eqn:T.
  - pose proof (takes_part_spec (bets j) h c o T Ho Hb) as K. fold b in K.
    assert (L : m <= law c o) by (apply Rmax_lub; assumption).
    assert (Q : / law c o <= / m) by (apply Rinv_le_contravar; lra).
    assert (D : b / m <= b / law c o) by (unfold Rdiv; nra).
    destruct (Req_dec (b / m) (b / law c o)) as [->|]; [lra|]. left. apply ln_increasing; [exact P|lra].
  - pose proof (ln_below _ P). unfold Rdiv in *. nra.
Qed.
(* While the truth is not refuted by one bettor alone: with lines that are affine in the law, a half-space. *)
Theorem slab_row h alpha : below_terms h -> possible h ->
  0 < alpha -> alpha * wealth (bets j) h < 1 -> total h < - ln alpha.
Proof.
  intros HL HP Ha HW. destruct (total_below h HL HP) as [W L].
  assert (E : ln (wealth (bets j) h) < ln (/ alpha)).
  { apply ln_increasing; [exact W|]. apply (Rmult_lt_reg_l alpha); [exact Ha|]. rewrite Rinv_r by lra. exact HW. }
  rewrite ln_Rinv in E by exact Ha. lra.
Qed.
End Rows.
(* While it is not by all together: Jensen's inequality, with any parts of the bettors. *)
Theorem slab_rows (line : J -> log -> C -> O -> R) (part : J -> R) h alpha :
  (forall j, In j who -> below_terms j (line j) h) -> possible h ->
  (forall j, In j who -> 0 <= part j) -> (forall j, In j who -> 0 < part j -> 0 < share j) -> rsum part who = 1 ->
  0 < alpha -> alpha * together h < 1 ->
  rsum (fun j => part j * (total (line j) h + ln (share j / part j))) who < - ln alpha.
Proof.
  intros HL HP P0 PS P1 Ha HW.
  assert (W : forall j, In j who -> 0 < wealth (bets j) h /\ total (line j) h <= ln (wealth (bets j) h)).
  { intros j Hj. apply (total_below j (line j) h); [|exact HP]. intros; now apply HL. }
  assert (T : 0 < together h).
  { assert (K : rsum (fun j => part j * 0) who < rsum (fun j => share j * wealth (bets j) h) who \/ rsum part who <= 0).
    { clear P1 HL HW Whole Fair. unfold together. induction who as [|j l IH]; simpl; [right; lra|].
      assert (A : 0 <= share j * wealth (bets j) h) by (apply Rmult_le_pos; [apply Shares|apply wealth_pos]).
      assert (B : forall l', 0 <= rsum (fun j => share j * wealth (bets j) h) l').
      { clear -Shares. induction l' as [|j l' IH]; simpl; [lra|]. pose proof (Shares j). pose proof (wealth_pos (bets j) h). nra. }
      assert (Z : forall l', rsum (fun j => part j * 0) l' = 0).
      { induction l' as [|i l' IHl]; simpl; [reflexivity|]. rewrite IHl. lra. }
      rewrite Z in *. destruct (Rle_lt_or_eq_dec 0 (part j) (P0 j (or_introl eq_refl))) as [Pj|Pj].
      - left. pose proof (PS j (or_introl eq_refl) Pj). destruct (W j (or_introl eq_refl)) as [Wj _].
        assert (0 < share j * wealth (bets j) h) by (now apply Rmult_lt_0_compat). specialize (B l). lra.
      - destruct IH as [IH|IH]; [intros; apply P0; simpl; auto|intros; apply PS; simpl; auto|intros; apply W; simpl; auto|left|right]; lra. }
    destruct K as [K|K]; [|lra]. rewrite (rsum_ext (fun j => part j * 0) (fun _ => 0 * 0)), (rsum_scal 0 (fun _ => 0)) in K by (intros; lra).
    unfold together. lra. }
  set (s := together h) in *.
  assert (E : rsum (fun j => part j * (total (line j) h + ln (share j / part j)) + - ln s * part j) who <=
    rsum (fun j => / s * (share j * wealth (bets j) h) + -1 * part j) who).
  { apply rsum_le. intros j Hj. destruct (W j Hj) as [Wj Lj]. assert (Is : 0 < / s) by (now apply Rinv_0_lt_compat).
    destruct (Rle_lt_or_eq_dec 0 (part j) (P0 j Hj)) as [Pj|Pj].
    - pose proof (PS j Hj Pj) as Sj. set (v := share j * wealth (bets j) h / part j).
      assert (V : 0 < v / s) by (unfold v; repeat apply Rdiv_lt_0_compat; try assumption; now apply Rmult_lt_0_compat).
      pose proof (ln_below (v / s) V) as K.
      assert (Q : 0 < share j / part j) by (now apply Rdiv_lt_0_compat).
      assert (LV : ln (v / s) = ln (wealth (bets j) h) + ln (share j / part j) - ln s).
      { replace (v / s) with (wealth (bets j) h * (share j / part j) * / s) by (unfold v; field; split; lra).
        rewrite !ln_mult, ln_Rinv by (try assumption; now apply Rmult_lt_0_compat). lra. }
      rewrite LV in K. apply (Rmult_le_compat_l (part j)) in K; [|lra].
      replace (part j * (v / s - 1)) with (/ s * (share j * wealth (bets j) h) + -1 * part j) in K by (unfold v; field; split; lra).
      assert (part j * total (line j) h <= part j * ln (wealth (bets j) h)) by (apply Rmult_le_compat_l; lra). lra.
    - rewrite <- Pj. assert (0 <= / s * (share j * wealth (bets j) h)); [|lra].
      apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [apply Shares|lra]. }
  rewrite !rsum_add, !rsum_scal, P1 in E. change (rsum (fun j => share j * wealth (bets j) h) who) with s in E.
  rewrite Rinv_l in E by lra.
  assert (L : ln s < ln (/ alpha)).
  { apply ln_increasing; [exact T|]. apply (Rmult_lt_reg_l alpha); [exact Ha|]. rewrite Rinv_r by lra. exact HW. }
  rewrite ln_Rinv in L by exact Ha. lra.
Qed.
End Bets.

(* ---------- Lines ---------- *)

Lemma quotient_le a b c : 0 < b -> 0 < c -> b <= c -> 0 <= a -> a / c <= a / b.
Proof. intros Hb Hc L Ha. apply Rmult_le_compat_l; [exact Ha|]. now apply Rinv_le_contravar. Qed.

(* A bet a > 0: a tangent at any point. *)
Lemma tangent_below a f q : 0 < a -> 0 < f -> 0 < q -> ln (1 + a / q) - a * (f - q) / (q * (q + a)) <= ln (1 + a / f).
Proof.
  intros Ha Hf Hq. set (r := f * (q + a) / ((f + a) * q)).
  assert (R : 0 < r) by (unfold r; apply Rdiv_lt_0_compat; nra).
  assert (E : ln (1 + a / q) = ln r + ln (1 + a / f)).
  { rewrite <- ln_mult; [|exact R|]. 2:{ assert (0 < a / f) by (now apply Rdiv_lt_0_compat). lra. } f_equal. unfold r. field. repeat split; lra. }
  rewrite E. pose proof (ln_below r R) as L.
  assert (K : r - 1 <= a * (f - q) / (q * (q + a))); [|lra].
  replace (r - 1) with (a * (f - q) / (q * (f + a))) by (unfold r; field; split; lra).
  destruct (Rle_dec q f) as [G|G].
  - apply quotient_le; nra.
  - assert (a * (q - f) / (q * (q + a)) <= a * (q - f) / (q * (f + a))) by (apply quotient_le; nra).
    replace (a * (f - q) / (q * (f + a))) with (- (a * (q - f) / (q * (f + a)))) by (field; split; lra).
    replace (a * (f - q) / (q * (q + a))) with (- (a * (q - f) / (q * (q + a)))) by (field; split; lra). lra.
Qed.
(* A bet - b < 0: the chord between two points at which it takes part. *)
Lemma chord_tangent b f q : 0 < b -> b < f -> b < q -> ln (1 - b / q) <= ln (1 - b / f) + b * (q - f) / (f * (f - b)).
Proof.
  intros Hb Hf Hq. set (r := (q - b) * f / (q * (f - b))).
  assert (R : 0 < r) by (unfold r; apply Rdiv_lt_0_compat; nra).
  assert (P : 0 < 1 - b / f).
  { replace (1 - b / f) with ((f - b) / f) by (field; lra). apply Rdiv_lt_0_compat; lra. }
  assert (E : ln (1 - b / q) = ln r + ln (1 - b / f)).
  { rewrite <- ln_mult by assumption. f_equal. unfold r. field. repeat split; lra. }
  rewrite E. pose proof (ln_below r R) as L.
  assert (K : r - 1 <= b * (q - f) / (f * (f - b))); [|lra].
  replace (r - 1) with (b * (q - f) / (q * (f - b))) by (unfold r; field; split; lra).
  destruct (Rle_dec f q) as [G|G].
  - apply quotient_le; nra.
  - assert (b * (f - q) / (f * (f - b)) <= b * (f - q) / (q * (f - b))) by (apply quotient_le; nra).
    replace (b * (q - f) / (q * (f - b))) with (- (b * (f - q) / (q * (f - b)))) by (field; split; lra).
    replace (b * (q - f) / (f * (f - b))) with (- (b * (f - q) / (f * (f - b)))) by (field; split; lra). lra.
Qed.
Lemma chord_below b l u f : 0 < b -> b < l -> l < u -> l <= f <= u ->
  ln (1 - b / l) + (ln (1 - b / u) - ln (1 - b / l)) * (f - l) / (u - l) <= ln (1 - b / f).
Proof.
  intros Hb Hl Hu Hf. pose proof (chord_tangent b f l Hb ltac:(lra) Hl) as A. pose proof (chord_tangent b f u Hb ltac:(lra) ltac:(lra)) as B.
  set (s := (f - l) / (u - l)). assert (S0 : 0 <= s) by (unfold s; apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (S1 : s <= 1).
  { unfold s. apply (Rmult_le_reg_r (u - l)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  replace ((ln (1 - b / u) - ln (1 - b / l)) * (f - l) / (u - l)) with ((ln (1 - b / u) - ln (1 - b / l)) * s) by (unfold s; field; lra).
  set (g := b / (f * (f - b))).
  replace (b * (l - f) / (f * (f - b))) with (g * (l - f)) in A by (unfold g; field; split; lra).
  replace (b * (u - f) / (f * (f - b))) with (g * (u - f)) in B by (unfold g; field; split; lra).
  assert (E : (1 - s) * (l - f) + s * (u - f) = 0) by (unfold s; field; lra).
  assert (A' := Rmult_le_compat_l (1 - s) _ _ ltac:(lra) A). assert (B' := Rmult_le_compat_l s _ _ S0 B).
  assert (Z : g * ((1 - s) * (l - f) + s * (u - f)) = 0) by (rewrite E; lra). lra.
Qed.
