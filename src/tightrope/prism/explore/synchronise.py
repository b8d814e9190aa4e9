"""Which commands make up the choices of a state.

A command that moves alone makes choices on its own. A synchronisation of several modules takes one enabled
command of each, so an action that one of them blocks is not possible. Choices of a state come in the order in
which the commands are written.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from tightrope.model.structure import UNLABELLED
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.alternatives import Alternatives, by_row, join
from tightrope.prism.explore.compiled_command import CompiledCommand
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.probabilities import Probabilities
from tightrope.prism.explore.state_space import StateSpace
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Position


@dataclass(frozen=True, eq=False)
class Group:
    """Commands of one or more modules that move together; `parts` has one entry a module."""

    action: int
    parts: tuple[tuple[CompiledCommand, ...], ...]
    probabilities: Probabilities

    def alternatives(self, frame: Frame, relevant: BoolArray | None = None) -> Alternatives | None:
        """What the group can do; updates are evaluated only where every module takes part.

        `relevant` has one flag a command; those without it are enabled in no row.
        """
        flag = itertools.repeat(True) if relevant is None else iter(relevant.tolist())
        masks = [
            [(c, mask) for c in commands if next(flag) and (mask := c.enabled(frame)) is not None]
            for commands in self.parts
        ]
        possible: BoolArray | None = None
        if len(self.parts) > 1:
            possible = np.ones(frame.size, dtype=np.bool_)
            for part in masks:
                own = np.zeros(frame.size, dtype=np.bool_)
                for _, mask in part:
                    own |= mask
                possible &= own
                if not possible.any():
                    return None
        result: Alternatives | None = None
        for part in masks:
            enabled = [
                found
                for command, mask in part
                if (found := command.alternatives(frame, mask if possible is None else mask & possible))
            ]
            if not enabled:
                return None
            result = self._join(result, by_row(enabled, frame.size), part[0][0].position)
        return result

    def _join(self, left: Alternatives | None, right: Alternatives, position: Position) -> Alternatives:
        if left is None:
            return right
        try:
            return join(left, right, self.probabilities.product)
        except Complaint as complaint:
            raise Complaint(complaint.message, complaint.position or position, complaint.hint) from None


def groups(
    program: Program, space: StateSpace, probabilities: Probabilities
) -> tuple[tuple[Group, ...], tuple[str, ...]]:
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

    result: list[tuple[tuple[int, int], Group]] = []
    for one in program.synchronisations:
        numbers = [
            [(module, i) for i, c in enumerate(program.modules[module].commands) if c.action == action]
            for module, action in one.parts
        ]
        action = 0 if one.action is None else names.index(one.action)
        if len(numbers) == 1:
            result += [(place, Group(action, ((compiled(*place),),), probabilities)) for place in numbers[0]]
        else:
            parts = tuple(tuple(compiled(*place) for place in part) for part in numbers)
            result.append((min(part[0] for part in numbers), Group(action, parts, probabilities)))
    result.sort(key=lambda pair: pair[0])
    return tuple(group for _, group in result), tuple(names)
