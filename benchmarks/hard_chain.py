"""The hard chain of Haddad and Monmege: where iterations that stop on small changes answer wrongly.

    python benchmarks/hard_chain.py                 # the row of the README: 18 steps each way
    python benchmarks/hard_chain.py --steps 10 14 --json rows.json

A walk begins in the middle. Every step goes on with probability 1/2 and falls back to the middle with 1/2; n
steps in a row to the left end it there, n to the right there. By symmetry the value is exactly 1/2. Values
change by about 2^-n per sweep, so a rule that stops once changes are below 1e-6 stops early. The bounds of
tightrope are verified; Storm's default (stormpy, an optional package) is printed beside them.

Serge Haddad and Benjamin Monmege: Interval iteration algorithm for MDPs and IMDPs. Theoretical Computer
Science 735, 2018.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import tightrope as tr
from tightrope.numerics.text import interval_text

GOAL = 'P=? [ F "goal" ]'


def hard_chain(steps: int) -> tr.MDP:
    """States 0 … 2n, the middle is n; the first step goes either way."""
    middle, rows = steps, []
    for state in range(2 * steps + 1):
        if state in (0, 2 * steps):
            rows.append((state, "", {state: 1}))
        elif state == middle:
            rows.append((state, "", {state - 1: "1/2", state + 1: "1/2"}))
        else:
            rows.append((state, "", {state + (1 if state > middle else -1): "1/2", middle: "1/2"}))
    model = tr.build_from_rows(rows, initial=middle, labels={"goal": [0]})
    return model.instantiate() if isinstance(model, tr.ParametricMDP) else model


def measure(steps: int) -> dict[str, object]:
    model = hard_chain(steps)
    begin = time.process_time()
    solution = tr.solve(model, GOAL)
    seconds = time.process_time() - begin
    low, high = float(solution.lower[model.initial]), float(solution.upper[model.initial])
    return {
        "steps": steps,
        "lower": low,
        "upper": high,
        "is_certified": solution.is_certified,
        "seconds": round(seconds, 3),
        "storm": storm_default(model),
    }


def storm_default(model: tr.MDP) -> float | None:
    """What Storm says by default; None where stormpy is not installed."""
    try:
        import stormpy
    except ImportError:
        return None
    storm = tr.to_stormpy(model)
    (formula,) = stormpy.parse_properties('Pmax=? [ F "goal" ]')
    return float(stormpy.model_checking(storm, formula).get_value(storm.initial_states[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[18], help="steps to each end (18)")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    arguments = parser.parse_args()
    rows = [measure(steps) for steps in arguments.steps]
    print(f"{'steps':>5} {'certified interval':26} {'Storm by default':>18} {'CPU s':>7}")
    for row in rows:
        interval = interval_text(float(str(row["lower"])), float(str(row["upper"])), 7)
        storm = row["storm"]
        shown = "not installed" if storm is None else f"{storm:.9g}"
        outside = isinstance(storm, float) and not float(str(row["lower"])) <= storm <= float(
            str(row["upper"])
        )
        print(f"{row['steps']:>5} {interval:26} {shown:>18} {row['seconds']:>7}" + "  outside" * outside)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
