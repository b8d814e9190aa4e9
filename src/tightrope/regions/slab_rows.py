"""Rows of a slab (betting region): half-spaces that contain what bets leave of the base likelihood region.

What is left has Λ − μ·ℓ < L − μ·T for every μ ≥ 0. Between safe bounds of every expression a line is below Λ
− μ·ℓ: tangents where bets won, chords and tangents (`_Losing`) where they lost. Any choice gives a valid row;
sums are rounded down. Good points and μ are found by a barrier method in plain float64. Proof:
docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up
from tightrope.statistics.bets import Wagers
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.outcomes import Outcomes

_LOG = 8.0 * UNIT
"""Relative error of a logarithm of one plus something, and of what is made of it in one step."""


@dataclass(frozen=True, eq=False)
class Line:
    """A function of all expressions f is at least constant + slope·f within the bounds of the line."""

    slope: FloatArray
    constant: float


@dataclass(frozen=True, eq=False)
class Terms:
    """Log-wealth is at least Σ times·log(1 + stake/f) + constant, f = expression."""

    stake: FloatArray
    times: FloatArray
    expression: OffsetArray
    constant: float


def pool_terms(
    parts: Sequence[tuple[float, Wagers]], outcomes: Outcomes, lower: FloatArray, upper: FloatArray
) -> Terms:
    """The terms of wagers that have shares in a mixture, where lower ≤ f ≤ upper (by expression)."""
    expression = outcomes.expression
    low, high = lower[expression], upper[expression]
    stakes, times, owners, worst = list[FloatArray](), list[FloatArray](), list[OffsetArray](), list[float]()
    for share, wagers in parts:
        for bets, seen in zip(wagers.bets, wagers.seen, strict=True):
            stake = bets.stake
            stands = (stake >= 0.0) | (low >= -2.0 * stake)
            part = np.logical_and.reduceat(stands, outcomes.start[:-1])[outcomes.signature]
            met = np.flatnonzero((seen > 0) & part & (stake != 0.0) & (high > 0.0))
            apart = np.flatnonzero((seen > 0) & ~part & (stake < 0.0))
            stakes.append(stake[met])
            times.append(share * seen[met].astype(np.float64))
            owners.append(expression[met].astype(np.int64))
            loss = np.log1p(stake[apart] / np.maximum(low[apart], -2.0 * stake[apart]))
            worst += (share * seen[apart] * loss * (1.0 + 2.0 * _LOG)).tolist()
    return Terms(np.concatenate(stakes), np.concatenate(times), np.concatenate(owners), math.fsum(worst))


def line_below(
    terms: Terms,
    lower: FloatArray,
    upper: FloatArray,
    point: FloatArray,
    weight: FloatArray | None = None,
    times: float = 0.0,
) -> Line:
    """A line below Λ − times·Σ weight·log f where lower ≤ f ≤ upper ≤ 1, tight near f = point."""
    size, every = len(lower), np.arange(len(lower))
    paid = np.zeros(size) if weight is None else times * weight * (1.0 - 2.0 * UNIT)  # log f ≤ 0
    high = np.maximum(upper, 1e-300)
    touched = np.clip(point, np.maximum(lower, 1e-9 * high), high)
    losing = _Losing(terms, lower, upper, paid)
    own, rest = losing.expression, paid.copy()
    rest[own] = 0.0
    alone = np.flatnonzero(rest)
    at, wins = touched[alone], terms.stake > 0.0
    e, stake = terms.expression[wins], terms.stake[wins]
    height, near = np.log1p(stake / touched[e]), touched[e]
    slope = -stake / (near * (near + stake))
    error = _LOG * (height + np.abs(slope) * (near + high[e]))
    logs = np.log(at)
    pieces = [
        (e, terms.times[wins], slope, height - slope * near, error),
        (alone, rest[alone], -1.0 / at, 1.0 - logs, _LOG * (np.abs(logs) + 1.0 + high[alone] / at)),
        (every[own], np.ones(len(own)), *losing.lines(touched[own])),
    ]
    return _sum(pieces, terms.constant, lower, upper)


class _Losing:
    """g = Σ times·log(1 + stake/f) − paid·log f by expression, of the terms with stake < 0."""

    def __init__(self, terms: Terms, lower: FloatArray, upper: FloatArray, paid: FloatArray):
        loses = terms.stake < 0.0
        self.stake, self.times = terms.stake[loses], terms.times[loses]
        self.expression, self.of = np.unique(terms.expression[loses], return_inverse=True)
        self.low, self.high = lower[self.expression], np.maximum(upper, lower)[self.expression]
        self.paid, self.size = paid[self.expression], len(self.expression)
        self.spare = error_factor(len(self.stake) + 16)
        self.from_low = self.value(self.low)

    def _sum(self, terms: FloatArray) -> FloatArray:
        return np.bincount(self.of, terms, self.size).astype(np.float64)

    def value(self, f: FloatArray) -> FloatArray:
        return self._sum(self.times * np.log1p(self.stake / f[self.of])) - self.paid * np.log(f)

    def slope(self, f: FloatArray) -> FloatArray:
        near = f[self.of]
        return self._sum(-self.times * self.stake / (near * (near + self.stake))) - self.paid / f

    def bend(self, f: FloatArray) -> FloatArray:
        """f²·g''."""
        near = f[self.of] + self.stake
        return self.paid + self._sum(self.times * self.stake * (2.0 * f[self.of] + self.stake) / near**2)

    def rises(self, f: FloatArray) -> BoolArray:
        """Whether the tangent at f is below g at `low`."""
        return self.value(f) + self.slope(f) * (self.low - f) <= self.from_low

    def touched(self) -> FloatArray:
        """From where on tangents are below g; `high` where there is no such point."""
        least, most = self.low, self.high
        for _ in range(40):
            middle = 0.5 * (least + most)
            fits = self.rises(middle)
            least, most = np.where(fits, least, middle), np.where(fits, middle, most)
        return most

    def chord(self) -> FloatArray:
        """The slope from `low` to `high`."""
        width = np.where(self.high > self.low, self.high - self.low, np.inf)
        return (self.value(self.high) - self.from_low) / width

    def lines(self, near: FloatArray) -> _Lines:
        """Lines below g between the bounds, tight near these points where they may touch."""
        low, high = self.low, self.high
        at = np.maximum(near, self.touched())
        # rounding: sums of so many terms, each of a few operations, each term largest at `low`
        size = self._sum(self.times * np.abs(np.log1p(self.stake / low[self.of])))
        size = size + self.paid * np.maximum(np.abs(np.log(low)), np.abs(np.log(high)))
        tilt = self._sum(2.0 * self.times * np.abs(self.stake) / low[self.of] ** 2) + self.paid / low
        curved = self._sum(self.times * 3.0) + self.paid
        tangent = (self.bend(at) > self.spare * curved) & (at < high)
        slope = np.where(
            tangent, self.slope(at), np.maximum(self.chord(), self.slope(high) + self.spare * tilt)
        )
        at = np.where(tangent, at, high)
        constant = np.minimum(self.from_low - slope * low, self.value(at) - slope * at)
        return slope, constant, self.spare * (size + (tilt + np.abs(slope)) * high)


_Lines = tuple[FloatArray, FloatArray, FloatArray]
"""(slopes, constants, errors)."""

_Piece = tuple[OffsetArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""(expressions, how often, slopes, constants, errors) of lines."""


def _sum(pieces: list[_Piece], constant: float, lower: FloatArray, upper: FloatArray) -> Line:
    """All lines, rounded down."""
    owner = np.concatenate([piece[0] for piece in pieces])
    slopes = np.concatenate([times * slope for _, times, slope, _, _ in pieces])
    terms = np.concatenate([times * height for _, times, _, height, _ in pieces])
    slips = np.concatenate([times * error for _, times, _, _, error in pieces])
    size, reach = len(lower), np.maximum(np.abs(lower), np.abs(upper))
    total: FloatArray = np.bincount(owner, weights=slopes, minlength=size).astype(np.float64)
    extent = np.bincount(owner, weights=np.abs(slopes), minlength=size)
    rounding = math.fsum(slips) + 4.0 * UNIT * math.fsum(np.abs(terms))
    rounding += error_factor(len(slopes) + 8) * float(extent @ reach)
    return Line(total, math.fsum([*terms.tolist(), constant]) - rounding * (1.0 + 1e-9) - 1e-300)


def row_of(
    line: Line, functions: AffineFunctions, level: float, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, float]:
    """A row b·x ≤ r that holds where line ≤ level and x lies in the box; `level` is rounded up."""
    slope = line.slope
    normal = slope @ functions.linear
    reach = np.maximum(np.abs(lower), np.abs(upper))
    off = float(product_error(slope[None, :], functions.linear, 3)[0] @ reach)
    off += float(np.abs(slope) @ functions.slack)
    constant = slope * functions.constant
    off += 8.0 * UNIT * (math.fsum(np.abs(constant)) + abs(line.constant) + abs(level))
    bound = level - line.constant - math.fsum(constant)
    return normal, up(up(bound) + off * (1.0 + 1e-9))


STEPS = (0.0, *(2.0**-k for k in range(8)))
"""Of the μ from which on g is convex everywhere, those that are tried."""

MOST_TIMES = 4.0
_GAP, _GROWTH, _NEWTON = 1e-3, 10.0, 12
_MATTERS = 0.05
"""A row is made where its multiplier is at least this part of all of them."""


class _Wealth:
    """Lines below Λ − μ·ℓ of one side at their best, for several μ: functions of the used expressions."""

    def __init__(self, terms: Terms, lower: FloatArray, upper: FloatArray, weight: FloatArray):
        wins, self.weight = terms.stake > 0.0, weight
        self.stake, self.of = terms.stake[wins], terms.expression[wins]
        self.often, self.losing = terms.times[wins], _Losing(terms, lower, upper, np.zeros(len(lower)))
        own = weight[self.losing.expression]
        bent = -self.losing.bend(self.losing.low) / np.where(own > 0.0, own, np.inf)
        most = min(float(bent.max(initial=0.0)), MOST_TIMES)
        self.times = most * np.array(STEPS if most > 0.0 else STEPS[:1])
        each = [_Losing(terms, lower, upper, times * weight) for times in self.times.tolist()]
        self.first = np.array([one.from_low for one in each])
        self.at = np.array([one.touched() for one in each])
        curves = [
            np.where(at < one.high, one.slope(at), one.chord()) for one, at in zip(each, self.at, strict=True)
        ]
        self.rise = np.array(curves)
        self.paid = np.outer(self.times, weight)

    def value(self, f: FloatArray) -> FloatArray:
        """By μ; ∞ outside."""
        own, losing = self.losing.expression, self.losing
        if np.any(f[losing.expression[losing.of]] + losing.stake <= 0.0):
            return np.full(len(self.times), np.inf)
        logs = np.log(f)
        curve = losing.value(f[own]) - self.paid[:, own] * logs[own]
        line = self.first + self.rise * (f[own] - losing.low)
        total: FloatArray = np.where(f[own] >= self.at, curve, line).sum(axis=1)
        total += self.paid[:, own] @ logs[own] - self.paid @ logs
        return total + float(self.often @ np.log1p(self.stake / f[self.of]))

    def slopes(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(∂/∂f, ∂²/∂f²) by μ and expression."""
        own, losing, moved = self.losing.expression, self.losing, f[self.of] + self.stake
        slope, bend = -self.paid / f, self.paid / f**2
        curved = f[own] >= self.at
        slope[:, own] = np.where(curved, losing.slope(f[own]) + slope[:, own], self.rise)
        bend[:, own] = np.where(curved, losing.bend(f[own]) / f[own] ** 2 + bend[:, own], 0.0)
        near = f[self.of] * moved
        slope += np.bincount(self.of, -self.often * self.stake / near, len(f))
        bend += np.bincount(self.of, self.often * self.stake * (f[self.of] + moved) / near**2, len(f))
        return slope, np.maximum(bend, 0.0)


@dataclass(frozen=True, eq=False)
class SlabConstraints:
    """Sides (terms, level), (weights, threshold), bounds of expressions; rows in y, x = centre + half·y."""

    sides: Sequence[tuple[Terms, float]]
    likelihood: tuple[FloatArray, float]
    functions: AffineFunctions
    bounds: tuple[FloatArray, FloatArray]
    scale: tuple[FloatArray, FloatArray]
    rows: tuple[FloatArray, FloatArray]


class _Barrier:
    """log of what is left of every constraint, at points y."""

    def __init__(self, about: SlabConstraints):
        (weight, self.threshold), (self.matrix, self.bound) = about.likelihood, about.rows
        sides, functions, scale = about.sides, about.functions, about.scale
        met = [np.flatnonzero(weight > 0.0), *(terms.expression for terms, _ in sides)]
        used = np.unique(np.concatenate(met))
        self.linear = functions.linear[used] * scale[1]
        self.constant = functions.constant[used] + functions.linear[used] @ scale[0]
        self.weight, ends = weight[used], (about.bounds[0][used], about.bounds[1][used])
        self.sides: list[tuple[_Wealth, FloatArray]] = []
        self.names: list[tuple[int, float]] = []
        for number, (terms, level) in enumerate(sides):
            own = replace(terms, expression=np.searchsorted(used, terms.expression))
            wealth = _Wealth(own, *ends, self.weight)
            self.sides.append((wealth, level - terms.constant - wealth.times * self.threshold))
            self.names += [(number, times) for times in wealth.times.tolist()]
        self.size = 1 + len(self.names) + len(self.bound)

    def left(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """(f, what is left of every curved constraint, of every row); None outside."""
        f = self.constant + self.linear @ y
        room = self.bound - self.matrix @ y
        if np.any(f <= 0.0) or np.any(room <= 0.0):
            return None
        first = np.array([float(self.weight @ np.log(f)) - self.threshold])
        left = np.concatenate([first, *(level - wealth.value(f) for wealth, level in self.sides)])
        return (f, left, room) if np.all(left > 0.0) else None

    def value(self, y: FloatArray) -> float:
        place = self.left(y)
        return -math.inf if place is None else float(np.log(place[1]).sum() + np.log(place[2]).sum())

    def model(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(gradient, minus the curvature, what is left of every curved constraint), inside."""
        place = self.left(y)
        assert place is not None
        f, left, room = place
        slope, bend = [self.weight[None, :] / f], [self.weight[None, :] / f**2]
        for wealth, _ in self.sides:
            rises, bends = wealth.slopes(f)
            slope.append(-rises)
            bend.append(bends)
        pull = (np.concatenate(slope) @ self.linear) / left[:, None]
        near = self.matrix / room[:, None]
        total = (self.linear * ((1.0 / left) @ np.concatenate(bend))[:, None]).T @ self.linear
        return pull.sum(axis=0) - near.sum(axis=0), total + pull.T @ pull + near.T @ near, left


def support_of_slab(
    about: SlabConstraints, start: FloatArray, directions: FloatArray
) -> list[tuple[FloatArray, list[tuple[int, float]]]]:
    """For each direction a point where it is about largest, and the (side, μ) whose rows matter there."""
    search, (centre, half) = _Barrier(about), about.scale
    begin, result = (start - centre) / half, []
    if search.left(begin) is None:
        return []
    for direction in directions:
        goal = direction * half
        y, left = _climb(search, goal / max(float(np.abs(goal).max(initial=0.0)), 1e-300), begin)
        share = (1.0 / left) / (1.0 / left).sum()
        named = zip(search.names, share[1:].tolist(), strict=True)
        result.append((centre + half * y, [name for name, part in named if part >= _MATTERS]))
    return result


def _climb(search: _Barrier, goal: FloatArray, begin: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Follow the barrier's path: its end, and what is left of the curved constraints there."""
    y, tau = begin, 1.0
    while True:
        for _ in range(_NEWTON):
            gradient, curve, left = search.model(y)
            gradient = gradient + tau * goal
            step = np.linalg.lstsq(curve, gradient, rcond=None)[0]
            gain, length = float(gradient @ step), 1.0
            here = search.value(y)
            while length > 1e-8:
                there = search.value(y + length * step) + tau * length * float(goal @ step)
                if there >= here + 0.1 * length * gain:
                    break
                length *= 0.5
            if not gain > 1e-3 or length <= 1e-8:
                break
            y = y + length * step
        enough = search.size / (_GAP * max(float(goal @ (y - begin)), 1e-6))
        if tau >= enough:
            return y, left
        tau = min(tau * _GROWTH, enough)
