(* Polynomials with rational coefficients: sums of coefficient times powers of parameters. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Basics.
Import ListNotations.
Open Scope R_scope.

(* BELIEVED *)
Definition mono := list (nat * nat). (* parameter, exponent *)
Definition poly := list (Q * mono).
Fixpoint mono_at (theta : nat -> R) (m : mono) : R :=
  match m with [] => 1 | (i, e) :: m' => theta i ^ e * mono_at theta m' end.
Fixpoint poly_at (theta : nat -> R) (p : poly) : R :=
  match p with [] => 0 | (c, m) :: p' => Q2R c * mono_at theta m + poly_at theta p' end.
(* END *)

(* Terms rise in this order, so that sums are merged; what does not rise is only not joined. *)
Fixpoint mono_cmp (m n : mono) : comparison :=
  match m, n with
  | [], [] => Eq
  | [], _ => Lt
  | _, [] => Gt
  | (i, e) :: m', (k, d) :: n' =>
      if (i <? k)%nat then Lt else if (k <? i)%nat then Gt
      else if (e <? d)%nat then Lt else if (d <? e)%nat then Gt else mono_cmp m' n'
  end.
Fixpoint mono_times (i e : nat) (m : mono) : mono :=
  match m with
  | [] => [(i, e)]
  | (k, d) :: m' => if Nat.eqb i k then (k, (e + d)%nat) :: m'
                    else if (i <? k)%nat then (i, e) :: m else (k, d) :: mono_times i e m'
  end.
Fixpoint mono_mul (m n : mono) : mono := match m with [] => n | (i, e) :: m' => mono_times i e (mono_mul m' n) end.
Fixpoint insert (c : Q) (m : mono) (p : poly) : poly :=
  match p with
  | [] => [(c, m)]
  | (d, n) :: p' => match mono_cmp m n with
                    | Eq => (Qplus c d, n) :: p'
                    | Lt => (c, m) :: p
                    | Gt => (d, n) :: insert c m p'
                    end
  end.
(* a p + q *)
Fixpoint plus (a : Q) (p : poly) : poly -> poly :=
  match p with
  | [] => fun q => q
  | (c, m) :: p' =>
      fix into (q : poly) : poly :=
        match q with
        | [] => (Qmult a c, m) :: plus a p' []
        | (d, n) :: q' => match mono_cmp m n with
                          | Eq => (Qplus (Qmult a c) d, n) :: plus a p' q'
                          | Lt => (Qmult a c, m) :: plus a p' q
                          | Gt => (d, n) :: into q'
                          end
        end
  end.
Fixpoint times_term (a : Q) (m : mono) (p q : poly) : poly :=
  match p with [] => q | (c, n) :: p' => insert (Qmult a c) (mono_mul m n) (times_term a m p' q) end.
Fixpoint times (p q : poly) : poly := match p with [] => [] | (c, m) :: p' => times_term c m q (times p' q) end.
Definition constant (c : Q) : poly := [(c, [])].
Fixpoint tidy (p : poly) : poly := match p with [] => [] | (c, m) :: p' => if Qeq_bool c 0 then tidy p' else (c, m) :: tidy p' end.
(* A number that is not negative, and nothing else. *)
Fixpoint nonneg (p : poly) : bool :=
  match p with
  | [] => true
  | (c, []) :: p' => Qle_bool 0 c && nonneg p'
  | (c, _) :: p' => Qeq_bool c 0 && nonneg p'
  end.
Fixpoint zero (p : poly) : bool := match p with [] => true | (c, _) :: p' => Qeq_bool c 0 && zero p' end.

Section At.
Variable theta : nat -> R.
Notation "[[ p ]]" := (poly_at theta p).
Lemma mono_cmp_eq m : forall n, mono_cmp m n = Eq -> m = n.
Proof.
  induction m as [|[i e] m IH]; intros [|[k d] n] H; simpl in H; try discriminate; [reflexivity|].
  destruct (i <? k)%nat eqn:A; [discriminate|]. destruct (k <? i)%nat eqn:B; [discriminate|].
  destruct (e <? d)%nat eqn:C; [discriminate|]. destruct (d <? e)%nat eqn:D; [discriminate|].
  apply Nat.ltb_ge in A, B, C, D. apply IH in H. f_equal; [f_equal; lia|exact H].
Qed.
Lemma mono_times_at i e m : mono_at theta (mono_times i e m) = theta i ^ e * mono_at theta m.
Proof.
  induction m as [|[k d] m IH]; simpl; [lra|]. destruct (Nat.eqb i k) eqn:E.
  - apply Nat.eqb_eq in E. subst k. simpl. rewrite pow_add. lra.
  - destruct (i <? k)%nat; simpl; [lra|]. rewrite IH. lra.
Qed.
Lemma mono_mul_at m n : mono_at theta (mono_mul m n) = mono_at theta m * mono_at theta n.
Proof. induction m as [|[i e] m IH]; simpl; [lra|]. rewrite mono_times_at, IH. lra. Qed.
Lemma insert_at c m p : [[ insert c m p ]] = Q2R c * mono_at theta m + [[ p ]].
Proof.
  induction p as [|[d n] p IH]; simpl; [lra|]. destruct (mono_cmp m n) eqn:E; simpl; [|lra|rewrite IH; lra].
  apply mono_cmp_eq in E. subst n. rewrite Q2R_plus. lra.
Qed.
Lemma plus_at a p : forall q, [[ plus a p q ]] = Q2R a * [[ p ]] + [[ q ]].
Proof.
  induction p as [|[c m] p IH]; [intros q; simpl; lra|]. induction q as [|[d n] q IQ].
  - cbn [plus poly_at]. rewrite IH, Q2R_mult. simpl. lra.
  - cbn [plus]. destruct (mono_cmp m n) eqn:E; cbn [poly_at].
    + apply mono_cmp_eq in E. subst n. rewrite IH, Q2R_plus, Q2R_mult. lra.
    + rewrite IH, Q2R_mult. cbn [poly_at]. lra.
    + cbn [plus] in IQ. rewrite IQ. cbn [poly_at]. lra.
Qed.
Lemma tidy_at p : [[ tidy p ]] = [[ p ]].
Proof.
  induction p as [|[c m] p IH]; simpl; [reflexivity|]. destruct (Qeq_bool c 0) eqn:Z; simpl; rewrite IH; [|reflexivity].
  apply Qeq_bool_eq, Qeq_eqR in Z. rewrite Q2R_0 in Z. rewrite Z. lra.
Qed.
Lemma times_term_at a m p q : [[ times_term a m p q ]] = Q2R a * mono_at theta m * [[ p ]] + [[ q ]].
Proof. induction p as [|[c n] p IH]; simpl; [lra|]. rewrite insert_at, IH, Q2R_mult, mono_mul_at. lra. Qed.
Lemma times_at p q : [[ times p q ]] = [[ p ]] * [[ q ]].
Proof. induction p as [|[c m] p IH]; simpl; [lra|]. rewrite times_term_at, IH. lra. Qed.
Lemma constant_at c : [[ constant c ]] = Q2R c. Proof. simpl. lra. Qed.
Lemma Qeq_0 c : Qeq_bool c 0 = true -> Q2R c = 0.
Proof. intros H. apply Qeq_bool_eq, Qeq_eqR in H. now rewrite H, Q2R_0. Qed.
Lemma nonneg_at p : nonneg p = true -> 0 <= [[ p ]].
Proof.
  induction p as [|[c m] p IH]; simpl; [lra|]. destruct m as [|k m]; intros H; apply andb_prop in H; destruct H as [H1 H2];
    specialize (IH H2).
  - apply Qle_bool_R in H1. rewrite Q2R_0 in H1. simpl. lra.
  - rewrite (Qeq_0 c H1). lra.
Qed.
Lemma zero_at p : zero p = true -> [[ p ]] = 0.
Proof.
  induction p as [|[c m] p IH]; simpl; [lra|]. intros H. apply andb_prop in H. destruct H as [H1 H2].
  rewrite (Qeq_0 c H1), (IH H2). lra.
Qed.
End At.
