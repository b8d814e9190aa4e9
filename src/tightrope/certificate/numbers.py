"""The numbers of a check: longdouble with error bounds, or exact rationals. Checks are written once, over
either.

Arrays hold finite numbers only: dtype longdouble, or dtype object with rationals (python-flint's `fmpq` where
it is installed, `Fraction` otherwise). `+`, `-`, `*`, comparisons, `abs`, `np.where`, `np.maximum`, sums and
`reduceat` mean the same for both. After calculating, a check adds `n.error(operations, size)`, which bounds
what rounding may have done and is 0 for rationals, and asks `n.is_finite`: a number that left the range of
longdouble proves nothing.

What is trusted of longdouble: each of + − · / and √ has a relative error of at most `epsilon` (in fact half
of it), and np.log one of at most 4·epsilon, absolute near 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from math import isqrt
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

_BITS = 160
"""Bits of the fixed-point numbers in which logarithms are enclosed."""


class OutOfRange(ArithmeticError):
    """A number left the range of the arithmetic: nothing follows from it."""


class Arithmetic(ABC):
    """One of the two: see `LONGDOUBLE` and `RATIONAL`."""

    exact: bool
    name: str
    dtype: Any
    epsilon: Any
    tiny: Any

    @abstractmethod
    def array(self, values: Any) -> Numbers:
        """Doubles and integers as they are, fractions to the nearest number (relative error ≤ epsilon)."""

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

    @abstractmethod
    def fractions(self, array: Numbers) -> list[Fraction]:
        """The numbers held, exactly, as a flat list."""

    @abstractmethod
    def floats(self, array: Numbers) -> FloatArray:
        """Doubles near the numbers: for searching, never for a proof."""

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

    def enclose(self, values: Iterable[Fraction]) -> tuple[Numbers, Numbers]:
        """(not above, not below) the fractions; equal where the fraction is a number of ours."""
        listed = list(values)
        near = self.array(listed)
        if self.exact:
            return near, near
        same = np.array([a == b for a, b in zip(self.fractions(near), listed, strict=True)], dtype=np.bool_)
        margin = np.where(same, 0, 2 * self.epsilon * np.abs(near) + self.tiny)
        below = near - margin
        return np.where((near >= 0) & (below < 0), 0, below), near + margin

    @abstractmethod
    def root_up(self, array: Numbers) -> Numbers:
        """Not below the square roots."""

    @abstractmethod
    def log_up(self, array: Numbers) -> Numbers:
        """Not below the logarithms of positive numbers."""

    @abstractmethod
    def log_down(self, array: Numbers) -> Numbers:
        """Not above them."""


class _LongDouble(Arithmetic):
    exact, name, dtype = False, "longdouble", np.longdouble
    epsilon = np.finfo(np.longdouble).eps
    tiny = np.finfo(np.longdouble).tiny

    def array(self, values: Any) -> Numbers:
        given = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
        if given.dtype != object:
            return given.astype(np.longdouble)
        flat = [_nearest(value) for value in given.reshape(-1).tolist()]
        return np.array(flat, dtype=np.longdouble).reshape(given.shape)

    def fractions(self, array: Numbers) -> list[Fraction]:
        self.require_finite(array)
        mantissa, exponent = np.frexp(np.asarray(array, dtype=np.longdouble).reshape(-1))
        result = [Fraction(0)] * len(mantissa)
        for part in range(5):  # 5 · 32 bits hold every mantissa
            whole = np.trunc(np.ldexp(mantissa, 32))
            mantissa = np.ldexp(mantissa, 32) - whole
            for i, digits in enumerate(whole.astype(np.int64).tolist()):
                if digits:
                    result[i] += digits * Fraction(2) ** (int(exponent[i]) - 32 * (part + 1))
        return result

    def floats(self, array: Numbers) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(array, dtype=np.longdouble).astype(np.float64)

    def root_up(self, array: Numbers) -> Numbers:
        self.require_finite(array)
        root: Numbers = np.sqrt(np.maximum(array, 0))
        return root + 2 * self.epsilon * root

    def log_up(self, array: Numbers) -> Numbers:
        value = self._log(array)
        return value + 4 * self.epsilon * (np.abs(value) + 1)

    def log_down(self, array: Numbers) -> Numbers:
        value = self._log(array)
        return value - 4 * self.epsilon * (np.abs(value) + 1)

    def _log(self, array: Numbers) -> Numbers:
        if not np.all(array > 0):
            raise OutOfRange
        self.require_finite(array)
        return np.asarray(np.log(array))


class _Rational(Arithmetic):
    exact, name, dtype = True, "rational", np.dtype(object)
    epsilon: Any = 0
    tiny: Any = 0

    def array(self, values: Any) -> Numbers:
        given = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
        result = np.empty(given.size, dtype=object)
        result[:] = [_exactly(value) for value in given.reshape(-1).tolist()]
        return result.reshape(given.shape)

    def zeros(self, shape: int | tuple[int, ...]) -> Numbers:
        result = np.empty(shape, dtype=object)
        result[...] = _rational(0)
        return result

    def fractions(self, array: Numbers) -> list[Fraction]:
        return [as_fraction(value) for value in np.asarray(array, dtype=object).reshape(-1).tolist()]

    def floats(self, array: Numbers) -> FloatArray:
        near = [_to_double(value) for value in self.fractions(array)]
        return np.array(near, dtype=np.float64).reshape(np.shape(array))

    def trim(self, array: Numbers, upward: bool | None = None) -> Numbers:
        """At most 128 bits of mantissa, so that long products and many steps stay short."""
        short = [_trimmed(value, upward) for value in self.fractions(array)]
        return self.array(np.array([*short, None], dtype=object)[:-1]).reshape(np.shape(array))

    def root_up(self, array: Numbers) -> Numbers:
        return self._each(array, _root_up)

    def log_up(self, array: Numbers) -> Numbers:
        return self._each(array, lambda value: _log(value)[1])

    def log_down(self, array: Numbers) -> Numbers:
        return self._each(array, lambda value: _log(value)[0])

    def _each(self, array: Numbers, function: Any) -> Numbers:
        values = [function(value) for value in self.fractions(array)]
        return self.array(np.array([*values, None], dtype=object)[:-1]).reshape(np.shape(array))


LONGDOUBLE: Arithmetic = _LongDouble()
RATIONAL: Arithmetic = _Rational()


def as_fraction(value: Any) -> Fraction:
    """A number of either arithmetic, exactly."""
    if isinstance(value, np.longdouble):
        return LONGDOUBLE.fractions(np.array([value]))[0]
    if isinstance(value, Fraction | int | float):
        return Fraction(value)
    return Fraction(int(value.p), int(value.q))


def _exactly(value: Any) -> Any:
    if isinstance(value, Fraction):
        return _rational(value.numerator, value.denominator)
    if isinstance(value, float):
        return _rational(*value.as_integer_ratio())
    if isinstance(value, np.longdouble):
        return _exactly(as_fraction(value))
    return _rational(value)


def _nearest(value: Any) -> np.longdouble:
    """A longdouble within epsilon of a number."""
    if isinstance(value, float | np.longdouble):
        return np.longdouble(value)
    exact = as_fraction(value)
    high = _to_double(exact)
    if 1e-200 < abs(high) < 1e300:  # three doubles hold more bits than any longdouble
        rest = exact - Fraction(high)
        middle = float(rest)
        return np.longdouble(high) + (np.longdouble(middle) + np.longdouble(float(rest - Fraction(middle))))
    mantissa, shift = _scaled(abs(exact), 128)
    total = np.longdouble(0)
    for part in range(5):
        total += np.ldexp(np.longdouble((mantissa >> (32 * part)) & 0xFFFFFFFF), 32 * part)
    near: np.longdouble = np.ldexp(total, -shift)
    return -near if exact < 0 else near


def _scaled(value: Fraction, bits: int) -> tuple[int, int]:
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


def _trimmed(value: Fraction, upward: bool | None) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() <= 320:
        return value
    mantissa, shift = _scaled(abs(value), 128)
    if upward is not None and upward == (value > 0):
        mantissa += 1
    short = Fraction(mantissa) / Fraction(2) ** shift
    return -short if value < 0 else short


def _root_up(value: Fraction) -> Fraction:
    if value <= 0:
        return Fraction(0)
    mantissa, shift = _scaled(value, 256)
    if shift % 2:
        mantissa, shift = mantissa * 2, shift + 1
    return Fraction(isqrt(mantissa + 2) + 1) / Fraction(2) ** (shift // 2)


def _log(value: Fraction) -> tuple[Fraction, Fraction]:
    """Enclosure of log: value = m·2^e with 1/2 ≤ m ≤ 2, log m = 2·artanh((m − 1)/(m + 1)), in fixed point.

    With |z| ≤ 1/3 each of the at most 52 terms is off by a few units, and so is ln 2.
    """
    if value <= 0:
        raise OutOfRange
    mantissa, shift = _scaled(value, _BITS)
    exponent = mantissa.bit_length() - 1 - shift
    fixed = mantissa << (_BITS + 1 - mantissa.bit_length())  # 1 ≤ fixed / 2^_BITS < 2
    one = 1 << _BITS
    total = _twice_artanh((fixed - one << _BITS) // (fixed + one)) + exponent * _twice_artanh(one // 3)
    slack = 512 * (abs(exponent) + 1)
    return Fraction(total - slack, one), Fraction(total + slack, one)


def _twice_artanh(z: int) -> int:
    total, power, square, k = 0, z, z * z >> _BITS, 1
    while power:
        total += 2 * power // k
        power = power * square >> _BITS
        k += 2
    return total
