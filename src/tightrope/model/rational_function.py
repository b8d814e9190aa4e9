"""One rational function f/g of the parameters, in lowest terms.

The canonical form makes equality a comparison: numerator and denominator have no common divisor, and the
denominator has coprime whole coefficients with a positive one at its lowest monomial (the constant where
there is one). A quotient that comes out as a polynomial is a `Polynomial`, never a `RationalFunction`.

Many quotients at once in lowest terms: denominators normalised on arrays, and a proof modulo a prime that
nothing is left to cancel.

A common divisor h of F and G, taken primitive (integral F and G), divides both over the integers (Gauss),
hence modulo every prime. Put numbers for all parameters but v. If the leading coefficient of G in v is not 0
there modulo the prime, neither is that of h, whose degree in v is then a lower bound of that of the common
divisors of the two univariate images. A resultant of these other than 0, modulo the prime, therefore shows
that h does not contain v; shown for every parameter of G, F and G have nothing in common. One modulus and
one point decide nearly always, by a determinant per quotient; whoever is not decided is left to the exact
algorithm (`tightrope.model.polynomial`), so that luck plays no part in what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.model.numbers import Number
from tightrope.model.polynomial import (
    Monomial,
    Polynomial,
    PolynomialArray,
    Quotient,
    as_polynomial,
    common_divisor,
    divide,
    monomial_order,
    normalise,
)
from tightrope.numerics.arrays import BoolArray, ExactIntegers, OffsetArray
from tightrope.numerics.rationals import RationalArray

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


_PRIME = 2**31 - 1
_ROOT = 48271
"""Its powers are the numbers that are put for the parameters."""

_LARGEST_RESULTANT = 12
"""Rows of a determinant: beyond that the exact algorithm is the better one."""

_BITS = 61.0


@dataclass(frozen=True)
class Reduced:
    """Quotients as `tightrope.model.rational_function` writes them, where `settled`; polynomials have the
    denominator 1."""

    tops: PolynomialArray
    bottoms: PolynomialArray
    settled: BoolArray


def reduce_quotients(tops: PolynomialArray, bottoms: PolynomialArray) -> Reduced:
    """tops / bottoms, row by row; no denominator may be 0."""
    zero = tops.is_zero()
    if zero.any():
        one = PolynomialArray.constant(RationalArray.constant(1, len(tops)))
        bottoms = PolynomialArray.where(zero, one, bottoms)
    monomials = sorted(bottoms.terms, key=monomial_order)
    whole, factor = _normalise([bottoms.terms[m] for m in monomials])
    kept = {m: RationalArray.from_integers(whole[j]) for j, m in enumerate(monomials)}
    divided = tops.divide(factor)
    return Reduced(divided, PolynomialArray(kept, len(tops)), _coprime(divided, monomials, whole))


def _normalise(columns: list[RationalArray]) -> tuple[ExactIntegers, RationalArray]:
    """Coprime whole coefficients (a row per monomial), positive at the first that is not 0, and the factor
    that was taken out."""
    top = np.stack([column.numerator for column in columns])
    below = np.stack([column.denominator for column in columns])
    if not _fits(top, below):
        top, below = top.astype(object), below.astype(object)
    shared = np.lcm.reduce(below, axis=0)
    whole = top * (shared // below)
    divisor = np.gcd.reduce(whole, axis=0)
    first = np.argmax(np.not_equal(whole, 0), axis=0)
    lead = np.take_along_axis(whole, first[None], axis=0)[0]
    signed = np.where(np.less(lead, 0), -divisor, divisor)
    return whole // signed, RationalArray.ratio(signed, shared)


def _fits(top: ExactIntegers, below: ExactIntegers) -> bool:
    """Do the coefficients fit int64 once they are multiplied by all denominators of their row?"""
    if top.dtype == object or below.dtype == object:
        return False
    size = np.log2(np.maximum(np.abs(top), 1)).max(axis=0) + np.log2(below).sum(axis=0)
    return bool((size < _BITS).all())


def _coprime(tops: PolynomialArray, monomials: list[Monomial], whole: ExactIntegers) -> BoolArray:
    """Where it is proved that numerator and denominator have no common divisor."""
    above = sorted(tops.terms, key=monomial_order)
    images = np.stack([_modulo(tops.terms[m].numerator) for m in above])
    scales = np.stack([_modulo(tops.terms[m].denominator) for m in above])
    for j in range(len(above)):  # every coefficient times the other ones' denominators
        for i in range(len(above)):
            if i != j:
                images[j] = images[j] * scales[i] % _PRIME
    below = _modulo(whole)
    present = np.concatenate(
        [
            np.stack([np.not_equal(tops.terms[m].numerator, 0).astype(np.bool_) for m in above]),
            np.not_equal(whole, 0).astype(np.bool_),
        ]
    )
    proved: BoolArray = np.zeros(len(tops), dtype=np.bool_)
    group = np.zeros(len(tops), dtype=np.int64)
    for byte in np.packbits(present, axis=0):
        _, group = np.unique(group * 256 + byte, return_inverse=True)
    for k in range(int(group.max(initial=-1)) + 1):
        rows = np.flatnonzero(group == k)
        has = present[:, rows[0]]
        f = {m: images[j, rows] for j, m in enumerate(above) if has[j]}
        g = {m: below[j, rows] for j, m in enumerate(monomials) if has[len(above) + j]}
        proved[rows] = _without_common(f, g, len(rows))
    return proved


def _without_common(f: dict[Monomial, OffsetArray], g: dict[Monomial, OffsetArray], size: int) -> BoolArray:
    """As `_coprime`, of polynomials modulo the prime that have the same monomials in all rows."""
    proved: BoolArray = np.ones(size, dtype=np.bool_)
    for variable in sorted({v for monomial in g for v, _ in monomial}):
        above, below = _image(f, variable, size), _image(g, variable, size)
        if len(above) + len(below) - 2 > _LARGEST_RESULTANT:
            return np.zeros(size, dtype=np.bool_)
        proved &= below[-1] != 0
        proved &= _is_regular(_sylvester(above, below))
    return proved


def _image(polynomial: dict[Monomial, OffsetArray], variable: int, size: int) -> OffsetArray:
    """[power, row]: the coefficients in one parameter, with numbers for all others."""
    degree = max(dict(monomial).get(variable, 0) for monomial in polynomial) if polynomial else 0
    image: OffsetArray = np.zeros((degree + 1, size), dtype=np.int64)
    for monomial, coefficient in polynomial.items():
        power, factor = 0, 1
        for index, exponent in monomial:
            if index == variable:
                power = exponent
            else:
                factor = factor * pow(_ROOT, (index + 1) * exponent, _PRIME) % _PRIME
        image[power] = (image[power] + coefficient * factor) % _PRIME
    return image


def _sylvester(f: OffsetArray, g: OffsetArray) -> OffsetArray:
    """[row, :, :]: the matrices whose determinants are the resultants."""
    size, first, second = f.shape[1], len(f) - 1, len(g) - 1
    matrix: OffsetArray = np.zeros((size, first + second, first + second), dtype=np.int64)
    for shift in range(second):
        matrix[:, shift, shift : shift + first + 1] = f[::-1].T
    for shift in range(first):
        matrix[:, second + shift, shift : shift + second + 1] = g[::-1].T
    return matrix


def _is_regular(matrix: OffsetArray) -> BoolArray:
    """Whose determinant is not 0 modulo the prime: elimination without division."""
    size, order = matrix.shape[:2]
    rows, regular = np.arange(size), np.ones(size, dtype=np.bool_)
    for k in range(order):
        pivot = k + np.argmax(matrix[:, k:, k] != 0, axis=1)
        chosen = matrix[rows, pivot].copy()
        matrix[rows, pivot] = matrix[:, k]
        regular &= chosen[:, k] != 0
        rest = matrix[:, k + 1 :]
        left = rest * chosen[:, None, k, None] % _PRIME
        matrix[:, k + 1 :] = (left - rest[:, :, k, None] * chosen[:, None, :]) % _PRIME
    return regular


def _modulo(values: ExactIntegers) -> OffsetArray:
    return (values % _PRIME).astype(np.int64)
