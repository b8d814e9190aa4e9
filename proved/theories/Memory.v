(* What a product is: the game itself, whose policies and nature remember what the automaton has read. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia FunctionalExtensionality.
From Proved Require Import Game Problem Basics Value Sound Ville Model Temporal.
Import ListNotations.
Open Scope R_scope.

Section Memory.
Variables (p : problem) (A : automaton).
(* The game alone: its plays do not end. *)
Definition alone_game : game := Game (states p) (fun _ s => rows p s) (fun _ _ => None) 1%Q.
(* The memory when the states of a history were read. *)
Fixpoint memory_of (h : hist) : nat :=
  match h with [] => 0 | (s, _) :: h' => reads A (memory_of h') (letter A s) end.
(* The probability that the memory is settled within k more steps. *)
Fixpoint settles_within (P : play) (k : nat) (h : hist) (s : nat) : R :=
  if settled A (memory_of h) then 1 else
  match k with O => 0 | S k' => mean alone_game P h s (fun _ => 0) (fun i t => settles_within P k' ((s, i) :: h) t) end.

(* A play of the game as one of the product. *)
Definition state_of (i : nat) : nat := fst (key A i).
Definition states_of (h : hist) : hist := map (fun x => (state_of (fst x), snd x)) h.
Definition in_product (P : play) : play :=
  Play (fun h i c => agent P (states_of h) (state_of i) c) (fun h i c e => nature P (states_of h) (state_of i) c e).
(* And back; where no node stands for a state and its memory, or all is decided, as [other] does. *)
Definition node_of (h : hist) (s : nat) : nat := number A (s, memory_of h).
Fixpoint nodes_of (h : hist) : hist :=
  match h with [] => [] | (s, i) :: h' => (node_of h' s, i) :: nodes_of h' end.
Definition has_node (h : hist) (s : nat) : bool :=
  (node_of h s <? nodes A)%nat && same (key A (node_of h s)) (s, memory_of h).
Definition goes_by (h : hist) (s : nat) : bool := has_node h s && negb (settled A (memory_of h)).
Definition of_product (P other : play) : play :=
  Play (fun h s c => if goes_by h s then agent P (nodes_of h) (node_of h s) c else agent other h s c)
       (fun h s c e => if goes_by h s then nature P (nodes_of h) (node_of h s) c e else nature other h s c e).

Hypothesis OK : readable p A = true.
Hypothesis NR : forall s c, In c (rows p s) -> Q2R (reward c) = 0.
Hypothesis IN : forall i c e, (i < nodes A)%nat -> In c (rows p (state_of i)) -> In e (edges c) ->
  (number A (behind A i (next e)) < nodes A)%nat.
Notation product_game := (game_of (product p A)).

Lemma key_behind i c e : (i < nodes A)%nat -> In c (rows p (state_of i)) -> In e (edges c) ->
  key A (number A (behind A i (next e))) = behind A i (next e).
Proof. apply (readable_true p A OK). Qed.
Lemma ends_settled j i : ends_of (product p A) j i = if settled A (snd (key A i)) then Some 1%Q else None.
Proof. unfold ends_of. simpl. now destruct (settled A (snd (key A i))). Qed.

(* One step of both. *)
Lemma mean_alike (P P' : play) h h' i s f g : (forall c, agent P' h' i c = agent P h s c) -> (forall c e, nature P' h' i c e = nature P h s c e) ->
  s = state_of i ->
  (forall c ch e, In ch (rows p s) -> In e (edges ch) -> g c (number A (behind A i (next e))) = f c (next e)) ->
  mean product_game P' h' i (fun c => Q2R (reward c)) (fun c t => Q2R (discount product_game) * g c t) =
  mean alone_game P h s (fun _ => 0) f.
Proof.
  intros EA EN Es F. unfold mean. simpl choices_of. fold (state_of i). rewrite <- Es, sumi_of_map. apply sumi_ext. intros c ch Hc. simpl reward. simpl edges.
  rewrite EA, (NR s ch (nth_error_In _ _ Hc)), sumi_of_map. simpl next. simpl discount. f_equal. f_equal. apply sumi_ext. intros j e He.
  rewrite EN, Q2R_1, Rmult_1_l. f_equal. apply (F c ch e); eapply nth_error_In; eauto.
Qed.

(* Histories of which every state has a node; plays that do the same after these until all is decided. *)
Fixpoint all_nodes (h : hist) : bool :=
  match h with [] => true | (s, _) :: h' => has_node h' s && all_nodes h' end.
Lemma states_of_nodes h : all_nodes h = true -> states_of (nodes_of h) = h.
Proof.
  induction h as [|[s i] h IH]; simpl; [reflexivity|]. intros H. apply andb_prop in H. destruct H as [HN H]. rewrite IH by exact H.
  apply andb_prop in HN. destruct HN as [_ HN]. apply same_spec in HN. unfold state_of. now rewrite HN.
Qed.
Definition agents_alike (a a' : hist -> nat -> nat -> R) : Prop :=
  forall h s, goes_by h s = true -> all_nodes h = true -> forall c, a' (nodes_of h) (node_of h s) c = a h s c.
Definition natures_alike (n n' : hist -> nat -> nat -> nat -> R) : Prop :=
  forall h s, goes_by h s = true -> all_nodes h = true -> forall c e, n' (nodes_of h) (node_of h s) c e = n h s c e.
Lemma values_alike a n a' n' : agents_alike a a' -> natures_alike n n' -> forall k h s, has_node h s = true -> all_nodes h = true ->
  value product_game (Play a' n') k (nodes_of h) (node_of h s) = settles_within (Play a n) k h s.
Proof.
  intros RA RN. induction k as [|k IH]; intros h s HN HA; simpl value; simpl settles_within; pose proof HN as H; apply andb_prop in H; destruct H as [Hi Hk];
    apply Nat.ltb_lt in Hi; apply same_spec in Hk; rewrite ends_settled, Hk; simpl snd.
  - destruct (settled A _); [apply Q2R_1|reflexivity].
  - destruct (settled A (memory_of h)) eqn:Z; [apply Q2R_1|].
    assert (G : goes_by h s = true) by (unfold goes_by; now rewrite HN, Z).
    apply mean_alike.
    + apply (RA h s G HA).
    + apply (RN h s G HA).
    + unfold state_of. now rewrite Hk.
    + intros c ch e Hc He. assert (Es : s = state_of (node_of h s)) by (unfold state_of; now rewrite Hk).
      rewrite Es in Hc. pose proof (key_behind _ ch e Hi Hc He) as K. pose proof (IN _ ch e Hi Hc He) as Hn.
      assert (B : behind A (node_of h s) (next e) = (next e, memory_of ((s, c) :: h))) by (unfold behind; now rewrite Hk).
      rewrite B in *. change (number A (next e, memory_of ((s, c) :: h))) with (node_of ((s, c) :: h) (next e)) in *.
      change ((node_of h s, c) :: nodes_of h) with (nodes_of ((s, c) :: h)). apply IH.
      * unfold has_node. rewrite K. apply andb_true_intro. split; [now apply Nat.ltb_lt|]. unfold same. simpl. now rewrite !Nat.eqb_refl.
      * simpl. now rewrite HN, HA.
Qed.
Lemma there_alike P : agents_alike (agent P) (agent (in_product P)) /\ natures_alike (nature P) (nature (in_product P)).
Proof.
  assert (E : forall h s, goes_by h s = true -> all_nodes h = true -> states_of (nodes_of h) = h /\ state_of (node_of h s) = s).
  { intros h s G HA. split; [now apply states_of_nodes|]. apply andb_prop in G. destruct G as [G _]. apply andb_prop in G. destruct G as [_ G].
    apply same_spec in G. unfold state_of. now rewrite G. }
  split; intros h s G HA; [intros c|intros c e]; destruct (E h s G HA) as [E1 E2]; simpl; now rewrite E1, E2.
Qed.
Lemma here_alike P other : agents_alike (agent (of_product P other)) (agent P) /\ natures_alike (nature (of_product P other)) (nature P).
Proof. split; intros h s G HA; [intros c|intros c e]; simpl; now rewrite G. Qed.

(* They keep to the same rules. *)
Lemma agent_in_product pol a n : legal_agent alone_game pol a ->
  legal_agent product_game (fun j i => pol j (state_of i)) (agent (in_product (Play a n))).
Proof.
  intros L h i Hi _. simpl in Hi. destruct (L (states_of h) (state_of i) (readable_state p A i OK Hi) eq_refl) as (L1 & L2 & L3).
  unfold states_of in *. rewrite map_length in *. simpl. rewrite sumi_of_map. repeat split; auto.
Qed.
Lemma nature_in_product a n : legal_nature alone_game n -> legal_nature product_game (nature (in_product (Play a n))).
Proof.
  intros L h i Hi _ c ch Hc. simpl in Hi, Hc. rewrite nth_error_map in Hc.
  destruct (nth_error (rows p (fst (key A i))) c) as [ch0|] eqn:E; [|discriminate]. injection Hc as <-.
  destruct (L (states_of h) (state_of i) (readable_state p A i OK Hi) eq_refl c ch0 E) as (L1 & L2). simpl. rewrite sumi_of_map. split; [|exact L2].
  intros j e He. rewrite nth_error_map in He. destruct (nth_error (edges ch0) j) as [e0|] eqn:E0; [|discriminate]. injection He as <-. apply (L1 j e0 E0).
Qed.
Lemma goes_by_spec h s : goes_by h s = true ->
  (node_of h s < nodes A)%nat /\ key A (node_of h s) = (s, memory_of h) /\ ends product_game (length (nodes_of h)) (node_of h s) = None.
Proof.
  intros H. apply andb_prop in H. destruct H as [HN Z]. apply andb_prop in HN. destruct HN as [Hi Hk]. apply Nat.ltb_lt in Hi. apply same_spec in Hk.
  repeat split; auto. simpl. rewrite ends_settled, Hk. simpl. now destruct (settled A (memory_of h)).
Qed.
Lemma nodes_length h : length (nodes_of h) = length h.
Proof. induction h as [|[s i] h IH]; simpl; auto. Qed.
Lemma agent_of_product pol P other : legal_agent product_game (fun j i => pol j (state_of i)) (agent P) -> legal_agent alone_game pol (agent other) ->
  legal_agent alone_game pol (agent (of_product P other)).
Proof.
  intros L O h s Hs Hb. simpl. destruct (goes_by h s) eqn:G; [|apply (O h s Hs Hb)]. destruct (goes_by_spec h s G) as (Hi & Hk & E).
  destruct (L (nodes_of h) (node_of h s) Hi E) as (L1 & L2 & L3). simpl in L2, L3. unfold state_of in L3. rewrite Hk, sumi_of_map in L2.
  rewrite Hk, nodes_length in L3. auto.
Qed.
Lemma nature_of_product P other : legal_nature product_game (nature P) -> legal_nature alone_game (nature other) ->
  legal_nature alone_game (nature (of_product P other)).
Proof.
  intros L O h s Hs Hb c ch Hc. simpl. destruct (goes_by h s) eqn:G; [|apply (O h s Hs Hb c ch Hc)]. destruct (goes_by_spec h s G) as (Hi & Hk & E).
  assert (C : nth_error (choices_of product_game (length (nodes_of h)) (node_of h s)) c =
    Some (Choice (reward ch) (map (fun e => Edge (number A (behind A (node_of h s) (next e))) (lo e) (hi e)) (edges ch)))).
  { simpl. rewrite Hk. simpl. simpl in Hc. now rewrite nth_error_map, Hc. }
  destruct (L (nodes_of h) (node_of h s) Hi E c _ C) as (L1 & L2). simpl in L1, L2. rewrite sumi_of_map in L2. split; [|exact L2].
  intros j e He. apply (L1 j (Edge (number A (behind A (node_of h s) (next e))) (lo e) (hi e))). now rewrite nth_error_map, He.
Qed.

(* So what somebody can make sure of is the same in both. [q']: the question, whose policy, if there is one, looks at states alone. *)
Variables (q : question) (max : bool) (wins : (nat -> R) -> Prop).
Definition there : question := Question (agent_max q) (nature_is q) (option_map (fun f (_ : nat) i => f 0%nat (state_of i)) (policy q)).
Definition rule_of_state (_ s : nat) : rule := match policy q with Some f => f 0%nat s | None => Any end.
Definition guaranteed_alone : Prop :=
  let Ag := legal_agent alone_game rule_of_state in
  let N := legal_nature alone_game in
  let worth P := wins (fun k => settles_within P k [] (initial p)) in
  (exists a, Ag a) /\ (exists n, N n) /\
  match (match policy q with None => Bool.eqb (agent_max q) max | Some _ => false end),
        (match nature_is q with Some m => Bool.eqb m max | None => false end) with
  | true, true => exists a n, Ag a /\ N n /\ worth (Play a n)
  | true, false => exists a, Ag a /\ forall n, N n -> worth (Play a n)
  | false, true => exists n, N n /\ forall a, Ag a -> worth (Play a n)
  | false, false => forall a n, Ag a -> N n -> worth (Play a n)
  end.
Hypothesis START : (number A (initial p, 0%nat) < nodes A)%nat.
Hypothesis SOME : (exists a, legal_agent alone_game rule_of_state a) /\ exists n, legal_nature alone_game n.

Lemma rule_there : pol_of (product p A) there = fun j i => rule_of_state j (state_of i).
Proof. unfold pol_of, there, rule_of_state. simpl. apply functional_extensionality. intros j. now destruct (policy q). Qed.

Theorem product_is_the_game :
  guaranteed (product p A) there max (fun P => wins (fun k => value product_game P k [] (initial (product p A)))) <-> guaranteed_alone.
Proof.
  destruct SOME as [ [a0 LA0] [n0 LN0] ].
  assert (TA : forall a, legal_agent alone_game rule_of_state a -> legal_agent product_game (pol_of (product p A) there) (agent (in_product (Play a n0))))
    by (intros a L; rewrite rule_there; now apply agent_in_product).
  assert (TN : forall n, legal_nature alone_game n -> legal_nature product_game (nature (in_product (Play a0 n)))) by (intros n L; now apply nature_in_product).
  assert (BA : forall a, legal_agent product_game (pol_of (product p A) there) a ->
    legal_agent alone_game rule_of_state (agent (of_product (Play a (nature (in_product (Play a0 n0)))) (Play a0 n0))))
    by (intros a L; apply agent_of_product; [rewrite rule_there in L; exact L|exact LA0]).
  assert (BN : forall n, legal_nature product_game n ->
    legal_nature alone_game (nature (of_product (Play (agent (in_product (Play a0 n0))) n) (Play a0 n0))))
    by (intros n L; now apply nature_of_product).
  assert (AT : forall a, agents_alike a (agent (in_product (Play a n0)))) by (intros a; apply (there_alike (Play a n0))).
  assert (NT : forall n, natures_alike n (nature (in_product (Play a0 n)))) by (intros n; apply (there_alike (Play a0 n))).
  assert (AB : forall a, agents_alike (agent (of_product (Play a (nature (in_product (Play a0 n0)))) (Play a0 n0))) a)
    by (intros a; apply (here_alike (Play a (nature (in_product (Play a0 n0)))) (Play a0 n0))).
  assert (NB : forall n, natures_alike (nature (of_product (Play (agent (in_product (Play a0 n0))) n) (Play a0 n0))) n)
    by (intros n; apply (here_alike (Play (agent (in_product (Play a0 n0))) n) (Play a0 n0))).
  assert (V : forall a n a' n', agents_alike a a' -> natures_alike n n' ->
    wins (fun k => value product_game (Play a' n') k [] (initial (product p A))) <-> wins (fun k => settles_within (Play a n) k [] (initial p))).
  { intros a n a' n' RA RN. replace (fun k => value product_game (Play a' n') k [] (initial (product p A)))
      with (fun k => settles_within (Play a n) k [] (initial p)); [tauto|]. apply functional_extensionality. intros k. symmetry.
    apply (values_alike a n a' n' RA RN k [] (initial p)); [|reflexivity]. destruct (readable_true p A OK) as (K & _).
    unfold has_node, node_of. simpl memory_of. rewrite K. apply andb_true_intro. split; [now apply Nat.ltb_lt|]. unfold same. simpl. now rewrite !Nat.eqb_refl. }
  unfold guaranteed, guaranteed_alone. cbv zeta.
  replace (policy there) with (option_map (fun (f : nat -> nat -> rule) (_ i : nat) => f 0%nat (state_of i)) (policy q)) by reflexivity.
  change (agent_max there) with (agent_max q). change (nature_is there) with (nature_is q).
  replace (match option_map (fun (f : nat -> nat -> rule) (_ i : nat) => f 0%nat (state_of i)) (policy q) with None => Bool.eqb (agent_max q) max | Some _ => false end)
    with (match policy q with None => Bool.eqb (agent_max q) max | Some _ => false end) by now destruct (policy q).
  destruct (match policy q with None => Bool.eqb (agent_max q) max | Some _ => false end);
    destruct (match nature_is q with Some m => Bool.eqb m max | None => false end); split; intros (_ & _ & H);
    (split; [eauto|]); (split; [eauto|]).
  - destruct H as (a & n & La & Ln & W). do 2 eexists. split; [apply (BA a La)|]. split; [apply (BN n Ln)|]. now apply (V _ _ a n (AB a) (NB n)).
  - destruct H as (a & n & La & Ln & W). do 2 eexists. split; [apply (TA a La)|]. split; [apply (TN n Ln)|]. now apply (V a n _ _ (AT a) (NT n)).
  - destruct H as (a & La & W). eexists. split; [apply (BA a La)|]. intros n Ln. apply (V _ n a _ (AB a) (NT n)). apply W, TN, Ln.
  - destruct H as (a & La & W). eexists. split; [apply (TA a La)|]. intros n Ln. apply (V a _ _ n (AT a) (NB n)). apply W, BN, Ln.
  - destruct H as (n & Ln & W). eexists. split; [apply (BN n Ln)|]. intros a La. apply (V a _ _ n (AT a) (NB n)). apply W, TA, La.
  - destruct H as (n & Ln & W). eexists. split; [apply (TN n Ln)|]. intros a La. apply (V _ n a _ (AB a) (NT n)). apply W, BA, La.
  - intros a n La Ln. apply (V a n _ _ (AT a) (NT n)). apply H; [apply TA, La|apply TN, Ln].
  - intros a n La Ln. apply (V _ _ a n (AB a) (NB n)). apply H; [apply BA, La|apply BN, Ln].
Qed.
End Memory.
