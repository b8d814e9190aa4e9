(* NOT BELIEVED. The facts of a book as multiples of what the checker knows, and the facts that are made from these. *)

open Refusal
open Problem

(* Facts of a book as the checker takes them: combinations are written out, products are made. *)
type t = { flat : int -> (Q.t * Checker.reference) list; single : int -> Checker.reference; equality : Q.t * int -> Q.t * Checker.reference;
                 made : unit -> Checker.made list; share : int -> unit;
                 within : int -> (int -> int) -> t } (* facts in a cell, which is behind so many splits: where the fact of each stands *)

let rec make ?(from = 0) ?(known = Hashtbl.create 100) ?(sums = Hashtbl.create 100) ?(cuts = Hashtbl.create 10) ?(bets = Hashtbl.create 10)
    ?(boxes = Hashtbl.create 4) ?(split = fun _ -> assert false) (space : Region.space) (domain : domain) written occurrence tangent wagered =
  let book = space.book and made = ref [] and count = ref from and shared = Hashtbl.create 100 in
  let add m = made := m :: !made; incr count; Checker.Made (!count - 1) in
  let parameters = List.length domain.lower in
  (* Constraint r among the polynomials of the domain, or the other side of an equality. Those beyond the [written] ones say that a
     parameter is a number, which its bounds do. *)
  let row r other =
    if r < written then begin
      let before = List.filteri (fun i _ -> i < r) domain.constraints in
      Checker.Dom (2 * parameters + List.fold_left (fun n (_, _, equal) -> n + if equal then 2 else 1) 0 before + if other then 1 else 0)
    end else begin
      let coefficients, _, _ = List.nth domain.constraints r in
      let rec first i = function c :: rest -> if Q.sign c <> 0 then i else first (i + 1) rest | [] -> assert false in
      Checker.Dom (2 * first 0 coefficients + if other then 0 else 1)
    end in
  let quotient k = (* the equations of quotients are the last of the domain *)
    2 * parameters + 2 * k + List.fold_left (fun n (r, (_, _, equal)) -> n + if r >= written then 0 else if equal then 2 else 1) 0
      (List.mapi (fun r row -> r, row) domain.constraints) in
  let rec given : Region.given -> Checker.reference = function
    | Above i -> Dom (2 * i) | Below i -> Dom (2 * i + 1)
    | Row r -> row r false | Minus_row r -> row r true
    | Event_low k -> Low k | Event_high k -> High k
    | Chance e -> let s, i, j = occurrence e in Least (s, i, j)
    | Chance_up e -> let s, i, j = occurrence e in Most (s, i, j)
    | Cell k -> Made (split k)
    | Quotient k -> Dom (quotient k) | Minus_quotient k -> Dom (quotient k + 1)
    | Tangent k -> (match Hashtbl.find_opt cuts k with
      | Some r -> r
      | None -> let t, least = tangent k in let r = add (Checker.Cut (t, least)) in Hashtbl.replace cuts k r; r)
    | Wagered k -> (match Hashtbl.find_opt bets k with
      | Some r -> r
      | None ->
        let stage, size, (ends : (int, Sets.ends) Hashtbl.t), wager = wagered k in
        let box = match Hashtbl.find_opt boxes stage with
          | Some box -> box
          | None ->
            let other = ref None in
            let bounds = Array.init size (fun e -> Option.map (fun (b : Sets.ends) ->
              let b = { Checker.of_expr = e; blo = b.low; bhi = b.high; why_lo = flat (Lazy.force b.low_fact); why_hi = flat (Lazy.force b.high_fact) } in
              other := Some b; b) (Hashtbl.find_opt ends e)) in
            let box = Array.map (function Some b -> b | None -> Option.get !other) bounds in
            Hashtbl.replace boxes stage box; box in
        let r = add (Checker.Bet (size, Array.get box, wager)) in Hashtbl.replace bets k r; r)
  and merge l = (* one multiplier for each reference *)
    let table = Hashtbl.create 8 in
    List.iter (fun (y, r) ->
      Hashtbl.replace table r (Q.add y (Option.value ~default:Q.zero (Hashtbl.find_opt table r)))) l;
    Hashtbl.fold (fun r y l -> (y, r) :: l) table []
  (* A fact as multiples of references; a number ≥ 0 is left over. *)
  and flat i = match Hashtbl.find_opt sums i with
    | Some l -> l
    | None ->
      let l = match book.why.(i) with
        | Region.Given g -> [ Q.one, given g ]
        | Product _ | Square _ -> [ Q.one, single i ]
        | Combine (parts, equal) ->
          merge (List.concat_map (fun (c, j) -> List.map (fun (y, r) -> Q.mul c y, r) (flat j)) parts
            @ List.map (fun (q, k) ->
              if not (Poly.is_number q) then not_covered "products with equalities of the domain";
              let c = Poly.constant_of q in (* c·(a·θ − b) *)
              Q.abs c, row k (Q.sign c > 0)) equal) in
      Hashtbl.replace sums i l; l
  and single i = match Hashtbl.find_opt known i with
    | Some r -> r
    | None ->
      let r = match book.why.(i) with
        | Region.Given g -> given g
        | Product (a, b) -> let a = single a in let b = single b in add (Checker.Prod (a, b))
        | Square p -> add (Checker.Square (Events.terms p))
        | Combine (parts, _) ->
          let l = flat i in
          let rest = List.fold_left (fun p (c, j) -> Poly.plus ~times:(Q.neg c) p book.says.(j)) book.says.(i) parts in
          ignore rest;
          (* the number that is left: the difference of constant terms at any point, here of the polynomials *)
          add (Checker.Comb (l, left i)) in
      Hashtbl.replace known i r; r
  (* The number by which a fact exceeds the multiples of its references. *)
  and left i = match book.why.(i) with
    | Region.Combine (parts, equal) ->
      let rest = List.fold_left (fun p (c, j) -> Poly.plus ~times:(Q.neg c) p book.says.(j)) book.says.(i) parts in
      let rest = List.fold_left (fun p (q, k) ->
        let row, bound, _ = List.nth domain.constraints k in
        let form = Poly.minus (Region.linear_form row) (Poly.constant bound) in
        Poly.minus p (Poly.times q form)) rest equal in
      List.fold_left (fun total (c, j) -> Q.add total (Q.mul c (left j))) (Poly.constant_of rest) parts
    | _ -> Q.zero in
  (* What a fact of a cell rests on and other cells may rest on, too. *)
  let rec share i =
    if not (Hashtbl.mem shared i) then begin
      Hashtbl.replace shared i ();
      match book.why.(i) with
      | Region.Given (Tangent _ | Wagered _ as g) -> ignore (given g)
      | Given _ | Square _ -> ()
      | Product (a, b) -> share a; share b
      | Combine (parts, _) -> List.iter (fun (_, j) -> share j) parts
    end in
  { flat; single; equality = (fun (c, k) -> Q.abs c, row k (Q.sign c > 0)); made = (fun () -> List.rev !made); share;
    within = (fun splits place ->
      let base = !count in
      make ~from:(base + splits) ~known:(Hashtbl.copy known) ~sums:(Hashtbl.copy sums) ~cuts:(Hashtbl.copy cuts) ~bets:(Hashtbl.copy bets)
        ~boxes:(Hashtbl.copy boxes) ~split:(fun k -> base + place k) space domain written occurrence tangent wagered) }
