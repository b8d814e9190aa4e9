
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
  val add : int -> int -> int
 end

module Pos :
 sig
  val succ : Exact.I.t -> Exact.I.t

  val add : Exact.I.t -> Exact.I.t -> Exact.I.t

  val add_carry : Exact.I.t -> Exact.I.t -> Exact.I.t

  val pred_double : Exact.I.t -> Exact.I.t

  val iter : ('a1 -> 'a1) -> 'a1 -> Exact.I.t -> 'a1

  val div2 : Exact.I.t -> Exact.I.t

  val div2_up : Exact.I.t -> Exact.I.t

  val compare_cont : comparison -> Exact.I.t -> Exact.I.t -> comparison

  val compare : Exact.I.t -> Exact.I.t -> comparison

  val of_succ_nat : int -> Exact.I.t
 end

val nth : int -> 'a1 list -> 'a1 -> 'a1

val nth_error : 'a1 list -> int -> 'a1 option

val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list

val flat_map : ('a1 -> 'a2 list) -> 'a1 list -> 'a2 list

val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1

val existsb : ('a1 -> bool) -> 'a1 list -> bool

val forallb : ('a1 -> bool) -> 'a1 list -> bool

val filter : ('a1 -> bool) -> 'a1 list -> 'a1 list

val seq : int -> int -> int list

module Z :
 sig
  val double : Exact.I.t -> Exact.I.t

  val succ_double : Exact.I.t -> Exact.I.t

  val pred_double : Exact.I.t -> Exact.I.t

  val pos_sub : Exact.I.t -> Exact.I.t -> Exact.I.t

  val pow_pos : Exact.I.t -> Exact.I.t -> Exact.I.t

  val compare : Exact.I.t -> Exact.I.t -> comparison

  val div2 : Exact.I.t -> Exact.I.t

  val shiftl : Exact.I.t -> Exact.I.t -> Exact.I.t
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

val ends_of : problem -> int -> int -> Exact.F.t option

val game_of : problem -> game

val horizon : problem -> int

type question = { agent_max : bool; nature_is : bool option;
                  policy : (int -> int -> rule) option }

val pol_of : problem -> question -> int -> int -> rule

val less : Exact.F.t option -> Exact.F.t option

val below : int -> (int -> bool) -> bool

val foralli : (int -> 'a1 -> bool) -> int -> 'a1 list -> bool

val existsi : (int -> 'a1 -> bool) -> int -> 'a1 list -> bool

val qsum : ('a1 -> Exact.F.t) -> 'a1 list -> Exact.F.t

val mixed :
  (int -> choice -> Exact.F.t) -> Exact.F.t list -> int -> choice list ->
  Exact.F.t

val qltb : Exact.F.t -> Exact.F.t -> bool

val low_term : (int -> Exact.F.t) -> Exact.F.t -> edge -> Exact.F.t

val high_term : (int -> Exact.F.t) -> Exact.F.t -> edge -> Exact.F.t

type support =
| Box of Exact.F.t
| Mean of Exact.F.t

val backup :
  Exact.F.t -> ((int -> Exact.F.t) -> Exact.F.t -> edge -> Exact.F.t) -> (int
  -> Exact.F.t) -> support -> choice -> Exact.F.t

val surely : (int -> bool) -> edge list -> bool

val only_to : (int -> bool) -> edge list -> bool

val rule_some : rule -> (int -> choice -> bool) -> choice list -> bool

val rule_all : rule -> (int -> choice -> bool) -> choice list -> bool

val rule_le :
  (Exact.F.t -> Exact.F.t -> bool) -> rule -> Exact.F.t -> (int -> choice ->
  Exact.F.t) -> choice list -> bool

val geb : Exact.F.t -> Exact.F.t -> bool

val forever :
  rule -> (choice -> bool) -> (choice -> bool) -> (choice -> bool) -> choice
  list -> bool

val over :
  (int -> Exact.F.t option) -> (int -> Exact.F.t) -> (int -> bool) -> int ->
  bool

val closer :
  (int -> Exact.F.t option) -> (int -> Exact.F.t) -> (int -> bool) -> (int ->
  int) -> int -> int -> bool

val moves :
  (int -> Exact.F.t option) -> (int -> Exact.F.t) -> (int -> bool) -> (int ->
  int) -> int -> choice -> bool

val unending : (int -> Exact.F.t option) -> (int -> bool) -> int -> bool

val lower_layer :
  (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> int -> int ->
  bool

val same_layer :
  (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> int -> int ->
  bool

val nearer :
  (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> (int -> int)
  -> int -> int -> bool

val earns_forever :
  (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> (int -> int)
  -> rule -> int -> choice list -> bool

val sum_low_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int -> bool)
  -> (int -> int) -> (int -> int) -> (int -> int -> support) -> int -> bool

val finite_edges : (int -> bool) -> choice -> bool

val sum_high_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int -> bool)
  -> (int -> int -> support) -> int -> bool

val misses :
  (int -> Exact.F.t option) -> (int -> bool) -> (int -> int) -> rule -> int
  -> choice list -> bool

val reach_low_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int -> bool)
  -> (int -> int) -> (int -> int -> support) -> int -> bool

val near_end : (int -> Exact.F.t option) -> (int -> int) -> int -> int -> bool

val reach_high_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int -> bool)
  -> (int -> int) -> (int -> int -> support) -> int -> bool

val disc_low_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int -> int ->
  support) -> int -> bool

val disc_high_at :
  game -> int -> (int -> int -> rule) -> (int -> Exact.F.t) -> (int -> int ->
  support) -> int -> bool

val unpaid : choice -> choice

val average_at :
  (Exact.F.t -> Exact.F.t -> bool) -> ((int -> Exact.F.t) -> Exact.F.t ->
  edge -> Exact.F.t) -> game -> int -> (int -> int -> rule) -> (int ->
  Exact.F.t) -> (int -> Exact.F.t) -> (int -> int -> support) -> (int -> int
  -> Exact.F.t) -> int -> bool

type hints = { x : (int -> int -> Exact.F.t); endless : (int -> bool);
               rank : (int -> int); layer : (int -> int);
               lam : (int -> int -> int -> support);
               witness : (int -> int -> int);
               pin : (int -> int -> int -> Exact.F.t list);
               bias : (int -> Exact.F.t); lam' : (int -> int -> Exact.F.t) }

val mapi : (int -> 'a1 -> 'a2) -> int -> 'a1 list -> 'a2 list

val pin_edges : edge list -> Exact.F.t list -> edge list

val pinned : problem -> (int -> int -> int -> Exact.F.t list) -> game

val is_pin : edge list -> Exact.F.t list -> bool

val whenever : problem -> (int -> int -> bool) -> bool

val pins : problem -> (int -> int -> int -> Exact.F.t list) -> bool

val step_at :
  (Exact.F.t -> Exact.F.t -> bool) -> ((int -> Exact.F.t) -> Exact.F.t ->
  edge -> Exact.F.t) -> game -> (int -> int -> rule) -> (int -> Exact.F.t) ->
  (int -> Exact.F.t) -> (int -> int -> support) -> int -> int -> bool

val steps :
  (Exact.F.t -> Exact.F.t -> bool) -> ((int -> Exact.F.t) -> Exact.F.t ->
  edge -> Exact.F.t) -> game -> (int -> int -> rule) -> hints -> int -> bool

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

val shows_low : problem -> question -> hints -> Exact.F.t option -> bool

val shows_high : problem -> question -> hints -> Exact.F.t -> bool

val shows :
  problem -> question -> bool -> Exact.F.t option -> Exact.F.t option ->
  hints -> hints -> bool

val alone : hints -> hints

val prove :
  problem -> question -> bool -> Exact.F.t option -> Exact.F.t option ->
  hints -> hints -> bool

type mono = (int * int) list

type poly = (Exact.F.t * mono) list

val mono_cmp : mono -> mono -> comparison

val mono_times : int -> int -> mono -> mono

val mono_mul : mono -> mono -> mono

val insert : Exact.F.t -> mono -> poly -> poly

val plus : Exact.F.t -> poly -> poly -> poly

val times_term : Exact.F.t -> mono -> poly -> poly -> poly

val times : poly -> poly -> poly

val constant : Exact.F.t -> poly

val tidy : poly -> poly

val nonneg : poly -> bool

val zero : poly -> bool

type ledge = { goes : int; expr : int }

type lchoice = { gains : poly; outcomes : ledge list }

type model = { shape : problem; table : (int -> lchoice list);
               polys : (int -> poly); domain : poly list;
               least : (int -> Exact.F.t) }

val boxed :
  model -> (int -> int -> lchoice -> Exact.F.t) -> (int -> int -> int ->
  Exact.F.t * Exact.F.t) -> problem

val skeleton : model -> problem

val label : model -> (int * int) -> int -> int option

val same : (int * int) -> (int * int) -> bool

type mark = int -> int -> bool

type automaton = { letter : (int -> int); reads : (int -> int -> int);
                   pairs : (mark * mark list) list; settled : (int -> bool);
                   nodes : int; key : (int -> int * int);
                   number : ((int * int) -> int); memories : int;
                   letters : int; home : (int -> int -> bool) }

val behind : automaton -> int -> int -> int * int

val product : problem -> automaton -> problem

val product_model : model -> automaton -> model

val each : automaton -> (int -> int -> bool) -> bool

val settles : automaton -> int -> bool

val readable : problem -> automaton -> bool

val accept_value :
  problem -> automaton option -> question -> bool -> Exact.F.t option ->
  Exact.F.t option -> hints -> hints -> bool

val product0 : (int -> Exact.I.t) -> int -> int -> Exact.I.t

val tree : int -> (int -> Exact.I.t) -> int -> int -> Exact.I.t

val odds : int -> Exact.I.t

val factorial : int -> Exact.I.t

val power : Exact.I.t -> int -> Exact.I.t

val qnat : int -> Exact.F.t

val end_holds :
  Exact.F.t -> Exact.F.t -> Exact.I.t -> Exact.I.t -> int -> int -> bool

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

val of_runs : model -> cert -> model

val sum_where : model -> bool -> bool list -> ledge list -> poly

val null : model -> poly -> bool

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
  (Exact.F.t * reference) list -> poly -> poly option

val follows :
  model -> int -> (int -> event) -> cert -> poly list ->
  (Exact.F.t * reference) list -> poly -> bool

val bound_ok :
  model -> int -> (int -> event) -> cert -> poly list -> bound -> bool

val make :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert -> poly
  list -> made -> poly option

val makes :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert -> poly
  list -> made list -> poly list option

val sides : cert -> int -> int -> int -> Exact.F.t * Exact.F.t

val number0 : poly -> Exact.F.t option

val pays : cert -> bool -> int -> int -> lchoice -> Exact.F.t

val pay_ok : model -> cert -> int -> int -> lchoice -> bool

val weighed : model -> (int -> Exact.F.t) -> ledge list -> poly

val means_ok :
  model -> int -> (int -> event) -> cert -> poly list -> bool -> hints ->
  (int -> int -> int -> (Exact.F.t * reference) list) -> bool

val sets_in : model -> int -> (int -> event) -> cert -> poly list -> bool

val sets_ok :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert -> bool

val nobody : question -> bool

val no_cut : (int -> Exact.F.t) -> Exact.F.t -> poly option

val no_stakes : int -> (int -> bound) -> wager -> poly option

val unit_log : Exact.I.t

val bits : Exact.I.t

val fixed : Exact.I.t

val squared : Exact.I.t -> int -> Exact.I.t -> Exact.I.t

val log_by :
  (Exact.I.t -> Exact.I.t) -> (Exact.I.t -> Exact.I.t) -> Exact.F.t ->
  Exact.I.t -> bool

val log_ok : Exact.F.t -> Exact.I.t -> bool

val qpow : Exact.F.t -> int -> Exact.F.t

val mono_val : Exact.F.t list -> mono -> Exact.F.t

val poly_val : Exact.F.t list -> poly -> Exact.F.t

val is_number : poly -> bool

val sumz : (int -> Exact.I.t option) -> int -> Exact.I.t -> Exact.I.t option

val earlier : int -> (int -> int -> int) -> int -> int -> int

val all_sum : model -> ledge list -> poly

val model_ok : model -> int -> bool

val plug_ok : model -> int -> Exact.F.t list -> bool

val prior_ok : Exact.F.t -> (int * Exact.F.t) list -> bool

val times_of : int -> (int * Exact.F.t) list -> int list -> int

val together : (int * Exact.F.t) list -> int list -> int

val logs : cert -> int -> Exact.F.t -> Exact.I.t option

val prices :
  cert -> int -> (int * Exact.F.t) list -> int list -> Exact.I.t option

val score :
  model -> int -> (int * Exact.F.t) list -> (int -> (int -> int -> int) ->
  Exact.F.t list) -> cert -> (int -> int -> int) -> int -> Exact.I.t option

val weigh : (int -> int -> int) -> int -> int list -> int -> Exact.I.t

val heavy :
  model -> (int -> int -> int) -> int list -> int -> (int * Exact.I.t) list
  -> (int * Exact.I.t) list

val likely :
  model -> int -> (int * Exact.F.t) list -> (int -> (int -> int -> int) ->
  Exact.F.t list) -> cert -> int -> (int -> int -> int) -> Exact.F.t ->
  (Exact.I.t * (int * Exact.I.t) list) option

val room :
  cert -> (int * Exact.I.t) list -> (int -> Exact.F.t) -> Exact.I.t ->
  Exact.I.t option

val tilted :
  model -> (int * Exact.I.t) list -> (int -> Exact.F.t) -> poly -> poly

val tangent :
  model -> cert -> (Exact.I.t * (int * Exact.I.t) list) -> (int -> Exact.F.t)
  -> Exact.F.t -> poly option

val zip :
  (Exact.I.t -> 'a1 -> 'a1 -> 'a1) -> 'a1 -> Exact.I.t -> 'a1 list -> 'a1
  list -> 'a1 list

val add_form :
  (Exact.I.t -> 'a1 -> 'a1 -> 'a1) -> 'a1 -> Exact.I.t -> 'a1 form -> 'a1
  form -> 'a1 form

val add0 : Exact.I.t -> Exact.I.t -> Exact.I.t -> Exact.I.t

val add1 : Exact.I.t -> affine -> affine -> affine

val add2 : Exact.I.t -> quadratic -> quadratic -> quadratic

val add3 : Exact.I.t -> cubic -> cubic -> cubic

val raise : ('a1 -> 'a2) -> 'a1 form -> 'a2 form

val to_affine : Exact.I.t -> affine

val to_cubic : quadratic -> cubic

val none : Exact.I.t -> bool

val spread :
  Exact.I.t -> quadratic -> Exact.I.t list -> quadratic list -> quadratic list

val gather : Exact.I.t -> affine -> quadratic -> cubic -> cubic

val least_each : (int -> Exact.I.t) -> int -> Exact.I.t list -> Exact.I.t

val least_one : Exact.I.t list -> Exact.I.t

val least_form :
  (int -> Exact.I.t) -> Exact.I.t -> ('a1 -> Exact.I.t) -> 'a1 form ->
  Exact.I.t

val least1 : (int -> Exact.I.t) -> Exact.I.t -> affine -> Exact.I.t

val least2 : (int -> Exact.I.t) -> Exact.I.t -> quadratic -> Exact.I.t

val least3 : (int -> Exact.I.t) -> Exact.I.t -> cubic -> Exact.I.t

val weighted : Exact.F.t list -> lchoice list -> (Exact.F.t * lchoice) list

val taken : rule -> lchoice list -> (Exact.F.t * lchoice) list

val named : rule -> bool

val rule_of : question -> int -> rule

val axis : cell -> int -> poly

val height : cell -> int -> Exact.I.t

val axes_ok :
  model -> int -> (int -> event) -> cell -> cert -> poly list -> bool

val composed : cell -> int -> Exact.I.t list -> poly

val composed2 : cell -> int -> affine list -> poly

val newest : poly list -> poly

val sure_of : cell -> poly list -> quadratic -> bool

val labels_ok : model -> cell -> bool

val labelled : cell -> ledge -> bool

val sign : bool -> Exact.F.t

val turn : bool -> Exact.I.t

val guess_at : walk -> int -> quadratic

val weighed0 :
  model -> cell -> bool -> Exact.I.t -> (Exact.F.t * lchoice) list ->
  (Exact.I.t * Exact.I.t) list -> ((Exact.I.t * Exact.I.t) * ledge list) list
  option

val edges_in : cell -> walk -> Exact.I.t -> ledge list -> cubic -> cubic

val choices_in :
  cell -> walk -> bool -> ((Exact.I.t * Exact.I.t) * ledge list) list ->
  cubic -> cubic

val slow_edges : cell -> walk -> Exact.I.t -> ledge list -> affine -> affine

val slow_choices :
  cell -> walk -> ((Exact.I.t * Exact.I.t) * ledge list) list -> affine ->
  affine

val said :
  cell -> walk -> bool -> (int -> Exact.F.t) -> (int -> bool) -> int -> bool

val state_ok :
  model -> cell -> walk -> (int -> rule) -> bool -> (int -> Exact.F.t) ->
  (int -> bool) -> int -> bool

val walk_ok :
  model -> cell -> walk -> (int -> rule) -> bool -> (int -> Exact.F.t) ->
  (int -> bool) -> bool

val covered :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert -> (poly
  list -> cell -> bool) -> poly list -> cells -> bool

val steady : model -> bool

val vectors_ok : model -> cert -> bool

val bound_of : cert -> bool -> int -> Exact.F.t

val bounded_at : cert -> int -> bool

val beats : cell -> bool -> Exact.F.t -> bool

val cell_ok :
  model -> int -> (int -> event) -> cert -> bool -> Exact.F.t -> poly list ->
  cell -> bool

val rule_at : model -> question -> int -> int -> rule

val known_at : model -> int -> int -> int -> Exact.F.t option

val stage : model -> walk -> int -> walk

val known_value : model -> int -> int -> int -> Exact.F.t

val is_known : model -> int -> int -> int -> bool

val stage_ok :
  model -> int -> cell -> walk -> question -> bool -> int -> int -> bool

val counted_ok : model -> cert -> int -> bool

val stages_ok :
  model -> int -> (int -> event) -> cert -> int -> bool -> Exact.F.t -> poly
  list -> cell -> bool

val joint :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert -> bool
  -> poly list -> Exact.F.t option -> bool

val rival : cert -> question -> cert

val pair_ok :
  model -> int -> (int -> event) -> cert -> cert -> bool -> Exact.F.t -> poly
  list -> cell -> bool

val apart :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert -> cert
  -> bool -> poly list -> Exact.F.t -> bool

val differs :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert ->
  question -> bool

val holds :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert -> bool

val shown_of :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert -> bool

val shown :
  model -> int -> (int -> event) -> ((int -> Exact.F.t) -> Exact.F.t -> poly
  option) -> (int -> (int -> bound) -> wager -> poly option) -> cert -> bool

val accept_domain : model -> cert -> bool

type scheme = { kinds : int; kind_of_choice : ((int * int) -> int);
                members : (int -> int list); classes : int;
                of_class : (int -> int); parties : int; alpha : Exact.F.t;
                weights : Exact.F.t list;
                stake : (int -> int -> int -> (int -> int -> int) -> int ->
                        Exact.I.t) }

val stake_unit : Exact.F.t

val amount : Exact.I.t -> Exact.F.t

val same_z : Exact.I.t -> Exact.I.t -> bool

val zeros : Exact.I.t -> bool

type placement = int list * (int -> Exact.I.t)

type entry = { certain : bool; often : int; stands : Exact.F.t }

val fits : scheme -> int list -> ledge list -> bool

val kinds_ok : model -> scheme -> bool

val classes_ok : int -> scheme -> bool

val zsum : (int -> Exact.I.t) -> int list -> Exact.I.t

val fair : scheme -> (int -> Exact.I.t) -> bool

val weights_ok : Exact.F.t -> Exact.F.t list -> bool

val calls :
  scheme -> int -> (int -> int -> int) -> int -> int -> (int * (int ->
  Exact.I.t)) list

val places : scheme -> (int * (int -> Exact.I.t)) list -> placement list

val sumn : (int -> int) -> int list -> int

val bettors :
  scheme -> int -> (int -> int -> int) -> int -> placement list list option

val all_sides :
  scheme -> int -> (int -> int -> int) -> int -> placement list list list
  option

val of_expressions : int -> scheme -> int list list

val known_low : scheme -> int -> (int -> bound) -> int -> Exact.F.t

val stands_ok :
  scheme -> int -> (int -> bound) -> (int -> Exact.I.t) -> int -> bool

val surely_in :
  scheme -> int -> (int -> bound) -> wager -> int -> int -> (int ->
  Exact.I.t) -> bool

val entries_of :
  (int -> int -> int) -> wager -> int -> int -> int -> int -> placement list
  -> entry list

val entries :
  (int -> int -> int) -> wager -> int -> int -> int list -> placement list
  list -> entry list

val surely0 :
  scheme -> int -> (int -> bound) -> wager -> int -> int list -> placement
  list list -> bool

val down : wager -> Exact.F.t -> Exact.F.t

val up : wager -> Exact.F.t -> Exact.F.t

val qsum_of : (entry -> Exact.F.t) -> entry list -> Exact.F.t

val logs_of : cert -> (entry -> Exact.F.t) -> entry list -> Exact.I.t option

val is_gain : entry -> bool

val inverse : Exact.F.t -> Exact.F.t -> Exact.F.t

val off_log : cert -> Exact.F.t -> Exact.F.t -> Exact.F.t option

val units : Exact.F.t

val line :
  cert -> int -> (int -> bound) -> wager -> int -> entry list -> Exact.F.t ->
  Exact.F.t option

val weight_of_log : int -> (int * Exact.I.t) list -> Exact.I.t

val lines :
  model -> (int -> int -> int) -> cert -> int -> (int -> bound) -> wager ->
  (int * Exact.I.t) list -> int -> int list list -> placement list list ->
  (Exact.F.t * poly) option

val costs : cert -> int -> int list -> Exact.F.t list -> Exact.I.t option

val wagered :
  model -> int -> scheme -> (int -> int -> int) -> cert -> int -> (int ->
  bound) -> wager -> (int * Exact.I.t) list -> Exact.I.t -> placement list
  list -> int list list -> poly option

val bets_say :
  model -> int -> scheme -> (int -> int -> int) -> cert ->
  (Exact.I.t * (int * Exact.I.t) list) -> placement list list list -> int
  list list -> int -> (int -> bound) -> wager -> poly option

val prepared :
  model -> int -> scheme -> int -> (int -> int -> int) -> Exact.F.t ->
  (placement list list list * int list list) option

val accept :
  model -> int -> (int -> event) -> (int -> int -> int -> int) -> Exact.F.t
  -> int -> (int * Exact.F.t) list -> (int -> (int -> int -> int) ->
  Exact.F.t list) -> int -> (int -> int -> int) -> Exact.F.t -> scheme ->
  (int -> int -> int) -> Exact.F.t -> cert -> bool

val ratios :
  Exact.F.t -> int -> int -> Exact.F.t -> Exact.F.t list -> Exact.F.t option

val tail_holds :
  Exact.F.t -> Exact.F.t -> Exact.I.t -> Exact.I.t -> Exact.F.t list -> int
  -> int -> bool

val event_fixed :
  (int -> event) -> cert -> (int -> Exact.F.t list * Exact.F.t list) -> (int
  -> int -> int -> int) -> int -> bool

val accept_fixed :
  model -> int -> (int -> event) -> (int -> int -> int -> int) -> Exact.F.t
  -> int -> (int * Exact.F.t) list -> (int -> (int -> int -> int) ->
  Exact.F.t list) -> int -> (int -> int -> int) -> Exact.F.t -> cert -> (int
  -> Exact.F.t list * Exact.F.t list) -> bool

val of_first : int -> poly -> bool

val equation : poly -> int -> poly

val reciprocals : int -> int -> poly list -> poly list option
