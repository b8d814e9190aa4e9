"""Rewards that are earned late: `C[a,b]`, of the steps behind the first a up to b, and `C>=a`, of all behind.

`C[0,b]` is `C<=b` and `C>=0` is `C`; on a chain `C[a,b]` is `C<=b` minus `C<=a`. With choices the agent and
nature want the late rewards alone, and the steps before them only lead there: bounds of `C<=b-a` in every
state are the last values of a steps that earn nothing. A total reward may be infinite, so `C>=a` is that of
a product with a counter of steps, whose choices earn nothing until it has arrived.
"""

from __future__ import annotations

import numpy as np

from tightrope.logic.solving import ANYTHING, Directions, Solve, from_starts
from tightrope.logic.values import Bounds
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.product import MOST_STATES, Automaton, Letters, product_of
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.prism.parse.syntax import Complaint
from tightrope.solver.solution import Solution

Found = tuple[Bounds, list[Solution]]


def bound_window(
    model: MDP | IntervalMDP,
    reward: FloatArray,
    steps: tuple[int, int | None],
    directions: Directions,
    starts: OffsetArray,
    solve: Solve,
) -> Found:
    """Bounds on the reward of the steps behind the first `steps[0]`, up to `steps[1]` (None: for ever)."""
    first, last = steps
    if last is None:
        return _bound_late(model, reward, first, directions, starts, solve)
    earned = _cumulative(directions, last - first, RewardStructure(choice=reward), None)
    inner = solve(model, earned)
    if first == 0:
        return Bounds(inner.lower, inner.upper), [inner]
    below, above = (
        solve(model, _cumulative(directions, first, RewardStructure(), end))
        for end in (inner.lower, inner.upper)
    )
    return Bounds(below.lower, above.upper), [inner, below, above]


def _cumulative(
    directions: Directions, steps: int, reward: RewardStructure, terminal: FloatArray | None
) -> Objective:
    return Objective(
        ObjectiveKind.CUMULATIVE, *directions, upper_steps=steps, reward=reward, terminal=terminal
    )


def _bound_late(
    model: MDP | IntervalMDP,
    reward: FloatArray,
    first: int,
    directions: Directions,
    starts: OffsetArray,
    solve: Solve,
) -> Found:
    if first >= MOST_STATES:
        raise Complaint(f"C>=k takes a k below {MOST_STATES:,}", None)
    counter = Automaton(np.minimum(np.arange(1, first + 2), first)[:, None].astype(np.int32))
    letters = Letters(np.zeros(model.states, np.int32), (0,))
    product = product_of(Support.of(model), letters, counter, starts)
    late = product.memory[product.structure.choice_state] == first
    earned = RewardStructure(choice=np.where(late, reward[product.choice], 0.0))
    solution = solve(product.model(model), Objective(ObjectiveKind.TOTAL, *directions, reward=earned))
    return from_starts(solution, starts, model.states, ANYTHING), [solution]
