"""Where a threshold holds in a domain of two parameters: parts found by tightrope beside Storm's.

    python benchmarks/domain_parts.py [--smoke] [--open 0.05] [-o FILE]

Bounded retransmission (the two channels' chances of delivery) and Crowds (the chance of a corrupt member and
of forwarding), the models of `benchmarks/plain` with parameters. tightrope splits its domain with
`tr.solve(problem, open_share=…)`; Storm's parameter lifting decides boxes that are quartered, the largest
first, until the same share is open, as its own partitioning does. Both run in this process with one thread;
seconds are CPU seconds of the search, after one small question. `agree`: no point of a grid of 200 by 200 is
decided one way by one tool and the other way by the other.

Prints a table, writes rows as JSON; leaves with status 1 where verdicts differ or more stays open.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

import tightrope as tr

FOLDER = Path(__file__).parent / "plain"
Box = tuple[float, float, float, float]
Parts = list[tuple[Box, bool | None]]


@dataclass(frozen=True)
class Case:
    """A question with a threshold, its domain, and how parameters enter the file."""

    name: str
    file: str
    changes: tuple[tuple[str, str], ...]
    constants: str
    domain: dict[str, tuple[float, float]]
    property: str

    def text(self) -> str:
        """The program with parameters."""
        text = (FOLDER / self.file).read_text(encoding="utf-8")
        for old, new in self.changes:
            assert old in text, old
            text = text.replace(old, new)
        return text.replace("dtmc", "dtmc\n" + "".join(f"const double {name};\n" for name in self.domain))


CHANNELS = (
    ("0.98 : (k'=1) + 0.02 : (k'=2)", "pl : (k'=1) + 1-pl : (k'=2)"),
    ("0.99 : (l'=1) + 0.01 : (l'=2)", "pk : (l'=1) + 1-pk : (l'=2)"),
)
MEMBERS = (
    ("0.833 : (phase'=2) + 0.167 : (phase'=3)", "1-bad : (phase'=2) + bad : (phase'=3)"),
    ("0.2 : (phase'=0)", "1-forward : (phase'=0)"),
    ("0.8/10", "forward/10"),
)


def retransmission(chunks: int, most: int, threshold: float) -> Case:
    """A file is sent whole with at least this probability."""
    domain, name = {"pl": (0.05, 0.95), "pk": (0.05, 0.95)}, f"retransmission({chunks},{most})"
    question = f"P>={threshold} [ F s=0 & report=3 ]"
    return Case(name, "retransmission.prism", CHANNELS, f"N={chunks},M={most}", domain, question)


def crowds(runs: int, threshold: float) -> Case:
    """The sender is noted twice with at most this probability."""
    domain = {"bad": (0.05, 0.6), "forward": (0.3, 0.95)}
    question = f'P<={threshold} [ F "observed" ]'
    return Case(f"crowds(10,{runs})", "crowds_10.prism", MEMBERS, f"R={runs}", domain, question)


SMOKE = (retransmission(4, 2, 0.9), crowds(2, 0.1))
CASES = (
    retransmission(16, 5, 0.9),
    retransmission(64, 5, 0.9),
    retransmission(256, 5, 0.9),
    crowds(3, 0.2),
    crowds(5, 0.3),
)


def by_tightrope(case: Case, share: float) -> tuple[Parts, float, int]:
    """Parts, CPU seconds, and states."""
    constants = dict(pair.split("=") for pair in case.constants.split(","))
    with tempfile.NamedTemporaryFile("w", suffix=".prism") as file:
        file.write(case.text())
        file.flush()
        warnings.simplefilter("ignore")  # deadlocks are part of the protocol
        model = tr.load(file.name, const={k: int(v) for k, v in constants.items()}, params=case.domain)
    problem = model.problem(case.property)
    begin = time.process_time()
    found = tr.solve(problem, open_share=share)
    seconds = time.process_time() - begin
    order = [found.names.index(name) for name in case.domain]
    parts: Parts = []
    for part in found.parts:
        x, y = (part.box[i] for i in order)
        parts.append(((x.lower, y.lower, x.upper, y.upper), {"true": True, "false": False}.get(part.truth)))
    return parts, seconds, model.structure.states


def by_storm(case: Case, share: float) -> tuple[Parts, float]:
    """The same by parameter lifting, boxes quartered from the largest on."""
    import stormpy
    from stormpy.numbers.developer.cln import Rational as Coefficient
    from stormpy.pars import developer as lifting

    with tempfile.NamedTemporaryFile("w", suffix=".prism") as file:
        file.write(case.text())
        file.flush()
        program = stormpy.parse_prism_program(file.name)
    program, _ = stormpy.instantiate_constants(program, case.constants)
    (wanted,) = stormpy.parse_properties(case.property, program)
    model = stormpy.build_model[stormpy.RationalFunction](program, [wanted])
    variable = {each.name: each for each in model.collect_all_parameters()}
    environment = stormpy.environments.default(model)
    begin = time.process_time()
    task = stormpy.developer._core._CheckTask_RationalFunction(wanted.get_raw_formula(), True)
    checker = lifting.initialize_region_model_checker(environment, model, task)
    (left, right), (low, high) = case.domain.values()
    whole, order, parts = (right - left) * (high - low), itertools.count(), []
    waiting = [(-whole, next(order), (left, low, right, high))]
    open_area = whole
    names = list(case.domain)
    while waiting and open_area > share * whole:
        area, _, box = heapq.heappop(waiting)
        bounds = {names[i]: (box[i], box[i + 2]) for i in range(2)}
        ends = [
            {variable[n]: Coefficient(str(Fraction(pair[k]))) for n, pair in bounds.items()} for k in range(2)
        ]
        found = checker.analyze_region(
            environment, lifting.ParameterRegion(*ends), sample_vertices_of_region=False
        )
        verdict = {"ALL_SAT": True, "ALL_VIOLATED": False}.get(found.name)
        if verdict is not None:
            parts.append((box, verdict))
            open_area += area
            continue
        x, y = 0.5 * (box[0] + box[2]), 0.5 * (box[1] + box[3])
        for child in (
            (box[0], box[1], x, y),
            (x, box[1], box[2], y),
            (box[0], y, x, box[3]),
            (x, y, box[2], box[3]),
        ):
            heapq.heappush(waiting, (area / 4, next(order), child))
    parts += [(box, None) for _, _, box in waiting]
    return parts, time.process_time() - begin


def decided(parts: Parts, case: Case, size: int = 200) -> tuple[np.ndarray, float]:
    """The verdict at every point of a grid (1, -1, or 0 where it is open), and the share that is open."""
    (left, right), (low, high) = case.domain.values()
    xs, ys = (np.linspace(a, b, size + 2)[1:-1] for a, b in ((left, right), (low, high)))
    grid = np.zeros((size, size), np.int8)
    for (x, y, right_x, top), verdict in parts:
        inside = np.ix_((xs > x) & (xs < right_x), (ys > y) & (ys < top))
        grid[inside] = 0 if verdict is None else 1 if verdict else -1
    area = sum((b[2] - b[0]) * (b[3] - b[1]) for b, verdict in parts if verdict is None)
    return grid, area / ((right - left) * (high - low))


def compare(case: Case, share: float) -> dict[str, object]:
    """A row of the table."""
    own, seconds, states = by_tightrope(case, share)
    other, storm_seconds = by_storm(case, share)
    (mine, is_open), (theirs, storm_open) = decided(own, case), decided(other, case)
    return {
        "case": case.name,
        "states": states,
        "holds": round(float((mine == 1).mean()), 4),
        "parts": len(own),
        "storm_parts": len(other),
        "open": round(is_open, 4),
        "storm_open": round(storm_open, 4),
        "seconds": round(seconds, 2),
        "storm_seconds": round(storm_seconds, 2),
        "agree": not np.any(mine * theirs < 0),
    }


def main() -> int:
    """Run the cases, print a table, write the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="small models")
    parser.add_argument("--open", type=float, default=0.05, help="the share of the domain that may stay open")
    parser.add_argument("-o", type=Path, default=Path("bench-results/domain_parts.json"), help="rows as JSON")
    given = parser.parse_args()
    by_tightrope(SMOKE[0], 0.5)
    rows = []
    for case in SMOKE if given.smoke else CASES:
        rows.append(compare(case, given.open))
        if len(rows) == 1:
            print("  ".join(f"{key:>13}" for key in rows[0]))
        print("  ".join(f"{value!s:>13}" for value in rows[-1].values()), flush=True)
    given.o.parent.mkdir(parents=True, exist_ok=True)
    given.o.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(not all(row["agree"] and row["open"] <= given.open for row in rows))


if __name__ == "__main__":
    sys.exit(main())
