"""Rewards with parameters over the coupled set: one x for probabilities and rewards.

A reward r(x) that is affine in the coordinates is an entry of its row like a transition's, with the
expression r, to one more row whose value is fixed at 1 (`tightrope.coupled.chain`): V(s) = r(x)·1 + Σ
weight·f(x)·V(successor). Nothing in the proofs of `tightrope.coupled.taylor` and
`tightrope.coupled.vertex_proof` asks entries that lead to fixed rows to be probabilities: these rows are not
part of the matrix whose inverse must not be negative, and their error is 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.ambiguity.sets import Sets
from tightrope.errors import InputError
from tightrope.model.objective import Direction, Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.costs import reward_ends
from tightrope.statistics.coordinates import AffineFunctions, Coordinates


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
