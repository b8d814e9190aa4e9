"""Regions of the parameters of rates: intervals as rows, and safe bounds of polynomials over them.

Every affine class of rates gives two half-spaces; others bound their own multiples only. The likelihood
region { θ : Σ_c K_c·log g_c − g_c·T_c ≥ τ } of affine classes is cut by tangents: for any positive numbers
G_c Σ_c (K_c/G_c − T_c)·g_c(θ) ≥ τ − Σ_c K_c·(log G_c − 1), whatever rounding did to G. Cuts end when no
parameter or rate is wider than the region by more than `EXCESS`. Bounds come from safe linear programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, log

import numpy as np

from tightrope.errors import InputError
from tightrope.model.continuous import ParametricCTMC
from tightrope.model.expressions import Expressions
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Polynomial
from tightrope.model.ranges import ranges_over_box
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import LinearProgram, LinearStatus, dual_bounds, proves_empty
from tightrope.numerics.record import Record
from tightrope.numerics.rounding import down, up
from tightrope.statistics.rates import RateClasses, RateEvents, RateLikelihood, gamma_of, middles_of, pooled


@dataclass(frozen=True, eq=False, repr=False)
class RateRegion(Record):
    """{ θ : matrix·θ ≤ bound, lower ≤ θ ≤ upper }, with the box drawn tight; `is_empty` only where proved."""

    lower: FloatArray
    upper: FloatArray
    matrix: FloatArray
    bound: FloatArray
    is_empty: bool

    def bounds(self, expressions: Expressions) -> tuple[FloatArray, FloatArray]:
        """Bounds of all expressions over the region."""
        low, high = ranges_over_box(expressions, self.lower.tolist(), self.upper.tolist())
        if not len(self.bound):
            return low, high
        for e in range(len(expressions)):
            affine = affine_part(expressions.polynomial(e), len(self.lower))
            if affine is not None and np.count_nonzero(affine[0]) > 1:
                least, most = self.bounds_of(*affine)
                low[e], high[e] = max(low[e], least), min(high[e], most)
        return low, high

    def bounds_of(self, slope: FloatArray, constant: float) -> tuple[float, float]:
        """Bounds of slope·θ + constant over the region."""
        most = _largest(self, np.stack([-slope, slope]))
        rounding = 4e-16 * abs(constant)
        return down(down(-most[0]) + constant) - rounding, up(up(most[1]) + constant) + rounding


def region_of_rates(events: RateEvents, parameters: Parameters) -> RateRegion:
    """The region that the intervals of all affine classes leave of the domain."""
    size = len(parameters)
    lower = [Fraction(x) for x in parameters.lower]
    upper = [Fraction(x) for x in parameters.upper]
    rows = _constraint_rows(parameters)
    for base, low, high in zip(events.classes.base, events.lower, events.upper, strict=True):
        affine = affine_part(base, size)
        if affine is None:
            continue
        slope, constant = affine
        used = np.flatnonzero(slope)
        if len(used) == 1:
            _narrow(base, int(used[0]), (float(low), float(high)), lower, upper)
            continue
        if np.isfinite(high):
            rows.append((slope, up(float(high) - constant) + 4e-16 * abs(constant)))
        rows.append((-slope, up(constant - float(low)) + 4e-16 * abs(constant)))
    is_empty = any(a > b for a, b in zip(lower, upper, strict=True))
    region = _region(lower, upper, rows, is_empty)
    return region if is_empty else tighten_region(region)


def begin_region(parameters: Parameters) -> RateRegion:
    """The domain, before anything is known."""
    return _region(parameters.lower, parameters.upper, _constraint_rows(parameters), False)


def _region(
    lower: Sequence[Fraction], upper: Sequence[Fraction], rows: list[tuple[FloatArray, float]], is_empty: bool
) -> RateRegion:
    matrix = np.array([slope for slope, _ in rows]).reshape(len(rows), len(lower))
    box = np.array([_float(x, False) for x in lower]), np.array([_float(x, True) for x in upper])
    return RateRegion(*box, matrix, np.array([limit for _, limit in rows]), is_empty)


def _constraint_rows(parameters: Parameters) -> list[tuple[FloatArray, float]]:
    rows: list[tuple[FloatArray, float]] = []
    for constraint in parameters.constraints:
        slope = np.array([float(a) for a in constraint.coefficients])
        slack = 1e-12 * (1 + abs(float(constraint.bound)))
        rows.append((slope, float(constraint.bound) + slack))
        if constraint.is_equality:
            rows.append((-slope, -float(constraint.bound) + slack))
    return rows


def _narrow(
    base: Polynomial, index: int, ends: tuple[float, float], lower: list[Fraction], upper: list[Fraction]
) -> None:
    """low ≤ a·θ + c ≤ high for one parameter."""
    slope, constant = base.terms[((index, 1),)], base.constant_term
    sides = [None if end in (inf, -inf) else (Fraction(end) - constant) / slope for end in ends]
    least, most = sides if slope > 0 else sides[::-1]
    if least is not None:
        lower[index] = max(lower[index], least)
    if most is not None:
        upper[index] = min(upper[index], most)


def tighten_region(region: RateRegion) -> RateRegion:
    """The box drawn tight around the polytope, or a proof that there is none."""
    if not len(region.bound):
        return region
    size = len(region.lower)
    program = LinearProgram(region.lower, region.upper)
    program.add_rows(region.matrix, region.bound)
    outcome = program.maximise(np.zeros(size))
    if outcome.status is LinearStatus.INFEASIBLE and proves_empty(
        region.matrix, region.bound, region.lower, region.upper, outcome.multipliers
    ):
        return RateRegion(region.lower, region.upper, region.matrix, region.bound, True)
    most = _largest(region, np.concatenate([-np.eye(size), np.eye(size)]))
    lower = np.maximum(region.lower, -most[:size])
    upper = np.minimum(region.upper, most[size:])
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    return RateRegion(lower, upper, region.matrix, region.bound, False)


def _largest(region: RateRegion, directions: FloatArray) -> FloatArray:
    """Safe upper bounds of directions·θ."""
    program = LinearProgram(region.lower, region.upper)
    program.add_rows(region.matrix, region.bound)
    multipliers = np.zeros((len(directions), len(region.bound)))
    for row, direction in enumerate(directions):
        outcome = program.maximise(direction)
        if outcome.status is LinearStatus.OPTIMAL:
            multipliers[row] = outcome.multipliers
    return dual_bounds(region.matrix, region.bound, region.lower, region.upper, directions, multipliers)


def affine_part(polynomial: Polynomial, size: int) -> tuple[FloatArray, float] | None:
    """Slope and constant of an affine polynomial."""
    if polynomial.degree > 1:
        return None
    slope = np.zeros(size)
    for monomial, coefficient in polynomial.terms.items():
        for index, _ in monomial:
            slope[index] = float(coefficient)
    return slope, float(polynomial.constant_term)


def _float(value: Fraction, upwards: bool) -> float:
    nearest = float(value)
    if upwards:
        return nearest if Fraction(nearest) >= value else up(nearest)
    return nearest if Fraction(nearest) <= value else down(nearest)


def box_of(region: RateRegion, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The range of every parameter."""
    return {
        name: (float(low), float(high))
        for name, low, high in zip(names, region.lower, region.upper, strict=True)
    }


EXCESS = 0.005
_ROUNDS = 30
_HALVINGS = 50


def estimate_jointly(
    model: ParametricCTMC, jumps: OffsetArray, waited: FloatArray, delta: float
) -> tuple[RateEvents, RateRegion]:
    """The region of all affine rates together, and intervals of all rates; both hold with 1 − delta."""
    classes = RateClasses.of(model)
    likelihood, chosen = likelihood_of(model, classes, jumps, waited)
    events, exposure = pooled(model, classes, jumps, waited)
    middle = middles_of(model, classes)
    gamma = delta / len(classes)
    level, centre = threshold(likelihood, middle[chosen], gamma * len(chosen))
    region = enclose_likelihood(likelihood, model, level, centre)
    pairs = [gamma_of(int(k), float(t), m, gamma) for k, t, m in zip(events, exposure, middle, strict=True)]
    lower, upper = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    for number, c in enumerate(chosen.tolist()):
        least, most = region.bounds_of(likelihood.slope[number], float(likelihood.constant[number]))
        lower[c], upper[c] = max(least, 0.0), most
    return RateEvents(classes, events, exposure, lower, upper, gamma), region


def likelihood_of(
    model: ParametricCTMC, classes: RateClasses, jumps: OffsetArray, waited: FloatArray
) -> tuple[RateLikelihood, OffsetArray]:
    """ℓ of all affine classes, and their numbers."""
    size = len(model.parameters)
    parts = [(number, affine_part(base, size)) for number, base in enumerate(classes.base)]
    affine = [(number, part) for number, part in parts if part is not None]
    if not affine:
        raise InputError(
            "no rate is affine in the parameters, so there is no likelihood region of rates",
            hint="leave `region` out: every rate then has an interval of its own",
        )
    chosen: OffsetArray = np.array([number for number, _ in affine], dtype=np.int64)
    events, exposure = pooled(model, classes, jumps, waited)
    box = begin_region(model.parameters)
    likelihood = RateLikelihood(
        np.array([part[0] for _, part in affine]),
        np.array([part[1] for _, part in affine]),
        events[chosen].astype(np.float64),
        exposure[chosen],
        box.lower,
        box.upper,
    )
    return likelihood, chosen


def threshold(likelihood: RateLikelihood, middle: FloatArray, delta: float) -> tuple[float, FloatArray]:
    """The level of ℓ above which the region lies, and the estimate."""
    centre = likelihood.estimate()
    return likelihood.log_mixture(middle, centre) + log(delta) - 1e-12, centre


def enclose_likelihood(
    likelihood: RateLikelihood, model: ParametricCTMC, level: float, centre: FloatArray
) -> RateRegion:
    """The domain with tangent cuts."""
    region = begin_region(model.parameters)
    if not np.isfinite(level):
        return tighten_region(region)
    rows: list[tuple[FloatArray, float]] = [cut(likelihood, level, centre)]
    program = LinearProgram(region.lower, region.upper)
    program.add_rows(region.matrix, region.bound)
    program.add_rows(rows[0][0][None], np.array([rows[0][1]]))
    size = len(centre)
    directions = np.concatenate([np.eye(size), likelihood.slope])
    peak = likelihood.at(centre[None])[0]
    for direction in np.concatenate([directions, -directions]):
        for _ in range(_ROUNDS if peak > level else 0):
            outcome = program.maximise(direction)
            if outcome.status is not LinearStatus.OPTIMAL:
                break
            edge = _edge(likelihood, level, centre, outcome.point)
            beyond, within = direction @ (outcome.point - edge), direction @ (edge - centre)
            if beyond <= EXCESS * max(within, 0.0) + 1e-300:
                break
            rows.append(cut(likelihood, level, edge))
            program.add_rows(rows[-1][0][None], np.array([rows[-1][1]]))
    matrix = np.concatenate([region.matrix, np.array([row for row, _ in rows])])
    bound = np.concatenate([region.bound, np.array([limit for _, limit in rows])])
    return tighten_region(replace(region, matrix=matrix, bound=bound))


def cut(likelihood: RateLikelihood, level: float, point: FloatArray) -> tuple[FloatArray, float]:
    """A row a·θ ≤ b that the whole region satisfies."""
    rates = np.maximum(likelihood.rates(point[None])[0], 1e-12)
    seen = likelihood.events
    weight = seen / rates - likelihood.exposure
    reach = np.maximum(np.abs(likelihood.lower), np.abs(likelihood.upper))
    size = np.abs(likelihood.slope) @ reach + np.abs(likelihood.constant)
    slack = 1e-14 * float((seen / rates + likelihood.exposure) @ size)
    slack += likelihood.error(rates) + 1e-12 * abs(level)
    bound = float(weight @ likelihood.constant) - level + float(seen @ (np.log(rates) - 1.0))
    return -(weight @ likelihood.slope), bound + slack


def _edge(likelihood: RateLikelihood, level: float, centre: FloatArray, point: FloatArray) -> FloatArray:
    """Between the centre and a point: where the region ends, or the point itself."""
    inner, outer = 0.0, 1.0
    if likelihood.at(point[None])[0] >= level:
        return point
    for _ in range(_HALVINGS):
        middle = 0.5 * (inner + outer)
        if likelihood.at((centre + middle * (point - centre))[None])[0] >= level:
            inner = middle
        else:
            outer = middle
    return centre + outer * (point - centre)
