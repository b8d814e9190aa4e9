(* What the theorems rest on. *)
From Proved Require Import Coupled Temporal Learned Statistics Fixed Paths Memory Shield Quotients.
Print Assumptions value_sound.
Print Assumptions domain_sound.
Print Assumptions learned_sound.
Print Assumptions fixed_sound.
Print Assumptions value_is_expected.
Print Assumptions true_value_is_expected.
Print Assumptions product_is_the_game.
Print Assumptions shield_sound.
Print Assumptions shield_true.
Print Assumptions reciprocals_mean.
Print Assumptions reciprocals_there.
