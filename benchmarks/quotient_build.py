"""What quotients cost to build: models with p/(p+q) beside models of the same size with polynomials.

    python benchmarks/quotient_build.py [--smoke] [--json FILE]

A walk on an n × n grid in three versions: one expression for all states, one per column (weights that depend
on a variable), one per state. Each is built with probabilities w·p/(w·p+v·q) and, for comparison, with
polynomials w/(w+v)·p that take as many distinct expressions. CPU seconds in one process, the best
of three. The goal: at most 3 times a polynomial model of the size, status 1 where it is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism_text

MOST = 3.0
TEXT = """
mdp
const double p;
const double q;
const int N = {n};
module walk
  x : [0..N] init 0;
  y : [0..N] init 0;
  [east] x<N -> {up} : (x'=x+1) + {down} : (y'=min(y+1,N));
  [north] y<N -> {up} : (y'=y+1) + {down} : (x'=min(x+1,N));
  [] x=N & y=N -> true;
endmodule
"""
WEIGHTS = {"one": ("1", "1"), "per column": ("(x+1)", "2"), "per state": ("(x+1)", "(N*y+N+2)")}
SIZES = {"one": 300, "per column": 300, "per state": 100}


def text(kind: str, n: int, quotient: bool) -> str:
    w, v = WEIGHTS[kind]
    if quotient:
        up, down = f"{w}*p/({w}*p+{v}*q)", f"{v}*q/({w}*p+{v}*q)"
    else:
        up, down = f"{w}/({w}+{v})*p", f"1-{w}/({w}+{v})*p"
    return TEXT.format(n=n, up=up, down=down)


def built(kind: str, n: int, quotient: bool) -> tuple[ParametricMDP, float]:
    begin = time.process_time()
    model = load_prism_text(text(kind, n, quotient), box="p=0.1:0.9,q=0.1:0.9")
    assert isinstance(model, ParametricMDP)
    return model, time.process_time() - begin


def measured(kind: str, n: int) -> dict[str, object]:
    best = {True: float("inf"), False: float("inf")}
    models: dict[bool, ParametricMDP] = {}
    for _ in range(3):
        for quotient in (True, False):
            models[quotient], seconds = built(kind, n, quotient)
            best[quotient] = min(best[quotient], seconds)
    return {
        "kind": kind,
        "transitions": models[True].transitions,
        "expressions": len(models[True].expressions),
        "polynomial_expressions": len(models[False].expressions),
        "quotient_seconds": round(best[True], 3),
        "polynomial_seconds": round(best[False], 3),
        "ratio": round(best[True] / best[False], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small grids; the goal is not judged")
    parser.add_argument("--json", type=Path, help="where to write the rows")
    asked = parser.parse_args()
    built("one", 2, True)
    built("one", 2, False)
    rows = [measured(kind, 6 if asked.smoke else size) for kind, size in SIZES.items()]
    for row in rows:
        print(*(f"{name} {value}" for name, value in row.items()), sep=", ", flush=True)
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if not asked.smoke and any(float(str(row["ratio"])) > MOST for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
