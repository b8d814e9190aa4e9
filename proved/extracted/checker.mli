
val option_map : ('a1 -> 'a2) -> 'a1 option -> 'a2 option

val fst : ('a1 * 'a2) -> 'a1

val snd : ('a1 * 'a2) -> 'a2

val length : 'a1 list -> int

val app : 'a1 list -> 'a1 list -> 'a1 list

type comparison =
| Eq
| Lt
| Gt

val compOpp : comparison -> comparison

val add : int -> int -> int

val mul : int -> int -> int

val sub : int -> int -> int

val eqb : bool -> bool -> bool

module Nat :
 sig
 end

module Pos :
 sig
  val succ : Exact.z -> Exact.z

  val add : Exact.z -> Exact.z -> Exact.z

  val add_carry : Exact.z -> Exact.z -> Exact.z

  val pred_double : Exact.z -> Exact.z

  val iter : ('a1 -> 'a1) -> 'a1 -> Exact.z -> 'a1

  val div2 : Exact.z -> Exact.z

  val div2_up : Exact.z -> Exact.z

  val compare_cont : comparison -> Exact.z -> Exact.z -> comparison

  val compare : Exact.z -> Exact.z -> comparison

  val of_succ_nat : int -> Exact.z
 end

val nth : int -> 'a1 list -> 'a1 -> 'a1

val nth_error : 'a1 list -> int -> 'a1 option

val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list

val existsb : ('a1 -> bool) -> 'a1 list -> bool

val forallb : ('a1 -> bool) -> 'a1 list -> bool

val seq : int -> int -> int list

module Z :
 sig
  val double : Exact.z -> Exact.z

  val succ_double : Exact.z -> Exact.z

  val pred_double : Exact.z -> Exact.z

  val pos_sub : Exact.z -> Exact.z -> Exact.z

  val pow_pos : Exact.z -> Exact.z -> Exact.z

  val compare : Exact.z -> Exact.z -> comparison

  val div2 : Exact.z -> Exact.z

  val shiftl : Exact.z -> Exact.z -> Exact.z
 end

type edge = { next : int; lo : Exact.q; hi : Exact.q }

type choice = { reward : Exact.q; edges : edge list }

type game = { size : int; choices_of : (int -> int -> choice list);
              ends : (int -> int -> Exact.q option); discount : Exact.q }

type rule =
| Any
| Only of int
| Mix of Exact.q list

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
                 allowed : (int -> bool); terminal : (int -> Exact.q);
                 first : int; last : int option; factor : Exact.q }

val ends_of : problem -> int -> int -> Exact.q option

val game_of : problem -> game

val horizon : problem -> int

type question = { agent_max : bool; nature_is : bool option;
                  policy : (int -> int -> rule) option }

val pol_of : problem -> question -> int -> int -> rule

val less : Exact.q option -> Exact.q option

val below : int -> (int -> bool) -> bool

val foralli : (int -> 'a1 -> bool) -> int -> 'a1 list -> bool

val existsi : (int -> 'a1 -> bool) -> int -> 'a1 list -> bool

val qsum : ('a1 -> Exact.q) -> 'a1 list -> Exact.q

val mixed :
  (int -> choice -> Exact.q) -> Exact.q list -> int -> choice list -> Exact.q

val qltb : Exact.q -> Exact.q -> bool

val low_term : (int -> Exact.q) -> Exact.q -> edge -> Exact.q

val high_term : (int -> Exact.q) -> Exact.q -> edge -> Exact.q

type support =
| Box of Exact.q
| Mean of Exact.q

val backup :
  Exact.q -> ((int -> Exact.q) -> Exact.q -> edge -> Exact.q) -> (int ->
  Exact.q) -> support -> choice -> Exact.q

val surely : (int -> bool) -> edge list -> bool

val only_to : (int -> bool) -> edge list -> bool

val rule_some : rule -> (int -> choice -> bool) -> choice list -> bool

val rule_all : rule -> (int -> choice -> bool) -> choice list -> bool

val rule_le :
  (Exact.q -> Exact.q -> bool) -> rule -> Exact.q -> (int -> choice ->
  Exact.q) -> choice list -> bool

val geb : Exact.q -> Exact.q -> bool

val forever :
  rule -> (choice -> bool) -> (choice -> bool) -> (choice -> bool) -> choice
  list -> bool

val over :
  (int -> Exact.q option) -> (int -> Exact.q) -> (int -> bool) -> int -> bool

val closer :
  (int -> Exact.q option) -> (int -> Exact.q) -> (int -> bool) -> (int ->
  int) -> int -> int -> bool

val moves :
  (int -> Exact.q option) -> (int -> Exact.q) -> (int -> bool) -> (int ->
  int) -> int -> choice -> bool

val unending : (int -> Exact.q option) -> (int -> bool) -> int -> bool

val lower_layer :
  (int -> Exact.q option) -> (int -> bool) -> (int -> int) -> int -> int ->
  bool

val same_layer :
  (int -> Exact.q option) -> (int -> bool) -> (int -> int) -> int -> int ->
  bool

val nearer :
  (int -> Exact.q option) -> (int -> bool) -> (int -> int) -> (int -> int) ->
  int -> int -> bool

val earns_forever :
  (int -> Exact.q option) -> (int -> bool) -> (int -> int) -> (int -> int) ->
  rule -> int -> choice list -> bool

val sum_low_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.q) -> (int -> bool) ->
  (int -> int) -> (int -> int) -> (int -> int -> support) -> int -> bool

val finite_edges : (int -> bool) -> choice -> bool

val sum_high_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.q) -> (int -> bool) ->
  (int -> int -> support) -> int -> bool

val misses :
  (int -> Exact.q option) -> (int -> bool) -> (int -> int) -> rule -> int ->
  choice list -> bool

val reach_low_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.q) -> (int -> bool) ->
  (int -> int) -> (int -> int -> support) -> int -> bool

val near_end : (int -> Exact.q option) -> (int -> int) -> int -> int -> bool

val reach_high_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.q) -> (int -> bool) ->
  (int -> int) -> (int -> int -> support) -> int -> bool

val disc_low_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.q) -> (int -> int ->
  support) -> int -> bool

val disc_high_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.q) -> (int -> int ->
  support) -> int -> bool

val unpaid : choice -> choice

val average_at :
  (Exact.q -> Exact.q -> bool) -> ((int -> Exact.q) -> Exact.q -> edge ->
  Exact.q) -> game -> int -> (int -> int -> rule) -> (int -> Exact.q) -> (int
  -> Exact.q) -> (int -> int -> support) -> (int -> int -> Exact.q) -> int ->
  bool

type hints = { x : (int -> int -> Exact.q); endless : (int -> bool);
               rank : (int -> int); layer : (int -> int);
               lam : (int -> int -> int -> support);
               witness : (int -> int -> int);
               pin : (int -> int -> int -> Exact.q list);
               bias : (int -> Exact.q); lam' : (int -> int -> Exact.q) }

val mapi : (int -> 'a1 -> 'a2) -> int -> 'a1 list -> 'a2 list

val pin_edges : edge list -> Exact.q list -> edge list

val pinned : problem -> (int -> int -> int -> Exact.q list) -> game

val is_pin : edge list -> Exact.q list -> bool

val whenever : problem -> (int -> int -> bool) -> bool

val pins : problem -> (int -> int -> int -> Exact.q list) -> bool

val step_at :
  (Exact.q -> Exact.q -> bool) -> ((int -> Exact.q) -> Exact.q -> edge ->
  Exact.q) -> game -> (int -> int -> rule) -> (int -> Exact.q) -> (int ->
  Exact.q) -> (int -> int -> support) -> int -> int -> bool

val steps :
  (Exact.q -> Exact.q -> bool) -> ((int -> Exact.q) -> Exact.q -> edge ->
  Exact.q) -> game -> (int -> int -> rule) -> hints -> int -> bool

val base_low : problem -> game -> (int -> int -> rule) -> hints -> int -> bool

val base_high :
  problem -> game -> (int -> int -> rule) -> hints -> int -> bool

val may_be_endless : problem -> bool

val no_endless : problem -> hints -> bool

val check_low : problem -> game -> (int -> int -> rule) -> hints -> bool

val check_high : problem -> game -> (int -> int -> rule) -> hints -> bool

val agent_owns : question -> bool -> bool

val nature_owns : question -> bool -> bool

val rule_for : problem -> question -> bool -> hints -> int -> int -> rule

val arena : problem -> question -> bool -> hints -> game

val owners : problem -> question -> bool -> hints -> bool

val possible : problem -> choice -> bool

val well_posed : problem -> bool

val earns_rightly : problem -> choice -> bool

val is_policy : rule -> choice list -> bool

val playable : problem -> question -> bool

val never_negative : problem -> bool

val is_probability : problem -> bool

val shows_low : problem -> question -> hints -> Exact.q option -> bool

val shows_high : problem -> question -> hints -> Exact.q -> bool

val shows :
  problem -> question -> bool -> Exact.q option -> Exact.q option -> hints ->
  hints -> bool

val alone : hints -> hints

val prove :
  problem -> question -> bool -> Exact.q option -> Exact.q option -> hints ->
  hints -> bool

type mono = (int * int) list

type poly = (Exact.q * mono) list

val mono_cmp : mono -> mono -> comparison

val mono_times : int -> int -> mono -> mono

val mono_mul : mono -> mono -> mono

val insert : Exact.q -> mono -> poly -> poly

val plus : Exact.q -> poly -> poly -> poly

val times_term : Exact.q -> mono -> poly -> poly -> poly

val times : poly -> poly -> poly

val constant : Exact.q -> poly

val tidy : poly -> poly

val nonneg : poly -> bool

val zero : poly -> bool

type ledge = { goes : int; expr : int }

type lchoice = { gains : Exact.q; outcomes : ledge list }

type model = { shape : problem; table : (int -> lchoice list);
               polys : (int -> poly); domain : poly list;
               least : (int -> Exact.q) }

val boxed : model -> (int -> int -> int -> Exact.q * Exact.q) -> problem

val label : model -> (int * int) -> int -> int option

val product : (int -> Exact.z) -> int -> int -> Exact.z

val tree : int -> (int -> Exact.z) -> int -> int -> Exact.z

val odds : int -> Exact.z

val factorial : int -> Exact.z

val power : Exact.z -> int -> Exact.z

val qnat : int -> Exact.q

val end_holds : Exact.q -> Exact.q -> Exact.z -> Exact.z -> int -> int -> bool

type trial = { t_state : int; t_choice : int; hits : bool list }

type event = { about : poly; trials : trial list }

type reference =
| Dom of int
| Low of int
| High of int
| Least of int * int * int
| Most of int * int * int
| Made of int

type made =
| Prod of reference * reference
| Comb of (Exact.q * reference) list * Exact.q
| Square of poly
| Cut of (int -> Exact.q) * Exact.q

type bound = { of_expr : int; blo : Exact.q; bhi : Exact.q;
               why_lo : (Exact.q * reference) list;
               why_hi : (Exact.q * reference) list }

type cert = { ask : question; compl : bool; lower : Exact.q option;
              upper : Exact.q option; low : hints; high : hints;
              elow : (int -> Exact.q); ehigh : (int -> Exact.q);
              parts : (Exact.q -> Exact.z * Exact.z); level : Exact.q;
              shares : int list; lg : (Exact.q -> Exact.z);
              facts : made list; bounds : int; bound_at : (int -> bound);
              slot : (int -> int -> int -> int);
              why_low : (int -> int -> int -> (Exact.q * reference) list);
              why_high : (int -> int -> int -> (Exact.q * reference) list) }

val sum_where : model -> bool -> bool list -> ledge list -> poly

val trial_ok : model -> poly -> trial -> bool

val before : (int * int) -> (int * int) -> bool

val place : trial -> int * int

val rising : (int * int) -> trial list -> bool

val event_ok : model -> event -> bool

val tally_trial : bool -> (int -> int) -> int -> bool list -> int

val tally : bool -> (int -> int -> int -> int) -> trial list -> int

val event_proved :
  (int -> event) -> cert -> (int -> int -> int -> int) -> int -> bool

val fact :
  model -> int -> (int -> event) -> cert -> poly list -> reference -> poly
  option

val without :
  model -> int -> (int -> event) -> cert -> poly list ->
  (Exact.q * reference) list -> poly -> poly option

val follows :
  model -> int -> (int -> event) -> cert -> poly list ->
  (Exact.q * reference) list -> poly -> bool

val make :
  model -> int -> (int -> event) -> ((int -> Exact.q) -> Exact.q -> poly
  option) -> cert -> poly list -> made -> poly option

val makes :
  model -> int -> (int -> event) -> ((int -> Exact.q) -> Exact.q -> poly
  option) -> cert -> poly list -> made list -> poly list option

val bound_ok :
  model -> int -> (int -> event) -> cert -> poly list -> bound -> bool

val sides : cert -> int -> int -> int -> Exact.q * Exact.q

val weighed : model -> (int -> Exact.q) -> ledge list -> poly

val means_ok :
  model -> int -> (int -> event) -> cert -> poly list -> bool -> hints ->
  (int -> int -> int -> (Exact.q * reference) list) -> bool

val sets_ok :
  model -> int -> (int -> event) -> ((int -> Exact.q) -> Exact.q -> poly
  option) -> cert -> bool

val nobody : question -> bool

val proved :
  model -> int -> (int -> event) -> ((int -> Exact.q) -> Exact.q -> poly
  option) -> cert -> bool

val no_cut : (int -> Exact.q) -> Exact.q -> poly option

val accept_domain : model -> cert -> bool

val unit_log : Exact.z

val bits : Exact.z

val fixed : Exact.z

val squared : Exact.z -> int -> Exact.z -> Exact.z

val log_by :
  (Exact.z -> Exact.z) -> (Exact.z -> Exact.z) -> Exact.q -> Exact.z -> bool

val log_ok : Exact.q -> Exact.z -> bool

val qpow : Exact.q -> int -> Exact.q

val mono_val : Exact.q list -> mono -> Exact.q

val poly_val : Exact.q list -> poly -> Exact.q

val is_number : poly -> bool

val sumz : (int -> Exact.z option) -> int -> Exact.z -> Exact.z option

val earlier : int -> (int -> int -> int) -> int -> int -> int

val all_sum : model -> ledge list -> poly

val model_ok : model -> int -> bool

val plug_ok : model -> int -> Exact.q list -> bool

val prior_ok : Exact.q -> (int * Exact.q) list -> bool

val times_of : int -> (int * Exact.q) list -> int list -> int

val together : (int * Exact.q) list -> int list -> int

val logs : cert -> int -> Exact.q -> Exact.z option

val prices : cert -> int -> (int * Exact.q) list -> int list -> Exact.z option

val score :
  model -> int -> (int * Exact.q) list -> (int -> (int -> int -> int) ->
  Exact.q list) -> cert -> (int -> int -> int) -> int -> Exact.z option

val weigh : (int -> int -> int) -> int -> int list -> int -> Exact.z

val heavy :
  model -> (int -> int -> int) -> int list -> int -> (int * Exact.z) list ->
  (int * Exact.z) list

val likely :
  model -> int -> (int * Exact.q) list -> (int -> (int -> int -> int) ->
  Exact.q list) -> cert -> int -> (int -> int -> int) -> Exact.q ->
  (Exact.z * (int * Exact.z) list) option

val room :
  cert -> (int * Exact.z) list -> (int -> Exact.q) -> Exact.z -> Exact.z
  option

val tilted : model -> (int * Exact.z) list -> (int -> Exact.q) -> poly -> poly

val tangent :
  model -> cert -> (Exact.z * (int * Exact.z) list) -> (int -> Exact.q) ->
  Exact.q -> poly option

val accept :
  model -> int -> (int -> event) -> (int -> int -> int -> int) -> Exact.q ->
  int -> (int * Exact.q) list -> (int -> (int -> int -> int) -> Exact.q list)
  -> int -> (int -> int -> int) -> Exact.q -> cert -> bool

val ratios :
  Exact.q -> int -> int -> Exact.q -> Exact.q list -> Exact.q option

val tail_holds :
  Exact.q -> Exact.q -> Exact.z -> Exact.z -> Exact.q list -> int -> int ->
  bool

val event_fixed :
  (int -> event) -> cert -> (int -> Exact.q list * Exact.q list) -> (int ->
  int -> int -> int) -> int -> bool

val accept_fixed :
  model -> int -> (int -> event) -> (int -> int -> int -> int) -> Exact.q ->
  cert -> (int -> Exact.q list * Exact.q list) -> bool
