(* NOT BELIEVED, but that it is a function of the model and of how confidence is shared: the theorems hold for any events that are
   fixed beforehand, and the checker proves that they are events. Events: what is counted together. An event is a polynomial g that is the
   probability of an outcome: m·f where m transitions of a choice have the expression f, which is no number. Where they are
   paired, g and 1 − g are one event. Events are numbered by their first pair (expression, m). *)

open Arrays

type t = { chances : Poly.t array; place : (int * int, int * bool) Hashtbl.t } (* (f, m): event, whether it is 1 − g *)

(* The outcomes of a choice: (expression, transitions of it), expressions rising. *)
let outcomes (expression : int vector) a b =
  let sorted = List.sort compare (List.init (b - a) (fun i -> expression.get (a + i))) in
  let rec group = function
    | [] -> []
    | e :: rest -> (match group rest with (f, m) :: more when f = e -> (f, m + 1) :: more | more -> (e, 1) :: more) in
  group sorted

let derive (graph : Says.graph) expression polynomials quotients paired =
  let pairs = Hashtbl.create 1000 in
  for c = 0 to graph.transition_start.size - 2 do
    List.iter (fun pair -> Hashtbl.replace pairs pair ())
      (outcomes expression (graph.transition_start.get c) (graph.transition_start.get (c + 1)))
  done;
  let number = Hashtbl.create 1000 and place = Hashtbl.create 1000 and chances = ref [] and count = ref 0 in
  List.iter (fun (e, m) ->
    if not (Poly.is_number polynomials.(e)) then begin
      let chance = Poly.scale (Q.of_int m) polynomials.(e) in
      let name p = List.map (fun (m, c) -> m, Q.to_string c) (Poly.to_terms p) in
      if not (Hashtbl.mem number (name chance)) then begin
        if paired then Hashtbl.replace number (name (Quotients.complement quotients chance)) (!count, true);
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

let terms (p : Poly.t) = List.map (fun (m, c) -> c, m) (Poly.to_terms p)

(* Events with their trials, all choices at which they are drawn; for every event the number of its interval; and what they were
   derived from. Without sharing, every transition of an unknown probability is an event of its own; of nothing there are none. *)
let of_model (graph : Says.graph) (expression : int vector) polynomials domain shared_by =
  let polynomials = Array.map (fun p -> Poly.of_terms (List.map (fun (c, m) -> m, c) p)) polynomials in
  let known = Hashtbl.create 100 in
  let shared hits = match Hashtbl.find_opt known hits with Some h -> h | None -> Hashtbl.add known hits hits; hits in
  let each_choice f =
    for s = 0 to graph.choice_start.size - 2 do
      let first, last = Says.span graph.choice_start s in
      for c = first to last - 1 do
        let a, b = Says.span graph.transition_start c in f s (c - first) a b
      done
    done in
  if shared_by = "nothing" then [||], [||], None
  else if shared_by = "transitions" then begin
    let found = ref [] in
    each_choice (fun s i a b ->
      for t = a to b - 1 do
        let p = polynomials.(expression.get t) in
        if not (Poly.is_number p) then begin
          let hits = shared (List.init (b - a) (fun j -> a + j = t)) in
          found := ({ Checker.about = terms p; trials = [ { Checker.t_state = s; t_choice = i; hits } ] }, t) :: !found
        end
      done);
    let found = Array.of_list (List.rev !found) in
    Array.map fst found, Array.map snd found, None
  end else begin
    let events = derive graph expression polynomials (Quotients.of_domain domain) (shared_by = "events") in
    let trials = Array.make (Array.length events.chances) [] in
    each_choice (fun s i a b ->
      List.iter (fun (k, (opposite, e)) ->
        let hits = shared (List.init (b - a) (fun j -> (expression.get (a + j) = e) <> opposite)) in
        trials.(k) <- { Checker.t_state = s; t_choice = i; hits } :: trials.(k))
        (of_choice events expression a b));
    Array.mapi (fun k g -> { Checker.about = terms g; trials = List.rev trials.(k) }) events.chances,
    Array.init (Array.length events.chances) Fun.id, Some events
  end
