(* What the theorems rest on. *)
From Proved Require Import Sound Learned Statistics.
Print Assumptions value_sound.
Print Assumptions domain_sound.
Print Assumptions learned_sound.
