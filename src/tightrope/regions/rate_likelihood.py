"""The likelihood region of rates, enclosed by half-spaces, and the bounds of all rates over it.

{ θ : Σ_c K_c·log g_c(θ) − g_c(θ)·T_c ≥ τ } is convex where all g_c are affine. For any positive numbers G_c,
log g ≤ log G + g/G − 1, so every point of it satisfies

    Σ_c (K_c/G_c − T_c)·g_c(θ) ≥ τ − Σ_c K_c·(log G_c − 1),

a half-space, whatever rounding did to G; where G = g(v) at a point v of the boundary, it touches there.
Cuts are made where linear programs over the rows so far come out, in the directions of all parameters and
rates, until none of these is wider than the region by more than `EXCESS`. What is then asked of the polytope
has safe values (`rate_box`).
"""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np

from tightrope.errors import InputError
from tightrope.model.continuous import ParametricCTMC
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import LinearProgram, LinearStatus
from tightrope.regions.rate_box import RateRegion, affine_part, begin_region, tighten_region
from tightrope.statistics.rate_likelihood import RateLikelihood
from tightrope.statistics.rates import RateClasses, RateEvents, gamma_of, middles_of, pooled

EXCESS = 0.005
_ROUNDS = 30
_HALVINGS = 50


def estimate_jointly(
    model: ParametricCTMC, jumps: OffsetArray, waited: FloatArray, delta: float
) -> tuple[RateEvents, RateRegion]:
    """The region of all affine rates together, and intervals of all rates; both hold with 1 − delta.

    Classes that are not affine have their own intervals, each with its share of delta.
    """
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
    found = [(number, affine_part(base, size)) for number, base in enumerate(classes.base)]
    affine = [(number, part) for number, part in found if part is not None]
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
