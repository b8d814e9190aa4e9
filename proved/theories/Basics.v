(* What the checker is made of, and what one step of it proves. *)
From Coq Require Import List Bool Arith ZArith QArith Qreals Reals Lra Lia.
From Proved Require Import Game.
Import ListNotations.
Open Scope R_scope.

(* ---------- Programs ---------- *)

Fixpoint below (n : nat) (f : nat -> bool) : bool :=
  match n with O => true | S m => if f m then below m f else false end.
Fixpoint foralli {A} (f : nat -> A -> bool) (i : nat) (l : list A) : bool :=
  match l with [] => true | a :: l' => if f i a then foralli f (S i) l' else false end.
Fixpoint existsi {A} (f : nat -> A -> bool) (i : nat) (l : list A) : bool :=
  match l with [] => false | a :: l' => if f i a then true else existsi f (S i) l' end.
Fixpoint qsum {A} (f : A -> Q) (l : list A) : Q :=
  match l with [] => 0%Q | a :: l' => Qplus (f a) (qsum f l') end.
Fixpoint mixed (f : nat -> choice -> Q) (w : list Q) (i : nat) (cs : list choice) {struct cs} : Q :=
  match cs, w with
  | c :: cs', q :: w' => if Qle_bool q 0 then mixed f w' (S i) cs' else Qplus (Qmult q (f i c)) (mixed f w' (S i) cs')
  | _, _ => 0%Q
  end.
Definition Qltb (a b : Q) : bool := negb (Qle_bool b a).

(* Weak duality: for every lam, p.x >= lam + sum min(lo (x-lam), hi (x-lam)). *)
Definition low_term (x : nat -> Q) (lam : Q) (e : edge) : Q :=
  let d := Qminus (x (next e)) lam in Qmult (if Qle_bool 0 d then lo e else hi e) d.
Definition high_term (x : nat -> Q) (lam : Q) (e : edge) : Q :=
  let d := Qminus (x (next e)) lam in Qmult (if Qle_bool 0 d then hi e else lo e) d.
(* How the mean of x at a choice is bounded: by the bounds of its edges and a multiplier, or by a number that is proved
   elsewhere, see [known_low] and [known_high]. *)
Inductive support := Box (lam : Q) | Mean (b : Q).
Definition backup (g : Q) (term : (nat -> Q) -> Q -> edge -> Q) (x : nat -> Q) (sup : support) (c : choice) : Q :=
  Qplus (reward c) (Qmult g (match sup with Box lam => Qplus lam (qsum (term x lam) (edges c)) | Mean b => b end)).

(* Every distribution gives A positive probability. *)
Definition surely (A : nat -> bool) (l : list edge) : bool :=
  existsb (fun e => A (next e) && Qltb 0 (lo e)) l ||
  Qltb (qsum (fun e => if A (next e) then 0%Q else hi e) l) 1.
(* Every distribution stays within A. *)
Definition only_to (A : nat -> bool) (l : list edge) : bool :=
  forallb (fun e => A (next e) || Qle_bool (hi e) 0) l.

(* From choices to states: at least one that is taken has f, or all that are taken. *)
Definition rule_some (r : rule) (f : nat -> choice -> bool) (cs : list choice) : bool :=
  match r with
  | Any => foralli f 0 cs
  | Only i => match nth_error cs i with Some c => f i c | None => false end
  | Mix w => existsi (fun i c => Qltb 0 (nth i w 0%Q) && f i c) 0 cs
  end.
Definition usable (r : rule) (i : nat) : bool :=
  match r with Any => true | Only k => Nat.eqb i k | Mix w => Qltb 0 (nth i w 0%Q) end.
Definition rule_all (r : rule) (f : nat -> choice -> bool) (cs : list choice) : bool :=
  match r with
  | Any => foralli f 0 cs
  | Only i => match nth_error cs i with Some c => f i c | None => false end
  | Mix w => foralli (fun i c => Qle_bool (nth i w 0%Q) 0 || f i c) 0 cs
  end.
(* le y f at the choices that are taken, or at their mixture. *)
Definition rule_le (le : Q -> Q -> bool) (r : rule) (y : Q) (f : nat -> choice -> Q) (cs : list choice) : bool :=
  match r with
  | Any => foralli (fun i c => le y (f i c)) 0 cs
  | Only i => match nth_error cs i with Some c => le y (f i c) | None => false end
  | Mix w => le y (mixed f w 0 cs)
  end.
Definition geb (a b : Q) : bool := Qle_bool b a.

(* ---------- Proofs ---------- *)

Lemma below_spec n f : below n f = true -> forall s, (s < n)%nat -> f s = true.
Proof.
  induction n as [|n IH]; simpl; intros H s Hs; [lia|].
  destruct (f n) eqn:E; [|discriminate].
  destruct (Nat.eq_dec s n) as [->|]; [exact E|apply IH; [exact H|lia]].
Qed.

Lemma foralli_spec {A} (f : nat -> A -> bool) l : forall k, foralli f k l = true ->
  forall i a, nth_error l i = Some a -> f (k + i)%nat a = true.
Proof.
  induction l as [|b l IH]; intros k H i a Hi; [destruct i; discriminate|].
  simpl in H. destruct (f k b) eqn:E; [|discriminate].
  destruct i; simpl in Hi.
  - injection Hi as ->. now rewrite Nat.add_0_r.
  - replace (k + S i)%nat with (S k + i)%nat by lia. now apply IH.
Qed.

Lemma existsi_spec {A} (f : nat -> A -> bool) l : forall k, existsi f k l = true ->
  exists i a, nth_error l i = Some a /\ f (k + i)%nat a = true.
Proof.
  induction l as [|b l IH]; intros k H; simpl in H; [discriminate|].
  destruct (f k b) eqn:E.
  - exists 0%nat, b. rewrite Nat.add_0_r. now split.
  - destruct (IH (S k) H) as (i & a & Hi & Hf). exists (S i), a. split; [exact Hi|].
    now replace (k + S i)%nat with (S k + i)%nat by lia.
Qed.

Lemma sumi_le {A} (f g : nat -> A -> R) l : forall k,
  (forall i a, nth_error l i = Some a -> f (k + i)%nat a <= g (k + i)%nat a) -> sumi f k l <= sumi g k l.
Proof.
  induction l as [|b l IH]; intros k H; simpl; [lra|].
  apply Rplus_le_compat.
  - specialize (H 0%nat b eq_refl). now rewrite Nat.add_0_r in H.
  - apply IH. intros i a Hi. specialize (H (S i) a Hi). now replace (S k + i)%nat with (k + S i)%nat by lia.
Qed.

Lemma sumi_ext {A} (f g : nat -> A -> R) l k :
  (forall i a, nth_error l i = Some a -> f (k + i)%nat a = g (k + i)%nat a) -> sumi f k l = sumi g k l.
Proof. intros H. apply Rle_antisym; apply sumi_le; intros i a Hi; rewrite (H i a Hi); lra. Qed.

Lemma sumi_add {A} (f g : nat -> A -> R) l : forall k,
  sumi (fun i a => f i a + g i a) k l = sumi f k l + sumi g k l.
Proof. induction l as [|b l IH]; intros k; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma sumi_scal {A} r (f : nat -> A -> R) l : forall k,
  sumi (fun i a => r * f i a) k l = r * sumi f k l.
Proof. induction l as [|b l IH]; intros k; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma sumi_nonneg {A} (f : nat -> A -> R) l k :
  (forall i a, nth_error l i = Some a -> 0 <= f (k + i)%nat a) -> 0 <= sumi f k l.
Proof.
  intros H. replace 0 with (sumi (fun (_ : nat) (_ : A) => 0 * 0) k l); [apply sumi_le|].
  - intros i a Hi. rewrite Rmult_0_l. now apply H.
  - rewrite (sumi_scal 0 (fun _ _ => 0)). lra.
Qed.

(* One term among others that are not negative. *)
Lemma sumi_one {A} (f : nat -> A -> R) l : forall k,
  (forall i a, nth_error l i = Some a -> 0 <= f (k + i)%nat a) ->
  forall i a, nth_error l i = Some a -> f (k + i)%nat a <= sumi f k l.
Proof.
  induction l as [|b l IH]; intros k H i a Hi; [destruct i; discriminate|]. simpl.
  assert (H' : forall i a, nth_error l i = Some a -> 0 <= f (S k + i)%nat a).
  { intros i' a' Hi'. specialize (H (S i') a' Hi'). now replace (S k + i')%nat with (k + S i')%nat by lia. }
  destruct i; simpl in Hi.
  - injection Hi as ->. rewrite Nat.add_0_r. pose proof (sumi_nonneg f l (S k) H'). lra.
  - specialize (IH (S k) H' i a Hi). replace (k + S i)%nat with (S k + i)%nat by lia.
    specialize (H 0%nat b eq_refl). rewrite Nat.add_0_r in H. lra.
Qed.

Lemma sumi_map {A B} (g : A -> B) (f : nat -> B -> R) l : forall k,
  sumi f k (map g l) = sumi (fun i a => f i (g a)) k l.
Proof. induction l as [|a l IH]; intros k; simpl; [reflexivity|]. now rewrite IH. Qed.

Lemma Qle_bool_R a b : Qle_bool a b = true -> Q2R a <= Q2R b.
Proof. intros H. apply Qle_Rle. now apply Qle_bool_iff. Qed.
Lemma Qle_bool_R_false a b : Qle_bool a b = false -> Q2R b < Q2R a.
Proof.
  intros H. apply Qlt_Rlt. apply Qnot_le_lt. intros C. apply Qle_bool_iff in C. congruence.
Qed.
Lemma Qltb_R a b : Qltb a b = true -> Q2R a < Q2R b.
Proof. intros H. apply Qle_bool_R_false. now apply negb_true_iff in H. Qed.
Lemma Qltb_R_false a b : Qltb a b = false -> Q2R b <= Q2R a.
Proof. intros H. apply Qle_bool_R. now apply negb_false_iff in H. Qed.
Lemma neg_r d a b : d <= 0 -> a <= b -> b * d <= a * d.
Proof. intros. rewrite (Rmult_comm b), (Rmult_comm a). now apply Rmult_le_compat_neg_l. Qed.
Lemma Q2R_0 : Q2R 0 = 0. Proof. unfold Q2R; simpl; lra. Qed.
Lemma Q2R_1 : Q2R 1 = 1. Proof. unfold Q2R; simpl; lra. Qed.

(* ---------- Distributions over choices ---------- *)

Lemma rule_all_spec r cs f : rule_all r f cs = true ->
  forall i c, nth_error cs i = Some c -> usable r i = true -> f i c = true.
Proof.
  unfold rule_all, usable. intros H i c Hi U. destruct r as [|k|w].
  - apply (foralli_spec _ _ _ H i c Hi).
  - apply Nat.eqb_eq in U. subst k. now rewrite Hi in H.
  - pose proof (foralli_spec _ _ _ H i c Hi) as K. simpl in K. unfold Qltb in U.
    apply negb_true_iff in U. now rewrite U in K.
Qed.

Section Rules.
Variables (r : rule) (cs : list choice) (a : nat -> R).
Hypothesis (A0 : forall i, 0 <= a i) (A1 : sumi (fun i _ => a i) 0 cs = 1) (A2 : obeys r a).

Lemma unusable i : usable r i = false -> a i = 0.
Proof.
  unfold usable. destruct r as [|k|w]; simpl in A2; intros H; [discriminate| |].
  - apply A2. now apply Nat.eqb_neq.
  - rewrite A2. apply Qltb_R_false in H. rewrite Q2R_0 in H. specialize (A0 i). rewrite A2 in A0. lra.
Qed.

Lemma weigh_le (f g : nat -> choice -> R) :
  (forall i c, nth_error cs i = Some c -> usable r i = true -> f i c <= g i c) ->
  sumi (fun i c => a i * f i c) 0 cs <= sumi (fun i c => a i * g i c) 0 cs.
Proof.
  intros H. apply sumi_le. intros i c Hi. simpl. destruct (usable r i) eqn:U.
  - apply Rmult_le_compat_l; [apply A0|now apply H].
  - rewrite (unusable i U). lra.
Qed.

Lemma weigh_const y : sumi (fun i (_ : choice) => a i * y) 0 cs = y.
Proof.
  rewrite (sumi_ext _ (fun i _ => y * a i)) by (intros; simpl; lra).
  rewrite sumi_scal, A1. lra.
Qed.

Lemma mixed_R (f : nat -> choice -> Q) : forall (l : list choice) (w : list Q) k,
  (forall i, (k <= i)%nat -> a i = Q2R (nth (i - k) w 0%Q)) ->
  Q2R (mixed f w k l) = sumi (fun i c => a i * Q2R (f i c)) k l.
Proof.
  induction l as [|c l IH]; intros w k H; simpl; [now rewrite Q2R_0|].
  destruct w as [|q w].
  - assert (Z : forall i, (k <= i)%nat -> a i = 0).
    { intros i Hi. rewrite (H i Hi). rewrite <- Q2R_0. now destruct (i - k)%nat. }
    rewrite Q2R_0, (Z k) by lia. rewrite (sumi_ext _ (fun _ _ => 0 * 0)).
    + rewrite (sumi_scal 0 (fun _ _ => 0)). lra.
    + intros i c' _. rewrite (Z (S k + i)%nat) by lia. lra.
  - assert (E : a k = Q2R q). { rewrite (H k) by lia. now rewrite Nat.sub_diag. }
    assert (H' : forall i, (S k <= i)%nat -> a i = Q2R (nth (i - S k) w 0%Q)).
    { intros i Hi. rewrite (H i) by lia. now replace (i - k)%nat with (S (i - S k)) by lia. }
    destruct (Qle_bool q 0) eqn:Eq.
    + rewrite (IH w (S k) H'). apply Qle_bool_R in Eq. rewrite Q2R_0 in Eq. specialize (A0 k).
      replace (a k) with 0 by lra. lra.
    + rewrite Q2R_plus, Q2R_mult, (IH w (S k) H'), E. lra.
Qed.

Lemma rule_low y (f : nat -> choice -> Q) (v : nat -> choice -> R) :
  rule_le Qle_bool r y f cs = true ->
  (forall i c, nth_error cs i = Some c -> usable r i = true -> Q2R (f i c) <= v i c) ->
  Q2R y <= sumi (fun i c => a i * v i c) 0 cs.
Proof.
  intros H V. destruct r as [|k|w] eqn:E; rewrite <- E in *.
  1,2: rewrite <- (weigh_const (Q2R y)); apply weigh_le; intros i c Hi U; apply Rle_trans with (Q2R (f i c)); [|now apply V].
  - subst r. apply Qle_bool_R. apply (foralli_spec _ _ _ H i c Hi).
  - subst r. simpl in U. apply Nat.eqb_eq in U. subst k. simpl in H. rewrite Hi in H. now apply Qle_bool_R.
  - apply Rle_trans with (sumi (fun i c => a i * Q2R (f i c)) 0 cs); [|now apply weigh_le].
    subst r. simpl in H. apply Qle_bool_R in H. rewrite (mixed_R f cs w 0) in H; [exact H|].
    intros i _. rewrite Nat.sub_0_r. apply A2.
Qed.

Lemma rule_high y (f : nat -> choice -> Q) (v : nat -> choice -> R) :
  rule_le geb r y f cs = true ->
  (forall i c, nth_error cs i = Some c -> usable r i = true -> v i c <= Q2R (f i c)) ->
  sumi (fun i c => a i * v i c) 0 cs <= Q2R y.
Proof.
  intros H V. destruct r as [|k|w] eqn:E; rewrite <- E in *.
  1,2: rewrite <- (weigh_const (Q2R y)); apply weigh_le; intros i c Hi U; apply Rle_trans with (Q2R (f i c)); [now apply V|].
  - subst r. apply Qle_bool_R. apply (foralli_spec _ _ _ H i c Hi).
  - subst r. simpl in U. apply Nat.eqb_eq in U. subst k. simpl in H. rewrite Hi in H. now apply Qle_bool_R.
  - apply Rle_trans with (sumi (fun i c => a i * Q2R (f i c)) 0 cs); [now apply weigh_le|].
    subst r. simpl in H. apply Qle_bool_R in H. rewrite (mixed_R f cs w 0) in H; [exact H|].
    intros i _. rewrite Nat.sub_0_r. apply A2.
Qed.
End Rules.

(* How much of a gain at some choices is left in the mean. *)
Definition portion (r : rule) (f : nat -> choice -> bool) (cs : list choice) (w : R) : Prop :=
  forall a, (forall i, 0 <= a i) -> sumi (fun i _ => a i) 0 cs = 1 -> obeys r a ->
  forall (v : nat -> choice -> R) g, 0 <= g ->
    (forall i c, nth_error cs i = Some c -> usable r i = true -> 0 <= v i c) ->
    (forall i c, nth_error cs i = Some c -> usable r i = true -> f i c = true -> g <= v i c) ->
    w * g <= sumi (fun i c => a i * v i c) 0 cs.

Lemma rule_some_portion r f cs : rule_some r f cs = true -> exists w, 0 < w <= 1 /\ portion r f cs w.
Proof.
  intros H. destruct r as [|k|w].
  - exists 1. split; [lra|]. intros a A0 A1 A2 v g Hg Hv Hf. rewrite Rmult_1_l, <- (weigh_const cs a A1 g).
    apply (weigh_le Any cs a A0 A2). intros i c Hi U. apply Hf; auto. apply (foralli_spec _ _ _ H i c Hi).
  - exists 1. split; [lra|]. intros a A0 A1 A2 v g Hg Hv Hf. rewrite Rmult_1_l, <- (weigh_const cs a A1 g).
    apply (weigh_le (Only k) cs a A0 A2). intros i c Hi U. apply Hf; auto.
    simpl in U. apply Nat.eqb_eq in U. subst k. simpl in H. now rewrite Hi in H.
  - simpl in H. destruct (existsi_spec _ _ _ H) as (i & c & Hi & Hf). simpl in Hf.
    apply andb_prop in Hf. destruct Hf as [Hw Hf]. pose proof (Qltb_R _ _ Hw) as Hw'. rewrite Q2R_0 in Hw'.
    exists (Rmin 1 (Q2R (nth i w 0%Q))). split; [split; [apply Rmin_glb_lt; lra|apply Rmin_l]|].
    intros a A0 A1 A2 v g Hg Hv Hgf.
    apply Rle_trans with (a i * v i c).
    + apply Rmult_le_compat; [left; apply Rmin_glb_lt; lra|exact Hg| |now apply Hgf].
      rewrite (A2 i). apply Rmin_r.
    + apply (sumi_one (fun i c => a i * v i c) cs 0); [|exact Hi]. intros i' c' Hi'. simpl.
      destruct (usable (Mix w) i') eqn:U; [apply Rmult_le_pos; [apply A0|now apply Hv]|].
      rewrite (unusable _ a A0 A2 i' U). lra.
Qed.

(* ---------- One step of a play ---------- *)

(* Numbers that a support gives are bounds of what nature does after these histories. *)
Definition known_low (G : game) (n : hist -> nat -> nat -> nat -> R) (these : hist -> Prop) (x : nat -> Q) (sup : nat -> nat -> support) : Prop :=
  forall h s i c b, these h -> (s < size G)%nat -> ends G (length h) s = None ->
    nth_error (choices_of G (length h) s) i = Some c -> sup s i = Mean b ->
    Q2R b <= sumi (fun j e => n h s i j * Q2R (x (next e))) 0 (edges c).
Definition known_high (G : game) (n : hist -> nat -> nat -> nat -> R) (these : hist -> Prop) (x : nat -> Q) (sup : nat -> nat -> support) : Prop :=
  forall h s i c b, these h -> (s < size G)%nat -> ends G (length h) s = None ->
    nth_error (choices_of G (length h) s) i = Some c -> sup s i = Mean b ->
    sumi (fun j e => n h s i j * Q2R (x (next e))) 0 (edges c) <= Q2R b.

Section Play.
Variables (G : game) (pol : nat -> nat -> rule) (P : play).
Hypothesis (LA : legal_agent G pol (agent P)) (LN : legal_nature G (nature P)).
Notation uses h s i := (usable (pol (length h) s) i = true).
Notation has h s i c := (nth_error (choices_of G (length h) s) i = Some c).

Lemma mean_le h s r r' f g : (s < size G)%nat -> ends G (length h) s = None ->
  (forall i c, has h s i c -> uses h s i ->
     r c + sumi (fun j e => nature P h s i j * f i (next e)) 0 (edges c)
     <= r' c + sumi (fun j e => nature P h s i j * g i (next e)) 0 (edges c)) ->
  mean G P h s r f <= mean G P h s r' g.
Proof.
  intros Hs Hb H. destruct (LA h s Hs Hb) as (A0 & _ & A2). unfold mean.
  apply (weigh_le (pol (length h) s) _ (agent P h s) A0 A2
    (fun i c => r c + sumi (fun j e => nature P h s i j * f i (next e)) 0 (edges c))
    (fun i c => r' c + sumi (fun j e => nature P h s i j * g i (next e)) 0 (edges c))). exact H.
Qed.

Lemma nature_pos h s i c j e : (s < size G)%nat -> ends G (length h) s = None -> has h s i c ->
  nth_error (edges c) j = Some e -> 0 <= nature P h s i j /\ Q2R (lo e) <= nature P h s i j <= Q2R (hi e).
Proof. intros Hs Hb Hi Hj. now apply (LN h s Hs Hb i c Hi). Qed.

(* Where nature does not go, nothing is asked. *)
Lemma mean_mono h s r f g : (s < size G)%nat -> ends G (length h) s = None ->
  (forall i c j e, has h s i c -> uses h s i -> nth_error (edges c) j = Some e ->
     nature P h s i j = 0 \/ f i (next e) <= g i (next e)) ->
  mean G P h s r f <= mean G P h s r g.
Proof.
  intros Hs Hb H. apply mean_le; auto. intros i c Hi Ho.
  apply Rplus_le_compat_l. apply sumi_le. intros j e Hj. simpl.
  destruct (H i c j e Hi Ho Hj) as [->|K]; [lra|].
  apply Rmult_le_compat_l; [apply (nature_pos h s i c j e Hs Hb Hi Hj)|exact K].
Qed.

Lemma mean_const h s a : (s < size G)%nat -> ends G (length h) s = None ->
  mean G P h s (fun _ => a) (fun _ _ => 0) = a.
Proof.
  intros Hs Hb. destruct (LA h s Hs Hb) as (_ & H1 & _). unfold mean.
  rewrite (sumi_ext _ (fun i _ => agent P h s i * a)); [now apply weigh_const|].
  intros i c _. simpl. rewrite (sumi_ext _ (fun j _ => 0 * nature P h s i j)) by (intros; simpl; lra).
  rewrite sumi_scal. lra.
Qed.

Lemma zero_tail h s i c : sumi (fun j (_ : edge) => nature P h s i j * 0) 0 (edges c) = 0.
Proof. rewrite (sumi_ext _ (fun j _ => 0 * nature P h s i j)) by (intros; simpl; lra). rewrite sumi_scal. lra. Qed.

Lemma mean_ge h s r f a : (s < size G)%nat -> ends G (length h) s = None ->
  (forall i c, has h s i c -> uses h s i ->
     a <= r c + sumi (fun j e => nature P h s i j * f i (next e)) 0 (edges c)) ->
  a <= mean G P h s r f.
Proof.
  intros Hs Hb H. rewrite <- (mean_const h s a Hs Hb) at 1. apply mean_le; auto. intros i c Hi Ho.
  rewrite zero_tail. specialize (H i c Hi Ho). lra.
Qed.

Lemma mean_at_most h s r f a : (s < size G)%nat -> ends G (length h) s = None ->
  (forall i c, has h s i c -> uses h s i ->
     r c + sumi (fun j e => nature P h s i j * f i (next e)) 0 (edges c) <= a) ->
  mean G P h s r f <= a.
Proof.
  intros Hs Hb H. rewrite <- (mean_const h s a Hs Hb). apply mean_le; auto. intros i c Hi Ho.
  rewrite zero_tail. specialize (H i c Hi Ho). lra.
Qed.

Lemma mean_lin h s r r' f g b :
  mean G P h s (fun c => r c + b * r' c) (fun i t => f i t + b * g i t) =
  mean G P h s r f + b * mean G P h s r' g.
Proof.
  unfold mean. rewrite <- sumi_scal, <- sumi_add. apply sumi_ext. intros i c _. simpl.
  rewrite (sumi_ext (fun j e => nature P h s i j * (f i (next e) + b * g i (next e)))
             (fun j e => nature P h s i j * f i (next e) + b * (nature P h s i j * g i (next e))))
    by (intros; simpl; lra).
  rewrite sumi_add, sumi_scal. lra.
Qed.

Lemma mean_ext h s r r' f g : (forall c, r c = r' c) -> (forall i t, f i t = g i t) ->
  mean G P h s r f = mean G P h s r' g.
Proof.
  intros Hr Hf. unfold mean. apply sumi_ext. intros i c _. simpl. rewrite Hr. f_equal. f_equal.
  apply sumi_ext. intros j e _. simpl. now rewrite Hf.
Qed.

(* Weak duality. *)
Lemma dual_low x lam l : forall k (p : nat -> R),
  (forall j e, nth_error l j = Some e -> Q2R (lo e) <= p (k + j)%nat <= Q2R (hi e)) ->
  Q2R (qsum (low_term x lam) l) <= sumi (fun j e => p j * (Q2R (x (next e)) - Q2R lam)) k l.
Proof.
  induction l as [|e l IH]; intros k p H; simpl; [rewrite Q2R_0; lra|].
  rewrite Q2R_plus. apply Rplus_le_compat.
  - specialize (H 0%nat e eq_refl). rewrite Nat.add_0_r in H. unfold low_term.
    rewrite Q2R_mult. rewrite <- Q2R_minus.
    destruct (Qle_bool 0 (x (next e) - lam)) eqn:E.
    + apply Qle_bool_R in E. rewrite Q2R_0 in E. apply Rmult_le_compat_r; [exact E|apply H].
    + apply Qle_bool_R_false in E. rewrite Q2R_0 in E. apply neg_r; [lra|apply H].
  - apply IH. intros j e' Hj. specialize (H (S j) e' Hj). now replace (S k + j)%nat with (k + S j)%nat by lia.
Qed.

Lemma dual_high x lam l : forall k (p : nat -> R),
  (forall j e, nth_error l j = Some e -> Q2R (lo e) <= p (k + j)%nat <= Q2R (hi e)) ->
  sumi (fun j e => p j * (Q2R (x (next e)) - Q2R lam)) k l <= Q2R (qsum (high_term x lam) l).
Proof.
  induction l as [|e l IH]; intros k p H; simpl; [rewrite Q2R_0; lra|].
  rewrite Q2R_plus. apply Rplus_le_compat.
  - specialize (H 0%nat e eq_refl). rewrite Nat.add_0_r in H. unfold high_term.
    rewrite Q2R_mult. rewrite <- Q2R_minus.
    destruct (Qle_bool 0 (x (next e) - lam)) eqn:E.
    + apply Qle_bool_R in E. rewrite Q2R_0 in E. apply Rmult_le_compat_r; [exact E|apply H].
    + apply Qle_bool_R_false in E. rewrite Q2R_0 in E. apply neg_r; [lra|apply H].
  - apply IH. intros j e' Hj. specialize (H (S j) e' Hj). now replace (S k + j)%nat with (k + S j)%nat by lia.
Qed.

Lemma shift h s i c x lam : (s < size G)%nat -> ends G (length h) s = None -> has h s i c ->
  sumi (fun j e => nature P h s i j * Q2R (x (next e))) 0 (edges c) =
  Q2R lam + sumi (fun j e => nature P h s i j * (Q2R (x (next e)) - Q2R lam)) 0 (edges c).
Proof.
  intros Hs Hb Hi. destruct (LN h s Hs Hb i c Hi) as [_ H1].
  rewrite (sumi_ext (fun j e => nature P h s i j * (Q2R (x (next e)) - Q2R lam))
             (fun j e => nature P h s i j * Q2R (x (next e)) + (- Q2R lam) * nature P h s i j)).
  - rewrite sumi_add, (sumi_scal _ (fun j _ => nature P h s i j)), H1. lra.
  - intros; simpl; lra.
Qed.

Hypothesis D0 : 0 <= Q2R (discount G).

Lemma scale h s i c (f : nat -> R) g :
  sumi (fun j e => nature P h s i j * (g * f (next e))) 0 (edges c) =
  g * sumi (fun j e => nature P h s i j * f (next e)) 0 (edges c).
Proof.
  rewrite (sumi_ext _ (fun j e => g * (nature P h s i j * f (next e)))) by (intros; simpl; lra).
  apply sumi_scal.
Qed.

Variable these : hist -> Prop.

Lemma backup_low h s i c x sup : these h -> known_low G (nature P) these x sup ->
  (s < size G)%nat -> ends G (length h) s = None -> has h s i c ->
  Q2R (backup (discount G) low_term x (sup s i) c) <=
  Q2R (reward c) + sumi (fun j e => nature P h s i j * (Q2R (discount G) * Q2R (x (next e)))) 0 (edges c).
Proof.
  intros Hh Kn Hs Hb Hi. unfold backup. rewrite Q2R_plus, Q2R_mult, (scale h s i c (fun t => Q2R (x t))).
  apply Rplus_le_compat_l, Rmult_le_compat_l; [exact D0|].
  destruct (sup s i) as [lam|b] eqn:E; [|now apply (Kn h s i c b)].
  rewrite Q2R_plus, (shift h s i c x lam) by assumption. apply Rplus_le_compat_l. apply dual_low.
  intros j e Hj. apply (nature_pos h s i c j e Hs Hb Hi Hj).
Qed.

Lemma backup_high h s i c x sup : these h -> known_high G (nature P) these x sup ->
  (s < size G)%nat -> ends G (length h) s = None -> has h s i c ->
  Q2R (reward c) + sumi (fun j e => nature P h s i j * (Q2R (discount G) * Q2R (x (next e)))) 0 (edges c)
  <= Q2R (backup (discount G) high_term x (sup s i) c).
Proof.
  intros Hh Kn Hs Hb Hi. unfold backup. rewrite Q2R_plus, Q2R_mult, (scale h s i c (fun t => Q2R (x t))).
  apply Rplus_le_compat_l, Rmult_le_compat_l; [exact D0|].
  destruct (sup s i) as [lam|b] eqn:E; [|now apply (Kn h s i c b)].
  rewrite Q2R_plus, (shift h s i c x lam) by assumption. apply Rplus_le_compat_l. apply dual_high.
  intros j e Hj. apply (nature_pos h s i c j e Hs Hb Hi Hj).
Qed.

(* The checker's inequality at a state, in terms of means. *)
Lemma step_low h s y x sup : these h -> known_low G (nature P) these x sup ->
  (s < size G)%nat -> ends G (length h) s = None ->
  rule_le Qle_bool (pol (length h) s) y (fun i c => backup (discount G) low_term x (sup s i) c)
    (choices_of G (length h) s) = true ->
  Q2R y <= mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (discount G) * Q2R (x t)).
Proof.
  intros Hh Kn Hs Hb H. destruct (LA h s Hs Hb) as (A0 & A1 & A2). unfold mean.
  apply (rule_low (pol (length h) s) _ (agent P h s) A0 A1 A2 y _
    (fun i c => Q2R (reward c) + sumi (fun j e => nature P h s i j * (Q2R (discount G) * Q2R (x (next e)))) 0 (edges c)) H).
  intros i c Hi _. now apply backup_low.
Qed.
Lemma step_high h s y x sup : these h -> known_high G (nature P) these x sup ->
  (s < size G)%nat -> ends G (length h) s = None ->
  rule_le geb (pol (length h) s) y (fun i c => backup (discount G) high_term x (sup s i) c)
    (choices_of G (length h) s) = true ->
  mean G P h s (fun c => Q2R (reward c)) (fun _ t => Q2R (discount G) * Q2R (x t)) <= Q2R y.
Proof.
  intros Hh Kn Hs Hb H. destruct (LA h s Hs Hb) as (A0 & A1 & A2). unfold mean.
  apply (rule_high (pol (length h) s) _ (agent P h s) A0 A1 A2 y _
    (fun i c => Q2R (reward c) + sumi (fun j e => nature P h s i j * (Q2R (discount G) * Q2R (x (next e)))) 0 (edges c)) H).
  intros i c Hi _. now apply backup_high.
Qed.

(* Who stays within A is in A, or nature does not go there. *)
Lemma only_to_spec A h s i c j e : only_to A (edges c) = true ->
  (s < size G)%nat -> ends G (length h) s = None -> has h s i c -> nth_error (edges c) j = Some e ->
  nature P h s i j = 0 \/ A (next e) = true.
Proof.
  intros H Hs Hb Hi Hj. unfold only_to in H. rewrite forallb_forall in H.
  specialize (H e (nth_error_In _ _ Hj)). apply orb_prop in H. destruct H as [H|H]; [now right|left].
  apply Qle_bool_R in H. rewrite Q2R_0 in H. pose proof (nature_pos h s i c j e Hs Hb Hi Hj). lra.
Qed.
End Play.

(* ---------- Progress ---------- *)

(* The least probability of A, whatever the distribution. *)
Lemma surely_gain (A : nat -> bool) l : surely A l = true ->
  exists a, 0 < a /\ forall p : nat -> R,
    (forall j e, nth_error l j = Some e -> 0 <= p j /\ Q2R (lo e) <= p j <= Q2R (hi e)) ->
    sumi (fun j _ => p j) 0 l = 1 ->
    a <= sumi (fun j e => p j * (if A (next e) then 1 else 0)) 0 l.
Proof.
  unfold surely. intros H. apply orb_prop in H. destruct H as [H|H].
  - apply existsb_exists in H. destruct H as (e & He & H). apply andb_prop in H. destruct H as [HA Hl].
    apply Qltb_R in Hl. rewrite Q2R_0 in Hl. exists (Q2R (lo e)). split; [exact Hl|]. intros p Hp _.
    apply In_nth_error in He. destruct He as (j & Hj).
    apply Rle_trans with (p j * (if A (next e) then 1 else 0)); [rewrite HA; specialize (Hp j e Hj); lra|].
    apply (sumi_one (fun j e => p j * (if A (next e) then 1 else 0)) l 0); [|exact Hj].
    intros i e' Hi. simpl. specialize (Hp i e' Hi). destruct (A (next e')); nra.
  - apply Qltb_R in H. rewrite Q2R_1 in H.
    exists (1 - Q2R (qsum (fun e => if A (next e) then 0%Q else hi e) l)). split; [lra|]. intros p Hp H1.
    assert (K : forall l' k,
      (forall j e, nth_error l' j = Some e -> 0 <= p (k + j)%nat /\ Q2R (lo e) <= p (k + j)%nat <= Q2R (hi e)) ->
      sumi (fun j _ => p j) k l' - Q2R (qsum (fun e => if A (next e) then 0%Q else hi e) l')
      <= sumi (fun j e => p j * (if A (next e) then 1 else 0)) k l').
    { induction l' as [|b l' IH]; intros k Hq; simpl; [rewrite Q2R_0; lra|]. rewrite Q2R_plus.
      assert (Hb : 0 <= p k /\ Q2R (lo b) <= p k <= Q2R (hi b)).
      { specialize (Hq 0%nat b eq_refl). now rewrite Nat.add_0_r in Hq. }
      assert (Hq' : forall j e, nth_error l' j = Some e ->
        0 <= p (S k + j)%nat /\ Q2R (lo e) <= p (S k + j)%nat <= Q2R (hi e)).
      { intros j e' Hj. replace (S k + j)%nat with (k + S j)%nat by lia. now apply Hq. }
      specialize (IH (S k) Hq'). destruct (A (next b)); rewrite ?Q2R_0; lra. }
    specialize (K l 0%nat Hp). lra.
Qed.

(* One number for all of a list. *)
Lemma common {A} (l : list A) (K : A -> Prop) (Pr : A -> R -> Prop) :
  (forall a r r', Pr a r -> 0 < r' <= r -> Pr a r') ->
  (forall a, In a l -> K a -> exists r, 0 < r /\ Pr a r) ->
  (forall a, {K a} + {~ K a}) ->
  exists r, 0 < r <= 1 /\ forall a, In a l -> K a -> Pr a r.
Proof.
  intros Hm H D. induction l as [|a l IH].
  - exists 1. split; [lra|]. intros b [].
  - destruct IH as (r & Hr & HP); [intros; apply H; simpl; auto|].
    destruct (D a) as [Ka|Na].
    + destruct (H a (or_introl eq_refl) Ka) as (q & Hq & HPq).
      exists (Rmin r q). assert (0 < Rmin r q) by (apply Rmin_glb_lt; lra).
      pose proof (Rmin_l r q). pose proof (Rmin_r r q). split; [lra|].
      intros b [<-|Hb] Kb; [now apply (Hm a q)|]. apply (Hm b r); auto.
    + exists r. split; [exact Hr|]. intros b [<-|Hb] Kb; [contradiction|auto].
Qed.

Lemma bounded (f : nat -> R) n : exists B, 0 <= B /\ forall s, (s < n)%nat -> f s <= B.
Proof.
  induction n as [|n (B & H0 & HB)]; [exists 0; split; [lra|intros; lia]|].
  exists (Rmax B (f n)). pose proof (Rmax_l B (f n)). pose proof (Rmax_r B (f n)). split; [lra|].
  intros s Hs. destruct (Nat.eq_dec s n) as [->|]; [lra|]. specialize (HB s ltac:(lia)). lra.
Qed.

Lemma bounded_nat (rank : nat -> nat) n : exists m, forall s, (s < n)%nat -> (rank s < m)%nat.
Proof.
  induction n as [|n (m & H)]; [exists 0%nat; intros; lia|].
  exists (Nat.max m (S (rank n))). intros s Hs. destruct (Nat.eq_dec s n) as [->|]; [lia|].
  specialize (H s ltac:(lia)). lia.
Qed.

Lemma INR_above r : exists n, r < INR n.
Proof.
  destruct (archimed r) as [H _]. exists (Z.to_nat (up r)). destruct (Z_le_dec 0 (up r)) as [Hz|Hz].
  - rewrite INR_IZR_INZ, Z2Nat.id by exact Hz. lra.
  - assert (IZR (up r) < 0) by (apply IZR_lt; lia). pose proof (pos_INR (Z.to_nat (up r))). lra.
Qed.
