"""Many quotients at once in lowest terms: denominators normalised on arrays, and a proof modulo a prime that
nothing is left to cancel.

A common divisor h of F and G, taken primitive (integral F and G), divides both over the integers (Gauss),
hence modulo every prime. Put numbers for all parameters but v. If the leading coefficient of G in v is not 0
there modulo the prime, neither is that of h, whose degree in v is then a lower bound of that of the common
divisors of the two univariate images. A resultant of these other than 0, modulo the prime, therefore shows
that h does not contain v; shown for every parameter of G, F and G have nothing in common. One modulus and
one point decide nearly always, by a determinant per quotient; whoever is not decided is left to the exact
algorithm (`tightrope.model.polynomial_division`), so that luck plays no part in what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.model.polynomial import Monomial, monomial_order
from tightrope.model.polynomial_array import PolynomialArray
from tightrope.numerics.arrays import BoolArray, ExactIntegers, OffsetArray
from tightrope.numerics.rationals import RationalArray

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
