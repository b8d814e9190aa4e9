"""Probabilities that are quotients f/g of polynomials, without division.

Parameter number d + k of an expression, d parameters in all, stands for 1/denominator[k], which must be the
last factor of every term of the expression: Σ c·m/g. `split` reads that as (f, g). Every denominator is
proved positive on the domain's box, by its least Bernstein coefficient, before anything is made of it. Then

* f/g ≤ u where f − u·g ≤ 0, and f/g ≥ l where f − l·g ≥ 0: rows in the monomials of f and g;
* f − c·g ≤ m on a region gives f/g ≤ c + m/g, at most c + m/(least g) for m ≥ 0, c + m/(largest g) below;
* with Bernstein coefficients a_i of f and b_i > 0 of g, of the same degrees, f/g is a mean of the a_i/b_i
  with weights b_i·B_i/g ≥ 0, and lies between the least and the largest of them.
"""

from __future__ import annotations

from fractions import Fraction

from tightrope_check.coordinates import (
    ONE,
    ZERO,
    Affine,
    Ends,
    Interval,
    Put,
    Space,
    Terms,
    add,
    bernstein_coefficients,
    common_degrees,
    multiply,
    polynomial_range,
)
from tightrope_check.fields import Polynomial, Polynomials
from tightrope_check.numbers import as_fraction
from tightrope_check.problem import CertifiedProblem

UNIT: Terms = {(): ONE}


class QuotientSpace(Space):
    """A space in which expressions are read as quotients."""

    def __init__(self, problem: CertifiedProblem, polynomials: Polynomials):
        assert problem.domain is not None and problem.denominator is not None
        if problem.data is not None and not problem.data.has_intervals:
            raise ValueError("quotients are for intervals alone")
        lower, upper = problem.domain.lower, problem.domain.upper
        self.parameters, self.denominators = len(lower), problem.denominator
        if any(i >= len(lower) for g in self.denominators for monomial in g for i, _ in monomial):
            raise ValueError("a denominator has a parameter that is not there")
        self.ranges = [polynomial_range(g, lower, upper, True) for g in self.denominators]
        if any(least <= 0 for least, _ in self.ranges):
            raise ValueError("a denominator is not proved to be positive on the domain's box")
        super().__init__(problem.domain, [side for p in polynomials for side in self.split(p)])

    def number(self, polynomial: Polynomial) -> int | None:
        """The number of the denominator, None of a polynomial."""
        divisors = {m[-1] if m and m[-1][0] >= self.parameters else None for m in polynomial} or {None}
        last = divisors.pop()
        if divisors or any(i >= self.parameters for monomial in polynomial for i, _ in monomial[:-1]):
            raise ValueError("an expression is not a quotient with one denominator")
        if last is None:
            return None
        number, power = last[0] - self.parameters, last[1]
        if power != 1 or number >= len(self.denominators):
            raise ValueError("an expression is divided by what is not a denominator")
        return number

    def split(self, polynomial: Polynomial) -> tuple[Polynomial, Polynomial]:
        """(f, g); g = 1 of a polynomial."""
        k = self.number(polynomial)
        if k is None:
            return polynomial, UNIT
        return {monomial[:-1]: c for monomial, c in polynomial.items()}, self.denominators[k]

    def form(self, polynomial: Polynomial, c: Fraction) -> Affine:
        top, bottom = self.split(polynomial)
        return self.affine(add(top, bottom, -c))

    def end(self, polynomial: Polynomial, c: Fraction, rest: Fraction, side: int) -> Fraction:
        k = self.number(polynomial)
        least, most = (ONE, ONE) if k is None else self.ranges[k]
        return c + rest / (least if (rest > 0) == (side == 1) else most)

    def range(self, polynomial: Polynomial, box: Ends, is_reward: bool = False, put: Put = dict) -> Interval:
        """[0, 1] where g is not proved positive on the box, or there are too many coefficients."""
        top, bottom = map(put, self.split(polynomial))
        if bottom == UNIT:
            return polynomial_range(top, *box, is_reward)
        if is_reward:
            raise ValueError("a reward is a quotient")
        degrees = common_degrees(top, bottom)
        if degrees is None:
            return ZERO, ONE
        above, below = (bernstein_coefficients(side, degrees, *box) for side in (top, bottom))
        if min(below) <= 0:
            return ZERO, ONE
        values = [a / b for a, b in zip(above, below, strict=True)]
        return as_fraction(min(values)), as_fraction(max(values))

    def complement(self, polynomial: Polynomial) -> Terms:
        """(g − f)/g; of a sum of several quotients the numerator of the rest, over all denominators."""
        parts: dict[int | None, Terms] = {}
        for monomial, c in polynomial.items():
            k, (top, _) = self.number({monomial: c}), self.split({monomial: c})
            parts[k] = add(parts.get(k, {}), top)
        if len(parts) == 1 and (k := next(iter(parts))) is not None:
            rest = add(self.denominators[k], parts[k], -1)
            return {(*m, (self.parameters + k, 1)): c for m, c in rest.items()}
        above, below = parts.pop(None, {}), UNIT
        for k, top in parts.items():  # above/below + top/g
            assert k is not None
            above = add(multiply(above, self.denominators[k]), multiply(top, below))
            below = multiply(below, self.denominators[k])
        return add(below, above, -1)
