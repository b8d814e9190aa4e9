"""Rewards that are polynomials in the parameters: one per choice, that of its state included.

What a choice earns is one expression of the state for every action: the items of the state and those of the
action, each where its guard holds. It is evaluated as probabilities are, exactly and on whole frames.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tightrope.model.polynomial_array import PolynomialArray
from tightrope.model.rewards import ParametricReward
from tightrope.model.structure import UNLABELLED
from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.prism.expand.program import Program
from tightrope.prism.expand.traverse import names
from tightrope.prism.explore.assemble import Rows
from tightrope.prism.explore.compile import Compiler, Terms
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.polynomial_index import PolynomialIndex
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Binary, Conditional, Expression, Literal, RewardItem, Rewards, Type

_STATE = -1
"""In place of an action: what the state alone earns."""


def depends_on_parameters(rewards: Rewards, parameters: Collection[str]) -> bool:
    """Whether a parameter stands in some reward."""
    used = {name.name for item in rewards.items for name in names(item.reward)}
    return bool(used.intersection(parameters))


class ParametricObserver:
    """One reward structure, filled frame by frame."""

    def __init__(
        self, program: Program, rewards: Rewards, compiler: Compiler, rows: Rows, actions: Sequence[str]
    ):
        if len(rows.mixed_state):
            raise Complaint(
                "rewards with parameters do not go with states in which several commands of a Markov chain "
                "are enabled",
                rewards.position,
                "write one command for them, with the probabilities of its updates",
            )
        self.name = rewards.name or ""
        self._rows = rows
        self._table = PolynomialIndex(program.parameters)
        self._number: IndexArray = np.zeros(len(rows.action), dtype=np.int32)
        on_states = [item for item in rewards.items if not item.is_choice]
        self._terms: dict[int, Terms] = {_STATE: polynomial_of_items(on_states, compiler)}
        for number, action in enumerate(actions):
            own = [i for i in rewards.items if i.is_choice and (i.action or UNLABELLED) == action]
            self._terms[number] = (
                polynomial_of_items([*on_states, *own], compiler) if own else self._terms[_STATE]
            )

    def observe(self, frame: Frame, part: slice) -> None:
        start = self._rows.choice_start[part.start : part.stop + 1]
        choices = slice(int(start[0]), int(start[-1]))
        row: OffsetArray = np.repeat(np.arange(frame.size), np.diff(start))
        without = (self._rows.deadlock | self._rows.stopped)[part]
        action = np.where(without[row], _STATE, self._rows.action[choices])
        for number, terms in self._terms.items():
            taken = np.flatnonzero(action == number)
            if len(taken):
                inner = frame.select(row[taken])
                values = {m: coefficient.array(inner) for m, coefficient in terms.items()}
                self._number[choices][taken] = self._table.add_array(PolynomialArray(values, inner.size))

    def finish(self) -> ParametricReward:
        expressions, expression = self._table.freeze(self._number)
        return ParametricReward(self.name, expressions, expression)


def polynomial_of_items(items: Sequence[RewardItem], compiler: Compiler) -> Terms:
    """Σ reward over the items whose guard holds, as a polynomial."""
    zero = Literal(0, Type.INT)
    total: Expression = zero
    for item in items:
        total = Binary("+", total, Conditional(item.guard, item.reward, zero), item.position)
    return compiler.terms(total)
