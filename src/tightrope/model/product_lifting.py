"""A model beside a memory: the product as a model of the same kind, and whose transitions its own are.

Choices of the product carry the very expressions (probabilities, intervals) of the model's choices behind
them. So what is tied in the model is tied in the product, and a fact about the model's transitions is one
about all their copies. Data speak of the model: `first_copy` says which copy of a transition takes its
counts, one each, so that pooling counts every observation once.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.product import Product
from tightrope.model.rewards import ParametricReward, RewardStructure
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import OffsetArray

MEMORY = "memory"
STATE = "state"


@overload
def lift_model(model: ParametricMDP, product: Product) -> ParametricMDP: ...
@overload
def lift_model(model: MDP, product: Product) -> MDP: ...
@overload
def lift_model(model: IntervalMDP, product: Product) -> IntervalMDP: ...
def lift_model(
    model: ParametricMDP | MDP | IntervalMDP, product: Product
) -> ParametricMDP | MDP | IntervalMDP:
    """The product with all that the model carries: probabilities, labels, rewards, variables."""
    structure, which = _lift_structure(model.structure, product), product.transition
    if isinstance(model, ParametricMDP):
        return ParametricMDP(structure, model.expression[which], model.expressions, model.parameters)
    if isinstance(model, MDP):
        return MDP(structure, model.probability[which])
    return IntervalMDP(structure, model.lower[which], model.upper[which])


def lift_reward(reward: RewardStructure, product: Product) -> RewardStructure:
    """A reward of the model, on the states and choices of the product."""
    if isinstance(reward, ParametricReward):
        return ParametricReward(reward.name, reward.expressions, reward.expression[product.choice])
    return RewardStructure(
        None if reward.state is None else reward.state[product.state],
        None if reward.choice is None else reward.choice[product.choice],
    )


def first_copy(product: Product, transitions: int) -> OffsetArray:
    """For every transition of the model one of the product that is a copy of it; −1 where there is none."""
    copy = np.full(transitions, -1, np.int64)
    copy[product.transition[::-1]] = np.arange(len(product.transition))[::-1]
    return copy


def every_transition(structure: Structure) -> MDP:
    """A model in which every transition is possible: what graph questions under full support are asked of."""
    sizes = np.diff(structure.transition_start)
    return MDP(structure, np.repeat(1.0 / sizes, sizes))


def _lift_structure(base: Structure, product: Product) -> Structure:
    state, built = product.state, product.structure
    variables = {name: column[state] for name, column in base.valuations.items()} or {STATE: state}
    memory = MEMORY
    while memory in variables:
        memory += "_"
    return Structure(
        choice_start=built.choice_start,
        transition_start=built.transition_start,
        successor=built.successor,
        action=built.action_of_choice,
        action_names=built.action_names,
        labels={name: members[state] for name, members in base.labels.items()},
        rewards={name: lift_reward(reward, product) for name, reward in base.rewards.items()},
        valuations={**variables, memory: product.memory},
        declared_mdp=base.declared_mdp,
        definitions=base.definitions,
    )
