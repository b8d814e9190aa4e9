(* NOT BELIEVED. The bounds of every expression (untied: of every transition) that follow from a file, and the facts that
   say so: the best of what events, bases of the region, and ranges over the domain and over the region's box prove. *)

open Refusal
open Arrays
open Fields
open Region

type ends = { low : Q.t; high : Q.t; low_fact : int Lazy.t; high_fact : int Lazy.t }

let contradiction = "the data contradict the model: no instantiation of the domain agrees with all that was seen"
let no_domain = "the domain contradicts the model: it has no instantiation"

let most_controls = 4096

(* ---------- Ranges of polynomials over boxes of parameters ---------- *)

let choose n k =
  let c = ref Z.one in
  for i = 1 to k do c := Z.div (Z.mul !c (Z.of_int (n - k + i))) (Z.of_int i) done;
  Q.of_bigint !c

let power q e = Q.make (Z.pow (Q.num q) e) (Z.pow (Q.den q) e)

(* [k].[e]: the k-th Bernstein coefficient of x^e over [low, high]. *)
let bernstein degree low high =
  Array.init (degree + 1) (fun k -> Array.init (degree + 1) (fun e ->
    let total = ref Q.zero in
    for j = 0 to min k e do
      if e - j <= degree - k then
        total := Q.add !total (Q.mul (Q.mul (choose k j) (choose (degree - k) (e - j))) (Q.mul (power high j) (power low (e - j))))
    done;
    Q.div !total (choose degree e)))

(* Of some polynomials the degree in every parameter, and how many Bernstein coefficients that makes, in parts of all that are made. *)
let degrees_of polynomials =
  let degrees = Hashtbl.create 4 in
  List.iter (Poly.M.iter (fun m _ -> List.iter (fun (i, e) ->
    Hashtbl.replace degrees i (max e (Option.value ~default:0 (Hashtbl.find_opt degrees i)))) m)) polynomials;
  let degrees = List.sort compare (List.of_seq (Hashtbl.to_seq degrees)) in
  degrees, List.fold_left (fun n (_, d) -> if n > most_controls then n else n * (d + 1)) 1 degrees <= most_controls

(* The Bernstein coefficients of p with their places. *)
let coefficients degrees p (side : int -> ends) =
  let parts = List.fold_left (fun parts (i, d) ->
    let s = side i in
    let table = bernstein d s.low s.high in
    List.concat_map (fun (index, part) -> List.init (d + 1) (fun k ->
      let put = Poly.M.fold (fun m c total ->
        let e = Option.value ~default:0 (List.assoc_opt i m) in
        let rest = List.filter (fun (j, _) -> j <> i) m in
        Poly.plus total (Poly.put rest (Q.mul c table.(k).(e)) Poly.zero)) part Poly.zero in
      (i, d, k) :: index, put)) parts) [ [], p ] degrees in
  List.map (fun (index, part) -> index, Poly.constant_of part) parts

(* The bounds of p over a box of its parameters: [side i] are the ends of parameter i with their facts. Degrees are those of p, and of
   others beside it. *)
let range ?(beside = []) book p (side : int -> ends) =
  let affine = Poly.M.for_all (fun m _ -> Poly.degree m <= 1) p in
  if affine then begin
    let bound upward =
      Poly.M.fold (fun m c (total, parts) -> match m with
        | [ i, 1 ] ->
          let s = side i in
          let at_high = (Q.sign c > 0) = upward in
          Q.add total (Q.mul c (if at_high then s.high else s.low)),
          (Q.abs c, if at_high then s.high_fact else s.low_fact) :: parts
        | _ -> Q.add total c, parts) p (Q.zero, []) in
    let fact wanted parts = lazy (combine book wanted (List.map (fun (c, f) -> c, Lazy.force f) parts)) in
    let low, low_parts = bound false and high, high_parts = bound true in
    Some { low; high; low_fact = fact (Poly.minus p (Poly.constant low)) low_parts;
           high_fact = fact (Poly.minus (Poly.constant high) p) high_parts }
  end else begin
    let degrees, few = degrees_of (p :: beside) in
    if not few then None
    else begin
      let values = coefficients degrees p side in
      let first = snd (List.hd values) in
      let low = List.fold_left (fun a (_, v) -> Q.min a v) first values in
      let high = List.fold_left (fun a (_, v) -> Q.max a v) first values in
      let rec raised f e = if e = 1 then f else product book (raised f (e - 1)) f in
      let basis (i, d, k) =
        let s = side i in
        let width = Q.sub s.high s.low in
        if Q.sign width <= 0 then not_covered "a range over a box without width";
        let up () = raised (Lazy.force s.low_fact) k and down () = raised (Lazy.force s.high_fact) (d - k) in
        let fact = if k = 0 then down () else if k = d then up () else product book (up ()) (down ()) in
        Q.div (choose d k) (power width d), fact in
      let fact wanted gap = lazy (
        let parts = List.filter_map (fun (index, v) ->
          let gap = gap v in
          if Q.sign gap <= 0 then None
          else begin
            let factors = List.map basis (List.rev index) in
            let scale = List.fold_left (fun t (c, _) -> Q.mul t c) gap factors in
            let facts = List.map snd factors in
            Some (scale, List.fold_left (product book) (List.hd facts) (List.tl facts))
          end) values in
        combine book wanted parts) in
      Some { low; high; low_fact = fact (Poly.minus p (Poly.constant low)) (fun v -> Q.sub v low);
             high_fact = fact (Poly.minus (Poly.constant high) p) (fun v -> Q.sub high v) }
    end
  end

(* Of a quotient f/g that is p = f·r: by the least and the largest quotient of Bernstein coefficients of the same degrees, where those of g
   are positive. In a region [reduce] leaves free parameters, and says which multiples of equalities that takes off. *)
let range_of_quotient q book (known : Quotients.known array) reduce p side =
  let top, k = Quotients.split q p in
  match k with
  | None -> invalid_arg "no quotient"
  | Some k ->
    let f, _ = reduce top and g, _ = reduce q.Quotients.denominators.(k) in
    let ends = if Poly.M.equal Q.equal g Poly.one then Option.map (fun e -> e.low, e.high) (range book f side)
      else match degrees_of [ f; g ] with
        | _, false -> None
        | degrees, true ->
          let above = coefficients degrees f side and below = coefficients degrees g side in
          if List.exists (fun (_, b) -> Q.sign b <= 0) below then None
          else begin
            let values = List.map2 (fun (_, a) (_, b) -> Q.div a b) above below in
            Some (List.fold_left Q.min (List.hd values) values, List.fold_left Q.max (List.hd values) values)
          end in
    Option.map (fun (low, high) ->
      let fact upward c = lazy ( (* ±(c·g − f) ≥ 0, times r *)
        let turned p = if upward then Poly.scale Q.minus_one p else p in
        let cleared = turned (Quotients.form q p c) in
        let reduced, equal = reduce cleared in
        match range ~beside:[ f; g ] book reduced side with
        | Some e when Q.sign e.low >= 0 ->
          let own = combine book ~equal cleared [ Q.one, Lazy.force e.low_fact ] in
          Quotients.settle q book (turned (Poly.minus p (Poly.constant c))) [ Q.one, product book (Lazy.force known.(k).positive) own ]
        | _ -> unproved "a range of a quotient") in
      { low; high; low_fact = fact false low; high_fact = fact true high }) ends

(* ---------- From hints to bounds ---------- *)

type tangent = ((int -> Q.t) * Q.t) * row
type t = { space : space; expressions : (int, ends) Hashtbl.t; rewards : (int, ends) Hashtbl.t; polytope : polytope option; choice_basis : int array array;
           tangent : int -> tangent; named : int * int * int -> row }

(* Tangents of the stages of slabs have numbers of their own. *)
let of_stage = 1 lsl 20

(* [used]: the expressions of transitions, [earned]: those of rewards. [events]: polynomials and place, for events or outcomes that share
   δ; None where transitions do, or without data. *)
let project space polynomials used earned (hints : Problem.learned) (events : Events.t option) known support words stage slab =
  let domain : Problem.domain = space.domain in
  let book = space.book in
  let n = size space in
  let interval k = match hints.ends with
    | Some (lower, upper) -> Q.of_float (lower.get k), Q.of_float (upper.get k) | None -> assert false in
  let event_facts k g =
    let low, high = interval k in
    lazy (given book (Event_low k) (Poly.minus g (Poly.constant low))),
    lazy (given book (Event_high k) (Poly.minus (Poly.constant high) g)) in
  let parameter i = { low = List.nth domain.lower i; high = List.nth domain.upper i;
    low_fact = lazy (given book (Above i) (Poly.minus (Poly.parameter i) (Poly.constant (List.nth domain.lower i))));
    high_fact = lazy (given book (Below i) (Poly.minus (Poly.constant (List.nth domain.upper i)) (Poly.parameter i))) } in
  let q = Quotients.of_domain domain in
  let divisors = Array.mapi (fun k g -> match range book g parameter with
    | Some e -> Quotients.known q book k e.low e.high e.low_fact e.high_fact
    | None -> unproved "a denominator has too many terms to be bounded") q.denominators in
  let is_quotient p = snd (Quotients.split q p) <> None in
  let start = start_box space in
  demand (has_room start) words;
  let bounds : (int, ends) Hashtbl.t = Hashtbl.create 1000 in
  let forms = Hashtbl.create 100 and tangents = Hashtbl.create 100 in
  let chance (point : float array) e =
    let linear, constant = match Hashtbl.find_opt forms e with
      | Some f -> f
      | None ->
        let linear, constant, _ = affine space polynomials.(e) in
        let f = Array.map Q.to_float linear, Q.to_float constant in Hashtbl.add forms e f; f in
    let total = ref 0.0 in
    Array.iteri (fun k c -> if c <> 0.0 then total := !total +. c *. point.(k)) linear; !total +. constant in
  let tangent index : tangent = match Hashtbl.find_opt tangents index, known, hints.region with
    | Some found, _, _ -> found
    | None, Some known, Some r ->
      demand (index < Array.length r.point) "no such tangent";
      let (_, least as rule), slopes = known (chance r.point.(index)) in
      let p = List.fold_left (fun p (e, t) -> Poly.plus ~times:t p polynomials.(e)) (Poly.constant (Q.neg least)) slopes in
      let found = rule, row_of space (Tangent (stage * of_stage + index)) p in
      Hashtbl.add tangents index found; found
    | _ -> unproved "rows of origin 3 where there are none" in
  let quotient_row p c upward own =
    let cleared = Quotients.form q p c in
    row_by space (lazy (Quotients.cleared q book divisors p c upward own)) (if upward then Poly.scale Q.minus_one cleared else cleared) in
  let row box (origin, index, part) =
    if origin = 2 then envelope space box index part
    else if origin = 8 then slab index part
    else begin
      demand (part <= 1) "no such row";
      match origin, events with
      | 0, _ -> domain_row space index part
      | 1, Some { chances; _ } ->
        demand (index < Array.length chances) "no such event";
        let g = chances.(index) in
        let low, high = interval index in
        if is_quotient g then quotient_row g (if part = 0 then high else low) (part = 0)
          ((if part = 0 then snd else fst) (event_facts index g))
        else if part = 0 then row_of space (Event_high index) (Poly.minus (Poly.constant high) g)
        else row_of space (Event_low index) (Poly.minus g (Poly.constant low))
      | 5, _ ->
        (match Hashtbl.find_opt bounds index with
         | None -> unproved "rows of expressions that are not there"
         | Some ends when is_quotient polynomials.(index) ->
           if part = 0 then quotient_row polynomials.(index) ends.high true ends.high_fact
           else quotient_row polynomials.(index) ends.low false ends.low_fact
         | Some ends ->
           let linear, constant, equal = affine space polynomials.(index) in
           let equal_minus = List.map (fun (q, k) -> Poly.scale Q.minus_one q, k) equal in
           if part = 0 then { linear; bound = Q.sub ends.high constant; fact = lazy (
             if equal = [] then Lazy.force ends.high_fact
             else combine book ~equal (form space (Array.map Q.neg linear) (Q.sub ends.high constant)) [ Q.one, Lazy.force ends.high_fact ]) }
           else { linear = Array.map Q.neg linear; bound = Q.sub constant ends.low; fact = lazy (
             if equal = [] then Lazy.force ends.low_fact
             else combine book ~equal:equal_minus (form space linear (Q.sub constant ends.low)) [ Q.one, Lazy.force ends.low_fact ]) })
      | 3, _ -> demand (part = 0) "no such tangent"; snd (tangent index)
      | 4, _ -> not_covered "rows of balls"
      | _ -> unproved "rows of no origin"
    end in
  let early, all, stages = match hints.region with
    | None -> [||], [||], 0
    | Some r ->
      demand (r.size = n) "the region does not fit the coordinates";
      let early = List.filter (fun (origin, _, _) -> origin <> 5) (Array.to_list r.row) in
      let early = Array.of_list early in
      demand (Array.sub r.row 0 (Array.length early) = early) "rows that rest on proved bounds come last";
      early, r.row, Array.length r.box_basis / (2 * n) in
  let box = ref start in
  let bases : (int * int, Q.t * int Lazy.t) Hashtbl.t = Hashtbl.create 1000 in
  Option.iter (fun (r : Problem.region) ->
    for stage = 0 to stages - 1 do
      let region = polytope space !box (Array.map (row !box) early) in
      let basis k = r.box_basis.(2 * n * stage + k) in
      let unit k sign = Array.init n (fun j -> if j = k then sign else Q.zero) in
      let old : box = !box in
      let highs = Array.init n (fun k ->
        let exact, parts = most region (unit k Q.one) (basis (2 * k)) in
        let high = upward exact in
        if Q.lt high old.high.(k) then high, weaker space k false (most_fact region (unit k Q.one) exact parts) high
        else old.high.(k), old.high_fact.(k)) in
      let lows = Array.init n (fun k ->
        let exact, parts = most region (unit k Q.minus_one) (basis (2 * k + 1)) in
        let low = Q.neg (upward exact) in
        if Q.gt low old.low.(k) then low, weaker space k true (most_fact region (unit k Q.minus_one) exact parts) low
        else old.low.(k), old.low_fact.(k)) in
      let next : box = { low = Array.map fst lows; low_fact = Array.map snd lows;
                   high = Array.map fst highs; high_fact = Array.map snd highs } in
      demand (has_room next) words;
      let next = with_products space next in
      demand (has_room next) words;
      box := next
    done;
    Option.iter (fun (lower, upper) ->
      let old : box = !box in
      let low = Array.mapi (fun k a -> Q.min a (Q.of_float lower.(k))) old.low in
      let high = Array.mapi (fun k a -> Q.max a (Q.of_float upper.(k))) old.high in
      box := ({ low; high; low_fact = Array.mapi (fun k f -> weaker space k true f low.(k)) old.low_fact;
               high_fact = Array.mapi (fun k f -> weaker space k false f high.(k)) old.high_fact } : box)) r.box;
    let region = polytope space !box (Array.map (row !box) early) in
    Array.iter (fun (e, side, basis, near) ->
      demand (e < Array.length polynomials) "a bound of no expression";
      let f = polynomials.(e) in
      let near = if is_quotient f then near else Q.zero in
      let cleared = Quotients.form q f near in
      let linear, constant, equal = affine space cleared in
      let direction = if side = 1 then linear else Array.map Q.neg linear in
      let exact, parts = most region direction basis in
      let bound = if side = 1 then Q.add constant exact else Q.sub constant exact in
      let wanted = if side = 1 then Poly.minus (Poly.constant bound) cleared else Poly.minus cleared (Poly.constant bound) in
      let equal = List.map (fun (q, k) -> (if side = 1 then Poly.scale Q.minus_one q else q), k) equal in
      let fact = lazy (combine book ~equal wanted (List.map (fun (c, f) -> c, Lazy.force f) parts)) in
      let bound, fact = Quotients.divided q book divisors f near bound (side = 1) fact in
      match Hashtbl.find_opt bases (e, side) with
      | Some (other, _) when (if side = 1 then Q.leq other bound else Q.geq other bound) -> ()
      | _ -> Hashtbl.replace bases (e, side) (bound, fact)) r.bounds) hints.region;
  let final : box = !box in
  let in_box i = let k = Hashtbl.find space.number [ i, 1 ] in
    { low = final.low.(k); high = final.high.(k); low_fact = final.low_fact.(k); high_fact = final.high_fact.(k) } in
  (* What events say: f = g/m, or f = (1 − g)/m. *)
  let of_events = Hashtbl.create 1000 in
  Option.iter (fun (events : Events.t) ->
    Hashtbl.iter (fun (e, m) (k, opposite) ->
      let low, high = interval k and share = Q.inv (Q.of_int m) in
      let low_fact, high_fact = event_facts k events.chances.(k) in
      let low, high, low_fact, high_fact =
        if opposite then Q.sub Q.one high, Q.sub Q.one low, high_fact, low_fact else low, high, low_fact, high_fact in
      let low = Q.mul low share and high = Q.mul high share in
      let f = polynomials.(e) in
      let fact wanted own = lazy (Quotients.settle q book wanted [ share, Lazy.force own ]) in
      let found = { low; high; low_fact = fact (Poly.minus f (Poly.constant low)) low_fact;
                    high_fact = fact (Poly.minus (Poly.constant high) f) high_fact } in
      let better = match Hashtbl.find_opt of_events e with
        | None -> found
        | Some other ->
          let l = if Q.geq other.low low then other else found and h = if Q.leq other.high high then other else found in
          { low = l.low; low_fact = l.low_fact; high = h.high; high_fact = h.high_fact } in
      Hashtbl.replace of_events e better) events.place) events;
  (* The best of all, in doubles; what is not known is at least as likely as is assumed, or as can be. *)
  let at_least f e = given book (Chance e) (Poly.minus f (Poly.constant support)) in
  let proved is_reward e =
    let f = polynomials.(e) in
    let number = Poly.is_number f in
    let plain = if number then
        let c = Poly.constant_of f in
        { low = c; high = c; low_fact = lazy (combine book (Poly.minus f (Poly.constant c)) []);
          high_fact = lazy (combine book (Poly.minus (Poly.constant c) f) []) }
      else { low = Q.zero; high = Q.one; low_fact = lazy (combine book f [ Q.one, at_least f e ]);
             high_fact = lazy (given book (Chance_up e) (Poly.minus Poly.one f)) } in
    let quotient = is_quotient f in
    if quotient && is_reward then not_covered "rewards that are quotients";
    let within = if stages = 0 then None
      else if quotient then range_of_quotient q book divisors (reduce space.solved) f in_box
      else begin
      let reduced, equal = reduce space.solved f in
      Option.map (fun found -> if equal = [] then found else
        { found with
          low_fact = lazy (combine book ~equal (Poly.minus f (Poly.constant found.low)) [ Q.one, Lazy.force found.low_fact ]);
          high_fact = lazy (combine book ~equal:(List.map (fun (q, k) -> Poly.scale Q.minus_one q, k) equal)
            (Poly.minus (Poly.constant found.high) f) [ Q.one, Lazy.force found.high_fact ]) })
        (range book reduced in_box)
    end in
    let over = if quotient then range_of_quotient q book divisors (fun p -> p, []) f parameter else range book f parameter in
    demand (not is_reward || over <> None) "a reward has too many terms to be bounded";
    let first = if is_reward then Option.get over else plain in
    let all = List.filter_map Fun.id [ over; within; if is_reward then None else Hashtbl.find_opt of_events e ] in
    let low = List.fold_left (fun (a, p) (o : ends) -> if Q.gt o.low a then o.low, o.low_fact else a, p) (first.low, first.low_fact) all in
    let high = List.fold_left (fun (a, p) (o : ends) -> if Q.lt o.high a then o.high, o.high_fact else a, p) (first.high, first.high_fact) all in
    let low = match Hashtbl.find_opt bases (e, 0) with Some (b, f) when Q.gt b (fst low) -> b, f | _ -> low in
    let high = match Hashtbl.find_opt bases (e, 1) with Some (b, f) when Q.lt b (fst high) -> b, f | _ -> high in
    demand (Q.leq (fst low) (fst high)) words;
    let down = downward (fst low) and up = upward (fst high) in
    let rounded wanted own = lazy (
      let own = Lazy.force own in
      if Poly.M.equal Q.equal book.says.(own) wanted then own else combine book wanted [ Q.one, own ]) in
    let raised = Q.min support up in
    let down, why = if not number && not is_reward && Q.gt raised down
      then raised, lazy (combine book (Poly.minus f (Poly.constant raised)) [ Q.one, at_least f e ])
      else down, rounded (Poly.minus f (Poly.constant down)) (snd low) in
    { low = down; high = up; low_fact = why;
      high_fact = rounded (Poly.minus (Poly.constant up) f) (snd high) } in
  List.iter (fun e -> Hashtbl.replace bounds e (proved false e)) used;
  let rewards = Hashtbl.create 100 in
  List.iter (fun e -> Hashtbl.replace rewards e (proved true e)) earned;
  let region = Option.map (fun (_ : Problem.region) -> polytope space final (Array.map (row final) all)) hints.region in
  let rows = List.concat (List.init (space.parameters + List.length domain.constraints) (fun i ->
    let both = i < space.parameters || (let _, _, equal = List.nth domain.constraints (i - space.parameters) in equal) in
    domain_row space i 0 :: (if both then [ domain_row space i 1 ] else []))) in
  let points = match hints.region with Some r -> r.point | None -> [||] in
  demand (has_a_point (Option.value ~default:(polytope space final [||]) region) rows points) words;
  { space; expressions = bounds; rewards; polytope = region; tangent; named = row final;
    choice_basis = (match hints.region with Some r -> r.choice_basis | None -> [||]) }
