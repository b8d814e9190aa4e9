(* What the theorems rest on. *)
From Proved Require Import Sound Learned Statistics Fixed Paths Shield Slab.
Print Assumptions value_sound.
Print Assumptions domain_sound.
Print Assumptions learned_sound.
Print Assumptions fixed_sound.
Print Assumptions value_is_expected.
Print Assumptions true_value_is_expected.
Print Assumptions shield_sound.
Print Assumptions shield_true.
Print Assumptions slab_valid.
Print Assumptions slab_rows.
Print Assumptions chord_below.
