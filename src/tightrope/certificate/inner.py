"""Nature's problem at every choice, enclosed: opt { p·x : lower ≤ p ≤ upper, Σp = 1 }.

The maximum equals the minimum of its dual over one number λ,

    D(λ) = λ + Σ_i max(lower_i·(x_i − λ), upper_i·(x_i − λ)),

which is convex and piecewise linear with its kinks at the x_i, so the maximum is min_i D(x_i). That
is all this file computes: no sorting, no pouring, nothing of the solver's. Any single D(x_i) is an
upper bound of the maximum; the smallest of all of them, each rounded down, is a lower bound.

What nature can and has to do is decided exactly, on the bounds as they are: sums too close to 1 for
longdouble are taken in rationals. Only a whole row may miss 1 by rounding, (k + 2)·2⁻⁵² (`sets.proper_sets`);
it is then the distribution that its bounds come to, and none of them is left out.

Arithmetic is NumPy's longdouble (64 bits of mantissa on x86) with a running error bound: a sum of n
products, each of factors with relative error below ε, is off by less than (n + 4)·ε·Σ|terms|, and
adding λ rounds once more. Where all terms are 0 there is no rounding and no error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray

Extended = npt.NDArray[Any]
"""Arrays of np.longdouble."""

EPSILON = np.finfo(np.longdouble).eps
_TINY = np.finfo(np.longdouble).tiny
_BLOCK = 1 << 18


def as_fraction(value: Any) -> Fraction:
    """A finite longdouble, exactly; also one beyond the range of float64."""
    mantissa, exponent = np.frexp(np.longdouble(value))
    high = float(mantissa)
    exact = Fraction(high) + Fraction(float(mantissa - np.longdouble(high)))
    return exact * Fraction(2) ** int(exponent)


@dataclass(frozen=True, eq=False)
class Box:
    """lower ≤ p ≤ upper a transition; every choice with Σp = 1. `up` and `down` as longdouble."""

    transition_start: OffsetArray
    successor: IndexArray
    lower: Extended
    upper: Extended

    def optimum(self, values: FloatArray, maximise: bool) -> tuple[Extended, Extended]:
        """(low, high) enclosing nature's optimum at every choice; ∞ where it cannot be avoided."""
        choices = len(self.transition_start) - 1
        low = np.zeros(choices, dtype=np.longdouble)
        high = np.zeros(choices, dtype=np.longdouble)
        for rows, table in self.blocks():
            x = values[self.successor[table]].astype(np.longdouble)
            lower, upper = self.lower[table], self.upper[table]
            surely, maybe, upper, x = _without_infinities(lower, upper, x, maximise)
            if maximise:
                below, above = _dual_optimum(lower, upper, x)
            else:
                below, above = _dual_optimum(lower, upper, -x)
                below, above = -above, -below
            low[rows] = np.where(surely, np.inf, below)
            high[rows] = np.where(maybe, np.inf, above)
        return low, high

    def only(self, choices: OffsetArray) -> Self:
        """These choices alone, in this order."""
        start, taken = rows_of(self.transition_start, choices)
        return replace(
            self,
            transition_start=start,
            successor=self.successor[taken],
            lower=self.lower[taken],
            upper=self.upper[taken],
        )

    def blocks(self) -> list[tuple[OffsetArray, OffsetArray]]:
        """(choices, table of their transitions) for choices with equally many transitions."""
        length = np.diff(self.transition_start)
        result = []
        for k in np.unique(length).tolist():
            rows = np.flatnonzero(length == k)
            for first in range(0, len(rows), _BLOCK):
                part = rows[first : first + _BLOCK]
                result.append((part, self.transition_start[part][:, None] + np.arange(k)))
        return result


def rows_of(start: OffsetArray, choices: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
    """(offsets, transitions) of some choices."""
    first, length = start[choices], (start[1:] - start[:-1])[choices]
    offset = np.zeros(len(choices) + 1, dtype=np.int64)
    np.cumsum(length, out=offset[1:])
    return offset, np.repeat(first - offset[:-1], length) + np.arange(offset[-1])


def _without_infinities(
    lower: Extended, upper: Extended, x: Extended, maximise: bool
) -> tuple[BoolArray, BoolArray, Extended, Extended]:
    """Where the optimum is surely, and where it may be, infinite; the problem without infinite values."""
    infinite = np.isinf(x)
    if not infinite.any():
        nowhere = np.zeros(len(x), dtype=np.bool_)
        return nowhere, nowhere, upper, x
    if maximise:
        surely = np.any(infinite & can_be_positive(lower, upper), axis=1)
        maybe = np.any(infinite & (upper > 0), axis=1)
    else:
        surely = np.any(infinite & (lower > 0), axis=1) | falls_short(upper, ~infinite)
        upper = np.where(infinite, 0, upper)
        maybe = surely
    return surely, maybe, upper, np.where(infinite, 0, x)


def can_be_positive(lower: Extended, upper: Extended) -> BoolArray:
    """Entries that some distribution of the box surely gives a positive probability."""
    leaves = _below_one(lower)[:, None]
    result: BoolArray = (upper > 0) & ((lower > 0) | leaves)
    return result


def falls_short(upper: Extended, kept: BoolArray) -> BoolArray:
    """Rows in which the `kept` upper bounds sum to less than 1, and others are positive."""
    others = np.any(~kept & (upper > 0), axis=1)
    result: BoolArray = others & _below_one(np.where(kept, upper, 0))
    return result


def _below_one(bounds: Extended) -> BoolArray:
    """Rows that sum to less than 1, exactly."""
    total = bounds.sum(axis=1)
    result: BoolArray = total < 1
    unclear = np.abs(total - 1) <= (bounds.shape[1] + 2) * EPSILON
    # Sums of at most one number that is not 0 did not round.
    unclear &= np.count_nonzero(bounds, axis=1) > 1
    for row in np.flatnonzero(unclear).tolist():
        result[row] = sum((as_fraction(x) for x in bounds[row] if x > 0), Fraction(0)) < 1
    return result


def _dual_optimum(lower: Extended, upper: Extended, x: Extended) -> tuple[Extended, Extended]:
    """min_i D(x_i), enclosed.

    Two facts need no arithmetic and keep values such as 0 and 1 exact: the maximum is at most the largest x
    of positive weight, and at least x_i where some distribution of the box avoids everything below x_i.
    """
    k = x.shape[1]
    low = np.full(len(x), np.inf, dtype=np.longdouble)
    high = np.where(upper > 0, x, -np.inf).max(axis=1)
    attained = np.full(len(x), -np.inf, dtype=np.longdouble)
    for i in range(k):
        pivot = x[:, i]
        difference = x - pivot[:, None]
        terms = np.where(difference > 0, upper * difference, lower * difference)
        size = np.abs(terms).sum(axis=1)
        value = pivot + terms.sum(axis=1)
        rounding = (k + 4) * EPSILON * size + np.where(size > 0, EPSILON * np.abs(value) + _TINY, 0)
        low = np.minimum(low, value - 2 * rounding)
        high = np.minimum(high, value + 2 * rounding)
        below = difference < 0
        avoids = ~np.any(below & (lower > 0), axis=1) & ~falls_short(upper, ~below)
        attained = np.maximum(attained, np.where(avoids, pivot, -np.inf))
    return np.maximum(low, attained), high
