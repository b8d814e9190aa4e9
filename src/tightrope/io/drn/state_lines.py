"""The lines of states in DRN files, and the texts in them: polynomials, rewards, labels.

Lines are made in slices, so that a large model does not stand in memory as text; distinct texts are made
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tightrope.errors import InputError
from tightrope.io.drn.body import NO_LABEL
from tightrope.io.drn.notes import valuation_text
from tightrope.io.number_text import decimal_text
from tightrope.model.polynomial import Polynomial, monomial_degree, monomial_text
from tightrope.model.rational_function import Function
from tightrope.model.rewards import ParametricReward
from tightrope.model.structure import UNLABELLED, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray


def drn_polynomial(polynomial: Polynomial, names: Sequence[str]) -> str:
    """`-1*p^2 + 1/2*p + 3/10`. Storm takes `-p^2` for (−p)², so a leading sign gets a number."""
    parts: list[str] = []
    for monomial in sorted(polynomial.terms, key=lambda m: (-monomial_degree(m), m)):
        coefficient = polynomial.terms[monomial]
        size = abs(coefficient)
        leading = not parts and coefficient < 0
        factors = [str(size)] if size != 1 or not monomial or leading else []
        if monomial:
            factors.append(monomial_text(monomial, names))
        sign = "-" if coefficient < 0 else ("+" if parts else "")
        parts.append(f"{sign} {'*'.join(factors)}" if parts else f"{sign}{'*'.join(factors)}")
    return " ".join(parts) or "0"


def drn_function(function: Function, names: Sequence[str]) -> str:
    """`(p)/(p + q)`: Storm's form of a quotient, each side in parentheses."""
    if isinstance(function, Polynomial):
        return drn_polynomial(function, names)
    top, bottom = (drn_polynomial(side, names) for side in (function.numerator, function.denominator))
    return f"({top})/({bottom})"


class StateLines:
    """The lines of the states, made in slices so that a large model does not stand in memory as text."""

    def __init__(self, structure: Structure, value_texts: list[str], values: Sequence[int]):
        self.structure, self.value_texts, self.values = structure, value_texts, values
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
            lines.append(f"state {state}{self.state_rewards(state)}{self.label_texts(state)}\n")
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
        polynomials = [table.polynomial(row) for row in range(len(table))]
        return [drn_polynomial(each, table.parameter_names) for each in polynomials], column.expression
    distinct, inverse = np.unique(column, return_inverse=True)
    return [decimal_text(value) for value in distinct.tolist()], inverse.reshape(-1).astype(np.int32)


def labels_of(structure: Structure) -> dict[str, BoolArray]:
    """The model's, and always "init", by which a file names the initial state."""
    start = np.zeros(structure.states, dtype=np.bool_)
    start[list(structure.initial_states)] = True
    return {**structure.labels, "init": start}


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
