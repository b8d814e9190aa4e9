(* NOT BELIEVED. That a quadratic form is not negative on a cell: products of the cell's rows and squares, which are not negative, as rows
   of its variables and their products. Rows come in where the point of a proof is beyond them. *)

type kind = Face of int | Alone of int | Pair of int * int | Square of float array (* of a number and variables *)
type t = { region : Region.polytope; size : int; lp : Simplex.rows; (* of the cell *)
           place : float array -> float array; (* of values of the variables *)
           mutable near : int list; line : int -> Q.t * Q.t array; (* a row as number - line of the variables *)
           lines : (int, float * float array) Hashtbl.t; (* the same, of size 1 *)
           mutable met : kind list; mutable worst : float array option (* where it is not shown *); sides : (Poly.t * Q.t * int * int) array; box : Region.row array }

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
  let t = { region; size = n; lp; place; near = []; line; lines = Hashtbl.create 100; met = []; worst = None; sides; box } in
  t.near <- List.sort_uniq compare (faces @ Array.to_list basis @ List.concat_map (nearest t (2 * n)) points);
  t

let even t i = match Hashtbl.find_opt t.lines i with
  | Some line -> line
  | None ->
    let a, u = t.line i in
    let u = Array.map Q.to_float u and a = Q.to_float a in
    let size = Array.fold_left (fun m v -> Float.max m (Float.abs v)) 1e-300 u in
    let line = a /. size, Array.map (fun v -> v /. size) u in
    Hashtbl.add t.lines i line; line

let squared v = Array.map (fun c -> -. c) (Array.sub v 1 (Array.length v - 1)) |> fun u -> v.(0), u

let in_doubles t kind =
  let of_pair one other = row 0.0 ( +. ) ( *. ) ( -. ) t.size one other in
  let a, b = match kind with
    | Face i -> let r = t.box.(i) in Array.map Q.to_float r.linear, Q.to_float r.bound
    | Alone i -> of_pair (even t i) None
    | Pair (i, k) -> of_pair (even t i) (Some (even t k))
    | Square v -> of_pair (squared v) (Some (squared v)) in
  let size = Float.max 1e-300 (sqrt (Simplex.dot a a)) in
  Array.map (fun v -> v /. size) a, b /. size

let exactly t kind =
  let n = t.size and book = t.region.of_space.book in
  let of_pair one other = row Q.zero Q.add Q.mul Q.sub n one other in
  let fact i = (* exactly what the row says *)
    let r = t.region.rows.(i) in
    let own = Lazy.force r.fact and wanted = Region.form t.region.of_space (Array.map Q.neg r.linear) r.bound in
    if Poly.M.equal Q.equal book.says.(own) wanted then own else Region.combine book wanted [ Q.one, own ] in
  match kind with
  | Face i -> t.box.(i)
  | Alone i -> let linear, bound = of_pair (t.line i) None in { Region.linear; bound; fact = lazy (fact i) }
  | Pair (i, k) -> let linear, bound = of_pair (t.line i) (Some (t.line k)) in { linear; bound; fact = lazy (Region.product book (fact i) (fact k)) }
  | Square v ->
    let a, u = squared v in
    let line = Q.of_float a, Array.map Q.of_float u in
    let linear, bound = of_pair line (Some line) in
    { linear; bound; fact = lazy (
      let p = ref (Poly.constant (fst line)) in
      Array.iteri (fun j c -> let y, _, _, _ = t.sides.(j) in p := Poly.plus ~times:(Q.neg c) !p y) (snd line);
      Region.note book (Poly.times !p !p) (Region.Square !p)) }

(* Eigenvectors of a symmetric matrix with their values, by rotations. *)
let eigen m =
  let n = Array.length m in
  let a = Array.map Array.copy m and v = Array.init n (fun i -> Array.init n (fun j -> if i = j then 1.0 else 0.0)) in
  for _ = 1 to 12 do
    for p = 0 to n - 2 do
      for q = p + 1 to n - 1 do
        if Float.abs a.(p).(q) > 1e-15 then begin
          let angle = 0.5 *. Float.atan2 (2.0 *. a.(p).(q)) (a.(q).(q) -. a.(p).(p)) in
          let c = cos angle and s = sin angle in
          let turn get put = for k = 0 to n - 1 do let x = get k p and y = get k q in put k p (c *. x -. s *. y); put k q (s *. x +. c *. y) done in
          turn (fun k i -> a.(k).(i)) (fun k i x -> a.(k).(i) <- x);
          turn (fun k i -> a.(i).(k)) (fun k i x -> a.(i).(k) <- x);
          turn (fun k i -> v.(k).(i)) (fun k i x -> v.(k).(i) <- x)
        end
      done
    done
  done;
  List.init n (fun j -> a.(j).(j), Array.init n (fun i -> v.(i).(j)))

(* What the point of a proof is beyond. *)
let beyond t m =
  let n = t.size in
  let y = Array.sub m 0 n in
  let z = t.place y in
  let outside = List.filter (fun i -> t.lp.b.(i) -. Simplex.dot t.lp.a.(i) z < -1e-9) (nearest t 8 z) in
  t.near <- List.sort_uniq compare (outside @ t.near);
  let lines = Array.of_list (List.map (fun i -> i, even t i) t.near) in
  let second u = Array.init n (fun k -> let s = ref 0.0 in Array.iteri (fun j c -> s := !s +. c *. m.(index n j k)) u; !s) in
  let ready = Array.map (fun (i, (a, u)) -> i, a, u, Simplex.dot u y, second u) lines in
  let found = ref [] in
  Array.iteri (fun place (i, a, _, uy, w) ->
    for other = place to Array.length ready - 1 do
      let k, b, v, vy, _ = ready.(other) in
      let value = a *. b -. a *. vy -. b *. uy +. Simplex.dot w v in
      if value < -1e-9 then found := (value, Pair (i, k)) :: !found
    done) ready;
  let worst = List.filteri (fun i _ -> i < 3 * n) (List.sort compare !found) in
  let matrix = Array.init (n + 1) (fun i -> Array.init (n + 1) (fun j ->
    if i = 0 then if j = 0 then 1.0 else y.(j - 1) else if j = 0 then y.(i - 1) else m.(index n (i - 1) (j - 1)))) in
  let short v = Float.of_int (int_of_float (v *. 1048576.0)) /. 1048576.0 in
  let squares = List.filter_map (fun (value, v) -> if value < -1e-9 then Some (Square (Array.map short v)) else None) (eigen matrix) in
  List.map (fun i -> Alone i) outside @ List.map snd worst @ squares

(* The fact that number + first-order part + second-order part is not negative. *)
let holds t (number, first, second) =
  let n = Array.length first and book = t.region.of_space.book in
  let direction = Array.make (moments n) Q.zero in
  Array.iteri (fun j c ->
    direction.(j) <- Q.neg c;
    Array.iteri (fun k c -> let m = index n j k in direction.(m) <- Q.sub direction.(m) c) second.(j)) first;
  let goal = Array.map Q.to_float direction and number' = Q.to_float number in
  let faces = List.init (Array.length t.box) (fun i -> Face i) in
  let rec solved kinds rows basis before left = (* fewer attempts are left where little is gained *)
    match Simplex.maximise ?from:basis { Simplex.a = Array.map fst rows; b = Array.map snd rows; size = moments n } goal with
    | Simplex.Nothing _ -> None
    | Vertex (m, basis) ->
      let need = Simplex.dot m goal in
      if need <= number' then Some (kinds, basis)
      else match if left <= 0 then [] else beyond t m with
        | [] -> t.worst <- Some (t.place (Array.sub m 0 n)); None
        | more ->
          t.met <- t.met @ more;
          let more = Array.of_list more in
          solved (Array.append kinds more) (Array.append rows (Array.map (in_doubles t) more)) (Some basis) need
            (if before -. need < 0.1 *. (need -. number') then left - 10 else left - 1) in
  let kinds = Array.of_list (faces @ t.met) in
  match solved kinds (Array.map (in_doubles t) kinds) None infinity 60 with
  | None -> None
  | Some (kinds, basis) ->
    let rows = Array.map (fun i -> exactly t kinds.(i)) basis in
    let lines = Array.map (fun (r : Region.row) -> Array.map Q.to_float r.linear) rows in
    let weight = Simplex.times_matrix goal (Simplex.inverse lines) in
    let ends high = Array.init (moments n) (fun m -> let r = t.box.(2 * m + if high then 0 else 1) in if high then r.bound else Q.neg r.bound) in
    let facts high = Array.init (moments n) (fun m -> t.box.(2 * m + if high then 0 else 1).fact) in
    let box = { Region.low = ends false; high = ends true; low_fact = facts false; high_fact = facts true } in
    let total, parts = Region.within box rows (Array.map (fun v -> if v > 0.0 then Q.of_float v else Q.zero) weight) direction in
    if Q.lt number total then None
    else Some (fun () ->
      let y j = let p, _, _, _ = t.sides.(j) in p in
      let p = ref (Poly.constant number) in
      Array.iteri (fun j c ->
        p := Poly.plus ~times:c !p (y j);
        Array.iteri (fun k c -> p := Poly.plus ~times:c !p (Poly.times (y j) (y k))) second.(j)) first;
      Region.combine book !p (List.map (fun (c, f) -> c, Lazy.force f) parts))
