"""The likelihood region, enclosed by a polytope of tangent cuts to a given excess width.

L = { x in the domain : Σ K_f·log f(x) ≥ T } (`tightrope.statistics.prequential`) is convex in the
coordinates. Rows of `LogLikelihood.cut` contain it, so their intersection does too, and everything
downstream is the polytope's.

Where to cut. Seen from the estimate x̂, a point v of the current polytope outside L has its boundary point
x̂ + t·(v − x̂) with t < 1; if t ≥ 1/(1+ε) for all vertices v then the polytope lies in x̂ + (1+ε)(L − x̂),
so that no width exceeds L's by more than ε. Up to `MOST_CUT_DIMENSIONS` coordinates the vertices
themselves are checked and the excess is measured; beyond that the maximisers in a fixed set of directions
(the coordinates and expressions of the model) are, and the excess is theirs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.data.counts import Counts
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.regions.polytope import MOST_VERTICES, Polytope
from tightrope.regions.region import DEFAULT_EXCESS, RegionKind, RegionTask, Relaxation
from tightrope.regions.support_points import support_points
from tightrope.regions.tangent_cuts import LogLikelihood
from tightrope.regions.tightening import Tightened, tighten
from tightrope.regions.walk import bound_by_walks
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import check_delta
from tightrope.statistics.ledger import Ledger, assumed_of
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Predictions, prequential

MOST_CUT_DIMENSIONS = 4
_ROUNDS = 24
_CUTS_A_ROUND = 128
_DIRECTIONS = 256
_CONSIDERED = 4096


def enclose_likelihood(
    coordinates: Coordinates,
    ledger: Ledger,
    likelihood: LogLikelihood,
    centre: FloatArray,
    directions: FloatArray,
    excess: float = DEFAULT_EXCESS,
) -> Polytope:
    """Cut until no vertex (or no maximiser in the given directions) sticks out by more than `excess`."""
    base = Halfspaces.of_domain(coordinates)
    if not np.isfinite(likelihood.level) or len(likelihood.weight) == 0:
        tightened = tighten(coordinates, base)
        region = Polytope.of(LIKELIHOOD, coordinates, ledger, tightened, Relaxation.OUTER)
        return replace(region, remarks=("no evidence after the pilot: the whole domain",))
    steps, normals = _spread(likelihood, centre, directions)
    points: list[FloatArray] = []
    base = with_cuts(base, likelihood, centre, centre + steps, points)
    tightened = tighten(coordinates, base)
    if coordinates.size <= MOST_CUT_DIMENSIONS:
        tightened, worst = _by_vertices(
            coordinates, ledger, likelihood, centre, excess, base, tightened, points
        )
        where, most = "everywhere", MOST_VERTICES
    else:
        tightened, worst = _by_directions(coordinates, likelihood, centre, normals, base, tightened, points)
        where, most = f"in {len(normals)} directions of coordinates and expressions", 0
    region = Polytope.of(LIKELIHOOD, coordinates, ledger, tightened, Relaxation.OUTER, most)
    measured = f"; the likelihood region is exceeded by at most {worst:.2%} {where}" if worst < np.inf else ""
    remark = f"{len(points)} tangent cuts{measured}"
    return replace(region, remarks=(remark,), cut_points=np.array(points).reshape(-1, coordinates.size))


def _by_vertices(
    coordinates: Coordinates,
    ledger: Ledger,
    likelihood: LogLikelihood,
    centre: FloatArray,
    excess: float,
    base: Halfspaces,
    tightened: Tightened,
    points: list[FloatArray],
) -> tuple[Tightened, float]:
    """Cut off vertices until none sticks out by more than `excess`."""
    worst = np.inf
    for _ in range(_ROUNDS):
        if tightened.empty:
            break
        region = Polytope.of(LIKELIHOOD, coordinates, ledger, tightened, Relaxation.OUTER)
        corners = region.vertices
        if corners is None:
            break
        sticking = 1.0 / np.maximum(likelihood.boundary(centre, corners), 1e-12) - 1.0
        worst = float(sticking.max(initial=0.0))
        if worst <= excess:
            break
        chosen = _apart(corners, sticking, excess, centre)
        base = with_cuts(base, likelihood, centre, corners[chosen], points)
        tightened = tighten(coordinates, base)
    return tightened, worst


def _by_directions(
    coordinates: Coordinates,
    likelihood: LogLikelihood,
    centre: FloatArray,
    normals: FloatArray,
    base: Halfspaces,
    tightened: Tightened,
    points: list[FloatArray],
) -> tuple[Tightened, float]:
    """Cut at the maximisers over the likelihood region itself, which lie in it and so measure the excess."""
    if tightened.empty:
        return tightened, np.inf
    maxima = maxima_along(tightened.system, likelihood, centre, normals)
    if len(maxima) == 0:
        return tightened, np.inf
    base = with_cuts(base, likelihood, centre, maxima, points)
    tightened = tighten(coordinates, base)
    if tightened.empty:
        return tightened, np.inf
    outer = _maxima(tightened, normals) - normals @ centre
    inner = ((maxima - centre) * normals).sum(axis=1)
    found = inner > 1e-6 * outer
    return tightened, float(np.max(outer[found] / inner[found], initial=1.0) - 1.0)


def maxima_along(
    system: Halfspaces, likelihood: LogLikelihood, centre: FloatArray, normals: FloatArray
) -> FloatArray:
    """Where each normal is largest over the likelihood region within the rows that are no cuts; no points
    where the centre is not strictly inside of these.
    """
    kept = ScaledHalfspaces.of(system.take(system.origin != Origin.CUT))
    eye = np.eye(len(centre))
    matrix = np.concatenate([kept.matrix, eye, -eye])
    bound = np.concatenate([kept.bound, np.full(2 * len(centre), 1.0 + 1e-9)])
    start = (centre - kept.centre) / kept.half
    search = likelihood.rescale(kept.centre, kept.half)
    return kept.to_x(support_points(search, matrix, bound, start, normals * kept.half))


def with_cuts(
    base: Halfspaces,
    likelihood: LogLikelihood,
    centre: FloatArray,
    towards: FloatArray,
    points: list[FloatArray],
) -> Halfspaces:
    """Tangents where the rays from the centre leave the region; their points are appended to `points`."""
    fraction = likelihood.boundary(centre, towards)
    first = len(points)
    rows: list[FloatArray] = []
    bounds: list[float] = []
    for t, point in zip(fraction.tolist(), towards, strict=True):
        touched = centre + t * (point - centre) if np.isfinite(t) else centre
        if t > 0.0 and np.isfinite(t) and likelihood.is_possible(touched):
            points.append(touched)
            row, bound = likelihood.cut(touched, base.lower, base.upper)
            rows.append(row)
            bounds.append(bound)
    matrix = np.array(rows).reshape(-1, len(centre))
    return base.with_rows(matrix, np.array(bounds), Origin.CUT, np.arange(first, len(points)))


def _spread(
    likelihood: LogLikelihood, centre: FloatArray, directions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Steps from the centre in well-spread directions, and the normals of a quadratic region at their ends.

    With curvature H = FᵀF the region is nearly a ball in F·x. A row in direction g touches it near H⁻¹g,
    so the steps aim at the given directions (thinned out) and, in few dimensions, at a spread-out set of
    unit vectors.
    """
    size = len(centre)
    bend = likelihood.curvature(centre)
    values, basis = np.linalg.eigh(bend)
    root = 1.0 / np.sqrt(np.maximum(values, 1e-12 * max(float(values.max()), 1e-300)))
    to_ball = basis * root
    aims = [np.eye(size), -np.eye(size)]
    if size <= MOST_CUT_DIMENSIONS:
        count = {1: 2, 2: 24, 3: 96}.get(size, 160)
        aims.append(np.random.default_rng(11).normal(size=(count, size)))
    coordinate_aims = to_ball.copy()
    wanted = np.concatenate([coordinate_aims, -coordinate_aims])
    if size > MOST_CUT_DIMENSIONS and len(directions):
        seen = directions @ to_ball
        seen = seen[np.abs(seen).max(axis=1) > 0.0]
        seen = seen / np.linalg.norm(seen, axis=1, keepdims=True)
        wanted = np.concatenate([wanted, _thin(seen)])
    aims.append(wanted)
    unit = np.concatenate(aims)
    unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-300)
    steps: FloatArray = unit @ to_ball.T
    normals: FloatArray = unit @ (basis / root).T
    return steps, normals


def _thin(unit: FloatArray) -> FloatArray:
    """At most `_DIRECTIONS` of the unit vectors and their opposites, chosen far apart (among evenly many)."""
    unit = unit[:: max(1, len(unit) // _CONSIDERED)]
    both = np.concatenate([unit, -unit])
    chosen = [0]
    distance = 1.0 - both @ both[0]
    while len(chosen) < min(_DIRECTIONS, len(both)):
        farthest = int(distance.argmax())
        if distance[farthest] < 1e-4:
            break
        chosen.append(farthest)
        distance = np.minimum(distance, 1.0 - both @ both[farthest])
    return both[chosen]


def _maxima(tightened: Tightened, normals: FloatArray) -> FloatArray:
    """The largest value of each normal over the system."""
    scaled = ScaledHalfspaces.of(tightened.system)
    values, _ = bound_by_walks(scaled, normals * scaled.half)
    result: FloatArray = values + normals @ scaled.centre
    return result


def _apart(corners: FloatArray, sticking: FloatArray, excess: float, centre: FloatArray) -> list[int]:
    """The corners that stick out most, none close to another one already chosen."""
    order = np.argsort(-sticking)
    order = order[sticking[order] > excess]
    offset = corners - centre
    offset = offset / np.maximum(np.abs(offset).max(axis=0), 1e-300)
    offset = offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-300)
    chosen: list[int] = []
    for corner in order.tolist():
        if len(chosen) >= _CUTS_A_ROUND:
            break
        if not chosen or float((offset[chosen] @ offset[corner]).max()) < 0.995:
            chosen.append(corner)
    return chosen


def likelihood_region(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    excess: float = DEFAULT_EXCESS,
    outcomes: Outcomes | None = None,
    predictions: Predictions | None = None,
) -> Polytope:
    """L: the parameters that explain the data almost as well as a predictable plug-in (METHODS §3)."""
    check_delta(delta)
    outcomes = outcomes or Outcomes.of(model)
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    evidence = prequential(coordinates, functions, outcomes, counts, delta, predictions)
    method, assumption = "prequential likelihood ratio", evidence.assumption
    assumed = assumed_of(assumption, counts.design, tied=True, ordered=True)
    ledger = Ledger(delta, 1, delta, method, "one region", assumption, assumed, (evidence.note(),))
    likelihood = LogLikelihood(functions, evidence.weight, evidence.threshold)
    centre = LikelihoodMaximiser.of(coordinates, functions).lifted(evidence.estimate)
    directions = functions.linear[model.expressions.nonconstant]
    region = enclose_likelihood(coordinates, ledger, likelihood, centre, directions, excess)
    return replace(region, evidence=evidence)


class PrequentialLikelihood(RegionKind):
    """L: the parameters that explain the data almost as well as predictions made before them."""

    value = "likelihood"
    needs_order = True
    has_forecast = True
    serves_rates = True
    is_compared = True
    certificate = "likelihood"

    def build(self, task: RegionTask) -> Polytope:
        excess = task.options.excess
        return likelihood_region(task.model, task.counts, task.delta, excess, task.outcomes, task.predictions)


LIKELIHOOD = PrequentialLikelihood()
