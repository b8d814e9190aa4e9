"""Temporal formulas (LTL) on MDPs and chains: tightrope beside Storm's sound mode, as ratios of CPU seconds.

    python benchmarks/ltl_speed.py             all models at full size
    python benchmarks/ltl_speed.py patrol …    some of them
    python benchmarks/ltl_speed.py --smoke     all models at a small size, in seconds

Both tools read the same PRISM file (`benchmarks/plain`) and answer the same formula at relative precision
1e-6 with one thread in one process, taking turns, three each, of which the best counts; a small instance goes
first, so that loading and compiling code is not measured. `check` is from the model to the value. Storm needs
Spot for formulas that are neither safe nor co-safe; where the installed one lacks it, its column is empty.

Prints a table and writes the rows as JSON (default: bench-results/ltl_speed.json). Leaves with status 1 where
the tools disagree.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "plain"
PRECISION = 1e-6
TURNS = 3


@dataclass(frozen=True)
class Case:
    """A formula about a file, at full size and at a small one."""

    name: str
    path: str
    file: str
    constants: str = ""
    small_file: str = ""
    small_constants: str = ""
    operator: str = "Pmax"


CASES = (
    Case("patrol", '(G F "office") & (G F "kitchen") & (G F "charger")', "patrol", "N=50", "", "N=6"),
    Case("patrol-safe", '(G F "office") & (G F "charger") & (G !"pit")', "patrol", "N=50", "", "N=6"),
    Case(
        "patrol-order",
        'F ("office" & (X (F ("kitchen" & (X (F "charger"))))))',
        "patrol",
        "N=50",
        "",
        "N=6",
    ),
    Case("philosophers", '(F G !"eat") | (F G "hungry")', "philosophers_3", operator="Pmin"),
    Case("consensus", '(F G "all_heads") & (G F "finished")', "consensus_2", "K=8", "", "K=2", "Pmin"),
    Case("exclusion", '(G F "first") & (F "all_lost")', "mutual_exclusion_3"),
    Case("csma", 'G (!"some_worn_out" | (F "all_sent"))', "csma_2_2", "T=8", "", "T=3", "Pmin"),
    Case("leader", '(F "elected") & (X X (F "elected"))', "leader_4_3", operator="P"),
)


@dataclass(frozen=True)
class Row:
    """CPU seconds to check, and the values that came out."""

    name: str
    states: int
    ours: float
    storm: float | None
    lower: float
    upper: float
    theirs: float | None

    @property
    def ratio(self) -> str:
        return "" if self.storm is None else f"{self.ours / max(self.storm, 1e-4):.2g}"

    @property
    def agree(self) -> bool:
        slack = 10 * PRECISION
        return self.theirs is None or self.lower - slack <= self.theirs <= self.upper + slack


def measured(case: Case, small: bool, turns: int) -> Row:
    """Both tools on one case, taking turns."""
    import tightrope as tr

    file = FOLDER / f"{(case.small_file or case.file) if small else case.file}.prism"
    constants = (case.small_constants if small else case.constants) or ""
    asked = f"{case.operator}=? [ {case.path} ]"
    given = dict(part.split("=") for part in constants.split(",") if part)
    model: Any = tr.load(str(file), const=given)
    if isinstance(model, tr.ParametricMDP):
        model = model.instantiate()
    storm = _Storm(file, constants, asked)
    ours, theirs = [], []
    for _ in range(turns):
        begin = time.process_time()
        found = tr.solve(model, asked, threads=1)
        ours.append(time.process_time() - begin)
        if storm.works:
            begin = time.process_time()
            storm.check()
            theirs.append(time.process_time() - begin)
    assert found.bounds is not None
    best = min(theirs) if storm.works else None
    return Row(case.name, model.states, min(ours), best, *found.bounds, storm.value)


class _Storm:
    def __init__(self, file: Path, constants: str, asked: str):
        self.works, self.value = False, None
        try:
            import stormpy
        except ImportError:
            return
        program = stormpy.parse_prism_program(str(file))
        if constants:
            program, _ = stormpy.instantiate_constants(program, constants)
        self._asked = stormpy.parse_properties(asked, program)[0]
        self._model = stormpy.build_model(program, [self._asked])
        self._environment = stormpy.Environment()
        self._environment.solver().force_soundness = True
        self._check = stormpy.model_checking
        try:
            self.check()
            self.works = True
        except RuntimeError as error:  # Storm without Spot says so here
            print(f"storm: {str(error).splitlines()[0][:90]}", file=sys.stderr)

    def check(self) -> None:
        found = self._check(self._model, self._asked, environment=self._environment)
        self.value = float(found.get_value(self._model.initial_states[0]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="some of the models")
    parser.add_argument("--smoke", action="store_true", help="small sizes, one turn")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/ltl_speed.json"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    cases = [case for case in CASES if not asked.names or case.name in asked.names]
    rows = []
    print(f"{'model':14} {'states':>8} {'ours s':>8} {'storm s':>8} {'ratio':>7}  value")
    for case in cases:
        if not asked.smoke:
            measured(case, True, 1)
        row = measured(case, asked.smoke, 1 if asked.smoke else TURNS)
        rows.append(row)
        storm = "" if row.storm is None else f"{row.storm:8.3f}"
        print(
            f"{row.name:14} {row.states:8,} {row.ours:8.3f} {storm:>8} {row.ratio:>7}  "
            f"[{row.lower:.7g}, {row.upper:.7g}]{'' if row.agree else f'  Storm: {row.theirs}'}",
            flush=True,
        )
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0 if all(row.agree for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
