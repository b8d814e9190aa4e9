(* What was to be tried was fixed beforehand: intervals of Clopper and Pearson, and a likelihood region beside them. *)
From Coq Require Import List Bool Arith ZArith QArith Qreals Reals Lra Lia FunctionalExtensionality.
From Proved Require Import Game Problem Basics Polynomial Value Sound Ville Model Krichevsky Learned Coupled Likelihood Statistics Binomial.
Import ListNotations.
Open Scope R_scope.

(* ---------- The checker: [level] is that of one end of one interval; us are upper bounds of ratios, see Binomial.v ---------- *)

Definition event_fixed (evs : nat -> event) (c : cert) (us : nat -> list Q * list Q) (cnt : nat -> nat -> nat -> nat) (g : nat) : bool :=
  let l := trials (evs g) in let k := tally true cnt l in let m := tally false cnt l in
  let p := elow c g in let q := Qminus 1 (ehigh c g) in
  let (a, b) := parts c p in let (a', b') := parts c q in
  tail_holds (level c) p a b (fst (us g)) k m && tail_holds (level c) q a' b' (snd (us g)) m k.
Definition accept_fixed (M : model) (N : nat) (evs : nat -> event) (cnt : nat -> nat -> nat -> nat) (d1 : Q)
    (E : nat) (prior : list (nat * Q)) (predict : nat -> (nat -> nat -> nat) -> list Q)
    (B : nat) (mt : nat -> nat -> nat) (d2 : Q) (c : cert) (us : nat -> list Q * list Q) : bool :=
  Qltb 0 (level c) && Qle_bool (Qmult (Qmult 2 (qnat N)) (level c)) d1 && below N (fun g => event_ok M (evs g)) &&
  below N (event_fixed evs c us cnt) &&
  match likely M E prior predict c B mt d2 with Some known => shown M N evs (tangent M c known) no_stakes c | None => false end.

(* ---------- Semantics ---------- *)

(* BELIEVED *)
(* A run tries one choice after the other: which is next is up to outcomes of the same run, and to chance. *)
Inductive run := Stop | Try (c : nat * nat) (more : nat -> run) | Toss (p : R) (one other : run).
(* The expectation of f at the log after a run; after a plan, runs that do not look at each other. *)
Fixpoint after (M : model) (theta : nat -> R) (r : run) (f : seen -> R) (h : seen) : R :=
  match r with
  | Stop => f h
  | Try c more => rsum (fun o => law M theta c o * after M theta (more o) f ((c, o) :: h)) (results M c)
  | Toss p one other => p * after M theta one f h + (1 - p) * after M theta other f h
  end.
Definition carried_out (M : model) (theta : nat -> R) (plan : list run) (f : seen -> R) : seen -> R := fold_right (after M theta) f plan.
(* No run has two trials of an event; [had]: there was one. *)
Definition is_trial (ev : event) (c : nat * nat) : bool := existsb (fun t => same (t_state t, t_choice t) c) (trials ev).
Fixpoint proper (M : model) (theta : nat -> R) (ev : event) (had : bool) (r : run) : Prop :=
  match r with
  | Stop => True
  | Try c more => rsum (law M theta c) (results M c) = 1 /\ had && is_trial ev c = false /\
                  forall o, proper M theta ev (had || is_trial ev c) (more o)
  | Toss p one other => 0 <= p <= 1 /\ proper M theta ev had one /\ proper M theta ev had other
  end.
(* END *)

(* ---------- Proofs ---------- *)

Lemma is_trial_finds ev c : is_trial ev c = match finds ev c with Some _ => true | None => false end.
Proof.
  unfold is_trial, finds, place. induction (trials ev) as [|t l IH]; simpl; [reflexivity|].
  destruct (same (t_state t, t_choice t) c); [reflexivity|exact IH].
Qed.
Lemma binomial_upto p n : forall f g, (forall x, (x <= n)%nat -> f x = g x) -> binomial p n f = binomial p n g.
Proof.
  induction n as [|n IH]; intros f g H; simpl; [apply H; lia|].
  rewrite (IH (fun k => f (S k)) (fun k => g (S k))) by (intros; apply H; lia). rewrite (IH f g) by (intros; apply H; lia).
  reflexivity.
Qed.
(* The number of trials is that of runs which meet one, with chances vs. *)
Fixpoint blend (vs : list R) (n : nat) (F : nat -> R) : R :=
  match vs with [] => F n | v :: vs' => (1 - v) * blend vs' n F + v * blend vs' (S n) F end.
Lemma blend_step q vs F F1 F2 : (forall k, F (S k) = q * F1 k + (1 - q) * F2 k) -> forall n,
  blend vs (S n) F = q * blend vs n F1 + (1 - q) * blend vs n F2.
Proof. intros H. induction vs as [|v vs IH]; intros n; simpl; [apply H|]. rewrite !IH. lra. Qed.
Lemma blend_le vs F b : (forall v, In v vs -> 0 <= v <= 1) -> (forall k, F k <= b) -> forall n, blend vs n F <= b.
Proof.
  intros Hv HF. induction vs as [|v vs IH]; intros n; simpl; [apply HF|].
  pose proof (Hv v (or_introl eq_refl)). specialize (IH ltac:(intros; apply Hv; simpl; auto)). pose proof (IH n). pose proof (IH (S n)). nra.
Qed.

Section Plan.
Variables (M : model) (theta : nat -> R).
Hypothesis T : instance M theta.
Notation go := (after M theta).
Notation all := (carried_out M theta).

Lemma go_le ev r : forall had, proper M theta ev had r -> forall f g, (forall h, f h <= g h) -> forall h, go r f h <= go r g h.
Proof.
  induction r as [|c k IH|p a IHa b IHb]; intros had S f g H h; simpl in *.
  - apply H.
  - destruct S as (_ & _ & S). apply rsum_le. intros o _. apply Rmult_le_compat_l; [now apply law_pos_all|]. eapply IH; eauto.
  - destruct S as (Hp & Sa & Sb). pose proof (IHa _ Sa f g H h). pose proof (IHb _ Sb f g H h). nra.
Qed.
Lemma go_add r : forall f g h, go r (fun h => f h + g h) h = go r f h + go r g h.
Proof.
  induction r as [|c k IH|p a IHa b IHb]; intros f g h; simpl.
  - reflexivity.
  - rewrite <- rsum_add. apply rsum_ext. intros o _. rewrite IH. lra.
  - rewrite IHa, IHb. lra.
Qed.
Lemma go_zero r : forall h, go r (fun _ => 0) h = 0.
Proof.
  induction r as [|c k IH|p a IHa b IHb]; intros h; simpl; [reflexivity| |rewrite IHa, IHb; lra].
  apply rsum_zero. intros o _. rewrite IH. lra.
Qed.
Lemma all_le ev plan f g : (forall r, In r plan -> proper M theta ev false r) -> (forall h, f h <= g h) -> forall h, all plan f h <= all plan g h.
Proof.
  induction plan as [|r plan IH]; intros S H h; simpl; [apply H|].
  apply (go_le ev r false); [apply S; simpl; auto|]. apply IH; [intros; apply S; simpl; auto|exact H].
Qed.
Lemma all_add plan f g h : all plan (fun h => f h + g h) h = all plan f h + all plan g h.
Proof.
  revert h. induction plan as [|r plan IH]; intros h; simpl; [reflexivity|]. rewrite <- go_add. f_equal.
  apply functional_extensionality. exact IH.
Qed.
Lemma all_zero plan h : all plan (fun _ => 0) h = 0.
Proof.
  revert h. induction plan as [|r plan IH]; intros h; simpl; [reflexivity|].
  replace (all plan (fun _ => 0)) with (fun _ : seen => 0); [apply go_zero|]. apply functional_extensionality. intros h'. now rewrite IH.
Qed.
(* Whoever cannot win on average at a choice does not at a plan. *)
Lemma all_fair ev plan (W : seen -> R) : (forall r, In r plan -> proper M theta ev false r) ->
  (forall c h, rsum (law M theta c) (results M c) = 1 -> rsum (fun o => law M theta c o * W ((c, o) :: h)) (results M c) <= W h) ->
  forall h, all plan W h <= W h.
Proof.
  intros S H. assert (G : forall r had, proper M theta ev had r -> forall h, go r W h <= W h).
  { induction r as [|c k IH|p a IHa b IHb]; intros had Sr h; simpl in *; [lra| |].
    - destruct Sr as (L1 & _ & Sr). eapply Rle_trans; [|apply (H c h L1)]. apply rsum_le. intros o _.
      apply Rmult_le_compat_l; [now apply law_pos_all|]. eapply IH; eauto.
    - destruct Sr as (Hp & Sa & Sb). pose proof (IHa _ Sa h). pose proof (IHb _ Sb h). nra. }
  induction plan as [|r plan IH]; intros h; simpl; [lra|].
  eapply Rle_trans; [|apply (G r false); apply S; simpl; auto].
  apply (go_le ev r false); [apply S; simpl; auto|]. apply IH. intros; apply S; simpl; auto.
Qed.

Section One.
Variable ev : event.
Hypothesis OK : event_ok M ev = true.
Notation p := (poly_at theta (about ev)).
Definition chance_of (b : bool) : R := if b then p else 1 - p.
Definition of_counts (b : bool) (psi : nat -> nat -> R) (h : seen) : R := psi (wins b ev h) (wins (negb b) ev h).

Lemma quiet b psi r : proper M theta ev true r -> forall h, go r (of_counts b psi) h = of_counts b psi h.
Proof.
  induction r as [|c k IH|q x IHx y IHy]; intros S h; simpl in *; [reflexivity| |].
  - destruct S as (L1 & Hc & S). simpl in Hc. rewrite is_trial_finds in Hc.
    rewrite (rsum_ext _ (fun o => of_counts b psi h * law M theta c o)); [rewrite rsum_scal, L1; lra|].
    intros o _. rewrite IH by (apply S). unfold of_counts. simpl wins. unfold hit.
    destruct (finds ev c); [discriminate|]. simpl. lra.
  - destruct S as (_ & Sx & Sy). rewrite IHx, IHy by assumption. lra.
Qed.
(* The probability that a run meets a trial. *)
Fixpoint meets (r : run) : R :=
  match r with
  | Stop => 0
  | Try c k => if is_trial ev c then 1 else rsum (fun o => law M theta c o * meets (k o)) (results M c)
  | Toss q x y => q * meets x + (1 - q) * meets y
  end.
Lemma meets_range r : proper M theta ev false r -> 0 <= meets r <= 1.
Proof.
  induction r as [|c k IH|q x IHx y IHy]; intros S; simpl in *; [lra| |].
  - destruct S as (L1 & _ & S). destruct (is_trial ev c); [lra|]. split.
    + rewrite <- (rsum_zero (fun _ : nat => 0) (results M c)) by reflexivity. apply rsum_le. intros o _.
      apply Rmult_le_pos; [now apply law_pos_all|]. now apply IH.
    + rewrite <- L1. apply rsum_le. intros o _. rewrite <- (Rmult_1_r (law M theta c o)) at 2.
      apply Rmult_le_compat_l; [now apply law_pos_all|]. now apply IH.
  - destruct S as (Hq & Sx & Sy). specialize (IHx Sx). specialize (IHy Sy). nra.
Qed.
Lemma run_counts b psi r : proper M theta ev false r -> forall h,
  go r (of_counts b psi) h = (1 - meets r) * of_counts b psi h +
    meets r * (chance_of b * of_counts b (fun x => psi (S x)) h + (1 - chance_of b) * of_counts b (fun x y => psi x (S y)) h).
Proof.
  induction r as [|c k IH|q x IHx y IHy]; intros S h; simpl in *; [lra| |].
  - destruct S as (L1 & _ & S). rewrite is_trial_finds in *. destruct (finds ev c) as [t|] eqn:F.
    + pose proof F as F'. unfold finds in F'. apply find_some in F'. destruct F' as [Ht Hsame]. apply same_eq in Hsame.
      destruct (trial_true M theta ev T OK t Ht) as (ch & Hs & E & HL & S1 & S0). apply Nat.ltb_lt in Hs.
      set (v1 := of_counts b (fun x => psi (Datatypes.S x)) h). set (v0 := of_counts b (fun x y => psi x (Datatypes.S y)) h).
      set (w1 := if b then v1 else v0). set (w0 := if b then v0 else v1).
      assert (R1 : rsum (fun o => law M theta c o * go (k o) (of_counts b psi) ((c, o) :: h)) (results M c) = w1 * p + w0 * (1 - p)).
      { rewrite (rsum_ext _ (fun o => law M theta c o * of_counts b psi ((c, o) :: h))) by (intros o _; now rewrite (quiet b psi (k o) (S o))).
        clear S. subst c. unfold results, law, label, place. simpl fst. simpl snd. rewrite E, Hs. rewrite <- S0, <- S1, <- outcome_sum by exact HL.
        apply rsum_ext. intros o Ho. apply in_seq in Ho. f_equal; [now destruct (nth_error (outcomes ch) o)|].
        unfold of_counts. simpl wins. unfold hit. unfold place in F. rewrite F.
        destruct (nth_error (hits t) o) as [y|] eqn:Ey; [|apply nth_error_None in Ey; lia].
        unfold w1, w0, v1, v0, of_counts. destruct b, y; simpl one; simpl plus; reflexivity. }
      rewrite R1. unfold w1, w0, chance_of. destruct b; lra.
    + set (A := of_counts b psi h) in *. set (B := chance_of b * of_counts b (fun x => psi (Datatypes.S x)) h +
        (1 - chance_of b) * of_counts b (fun x y => psi x (Datatypes.S y)) h).
      assert (Same : forall psi' o, of_counts b psi' ((c, o) :: h) = of_counts b psi' h)
        by (intros; unfold of_counts; simpl wins; unfold hit; rewrite F; reflexivity).
      rewrite (rsum_ext _ (fun o => A * law M theta c o + (B - A) * (law M theta c o * meets (k o)))).
      * rewrite rsum_add, !rsum_scal, L1. lra.
      * intros o _. rewrite (IH o (S o)), !Same. fold A. unfold B. lra.
  - destruct S as (_ & Sx & Sy). rewrite IHx, IHy by assumption. lra.
Qed.
Lemma plan_counts b psi plan : (forall r, In r plan -> proper M theta ev false r) -> forall h,
  all plan (of_counts b psi) h =
  blend (map meets plan) 0 (fun n => binomial (chance_of b) n (fun x => psi (x + wins b ev h)%nat (n - x + wins (negb b) ev h)%nat)).
Proof.
  induction plan as [|r plan IH]; intros S h; [reflexivity|].
  specialize (IH ltac:(intros; apply S; simpl; auto)). simpl.
  set (Psi := fun a a' => blend (map meets plan) 0 (fun n => binomial (chance_of b) n (fun x => psi (x + a)%nat (n - x + a')%nat))).
  replace (all plan (of_counts b psi)) with (of_counts b Psi) by (apply functional_extensionality; intros h'; now rewrite IH).
  rewrite run_counts by (apply S; simpl; auto). unfold of_counts.
  rewrite (blend_step (chance_of b) (map meets plan) _
    (fun n => binomial (chance_of b) n (fun x => psi (x + Datatypes.S (wins b ev h))%nat (n - x + wins (negb b) ev h)%nat))
    (fun n => binomial (chance_of b) n (fun x => psi (x + wins b ev h)%nat (n - x + Datatypes.S (wins (negb b) ev h))%nat))).
  - reflexivity.
  - intros n. cbn [binomial]. f_equal; f_equal; apply binomial_upto; intros x Hx; f_equal; lia.
Qed.

Definition unlikely (lv : R) (b : bool) (k m : nat) : R := if Rle_dec (tail (chance_of b) (k + m) k) lv then 1 else 0.
Lemma seldom lv b plan : 0 <= lv -> (forall r, In r plan -> proper M theta ev false r) ->
  all plan (fun h => unlikely lv b (wins b ev h) (wins (negb b) ev h)) [] <= lv.
Proof.
  intros Hl S. change (all plan (of_counts b (unlikely lv b)) [] <= lv). rewrite plan_counts by exact S. simpl wins.
  assert (Hc : 0 <= chance_of b <= 1) by (pose proof (event_range M theta ev T OK); unfold chance_of; destruct b; lra).
  apply blend_le.
  - intros v Hv. apply in_map_iff in Hv. destruct Hv as (r & <- & Hr). apply meets_range. now apply S.
  - intros n. rewrite (binomial_upto _ n _ (fun x => if (if Rle_dec (tail (chance_of b) n x) lv then true else false) then 1 else 0)).
    + apply rarely; [exact Hc|exact Hl|]. intros k. destruct (Rle_dec _ lv); [auto|discriminate].
    + intros x Hx. unfold unlikely. replace (x + 0 + (n - x + 0))%nat with n by lia. rewrite Nat.add_0_r.
      destruct (Rle_dec (tail (chance_of b) n x) lv); reflexivity.
Qed.
End One.

Lemma all_sum plan (F : nat -> seen -> R) lv l : (forall g, In g l -> all plan (F g) [] <= lv) ->
  all plan (fun h => rsum (fun g => F g h) l) [] <= INR (length l) * lv.
Proof.
  induction l as [|g l IH]; intros H; [simpl rsum; rewrite all_zero; simpl; lra|].
  simpl rsum. rewrite all_add. simpl length. rewrite S_INR. specialize (IH ltac:(intros; apply H; simpl; auto)).
  pose proof (H g (or_introl eq_refl)). lra.
Qed.
End Plan.

(* When the plan is carried out, a certificate is accepted whose claim is not true with probability at most d1 + d2. *)
(* BELIEVED *)
Theorem fixed_sound (M : model) (N : nat) (evs : nat -> event) (theta : nat -> R) (d1 d2 : Q) (E : nat) (prior : list (nat * Q))
    (predict : nat -> (nat -> nat -> nat) -> list Q) (number : seen -> nat)
    (plan : list run) (maker : seen -> cert) (us : seen -> nat -> list Q * list Q) (wrong : seen -> bool) :
  instance M theta -> 0 <= Q2R d1 -> 0 <= Q2R d2 -> (forall a h, (number h <= number (a :: h))%nat) ->
  (forall g r, In r plan -> proper M theta (evs g) false r) ->
  (forall h, wrong h = true ->
     accept_fixed M N evs (counts_of h) d1 E prior predict (S (number h)) (met (label M) number h) d2 (maker h) (us h) = true /\
     ~ claim_true M theta (maker h)) ->
  carried_out M theta plan (fun h => if wrong h then 1 else 0) [] <= Q2R d1 + Q2R d2.
(* END *)
Proof.
  intros T D D2 Mono S HW.
  assert (Parts : forall h, wrong h = true -> 0 < Q2R (level (maker h)) /\ 2 * INR N * Q2R (level (maker h)) <= Q2R d1 /\
    (forall g, (g < N)%nat -> event_ok M (evs g) = true) /\
    (forall g, (g < N)%nat -> event_fixed evs (maker h) (us h) (counts_of h) g = true) /\
    exists known, likely M E prior predict (maker h) (Datatypes.S (number h)) (met (label M) number h) d2 = Some known /\
      shown M N evs (tangent M (maker h) known) no_stakes (maker h) = true).
  { intros h Hh. destruct (HW h Hh) as [A _]. unfold accept_fixed in A. apply andb_prop in A. destruct A as [A A5].
    apply andb_prop in A. destruct A as [A A4]. apply andb_prop in A. destruct A as [A A3].
    apply andb_prop in A. destruct A as [A1 A2]. apply Qltb_R in A1. rewrite Q2R_0 in A1.
    apply Qle_bool_R in A2. rewrite !Q2R_mult, qnat_R in A2. replace (Q2R 2) with 2 in A2 by (unfold Q2R; simpl; lra).
    repeat split; auto.
    - intros g Hg. apply (below_spec _ _ A3 g Hg).
    - intros g Hg. apply (below_spec _ _ A4 g Hg).
    - destruct (likely _ _ _ _ _ _ _ _) as [known|]; [|discriminate]. eauto. }
  set (lv := if Nat.eq_dec N 0 then 0 else Q2R d1 / (2 * INR N)).
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
  set (W := fun h => if Rlt_dec 0 (Q2R d2) then Q2R d2 * riches M theta E prior predict number (Q2R d2) h else 0).
  assert (Wpos : forall h, 0 <= W h).
  { intros h. unfold W. destruct (Rlt_dec 0 (Q2R d2)) as [DP|]; [|lra]. apply Rmult_le_pos; [lra|now apply riches_pos]. }
  assert (S0 : forall r, In r plan -> proper M theta (evs N) false r) by (intros; now apply S).
  apply Rle_trans with (carried_out M theta plan (fun h => rsum (fun g => F g h) (seq 0 N) + W h) []).
  - apply (all_le M theta T (evs N)); [exact S0|]. intros h. destruct (wrong h) eqn:Hh; [|pose proof (Spos h (seq 0 N)); pose proof (Wpos h); lra].
    destruct (Parts h Hh) as (L0 & L1 & EO & EP & known & Lk & PR). destruct (HW h Hh) as [_ NT].
    assert (One : forall g, (g < N)%nat -> 1 <= F g h -> 1 <= rsum (fun g => F g h) (seq 0 N)).
    { intros g Hg H1. assert (A : forall l, In g l -> 1 <= rsum (fun g => F g h) l).
      { induction l as [|g' l IHl]; intros []; simpl.
        - subst g'. pose proof (Spos h l). lra.
        - specialize (IHl H). pose proof (Fpos g' h). lra. }
      apply A. apply in_seq. lia. }
    destruct (Rle_lt_dec 1 (rsum (fun g => F g h) (seq 0 N) + W h)) as [|Less]; [assumption|exfalso]. apply NT.
    apply (shown_true M theta T N evs (tangent M (maker h) known) no_stakes (maker h) PR).
    { pose proof (Spos h (seq 0 N)) as SP. unfold W in Less. destruct (Rlt_dec 0 (Q2R d2)) as [DP|DP].
      - apply (poor_is_right M theta E prior predict number (Q2R d2) T Mono DP (maker h) h d2 known Lk eq_refl). lra.
      - apply (nothing_is_right M theta E prior predict number (maker h) h d2 known Lk). lra. }
    { intros m box w p _. discriminate. }
    intros g Hg.
    assert (Lv : Q2R (level (maker h)) <= lv).
    { unfold lv. destruct (Nat.eq_dec N 0); [lia|]. assert (0 < INR N) by (apply lt_0_INR; lia).
      apply (Rmult_le_reg_l (2 * INR N)); [lra|]. replace (2 * INR N * (Q2R d1 / (2 * INR N))) with (Q2R d1) by (field; lra). lra. }
    pose proof (EO g Hg) as Og. pose proof (EP g Hg) as Pg. pose proof (event_range M theta (evs g) T Og) as PR01.
    assert (Hr : (match trials (evs g) with [] => true | t :: l' => rising (place t) l' end) = true).
    { pose proof Og as Q. unfold event_ok in Q. apply andb_prop in Q. destruct Q as [Q _]. now destruct (trials (evs g)). }
    unfold event_fixed in Pg. rewrite !(tally_wins _ (evs g) h Hr) in Pg.
    destruct (parts (maker h) (elow (maker h) g)) as [a b]. destruct (parts (maker h) (1 - ehigh (maker h) g)) as [a' b'].
    apply andb_prop in Pg. destruct Pg as [E1 E2].
    assert (NF : ~ 1 <= F g h) by (intros K; specialize (One g Hg K); pose proof (Wpos h); lra).
    unfold F in NF. rewrite Og in NF. unfold unlikely, chance_of in NF.
    split; apply Rnot_lt_le; intros B; apply NF.
    + pose proof (tail_sound _ _ _ _ _ _ _ _ E1 (proj1 PR01) B) as K.
      destruct (Rle_dec (tail (poly_at theta (about (evs g))) _ _) lv) as [|Z]; [|exfalso; apply Z; lra].
      destruct (Rle_dec _ lv); lra.
    + assert (B' : 1 - poly_at theta (about (evs g)) < Q2R (1 - ehigh (maker h) g)) by (rewrite Q2R_minus, Q2R_1; lra).
      pose proof (tail_sound _ _ _ _ _ _ _ (1 - poly_at theta (about (evs g))) E2 ltac:(lra) B') as K.
      destruct (Rle_dec (tail (1 - poly_at theta (about (evs g))) _ _) lv) as [|Z]; [|exfalso; apply Z; lra].
      destruct (Rle_dec _ lv); lra.
  - rewrite (all_add M theta). apply Rplus_le_compat.
    + apply Rle_trans with (INR N * (2 * lv)).
      2: { unfold lv. destruct (Nat.eq_dec N 0) as [->|N0]; [simpl; lra|]. right. field. now apply not_0_INR. }
      replace (INR N) with (INR (length (seq 0 N))) by now rewrite seq_length.
      apply (all_sum M theta plan F (2 * lv)). intros g Hg. apply in_seq in Hg.
      unfold F. destruct (event_ok M (evs g)) eqn:Og; [|rewrite all_zero; lra].
      rewrite (all_add M theta plan (fun h => unlikely theta (evs g) lv true (wins true (evs g) h) (wins false (evs g) h))).
      assert (Sg : forall r, In r plan -> proper M theta (evs g) false r) by (intros; now apply S).
      pose proof (seldom M theta T (evs g) Og lv true plan Hlv Sg) as S1. pose proof (seldom M theta T (evs g) Og lv false plan Hlv Sg) as S2.
      simpl negb in S1, S2. lra.
    + eapply Rle_trans; [apply (all_fair M theta T (evs N) plan W S0)|].
      * intros c h L1. unfold W. destruct (Rlt_dec 0 (Q2R d2)) as [DP|].
        -- rewrite (rsum_ext _ (fun o => Q2R d2 * (law M theta c o * riches M theta E prior predict number (Q2R d2) ((c, o) :: h)))) by (intros; lra).
           rewrite rsum_scal. apply Rmult_le_compat_l; [lra|]. now apply riches_fair.
        -- rewrite rsum_zero; [lra|]. intros; lra.
      * unfold W. destruct (Rlt_dec 0 (Q2R d2)); [rewrite riches_0|]; lra.
Qed.
