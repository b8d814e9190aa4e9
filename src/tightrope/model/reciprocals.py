"""Rational functions as polynomials in more variables: r = 1/g for every denominator g.

Tables of expressions keep rows of monomials. With the variable d + k for the reciprocal of denominator k,
f/g is the polynomial f·r and its row one like all others: where it is evaluated, tied or lifted to
coordinates of a region, nothing has to be told apart. Sums and products are another matter (p·r + q·r is
1 where r = 1/(p + q)): these are computed as functions and come back in lowest terms.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.model.expressions import Expressions
from tightrope.model.polynomial import Monomial, Polynomial, monomial_order
from tightrope.model.rational_function import Function, RationalFunction


class Reciprocals:
    """The denominators met so far, numbered as they come."""

    def __init__(self, parameters: int):
        self._parameters = parameters
        self._number: dict[Polynomial, int] = {}
        self._listed: list[Polynomial] = []

    @property
    def denominators(self) -> tuple[Polynomial, ...]:
        return tuple(self._listed)

    def extend(self, function: Function) -> Polynomial:
        """The function as a polynomial in the parameters and the reciprocals."""
        if not isinstance(function, RationalFunction):
            return function
        number = self._number.setdefault(function.denominator, len(self._listed))
        if number == len(self._listed):
            self._listed.append(function.denominator)
        factor = (self._parameters + number, 1)
        return Polynomial({(*monomial, factor): c for monomial, c in function.numerator.terms.items()})

    def function(self, polynomial: Polynomial) -> Function:
        """The function behind a polynomial of `extended`."""
        number = max((m[-1][0] for m in polynomial.terms if m), default=-1) - self._parameters
        if number < 0:
            return polynomial
        numerator = Polynomial({monomial[:-1]: c for monomial, c in polynomial.terms.items()})
        return RationalFunction(numerator, self._listed[number])


def without_unused(expressions: Expressions) -> Expressions:
    """The same table without denominators that no row has, the others in the order of the rows."""
    if not expressions.denominators:
        return expressions
    used, first = np.unique(expressions.denominator_of[expressions.is_rational], return_index=True)
    kept = used[np.argsort(first)].astype(np.int64)
    if np.array_equal(kept, np.arange(len(expressions.denominators))):
        return expressions
    size = len(expressions.parameter_names)
    new_number = {size + old: size + new for new, old in enumerate(kept.tolist())}
    monomials = [_renumber(monomial, new_number) for monomial in expressions.monomials]
    order = sorted(range(len(monomials)), key=lambda m: monomial_order(monomials[m]))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    monomial = place[expressions.monomial]
    term = np.lexsort((monomial, expressions.row_of_term))
    return replace(
        expressions,
        monomials=tuple(monomials[m] for m in order),
        monomial=monomial[term],
        coefficient=expressions.coefficient.take(term),
        denominators=expressions.denominators.take(kept),
    )


def _renumber(monomial: Monomial, place: dict[int, int]) -> Monomial:
    return tuple((place.get(index, index), exponent) for index, exponent in monomial)
