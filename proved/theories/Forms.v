(* Forms in several variables: a number, and a form of one degree less times each variable. Sums, products, and what they are at least
   where every variable is between 0 and its height, and their sum at most a budget. *)
From Coq Require Import List Bool Arith ZArith Reals Lra Lia.
From Proved Require Import Game Basics Learned.
Import ListNotations.
Open Scope R_scope.

(* ---------- Programs ---------- *)

(* a·p + q *)
Fixpoint zip {A} (add : Z -> A -> A -> A) (none : A) (a : Z) (l m : list A) : list A :=
  match l, m with
  | [], _ => m
  | x :: l', [] => add a x none :: zip add none a l' []
  | x :: l', y :: m' => add a x y :: zip add none a l' m'
  end.
Definition add_form {A} (add : Z -> A -> A -> A) (none : A) (a : Z) (p q : form A) : form A :=
  (Z.add (Z.mul a (fst p)) (fst q), zip add none a (snd p) (snd q)).
Definition add0 (a x y : Z) : Z := Z.add (Z.mul a x) y.
Definition add1 : Z -> affine -> affine -> affine := add_form add0 0%Z.
Definition add2 : Z -> quadratic -> quadratic -> quadratic := add_form add1 (0%Z, []).
Definition add3 : Z -> cubic -> cubic -> cubic := add_form add2 (0%Z, []).
Definition raise {A B} (f : A -> B) (p : form A) : form B := (fst p, map f (snd p)).
Definition to_affine (q : Z) : affine := (q, []).
Definition to_cubic : quadratic -> cubic := raise (raise to_affine).
Definition none (x : Z) : bool := Z.leb x 0 && Z.leb 0 x.
(* acc + a·f·p *)
Fixpoint spread (a : Z) (p : quadratic) (l : list Z) (m : list quadratic) : list quadratic :=
  match l, m with
  | [], _ => m
  | x :: l', [] => add2 (Z.mul a x) p (0%Z, []) :: spread a p l' []
  | x :: l', y :: m' => (if none x then y else add2 (Z.mul a x) p y) :: spread a p l' m'
  end.
Definition gather (a : Z) (f : affine) (p : quadratic) (acc : cubic) : cubic :=
  let acc := add3 (Z.mul a (fst f)) (to_cubic p) acc in (fst acc, spread a p (snd f) (snd acc)).
Section Least.
Variables (height : nat -> Z) (budget : Z).
Fixpoint least_each (j : nat) (l : list Z) : Z :=
  match l with [] => 0%Z | v :: l' => if Z.leb 0 v then least_each (S j) l' else Z.add (Z.mul (height j) v) (least_each (S j) l') end.
Fixpoint least_one (l : list Z) : Z :=
  match l with [] => 0%Z | v :: l' => let r := least_one l' in if Z.leb v r then v else r end.
Definition least_form {A} (least : A -> Z) (p : form A) : Z :=
  let l := map least (snd p) in let a := least_each 0 l in let b := Z.mul budget (least_one l) in Z.add (fst p) (if Z.leb a b then b else a).
Definition least1 : affine -> Z := least_form (fun x => x).
Definition least2 : quadratic -> Z := least_form least1.
Definition least3 : cubic -> Z := least_form least2.
End Least.

(* ---------- Proofs ---------- *)

Lemma none_0 x : none x = true -> IZR x = 0.
Proof. unfold none. intros H. apply andb_prop in H. destruct H as [A B]. apply Z.leb_le in A, B. now replace x with 0%Z by lia. Qed.
Section At.
Variable y : nat -> R.
Definition form_at {A} (at_ : A -> R) (p : form A) : R := IZR (fst p) + sumi (fun j x => y j * at_ x) 0 (snd p).
Definition at1 : affine -> R := form_at IZR.
Definition at2 : quadratic -> R := form_at at1.
Definition at3 : cubic -> R := form_at at2.

Section Level.
Context {A : Type} (add : Z -> A -> A -> A) (none : A) (at_ : A -> R).
Hypothesis (Add : forall a x z, at_ (add a x z) = IZR a * at_ x + at_ z) (None_ : at_ none = 0).
Lemma zip_at a l : forall m k, sumi (fun j x => y j * at_ x) k (zip add none a l m) =
  IZR a * sumi (fun j x => y j * at_ x) k l + sumi (fun j x => y j * at_ x) k m.
Proof.
  induction l as [|x l IH]; intros m k; [simpl; lra|]. destruct m as [|z m]; simpl; rewrite IH, Add; simpl; rewrite ?None_; lra.
Qed.
Lemma add_form_at a p q : form_at at_ (add_form add none a p q) = IZR a * form_at at_ p + form_at at_ q.
Proof. unfold form_at, add_form. simpl. rewrite zip_at, plus_IZR, mult_IZR. lra. Qed.
End Level.
Lemma nothing_at {A} (at_ : A -> R) : form_at at_ (0%Z, []) = 0.
Proof. unfold form_at. simpl. lra. Qed.
Lemma add1_at a p q : at1 (add1 a p q) = IZR a * at1 p + at1 q.
Proof. apply add_form_at; [|reflexivity]. intros. unfold add0. rewrite plus_IZR, mult_IZR. lra. Qed.
Lemma add2_at a p q : at2 (add2 a p q) = IZR a * at2 p + at2 q.
Proof. apply add_form_at; [exact add1_at|apply nothing_at]. Qed.
Lemma add3_at a p q : at3 (add3 a p q) = IZR a * at3 p + at3 q.
Proof. apply add_form_at; [exact add2_at|apply nothing_at]. Qed.
Lemma raise_at {A B} (f : A -> B) (at_ : A -> R) (at' : B -> R) : (forall x, at' (f x) = at_ x) ->
  forall p, form_at at' (raise f p) = form_at at_ p.
Proof.
  intros H [c l]. unfold form_at, raise. simpl. f_equal. generalize 0%nat. induction l as [|x l IH]; intros k; simpl; [reflexivity|].
  now rewrite IH, H.
Qed.
Lemma to_cubic_at p : at3 (to_cubic p) = at2 p.
Proof. apply raise_at. intros x. apply raise_at. intros q. unfold at1, form_at. simpl. lra. Qed.
Lemma spread_at a p l : forall m k, sumi (fun j x => y j * at2 x) k (spread a p l m) =
  IZR a * at2 p * sumi (fun j x => y j * IZR x) k l + sumi (fun j x => y j * at2 x) k m.
Proof.
  induction l as [|x l IH]; intros m k; [simpl; lra|]. destruct m as [|z m]; cbn [spread sumi]; rewrite IH.
  - rewrite add2_at, mult_IZR. unfold at2 at 2. rewrite nothing_at. simpl. lra.
  - destruct (none x) eqn:E; [apply none_0 in E; rewrite E|rewrite add2_at, mult_IZR]; lra.
Qed.
Lemma gather_at a f p acc : at3 (gather a f p acc) = IZR a * at1 f * at2 p + at3 acc.
Proof.
  unfold gather. set (acc' := add3 (Z.mul a (fst f)) (to_cubic p) acc).
  assert (E : at3 acc' = IZR a * IZR (fst f) * at2 p + at3 acc) by (unfold acc'; rewrite add3_at, to_cubic_at, mult_IZR; lra).
  unfold at3, form_at in *. cbn [fst snd]. rewrite spread_at. unfold at1, form_at. fold at1 in *. lra.
Qed.

Section Within.
Variables (height : nat -> Z) (budget : Z).
Hypothesis (Y : forall j, 0 <= y j <= IZR (height j)) (Sum : forall (l : list Z) k, sumi (fun j _ => y j) k l <= IZR budget).
Lemma each_at l : forall k, IZR (least_each height k l) <= sumi (fun j v => y j * IZR v) k l.
Proof.
  induction l as [|v l IH]; intros k; simpl; [lra|]. specialize (IH (S k)). specialize (Y k). destruct (Z.leb 0 v) eqn:E.
  - apply Z.leb_le, IZR_le in E. assert (0 <= y k * IZR v) by (apply Rmult_le_pos; lra). lra.
  - apply Z.leb_gt, IZR_lt in E. rewrite plus_IZR, mult_IZR. nra.
Qed.
Lemma least_one_at l : IZR (least_one l) <= 0 /\ forall v, In v l -> IZR (least_one l) <= IZR v.
Proof.
  induction l as [|v l [IH1 IH2] ]; simpl; [split; [lra|intros v []]|]. destruct (Z.leb v (least_one l)) eqn:E.
  - apply Z.leb_le, IZR_le in E. split; [lra|]. intros u [<-|Hu]; [lra|]. specialize (IH2 u Hu). lra.
  - apply Z.leb_gt, IZR_lt in E. split; [lra|]. intros u [<-|Hu]; [lra|now apply IH2].
Qed.
Lemma one_at l : IZR budget * IZR (least_one l) <= sumi (fun j v => y j * IZR v) 0 l.
Proof.
  destruct (least_one_at l) as [L0 L]. apply Rle_trans with (sumi (fun j _ => IZR (least_one l) * y j) 0 l).
  - rewrite sumi_scal. specialize (Sum l 0%nat). nra.
  - apply sumi_le. intros j v Hj. simpl. apply nth_error_In in Hj. specialize (L v Hj). specialize (Y j). nra.
Qed.
Lemma least_form_at {A} (least : A -> Z) (at_ : A -> R) : (forall x, IZR (least x) <= at_ x) ->
  forall p, IZR (least_form height budget least p) <= form_at at_ p.
Proof.
  intros H [c l]. unfold least_form, form_at. cbn [fst snd]. rewrite plus_IZR. apply Rplus_le_compat_l.
  apply Rle_trans with (sumi (fun j v => y j * IZR v) 0 (map least l)).
  - pose proof (each_at (map least l) 0) as A1. pose proof (one_at (map least l)) as B1.
    destruct (Z.leb _ _); [rewrite mult_IZR|]; assumption.
  - rewrite sumi_map. apply sumi_le. intros j x _. simpl. specialize (H x). specialize (Y j). nra.
Qed.
Lemma least1_at p : IZR (least1 height budget p) <= at1 p.
Proof. apply least_form_at. intros; lra. Qed.
Lemma least2_at p : IZR (least2 height budget p) <= at2 p.
Proof. apply least_form_at, least1_at. Qed.
Lemma least3_at p : IZR (least3 height budget p) <= at3 p.
Proof. apply least_form_at, least2_at. Qed.
End Within.
End At.
