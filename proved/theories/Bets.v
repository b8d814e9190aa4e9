(* Rows of slabs: bets that were placed by a rule, what they won, and the half-spaces where nobody won too much. *)
From Coq Require Import List Bool Arith ZArith QArith Qreals Reals Lra Lia FunctionalExtensionality.
From Proved Require Import Game Problem Basics Polynomial Value Sound Ville Model Krichevsky Logarithm Learned Coupled Likelihood Pool.
From Proved Require Slab.
Import ListNotations.
Open Scope R_scope.

(* BELIEVED: fixed beforehand. Outcomes are met as classes, those of a choice are the members of its kind in their order. [stake] side bettor batch:
   on every class, in units of 2^-50, from what was met of classes in batches before; every side has the same bettors, with weights. *)
Record scheme := Scheme {
  kinds : nat; kind_of_choice : nat * nat -> nat; members : nat -> list nat; classes : nat; of_class : nat -> nat;
  parties : nat; alpha : Q; weights : list Q; stake : nat -> nat -> nat -> (nat -> nat -> nat) -> nat -> Z }.
Definition class_of (g : scheme) (c : nat * nat) (o : nat) : option nat := nth_error (members g (kind_of_choice g c)) o.
(* END *)

(* ---------- The checker ---------- *)

Definition stake_unit : Q := Qinv (inject_Z (Z.pow 2 50)).
Definition amount (z : Z) : Q := Qmult (inject_Z z) stake_unit.
Definition same_z (y z : Z) : bool := Z.leb y z && Z.leb z y.
Definition zeros (z : Z) : bool := same_z z 0.
Definition placement := (list nat * (nat -> Z))%type. (* in these batches, this on every class *)
Record entry := Entry { certain : bool; often : nat; stands : Q }.

Section Checker.
Variables (M : model) (E : nat) (g : scheme).

Fixpoint fits (l : list nat) (es : list ledge) : bool :=
  match l, es with
  | [], [] => true
  | k :: l', e :: es' => (k <? classes g)%nat && Nat.eqb (of_class g k) (expr e) && fits l' es'
  | _, _ => false
  end.
Definition kinds_ok : bool := below (states (shape M)) (fun s => foralli (fun i c =>
  (kind_of_choice g (s, i) <? kinds g)%nat && fits (members g (kind_of_choice g (s, i))) (outcomes c)) 0 (table M s)).
Definition classes_ok : bool := below (classes g) (fun k => (of_class g k <? E)%nat) &&
  below (kinds g) (fun q => forallb (fun k => (k <? classes g)%nat) (members g q)).
Fixpoint zsum (z : nat -> Z) (l : list nat) : Z := match l with [] => 0%Z | k :: l' => Z.add (z k) (zsum z l') end.
Definition fair (z : nat -> Z) : bool := below (kinds g) (fun q => Z.leb (zsum z (members g q)) 0).
Fixpoint weights_ok (left : Q) (l : list Q) : bool :=
  match l with [] => Qle_bool 0 left | w :: l' => Qle_bool 0 w && weights_ok (Qminus left w) l' end.

Variables (B : nat) (mk : nat -> nat -> nat). (* batches; how often classes were met *)
Definition calls (side j : nat) : list (nat * (nat -> Z)) := map (fun b => (b, stake g side j b (earlier b mk))) (seq 0 B).
Fixpoint places (l : list (nat * (nat -> Z))) : list placement :=
  match l with
  | [] => []
  | (b, z) :: l' => match places l' with
                    | (bs, y) :: ps => if below (classes g) (fun k => same_z (z k) (y k)) then (b :: bs, y) :: ps else ([b], z) :: (bs, y) :: ps
                    | [] => [([b], z)]
                    end
  end.
Fixpoint sumn (f : nat -> nat) (l : list nat) : nat := match l with [] => 0 | b :: l' => (f b + sumn f l')%nat end.
(* What every bettor of a side did, where all of it was fair. *)
Definition bettors (side : nat) : option (list (list placement)) :=
  let all := map (calls side) (seq 0 (length (weights g))) in
  if forallb (forallb (fun c => fair (snd c))) all then Some (map places all) else None.
Fixpoint all_sides (n : nat) : option (list (list (list placement))) :=
  match n with
  | O => Some []
  | S n' => match all_sides n', bettors n' with Some l, Some p => Some (l ++ [p]) | _, _ => None end
  end.
Definition of_expressions : list (list nat) := map (fun e => filter (fun k => Nat.eqb (of_class g k) e) (seq 0 (classes g))) (seq 0 E).

Section Row.
Variables (c : cert) (m : nat) (box : nat -> bound) (w : wager) (ws : list (nat * Z)).
Definition known_low (k : nat) : Q := let e := of_class g k in if (e <? m)%nat && Nat.eqb (of_expr (box e)) e then blo (box e) else 0%Q.
Definition stands_ok (z : nat -> Z) (k : nat) : bool := Z.leb 0 (z k) || Qle_bool (Qmult 2 (Qopp (amount (z k)))) (known_low k).
Definition surely_in (j p : nat) (z : nat -> Z) : bool :=
  below (kinds g) (fun q => forallb (fun k => negb (sure w j p k)) (members g q) || forallb (stands_ok z) (members g q)) &&
  below (classes g) (fun k => negb (sure w j p k) || stands_ok z k).
(* [j]: of the bettor, [p]: of the placement; how often a class counts. *)
Fixpoint entries_of (k j p n : nat) (l : list placement) : list entry :=
  match l with
  | [] => []
  | (bs, z) :: l' => let rest := entries_of k j (S p) n l' in
                     if zeros (z k) then rest else
                     let t := (n * sumn (fun b => mk b k) bs)%nat in if Nat.eqb t 0 then rest else Entry (sure w j p k) t (amount (z k)) :: rest
  end.
Fixpoint entries (k j : nat) (ns : list nat) (l : list (list placement)) : list entry :=
  match ns, l with n :: ns', ps :: l' => (if Nat.eqb n 0 then [] else entries_of k j 0 n ps) ++ entries k (S j) ns' l' | _, _ => [] end.
Fixpoint surely (j : nat) (ns : list nat) (l : list (list placement)) : bool :=
  match ns, l with
  | n :: ns', ps :: l' => (Nat.eqb n 0 || foralli (fun p x => surely_in j p (snd x)) 0 ps) && surely (S j) ns' l'
  | _, _ => true
  end.
Definition down (x : Q) : Q := let y := trim w x in if Qle_bool y x then y else x.
Definition up (x : Q) : Q := Qopp (down (Qopp x)).
Fixpoint qsum_of (f : entry -> Q) (l : list entry) : Q := match l with [] => 0%Q | x :: l' => Qplus (Qmult (qnat (often x)) (f x)) (qsum_of f l') end.
(* The sum of logarithms, in their units. *)
Fixpoint logs_of (f : entry -> Q) (l : list entry) : option Z :=
  match l with [] => Some 0%Z | x :: l' => match logs c (often x) (f x), logs_of f l' with Some y, Some z => Some (Z.add y z) | _, _ => None end end.
Definition is_gain (x : entry) : bool := Qltb 0 (stands x).
Definition inverse (q d : Q) : Q := Qmult q (Qinv d).
Definition off_log (kappa x : Q) : option Q := (* kappa log (1/x) *)
  if Qeq_bool kappa 0 then Some 0%Q else let y := lg c (Qinv x) in if log_ok (Qinv x) y then Some (Qmult kappa (inject_Z y)) else None.
Definition units : Q := inject_Z unit_log.

(* What the sum of entries' logarithms, less kappa log f, is above the line of slope [s]: in units. *)
Definition line (e : nat) (xs : list entry) (kappa : Q) : option Q :=
  let b := box e in let l := blo b in let u := bhi b in let q := near w e in let s := tilt w e in
  if negb ((e <? m)%nat && Nat.eqb (of_expr b) e && Qltb 0 q && Qle_bool l q && Qle_bool q u && Qle_bool 0 kappa) then None else
  let flat := filter (fun x => negb (certain x) && negb (is_gain x)) xs in
  let gains := filter (fun x => certain x && is_gain x) xs in
  let losses := filter (fun x => certain x && negb (is_gain x)) xs in
  let gain_slope x := inverse (stands x) (Qmult q (Qplus q (stands x))) in
  let dlo := qsum_of (fun x => down (gain_slope x)) gains in let dhi := qsum_of (fun x => up (gain_slope x)) gains in
  let width := Qminus u l in
  let err lo hi := let a := Qminus hi s in let b := Qminus s lo in Qmult (if Qle_bool a b then b else a) width in
  match logs_of (fun x => Qplus 1 (inverse (stands x) (if Qle_bool l (Qmult 2 (Qopp (stands x))) then Qmult 2 (Qopp (stands x)) else l))) flat,
        logs_of (fun x => Qplus 1 (inverse (stands x) q)) gains with
  | Some base, Some top =>
      let base := Qplus (inject_Z base) (inject_Z top) in
      match losses with
      | [] => match off_log kappa q with
              | Some y => let k := inverse kappa q in
                          Some (Qminus (Qplus base y) (Qmult units (Qplus (Qmult s q) (err (Qminus (Qopp dhi) k) (Qminus (Qopp dlo) k)))))
              | None => None
              end
      | _ =>
          let p := touch w e in
          if negb (Qltb 0 l && Qle_bool l p && Qle_bool p u && forallb (fun x => Qltb (Qopp (stands x)) l) losses) then None else
          let loss_slope x := let b := Qopp (stands x) in inverse b (Qmult p (Qminus p b)) in
          let k := inverse kappa p in
          let slo := Qminus (qsum_of (fun x => down (loss_slope x)) losses) k in
          let shi := Qminus (qsum_of (fun x => up (loss_slope x)) losses) k in
          let miss := if chord w e then if Qeq_bool p u && Qle_bool shi (Qplus s dlo) then Some 0%Q else None
                      else let bend x := let b := Qopp (stands x) in
                             inverse (Qmult b (Qminus (Qmult 2 p) b)) (Qmult (Qminus p b) (Qminus p b)) in
                           if Qle_bool (qsum_of (fun x => up (bend x)) losses) kappa then Some (err (Qminus slo dhi) (Qminus shi dlo)) else None in
          let at_ x := match logs_of (fun t => Qplus 1 (inverse (stands t) x)) losses, off_log kappa x with
                       | Some y, Some z =>
                           let d := Qminus q x in
                           Some (Qplus (Qplus (inject_Z y) z) (Qmult units (Qminus (if Qle_bool 0 d then Qmult dlo d else Qmult dhi d) (Qmult s x))))
                       | _, _ => None
                       end in
          match miss, at_ l, at_ p with
          | Some miss, Some y, Some z => Some (Qminus (Qplus base (if Qle_bool y z then y else z)) (Qmult units miss))
          | _, _, _ => None
          end
      end
  | _, _ => None
  end.
Fixpoint weight_of_log (e : nat) (l : list (nat * Z)) : Z :=
  match l with [] => 0%Z | (e', k) :: l' => if Nat.eqb e e' then Z.add k (weight_of_log e l') else weight_of_log e l' end.
Fixpoint lines (e : nat) (ks : list (list nat)) (ps : list (list placement)) : option (Q * poly) :=
  match ks with
  | [] => Some (0%Q, [])
  | l :: ks' =>
      match lines (S e) ks' ps with
      | None => None
      | Some (h, p) =>
          let xs := flat_map (fun k => entries k 0 (portions w) ps) l in
          let kappa := if Qeq_bool (guard w) 0 then 0%Q else Qmult (guard w) (inject_Z (weight_of_log e ws)) in
          if (match xs with [] => true | _ => false end) && Qeq_bool kappa 0 then Some (h, p)
          else match line e xs kappa with Some y => Some (Qplus y h, plus (tilt w e) (polys M e) p) | None => None end
      end
  end.
Fixpoint costs (all : nat) (ns : list nat) (l : list Q) : option Z :=
  match ns, l with
  | n :: ns', v :: l' => match logs c n (Qmult v (Qmult (qnat all) (Qinv (qnat n)))), costs all ns' l' with Some y, Some z => Some (Z.add y z) | _, _ => None end
  | _, _ => Some 0%Z
  end.
Definition wagered (thr : Z) (ps : list (list placement)) (ks : list (list nat)) : option poly :=
  let all := fold_right Nat.add 0%nat (portions w) in
  if negb ((0 <? all)%nat && (length (portions w) <=? length (weights g))%nat && Qle_bool 0 (guard w) &&
           forallb (fun x => (fst x <? E)%nat) ws && surely 0 (portions w) ps) then None else
  match logs c all (alpha g), costs all (portions w) (weights g), lines 0 ks ps with
  | Some x, Some y, Some (h, p) =>
      if Qle_bool (Qopp (Qplus (Qplus (inject_Z (Z.add x y)) (Qmult (guard w) (inject_Z thr))) h)) (Qmult units (most w))
      then Some (plus (-1) p (constant (most w))) else None
  | _, _, _ => None
  end.
End Row.
(* Prepared once: rows of all sides. *)
Definition bets_say (c : cert) (known : Z * list (nat * Z)) (all : list (list (list placement))) (ks : list (list nat))
    (m : nat) (box : nat -> bound) (w : wager) : option poly :=
  match nth_error all (of_side w) with Some ps => wagered c m box w (snd known) (fst known) ps ks | None => None end.
Definition prepared (d3 : Q) : option (list (list (list placement)) * list (list nat)) :=
  if Nat.eqb (parties g) 0 then Some ([], [])
  else if kinds_ok && classes_ok && weights_ok 1 (weights g) && Qltb 0 (alpha g) && Qle_bool (Qmult (qnat (parties g)) (alpha g)) d3
       then option_map (fun all => (all, of_expressions)) (all_sides (parties g)) else None.
End Checker.

(* Of what was seen: intervals of events at d1 (beta-binomial), rows of the likelihood at d2, and rows of bets at d3. *)
Definition accept (M : model) (N : nat) (evs : nat -> event) (cnt : nat -> nat -> nat -> nat) (d1 : Q)
    (E : nat) (prior : list (nat * Q)) (predict : nat -> (nat -> nat -> nat) -> list Q)
    (B : nat) (mt : nat -> nat -> nat) (d2 : Q) (g : scheme) (mk : nat -> nat -> nat) (d3 : Q) (c : cert) : bool :=
  Qltb 0 (level c) && Qle_bool (Qmult (qnat N) (level c)) d1 && below N (fun g => event_ok M (evs g)) &&
  below N (event_proved evs c cnt) &&
  match likely M E prior predict c B mt d2, prepared M E g B mk d3 with
  | Some known, Some (all, ks) => shown M N evs (tangent M c known) (bets_say M E g mk c known all ks) c
  | _, _ => false
  end.

(* ---------- Lines ---------- *)

Notation U := (IZR unit_log).
Lemma inverse_R q d : Q2R d <> 0 -> Q2R (inverse q d) = Q2R q / Q2R d.
Proof. intros H. unfold inverse. rewrite Q2R_mult, Q2R_inv; [reflexivity|]. intros Z. apply Qeq_eqR in Z. rewrite Q2R_0 in Z. contradiction. Qed.
Lemma units_R : Q2R units = U. Proof. apply inject_R. Qed.
Lemma down_R w x : Q2R (down w x) <= Q2R x.
Proof. unfold down. destruct (Qle_bool (trim w x) x) eqn:Z; [now apply Qle_bool_R|lra]. Qed.
Lemma up_R w x : Q2R x <= Q2R (up w x).
Proof. unfold up. rewrite Q2R_opp. pose proof (down_R w (Qopp x)) as D. rewrite Q2R_opp in D. lra. Qed.
Definition weighs (r : entry -> R) (l : list entry) : R := rsum (fun x => INR (often x) * r x) l.
Lemma qsum_low f r l : (forall x, In x l -> Q2R (f x) <= r x) -> Q2R (qsum_of f l) <= weighs r l.
Proof.
  unfold weighs. induction l as [|x l IH]; intros H; simpl; [rewrite Q2R_0; lra|]. rewrite Q2R_plus, Q2R_mult, qnat_R.
  specialize (IH ltac:(intros; apply H; simpl; auto)). pose proof (H x (or_introl eq_refl)). pose proof (pos_INR (often x)). nra.
Qed.
Lemma qsum_high f r l : (forall x, In x l -> r x <= Q2R (f x)) -> weighs r l <= Q2R (qsum_of f l).
Proof.
  unfold weighs. induction l as [|x l IH]; intros H; simpl; [rewrite Q2R_0; lra|]. rewrite Q2R_plus, Q2R_mult, qnat_R.
  specialize (IH ltac:(intros; apply H; simpl; auto)). pose proof (H x (or_introl eq_refl)). pose proof (pos_INR (often x)). nra.
Qed.
Lemma logs_of_low c f l : forall y, logs_of c f l = Some y -> IZR y <= U * weighs (fun x => ln (Q2R (f x))) l.
Proof.
  unfold weighs. induction l as [|x l IH]; simpl; intros y H; [injection H as <-; lra|].
  destruct (logs c (often x) (f x)) as [a|] eqn:A; [|discriminate]. destruct (logs_of c f l) as [b|]; [|discriminate]. injection H as <-.
  specialize (IH b eq_refl). apply logs_low in A. rewrite plus_IZR. lra.
Qed.
Lemma off_log_low c kappa x y : off_log c kappa x = Some y -> 0 < Q2R x -> 0 <= Q2R kappa -> Q2R y <= - (U * (Q2R kappa * ln (Q2R x))).
Proof.
  unfold off_log. intros H Hx Hk. destruct (Qeq_bool kappa 0) eqn:Z.
  - injection H as <-. apply Qeq_bool_eq, Qeq_eqR in Z. rewrite Z, Q2R_0. lra.
  - destruct (log_ok _ _) eqn:LO; [|discriminate]. injection H as <-. apply log_sound in LO. destruct LO as [_ LO].
    rewrite Q2R_inv in LO by (intros Y; apply Qeq_eqR in Y; rewrite Q2R_0 in Y; lra). rewrite ln_Rinv in LO by exact Hx.
    rewrite Q2R_mult, inject_R. pose proof unit_pos as P. set (z := IZR (lg c (Qinv x))) in *.
    assert (L2 : z <= U * - ln (Q2R x)).
    { apply (Rmult_le_compat_l U) in LO; [|lra]. replace (U * (z / U)) with z in LO by (field; lra). exact LO. }
    apply (Rmult_le_compat_l (Q2R kappa)) in L2; [|exact Hk]. lra.
Qed.
Lemma between lo hi s x f l u S : lo <= S <= hi -> l <= x <= u -> l <= f <= u ->
  s * (f - x) - (if Rle_dec (hi - s) (s - lo) then s - lo else hi - s) * (u - l) <= S * (f - x).
Proof.
  intros HS Hx Hf. set (m := if Rle_dec (hi - s) (s - lo) then s - lo else hi - s).
  assert (A : S - s <= m /\ s - S <= m) by (unfold m; destruct (Rle_dec _ _); lra).
  destruct (Rle_dec 0 (f - x)) as [P|P].
  - assert ((s - S) * (f - x) <= m * (u - l)); [|nra]. apply Rle_trans with (m * (f - x)); [nra|].
    apply Rmult_le_compat_l; lra.
  - assert ((S - s) * (x - f) <= m * (u - l)); [|nra]. apply Rle_trans with (m * (x - f)); [nra|].
    apply Rmult_le_compat_l; lra.
Qed.

(* What an entry brings, where its class has the chance f. *)
Definition value_of (l : R) (f : R) (x : entry) : R :=
  let a := Q2R (stands x) in if certain x then ln (1 + a / f) else if Rlt_dec a 0 then ln (1 + a / Rmax l (2 * - a)) else 0.
Lemma weighs_split r p xs : weighs r xs = weighs r (filter p xs) + weighs r (filter (fun x => negb (p x)) xs).
Proof. unfold weighs. induction xs as [|x xs IH]; simpl; [lra|]. destruct (p x); simpl; lra. Qed.
Lemma weighs_le r r' xs : (forall x, In x xs -> r x <= r' x) -> weighs r xs <= weighs r' xs.
Proof. intros H. apply rsum_le. intros x Hx. apply Rmult_le_compat_l; [apply pos_INR|now apply H]. Qed.
Lemma weighs_three r xs : (forall x, In x xs -> certain x = false -> is_gain x = true -> 0 <= r x) ->
  weighs r (filter (fun x => negb (certain x) && negb (is_gain x)) xs) + weighs r (filter (fun x => certain x && is_gain x) xs) +
  weighs r (filter (fun x => certain x && negb (is_gain x)) xs) <= weighs r xs.
Proof.
  unfold weighs. induction xs as [|x xs IH]; simpl; intros H; [lra|]. specialize (IH ltac:(intros; apply H; simpl; auto)).
  specialize (H x (or_introl eq_refl)). pose proof (pos_INR (often x)). destruct (certain x), (is_gain x); simpl; try lra.
  specialize (H eq_refl eq_refl). nra.
Qed.
Lemma is_gain_R x : is_gain x = true -> 0 < Q2R (stands x).
Proof. intros H. apply Qltb_R in H. now rewrite Q2R_0 in H. Qed.
Lemma negative_R x : is_gain x = false -> Q2R (stands x) <= 0.
Proof. intros H. apply Qltb_R_false in H. now rewrite Q2R_0 in H. Qed.
Lemma Q2R_pos q : 0 < Q2R q -> ~ Qeq q 0.
Proof. intros H Z. apply Qeq_eqR in Z. rewrite Q2R_0 in Z. lra. Qed.
Lemma if_R (b : bool) x y : Q2R (if b then x else y) = if b then Q2R x else Q2R y. Proof. now destruct b. Qed.

Lemma Qif_min y z : Q2R (if Qle_bool y z then y else z) <= Q2R y /\ Q2R (if Qle_bool y z then y else z) <= Q2R z.
Proof. destruct (Qle_bool y z) eqn:B; [apply Qle_bool_R in B|apply Qle_bool_R_false in B]; lra. Qed.
Lemma err_R lo hi s u l : Q2R (Qmult (if Qle_bool (Qminus hi s) (Qminus s lo) then Qminus s lo else Qminus hi s) (Qminus u l)) =
  (if Rle_dec (Q2R hi - Q2R s) (Q2R s - Q2R lo) then Q2R s - Q2R lo else Q2R hi - Q2R s) * (Q2R u - Q2R l).
Proof.
  rewrite Q2R_mult, Q2R_minus. f_equal. destruct (Qle_bool _ _) eqn:B.
  - apply Qle_bool_R in B. rewrite !Q2R_minus in *. destruct (Rle_dec _ _); lra.
  - apply Qle_bool_R_false in B. rewrite !Q2R_minus in *. destruct (Rle_dec _ _); lra.
Qed.
Lemma Some_inj {A} (a b : A) : Some a = Some b -> a = b. Proof. congruence. Qed.
Definition losing (l : list entry) : list (R * R) := map (fun x => (INR (often x), - Q2R (stands x))) l.
Lemma losing_sum l (r : R * R -> R) : rsum r (losing l) = rsum (fun x => r (INR (often x), - Q2R (stands x))) l.
Proof. unfold losing. induction l as [|x l IH]; simpl; [reflexivity|]. now rewrite IH. Qed.
Lemma pool_weighs l k f : 0 < f -> (forall x, In x l -> - Q2R (stands x) < f) ->
  pool (losing l) k f = weighs (fun x => ln (1 + Q2R (stands x) / f)) l - k * ln f.
Proof.
  intros Hf H. unfold pool, weighs. rewrite losing_sum. f_equal. apply rsum_ext. intros x Hx. cbn [fst snd]. specialize (H x Hx).
  replace (1 + Q2R (stands x) / f) with ((f - - Q2R (stands x)) * / f) by (field; lra).
  rewrite ln_mult, ln_Rinv; try lra. now apply Rinv_0_lt_compat.
Qed.

Section Line.
Variables (c : cert) (m : nat) (box : nat -> bound) (w : wager) (e : nat) (xs : list entry) (kappa y : Q) (f : R).
Hypothesis (H : line c m box w e xs kappa = Some y) (F : 0 < f) (I : Q2R (blo (box e)) <= f <= Q2R (bhi (box e))).
Hypothesis NZ : forall x, In x xs -> Q2R (stands x) <> 0.
Notation l := (Q2R (blo (box e))). Notation u := (Q2R (bhi (box e))).
Notation q := (Q2R (near w e)). Notation s := (Q2R (tilt w e)). Notation k := (Q2R kappa).

Theorem line_sound : Q2R y + U * (s * f) <= U * (weighs (value_of l f) xs - k * ln f).
Proof.
  revert H. unfold line. cbv zeta.
  destruct (negb _) eqn:G; [discriminate|]. apply negb_false_iff in G.
  apply andb_prop in G. destruct G as [G K0]. apply andb_prop in G. destruct G as [G Qu]. apply andb_prop in G. destruct G as [G Ql].
  apply andb_prop in G. destruct G as [_ Q0]. apply Qle_bool_R in K0, Qu, Ql. apply Qltb_R in Q0. rewrite Q2R_0 in *.
  set (flat := filter (fun x => negb (certain x) && negb (is_gain x)) xs).
  set (gains := filter (fun x => certain x && is_gain x) xs).
  set (losses := filter (fun x => certain x && negb (is_gain x)) xs).
  assert (T3 := weighs_three (value_of l f) xs). fold flat gains losses in T3.
  specialize (T3 ltac:(intros x _ C P; unfold value_of; rewrite C; apply is_gain_R in P; destruct (Rlt_dec _ 0); lra)).
  assert (InFlat : forall x, In x flat -> Q2R (stands x) < 0 /\ certain x = false).
  { intros x Hx. unfold flat in Hx. apply filter_In in Hx. destruct Hx as [Hx P]. apply andb_prop in P. destruct P as [P1 P2].
    apply negb_true_iff in P1, P2. apply negative_R in P2. specialize (NZ x Hx). split; [lra|exact P1]. }
  assert (InGain : forall x, In x gains -> 0 < Q2R (stands x) /\ certain x = true).
  { intros x Hx. unfold gains in Hx. apply filter_In in Hx. destruct Hx as [Hx P]. apply andb_prop in P. destruct P as [P1 P2].
    apply is_gain_R in P2. auto. }
  assert (InLoss : forall x, In x losses -> Q2R (stands x) < 0 /\ certain x = true).
  { intros x Hx. unfold losses in Hx. apply filter_In in Hx. destruct Hx as [Hx P]. apply andb_prop in P. destruct P as [P1 P2].
    apply negb_true_iff in P2. apply negative_R in P2. specialize (NZ x Hx). split; [lra|exact P1]. }
  clearbody flat gains losses.
  destruct (logs_of c _ flat) as [base|] eqn:Lf; [|discriminate]. destruct (logs_of c _ gains) as [top|] eqn:Lg; [|discriminate].
  apply logs_of_low in Lf, Lg. pose proof unit_pos as UP.
  assert (VF : weighs (fun x => ln (Q2R (1 + inverse (stands x) (if Qle_bool (blo (box e)) (2 * - stands x) then (2 * - stands x)%Q else blo (box e))))) flat =
    weighs (value_of l f) flat).
  { apply rsum_ext. intros x Hx. destruct (InFlat x Hx) as [N C]. unfold value_of. rewrite C. destruct (Rlt_dec _ 0); [|lra]. do 2 f_equal.
    assert (MX : Q2R (if Qle_bool (blo (box e)) (2 * - stands x) then (2 * - stands x)%Q else blo (box e)) = Rmax l (2 * - Q2R (stands x))).
    { assert (T2 : Q2R (2 * - stands x) = 2 * - Q2R (stands x)) by (rewrite Q2R_mult, Q2R_opp; replace (Q2R 2) with 2 by (unfold Q2R; simpl; lra); lra).
      destruct (Qle_bool _ _) eqn:Z; [apply Qle_bool_R in Z|apply Qle_bool_R_false in Z].
      - rewrite T2. rewrite T2 in Z. now rewrite Rmax_right.
      - rewrite T2 in Z. rewrite Rmax_left; [reflexivity|]. lra. }
    rewrite Q2R_plus, Q2R_1, inverse_R, MX; [reflexivity|]. rewrite MX. pose proof (Rmax_r l (2 * - Q2R (stands x))). lra. }
  rewrite VF in Lf. clear VF.
  assert (VG : weighs (fun x => ln (Q2R (1 + inverse (stands x) (near w e)))) gains = weighs (fun x => ln (1 + Q2R (stands x) / q)) gains).
  { apply rsum_ext. intros x Hx. do 2 f_equal. rewrite Q2R_plus, Q2R_1, inverse_R by lra. reflexivity. }
  rewrite VG in Lg. clear VG.
  set (D := weighs (fun x => Q2R (stands x) / (q * (q + Q2R (stands x)))) gains).
  set (dlo := qsum_of (fun x => down w (inverse (stands x) (near w e * (near w e + stands x)))) gains).
  set (dhi := qsum_of (fun x => up w (inverse (stands x) (near w e * (near w e + stands x)))) gains).
  assert (SL : forall x, In x gains -> Q2R (inverse (stands x) (near w e * (near w e + stands x))) = Q2R (stands x) / (q * (q + Q2R (stands x)))).
  { intros x Hx. destruct (InGain x Hx) as [P _].
    assert (Z : Q2R (near w e * (near w e + stands x)) = q * (q + Q2R (stands x))) by (rewrite Q2R_mult, Q2R_plus; reflexivity).
    rewrite inverse_R, Z; [reflexivity|]. rewrite Z. nra. }
  assert (DL : Q2R dlo <= D) by (apply qsum_low; intros x Hx; rewrite <- SL by exact Hx; apply down_R).
  assert (DH : D <= Q2R dhi) by (apply qsum_high; intros x Hx; rewrite <- SL by exact Hx; apply up_R).
  assert (GV : weighs (fun x => ln (1 + Q2R (stands x) / q)) gains - D * (f - q) <= weighs (value_of l f) gains).
  { unfold D, weighs. clear -InGain F Q0. induction gains as [|x gs IH]; simpl; [lra|]. destruct (InGain x (or_introl eq_refl)) as [P C].
    specialize (IH ltac:(intros; apply InGain; simpl; auto)). unfold value_of at 1. rewrite C.
    pose proof (Slab.tangent_below (Q2R (stands x)) f q P F Q0) as TB.
    replace (Q2R (stands x) * (f - q) / (q * (q + Q2R (stands x)))) with (Q2R (stands x) / (q * (q + Q2R (stands x))) * (f - q)) in TB
      by (field; split; lra).
    pose proof (pos_INR (often x)) as P0. apply (Rmult_le_compat_l _ _ _ P0) in TB. lra. }
  assert (Half : IZR base + IZR top - U * (D * (f - q)) <= U * (weighs (value_of l f) flat + weighs (value_of l f) gains)) by nra.
  assert (BR : Q2R (inject_Z base + inject_Z top) = IZR base + IZR top) by (rewrite Q2R_plus, !inject_R; reflexivity).
  clearbody D dlo dhi. clear SL GV Lf Lg.
  assert (Goal1 : forall z, IZR base + IZR top - U * (D * (f - q)) + z <=
    U * (weighs (value_of l f) xs - k * ln f) \/ ~ z <= U * (weighs (value_of l f) losses - k * ln f)).
  { intros z. destruct (Rle_dec z (U * (weighs (value_of l f) losses - k * ln f))); [left; nra|now right]. }
  destruct losses as [|x0 rest] eqn:EL.
  - destruct (off_log c kappa (near w e)) as [z|] eqn:OL; [|discriminate]. apply off_log_low in OL; [|exact Q0|exact K0]. cbv beta. intros [= <-].
    rewrite Q2R_minus, !Q2R_plus, Q2R_mult, Q2R_plus, Q2R_mult, err_R, units_R, !inject_R, !Q2R_minus, !Q2R_opp, inverse_R by lra.
    assert (LN : ln f <= ln q + (f - q) / q).
    { pose proof (ln_line (f * / q) ltac:(apply Rmult_lt_0_compat; [exact F|now apply Rinv_0_lt_compat])) as LL.
      rewrite ln_mult, ln_Rinv in LL; [|exact Q0|exact F|now apply Rinv_0_lt_compat].
      replace ((f - q) / q) with (f * / q - 1) by (field; lra). lra. }
    pose proof (between (- Q2R dhi - k / q) (- Q2R dlo - k / q) s q f l u (- D - k / q) ltac:(lra) ltac:(lra) I) as BT.
    destruct (Goal1 (Q2R z - U * (k / q * (f - q)))) as [G1|G1].
    + set (err := (if Rle_dec _ _ then _ else _) * (u - l)) in *. nra.
    + exfalso. apply G1. unfold weighs. simpl.
      assert (k * ln f <= k * ln q + k / q * (f - q)).
      { apply (Rmult_le_compat_l k) in LN; [|exact K0]. replace (k * (ln q + (f - q) / q)) with (k * ln q + k / q * (f - q)) in LN by (field; lra). exact LN. }
      nra.
  - rewrite <- EL in *. clear EL x0 rest. set (p := Q2R (touch w e)).
    destruct (negb (Qltb 0 (blo (box e)) && _ && _ && _)) eqn:G2; [discriminate|]. apply negb_false_iff in G2.
    apply andb_prop in G2. destruct G2 as [G2 LB]. apply andb_prop in G2. destruct G2 as [G2 Pu]. apply andb_prop in G2. destruct G2 as [L0 Pl].
    apply Qle_bool_R in Pu, Pl. fold p in Pu, Pl. apply Qltb_R in L0. rewrite Q2R_0 in L0.
    assert (Bl : forall x, In x losses -> - Q2R (stands x) < l).
    { intros x Hx. rewrite forallb_forall in LB. specialize (LB x Hx). apply Qltb_R in LB. now rewrite Q2R_opp in LB. }
    set (ts := losing losses). assert (TN : forall t, In t ts -> 0 <= fst t) by (unfold ts, losing; intros t Ht; apply in_map_iff in Ht;
      destruct Ht as (x & <- & _); simpl; apply pos_INR).
    assert (TS : forall t, In t ts -> 0 <= snd t < l) by (unfold ts, losing; intros t Ht; apply in_map_iff in Ht;
      destruct Ht as (x & <- & Hx); simpl; specialize (Bl x Hx); destruct (InLoss x Hx); lra).
    assert (VL : weighs (value_of l f) losses - k * ln f = pool ts k f).
    { unfold ts. rewrite pool_weighs; [|exact F|intros x Hx; specialize (Bl x Hx); lra]. f_equal. apply rsum_ext. intros x Hx.
      destruct (InLoss x Hx) as [_ C]. unfold value_of. now rewrite C. }
    set (ls := fun x => inverse (- stands x) (touch w e * (touch w e - - stands x))).
    assert (LS : forall x, In x losses -> Q2R (ls x) = - Q2R (stands x) / (p * (p - - Q2R (stands x)))).
    { intros x Hx. specialize (Bl x Hx). destruct (InLoss x Hx) as [N _].
      assert (Z : Q2R (touch w e * (touch w e - - stands x)) = p * (p - - Q2R (stands x))) by (rewrite Q2R_mult, Q2R_minus, Q2R_opp; reflexivity).
      unfold ls. rewrite inverse_R, Z, Q2R_opp; [reflexivity|]. rewrite Z. apply Rgt_not_eq. apply Rmult_gt_0_compat; lra. }
    assert (ST : weighs (fun x => - Q2R (stands x) / (p * (p - - Q2R (stands x)))) losses - k / p = steep ts k p / p).
    { unfold steep, ts. rewrite losing_sum. unfold weighs.
      replace (rsum (fun x => fst (INR (often x), - Q2R (stands x)) * (snd (INR (often x), - Q2R (stands x)) / (p - snd (INR (often x), - Q2R (stands x))))) losses)
        with (p * rsum (fun x => INR (often x) * (- Q2R (stands x) / (p * (p - - Q2R (stands x))))) losses).
      - field. lra.
      - rewrite <- rsum_scal. apply rsum_ext. intros x Hx. cbn [fst snd]. specialize (Bl x Hx). field. split; lra. }
    set (slo := Qminus (qsum_of (fun x => down w (inverse (- stands x) (touch w e * (touch w e - - stands x)))) losses) (inverse kappa (touch w e))).
    set (shi := Qminus (qsum_of (fun x => up w (inverse (- stands x) (touch w e * (touch w e - - stands x)))) losses) (inverse kappa (touch w e))).
    assert (P0 : 0 < p) by lra.
    assert (SLo : Q2R slo <= steep ts k p / p).
    { rewrite <- ST. unfold slo. rewrite Q2R_minus, inverse_R by (fold p; lra). fold p.
      pose proof (qsum_low (fun x => down w (inverse (- stands x) (touch w e * (touch w e - - stands x)))) (fun x => - Q2R (stands x) / (p * (p - - Q2R (stands x)))) losses) as QL.
      specialize (QL ltac:(intros x Hx; cbv beta; rewrite <- LS by exact Hx; unfold ls; apply down_R)). lra. }
    assert (SHi : steep ts k p / p <= Q2R shi).
    { rewrite <- ST. unfold shi. rewrite Q2R_minus, inverse_R by (fold p; lra). fold p.
      pose proof (qsum_high (fun x => up w (inverse (- stands x) (touch w e * (touch w e - - stands x)))) (fun x => - Q2R (stands x) / (p * (p - - Q2R (stands x)))) losses) as QH.
      specialize (QH ltac:(intros x Hx; cbv beta; rewrite <- LS by exact Hx; unfold ls; apply up_R)). lra. }
    set (bnd := fun x => inverse (- stands x * (2 * touch w e - - stands x)) ((touch w e - - stands x) * (touch w e - - stands x))).
    set (at_ := fun x => match logs_of c (fun t => (1 + inverse (stands t) x)%Q) losses, off_log c kappa x with
      | Some y0, Some z => Some ((inject_Z y0 + z + units * ((if Qle_bool 0 (near w e - x) then dlo * (near w e - x) else dhi * (near w e - x)) - tilt w e * x))%Q)
      | _, _ => None end).
    assert (AT : forall x z, at_ x = Some z -> l <= Q2R x -> Q2R z <= U * (pool ts k (Q2R x) + D * (q - Q2R x) - s * Q2R x)).
    { unfold at_. intros x z Hz Hx. destruct (logs_of c _ losses) as [y1|] eqn:L1; [|discriminate].
      destruct (off_log c kappa x) as [y2|] eqn:O1; [|discriminate]. apply Some_inj in Hz. subst z.
      apply off_log_low in O1; [|lra|exact K0]. apply logs_of_low in L1.
      assert (E1 : weighs (fun t => ln (Q2R (1 + inverse (stands t) x))) losses = weighs (fun t => ln (1 + Q2R (stands t) / Q2R x)) losses).
      { apply rsum_ext. intros t Ht. do 2 f_equal. rewrite Q2R_plus, Q2R_1, inverse_R by lra. reflexivity. }
      rewrite E1 in L1. unfold ts. rewrite pool_weighs; [|lra|intros t Ht; specialize (Bl t Ht); lra].
      rewrite !Q2R_plus, Q2R_mult, Q2R_minus, units_R, inject_R, Q2R_mult.
      assert (DD : Q2R (if Qle_bool 0 (near w e - x) then (dlo * (near w e - x))%Q else (dhi * (near w e - x))%Q) <= D * (q - Q2R x)).
      { destruct (Qle_bool 0 (near w e - x)) eqn:Z; [apply Qle_bool_R in Z|apply Qle_bool_R_false in Z];
          rewrite Q2R_mult, Q2R_minus in *; rewrite Q2R_0 in Z; nra. }
      nra. }
    cbv beta. fold slo shi.
    match goal with |- match ?t with _ => _ end = _ -> _ => destruct t as [miss|] eqn:EM; [|discriminate] end.
    match goal with |- match ?t with _ => _ end = _ -> _ => change t with (at_ (blo (box e))) end.
    destruct (at_ (blo (box e))) as [yl|] eqn:Yl; [|discriminate].
    match goal with |- match ?t with _ => _ end = _ -> _ => change t with (at_ (touch w e)) end.
    destruct (at_ (touch w e)) as [yp|] eqn:Yp; [|discriminate].
    intros [= <-]. apply AT in Yl; [|lra]. apply AT in Yp; [|fold p; lra]. fold p in Yp.
    destruct (Qif_min yl yp) as [M1 M2]. set (low := Q2R (if Qle_bool yl yp then yl else yp)) in *.
    rewrite Q2R_minus, Q2R_plus, BR, Q2R_mult, units_R. fold low.
    destruct (chord w e) eqn:CH.
    + destruct (Qeq_bool (touch w e) (bhi (box e)) && _)%bool eqn:CC; [|discriminate]. injection EM as <-. rewrite Q2R_0.
      apply andb_prop in CC. destruct CC as [C1 C2]. apply Qeq_bool_eq, Qeq_eqR in C1. fold p in C1. apply Qle_bool_R in C2. rewrite Q2R_plus in C2.
      set (t := s + D). assert (Ht : steep ts k p <= t * p).
      { assert (HT : steep ts k p / p <= t) by (unfold t; lra). apply (Rmult_le_compat_r p) in HT; [|lra].
        replace (steep ts k p / p * p) with (steep ts k p) in HT by (field; lra). exact HT. }
      pose proof (chord_line ts k l L0 TN TS t (low / U - D * q) p u f I) as CL.
      assert (A1 : low / U <= pool ts k l + D * (q - l) - s * l) by (apply (Rmult_le_reg_l U); [exact UP|]; replace (U * (low / U)) with low by (field; lra); lra).
      assert (A2 : low / U <= pool ts k p + D * (q - p) - s * p) by (apply (Rmult_le_reg_l U); [exact UP|]; replace (U * (low / U)) with low by (field; lra); lra).
      specialize (CL ltac:(unfold t; lra) ltac:(unfold t; lra) C1 Ht).
      destruct (Goal1 (U * (t * f + (low / U - D * q)))) as [G1|G1].
      * replace (U * (t * f + (low / U - D * q))) with (low + U * (t * f - D * q)) in G1 by (field; lra). unfold t in G1. lra.
      * exfalso. apply G1. rewrite VL. apply Rmult_le_compat_l; lra.
    + destruct (Qle_bool (qsum_of _ losses) kappa) eqn:BB; [|discriminate]. injection EM as <-. apply Qle_bool_R in BB.
      assert (BE : 0 <= bends ts k p).
      { unfold bends, ts. rewrite losing_sum.
        pose proof (qsum_high (fun x => up w (inverse (- stands x * (2 * touch w e - - stands x)) ((touch w e - - stands x) * (touch w e - - stands x)))) (fun x => - Q2R (stands x) * (2 * p - - Q2R (stands x)) / ((p - - Q2R (stands x)) * (p - - Q2R (stands x)))) losses) as QH.
        assert (QQ : forall x, In x losses -> - Q2R (stands x) * (2 * p - - Q2R (stands x)) / ((p - - Q2R (stands x)) * (p - - Q2R (stands x))) <= Q2R (up w (bnd x))).
        { intros x Hx. specialize (Bl x Hx). destruct (InLoss x Hx) as [N _]. eapply Rle_trans; [|apply up_R]. right. unfold bnd.
          assert (Z : Q2R ((touch w e - - stands x) * (touch w e - - stands x)) = (p - - Q2R (stands x)) * (p - - Q2R (stands x)))
            by (rewrite Q2R_mult, Q2R_minus, Q2R_opp; reflexivity).
          rewrite inverse_R, Z.
          - rewrite Q2R_mult, Q2R_minus, Q2R_mult, Q2R_opp. replace (Q2R 2) with 2 by (unfold Q2R; simpl; lra). reflexivity.
          - rewrite Z. apply Rgt_not_eq. apply Rmult_gt_0_compat; lra. }
        specialize (QH QQ). unfold weighs in QH. cbn [fst snd]. lra. }
      set (t := steep ts k p / p). assert (Ht : steep ts k p = t * p) by (unfold t; field; lra).
      clearbody slo shi. rewrite err_R, !Q2R_minus.
      pose proof (fun x Hx => between (Q2R slo - Q2R dhi) (Q2R shi - Q2R dlo) s x f l u (t - D) ltac:(unfold t; lra) Hx I) as BT.
      set (err := (if Rle_dec _ _ then _ else _) * (u - l)) in *.
      assert (A1 : low / U <= pool ts k l + D * (q - l) - s * l) by (apply (Rmult_le_reg_l U); [exact UP|]; replace (U * (low / U)) with low by (field; lra); lra).
      assert (A2 : low / U <= pool ts k p + D * (q - p) - s * p) by (apply (Rmult_le_reg_l U); [exact UP|]; replace (U * (low / U)) with low by (field; lra); lra).
      pose proof (BT l ltac:(lra)) as BTl. pose proof (BT p ltac:(lra)) as BTp.
      set (h := Rmin (pool ts k l - t * l) (pool ts k p - t * p)).
      pose proof (tangent_line ts k l L0 TN TS t h p u f Pl I) as TL.
      specialize (TL ltac:(pose proof (Rmin_l (pool ts k l - t * l) (pool ts k p - t * p)); unfold h; lra)
        ltac:(pose proof (Rmin_r (pool ts k l - t * l) (pool ts k p - t * p)); unfold h; lra) Ht BE).
      assert (HH : low / U + s * f - err + D * (f - q) <= t * f + h).
      { clear -BTl BTp A1 A2. clearbody err. unfold h, Rmin. destruct (Rle_dec _ _); lra. }
      destruct (Goal1 (U * (t * f + h))) as [G1|G1].
      * assert (UH : U * (low / U + s * f - err + D * (f - q)) <= U * (t * f + h)) by (apply Rmult_le_compat_l; lra).
        replace (U * (low / U + s * f - err + D * (f - q))) with (low + U * (s * f - err + D * (f - q))) in UH by (field; lra). lra.
      * exfalso. apply G1. rewrite VL. apply Rmult_le_compat_l; lra.
Qed.
End Line.

(* ---------- What bettors own ---------- *)

Lemma fits_length g l : forall es, fits g l es = true -> length l = length es.
Proof.
  induction l as [|k l IH]; intros [|e es]; simpl; try discriminate; [reflexivity|]. intros H. apply andb_prop in H. f_equal. now apply IH.
Qed.
Lemma fits_nth g l : forall es o k, fits g l es = true -> nth_error l o = Some k ->
  exists e, nth_error es o = Some e /\ (k < classes g)%nat /\ of_class g k = expr e.
Proof.
  induction l as [|k0 l IH]; intros [|e es] o k; simpl; try discriminate; [destruct o; discriminate|].
  intros H Ho. apply andb_prop in H. destruct H as [H1 H2]. apply andb_prop in H1. destruct H1 as [H1 H3]. destruct o as [|o]; simpl in *.
  - injection Ho as ->. exists e. apply Nat.ltb_lt in H1. apply Nat.eqb_eq in H3. auto.
  - now apply IH.
Qed.
Lemma same_z_eq y z : same_z y z = true -> y = z.
Proof. unfold same_z. intros H. apply andb_prop in H. destruct H as [H1 H2]. apply Z.leb_le in H1, H2. lia. Qed.
Lemma amount_R z : Q2R (amount z) = IZR z * Q2R stake_unit.
Proof. unfold amount. now rewrite Q2R_mult, inject_R. Qed.
Lemma stake_unit_pos : 0 < Q2R stake_unit.
Proof. unfold stake_unit. rewrite Q2R_inv, inject_R by discriminate. apply Rinv_0_lt_compat. apply IZR_lt. reflexivity. Qed.
Lemma rsum_nth (F : nat -> R) l : rsum (fun o => match nth_error l o with Some k => F k | None => 0 end) (seq 0 (length l)) = rsum F l.
Proof. induction l as [|k l IH]; [reflexivity|]. simpl length. rewrite <- cons_seq. simpl rsum. rewrite rsum_shift. simpl nth_error. now rewrite IH. Qed.
Lemma zsum_R z l : IZR (zsum z l) = rsum (fun k => IZR (z k)) l.
Proof. induction l as [|k l IH]; simpl; [reflexivity|]. now rewrite plus_IZR, IH. Qed.
Lemma rsum_swap {A C} (F : A -> C -> R) l l' : rsum (fun a => rsum (F a) l') l = rsum (fun b => rsum (fun a => F a b) l) l'.
Proof.
  induction l as [|a l IH]; simpl; [symmetry; apply rsum_zero; reflexivity|]. rewrite IH, <- rsum_add. reflexivity.
Qed.
Lemma rsum_flat {A C} (F : C -> R) (G : A -> list C) l : rsum F (flat_map G l) = rsum (fun a => rsum F (G a)) l.
Proof. induction l as [|a l IH]; simpl; [reflexivity|]. now rewrite rsum_app, IH. Qed.

(* ---------- Sums ---------- *)

Fixpoint zip (ns js : list nat) (H : nat -> R) : R :=
  match ns, js with n :: ns', j :: js' => INR n * H j + zip ns' js' H | _, _ => 0 end.
Lemma zip_shift ns H : forall J a, zip ns (seq (S a) J) H = zip ns (seq a J) (fun j => H (S j)).
Proof. induction ns as [|n ns IH]; intros [|J] a; simpl; try reflexivity. now rewrite IH. Qed.
Lemma zip_nth ns : forall J H, (length ns <= J)%nat -> rsum (fun j => INR (nth j ns 0%nat) * H j) (seq 0 J) = zip ns (seq 0 J) H.
Proof.
  induction ns as [|n ns IH]; intros J H L.
  - simpl zip. apply rsum_zero. intros [|j] _; simpl; lra.
  - destruct J as [|J]; simpl in L; [lia|]. rewrite <- cons_seq. cbn [rsum zip nth]. rewrite rsum_shift, zip_shift. cbn [nth]. rewrite IH by lia. reflexivity.
Qed.
Lemma zip_one ns : forall J a, (length ns <= J)%nat -> zip ns (seq a J) (fun _ => 1) = INR (fold_right Nat.add 0%nat ns).
Proof.
  induction ns as [|n ns IH]; intros J a L; [reflexivity|]. destruct J as [|J]; simpl in L; [lia|]. cbn [seq zip fold_right].
  rewrite IH, plus_INR by lia. lra.
Qed.
Lemma zip_le ns : forall js H H', (forall j, H j <= H' j) -> zip ns js H <= zip ns js H'.
Proof. induction ns as [|n ns IH]; intros [|j js] H H' L; simpl; try lra. specialize (IH js H H' L). pose proof (L j). pose proof (pos_INR n). nra. Qed.
Lemma parted (F : nat -> R) (of : nat -> nat) E l : (forall k, In k l -> (of k < E)%nat) ->
  rsum F l = rsum (fun e => rsum F (filter (fun k => Nat.eqb (of k) e) l)) (seq 0 E).
Proof.
  induction l as [|k l IH]; intros H; [simpl; symmetry; now apply rsum_zero|]. simpl rsum at 1. rewrite IH by (intros; apply H; simpl; auto).
  rewrite <- (rsum_pick (F k) (of k) E) by (apply H; simpl; auto). rewrite <- rsum_add. apply rsum_ext. intros e _. simpl.
  destruct (Nat.eqb (of k) e); simpl; lra.
Qed.
Lemma weight_sum (G : nat -> R) E ws : (forall x, In x ws -> (fst x < E)%nat) ->
  rsum (fun x => IZR (snd x) * G (fst x)) ws = rsum (fun e => IZR (weight_of_log e ws) * G e) (seq 0 E).
Proof.
  induction ws as [|[e0 k] ws IH]; intros H; [simpl; symmetry; apply rsum_zero; intros; lra|]. cbn [rsum fst snd].
  rewrite IH by (intros; apply H; simpl; auto). rewrite <- (rsum_pick (IZR k * G e0) e0 E) by (apply (H (e0, k)); simpl; auto).
  rewrite <- rsum_add. apply rsum_ext. intros e _. simpl. rewrite (Nat.eqb_sym e0 e). destruct (Nat.eqb e e0) eqn:K.
  - apply Nat.eqb_eq in K. subst e. rewrite plus_IZR. lra.
  - lra.
Qed.
Lemma weight_in e ws : weight_of_log e ws <> 0%Z -> exists k, In (e, k) ws.
Proof.
  induction ws as [|[e0 k] ws IH]; simpl; [tauto|]. destruct (Nat.eqb e e0) eqn:K.
  - apply Nat.eqb_eq in K. subst e0. intros _. exists k. auto.
  - intros H. destruct (IH H) as [k' Hk]. eauto.
Qed.
Lemma costs_low c all l : (0 < all)%nat -> forall ns y, costs c all ns l = Some y ->
  IZR y <= U * rsum (fun j => INR (nth j ns 0%nat) * ln (Q2R (nth j l 0%Q) * (INR all / INR (nth j ns 0%nat)))) (seq 0 (length l)) /\
  forall j, (j < length l)%nat -> (0 < nth j ns 0)%nat -> 0 <= Q2R (nth j l 0%Q) -> 0 < Q2R (nth j l 0%Q).
Proof.
  intros HA. induction l as [|v l IH]; intros ns y H.
  - assert (y = 0%Z) by (destruct ns; simpl in H; congruence). subst y. simpl. split; [lra|]. intros j Hj. lia.
  - destruct ns as [|n ns].
    + simpl in H. injection H as <-. split; [rewrite rsum_zero; [lra|]; intros [|j] _; simpl; lra|]. intros [|j] _ Hj; simpl in Hj; lia.
    + cbn [costs] in H. destruct (logs c n _) as [a|] eqn:La; [|discriminate]. destruct (costs c all ns l) as [b|] eqn:Lb; [|discriminate].
      injection H as <-. destruct (IH ns b Lb) as [I1 I2].
      assert (Eq : (0 < n)%nat -> Q2R (Qmult v (Qmult (qnat all) (Qinv (qnat n)))) = Q2R v * (INR all / INR n)).
      { intros Hn. rewrite !Q2R_mult, Q2R_inv, !qnat_R; [reflexivity|]. apply Q2R_pos. rewrite qnat_R. now apply lt_0_INR. }
      split.
      * simpl length. rewrite <- cons_seq. cbn [rsum]. rewrite rsum_shift. cbn [nth]. rewrite plus_IZR.
        destruct (Nat.eq_dec n 0) as [->|N].
        -- unfold logs in La. simpl in La. injection La as <-. simpl INR. lra.
        -- apply logs_low in La. rewrite Eq in La by lia. lra.
      * intros [|j] Hj Hn Hv; simpl in *.
        -- apply logs_sound in La; [|exact Hn]. rewrite Eq in La by exact Hn. destruct Hv as [Hv|Hv]; [exact Hv|].
           rewrite <- Hv in La. lra.
        -- apply (I2 j); [lia|exact Hn|exact Hv].
Qed.
Lemma places_sum g (G : nat -> (nat -> Z) -> R) l : (forall b z y, (forall k, (k < classes g)%nat -> z k = y k) -> G b z = G b y) ->
  rsum (fun x => G (fst x) (snd x)) l = rsum (fun p : placement => rsum (fun b => G b (snd p)) (fst p)) (places g l).
Proof.
  intros HG. induction l as [|[b z] l IH]; [reflexivity|]. cbn [rsum places fst snd]. rewrite IH. destruct (places g l) as [|[bs y] ps]; [simpl; lra|].
  destruct (below (classes g) _) eqn:Bl; [|simpl; lra]. cbn [rsum fst snd].
  rewrite (HG b z y); [lra|]. intros k Hk. apply same_z_eq. apply (below_spec _ _ Bl k Hk).
Qed.
Lemma sumn_R F (v : R) l : rsum (fun b => INR (F b) * v) l = INR (sumn F l) * v.
Proof. induction l as [|b l IH]; simpl; [lra|]. rewrite IH, plus_INR. lra. Qed.
Lemma all_sides_nth g B mk n : forall l, all_sides g B mk n = Some l -> forall side ps, nth_error l side = Some ps ->
  (side < n)%nat /\ bettors g B mk side = Some ps.
Proof.
  assert (G : forall l, all_sides g B mk n = Some l -> length l = n /\ forall side ps, nth_error l side = Some ps -> bettors g B mk side = Some ps).
  { induction n as [|n IH]; simpl; intros l H; [injection H as <-; split; [reflexivity|intros [|side] ps; discriminate]|].
    destruct (all_sides g B mk n) as [l'|]; [|discriminate]. destruct (bettors g B mk n) as [p|] eqn:Bn; [|discriminate]. injection H as <-.
    destruct (IH l' eq_refl) as [I1 I2]. split; [rewrite app_length; simpl; lia|]. intros side ps Hs.
    destruct (Nat.lt_ge_cases side (length l')) as [L|L].
    - rewrite nth_error_app1 in Hs by exact L. now apply I2.
    - rewrite nth_error_app2 in Hs by exact L. destruct (side - length l')%nat as [|x] eqn:D; [|destruct x; discriminate].
      simpl in Hs. injection Hs as <-. replace side with n by lia. exact Bn. }
  intros l H side ps Hs. destruct (G l H) as [G1 G2]. split; [|now apply G2]. rewrite <- G1. apply nth_error_Some. congruence.
Qed.

Section Truth.
Variables (M : model) (theta : nat -> R) (E : nat) (g : scheme) (number : seen -> nat).
Hypothesis (T : instance M theta) (Mono : forall a h, (number h <= number (a :: h))%nat).
Notation f e := (poly_at theta (polys M e)).
Notation tag := (class_of g).
Notation here := (law M theta).

Definition call (side j : nat) (h : seen) : nat -> Z := stake g side j (number h) (earlier (number h) (met tag number h)).
Definition bet (side : nat) (j : option nat) (h : seen) (c : nat * nat) (o : nat) : R :=
  match j with
  | None => 0
  | Some j => if kinds_ok M g && fair g (call side j h)
              then match tag c o with Some k => Q2R (amount (call side j h k)) | None => 0 end else 0
  end.

Lemma kind_at c l : kinds_ok M g = true -> nth_error (table M (fst c)) (snd c) = Some l -> (fst c < states (shape M))%nat ->
  (kind_of_choice g c < kinds g)%nat /\ fits g (members g (kind_of_choice g c)) (outcomes l) = true.
Proof.
  intros H K S. pose proof (below_spec _ _ H _ S) as Bl. pose proof (foralli_spec _ _ _ Bl _ _ K) as Fa. cbv beta in Fa.
  apply andb_prop in Fa. destruct Fa as [F1 F2]. apply Nat.ltb_lt in F1. destruct c. simpl in *. auto.
Qed.
Lemma tag_label c o e : kinds_ok M g = true -> label M c o = Some e ->
  exists k, tag c o = Some k /\ (k < classes g)%nat /\ of_class g k = e /\ (kind_of_choice g c < kinds g)%nat.
Proof.
  intros H L. unfold label in L. destruct (nth_error (table M (fst c)) (snd c)) as [l|] eqn:K; [|discriminate].
  destruct (fst c <? states (shape M))%nat eqn:S; [|discriminate]. apply Nat.ltb_lt in S.
  destruct (kind_at c l H K S) as [K1 K2]. destruct (nth_error (outcomes l) o) as [x|] eqn:X; [|discriminate]. injection L as <-.
  unfold class_of. destruct (nth_error (members g (kind_of_choice g c)) o) as [k|] eqn:Y.
  - exists k. destruct (fits_nth _ _ _ _ _ K2 Y) as (x' & X' & Hk & Hc). rewrite X in X'. injection X' as <-. auto.
  - apply nth_error_None in Y. rewrite (fits_length _ _ _ K2) in Y. apply nth_error_None in Y. congruence.
Qed.
Lemma label_law c o : 0 < here c o -> exists e, label M c o = Some e /\ here c o = f e.
Proof. unfold law. destruct (label M c o) as [e|]; [eauto|lra]. Qed.

Section Design.
Variables (cs : list (nat * nat)) (design : seen -> nat * nat -> R).
Hypothesis X : experiment (nat * nat) nat cs (results M) design (law M theta).
Lemma bet_fair side j h c : In c cs -> rsum (bet side j h c) (results M c) <= 0.
Proof.
  intros Hc. destruct j as [j|]; unfold bet; [|rewrite rsum_zero; [lra|reflexivity] ].
  destruct (kinds_ok M g && fair g (call side j h))%bool eqn:K; [|rewrite rsum_zero; [lra|reflexivity] ].
  apply andb_prop in K. destruct K as [K Fr]. pose proof (law_one _ _ _ _ _ _ X c Hc) as One. unfold results in *.
  destruct (nth_error (table M (fst c)) (snd c)) as [l|] eqn:L; [|simpl in One; lra].
  destruct (Nat.lt_ge_cases (fst c) (states (shape M))) as [S|S].
  - destruct (kind_at c l K L S) as [K1 K2]. rewrite <- (fits_length _ _ _ K2). unfold class_of.
    rewrite (rsum_nth (fun k => Q2R (amount (call side j h k)))).
    rewrite (rsum_ext _ (fun k => Q2R stake_unit * IZR (call side j h k))) by (intros; rewrite amount_R; lra).
    rewrite rsum_scal, <- zsum_R. pose proof (below_spec _ _ Fr _ K1) as Z. apply Z.leb_le, IZR_le in Z. pose proof stake_unit_pos. nra.
  - exfalso. apply Nat.ltb_ge in S. rewrite rsum_zero in One; [lra|]. intros o _. unfold law, label. now rewrite L, S.
Qed.

(* All bettors of a side, and what is left aside. *)
Definition who : list (option nat) := None :: map Some (seq 0 (length (weights g))).
Definition total_weight : R := rsum (fun j => Q2R (nth j (weights g) 0%Q)) (seq 0 (length (weights g))).
Definition share (j : option nat) : R := match j with
  | None => if weights_ok 1 (weights g) then 1 - total_weight else 1
  | Some j => if weights_ok 1 (weights g) then Q2R (nth j (weights g) 0%Q) else 0 end.
Lemma weights_sound l : forall left, weights_ok left l = true ->
  rsum (fun j => Q2R (nth j l 0%Q)) (seq 0 (length l)) <= Q2R left /\ forall j, 0 <= Q2R (nth j l 0%Q).
Proof.
  induction l as [|w l IH]; simpl length; intros left H.
  - simpl in *. apply Qle_bool_R in H. rewrite Q2R_0 in *. split; [exact H|]. intros [|j]; simpl; rewrite Q2R_0; lra.
  - simpl in H. apply andb_prop in H. destruct H as [H1 H2]. apply Qle_bool_R in H1. rewrite Q2R_0 in H1.
    apply IH in H2. destruct H2 as [H2 H3]. rewrite Q2R_minus in H2. split.
    + rewrite <- cons_seq. simpl rsum. rewrite rsum_shift. simpl nth. lra.
    + intros [|j]; simpl; [exact H1|apply H3].
Qed.
Lemma share_pos j : 0 <= share j.
Proof.
  unfold share. destruct (weights_ok 1 (weights g)) eqn:W; [|destruct j; lra]. destruct (weights_sound _ _ W) as [W1 W2]. rewrite Q2R_1 in W1.
  destruct j; [apply W2|unfold total_weight; lra].
Qed.
Lemma rsum_map {A C} (F : C -> R) (G : A -> C) l : rsum F (map G l) = rsum (fun a => F (G a)) l.
Proof. induction l as [|a l IH]; simpl; [reflexivity|]. now rewrite IH. Qed.
Lemma share_whole : rsum share who = 1.
Proof.
  unfold who. cbn [rsum]. rewrite rsum_map. unfold share. destruct (weights_ok 1 (weights g)); [unfold total_weight; lra|].
  rewrite rsum_zero; [lra|reflexivity].
Qed.
Definition together_of (side : nat) (h : seen) : R :=
  Slab.together (nat * nat) nat (results M) (law M theta) (option nat) who share (bet side) h.
(* Who sees what cannot be is as rich as need be. *)
Definition owned (side : nat) (h : seen) : R := if alive M theta h then together_of side h else / Q2R (alpha g).
Lemma owned_pos side h : 0 < Q2R (alpha g) -> 0 <= owned side h.
Proof.
  intros A. unfold owned. destruct (alive M theta h); [apply Slab.together_pos; apply share_pos|left; now apply Rinv_0_lt_compat].
Qed.
Lemma owned_fair side h c : In c cs -> rsum (fun o => here c o * owned side ((c, o) :: h)) (results M c) <= owned side h.
Proof.
  intros Hc. unfold owned. destruct (alive M theta h) eqn:A.
  - eapply Rle_trans; [right|apply (Slab.together_fair _ _ _ _ _ _ X _ who share (bet side) share_pos ltac:(intros; now apply bet_fair) h c Hc)].
    apply rsum_ext. intros o _. cbn [alive]. rewrite A, andb_true_r. destruct (Rlt_dec 0 (here c o)) as [|N]; [reflexivity|].
    pose proof (law_pos _ _ _ _ _ _ X c o Hc) as P. simpl in P. replace (here c o) with 0 by lra. lra.
  - right. rewrite (rsum_ext _ (fun o => / Q2R (alpha g) * here c o)).
    + rewrite rsum_scal, (law_one _ _ _ _ _ _ X c Hc). lra.
    + intros o _. cbn [alive]. rewrite A, andb_false_r. lra.
Qed.
Lemma owned_0 side : owned side [] = 1.
Proof. unfold owned. simpl. apply Slab.together_0, share_whole. Qed.
End Design.

(* ---------- Who is not rich is right about the rows ---------- *)

Section Rows.
Variables (c : cert) (m : nat) (box : nat -> bound) (w : wager) (known : Z * list (nat * Z)) (h0 : seen) (side : nat)
  (ps : list (list placement)) (p : poly).
Notation B := (S (number h0)).
Notation mk := (met tag number h0).
Notation J := (length (weights g)).
Hypothesis (A : alive M theta h0 = true) (KO : kinds_ok M g = true) (CO : classes_ok E g = true) (WO : weights_ok 1 (weights g) = true).
Hypothesis (PS : bettors g B mk side = Some ps).
Hypothesis (EV : evident M theta known) (IN : forall e, (e < m)%nat -> inside M theta (box e)).

Definition zs (j b : nat) : nat -> Z := stake g side j b (earlier b mk).
Lemma met_after pre h b k : (b < number h)%nat -> met tag number (pre ++ h) b k = met tag number h b k.
Proof.
  intros Hb. induction pre as [|[c0 o] pre IH]; simpl; [reflexivity|]. pose proof (later number Mono pre h).
  destruct (Nat.eqb (number (pre ++ h)) b) eqn:K; [apply Nat.eqb_eq in K; lia|exact IH].
Qed.
Lemma call_is pre h j : h0 = pre ++ h -> call side j h = zs j (number h).
Proof.
  intros E0. unfold call, zs. f_equal. apply functional_extensionality. intros b. apply functional_extensionality. intros k. unfold earlier.
  destruct (b <? number h)%nat eqn:K; [|reflexivity]. apply Nat.ltb_lt in K. rewrite E0. symmetry. now apply met_after.
Qed.
Lemma in_range pre a h : h0 = pre ++ a :: h -> (number h < B)%nat.
Proof. intros E0. pose proof (later number Mono (pre ++ [a]) h) as K. rewrite <- app_assoc in K. simpl in K. rewrite <- E0 in K. lia. Qed.
Lemma PS_parts : (forall j b, (j < J)%nat -> (b < B)%nat -> fair g (zs j b) = true) /\
  ps = map (fun j => places g (calls g B mk side j)) (seq 0 J).
Proof.
  pose proof PS as K. unfold bettors in K. destruct (forallb _ _) eqn:Fa; [|discriminate]. injection K as <-. rewrite map_map. split; [|reflexivity].
  intros j b Hj Hb. rewrite forallb_forall in Fa. specialize (Fa (calls g B mk side j) ltac:(apply in_map; apply in_seq; lia)).
  rewrite forallb_forall in Fa. apply (Fa (b, zs j b)). unfold calls, zs. apply (in_map (fun b => (b, stake g side j b (earlier b mk)))). apply in_seq. lia.
Qed.

Notation F k := (f (of_class g k)).
Notation lowR k := (Q2R (known_low g m box k)).
Definition okay (z : nat -> Z) (k : nat) : bool := stands_ok g m box z k &&
  below (kinds g) (fun q => negb (existsb (Nat.eqb k) (members g q)) || forallb (stands_ok g m box z) (members g q)).
Definition val (z : nat -> Z) (k : nat) : R := let a := Q2R (amount (z k)) in
  if okay z k then ln (1 + a / F k) else if Rlt_dec a 0 then ln (1 + a / Rmax (lowR k) (2 * - a)) else 0.
Lemma low_true k : 0 <= F k -> lowR k <= F k.
Proof.
  intros P. unfold known_low. destruct (_ && _)%bool eqn:K; [|rewrite Q2R_0; exact P]. apply andb_prop in K. destruct K as [K1 K2].
  apply Nat.ltb_lt in K1. apply Nat.eqb_eq in K2. pose proof (IN _ K1) as I. unfold inside in I. rewrite K2 in I. lra.
Qed.
Lemma stands_low z k : stands_ok g m box z k = true -> Q2R (amount (z k)) < 0 -> 2 * - Q2R (amount (z k)) <= lowR k.
Proof.
  unfold stands_ok. intros H N. apply orb_prop in H. destruct H as [H|H].
  - apply Z.leb_le, IZR_le in H. rewrite amount_R in N. pose proof stake_unit_pos. nra.
  - apply Qle_bool_R in H. rewrite Q2R_mult, Q2R_opp in H. replace (Q2R 2) with 2 in H by (unfold Q2R; simpl; lra). exact H.
Qed.
Lemma members_in q k : (q < kinds g)%nat -> In k (members g q) -> (k < classes g)%nat.
Proof.
  intros Hq Hk. pose proof CO as K. unfold classes_ok in K. apply andb_prop in K. destruct K as [_ K].
  pose proof (below_spec _ _ K q Hq) as K1. rewrite forallb_forall in K1. now apply Nat.ltb_lt, K1.
Qed.
Lemma okay_ext z y k : (k < classes g)%nat -> (forall k, (k < classes g)%nat -> z k = y k) -> okay z k = okay y k.
Proof.
  intros Hk H. unfold okay. f_equal; [unfold stands_ok; now rewrite (H k Hk)|].
  assert (G : forall n, (n <= kinds g)%nat -> below n (fun q => negb (existsb (Nat.eqb k) (members g q)) || forallb (stands_ok g m box z) (members g q)) =
    below n (fun q => negb (existsb (Nat.eqb k) (members g q)) || forallb (stands_ok g m box y) (members g q))); [|now apply G].
  induction n as [|n IH]; intros L; [reflexivity|]. simpl. rewrite IH by lia.
  assert (Q : forall l, (forall k, In k l -> (k < classes g)%nat) -> forallb (stands_ok g m box z) l = forallb (stands_ok g m box y) l).
  { induction l as [|k0 l IHl]; intros Hl; [reflexivity|]. simpl. rewrite IHl by (intros; apply Hl; simpl; auto). f_equal.
    unfold stands_ok. now rewrite (H k0) by (apply Hl; simpl; auto). }
  rewrite (Q (members g n)); [reflexivity|]. intros k0. now apply members_in.
Qed.
Lemma val_ext z y k : (k < classes g)%nat -> (forall k, (k < classes g)%nat -> z k = y k) -> val z k = val y k.
Proof. intros Hk H. unfold val. now rewrite (okay_ext z y k Hk H), (H k Hk). Qed.

(* One trial. *)
Definition line_of (j : option nat) (h : seen) (c0 : nat * nat) (o : nat) : R :=
  match j with Some j => match tag c0 o with Some k => val (call side j h) k | None => 0 end | None => 0 end.
Lemma result_label c0 o o' e : label M c0 o = Some e -> In o' (results M c0) -> exists e', label M c0 o' = Some e'.
Proof.
  unfold label, results. destruct (nth_error (table M (fst c0)) (snd c0)) as [l|]; [|discriminate].
  destruct (fst c0 <? states (shape M))%nat; [|discriminate]. intros _ Ho. apply in_seq in Ho.
  destruct (nth_error (outcomes l) o') as [x|] eqn:Y; [simpl; eauto|]. apply nth_error_None in Y. lia.
Qed.
Lemma lines_below j : In j who -> Slab.below_terms (nat * nat) nat (results M) (law M theta) (option nat) (bet side) j (line_of j) h0.
Proof.
  intros Hj pre h c0 o E0 Ho Hl. destruct j as [j|].
  2: { unfold line_of. apply Slab.partly_zero; [exact Ho|exact Hl|]. simpl. lra. }
  assert (HJ : (j < J)%nat).
  { unfold who in Hj. destruct Hj as [Hj|Hj]; [discriminate|]. apply in_map_iff in Hj. destruct Hj as (x & Ex & Hx). injection Ex as ->. apply in_seq in Hx. lia. }
  assert (E1 : h0 = (pre ++ [(c0, o)]) ++ h) by (rewrite <- app_assoc; exact E0).
  destruct (label_law c0 o Hl) as (e & Le & Lw). destruct (tag_label c0 o e KO Le) as (k & Tk & Hk & Ek & Hq).
  pose proof (proj1 PS_parts j (number h) HJ (in_range _ _ _ E0)) as Fr. rewrite <- (call_is _ _ j E1) in Fr.
  assert (Bt : forall o', bet side (Some j) h c0 o' = match tag c0 o' with Some k => Q2R (amount (call side j h k)) | None => 0 end)
    by (intros o'; unfold bet; now rewrite KO, Fr).
  assert (LF : law M theta c0 o = F k) by (rewrite Ek; exact Lw).
  unfold line_of. rewrite Tk. unfold val. set (z := call side j h) in *. set (a := Q2R (amount (z k))).
  assert (Ba : bet side (Some j) h c0 o = a) by (rewrite Bt, Tk; reflexivity).
  destruct (okay z k) eqn:OK.
  - unfold okay in OK. apply andb_prop in OK. destruct OK as [_ OK]. pose proof (below_spec _ _ OK _ Hq) as Oq. cbv beta in Oq.
    assert (Kin : existsb (Nat.eqb k) (members g (kind_of_choice g c0)) = true).
    { apply existsb_exists. exists k. split; [|apply Nat.eqb_refl]. unfold class_of in Tk. eapply nth_error_In; eauto. }
    rewrite Kin in Oq. simpl in Oq. rewrite forallb_forall in Oq.
    assert (TP : Slab.takes_part (nat * nat) nat (results M) (law M theta) (bet side (Some j)) h c0 = true).
    { unfold Slab.takes_part. apply forallb_forall. intros o' Ho'. destruct (Rlt_dec _ 0) as [N|]; [|reflexivity].
      destruct (Rle_dec _ _) as [|NL]; [reflexivity|exfalso; apply NL]. rewrite Bt in *.
      destruct (result_label c0 o o' e Le Ho') as [e' Le']. destruct (tag_label c0 o' e' KO Le') as (k' & Tk' & Hk' & Ek' & _).
      rewrite Tk' in *. assert (Fk : law M theta c0 o' = F k') by (unfold law; now rewrite Le', Ek').
      rewrite Fk. eapply Rle_trans; [apply stands_low; [apply Oq; unfold class_of in Tk'; eapply nth_error_In; eauto|exact N]|].
      apply low_true. rewrite <- Fk. apply (law_pos_all M theta T). }
    unfold Slab.term. rewrite TP, Ba, LF. lra.
  - destruct (Rlt_dec a 0) as [N|N].
    + rewrite <- Ba. apply Slab.partly_below; [exact Ho|exact Hl|rewrite Ba; exact N|]. rewrite LF. apply low_true. rewrite <- LF. lra.
    + apply Slab.partly_zero; [exact Ho|exact Hl|rewrite Ba; lra].
Qed.

(* All trials, by batch and class. *)
Fixpoint trials_of (h : seen) : list (nat * nat) :=
  match h with [] => [] | (c0, o) :: h' => match tag c0 o with Some k => (number h', k) :: trials_of h' | None => trials_of h' end end.
Lemma met_trials h b k : met tag number h b k = tallied (trials_of h) b k.
Proof.
  induction h as [|[c0 o] h IH]; simpl; [reflexivity|]. destruct (tag c0 o) as [k'|]; simpl.
  - destruct (Nat.eqb (number h) b && Nat.eqb k k'); now rewrite IH.
  - rewrite andb_false_r. exact IH.
Qed.
Lemma alive_part pre h : h0 = pre ++ h -> alive M theta h = true.
Proof. intros E0. pose proof A as K. rewrite E0 in K. clear -K. induction pre as [|[c1 o] pre IH]; simpl in K; [exact K|]. apply andb_prop in K. tauto. Qed.
Lemma total_is j : Slab.total (nat * nat) nat (line_of (Some j)) h0 =
  rsum (fun k => rsum (fun b => INR (mk b k) * val (zs j b) k) (seq 0 B)) (seq 0 (classes g)).
Proof.
  rewrite rsum_swap. transitivity (rsum (fun x => val (zs j (fst x)) (snd x)) (trials_of h0)).
  - assert (G : forall h pre, h0 = pre ++ h -> Slab.total (nat * nat) nat (line_of (Some j)) h = rsum (fun x => val (zs j (fst x)) (snd x)) (trials_of h)); [|apply (G h0 []); reflexivity].
    induction h as [|[c0 o] h IH]; intros pre E0; [reflexivity|]. assert (E1 : h0 = (pre ++ [(c0, o)]) ++ h) by (rewrite <- app_assoc; exact E0).
    cbn [Slab.total trials_of]. rewrite (IH _ E1). unfold line_of at 1. rewrite (call_is _ _ j E1). destruct (tag c0 o); [reflexivity|lra].
  - rewrite (by_kind (classes g) (fun b k => val (zs j b) k) B).
    + apply rsum_ext. intros b _. apply rsum_ext. intros k _. now rewrite met_trials.
    + assert (G : forall h pre, h0 = pre ++ h -> forall x, In x (trials_of h) -> (fst x < B)%nat /\ (snd x < classes g)%nat); [|apply (G h0 []); reflexivity].
      induction h as [|[c0 o] h IH]; intros pre E0 x Hx; [destruct Hx|]. assert (E1 : h0 = (pre ++ [(c0, o)]) ++ h) by (rewrite <- app_assoc; exact E0).
      simpl in Hx. destruct (tag c0 o) as [k|] eqn:Tk; [|now apply (IH _ E1)]. destruct Hx as [<-|Hx]; [|now apply (IH _ E1)]. simpl.
      split; [apply (in_range _ _ _ E0)|]. pose proof (alive_part _ _ E0) as Al. cbn [alive] in Al. apply andb_prop in Al. destruct Al as [Al _].
      destruct (Rlt_dec 0 _) as [LP|]; [|discriminate]. destruct (label_law c0 o LP) as (e & Le & _).
      destruct (tag_label c0 o e KO Le) as (k' & Tk' & Hk & _). congruence.
Qed.
Lemma met_chance b k : (0 < mk b k)%nat -> 0 < F k.
Proof.
  intros Mb. destruct (met_alive M theta number tag h0 b k A Mb) as (c0 & o & Tk & LP). destruct (label_law c0 o LP) as (e & Le & Lw).
  destruct (tag_label c0 o e KO Le) as (k' & Tk' & _ & Ek & _). rewrite Tk in Tk'. injection Tk' as <-. rewrite Ek, <- Lw. exact LP.
Qed.

(* What the checker takes for it. *)
Definition worth_of (k : nat) (l : list placement) : R := rsum (fun q : placement => rsum (fun b => INR (mk b k) * val (snd q) k) (fst q)) l.
Lemma value_val k j i z : 0 < F k -> surely_in g m box w j i z = true -> (k < classes g)%nat -> forall t,
  value_of (lowR k) (F k) (Entry (sure w j i k) t (amount (z k))) <= val z k.
Proof.
  intros P SI Hk t. unfold value_of, val. cbn [certain stands]. set (a := Q2R (amount (z k))). unfold surely_in in SI. apply andb_prop in SI.
  destruct SI as [S1 S2]. pose proof (below_spec _ _ S2 k Hk) as S3. cbv beta in S3. destruct (sure w j i k) eqn:SU.
  - simpl in S3. assert (OK : okay z k = true); [|rewrite OK; lra]. unfold okay. rewrite S3. simpl.
    assert (G : forall n, below n (fun q => forallb (fun k => negb (sure w j i k)) (members g q) || forallb (stands_ok g m box z) (members g q)) = true ->
      below n (fun q => negb (existsb (Nat.eqb k) (members g q)) || forallb (stands_ok g m box z) (members g q)) = true); [|now apply G].
    induction n as [|n IH]; simpl; [reflexivity|]. intros Hn. match type of Hn with (if ?b then _ else _) = _ => destruct b eqn:H1; [|discriminate] end.
    rewrite (IH Hn). apply orb_prop in H1. destruct H1 as [H1|H1]; [|now rewrite H1, orb_true_r].
    destruct (existsb (Nat.eqb k) (members g n)) eqn:X; [|reflexivity]. apply existsb_exists in X. destruct X as (k' & X1 & X2). apply Nat.eqb_eq in X2. subst k'.
    rewrite forallb_forall in H1. specialize (H1 k X1). rewrite SU in H1. discriminate.
  - destruct (okay z k) eqn:OK; [|lra]. unfold okay in OK. apply andb_prop in OK. destruct OK as [OK _]. destruct (Rlt_dec a 0) as [N|N].
    + pose proof (stands_low z k OK N) as SL. fold a in SL. pose proof (low_true k ltac:(lra)) as LT. rewrite Rmax_left by lra.
      assert (PP : 0 < 1 + a / lowR k).
      { replace (1 + a / lowR k) with ((lowR k + a) / lowR k) by (field; lra). apply Rdiv_lt_0_compat; lra. }
      assert (LE : a / lowR k <= a / F k) by (assert (/ F k <= / lowR k) by (apply Rinv_le_contravar; lra); unfold Rdiv; nra).
      destruct (Req_dec (a / lowR k) (a / F k)) as [->|]; [lra|]. left. apply ln_increasing; lra.
    + assert (0 <= a / F k) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
      rewrite <- ln_1. destruct (Req_dec (a / F k) 0) as [->|]; [rewrite Rplus_0_r; lra|]. left. apply ln_increasing; lra.
Qed.
Lemma entries_low k j n : (k < classes g)%nat -> forall l i, foralli (fun i x => surely_in g m box w j i (snd x)) i l = true ->
  rsum (fun x => INR (often x) * value_of (lowR k) (F k) x) (entries_of mk w k j i n l) <= INR n * worth_of k l.
Proof.
  intros Hk. induction l as [|[bs z] l IH]; intros i H; [simpl; unfold worth_of; simpl; lra|]. cbn [foralli snd] in H. apply andb_prop in H. destruct H as [H1 H2].
  specialize (IH (S i) H2). unfold worth_of in *. cbn [rsum fst snd entries_of]. rewrite sumn_R. set (t := sumn (fun b => mk b k) bs) in *.
  destruct (zeros (z k)) eqn:Zz.
  - assert (V0 : val z k = 0); [|rewrite V0; lra]. unfold zeros in Zz. apply same_z_eq in Zz. unfold val. rewrite Zz, amount_R, Rmult_0_l.
    destruct (okay z k); [unfold Rdiv; rewrite Rmult_0_l, Rplus_0_r; apply ln_1|]. destruct (Rlt_dec 0 0); lra.
  - destruct (Nat.eqb (n * t) 0) eqn:Z0.
    + apply Nat.eqb_eq in Z0. assert (INR n * (INR t * val z k) = 0); [|lra]. rewrite <- Rmult_assoc, <- mult_INR, Z0. simpl. lra.
    + apply Nat.eqb_neq in Z0. cbn [rsum often]. rewrite mult_INR.
      assert (FP : 0 < F k).
      { assert (TP : (0 < t)%nat) by lia. unfold t in TP. clear -TP A KO T Mono. assert (G : exists b, (0 < mk b k)%nat).
        { induction bs as [|b bs IHb]; simpl in TP; [lia|]. destruct (mk b k) eqn:Mb; [apply IHb; exact TP|exists b; lia]. }
        destruct G as [b Hb]. now apply (met_chance b). }
      pose proof (value_val k j i z FP H1 Hk (n * t)%nat) as V. pose proof (pos_INR n). pose proof (pos_INR t).
      assert (0 <= INR n * INR t) by now apply Rmult_le_pos.
      assert (INR n * INR t * value_of (lowR k) (F k) (Entry (sure w j i k) (n * t) (amount (z k))) <= INR n * INR t * val z k) by (apply Rmult_le_compat_l; assumption).
      lra.
Qed.
Lemma entries_all k : (k < classes g)%nat -> forall ns j l, surely g m box w j ns l = true ->
  rsum (fun x => INR (often x) * value_of (lowR k) (F k) x) (entries mk w k j ns l) <=
  zip ns (seq 0 (length l)) (fun i => worth_of k (nth i l [])).
Proof.
  intros Hk. induction ns as [|n ns IH]; intros j [|q l] H; try (simpl; lra). cbn [surely] in H. apply andb_prop in H. destruct H as [H1 H2].
  cbn [entries length]. rewrite rsum_app. rewrite <- cons_seq. cbn [zip nth]. rewrite zip_shift. specialize (IH (S j) l H2). cbn [nth].
  apply Rplus_le_compat; [|exact IH]. destruct (Nat.eqb n 0) eqn:N.
  - apply Nat.eqb_eq in N. subst n. simpl. lra.
  - simpl in H1. now apply entries_low.
Qed.
Lemma entries_nz k : forall ns j l x, In x (entries mk w k j ns l) -> Q2R (stands x) <> 0 /\ exists b, (0 < mk b k)%nat.
Proof.
  induction ns as [|n ns IH]; intros j [|q l] x Hx; simpl in Hx; try tauto. apply in_app_or in Hx. destruct Hx as [Hx|Hx]; [|now apply (IH (S j) l)].
  destruct (Nat.eqb n 0); [destruct Hx|].
  assert (G : forall i, In x (entries_of mk w k j i n q) -> Q2R (stands x) <> 0 /\ exists b, (0 < mk b k)%nat); [|now apply (G 0%nat)].
  clear Hx. induction q as [|[bs z] q IHq]; intros i Hx; [destruct Hx|]. cbn [entries_of] in Hx.
  destruct (zeros (z k)) eqn:Zz; [now apply (IHq (S i))|]. destruct (Nat.eqb _ 0) eqn:Z0; [now apply (IHq (S i))|]. destruct Hx as [<-|Hx]; [|now apply (IHq (S i))].
  cbn [stands]. apply Nat.eqb_neq in Z0. split.
  - intros Y. rewrite amount_R in Y. pose proof stake_unit_pos. destruct (Rmult_integral _ _ Y) as [Y1|Y1]; [|lra].
    apply eq_IZR in Y1. rewrite Y1 in Zz. discriminate.
  - clear -Z0. induction bs as [|b bs IHb]; simpl in Z0; [lia|]. destruct (mk b k) eqn:Mb; [apply IHb; simpl in Z0; exact Z0|exists b; lia].
Qed.
Notation kappa e := (if Qeq_bool (guard w) 0 then 0%Q else Qmult (guard w) (inject_Z (weight_of_log e (snd known)))).
Notation ks e0 n := (map (fun e => filter (fun k => Nat.eqb (of_class g k) e) (seq 0 (classes g))) (seq e0 n)).
Notation brought e := (rsum (fun k => rsum (fun x => INR (often x) * value_of (lowR k) (F k) x) (entries mk w k 0 (portions w) ps))
  (filter (fun k => Nat.eqb (of_class g k) e) (seq 0 (classes g)))).
Lemma kappa_R e : Q2R (kappa e) = Q2R (guard w) * IZR (weight_of_log e (snd known)).
Proof.
  destruct (Qeq_bool (guard w) 0) eqn:Z; [apply Qeq_bool_eq, Qeq_eqR in Z; rewrite Z, Q2R_0; lra|]. now rewrite Q2R_mult, inject_R.
Qed.
Lemma lines_true n : forall e0 h q, lines M mk c m box w (snd known) e0 (ks e0 n) ps = Some (h, q) ->
  Q2R h + U * poly_at theta q <= U * rsum (fun e => brought e - Q2R (kappa e) * ln (f e)) (seq e0 n).
Proof.
  induction n as [|n IH]; intros e0 h q H; cbn [seq map lines] in H; [injection H as <- <-; simpl; rewrite Q2R_0; lra|].
  destruct (lines _ _ _ _ _ _ _ (S e0) _ ps) as [[h' q']|] eqn:L; [|discriminate]. specialize (IH _ _ _ L). cbn [seq rsum].
  set (own := filter (fun k => Nat.eqb (of_class g k) e0) (seq 0 (classes g))) in *.
  set (xs := flat_map (fun k => entries mk w k 0 (portions w) ps) own) in *. rewrite Rmult_plus_distr_l.
  assert (OF : forall k, In k own -> of_class g k = e0 /\ (k < classes g)%nat).
  { intros k Hk. unfold own in Hk. apply filter_In in Hk. destruct Hk as [Hk He]. apply Nat.eqb_eq in He. apply in_seq in Hk. split; [exact He|lia]. }
  destruct ((match xs with [] => true | _ => false end) && Qeq_bool (kappa e0) 0)%bool eqn:Em.
  - injection H as <- <-. apply andb_prop in Em. destruct Em as [E1 E2]. apply Qeq_bool_eq, Qeq_eqR in E2. rewrite E2, Q2R_0.
    assert (Z : rsum (fun k => rsum (fun x => INR (often x) * value_of (lowR k) (F k) x) (entries mk w k 0 (portions w) ps)) own = 0).
    { apply rsum_zero. intros k Hk. assert (N : entries mk w k 0 (portions w) ps = []).
      { destruct (entries mk w k 0 (portions w) ps) as [|x r] eqn:Ex; [reflexivity|exfalso]. assert (Ix : In x xs) by (unfold xs; apply in_flat_map; exists k; rewrite Ex; simpl; auto).
        destruct xs; [destruct Ix|discriminate]. }
      rewrite N. reflexivity. }
    rewrite Z. lra.
  - destruct (line c m box w e0 xs (kappa e0)) as [y|] eqn:Ln; [|discriminate]. injection H as <- <-.
    assert (Bx : (e0 < m)%nat /\ of_expr (box e0) = e0).
    { pose proof Ln as K. unfold line in K. cbv zeta in K. destruct (negb _) eqn:G in K; [discriminate|]. apply negb_false_iff in G.
      repeat (apply andb_prop in G; destruct G as [G _]). apply Nat.ltb_lt in G. split; [exact G|].
      pose proof Ln as K'. unfold line in K'. cbv zeta in K'. destruct (negb _) eqn:G' in K'; [discriminate|]. apply negb_false_iff in G'.
      do 4 (apply andb_prop in G'; destruct G' as [G' _]). apply andb_prop in G'. destruct G' as [_ G']. now apply Nat.eqb_eq. }
    destruct Bx as [B1 B2]. pose proof (IN e0 B1) as I. unfold inside in I. rewrite B2 in I.
    assert (NZx : forall x, In x xs -> Q2R (stands x) <> 0 /\ 0 < f e0).
    { intros x Hx. unfold xs in Hx. apply in_flat_map in Hx. destruct Hx as (k & Hk & Hx). destruct (entries_nz k _ _ _ _ Hx) as [N [b Hb]].
      split; [exact N|]. rewrite <- (proj1 (OF k Hk)). now apply (met_chance b). }
    assert (FP : 0 < f e0).
    { destruct xs as [|x r] eqn:Ex; [|apply (NZx x); simpl; auto]. simpl in Em.
      assert (NW : weight_of_log e0 (snd known) <> 0%Z).
      { intros Z. assert (Q2R (kappa e0) = 0) by (rewrite kappa_R, Z; lra). apply Bool.not_true_iff_false in Em. apply Em.
        apply Qeq_bool_iff. apply eqR_Qeq. now rewrite Q2R_0. }
      destruct (weight_in _ _ NW) as [kk Hk]. now apply (proj2 EV e0 kk). }
    pose proof (line_sound c m box w e0 xs (kappa e0) y (f e0) Ln FP I (fun x Hx => proj1 (NZx x Hx))) as LS.
    assert (W : weighs (value_of (Q2R (blo (box e0))) (f e0)) xs = rsum (fun k => rsum (fun x => INR (often x) * value_of (lowR k) (F k) x) (entries mk w k 0 (portions w) ps)) own).
    { unfold weighs, xs. rewrite rsum_flat. apply rsum_ext. intros k Hk. destruct (OF k Hk) as [O1 _]. unfold known_low. rewrite O1.
      apply Nat.ltb_lt in B1. rewrite B1, B2, Nat.eqb_refl. reflexivity. }
    rewrite W in LS. rewrite Q2R_plus, plus_at. lra.
Qed.

Theorem wagered_true : Q2R (alpha g) * owned side h0 < 1 ->
  wagered M E g mk c m box w (snd known) (fst known) ps (of_expressions E g) = Some p -> 0 <= poly_at theta p.
Proof.
  intros Poor H. unfold wagered in H. set (all := fold_right Nat.add 0%nat (portions w)) in *. destruct (negb _) eqn:G; [discriminate|]. apply negb_false_iff in G.
  apply andb_prop in G. destruct G as [G SU]. apply andb_prop in G. destruct G as [G WS]. apply andb_prop in G. destruct G as [G G0].
  apply andb_prop in G. destruct G as [GA GL]. apply Nat.ltb_lt in GA. apply Nat.leb_le in GL. apply Qle_bool_R in G0. rewrite Q2R_0 in G0.
  rewrite forallb_forall in WS. assert (WS' : forall x, In x (snd known) -> (fst x < E)%nat) by (intros x Hx; now apply Nat.ltb_lt, WS).
  destruct (logs c all (alpha g)) as [x|] eqn:Lx; [|discriminate]. destruct (costs c all (portions w) (weights g)) as [y|] eqn:Ly; [|discriminate].
  destruct (lines _ _ _ _ _ _ _ _ _ _) as [[h q]|] eqn:Ll; [|discriminate]. destruct (Qle_bool _ _) eqn:Fin; [|discriminate]. apply Some_inj in H. subst p.
  apply Qle_bool_R in Fin. rewrite Q2R_opp, !Q2R_plus, !Q2R_mult, units_R, !inject_R, plus_IZR in Fin.
  unfold of_expressions in Ll. apply lines_true in Ll. pose proof (logs_sound _ _ _ _ Lx GA) as AP. apply logs_low in Lx.
  destruct (costs_low c all (weights g) GA (portions w) y Ly) as [Cl Cp]. pose proof unit_pos as UP.
  assert (AR : 0 < INR all) by now apply lt_0_INR. destruct (weights_sound _ _ WO) as [_ W0].
  (* Jensen's inequality *)
  set (part := fun j : option nat => match j with None => 0 | Some j => INR (nth j (portions w) 0%nat) / INR all end).
  assert (SR := Slab.slab_rows (nat * nat) nat (results M) (law M theta) (option nat) who share (bet side) share_pos line_of part h0 (Q2R (alpha g))).
  assert (Poss : Slab.possible (nat * nat) nat (results M) (law M theta) h0).
  { clear -A T. induction h0 as [|[c0 o] h IH]; [exact I|]. cbn [alive] in A. apply andb_prop in A. destruct A as [A1 A2]. simpl.
    destruct (Rlt_dec 0 (law M theta c0 o)) as [LP|]; [|discriminate]. split; [|split; [exact LP|now apply IH] ].
    unfold law, label in LP. unfold results. destruct (nth_error (table M (fst c0)) (snd c0)) as [l|]; [|lra].
    destruct (fst c0 <? states (shape M))%nat; [|lra]. destruct (nth_error (outcomes l) o) as [z|] eqn:Z; [|simpl in LP; lra].
    apply in_seq. split; [lia|]. simpl. apply nth_error_Some. congruence. }
  specialize (SR lines_below Poss).
  specialize (SR ltac:(intros [j|] _; unfold part; [apply Rmult_le_pos; [apply pos_INR|left; now apply Rinv_0_lt_compat]|lra])).
  assert (InJ : forall j, In (Some j) who -> (j < J)%nat).
  { intros j Hj. unfold who in Hj. destruct Hj as [Hj|Hj]; [discriminate|]. apply in_map_iff in Hj. destruct Hj as (z & Ez & Hz). injection Ez as ->. apply in_seq in Hz. lia. }
  specialize (SR ltac:(intros [j|] Hj Hp; unfold part, share in *; [|lra]; rewrite WO;
    apply (Cp j (InJ j Hj)); [|apply W0]; destruct (nth j (portions w) 0%nat); [simpl in Hp; lra|lia])).
  assert (P1 : rsum part who = 1).
  { unfold who. cbn [rsum]. rewrite rsum_map. unfold part.
    rewrite (rsum_ext _ (fun j => / INR all * (INR (nth j (portions w) 0%nat) * 1))) by (intros; lra).
    rewrite rsum_scal, zip_nth, zip_one by exact GL. fold all. field. lra. }
  assert (Poor' : Q2R (alpha g) * Slab.together (nat * nat) nat (results M) (law M theta) (option nat) who share (bet side) h0 < 1).
  { unfold owned, together_of in Poor. now rewrite A in Poor. }
  specialize (SR P1 AP Poor'). unfold who in SR. cbn [rsum] in SR. rewrite rsum_map in SR. unfold part at 1 in SR. rewrite Rmult_0_l, Rplus_0_l in SR.
  assert (SR2 : rsum (fun j => INR (nth j (portions w) 0%nat) * Slab.total (nat * nat) nat (line_of (Some j)) h0) (seq 0 J) +
    rsum (fun j => INR (nth j (portions w) 0%nat) * ln (Q2R (nth j (weights g) 0%Q) * (INR all / INR (nth j (portions w) 0%nat)))) (seq 0 J) < - (INR all * ln (Q2R (alpha g)))).
  { rewrite <- rsum_add. apply (Rmult_lt_compat_l (INR all)) in SR; [|exact AR]. rewrite <- rsum_scal in SR.
    rewrite (rsum_ext (fun j => INR (nth j (portions w) 0%nat) * Slab.total (nat * nat) nat (line_of (Some j)) h0 + _)
      (fun a => INR all * (part (Some a) * (Slab.total (nat * nat) nat (line_of (Some a)) h0 + ln (share (Some a) / part (Some a)))))); [lra|].
    intros j _. unfold part, share. rewrite WO. set (nj := nth j (portions w) 0%nat). destruct (Nat.eq_dec nj 0) as [Z|Z].
    - rewrite Z. simpl INR. unfold Rdiv. rewrite !Rmult_0_l. lra.
    - assert (NP : 0 < INR nj) by (apply lt_0_INR; lia).
      replace (Q2R (nth j (weights g) 0%Q) / (INR nj / INR all)) with (Q2R (nth j (weights g) 0%Q) * (INR all / INR nj)) by (field; lra). field. lra. }
  clear SR.
  (* what the checker takes for the sum *)
  assert (Sum : rsum (fun e => brought e) (seq 0 E) <=
    rsum (fun j => INR (nth j (portions w) 0%nat) * Slab.total (nat * nat) nat (line_of (Some j)) h0) (seq 0 J)).
  { rewrite <- (parted (fun k => rsum (fun x => INR (often x) * value_of (lowR k) (F k) x) (entries mk w k 0 (portions w) ps)) (of_class g) E (seq 0 (classes g))).
    2: { intros k Hk. apply in_seq in Hk. pose proof CO as K. unfold classes_ok in K. apply andb_prop in K. destruct K as [K _].
         apply Nat.ltb_lt. apply (below_spec _ _ K k). lia. }
    destruct PS_parts as [_ EP]. assert (LP : length ps = J) by (rewrite EP, map_length, seq_length; reflexivity).
    apply Rle_trans with (rsum (fun k => rsum (fun j => INR (nth j (portions w) 0%nat) * worth_of k (nth j ps [])) (seq 0 J)) (seq 0 (classes g))).
    - apply rsum_le. intros k Hk. apply in_seq in Hk. rewrite zip_nth by exact GL. rewrite <- LP. apply entries_all; [lia|exact SU].
    - rewrite rsum_swap. right. apply rsum_ext. intros j Hj. apply in_seq in Hj. rewrite rsum_scal. f_equal. rewrite total_is. apply rsum_ext. intros k Hk. apply in_seq in Hk.
      rewrite EP. rewrite (nth_indep _ [] (places g (calls g B mk side 0))) by (rewrite map_length, seq_length; lia).
      rewrite (map_nth (fun j => places g (calls g B mk side j))), seq_nth by lia. simpl plus. unfold worth_of.
      rewrite <- (places_sum g (fun b z => INR (mk b k) * val z k)).
      + unfold calls. rewrite rsum_map. apply rsum_ext. intros b _. reflexivity.
      + intros b z z' Hz. f_equal. apply val_ext; [lia|exact Hz]. }
  assert (Evi : IZR (fst known) <= U * rsum (fun e => IZR (weight_of_log e (snd known)) * ln (f e)) (seq 0 E)).
  { destruct EV as [EV1 _]. rewrite (weight_sum (fun e => ln (f e)) E (snd known) WS') in EV1. exact EV1. }
  assert (Split : rsum (fun e => brought e - Q2R (kappa e) * ln (f e)) (seq 0 E) =
    rsum (fun e => brought e) (seq 0 E) - Q2R (guard w) * rsum (fun e => IZR (weight_of_log e (snd known)) * ln (f e)) (seq 0 E)).
  { rewrite rsum_minus, <- rsum_scal. f_equal. apply rsum_ext. intros e _. rewrite kappa_R. lra. }
  rewrite Split in Ll. clear Split.
  rewrite plus_at, constant_at. replace (Q2R (-1)) with (-1) by (unfold Q2R; simpl; lra).
  set (ell := rsum (fun e => IZR (weight_of_log e (snd known)) * ln (f e)) (seq 0 E)) in *.
  apply (Rmult_le_compat_l (Q2R (guard w))) in Evi; [|exact G0].
  set (brings := rsum (fun e => brought e) (seq 0 E)) in *.
  set (tot := rsum (fun j => INR (nth j (portions w) 0%nat) * Slab.total (nat * nat) nat (line_of (Some j)) h0) (seq 0 J)) in *.
  set (cost := rsum (fun j => INR (nth j (portions w) 0%nat) * ln (Q2R (nth j (weights g) 0%Q) * (INR all / INR (nth j (portions w) 0%nat)))) (seq 0 J)) in *.
  assert (UB : U * brings <= U * tot) by (apply Rmult_le_compat_l; lra).
  assert (UT : U * (tot + cost) <= U * - (INR all * ln (Q2R (alpha g)))) by (apply Rmult_le_compat_l; lra).
  assert (Fi : U * poly_at theta q <= U * Q2R (most w)); [lra|]. apply (Rmult_le_reg_l U) in Fi; [|exact UP]. lra.
Qed.
End Rows.
End Truth.
(* Where no side won too much, all of its rows are right. *)
Theorem bets_are_right M theta E g number h c d3 known all ks : instance M theta -> (forall a h, (number h <= number (a :: h))%nat) ->
  prepared M E g (S (number h)) (met (class_of g) number h) d3 = Some (all, ks) -> evident M theta known ->
  (forall side, (side < parties g)%nat -> Q2R (alpha g) * owned M theta g number side h < 1) ->
  bets_hold M theta (bets_say M E g (met (class_of g) number h) c known all ks).
Proof.
  intros T Mono P EV Poor m box w p IN H. unfold bets_say in H. destruct (nth_error all (of_side w)) as [ps|] eqn:Ns; [|discriminate].
  unfold prepared in P. destruct (Nat.eqb (parties g) 0) eqn:Z; [injection P as <- <-; destruct (of_side w); discriminate|].
  destruct (_ && _)%bool eqn:C; [|discriminate]. destruct (all_sides _ _ _ _) as [l|] eqn:Al; [|discriminate]. injection P as <- <-.
  apply andb_prop in C. destruct C as [C _]. apply andb_prop in C. destruct C as [C C4]. apply andb_prop in C. destruct C as [C C3].
  apply andb_prop in C. destruct C as [C1 C2]. apply Qltb_R in C4. rewrite Q2R_0 in C4.
  destruct (all_sides_nth _ _ _ _ _ Al _ _ Ns) as [Hs Bs]. specialize (Poor _ Hs).
  assert (A : alive M theta h = true).
  { destruct (alive M theta h) eqn:Ah; [reflexivity|exfalso]. unfold owned in Poor. rewrite Ah, Rinv_r in Poor; lra. }
  apply (wagered_true M theta E g number T Mono c m box w known h (of_side w) ps p A C1 C2 C3 Bs EV IN Poor H).
Qed.
