"""The slab region: what bettors leave of a guard region, narrow along one policy's value.

    C = { θ ∈ guard : Λ⁺(θ) < log(1/α⁺), Λ⁻(θ) < log(1/α⁻) }

The guard is a likelihood region; the bettors (`tightrope.statistics.bets`) look for the lower and for the
upper end of the value of one policy, or for one of the two. Their levels and the guard's sum to at most δ
(`tightrope.statistics.bets`), so C misses the true parameters with probability at most δ. It is a set of
parameters, so it holds for all policies at once; what is bet on only decides along which direction it is
narrow, and that costs nothing per dimension.

*Enclosure.* Starting from the guard's polytope, each round bounds all expressions over the polytope, adds a
row for each side that is bet on (below), and tightens. Rounds end when the width along
the value falls by less than 1 %.

*Rows.* Each is a half-space that contains { x : Λ(x) < L } within a polytope P: log-wealth is bounded
below by a line.

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
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.late import dataclass
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import LinearStatus
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up
from tightrope.regions.bounds import expression_bounds
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.regions.likelihood import cut_along, likelihood_region, tighten_further, wants_value_cuts
from tightrope.regions.polytope import MOST_VERTICES, Polytope
from tightrope.regions.region import DEFAULT_EXCESS, RegionKind, RegionTask
from tightrope.regions.walk import LazyProgram
from tightrope.statistics.bets import (
    Gradient,
    Levels,
    Slab,
    Wagers,
    best_shares,
    place_bets,
    price_of_shares,
)
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.estimates import check_delta
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Predictions

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


_ROUNDS = 4
_ENOUGH = 0.01
_SPARE = 1e-7
"""By so much of its width the range of an expression is widened: whoever proves rows again need not find
ranges to the last digit.
"""


def enclose_slab(
    guard: Polytope,
    ledger: ConfidenceBudget,
    outcomes: Outcomes,
    functions: AffineFunctions,
    slab: Slab,
    direction: FloatArray,
) -> Polytope:
    """The guard's polytope with rows of the bettors, tight along ± direction (in coordinates)."""
    region = guard
    if wants_value_cuts(region) and np.any(direction != 0.0):
        region = cut_along(region, functions, direction[None, :])
    most = MOST_VERTICES if guard.enclosure is not None else 0
    width, rounds = np.inf, 0
    while rounds < _ROUNDS and slab.plan.placed and not region.emptiness.is_empty:
        system, slab = _with_rows(region, outcomes, functions, slab, direction)
        tightened = tighten_further(guard.coordinates, system, region.tightening.rounds)
        points, evidence = region.cut_points, region.evidence
        narrowed = Polytope.of(SLAB, guard.coordinates, ledger, tightened, guard.relaxation, most)
        region = replace(narrowed, cut_points=points, evidence=evidence)
        rounds += 1
        if tightened.empty:
            break
        low, high = region.support(direction[None, :])
        before, width = width, float(high[0] - low[0])
        if width >= (1.0 - _ENOUGH) * before:
            break
    remark = f"bets were placed {len(slab.plan.placed) - slab.without} times; {rounds} rounds of rows"
    if not slab.plan.placed:
        remark = "no data after the pilot of the bets: the guard alone"
    return replace(region, kind=SLAB, ledger=ledger, remarks=(*guard.remarks, remark), slab=slab)


def _with_rows(
    region: Polytope,
    outcomes: Outcomes,
    functions: AffineFunctions,
    slab: Slab,
    direction: FloatArray,
) -> tuple[Halfspaces, Slab]:
    """The region's rows and one for each side that is bet on, with a record of these."""
    lower, upper = expression_bounds(region, outcomes.model.expressions)
    spare = _SPARE * (upper - lower)
    lower, upper = np.maximum(lower - spare, 0.0), np.minimum(upper + spare, 1.0)
    system = region.system
    rows: list[FloatArray] = []
    bounds: list[float] = []
    made = list(slab.rows)
    for side in slab.sides:
        end = _end(region, direction if side else -direction)
        near = functions.linear @ end + functions.constant
        line, level, share = _mix(slab, side, outcomes, lower, upper, near)
        made.append((end, share))
        row, bound = row_of(line, functions, level, system.lower, system.upper)
        rows.append(row)
        bounds.append(bound)
    number: OffsetArray = len(slab.rows) + np.arange(len(rows))
    bare = system.take(system.origin != Origin.ENVELOPE)
    more = bare.with_rows(np.array(rows), np.array(bounds), Origin.SLAB, number)
    return more, replace(slab, rows=tuple(made))


def _mix(
    slab: Slab,
    side: int,
    outcomes: Outcomes,
    lower: FloatArray,
    upper: FloatArray,
    near: FloatArray,
) -> tuple[Line, float, FloatArray]:
    """The line of all scales together, its level and their shares; that of the plan where there is one."""
    wagers, price = slab.wagers[side], slab.price[side]
    if len(wagers) == 1:
        return line_below(wagers[0], outcomes, lower, upper, near), price, np.ones(1)
    wealth = np.array([one.log_wealth(outcomes, near) for one in wagers])
    weight = np.array([scale.weight for scale in slab.every])
    share = best_shares(weight, np.where(np.isnan(wealth), -np.inf, wealth))
    reach = np.maximum(np.abs(lower), np.abs(upper))
    slope, extent, constants = np.zeros(len(lower)), 0.0, list[float]()
    for part, one in zip(share.tolist(), wagers, strict=True):
        if part > 0.0:
            line = line_below(one, outcomes, lower, upper, near)
            slope = slope + part * line.slope
            constants.append(part * line.constant)
            extent += float(np.abs(part * line.slope) @ reach) + abs(constants[-1])
    spare = error_factor(len(wagers) + 8) * extent
    return Line(slope, math.fsum(constants) - spare), up(price + price_of_shares(weight, share)), share


def _end(region: Polytope, direction: FloatArray) -> FloatArray:
    """A point of the polytope where direction·x is largest, in plain float64."""
    corners = region.vertices
    if corners is not None:
        corner: FloatArray = corners[int((corners @ direction).argmax())]
        return corner
    scaled = ScaledHalfspaces.of(region.system)
    aim = direction * scaled.half
    size = float(np.abs(aim).max(initial=0.0))
    outcome = LazyProgram(scaled).maximise(aim / size) if size > 0.0 else None
    if outcome is None or outcome.status is not LinearStatus.OPTIMAL:
        assert region.emptiness.witness is not None
        return region.emptiness.witness
    return scaled.to_x(np.clip(outcome.point, -1.0, 1.0))


def slab_region(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    gradient: Gradient,
    excess: float = DEFAULT_EXCESS,
    outcomes: Outcomes | None = None,
    predictions: Predictions | None = None,
    narrow: Callable[[Polytope], Polytope] = lambda guard: guard,
) -> Polytope:
    """A guard and a slab: narrow along the value whose `gradient` is bet on, whatever the dimension. `narrow`
    makes the guard smaller by what is known beside it.
    """
    check_delta(delta)
    outcomes = outcomes or Outcomes.of(model)
    coordinates = Coordinates.of(model.expressions, model.parameters)
    levels = Levels.of(delta, gradient.ends, len(coordinates.free), gradient.guard_share)
    guard = narrow(likelihood_region(model, counts, levels.guard, excess, outcomes, predictions))
    functions = guard.coordinates.functions(model.expressions)
    maximiser = LikelihoodMaximiser.of(guard.coordinates, functions)
    earlier = None if predictions is None else predictions.bets
    slab = place_bets(outcomes, counts, maximiser, gradient, levels, earlier)
    met = np.isin(guard.system.origin, (Origin.EVENT_UPPER, Origin.EVENT_LOWER))
    names = zip(guard.system.origin[met].tolist(), guard.system.index[met].tolist(), strict=True)
    slab = replace(slab, given=gradient.guard_share is None, events=tuple(names))
    notes = (
        levels.note(),
        slab.plan.note(),
        gradient.words,
        *slab.missing,
        *(f"guard, {note}" for note in guard.ledger.notes),
    )
    ledger = replace(
        guard.ledger, delta=delta, gamma=delta, method="value slab", budget="guard and bettors", notes=notes
    )
    assert guard.evidence is not None
    direction = gradient(maximiser.lifted(guard.evidence.estimate), 1.0)
    if direction is None:
        direction = np.zeros(guard.coordinates.size)
    return enclose_slab(guard, ledger, outcomes, functions, slab, direction)


class ValueSlab(RegionKind):
    """A likelihood region and what bettors on one policy's value leave of it."""

    value = "slab"
    needs_order = True
    bets = True
    certificate = "slab"

    def build(self, task: RegionTask) -> Polytope:
        if task.gradient is None:
            raise InputError("a slab is narrow along a policy's value, and no value was named to bet on")
        excess = task.options.excess
        return slab_region(
            task.model, task.counts, task.delta, task.gradient, excess, task.outcomes, task.predictions
        )


SLAB = ValueSlab()
