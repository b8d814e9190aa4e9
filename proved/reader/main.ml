(* BELIEVED. tightrope-proved-check FILE: the verdict is printed, and its code is the exit code. *)

let () =
  match Sys.argv with
  | [| _; path |] ->
    let code, words = Verdict.of_bytes (fun () -> Archive.read_file path) in
    print_string words; exit code
  | _ -> prerr_endline "usage: tightrope-proved-check CERTIFICATE"; exit 2
