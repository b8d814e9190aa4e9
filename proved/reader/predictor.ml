(* NOT BELIEVED, but that [pilots] is a function of the plan, and that what [of_space] gives is a function of what was met before a
   batch. What predicts batches of data: pilots, smoothed maximum likelihood within the domain by damped Newton steps, and
   logarithms from below as hints. *)

(* ---------- Pilots: batches that are not predicted, with their weights ---------- *)

let planned_ends episodes =
  let rec more last = if last >= episodes then [] else
    let next = min episodes (max (last + 1) (last * 5 / 4)) in next :: more next in
  more 0
(* How many of the batches, which end there, are within the first tenth. *)
let within ends = match List.rev ends with
  | [] -> 0
  | last :: _ -> List.length (List.filter (fun e -> float_of_int e <= 0.1 *. float_of_int last) ends)
let cumulated sizes = List.rev (snd (List.fold_left (fun (total, all) n -> total + n, (total + n) :: all) (0, []) sizes))

let step = 10 and most_pilots = 5000
let several = lazy (List.init most_pilots (fun j -> step * j, Q.of_ints 1 ((j + 1) * (j + 2))))
let pilots : Says.plan -> (int * Q.t) list = function
  | Sizes sizes -> [ within (cumulated sizes), Q.one ]
  | Episodes (until, planned, _, batches) when List.length (planned_ends until) = batches ->
    [ min batches (within (planned_ends planned)), Q.one ]
  | _ -> Lazy.force several
(* The one that covers a tenth of what was seen, where nobody says otherwise. *)
let usual sizes = within (cumulated sizes) / step

(* ---------- Plug-ins ---------- *)

type search = { products : (int * int) array; linear : float array array; constant : float array; faces : float array array;
                bounds : float array }

let dot a b = let t = ref 0.0 in Array.iteri (fun i x -> if x <> 0.0 then t := !t +. x *. b.(i)) a; !t
let exists2 f a b = let found = ref false in Array.iteri (fun i x -> if f x b.(i) then found := true) a; !found

let lifted s t =
  let n = Array.length t and m = Array.length s.products in
  let values = Array.append t (Array.make m 0.0) in
  Array.iteri (fun i (a, b) -> values.(n + i) <- values.(a) *. values.(b)) s.products;
  values
let slopes s t values =
  let n = Array.length t in
  let rows = Array.init (Array.length values) (fun i -> if i < n then Array.init n (fun j -> if i = j then 1.0 else 0.0) else [||]) in
  Array.iteri (fun i (a, b) ->
    rows.(n + i) <- Array.init n (fun j -> rows.(a).(j) *. values.(b) +. rows.(b).(j) *. values.(a))) s.products;
  rows

(* Least squares of a symmetric system, by elimination; directions without a pivot stay 0. *)
let solve a b =
  let n = Array.length b in
  let rows = Array.init n (fun i -> Array.append a.(i) [| b.(i) |]) and used = Array.make n (-1) and left = ref (List.init n Fun.id) in
  let scale = Array.map (fun r -> Array.fold_left (fun m x -> Float.max m (Float.abs x)) 0.0 r) a in
  for j = 0 to n - 1 do
    match List.sort (fun p q -> compare (Float.abs rows.(q).(j)) (Float.abs rows.(p).(j))) !left with
    | p :: _ when Float.abs rows.(p).(j) > 1e-14 *. scale.(j) ->
      left := List.filter (fun q -> q <> p) !left; used.(j) <- p;
      for q = 0 to n - 1 do
        if q <> p && rows.(q).(j) <> 0.0 then begin
          let f = rows.(q).(j) /. rows.(p).(j) in
          for k = j to n do rows.(q).(k) <- rows.(q).(k) -. f *. rows.(p).(k) done
        end
      done
    | _ -> ()
  done;
  Array.init n (fun j -> if used.(j) < 0 then 0.0 else rows.(used.(j)).(n) /. rows.(used.(j)).(j))

let smoothing = 0.5 and close = 1e-8

let maximise s start weight =
  let used = List.filter (fun e -> weight.(e) > 0.0) (List.init (Array.length weight) Fun.id) in
  let pick a = Array.of_list (List.map (fun e -> a.(e)) used) in
  let linear = pick s.linear and constant = pick s.constant and count = pick weight in
  let room t = Array.mapi (fun i face -> s.bounds.(i) -. dot face t) s.faces in
  let chances values = Array.mapi (fun i row -> dot row values +. constant.(i)) linear in
  let objective t =
    let room = room t and chance = chances (lifted s t) in
    if exists2 (fun r b -> r <= 1e-13 *. (1.0 +. Float.abs b)) room s.bounds || Array.exists (fun p -> p <= 0.0) chance then neg_infinity
    else dot count (Array.map log chance) +. smoothing *. Array.fold_left (fun t r -> t +. log r) 0.0 room in
  let n = Array.length start in
  let rec go steps t value =
    if steps = 0 then t
    else begin
      let x = lifted s t in
      let jacobian = slopes s t x in
      let slope = Array.map (fun row ->
        let total = Array.make n 0.0 in
        Array.iteri (fun i c -> if c <> 0.0 then for j = 0 to n - 1 do total.(j) <- total.(j) +. c *. jacobian.(i).(j) done) row;
        total) linear in
      let chance = chances x and room = room t in
      let gradient = Array.make n 0.0 and bend = Array.make_matrix n n 0.0 in
      let add first second v =
        Array.iteri (fun j a -> if a <> 0.0 then begin
          gradient.(j) <- gradient.(j) +. first *. a;
          Array.iteri (fun k b -> if b <> 0.0 then bend.(j).(k) <- bend.(j).(k) +. second *. a *. b) v
        end) v in
      Array.iteri (fun i v -> add (count.(i) /. chance.(i)) (count.(i) /. (chance.(i) *. chance.(i))) v) slope;
      Array.iteri (fun i v -> add (-. smoothing /. room.(i)) (smoothing /. (room.(i) *. room.(i))) v) s.faces;
      let step = solve bend gradient in
      let decrement = dot gradient step in
      let rec along length =
        if length <= 1e-12 then None
        else begin
          let trial = Array.mapi (fun j a -> a +. length *. step.(j)) t in
          let reached = objective trial in
          if reached >= value +. 0.1 *. length *. decrement || (decrement <= close && reached > neg_infinity) then Some (trial, reached)
          else along (length *. 0.5)
        end in
      match along 1.0 with
      | None -> t
      | Some (trial, reached) -> if decrement > close then go (steps - 1) trial reached else trial
    end in
  let value = objective start in
  if Float.is_finite value then go 60 start value else start

let interior s middle =
  let scale = Array.map (fun face -> Array.fold_left (fun m a -> Float.max m (Float.abs a)) 1e-300 face) s.faces in
  let slack = ref (-1.0) in
  Array.iteri (fun i face -> slack := Float.max !slack ((dot face middle -. s.bounds.(i)) /. scale.(i))) s.faces;
  if !slack < 0.0 then middle
  else begin
    let n = Array.length middle in
    let helper = { products = [||]; linear = [| Array.append (Array.make n 0.0) [| -1.0 |] |]; constant = [| 2.0 *. !slack +. 3.0 |];
      faces = Array.mapi (fun i face -> Array.append face [| -. scale.(i) |]) s.faces; bounds = s.bounds } in
    Array.sub (maximise helper (Array.append middle [| 1.01 *. !slack +. 1.0 |]) [| 1e6 *. float_of_int (Array.length scale) |]) 0 n
  end

(* The faces of the domain, in free parameters, and their bounds. *)
let faces (space : Region.space) =
  let free = List.length space.free and constraints = List.length space.domain.constraints in
  let rows = List.concat (List.init (space.parameters + constraints) (fun i ->
    let both = i < space.parameters || (let _, _, equal = List.nth space.domain.constraints (i - space.parameters) in equal) in
    Region.domain_row space i 0 :: (if both then [ Region.domain_row space i 1 ] else []))) in
  let rows = List.filter_map (fun (r : Region.row) ->
    let own = Array.sub r.linear 0 free in
    if Array.exists (fun a -> Q.sign a <> 0) own then Some (Array.map Q.to_float own, Q.to_float r.bound) else None) rows in
  Array.of_list (List.map fst rows), Array.of_list (List.map snd rows)

(* What predicts batch b, from what was met in batches before it. *)
let of_space (space : Region.space) polynomials used prior =
  let free = List.length space.free in
  let form e = let linear, constant, _ = Region.affine space polynomials.(e) in Array.map Q.to_float linear, Q.to_float constant in
  (* a prior counts a parameter p and 1 − p as seen so often *)
  let seeds = List.concat_map (fun (i, happened, did_not) ->
    if i >= float_of_int space.parameters then Refusal.unproved "a prior of a parameter that there is not";
    let linear, constant, _ = Region.affine space (Poly.parameter (int_of_float i)) in
    let linear = Array.map Q.to_float linear and constant = Q.to_float constant in
    [ (linear, constant), happened; (Array.map Float.neg linear, 1.0 -. constant), did_not ]) prior in
  let unknown = List.filter (fun e -> not (Poly.is_number polynomials.(e))) used in
  let forms = List.map form unknown @ List.map fst seeds in
  let strength = Array.of_list (List.map snd seeds) in
  let pick f = Array.of_list (List.map f forms) in
  let s = { products = space.products; linear = pick fst; constant = pick snd;
    faces = fst (faces space); bounds = snd (faces space) } in
  let unknown = Array.of_list unknown in
  let ends = Region.start_box space in
  let middle = Array.init free (fun k -> Q.to_float (Q.add ends.low.(k) ends.high.(k)) /. 2.0) in
  let centre = lazy (maximise s (interior s middle) (Array.make (Array.length unknown + Array.length strength) 0.0)) in
  let known = Hashtbl.create 50 in
  fun batch met ->
    let weight = Array.map (fun e ->
      let total = ref 0 in
      for b = 0 to batch - 1 do total := !total + met b e done; float_of_int !total) unknown in
    match Hashtbl.find_opt known weight with
    | Some found -> found
    | None ->
      let t = maximise s (Lazy.force centre) (Array.append weight strength) in
      let place = Hashtbl.create 10 in
      List.iteri (fun k i -> Hashtbl.replace place i (Q.of_float t.(k))) space.free;
      let value i = match Hashtbl.find_opt space.solved i with
        | None -> Hashtbl.find place i
        | Some (meaning, _) -> Poly.M.fold (fun m c total -> Q.add total (match m with
            | [ j, 1 ] -> Q.mul c (Hashtbl.find place j) | _ -> c)) meaning Q.zero in
      let found = List.init space.parameters value in
      Hashtbl.replace known weight found; found

let of_model domain (expression : int Arrays.vector) polynomials prior =
  let polynomials = Array.map (fun p -> Poly.of_terms (List.map (fun (c, m) -> m, c) p)) polynomials in
  let used = List.sort_uniq compare (List.init expression.size expression.get) in
  of_space (Region.space (Region.with_fixed domain) (List.map (fun e -> polynomials.(e)) used)) polynomials used prior

(* Free parameters of a domain; what the likelihood, or a slab with it, has of delta beside intervals of so many events in files from before. *)
let free domain = let domain = Region.with_fixed domain in List.length domain.Problem.lower - Hashtbl.length (Region.solve domain)
let share free events bets =
  if events >= 4 * free || (bets && free <= 7) then Q.of_ints 9 10
  else if events < 2 * free && not bets then Q.of_ints 1 10 else Q.of_ints 1 2

(* ---------- Logarithms: a whole number of 2^-112 that is not above ---------- *)

let point = 160
let atanh top bottom =
  let z = Z.div (Z.shift_left top point) bottom in
  let square = Z.shift_right (Z.mul z z) point in
  let rec more power k total = if Z.sign power = 0 then total else
    let power = Z.shift_right (Z.mul power square) point in more power (k + 2) (Z.add total (Z.div power (Z.of_int (k + 2)))) in
  more z 1 z
let grid = Array.init 2049 (fun i -> lazy (
  let v = Z.shift_left (atanh (Z.of_int (abs (i - 1024))) (Z.of_int (i + 1024))) 1 in if i >= 1024 then v else Z.neg v))
let log_below q =
  if Q.sign q <= 0 then Z.zero
  else begin
    let top = Q.num q and bottom = Q.den q in
    let s = Z.numbits bottom - Z.numbits top in
    let x = Z.div (Z.shift_left top (s + point + max 0 (-(s + point)))) (Z.shift_left bottom (max 0 (-(s + point)))) in
    let i = Z.to_int (Z.shift_right x (point - 10)) in
    let c = Z.shift_left (Z.of_int i) (point - 10) in
    let value = Z.sub (Z.add (Z.shift_left (atanh (Z.sub x c) (Z.add x c)) 1) (Lazy.force grid.(i)))
      (Z.mul (Z.of_int s) (Lazy.force grid.(2048))) in
    let size = Float.abs (log (Q.to_float q)) in
    let slack = Z.shift_left (Z.of_float (Float.ceil (4.0 +. 2.0 *. Float.min 1e6 size *. Float.min 1e6 size))) 32 in
    Z.sub (Z.shift_right value (point - 112)) slack
  end
