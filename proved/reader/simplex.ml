(* NOT BELIEVED. Where a linear function is largest over rows a·z ≤ b in doubles, by the dual simplex method from the corner of the box
   that the function points at: rows 2k and 2k + 1 are the faces of variable k. *)

type rows = { a : float array array; b : float array; size : int }
type answer = Vertex of float array * int array | Nothing of int * int array

let dot (a : float array) (x : float array) = let t = ref 0.0 in for k = 0 to Array.length a - 1 do t := !t +. a.(k) *. x.(k) done; !t

exception Singular

let inverse m =
  let n = Array.length m in
  let work = Array.map Array.copy m and inv = Array.init n (fun i -> Array.init n (fun j -> if i = j then 1.0 else 0.0)) in
  for k = 0 to n - 1 do
    let best = ref k in
    for i = k + 1 to n - 1 do if Float.abs work.(i).(k) > Float.abs work.(!best).(k) then best := i done;
    if Float.abs work.(!best).(k) < 1e-13 then raise Singular;
    let swap t = let row = t.(k) in t.(k) <- t.(!best); t.(!best) <- row in
    swap work; swap inv;
    let pivot = 1.0 /. work.(k).(k) in
    let scale (t : float array array) = let row = t.(k) in for j = 0 to n - 1 do row.(j) <- row.(j) *. pivot done in
    scale work; scale inv;
    for i = 0 to n - 1 do
      if i <> k && work.(i).(k) <> 0.0 then begin
        let factor = work.(i).(k) in
        let less (t : float array array) = let row = t.(i) and other = t.(k) in for j = 0 to n - 1 do row.(j) <- row.(j) -. factor *. other.(j) done in
        less work; less inv
      end
    done
  done;
  inv

let times_matrix (g : float array) (m : float array array) =
  Array.init (Array.length g) (fun j -> let t = ref 0.0 in for i = 0 to Array.length g - 1 do t := !t +. g.(i) *. m.(i).(j) done; !t)

let maximise ?from rows g =
  let n = rows.size in
  let basis = match from with
    | Some basis -> Array.copy basis
    | None -> Array.init n (fun k -> if g.(k) >= 0.0 then 2 * k else 2 * k + 1) in
  let rec go left =
    if left = 0 then raise Singular;
    let inv = inverse (Array.map (fun i -> rows.a.(i)) basis) in
    let b = Array.map (fun i -> rows.b.(i)) basis in
    let x = Array.map (fun row -> dot row b) inv in
    let worst = ref (-1) and most = ref 1e-12 in
    for i = 0 to Array.length rows.a - 1 do
      let v = dot rows.a.(i) x -. rows.b.(i) in
      if v > !most && not (Array.exists (fun (j : int) -> j = i) basis) then (most := v; worst := i)
    done;
    if !worst < 0 then Vertex (x, Array.copy basis)
    else begin
      let w = times_matrix rows.a.(!worst) inv and y = times_matrix g inv in
      let leaves = ref (-1) and least = ref infinity in
      Array.iteri (fun j v -> if v > 1e-9 then begin
        let ratio = Float.max 0.0 y.(j) /. v in
        if ratio < !least then (least := ratio; leaves := j) end) w;
      if !leaves < 0 then Nothing (!worst, Array.copy basis)
      else (basis.(!leaves) <- !worst; go (left - 1))
    end in
  go 2000
