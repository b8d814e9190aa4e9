(* Tails of binomial distributions, and the interval of Clopper and Pearson, exactly. *)
From Coq Require Import List Bool Arith ZArith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Basics Krichevsky.
Import ListNotations.
Open Scope R_scope.

(* The expectation of f at the number of successes of n trials; the probability of exactly, and of at least, k. *)
Fixpoint binomial (p : R) (n : nat) (f : nat -> R) : R :=
  match n with O => f 0%nat | S n' => p * binomial p n' (fun k => f (S k)) + (1 - p) * binomial p n' f end.
Definition tail (p : R) (n k : nat) : R := binomial p n (fun x => if (k <=? x)%nat then 1 else 0).
Definition point (p : R) (n k : nat) : R := binomial p n (fun x => if Nat.eqb k x then 1 else 0).

(* Upper bounds us = u_1, u_2, ... of point(k+i)/point(k), u_0 = 1; the last one is followed by a geometric series of the given ratio.
   [m] failures: n = k + m. *)
Fixpoint ratios (p : Q) (k m : nat) (u : Q) (us : list Q) : option Q :=
  match m with
  | O => Some u
  | S m' =>
      match us with
      | [] => let r := Qmult (qnat m) p in let d := Qminus (Qmult (qnat (S k)) (Qminus 1 p)) r in
              (* u + u rho + u rho^2 + ... = u + u r / d *)
              if Qltb 0 d then Some (Qplus u (Qmult (Qmult u r) (Qinv d))) else None
      | v :: us' =>
          if Qle_bool (Qmult (Qmult u (qnat m)) p) (Qmult (Qmult v (qnat (S k))) (Qminus 1 p))
          then option_map (Qplus u) (ratios p (S k) m' v us') else None
      end
  end.
(* p = a / b: with chance p at every trial, k or more successes among k + m have probability at most alpha. *)
Definition tail_holds (alpha p : Q) (a b : Z) (us : list Q) (k m : nat) : bool :=
  Qle_bool p 0 ||
  (Qltb p 1 && Z.ltb 0 b && Qeq_bool (inject_Z a) (Qmult p (inject_Z b)) &&
   match ratios p k m 1 us with
   | None => false
   | Some s => Qle_bool (Qmult s (inject_Z (Z.mul (factorial (k + m)) (Z.mul (power a k) (power (b - a) m)))))
                 (Qmult alpha (inject_Z (Z.mul (Z.mul (factorial k) (factorial m)) (power b (k + m)))))
   end).

(* ---------- Proofs ---------- *)

Section P.
Variable p : R.
Hypothesis Hp : 0 <= p <= 1.

Lemma binomial_le n : forall f g, (forall x, f x <= g x) -> binomial p n f <= binomial p n g.
Proof.
  induction n as [|n IH]; intros f g H; simpl; [apply H|].
  apply Rplus_le_compat; apply Rmult_le_compat_l; try lra; apply IH; intros; apply H.
Qed.
Lemma binomial_ext n f g : (forall x, f x = g x) -> binomial p n f = binomial p n g.
Proof. intros H. apply Rle_antisym; apply binomial_le; intros x; rewrite H; lra. Qed.
Lemma binomial_const n a : binomial p n (fun _ => a) = a.
Proof. induction n as [|n IH]; simpl; [reflexivity|]. rewrite IH. lra. Qed.
Lemma binomial_add n : forall f g, binomial p n (fun x => f x + g x) = binomial p n f + binomial p n g.
Proof. induction n as [|n IH]; intros f g; simpl; [reflexivity|]. rewrite !IH. lra. Qed.
Lemma tail_0 n : tail p n 0 = 1. Proof. unfold tail. simpl. apply binomial_const. Qed.
Lemma tail_S n k : tail p (S n) (S k) = p * tail p n k + (1 - p) * tail p n (S k).
Proof. unfold tail. simpl. reflexivity. Qed.
Lemma tail_none n : forall k, (n < k)%nat -> tail p n k = 0.
Proof.
  induction n as [|n IH]; intros k Hk; destruct k as [|k]; try lia; [reflexivity|].
  rewrite tail_S, !IH by lia. lra.
Qed.
Lemma tail_point n k : tail p n k = point p n k + tail p n (S k).
Proof.
  unfold tail, point. rewrite <- binomial_add. apply binomial_ext. intros x.
  destruct (Nat.eqb k x) eqn:E.
  - apply Nat.eqb_eq in E. subst x. rewrite Nat.leb_refl. replace (S k <=? k)%nat with false by (symmetry; apply Nat.leb_gt; lia). lra.
  - apply Nat.eqb_neq in E. destruct (k <=? x)%nat eqn:F.
    + apply Nat.leb_le in F. replace (S k <=? x)%nat with true by (symmetry; apply Nat.leb_le; lia). lra.
    + apply Nat.leb_gt in F. replace (S k <=? x)%nat with false by (symmetry; apply Nat.leb_gt; lia). lra.
Qed.
Lemma point_pos n k : 0 <= point p n k.
Proof. rewrite <- (binomial_const n 0). apply binomial_le. intros x. destruct (Nat.eqb k x); lra. Qed.
Lemma tail_falls n k : tail p n (S k) <= tail p n k.
Proof. rewrite (tail_point n k). pose proof (point_pos n k). lra. Qed.
Lemma tail_pos n k : 0 <= tail p n k.
Proof. rewrite <- (binomial_const n 0). apply binomial_le. intros x. destruct (k <=? x)%nat; lra. Qed.

Lemma point_SS n k : point p (S n) (S k) = p * point p n k + (1 - p) * point p n (S k).
Proof. unfold point. simpl. reflexivity. Qed.
Lemma point_S0 n : point p (S n) 0 = (1 - p) * point p n 0.
Proof. unfold point. simpl. rewrite binomial_const. lra. Qed.
Lemma point_none n : forall k, (n < k)%nat -> point p n k = 0.
Proof.
  induction n as [|n IH]; intros k Hk; destruct k as [|k]; try lia; [reflexivity|].
  rewrite point_SS, !IH by lia. lra.
Qed.
Notation F n := (IZR (factorial n)).
Lemma point_formula n : forall k m, (k + m = n)%nat -> point p n k * (F k * F m) = F n * (p ^ k * (1 - p) ^ m).
Proof.
  induction n as [|n IH]; intros k m E.
  - replace k with 0%nat by lia. replace m with 0%nat by lia. unfold point. simpl. rewrite factorial_0. lra.
  - destruct k as [|k].
    + assert (m = S n) by lia. subst m. rewrite point_S0, !factorial_S, factorial_0.
      specialize (IH 0%nat n eq_refl). rewrite factorial_0 in IH. simpl pow in *.
      replace ((1 - p) * point p n 0 * (1 * (F n * (INR n + 1)))) with ((1 - p) * (INR n + 1) * (point p n 0 * (1 * F n))) by ring.
      rewrite IH. ring.
    + rewrite point_SS. destruct m as [|m].
      * assert (n = k) by lia. subst n. rewrite (point_none k (S k)) by lia. rewrite Rmult_0_r, Rplus_0_r.
        specialize (IH k 0%nat ltac:(lia)). rewrite (factorial_S k). simpl pow in *.
        replace (p * point p k k * (F k * (INR k + 1) * F 0)) with (p * (INR k + 1) * (point p k k * (F k * F 0))) by ring.
        rewrite IH. ring.
      * assert (n = k + S m)%nat by lia. subst n.
        pose proof (IH k (S m) eq_refl) as I1. pose proof (IH (S k) m ltac:(lia)) as I2.
        replace ((p * point p (k + S m) k + (1 - p) * point p (k + S m) (S k)) * (F (S k) * F (S m)))
          with (p * (INR k + 1) * (point p (k + S m) k * (F k * F (S m))) +
                (1 - p) * (INR m + 1) * (point p (k + S m) (S k) * (F (S k) * F m)))
          by (rewrite (factorial_S k), (factorial_S m); ring).
        rewrite I1, I2, (factorial_S (k + S m)), plus_INR, S_INR. simpl pow. ring.
Qed.
Lemma point_ratio k m : point p (k + S m) (S k) * (INR k + 1) * (1 - p) = point p (k + S m) k * (INR m + 1) * p.
Proof.
  pose proof (point_formula (k + S m) k (S m) eq_refl) as A. pose proof (point_formula (k + S m) (S k) m ltac:(lia)) as B.
  pose proof (factorial_pos k) as Fk. pose proof (factorial_pos m) as Fm.
  rewrite (factorial_S m) in A. rewrite (factorial_S k) in B. simpl pow in *.
  apply (Rmult_eq_reg_r (F k * F m)); [|apply Rgt_not_eq; nra].
  replace (point p (k + S m) (S k) * (INR k + 1) * (1 - p) * (F k * F m))
    with ((1 - p) * (point p (k + S m) (S k) * (F k * (INR k + 1) * F m))) by ring.
  replace (point p (k + S m) k * (INR m + 1) * p * (F k * F m))
    with (p * (point p (k + S m) k * (F k * (F m * (INR m + 1))))) by ring.
  rewrite A, B. ring.
Qed.

(* More than one in alpha is never seen: the tail at what is seen is rarely small. *)
Lemma rarely alpha n (E : nat -> bool) : 0 <= alpha -> (forall k, E k = true -> tail p n k <= alpha) ->
  binomial p n (fun x => if E x then 1 else 0) <= alpha.
Proof.
  intros Ha HE. assert (G : forall k, (k <= S n)%nat -> (forall x, (x < k)%nat -> E x = false) ->
    binomial p n (fun x => if E x then 1 else 0) <= Rmax alpha 0 \/ True) by (intros; now right). clear G.
  (* the first number that is hit *)
  assert (G : forall d k, (k + d = S n)%nat -> (forall x, (x < k)%nat -> E x = false) ->
    exists k', (forall x, (x < k')%nat -> E x = false) /\ tail p n k' <= alpha).
  { induction d as [|d IH]; intros k Hk H.
    - exists k. split; [exact H|]. rewrite tail_none by lia. exact Ha.
    - destruct (E k) eqn:Ek; [exists k; split; [exact H|now apply HE]|].
      apply (IH (S k)); [lia|]. intros x Hx. destruct (Nat.eq_dec x k) as [->|]; [exact Ek|]. apply H. lia. }
  destruct (G (S n) 0%nat eq_refl) as (k' & H1 & H2); [intros; lia|].
  eapply Rle_trans; [|exact H2]. apply binomial_le. intros x. destruct (k' <=? x)%nat eqn:L.
  - destruct (E x); lra.
  - apply Nat.leb_gt in L. rewrite (H1 x L). lra.
Qed.
End P.

Lemma tail_grows n : forall p q k, 0 <= p <= q -> q <= 1 -> tail p n k <= tail q n k.
Proof.
  induction n as [|n IH]; intros p q k Hp Hq; destruct k as [|k].
  - rewrite !tail_0. lra.
  - unfold tail. simpl. lra.
  - rewrite !tail_0. lra.
  - rewrite !tail_S. pose proof (IH p q k Hp Hq). pose proof (IH p q (S k) Hp Hq).
    pose proof (tail_falls q ltac:(lra) n k). nra.
Qed.

Lemma ratios_sound p (Hp : 0 < Q2R p < 1) us : forall k m u s, ratios p k m u us = Some s ->
  0 <= Q2R u -> forall c, 0 <= c -> point (Q2R p) (k + m) k <= c * Q2R u -> tail (Q2R p) (k + m) k <= c * Q2R s.
Proof.
  set (P := Q2R p) in *. assert (P01 : 0 <= P <= 1) by lra.
  induction us as [|v us IH]; intros k m u s H Hu c Hc HP; destruct m as [|m]; cbn [ratios] in H.
  1,3: injection H as <-; rewrite (tail_point P P01), (tail_none P (k + 0) (S k)) by lia; rewrite Rplus_0_r; exact HP.
  - destruct (Qltb 0 _) eqn:E; [|discriminate]. injection H as <-. apply Qltb_R in E.
    rewrite Q2R_0, Q2R_minus, !Q2R_mult, Q2R_minus, Q2R_1, !qnat_R in E.
    rewrite Q2R_plus, !Q2R_mult, qnat_R, Q2R_inv.
    2: { intros Z. apply Qeq_eqR in Z. rewrite Q2R_0, Q2R_minus, !Q2R_mult, Q2R_minus, Q2R_1, !qnat_R in Z. fold P in E, Z. lra. }
    rewrite Q2R_minus, !Q2R_mult, Q2R_minus, Q2R_1, !qnat_R. fold P. fold P in E.
    set (r := INR (S m) * P) in *. set (d0 := INR (S k) * (1 - P)) in *. set (d := d0 - r) in *.
    assert (d1 : 0 < d0) by (unfold d0; apply Rmult_lt_0_compat; [apply lt_0_INR; lia|lra]).
    assert (r0 : 0 <= r) by (unfold r; apply Rmult_le_pos; [apply pos_INR|lra]).
    (* all later points fall at least as fast as r / d0 *)
    assert (G : forall j k' m', (j = m')%nat -> (k <= k')%nat -> (m' <= m)%nat -> (k' + S m' = k + S m)%nat ->
      tail P (k' + S m') (S k') * d <= point P (k' + S m') k' * r).
    { induction j as [|j IHj]; intros k' m' Ej Hk Hm En.
      - subst m'. rewrite (tail_point P P01), (tail_none P (k' + 1) (S (S k'))) by lia. rewrite Rplus_0_r.
        pose proof (point_ratio P k' 0) as PR. replace (k' + 1)%nat with (k' + 1)%nat in * by lia.
        pose proof (point_pos P ltac:(lra) (k' + 1) (S k')) as P1. pose proof (point_pos P ltac:(lra) (k' + 1) k') as P0.
        simpl INR in PR.
        assert (B1 : d0 <= (INR k' + 1) * (1 - P)).
        { unfold d0. rewrite S_INR. apply Rmult_le_compat_r; [lra|]. apply le_INR in Hk. lra. }
        assert (B2 : 1 * P <= r). { unfold r. rewrite S_INR. pose proof (pos_INR m). nra. }
        assert (point P (k' + 1) (S k') * d0 <= point P (k' + 1) k' * r).
        { apply Rle_trans with (point P (k' + 1) (S k') * ((INR k' + 1) * (1 - P))); [now apply Rmult_le_compat_l|].
          replace (point P (k' + 1) (S k') * ((INR k' + 1) * (1 - P))) with (point P (k' + 1) k' * (0 + 1) * P) by lra.
          apply (Rmult_le_compat_l (point P (k' + 1) k')) in B2; [lra|exact P0]. }
        unfold d. assert (0 <= point P (k' + 1) (S k') * r) by (apply Rmult_le_pos; lra). lra.
      - subst m'. rewrite (tail_point P P01).
        pose proof (IHj (S k') j eq_refl ltac:(lia) ltac:(lia) ltac:(lia)) as I.
        replace (S k' + S j)%nat with (k' + S (S j))%nat in I by lia.
        pose proof (point_ratio P k' (S j)) as PR.
        pose proof (point_pos P ltac:(lra) (k' + S (S j)) (S k')) as P1. pose proof (point_pos P ltac:(lra) (k' + S (S j)) k') as P0.
        assert (B1 : d0 <= (INR k' + 1) * (1 - P)).
        { unfold d0. rewrite S_INR. apply Rmult_le_compat_r; [lra|]. apply le_INR in Hk. lra. }
        assert (B2 : (INR (S j) + 1) * P <= r).
        { unfold r. rewrite (S_INR m). apply Rmult_le_compat_r; [lra|]. apply le_INR in Hm. lra. }
        assert (K : point P (k' + S (S j)) (S k') * d0 <= point P (k' + S (S j)) k' * r).
        { apply Rle_trans with (point P (k' + S (S j)) (S k') * ((INR k' + 1) * (1 - P))); [now apply Rmult_le_compat_l|].
          replace (point P (k' + S (S j)) (S k') * ((INR k' + 1) * (1 - P))) with (point P (k' + S (S j)) k' * ((INR (S j) + 1) * P)) by lra.
          now apply Rmult_le_compat_l. }
        replace ((point P (k' + S (S j)) (S k') + tail P (k' + S (S j)) (S (S k'))) * d)
          with (point P (k' + S (S j)) (S k') * d + tail P (k' + S (S j)) (S (S k')) * d) by ring.
        unfold d at 1. lra. }
    pose proof (G m k m eq_refl (le_n k) (le_n m) eq_refl) as T. rewrite (tail_point P P01).
    assert (dp : 0 < d) by lra.
    assert (T' : tail P (k + S m) (S k) <= c * (Q2R u * r * / d)).
    { apply (Rmult_le_reg_r d); [exact dp|].
      replace (c * (Q2R u * r * / d) * d) with (c * Q2R u * r) by (field; lra).
      eapply Rle_trans; [exact T|]. apply Rmult_le_compat_r; [exact r0|exact HP]. }
    rewrite Rmult_plus_distr_l. lra.
  - destruct (Qle_bool _ _) eqn:E; [|discriminate]. destruct (ratios p (S k) m v us) as [s'|] eqn:R; [|discriminate].
    cbn [option_map] in H. injection H as <-. apply Qle_bool_R in E.
    rewrite !Q2R_mult, Q2R_minus, Q2R_1, !qnat_R in E. fold P in E. rewrite Q2R_plus, (tail_point P P01).
    assert (N1 : 0 < INR (S k) * (1 - P)) by (apply Rmult_lt_0_compat; [apply lt_0_INR; lia|lra]).
    assert (Hv : 0 <= Q2R v).
    { assert (0 <= Q2R u * INR (S m) * P) by (apply Rmult_le_pos; [apply Rmult_le_pos; [exact Hu|apply pos_INR]|lra]).
      destruct (Rle_lt_dec 0 (Q2R v)); [assumption|nra]. }
    assert (HP' : point P (S k + m) (S k) <= c * Q2R v).
    { replace (S k + m)%nat with (k + S m)%nat by lia. pose proof (point_ratio P k m) as PR.
      apply (Rmult_le_reg_r (INR (S k) * (1 - P))); [exact N1|]. rewrite (S_INR k) in *. rewrite (S_INR m) in *.
      pose proof (pos_INR m).
      assert (point P (k + S m) k * ((INR m + 1) * P) <= c * Q2R u * ((INR m + 1) * P)).
      { apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|exact HP]. }
      assert (c * (Q2R u * (INR m + 1) * P) <= c * (Q2R v * (INR k + 1) * (1 - P))) by (apply Rmult_le_compat_l; lra).
      lra. }
    specialize (IH (S k) m v s' R Hv c Hc HP'). replace (S k + m)%nat with (k + S m)%nat in IH by lia. lra.
Qed.

Theorem tail_sound alpha p a b us k m t : tail_holds alpha p a b us k m = true -> 0 <= t -> t < Q2R p ->
  tail t (k + m) k <= Q2R alpha.
Proof.
  unfold tail_holds. intros H Ht Htp. apply orb_prop in H. destruct H as [H|H].
  - apply Qle_bool_R in H. rewrite Q2R_0 in H. lra.
  - apply andb_prop in H. destruct H as [H H4]. apply andb_prop in H. destruct H as [H H3].
    apply andb_prop in H. destruct H as [H1 H2]. apply Qltb_R in H1. rewrite Q2R_1 in H1. apply Z.ltb_lt, IZR_lt in H2.
    apply Qeq_bool_eq, Qeq_eqR in H3. rewrite Q2R_mult, !inject_R in H3.
    destruct (ratios p k m 1 us) as [s|] eqn:R; [|discriminate]. apply Qle_bool_R in H4.
    rewrite !Q2R_mult, !inject_R, !mult_IZR, !power_R, minus_IZR in H4.
    eapply Rle_trans; [apply (tail_grows (k + m) t (Q2R p) k); lra|].
    assert (Hp : 0 < Q2R p < 1) by lra.
    set (c := point (Q2R p) (k + m) k). pose proof (point_pos (Q2R p) ltac:(lra) (k + m) k) as Pc. fold c in Pc.
    pose proof (ratios_sound p Hp us k m 1 s R ltac:(rewrite Q2R_1; lra) c Pc ltac:(rewrite Q2R_1; fold c; lra)) as T.
    eapply Rle_trans; [exact T|].
    pose proof (point_formula (Q2R p) (k + m) k m eq_refl) as PF. fold c in PF.
    pose proof (factorial_pos k) as Fk. pose proof (factorial_pos m) as Fm.
    replace (IZR a) with (Q2R p * IZR b) in H4 by lra.
    replace (IZR b - Q2R p * IZR b) with ((1 - Q2R p) * IZR b) in H4 by lra.
    rewrite !Rpow_mult_distr, pow_add in H4.
    generalize dependent (IZR (factorial k)). generalize dependent (IZR (factorial m)).
    generalize dependent (IZR (factorial (k + m))). intros fn fm Fm fk H4 PF Fk.
    assert (B : 0 < IZR b ^ k * IZR b ^ m) by (apply Rmult_lt_0_compat; apply pow_lt; lra).
    apply (Rmult_le_reg_r (fk * fm)); [apply Rmult_lt_0_compat; assumption|].
    apply (Rmult_le_reg_r (IZR b ^ k * IZR b ^ m)); [exact B|].
    replace (c * Q2R s * (fk * fm) * (IZR b ^ k * IZR b ^ m)) with (Q2R s * (c * (fk * fm)) * (IZR b ^ k * IZR b ^ m)) by ring.
    rewrite PF. lra.
Qed.
