
(** val option_map : ('a1 -> 'a2) -> 'a1 option -> 'a2 option **)

let option_map f = function
| Some a -> Some (f a)
| None -> None

(** val fst : ('a1 * 'a2) -> 'a1 **)

let fst = function
| (x0, _) -> x0

(** val snd : ('a1 * 'a2) -> 'a2 **)

let snd = function
| (_, y) -> y

(** val length : 'a1 list -> int **)

let rec length = function
| [] -> 0
| _ :: l' -> Stdlib.Int.succ (length l')

(** val app : 'a1 list -> 'a1 list -> 'a1 list **)

let rec app l m =
  match l with
  | [] -> m
  | a :: l1 -> a :: (app l1 m)

type comparison =
| Eq
| Lt
| Gt

(** val compOpp : comparison -> comparison **)

let compOpp = function
| Eq -> Eq
| Lt -> Gt
| Gt -> Lt

(** val add : int -> int -> int **)

let rec add = (+)

(** val mul : int -> int -> int **)

let rec mul = ( * )

(** val sub : int -> int -> int **)

let rec sub = fun n m -> Stdlib.max 0 (n-m)

(** val eqb : bool -> bool -> bool **)

let eqb b1 b2 =
  if b1 then b2 else if b2 then false else true

module Nat =
 struct
  (** val add : int -> int -> int **)

  let rec add n m =
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> m)
      (fun p -> Stdlib.Int.succ (add p m))
      n
 end

module Pos =
 struct
  (** val succ : Exact.I.t -> Exact.I.t **)

  let rec succ x0 =
    (fun _ _ _ _ -> assert false)
      (fun p -> Exact.twice (succ p))
      (fun p -> Exact.twice_one p)
      (fun _ -> Exact.twice Exact.I.one)
      x0

  (** val add : Exact.I.t -> Exact.I.t -> Exact.I.t **)

  let rec add x0 y =
    (fun _ _ _ _ -> assert false)
      (fun p ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> Exact.twice (add_carry p q0))
        (fun q0 -> Exact.twice_one (add p q0))
        (fun _ -> Exact.twice (succ p))
        y)
      (fun p ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> Exact.twice_one (add p q0))
        (fun q0 -> Exact.twice (add p q0))
        (fun _ -> Exact.twice_one p)
        y)
      (fun _ ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> Exact.twice (succ q0))
        (fun q0 -> Exact.twice_one q0)
        (fun _ -> Exact.twice Exact.I.one)
        y)
      x0

  (** val add_carry : Exact.I.t -> Exact.I.t -> Exact.I.t **)

  and add_carry x0 y =
    (fun _ _ _ _ -> assert false)
      (fun p ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> Exact.twice_one (add_carry p q0))
        (fun q0 -> Exact.twice (add_carry p q0))
        (fun _ -> Exact.twice_one (succ p))
        y)
      (fun p ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> Exact.twice (add_carry p q0))
        (fun q0 -> Exact.twice_one (add p q0))
        (fun _ -> Exact.twice (succ p))
        y)
      (fun _ ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> Exact.twice_one (succ q0))
        (fun q0 -> Exact.twice (succ q0))
        (fun _ -> Exact.twice_one Exact.I.one)
        y)
      x0

  (** val pred_double : Exact.I.t -> Exact.I.t **)

  let rec pred_double x0 =
    (fun _ _ _ _ -> assert false)
      (fun p -> Exact.twice_one (Exact.twice p))
      (fun p -> Exact.twice_one (pred_double p))
      (fun _ -> Exact.I.one)
      x0

  (** val iter : ('a1 -> 'a1) -> 'a1 -> Exact.I.t -> 'a1 **)

  let rec iter f x0 n =
    (fun _ _ _ _ -> assert false)
      (fun n' -> f (iter f (iter f x0 n') n'))
      (fun n' -> iter f (iter f x0 n') n')
      (fun _ -> f x0)
      n

  (** val div2 : Exact.I.t -> Exact.I.t **)

  let div2 p =
    (fun _ _ _ _ -> assert false)
      (fun p0 -> p0)
      (fun p0 -> p0)
      (fun _ -> Exact.I.one)
      p

  (** val div2_up : Exact.I.t -> Exact.I.t **)

  let div2_up p =
    (fun _ _ _ _ -> assert false)
      (fun p0 -> succ p0)
      (fun p0 -> p0)
      (fun _ -> Exact.I.one)
      p

  (** val compare_cont :
      comparison -> Exact.I.t -> Exact.I.t -> comparison **)

  let rec compare_cont r x0 y =
    (fun _ _ _ _ -> assert false)
      (fun p ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> compare_cont r p q0)
        (fun q0 -> compare_cont Gt p q0)
        (fun _ -> Gt)
        y)
      (fun p ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> compare_cont Lt p q0)
        (fun q0 -> compare_cont r p q0)
        (fun _ -> Gt)
        y)
      (fun _ ->
      (fun _ _ _ _ -> assert false)
        (fun _ -> Lt)
        (fun _ -> Lt)
        (fun _ -> r)
        y)
      x0

  (** val compare : Exact.I.t -> Exact.I.t -> comparison **)

  let compare =
    compare_cont Eq

  (** val of_succ_nat : int -> Exact.I.t **)

  let rec of_succ_nat n =
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> Exact.I.one)
      (fun x0 -> succ (of_succ_nat x0))
      n
 end

(** val nth : int -> 'a1 list -> 'a1 -> 'a1 **)

let rec nth n l default =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> match l with
              | [] -> default
              | x0 :: _ -> x0)
    (fun m -> match l with
              | [] -> default
              | _ :: t -> nth m t default)
    n

(** val nth_error : 'a1 list -> int -> 'a1 option **)

let rec nth_error l n =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> match l with
              | [] -> None
              | x0 :: _ -> Some x0)
    (fun n0 -> match l with
               | [] -> None
               | _ :: l0 -> nth_error l0 n0)
    n

(** val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list **)

let rec map f = function
| [] -> []
| a :: t -> (f a) :: (map f t)

(** val flat_map : ('a1 -> 'a2 list) -> 'a1 list -> 'a2 list **)

let rec flat_map f = function
| [] -> []
| x0 :: t -> app (f x0) (flat_map f t)

(** val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1 **)

let rec fold_right f a0 = function
| [] -> a0
| b :: t -> f b (fold_right f a0 t)

(** val existsb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec existsb f = function
| [] -> false
| a :: l0 -> (||) (f a) (existsb f l0)

(** val forallb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec forallb f = function
| [] -> true
| a :: l0 -> (&&) (f a) (forallb f l0)

(** val filter : ('a1 -> bool) -> 'a1 list -> 'a1 list **)

let rec filter f = function
| [] -> []
| x0 :: l0 -> if f x0 then x0 :: (filter f l0) else filter f l0

(** val seq : int -> int -> int list **)

let rec seq start len =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> [])
    (fun len0 -> start :: (seq (Stdlib.Int.succ start) len0))
    len

module Z =
 struct
  (** val double : Exact.I.t -> Exact.I.t **)

  let double x0 =
    (fun _ _ _ _ -> assert false)
      (fun _ -> Exact.I.zero)
      (fun p -> (fun p -> p) (Exact.twice p))
      (fun p -> Exact.I.neg (Exact.twice p))
      x0

  (** val succ_double : Exact.I.t -> Exact.I.t **)

  let succ_double x0 =
    (fun _ _ _ _ -> assert false)
      (fun _ -> (fun p -> p) Exact.I.one)
      (fun p -> (fun p -> p) (Exact.twice_one p))
      (fun p -> Exact.I.neg (Pos.pred_double p))
      x0

  (** val pred_double : Exact.I.t -> Exact.I.t **)

  let pred_double x0 =
    (fun _ _ _ _ -> assert false)
      (fun _ -> Exact.I.neg Exact.I.one)
      (fun p -> (fun p -> p) (Pos.pred_double p))
      (fun p -> Exact.I.neg (Exact.twice_one p))
      x0

  (** val pos_sub : Exact.I.t -> Exact.I.t -> Exact.I.t **)

  let rec pos_sub x0 y =
    (fun _ _ _ _ -> assert false)
      (fun p ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> double (pos_sub p q0))
        (fun q0 -> succ_double (pos_sub p q0))
        (fun _ -> (fun p -> p) (Exact.twice p))
        y)
      (fun p ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> pred_double (pos_sub p q0))
        (fun q0 -> double (pos_sub p q0))
        (fun _ -> (fun p -> p) (Pos.pred_double p))
        y)
      (fun _ ->
      (fun _ _ _ _ -> assert false)
        (fun q0 -> Exact.I.neg (Exact.twice q0))
        (fun q0 -> Exact.I.neg (Pos.pred_double q0))
        (fun _ -> Exact.I.zero)
        y)
      x0

  (** val pow_pos : Exact.I.t -> Exact.I.t -> Exact.I.t **)

  let pow_pos z0 =
    Pos.iter (Exact.I.mul z0) ((fun p -> p) Exact.I.one)

  (** val compare : Exact.I.t -> Exact.I.t -> comparison **)

  let compare x0 y =
    (fun _ _ _ _ -> assert false)
      (fun _ ->
      (fun _ _ _ _ -> assert false)
        (fun _ -> Eq)
        (fun _ -> Lt)
        (fun _ -> Gt)
        y)
      (fun x' ->
      (fun _ _ _ _ -> assert false)
        (fun _ -> Gt)
        (fun y' -> Pos.compare x' y')
        (fun _ -> Gt)
        y)
      (fun x' ->
      (fun _ _ _ _ -> assert false)
        (fun _ -> Lt)
        (fun _ -> Lt)
        (fun y' -> compOpp (Pos.compare x' y'))
        y)
      x0

  (** val div2 : Exact.I.t -> Exact.I.t **)

  let div2 z0 =
    (fun _ _ _ _ -> assert false)
      (fun _ -> Exact.I.zero)
      (fun p ->
      (fun _ _ _ _ -> assert false)
        (fun _ -> (fun p -> p) (Pos.div2 p))
        (fun _ -> (fun p -> p) (Pos.div2 p))
        (fun _ -> Exact.I.zero)
        p)
      (fun p -> Exact.I.neg (Pos.div2_up p))
      z0

  (** val shiftl : Exact.I.t -> Exact.I.t -> Exact.I.t **)

  let shiftl a n =
    (fun _ _ _ _ -> assert false)
      (fun _ -> a)
      (fun p ->
      Pos.iter (Exact.I.mul ((fun p -> p) (Exact.twice Exact.I.one))) a p)
      (fun p -> Pos.iter div2 a p)
      n
 end

type edge = { next : int; lo : Exact.F.t; hi : Exact.F.t }

type choice = { reward : Exact.F.t; edges : edge list }

type game = { size : int; choices_of : (int -> int -> choice list);
              ends : (int -> int -> Exact.F.t option); discount : Exact.F.t }

type rule =
| Any
| Only of int
| Mix of Exact.F.t list

type kind =
| Until
| Next
| Reach_reward
| Cumulative
| Total
| Discounted
| Average

type problem = { states : int; initial : int; rows : (int -> choice list);
                 kind_of : kind; target : (int -> bool);
                 allowed : (int -> bool); terminal : (int -> Exact.F.t);
                 first : int; last : int option; factor : Exact.F.t }

(** val ends_of : problem -> int -> int -> Exact.F.t option **)

let ends_of p j s =
  match p.kind_of with
  | Until ->
    if (&&) (p.target s) ((<=) p.first j)
    then Some (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
    else if p.allowed s
         then None
         else Some (Exact.make (Exact.I.zero, Exact.I.one))
  | Next ->
    if (&&) (p.target s) ((<=) (Stdlib.Int.succ 0) j)
    then Some (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
    else None
  | Reach_reward -> if p.target s then Some (p.terminal s) else None
  | _ -> None

(** val game_of : problem -> game **)

let game_of p =
  { size = p.states; choices_of = (fun _ s -> p.rows s); ends = (ends_of p);
    discount = p.factor }

(** val horizon : problem -> int **)

let horizon p =
  match p.last with
  | Some k -> k
  | None -> p.first

type question = { agent_max : bool; nature_is : bool option;
                  policy : (int -> int -> rule) option }

(** val pol_of : problem -> question -> int -> int -> rule **)

let pol_of p q0 j s =
  match q0.policy with
  | Some f -> f (Stdlib.Int.min j (horizon p)) s
  | None -> Any

(** val less : Exact.F.t option -> Exact.F.t option **)

let less b =
  option_map (fun b0 ->
    Exact.F.sub (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)) b0) b

(** val below : int -> (int -> bool) -> bool **)

let rec below n f =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> true)
    (fun m -> if f m then below m f else false)
    n

(** val foralli : (int -> 'a1 -> bool) -> int -> 'a1 list -> bool **)

let rec foralli f i = function
| [] -> true
| a :: l' -> if f i a then foralli f (Stdlib.Int.succ i) l' else false

(** val existsi : (int -> 'a1 -> bool) -> int -> 'a1 list -> bool **)

let rec existsi f i = function
| [] -> false
| a :: l' -> if f i a then true else existsi f (Stdlib.Int.succ i) l'

(** val qsum : ('a1 -> Exact.F.t) -> 'a1 list -> Exact.F.t **)

let rec qsum f = function
| [] -> Exact.make (Exact.I.zero, Exact.I.one)
| a :: l' -> Exact.F.add (f a) (qsum f l')

(** val mixed :
    (int -> choice -> Exact.F.t) -> Exact.F.t list -> int -> choice list ->
    Exact.F.t **)

let rec mixed f w i = function
| [] -> Exact.make (Exact.I.zero, Exact.I.one)
| c :: cs' ->
  (match w with
   | [] -> Exact.make (Exact.I.zero, Exact.I.one)
   | q0 :: w' ->
     if Exact.leq q0 (Exact.make (Exact.I.zero, Exact.I.one))
     then mixed f w' (Stdlib.Int.succ i) cs'
     else Exact.F.add (Exact.F.mul q0 (f i c))
            (mixed f w' (Stdlib.Int.succ i) cs'))

(** val qltb : Exact.F.t -> Exact.F.t -> bool **)

let qltb a b =
  not (Exact.leq b a)

(** val low_term : (int -> Exact.F.t) -> Exact.F.t -> edge -> Exact.F.t **)

let low_term x0 lam0 e =
  let d = Exact.F.sub (x0 e.next) lam0 in
  Exact.F.mul
    (if Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) d
     then e.lo
     else e.hi) d

(** val high_term : (int -> Exact.F.t) -> Exact.F.t -> edge -> Exact.F.t **)

let high_term x0 lam0 e =
  let d = Exact.F.sub (x0 e.next) lam0 in
  Exact.F.mul
    (if Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) d
     then e.hi
     else e.lo) d

type support =
| Box of Exact.F.t
| Mean of Exact.F.t

(** val backup :
    Exact.F.t -> ((int -> Exact.F.t) -> Exact.F.t -> edge -> Exact.F.t) ->
    (int -> Exact.F.t) -> support -> choice -> Exact.F.t **)

let backup g term x0 sup c =
  Exact.F.add c.reward
    (Exact.F.mul g
      (match sup with
       | Box lam0 -> Exact.F.add lam0 (qsum (term x0 lam0) c.edges)
       | Mean b -> b))

(** val surely : (int -> bool) -> edge list -> bool **)

let surely a l =
  (||)
    (existsb (fun e ->
      (&&) (a e.next) (qltb (Exact.make (Exact.I.zero, Exact.I.one)) e.lo)) l)
    (qltb
      (qsum (fun e ->
        if a e.next then Exact.make (Exact.I.zero, Exact.I.one) else e.hi) l)
      (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)))

(** val only_to : (int -> bool) -> edge list -> bool **)

let only_to a l =
  forallb (fun e ->
    (||) (a e.next) (Exact.leq e.hi (Exact.make (Exact.I.zero, Exact.I.one))))
    l

(** val rule_some : rule -> (int -> choice -> bool) -> choice list -> bool **)

let rule_some r f cs =
  match r with
  | Any -> foralli f 0 cs
  | Only i -> (match nth_error cs i with
               | Some c -> f i c
               | None -> false)
  | Mix w ->
    existsi (fun i c ->
      (&&)
        (qltb (Exact.make (Exact.I.zero, Exact.I.one))
          (nth i w (Exact.make (Exact.I.zero, Exact.I.one)))) (f i c)) 0 cs

(** val rule_all : rule -> (int -> choice -> bool) -> choice list -> bool **)

let rule_all r f cs =
  match r with
  | Any -> foralli f 0 cs
  | Only i -> (match nth_error cs i with
               | Some c -> f i c
               | None -> false)
  | Mix w ->
    foralli (fun i c ->
      (||)
        (Exact.leq (nth i w (Exact.make (Exact.I.zero, Exact.I.one)))
          (Exact.make (Exact.I.zero, Exact.I.one))) (f i c)) 0 cs

(** val rule_le :
    (Exact.F.t -> Exact.F.t -> bool) -> rule -> Exact.F.t -> (int -> choice
    -> Exact.F.t) -> choice list -> bool **)

let rule_le le r y f cs =
  match r with
  | Any -> foralli (fun i c -> le y (f i c)) 0 cs
  | Only i ->
    (match nth_error cs i with
     | Some c -> le y (f i c)
     | None -> false)
  | Mix w -> le y (mixed f w 0 cs)

(** val geb : Exact.F.t -> Exact.F.t -> bool **)

let geb a b =
  Exact.leq b a

(** val forever :
    rule -> (choice -> bool) -> (choice -> bool) -> (choice -> bool) ->
    choice list -> bool **)

let forever r down0 stay moves0 cs =
  match r with
  | Mix _ ->
    (||) (rule_some r (fun _ -> down0) cs)
      ((&&) (rule_all r (fun _ -> stay) cs)
        (rule_some r (fun _ -> moves0) cs))
  | _ -> rule_all r (fun _ c -> (||) (down0 c) ((&&) (stay c) (moves0 c))) cs

(** val over :
    (int -> Exact.F.t option) -> (int -> Exact.F.t) -> (int -> bool) -> int
    -> bool **)

let over en x0 endless0 t =
  match en t with
  | Some _ -> true
  | None ->
    (||) (endless0 t)
      (Exact.leq (x0 t) (Exact.make (Exact.I.zero, Exact.I.one)))

(** val closer :
    (int -> Exact.F.t option) -> (int -> Exact.F.t) -> (int -> bool) -> (int
    -> int) -> int -> int -> bool **)

let closer en x0 endless0 rank0 s t =
  (||) (over en x0 endless0 t)
    ((fun (n : int) m -> n < m) (rank0 t) (rank0 s))

(** val moves :
    (int -> Exact.F.t option) -> (int -> Exact.F.t) -> (int -> bool) -> (int
    -> int) -> int -> choice -> bool **)

let moves en x0 endless0 rank0 s c =
  (||) (qltb (Exact.make (Exact.I.zero, Exact.I.one)) c.reward)
    (surely (closer en x0 endless0 rank0 s) c.edges)

(** val unending :
    (int -> Exact.F.t option) -> (int -> bool) -> int -> bool **)

let unending en endless0 t =
  match en t with
  | Some _ -> false
  | None -> endless0 t

(** val lower_layer :
    (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> int -> int
    -> bool **)

let lower_layer en endless0 layer0 s t =
  (&&) (unending en endless0 t)
    ((fun (n : int) m -> n < m) (layer0 t) (layer0 s))

(** val same_layer :
    (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> int -> int
    -> bool **)

let same_layer en endless0 layer0 s t =
  (&&) (unending en endless0 t) ((<=) (layer0 t) (layer0 s))

(** val nearer :
    (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> (int ->
    int) -> int -> int -> bool **)

let nearer en endless0 layer0 rank0 s t =
  (&&) (same_layer en endless0 layer0 s t)
    ((fun (n : int) m -> n < m) (rank0 t) (rank0 s))

(** val earns_forever :
    (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> (int ->
    int) -> rule -> int -> choice list -> bool **)

let earns_forever en endless0 layer0 rank0 r s cs =
  forever r (fun c -> surely (lower_layer en endless0 layer0 s) c.edges)
    (fun c -> only_to (same_layer en endless0 layer0 s) c.edges) (fun c ->
    (||) (qltb (Exact.make (Exact.I.zero, Exact.I.one)) c.reward)
      (surely (nearer en endless0 layer0 rank0 s) c.edges)) cs

(** val sum_low_at :
    game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int ->
    bool) -> (int -> int) -> (int -> int) -> (int -> int -> support) -> int
    -> bool **)

let sum_low_at g k pol x0 endless0 rank0 layer0 lam0 s =
  match g.ends k s with
  | Some b ->
    (&&) (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) b)
      (Exact.leq (x0 s) b)
  | None ->
    let cs = g.choices_of k s in
    let r = pol k s in
    (&&)
      (rule_all r (fun _ c ->
        Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) c.reward) cs)
      (if endless0 s
       then earns_forever (g.ends k) endless0 layer0 rank0 r s cs
       else (||) (Exact.leq (x0 s) (Exact.make (Exact.I.zero, Exact.I.one)))
              ((&&)
                (rule_le Exact.leq r (x0 s) (fun i c ->
                  backup g.discount low_term x0 (lam0 s i) c) cs)
                (rule_some r (fun _ -> moves (g.ends k) x0 endless0 rank0 s)
                  cs)))

(** val finite_edges : (int -> bool) -> choice -> bool **)

let finite_edges endless0 c =
  only_to (fun t -> not (endless0 t)) c.edges

(** val sum_high_at :
    game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int ->
    bool) -> (int -> int -> support) -> int -> bool **)

let sum_high_at g k pol x0 endless0 lam0 s =
  if endless0 s
  then true
  else (match g.ends k s with
        | Some b -> Exact.leq b (x0 s)
        | None ->
          let cs = g.choices_of k s in
          let r = pol k s in
          (&&)
            ((&&) (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) (x0 s))
              (rule_all r (fun _ -> finite_edges endless0) cs))
            (rule_le geb r (x0 s) (fun i c ->
              backup g.discount high_term x0 (lam0 s i) c) cs))

(** val misses :
    (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> rule -> int
    -> choice list -> bool **)

let misses en endless0 rank0 r s cs =
  forever r (fun c -> surely (lower_layer en endless0 rank0 s) c.edges)
    (fun c -> only_to (same_layer en endless0 rank0 s) c.edges) (fun _ ->
    true) cs

(** val reach_low_at :
    game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int ->
    bool) -> (int -> int) -> (int -> int -> support) -> int -> bool **)

let reach_low_at g k pol x0 endless0 rank0 lam0 s =
  match g.ends k s with
  | Some b -> Exact.leq (x0 s) b
  | None ->
    let cs = g.choices_of k s in
    let r = pol k s in
    (&&)
      (rule_all r (fun _ c ->
        Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) c.reward) cs)
      (if endless0 s
       then misses (g.ends k) endless0 rank0 r s cs
       else rule_le Exact.leq r (x0 s) (fun i c ->
              backup g.discount low_term x0 (lam0 s i) c) cs)

(** val near_end :
    (int -> Exact.F.t option) -> (int -> int) -> int -> int -> bool **)

let near_end en rank0 s t =
  match en t with
  | Some _ -> true
  | None -> (fun (n : int) m -> n < m) (rank0 t) (rank0 s)

(** val reach_high_at :
    game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int ->
    bool) -> (int -> int) -> (int -> int -> support) -> int -> bool **)

let reach_high_at g k pol x0 endless0 rank0 lam0 s =
  if endless0 s
  then true
  else (match g.ends k s with
        | Some b -> Exact.leq b (x0 s)
        | None ->
          let cs = g.choices_of k s in
          let r = pol k s in
          (&&)
            ((&&) (rule_all r (fun _ -> finite_edges endless0) cs)
              (rule_le geb r (x0 s) (fun i c ->
                backup g.discount high_term x0 (lam0 s i) c) cs))
            (rule_some r (fun _ c ->
              surely (near_end (g.ends k) rank0 s) c.edges) cs))

(** val disc_low_at :
    game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int -> int
    -> support) -> int -> bool **)

let disc_low_at g k pol x0 lam0 s =
  match g.ends k s with
  | Some b -> Exact.leq (x0 s) b
  | None ->
    rule_le Exact.leq (pol k s) (x0 s) (fun i c ->
      backup g.discount low_term x0 (lam0 s i) c) (g.choices_of k s)

(** val disc_high_at :
    game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int -> int
    -> support) -> int -> bool **)

let disc_high_at g k pol x0 lam0 s =
  match g.ends k s with
  | Some b -> Exact.leq b (x0 s)
  | None ->
    rule_le geb (pol k s) (x0 s) (fun i c ->
      backup g.discount high_term x0 (lam0 s i) c) (g.choices_of k s)

(** val unpaid : choice -> choice **)

let unpaid c =
  { reward = (Exact.make (Exact.I.zero, Exact.I.one)); edges = c.edges }

(** val average_at :
    (Exact.F.t -> Exact.F.t -> bool) -> ((int -> Exact.F.t) -> Exact.F.t ->
    edge -> Exact.F.t) -> game -> int -> (int -> int -> rule) -> (int ->
    Exact.F.t) -> (int -> Exact.F.t) -> (int -> int -> support) -> (int ->
    int -> Exact.F.t) -> int -> bool **)

let average_at le term g k pol x0 bias0 lam0 lam'0 s =
  match g.ends k s with
  | Some _ -> false
  | None ->
    (&&)
      (rule_le le (pol k s) (x0 s) (fun i c ->
        backup g.discount term x0 (lam0 s i) (unpaid c)) (g.choices_of k s))
      (rule_le le (pol k s) (Exact.F.add (x0 s) (bias0 s)) (fun i c ->
        backup g.discount term bias0 (Box (lam'0 s i)) c) (g.choices_of k s))

type hints = { x : (int -> int -> Exact.F.t); endless : (int -> bool);
               rank : (int -> int); layer : (int -> int);
               lam : (int -> int -> int -> support);
               witness : (int -> int -> int);
               pin : (int -> int -> int -> Exact.F.t list);
               bias : (int -> Exact.F.t); lam' : (int -> int -> Exact.F.t) }

(** val mapi : (int -> 'a1 -> 'a2) -> int -> 'a1 list -> 'a2 list **)

let rec mapi f i = function
| [] -> []
| a :: l' -> (f i a) :: (mapi f (Stdlib.Int.succ i) l')

(** val pin_edges : edge list -> Exact.F.t list -> edge list **)

let rec pin_edges l q0 =
  match l with
  | [] -> []
  | e :: l' ->
    (match q0 with
     | [] ->
       { next = e.next; lo = (Exact.make (Exact.I.zero, Exact.I.one)); hi =
         (Exact.make (Exact.I.zero, Exact.I.one)) } :: (pin_edges l' [])
     | a :: q' -> { next = e.next; lo = a; hi = a } :: (pin_edges l' q'))

(** val pinned : problem -> (int -> int -> int -> Exact.F.t list) -> game **)

let pinned p q0 =
  { size = p.states; choices_of = (fun j s ->
    mapi (fun i c -> { reward = c.reward; edges =
      (pin_edges c.edges (q0 (Stdlib.Int.min j (horizon p)) s i)) }) 0
      (p.rows s)); ends = (ends_of p); discount = p.factor }

(** val is_pin : edge list -> Exact.F.t list -> bool **)

let rec is_pin l q0 =
  match l with
  | [] -> (match q0 with
           | [] -> true
           | _ :: _ -> false)
  | e :: l' ->
    (match q0 with
     | [] -> false
     | a :: q' ->
       (&&)
         ((&&)
           ((&&) (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) a)
             (Exact.leq e.lo a)) (Exact.leq a e.hi)) (is_pin l' q'))

(** val whenever : problem -> (int -> int -> bool) -> bool **)

let whenever p f =
  below (Stdlib.Int.succ (horizon p)) (fun j ->
    below p.states (fun s ->
      match ends_of p j s with
      | Some _ -> true
      | None -> f j s))

(** val pins : problem -> (int -> int -> int -> Exact.F.t list) -> bool **)

let pins p q0 =
  whenever p (fun j s ->
    foralli (fun i c ->
      (&&) (is_pin c.edges (q0 j s i))
        (Exact.equal (qsum (fun a -> a) (q0 j s i)) (Exact.make
          (((fun p -> p) Exact.I.one), Exact.I.one)))) 0 (p.rows s))

(** val step_at :
    (Exact.F.t -> Exact.F.t -> bool) -> ((int -> Exact.F.t) -> Exact.F.t ->
    edge -> Exact.F.t) -> game -> (int -> int -> rule) -> (int -> Exact.F.t)
    -> (int -> Exact.F.t) -> (int -> int -> support) -> int -> int -> bool **)

let step_at le term g pol x0 y lam0 j s =
  match g.ends j s with
  | Some b -> le (x0 s) b
  | None ->
    rule_le le (pol j s) (x0 s) (fun i c ->
      backup g.discount term y (lam0 s i) c) (g.choices_of j s)

(** val steps :
    (Exact.F.t -> Exact.F.t -> bool) -> ((int -> Exact.F.t) -> Exact.F.t ->
    edge -> Exact.F.t) -> game -> (int -> int -> rule) -> hints -> int -> bool **)

let rec steps le term g pol h k =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> true)
    (fun j ->
    let y = h.x (Stdlib.Int.succ j) in
    let z0 = h.x j in
    (&&) (below g.size (step_at le term g pol z0 y (h.lam j) j))
      (steps le term g pol h j))
    k

(** val base_low :
    problem -> game -> (int -> int -> rule) -> hints -> int -> bool **)

let base_low p g pol h =
  let k = horizon p in
  let z0 = h.x k in
  (match p.last with
   | Some _ ->
     (fun s ->
       match g.ends k s with
       | Some b -> Exact.leq (z0 s) b
       | None -> Exact.leq (z0 s) (Exact.make (Exact.I.zero, Exact.I.one)))
   | None ->
     (match p.kind_of with
      | Until -> sum_low_at g k pol z0 h.endless h.rank h.layer (h.lam k)
      | Reach_reward -> reach_low_at g k pol z0 h.endless h.rank (h.lam k)
      | Total -> sum_low_at g k pol z0 h.endless h.rank h.layer (h.lam k)
      | Discounted -> disc_low_at g k pol z0 (h.lam k)
      | Average ->
        average_at Exact.leq low_term g k pol z0 h.bias (h.lam k) h.lam'
      | _ -> (fun _ -> false)))

(** val base_high :
    problem -> game -> (int -> int -> rule) -> hints -> int -> bool **)

let base_high p g pol h =
  let k = horizon p in
  let z0 = h.x k in
  (match p.last with
   | Some _ ->
     (fun s ->
       match g.ends k s with
       | Some b -> Exact.leq b (z0 s)
       | None -> Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) (z0 s))
   | None ->
     (match p.kind_of with
      | Until -> sum_high_at g k pol z0 h.endless (h.lam k)
      | Reach_reward -> reach_high_at g k pol z0 h.endless h.rank (h.lam k)
      | Total -> sum_high_at g k pol z0 h.endless (h.lam k)
      | Discounted -> disc_high_at g k pol z0 (h.lam k)
      | Average -> average_at geb high_term g k pol z0 h.bias (h.lam k) h.lam'
      | _ -> (fun _ -> false)))

(** val may_be_endless : problem -> bool **)

let may_be_endless p =
  match p.last with
  | Some _ -> false
  | None ->
    ((fun fO fS n -> if n=0 then fO () else fS (n-1))
       (fun _ ->
       match p.kind_of with
       | Discounted -> false
       | Average -> false
       | _ -> true)
       (fun _ -> false)
       (horizon p))

(** val no_endless : problem -> hints -> bool **)

let no_endless p h =
  (||) (may_be_endless p) (below p.states (fun s -> not (h.endless s)))

(** val check_low :
    problem -> game -> (int -> int -> rule) -> hints -> bool **)

let check_low p g pol h =
  (&&) ((&&) (no_endless p h) (below g.size (base_low p g pol h)))
    (steps Exact.leq low_term g pol h (horizon p))

(** val check_high :
    problem -> game -> (int -> int -> rule) -> hints -> bool **)

let check_high p g pol h =
  (&&) ((&&) (no_endless p h) (below g.size (base_high p g pol h)))
    (steps geb high_term g pol h (horizon p))

(** val agent_owns : question -> bool -> bool **)

let agent_owns q0 max =
  match q0.policy with
  | Some _ -> false
  | None -> eqb q0.agent_max max

(** val nature_owns : question -> bool -> bool **)

let nature_owns q0 max =
  match q0.nature_is with
  | Some m -> eqb m max
  | None -> false

(** val rule_for :
    problem -> question -> bool -> hints -> int -> int -> rule **)

let rule_for p q0 max h j s =
  if agent_owns q0 max
  then Only (h.witness (Stdlib.Int.min j (horizon p)) s)
  else pol_of p q0 j s

(** val arena : problem -> question -> bool -> hints -> game **)

let arena p q0 max h =
  if nature_owns q0 max then pinned p h.pin else game_of p

(** val owners : problem -> question -> bool -> hints -> bool **)

let owners p q0 max h =
  (&&)
    (if agent_owns q0 max
     then whenever p (fun j s ->
            (fun (n : int) m -> n < m) (h.witness j s) (length (p.rows s)))
     else true) (if nature_owns q0 max then pins p h.pin else true)

(** val possible : problem -> choice -> bool **)

let possible p c =
  (&&)
    ((&&)
      (forallb (fun e ->
        (&&)
          ((&&) ((fun (n : int) m -> n < m) e.next p.states)
            (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) e.lo))
          (Exact.leq e.lo e.hi)) c.edges)
      (Exact.leq (qsum (fun e -> e.lo) c.edges) (Exact.make (((fun p -> p)
        Exact.I.one), Exact.I.one))))
    (Exact.leq (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
      (qsum (fun e -> e.hi) c.edges))

(** val well_posed : problem -> bool **)

let well_posed p =
  (&&) ((fun (n : int) m -> n < m) p.initial p.states)
    (match p.kind_of with
     | Until ->
       (&&) (match p.last with
             | Some k -> (<=) p.first k
             | None -> true)
         (Exact.equal p.factor (Exact.make (((fun p -> p) Exact.I.one),
           Exact.I.one)))
     | Next ->
       (&&)
         ((&&)
           (match p.last with
            | Some k -> (=) k (Stdlib.Int.succ 0)
            | None -> false) ((=) p.first 0))
         (Exact.equal p.factor (Exact.make (((fun p -> p) Exact.I.one),
           Exact.I.one)))
     | Cumulative ->
       (&&)
         ((&&) (match p.last with
                | Some _ -> true
                | None -> false) ((=) p.first 0))
         (Exact.equal p.factor (Exact.make (((fun p -> p) Exact.I.one),
           Exact.I.one)))
     | Discounted ->
       (&&)
         ((&&)
           ((&&) (match p.last with
                  | Some _ -> false
                  | None -> true) ((=) p.first 0))
           (qltb (Exact.make (Exact.I.zero, Exact.I.one)) p.factor))
         (qltb p.factor (Exact.make (((fun p -> p) Exact.I.one),
           Exact.I.one)))
     | _ ->
       (&&)
         ((&&) (match p.last with
                | Some _ -> false
                | None -> true) ((=) p.first 0))
         (Exact.equal p.factor (Exact.make (((fun p -> p) Exact.I.one),
           Exact.I.one))))

(** val earns_rightly : problem -> choice -> bool **)

let earns_rightly p c =
  match p.kind_of with
  | Until -> Exact.equal c.reward (Exact.make (Exact.I.zero, Exact.I.one))
  | Next -> Exact.equal c.reward (Exact.make (Exact.I.zero, Exact.I.one))
  | Reach_reward ->
    Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) c.reward
  | Total -> Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) c.reward
  | _ -> true

(** val is_policy : rule -> choice list -> bool **)

let is_policy r cs =
  match r with
  | Any -> (fun (n : int) m -> n < m) 0 (length cs)
  | Only i -> (fun (n : int) m -> n < m) i (length cs)
  | Mix w ->
    (&&) (forallb (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one))) w)
      (Exact.equal
        (mixed (fun _ _ -> Exact.make (((fun p -> p) Exact.I.one),
          Exact.I.one)) w 0 cs) (Exact.make (((fun p -> p) Exact.I.one),
        Exact.I.one)))

(** val playable : problem -> question -> bool **)

let playable p q0 =
  (&&)
    ((&&) (well_posed p)
      (below p.states (fun s -> forallb (possible p) (p.rows s))))
    (whenever p (fun j s ->
      (&&) (is_policy (pol_of p q0 j s) (p.rows s))
        (rule_all (pol_of p q0 j s) (fun _ -> earns_rightly p) (p.rows s))))

(** val never_negative : problem -> bool **)

let never_negative p =
  below p.states (fun s ->
    (&&)
      (forallb (fun c ->
        Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) c.reward)
        (p.rows s))
      (match p.kind_of with
       | Reach_reward ->
         Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) (p.terminal s)
       | _ -> true))

(** val is_probability : problem -> bool **)

let is_probability p =
  match p.kind_of with
  | Until -> true
  | Next -> true
  | _ -> false

(** val shows_low :
    problem -> question -> hints -> Exact.F.t option -> bool **)

let shows_low p q0 h b =
  (&&) (playable p q0)
    ((||)
      (match b with
       | Some b0 ->
         (&&) (Exact.leq b0 (Exact.make (Exact.I.zero, Exact.I.one)))
           (never_negative p)
       | None -> false)
      ((&&)
        ((&&) (owners p q0 true h)
          (check_low p (arena p q0 true h) (rule_for p q0 true h) h))
        ((||)
          ((&&) (may_be_endless p)
            (unending (ends_of p 0) h.endless p.initial))
          (match b with
           | Some b0 -> Exact.leq b0 (h.x 0 p.initial)
           | None -> false))))

(** val shows_high : problem -> question -> hints -> Exact.F.t -> bool **)

let shows_high p q0 h b =
  (&&) (playable p q0)
    ((||)
      ((&&) (is_probability p)
        (Exact.leq (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)) b))
      ((&&)
        ((&&)
          ((&&) (owners p q0 false h)
            (check_high p (arena p q0 false h) (rule_for p q0 false h) h))
          (not (h.endless p.initial))) (Exact.leq (h.x 0 p.initial) b)))

(** val shows :
    problem -> question -> bool -> Exact.F.t option -> Exact.F.t option ->
    hints -> hints -> bool **)

let shows p q0 complement lower0 upper0 low0 high0 =
  if complement
  then let l = less upper0 in
       let u = less lower0 in
       (&&) (shows_low p q0 low0 l)
         (match u with
          | Some u0 -> shows_high p q0 high0 u0
          | None -> true)
  else (&&) (shows_low p q0 low0 lower0)
         (match upper0 with
          | Some u -> shows_high p q0 high0 u
          | None -> true)

(** val alone : hints -> hints **)

let alone h =
  { x = h.x; endless = h.endless; rank = h.rank; layer = h.layer; lam =
    (fun j s i ->
    match h.lam j s i with
    | Box lam0 -> Box lam0
    | Mean _ -> Box (Exact.make (Exact.I.zero, Exact.I.one))); witness =
    h.witness; pin = h.pin; bias = h.bias; lam' = h.lam' }

(** val prove :
    problem -> question -> bool -> Exact.F.t option -> Exact.F.t option ->
    hints -> hints -> bool **)

let prove p q0 complement lower0 upper0 low0 high0 =
  shows p q0 complement lower0 upper0 (alone low0) (alone high0)

type mono = (int * int) list

type poly = (Exact.F.t * mono) list

(** val mono_cmp : mono -> mono -> comparison **)

let rec mono_cmp m n =
  match m with
  | [] -> (match n with
           | [] -> Eq
           | _ :: _ -> Lt)
  | p :: m' ->
    let (i, e) = p in
    (match n with
     | [] -> Gt
     | p0 :: n' ->
       let (k, d) = p0 in
       if (fun (n : int) m -> n < m) i k
       then Lt
       else if (fun (n : int) m -> n < m) k i
            then Gt
            else if (fun (n : int) m -> n < m) e d
                 then Lt
                 else if (fun (n : int) m -> n < m) d e
                      then Gt
                      else mono_cmp m' n')

(** val mono_times : int -> int -> mono -> mono **)

let rec mono_times i e m = match m with
| [] -> (i, e) :: []
| p :: m' ->
  let (k, d) = p in
  if (=) i k
  then (k, (add e d)) :: m'
  else if (fun (n : int) m -> n < m) i k
       then (i, e) :: m
       else (k, d) :: (mono_times i e m')

(** val mono_mul : mono -> mono -> mono **)

let rec mono_mul m n =
  match m with
  | [] -> n
  | p :: m' -> let (i, e) = p in mono_times i e (mono_mul m' n)

(** val insert : Exact.F.t -> mono -> poly -> poly **)

let rec insert c m p = match p with
| [] -> (c, m) :: []
| p0 :: p' ->
  let (d, n) = p0 in
  (match mono_cmp m n with
   | Eq -> ((Exact.F.add c d), n) :: p'
   | Lt -> (c, m) :: p
   | Gt -> (d, n) :: (insert c m p'))

(** val plus : Exact.F.t -> poly -> poly -> poly **)

let rec plus a = function
| [] -> (fun q0 -> q0)
| p0 :: p' ->
  let (c, m) = p0 in
  let rec into q0 = match q0 with
  | [] -> ((Exact.F.mul a c), m) :: (plus a p' [])
  | p1 :: q' ->
    let (d, n) = p1 in
    (match mono_cmp m n with
     | Eq -> ((Exact.F.add (Exact.F.mul a c) d), n) :: (plus a p' q')
     | Lt -> ((Exact.F.mul a c), m) :: (plus a p' q0)
     | Gt -> (d, n) :: (into q'))
  in into

(** val times_term : Exact.F.t -> mono -> poly -> poly -> poly **)

let rec times_term a m p q0 =
  match p with
  | [] -> q0
  | p0 :: p' ->
    let (c, n) = p0 in
    insert (Exact.F.mul a c) (mono_mul m n) (times_term a m p' q0)

(** val times : poly -> poly -> poly **)

let rec times p q0 =
  match p with
  | [] -> []
  | p0 :: p' -> let (c, m) = p0 in times_term c m q0 (times p' q0)

(** val constant : Exact.F.t -> poly **)

let constant c =
  (c, []) :: []

(** val tidy : poly -> poly **)

let rec tidy = function
| [] -> []
| p0 :: p' ->
  let (c, m) = p0 in
  if Exact.equal c (Exact.make (Exact.I.zero, Exact.I.one))
  then tidy p'
  else (c, m) :: (tidy p')

(** val nonneg : poly -> bool **)

let rec nonneg = function
| [] -> true
| p0 :: p' ->
  let (c, m) = p0 in
  (match m with
   | [] ->
     (&&) (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) c) (nonneg p')
   | _ :: _ ->
     (&&) (Exact.equal c (Exact.make (Exact.I.zero, Exact.I.one))) (nonneg p'))

(** val zero : poly -> bool **)

let rec zero = function
| [] -> true
| p0 :: p' ->
  let (c, _) = p0 in
  (&&) (Exact.equal c (Exact.make (Exact.I.zero, Exact.I.one))) (zero p')

type ledge = { goes : int; expr : int }

type lchoice = { gains : poly; outcomes : ledge list }

type model = { shape : problem; table : (int -> lchoice list);
               polys : (int -> poly); domain : poly list;
               least : (int -> Exact.F.t) }

(** val boxed :
    model -> (int -> int -> lchoice -> Exact.F.t) -> (int -> int -> int ->
    Exact.F.t * Exact.F.t) -> problem **)

let boxed m r b =
  let p = m.shape in
  { states = p.states; initial = p.initial; rows = (fun s ->
  mapi (fun i c -> { reward = (r s i c); edges =
    (mapi (fun j e ->
      let (l, u) = b s i j in { next = e.goes; lo = l; hi = u }) 0 c.outcomes) })
    0 (m.table s)); kind_of = p.kind_of; target = p.target; allowed =
  p.allowed; terminal = p.terminal; first = p.first; last = p.last; factor =
  p.factor }

(** val skeleton : model -> problem **)

let skeleton m =
  boxed m (fun _ _ _ -> Exact.make (Exact.I.zero, Exact.I.one)) (fun _ _ _ ->
    ((Exact.make (Exact.I.zero, Exact.I.one)), (Exact.make (((fun p -> p)
    Exact.I.one), Exact.I.one))))

(** val label : model -> (int * int) -> int -> int option **)

let label m c j =
  match nth_error (m.table (fst c)) (snd c) with
  | Some k ->
    if (fun (n : int) m -> n < m) (fst c) m.shape.states
    then option_map (fun l -> l.expr) (nth_error k.outcomes j)
    else None
  | None -> None

(** val same : (int * int) -> (int * int) -> bool **)

let same c d =
  (&&) ((=) (fst c) (fst d)) ((=) (snd c) (snd d))

type mark = int -> int -> bool

type automaton = { letter : (int -> int); reads : (int -> int -> int);
                   pairs : (mark * mark list) list; settled : (int -> bool);
                   nodes : int; key : (int -> int * int);
                   number : ((int * int) -> int); memories : int;
                   letters : int; home : (int -> int -> bool) }

(** val behind : automaton -> int -> int -> int * int **)

let behind a i t =
  (t, (a.reads (snd (a.key i)) (a.letter (fst (a.key i)))))

(** val product : problem -> automaton -> problem **)

let product p a =
  let move = fun i e -> { next = (a.number (behind a i e.next)); lo = e.lo;
    hi = e.hi }
  in
  { states = a.nodes; initial = (a.number (p.initial, 0)); rows = (fun i ->
  map (fun c -> { reward = c.reward; edges = (map (move i) c.edges) })
    (p.rows (fst (a.key i)))); kind_of = Until; target = (fun i ->
  a.settled (snd (a.key i))); allowed = (fun _ -> true); terminal = (fun _ ->
  Exact.make (Exact.I.zero, Exact.I.one)); first = 0; last = None; factor =
  (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)) }

(** val product_model : model -> automaton -> model **)

let product_model m a =
  let move = fun i e -> { goes = (a.number (behind a i e.goes)); expr =
    e.expr }
  in
  { shape = (product m.shape a); table = (fun i ->
  map (fun c -> { gains = c.gains; outcomes = (map (move i) c.outcomes) })
    (m.table (fst (a.key i)))); polys = m.polys; domain = m.domain; least =
  m.least }

(** val each : automaton -> (int -> int -> bool) -> bool **)

let each a f =
  below a.memories (fun q0 -> below a.letters (f q0))

(** val settles : automaton -> int -> bool **)

let settles a n =
  (&&)
    ((&&)
      ((&&)
        ((&&) ((fun (n : int) m -> n < m) 0 a.memories)
          (below n (fun s ->
            (fun (n : int) m -> n < m) (a.letter s) a.letters)))
        (each a (fun q0 l ->
          (fun (n : int) m -> n < m) (a.reads q0 l) a.memories)))
      (below a.memories (fun q0 ->
        if a.settled q0
        then existsb (fun k -> a.home k q0) (seq 0 (length a.pairs))
        else true)))
    (foralli (fun k pair ->
      (&&)
        (each a (fun q0 l ->
          if a.home k q0
          then (&&)
                 ((&&) (not (fst pair q0 l))
                   (forallb (fun m -> m q0 l) (snd pair)))
                 (a.home k (a.reads q0 l))
          else true))
        (existsb (fun m ->
          each a (fun q0 l -> if m q0 l then a.settled q0 else true))
          (snd pair))) 0 a.pairs)

(** val readable : problem -> automaton -> bool **)

let readable p a =
  (&&)
    ((&&) (same (a.key (a.number (p.initial, 0))) (p.initial, 0))
      (below a.nodes (fun i ->
        (&&) ((fun (n : int) m -> n < m) (fst (a.key i)) p.states)
          (forallb (fun c ->
            forallb (fun e ->
              same (a.key (a.number (behind a i e.next))) (behind a i e.next))
              c.edges) (p.rows (fst (a.key i))))))) (settles a p.states)

(** val accept_value :
    problem -> automaton option -> question -> bool -> Exact.F.t option ->
    Exact.F.t option -> hints -> hints -> bool **)

let accept_value p runs q0 complement lower0 upper0 low0 high0 =
  match runs with
  | Some a ->
    (&&) (readable p a)
      (prove (product p a) q0 complement lower0 upper0 low0 high0)
  | None -> prove p q0 complement lower0 upper0 low0 high0

(** val product0 : (int -> Exact.I.t) -> int -> int -> Exact.I.t **)

let rec product0 f lo0 n =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> (fun p -> p) Exact.I.one)
    (fun n' -> Exact.I.mul (f lo0) (product0 f (Stdlib.Int.succ lo0) n'))
    n

(** val tree : int -> (int -> Exact.I.t) -> int -> int -> Exact.I.t **)

let rec tree d f lo0 n =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> product0 f lo0 n)
    (fun d' ->
    let k = (fun n -> n / 2) n in
    Exact.I.mul (tree d' f lo0 k) (tree d' f (add lo0 k) (sub n k)))
    d

(** val odds : int -> Exact.I.t **)

let odds n =
  tree (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
    (Stdlib.Int.succ (Stdlib.Int.succ 0)))))))))))))) (fun i ->
    Exact.I.of_int (Stdlib.Int.succ
      (mul (Stdlib.Int.succ (Stdlib.Int.succ 0)) i))) 0 n

(** val factorial : int -> Exact.I.t **)

let factorial n =
  tree (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
    (Stdlib.Int.succ (Stdlib.Int.succ 0)))))))))))))) (fun i ->
    Exact.I.of_int (Stdlib.Int.succ i)) 0 n

(** val power : Exact.I.t -> int -> Exact.I.t **)

let power a n =
  Exact.pow a (Exact.I.of_int n)

(** val qnat : int -> Exact.F.t **)

let qnat n =
  Exact.F.of_bigint (Exact.I.of_int n)

(** val end_holds :
    Exact.F.t -> Exact.F.t -> Exact.I.t -> Exact.I.t -> int -> int -> bool **)

let end_holds level0 p a b k m =
  (||) (Exact.leq p (Exact.make (Exact.I.zero, Exact.I.one)))
    ((&&)
      ((&&)
        ((&&)
          ((&&)
            (qltb p (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)))
            (Exact.I.lt Exact.I.zero b))
          (Exact.equal (Exact.F.of_bigint a)
            (Exact.F.mul p (Exact.F.of_bigint b))))
        (Exact.leq (Exact.F.mul (qnat m) p)
          (Exact.F.mul (qnat k)
            (Exact.F.sub (Exact.make (((fun p -> p) Exact.I.one),
              Exact.I.one)) p))))
      (Exact.leq
        (Exact.F.of_bigint
          (Exact.I.mul (Exact.I.mul (power a k) (power (Exact.I.sub b a) m))
            (Exact.I.mul
              (power ((fun p -> p) (Exact.twice Exact.I.one)) (add k m))
              (factorial (add k m)))))
        (Exact.F.mul level0
          (Exact.F.of_bigint
            (Exact.I.mul (Exact.I.mul (odds k) (odds m)) (power b (add k m)))))))

type trial = { t_state : int; t_choice : int; hits : bool list }

type event = { about : poly; trials : trial list }

type reference =
| Dom of int
| Low of int
| High of int
| Least of int * int * int
| Most of int * int * int
| Made of int

type bound = { of_expr : int; blo : Exact.F.t; bhi : Exact.F.t;
               why_lo : (Exact.F.t * reference) list;
               why_hi : (Exact.F.t * reference) list }

type wager = { of_side : int; portions : int list; guard : Exact.F.t;
               sure : (int -> int -> int -> bool); near : (int -> Exact.F.t);
               touch : (int -> Exact.F.t); chord : (int -> bool);
               tilt : (int -> Exact.F.t); most : Exact.F.t;
               trim : (Exact.F.t -> Exact.F.t) }

type made =
| Prod of reference * reference
| Comb of (Exact.F.t * reference) list * Exact.F.t
| Square of poly
| Cut of (int -> Exact.F.t) * Exact.F.t
| Bet of int * (int -> bound) * wager

type 'a form = Exact.I.t * 'a list

type affine = Exact.I.t form

type quadratic = affine form

type cubic = quadratic form

type walk = { is_open : (int -> bool); guess : (int -> quadratic);
              beyond : (int -> Exact.I.t); whole : (int -> Exact.I.t);
              portions_at : (int -> (Exact.I.t * Exact.I.t) list);
              slow : (int -> Exact.I.t); rate : Exact.F.t }

type cell = { more : made list;
              axes : (((poly * Exact.I.t) * (Exact.F.t * reference)
                     list) * (Exact.F.t * reference) list) list;
              budget : Exact.I.t; why_budget : (Exact.F.t * reference) list;
              grain : Exact.I.t; unit_of : Exact.I.t; goal : Exact.I.t;
              labels : int; label_at : (int -> int); place_of : (int -> int);
              linear : (int -> affine); first_walk : walk; second_walk : 
              walk }

type cells =
| Leaf of cell
| Hollow of made list * (Exact.F.t * reference) list
| Split of poly * cells * cells

type cert = { ask : question; versus : question option;
              reader : automaton option; compl : bool;
              lower : Exact.F.t option; upper : Exact.F.t option;
              low : hints; high : hints; elow : (int -> Exact.F.t);
              ehigh : (int -> Exact.F.t);
              parts : (Exact.F.t -> Exact.I.t * Exact.I.t);
              level : Exact.F.t; shares : int list;
              lg : (Exact.F.t -> Exact.I.t); facts : made list; bounds : 
              int; bound_at : (int -> bound);
              slot : (int -> int -> int -> int); paid : (int -> int -> int);
              why_low : (int -> int -> int -> (Exact.F.t * reference) list);
              why_high : (int -> int -> int -> (Exact.F.t * reference) list);
              joint_low : cells option; joint_high : cells option;
              low2 : hints; high2 : hints;
              why_low2 : (int -> int -> int -> (Exact.F.t * reference) list);
              why_high2 : (int -> int -> int -> (Exact.F.t * reference) list) }

(** val of_runs : model -> cert -> model **)

let of_runs m c =
  match c.reader with
  | Some a -> product_model m a
  | None -> m

(** val sum_where : model -> bool -> bool list -> ledge list -> poly **)

let rec sum_where m b hs = function
| [] -> []
| e :: l' ->
  (match hs with
   | [] -> []
   | h :: hs' ->
     if eqb b h
     then plus (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
            (m.polys e.expr) (sum_where m b hs' l')
     else sum_where m b hs' l')

(** val null : model -> poly -> bool **)

let null m p =
  (||) (zero p)
    ((&&)
      (existsb (fun d ->
        zero (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one)) d p))
        m.domain)
      (existsb (fun d ->
        zero (plus (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)) d p))
        m.domain))

(** val trial_ok : model -> poly -> trial -> bool **)

let trial_ok m g t =
  (&&) ((fun (n : int) m -> n < m) t.t_state m.shape.states)
    (match nth_error (m.table t.t_state) t.t_choice with
     | Some c ->
       (&&) ((=) (length t.hits) (length c.outcomes))
         ((||)
           (zero
             (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one)) g
               (sum_where m true t.hits c.outcomes)))
           (null m
             (plus (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)) g
               (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
                 (constant (Exact.make (((fun p -> p) Exact.I.one),
                   Exact.I.one))) (sum_where m false t.hits c.outcomes)))))
     | None -> false)

(** val before : (int * int) -> (int * int) -> bool **)

let before a b =
  (||) ((fun (n : int) m -> n < m) (fst a) (fst b))
    ((&&) ((=) (fst a) (fst b)) ((fun (n : int) m -> n < m) (snd a) (snd b)))

(** val place : trial -> int * int **)

let place t =
  (t.t_state, t.t_choice)

(** val rising : (int * int) -> trial list -> bool **)

let rec rising a = function
| [] -> true
| t :: l' -> (&&) (before a (place t)) (rising (place t) l')

(** val event_ok : model -> event -> bool **)

let event_ok m e =
  (&&) (match e.trials with
        | [] -> false
        | t :: l -> rising (place t) l)
    (forallb (trial_ok m e.about) e.trials)

(** val tally_trial : bool -> (int -> int) -> int -> bool list -> int **)

let rec tally_trial b f j = function
| [] -> 0
| h :: hs' ->
  if eqb b h
  then add (f j) (tally_trial b f (Stdlib.Int.succ j) hs')
  else tally_trial b f (Stdlib.Int.succ j) hs'

(** val tally : bool -> (int -> int -> int -> int) -> trial list -> int **)

let rec tally b cnt = function
| [] -> 0
| t :: l' ->
  add (tally_trial b (cnt t.t_state t.t_choice) 0 t.hits) (tally b cnt l')

(** val event_proved :
    (int -> event) -> cert -> (int -> int -> int -> int) -> int -> bool **)

let event_proved evs c cnt g =
  let l = (evs g).trials in
  let k = tally true cnt l in
  let m = tally false cnt l in
  let p = c.elow g in
  let q0 =
    Exact.F.sub (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
      (c.ehigh g)
  in
  let (a, b) = c.parts p in
  let (a', b') = c.parts q0 in
  (&&) (end_holds c.level p a b k m) (end_holds c.level q0 a' b' m k)

(** val fact :
    model -> int -> (int -> event) -> cert -> poly list -> reference -> poly
    option **)

let fact m n evs c env = function
| Dom i -> nth_error m.domain i
| Low g ->
  if (fun (n : int) m -> n < m) g n
  then Some
         (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
           (constant (c.elow g)) (evs g).about)
  else None
| High g ->
  if (fun (n : int) m -> n < m) g n
  then Some
         (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
           (evs g).about (constant (c.ehigh g)))
  else None
| Least (s, i, j) ->
  option_map (fun e ->
    plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
      (constant (m.least e)) (m.polys e)) (label m (s, i) j)
| Most (s, i, j) ->
  option_map (fun e ->
    plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one)) (m.polys e)
      (constant (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))))
    (label m (s, i) j)
| Made k -> nth_error env k

(** val without :
    model -> int -> (int -> event) -> cert -> poly list ->
    (Exact.F.t * reference) list -> poly -> poly option **)

let rec without m n evs c env l p =
  match l with
  | [] -> Some p
  | p0 :: l' ->
    let (y, r) = p0 in
    (match fact m n evs c env r with
     | Some f ->
       if Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) y
       then without m n evs c env l' (plus (Exact.F.neg y) f p)
       else None
     | None -> None)

(** val follows :
    model -> int -> (int -> event) -> cert -> poly list ->
    (Exact.F.t * reference) list -> poly -> bool **)

let follows m n evs c env l p =
  match without m n evs c env l p with
  | Some r -> nonneg r
  | None -> false

(** val bound_ok :
    model -> int -> (int -> event) -> cert -> poly list -> bound -> bool **)

let bound_ok m n evs c env b =
  let f = m.polys b.of_expr in
  (&&)
    (follows m n evs c env b.why_lo
      (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
        (constant b.blo) f))
    (follows m n evs c env b.why_hi
      (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one)) f
        (constant b.bhi)))

(** val make :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> poly list -> made -> poly option **)

let make m n evs cut stakes c env = function
| Prod (a, b) ->
  (match fact m n evs c env a with
   | Some p ->
     (match fact m n evs c env b with
      | Some q0 -> Some (times p q0)
      | None -> None)
   | None -> None)
| Comb (l, d) ->
  if Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) d
  then option_map (fun p ->
         plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one)) (tidy p)
           (constant d)) (without m n evs c env l [])
  else None
| Square p -> Some (times p p)
| Cut (t, r) -> cut t r
| Bet (m1, box, w) ->
  if below m1 (fun e -> bound_ok m n evs c env (box e))
  then stakes m1 box w
  else None

(** val makes :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> poly list -> made list -> poly list option **)

let rec makes m n evs cut stakes c env = function
| [] -> Some env
| m0 :: l' ->
  (match make m n evs cut stakes c env m0 with
   | Some p -> makes m n evs cut stakes c (app env (p :: [])) l'
   | None -> None)

(** val sides : cert -> int -> int -> int -> Exact.F.t * Exact.F.t **)

let sides c s i j =
  let b = c.bound_at (c.slot s i j) in (b.blo, b.bhi)

(** val number0 : poly -> Exact.F.t option **)

let number0 = function
| [] -> Some (Exact.make (Exact.I.zero, Exact.I.one))
| p0 :: l ->
  let (q0, m) = p0 in
  (match m with
   | [] -> (match l with
            | [] -> Some q0
            | _ :: _ -> None)
   | _ :: _ -> None)

(** val pays : cert -> bool -> int -> int -> lchoice -> Exact.F.t **)

let pays c upward s i ch =
  match number0 ch.gains with
  | Some q0 -> q0
  | None -> let b = c.bound_at (c.paid s i) in if upward then b.bhi else b.blo

(** val pay_ok : model -> cert -> int -> int -> lchoice -> bool **)

let pay_ok m c s i ch =
  match number0 ch.gains with
  | Some _ -> true
  | None ->
    let k = c.paid s i in
    (&&) ((fun (n : int) m -> n < m) k c.bounds)
      (zero
        (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
          (m.polys (c.bound_at k).of_expr) ch.gains))

(** val weighed : model -> (int -> Exact.F.t) -> ledge list -> poly **)

let rec weighed m y = function
| [] -> []
| e :: l' -> plus (y e.goes) (m.polys e.expr) (weighed m y l')

(** val means_ok :
    model -> int -> (int -> event) -> cert -> poly list -> bool -> hints ->
    (int -> int -> int -> (Exact.F.t * reference) list) -> bool **)

let means_ok m n evs c env upward h why =
  let k = horizon m.shape in
  below (Stdlib.Int.succ k) (fun j ->
    below m.shape.states (fun s ->
      foralli (fun i ch ->
        match h.lam j s i with
        | Box _ -> true
        | Mean b ->
          let m0 =
            weighed m (h.x (Stdlib.Int.min (Stdlib.Int.succ j) k)) ch.outcomes
          in
          follows m n evs c env (why j s i)
            (if upward
             then plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
                    m0 (constant b)
             else plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
                    (constant b) m0)) 0 (m.table s)))

(** val sets_in :
    model -> int -> (int -> event) -> cert -> poly list -> bool **)

let sets_in m n evs c env =
  (&&)
    ((&&)
      ((&&) (below c.bounds (fun k -> bound_ok m n evs c env (c.bound_at k)))
        (below m.shape.states (fun s ->
          foralli (fun i ch ->
            (&&) (pay_ok m c s i ch)
              (foralli (fun j e ->
                let k = c.slot s i j in
                (&&) ((fun (n : int) m -> n < m) k c.bounds)
                  ((=) (c.bound_at k).of_expr e.expr)) 0 ch.outcomes)) 0
            (m.table s)))) (means_ok m n evs c env false c.low c.why_low))
    (means_ok m n evs c env true c.high c.why_high)

(** val sets_ok :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> bool **)

let sets_ok m n evs cut stakes c =
  match makes m n evs cut stakes c [] c.facts with
  | Some env -> sets_in m n evs c env
  | None -> false

(** val nobody : question -> bool **)

let nobody q0 =
  match q0.nature_is with
  | Some _ -> false
  | None -> true

(** val no_cut : (int -> Exact.F.t) -> Exact.F.t -> poly option **)

let no_cut _ _ =
  None

(** val no_stakes : int -> (int -> bound) -> wager -> poly option **)

let no_stakes _ _ _ =
  None

(** val unit_log : Exact.I.t **)

let unit_log =
  Exact.pow ((fun p -> p) (Exact.twice Exact.I.one)) ((fun p -> p)
    (Exact.twice (Exact.twice (Exact.twice (Exact.twice (Exact.twice_one
    (Exact.twice_one Exact.I.one)))))))

(** val bits : Exact.I.t **)

let bits =
  (fun p -> p) (Exact.twice (Exact.twice (Exact.twice (Exact.twice
    (Exact.twice (Exact.twice (Exact.twice_one Exact.I.one)))))))

(** val fixed : Exact.I.t **)

let fixed =
  Exact.pow ((fun p -> p) (Exact.twice Exact.I.one)) bits

(** val squared : Exact.I.t -> int -> Exact.I.t -> Exact.I.t **)

let rec squared more0 n u =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> u)
    (fun n' ->
    squared more0 n' (Exact.I.add (Exact.shift (Exact.I.mul u u) bits) more0))
    n

(** val log_by :
    (Exact.I.t -> Exact.I.t) -> (Exact.I.t -> Exact.I.t) -> Exact.F.t ->
    Exact.I.t -> bool **)

let log_by up0 down0 q0 y =
  if Exact.I.leq Exact.I.zero y
  then (&&)
         (Exact.I.leq
           (Exact.I.mul ((fun p -> p) (Exact.twice Exact.I.one)) y) fixed)
         (Exact.leq
           (Exact.F.of_bigint
             (up0
               (Exact.I.add (Exact.I.add fixed y)
                 (Exact.I.add
                   (Exact.shift
                     (Exact.I.mul ((fun p -> p) (Exact.twice Exact.I.one))
                       (Exact.I.mul y y)) bits) ((fun p -> p) Exact.I.one)))))
           (Exact.F.mul q0 (Exact.F.of_bigint fixed)))
  else Exact.leq (Exact.F.of_bigint fixed)
         (Exact.F.mul q0 (Exact.F.of_bigint (down0 (Exact.I.sub fixed y))))

(** val log_ok : Exact.F.t -> Exact.I.t -> bool **)

let log_ok =
  log_by
    (squared ((fun p -> p) Exact.I.one) (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ
      0)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
    (squared Exact.I.zero (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
      (Stdlib.Int.succ
      0)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))

(** val qpow : Exact.F.t -> int -> Exact.F.t **)

let rec qpow q0 n =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
    (fun n' -> Exact.F.mul q0 (qpow q0 n'))
    n

(** val mono_val : Exact.F.t list -> mono -> Exact.F.t **)

let rec mono_val a = function
| [] -> Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)
| p :: m' ->
  let (i, e) = p in
  Exact.F.mul (qpow (nth i a (Exact.make (Exact.I.zero, Exact.I.one))) e)
    (mono_val a m')

(** val poly_val : Exact.F.t list -> poly -> Exact.F.t **)

let rec poly_val a = function
| [] -> Exact.make (Exact.I.zero, Exact.I.one)
| p0 :: p' ->
  let (c, m) = p0 in
  Exact.F.add (Exact.F.mul c (mono_val a m)) (poly_val a p')

(** val is_number : poly -> bool **)

let rec is_number = function
| [] -> true
| p0 :: p' ->
  let (_, m) = p0 in (match m with
                      | [] -> is_number p'
                      | _ :: _ -> false)

(** val sumz :
    (int -> Exact.I.t option) -> int -> Exact.I.t -> Exact.I.t option **)

let rec sumz f n acc =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> Some acc)
    (fun n' ->
    match f n' with
    | Some y -> sumz f n' (Exact.I.add acc y)
    | None -> None)
    n

(** val earlier : int -> (int -> int -> int) -> int -> int -> int **)

let earlier b mt b' e =
  if (fun (n : int) m -> n < m) b' b then mt b' e else 0

(** val all_sum : model -> ledge list -> poly **)

let rec all_sum m = function
| [] -> []
| e :: l' ->
  plus (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
    (m.polys e.expr) (all_sum m l')

(** val model_ok : model -> int -> bool **)

let model_ok m e =
  below m.shape.states (fun s ->
    foralli (fun _ c ->
      (&&)
        (zero
          (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
            (constant (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)))
            (all_sum m c.outcomes)))
        (forallb (fun e0 -> (fun (n : int) m -> n < m) e0.expr e) c.outcomes))
      0 (m.table s))

(** val plug_ok : model -> int -> Exact.F.t list -> bool **)

let plug_ok m e a =
  below e (fun e0 ->
    Exact.leq (Exact.make (Exact.I.zero, Exact.I.one))
      (poly_val a (m.polys e0)))

(** val prior_ok : Exact.F.t -> (int * Exact.F.t) list -> bool **)

let rec prior_ok left = function
| [] -> Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) left
| p :: l' ->
  let (_, w) = p in
  (&&) (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) w)
    (prior_ok (Exact.F.sub left w) l')

(** val times_of : int -> (int * Exact.F.t) list -> int list -> int **)

let rec times_of b l sh =
  match l with
  | [] -> 0
  | p0 :: l' ->
    let (p, _) = p0 in
    (match sh with
     | [] -> 0
     | n :: sh' -> add (if (<=) p b then n else 0) (times_of b l' sh'))

(** val together : (int * Exact.F.t) list -> int list -> int **)

let rec together l sh =
  match l with
  | [] -> 0
  | _ :: l' -> (match sh with
                | [] -> 0
                | n :: sh' -> add n (together l' sh'))

(** val logs : cert -> int -> Exact.F.t -> Exact.I.t option **)

let logs c k q0 =
  if (=) k 0
  then Some Exact.I.zero
  else let y = c.lg q0 in
       if log_ok q0 y then Some (Exact.I.mul (Exact.I.of_int k) y) else None

(** val prices :
    cert -> int -> (int * Exact.F.t) list -> int list -> Exact.I.t option **)

let rec prices c all l sh =
  match l with
  | [] -> Some Exact.I.zero
  | p :: l' ->
    let (_, w) = p in
    (match sh with
     | [] -> Some Exact.I.zero
     | n :: sh' ->
       (match logs c n
                (Exact.F.mul w (Exact.F.mul (qnat all) (Exact.inv (qnat n)))) with
        | Some y ->
          (match prices c all l' sh' with
           | Some z0 -> Some (Exact.I.add y z0)
           | None -> None)
        | None -> None))

(** val score :
    model -> int -> (int * Exact.F.t) list -> (int -> (int -> int -> int) ->
    Exact.F.t list) -> cert -> (int -> int -> int) -> int -> Exact.I.t option **)

let score m e prior predict c mt b =
  let t = times_of b prior c.shares in
  if (=) t 0
  then Some Exact.I.zero
  else let a = predict b (earlier b mt) in
       if plug_ok m e a
       then option_map (Exact.I.mul (Exact.I.of_int t))
              (sumz (fun e0 ->
                if is_number (m.polys e0)
                then Some Exact.I.zero
                else logs c (mt b e0) (poly_val a (m.polys e0))) e
                Exact.I.zero)
       else None

(** val weigh : (int -> int -> int) -> int -> int list -> int -> Exact.I.t **)

let rec weigh mt b tm e =
  match tm with
  | [] -> Exact.I.zero
  | t :: tm' ->
    Exact.I.add (Exact.I.mul (Exact.I.of_int t) (Exact.I.of_int (mt b e)))
      (weigh mt (Stdlib.Int.succ b) tm' e)

(** val heavy :
    model -> (int -> int -> int) -> int list -> int -> (int * Exact.I.t) list
    -> (int * Exact.I.t) list **)

let rec heavy m mt tm n acc =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> acc)
    (fun e ->
    heavy m mt tm e
      (if is_number (m.polys e)
       then acc
       else let k = weigh mt 0 tm e in
            if Exact.I.leq k Exact.I.zero then acc else (e, k) :: acc))
    n

(** val likely :
    model -> int -> (int * Exact.F.t) list -> (int -> (int -> int -> int) ->
    Exact.F.t list) -> cert -> int -> (int -> int -> int) -> Exact.F.t ->
    (Exact.I.t * (int * Exact.I.t) list) option **)

let likely m e prior predict c b mt delta =
  let all = together prior c.shares in
  if (=) all 0
  then Some (Exact.I.zero, [])
  else if (&&)
            (prior_ok (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
              prior) (model_ok m e)
       then (match logs c all delta with
             | Some x0 ->
               (match prices c all prior c.shares with
                | Some y ->
                  (match sumz (score m e prior predict c mt) b Exact.I.zero with
                   | Some z0 ->
                     Some ((Exact.I.add x0 (Exact.I.add y z0)),
                       (heavy m mt
                         (map (fun b0 -> times_of b0 prior c.shares)
                           (seq 0 b)) e []))
                   | None -> None)
                | None -> None)
             | None -> None)
       else None

(** val room :
    cert -> (int * Exact.I.t) list -> (int -> Exact.F.t) -> Exact.I.t ->
    Exact.I.t option **)

let rec room c ws t acc =
  match ws with
  | [] -> Some acc
  | p :: ws' ->
    let (e, k) = p in
    let q0 = Exact.F.mul (t e) (Exact.inv (Exact.F.of_bigint k)) in
    let y = c.lg q0 in
    if log_ok q0 y
    then room c ws' t
           (Exact.I.add acc (Exact.I.mul k (Exact.I.add y unit_log)))
    else None

(** val tilted :
    model -> (int * Exact.I.t) list -> (int -> Exact.F.t) -> poly -> poly **)

let rec tilted m ws t p =
  match ws with
  | [] -> p
  | p0 :: ws' -> let (e, _) = p0 in tilted m ws' t (plus (t e) (m.polys e) p)

(** val tangent :
    model -> cert -> (Exact.I.t * (int * Exact.I.t) list) -> (int ->
    Exact.F.t) -> Exact.F.t -> poly option **)

let tangent m c known t r =
  match room c (snd known) t (fst known) with
  | Some y ->
    if Exact.leq (Exact.F.mul r (Exact.F.of_bigint unit_log))
         (Exact.F.of_bigint y)
    then Some (tilted m (snd known) t (constant (Exact.F.neg r)))
    else None
  | None -> None

(** val zip :
    (Exact.I.t -> 'a1 -> 'a1 -> 'a1) -> 'a1 -> Exact.I.t -> 'a1 list -> 'a1
    list -> 'a1 list **)

let rec zip add4 none0 a l m =
  match l with
  | [] -> m
  | x0 :: l' ->
    (match m with
     | [] -> (add4 a x0 none0) :: (zip add4 none0 a l' [])
     | y :: m' -> (add4 a x0 y) :: (zip add4 none0 a l' m'))

(** val add_form :
    (Exact.I.t -> 'a1 -> 'a1 -> 'a1) -> 'a1 -> Exact.I.t -> 'a1 form -> 'a1
    form -> 'a1 form **)

let add_form add4 none0 a p q0 =
  ((Exact.I.add (Exact.I.mul a (fst p)) (fst q0)),
    (zip add4 none0 a (snd p) (snd q0)))

(** val add0 : Exact.I.t -> Exact.I.t -> Exact.I.t -> Exact.I.t **)

let add0 a x0 y =
  Exact.I.add (Exact.I.mul a x0) y

(** val add1 : Exact.I.t -> affine -> affine -> affine **)

let add1 =
  add_form add0 Exact.I.zero

(** val add2 : Exact.I.t -> quadratic -> quadratic -> quadratic **)

let add2 =
  add_form add1 (Exact.I.zero, [])

(** val add3 : Exact.I.t -> cubic -> cubic -> cubic **)

let add3 =
  add_form add2 (Exact.I.zero, [])

(** val raise : ('a1 -> 'a2) -> 'a1 form -> 'a2 form **)

let raise f p =
  ((fst p), (map f (snd p)))

(** val to_affine : Exact.I.t -> affine **)

let to_affine q0 =
  (q0, [])

(** val to_cubic : quadratic -> cubic **)

let to_cubic =
  raise (raise to_affine)

(** val none : Exact.I.t -> bool **)

let none x0 =
  (&&) (Exact.I.leq x0 Exact.I.zero) (Exact.I.leq Exact.I.zero x0)

(** val spread :
    Exact.I.t -> quadratic -> Exact.I.t list -> quadratic list -> quadratic
    list **)

let rec spread a p l m =
  match l with
  | [] -> m
  | x0 :: l' ->
    (match m with
     | [] ->
       (add2 (Exact.I.mul a x0) p (Exact.I.zero, [])) :: (spread a p l' [])
     | y :: m' ->
       (if none x0 then y else add2 (Exact.I.mul a x0) p y) :: (spread a p l'
                                                                 m'))

(** val gather : Exact.I.t -> affine -> quadratic -> cubic -> cubic **)

let gather a f p acc =
  let acc0 = add3 (Exact.I.mul a (fst f)) (to_cubic p) acc in
  ((fst acc0), (spread a p (snd f) (snd acc0)))

(** val least_each :
    (int -> Exact.I.t) -> int -> Exact.I.t list -> Exact.I.t **)

let rec least_each height0 j = function
| [] -> Exact.I.zero
| v :: l' ->
  if Exact.I.leq Exact.I.zero v
  then least_each height0 (Stdlib.Int.succ j) l'
  else Exact.I.add (Exact.I.mul (height0 j) v)
         (least_each height0 (Stdlib.Int.succ j) l')

(** val least_one : Exact.I.t list -> Exact.I.t **)

let rec least_one = function
| [] -> Exact.I.zero
| v :: l' -> let r = least_one l' in if Exact.I.leq v r then v else r

(** val least_form :
    (int -> Exact.I.t) -> Exact.I.t -> ('a1 -> Exact.I.t) -> 'a1 form ->
    Exact.I.t **)

let least_form height0 budget0 least0 p =
  let l = map least0 (snd p) in
  let a = least_each height0 0 l in
  let b = Exact.I.mul budget0 (least_one l) in
  Exact.I.add (fst p) (if Exact.I.leq a b then b else a)

(** val least1 : (int -> Exact.I.t) -> Exact.I.t -> affine -> Exact.I.t **)

let least1 height0 budget0 =
  least_form height0 budget0 (fun x0 -> x0)

(** val least2 : (int -> Exact.I.t) -> Exact.I.t -> quadratic -> Exact.I.t **)

let least2 height0 budget0 =
  least_form height0 budget0 (least1 height0 budget0)

(** val least3 : (int -> Exact.I.t) -> Exact.I.t -> cubic -> Exact.I.t **)

let least3 height0 budget0 =
  least_form height0 budget0 (least2 height0 budget0)

(** val weighted :
    Exact.F.t list -> lchoice list -> (Exact.F.t * lchoice) list **)

let rec weighted w cs =
  match w with
  | [] -> []
  | q0 :: w' ->
    (match cs with
     | [] -> []
     | c :: cs' ->
       if Exact.leq q0 (Exact.make (Exact.I.zero, Exact.I.one))
       then weighted w' cs'
       else (q0, c) :: (weighted w' cs'))

(** val taken : rule -> lchoice list -> (Exact.F.t * lchoice) list **)

let taken r cs =
  match r with
  | Any -> []
  | Only i ->
    (match nth_error cs i with
     | Some c ->
       ((Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)), c) :: []
     | None -> [])
  | Mix w -> weighted w cs

(** val named : rule -> bool **)

let named = function
| Any -> false
| _ -> true

(** val rule_of : question -> int -> rule **)

let rule_of q0 s =
  match q0.policy with
  | Some f -> f 0 s
  | None -> Any

(** val axis : cell -> int -> poly **)

let axis l j =
  match nth_error l.axes j with
  | Some p0 -> let (p1, _) = p0 in let (p2, _) = p1 in let (p, _) = p2 in p
  | None -> []

(** val height : cell -> int -> Exact.I.t **)

let height l j =
  match nth_error l.axes j with
  | Some p -> let (p0, _) = p in let (p1, _) = p0 in let (_, h) = p1 in h
  | None -> Exact.I.zero

(** val axes_ok :
    model -> int -> (int -> event) -> cell -> cert -> poly list -> bool **)

let axes_ok m n evs l c env =
  (&&)
    (forallb (fun a ->
      let (y, hi0) = a in
      let (y0, lo0) = y in
      let (p, h) = y0 in
      (&&) (follows m n evs c env lo0 p)
        (follows m n evs c env hi0
          (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one)) p
            (constant (Exact.F.of_bigint h))))) l.axes)
    (follows m n evs c env l.why_budget
      (fold_right (fun a ->
        plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
          (fst (fst (fst a)))) (constant (Exact.F.of_bigint l.budget)) l.axes))

(** val composed : cell -> int -> Exact.I.t list -> poly **)

let rec composed l k = function
| [] -> []
| a :: f' ->
  plus (Exact.F.of_bigint a) (axis l k) (composed l (Stdlib.Int.succ k) f')

(** val composed2 : cell -> int -> affine list -> poly **)

let rec composed2 l k = function
| [] -> []
| a :: f' ->
  plus (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
    (times (axis l k)
      (plus (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
        (constant (Exact.F.of_bigint (fst a))) (composed l 0 (snd a))))
    (composed2 l (Stdlib.Int.succ k) f')

(** val newest : poly list -> poly **)

let rec newest = function
| [] -> []
| p :: v' -> (match v' with
              | [] -> p
              | _ :: _ -> newest v')

(** val sure_of : cell -> poly list -> quadratic -> bool **)

let sure_of l env f =
  (||) (Exact.I.leq Exact.I.zero (least2 (height l) l.budget f))
    (zero
      (plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
        (plus (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
          (constant (Exact.F.of_bigint (fst f))) (composed2 l 0 (snd f)))
        (newest env)))

(** val labels_ok : model -> cell -> bool **)

let labels_ok m l =
  (&&)
    ((&&) (Exact.I.lt Exact.I.zero l.grain)
      (Exact.I.lt Exact.I.zero l.unit_of))
    (below l.labels (fun k ->
      let e = l.label_at k in
      let f = l.linear e in
      zero
        (plus (Exact.F.neg (Exact.F.of_bigint l.grain)) (m.polys e)
          (plus (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
            (constant (Exact.F.of_bigint (fst f))) (composed l 0 (snd f))))))

(** val labelled : cell -> ledge -> bool **)

let labelled l e =
  let k = l.place_of e.expr in
  (&&) ((fun (n : int) m -> n < m) k l.labels) ((=) (l.label_at k) e.expr)

(** val sign : bool -> Exact.F.t **)

let sign = function
| true -> Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one)
| false -> Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)

(** val turn : bool -> Exact.I.t **)

let turn = function
| true -> Exact.I.neg Exact.I.one
| false -> (fun p -> p) Exact.I.one

(** val guess_at : walk -> int -> quadratic **)

let guess_at w t =
  if w.is_open t then w.guess t else ((w.beyond t), [])

(** val weighed0 :
    model -> cell -> bool -> Exact.I.t -> (Exact.F.t * lchoice) list ->
    (Exact.I.t * Exact.I.t) list -> ((Exact.I.t * Exact.I.t) * ledge list)
    list option **)

let rec weighed0 m l upward g cs sh =
  match cs with
  | [] -> Some []
  | p :: cs' ->
    let (q0, ch) = p in
    (match sh with
     | [] -> None
     | p0 :: sh' ->
       let (a, b) = p0 in
       (match number0 ch.gains with
        | Some e ->
          (match weighed0 m l upward g cs' sh' with
           | Some l' ->
             if (&&)
                  (Exact.equal (Exact.F.of_bigint a)
                    (Exact.F.mul (Exact.F.of_bigint g)
                      (Exact.F.mul q0 m.shape.factor)))
                  (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one))
                    (Exact.F.mul (sign upward)
                      (Exact.F.sub
                        (Exact.F.mul
                          (Exact.F.of_bigint
                            (Exact.I.mul g (Exact.I.mul l.grain l.unit_of)))
                          (Exact.F.mul q0 e)) (Exact.F.of_bigint b))))
             then Some (((a, b), ch.outcomes) :: l')
             else None
           | None -> None)
        | None -> None))

(** val edges_in :
    cell -> walk -> Exact.I.t -> ledge list -> cubic -> cubic **)

let rec edges_in l w a es acc =
  match es with
  | [] -> acc
  | e :: es' ->
    edges_in l w a es' (gather a (l.linear e.expr) (guess_at w e.goes) acc)

(** val choices_in :
    cell -> walk -> bool -> ((Exact.I.t * Exact.I.t) * ledge list) list ->
    cubic -> cubic **)

let rec choices_in l w upward cs acc =
  match cs with
  | [] -> acc
  | p :: cs' ->
    let (p0, es) = p in
    let (a, b) = p0 in
    choices_in l w upward cs'
      (edges_in l w (Exact.I.mul (turn upward) a) es
        ((Exact.I.add (Exact.I.mul (turn upward) b) (fst acc)), (snd acc)))

(** val slow_edges :
    cell -> walk -> Exact.I.t -> ledge list -> affine -> affine **)

let rec slow_edges l w a es acc =
  match es with
  | [] -> acc
  | e :: es' ->
    slow_edges l w a es'
      (if w.is_open e.goes
       then add1 (Exact.I.mul a (w.slow e.goes)) (l.linear e.expr) acc
       else acc)

(** val slow_choices :
    cell -> walk -> ((Exact.I.t * Exact.I.t) * ledge list) list -> affine ->
    affine **)

let rec slow_choices l w cs acc =
  match cs with
  | [] -> acc
  | p :: cs' ->
    let (p0, es) = p in
    let (a, _) = p0 in
    slow_choices l w cs' (slow_edges l w (Exact.I.neg a) es acc)

(** val said :
    cell -> walk -> bool -> (int -> Exact.F.t) -> (int -> bool) -> int -> bool **)

let said l w upward x0 sure0 t =
  (||) (w.is_open t)
    ((&&) (sure0 t)
      (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one))
        (Exact.F.mul (sign upward)
          (Exact.F.sub (Exact.F.mul (Exact.F.of_bigint l.unit_of) (x0 t))
            (Exact.F.of_bigint (w.beyond t))))))

(** val state_ok :
    model -> cell -> walk -> (int -> rule) -> bool -> (int -> Exact.F.t) ->
    (int -> bool) -> int -> bool **)

let state_ok m l w rl upward x0 sure0 s =
  match ends_of m.shape 0 s with
  | Some _ -> false
  | None ->
    let cs = taken (rl s) (m.table s) in
    let g = Exact.I.mul (w.whole s) l.grain in
    (&&)
      ((&&)
        ((&&) (Exact.I.lt Exact.I.zero (w.whole s))
          (forallb (fun qc ->
            forallb (fun e ->
              (&&) (labelled l e) (said l w upward x0 sure0 e.goes))
              (snd qc).outcomes) cs))
        (match weighed0 m l upward (w.whole s) cs (w.portions_at s) with
         | Some v ->
           (&&)
             (Exact.I.leq Exact.I.zero
               (least3 (height l) l.budget
                 (choices_in l w upward v
                   (add3 (Exact.I.neg (Exact.I.mul (turn upward) g))
                     (to_cubic (w.guess s)) (Exact.I.zero, [])))))
             (Exact.leq
               (Exact.F.mul
                 (Exact.F.sub (Exact.make (((fun p -> p) Exact.I.one),
                   Exact.I.one)) w.rate)
                 (Exact.F.of_bigint (Exact.I.mul g (w.slow s))))
               (Exact.F.of_bigint
                 (least1 (height l) l.budget
                   (slow_choices l w v ((Exact.I.mul g (w.slow s)), [])))))
         | None -> false)) (Exact.I.leq ((fun p -> p) Exact.I.one) (w.slow s))

(** val walk_ok :
    model -> cell -> walk -> (int -> rule) -> bool -> (int -> Exact.F.t) ->
    (int -> bool) -> bool **)

let walk_ok m l w rl upward x0 sure0 =
  (&&)
    ((&&) (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) w.rate)
      (qltb w.rate (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))))
    (below m.shape.states (fun s ->
      (||) (not (w.is_open s)) (state_ok m l w rl upward x0 sure0 s)))

(** val covered :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> (poly list -> cell -> bool) -> poly list -> cells -> bool **)

let rec covered m n evs cut stakes c good env = function
| Leaf l ->
  (match makes m n evs cut stakes c env l.more with
   | Some env' -> good env' l
   | None -> false)
| Hollow (m0, why) ->
  (match makes m n evs cut stakes c env m0 with
   | Some env' ->
     follows m n evs c env' why
       (constant (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one)))
   | None -> false)
| Split (d, a, b) ->
  (&&) (covered m n evs cut stakes c good (app env (d :: [])) a)
    (covered m n evs cut stakes c good
      (app env
        ((plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one)) d []) :: []))
      b)

(** val steady : model -> bool **)

let steady m =
  (&&)
    ((&&) (match m.shape.last with
           | Some _ -> false
           | None -> true) ((=) m.shape.first 0))
    (match m.shape.kind_of with
     | Next -> false
     | Cumulative -> false
     | Average -> false
     | _ -> true)

(** val vectors_ok : model -> cert -> bool **)

let vectors_ok m c =
  let p = boxed m (pays c false) (sides c) in
  let p' = boxed m (pays c true) (sides c) in
  let q0 = c.ask in
  (&&)
    ((&&)
      ((&&)
        ((&&)
          ((&&)
            ((&&)
              ((&&)
                ((&&)
                  ((&&)
                    ((&&) (steady m)
                      (below m.shape.states (fun s -> named (rule_of q0 s))))
                    (not (agent_owns q0 true))) (not (agent_owns q0 false)))
                (playable p q0)) (owners p q0 true c.low))
            (check_low p (arena p q0 true c.low) (rule_for p q0 true c.low)
              c.low)) (playable p' q0)) (owners p' q0 false c.high))
      (check_high p' (arena p' q0 false c.high) (rule_for p' q0 false c.high)
        c.high)) (not (c.high.endless m.shape.initial))

(** val bound_of : cert -> bool -> int -> Exact.F.t **)

let bound_of c upward t =
  (if upward then c.high else c.low).x 0 t

(** val bounded_at : cert -> int -> bool **)

let bounded_at c t =
  not (c.high.endless t)

(** val beats : cell -> bool -> Exact.F.t -> bool **)

let beats l upward b =
  Exact.leq (Exact.make (Exact.I.zero, Exact.I.one))
    (Exact.F.mul (sign upward)
      (Exact.F.sub (Exact.F.of_bigint l.goal)
        (Exact.F.mul (Exact.F.of_bigint l.unit_of) b)))

(** val cell_ok :
    model -> int -> (int -> event) -> cert -> bool -> Exact.F.t -> poly list
    -> cell -> bool **)

let cell_ok m n evs c upward b env l =
  let w = l.first_walk in
  let s = m.shape.initial in
  let g = turn upward in
  (&&)
    ((&&)
      ((&&)
        ((&&) ((&&) (axes_ok m n evs l c env) (labels_ok m l))
          (walk_ok m l w (rule_of c.ask) upward (bound_of c upward)
            (bounded_at c))) (w.is_open s))
      (sure_of l env
        (add2 g (w.guess s) ((Exact.I.neg (Exact.I.mul g l.goal)), []))))
    (beats l upward b)

(** val rule_at : model -> question -> int -> int -> rule **)

let rule_at m q0 j s =
  pol_of m.shape q0 j s

(** val known_at : model -> int -> int -> int -> Exact.F.t option **)

let known_at m k j t =
  match ends_of m.shape j t with
  | Some b -> Some b
  | None ->
    if (=) j k then Some (Exact.make (Exact.I.zero, Exact.I.one)) else None

(** val stage : model -> walk -> int -> walk **)

let stage m w j =
  let at_step = fun s -> add (mul j m.shape.states) s in
  { is_open = (fun s -> w.is_open (at_step s)); guess = (fun s ->
  w.guess (at_step s)); beyond = (fun s -> w.beyond (at_step s)); whole =
  (fun s -> w.whole (at_step s)); portions_at = (fun s ->
  w.portions_at (at_step s)); slow = w.slow; rate = w.rate }

(** val known_value : model -> int -> int -> int -> Exact.F.t **)

let known_value m k j t =
  match known_at m k j t with
  | Some b -> b
  | None -> Exact.make (Exact.I.zero, Exact.I.one)

(** val is_known : model -> int -> int -> int -> bool **)

let is_known m k j t =
  match known_at m k j t with
  | Some _ -> true
  | None -> false

(** val stage_ok :
    model -> int -> cell -> walk -> question -> bool -> int -> int -> bool **)

let stage_ok m k l w q0 upward j s =
  let now = stage m w j in
  let after = stage m w (Stdlib.Int.succ j) in
  (match ends_of m.shape j s with
   | Some _ -> false
   | None ->
     let cs = taken (rule_at m q0 j s) (m.table s) in
     let g = Exact.I.mul (now.whole s) l.grain in
     (&&)
       ((&&)
         ((&&) ((fun (n : int) m -> n < m) j k)
           (Exact.I.lt Exact.I.zero (now.whole s)))
         (forallb (fun qc ->
           forallb (fun e ->
             (&&) (labelled l e)
               (said l after upward (known_value m k (Stdlib.Int.succ j))
                 (is_known m k (Stdlib.Int.succ j)) e.goes)) (snd qc).outcomes)
           cs))
       (match weighed0 m l upward (now.whole s) cs (now.portions_at s) with
        | Some v ->
          Exact.I.leq Exact.I.zero
            (least3 (height l) l.budget
              (choices_in l after upward v
                (add3 (Exact.I.neg (Exact.I.mul (turn upward) g))
                  (to_cubic (now.guess s)) (Exact.I.zero, []))))
        | None -> false))

(** val counted_ok : model -> cert -> int -> bool **)

let counted_ok m c k =
  let q0 = c.ask in
  (&&)
    ((&&)
      ((&&) (playable (boxed m (pays c false) (sides c)) q0)
        (not (agent_owns q0 true))) (not (agent_owns q0 false)))
    (below (Stdlib.Int.succ k) (fun j ->
      below m.shape.states (fun s -> named (rule_at m q0 j s))))

(** val stages_ok :
    model -> int -> (int -> event) -> cert -> int -> bool -> Exact.F.t ->
    poly list -> cell -> bool **)

let stages_ok m n evs c k upward b env l =
  let w = l.first_walk in
  let f = (stage m w 0).guess m.shape.initial in
  let g = turn upward in
  (&&)
    ((&&)
      ((&&)
        ((&&) ((&&) (axes_ok m n evs l c env) (labels_ok m l))
          (below (Stdlib.Int.succ k) (fun j ->
            below m.shape.states (fun s ->
              (||) (not ((stage m w j).is_open s))
                (stage_ok m k l w c.ask upward j s)))))
        ((stage m w 0).is_open m.shape.initial))
      (sure_of l env (add2 g f ((Exact.I.neg (Exact.I.mul g l.goal)), []))))
    (beats l upward b)

(** val joint :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> bool -> poly list -> Exact.F.t option -> bool **)

let joint m n evs cut stakes c upward env b =
  match if upward then c.joint_high else c.joint_low with
  | Some t ->
    (match b with
     | Some b0 ->
       (match m.shape.last with
        | Some k ->
          (&&) (counted_ok m c k)
            (covered m n evs cut stakes c (stages_ok m n evs c k upward b0)
              env t)
        | None ->
          (&&) (vectors_ok m c)
            (covered m n evs cut stakes c (cell_ok m n evs c upward b0) env t))
     | None -> false)
  | None -> false

(** val rival : cert -> question -> cert **)

let rival c q0 =
  { ask = q0; versus = None; reader = c.reader; compl = c.compl; lower =
    None; upper = None; low = c.low2; high = c.high2; elow = c.elow; ehigh =
    c.ehigh; parts = c.parts; level = c.level; shares = c.shares; lg = c.lg;
    facts = c.facts; bounds = c.bounds; bound_at = c.bound_at; slot = c.slot;
    paid = c.paid; why_low = c.why_low2; why_high = c.why_high2; joint_low =
    None; joint_high = None; low2 = c.low2; high2 = c.high2; why_low2 =
    c.why_low2; why_high2 = c.why_high2 }

(** val pair_ok :
    model -> int -> (int -> event) -> cert -> cert -> bool -> Exact.F.t ->
    poly list -> cell -> bool **)

let pair_ok m n evs c c' upward b env l =
  let w = l.first_walk in
  let w' = l.second_walk in
  let s = m.shape.initial in
  let g = turn upward in
  (&&)
    ((&&)
      ((&&)
        ((&&)
          ((&&)
            ((&&) ((&&) (axes_ok m n evs l c env) (labels_ok m l))
              (walk_ok m l w (rule_of c.ask) upward (bound_of c upward)
                (bounded_at c))) (w.is_open s))
          (walk_ok m l w' (rule_of c'.ask) (not upward)
            (bound_of c' (not upward)) (bounded_at c'))) (w'.is_open s))
      (sure_of l env
        (add2 g (add2 (Exact.I.neg Exact.I.one) (w'.guess s) (w.guess s))
          ((Exact.I.neg (Exact.I.mul g l.goal)), [])))) (beats l upward b)

(** val apart :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> cert -> bool -> poly list -> Exact.F.t -> bool **)

let apart m n evs cut stakes c c' upward env b =
  let s = m.shape.initial in
  (||)
    (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one))
      (Exact.F.mul (sign upward)
        (Exact.F.sub
          (Exact.F.sub (bound_of c upward s) (bound_of c' (not upward) s)) b)))
    (match if upward then c.joint_high else c.joint_low with
     | Some t ->
       covered m n evs cut stakes c (pair_ok m n evs c c' upward b) env t
     | None -> false)

(** val differs :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> question -> bool **)

let differs m n evs cut stakes c q0 =
  match c.lower with
  | Some l ->
    (match c.upper with
     | Some u ->
       if c.compl
       then let l0 = Exact.F.neg u in
            let u0 = Exact.F.neg l in
            let c' = rival c q0 in
            (&&) ((&&) (nobody c.ask) (nobody q0))
              (match makes m n evs cut stakes c [] c.facts with
               | Some env ->
                 (&&)
                   ((&&)
                     ((&&)
                       ((&&)
                         ((&&) (sets_in m n evs c env)
                           (sets_ok m n evs cut stakes c')) (vectors_ok m c))
                       (vectors_ok m c'))
                     (apart m n evs cut stakes c c' false env l0))
                   (apart m n evs cut stakes c c' true env u0)
               | None -> false)
       else let c' = rival c q0 in
            (&&) ((&&) (nobody c.ask) (nobody q0))
              (match makes m n evs cut stakes c [] c.facts with
               | Some env ->
                 (&&)
                   ((&&)
                     ((&&)
                       ((&&)
                         ((&&) (sets_in m n evs c env)
                           (sets_ok m n evs cut stakes c')) (vectors_ok m c))
                       (vectors_ok m c'))
                     (apart m n evs cut stakes c c' false env l))
                   (apart m n evs cut stakes c c' true env u)
               | None -> false)
     | None -> false)
  | None -> false

(** val holds :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> bool **)

let holds m n evs cut stakes c =
  if c.compl
  then let l = less c.upper in
       let u = less c.lower in
       (&&) (nobody c.ask)
         (match makes m n evs cut stakes c [] c.facts with
          | Some env ->
            (&&)
              ((&&) (sets_in m n evs c env)
                ((||)
                  (shows_low (boxed m (pays c false) (sides c)) c.ask c.low l)
                  (joint m n evs cut stakes c false env l)))
              (match u with
               | Some v ->
                 (||)
                   (shows_high (boxed m (pays c true) (sides c)) c.ask c.high
                     v) (joint m n evs cut stakes c true env u)
               | None -> true)
          | None -> false)
  else let l = c.lower in
       let u = c.upper in
       (&&) (nobody c.ask)
         (match makes m n evs cut stakes c [] c.facts with
          | Some env ->
            (&&)
              ((&&) (sets_in m n evs c env)
                ((||)
                  (shows_low (boxed m (pays c false) (sides c)) c.ask c.low l)
                  (joint m n evs cut stakes c false env l)))
              (match u with
               | Some v ->
                 (||)
                   (shows_high (boxed m (pays c true) (sides c)) c.ask c.high
                     v) (joint m n evs cut stakes c true env u)
               | None -> true)
          | None -> false)

(** val shown_of :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> bool **)

let shown_of m n evs cut stakes c =
  match c.versus with
  | Some q0 -> differs m n evs cut stakes c q0
  | None -> holds m n evs cut stakes c

(** val shown :
    model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t ->
    poly option) -> (int -> (int -> bound) -> wager -> poly option) -> cert
    -> bool **)

let shown m n evs cut stakes c =
  (&&) (match c.reader with
        | Some a -> readable (skeleton m) a
        | None -> true) (shown_of (of_runs m c) n evs cut stakes c)

(** val accept_domain : model -> cert -> bool **)

let accept_domain m c =
  shown m 0 (fun _ -> { about = []; trials = [] }) no_cut no_stakes c

type scheme = { kinds : int; kind_of_choice : ((int * int) -> int);
                members : (int -> int list); classes : int;
                of_class : (int -> int); parties : int; alpha : Exact.F.t;
                weights : Exact.F.t list;
                stake : (int -> int -> int -> (int -> int -> int) -> int ->
                        Exact.I.t) }

(** val stake_unit : Exact.F.t **)

let stake_unit =
  Exact.inv
    (Exact.F.of_bigint
      (Exact.pow ((fun p -> p) (Exact.twice Exact.I.one)) ((fun p -> p)
        (Exact.twice (Exact.twice_one (Exact.twice (Exact.twice
        (Exact.twice_one Exact.I.one))))))))

(** val amount : Exact.I.t -> Exact.F.t **)

let amount z0 =
  Exact.F.mul (Exact.F.of_bigint z0) stake_unit

(** val same_z : Exact.I.t -> Exact.I.t -> bool **)

let same_z y z0 =
  (&&) (Exact.I.leq y z0) (Exact.I.leq z0 y)

(** val zeros : Exact.I.t -> bool **)

let zeros z0 =
  same_z z0 Exact.I.zero

type placement = int list * (int -> Exact.I.t)

type entry = { certain : bool; often : int; stands : Exact.F.t }

(** val fits : scheme -> int list -> ledge list -> bool **)

let rec fits g l es =
  match l with
  | [] -> (match es with
           | [] -> true
           | _ :: _ -> false)
  | k :: l' ->
    (match es with
     | [] -> false
     | e :: es' ->
       (&&)
         ((&&) ((fun (n : int) m -> n < m) k g.classes)
           ((=) (g.of_class k) e.expr)) (fits g l' es'))

(** val kinds_ok : model -> scheme -> bool **)

let kinds_ok m g =
  below m.shape.states (fun s ->
    foralli (fun i c ->
      (&&) ((fun (n : int) m -> n < m) (g.kind_of_choice (s, i)) g.kinds)
        (fits g (g.members (g.kind_of_choice (s, i))) c.outcomes)) 0
      (m.table s))

(** val classes_ok : int -> scheme -> bool **)

let classes_ok e g =
  (&&)
    (below g.classes (fun k -> (fun (n : int) m -> n < m) (g.of_class k) e))
    (below g.kinds (fun q0 ->
      forallb (fun k -> (fun (n : int) m -> n < m) k g.classes) (g.members q0)))

(** val zsum : (int -> Exact.I.t) -> int list -> Exact.I.t **)

let rec zsum z0 = function
| [] -> Exact.I.zero
| k :: l' -> Exact.I.add (z0 k) (zsum z0 l')

(** val fair : scheme -> (int -> Exact.I.t) -> bool **)

let fair g z0 =
  below g.kinds (fun q0 -> Exact.I.leq (zsum z0 (g.members q0)) Exact.I.zero)

(** val weights_ok : Exact.F.t -> Exact.F.t list -> bool **)

let rec weights_ok left = function
| [] -> Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) left
| w :: l' ->
  (&&) (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) w)
    (weights_ok (Exact.F.sub left w) l')

(** val calls :
    scheme -> int -> (int -> int -> int) -> int -> int -> (int * (int ->
    Exact.I.t)) list **)

let calls g b mk side j =
  map (fun b0 -> (b0, (g.stake side j b0 (earlier b0 mk)))) (seq 0 b)

(** val places :
    scheme -> (int * (int -> Exact.I.t)) list -> placement list **)

let rec places g = function
| [] -> []
| p :: l' ->
  let (b, z0) = p in
  (match places g l' with
   | [] -> ((b :: []), z0) :: []
   | p0 :: ps ->
     let (bs, y) = p0 in
     if below g.classes (fun k -> same_z (z0 k) (y k))
     then ((b :: bs), y) :: ps
     else ((b :: []), z0) :: ((bs, y) :: ps))

(** val sumn : (int -> int) -> int list -> int **)

let rec sumn f = function
| [] -> 0
| b :: l' -> add (f b) (sumn f l')

(** val bettors :
    scheme -> int -> (int -> int -> int) -> int -> placement list list option **)

let bettors g b mk side =
  let all = map (calls g b mk side) (seq 0 (length g.weights)) in
  if forallb (forallb (fun c -> fair g (snd c))) all
  then Some (map (places g) all)
  else None

(** val all_sides :
    scheme -> int -> (int -> int -> int) -> int -> placement list list list
    option **)

let rec all_sides g b mk n =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> Some [])
    (fun n' ->
    match all_sides g b mk n' with
    | Some l ->
      (match bettors g b mk n' with
       | Some p -> Some (app l (p :: []))
       | None -> None)
    | None -> None)
    n

(** val of_expressions : int -> scheme -> int list list **)

let of_expressions e g =
  map (fun e0 -> filter (fun k -> (=) (g.of_class k) e0) (seq 0 g.classes))
    (seq 0 e)

(** val known_low : scheme -> int -> (int -> bound) -> int -> Exact.F.t **)

let known_low g m box k =
  let e = g.of_class k in
  if (&&) ((fun (n : int) m -> n < m) e m) ((=) (box e).of_expr e)
  then (box e).blo
  else Exact.make (Exact.I.zero, Exact.I.one)

(** val stands_ok :
    scheme -> int -> (int -> bound) -> (int -> Exact.I.t) -> int -> bool **)

let stands_ok g m box z0 k =
  (||) (Exact.I.leq Exact.I.zero (z0 k))
    (Exact.leq
      (Exact.F.mul (Exact.make (((fun p -> p) (Exact.twice Exact.I.one)),
        Exact.I.one)) (Exact.F.neg (amount (z0 k)))) (known_low g m box k))

(** val surely_in :
    scheme -> int -> (int -> bound) -> wager -> int -> int -> (int ->
    Exact.I.t) -> bool **)

let surely_in g m box w j p z0 =
  (&&)
    (below g.kinds (fun q0 ->
      (||) (forallb (fun k -> not (w.sure j p k)) (g.members q0))
        (forallb (stands_ok g m box z0) (g.members q0))))
    (below g.classes (fun k ->
      (||) (not (w.sure j p k)) (stands_ok g m box z0 k)))

(** val entries_of :
    (int -> int -> int) -> wager -> int -> int -> int -> int -> placement
    list -> entry list **)

let rec entries_of mk w k j p n = function
| [] -> []
| p0 :: l' ->
  let (bs, z0) = p0 in
  let rest = entries_of mk w k j (Stdlib.Int.succ p) n l' in
  if zeros (z0 k)
  then rest
  else let t = mul n (sumn (fun b -> mk b k) bs) in
       if (=) t 0
       then rest
       else { certain = (w.sure j p k); often = t; stands =
              (amount (z0 k)) } :: rest

(** val entries :
    (int -> int -> int) -> wager -> int -> int -> int list -> placement list
    list -> entry list **)

let rec entries mk w k j ns l =
  match ns with
  | [] -> []
  | n :: ns' ->
    (match l with
     | [] -> []
     | ps :: l' ->
       app (if (=) n 0 then [] else entries_of mk w k j 0 n ps)
         (entries mk w k (Stdlib.Int.succ j) ns' l'))

(** val surely0 :
    scheme -> int -> (int -> bound) -> wager -> int -> int list -> placement
    list list -> bool **)

let rec surely0 g m box w j ns l =
  match ns with
  | [] -> true
  | n :: ns' ->
    (match l with
     | [] -> true
     | ps :: l' ->
       (&&)
         ((||) ((=) n 0)
           (foralli (fun p x0 -> surely_in g m box w j p (snd x0)) 0 ps))
         (surely0 g m box w (Stdlib.Int.succ j) ns' l'))

(** val down : wager -> Exact.F.t -> Exact.F.t **)

let down w x0 =
  let y = w.trim x0 in if Exact.leq y x0 then y else x0

(** val up : wager -> Exact.F.t -> Exact.F.t **)

let up w x0 =
  Exact.F.neg (down w (Exact.F.neg x0))

(** val qsum_of : (entry -> Exact.F.t) -> entry list -> Exact.F.t **)

let rec qsum_of f = function
| [] -> Exact.make (Exact.I.zero, Exact.I.one)
| x0 :: l' -> Exact.F.add (Exact.F.mul (qnat x0.often) (f x0)) (qsum_of f l')

(** val logs_of :
    cert -> (entry -> Exact.F.t) -> entry list -> Exact.I.t option **)

let rec logs_of c f = function
| [] -> Some Exact.I.zero
| x0 :: l' ->
  (match logs c x0.often (f x0) with
   | Some y ->
     (match logs_of c f l' with
      | Some z0 -> Some (Exact.I.add y z0)
      | None -> None)
   | None -> None)

(** val is_gain : entry -> bool **)

let is_gain x0 =
  qltb (Exact.make (Exact.I.zero, Exact.I.one)) x0.stands

(** val inverse : Exact.F.t -> Exact.F.t -> Exact.F.t **)

let inverse q0 d =
  Exact.F.mul q0 (Exact.inv d)

(** val off_log : cert -> Exact.F.t -> Exact.F.t -> Exact.F.t option **)

let off_log c kappa x0 =
  if Exact.equal kappa (Exact.make (Exact.I.zero, Exact.I.one))
  then Some (Exact.make (Exact.I.zero, Exact.I.one))
  else let y = c.lg (Exact.inv x0) in
       if log_ok (Exact.inv x0) y
       then Some (Exact.F.mul kappa (Exact.F.of_bigint y))
       else None

(** val units : Exact.F.t **)

let units =
  Exact.F.of_bigint unit_log

(** val line :
    cert -> int -> (int -> bound) -> wager -> int -> entry list -> Exact.F.t
    -> Exact.F.t option **)

let line c m box w e xs kappa =
  let b = box e in
  let l = b.blo in
  let u = b.bhi in
  let q0 = w.near e in
  let s = w.tilt e in
  if not
       ((&&)
         ((&&)
           ((&&)
             ((&&) ((&&) ((fun (n : int) m -> n < m) e m) ((=) b.of_expr e))
               (qltb (Exact.make (Exact.I.zero, Exact.I.one)) q0))
             (Exact.leq l q0)) (Exact.leq q0 u))
         (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) kappa))
  then None
  else let flat =
         filter (fun x0 -> (&&) (not x0.certain) (not (is_gain x0))) xs
       in
       let gains0 = filter (fun x0 -> (&&) x0.certain (is_gain x0)) xs in
       let losses = filter (fun x0 -> (&&) x0.certain (not (is_gain x0))) xs
       in
       let gain_slope = fun x0 ->
         inverse x0.stands (Exact.F.mul q0 (Exact.F.add q0 x0.stands))
       in
       let dlo = qsum_of (fun x0 -> down w (gain_slope x0)) gains0 in
       let dhi = qsum_of (fun x0 -> up w (gain_slope x0)) gains0 in
       let width = Exact.F.sub u l in
       let err = fun lo0 hi0 ->
         let a = Exact.F.sub hi0 s in
         let b0 = Exact.F.sub s lo0 in
         Exact.F.mul (if Exact.leq a b0 then b0 else a) width
       in
       (match logs_of c (fun x0 ->
                Exact.F.add (Exact.make (((fun p -> p) Exact.I.one),
                  Exact.I.one))
                  (inverse x0.stands
                    (if Exact.leq l
                          (Exact.F.mul (Exact.make (((fun p -> p)
                            (Exact.twice Exact.I.one)), Exact.I.one))
                            (Exact.F.neg x0.stands))
                     then Exact.F.mul (Exact.make (((fun p -> p) (Exact.twice
                            Exact.I.one)), Exact.I.one))
                            (Exact.F.neg x0.stands)
                     else l))) flat with
        | Some base ->
          (match logs_of c (fun x0 ->
                   Exact.F.add (Exact.make (((fun p -> p) Exact.I.one),
                     Exact.I.one)) (inverse x0.stands q0)) gains0 with
           | Some top ->
             let base0 =
               Exact.F.add (Exact.F.of_bigint base) (Exact.F.of_bigint top)
             in
             (match losses with
              | [] ->
                (match off_log c kappa q0 with
                 | Some y ->
                   let k = inverse kappa q0 in
                   Some
                   (Exact.F.sub (Exact.F.add base0 y)
                     (Exact.F.mul units
                       (Exact.F.add (Exact.F.mul s q0)
                         (err (Exact.F.sub (Exact.F.neg dhi) k)
                           (Exact.F.sub (Exact.F.neg dlo) k)))))
                 | None -> None)
              | _ :: _ ->
                let p = w.touch e in
                if not
                     ((&&)
                       ((&&)
                         ((&&)
                           (qltb (Exact.make (Exact.I.zero, Exact.I.one)) l)
                           (Exact.leq l p)) (Exact.leq p u))
                       (forallb (fun x0 -> qltb (Exact.F.neg x0.stands) l)
                         losses))
                then None
                else let loss_slope = fun x0 ->
                       let b0 = Exact.F.neg x0.stands in
                       inverse b0 (Exact.F.mul p (Exact.F.sub p b0))
                     in
                     let k = inverse kappa p in
                     let slo =
                       Exact.F.sub
                         (qsum_of (fun x0 -> down w (loss_slope x0)) losses) k
                     in
                     let shi =
                       Exact.F.sub
                         (qsum_of (fun x0 -> up w (loss_slope x0)) losses) k
                     in
                     let miss =
                       if w.chord e
                       then if (&&) (Exact.equal p u)
                                 (Exact.leq shi (Exact.F.add s dlo))
                            then Some (Exact.make (Exact.I.zero, Exact.I.one))
                            else None
                       else let bend = fun x0 ->
                              let b0 = Exact.F.neg x0.stands in
                              inverse
                                (Exact.F.mul b0
                                  (Exact.F.sub
                                    (Exact.F.mul (Exact.make (((fun p -> p)
                                      (Exact.twice Exact.I.one)),
                                      Exact.I.one)) p) b0))
                                (Exact.F.mul (Exact.F.sub p b0)
                                  (Exact.F.sub p b0))
                            in
                            if Exact.leq
                                 (qsum_of (fun x0 -> up w (bend x0)) losses)
                                 kappa
                            then Some
                                   (err (Exact.F.sub slo dhi)
                                     (Exact.F.sub shi dlo))
                            else None
                     in
                     let at_ = fun x0 ->
                       match logs_of c (fun t ->
                               Exact.F.add (Exact.make (((fun p -> p)
                                 Exact.I.one), Exact.I.one))
                                 (inverse t.stands x0)) losses with
                       | Some y ->
                         (match off_log c kappa x0 with
                          | Some z0 ->
                            let d = Exact.F.sub q0 x0 in
                            Some
                            (Exact.F.add
                              (Exact.F.add (Exact.F.of_bigint y) z0)
                              (Exact.F.mul units
                                (Exact.F.sub
                                  (if Exact.leq (Exact.make (Exact.I.zero,
                                        Exact.I.one)) d
                                   then Exact.F.mul dlo d
                                   else Exact.F.mul dhi d) (Exact.F.mul s x0))))
                          | None -> None)
                       | None -> None
                     in
                     (match miss with
                      | Some miss0 ->
                        (match at_ l with
                         | Some y ->
                           (match at_ p with
                            | Some z0 ->
                              Some
                                (Exact.F.sub
                                  (Exact.F.add base0
                                    (if Exact.leq y z0 then y else z0))
                                  (Exact.F.mul units miss0))
                            | None -> None)
                         | None -> None)
                      | None -> None))
           | None -> None)
        | None -> None)

(** val weight_of_log : int -> (int * Exact.I.t) list -> Exact.I.t **)

let rec weight_of_log e = function
| [] -> Exact.I.zero
| p :: l' ->
  let (e', k) = p in
  if (=) e e' then Exact.I.add k (weight_of_log e l') else weight_of_log e l'

(** val lines :
    model -> (int -> int -> int) -> cert -> int -> (int -> bound) -> wager ->
    (int * Exact.I.t) list -> int -> int list list -> placement list list ->
    (Exact.F.t * poly) option **)

let rec lines m mk c m0 box w ws e ks ps =
  match ks with
  | [] -> Some ((Exact.make (Exact.I.zero, Exact.I.one)), [])
  | l :: ks' ->
    (match lines m mk c m0 box w ws (Stdlib.Int.succ e) ks' ps with
     | Some p0 ->
       let (h, p) = p0 in
       let xs = flat_map (fun k -> entries mk w k 0 w.portions ps) l in
       let kappa =
         if Exact.equal w.guard (Exact.make (Exact.I.zero, Exact.I.one))
         then Exact.make (Exact.I.zero, Exact.I.one)
         else Exact.F.mul w.guard (Exact.F.of_bigint (weight_of_log e ws))
       in
       if (&&) (match xs with
                | [] -> true
                | _ :: _ -> false)
            (Exact.equal kappa (Exact.make (Exact.I.zero, Exact.I.one)))
       then Some (h, p)
       else (match line c m0 box w e xs kappa with
             | Some y ->
               Some ((Exact.F.add y h), (plus (w.tilt e) (m.polys e) p))
             | None -> None)
     | None -> None)

(** val costs :
    cert -> int -> int list -> Exact.F.t list -> Exact.I.t option **)

let rec costs c all ns l =
  match ns with
  | [] -> Some Exact.I.zero
  | n :: ns' ->
    (match l with
     | [] -> Some Exact.I.zero
     | v :: l' ->
       (match logs c n
                (Exact.F.mul v (Exact.F.mul (qnat all) (Exact.inv (qnat n)))) with
        | Some y ->
          (match costs c all ns' l' with
           | Some z0 -> Some (Exact.I.add y z0)
           | None -> None)
        | None -> None))

(** val wagered :
    model -> int -> scheme -> (int -> int -> int) -> cert -> int -> (int ->
    bound) -> wager -> (int * Exact.I.t) list -> Exact.I.t -> placement list
    list -> int list list -> poly option **)

let wagered m e g mk c m0 box w ws thr ps ks =
  let all = fold_right Nat.add 0 w.portions in
  if not
       ((&&)
         ((&&)
           ((&&)
             ((&&) ((fun (n : int) m -> n < m) 0 all)
               ((<=) (length w.portions) (length g.weights)))
             (Exact.leq (Exact.make (Exact.I.zero, Exact.I.one)) w.guard))
           (forallb (fun x0 -> (fun (n : int) m -> n < m) (fst x0) e) ws))
         (surely0 g m0 box w 0 w.portions ps))
  then None
  else (match logs c all g.alpha with
        | Some x0 ->
          (match costs c all w.portions g.weights with
           | Some y ->
             (match lines m mk c m0 box w ws 0 ks ps with
              | Some p0 ->
                let (h, p) = p0 in
                if Exact.leq
                     (Exact.F.neg
                       (Exact.F.add
                         (Exact.F.add (Exact.F.of_bigint (Exact.I.add x0 y))
                           (Exact.F.mul w.guard (Exact.F.of_bigint thr))) h))
                     (Exact.F.mul units w.most)
                then Some
                       (plus (Exact.make ((Exact.I.neg Exact.I.one),
                         Exact.I.one)) p (constant w.most))
                else None
              | None -> None)
           | None -> None)
        | None -> None)

(** val bets_say :
    model -> int -> scheme -> (int -> int -> int) -> cert ->
    (Exact.I.t * (int * Exact.I.t) list) -> placement list list list -> int
    list list -> int -> (int -> bound) -> wager -> poly option **)

let bets_say m e g mk c known all ks m0 box w =
  match nth_error all w.of_side with
  | Some ps -> wagered m e g mk c m0 box w (snd known) (fst known) ps ks
  | None -> None

(** val prepared :
    model -> int -> scheme -> int -> (int -> int -> int) -> Exact.F.t ->
    (placement list list list * int list list) option **)

let prepared m e g b mk d3 =
  if (=) g.parties 0
  then Some ([], [])
  else if (&&)
            ((&&)
              ((&&) ((&&) (kinds_ok m g) (classes_ok e g))
                (weights_ok (Exact.make (((fun p -> p) Exact.I.one),
                  Exact.I.one)) g.weights))
              (qltb (Exact.make (Exact.I.zero, Exact.I.one)) g.alpha))
            (Exact.leq (Exact.F.mul (qnat g.parties) g.alpha) d3)
       then option_map (fun all -> (all, (of_expressions e g)))
              (all_sides g b mk g.parties)
       else None

(** val accept :
    model -> int -> (int -> event) -> (int -> int -> int -> int) -> Exact.F.t
    -> int -> (int * Exact.F.t) list -> (int -> (int -> int -> int) ->
    Exact.F.t list) -> int -> (int -> int -> int) -> Exact.F.t -> scheme ->
    (int -> int -> int) -> Exact.F.t -> cert -> bool **)

let accept m n evs cnt d1 e prior predict b mt d2 g mk d3 c =
  (&&)
    ((&&)
      ((&&)
        ((&&) (qltb (Exact.make (Exact.I.zero, Exact.I.one)) c.level)
          (Exact.leq (Exact.F.mul (qnat n) c.level) d1))
        (below n (fun g0 -> event_ok m (evs g0))))
      (below n (event_proved evs c cnt)))
    (match likely m e prior predict c b mt d2 with
     | Some known ->
       (match prepared m e g b mk d3 with
        | Some p ->
          let (all, ks) = p in
          shown m n evs (tangent m c known)
            (bets_say m e g mk c known all ks) c
        | None -> false)
     | None -> false)

(** val ratios :
    Exact.F.t -> int -> int -> Exact.F.t -> Exact.F.t list -> Exact.F.t option **)

let rec ratios p k m u us =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> Some u)
    (fun m' ->
    match us with
    | [] ->
      let r = Exact.F.mul (qnat m) p in
      let d =
        Exact.F.sub
          (Exact.F.mul (qnat (Stdlib.Int.succ k))
            (Exact.F.sub (Exact.make (((fun p -> p) Exact.I.one),
              Exact.I.one)) p)) r
      in
      if qltb (Exact.make (Exact.I.zero, Exact.I.one)) d
      then Some (Exact.F.add u (Exact.F.mul (Exact.F.mul u r) (Exact.inv d)))
      else None
    | v :: us' ->
      if Exact.leq (Exact.F.mul (Exact.F.mul u (qnat m)) p)
           (Exact.F.mul (Exact.F.mul v (qnat (Stdlib.Int.succ k)))
             (Exact.F.sub (Exact.make (((fun p -> p) Exact.I.one),
               Exact.I.one)) p))
      then option_map (Exact.F.add u) (ratios p (Stdlib.Int.succ k) m' v us')
      else None)
    m

(** val tail_holds :
    Exact.F.t -> Exact.F.t -> Exact.I.t -> Exact.I.t -> Exact.F.t list -> int
    -> int -> bool **)

let tail_holds alpha0 p a b us k m =
  (||) (Exact.leq p (Exact.make (Exact.I.zero, Exact.I.one)))
    ((&&)
      ((&&)
        ((&&) (qltb p (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)))
          (Exact.I.lt Exact.I.zero b))
        (Exact.equal (Exact.F.of_bigint a)
          (Exact.F.mul p (Exact.F.of_bigint b))))
      (match ratios p k m (Exact.make (((fun p -> p) Exact.I.one),
               Exact.I.one)) us with
       | Some s ->
         Exact.leq
           (Exact.F.mul s
             (Exact.F.of_bigint
               (Exact.I.mul (factorial (add k m))
                 (Exact.I.mul (power a k) (power (Exact.I.sub b a) m)))))
           (Exact.F.mul alpha0
             (Exact.F.of_bigint
               (Exact.I.mul (Exact.I.mul (factorial k) (factorial m))
                 (power b (add k m)))))
       | None -> false))

(** val event_fixed :
    (int -> event) -> cert -> (int -> Exact.F.t list * Exact.F.t list) ->
    (int -> int -> int -> int) -> int -> bool **)

let event_fixed evs c us cnt g =
  let l = (evs g).trials in
  let k = tally true cnt l in
  let m = tally false cnt l in
  let p = c.elow g in
  let q0 =
    Exact.F.sub (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one))
      (c.ehigh g)
  in
  let (a, b) = c.parts p in
  let (a', b') = c.parts q0 in
  (&&) (tail_holds c.level p a b (fst (us g)) k m)
    (tail_holds c.level q0 a' b' (snd (us g)) m k)

(** val accept_fixed :
    model -> int -> (int -> event) -> (int -> int -> int -> int) -> Exact.F.t
    -> int -> (int * Exact.F.t) list -> (int -> (int -> int -> int) ->
    Exact.F.t list) -> int -> (int -> int -> int) -> Exact.F.t -> cert ->
    (int -> Exact.F.t list * Exact.F.t list) -> bool **)

let accept_fixed m n evs cnt d1 e prior predict b mt d2 c us =
  (&&)
    ((&&)
      ((&&)
        ((&&) (qltb (Exact.make (Exact.I.zero, Exact.I.one)) c.level)
          (Exact.leq
            (Exact.F.mul
              (Exact.F.mul (Exact.make (((fun p -> p) (Exact.twice
                Exact.I.one)), Exact.I.one)) (qnat n)) c.level) d1))
        (below n (fun g -> event_ok m (evs g))))
      (below n (event_fixed evs c us cnt)))
    (match likely m e prior predict c b mt d2 with
     | Some known -> shown m n evs (tangent m c known) no_stakes c
     | None -> false)

(** val of_first : int -> poly -> bool **)

let of_first n p =
  forallb (fun t ->
    forallb (fun ie -> (fun (n : int) m -> n < m) (fst ie) n) (snd t)) p

(** val equation : poly -> int -> poly **)

let equation g i =
  plus (Exact.make ((Exact.I.neg Exact.I.one), Exact.I.one))
    (constant (Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)))
    (times g (((Exact.make (((fun p -> p) Exact.I.one), Exact.I.one)), ((i,
      (Stdlib.Int.succ 0)) :: [])) :: []))

(** val reciprocals : int -> int -> poly list -> poly list option **)

let rec reciprocals n i = function
| [] -> Some []
| g :: gs' ->
  if of_first n g
  then option_map (fun ds ->
         (equation g i) :: ((plus (Exact.make ((Exact.I.neg Exact.I.one),
                              Exact.I.one)) (equation g i) []) :: ds))
         (reciprocals n (Stdlib.Int.succ i) gs')
  else None
