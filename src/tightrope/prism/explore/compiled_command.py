"""One command, run on all states of a frame at once.

The guard is evaluated on every row; probabilities and updates on those where it holds, in a graph
whose ranges are those that the guard leaves.

The probabilities of a command, remembered for every combination of variables they depend on.

A command's probabilities depend on few variables, so they are computed once for each distinct
combination of their values and looked up after that: exact arithmetic costs nothing a state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.prism.explore.alternatives import Alternatives
from tightrope.prism.explore.compile import Compiler
from tightrope.prism.explore.deferred import Growing
from tightrope.prism.explore.frame import Boolean, Column, Frame, Integer, machine
from tightrope.prism.explore.guard_ranges import ranges_under
from tightrope.prism.explore.key_index import KeyIndex
from tightrope.prism.explore.probabilities import ZERO, Distribution, Probabilities
from tightrope.prism.explore.ratio import Number, integers
from tightrope.prism.explore.state_space import KeyLayout, StateSpace
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Assignment, Binary, Command, Name, Position

_PATIENCE = 6
_FEW, _SHARE = 1024, 16
"""After `_PATIENCE` rounds of new combinations, those still missing are evaluated together if all
in all there are `_FEW`, or `_SHARE` times as many as are known: a round costs more than a combination."""


class DistributionMemory:
    """The probabilities of a command, for every combination of the variables they depend on.

    `has_zero[u]` says that update u had probability 0 in some combination met so far.
    """

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

    def numbers(self, frame: Frame) -> IndexArray:
        """The number of every update's probability (columns) in every row."""
        if not self.variables:
            if not len(self._known):
                self._remember(self._distribution.evaluate(frame.select(np.zeros(1, dtype=np.int64))))
            return np.repeat(self._known.values, frame.size, axis=0)
        keys = self.layout.encode([frame.column(v) for v in self.variables], frame.size)
        combination = self._index.insert(keys)
        if len(self._index) > len(self._known):
            self._learn(frame, combination)
        numbers: IndexArray = self._known.values[combination]
        return numbers

    def _learn(self, frame: Frame, combination: IndexArray) -> None:
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
            self._index.insert(self.layout.all_keys())
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
            self._remember(self._distribution.evaluate(Frame(columns, values.shape[1], describe)))

    def _remember(self, numbers: IndexArray) -> None:
        self._known.append(numbers)
        self.has_zero |= (numbers == ZERO).any(axis=0)


class CompiledCommand:
    """`enabled(frame)` says where the guard holds, `alternatives` what the command does there."""

    def __init__(self, command: Command, space: StateSpace, guards: Compiler, probabilities: Probabilities):
        self.position = command.position
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

    def enabled(self, frame: Frame) -> BoolArray | None:
        """In which rows the guard holds; None where in no state at all."""
        return None if self.never else frame.mask(self.guard.value(frame))

    def alternatives(self, frame: Frame, enabled: BoolArray) -> Alternatives | None:
        rows = np.flatnonzero(enabled)
        if not len(rows):
            return None
        inner = frame.select(rows)
        probability = self.memory.numbers(inner)
        step: OffsetArray = np.zeros((len(rows), len(self.updates), self._words), dtype=np.int64)
        for column, assignments in enumerate(self.updates):
            possible: Frame | None = inner
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
    """`(x' = value)` as a step of the key, checked against the range of x where that is needed.

    `change` computes the step, `checked` the value that must lie within `bounds`, if it could lie elsewhere.
    """

    def __init__(self, assignment: Assignment, command: Command, space: StateSpace, compiler: Compiler):
        self._command = f"command [{command.action or ''}]"
        number = space.number[assignment.name]
        self._variable = space.variables[number]
        self._position: Position = assignment.position
        self.word = int(space.layout.word[number])
        graph = compiler.graph
        compiled = compiler.compile(assignment.value)
        if isinstance(compiled, Boolean):
            value = graph.choose(compiled, graph.constant(1), graph.constant(0))
        elif isinstance(compiled, Number) and compiled.denominator.constant == 1:
            value = compiled.numerator
        else:
            raise Complaint(f"'{assignment.name}' needs an integer", assignment.position)
        low, high = self._variable.low, self._variable.high
        self.bounds = low, high
        self.checked = None if low <= value.low and value.high <= high and not value.fails else value
        change = _increment(assignment, compiler)
        if change is None:
            change = graph.subtract(value, _as_integer(number, space, compiler))
        self.change = graph.multiply(graph.constant(int(space.layout.stride[number])), change)

    def step(self, frame: Frame) -> OffsetArray | int:
        if self.checked is not None:
            self._check(integers(self.checked, frame), frame)
        result: OffsetArray | int = self.change.value(frame)
        # In range, so the step fits whatever the bounds of the computation were.
        return machine(result) if self.change.wide else result

    def _check(self, values: OffsetArray, frame: Frame) -> None:
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
