"""Bets on the ends of a policy's value, placed as the data came: what a slab is made of.

A bettor for the lower end of the value, one for the upper end, and a guard region, each at a level of its
own, miss the truth together with probability at most δ. How δ is split follows from what is asked, before
the data (`Levels`):

* *both ends* of a given policy's value: a tenth for the guard, the rest in halves for the bettors;
* *the guarantee alone*, where the policy is still to be found: one bettor, for the end that is guaranteed.
  The policy that is bet on may turn out to be another one than is found, with another gradient; then the
  guard is all that is left, and its share g is chosen so that this costs little. Seen from its estimate the
  likelihood region at level δ reaches as far as √(2·(R + log(1/δ))) standard deviations, R what predicting
  each batch from those before it has cost; at level g·δ it reaches √(2·(R + log(1/δ) + log(1/g))). With
  log(1/g) ≤ (1.025² − 1)·(R + log(1/δ)) that is 2.5 % farther. R is taken as 1.8 per free parameter, what it
  is on average after a pilot of a tenth, which is no bound: whatever R ≥ 0 is, the guard reaches at most
  √(1 + log(1/g)/log(1/δ)) times as far, and g is at least 0.6, so 3.6 % farther at δ = 0.001.

Every bet follows from the batches before it: the estimate, the information and the gradient of the value
are those of earlier data, and sizes follow from the plan (`tightrope.statistics.bet_schedule`), never from
how much came in the end.

Bets of several sizes at once, for data whose amount nobody planned.

A bet's size is best for one amount of data. With bets tuned to amounts N·4^j, j = 0, ±1, ±2, …, and weights
w_0 = ½, w_j = 1/(4|j|(|j|+1)), which sum to 1, any shares of the scales give a valid half-space
(`tightrope.statistics.mixtures`). Those in proportion to w_j·exp Λ_j at the point where it is tight are the
best. Leaving scales out of the sum only lowers the mixture, which is sound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.betting import Table
from tightrope.numerics.rounding import UNIT, down, up
from tightrope.numerics.value_slopes import MOST_CYCLIC
from tightrope.statistics.bet_schedule import Schedule, schedule
from tightrope.statistics.bets import Bets, EarlierBets, Ends, Gradient, Wagers, count_parts
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes

BASE = 4096.0
"""N where nothing was planned, in visits."""

_LOW, _HIGH = -4, 7
"""Scales from 16 to 67 million visits; the weights of the others are given away."""

_BELOW, _ABOVE = -7, 2
"""Scales around a plan, from a 16,384th of it to 16 times as much."""


@dataclass(frozen=True)
class Scale:
    """Bets for this amount of data, with this weight; `amount` is that of the plan where there is one."""

    amount: float
    weight: float


def scales(planned: float | None, middle: float | None = None) -> tuple[Scale, ...]:
    """One scale where the amount was planned, else all that share the stake, around `middle` where known."""
    if planned is not None:
        return (Scale(planned, 1.0),)
    if middle is not None:
        return tuple(Scale(middle * 4.0**j, _weight(j)) for j in range(_BELOW, _ABOVE + 1))
    return tuple(Scale(BASE * 4.0**j, _weight(j)) for j in range(_LOW, _HIGH + 1))


def _weight(j: int) -> float:
    return 0.5 if j == 0 else 1.0 / (4.0 * abs(j) * (abs(j) + 1.0))


GUARD_SHARE = 0.1
"""The guard's share of δ where both ends are bet on."""

LEAST_SHARE = 0.6
"""The guard's share of δ where one end is bet on is this or more."""

_LOSS = 0.025
_REGRET = 1.8
"""Nats per free parameter."""


@dataclass(frozen=True)
class Levels:
    """How δ is split: the level of the guard and those of the bettors for the lower and the upper end of the
    value, 0 where there is none; together at most δ.
    """

    guard: float
    lower: float
    upper: float

    @staticmethod
    def of(delta: float, ends: Ends = Ends.BOTH, dimension: int = 1) -> Levels:
        """The split for these ends of the value, in a model of so many free parameters."""
        if ends is Ends.BOTH:
            side = down(0.5 * (1.0 - GUARD_SHARE) * delta)
            return Levels(down(GUARD_SHARE * delta), side, side)
        reach = ((1.0 + _LOSS) ** 2 - 1.0) * (_REGRET * dimension - math.log(delta))
        share = max(round(math.exp(-reach), 2), LEAST_SHARE)
        one = down((1.0 - share) * delta * (1.0 - 2.0 * UNIT))
        return Levels(down(share * delta), *((one, 0.0) if ends is Ends.LOWER else (0.0, one)))

    @property
    def sides(self) -> tuple[float, float]:
        """The levels of both bettors."""
        return self.lower, self.upper

    def note(self) -> str:
        """One line for reports."""
        guard = f"δ is split: {self.guard:.3g} for the guard (a likelihood region)"
        if self.lower == self.upper:
            return f"{guard}, {self.lower:.3g} for each of the two bettors"
        return f"{guard}, {max(self.sides):.3g} for a bettor on the end that is guaranteed"


@dataclass(frozen=True, eq=False)
class Slab:
    """What the bettors did: their schedule, wagers by side and scale, and the price log(1/α) of each side.

    The sides are the lower and the upper end of the value; a side that nobody bets on has no wagers. `rows`
    are where each row of an enclosure is tight, and its shares of the scales: by round, then by side.
    `without` counts how often bets were due and there was no telling how the value changes.
    """

    plan: Schedule
    every: tuple[Scale, ...]
    wagers: tuple[tuple[Wagers, ...], tuple[Wagers, ...]]
    price: tuple[float, float]
    levels: Levels
    rows: tuple[tuple[FloatArray, FloatArray], ...] = ()
    without: int = 0

    @property
    def sides(self) -> tuple[int, ...]:
        """The sides that are bet on: 0 for the lower end, 1 for the upper one."""
        return tuple(side for side, wagers in enumerate(self.wagers) if wagers)

    @property
    def missing(self) -> tuple[str, ...]:
        """A line where bets are missing."""
        due = len(self.plan.placed)
        if not self.without:
            return ()
        return (
            f"no bets were placed {self.without} of the {due} times they were due, and the guard stands "
            "alone: the value to bet on is infinite there, or its equations are singular or too many (cycles "
            f"among more than {MOST_CYCLIC:,} states)",
        )


def place_bets(
    outcomes: Outcomes,
    counts: Counts,
    maximiser: LikelihoodMaximiser,
    gradient: Gradient,
    levels: Levels,
    earlier: EarlierBets | None = None,
) -> Slab:
    """All bets, each from the batches before it alone; `earlier` are those of an earlier look."""
    if counts.batches is None:
        raise InputError(
            "the slab bets on each batch from those before it, and these counts have no time-ordered batches",
            hint="keep the batch column of the data file, or use --region polytope",
        )
    known = earlier or EarlierBets()
    batches = known.pooled_batches(outcomes, counts)
    plan = schedule(counts, np.array([float(seen.sum()) for seen in batches]))
    every = scales(plan.planned, plan.middle)
    price = tuple(up(-math.log(one) * (1.0 + 1e-14)) if one > 0.0 else math.inf for one in levels.sides)
    table = Table(maximiser.search, outcomes.expression, outcomes.multiplicity, outcomes.start)
    informative = ~outcomes.model.expressions.is_constant
    size = len(maximiser.functions)
    weight, done, without = np.zeros(size), 0, 0
    bets: list[list[list[Bets]]] = [[[] for _ in every] for _ in range(2)]
    t = maximiser.start
    for batch, so_far in zip(plan.placed, plan.so_far, strict=True):
        for past in batches[done:batch]:
            weight += np.bincount(outcomes.expression, weights=past, minlength=size)
        done = batch
        if batch not in known.estimates:
            known.estimates[batch] = table.estimate(t, weight * informative)
        t = known.estimates[batch]
        share = None if plan.planned is None else so_far / (plan.planned + plan.so_far[0])
        along = gradient(maximiser.lifted(t), share)
        without += along is None
        slope = np.zeros(len(t)) if along is None else along @ maximiser.jacobian(t)
        for number, scale in enumerate(every):
            for side, wanted in enumerate((slope, -slope)):
                if not math.isfinite(price[side]):
                    continue
                key = batch, scale.amount, price[side], wanted.tobytes()
                if key not in known.bets:
                    information = table.information(t, weight * informative, scale.amount / so_far)
                    known.bets[key] = Bets(batch, t, table.place(t, wanted, information, price[side]))
                bets[side][number].append(known.bets[key])
    seen = count_parts(batches, plan)
    low, high = (
        tuple(Wagers(tuple(placed), seen) for placed in side) if math.isfinite(cost) else ()
        for side, cost in zip(bets, price, strict=True)
    )
    return Slab(plan, every, (low, high), (price[0], price[1]), levels, without=without)
