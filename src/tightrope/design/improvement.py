"""Forecast of the data until an improvement over a baseline is proved; not a guarantee.

Future episodes are assumed to show every transition as often as past ones on average. At two, four, … times
the episodes the region is built from such counts, and `improve` certifies the gain of the policy that is best
at the estimate. In between, the logarithm of the number is interpolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Unpack

import numpy as np

from tightrope.data.counts import expected_counts
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.compare import differences, improve
from tightrope.learning.differences import LOGGED, UNIFORM, Comparison
from tightrope.learning.learn import plain_problem
from tightrope.learning.options import LearnKwargs, LearnOptions
from tightrope.learning.pipeline import counts_of
from tightrope.model.policy import PolicyGiven
from tightrope.numerics.record import Facts, Record
from tightrope.problem import Problem, problem_of

SHARE = 0.8
_MOST_DOUBLINGS = 20


@dataclass(frozen=True, eq=False, repr=False)
class ImprovementPlan(Record):
    """A forecast of episodes until an improvement is `proved`, and until `share` of what is `possible`."""

    now: Comparison
    possible: float
    episodes: int
    proved: float
    most: float
    share: float
    curve: tuple[tuple[int, float], ...]

    def _title_(self) -> str:
        return f"About {self.proved:,.0f} more episodes until an improvement is proved; a forecast"

    def _facts_(self) -> Facts:
        return [
            ("episodes so far", f"{self.episodes:,}"),
            ("proved now", f"{self.now.improvement:.4g}"),
            ("possible, estimated", f"{self.possible:.4g}"),
            (f"more until {self.share:.0%} of it", f"{self.most:,.0f}"),
        ]


def plan_improvement(
    problem: Problem,
    data: object,
    baseline: PolicyGiven | str = UNIFORM,
    *,
    delta: float = 0.001,
    share: float = SHARE,
    **options: Unpack[LearnKwargs],
) -> ImprovementPlan:
    """How many more episodes until an improvement over the baseline is proved, to all appearance."""
    if isinstance(baseline, str) and baseline == LOGGED:
        raise InputError(
            "a forecast needs a known baseline, and the behaviour policy of the log is unknown",
            hint="give the policy that collected the data, or run `improve` on the data you have",
        )
    question = plain_problem(problem_of(problem))
    counts = counts_of(data, question.base)
    episodes = counts.design.episodes
    if episodes is None or not episodes:
        raise InputError("the data contain no episodes, and the plan is for more episodes")
    now = improve(problem, counts, baseline=baseline, delta=delta, **options)
    table = now.table
    assert table is not None and table.baseline is not None
    aim = table.promise()
    if aim is None:
        raise CannotCertify("the data contradict the model, or the region does not support differences")
    policy, possible = aim
    sign, curve = (1.0 if table.maximises else -1.0), [(episodes, now.improvement)]
    words = LearnOptions.of("improve", options)
    for doubling in range(1, _MOST_DOUBLINGS + 1):
        if possible <= 0.0 or curve[-1][1] >= share * possible:
            break
        number = episodes << doubling
        later = expected_counts(counts, counts.transition / episodes, number)
        there = differences(problem, later, table.baseline, delta, words)
        there.cut([policy])
        interval = there.difference("", policy, wanted=(table.maximises, not table.maximises)).interval
        curve.append((number, interval.lower if sign > 0 else -interval.upper))
    return ImprovementPlan(
        now,
        possible,
        episodes,
        _crossing(curve, 0.0),
        _crossing(curve, share * possible) if possible > 0.0 else math.inf,
        share,
        tuple(curve),
    )


def _crossing(curve: list[tuple[int, float]], level: float) -> float:
    """More episodes until the improvement is above a level, interpolated in the logarithm of their number."""
    first = curve[0][0]
    if curve[0][1] > level:
        return 0.0
    for (before, low), (after, high) in pairwise(curve):
        if high > level:
            part = (level - low) / (high - low)
            return float(np.ceil(before * (after / before) ** part)) - first
    return math.inf
