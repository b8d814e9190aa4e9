"""Which commands make up the choices of a state.

A command without an action, or with one that no other module has, makes choices on its own. An
action that several modules have takes one enabled command of each: all modules with the action in
their alphabet must take part, so an action that one of them blocks is not possible. Choices of a
state come in the order in which the commands are written.
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
from tightrope.prism.parse.syntax import Command, Position


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
            result = self._joined(result, by_row(enabled, frame.size), part[0][0].position)
        return result

    def _joined(self, left: Alternatives | None, right: Alternatives, position: Position) -> Alternatives:
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
    alphabet = [{command.action for command in module.commands} - {None} for module in program.modules]
    names = [UNLABELLED]
    for module in program.modules:
        for command in module.commands:
            if command.action is not None and command.action not in names:
                names.append(command.action)

    def compiled(command: Command) -> CompiledCommand:
        return CompiledCommand(command, space, guards, probabilities)

    result: list[Group] = []
    done: set[str] = set()
    for module in program.modules:
        for command in module.commands:
            action = command.action
            if action is None:
                result.append(Group(0, ((compiled(command),),), probabilities))
                continue
            sharing = [m for m, own in zip(program.modules, alphabet, strict=True) if action in own]
            if len(sharing) == 1:
                result.append(Group(names.index(action), ((compiled(command),),), probabilities))
            elif action not in done:
                done.add(action)
                parts = tuple(
                    tuple(compiled(c) for c in member.commands if c.action == action) for member in sharing
                )
                result.append(Group(names.index(action), parts, probabilities))
    return tuple(result), tuple(names)
