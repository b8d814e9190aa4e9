"""The slab region: what bettors leave of a guard region, narrow along one policy's value.

    C = { θ ∈ guard : Λ⁺(θ) < log(1/α⁺), Λ⁻(θ) < log(1/α⁻) }

The guard is a likelihood region; the bettors (`tightrope.statistics.bets`) look for the lower and for the
upper end of the value of one policy, or for one of the two. Their levels and the guard's sum to at most δ
(`tightrope.statistics.slab`), so C misses the true parameters with probability at most δ. It is a set of
parameters, so it holds for all policies at once; what is bet on only decides along which direction it is
narrow, and that costs nothing per dimension.

*Enclosure.* Starting from the guard's polytope, each round bounds all expressions over the polytope, adds a
row for each side that is bet on (`tightrope.region.slab_rows`), and tightens. Rounds end when the width along
the value falls by less than 1 %.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import LinearStatus
from tightrope.numerics.rounding import error_factor, up
from tightrope.region.bounds import expression_bounds
from tightrope.region.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.region.lazy_program import LazyProgram
from tightrope.region.polytope import MOST_VERTICES, Polytope
from tightrope.region.region import RegionKind
from tightrope.region.slab_rows import Line, line_below, row_of
from tightrope.region.value_cuts import cut_along, tighten_further, wants_value_cuts
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.ledger import Ledger
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.scales import allowance, best_shares
from tightrope.statistics.slab import Slab

_ROUNDS = 4
_ENOUGH = 0.01
_SPARE = 1e-7
"""By so much of its width the range of an expression is widened: whoever proves rows again need not find
ranges to the last digit.
"""


def enclose_slab(
    guard: Polytope,
    ledger: Ledger,
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
        narrowed = Polytope.of(RegionKind.SLAB, guard.coordinates, ledger, tightened, guard.relaxation, most)
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
    return replace(region, kind=RegionKind.SLAB, ledger=ledger, remarks=(*guard.remarks, remark), slab=slab)


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
    share = best_shares(slab.every, np.where(np.isnan(wealth), -np.inf, wealth))
    reach = np.maximum(np.abs(lower), np.abs(upper))
    slope, extent, constants = np.zeros(len(lower)), 0.0, list[float]()
    for part, one in zip(share.tolist(), wagers, strict=True):
        if part > 0.0:
            line = line_below(one, outcomes, lower, upper, near)
            slope = slope + part * line.slope
            constants.append(part * line.constant)
            extent += float(np.abs(part * line.slope) @ reach) + abs(constants[-1])
    spare = error_factor(len(wagers) + 8) * extent
    return Line(slope, math.fsum(constants) - spare), up(price + allowance(slab.every, share)), share


def _end(region: Polytope, direction: FloatArray) -> FloatArray:
    """A point of the polytope where direction·x is largest, in plain float64."""
    corners = region.vertices
    if corners is not None:
        found: FloatArray = corners[int((corners @ direction).argmax())]
        return found
    scaled = ScaledHalfspaces.of(region.system)
    aim = direction * scaled.half
    size = float(np.abs(aim).max(initial=0.0))
    outcome = LazyProgram(scaled).maximise(aim / size) if size > 0.0 else None
    if outcome is None or outcome.status is not LinearStatus.OPTIMAL:
        assert region.emptiness.witness is not None
        return region.emptiness.witness
    return scaled.to_x(np.clip(outcome.point, -1.0, 1.0))
