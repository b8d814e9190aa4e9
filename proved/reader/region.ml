(* NOT BELIEVED. From the intervals, boxes and bases of a file to facts: polynomials that are not negative at the true
   parameters, each with the reason that the proved checker takes. Facts are made when they are needed. *)

open Refusal

type given = Above of int | Below of int | Row of int | Minus_row of int | Event_low of int | Event_high of int
           | Chance of int | Chance_up of int | Tangent of int | Wagered of int | Cell of int | Quotient of int | Minus_quotient of int
type rule = Given of given | Product of int * int | Square of Poly.t | Combine of (Q.t * int) list * (Poly.t * int) list

type book = { mutable count : int; mutable says : Poly.t array; mutable why : rule array; known : (given, int) Hashtbl.t;
              products : (int * int, int) Hashtbl.t }

let book () = { count = 0; says = Array.make 64 Poly.zero; why = Array.make 64 (Combine ([], []));
                known = Hashtbl.create 64; products = Hashtbl.create 64 }

let note book says why =
  if book.count = Array.length book.says then begin
    let larger a = Array.append a (Array.make (Array.length a) a.(0)) in
    book.says <- larger book.says; book.why <- larger book.why
  end;
  book.says.(book.count) <- says; book.why.(book.count) <- why;
  book.count <- book.count + 1; book.count - 1

let given book rule says = match Hashtbl.find_opt book.known rule with
  | Some i -> i
  | None -> let i = note book says (Given rule) in Hashtbl.add book.known rule i; i

let product book i j =
  let key = min i j, max i j in
  match Hashtbl.find_opt book.products key with
  | Some k -> k
  | None ->
    let k = note book (Poly.times book.says.(i) book.says.(j)) (Product (i, j)) in
    Hashtbl.add book.products key k; k

(* p ≥ 0 from multiples of facts. *)
let combine book ?(equal = []) p parts = note book p (Combine (List.filter (fun (c, _) -> Q.sign c > 0) parts, equal))

(* A row a·x ≤ b of coordinates with its fact b − a·x. *)
type row = { linear : Q.t array; bound : Q.t; fact : int Lazy.t }

(* Bounds of coordinates with their facts. *)
type box = { low : Q.t array; high : Q.t array; low_fact : int Lazy.t array; high_fact : int Lazy.t array }

(* ---------- Coordinates: free parameters and products of them ---------- *)

type space = { book : book; domain : Problem.domain; parameters : int; free : int list;
               solved : (int, Poly.t * (Q.t * int) list) Hashtbl.t; (* its meaning; θ − meaning is a sum of equalities *)
               monomials : (int * int) list array; number : ((int * int) list, int) Hashtbl.t; products : (int * int) array }

(* The equalities, one after the other, each solved for the last parameter that is left in it; one stays free. *)
let solve (domain : Problem.domain) =
  let size = List.length domain.lower in
  let add_sum c a b = List.fold_left (fun total (x, k) ->
    let same, others = List.partition (fun (_, j) -> j = k) total in
    let sum = List.fold_left (fun t (y, _) -> Q.add t y) (Q.mul c x) same in
    if Q.sign sum = 0 then others else (sum, k) :: others) a b in
  let equalities = List.concat (List.mapi (fun k (row, bound, equal) ->
    if equal then [ Array.of_list (row @ [ bound ]), [ Q.one, k ] ] else []) domain.constraints) in
  let eliminate (row, how) (other, other_how) pivot =
    let factor = row.(pivot) in
    if Q.sign factor = 0 then row, how
    else Array.mapi (fun j a -> Q.sub a (Q.mul factor other.(j))) row, add_sum (Q.neg factor) how other_how in
  let solved = List.fold_left (fun solved equality ->
    let row, how = List.fold_left (fun row (pivot, other) -> eliminate row other pivot) equality solved in
    let last = ref (-1) in
    for j = 0 to size - 1 do if Q.sign row.(j) <> 0 then last := j done;
    if !last < 0 || List.length solved >= size - 1 then solved
    else begin
      let scale = Q.inv row.(!last) in
      let own = Array.map (Q.mul scale) row, List.map (fun (c, k) -> Q.mul scale c, k) how in
      List.map (fun (pivot, other) -> pivot, eliminate other own !last) solved @ [ !last, own ]
    end) [] equalities in
  let result = Hashtbl.create 4 in
  List.iter (fun (pivot, (row, how)) ->
    let meaning = ref (Poly.constant row.(size)) in
    for j = 0 to size - 1 do
      if j <> pivot then meaning := Poly.plus ~times:(Q.neg row.(j)) !meaning (Poly.parameter j)
    done;
    Hashtbl.replace result pivot (!meaning, how)) solved;
  result

exception Found of (int * int) list * Q.t * int

(* A polynomial in free parameters, and the multiples of equalities that it differs by: p = result + Σ q·equality. *)
let reduce solved (p : Poly.t) =
  let cofactors = Hashtbl.create 2 in
  let rec go p =
    match Poly.M.iter (fun m c ->
      match List.find_opt (fun (i, _) -> Hashtbl.mem solved i) m with
      | Some (i, _) -> raise (Found (m, c, i)) | None -> ()) p with
    | () -> p
    | exception Found (m, c, i) ->
      let meaning, how = Hashtbl.find solved i in
      let rest = List.filter_map (fun (j, e) -> if j <> i then Some (j, e) else if e > 1 then Some (j, e - 1) else None) m in
      let rest = Poly.M.singleton rest c in
      List.iter (fun (y, k) ->
        let before = Option.value ~default:Poly.zero (Hashtbl.find_opt cofactors k) in
        Hashtbl.replace cofactors k (Poly.plus ~times:y before rest)) how;
      go (Poly.plus (Poly.M.remove m p) (Poly.times rest meaning)) in
  let reduced = go p in
  reduced, Hashtbl.fold (fun k q list -> (q, k) :: list) cofactors []

(* Without one factor of its last parameter, and that parameter. *)
let split monomial =
  match List.rev monomial with
  | (i, e) :: head -> List.rev (if e > 1 then (i, e - 1) :: head else head), [ i, 1 ]
  | [] -> assert false

let most_coordinates = 400

let space domain polynomials =
  let solved = solve domain in
  let parameters = List.length domain.lower in
  let free = List.filter (fun i -> not (Hashtbl.mem solved i)) (List.init parameters Fun.id) in
  let chain = Hashtbl.create 64 in
  let rec add m = if Poly.degree m >= 2 && not (Hashtbl.mem chain m) then (Hashtbl.add chain m (); add (fst (split m))) in
  List.iter (fun p -> Poly.M.iter (fun m _ ->
    if Poly.degree m > most_coordinates then not_covered "expressions of so high a degree";
    add m) (fst (reduce solved p))) polynomials;
  let lifted = List.sort (fun a b -> compare (Poly.degree a, a) (Poly.degree b, b)) (List.of_seq (Hashtbl.to_seq_keys chain)) in
  let monomials = Array.of_list (List.map (fun i -> [ i, 1 ]) free @ lifted) in
  if Array.length monomials > most_coordinates then not_covered "so many coordinates";
  let number = Hashtbl.create 64 in
  Array.iteri (fun k m -> Hashtbl.replace number m k) monomials;
  let place m = Hashtbl.find number m in
  { book = book (); domain; parameters; free; solved; monomials; number;
    products = Array.of_list (List.map (fun m -> let a, b = split m in place a, place b) lifted) }

let size space = Array.length space.monomials

let with_fixed (d : Problem.domain) = (* equalities that follow from the bounds are written out *)
  let size = List.length d.lower in
  let fixed = List.concat (List.mapi (fun i (low, high) ->
    if Q.equal low high then [ List.init size (fun j -> if i = j then Q.one else Q.zero), low, true ] else [])
    (List.combine d.lower d.upper)) in
  { d with constraints = d.constraints @ fixed }

(* (linear, constant) in coordinates, and the multiples of equalities that are left. *)
let affine space p =
  let reduced, equal = reduce space.solved p in
  let linear = Array.make (size space) Q.zero in
  Poly.M.iter (fun m c -> if m <> [] then match Hashtbl.find_opt space.number m with
    | Some k -> linear.(k) <- c
    | None -> unproved "a polynomial that is not affine in the coordinates") reduced;
  linear, Poly.constant_of reduced, equal

let form space linear constant =
  let p = ref (Poly.constant constant) in
  Array.iteri (fun k c -> p := Poly.put space.monomials.(k) c !p) linear;
  !p

(* The row which says that a fact p ≥ 0 holds, in coordinates. *)
let row_by space own p =
  let linear, constant, equal = affine space p in
  { linear = Array.map Q.neg linear; bound = constant;
    fact = lazy (
      let own = Lazy.force own in
      if equal = [] then own
      else combine space.book ~equal:(List.map (fun (q, k) -> Poly.scale Q.minus_one q, k) equal)
        (form space linear constant) [ Q.one, own ]) }
let row_of space rule p = row_by space (lazy (given space.book rule p)) p

let linear_form coefficients =
  List.fold_left (fun (p, i) c -> Poly.put [ i, 1 ] c p, i + 1) (Poly.zero, 0) coefficients |> fst

let parameter_rows space i =
  let own = Poly.parameter i in
  let low = List.nth space.domain.lower i and high = List.nth space.domain.upper i in
  row_of space (Below i) (Poly.minus (Poly.constant high) own), row_of space (Above i) (Poly.minus own (Poly.constant low))

(* Rows of the domain by 2·number + part. *)
let domain_row space index part =
  if index < space.parameters then begin
    let below, above = parameter_rows space index in if part = 0 then below else above
  end else begin
    let r = index - space.parameters in
    demand (r < List.length space.domain.constraints) "no such row of the domain";
    let coefficients, bound, equal = List.nth space.domain.constraints r in
    let p = Poly.minus (Poly.constant bound) (linear_form coefficients) in
    demand (part = 0 || equal) "the other side of an inequality";
    if part = 0 then row_of space (Row r) p else row_of space (Minus_row r) (Poly.scale Q.minus_one p)
  end

(* ---------- Boxes ---------- *)

let coordinate space k = form space (Array.init (size space) (fun j -> if j = k then Q.one else Q.zero)) Q.zero
let above space k low = Poly.minus (coordinate space k) (Poly.constant low)
let under space k high = Poly.minus (Poly.constant high) (coordinate space k)

let weaker space k lower fact bound = lazy (
  let wanted = if lower then above space k bound else under space k bound in
  let own = Lazy.force fact in
  if Poly.M.equal Q.equal space.book.says.(own) wanted then own else combine space.book wanted [ Q.one, own ])

(* x·y − least, or most − x·y: by the values in the corners, or for a square that is not negative as such. *)
let product_fact space box x y wanted corner =
  let a = box.low.(x) and b = box.high.(x) and c = box.low.(y) and d = box.high.(y) in
  let fact i = Lazy.force i in
  let lx = box.low_fact.(x) and hx = box.high_fact.(x) and ly = box.low_fact.(y) and hy = box.high_fact.(y) in
  let wx = Q.sub b a and wy = Q.sub d c in
  if Q.sign wx > 0 && Q.sign wy > 0 then begin
    let scale = Q.inv (Q.mul wx wy) in
    combine space.book wanted (List.filter_map (fun (u, v, i, j) ->
      let gap = corner (Q.mul u v) in
      if Q.sign gap <= 0 then None else Some (Q.mul scale gap, product space.book (fact i) (fact j)))
      [ a, c, hx, hy; b, c, lx, hy; a, d, hx, ly; b, d, lx, ly ])
  end else begin
    (* one of them is a number: z = (x−a)(y−c) + c·x + a·y − a·c, where the product is both ≥ 0 and ≤ 0 *)
    let z = Poly.times (coordinate space x) (coordinate space y) in
    let sign = Q.of_int (Q.sign (Poly.coefficient (fst (Poly.M.choose z)) wanted)) in
    (* wanted = sign·z + number *)
    let pair = if Q.sign sign > 0 then product space.book (fact lx) (fact ly) else product space.book (fact lx) (fact hy) in
    let left = Poly.minus wanted space.book.says.(pair) in
    let parts = ref [ Q.one, pair ] in
    List.iter (fun (k, low, high) ->
      let c = Poly.coefficient space.monomials.(k) left in
      if Q.sign c > 0 then parts := (c, fact low) :: !parts
      else if Q.sign c < 0 then parts := (Q.neg c, fact high) :: !parts)
      (if x = y then [ x, lx, hx ] else [ x, lx, hx; y, ly, hy ]);
    combine space.book wanted !parts
  end

(* A box of the first coordinates, or of all, met with what it says of the products. *)
let with_products space box =
  let given = Array.length box.low and n = size space and first = List.length space.free in
  let grow a filler = Array.append a (Array.make (n - given) filler) in
  let nothing = lazy (assert false) in
  let box = { low = grow box.low Q.zero; high = grow box.high Q.zero;
              low_fact = grow box.low_fact nothing; high_fact = grow box.high_fact nothing } in
  Array.iteri (fun i (x, y) ->
    let k = first + i in
    let corners = List.concat_map (fun u -> List.map (Q.mul u) [ box.low.(y); box.high.(y) ]) [ box.low.(x); box.high.(x) ] in
    let least = List.fold_left Q.min (List.hd corners) corners and most = List.fold_left Q.max (List.hd corners) corners in
    let squared = x = y && Q.sign box.low.(x) <= 0 && Q.sign box.high.(x) >= 0 in
    let least = if squared then Q.zero else least in
    let frozen = { low = Array.copy box.low; high = Array.copy box.high;
                   low_fact = Array.copy box.low_fact; high_fact = Array.copy box.high_fact } in
    if k >= given || Q.gt least box.low.(k) then begin
      box.low.(k) <- least;
      box.low_fact.(k) <- lazy (
        if squared then note space.book (Poly.times (coordinate space x) (coordinate space x)) (Square (coordinate space x))
        else product_fact space frozen x y (above space k least) (fun v -> Q.sub v least))
    end;
    if k >= given || Q.lt most box.high.(k) then begin
      box.high.(k) <- most;
      box.high_fact.(k) <- lazy (product_fact space frozen x y (under space k most) (fun v -> Q.sub most v))
    end) space.products;
  box

let start_box space =
  let rows = List.map (parameter_rows space) space.free in
  let of_ends get = Array.of_list (List.map get rows) in
  let ends ends = Array.of_list (List.map (List.nth ends) space.free) in
  with_products space { low = ends space.domain.lower; high = ends space.domain.upper;
    low_fact = of_ends (fun (_, above) -> above.fact); high_fact = of_ends (fun (below, _) -> below.fact) }

let has_room box = Array.for_all Fun.id (Array.mapi (fun k low -> Q.leq low box.high.(k)) box.low)

(* ---------- Rows and bases ---------- *)

(* A product z = x·y within a box: ±(x − s)(y − t) ≥ 0. *)
let envelope space box index part =
  demand (index < Array.length space.products && part <= 4) "no such product";
  let x, y = space.products.(index) in
  demand (part < 4 || x = y) "a tangent in the middle is for squares";
  let k = List.length space.free + index in
  let a = box.low.(x) and b = box.high.(x) and c = box.low.(y) and d = box.high.(y) in
  let half = Q.div_2exp (Q.add a b) 1 in
  let s, t, sign = match part with
    | 0 -> a, c, Q.minus_one | 1 -> b, d, Q.minus_one | 2 -> b, c, Q.one | 3 -> a, d, Q.one | _ -> half, half, Q.minus_one in
  let linear = Array.make (size space) Q.zero in
  let add i v = linear.(i) <- Q.add linear.(i) v in
  add k sign; add x (Q.neg (Q.mul sign t)); add y (Q.neg (Q.mul sign s));
  let pair i j = lazy (product space.book (Lazy.force i) (Lazy.force j)) in
  let lx = box.low_fact.(x) and hx = box.high_fact.(x) and ly = box.low_fact.(y) and hy = box.high_fact.(y) in
  { linear; bound = Q.neg (Q.mul sign (Q.mul s t));
    fact = (match part with
      | 0 -> pair lx ly | 1 -> pair hx hy | 2 -> pair hx ly | 3 -> pair lx hy
      | _ -> lazy (
        let p = Poly.minus (coordinate space x) (Poly.constant half) in
        note space.book (Poly.times p p) (Square p))) }

type polytope = { of_space : space; box : box; rows : row array; cache : (int array, (int * Q.t array) list) Hashtbl.t }

let polytope space box rows =
  let n = size space in
  let unit k sign = Array.init n (fun j -> if j = k then sign else Q.zero) in
  let faces = Array.init (2 * n) (fun i ->
    let k = i / 2 in
    if i land 1 = 0 then { linear = unit k Q.one; bound = box.high.(k); fact = box.high_fact.(k) }
    else { linear = unit k Q.minus_one; bound = Q.neg box.low.(k); fact = box.low_fact.(k) }) in
  { of_space = space; box; rows = Array.append faces rows; cache = Hashtbl.create 64 }

(* For each column with a pivot: the combination of the basis' rows that is 1 there, 0 at others. *)
let solve_basis region basis =
  match Hashtbl.find_opt region.cache basis with
  | Some known -> known
  | None ->
    let m = Array.length basis in
    let found = ref [] in
    Array.iteri (fun place i ->
      let row = ref (Array.copy region.rows.(i).linear) and how = ref (Array.init m (fun j -> if j = place then Q.one else Q.zero)) in
      let less factor a b = Array.mapi (fun j x -> if Q.sign b.(j) = 0 then x else Q.sub x (Q.mul factor b.(j))) a in
      List.iter (fun (column, other, other_how) ->
        let factor = !row.(column) in
        if Q.sign factor <> 0 then (row := less factor !row other; how := less factor !how other_how)) (List.rev !found);
      let column = ref (-1) in
      Array.iteri (fun j a -> if !column < 0 && Q.sign a <> 0 then column := j) !row;
      if !column >= 0 then begin
        let scale = Q.inv !row.(!column) in
        let own = Array.map (Q.mul scale) !row and own_how = Array.map (Q.mul scale) !how in
        found := (!column, own, own_how) :: List.map (fun (c, other, other_how) ->
          let factor = other.(!column) in
          if Q.sign factor = 0 then c, other, other_how else c, less factor other own, less factor other_how own_how) !found
      end) basis;
    let result = List.map (fun (column, _, how) -> column, how) !found in
    Hashtbl.add region.cache basis result; result

(* About the first 96 bits of a number ≥ 0, cut off below. *)
let shorter q =
  let extra = Z.numbits (Q.den q) - Z.numbits (Q.num q) + 96 in
  if Q.sign q <= 0 || Z.numbits (Q.num q) + Z.numbits (Q.den q) <= 256 then q
  else if extra >= 0 then Q.make (Z.fdiv (Z.shift_left (Q.num q) extra) (Q.den q)) (Z.shift_left Z.one extra)
  else Q.of_bigint (Z.fdiv (Q.num q) (Q.den q))

(* direction·x ≤ the number by given multiples of rows; what these leave is bounded by the box. *)
let within box rows y direction =
  let rest = Array.copy direction and total = ref Q.zero and parts = ref [] in
  Array.iteri (fun j (row : row) ->
    if Q.sign y.(j) > 0 then begin
      total := Q.add !total (Q.mul y.(j) row.bound);
      Array.iteri (fun k a -> if Q.sign a <> 0 then rest.(k) <- Q.sub rest.(k) (Q.mul y.(j) a)) row.linear;
      parts := (y.(j), row.fact) :: !parts
    end) rows;
  Array.iteri (fun k r ->
    if Q.sign r > 0 then begin
      total := Q.add !total (Q.mul r box.high.(k)); parts := (r, box.high_fact.(k)) :: !parts
    end else if Q.sign r < 0 then begin
      total := Q.add !total (Q.mul r box.low.(k)); parts := (Q.neg r, box.low_fact.(k)) :: !parts
    end) rest;
  !total, !parts

(* direction·x ≤ the number, and the multiples of facts that say so. *)
let most ?(cut = Fun.id) region direction basis =
  demand (Array.for_all (fun i -> i < Array.length region.rows) basis) "a basis of rows that are not there";
  let solved = solve_basis region basis in
  let y = Array.make (Array.length basis) Q.zero in
  List.iter (fun (column, how) ->
    if Q.sign direction.(column) <> 0 then
      Array.iteri (fun j c -> if Q.sign c <> 0 then y.(j) <- Q.add y.(j) (Q.mul direction.(column) c)) how) solved;
  let y = Array.map cut y in
  within region.box (Array.map (fun i -> region.rows.(i)) basis) y direction

(* The fact number − direction·x ≥ 0. *)
let most_fact region direction bound parts = lazy (
  let parts = List.map (fun (c, fact) -> c, Lazy.force fact) parts in
  combine region.of_space.book (form region.of_space (Array.map Q.neg direction) bound) parts)

(* The least double that is not below. *)
let upward q =
  let f = ref (Q.to_float q) in
  while Q.lt (Q.of_float !f) q do f := Float.succ !f done;
  while !f > -.max_float && Q.geq (Q.of_float (Float.pred !f)) q do f := Float.pred !f done;
  Q.of_float !f
let downward q = Q.neg (upward (Q.neg q))

(* Whether there is a point: the mean of some, or by pivots of the least index: a row that asks for less than nothing swaps with a
   variable that can help, until none asks or nothing helps. *)
let has_a_point region more points =
  let n = size region.of_space and low = region.box.low in
  let mean = Array.init n (fun k -> Q.div (Array.fold_left (fun t p -> Q.add t (Q.of_float p.(k))) Q.zero points)
    (Q.of_int (max 1 (Array.length points)))) in
  let holds row =
    let t = ref row.bound in
    Array.iteri (fun k c -> if Q.sign c <> 0 then t := Q.sub !t (Q.mul c mean.(k))) row.linear; Q.sign !t >= 0 in
  (points <> [||] && Array.for_all holds region.rows && List.for_all holds more) ||
  let dot a = let t = ref Q.zero in Array.iteri (fun k c -> if Q.sign c <> 0 then t := Q.add !t (Q.mul c low.(k))) a; !t in
  let line row = Array.append row.linear [| Q.sub row.bound (dot row.linear) |] in
  let uppers = List.init n (fun k -> line region.rows.(2 * k)) in
  let others = Array.to_list (Array.map line (Array.sub region.rows (2 * n) (Array.length region.rows - 2 * n))) in
  let table = Array.of_list (uppers @ others @ List.map line more) in
  let basic = Array.init (Array.length table) (fun i -> n + i) and outside = Array.init n Fun.id in
  let least keys = List.fold_left (fun best (i, key) -> match best with
    | Some (_, other) when other <= key -> best | _ -> Some (i, key)) None keys in
  let rec go () =
    let short = ref [] in
    Array.iteri (fun i row -> if Q.sign row.(n) < 0 then short := (i, basic.(i)) :: !short) table;
    match least !short with
    | None -> true
    | Some (r, _) ->
      let helping = List.filter_map (fun c -> if Q.sign table.(r).(c) < 0 then Some (c, outside.(c)) else None) (List.init n Fun.id) in
      match least helping with
      | None -> false
      | Some (c, _) ->
        let pivot = Q.inv table.(r).(c) in
        let row = Array.map (Q.mul pivot) table.(r) in
        row.(c) <- pivot;
        Array.iteri (fun i old ->
          let factor = old.(c) in
          if i <> r && Q.sign factor <> 0 then begin
            table.(i) <- Array.mapi (fun j a -> Q.sub a (Q.mul factor row.(j))) old;
            table.(i).(c) <- Q.neg (Q.mul factor row.(c))
          end) table;
        table.(r) <- row;
        let entering = outside.(c) in
        outside.(c) <- basic.(r); basic.(r) <- entering;
        go () in
  go ()
