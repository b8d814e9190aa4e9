"""When two models are the same: everything a user can see agrees, state by state, in order.

Rewards that are absent and rewards that are all 0 mean the same, and so do two tables of expressions
with the same polynomials in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.io.jani.read import built
from tightrope.model.parametric_mdp import ParametricMDP


def assert_same_model(ours: Any, other: Any) -> None:
    assert type(ours) is type(other)
    assert_same_structure(ours.structure, other.structure)
    if isinstance(ours, ParametricMDP):
        assert ours.parameters == other.parameters
        assert expression_texts(ours) == expression_texts(other)
        return
    for name in ("probability", "lower", "upper"):
        if hasattr(ours, name):
            np.testing.assert_array_equal(getattr(ours, name), getattr(other, name))


def assert_same_structure(ours: Any, other: Any) -> None:
    for name in ("choice_start", "transition_start", "successor"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(other, name))
    assert ours.initial_states == other.initial_states
    assert action_names(ours) == action_names(other)
    assert list_of(ours.labels) == list_of(other.labels)
    assert list(ours.valuations) == list(other.valuations)
    for name, column in ours.valuations.items():
        assert column.dtype == other.valuations[name].dtype
        np.testing.assert_array_equal(column, other.valuations[name])
    assert set(ours.rewards) == set(other.rewards)
    for name in ours.rewards:
        for part, size in (("state", ours.states), ("choice", ours.choices)):
            np.testing.assert_array_equal(
                rewards_or_zeros(getattr(ours.rewards[name], part), size),
                rewards_or_zeros(getattr(other.rewards[name], part), size),
            )


def expression_texts(model: ParametricMDP) -> list[str]:
    texts = [model.expressions.text(e) for e in range(len(model.expressions))]
    return [texts[e] for e in model.expression.tolist()]


def action_names(structure: Any) -> list[str]:
    return [structure.action_name(choice) for choice in range(structure.choices)]


def list_of(labels: Any) -> dict[str, list[int]]:
    return {name: np.flatnonzero(members).tolist() for name, members in labels.items()}


def rewards_or_zeros(rewards: Any, size: int) -> Any:
    return np.zeros(size) if rewards is None else rewards


def read_jani(path: str | Path, constants: Mapping[str, str] | None = None, **words: Any) -> Any:
    """The model of a JANI file."""
    return built(path, constants, **words).model
