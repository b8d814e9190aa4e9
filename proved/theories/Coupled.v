(* Bounds that follow the parameters: the region is cut into cells, and on each a form bounds the value of a policy at every open state. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia FunctionalExtensionality.
From Proved Require Import Game Problem Basics Polynomial Value Sound Model Temporal Learned Forms.
Import ListNotations.
Open Scope R_scope.

(* ---------- The checker ---------- *)

(* The choices that a policy takes, with their weights. *)
Fixpoint weighted (w : list Q) (cs : list lchoice) : list (Q * lchoice) :=
  match w, cs with
  | q :: w', c :: cs' => if Qle_bool q 0 then weighted w' cs' else (q, c) :: weighted w' cs'
  | _, _ => []
  end.
Definition taken (r : rule) (cs : list lchoice) : list (Q * lchoice) :=
  match r with
  | Any => []
  | Only i => match nth_error cs i with Some c => [(1%Q, c)] | None => [] end
  | Mix w => weighted w cs
  end.
Definition named (r : rule) : bool := match r with Any => false | _ => true end.
Definition rule_of (q : question) (s : nat) : rule := match policy q with Some f => f 0%nat s | None => Any end.

Section Checker.
Variables (M : model) (N : nat) (evs : nat -> event) (cut : (nat -> Q) -> Q -> option poly) (stakes : nat -> (nat -> bound) -> wager -> option poly).

Section InCell.
Variable l : cell.
Definition axis (j : nat) : poly := match nth_error (axes l) j with Some (p, _, _, _) => p | None => [] end.
Definition height (j : nat) : Z := match nth_error (axes l) j with Some (_, h, _, _) => h | None => 0%Z end.
Definition axes_ok (c : cert) (env : list poly) : bool :=
  forallb (fun a => match a with (p, h, lo, hi) =>
    follows M N evs c env lo p && follows M N evs c env hi (plus (-1) p (constant (inject_Z h))) end) (axes l) &&
  follows M N evs c env (why_budget l) (fold_right (fun a => plus (-1) (fst (fst (fst a)))) (constant (inject_Z (budget l))) (axes l)).
Fixpoint composed (k : nat) (f : list Z) : poly := match f with [] => [] | a :: f' => plus (inject_Z a) (axis k) (composed (S k) f') end.
Fixpoint composed2 (k : nat) (f : list affine) : poly :=
  match f with [] => [] | a :: f' => plus 1 (times (axis k) (plus 1 (constant (inject_Z (fst a))) (composed 0 (snd a)))) (composed2 (S k) f') end.
Fixpoint newest (v : list poly) : poly := match v with [] => [] | [p] => p | _ :: v' => newest v' end.
(* A form is not negative: anywhere within heights and budget, or since it is the last fact of the cell. *)
Definition sure_of (env : list poly) (f : quadratic) : bool :=
  Z.leb 0 (least2 height (budget l) f) || zero (plus (-1) (plus 1 (constant (inject_Z (fst f))) (composed2 0 (snd f))) (newest env)).
Definition labels_ok : bool :=
  Z.ltb 0 (grain l) && Z.ltb 0 (unit_of l) &&
  below (labels l) (fun k => let e := label_at l k in let f := linear l e in
    zero (plus (Qopp (inject_Z (grain l))) (polys M e) (plus 1 (constant (inject_Z (fst f))) (composed 0 (snd f))))).
Definition labelled (e : ledge) : bool :=
  let k := place_of l (expr e) in (k <? labels l)%nat && Nat.eqb (label_at l k) (expr e).

(* [x]: bounds at states that are not open, which vectors prove where they are [sure]. *)
Variables (w : walk) (rl : nat -> rule) (upward : bool) (x : nat -> Q) (sure : nat -> bool).
Definition sign : Q := if upward then (-1)%Q else 1%Q.
Definition turn : Z := if upward then (-1)%Z else 1%Z.
Definition guess_at (t : nat) : quadratic := if is_open w t then guess w t else (beyond w t, []).
(* The weights of choices times [whole] and the factor, and in parts of all what they earn. *)
Fixpoint weighed (g : Z) (cs : list (Q * lchoice)) (sh : list (Z * Z)) : option (list (Z * Z * list ledge)) :=
  match cs, sh with
  | [], _ => Some []
  | (q, ch) :: cs', (a, b) :: sh' =>
      match number (gains ch), weighed g cs' sh' with
      | Some e, Some l' =>
          if Qeq_bool (inject_Z a) (Qmult (inject_Z g) (Qmult q (factor (shape M)))) &&
             Qle_bool 0 (Qmult sign (Qminus (Qmult (inject_Z (Z.mul g (Z.mul (grain l) (unit_of l)))) (Qmult q e)) (inject_Z b)))
          then Some ((a, b, outcomes ch) :: l') else None
      | _, _ => None
      end
  | _, _ => None
  end.
Fixpoint edges_in (a : Z) (es : list ledge) (acc : cubic) : cubic :=
  match es with [] => acc | e :: es' => edges_in a es' (gather a (linear l (expr e)) (guess_at (goes e)) acc) end.
Fixpoint choices_in (cs : list (Z * Z * list ledge)) (acc : cubic) : cubic :=
  match cs with
  | [] => acc
  | (a, b, es) :: cs' => choices_in cs' (edges_in (Z.mul turn a) es (Z.add (Z.mul turn b) (fst acc), snd acc))
  end.
Fixpoint slow_edges (a : Z) (es : list ledge) (acc : affine) : affine :=
  match es with
  | [] => acc
  | e :: es' => slow_edges a es' (if is_open w (goes e) then add1 (Z.mul a (slow w (goes e))) (linear l (expr e)) acc else acc)
  end.
Fixpoint slow_choices (cs : list (Z * Z * list ledge)) (acc : affine) : affine :=
  match cs with [] => acc | (a, _, es) :: cs' => slow_choices cs' (slow_edges (Z.opp a) es acc) end.
(* Where a play goes on: to an open state, or to one of which vectors say as much. *)
Definition said (t : nat) : bool :=
  is_open w t || (sure t && Qle_bool 0 (Qmult sign (Qminus (Qmult (inject_Z (unit_of l)) (x t)) (inject_Z (beyond w t))))).
Definition state_ok (s : nat) : bool :=
  match ends_of (shape M) 0 s with
  | Some _ => false
  | None =>
      let cs := taken (rl s) (table M s) in let g := Z.mul (whole w s) (grain l) in
      Z.ltb 0 (whole w s) && forallb (fun qc => forallb (fun e => labelled e && said (goes e)) (outcomes (snd qc))) cs &&
      match weighed (whole w s) cs (portions_at w s) with
      | Some v =>
          Z.leb 0 (least3 height (budget l) (choices_in v (add3 (Z.opp (Z.mul turn g)) (to_cubic (guess w s)) (0%Z, [])))) &&
          Qle_bool (Qmult (Qminus 1 (rate w)) (inject_Z (Z.mul g (slow w s)))) (inject_Z (least1 height (budget l) (slow_choices v (Z.mul g (slow w s), []))))
      | None => false
      end && Z.leb 1 (slow w s)
  end.
Definition walk_ok : bool :=
  Qle_bool 0 (rate w) && Qltb (rate w) 1 && below (states (shape M)) (fun s => negb (is_open w s) || state_ok s).
End InCell.

Fixpoint covered (c : cert) (good : list poly -> cell -> bool) (env : list poly) (t : cells) : bool :=
  match t with
  | Leaf l => match makes M N evs cut stakes c env (more l) with Some env' => good env' l | None => false end
  | Hollow m why => match makes M N evs cut stakes c env m with Some env' => follows M N evs c env' why (constant (-1)) | None => false end
  | Split d a b => covered c good (env ++ [d]) a && covered c good (env ++ [plus (-1) d []]) b
  end.

(* The vectors of both sides hold at all states, wherever a play begins. *)
Definition steady : bool :=
  match last (shape M) with None => true | Some _ => false end && Nat.eqb (first (shape M)) 0 &&
  match kind_of (shape M) with Until | Reach_reward | Total | Discounted => true | _ => false end.
Definition vectors_ok (c : cert) : bool :=
  let p := boxed M (pays c false) (sides c) in let p' := boxed M (pays c true) (sides c) in let q := ask c in
  steady && below (states (shape M)) (fun s => named (rule_of q s)) && negb (agent_owns q true) && negb (agent_owns q false) &&
  playable p q && owners p q true (low c) && check_low p (arena p q true (low c)) (rule_for p q true (low c)) (low c) &&
  playable p' q && owners p' q false (high c) && check_high p' (arena p' q false (high c)) (rule_for p' q false (high c)) (high c) &&
  negb (endless (high c) (initial (shape M))).
Definition bound_of (c : cert) (upward : bool) (t : nat) : Q := x (if upward then high c else low c) 0 t.
Definition bounded_at (c : cert) (t : nat) : bool := negb (endless (high c) t).

(* What a cell shows is as much as is claimed. *)
Definition beats (l : cell) (upward : bool) (b : Q) : bool :=
  Qle_bool 0 (Qmult (sign upward) (Qminus (inject_Z (goal l)) (Qmult (inject_Z (unit_of l)) b))).
Definition cell_ok (c : cert) (upward : bool) (b : Q) (env : list poly) (l : cell) : bool :=
  let w := first_walk l in let s := initial (shape M) in let g := turn upward in
  axes_ok l c env && labels_ok l && walk_ok l w (rule_of (ask c)) upward (bound_of c upward) (bounded_at c) && is_open w s &&
  sure_of l env (add2 g (guess w s) (Z.opp (Z.mul g (goal l)), [])) && beats l upward b.
(* Where the steps are bounded: a walk of states at a step, numbered step by step, and no vectors. What is known without a form. *)
Definition rule_at (q : question) (j s : nat) : rule := pol_of (shape M) q j s.
Definition known_at (K j t : nat) : option Q :=
  match ends_of (shape M) j t with Some b => Some b | None => if Nat.eqb j K then Some 0%Q else None end.
Definition stage (w : walk) (j : nat) : walk :=
  let at_step s := (j * states (shape M) + s)%nat in
  Walk (fun s => is_open w (at_step s)) (fun s => guess w (at_step s)) (fun s => beyond w (at_step s)) (fun s => whole w (at_step s))
    (fun s => portions_at w (at_step s)) (slow w) (rate w).
Definition known_value (K j t : nat) : Q := match known_at K j t with Some b => b | None => 0%Q end.
Definition is_known (K j t : nat) : bool := match known_at K j t with Some _ => true | None => false end.
Definition stage_ok (K : nat) (l : cell) (w : walk) (q : question) (upward : bool) (j s : nat) : bool :=
  let now := stage w j in let after := stage w (S j) in
  match ends_of (shape M) j s with
  | Some _ => false
  | None =>
      let cs := taken (rule_at q j s) (table M s) in let g := Z.mul (whole now s) (grain l) in
      (j <? K)%nat && Z.ltb 0 (whole now s) &&
      forallb (fun qc => forallb (fun e => labelled l e && said l after upward (known_value K (S j)) (is_known K (S j)) (goes e)) (outcomes (snd qc))) cs &&
      match weighed l upward (whole now s) cs (portions_at now s) with
      | Some v => Z.leb 0 (least3 (height l) (budget l)
          (choices_in l after upward v (add3 (Z.opp (Z.mul (turn upward) g)) (to_cubic (guess now s)) (0%Z, []))))
      | None => false
      end
  end.
Definition counted_ok (c : cert) (K : nat) : bool :=
  let q := ask c in
  playable (boxed M (pays c false) (sides c)) q && negb (agent_owns q true) && negb (agent_owns q false) &&
  below (S K) (fun j => below (states (shape M)) (fun s => named (rule_at q j s))).
Definition stages_ok (c : cert) (K : nat) (upward : bool) (b : Q) (env : list poly) (l : cell) : bool :=
  let w := first_walk l in let f := guess (stage w 0) (initial (shape M)) in let g := turn upward in
  axes_ok l c env && labels_ok l &&
  below (S K) (fun j => below (states (shape M)) (fun s => negb (is_open (stage w j) s) || stage_ok K l w (ask c) upward j s)) &&
  is_open (stage w 0) (initial (shape M)) && sure_of l env (add2 g f (Z.opp (Z.mul g (goal l)), [])) && beats l upward b.
Definition joint (c : cert) (upward : bool) (env : list poly) (b : option Q) : bool :=
  match (if upward then joint_high c else joint_low c), b with
  | Some t, Some b => match last (shape M) with
                      | None => vectors_ok c && covered c (cell_ok c upward b) env t
                      | Some K => counted_ok c K && covered c (stages_ok c K upward b) env t
                      end
  | _, _ => false
  end.
(* The same of two policies: the vectors of the second stand beside those of the first. *)
Definition rival (c : cert) (q : question) : cert :=
  Cert q None (reader c) (compl c) None None (low2 c) (high2 c) (elow c) (ehigh c) (parts c) (level c) (shares c) (lg c) (facts c) (bounds c) (bound_at c)
    (slot c) (paid c) (why_low2 c) (why_high2 c) None None (low2 c) (high2 c) (why_low2 c) (why_high2 c).
Definition pair_ok (c c' : cert) (upward : bool) (b : Q) (env : list poly) (l : cell) : bool :=
  let w := first_walk l in let w' := second_walk l in let s := initial (shape M) in let g := turn upward in
  axes_ok l c env && labels_ok l && walk_ok l w (rule_of (ask c)) upward (bound_of c upward) (bounded_at c) && is_open w s &&
  walk_ok l w' (rule_of (ask c')) (negb upward) (bound_of c' (negb upward)) (bounded_at c') && is_open w' s &&
  sure_of l env (add2 g (add2 (-1) (guess w' s) (guess w s)) (Z.opp (Z.mul g (goal l)), [])) && beats l upward b.
Definition apart (c c' : cert) (upward : bool) (env : list poly) (b : Q) : bool :=
  let s := initial (shape M) in
  Qle_bool 0 (Qmult (sign upward) (Qminus (Qminus (bound_of c upward s) (bound_of c' (negb upward) s)) b)) ||
  match (if upward then joint_high c else joint_low c) with Some t => covered c (pair_ok c c' upward b) env t | None => false end.
Definition differs (c : cert) (q : question) : bool :=
  match lower c, upper c with
  | Some l, Some u =>
      let (l, u) := if compl c then (Qopp u, Qopp l) else (l, u) in let c' := rival c q in
      nobody (ask c) && nobody q &&
      match makes M N evs cut stakes c [] (facts c) with
      | None => false
      | Some env => sets_in M N evs c env && sets_ok M N evs cut stakes c' && vectors_ok c && vectors_ok c' &&
                    apart c c' false env l && apart c c' true env u
      end
  | _, _ => false
  end.
(* As [proved], where vectors or cells show each bound. *)
Definition holds (c : cert) : bool :=
  let (l, u) := if compl c then (less (upper c), less (lower c)) else (lower c, upper c) in
  nobody (ask c) &&
  match makes M N evs cut stakes c [] (facts c) with
  | None => false
  | Some env => sets_in M N evs c env &&
      (shows_low (boxed M (pays c false) (sides c)) (ask c) (low c) l || joint c false env l) &&
      match u with Some v => shows_high (boxed M (pays c true) (sides c)) (ask c) (high c) v || joint c true env u | None => true end
  end.
Definition shown_of (c : cert) : bool := match versus c with None => holds c | Some q => differs c q end.
End Checker.
(* The same of runs that an automaton accepts. *)
Definition shown (M : model) (N : nat) (evs : nat -> event) (cut : (nat -> Q) -> Q -> option poly) (stakes : nat -> (nat -> bound) -> wager -> option poly)
    (c : cert) : bool :=
  match reader c with Some A => readable (skeleton M) A | None => true end && shown_of (of_runs M c) N evs cut stakes c.

(* ---------- Policies that do the same at every visit ---------- *)

Lemma weighted_sum (a : nat -> R) (F : lchoice -> R) : (forall i, 0 <= a i) -> forall cs w k, (forall i, (k <= i)%nat -> a i = Q2R (nth (i - k) w 0%Q)) ->
  sumi (fun i ch => a i * F ch) k cs = sumi (fun _ qc => Q2R (fst qc) * F (snd qc)) 0 (weighted w cs).
Proof.
  intros A0. assert (Free : forall (l : list (Q * lchoice)) k k', sumi (fun _ qc => Q2R (fst qc) * F (snd qc)) k l = sumi (fun _ qc => Q2R (fst qc) * F (snd qc)) k' l).
  { induction l as [|x l IH]; intros k k'; simpl; [reflexivity|]. now rewrite (IH (S k) (S k')). }
  induction cs as [|ch cs IH]; intros w k H; simpl; [destruct w; reflexivity|].
  destruct w as [|q w].
  - assert (Z : forall i, (k <= i)%nat -> a i = 0) by (intros i Hi; rewrite (H i Hi), <- Q2R_0; now destruct (i - k)%nat).
    simpl. rewrite (Z k) by lia. rewrite (sumi_ext _ (fun _ _ => 0 * 0)).
    + rewrite (sumi_scal 0 (fun _ _ => 0)). lra.
    + intros i c' _. rewrite (Z (S k + i)%nat) by lia. lra.
  - assert (E : a k = Q2R q) by (rewrite (H k) by lia; now rewrite Nat.sub_diag).
    assert (H' : forall i, (S k <= i)%nat -> a i = Q2R (nth (i - S k) w 0%Q)).
    { intros i Hi. rewrite (H i) by lia. now replace (i - k)%nat with (S (i - S k)) by lia. }
    rewrite (IH w (S k) H'). simpl. destruct (Qle_bool q 0) eqn:Eq; simpl.
    + apply Qle_bool_R in Eq. rewrite Q2R_0 in Eq. pose proof (A0 k) as Pk. rewrite E in Pk. rewrite E. assert (Zq : Q2R q = 0) by lra. rewrite Zq. lra.
    + rewrite E. f_equal. apply Free.
Qed.
Lemma only_sum (a : nat -> R) (F : lchoice -> R) i : (forall k, k <> i -> a k = 0) -> forall cs k, (k <= i)%nat ->
  sumi (fun i ch => a i * F ch) k cs = match nth_error cs (i - k) with Some ch => a i * F ch | None => 0 end.
Proof.
  intros Z. assert (Zero : forall cs k, (i < k)%nat -> sumi (fun i ch => a i * F ch) k cs = 0).
  { induction cs as [|ch cs IH]; intros k Hk; simpl; [reflexivity|]. rewrite IH by lia. rewrite (Z k) by lia. lra. }
  induction cs as [|ch cs IH]; intros k Hk; simpl; [now destruct (i - k)%nat|].
  destruct (Nat.eq_dec k i) as [->|Hne].
  - rewrite Nat.sub_diag. simpl. rewrite Zero by lia. lra.
  - rewrite (Z k Hne), IH by lia. replace (i - k)%nat with (S (i - S k)) by lia. simpl. lra.
Qed.
Lemma taken_sum r cs (a : nat -> R) (F : lchoice -> R) : named r = true -> (forall i, 0 <= a i) -> sumi (fun i _ => a i) 0 cs = 1 -> obeys r a ->
  sumi (fun i ch => a i * F ch) 0 cs = sumi (fun _ qc => Q2R (fst qc) * F (snd qc)) 0 (taken r cs).
Proof.
  intros Nm A0 A1 A2. destruct r as [|i|w]; [discriminate| |].
  - simpl in A2. pose proof (only_sum a (fun _ => 1) i A2 cs 0 ltac:(lia)) as One.
    rewrite (sumi_ext _ (fun i _ => a i)) in One by (intros; lra). rewrite A1 in One.
    rewrite (only_sum a F i A2 cs 0) by lia. rewrite Nat.sub_0_r in *. simpl taken.
    destruct (nth_error cs i) as [ch|]; [|lra]. simpl. rewrite Q2R_1. replace (a i) with 1 by lra. lra.
  - apply weighted_sum; [exact A0|]. intros i _. rewrite Nat.sub_0_r. apply A2.
Qed.
Lemma taken_weight r cs (a : nat -> R) : (forall i, 0 <= a i) -> obeys r a -> forall qc, In qc (taken r cs) -> 0 <= Q2R (fst qc).
Proof.
  intros A0 A2 qc H. destruct r as [|i|w]; simpl in H; [contradiction| |].
  - destruct (nth_error cs i); [|contradiction]. destruct H as [<-|[]]. simpl. rewrite Q2R_1. lra.
  - revert cs H. clear A2. induction w as [|q w IH]; intros [|c cs] H; simpl in H; try contradiction.
    destruct (Qle_bool q 0) eqn:E; [now apply (IH cs)|]. destruct H as [<-|H]; [|now apply (IH cs)].
    apply Qle_bool_R_false in E. rewrite Q2R_0 in E. simpl. lra.
Qed.
Lemma taken_in r cs qc : In qc (taken r cs) -> In (snd qc) cs.
Proof.
  destruct r as [|i|w]; simpl; [contradiction| |].
  - destruct (nth_error cs i) as [ch|] eqn:E; [|contradiction]. intros [<-|[]]. simpl. eapply nth_error_In; eauto.
  - revert cs. induction w as [|q w IH]; intros [|c cs] H; simpl in H; try contradiction.
    destruct (Qle_bool q 0); [right; now apply IH|]. destruct H as [<-|H]; [now left|right; now apply IH].
Qed.

(* What finitely many have at some time, they have at one time. *)
Lemma all_in_time n (P : nat -> nat -> Prop) : (forall s, (s < n)%nat -> exists k0, forall k, (k0 <= k)%nat -> P s k) ->
  exists k0, forall s k, (s < n)%nat -> (k0 <= k)%nat -> P s k.
Proof.
  induction n as [|n IH]; intros H; [exists 0%nat; intros; lia|].
  destruct IH as (k1 & H1); [intros s Hs; apply H; lia|]. destruct (H n ltac:(lia)) as (k2 & H2).
  exists (Nat.max k1 k2). intros s k Hs Hk. destruct (Nat.eq_dec s n) as [->|]; [apply H2|apply H1]; lia.
Qed.
Lemma all_below n (f : nat -> R) : exists A, 0 <= A /\ forall s, (s < n)%nat -> f s <= A.
Proof.
  induction n as [|n (A & A0 & H)]; [exists 0; split; [lra|intros; lia]|].
  exists (Rmax A (f n)). split; [eapply Rle_trans; [exact A0|apply Rmax_l]|].
  intros s Hs. destruct (Nat.eq_dec s n) as [->|]; [apply Rmax_r|]. eapply Rle_trans; [apply H; lia|apply Rmax_l].
Qed.

Lemma Q2R_inject z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R, inject_Z. simpl. lra. Qed.

Section Truth.
Variables (M : model) (theta : nat -> R).
Hypothesis T : instance M theta.
Notation "[[ p ]]" := (poly_at theta p).
Notation n := (states (shape M)).
Notation gamma := (Q2R (factor (shape M))).

Section Chain.
Variable rl : nat -> rule.
(* One step: what is earned, and what goes on. *)
Definition earned (s : nat) : R := sumi (fun _ qc => Q2R (fst qc) * [[ gains (snd qc) ]]) 0 (taken (rl s) (table M s)).
Definition onward (f : nat -> R) (s : nat) : R :=
  sumi (fun _ qc => Q2R (fst qc) * sumi (fun _ e => chance M theta e * (gamma * f (goes e))) 0 (outcomes (snd qc))) 0 (taken (rl s) (table M s)).
Fixpoint chain (k s : nat) : R :=
  match ends_of (shape M) 0 s, k with
  | Some b, _ => Q2R b
  | None, O => 0
  | None, S k' => earned s + onward (chain k') s
  end.

Hypothesis St : steady M = true.
Lemma ends_same j s : ends_of (shape M) j s = ends_of (shape M) 0 s.
Proof.
  pose proof St as H. unfold steady in H. apply andb_prop in H. destruct H as [H K]. apply andb_prop in H. destruct H as [_ H].
  apply Nat.eqb_eq in H. unfold ends_of. rewrite H. now destruct (kind_of (shape M)).
Qed.
Lemma no_steps : horizon (shape M) = 0%nat /\ last (shape M) = None.
Proof.
  pose proof St as H. unfold steady in H. apply andb_prop in H. destruct H as [H _]. apply andb_prop in H. destruct H as [L H].
  apply Nat.eqb_eq in H. unfold horizon. now destruct (last (shape M)).
Qed.

Variables (q : question) (a : hist -> nat -> nat -> R).
Hypothesis RL : forall s, rl s = rule_of q s.
Hypothesis Nm : forall s, (s < n)%nat -> named (rl s) = true.
Hypothesis LA : legal_agent (game_of (skeleton M)) (pol_of (skeleton M) q) a.
Hypothesis Inside : forall s ch e, (s < n)%nat -> In ch (table M s) -> In e (outcomes ch) -> (goes e < n)%nat.

Lemma agent_is h s : (s < n)%nat -> ends_of (shape M) 0 s = None ->
  (forall i, 0 <= a h s i) /\ sumi (fun i _ => a h s i) 0 (table M s) = 1 /\ obeys (rl s) (a h s).
Proof.
  intros Hs Hb. destruct (LA h s Hs) as (A0 & A1 & A2); [simpl; change (ends_of (skeleton M)) with (ends_of (shape M)); now rewrite ends_same|].
  split; [exact A0|]. split; [simpl in A1; now rewrite sumi_mapi in A1|].
  rewrite RL. unfold rule_of. unfold pol_of in A2. destruct (policy q) as [f|]; [|exact A2].
  change (horizon (skeleton M)) with (horizon (shape M)) in A2. rewrite (proj1 no_steps), Nat.min_0_r in A2. exact A2.
Qed.
Lemma value_is k : forall h s, (s < n)%nat -> true_value M theta a k h s = chain k s.
Proof.
  induction k as [|k IH]; intros h s Hs; simpl; rewrite ends_same; destruct (ends_of (shape M) 0 s) as [b|] eqn:Hb; try reflexivity.
  destruct (agent_is h s Hs Hb) as (A0 & A1 & A2).
  rewrite (sumi_ext _ (fun i ch => a h s i * ([[ gains ch ]] + sumi (fun _ e => chance M theta e * (gamma * chain k (goes e))) 0 (outcomes ch)))).
  - rewrite (taken_sum (rl s) (table M s) (a h s) (fun ch => [[ gains ch ]] + sumi (fun _ e => chance M theta e * (gamma * chain k (goes e))) 0 (outcomes ch)) (Nm s Hs) A0 A1 A2).
    unfold earned, onward. rewrite <- sumi_add. apply sumi_ext. intros; simpl. lra.
  - intros i ch Hi. f_equal. f_equal. apply sumi_ext. intros j e Hj. f_equal. f_equal. apply IH.
    apply (Inside s ch e Hs); eapply nth_error_In; eauto.
Qed.

Section OneStep.
Variable s : nat.
Hypothesis (Hs : (s < n)%nat) (Hb : ends_of (shape M) 0 s = None).
Hypothesis G : 0 <= gamma <= 1.
Lemma weights_are : (forall qc, In qc (taken (rl s) (table M s)) -> 0 <= Q2R (fst qc)) /\ sumi (fun _ qc => Q2R (fst qc)) 0 (taken (rl s) (table M s)) = 1.
Proof.
  destruct (agent_is [] s Hs Hb) as (A0 & A1 & A2). split; [now apply (taken_weight _ _ (a [] s))|].
  pose proof (taken_sum (rl s) (table M s) (a [] s) (fun _ => 1) (Nm s Hs) A0 A1 A2) as E.
  rewrite (sumi_ext _ (fun i _ => a [] s i)) in E by (intros; lra). rewrite A1 in E. rewrite E. apply sumi_ext. intros; lra.
Qed.
Lemma onward_le f g : (forall qc e, In qc (taken (rl s) (table M s)) -> In e (outcomes (snd qc)) -> f (goes e) <= g (goes e)) -> onward f s <= onward g s.
Proof.
  intros H. apply sumi_le. intros i qc Hi. simpl. pose proof (nth_error_In _ _ Hi) as I. apply Rmult_le_compat_l; [now apply weights_are|].
  apply sumi_le. intros j e Hj. simpl. apply nth_error_In in Hj. destruct (proj2 T s (snd qc) Hs (taken_in _ _ _ I)) as [_ C].
  apply Rmult_le_compat_l; [now apply C|]. apply Rmult_le_compat_l; [apply G|]. now apply (H qc).
Qed.
Lemma onward_lin u f g : onward (fun t => u * f t + g t) s = u * onward f s + onward g s.
Proof.
  unfold onward. rewrite <- sumi_scal, <- sumi_add. apply sumi_ext. intros i qc _. simpl.
  rewrite (sumi_ext _ (fun j e => u * (chance M theta e * (gamma * f (goes e))) + chance M theta e * (gamma * g (goes e)))) by (intros; lra).
  rewrite sumi_add, sumi_scal. lra.
Qed.
Lemma onward_scal u f : onward (fun t => u * f t) s = u * onward f s.
Proof.
  unfold onward. rewrite <- sumi_scal. apply sumi_ext. intros i qc _. simpl.
  rewrite (sumi_ext _ (fun j e => u * (chance M theta e * (gamma * f (goes e))))) by (intros; lra). rewrite sumi_scal. lra.
Qed.
Lemma onward_const d : 0 <= d -> onward (fun _ => d) s <= d.
Proof.
  intros D. destruct weights_are as [W0 W1]. apply Rle_trans with (sumi (fun _ qc => d * Q2R (fst qc)) 0 (taken (rl s) (table M s))); [|rewrite sumi_scal, W1; lra].
  apply sumi_le. intros i qc Hi. simpl. pose proof (nth_error_In _ _ Hi) as I. rewrite (Rmult_comm d). apply Rmult_le_compat_l; [now apply W0|].
  rewrite (sumi_ext _ (fun _ e => gamma * d * chance M theta e)) by (intros; lra). rewrite sumi_scal.
  rewrite (proj1 (proj2 T s (snd qc) Hs (taken_in _ _ _ I))). nra.
Qed.
End OneStep.

(* A bound that is inductive at open states, from where plays go on for ever with probability 0. *)
Section Open.
Variables (op : nat -> bool) (m e : nat -> R) (sg r : R).
Hypothesis (G : 0 <= gamma <= 1) (R0 : 0 <= r < 1).
Hypothesis None_ : forall s, (s < n)%nat -> op s = true -> ends_of (shape M) 0 s = None.
Hypothesis Step : forall s, (s < n)%nat -> op s = true -> sg * m s <= sg * (earned s + onward m s).
Hypothesis Slow : forall s, (s < n)%nat -> op s = true -> 1 <= e s /\ onward (fun t => if op t then e t else 0) s <= r * e s.
Variable sure : nat -> bool.
Hypothesis To : forall s qc ed, (s < n)%nat -> op s = true -> In qc (taken (rl s) (table M s)) -> In ed (outcomes (snd qc)) ->
  op (goes ed) = true \/ (op (goes ed) = false /\ sure (goes ed) = true).
Hypothesis Sure : forall t, (t < n)%nat -> op t = false -> sure t = true -> forall d, 0 < d -> exists k0, forall k, (k0 <= k)%nat -> sg * (m t - chain k t) <= d.

Lemma open_bound s : (s < n)%nat -> op s = true -> forall eps, 0 < eps -> exists k0, forall k, (k0 <= k)%nat -> sg * (m s - chain k s) <= eps.
Proof.
  intros Hs Os eps He.
  set (B := eps / (2 * e s)). assert (E1 : 1 <= e s) by now apply Slow. assert (B0 : 0 < B) by (apply Rdiv_lt_0_compat; lra).
  set (d := B * (1 - r)). assert (D0 : 0 < d) by (apply Rmult_lt_0_compat; lra).
  destruct (all_in_time n (fun t k => op t = false -> sure t = true -> sg * (m t - chain k t) <= d)) as (k0 & H0).
  { intros t Ht. destruct (op t) eqn:Ot; [exists 0%nat; discriminate|]. destruct (sure t) eqn:Sr; [|exists 0%nat; discriminate].
    destruct (Sure t Ht Ot Sr d D0) as (k0 & H0). exists k0. auto. }
  destruct (all_below n (fun t => sg * (m t - chain k0 t))) as (A & A0 & HA).
  assert (Main : forall j t, (t < n)%nat -> op t = true -> sg * (m t - chain (k0 + j) t) <= (A * r ^ j + B) * e t).
  { induction j as [|j IH]; intros t Ht Ot; destruct (Slow t Ht Ot) as [E2 E3].
    - rewrite Nat.add_0_r. specialize (HA t Ht). simpl. nra.
    - rewrite Nat.add_succ_r. simpl chain. rewrite (None_ t Ht Ot). pose proof (Step t Ht Ot) as S1.
      set (g := A * r ^ j + B). assert (G0 : 0 <= g) by (unfold g; pose proof (pow_le r j (proj1 R0)); nra).
      assert (L : onward (fun u => sg * m u + (- sg) * chain (k0 + j) u) t <= onward (fun u => g * (if op u then e u else 0) + d) t).
      { apply onward_le; auto. intros qc ed Iq Ie.
        assert (Hu : (goes ed < n)%nat) by (apply (Inside t (snd qc) ed Ht); [eapply taken_in; eauto|exact Ie]).
        destruct (To t qc ed Ht Ot Iq Ie) as [Ou|[Ou Sr] ]; rewrite Ou.
        - specialize (IH (goes ed) Hu Ou). fold g in IH. lra.
        - specialize (H0 (goes ed) (k0 + j)%nat Hu ltac:(lia) Ou Sr). lra. }
      rewrite !onward_lin, onward_scal in L. pose proof (onward_const t Ht (None_ t Ht Ot) G d ltac:(lra)) as Lc.
      simpl pow. fold g.
      assert (K : sg * onward m t - sg * onward (chain (k0 + j)) t <= g * (r * e t) + d) by nra.
      assert (Q : g * (r * e t) + d <= (A * (r * r ^ j) + B) * e t).
      { assert (P : 0 <= B * (1 - r) * (e t - 1)) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra). unfold g, d. lra. }
      lra. }
  destruct (pow_lt_1_zero r) with (y := eps / (2 * (A + 1) * e s)) as (j0 & HJ).
  { rewrite Rabs_pos_eq; lra. } { apply Rdiv_lt_0_compat; [lra|]. nra. }
  exists (k0 + j0)%nat. intros k Hk. replace k with (k0 + (k - k0))%nat by lia.
  eapply Rle_trans; [now apply Main|]. specialize (HJ (k - k0)%nat ltac:(lia)). rewrite Rabs_pos_eq in HJ by (apply pow_le; lra).
  assert (BE : B * e s = eps / 2) by (unfold B; field; lra).
  assert (AE : A * r ^ (k - k0) * e s <= eps / 2).
  { apply Rle_trans with ((A + 1) * (eps / (2 * (A + 1) * e s)) * e s); [|right; field; lra].
    apply Rmult_le_compat_r; [lra|]. pose proof (pow_le r (k - k0) (proj1 R0)). apply Rmult_le_compat; lra. }
  lra.
Qed.
End Open.
End Chain.

Section Sets.
Variables (N : nat) (evs : nat -> event) (cut : (nat -> Q) -> Q -> option poly) (stakes : nat -> (nat -> bound) -> wager -> option poly) (c : cert).
Hypothesis (CT : forall t r p, cut t r = Some p -> 0 <= [[ p ]]) (BT : bets_hold M theta stakes).
Hypothesis EV : forall g, (g < N)%nat -> Q2R (elow c g) <= [[ about (evs g) ]] <= Q2R (ehigh c g).

(* Some cell holds the truth. *)
Lemma covered_true good (P : Prop) t : forall env, covered M N evs cut stakes c good env t = true -> (forall q, In q env -> 0 <= [[ q ]]) ->
  (forall env' l, (forall q, In q env' -> 0 <= [[ q ]]) -> good env' l = true -> P) -> P.
Proof.
  induction t as [l|m why|d a IHa b IHb]; intros env H HE HP; simpl in H.
  - destruct (makes M N evs cut stakes c env (more l)) as [env'|] eqn:E; [|discriminate]. apply (HP env' l); [|exact H].
    exact (makes_true M theta T N evs cut stakes c CT BT EV _ _ _ HE E).
  - destruct (makes M N evs cut stakes c env m) as [env'|] eqn:E; [|discriminate]. exfalso.
    pose proof (makes_true M theta T N evs cut stakes c CT BT EV _ _ _ HE E) as HE'.
    pose proof (follows_true M theta T N evs c EV env' why _ HE' H) as F. rewrite constant_at in F. unfold Q2R in F. simpl in F. lra.
  - apply andb_prop in H. destruct H as [Ha Hb].
    assert (With : forall p, 0 <= [[ p ]] -> forall q, In q (env ++ [p]) -> 0 <= [[ q ]]).
    { intros p Hp q Hq. apply in_app_or in Hq. destruct Hq as [Hq|[<-|[] ] ]; auto. }
    destruct (Rle_dec 0 [[ d ]]) as [D|D]; [exact (IHa _ Ha (With _ D) HP)|]. refine (IHb _ Hb (With _ _) HP).
    rewrite plus_at. replace (Q2R (-1)) with (-1) by (unfold Q2R; simpl; lra). simpl. lra.
Qed.

Section InCell.
Variables (l : cell) (env : list poly).
Hypothesis (HE : forall q, In q env -> 0 <= [[ q ]]) (AX : axes_ok M N evs l c env = true).
Definition y (j : nat) : R := [[ axis l j ]].
Lemma within j : 0 <= y j <= IZR (height l j).
Proof.
  unfold y, axis, height. destruct (nth_error (axes l) j) as [ [ [ [p h] lo] hi]|] eqn:E; [|simpl; lra].
  pose proof AX as A. unfold axes_ok in A. apply andb_prop in A. destruct A as [A _]. rewrite forallb_forall in A. specialize (A _ (nth_error_In _ _ E)). simpl in A.
  apply andb_prop in A. destruct A as [A1 A2].
  pose proof (follows_true M theta T N evs c EV env lo _ HE A1) as F1. pose proof (follows_true M theta T N evs c EV env hi _ HE A2) as F2.
  rewrite (m1 theta), constant_at, Q2R_inject in F2. lra.
Qed.
Lemma together (u : list Z) k : sumi (fun j _ => y j) k u <= IZR (budget l).
Proof.
  set (upto := fun m => sumi (fun j _ => y j) 0 (repeat tt m)).
  assert (Rng : forall (A B : Type) (v : list A) (v' : list B) i, length v = length v' -> sumi (fun j _ => y j) i v = sumi (fun j _ => y j) i v').
  { intros A B v. induction v as [|x0 v IH]; intros [|x1 v'] i E; simpl in *; try discriminate; [reflexivity|]. rewrite (IH v'); [reflexivity|lia]. }
  assert (App : forall m m' i, sumi (fun j _ => y j) i (repeat tt (m + m')) = sumi (fun j _ => y j) i (repeat tt m) + sumi (fun j _ => y j) (i + m) (repeat tt m')).
  { induction m as [|m IH]; intros m' i; simpl; [rewrite Nat.add_0_r; lra|]. rewrite IH. replace (S i + m)%nat with (i + S m)%nat by lia. lra. }
  assert (Pos : forall m i, 0 <= sumi (fun j _ => y j) i (repeat tt m)) by (intros m i; apply sumi_nonneg; intros; apply within).
  assert (Beyond : forall m i, (length (axes l) <= i)%nat -> sumi (fun j _ => y j) i (repeat tt m) = 0).
  { induction m as [|m IH]; intros i Hi; simpl; [reflexivity|]. rewrite IH by lia. unfold y, axis. rewrite (proj2 (nth_error_None (axes l) i)) by lia. simpl. lra. }
  assert (Bud : upto (length (axes l)) <= IZR (budget l)).
  { pose proof AX as A. unfold axes_ok in A. apply andb_prop in A. destruct A as [_ A]. pose proof (follows_true M theta T N evs c EV env _ _ HE A) as F.
    assert (E : forall (v : list (poly * Z * list (Q * reference) * list (Q * reference))) q,
      [[ fold_right (fun a => plus (-1) (fst (fst (fst a)))) q v ]] = [[ q ]] - sumi (fun _ a => [[ fst (fst (fst a)) ]]) 0 v).
    { assert (Free : forall (v : list (poly * Z * list (Q * reference) * list (Q * reference))) i, sumi (fun _ a => [[ fst (fst (fst a)) ]]) i v = sumi (fun _ a => [[ fst (fst (fst a)) ]]) 0 v).
      { intros v. induction v as [|x0 v IH]; intros i; simpl; [reflexivity|]. now rewrite (IH (S i)), (IH 1%nat). }
      induction v as [|x0 v IH]; intros q; simpl; [lra|]. rewrite (m1 theta), IH, (Free v 1%nat). lra. }
    rewrite E, constant_at, Q2R_inject in F. unfold upto. rewrite (Rng _ _ (repeat tt (length (axes l))) (axes l) 0%nat) by apply repeat_length.
    rewrite (sumi_ext _ (fun _ a => [[ fst (fst (fst a)) ]])); [lra|]. intros j a Hj. simpl. unfold y, axis. rewrite Hj. now destruct a as [ [ [p h] lo] hi]. }
  rewrite (Rng _ _ u (repeat tt (length u)) k) by (symmetry; apply repeat_length).
  apply Rle_trans with (upto (k + length u)%nat).
  - unfold upto. rewrite App. specialize (Pos k 0%nat). simpl. lra.
  - destruct (Nat.le_gt_cases (k + length u) (length (axes l))) as [L|L].
    + replace (length (axes l)) with ((k + length u) + (length (axes l) - (k + length u)))%nat in Bud by lia. unfold upto in *. rewrite App in Bud.
      specialize (Pos (length (axes l) - (k + length u))%nat (0 + (k + length u))%nat). lra.
    + replace (k + length u)%nat with (length (axes l) + (k + length u - length (axes l)))%nat by lia. unfold upto in *. rewrite App, (Beyond _ (0 + length (axes l))%nat) by (simpl; lia). lra.
Qed.
Lemma composed_at f : forall k, [[ composed l k f ]] = sumi (fun j b => y j * IZR b) k f.
Proof. induction f as [|b f IH]; intros k; simpl; [reflexivity|]. rewrite plus_at, IH, Q2R_inject. unfold y. lra. Qed.
Lemma composed2_at f : forall k, [[ composed2 l k f ]] = sumi (fun j a => y j * at1 y a) k f.
Proof.
  induction f as [|a f IH]; intros k; cbn [composed2 sumi]; [reflexivity|]. rewrite plus_at, times_at, plus_at, constant_at, Q2R_inject, composed_at, IH, Q2R_1.
  unfold at1, form_at, y. ring.
Qed.
Lemma newest_true : forall v : list poly, (forall q, In q v -> 0 <= [[ q ]]) -> 0 <= [[ newest v ]].
Proof.
  induction v as [|p v IH]; intros H; [simpl; lra|]. destruct v as [|p' v]; [apply H; now left|]. apply IH. intros q Hq. apply H. now right.
Qed.
Lemma sure_true f : sure_of l env f = true -> 0 <= at2 y f.
Proof.
  unfold sure_of. intros H. apply orb_prop in H. destruct H as [H|H].
  - apply Z.leb_le, IZR_le in H. eapply Rle_trans; [exact H|]. apply least2_at; [apply within|apply together].
  - apply (zero_at theta) in H. rewrite (m1 theta), plus_at, constant_at, Q2R_inject, composed2_at, Q2R_1 in H. pose proof (newest_true env HE) as L.
    unfold at2, form_at. lra.
Qed.
Hypothesis LB : labels_ok M l = true.
Lemma scales : 0 < IZR (grain l) /\ 0 < IZR (unit_of l) /\ below (labels l) (fun k => let e := label_at l k in let f := linear l e in
    zero (plus (Qopp (inject_Z (grain l))) (polys M e) (plus 1 (constant (inject_Z (fst f))) (composed l 0 (snd f))))) = true.
Proof.
  pose proof LB as H. unfold labels_ok in H. apply andb_prop in H. destruct H as [H1 H3]. apply andb_prop in H1. destruct H1 as [H1 H2].
  apply Z.ltb_lt, IZR_lt in H1, H2. auto.
Qed.
Notation g := (IZR (grain l)).
Notation u := (IZR (unit_of l)).
Lemma label_true e : labelled l e = true -> g * chance M theta e = at1 y (linear l (expr e)).
Proof.
  unfold labelled. intros H. apply andb_prop in H. destruct H as [H1 H2]. apply Nat.ltb_lt in H1. apply Nat.eqb_eq in H2.
  pose proof (below_spec _ _ (proj2 (proj2 scales)) _ H1) as L. cbv beta zeta in L. rewrite H2 in L. apply (zero_at theta) in L.
  rewrite plus_at, plus_at, constant_at, composed_at, Q2R_1, Q2R_opp, !Q2R_inject in L. unfold chance, at1, form_at. lra.
Qed.

Section InWalk.
Variables (w : walk) (rl : nat -> rule) (upward : bool) (b : nat -> Q) (sure : nat -> bool).
Notation sg := (Q2R (sign upward)).
Notation m := (fun t => at2 y (guess_at w t)).
Lemma turned : IZR (turn upward) = sg.
Proof. unfold turn, sign, Q2R. destruct upward; simpl; lra. Qed.
Lemma free {A} (f : A -> R) v k : sumi (fun _ z => f z) k v = sumi (fun _ z => f z) 0 v.
Proof. revert k. induction v as [|z v IH]; intros k; simpl; [reflexivity|]. now rewrite (IH (S k)), (IH 1%nat). Qed.
Lemma edges_at a es : (forall e, In e es -> labelled l e = true) -> forall acc,
  at3 y (edges_in l w a es acc) = IZR a * (g * sumi (fun _ e => chance M theta e * m (goes e)) 0 es) + at3 y acc.
Proof.
  induction es as [|e es IH]; intros H acc; simpl; [lra|]. rewrite IH by (intros; apply H; now right).
  rewrite gather_at, <- (label_true e) by (apply H; now left). rewrite (free (fun e => chance M theta e * m (goes e)) es 1%nat). lra.
Qed.
(* What is weighed, in numbers: the sums over choices. *)
Lemma weighed_at z cs : forall sh v, weighed M l upward z cs sh = Some v ->
  (forall F : list ledge -> R, sumi (fun _ c => IZR (fst (fst c)) * F (snd c)) 0 v = IZR z * (gamma * sumi (fun _ qc => Q2R (fst qc) * F (outcomes (snd qc))) 0 cs)) /\
  sg * sumi (fun _ c => IZR (snd (fst c))) 0 v <= sg * (IZR z * (g * u) * sumi (fun _ qc => Q2R (fst qc) * [[ gains (snd qc) ]]) 0 cs) /\
  forall t, In t v -> exists qc, In qc cs /\ outcomes (snd qc) = snd t.
Proof.
  induction cs as [|[q ch] cs IH]; intros sh v H; cbn [weighed] in H.
  - injection H as <-. split; [intros F; simpl; lra|]. split; [simpl; lra|intros t [] ].
  - destruct sh as [|[a e] sh]; [discriminate|]. destruct (number (gains ch)) as [r|] eqn:Nu; [|discriminate].
    destruct (weighed M l upward z cs sh) as [v'|] eqn:E; [|discriminate]. destruct (_ && _)%bool eqn:K in H; [|discriminate]. injection H as <-.
    destruct (IH sh v' E) as (I1 & I2 & I3). apply andb_prop in K. destruct K as [K1 K2].
    apply Qeq_bool_eq, Qeq_eqR in K1. rewrite !Q2R_mult, !Q2R_inject in K1.
    apply Qle_bool_R in K2. rewrite Q2R_0, Q2R_mult, Q2R_minus, !Q2R_mult, !Q2R_inject, !mult_IZR in K2. split; [|split].
    + intros F. cbn [sumi fst snd]. rewrite (free (fun c => IZR (fst (fst c)) * F (snd c)) v' 1%nat), I1.
      rewrite (free (fun qc => Q2R (fst qc) * F (outcomes (snd qc))) cs 1%nat), K1. ring.
    + cbn [sumi fst snd]. rewrite (free (fun c => IZR (snd (fst c))) v' 1%nat), (free (fun qc => Q2R (fst qc) * [[ gains (snd qc) ]]) cs 1%nat).
      rewrite (number_at theta _ _ Nu). lra.
    + intros t [<-|I]; [exists (q, ch); split; [now left|reflexivity]|]. destruct (I3 t I) as (qc & J & O). exists qc. split; [now right|exact O].
Qed.
Lemma choices_at v : (forall c e, In c v -> In e (snd c) -> labelled l e = true) -> forall acc,
  at3 y (choices_in l w upward v acc) = sg * (sumi (fun _ c => IZR (snd (fst c))) 0 v +
    sumi (fun _ c => IZR (fst (fst c)) * (g * sumi (fun _ e => chance M theta e * m (goes e)) 0 (snd c))) 0 v) + at3 y acc.
Proof.
  induction v as [|[ [a e] es] v IH]; intros H acc; cbn [choices_in]; [simpl; lra|].
  rewrite (IH (fun c e' I => H c e' (or_intror I))), edges_at by (intros e' I; apply (H (a, e, es) e'); [now left|exact I]).
  cbn [sumi fst snd]. rewrite (free (fun c => IZR (snd (fst c))) v 1%nat).
  rewrite (free (fun c => IZR (fst (fst c)) * (g * sumi (fun _ e => chance M theta e * m (goes e)) 0 (snd c))) v 1%nat).
  unfold at3, form_at. cbn [fst snd]. rewrite plus_IZR, !mult_IZR, turned. ring.
Qed.
Notation stay := (fun t => if is_open w t then IZR (slow w t) else 0).
Lemma slow_edges_at a es : (forall e, In e es -> labelled l e = true) -> forall acc,
  at1 y (slow_edges l w a es acc) = IZR a * (g * sumi (fun _ e => chance M theta e * stay (goes e)) 0 es) + at1 y acc.
Proof.
  induction es as [|e es IH]; intros H acc; cbn [slow_edges sumi]; [lra|]. rewrite IH by (intros; apply H; now right).
  rewrite (free (fun e => chance M theta e * stay (goes e)) es 1%nat).
  destruct (is_open w (goes e)); [|lra]. rewrite add1_at, mult_IZR, <- (label_true e) by (apply H; now left). lra.
Qed.
Lemma slow_choices_at v : (forall c e, In c v -> In e (snd c) -> labelled l e = true) -> forall acc,
  at1 y (slow_choices l w v acc) = at1 y acc - sumi (fun _ c => IZR (fst (fst c)) * (g * sumi (fun _ e => chance M theta e * stay (goes e)) 0 (snd c))) 0 v.
Proof.
  induction v as [|[ [a e] es] v IH]; intros H acc; cbn [slow_choices]; [simpl; lra|].
  rewrite (IH (fun c e' I => H c e' (or_intror I))), slow_edges_at by (intros e' I; apply (H (a, e, es) e'); [now left|exact I]).
  cbn [sumi fst snd]. rewrite (free (fun c => IZR (fst (fst c)) * (g * sumi (fun _ e => chance M theta e * stay (goes e)) 0 (snd c))) v 1%nat).
  rewrite opp_IZR. lra.
Qed.

Notation value := (fun t => at2 y (guess_at w t) / u).
Lemma onward_of f s : onward rl f s = gamma * sumi (fun _ qc => Q2R (fst qc) * sumi (fun _ e => chance M theta e * f (goes e)) 0 (outcomes (snd qc))) 0 (taken (rl s) (table M s)).
Proof.
  unfold onward. rewrite <- sumi_scal. apply sumi_ext. intros i qc _. cbv beta.
  rewrite (sumi_ext _ (fun _ e => gamma * (chance M theta e * f (goes e)))) by (intros; ring). rewrite sumi_scal. ring.
Qed.
(* One step: f is no more than what is earned and what the forms of [w] say of where the play goes. *)
Lemma step_true z f s v sh : 0 < IZR z -> weighed M l upward z (taken (rl s) (table M s)) sh = Some v ->
  (forall c e, In c v -> In e (snd c) -> labelled l e = true) ->
  Z.leb 0 (least3 (height l) (budget l) (choices_in l w upward v (add3 (Z.opp (Z.mul (turn upward) (Z.mul z (grain l)))) (to_cubic f) (0%Z, [])))) = true ->
  sg * (at2 y f / u) <= sg * (earned rl s + onward rl value s).
Proof.
  destruct scales as (G0 & U0 & _). set (cs := taken (rl s) (table M s)). intros Hw E Lv H1. destruct (weighed_at _ _ _ _ E) as (W1 & W2 & W3).
  apply Z.leb_le, IZR_le in H1. pose proof (least3_at y (height l) (budget l) within together
    (choices_in l w upward v (add3 (Z.opp (Z.mul (turn upward) (Z.mul z (grain l)))) (to_cubic f) (0%Z, [])))) as L.
  rewrite (choices_at v Lv), add3_at, to_cubic_at, opp_IZR, !mult_IZR, turned in L. unfold at3 in L. rewrite nothing_at in L.
  rewrite (W1 (fun es => g * sumi (fun _ e => chance M theta e * m (goes e)) 0 es)) in L.
  rewrite onward_of. fold cs. unfold earned. fold cs.
  set (A := sumi (fun _ qc => Q2R (fst qc) * [[ gains (snd qc) ]]) 0 cs) in *.
  rewrite (sumi_ext (fun _ qc => Q2R (fst qc) * (g * sumi (fun _ e => chance M theta e * m (goes e)) 0 (outcomes (snd qc))))
    (fun _ qc => g * (Q2R (fst qc) * sumi (fun _ e => chance M theta e * m (goes e)) 0 (outcomes (snd qc)))) cs) in L by (intros; ring).
  rewrite sumi_scal in L.
  rewrite (sumi_ext (fun _ qc => Q2R (fst qc) * sumi (fun _ e => chance M theta e * (m (goes e) / u)) 0 (outcomes (snd qc)))
    (fun _ qc => / u * (Q2R (fst qc) * sumi (fun _ e => chance M theta e * m (goes e)) 0 (outcomes (snd qc)))) cs).
  2:{ intros i qc _. cbv beta. rewrite (sumi_ext _ (fun _ e => / u * (chance M theta e * m (goes e)))) by (intros; unfold Rdiv; ring).
      rewrite sumi_scal. ring. }
  rewrite sumi_scal. set (B := sumi (fun _ qc => Q2R (fst qc) * sumi (fun _ e => chance M theta e * m (goes e)) 0 (outcomes (snd qc))) 0 cs) in *.
  set (C := sumi (fun _ c => IZR (snd (fst c))) 0 v) in *. set (V := at2 y f) in *. set (W := IZR z) in *.
  assert (K : 0 <= W * g * (sg * (u * A + gamma * B - V))) by lra.
  assert (K' : 0 <= sg * (u * A + gamma * B - V)).
  { apply (Rmult_le_reg_l (W * g)); [apply Rmult_lt_0_compat; lra|]. lra. }
  apply (Rmult_le_reg_l u); [exact U0|]. replace (u * (sg * (V / u))) with (sg * V) by (field; lra).
  replace (u * (sg * (A + gamma * (/ u * B)))) with (sg * (u * A + gamma * B)) by (field; lra). lra.
Qed.
Lemma state_true s : state_ok M l w rl upward b sure s = true ->
  ends_of (shape M) 0 s = None /\ sg * (at2 y (guess w s) / u) <= sg * (earned rl s + onward rl value s) /\
  1 <= IZR (slow w s) /\ onward rl stay s <= Q2R (rate w) * IZR (slow w s) /\
  forall qc e, In qc (taken (rl s) (table M s)) -> In e (outcomes (snd qc)) -> is_open w (goes e) = true \/
    (is_open w (goes e) = false /\ said l w upward b sure (goes e) = true).
Proof.
  destruct scales as (G0 & U0 & _).
  unfold state_ok. destruct (ends_of (shape M) 0 s); [discriminate|]. set (cs := taken (rl s) (table M s)). cbv zeta. intros H.
  apply andb_prop in H. destruct H as [H Hs]. apply andb_prop in H. destruct H as [H Hv]. apply andb_prop in H. destruct H as [Hw H].
  apply Z.ltb_lt, IZR_lt in Hw. apply Z.leb_le, IZR_le in Hs.
  assert (Lb : forall qc e, In qc cs -> In e (outcomes (snd qc)) -> labelled l e = true /\ said l w upward b sure (goes e) = true).
  { intros qc e I J. rewrite forallb_forall in H. specialize (H _ I). rewrite forallb_forall in H. specialize (H _ J). now apply andb_prop in H. }
  destruct (weighed M l upward (whole w s) cs (portions_at w s)) as [v|] eqn:E; [|discriminate]. apply andb_prop in Hv. destruct Hv as [H1 H2].
  destruct (weighed_at _ _ _ _ E) as (W1 & W2 & W3).
  assert (Lv : forall c e, In c v -> In e (snd c) -> labelled l e = true).
  { intros t e I J. destruct (W3 t I) as (qc & K & O). rewrite <- O in J. exact (proj1 (Lb qc e K J)). }
  split; [reflexivity|]. split; [|split; [exact Hs|split] ].
  - now apply (step_true (whole w s) (guess w s) s v (portions_at w s)).
  - apply Qle_bool_R in H2. rewrite Q2R_mult, Q2R_minus, Q2R_1, !Q2R_inject in H2.
    pose proof (least1_at y (height l) (budget l) within together (slow_choices l w v (Z.mul (Z.mul (whole w s) (grain l)) (slow w s), []))) as L.
    rewrite (slow_choices_at v Lv) in L. rewrite (W1 (fun es => g * sumi (fun _ e => chance M theta e * stay (goes e)) 0 es)) in L.
    unfold at1 at 1, form_at in L. cbn [fst snd sumi] in L. rewrite !mult_IZR in L, H2.
    rewrite (sumi_ext (fun _ qc => Q2R (fst qc) * (g * sumi (fun _ e => chance M theta e * stay (goes e)) 0 (outcomes (snd qc))))
      (fun _ qc => g * (Q2R (fst qc) * sumi (fun _ e => chance M theta e * stay (goes e)) 0 (outcomes (snd qc)))) cs) in L by (intros; ring).
    rewrite sumi_scal in L. rewrite onward_of. fold cs.
    set (B := sumi (fun _ qc => Q2R (fst qc) * sumi (fun _ e => chance M theta e * stay (goes e)) 0 (outcomes (snd qc))) 0 cs) in *.
    apply (Rmult_le_reg_l (IZR (whole w s) * g)); [apply Rmult_lt_0_compat; lra|]. lra.
  - intros qc e I J. destruct (Lb qc e I J) as [_ O]. destruct (is_open w (goes e)); [now left|now right].
Qed.
Lemma said_true t : said l w upward b sure t = true -> is_open w t = false -> sure t = true /\ sg * (at2 y (guess_at w t) / u) <= sg * Q2R (b t).
Proof.
  destruct scales as (_ & U0 & _). unfold said, guess_at. intros H O. rewrite O in *. simpl in H. apply andb_prop in H. destruct H as [H1 H2].
  split; [exact H1|]. apply Qle_bool_R in H2. rewrite Q2R_0, Q2R_mult, Q2R_minus, Q2R_mult, !Q2R_inject in H2.
  unfold at2, form_at. cbn [fst snd sumi].
  apply (Rmult_le_reg_l u); [exact U0|]. replace (u * (sg * ((IZR (beyond w t) + 0) / u))) with (sg * IZR (beyond w t)) by (field; lra). lra.
Qed.
End InWalk.
End InCell.

(* ---------- What vectors prove of plays from other states ---------- *)

Definition restart (t : nat) : model :=
  let p := shape M in
  Model (Problem (states p) t (rows p) (kind_of p) (target p) (allowed p) (terminal p) (first p) (Problem.last p) (factor p))
    (table M) (polys M) (domain M) (least M).
Hypothesis (S2 : sets_ok M N evs cut stakes c = true) (NB : nobody (ask c) = true) (VO : vectors_ok M c = true).

Lemma playable_restart r t : (t < n)%nat -> playable (boxed M r (sides c)) (ask c) = true -> playable (boxed (restart t) r (sides c)) (ask c) = true.
Proof.
  intros Ht H. unfold playable in *. apply andb_prop in H. destruct H as [H P3]. apply andb_prop in H. destruct H as [H P2].
  apply andb_true_intro. split; [apply andb_true_intro; split|exact P3]; [|exact P2].
  unfold well_posed in *. apply andb_prop in H. destruct H as [_ H]. apply andb_true_intro. split; [simpl; now apply Nat.ltb_lt|exact H].
Qed.
Lemma value_restart t a k : forall h s, true_value (restart t) theta a k h s = true_value M theta a k h s.
Proof.
  induction k as [|k IH]; intros h s; cbn [true_value]; change (ends_of (shape (restart t)) (length h) s) with (ends_of (shape M) (length h) s); [reflexivity|].
  destruct (ends_of (shape M) (length h) s); [reflexivity|]. change (table (restart t) s) with (table M s). apply sumi_ext. intros i ch _. f_equal. f_equal.
  apply sumi_ext. intros j e _. change (chance (restart t) theta e) with (chance M theta e). f_equal. change (factor (shape (restart t))) with (factor (shape M)). f_equal. apply IH.
Qed.
Lemma vectors_at t : (t < n)%nat -> endless (high c) t = false -> forall a, legal_agent (game_of (skeleton M)) (pol_of (skeleton M) (ask c)) a ->
  at_least (fun k => true_value M theta a k [] t) (Some (x (low c) 0 t)) /\
  at_most (fun k => true_value M theta a k [] t) (x (high c) 0 t) /\
  (kind_of (shape M) = Reach_reward -> vanishes (fun k => missed (game_of (skeleton M)) (Play a (truth M theta)) k [] t)).
Proof.
  intros Ht Et a LA. pose proof VO as V. unfold vectors_ok in V. split_andb V.
  assert (Lo : shows_low (boxed (restart t) (pays c false) (sides c)) (ask c) (low c) (Some (x (low c) 0 t)) = true).
  { unfold shows_low. apply andb_true_intro. split; [now apply playable_restart|]. apply orb_true_intro. right.
    apply andb_true_intro. split; [apply andb_true_intro; split; [exact V5|exact V4]|]. apply orb_true_intro. right.
    apply Qle_bool_iff. apply Qle_refl. }
  assert (Hi : shows_high (boxed (restart t) (pays c true) (sides c)) (ask c) (high c) (x (high c) 0 t) = true).
  { unfold shows_high. apply andb_true_intro. split; [now apply playable_restart|]. apply orb_true_intro. right.
    apply andb_true_intro. split; [apply andb_true_intro; split; [apply andb_true_intro; split; [exact V2|exact V1]|]|].
    - simpl. now rewrite Et.
    - apply Qle_bool_iff. apply Qle_refl. }
  pose proof (low_side (restart t) theta T N evs cut stakes c S2 CT BT EV NB _ Lo) as L.
  pose proof (high_side (restart t) theta T N evs cut stakes c S2 CT BT EV NB _ Hi) as U.
  unfold true_bound in L, U. apply negb_true_iff in V8, V7. rewrite V8 in L. rewrite V7 in U. specialize (L a LA). specialize (U a LA).
  unfold low_means in L. unfold high_means in U. simpl Problem.last in L, U. simpl kind_of in L, U. rewrite (proj2 (no_steps V)) in L, U.
  assert (Vr : (fun k => true_value (restart t) theta a k [] (initial (shape (restart t)))) = (fun k => true_value M theta a k [] t)).
  { apply functional_extensionality. intros k. apply value_restart. }
  rewrite Vr in L, U.
  pose proof V as St. unfold steady in St. apply andb_prop in St. destruct St as [_ K].
  destruct (kind_of (shape M)); try discriminate K.
  - split; [exact L|]. split; [exact U|discriminate].
  - destruct U as [U1 U2]. split; [now apply L|]. split; [exact U2|intros _; exact U1].
  - split; [exact L|]. split; [exact U|discriminate].
  - split; [exact L|]. split; [exact U|discriminate].
Qed.

Lemma inside_of s ch e : playable (boxed M (pays c false) (sides c)) (ask c) = true ->
  (s < n)%nat -> In ch (table M s) -> In e (outcomes ch) -> (goes e < n)%nat.
Proof.
  intros V6 Hs Hc He.
  apply In_nth_error in Hc. destruct Hc as (i & Hi). apply In_nth_error in He. destruct He as (j & Hj).
  set (b := sides c). set (e' := let (l, u) := b s i j in Edge (goes e) l u).
  replace (goes e) with (next e') by (unfold e'; now destruct (b s i j)).
  set (c' := Choice (pays c false s i ch) (mapi (fun j e => let (l, u) := b s i j in Edge (goes e) l u) 0 (outcomes ch))).
  apply (rows_inside _ _ V6 s c' e' Hs).
  - simpl. apply (nth_error_In _ i). rewrite nth_mapi, Hi. reflexivity.
  - simpl. apply (nth_error_In _ j). rewrite nth_mapi, Hj. reflexivity.
Qed.
Lemma inside_all s ch e : (s < n)%nat -> In ch (table M s) -> In e (outcomes ch) -> (goes e < n)%nat.
Proof. intros Hs Hc He. pose proof VO as V. unfold vectors_ok in V. split_andb V. now apply (inside_of s ch e). Qed.

End Sets.

(* What a walk says at the initial state; facts are those of [c0]. *)
Section Walks.
Variables (N : nat) (evs : nat -> event) (cut : (nat -> Q) -> Q -> option poly) (stakes : nat -> (nat -> bound) -> wager -> option poly) (c : cert).
Hypothesis (CT : forall t r p, cut t r = Some p -> 0 <= [[ p ]]) (BT : bets_hold M theta stakes).
Hypothesis EV : forall g, (g < N)%nat -> Q2R (elow c g) <= [[ about (evs g) ]] <= Q2R (ehigh c g).
Hypothesis (S2 : sets_ok M N evs cut stakes c = true) (NB : nobody (ask c) = true) (VO : vectors_ok M c = true).
Variables (c0 : cert) (l : cell) (env : list poly).
Hypothesis EV0 : forall g, (g < N)%nat -> Q2R (elow c0 g) <= [[ about (evs g) ]] <= Q2R (ehigh c0 g).
Hypothesis (HE : forall q, In q env -> 0 <= [[ q ]]) (AX : axes_ok M N evs l c0 env = true) (LB : labels_ok M l = true).
Lemma walk_true w upward a : walk_ok M l w (rule_of (ask c)) upward (bound_of c upward) (bounded_at c) = true -> is_open w (initial (shape M)) = true ->
  legal_agent (game_of (skeleton M)) (pol_of (skeleton M) (ask c)) a ->
  forall eps, 0 < eps -> exists k0, forall k, (k0 <= k)%nat ->
    Q2R (sign upward) * (at2 (y l) (guess w (initial (shape M))) / IZR (unit_of l) - true_value M theta a k [] (initial (shape M))) <= eps.
Proof.
  intros WK Op LA eps He. pose proof VO as V. unfold vectors_ok in V. split_andb V.
  assert (Hs : (initial (shape M) < n)%nat) by (pose proof (initial_in _ (posed _ _ V6)) as I; exact I).
  assert (G : 0 <= gamma <= 1) by (pose proof (factor_range _ (game_of (boxed M (pays c false) (sides c))) (posed _ _ V6) eq_refl) as F; exact F).
  unfold walk_ok in WK. split_andb WK. apply Qle_bool_R in WK. apply Qltb_R in WK1. rewrite Q2R_0 in WK. rewrite Q2R_1 in WK1.
  assert (SO : forall s, (s < n)%nat -> is_open w s = true -> state_ok M l w (rule_of (ask c)) upward (bound_of c upward) (bounded_at c) s = true).
  { intros s H O. pose proof (below_spec _ _ WK0 s H) as D. cbv beta in D. now rewrite O in D. }
  assert (Nm : forall s, (s < n)%nat -> named (rule_of (ask c) s) = true) by (intros s H; apply (below_spec _ _ V9 s H)).
  assert (St : forall s, (s < n)%nat -> is_open w s = true -> _) by (intros s H O; exact (state_true N evs c0 EV0 l env HE AX LB w (rule_of (ask c)) upward (bound_of c upward) (bounded_at c) s (SO s H O))).
  assert (Val : forall k t, (t < n)%nat -> true_value M theta a k [] t = chain (rule_of (ask c)) k t).
  { intros k t Ht. apply (value_is (rule_of (ask c)) V (ask c) a); auto. exact (inside_all c VO). }
  destruct (open_bound (rule_of (ask c)) V (ask c) a (fun _ => eq_refl) Nm LA (inside_all c VO) (is_open w)
    (fun t => at2 (y l) (guess_at w t) / IZR (unit_of l)) (fun s => IZR (slow w s)) (Q2R (sign upward)) (Q2R (rate w)) G (conj WK WK1)) with
    (sure := said l w upward (bound_of c upward) (bounded_at c)) (s := initial (shape M)) (eps := eps) as (k0 & H0); auto.
  - intros s H O. apply (St s H O).
  - intros s H O. destruct (St s H O) as (_ & E & _). unfold guess_at at 1. rewrite O. exact E.
  - intros s H O. destruct (St s H O) as (_ & _ & E1 & E2 & _). split; [exact E1|exact E2].
  - intros s qc ed H O I J. destruct (St s H O) as (_ & _ & _ & _ & E). now apply (E qc).
  - intros t Ht Ot Sd d Hd. destruct (said_true l LB w upward (bound_of c upward) (bounded_at c) t Sd Ot) as [Sr Le].
    unfold bounded_at in Sr. apply negb_true_iff in Sr. destruct (vectors_at N evs cut stakes c CT BT EV S2 NB VO t Ht Sr a LA) as (L & U & _).
    set (v := at2 (y l) (guess_at w t) / IZR (unit_of l)) in *. unfold bound_of, sign in Le |- *. destruct upward.
    + destruct (U d Hd) as (k0 & H0). exists k0. intros k Hk. specialize (H0 k Hk). rewrite (Val k t Ht) in H0.
      replace (Q2R (-1)) with (-1) in * by (unfold Q2R; simpl; lra). lra.
    + destruct (L d Hd) as (k0 & H0). exists k0. intros k Hk. specialize (H0 k Hk). rewrite (Val k t Ht) in H0. rewrite Q2R_1 in *. lra.
  - exists k0. intros k Hk. specialize (H0 k Hk). rewrite (Val k _ Hs). unfold guess_at in H0. now rewrite Op in H0.
Qed.
End Walks.

(* ---------- Bounded steps ---------- *)

Section Stages.
Variables (K : nat) (q : question) (a : hist -> nat -> nat -> R).
Hypothesis LA : legal_agent (game_of (skeleton M)) (pol_of (skeleton M) q) a.
Hypothesis Nm : forall j s, (j <= K)%nat -> (s < n)%nat -> named (rule_at M q j s) = true.
Hypothesis Inside : forall s ch e, (s < n)%nat -> In ch (table M s) -> In e (outcomes ch) -> (goes e < n)%nat.
Hypothesis G : 0 <= gamma.
Fixpoint cascade (k j s : nat) : R :=
  match ends_of (shape M) j s, k with
  | Some b, _ => Q2R b
  | None, O => 0
  | None, S k' => earned (rule_at M q j) s + onward (rule_at M q j) (cascade k' (S j)) s
  end.
Lemma agent_at h s : (s < n)%nat -> ends_of (shape M) (length h) s = None ->
  (forall i, 0 <= a h s i) /\ sumi (fun i _ => a h s i) 0 (table M s) = 1 /\ obeys (rule_at M q (length h) s) (a h s).
Proof.
  intros Hs Hb. destruct (LA h s Hs Hb) as (A0 & A1 & A2). split; [exact A0|]. split; [simpl in A1; now rewrite sumi_mapi in A1|exact A2].
Qed.
Lemma cascade_is k : forall h s, (s < n)%nat -> (length h + k = K)%nat -> true_value M theta a k h s = cascade k (length h) s.
Proof.
  induction k as [|k IH]; intros h s Hs Hk; simpl; destruct (ends_of (shape M) (length h) s) as [b|] eqn:Hb; try reflexivity.
  destruct (agent_at h s Hs Hb) as (A0 & A1 & A2).
  rewrite (sumi_ext _ (fun i ch => a h s i * ([[ gains ch ]] + sumi (fun _ e => chance M theta e * (gamma * cascade k (S (length h)) (goes e))) 0 (outcomes ch)))).
  - rewrite (taken_sum (rule_at M q (length h) s) (table M s) (a h s)
      (fun ch => [[ gains ch ]] + sumi (fun _ e => chance M theta e * (gamma * cascade k (S (length h)) (goes e))) 0 (outcomes ch)) (Nm (length h) s ltac:(lia) Hs) A0 A1 A2).
    unfold earned, onward. rewrite <- sumi_add. apply sumi_ext. intros; simpl. lra.
  - intros i ch Hi. f_equal. f_equal. apply sumi_ext. intros j e Hj. f_equal. f_equal.
    apply (IH ((s, i) :: h)); [|simpl; lia]. apply (Inside s ch e Hs); eapply nth_error_In; eauto.
Qed.
Lemma onward_mono j f f' s : (s < n)%nat -> ends_of (shape M) j s = None ->
  (forall qc e, In qc (taken (rule_at M q j s) (table M s)) -> In e (outcomes (snd qc)) -> f (goes e) <= f' (goes e)) ->
  onward (rule_at M q j) f s <= onward (rule_at M q j) f' s.
Proof.
  intros Hs Hb H. assert (L : length (repeat (0%nat, 0%nat) j) = j) by apply repeat_length.
  destruct (agent_at (repeat (0%nat, 0%nat) j) s Hs) as (A0 & _ & A2); [now rewrite L|]. rewrite L in A2.
  apply sumi_le. intros i qc Hi. simpl. pose proof (nth_error_In _ _ Hi) as I.
  apply Rmult_le_compat_l; [exact (taken_weight _ _ _ A0 A2 qc I)|].
  apply sumi_le. intros i' e Hj. simpl. apply nth_error_In in Hj. destruct (proj2 T s (snd qc) Hs (taken_in _ _ _ I)) as [_ C].
  apply Rmult_le_compat_l; [now apply C|]. apply Rmult_le_compat_l; [exact G|]. now apply (H qc).
Qed.
Lemma known_is k j t : (j + k = K)%nat -> is_known M K j t = true -> cascade k j t = Q2R (known_value M K j t).
Proof.
  intros Hk H. unfold is_known, known_value, known_at in *. destruct k; simpl; destruct (ends_of (shape M) j t); try reflexivity.
  - rewrite Nat.add_0_r in Hk. subst j. rewrite Nat.eqb_refl. now rewrite Q2R_0.
  - destruct (Nat.eqb j K) eqn:E; [apply Nat.eqb_eq in E; lia|discriminate].
Qed.

Variables (N : nat) (evs : nat -> event) (c0 : cert) (l : cell) (env : list poly) (w : walk) (upward : bool).
Hypothesis EV0 : forall g, (g < N)%nat -> Q2R (elow c0 g) <= [[ about (evs g) ]] <= Q2R (ehigh c0 g).
Hypothesis (HE : forall p, In p env -> 0 <= [[ p ]]) (AX : axes_ok M N evs l c0 env = true) (LB : labels_ok M l = true).
Hypothesis ST : forall j s, (j <= K)%nat -> (s < n)%nat -> is_open (stage M w j) s = true -> stage_ok M K l w q upward j s = true.
Lemma stage_bound k : forall j s, (j + k = K)%nat -> (s < n)%nat -> is_open (stage M w j) s = true ->
  Q2R (sign upward) * (at2 (y l) (guess (stage M w j) s) / IZR (unit_of l)) <= Q2R (sign upward) * cascade k j s.
Proof.
  induction k as [|k IH]; intros j s Hj Hs Op; pose proof (ST j s ltac:(lia) Hs Op) as H; unfold stage_ok in H; simpl cascade;
    (destruct (ends_of (shape M) j s) eqn:Hb; [discriminate|]); cbv zeta in H;
    apply andb_prop in H; destruct H as [H Hv]; apply andb_prop in H; destruct H as [H Hl]; apply andb_prop in H; destruct H as [HK Hw];
    apply Nat.ltb_lt in HK; [lia|].
  apply Z.ltb_lt, IZR_lt in Hw. destruct (weighed _ _ _ _ _ _) as [v|] eqn:E in Hv; [|discriminate].
  set (cs := taken (rule_at M q j s) (table M s)) in *.
  assert (Lb : forall qc e, In qc cs -> In e (outcomes (snd qc)) -> labelled l e = true /\
    said l (stage M w (S j)) upward (known_value M K (S j)) (is_known M K (S j)) (goes e) = true).
  { intros qc e I J. rewrite forallb_forall in Hl. specialize (Hl _ I). rewrite forallb_forall in Hl. specialize (Hl _ J). now apply andb_prop in Hl. }
  assert (Lv : forall t e, In t v -> In e (snd t) -> labelled l e = true).
  { intros t e I J. destruct (weighed_at l upward _ _ _ _ E) as (_ & _ & W3). destruct (W3 t I) as (qc & Iq & O). rewrite <- O in J. exact (proj1 (Lb qc e Iq J)). }
  pose proof (step_true N evs c0 EV0 l env HE AX LB (stage M w (S j)) (rule_at M q j) upward _ _ s v _ Hw E Lv Hv) as St.
  eapply Rle_trans; [exact St|]. rewrite !Rmult_plus_distr_l. apply Rplus_le_compat_l. rewrite <- !onward_scal.
  apply onward_mono; auto. intros qc e I J. destruct (Lb qc e I J) as [_ Sd].
  assert (Ht : (goes e < n)%nat) by (apply (Inside s (snd qc) e Hs); [eapply taken_in; eauto|exact J]).
  destruct (is_open (stage M w (S j)) (goes e)) eqn:O.
  - unfold guess_at. rewrite O. apply IH; [lia|exact Ht|exact O].
  - destruct (said_true l LB (stage M w (S j)) upward (known_value M K (S j)) (is_known M K (S j)) (goes e) Sd O) as [Kn Le].
    rewrite (known_is k (S j) (goes e) ltac:(lia) Kn). exact Le.
Qed.
End Stages.

Lemma beaten l upward b v : labels_ok M l = true -> beats l upward b = true -> Q2R (sign upward) * IZR (goal l) <= Q2R (sign upward) * v ->
  Q2R (sign upward) * (Q2R b - v / IZR (unit_of l)) <= 0.
Proof.
  intros LB B L. destruct (scales l LB) as (_ & U0 & _). unfold beats in B. apply Qle_bool_R in B. rewrite Q2R_0, Q2R_mult, Q2R_minus, Q2R_mult, !Q2R_inject in B.
  apply (Rmult_le_reg_l (IZR (unit_of l))); [exact U0|]. rewrite Rmult_0_r.
  replace (IZR (unit_of l) * (Q2R (sign upward) * (Q2R b - v / IZR (unit_of l)))) with (Q2R (sign upward) * (IZR (unit_of l) * Q2R b - v)) by (field; lra). lra.
Qed.
Lemma shown_of_true N evs cut stakes c : shown_of M N evs cut stakes c = true -> (forall t r p, cut t r = Some p -> 0 <= [[ p ]]) ->
  bets_hold M theta stakes ->
  (forall g, (g < N)%nat -> Q2R (elow c g) <= [[ about (evs g) ]] <= Q2R (ehigh c g)) ->
  match versus c with
  | Some q => true_difference M theta (ask c) q (compl c) (lower c) (upper c)
  | None => true_stated M theta (ask c) (compl c) (lower c) (upper c)
  end.
Proof.
  intros H CT BT EV. unfold shown_of in H.
  assert (Sg : Q2R (sign false) = 1 /\ Q2R (sign true) = -1) by (unfold sign, Q2R; simpl; lra). destruct Sg as [Sf Stt].
  destruct (versus c) as [q|].
  - unfold differs in H. destruct (lower c) as [l0|] eqn:El; [|discriminate]. destruct (upper c) as [u0|] eqn:Eu; [|discriminate].
    destruct (if compl c then (Qopp u0, Qopp l0) else (l0, u0)) as [l u] eqn:Elu. split_andb H.
    destruct (makes M N evs cut stakes c [] (facts c)) as [env|] eqn:E; [|discriminate]. split_andb H0.
    rename H0 into SI. set (c' := rival c q) in *.
    assert (S1 : sets_ok M N evs cut stakes c = true) by (unfold sets_ok; now rewrite E).
    assert (HE : forall p, In p env -> 0 <= [[ p ]]).
    { apply (makes_true M theta T N evs cut stakes c CT BT EV (facts c) [] env); [intros p []|exact E]. }
    assert (St : steady M = true) by (pose proof H5 as V; unfold vectors_ok in V; now split_andb V).
    intros a a' LA LA'. set (v := fun k => true_value M theta a k [] (initial (shape M))). set (v' := fun k => true_value M theta a' k [] (initial (shape M))).
    assert (Hs : (initial (shape M) < n)%nat).
    { pose proof H5 as V. unfold vectors_ok in V. split_andb V. exact (initial_in _ (posed _ _ V6)). }
    pose proof H5 as VA. unfold vectors_ok in VA. split_andb VA. apply negb_true_iff in VA0.
    pose proof H4 as VB. unfold vectors_ok in VB. split_andb VB. apply negb_true_iff in VB0.
    destruct (vectors_at N evs cut stakes c CT BT EV S1 H H5 _ Hs VA0 a LA) as (La & Ua & Va).
    destruct (vectors_at N evs cut stakes c' CT BT EV H6 H1 H4 _ Hs VB0 a' LA') as (Lb & Ub & Vb).
    assert (Main : forall upward b, apart M N evs cut stakes c c' upward env b = true -> forall eps, 0 < eps -> exists k0, forall k, (k0 <= k)%nat ->
      Q2R (sign upward) * (Q2R b - (v k - v' k)) <= eps).
    { intros upward b A eps He. unfold apart in A. apply orb_prop in A. destruct A as [A|A].
      - apply Qle_bool_R in A. rewrite Q2R_0, Q2R_mult, !Q2R_minus in A. unfold bound_of in A. destruct upward; simpl in A.
        + destruct (Ua (eps / 2) ltac:(lra)) as (k1 & K1). destruct (Lb (eps / 2) ltac:(lra)) as (k2 & K2). exists (Nat.max k1 k2). intros k Hk.
          specialize (K1 k ltac:(lia)). specialize (K2 k ltac:(lia)). fold (v k) in K1. fold (v' k) in K2. rewrite Stt in *. simpl in K2. lra.
        + destruct (La (eps / 2) ltac:(lra)) as (k1 & K1). destruct (Ub (eps / 2) ltac:(lra)) as (k2 & K2). exists (Nat.max k1 k2). intros k Hk.
          specialize (K1 k ltac:(lia)). specialize (K2 k ltac:(lia)). fold (v k) in K1. fold (v' k) in K2. rewrite Sf in *. simpl in K2. lra.
      - destruct (if upward then joint_high c else joint_low c) as [t|]; [|discriminate].
        apply (covered_true N evs cut stakes c CT BT EV _ _ _ _ A HE). intros env' ce HE' GC. unfold pair_ok in GC. split_andb GC.
        destruct (walk_true N evs cut stakes c CT BT EV S1 H H5 c ce env' EV HE' GC GC6 _ upward a GC5 GC4 LA (eps / 2) ltac:(lra)) as (k1 & K1).
        destruct (walk_true N evs cut stakes c' CT BT EV H6 H1 H4 c ce env' EV HE' GC GC6 _ (negb upward) a' GC3 GC2 LA' (eps / 2) ltac:(lra)) as (k2 & K2).
        pose proof (sure_true N evs c EV ce env' HE' GC _ GC1) as L.
        rewrite !add2_at in L. unfold at2 at 3, form_at in L. cbn [fst snd sumi] in L. rewrite opp_IZR, mult_IZR, turned in L.
        pose proof (beaten ce upward b (at2 (y ce) (guess (first_walk ce) (initial (shape M))) - at2 (y ce) (guess (second_walk ce) (initial (shape M)))) GC6 GC0 ltac:(lra)) as F.
        unfold Rdiv in F, K1, K2. rewrite Rmult_minus_distr_r in F.
        exists (Nat.max k1 k2). intros k Hk. specialize (K1 k ltac:(lia)). specialize (K2 k ltac:(lia)). fold (v k) in K1. fold (v' k) in K2.
        destruct upward; simpl negb in K2; rewrite ?Stt, ?Sf in *; lra. }
    assert (Low : forall eps, 0 < eps -> exists k0, forall k, (k0 <= k)%nat -> Q2R l - eps <= v k - v' k).
    { intros eps He. destruct (Main false l H3 eps He) as (k0 & K0). exists k0. intros k Hk. specialize (K0 k Hk). rewrite Sf in K0. lra. }
    assert (High : forall eps, 0 < eps -> exists k0, forall k, (k0 <= k)%nat -> v k - v' k <= Q2R u + eps).
    { intros eps He. destruct (Main true u H2 eps He) as (k0 & K0). exists k0. intros k Hk. specialize (K0 k Hk). rewrite Stt in K0. lra. }
    assert (LU : at_least (fun k => (if compl c then -1 else 1) * (v k - v' k)) (Some l0) /\ at_most (fun k => (if compl c then -1 else 1) * (v k - v' k)) u0).
    { destruct (compl c); injection Elu as <- <-; split; intros eps He.
      - destruct (High eps He) as (k0 & K0). exists k0. intros k Hk. specialize (K0 k Hk). rewrite Q2R_opp in K0. lra.
      - destruct (Low eps He) as (k0 & K0). exists k0. intros k Hk. specialize (K0 k Hk). rewrite Q2R_opp in K0. lra.
      - destruct (Low eps He) as (k0 & K0). exists k0. intros k Hk. specialize (K0 k Hk). lra.
      - destruct (High eps He) as (k0 & K0). exists k0. intros k Hk. specialize (K0 k Hk). lra. }
    destruct LU as [LU1 LU2]. unfold low_means, high_means. rewrite (proj2 (no_steps St)).
    pose proof St as K. unfold steady in K. apply andb_prop in K. destruct K as [_ K].
    destruct (kind_of (shape M)) eqn:EK; try discriminate K; try (split; [exact LU1|exact LU2]).
    split; [intros _; exact LU1|]. split; [|exact LU2]. specialize (Va eq_refl). specialize (Vb eq_refl).
    intros eps He. destruct (Va (eps / 2) ltac:(lra)) as (k1 & K1). destruct (Vb (eps / 2) ltac:(lra)) as (k2 & K2). exists (Nat.max k1 k2). intros k Hk.
    specialize (K1 k ltac:(lia)). specialize (K2 k ltac:(lia)). lra.
  - unfold holds in H. unfold true_stated. destruct (if compl c then _ else _) as [l u].
    apply andb_prop in H. destruct H as [NB H]. destruct (makes M N evs cut stakes c [] (facts c)) as [env|] eqn:E; [|discriminate].
    apply andb_prop in H. destruct H as [H HU]. apply andb_prop in H. destruct H as [SI HL].
    assert (S1 : sets_ok M N evs cut stakes c = true) by (unfold sets_ok; now rewrite E).
    assert (HE : forall p, In p env -> 0 <= [[ p ]]).
    { apply (makes_true M theta T N evs cut stakes c CT BT EV (facts c) [] env); [intros p []|exact E]. }
    destruct (Problem.last (shape M)) as [K|] eqn:EK0.
    { assert (Main : forall upward b, joint M N evs cut stakes c upward env b = true -> agent_owns (ask c) true = false /\ agent_owns (ask c) false = false /\
        exists b', b = Some b' /\ forall a, legal_agent (game_of (skeleton M)) (pol_of (skeleton M) (ask c)) a ->
          Q2R (sign upward) * (Q2R b' - true_value M theta a K [] (initial (shape M))) <= 0).
      { intros upward b J. unfold joint in J. rewrite EK0 in J. destruct (if upward then joint_high c else joint_low c) as [t|]; [|discriminate].
        destruct b as [b|]; [|discriminate]. apply andb_prop in J. destruct J as [CO J]. unfold counted_ok in CO. split_andb CO.
        apply negb_true_iff in CO2, CO1. split; [exact CO2|]. split; [exact CO1|]. exists b. split; [reflexivity|]. intros a LA.
        apply (covered_true N evs cut stakes c CT BT EV _ _ _ _ J HE). intros env' ce HE' GC. unfold stages_ok in GC. split_andb GC.
        assert (Hs : (initial (shape M) < n)%nat) by (pose proof (initial_in _ (posed _ _ CO)) as I; exact I).
        assert (G : 0 <= gamma <= 1) by (pose proof (factor_range _ (game_of (boxed M (pays c false) (sides c))) (posed _ _ CO) eq_refl) as F; exact F).
        assert (Nm : forall j s, (j <= K)%nat -> (s < n)%nat -> named (rule_at M (ask c) j s) = true).
        { intros j s Hj H'. pose proof (below_spec _ _ CO0 j ltac:(lia)) as D. exact (below_spec _ _ D s H'). }
        assert (In_ : forall s ch e, (s < n)%nat -> In ch (table M s) -> In e (outcomes ch) -> (goes e < n)%nat) by (intros s ch e; exact (inside_of c s ch e CO)).
        assert (ST : forall j s, (j <= K)%nat -> (s < n)%nat -> is_open (stage M (first_walk ce) j) s = true ->
          stage_ok M K ce (first_walk ce) (ask c) upward j s = true).
        { intros j s Hj H' O. pose proof (below_spec _ _ GC3 j ltac:(lia)) as D. pose proof (below_spec _ _ D s H') as D1. cbv beta in D1. now rewrite O in D1. }
        pose proof (stage_bound K (ask c) a LA In_ (proj1 G) N evs c ce env' (first_walk ce) upward EV HE' GC GC4 ST K 0 _ (Nat.add_0_l K) Hs GC2) as B.
        pose proof (cascade_is K (ask c) a LA Nm In_ K [] _ Hs (Nat.add_0_l K)) as Same. simpl length in Same. rewrite <- Same in B.
        pose proof (sure_true N evs c EV ce env' HE' GC _ GC1) as L.
        rewrite add2_at in L. unfold at2 at 2, form_at in L. cbn [fst snd sumi] in L. rewrite opp_IZR, mult_IZR, turned in L.
        pose proof (beaten ce upward b (at2 (y ce) (guess (stage M (first_walk ce) 0) (initial (shape M)))) GC4 GC0 ltac:(lra)) as F.
        lra. }
      split.
      - apply orb_prop in HL. destruct HL as [HL|HL]; [now apply (low_side M theta T N evs cut stakes c S1 CT BT EV NB)|].
        destruct (Main false l HL) as (O1 & _ & b & -> & J). unfold true_bound. rewrite O1. intros a LA. specialize (J a LA). rewrite Sf in J.
        unfold low_means. rewrite EK0. lra.
      - destruct u as [u|]; [|exact I]. apply orb_prop in HU. destruct HU as [HU|HU]; [now apply (high_side M theta T N evs cut stakes c S1 CT BT EV NB)|].
        destruct (Main true (Some u) HU) as (_ & O2 & b & Eb & J). injection Eb as <-. unfold true_bound. rewrite O2. intros a LA. specialize (J a LA). rewrite Stt in J.
        unfold high_means. rewrite EK0. lra. }
    assert (Main : forall upward b, joint M N evs cut stakes c upward env b = true -> vectors_ok M c = true /\ exists b', b = Some b' /\
      forall a, legal_agent (game_of (skeleton M)) (pol_of (skeleton M) (ask c)) a -> forall eps, 0 < eps -> exists k0, forall k, (k0 <= k)%nat ->
        Q2R (sign upward) * (Q2R b' - true_value M theta a k [] (initial (shape M))) <= eps).
    { intros upward b J. unfold joint in J. rewrite EK0 in J. destruct (if upward then joint_high c else joint_low c) as [t|]; [|discriminate].
      destruct b as [b|]; [|discriminate]. apply andb_prop in J. destruct J as [VO J]. split; [exact VO|]. exists b. split; [reflexivity|]. intros a LA eps He.
      apply (covered_true N evs cut stakes c CT BT EV _ _ _ _ J HE). intros env' ce HE' GC. unfold cell_ok in GC. split_andb GC.
      destruct (walk_true N evs cut stakes c CT BT EV S1 NB VO c ce env' EV HE' GC GC4 _ upward a GC3 GC2 LA eps He) as (k1 & K1).
      pose proof (sure_true N evs c EV ce env' HE' GC _ GC1) as L.
      rewrite add2_at in L. unfold at2 at 2, form_at in L. cbn [fst snd sumi] in L. rewrite opp_IZR, mult_IZR, turned in L.
      pose proof (beaten ce upward b (at2 (y ce) (guess (first_walk ce) (initial (shape M)))) GC4 GC0 ltac:(lra)) as F.
      exists k1. intros k Hk. specialize (K1 k Hk). lra. }
    assert (V : vectors_ok M c = true -> steady M = true /\ agent_owns (ask c) true = false /\ agent_owns (ask c) false = false /\
      forall a, legal_agent (game_of (skeleton M)) (pol_of (skeleton M) (ask c)) a -> kind_of (shape M) = Reach_reward ->
        vanishes (fun k => missed (game_of (skeleton M)) (Play a (truth M theta)) k [] (initial (shape M)))).
    { intros VO. pose proof VO as V. unfold vectors_ok in V. split_andb V. apply negb_true_iff in V8, V7, V0. repeat split; auto. intros a LA.
      apply (vectors_at N evs cut stakes c CT BT EV S1 NB VO _ (initial_in _ (posed _ _ V6)) V0 a LA). }
    split.
    + apply orb_prop in HL. destruct HL as [HL|HL]; [now apply (low_side M theta T N evs cut stakes c S1 CT BT EV NB)|].
      destruct (Main false l HL) as (VO & b & -> & J). destruct (V VO) as (St & O1 & O2 & Van). unfold true_bound. rewrite O1. intros a LA.
      assert (F : at_least (fun k => true_value M theta a k [] (initial (shape M))) (Some b)).
      { intros eps He. destruct (J a LA eps He) as (k0 & K0). exists k0. intros k Hk. specialize (K0 k Hk). rewrite Sf in K0. lra. }
      unfold low_means. rewrite (proj2 (no_steps St)). unfold steady in St. apply andb_prop in St. destruct St as [_ K].
      destruct (kind_of (shape M)); try discriminate K; auto.
    + destruct u as [u|]; [|exact I]. apply orb_prop in HU. destruct HU as [HU|HU]; [now apply (high_side M theta T N evs cut stakes c S1 CT BT EV NB)|].
      destruct (Main true (Some u) HU) as (VO & b & Eb & J). injection Eb as <-. destruct (V VO) as (St & O1 & O2 & Van). unfold true_bound. rewrite O2. intros a LA.
      assert (F : at_most (fun k => true_value M theta a k [] (initial (shape M))) u).
      { intros eps He. destruct (J a LA eps He) as (k0 & K0). exists k0. intros k Hk. specialize (K0 k Hk). rewrite Stt in K0. lra. }
      unfold high_means. rewrite (proj2 (no_steps St)). specialize (Van a LA). unfold steady in St. apply andb_prop in St. destruct St as [_ K].
      destruct (kind_of (shape M)); try discriminate K; auto.
Qed.
End Truth.

Theorem shown_true M theta (T : instance M theta) N evs cut stakes c : shown M N evs cut stakes c = true ->
  (forall t r p, cut t r = Some p -> 0 <= poly_at theta p) -> bets_hold M theta stakes ->
  (forall g, (g < N)%nat -> Q2R (elow c g) <= poly_at theta (about (evs g)) <= Q2R (ehigh c g)) -> claim_true M theta c.
Proof.
  unfold shown, claim_true, of_runs. destruct (reader c) as [A|]; intros H CT BT EV.
  - apply andb_prop in H. destruct H as [HR H]. split; [now apply readable_true|].
    apply (shown_of_true (product_model M A) theta (product_instance M A theta HR T) N evs cut stakes c H CT BT EV).
  - split; [exact I|]. apply (shown_of_true M theta T N evs cut stakes c H CT BT EV).
Qed.

(* Every instantiation of the domain. *)
Definition accept_domain (M : model) (c : cert) : bool := shown M 0 (fun _ => Event [] []) no_cut no_stakes c.
(* BELIEVED *)
Theorem domain_sound M c : accept_domain M c = true -> forall theta, instance M theta -> claim_true M theta c.
(* END *)
Proof. intros H theta T. apply (shown_true M theta T 0 (fun _ => Event [] []) no_cut no_stakes c H); [discriminate|intros m b w p _; discriminate|]. intros g Hg. lia. Qed.
