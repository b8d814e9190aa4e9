"""Commands on all states of a frame at once: single ones, synchronised ones, and enabled choices.

The guard is evaluated on every row, probabilities and updates where it holds, with the ranges that the guard
leaves. Probabilities are computed exactly once per distinct combination of the variables they depend on.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TypeAlias

import numpy as np

from tightrope.model.structure import UNLABELLED
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray, offsets, ranges
from tightrope.numerics.jit import kernel
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.compile import Compiler, KeyLayout, StateSpace
from tightrope.prism.explore.nodes import Boolean, Column, Integer, StateFrame, integers, machine
from tightrope.prism.explore.probabilities import ZERO, Distribution, Growing, KeyIndex, Probabilities
from tightrope.prism.parse.syntax import (
    Assignment,
    Binary,
    Complaint,
    Expression,
    GuardedCommand,
    Literal,
    Name,
    Position,
    Type,
    Unary,
)

_PATIENCE = 6
_FEW, _SHARE = 1024, 16
"""After `_PATIENCE` rounds of new combinations, those still missing are evaluated together if all
in all there are `_FEW`, or `_SHARE` times as many as are known: a round costs more than a combination."""


class DistributionMemory:
    """Probabilities by the variables they depend on; `has_zero[u]`: update u had probability 0."""

    def __init__(
        self, distribution: Distribution, ranges: Sequence[tuple[int, int]], space: StateSpace, updates: int
    ):
        self._distribution = distribution
        self.variables = sorted(distribution.variables)
        self.layout = KeyLayout([ranges[v] for v in self.variables])
        self._index = KeyIndex(self.layout.words)
        self._space = space
        self._known = Growing(np.int32, updates)
        self._rounds = 0
        self._looked_ahead = False
        self.has_zero = np.zeros(updates, dtype=np.bool_)

    @property
    def known(self) -> IndexArray:
        """The numbers of the combinations met so far, a row each."""
        return self._known.values

    @property
    def keys_known(self) -> OffsetArray:
        """The keys of these combinations."""
        if not self.variables:
            return np.zeros((len(self._known), 1), dtype=np.int64)
        return self._index.keys[: len(self._known)]

    def numbers(self, frame: StateFrame) -> IndexArray:
        """The number of every update's probability (columns) in every row."""
        if not self.variables:
            if not len(self._known):
                self._remember(self._distribution.evaluate(frame.select(np.zeros(1, dtype=np.int64))))
            return np.repeat(self._known.values, frame.size, axis=0)
        keys = self.layout.encode([frame.column(v) for v in self.variables], frame.size)
        combination = self._index.insert(keys)
        if len(self._index) > len(self._known):
            self._learn(frame, combination)
        return self._known.values[combination]

    def _learn(self, frame: StateFrame, combination: IndexArray) -> None:
        """Evaluate the new combinations, and after a few such rounds all that are left, if few are."""
        known = len(self._known)

        def describe(row: int) -> str:
            return frame.describe(int(np.flatnonzero(combination == known + row)[0]))

        self._evaluate(describe)
        self._rounds += 1
        few = self.layout.size <= max(_FEW, _SHARE * len(self._known))
        if self._rounds >= _PATIENCE and few and not self._looked_ahead:
            self._look_ahead()

    def _look_ahead(self) -> None:
        self._looked_ahead = True
        if self.layout.words == 1:
            met = self._index.keys.copy()
            self._index.insert(np.arange(self.layout.size, dtype=np.int64).reshape(-1, 1))
            try:
                self._evaluate(lambda row: "that is never reached")
            except Complaint:
                # Some combination makes no sense; it need not be reachable, so wait and see.
                self._index = KeyIndex(self.layout.words)
                self._index.insert(met)

    def _evaluate(self, describe: Callable[[int], str]) -> None:
        values = self.layout.decode(self._index.keys[len(self._known) :])
        columns: list[Column | None] = [None] * len(self._space.variables)
        for variable, column in zip(self.variables, values, strict=True):
            columns[variable] = column != 0 if self._space.is_boolean[variable] else column
        if values.shape[1]:
            self._remember(self._distribution.evaluate(StateFrame(columns, values.shape[1], describe)))

    def _remember(self, numbers: IndexArray) -> None:
        self._known.append(numbers)
        self.has_zero |= (numbers == ZERO).any(axis=0)


class CompiledCommand:
    """`enabled(frame)` says where the guard holds, `alternatives` what the command does there."""

    def __init__(
        self, command: GuardedCommand, space: StateSpace, guards: Compiler, probabilities: Probabilities
    ):
        self.position = command.position
        self.has_rates = command.has_rates
        self.guard = guards.truth(command.guard)
        self._words = space.layout.words
        self.ranges = ranges_under(command.guard, space.ranges, space.number)
        self.never = self.guard.constant is False or any(low > high for low, high in self.ranges)
        if not self.never:
            compiler = space.compiler(self.ranges)
            distribution = probabilities.compile(compiler, command)
            self.memory = DistributionMemory(distribution, self.ranges, space, len(command.updates))
            self.updates = [
                [CompiledAssignment(a, command, space, compiler) for a in update.assignments]
                for update in command.updates
            ]

    def enabled(self, frame: StateFrame) -> BoolArray | None:
        """In which rows the guard holds; None where in no state at all."""
        return None if self.never else frame.mask(self.guard.value(frame))

    def alternatives(self, frame: StateFrame, enabled: BoolArray) -> Alternatives | None:
        rows = np.flatnonzero(enabled)
        if not len(rows):
            return None
        inner = frame.select(rows)
        probability = self.memory.numbers(inner)
        step: OffsetArray = np.zeros((len(rows), len(self.updates), self._words), dtype=np.int64)
        for column, assignments in enumerate(self.updates):
            possible: StateFrame | None = inner
            at: OffsetArray | slice = slice(None)
            if self.memory.has_zero[column]:
                # An update of probability 0 does not take place: its values may even be out of range.
                at = np.flatnonzero(probability[:, column] != ZERO)
                possible = inner.select(at) if len(at) else None
            if possible is not None:
                for assignment in assignments:
                    step[at, column, assignment.word] += assignment.step(possible)
        return Alternatives.uniform(rows, step, probability)


class CompiledAssignment:
    """`change` is the step of the key, `checked` a value that might leave `bounds`."""

    def __init__(
        self, assignment: Assignment, command: GuardedCommand, space: StateSpace, compiler: Compiler
    ):
        self._command = f"command [{command.action or ''}]"
        number = space.number[assignment.name]
        self._variable = space.variables[number]
        self._position: Position = assignment.position
        self.word = int(space.layout.word[number])
        graph = compiler.graph
        compiled = compiler.compile(assignment.value)
        if isinstance(compiled, Boolean):
            value = graph.choose(compiled, graph.constant(1), graph.constant(0))
        else:
            whole = compiler.number(assignment.value)
            value = whole.numerator
            if whole.denominator.constant != 1:
                raise Complaint(f"'{assignment.name}' needs an integer", assignment.position)
        low, high = self._variable.low, self._variable.high
        self.bounds = low, high
        self.checked = None if low <= value.low and value.high <= high and not value.fails else value
        change = _increment(assignment, compiler)
        if change is None:
            change = graph.subtract(value, _as_integer(number, space, compiler))
        self.change = graph.multiply(graph.constant(int(space.layout.stride[number])), change)

    def step(self, frame: StateFrame) -> OffsetArray | int:
        if self.checked is not None:
            self._check(integers(self.checked, frame), frame)
        result: OffsetArray | int = self.change.value(frame)
        # In range, so the step fits whatever the bounds of the computation were.
        return machine(result) if self.change.wide else result

    def _check(self, values: OffsetArray, frame: StateFrame) -> None:
        low, high = self._variable.low, self._variable.high
        if values.min() >= low and values.max() <= high:
            return
        outside = (values < low) | (values > high)
        value = int(values[np.flatnonzero(outside)[0]])
        name = self._variable.name
        message = f"{self._command}: '{name}' becomes {value}, outside its range {low}..{high},"
        if self._variable.is_unbounded:
            message = f"{self._command}: '{name}' becomes {value}, beyond what a state can hold,"
        frame.fail(message, self._position, outside)


def _increment(assignment: Assignment, compiler: Compiler) -> Integer | None:
    """The change of x in `(x' = x + change)`, so that x itself need not be looked at."""
    match assignment.value:
        case Binary("+", Name(name), change) | Binary("+", change, Name(name)) if name == assignment.name:
            number = compiler.number(change)
        case Binary("-", Name(name), change) if name == assignment.name:
            number = compiler.arithmetic.negate(compiler.number(change))
        case _:
            return None
    return number.numerator if number.denominator.constant == 1 else None


def _as_integer(number: int, space: StateSpace, compiler: Compiler) -> Integer:
    graph = compiler.graph
    if space.is_boolean[number]:
        return graph.choose(graph.boolean_variable(number), graph.constant(1), graph.constant(0))
    return graph.variable(number)


# What a guard says about single variables: `x<5 & b` leaves x at most 4 and b true.
#
# Only conjuncts that compare one variable with a constant are read; ignoring the others is always
# right, the ranges are then wider than need be. An empty range means that the guard never holds.

Ranges = list[tuple[int, int]]

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def ranges_under(guard: Expression, ranges: Sequence[tuple[int, int]], number: Mapping[str, int]) -> Ranges:
    """The ranges of all variables in states where the guard holds."""
    narrowed = list(ranges)
    open_conjuncts = [guard]
    while open_conjuncts:
        part = open_conjuncts.pop()
        if isinstance(part, Binary) and part.operator == "&":
            open_conjuncts += [part.left, part.right]
        elif (bounds := _bounds(part)) is not None:
            name, low, high = bounds
            if name in number:
                known_low, known_high = narrowed[number[name]]
                narrowed[number[name]] = (
                    known_low if low is None else max(low, known_low),
                    known_high if high is None else min(high, known_high),
                )
    return narrowed


def _bounds(part: Expression) -> tuple[str, int | None, int | None] | None:
    match part:
        case Name(name):
            return name, 1, 1
        case Unary("!", Name(name)):
            return name, 0, 0
        case Binary(relation, Name(name), right) if relation in _MIRRORED:
            value = _value(right)
        case Binary(relation, left, Name(name)) if relation in _MIRRORED:
            relation, value = _MIRRORED[relation], _value(left)
        case _:
            return None
    if value is None:
        return None
    match relation:
        case "=":
            return name, math.ceil(value), math.floor(value)
        case "<":
            return name, None, math.ceil(value) - 1
        case "<=":
            return name, None, math.floor(value)
        case ">":
            return name, math.floor(value) + 1, None
        case _:
            return name, math.ceil(value), None


def _value(expression: Expression) -> Fraction | None:
    match expression:
        case Literal(value, kind) if kind is not Type.BOOL:
            return Fraction(value)
        case Unary("-", Literal(value, kind)) if kind is not Type.BOOL:
            return -Fraction(value)
    return None


# What can happen in the states of a frame: enabled alternatives, each with its outcomes.
#
# Alternative i belongs to row `rows[i]` and has the outcomes start[i]..start[i+1]; an outcome is the
# step from the key of the row's state to that of its successor, and the number of its probability.
# Alternatives of one row stand for different choices. `join` is synchronisation: two modules that
# share an action move together, every alternative of one with every alternative of the other; steps
# add and probabilities multiply, since the modules write different variables and draw independently.

AlternativeArrays: TypeAlias = tuple[OffsetArray, OffsetArray, OffsetArray, IndexArray]
"""Rows, starts, steps and probabilities, for compiled loops."""


@dataclass(frozen=True, eq=False)
class Alternatives:
    rows: OffsetArray
    start: OffsetArray
    step: OffsetArray
    probability: IndexArray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def arrays(self) -> AlternativeArrays:
        return self.rows, self.start, self.step, self.probability

    @classmethod
    def uniform(cls, rows: OffsetArray, step: OffsetArray, probability: IndexArray) -> Alternatives:
        """From step[alternative, outcome, word] and probability[alternative, outcome]."""
        count, outcomes, words = step.shape
        start = np.arange(0, count * outcomes + 1, outcomes, dtype=np.int64)
        return cls(rows, start, step.reshape(-1, words), probability.reshape(-1))

    def take(self, which: OffsetArray) -> Alternatives:
        """Those with these numbers, in this order."""
        outcomes, _ = ranges(self.start, which)
        start = offsets(self.start[which + 1] - self.start[which])
        return Alternatives(self.rows[which], start, self.step[outcomes], self.probability[outcomes])

    @classmethod
    def concatenate(cls, parts: Sequence[Alternatives]) -> Alternatives:
        """All alternatives of the parts, part after part."""
        if len(parts) == 1:
            return parts[0]
        offset = np.cumsum([0, *(len(part.probability) for part in parts)])
        starts = [part.start[:-1] + shift for part, shift in zip(parts, offset, strict=False)]
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([*starts, offset[-1:]]),
            np.concatenate([part.step for part in parts]),
            np.concatenate([part.probability for part in parts]),
        )


EnabledPart = list[tuple[CompiledCommand, BoolArray]]
"""Commands of a module, and in which rows they are enabled."""


def alternatives_of(part: EnabledPart, frame: StateFrame, rows: BoolArray | bool) -> list[Alternatives]:
    """What each command of a part does in some rows, where it does something."""
    result = (command.alternatives(frame, mask & rows) for command, mask in part)
    return [each for each in result if each is not None]


def by_row(parts: Sequence[Alternatives]) -> Alternatives:
    """The alternatives of all parts ordered by row; those of one row stay in the order of the parts."""
    everything = Alternatives.concatenate(parts)
    return everything if len(parts) == 1 else everything.take(np.argsort(everything.rows, kind="stable"))


def join(
    left: Alternatives, right: Alternatives, multiply: Callable[[IndexArray, IndexArray], IndexArray]
) -> Alternatives:
    """All pairs of alternatives of the same row; both sides are ordered by row."""
    pairs, outcomes = _count_pairs(left.rows, left.start, right.rows, right.start)
    rows: OffsetArray = np.empty(pairs, dtype=np.int64)
    start: OffsetArray = np.zeros(pairs + 1, dtype=np.int64)
    step: OffsetArray = np.empty((outcomes, left.step.shape[1]), dtype=np.int64)
    first, second = np.empty((2, outcomes), dtype=np.int32)
    _fill_pairs(left.arrays, right.arrays, (rows, start, step, first), second)
    return Alternatives(rows, start, step, multiply(first, second))


@kernel
def _count_pairs(
    left_rows: OffsetArray, left_start: OffsetArray, right_rows: OffsetArray, right_start: OffsetArray
) -> tuple[int, int]:
    pairs, outcomes, begin = 0, 0, 0
    for i in range(len(left_rows)):
        while begin < len(right_rows) and right_rows[begin] < left_rows[i]:
            begin += 1
        j = begin
        while j < len(right_rows) and right_rows[j] == left_rows[i]:
            pairs += 1
            outcomes += (left_start[i + 1] - left_start[i]) * (right_start[j + 1] - right_start[j])
            j += 1
    return pairs, outcomes


@kernel
def _fill_pairs(
    left: AlternativeArrays, right: AlternativeArrays, out: AlternativeArrays, second: IndexArray
) -> None:
    rows, start, step, first = out
    left_rows, left_start, left_step, left_probability = left
    right_rows, right_start, right_step, right_probability = right
    pair, write, begin = 0, 0, 0
    for i in range(len(left_rows)):
        while begin < len(right_rows) and right_rows[begin] < left_rows[i]:
            begin += 1
        j = begin
        while j < len(right_rows) and right_rows[j] == left_rows[i]:
            for a in range(left_start[i], left_start[i + 1]):
                for b in range(right_start[j], right_start[j + 1]):
                    for word in range(step.shape[1]):
                        step[write, word] = left_step[a, word] + right_step[b, word]
                    first[write] = left_probability[a]
                    second[write] = right_probability[b]
                    write += 1
            rows[pair] = left_rows[i]
            pair += 1
            start[pair] = write
            j += 1


# Which commands make up the choices of a state.
#
# A command that moves alone makes choices on its own. A synchronisation of several modules takes one enabled
# command of each, so an action that one of them blocks is not possible. Choices of a state come in the order
# in which the commands are written.

MOST_OUTCOMES = "TIGHTROPE_MOST_OUTCOMES"
_MOST_OUTCOMES = 2**24
"""Of commands that move together in one state, some gigabytes; that variable of the environment sets it."""


class TooWideError(Exception):
    """The states of a frame have too many outcomes for all of them to be looked at together."""


def most_outcomes() -> int:
    """The limit of outcomes in one state."""
    given = os.environ.get(MOST_OUTCOMES, "")
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 16 else _MOST_OUTCOMES


@dataclass(frozen=True, eq=False)
class CommandGroup:
    """Commands of one or more modules that move together; `parts` has one entry a module."""

    action: int
    parts: tuple[tuple[CompiledCommand, ...], ...]
    probabilities: Probabilities

    @property
    def has_rates(self) -> bool:
        """Whether it is a Markovian command, which moves alone."""
        return self.parts[0][0].has_rates

    def enabled(self, frame: StateFrame, relevant: BoolArray | None = None) -> list[EnabledPart]:
        """Part by part, perhaps of the relevant commands alone."""
        flag = itertools.repeat(True) if relevant is None else iter(relevant.tolist())
        return [
            [(c, mask) for c in commands if next(flag) and (mask := c.enabled(frame)) is not None]
            for commands in self.parts
        ]

    def alternatives(self, frame: StateFrame, relevant: BoolArray | None = None) -> Alternatives | None:
        """What the group can do; updates are evaluated only where every module takes part."""
        masks = self.enabled(frame, relevant)
        possible: BoolArray | bool = True
        if len(self.parts) > 1:
            possible = np.ones(frame.size, dtype=np.bool_)
            for part in masks:
                own = np.zeros(frame.size, dtype=np.bool_)
                for _, mask in part:
                    own |= mask
                possible &= own
                if not possible.any():
                    return None
            self._check_size(frame, masks, possible)
        result: Alternatives | None = None
        for part in masks:
            if not (enabled := alternatives_of(part, frame, possible)):
                return None
            result = self._join(result, by_row(enabled), part[0][0].position)
        return result

    def _check_size(self, frame: StateFrame, masks: list[EnabledPart], possible: BoolArray) -> None:
        """Count what the commands can do together before any of it is written out."""
        most = most_outcomes()
        if prod(sum(len(command.updates) for command, _ in part) for part in masks) * frame.size <= most:
            return
        choices, outcomes = possible.astype(np.float64), possible.astype(np.float64)
        for part in masks:
            choices *= np.sum([mask for _, mask in part], axis=0)
            outcomes *= np.sum([mask * float(len(command.updates)) for command, mask in part], axis=0)
        if outcomes.max() > most:
            row = int(np.argmax(outcomes))
            raise Complaint(
                f"the {len(masks)} modules that move together have {choices[row]:,.0f} choices with "
                f"{outcomes[row]:,.0f} outcomes in state {frame.describe(row)}, more than {most:,}",
                masks[0][0][0].position,
                f"give their commands different actions or stronger guards, or set {MOST_OUTCOMES} higher",
            )
        if outcomes.sum() > most and frame.size > 1:
            raise TooWideError

    def _join(self, left: Alternatives | None, right: Alternatives, position: Position) -> Alternatives:
        if left is None:
            return right
        try:
            return join(left, right, self.probabilities.product)
        except Complaint as complaint:
            raise Complaint(complaint.message, complaint.position or position, complaint.hint) from None


def groups(
    program: Program, space: StateSpace, probabilities: Probabilities
) -> tuple[tuple[CommandGroup, ...], tuple[str, ...]]:
    """The groups of a program in the order of their first commands, and the names of the actions."""
    guards = space.compiler()
    names = [UNLABELLED]
    for one in program.synchronisations:
        if one.action is not None and one.action not in names:
            names.append(one.action)
    made: dict[tuple[int, int], CompiledCommand] = {}

    def compiled(module: int, number: int) -> CompiledCommand:
        if (module, number) not in made:
            command = program.modules[module].commands[number]
            made[module, number] = CompiledCommand(command, space, guards, probabilities)
        return made[module, number]

    result: list[tuple[tuple[int, int], CommandGroup]] = []
    for one in program.synchronisations:
        numbers = [
            [(module, i) for i, c in enumerate(program.modules[module].commands) if c.action == action]
            for module, action in one.parts
        ]
        action = 0 if one.action is None else names.index(one.action)
        if len(numbers) == 1:
            result += [
                (place, CommandGroup(action, ((compiled(*place),),), probabilities)) for place in numbers[0]
            ]
        else:
            parts = tuple(tuple(compiled(*place) for place in part) for part in numbers)
            result.append((min(part[0] for part in numbers), CommandGroup(action, parts, probabilities)))
    result.sort(key=lambda pair: pair[0])
    return tuple(group for _, group in result), tuple(names)
