"""Solving the equalities of a domain exactly: Gaussian elimination over the rationals.

Equality constraints (Σθ = 1) and parameters fixed by their box are solved for one parameter each; the others
stay free. At least one parameter is always left free, so that a region has a coordinate to live in; an
equality that would have eliminated the last one is kept by the caller as a pair of inequalities.
"""

from __future__ import annotations

from fractions import Fraction

from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.polynomial import Monomial, Polynomial


def solve_equalities(parameters: Parameters) -> tuple[tuple[int, ...], tuple[Polynomial, ...]]:
    """The free parameters, and every parameter as an affine polynomial in the free ones (by position)."""
    size = len(parameters)
    equalities = [c for c in parameters.constraints if c.is_equality]
    for i, (low, high) in enumerate(zip(parameters.lower, parameters.upper, strict=True)):
        if low == high:
            unit = tuple(Fraction(int(j == i)) for j in range(size))
            equalities.append(LinearConstraint(unit, low, True))
    solved: dict[int, tuple[list[Fraction], Fraction]] = {}
    for equality in equalities:
        row, bound = list(equality.coefficients), equality.bound
        for pivot, (other, other_bound) in solved.items():
            if factor := row[pivot]:
                row = [a - factor * b for a, b in zip(row, other, strict=True)]
                bound -= factor * other_bound
        candidates = [j for j in range(size) if row[j] != 0]
        if not candidates or len(solved) == size - 1:
            continue
        pivot = candidates[-1]
        lead = row[pivot]
        row, bound = [a / lead for a in row], bound / lead
        for key, (other, other_bound) in list(solved.items()):
            if factor := other[pivot]:
                reduced = [a - factor * b for a, b in zip(other, row, strict=True)]
                solved[key] = (reduced, other_bound - factor * bound)
        solved[pivot] = (row, bound)
    free = tuple(i for i in range(size) if i not in solved)
    position = {i: j for j, i in enumerate(free)}
    substitution: list[Polynomial] = []
    for i in range(size):
        if i in position:
            substitution.append(Polynomial.variable(position[i]))
            continue
        row, bound = solved[i]
        terms: dict[Monomial, Fraction] = {(): bound}
        terms.update({((position[j], 1),): -a for j, a in enumerate(row) if j != i and a != 0})
        substitution.append(Polynomial(terms))
    return free, tuple(substitution)
