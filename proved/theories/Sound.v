(* What the checker of values accepts is so. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Problem Basics Stationary Sums Rewards Averages Value.
Import ListNotations.
Open Scope R_scope.

Ltac split_andb H :=
  repeat match type of H with andb _ _ = true => let H' := fresh H in apply andb_prop in H; destruct H as [H H'] end.

(* ---------- The bounds, in one game ---------- *)

Notation worth_low p b := (worth p (fun f m => low_means p f m b)).
Notation worth_high p b := (worth p (fun f m => high_means p f m b)).
(* What the numbers of hints must be: bounds of the means that one step compares. *)
Definition these (K j : nat) (h : hist) : Prop := Nat.min (length h) K = j.
Definition supported_low (G : game) (K : nat) (n : hist -> nat -> nat -> nat -> R) (hs : hints) : Prop :=
  forall j, known_low G n (these K j) (x hs (Nat.min (S j) K)) (lam hs j).
Definition supported_high (G : game) (K : nat) (n : hist -> nat -> nat -> nat -> R) (hs : hints) : Prop :=
  forall j, known_high G n (these K j) (x hs (Nat.min (S j) K)) (lam hs j).
Lemma known_late_low G K n hs : supported_low G K n hs -> known_low G n (late K) (x hs K) (lam hs K).
Proof.
  intros Sp h s i c b Hl. specialize (Sp K h s i c b). rewrite Nat.min_r in Sp by lia. apply Sp.
  unfold these, late in *. lia.
Qed.
Lemma known_late_high G K n hs : supported_high G K n hs -> known_high G n (late K) (x hs K) (lam hs K).
Proof.
  intros Sp h s i c b Hl. specialize (Sp K h s i c b). rewrite Nat.min_r in Sp by lia. apply Sp.
  unfold these, late in *. lia.
Qed.
Lemma alone_low G K n hs : supported_low G K n (alone hs).
Proof. intros j h s i c b _ _ _ _. simpl. destruct (lam hs j s i); discriminate. Qed.
Lemma alone_high G K n hs : supported_high G K n (alone hs).
Proof. intros j h s i c b _ _ _ _. simpl. destruct (lam hs j s i); discriminate. Qed.

Section Core.
Variables (p : problem) (G : game) (pol : nat -> nat -> rule) (P : play) (hs : hints).
Notation K := (horizon p).
Hypothesis (LA : legal_agent G pol (agent P)) (LN : legal_nature G (nature P)).
Hypothesis St : forall j s, (K <= j)%nat ->
  choices_of G j s = choices_of G K s /\ ends G j s = ends G K s /\ pol j s = pol K s.
Hypothesis W : forall j s c e, (s < size G)%nat -> In c (choices_of G j s) -> In e (edges c) -> (next e < size G)%nat.
Hypothesis (WP : well_posed p = true) (SG : size G = states p) (EG : ends G = ends_of p) (DG : discount G = factor p).

Lemma factor_range : 0 <= Q2R (discount G) <= 1.
Proof.
  rewrite DG. pose proof WP as H. unfold well_posed in H. apply andb_prop in H. destruct H as [_ H].
  destruct (kind_of p); split_andb H; try (apply Qeq_bool_eq, Qeq_eqR in H0; rewrite H0, Q2R_1; lra);
    try (apply Qeq_bool_eq, Qeq_eqR in H1; rewrite H1, Q2R_1; lra).
  apply Qltb_R in H0, H1. rewrite Q2R_0 in H1. rewrite Q2R_1 in H0. lra.
Qed.
Lemma factor_one : kind_of p <> Discounted -> Q2R (discount G) = 1.
Proof.
  intros N. rewrite DG. pose proof WP as H. unfold well_posed in H. apply andb_prop in H. destruct H as [_ H].
  rewrite <- Q2R_1.
  destruct (kind_of p); split_andb H; try congruence; apply Qeq_eqR, Qeq_bool_eq; assumption.
Qed.
Lemma factor_less : kind_of p = Discounted -> Q2R (discount G) < 1.
Proof.
  intros N. rewrite DG. pose proof WP as H. unfold well_posed in H. apply andb_prop in H. destruct H as [_ H].
  rewrite N in H. split_andb H. apply Qltb_R in H0. now rewrite Q2R_1 in H0.
Qed.
Lemma no_first : kind_of p = Reach_reward \/ kind_of p = Average -> first p = 0%nat.
Proof.
  intros HK. pose proof WP as H. unfold well_posed in H.
  destruct HK as [HK|HK]; rewrite HK in H; apply andb_prop in H; destruct H as [_ H];
    apply andb_prop in H; destruct H as [H _]; apply andb_prop in H; destruct H as [_ H]; now apply Nat.eqb_eq.
Qed.
Lemma initial_is : (initial p < size G)%nat.
Proof. rewrite SG. pose proof WP as H. unfold well_posed in H. apply andb_prop in H. now apply Nat.ltb_lt. Qed.

Lemma mean_plus h s (r : choice -> R) (f g : nat -> nat -> R) B :
  mean G P h s r (fun i t => f i t + B * g i t) = mean G P h s r f + B * mean G P h s (fun _ => 0) g.
Proof. rewrite <- mean_lin. apply mean_ext; intros; lra. Qed.

Lemma mean_one h s : (s < size G)%nat -> ends G (length h) s = None -> mean G P h s (fun _ => 0) (fun _ _ => 1) = 1.
Proof.
  intros Hs Hb. apply Rle_antisym; [apply (mean_at_most G pol P LA)|apply (mean_ge G pol P LA)]; auto; intros i c Hi _;
    rewrite Rplus_0_l, (sumi_ext _ (fun j _ => nature P h s i j)) by (intros; simpl; lra);
    destruct (LN h s Hs Hb i c Hi) as [_ ->]; lra.
Qed.

(* Backwards through the steps, losing nothing. *)
Lemma steps_low eps k : supported_low G K (nature P) hs -> (k <= K)%nat -> forall n, 0 <= eps -> steps Qle_bool low_term G pol hs k = true ->
  (forall h s, length h = k -> (s < size G)%nat -> Q2R (x hs k s) - eps <= value G P n h s) ->
  forall s, (s < size G)%nat -> Q2R (x hs 0 s) - eps <= value G P (k + n) [] s.
Proof.
  intros Sp. induction k as [|k IH]; intros Hk n He C B s Hs; [now apply B|].
  simpl in C. apply andb_prop in C. destruct C as [C1 C2].
  replace (S k + n)%nat with (k + S n)%nat by lia. apply IH; [lia|exact He|exact C2| |exact Hs]. clear s Hs. intros h s Hh Hs.
  pose proof (below_spec _ _ C1 s Hs) as D. unfold step_at in D. simpl value. subst k.
  destruct (ends G (length h) s) as [b|] eqn:Hb; [apply Qle_bool_R in D; lra|].
  pose proof factor_range as F.
  assert (Kn : known_low G (nature P) (these K (length h)) (x hs (S (length h))) (lam hs (length h))).
  { pose proof (Sp (length h)) as Kn. now rewrite Nat.min_l in Kn by lia. }
  pose proof (step_low G pol P LA LN (proj1 F) (these K (length h)) h s (x hs (length h) s) (x hs (S (length h))) (lam hs (length h))
    ltac:(unfold these; lia) Kn Hs Hb D) as E.
  apply Rle_trans with (mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (discount G) * Q2R (x hs (S (length h)) t)) - eps); [lra|].
  apply Rle_trans with (mean G P h s (fun c => Q2R (reward c))
    (fun i t => Q2R (discount G) * value G P n ((s, i) :: h) t + eps * 1) - eps).
  - apply Rplus_le_compat_r. apply (mean_mono G pol P LA LN); auto. intros i c j e Hi U Hj. right.
    assert (Ht : (next e < size G)%nat) by (apply (W (length h) s c e Hs); eapply nth_error_In; eauto).
    specialize (B ((s, i) :: h) (next e) ltac:(simpl; lia) Ht). nra.
  - rewrite mean_plus, mean_one by assumption. lra.
Qed.

Lemma steps_high eps k : supported_high G K (nature P) hs -> (k <= K)%nat -> forall n, 0 <= eps -> steps geb high_term G pol hs k = true ->
  (forall h s, length h = k -> (s < size G)%nat -> value G P n h s <= Q2R (x hs k s) + eps) ->
  forall s, (s < size G)%nat -> value G P (k + n) [] s <= Q2R (x hs 0 s) + eps.
Proof.
  intros Sp. induction k as [|k IH]; intros Hk n He C B s Hs; [now apply B|].
  simpl in C. apply andb_prop in C. destruct C as [C1 C2].
  replace (S k + n)%nat with (k + S n)%nat by lia. apply IH; [lia|exact He|exact C2| |exact Hs]. clear s Hs. intros h s Hh Hs.
  pose proof (below_spec _ _ C1 s Hs) as D. unfold step_at in D. simpl value. subst k.
  destruct (ends G (length h) s) as [b|] eqn:Hb; [apply Qle_bool_R in D; lra|].
  pose proof factor_range as F.
  assert (Kn : known_high G (nature P) (these K (length h)) (x hs (S (length h))) (lam hs (length h))).
  { pose proof (Sp (length h)) as Kn. now rewrite Nat.min_l in Kn by lia. }
  pose proof (step_high G pol P LA LN (proj1 F) (these K (length h)) h s (x hs (length h) s) (x hs (S (length h))) (lam hs (length h))
    ltac:(unfold these; lia) Kn Hs Hb D) as E.
  apply Rle_trans with (mean G P h s (fun c => Q2R (reward c))
    (fun i t => Q2R (discount G) * Q2R (x hs (S (length h)) t) + eps * 1)).
  - apply (mean_mono G pol P LA LN); auto. intros i c j e Hi U Hj. right.
    assert (Ht : (next e < size G)%nat) by (apply (W (length h) s c e Hs); eapply nth_error_In; eauto).
    specialize (B ((s, i) :: h) (next e) ltac:(simpl; lia) Ht). nra.
  - rewrite (mean_plus h s _ (fun _ t => Q2R (discount G) * Q2R (x hs (S (length h)) t)) (fun _ _ => 1)), mean_one by assumption. lra.
Qed.

Let WK : forall s c e, (s < size G)%nat -> In c (choices_of G K s) -> In e (edges c) -> (next e < size G)%nat :=
  fun s c e => W K s c e.

Notation f := (fun k => value G P k [] (initial p)).
Notation m := (fun k => missed G P k [] (initial p)).

Lemma eventually_low : supported_low G K (nature P) hs -> check_low p G pol hs = true -> last p = None ->
  (forall eps, 0 < eps -> exists k1, forall k h s, (k1 <= k)%nat -> (K <= length h)%nat -> (s < size G)%nat ->
     Q2R (x hs K s) - eps <= value G P k h s) -> at_least f (Some (x hs 0 (initial p))).
Proof.
  intros Sp C HL H eps He. destruct (H eps He) as (k1 & H1). exists (K + k1)%nat. intros k Hk.
  replace k with (K + (k - K))%nat by lia. unfold check_low in C. apply andb_prop in C. destruct C as [_ C].
  apply steps_low; [exact Sp|lia|lra|exact C| |apply initial_is]. intros h s Hh Hs. apply H1; [lia|lia|exact Hs].
Qed.

Lemma core_low : supported_low G K (nature P) hs -> check_low p G pol hs = true -> low_means p f m (Some (x hs 0 (initial p))).
Proof.
  intros Sp C. pose proof (known_late_low _ _ _ _ Sp) as Kn. pose proof C as C'. unfold check_low in C'. split_andb C'. unfold low_means.
  pose proof (below_spec _ _ C'1) as B. unfold base_low in B.
  destruct (last p) as [k|] eqn:HL.
  - assert (HK : K = k) by (unfold horizon; now rewrite HL).
    pose proof (steps_low 0 K Sp (le_n K) 0 (Rle_refl 0) C'0) as T. rewrite HK, Nat.add_0_r in T.
    specialize (T ltac:(intros h s Hh Hs; specialize (B s Hs); rewrite HK in B; simpl; rewrite Hh;
      destruct (ends G k s); apply Qle_bool_R in B; rewrite ?Q2R_0 in B; lra) (initial p) initial_is). lra.
  - pose proof (eventually_low Sp C HL) as EL. pose proof factor_range as FR.
    destruct (kind_of p) eqn:HK.
    + apply EL. intros eps He. apply (sum_low G pol P K LA LN St WK (factor_one ltac:(congruence))
        (x hs K) (endless hs) (rank hs) (layer hs) (lam hs K) B Kn eps He).
    + discriminate (B (initial p) initial_is).
    + intros V. destruct (reach_low G pol P K LA LN St WK (factor_one ltac:(congruence))
        (x hs K) (endless hs) (rank hs) (lam hs K) B Kn) as (X & X0 & T).
      assert (K0 : K = 0%nat).
      { unfold horizon. rewrite HL. apply no_first; now left. }
      intros eps He. destruct (V (eps / (X + 1))) as (k0 & V0); [apply Rdiv_lt_0_compat; lra|].
      exists k0. intros k Hk. specialize (V0 k Hk). specialize (T k [] (initial p)).
      rewrite K0 in T. specialize (T ltac:(unfold late; simpl; lia) initial_is).
      assert (X * missed G P k [] (initial p) <= eps); [|lra].
      assert (MB : 0 <= missed G P k [] (initial p)).
      { apply (missed_bounds G pol P K LA LN St WK k [] (initial p)); [unfold late; rewrite K0; simpl; lia|apply initial_is]. }
      assert (E : eps / (X + 1) * (X + 1) = eps) by (field; lra). nra.
    + discriminate (B (initial p) initial_is).
    + apply EL. intros eps He. apply (sum_low G pol P K LA LN St WK (factor_one ltac:(congruence))
        (x hs K) (endless hs) (rank hs) (layer hs) (lam hs K) B Kn eps He).
    + apply EL. intros eps He. apply (disc_low G pol P K LA LN St WK (proj1 FR) (factor_less HK) (x hs K) (lam hs K) Kn B eps He).
    + assert (K0 : K = 0%nat) by (unfold horizon; rewrite HL; apply no_first; now right).
      rewrite K0 in *. intros eps He.
      destruct (average_low G pol P 0 LA LN St (fun s c e => W 0 s c e) (factor_one ltac:(congruence)) (x hs 0) (bias hs) (lam hs 0) (lam' hs) B Kn eps He)
        as (k0 & H0). exists k0. intros k Hk. apply H0; [exact Hk|unfold late; simpl; lia|apply initial_is].
Qed.

Lemma core_endless b : supported_low G K (nature P) hs -> check_low p G pol hs = true -> may_be_endless p = true ->
  unending (ends_of p 0) (endless hs) (initial p) = true -> low_means p f m b.
Proof.
  intros Sp C ME U. pose proof (known_late_low _ _ _ _ Sp) as Kn. unfold check_low in C. split_andb C. pose proof (below_spec _ _ C1) as B. unfold base_low in B.
  unfold may_be_endless in ME. unfold low_means. destruct (last p) eqn:HL; [discriminate|].
  destruct (horizon p) eqn:K0 in ME; [|discriminate]. rewrite <- EG in U. rewrite K0 in *.
  assert (Fin : (forall N, exists k0, forall k, (k0 <= k)%nat -> N <= f k) -> at_least f b).
  { intros H. destruct b as [b|]; [|exact H]. intros eps He. destruct (H (Q2R b)) as (k0 & H0). exists k0.
    intros k Hk. specialize (H0 k Hk). simpl in H0. lra. }

  pose proof WK as WK'. try rewrite K0 in WK'.
  destruct (kind_of p) eqn:HK; try (discriminate (B (initial p) initial_is)); try discriminate ME.
  1,3: apply Fin; intros N;
    destruct (infinite_low G pol P 0 LA LN St WK' (factor_one ltac:(congruence)) (x hs 0) (endless hs) (rank hs) (layer hs)
      (lam hs 0) B N) as (k0 & H0); exists k0; intros k Hk;
    apply H0; [exact Hk|unfold late; simpl; lia|apply initial_is|exact U].
  intros V. exfalso. destruct (really_missed G pol P 0 LA LN St WK' (x hs 0) (endless hs) (rank hs) (lam hs 0) B)
    as (c & Hc & H). destruct (V (c / 2)) as (k0 & H0); [lra|]. specialize (H0 k0 (le_n k0)).
  specialize (H k0 [] (initial p) ltac:(unfold late; simpl; lia) initial_is U). lra.
Qed.

Lemma core_high : supported_high G K (nature P) hs -> check_high p G pol hs = true -> endless hs (initial p) = false ->
  high_means p f m (x hs 0 (initial p)).
Proof.
  intros Sp C EI. pose proof (known_late_high _ _ _ _ Sp) as Kn. unfold check_high in C. split_andb C. unfold high_means.
  pose proof (below_spec _ _ C1) as B. unfold base_high in B.
  destruct (last p) as [k|] eqn:HL.
  - assert (HK : K = k) by (unfold horizon; now rewrite HL).
    pose proof (steps_high 0 K Sp (le_n K) 0 (Rle_refl 0) C0) as T. rewrite HK, Nat.add_0_r in T.
    specialize (T ltac:(intros h s Hh Hs; specialize (B s Hs); rewrite HK in B; simpl; rewrite Hh;
      destruct (ends G k s); apply Qle_bool_R in B; rewrite ?Q2R_0 in B; lra) (initial p) initial_is). lra.
  - pose proof factor_range as FR.
    assert (Late : forall X, (forall eps, 0 < eps -> exists k1, forall k h s, (k1 <= k)%nat -> (K <= length h)%nat ->
       (s < size G)%nat -> endless hs s = false -> X k h s /\ value G P k h s <= Q2R (x hs K s) + eps) ->
       at_most f (x hs 0 (initial p))).
    { intros X H eps He. destruct (H eps He) as (k1 & H1). exists (K + k1)%nat. intros k Hk.
      destruct (horizon p) as [|K'] eqn:EK.
      - apply (H1 k [] (initial p)); [lia|simpl; lia|apply initial_is|exact EI].
      - replace k with (S K' + (k - S K'))%nat by lia.
        pose proof (steps_high eps (S K')) as SH. rewrite EK in SH. apply (SH Sp (le_n _) (k - S K')%nat); [lra|exact C0| |apply initial_is]. clear SH. intros h s Hh Hs.
        apply H1; [lia|lia|exact Hs|].
        unfold no_endless, may_be_endless in C. rewrite HL, EK in C. simpl in C.
        rewrite SG in Hs. pose proof (below_spec _ _ C s Hs) as E. now apply negb_true_iff. }
    destruct (kind_of p) eqn:HK; try (discriminate (B (initial p) initial_is)).
    + apply (Late (fun _ _ _ => True)). intros eps He. exists 0%nat. intros k h s _ Hl Hs Es. split; [exact I|].
      pose proof (sum_high G pol P K LA LN St WK (factor_one ltac:(congruence)) (x hs K) (endless hs) (lam hs K) B Kn k h s Hl Hs Es). lra.
    + assert (K0 : K = 0%nat).
      { unfold horizon. rewrite HL. apply no_first; now left. }
      pose proof (reach_high G pol P K LA LN St WK (factor_one ltac:(congruence)) (x hs K) (endless hs) (rank hs) (lam hs K) B Kn) as RH.
      split.
      * intros eps He. destruct (RH eps He) as (k1 & H1). exists k1. intros k Hk.
        apply (H1 k [] (initial p) Hk); [unfold late; rewrite K0; simpl; lia|apply initial_is|exact EI].
      * apply (Late (fun k h s => True)). intros eps He. destruct (RH eps He) as (k1 & H1). exists k1.
        intros k h s Hk Hl Hs Es. split; [exact I|]. now apply H1.
    + apply (Late (fun _ _ _ => True)). intros eps He. exists 0%nat. intros k h s _ Hl Hs Es. split; [exact I|].
      pose proof (sum_high G pol P K LA LN St WK (factor_one ltac:(congruence)) (x hs K) (endless hs) (lam hs K) B Kn k h s Hl Hs Es). lra.
    + apply (Late (fun _ _ _ => True)). intros eps He.
      destruct (disc_high G pol P K LA LN St WK (proj1 FR) (factor_less HK) (x hs K) (lam hs K) Kn B eps He) as (k1 & H1).
      exists k1. intros k h s Hk Hl Hs _. split; [exact I|now apply H1].
    + assert (K0 : K = 0%nat) by (unfold horizon; rewrite HL; apply no_first; now right).
      rewrite K0 in *. intros eps He.
      destruct (average_high G pol P 0 LA LN St (fun s c e => W 0 s c e) (factor_one ltac:(congruence)) (x hs 0) (bias hs) (lam hs 0) (lam' hs) B Kn eps He)
        as (k0 & H0). exists k0. intros k Hk. apply H0; [exact Hk|unfold late; simpl; lia|apply initial_is].
Qed.
End Core.

(* ---------- From the arena to the game ---------- *)

Section Arena.
Variables (p : problem) (q : question).
Notation K := (horizon p).
Hypothesis PL : playable p q = true.

Lemma posed : well_posed p = true.
Proof. pose proof PL as H. unfold playable in H. now split_andb H. Qed.
Lemma rows_possible s c : (s < states p)%nat -> In c (rows p s) -> possible p c = true.
Proof.
  intros Hs Hc. pose proof PL as H. unfold playable in H. split_andb H.
  pose proof (below_spec _ _ H1 s Hs) as D. simpl in D. rewrite forallb_forall in D. now apply D.
Qed.
Lemma rows_inside s c e : (s < states p)%nat -> In c (rows p s) -> In e (edges c) -> (next e < states p)%nat.
Proof.
  intros Hs Hc He. pose proof (rows_possible s c Hs Hc) as D. unfold possible in D. split_andb D.
  rewrite forallb_forall in D. specialize (D e He). split_andb D. now apply Nat.ltb_lt.
Qed.

Lemma ends_late j s : (K <= j)%nat -> ends_of p j s = ends_of p K s.
Proof.
  intros Hj. unfold ends_of. pose proof posed as H. unfold well_posed in H. apply andb_prop in H. destruct H as [_ H].
  unfold horizon in *. destruct (kind_of p); auto.
  - assert (E : (first p <=? j)%nat = true /\ (first p <=? match last p with Some k => k | None => first p end)%nat = true).
    { destruct (last p) as [k|].
      - apply andb_prop in H. destruct H as [H _]. apply Nat.leb_le in H. split; apply Nat.leb_le; lia.
      - split; apply Nat.leb_le; lia. }
    destruct E as [-> ->]. reflexivity.
  - destruct (last p) as [k|]; [|split_andb H; discriminate].
    split_andb H. apply Nat.eqb_eq in H. subst k.
    replace (1 <=? j)%nat with true by (symmetry; apply Nat.leb_le; lia). reflexivity.
Qed.

Lemma whenever_spec f : whenever p f = true -> forall j s, (s < states p)%nat -> ends_of p j s = None ->
  f (Nat.min j K) s = true.
Proof.
  intros H j s Hs Hb. unfold whenever in H.
  assert (J : (Nat.min j K < S K)%nat) by lia.
  pose proof (below_spec _ _ H (Nat.min j K) J) as D. simpl in D. pose proof (below_spec _ _ D s Hs) as E. simpl in E.
  assert (Hb' : ends_of p (Nat.min j K) s = None).
  { destruct (Nat.le_gt_cases j K) as [L|L]; [now rewrite Nat.min_l|]. rewrite Nat.min_r by lia. now rewrite <- ends_late with (j := j) by lia. }
  now rewrite Hb' in E.
Qed.

Lemma nth_mapi {A B} (f : nat -> A -> B) l : forall k i, nth_error (mapi f k l) i = option_map (f (k + i)%nat) (nth_error l i).
Proof.
  induction l as [|a l IH]; intros k i; destruct i; simpl; try reflexivity; [now rewrite Nat.add_0_r|].
  rewrite IH. now replace (S k + i)%nat with (k + S i)%nat by lia.
Qed.
Lemma sumi_mapi {A B} (g : nat -> A -> B) (f : nat -> B -> R) l : forall k,
  sumi f k (mapi g k l) = sumi (fun i a => f i (g i a)) k l.
Proof. induction l as [|a l IH]; intros k; simpl; [reflexivity|]. now rewrite IH. Qed.
Lemma length_mapi {A B} (g : nat -> A -> B) l : forall k, length (mapi g k l) = length l.
Proof. induction l as [|a l IH]; intros k; simpl; auto. Qed.

Lemma sumi_pin (f : nat -> nat -> R) l : forall k qs,
  sumi (fun j e => f j (next e)) k (pin_edges l qs) = sumi (fun j e => f j (next e)) k l.
Proof.
  induction l as [|e l IH]; intros k qs; simpl; [reflexivity|]. destruct qs; simpl; now rewrite IH.
Qed.
Lemma nth_pin l : forall qs j e, nth_error (pin_edges l qs) j = Some e ->
  exists e', nth_error l j = Some e' /\ next e = next e' /\ lo e = nth j qs 0%Q /\ hi e = nth j qs 0%Q.
Proof.
  induction l as [|e0 l IH]; intros qs j e H; simpl in H; [destruct j; discriminate|].
  destruct qs as [|a qs].
  - destruct j; simpl in H; [injection H as <-; now exists e0|].
    destruct (IH [] j e H) as (e' & H1 & H2 & H3 & H4). exists e'. repeat split; auto.
    + now rewrite H3; destruct j.
    + now rewrite H4; destruct j.
  - destruct j; simpl in H; [injection H as <-; now exists e0|]. simpl. now apply IH.
Qed.

Section Pinned.
Variable pn : nat -> nat -> nat -> list Q.
Definition keeps (h : hist) (s i j : nat) : R := Q2R (nth j (pn (Nat.min (length h) K) s i) 0%Q).

Lemma mean_pinned P h s r f : (forall c c', reward c = reward c' -> r c = r c') ->
  mean (pinned p pn) P h s r f = mean (game_of p) P h s r f.
Proof.
  intros Hr. unfold mean. simpl. rewrite sumi_mapi. apply sumi_ext. intros i c _. simpl. f_equal. f_equal.
  - now apply Hr.
  - apply (sumi_pin (fun j t => nature P h s i j * f i t)).
Qed.
Lemma value_pinned P k : forall h s, value (pinned p pn) P k h s = value (game_of p) P k h s.
Proof.
  induction k as [|k IH]; intros h s; simpl; destruct (ends_of p (length h) s); auto.
  rewrite mean_pinned by (intros; congruence). apply mean_ext; [reflexivity|]. intros i t. now rewrite IH.
Qed.
Lemma missed_pinned P k : forall h s, missed (pinned p pn) P k h s = missed (game_of p) P k h s.
Proof.
  induction k as [|k IH]; intros h s; simpl; destruct (ends_of p (length h) s); auto.
  rewrite mean_pinned by (intros; congruence). apply mean_ext; [reflexivity|]. intros i t. now rewrite IH.
Qed.
Lemma agent_pinned pol a : legal_agent (game_of p) pol a -> legal_agent (pinned p pn) pol a.
Proof.
  intros L h s Hs Hb. destruct (L h s Hs Hb) as (A0 & A1 & A2). simpl in *. split; [exact A0|]. split; [|exact A2].
  now rewrite sumi_mapi.
Qed.
Lemma pin_spec l : forall qs, is_pin l qs = true -> length l = length qs /\ forall j e, nth_error l j = Some e ->
  0 <= Q2R (nth j qs 0%Q) /\ Q2R (lo e) <= Q2R (nth j qs 0%Q) <= Q2R (hi e).
Proof.
  induction l as [|e0 l IH]; intros qs H; destruct qs as [|a qs]; simpl in H; try discriminate.
  - split; [reflexivity|]. intros j e Hj. destruct j; discriminate.
  - split_andb H. destruct (IH qs H0) as [E F]. split; [simpl; congruence|]. intros j e Hj.
    destruct j; simpl in *; [injection Hj as <-|now apply F].
    apply Qle_bool_R in H, H1, H2. rewrite Q2R_0 in H. lra.
Qed.
Lemma sum_list {A} (l : list A) : forall (qs : list Q) k (g : nat -> R), length l = length qs ->
  (forall j, g (k + j)%nat = Q2R (nth j qs 0%Q)) -> sumi (fun j _ => g j) k l = Q2R (qsum (fun a => a) qs).
Proof.
  induction l as [|a l IH]; intros qs k g E F; destruct qs as [|b qs]; try discriminate; simpl; [now rewrite Q2R_0|].
  rewrite Q2R_plus. specialize (F 0%nat) as F0. rewrite Nat.add_0_r in F0. simpl in F0. rewrite F0. f_equal.
  apply IH; [simpl in E; lia|]. intros j. specialize (F (S j)). now replace (S k + j)%nat with (k + S j)%nat by lia.
Qed.
Lemma nature_pinned : pins p pn = true -> legal_nature (game_of p) keeps /\ legal_nature (pinned p pn) keeps.
Proof.
  intros H. assert (Main : forall h s i c, (s < states p)%nat -> ends_of p (length h) s = None ->
    nth_error (rows p s) i = Some c ->
    is_pin (edges c) (pn (Nat.min (length h) K) s i) = true /\ sumi (fun j _ => keeps h s i j) 0 (edges c) = 1).
  { intros h s i c Hs Hb Hi. pose proof (whenever_spec _ H (length h) s Hs Hb) as D. simpl in D.
    pose proof (foralli_spec _ _ _ D i c Hi) as E. simpl in E. apply andb_prop in E. destruct E as [E1 E2].
    split; [exact E1|]. destruct (pin_spec _ _ E1) as [EL _].
    unfold keeps. rewrite (sum_list (edges c) (pn (Nat.min (length h) K) s i) 0 (fun j => Q2R (nth j (pn (Nat.min (length h) K) s i) 0%Q)) EL).
    - apply Qeq_bool_eq, Qeq_eqR in E2. now rewrite E2, Q2R_1.
    - reflexivity. }
  split; intros h s Hs Hb i c Hi; simpl in *.
  - destruct (Main h s i c Hs Hb Hi) as [M1 M2]. split; [|exact M2]. intros j e Hj. now apply (pin_spec _ _ M1).
  - rewrite nth_mapi in Hi. destruct (nth_error (rows p s) i) as [c'|] eqn:E; [|discriminate]. simpl in Hi. injection Hi as <-.
    destruct (Main h s i c' Hs Hb E) as [M1 M2]. simpl. split.
    + intros j e Hj. destruct (nth_pin _ _ _ _ Hj) as (e' & H1 & _ & -> & ->).
      destruct (pin_spec _ _ M1) as [_ F]. specialize (F j e' H1). unfold keeps. lra.
    + rewrite (sumi_pin (fun j _ => keeps h s i j)). exact M2.
Qed.
End Pinned.

(* Legal plays exist. *)
Lemma point_mass {A} c : forall (l : list A) k, (k <= c < k + length l)%nat ->
  sumi (fun i (_ : A) => if Nat.eqb i c then 1 else 0) k l = 1.
Proof.
  assert (Z : forall (l : list A) k, (c < k)%nat -> sumi (fun i (_ : A) => if Nat.eqb i c then 1 else 0) k l = 0).
  { induction l as [|a l IH]; intros k Hk; simpl; [lra|].
    replace (Nat.eqb k c) with false by (symmetry; apply Nat.eqb_neq; lia). rewrite IH by lia. lra. }
  induction l as [|a l IH]; intros k Hk; simpl in *; [lia|].
  destruct (Nat.eqb k c) eqn:E.
  - apply Nat.eqb_eq in E. rewrite Z by lia. lra.
  - apply Nat.eqb_neq in E. rewrite IH by lia. lra.
Qed.

Definition does (r : rule) (i : nat) : R :=
  match r with
  | Any => if Nat.eqb i 0 then 1 else 0
  | Only k => if Nat.eqb i k then 1 else 0
  | Mix w => Q2R (nth i w 0%Q)
  end.
Lemma does_legal r cs : is_policy r cs = true ->
  (forall i, 0 <= does r i) /\ sumi (fun i _ => does r i) 0 cs = 1 /\ obeys r (does r).
Proof.
  destruct r as [|k|w]; simpl; intros H.
  - apply Nat.ltb_lt in H. split; [intros i; destruct (Nat.eqb i 0); lra|]. split; [apply point_mass; lia|exact I].
  - apply Nat.ltb_lt in H. split; [intros i; destruct (Nat.eqb i k); lra|]. split; [apply point_mass; lia|].
    intros j Hj. now replace (Nat.eqb j k) with false by (symmetry; now apply Nat.eqb_neq).
  - apply andb_prop in H. destruct H as [H1 H2].
    assert (N : forall i, 0 <= Q2R (nth i w 0%Q)).
    { intros i. destruct (nth_in_or_default i w 0%Q) as [E|E]; [|rewrite E, Q2R_0; lra].
      rewrite forallb_forall in H1. specialize (H1 _ E). apply Qle_bool_R in H1. now rewrite Q2R_0 in H1. }
    split; [exact N|]. split; [|reflexivity].
    apply Qeq_bool_eq, Qeq_eqR in H2. rewrite Q2R_1 in H2.
    rewrite (mixed_R (fun i => Q2R (nth i w 0%Q)) N (fun _ _ => 1%Q) cs w 0) in H2 by (intros; now rewrite Nat.sub_0_r).
    rewrite <- H2. apply sumi_ext. intros; simpl. rewrite Q2R_1. lra.
Qed.

Lemma does_policy pol : (forall j s, (s < states p)%nat -> ends_of p j s = None -> is_policy (pol j s) (rows p s) = true) ->
  legal_agent (game_of p) pol (fun h s => does (pol (length h) s)).
Proof. intros H h s Hs Hb. simpl in *. apply does_legal. now apply H. Qed.

Lemma pol_min j s : pol_of p q (Nat.min j K) s = pol_of p q j s.
Proof. unfold pol_of. destruct (policy q); [|reflexivity]. now rewrite <- Nat.min_assoc, Nat.min_id. Qed.

Lemma agents : exists a, legal_agent (game_of p) (pol_of p q) a.
Proof.
  exists (fun h s => does (pol_of p q (length h) s)). apply does_policy. intros j s Hs Hb.
  pose proof PL as H. unfold playable in H. split_andb H.
  pose proof (whenever_spec _ H0 j s Hs Hb) as D. simpl in D. rewrite pol_min in D. now apply andb_prop in D.
Qed.

Definition share (c : choice) : R :=
  let l := Q2R (qsum lo (edges c)) in let u := Q2R (qsum hi (edges c)) in
  if Req_EM_T u l then 0 else (1 - l) / (u - l).
Definition pick (h : hist) (s i j : nat) : R :=
  match nth_error (rows p s) i with
  | Some c => match nth_error (edges c) j with
              | Some e => Q2R (lo e) + share c * (Q2R (hi e) - Q2R (lo e))
              | None => 0 end
  | None => 0 end.
Lemma possible_share c : possible p c = true ->
  0 <= share c <= 1 /\
  Q2R (qsum lo (edges c)) + share c * (Q2R (qsum hi (edges c)) - Q2R (qsum lo (edges c))) = 1.
Proof.
  unfold possible, share. intros H. split_andb H. apply Qle_bool_R in H0, H1. rewrite Q2R_1 in H0, H1.
  set (l := Q2R (qsum lo (edges c))) in *. set (u := Q2R (qsum hi (edges c))) in *.
  destruct (Req_EM_T u l) as [E|E]; [split; lra|].
  assert (D : 0 < u - l) by lra. split; [|field; lra]. split.
  - apply Rmult_le_pos; [lra|]. left. now apply Rinv_0_lt_compat.
  - apply (Rmult_le_reg_r (u - l)); [exact D|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.
Lemma sumi_qsum (f : edge -> Q) l : forall k, sumi (fun _ e => Q2R (f e)) k l = Q2R (qsum f l).
Proof. induction l as [|e l IH]; intros k; simpl; [now rewrite Q2R_0|]. now rewrite IH, Q2R_plus. Qed.
Lemma natures : exists n, legal_nature (game_of p) n.
Proof.
  exists pick. intros h s Hs Hb i c Hi. simpl in *.
  pose proof (rows_possible s c Hs (nth_error_In _ _ Hi)) as D. destruct (possible_share c D) as [Hsh Hsum].
  unfold pick. rewrite Hi. split.
  - intros j e Hj. rewrite Hj. unfold possible in D. split_andb D. rewrite forallb_forall in D.
    specialize (D e (nth_error_In _ _ Hj)). split_andb D. apply Qle_bool_R in D2, D3. rewrite Q2R_0 in D3. nra.
  - rewrite (sumi_ext _ (fun _ e => Q2R (lo e) + share c * (Q2R (hi e) + (-1) * Q2R (lo e)))).
    + rewrite sumi_add, sumi_scal, sumi_add, sumi_scal, !sumi_qsum. lra.
    + intros j e Hj. simpl. rewrite Hj. lra.
Qed.

(* What owners do by the hints is allowed. *)
Lemma agent_owner max hs : owners p q max hs = true -> agent_owns q max = true ->
  exists a, legal_agent (game_of p) (pol_of p q) a /\ legal_agent (game_of p) (rule_for p q max hs) a.
Proof.
  intros O E. unfold owners in O. apply andb_prop in O. destruct O as [O _].
  rewrite E in O. exists (fun h s => does (rule_for p q max hs (length h) s)).
  assert (L : legal_agent (game_of p) (rule_for p q max hs) (fun h s => does (rule_for p q max hs (length h) s))).
  { apply does_policy. intros j s Hs Hb. unfold rule_for. rewrite E. simpl. apply (whenever_spec _ O j s Hs Hb). }
  split; [|exact L]. intros h s Hs Hb. destruct (L h s Hs Hb) as (A0 & A1 & _). split; [exact A0|]. split; [exact A1|].
  unfold agent_owns in E. unfold pol_of. destruct (policy q); [discriminate|exact I].
Qed.
Lemma agent_other max hs a : agent_owns q max = false -> legal_agent (game_of p) (pol_of p q) a ->
  legal_agent (game_of p) (rule_for p q max hs) a.
Proof. intros E L. unfold rule_for. rewrite E. exact L. Qed.

(* What holds in the arena is guaranteed. *)
Lemma settled max hs (worth : play -> Prop) : owners p q max hs = true ->
  (forall a n, legal_agent (arena p q max hs) (rule_for p q max hs) a -> legal_nature (arena p q max hs) n -> worth (Play a n)) ->
  guaranteed p q max worth.
Proof.
  intros O H. unfold guaranteed. split; [exact agents|]. split; [exact natures|].
  fold (agent_owns q max). fold (nature_owns q max).
  pose proof (agent_owner max hs O) as AW. pose proof (agent_other max hs) as AN.
  unfold owners in O. apply andb_prop in O. destruct O as [_ O2].
  unfold arena in H. destruct (nature_owns q max) eqn:EN.
  - destruct (nature_pinned (pin hs) O2) as [N1 N2]. destruct (agent_owns q max) eqn:EA.
    + destruct (AW eq_refl) as (a & L1 & L2). exists a, (keeps (pin hs)). split; [exact L1|]. split; [exact N1|].
      apply H; [now apply agent_pinned|exact N2].
    + exists (keeps (pin hs)). split; [exact N1|]. intros a L. apply H; [apply agent_pinned; now apply AN|exact N2].
  - destruct (agent_owns q max) eqn:EA.
    + destruct (AW eq_refl) as (a & L1 & L2). exists a. split; [exact L1|]. intros n N. now apply H.
    + intros a n L N. apply H; [now apply AN|exact N].
Qed.

Lemma arena_stationary max hs j s : (K <= j)%nat ->
  choices_of (arena p q max hs) j s = choices_of (arena p q max hs) K s /\
  ends (arena p q max hs) j s = ends (arena p q max hs) K s /\ rule_for p q max hs j s = rule_for p q max hs K s.
Proof.
  intros Hj. unfold arena, rule_for, pol_of.
  rewrite (Nat.min_r j K), Nat.min_id by exact Hj.
  destruct (nature_owns q max); simpl; rewrite ?(Nat.min_r j K), ?Nat.min_id by exact Hj;
    (split; [reflexivity|split; [now apply ends_late|reflexivity]]).
Qed.
Lemma arena_inside max hs j s c e : (s < size (arena p q max hs))%nat -> In c (choices_of (arena p q max hs) j s) ->
  In e (edges c) -> (next e < size (arena p q max hs))%nat.
Proof.
  unfold arena. destruct (nature_owns q max); simpl; [|apply rows_inside].
  intros Hs Hc He. apply In_nth_error in Hc. destruct Hc as (i & Hi). rewrite nth_mapi in Hi.
  destruct (nth_error (rows p s) i) as [c'|] eqn:E; [|discriminate]. simpl in Hi. injection Hi as <-.
  simpl in He. apply In_nth_error in He. destruct He as (k & Hk).
  destruct (nth_pin _ _ _ _ Hk) as (e' & H1 & -> & _). apply (rows_inside s c'); auto; eapply nth_error_In; eauto.
Qed.
Lemma arena_size max hs : size (arena p q max hs) = states p. Proof. unfold arena. now destruct (nature_owns q max). Qed.
Lemma arena_ends max hs : ends (arena p q max hs) = ends_of p. Proof. unfold arena. now destruct (nature_owns q max). Qed.
Lemma arena_factor max hs : discount (arena p q max hs) = factor p. Proof. unfold arena. now destruct (nature_owns q max). Qed.
Lemma arena_value max hs P k h s : value (arena p q max hs) P k h s = value (game_of p) P k h s.
Proof. unfold arena. destruct (nature_owns q max); [apply value_pinned|reflexivity]. Qed.
Lemma arena_missed max hs P k h s : missed (arena p q max hs) P k h s = missed (game_of p) P k h s.
Proof. unfold arena. destruct (nature_owns q max); [apply missed_pinned|reflexivity]. Qed.

(* ---------- What holds of all plays ---------- *)

Lemma all_guaranteed max (worth : play -> Prop) : (forall a n, legal_agent (game_of p) (pol_of p q) a -> legal_nature (game_of p) n ->
  worth (Play a n)) -> guaranteed p q max worth.
Proof.
  intros H. destruct agents as (a & La). destruct natures as (n & Ln).
  unfold guaranteed. split; [now exists a|]. split; [now exists n|].
  destruct (match policy q with None => Bool.eqb (agent_max q) max | Some _ => false end),
    (match nature_is q with Some m => Bool.eqb m max | None => false end); auto.
  - exists a, n. auto.
  - exists a. auto.
  - exists n. auto.
Qed.

Lemma never_below a n : never_negative p = true -> legal_agent (game_of p) (pol_of p q) a -> legal_nature (game_of p) n ->
  forall k h s, (s < states p)%nat -> 0 <= value (game_of p) (Play a n) k h s.
Proof.
  intros NN LA LN.
  assert (E : forall j s b, (s < states p)%nat -> ends_of p j s = Some b -> 0 <= Q2R b).
  { intros j s b Hs. unfold ends_of. pose proof (below_spec _ _ NN s Hs) as D. simpl in D. apply andb_prop in D.
    destruct D as [_ D]. destruct (kind_of p); try discriminate.
    - destruct (target p s && _)%bool; [intros [= <-]; rewrite Q2R_1; lra|]. destruct (allowed p s); [discriminate|].
      intros [= <-]. rewrite Q2R_0. lra.
    - destruct (target p s && _)%bool; [intros [= <-]; rewrite Q2R_1; lra|discriminate].
    - destruct (target p s); [|discriminate]. intros [= <-]. apply Qle_bool_R in D. now rewrite Q2R_0 in D. }
  pose proof (factor_range p (game_of p) posed eq_refl) as F.
  induction k as [|k IH]; intros h s Hs; simpl; destruct (ends_of p (length h) s) eqn:Hb; try (now apply (E (length h) s)); [lra|].
  apply (mean_ge (game_of p) (pol_of p q) (Play a n) LA h s _ _ 0 Hs Hb). intros i c Hi _. simpl in Hi.
  pose proof (below_spec _ _ NN s Hs) as D. simpl in D. apply andb_prop in D. destruct D as [D _].
  rewrite forallb_forall in D. specialize (D c (nth_error_In _ _ Hi)). apply Qle_bool_R in D. rewrite Q2R_0 in D.
  apply Rplus_le_le_0_compat; [exact D|]. apply sumi_nonneg. intros j e Hj. simpl.
  destruct (LN h s Hs Hb i c Hi) as [Hp _]. apply Rmult_le_pos; [apply (Hp j e Hj)|]. apply Rmult_le_pos; [apply F|].
  apply IH. apply (rows_inside s c e Hs); eapply nth_error_In; eauto.
Qed.

Lemma never_above a n : is_probability p = true -> legal_agent (game_of p) (pol_of p q) a -> legal_nature (game_of p) n ->
  forall k h s, (s < states p)%nat -> value (game_of p) (Play a n) k h s <= 1.
Proof.
  intros IP LA LN.
  assert (E : forall j s b, ends_of p j s = Some b -> Q2R b <= 1).
  { intros j s b. unfold ends_of. unfold is_probability in IP. destruct (kind_of p); try discriminate.
    - destruct (target p s && _)%bool; [intros [= <-]; rewrite Q2R_1; lra|]. destruct (allowed p s); [discriminate|].
      intros [= <-]. rewrite Q2R_0. lra.
    - destruct (target p s && _)%bool; [intros [= <-]; rewrite Q2R_1; lra|discriminate]. }
  assert (F : Q2R (factor p) = 1).
  { apply (factor_one p (game_of p) posed eq_refl). unfold is_probability in IP. destruct (kind_of p); congruence. }
  induction k as [|k IH]; intros h s Hs; simpl; destruct (ends_of p (length h) s) eqn:Hb; try (now apply (E (length h) s)); [lra|].
  apply (mean_at_most (game_of p) (pol_of p q) (Play a n) LA h s _ _ 1 Hs Hb). intros i c Hi U. simpl in Hi.
  assert (R0 : Q2R (reward c) = 0).
  { pose proof PL as H. unfold playable in H. split_andb H. pose proof (whenever_spec _ H0 (length h) s Hs Hb) as D.
    simpl in D. rewrite pol_min in D. apply andb_prop in D. destruct D as [_ D].
    pose proof (rule_all_spec _ _ _ D i c Hi U) as R. simpl in R. unfold earns_rightly in R. unfold is_probability in IP.
    rewrite <- Q2R_0. destruct (kind_of p); try discriminate; apply Qeq_eqR, Qeq_bool_eq; exact R. }
  rewrite R0, Rplus_0_l. destruct (LN h s Hs Hb i c Hi) as [Hp H1]. simpl in H1. rewrite <- H1.
  apply sumi_le. intros j e Hj. simpl. destruct (Hp j e Hj) as [P0 _]. simpl in P0.
  assert (Ht : (next e < states p)%nat) by (apply (rows_inside s c e Hs); eapply nth_error_In; eauto).
  specialize (IH ((s, i) :: h) (next e) Ht). rewrite F. nra.
Qed.
End Arena.

Lemma initial_in p : well_posed p = true -> (initial p < states p)%nat.
Proof. intros H. unfold well_posed in H. apply andb_prop in H. now apply Nat.ltb_lt. Qed.

Lemma low_weaker p f m b b' : Q2R b <= Q2R b' -> low_means p f m (Some b') -> low_means p f m (Some b).
Proof.
  intros Hb. unfold low_means. assert (A : forall g, at_least g (Some b') -> at_least g (Some b)).
  { intros g H eps He. destruct (H eps He) as (k0 & H0). exists k0. intros k Hk. specialize (H0 k Hk). simpl in *. lra. }
  destruct (last p); [intros; lra|]. destruct (kind_of p); auto.
Qed.
Lemma high_weaker p f m b b' : Q2R b <= Q2R b' -> high_means p f m b -> high_means p f m b'.
Proof.
  intros Hb. unfold high_means. assert (A : forall g, at_most g b -> at_most g b').
  { intros g H eps He. destruct (H eps He) as (k0 & H0). exists k0. intros k Hk. specialize (H0 k Hk). lra. }
  destruct (last p); [intros; lra|]. destruct (kind_of p); auto. intros [V H]. auto.
Qed.
Lemma average_le (f f' : nat -> R) k : (1 <= k)%nat -> f k <= f' k -> f k / INR k <= f' k / INR k.
Proof. intros Hk H. apply Rmult_le_compat_r; [|exact H]. left. apply Rinv_0_lt_compat. apply lt_0_INR. lia. Qed.
Lemma low_more p f f' m m' b : (forall k, f k <= f' k) -> (forall k, m k = m' k) -> low_means p f m b -> low_means p f' m' b.
Proof.
  intros Ef Em. unfold low_means. assert (A : forall g g', (forall k, (1 <= k)%nat -> g k <= g' k) -> at_least g b -> at_least g' b).
  { intros g g' E. destruct b as [b|]; simpl; intros H e; [intros He; destruct (H e He) as (k0 & H0)|destruct (H e) as (k0 & H0)];
      exists (S k0); intros k Hk; specialize (H0 k ltac:(lia)); specialize (E k ltac:(lia)); lra. }
  destruct (last p) as [n|]; [destruct b; auto; specialize (Ef n); lra|].
  assert (Ea : forall k, (1 <= k)%nat -> f k / INR k <= f' k / INR k) by (intros k Hk; now apply average_le).
  destruct (kind_of p); try (apply A; auto; fail). intros H V. apply (A f f'); [auto|]. apply H. intros eps He.
  destruct (V eps He) as (k0 & H0). exists k0. intros k Hk. rewrite Em. auto.
Qed.
Lemma high_less p f f' m m' b : (forall k, f' k <= f k) -> (forall k, m k = m' k) -> high_means p f m b -> high_means p f' m' b.
Proof.
  intros Ef Em. unfold high_means. assert (A : forall g g', (forall k, (1 <= k)%nat -> g' k <= g k) -> at_most g b -> at_most g' b).
  { intros g g' E H e He. destruct (H e He) as (k0 & H0). exists (S k0). intros k Hk. specialize (H0 k ltac:(lia)). specialize (E k ltac:(lia)). lra. }
  destruct (last p) as [n|]; [specialize (Ef n); lra|].
  assert (Ea : forall k, (1 <= k)%nat -> f' k / INR k <= f k / INR k) by (intros k Hk; now apply average_le).
  destruct (kind_of p); try (apply A; auto; fail). intros [V H]. split; [|apply (A f f'); auto].
  intros eps He. destruct (V eps He) as (k0 & H0). exists k0. intros k Hk. rewrite <- Em. auto.
Qed.

(* Plays in which nature does the one thing n. *)
Definition against (p : problem) (q : question) (max : bool) (n : hist -> nat -> nat -> nat -> R) (worth : play -> Prop) : Prop :=
  let A := legal_agent (game_of p) (pol_of p q) in
  if agent_owns q max then exists a, A a /\ worth (Play a n) else forall a, A a -> worth (Play a n).
Lemma settled_against p q max hs n (worth : play -> Prop) : playable p q = true -> owners p q max hs = true ->
  (forall a, legal_agent (game_of p) (rule_for p q max hs) a -> worth (Play a n)) -> against p q max n worth.
Proof.
  intros PL O H. unfold against. destruct (agent_owns q max) eqn:E.
  - destruct (agent_owner p q PL max hs O E) as (a & L1 & L2). exists a. auto.
  - intros a L. apply H. now apply agent_other.
Qed.
Lemma all_against p q max n (worth : play -> Prop) : playable p q = true ->
  (forall a, legal_agent (game_of p) (pol_of p q) a -> worth (Play a n)) -> against p q max n worth.
Proof.
  intros PL H. unfold against. destruct (agents p q PL) as (a & L). destruct (agent_owns q max); [exists a|]; auto.
Qed.

Section Low.
Variables (p : problem) (q : question) (hs : hints) (b : option Q).
Hypothesis PL : playable p q = true.
Notation AR := (arena p q true hs).

Lemma low_of_all a n : match b with Some b => Qle_bool b 0 && never_negative p | None => false end = true ->
  legal_agent (game_of p) (pol_of p q) a -> legal_nature (game_of p) n -> worth_low p b (Play a n).
Proof.
  pose proof (posed p q PL) as WP. intros H LA LN. destruct b as [b'|]; [|discriminate]. apply andb_prop in H.
  destruct H as [Hb NN]. apply Qle_bool_R in Hb. rewrite Q2R_0 in Hb. unfold worth, low_means.
  assert (N : forall k, Q2R b' <= value (game_of p) (Play a n) k [] (initial p)).
  { intros k. pose proof (never_below p q PL a n NN LA LN k [] (initial p) (initial_in p WP)). lra. }
  assert (A : at_least (fun k => value (game_of p) (Play a n) k [] (initial p)) (Some b')).
  { intros eps He. exists 0%nat. intros k _. specialize (N k). lra. }
  destruct (last p); [apply N|]. destruct (kind_of p) eqn:HK; auto.
  intros eps He. exists 1%nat. intros k Hk. pose proof (never_below p q PL a n NN LA LN k [] (initial p) (initial_in p WP)) as V.
  assert (Pk : 0 < INR k) by (apply lt_0_INR; lia).
  assert (0 <= value (game_of p) (Play a n) k [] (initial p) / INR k); [|lra].
  apply Rmult_le_pos; [exact V|]. left. now apply Rinv_0_lt_compat.
Qed.
Lemma low_of_hints a n : check_low p AR (rule_for p q true hs) hs = true ->
  (may_be_endless p && unending (ends_of p 0) (endless hs) (initial p)) ||
    match b with Some b => Qle_bool b (x hs 0 (initial p)) | None => false end = true ->
  legal_agent AR (rule_for p q true hs) a -> legal_nature AR n -> supported_low AR (horizon p) n hs -> worth_low p b (Play a n).
Proof.
  pose proof (posed p q PL) as WP. intros H H0 LA LN Sp. unfold worth.
  apply (low_more p (fun k => value AR (Play a n) k [] (initial p)) _ (fun k => missed AR (Play a n) k [] (initial p))).
  - intros k. right. apply arena_value.
  - intros k. apply arena_missed.
  - apply orb_prop in H0. destruct H0 as [H0|H0].
    + apply andb_prop in H0. destruct H0 as [M U].
      apply (core_endless p AR (rule_for p q true hs) (Play a n) hs LA LN); auto.
      * intros j s Hj. now apply arena_stationary.
      * intros j s c e. now apply arena_inside.
      * apply arena_size.
      * apply arena_ends.
      * apply arena_factor.
    + destruct b as [b'|]; [|discriminate]. apply low_weaker with (b' := x hs 0 (initial p)); [now apply Qle_bool_R|].
      apply (core_low p AR (rule_for p q true hs) (Play a n) hs LA LN); auto.
      * intros j s Hj. now apply arena_stationary.
      * intros j s c e. now apply arena_inside.
      * apply arena_size.
      * apply arena_factor.
Qed.
End Low.

Section High.
Variables (p : problem) (q : question) (hs : hints) (b : Q).
Hypothesis PL : playable p q = true.
Notation AR := (arena p q false hs).

Lemma high_of_all a n : is_probability p && Qle_bool 1 b = true ->
  legal_agent (game_of p) (pol_of p q) a -> legal_nature (game_of p) n -> worth_high p b (Play a n).
Proof.
  pose proof (posed p q PL) as WP. intros H LA LN. apply andb_prop in H. destruct H as [IP Hb]. apply Qle_bool_R in Hb.
  rewrite Q2R_1 in Hb. unfold worth, high_means.
  assert (N : forall k, value (game_of p) (Play a n) k [] (initial p) <= Q2R b).
  { intros k. pose proof (never_above p q PL a n IP LA LN k [] (initial p) (initial_in p WP)). lra. }
  assert (A : at_most (fun k => value (game_of p) (Play a n) k [] (initial p)) b).
  { intros eps He. exists 0%nat. intros k _. specialize (N k). lra. }
  destruct (last p); [apply N|]. unfold is_probability in IP. destruct (kind_of p); auto; discriminate.
Qed.
Lemma high_of_hints a n : check_high p AR (rule_for p q false hs) hs = true -> negb (endless hs (initial p)) = true ->
  Qle_bool (x hs 0 (initial p)) b = true ->
  legal_agent AR (rule_for p q false hs) a -> legal_nature AR n -> supported_high AR (horizon p) n hs -> worth_high p b (Play a n).
Proof.
  pose proof (posed p q PL) as WP. intros H H0 H1 LA LN Sp. unfold worth.
  apply (high_less p (fun k => value AR (Play a n) k [] (initial p)) _ (fun k => missed AR (Play a n) k [] (initial p))).
  - intros k. right. symmetry. apply arena_value.
  - intros k. apply arena_missed.
  - apply high_weaker with (b := x hs 0 (initial p)); [now apply Qle_bool_R|].
    apply (core_high p AR (rule_for p q false hs) (Play a n) hs LA LN); auto.
    + intros j s Hj. now apply arena_stationary.
    + intros j s c e. now apply arena_inside.
    + apply arena_size.
    + apply arena_factor.
    + now apply negb_true_iff.
Qed.
End High.

Theorem low_sound p q hs b : shows_low p q (alone hs) b = true -> guaranteed p q true (worth_low p b).
Proof.
  intros H. unfold shows_low in H. apply andb_prop in H. destruct H as [PL H]. apply orb_prop in H. destruct H as [H|H].
  - apply all_guaranteed; [exact PL|]. intros a n LA LN. now apply (low_of_all p q b PL).
  - split_andb H. apply settled with (hs := alone hs); [exact PL|exact H|]. intros a n LA LN.
    apply (low_of_hints p q (alone hs) b PL); auto. apply alone_low.
Qed.
Theorem high_sound p q hs b : shows_high p q (alone hs) b = true -> guaranteed p q false (worth_high p b).
Proof.
  intros H. unfold shows_high in H. apply andb_prop in H. destruct H as [PL H]. apply orb_prop in H. destruct H as [H|H].
  - apply all_guaranteed; [exact PL|]. intros a n LA LN. now apply (high_of_all p q b PL).
  - split_andb H. apply settled with (hs := alone hs); [exact PL|exact H|]. intros a n LA LN.
    apply (high_of_hints p q (alone hs) b PL); auto. apply alone_high.
Qed.

(* The same against one nature that is known to keep to the hints' numbers. *)
Theorem low_against p q hs b n : shows_low p q hs b = true -> nature_owns q true = false -> legal_nature (game_of p) n ->
  supported_low (game_of p) (horizon p) n hs -> against p q true n (worth_low p b).
Proof.
  intros H EN LN Sp. unfold shows_low in H. apply andb_prop in H. destruct H as [PL H]. apply orb_prop in H. destruct H as [H|H].
  - apply all_against; [exact PL|]. intros a LA. now apply (low_of_all p q b PL).
  - split_andb H. apply (settled_against p q true hs n _ PL H). intros a LA.
    assert (E : arena p q true hs = game_of p) by (unfold arena; now rewrite EN).
    apply (low_of_hints p q hs b PL); auto; rewrite E; assumption.
Qed.
Theorem high_against p q hs b n : shows_high p q hs b = true -> nature_owns q false = false -> legal_nature (game_of p) n ->
  supported_high (game_of p) (horizon p) n hs -> against p q false n (worth_high p b).
Proof.
  intros H EN LN Sp. unfold shows_high in H. apply andb_prop in H. destruct H as [PL H]. apply orb_prop in H. destruct H as [H|H].
  - apply all_against; [exact PL|]. intros a LA. now apply (high_of_all p q b PL).
  - split_andb H. apply (settled_against p q false hs n _ PL H). intros a LA.
    assert (E : arena p q false hs = game_of p) by (unfold arena; now rewrite EN).
    apply (high_of_hints p q hs b PL); auto; rewrite E; assumption.
Qed.

(* The program's answer about a value; see Temporal.v. *)
Theorem prove_sound p q complement lower upper low high :
  prove p q complement lower upper low high = true -> stated p q complement lower upper.
Proof.
  unfold prove, shows, stated. destruct (if complement then _ else _) as [l u]. intros H. apply andb_prop in H. destruct H as [H1 H2].
  split; [now apply low_sound with (hs := low)|]. destruct u as [u|]; [now apply high_sound with (hs := high)|exact I].
Qed.
