"""The numbers of a check: longdouble with error bounds, or exact rationals. Checks are written once, over
either.

Arrays hold finite numbers only: dtype longdouble, or dtype object with rationals (python-flint's `fmpq` where
it is installed, `Fraction` otherwise). `+`, `-`, `*`, comparisons, `abs`, `np.where`, `np.maximum`, sums and
`reduceat` mean the same for both. After calculating, a check adds `n.error(operations, size)`, which bounds
what rounding may have done and is 0 for rationals, and asks `n.require_finite`: a number that left the range
of longdouble proves nothing.

What is trusted of longdouble: each of + − · / and √ has a relative error of at most `epsilon` (in fact half
of it), and np.log one of at most 4·epsilon, absolute near 1; conversions of integers are to the nearest. Of
`decimal`: square roots and logarithms are rounded correctly.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.numerics.arrays import FloatArray

_rational: Any = Fraction
with suppress(ImportError):  # several times as fast, and the same numbers
    from flint import fmpq

    _rational = fmpq

Numbers = npt.NDArray[Any]
"""An array in one of the two arithmetics."""

_WIDE = Context(prec=40, Emin=MIN_EMIN, Emax=MAX_EMAX)
_UPWARD = Context(prec=40, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""In which roots and logarithms of rationals are enclosed."""


class OutOfRange(ArithmeticError):
    """A number left the range of the arithmetic: nothing follows from it."""


class Arithmetic:
    """LONGDOUBLE, and what RATIONAL has in common with it."""

    exact: bool = False
    dtype: Any = np.longdouble
    epsilon: Any = np.finfo(np.longdouble).eps
    tiny: Any = np.finfo(np.longdouble).tiny

    def array(self, values: Any) -> Numbers:
        """Doubles and integers as they are, fractions to the nearest number (relative error ≤ epsilon)."""
        given = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
        return self._apply(_nearest, given) if given.dtype == object else given.astype(np.longdouble)

    def zeros(self, shape: int | tuple[int, ...]) -> Numbers:
        return np.zeros(shape, dtype=self.dtype)

    def error(self, operations: int | Numbers, size: Numbers) -> Any:
        """A bound on the rounding of so many operations on terms whose absolute values sum to `size`."""
        return 0 if self.exact else np.where(size > 0, 2 * operations * self.epsilon * size + self.tiny, 0)

    def is_finite(self, *arrays: Numbers) -> bool:
        return self.exact or all(bool(np.all(np.isfinite(array))) for array in arrays)

    def require_finite(self, *arrays: Numbers) -> None:
        if not self.is_finite(*arrays):
            raise OutOfRange

    def fractions(self, array: Numbers) -> list[Fraction]:
        """The numbers held, exactly, as a flat list."""
        self.require_finite(array)
        return [as_fraction(value) for value in np.asarray(array, dtype=self.dtype).reshape(-1)]

    def floats(self, array: Numbers) -> FloatArray:
        """Doubles near the numbers: for searching, never for a proof."""
        with np.errstate(over="ignore"):
            return np.asarray(array, dtype=np.longdouble).astype(np.float64)

    def up(self, array: Numbers) -> FloatArray:
        """The smallest doubles that are not below the numbers."""
        self.require_finite(array)
        near = self.floats(array)
        return np.where(self.array(near) < array, np.nextafter(near, np.inf), near)

    def down(self, array: Numbers) -> FloatArray:
        return -self.up(-array)

    def trim(self, array: Numbers, upward: bool | None = None) -> Numbers:
        """The same numbers in few bits: to the nearest, or none below (`upward`) or above; see `RATIONAL`."""
        return array

    def root_up(self, array: Numbers) -> Numbers:
        """Not below the square roots."""
        self.require_finite(array)
        root: Numbers = np.sqrt(np.maximum(array, 0)) * (1 + 2 * self.epsilon)
        return root

    def log_up(self, array: Numbers) -> Numbers:
        """Not below the logarithms of positive numbers."""
        return self._log(array, 4)

    def log_down(self, array: Numbers) -> Numbers:
        """Not above them."""
        return self._log(array, -4)

    def _log(self, array: Numbers, units: int) -> Numbers:
        self.require_finite(array)
        if not np.all(array > 0):
            raise OutOfRange
        value: Numbers = np.log(array)
        value = value + units * self.epsilon * (np.abs(value) + 1)
        return value

    def _apply(self, function: Callable[[Any], Any], array: Numbers) -> Numbers:
        """What a function makes of every number."""
        result = np.empty(np.size(array), dtype=self.dtype)
        result[:] = [function(value) for value in np.asarray(array).reshape(-1).tolist()]
        return result.reshape(np.shape(array))


class _Rational(Arithmetic):
    exact, dtype = True, np.dtype(object)
    epsilon: Any = 0
    tiny: Any = 0

    def array(self, values: Any) -> Numbers:
        given = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
        return self._apply(quick, given)

    def zeros(self, shape: int | tuple[int, ...]) -> Numbers:
        return np.full(shape, _rational(0), dtype=object)

    def floats(self, array: Numbers) -> FloatArray:
        near = [_to_double(value) for value in self.fractions(array)]
        return np.array(near, dtype=np.float64).reshape(np.shape(array))

    def trim(self, array: Numbers, upward: bool | None = None) -> Numbers:
        """At most 128 bits of mantissa, so that long products and many steps stay short."""
        return self._each(array, lambda value: _trim(value, upward))

    def root_up(self, array: Numbers) -> Numbers:
        return self._each(array, _root_up)

    def log_up(self, array: Numbers) -> Numbers:
        return self._each(array, _log_up)

    def log_down(self, array: Numbers) -> Numbers:
        return self._each(array, lambda value: -_log_up(1 / value if value else value))

    def _each(self, array: Numbers, function: Callable[[Fraction], Fraction]) -> Numbers:
        return self._apply(lambda value: quick(function(as_fraction(value))), array)


LONGDOUBLE: Arithmetic = Arithmetic()
RATIONAL: Arithmetic = _Rational()


def log_below(n: Arithmetic, level: Fraction) -> Any:
    """A number not above log(level)."""
    value = n.log_down(n.array([level]))[0]
    return value - 8 * n.epsilon * (abs(value) + 1)


def as_fraction(value: Any) -> Fraction:
    """A number of either arithmetic, exactly."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | float):
        return Fraction(value)
    if isinstance(value, np.longdouble):
        return Fraction(*value.as_integer_ratio())
    return Fraction(int(value.p), int(value.q))


def quick(value: Any) -> Any:
    """A number as what arrays of rationals hold: the same, and quicker to calculate with."""
    if isinstance(value, float | np.longdouble):
        return _rational(*value.as_integer_ratio())
    return _rational(value.numerator, value.denominator) if isinstance(value, Fraction) else _rational(value)


def _nearest(value: Any) -> np.longdouble:
    """A longdouble within epsilon of a number."""
    if isinstance(value, float | np.longdouble):
        return np.longdouble(value)
    exact = as_fraction(value)
    if max(abs(exact.numerator), exact.denominator) < 2**53:  # both are numbers of ours
        return np.longdouble(exact.numerator) / np.longdouble(exact.denominator)
    mantissa, shift = _scale(abs(exact), 128)
    near: np.longdouble = np.ldexp(np.longdouble(mantissa), -shift)
    return -near if exact < 0 else near


def _scale(value: Fraction, bits: int) -> tuple[int, int]:
    """(⌊value·2^shift⌋, shift) with about so many bits."""
    if value == 0:
        return 0, 0
    shift = bits - value.numerator.bit_length() + value.denominator.bit_length()
    top, bottom = value.numerator << max(shift, 0), value.denominator << max(-shift, 0)
    return top // bottom, shift


def _to_double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _trim(value: Fraction, upward: bool | None) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() <= 320:
        return value
    mantissa, shift = _scale(abs(value), 128)
    if upward is not None and upward == (value > 0):
        mantissa += 1
    short = Fraction(mantissa) / Fraction(2) ** shift
    return -short if value < 0 else short


def _root_up(value: Fraction) -> Fraction:
    return Fraction(_WIDE.next_plus(_WIDE.sqrt(_decimal_up(value)))) if value > 0 else Fraction(0)


def _log_up(value: Fraction) -> Fraction:
    """`decimal` rounds logarithms and roots correctly: the next number is beyond them; of 1 it is 0."""
    if value <= 0:
        raise OutOfRange
    near = _WIDE.ln(_decimal_up(value))
    return Fraction(_WIDE.next_plus(near)) if near else Fraction(0)


def _decimal_up(value: Fraction) -> Decimal:
    """A decimal number not below a fraction."""
    return _UPWARD.divide(Decimal(value.numerator), Decimal(value.denominator))
