"""Which bets to place against parameters: a direction with the domain's help, and stakes on outcomes.

*Direction.* A bet along h narrows n·θ, n = I·h up to its length, to a half width √(2L·nᵀI⁻¹n) around the
estimate t̂ (I the information that the data will hold, L = log(1/α)). For a bound on c·θ from above, any
n = −c + Rᵀν with ν ≥ 0 will do where R·θ ≤ r holds on the domain:

    c·θ = ν·Rθ − n·θ ≤ ν·r − n·t̂ + half width  =  c·t̂ + ν·(r − R·t̂) + √(2L·nᵀI⁻¹n).

The best ν minimises the right side, a convex function; one ν at a time has its minimum in closed form, and a
few rounds over the faces end near the best of all. Where no face is near, ν = 0 and n = ∓c. Every component
of h is rounded to 12 bits.

*Stakes.* With J the derivatives of the expressions at t̂ the stake on outcome o of signature c is a(o) =
κ_c·J_o·h, κ_c the largest power of two ≤ 1 for which no outcome of c with J_o·h < 0 loses more than a quarter
of its f_o(t̂). Σ m_o·f_o = 1 identically, so Σ m_o·J_o = 0. Stakes are whole multiples of 2⁻⁵⁰, rounded down,
and one of each signature is lowered until Σ m_o·a(o) ≤ 0 exactly: that is all that makes a bet fair.

*Policy.* What is bet on is the value of one policy: a given one, or the best one at the estimate each time
bets are placed, until a share of the plan has come. From then on it stays, since bets on policies with
different gradients are narrow for none of them.

Whatever comes out is a sound bet: it decides where a region is narrow, never whether it holds. What is relied
on is that results are functions of the arguments alone. Estimates are rounded, too, so that last digits, in
which computers differ, do not grow into other bets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.question import GraphQuestion
from tightrope.numerics.smoothed_likelihood import SmoothedLikelihood
from tightrope.numerics.value_slopes import best_policy, best_steps, step_slopes, value_slopes

FROZEN_FROM = 0.25
"""The share of the plan after which the policy that is bet on stays."""

GRID = 2.0**-50
MOST_SUCCESSORS = 4096
"""Of a choice that is bet on: sums of its stakes in units of the grid are far below 2⁶³."""

_ROUNDS = 400
_CLOSE = 1e-13
_BITS, _POINT_BITS = 12, 28
_LEAST_HELP = 1e-6
_SMALLEST = 2.0**-30
"""A signature whose stakes would have to be cut down further has none."""


@dataclass(frozen=True, eq=False)
class BetTable:
    """What is bet on: the expressions of a likelihood, and outcomes o of signatures, start[k] to start[k+1],
    each of probability multiplicity[o]·f for f = expression[o].
    """

    likelihood: SmoothedLikelihood
    expression: Any
    multiplicity: Any
    start: OffsetArray

    @cached_property
    def bounded(self) -> Any:
        """Where a signature has few enough successors."""
        return np.add.reduceat(self.multiplicity, self.start[:-1]) <= MOST_SUCCESSORS

    def estimate(self, begin: FloatArray, weight: FloatArray) -> FloatArray:
        """The smoothed estimate for weights of expressions, in few bits where these keep it inside."""
        likelihood = self.likelihood
        estimate = likelihood.maximise(likelihood.maximise(begin, weight), weight)
        short = shorten(estimate, _POINT_BITS)
        room, left = (likelihood.bounds - likelihood.faces @ t for t in (estimate, short))
        return short if np.all(left > 0.5 * room) else estimate

    def information(self, t: FloatArray, weight: FloatArray, growth: float) -> FloatArray:
        """growth·(observed information of weights K_f at t) + the curvature of the smoothing."""
        likelihood, used = self.likelihood, np.flatnonzero(weight > 0.0)
        x, jacobian = likelihood.lifted(t)
        slope = likelihood.linear[used] @ jacobian
        probability = np.maximum(likelihood.linear[used] @ x + likelihood.constant[used], 1e-300)
        observed = (slope * (weight[used] / probability**2)[:, None]).T @ slope
        result: FloatArray = growth * observed + likelihood.smoothing(t)
        return result

    def place(self, t: FloatArray, wanted: FloatArray, information: FloatArray, level: float) -> FloatArray:
        """Stakes for a bound on wanted·θ from below, at the price `level` = log(1/α)."""
        likelihood = self.likelihood
        room = np.maximum(likelihood.bounds - likelihood.faces @ t, 1e-300)
        inverse = np.linalg.pinv(information, hermitian=True).astype(np.float64)
        normal = with_the_domains_help(wanted, inverse, likelihood.faces, room, level)
        step = inverse @ normal
        length, alone = float(normal @ step), float(wanted @ inverse @ wanted)
        if not _LEAST_HELP * alone < length < np.inf:  # the domain does it all, and what is left is rounding
            return np.zeros(len(self.expression))
        return self.stakes(t, shorten(step * math.sqrt(2.0 * level / length), _BITS))

    def stakes(self, t: FloatArray, h: FloatArray) -> FloatArray:
        """κ·J(t)·h in units of the grid, no better than fair."""
        likelihood, begin = self.likelihood, self.start[:-1]
        x, jacobian = likelihood.lifted(t)
        slope = (likelihood.linear @ (jacobian @ h))[self.expression]
        probability = (likelihood.linear @ x + likelihood.constant)[self.expression]
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(slope < 0.0, -4.0 * slope / np.maximum(probability, 0.0), 0.0)
        most = np.maximum.reduceat(np.where(np.isnan(excess), np.inf, excess), begin)
        stands = (most * _SMALLEST <= 1.0) & self.bounded
        cut = -np.ceil(np.log2(np.where(stands, np.maximum(most, 1.0), 1.0)))
        factor = np.where(stands, np.exp2(cut), 0.0).repeat(np.diff(self.start))
        units = np.floor(factor * slope / GRID).astype(np.int64)
        over = np.maximum(np.add.reduceat(self.multiplicity * units, begin), 0)
        units[begin] -= -(-over // self.multiplicity[begin])
        result: FloatArray = units * GRID
        return result


class TargetPolicy:
    """The policy whose value is bet on, asked for in the order in which data come."""

    def __init__(self, question: GraphQuestion, given: FloatArray | None = None):
        """`given`: the weights of its choices."""
        self.question, self.weight, self.frozen = question, given, given is not None
        self.steps: tuple[OffsetArray, ...] | None = None

    def slopes(self, probability: FloatArray, share: float | None) -> tuple[OffsetArray, FloatArray] | None:
        """(transitions, slopes of the value along each) at these probabilities of transitions, when this
        share of the plan has come (None where there is no plan); None where there is no telling.
        """
        weight, ended = self.weight, share is not None and share >= 1.0
        if weight is None and self.question.is_bounded:
            return self._step_slopes(probability, share, ended)
        if weight is None or not (self.frozen or ended):
            begin = None if weight is None else np.flatnonzero(weight)
            choice = best_policy(self.question, probability, begin)
            if choice is None:
                return None
            weight = np.zeros(len(self.question.owner))
            weight[choice] = 1.0
            if not ended:
                self.weight, self.frozen = weight, share is not None and share >= FROZEN_FROM
        return value_slopes(self.question, weight, probability)

    def _step_slopes(
        self, probability: FloatArray, share: float | None, ended: bool
    ) -> tuple[OffsetArray, FloatArray] | None:
        """The same where steps are bounded, and the best policy has a choice for every state and step."""
        steps = self.steps
        if steps is None or not (self.frozen or ended):
            steps = best_steps(self.question, probability)
            if steps is None:
                return None
            if not ended:
                self.steps, self.frozen = steps, share is not None and share >= FROZEN_FROM
        return step_slopes(self.question, steps, probability)


def with_the_domains_help(
    wanted: FloatArray, inverse: FloatArray, faces: FloatArray, room: FloatArray, level: float
) -> FloatArray:
    """n = wanted + facesᵀ·ν with ν ≥ 0 that minimises √(2·level·nᵀ·inverse·n) + ν·room."""
    scale = math.sqrt(2.0 * level)
    bent = inverse @ faces.T
    square = np.einsum("kj,jk->k", faces, bent)
    useful = np.flatnonzero((square > 0.0) & (room < scale * np.sqrt(np.maximum(square, 0.0))))
    share = np.zeros(len(room))
    normal = wanted.copy()
    for _ in range(_ROUNDS):
        before = share.copy()
        for k in useful.tolist():
            own = share[k]
            rest = normal - own * faces[k]
            middle = float(rest @ bent[:, k]) / square[k]
            spread = max(float(rest @ inverse @ rest) / square[k] - middle**2, 0.0)
            slope = float(room[k]) / (scale * math.sqrt(square[k]))
            best = max(0.0, -middle - math.sqrt(spread) * slope / math.sqrt(1.0 - slope**2))
            if best != own:
                share[k] = best
                normal = rest + best * faces[k]
        if np.all(np.abs(share - before) <= _CLOSE * (1.0 + np.abs(share))):
            break
    return normal


def shorten(vector: FloatArray, bits: int = _BITS) -> FloatArray:
    """Every component rounded to so many significant bits."""
    mantissa, exponent = np.frexp(vector)
    result: FloatArray = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
    return result
