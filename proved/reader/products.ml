(* NOT BELIEVED. That a quadratic form is not negative on a cell: products of the cell's rows, which are not negative, as rows of its
   variables and their products. *)

type t = { region : Region.polytope; size : int; lp : Simplex.rows; (* of the cell *)
           place : float array -> float array; (* of values of the variables *)
           mutable near : int list; line : int -> Q.t * Q.t array; (* a row as number - line of the variables *)
           sides : (Poly.t * Q.t * int * int) array; box : Region.row array }

let index n j k = if j <= k then n + j * n - j * (j - 1) / 2 + k - j else n + k * n - k * (k - 1) / 2 + j - k
let moments n = n + n * (n + 1) / 2

(* (a - u)·(b - v) >= 0, or a - u >= 0, as a row of variables and products *)
let row zero plus times minus n (a, u) = function
  | None -> Array.init (moments n) (fun m -> if m < n then u.(m) else zero), a
  | Some (b, v) ->
    let linear = Array.make (moments n) zero in
    for j = 0 to n - 1 do
      linear.(j) <- plus (times a v.(j)) (times b u.(j));
      for k = 0 to n - 1 do linear.(index n j k) <- minus linear.(index n j k) (times u.(j) v.(k)) done
    done;
    linear, times a b

(* The rows that are nearest to a point. *)
let nearest t count z =
  let slack = List.sort compare (List.init (Array.length t.lp.a) (fun i -> t.lp.b.(i) -. Simplex.dot t.lp.a.(i) z, i)) in
  List.map snd (List.filteri (fun place _ -> place < count) slack)

let make (region : Region.polytope) (lp : Simplex.rows) scale basis points (corner : float array) (x0 : Q.t array) (axes : Q.t array array) sides =
  let n = lp.size and book = region.of_space.book in
  let line i =
    let r = region.rows.(i) in
    let along x = let t = ref Q.zero in Array.iteri (fun k c -> if Q.sign c <> 0 then t := Q.add !t (Q.mul c x.(k))) r.linear; !t in
    Q.sub r.bound (along x0), Array.map along axes in
  let place y =
    Array.init n (fun k ->
      let t = ref corner.(k) in
      Array.iteri (fun j v -> t := !t +. v *. Q.to_float axes.(j).(k) /. scale.(k)) y; !t) in
  let faces = List.init (2 * n) Fun.id in
  let side j = let p, h, low, high = sides.(j) in p, h, low, high in
  let unit m sign = Array.init (moments n) (fun k -> if k = m then sign else Q.zero) in
  let box = Array.make (2 * moments n) { Region.linear = [||]; bound = Q.zero; fact = lazy 0 } in
  let face m high above below =
    box.(2 * m) <- { linear = unit m Q.one; bound = high; fact = above };
    box.(2 * m + 1) <- { linear = unit m Q.minus_one; bound = Q.zero; fact = below } in
  for j = 0 to n - 1 do
    let y, h, low, high = side j in
    face j h (Lazy.from_val high) (Lazy.from_val low);
    for k = j to n - 1 do
      let y', h', low', high' = side k in
      let most = Q.mul h h' in
      face (index n j k) most (* h·(h' - y') + y'·(h - y) *)
        (lazy (Region.combine book (Poly.minus (Poly.constant most) (Poly.times y y')) [ h, high'; Q.one, Region.product book low' high ]))
        (lazy (Region.product book low low'))
    done
  done;
  let t = { region; size = n; lp; place; near = []; line; sides; box } in
  t.near <- List.sort_uniq compare (faces @ Array.to_list basis @ List.concat_map (nearest t (2 * n)) points);
  t

(* Rows of variables and products: the sides, and all pairs of the rows near by; (i, -1): row i alone. *)
let rows t =
  let n = t.size in
  let lines = List.map (fun i ->
    let a, u = t.line i in
    let u = Array.map Q.to_float u and a = Q.to_float a in
    let size = Array.fold_left (fun m v -> Float.max m (Float.abs v)) 1e-300 u in
    i, (a /. size, Array.map (fun v -> v /. size) u)) t.near in
  let pairs = Array.of_list (List.concat_map (fun (i, one) ->
    ((i, -1), one, None) :: List.filter_map (fun (k, other) -> if k <= i then Some ((i, k), one, Some other) else None) lines) lines) in
  let scaled = Array.map (fun (_, one, other) ->
    let a, b = row 0.0 ( +. ) ( *. ) ( -. ) n one other in
    let size = Float.max 1e-300 (sqrt (Simplex.dot a a)) in
    Array.map (fun v -> v /. size) a, b /. size) pairs in
  let all = Array.append (Array.map (fun (r : Region.row) -> Array.map Q.to_float r.linear, Q.to_float r.bound) t.box) scaled in
  Array.map (fun (pair, _, _) -> pair) pairs, { Simplex.a = Array.map fst all; b = Array.map snd all; size = moments n }

(* The fact that number + first-order part + second-order part is not negative. *)
let holds t (number, first, second) =
  let n = Array.length first and book = t.region.of_space.book in
  let direction = Array.make (moments n) Q.zero in
  Array.iteri (fun j c ->
    direction.(j) <- Q.neg c;
    Array.iteri (fun k c -> let m = index n j k in direction.(m) <- Q.sub direction.(m) c) second.(j)) first;
  (* the rows of a proof, where rows that its point is beyond are added *)
  let rec solved left =
    let pairs, lp = rows t in
    match Simplex.maximise lp (Array.map Q.to_float direction) with
    | Simplex.Nothing _ -> None
    | Vertex (m, basis) ->
      let z = t.place (Array.sub m 0 n) in
      let beyond i = t.lp.b.(i) -. Simplex.dot t.lp.a.(i) z < -1e-9 in
      match List.filter beyond (nearest t 8 z) with
      | more when left > 0 && more <> [] && Simplex.dot m (Array.map Q.to_float direction) > Q.to_float number ->
        t.near <- List.sort_uniq compare (more @ t.near); solved (left - 1)
      | _ -> Some (pairs, basis) in
  match solved 8 with
  | None -> None
  | Some (pairs, basis) ->
    let faces = Array.length t.box in
    let rows = Array.append t.box (Array.map (fun i ->
      if i < faces then t.box.(i)
      else
        let i, k = pairs.(i - faces) in
        let fact i = (* exactly what the row says *)
          let r = t.region.rows.(i) in
          let own = Lazy.force r.fact and wanted = Region.form t.region.of_space (Array.map Q.neg r.linear) r.bound in
          if Poly.M.equal Q.equal book.says.(own) wanted then own else Region.combine book wanted [ Q.one, own ] in
        let linear, bound = row Q.zero Q.add Q.mul Q.sub n (t.line i) (if k < 0 then None else Some (t.line k)) in
        { Region.linear; bound; fact = (if k < 0 then lazy (fact i) else lazy (Region.product book (fact i) (fact k))) }) basis) in
    let ends high = Array.init (moments n) (fun m -> let r = t.box.(2 * m + if high then 0 else 1) in if high then r.bound else Q.neg r.bound) in
    let facts high = Array.init (moments n) (fun m -> t.box.(2 * m + if high then 0 else 1).fact) in
    let box = { Region.low = ends false; high = ends true; low_fact = facts false; high_fact = facts true } in
    let lifted = { t.region with Region.box; rows; cache = Hashtbl.create 1 } in
    let total, parts = Region.most ~cut:Region.shorter lifted direction (Array.mapi (fun place _ -> faces + place) basis) in
    if Q.lt number total then None
    else Some (fun () ->
      let y j = let p, _, _, _ = t.sides.(j) in p in
      let p = ref (Poly.constant number) in
      Array.iteri (fun j c ->
        p := Poly.plus ~times:c !p (y j);
        Array.iteri (fun k c -> p := Poly.plus ~times:c !p (Poly.times (y j) (y k))) second.(j)) first;
      Region.combine book !p (List.map (fun (c, f) -> c, Lazy.force f) parts))
