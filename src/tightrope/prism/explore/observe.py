"""Labels, rewards and valuations of the reached states.

A state earns all items whose guard holds; a choice sums the items of its action. Sums are exact, and only the
result is rounded to the nearest float64. A deadlock's self-loop earns nothing by itself; the mixed choice of
a Markov chain earns the average of its commands. Rewards with parameters are one polynomial per choice, that
of its state included, evaluated exactly on whole frames like probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tightrope.model import numbers as door
from tightrope.model.structure import UNLABELLED, ParametricReward, RewardStructure
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.assemble import ModelRows
from tightrope.prism.explore.compile import Compiler, StateSpace, Terms, balance, polynomials
from tightrope.prism.explore.frame import StateFrame
from tightrope.prism.explore.key_index import PolynomialIndex
from tightrope.prism.explore.nodes import Number, integers
from tightrope.prism.explore.probabilities import check_held
from tightrope.prism.parse import syntax

_STATE = -1
"""In place of an action: what the state alone earns."""


class ParametricObserver:
    """One reward structure, filled frame by frame."""

    def __init__(
        self,
        program: Program,
        rewards: syntax.Rewards,
        compiler: Compiler,
        rows: ModelRows,
        actions: Sequence[str],
    ):
        if len(rows.mixed_state):
            raise syntax.Complaint(
                "rewards with parameters need one enabled command in every state of a Markov chain",
                rewards.position,
                "write one command for them, with the probabilities of its updates",
            )
        self.name = rewards.name or ""
        self._position = rewards.position
        self._rows = rows
        self._is_mean = any(item.is_mean for item in rewards.items)
        self._table = PolynomialIndex(program.parameters)
        self._number: IndexArray = np.zeros(len(rows.action), dtype=np.int32)
        on_states, on_actions = split_items(rewards.items, actions)
        alone = polynomial_of_items(on_states, compiler)
        self._terms: dict[int, Terms] = {_STATE: alone, **dict.fromkeys(range(len(actions)), alone)}
        for number, own in on_actions.items():
            self._terms[number] = polynomial_of_items([*on_states, *own], compiler)

    def observe(self, frame: StateFrame, part: slice) -> None:
        start = self._rows.choice_start[part.start : part.stop + 1]
        choices = slice(int(start[0]), int(start[-1]))
        row: OffsetArray = np.repeat(np.arange(frame.size), np.diff(start))
        without = (self._rows.deadlock | self._rows.stopped)[part]
        action = np.where(without[row], _STATE, self._rows.action[choices])
        for number, terms in self._terms.items():
            selected = np.flatnonzero(action == number)
            if len(selected):
                inner = frame.select(row[selected])
                earned = polynomials(terms, inner)
                check_held(earned, inner, self._position)
                self._number[choices][selected] = self._table.add_array(earned)

    def finish(self) -> ParametricReward:
        expressions, expression = self._table.freeze(self._number)
        return ParametricReward(self.name, expressions, expression, is_mean=self._is_mean)


def split_items(
    items: Sequence[syntax.RewardItem], actions: Sequence[str]
) -> tuple[list[syntax.RewardItem], dict[int, list[syntax.RewardItem]]]:
    """The items of states, and those of each action that has some, by its number."""
    on_actions: dict[int, list[syntax.RewardItem]] = {}
    for item in items:
        if item.is_choice and (name := item.action or UNLABELLED) in actions:
            on_actions.setdefault(actions.index(name), []).append(item)
    return [item for item in items if not item.is_choice], on_actions


def polynomial_of_items(items: Sequence[syntax.RewardItem], compiler: Compiler) -> Terms:
    """Σ reward over the items whose guard holds, as a polynomial."""
    zero = syntax.Literal(0, syntax.Type.INT)
    total: syntax.Expression = zero
    for item in items:
        total = syntax.Binary("+", total, syntax.Conditional(item.guard, item.reward, zero), item.position)
    return compiler.terms(total)


_CHUNK = 2**16
_EXACT_IN_FLOAT = 2**53


@dataclass(frozen=True, eq=False)
class Observations:
    """Named columns over the states, and reward structures."""

    labels: Mapping[str, BoolArray]
    rewards: Mapping[str, RewardStructure]
    valuations: Mapping[str, AnyArray]


def observe(
    program: Program,
    space: StateSpace,
    keys: OffsetArray,
    rows: ModelRows,
    actions: Sequence[str],
    narrow: bool = False,
) -> Observations:
    """All that is said of the states with these keys; `narrow` gives columns their smallest type."""
    compiler = space.compiler()
    states = len(keys)
    numbers = len(program.labels) * states + 8 * len(program.rewards) * (states + len(rows.action))
    door.check_room(numbers, f"{len(program.labels):,} labels and {len(program.rewards):,} reward structures")
    labels = [(label.name, compiler.truth(label.expression)) for label in program.labels]
    members = {name: np.empty(states, dtype=np.bool_) for name, _ in labels}
    rewards: list[_Reward | ParametricObserver] = [
        ParametricObserver(program, each, compiler, rows, actions)
        if any(name.name in program.parameters for item in each.items for name in syntax.names(item.reward))
        else _Reward(each.name or "", each.items, compiler, rows, actions)
        for each in program.rewards
    ]
    columns: list[AnyArray] = [
        np.empty(states, dtype=np.bool_ if is_boolean else _smallest(*bounds) if narrow else np.int32)
        for is_boolean, bounds in zip(space.is_boolean, space.ranges, strict=True)
    ]
    for begin in range(0, states, _CHUNK):
        part = slice(begin, min(begin + _CHUNK, states))
        frame = space.frame(keys[part])
        for variable, column in enumerate(columns):
            column[part] = frame.column(variable)
        for name, condition in labels:
            members[name][part] = condition.value(frame)
        for reward in rewards:
            reward.observe(frame, part)
    members.setdefault("init", np.arange(states) < len(program.initial_values))
    members.setdefault("deadlock", rows.deadlock)
    return Observations(
        members,
        {reward.name: reward.finish() for reward in rewards},
        {variable.name: column for variable, column in zip(space.variables, columns, strict=True)},
    )


def _smallest(low: int, high: int) -> npt.DTypeLike:
    for dtype in (np.int8, np.int16):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return dtype
    return np.int32


class _Reward:
    """One reward structure, filled frame by frame."""

    def __init__(
        self,
        name: str,
        items: Sequence[syntax.RewardItem],
        compiler: Compiler,
        rows: ModelRows,
        actions: Sequence[str],
    ):
        self.name = name
        self._rows = rows
        self._position = items[0].position if items else None
        on_states, on_actions = split_items(items, actions)
        self._state_value = _total(on_states, compiler) if on_states else None
        self._state = np.zeros(len(rows.deadlock)) if on_states else None
        self._choice_value = {number: _total(own, compiler) for number, own in on_actions.items()}
        self._is_mean = any(item.is_mean for item in items)
        self._choice = np.zeros(len(rows.action)) if len(on_states) < len(items) else None

    def observe(self, frame: StateFrame, part: slice) -> None:
        if self._state is not None and self._state_value is not None:
            self._state[part] = self._nearest(self._state_value, frame)
        if self._choice is None:
            return
        start = self._rows.choice_start[part.start : part.stop + 1]
        choices = slice(int(start[0]), int(start[-1]))
        action = self._rows.action[choices]
        row = np.repeat(np.arange(frame.size), np.diff(start))
        for number, value in self._choice_value.items():
            selected = np.flatnonzero(action == number)
            if len(selected):
                self._choice[choices][selected] = self._nearest(value, frame)[row[selected]]
        if self._state is not None:
            self._check_totals(frame, self._state[part][row], self._choice[choices], row, action)
        self._correct_mixed(frame, part)

    def _check_totals(
        self, frame: StateFrame, state: FloatArray, choice: FloatArray, row: OffsetArray, action: IndexArray
    ) -> None:
        """What states and choices earn together, by the rule of the model's door."""

        def exact(index: int) -> tuple[Fraction, Fraction]:
            own = self._choice_value.get(int(action[index]))
            earned = Fraction(0) if own is None else _exact(own, frame, int(row[index]))
            assert self._state_value is not None
            return _exact(self._state_value, frame, int(row[index])), earned

        try:
            door.check_totals(state, choice, exact)
        except door.NotHeldError as error:
            frame.fail(error.message, self._position, np.arange(frame.size) == row[error.index])

    def _nearest(self, number: Number, frame: StateFrame) -> FloatArray:
        """The float64 nearest to the exact value in each row."""
        top, bottom = number.numerator, number.denominator
        if bottom.high <= _EXACT_IN_FLOAT and top.low >= -_EXACT_IN_FLOAT and top.high <= _EXACT_IN_FLOAT:
            # Both are exact in float64, so one division rounds once.
            return integers(top, frame) / integers(bottom, frame)
        try:
            return door.doubles(number.array(frame))
        except door.NotHeldError as error:
            frame.fail(f"a reward: {error.message},", self._position, np.arange(frame.size) == error.index)

    def _correct_mixed(self, frame: StateFrame, part: slice) -> None:
        """Averages where a Markov chain drew among several commands; there a choice is a state."""
        assert self._choice is not None
        first, last = np.searchsorted(self._rows.mixed_state, (part.start, part.stop))
        if first == last:
            return
        state = self._rows.mixed_state[first:last].astype(np.int64)
        action = self._rows.mixed_action[first:last]
        earned = np.zeros(len(state))
        for number, value in self._choice_value.items():
            own = np.flatnonzero(action == number)
            earned[own] = self._nearest(value, frame)[state[own] - part.start]
        place = state - part.start
        self._is_mean |= bool(np.any(earned != earned[np.searchsorted(state, state)]))
        commands = np.bincount(place, minlength=frame.size)
        total = np.bincount(place, weights=earned, minlength=frame.size)
        size = np.bincount(place, weights=np.abs(earned), minlength=frame.size)
        mixed = np.flatnonzero(commands)
        average = total[mixed] / commands[mixed]
        close = (np.abs(total) < 0.5 * size)[mixed] | ((np.abs(average) < door.TINY) & (size[mixed] > 0))
        for index in np.flatnonzero(close).tolist():
            row = int(mixed[index])
            values = [self._choice_value.get(number) for number in action[place == row].tolist()]
            exact = [Fraction(0) if value is None else _exact(value, frame, row) for value in values]
            try:
                average[index] = door.double(sum(exact, Fraction(0)) / len(exact))
            except door.NotHeldError as error:
                frame.fail(f"a reward: {error.message},", self._position, np.arange(frame.size) == row)
        self._choice[part.start + mixed] = average

    def finish(self) -> RewardStructure:
        if self._choice is not None:
            without = self._rows.deadlock | self._rows.stopped
            self._choice[self._rows.choice_start[:-1][without]] = 0.0
        return RewardStructure(self._state, self._choice, self._is_mean)


def _total(items: Sequence[syntax.RewardItem], compiler: Compiler) -> Number:
    """Σ reward over the items whose guard holds."""
    arithmetic = compiler.arithmetic
    zero = arithmetic.literal(0, True)
    earned = [
        arithmetic.choose(compiler.truth(item.guard), compiler.number(item.reward), zero) for item in items
    ]
    return balance(earned, arithmetic.add)


def _exact(number: Number, frame: StateFrame, row: int) -> Fraction:
    """The exact value in one row."""
    return number.array(frame.select(np.array([row])))[0]
