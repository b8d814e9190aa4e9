(* BELIEVED. Zarith's integers and rationals stand for Coq's; nat is OCaml's int (only counted, indexed and compared). *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt ZArith QArith.
From Proved Require Import Game Problem Basics Value Model Temporal Krichevsky Learned Likelihood Forms Coupled Bets Binomial Fixed Quotients.
Extract Inlined Constant andb => "(&&)".
Extract Inlined Constant orb => "(||)".
Extract Inlined Constant negb => "not".
Extract Inductive positive => "Exact.I.t" [ "Exact.twice_one" "Exact.twice" "Exact.I.one" ] "(fun _ _ _ _ -> assert false)".
Extract Inductive Z => "Exact.I.t" [ "Exact.I.zero" "(fun p -> p)" "Exact.I.neg" ] "(fun _ _ _ _ -> assert false)".
Extract Inductive Q => "Exact.F.t" [ "Exact.make" ] "(fun _ _ -> assert false)".
Extract Inlined Constant Nat.min => "Stdlib.Int.min".
Extract Inlined Constant Nat.div2 => "(fun n -> n / 2)".
Extract Inlined Constant Nat.ltb => "(fun (n : int) m -> n < m)".
Extract Inlined Constant Z.add => "Exact.I.add".
Extract Inlined Constant Z.mul => "Exact.I.mul".
Extract Inlined Constant Z.sub => "Exact.I.sub".
Extract Inlined Constant Z.pow => "Exact.pow".
Extract Inlined Constant Z.shiftr => "Exact.shift".
Extract Inlined Constant Z.ltb => "Exact.I.lt".
Extract Inlined Constant Z.leb => "Exact.I.leq".
Extract Inlined Constant Z.opp => "Exact.I.neg".
Extract Inlined Constant Pos.mul => "Exact.I.mul".
Extract Inlined Constant Z.of_nat => "Exact.I.of_int".
Extract Inlined Constant inject_Z => "Exact.F.of_bigint".
Extract Inlined Constant Qplus => "Exact.F.add".
Extract Inlined Constant Qminus => "Exact.F.sub".
Extract Inlined Constant Qmult => "Exact.F.mul".
Extract Inlined Constant Qinv => "Exact.inv".
Extract Inlined Constant Qopp => "Exact.F.neg".
Extract Inlined Constant Qle_bool => "Exact.leq".
Extract Inlined Constant Qeq_bool => "Exact.equal".
Extraction "extracted/checker.ml" playable accept_value owners arena rule_for check_low check_high boxed accept_domain accept accept_fixed reciprocals.
