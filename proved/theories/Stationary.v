(* What holds from step K on, where nothing depends on the step any more. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Basics.
Import ListNotations.
Open Scope R_scope.

(* The maximisers of an infinite value at a state: go down, or stay and move. *)
Definition forever (r : rule) (down stay moves : choice -> bool) (cs : list choice) : bool :=
  match r with
  | Mix _ => rule_some r (fun _ => down) cs || (rule_all r (fun _ => stay) cs && rule_some r (fun _ => moves) cs)
  | _ => rule_all r (fun _ c => down c || (stay c && moves c)) cs
  end.

Definition lasting (r : rule) (down stay moves : choice -> bool) (cs : list choice) (w : R) : Prop :=
  forall a, (forall i, 0 <= a i) -> sumi (fun i _ => a i) 0 cs = 1 -> obeys r a ->
  forall (v : nat -> choice -> R) t d D, 0 <= D -> 0 <= d ->
    (forall i c, nth_error cs i = Some c -> usable r i = true -> 0 <= v i c) ->
    (forall i c, nth_error cs i = Some c -> usable r i = true -> down c = true -> D <= v i c) ->
    (forall i c, nth_error cs i = Some c -> usable r i = true -> stay c = true -> t <= v i c) ->
    (forall i c, nth_error cs i = Some c -> usable r i = true -> stay c = true -> moves c = true -> t + d <= v i c) ->
    Rmin (w * D) (t + w * d) <= sumi (fun i c => a i * v i c) 0 cs.

Lemma forever_lasting r down stay moves cs : forever r down stay moves cs = true ->
  exists w, 0 < w <= 1 /\ lasting r down stay moves cs w.
Proof.
  intros H.
  assert (Each : rule_all r (fun _ c => down c || (stay c && moves c)) cs = true -> lasting r down stay moves cs 1).
  { clear H. intros H a A0 A1 A2 v t d D HD Hd V0 VD VS VM.
    rewrite <- (weigh_const cs a A1 (Rmin (1 * D) (t + 1 * d))). apply (weigh_le r cs a A0 A2). intros i c Hi U.
    pose proof (rule_all_spec r cs _ H i c Hi U) as K. simpl in K.
    apply orb_prop in K. destruct K as [K|K].
    - eapply Rle_trans; [apply Rmin_l|]. specialize (VD i c Hi U K). lra.
    - apply andb_prop in K. destruct K as [K1 K2]. eapply Rle_trans; [apply Rmin_r|].
      specialize (VM i c Hi U K1 K2). lra. }
  destruct r as [|k|l]; [exists 1; split; [lra|now apply Each]..|].
  simpl in H. apply orb_prop in H. destruct H as [H|H].
  - destruct (rule_some_portion (Mix l) (fun _ => down) cs H) as (w & Hw & HP). exists w. split; [exact Hw|].
    intros a A0 A1 A2 v t d D HD Hd V0 VD VS VM. eapply Rle_trans; [apply Rmin_l|]. apply (HP a A0 A1 A2); auto.
  - apply andb_prop in H. destruct H as [HS HM].
    destruct (rule_some_portion (Mix l) (fun _ => moves) cs HM) as (w & Hw & HP). exists w. split; [exact Hw|].
    intros a A0 A1 A2 v t d D HD Hd V0 VD VS VM. eapply Rle_trans; [apply Rmin_r|].
    assert (S : forall i c, nth_error cs i = Some c -> usable (Mix l) i = true -> stay c = true).
    { intros i c Hi U. apply (rule_all_spec (Mix l) cs _ HS i c Hi U). }
    pose proof (HP a A0 A1 A2 (fun i c => v i c - t) d Hd) as K.
    assert (E : sumi (fun i c => a i * (v i c - t)) 0 cs = sumi (fun i c => a i * v i c) 0 cs - t).
    { rewrite (sumi_ext _ (fun i c => a i * v i c + (-1) * (a i * t))) by (intros; simpl; lra).
      rewrite sumi_add, sumi_scal, (weigh_const cs a A1 t). lra. }
    cbv beta in K. rewrite E in K.
    assert (w * d <= sumi (fun i c => a i * v i c) 0 cs - t); [|lra]. apply K.
    + intros i c Hi U. specialize (VS i c Hi U (S i c Hi U)). lra.
    + intros i c Hi U M. specialize (VM i c Hi U (S i c Hi U) M). lra.
Qed.

Section Stationary.
Variables (G : game) (pol : nat -> nat -> rule) (P : play) (K : nat).
Hypothesis (LA : legal_agent G pol (agent P)) (LN : legal_nature G (nature P)).
Notation cs s := (choices_of G K s).
Notation en s := (ends G K s).
Notation pl s := (pol K s).
Hypothesis St : forall j s, (K <= j)%nat -> choices_of G j s = cs s /\ ends G j s = en s /\ pol j s = pl s.
Hypothesis W : forall s c e, (s < size G)%nat -> In c (cs s) -> In e (edges c) -> (next e < size G)%nat.
Definition late (h : hist) : Prop := (K <= length h)%nat.
Lemma late_cons x h : late h -> late (x :: h). Proof. unfold late. simpl. lia. Qed.

Lemma inside s i c j e : (s < size G)%nat -> nth_error (cs s) i = Some c -> nth_error (edges c) j = Some e ->
  (next e < size G)%nat.
Proof. intros Hs Hi Hj. apply (W s c e Hs); eapply nth_error_In; eauto. Qed.

Lemma value_end k h s b : late h -> en s = Some b -> value G P k h s = Q2R b.
Proof. intros Hl Hb. destruct (St (length h) s Hl) as (_ & E & _). destruct k; simpl; now rewrite E, Hb. Qed.
Lemma value_0 h s : late h -> en s = None -> value G P 0 h s = 0.
Proof. intros Hl Hb. destruct (St (length h) s Hl) as (_ & E & _). simpl. now rewrite E, Hb. Qed.
Lemma value_S k h s : late h -> en s = None -> value G P (S k) h s =
  mean G P h s (fun c => Q2R (reward c)) (fun i t => Q2R (discount G) * value G P k ((s, i) :: h) t).
Proof. intros Hl Hb. destruct (St (length h) s Hl) as (_ & E & _). simpl. now rewrite E, Hb. Qed.
Lemma missed_end k h s b : late h -> en s = Some b -> missed G P k h s = 0.
Proof. intros Hl Hb. destruct (St (length h) s Hl) as (_ & E & _). destruct k; simpl; now rewrite E, Hb. Qed.
Lemma missed_0 h s : late h -> en s = None -> missed G P 0 h s = 1.
Proof. intros Hl Hb. destruct (St (length h) s Hl) as (_ & E & _). simpl. now rewrite E, Hb. Qed.
Lemma missed_S k h s : late h -> en s = None -> missed G P (S k) h s =
  mean G P h s (fun _ => 0) (fun i t => missed G P k ((s, i) :: h) t).
Proof. intros Hl Hb. destruct (St (length h) s Hl) as (_ & E & _). simpl. now rewrite E, Hb. Qed.

Section At.
Variables (h : hist) (s : nat).
Hypothesis (Hl : late h) (Hs : (s < size G)%nat) (Hb : en s = None).
Lemma ended : ends G (length h) s = None.
Proof. destruct (St (length h) s Hl) as (_ & E & _). now rewrite E. Qed.
Notation used i c := (nth_error (cs s) i = Some c /\ usable (pl s) i = true).

Lemma at_mono r f g :
  (forall i c j e, used i c -> nth_error (edges c) j = Some e -> nature P h s i j = 0 \/ f i (next e) <= g i (next e)) ->
  mean G P h s r f <= mean G P h s r g.
Proof.
  intros H. destruct (St (length h) s Hl) as (E1 & _ & E3).
  apply (mean_mono G pol P LA LN h s r f g Hs ended). rewrite E1, E3. intros i c j e Hi U. now apply H.
Qed.
Lemma at_ge r f a :
  (forall i c, used i c -> a <= r c + sumi (fun j e => nature P h s i j * f i (next e)) 0 (edges c)) ->
  a <= mean G P h s r f.
Proof.
  intros H. destruct (St (length h) s Hl) as (E1 & _ & E3).
  apply (mean_ge G pol P LA h s r f a Hs ended). rewrite E1, E3. intros i c Hi U. now apply H.
Qed.
Lemma at_most_ r f a :
  (forall i c, used i c -> r c + sumi (fun j e => nature P h s i j * f i (next e)) 0 (edges c) <= a) ->
  mean G P h s r f <= a.
Proof.
  intros H. destruct (St (length h) s Hl) as (E1 & _ & E3).
  apply (mean_at_most G pol P LA h s r f a Hs ended). rewrite E1, E3. intros i c Hi U. now apply H.
Qed.
Lemma at_le r r' f g :
  (forall i c, used i c -> r c + sumi (fun j e => nature P h s i j * f i (next e)) 0 (edges c)
     <= r' c + sumi (fun j e => nature P h s i j * g i (next e)) 0 (edges c)) ->
  mean G P h s r f <= mean G P h s r' g.
Proof.
  intros H. destruct (St (length h) s Hl) as (E1 & _ & E3).
  apply (mean_le G pol P LA h s r r' f g Hs ended). rewrite E1, E3. intros i c Hi U. now apply H.
Qed.
Lemma at_const a : mean G P h s (fun _ => a) (fun _ _ => 0) = a.
Proof. apply (mean_const G pol P LA h s a Hs ended). Qed.
Lemma at_law i c : nth_error (cs s) i = Some c ->
  (forall j e, nth_error (edges c) j = Some e -> 0 <= nature P h s i j /\ Q2R (lo e) <= nature P h s i j <= Q2R (hi e)) /\
  sumi (fun j _ => nature P h s i j) 0 (edges c) = 1.
Proof.
  intros Hi. destruct (St (length h) s Hl) as (E1 & _ & _). apply (LN h s Hs ended). now rewrite E1.
Qed.
Lemma at_agent : (forall i, 0 <= agent P h s i) /\ sumi (fun i _ => agent P h s i) 0 (cs s) = 1 /\ obeys (pl s) (agent P h s).
Proof. destruct (St (length h) s Hl) as (E1 & _ & E3). rewrite <- E1, <- E3. apply (LA h s Hs ended). Qed.
Lemma at_mean r f : mean G P h s r f =
  sumi (fun i c => agent P h s i * (r c + sumi (fun j e => nature P h s i j * f i (next e)) 0 (edges c))) 0 (cs s).
Proof. unfold mean. destruct (St (length h) s Hl) as (-> & _ & _). reflexivity. Qed.
Lemma at_outside A i c j e : only_to A (edges c) = true -> nth_error (cs s) i = Some c ->
  nth_error (edges c) j = Some e -> nature P h s i j = 0 \/ A (next e) = true.
Proof.
  intros H Hi Hj. destruct (St (length h) s Hl) as (E1 & _ & _).
  apply (only_to_spec G P LN A h s i c j e H Hs ended); [now rewrite E1|exact Hj].
Qed.
Lemma at_step_low y x sup : 0 <= Q2R (discount G) -> known_low G (nature P) late x sup ->
  rule_le Qle_bool (pl s) y (fun i c => backup (discount G) low_term x (sup s i) c) (cs s) = true ->
  Q2R y <= mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (discount G) * Q2R (x t)).
Proof.
  intros D0 Kn H. destruct (St (length h) s Hl) as (E1 & _ & E3). rewrite <- E1, <- E3 in H.
  now apply (step_low G pol P LA LN D0 late h s y x sup Hl Kn Hs ended).
Qed.
Lemma at_step_high y x sup : 0 <= Q2R (discount G) -> known_high G (nature P) late x sup ->
  rule_le geb (pl s) y (fun i c => backup (discount G) high_term x (sup s i) c) (cs s) = true ->
  mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (discount G) * Q2R (x t)) <= Q2R y.
Proof.
  intros D0 Kn H. destruct (St (length h) s Hl) as (E1 & _ & E3). rewrite <- E1, <- E3 in H.
  now apply (step_high G pol P LA LN D0 late h s y x sup Hl Kn Hs ended).
Qed.
(* A mean over edges of what is at least a, where nature goes. *)
Lemma edges_ge i c (f : nat -> R) a : nth_error (cs s) i = Some c ->
  (forall j e, nth_error (edges c) j = Some e -> nature P h s i j = 0 \/ a <= f (next e)) ->
  a <= sumi (fun j e => nature P h s i j * f (next e)) 0 (edges c).
Proof.
  intros Hi H. destruct (at_law i c Hi) as [Hp H1].
  rewrite <- (Rmult_1_r a) at 1. rewrite <- H1, <- sumi_scal. apply sumi_le. intros j e Hj. simpl.
  destruct (H j e Hj) as [->|K']; [lra|]. destruct (Hp j e Hj) as [K0 _]. rewrite Rmult_comm. now apply Rmult_le_compat_l.
Qed.
Lemma edges_le i c (f : nat -> R) a : nth_error (cs s) i = Some c ->
  (forall j e, nth_error (edges c) j = Some e -> nature P h s i j = 0 \/ f (next e) <= a) ->
  sumi (fun j e => nature P h s i j * f (next e)) 0 (edges c) <= a.
Proof.
  intros Hi H. destruct (at_law i c Hi) as [Hp H1].
  rewrite <- (Rmult_1_r a) at 1. rewrite <- H1, <- sumi_scal. apply sumi_le. intros j e Hj. simpl.
  destruct (H j e Hj) as [->|K']; [lra|]. destruct (Hp j e Hj) as [K0 _]. rewrite (Rmult_comm a). now apply Rmult_le_compat_l.
Qed.
End At.

(* Numbers that serve all states. *)
Lemma for_all_states (Pr : nat -> R -> Prop) :
  (forall s r r', Pr s r -> 0 < r' <= r -> Pr s r') ->
  (forall s, (s < size G)%nat -> exists r, 0 < r /\ Pr s r) ->
  exists r, 0 < r <= 1 /\ forall s, (s < size G)%nat -> Pr s r.
Proof.
  intros M H. destruct (common (seq 0 (size G)) (fun _ => True) Pr) as (r & Hr & HP); auto.
  - intros s Hs _. apply H. apply in_seq in Hs. lia.
  - exists r. split; [exact Hr|]. intros s Hs. apply HP; auto. apply in_seq. lia.
Qed.

Definition sure_gain (A : nat -> bool) (c : choice) (a : R) : Prop := forall p : nat -> R,
  (forall j e, nth_error (edges c) j = Some e -> 0 <= p j /\ Q2R (lo e) <= p j <= Q2R (hi e)) ->
  sumi (fun j _ => p j) 0 (edges c) = 1 ->
  a <= sumi (fun j e => p j * (if A (next e) then 1 else 0)) 0 (edges c).

Lemma sure_everywhere (A : nat -> nat -> bool) :
  exists a, 0 < a <= 1 /\ forall s, (s < size G)%nat -> forall c, In c (cs s) -> surely (A s) (edges c) = true ->
    sure_gain (A s) c a.
Proof.
  apply (for_all_states (fun s a => forall c, In c (cs s) -> surely (A s) (edges c) = true -> sure_gain (A s) c a)).
  - intros s r r' H Hr c Hc HS p Hp H1. specialize (H c Hc HS p Hp H1). lra.
  - intros s Hs. destruct (common (cs s) (fun c => surely (A s) (edges c) = true) (sure_gain (A s))) as (r & Hr & HP).
    + intros c r r' H Hr p Hp H1. specialize (H p Hp H1). lra.
    + intros c Hc HS. apply surely_gain. exact HS.
    + intros c. destruct (surely (A s) (edges c)); [now left|right; discriminate].
    + exists r. split; [lra|exact HP].
Qed.

Lemma portion_everywhere (f : nat -> nat -> choice -> bool) :
  exists w, 0 < w <= 1 /\ forall s, (s < size G)%nat -> rule_some (pl s) (f s) (cs s) = true -> portion (pl s) (f s) (cs s) w.
Proof.
  apply (for_all_states (fun s w => rule_some (pl s) (f s) (cs s) = true -> portion (pl s) (f s) (cs s) w)).
  - intros s r r' H Hr HS a A0 A1 A2 v g Hg V0 VF. specialize (H HS a A0 A1 A2 v g Hg V0 VF). nra.
  - intros s Hs. destruct (rule_some (pl s) (f s) (cs s)) eqn:E.
    + destruct (rule_some_portion _ _ _ E) as (w & Hw & HP). exists w. split; [lra|auto].
    + exists 1. split; [lra|discriminate].
Qed.

Lemma lasting_everywhere (down stay moves : nat -> choice -> bool) :
  exists w, 0 < w <= 1 /\ forall s, (s < size G)%nat -> forever (pl s) (down s) (stay s) (moves s) (cs s) = true ->
    lasting (pl s) (down s) (stay s) (moves s) (cs s) w.
Proof.
  apply (for_all_states (fun s w => forever (pl s) (down s) (stay s) (moves s) (cs s) = true ->
    lasting (pl s) (down s) (stay s) (moves s) (cs s) w)).
  - intros s r r' H Hr HF a A0 A1 A2 v t d D HD Hd V0 VD VS VM.
    specialize (H HF a A0 A1 A2 v t d D HD Hd V0 VD VS VM).
    eapply Rle_trans; [|exact H]. unfold Rmin. destruct (Rle_dec _ _), (Rle_dec _ _); nra.
  - intros s Hs. destruct (forever (pl s) (down s) (stay s) (moves s) (cs s)) eqn:E.
    + destruct (forever_lasting _ _ _ _ _ E) as (w & Hw & HP). exists w. split; [lra|auto].
    + exists 1. split; [lra|discriminate].
Qed.

(* What nature surely does, times what it brings. *)
Lemma gain_edges (A : nat -> bool) a h s i c (f : nat -> R) t g : late h -> (s < size G)%nat -> en s = None ->
  nth_error (cs s) i = Some c -> sure_gain A c a -> 0 <= g ->
  (forall j e, nth_error (edges c) j = Some e -> nature P h s i j = 0 \/ t <= f (next e)) ->
  (forall j e, nth_error (edges c) j = Some e -> A (next e) = true -> nature P h s i j = 0 \/ t + g <= f (next e)) ->
  t + a * g <= sumi (fun j e => nature P h s i j * f (next e)) 0 (edges c).
Proof.
  intros Hl Hs Hb Hi HG Hg F0 FA. destruct (at_law h s Hl Hs Hb i c Hi) as [Hp H1].
  specialize (HG _ Hp H1).
  apply Rle_trans with (sumi (fun j e => t * nature P h s i j + g * (nature P h s i j * (if A (next e) then 1 else 0))) 0 (edges c)).
  - rewrite (sumi_add (fun j _ => t * nature P h s i j)), !sumi_scal, H1. nra.
  - apply sumi_le. intros j e Hj. simpl. destruct (Hp j e Hj) as [K0 _]. destruct (A (next e)) eqn:E.
    + destruct (FA j e Hj E) as [->|F]; [lra|nra].
    + destruct (F0 j e Hj) as [->|F]; [lra|nra].
Qed.
End Stationary.
