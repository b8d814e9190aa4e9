"""The likelihood region, enclosed by a polytope of tangent cuts to a given excess width.

Any positive numbers c_f give a half-space that contains { x : Σ K_f·log f(x) ≥ T }, so only the arithmetic of
a row has to be right, and it is rounded outward. Where to cut is a heuristic in plain float64: at vertices
of the current polytope, in fixed directions in many coordinates, and along values of policies that will be
evaluated. Cuts cost no confidence, so any look may choose directions. Proof: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.regions.polytope import MOST_VERTICES, Polytope
from tightrope.regions.region import DEFAULT_EXCESS, RegionKind, RegionTask, Relaxation
from tightrope.regions.tightening import Tightened, tighten
from tightrope.regions.walk import bound_by_walks
from tightrope.statistics.confidence_budget import ConfidenceBudget, assumed_of
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import prequential

MOST_CUT_DIMENSIONS = 4
_ROUNDS = 24
_CUTS_A_ROUND = 128
_DIRECTIONS = 256
_CONSIDERED = 4096


def enclose_likelihood(
    coordinates: Coordinates,
    ledger: ConfidenceBudget,
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
    ledger: ConfidenceBudget,
    likelihood: LogLikelihood,
    centre: FloatArray,
    excess: float,
    base: Halfspaces,
    tightened: Tightened,
    points: list[FloatArray],
) -> tuple[Tightened, float]:
    """Cut off vertices until none sticks out by more than `excess`; only the rows are proved, at the end."""
    worst, box, known = np.inf, tightened.system, True
    for _ in range(_ROUNDS):
        corners = None if coordinates.is_lifted else _corners(base, box, centre)
        if corners is None:
            tightened, known = tightened if known else tighten(coordinates, base), True
            region = Polytope.of(LIKELIHOOD, coordinates, ledger, tightened, Relaxation.OUTER)
            corners = None if tightened.empty else region.vertices
        if corners is None:
            break
        sticking = 1.0 / np.maximum(likelihood.boundary(centre, corners), 1e-12) - 1.0
        worst = float(sticking.max(initial=0.0))
        if worst <= excess:
            break
        chosen = _apart(corners, sticking, excess, centre)
        base, known = with_cuts(base, likelihood, centre, corners[chosen], points), False
    return tightened if known else tighten(coordinates, base), worst


def _corners(system: Halfspaces, box: Halfspaces, centre: FloatArray) -> FloatArray | None:
    """Vertices of rows around a point in a box, by facets of the dual; None if outside or too many."""
    from scipy.spatial import ConvexHull, QhullError

    half, eye = 0.5 * (box.upper - box.lower), np.eye(len(centre))
    if len(centre) == 1 or np.any(half <= 0.0):
        return None
    rows = np.concatenate([system.matrix * half, eye, -eye])
    room = [system.bound - system.matrix @ centre, (box.upper - centre) / half, (centre - box.lower) / half]
    distance = np.concatenate(room)
    if np.any(distance <= 1e-9 * np.abs(rows).max(axis=1)):
        return None
    try:
        hull = ConvexHull(rows / distance[:, None], qhull_options="Qt")
    except QhullError:
        return None
    facets: FloatArray = hull.equations
    if len(facets) > MOST_VERTICES or np.any(facets[:, -1] >= 0.0):
        return None
    return np.asarray(centre - half * facets[:, :-1] / facets[:, -1:])


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
    positive = inner > 1e-6 * outer
    return tightened, float(np.max(outer[positive] / inner[positive], initial=1.0) - 1.0)


def maxima_along(
    system: Halfspaces, likelihood: LogLikelihood, centre: FloatArray, normals: FloatArray
) -> FloatArray:
    """Maximise normals over the likelihood region without cuts; none if the centre is not inside."""
    uncut = ScaledHalfspaces.of(system.take(system.origin != Origin.CUT))
    eye = np.eye(len(centre))
    matrix = np.concatenate([uncut.matrix, eye, -eye])
    bound = np.concatenate([uncut.bound, np.full(2 * len(centre), 1.0 + 1e-9)])
    start = (centre - uncut.centre) / uncut.half
    search = likelihood.rescale(uncut.centre, uncut.half)
    return uncut.to_x(support_points(search, matrix, bound, start, normals * uncut.half))


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
    """Spread-out steps from the centre, and normals of the quadratic region at their ends."""
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
    return values + normals @ scaled.centre


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


class PrequentialLikelihood(RegionKind):
    """L: the parameters that explain the data almost as well as predictions made before them."""

    value = "likelihood"
    needs_order = True
    has_forecast = True
    serves_rates = True
    is_compared = True
    certificate = "likelihood"

    def build(self, task: RegionTask) -> Polytope:
        outcomes, options, delta = task.outcomes, task.options, task.delta
        coordinates, functions = outcomes.coordinates, outcomes.functions
        evidence = prequential(outcomes, task.counts, delta, task.predictions, options.prior)
        method, need = "prequential likelihood ratio", evidence.assumption
        assumed = assumed_of(need, task.counts.design, tied=True, ordered=True)
        ledger = ConfidenceBudget(delta, 1, delta, method, "one region", need, assumed, (evidence.note(),))
        likelihood = LogLikelihood(functions, evidence.weight, evidence.threshold)
        centre = outcomes.maximiser.lifted(evidence.estimate)
        directions = functions.linear[outcomes.informative]
        region = enclose_likelihood(coordinates, ledger, likelihood, centre, directions, options.excess)
        return replace(region, evidence=evidence)


LIKELIHOOD = PrequentialLikelihood()


class LogLikelihood:
    """ℓ(x) = Σ weight·log f(x) over the coordinates, with the level T that bounds the region."""

    def __init__(self, functions: AffineFunctions, weight: FloatArray, level: float):
        used = np.flatnonzero(weight > 0.0)
        chosen = functions.take(used)
        self.linear, self.constant, self.slack = chosen.linear, chosen.constant, chosen.slack
        self.weight = weight[used]
        self.level = level

    def rescale(self, origin: FloatArray, scale: FloatArray) -> LogLikelihood:
        """The same function of y, x = origin + scale·y; for searching, not for proving."""
        everything = AffineFunctions(self.linear * scale, self.constant + self.linear @ origin, self.slack)
        return LogLikelihood(everything, self.weight, self.level)

    def values(self, points: FloatArray) -> FloatArray:
        """ℓ at points [n, coordinates] in plain float64; −∞ where some f ≤ 0."""
        probability = points @ self.linear.T + self.constant
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(probability > 0.0, np.log(probability), -np.inf)
        return logs @ self.weight

    def curvature(self, x: FloatArray) -> FloatArray:
        """Minus the Hessian of ℓ at x."""
        probability = self.linear @ x + self.constant
        scaled = self.linear * (np.sqrt(self.weight) / probability)[:, None]
        return scaled.T @ scaled

    def boundary(self, centre: FloatArray, points: FloatArray) -> FloatArray:
        """For each point t > 0 with ℓ(centre + t·(point − centre)) ≈ T, by bracketed Newton steps; ∞ beyond
        10⁶."""
        start = self.linear @ centre + self.constant
        slope = self.linear @ (points - centre).T
        with np.errstate(divide="ignore", invalid="ignore"):
            limit = np.where(slope < 0.0, -start[:, None] / slope, np.inf).min(axis=0, initial=np.inf)
        least, most = np.zeros(len(points)), np.minimum(limit, 1e6)
        result, open_ones = np.minimum(1.0, 0.5 * most), np.arange(len(points))
        for _ in range(50):
            low, high, t = least[open_ones], most[open_ones], result[open_ones]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                chance = start[:, None] + slope * t
                value, rate = self.weight @ np.log(chance), self.weight @ (slope / chance)
                inside = value >= self.level
                newton = t - (value - self.level) / rate
            low, high = np.where(inside, t, low), np.where(inside, high, t)
            wide = high > 4.0 * np.maximum(low, 1e-9)
            middle = np.where(wide & (low > 0.0), np.sqrt(low * high), 0.5 * (low + high))
            follows = (rate < 0.0) & (low < newton) & (newton < high)
            near = follows & (np.abs(newton - t) <= 1e-8 * t)
            least[open_ones], most[open_ones] = low, high
            result[open_ones] = np.where(follows, newton, middle)
            left = ~near & (high - low > 1e-7 * high)
            if not np.any(left):
                break
            if not np.all(left):
                open_ones, slope = open_ones[left], slope[:, left]
        return np.where((most >= 1e6) & (limit > 1e6), np.inf, result)

    def is_possible(self, point: FloatArray) -> bool:
        """Whether all that was seen has a positive probability there: a tangent needs it."""
        return bool(np.all(self.linear @ point + self.constant > 0.0))

    def cut(self, point: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, float]:
        """A row a·x ≤ b that holds on the region within the box: the tangent at `point`, or nearly so."""
        chosen = self.linear @ point + self.constant
        tilt = self.weight / chosen
        gradient = tilt @ self.linear
        reach = np.maximum(np.abs(upper - point), np.abs(lower - point))
        off = product_error(tilt[None, :], self.linear, 3)[0] @ reach
        logs = self.weight * np.log(chosen)
        # Σ tilt·(value at the point − c): zero but for the rounding of c, bounded like the slack.
        size = np.abs(self.linear) @ np.abs(point) + np.abs(self.constant)
        fuzz = float(tilt @ (self.slack + error_factor(len(point) + 4) * size)) * (1.0 + 1e-9)
        room = math.fsum(logs) + 6.0 * UNIT * math.fsum(np.abs(logs)) - self.level
        middle = float(gradient @ point)
        spare = 4.0 * UNIT * (abs(room) + abs(middle)) + error_factor(len(point) + 4) * float(
            np.abs(gradient) @ np.abs(point)
        )
        bound = room - middle + (off + fuzz + spare) * (1.0 + 1e-9)
        return -gradient, up(float(bound))


_GAP = 0.005
_GROWTH = 30.0
_NEWTON = 25


def support_points(
    likelihood: LogLikelihood, matrix: FloatArray, bound: FloatArray, centre: FloatArray, normals: FloatArray
) -> FloatArray:
    """One point near the maximum for each normal; rows must hold strictly at the centre."""
    depth = float(likelihood.values(centre[None, :])[0]) - likelihood.level
    if depth <= 0.0 or np.any(bound - matrix @ centre <= 0.0):
        return np.zeros((0, len(centre)))
    # The half-width of the quadratic region in a direction sets the scale of τ.
    # Without curvature (nothing was seen that depends on it) there is none, and any scale will do.
    away = np.linalg.lstsq(likelihood.curvature(centre), normals.T, rcond=None)[0]
    size = np.maximum(1e-24 * (normals**2).sum(axis=1), 1e-300)
    reach = np.maximum(2.0 * depth * np.einsum("ka,ak->k", normals, away), size)
    barrier = _LikelihoodBarrier(likelihood, matrix, bound)
    return barrier.maximise(centre, normals / np.sqrt(reach)[:, None])


class _LikelihoodBarrier:
    """log(ℓ(x) − T) + Σ log(b − A·x), at many points at a time."""

    def __init__(self, likelihood: LogLikelihood, matrix: FloatArray, bound: FloatArray):
        self.likelihood, self.matrix, self.bound = likelihood, matrix, bound
        linear, size = likelihood.linear, matrix.shape[1]
        self.squares = [(one[:, :, None] * one[:, None, :]).reshape(-1, size**2) for one in (linear, matrix)]

    def value(self, points: FloatArray) -> FloatArray:
        """−∞ outside."""
        level, room = self.likelihood.values(points) - self.likelihood.level, self._room(points)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.log(level) + np.log(room).sum(axis=1)
        return np.where((level > 0.0) & (room > 0.0).all(axis=1), total, -np.inf)

    def _room(self, points: FloatArray) -> FloatArray:
        room: FloatArray = self.bound - points @ self.matrix.T
        return room

    def slopes(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(gradient, minus the curvature), inside."""
        likelihood, size = self.likelihood, points.shape[1]
        level = likelihood.values(points)[:, None] - likelihood.level
        ratio = likelihood.weight / (points @ likelihood.linear.T + likelihood.constant)
        slope, near = ratio @ likelihood.linear / level, 1.0 / self._room(points)
        bend = (ratio**2 / likelihood.weight / level) @ self.squares[0] + near**2 @ self.squares[1]
        curve = bend.reshape(-1, size, size) + slope[:, :, None] * slope[:, None, :]
        return slope - near @ self.matrix, curve

    def maximise(self, start: FloatArray, goals: FloatArray) -> FloatArray:
        """Follow the barrier's path in each direction to its end."""
        x, tau = np.tile(start, (len(goals), 1)), np.ones(len(goals))
        left = np.arange(len(goals))
        while len(left):
            self._climb(x, left, tau[left, None] * goals[left])
            gained = ((x[left] - start) * goals[left]).sum(axis=1)
            enough = (len(self.bound) + 1.0) / (_GAP * np.maximum(gained, 1e-4))
            is_over = tau[left] >= enough
            tau[left] = np.minimum(tau[left] * _GROWTH, enough)
            left = left[~is_over]
        return x

    def _climb(self, x: FloatArray, left: OffsetArray, pull: FloatArray) -> None:
        """Newton's steps at points x[left], in place."""
        for _ in range(_NEWTON):
            slope, curve = self.slopes(x[left])
            gradient = slope + pull
            try:
                step = np.linalg.solve(curve, gradient[:, :, None])[:, :, 0]
            except np.linalg.LinAlgError:  # flat in some direction; points only guide the cuts
                return
            gain, here = (gradient * step).sum(axis=1), self.value(x[left])
            rise, length = (pull * step).sum(axis=1), np.where(gain > 1e-3, 1.0, 0.0)
            while True:
                there = self.value(x[left] + length[:, None] * step) + length * rise
                short = (length > 1e-10) & ~(there >= here + 0.1 * length * gain)
                if not short.any():
                    break
                length[short] *= 0.5
            moved = length > 1e-10
            left, pull = left[moved], pull[moved]
            if not len(left):
                return
            x[left] += (length[:, None] * step)[moved]


_ALIKE = 1.0 - 1e-6
"""Cosine above which two directions count as one."""

_FURTHER_ROUNDS = 2
"""Cuts are made again where the box has shrunk meanwhile: envelopes of products follow the box."""


def wants_value_cuts(region: Polytope) -> bool:
    """Whether the region was cut along chosen directions alone, and has evidence to cut by."""
    return (
        region.coordinates.size > MOST_CUT_DIMENSIONS
        and region.evidence is not None
        and region.cut_points is not None
        and not region.emptiness.is_empty
    )


def cut_along(region: Polytope, outcomes: Outcomes, directions: FloatArray) -> Polytope:
    """The region with tangents at its support points along ± the directions [n, coordinates]."""
    evidence = region.evidence
    assert evidence is not None and region.cut_points is not None
    likelihood = LogLikelihood(outcomes.functions, evidence.weight, evidence.threshold)
    centre = outcomes.maximiser.lifted(evidence.estimate)
    distinct = _distinct(directions, likelihood.curvature(centre))
    if len(distinct) == 0:
        return region
    normals = np.concatenate([distinct, -distinct])
    points = list(region.cut_points)
    rounds = _FURTHER_ROUNDS if region.coordinates.is_lifted else 1
    system, done, tightened = region.system, region.tightening.rounds, None
    for _ in range(rounds):
        maxima = maxima_along(system, likelihood, centre, normals)
        system = with_cuts(without_envelopes(system), likelihood, centre, maxima, points)
        tightened = tighten_further(region.coordinates, system, done)
        system, done = tightened.system, tightened.report.rounds
        if tightened.empty:
            break
    assert tightened is not None
    most = 0 if region.enclosure is None else MOST_VERTICES
    result = Polytope.of(region.kind, region.coordinates, region.ledger, tightened, region.relaxation, most)
    more = len(points) - len(region.cut_points)
    policies = "one policy" if len(distinct) == 1 else f"{len(distinct)} policies"
    remark = f"{more} more tangent cuts along the values of {policies}"
    return replace(
        result,
        remarks=(*region.remarks, remark),
        evidence=evidence,
        cut_points=np.array(points).reshape(-1, region.coordinates.size),
        slab=region.slab,
    )


def tighten_further(coordinates: Coordinates, system: Halfspaces, rounds: int) -> Tightened:
    """A system that was tightened in so many rounds, with more rows since, tightened again."""
    again = tighten(coordinates, system)
    return replace(again, report=replace(again.report, rounds=rounds + again.report.rounds))


def without_envelopes(system: Halfspaces) -> Halfspaces:
    """Without the envelopes of products: tightening writes those of the smaller box."""
    return system.take(system.origin != Origin.ENVELOPE)


def _distinct(directions: FloatArray, bend: FloatArray) -> FloatArray:
    """Directions that differ as seen by the likelihood, whose curvature is `bend`."""
    values, basis = np.linalg.eigh(bend)
    root = np.sqrt(np.maximum(values, 1e-12 * max(float(values.max(initial=0.0)), 1e-300)))
    distinct: list[FloatArray] = []
    seen: list[FloatArray] = []
    for direction in directions:
        image = (direction @ basis) / root
        size = float(np.linalg.norm(image))
        if not 0.0 < size < np.inf:
            continue
        image = image / size
        if all(abs(float(image @ other)) < _ALIKE for other in seen):
            distinct.append(direction / float(np.abs(direction).max()))
            seen.append(image)
    return np.array(distinct).reshape(-1, directions.shape[1])
