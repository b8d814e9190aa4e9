(* What was to be tried was fixed beforehand: intervals of Clopper and Pearson. *)
From Coq Require Import List Bool Arith ZArith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Problem Basics Polynomial Value Sound Ville Model Krichevsky Learned Likelihood Statistics Binomial.
Import ListNotations.
Open Scope R_scope.

(* ---------- The checker: [level] is that of one end of one interval; us are upper bounds of ratios, see Binomial.v ---------- *)

Definition event_fixed (evs : nat -> event) (c : cert) (us : nat -> list Q * list Q) (cnt : nat -> nat -> nat -> nat) (g : nat) : bool :=
  let l := trials (evs g) in let k := tally true cnt l in let m := tally false cnt l in
  let p := elow c g in let q := Qminus 1 (ehigh c g) in
  let (a, b) := parts c p in let (a', b') := parts c q in
  tail_holds (level c) p a b (fst (us g)) k m && tail_holds (level c) q a' b' (snd (us g)) m k.
Definition accept_fixed (M : model) (N : nat) (evs : nat -> event) (cnt : nat -> nat -> nat -> nat) (delta : Q)
    (c : cert) (us : nat -> list Q * list Q) : bool :=
  Qltb 0 (level c) && Qle_bool (Qmult (Qmult 2 (qnat N)) (level c)) delta && below N (fun g => event_ok M (evs g)) &&
  below N (event_fixed evs c us cnt) && proved M N evs no_cut c.

(* ---------- Semantics: choices in the order of a plan; the expectation of f at the log in the end ---------- *)

(* BELIEVED *)
Fixpoint carried_out (M : model) (theta : nat -> R) (plan : list (nat * nat)) (f : seen -> R) (h : seen) : R :=
  match plan with
  | [] => f h
  | c :: plan' => rsum (fun o => law M theta c o * carried_out M theta plan' f ((c, o) :: h)) (results M c)
  end.
(* END *)

(* ---------- Proofs ---------- *)

Section Plan.
Variables (M : model) (theta : nat -> R).
Notation run := (carried_out M theta).
Definition sensible (plan : list (nat * nat)) : Prop := forall c, In c plan ->
  (forall o, 0 <= law M theta c o) /\ rsum (law M theta c) (results M c) = 1.
Lemma run_mono plan f g : sensible plan -> (forall h, f h <= g h) -> forall h, run plan f h <= run plan g h.
Proof.
  intros S H. induction plan as [|c plan IH]; intros h; simpl; [apply H|].
  apply rsum_le. intros o _. apply Rmult_le_compat_l; [apply (S c); simpl; auto|]. apply IH.
  intros d Hd. apply S. simpl. auto.
Qed.
Lemma run_ext plan f g : sensible plan -> (forall h, f h = g h) -> forall h, run plan f h = run plan g h.
Proof. intros S H h. apply Rle_antisym; apply run_mono; auto; intros h'; rewrite H; lra. Qed.
Lemma run_zero plan : sensible plan -> forall h, run plan (fun _ => 0) h = 0.
Proof.
  intros S. induction plan as [|c plan IH]; intros h; simpl; [reflexivity|].
  rewrite (rsum_ext _ (fun o => 0 * law M theta c o)).
  - rewrite rsum_scal. lra.
  - intros o _. rewrite IH by (intros d Hd; apply S; simpl; auto). lra.
Qed.
Lemma run_add plan f g : forall h, run plan (fun h => f h + g h) h = run plan f h + run plan g h.
Proof.
  induction plan as [|c plan IH]; intros h; simpl; [reflexivity|]. rewrite <- rsum_add. apply rsum_ext. intros o _.
  rewrite IH. lra.
Qed.

Lemma binomial_upto p n : forall f g, (forall x, (x <= n)%nat -> f x = g x) -> binomial p n f = binomial p n g.
Proof.
  induction n as [|n IH]; intros f g H; simpl; [apply H; lia|].
  rewrite (IH (fun k => f (S k)) (fun k => g (S k))) by (intros; apply H; lia). rewrite (IH f g) by (intros; apply H; lia).
  reflexivity.
Qed.

Section One.
Variable ev : event.
Hypothesis (T : instance M theta) (OK : event_ok M ev = true).
Notation p := (poly_at theta (about ev)).
Definition chance_of (b : bool) : R := if b then p else 1 - p.
Fixpoint tries (plan : list (nat * nat)) : nat :=
  match plan with [] => 0 | c :: plan' => match finds ev c with Some _ => S (tries plan') | None => tries plan' end end.

Lemma run_binomial b psi plan : sensible plan -> forall h,
  run plan (fun h => psi (wins b ev h) (wins (negb b) ev h)) h =
  binomial (chance_of b) (tries plan) (fun x => psi (x + wins b ev h)%nat (tries plan - x + wins (negb b) ev h)%nat).
Proof.
  induction plan as [|c plan IH]; intros Sn h; [reflexivity|].
  assert (S' : sensible plan) by (intros d Hd; apply Sn; simpl; auto). specialize (IH S').
  simpl run. cbn [tries]. destruct (finds ev c) as [t|] eqn:F.
  - pose proof F as F'. unfold finds in F'. apply find_some in F'. destruct F' as [Ht Hsame]. apply same_eq in Hsame.
    destruct (trial_true M theta ev T OK t Ht) as (k & Hs & E & HL & S1 & S0). apply Nat.ltb_lt in Hs.
    set (n := tries plan) in *.
    set (V := fun x y => binomial (chance_of b) n (fun z => psi (z + x)%nat (n - z + y)%nat)).
    set (wb := wins b ev h). set (wo := wins (negb b) ev h).
    set (w1 := if b then V (S wb) wo else V wb (S wo)). set (w0 := if b then V wb (S wo) else V (S wb) wo).
    assert (R1 : rsum (fun o => law M theta c o * run plan (fun h => psi (wins b ev h) (wins (negb b) ev h)) ((c, o) :: h)) (results M c)
      = w1 * p + w0 * (1 - p)).
    { subst c. unfold results, law, label, place. simpl fst. simpl snd. rewrite E, Hs. rewrite <- S0, <- S1, <- outcome_sum by exact HL.
      apply rsum_ext. intros o Ho. apply in_seq in Ho. f_equal; [now destruct (nth_error (outcomes k) o)|]. rewrite IH. simpl wins. unfold hit.
      unfold place in F. rewrite F.
      destruct (nth_error (hits t) o) as [y|] eqn:Ey; [|apply nth_error_None in Ey; lia].
      unfold w1, w0, V, wb, wo. destruct b, y; simpl one; simpl plus; reflexivity. }
    rewrite R1. cbn [binomial].
    assert (V1 : binomial (chance_of b) n (fun x => psi (S x + wb)%nat (S n - S x + wo)%nat) = V (S wb) wo).
    { unfold V. apply binomial_upto. intros x Hx. f_equal; lia. }
    assert (V0 : binomial (chance_of b) n (fun x => psi (x + wb)%nat (S n - x + wo)%nat) = V wb (S wo)).
    { unfold V. apply binomial_upto. intros x Hx. f_equal; lia. }
    rewrite V1, V0. unfold w1, w0, chance_of. destruct b; lra.
  - rewrite (rsum_ext _ (fun o => binomial (chance_of b) (tries plan) (fun x => psi (x + wins b ev h)%nat
      (tries plan - x + wins (negb b) ev h)%nat) * law M theta c o)).
    + rewrite rsum_scal. rewrite (proj2 (Sn c (or_introl eq_refl))). lra.
    + intros o _. rewrite IH. simpl wins. unfold hit. rewrite F. simpl one. simpl plus. apply Rmult_comm.
Qed.

Definition unlikely (lv : R) (b : bool) (k m : nat) : R := if Rle_dec (tail (chance_of b) (k + m) k) lv then 1 else 0.
Lemma seldom lv b plan : 0 <= lv -> sensible plan ->
  run plan (fun h => unlikely lv b (wins b ev h) (wins (negb b) ev h)) [] <= lv.
Proof.
  intros Hl S. rewrite run_binomial by exact S. simpl wins.
  assert (Hc : 0 <= chance_of b <= 1) by (pose proof (event_range M theta ev T OK); unfold chance_of; destruct b; lra).
  set (n := tries plan).
  rewrite (binomial_upto _ n _ (fun x => if (if Rle_dec (tail (chance_of b) n x) lv then true else false) then 1 else 0)).
  - apply rarely; [exact Hc|exact Hl|]. intros k. destruct (Rle_dec _ lv); [auto|discriminate].
  - intros x Hx. unfold unlikely. replace (x + 0 + (n - x + 0))%nat with n by lia. rewrite Nat.add_0_r.
    destruct (Rle_dec (tail (chance_of b) n x) lv); reflexivity.
Qed.
End One.

Lemma run_sum plan (F : nat -> seen -> R) lv N : sensible plan ->
  (forall g, (g < N)%nat -> run plan (F g) [] <= lv) -> run plan (fun h => rsum (fun g => F g h) (seq 0 N)) [] <= INR N * lv.
Proof.
  intros S H. assert (G : forall l, (forall g, In g l -> (g < N)%nat) ->
    run plan (fun h => rsum (fun g => F g h) l) [] <= INR (length l) * lv).
  { induction l as [|g l IH]; intros Hl; [simpl rsum; rewrite run_zero by exact S; simpl; lra|].
    simpl rsum. rewrite run_add. simpl length. rewrite S_INR. specialize (IH ltac:(intros; apply Hl; simpl; auto)).
    specialize (H g (Hl g (or_introl eq_refl))). lra. }
  specialize (G (seq 0 N)). rewrite seq_length in G. apply G. intros g Hg. apply in_seq in Hg. lia.
Qed.
End Plan.

(* When the plan is carried out, a certificate is accepted whose claim is not true with probability at most delta. *)
(* BELIEVED *)
Theorem fixed_sound (M : model) (N : nat) (evs : nat -> event) (theta : nat -> R) (delta : Q) (plan : list (nat * nat))
    (maker : seen -> cert) (us : seen -> nat -> list Q * list Q) (wrong : seen -> bool) :
  instance M theta -> 0 <= Q2R delta -> (forall c, In c plan -> rsum (law M theta c) (results M c) = 1) ->
  (forall h, wrong h = true -> accept_fixed M N evs (counts_of h) delta (maker h) (us h) = true /\
     ~ true_stated M theta (ask (maker h)) (compl (maker h)) (lower (maker h)) (upper (maker h))) ->
  carried_out M theta plan (fun h => if wrong h then 1 else 0) [] <= Q2R delta.
(* END *)
Proof.
  intros T D Sum HW. assert (S : sensible M theta plan) by (intros c Hc; split; [intros o; now apply law_pos_all|now apply Sum]).
  assert (Parts : forall h, wrong h = true -> 0 < Q2R (level (maker h)) /\ 2 * INR N * Q2R (level (maker h)) <= Q2R delta /\
    (forall g, (g < N)%nat -> event_ok M (evs g) = true) /\
    (forall g, (g < N)%nat -> event_fixed evs (maker h) (us h) (counts_of h) g = true) /\ proved M N evs no_cut (maker h) = true).
  { intros h Hh. destruct (HW h Hh) as [A _]. unfold accept_fixed in A. apply andb_prop in A. destruct A as [A A5].
    apply andb_prop in A. destruct A as [A A4]. apply andb_prop in A. destruct A as [A A3].
    apply andb_prop in A. destruct A as [A1 A2]. apply Qltb_R in A1. rewrite Q2R_0 in A1.
    apply Qle_bool_R in A2. rewrite !Q2R_mult, qnat_R in A2. replace (Q2R 2) with 2 in A2 by (unfold Q2R; simpl; lra).
    repeat split; auto.
    - intros g Hg. apply (below_spec _ _ A3 g Hg).
    - intros g Hg. apply (below_spec _ _ A4 g Hg). }
  set (lv := if Nat.eq_dec N 0 then 0 else Q2R delta / (2 * INR N)).
  assert (Hlv : 0 <= lv).
  { unfold lv. destruct (Nat.eq_dec N 0); [lra|]. apply Rmult_le_pos; [exact D|]. left. apply Rinv_0_lt_compat.
    assert (0 < INR N) by (apply lt_0_INR; lia). lra. }
  set (F := fun g h => if event_ok M (evs g) then
    unlikely theta (evs g) lv true (wins true (evs g) h) (wins false (evs g) h) +
    unlikely theta (evs g) lv false (wins false (evs g) h) (wins true (evs g) h) else 0).
  assert (Fpos : forall g h, 0 <= F g h).
  { intros g h. unfold F, unlikely. destruct (event_ok M (evs g)); [|lra]. destruct (Rle_dec _ _), (Rle_dec _ _); lra. }
  assert (Spos : forall h l, 0 <= rsum (fun g => F g h) l).
  { intros h. induction l as [|g l IH]; simpl; [lra|]. specialize (Fpos g h). lra. }
  apply Rle_trans with (INR N * (2 * lv)).
  2: { unfold lv. destruct (Nat.eq_dec N 0) as [->|N0]; [simpl; lra|]. right. field.
       apply not_0_INR. exact N0. }
  eapply Rle_trans; [|apply (run_sum M theta plan F (2 * lv) N S)].
  - apply run_mono; [exact S|]. intros h. destruct (wrong h) eqn:Hh; [|apply Spos].
    destruct (Parts h Hh) as (L0 & L1 & EO & EP & PR). destruct (HW h Hh) as [_ NT].
    assert (One : forall g, (g < N)%nat -> 1 <= F g h -> 1 <= rsum (fun g => F g h) (seq 0 N)).
    { intros g Hg H1. assert (A : forall l, In g l -> 1 <= rsum (fun g => F g h) l).
      { induction l as [|g' l IHl]; intros []; simpl.
        - subst g'. pose proof (Spos h l). lra.
        - specialize (IHl H). pose proof (Fpos g' h). lra. }
      apply A. apply in_seq. lia. }
    destruct (Rle_lt_dec 1 (rsum (fun g => F g h) (seq 0 N))) as [|Less]; [assumption|exfalso]. apply NT.
    apply (proved_true M theta T N evs no_cut (maker h) PR); [discriminate|]. intros g Hg.
    assert (Lv : Q2R (level (maker h)) <= lv).
    { unfold lv. destruct (Nat.eq_dec N 0); [lia|]. assert (0 < INR N) by (apply lt_0_INR; lia).
      apply (Rmult_le_reg_l (2 * INR N)); [lra|]. replace (2 * INR N * (Q2R delta / (2 * INR N))) with (Q2R delta) by (field; lra). lra. }
    pose proof (EO g Hg) as Og. pose proof (EP g Hg) as Pg. pose proof (event_range M theta (evs g) T Og) as PR01.
    assert (Hr : (match trials (evs g) with [] => true | t :: l' => rising (place t) l' end) = true).
    { pose proof Og as Q. unfold event_ok in Q. apply andb_prop in Q. destruct Q as [Q _]. now destruct (trials (evs g)). }
    unfold event_fixed in Pg. rewrite !(tally_wins _ (evs g) h Hr) in Pg.
    destruct (parts (maker h) (elow (maker h) g)) as [a b]. destruct (parts (maker h) (1 - ehigh (maker h) g)) as [a' b'].
    apply andb_prop in Pg. destruct Pg as [E1 E2].
    assert (NF : ~ 1 <= F g h) by (intros K; specialize (One g Hg K); lra).
    unfold F in NF. rewrite Og in NF. unfold unlikely, chance_of in NF.
    split; apply Rnot_lt_le; intros B; apply NF.
    + pose proof (tail_sound _ _ _ _ _ _ _ _ E1 (proj1 PR01) B) as K.
      destruct (Rle_dec (tail (poly_at theta (about (evs g))) _ _) lv) as [|Z]; [|exfalso; apply Z; lra].
      destruct (Rle_dec _ lv); lra.
    + assert (B' : 1 - poly_at theta (about (evs g)) < Q2R (1 - ehigh (maker h) g)) by (rewrite Q2R_minus, Q2R_1; lra).
      pose proof (tail_sound _ _ _ _ _ _ _ (1 - poly_at theta (about (evs g))) E2 ltac:(lra) B') as K.
      destruct (Rle_dec (tail (1 - poly_at theta (about (evs g))) _ _) lv) as [|Z]; [|exfalso; apply Z; lra].
      destruct (Rle_dec _ lv); lra.
  - intros g Hg. unfold F. destruct (event_ok M (evs g)) eqn:Og.
    + rewrite (run_add M theta plan (fun h => unlikely theta (evs g) lv true (wins true (evs g) h) (wins false (evs g) h))).
      pose proof (seldom M theta (evs g) T Og lv true plan Hlv S) as S1. pose proof (seldom M theta (evs g) T Og lv false plan Hlv S) as S0.
      simpl negb in S1, S0. lra.
    + rewrite run_zero by exact S. lra.
Qed.
