#!/bin/sh
# The programs that tests need and pip cannot install: a browser for pages, a C++ compiler for the CUDA kernels, OCaml
# for the proved checker and Node for its JavaScript, Java for Spark; and Coq and js_of_ocaml, by which `make proved`
# checks the proofs and builds the JavaScript. PySpark, which is large, is installed where Java is (`make spark`).
#
#   system_deps.sh install         install what is missing (Debian, as root), or name it and exit with 1
#   system_deps.sh install proofs  the same, with what the proofs need
#   system_deps.sh check [proofs]  name what is missing and exit with 1; silent where nothing is
#   system_deps.sh summary         name the groups of tests that were not run; exit with 1 where CI=true and some were not
#   system_deps.sh markers         what pytest's option -m takes to leave out the tests which cannot run here

has() {
    for program in "$@"; do
        command -v "$program" >/dev/null 2>&1 && return 0
    done
    return 1
}

has_ocaml() {
    has ocamlopt && ocamlfind query zarith >/dev/null 2>&1
}

has_spark() {
    has java && .venv/bin/python -c "import pyspark" 2>/dev/null
}

missing() {
    has chromium chromium-browser google-chrome google-chrome-stable || echo "chromium fonts-dejavu-core"
    has g++ clang++ c++ || echo "g++"
    has_ocaml || echo "ocaml-nox ocaml-findlib libzarith-ocaml-dev"
    has node || echo "nodejs"
    has java || echo "default-jre-headless"
    [ "$1" != proofs ] || has coqc || echo "coq libcoq-stdlib"
    [ "$1" != proofs ] || has js_of_ocaml || echo "js-of-ocaml"
}

# shellcheck disable=SC2046,SC2116  # words, on one line
packages=$(echo $(missing "$2"))

case "$1" in
markers)
    left_out=""
    has chromium chromium-browser google-chrome google-chrome-stable || left_out="not browser"
    has g++ clang++ c++ || left_out="${left_out:+$left_out and }not compiler"
    has_ocaml || left_out="${left_out:+$left_out and }not ocaml"
    has node || left_out="${left_out:+$left_out and }not node"
    has_spark || left_out="${left_out:+$left_out and }not spark"
    echo "$left_out"
    exit 0
    ;;
summary)
    not_run() {
        echo "== not run on this machine: $1 (missing: $2)" >&2
    }
    has chromium chromium-browser google-chrome google-chrome-stable || not_run "tests of pages" "chromium"
    has g++ clang++ c++ || not_run "tests of the CUDA kernels" "a C++ compiler"
    has_ocaml || not_run "tests of the proved checker" "OCaml with Zarith"
    has node || not_run "tests of the proved checker's JavaScript" "Node"
    has_spark || not_run "tests of logs on Spark" "Java, or PySpark ('make spark' installs it)"
    if [ -z "$packages" ] && has_spark; then exit 0; fi
    echo "== all other tests passed; 'make system-deps' as root installs what is missing" >&2
    [ "$CI" != true ]
    exit $?
    ;;
install | check) ;;
*)
    echo "usage: $0 install|check|summary|markers [proofs]" >&2
    exit 2
    ;;
esac

[ -n "$packages" ] || exit 0

if [ "$1" = install ] && [ "$(id -u)" = 0 ] && has apt-get; then
    echo "== installing system packages for the tests: $packages"
    # shellcheck disable=SC2086  # several packages
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
    exit $?
fi
echo "missing on this machine: $packages" >&2
echo "hint: install these packages, or run 'make system-deps' as root; without them the tests of pages (browser)," >&2
echo "      of the CUDA kernels (compiler), of the proved checker (OCaml and Node, and Coq for its proofs) or of logs on" >&2
echo "      Spark (Java) cannot run" >&2
exit 1
