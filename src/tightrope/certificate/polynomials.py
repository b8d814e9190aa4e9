"""The expressions of a learned model as exact polynomials, read from a certificate's header.

A polynomial is a dictionary from monomials, ((parameter, exponent), …) in order, to rationals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

Monomial = tuple[tuple[int, int], ...]
Polynomial = dict[Monomial, Fraction]
Key = tuple[tuple[Monomial, Fraction], ...]


def read_polynomials(expressions: Mapping[str, Any]) -> list[Polynomial]:
    """All expressions: rows of [monomial, "coefficient"], monomials of [parameter, exponent]."""
    monomials = [tuple((int(i), int(e)) for i, e in monomial) for monomial in expressions["monomials"]]
    size = len(expressions["parameters"])
    for monomial in monomials:
        rising = all(a < b for (a, _), (b, _) in pairwise(monomial))
        if not rising or any(not 0 <= i < size or e < 1 for i, e in monomial):
            raise ValueError(f"{monomial} is no monomial")
    if len(set(monomials)) != len(monomials):
        raise ValueError("a monomial is listed twice")
    known: dict[str, Fraction] = {}
    result: list[Polynomial] = []
    for row in expressions["rows"]:
        polynomial: Polynomial = {}
        for number, text in row:
            if text not in known:
                known[text] = Fraction(text)
            polynomial[monomials[number]] = polynomial.get(monomials[number], Fraction(0)) + known[text]
        result.append({monomial: c for monomial, c in polynomial.items() if c})
    return result


def key(polynomial: Polynomial) -> Key:
    """The same for equal polynomials."""
    return tuple(sorted(polynomial.items()))


def is_constant(polynomial: Polynomial) -> bool:
    return all(not monomial for monomial in polynomial)


def scaled(polynomial: Polynomial, factor: int) -> Polynomial:
    return {monomial: factor * c for monomial, c in polynomial.items()}


def complement(polynomial: Polynomial) -> Polynomial:
    """1 − f."""
    result = {monomial: -c for monomial, c in polynomial.items()}
    result[()] = result.get((), Fraction(0)) + 1
    return {monomial: c for monomial, c in result.items() if c}


def added(left: Polynomial, right: Polynomial, factor: Fraction = Fraction(1)) -> Polynomial:
    """left + factor·right."""
    result = dict(left)
    for monomial, c in right.items():
        result[monomial] = result.get(monomial, Fraction(0)) + factor * c
    return {monomial: c for monomial, c in result.items() if c}


def multiplied(left: Polynomial, right: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for first, a in left.items():
        for second, b in right.items():
            exponents = dict(first)
            for i, e in second:
                exponents[i] = exponents.get(i, 0) + e
            monomial = tuple(sorted(exponents.items()))
            result[monomial] = result.get(monomial, Fraction(0)) + a * b
    return {monomial: c for monomial, c in result.items() if c}


def substituted(polynomial: Polynomial, values: Sequence[Polynomial]) -> Polynomial:
    """The polynomial with polynomials in place of its parameters."""
    result: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        term: Polynomial = {(): Fraction(1)}
        for i, exponent in monomial:
            for _ in range(exponent):
                term = multiplied(term, values[i])
        result = added(result, term, coefficient)
    return result
