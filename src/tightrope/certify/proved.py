"""What the proved checker says of a certificate: a program of its own, extracted from machine-checked proofs
(`docs/proved.md`), which is called where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tightrope.errors import CannotCertify, InputError, shown

PROGRAM = "tightrope-proved-check"
PLACE = "TIGHTROPE_PROVED_CHECK"
"""The environment variable that says where the program is."""

_BUILT = Path(__file__).parents[3] / "proved" / "build" / PROGRAM
_INSTALL = (
    "build it in a checkout of tightrope by `make proved` (only OCaml and Zarith: `make -C proved checker`), "
    f"and put it on the PATH or name it in the environment variable {PLACE}"
)
_VERDICTS = {0: "accepts", 1: "refuses", 2: "refuses", 3: "does not cover"}


@dataclass(frozen=True)
class ProvedAnswer:
    """`verdict`: accepts, refuses or does not cover; `theorems`: what an acceptance means, by their names in
    Coq; `words`: why it does not accept."""

    verdict: str
    theorems: tuple[str, ...] = ()
    words: str = ""

    @property
    def line(self) -> str:
        """For people: "proved checker: accepts, theorem …"."""
        if self.verdict == "accepts":
            several = "theorem" if len(self.theorems) == 1 else "theorems"
            return f"proved checker: accepts, {several} {', '.join(self.theorems)}"
        return (
            f"proved checker: {self.verdict}{' this kind' * (self.verdict == 'does not cover')}: {self.words}"
        )


def find_proved_checker() -> Path:
    """Where the program is: named by the environment, built in this checkout, or on the PATH."""
    named = os.environ.get(PLACE)
    if named is not None:
        if not os.access(named, os.X_OK) or not Path(named).is_file():
            raise InputError(
                f"{PLACE} is {shown(named)!r}, which is no program that can be run", hint=_INSTALL
            )
        return Path(named)
    if _BUILT.is_file():
        return _BUILT
    on_path = shutil.which(PROGRAM)
    if on_path is None:
        raise InputError("the proved checker is not installed on this machine", hint=_INSTALL)
    return Path(on_path)


def ask_proved_checker(certificate: str | Path, digest: str, seconds: float) -> ProvedAnswer:
    """What it says of the file with this digest, within so many seconds."""
    program = find_proved_checker()
    try:
        done = subprocess.run(
            [program, str(certificate)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=seconds,
            check=False,
        )
    except OSError as error:
        words = f"the proved checker {shown(str(program))} cannot be run: {error.strerror}"
        raise InputError(words, hint=_INSTALL) from error
    except subprocess.TimeoutExpired as error:
        words = f"the proved checker takes more than {seconds:g} s; --budget allows more, such as --budget 1h"
        raise CannotCertify(words) from error
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    answers = {name: value for name, _, value in lines}
    verdict = _VERDICTS.get(done.returncode)
    if verdict == "accepts" and answers.get("digest") != digest:
        verdict = None
    if verdict is None:
        raise CannotCertify(f"the proved checker {shown(str(program))} gave no answer that can be used")
    if verdict == "accepts":
        return ProvedAnswer(verdict, tuple(answers.get("theorems", "").split()))
    return ProvedAnswer(verdict, words=shown(next((value for _, _, value in lines if value), "no reason")))
