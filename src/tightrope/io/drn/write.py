"""Writing DRN files that Storm reads, and that we read back as the same model.

Every expression is a placeholder, in the order of the model's table, so that the table is rebuilt as
it was. Doubles are written with the fewest digits that give the same double back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tightrope.errors import InputError
from tightrope.io.atomic import atomic_write
from tightrope.io.drn.body import NO_LABEL
from tightrope.io.drn.continuous import write_rates
from tightrope.io.drn.notes import Notes
from tightrope.io.drn.state_lines import StateLines, drn_function, labels_of
from tightrope.io.drn.values import Model
from tightrope.io.number_text import decimal_text
from tightrope.io.written_by import DRN_MARK
from tightrope.model.continuous import Continuous
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.model.rational_function import Function
from tightrope.model.rewards import ParametricReward

_STATES_AT_ONCE = 4096


def write_drn(model: Model | Continuous, path: str | Path) -> None:
    """The file appears whole or not at all; chains in continuous time are written with their rates.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tr.write_drn(model, os.path.join(folder, "coin.drn"))
    ...     tr.load(os.path.join(folder, "coin.drn")).states
    3
    """
    if isinstance(model, Continuous):
        write_rates(model, path)
        return
    structure = model.structure
    header = "".join(f"{line}\n" for line in _header(model))
    value_texts, values = _values(model)
    lines = StateLines(structure, value_texts, values)
    with atomic_write(path) as file:
        file.write(header)
        for start in range(0, structure.states, _STATES_AT_ONCE):
            file.write(lines.of(start, min(start + _STATES_AT_ONCE, structure.states)))


def _header(model: Model) -> Iterator[str]:
    structure = model.structure
    for kind, names in (("reward structure", tuple(structure.rewards)), ("action", structure.action_names)):
        for name in names:
            if any(character.isspace() for character in name) or name == NO_LABEL:
                raise InputError(f"DRN cannot hold the {kind} name '{name}'", hint="it must have no spaces")
    parameters = model.parameters if isinstance(model, ParametricMDP) else Parameters()
    yield DRN_MARK
    yield Notes(
        parameters.text(),
        tuple(labels_of(structure)),
        structure.action_names,
        {
            name: ("choice",)
            if isinstance(reward, ParametricReward)
            else ("state",) * (reward.state is not None) + ("choice",) * (reward.choice is not None)
            for name, reward in structure.rewards.items()
        },
    ).text()
    yield f"@type: {'DTMC' if structure.is_chain else 'MDP'}"
    yield f"@value_type: {_value_type(model)}"
    yield "@parameters"
    yield " ".join(parameters.names)
    if isinstance(model, ParametricMDP) and (placeholders := list(_placeholders(model))):
        yield "@placeholders"
        yield from placeholders
    yield "@reward_models"
    yield "".join(f"{name} " for name in structure.rewards)
    yield "@nr_states"
    yield str(structure.states)
    yield "@nr_choices"
    yield str(structure.choices)
    yield "@model"


def _value_type(model: Model) -> str:
    if isinstance(model, MDP):
        return "double"
    if isinstance(model, IntervalMDP):
        return "double-interval"
    return "parametric" if model.parameters.names else "rational"


def _is_inline(function: Function) -> bool:
    """0 and 1 stand at the head of every table and need no placeholder to keep their places."""
    return function in (Polynomial({}), Polynomial.constant(1))


def _placeholders(model: ParametricMDP) -> Iterator[str]:
    for index in range(len(model.expressions)):
        function = model.expressions.function(index)
        if not _is_inline(function):
            yield f"${index} : {drn_function(function, model.parameters.names)}"


def _values(model: Model) -> tuple[list[str], Sequence[int]]:
    """The distinct texts behind the colons, and which of them each transition has."""
    if isinstance(model, ParametricMDP):
        texts = []
        for index in range(len(model.expressions)):
            function = model.expressions.function(index)
            texts.append(function.text(()) if _is_inline(function) else f"${index}")
        return texts, model.expression.tolist()
    if isinstance(model, MDP):
        distinct, inverse = np.unique(model.probability, return_inverse=True)
        return [decimal_text(value) for value in distinct.tolist()], inverse.reshape(-1).tolist()
    pairs = np.stack([model.lower, model.upper], axis=1)
    distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
    texts = [f"[{decimal_text(low)}, {decimal_text(high)}]" for low, high in distinct.tolist()]
    return texts, inverse.reshape(-1).tolist()
