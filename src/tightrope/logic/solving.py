"""Shared parts of questions: directions, and the model's values from a product's solution.

A question names the directions of the requested *value*. If that is the complement of a problem, `reaching`
reverses both, here and nowhere else: the complement of a maximum is a minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tightrope.errors import InputError
from tightrope.logic.values import StateBounds
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, offsets, ranges
from tightrope.solver.solution import Solution

Solve = Callable[[MDP | IntervalMDP, Objective], Solution]
Directions = tuple[Direction, Direction]
"""The agent's and nature's."""


def reaching(
    directions: Directions, target: BoolArray, allowed: BoolArray | None = None, complement: bool = False
) -> Objective:
    """The probability of `allowed U target`, or of its complement, for the directions of that value."""
    agent, nature = opposite(directions) if complement else directions
    return Objective(
        ObjectiveKind.UNTIL, agent, nature, target=target, allowed=allowed, complement=complement
    )


def opposite(directions: Directions) -> Directions:
    """Who wants a value to be large wants its complement to be small."""
    return directions[0].opposite, directions[1].opposite


def from_starts(
    solution: Solution, starts: OffsetArray, states: int, outside: tuple[float, float]
) -> StateBounds:
    """The values of a product's first states as those of its starts; `outside` bounds all others."""
    lower, upper = (np.full(states, end) for end in outside)
    lower[starts], upper[starts] = solution.lower[: len(starts)], solution.upper[: len(starts)]
    return StateBounds(lower, upper)


PROBABILITY = (0.0, 1.0)
ANYTHING = (-np.inf, np.inf)


def require_constant(model: MDP | IntervalMDP, what: str) -> None:
    """Refuse models of which nature can cut a transition, where an answer rests on which ones there are."""
    if not Support.of(model).is_constant:
        raise InputError(
            f"nature can remove transitions of this model (lower bounds of 0), and {what} are supported "
            "only if it cannot",
            hint="say that no transition vanishes: `assume_support`; of intervals of rates ask at a point",
        )


def rearranged(
    model: MDP | IntervalMDP,
    owner: OffsetArray,
    rows: OffsetArray,
    place: OffsetArray | None = None,
    initial_states: tuple[int, ...] = (0,),
) -> tuple[MDP | IntervalMDP, OffsetArray]:
    """A model with rows of another one, and the order in which its choices stand.

    The state owner[i] has the choice rows[i] of the model, or, where that is −1 − s, one that leads to the
    state s for certain. Successors s become place[s]."""
    structure, order = model.structure, np.argsort(owner, kind="stable")
    rows = rows[order]
    copied = rows >= 0
    sizes = np.ones(len(rows), np.int64)
    sizes[copied] = np.diff(structure.transition_start)[rows[copied]]
    start = offsets(sizes)
    selected, _ = ranges(structure.transition_start, rows[copied])
    at, _ = ranges(start, np.flatnonzero(copied))
    successor = np.empty(int(start[-1]), np.int32)
    successor[start[:-1][~copied]] = -1 - rows[~copied]
    reached = structure.successor[selected]
    successor[at] = reached if place is None else place[reached]
    built = Structure(
        choice_start=offsets(np.bincount(owner)),
        transition_start=start,
        successor=successor,
        initial_states=initial_states,
        declared_mdp=True,
    )

    def spread(values: FloatArray) -> FloatArray:
        made = np.ones(len(successor))
        made[at] = values[selected]
        return made

    if isinstance(model, MDP):
        return MDP(built, spread(model.probability)), order
    return IntervalMDP(built, spread(model.lower), spread(model.upper)), order


def under(model: MDP | IntervalMDP, choice: OffsetArray) -> MDP | IntervalMDP:
    """What a policy leaves of a model: one choice per state, with its labels and rewards."""
    structure = model.structure
    followed, _ = ranges(structure.transition_start, choice)
    rewards = {
        name: replace(reward, choice=None if reward.choice is None else reward.choice[choice])
        for name, reward in structure.rewards.items()
    }
    built = replace(
        structure,
        choice_start=np.arange(structure.states + 1),
        transition_start=offsets(np.diff(structure.transition_start)[choice]),
        successor=structure.successor[followed],
        action=structure.action_of_choice[choice],
        rewards=rewards,
        declared_mdp=False,
    )
    if isinstance(model, MDP):
        return MDP(built, model.probability[followed])
    return IntervalMDP(built, model.lower[followed], model.upper[followed])
