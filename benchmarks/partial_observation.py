"""Both sides of the optimum over controllers that see observations only, beside Storm's.

    python benchmarks/partial_observation.py [--smoke] [--seconds 10]

Per question: our bounds, gap and CPU seconds, then Storm's two methods on the same file: unfolding of the
belief MDP, exact where it completes, else one-sided, and discretization, which bounds the other side. Storm
is asked neither step bounds nor untils. The exit code is 1 where two intervals do not meet.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import tightrope as tr
from tightrope.beliefs.solve import solve_partial

HERE = Path(__file__).parent / "pomdp"
QUESTIONS = (
    ("maze.prism", {}, 'Rmin=? [ F "goal" ]'),
    ("grid.prism", {"N": 4}, 'R{"steps"}min=? [ F "goal" ]'),
    ("grid.prism", {"N": 4}, 'Pmax=? [ !"bad" U "goal" ]'),
    ("refuel.prism", {"N": 6}, 'Pmax=? [ F "goal" ]'),
    ("refuel.prism", {"N": 8}, 'Pmax=? [ F "goal" ]'),
    ("channels.prism", {}, 'R{"lost"}min=? [ C<=20 ]'),
)
SLACK = 1e-6
"""Storm's values are of floating point."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="the first question alone")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--beliefs", type=int, default=60_000)
    given = parser.parse_args()
    apart = 0
    print(f"{'question':<48}{'ours':>26}{'gap':>10}{'CPU s':>8}   storm")
    for file, const, text in QUESTIONS[: 1 if given.smoke else None]:
        model = tr.load(HERE / file, const=const)
        objective = tr.Problem(model, text).objective
        begin = time.process_time()
        ours = solve_partial(model, objective, seconds=given.seconds, beliefs=given.beliefs)
        spent = time.process_time() - begin
        low, high, words = storm(HERE / file, const, text, given.seconds)
        meets = ours.lower <= high + SLACK and low <= ours.upper + SLACK
        apart += not meets
        name = f"{file.removesuffix('.prism')}{tuple(const.values()) if const else ''} {text}"
        bounds = f"[{ours.lower:.8g}, {ours.upper:.8g}]"
        print(f"{name:<48}{bounds:>26}{ours.upper - ours.lower:>10.1e}{spent:>8.2f}   {words}")
    return 1 if apart else 0


def storm(path: Path, const: dict[str, int], text: str, seconds: float) -> tuple[float, float, str]:
    """Storm's bounds of the same question, as far as it takes it."""
    if "U" in text or "<=" in text:
        return float("-inf"), float("inf"), "not asked"
    import stormpy
    from stormpy import pomdp

    program = stormpy.parse_prism_program(str(path))
    program, _ = stormpy.instantiate_constants(program, ",".join(f"{n}={v}" for n, v in const.items()))
    (asked,) = stormpy.parse_properties(text, program)
    model = stormpy.build_model(program, [asked])
    unfolded = pomdp.verify_with_belief_unfolding(
        model, asked, max_exploration_time=max(1, int(seconds)), max_exploration_size=100_000
    )
    rough = pomdp.verify_with_belief_discretization(model, asked, resolution=4)
    one, other = float(unfolded.value), float(rough.value)
    if unfolded.completed_exploration:
        return one, one, f"{one:.8g}, unfolding completed"
    low, high = (one, other) if "max" in text else (other, one)
    return low, high, f"[{low:.6g}, {high:.6g}]"


if __name__ == "__main__":
    sys.exit(main())
