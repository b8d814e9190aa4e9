"""`tightrope-check FILE`: does a certificate prove its claims? Needs numpy and nothing of tightrope.

Exit code 0: valid, and proved. 1: not valid, nominal, contradicted by the data, or beyond the budget.
2: no certificate, or a wrong option. 70: an internal error. 130: interrupted. 141: output pipe closed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tightrope_check import __version__
from tightrope_check.archive import load
from tightrope_check.budget import WorkBudget
from tightrope_check.checker import check
from tightrope_check.errors import TightropeError
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.report import facts, headline, rows
from tightrope_check.verdict import Verdict

INTERNAL_ERROR, INTERRUPTED, READER_GONE = 70, 130, 141


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave the process with its exit code."""
    try:
        code = run(arguments)
        sys.stdout.flush()
    except TightropeError as error:
        sys.stderr.write(f"error: {error}\n")
        code = error.exit_code
    except MemoryError:
        sys.stderr.write("error: out of memory\n")
        code = 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = READER_GONE
    except Exception as error:
        if os.environ.get("TIGHTROPE_DEBUG") == "1":
            raise
        sys.stderr.write(f"internal error: {type(error).__name__}: {error}\n")
        code = INTERNAL_ERROR
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Check the file that the arguments name; the exit code."""
    parser = argparse.ArgumentParser("tightrope-check", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("certificate", metavar="FILE", help="a file written by --certificate")
    parser.add_argument("--exact", action="store_true", help="check in exact rationals; for small models")
    parser.add_argument("--budget", metavar="AMOUNT", help="work that the check may take: 600s, 10min or 10x")
    parser.add_argument("--accept-nominal", action="store_true", help="exit with 0 where it is nominal")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    given = parser.parse_args(arguments)
    budget = WorkBudget.of(given.budget, given.exact)
    certificate = load(given.certificate, budget).certificate
    with budget.on_the_clock():
        verdict = check(certificate, RATIONAL if given.exact else FLOAT64, budget)
    lines = [f"  {label:<10} {text}" for label, text in facts(verdict, certificate)]
    lines += ["  ".join(filter(None, (f"  {row[0]}", *row[1:]))) for row in rows(verdict, certificate)]
    sys.stdout.write("\n".join([headline(verdict, certificate), *lines]) + "\n")
    return exit_code(verdict, given.accept_nominal)


def exit_code(verdict: Verdict, accepts_nominal: bool) -> int:
    accepted = ("proved", "nominal") if accepts_nominal and verdict.valid else ("proved",)
    return 0 if verdict.word in accepted else 1


if __name__ == "__main__":
    main()
