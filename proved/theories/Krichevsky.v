(* The mixture of Krichevsky and Trofimov, exactly, and the confidence interval that it gives. *)
From Coq Require Import List Bool Arith ZArith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Basics.
Import ListNotations.
Open Scope R_scope.

(* f lo * ... * f (lo + n - 1), by halves *)
Fixpoint product (f : nat -> Z) (lo n : nat) : Z :=
  match n with O => 1%Z | S n' => Z.mul (f lo) (product f (S lo) n') end.
Fixpoint tree (d : nat) (f : nat -> Z) (lo n : nat) : Z :=
  match d with
  | O => product f lo n
  | S d' => let k := Nat.div2 n in Z.mul (tree d' f lo k) (tree d' f (lo + k) (n - k))
  end.
Definition odds (n : nat) : Z := tree 14 (fun i => Z.of_nat (S (2 * i))) 0 n.
Definition factorial (n : nat) : Z := tree 14 (fun i => Z.of_nat (S i)) 0 n.
Definition power (a : Z) (n : nat) : Z := Z.pow a (Z.of_nat n).
Definition qnat (n : nat) : Q := inject_Z (Z.of_nat n).

(* p = a / b. Whoever is below p has seen k successes and m failures with a likelihood of at most level times the mixture's. *)
Definition end_holds (level p : Q) (a b : Z) (k m : nat) : bool :=
  Qle_bool p 0 ||
  (Qltb p 1 && Z.ltb 0 b && Qeq_bool (inject_Z a) (Qmult p (inject_Z b)) &&
   Qle_bool (Qmult (qnat m) p) (Qmult (qnat k) (Qminus 1 p)) &&
   Qle_bool (inject_Z (Z.mul (Z.mul (power a k) (power (b - a) m)) (Z.mul (power 2 (k + m)) (factorial (k + m)))))
            (Qmult level (inject_Z (Z.mul (Z.mul (odds k) (odds m)) (power b (k + m)))))).

(* ---------- Proofs ---------- *)

Lemma product_split f n : forall lo k, (k <= n)%nat -> product f lo n = (product f lo k * product f (lo + k) (n - k))%Z.
Proof.
  induction n as [|n IH]; intros lo k Hk.
  - replace k with 0%nat by lia. simpl. lia.
  - destruct k as [|k]; [rewrite Nat.add_0_r, Nat.sub_0_r; simpl product at 2; lia|].
    simpl. rewrite (IH (S lo) k) by lia. rewrite Nat.add_succ_r. simpl. lia.
Qed.
Lemma tree_product d f : forall lo n, tree d f lo n = product f lo n.
Proof.
  induction d as [|d IH]; intros lo n; [reflexivity|]. simpl. rewrite !IH. symmetry. apply product_split.
  apply Nat.div2_decr. lia.
Qed.
Lemma product_last f n : forall lo, product f lo (S n) = (product f lo n * f (lo + n)%nat)%Z.
Proof. intros lo. rewrite (product_split f (S n) lo n) by lia. replace (S n - n)%nat with 1%nat by lia. simpl. lia. Qed.
Lemma product_pos f n : (forall i, (0 < f i)%Z) -> forall lo, (0 < product f lo n)%Z.
Proof. intros H. induction n as [|n IH]; intros lo; simpl; [lia|]. specialize (H lo). specialize (IH (S lo)). nia. Qed.

Lemma odds_S n : IZR (odds (S n)) = IZR (odds n) * (2 * INR n + 1).
Proof.
  unfold odds. rewrite !tree_product, product_last, mult_IZR. f_equal. simpl (0 + n)%nat.
  rewrite <- INR_IZR_INZ, S_INR, mult_INR. simpl. lra.
Qed.
Lemma factorial_S n : IZR (factorial (S n)) = IZR (factorial n) * (INR n + 1).
Proof.
  unfold factorial. rewrite !tree_product, product_last, mult_IZR. f_equal. simpl (0 + n)%nat.
  now rewrite <- INR_IZR_INZ, S_INR.
Qed.
Lemma odds_pos n : 0 < IZR (odds n).
Proof. apply IZR_lt. unfold odds. rewrite tree_product. apply product_pos. lia. Qed.
Lemma factorial_pos n : 0 < IZR (factorial n).
Proof. apply IZR_lt. unfold factorial. rewrite tree_product. apply product_pos. lia. Qed.
Lemma power_R a n : IZR (power a n) = IZR a ^ n.
Proof. unfold power. now rewrite <- pow_IZR. Qed.

Lemma odds_0 : odds 0 = 1%Z. Proof. unfold odds. now rewrite tree_product. Qed.
Lemma factorial_0 : factorial 0 = 1%Z. Proof. unfold factorial. now rewrite tree_product. Qed.
Global Opaque odds factorial power.

Definition mixture (k m : nat) : R := IZR (odds k) * IZR (odds m) / (2 ^ (k + m) * IZR (factorial (k + m))).
Lemma mixture_pos k m : 0 < mixture k m.
Proof.
  unfold mixture. pose proof (odds_pos k). pose proof (odds_pos m). pose proof (factorial_pos (k + m)).
  assert (0 < 2 ^ (k + m)) by (apply pow_lt; lra).
  apply Rdiv_lt_0_compat; apply Rmult_lt_0_compat; assumption.
Qed.
Lemma mixture_0 : mixture 0 0 = 1. Proof. unfold mixture. simpl plus. rewrite odds_0, factorial_0. simpl. lra. Qed.
Lemma mixture_sum k m : mixture (S k) m + mixture k (S m) = mixture k m.
Proof.
  unfold mixture. replace (k + S m)%nat with (S (k + m)) by lia. replace (S k + m)%nat with (S (k + m)) by lia.
  rewrite (odds_S k), (odds_S m), (factorial_S (k + m)). rewrite <- tech_pow_Rmult. rewrite plus_INR.
  pose proof (odds_pos k) as H1. pose proof (odds_pos m) as H2. pose proof (factorial_pos (k + m)) as H3.
  assert (H4 : 0 < 2 ^ (k + m)) by (apply pow_lt; lra). pose proof (pos_INR k) as H5. pose proof (pos_INR m) as H6.
  generalize dependent (IZR (odds k)). generalize dependent (IZR (odds m)). generalize dependent (IZR (factorial (k + m))).
  generalize dependent (2 ^ (k + m)). generalize dependent (INR k). generalize dependent (INR m).
  intros m' Hm k' Hk t Ht f Hf a Ha b Hb. field. repeat split; lra.
Qed.

Lemma qnat_R n : Q2R (qnat n) = INR n.
Proof. unfold qnat, Q2R. simpl. rewrite <- INR_IZR_INZ. lra. Qed.
Lemma inject_R z : Q2R (inject_Z z) = IZR z. Proof. unfold inject_Z, Q2R. simpl. lra. Qed.

Lemma exp_pow y n : exp y ^ n = exp (INR n * y).
Proof.
  induction n as [|n IH]; [simpl; now rewrite Rmult_0_l, exp_0|].
  rewrite S_INR. simpl. rewrite IH, <- exp_plus. f_equal. lra.
Qed.
Lemma unimodal t a k m : 0 <= t <= a -> 0 < a < 1 -> INR m * a <= INR k * (1 - a) ->
  t ^ k * (1 - t) ^ m <= a ^ k * (1 - a) ^ m.
Proof.
  intros Ht Ha H.
  set (u := t / a). set (w := (1 - t) / (1 - a)).
  assert (Hu : 0 <= u) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (Hw : 0 <= w) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (Et : t = u * a) by (unfold u; field; lra).
  assert (Ew : 1 - t = w * (1 - a)) by (unfold w; field; lra).
  rewrite Ew, Et. rewrite !Rpow_mult_distr.
  assert (K : u ^ k * w ^ m <= 1).
  { apply Rle_trans with (exp (u - 1) ^ k * exp (w - 1) ^ m).
    - apply Rmult_le_compat; try (now apply pow_le); apply pow_incr; split; auto.
      + pose proof (exp_ineq1_le (u - 1)). lra.
      + pose proof (exp_ineq1_le (w - 1)). lra.
    - rewrite !exp_pow, <- exp_plus.
      assert (Z : INR k * (u - 1) + INR m * (w - 1) <= 0).
      { replace (INR k * (u - 1) + INR m * (w - 1))
          with ((a - t) * (INR m * a - INR k * (1 - a)) * / (a * (1 - a))) by (unfold u, w; field; lra).
        assert (0 < / (a * (1 - a))) by (apply Rinv_0_lt_compat; nra).
        assert ((a - t) * (INR m * a - INR k * (1 - a)) <= 0) by nra. nra. }
      destruct Z as [Z|Z]; [apply exp_increasing in Z; rewrite exp_0 in Z; lra|rewrite Z, exp_0; lra]. }
  assert (0 <= a ^ k * (1 - a) ^ m) by (apply Rmult_le_pos; apply pow_le; lra).
  replace (u ^ k * a ^ k * (w ^ m * (1 - a) ^ m)) with ((u ^ k * w ^ m) * (a ^ k * (1 - a) ^ m)) by lra.
  nra.
Qed.

Lemma end_sound level p a b k m t : end_holds level p a b k m = true -> 0 <= t -> t < Q2R p ->
  t ^ k * (1 - t) ^ m <= Q2R level * mixture k m.
Proof.
  unfold end_holds. intros H Ht Htp. apply orb_prop in H. destruct H as [H|H].
  - apply Qle_bool_R in H. rewrite Q2R_0 in H. lra.
  - apply andb_prop in H. destruct H as [H H5]. apply andb_prop in H. destruct H as [H H4].
    apply andb_prop in H. destruct H as [H H3]. apply andb_prop in H. destruct H as [H1 H2].
    apply Qltb_R in H1. rewrite Q2R_1 in H1. apply Z.ltb_lt, IZR_lt in H2.
    apply Qeq_bool_eq, Qeq_eqR in H3. rewrite Q2R_mult, !inject_R in H3.
    apply Qle_bool_R in H4, H5. rewrite !Q2R_mult, !qnat_R, Q2R_minus, Q2R_1 in H4.
    rewrite Q2R_mult, !inject_R, !mult_IZR, !power_R, minus_IZR in H5.
    eapply Rle_trans; [apply (unimodal t (Q2R p) k m); lra|].
    generalize (odds_pos k) (odds_pos m) (factorial_pos (k + m)). unfold mixture.
    generalize dependent (IZR (odds k)). generalize dependent (IZR (odds m)). generalize dependent (IZR (factorial (k + m))).
    intros f o2 o1 H5 O1 O2 F0.
    set (P := Q2R p) in *. set (B := IZR b) in *.
    replace (IZR a) with (P * B) in H5 by lra. replace (B - P * B) with ((1 - P) * B) in H5 by lra.
    rewrite !Rpow_mult_distr in H5.
    assert (BP : 0 < B ^ (k + m)) by (apply pow_lt; lra).
    assert (D : 0 < 2 ^ (k + m) * f) by (apply Rmult_lt_0_compat; [apply pow_lt; lra|exact F0]).
    apply (Rmult_le_reg_r (2 ^ (k + m) * f)); [exact D|].
    replace (Q2R level * (o1 * o2 / (2 ^ (k + m) * f)) * (2 ^ (k + m) * f)) with (Q2R level * (o1 * o2))
      by (assert (f <> 0) by lra; assert (2 ^ (k + m) <> 0) by (apply pow_nonzero; lra); field; auto).
    rewrite (pow_add B) in BP, H5. apply (Rmult_le_reg_r (B ^ k * B ^ m)); [exact BP|]. lra.
Qed.
