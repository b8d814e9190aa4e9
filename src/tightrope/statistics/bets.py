"""Bets against a parameter, and the wealth they make: the price of a bound that does not grow with dimension.

A visit draws outcome o of its signature c with probability m_o·f_o(θ*), f_o the outcome's expression, m_o its
multiplicity. A *bet* is a number a(o) for every outcome, known before the visit, with Σ_{o∈c} m_o·a(o) ≤ 0 in
every signature. At parameters θ a signature *takes part* in a bet where f_o(θ) ≥ 2·|a(o)| for all of its
outcomes with a(o) < 0, seen or not. The log-wealth of a bettor against θ is

    Λ(θ) = Σ over visits whose signature takes part at θ of log(1 + a(o)/f_o(θ)).

*Theorem.* For every α, with probability at least 1 − α, Λ(θ*) < log(1/α) at all times at once: under any
adaptive policy, any stopping rule. Given the past, and the choice made, a factor 1 + a/f has the mean
Σ_{f_o>0} m_o(f_o + a_o) = 1 + Σ_{f_o>0} m_o·a_o, or 1 where the signature does not take part. Taking part
makes f + a ≥ f/2 ≥ 0, and a ≥ 0 where f = 0, so the sum is at most Σ m_o·a_o ≤ 0. Hence exp Λ is a
nonnegative supermartingale from 1 at θ*, and Ville's inequality applies. Which policy chose the visits
cancels.

*The bets* of a batch follow from the batches before it (`tightrope.statistics.bet_schedule`): at the smoothed
estimate, along the least favourable direction for the value (`tightrope.numerics.betting`). They are exact
multiples of 2⁻⁵⁰, so Σ m_o·a(o) ≤ 0 holds exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from tightrope.data.counts import Counts
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.statistics.bet_schedule import Schedule
from tightrope.statistics.outcomes import Outcomes


class Ends(Enum):
    """Which ends of the value are bet on."""

    LOWER = "lower"
    UPPER = "upper"
    BOTH = "both"


class Gradient(Protocol):
    """The gradient of the value that is bet on, asked for in the order in which data come."""

    @property
    def words(self) -> str:
        """What is bet on, in one line, with what that assumes."""

    @property
    def ends(self) -> Ends:
        """Which ends of the value count."""

    def __call__(self, x: FloatArray, share: float | None) -> FloatArray | None:
        """∂V/∂x at coordinates x when this share of the plan has come (None where there is no plan); None
        where there is no telling: then no bet is placed.
        """


@dataclass(frozen=True, eq=False)
class Bets:
    """Bets for one side, placed at the estimate t: from `batch` on, the stake on every outcome."""

    batch: int
    t: FloatArray
    stake: FloatArray


@dataclass(frozen=True, eq=False)
class EarlierBets:
    """What growing data have settled: closed batches by outcome, estimates and bets by the batch before which
    they were made, bets also by what they were made for.

    Belongs to one model and one stream of data, of which every later look has the same first batches.
    """

    seen: list[OffsetArray] = field(default_factory=list)
    estimates: dict[int, FloatArray] = field(default_factory=dict)
    bets: dict[tuple[int, float, float, bytes], Bets] = field(default_factory=dict)

    def pooled_batches(self, outcomes: Outcomes, counts: Counts) -> list[OffsetArray]:
        """How often each outcome was seen in each batch; only the last one may still grow."""
        outcomes.check(counts)
        batches = counts.batches
        assert batches is not None
        last = len(batches) - 1
        for number in range(len(self.seen), last):
            self.seen.append(outcomes.pooled_part(*batches[number]))
        return [*self.seen[:last], outcomes.pooled_part(*batches[last])] if last >= 0 else []


@dataclass(frozen=True, eq=False)
class Wagers:
    """All bets of one side and one scale, with how often each outcome came while they stood."""

    bets: tuple[Bets, ...]
    seen: tuple[OffsetArray, ...]

    def log_wealth(self, outcomes: Outcomes, probability: FloatArray) -> float:
        """Λ at a point where the expressions have these probabilities, in plain float64."""
        total = 0.0
        f = probability[outcomes.expression]
        for bets, seen in zip(self.bets, self.seen, strict=True):
            stands = (bets.stake >= 0.0) | (f >= -2.0 * bets.stake)
            part = np.logical_and.reduceat(stands, outcomes.start[:-1])[outcomes.signature]
            met = np.flatnonzero((seen > 0) & part & (bets.stake != 0.0))
            with np.errstate(divide="ignore"):
                total += float(seen[met] @ np.log1p(bets.stake[met] / f[met]))
        return total


def count_parts(batches: list[OffsetArray], plan: Schedule) -> tuple[OffsetArray, ...]:
    """How often each outcome was seen while each of the bets stood."""
    return tuple(
        np.sum([batches[b] for b in plan.part(number)], axis=0, dtype=np.int64)
        for number in range(len(plan.placed))
    )
