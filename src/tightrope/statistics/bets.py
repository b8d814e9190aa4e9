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
estimate t̂, with J the derivatives of the expressions there,

    a(o) = κ_c·J_o·h,   h along the least favourable direction for the value (`bet_direction`),

κ_c the largest power of two ≤ 1 for which no outcome of c with J_o·h < 0 loses more than a quarter of its
f_o(t̂). Σ m_o·f_o = 1 identically, so Σ m_o·J_o = 0 and Σ m_o·a(o) = 0 exactly, whatever h, κ and t̂ are. The
bet is that exact number; what is kept is a float64 number below it, and since log(1 + a/f) rises with a
everything that is derived from it errs on the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rounding import down, error_factor
from tightrope.statistics.bet_direction import shortened, with_the_domains_help
from tightrope.statistics.bet_schedule import Schedule
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
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


_SMALLEST = 2.0**-30
"""A signature whose bets would have to be cut down further has none."""


@dataclass(frozen=True, eq=False)
class Bets:
    """Bets for one side: from `batch` on, a number below the exact bet of every outcome.

    The exact bet is κ·J(t)·h; `exponent` is log2 κ by signature, and no bet where it is 1.
    """

    batch: int
    t: FloatArray
    h: FloatArray
    exponent: OffsetArray
    stake: FloatArray


@dataclass(frozen=True, eq=False)
class Bettor:
    """Places bets at an estimate, for the outcomes of a model."""

    maximiser: LikelihoodMaximiser
    outcomes: Outcomes

    def place(
        self, batch: int, t: FloatArray, wanted: FloatArray, information: FloatArray, level: float
    ) -> Bets:
        """The bets before `batch` for a bound on wanted·θ from below, at the price `level` = log(1/α)."""
        faces, bounds = self.maximiser.faces
        room = np.maximum(bounds - faces @ t, 1e-300)
        inverse = np.linalg.pinv(information, hermitian=True).astype(np.float64)
        normal = with_the_domains_help(wanted, inverse, faces, room, level)
        step = inverse @ normal
        length = float(normal @ step)
        h = shortened(step * math.sqrt(2.0 * level / length)) if length > 0.0 else np.zeros(len(t))
        return self.bets(batch, t, h)

    def bets(self, batch: int, t: FloatArray, h: FloatArray) -> Bets:
        """The bets κ·J(t)·h."""
        maximiser, outcomes = self.maximiser, self.outcomes
        linear, expression = maximiser.functions.linear, outcomes.expression
        slope = (linear @ (maximiser.jacobian(t) @ h))[expression]
        reach = maximiser.jacobian(np.abs(t)) @ np.abs(h)
        inexact = maximiser.coordinates.linear_errors(outcomes.model.expressions)
        error = error_factor(6 * linear.shape[1] + 24) * (np.abs(linear) @ reach)
        error = ((error + inexact @ reach) * (1.0 + 1e-9))[expression]
        probability = (linear @ maximiser.lifted(t) + maximiser.functions.constant)[expression]
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(slope < 0.0, -4.0 * slope / np.maximum(probability, 0.0), 0.0)
        most = np.maximum.reduceat(np.where(np.isnan(excess), np.inf, excess), outcomes.start[:-1])
        small = most * _SMALLEST <= 1.0
        exponent = np.where(most > 1.0, -np.ceil(np.log2(np.where(small, np.maximum(most, 1.0), 1.0))), 0.0)
        exponent = np.where(small, exponent, 1.0).astype(np.int64)
        factor = np.where(exponent > 0, 0.0, np.ldexp(1.0, exponent))[outcomes.signature]
        stake = np.where(error > 0.0, down(factor * (slope - error)), 0.0)
        return Bets(batch, t, h, exponent, np.where(factor > 0.0, stake, 0.0))


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


def information_at(
    maximiser: LikelihoodMaximiser, t: FloatArray, weight: FloatArray, growth: float
) -> FloatArray:
    """growth·(observed information of weights K_f at t) + the curvature of the smoothing."""
    used = np.flatnonzero(weight > 0.0)
    functions = maximiser.functions.take(used)
    slope = functions.linear @ maximiser.jacobian(t)
    probability = np.maximum(functions.linear @ maximiser.lifted(t) + functions.constant, 1e-300)
    observed = (slope * (weight[used] / probability**2)[:, None]).T @ slope
    result: FloatArray = growth * observed + maximiser.smoothing_at(t)
    return result


def parts_seen(batches: list[OffsetArray], plan: Schedule) -> tuple[OffsetArray, ...]:
    """How often each outcome was seen while each of the bets stood."""
    return tuple(
        np.sum([batches[b] for b in plan.part(number)], axis=0, dtype=np.int64)
        for number in range(len(plan.placed))
    )
