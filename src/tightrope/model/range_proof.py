"""Is every expression a probability everywhere in the domain? A proof, a witness, or neither.

First all expressions at once in float64 with outward rounding over the box. Those that may leave
[0, 1] there are looked at exactly, one by one:

* affine: the extremes lie at vertices of the domain (a linear program where there are too many);
* multilinear on a box: at corners;
* otherwise: subdivision with Bernstein coefficients. On a cell the range lies between the smallest
  and the largest coefficient; cells outside the constraints do not count, and any corner or centre
  inside the domain with a value outside [0, 1] is a witness. The coefficients of both halves of a cell
  follow from its own by averaging neighbours (de Casteljau).

Subdivision may run out of its budget, typically where an expression only touches 0 or 1 on a curve
of the domain's boundary. Such an expression is reported as unproved, never passed as proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.model.domain_vertices import domain_vertices
from tightrope.model.expressions import Expressions
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.polynomial import Polynomial
from tightrope.model.ranges import ranges_over_box

_MOST_CELLS = 2000
_LP_TOLERANCE = Fraction(1, 10**9)

Point = tuple[Fraction, ...]

Exact = npt.NDArray[Any]
"""Arrays of rationals."""


@dataclass(frozen=True)
class Witness:
    """A point of the domain where expression `expression` has a value outside [0, 1]."""

    expression: int
    point: Point
    value: Fraction


@dataclass(frozen=True)
class RangeProof:
    """`witness` None: no expression was seen to leave [0, 1]; `unproved` could not be settled."""

    witness: Witness | None
    unproved: tuple[int, ...]


def prove_ranges(expressions: Expressions, parameters: Parameters) -> RangeProof:
    """Decide 0 ≤ f ≤ 1 on the domain for every expression."""
    low, high = ranges_over_box(expressions, parameters.lower, parameters.upper)
    suspects = np.flatnonzero((low < 0) | (high > 1)).tolist()
    if not suspects:
        return RangeProof(None, ())
    vertices = domain_vertices(parameters)
    unproved: list[int] = []
    for e in suspects:
        polynomial = expressions.polynomial(e)
        outcome = _settle(polynomial, parameters, vertices)
        if outcome is False:
            unproved.append(e)
        elif outcome is not True:
            point, value = outcome
            return RangeProof(Witness(e, point, value), tuple(unproved))
    return RangeProof(None, tuple(unproved))


_Outcome = bool | tuple[Point, Fraction]
"""True: proved; False: not settled; otherwise a witness."""


def _settle(polynomial: Polynomial, parameters: Parameters, vertices: list[Point] | None) -> _Outcome:
    if polynomial.is_constant:
        value = polynomial.constant_term
        return True if 0 <= value <= 1 else (tuple(parameters.lower), value)
    on_corners = all(e == 1 for m in polynomial.terms for _, e in m) and not parameters.constraints
    if polynomial.degree == 1 or on_corners:
        points: Iterator[Point] | None = None
        if vertices is not None:
            points = iter(vertices)
        elif on_corners and len(polynomial.variables) <= 12:
            points = _corners(polynomial, parameters)
        if points is not None:
            return _first_violation(polynomial, points) or True
        if polynomial.degree == 1:
            return _settle_by_linear_programs(polynomial, parameters)
    for candidate in vertices or []:
        if violation := _first_violation(polynomial, iter([candidate])):
            return violation
    return _settle_by_subdivision(polynomial, parameters)


def _first_violation(polynomial: Polynomial, points: Iterator[Point]) -> tuple[Point, Fraction] | None:
    for point in points:
        value = polynomial.evaluate(point)
        if not 0 <= value <= 1:
            return point, value
    return None


def _corners(polynomial: Polynomial, parameters: Parameters) -> Iterator[Point]:
    variables = polynomial.variables
    for bits in product((0, 1), repeat=len(variables)):
        point = list(parameters.lower)
        for bit, v in zip(bits, variables, strict=True):
            point[v] = parameters.upper[v] if bit else parameters.lower[v]
        yield tuple(point)


# --- affine over many vertices -------------------------------------------------------------


def _settle_by_linear_programs(polynomial: Polynomial, parameters: Parameters) -> _Outcome:
    """Both extremes by HiGHS; its multipliers, not its objective, give the (exact) bound."""
    from scipy.optimize import linprog

    d = len(parameters)
    slope = [polynomial.terms.get(((i, 1),), Fraction(0)) for i in range(d)]
    inequalities = [c for c in parameters.constraints if not c.is_equality]
    equalities = [c for c in parameters.constraints if c.is_equality]
    for sign in (1, -1):  # minimise sign·slope
        result = linprog(
            [sign * float(a) for a in slope],
            A_ub=[[float(a) for a in c.coefficients] for c in inequalities] or None,
            b_ub=[float(c.bound) for c in inequalities] or None,
            A_eq=[[float(a) for a in c.coefficients] for c in equalities] or None,
            b_eq=[float(c.bound) for c in equalities] or None,
            bounds=[(float(a), float(b)) for a, b in zip(parameters.lower, parameters.upper, strict=True)],
            method="highs",
        )
        if result.status != 0:
            return False
        multipliers = [min(Fraction(float(y)), Fraction(0)) for y in result.ineqlin.marginals]
        multipliers += [Fraction(float(y)) for y in result.eqlin.marginals]
        rows: list[LinearConstraint] = [*inequalities, *equalities]
        bound = sum((y * c.bound for y, c in zip(multipliers, rows, strict=True)), Fraction(0))
        for i in range(d):
            rest = sign * slope[i] - sum(
                (y * c.coefficients[i] for y, c in zip(multipliers, rows, strict=True)), Fraction(0)
            )
            bound += min(rest * parameters.lower[i], rest * parameters.upper[i])
        extreme = polynomial.constant_term + sign * bound
        if extreme < -_LP_TOLERANCE or extreme > 1 + _LP_TOLERANCE:
            point = tuple(Fraction(float(x)).limit_denominator(10**9) for x in result.x)
            value = polynomial.evaluate(point)
            return (point, value) if parameters.contains(point) and not 0 <= value <= 1 else False
    return True


# --- subdivision ---------------------------------------------------------------------------


def _settle_by_subdivision(polynomial: Polynomial, parameters: Parameters) -> _Outcome:
    variables = polynomial.variables
    whole: tuple[Point, Point] = tuple(parameters.lower), tuple(parameters.upper)
    cells = [(*whole, bernstein(polynomial, *whole))]
    for _ in range(_MOST_CELLS):
        if not cells:
            return True
        low, high, coefficients = cells.pop()
        if any(_outside(constraint, low, high) for constraint in parameters.constraints):
            continue
        if all(0 <= c <= 1 for c in coefficients.flat):
            continue
        centre = tuple((a + b) / 2 for a, b in zip(low, high, strict=True))
        corners = coefficients.flat[0], coefficients.flat[-1]
        values = polynomial.evaluate(centre), *corners
        for candidate, value in zip((centre, low, high), values, strict=True):
            if not 0 <= value <= 1 and parameters.contains(candidate):
                return candidate, value
        split = max(variables, key=lambda v: high[v] - low[v])
        if high[split] == low[split]:
            continue
        left, right = halves(coefficients, variables.index(split))
        cells.append((low, _with(high, split, centre[split]), left))
        cells.append((_with(low, split, centre[split]), high, right))
    return False


def _outside(constraint: LinearConstraint, low: Point, high: Point) -> bool:
    smallest = sum(
        (min(a * x, a * y) for a, x, y in zip(constraint.coefficients, low, high, strict=True)), Fraction(0)
    )
    if smallest > constraint.bound:
        return True
    if not constraint.is_equality:
        return False
    largest = sum(
        (max(a * x, a * y) for a, x, y in zip(constraint.coefficients, low, high, strict=True)), Fraction(0)
    )
    return largest < constraint.bound


def _with(point: Point, index: int, value: Fraction) -> Point:
    return (*point[:index], value, *point[index + 1 :])


def halves(coefficients: Exact, axis: int) -> tuple[Exact, Exact]:
    """The Bernstein coefficients of the two halves of a cell that is cut in the middle of an axis."""
    rows = np.moveaxis(coefficients, axis, 0)
    left, right = [rows[0]], [rows[-1]]
    while len(rows) > 1:
        rows = (rows[:-1] + rows[1:]) / 2
        left.append(rows[0])
        right.append(rows[-1])
    return np.moveaxis(np.stack(left), 0, axis), np.moveaxis(np.stack(right[::-1]), 0, axis)


def bernstein(polynomial: Polynomial, low: Point, high: Point) -> Exact:
    """The Bernstein coefficients on the cell, one axis for each of the parameters that occur."""
    variables = polynomial.variables
    degree = [max(dict(m).get(v, 0) for m in polynomial.terms) for v in variables]
    # Coefficients in t after θ = low + (high − low)·t, as a dense tensor.
    shape = [d + 1 for d in degree]
    power: dict[tuple[int, ...], Fraction] = {}
    for monomial, coefficient in polynomial.terms.items():
        exponents = dict(monomial)
        factors: list[list[Fraction]] = []
        for v in variables:
            e = exponents.get(v, 0)
            width = high[v] - low[v]
            factors.append([comb(e, k) * low[v] ** (e - k) * width**k for k in range(e + 1)])
        for index in product(*(range(len(f)) for f in factors)):
            term = coefficient
            for f, k in zip(factors, index, strict=True):
                term *= f[k]
            power[index] = power.get(index, Fraction(0)) + term
    result: list[Fraction] = []
    for index in product(*(range(n) for n in shape)):
        total = Fraction(0)
        for inner in product(*(range(k + 1) for k in index)):
            a = power.get(inner)
            if a:
                weight = Fraction(1)
                for i, j, d in zip(index, inner, degree, strict=True):
                    weight *= Fraction(comb(i, j), comb(d, j))
                total += weight * a
        result.append(total)
    return np.array(result, dtype=object).reshape(shape)


def named_point(point: Sequence[Fraction], names: Sequence[str]) -> str:
    """`p=0.5, q=1/3`: decimals where they are short, fractions otherwise."""
    return ", ".join(f"{name}={_short(x)}" for name, x in zip(names, point, strict=True))


def _short(value: Fraction) -> str:
    decimal = f"{float(value):.12g}"
    return decimal if Fraction(decimal) == value else str(value)
