"""`bound_coupled_value`: the certified range of a policy's value over a region, with one
parameter vector for the whole run.

The true system uses the same parameters everywhere. Rectangular sets let nature pick other ones at every
choice; the coupled set P_U does not. For a fixed policy the value is a smooth function of few coordinates and
is enclosed over the whole region (METHODS §5b):

    rectangular bound  ∩  Taylor models  ∩  vertex certificates,   branch and bound until the rest is small

The result is never wider than the rectangular interval, and comes with the instantiations that show how much
of it is real.

*Rewards with parameters*: one x for probabilities and rewards. A reward r(x) that is affine in the
coordinates is an entry of its row like a transition's, with the expression r, to one more row whose value is
fixed at 1 (`tightrope.coupled.chain`): V(s) = r(x)·1 + Σ weight·f(x)·V(successor). Nothing in the proofs of
`tightrope.coupled.taylor` and `tightrope.coupled.vertex_proof` asks entries that lead to fixed rows to be
probabilities: these rows are not part of the matrix whose inverse must not be negative, and their error is 0.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.coupled.branch import Point, Search, Tree
from tightrope.coupled.cells import MOST_BOX_DIMENSIONS, Region
from tightrope.coupled.chain import chain_of
from tightrope.coupled.result import EXACT_SHARE, Cell, CoupledStatus, CoupledValue, Witness
from tightrope.errors import InputError
from tightrope.model.objective import Direction, Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.numerics.arrays import FloatArray
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
    """When to stop splitting. What is returned then is still certified, and the status says so."""

    seconds: float = float("inf")
    cells: int = 2000


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
    blank = CoupledValue(
        objective=objective,
        policy=fixed,
        lower=float(low.lower[initial]),
        upper=float(high.upper[initial]),
        rectangular_lower=float(low.lower[initial]),
        rectangular_upper=float(high.upper[initial]),
        lowest=None,
        highest=None,
        status=CoupledStatus.RECTANGULAR,
        reason="",
        gap=1.0,
        rectangular_lost_nothing=False,
        chain=None,
        cells=(),
        seconds=0.0,
        functions=functions,
    )
    chain = chain_of(sets.model, objective, fixed)
    if isinstance(chain, str):
        return replace(blank, reason=chain, seconds=time.perf_counter() - begin)
    if objective.complement:
        low, high = high, low
    deadline = begin + limits.seconds
    region = Region.of(polytope, deadline)
    search = Search(chain, functions, region)
    tree = Tree(
        chain,
        functions,
        region,
        search,
        float(low.fixpoint_lower[initial]),
        float(high.fixpoint_upper[initial]),
    )
    if search.home is not None:
        search.evaluate(search.home)
    stopped: CoupledStatus | None = None
    if polytope.coordinates.size and not (chain.fixed[chain.initial] and not chain.phases):
        tree.grow_root()
        stopped = tree.refine(gap, deadline, limits.cells)
        if stopped is None:
            most = _EXACT_CELLS_REDUCED if tree.nodes[0].shape.reduced else _EXACT_CELLS
            more = min(most, _EXACT_ENTRIES // max(len(chain.weight), 1))
            tree.refine(0.0, deadline, min(limits.cells, len(tree.nodes) + more))
    found = _report(replace(blank, chain=chain), tree, stopped, polytope)
    return replace(found, seconds=time.perf_counter() - begin)


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
    """Nature making the reported value of the policy small, and large.

    A randomised policy without a step bound is evaluated over the expression sets, which enclose the
    rectangular ones. `kernel` is that of the sets, where it is at hand.
    """
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
    blank: CoupledValue, tree: Tree, stopped: CoupledStatus | None, polytope: Polytope
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
    lowest, highest = _witness(tree.search.lowest, polytope), _witness(tree.search.highest, polytope)
    if blank.objective.complement:
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
        gap=min(off / width, limit) if width > 0 else 0.0,
        rectangular_lost_nothing=lost_nothing,
        cells=() if lost_nothing or status is CoupledStatus.RECTANGULAR else _cells(tree),
    )


def _why(tree: Tree, polytope: Polytope) -> str:
    """Why no cell has a model."""
    size = polytope.coordinates.size
    if size > MOST_BOX_DIMENSIONS:
        return (
            f"the region has {size} coordinates (products of parameters count), more than the "
            f"{MOST_BOX_DIMENSIONS} in which cells can be enclosed"
        )
    if all(node.shape.frame is None for node in tree.nodes):
        return "the region is too flat, or has too many vertices, to be enclosed in float64"
    return (
        "no error bound could be verified on any cell: for some parameters of the region a play may go on "
        "for ever"
    )


def _cells(tree: Tree) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            parent=node.parent,
            split=node.split,
            children=node.children,
            lower=node.lower,
            upper=node.upper,
            own_lower=node.own_lower,
            own_upper=node.own_upper,
            frame=node.shape.frame,
            has_model=node.modelled,
            low_vertex=node.low_vertex,
            high_vertex=node.high_vertex,
            emptiness=node.shape.emptiness,
        )
        for node in tree.nodes
    )


def _witness(point: Point | None, polytope: Polytope) -> Witness | None:
    if point is None:
        return None
    theta = polytope.coordinates.parameters_at(point.x[None, :])[0]
    return Witness(theta, point.x, point.lower, point.upper)


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
            f"the reward {text} has a product of parameters that no probability of the model has, and "
            "coupled sets take rewards that are affine in the region's coordinates",
            hint='use `sets="rectangular"`, or write the product as one parameter',
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


def rewards_at(objective: Objective, values: FloatArray, model: ParametricMDP) -> Objective:
    """The objective where the functions of `functions_of` have these values."""
    if not isinstance(objective.reward, ParametricReward):
        return objective
    earned = values[len(model.expressions) :][objective.reward.expression]
    return replace(objective, reward=RewardStructure(choice=earned))
