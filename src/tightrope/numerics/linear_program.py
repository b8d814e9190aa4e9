"""Linear programs (HiGHS) and cone programs (Clarabel), with bounds that do not trust the solvers.

Both solvers work in floating point, so only their multipliers λ ≥ 0 are used. For every x in the box with
A·x ≤ b, weak duality gives, whatever the accuracy of λ,

    g·x = λ·(A·x) + (g − Aᵀλ)·x  ≤  λ·b + max over the box of (g − Aᵀλ)·x

`dual_bounds` evaluates the right-hand side with a running error bound. With g = 0 a negative right-hand side
proves that no such x exists (`proves_empty`, Farkas' lemma). Both hold for any subset of the rows.

*Ellipsoids.* On ‖F·(x − c)‖₂ ≤ radius, A·x ≤ b: g·x ≤ λ·b + (g − Aᵀλ)·c + radius·‖F⁻ᵀ(g − Aᵀλ)‖₂, which the
caller evaluates with its own rounding. A failed run returns λ = 0, the bound of the ellipsoid alone.

*Norms.* Minimise Σ weight_i·‖z_i‖₂ subject to Σ F_iᵀ·z_i = c. The dual, max c·u with ‖F_i·u‖₂ ≤ weight_i, is
solved; the z_i are its multipliers. For any u, c·u / max_i(‖F_i·u‖/weight_i) is at most the minimum.

*Blocks* are groups of columns that no row links: a program or a likelihood is the sum of one per block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import FloatArray, OffsetArray, offsets
from tightrope.numerics.jit import Untyped
from tightrope.numerics.late import csgraph, highspy, sparse
from tightrope.numerics.rounding import error_factor, largest_over_box, product_error, up


class LinearStatus(Enum):
    """What HiGHS says; a claim, not a proof."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


@dataclass(frozen=True)
class LinearOutcome:
    """A claimed optimum (`point`) or infeasibility, with non-negative multipliers for the proof."""

    status: LinearStatus
    point: FloatArray
    multipliers: FloatArray


class LinearProgram:
    """max g·x over lower ≤ x ≤ upper and rows a·x ≤ b, for many g; rows may be added, bases are kept."""

    def __init__(self, lower: FloatArray, upper: FloatArray):
        self._size = len(lower)
        self._rows = 0
        self._solver = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("presolve", "off"),
            ("solver", "simplex"),
            ("threads", 1),
            ("primal_feasibility_tolerance", 1e-9),
            ("dual_feasibility_tolerance", 1e-9),
        ):
            self._solver.setOptionValue(option, value)
        self._solver.addVars(self._size, np.ascontiguousarray(lower), np.ascontiguousarray(upper))
        self._solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._columns = np.arange(self._size, dtype=np.int32)

    @property
    def rows(self) -> int:
        return self._rows

    def add_rows(self, matrix: FloatArray, bound: FloatArray) -> None:
        """Append the rows matrix·x ≤ bound."""
        count = len(bound)
        if count == 0:
            return
        start = np.arange(0, count * self._size, self._size, dtype=np.int32)
        self._solver.addRows(
            count,
            np.full(count, -highspy.kHighsInf),
            np.ascontiguousarray(bound),
            count * self._size,
            start,
            np.tile(self._columns, count),
            np.ascontiguousarray(matrix).ravel(),
        )
        self._rows += count

    def maximise(self, direction: FloatArray) -> LinearOutcome:
        """One run; `FAILED` where HiGHS stops for another reason than optimality or infeasibility."""
        self._solver.changeColsCost(self._size, self._columns, np.ascontiguousarray(direction))
        self._solver.run()
        status = self._solver.getModelStatus()
        known = highspy.HighsModelStatus
        if status == known.kOptimal:
            solution = self._solver.getSolution()
            multipliers = np.maximum(np.array(solution.row_dual, dtype=np.float64), 0.0)
            return LinearOutcome(LinearStatus.OPTIMAL, np.array(solution.col_value), multipliers)
        nowhere = np.full(self._size, np.nan)
        if status == known.kInfeasible:
            _, has_ray, values = self._solver.getDualRay()
            ray = np.maximum(-np.array(values, dtype=np.float64), 0.0) if has_ray else np.zeros(self._rows)
            return LinearOutcome(LinearStatus.INFEASIBLE, nowhere, ray)
        return LinearOutcome(LinearStatus.FAILED, nowhere, np.zeros(self._rows))


def dual_bounds(
    matrix: FloatArray,
    bound: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    directions: FloatArray,
    multipliers: FloatArray,
) -> FloatArray:
    """Rigorous upper bounds of directions·x on {matrix·x ≤ bound} in a box, for any multipliers ≥ 0."""
    reduced = directions - multipliers @ matrix
    slack = product_error(multipliers, matrix) + error_factor(2) * (np.abs(directions) + np.abs(reduced))
    reach = np.maximum(np.abs(lower), np.abs(upper))
    value = multipliers @ bound
    error = product_error(multipliers, bound[:, None])[:, 0]
    error += (slack @ reach) * (1.0 + error_factor(4 + len(reach)))
    return up(up(value + largest_over_box(reduced, lower, upper)) + up(error))


def proves_empty(
    matrix: FloatArray, bound: FloatArray, lower: FloatArray, upper: FloatArray, multipliers: FloatArray
) -> bool:
    """Whether these multipliers prove that no x of the box satisfies matrix·x ≤ bound."""
    if len(multipliers) == 0 or not np.all(np.isfinite(multipliers)):
        return False
    direction = np.zeros((1, len(lower)))
    return bool(dual_bounds(matrix, bound, lower, upper, direction, multipliers[None, :])[0] < 0.0)


class ConeProgram:
    """The multipliers of the rows A·x ≤ b at the maximum of g·x over the ellipsoid cut by them."""

    def __init__(
        self, factor: FloatArray, centre: FloatArray, radius: float, matrix: FloatArray, bound: FloatArray
    ):
        self._rows, size = len(bound), len(centre)
        stacked = np.vstack([matrix, np.zeros((1, size)), -factor])
        right = np.concatenate([bound, [radius], -(factor @ centre)])
        # without presolve every row is kept, so that a new objective can be loaded
        self._solver = _cone_solver(np.zeros(size), stacked, right, self._rows, [size + 1], presolve=False)

    def multipliers(self, direction: FloatArray) -> FloatArray:
        """λ ≥ 0 for max direction·x; zeros where Clarabel found none."""
        self._solver.update(q=-direction)
        outcome = self._solver.solve()
        if not _is_solved(outcome):
            return np.zeros(self._rows)
        dual = np.array(outcome.z[: self._rows], dtype=np.float64)
        return np.where(np.isfinite(dual), np.maximum(dual, 0.0), 0.0)


def _cone_solver(
    goal: FloatArray, matrix: FloatArray, right: FloatArray, plain: int, cones: Sequence[int], presolve: bool
) -> Untyped:
    """Clarabel for min goal·x: rests right − matrix·x lie in a `plain` number of half lines, then cones."""
    try:
        import clarabel
    except ImportError as missing:
        raise InputError(
            "an ellipsoid cut by the domain needs the package 'clarabel', which is missing here",
            hint="pip install clarabel",
        ) from missing
    settings, none = clarabel.DefaultSettings(), sparse.csc_matrix((len(goal), len(goal)))
    settings.verbose, settings.presolve_enable = False, presolve
    kinds = [clarabel.NonnegativeConeT(plain), *map(clarabel.SecondOrderConeT, cones)]
    return clarabel.DefaultSolver(none, goal, sparse.csc_matrix(matrix), right, kinds[not plain :], settings)


def _is_solved(outcome: Untyped) -> bool:
    return str(outcome.status) in ("Solved", "AlmostSolved")


RANK = 1e-10
"""Directions in which all F_i together are shorter than this part of the longest count as missing."""


@dataclass(frozen=True, eq=False)
class LeastNorms:
    """The norms ‖z_i‖, and a lower bound on the least Σ weight_i·‖z_i‖ that holds whatever the solver did."""

    norm: FloatArray
    bound: float


def least_norms(factors: Sequence[FloatArray], weight: FloatArray, vector: FloatArray) -> LeastNorms | None:
    """The minimum; None where the rows of the factors do not span the vector, or the solver failed."""
    scale = _whitening(factors)
    scaled = scale.T @ vector
    size = float(np.linalg.norm(vector))
    back = np.linalg.pinv(scale.T) @ scaled
    if size == 0.0 or np.linalg.norm(back - vector) > 1e-7 * size:
        return None
    reduced = [factor @ scale for factor in factors]
    unit = float(np.linalg.norm(scaled))
    solve = _by_highs if all(len(factor) == 1 for factor in factors) else _by_clarabel
    solved = solve(reduced, weight, scaled / unit)
    if solved is None:
        return None
    norm, dual = solved
    reach = max(
        float(np.linalg.norm(factor @ dual)) / cost for factor, cost in zip(reduced, weight, strict=True)
    )
    bound = float(scaled @ dual) / reach if reach > 0.0 else 0.0
    return LeastNorms(norm * unit, max(bound, 0.0))


def _whitening(factors: Sequence[FloatArray]) -> FloatArray:
    """T [d, r] with Σ (F_i·T)ᵀ(F_i·T) = 1, over the directions that any of the F_i sees."""
    stacked = np.concatenate(list(factors))
    _, length, directions = np.linalg.svd(stacked, full_matrices=False)
    seen = length > RANK * length.max(initial=0.0)
    whitening: FloatArray = directions[seen].T / length[seen]
    return whitening


def _by_highs(
    factors: Sequence[FloatArray], weight: FloatArray, vector: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    rows = np.concatenate(list(factors))
    free = np.full(len(vector), np.inf)
    program = LinearProgram(-free, free)
    program.add_rows(np.concatenate([rows, -rows]), np.concatenate([weight, weight]))
    outcome = program.maximise(vector)
    if outcome.status is not LinearStatus.OPTIMAL:
        return None
    plus, minus = np.split(outcome.multipliers, 2)
    return np.abs(plus - minus), outcome.point


def _by_clarabel(
    factors: Sequence[FloatArray], weight: FloatArray, vector: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    lengths = [len(factor) + 1 for factor in factors]
    begin = offsets(lengths)
    matrix, right = np.zeros((begin[-1], len(vector))), np.zeros(begin[-1])
    for first, factor, cost in zip(begin[:-1], factors, weight, strict=True):
        matrix[first + 1 : first + 1 + len(factor)] = -factor
        right[first] = cost
    outcome = _cone_solver(-vector, matrix, right, 0, lengths, presolve=True).solve()
    if not _is_solved(outcome):
        return None
    multiplier = np.array(outcome.z)
    norm = np.array([np.linalg.norm(multiplier[a + 1 : b]) for a, b in pairwise(begin)])
    return norm, np.array(outcome.x)


MANY = 12
"""Up to so many coordinates nothing is gained by looking for blocks."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some columns, and for every matrix the rows that touch them."""

    columns: OffsetArray
    rows: tuple[OffsetArray, ...]


def find_blocks(*matrices: FloatArray) -> tuple[Block, ...]:
    """The blocks of matrices that share their columns; () where there are few columns or one block."""
    size = matrices[0].shape[1]
    if size <= MANY:
        return ()
    places = [np.nonzero(matrix) for matrix in matrices]
    starts = size + np.cumsum([0, *(len(matrix) for matrix in matrices)])
    row = np.concatenate([start + place[0] for start, place in zip(starts[:-1], places, strict=True)])
    column = np.concatenate([place[1] for place in places])
    nodes = int(starts[-1])
    graph = sparse.coo_array((np.ones(len(row), dtype=np.int8), (row, column)), shape=(nodes, nodes))
    label = csgraph.connected_components(graph, directed=False)[1]
    numbers = np.unique(label[:size])
    if len(numbers) == 1:
        return ()
    order = np.argsort(label, kind="stable")
    first = np.searchsorted(label[order], numbers)
    last = np.searchsorted(label[order], numbers, side="right")
    blocks = []
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        members = np.sort(order[begin:end])
        cuts = np.searchsorted(members, starts)
        rows = tuple(
            members[a:b] - start for a, b, start in zip(cuts[:-1], cuts[1:], starts[:-1], strict=True)
        )
        blocks.append(Block(members[: cuts[0]], rows))
    return tuple(blocks)
