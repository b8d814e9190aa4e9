"""Check coupled bounds: cells that cover the region, models on cells, bounds at the initial state.

With the true coordinates x in the region (`tightrope_check.learned`):

1. x lies in one of the cells of every cut through the tree of splits, since a split leaves nothing out.
2. Each cell with a proof lies in the hull of its points, or is empty (*Cells*).
3. Decided states are those where the claim's two vectors meet: there the value is that number whatever x is.
   From open states the policy leads to open or decided ones only. On each cell the models enclose the value
   at every open state (*Models*).
4. Over the points of a cell, model and occupancies bound the value at the initial state (*Values*). A node's
   bound is the better of its own and of the worse of its two children's; the root's is also that of the
   vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, permutations
from math import floor, inf, isfinite, isqrt

import numpy as np

from tightrope_check import fields
from tightrope_check.arrays import BoolArray, FloatArray, Indices, Number, OffsetArray
from tightrope_check.budget import hold, spend, spend_on, spend_rows
from tightrope_check.coordinates import Box, Row, Space
from tightrope_check.fields import MOST_CODES, MOST_ENTRIES, is_offsets
from tightrope_check.learned import Learned, RowOrigin, RowSystem, RowWriter, approximate_inverses
from tightrope_check.logarithms import root_up
from tightrope_check.nature import rows_of
from tightrope_check.numbers import RATIONAL, Arithmetic, Numbers, OutOfRange
from tightrope_check.problem import CertifiedObjective, CertifiedProblem, Claim
from tightrope_check.verdict import Check

MOST_POINTS = 20_000
MOST_SIZE = 40
_BLOCK = 1 << 20
_BITS, _LIMB = 200, 27
_MASK = (1 << _LIMB) - 1

Pair = tuple[Number, Number]
ValueEnds = tuple[Fraction | float, Fraction | float]
"""(lower, upper); a float is an infinity."""


@dataclass(frozen=True, eq=False)
class CoupledHints:
    """Bounds of a claim's policy over the region itself: one x for the whole run.

    * A tree of cells. Node 0 is the region; split i divides the node split_node[i] by split_direction[i]·x ≤
      split_value[i] (node 2i + 1) and ≥ (node 2i + 2).
    * Proof i is about the cell of node[i]. Its rows are row[row_start[i]:row_start[i+1]], its points
      point[point_start[i]:point_start[i+1]] in the frame x = centre + axes·y; point k belongs to the simplex
      of rows simplex[k], numbered as in a basis. A proof without points says that the cell is empty: its
      rows, weighted by `multiplier`, contradict the cell's box.
    * Models [proof, open state]: |V_s(x) − value − slope·y − yᵀ·curve·y| ≤ error; `curve` holds the entries
      (j, k), j ≤ k, of symmetric matrices. For a bounded number of steps the checker makes the steps itself.
    * `dual` [occupancy, open state]; `lower_dual`, `upper_dual`: those used by a proof, −1 for none.
    * `state`: the open states, all that can be met before the value is decided.
    """

    claim: int = fields.whole(most=3)
    split_node: OffsetArray = fields.integers("splits", most=MOST_CODES)
    split_direction: FloatArray = fields.reals("splits", "SIZE")
    split_value: FloatArray = fields.reals("splits")
    node: OffsetArray = fields.integers("proofs", most=MOST_CODES)
    lower_dual: OffsetArray = fields.integers("proofs", least=-1, most=MOST_CODES)
    upper_dual: OffsetArray = fields.integers("proofs", least=-1, most=MOST_CODES)
    row_start: OffsetArray = fields.integers("proofs+1")
    row: OffsetArray = fields.integers("rows", "3")
    multiplier: FloatArray = fields.reals("rows", least=0.0)
    point_start: OffsetArray = fields.integers("proofs+1")
    point: FloatArray = fields.reals("points", "SIZE")
    simplex: OffsetArray = fields.integers("points", "SIZE", most=MOST_CODES)
    centre: FloatArray = fields.reals("proofs", "SIZE")
    axes: FloatArray = fields.reals("proofs", "SIZE", "SIZE")
    state: OffsetArray = fields.integers("open", most=MOST_CODES)
    value: FloatArray = fields.reals("models", "open")
    slope: FloatArray = fields.reals("models", "open", "SIZE")
    curve: FloatArray = fields.reals("models", "open", "packed")
    error: FloatArray = fields.reals("models", "open", least=0.0)
    dual: FloatArray = fields.reals("duals", "open")

    def trouble(self) -> str | None:
        splits, size = len(self.split_node), self.point.shape[1]
        if len(self.value) not in (0, len(self.node)) or self.curve.shape[2] != packed_size(size):
            return "models do not fit the proofs"
        for start, of in ((self.row_start, self.row), (self.point_start, self.point)):
            if not is_offsets(start, len(of), rising=False):
                return "rows or points of proofs do not fit"
        points, rows = (int(np.diff(start).max(initial=0)) for start in (self.point_start, self.row_start))
        if points > MOST_POINTS or size > MOST_SIZE or max(points * size, rows) * size > MOST_ENTRIES:
            return "a cell has more points, rows or coordinates than this program checks"
        if max(self.lower_dual.max(initial=-1), self.upper_dual.max(initial=-1)) >= len(self.dual):
            return "an occupancy that is not there"
        if np.any(np.diff(self.state) <= 0):
            return "the open states do not rise"
        if np.any(self.split_node > 2 * np.arange(splits)) or len(np.unique(self.split_node)) != splits:
            return "a split of a cell that is not there, or was split before"
        return "a proof about a cell that is not there" if self.node.max(initial=0) > 2 * splits else None

    def rows_of(self, proof: int) -> OffsetArray:
        return self.row[self.row_start[proof] : self.row_start[proof + 1]]

    def points_of(self, proof: int) -> tuple[FloatArray, OffsetArray]:
        """(points, simplices)."""
        span = slice(int(self.point_start[proof]), int(self.point_start[proof + 1]))
        return self.point[span], self.simplex[span]

    def coefficients_of(self, proof: int) -> FloatArray:
        """The models of a proof by coefficients of 1, y_j and y_j·y_k, j ≤ k: entries off the diagonal of
        `curve` stand for two."""
        left, right = np.triu_indices(self.point.shape[1])
        curve = self.curve[proof] * np.where(left == right, 1.0, 2.0)
        return np.concatenate([self.value[proof][:, None], self.slope[proof], curve], axis=1)

    def path(self, node: int) -> list[tuple[int, int]]:
        """The splits (number, side) that lead to a node, the last one first; side 0 is ≤, side 1 is ≥."""
        steps = []
        while node > 0:
            steps.append(divmod(node - 1, 2))
            node = int(self.split_node[steps[-1][0]])
        return steps


def packed_size(size: int) -> int:
    """How many entries (j, k), j ≤ k, a symmetric matrix has."""
    return size * (size + 1) // 2


def rounding(n: Arithmetic, operations: int, size: Number) -> Number:
    """What so many operations may change, on tame numbers with terms whose absolute values sum to `size`."""
    return 0 if n.exact else n.error(operations, size) + 2.0**-400


def is_tame(n: Arithmetic, *arrays: Number) -> bool:
    return n.exact or all(bool(np.all(np.abs(array) <= 2.0**200)) for array in arrays)


def unproved(n: Arithmetic, count: int, holds: Callable[[Arithmetic, OffsetArray], BoolArray]) -> OffsetArray:
    """Which of so many statements do not hold: what an arithmetic leaves open, rationals decide."""
    left = np.arange(count)
    for one in (n,) if n.exact else (n, RATIONAL):
        left = left[~holds(one, left)] if len(left) else left
    return left


class Cells:
    """The cells that a proof speaks of; also the source of SPLIT rows."""

    def __init__(self, hints: CoupledHints, writer: RowWriter, region_box: Box):
        self.hints, self.space, self.region_box = hints, writer.space, region_box
        hold("splits", 150 * hints.split_direction.size, lasting=True)
        spend("splits", 20 * hints.split_direction.size)
        self.direction = [[Fraction(v) for v in row] for row in hints.split_direction.tolist()]
        self.value = [Fraction(v) for v in hints.split_value.tolist()]
        self.writer = writer.and_from(RowOrigin.SPLIT, self)

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        if part == 0:
            return self.direction[index], self.value[index]
        return [-a for a in self.direction[index]], -self.value[index]

    def rows(self, node: int, names: OffsetArray) -> RowSystem:
        """These rows in the cell of a node, which may name only what holds there."""
        path = self.hints.path(node)
        spend("cells", 3000 + (150 + 4 * self.space.size + len(names) // 2) * len(path))
        spend("cells", 20 * len(names) + 2 * self.space.size**2)
        for origin, index, part in names.tolist():
            if origin == RowOrigin.SPLIT and (index, part) not in path:
                raise ValueError("a split that does not lead to its cell")
        return self.writer.rows(names, self.box(path))

    def box(self, path: list[tuple[int, int]]) -> Box:
        """From splits along one free coordinate, and the ranges of products."""
        lower, upper = list(self.region_box[0]), list(self.region_box[1])
        for split, side in path:
            along = [j for j, a in enumerate(self.direction[split]) if a]
            if len(along) == 1 and along[0] < len(self.space.free):
                j, a = along[0], self.direction[split][along[0]]
                end = self.value[split] / a
                if (side == 0) == (a > 0):
                    upper[j] = min(upper[j], end)
                else:
                    lower[j] = max(lower[j], end)
        return self.space.with_products(lower, upper)

    def is_empty(self, proof: int) -> bool:
        """Whether Σ multiplier·row contradicts the box: an upper bound of 0 over the cell is negative.
        Without any row the box has to contradict itself."""
        rows = self.rows(int(self.hints.node[proof]), self.hints.rows_of(proof))
        if rows.matrix.shape[0] == 2 * rows.size:
            return bool((rows.lower > rows.upper).any())
        own = slice(2 * rows.size, None)
        span = slice(int(self.hints.row_start[proof]), int(self.hints.row_start[proof + 1]))
        weights = RATIONAL.array(self.hints.multiplier[span])[None, :]
        nothing = RATIONAL.zeros((1, rows.size))
        return bool(rows.bound_by(rows.matrix[None, own], rows.bound[None, own], nothing, weights)[0] < 0)


def hull_misfit(n: Arithmetic, rows: RowSystem, simplices: OffsetArray, *shape: FloatArray) -> str | None:
    """Why the hull of the points centre + axes·y need not contain the cell, or None."""
    (count, size), (points, centre, axes) = simplices.shape, shape
    hold("simplices of a cell", 24 * count * size * size)
    spend("simplices of a cell", 20_000)
    spend("simplices of a cell", count * size * size * (4 + size // 2))
    spend("faces of simplices", 10 * count * size * (size + 4))
    if count <= size or np.any(simplices >= len(rows.bound)):
        return "too few simplices, or rows that are not there"
    simplices, order = np.sort(simplices, axis=1), np.arange(size)
    newcomer = _newcomers(simplices)
    if newcomer is None:
        return "a face of a simplex does not belong to exactly two"
    scale = _power(RATIONAL.floats(rows.upper - rows.lower))
    length = _power(np.abs(RATIONAL.floats(rows.matrix) * scale).sum(axis=1, keepdims=True))
    even = rows.matrix * (RATIONAL.array(scale) / RATIONAL.array(length))
    inverse = approximate_inverses(RATIONAL.floats(even)[simplices])

    def beyond(n: Arithmetic, which: OffsetArray) -> BoolArray:
        """Where a point lies on the far side of all rows of its simplex."""
        spend_rows("simplices of a cell", len(which) * size * size, n, rows.matrix, points, centre, axes)
        matrix, bound = (n.array(part)[simplices[which]] for part in (rows.matrix, rows.bound))
        x, along, y = n.array(centre), n.array(axes), n.array(points[which])
        place, reach = x + y @ along.T, np.abs(x) + np.abs(y) @ np.abs(along).T
        excess = np.einsum("kij,kj->ki", matrix, place) - bound
        rounded = np.einsum("kij,kj->ki", np.abs(matrix), reach) + np.abs(bound)
        sure = excess >= rounding(n, 4 * size + 16, rounded)
        result: BoolArray = np.all(sure, axis=1) & is_tame(n, place, reach, matrix, bound)
        return result

    def covers(n: Arithmetic, which: OffsetArray) -> BoolArray:
        """Where rows are independent, and all faces have another simplex on their other side.

        With an approximate inverse R of a simplex's rows A and E = 1 − A·R, ‖E‖ < 1, a row is the combination
        row·A⁻¹ = row·R·(1 − E)⁻¹, off row·R by at most ‖row·R‖₁·‖E‖/(1 − ‖E‖). Rows and columns are scaled by
        powers of two first, which changes no sign.
        """
        spend_rows("simplices of a cell", 2 * len(which) * size**3, n, even, inverse)
        matrix, near = n.array(even), n.array(inverse[which])
        own, other = matrix[simplices[which]], matrix[newcomer[which]]
        missed = rounding(n, size + 16, np.abs(own) @ np.abs(near))
        worst = (np.abs(n.array(np.eye(size)) - own @ near) + missed).sum(axis=2).max(axis=1)
        far = other @ near  # [simplex, i, j]: the newcomer across face i, its weight at row j
        missed = rounding(n, size + 16, np.abs(other) @ np.abs(near)) + n.zeros(far.shape)
        spread = 2 * (np.abs(far) + missed).sum(axis=2)
        off = spread * worst[:, None] + rounding(n, 4, spread) + missed.max(axis=2)
        sure = far[:, order, order] + off < 0
        result: BoolArray = (64 * worst < 1) & np.all(sure, axis=1) & is_tame(n, own, other, near)
        return result

    if len(unproved(n, count, beyond)):
        return "a point lies on the wrong side of a row of its simplex"
    if len(unproved(n, count, covers)):
        return "the rows of a simplex are dependent, or two lie on the same side of their common face"
    return None


def _power(sizes: FloatArray) -> FloatArray:
    """Powers of two near some sizes."""
    result: FloatArray = np.ldexp(1.0, np.frexp(np.maximum(sizes, 1e-300))[1] - 1)
    return result


def _newcomers(simplices: OffsetArray) -> OffsetArray | None:
    """[simplex, i]: the additional row of the one other simplex that has the face without row i; rows of
    simplices rise."""
    faces: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for k, simplex in enumerate(simplices.tolist()):
        for i in range(len(simplex)):
            faces.setdefault((*simplex[:i], *simplex[i + 1 :]), []).append((k, i))
    if any(len(pair) != 2 for pair in faces.values()):
        return None
    one, other = (tuple(np.array([pair[side] for pair in faces.values()]).T) for side in (0, 1))
    result = np.empty_like(simplices)
    result[one], result[other] = simplices[other], simplices[one]
    return result


@lru_cache(maxsize=8)
def monomials(size: int) -> tuple[OffsetArray, OffsetArray, OffsetArray]:
    """(degree, orders of the factors) of the monomials up to degree 3, and [j]: where y_j times each of those
    up to degree 2 stands among them; [0] is where they stand themselves, [j + 1] the products with y_j."""
    listed = [m for degree in range(4) for m in combinations_with_replacement(range(size), degree)]
    place = {monomial: number for number, monomial in enumerate(listed)}
    low = [monomial for monomial in listed if len(monomial) < 3]
    shifted = [[place[tuple(sorted((*m, j)))] for m in low] for j in range(size)]
    orders = [len(set(permutations(monomial))) for monomial in listed]
    return np.array([len(m) for m in listed]), np.array(orders), np.array([range(len(low)), *shifted])


@dataclass(frozen=True, eq=False)
class PolicyChain:
    """The policy's chain: transitions of the listed states, in their order, with the policy's weight and the
    discount.

    The expressions that occur are linear·x + constant; `label` is the number of each transition's.
    """

    n: Arithmetic
    state: OffsetArray
    start: OffsetArray
    weight: Numbers
    label: OffsetArray
    successor: OffsetArray
    linear: Numbers
    constant: Numbers
    reward: Numbers
    reward_size: Numbers

    @staticmethod
    def of(
        n: Arithmetic, space: Space, problem: CertifiedProblem, claim: Claim, state: OffsetArray
    ) -> PolicyChain:
        graph, objective, weight = problem.graph, problem.objective, claim.weights(problem.graph.choices)
        assert problem.expression is not None and problem.polynomial is not None
        if weight is None:
            raise ValueError("coupled bounds need a policy that is a table")
        first, choice = rows_of(graph.choice_start, state)
        part = n.array(weight[choice])
        owner = np.repeat(np.arange(len(state)), np.diff(first))
        share = part / np.add.reduceat(part, first[:-1])[owner] if len(state) else part
        used = np.flatnonzero(weight[choice] > 0)
        choice, owner, share = choice[used], owner[used], share[used]
        reward = np.zeros(graph.choices) if objective.reward is None else objective.reward
        earned, first = share * n.array(reward[choice]), np.searchsorted(owner, np.arange(len(state) + 1))
        offset, transitions = rows_of(graph.transition_start, choice)
        start = offset[first]
        discount = n.array([1.0 if objective.discount is None else objective.discount])[0]
        labels, label = np.unique(problem.expression[transitions], return_inverse=True)
        forms = space.table(n, [problem.polynomial[e] for e in labels.tolist()])
        chain = np.repeat(discount * share, np.diff(offset)), label.reshape(-1), graph.successor[transitions]
        rewards = (
            np.add.reduceat(each, first[:-1]) if len(state) else each for each in (earned, np.abs(earned))
        )
        return PolicyChain(n, state, start, *chain, *forms, *rewards)


@dataclass(frozen=True, eq=False)
class Ball:
    """Expression i of a walk is form[i, 0] + form[i, 1:]·y, off by at most fuzz[i], on |y| ≤ radius."""

    n: Arithmetic
    form: Numbers
    fuzz: Numbers
    radius: Number

    @staticmethod
    def of(walk: PolicyChain, points: FloatArray, centre: FloatArray, axes: FloatArray) -> Ball:
        """On x = centre + axes·y; the numbers of the walk's expressions are the nearest."""
        n, linear, constant = walk.n, walk.linear, walk.constant
        spend_on("models of the value", 4 * points.size, n, points)
        spend_rows("models of the value", linear.size * len(axes), n, linear, centre, axes)
        x, along, y = n.array(centre), n.array(axes), n.array(points)
        radius = norm_up(n, y).max()
        size = np.abs(linear) @ (np.abs(x) + radius * np.abs(along).sum(axis=1)) + np.abs(constant)
        form = np.concatenate([(linear @ x + constant)[:, None], linear @ along], axis=1)
        return Ball(n, form, rounding(n, len(x) + 8, size) + n.zeros(len(form)), radius)

    @property
    def size(self) -> int:
        return int(self.form.shape[1]) - 1

    def magnitude(self, coefficient: Numbers) -> Numbers:
        """Bounds of the sums of the terms' absolute values."""
        power = np.array([self.radius**d for d in range(4)], dtype=self.n.dtype)
        total: Numbers = np.abs(coefficient) @ power[monomials(self.size)[0][: coefficient.shape[1]]]
        total = total + rounding(self.n, coefficient.shape[1] + 8, total)
        return total

    def largest(self, coefficient: Numbers, least: int = 0) -> Numbers:
        """Bounds of the absolute values of what is at least of a degree."""
        degree, orders, _ = monomials(self.size)
        total: Numbers = np.abs(coefficient[:, 0]) * (least == 0)
        for d in range(max(least, 1), int(degree[coefficient.shape[1] - 1]) + 1):
            part = coefficient[:, degree[: coefficient.shape[1]] == d]
            total = total + self.radius**d * norm_up(self.n, part, orders[degree == d])
        total = total + rounding(self.n, 16, total)
        return total


@dataclass(frozen=True, eq=False)
class ValueModel:
    """W, by coefficients, and e for every state of the graph, zeros where nothing is claimed.

    They are doubles as in the file, or numbers of the arithmetic that steps were made in.
    """

    coefficient: Numbers
    error: Numbers

    @staticmethod
    def constant(value: FloatArray, size: int) -> ValueModel:
        width = (size + 1) * (size + 2) // 2
        spend("models of the value", 40 * (size + 1) ** 4)
        hold("models of the value", 24 * len(value) * width * (1 + size // 3))
        coefficient = np.zeros((len(value), monomials(size)[2].shape[1]))
        coefficient[:, 0] = value
        return ValueModel(coefficient, np.zeros(len(value)))


def backup(walk: PolicyChain, ball: Ball, model: ValueModel) -> tuple[Numbers, Numbers, Number]:
    """r + γP(y)W(y) at a walk's states: (coefficients up to degree 3, γ max P(y)e, rounding).

    The last bounds, on the ball, what rounding and fuzz may have changed. In blocks of states.
    """
    work = len(walk.weight) * model.coefficient.shape[1] * (ball.size + 2)
    n, count, forms = walk.n, len(walk.state), ball.form.reshape(1, -1)
    spend_rows("models of the value", 2 * work, n, forms, model.coefficient, model.error, walk.weight)
    sizes = None
    if not n.exact:
        sizes = ball.magnitude(model.coefficient) + model.error, ball.magnitude(ball.form) + ball.fuzz
        if not is_tame(n, *sizes, ball.radius, walk.reward_size):
            raise OutOfRange
    step = max(1, _BLOCK * count // (model.coefficient.shape[1] * max(len(walk.weight), 1)))
    spans = [(first, min(first + step, count)) for first in range(0, max(count, 1), step)]
    parts = [_block(walk, ball, model, sizes, *span) for span in spans]
    coefficient, carried, doubt = (np.concatenate(part) for part in zip(*parts, strict=True))
    return coefficient, carried, doubt


def _block(
    walk: PolicyChain,
    ball: Ball,
    model: ValueModel,
    sizes: Pair | None,
    first: int,
    last: int,
) -> tuple[Numbers, Numbers, Numbers]:
    n, size, span = walk.n, ball.size, slice(int(walk.start[first]), int(walk.start[last]))
    starts, longest = walk.start[first:last] - span.start, int(np.diff(walk.start).max(initial=1))
    e, to, weight = walk.label[span], walk.successor[span], walk.weight[span]
    own, error = n.array(model.coefficient[to]), n.array(model.error[to])
    form, (degree, _, shifted) = weight[:, None] * ball.form[e], monomials(size)
    coefficient = n.zeros((len(starts), len(degree)))
    for j in range(size + 1):
        coefficient[:, shifted[j]] += np.add.reduceat(form[:, j, None] * own, starts, axis=0)
    coefficient[:, 0] += walk.reward[first:last]
    carried = ball.largest(np.add.reduceat(form * error[:, None], starts, axis=0))
    if sizes is None:
        return coefficient, carried, n.zeros(len(starts))
    magnitude, reach = sizes
    terms = np.add.reduceat(weight * reach[e] * magnitude[to], starts) + walk.reward_size[first:last]
    fuzz = np.add.reduceat(weight * ball.fuzz[e] * magnitude[to], starts)
    carried = carried + 2 * rounding(n, longest + size + 20, carried)
    return coefficient, carried, 2 * (rounding(n, longest + size + 20, terms) + fuzz)


def model_misfit(walk: PolicyChain, ball: Ball, model: ValueModel) -> BoolArray:
    """States of the walk where the error is too small."""
    n, own, error = walk.n, model.coefficient[walk.state], walk.n.array(model.error[walk.state])
    residual, carried, doubt = backup(walk, ball, model)
    residual[:, : own.shape[1]] -= n.array(own)
    if not n.exact:
        doubt = doubt + rounding(n, 16, ball.magnitude(own) + ball.magnitude(residual))
    needed = ball.largest(residual) + doubt + carried
    fits = (error >= needed + rounding(n, 8, needed)) & (error > carried + 2 * doubt)
    return ~np.asarray(fits, dtype=np.bool_)


def take_steps(
    objective: CertifiedObjective,
    walks: Iterable[tuple[int, PolicyChain, Ball]],
    model: ValueModel,
    known: BoolArray,
    signs: Sequence[int],
) -> tuple[ValueModel, BoolArray]:
    """The model before all steps of the walks, the last one first, and where it is one; a walk is over all
    states. Values of the states of a difference's second policy have the sign −1.

    A state visited after `step` steps counts as a target from lower_steps on, where steps are bounded.
    """
    target = None if objective.steps is None or objective.kind != "UNTIL" else objective.target
    for step, walk, ball in walks:
        model = _one_step(walk, ball, model)
        known = np.logical_and.reduceat(known[walk.successor], walk.start[:-1])
        for side, sign in enumerate(signs):
            own = slice(side * len(known) // len(signs), (side + 1) * len(known) // len(signs))
            decided = []
            if objective.kind == "UNTIL" and objective.allowed is not None:
                decided.append((~objective.allowed, 0))
            if target is not None and step >= objective.lower_steps:
                decided.append((target, sign))
            for where, value in decided:
                model.coefficient[own][where], model.error[own][where], known[own][where] = 0, 0, True
                model.coefficient[own][where, 0] = value
    return model, known


def _one_step(walk: PolicyChain, ball: Ball, model: ValueModel) -> ValueModel:
    """r + γP(y)W(y) with an error that covers what is left out, also of digits."""
    n, width = walk.n, model.coefficient.shape[1]
    coefficient, carried, doubt = backup(walk, ball, model)
    trimmed = n.trim(coefficient[:, :width])
    error = ball.largest(coefficient, 3) + carried + doubt
    if n.exact:
        error = error + ball.magnitude(coefficient[:, :width] - trimmed)
    return ValueModel(trimmed, n.trim(error + rounding(n, 16, error), True))


def norm_up(n: Arithmetic, vectors: Numbers, divided: Number = 1) -> Numbers:
    """Not below the Euclidean norms √(Σ c²/divided)."""
    square = (vectors * vectors / divided).sum(axis=-1)
    return root_up(n, square + n.error(vectors.shape[-1] + 8, square))


def polynomial_ends(ball: Ball, model: ValueModel, states: list[int], points: FloatArray) -> ValueEnds:
    """Bounds of the sum of V at one or two states over the hull of the points."""
    n, size, own = ball.n, ball.size, ball.n.array(model.coefficient[states])
    table, (left, right) = n.zeros((size + 1, size + 1)), np.triu_indices(size + 1)
    table[left, right] = own.sum(axis=0)
    doubt = n.array(model.error[states]).sum()
    if not is_tame(n, own, doubt, ball.radius):
        raise OutOfRange
    slack = doubt + rounding(n, size * size + 48, ball.magnitude(own).sum() + doubt)
    return _bilinear_ends(n, table, n.array(points), 0, slack)


def occupancy_ends(
    walk: PolicyChain,
    ball: Ball,
    model: ValueModel,
    initial: list[int],
    points: FloatArray,
    occupancy: FloatArray,
) -> ValueEnds:
    """Bounds of the sum of V at one or two states from weights of the open states."""
    n, eta, y = walk.n, walk.n.array(occupancy), walk.n.array(points)
    coefficient, error = n.array(model.coefficient), n.array(model.error)
    visits = np.repeat(eta, np.diff(walk.start)) * walk.weight
    form = n.zeros((len(error), ball.size + 1))
    form[initial, 0] += 1
    form[walk.state, 0] -= eta
    np.add.at(form, walk.successor, visits[:, None] * ball.form[walk.label])
    step = isqrt(len(form)) + 1  # few at a time, so that few roundings lie on the way to the sum
    first = coefficient[:, : ball.size + 1]
    parts = [form[i : i + step].T @ first[i : i + step] for i in range(0, len(form), step)]
    table, earned = np.sum(parts, axis=0), eta * walk.reward
    table[0, 0] += np.sum([earned[i : i + step].sum() for i in range(0, len(earned), step)])
    unsure = np.flatnonzero((error != 0) | np.any(coefficient[:, ball.size + 1 :] != 0, axis=1))
    doubt = ball.largest(coefficient[unsure], 2) + error[unsure]  # elsewhere V = W¹
    blur = total_doubt(n, doubt, form[unsure, 0], form[unsure, 1:], y) / 2
    slack: Number = 0
    if not n.exact:
        magnitude, reach = ball.magnitude(coefficient) + error, ball.magnitude(ball.form) + ball.fuzz
        there = np.abs(visits) * magnitude[walk.successor]
        size = magnitude[initial].sum() + (np.abs(eta) * (magnitude[walk.state] + walk.reward_size)).sum()
        size = size + (there * reach[walk.label]).sum()
        if not is_tame(n, eta, magnitude, reach, ball.radius, size):
            raise OutOfRange
        longest = int(np.diff(walk.start).max(initial=1)) + int(np.bincount(walk.successor).max(initial=0))
        operations = longest + step + len(parts) + ball.size**2 + 90
        slack = rounding(n, 2 * operations, size) + 2 * (there * ball.fuzz[walk.label]).sum()
        blur = blur + n.error(4, blur)
    return _bilinear_ends(n, table, y, blur, slack)


def _bilinear_ends(n: Arithmetic, table: Numbers, y: Numbers, blur: Number, slack: Number) -> ValueEnds:
    """Bounds of (1, Y_k)·table·(1, Y_l), up to blur_k + blur_l and the slack, over all pairs of points."""
    spend_on("pairs of points", 2 * y.size * y.shape[1], n, table, y)
    half, cross = y @ (table[0, 1:] + table[1:, 0]) / 2, table[1:, 1:]
    low, high = _range_of_pairs(n, half - blur, half + blur, y @ ((cross + cross.T) / 2), y)
    low, high = n.fractions(np.array([table[0, 0] + low - slack, table[0, 0] + high + slack]))
    return low, high


def total_doubt(n: Arithmetic, doubt: Numbers, base: Numbers, along: Numbers, y: Numbers) -> Numbers:
    """Upper bounds of Σ doubt·|base + along·Y_k| over the states, one for every point Y_k; doubt ≥ 0.

    In float64 with its error bound. Of rationals in whole multiples of u = 2^−200, each |base + along·Y_k|
    being off by at most u·(1 + Σ (|along| + |Y| + 1)).
    """
    unsure = doubt > 0
    if not unsure.any():
        return n.zeros(len(y))
    spend("occupancies", np.count_nonzero(unsure) * len(y) * (4 + y.shape[1] // 4), 600 if n.exact else 0)
    doubt, base, along = doubt[unsure], base[unsure], along[unsure]
    widest, largest = (np.abs(part).max(axis=0, initial=0) for part in (along, y))
    if n.exact:
        unit = RATIONAL.array([Fraction(1, 1 << _BITS)])[0]
        off = unit * (1 + (widest + largest + 1).sum())
        size = off + np.abs(base).max(initial=0) + widest @ largest
        error, scale = off * doubt.sum() + unit * len(base) * size, unit**3
        base = whole_multiples(base, 2 * _BITS)
        doubt, along, y = (whole_multiples(part, _BITS) for part in (doubt, along, y))
    else:
        if not is_tame(n, doubt, base, along, y):
            raise OutOfRange
        scale, error = 1, 2 * rounding(n, y.shape[1] + 8, doubt @ (np.abs(base) + np.abs(along) @ largest))
    step = max(1, _BLOCK // max(len(base), 1))
    parts = [doubt @ np.abs(base[:, None] + along @ y[i : i + step].T) for i in range(0, len(y), step)]
    total: Numbers = n.array(np.concatenate(parts)) * scale + error
    total = total + rounding(n, len(base) + 16, total)
    return total


def _range_of_pairs(
    n: Arithmetic, low_half: Numbers, high_half: Numbers, first: Numbers, second: Numbers
) -> Pair:
    """Bounds of half_k + half_l + first_k·second_l over all pairs, which are symmetric in k and l.

    There are many, so where numbers are float64 these are doubles with their error bound, and where they
    are rational, whole numbers.
    """
    spend("pairs of points", len(first) ** 2 * (2 + first.shape[1] // 2 if n.exact else 1))
    if n.exact:
        return range_of_pairs(low_half, high_half, first, second)
    sizes = np.maximum(np.abs(low_half), np.abs(high_half))
    size = 2 * sizes.max() + np.abs(first).sum(axis=1).max() * np.abs(second).max()
    error = rounding(n, second.shape[1] + 8, size)
    ends = []
    step = max(1, _BLOCK // len(first))
    for begin in range(0, len(first), step):
        rows = slice(begin, begin + step)
        table = first[rows] @ second[begin:].T
        low = (table + low_half[rows, None] + low_half[begin:]).min()
        ends.append((low, (table + high_half[rows, None] + high_half[begin:]).max()))
    return min(low for low, _ in ends) - error, max(high for _, high in ends) + error


def range_of_pairs(low_half: Numbers, high_half: Numbers, first: Numbers, second: Numbers) -> Pair:
    """Bounds of half_k + half_l + first_k·second_l over all pairs, which are symmetric in k and l.

    `first` and `second` are rounded to 53 bits below their largest entry, to units 2^−e and 2^−f: products of
    d entries are off by at most d·(2⁵³ + 1)·2^−(e+f). They are a·b = h·2⁵⁴ + m·2²⁷ + l by halves of 27 bits,
    for which 64 bits suffice (d ≤ 400). The sum is taken in units u, 2⁶⁰ of which are more than it can be: so
    three parts and two halves are each rounded down by less than u.
    """
    size = first.shape[1]
    one, other = _exponent(first), _exponent(second)
    scale = 2 * _LIMB - 1
    e, f = scale - one, scale - other
    largest = [2 * np.abs(half).max() for half in (low_half, high_half)]
    total = _exponent(np.array([*largest, size * RATIONAL.array([Fraction(2) ** (one + other)])[0]]))
    shift = total + 1 - 60 + e + f
    a, b = (
        whole_multiples(part, bits, Fraction(1, 2)).astype(np.int64)
        for part, bits in ((first, e), (second, f))
    )
    low, high = (whole_multiples(half, 59 - total).astype(np.int64) for half in (low_half, high_half))
    high_a, low_a, high_b, low_b = a >> _LIMB, a & _MASK, b >> _LIMB, b & _MASK
    ends = []
    step = max(1, _BLOCK // len(a))
    for begin in range(0, len(a), step):
        rows = slice(begin, begin + step)
        table = _shifted(high_a[rows] @ high_b[begin:].T, shift - 2 * _LIMB)
        table += _shifted(high_a[rows] @ low_b[begin:].T + low_a[rows] @ high_b[begin:].T, shift - _LIMB)
        table += _shifted(low_a[rows] @ low_b[begin:].T, shift)
        least = (table + low[rows, None] + low[begin:]).min()
        ends.append((int(least), int((table + high[rows, None] + high[begin:]).max()) + 5))
    unit, error = Fraction(2) ** (total - 59), size * (2**scale + 1) * Fraction(2) ** -(e + f)
    lower, upper = min(end for end, _ in ends) * unit - error, max(end for _, end in ends) * unit + error
    return tuple(RATIONAL.array([lower, upper]))


def _exponent(array: Numbers) -> int:
    """e such that every entry is below 2^e in absolute value."""
    largest = max((abs(value) for value in RATIONAL.fractions(array)), default=Fraction(0))
    return largest.numerator.bit_length() - largest.denominator.bit_length() + 1


def whole_multiples(array: Numbers, bits: int, more: Fraction = Fraction(0)) -> Numbers:
    """The numbers in units of 2^−bits, and so much `more`, rounded down, as Python's integers."""
    unit = Fraction(2) ** bits
    whole = np.empty(array.size, dtype=object)
    whole[:] = [floor(value * unit + more) for value in RATIONAL.fractions(array)]
    return whole.reshape(array.shape)


def _shifted(table: Indices, bits: int) -> Indices:
    """The numbers divided by 2^bits, rounded down."""
    return table >> bits if bits >= 0 else table << -bits


Side = tuple[Space, CertifiedProblem, Claim]
"""What a policy's chain is made of."""


class CoupledCheck:
    """The links of one proof about a claim, whose vectors bound the value.

    Models are of the value after `steps` steps, which are then made here. Where steps are bounded, that value
    is known everywhere; otherwise where the vectors meet. Where there are two `sides`, states of the second
    are numbered behind those of the first (`tightrope_check.difference`).
    """

    def __init__(self, link: Learned, hints: CoupledHints, sides: Sequence[int] = ()):
        """`sides`: the claims whose policies it is about, where not one."""
        problem, claims = link.problem, link.certificate.claims
        objective, states = problem.objective, problem.graph.states
        if link.hints.region is None:
            raise ValueError("a coupled proof without a region")
        if objective.earned is not None or problem.denominator is not None:
            raise ValueError("a coupled proof about rewards with parameters, or quotients")
        self.hints, self.objective, self.graph, self.n = hints, objective, problem.graph, link.n
        self.claim, order = claims[hints.claim], sides or [hints.claim]
        self.sides: list[Side] = [(link.space, problem, claims[number]) for number in order]
        self.signs = [1, -1][: len(order)]
        self.initial = [side * states + problem.graph.initial for side in range(len(order))]
        self.cells = Cells(hints, link.projection.writer, link.projection.box)
        if hints.point.shape[1] != link.space.size or hints.state.max(initial=0) >= len(order) * states:
            raise ValueError("a coupled proof does not fit the coordinates or the states")
        by_steps = objective.steps is not None
        if len(hints.value) != (0 if by_steps else len(hints.node)):
            raise ValueError("models do not fit the proofs")
        self.steps = (objective.steps or 0) if by_steps else objective.lower_steps
        self.state = hints.state[:0] if by_steps else hints.state
        finite, decided, value = [], [], []
        reached = np.zeros(states) if objective.target is None else objective.target.astype(np.float64)
        for number, sign in zip(order, self.signs, strict=True):
            vectors = link.certificate.values[number]
            lower, upper = (reached, reached) if by_steps else (vectors.lower, vectors.upper)
            if lower is None or upper is None:
                raise ValueError("a coupled proof about a claim without vectors")
            finite.append(np.isfinite(upper))
            decided.append((lower == upper) & finite[-1])
            value.append(sign * np.where(decided[-1], lower, 0.0))
        self.finite, self.decided, self.value = map(np.concatenate, (finite, decided, value))
        # Without steps to be made, models are of the states met alone: left, entered or begun in.
        self.walk, self.met = self.chain(self.n, self.state), np.arange(len(self.decided))
        if not self.steps:
            self.met = np.unique(np.concatenate([self.initial, self.state, self.walk.successor]))
        self._walks = {(self.n, False): self.among_met(self.walk)}

    def among_met(self, walk: PolicyChain) -> PolicyChain:
        """The chain, its states being numbered among those met."""
        state, successor = (np.searchsorted(self.met, some) for some in (walk.state, walk.successor))
        return replace(walk, state=state, successor=successor)

    def chain(self, n: Arithmetic, states: OffsetArray, sides: Sequence[Side] | None = None) -> PolicyChain:
        """The policy's chain from these states; `sides` where it is not what it is at last."""
        return PolicyChain.of(n, *(sides or self.sides)[0], states)

    def walks(
        self, n: Arithmetic, walk: PolicyChain, shape: tuple[FloatArray, FloatArray, FloatArray]
    ) -> Iterator[tuple[int, PolicyChain, Ball]]:
        """For every step, the last one first, the chain of what is done there, over all states."""
        from tightrope_check.special import choices_by_step

        ball, sides = Ball.of(walk, *shape), self.sides
        for steps in zip(*(choices_by_step(claim, self.steps) for _, _, claim in sides), strict=True):
            if any(choice is not None for _, choice in steps):
                sides = [
                    (space, problem, claim if choice is None else replace(claim, choice=choice))
                    for (space, problem, claim), (_, choice) in zip(sides, steps, strict=True)
                ]
                spend("models of the value", 200 * self.graph.transitions, 320 if n.exact else 0)
                walk = self.chain(n, walk.state, sides)
                ball = Ball.of(walk, *shape)
            yield steps[0][0], walk, ball

    def checks(self, ends: ValueEnds) -> tuple[list[Check], ValueEnds]:
        """All checks in order, and the bounds that follow beside those `ends` of the vectors."""
        closed = self.closed()
        own: dict[int, ValueEnds] = {}
        trouble, count = None, len(self.hints.node) if closed.passed else 0
        for proof in range(count):
            proved = self.own_ends(proof)
            if isinstance(proved, str):
                trouble = trouble or f"cell {int(self.hints.node[proof])}: {proved}"
            else:
                own[int(self.hints.node[proof])] = proved
        words = f"{len(own)} cells, {len(self.hints.point)} points, {len(self.state)} open states"
        name = "coupled: every cell's model encloses the value"
        low, high = self.tree_ends(own, ends)
        for proof in range(count) if trouble is None and not self.n.exact else ():
            node = int(self.hints.node[proof])
            if (low < self.wanted[0] and own[node][0] < self.wanted[0]) or (
                high > self.wanted[1] and own[node][1] > self.wanted[1]
            ):  # rounding may have cost it
                own[node] = self.ends(RATIONAL, proof) or own[node]
        return [closed, Check(name, trouble is None, trouble or words)], self.tree_ends(own, ends)

    @property
    def wanted(self) -> ValueEnds:
        """What is claimed of the value, before `complement`."""
        low, high = (Fraction(end) if isfinite(end) else end for end in (self.claim.lower, self.claim.upper))
        return (1 - high, 1 - low) if self.objective.complement and len(self.sides) == 1 else (low, high)

    def closed(self) -> Check:
        """From open states, which are off the boundary and of finite value, to open or decided states."""
        known, opened = self.decided.copy(), np.zeros(len(self.decided), dtype=np.bool_)
        known[self.state] = opened[self.state] = True
        boundary = self.objective.boundary(self.graph.states)[0]
        wrong = opened & (np.tile(boundary, len(self.initial)) | ~self.finite)
        wrong[self.state] |= np.logical_or.reduceat(~known[self.walk.successor], self.walk.start[:-1])
        return Check.everywhere("coupled: open states lead to open or decided ones", wrong, "state")

    def own_ends(self, proof: int) -> ValueEnds | str:
        """What a proof says of its cell, or why it says nothing."""
        hints, (points, simplices) = self.hints, self.hints.points_of(proof)
        if len(points) == 0:
            return (inf, -inf) if self.cells.is_empty(proof) else "the cell is not shown to be empty"
        rows, shape = self.cells.rows(int(hints.node[proof]), hints.rows_of(proof)), self.shape(proof)
        if trouble := hull_misfit(self.n, rows, simplices, *shape):
            return trouble
        model, _ = self.model(proof)

        def encloses(n: Arithmetic, which: OffsetArray) -> BoolArray:
            whole = n is self.n and len(which) == len(self.state)
            walk = self._walks[n, False] if whole else self.among_met(self.chain(n, self.state[which]))
            try:
                return ~model_misfit(walk, Ball.of(walk, *shape), model)
            except OutOfRange:
                return np.zeros(len(which), dtype=np.bool_)

        wrong = unproved(self.n, len(self.state), encloses)
        if len(wrong):
            state = int(self.state[wrong[0]])
            return f"the error is too small at {len(wrong)} states, first at state {state}"
        if self.steps and max(hints.lower_dual[proof], hints.upper_dual[proof]) >= 0:
            return "occupancies require unbounded values"
        try:
            return self.ends(self.n, proof) or "nothing is known of the initial state"
        except OutOfRange:
            return self.ends(RATIONAL, proof) or "nothing is known of the initial state"

    def shape(self, proof: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.hints.points_of(proof)[0], self.hints.centre[proof], self.hints.axes[proof]

    def model(self, proof: int) -> tuple[ValueModel, BoolArray]:
        """What the file says of the value after all steps, and where it says something, at states met."""
        model = ValueModel.constant(self.value[self.met], self.hints.point.shape[1])
        known = self.decided[self.met]
        if len(self.state):
            own = np.searchsorted(self.met, self.state)
            known[own] = True
            model.coefficient[own] = self.hints.coefficients_of(proof)
            model.error[own] = self.hints.error[proof]
        return model, known

    def ends(self, n: Arithmetic, proof: int) -> ValueEnds | None:
        """Bounds of the value at the initial state over a cell whose model encloses it, where it is known."""
        hints, shape = self.hints, self.shape(proof)
        initial = np.searchsorted(self.met, self.initial).tolist()
        if (n, self.steps > 0) not in self._walks:
            walk = self.chain(n, self.met if self.steps else self.state)
            self._walks[n, self.steps > 0] = self.among_met(walk)
        walk, (model, known) = self._walks[n, self.steps > 0], self.model(proof)
        ball = Ball.of(walk, *shape)
        if self.steps:
            steps = self.walks(n, walk, shape)
            model, known = take_steps(self.objective, steps, model, known, self.signs)
        if not known[initial].all():
            return None
        low, high = polynomial_ends(ball, model, initial, shape[0])
        duals = int(hints.lower_dual[proof]), int(hints.upper_dual[proof])
        if duals[0] >= 0:
            low = max(low, occupancy_ends(walk, ball, model, initial, shape[0], hints.dual[duals[0]])[0])
        if duals[1] >= 0:
            high = min(high, occupancy_ends(walk, ball, model, initial, shape[0], hints.dual[duals[1]])[1])
        return low, high

    def tree_ends(self, own: dict[int, ValueEnds], ends: ValueEnds) -> ValueEnds:
        """The bounds at the root from those of single nodes, and from the vectors."""
        count = len(self.hints.split_node)
        known = [own.get(node, (-inf, inf)) for node in range(2 * count + 1)]
        for split in range(count - 1, -1, -1):  # children have larger numbers than the node they come from
            node = int(self.hints.split_node[split])
            below, above = known[2 * split + 1], known[2 * split + 2]
            low, high = min(below[0], above[0]), max(below[1], above[1])
            known[node] = max(known[node][0], low), min(known[node][1], high)
        return max(known[0][0], ends[0]), min(known[0][1], ends[1])


def coupled_ends(
    link: Learned, number: int, ends: ValueEnds, kind: type[CoupledCheck] = CoupledCheck
) -> tuple[list[Check], ValueEnds]:
    """Coupled proofs about claim `number`, of which `ends` are proved, and what follows."""
    checks: list[Check] = []
    for hints in link.hints.coupled:
        if hints.claim == number:
            proofs, ends = kind(link, hints).checks(ends)
            checks += proofs
    return checks, ends
