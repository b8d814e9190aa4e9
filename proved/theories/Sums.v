(* Reaching and total rewards without a bound on the steps: nothing is negative, k-step values rise. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Basics Stationary.
Import ListNotations.
Open Scope R_scope.

(* ---------- The checker, at one state ---------- *)

(* Where the play is over as far as a lower bound x is concerned. *)
Definition over (en : nat -> option Q) (x : nat -> Q) (endless : nat -> bool) (t : nat) : bool :=
  match en t with Some _ => true | None => endless t || Qle_bool (x t) 0 end.
Definition closer en x endless (rank : nat -> nat) (s t : nat) : bool :=
  over en x endless t || (rank t <? rank s)%nat.
Definition moves en x endless rank (s : nat) (c : choice) : bool :=
  Qltb 0 (reward c) || surely (closer en x endless rank s) (edges c).

Definition unending (en : nat -> option Q) (endless : nat -> bool) (t : nat) : bool :=
  match en t with Some _ => false | None => endless t end.
Definition lower_layer en endless (layer : nat -> nat) (s t : nat) : bool :=
  unending en endless t && (layer t <? layer s)%nat.
Definition same_layer en endless (layer : nat -> nat) (s t : nat) : bool :=
  unending en endless t && (layer t <=? layer s)%nat.
Definition nearer en endless (layer rank : nat -> nat) (s t : nat) : bool :=
  same_layer en endless layer s t && (rank t <? rank s)%nat.
Definition earns_forever en endless (layer rank : nat -> nat) (r : rule) (s : nat) (cs : list choice) : bool :=
  forever r (fun c => surely (lower_layer en endless layer s) (edges c))
            (fun c => only_to (same_layer en endless layer s) (edges c))
            (fun c => Qltb 0 (reward c) || surely (nearer en endless layer rank s) (edges c)) cs.

Definition sum_low_at (G : game) (K : nat) (pol : nat -> nat -> rule) (x : nat -> Q) (endless : nat -> bool)
    (rank layer : nat -> nat) (lam : nat -> nat -> support) (s : nat) : bool :=
  match ends G K s with
  | Some b => Qle_bool 0 b && Qle_bool (x s) b
  | None =>
      let cs := choices_of G K s in let r := pol K s in
      rule_all r (fun _ c => Qle_bool 0 (reward c)) cs &&
      (if endless s then earns_forever (ends G K) endless layer rank r s cs
       else Qle_bool (x s) 0 ||
            (rule_le Qle_bool r (x s) (fun i c => backup (discount G) low_term x (lam s i) c) cs &&
             rule_some r (fun _ => moves (ends G K) x endless rank s) cs))
  end.

Definition finite_edges (endless : nat -> bool) (c : choice) : bool := only_to (fun t => negb (endless t)) (edges c).
Definition sum_high_at (G : game) (K : nat) (pol : nat -> nat -> rule) (x : nat -> Q) (endless : nat -> bool)
    (lam : nat -> nat -> support) (s : nat) : bool :=
  if endless s then true else
  match ends G K s with
  | Some b => Qle_bool b (x s)
  | None =>
      let cs := choices_of G K s in let r := pol K s in
      Qle_bool 0 (x s) && rule_all r (fun _ => finite_edges endless) cs &&
      rule_le geb r (x s) (fun i c => backup (discount G) high_term x (lam s i) c) cs
  end.

(* ---------- Proofs ---------- *)

Section Sums.
Variables (G : game) (pol : nat -> nat -> rule) (P : play) (K : nat).
Hypothesis (LA : legal_agent G pol (agent P)) (LN : legal_nature G (nature P)).
Notation cs s := (choices_of G K s).
Notation en s := (ends G K s).
Notation pl s := (pol K s).
Hypothesis St : forall j s, (K <= j)%nat -> choices_of G j s = cs s /\ ends G j s = en s /\ pol j s = pl s.
Hypothesis W : forall s c e, (s < size G)%nat -> In c (cs s) -> In e (edges c) -> (next e < size G)%nat.
Hypothesis D1 : Q2R (discount G) = 1.
Notation used s i c := (nth_error (cs s) i = Some c /\ usable (pl s) i = true).
Notation late := (late K).
Local Notation at_mono := (at_mono G pol P K LA LN St).
Local Notation at_ge := (at_ge G pol P K LA St).
Local Notation at_le := (at_le G pol P K LA St).
Local Notation at_law := (at_law G pol P K LN St).
Local Notation at_agent := (at_agent G pol P K LA St).
Local Notation at_mean := (at_mean G pol P K St).
Local Notation at_const := (at_const G pol P K LA St).
Local Notation value_S := (value_S G pol P K St).
Local Notation value_end := (value_end G pol P K St).
Local Notation value_0 := (value_0 G pol P K St).
Local Notation inside := (inside G K W).
Local Notation edges_ge := (edges_ge G pol P K LN St).
Local Notation edges_le := (edges_le G pol P K LN St).

Lemma sum_S k h s : late h -> en s = None -> value G P (S k) h s =
  mean G P h s (fun c => Q2R (reward c)) (fun i t => value G P k ((s, i) :: h) t).
Proof. intros Hl Hb. rewrite value_S by assumption. apply mean_ext; [reflexivity|]. intros i t. rewrite D1. lra. Qed.

Lemma times_one h s (x : nat -> Q) : mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (discount G) * Q2R (x t)) =
  mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (x t)).
Proof. apply mean_ext; [reflexivity|]. intros i t. rewrite D1. lra. Qed.
Lemma D0 : 0 <= Q2R (discount G). Proof. rewrite D1. lra. Qed.

(* ---------- Upper bounds ---------- *)

Section High.
Variables (x : nat -> Q) (endless : nat -> bool) (lam : nat -> nat -> support).
Hypothesis C : forall s, (s < size G)%nat -> sum_high_at G K pol x endless lam s = true.
Hypothesis Kn : known_high G (nature P) late x lam.

Lemma sum_high k : forall h s, late h -> (s < size G)%nat -> endless s = false -> value G P k h s <= Q2R (x s).
Proof.
  induction k as [|k IH]; intros h s Hl Hs He; pose proof (C s Hs) as D; unfold sum_high_at in D; rewrite He in D;
    destruct (en s) as [b|] eqn:Hb; try (rewrite (value_end _ h s b Hl Hb); now apply Qle_bool_R);
    apply andb_prop in D; destruct D as [D D2]; apply andb_prop in D; destruct D as [D0' D1'].
  - rewrite value_0 by assumption. apply Qle_bool_R in D0'. now rewrite Q2R_0 in D0'.
  - rewrite sum_S by assumption.
    apply Rle_trans with (mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (x t))).
    + apply at_mono; auto. intros i c j e [Hi U] Hj.
      pose proof (rule_all_spec _ _ _ D1' i c Hi U) as F. simpl in F. unfold finite_edges in F.
      destruct (at_outside G pol P K LN St h s Hl Hs Hb _ i c j e F Hi Hj) as [Z|Z]; [now left|right].
      apply IH; [now apply late_cons|now apply (inside s i c j)|]. now apply negb_true_iff in Z.
    + rewrite <- times_one. apply (at_step_high G pol P K LA LN St h s Hl Hs Hb (x s) x lam D0 Kn D2).
Qed.
End High.

(* ---------- Lower bounds ---------- *)

Section Low.
Variables (x : nat -> Q) (endless : nat -> bool) (rank layer : nat -> nat) (lam : nat -> nat -> support).
Hypothesis C : forall s, (s < size G)%nat -> sum_low_at G K pol x endless rank layer lam s = true.
Hypothesis Kn : known_low G (nature P) late x lam.
Notation over s := (over (ends G K) x endless s).
Notation closer := (closer (ends G K) x endless rank).
Notation moves := (moves (ends G K) x endless rank).
Notation unending := (unending (ends G K) endless).

Lemma earns s i c : (s < size G)%nat -> en s = None -> used s i c -> 0 <= Q2R (reward c).
Proof.
  intros Hs Hb [Hi U]. pose proof (C s Hs) as D. unfold sum_low_at in D. rewrite Hb in D. apply andb_prop in D.
  destruct D as [D _]. pose proof (rule_all_spec _ _ _ D i c Hi U) as E. simpl in E. apply Qle_bool_R in E.
  now rewrite Q2R_0 in E.
Qed.

Lemma nonneg_value k : forall h s, late h -> (s < size G)%nat -> 0 <= value G P k h s.
Proof.
  induction k as [|k IH]; intros h s Hl Hs; destruct (en s) as [b|] eqn:Hb.
  1,3: rewrite (value_end _ h s b Hl Hb); pose proof (C s Hs) as D; unfold sum_low_at in D; rewrite Hb in D;
       apply andb_prop in D; destruct D as [D _]; apply Qle_bool_R in D; now rewrite Q2R_0 in D.
  - rewrite value_0 by assumption. lra.
  - rewrite sum_S by assumption. apply at_ge; auto. intros i c Hu.
    pose proof (earns s i c Hs Hb Hu). destruct Hu as [Hi U].
    assert (0 <= sumi (fun j e => nature P h s i j * value G P k ((s, i) :: h) (next e)) 0 (edges c)); [|lra].
    apply (edges_ge h s Hl Hs Hb i c); auto. intros j e Hj. right. apply IH; [now apply late_cons|now apply (inside s i c j)].
Qed.

Lemma value_rises k : forall h s, late h -> (s < size G)%nat -> value G P k h s <= value G P (S k) h s.
Proof.
  induction k as [|k IH]; intros h s Hl Hs; destruct (en s) as [b|] eqn:Hb.
  1,3: rewrite !(value_end _ h s b Hl Hb); lra.
  - rewrite value_0 by assumption. now apply nonneg_value.
  - rewrite !(sum_S _ h s Hl Hb). apply at_mono; auto. intros i c j e [Hi U] Hj. right.
    apply IH; [now apply late_cons|now apply (inside s i c j)].
Qed.
Lemma value_grows k k' h s : (k <= k')%nat -> late h -> (s < size G)%nat -> value G P k h s <= value G P k' h s.
Proof. induction 1 as [|k' _ IH]; intros Hl Hs; [lra|]. specialize (IH Hl Hs). pose proof (value_rises k' h s Hl Hs). lra. Qed.

(* A positive reward is at least rho. *)
Lemma least_reward : exists rho, 0 < rho <= 1 /\ forall s c, (s < size G)%nat -> In c (cs s) -> 0 < Q2R (reward c) ->
  rho <= Q2R (reward c).
Proof.
  destruct (for_all_states G (fun s r => forall c, In c (cs s) -> 0 < Q2R (reward c) -> r <= Q2R (reward c))) as (r & Hr & HP).
  - intros s r r' H Hr c Hc Hp. specialize (H c Hc Hp). lra.
  - intros s _. destruct (common (cs s) (fun c => 0 < Q2R (reward c)) (fun c r => r <= Q2R (reward c))) as (r & Hr & HP).
    + intros; lra.
    + intros c _ Hc. exists (Q2R (reward c)). lra.
    + intros c. destruct (Rlt_dec 0 (Q2R (reward c))); auto.
    + exists r. split; [lra|exact HP].
  - exists r. split; [exact Hr|]. intros s c Hs. now apply HP.
Qed.

(* ---------- Where the bound is infinite ---------- *)

Lemma unending_None s : unending s = true -> en s = None /\ endless s = true.
Proof. unfold Sums.unending. destruct (en s); [discriminate|auto]. Qed.

Section Forever.
Variables (a w rho : R) (m : nat).
Hypothesis (Ha : 0 < a <= 1) (Hw : 0 < w <= 1) (Hrho : 0 < rho <= 1).
Hypothesis GD : forall s, (s < size G)%nat -> forall c, In c (cs s) ->
  surely (lower_layer (ends G K) endless layer s) (edges c) = true -> sure_gain (lower_layer (ends G K) endless layer s) c a.
Hypothesis GN : forall s, (s < size G)%nat -> forall c, In c (cs s) ->
  surely (nearer (ends G K) endless layer rank s) (edges c) = true -> sure_gain (nearer (ends G K) endless layer rank s) c a.
Hypothesis GW : forall s, (s < size G)%nat ->
  earns_forever (ends G K) endless layer rank (pl s) s (cs s) = true ->
  lasting (pl s) (fun c => surely (lower_layer (ends G K) endless layer s) (edges c))
            (fun c => only_to (same_layer (ends G K) endless layer s) (edges c))
            (fun c => Qltb 0 (reward c) || surely (nearer (ends G K) endless layer rank s) (edges c)) (cs s) w.
Hypothesis GR : forall s c, (s < size G)%nat -> In c (cs s) -> 0 < Q2R (reward c) -> rho <= Q2R (reward c).
Hypothesis Hm : forall s, (s < size G)%nat -> (rank s < m)%nat.

(* One step, from bounds of what follows. *)
Lemma forever_step k h s N t d : late h -> (s < size G)%nat -> unending s = true ->
  0 <= N -> 0 <= t -> 0 <= d <= rho ->
  (forall h' u, late h' -> (u < size G)%nat -> lower_layer (ends G K) endless layer s u = true -> N <= value G P k h' u) ->
  (forall h' u, late h' -> (u < size G)%nat -> same_layer (ends G K) endless layer s u = true -> t <= value G P k h' u) ->
  (forall h' u, late h' -> (u < size G)%nat -> nearer (ends G K) endless layer rank s u = true -> t + d <= value G P k h' u) ->
  Rmin (w * (a * N)) (t + w * (a * d)) <= value G P (S k) h s.
Proof.
  intros Hl Hs Hu HN Ht Hd VN VT VD. destruct (unending_None s Hu) as [Hb He].
  pose proof (C s Hs) as D. unfold sum_low_at in D. rewrite Hb, He in D. apply andb_prop in D. destruct D as [_ D].
  rewrite sum_S, at_mean by assumption. destruct (at_agent h s Hl Hs Hb) as (A0 & A1 & A2).
  assert (aN : 0 <= a * N) by nra. assert (ad : 0 <= a * d <= rho) by nra.
  assert (Vpos : forall i c, used s i c -> 0 <= sumi (fun j e => nature P h s i j * value G P k ((s, i) :: h) (next e)) 0 (edges c)).
  { intros i c [Hi U]. apply (edges_ge h s Hl Hs Hb i c); auto. intros j e Hj. right.
    apply nonneg_value; [now apply late_cons|now apply (inside s i c j)]. }
  apply (GW s Hs D (agent P h s) A0 A1 A2
    (fun i c => Q2R (reward c) + sumi (fun j e => nature P h s i j * value G P k ((s, i) :: h) (next e)) 0 (edges c))
    t (a * d) (a * N)); [exact aN|lra| | | |].
  - intros i c Hi U. pose proof (earns s i c Hs Hb (conj Hi U)). specialize (Vpos i c (conj Hi U)). lra.
  - intros i c Hi U Hd'. pose proof (earns s i c Hs Hb (conj Hi U)).
    pose proof (gain_edges G pol P K LN St (lower_layer (ends G K) endless layer s) a h s i c
      (fun t => value G P k ((s, i) :: h) t) 0 N Hl Hs Hb Hi (GD s Hs c (nth_error_In _ _ Hi) Hd') HN) as E.
    assert (0 + a * N <= sumi (fun j e => nature P h s i j * value G P k ((s, i) :: h) (next e)) 0 (edges c)); [|lra].
    apply E.
    + intros j e Hj. right. apply nonneg_value; [now apply late_cons|now apply (inside s i c j)].
    + intros j e Hj Hc. right. rewrite Rplus_0_l. apply VN; [now apply late_cons|now apply (inside s i c j)|exact Hc].
  - intros i c Hi U HS. pose proof (earns s i c Hs Hb (conj Hi U)).
    assert (t <= sumi (fun j e => nature P h s i j * value G P k ((s, i) :: h) (next e)) 0 (edges c)); [|lra].
    apply (edges_ge h s Hl Hs Hb i c); auto. intros j e Hj.
    destruct (at_outside G pol P K LN St h s Hl Hs Hb _ i c j e HS Hi Hj) as [Z|Z]; [now left|right].
    apply VT; [now apply late_cons|now apply (inside s i c j)|exact Z].
  - intros i c Hi U HS HM. pose proof (earns s i c Hs Hb (conj Hi U)).
    assert (VT' : forall j e, nth_error (edges c) j = Some e ->
      nature P h s i j = 0 \/ t <= value G P k ((s, i) :: h) (next e)).
    { intros j e Hj. destruct (at_outside G pol P K LN St h s Hl Hs Hb _ i c j e HS Hi Hj) as [Z|Z]; [now left|right].
      apply VT; [now apply late_cons|now apply (inside s i c j)|exact Z]. }
    apply orb_prop in HM. destruct HM as [HM|HM].
    + apply Qltb_R in HM. rewrite Q2R_0 in HM. pose proof (GR s c Hs (nth_error_In _ _ Hi) HM).
      assert (t <= sumi (fun j e => nature P h s i j * value G P k ((s, i) :: h) (next e)) 0 (edges c)); [|lra].
      now apply (edges_ge h s Hl Hs Hb i c).
    + assert (t + a * d <= sumi (fun j e => nature P h s i j * value G P k ((s, i) :: h) (next e)) 0 (edges c)); [|lra].
      apply (gain_edges G pol P K LN St (nearer (ends G K) endless layer rank s) a h s i c
        (fun t => value G P k ((s, i) :: h) t) t d Hl Hs Hb Hi (GN s Hs c (nth_error_In _ _ Hi) HM)); [lra|exact VT'|].
      intros j e Hj Hc. right. apply VD; [now apply late_cons|now apply (inside s i c j)|exact Hc].
Qed.

Lemma same_lower s u l : (layer s < S l)%nat -> same_layer (ends G K) endless layer s u = true ->
  unending u = true /\ (layer u < S l)%nat.
Proof.
  intros H E. apply andb_prop in E. destruct E as [E1 E2]. apply Nat.leb_le in E2. split; [exact E1|lia].
Qed.

Lemma forever_layer l : forall N, exists k0, forall h s, late h -> (s < size G)%nat -> unending s = true ->
  (layer s < l)%nat -> N <= value G P k0 h s.
Proof.
  induction l as [|l IH]; intros N.
  - exists 0%nat. intros; lia.
  - destruct (Rle_dec N 0) as [HN|HN].
    { exists 0%nat. intros h s Hl Hs _ _. pose proof (nonneg_value 0 h s Hl Hs). lra. }
    set (M := N). assert (HM : 0 < M) by (unfold M; lra).
    set (al := w * a). assert (Hal : 0 < al <= 1) by (unfold al; split; [apply Rmult_lt_0_compat; lra|nra]).
    set (N' := 2 * M / al).
    assert (HN' : 0 <= N') by (unfold N'; apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
    assert (EN : w * (a * N') = 2 * M).
    { replace (w * (a * N')) with (al * N') by (unfold al; ring). unfold N'. field. lra. }
    destruct (IH N') as (k1 & H1).
    set (c := Rmin rho M). assert (Hc : 0 < c) by (apply Rmin_glb_lt; lra).
    assert (Hc1 : c <= rho) by apply Rmin_l. assert (Hc2 : c <= M) by apply Rmin_r.
    assert (Hpow : forall j, 0 < al ^ j <= 1).
    { intros j. split; [apply pow_lt; lra|]. rewrite <- (pow1 j). apply pow_incr. lra. }
    assert (H1' : forall k h u, (k1 <= k)%nat -> late h -> (u < size G)%nat -> forall s, (layer s < S l)%nat ->
      lower_layer (ends G K) endless layer s u = true -> N' <= value G P k h u).
    { intros k h u Hk Hl Hu s HL E. apply andb_prop in E. destruct E as [E1 E2]. apply Nat.ltb_lt in E2.
      eapply Rle_trans; [apply (H1 h u Hl Hu E1); lia|]. now apply value_grows. }
    (* within a block of m steps something is earned *)
    assert (Block : forall k t, (k1 <= k)%nat -> 0 <= t <= M ->
      (forall h s, late h -> (s < size G)%nat -> unending s = true -> (layer s < S l)%nat -> t <= value G P k h s) ->
      forall j h s, late h -> (s < size G)%nat -> unending s = true -> (layer s < S l)%nat -> (rank s < j)%nat ->
        t + c * al ^ j <= value G P (j + k) h s).
    { intros k t Hk Ht T. induction j as [|j IHj]; intros h s Hl Hs Hu HL Hr; [lia|].
      pose proof (Hpow j) as Hp. assert (Hd : 0 <= c * al ^ j <= rho) by nra.
      pose proof (forever_step (j + k) h s N' t (c * al ^ j) Hl Hs Hu HN' (proj1 Ht) Hd) as Fs.
      eapply Rle_trans; [|apply Fs].
      - rewrite EN. replace (w * (a * (c * al ^ j))) with (c * al ^ S j) by (simpl; unfold al; ring).
        apply Rmin_glb; [|lra]. pose proof (Hpow (S j)). nra.
      - intros h' u Hl' Hu' E. apply (H1' (j + k)%nat h' u ltac:(lia) Hl' Hu' s HL E).
      - intros h' u Hl' Hu' E. destruct (same_lower s u l HL E) as [E1 E2].
        eapply Rle_trans; [now apply (T h' u)|]. apply value_grows; auto. lia.
      - intros h' u Hl' Hu' E. apply andb_prop in E. destruct E as [E E3]. apply Nat.ltb_lt in E3.
        destruct (same_lower s u l HL E) as [E1 E2]. apply IHj; auto. lia. }
    set (d := c * al ^ m). assert (Hd : 0 < d) by (unfold d; pose proof (Hpow m); nra).
    assert (T : forall n h s, late h -> (s < size G)%nat -> unending s = true -> (layer s < S l)%nat ->
      Rmin M (INR n * d) <= value G P (n * m + k1) h s).
    { induction n as [|n IHn]; intros h s Hl Hs Hu HL.
      - eapply Rle_trans; [apply Rmin_r|]. simpl. rewrite Rmult_0_l. now apply nonneg_value.
      - destruct (Rle_dec M (INR n * d)) as [E|E].
        + eapply Rle_trans; [apply Rmin_l|]. apply Rle_trans with (value G P (n * m + k1) h s).
          * specialize (IHn h s Hl Hs Hu HL). now rewrite Rmin_left in IHn.
          * apply value_grows; auto. simpl. lia.
        + eapply Rle_trans; [apply Rmin_r|]. rewrite S_INR.
          replace (S n * m + k1)%nat with (m + (n * m + k1))%nat by (simpl; lia).
          apply Rle_trans with (INR n * d + c * al ^ m); [fold d; lra|].
          assert (0 <= INR n) by apply pos_INR.
          apply Block; auto; [lia|split; [nra|lra]|].
          intros h' u Hl' Hu' E1 E2. specialize (IHn h' u Hl' Hu' E1 E2). rewrite Rmin_right in IHn; lra. }
    destruct (INR_above (M / d)) as (n & Hn).
    exists (n * m + k1)%nat. intros h s Hl Hs Hu HL. eapply Rle_trans; [|apply T; auto].
    rewrite Rmin_left; [unfold M; lra|]. apply (Rmult_lt_compat_r d) in Hn; [|lra].
    unfold Rdiv in Hn. rewrite Rmult_assoc, Rinv_l in Hn by lra. lra.
Qed.
End Forever.

Lemma infinite_low N : exists k0, forall k h s, (k0 <= k)%nat -> late h -> (s < size G)%nat -> unending s = true ->
  N <= value G P k h s.
Proof.
  destruct (sure_everywhere G K (fun s => lower_layer (ends G K) endless layer s)) as (a1 & Ha1 & G1).
  destruct (sure_everywhere G K (fun s => nearer (ends G K) endless layer rank s)) as (a2 & Ha2 & G2).
  destruct (lasting_everywhere G pol K (fun s c => surely (lower_layer (ends G K) endless layer s) (edges c))
    (fun s c => only_to (same_layer (ends G K) endless layer s) (edges c))
    (fun s c => Qltb 0 (reward c) || surely (nearer (ends G K) endless layer rank s) (edges c))) as (w & Hw & G3).
  destruct least_reward as (rho & Hrho & G4).
  destruct (bounded_nat rank (size G)) as (m & Hm). destruct (bounded_nat layer (size G)) as (l & Hlay).
  set (a := Rmin a1 a2). assert (Ha : 0 < a <= 1).
  { unfold a. split; [apply Rmin_glb_lt; lra|]. pose proof (Rmin_l a1 a2). lra. }
  assert (Weak : forall A c r, sure_gain A c r -> a <= r -> sure_gain A c a).
  { intros A c r H Hr p Hp H1. specialize (H p Hp H1). lra. }
  destruct (forever_layer a w rho m Ha Hw Hrho) with (l := l) (N := N) as (k0 & H).
  - intros s Hs c Hc E. apply (Weak _ _ a1); [now apply G1|apply Rmin_l].
  - intros s Hs c Hc E. apply (Weak _ _ a2); [now apply G2|apply Rmin_r].
  - intros s Hs E. now apply G3.
  - exact G4.
  - exact Hm.
  - exists k0. intros k h s Hk Hl Hs Hu. eapply Rle_trans; [apply (H h s Hl Hs Hu); now apply Hlay|].
    now apply value_grows.
Qed.

(* ---------- Where it is finite ---------- *)

Fixpoint stays (k : nat) (h : hist) (s : nat) : R :=
  if over s then 0
  else match k with O => 1 | S k' => mean G P h s (fun _ => 0) (fun i t => stays k' ((s, i) :: h) t) end.
Definition paid (c : choice) : R := if Qltb 0 (reward c) then 1 else 0.
(* The expected number of choices that earn, before the play is over. *)
Fixpoint payments (k : nat) (h : hist) (s : nat) : R :=
  if over s then 0
  else match k with O => 0 | S k' => mean G P h s paid (fun i t => payments k' ((s, i) :: h) t) end.

Lemma open_None s : over s = false -> en s = None.
Proof. unfold Sums.over. now destruct (en s). Qed.
Lemma paid_pos c : 0 <= paid c <= 1. Proof. unfold paid. destruct (Qltb _ _); lra. Qed.
Lemma stays_S k h s : over s = false -> stays (S k) h s = mean G P h s (fun _ => 0) (fun i t => stays k ((s, i) :: h) t).
Proof. intros E. simpl. now rewrite E. Qed.
Lemma payments_S k h s : over s = false -> payments (S k) h s = mean G P h s paid (fun i t => payments k ((s, i) :: h) t).
Proof. intros E. simpl. now rewrite E. Qed.
Lemma stays_over k h s : over s = true -> stays k h s = 0. Proof. intros E. destruct k; simpl; now rewrite E. Qed.
Lemma payments_over k h s : over s = true -> payments k h s = 0. Proof. intros E. destruct k; simpl; now rewrite E. Qed.

Lemma stays_bounds k : forall h s, late h -> (s < size G)%nat -> 0 <= stays k h s <= 1.
Proof.
  induction k as [|k IH]; intros h s Hl Hs; destruct (over s) eqn:Ho.
  1,3: rewrite stays_over by exact Ho; lra.
  - simpl. rewrite Ho. lra.
  - rewrite stays_S by exact Ho. pose proof (open_None s Ho) as Hb.
    assert (B : forall i c j e, used s i c -> nth_error (edges c) j = Some e -> 0 <= stays k ((s, i) :: h) (next e) <= 1).
    { intros i c j e [Hi U] Hj. apply IH; [now apply late_cons|now apply (inside s i c j)]. }
    split.
    + apply at_ge; auto. intros i c Hu. rewrite Rplus_0_l. apply (edges_ge h s Hl Hs Hb i c); [apply Hu|].
      intros j e Hj. right. now apply (B i c j).
    + apply (at_most_ G pol P K LA St h s Hl Hs Hb). intros i c Hu. rewrite Rplus_0_l.
      apply (edges_le h s Hl Hs Hb i c); [apply Hu|]. intros j e Hj. right. now apply (B i c j).
Qed.

Lemma payments_pos k : forall h s, late h -> (s < size G)%nat -> 0 <= payments k h s.
Proof.
  induction k as [|k IH]; intros h s Hl Hs; destruct (over s) eqn:Ho.
  1,3: rewrite payments_over by exact Ho; lra.
  - simpl. rewrite Ho. lra.
  - rewrite payments_S by exact Ho. pose proof (open_None s Ho) as Hb. apply at_ge; auto. intros i c [Hi U].
    pose proof (paid_pos c).
    assert (0 <= sumi (fun j e => nature P h s i j * payments k ((s, i) :: h) (next e)) 0 (edges c)); [|lra].
    apply (edges_ge h s Hl Hs Hb i c); [exact Hi|]. intros j e Hj. right. apply IH; [now apply late_cons|now apply (inside s i c j)].
Qed.

Lemma stays_falls k : forall h s, late h -> (s < size G)%nat -> stays (S k) h s <= stays k h s.
Proof.
  induction k as [|k IH]; intros h s Hl Hs; destruct (over s) eqn:Ho.
  1,3: rewrite !stays_over by exact Ho; lra.
  - replace (stays 0 h s) with 1 by (simpl; now rewrite Ho). now apply stays_bounds.
  - rewrite !(stays_S _ h s Ho). pose proof (open_None s Ho) as Hb. apply at_mono; auto.
    intros i c j e [Hi U] Hj. right. apply IH; [now apply late_cons|now apply (inside s i c j)].
Qed.
Lemma stays_less k k' h s : (k <= k')%nat -> late h -> (s < size G)%nat -> stays k' h s <= stays k h s.
Proof. induction 1 as [|k' _ IH]; intros Hl Hs; [lra|]. specialize (IH Hl Hs). pose proof (stays_falls k' h s Hl Hs). lra. Qed.

Lemma payments_value rho : 0 < rho <= 1 ->
  (forall s c, (s < size G)%nat -> In c (cs s) -> 0 < Q2R (reward c) -> rho <= Q2R (reward c)) ->
  forall k h s, late h -> (s < size G)%nat -> rho * payments k h s <= value G P k h s.
Proof.
  intros Hr HR. induction k as [|k IH]; intros h s Hl Hs; pose proof (nonneg_value) as NV; destruct (over s) eqn:Ho.
  1,3: rewrite payments_over by exact Ho; rewrite Rmult_0_r; now apply NV.
  - replace (payments 0 h s) with 0 by (simpl; now rewrite Ho). rewrite Rmult_0_r. now apply NV.
  - rewrite payments_S by exact Ho. pose proof (open_None s Ho) as Hb. rewrite sum_S by assumption.
    pose proof (mean_lin G P h s (fun _ => 0) paid (fun _ _ => 0) (fun i t => payments k ((s, i) :: h) t) rho) as E.
    rewrite at_const, Rplus_0_l in E by assumption. rewrite <- E. apply at_le; auto. intros i c [Hi U].
    apply Rplus_le_compat.
    + rewrite Rplus_0_l. unfold paid. destruct (Qltb 0 (reward c)) eqn:Er.
      * apply Qltb_R in Er. rewrite Q2R_0 in Er. pose proof (HR s c Hs (nth_error_In _ _ Hi) Er). lra.
      * pose proof (earns s i c Hs Hb (conj Hi U)). lra.
    + apply sumi_le. intros j e Hj. simpl. destruct (at_law h s Hl Hs Hb i c Hi) as [Hp _].
      apply Rmult_le_compat_l; [apply (Hp j e Hj)|]. rewrite Rplus_0_l.
      apply IH; [now apply late_cons|now apply (inside s i c j)].
Qed.

Lemma low_open s : (s < size G)%nat -> over s = false ->
  rule_le Qle_bool (pl s) (x s) (fun i c => backup (discount G) low_term x (lam s i) c) (cs s) = true /\
  rule_some (pl s) (fun _ => moves s) (cs s) = true.
Proof.
  intros Hs Ho. pose proof (C s Hs) as D. unfold sum_low_at in D. unfold Sums.over in Ho. destruct (en s) eqn:Hb; [discriminate|].
  apply andb_prop in D. destruct D as [_ D]. apply orb_false_elim in Ho. destruct Ho as [Ho1 Ho2].
  rewrite Ho1, Ho2 in D. simpl in D. now apply andb_prop in D.
Qed.

(* From rank below j: within j steps the play is over, or something was earned. *)
Lemma comes_to_an_end : exists al, 0 < al <= 1 /\
  forall j h s, late h -> (s < size G)%nat -> (rank s < j)%nat -> stays j h s <= 1 - al ^ j + payments j h s.
Proof.
  destruct (sure_everywhere G K closer) as (a & Ha & GS).
  destruct (portion_everywhere G pol K (fun s _ => moves s)) as (w & Hw & GP).
  exists (w * a). assert (Hal : 0 < w * a <= 1) by (split; [apply Rmult_lt_0_compat; lra|nra]). split; [exact Hal|].
  assert (Hpow : forall j, 0 < (w * a) ^ j <= 1).
  { intros j. split; [apply pow_lt; lra|]. rewrite <- (pow1 j). apply pow_incr. lra. }
  induction j as [|j IH]; intros h s Hl Hs Hr; [lia|]. destruct (over s) eqn:Ho.
  - rewrite stays_over, payments_over by exact Ho. pose proof (Hpow (S j)). lra.
  - pose proof (open_None s Ho) as Hb. destruct (low_open s Hs Ho) as [_ HM].
    destruct (at_agent h s Hl Hs Hb) as (A0 & A1 & A2).
    set (r := fun c => paid c + -1 * -1).
    set (f := fun i t => payments j ((s, i) :: h) t + -1 * stays j ((s, i) :: h) t).
    assert (E : mean G P h s r f = payments (S j) h s + 1 - stays (S j) h s).
    { unfold r, f. rewrite mean_lin.
      rewrite (mean_ext G P h s (fun _ => -1) (fun _ => 0 + -1 * 1)
        (fun i t => stays j ((s, i) :: h) t) (fun i t => stays j ((s, i) :: h) t + -1 * 0)) by (intros; lra).
      rewrite (mean_lin G P h s (fun _ => 0) (fun _ => 1) (fun i t => stays j ((s, i) :: h) t) (fun _ _ => 0)).
      rewrite at_const by assumption. rewrite stays_S, payments_S by exact Ho. lra. }
    pose proof (Hpow j) as Hp.
    assert (L : w * (a * (w * a) ^ j) <= mean G P h s r f).
    { rewrite at_mean by assumption.
      assert (Low : forall i c j' e, used s i c -> nth_error (edges c) j' = Some e -> 0 - 1 <= f i (next e)).
      { intros i c j' e [Hi U] Hj. unfold f.
        assert (Ht : (next e < size G)%nat) by now apply (inside s i c j').
        pose proof (stays_bounds j ((s, i) :: h) (next e) (late_cons K _ _ Hl) Ht).
        pose proof (payments_pos j ((s, i) :: h) (next e) (late_cons K _ _ Hl) Ht). lra. }
      apply (GP s Hs HM (agent P h s) A0 A1 A2
        (fun i c => r c + sumi (fun j0 e => nature P h s i j0 * f i (next e)) 0 (edges c))); [nra| |].
      - intros i c Hi U. pose proof (paid_pos c).
        assert (0 - 1 <= sumi (fun j0 e => nature P h s i j0 * f i (next e)) 0 (edges c)); [|unfold r; lra].
        apply (edges_ge h s Hl Hs Hb i c (f i) _ Hi). intros j' e Hj. right. now apply (Low i c j').
      - intros i c Hi U M. unfold Sums.moves in M. apply orb_prop in M. destruct M as [M|M].
        + assert (0 - 1 <= sumi (fun j0 e => nature P h s i j0 * f i (next e)) 0 (edges c)).
          { apply (edges_ge h s Hl Hs Hb i c (f i) _ Hi). intros j' e Hj. right. now apply (Low i c j'). }
          unfold r, paid. rewrite M. nra.
        + pose proof (paid_pos c).
          assert (-1 + a * (w * a) ^ j <= sumi (fun j0 e => nature P h s i j0 * f i (next e)) 0 (edges c)); [|unfold r; lra].
          apply (gain_edges G pol P K LN St (closer s) a h s i c (f i) (-1) ((w * a) ^ j) Hl Hs Hb Hi
            (GS s Hs c (nth_error_In _ _ Hi) M)); [lra| |].
          * intros j' e Hj. right. specialize (Low i c j' e (conj Hi U) Hj). lra.
          * intros j' e Hj Hc. right. unfold f.
            assert (Ht : (next e < size G)%nat) by now apply (inside s i c j').
            unfold Sums.closer in Hc. destruct (over (next e)) eqn:Ho'; simpl in Hc.
            -- rewrite stays_over, payments_over by exact Ho'. lra.
            -- apply Nat.ltb_lt in Hc.
               specialize (IH ((s, i) :: h) (next e) (late_cons K _ _ Hl) Ht ltac:(lia)). lra. }
    rewrite E in L. simpl pow. replace (w * a * (w * a) ^ j) with (w * (a * (w * a) ^ j)) by ring. lra.
Qed.

Lemma stays_product b q : (forall h s, late h -> (s < size G)%nat -> stays b h s <= q + payments b h s) -> 0 <= q ->
  forall k h s, late h -> (s < size G)%nat ->
    stays (k + b) h s <= q * stays k h s + (payments (k + b) h s - payments k h s).
Proof.
  intros Hq Q0. induction k as [|k IH]; intros h s Hl Hs; destruct (over s) eqn:Ho.
  1,3: rewrite !stays_over, !payments_over by exact Ho; lra.
  - replace (payments 0 h s) with 0 by (simpl; now rewrite Ho). replace (stays 0 h s) with 1 by (simpl; now rewrite Ho).
    simpl plus. specialize (Hq h s Hl Hs). lra.
  - simpl plus. rewrite !(stays_S _ h s Ho), !(payments_S _ h s Ho). pose proof (open_None s Ho) as Hb.
    assert (E : mean G P h s (fun _ => 0) (fun i t => q * stays k ((s, i) :: h) t +
        1 * (payments (k + b) ((s, i) :: h) t + -1 * payments k ((s, i) :: h) t)) =
      q * mean G P h s (fun _ => 0) (fun i t => stays k ((s, i) :: h) t) +
      (mean G P h s paid (fun i t => payments (k + b) ((s, i) :: h) t) - mean G P h s paid (fun i t => payments k ((s, i) :: h) t))).
    { rewrite (mean_ext G P h s (fun _ => 0) (fun c => 0 + 1 * (paid c + -1 * paid c))
        (fun i t => q * stays k ((s, i) :: h) t + 1 * (payments (k + b) ((s, i) :: h) t + -1 * payments k ((s, i) :: h) t))
        (fun i t => q * stays k ((s, i) :: h) t + 1 * (payments (k + b) ((s, i) :: h) t + -1 * payments k ((s, i) :: h) t)))
        by (intros; lra).
      rewrite (mean_lin G P h s (fun _ => 0) (fun c => paid c + -1 * paid c) (fun i t => q * stays k ((s, i) :: h) t)
        (fun i t => payments (k + b) ((s, i) :: h) t + -1 * payments k ((s, i) :: h) t)), mean_lin.
      rewrite (mean_ext G P h s (fun _ => 0) (fun _ => 0 + q * 0) (fun i t => q * stays k ((s, i) :: h) t)
        (fun i t => 0 + q * stays k ((s, i) :: h) t)) by (intros; lra).
      rewrite (mean_lin G P h s (fun _ => 0) (fun _ => 0) (fun _ _ => 0)), at_const by assumption. lra. }
    rewrite <- E. apply at_mono; auto. intros i c j e [Hi U] Hj. right.
    specialize (IH ((s, i) :: h) (next e) (late_cons K _ _ Hl) (inside s i c j e Hs Hi Hj)). lra.
Qed.

(* x <= value of a few steps more + B * probability that the play is not over *)
Lemma telescoped B k0 : (forall s, (s < size G)%nat -> Q2R (x s) <= B) -> 0 <= B ->
  (forall k h s, (k0 <= k)%nat -> late h -> (s < size G)%nat -> unending s = true -> B <= value G P k h s) ->
  forall k h s, late h -> (s < size G)%nat -> Q2R (x s) <= value G P (k + k0) h s + B * stays k h s.
Proof.
  intros HB B0 HI. induction k as [|k IH]; intros h s Hl Hs; destruct (over s) eqn:Ho.
  1,3: rewrite stays_over by exact Ho; rewrite Rmult_0_r, Rplus_0_r;
    pose proof (C s Hs) as D; unfold sum_low_at in D; unfold Sums.over in Ho; destruct (en s) as [b|] eqn:Hb;
    [rewrite (value_end _ h s b Hl Hb); apply andb_prop in D; now apply Qle_bool_R|
     destruct (endless s) eqn:He;
     [apply Rle_trans with B; [now apply HB|apply HI; [lia|exact Hl|exact Hs|unfold Sums.unending; now rewrite Hb]]|
      simpl in Ho; apply Qle_bool_R in Ho; rewrite Q2R_0 in Ho;
      match goal with |- _ <= value _ _ ?n ?hh ?ss => pose proof (nonneg_value n hh ss Hl Hs); lra end]].
  - replace (stays 0 h s) with 1 by (simpl; now rewrite Ho). pose proof (nonneg_value (0 + k0) h s Hl Hs).
    specialize (HB s Hs). lra.
  - pose proof (open_None s Ho) as Hb. destruct (low_open s Hs Ho) as [HL _].
    simpl plus. rewrite sum_S, stays_S by assumption.
    pose proof (mean_lin G P h s (fun c => Q2R (reward c)) (fun _ => 0) (fun i t => value G P (k + k0) ((s, i) :: h) t)
      (fun i t => stays k ((s, i) :: h) t) B) as E. rewrite <- E.
    apply Rle_trans with (mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (x t))).
    + rewrite <- times_one. apply (at_step_low G pol P K LA LN St h s Hl Hs Hb (x s) x lam D0 Kn HL).
    + rewrite (mean_ext G P h s (fun c => Q2R (reward c) + B * 0) (fun c => Q2R (reward c)) _
        (fun i t => value G P (k + k0) ((s, i) :: h) t + B * stays k ((s, i) :: h) t)) by (intros; lra).
      apply at_mono; auto. intros i c j e [Hi U] Hj. right. apply IH; [now apply late_cons|now apply (inside s i c j)].
Qed.

Theorem sum_low eps : 0 < eps -> exists k1, forall k h s, (k1 <= k)%nat -> late h -> (s < size G)%nat ->
  Q2R (x s) - eps <= value G P k h s.
Proof.
  intros He.
  destruct (bounded (fun s => Q2R (x s)) (size G)) as (B & B0 & HB).
  destruct (infinite_low B) as (k0 & HI).
  destruct comes_to_an_end as (al & Hal & HE).
  destruct least_reward as (rho & Hrho & HR).
  destruct (bounded_nat rank (size G)) as (m & Hm).
  assert (Hpow : 0 < al ^ m) by (apply pow_lt; lra).
  assert (Hpow1 : al ^ m <= 1) by (rewrite <- (pow1 m); apply pow_incr; lra).
  set (q := 1 - al ^ m). assert (Hq : 0 <= q < 1) by (unfold q; lra).
  assert (F : forall h s, late h -> (s < size G)%nat -> stays m h s <= q + payments m h s).
  { intros h s Hl Hs. unfold q. now apply HE; [| |apply Hm]. }
  (* n blocks: n (1 - q) stays <= 1 + payments *)
  assert (Sum : forall n h s, late h -> (s < size G)%nat ->
    (1 - q) * (INR n * stays (n * m) h s) <= 1 - stays (n * m) h s + payments (n * m) h s).
  { intros n h s Hl Hs. induction n as [|n IHn].
    - simpl INR. simpl mult. rewrite Rmult_0_l, Rmult_0_r.
      pose proof (stays_bounds 0 h s Hl Hs). pose proof (payments_pos 0 h s Hl Hs). lra.
    - replace (S n * m)%nat with (n * m + m)%nat by lia.
      pose proof (stays_product m q F (proj1 Hq) (n * m) h s Hl Hs) as Pr.
      pose proof (stays_less (n * m) (n * m + m) h s ltac:(lia) Hl Hs) as Dec.
      rewrite S_INR. pose proof (pos_INR n).
      pose proof (stays_bounds (n * m + m) h s Hl Hs).
      set (u := stays (n * m) h s) in *. set (u' := stays (n * m + m) h s) in *.
      set (e := payments (n * m) h s) in *. set (e' := payments (n * m + m) h s) in *.
      assert ((1 - q) * (INR n * u') <= (1 - q) * (INR n * u)) by (apply Rmult_le_compat_l; [lra|apply Rmult_le_compat_l; lra]).
      nra. }
  set (V := 1 + B / rho). assert (HV : 0 < V).
  { unfold V. assert (0 <= B / rho) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]). lra. }
  destruct (INR_above (B * V / ((1 - q) * eps))) as (n & Hn).
  assert (Hn0 : B * V < (1 - q) * eps * INR n).
  { assert (0 < (1 - q) * eps) by (apply Rmult_lt_0_compat; lra).
    apply (Rmult_lt_compat_r ((1 - q) * eps)) in Hn; [|lra].
    unfold Rdiv in Hn. rewrite Rmult_assoc, Rinv_l in Hn by lra. lra. }
  exists (n * m + k0)%nat. intros k h s Hk Hl Hs.
  eapply Rle_trans; [|apply (value_grows (n * m + k0)); auto].
  destruct (Rle_dec (Q2R (x s) - eps) (value G P (n * m + k0) h s)) as [|N]; [assumption|exfalso; apply N].
  pose proof (telescoped B k0 HB B0 HI (n * m) h s Hl Hs) as T.
  pose proof (payments_value rho Hrho HR (n * m) h s Hl Hs) as PV.
  pose proof (value_grows (n * m) (n * m + k0) h s ltac:(lia) Hl Hs) as VG.
  specialize (HB s Hs). specialize (Sum n h s Hl Hs).
  pose proof (stays_bounds (n * m) h s Hl Hs) as SB.
  set (u := stays (n * m) h s) in *. set (e := payments (n * m) h s) in *.
  set (v := value G P (n * m + k0) h s) in *.
  assert (EB : e <= B / rho).
  { apply (Rmult_le_reg_l rho); [lra|]. replace (rho * (B / rho)) with B by (field; lra). lra. }
  assert (U : (1 - q) * (INR n * u) <= V) by (unfold V; lra).
  destruct (Rle_dec (B * u) eps) as [Bu|Bu]; [lra|exfalso].
  assert (Hu : 0 < u) by nra.
  assert (0 < INR n). { assert (0 <= B * V) by nra. assert (0 < (1 - q) * eps) by (apply Rmult_lt_0_compat; lra). nra. }
  assert ((1 - q) * eps * INR n * u <= B * V * u + 0 -> False).
  { intros Z. nra. }
  assert (eps * ((1 - q) * (INR n * u)) <= eps * V) by (apply Rmult_le_compat_l; lra).
  assert (B * V * u < (1 - q) * eps * INR n * u) by (apply Rmult_lt_compat_r; lra).
  assert (V * (B * u) < V * eps) by lra.
  assert (B * u < eps) by (apply (Rmult_lt_reg_l V); lra). lra.
Qed.
End Low.
End Sums.
