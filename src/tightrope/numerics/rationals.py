"""Exact rational arithmetic on vectors.

`RationalArray` holds numerators and denominators as int64 while every intermediate result provably fits, and
as Python's integers (dtype object) beyond. Results are exact in both cases; `fractions.Fraction` is some
hundred times slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from tightrope.numerics.arrays import BoolArray, ExactIntegers, FloatArray, OffsetArray

_LIMIT = 2**62
"""Magnitudes up to here leave room for one addition in int64."""

_EXACT_IN_FLOAT = 2**53


class RationalArray:
    """A vector of rationals in lowest terms with positive denominators. Immutable by convention."""

    __slots__ = ("denominator", "numerator")

    numerator: ExactIntegers
    denominator: ExactIntegers

    def __init__(self, numerator: ExactIntegers, denominator: ExactIntegers):
        """Trusts its caller: lowest terms, positive denominators. Use the class methods."""
        self.numerator = numerator
        self.denominator = denominator

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RationalArray) and bool(
            np.array_equal(self.numerator, other.numerator)
            and np.array_equal(self.denominator, other.denominator)
        )

    def __hash__(self) -> int:
        return hash((len(self.numerator), len(self.denominator)))

    # --- construction ----------------------------------------------------------------------

    @classmethod
    def from_integers(cls, values: ExactIntegers) -> RationalArray:
        numerator = np.asarray(values)
        if numerator.dtype != object:
            numerator = numerator.astype(np.int64)
        return cls(_demote(numerator), np.ones(len(numerator), dtype=np.int64))

    @classmethod
    def from_fractions(cls, values: Iterable[Fraction | int]) -> RationalArray:
        fractions = [Fraction(value) for value in values]
        return cls(
            _from_python([value.numerator for value in fractions]),
            _from_python([value.denominator for value in fractions]),
        )

    @classmethod
    def constant(cls, value: Fraction | int, size: int) -> RationalArray:
        fraction = Fraction(value)
        parts = ([fraction.numerator], [fraction.denominator])
        return cls(*(_from_python(part).repeat(size) for part in parts))

    @classmethod
    def ratio(cls, numerator: ExactIntegers, denominator: ExactIntegers) -> RationalArray:
        """numerator / denominator, brought to lowest terms; denominators must not be 0."""
        if np.any(np.equal(denominator, 0)):
            raise ZeroDivisionError("a denominator is 0")
        negative = np.less(denominator, 0)
        if np.any(negative):
            numerator = np.where(negative, -numerator, numerator)
            denominator = np.where(negative, -denominator, denominator)
        divisor = np.gcd(numerator, denominator)
        if not np.all(np.equal(divisor, 1)):
            numerator = numerator // divisor
            denominator = denominator // divisor
        return cls(_demote(numerator), _demote(denominator))

    @classmethod
    def where(cls, mask: BoolArray, yes: RationalArray, no: RationalArray) -> RationalArray:
        return cls(
            np.where(mask, yes.numerator, no.numerator), np.where(mask, yes.denominator, no.denominator)
        )

    @classmethod
    def concatenate(cls, parts: Sequence[RationalArray]) -> RationalArray:
        if not parts:
            return cls(np.zeros(0, np.int64), np.ones(0, np.int64))
        return cls(
            np.concatenate([part.numerator for part in parts]),
            np.concatenate([part.denominator for part in parts]),
        )

    # --- access ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.numerator)

    def __getitem__(self, index: int) -> Fraction:
        return Fraction(int(self.numerator[index]), int(self.denominator[index]))

    def to_fractions(self) -> list[Fraction]:
        pairs = list(zip(self.numerator.tolist(), self.denominator.tolist(), strict=True))
        made = {pair: Fraction(*pair) for pair in set(pairs)}
        return [made[pair] for pair in pairs]

    def take(self, index: OffsetArray | BoolArray | slice) -> RationalArray:
        return RationalArray(self.numerator[index], self.denominator[index])

    def __repr__(self) -> str:
        shown = ", ".join(str(value) for value in self.take(slice(0, 6)).to_fractions())
        return f"RationalArray([{shown}{', …' if len(self) > 6 else ''}])"

    # --- arithmetic ------------------------------------------------------------------------

    def __neg__(self) -> RationalArray:
        return RationalArray(-self.numerator, self.denominator)

    def __add__(self, other: RationalArray) -> RationalArray:
        divisor = np.gcd(self.denominator, other.denominator)
        left_scale = other.denominator // divisor
        right_scale = self.denominator // divisor
        numerator = _sum(_product(self.numerator, left_scale), _product(other.numerator, right_scale))
        return RationalArray.ratio(numerator, _product(self.denominator, left_scale))

    def __sub__(self, other: RationalArray) -> RationalArray:
        return self + (-other)

    def __mul__(self, other: RationalArray) -> RationalArray:
        # Cross-reduction first keeps the products small and the result in lowest terms.
        first = np.gcd(self.numerator, other.denominator)
        second = np.gcd(other.numerator, self.denominator)
        first = np.where(np.equal(first, 0), 1, first)
        second = np.where(np.equal(second, 0), 1, second)
        return RationalArray(
            _demote(_product(self.numerator // first, other.numerator // second)),
            _demote(_product(self.denominator // second, other.denominator // first)),
        )

    def __truediv__(self, other: RationalArray) -> RationalArray:
        return self * RationalArray.ratio(other.denominator, other.numerator)

    def segment_sums(self, starts: OffsetArray) -> RationalArray:
        """Sums of the segments that begin at `starts`, none empty; in int64 while that fits."""
        if len(starts) == 0:
            return RationalArray.constant(0, 0)
        if self.numerator.dtype != object and self.denominator.dtype != object:
            common = math.lcm(*set(self.denominator.tolist()))
            longest = int(np.diff(np.append(starts, len(self))).max())
            if common * max(_magnitude(self.numerator), 1) * longest < _LIMIT:
                total = np.add.reduceat(self.numerator * (common // self.denominator), starts)
                return RationalArray.ratio(total, np.full(len(total), common, dtype=np.int64))
        lengths = np.diff(np.append(starts, len(self)))
        denominator = np.lcm.reduceat(self.denominator.astype(object), starts)
        scale = np.repeat(denominator, lengths) // self.denominator
        return RationalArray.ratio(np.add.reduceat(self.numerator * scale, starts), denominator)

    # --- leaving exactness -----------------------------------------------------------------

    def to_float(self) -> FloatArray:
        """The nearest float64 of every entry, correctly rounded."""
        if (
            self.numerator.dtype != object
            and self.denominator.dtype != object
            and _magnitude(self.numerator) <= _EXACT_IN_FLOAT
            and _magnitude(self.denominator) <= _EXACT_IN_FLOAT
        ):
            return self.numerator.astype(np.float64) / self.denominator.astype(np.float64)
        # Python's int / int is correctly rounded whatever the size.
        return np.array(
            [_nearest(int(n), int(d)) for n, d in zip(self.numerator, self.denominator, strict=True)],
            dtype=np.float64,
        )

    def to_float_down(self) -> FloatArray:
        """The largest float64 at most the exact value, for every entry."""
        nearest = self.to_float()
        excess = np.array(
            [_exceeds(v, q) for v, q in zip(nearest, self.to_fractions(), strict=True)], np.bool_
        )
        return np.where(excess, np.nextafter(nearest, -np.inf), nearest)

    def to_float_up(self) -> FloatArray:
        """The smallest float64 at least the exact value, for every entry."""
        return np.negative((-self).to_float_down())


def _nearest(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def _exceeds(value: float, exact: Fraction) -> bool:
    if math.isinf(value):
        return value > 0
    return Fraction(value) > exact


def _magnitude(values: ExactIntegers) -> int:
    if len(values) == 0:
        return 0
    return max(abs(int(values.max())), abs(int(values.min())))


def _product(left: ExactIntegers, right: ExactIntegers) -> ExactIntegers:
    if left.dtype != object and right.dtype != object:
        if _magnitude(left) * _magnitude(right) < _LIMIT:
            return left * right
        left = left.astype(object)
    return left * right


def _sum(left: ExactIntegers, right: ExactIntegers) -> ExactIntegers:
    if left.dtype != object and right.dtype != object:
        if _magnitude(left) + _magnitude(right) < _LIMIT:
            return left + right
        left = left.astype(object)
    return left + right


def _demote(values: ExactIntegers) -> ExactIntegers:
    """Back to int64 where every entry fits."""
    if values.dtype == object and _magnitude(values) < _LIMIT:
        return values.astype(np.int64)
    return values


def _from_python(values: list[int]) -> ExactIntegers:
    if all(-_LIMIT < value < _LIMIT for value in values):
        return np.array(values, dtype=np.int64)
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
