(* What the theorems rest on. *)
From Proved Require Import Sound Learned Statistics Fixed.
Print Assumptions value_sound.
Print Assumptions domain_sound.
Print Assumptions learned_sound.
Print Assumptions fixed_sound.
