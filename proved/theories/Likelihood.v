(* The likelihood region: what was seen after a pilot, predicted batch by batch, and the rows that it gives. *)
From Coq Require Import List Bool Arith ZArith QArith Qreals Reals Lra Lia FunctionalExtensionality.
From Proved Require Import Game Problem Basics Polynomial Value Sound Ville Model Krichevsky Logarithm Learned.
Import ListNotations.
Open Scope R_scope.

(* ---------- The checker ---------- *)

Fixpoint qpow (q : Q) (n : nat) : Q := match n with O => 1%Q | S n' => Qmult q (qpow q n') end.
Fixpoint mono_val (a : list Q) (m : mono) : Q := match m with [] => 1%Q | (i, e) :: m' => Qmult (qpow (nth i a 0%Q) e) (mono_val a m') end.
Fixpoint poly_val (a : list Q) (p : poly) : Q := match p with [] => 0%Q | (c, m) :: p' => Qplus (Qmult c (mono_val a m)) (poly_val a p') end.
Fixpoint is_number (p : poly) : bool := match p with [] => true | (_, []) :: p' => is_number p' | _ => false end.
Fixpoint sumz (f : nat -> option Z) (n : nat) (acc : Z) : option Z :=
  match n with O => Some acc | S n' => match f n' with Some y => sumz f n' (Z.add acc y) | None => None end end.
Definition earlier (b : nat) (mt : nat -> nat -> nat) (b' e : nat) : nat := if (b' <? b)%nat then mt b' e else 0%nat.

(* [prior]: pilots, in batches, and their weights. [predict]: parameters that predict a batch, from what was met before it. *)
Section Checker.
Variables (M : model) (E : nat) (prior : list (nat * Q)) (predict : nat -> (nat -> nat -> nat) -> list Q).

Fixpoint all_sum (l : list ledge) : poly := match l with [] => [] | e :: l' => plus 1 (polys M (expr e)) (all_sum l') end.
Definition model_ok : bool := below (states (shape M)) (fun s => foralli (fun _ c =>
  zero (plus (-1) (constant 1) (all_sum (outcomes c))) && forallb (fun e => (expr e <? E)%nat) (outcomes c)) 0 (table M s)).
Definition plug_ok (a : list Q) : bool := below E (fun e => Qle_bool 0 (poly_val a (polys M e))).
Fixpoint prior_ok (left : Q) (l : list (nat * Q)) : bool :=
  match l with [] => Qle_bool 0 left | (_, w) :: l' => Qle_bool 0 w && prior_ok (Qminus left w) l' end.
Fixpoint times_of (b : nat) (l : list (nat * Q)) (sh : list nat) : nat :=
  match l, sh with (p, _) :: l', n :: sh' => (if (p <=? b)%nat then n else 0) + times_of b l' sh' | _, _ => 0 end.
Fixpoint together (l : list (nat * Q)) (sh : list nat) : nat :=
  match l, sh with _ :: l', n :: sh' => n + together l' sh' | _, _ => 0 end.

(* k times the logarithm of q, from below *)
Definition logs (c : cert) (k : nat) (q : Q) : option Z :=
  if Nat.eqb k 0 then Some 0%Z else let y := lg c q in if log_ok q y then Some (Z.mul (Z.of_nat k) y) else None.
Fixpoint prices (c : cert) (all : nat) (l : list (nat * Q)) (sh : list nat) : option Z :=
  match l, sh with
  | (_, w) :: l', n :: sh' =>
      match logs c n (Qmult w (Qmult (qnat all) (Qinv (qnat n)))), prices c all l' sh' with
      | Some y, Some z => Some (Z.add y z)
      | _, _ => None
      end
  | _, _ => Some 0%Z
  end.
Definition score (c : cert) (mt : nat -> nat -> nat) (b : nat) : option Z :=
  let t := times_of b prior (shares c) in
  if Nat.eqb t 0 then Some 0%Z
  else let a := predict b (earlier b mt) in
    if plug_ok a then
      option_map (Z.mul (Z.of_nat t))
        (sumz (fun e => if is_number (polys M e) then Some 0%Z else logs c (mt b e) (poly_val a (polys M e))) E 0)
    else None.
Fixpoint weigh (mt : nat -> nat -> nat) (b : nat) (tm : list nat) (e : nat) : Z :=
  match tm with [] => 0%Z | t :: tm' => Z.add (Z.mul (Z.of_nat t) (Z.of_nat (mt b e))) (weigh mt (S b) tm' e) end.
Fixpoint heavy (mt : nat -> nat -> nat) (tm : list nat) (n : nat) (acc : list (nat * Z)) : list (nat * Z) :=
  match n with
  | O => acc
  | S e => heavy mt tm e (if is_number (polys M e) then acc
                          else let k := weigh mt 0 tm e in if Z.leb k 0 then acc else (e, k) :: acc)
  end.
(* The threshold in units, and the weights of expressions. *)
Definition likely (c : cert) (B : nat) (mt : nat -> nat -> nat) (delta : Q) : option (Z * list (nat * Z)) :=
  let all := together prior (shares c) in
  if Nat.eqb all 0 then Some (0%Z, [])
  else if prior_ok 1 prior && model_ok then
    match logs c all delta, prices c all prior (shares c), sumz (score c mt) B 0 with
    | Some x, Some y, Some z => Some (Z.add x (Z.add y z), heavy mt (map (fun b => times_of b prior (shares c)) (seq 0 B)) E [])
    | _, _, _ => None
    end
  else None.

(* The tangent with slopes t: sum of t f >= r. *)
Fixpoint room (c : cert) (ws : list (nat * Z)) (t : nat -> Q) (acc : Z) : option Z :=
  match ws with
  | [] => Some acc
  | (e, k) :: ws' => let q := Qmult (t e) (Qinv (inject_Z k)) in let y := lg c q in
                     if log_ok q y then room c ws' t (Z.add acc (Z.mul k (Z.add y unit_log))) else None
  end.
Fixpoint tilted (ws : list (nat * Z)) (t : nat -> Q) (p : poly) : poly :=
  match ws with [] => p | (e, _) :: ws' => tilted ws' t (plus (t e) (polys M e) p) end.
Definition tangent (c : cert) (known : Z * list (nat * Z)) (t : nat -> Q) (r : Q) : option poly :=
  match room c (snd known) t (fst known) with
  | Some y => if Qle_bool (Qmult r (inject_Z unit_log)) (inject_Z y) then Some (tilted (snd known) t (constant (Qopp r))) else None
  | None => None
  end.
End Checker.

(* ---------- Sums ---------- *)

Lemma rsum_shift f n : forall a, rsum f (seq (S a) n) = rsum (fun o => f (S o)) (seq a n).
Proof. induction n as [|n IH]; intros a; simpl; [reflexivity|]. now rewrite IH. Qed.
Lemma rsum_app {A} (f : A -> R) l l' : rsum f (l ++ l') = rsum f l + rsum f l'.
Proof. induction l as [|a l IH]; simpl; [lra|]. rewrite IH. lra. Qed.
Lemma rsum_S f n : rsum f (seq 0 (S n)) = rsum f (seq 0 n) + f n.
Proof. rewrite seq_S, rsum_app. simpl. lra. Qed.
Lemma rsum_zero {A} (f : A -> R) l : (forall a, In a l -> f a = 0) -> rsum f l = 0.
Proof. induction l as [|a l IH]; simpl; intros H; [reflexivity|]. rewrite (H a), IH by auto. lra. Qed.
Lemma rsum_minus {A} (f g : A -> R) l : rsum (fun a => f a - g a) l = rsum f l - rsum g l.
Proof. induction l as [|a l IH]; simpl; [lra|]. rewrite IH. lra. Qed.
Lemma rsum_pick a b n : (b < n)%nat -> rsum (fun i => if Nat.eqb b i then a else 0) (seq 0 n) = a.
Proof.
  induction n as [|n IH]; intros H; [lia|]. rewrite rsum_S. destruct (Nat.eq_dec b n) as [->|D].
  - rewrite Nat.eqb_refl, rsum_zero; [lra|]. intros i Hi. apply in_seq in Hi.
    destruct (Nat.eqb n i) eqn:K; [apply Nat.eqb_eq in K; lia|reflexivity].
  - rewrite IH by lia. destruct (Nat.eqb b n) eqn:K; [apply Nat.eqb_eq in K; lia|lra].
Qed.
Notation U := (IZR unit_log).
Lemma unit_pos : 0 < U. Proof. apply IZR_lt. reflexivity. Qed.
Lemma sumz_sound f g n : (forall i y, (i < n)%nat -> f i = Some y -> IZR y <= g i) ->
  forall acc z, sumz f n acc = Some z -> IZR z <= IZR acc + rsum g (seq 0 n).
Proof.
  induction n as [|n IH]; intros H acc z Hz; [simpl in *; injection Hz as <-; lra|].
  simpl in Hz. destruct (f n) as [y|] eqn:Y; [|discriminate]. apply IH in Hz; [|intros; apply H; [lia|assumption]].
  rewrite plus_IZR in Hz. rewrite rsum_S. specialize (H n y ltac:(lia) Y). lra.
Qed.
Lemma sumz_some f n : forall acc z, sumz f n acc = Some z -> forall i, (i < n)%nat -> exists y, f i = Some y.
Proof.
  induction n as [|n IH]; intros acc z H i Hi; [lia|]. simpl in H. destruct (f n) as [y|] eqn:Y; [|discriminate].
  destruct (Nat.eq_dec i n) as [->|]; [eauto|]. apply (IH _ _ H). lia.
Qed.
Lemma logs_sound c k q y : logs c k q = Some y -> (0 < k)%nat -> 0 < Q2R q.
Proof.
  unfold logs. destruct (Nat.eqb k 0) eqn:K; [apply Nat.eqb_eq in K; lia|]. destruct (log_ok q (lg c q)) eqn:L; [|discriminate].
  intros _ _. apply (log_sound _ _ L).
Qed.
Lemma logs_low c k q y : logs c k q = Some y -> IZR y <= U * (INR k * ln (Q2R q)).
Proof.
  unfold logs. destruct (Nat.eqb k 0) eqn:K.
  - apply Nat.eqb_eq in K. subst k. intros [= <-]. simpl. lra.
  - destruct (log_ok q (lg c q)) eqn:L; [|discriminate]. intros [= <-]. apply log_sound in L. destruct L as [_ L].
    rewrite mult_IZR, <- INR_IZR_INZ. pose proof (pos_INR k). pose proof unit_pos as P.
    assert (L2 : IZR (lg c q) <= U * ln (Q2R q)).
    { apply (Rmult_le_compat_l U) in L; [|lra]. replace (U * (IZR (lg c q) / U)) with (IZR (lg c q)) in L by (field; lra). exact L. }
    nra.
Qed.
Lemma ln_line z : 0 < z -> ln z <= z - 1.
Proof. intros H. pose proof (exp_ineq1_le (ln z)) as K. rewrite exp_ln in K by exact H. lra. Qed.

Lemma qpow_R q n : Q2R (qpow q n) = Q2R q ^ n.
Proof. induction n as [|n IH]; simpl; [apply Q2R_1|]. now rewrite Q2R_mult, IH. Qed.
Definition point (a : list Q) (i : nat) : R := Q2R (nth i a 0%Q).
Lemma mono_val_R a m : Q2R (mono_val a m) = mono_at (point a) m.
Proof. induction m as [|[i e] m IH]; simpl; [apply Q2R_1|]. now rewrite Q2R_mult, qpow_R, IH. Qed.
Lemma poly_val_R a p : Q2R (poly_val a p) = poly_at (point a) p.
Proof. induction p as [|[c m] p IH]; simpl; [apply Q2R_0|]. now rewrite Q2R_plus, Q2R_mult, mono_val_R, IH. Qed.
Lemma number_same a b p : is_number p = true -> poly_at a p = poly_at b p.
Proof. induction p as [|[c [|x m] ] p IH]; simpl; intros H; try discriminate; [reflexivity|]. now rewrite IH. Qed.

(* ---------- The wealth of whoever bets on the predictions ---------- *)

Section Truth.
Variables (M : model) (theta : nat -> R) (E : nat) (prior : list (nat * Q)) (predict : nat -> (nat -> nat -> nat) -> list Q).
Variables (number : seen -> nat) (d : R).
Hypothesis (T : instance M theta) (Mono : forall a h, (number h <= number (a :: h))%nat) (D : 0 < d).
Notation at_ p := (poly_at theta p).
Notation f e := (poly_at theta (polys M e)).

Definition plug (h : seen) : list Q := predict (number h) (earlier (number h) (met (label M) number h)).
Definition says (a : list Q) (c : nat * nat) (o : nat) : R := law M (point a) c o.
Definition bets (h : seen) : bool := model_ok M E && plug_ok M E (plug h).
Definition factor_of (h : seen) (c : nat * nat) (o : nat) : R := if bets h then says (plug h) c o / law M theta c o else 1.
Fixpoint fortune (p : nat) (h : seen) : R :=
  match h with [] => 1 | (c, o) :: h' => fortune p h' * (if (number h' <? p)%nat then 1 else factor_of h' c o) end.
Fixpoint alive (h : seen) : bool :=
  match h with [] => true | (c, o) :: h' => (if Rlt_dec 0 (law M theta c o) then true else false) && alive h' end.
Fixpoint weight_of (l : list (nat * Q)) : R := match l with [] => 0 | (_, w) :: l' => Q2R w + weight_of l' end.
Fixpoint mixed (l : list (nat * Q)) (h : seen) : R := match l with [] => 0 | (p, w) :: l' => Q2R w * fortune p h + mixed l' h end.
Definition riches (h : seen) : R :=
  if prior_ok 1 prior then if alive h then 1 - weight_of prior + mixed prior h else / d else 1.

Lemma prior_sound l : forall left, prior_ok left l = true -> weight_of l <= Q2R left /\ forall p w, In (p, w) l -> 0 <= Q2R w.
Proof.
  induction l as [|[p w] l IH]; simpl; intros left H.
  - apply Qle_bool_R in H. rewrite Q2R_0 in H. split; [exact H|intros p w []].
  - apply andb_prop in H. destruct H as [H1 H2]. apply Qle_bool_R in H1. rewrite Q2R_0 in H1. apply IH in H2.
    destruct H2 as [H2 H3]. rewrite Q2R_minus in H2. split; [lra|]. intros p' w' [K|K]; [congruence|eauto].
Qed.
Lemma law_pos_all c o : 0 <= law M theta c o.
Proof.
  unfold law. destruct (label M c o) as [e|] eqn:L; [|lra]. destruct c as [s i]. apply (outcome_chance M theta T s i o e) in L. lra.
Qed.
Lemma plug_pos a e : plug_ok M E a = true -> (e < E)%nat -> 0 <= poly_at (point a) (polys M e).
Proof. intros H He. pose proof (below_spec _ _ H e He) as K. apply Qle_bool_R in K. now rewrite poly_val_R, Q2R_0 in K. Qed.
Lemma label_known c o e : model_ok M E = true -> label M c o = Some e -> (e < E)%nat.
Proof.
  unfold label. intros H L. destruct (nth_error (table M (fst c)) (snd c)) as [k|] eqn:K; [|discriminate].
  destruct (fst c <? states (shape M))%nat eqn:S; [|discriminate]. apply Nat.ltb_lt in S.
  destruct (nth_error (outcomes k) o) as [x|] eqn:X; [|discriminate]. injection L as <-.
  pose proof (below_spec _ _ H _ S) as B. pose proof (foralli_spec _ _ _ B _ _ K) as C. cbv beta in C.
  apply andb_prop in C. destruct C as [_ C]. rewrite forallb_forall in C. apply Nat.ltb_lt, C. eapply nth_error_In; eauto.
Qed.
Lemma says_pos a c o : model_ok M E = true -> plug_ok M E a = true -> 0 <= says a c o.
Proof.
  intros H P. unfold says, law. destruct (label M c o) as [e|] eqn:L; [|lra]. apply plug_pos; [exact P|]. now apply (label_known c o).
Qed.
Lemma list_sum a l : rsum (fun o => match nth_error l o with Some e => poly_at a (polys M (expr e)) | None => 0 end) (seq 0 (length l)) =
  poly_at a (all_sum M l).
Proof.
  induction l as [|e l IH]; [reflexivity|]. simpl length. rewrite <- cons_seq. simpl rsum. rewrite rsum_shift. simpl nth_error.
  rewrite IH. cbn [all_sum]. rewrite plus_at, Q2R_1. lra.
Qed.
Lemma says_one a c : model_ok M E = true -> rsum (law M theta c) (results M c) = 1 -> rsum (says a c) (results M c) = 1.
Proof.
  intros H H1. unfold results in *. destruct (nth_error (table M (fst c)) (snd c)) as [k|] eqn:K; [|simpl in *; lra].
  destruct (fst c <? states (shape M))%nat eqn:S.
  - pose proof S as S'. apply Nat.ltb_lt in S. pose proof (below_spec _ _ H _ S) as B. pose proof (foralli_spec _ _ _ B _ _ K) as C. cbv beta in C.
    apply andb_prop in C. destruct C as [C _]. apply (zero_at (point a)) in C.
    rewrite plus_at, constant_at, Q2R_1 in C. replace (Q2R (-1)) with (-1) in C by (unfold Q2R; simpl; lra).
    rewrite <- list_sum in C. rewrite <- (Rplus_0_l 1). erewrite rsum_ext; [|intros o _; unfold says, law, label; rewrite K, S'; reflexivity].
    match type of C with ?x = 0 => enough (Z : rsum (fun o => match option_map expr (nth_error (outcomes k) o) with
      Some e => poly_at (point a) (polys M e) | None => 0 end) (seq 0 (length (outcomes k))) =
      rsum (fun o => match nth_error (outcomes k) o with Some e => poly_at (point a) (polys M (expr e)) | None => 0 end) (seq 0 (length (outcomes k)))) end.
    + rewrite Z. lra.
    + apply rsum_ext. intros o _. now destruct (nth_error (outcomes k) o).
  - exfalso. rewrite rsum_zero in H1; [lra|]. intros o _. unfold law, label. now rewrite K, S.
Qed.
Lemma fortune_pos p h : 0 <= fortune p h.
Proof.
  induction h as [|[c o] h IH]; simpl; [lra|]. apply Rmult_le_pos; [exact IH|]. destruct (number h <? p)%nat; [lra|].
  unfold factor_of. destruct (bets h) eqn:B; [|lra]. unfold bets in B. apply andb_prop in B. destruct B as [B1 B2].
  pose proof (law_pos_all c o) as L. pose proof (says_pos (plug h) c o B1 B2). destruct L as [L|L].
  - apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat].
  - rewrite <- L. unfold Rdiv. rewrite Rinv_0. lra.
Qed.
Lemma mixed_pos l h : (forall p w, In (p, w) l -> 0 <= Q2R w) -> 0 <= mixed l h.
Proof.
  induction l as [|[p w] l IH]; simpl; intros H; [lra|]. specialize (IH ltac:(eauto)). pose proof (H p w (or_introl eq_refl)).
  pose proof (fortune_pos p h). nra.
Qed.
Lemma riches_pos h : 0 <= riches h.
Proof.
  unfold riches. destruct (prior_ok 1 prior) eqn:P; [|lra]. destruct (prior_sound _ _ P) as [W0 W1]. rewrite Q2R_1 in W0.
  destruct (alive h); [pose proof (mixed_pos prior h W1); lra|]. left. now apply Rinv_0_lt_compat.
Qed.

Section Fair.
Variable c : nat * nat.
Hypothesis L1 : rsum (law M theta c) (results M c) = 1.
Lemma fortune_fair p h : rsum (fun o => law M theta c o * fortune p ((c, o) :: h)) (results M c) <= fortune p h.
Proof.
  simpl. rewrite (rsum_ext _ (fun o => fortune p h * (law M theta c o * (if (number h <? p)%nat then 1 else factor_of h c o)))) by (intros; lra).
  rewrite rsum_scal. pose proof (fortune_pos p h) as F0.
  assert (K : rsum (fun o => law M theta c o * (if (number h <? p)%nat then 1 else factor_of h c o)) (results M c) <= 1).
  { assert (One : rsum (fun o => law M theta c o * 1) (results M c) <= 1)
      by (rewrite (rsum_ext _ (law M theta c)) by (intros; lra); lra).
    destruct (number h <? p)%nat; [exact One|]. unfold factor_of. destruct (bets h) eqn:B; [|exact One].
    unfold bets in B. apply andb_prop in B. destruct B as [B1 B2]. rewrite <- (says_one (plug h) c B1 L1). apply rsum_le. intros o _.
    pose proof (says_pos (plug h) c o B1 B2) as S. pose proof (law_pos_all c o) as [L|L]; [right; field; lra|rewrite <- L; lra]. }
  nra.
Qed.
Lemma mixed_fair l h : (forall p w, In (p, w) l -> 0 <= Q2R w) ->
  rsum (fun o => law M theta c o * mixed l ((c, o) :: h)) (results M c) <= mixed l h.
Proof.
  induction l as [|[p w] l IH]; intros H.
  - simpl. rewrite rsum_zero; [lra|]. intros; lra.
  - cbn [mixed]. rewrite (rsum_ext _ (fun o => Q2R w * (law M theta c o * fortune p ((c, o) :: h)) +
      law M theta c o * mixed l ((c, o) :: h))) by (intros; lra).
    rewrite rsum_add, rsum_scal. pose proof (fortune_fair p h) as F. specialize (IH ltac:(intros; eapply H; right; eauto)).
    pose proof (H p w (or_introl eq_refl)). nra.
Qed.
Lemma riches_fair h : rsum (fun o => law M theta c o * riches ((c, o) :: h)) (results M c) <= riches h.
Proof.
  unfold riches. destruct (prior_ok 1 prior) eqn:P.
  2: { rewrite (rsum_ext _ (law M theta c)) by (intros; lra). lra. }
  destruct (prior_sound _ _ P) as [W0 W1]. rewrite Q2R_1 in W0. destruct (alive h) eqn:A.
  - rewrite (rsum_ext _ (fun o => (1 - weight_of prior) * law M theta c o + law M theta c o * mixed prior ((c, o) :: h))).
    + rewrite rsum_add, rsum_scal, L1. pose proof (mixed_fair prior h W1). lra.
    + intros o _. cbn [alive]. rewrite A, andb_true_r. destruct (Rlt_dec 0 (law M theta c o)) as [|N]; [lra|].
      pose proof (law_pos_all c o). replace (law M theta c o) with 0 by lra. lra.
  - rewrite (rsum_ext _ (fun o => / d * law M theta c o)); [rewrite rsum_scal, L1; lra|].
    intros o _. cbn [alive]. rewrite A, andb_false_r. lra.
Qed.
Lemma riches_0 : riches [] = 1.
Proof.
  unfold riches. simpl. destruct (prior_ok 1 prior); [|reflexivity].
  enough (G : forall l, mixed l [] = weight_of l) by (rewrite G; lra).
  induction l as [|[p w] l IH]; simpl; [reflexivity|]. rewrite IH. lra.
Qed.
End Fair.

(* ---------- Who is not rich is right about the rows ---------- *)

Fixpoint deeds (h : seen) : list (nat * nat) :=
  match h with [] => [] | (c, o) :: h' => match label M c o with Some e => (number h', e) :: deeds h' | None => deeds h' end end.
Fixpoint tallied (l : list (nat * nat)) (b e : nat) : nat :=
  match l with [] => 0 | (b', e') :: l' => ((if Nat.eqb b' b && Nat.eqb e e' then 1 else 0) + tallied l' b e)%nat end.
Lemma met_deeds h b e : met (label M) number h b e = tallied (deeds h) b e.
Proof.
  induction h as [|[c o] h IH]; simpl; [reflexivity|]. destruct (label M c o) as [e'|]; simpl.
  - destruct (Nat.eqb (number h) b && Nat.eqb e e'); now rewrite IH.
  - rewrite andb_false_r. exact IH.
Qed.
Lemma by_kind (g : nat -> nat -> R) B l : (forall x, In x l -> (fst x < B)%nat /\ (snd x < E)%nat) ->
  rsum (fun x => g (fst x) (snd x)) l = rsum (fun b => rsum (fun e => INR (tallied l b e) * g b e) (seq 0 E)) (seq 0 B).
Proof.
  induction l as [|[b0 e0] l IH]; intros H.
  - simpl. symmetry. apply rsum_zero. intros b _. apply rsum_zero. intros e _. lra.
  - destruct (H (b0, e0) (or_introl eq_refl)) as [HB HE]. simpl in HB, HE. cbn [rsum fst snd].
    rewrite IH by (intros; apply H; simpl; auto).
    rewrite (rsum_ext (fun b => rsum (fun e => INR (tallied ((b0, e0) :: l) b e) * g b e) (seq 0 E))
      (fun b => (if Nat.eqb b0 b then g b0 e0 else 0) + rsum (fun e => INR (tallied l b e) * g b e) (seq 0 E))).
    + rewrite rsum_add, rsum_pick by exact HB. lra.
    + intros b _. rewrite <- (rsum_pick (if Nat.eqb b0 b then g b0 e0 else 0) e0 E HE), <- rsum_add. apply rsum_ext. intros e _.
      cbn [tallied]. rewrite plus_INR. destruct (Nat.eqb b0 b) eqn:K1; cbn [andb].
      * apply Nat.eqb_eq in K1. subst b0. rewrite (Nat.eqb_sym e e0). destruct (Nat.eqb e0 e) eqn:K2.
        -- apply Nat.eqb_eq in K2. subst e0. simpl INR. lra.
        -- simpl INR. lra.
      * destruct (Nat.eqb e0 e); simpl INR; lra.
Qed.

(* Predictions do not change afterwards. *)
Lemma later pre : forall h, (number h <= number (pre ++ h))%nat.
Proof. induction pre as [|a pre IH]; intros h; simpl; [lia|]. specialize (IH h). specialize (Mono a (pre ++ h)). lia. Qed.
Lemma met_later pre h b e : (b < number h)%nat -> met (label M) number (pre ++ h) b e = met (label M) number h b e.
Proof.
  intros H. induction pre as [|[c o] pre IH]; simpl; [reflexivity|]. pose proof (later pre h).
  destruct (Nat.eqb (number (pre ++ h)) b) eqn:K; [apply Nat.eqb_eq in K; lia|exact IH].
Qed.
Lemma plug_later pre h : plug h = predict (number h) (earlier (number h) (met (label M) number (pre ++ h))).
Proof.
  unfold plug. f_equal. apply functional_extensionality. intros b. apply functional_extensionality. intros e. unfold earlier.
  destruct (b <? number h)%nat eqn:K; [|reflexivity]. apply Nat.ltb_lt in K. now rewrite met_later.
Qed.

Section Rich.
Variables (c : cert) (h0 : seen) (delta : Q) (known : Z * list (nat * Z)).
Notation B := (S (number h0)).
Notation mt := (met (label M) number h0).
Notation sh := (shares c).
Notation all := (together prior sh).
Hypothesis (L : likely M E prior predict c B mt delta = Some known) (A : alive h0 = true).
Definition pl (b : nat) : list Q := predict b (earlier b mt).
Definition gain (b e : nat) : R := ln (poly_at (point (pl b)) (polys M e)) - ln (f e).
Hypothesis HS : (0 < all)%nat.

Lemma L_parts : exists x y z, prior_ok 1 prior = true /\ model_ok M E = true /\ logs c all delta = Some x /\
  prices c all prior sh = Some y /\ sumz (score M E prior predict c mt) B 0 = Some z /\
  known = (Z.add x (Z.add y z), heavy M mt (map (fun b => times_of b prior sh) (seq 0 B)) E []).
Proof.
  pose proof L as K. unfold likely in K. destruct (Nat.eqb all 0) eqn:Z; [apply Nat.eqb_eq in Z; lia|].
  destruct (prior_ok 1 prior && model_ok M E) eqn:PM; [|discriminate]. apply andb_prop in PM. destruct PM as [P1 P2].
  destruct (logs c all delta) as [x|]; [|discriminate]. destruct (prices c all prior sh) as [y|]; [|discriminate].
  destruct (sumz _ B 0) as [z|]; [|discriminate]. injection K as <-. exists x, y, z. auto 10.
Qed.
Lemma model_fine : model_ok M E = true. Proof. destruct L_parts as (x & y & z & _ & H & _). exact H. Qed.

(* Every trial of a batch that counts was bet on, and its outcome had a chance. *)
Lemma counted b : (b < B)%nat -> (0 < times_of b prior sh)%nat -> plug_ok M E (pl b) = true /\
  forall e, (e < E)%nat -> (0 < mt b e)%nat -> is_number (polys M e) = false -> 0 < poly_at (point (pl b)) (polys M e).
Proof.
  intros Hb Ht. destruct L_parts as (x & y & z & _ & _ & _ & _ & HZ & _). destruct (sumz_some _ _ _ _ HZ b Hb) as [w Hw].
  unfold score in Hw. destruct (Nat.eqb (times_of b prior sh) 0) eqn:K; [apply Nat.eqb_eq in K; lia|].
  fold (pl b) in Hw. destruct (plug_ok M E (pl b)) eqn:P; [|discriminate]. split; [reflexivity|]. intros e He Hm Hn.
  destruct (sumz _ E 0) as [v|] eqn:V; [|discriminate]. destruct (sumz_some _ _ _ _ V e He) as [u Hu]. rewrite Hn in Hu.
  rewrite <- poly_val_R. apply (logs_sound _ _ _ _ Hu Hm).
Qed.
Lemma alive_app pre h : h0 = pre ++ h -> alive h = true.
Proof. intros E0. pose proof A as K. rewrite E0 in K. clear -K. induction pre as [|[c o] pre IH]; simpl in K; [exact K|]. apply andb_prop in K. tauto. Qed.
Lemma met_seen pre c0 o h e : h0 = pre ++ (c0, o) :: h -> label M c0 o = Some e -> (number h < B)%nat /\ (0 < mt (number h) e)%nat.
Proof.
  intros E0 Le. split.
  - pose proof (later (pre ++ [(c0, o)]) h) as K. rewrite <- app_assoc in K. simpl in K. rewrite <- E0 in K. lia.
  - rewrite E0. clear -Le. induction pre as [|[c1 o1] pre IH]; simpl.
    + rewrite Nat.eqb_refl, Le, Nat.eqb_refl. simpl. lia.
    + destruct (_ && _)%bool; lia.
Qed.
Lemma fortune_ln p : (forall b, (p <= b)%nat -> (0 < times_of b prior sh)%nat) -> forall h pre, h0 = pre ++ h ->
  0 < fortune p h /\ ln (fortune p h) = rsum (fun x => if (fst x <? p)%nat then 0 else gain (fst x) (snd x)) (deeds h).
Proof.
  intros HP. induction h as [|[c0 o] h IH]; intros pre E0.
  - simpl. split; [lra|apply ln_1].
  - assert (E1 : h0 = (pre ++ [(c0, o)]) ++ h) by (rewrite <- app_assoc; exact E0).
    destruct (IH _ E1) as [F0 F1]. pose proof (alive_app _ _ E0) as Al. cbn [alive] in Al. apply andb_prop in Al. destruct Al as [Al _].
    destruct (Rlt_dec 0 (law M theta c0 o)) as [LP|]; [|discriminate].
    destruct (label M c0 o) as [e|] eqn:Le; [|unfold law in LP; rewrite Le in LP; lra].
    destruct (met_seen pre c0 o h e E0 Le) as [HB Hm]. cbn [fortune deeds]. rewrite Le. cbn [rsum fst snd].
    destruct (number h <? p)%nat eqn:K; [rewrite Rmult_1_r; split; [exact F0|lra]|].
    apply Nat.ltb_ge in K. pose proof (counted (number h) HB (HP _ K)) as [C1 C2].
    assert (Pl : plug h = pl (number h)) by (unfold pl; rewrite E1; apply plug_later).
    assert (Bt : bets h = true) by (unfold bets; now rewrite model_fine, Pl, C1).
    unfold factor_of. rewrite Bt, Pl. unfold says, law in *. rewrite Le in *.
    assert (He : (e < E)%nat) by (apply (label_known c0 o); [apply model_fine|exact Le]).
    assert (Q0 : 0 < poly_at (point (pl (number h))) (polys M e)).
    { destruct (is_number (polys M e)) eqn:N; [rewrite (number_same _ theta) by exact N; exact LP|now apply C2]. }
    split.
    + apply Rmult_lt_0_compat; [exact F0|]. now apply Rdiv_lt_0_compat.
    + rewrite ln_mult; [|exact F0|now apply Rdiv_lt_0_compat]. unfold Rdiv. rewrite ln_mult; [|exact Q0|now apply Rinv_0_lt_compat].
      rewrite ln_Rinv by exact LP. rewrite F1. unfold gain. lra.
Qed.

(* Jensen's inequality for the shares. *)
Fixpoint shared (g : nat -> Q -> nat -> R) (l : list (nat * Q)) (s : list nat) : R :=
  match l, s with (p, w) :: l', n :: s' => (if Nat.eqb n 0 then 0 else g p w n) + shared g l' s' | _, _ => 0 end.
Lemma jensen m l : 0 < m -> forall s, (forall p w, In (p, w) l -> 0 <= Q2R w) ->
  (forall p w n, In ((p, w), n) (combine l s) -> (0 < n)%nat -> 0 < fortune p h0 /\ 0 < Q2R w) ->
  shared (fun p w n => INR n * (ln (Q2R w * (INR all * / INR n)) + ln (fortune p h0))) l s <=
  INR (together l s) * ln m + INR all * mixed l h0 / m - INR (together l s).
Proof.
  intros Hm. assert (AP : 0 < INR all) by (apply lt_0_INR; exact HS). assert (IM : 0 < / m) by now apply Rinv_0_lt_compat.
  induction l as [|[p w] l IH]; intros s W0 H.
  - simpl. unfold Rdiv. rewrite Rmult_0_r, Rmult_0_l. lra.
  - destruct s as [|n s].
    + cbn [shared together mixed]. simpl INR. pose proof (mixed_pos ((p, w) :: l) h0 W0) as MP. cbn [mixed] in MP.
      assert (0 <= INR all * (Q2R w * fortune p h0 + mixed l h0) / m) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]). lra.
    + cbn [shared together mixed]. rewrite plus_INR.
      specialize (IH s ltac:(intros; eapply W0; right; eauto) ltac:(intros; eapply H; [right|]; eauto)).
      pose proof (W0 p w (or_introl eq_refl)) as Wp. pose proof (fortune_pos p h0) as Fp.
      replace (INR all * (Q2R w * fortune p h0 + mixed l h0) / m) with
        (INR all * mixed l h0 / m + INR all * (Q2R w * fortune p h0) * / m) by (unfold Rdiv; ring).
      enough (G : (if Nat.eqb n 0 then 0 else INR n * (ln (Q2R w * (INR all * / INR n)) + ln (fortune p h0))) <=
        INR n * ln m + INR all * (Q2R w * fortune p h0) * / m - INR n) by lra.
      destruct (Nat.eqb n 0) eqn:N.
      * apply Nat.eqb_eq in N. subst n. simpl INR.
        assert (0 <= INR all * (Q2R w * fortune p h0) * / m) 
          by (apply Rmult_le_pos; [apply Rmult_le_pos; [lra|now apply Rmult_le_pos]|lra]). lra.
      * apply Nat.eqb_neq in N. destruct (H p w n (or_introl eq_refl) ltac:(lia)) as [F0 Q0].
        assert (NP : 0 < INR n) by (apply lt_0_INR; lia). assert (IN : 0 < / INR n) by now apply Rinv_0_lt_compat.
        set (z := Q2R w * (INR all * / INR n) * fortune p h0).
        assert (YP : 0 < Q2R w * (INR all * / INR n)) by (apply Rmult_lt_0_compat; [exact Q0|now apply Rmult_lt_0_compat]).
        assert (ZP : 0 < z) by now apply Rmult_lt_0_compat.
        rewrite <- ln_mult; [|exact YP|exact F0]. fold z.
        pose proof (ln_line (z * / m) ltac:(now apply Rmult_lt_0_compat)) as LL. rewrite ln_mult, ln_Rinv in LL by assumption.
        assert (K : INR n * ln z <= INR n * (ln m + z * / m - 1)) by (apply Rmult_le_compat_l; lra).
        replace (INR all * (Q2R w * fortune p h0) * / m) with (INR n * (z * / m)) by (unfold z; field; lra). lra.
Qed.
Lemma prices_low l : forall s y, prices c all l s = Some y ->
  IZR y <= U * shared (fun p w n => INR n * ln (Q2R w * (INR all * / INR n))) l s /\
  forall p w n, In ((p, w), n) (combine l s) -> (0 < n)%nat -> (0 <= Q2R w -> 0 < Q2R w).
Proof.
  induction l as [|[p w] l IH]; intros s y H; [injection H as <-; simpl; split; [lra|intros p w n []]|].
  destruct s as [|n s]; [injection H as <-; simpl; split; [lra|intros p' w' n []]|].
  cbn [prices] in H. destruct (logs c n _) as [a|] eqn:La; [|discriminate]. destruct (prices c all l s) as [b|] eqn:Lb; [|discriminate].
  injection H as <-. destruct (IH s b Lb) as [I1 I2]. rewrite plus_IZR. cbn [shared].
  assert (Eq : (0 < n)%nat -> Q2R (Qmult w (Qmult (qnat all) (Qinv (qnat n)))) = Q2R w * (INR all * / INR n)).
  { intros Hn. rewrite !Q2R_mult, Q2R_inv, !qnat_R; [reflexivity|]. intros Z. apply Qeq_eqR in Z. rewrite qnat_R, Q2R_0 in Z.
    pose proof (lt_0_INR n Hn). lra. }
  split.
  - destruct (Nat.eqb n 0) eqn:N.
    + apply Nat.eqb_eq in N. subst n. unfold logs in La. simpl in La. injection La as <-. lra.
    + apply Nat.eqb_neq in N. apply logs_low in La. rewrite Eq in La by lia. lra.
  - intros p' w' n' [K|K] Hn W; [|eauto]. injection K as <- <- <-. apply (logs_sound _ _ _ _) in La; [|exact Hn].
    destruct W as [W|W]; [exact W|]. rewrite Eq, <- W in La by exact Hn. lra.
Qed.

Lemma shared_swap l s (HT : forall p w n, In ((p, w), n) (combine l s) -> (0 < n)%nat ->
    ln (fortune p h0) = rsum (fun x => if (fst x <? p)%nat then 0 else gain (fst x) (snd x)) (deeds h0)) :
  shared (fun p _ n => INR n * ln (fortune p h0)) l s =
  rsum (fun x => INR (times_of (fst x) l s) * gain (fst x) (snd x)) (deeds h0).
Proof.
  revert s HT. induction l as [|[p w] l IH]; intros s HT; [simpl; symmetry; apply rsum_zero; intros; lra|].
  destruct s as [|n s]; [simpl; symmetry; apply rsum_zero; intros; lra|]. cbn [shared times_of].
  rewrite IH by (intros; eapply HT; [right|]; eauto).
  rewrite (rsum_ext (fun x => INR ((if (p <=? fst x)%nat then n else 0) + times_of (fst x) l s) * gain (fst x) (snd x))
    (fun x => INR n * (if (fst x <? p)%nat then 0 else gain (fst x) (snd x)) + INR (times_of (fst x) l s) * gain (fst x) (snd x))).
  - rewrite rsum_add, rsum_scal. f_equal. destruct (Nat.eqb n 0) eqn:N; [apply Nat.eqb_eq in N; subst n; simpl; lra|].
    apply Nat.eqb_neq in N. rewrite (HT p w n (or_introl eq_refl)) by lia. reflexivity.
  - intros x _. rewrite plus_INR. destruct (p <=? fst x)%nat eqn:K1, (fst x <? p)%nat eqn:K2; simpl INR; try lra.
    + apply Nat.leb_le in K1. apply Nat.ltb_lt in K2. lia.
    + apply Nat.leb_gt in K1. apply Nat.ltb_ge in K2. lia.
Qed.
Lemma shared_add g1 g2 l : forall s, shared (fun p w n => INR n * (g1 p w n + g2 p w n)) l s =
  shared (fun p w n => INR n * g1 p w n) l s + shared (fun p w n => INR n * g2 p w n) l s.
Proof. induction l as [|[p w] l IH]; intros [|n s]; simpl; try lra. rewrite IH. destruct (Nat.eqb n 0); lra. Qed.

(* The threshold, and what is expected of the truth. *)
Definition unknown (e : nat) (r : R) : R := if is_number (polys M e) then 0 else r.
Definition heft (e : nat) : R := rsum (fun b => INR (times_of b prior sh) * INR (mt b e)) (seq 0 B).
Lemma times_counted b l s : forall p w n, In ((p, w), n) (combine l s) -> (0 < n)%nat -> (p <= b)%nat -> (0 < times_of b l s)%nat.
Proof.
  revert s. induction l as [|[p' w'] l IH]; intros [|n' s] p w n; simpl; try tauto. intros [K|K] Hn Hp.
  - injection K as <- <- <-. apply Nat.leb_le in Hp. rewrite Hp. lia.
  - specialize (IH s p w n K Hn Hp). lia.
Qed.
Lemma deeds_known x : In x (deeds h0) -> (fst x < B)%nat /\ (snd x < E)%nat.
Proof.
  assert (G : forall h pre, h0 = pre ++ h -> In x (deeds h) -> (fst x < B)%nat /\ (snd x < E)%nat); [|apply (G h0 []); reflexivity].
  induction h as [|[c0 o] h IH]; intros pre E0 Hx; [destruct Hx|]. simpl in Hx.
  assert (E1 : h0 = (pre ++ [(c0, o)]) ++ h) by (rewrite <- app_assoc; exact E0).
  destruct (label M c0 o) as [e|] eqn:Le; [|eauto]. destruct Hx as [<-|Hx]; [|eauto]. simpl.
  split; [apply (met_seen pre c0 o h e E0 Le)|apply (label_known c0 o); [apply model_fine|exact Le] ].
Qed.
Lemma threshold_low : riches h0 * d < 1 -> d = Q2R delta ->
  IZR (fst known) <= U * rsum (fun e => unknown e (heft e * ln (f e))) (seq 0 E).
Proof.
  intros Poor Ed. destruct L_parts as (x & y & z & PO & MO & Lx & Ly & Lz & Ek).
  replace (IZR (fst known)) with (IZR x + (IZR y + IZR z)) by (rewrite Ek; cbn [fst]; now rewrite !plus_IZR).
  destruct (prior_sound _ _ PO) as [W0 W1]. rewrite Q2R_1 in W0.
  assert (Em : riches h0 = 1 - weight_of prior + mixed prior h0) by (unfold riches; now rewrite PO, A).
  set (m := riches h0) in *.
  pose proof unit_pos as UP. assert (AP : 0 < INR all) by (apply lt_0_INR; exact HS).
  destruct (prices_low _ _ _ Ly) as [PL PW].
  assert (FT : forall p w n, In ((p, w), n) (combine prior sh) -> (0 < n)%nat -> 0 < fortune p h0 /\
      ln (fortune p h0) = rsum (fun x => if (fst x <? p)%nat then 0 else gain (fst x) (snd x)) (deeds h0)).
  { intros p w n Hi Hn. apply (fortune_ln p) with (pre := []); [|reflexivity]. intros b Hb. eapply times_counted; eauto. }
  assert (Sub : mixed prior h0 <= m) by lra.
  assert (MP : 0 < mixed prior h0).
  { assert (G : forall l s, (forall p w, In (p, w) l -> 0 <= Q2R w) -> (0 < together l s)%nat ->
      (forall p w n, In ((p, w), n) (combine l s) -> (0 < n)%nat -> 0 < fortune p h0 /\ 0 < Q2R w) -> 0 < mixed l h0).
    { induction l as [|[p w] l IH]; intros [|n s] Hw Ht Hf; simpl in Ht; try lia. cbn [mixed].
      pose proof (Hw p w (or_introl eq_refl)) as Wp. pose proof (fortune_pos p h0) as Fp.
      assert (Rest : forall p w, In (p, w) l -> 0 <= Q2R w) by (intros; eapply Hw; right; eauto).
      pose proof (mixed_pos l h0 Rest) as Mp. destruct n as [|n].
      - specialize (IH s Rest ltac:(lia) ltac:(intros; eapply Hf; [right|]; eauto)). nra.
      - destruct (Hf p w (S n) (or_introl eq_refl) ltac:(lia)). nra. }
    apply (G prior sh W1 HS). intros p w n Hi Hn. split; [apply (FT p w n Hi Hn)|]. apply (PW p w n Hi Hn).
    apply (W1 p). apply in_combine_l in Hi. exact Hi. }
  assert (MM : 0 < m) by lra.
  pose proof (jensen m prior MM sh W1) as J.
  specialize (J ltac:(intros p w n Hi Hn; split; [apply (FT p w n Hi Hn)|apply (PW p w n Hi Hn), (W1 p); apply in_combine_l in Hi; exact Hi])).
  assert (J2 : INR all * mixed prior h0 / m <= INR all).
  { unfold Rdiv. rewrite Rmult_assoc. rewrite <- (Rmult_1_r (INR all)) at 2. apply Rmult_le_compat_l; [lra|].
    apply (Rmult_le_reg_r m); [exact MM|]. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  rewrite (shared_add (fun _ w n => ln (Q2R w * (INR all * / INR n))) (fun p _ _ => ln (fortune p h0))) in J.
  rewrite (shared_swap prior sh) in J by (intros; eapply FT; eauto).
  rewrite (by_kind (fun b e => INR (times_of b prior sh) * gain b e) B) in J by apply deeds_known.
  apply logs_low in Lx.
  assert (DP : 0 < Q2R delta) by lra.
  assert (LD : ln (Q2R delta) + ln m < 0).
  { rewrite <- ln_mult by assumption. rewrite <- ln_1. apply ln_increasing; [now apply Rmult_lt_0_compat|]. rewrite <- Ed. lra. }
  assert (SC : IZR z <= U * rsum (fun b => INR (times_of b prior sh) * rsum (fun e => unknown e (INR (mt b e) *
      ln (poly_at (point (pl b)) (polys M e)))) (seq 0 E)) (seq 0 B)).
  { rewrite <- rsum_scal. pose proof (sumz_sound (score M E prior predict c mt) (fun b => U * (INR (times_of b prior sh) *
      rsum (fun e => unknown e (INR (mt b e) * ln (poly_at (point (pl b)) (polys M e)))) (seq 0 E))) B) as SS.
    enough (G : forall b v, (b < B)%nat -> score M E prior predict c mt b = Some v -> IZR v <= U * (INR (times_of b prior sh) *
      rsum (fun e => unknown e (INR (mt b e) * ln (poly_at (point (pl b)) (polys M e)))) (seq 0 E))) by (specialize (SS G 0%Z z Lz); lra).
    clear SS.
    intros b v Hb Hv. unfold score in Hv. destruct (Nat.eqb (times_of b prior sh) 0) eqn:K.
    - apply Nat.eqb_eq in K. rewrite K. injection Hv as <-. simpl INR. lra.
    - fold (pl b) in Hv. destruct (plug_ok M E (pl b)); [|discriminate]. destruct (sumz _ E 0) as [u|] eqn:V; [|discriminate].
      injection Hv as <-. rewrite mult_IZR, <- INR_IZR_INZ.
      apply (sumz_sound _ (fun e => U * unknown e (INR (mt b e) * ln (poly_at (point (pl b)) (polys M e)))) E) in V.
      + rewrite rsum_scal in V. pose proof (pos_INR (times_of b prior sh)). nra.
      + intros e w He Hw. unfold unknown. destruct (is_number (polys M e)); [injection Hw as <-; lra|].
        apply logs_low in Hw. now rewrite poly_val_R in Hw. }
  assert (Split : rsum (fun b => rsum (fun e => INR (tallied (deeds h0) b e) * (INR (times_of b prior sh) * gain b e)) (seq 0 E)) (seq 0 B) =
    rsum (fun b => INR (times_of b prior sh) * rsum (fun e => unknown e (INR (mt b e) * ln (poly_at (point (pl b)) (polys M e)))) (seq 0 E)) (seq 0 B)
    - rsum (fun e => unknown e (heft e * ln (f e))) (seq 0 E)).
  { assert (Sw : rsum (fun e => unknown e (heft e * ln (f e))) (seq 0 E) =
      rsum (fun b => rsum (fun e => unknown e (INR (times_of b prior sh) * INR (mt b e) * ln (f e))) (seq 0 E)) (seq 0 B)).
    { assert (G : forall le lb, rsum (fun e => unknown e (rsum (fun b => INR (times_of b prior sh) * INR (mt b e)) lb * ln (f e))) le =
        rsum (fun b => rsum (fun e => unknown e (INR (times_of b prior sh) * INR (mt b e) * ln (f e))) le) lb); [|apply G].
      intros le. induction lb as [|b lb IH]; cbn [rsum].
      - apply rsum_zero. intros e _. unfold unknown. destruct (is_number _); lra.
      - rewrite <- IH, <- rsum_add. apply rsum_ext. intros e _. unfold unknown. destruct (is_number _); lra. }
    rewrite Sw. rewrite <- rsum_minus. apply rsum_ext. intros b _. rewrite <- rsum_scal, <- rsum_minus. apply rsum_ext. intros e _.
    rewrite <- met_deeds. unfold unknown, gain. destruct (is_number (polys M e)) eqn:N; [|lra].
    rewrite (number_same (point (pl b)) theta) by exact N. lra. }
  rewrite Split in J.
  assert (J3 : shared (fun _ w n => INR n * ln (Q2R w * (INR all * / INR n))) prior sh + INR all * ln (Q2R delta) +
    rsum (fun b => INR (times_of b prior sh) * rsum (fun e => unknown e (INR (mt b e) * ln (poly_at (point (pl b)) (polys M e)))) (seq 0 E)) (seq 0 B)
    <= rsum (fun e => unknown e (heft e * ln (f e))) (seq 0 E)).
  { assert (Less : INR all * (ln (Q2R delta) + ln m) <= 0) by (rewrite <- (Rmult_0_r (INR all)); apply Rmult_le_compat_l; lra).
    rewrite Rmult_plus_distr_l in Less. lra. }
  apply (Rmult_le_compat_l U) in J3; [|lra]. rewrite !Rmult_plus_distr_l in J3. lra.
Qed.

Lemma weigh_R tm : forall e n b0, tm = map (fun b => times_of b prior sh) (seq b0 n) ->
  IZR (weigh mt b0 tm e) = rsum (fun b => INR (times_of b prior sh) * INR (mt b e)) (seq b0 n).
Proof.
  intros e n. revert tm. induction n as [|n IH]; intros tm b0 ->; [reflexivity|]. cbn [seq map weigh rsum].
  now rewrite plus_IZR, mult_IZR, <- !INR_IZR_INZ, (IH _ (S b0) eq_refl).
Qed.
Lemma heavy_in tm n : forall acc e k, In (e, k) (heavy M mt tm n acc) -> (In (e, k) acc \/
  (is_number (polys M e) = false /\ k = weigh mt 0 tm e /\ (0 < k)%Z)).
Proof.
  induction n as [|n IH]; intros acc e k H; [now left|]. cbn [heavy] in H. apply IH in H. destruct H as [H|H]; [|now right].
  destruct (is_number (polys M n)) eqn:N; [now left|]. destruct (Z.leb _ 0) eqn:K; [now left|].
  destruct H as [H|H]; [|now left]. injection H as <- <-. right. apply Z.leb_gt in K. auto.
Qed.
Lemma heavy_sum g tm : tm = map (fun b => times_of b prior sh) (seq 0 B) -> forall n acc,
  rsum (fun x => IZR (snd x) * g (fst x)) (heavy M mt tm n acc) =
  rsum (fun e => unknown e (heft e * g e)) (seq 0 n) + rsum (fun x => IZR (snd x) * g (fst x)) acc.
Proof.
  intros Et. induction n as [|n IH]; intros acc; [simpl; lra|]. cbn [heavy]. rewrite IH, rsum_S. unfold unknown at 3.
  destruct (is_number (polys M n)); [lra|]. pose proof (weigh_R tm n B 0 Et) as WR. fold (heft n) in WR.
  destruct (Z.leb (weigh mt 0 tm n) 0) eqn:K.
  - apply Z.leb_le, IZR_le in K. rewrite WR in K. assert (0 <= heft n).
    { unfold heft. assert (G : forall l, 0 <= rsum (fun b => INR (times_of b prior sh) * INR (mt b n)) l).
      { induction l as [|b l IHl]; simpl; [lra|]. pose proof (pos_INR (times_of b prior sh)). pose proof (pos_INR (mt b n)). nra. }
      apply G. }
    replace (heft n) with 0 by lra. lra.
  - cbn [rsum fst snd]. rewrite WR. lra.
Qed.
End Rich.

Lemma tilted_at ws t : forall p, at_ (tilted M ws t p) = rsum (fun x => Q2R (t (fst x)) * f (fst x)) ws + at_ p.
Proof. induction ws as [|[e k] ws IH]; intros p; simpl; [lra|]. rewrite IH, plus_at. lra. Qed.
Lemma room_low c t ws : forall acc y, (forall e k, In (e, k) ws -> (0 < k)%Z /\ 0 < f e) -> room c ws t acc = Some y ->
  IZR y + U * rsum (fun x => IZR (snd x) * ln (f (fst x))) ws <= IZR acc + U * rsum (fun x => Q2R (t (fst x)) * f (fst x)) ws.
Proof.
  pose proof unit_pos as UP. induction ws as [|[e k] ws IH]; intros acc y H Hy; simpl in Hy; [injection Hy as <-; simpl; lra|].
  destruct (H e k (or_introl eq_refl)) as [Kp Fp]. destruct (log_ok _ _) eqn:LO; [|discriminate].
  apply IH in Hy; [|intros; apply H; simpl; auto]. rewrite plus_IZR, mult_IZR, plus_IZR in Hy. cbn [rsum fst snd].
  apply log_sound in LO. destruct LO as [QP LO]. apply IZR_lt in Kp.
  assert (Eq : Q2R (Qmult (t e) (Qinv (inject_Z k))) = Q2R (t e) * / IZR k).
  { rewrite Q2R_mult, Q2R_inv, inject_R; [reflexivity|]. intros Z. apply Qeq_eqR in Z. rewrite inject_R, Q2R_0 in Z. lra. }
  rewrite Eq in *. set (q := Q2R (t e) * / IZR k) in *. set (z := IZR (lg c _)) in *.
  assert (LO2 : z <= U * ln q).
  { apply (Rmult_le_compat_l U) in LO; [|lra]. replace (U * (z / U)) with z in LO by (field; lra). exact LO. }
  pose proof (ln_line (q * f e) ltac:(now apply Rmult_lt_0_compat)) as LL. rewrite ln_mult in LL by assumption.
  assert (G : IZR k * (z + U) + U * (IZR k * ln (f e)) <= U * (Q2R (t e) * f e)).
  { replace (U * (Q2R (t e) * f e)) with (IZR k * (U * (q * f e))) by (unfold q; field; lra).
    assert (z + U + U * ln (f e) <= U * (q * f e)) by nra. nra. }
  lra.
Qed.

(* What the likelihood says, and that what was seen had a chance. *)
Definition evident (known : Z * list (nat * Z)) : Prop :=
  IZR (fst known) <= U * rsum (fun x => IZR (snd x) * ln (f (fst x))) (snd known) /\
  forall e k, In (e, k) (snd known) -> (0 < k)%Z /\ 0 < f e.
Lemma tangent_right c known : evident known -> forall t r p, tangent M c known t r = Some p -> 0 <= at_ p.
Proof.
  intros [EL WS] t r p Hp. unfold tangent in Hp. destruct (room c (snd known) t (fst known)) as [y|] eqn:Ry; [|discriminate].
  destruct (Qle_bool _ _) eqn:Q; [|discriminate]. injection Hp as <-. apply Qle_bool_R in Q. rewrite Q2R_mult, !inject_R in Q.
  rewrite tilted_at, constant_at, Q2R_opp. pose proof unit_pos as UP. pose proof (room_low c t (snd known) (fst known) y WS Ry) as RL.
  assert (K : Q2R r * U <= U * rsum (fun x0 => Q2R (t (fst x0)) * f (fst x0)) (snd known)) by lra. nra.
Qed.
Lemma nothing_evident : evident (0%Z, []).
Proof. split; [simpl; lra|intros e k []]. Qed.
Lemma dead_rich h : prior_ok 1 prior = true -> riches h * d < 1 -> alive h = true.
Proof. intros PO Poor. destruct (alive h) eqn:Al; [reflexivity|exfalso]. unfold riches in Poor. rewrite Al, PO, Rinv_l in Poor; lra. Qed.
Lemma met_alive lab h b e : alive h = true -> (0 < met lab number h b e)%nat -> exists c o, lab c o = Some e /\ 0 < law M theta c o.
Proof.
  intros Al Mb. induction h as [|[c0 o] h IH]; simpl in Mb; [lia|]. cbn [alive] in Al. apply andb_prop in Al.
  destruct Al as [Al1 Al2]. destruct (lab c0 o) as [e'|] eqn:Le; [|rewrite andb_false_r in Mb; auto].
  destruct (Nat.eqb (number h) b && Nat.eqb e e')%bool eqn:K; [|auto]. apply andb_prop in K. destruct K as [_ K].
  apply Nat.eqb_eq in K. subst e'. exists c0, o. split; [exact Le|]. now destruct (Rlt_dec 0 (law M theta c0 o)).
Qed.
(* Whoever has less than 1/d is right about it. *)
Theorem poor_evident c h delta known : likely M E prior predict c (S (number h)) (met (label M) number h) delta = Some known ->
  d = Q2R delta -> riches h * d < 1 -> evident known.
Proof.
  intros Lk Ed Poor. destruct (Nat.eqb (together prior (shares c)) 0) eqn:Z.
  - unfold likely in Lk. rewrite Z in Lk. injection Lk as <-. apply nothing_evident.
  - assert (HS : (0 < together prior (shares c))%nat) by (apply Nat.eqb_neq in Z; lia).
    destruct (L_parts c h delta known Lk HS) as (x & y' & z & PO & MO & Lx & Ly & Lz & Ek).
    pose proof (dead_rich h PO Poor) as Al. pose proof (threshold_low c h delta known Lk Al HS Poor Ed) as TL. split.
    + assert (HW : rsum (fun x => IZR (snd x) * ln (f (fst x))) (snd known) = rsum (fun e => unknown e (heft c h e * ln (f e))) (seq 0 E)).
      { rewrite Ek. cbn [snd]. rewrite (heavy_sum c h (fun e => ln (f e)) _ eq_refl). simpl. lra. }
      rewrite HW. exact TL.
    + intros e k Hi. rewrite Ek in Hi. cbn [snd] in Hi. apply (heavy_in h) in Hi. destruct Hi as [[]|(Hn & -> & Kp)]. split; [exact Kp|].
      apply IZR_lt in Kp. rewrite (weigh_R c h _ e (S (number h)) 0 eq_refl) in Kp.
      assert (Met : exists b, (0 < met (label M) number h b e)%nat).
      { assert (G : forall l, 0 < rsum (fun b => INR (times_of b prior (shares c)) * INR (met (label M) number h b e)) l ->
          exists b, (0 < met (label M) number h b e)%nat); [|now apply (G _ Kp)].
        induction l as [|b l IHl]; simpl; intros Pl; [lra|]. destruct (met (label M) number h b e) eqn:Mb; [|exists b; lia].
        apply IHl. simpl in Pl. lra. }
      destruct Met as [b Mb]. destruct (met_alive _ h b e Al Mb) as (c0 & o & Le & LP). unfold law in LP. now rewrite Le in LP.
Qed.
Theorem poor_is_right c h delta known : likely M E prior predict c (S (number h)) (met (label M) number h) delta = Some known ->
  d = Q2R delta -> riches h * d < 1 -> forall t r p, tangent M c known t r = Some p -> 0 <= at_ p.
Proof. intros Lk Ed Poor. apply tangent_right. now apply (poor_evident c h delta). Qed.
End Truth.
(* Without confidence there are no rows but empty ones. *)
Lemma without_evident M theta E prior predict number c h delta known :
  likely M E prior predict c (S (number h)) (met (label M) number h) delta = Some known -> Q2R delta <= 0 -> evident M theta known.
Proof.
  intros Lk Hd. unfold likely in Lk. destruct (Nat.eqb (together prior (shares c)) 0) eqn:Z; [injection Lk as <-; apply nothing_evident|].
  destruct (prior_ok 1 prior && model_ok M E); [|discriminate]. destruct (logs c _ delta) as [x|] eqn:Lx; [|discriminate].
  apply logs_sound in Lx; [lra|]. apply Nat.eqb_neq in Z. lia.
Qed.
Lemma nothing_is_right M theta E prior predict number c h delta known :
  likely M E prior predict c (S (number h)) (met (label M) number h) delta = Some known -> Q2R delta <= 0 ->
  forall t r p, tangent M c known t r = Some p -> 0 <= poly_at theta p.
Proof. intros Lk Hd. apply tangent_right. now apply (without_evident M theta E prior predict number c h delta). Qed.
