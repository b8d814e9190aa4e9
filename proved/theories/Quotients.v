(* Models whose probabilities are quotients f/g: polynomials f·r of one parameter more, of which the domain says that g·r = 1. *)
From Coq Require Import List Bool Arith QArith Qreals Reals Lra Lia.
From Proved Require Import Game Basics Polynomial.
Import ListNotations.
Open Scope R_scope.

(* Polynomials of the parameters below n alone, and what the domain says of the reciprocals from parameter i on. *)
Definition of_first (n : nat) (p : poly) : bool := forallb (fun t : Q * mono => forallb (fun ie => (fst ie <? n)%nat) (snd t)) p.
Definition equation (g : poly) (i : nat) : poly := plus (-1) (constant 1) (times g [(1%Q, [(i, 1%nat)])]).
Fixpoint reciprocals (n i : nat) (gs : list poly) : option (list poly) :=
  match gs with
  | [] => Some []
  | g :: gs' =>
      if of_first n g then option_map (fun ds => equation g i :: plus (-1) (equation g i) [] :: ds) (reciprocals n (S i) gs') else None
  end.

Lemma equation_at theta g i : poly_at theta (equation g i) = poly_at theta g * theta i - 1.
Proof.
  unfold equation. rewrite plus_at, times_at, constant_at. cbn [poly_at mono_at pow]. rewrite Q2R_1.
  replace (Q2R (-1)) with (-1) by (unfold Q2R; simpl; lra). lra.
Qed.
Lemma reciprocals_from n gs theta : forall i ds, reciprocals n i gs = Some ds ->
  (forall d, In d ds -> 0 <= poly_at theta d) <-> (forall k g, nth_error gs k = Some g -> poly_at theta g * theta (i + k)%nat = 1).
Proof.
  induction gs as [|g gs IH]; intros i ds H; cbn [reciprocals] in H.
  - injection H as <-. split; [intros _ [|k] g E; discriminate|intros _ d []].
  - destruct (of_first n g); [|discriminate]. destruct (reciprocals n (S i) gs) as [l|] eqn:E; [|discriminate].
    cbn [option_map] in H. pose proof (equation_at theta g i) as At. set (e := equation g i) in *. clearbody e.
    assert (D : ds = e :: plus (-1) e [] :: l) by congruence. subst ds. clear H. specialize (IH (S i) l E).
    assert (Other : poly_at theta (plus (-1) e []) = - poly_at theta e).
    { rewrite plus_at. cbn [poly_at]. replace (Q2R (-1)) with (-1) by (unfold Q2R; simpl; lra). lra. }
    split.
    + intros F [|k] g' Hk; cbn [nth_error] in Hk.
      * injection Hk as <-. rewrite Nat.add_0_r. pose proof (F e (or_introl eq_refl)).
        pose proof (F _ (or_intror (or_introl eq_refl))) as Low. rewrite Other in Low. lra.
      * replace (i + S k)%nat with (S i + k)%nat by lia. apply (proj1 IH); [|exact Hk]. intros d Hd. apply F. now right; right.
    + intros F d [<-|[<-|Hd] ].
      * pose proof (F 0%nat g eq_refl) as F0. rewrite Nat.add_0_r in F0. lra.
      * pose proof (F 0%nat g eq_refl) as F0. rewrite Nat.add_0_r in F0. rewrite Other. lra.
      * apply (proj2 IH); [|exact Hd]. intros k g' Hk. replace (S i + k)%nat with (i + S k)%nat by lia. now apply (F (S k)).
Qed.
Lemma at_first n (theta theta' : nat -> R) p : of_first n p = true -> (forall i, (i < n)%nat -> theta' i = theta i) -> poly_at theta' p = poly_at theta p.
Proof.
  intros H E. induction p as [|[c m] p IH]; [reflexivity|]. cbn [of_first forallb snd] in H. apply andb_prop in H. destruct H as [Hm Hp].
  cbn [poly_at]. rewrite (IH Hp). f_equal. f_equal. clear IH Hp. induction m as [|[i e] m IH]; [reflexivity|].
  cbn [forallb fst] in Hm. apply andb_prop in Hm. destruct Hm as [Hi Hm]. apply Nat.ltb_lt in Hi. cbn [mono_at]. now rewrite (IH Hm), (E i Hi).
Qed.
Lemma all_first n gs : forall i ds, reciprocals n i gs = Some ds -> forall g, In g gs -> of_first n g = true.
Proof.
  induction gs as [|g gs IH]; intros i ds H g' Hg; [destruct Hg|]. cbn [reciprocals] in H. destruct (of_first n g) eqn:O; [|discriminate].
  destruct (reciprocals n (S i) gs) as [l|] eqn:E; [|discriminate]. destruct Hg as [<-|Hg]; [exact O|]. now apply (IH (S i) l).
Qed.

(* BELIEVED: the first says what the domain says, the second that no true point is left out at which no denominator is 0. *)
Theorem reciprocals_mean n gs ds theta : reciprocals n n gs = Some ds ->
  (forall d, In d ds -> 0 <= poly_at theta d) <-> (forall k g, nth_error gs k = Some g -> poly_at theta g * theta (n + k)%nat = 1).
(* END *)
Proof. apply reciprocals_from. Qed.
(* BELIEVED *)
Theorem reciprocals_there n gs ds theta : reciprocals n n gs = Some ds -> (forall g, In g gs -> poly_at theta g <> 0) ->
  exists theta', (forall i, (i < n)%nat -> theta' i = theta i) /\ forall d, In d ds -> 0 <= poly_at theta' d.
(* END *)
Proof.
  intros H Z. set (theta' := fun i => if (i <? n)%nat then theta i else / poly_at theta (nth (i - n) gs [])).
  assert (Same : forall i, (i < n)%nat -> theta' i = theta i).
  { intros i Hi. unfold theta'. apply Nat.ltb_lt in Hi. now rewrite Hi. }
  exists theta'. split; [exact Same|]. apply (proj2 (reciprocals_mean n gs ds theta' H)). intros k g Hk.
  pose proof (nth_error_In _ _ Hk) as Hg. rewrite (at_first n theta theta' g (all_first n gs n ds H g Hg) Same).
  unfold theta'. replace (n + k <? n)%nat with false by (symmetry; apply Nat.ltb_ge; lia).
  replace (n + k - n)%nat with k by lia. rewrite (nth_error_nth _ _ _ Hk). now apply Rinv_r, Z.
Qed.
