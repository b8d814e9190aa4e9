(* The theorem about learned claims: for every adaptive design, at all times, whoever makes the certificates. *)
From Coq Require Import List Bool Arith ZArith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Problem Basics Polynomial Value Sound Ville Model Krichevsky Learned Coupled Likelihood Bets.
Import ListNotations.
Open Scope R_scope.

(* ---------- Counting ---------- *)

Definition finds (ev : event) (c : nat * nat) : option trial := find (fun t => same (place t) c) (trials ev).
Definition hit (ev : event) (c : nat * nat) (o : nat) : option bool :=
  match finds ev c with Some t => nth_error (hits t) o | None => None end.
Definition one (b : bool) (x : option bool) : nat := match x with Some y => if Bool.eqb b y then 1 else 0 | None => 0 end.
Fixpoint wins (b : bool) (ev : event) (h : seen) : nat :=
  match h with [] => 0 | (c, o) :: h' => one b (hit ev c o) + wins b ev h' end.

Lemma tally_trial_bump b hs : forall j0 f f' o, (forall j, f' j = (f j + if Nat.eqb o j then 1 else 0)%nat) ->
  tally_trial b f' j0 hs = (tally_trial b f j0 hs + if (j0 <=? o)%nat then one b (nth_error hs (o - j0)) else 0)%nat.
Proof.
  induction hs as [|x hs IH]; intros j0 f f' o H; simpl.
  - destruct (j0 <=? o)%nat; [destruct (o - j0)%nat; reflexivity|reflexivity].
  - rewrite (IH (S j0) f f' o H). rewrite (H j0).
    destruct (Nat.eq_dec o j0) as [->|Hne].
    + rewrite Nat.eqb_refl, Nat.leb_refl, Nat.sub_diag. simpl one.
      replace (S j0 <=? j0)%nat with false by (symmetry; apply Nat.leb_gt; lia). destruct (Bool.eqb b x); lia.
    + replace (Nat.eqb o j0) with false by (symmetry; now apply Nat.eqb_neq).
      destruct (j0 <=? o)%nat eqn:E.
      * apply Nat.leb_le in E. replace (S j0 <=? o)%nat with true by (symmetry; apply Nat.leb_le; lia).
        replace (o - j0)%nat with (S (o - S j0)) by lia. simpl nth_error. destruct (Bool.eqb b x); lia.
      * apply Nat.leb_gt in E. replace (S j0 <=? o)%nat with false by (symmetry; apply Nat.leb_gt; lia).
        destruct (Bool.eqb b x); lia.
Qed.

Lemma same_eq c d : same c d = true -> c = d.
Proof.
  destruct c, d. unfold same. simpl. intros H. apply andb_prop in H. destruct H as [H1 H2].
  apply Nat.eqb_eq in H1, H2. congruence.
Qed.
Lemma same_refl c : same c c = true. Proof. unfold same. now rewrite !Nat.eqb_refl. Qed.
Lemma before_lt a b : before a b = true -> (fst a < fst b \/ (fst a = fst b /\ snd a < snd b))%nat.
Proof.
  unfold before. intros H. apply orb_prop in H. destruct H as [H|H]; [left; now apply Nat.ltb_lt|right].
  apply andb_prop in H. destruct H as [H1 H2]. split; [now apply Nat.eqb_eq|now apply Nat.ltb_lt].
Qed.
Lemma rising_after l : forall a, rising a l = true -> forall t, In t l ->
  (fst a < fst (place t) \/ (fst a = fst (place t) /\ snd a < snd (place t)))%nat.
Proof.
  induction l as [|u l IH]; intros a H t Ht; [destruct Ht|]. simpl in H. apply andb_prop in H. destruct H as [H1 H2].
  apply before_lt in H1. destruct Ht as [<-|Ht]; [exact H1|]. specialize (IH (place u) H2 t Ht). lia.
Qed.

Lemma tally_none b c o l : forall f f', (forall s i j, f' s i j = (f s i j + if same c (s, i) && Nat.eqb o j then 1 else 0)%nat) ->
  (forall t, In t l -> same (place t) c = false) -> tally b f' l = tally b f l.
Proof.
  intros f f' H. induction l as [|t l IH]; intros Hl; simpl; [reflexivity|].
  rewrite IH by (intros; apply Hl; simpl; auto). f_equal.
  assert (K : same c (t_state t, t_choice t) = false).
  { destruct (same c (t_state t, t_choice t)) eqn:E; [|reflexivity]. apply same_eq in E.
    specialize (Hl t (or_introl eq_refl)). unfold place in Hl. rewrite <- E in Hl. now rewrite same_refl in Hl. }
  clear -H K. generalize 0%nat. induction (hits t) as [|x hs IHh]; intros j; simpl; [reflexivity|].
  rewrite IHh, H, K. simpl. rewrite Nat.add_0_r. reflexivity.
Qed.

Lemma tally_bump b c o l : (match l with [] => true | t :: l' => rising (place t) l' end) = true -> forall f f',
  (forall s i j, f' s i j = (f s i j + if same c (s, i) && Nat.eqb o j then 1 else 0)%nat) ->
  tally b f' l = (tally b f l + match find (fun t => same (place t) c) l with
    Some t => one b (nth_error (hits t) o) | None => 0 end)%nat.
Proof.
  induction l as [|t l IH]; intros Hr f f' H; simpl; [reflexivity|].
  destruct (same (place t) c) eqn:E.
  - apply same_eq in E. rewrite (tally_none b c o l f f' H).
    + rewrite (tally_trial_bump b (hits t) 0 (f (t_state t) (t_choice t)) (f' (t_state t) (t_choice t)) o).
      * simpl. rewrite Nat.sub_0_r. lia.
      * intros j. rewrite H, <- E. unfold place. now rewrite same_refl.
    + intros u Hu. pose proof (rising_after l (place t) Hr u Hu) as K. rewrite <- E.
      destruct (same (place u) (place t)) eqn:F; [|reflexivity]. apply same_eq in F. rewrite F in K. lia.
  - rewrite IH with (f := f) (f' := f').
    + assert (K : tally_trial b (f' (t_state t) (t_choice t)) 0 (hits t) = tally_trial b (f (t_state t) (t_choice t)) 0 (hits t)).
      { pose proof (tally_none b c o [t] f f' H) as Z. simpl in Z.
        specialize (Z ltac:(intros u [<-|[]]; exact E)). lia. }
      rewrite K. lia.
    + destruct l as [|u l]; [reflexivity|]. simpl in Hr. apply andb_prop in Hr. apply Hr.
    + exact H.
Qed.

Lemma tally_wins b ev h : (match trials ev with [] => true | t :: l' => rising (place t) l' end) = true ->
  tally b (counts_of h) (trials ev) = wins b ev h.
Proof.
  intros Hr. induction h as [|[c o] h IH]; simpl wins.
  - assert (Z : forall hs j, tally_trial b (fun _ => 0%nat) j hs = 0%nat).
    { induction hs as [|x hs IHh]; intros j; simpl; [reflexivity|]. destruct (Bool.eqb b x); now rewrite IHh. }
    assert (Y : forall l, tally b (fun _ _ _ => 0%nat) l = 0%nat).
    { induction l as [|t l IHl]; simpl; [reflexivity|]. now rewrite IHl, Z. }
    change (counts_of []) with (fun _ _ _ : nat => 0%nat). apply Y.
  - rewrite <- IH. rewrite (tally_bump b c o (trials ev) Hr (counts_of h) (counts_of ((c, o) :: h))).
    + unfold hit, finds. destruct (find _ _); simpl; lia.
    + intros s i j. simpl. destruct (same c (s, i) && Nat.eqb o j)%bool; lia.
Qed.

(* ---------- The wealth of whoever bets on the mixture ---------- *)

Section Wealth.
Variables (p lv : R).
Hypothesis (Hp : 0 <= p <= 1) (Hlv : 0 < lv).
Definition omega (k m : nat) : R :=
  if Req_EM_T (p ^ k * (1 - p) ^ m) 0 then / lv else mixture k m / (p ^ k * (1 - p) ^ m).

Lemma like_pos k m : 0 <= p ^ k * (1 - p) ^ m.
Proof. apply Rmult_le_pos; apply pow_le; lra. Qed.
Lemma omega_pos k m : 0 <= omega k m.
Proof.
  unfold omega. pose proof (like_pos k m). pose proof (mixture_pos k m). destruct (Req_EM_T _ 0).
  - left. now apply Rinv_0_lt_compat.
  - apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra.
Qed.
Lemma omega_0 : omega 0 0 = 1.
Proof. unfold omega. simpl. rewrite mixture_0. destruct (Req_EM_T _ 0); [lra|field; lra]. Qed.
Lemma omega_fair k m : p * omega (S k) m + (1 - p) * omega k (S m) <= omega k m.
Proof.
  unfold omega. set (L := p ^ k * (1 - p) ^ m).
  assert (E1 : p ^ S k * (1 - p) ^ m = p * L) by (unfold L; simpl; lra).
  assert (E2 : p ^ k * (1 - p) ^ S m = (1 - p) * L) by (unfold L; simpl; lra).
  rewrite E1, E2. pose proof (like_pos k m) as HL. fold L in HL.
  pose proof (mixture_sum k m) as MS. pose proof (mixture_pos (S k) m) as M1. pose proof (mixture_pos k (S m)) as M2.
  pose proof (Rinv_0_lt_compat lv Hlv) as IL.
  destruct (Req_EM_T L 0) as [Z|Z].
  - rewrite Z, !Rmult_0_r. destruct (Req_EM_T 0 0); [lra|congruence].
  - assert (HL' : 0 < / L) by (apply Rinv_0_lt_compat; lra).
    assert (A : forall a x, 0 <= a -> 0 < x -> a * (if Req_EM_T (a * L) 0 then / lv else x / (a * L)) <= x / L).
    { intros a x Ha Hx. destruct (Req_EM_T (a * L) 0) as [Y|Y].
      - assert (a = 0). { destruct (Rmult_integral _ _ Y); [assumption|congruence]. } subst a. rewrite Rmult_0_l.
        apply Rmult_le_pos; lra.
      - right. field. split; intros K; apply Y; rewrite K; lra. }
    pose proof (A p (mixture (S k) m) (proj1 Hp) M1). pose proof (A (1 - p) (mixture k (S m)) ltac:(lra) M2).
    apply Rle_trans with (mixture (S k) m / L + mixture k (S m) / L); [lra|]. rewrite <- MS. right. field. exact Z.
Qed.
Lemma omega_rich k m : p ^ k * (1 - p) ^ m <= lv * mixture k m -> 1 <= lv * omega k m.
Proof.
  intros H. unfold omega. pose proof (like_pos k m) as HL. destruct (Req_EM_T _ 0) as [Z|Z]; [right; field; lra|].
  set (L := p ^ k * (1 - p) ^ m) in *. assert (0 < L) by lra.
  replace (lv * (mixture k m / L)) with (lv * mixture k m * / L) by (unfold Rdiv; lra).
  apply (Rmult_le_reg_r L); [assumption|]. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.
End Wealth.

(* ---------- An event under the truth ---------- *)

Section Event.
Variables (M : model) (theta : nat -> R) (ev : event).
Hypothesis (T : instance M theta) (OK : event_ok M ev = true).
Notation at_ p := (poly_at theta p).
Notation p := (at_ (about ev)).

Lemma outcome_sum hs : forall l (w1 w0 : R), length hs = length l ->
  rsum (fun o => match nth_error l o with Some e => chance M theta e | None => 0 end *
                 match nth_error hs o with Some true => w1 | _ => w0 end) (seq 0 (length l)) =
  w1 * at_ (sum_where M true hs l) + w0 * at_ (sum_where M false hs l).
Proof.
  induction hs as [|x hs IH]; intros l w1 w0 E; destruct l as [|e l]; try discriminate; [simpl; lra|].
  simpl length. rewrite <- cons_seq. simpl rsum. rewrite rsum_shift. simpl nth_error.
  rewrite (IH l w1 w0) by (simpl in E; lia). unfold chance.
  assert (Q1 : Q2R 1 = 1) by apply Q2R_1.
  destruct x; cbn [sum_where Bool.eqb]; rewrite plus_at, Q1; lra.
Qed.
Lemma both_sum hs : forall l, length hs = length l ->
  at_ (sum_where M true hs l) + at_ (sum_where M false hs l) = sumi (fun _ e => chance M theta e) 0 l.
Proof.
  assert (G : forall l k, length hs = length l ->
    at_ (sum_where M true hs l) + at_ (sum_where M false hs l) = sumi (fun _ e => chance M theta e) k l); [|intros; now apply G].
  induction hs as [|x hs IH]; intros l k E; destruct l as [|e l]; try discriminate; [simpl; lra|].
  specialize (IH l (S k) ltac:(simpl in E; lia)). simpl sumi. unfold chance at 1. assert (Q1 : Q2R 1 = 1) by apply Q2R_1.
  destruct x; cbn [sum_where Bool.eqb]; rewrite plus_at, Q1; lra.
Qed.

Lemma null_true x : null M x = true -> at_ x = 0.
Proof.
  unfold null. intros H. apply orb_prop in H. destruct H as [H|H]; [now apply zero_at|]. apply andb_prop in H. destruct H as [H1 H2].
  apply existsb_exists in H1, H2. destruct H1 as (d & D1 & Z1). destruct H2 as (e & D2 & Z2). apply (zero_at theta) in Z1, Z2.
  rewrite m1 in Z1. rewrite plus_at, Q2R_1 in Z2. pose proof (proj1 T d D1). pose proof (proj1 T e D2). lra.
Qed.
Lemma trial_true t : In t (trials ev) -> exists k, (t_state t < states (shape M))%nat /\ nth_error (table M (t_state t)) (t_choice t) = Some k /\
  length (hits t) = length (outcomes k) /\ at_ (sum_where M true (hits t) (outcomes k)) = p /\
  at_ (sum_where M false (hits t) (outcomes k)) = 1 - p.
Proof.
  intros Ht. pose proof OK as H. unfold event_ok in H. apply andb_prop in H. destruct H as [_ H].
  rewrite forallb_forall in H. specialize (H t Ht). unfold trial_ok in H. apply andb_prop in H. destruct H as [Hs H].
  apply Nat.ltb_lt in Hs. destruct (nth_error (table M (t_state t)) (t_choice t)) as [k|] eqn:E; [|discriminate].
  apply andb_prop in H. destruct H as [HL H]. apply Nat.eqb_eq in HL. exists k. split; [exact Hs|]. split; [reflexivity|]. split; [exact HL|].
  pose proof (both_sum (hits t) (outcomes k) HL) as B. rewrite (proj1 (proj2 T _ _ Hs (nth_error_In _ _ E))) in B.
  apply orb_prop in H. destruct H as [H|H]; [apply (zero_at theta) in H|apply null_true in H].
  - rewrite m1 in H. lra.
  - rewrite plus_at, m1, constant_at, Q2R_1 in H. lra.
Qed.

Lemma event_range : 0 <= p <= 1.
Proof.
  pose proof OK as H. unfold event_ok in H. apply andb_prop in H. destruct H as [H H'].
  destruct (trials ev) as [|t l] eqn:E; [discriminate|]. assert (Ht : In t (trials ev)) by (rewrite E; simpl; auto).
  destruct (trial_true t Ht) as (k & Hs & H1 & H2 & H3 & H4).
  assert (P : forall b hs l0, (forall e, In e l0 -> 0 <= chance M theta e) -> 0 <= at_ (sum_where M b hs l0)).
  { intros b hs. induction hs as [|x hs IH]; intros [|e l0] He; try (simpl; lra).
    cbn [sum_where]. specialize (IH l0 ltac:(intros; apply He; simpl; auto)). specialize (He e (or_introl eq_refl)).
    unfold chance in He. destruct (Bool.eqb b x); [rewrite plus_at, Q2R_1; lra|exact IH]. }
  assert (C : forall e, In e (outcomes k) -> 0 <= chance M theta e)
    by (intros e He; apply (proj2 (proj2 T _ _ Hs (nth_error_In _ _ H1)) e He)).
  pose proof (P true (hits t) (outcomes k) C). pose proof (P false (hits t) (outcomes k) C). lra.
Qed.

Variable lv : R.
Hypothesis Hlv : 0 < lv.
Definition wealth (h : seen) : R := omega p lv (wins true ev h) (wins false ev h).

Lemma wealth_fair cs design : experiment (nat * nat) nat cs (results M) design (law M theta) ->
  forall h c, In c cs -> rsum (fun o => law M theta c o * wealth ((c, o) :: h)) (results M c) <= wealth h.
Proof.
  intros X h c Hc. unfold wealth at 1. simpl wins. unfold hit. destruct (finds ev c) as [t|] eqn:F.
  - unfold finds in F. apply find_some in F. destruct F as [Ht Hsame]. apply same_eq in Hsame. subst c.
    destruct (trial_true t Ht) as (k & Hs & E & HL & S1 & S0). unfold results, law, label, place. simpl fst. simpl snd.
    apply Nat.ltb_lt in Hs. rewrite E, Hs.
    set (w1 := omega p lv (S (wins true ev h)) (wins false ev h)).
    set (w0 := omega p lv (wins true ev h) (S (wins false ev h))).
    eapply Rle_trans; [right; apply rsum_ext with (g := fun o =>
      match nth_error (outcomes k) o with Some e => chance M theta e | None => 0 end *
      match nth_error (hits t) o with Some true => w1 | _ => w0 end)|].
    + intros o Ho. apply in_seq in Ho. f_equal; [now destruct (nth_error (outcomes k) o)|].
      destruct (nth_error (hits t) o) as [x|] eqn:Ex; [|apply nth_error_None in Ex; lia].
      destruct x; reflexivity.
    + rewrite outcome_sum by exact HL. rewrite S1, S0.
      pose proof (omega_fair p lv event_range Hlv (wins true ev h) (wins false ev h)) as OF. fold w1 in OF. fold w0 in OF.
      unfold wealth. lra.
  - simpl one. simpl plus. fold (wealth h).
    rewrite (rsum_ext _ (fun o => wealth h * law M theta c o)) by (intros; apply Rmult_comm).
    rewrite rsum_scal, (law_one _ _ _ _ _ _ X c Hc). lra.
Qed.
End Event.

(* ---------- The theorem ---------- *)

(* Among all logs, those [wrong] on which a certificate was accepted whose claim is not true of the true model are met, at
   any time up to n, with probability at most d1 + d2 + d3: whatever design chose what to try next, whoever made the certificates,
   and whenever one stops. Fixed beforehand: events, pilots with their weights, the rule that predicts, the rule that bets, where batches begin. *)
(* BELIEVED *)
Theorem learned_sound (M : model) (N : nat) (evs : nat -> event) (theta : nat -> R) (d1 d2 : Q) (E : nat) (prior : list (nat * Q))
    (predict : nat -> (nat -> nat -> nat) -> list Q) (sc : scheme) (d3 : Q) (number : seen -> nat)
    (cs : list (nat * nat)) (design : seen -> nat * nat -> R) (maker : seen -> cert) (wrong : seen -> bool) (n : nat) :
  instance M theta -> 0 <= Q2R d1 -> 0 <= Q2R d2 -> 0 <= Q2R d3 -> (forall a h, (number h <= number (a :: h))%nat) ->
  experiment (nat * nat) nat cs (results M) design (law M theta) ->
  (forall h, wrong h = true ->
     accept M N evs (counts_of h) d1 E prior predict (S (number h)) (met (label M) number h) d2
       sc (met (class_of sc) number h) d3 (maker h) = true /\
     ~ claim_true M theta (maker h)) ->
  prob (nat * nat) nat cs (results M) design (law M theta) n (sometime (nat * nat) nat wrong) <= Q2R d1 + Q2R d2 + Q2R d3.
(* END *)
Proof.
  intros T D D2 D3 Mono X HW.
  assert (Parts : forall h, wrong h = true -> 0 < Q2R (level (maker h)) /\ INR N * Q2R (level (maker h)) <= Q2R d1 /\
    (forall g, (g < N)%nat -> event_ok M (evs g) = true) /\
    (forall g, (g < N)%nat -> event_proved evs (maker h) (counts_of h) g = true) /\
    exists known all ks, likely M E prior predict (maker h) (S (number h)) (met (label M) number h) d2 = Some known /\
      prepared M E sc (S (number h)) (met (class_of sc) number h) d3 = Some (all, ks) /\
      shown M N evs (tangent M (maker h) known) (bets_say M E sc (met (class_of sc) number h) (maker h) known all ks) (maker h) = true).
  { intros h Hh. destruct (HW h Hh) as [A _]. unfold accept in A. apply andb_prop in A. destruct A as [A A5].
    apply andb_prop in A. destruct A as [A A4]. apply andb_prop in A. destruct A as [A A3].
    apply andb_prop in A. destruct A as [A1 A2]. apply Qltb_R in A1. rewrite Q2R_0 in A1.
    apply Qle_bool_R in A2. rewrite Q2R_mult, qnat_R in A2. repeat split; auto.
    - intros g Hg. apply (below_spec _ _ A3 g Hg).
    - intros g Hg. apply (below_spec _ _ A4 g Hg).
    - destruct (likely _ _ _ _ _ _ _ _) as [known|]; [|discriminate]. destruct (prepared _ _ _ _ _ _) as [ [all ks]|] eqn:PR; [|discriminate].
      exists known, all, ks. auto. }
  set (inside := fun h g => Q2R (elow (maker h) g) <= poly_at theta (about (evs g)) <= Q2R (ehigh (maker h) g)).
  assert (All : forall h K, {forall g, (g < K)%nat -> inside h g} + {exists g, (g < K)%nat /\ ~ inside h g}).
  { intros h. induction K as [|K IH]; [left; intros; lia|]. destruct IH as [IH|Out]; [|right; destruct Out as (g & Hg & Ng); exists g; split; [lia|exact Ng] ].
    destruct (Rle_dec (Q2R (elow (maker h) K)) (poly_at theta (about (evs K)))) as [Y1|Y1];
      [destruct (Rle_dec (poly_at theta (about (evs K))) (Q2R (ehigh (maker h) K))) as [Y2|Y2]|].
    - left. intros g Hg. destruct (Nat.eq_dec g K) as [->|]; [now split|apply IH; lia].
    - right. exists K. split; [lia|]. intros [? ?]. lra.
    - right. exists K. split; [lia|]. intros [? ?]. lra. }
  set (missed_event := fun h => wrong h && if All h N then false else true).
  set (rest := fun h => wrong h && if All h N then true else false).
  assert (Never : forall F, (forall h, F h = true -> False) ->
    prob (nat * nat) nat cs (results M) design (law M theta) n (sometime (nat * nat) nat F) <= 0).
  { intros F H. eapply Rle_trans; [apply (union _ _ _ _ _ _ X n F (fun _ _ => false) 0 0)|simpl; lra]; try lra.
    - intros g Hg. lia.
    - intros h Hh. destruct (H h Hh). }
  assert (P1 : prob (nat * nat) nat cs (results M) design (law M theta) n (sometime (nat * nat) nat missed_event) <= Q2R d1).
  { assert (Outside : forall h, missed_event h = true -> wrong h = true /\ exists g, (g < N)%nat /\ ~ inside h g).
    { intros h H. unfold missed_event in H. apply andb_prop in H. destruct H as [H1 H2]. split; [exact H1|]. now destruct (All h N). }
    destruct (Nat.eq_dec N 0) as [N0|N0].
    { eapply Rle_trans; [apply Never|exact D]. intros h Hh. destruct (Outside h Hh) as (_ & g & Hg & _). lia. }
    assert (NR : 0 < INR N) by (apply lt_0_INR; lia).
    destruct (Rlt_dec 0 (Q2R d1)) as [DP|DP].
    2: { eapply Rle_trans; [apply Never|exact D]. intros h Hh. destruct (Outside h Hh) as [Hw _]. destruct (Parts h Hw) as (L0 & L1 & _). nra. }
    set (lv := Q2R d1 / INR N). assert (Hlv : 0 < lv) by (apply Rdiv_lt_0_compat; lra).
    assert (ED : INR N * lv = Q2R d1) by (unfold lv; field; lra). rewrite <- ED.
    (* events that are none are never accepted: nothing is asked of them *)
    set (F := fun g h => event_ok M (evs g) && if Rle_dec 1 (lv * wealth theta (evs g) lv h) then true else false).
    apply (union _ _ _ _ _ _ X n missed_event F lv N); [lra| |].
    - intros g Hg. unfold F. destruct (event_ok M (evs g)) eqn:OK.
      + apply (ville _ _ _ _ _ _ X (wealth theta (evs g) lv) lv); [lra| | | |].
        * intros h. apply omega_pos; [apply (event_range M theta (evs g) T OK)|exact Hlv].
        * intros h c Hc. now apply (wealth_fair M theta (evs g) T OK lv Hlv cs design X).
        * intros h. simpl. destruct (Rle_dec 1 _); [auto|discriminate].
        * unfold wealth. simpl. apply omega_0.
      + eapply Rle_trans; [apply Never|lra]. intros h Hh. discriminate.
    - intros h Hh. destruct (Outside h Hh) as (Hw & g & Hg & NI). exists g. split; [exact Hg|].
      destruct (Parts h Hw) as (L0 & L1 & EO & EP & _). specialize (EO g Hg). specialize (EP g Hg).
      unfold F. rewrite EO. simpl. destruct (Rle_dec 1 _) as [|NR1]; [reflexivity|exfalso; apply NR1].
      pose proof (event_range M theta (evs g) T EO) as PR.
      unfold wealth. apply omega_rich; [exact PR|exact Hlv|].
      assert (Hr : (match trials (evs g) with [] => true | t :: l' => rising (place t) l' end) = true).
      { pose proof EO as Q. unfold event_ok in Q. apply andb_prop in Q. destruct Q as [Q _]. now destruct (trials (evs g)). }
      unfold event_proved in EP. rewrite !(tally_wins _ (evs g) h Hr) in EP. unfold inside in NI.
      set (k := wins true (evs g) h) in *. set (m := wins false (evs g) h) in *.
      destruct (parts (maker h) (elow (maker h) g)) as [a b]. destruct (parts (maker h) (1 - ehigh (maker h) g)) as [a' b'].
      apply andb_prop in EP. destruct EP as [E1 E2].
      assert (Lv : Q2R (level (maker h)) <= lv).
      { apply (Rmult_le_reg_l (INR N)); [exact NR|]. lra. }
      pose proof (mixture_pos k m) as MP.
      apply Rle_trans with (Q2R (level (maker h)) * mixture k m); [|apply Rmult_le_compat_r; lra].
      destruct (Rlt_le_dec (poly_at theta (about (evs g))) (Q2R (elow (maker h) g))) as [B|B].
      + apply (end_sound _ _ _ _ _ _ _ E1); lra.
      + assert (C : Q2R (ehigh (maker h) g) < poly_at theta (about (evs g))) by (destruct (Rlt_le_dec (Q2R (ehigh (maker h) g)) (poly_at theta (about (evs g)))); [assumption|exfalso; apply NI; lra]).
        pose proof (end_sound _ _ _ _ _ _ (1 - poly_at theta (about (evs g))) E2) as K.
        rewrite Q2R_minus, Q2R_1 in K. specialize (K ltac:(lra) ltac:(lra)).
        replace (1 - (1 - poly_at theta (about (evs g)))) with (poly_at theta (about (evs g))) in K by lra.
        rewrite Rmult_comm. replace (mixture k m) with (mixture m k); [exact K|].
        unfold mixture. rewrite (Nat.add_comm m k). unfold Rdiv. rewrite (Rmult_comm (IZR (odds m))). reflexivity. }
  (* all events hold: some row does not. Either whoever bet on the predictions is rich, or a side that bet on what would pay *)
  set (poor := fun h => if Rlt_dec 0 (Q2R d2) then if Rlt_dec (riches M theta E prior predict number (Q2R d2) h * Q2R d2) 1 then true else false else true).
  set (rest2 := fun h => rest h && negb (poor h)). set (rest3 := fun h => rest h && poor h).
  assert (P2 : prob (nat * nat) nat cs (results M) design (law M theta) n (sometime (nat * nat) nat rest2) <= Q2R d2).
  { destruct (Rlt_dec 0 (Q2R d2)) as [DP|DP].
    - apply (ville _ _ _ _ _ _ X (riches M theta E prior predict number (Q2R d2)) (Q2R d2)); [exact D2| | | |].
      + intros h. now apply riches_pos.
      + intros h c Hc. now apply (riches_fair M theta E prior predict number (Q2R d2) T c), (law_one _ _ _ _ _ _ X c Hc).
      + intros h Hh. unfold rest2, poor in Hh. apply andb_prop in Hh. destruct Hh as [_ Hh]. destruct (Rlt_dec 0 (Q2R d2)); [|contradiction].
        destruct (Rlt_dec _ 1); [discriminate|lra].
      + apply riches_0.
    - eapply Rle_trans; [apply Never|exact D2]. intros h H. unfold rest2, poor in H. apply andb_prop in H. destruct H as [_ H].
      destruct (Rlt_dec 0 (Q2R d2)); [contradiction|discriminate]. }
  assert (P3 : prob (nat * nat) nat cs (results M) design (law M theta) n (sometime (nat * nat) nat rest3) <= Q2R d3).
  { assert (Some_side : forall h K, {forall i, (i < K)%nat -> Q2R (alpha sc) * owned M theta sc number i h < 1} +
        {exists i, (i < K)%nat /\ 1 <= Q2R (alpha sc) * owned M theta sc number i h}).
    { intros h. induction K as [|K IH]; [left; intros; lia|]. destruct IH as [IH|Out]; [|right; destruct Out as (i & Hi & Ri); exists i; split; [lia|exact Ri] ].
      destruct (Rlt_dec (Q2R (alpha sc) * owned M theta sc number K h) 1) as [L|L].
      - left. intros i Hi. destruct (Nat.eq_dec i K) as [->|]; [exact L|apply IH; lia].
      - right. exists K. split; [lia|lra]. }
    assert (Rich : forall h, rest3 h = true -> (0 < parties sc)%nat /\ 0 < Q2R (alpha sc) /\ INR (parties sc) * Q2R (alpha sc) <= Q2R d3 /\
      exists i, (i < parties sc)%nat /\ 1 <= Q2R (alpha sc) * owned M theta sc number i h).
    { intros h H. unfold rest3 in H. apply andb_prop in H. destruct H as [H Hp]. unfold rest in H. apply andb_prop in H. destruct H as [Hw HA].
      destruct (All h N) as [In|]; [|discriminate]. destruct (Parts h Hw) as (_ & _ & _ & _ & known & all & ks & Lk & PR & PV). destruct (HW h Hw) as [_ NT].
      assert (EV : evident M theta known).
      { unfold poor in Hp. destruct (Rlt_dec 0 (Q2R d2)) as [DP|DP].
        - destruct (Rlt_dec _ 1) as [Pr|]; [|discriminate].
          apply (poor_evident M theta E prior predict number (Q2R d2) T Mono DP (maker h) h d2 known Lk eq_refl Pr).
        - apply (without_evident M theta E prior predict number (maker h) h d2 known Lk). lra. }
      destruct (Some_side h (parties sc)) as [Po|(i & Hi & Ri)].
      - exfalso. apply NT. apply (shown_true M theta T N evs (tangent M (maker h) known) _ (maker h) PV); [now apply tangent_right| |exact In].
        now apply (bets_are_right M theta E sc number h (maker h) d3 known all ks T Mono PR EV).
      - split; [lia|]. unfold prepared in PR. destruct (Nat.eqb (parties sc) 0) eqn:Z; [apply Nat.eqb_eq in Z; lia|].
        destruct (_ && _)%bool eqn:C in PR; [|discriminate]. apply andb_prop in C. destruct C as [C C5]. apply andb_prop in C. destruct C as [_ C4].
        apply Qltb_R in C4. rewrite Q2R_0 in C4. apply Qle_bool_R in C5. rewrite Q2R_mult, qnat_R in C5. eauto. }
    destruct (Rlt_dec 0 (Q2R (alpha sc))) as [AP|AP].
    2: { eapply Rle_trans; [apply Never|exact D3]. intros h H. destruct (Rich h H) as (_ & A & _). contradiction. }
    destruct (Rle_dec (INR (parties sc) * Q2R (alpha sc)) (Q2R d3)) as [Sum|Sum].
    2: { eapply Rle_trans; [apply Never|exact D3]. intros h H. destruct (Rich h H) as (_ & _ & B & _). contradiction. }
    eapply Rle_trans; [|exact Sum].
    set (F := fun i h => if Rle_dec 1 (Q2R (alpha sc) * owned M theta sc number i h) then true else false).
    apply (union _ _ _ _ _ _ X n rest3 F (Q2R (alpha sc)) (parties sc)); [lra| |].
    - intros i Hi. unfold F. apply (ville _ _ _ _ _ _ X (owned M theta sc number i) (Q2R (alpha sc))); [lra| | | |].
      + intros h. now apply owned_pos.
      + intros h c Hc. now apply (owned_fair M theta sc number cs design X).
      + intros h Hh. simpl in Hh. destruct (Rle_dec 1 _); [assumption|discriminate].
      + apply owned_0.
    - intros h Hh. destruct (Rich h Hh) as (_ & _ & _ & i & Hi & Ri). exists i. split; [exact Hi|]. unfold F. destruct (Rle_dec 1 _); [reflexivity|contradiction]. }
  assert (P23 : prob (nat * nat) nat cs (results M) design (law M theta) n (sometime (nat * nat) nat rest) <= Q2R d2 + Q2R d3).
  { eapply Rle_trans; [|apply Rplus_le_compat; [exact P2|exact P3] ]. unfold prob. rewrite <- (expect_add _ _ _ _ _ _).
    apply (expect_mono _ _ _ _ _ _ X). intros h. unfold indicator.
    assert (G : sometime _ _ rest h = true -> sometime _ _ rest2 h = true \/ sometime _ _ rest3 h = true).
    { induction h as [|a h IH]; simpl; intros H; apply orb_prop in H; destruct H as [H|H]; try discriminate.
      - unfold rest2 at 1, rest3 at 1. rewrite H. destruct (poor []); [now right|now left].
      - unfold rest2 at 1, rest3 at 1. rewrite H. destruct (poor (a :: h)); [now right|now left].
      - destruct (IH H) as [K|K]; rewrite K, orb_true_r; auto. }
    destruct (sometime _ _ rest h), (sometime _ _ rest2 h), (sometime _ _ rest3 h); try lra; destruct G; discriminate || auto. }
  rewrite Rplus_assoc. eapply Rle_trans; [|apply Rplus_le_compat; [exact P1|exact P23] ]. unfold prob. rewrite <- (expect_add _ _ _ _ _ _).
  apply (expect_mono _ _ _ _ _ _ X). intros h. unfold indicator.
  assert (G : sometime _ _ wrong h = true -> sometime _ _ missed_event h = true \/ sometime _ _ rest h = true).
  { induction h as [|a h IH]; simpl; intros H; apply orb_prop in H; destruct H as [H|H]; try discriminate.
    - unfold missed_event at 1, rest at 1. rewrite H. destruct (All [] N); [now right|now left].
    - unfold missed_event at 1, rest at 1. rewrite H. destruct (All (a :: h) N); [now right|now left].
    - destruct (IH H) as [K|K]; rewrite K, orb_true_r; auto. }
  destruct (sometime _ _ wrong h), (sometime _ _ missed_event h), (sometime _ _ rest h); try lra; destruct G; discriminate || auto.
Qed.
