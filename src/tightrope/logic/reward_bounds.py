"""Paths with a bound on what they earn: `F{"cost"}<=k a`, `a U{"cost"}<4 b`, `G{"cost"}<=k a`.

What was earned so far is remembered up to where it no longer matters: beyond an upper bound all is lost, at a
lower one all is enough. Rewards are whole numbers, so this memory is finite, and the question becomes one of
reaching states of a product. A choice's reward is earned on the way: every choice leads through a state of
its own, in which nothing else happens. The state that ends the path earns nothing any more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.logic.solving import PROBABILITY, Directions, Solve, from_starts, reaching
from tightrope.logic.temporal import PathBounds
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.product import MOST_STATES, Automaton, Letters, product_of
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.prism.parse.property_syntax import PathFormula, PathOperator, StepBound
from tightrope.prism.parse.syntax import Complaint, Expression, Position, suggestion
from tightrope.prism.properties.resolve import steps_of
from tightrope.prism.properties.shape import is_path, without_negation
from tightrope.prism.properties.state_formulas import StateFormulas

_TAKES = "a bound on a reward goes with F, G and U over state formulas"


@dataclass(frozen=True, eq=False)
class RewardBounded:
    """`allowed U target` within `lower ≤ earned ≤ upper`, or the complement of it; a reward per choice."""

    target: BoolArray
    allowed: BoolArray
    earned: FloatArray
    lower: int
    upper: int | None
    complement: bool


def expand_reward_bound(
    path: Expression, formulas: StateFormulas, structure: Structure
) -> RewardBounded | None:
    """The problem of such a path; None where a path has no bound on a reward."""
    inner, negated = without_negation(path)
    if not isinstance(inner, PathFormula) or inner.bound is None or inner.bound.reward is None:
        return None
    if inner.operator not in (PathOperator.EVENTUALLY, PathOperator.GLOBALLY, PathOperator.UNTIL) or (
        is_path(inner.right) or (inner.left is not None and is_path(inner.left))
    ):
        raise Complaint(_TAKES, inner.position)
    lower, upper = steps_of(inner.bound, formulas, inner.position)
    right = formulas.states(inner.right)
    is_global = inner.operator is PathOperator.GLOBALLY
    allowed = np.ones(structure.states, np.bool_) if inner.left is None else formulas.states(inner.left)
    reward = _structure_of(inner.bound, inner, structure).per_choice(structure)
    require_whole(reward, f'"{inner.bound.reward}"', "as a bound on them needs", inner.position)
    return RewardBounded(~right if is_global else right, allowed, reward, lower, upper, is_global != negated)


def require_whole(reward: FloatArray, name: str, why: str, position: Position | None) -> None:
    """Refuse rewards that no finite memory adds up."""
    if (reward < 0).any() or (reward % 1 != 0).any():
        raise Complaint(
            f"the rewards {name} are not all whole numbers from 0 on, {why}",
            position,
            "scale them in the model",
        )


def bound_rewarded(
    model: MDP | IntervalMDP,
    asked: RewardBounded,
    directions: Directions,
    starts: OffsetArray,
    solve: Solve,
) -> PathBounds:
    """Bounds on the probability from the states `starts`."""
    states, longer = model.states, through_choices(model)
    amounts, place = np.unique(np.concatenate([[0.0], asked.earned]), return_inverse=True)
    letter = np.concatenate([np.full(states, place[0]), place[1:]]).astype(np.int32)
    most = asked.lower if asked.upper is None else asked.upper + 1
    if most >= MOST_STATES:
        raise Complaint(f"a bound on a reward is less than {MOST_STATES:,}", None)
    sums = np.minimum(np.arange(most + 1)[:, None] + amounts[None, :], most)
    letters = Letters(letter, tuple(range(len(amounts))))
    product = product_of(Support.of(longer), letters, Automaton(sums.astype(np.int32)), starts)
    inside = product.memory >= asked.lower
    if asked.upper is not None:
        inside &= product.memory <= asked.upper
    choices = np.ones(model.structure.choices, np.bool_)
    target = np.concatenate([asked.target, ~choices])[product.state] & inside
    allowed = np.concatenate([asked.allowed, choices])[product.state]
    if asked.upper is not None:
        allowed = allowed & (product.memory <= asked.upper)
    solution = solve(product.model(longer), reaching(directions, target, allowed | target, asked.complement))
    return PathBounds(from_starts(solution, starts, states, PROBABILITY), solution)


def through_choices(model: MDP | IntervalMDP) -> MDP | IntervalMDP:
    """The model in which every choice leads to a new state first."""
    structure, states = model.structure, model.states
    choices = structure.choices
    built = Structure(
        choice_start=np.concatenate([structure.choice_start, choices + 1 + np.arange(choices)]),
        transition_start=np.concatenate([np.arange(choices), choices + structure.transition_start]),
        successor=np.concatenate([states + np.arange(choices), structure.successor]).astype(np.int32),
        initial_states=structure.initial_states,
        declared_mdp=structure.declared_mdp,
    )
    certain = np.ones(choices)
    if isinstance(model, MDP):
        return MDP(built, np.concatenate([certain, model.probability]))
    return IntervalMDP(built, np.concatenate([certain, model.lower]), np.concatenate([certain, model.upper]))


def _structure_of(bound: StepBound, path: PathFormula, structure: Structure) -> RewardStructure:
    name = bound.reward or ""
    if name in structure.rewards:
        return structure.rewards[name]
    raise Complaint(
        f'there is no reward structure "{name}"',
        path.position,
        suggestion(name, structure.rewards, "reward structures"),
    )
