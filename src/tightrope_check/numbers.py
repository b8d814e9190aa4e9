"""The numbers of a check: float64 with error bounds, or exact rationals. Checks are written over either.

Arrays hold float64, or dtype object with rationals (python-flint's `fmpq` where it is installed, `Fraction`
otherwise); `+`, `-`, `*`, comparisons, `abs`, `np.where`, `np.maximum`, sums and `reduceat` mean the same for
both. RATIONAL decides. FLOAT64 is a filter: what it proves is certain, on every machine and in any order of
sums, and the rest is decided in rationals.

What is trusted of float64 (IEEE 754), with u = 2⁻⁵³, η = 2⁻¹⁰⁷⁴, ε = 2u = `epsilon` and `tiny` = 2⁻¹⁰²²:

1. fl(a ± b) = (a ± b)(1 + d), |d| ≤ u: where the result is that small it is exact. It is 0 only if a = ±b.
2. fl(a·b), fl(a/b) = (a·b)(1 + d) + e, |d| ≤ u, |e| ≤ η, not both. It may be 0 though no factor is.
3. fl(√a) = √a·(1 + d), |d| ≤ u.
4. `array` of a rational q: |held − q| ≤ u·|q| + η. Of doubles, and of integers up to 2⁵³: exact.
5. What leaves the range is infinite or NaN; `is_finite` is asked before it proves anything.

Lemma (`error`): the README has it, with its proof of the bound k·(ε·(computed Σ|t_i|) + tiny).

Logarithms, and roots of rationals, are rationals on a side of the true ones, by series and square roots of
integers: no C library is trusted. They are the same with and without python-flint.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope_check.arrays import BoolArray, FloatArray, Number

_rational: Callable[..., Number] = Fraction
with suppress(ImportError):  # several times as fast, and the same numbers
    from flint import fmpq

    _rational = fmpq

Numbers = npt.NDArray[Any]
"""An array in one of the two arithmetics."""


class OutOfRange(ArithmeticError):
    """A number left the range of the arithmetic: nothing follows from it."""


class Arithmetic:
    """FLOAT64 or RATIONAL: see above."""

    def __init__(self, exact: bool, dtype: npt.DTypeLike, epsilon: Number, tiny: Number):
        self.exact, self.dtype, self.epsilon, self.tiny = exact, np.dtype(dtype), epsilon, tiny

    @property
    def is_kept(self) -> bool:
        """Whether small numbers are kept: a process may have been told to flush them to 0."""
        return self.exact or bool(np.all(np.array([1.0, 3.0]) * self.tiny / 4 > 0))

    def array(self, values: object) -> Numbers:
        """Doubles and integers as they are, fractions to the nearest number (see above)."""
        given = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
        if self.exact or given.dtype == object:
            return self._apply(quick if self.exact else _nearest, given)
        return given.astype(np.float64)

    def zeros(self, shape: int | tuple[int, ...]) -> Numbers:
        return np.full(shape, _rational(0) if self.exact else 0.0, dtype=self.dtype)

    def enclose(self, values: object) -> tuple[Numbers, Numbers]:
        """(not above, not below) some rationals, as near as numbers go: next to 10⁻⁵⁰⁰⁰ are 0 and η."""
        exact = RATIONAL.array(values)
        return (exact, exact) if self.exact else (RATIONAL.down(exact), RATIONAL.up(exact))

    def error(self, operations: int | Numbers, size: Number) -> Number:
        """A bound on the rounding of so many operations on terms whose absolute values sum to `size`."""
        return 0 if self.exact else operations * (self.epsilon * size + self.tiny)

    def finite(self, array: Numbers) -> BoolArray:
        """Where numbers are in the range of the arithmetic."""
        return np.ones(np.shape(array), dtype=np.bool_) if self.exact else np.isfinite(array)

    def require_finite(self, *arrays: Numbers) -> None:
        if not all(np.all(self.finite(array)) for array in arrays):
            raise OutOfRange

    def fractions(self, array: Numbers) -> list[Fraction]:
        """The numbers held, exactly, as a flat list."""
        self.require_finite(array)
        return [as_fraction(value) for value in np.asarray(array, dtype=self.dtype).reshape(-1).tolist()]

    def floats(self, array: Numbers) -> FloatArray:
        """Doubles near the numbers: for searching, never for a proof."""
        return FLOAT64._apply(_nearest, array) if array.dtype == object else array.astype(np.float64)

    def up(self, array: Numbers) -> FloatArray:
        """The smallest doubles that are not below the numbers."""
        if self.exact:
            return FLOAT64._apply(lambda value: _double_up(*parts_of(value)), array)
        self.require_finite(array)
        return self.floats(array)

    def down(self, array: Numbers) -> FloatArray:
        return -self.up(-array)

    def trim(self, array: Numbers, upward: bool | None = None) -> Numbers:
        """The same numbers in few bits, to the nearest, or none below (`upward`) or above: of rationals at
        most 128 bits of mantissa, so that long products and many steps stay short."""
        return self.each(array, lambda top, bottom: _trim(top, bottom, upward)) if self.exact else array

    def each(self, array: Numbers, function: Callable[[int, int], tuple[int, int]]) -> Numbers:
        """The rationals that a function makes of every numerator and denominator."""
        return self._apply(lambda value: _rational(*function(*parts_of(value))), array)

    def _apply(self, function: Callable[[Number], Number], array: Numbers) -> Numbers:
        """What a function makes of every number."""
        result = np.empty(np.size(array), dtype=self.dtype)
        result[:] = [function(value) for value in np.asarray(array).reshape(-1).tolist()]
        return result.reshape(np.shape(array))


class _Rational(Arithmetic):
    """A class of its own, so that a test can watch what rationals are handed."""


FLOAT64 = Arithmetic(False, np.float64, 2.0**-52, 2.0**-1022)
RATIONAL = _Rational(True, object, 0, 0)


def as_fraction(value: Number) -> Fraction:
    """A number of either arithmetic, exactly."""
    return value if type(value) is Fraction else Fraction(*parts_of(value))


def quick(value: Number) -> Number:
    """A number as what arrays of rationals hold: the same, and quicker to calculate with."""
    kind = type(value)
    if kind is _rational:
        return value
    return _rational(value) if kind is int else _rational(*parts_of(value))


def parts_of(value: Number) -> tuple[int, int]:
    """(numerator, denominator) of a number of any kind."""
    kind = type(value)
    if kind is Fraction or isinstance(value, float):
        return value.as_integer_ratio()  # type: ignore[no-any-return]
    if kind is _rational:
        return int(value.p), int(value.q)
    return int(value.numerator), int(value.denominator)


def bits_of(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def _nearest(value: Number) -> float:
    """The double nearest to a number."""
    return value if isinstance(value, float) else _quotient(*parts_of(value))


def _quotient(top: int, bottom: int) -> float:
    """The double nearest to top/bottom; Python rounds quotients of integers correctly, small ones too."""
    try:
        return top / bottom
    except OverflowError:
        return inf if top > 0 else -inf


def _double_up(top: int, bottom: int) -> float:
    """The smallest double that is not below top/bottom; infinite where there is none."""
    near = _quotient(top, bottom)
    if near in (inf, -inf):
        return near if near > 0 else nextafter(near, inf)
    a, b = near.as_integer_ratio()
    return nextafter(near, inf) if a * bottom < top * b else near


def scaled(top: int, bottom: int, shift: int, upward: bool) -> int:
    """top·2^shift/bottom, rounded down or up."""
    top, bottom = top << max(shift, 0), bottom << max(-shift, 0)
    return -(-top // bottom) if upward else top // bottom


def dyadic(mantissa: int, shift: int) -> tuple[int, int]:
    """mantissa·2^−shift."""
    return (mantissa, 1 << shift) if shift >= 0 else (mantissa << -shift, 1)


def _trim(top: int, bottom: int, upward: bool | None) -> tuple[int, int]:
    if top.bit_length() + bottom.bit_length() <= 320:
        return top, bottom
    shift = 128 - top.bit_length() + bottom.bit_length()
    return dyadic(scaled(top, bottom, shift, bool(upward)), shift)
