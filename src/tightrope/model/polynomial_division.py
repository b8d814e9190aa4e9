"""Exact division and greatest common divisors of polynomials over the rationals.

What rational functions need to come to lowest terms. Divisors are computed one variable at a time: the
content (the common divisor of the coefficients, polynomials in the other variables) is split off, and the
primitive parts go through Euclid's algorithm with pseudo-remainders (Knuth, The Art of Computer
Programming, vol. 2, 4.6.1). Denominators of models are short and mostly of degree 1, where one trial
division decides; for these this is faster than carrying polynomials over to a computer-algebra system and
back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from tightrope.model.polynomial import Monomial, Polynomial, monomial_order

_ONE = Polynomial.constant(1)
_Column = dict[int, Polynomial]
"""A polynomial in one variable: the coefficient, a polynomial in the others, of every power."""


def common_divisor(left: Polynomial, right: Polynomial) -> Polynomial:
    """The greatest common divisor, as `normalise` writes it."""
    if not left.terms:
        return normalise(right)[0] if right.terms else right
    if not right.terms:
        return normalise(left)[0]
    if left.is_constant or right.is_constant:
        return _ONE
    for one, other in ((left, right), (right, left)):
        if one.degree == 1:
            return normalise(one)[0] if divide(other, one) is not None else _ONE
    first, second = set(left.variables), set(right.variables)
    if alone := first.symmetric_difference(second):
        variable = min(alone)
        with_it, without = (left, right) if variable in first else (right, left)
        return _common([*_column(with_it, variable).values(), without])
    variable = min(first, key=lambda v: max(_power(m, v) for m in (*left.terms, *right.terms)))
    contents = [_common(_column(side, variable).values()) for side in (left, right)]
    parts = [_exactly(side, content) for side, content in zip((left, right), contents, strict=True)]
    shared = common_divisor(*contents)
    return normalise(shared * _primitive_divisor(parts[0], parts[1], variable))[0]


def divide(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """left / right where that is a polynomial, None where it is not."""
    if right.is_constant:
        return left / right.constant_term
    lead = max(right.terms, key=_lexicographic)
    lead_coefficient = right.terms[lead]
    rest, quotient = dict(left.terms), dict[Monomial, Fraction]()
    while rest:
        highest = max(rest, key=_lexicographic)
        monomial = _without(highest, lead)
        if monomial is None:
            return None
        factor = rest[highest] / lead_coefficient
        quotient[monomial] = factor
        for m, c in (right * Polynomial({monomial: factor})).terms.items():
            value = rest.get(m, Fraction(0)) - c
            if value:
                rest[m] = value
            else:
                rest.pop(m, None)
    return Polynomial(quotient)


def normalise(polynomial: Polynomial) -> tuple[Polynomial, Fraction]:
    """(p, c) with polynomial = c·p: p has coprime whole coefficients, positive at its lowest monomial."""
    coefficients = polynomial.terms.values()
    shared = math.lcm(*(c.denominator for c in coefficients))
    size = Fraction(math.gcd(*(int(c * shared) for c in coefficients)), shared)
    lowest = min(polynomial.terms, key=monomial_order)
    factor = size if polynomial.terms[lowest] > 0 else -size
    return polynomial / factor, factor


def _primitive_divisor(left: Polynomial, right: Polynomial, variable: int) -> Polynomial:
    """Euclid's algorithm on two polynomials without content in the variable."""
    large, small = _column(left, variable), _column(right, variable)
    if max(large) < max(small):
        large, small = small, large
    while True:
        rest = _pseudo_remainder(large, small)
        if not rest:
            return _polynomial(small, variable)
        if max(rest) == 0:
            return _ONE
        content = _common(rest.values())
        large, small = small, {k: _exactly(c, content) for k, c in rest.items()}


def _pseudo_remainder(large: _Column, small: _Column) -> _Column:
    """A multiple of `large`, less a multiple of `small`, of lower degree than `small`."""
    degree, lead = max(small), small[max(small)]
    rest = dict(large)
    while rest and max(rest) >= degree:
        shift, factor = max(rest) - degree, rest[max(rest)]
        lifted = {k: c * lead for k, c in rest.items()}
        for k, c in small.items():
            lifted[k + shift] = lifted.get(k + shift, Polynomial({})) - c * factor
        rest = {k: c for k, c in lifted.items() if c.terms}
    return rest


def _common(polynomials: Iterable[Polynomial]) -> Polynomial:
    result = Polynomial({})
    for polynomial in polynomials:
        result = common_divisor(result, polynomial)
        if result == _ONE:
            break
    return result


def _exactly(left: Polynomial, right: Polynomial) -> Polynomial:
    quotient = divide(left, right)
    assert quotient is not None
    return quotient


def _column(polynomial: Polynomial, variable: int) -> _Column:
    found: dict[int, dict[Monomial, Fraction]] = {}
    for monomial, coefficient in polynomial.terms.items():
        rest = tuple(factor for factor in monomial if factor[0] != variable)
        found.setdefault(_power(monomial, variable), {})[rest] = coefficient
    return {power: Polynomial(terms) for power, terms in found.items()}


def _polynomial(column: _Column, variable: int) -> Polynomial:
    total = Polynomial({})
    for power, coefficient in column.items():
        monomial: Monomial = ((variable, power),) if power else ()
        total = total + coefficient * Polynomial({monomial: Fraction(1)})
    return total


def _power(monomial: Monomial, variable: int) -> int:
    return next((exponent for index, exponent in monomial if index == variable), 0)


def _lexicographic(monomial: Monomial) -> tuple[tuple[int, int], ...]:
    """Sort key of the lexicographic order: a higher power of an earlier parameter is higher."""
    return tuple((-index, exponent) for index, exponent in monomial)


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """monomial / factor, or None where it is not divided by it."""
    left = dict(monomial)
    for index, exponent in factor:
        left[index] = left.get(index, 0) - exponent
        if left[index] < 0:
            return None
    return tuple(sorted((index, exponent) for index, exponent in left.items() if exponent))
