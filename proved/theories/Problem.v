(* BELIEVED. What a certificate of a value is about, and what it says. *)
From Coq Require Import List Bool Arith QArith Qreals Reals.
From Proved Require Import Game.
Import ListNotations.

Inductive kind := Until | Next | Reach_reward | Cumulative | Total | Discounted | Average.
(* States are 0 .. states-1; [rows s] are the choices of s. [first] and [last] bound the steps of Until (last also those of
   Cumulative; Next has one); [factor] is the discount, 1 for all other kinds. *)
Record problem := Problem {
  states : nat; initial : nat; rows : nat -> list choice; kind_of : kind;
  target : nat -> bool; allowed : nat -> bool; terminal : nat -> Q; first : nat; last : option nat; factor : Q }.

Definition ends_of (p : problem) (j s : nat) : option Q :=
  match kind_of p with
  | Until => if target p s && (first p <=? j)%nat then Some 1%Q else if allowed p s then None else Some 0%Q
  | Next => if target p s && (1 <=? j)%nat then Some 1%Q else None
  | Reach_reward => if target p s then Some (terminal p s) else None
  | Cumulative | Total | Discounted | Average => None
  end.
Definition game_of (p : problem) : game := Game (states p) (fun _ s => rows p s) (ends_of p) (factor p).
(* From this step on nothing depends on the step; it is the last one, where there is one. *)
Definition horizon (p : problem) : nat := match last p with Some k => k | None => first p end.

(* Who wants what: [nature_is = None] is a nature that nobody knows (bounds hold for all she may do). Without a policy the
   agent is free. *)
Record question := Question {
  agent_max : bool; nature_is : option bool; policy : option (nat -> nat -> rule) }.
Definition pol_of (p : problem) (q : question) (j s : nat) : rule :=
  match policy q with Some f => f (Nat.min j (horizon p)) s | None => Any end.

Open Scope R_scope.
(* The value of a play: after [last] steps; or the limit; or that of the average of the first k steps. A reward until a target is
   infinite if the target may be missed. *)
Definition low_means (p : problem) (f m : nat -> R) (b : option Q) : Prop :=
  match last p, kind_of p with
  | Some k, _ => match b with Some b => Q2R b <= f k | None => False end
  | None, Reach_reward => vanishes m -> at_least f b
  | None, Average => at_least (fun k => f k / INR k) b
  | None, _ => at_least f b
  end.
Definition high_means (p : problem) (f m : nat -> R) (b : Q) : Prop :=
  match last p, kind_of p with
  | Some k, _ => f k <= Q2R b
  | None, Reach_reward => vanishes m /\ at_most f b
  | None, Average => at_most (fun k => f k / INR k) b
  | None, _ => at_most f b
  end.
Definition worth (p : problem) (means : (nat -> R) -> (nat -> R) -> Prop) (P : play) : Prop :=
  means (fun k => value (game_of p) P k [] (initial p)) (fun k => missed (game_of p) P k [] (initial p)).

(* Those who want a bound ([max]: the maximisers) can make sure of it, whatever the others do. *)
Definition guaranteed (p : problem) (q : question) (max : bool) (worth : play -> Prop) : Prop :=
  let A := legal_agent (game_of p) (pol_of p q) in
  let N := legal_nature (game_of p) in
  (exists a, A a) /\ (exists n, N n) /\
  match (match policy q with None => Bool.eqb (agent_max q) max | Some _ => false end),
        (match nature_is q with Some m => Bool.eqb m max | None => false end) with
  | true, true => exists a n, A a /\ N n /\ worth (Play a n)
  | true, false => exists a, A a /\ forall n, N n -> worth (Play a n)
  | false, true => exists n, N n /\ forall a, A a -> worth (Play a n)
  | false, false => forall a n, A a -> N n -> worth (Play a n)
  end.

(* lower <= value <= upper; of a complement, lower <= 1 - value <= upper. None is +oo. *)
Definition less (b : option Q) : option Q := option_map (fun b => Qminus 1 b) b.
Definition stated (p : problem) (q : question) (complement : bool) (lower upper : option Q) : Prop :=
  let (l, u) := if complement then (less upper, less lower) else (lower, upper) in
  guaranteed p q true (worth p (fun f m => low_means p f m l)) /\
  match u with Some u => guaranteed p q false (worth p (fun f m => high_means p f m u)) | None => True end.
