(* BELIEVED. How a file is refused: exit codes 1 (it does not prove its claim), 2 (no certificate), 3 (a kind that is not covered). *)

exception Refused of int * string

let malformed words = raise (Refused (2, "this is not a certificate, or it is damaged: " ^ words))
let unproved words = raise (Refused (1, words))
let not_covered words = raise (Refused (3, words))
let require holds words = if not holds then malformed words
let demand holds words = if not holds then unproved words

(* Text of a file as it may be shown: short, and nothing that a terminal would act on. *)
let plain text = String.escaped (if String.length text > 80 then String.sub text 0 80 else text)
