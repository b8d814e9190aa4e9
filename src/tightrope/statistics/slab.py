"""Bets on both ends of a policy's value, placed as the data came: what a slab is made of.

One bettor looks for the lower end of the value and one for the upper end, each at level α, beside a guard
region at a level of its own; together they miss the truth with probability at most δ. Every bet follows from
the batches before it: the estimate, the information and the gradient of the value are those of earlier data,
and sizes follow from the plan (`tightrope.statistics.bet_schedule`), never from how much came in the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import down, up
from tightrope.statistics.bet_schedule import Schedule, schedule
from tightrope.statistics.bets import Bets, Bettor, Gradient, Wagers, information_at, parts_seen
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.scales import Scale, scales

GUARD_SHARE = 0.1
SLAB_SHARE = 0.9


@dataclass(frozen=True)
class Levels:
    """How δ is split: the guard's level and that of each bettor; together at most δ."""

    guard: float
    side: float

    @staticmethod
    def of(delta: float) -> Levels:
        return Levels(down(GUARD_SHARE * delta), down(0.5 * SLAB_SHARE * delta))

    def note(self) -> str:
        return (
            f"δ is split: {self.guard:.3g} for the guard (a likelihood region), {self.side:.3g} for each of "
            "the two bettors"
        )


@dataclass(frozen=True, eq=False)
class Slab:
    """What the bettors did: their schedule, wagers by side and scale, and the price log(1/α) of each."""

    plan: Schedule
    every: tuple[Scale, ...]
    wagers: tuple[tuple[Wagers, ...], tuple[Wagers, ...]]
    level: float
    levels: Levels


def place_bets(
    outcomes: Outcomes,
    counts: Counts,
    maximiser: LikelihoodMaximiser,
    gradient: Gradient,
    levels: Levels,
) -> Slab:
    """All bets of both sides, each from the batches before it alone."""
    if counts.batches is None:
        raise InputError(
            "the slab bets on each batch from those before it, and these counts have no time-ordered batches",
            hint="keep the batch column of the data file, or use --region polytope",
        )
    batches = outcomes.pooled_batches(counts)
    plan = schedule(counts, np.array([float(seen.sum()) for seen in batches]))
    every = scales(plan.planned)
    level = up(-math.log(levels.side) * (1.0 + 1e-14))
    bettor = Bettor(maximiser, outcomes)
    informative = ~outcomes.model.expressions.is_constant
    size = len(maximiser.functions)
    weight, done = np.zeros(size), 0
    bets: list[list[list[Bets]]] = [[[] for _ in every] for _ in range(2)]
    t: FloatArray | None = None
    for batch, so_far in zip(plan.placed, plan.so_far, strict=True):
        for earlier in batches[done:batch]:
            weight += np.bincount(outcomes.expression, weights=earlier, minlength=size)
        done = batch
        t = maximiser.estimate(weight * informative, t)
        share = None if plan.planned is None else so_far / (plan.planned + plan.so_far[0])
        along = gradient(maximiser.lifted(t), share)
        slope = np.zeros(len(t)) if along is None else along @ maximiser.jacobian(t)
        for number, scale in enumerate(every):
            information = information_at(maximiser, t, weight * informative, scale.amount / so_far)
            for side, wanted in enumerate((slope, -slope)):
                placed = bettor.place(batch, t, wanted, information, level)
                bets[side][number].append(placed)
    seen = parts_seen(batches, plan)
    low, high = (tuple(Wagers(tuple(placed), seen) for placed in side) for side in bets)
    return Slab(plan, every, (low, high), level, levels)
