(* Temporal formulas that finite runs decide: an automaton reads the states of a play, and a policy sees its memory. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Problem Basics Polynomial Value Sound Ville Model.
Import ListNotations.
Open Scope R_scope.

(* BELIEVED *)
(* It begins in memory 0 and reads the letter of every state that is visited. A pair: what is to be read finitely often, and what infinitely often;
   from [settled] memories on all is accepted. Node i of the product is state s while memory is q and s was not read, (s, q) = key i. *)
Definition mark := nat -> nat -> bool.
Record automaton := Automaton {
  letter : nat -> nat; reads : nat -> nat -> nat; pairs : list (mark * list mark); settled : nat -> bool;
  nodes : nat; key : nat -> nat * nat; number : nat * nat -> nat;
  memories : nat; letters : nat; home : nat -> nat -> bool (* hints *) }.
Fixpoint memory (A : automaton) (run : nat -> nat) (n : nat) : nat :=
  match n with O => 0 | S k => reads A (memory A run k) (letter A (run k)) end.
Definition accepts (A : automaton) (run : nat -> nat) : Prop :=
  let seen (m : mark) n := m (memory A run n) (letter A (run n)) in
  exists avoided repeated, In (avoided, repeated) (pairs A) /\ (exists n, forall k, (n <= k)%nat -> seen avoided k = false) /\
    forall m, In m repeated -> forall n, exists k, (n <= k)%nat /\ seen m k = true.

Definition behind (A : automaton) (i t : nat) : nat * nat := (t, reads A (snd (key A i)) (letter A (fst (key A i)))).
Definition product (p : problem) (A : automaton) : problem :=
  let move i e := Edge (number A (behind A i (next e))) (lo e) (hi e) in
  Problem (nodes A) (number A (initial p, 0%nat)) (fun i => map (fun c => Choice (reward c) (map (move i) (edges c))) (rows p (fst (key A i))))
    Until (fun i => settled A (snd (key A i))) (fun _ => true) (fun _ => 0%Q) 0 None 1%Q.
Definition product_model (M : model) (A : automaton) : model :=
  let move i e := LEdge (number A (behind A i (goes e))) (expr e) in
  Model (product (shape M) A) (fun i => map (fun c => LChoice (gains c) (map (move i) (outcomes c))) (table M (fst (key A i))))
    (polys M) (domain M) (least M).
(* Nodes are numbered as their keys say, and to be accepted is to settle. *)
Definition follows_runs (p : problem) (A : automaton) : Prop :=
  key A (number A (initial p, 0%nat)) = (initial p, 0%nat) /\
  (forall i c e, (i < nodes A)%nat -> In c (rows p (fst (key A i))) -> In e (edges c) ->
     key A (number A (behind A i (next e))) = behind A i (next e)) /\
  forall run, (forall n, (run n < states p)%nat) -> accepts A run <-> exists n, settled A (memory A run n) = true.
(* END *)

(* ---------- The checker ---------- *)

Definition each (A : automaton) (f : nat -> nat -> bool) : bool := below (memories A) (fun q => below (letters A) (f q)).
(* [home] k: memories from which pair k accepts whatever comes; every pair has a mark that is nowhere but in settled memories. *)
Definition settles (A : automaton) (n : nat) : bool :=
  (0 <? memories A)%nat && below n (fun s => (letter A s <? letters A)%nat) && each A (fun q l => (reads A q l <? memories A)%nat) &&
  below (memories A) (fun q => if settled A q then existsb (fun k => home A k q) (seq 0 (length (pairs A))) else true) &&
  foralli (fun k (pair : mark * list mark) =>
    each A (fun q l => if home A k q
      then negb (fst pair q l) && forallb (fun m : mark => m q l) (snd pair) && home A k (reads A q l) else true) &&
    existsb (fun m : mark => each A (fun q l => if m q l then settled A q else true)) (snd pair)) 0 (pairs A).
Definition readable (p : problem) (A : automaton) : bool :=
  same (key A (number A (initial p, 0%nat))) (initial p, 0%nat) &&
  below (nodes A) (fun i => (fst (key A i) <? states p)%nat && forallb (fun c => forallb (fun e =>
    same (key A (number A (behind A i (next e)))) (behind A i (next e))) (edges c)) (rows p (fst (key A i)))) &&
  settles A (states p).

(* ---------- To be accepted is to settle ---------- *)

Section Run.
Variables (A : automaton) (n : nat) (run : nat -> nat).
Hypothesis (OK : settles A n = true) (IN : forall k, (run k < n)%nat).

Lemma each_spec f : each A f = true -> forall q l, (q < memories A)%nat -> (l < letters A)%nat -> f q l = true.
Proof. intros H q l Hq Hl. apply (below_spec _ _ (below_spec _ _ H q Hq) l Hl). Qed.
Lemma settles_parts : (0 < memories A)%nat /\ (forall s, (s < n)%nat -> (letter A s < letters A)%nat) /\
  (forall q l, (q < memories A)%nat -> (l < letters A)%nat -> (reads A q l < memories A)%nat) /\
  (forall q, (q < memories A)%nat -> settled A q = true -> exists k, (k < length (pairs A))%nat /\ home A k q = true) /\
  forall k pair, nth_error (pairs A) k = Some pair ->
    (forall q l, (q < memories A)%nat -> (l < letters A)%nat -> home A k q = true ->
       fst pair q l = false /\ (forall m, In m (snd pair) -> m q l = true) /\ home A k (reads A q l) = true) /\
    exists m, In m (snd pair) /\ forall q l, (q < memories A)%nat -> (l < letters A)%nat -> m q l = true -> settled A q = true.
Proof.
  pose proof OK as H. unfold settles in H. apply andb_prop in H. destruct H as [H H5]. apply andb_prop in H. destruct H as [H H4].
  apply andb_prop in H. destruct H as [H H3]. apply andb_prop in H. destruct H as [H1 H2]. repeat split.
  - now apply Nat.ltb_lt.
  - intros s Hs. apply Nat.ltb_lt. apply (below_spec _ _ H2 s Hs).
  - intros q l Hq Hl. apply Nat.ltb_lt. apply (each_spec _ H3 q l Hq Hl).
  - intros q Hq S. pose proof (below_spec _ _ H4 q Hq) as E. simpl in E. rewrite S in E. apply existsb_exists in E.
    destruct E as (k & Hk & E). apply in_seq in Hk. exists k. split; [lia|exact E].
  - pose proof (foralli_spec _ _ _ H5 k pair H) as E. simpl in E. apply andb_prop in E. destruct E as [E _].
    pose proof (each_spec _ E q l H0 H6) as F. simpl in F. rewrite H7 in F. apply andb_prop in F. destruct F as [F _].
    apply andb_prop in F. destruct F as [F _]. now apply negb_true_iff in F.
  - pose proof (foralli_spec _ _ _ H5 k pair H) as E. simpl in E. apply andb_prop in E. destruct E as [E _].
    pose proof (each_spec _ E q l H0 H6) as F. simpl in F. rewrite H7 in F. apply andb_prop in F. destruct F as [F _].
    apply andb_prop in F. destruct F as [_ F]. rewrite forallb_forall in F. exact F.
  - pose proof (foralli_spec _ _ _ H5 k pair H) as E. simpl in E. apply andb_prop in E. destruct E as [E _].
    pose proof (each_spec _ E q l H0 H6) as F. simpl in F. rewrite H7 in F. apply andb_prop in F. now destruct F as [_ F].
  - pose proof (foralli_spec _ _ _ H5 k pair H) as E. simpl in E. apply andb_prop in E. destruct E as [_ E].
    apply existsb_exists in E. destruct E as (m & Hm & E). exists m. split; [exact Hm|]. intros q l Hq Hl Hmark.
    pose proof (each_spec _ E q l Hq Hl) as F. simpl in F. now rewrite Hmark in F.
Qed.

Lemma memory_in k : (memory A run k < memories A)%nat.
Proof.
  destruct settles_parts as (M0 & HL & HR & _). induction k as [|k IH]; simpl; [exact M0|]. apply HR; [exact IH|]. apply HL, IN.
Qed.
Lemma settles_spec : accepts A run <-> exists k, settled A (memory A run k) = true.
Proof.
  destruct settles_parts as (_ & HL & _ & HS & HP). split.
  - intros (avoided & repeated & Hin & _ & Inf). apply In_nth_error in Hin. destruct Hin as (k & Hk).
    destruct (HP k _ Hk) as (_ & m & Hm & S). destruct (Inf m Hm 0%nat) as (i & _ & Hi). exists i.
    apply (S _ _ (memory_in i) (HL _ (IN i)) Hi).
  - intros (i & Si). destruct (HS _ (memory_in i) Si) as (k & Hk & Hh).
    destruct (nth_error (pairs A) k) as [ [avoided repeated]|] eqn:E; [|apply nth_error_None in E; lia].
    destruct (HP k _ E) as (Good & _). simpl in Good.
    assert (Stay : forall j, (i <= j)%nat -> home A k (memory A run j) = true).
    { intros j Hj. induction Hj as [|j Hj IH]; [exact Hh|]. simpl. apply (Good _ _ (memory_in j) (HL _ (IN j)) IH). }
    exists avoided, repeated. split; [eapply nth_error_In; eauto|]. split.
    + exists i. intros j Hj. apply (Good _ _ (memory_in j) (HL _ (IN j)) (Stay j Hj)).
    + intros m Hm j. exists (Nat.max i j). split; [lia|].
      apply (Good _ _ (memory_in _) (HL _ (IN _)) (Stay (Nat.max i j) ltac:(lia))). exact Hm.
Qed.
End Run.

Lemma same_spec a b : same a b = true -> a = b.
Proof. unfold same. intros H. apply andb_prop in H. destruct H as [H1 H2]. apply Nat.eqb_eq in H1, H2. destruct a, b. simpl in *. congruence. Qed.
Theorem readable_true p A : readable p A = true -> follows_runs p A.
Proof.
  unfold readable. intros H. apply andb_prop in H. destruct H as [H HS]. apply andb_prop in H. destruct H as [H1 H2]. split; [|split].
  - now apply same_spec.
  - intros i c e Hi Hc He. pose proof (below_spec _ _ H2 i Hi) as E. simpl in E. apply andb_prop in E. destruct E as [_ E].
    rewrite forallb_forall in E. specialize (E c Hc). rewrite forallb_forall in E. apply same_spec, E, He.
  - intros run IN. now apply (settles_spec A (states p) run).
Qed.
Lemma readable_state p A i : readable p A = true -> (i < nodes A)%nat -> (fst (key A i) < states p)%nat.
Proof.
  unfold readable. intros H Hi. apply andb_prop in H. destruct H as [H _]. apply andb_prop in H. destruct H as [_ H].
  pose proof (below_spec _ _ H i Hi) as E. simpl in E. apply andb_prop in E. now apply Nat.ltb_lt.
Qed.

(* ---------- The true parameters of a model are those of its product ---------- *)

Lemma sumi_of_map {X Y} (g : X -> Y) (f : nat -> Y -> R) (l : list X) : forall k, sumi f k (map g l) = sumi (fun j x => f j (g x)) k l.
Proof. induction l as [|x l IH]; intros k; simpl; [reflexivity|]. now rewrite IH. Qed.
Lemma product_instance M A theta : readable (skeleton M) A = true -> instance M theta -> instance (product_model M A) theta.
Proof.
  intros OK [D I]. split; [exact D|]. intros i c Hi Hc. simpl in Hi, Hc. apply in_map_iff in Hc. destruct Hc as (c0 & <- & Hc).
  destruct (I (fst (key A i)) c0 (readable_state _ _ _ OK Hi) Hc) as [S E]. simpl. split.
  - now rewrite sumi_of_map.
  - intros e He. apply in_map_iff in He. destruct He as (e0 & <- & He). apply (E e0 He).
Qed.

(* ---------- Values ---------- *)

Definition accept_value (p : problem) (runs : option automaton) (q : question) (complement : bool) (lower upper : option Q) (low high : hints) : bool :=
  match runs with
  | None => prove p q complement lower upper low high
  | Some A => readable p A && prove (product p A) q complement lower upper low high
  end.
(* BELIEVED *)
Theorem value_sound p runs q complement lower upper low high : accept_value p runs q complement lower upper low high = true ->
  match runs with None => stated p q complement lower upper | Some A => follows_runs p A /\ stated (product p A) q complement lower upper end.
(* END *)
Proof.
  destruct runs as [A|]; simpl; [|apply prove_sound]. intros H. apply andb_prop in H. destruct H as [H1 H2].
  split; [now apply readable_true|eapply prove_sound; eauto].
Qed.
