"""Write DRN files that Storm reads and that give the same model back.

Lines are made in slices to save memory, distinct texts once. In discrete time every expression is a
placeholder, in the order of the model's table. Continuous time has rates in place of probabilities. Doubles
have the fewest digits that give the same double back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tightrope.atomic import atomic_write
from tightrope.errors import InputError
from tightrope.io.drn.read import NO_LABEL, VERSION, Notes, Part, valuation_text
from tightrope.io.output import DRN_MARK
from tightrope.io.rows import ExitRates, Model, decimal_text, distinct_texts, exit_rewards, labels_of
from tightrope.model.continuous import CTMC, Continuous, IntervalCTMC, ParametricCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Function, Polynomial, parts
from tightrope.model.pomdp import POMDP
from tightrope.model.structure import UNLABELLED, ParametricReward, RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.provenance import origin_lines


def drn_function(function: Function, names: Sequence[str]) -> str:
    """`(p)/(p + q)`: Storm's form of a quotient, each side in parentheses."""
    top, bottom = (side.text(names, signed_number=True) for side in parts(function))
    return top if isinstance(function, Polynomial) else f"({top})/({bottom})"


class StateLines:
    """The lines of the states, made in slices so that a large model does not stand in memory as text."""

    def __init__(
        self, structure: Structure, value_texts: list[str], values: Sequence[int], exits: list[str] | None
    ):
        self.value_texts, self.values = value_texts, values
        self.exits = [""] * structure.states if exits is None else exits
        self.choice_start = structure.choice_start.tolist()
        self.transition_start = structure.transition_start.tolist()
        self.successor = structure.successor.tolist()
        self.action = structure.action_of_choice.tolist()
        self.action_texts = [NO_LABEL if name == UNLABELLED else name for name in structure.action_names]
        rewards = structure.rewards.values()
        plain = [None if isinstance(reward, ParametricReward) else reward.state for reward in rewards]
        self.state_rewards = _cells(plain, structure.states)
        self.choice_rewards = _cells(
            [reward if isinstance(reward, ParametricReward) else reward.choice for reward in rewards],
            structure.choices,
        )
        self.label_texts = _label_texts(structure)
        self.names = tuple(structure.valuations)
        self.columns = [structure.valuations[name].tolist() for name in self.names]

    def of(self, first: int, last: int) -> str:
        lines: list[str] = []
        for state in range(first, last):
            behind = f"{self.exits[state]}{self.state_rewards(state)}{self.label_texts(state)}"
            lines.append(f"state {state}{behind}\n")
            if self.names:
                lines.append(valuation_text(self.names, [column[state] for column in self.columns]) + "\n")
            for choice in range(self.choice_start[state], self.choice_start[state + 1]):
                action = self.action_texts[self.action[choice]]
                lines.append(f"\taction {action}{self.choice_rewards(choice)}\n")
                start, end = self.transition_start[choice], self.transition_start[choice + 1]
                for successor, value in zip(self.successor[start:end], self.values[start:end], strict=True):
                    lines.append(f"\t\t{successor} : {self.value_texts[value]}\n")
        return "".join(lines)


def _cells(columns: Sequence[FloatArray | ParametricReward | None], size: int) -> Callable[[int], str]:
    """` [1, 0.5]` for each row, nothing where the model has no rewards at all."""
    if not columns:
        return lambda row: ""
    known = [_amounts(column, size) for column in columns]
    distinct, inverse = np.unique(
        np.stack([place for _, place in known], axis=1), axis=0, return_inverse=True
    )
    written = [texts for texts, _ in known]
    texts = [
        f" [{', '.join(own[place] for own, place in zip(written, row, strict=True))}]"
        for row in distinct.tolist()
    ]
    which = inverse.reshape(-1).tolist()
    return lambda row: texts[which[row]]


def _amounts(column: FloatArray | ParametricReward | None, size: int) -> tuple[list[str], IndexArray]:
    """The distinct texts of rewards, and which of them each row has."""
    if column is None:
        return ["0"], np.zeros(size, dtype=np.int32)
    if isinstance(column, ParametricReward):
        table = column.expressions
        rows = (table.polynomial(row) for row in range(len(table)))
        return [drn_function(each, table.parameter_names) for each in rows], column.expression
    return distinct_texts(column)


def _needs_quotes(name: str) -> bool:
    """Whether a label would read as something else."""
    return name.startswith(("!", "//")) or any(c.isspace() or c in '[]{}"' for c in name)


def _label_texts(structure: Structure) -> Callable[[int], str]:
    labels = labels_of(structure)
    names = list(labels)
    for name in names:
        if not name or '"' in name or "\n" in name or "\r" in name:
            raise InputError(f"DRN cannot hold the label name '{name}'")
    plain = [f'"{name}"' if _needs_quotes(name) else name for name in names]
    packed = np.packbits(np.stack(list(labels.values()), axis=1), axis=1)
    distinct, inverse = np.unique(packed, axis=0, return_inverse=True)
    has = np.unpackbits(distinct, axis=1, count=len(names))
    texts = ["".join(f" {name}" for name, yes in zip(plain, row, strict=True) if yes) for row in has.tolist()]
    which = inverse.reshape(-1).tolist()
    return lambda state: texts[which[state]]


_STATES_AT_ONCE = 4096


def write_drn(model: Model | Continuous | POMDP, path: str | Path) -> None:
    """The file appears whole or not at all; chains in continuous time are written with their rates.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = model.save(os.path.join(folder, "coin.drn"))
    ...     tr.load(os.path.join(folder, "coin.drn")).states
    3
    """
    seen = model if isinstance(model, POMDP) else None
    model = model.model if isinstance(model, POMDP) else model
    structure = model.structure
    if isinstance(model, Continuous):  # rewards of states and of leaving them; not those of interval chains
        rewards = {} if isinstance(model, IntervalCTMC) else exit_rewards(model)
        structure = replace(structure, rewards=rewards)
    header = "".join(f"{line}\n" for line in _header(model, structure, seen))
    looks = None if seen is None else [f" {{{look}}}" for look in seen.observation.tolist()]
    lines = StateLines(structure, *_values(model), _exit_texts(model) if looks is None else looks)
    with atomic_write(path) as file:
        file.write(header)
        for start in range(0, structure.states, _STATES_AT_ONCE):
            file.write(lines.of(start, min(start + _STATES_AT_ONCE, structure.states)))


def _header(model: Model | Continuous, structure: Structure, seen: POMDP | None) -> Iterator[str]:
    for kind, names in (("reward structure", tuple(structure.rewards)), ("action", structure.action_names)):
        for name in names:
            if any(character.isspace() for character in name) or name == NO_LABEL:
                raise InputError(f"DRN cannot hold the {kind} name '{name}'", hint="it must have no spaces")
    parameters = model.parameters if isinstance(model, ParametricMDP | ParametricCTMC) else Parameters()
    rewards = {name: _parts(reward) for name, reward in structure.rewards.items()}
    yield DRN_MARK
    yield from origin_lines(structure)
    if not isinstance(model, IntervalCTMC):
        labels = tuple(labels_of(structure))
        looks = () if seen is None else seen.names
        yield Notes(VERSION, parameters.text(), labels, structure.action_names, rewards, looks).text()
    if parameters.free:
        yield (
            f"// {parameters.listed}: unconstrained distributions are written as parameters, "
            f"{parameters.names[-1]} the last"
        )
    discrete = "POMDP" if seen is not None else "DTMC" if structure.is_chain else "MDP"
    yield f"@type: {'CTMC' if isinstance(model, Continuous) else discrete}"
    yield f"@value_type: {_value_type(model)}"
    yield "@parameters"
    yield " ".join(parameters.names)
    if isinstance(model, ParametricMDP):
        functions = enumerate(_functions(model))
        texts = [f"${e} : {drn_function(f, parameters.names)}" for e, f in functions if f not in INLINE]
        yield from ["@placeholders", *texts] if texts else []
    yield "@reward_models"
    yield "".join(f"{name} " for name in structure.rewards)
    yield "@nr_states"
    yield str(structure.states)
    yield "@nr_choices"
    yield str(structure.choices)
    yield "@model"


def _parts(reward: RewardStructure) -> tuple[Part, ...]:
    if isinstance(reward, ParametricReward):
        return ("choice",)
    of_state: tuple[Part, ...] = () if reward.state is None else ("state",)
    return of_state if reward.choice is None else (*of_state, "choice")


def _value_type(model: Model | Continuous) -> str:
    if isinstance(model, MDP | CTMC):
        return "double"
    if isinstance(model, IntervalMDP | IntervalCTMC):
        return "double-interval"
    return "parametric" if model.parameters.names or isinstance(model, ParametricCTMC) else "rational"


INLINE = (Polynomial({}), Polynomial.constant(1))
"""They stand at the head of every table and need no placeholder to keep their places."""


def _functions(model: ParametricMDP | ParametricCTMC) -> list[Function]:
    return [model.expressions.function(e) for e in range(len(model.expressions))]


def _values(model: Model | Continuous) -> tuple[list[str], Sequence[int]]:
    """The distinct texts behind the colons, and which of them each transition has."""
    match model:
        case ParametricMDP():
            functions = enumerate(_functions(model))
            return [f.text(()) if f in INLINE else f"${e}" for e, f in functions], model.expression.tolist()
        case ParametricCTMC():
            texts = [drn_function(f, model.parameters.names) for f in _functions(model)]
            return texts, model.expression.tolist()
        case CTMC():
            return [decimal_text(rate) for rate in model.exact.to_float().tolist()], model.expression.tolist()
        case IntervalCTMC():
            return _interval_texts(np.stack([model.lower, model.upper], axis=1)), model.expression.tolist()
        case MDP():
            decimals, which = distinct_texts(model.probability)
            return decimals, which.tolist()
    pairs = np.stack([model.lower, model.upper], axis=1)
    distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
    return _interval_texts(distinct), inverse.reshape(-1).tolist()


def _interval_texts(pairs: FloatArray) -> list[str]:
    return [f"[{decimal_text(low)}, {decimal_text(high)}]" for low, high in pairs.tolist()]


def _exit_texts(model: Model | Continuous) -> list[str] | None:
    """The exit rates of states as ` !2.5`; an interval chain has none."""
    if isinstance(model, CTMC):
        return [f" !{decimal_text(value)}" for value in model.exit_rate.tolist()]
    if not isinstance(model, ParametricCTMC):
        return None
    exits, texts = ExitRates(model), dict[Polynomial, str]()
    for state in range(model.states):
        if (rate := exits[state]) not in texts:
            texts[rate] = f" !{drn_function(rate, model.parameters.names).replace(' ', '')}"
    return [texts[exits[state]] for state in range(model.states)]
