"""Nature's problem at every choice, bounded: opt { p·x : lower ≤ p ≤ upper, Σp = 1 }; and its boxes.

The maximum is the minimum over λ of the dual D(λ) = λ + Σ_i max(lower_i·(x_i − λ), upper_i·(x_i − λ)), convex
and piecewise linear with its kinks at the x_i. So any D(λ) is an upper bound of the maximum (λ is looked for
in doubles), and min_i D(x_i), each rounded down, is a lower bound. A minimum is the negative of a maximum.

The sets are read exactly as written: whether sums of bounds reach 1 is decided without rounding, and no
remainder is too small to count. `single` marks the choices whose box is not nature's set but encloses one
distribution (a probability that is no number of the arithmetic): there the worst is taken on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Vector:
    """Finite numbers; where `infinite`, +∞ stands in their place."""

    number: Numbers
    infinite: BoolArray

    @staticmethod
    def of(n: Arithmetic, doubles: FloatArray) -> Vector:
        infinite = np.isinf(doubles)
        return Vector(n.array(np.where(infinite, 0.0, doubles)), infinite)

    def within(self, n: Arithmetic) -> Vector:
        """The same, if no number left the range of the arithmetic."""
        n.require_finite(self.number)
        return self

    def take(self, index: Any) -> Vector:
        return Vector(self.number[index], self.infinite[index])

    def below(self, other: Vector) -> BoolArray:
        """Where an entry is smaller than the other's."""
        result: BoolArray = ~self.infinite & (other.infinite | (self.number < other.number))
        return result


@dataclass(frozen=True, eq=False)
class Boxes:
    """lower ≤ p ≤ upper for every transition; the bounds of transition t stand at label[t]."""

    n: Arithmetic
    transition_start: OffsetArray
    successor: OffsetArray
    label: OffsetArray
    lower: Numbers
    upper: Numbers
    single: BoolArray

    def bound(self, values: Vector, maximise: bool, upward: bool) -> Vector:
        """Not below nature's optimum at every choice if `upward`, not above it otherwise."""
        choices = len(self.transition_start) - 1
        number, infinite = self.n.zeros(choices), np.zeros(choices, dtype=np.bool_)
        for rows, table, single in self.blocks():
            x = values.take(self.successor[table])
            highest = upward if single else maximise
            lower, upper = self.rows(table)
            if x.infinite.any():
                infinite[rows] = self._is_infinite(lower, upper, x.infinite, highest, single)
                lower, upper = np.where(x.infinite, 0, lower), np.where(x.infinite, 0, upper)
            above = upward if highest else not upward
            best = _maximum(self.n, lower, upper, x.number if highest else -x.number, above)
            number[rows] = best if highest else -best
        return Vector(number, infinite)

    def _is_infinite(
        self, lower: Numbers, upper: Numbers, bad: BoolArray, maximise: bool, single: bool
    ) -> BoolArray:
        """Where the optimum is +∞, `bad` marking the successors at which the vector is: exactly of nature's
        sets; of one
        distribution, where it may be for a maximum and where it must be for a minimum."""
        if maximise:
            reached: BoolArray = upper > 0 if single else can_be_positive(self.n, lower, upper)
            return np.asarray(np.any(bad & reached, axis=1))
        result: BoolArray = np.any(bad & (lower > 0), axis=1)
        return result | sums_below_one(self.n, np.where(bad, 0, upper), exactly=not single)

    def rows(self, table: OffsetArray) -> tuple[Numbers, Numbers]:
        """The bounds of a table of transitions."""
        label = self.label[table]
        return self.lower[label], self.upper[label]

    def only(self, choices: OffsetArray) -> Self:
        """These choices alone, in this order."""
        start, taken = rows_of(self.transition_start, choices)
        return replace(
            self,
            transition_start=start,
            successor=self.successor[taken],
            label=self.label[taken],
            single=self.single[choices],
        )

    def blocks(self) -> Iterator[tuple[OffsetArray, OffsetArray, bool]]:
        """(choices, table of their transitions, whether single) for choices with equally many transitions."""
        length = np.diff(self.transition_start)
        for k in np.unique(length).tolist():
            for single in (False, True):
                rows = np.flatnonzero((length == k) & (self.single == single))
                for first in range(0, len(rows), _BLOCK):
                    part = rows[first : first + _BLOCK]
                    yield part, self.transition_start[part][:, None] + np.arange(k), single


def rows_of(start: OffsetArray, choices: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
    """(offsets, transitions) of some choices."""
    first, length = start[choices], (start[1:] - start[:-1])[choices]
    offset = np.zeros(len(choices) + 1, dtype=np.int64)
    np.cumsum(length, out=offset[1:])
    return offset, np.repeat(first - offset[:-1], length) + np.arange(offset[-1])


def sums_below_one(n: Arithmetic, entries: Numbers, exactly: bool = True) -> BoolArray:
    """Rows whose sum is below 1: decided without rounding, or only those of which it is sure."""
    return sums_beside_one(n, entries, exactly)[0]


def sums_beside_one(n: Arithmetic, entries: Numbers, exactly: bool = True) -> tuple[BoolArray, BoolArray]:
    """(rows whose sum is below 1, rows whose sum is above)."""
    if not exactly or n.exact:
        total = entries.sum(axis=1)
        slack = n.error(entries.shape[1], total)
        return total + slack < 1, total - slack > 1
    total, exact = entries[:, 0], np.ones(len(entries), dtype=np.bool_)
    for i in range(1, entries.shape[1]):
        term = entries[:, i]
        added = total + term
        back = added - total
        exact &= ((total - (added - back)) + (term - back)) == 0  # nothing was lost
        total = added
    below, above = total < 1, total > 1
    near = abs(total - 1) <= 4 * entries.shape[1] * n.epsilon
    for row in np.flatnonzero(~exact & near).tolist():
        whole = sum(n.fractions(entries[row]), Fraction(0))
        below[row], above[row] = whole < 1, whole > 1
    return below, above


def can_be_positive(n: Arithmetic, lower: Numbers, upper: Numbers) -> BoolArray:
    """Entries that some distribution of the box gives a positive probability."""
    result: BoolArray = upper > 0
    for i in range(lower.shape[1]):
        unsure = np.flatnonzero(result[:, i] & ~(lower[:, i] > 0))
        if len(unsure):
            others = np.delete(lower[unsure], i, axis=1)
            result[unsure, i] = sums_below_one(n, others) if others.shape[1] else True
    return result


def _maximum(n: Arithmetic, lower: Numbers, upper: Numbers, x: Numbers, above: bool) -> Numbers:
    """A bound on the maximum of p·x in every row, not below it if `above`, not above it otherwise."""
    width = x.shape[1]
    if width == 1:
        return x[:, 0]
    if above:
        index = np.arange(len(x))
        best = _dual(n, lower, upper, x, x[index, _kink(n, lower, upper, x)], 1)
        highest = np.where(upper > 0, x, x.min(axis=1)[:, None]).max(axis=1)
        return best if n.exact else np.minimum(best, highest)
    best = _dual(n, lower, upper, x, x[:, 0], -1)
    for i in range(1, width):
        best = np.minimum(best, _dual(n, lower, upper, x, x[:, i], -1))
    if n.exact:
        return best
    for i in range(width):  # some distribution avoids everything below x_i: the maximum is at least x_i
        under = x < x[:, i : i + 1]
        lost = np.flatnonzero((best < x[:, i]) & ~np.any(under & (lower > 0), axis=1))
        keeps = ~sums_below_one(n, np.where(under[lost], 0, upper[lost]))
        best[lost[keeps]] = x[lost[keeps], i]
    return best


def _dual(n: Arithmetic, lower: Numbers, upper: Numbers, x: Numbers, pivot: Numbers, sign: int) -> Numbers:
    """D(pivot), rounded up (sign 1) or down (sign −1)."""
    difference = x - pivot[:, None]
    terms = np.where(difference > 0, upper, lower) * difference
    value = pivot + terms.sum(axis=1)
    size = abs(terms).sum(axis=1)
    slack = n.error(x.shape[1] + 4, size) + n.error(1, np.where(size > 0, abs(value), 0))
    return np.asarray(value + sign * slack)


def _kink(n: Arithmetic, lower: Numbers, upper: Numbers, x: Numbers) -> OffsetArray:
    """Where the dual is smallest, as doubles see it: what is poured in the order of values ends there."""
    values, low, high = n.floats(x), n.floats(lower), n.floats(upper)
    order = np.argsort(-values, axis=1, kind="stable")
    room = 1 - low.sum(axis=1)
    poured = np.cumsum(np.take_along_axis(high - low, order, axis=1), axis=1)
    last = np.minimum((poured < room[:, None]).sum(axis=1), x.shape[1] - 1)
    result: OffsetArray = order[np.arange(len(x)), last]
    return result
