"""Deep and narrow state spaces: state after state in one compiled loop, instead of frame after frame.

Counters and clocks make state spaces of ten thousand levels with a few states each, where running every
command by NumPy costs far more than the states themselves. Here guards and updates are `instructions`, and
one kernel (`tightrope.prism.explore.narrow_kernel`) decodes a state, finds its choices, numbers their
successors and writes the rows, in the very order in which whole frames do it. It learns nothing: a
probability, product or sum that has not been met before, a value out of range and whatever else is not
routine ends it at that state, and the next frame is explored as usual, which computes what was missing or
says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from tightrope.numerics.arrays import OffsetArray
from tightrope.prism.explore.assemble import Assembler
from tightrope.prism.explore.compiled_command import CompiledCommand
from tightrope.prism.explore.deferred import Deferred, Operation
from tightrope.prism.explore.frame import Boolean
from tightrope.prism.explore.instructions import Instructions, Untranslatable
from tightrope.prism.explore.key_index import KeyIndex
from tightrope.prism.explore.narrow_kernel import (
    CHOICES,
    COUNT,
    DEAD,
    FULL,
    MOST,
    STATES,
    STOPPED,
    TRANSITIONS,
    WIDTH,
    WRITTEN,
    Known,
    Output,
    Workspace,
    index_pairs,
    pair_keys,
    walk,
)
from tightrope.prism.explore.probabilities import PolynomialProbabilities
from tightrope.prism.explore.state_space import StateSpace
from tightrope.prism.explore.synchronise import Group

NARROW = 1024
"""So many waiting states, at most, are explored one by one."""

_MANY_COMMANDS = 200
"""Programs with more commands are left to frames, which pick the relevant ones first."""

_MANY_COMBINATIONS = 2**20
"""Combinations of variables that the probabilities of all commands may depend on."""

_OUTPUT = 2**15
"""Transitions that the kernel writes before they are moved to the model."""


_REFERENCES = {
    "program": ("group", "group", "variable", "variable", "instruction", "instruction"),
    "variable": (),
    "group": ("part", "part"),
    "part": ("command", "command"),
    "command": ("instruction", "instruction", "update", "update", "factor", "factor"),
    "factor": (),
    "update": ("instruction", "instruction", "assignment", "assignment"),
    "assignment": (),
    "instruction": (),
}
"""The kinds of rows of a program, in order, and what their first columns refer to."""


class NarrowSearch:
    """Explores one state after the other, for as long as there is nothing to learn."""

    def __init__(
        self,
        space: StateSpace,
        groups: Sequence[Group],
        states: KeyIndex,
        assembler: Assembler,
        stop: Boolean | None,
        most: int | None,
    ):
        """Raises `Untranslatable` for programs that only whole frames can run. `most`: a limit of states."""
        self._most = most
        self._states = states
        self._assembler = assembler
        if not isinstance(assembler.probabilities, PolynomialProbabilities):
            raise Untranslatable
        self._deferred = assembler.probabilities.deferred
        listing = _Listing(space)
        self._program = listing.program(groups, stop)
        self._commands = listing.commands
        self._work = Workspace(
            listing.instructions.registers,
            np.zeros((4, len(self._program)), dtype=np.int64),
            np.zeros((3, MOST, space.layout.words + 1), dtype=np.int64),
        )
        self._output = Output(*(np.empty((_OUTPUT, 2), dtype=np.int32) for _ in range(3)))
        self._known = Known(np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int64))
        self._met = self._combined = -1

    def run(self) -> int:
        """Explore until something is to be learned or many states wait; the number of states explored."""
        begin = self._assembler.rows_done
        self._learn()
        while True:
            position = np.array([self._assembler.rows_done, len(self._states), *(0,) * 5], dtype=np.int64)
            reason = walk(
                self._program,
                self._known,
                self._states.table,
                self._work,
                self._output,
                position,
                self._assembler.is_chain,
                4 * NARROW,
            )
            self._states.adopt(int(position[COUNT]))
            self._move(int(position[STATES]), int(position[CHOICES]), int(position[TRANSITIONS]))
            if reason == FULL:
                self._states.grow()
            elif reason != WRITTEN or (self._most is not None and len(self._states) > self._most):
                return self._assembler.rows_done - begin

    def _move(self, states: int, choices: int, transitions: int) -> None:
        """What the kernel has written, to the model."""
        out = self._output
        mark = out.states[:states, 1]
        self._assembler.append(
            out.states[:states, 0],
            out.choices[:choices, 0],
            out.transitions[:transitions, 0],
            out.transitions[:transitions, 1],
            out.choices[:choices, 1],
            mark == DEAD,
            mark == STOPPED,
        )

    def _learn(self) -> None:
        """Take over what frames have found out since the last time."""
        met = sum(len(command.memory.known) for command in self._commands)
        if met != self._met:
            self._met = met
            self._known = self._known._replace(probabilities=self._probabilities())
        sums, products = (self._deferred.pairs(each)[0] for each in (Operation.SUM, Operation.PRODUCT))
        if len(sums) + len(products) != self._combined:
            self._combined = len(sums) + len(products)
            self._known = self._known._replace(pairs=_pairs(self._deferred))

    def _probabilities(self) -> OffsetArray:
        """The probabilities of all commands as `Known` holds them."""
        sizes = [command.memory.layout.size for command in self._commands]
        first, length = 0, sum(sizes)
        lookup: OffsetArray = np.full(length, -1, dtype=np.int64)
        rows = [lookup]
        for command, size in zip(self._commands, sizes, strict=True):
            numbers = command.memory.known
            place = length + np.arange(len(numbers)) * numbers.shape[1]
            lookup[first + command.memory.keys_known[:, 0]] = place
            rows.append(numbers.reshape(-1).astype(np.int64))
            first += size
            length += numbers.size
        return np.concatenate(rows)


def _pairs(deferred: Deferred) -> OffsetArray:
    """The combined pairs as `Known` holds them."""
    keys, results = [], []
    for operation in (Operation.SUM, Operation.PRODUCT):
        index, numbers = deferred.pairs(operation)
        left, right = index.keys[:, 0] >> 32, index.keys[:, 0] & 0xFFFFFFFF
        keys.append(pair_keys(operation is Operation.SUM, left, right))
        results.append(numbers.astype(np.int64))
    return index_pairs(np.concatenate(keys), np.concatenate(results))


class _Listing:
    """Writes groups of commands down as the table of a program."""

    def __init__(self, space: StateSpace):
        layout = space.layout
        self.instructions = Instructions(len(space.variables))
        self.commands: list[CompiledCommand] = []
        self._rows: dict[str, list[Sequence[int]]] = {name: [] for name in _REFERENCES}
        self._rows["variable"] = np.stack(
            [layout.word, layout.stride, layout.radix, layout.low], axis=1
        ).tolist()
        self._combinations = 0

    def program(self, groups: Sequence[Group], stop: Boolean | None) -> OffsetArray:
        rows = self._rows
        for group in groups:
            first_part = len(rows["part"])
            for part in group.parts:
                first = len(self.commands)
                for command in part:
                    if not command.never:
                        self._add_command(command)
                rows["part"].append((first, len(self.commands)))
            rows["group"].append((first_part, len(rows["part"]), group.action))
        stopping = (-1, -1) if stop is None else self.instructions.condition(stop)
        rows["program"].append((0, len(groups), 0, len(rows["variable"]), *stopping))
        rows["instruction"] = self.instructions.code.tolist()
        return self._join()

    def _add_command(self, command: CompiledCommand) -> None:
        self.commands.append(command)
        layout, rows = command.memory.layout, self._rows
        self._combinations += layout.size
        if layout.words > 1 or self._combinations > _MANY_COMBINATIONS or len(self.commands) > _MANY_COMMANDS:
            raise Untranslatable
        guard = self.instructions.condition(command.guard)
        updates, factors = len(rows["update"]), len(rows["factor"])
        for assignments in command.updates:
            first = len(rows["assignment"])
            checked = [each.checked for each in assignments if each.checked is not None]
            begin, end, found = self.instructions.values([*(each.change for each in assignments), *checked])
            rest = iter(found[len(assignments) :])
            for register, each in zip(found[: len(assignments)], assignments, strict=True):
                to_check = -1 if each.checked is None else next(rest)
                rows["assignment"].append((register, each.word, to_check, *each.bounds))
            rows["update"].append((begin, end, first, len(rows["assignment"])))
        for variable, low, stride in zip(command.memory.variables, layout.low, layout.stride, strict=True):
            rows["factor"].append((variable, int(low), int(stride)))
        own = (updates, len(rows["update"]), factors, len(rows["factor"]))
        rows["command"].append((*guard, *own, self._combinations - layout.size, layout.size))

    def _join(self) -> OffsetArray:
        """All rows in one table, with references to rows of it."""
        base = dict(zip(self._rows, accumulate(map(len, self._rows.values()), initial=0), strict=False))
        table: OffsetArray = np.zeros((sum(map(len, self._rows.values())), WIDTH), dtype=np.int64)
        for name, rows in self._rows.items():
            for number, row in enumerate(rows, base[name]):
                table[number, : len(row)] = row
            for column, target in enumerate(_REFERENCES[name]):
                own = table[base[name] : base[name] + len(rows), column]
                own[own >= 0] += base[target]
        return table
