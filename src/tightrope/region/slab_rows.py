"""A half-space that contains { x : Λ(x) < L } within a polytope P: log-wealth bounded below by a line.

Λ(θ) = Σ log(1 + a/f(θ)) over visits that take part (`tightrope.statistics.bets`). On P every expression lies
between safe bounds l ≤ f ≤ u, and each term is bounded below by a line in f, hence by one in the coordinates:

* a > 0: convex in f, so every tangent is below: log(1+a/φ) − a(f−φ)/(φ(φ+a)) for any φ > 0;
* a < 0, and the signature takes part on all of P: concave in f, so the chord between l and u is below;
* a signature that takes part on some of P only: all of its terms together are at least
  min(0, Σ_{a_o<0} K_o·log(1 − |a_o|/max(l_o, 2|a_o|))), whether it takes part or not.

Summed up, Λ(x) ≥ A + B·x on P, so the parameters with Λ < L satisfy B·x ≤ L − A. Any φ, and any slopes of
chords, give a valid row: a chord's constant is chosen below both ends, and all sums are rounded down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up
from tightrope.statistics.bets import Wagers
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.outcomes import Outcomes

_LOG = 8.0 * UNIT
"""Relative error of a logarithm of one plus something, and of what is made of it in one step."""


@dataclass(frozen=True, eq=False)
class Line:
    """Λ ≥ constant + slope·f over all expressions f, where they lie within the bounds it was made for."""

    slope: FloatArray
    constant: float


def line_below(
    wagers: Wagers, outcomes: Outcomes, lower: FloatArray, upper: FloatArray, point: FloatArray
) -> Line:
    """A line below the log-wealth where lower ≤ f ≤ upper, tight near f = point (all by expression)."""
    expression = outcomes.expression
    low, high, near = lower[expression], upper[expression], point[expression]
    slopes: list[FloatArray] = []
    owners: list[OffsetArray] = []
    constants: list[FloatArray] = []
    errors: list[FloatArray] = []
    for bets, seen in zip(wagers.bets, wagers.seen, strict=True):
        stake = bets.stake
        stands = (stake >= 0.0) | (low >= -2.0 * stake)
        part = np.logical_and.reduceat(stands, outcomes.start[:-1])[outcomes.signature]
        met = seen > 0
        winning = np.flatnonzero(met & part & (stake > 0.0) & (high > 0.0))
        tangents = _tangents(stake[winning], near[winning], low[winning], high[winning])
        losing = np.flatnonzero(met & part & (stake < 0.0))
        chords = _chords(stake[losing], low[losing], high[losing])
        apart = np.flatnonzero(met & ~part & (stake < 0.0))
        worst: FloatArray = np.log1p(stake[apart] / np.maximum(low[apart], -2.0 * stake[apart]))
        constants.append(seen[apart].astype(np.float64) * worst)
        errors.append(_LOG * np.abs(constants[-1]))
        for index, (slope, constant, error) in ((winning, tangents), (losing, chords)):
            times = seen[index].astype(np.float64)
            slopes.append(times * slope)
            owners.append(index)
            constants.append(times * constant)
            errors.append(times * error + 4.0 * UNIT * np.abs(constants[-1]))
    size, reach = len(lower), np.maximum(np.abs(lower), np.abs(upper))
    weight, owner = np.concatenate(slopes), expression[np.concatenate(owners)]
    total: FloatArray = np.bincount(owner, weights=weight, minlength=size).astype(np.float64)
    extent = np.bincount(owner, weights=np.abs(weight), minlength=size)
    terms, slips = np.concatenate(constants), np.concatenate(errors)
    rounding = math.fsum(slips) + error_factor(len(weight) + 8) * float(extent @ reach)
    return Line(total, math.fsum(terms) - rounding * (1.0 + 1e-9) - 1e-300)


def row_of(
    line: Line, functions: AffineFunctions, level: float, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, float]:
    """A row b·x ≤ r that holds where line ≤ level and x lies in the box; `level` is rounded up."""
    slope = line.slope
    normal = slope @ functions.linear
    reach = np.maximum(np.abs(lower), np.abs(upper))
    off = float(product_error(slope[None, :], functions.linear, 3)[0] @ reach)
    off += float(np.abs(slope) @ functions.slack)
    constant = slope * functions.constant
    off += 8.0 * UNIT * (math.fsum(np.abs(constant)) + abs(line.constant) + abs(level))
    bound = level - line.constant - math.fsum(constant)
    return normal, up(up(bound) + off * (1.0 + 1e-9))


def _tangents(
    stake: FloatArray, near: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(slope, constant, error) of log(1 + a/f) for a > 0, at points within the bounds, above 0."""
    touched = np.clip(near, np.maximum(low, 1e-9 * high), high)
    height = np.log1p(stake / touched)
    slope = -stake / (touched * (touched + stake))
    constant = height - slope * touched
    error = _LOG * (height + np.abs(slope) * (touched + high))
    return slope, constant, error


def _chords(
    stake: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(slope, constant, error) below log(1 + a/f) for a < 0 between the bounds, with low ≥ 2|a|."""
    left, right = np.log1p(stake / low), np.log1p(stake / high)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(high > low, (right - left) / (high - low), 0.0)
    slope = np.where(np.isfinite(slope), slope, 0.0)
    constant = np.minimum(left - slope * low, right - slope * high)
    error = _LOG * (np.abs(left) + np.abs(slope) * high)
    return slope, constant, error
