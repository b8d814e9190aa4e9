"""Ranges of expressions: safe bounds over a box, and proofs that all are probabilities on the domain.

*Bounds.* Affine functions have their extremes term by term, multilinear ones at corners. Otherwise Bernstein
coefficients enclose the range; a product of affine probabilities stays in [0, 1], as each coefficient
averages products of values at corners. A sum of n products of float64, each within (1+u)^k, is off by at most
γ(n+k+2)·Σ|terms|, γ(m) = m·u/(1−m·u), u = 2⁻⁵³ (Higham, ch. 3); bounds are widened by that. For f/g with
coefficients a_i, b_i of equal degrees, all b_i of one sign, f/g is a mean of the a_i/b_i with weights
b_i·B_i/g ≥ 0, so min a_i/b_i ≤ f/g ≤ max a_i/b_i. If f and g are multilinear the bounds are attained.

*Proofs* are exact, one expression at a time, on the parts of the domain that it touches (groups of parameters
that constraints link). Affine: at vertices, or by a linear program. Multilinear on a box: at corners.
Otherwise cells are subdivided (de Casteljau); cells outside the constraints do not count, and a corner or
centre inside the domain with a value outside [0, 1] is a witness. f/g with g > 0 needs f ≥ 0 and g − f ≥ 0;
`prove_signs` checks denominators. An expression whose subdivision exceeds its budget is reported as unproved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import comb, prod

import numpy as np

from tightrope.errors import InputError
from tightrope.model.expressions import NO_DENOMINATORS, Expressions, Point
from tightrope.model.parameters import LinearConstraint, Parameters, domain_vertices
from tightrope.model.polynomial import Polynomial, PolynomialArray, monomial_order
from tightrope.numerics.arrays import AnyArray, FloatArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import remember
from tightrope.numerics.rounding import down, up

_UNIT = 2.0**-53
MOST_CONTROL_POINTS = 2**12
LARGEST_DEGREE = 128
"""Of one parameter: the table of control points takes time that grows with its third power."""


def polynomial_ranges(expressions: Expressions, lower: Point, upper: Point) -> tuple[FloatArray, FloatArray]:
    """(low, high) with low ≤ f(θ) ≤ high for every polynomial f and every θ in the box."""
    low_point = np.array([float(x) for x in expressions.checked_point(lower)])
    high_point = np.array([float(x) for x in expressions.checked_point(upper)])
    low, high = _term_by_term(expressions, low_point, high_point)
    rows = np.flatnonzero(expressions.degrees >= 2)
    for place, variables, degrees in _grouped(_degrees(expressions, rows)):
        box = variables, degrees, low_point, high_point
        least, most = np.full(len(place), np.inf), np.full(len(place), -np.inf)
        for value, error in control_points(expressions, rows[place], *box):
            least, most = np.minimum(least, value - error), np.maximum(most, value + error)
        low[rows[place]] = np.maximum(low[rows[place]], least)
        high[rows[place]] = np.minimum(high[rows[place]], most)
    return low, high


def _slack(expressions: Expressions, for_a_factor: int = 2) -> FloatArray:
    """γ for each row: terms, the product's factors, the roundings of coefficient and point."""
    operations = np.diff(expressions.row_start) + for_a_factor * expressions.degrees + 4
    scaled = operations * _UNIT
    return 1.01 * scaled / (1 - scaled)


def _row_sums(expressions: Expressions, terms: FloatArray) -> FloatArray:
    sums = np.zeros(len(expressions))
    filled = np.flatnonzero(np.diff(expressions.row_start))
    if len(filled):
        sums[filled] = np.add.reduceat(terms, expressions.row_start[filled])
    return sums


def _term_by_term(
    expressions: Expressions, low_point: FloatArray, high_point: FloatArray
) -> tuple[FloatArray, FloatArray]:
    monomial_low = np.ones(len(expressions.monomials))
    monomial_high = np.ones(len(expressions.monomials))
    for m, monomial in enumerate(expressions.monomials):
        for parameter, exponent in monomial:
            a, b = low_point[parameter] ** exponent, high_point[parameter] ** exponent
            if exponent % 2 == 0:
                straddles = low_point[parameter] < 0 < high_point[parameter]
                a, b = (0.0 if straddles else min(a, b)), max(a, b)
            products = (monomial_low[m] * a, monomial_low[m] * b, monomial_high[m] * a, monomial_high[m] * b)
            monomial_low[m], monomial_high[m] = min(products), max(products)
    coefficient = expressions.float_coefficient
    first = coefficient * monomial_low[expressions.monomial]
    second = coefficient * monomial_high[expressions.monomial]
    size = _row_sums(expressions, np.maximum(np.abs(first), np.abs(second)))
    error = _slack(expressions) * size
    return (
        _row_sums(expressions, np.minimum(first, second)) - error,
        _row_sums(expressions, np.maximum(first, second)) + error,
    )


def _degrees(table: Expressions, rows: OffsetArray) -> OffsetArray:
    """[row, parameter]: the largest exponent."""
    place = np.full(len(table), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    of_term = place[table.row_of_term]
    used = of_term >= 0
    degrees: OffsetArray = np.zeros((len(rows), len(table.parameter_names)), dtype=np.int64)
    exponents = table.exponents[table.monomial[used], : degrees.shape[1]]
    np.maximum.at(degrees, of_term[used], exponents)
    return degrees


def _grouped(of_row: OffsetArray) -> Iterator[tuple[OffsetArray, tuple[int, ...], list[int]]]:
    """Rows with the same degrees of all parameters, the parameters, their degrees; none too high."""
    distinct, group = np.unique(of_row, axis=0, return_inverse=True)
    for k, every in enumerate(distinct.tolist()):
        variables = tuple(v for v, degree in enumerate(every) if degree)
        degrees = [every[v] for v in variables]
        if max(every) <= LARGEST_DEGREE and prod(degree + 1 for degree in degrees) <= MOST_CONTROL_POINTS:
            yield np.flatnonzero(group.reshape(-1) == k), variables, degrees


def control_points(
    expressions: Expressions,
    rows: OffsetArray,
    variables: tuple[int, ...],
    degrees: list[int],
    low_point: FloatArray,
    high_point: FloatArray,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """The Bernstein coefficients of all rows on the box, one index after the other, and their errors."""
    image = expressions.image()[rows]
    magnitude = abs(image)
    # A power costs its factors and their rounding twice over, a weight, a product and a sum.
    slack = _slack(expressions, for_a_factor=7)[rows]
    ends = [(d, float(low_point[v]), float(high_point[v])) for d, v in zip(degrees, variables, strict=True)]
    signed = [_controls(d, low, high) for d, low, high in ends]
    absolute = [_controls(d, abs(low), abs(high)) for d, low, high in ends]
    exponents = [np.minimum(expressions.exponents[:, v], d) for d, v in zip(degrees, variables, strict=True)]
    for index in product(*(range(d + 1) for d in degrees)):
        monomials = np.ones(len(expressions.monomials))
        sizes = np.ones(len(expressions.monomials))
        for k, exponent, values, bounds in zip(index, exponents, signed, absolute, strict=True):
            monomials *= values[k, exponent]
            sizes *= bounds[k, exponent]
        yield image @ monomials, slack * (magnitude @ sizes)


def _controls(degree: int, low: float, high: float) -> FloatArray:
    """[k, e]: k-th Bernstein coefficient of x^e, the mean of products of e of k highs and lows."""
    table = np.zeros((degree + 1, degree + 1))
    for k, e in product(range(degree + 1), repeat=2):
        for j in range(max(0, e - (degree - k)), min(k, e) + 1):
            weight = comb(k, j) * comb(degree - k, e - j) / comb(degree, e)
            table[k, e] += weight * high**j * low ** (e - j)
    return table


def ranges_over_box(expressions: Expressions, lower: Point, upper: Point) -> tuple[FloatArray, FloatArray]:
    """(low, high) with low ≤ f(θ) ≤ high on the box; infinite where a denominator may vanish."""
    if not expressions.denominators:
        return polynomial_ranges(expressions, lower, upper)
    tops, bottoms = numerators(expressions), denominators(expressions)
    low, high = polynomial_ranges(tops, lower, upper)
    rational = np.flatnonzero(expressions.is_rational)
    low[rational], high[rational] = -np.inf, np.inf
    low_point = np.array([float(x) for x in expressions.checked_point(lower)])
    high_point = np.array([float(x) for x in expressions.checked_point(upper)])
    below = expressions.denominator_of[rational].astype(np.int64)
    every = np.maximum(_degrees(tops, rational), _degrees(bottoms, np.arange(len(bottoms)))[below])
    for place, variables, degrees in _grouped(every):
        rows, bottom_rows = rational[place], below[place]
        box = variables, degrees, low_point, high_point
        least, most = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
        sign: FloatArray = np.zeros(len(rows))
        usable = np.ones(len(rows), dtype=np.bool_)
        pairs = zip(control_points(tops, rows, *box), control_points(bottoms, bottom_rows, *box), strict=True)
        for (a, a_error), (b, b_error) in pairs:
            near = np.abs(b) - b_error
            usable &= (near > 0.0) & ((sign == 0.0) | (sign == np.sign(b)))
            sign = np.sign(b)
            near = np.where(near > 0.0, near, 1.0)
            far = np.abs(b) + b_error
            signed = a * sign
            first, last = signed - a_error, signed + a_error
            least = np.minimum(least, down(first / np.where(first < 0.0, down(near), up(far))))
            most = np.maximum(most, up(last / np.where(last > 0.0, down(near), up(far))))
        low[rows] = np.where(usable, down(least), -np.inf)
        high[rows] = np.where(usable, up(most), np.inf)
    return low, high


@remember
def numerators(expressions: Expressions) -> Expressions:
    """The numerators of all rows, polynomials as they are."""
    size = len(expressions.parameter_names)
    tops = [m[:-1] if m and m[-1][0] >= size else m for m in expressions.monomials]
    listed = sorted(set(tops), key=monomial_order)
    number = {m: j for j, m in enumerate(listed)}
    place = np.array([number[m] for m in tops], dtype=np.int32)
    # Within a row all monomials have the same reciprocal or none, and their order stays.
    monomial = place[expressions.monomial]
    return replace(expressions, monomials=tuple(listed), monomial=monomial, denominators=NO_DENOMINATORS)


@remember
def denominators(expressions: Expressions) -> Expressions:
    """The denominators of the table, a row each."""
    return table_of(expressions.parameter_names, expressions.denominators.array)


def table_of(names: tuple[str, ...], polynomials: PolynomialArray) -> Expressions:
    """A table with just these rows, equal ones included."""
    rows = [np.flatnonzero(np.not_equal(column.numerator, 0)) for column in polynomials.terms.values()]
    monomial = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    parts = [column.take(row) for column, row in zip(polynomials.terms.values(), rows, strict=True)]
    exact, monomials = RationalArray.concatenate(parts), list(polynomials.terms)
    return Expressions.of_terms(names, monomials, len(polynomials), np.concatenate(rows), monomial, exact)


_MOST_CELLS = 2000
_MOST_HALVINGS = 40
_LP_TOLERANCE = Fraction(1, 10**9)

ExactPoint = tuple[Fraction, ...]

Exact = AnyArray
"""Arrays of rationals."""

_Outcome = bool | tuple[ExactPoint, Fraction]
"""True: proved; False: not settled; otherwise a witness."""


@dataclass(frozen=True)
class RangeWitness:
    """A point of the domain where expression `expression` has a value outside [0, 1]."""

    expression: int
    point: ExactPoint
    value: Fraction


@dataclass(frozen=True)
class RangeProof:
    """`witness` None: no expression was seen to leave [0, 1]; `unproved` could not be settled."""

    witness: RangeWitness | None
    unproved: tuple[int, ...]


@dataclass(frozen=True)
class Between:
    """What is to be shown of all values: low ≤ value ≤ high, or value > low where it is strict."""

    low: Fraction | float = Fraction(0)
    high: Fraction | float = Fraction(1)
    strict: bool = False

    def __contains__(self, value: Fraction) -> bool:
        return value > self.low if self.strict else self.low <= value <= self.high

    def nearly(self, value: Fraction) -> bool:
        """Up to the rounding of linear programs, which a strict sign does not forgive."""
        if self.strict:
            return value > self.low
        return self.low - _LP_TOLERANCE <= value <= self.high + _LP_TOLERANCE


_PROBABILITY = Between()
NOT_NEGATIVE = Between(high=math.inf)
_POSITIVE = Between(high=math.inf, strict=True)


@dataclass(frozen=True)
class SignProof:
    """The sign of each denominator; `failed`: the first without one, and a point, None if not settled."""

    sign: tuple[int, ...]
    failed: tuple[int, tuple[ExactPoint, Fraction] | None] | None = None


def prove_signs(denominators: Expressions, parameters: Parameters) -> SignProof:
    """Decide for every polynomial that it is positive, or negative, everywhere in the domain."""
    domain = _Domain(parameters)
    low, high = ranges_over_box(denominators, parameters.lower, parameters.upper)
    signs: list[int] = []
    for number, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if least > 0.0 or most < 0.0:
            signs.append(1 if least > 0.0 else -1)
            continue
        g = denominators.polynomial(number)
        outcome: _Outcome = False
        for sign in _likely_signs(g, domain):
            outcome = _settle(g * sign, domain, _POSITIVE)
            if outcome is True:
                signs.append(sign)
                break
        if outcome is not True:
            seen = None if outcome is False else (outcome[0], g.evaluate(outcome[0]))
            return SignProof(tuple(signs), (number, seen))
    return SignProof(tuple(signs))


def denominator_bounds(
    denominators: Sequence[Polynomial], parameters: Parameters
) -> list[tuple[Fraction, Fraction]]:
    """An interval without 0 around the values of every denominator on the domain."""
    table = table_of(parameters.names, PolynomialArray.from_polynomials(denominators))
    sign = prove_signs(table, parameters).sign
    bounds: list[tuple[Fraction, Fraction]] = []
    for g, side in zip(denominators, sign, strict=True):
        controls = [c * side for c in bernstein(g, tuple(parameters.lower), tuple(parameters.upper)).flat]
        least, most = min(controls), max(controls)
        if least <= 0:
            least = _distance_from_zero(g * side, parameters, most)
        bounds.append((least, most) if side > 0 else (-most, -least))
    return bounds


def _distance_from_zero(g: Polynomial, parameters: Parameters, most: Fraction) -> Fraction:
    """A positive lower bound of g, which is positive on the domain though not on its box."""
    domain = _Domain(parameters)
    part, local = domain.around(g)
    candidate = min((local.evaluate(point) for point in part.vertices or ()), default=most)
    for _ in range(_MOST_HALVINGS):
        if _settle(g - candidate, domain, NOT_NEGATIVE) is True:
            return candidate
        candidate /= 2
    raise InputError(
        f"the denominator {g!r} comes too close to 0 on the domain {parameters.text()}",
        hint="narrow the domain with `params` or `domain`",
    )


def _likely_signs(g: Polynomial, domain: _Domain) -> tuple[int, ...]:
    part, local = domain.around(g)
    if not part.vertices:
        return 1, -1
    return (1,) if local.evaluate(part.vertices[0]) > 0 else (-1,)


def prove_ranges(
    expressions: Expressions, parameters: Parameters, sign: Sequence[int] = (), wanted: Between = _PROBABILITY
) -> RangeProof:
    """Decide for every expression that it is as wanted; `sign` is that of the denominators."""
    low, high = ranges_over_box(expressions, parameters.lower, parameters.upper)
    suspects = np.flatnonzero((low < float(wanted.low)) | (high > float(wanted.high))).tolist()
    if not suspects:
        return RangeProof(None, ())
    domain = _Domain(parameters)
    unproved: list[int] = []
    for e in suspects:
        outcome = _settle_function(expressions, e, domain, sign, wanted)
        if outcome is False:
            unproved.append(e)
        elif outcome is not True:
            point, value = outcome
            return RangeProof(RangeWitness(e, point, value), tuple(unproved))
    return RangeProof(None, tuple(unproved))


def narrow_to_probabilities(expressions: Expressions, parameters: Parameters) -> Parameters | None:
    """The part where affine expressions lie in [0, 1]; None if nothing is cut off or left."""
    low, high = ranges_over_box(expressions, parameters.lower, parameters.upper)
    lower, upper = list(parameters.lower), list(parameters.upper)
    constraints: dict[LinearConstraint, None] = {}
    for e in np.flatnonzero((low < 0) | (high > 1)).tolist():
        f = expressions.function(e)
        if not isinstance(f, Polynomial) or f.degree > 1:
            continue
        slope = {m[0][0]: c for m, c in f.terms.items() if m}
        for sign, bound in ((-1, f.constant_term), (1, 1 - f.constant_term)):
            row = {i: sign * c for i, c in slope.items()}  # Σ row·θ ≤ bound
            if len(row) > 1:
                numbers = tuple(row.get(i, Fraction(0)) for i in range(len(lower)))
                constraints[LinearConstraint(numbers, bound)] = None
                continue
            for i, c in row.items():
                lower[i] = max(lower[i], bound / c) if c < 0 else lower[i]
                upper[i] = min(upper[i], bound / c) if c > 0 else upper[i]
    if any(
        a >= b and c < d for a, b, c, d in zip(lower, upper, parameters.lower, parameters.upper, strict=True)
    ):
        return None
    within = replace(parameters, lower=tuple(lower), upper=tuple(upper))
    corner = [
        sum((c * (lower[i] if c < 0 else upper[i]) for i, c in enumerate(each.coefficients)), Fraction(0))
        for each in constraints
    ]
    cutting = [each for each, most in zip(constraints, corner, strict=True) if most > each.bound]
    within = replace(within, constraints=(*parameters.constraints, *cutting))
    if within == parameters or any(domain_vertices(within.part(block)) == [] for block in within.blocks()):
        return None
    return within


def _settle_function(
    expressions: Expressions, e: int, domain: _Domain, sign: Sequence[int], wanted: Between
) -> _Outcome:
    function = expressions.function(e)
    if isinstance(function, Polynomial):
        return _settle(function, domain, wanted)
    side = sign[expressions.denominator_of[e]]
    settled = True
    for difference in (function.numerator, function.denominator - function.numerator):
        outcome = _settle(difference * side, domain, NOT_NEGATIVE)
        if not isinstance(outcome, bool):
            return outcome[0], function.evaluate(outcome[0])
        settled = settled and outcome
    return settled


@dataclass(frozen=True)
class _Part:
    """Some of the parameters, with the domain that these have by themselves."""

    numbers: tuple[int, ...]
    parameters: Parameters

    @cached_property
    def vertices(self) -> list[ExactPoint] | None:
        return domain_vertices(self.parameters)

    @cached_property
    def some_point(self) -> ExactPoint | None:
        if self.parameters.contains(self.parameters.lower):
            return tuple(self.parameters.lower)
        return next(iter(self.vertices or ()), None)


class _Domain:
    """A domain is the product of its parts; an expression is settled on those that it touches."""

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        self._blocks = parameters.blocks()
        self._block_of = {i: k for k, block in enumerate(self._blocks) for i in block}
        self._parts: dict[tuple[int, ...], _Part] = {}

    def around(self, polynomial: Polynomial) -> tuple[_Part, Polynomial]:
        """The part that a polynomial lives on, and the polynomial there."""
        part = self._part(tuple(sorted({self._block_of[v] for v in polynomial.variables})))
        if len(part.numbers) == len(self.parameters):
            return part, polynomial
        place = {v: i for i, v in enumerate(part.numbers)}
        terms = {tuple((place[v], e) for v, e in m): c for m, c in polynomial.terms.items()}
        return part, Polynomial(terms)

    def lift(self, part: _Part, point: ExactPoint) -> ExactPoint | None:
        """A point of the domain with these coordinates; None where none is known."""
        whole = dict(zip(part.numbers, point, strict=True))
        for k, block in enumerate(self._blocks):
            if block[0] not in whole:
                other = self._part((k,))
                if other.some_point is None:
                    return None
                whole.update(zip(block, other.some_point, strict=True))
        return tuple(whole[i] for i in range(len(self.parameters)))

    def _part(self, key: tuple[int, ...]) -> _Part:
        if key not in self._parts:
            numbers = tuple(sorted(i for k in key for i in self._blocks[k]))
            self._parts[key] = _Part(numbers, self.parameters.part(numbers))
        return self._parts[key]


def _settle(polynomial: Polynomial, domain: _Domain, wanted: Between = _PROBABILITY) -> _Outcome:
    if polynomial.is_constant:
        value = polynomial.constant_term
        return True if value in wanted else (tuple(domain.parameters.lower), value)
    part, local = domain.around(polynomial)
    outcome = _settle_on_part(local, part.parameters, part.vertices, wanted)
    if isinstance(outcome, bool):
        return outcome
    point = domain.lift(part, outcome[0])
    return False if point is None else (point, outcome[1])


def _settle_on_part(
    polynomial: Polynomial, parameters: Parameters, vertices: list[ExactPoint] | None, wanted: Between
) -> _Outcome:
    on_corners = all(e == 1 for m in polynomial.terms for _, e in m) and not parameters.constraints
    if polynomial.degree == 1 or on_corners:
        points: Iterable[ExactPoint] | None = vertices
        if vertices is None and on_corners and len(polynomial.variables) <= 12:
            box = enumerate(zip(parameters.lower, parameters.upper, strict=True))
            points = product(*(ends if v in polynomial.variables else ends[:1] for v, ends in box))
        if points is not None:
            return _first_violation(polynomial, points, wanted) or True
        if polynomial.degree == 1:
            return _settle_by_linear_programs(polynomial, parameters, wanted)
    violation = _first_violation(polynomial, vertices or (), wanted)
    return violation or _settle_by_subdivision(polynomial, parameters, wanted)


def _first_violation(
    polynomial: Polynomial, points: Iterable[ExactPoint], wanted: Between
) -> tuple[ExactPoint, Fraction] | None:
    values = ((point, polynomial.evaluate(point)) for point in points)
    return next(((point, value) for point, value in values if value not in wanted), None)


def _settle_by_linear_programs(polynomial: Polynomial, parameters: Parameters, wanted: Between) -> _Outcome:
    """Both extremes by HiGHS; its multipliers, not its objective, give the (exact) bound."""
    from tightrope.numerics.linear_program import LinearProgram, LinearStatus

    slope = [polynomial.terms.get(((i, 1),), Fraction(0)) for i in range(len(parameters))]
    rows = [(c.coefficients, c.bound) for c in parameters.constraints]
    rows += [(tuple(-a for a in c.coefficients), -c.bound) for c in parameters.constraints if c.is_equality]
    program = LinearProgram(np.array(parameters.lower, np.float64), np.array(parameters.upper, np.float64))
    program.add_rows(np.array([a for a, _ in rows], np.float64), np.array([b for _, b in rows], np.float64))
    for sign in (1, -1):
        outcome = program.maximise(np.array([sign * float(a) for a in slope]))
        if outcome.status is not LinearStatus.OPTIMAL:
            return False
        weights = [max(Fraction(float(y)), Fraction(0)) for y in outcome.multipliers]
        most = sum((y * bound for y, (_, bound) in zip(weights, rows, strict=True)), Fraction(0))
        for i, (low, high) in enumerate(zip(parameters.lower, parameters.upper, strict=True)):
            rest = sign * slope[i] - sum(
                (y * row[i] for y, (row, _) in zip(weights, rows, strict=True)), Fraction(0)
            )
            most += max(rest * low, rest * high)
        if not wanted.nearly(polynomial.constant_term + sign * most):
            point = tuple(Fraction(float(x)).limit_denominator(10**9) for x in outcome.point)
            value = polynomial.evaluate(point)
            return (point, value) if parameters.contains(point) and value not in wanted else False
    return True


def _settle_by_subdivision(polynomial: Polynomial, parameters: Parameters, wanted: Between) -> _Outcome:
    variables = polynomial.variables
    whole: tuple[ExactPoint, ExactPoint] = tuple(parameters.lower), tuple(parameters.upper)
    cells = [(*whole, bernstein(polynomial, *whole))]
    for _ in range(_MOST_CELLS):
        if not cells:
            return True
        low, high, coefficients = cells.pop()
        if any(_outside(constraint, low, high) for constraint in parameters.constraints):
            continue
        if all(c in wanted for c in coefficients.flat):
            continue
        centre = tuple((a + b) / 2 for a, b in zip(low, high, strict=True))
        corners = coefficients.flat[0], coefficients.flat[-1]
        values = polynomial.evaluate(centre), *corners
        for candidate, value in zip((centre, low, high), values, strict=True):
            if value not in wanted and parameters.contains(candidate):
                return candidate, value
        split = max(variables, key=lambda v: high[v] - low[v])
        if high[split] == low[split]:
            continue
        left, right = halves(coefficients, variables.index(split))
        cells.append((low, _with(high, split, centre[split]), left))
        cells.append((_with(low, split, centre[split]), high, right))
    return False


def _outside(constraint: LinearConstraint, low: ExactPoint, high: ExactPoint) -> bool:
    terms = [sorted((a * x, a * y)) for a, x, y in zip(constraint.coefficients, low, high, strict=True)]
    least, most = (sum(ends) for ends in zip(*terms, strict=True))
    return least > constraint.bound or (constraint.is_equality and most < constraint.bound)


def _with(point: ExactPoint, index: int, value: Fraction) -> ExactPoint:
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


def bernstein(polynomial: Polynomial, low: ExactPoint, high: ExactPoint) -> Exact:
    """The Bernstein coefficients on the cell, one axis for each of the parameters that occur."""
    variables = polynomial.variables
    degree = [max(dict(m).get(v, 0) for m in polynomial.terms) for v in variables]
    controls: Exact = np.full([d + 1 for d in degree], 0, dtype=object)
    scale = math.lcm(*(c.denominator for c in polynomial.terms.values()))
    for monomial, coefficient in polynomial.terms.items():
        powers = dict(monomial)
        controls[tuple(powers.get(v, 0) for v in variables)] = int(coefficient * scale)
    for axis, v in enumerate(variables):
        controls, factor = _bernstein_axis(np.moveaxis(controls, axis, 0), low[v], high[v])
        controls, scale = np.moveaxis(controls, 0, axis), scale * factor
    exact: Exact = np.frompyfunc(lambda c: Fraction(c, scale), 1, 1)(controls)
    return exact


def _bernstein_axis(rows: Exact, low: Fraction, high: Fraction) -> tuple[Exact, int]:
    """Integers in proportion to the Bernstein coefficients Σᵢ C(k,i)/C(d,i)·aᵢ along an axis; the factor."""
    d, below = len(rows) - 1, math.lcm(low.denominator, high.denominator)
    start, width = int(low * below), int((high - low) * below)
    rows = rows.copy()
    for i in range(d + 1):
        rows[i] *= below ** (d - i)
    for i in range(d):  # the powers of x become those of x - low
        for j in range(d - 1, i - 1, -1):
            rows[j] += start * rows[j + 1]
    common = math.lcm(*(comb(d, i) for i in range(d + 1)))
    for i in range(d + 1):
        rows[i] *= width**i * common // comb(d, i)
    for i in range(d):
        rows[i + 1 :] = rows[i + 1 :] + rows[i:-1]
    return rows, common * below**d
