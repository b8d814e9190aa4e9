"""`bound_coupled_value`: the certified range of a policy's value over a region, one parameter vector per run.

For a fixed policy the value is a smooth function of few coordinates. It is enclosed by the rectangular bound,
Taylor models and vertex certificates (docs/proofs/values.md), with branch and bound over cells: a cell has
the better of its own bound and its parent's, the region the worst of all leaves. Numerical failure costs
width only. Instantiations show how much of a bound is attained; soundness does not use them.

An affine reward r(x) is an entry with expression r to a row fixed at 1, outside the matrix whose inverse must
be nonnegative.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.coupled.cells import MOST_BOX_DIMENSIONS, Frame, Region, Shape, Split
from tightrope.coupled.chain import Chain, chain_of
from tightrope.coupled.result import (
    EXACT_SHARE,
    LEAST_EXCESS,
    Cell,
    CoupledStatus,
    CoupledValue,
    Witness,
    extent_of,
    range_over_hull,
    vertex_proof,
)
from tightrope.coupled.taylor import TaylorModel, expand, order_for
from tightrope.errors import InputError
from tightrope.model.mdp import MDP
from tightrope.model.objective import Direction, Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.rounding import down, up
from tightrope.regions.costs import reward_ends
from tightrope.regions.polytope import Polytope
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.solution import Solution
from tightrope.solver.solve import operator_of, solve
from tightrope.statistics.coordinates import AffineFunctions, Coordinates

DEFAULT_GAP = 0.02
_EXACT_CELLS = 40
_EXACT_CELLS_REDUCED = 4
_EXACT_ENTRIES = 4_000_000
"""Once within the gap, so many more cells are spent on showing that it is none: fewer in large chains and
where cells are costly for their many vertices.
"""


@dataclass(frozen=True)
class CoupledLimits:
    """When to stop splitting; `wanted` are the ends that are to be close. What is returned is certified."""

    seconds: float = float("inf")
    cells: int = 2000
    wanted: tuple[bool, bool] = (True, True)


def bound_coupled_value(
    sets: Sets,
    objective: Objective,
    policy: PolicyGiven,
    *,
    gap: float = DEFAULT_GAP,
    limits: CoupledLimits | None = None,
    rectangular: tuple[Solution, Solution] | None = None,
    precision: float = 1e-9,
) -> CoupledValue:
    """The certified interval of a policy over the region of rectangular `sets`.

    * `policy`: a `Policy` that does not depend on the step, or what one can be made of.
    * `gap`: the search ends when the interval exceeds the range of the instantiations found by no more
      than this share of its width.
    * `rectangular`: solutions of the same policy over `sets`, first with nature making the reported value
      small, then large, where they are at hand.
    """
    begin = time.perf_counter()
    limits = limits or CoupledLimits()
    fixed = Policy(sets.model, policy)
    polytope = require_region(sets)
    if not 0 < gap < 1:
        raise InputError(f"the gap is {gap}, not within (0, 1)")
    low, high = rectangular or rectangular_solutions(sets, objective, fixed, precision)
    initial = sets.model.initial
    functions = functions_of(polytope.coordinates, sets.model, objective)
    rectangular_ends = float(low.lower[initial]), float(high.upper[initial])
    blank = CoupledValue(objective, fixed, *rectangular_ends, *rectangular_ends, functions)
    chain = chain_of(sets.model, objective, fixed)
    if isinstance(chain, str):
        return replace(blank, reason=chain, seconds=time.perf_counter() - begin)
    if objective.complement:
        low, high = high, low
    ends = float(low.fixpoint_lower[initial]), float(high.fixpoint_upper[initial])

    at = partial(solve_at, sets.model, objective, functions, fixed, precision)
    return enclose(replace(blank, chain=chain), polytope, ends, gap, limits, begin, objective.complement, at)


def enclose(
    blank: CoupledValue,
    polytope: Polytope,
    ends: tuple[float, float],
    gap: float,
    limits: CoupledLimits,
    begin: float,
    complement: bool,
    at: Callable[[FloatArray], Solution] | None = None,
) -> CoupledValue:
    """The result for the chain of `blank` with a value between `ends`; `complement`: 1 − it is reported.
    `at` solves it at corners of the region, where a play may never end."""
    chain, functions = blank.chain, blank.functions
    assert chain is not None
    deadline = begin + limits.seconds
    region = Region.of(polytope, deadline)
    search = CoupledSearch(chain, functions, region)
    tree = Tree(chain, functions, region, search, *ends, wanted=limits.wanted)
    if search.home is not None:
        search.evaluate(search.home)
    stopped: CoupledStatus | None = None
    if polytope.coordinates.size and not (chain.fixed[chain.initial] and not chain.phases):
        tree.grow_root()
        if at is not None and polytope.vertices is not None and not tree.nodes[0].has_model:
            search.visit(polytope.vertices, at)
        stopped = tree.refine(gap, deadline, limits.cells)
        if stopped is None and all(limits.wanted):
            most = _EXACT_CELLS_REDUCED if tree.shapes[0].reduced else _EXACT_CELLS
            more = min(most, _EXACT_ENTRIES // max(len(chain.weight), 1))
            tree.refine(0.0, deadline, min(limits.cells, len(tree.nodes) + more))
    report = _report(blank, tree, stopped, polytope, complement)
    return replace(report, seconds=time.perf_counter() - begin)


def require_region(sets: Sets) -> Polytope:
    """The region of the sets, if it is one that the coupled set can be computed over."""
    if sets.kind is not SetsKind.RECTANGULAR or not isinstance(sets.region, Polytope):
        shape = sets.kind.value if sets.region is None else f"the region {sets.region.kind.value}"
        raise InputError(
            f"the coupled set needs a region bounded by half-spaces, not {shape}",
            hint="use the region polytope, l1 or likelihood",
        )
    return sets.region


def rectangular_solutions(
    sets: Sets, objective: Objective, policy: Policy, precision: float, kernel: BellmanOperator | None = None
) -> tuple[Solution, Solution]:
    """Nature making the reported value small, and large; mixtures over the expression sets."""
    kernel = operator_of(sets) if kernel is None else kernel
    mixes = not policy.is_deterministic and not objective.is_bounded
    if mixes and not isinstance(kernel, IntervalOperator):
        kernel = IntervalOperator.of(sets.interval_model())
    natures = (Direction.MIN, Direction.MAX)
    if objective.complement:
        natures = (Direction.MAX, Direction.MIN)
    first, second = (
        solve(kernel, against(objective, sets, nature), policy=policy, precision=precision, threads=1)
        for nature in natures
    )
    return first, second


def _report(
    blank: CoupledValue, tree: Tree, stopped: CoupledStatus | None, polytope: Polytope, complement: bool
) -> CoupledValue:
    """The result of a search, in reported terms."""
    lower, upper = tree.lower, tree.upper
    low_off, high_off = tree.low_excess(lower), tree.high_excess(upper)
    width = upper - lower if upper > lower else 0.0
    status = CoupledStatus.CERTIFIED if stopped is None else stopped
    if tree.attains(lower, upper):
        status = CoupledStatus.EXACT
    lost_nothing = tree.attains(tree.floor, tree.ceiling)
    off = min(low_off + high_off, width)
    limit = EXACT_SHARE if status is CoupledStatus.EXACT else 1.0
    lowest, highest = tree.search.lowest, tree.search.highest
    if complement:
        lower, upper = max(down(1.0 - upper), 0.0), min(up(1.0 - lower), 1.0)
        lowest, highest = _mirror(highest), _mirror(lowest)
    reason = _why(tree, polytope) if status is CoupledStatus.RECTANGULAR else ""
    return replace(
        blank,
        lower=max(lower, blank.rectangular_lower),
        upper=min(upper, blank.rectangular_upper),
        lowest=lowest,
        highest=highest,
        status=status,
        reason=reason,
        gap=min(off / width, limit) if 0 < width < np.inf else limit * (off > 0),
        rectangular_lost_nothing=lost_nothing,
        cells=() if lost_nothing or status is CoupledStatus.RECTANGULAR else tuple(tree.nodes),
    )


def _why(tree: Tree, polytope: Polytope) -> str:
    """Why no cell has a model."""
    size = polytope.coordinates.size
    if size > MOST_BOX_DIMENSIONS:
        return (
            f"the region has {size} coordinates (products of parameters count), more than the "
            f"{MOST_BOX_DIMENSIONS} in which cells can be enclosed"
        )
    if all(node.frame is None for node in tree.nodes):
        return "the region is too flat, or has too many vertices, to be enclosed in float64"
    return (
        "no error bound could be verified on any cell: for some parameters of the region a play may go on "
        "forever"
    )


def _mirror(witness: Witness | None) -> Witness | None:
    if witness is None:
        return None
    return replace(witness, lower=down(1.0 - witness.upper), upper=up(1.0 - witness.lower))


def functions_of(coordinates: Coordinates, model: ParametricMDP, objective: Objective) -> AffineFunctions:
    """The expressions of the model as functions of the coordinates, and after them those of the rewards."""
    own, reward = coordinates.functions(model.expressions), objective.reward
    if not isinstance(reward, ParametricReward):
        return own
    index, earned = coordinates.affine_among(reward.expressions)
    wanted = np.unique(reward.expression)
    missing = np.setdiff1d(wanted, index)
    if len(missing):
        text = reward.expressions.text(int(missing[0]))
        raise InputError(
            f"the reward {text} has a product of parameters that occurs in no probability, so coupled sets "
            "cannot be used",
            hint="write the product as one parameter, or use rectangular sets",
        )
    place = np.zeros(len(reward.expressions), dtype=np.int64)
    place[index] = np.arange(len(index))
    earned = earned.take(place)
    return AffineFunctions(
        np.concatenate([own.linear, earned.linear]),
        np.concatenate([own.constant, earned.constant]),
        np.concatenate([own.slack, earned.slack]),
    )


def against(objective: Objective, sets: Sets, nature: Direction) -> Objective:
    """The objective with nature's direction, and rewards with parameters at their end for it."""
    reward = objective.reward
    if isinstance(reward, ParametricReward):
        least, most = reward_ends(reward, sets.model, sets.over)
        reward = least if nature is Direction.MIN else most
    return replace(objective, nature=nature, reward=reward)


def solve_at(
    model: ParametricMDP,
    objective: Objective,
    functions: AffineFunctions,
    policy: Policy | None,
    precision: float,
    x: FloatArray,
) -> Solution:
    """The solution at coordinates x; `policy` None: the optimal one."""
    values = functions.at(x)
    plain = MDP(model.structure, np.clip(values, 0.0, 1.0)[model.expression])
    return solve(plain, rewards_at(objective, values, model), policy=policy, precision=precision)


def rewards_at(objective: Objective, values: FloatArray, model: ParametricMDP) -> Objective:
    """The objective where the functions of `functions_of` have these values."""
    if not isinstance(objective.reward, ParametricReward):
        return objective
    earned = values[len(model.expressions) :][objective.reward.expression]
    return replace(objective, reward=RewardStructure(choice=earned))


_WITHOUT_MODEL = 64
"""So many cells without a single model end the search."""

_FAILURES = 16
"""Cells are not split within so many without a model, each within the next."""


@dataclass(eq=False)
class Tree:
    """The search: nodes, the best instantiations, and what is certified so far (before `complement`)."""

    chain: Chain
    functions: AffineFunctions
    region: Region
    search: CoupledSearch
    floor: float
    ceiling: float
    nodes: list[Cell] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    wanted: tuple[bool, bool] = (True, True)

    def grow_root(self) -> None:
        """The region as one cell."""
        shape = self.region.whole
        if shape.frame is None:
            shape = self.region.root_along(self._leading())
        self._add(Cell(-1, None, self.floor, self.ceiling, shape.frame, shape.emptiness), shape)

    def _add(self, node: Cell, shape: Shape) -> None:
        self.nodes.append(node)
        self.shapes.append(shape)
        self._bound(node, shape)

    def refine(self, gap: float, deadline: float, most: int) -> CoupledStatus | None:
        """Split until at most the share `gap` lacks an instantiation (0: both ends attained), or why not."""
        while not self.is_within(gap):
            worst = self._worst()
            final = worst is None or len(self.nodes) > _WITHOUT_MODEL
            if final and not any(node.has_model for node in self.nodes):
                return CoupledStatus.RECTANGULAR
            if worst is None:
                return CoupledStatus.PRECISION_LIMIT
            if len(self.nodes) + 2 > most:
                return CoupledStatus.CELL_LIMIT
            if time.perf_counter() > deadline:
                return CoupledStatus.TIME_LIMIT
            self._split(worst)
        return None

    def is_within(self, gap: float) -> bool:
        lower, upper = self.lower, self.upper
        low = self.low_excess(lower) if self.wanted[0] else 0.0
        high = self.high_excess(upper) if self.wanted[1] else 0.0
        return self.attains(lower, upper) or low + high <= gap * extent_of(lower, upper) < np.inf

    def attains(self, lower: float, upper: float) -> bool:
        """Whether instantiations attain both ends of an interval."""
        chain = self.chain
        unit = float(max(np.abs(chain.value).max(), np.abs(chain.reward).max()))
        if chain.start is not None:
            unit = max(unit, float(np.abs(chain.start).max()))
        excess = max(self.low_excess(lower), self.high_excess(upper))
        return excess <= max(EXACT_SHARE * extent_of(lower, upper), 1e-13 * unit, LEAST_EXCESS)

    @property
    def lower(self) -> float:
        return max(self.floor, min((node.lower for node in self._leaves()), default=-np.inf))

    @property
    def upper(self) -> float:
        return min(self.ceiling, max((node.upper for node in self._leaves()), default=np.inf))

    def low_excess(self, bound: float) -> float:
        """How far a lower bound is from the lowest instantiation."""
        lowest = self.search.lowest
        return np.inf if lowest is None else max(lowest.upper - bound, 0.0)

    def high_excess(self, bound: float) -> float:
        highest = self.search.highest
        return np.inf if highest is None else bound - highest.lower if bound > highest.lower else 0.0

    def _leaves(self) -> list[Cell]:
        return [node for node in self.nodes if node.children is None]

    def _worst(self) -> int | None:
        """The leaf to be split next, if there is one: an end is final where its leaf cannot be split."""
        leaves = [(number, node) for number, node in enumerate(self.nodes) if node.children is None]
        low = ((self.low_excess(max(node.lower, self.floor)), number, node) for number, node in leaves)
        high = ((self.high_excess(min(node.upper, self.ceiling)), number, node) for number, node in leaves)
        worst, most = None, 0.0
        for wanted, cells in zip(self.wanted, (low, high), strict=True):
            excess, number, node = max(cells, key=lambda each: (each[0], each[2].direction is None))
            if wanted and node.direction is not None and excess > most:
                worst, most = number, excess
        return worst

    def _split(self, number: int) -> None:
        node = self.nodes[number]
        assert node.direction is not None
        first = len(self.nodes)
        leading = self._leading() if node.leading is None else node.leading
        for side in (1.0, -1.0):
            split = Split(node.direction.normal, node.direction.offset, side)
            shape = self.region.child(self.shapes[number], split, leading)
            failures = 0 if node.has_model else node.failures + 1
            ends = node.lower, node.upper
            self._add(Cell(number, split, *ends, shape.frame, shape.emptiness, failures), shape)
        node.children = (first, first + 1)

    def _bound(self, node: Cell, shape: Shape) -> None:
        """Everything a cell's own model says: bounds, instantiations, where to split."""
        if node.emptiness is not None:
            node.lower, node.upper = np.inf, -np.inf
            return
        frame = node.frame
        if frame is None:
            return
        order = order_for(self.chain, frame.axes)
        model = expand(self.chain, self.functions, frame.centre, frame.axes, frame.radius, order)
        if model is None:
            if node.failures < _FAILURES:
                node.direction = self._plane(shape, np.eye(len(frame.centre))[0], None)
            return
        node.has_model = True
        row = self.chain.initial
        constant, slope, curvature = model.at(row)
        low, high = range_over_hull(constant, slope, curvature, frame.points)
        node.own_lower = down(low - float(model.error[row]))
        node.own_upper = up(high + float(model.error[row]))
        self.search.look(frame, model)
        self._prove_vertices(node, frame, model)
        node.lower, node.upper = max(node.lower, node.own_lower), min(node.upper, node.own_upper)
        bend = self._bend(model)
        node.direction = self._plane(shape, bend, slope)
        node.leading = np.stack([slope, bend]) @ np.linalg.inv(frame.axes)

    def _leading(self) -> FloatArray:
        """The direction in x in which the value moves most, at the region's inner point."""
        half = 0.01 * np.maximum(self.region.upper - self.region.lower, 1e-200)
        model = expand(self.chain, self.functions, self.region.interior, np.diag(half), 1.0, order=1)
        if model is None:
            return np.zeros((0, len(half)))
        row = self.chain.initial
        directions: FloatArray = model.slope[row][None, :] / half
        return directions

    def _prove_vertices(self, node: Cell, frame: Frame, model: TaylorModel) -> None:
        """Vertex proofs where an end is not yet attained to within rounding."""
        if self.chain.phases:
            return
        low, high = max(node.lower, node.own_lower), min(node.upper, node.own_upper)
        small = 1e-9 * max(high - low, 0.0)
        if self.low_excess(low) > small:
            node.low_vertex = vertex_proof(self.chain, self.functions, frame, model, upper=False)
            if node.low_vertex is not None:
                node.own_lower = max(node.own_lower, node.low_vertex.bound)
        if self.high_excess(high) > small:
            node.high_vertex = vertex_proof(self.chain, self.functions, frame, model, upper=True)
            if node.high_vertex is not None:
                node.own_upper = min(node.own_upper, node.high_vertex.bound)

    def _bend(self, model: TaylorModel) -> FloatArray:
        """The direction in y of the largest curvature, or the slope where the curvature is not known."""
        _, slope, curvature = model.at(self.chain.initial)
        if model.order < 2:
            return slope / max(float(np.linalg.norm(slope)), 1e-300)
        value, vector = np.linalg.eigh(curvature)
        return vector[:, int(np.abs(value).argmax())]

    def _plane(self, shape: Shape, direction: FloatArray, slope: FloatArray | None) -> Split | None:
        """The plane through the centre across a direction; across a free parameter where lifted."""
        frame = shape.frame
        assert frame is not None
        inverse = np.linalg.inv(frame.axes)
        if not self.region.is_lifted:
            normal = inverse.T @ direction
            normal = normal / float(np.abs(normal).max())
            return Split(normal, float(normal @ frame.centre), 1.0)
        span = shape.upper - shape.lower
        free = self.region.free
        products = self.region.coordinates.products
        first = len(span) - len(products)
        bend = np.abs(inverse.T @ direction)
        score = bend[:free] * span[:free]
        if slope is not None:
            steep = np.abs(inverse.T @ slope)
            score = 1e-3 * float(np.linalg.norm(slope)) * score / max(float(score.max()), 1e-300)
            for j, (left, right) in enumerate(products):
                relaxed = steep[first + j] * span[left] * span[right]
                for factor in (left, right):
                    for at in self._factors(factor):
                        score[at] += relaxed
        at = int(score.argmax())
        if not span[at] > 0.0:
            return None
        normal = np.zeros(len(span))
        normal[at] = 1.0
        return Split(normal, float(0.5 * (shape.lower[at] + shape.upper[at])), 1.0)

    def _factors(self, coordinate: int) -> list[int]:
        """The free parameters that a coordinate is made of."""
        coordinates = self.region.coordinates
        first = coordinates.size - len(coordinates.products)
        if coordinate < self.region.free:
            return [coordinate]
        if coordinate < first:
            return list(coordinates.denominators[coordinate - self.region.free].variables)
        left, right = coordinates.products[coordinate - first]
        return [*self._factors(left), *self._factors(right)]


_TOLERANCE = 1e-9
_WITHIN = 1.0 - 1e-10
_HALVINGS = 30
_DRAWN = 4000
_CLIMB = 40
_CONSIDERED = 64
_STEPS = (0.1, 0.1, 0.03, 0.03, 0.01, 0.01, 0.003, 0.003, 0.001, 0.001)

Quadratic = tuple[float, FloatArray, FloatArray]
"""(constant, slope, curvature)."""


class CoupledSearch:
    """Keeps the points of the true set with the lowest and highest values so far, before `complement`."""

    def __init__(self, chain: Chain, functions: AffineFunctions, region: Region):
        self.chain, self.functions, self.region = chain, functions, region
        self.lowest: Witness | None = None
        self.highest: Witness | None = None
        self._allowed = region.bound + _TOLERANCE * np.abs(region.matrix) @ np.maximum(
            region.upper - region.lower, 1e-300
        )
        self.home = self._start()

    def evaluate(self, x: FloatArray) -> None:
        """The value at x, if it can be enclosed, kept where it is the best."""
        model = expand(self.chain, self.functions, x, np.zeros((len(x), 0)), 0.0, order=0)
        if model is None:
            return
        value, error = float(model.constant[self.chain.initial]), float(model.error[self.chain.initial])
        self._keep(x, value - error, value + error)

    def _keep(self, x: FloatArray, lower: float, upper: float) -> None:
        point = Witness(self.region.coordinates.parameters_at(x[None, :])[0], x, lower, upper)
        if self.lowest is None or point.upper < self.lowest.upper:
            self.lowest = point
        if self.highest is None or point.lower > self.highest.lower:
            self.highest = point

    def visit(self, corners: FloatArray, at: Callable[[FloatArray], Solution]) -> None:
        """Take the values at corners of the region into account."""
        inside = np.clip(corners[:_CONSIDERED], self.region.lower, self.region.upper)
        x, initial = self._lift(inside[:, : self.region.free]), self.chain.state[self.chain.initial]
        for corner in x[self._holds(x)]:
            solution = at(corner)
            self._keep(corner, solution.fixpoint_lower[initial], solution.fixpoint_upper[initial])

    def look(self, frame: Frame, model: TaylorModel) -> None:
        """Evaluate where the model of a cell promises something lower or higher than what is known."""
        if self.home is None:
            return
        quadratic = model.at(self.chain.initial)
        for sign in (1.0, -1.0):
            x, promised = self._promising(frame, quadratic, sign)
            known = self.lowest if sign > 0 else self.highest
            if known is None or sign * promised < sign * (known.upper if sign > 0 else known.lower):
                self.evaluate(x)

    def _promising(self, frame: Frame, quadratic: Quadratic, sign: float) -> tuple[FloatArray, float]:
        """A point of the true set where the cell's model is low (sign +1) or high, and the model's value
        there.

        The lowest point of the hull if it belongs to the true set; else the best between the inner point and
        the lowest points of the hull, improved by shrinking random steps.
        """
        _, slope, curvature = quadratic
        values = sign * _values(quadratic, frame.points)
        low = _descend(sign * slope, sign * curvature, frame.points, int(values.argmin()))
        aim = self._between(frame.to_x(low[None, :]), np.array([_WITHIN]))
        if self._holds(aim)[0]:
            return aim[0], float(_values(quadratic, low[None, :])[0])
        chosen = np.argsort(values)[:_CONSIDERED]
        x = self._nearest(frame.to_x(np.vstack([low, frame.points[chosen]])))
        inverse = np.linalg.inv(frame.axes).T
        values = sign * _values(quadratic, (x - frame.centre) @ inverse)
        best, least = x[int(values.argmin())], float(values.min())
        draw = np.random.default_rng(29)
        free = self.region.free
        span = self.region.upper[:free] - self.region.lower[:free]
        for shrink in _STEPS:
            theta = best[:free] + shrink * span * draw.standard_normal((_CONSIDERED, free))
            trial = self._lift(theta)
            trial = trial[self._holds(trial)]
            values = sign * _values(quadratic, (trial - frame.centre) @ inverse)
            if len(values) and float(values.min()) < least:
                best, least = trial[int(values.argmin())], float(values.min())
        return best, sign * least

    def _between(self, x: FloatArray, share: FloatArray) -> FloatArray:
        """Points of the true set (but for its rows) that lie a share of the way from the inside to x."""
        assert self.home is not None
        free = self.region.free
        home = self.home[:free]
        return self._lift(home + share[:, None] * (x[:, :free] - home))

    def _nearest(self, x: FloatArray) -> FloatArray:
        """The points of the true set nearest to x on the way from the inside, by bisection."""
        low, high = np.zeros(len(x)), np.full(len(x), _WITHIN)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            holds = self._holds(self._between(x, middle))
            low, high = np.where(holds, middle, low), np.where(holds, high, middle)
        return self._between(x, low)

    def _lift(self, theta: FloatArray) -> FloatArray:
        return self.region.coordinates.lift_free(theta)

    def _holds(self, x: FloatArray) -> BoolArray:
        result: BoolArray = np.all(x @ self.region.matrix.T <= self._allowed, axis=1)
        return result

    def _start(self) -> FloatArray | None:
        """A point of the true set well inside: the region's own, or the best of many drawn ones."""
        region, free = self.region, self.region.free
        if free == 0:
            return region.interior
        own = self._lift(region.interior[None, :free])
        if not region.is_lifted or self._holds(own)[0]:
            home: FloatArray = own[0]
            return home
        draw = np.random.default_rng(17)
        span = region.upper[:free] - region.lower[:free]
        for shrink in (1.0, 0.3, 0.1):
            x = self._lift(own[:, :free] + shrink * span * (draw.random((_DRAWN, free)) - 0.5))
            slack = ((region.bound - x @ region.matrix.T) / np.abs(region.matrix).sum(axis=1)).min(axis=1)
            if float(slack.max()) > 0.0:
                result: FloatArray = x[int(slack.argmax())]
                return result
        return None


def _values(quadratic: Quadratic, y: FloatArray) -> FloatArray:
    constant, slope, curvature = quadratic
    result: FloatArray = constant + y @ slope + np.einsum("ki,ij,kj->k", y, curvature, y)
    return result


def _descend(slope: FloatArray, curvature: FloatArray, points: FloatArray, start: int) -> FloatArray:
    """A low point of the quadratic over the hull: Frank–Wolfe steps from the lowest vertex."""
    y: FloatArray = points[start].copy()
    for _ in range(_CLIMB):
        gradient = slope + 2.0 * curvature @ y
        step = points[int((points @ gradient).argmin())] - y
        down = float(gradient @ step)
        if down >= -1e-15 * (1.0 + abs(float(slope @ y))):
            break
        bend = float(step @ curvature @ step)
        length = 1.0 if bend <= 0.0 else min(1.0, -down / (2.0 * bend))
        y += length * step
    return y
