"""Exact polynomials: dictionaries from monomials, ((parameter, exponent), …) in order, to rationals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb, prod
from typing import Any

from tightrope.certificate.budget import hold, longest, spend, spend_product, spend_terms
from tightrope.certificate.format.fields import Polynomial
from tightrope.certificate.numbers import as_fraction, quick
from tightrope.certificate.problem import bits_of

Monomial = tuple[tuple[int, int], ...]
Terms = dict[Monomial, Fraction]
Key = tuple[tuple[Monomial, Fraction], ...]
Interval = tuple[Fraction, Fraction]

ZERO, ONE = Fraction(0), Fraction(1)
MOST_TERMS = 20_000
MOST_CONTROLS = 4096
MOST_TABLE = 2 * 10**9
"""Of Bernstein coefficients: degree³ · bits of an end."""


def key(polynomial: Polynomial) -> Key:
    """The same for equal polynomials."""
    return tuple(sorted(polynomial.items()))


def is_constant(polynomial: Polynomial) -> bool:
    return all(not monomial for monomial in polynomial)


def add(left: Polynomial, right: Polynomial, factor: Fraction | int = 1) -> Terms:
    """left + factor·right."""
    met = (left[monomial] for monomial in right if monomial in left)
    spend("sums of polynomials", 2 * len(left))
    spend_terms("sums of polynomials", 2 * len(right), right.values(), met, (factor,))
    result = dict(left)
    for monomial, c in right.items():
        result[monomial] = result.get(monomial, ZERO) + factor * c
    return {monomial: c for monomial, c in result.items() if c}


def product(left: Monomial, right: Monomial) -> Monomial:
    exponents = dict(left)
    for i, e in right:
        exponents[i] = exponents.get(i, 0) + e
    return tuple(sorted(exponents.items()))


def multiply(left: Polynomial, right: Polynomial) -> Terms:
    result: Terms = {}
    spend_product("products of polynomials", 2 * len(left) * len(right), left.values(), right.values())
    for first, a in left.items():
        for second, b in right.items():
            monomial = product(first, second)
            held = result.get(monomial, ZERO)
            spend_product("products of polynomials", 1, (a, b), (held,))
            result[monomial] = held + a * b
    if len(result) > MOST_TERMS:
        raise ValueError(f"an expression has more than {MOST_TERMS} terms in the free parameters")
    return {monomial: c for monomial, c in result.items() if c}


def product_range(left: Interval, right: Interval, square: bool) -> Interval:
    """The range of a product over two intervals; of a square where the factors are the same."""
    corners = [a * b for a in left for b in right]
    return (ZERO if square and left[0] <= 0 <= left[1] else min(corners)), max(corners)


def polynomial_range(
    polynomial: Polynomial, lower: Sequence[Fraction], upper: Sequence[Fraction], is_reward: bool = False
) -> Interval:
    """An enclosure of a probability over a box of the parameters: by the least and the largest Bernstein
    coefficient, which for multilinear polynomials are values at corners; [0, 1] where there are too many,
    of a reward or a denominator a ValueError.
    """
    if all(sum(e for _, e in monomial) <= 1 for monomial in polynomial):
        spend_terms("ranges of expressions", 6 * len(polynomial), polynomial.values())
        low = high = polynomial.get((), ZERO)
        for monomial, c in polynomial.items():
            for v, _ in monomial:
                least, most = (lower, upper) if c > 0 else (upper, lower)
                low, high = low + c * least[v], high + c * most[v]
        return low, high
    degrees = common_degrees(polynomial)
    if degrees is None and is_reward:
        raise ValueError("a reward or a denominator has too many terms to be bounded")
    if degrees is None:
        return ZERO, ONE
    values = bernstein_coefficients(polynomial, degrees, lower, upper)
    return as_fraction(min(values)), as_fraction(max(values))


def common_degrees(*polynomials: Polynomial) -> dict[int, int] | None:
    """The degree of some polynomials in every parameter; None where they have too many coefficients."""
    degrees: dict[int, int] = {}
    for i, e in (factor for polynomial in polynomials for monomial in polynomial for factor in monomial):
        degrees[i] = max(e, degrees.get(i, 0))
    return degrees if prod(degree + 1 for degree in degrees.values()) <= MOST_CONTROLS else None


def bernstein_coefficients(
    polynomial: Polynomial, degrees: dict[int, int], lower: Sequence[Fraction], upper: Sequence[Fraction]
) -> list[Any]:
    """The Bernstein coefficients on a box, written with these degrees."""
    controls: list[dict[Monomial, Any]] = [{monomial: quick(c) for monomial, c in polynomial.items()}]
    bits = longest(polynomial.values())
    for i, degree in degrees.items():
        bits += degree * max(bits_of(lower[i]), bits_of(upper[i]))
        spend("Bernstein coefficients", 4 * sum(map(len, controls)) * (degree + 1), bits)
        table = [[1, quick(lower[i])], [1, quick(upper[i])]]
        if degree > 1:
            _count_table(degree, lower[i], upper[i])
            table = bernstein_table(degree, lower[i], upper[i])
        controls = [_put_powers(control, i, powers) for control in controls for powers in table]
    return [control.get((), 0) for control in controls]


def _count_table(degree: int, low: Fraction, high: Fraction) -> None:
    """What a table takes, once in a check, whether or not an earlier one left it behind."""
    bits = degree * max(bits_of(low), bits_of(high))
    spend("Bernstein coefficients", 6 * (degree + 1) ** 2, bits, once=(degree, low, high))
    hold("Bernstein coefficients", (degree + 1) ** 2 * (100 + bits // 8))


def _put_powers(polynomial: Mapping[Monomial, Any], v: int, powers: Sequence[Any]) -> dict[Monomial, Any]:
    """The polynomial with powers[e] in place of v^e."""
    result: dict[Monomial, Any] = {}
    for monomial, c in polynomial.items():
        rest = tuple(factor for factor in monomial if factor[0] != v)
        result[rest] = result.get(rest, 0) + c * powers[dict(monomial).get(v, 0)]
    return result


@lru_cache(maxsize=1 << 10)
def bernstein_table(degree: int, low: Fraction, high: Fraction) -> list[list[Any]]:
    """[k][e]: the k-th Bernstein coefficient of x^e on [low, high], a mean of products of e of its points.

    Sums of such products are the coefficients of (1 + high·t)^k·(1 + low·t)^(degree − k); from one k to the
    next, a factor 1 + low·t is divided out.
    """
    if degree**3 * max(bits_of(low), bits_of(high)) > MOST_TABLE:
        raise ValueError("an expression has too high a degree to be bounded")
    below, above, table = quick(low), quick(high), []
    sums = [comb(degree, e) * below**e for e in range(degree + 1)]
    for _ in range(degree + 1):
        table.append([total / comb(degree, e) for e, total in enumerate(sums)])
        rest = sums[0]
        for e in range(1, degree + 1):
            sums[e], rest = sums[e] + (above - below) * rest, sums[e] - below * rest
    return table
