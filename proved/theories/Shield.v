(* Shields: any agent may act, within a slack that it spends, and a bound of the fallback policy holds less the slack. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Problem Basics Polynomial Stationary Sums Rewards Averages Value Sound Model Learned.
Import ListNotations.
Open Scope R_scope.

(* STATED *)
(* [price j s i]: of choice i of state s at step j (the last one of them for all later steps); None: it is never allowed.
   [commits h s]: in s after h and ever after the fallback alone may act. *)
Record shield := Shield { slack : Q; price : nat -> nat -> nat -> option Q; commits : hist -> nat -> bool }.
Section Rules.
Variables (p : problem) (fallback : nat -> nat -> nat) (S : shield).
Definition falls_back (h : hist) (s i : nat) : bool := Nat.eqb i (fallback (Nat.min (length h) (horizon p)) s).
(* What was spent: the fallback is free. *)
Fixpoint spent (h : hist) : Q :=
  match h with
  | [] => 0%Q
  | (s, i) :: h' => Qplus (spent h') (if falls_back h' s i then 0%Q else
      match price S (Nat.min (length h') (horizon p)) s i with Some g => g | None => 0%Q end)
  end.
Definition allows (h : hist) (s i : nat) : Prop :=
  falls_back h s i = true \/
  commits S h s = false /\ exists g, price S (Nat.min (length h) (horizon p)) s i = Some g /\ Q2R (spent h) + Q2R g <= Q2R (slack S).
(* An agent that the shield guards: whatever else it looks at, it does what is allowed. *)
Definition guarded (a : hist -> nat -> nat -> R) : Prop :=
  forall h s i, (s < states p)%nat -> ends_of p (length h) s = None -> a h s i <> 0 -> allows h s i.
End Rules.
(* Steps of a history, up to s, that did not lower the rank. *)
Fixpoint waits (rank : nat -> nat) (h : hist) (s : nat) : nat :=
  match h with [] => 0 | (s', _) :: h' => (if (rank s <? rank s')%nat then 0 else 1) + waits rank h' s' end.
(* The fallback keeps acting, and acts at the latest when more than so many steps did not lower some rank. *)
Definition patient (S : shield) : Prop :=
  (forall h s i t, commits S h s = true -> commits S ((s, i) :: h) t = true) /\
  exists rank most patience, (forall s, (rank s <= most)%nat) /\ forall h s, (patience < waits rank h s)%nat -> commits S h s = true.
(* Where an agent could wait for ever at no price, and the bound be wrong. *)
Definition needs_patience (max : bool) (p : problem) : bool :=
  match last p, kind_of p with
  | None, (Until | Total) => max
  | None, Reach_reward => negb max
  | _, _ => false
  end.
(* The bound, less the slack. *)
Definition keeps_promise (max : bool) (p : problem) (S : shield) (b : Q) : play -> Prop :=
  worth p (fun f m => if max then low_means p f m (Some (Qminus b (slack S))) else high_means p f m (Qplus b (slack S))).
(* END *)

(* ---------- The checker ---------- *)

Definition affords (max : bool) (p : problem) (hs : hints) (j s i : nat) (c : choice) (g : Q) : bool :=
  let after := backup (factor p) (if max then low_term else high_term) (x hs (Nat.min (Datatypes.S j) (horizon p))) (lam hs j s i) c in
  if max then Qle_bool (x hs j s) (Qplus after g) else finite_edges (endless hs) c && Qle_bool after (Qplus (x hs j s) g).
Definition priced (max : bool) (p : problem) (hs : hints) (S : shield) : bool :=
  whenever p (fun j s => match last p with Some k => (k <=? j)%nat | None => false end || (negb max && endless hs s) ||
    foralli (fun i c => if Nat.eqb i (witness hs j s) then affords max p hs j s i c 0%Q
                        else match price S j s i with Some g => affords max p hs j s i c g | None => true end) 0 (rows p s)).
Definition shields (max : bool) (p : problem) (q : question) (hs : hints) (S : shield) (b : Q) : bool :=
  playable p q && agent_owns q max && negb (nature_owns q max) && owners p q max hs && Qle_bool 0 (slack S) &&
  match kind_of p with Average => false | _ => true end && priced max p hs S &&
  if max then check_low p (game_of p) (rule_for p q true hs) hs && Qle_bool b (x hs 0 (initial p))
  else check_high p (game_of p) (rule_for p q false hs) hs && negb (endless hs (initial p)) && Qle_bool (x hs 0 (initial p)) b.

(* ---------- Proofs ---------- *)

Lemma waits_long rank most h : (forall s, (rank s <= most)%nat) -> forall s, (length h + rank s <= waits rank h s * S most + most)%nat.
Proof.
  intros B. induction h as [|[s' i] h IH]; intros s; simpl length; simpl waits; [specialize (B s); lia|].
  specialize (IH s'). specialize (B s). destruct (rank s <? rank s')%nat eqn:E; [apply Nat.ltb_lt in E|]; lia.
Qed.
Lemma patient_bound S : patient S -> exists T, forall h s, (T <= length h)%nat -> commits S h s = true.
Proof.
  intros (_ & rank & most & N & B & H). exists (Datatypes.S (N * Datatypes.S most + most))%nat. intros h s Hl. apply H.
  pose proof (waits_long rank most h B s). apply Nat.nle_gt. intros C.
  pose proof (Nat.mul_le_mono_r _ _ (Datatypes.S most) C). lia.
Qed.

Section Run.
Variables (p : problem) (hs : hints) (S : shield) (a : hist -> nat -> nat -> R) (n : hist -> nat -> nat -> nat -> R).
Notation G := (game_of p).
Notation P := (Play a n).
Notation K := (horizon p).
Notation paid := (spent p (witness hs) S).
Notation g := (Q2R (factor p)).
Notation v h s := (Q2R (x hs (Nat.min (length (h : hist)) K) s)).
Notation left h := (Q2R (slack S) - Q2R (paid h)).
Hypothesis (LA : legal_agent G (fun _ _ => Any) a) (LN : legal_nature G n).
Hypothesis W : forall s c e, (s < states p)%nat -> In c (rows p s) -> In e (edges c) -> (next e < states p)%nat.
Hypothesis F : 0 <= g <= 1.

Lemma mean_taken h s r f y : (s < states p)%nat -> ends_of p (length h) s = None ->
  (forall i c, nth_error (rows p s) i = Some c -> a h s i <> 0 -> y <= r c + sumi (fun j e => n h s i j * f i (next e)) 0 (edges c)) ->
  y <= mean G P h s r f.
Proof.
  intros Hs Hb H. destruct (LA h s Hs Hb) as (A0 & A1 & _). unfold mean. simpl in *. rewrite <- (weigh_const (rows p s) (a h s) A1 y) at 1.
  apply sumi_le. intros i c Hi. simpl. destruct (Req_EM_T (a h s i) 0) as [->|N]; [lra|]. apply Rmult_le_compat_l; [apply A0|now apply H].
Qed.
Lemma mean_taken_le h s r f y : (s < states p)%nat -> ends_of p (length h) s = None ->
  (forall i c, nth_error (rows p s) i = Some c -> a h s i <> 0 -> r c + sumi (fun j e => n h s i j * f i (next e)) 0 (edges c) <= y) ->
  mean G P h s r f <= y.
Proof.
  intros Hs Hb H. destruct (LA h s Hs Hb) as (A0 & A1 & _). unfold mean. simpl in *. rewrite <- (weigh_const (rows p s) (a h s) A1 y).
  apply sumi_le. intros i c Hi. simpl. destruct (Req_EM_T (a h s i) 0) as [->|N]; [lra|]. apply Rmult_le_compat_l; [apply A0|now apply H].
Qed.
Lemma mean_scaled d h s (r : choice -> R) f :
  mean G P h s (fun c => d * r c) (fun i t => d * f i t) = d * mean G P h s r f.
Proof.
  pose proof (mean_lin G P h s r r f f (d - 1)) as L.
  rewrite (mean_ext G P h s _ (fun c => d * r c) _ (fun i t => d * f i t)) in L by (intros; lra). lra.
Qed.

(* The value of a play against v and what is left of the slack; d is 1 for lower bounds and -1 for upper ones. What [done] says is known
   otherwise; E is what the first k steps do not show. *)
Section Steps.
Variables (d : R) (fine : nat -> bool) (done : hist -> nat -> bool) (Ok : nat -> hist -> Prop) (E : nat -> hist -> nat -> R).
Hypothesis E0 : forall k h s, (s < states p)%nat -> 0 <= E k h s.
Hypothesis Ended : forall h s b, (s < states p)%nat -> fine s = true -> ends_of p (length h) s = Some b -> d * v h s <= d * Q2R b.
Hypothesis Step : forall h s i c, (s < states p)%nat -> fine s = true -> ends_of p (length h) s = None -> done h s = false ->
  Q2R (paid h) <= Q2R (slack S) -> nth_error (rows p s) i = Some c -> a h s i <> 0 ->
  Q2R (paid ((s, i) :: h)) <= Q2R (slack S) /\
  d * v h s <= d * (Q2R (reward c) + sumi (fun j e => n h s i j * (g * v ((s, i) :: h) (next e))) 0 (edges c)) +
               (Q2R (paid ((s, i) :: h)) - Q2R (paid h)) /\
  forall j e, nth_error (edges c) j = Some e -> n h s i j = 0 \/ fine (next e) = true.
Hypothesis Done : forall k h s, Ok k h -> (s < states p)%nat -> fine s = true -> ends_of p (length h) s = None -> done h s = true ->
  d * v h s - E k h s <= d * value G P k h s.
Hypothesis Zero : forall h s, Ok 0%nat h -> (s < states p)%nat -> fine s = true -> ends_of p (length h) s = None -> done h s = false ->
  d * v h s - E 0%nat h s <= 0.
Hypothesis Next : forall k h s, Ok (Datatypes.S k) h -> (s < states p)%nat -> ends_of p (length h) s = None -> done h s = false ->
  (forall i, Ok k ((s, i) :: h)) /\ mean G P h s (fun _ => 0) (fun i t => g * E k ((s, i) :: h) t) <= E (Datatypes.S k) h s.

Lemma run k : forall h s, Ok k h -> (s < states p)%nat -> fine s = true -> Q2R (paid h) <= Q2R (slack S) ->
  d * v h s - left h - E k h s <= d * value G P k h s.
Proof.
  induction k as [|k IH]; intros h s HO Hs Hf Hp; pose proof (E0 0%nat h s Hs) as Z; simpl value;
    destruct (ends_of p (length h) s) as [b|] eqn:Hb.
  - pose proof (Ended h s b Hs Hf Hb). lra.
  - destruct (done h s) eqn:Hd.
    + pose proof (Done 0%nat h s HO Hs Hf Hb Hd) as D. simpl value in D. rewrite Hb in D. lra.
    + pose proof (Zero h s HO Hs Hf Hb Hd). lra.
  - pose proof (E0 (Datatypes.S k) h s Hs). pose proof (Ended h s b Hs Hf Hb). lra.
  - destruct (done h s) eqn:Hd.
    + pose proof (Done (Datatypes.S k) h s HO Hs Hf Hb Hd) as D. simpl value in D. rewrite Hb in D. lra.
    + destruct (Next k h s HO Hs Hb Hd) as [HO' HE].
      apply Rplus_le_reg_r with (E (Datatypes.S k) h s).
      apply Rle_trans with (d * mean G P h s (fun c => Q2R (reward c)) (fun i t => g * value G P k ((s, i) :: h) t) +
        1 * mean G P h s (fun _ => 0) (fun i t => g * E k ((s, i) :: h) t)); [|simpl in *; lra].
      rewrite <- mean_scaled, <- mean_lin.
      replace (d * v h s - left h - E (Datatypes.S k) h s + E (Datatypes.S k) h s) with (d * v h s - left h) by lra.
      apply mean_taken; [exact Hs|exact Hb|]. intros i c Hi Ha.
      destruct (Step h s i c Hs Hf Hb Hd Hp Hi Ha) as (Hp' & HS & HF). destruct (LN h s Hs Hb i c Hi) as [N0 N1]. simpl in N1.
      assert (L : 0 <= left ((s, i) :: h)) by lra.
      assert (Y : sumi (fun j e => n h s i j * (d * (g * v ((s, i) :: h) (next e)) + - (g * left ((s, i) :: h)))) 0 (edges c) <=
        sumi (fun j e => n h s i j * (d * (g * value G P k ((s, i) :: h) (next e)) + 1 * (g * E k ((s, i) :: h) (next e)))) 0 (edges c)).
      { apply sumi_le. intros j e Hj. simpl Nat.add. destruct (HF j e Hj) as [->|Hf']; [lra|].
        apply Rmult_le_compat_l; [apply (N0 j e Hj)|].
        assert (Ht : (next e < states p)%nat) by (apply (W s c e Hs); eapply nth_error_In; eauto).
        specialize (IH ((s, i) :: h) (next e) (HO' i) Ht Hf' Hp'). apply (Rmult_le_compat_l g) in IH; [|lra].
        simpl length in *. lra. }
      rewrite (sumi_ext _ (fun j e => d * (n h s i j * (g * v ((s, i) :: h) (next e))) + - (g * left ((s, i) :: h)) * n h s i j)) in Y
        by (intros; simpl Nat.add; lra).
      rewrite sumi_add, !sumi_scal, N1 in Y. simpl length in *.
      assert (g * left ((s, i) :: h) <= left ((s, i) :: h)) by nra. simpl length in *. lra.
Qed.
End Steps.

(* From where the fallback acts alone, the play is one of the fallback policy. *)
Variables (q : question) (max : bool).
Hypothesis (PL : playable p q = true) (OA : agent_owns q max = true) (OW : owners p q max hs = true).
Hypothesis Gu : guarded p (witness hs) S a.
Definition backed : play :=
  Play (fun h s => if commits S h s then a h s else does (Only (witness hs (Nat.min (length h) K) s))) n.
Lemma backed_legal : legal_agent G (rule_for p q max hs) (agent backed).
Proof.
  intros h s Hs Hb. simpl in *. unfold rule_for. rewrite OA. destruct (commits S h s) eqn:C.
  - destruct (LA h s Hs Hb) as (A0 & A1 & _). split; [exact A0|]. split; [exact A1|]. intros i Hi.
    destruct (Req_EM_T (a h s i) 0) as [Z|Z]; [exact Z|exfalso]. destruct (Gu h s i Hs Hb Z) as [B|[B _]]; [|congruence].
    unfold falls_back in B. now apply Nat.eqb_eq in B.
  - apply does_legal. simpl. pose proof OW as O. unfold owners in O. apply andb_prop in O. destruct O as [O _]. rewrite OA in O.
    apply (whenever_spec p q PL _ O (length h) s Hs Hb).
Qed.
Lemma backed_same : (forall h s i t, commits S h s = true -> commits S ((s, i) :: h) t = true) ->
  forall k h s, commits S h s = true -> value G backed k h s = value G P k h s /\ missed G backed k h s = missed G P k h s.
Proof.
  intros M. induction k as [|k IH]; intros h s C; simpl; destruct (ends_of p (length h) s); auto. unfold mean. simpl. rewrite C.
  split; apply sumi_ext; intros i c _; simpl; do 2 f_equal; apply sumi_ext; intros j e _; simpl;
    destruct (IH ((s, i) :: h) (next e) (M h s i (next e) C)) as [E1 E2]; rewrite ?E1, ?E2; reflexivity.
Qed.

(* Prices make the steps. *)
Definition beyond (h : hist) : bool := match last p with Some k => (k <=? length h)%nat | None => false end.
Notation fine := (fun s => max || negb (endless hs s)).
Hypothesis Pr : priced max p hs S = true.
Hypothesis Sp : if max then supported_low G K n hs else supported_high G K n hs.
Lemma priced_step h s i c : (s < states p)%nat -> fine s = true -> ends_of p (length h) s = None -> beyond h = false ->
  Q2R (paid h) <= Q2R (slack S) -> nth_error (rows p s) i = Some c -> a h s i <> 0 ->
  Q2R (paid ((s, i) :: h)) <= Q2R (slack S) /\
  (if max then 1 else -1) * v h s <= (if max then 1 else -1) *
    (Q2R (reward c) + sumi (fun j e => n h s i j * (g * v ((s, i) :: h) (next e))) 0 (edges c)) + (Q2R (paid ((s, i) :: h)) - Q2R (paid h)) /\
  forall j e, nth_error (edges c) j = Some e -> n h s i j = 0 \/ fine (next e) = true.
Proof.
  intros Hs Hf Hb Hy Hp Hi Ha. pose proof (whenever_spec p q PL _ Pr (length h) s Hs Hb) as D. simpl in D.
  replace (match last p with Some k => (k <=? Nat.min (length h) K)%nat | None => false end) with false in D.
  2:{ unfold beyond in Hy. destruct (last p) as [k|] eqn:EL; [|reflexivity]. unfold horizon. rewrite EL. symmetry.
      apply Nat.leb_gt in Hy. apply Nat.leb_gt. lia. }
  replace (negb max && endless hs s)%bool with false in D by (destruct max; [reflexivity|]; simpl in *; now destruct (endless hs s)).
  simpl in D. pose proof (foralli_spec _ _ _ D i c Hi) as Q. simpl in Q. clear D.
  set (j := Nat.min (length h) K) in *.
  assert (Main : forall z, affords max p hs j s i c z = true ->
    (if max then 1 else -1) * v h s <= (if max then 1 else -1) *
    (Q2R (reward c) + sumi (fun j e => n h s i j * (g * v ((s, i) :: h) (next e))) 0 (edges c)) + Q2R z /\
    forall j e, nth_error (edges c) j = Some e -> n h s i j = 0 \/ fine (next e) = true).
  { intros z Hz. unfold affords in Hz. fold j.
    assert (EX : Nat.min (Datatypes.S j) K = Nat.min (length ((s, i) :: h)) K) by (unfold j; cbn [length]; lia). rewrite EX in Hz.
    assert (TH : these K j h) by reflexivity.
    destruct max.
    - pose proof (Sp j) as Kn. rewrite EX in Kn. apply Qle_bool_R in Hz. rewrite Q2R_plus in Hz.
      pose proof (backup_low G P LN (proj1 F) (these K j) h s i c _ (lam hs j) TH Kn Hs Hb Hi) as BL. cbn [discount game_of nature] in BL.
      split; [lra|]. intros; now right.
    - apply andb_prop in Hz. destruct Hz as [Hz1 Hz]. pose proof (Sp j) as Kn. rewrite EX in Kn. apply Qle_bool_R in Hz. rewrite Q2R_plus in Hz.
      pose proof (backup_high G P LN (proj1 F) (these K j) h s i c _ (lam hs j) TH Kn Hs Hb Hi) as BL. cbn [discount game_of nature] in BL.
      split; [lra|]. intros k e Hk. apply (only_to_spec G P LN _ h s i c k e Hz1 Hs Hb Hi Hk). }
  simpl spent. unfold falls_back in *. fold j in Main |- *. destruct (Nat.eqb i (witness hs j s)) eqn:EW.
  - destruct (Main _ Q) as [M1 M2]. rewrite Q2R_plus, Q2R_0 in *. split; [lra|]. split; [lra|exact M2].
  - destruct (Gu h s i Hs Hb Ha) as [B|(_ & z & Ez & Hz)]; [unfold falls_back in B; fold j in B; congruence|].
    fold j in Ez. rewrite Ez in *. destruct (Main _ Q) as [M1 M2]. rewrite Q2R_plus. split; [lra|]. split; [lra|exact M2].
Qed.
End Run.

Section Promise.
Variables (max : bool) (p : problem) (q : question) (hs : hints) (S : shield).
Notation G := (game_of p).
Notation K := (horizon p).
Notation d := (if max then 1 else -1).
Notation fine := (fun s => max || negb (endless hs s)).
Notation check := (if max then check_low p G (rule_for p q true hs) hs else check_high p G (rule_for p q false hs) hs).
Hypothesis (PL : playable p q = true) (OA : agent_owns q max = true) (EN : nature_owns q max = false) (OW : owners p q max hs = true).
Hypothesis (NA : kind_of p <> Average) (S0 : 0 <= Q2R (slack S)) (Pr : priced max p hs S = true) (C : check = true).

Lemma free_pol j s : pol_of p q j s = Any.
Proof. pose proof OA as O. unfold agent_owns in O. unfold pol_of. now destruct (policy q). Qed.
Lemma stationary (j s : nat) : (K <= j)%nat -> choices_of G j s = choices_of G K s /\ ends G j s = ends G K s /\
  rule_for p q max hs j s = rule_for p q max hs K s.
Proof. intros Hj. pose proof (arena_stationary p q PL max hs j s Hj) as A. unfold arena in A. now rewrite EN in A. Qed.
Lemma stays_inside s c e : (s < states p)%nat -> In c (rows p s) -> In e (edges c) -> (next e < states p)%nat.
Proof. apply (rows_inside p q PL). Qed.
Lemma factors : 0 <= Q2R (factor p) <= 1.
Proof. apply (factor_range p G (posed p q PL) eq_refl). Qed.

Lemma steps_at le term pol k : steps le term G pol hs k = true -> forall j s, (j < k)%nat -> (s < states p)%nat ->
  step_at le term G pol (x hs j) (x hs (Datatypes.S j)) (lam hs j) j s = true.
Proof.
  induction k as [|k IH]; intros H j s Hj Hs; [lia|]. simpl in H. apply andb_prop in H. destruct H as [H1 H2].
  destruct (Nat.eq_dec j k) as [->|N]; [apply (below_spec _ _ H1 s Hs)|apply IH; [exact H2|lia|exact Hs]].
Qed.
(* What ends pay is on the right side of v. *)
Lemma right_side (h : hist) s b : (s < states p)%nat -> fine s = true -> ends_of p (length h) s = Some b ->
  d * Q2R (x hs (Nat.min (length h) K) s) <= d * Q2R b.
Proof.
  intros Hs Hf Hb. pose proof C as C'. destruct (Nat.le_gt_cases K (length h)) as [L|L].
  - rewrite Nat.min_r by exact L. assert (Hb' : ends_of p K s = Some b) by (now rewrite <- (ends_late p q PL (length h))).
    destruct max; unfold check_low, check_high in C'; split_andb C'; pose proof (below_spec _ _ C'1 s Hs) as B; simpl in Hf;
      [unfold base_low in B|unfold base_high in B; apply negb_true_iff in Hf];
      (destruct (last p); [simpl in B; rewrite Hb' in B; apply Qle_bool_R in B; lra|]);
      destruct (kind_of p); try discriminate; try congruence;
      unfold sum_low_at, sum_high_at, reach_low_at, reach_high_at, disc_low_at, disc_high_at in B; rewrite ?Hf in B; simpl in B; rewrite Hb' in B;
      try (apply andb_prop in B; destruct B as [_ B]); apply Qle_bool_R in B; lra.
  - rewrite Nat.min_l by lia. destruct max; unfold check_low, check_high in C'; split_andb C';
      pose proof (steps_at _ _ _ _ C'0 (length h) s L Hs) as D; unfold step_at in D; simpl in D; rewrite Hb in D; apply Qle_bool_R in D; lra.
Qed.
(* So is v itself after the last step, and where upper bounds are not negative. *)
Lemma nothing_more s : (s < states p)%nat -> fine s = true -> ends_of p K s = None ->
  (exists k, last p = Some k) \/ max = false /\ (kind_of p = Until \/ kind_of p = Total) -> d * Q2R (x hs K s) <= 0.
Proof.
  intros Hs Hf Hb Hc. pose proof C as C'.
  destruct max; unfold check_low, check_high in C'; split_andb C'; pose proof (below_spec _ _ C'1 s Hs) as B; simpl in Hf;
    [unfold base_low in B|unfold base_high in B; apply negb_true_iff in Hf];
    (destruct (last p); [simpl in B; rewrite Hb in B; apply Qle_bool_R in B; rewrite Q2R_0 in B; lra|]);
    (destruct Hc as [[? ?]|[? Hc]]; [discriminate|]); [discriminate|].
  assert (D : Qle_bool 0 (x hs K s) = true).
  { destruct Hc as [Hc|Hc]; rewrite Hc in B; unfold sum_high_at in B; rewrite Hf in B; simpl in B; rewrite Hb in B; now split_andb B. }
  apply Qle_bool_R in D. rewrite Q2R_0 in D. lra.
Qed.

Variables (a : hist -> nat -> nat -> R) (n : hist -> nat -> nat -> nat -> R).
Notation P := (Play a n).
Notation v0 := (Q2R (x hs 0 (initial p))).
Notation f k := (value G P k [] (initial p)).
Notation m k := (missed G P k [] (initial p)).
Hypothesis (LA' : legal_agent G (pol_of p q) a) (LN : legal_nature G n) (Gu : guarded p (witness hs) S a).
Hypothesis Sp : if max then supported_low G K n hs else supported_high G K n hs.
Hypothesis F0 : fine (initial p) = true.
Lemma LA : legal_agent G (fun _ _ => Any) a.
Proof. intros h s Hs Hb. destruct (LA' h s Hs Hb) as (A0 & A1 & _). repeat split; auto. Qed.
Lemma starts : (initial p < states p)%nat. Proof. exact (initial_in p (posed p q PL)). Qed.
Lemma mean_flat h s c : (s < states p)%nat -> ends_of p (length h) s = None -> mean G P h s (fun _ => 0) (fun _ _ => c) <= c.
Proof.
  intros Hs Hb. apply (mean_taken_le p a n LA); auto. intros i e Hi _. destruct (LN h s Hs Hb i e Hi) as [_ N1]. simpl in N1.
  rewrite (sumi_ext _ (fun j _ => c * n h s i j)) by (intros; lra). rewrite sumi_scal, N1. lra.
Qed.

(* What [run] says of the beginning. *)
Lemma from_start (done : hist -> nat -> bool) (Ok : nat -> hist -> Prop) (E : nat -> hist -> nat -> R) k :
  (forall k h s, (s < states p)%nat -> 0 <= E k h s) -> (forall h s, done h s = false -> beyond p h = false) ->
  (forall k h s, Ok k h -> (s < states p)%nat -> fine s = true -> ends_of p (length h) s = None -> done h s = true ->
    d * Q2R (x hs (Nat.min (length h) K) s) - E k h s <= d * value G P k h s) ->
  (forall h s, Ok 0%nat h -> (s < states p)%nat -> fine s = true -> ends_of p (length h) s = None -> done h s = false ->
    d * Q2R (x hs (Nat.min (length h) K) s) - E 0%nat h s <= 0) ->
  (forall k h s, Ok (Datatypes.S k) h -> (s < states p)%nat -> ends_of p (length h) s = None -> done h s = false ->
    (forall i, Ok k ((s, i) :: h)) /\ mean G P h s (fun _ => 0) (fun i t => Q2R (factor p) * E k ((s, i) :: h) t) <= E (Datatypes.S k) h s) ->
  Ok k [] -> d * v0 - Q2R (slack S) - E k [] (initial p) <= d * f k.
Proof.
  intros E0 Hy HD HZ HN HO.
  pose proof (run p hs S a n LA LN stays_inside factors d fine done Ok E E0 right_side) as R.
  specialize (R (fun h s i c Hs Hf Hb Hd Hp Hi Ha =>
    priced_step p hs S a n LN factors q max PL OA OW Gu Pr Sp h s i c Hs Hf Hb (Hy h s Hd) Hp Hi Ha) HD HZ HN k [] (initial p) HO starts F0).
  simpl in R. rewrite Q2R_0 in R. specialize (R S0). lra.
Qed.

Ltac from done Ok E k := let R := fresh in pose proof (from_start done Ok E k) as R; cbv beta in R; rewrite ?Rminus_0_r in R; apply R; clear R.
Lemma bounded_promise k : last p = Some k -> d * v0 - Q2R (slack S) <= d * f k.
Proof.
  intros HL. assert (HK : K = k) by (unfold horizon; now rewrite HL).
  from (fun (h : hist) (_ : nat) => beyond p h) (fun k (h : hist) => k + length h = K)%nat (fun (_ : nat) (_ : hist) (_ : nat) => 0) k.
  - intros; lra.
  - auto.
  - intros k' h s HO Hs Hf Hb Hy. unfold beyond in Hy. rewrite HL in Hy. apply Nat.leb_le in Hy.
    assert (k' = 0 /\ length h = K)%nat as [-> HlK] by lia. simpl. rewrite Hb, Rmult_0_r, Rminus_0_r, Nat.min_r by lia.
    apply nothing_more; auto; [now rewrite <- HlK|left; eauto].
  - intros h s HO Hs Hf Hb Hy. unfold beyond in Hy. rewrite HL in Hy. apply Nat.leb_gt in Hy. simpl in HO. lia.
  - intros k' h s HO Hs Hb Hy. split; [intros i; simpl; lia|]. rewrite Rmult_0_r. now apply mean_flat.
  - simpl. lia.
Qed.

Hypothesis HL : last p = None.
Lemma never_beyond h : beyond p h = false. Proof. unfold beyond. now rewrite HL. Qed.
Lemma safe_promise k : max = false -> kind_of p = Until \/ kind_of p = Total -> (K <= k)%nat ->
  d * v0 - Q2R (slack S) <= d * f k.
Proof.
  intros HM HK Hk. from (fun (_ : hist) (_ : nat) => false) (fun k (h : hist) => K <= k + length h)%nat (fun (_ : nat) (_ : hist) (_ : nat) => 0) k.
  - intros; lra.
  - intros; apply never_beyond.
  - intros; discriminate.
  - intros h s HO Hs Hf Hb _. simpl in HO. rewrite Rminus_0_r, Nat.min_r by lia. apply nothing_more; auto.
    rewrite <- Hb. symmetry. now apply (ends_late p q PL).
  - intros k' h s HO Hs Hb _. split; [intros i; simpl; lia|]. rewrite Rmult_0_r. now apply mean_flat.
  - simpl. lia.
Qed.
(* No step counts. *)
Lemma no_steps : kind_of p = Reach_reward \/ kind_of p = Discounted -> K = 0%nat.
Proof.
  intros HK. unfold horizon. rewrite HL. pose proof (posed p q PL) as H. unfold well_posed in H.
  apply andb_prop in H. destruct H as [_ H]. destruct HK as [HK|HK]; rewrite HK in H; split_andb H; now apply Nat.eqb_eq.
Qed.
Lemma largest : exists B, 0 <= B /\ forall s, (s < states p)%nat -> d * Q2R (x hs 0 s) <= B.
Proof. apply (bounded (fun s => d * Q2R (x hs 0 s))). Qed.
Lemma discounted_promise : kind_of p = Discounted -> exists B, forall k, d * v0 - Q2R (slack S) - Q2R (factor p) ^ k * B <= d * f k.
Proof.
  intros HK. pose proof (no_steps (or_intror HK)) as K0. destruct largest as (B & B0 & HB). pose proof factors as FR. exists B. intros k.
  from (fun (_ : hist) (_ : nat) => false) (fun (_ : nat) (_ : hist) => True) (fun k (_ : hist) (_ : nat) => Q2R (factor p) ^ k * B) k.
  - intros k' h s _. apply Rmult_le_pos; [now apply pow_le|exact B0].
  - intros; apply never_beyond.
  - intros; discriminate.
  - intros h s _ Hs _ _ _. rewrite K0, Nat.min_0_r. simpl. specialize (HB s Hs). lra.
  - intros k' h s _ Hs Hb _. split; [auto|]. rewrite <- Rmult_assoc. now apply mean_flat.
  - exact I.
Qed.
Lemma reach_promise : kind_of p = Reach_reward -> exists B, 0 <= B /\ forall k, d * v0 - Q2R (slack S) - B * m k <= d * f k.
Proof.
  intros HK. pose proof (no_steps (or_introl HK)) as K0. destruct largest as (B & B0 & HB). exists B. split; [exact B0|]. intros k.
  assert (F1 : Q2R (factor p) = 1) by (apply (factor_one p G (posed p q PL) eq_refl); congruence).
  from (fun (_ : hist) (_ : nat) => false) (fun (_ : nat) (_ : hist) => True) (fun k h s => B * missed G P k h s) k.
  - intros k' h s Hs. apply Rmult_le_pos; [exact B0|].
    apply (missed_bounds G (fun _ _ => Any) P K LA LN (fun j s' Hj => match stationary j s' Hj with conj A (conj E _) => conj A (conj E eq_refl) end)
      (fun s' c e => stays_inside s' c e)); [unfold late; rewrite K0; lia|exact Hs].
  - intros; apply never_beyond.
  - intros; discriminate.
  - intros h s _ Hs _ Hb _. simpl. rewrite Hb, K0, Nat.min_0_r. specialize (HB s Hs). lra.
  - intros k' h s _ Hs Hb _. split; [auto|]. simpl. rewrite Hb, <- (mean_scaled p a n B h s (fun _ => 0)). right.
    apply mean_ext; intros; rewrite ?F1; lra.
  - exact I.
Qed.

(* With a patience. *)
Hypothesis Pa : patient S.
Notation backed := (backed p hs S a n).
Lemma patient_promise eps : 0 < eps -> kind_of p <> Discounted ->
  (exists k1, forall k h s, (k1 <= k)%nat -> late K h -> (s < states p)%nat -> fine s = true -> d * Q2R (x hs K s) - eps <= d * value G backed k h s) ->
  exists k1, forall k, (k1 <= k)%nat -> d * v0 - Q2R (slack S) - eps <= d * f k.
Proof.
  intros He HK (k1 & H1). destruct (patient_bound S Pa) as (T & HT). destruct Pa as [Mo _].
  assert (F1 : Q2R (factor p) = 1) by (now apply (factor_one p G (posed p q PL) eq_refl)).
  exists (k1 + Nat.max T K)%nat. intros k Hk.
  from (fun (h : hist) s => (K <=? length h)%nat && commits S h s) (fun k (h : hist) => k1 + (Nat.max T K - length h) <= k)%nat
    (fun (_ : nat) (_ : hist) (_ : nat) => eps) k.
  - intros; lra.
  - intros; apply never_beyond.
  - intros k' h s HO Hs Hf Hb Hd. apply andb_prop in Hd. destruct Hd as [Hd1 Hd2]. apply Nat.leb_le in Hd1. rewrite Nat.min_r by exact Hd1.
    destruct (backed_same p hs S a n Mo k' h s Hd2) as [<- _]. apply H1; auto. lia.
  - intros h s HO Hs Hf Hb Hd. exfalso. rewrite HT in Hd by lia. rewrite andb_true_r in Hd. apply Nat.leb_gt in Hd. lia.
  - intros k' h s HO Hs Hb Hd. rewrite F1, Rmult_1_l. split; [|now apply mean_flat]. intros i. simpl length.
    assert (length h < Nat.max T K)%nat; [|lia]. apply Nat.nle_gt. intros Hl. rewrite HT in Hd by lia.
    rewrite andb_true_r in Hd. apply Nat.leb_gt in Hd. lia.
  - simpl. lia.
Qed.
Lemma patient_end eps : 0 < eps -> kind_of p = Reach_reward ->
  (exists k1, forall k h s, (k1 <= k)%nat -> late K h -> (s < states p)%nat -> fine s = true -> missed G backed k h s <= eps) ->
  exists k1, forall k, (k1 <= k)%nat -> m k <= eps.
Proof.
  intros He HK (k1 & H1). destruct (patient_bound S Pa) as (T & HT). destruct Pa as [Mo _]. pose proof (no_steps (or_introl HK)) as K0.
  assert (Early : forall k h s, (k1 <= k)%nat -> (s < states p)%nat -> fine s = true -> commits S h s = true -> missed G P k h s <= eps).
  { intros k h s Hk Hs Hf Hc. destruct (backed_same p hs S a n Mo k h s Hc) as [_ <-]. apply H1; auto. unfold late. rewrite K0. lia. }
  assert (Main : forall k h s, (k1 + (T - length h) <= k)%nat -> (s < states p)%nat -> fine s = true ->
    Q2R (spent p (witness hs) S h) <= Q2R (slack S) -> missed G P k h s <= eps).
  { induction k as [|k IH]; intros h s HO Hs Hf Hp; (destruct (commits S h s) eqn:Hc; [apply Early; auto; lia|]);
      (assert (length h < T)%nat by (apply Nat.nle_gt; intros Hl; rewrite HT in Hc; [discriminate|exact Hl])); [lia|].
    simpl. destruct (ends_of p (length h) s) eqn:Hb; [lra|]. apply (mean_taken_le p a n LA); auto. intros i c Hi Ha.
    destruct (priced_step p hs S a n LN factors q max PL OA OW Gu Pr Sp h s i c Hs Hf Hb (never_beyond h) Hp Hi Ha) as (Hp' & _ & HF).
    destruct (LN h s Hs Hb i c Hi) as [N0 N1]. simpl in N1.
    apply Rle_trans with (0 + sumi (fun j _ => eps * n h s i j) 0 (edges c)); [|rewrite sumi_scal, N1; lra].
    apply Rplus_le_compat_l, sumi_le. intros j e Hj. simpl. destruct (HF j e Hj) as [->|Hf']; [lra|]. rewrite (Rmult_comm eps).
    apply Rmult_le_compat_l; [apply (N0 j e Hj)|]. apply IH; auto; [simpl; lia|].
    apply (stays_inside s c e Hs); eapply nth_error_In; eauto. }
  exists (k1 + T)%nat. intros k Hk. apply Main; auto; [simpl; lia|apply starts|]. simpl. now rewrite Q2R_0.
Qed.
End Promise.

(* Whatever the agent does that the shield allows, against one nature that keeps to the hints' numbers. *)
Theorem shield_against max p q hs S b n : shields max p q hs S b = true -> (needs_patience max p = true -> patient S) ->
  legal_nature (game_of p) n ->
  (if max then supported_low (game_of p) (horizon p) n hs else supported_high (game_of p) (horizon p) n hs) ->
  forall a, legal_agent (game_of p) (pol_of p q) a -> guarded p (witness hs) S a -> keeps_promise max p S b (Play a n).
Proof.
  intros H Pa LN Sp a L Gu. unfold shields in H. apply andb_prop in H. destruct H as [H C]. split_andb H.
  rename H into PL, H5 into OA, H4 into EN, H3 into OW, H2 into S0, H1 into NA', H0 into Pr.
  apply negb_true_iff in EN. apply Qle_bool_R in S0. rewrite Q2R_0 in S0.
  assert (NA : kind_of p <> Average) by (intros E; now rewrite E in NA').
  assert (CK : (if max then check_low p (game_of p) (rule_for p q true hs) hs else check_high p (game_of p) (rule_for p q false hs) hs) = true /\
    (max || negb (endless hs (initial p)) = true) /\ (if max then Q2R b <= Q2R (x hs 0 (initial p)) else Q2R (x hs 0 (initial p)) <= Q2R b)).
  { destruct max; split_andb C; repeat split; auto; now apply Qle_bool_R. }
  clear C. destruct CK as (C & F0 & Hb).
  assert (Eventually : last p = None -> kind_of p <> Reach_reward \/ max = false ->
    (forall eps, 0 < eps -> exists k1, forall k, (k1 <= k)%nat ->
      (if max then 1 else -1) * Q2R (x hs 0 (initial p)) - Q2R (slack S) - eps <=
      (if max then 1 else -1) * value (game_of p) (Play a n) k [] (initial p)) ->
    (max = false -> kind_of p = Reach_reward -> vanishes (fun k => missed (game_of p) (Play a n) k [] (initial p))) ->
    keeps_promise max p S b (Play a n)).
  { intros HL HR Ev Va. unfold keeps_promise, worth. destruct max.
    - unfold low_means. rewrite HL. assert (A : at_least (fun k => value (game_of p) (Play a n) k [] (initial p)) (Some (Qminus b (slack S)))).
      { intros eps He. destruct (Ev eps He) as (k1 & H1). exists k1. intros k Hk. specialize (H1 k Hk). rewrite Q2R_minus. lra. }
      destruct (kind_of p); try exact A; [destruct HR; congruence|congruence].
    - unfold high_means. rewrite HL. assert (A : at_most (fun k => value (game_of p) (Play a n) k [] (initial p)) (Qplus b (slack S))).
      { intros eps He. destruct (Ev eps He) as (k1 & H1). exists k1. intros k Hk. specialize (H1 k Hk). rewrite Q2R_plus. lra. }
      destruct (kind_of p); try exact A; [split; [now apply Va|exact A]|congruence]. }
  pose proof (backed_legal p hs S a n (LA p q a L) q max PL OA OW Gu) as LB.
  pose proof (stationary max p q hs PL EN) as St. pose proof (stays_inside p q PL) as W.
  destruct (last p) as [k|] eqn:HL.
  - pose proof (bounded_promise max p q hs S PL OA EN OW NA S0 Pr C a n L LN Gu Sp F0 k HL) as R.
    unfold keeps_promise, worth. destruct max; unfold low_means, high_means; rewrite HL; rewrite ?Q2R_minus, ?Q2R_plus; lra.
  - assert (F1 : kind_of p <> Discounted -> Q2R (factor p) = 1) by (apply (factor_one p (game_of p) (posed p q PL) eq_refl)).
    assert (Bounded : kind_of p <> Next /\ kind_of p <> Cumulative).
    { pose proof (posed p q PL) as WP. unfold well_posed in WP. rewrite HL in WP. split; intros E; rewrite E in WP; now split_andb WP. }
    pose proof (posed p q PL) as WP.
    assert (Sums : kind_of p = Until \/ kind_of p = Total -> keeps_promise max p S b (Play a n)).
    { intros HK. apply Eventually; auto; [left; destruct HK; congruence| |destruct HK; congruence]. intros eps He. destruct max.
      - assert (Pa' : patient S) by (apply Pa; unfold needs_patience; rewrite HL; now destruct HK as [-> | ->]).
        assert (D : kind_of p <> Discounted) by (destruct HK; congruence).
        apply (patient_promise true p q hs S PL OA EN OW NA S0 Pr C a n L LN Gu Sp F0 HL Pa' eps He D).
        unfold check_low in C. split_andb C. pose proof (below_spec _ _ C1) as B. unfold base_low in B. rewrite HL in B.
        assert (B' : forall s, (s < size (game_of p))%nat ->
          sum_low_at (game_of p) (horizon p) (rule_for p q true hs) (x hs (horizon p)) (endless hs) (rank hs) (layer hs) (lam hs (horizon p)) s = true)
          by (intros s Hs; specialize (B s Hs); now destruct HK as [E|E]; rewrite E in B).
        destruct (sum_low (game_of p) (rule_for p q true hs) (backed p hs S a n) (horizon p) LB LN St W (F1 D) _ _ _ _ _ B'
          (known_late_low _ _ _ _ Sp) eps He) as (k1 & H1).
        exists k1. intros k h s Hk Hl Hs _. specialize (H1 k h s Hk Hl Hs). lra.
      - exists (horizon p). intros k Hk. pose proof (safe_promise false p q hs S PL OA EN OW NA S0 Pr C a n L LN Gu Sp F0 HL k eq_refl HK Hk). lra. }
    assert (Kinds : (kind_of p = Until \/ kind_of p = Total) \/ kind_of p = Reach_reward \/ kind_of p = Discounted)
      by (destruct Bounded; destruct (kind_of p); auto; congruence).
    destruct Kinds as [HK|[HK|HK]]; [now apply Sums| |].
    + destruct max.
      * destruct (reach_promise true p q hs S PL OA EN OW NA S0 Pr C a n L LN Gu Sp F0 HL HK) as (B & B0 & R).
        unfold keeps_promise, worth, low_means. rewrite HL, HK. intros V eps He.
        destruct (V (eps / (B + 1))) as (k0 & V0); [apply Rdiv_lt_0_compat; lra|]. exists k0. intros k Hk. specialize (V0 k Hk). specialize (R k).
        assert (E : eps / (B + 1) * (B + 1) = eps) by (field; lra). rewrite Q2R_minus.
        assert (M : 0 <= eps / (B + 1)) by (left; apply Rdiv_lt_0_compat; lra). nra.
      * assert (Pa' : patient S) by (apply Pa; unfold needs_patience; now rewrite HL, HK).
        unfold check_high in C. pose proof C as C'. split_andb C'. pose proof (below_spec _ _ C'1) as B. unfold base_high in B. rewrite HL, HK in B.
        pose proof (reach_high (game_of p) (rule_for p q false hs) (backed p hs S a n) (horizon p) LB LN St W (F1 ltac:(congruence)) _ _ _ _ B
          (known_late_high _ _ _ _ Sp)) as RH.
        apply Eventually; auto.
        -- intros eps He. apply (patient_promise false p q hs S PL OA EN OW NA S0 Pr C a n L LN Gu Sp F0 HL Pa' eps He ltac:(congruence)).
           destruct (RH eps He) as (k1 & H1). exists k1. intros k h s Hk Hl Hs Hf. simpl in Hf. apply negb_true_iff in Hf.
           destruct (H1 k h s Hk Hl Hs Hf). lra.
        -- intros _ _ eps He. apply (patient_end false p q hs S PL OA OW S0 Pr a n L LN Gu Sp F0 HL Pa' eps He HK).
           destruct (RH eps He) as (k1 & H1). exists k1. intros k h s Hk Hl Hs Hf. simpl in Hf. apply negb_true_iff in Hf.
           now destruct (H1 k h s Hk Hl Hs Hf).
    + destruct (discounted_promise max p q hs S PL OA EN OW NA S0 Pr C a n L LN Gu Sp F0 HL HK) as (B & R).
      apply Eventually; auto; [left; congruence| |congruence]. intros eps He.
      destruct (Rewards.small (game_of p) (proj1 (factor_range p (game_of p) WP eq_refl)) (factor_less p (game_of p) WP eq_refl HK) (Rabs B) eps (Rabs_pos B) He) as (k1 & H1).
      exists k1. intros k Hk. specialize (H1 k Hk). specialize (R k). pose proof (Rle_abs B). simpl discount in H1.
      assert (0 <= Q2R (factor p) ^ k) by (apply pow_le; apply (factor_range p (game_of p) WP eq_refl)). nra.
Qed.

(* The program's answer about a shield. *)
(* STATED *)
Theorem shield_sound max p q hs S b : shields max p q (alone hs) S b = true -> (needs_patience max p = true -> patient S) ->
  (exists a, legal_agent (game_of p) (pol_of p q) a /\ guarded p (witness hs) S a) /\ (exists n, legal_nature (game_of p) n) /\
  forall a n, legal_agent (game_of p) (pol_of p q) a -> guarded p (witness hs) S a -> legal_nature (game_of p) n ->
    keeps_promise max p S b (Play a n).
(* END *)
Proof.
  intros H Pa. pose proof H as H'. unfold shields in H'. apply andb_prop in H'. destruct H' as [H' _]. split_andb H'.
  split; [|split; [now apply (natures p q)|]].
  - destruct (agent_owner p q H' max (alone hs) H'3 H'5) as (a & L1 & L2). exists a. split; [exact L1|].
    intros h s i Hs Hb Ha. left. destruct (L2 h s Hs Hb) as (_ & _ & O). unfold rule_for in O. rewrite H'5 in O. simpl in O.
    unfold falls_back. apply Nat.eqb_eq. destruct (Nat.eq_dec i (witness hs (Nat.min (length h) (horizon p)) s)) as [E|E]; [exact E|].
    now elim Ha; apply O.
  - intros a n LA Gu LN. apply (shield_against max p q (alone hs) S b n H Pa LN); auto. destruct max; [apply alone_low|apply alone_high].
Qed.

(* The same at the truth of a model with parameters, wherever the facts hold that its sets are proved by. Over a domain there are none of
   data; of learned ones it is this that fails with probability at most delta in the proofs of [learned_sound] and [fixed_sound]. *)
(* STATED *)
Theorem shield_true M (theta : nat -> R) N evs (cut : (nat -> Q) -> Q -> option poly) stakes c (max : bool) S b : instance M theta -> sets_ok M N evs cut stakes c = true ->
  (forall t r p, cut t r = Some p -> 0 <= poly_at theta p) -> bets_hold M theta stakes ->
  (forall g, (g < N)%nat -> Q2R (elow c g) <= poly_at theta (about (evs g)) <= Q2R (ehigh c g)) ->
  let hs := if max then low c else high c in
  shields max (boxed M (pays c (negb max)) (sides c)) (ask c) hs S b = true -> (needs_patience max (shape M) = true -> patient S) ->
  forall a, legal_agent (game_of (skeleton M)) (pol_of (skeleton M) (ask c)) a -> guarded (skeleton M) (witness hs) S a ->
    let f (k : nat) := true_value M theta a k [] (initial (shape M)) in
    let m (k : nat) := missed (game_of (skeleton M)) (Play a (truth M theta)) k [] (initial (shape M)) in
    if max then low_means (shape M) f m (Some (Qminus b (slack S))) else high_means (shape M) f m (Qplus b (slack S)).
(* END *)
Proof.
  intros T H2 CT BT EV hs H Pa a La Gu f m.
  destruct (means_true M theta T N evs cut stakes c CT BT EV (pays c (negb max)) (pays c (negb max)) (sides c) H2) as [SL SH].
  pose proof (pays_true M theta T N evs cut stakes c CT BT EV H2) as PT.
  assert (LN : legal_nature (game_of (boxed M (pays c (negb max)) (sides c))) (truth M theta))
    by (apply (nature_boxed M theta T), (sides_true M theta T N evs cut stakes c CT BT EV H2)).
  pose proof H as PL. unfold shields in PL. apply andb_prop in PL. destruct PL as [PL _]. split_andb PL.
  pose proof (agent_boxed M _ (pays c (negb max)) _ (sides c) _ _ La) as La'.
  pose proof (shield_against max _ (ask c) hs S b (truth M theta) H Pa LN ltac:(unfold hs; destruct max; assumption) a La' Gu) as R.
  unfold keeps_promise, worth in R.
  pose proof (fun w => value_boxed M theta T w (pays c (negb max)) (sides c) (ask c) a PL La') as V. unfold hs in *. clear hs.
  destruct max; simpl negb in *.
  - change (low_means (boxed M (pays c false) (sides c))) with (low_means (shape M)) in R.
    apply (low_more (shape M) (fun k => value (game_of (boxed M (pays c false) (sides c))) (Play a (truth M theta)) k [] (initial (shape M))) _
      (fun k => missed (game_of (boxed M (pays c false) (sides c))) (Play a (truth M theta)) k [] (initial (shape M)))); [|intros k; apply missed_boxed|exact R].
    intros k. pose proof (V 1 ltac:(intros s i ch Hs Hi; specialize (PT s i ch Hs Hi); lra) k [] (initial (shape M)) (initial_in _ (posed _ _ PL))). unfold f. lra.
  - change (high_means (boxed M (pays c true) (sides c))) with (high_means (shape M)) in R.
    apply (high_less (shape M) (fun k => value (game_of (boxed M (pays c true) (sides c))) (Play a (truth M theta)) k [] (initial (shape M))) _
      (fun k => missed (game_of (boxed M (pays c true) (sides c))) (Play a (truth M theta)) k [] (initial (shape M)))); [|intros k; apply missed_boxed|exact R].
    intros k. pose proof (V (-1) ltac:(intros s i ch Hs Hi; specialize (PT s i ch Hs Hi); lra) k [] (initial (shape M)) (initial_in _ (posed _ _ PL))). unfold f. lra.
Qed.
