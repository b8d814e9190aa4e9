(* Values of k steps are expectations over paths: of every path its probability times what it earns. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Problem Basics Polynomial Value Sound Ville Model Learned Likelihood.
Import ListNotations.
Open Scope R_scope.

(* A step: a choice and an edge of it, with their numbers. Paths end where the play does, or after k steps. *)
Definition step := ((nat * choice) * (nat * edge))%type.
Definition indexed {A} (l : list A) : list (nat * A) := combine (seq 0 (length l)) l.
Definition steps_from (G : game) (h : hist) (s : nat) : list step :=
  flat_map (fun c => map (pair c) (indexed (edges (snd c)))) (indexed (choices_of G (length h) s)).
Definition longer (h : hist) (s : nat) (x : step) : hist := (s, fst (fst x)) :: h.
Definition leads (x : step) : nat := next (snd (snd x)).
Fixpoint paths (G : game) (k : nat) (h : hist) (s : nat) : list (list step) :=
  match ends G (length h) s, k with
  | Some _, _ | None, O => [[]]
  | None, S k' => flat_map (fun x => map (cons x) (paths G k' (longer h s x) (leads x))) (steps_from G h s)
  end.
Fixpoint probability (P : play) (h : hist) (s : nat) (w : list step) : R :=
  match w with
  | [] => 1
  | x :: w' => agent P h s (fst (fst x)) * nature P h s (fst (fst x)) (fst (snd x)) * probability P (longer h s x) (leads x) w'
  end.
(* [pay]: what a choice of a state earns; of a game its reward, of a model with parameters what its polynomial is at the truth. *)
Definition wage := nat -> nat -> choice -> R.
Definition rewards : wage := fun _ _ c => Q2R (reward c).
Definition true_rewards (M : model) (theta : nat -> R) : wage := fun s i _ =>
  match nth_error (table M s) i with Some c => poly_at theta (gains c) | None => 0 end.
Fixpoint earned (pay : wage) (G : game) (h : hist) (s : nat) (w : list step) : R :=
  match ends G (length h) s, w with
  | Some b, _ => Q2R b
  | None, [] => 0
  | None, x :: w' => pay s (fst (fst x)) (snd (fst x)) + Q2R (discount G) * earned pay G (longer h s x) (leads x) w'
  end.
Fixpoint goes_on (G : game) (h : hist) (s : nat) (w : list step) : bool :=
  match ends G (length h) s, w with
  | Some _, _ => false
  | None, [] => true
  | None, x :: w' => goes_on G (longer h s x) (leads x) w'
  end.

Lemma rsum_flat_map {A B} (f : B -> R) (g : A -> list B) l : rsum f (flat_map g l) = rsum (fun a => rsum f (g a)) l.
Proof. induction l as [|a l IH]; simpl; [reflexivity|]. now rewrite rsum_app, IH. Qed.
Lemma rsum_map {A B} (f : B -> R) (g : A -> B) l : rsum f (map g l) = rsum (fun a => f (g a)) l.
Proof. induction l as [|a l IH]; simpl; [reflexivity|]. now rewrite IH. Qed.
Lemma rsum_indexed {A} (f : nat -> A -> R) l : rsum (fun x => f (fst x) (snd x)) (indexed l) = sumi f 0 l.
Proof.
  unfold indexed. generalize 0%nat. induction l as [|a l IH]; intros k; simpl; [reflexivity|]. now rewrite (IH (S k)).
Qed.
Lemma in_indexed {A} (l : list A) x : In x (indexed l) -> nth_error l (fst x) = Some (snd x).
Proof.
  unfold indexed. assert (G : forall k, In x (combine (seq k (length l)) l) -> (k <= fst x)%nat /\ nth_error l (fst x - k) = Some (snd x)).
  { induction l as [|a l IH]; intros k H; simpl in H; [destruct H|]. destruct H as [<-|H].
    - simpl. rewrite Nat.sub_diag. split; [lia|reflexivity].
    - destruct (IH (S k) H) as [H1 H2]. split; [lia|]. replace (fst x - k)%nat with (S (fst x - S k)) by lia. exact H2. }
  intros H. destruct (G 0%nat H) as [_ K]. now rewrite Nat.sub_0_r in K.
Qed.

Section Paths.
Variables (G : game) (pol : nat -> nat -> rule) (P : play).
Hypothesis (LA : legal_agent G pol (agent P)) (LN : legal_nature G (nature P)).
Hypothesis inside : forall j s c e, (s < size G)%nat -> In c (choices_of G j s) -> In e (edges c) -> (next e < size G)%nat.

Definition chance_at (h : hist) (s : nat) (x : step) : R := agent P h s (fst (fst x)) * nature P h s (fst (fst x)) (fst (snd x)).

(* What is expected of a step that earns r and goes on with f is the sum over steps. *)
Definition weighted h s (r : nat -> choice -> R) (f : nat -> nat -> R) : R :=
  sumi (fun i c => agent P h s i * (r i c + sumi (fun j e => nature P h s i j * f i (next e)) 0 (edges c))) 0 (choices_of G (length h) s).
Lemma mean_is_sum h s r f : (s < size G)%nat -> ends G (length h) s = None ->
  weighted h s r f = rsum (fun x => chance_at h s x * (r (fst (fst x)) (snd (fst x)) + f (fst (fst x)) (leads x))) (steps_from G h s).
Proof.
  intros Hs He. unfold weighted, steps_from. rewrite rsum_flat_map, <- rsum_indexed. apply rsum_ext. intros [i c] Hc. apply in_indexed in Hc. simpl in *.
  rewrite rsum_map. destruct (LN h s Hs He i c Hc) as [_ N1].
  rewrite (rsum_ext _ (fun y => agent P h s i * (r i c * nature P h s i (fst y) + nature P h s i (fst y) * f i (next (snd y))))).
  - rewrite rsum_scal, rsum_add, rsum_scal. rewrite (rsum_indexed (fun j _ => nature P h s i j)), N1.
    rewrite (rsum_indexed (fun j e => nature P h s i j * f i (next e))). lra.
  - intros y _. unfold chance_at, leads. simpl. lra.
Qed.
Lemma leads_inside h s x : (s < size G)%nat -> In x (steps_from G h s) -> (leads x < size G)%nat.
Proof.
  intros Hs H. unfold steps_from in H. apply in_flat_map in H. destruct H as ([i c] & Hc & H). apply in_map_iff in H.
  destruct H as ([j e] & <- & He). apply in_indexed in Hc, He. simpl in *.
  eapply inside; [exact Hs|eapply nth_error_In; eauto|eapply nth_error_In; eauto].
Qed.
Lemma over_paths k h s (F : list step -> R) : ends G (length h) s = None ->
  rsum (fun w => probability P h s w * F w) (paths G (S k) h s) =
  rsum (fun x => chance_at h s x * rsum (fun w => probability P (longer h s x) (leads x) w * F (x :: w)) (paths G k (longer h s x) (leads x)))
    (steps_from G h s).
Proof.
  intros He. cbn [paths]. rewrite He, rsum_flat_map. apply rsum_ext. intros x _. rewrite rsum_map, <- rsum_scal. apply rsum_ext. intros w _.
  unfold chance_at. simpl. lra.
Qed.

Theorem probabilities_sum k : forall h s, (s < size G)%nat -> rsum (fun w => probability P h s w * 1) (paths G k h s) = 1.
Proof.
  induction k as [|k IH]; intros h s Hs; (destruct (ends G (length h) s) eqn:He; [simpl; rewrite He; simpl; lra|]); [simpl; rewrite He; simpl; lra|].
  rewrite over_paths by exact He.
  rewrite (rsum_ext _ (fun x => chance_at h s x * (0 + 1))); [|intros x Hx; rewrite IH by (now apply (leads_inside h s)); lra].
  rewrite <- (mean_is_sum h s (fun _ _ => 0) (fun _ _ => 1) Hs He). destruct (LA h s Hs He) as (_ & A1 & _). unfold weighted.
  eapply eq_trans; [|exact A1]. apply sumi_ext. intros i c Hc. destruct (LN h s Hs He i c Hc) as [_ N1]. simpl.
  replace (sumi (fun j _ => nature P h s i j * 1) 0 (edges c)) with (sumi (fun j _ => nature P h s i j) 0 (edges c)); [rewrite N1; lra|].
  apply sumi_ext. intros; lra.
Qed.
Fixpoint gathered (pay : wage) (k : nat) (h : hist) (s : nat) : R :=
  match ends G (length h) s, k with
  | Some b, _ => Q2R b
  | None, O => 0
  | None, S k' => weighted h s (pay s) (fun i t => Q2R (discount G) * gathered pay k' ((s, i) :: h) t)
  end.
Lemma gathered_is_expected pay k : forall h s, (s < size G)%nat ->
  gathered pay k h s = rsum (fun w => probability P h s w * earned pay G h s w) (paths G k h s).
Proof.
  induction k as [|k IH]; intros h s Hs; (destruct (ends G (length h) s) eqn:He; [simpl; rewrite He; simpl; rewrite He; lra|]); [simpl; rewrite He; simpl; rewrite He; lra|].
  rewrite over_paths by exact He. simpl gathered. rewrite He, mean_is_sum by assumption. apply rsum_ext. intros x Hx. f_equal.
  rewrite IH by (now apply (leads_inside h s)). fold (longer h s x). symmetry.
  rewrite (rsum_ext _ (fun w => pay s (fst (fst x)) (snd (fst x)) * (probability P (longer h s x) (leads x) w * 1) +
    Q2R (discount G) * (probability P (longer h s x) (leads x) w * earned pay G (longer h s x) (leads x) w))).
  - rewrite rsum_add, !rsum_scal, probabilities_sum by (now apply (leads_inside h s)). lra.
  - intros w _. cbn [earned]. rewrite He. lra.
Qed.
Theorem value_is_expected k h s : (s < size G)%nat ->
  value G P k h s = rsum (fun w => probability P h s w * earned rewards G h s w) (paths G k h s).
Proof.
  intros Hs. rewrite <- gathered_is_expected by exact Hs. clear Hs. revert h s. induction k as [|k IH]; intros h s; [reflexivity|]. simpl value.
  simpl gathered. destruct (ends G (length h) s); [reflexivity|]. unfold mean, weighted. apply sumi_ext. intros i c _. f_equal. f_equal.
  apply sumi_ext. intros j e _. now rewrite IH.
Qed.
Theorem missed_is_probability k : forall h s, (s < size G)%nat ->
  missed G P k h s = rsum (fun w => probability P h s w * if goes_on G h s w then 1 else 0) (paths G k h s).
Proof.
  induction k as [|k IH]; intros h s Hs; (destruct (ends G (length h) s) eqn:He; [simpl; rewrite He; simpl; rewrite He; lra|]); [simpl; rewrite He; simpl; rewrite He; lra|].
  rewrite over_paths by exact He. simpl missed. rewrite He. change (mean G P h s ?r ?f) with (weighted h s (fun _ => r) f). rewrite mean_is_sum by assumption. apply rsum_ext. intros x Hx. f_equal. rewrite Rplus_0_l.
  rewrite IH by (now apply (leads_inside h s)). fold (longer h s x). apply rsum_ext. intros w _. cbn [goes_on]. now rewrite He.
Qed.
End Paths.

(* The true value of a model with parameters. *)
Theorem true_value_is_expected M theta q a k : instance M theta -> legal_agent (game_of (skeleton M)) (pol_of (skeleton M) q) a ->
  (forall s c e, (s < states (shape M))%nat -> In c (table M s) -> In e (outcomes c) -> (goes e < states (shape M))%nat) ->
  forall h s, (s < states (shape M))%nat -> let G := game_of (skeleton M) in let P := Play a (truth M theta) in
  true_value M theta a k h s = rsum (fun w => probability P h s w * earned (true_rewards M theta) G h s w) (paths G k h s).
Proof.
  intros T LA W h s Hs G P.
  assert (LN : legal_nature G (truth M theta)).
  { apply (nature_boxed M theta T). intros s' i j c e Hs' Hi Hj.
    destruct (outcome_chance M theta T s' i j (expr e)) as [H1 _]; [|simpl; rewrite Q2R_0, Q2R_1; exact H1].
    unfold label. simpl. apply Nat.ltb_lt in Hs'. now rewrite Hi, Hs', Hj. }
  assert (I : forall (n s' : nat) c e, (s' < size G)%nat -> In c (choices_of G n s') -> In e (edges c) -> (next e < size G)%nat).
  { simpl. intros _ s' c e Hs' Hc He. apply In_nth_error in Hc. destruct Hc as (i & Hc). rewrite nth_mapi in Hc.
    destruct (nth_error (table M s') i) as [c'|] eqn:Ei; [|discriminate]. injection Hc as <-. simpl in He.
    apply In_nth_error in He. destruct He as (j & He). rewrite nth_mapi in He.
    destruct (nth_error (outcomes c') j) as [e'|] eqn:Ej; [|discriminate]. injection He as <-. simpl.
    apply (W s' c' e' Hs'); eapply nth_error_In; eauto. }
  rewrite <- (gathered_is_expected G (pol_of (skeleton M) q) P LA LN I) by exact Hs.
  revert h s Hs. induction k as [|k IH]; intros h s Hs; [reflexivity|]. simpl true_value. simpl gathered.
  change (ends_of (skeleton M) (length h) s) with (ends_of (shape M) (length h) s). destruct (ends_of (shape M) (length h) s); [reflexivity|].
  unfold weighted. simpl choices_of. rewrite sumi_mapi. apply sumi_ext. intros i c Hi. simpl. unfold true_rewards. rewrite Hi. f_equal. f_equal.
  rewrite sumi_mapi. apply sumi_ext. intros j e Hj. simpl. change (truth M theta h s i j) with (law M theta (s, i) j).
  rewrite (law_at M theta s i j c e Hs Hi Hj), IH; [reflexivity|]. apply (W s c e Hs); eapply nth_error_In; eauto.
Qed.
