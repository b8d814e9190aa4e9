(* BELIEVED. The same for JavaScript: tightropeCheck(bytes) is { code, words }. *)

external export : (string -> int * string) -> unit = "tightrope_export"
let () = export (fun data -> Verdict.of_bytes (fun () -> data))
