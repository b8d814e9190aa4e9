(* NOT BELIEVED. Rows that bets prove: of every expression a line below what was won and the likelihood, as `slab.py` of the Python checker
   chooses it, and the least number that the checker takes. *)

open Refusal

type ready = { model : Checker.model; size : int; scheme : Checker.scheme; met : int -> int -> int; cert : Checker.cert; evident : Z.t * (int * Z.t) list;
               sides : Checker.placement list list list; of_expressions : int list list; partners : int list array; weight : Z.t array }

let prepare model size batches (scheme, met, delta) cert evident =
  match Checker.prepared model size scheme batches met delta with
  | Some (_ :: _ as sides, of_expressions) ->
    let partners = Array.make scheme.Checker.classes [] and weight = Array.make size Z.zero in
    for kind = 0 to scheme.kinds - 1 do
      let own = List.sort_uniq compare (scheme.members kind) in List.iter (fun k -> partners.(k) <- own) own
    done;
    List.iter (fun (e, k) -> weight.(e) <- k) (snd evident);
    { model; size; scheme; met; cert; evident; sides; of_expressions; partners; weight }
  | _ -> unproved "bets that are not fair"

let half_bits = 100
let trim q = Q.make (Z.fdiv (Z.shift_left (Q.num q) half_bits) (Q.den q)) (Z.shift_left Z.one half_bits)
let rec gcd a b = if b = 0 then a else gcd b (a mod b)
let exact x = if Float.is_finite x then Q.of_float x else unproved "a line of a slab that has no slope"

(* Below log(1 + a/f), summed, less off·log f from [low] to [high]: (where it touches, whether it is the chord, its slope). *)
let line losses off low high near =
  let sum f = List.fold_left (fun total (n, a) -> total +. n *. f a) 0.0 losses in
  let value f = sum (fun a -> Float.log1p (a /. f)) -. off *. log f in
  let slope f = sum (fun a -> -. a /. (f *. (f +. a))) -. off /. f in
  let bend f = off +. sum (fun a -> a *. (2.0 *. f +. a) /. ((f +. a) *. (f +. a))) in
  let first = value low and least = ref low and most = ref high in
  for _ = 1 to 40 do
    let middle = 0.5 *. (!least +. !most) in
    if value middle +. slope middle *. (low -. middle) <= first then most := middle else least := middle
  done;
  let at = Float.max near !most in
  if at < high && bend at > 1e-9 *. off then at, false, slope at
  else begin
    let chord = if high > low then (value high -. first) /. (high -. low) else 0.0 in
    let steepest = slope high in
    let steepest = steepest +. 1e-12 *. (Float.abs steepest +. sum (fun a -> -. a /. (high *. (high +. a))) +. off /. high) in
    high, true, Float.max chord steepest
  end

let make (space : Region.space) ready polynomials (ends : (int, Sets.ends) Hashtbl.t) (point : float array) shares off side =
  let scheme = ready.scheme and met = ready.met and placed = List.nth ready.sides side in
  let count = Array.length shares and bettors = List.length scheme.weights in
  demand (count > 0 && bettors mod count = 0) "shares of a slab that do not fit its bets";
  let scale = Array.fold_left gcd 0 shares in
  demand (scale > 0) "a row of a slab without shares";
  let portions = List.init bettors (fun j -> shares.(j * count / bettors) / scale) in
  let all = List.fold_left (+) 0 portions in
  let trials = List.fold_left (fun n k -> n + List.fold_left (fun n b -> n + met b k) 0 (List.concat_map fst (List.hd placed)))
    0 (List.init scheme.classes Fun.id) in
  if trials > 0 && all > (max_int / 4) / trials then not_covered "shares of a slab that are too fine";
  let any = Hashtbl.fold (fun e (b : Sets.ends) _ -> Some (e, b)) ends None in
  let bound e = match Hashtbl.find_opt ends e, any with
    | Some b, _ -> { Checker.of_expr = e; blo = b.low; bhi = b.high; why_lo = []; why_hi = [] }
    | None, Some (e, b) -> { Checker.of_expr = e; blo = b.low; bhi = b.high; why_lo = []; why_hi = [] }
    | None, None -> unproved "no expressions" in
  let box = let boxes = Array.init ready.size bound in Array.get boxes in
  let certain = Hashtbl.create 10 in
  let placements = Array.of_list (List.map Array.of_list placed) in
  let sure j p k =
    let table = match Hashtbl.find_opt certain (j, p) with
      | Some t -> t
      | None ->
        let stakes = snd placements.(j).(p) in
        let own = Array.init scheme.classes (Checker.stands_ok scheme ready.size box stakes) in
        let t = Array.map (List.for_all (Array.get own)) ready.partners in
        Hashtbl.add certain (j, p) t; t in
    table.(k) in
  let guard = Q.mul (Q.of_float off) (Q.of_int all) in
  let near = Array.make ready.size Q.one and touch = Array.make ready.size Q.one and chord = Array.make ready.size false
  and tilt = Array.make ready.size Q.zero in
  let wager = { Checker.of_side = side; portions; guard; sure; near = Array.get near; touch = Array.get touch; chord = Array.get chord;
    tilt = Array.get tilt; most = Q.zero; trim } in
  List.iteri (fun e classes ->
    match Hashtbl.find_opt ends e with
    | None -> ()
    | Some b ->
      let entries = List.concat_map (fun k -> Checker.entries met wager k 0 portions placed) classes in
      let off = Q.to_float (Q.mul guard (Q.of_bigint ready.weight.(e))) in
      if entries <> [] || off <> 0.0 then begin
        let linear, constant, _ = Region.affine space polynomials.(e) in
        let chance = ref (Q.to_float constant) in
        Array.iteri (fun k c -> chance := !chance +. Q.to_float c *. point.(k)) linear;
        let low = Q.to_float b.low and high = Q.to_float b.high in
        let q = Float.min high (Float.max !chance (Float.max low (1e-9 *. high))) in
        near.(e) <- exact q;
        let of_sign positive = List.filter_map (fun (x : Checker.entry) ->
          let a = Q.to_float x.stands in
          if x.certain && (a > 0.0) = positive then Some (float_of_int x.often, a) else None) entries in
        let gain = List.fold_left (fun t (n, a) -> t +. n *. a /. (q *. (q +. a))) 0.0 (of_sign true) in
        match of_sign false with
        | [] -> tilt.(e) <- exact (-. gain -. off /. q)
        | losses ->
          let at, is_chord, slope = line losses off low high q in
          touch.(e) <- exact at; chord.(e) <- is_chord; tilt.(e) <- exact (slope -. gain)
      end) ready.of_expressions;
  let units = Q.of_bigint Checker.unit_log in
  match Checker.logs ready.cert all scheme.alpha, Checker.costs ready.cert all portions scheme.weights,
        Checker.lines ready.model met ready.cert ready.size box wager (snd ready.evident) 0 ready.of_expressions placed with
  | Some x, Some y, Some (h, p) ->
    let total = Q.add (Q.add (Q.of_bigint (Z.add x y)) (Q.mul guard (Q.of_bigint (fst ready.evident)))) h in
    let most = Q.neg (trim (Q.div total units)) in
    { wager with most }, Poly.minus (Poly.constant most) (Poly.of_terms (List.map (fun (c, m) -> m, c) p))
  | _ -> unproved "a row of a slab"
