"""Both sides of the optimum over controllers that see observations only, beside Storm's.

    python benchmarks/partial_observation.py [--smoke] [--only WORD] [--seconds 10]

Per question: our bounds, their distance in parts of the larger one, the CPU seconds of search and of the
certificate with its check, then Storm's two methods on the same file and with the same time: unfolding of the
belief MDP, exact where it completes, else one-sided, and discretization, which bounds the other side. Storm
is asked neither step bounds nor untils. The budget is CPU seconds: 10, or what the question has of its own.
The exit code is 1 where two intervals do not meet, ours and Storm's or ours and PRISM's of its own tests.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from unittest import mock

import tightrope as tr
from tightrope.beliefs.solve import solve_partial
from tightrope.certify.observed import certificate_of_controller
from tightrope_check.checker import check

HERE = Path(__file__).parent / "pomdp"
QUESTIONS: tuple[tuple[str, dict[str, int], str, float, tuple[float, float] | None], ...] = (
    ("maze.prism", {}, 'Rmin=? [ F "goal" ]', 2, None),
    ("long_maze.prism", {}, 'Rmin=? [ F "goal" ]', 2, (5.69230763, 5.6923077)),
    ("guess.prism", {"TRIES": 1}, 'Pmax=? [ F "named" ]', 2, (0.6, 0.6)),
    ("guess.prism", {"TRIES": 2}, 'Pmax=? [ F "named" ]', 2, (0.9, 0.9)),
    ("guess.prism", {"TRIES": 2}, 'R{"tries"}min=? [ F "named" ]', 2, (math.inf, math.inf)),
    ("guess.prism", {"TRIES": 4}, 'R{"tries"}min=? [ F "named" ]', 2, (1.5, 1.5)),
    ("crypt.prism", {}, 'Pmax=? [ F "right" ]', 2, None),
    ("crypt4.prism", {}, 'Pmax=? [ F "right" ]', 2, None),
    ("crypt4.prism", {}, 'Pmin=? [ F "right" ]', 2, None),
    ("crypt4.prism", {}, 'Pmax=? [ F "first" ]', 2, None),
    ("nrp.prism", {}, 'Pmax=? [ F "cheated" ]', 2, None),
    ("nrp.prism", {}, "Pmax=? [ F (stage=1&sent=last) ]", 2, None),
    ("maze.prism", {}, 'Pmax=? [ F<=5 "goal" ]', 2, None),
    ("maze.prism", {}, "Rmax=? [ C<=6 ]", 2, None),
    ("long_maze.prism", {}, 'Pmax=? [ F<=6 "goal" ]', 2, None),
    ("dark_grid.prism", {"N": 3, "MOVES": 0}, 'R{"steps"}min=? [ F "goal" ]', 2, None),
    ("dark_grid.prism", {"N": 3, "MOVES": 0}, 'Pmax=? [ F<=5 "goal" ]', 2, None),
    ("dark_grid.prism", {"N": 4, "MOVES": 0}, 'R{"steps"}min=? [ F "goal" ]', 2, None),
    ("dark_grid.prism", {"N": 4, "MOVES": 5}, 'Pmax=? [ F "goal" ]', 2, None),
    ("dark_grid.prism", {"N": 4, "MOVES": 5}, 'Pmax=? [ F "middle" ]', 2, None),
    ("dark_grid.prism", {"N": 4, "MOVES": 0}, 'Pmax=? [ F<=6 "middle" ]', 2, None),
    ("network.prism", {"K": 2, "SLOTS": 3}, 'R{"lost"}min=? [ F "over" ]', 2, (1.65602799, 1.65784001)),
    ("network.prism", {"K": 2, "SLOTS": 3}, 'R{"served"}max=? [ F "over" ]', 2, (2.34215999, 2.34397201)),
    ("priorities.prism", {"K": 2, "SLOTS": 3}, 'R{"worth"}max=? [ F "over" ]', 2, (36.32150313, 36.3301825)),
    ("grid.prism", {"N": 4}, 'R{"steps"}min=? [ F "goal" ]', 10, None),
    ("grid.prism", {"N": 4}, 'Pmax=? [ !"bad" U "goal" ]', 10, None),
    ("obstacle.prism", {"N": 4}, 'Pmax=? [ F "out" ]', 10, None),
    ("obstacle.prism", {"N": 5}, 'Pmax=? [ F "out" ]', 10, None),
    ("refuel.prism", {"N": 6}, 'Pmax=? [ F "goal" ]', 10, None),
    ("refuel.prism", {"N": 8}, 'Pmax=? [ F "goal" ]', 10, None),
    ("channels.prism", {}, 'R{"lost"}min=? [ C<=20 ]', 10, None),
    ("network.prism", {"K": 20, "SLOTS": 8}, 'R{"lost"}min=? [ F "over" ]', 7, None),
    ("priorities.prism", {"K": 20, "SLOTS": 8}, 'R{"worth"}max=? [ F "over" ]', 9, None),
    ("drone.prism", {"N": 4, "R": 1}, 'Pmax=? [ F "there" ]', 25, None),
)
"""File, constants, question, CPU seconds of search (the proof comes on top), and what PRISM says in its own
tests of the same process."""

SLACK = 1e-6
"""Storm's values are of floating point."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="the first question alone")
    parser.add_argument("--only", default="", help="questions whose line has this word")
    parser.add_argument("--seconds", type=float, help="instead of the budget of each question")
    given = parser.parse_args()
    apart = 0
    print(f"{'question':<52}{'ours':>24}{'apart':>9}{'CPU s':>7}{'proof':>7}   others")
    for file, const, text, budget, prism in QUESTIONS[: 1 if given.smoke else None]:
        values = ",".join(map(str, const.values()))
        name = f"{file.removesuffix('.prism')}{f'({values})' if values else ''} {text}"
        if given.only not in name:
            continue
        seconds = given.seconds or budget
        model = tr.load(HERE / file, const=const)
        objective = tr.Problem(model, text).objective
        begin = time.process_time()
        with mock.patch.object(time, "perf_counter", time.process_time):
            ours = solve_partial(model, objective, seconds=seconds, beliefs=1_000_000)
        spent = time.process_time() - begin
        begin = time.process_time()
        valid = math.isinf(ours.upper) or check(certificate_of_controller(ours.graph, ours.controller)).valid
        proof = time.process_time() - begin
        low, high, words = storm(HERE / file, const, text, seconds)
        others = [(low, high)] if prism is None else [(low, high), prism]
        apart += not valid or any(ours.lower > b + SLACK or a > ours.upper + SLACK for a, b in others)
        bounds = f"[{ours.lower:.7g}, {ours.upper:.7g}]"
        wide = 0.0 if ours.lower == ours.upper else (ours.upper - ours.lower) / ours.upper
        print(f"{name:<52}{bounds:>24}{wide:>9.1e}{spent:>7.1f}{proof:>7.1f}   {words}", flush=True)
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
