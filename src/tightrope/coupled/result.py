"""Results of coupled computations: the certified interval, instantiations that bound it from inside, and the
tree of cells that proves it.

`Cell` and `Chain` refer to the problem before `objective.complement`; intervals and witnesses are as
reported, after it. Proofs: `cells` (frames), `taylor` and `vertex_proof`. Models of cells are not stored;
`CoupledValue.model` recomputes one, bit by bit the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np

from tightrope.coupled.cells import Emptiness, Frame, Split, affine_at
from tightrope.coupled.chain import Affine, Chain, visits
from tightrope.coupled.taylor import ErrorSystem, TaylorModel, expand, order_for
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.record import Facts, Record, brief, freeze_fields
from tightrope.numerics.rounding import down, error_factor, up
from tightrope.numerics.text import interval_text
from tightrope.statistics.coordinates import AffineFunctions

# The vertex certificate: an end of the value's range over a cell is its value at one point of the cell.
#
# The difference of the value from that at a point is a quadratic along the cell, up to known errors, whose
# Bernstein coefficients bound it. If all are ≥ 0 the minimum is attained at the point; otherwise the value
# there less the largest violation is still a bound. Proof: docs/proofs/values.md.

_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class VertexProof:
    """`bound` holds on the cell: the value at `point` (at most `error` off) and `violation` beyond it."""

    point: int
    value: float
    error: float
    violation: float
    bound: float


class _Place(NamedTuple):
    """A point of the frame by its number: values, expressions and expected visits of rows there."""

    point: int
    at: TaylorModel
    here: Affine
    eta: FloatArray


def vertex_proof(
    chain: Chain, functions: AffineFunctions, frame: Frame, model: TaylorModel, upper: bool
) -> VertexProof | None:
    """The proof at the point where the model is lowest (or highest); None where it cannot be made."""
    row = chain.initial
    sign = -1.0 if upper else 1.0
    _, slope, curvature = model.at(row)
    values = frame.points @ slope + np.einsum("ki,ij,kj->k", frame.points, curvature, frame.points)
    point = int((sign * values).argmin())
    at = point_model(chain, functions, frame, point)
    if at is None:
        return None
    here = affine_at(functions, at.centre, at.axes, 0.0)
    eta = occupancy(chain, here)
    if eta is None:
        return None
    affine = affine_at(functions, frame.centre, frame.axes, frame.radius)
    violation = _violation(chain, affine, frame, model, _Place(point, at, here, eta), sign)
    value, error = float(at.constant[row]), float(at.error[row])
    bound = up(value + error + violation) if upper else down(value - error - violation)
    return VertexProof(point, value, error, violation, bound)


def point_model(chain: Chain, functions: AffineFunctions, frame: Frame, point: int) -> TaylorModel | None:
    """The values at the float64 point nearest to a point of the frame; the proof counts that rounding."""
    x = frame.to_x(frame.points[point : point + 1])[0]
    return expand(chain, functions, x, np.zeros((len(x), 0)), 0.0, order=0)


def occupancy(chain: Chain, here: Affine) -> FloatArray | None:
    """Expected visits of every row from the initial one, in plain float64."""
    probability = chain.weight * here.middle[chain.expression]
    if chain.acyclic:
        eta = np.zeros(chain.rows)
        visits(chain.row_start, chain.successor, probability, chain.fixed, chain.initial, eta)
        return eta
    system = ErrorSystem.of(chain, here)
    if system is None:
        return None
    start = (system.free == chain.initial).astype(np.float64)
    eta = np.zeros(chain.rows)
    eta[system.free] = np.maximum(system.factor.solve(start, trans="T"), 0.0)
    return eta


def _violation(
    chain: Chain, affine: Affine, frame: Frame, model: TaylorModel, place: _Place, sign: float
) -> float:
    point, at, here, eta = place
    radius = frame.radius
    row = chain.row_of_entry
    used = ~chain.fixed[row] & (eta[row] > 0)
    s, t, e = row[used], chain.successor[used], chain.expression[used]
    mass = eta[s] * chain.weight[used]
    bend = np.linalg.norm(model.curvature.reshape(chain.rows, -1), axis=1)
    spread = (radius**2 * bend + model.error) * (1.0 + 1e-9)
    y = frame.points[point]
    there = model.constant + model.slope @ y

    count, size = len(affine.middle), len(y)
    level, most = _sum_by_index(e, mass * there[t], count)
    width, _ = _sum_by_index(e, mass * spread[t], count)
    tilt = np.stack([_sum_by_index(e, mass * model.slope[t, j], count)[0] for j in range(size)], axis=1)
    bent = affine.gradient.T @ tilt
    away = frame.points - y
    linear = away @ (affine.gradient.T @ level)
    loss = np.abs(away @ affine.gradient.T) @ width
    symmetric = sign * 0.5 * (bent + bent.T)
    lowest = _least(sign * linear - loss, symmetric, away)

    # Rounding: every term of the sums above, and what is fuzzy about expressions and about x_k itself.
    reach = np.abs(model.constant) + radius * np.linalg.norm(model.slope, axis=1) + spread
    terms = most + count + size * size + 40
    scale = mass * reach[t] * (2.0 * radius * affine.steepness[e])
    rounding = error_factor(terms) * 4.0 * float(scale.sum())
    rounding += 2.0 * float((mass * reach[t] * (affine.fuzz[e] + here.fuzz[e])).sum())
    rounding += _residual(chain, here, eta, reach, at) * (1.0 + 1e-9)
    return max(-lowest, 0.0) + rounding * (1.0 + 1e-6) + 1e-300


def _least(edge: FloatArray, curvature: FloatArray, away: FloatArray) -> float:
    """A lower bound of edge + zᵀMz over the hull of the points `away`, one edge per point."""
    own = edge + np.einsum("ki,ij,kj->k", away, curvature, away)
    steepest = float(np.linalg.eigvalsh(curvature)[-1]) + 1e-12 * float(np.linalg.norm(curvature))
    lowest = float((own - max(steepest, 0.0) * (away**2).sum(axis=1)).min())
    if len(away) <= MOST_PAIRED:
        lowest = max(lowest, _pairs(edge, curvature, away)[0])
    return lowest


def _sum_by_index(index: IndexArray, terms: FloatArray, count: int) -> tuple[FloatArray, int]:
    """Sums by index, a block at a time, and how many additions the longest took."""
    total = np.zeros(count)
    blocks = range(0, len(index), _BLOCK)
    for start in blocks:
        part = slice(start, start + _BLOCK)
        total += np.bincount(index[part], terms[part], count)
    return total, min(_BLOCK, len(index)) + len(blocks)


def _residual(chain: Chain, here: Affine, eta: FloatArray, reach: FloatArray, at: TaylorModel) -> float:
    """A bound on |ρ·(V(x) − V(x_k))|."""
    row = chain.row_of_entry
    flow = np.where(chain.fixed[row], 0.0, eta[row]) * chain.weight
    into = np.bincount(chain.successor, flow * here.middle[chain.expression], chain.rows)
    blur = np.bincount(chain.successor, flow * here.fuzz[chain.expression], chain.rows)
    size = np.bincount(chain.successor, flow * np.abs(here.middle[chain.expression]), chain.rows)
    rho, extent = eta - into, size + eta
    rho[chain.initial] -= 1.0
    extent[chain.initial] += 1.0
    arrivals = np.bincount(chain.successor, minlength=chain.rows)
    arrivals[chain.fixed] = 0
    rho = np.abs(rho) + error_factor(int(arrivals.max(initial=1)) + 16) * extent + blur
    rho[chain.fixed] = 0.0
    return float(rho @ (reach + np.abs(at.constant) + at.error))


MOST_PAIRED = 3000
_CHUNK = 2**21


def range_over_hull(
    constant: float, slope: FloatArray, curvature: FloatArray, points: FloatArray
) -> tuple[float, float]:
    """Safe bounds of the quadratic over conv(points); `curvature` is empty for an affine function."""
    linear = points @ slope
    radius = float(np.linalg.norm(points, axis=1).max(initial=0.0))
    size = len(slope)
    bent = float(np.linalg.norm(curvature)) * radius**2
    extent = abs(constant) + float(np.linalg.norm(slope)) * radius + bent
    error = error_factor(2 * size * size + 20) * extent * 4.0 + 1e-300
    if curvature.size == 0:
        low, high = float(linear.min()), float(linear.max())
    else:
        low, high = _convex(linear, curvature, points)
        if len(points) <= MOST_PAIRED:
            low_pairs, high_pairs = _pairs(linear, curvature, points)
            low, high = max(low, low_pairs), min(high, high_pairs)
    return constant + low - error, constant + high + error


def _pairs(linear: FloatArray, curvature: FloatArray, points: FloatArray) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    bent = points @ curvature
    step = max(1, _CHUNK // len(points))
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        table = bent[part] @ points.T
        table += 0.5 * linear[part, None]
        table += 0.5 * linear
        low, high = min(low, float(table.min())), max(high, float(table.max()))
    return low, high


def _convex(linear: FloatArray, curvature: FloatArray, points: FloatArray) -> tuple[float, float]:
    spectrum = np.linalg.eigvalsh(curvature)
    spare = 1e-12 * float(np.linalg.norm(curvature))
    values = linear + np.einsum("ki,ij,kj->k", points, curvature, points)
    concave, convex = max(spare - float(spectrum[0]), 0.0), max(spare + float(spectrum[-1]), 0.0)
    top, bottom = points[int(values.argmax())], points[int(values.argmin())]
    high = values + concave * ((points - top) ** 2).sum(axis=1)
    low = values - convex * ((points - bottom) ** 2).sum(axis=1)
    return float(low.min()), float(high.max())


LEAST_EXCESS = 1e-100
"""What is smaller is nothing: it is left by rounding where all values are 0."""

EXACT_SHARE = 1e-5
"""An end counts as attained where an instantiation comes as close as this share of `extent_of`."""


class CoupledStatus(Enum):
    """How the search ended. The interval is certified in every case.

    >>> CoupledStatus.EXACT.value
    'exact over the coupled set: both ends are attained by instantiations of the region'
    """

    EXACT = "exact over the coupled set: both ends are attained by instantiations of the region"
    CERTIFIED = "certified: the interval is within the gap asked for of instantiations of the region"
    CELL_LIMIT = "the limit on cells was reached; the interval is certified but wider. Try a larger gap."
    TIME_LIMIT = "the time limit was reached, so the certified interval is wider. Try a larger limit."
    PRECISION_LIMIT = "no cell could be refined further in float64; the interval is certified but wider."
    RECTANGULAR = "only the rectangular interval could be certified"

    @property
    def is_reached(self) -> bool:
        """Whether no limit stopped the search; over rectangular sets alone there is nothing to refine."""
        return self in (CoupledStatus.EXACT, CoupledStatus.CERTIFIED, CoupledStatus.RECTANGULAR)


@dataclass(frozen=True, eq=False, repr=False)
class Witness(Record):
    """An instantiation: parameters `theta`, their coordinates `x`, and the value there within [lower, upper].

    x satisfies the rows of the region up to a relative 10⁻⁹ of its extent.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> value = tr.solve(model.problem('Pmax=? [ F "heads" ]')).robust.coupled
    >>> round(float(value.highest.theta[0]), 6), round(value.highest.upper, 6)
    (1.0, 1.0)
    """

    theta: FloatArray
    x: FloatArray
    lower: float
    upper: float

    def __post_init__(self) -> None:
        freeze_fields(self)


@dataclass(eq=False)
class Cell:
    """A node of the tree; `lower` and `upper` hold on it (before `complement`).

    They are the best of `own_lower`/`own_upper` (model and vertex proofs; none without frame and
    `emptiness`), of the parent's, and of the worse of the two children's. The search splits it along
    `direction`, unless too many cells around it, each within the next, have no model (`failures`).
    """

    parent: int
    split: Split | None
    lower: float
    upper: float
    frame: Frame | None
    emptiness: Emptiness | None
    failures: int = 0
    own_lower: float = -np.inf
    own_upper: float = np.inf
    has_model: bool = False
    children: tuple[int, int] | None = None
    low_vertex: VertexProof | None = None
    high_vertex: VertexProof | None = None
    direction: Split | None = None
    leading: FloatArray | None = None


@dataclass(frozen=True, eq=False, repr=False)
class CoupledValue(Record):
    """The certified interval [lower, upper] of a policy's value at the initial state; see the module.

    `gap` is the share of the width that no instantiation accounts for. `rectangular_lost_nothing`: both ends
    of the rectangular interval are attained; `cells` is then empty. With a `baseline` the value is the
    policy's less that policy's (`tightrope.coupled.difference`), the rectangular interval that of the two
    intervals apart.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> value = tr.solve(model.problem('Pmax=? [ F "heads" ]')).robust.coupled
    >>> (value.lower, value.upper), value.status is CoupledStatus.EXACT
    ((0.0, 1.0), True)
    """

    objective: Objective
    policy: Policy
    lower: float
    upper: float
    rectangular_lower: float
    rectangular_upper: float
    functions: AffineFunctions = field(repr=False)
    lowest: Witness | None = None
    highest: Witness | None = None
    status: CoupledStatus = CoupledStatus.RECTANGULAR
    reason: str = ""
    gap: float = 1.0
    rectangular_lost_nothing: bool = False
    chain: Chain | None = None
    cells: tuple[Cell, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    baseline: Policy | None = None

    def _title_(self) -> str:
        return f"CoupledValue: {interval_text(self.lower, self.upper)}"

    def _facts_(self) -> Facts:
        return [
            ("status", self.status.value),
            ("rectangular", interval_text(self.rectangular_lower, self.rectangular_upper)),
            ("open", f"{self.gap:.3g} of the width"),
            ("cells", f"{len(self.cells):,}"),
            ("policy", brief(self.policy)),
            *([("because", self.reason)] if self.reason else []),
        ]

    @property
    def width(self) -> float:
        return self.upper - self.lower if self.upper > self.lower else 0.0

    def model(self, cell: int) -> TaylorModel:
        """The Taylor model of a cell that has one, computed again."""
        frame = self.cells[cell].frame
        assert frame is not None and self.chain is not None
        order = order_for(self.chain, frame.axes)
        model = expand(self.chain, self.functions, frame.centre, frame.axes, frame.radius, order)
        assert model is not None
        return model


def extent_of(lower: float, upper: float) -> float:
    """The width, at least a thousandth of the value; the size of the other end where one is infinite."""
    size, width = max((abs(end) for end in (lower, upper) if np.isfinite(end)), default=0.0), upper - lower
    return max(width, 1e-3 * size) if np.isfinite(width) else size
