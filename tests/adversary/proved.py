"""The proved checker beside `verify`: what the one accepts the other does not refuse."""

from __future__ import annotations

import fcntl
import subprocess
from functools import cache
from pathlib import Path

from places import TESTS
from tightrope.certify.verification import PROGRAM

FOLDER = TESTS.parent / "proved"
NOT_COVERED = 3
"""Its exit code for kinds that no theorem of it is about."""


@cache
def proved_program() -> Path | None:
    """Built from the committed OCaml, once for all processes; None where there is no OCaml."""
    query = ["ocamlfind", "query", "zarith"]
    try:
        subprocess.run(query, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    (FOLDER / "build").mkdir(exist_ok=True)
    with (FOLDER / "build" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-C", FOLDER, "checker"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return FOLDER / "build" / PROGRAM


def asked(program: Path, path: Path) -> tuple[int, str]:
    """(exit code, what it prints): always one of its answers, in words, within a minute."""
    done = subprocess.run([program, path], capture_output=True, timeout=60, check=False)
    words = done.stdout.decode("utf-8", "strict")
    assert done.returncode in (0, 1, 2, NOT_COVERED) and done.stderr == b"", (done.returncode, done.stderr)
    assert words.startswith(("PROVED: ", "REFUSED: ", "NO CERTIFICATE: ", "NOT COVERED: ")), words
    assert "\x1b" not in words
    return done.returncode, words


def proved_code(path: Path) -> int:
    """Its exit code; where it cannot be built, that of kinds which it does not cover."""
    program = proved_program()
    return NOT_COVERED if program is None else asked(program, path)[0]


def is_judged_alike(path: Path, accepted: bool) -> bool:
    """Whether it says what `verify` says, or that it does not cover the kind."""
    code = proved_code(path)
    return code == NOT_COVERED or (code == 0) == accepted
