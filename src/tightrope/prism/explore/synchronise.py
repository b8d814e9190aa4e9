"""Which commands make up the choices of a state.

A command that moves alone makes choices on its own. A synchronisation of several modules takes one enabled
command of each, so an action that one of them blocks is not possible. Choices of a state come in the order in
which the commands are written.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from math import prod

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
            self._check_size(frame, masks, possible)
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

    def _check_size(
        self, frame: Frame, masks: list[list[tuple[CompiledCommand, BoolArray]]], possible: BoolArray
    ) -> None:
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
