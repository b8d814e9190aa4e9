"""The test of the model that `learn` makes, for `watch_experiment.py`: false alarms, and what it finds.

*Halfway*: episodes toss coins one after the other, each with a parameter of its own, and the first coin
changes in the middle of the log.

Data sets come from the same small model as the streams: choices in turn or chosen by a policy that chases
deviations, inside the domain and on its boundary, in batches in the order of time or without order.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import tightrope as tr
from tightrope.data.counts import Batches, Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.episode_log import EpisodeLog
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.e_process import BatchTest, weigh_batches
from tightrope.monitoring.examination import weigh_fit
from watch_streams import chances, draw, small

Row = dict[str, Any]
LEVELS = (0.05, 0.01)
EVENTS = 240
SIZES = (1000, 3000, 10_000, 30_000)
CASES = {
    "inside, in turn": (("3/5", "1/5"), False),
    "boundary, in turn": (("9/10", "1/20"), False),
    "inside, adaptive": (("3/5", "1/5"), True),
    "boundary, adaptive": (("1/10", "9/20"), True),
}
WRONG = ("nothing", "coefficient", "tie")


def counted(model: ParametricMDP, events: np.ndarray, ordered: bool) -> Counts:
    """Batches of doubled size, or one."""
    ends = [0, len(events)]
    if ordered:
        ends = [0, *(15 << k for k in range(20) if 15 << k < len(events)), len(events)]
    parts = [np.unique(events[low:high], return_counts=True) for low, high in itertools.pairwise(ends)]
    design = SamplingDesign(SamplingKind.ADAPTIVE)
    return Counts.from_batches(Batches.from_parts(parts), model.transition_start, design, model.hash())


def false_fits(case: str, block: int, sets: int) -> Row:
    """Data sets of the model whose largest evidence at any look reaches 1/α; every other one has no order."""
    model = small()
    point, adaptive = CASES[case]
    chance = chances(model, *point)
    above = dict.fromkeys(map(str, LEVELS), 0)
    for number in range(sets):
        rng = np.random.default_rng([block, number, list(CASES).index(case), 3])
        counts = counted(model, draw(model, chance, EVENTS, rng, adaptive), ordered=number % 2 == 0)
        largest = max(log_e for _, log_e in weigh_batches(BatchTest(model, counts), counts))
        for alpha in LEVELS:
            above[str(alpha)] += largest >= math.log(1 / alpha)
    return {"streams": sets, "above": above}


def power(what: str, size: int, run: int) -> Row:
    """Whether `learn` would say that its model is contradicted, and by what, with and without batches.

    Of two tied choices one departs: either may be named, which of them is wrong the tie does not say.
    """
    model = small()
    structure = model.structure
    chance = chances(model, "2/5", "1/5")
    choice = {
        (int(structure.choice_state[c]), structure.action_name(c)): int(model.transition_start[c])
        for c in range(model.choices)
    }
    expected: tuple[tuple[str, str], ...] = ()
    if what == "coefficient":  # p/2 is 0.7·p
        low = choice[1, "d"]
        chance[low : low + 2] = [0.28, 0.72] if chance[low] < 0.5 else [0.72, 0.28]
        expected = (("expression", "as in choice 'd' of state (s=1)"),)
    elif what == "tie":
        low = choice[1, "a"]
        chance[low : low + 2] = [0.5, 0.5]
        expected = (("tie", "choice 'a' of state (s=1)"), ("tie", "choice 'a' of state (s=0)"))
    events = draw(model, chance, size, np.random.default_rng([run, size, 11]))
    found: Row = {}
    for name, ordered in (("batches", True), ("no order", False)):
        fit = weigh_fit(model, counted(model, events, ordered))
        first = (fit.suspects[0].kind, fit.suspects[0].text) if fit.suspects else None
        found[name] = {"alarm": fit.alarm, "first": first in expected, "log_e": round(fit.log_e_value, 2)}
    return found


HALFWAY = ((1, 500), (1, 2000), (4, 2000), (1, 20_000))
"""Coins, and episodes."""

FIRST, CHANGE = 0.5, 7.0
"""The first coin in the beginning; by how many standard errors of the difference of halves it changes."""


def coins(number: int) -> ParametricMDP:
    """Coins that are tossed one after the other."""
    parameters = tr.Parameters.box(**{f"p{i}": (0.01, 0.99) for i in range(number)})
    symbols = parameters.symbols()
    rows: list[Any] = []
    for i, p in enumerate(symbols):
        rows += [(3 * i, "", {3 * i + 1: p, 3 * i + 2: 1 - p})]
        rows += [(3 * i + side, "", {3 * i + 3: 1}) for side in (1, 2)]
    return tr.build_from_rows([*rows, (3 * number, "", {3 * number: 1})], parameters)


def second(episodes: int, errors: float) -> float:
    """The first coin in the second half, which differs by so many standard errors."""
    low, high = 0.0, FIRST
    for _ in range(60):
        coin = 0.5 * (low + high)
        mean = 0.5 * (FIRST + coin)
        far = (FIRST - coin) / math.sqrt(4.0 * mean * (1.0 - mean) / episodes) > errors
        low, high = (coin, high) if far else (low, coin)
    return 0.5 * (low + high)


def halfway(number: int, episodes: int, errors: float, block: int, sets: int) -> Row:
    """Logs whose first coin changes halfway, and how many of them contradict the model at α = 0.001."""
    model = coins(number)
    chance = np.full((episodes, number), 0.3)
    chance[:, 0] = FIRST
    chance[episodes // 2 :, 0] = second(episodes, errors)
    found = 0
    for run in range(sets):
        rng = np.random.default_rng([number, episodes, int(10 * errors), block, run])
        lost = (rng.random((episodes, number)) >= chance).astype(np.int64)
        base = 4 * np.arange(number)
        transition = np.stack([base + lost, base + 2 + lost], axis=2).reshape(-1)
        episode = np.repeat(np.arange(episodes), 2 * number)
        log = EpisodeLog.of_episodes(transition, episode, episodes, model.structure, model.hash())
        found += weigh_fit(model, log.counts(model, SamplingDesign(SamplingKind.ADAPTIVE))).alarm
    return {"coins": number, "episodes": episodes, "errors": errors, "sets": sets, "found": found}
