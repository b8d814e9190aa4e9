(* Logarithms from below: whole numbers of 2^-112, which hints give and squarings prove. *)
From Coq Require Import Bool Arith ZArith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Basics Krichevsky.
Open Scope R_scope.

Definition unit_log : Z := Z.pow 2 112.
Definition bits : Z := 192.
Definition fixed : Z := Z.pow 2 bits.
Fixpoint squared (more : Z) (n : nat) (u : Z) : Z :=
  match n with O => u | S n' => squared more n' (Z.add (Z.shiftr (Z.mul u u) bits) more) end.
(* exp (y / 2^112) <= q, as exp x <= 1 + x + 2 x^2 and 1 + x <= exp x for small x = |y| / 2^192; up and down are 80 squarings. *)
Definition log_by (up down : Z -> Z) (q : Q) (y : Z) : bool :=
  if Z.leb 0 y then
    Z.leb (Z.mul 2 y) fixed &&
    Qle_bool (inject_Z (up (Z.add (Z.add fixed y) (Z.add (Z.shiftr (Z.mul 2 (Z.mul y y)) bits) 1)))) (Qmult q (inject_Z fixed))
  else Qle_bool (inject_Z fixed) (Qmult q (inject_Z (down (Z.sub fixed y)))).
Definition log_ok : Q -> Z -> bool := log_by (squared 1 80) (squared 0 80).

(* ---------- Proofs ---------- *)

Lemma fixed_pos : 0 < IZR fixed. Proof. apply IZR_lt. reflexivity. Qed.
Lemma shift_R a : IZR (Z.shiftr a bits) <= IZR a / IZR fixed < IZR (Z.shiftr a bits) + 1.
Proof.
  unfold bits. rewrite Z.shiftr_div_pow2 by lia. change (2 ^ 192)%Z with fixed.
  pose proof (Z.div_mod a fixed ltac:(discriminate)) as E. pose proof (Z.mod_pos_bound a fixed ltac:(reflexivity)) as [L U].
  apply IZR_le in L. apply IZR_lt in U. pose proof fixed_pos as F.
  apply (f_equal IZR) in E. rewrite plus_IZR, mult_IZR in E. set (d := IZR (a / fixed)) in *. set (r := IZR (a mod fixed)) in *.
  rewrite E. replace ((IZR fixed * d + r) / IZR fixed) with (d + r * / IZR fixed) by (field; lra).
  assert (0 <= r * / IZR fixed < 1).
  { split; [apply Rmult_le_pos; [exact L|left; now apply Rinv_0_lt_compat]|].
    apply (Rmult_lt_reg_r (IZR fixed)); [exact F|]. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  lra.
Qed.
Lemma squared_up n : forall u x, 0 <= x -> x <= IZR u / IZR fixed -> x ^ (2 ^ n) <= IZR (squared 1 n u) / IZR fixed.
Proof.
  pose proof fixed_pos as F. induction n as [|n IH]; intros u x Hx H; [simpl; lra|].
  cbn [squared]. change (2 ^ S n)%nat with (2 * 2 ^ n)%nat. rewrite pow_mult.
  apply IH; [apply pow2_ge_0|]. pose proof (proj2 (shift_R (u * u))) as K. rewrite mult_IZR in K. rewrite plus_IZR.
  apply Rle_trans with ((IZR u / IZR fixed) ^ 2); [apply pow_incr; lra|].
  replace ((IZR u / IZR fixed) ^ 2) with (IZR u * IZR u / IZR fixed / IZR fixed) by (field; lra).
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|lra].
Qed.
Lemma squared_down n : forall u x, 0 <= IZR u / IZR fixed <= x -> IZR (squared 0 n u) / IZR fixed <= x ^ (2 ^ n).
Proof.
  pose proof fixed_pos as F. induction n as [|n IH]; intros u x H; [simpl; lra|].
  cbn [squared]. change (2 ^ S n)%nat with (2 * 2 ^ n)%nat. rewrite pow_mult.
  apply IH. rewrite Z.add_0_r. pose proof (proj1 (shift_R (u * u))) as K. rewrite mult_IZR in K.
  assert (I : 0 < / IZR fixed) by now apply Rinv_0_lt_compat. split.
  - apply Rmult_le_pos; [|lra]. apply IZR_le. unfold bits. rewrite Z.shiftr_div_pow2 by lia. apply Z.div_pos; [apply Z.square_nonneg|reflexivity].
  - apply Rle_trans with ((IZR u / IZR fixed) ^ 2); [|apply pow_incr; lra].
    replace ((IZR u / IZR fixed) ^ 2) with (IZR u * IZR u / IZR fixed / IZR fixed) by (field; lra).
    apply Rmult_le_compat_r; lra.
Qed.

Lemma squared_pos n : forall u, (0 <= squared 0 (S n) u)%Z.
Proof.
  induction n as [|n IH]; intros u; [|cbn [squared]; apply IH]. cbn [squared]. unfold bits. rewrite Z.add_0_r, Z.shiftr_div_pow2 by lia.
  apply Z.div_pos; [apply Z.square_nonneg|reflexivity].
Qed.
Definition rises (m : nat) (up down : Z -> Z) : Prop := (forall x, exp x ^ m = exp (IZR (2 ^ 80) * x)) /\
  (forall u x, 0 <= x -> x <= IZR u / IZR fixed -> x ^ m <= IZR (up u) / IZR fixed) /\
  (forall u x, 0 <= IZR u / IZR fixed <= x -> IZR (down u) / IZR fixed <= x ^ m) /\ forall u, (0 <= down u)%Z.
Lemma squarings : exists m, rises m (squared 1 80) (squared 0 80).
Proof.
  exists (2 ^ 80)%nat. split; [|split; [|split] ].
  - intros x. rewrite exp_pow, pow_INR. f_equal. f_equal. replace (INR 2) with (IZR 2) by reflexivity. rewrite pow_IZR. reflexivity.
  - intros. now apply squared_up.
  - intros. now apply squared_down.
  - apply squared_pos.
Qed.

Lemma log_by_sound m s1 s0 q y : rises m s1 s0 -> log_by s1 s0 q y = true -> 0 < Q2R q /\ IZR y / IZR unit_log <= ln (Q2R q).
Proof.
  pose proof fixed_pos as F. intros (SE & SU & SD & s0_pos) H. unfold log_by in H.
  assert (U : 0 < IZR unit_log) by (apply IZR_lt; reflexivity).
  assert (FU : IZR fixed = IZR (2 ^ 80) * IZR unit_log) by (rewrite <- mult_IZR; reflexivity).
  assert (K : exp (IZR y / IZR unit_log) <= Q2R q).
  { assert (E : IZR y / IZR unit_log = IZR (2 ^ 80) * (IZR y / IZR fixed)).
    { rewrite FU. field. split; [lra|]. apply not_0_IZR. discriminate. }
    rewrite E, <- SE. destruct (Z.leb 0 y) eqn:S.
    - apply andb_prop in H. destruct H as [H1 H2]. apply Z.leb_le, IZR_le in S, H1. rewrite mult_IZR in H1.
      apply Qle_bool_R in H2. rewrite Q2R_mult, !inject_R in H2.
      match type of H2 with IZR (s1 ?u) <= _ => assert (B : exp (IZR y / IZR fixed) <= IZR u / IZR fixed) end.
      { set (x := IZR y / IZR fixed). assert (X : 0 <= x <= 1 / 2).
        { unfold x. split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
          apply (Rmult_le_reg_r (IZR fixed)); [exact F|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l by lra. lra. }
        apply Rle_trans with (1 + x + 2 * x ^ 2).
        - pose proof (exp_ineq1_le (- x)) as K. rewrite exp_Ropp in K.
          assert (P : 0 < exp x) by apply exp_pos.
          assert (K2 : (1 - x) * exp x <= 1).
          { apply (Rmult_le_compat_r (exp x)) in K; [|lra]. rewrite Rinv_l in K by lra. lra. }
          assert (Q1 : 1 <= (1 - x) * (1 + x + 2 * x ^ 2)) by nra.
          apply (Rmult_le_reg_l (1 - x)); lra.
        - rewrite !plus_IZR. pose proof (proj2 (shift_R (2 * (y * y)))) as K. rewrite !mult_IZR in K.
          replace (1 + x + 2 * x ^ 2) with ((IZR fixed + IZR y + 2 * (IZR y * IZR y) / IZR fixed) / IZR fixed)
            by (unfold x; field; lra).
          apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|lra]. }
      pose proof (SU _ _ (Rlt_le _ _ (exp_pos _)) B) as C. eapply Rle_trans; [exact C|].
      apply (Rmult_le_reg_r (IZR fixed)); [exact F|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
    - apply Z.leb_gt, IZR_lt in S. apply Qle_bool_R in H. rewrite Q2R_mult, !inject_R in H.
      set (x := IZR y / IZR fixed).
      assert (B : 0 <= IZR (fixed - y) / IZR fixed <= exp (- x)).
      { rewrite minus_IZR. split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
        replace ((IZR fixed - IZR y) / IZR fixed) with (1 + - x) by (unfold x; field; lra). apply exp_ineq1_le. }
      pose proof (SD _ _ B) as C. rewrite exp_Ropp, pow_inv in C.
      set (v := IZR (s0 (fixed - y)%Z)) in *. set (e := exp x ^ m) in *.
      assert (P : 0 < e) by (apply pow_lt, exp_pos).
      apply (Rmult_le_compat_r e) in C; [|lra]. rewrite Rinv_l in C by lra.
      assert (C2 : v * e <= IZR fixed).
      { apply (Rmult_le_compat_l (IZR fixed)) in C; [|lra]. unfold Rdiv in C.
        replace (IZR fixed * (v * / IZR fixed * e)) with (v * e) in C by (field; lra). lra. }
      assert (QV : 0 < v).
      { assert (V0 : 0 <= v) by (apply IZR_le, s0_pos). destruct V0 as [V0|V0]; [exact V0|exfalso].
        rewrite <- V0, Rmult_0_r in H. lra. }
      apply (Rmult_le_reg_r v); [exact QV|]. lra. }
  pose proof (exp_pos (IZR y / IZR unit_log)) as P. split; [lra|].
  rewrite <- (ln_exp (IZR y / IZR unit_log)). destruct K as [K|K]; [left; now apply ln_increasing|rewrite K; lra].
Qed.
Lemma log_sound q y : log_ok q y = true -> 0 < Q2R q /\ IZR y / IZR unit_log <= ln (Q2R q).
Proof. destruct squarings as [m H]. exact (log_by_sound m _ _ q y H). Qed.
