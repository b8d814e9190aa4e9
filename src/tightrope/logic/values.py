"""The value of a formula in every state: certified bounds of a number, or a three-valued truth.

Bounds follow interval arithmetic, rounded outward (a sum that is a double stays as it is); truths follow
Kleene's logic, open where neither is known. An undefined number (∞ − ∞) has the bounds −∞ and ∞.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.rounding import down, up


@dataclass(frozen=True, eq=False)
class StateTruth:
    """Where a formula holds, and where it fails; both masks are false where neither is certain."""

    holds: BoolArray
    fails: BoolArray

    @staticmethod
    def of(states: BoolArray) -> StateTruth:
        return StateTruth(states, ~states)

    @property
    def is_open(self) -> BoolArray:
        return ~(self.holds | self.fails)

    def negated(self) -> StateTruth:
        return StateTruth(self.fails, self.holds)

    def both(self, other: StateTruth) -> StateTruth:
        return StateTruth(self.holds & other.holds, self.fails | other.fails)

    def either(self, other: StateTruth) -> StateTruth:
        return StateTruth(self.holds | other.holds, self.fails & other.fails)

    def same(self, other: StateTruth) -> StateTruth:
        holds = (self.holds & other.holds) | (self.fails & other.fails)
        return StateTruth(holds, (self.holds & other.fails) | (self.fails & other.holds))


@dataclass(frozen=True, eq=False)
class StateBounds:
    """`lower ≤ value ≤ upper` in every state; `unit` is the size of what cancels, for widths."""

    lower: FloatArray
    upper: FloatArray
    unit: float = 0.0

    @staticmethod
    def constant(lower: float, upper: float, states: int) -> StateBounds:
        """The same bounds in every state."""
        return StateBounds(np.full(states, lower), np.full(states, upper))

    @property
    def size(self) -> float:
        """The largest finite magnitude."""
        ends = np.abs(np.concatenate([self.lower, self.upper]))
        return float(ends[np.isfinite(ends)].max(initial=0.0))

    def negated(self) -> StateBounds:
        return StateBounds(-self.upper, -self.lower, self.unit)

    def plus(self, other: StateBounds) -> StateBounds:
        unit = max(self.unit, other.unit, self.size, other.size)
        return _enclose(_sum(self.lower, other.lower, False), _sum(self.upper, other.upper, True), unit)

    def times(self, other: StateBounds) -> StateBounds:
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            ends = [a * b for a in (self.lower, self.upper) for b in (other.lower, other.upper)]
        low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)  # a NaN stays one
        simple = _is_simple(self) | _is_simple(other)
        unit = max(self.unit * other.size, other.unit * self.size)
        return _enclose(np.where(simple, low, down(low)), np.where(simple, high, up(high)), unit)

    def divided_by(self, other: StateBounds) -> StateBounds:
        """Where the divisor may be 0 nothing is known."""
        nonzero = (other.lower > 0) | (other.upper < 0)
        with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
            ends = [a / b for a in (self.lower, self.upper) for b in (other.lower, other.upper)]
            low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
        unit = self.unit / other.size if other.size else 0.0
        low, high = down(low), up(high)
        low = np.where((self.lower >= 0) & (other.lower > 0), np.maximum(low, 0.0), low)  # signs are exact
        high = np.where((self.upper <= 0) & (other.lower > 0), np.minimum(high, 0.0), high)
        return _enclose(np.where(nonzero, low, -np.inf), np.where(nonzero, high, np.inf), unit)

    def where(self, states: BoolArray, other: StateBounds) -> StateBounds:
        """These bounds in some states, those of another in the others."""
        lower, upper = np.where(states, self.lower, other.lower), np.where(states, self.upper, other.upper)
        return StateBounds(lower, upper, max(self.unit, other.unit))

    def smaller(self, other: StateBounds) -> StateBounds:
        return StateBounds(np.minimum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def larger(self, other: StateBounds) -> StateBounds:
        return StateBounds(np.maximum(self.lower, other.lower), np.maximum(self.upper, other.upper))

    def through(self, monotone: Callable[[FloatArray], FloatArray]) -> StateBounds:
        """Under a function that is exact on doubles and never falls: floor, ceil, round."""
        return StateBounds(monotone(self.lower), monotone(self.upper))

    def compare(self, comparison: str, other: StateBounds) -> StateTruth:
        """`self < other` and its like."""
        if comparison in (">", ">="):
            return other.compare("<" if comparison == ">" else "<=", self)
        if comparison == "<":
            return StateTruth(self.upper < other.lower, self.lower >= other.upper)
        if comparison == "<=":
            return StateTruth(self.upper <= other.lower, self.lower > other.upper)
        point = (self.lower == self.upper) & (other.lower == other.upper) & (self.lower == other.lower)
        equal = StateTruth(point, (self.upper < other.lower) | (other.upper < self.lower))
        return equal if comparison == "=" else equal.negated()

    def meets(self, comparison: str, threshold: Fraction) -> StateTruth:
        """Compared with an exact number: a double is ≥ it iff it is ≥ the least double above."""
        exact = RationalArray.from_fractions([threshold])
        above, below = exact.to_float_up()[0], exact.to_float_down()[0]
        if comparison == ">=":
            return StateTruth(self.lower >= above, self.upper < above)
        if comparison == "<":
            return StateTruth(self.upper < above, self.lower >= above)
        if comparison == ">":
            return StateTruth(self.lower > below, self.upper <= below)
        return StateTruth(self.upper <= below, self.lower > below)


@dataclass(frozen=True, eq=False)
class BoundedValue:
    """Bounds for every state; `missed` says why they are wide, where they are."""

    bounds: StateBounds
    iterations: int
    missed: str | None


def round_half_up(values: FloatArray) -> FloatArray:
    """To the nearest whole number, halves upward, as PRISM rounds."""
    whole = np.floor(values)
    with np.errstate(invalid="ignore"):
        return np.where(values - whole >= 0.5, whole + 1, whole)


def _sum(left: FloatArray, right: FloatArray, upward: bool) -> FloatArray:
    """left + right rounded outward; what rounding left over (Knuth) says whether that is needed."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = left + right
        back = total - left
        rest = (left - (total - back)) + (right - back)
    infinite = np.isinf(left) | np.isinf(right)
    needed = ~(rest <= 0) if upward else ~(rest >= 0)
    moved = up(total) if upward else down(total)
    return np.where(needed & ~infinite, moved, total)


def _is_simple(bounds: StateBounds) -> BoolArray:
    """A factor that loses nothing: 0, 1 or −1."""
    simple: BoolArray = (bounds.lower == bounds.upper) & np.isin(bounds.lower, (-1.0, 0.0, 1.0))
    return simple


def _enclose(lower: FloatArray, upper: FloatArray, unit: float) -> StateBounds:
    return StateBounds(
        np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper), unit
    )
