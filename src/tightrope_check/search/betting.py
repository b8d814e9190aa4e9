"""Which bets to place against parameters: a direction with the domain's help, and stakes on outcomes.

Whatever comes out is a sound bet (stakes are multiples of 2⁻⁵⁰ that sum to at most 0 per signature): it
decides where a region is narrow, never whether it holds. Results are functions of the arguments alone, and
estimates are rounded, so that last digits, in which computers differ, do not grow into other bets. How
directions, information and policies are chosen: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope_check.arrays import BoolArray, FloatArray, Indices, OffsetArray
from tightrope_check.search.smoothed_likelihood import SmoothedLikelihood
from tightrope_check.search.value_slopes import (
    GraphQuestion,
    best_at_points,
    best_policy,
    best_steps,
    met_choices,
    step_slopes,
    value_slopes,
)

FROZEN_FROM = 0.25
"""The share of the plan after which the policy that is bet on stays."""

MOST_TARGETS, POINTS, ALIKE = 3, 32, 0.999
"""How many policies are bet on, how many points they are looked for at, and the cosine from which on two
gradients are one."""

MOST_MOVES = 2**20
"""Points are fewer where all of them together have more transitions than this, counted once for every step
of a bounded question."""

SMOOTHED = 2.0**-6
"""The part of the smoothing's curvature that counts as information."""

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
    each of probability multiplicity[o]·f for f = expression[o]."""

    likelihood: SmoothedLikelihood
    expression: Indices
    multiplicity: Indices
    start: OffsetArray
    smoothed: float = SMOOTHED

    @cached_property
    def bounded(self) -> BoolArray:
        """Where a signature has few enough successors."""
        return np.add.reduceat(self.multiplicity, self.start[:-1]) <= MOST_SUCCESSORS

    def estimate(self, begin: FloatArray, weight: FloatArray) -> FloatArray:
        """The smoothed estimate for weights of expressions, in few bits where these keep it inside."""
        likelihood = self.likelihood
        estimate = likelihood.maximise(likelihood.maximise(begin, weight), weight)
        short = shorten(estimate, _POINT_BITS)
        room, left = (likelihood.bounds - likelihood.faces @ t for t in (estimate, short))
        return short if np.all(left > 0.5 * room) else estimate

    def information(
        self, t: FloatArray, weight: FloatArray, growth: float, smoothed: float | None = None
    ) -> FloatArray:
        """growth·(observed information of weights K_f at t) + a part of the curvature of the smoothing."""
        likelihood, used = self.likelihood, np.flatnonzero(weight > 0.0)
        x, jacobian = likelihood.lifted(t)
        slope = likelihood.linear[used] @ jacobian
        probability = np.maximum(likelihood.linear[used] @ x + likelihood.constant[used], 1e-300)
        observed = (slope * (weight[used] / probability**2)[:, None]).T @ slope
        part = self.smoothed if smoothed is None else smoothed
        result: FloatArray = growth * observed + part * likelihood.smoothing(t)
        return result

    def around(self, t: FloatArray, weight: FloatArray, expression: Indices) -> PointsAround:
        """Points about a standard deviation away from an estimate for these weights, inside the domain;
        `expression` is that of every transition."""
        likelihood, information = self.likelihood, self.information(t, weight, 1.0, 1.0)
        unit = 1.0 / np.sqrt(np.diag(information))  # parameters may be of very different sizes
        try:
            root = np.linalg.cholesky(np.linalg.inv(information * unit[:, None] * unit))
        except np.linalg.LinAlgError:
            root = np.eye(len(t))
        root = root * unit[:, None]
        moves, room = signs_of(len(t)) @ root.T, likelihood.bounds - likelihood.faces @ t
        reach = (moves @ likelihood.faces.T / np.maximum(room, 1e-300)).max(axis=1)
        points = t + moves * np.minimum(1.0, 0.9 / np.maximum(reach, 1e-300))[:, None]
        return PointsAround(likelihood, expression, t, root, shorten(points, _POINT_BITS))

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
        return (units * GRID).astype(np.float64)


def signs_of(size: int) -> FloatArray:
    """[POINTS, size] signs, 1 or −1: those of a coordinate are a Walsh function, of index 2^j in the field
    with POINTS = 2⁵ elements, so that up to 31 coordinates are uncorrelated and the first five take all
    signs."""
    index = [1]
    while len(index) < size:
        index.append(2 * index[-1] ^ (37 if index[-1] >= 16 else 0))
    return np.array([[1.0 - 2.0 * ((i & k).bit_count() % 2) for k in index] for i in range(POINTS)])


@dataclass(frozen=True, eq=False)
class PointsAround:
    """Points around an estimate t, root·rootᵀ their spread."""

    likelihood: SmoothedLikelihood
    expression: Indices
    t: FloatArray
    root: FloatArray
    points: FloatArray

    def probability(self, points: int) -> FloatArray:
        """[points, transitions] at the first points."""
        linear, constant = self.likelihood.linear, self.likelihood.constant
        every = [linear @ self.likelihood.lifted(point)[0] + constant for point in self.points[:points]]
        return np.clip(np.array(every).reshape(points, len(linear)), 0.0, 1.0)[:, self.expression]

    def direction(self, slopes: Slopes) -> FloatArray:
        """A gradient seen from t, as long as 1 and orthogonal to another where the two values are estimated
        independently."""
        linear = self.likelihood.linear
        along = np.bincount(self.expression[slopes[0]], slopes[1], len(linear)) @ linear
        seen = along @ self.likelihood.lifted(self.t)[1] @ self.root
        return seen / max(float(np.linalg.norm(seen)), 1e-300)


Slopes = tuple[OffsetArray, FloatArray]
"""(transitions, slopes of a value along each)."""

_Policy = FloatArray | tuple[OffsetArray, ...]
"""Weights of choices, or a choice for every state and step."""


class TargetPolicies:
    """The policies whose values are bet on, asked for in the order in which data come."""

    def __init__(self, question: GraphQuestion, given: FloatArray | None = None):
        """`given`: the weights of its choices."""
        self.question, self.frozen = question, given is not None
        self.held: tuple[_Policy, ...] = () if given is None else (given,)
        steps = (question.upper_steps or 0) if question.is_bounded else 0
        self.points = min(POINTS, MOST_MOVES // ((1 + steps) * max(len(question.successor), 1)))

    def slopes(
        self, probability: FloatArray, share: float | None, nearby: PointsAround | None = None
    ) -> list[Slopes] | None:
        """The slopes of each value at these probabilities of transitions, when this share of the plan has
        come (None where there is no plan); None where there is no telling. With points `nearby` there are
        several policies."""
        held, ended = self.held, share is not None and share >= 1.0
        if not held or not (self.frozen or (ended and len(held) > 1)):
            best = self._best(probability, held[0] if held else None)
            if best is None:
                return None
            held = (best,)
            if nearby is not None and not ended:
                held = self._likely(best, probability, nearby)
            if not ended:
                self.held, self.frozen = held, share is not None and share >= FROZEN_FROM
        every = [self._slopes(policy, probability) for policy in held]
        return None if any(one is None for one in every) else [one for one in every if one is not None]

    def _best(self, probability: FloatArray, begin: _Policy | None) -> _Policy | None:
        if self.question.is_bounded:
            return best_steps(self.question, probability)
        start = None if begin is None else np.flatnonzero(begin)
        choice = best_policy(self.question, probability, start)
        return None if choice is None else self._taking(choice)

    def _taking(self, choice: OffsetArray) -> FloatArray:
        weight = np.zeros(len(self.question.owner))
        weight[choice] = 1.0
        return weight

    def _best_at(self, probability: FloatArray, begin: _Policy) -> list[_Policy]:
        """Policies that are best at some of these points [points, transitions], as far as they are found."""
        if self.question.is_bounded or self.question.layers is None:
            every = (self._best(one, begin) for one in probability)
            return [policy for policy in every if policy is not None]
        return [self._taking(choice) for choice in best_at_points(self.question, probability)]

    def _slopes(self, policy: _Policy, probability: FloatArray) -> Slopes | None:
        if isinstance(policy, tuple):
            return step_slopes(self.question, policy, probability)
        return value_slopes(self.question, policy, probability)

    def _likely(self, best: _Policy, probability: FloatArray, nearby: PointsAround) -> tuple[_Policy, ...]:
        """The policies to bet on: as many as before, if there were any."""
        groups: list[tuple[_Policy, FloatArray]] = []
        count, known = list[int](), dict[bytes, FloatArray | None]()

        def group_of(policy: _Policy, opens: bool) -> int | None:
            """The number of its group; None for a policy without slopes, or like none if none `opens`."""
            name = self._name(policy)
            if name not in known:
                slopes = self._slopes(policy, probability)
                known[name] = None if slopes is None else nearby.direction(slopes)
            seen = known[name]
            if seen is None:
                return None
            for number, (_, other) in enumerate(groups):
                if float(seen @ other) > ALIKE:
                    return number
            if not opens:
                return None
            groups.append((policy, seen))
            count.append(0)
            return len(groups) - 1

        for policy in (best, *self._best_at(nearby.probability(self.points), best)):
            group = group_of(policy, opens=True)
            if group is not None:
                count[group] += 1
        first = group_of(best, opens=False)
        order = sorted(range(len(groups)), key=lambda group: (group != first, -count[group]))
        if not groups:
            return self.held or (best,)
        if not self.held:
            return tuple(groups[group][0] for group in order[:MOST_TARGETS])
        order = order[: len(self.held)]
        own = [group_of(policy, opens=False) for policy in self.held]
        free = [group for group in order if group not in own]
        for place, group in enumerate(own):
            if group not in order or group in own[:place]:
                own[place] = free.pop(0) if free else order[0]
        return tuple(groups[group or 0][0] for group in own)

    def _name(self, policy: _Policy) -> bytes:
        """The same for policies that differ in states only that are never met."""
        if isinstance(policy, tuple):
            return np.array(policy).tobytes()
        return met_choices(self.question, policy).tobytes()


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
