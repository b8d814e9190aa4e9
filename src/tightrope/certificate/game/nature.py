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
from typing import Any, Self

import numpy as np

from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

_BLOCK = 1 << 14


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
            sign = 1 if highest else -1
            best = _maximum(self.n, lower, upper, sign * x.number, highest == upward)
            number[rows] = sign * best
        return Vector(number, infinite)

    def _is_infinite(
        self, lower: Numbers, upper: Numbers, bad: BoolArray, maximise: bool, single: bool
    ) -> BoolArray:
        """Where the optimum is +∞, `bad` marking the successors at which the vector is: exactly of nature's
        sets; of one distribution, where it may be for a maximum and where it must be for a minimum."""
        result: BoolArray = np.any(bad & ((upper if maximise else lower) > 0), axis=1)
        if not maximise:
            return result | (signs_of_sums(self.n, np.where(bad, 0, upper), single) < 0)
        if not single:
            from tightrope.certificate.game.freedom import can_be_positive

            result = np.any(bad & can_be_positive(self.n, lower, upper), axis=1)
        return result

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


def signs_of_sums(n: Arithmetic, entries: Numbers, single: bool) -> OffsetArray:
    """The signs of Σ − 1 in every row: without rounding, or 0 where it is not sure for one distribution."""
    if not single and not n.exact:
        from tightrope.certificate.game.freedom import exact_signs

        return exact_signs(n, entries)
    total = entries.sum(axis=1)
    slack = n.error(entries.shape[1], total)
    signs: OffsetArray = (total - slack > 1).astype(np.int64) - (total + slack < 1)
    return signs


def _maximum(n: Arithmetic, lower: Numbers, upper: Numbers, x: Numbers, above: bool) -> Numbers:
    """A bound on the maximum of p·x in every row, not below it if `above`, not above it otherwise."""
    if x.shape[1] == 1:
        return x[:, 0]
    if not above:
        from tightrope.certificate.game.freedom import maximum_from_below

        return maximum_from_below(n, lower, upper, x, lambda i: _dual(n, lower, upper, x, x[:, i], -1))
    best = _dual(n, lower, upper, x, x[np.arange(len(x)), _kink(n, lower, upper, x)], 1)
    largest: Numbers = np.where(upper > 0, x, x.min(axis=1)[:, None]).max(axis=1)
    return np.minimum(best, largest)


def _dual(n: Arithmetic, lower: Numbers, upper: Numbers, x: Numbers, pivot: Numbers, sign: int) -> Numbers:
    """D(pivot), rounded up (sign 1) or down (sign −1)."""
    difference = x - pivot[:, None]
    weight = np.where(difference > 0, upper, lower)
    terms = weight * difference
    value = pivot + terms.sum(axis=1)
    if n.exact:
        return np.asarray(value)
    rounded = np.any((weight != 0) & (difference != 0), axis=1)
    slack = n.error(x.shape[1] + 4, abs(terms).sum(axis=1)) + n.error(2, abs(value))
    return np.asarray(value + np.where(rounded, sign * slack, 0))


def _kink(n: Arithmetic, lower: Numbers, upper: Numbers, x: Numbers) -> OffsetArray:
    """Where the dual is smallest, as doubles see it: what is poured in the order of values ends there."""
    values, low, high = n.floats(x), n.floats(lower), n.floats(upper)
    order = np.argsort(-values, axis=1, kind="stable")
    room = 1 - low.sum(axis=1)
    poured = np.cumsum(np.take_along_axis(high - low, order, axis=1), axis=1)
    last = np.minimum((poured < room[:, None]).sum(axis=1), x.shape[1] - 1)
    result: OffsetArray = order[np.arange(len(x)), last]
    return result
