(* TRUSTED. Events: what is counted together, a function of the model alone. An event is a polynomial g that is the
   probability of an outcome: m·f where m transitions of a choice have the expression f, which is no number. Where they are
   paired, g and 1 − g are one event. Events are numbered by their first pair (expression, m). *)

open Fields
open Problem

type t = { chances : Poly.t array; place : (int * int, int * bool) Hashtbl.t } (* (f, m): event, whether it is 1 − g *)

(* The outcomes of a choice: (expression, transitions of it), expressions rising. *)
let outcomes (expression : int vector) a b =
  let sorted = List.sort compare (List.init (b - a) (fun i -> expression.get (a + i))) in
  let rec group = function
    | [] -> []
    | e :: rest -> (match group rest with (f, m) :: more when f = e -> (f, m + 1) :: more | more -> (e, 1) :: more) in
  group sorted

let derive (graph : graph) expression polynomials paired =
  let pairs = Hashtbl.create 1000 in
  for c = 0 to graph.choices - 1 do
    List.iter (fun pair -> Hashtbl.replace pairs pair ())
      (outcomes expression (graph.transition_start.get c) (graph.transition_start.get (c + 1)))
  done;
  let number = Hashtbl.create 1000 and place = Hashtbl.create 1000 and chances = ref [] and count = ref 0 in
  List.iter (fun (e, m) ->
    if not (Poly.is_number polynomials.(e)) then begin
      let chance = Poly.scale (Q.of_int m) polynomials.(e) in
      let name p = List.map (fun (m, c) -> m, Q.to_string c) (Poly.to_terms p) in
      if not (Hashtbl.mem number (name chance)) then begin
        if paired then Hashtbl.replace number (name (Poly.minus Poly.one chance)) (!count, true);
        Hashtbl.replace number (name chance) (!count, false);
        chances := chance :: !chances; incr count
      end;
      Hashtbl.replace place (e, m) (Hashtbl.find number (name chance))
    end) (List.sort compare (List.of_seq (Hashtbl.to_seq_keys pairs)));
  { chances = Array.of_list (List.rev !chances); place }

(* The events of which a visit of a choice is a trial, each with the expression whose transitions are its outcome g, or with
   true its outcome 1 − g: of several the one of g with the least number. *)
let of_choice events expression a b =
  let found = List.filter_map (fun (e, m) ->
    Option.map (fun (event, opposite) -> event, (opposite, e)) (Hashtbl.find_opt events.place (e, m)))
    (outcomes expression a b) in
  let rec first = function
    | (k, best) :: (l, other) :: rest when k = l -> first ((k, min best other) :: rest)
    | one :: rest -> one :: first rest
    | [] -> [] in
  first (List.sort compare found)

(* How often each transition was seen. *)
let counts (data : data) transitions =
  let seen = Array.make transitions 0 in
  for i = 0 to data.batch_count.size - 1 do
    let t = data.batch_transition.get i in
    seen.(t) <- seen.(t) + data.batch_count.get i
  done;
  seen
