(* What the theorems rest on. *)
From Proved Require Import Sound.
Print Assumptions value_sound.
