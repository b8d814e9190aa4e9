(* NOT BELIEVED. Cells that cover the region, and on each a form below (above) the value at every open state, or below (above) the
   difference of two policies at the initial state; found here, with a file's rows, and not its models. A cell's frame is the corner where
   what is claimed is least: its variables are at least 0 there, so that nothing is lost at the corner. *)

open Refusal

type leaf = { path : (int * Poly.t) list; sides : (Poly.t * Z.t * int * int) array; budget : Z.t * int; forms : (int * (Z.t * Z.t list)) list;
              grain : Z.t; unit_of : Z.t; goal : Z.t; (* parts of probabilities, of values; what is claimed in these *)
              models : (Expansion.chain * bool * Expansion.model) list; said : int option (* that the form at the initial state is not negative *) }
type t = Leaf of leaf | Hollow of (int * Poly.t) list * int | Split of Poly.t * t * t

(* One policy of a claim: its chain, and whether its value counts (1) or is taken off (-1). *)
type part = { chain : Expansion.chain; counts : int }

let most_cells = 4000
let () = Gc.set { (Gc.get ()) with minor_heap_size = 1 lsl 20; space_overhead = 200 }

(* [envelopes box]: rows of products within a box; [start]: the box and the other rows. [affine e]: an expression in coordinates. *)
let cover (space : Region.space) (start : Region.box) rows envelopes affine labels parts upward (bound : float) initial =
  let n = Region.size space and free = List.length space.free and sg = if upward then -1.0 else 1.0 in
  let linear = Hashtbl.create 100 in
  List.iter (fun e -> let l, c = affine e in Hashtbl.replace linear e (Array.map Q.to_float l, Q.to_float c, l, c)) labels;
  let parts = List.map (fun { chain; counts } ->
    chain, Expansion.changes chain (fun e -> let l, _, _, _ = Hashtbl.find linear e in l), counts) parts in
  let coordinates = Array.init n (fun k -> Array.init n (fun j -> if j = k then 1.0 else 0.0)) in
  let at_initial (corner : Expansion.corner) = Hashtbl.find corner.chain.number initial in
  let count = ref 0 in
  let width = Array.init n (fun k -> Q.to_float (Q.sub start.high.(k) start.low.(k))) in
  let rec go (box : Region.box) path =
    incr count;
    if !count > most_cells then not_covered "coupled values that need so many cells";
    let region = Region.polytope space box (Array.append rows (envelopes box)) in
    let low = Array.map Q.to_float box.low and scale = Array.mapi (fun k a -> Float.max 1e-300 (Q.to_float (Q.sub box.high.(k) a))) box.low in
    let scaled = Array.map (fun (r : Region.row) ->
      let a = Array.mapi (fun k c -> Q.to_float c *. scale.(k)) r.linear in
      let b = ref r.bound in
      Array.iteri (fun k c -> b := Q.sub !b (Q.mul c box.low.(k))) r.linear;
      let size = Float.max 1e-300 (sqrt (Simplex.dot a a)) in
      Array.map (fun v -> v /. size) a, Q.to_float !b /. size) region.rows in
    let lp = { Simplex.a = Array.map fst scaled; b = Array.map snd scaled; size = n } in
    let upward_in g = Simplex.maximise lp (Array.mapi (fun k c -> c *. scale.(k)) g) in (* in coordinates x *)
    (* Along the free coordinate along which most is lost; [loss]: of how far the cell goes along each. *)
    let halves ?near loss =
      let extent k =
        let unit s = Array.init n (fun j -> if j = k then s else 0.0) in
        match upward_in (unit 1.0), upward_in (unit (-1.0)) with
        | Simplex.Vertex (a, _), Simplex.Vertex (b, _) -> (a.(k) -. b.(k)) *. scale.(k), low.(k) +. 0.5 *. (a.(k) +. b.(k)) *. scale.(k)
        | _ | exception Simplex.Singular -> 0.0, 0.0 in
      let extents = Array.init free extent in
      let long = Array.map fst extents in
      let best = ref (-1) and most = ref 0.0 in
      Array.iteri (fun k part -> if long.(k) > 1e-7 *. width.(k) && part > !most then (most := part; best := k)) (loss long);
      if !best < 0 then not_covered "coupled values that need such small cells";
      let k = !best in
      let k, v = match near with
        | None -> k, snd extents.(k)
        | Some (corner, focus) ->
          let away k = if long.(k) > 1e-7 *. width.(k) then Float.abs (focus.(k) -. corner.(k)) /. long.(k) else 0.0 in
          let k' = List.fold_left (fun best k -> if away k > away best then k else best) 0 (List.init free Fun.id) in
          let v = corner.(k') +. 2.5 *. (focus.(k') -. corner.(k')) in
          if away k' > 0.2 || away k' < 0.004 || Float.abs (v -. snd extents.(k')) > 0.45 *. long.(k') then k, snd extents.(k) else k', v in
      let v = Q.of_float v in
      let side fact_poly change =
        let id = space.book.count in (* no other cell's, of the other end neither *)
        let fact = Lazy.from_val (Region.given space.book (Region.Cell id) fact_poly) in
        let next = { Region.low = Array.copy box.low; high = Array.copy box.high; low_fact = Array.copy box.low_fact; high_fact = Array.copy box.high_fact } in
        change next fact;
        go (Region.with_products space next) ((id, fact_poly) :: path) in
      let below = Region.under space k v and above = Region.above space k v in
      let a = side below (fun (b : Region.box) fact -> b.high.(k) <- v; b.high_fact.(k) <- fact) in
      let b = side above (fun (b : Region.box) fact -> b.low.(k) <- v; b.low_fact.(k) <- fact) in
      Split (below, a, b) in
    match List.find_opt (fun k -> Q.gt box.low.(k) box.high.(k)) (List.init n Fun.id) with
    | Some k -> (* (x - low) + (high - x) < 0 *)
      let scale = Q.inv (Q.sub box.low.(k) box.high.(k)) in
      Hollow (path, Region.combine space.book (Poly.constant Q.minus_one) [ scale, Lazy.force box.low_fact.(k); scale, Lazy.force box.high_fact.(k) ])
    | None ->
    let corners chance = List.map (fun (chain, changes, counts) ->
      Expansion.at_corner chain changes (if counts > 0 then upward else not upward) chance, sg *. float_of_int counts) parts in
    let chance_at x e = let l, c, _, _ = Hashtbl.find linear e in Simplex.dot l x +. c in
    let gradient x = (* of what is claimed, the signs so that it is to be least *)
      let total = Array.make n 0.0 in
      List.iter (fun (corner, c) ->
        let slopes = Expansion.slopes corner coordinates and from = at_initial corner * n in
        Array.iteri (fun k t -> total.(k) <- t +. c *. slopes.(from + k)) total)
        (corners (chance_at x));
      total in
    let place z = Array.mapi (fun k v -> low.(k) +. v *. scale.(k)) z in
    let rec corner g left = match upward_in (Array.map (fun v -> -. v) g) with
      | Simplex.Nothing _ as none -> none, [||]
      | Simplex.Vertex (z, basis) as found ->
        let next = gradient (place z) in
        if left = 0 then found, next
        else match upward_in (Array.map (fun v -> -. v) next) with
          | Simplex.Vertex (_, other) when List.sort compare (Array.to_list other) = List.sort compare (Array.to_list basis) -> found, next
          | _ -> corner next (left - 1) in
    let even long = Array.mapi (fun k v -> v /. width.(k)) long in
    (* How coordinates move with a free one. *)
    let moved x k =
      let d = Array.make n 0.0 in
      d.(k) <- 1.0;
      Array.iteri (fun i (a, b) -> d.(free + i) <- d.(a) *. x.(b) +. x.(a) *. d.(b)) space.products;
      d in
    (* What a cell loses by taking products as coordinates, and by curves; where neither: as the claim changes. *)
    let loss g x curve long =
      let moves = Array.init free (moved x) in
      let total = Array.init free (fun k -> 1e-9 *. long.(k) *. (Float.abs (Simplex.dot g moves.(k)) +. 1e-6 /. width.(k))) in
      Array.iteri (fun k d ->
        let add v = total.(k) <- total.(k) +. long.(k) *. Float.abs v in
        Array.iteri (fun i (a, b) ->
          let wide c = scale.(c) in
          add (g.(free + i) *. 0.25 *. (Float.abs d.(a) *. wide b +. Float.abs d.(b) *. wide a))) space.products;
        Array.iteri (fun l other -> add (long.(l) *. curve d other)) moves) moves;
      total in
    match (try Some (corner (Array.make n 0.0) 5) with Simplex.Singular | Expansion.Fails -> None) with
    | None -> halves even
    | Some (Simplex.Nothing (row, basis), _) ->
      let r = region.rows.(row) in
      let total, parts = Region.most region (Array.map Q.neg r.linear) basis in
      let left = Q.add r.bound total in (* what the rows say is not negative *)
      if Q.sign left >= 0 then halves even
      else
        let parts = List.map (fun (c, f) -> c, Lazy.force f) ((Q.one, r.fact) :: parts) in
        let scale = Q.inv (Q.neg left) in
        Hollow (path, Region.combine space.book (Poly.constant Q.minus_one) (List.map (fun (c, f) -> Q.mul c scale, f) parts))
    | Some (Simplex.Vertex (z, basis), g) ->
      if fails_at (fun x -> corners (chance_at x)) lp low scale (place z) then unproved "what is claimed of coupled values does not hold in the region";
      let bits = (* as many as what is claimed leaves room for *)
        let all = corners (chance_at (place z)) in
        let most = List.fold_left (fun t (corner, _) -> Array.fold_left (fun t v -> Float.max t (Float.abs v)) t corner.Expansion.values) 1e-300 all in
        let slack = List.fold_left (fun t (corner, c) -> t +. c *. corner.Expansion.values.(at_initial corner)) (-. sg *. bound) all in
        Int.max 30 (Int.min 56 (26 - int_of_float (Float.log2 (Float.max 1e-12 (slack /. most))))), snd (Float.frexp most) in
      match leaf region lp scale corners z basis place path bits with
      | Ok found -> found
      | Error (curve, focus) -> halves ?near:(Option.map (fun focus -> place z, place focus) focus) (loss g (place z) curve)
      | exception (Simplex.Singular | Expansion.Fails) -> halves (loss g (place z) (fun _ _ -> 0.0))
  (* Whether parameters of the region, those of a corner, contradict the claim by more than what doubles lose. *)
  and fails_at corners lp low scale x =
    let point = Array.copy x in
    Array.iteri (fun i (a, b) -> point.(free + i) <- point.(a) *. point.(b)) space.products;
    let z = Array.mapi (fun k v -> (v -. low.(k)) /. scale.(k)) point in
    let inside = ref true in
    Array.iteri (fun i a -> if Simplex.dot a z > lp.Simplex.b.(i) +. 1e-9 then inside := false) lp.a;
    !inside && match corners point with
      | exception Expansion.Fails -> false
      | all ->
        let value t (corner, c) = t +. c *. corner.Expansion.values.(at_initial corner) in
        List.fold_left value (-. sg *. bound) all < -1e-6 *. (1.0 +. Float.abs bound)
  (* In the frame of the corner; where curves spoil that, by products of the cell's rows, there or in the frame of the cell's box. *)
  and leaf region lp scale corners z basis place path bits =
    let furthest g = match Simplex.maximise lp g with Simplex.Vertex (z, basis) -> z, basis | Nothing _ -> raise Simplex.Singular in
    let points = ref [ z ] and worst = ref None in
    let of_corner = lazy ( (* columns: how a point moves when one row of the corner becomes slack, up to the end of the cell *)
      let inv = Simplex.inverse (Array.map (fun i -> lp.Simplex.a.(i)) basis) in
      let reach j =
        let other, _ = furthest (Array.map (fun c -> -. c) lp.a.(basis.(j))) in
        points := other :: !points;
        lp.b.(basis.(j)) -. Simplex.dot lp.a.(basis.(j)) other in
      let axis j = let h = Float.max 1e-9 (reach j) in Array.init n (fun k -> -. inv.(k).(j) *. h *. scale.(k)) in
      framed region lp scale corners worst path bits (Array.init n axis) (place z) (Array.make n basis)) in
    let of_box () =
      let x = place z in
      let sides = Array.init n (fun k ->
        let end_of sign =
          let far, basis = furthest (Array.init n (fun j -> if j = k then sign else 0.0)) in
          points := far :: !points;
          (place far).(k), basis in
        let (low, _ as below), (high, _ as above) = end_of (-1.0), end_of 1.0 in
        let wide = Float.max (1e-9 *. scale.(k)) (high -. low) in
        if x.(k) -. low <= high -. x.(k) then below, wide else above, -. wide) in
      let axes = Array.mapi (fun k (_, wide) -> Array.init n (fun j -> if j = k then wide else 0.0)) sides in
      framed region lp scale corners worst path bits axes (Array.map (fun ((v, _), _) -> v) sides) (Array.map (fun ((_, b), _) -> b) sides) in
    let products = Some (basis, points) in
    (* another frame is no better where it is not shown near the corner *)
    let close = function Some point -> Array.for_all2 (fun a b -> Float.abs (a -. b) < 0.5) point z | None -> false in
    let rec first = function
      | [] -> raise Simplex.Singular
      | [ last ] -> Result.map_error (fun (_, curve) -> curve, !worst) (last ())
      | one :: others -> match one () with
        | Ok _ as found -> found
        | Error (value, curve) when value < 0.0 || close !worst -> Error (curve, !worst)
        | Error _ | exception (Simplex.Singular | Expansion.Fails) -> first others in
    first [ (fun () -> Lazy.force of_corner None); (fun () -> Lazy.force of_corner products); fun () -> of_box () products ]
  (* Variables from a point [x0] of a frame on; [lows]: where each is least; the point's value, where the form is not what is claimed. *)
  and framed region lp scale corners worst path bits axes x0 lows =
    let origin = x0 in
    let size axis = Array.fold_left (fun t v -> Float.max t (Float.abs v)) 0.0 axis in
    let fine = Int.max (fst bits) (20 - snd (Float.frexp (Array.fold_left (fun t axis -> Float.min t (size axis)) 1.0 axes))) in
    let near bits v = Float.ldexp (Float.round (Float.ldexp v bits)) (- bits) in
    let axes = Array.map (Array.map (fun v -> near (fine - 2) (1.001 *. v))) axes in (* heights are at most 1 *)
    let exact = Array.map (Array.map Q.of_float) axes in (* [j].(k): coordinate k of axis j *)
    let back = rational_inverse exact in (* y = back (x - x0) *)
    let times u x = let t = ref Q.zero in Array.iteri (fun k c -> t := Q.add !t (Q.mul c x.(k))) u; !t in
    let rounded_up bits q = Q.make (Z.cdiv (Z.shift_left (Q.num q) bits) (Q.den q)) (Z.shift_left Z.one bits) in
    let short = rounded_up 60 in
    let x0 = Array.map (fun v -> Q.of_float (near fine v)) x0 in
    let leasts = Array.mapi (fun j u -> Region.most ~cut:Region.shorter region (Array.map Q.neg u) lows.(j)) back in
    let x0 = (* back in whole steps until no variable is negative *)
      let step = Q.of_float (Float.ldexp 1.0 (- fine)) in
      let over = Array.mapi (fun j u -> Q.add (fst leasts.(j)) (times u x0)) back in
      let off = Array.mapi (fun j u -> Q.max Q.zero (short (Array.fold_left (fun t c -> Q.add t (Q.mul step (Q.abs c))) over.(j) u))) back in
      if Array.for_all (fun o -> Q.sign o <= 0) over then x0
      else Array.mapi (fun k v ->
        let t = ref v in
        Array.iteri (fun j o -> t := Q.sub !t (Q.mul o exact.(j).(k))) off;
        rounded_up fine !t) x0 in
    let sides = Array.init n (fun j ->
      let u = back.(j) in
      let c = Q.neg (times u x0) in
      let total, parts = leasts.(j) in
      if Q.sign (Q.sub c total) < 0 then raise Simplex.Singular;
      let fact parts p = Region.combine region.of_space.book p (List.map (fun (c, f) -> c, Lazy.force f) parts) in
      let y = Region.form space u c in
      let low = fact parts y in
      let g = Array.mapi (fun k q -> Q.to_float q *. scale.(k)) u in
      let basis' = match Simplex.maximise lp g with Vertex (_, b) -> b | Nothing _ -> raise Simplex.Singular in
      let total, parts = Region.most ~cut:Region.shorter region u basis' in
      let height = short (Q.add total c) in
      if Q.sign height < 0 then raise Simplex.Singular;
      y, height, low, fact parts (Poly.minus (Poly.constant height) y)) in
    let budget = (* of all together *)
      let u = Array.init n (fun k -> Array.fold_left (fun t row -> Q.add t row.(k)) Q.zero back) in
      let c = Q.neg (times u x0) in
      let basis = match Simplex.maximise lp (Array.mapi (fun k q -> Q.to_float q *. scale.(k)) u) with Vertex (_, b) -> b | Nothing _ -> raise Simplex.Singular in
      let total, parts = Region.most ~cut:Region.shorter region u basis in
      let most = short (Q.add total c) in
      most, Region.combine space.book (Region.form space (Array.map Q.neg u) (Q.sub most c)) (List.map (fun (c, f) -> c, Lazy.force f) parts) in
    let forms = List.map (fun e -> let _, _, l, c = Hashtbl.find linear e in e, (Q.add c (times l x0), Array.map (times l) exact)) labels in
    let rounded = Hashtbl.create 100 in
    List.iter (fun (e, (c, _)) -> Hashtbl.replace rounded e (Q.to_float c)) forms;
    let fourth q = Z.cdiv (Z.shift_left (Q.num q) 2) (Q.den q) in (* what is claimed of variables that are 4 times as long *)
    let height = Array.map (fun (_, h, _, _) -> Z.to_float (fourth h) /. 4.0) sides in
    let most = Z.to_float (fourth (fst budget)) /. 4.0 in
    let power = Int.max 0 (fst bits - snd bits) in
    let unit_of = Z.shift_left Z.one power and step = Float.ldexp 1.0 (- power) in
    let goal = let b = Q.mul (Q.of_bigint unit_of) (Q.of_float bound) in (if upward then Z.fdiv else Z.cdiv) (Q.num b) (Q.den b) in
    let drafts = List.map (fun (corner, c) -> Expansion.draft corner axes, c) (corners (Hashtbl.find rounded)) in
    let start_of (draft : Expansion.draft) = at_initial draft.corner in
    let rough = List.map (fun ((d : Expansion.draft), _) -> { Expansion.value = d.corner.values; slope = d.slope; curve = d.curve; slow = [||]; rate = 0.0 }) drafts in
    (* what is said at the initial state: how much more than is claimed *)
    let said models =
      let sum start at = List.fold_left2 (fun t (draft, c) model -> Q.add t (Q.mul (Q.of_float c) (Q.of_float (at model (start_of draft))))) start drafts models in
      sum (Q.mul (Q.of_float (-. sg)) (Q.make goal unit_of)) (fun (m : Expansion.model) i -> m.value.(i)),
      Array.init n (fun j -> sum Q.zero (fun (m : Expansion.model) i -> m.slope.(i * n + j))),
      Array.init n (fun j -> Array.init n (fun k -> sum Q.zero (fun (m : Expansion.model) i -> m.curve.((i * n + j) * n + k)))) in
    let total, _, curve = said rough in
    let total = Q.to_float total and curve = Array.map (Array.map Q.to_float) curve in
    let enough (number, first, second) =
      Expansion.least height most (Q.to_float number) (Array.map Q.to_float first) (Array.map (Array.map Q.to_float) second) >= 0.0 in
    let found = ref None in (* models that are not enough by themselves *)
    let models enough = match !found with
      | Some models -> models
      | None ->
        let rec each done_ drafts rough = match drafts, rough with
          | (draft, _) :: drafts, _ :: rough ->
            let hopeless model = not (enough (said (List.rev_append done_ (model :: rough)))) in
            each (Expansion.model draft height most step hopeless :: done_) drafts rough
          | _ -> List.rev done_ in
        let models = each [] drafts rough in
        found := Some models; models in
    fun products ->
    let tried = try match products with
      | None when enough (said rough) -> let models = models enough in if enough (said models) then Some (None, models) else None
      | None -> None
      | Some (basis, points) ->
        let near = Array.mapi (fun k v -> (v -. Q.to_float region.box.low.(k)) /. scale.(k)) origin in
        let products = Products.make region lp scale basis !points near x0 exact sides in
        let shown forms = Products.holds products forms in
        if shown (said rough) = None then None
        else
          let before = !worst in
          let models = try models (fun forms -> shown forms <> None) with Expansion.Fails as fails -> if before = None then worst := products.worst; raise fails in
          let fact = shown (said models) in
          if before = None && fact = None then worst := products.worst;
          Option.map (fun fact -> Some (fact ()), models) fact
      with Expansion.Fails | Simplex.Singular -> None in
    match tried with
    | None ->
      let near = Array.map (Array.map Q.to_float) back in
      Error (total, fun d other ->
        let along d = Array.map (fun row -> Simplex.dot row d) near in
        let a = along d and b = along other in
        let t = ref 0.0 in
        Array.iteri (fun j line -> Array.iteri (fun k c -> t := !t +. a.(j) *. c *. b.(k)) line) curve;
        !t)
    | Some (said, models) ->
      let quarter = Q.of_ints 1 4 and four = Q.of_int 4 in
      let forms = List.map (fun (e, (c, l)) -> e, (c, List.map (Q.mul quarter) (Array.to_list l))) forms in
      let grain = List.fold_left (fun t (_, (c, l)) -> List.fold_left (fun t q -> Z.lcm t (Q.den q)) t (c :: l)) Z.one forms in
      let part q = Z.divexact (Z.mul grain (Q.num q)) (Q.den q) in
      let longer fact p = Region.combine space.book p [ four, fact ] in
      let top h y = Poly.minus (Poly.constant (Q.of_bigint h)) y in
      let sides = Array.map (fun (y, h, low, high) ->
        let y = Poly.scale four y and h = fourth h in
        y, h, longer low y, longer high (top h y)) sides in
      let budget = fourth (fst budget), longer (snd budget) (Array.fold_left (fun p (y, _, _, _) -> Poly.minus p y) (Poly.constant (Q.of_bigint (fourth (fst budget)))) sides) in
      let models = List.map2 (fun (draft, _) model -> draft.Expansion.corner.chain, draft.corner.upward, model) drafts models in
      let said = Option.map (fun fact -> Region.combine space.book (Poly.scale (Q.of_bigint unit_of) space.book.says.(fact)) [ Q.of_bigint unit_of, fact ]) said in
      Ok (Leaf { path; sides; budget; forms = List.map (fun (e, (c, l)) -> e, (part c, List.map part l)) forms; grain; unit_of; goal; models; said })
  and rational_inverse m = (* of the matrix whose columns are these *)
    let work = Array.init n (fun i -> Array.init n (fun j -> m.(j).(i))) in
    let inv = Array.init n (fun i -> Array.init n (fun j -> if i = j then Q.one else Q.zero)) in
    for k = 0 to n - 1 do
      let p = ref k in
      for i = k + 1 to n - 1 do if Q.gt (Q.abs work.(i).(k)) (Q.abs work.(!p).(k)) then p := i done;
      if Q.sign work.(!p).(k) = 0 then raise Simplex.Singular;
      let swap t = let row = t.(k) in t.(k) <- t.(!p); t.(!p) <- row in
      swap work; swap inv;
      let pivot = Q.inv work.(k).(k) in
      let scale t = t.(k) <- Array.map (Q.mul pivot) t.(k) in
      scale work; scale inv;
      for i = 0 to n - 1 do
        if i <> k && Q.sign work.(i).(k) <> 0 then begin
          let factor = work.(i).(k) in
          let less t = t.(i) <- Array.mapi (fun j v -> Q.sub v (Q.mul factor t.(k).(j))) t.(i) in
          less work; less inv
        end
      done
    done;
    inv in
  go start []
