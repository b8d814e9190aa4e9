(* BELIEVED. Zarith's integers and rationals stand for Coq's; nat is OCaml's int (only counted, indexed and compared). *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt ZArith QArith.
From Proved Require Import Game Problem Basics Value Model Krichevsky Learned Likelihood Binomial Fixed.
Extract Inlined Constant andb => "(&&)".
Extract Inlined Constant orb => "(||)".
Extract Inlined Constant negb => "not".
Extract Inductive positive => "Exact.z"
  [ "Exact.twice_one" "Exact.twice" "Exact.one_z" ] "(fun _ _ _ _ -> assert false)".
Extract Inductive Z => "Exact.z" [ "Exact.zero_z" "(fun p -> p)" "Exact.neg_z" ] "(fun _ _ _ _ -> assert false)".
Extract Inductive Q => "Exact.q" [ "Exact.make" ] "(fun _ _ -> assert false)".
Extract Inlined Constant Nat.min => "Stdlib.Int.min".
Extract Inlined Constant Nat.div2 => "(fun n -> n / 2)".
Extract Inlined Constant Nat.ltb => "(fun (n : int) m -> n < m)".
Extract Inlined Constant Z.add => "Exact.add_z".
Extract Inlined Constant Z.mul => "Exact.mul_z".
Extract Inlined Constant Z.sub => "Exact.sub_z".
Extract Inlined Constant Z.pow => "Exact.pow_z".
Extract Inlined Constant Z.shiftr => "Exact.shift_z".
Extract Inlined Constant Z.ltb => "Exact.less_z".
Extract Inlined Constant Z.leb => "Exact.leq_z".
Extract Inlined Constant Z.opp => "Exact.neg_z".
Extract Inlined Constant Pos.mul => "Exact.mul_z".
Extract Inlined Constant Z.of_nat => "Exact.of_int".
Extract Inlined Constant inject_Z => "Exact.inject".
Extract Inlined Constant Qplus => "Exact.add".
Extract Inlined Constant Qminus => "Exact.sub".
Extract Inlined Constant Qmult => "Exact.mul".
Extract Inlined Constant Qinv => "Exact.inv".
Extract Inlined Constant Qopp => "Exact.neg".
Extract Inlined Constant Qle_bool => "Exact.leq".
Extract Inlined Constant Qeq_bool => "Exact.equal".
Extraction "extracted/checker.ml" playable prove owners arena rule_for check_low check_high boxed accept_domain accept accept_fixed.
