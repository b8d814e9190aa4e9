"""One rational function f/g of the parameters, in lowest terms.

The canonical form makes equality a comparison: numerator and denominator have no common divisor, and the
denominator has coprime whole coefficients with a positive one at its lowest monomial (the constant where
there is one). A quotient that comes out as a polynomial is a `Polynomial`, never a `RationalFunction`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tightrope.model.numbers import Number
from tightrope.model.polynomial import Polynomial, Quotient, as_polynomial
from tightrope.model.polynomial_division import common_divisor, divide, normalise

_ONE = Polynomial.constant(1)


class RationalFunction(Quotient):
    """Immutable and hashable; made by dividing polynomials, and equal exactly where the functions are equal.

    >>> import tightrope as tr
    >>> p, q = tr.Parameters.box(p=(0.1, 1), q=(0.1, 1)).symbols()
    >>> (p / (p + q)).text(["p", "q"]), p / (p + q) + q / (p + q) == 1 * p / p
    ('p/(p + q)', True)
    """

    __slots__ = ("denominator", "numerator")

    numerator: Polynomial
    denominator: Polynomial

    def __init__(self, numerator: Polynomial, denominator: Polynomial):
        """From a pair in canonical form; `quotient` brings any pair into it."""
        object.__setattr__(self, "numerator", numerator)
        object.__setattr__(self, "denominator", denominator)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a rational function cannot be changed: {name} is fixed")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RationalFunction)
            and self.numerator == other.numerator
            and self.denominator == other.denominator
        )

    def __hash__(self) -> int:
        return hash((self.numerator, self.denominator))

    def __reduce__(self) -> tuple[Any, ...]:
        return RationalFunction, (self.numerator, self.denominator)

    def __add__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        if bottom == self.denominator:
            return quotient(self.numerator + top, bottom)
        return quotient(self.numerator * bottom + top * self.denominator, self.denominator * bottom)

    def __neg__(self) -> RationalFunction:
        return RationalFunction(-self.numerator, self.denominator)

    def __sub__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        return self + quotient(-top, bottom)

    def __rsub__(self, other: Function | Number) -> Function:
        return -self + other

    def __mul__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        return quotient(self.numerator * top, self.denominator * bottom)

    def __truediv__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        return quotient(self.numerator * bottom, self.denominator * top)

    def __rtruediv__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        return quotient(top * self.denominator, bottom * self.numerator)

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Function:
        return quotient(self.numerator**exponent, self.denominator**exponent)

    is_constant = False

    @property
    def degree(self) -> int:
        """Of numerator or denominator, whichever is higher."""
        return max(self.numerator.degree, self.denominator.degree)

    @property
    def variables(self) -> tuple[int, ...]:
        """Indices of the parameters that occur, increasing."""
        return tuple(sorted({*self.numerator.variables, *self.denominator.variables}))

    def evaluate(self, point: Sequence[Fraction]) -> Fraction:
        return self.numerator.evaluate(point) / self.denominator.evaluate(point)

    def text(self, names: Sequence[str]) -> str:
        """Readable and exact, `p/(p + q)`, with whole coefficients; parses back in DRN files."""
        shared = math.lcm(*(c.denominator for c in self.numerator.terms.values()))
        top, bottom = self.numerator * shared, self.denominator * shared
        above, below = top.text(names), bottom.text(names)
        if len(top.terms) > 1:
            above = f"({above})"
        return f"{above}/{below}" if below in names else f"{above}/({below})"

    def __repr__(self) -> str:
        return f"RationalFunction({self.text([f'x{i}' for i in range(max(self.variables) + 1)])})"


Function = Polynomial | RationalFunction
"""What a probability may be."""


def quotient(numerator: Polynomial, denominator: Polynomial) -> Function:
    """numerator / denominator in canonical form: a polynomial where the division leaves nothing."""
    if not denominator.terms:
        raise ZeroDivisionError("division by 0")
    if denominator.is_constant:
        return numerator / denominator.constant_term
    if not numerator.is_constant:
        whole = divide(numerator, denominator)
        if whole is not None:
            return whole
        # What is of degree 1 has no divisor but itself.
        shared = _ONE if denominator.degree == 1 else common_divisor(numerator, denominator)
        if not shared.is_constant:
            numerator, denominator = _part(numerator, shared), _part(denominator, shared)
    elif not numerator.terms:
        return numerator
    bottom, factor = normalise(denominator)
    return RationalFunction(numerator / factor, bottom)


Quotient.made = quotient


def parts(value: Function | Number) -> tuple[Polynomial, Polynomial]:
    """Numerator and denominator."""
    if isinstance(value, RationalFunction):
        return value.numerator, value.denominator
    return as_polynomial(value), Polynomial.constant(1)


def as_function(value: Function | Number) -> Function:
    return value if isinstance(value, RationalFunction) else as_polynomial(value)


def _part(polynomial: Polynomial, divisor: Polynomial) -> Polynomial:
    result = divide(polynomial, divisor)
    assert result is not None
    return result
