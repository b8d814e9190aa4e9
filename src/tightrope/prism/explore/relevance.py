"""Which commands can be enabled somewhere in a frame, without evaluating their guards.

Generated models have thousands of commands, `[] s=17 & … -> …`, of which a frontier needs a few. A
guard's single-variable conjuncts give each command a box of values (see `guard_ranges`); a command
whose box misses the values of the frame is left out. The variable that most commands fix to one
value is looked up directly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.synchronise import Group

_MANY = 24
"""With fewer commands it is not worth the while."""


class Relevance:
    """`groups(frame)`: those to run, each with the commands of it that matter."""

    def __init__(self, groups: Sequence[Group], ranges: Sequence[tuple[int, int]]):
        self._groups = groups
        commands = [command for group in groups for part in group.parts for command in part]
        self._few = len(commands) < _MANY
        if self._few:
            return
        boxes = np.array([command.ranges for command in commands], dtype=np.int64)
        self._low, self._high = boxes[:, :, 0], boxes[:, :, 1]
        counts = [sum(len(part) for part in group.parts) for group in groups]
        self._start: OffsetArray = np.cumsum([0, *counts])
        fixed = (self._low == self._high) & np.array([low != high for low, high in ranges])
        self._variable = int(fixed.sum(axis=0).argmax())
        is_fixed = fixed[:, self._variable]
        self._free: BoolArray = ~is_fixed
        self._fixed: OffsetArray = np.flatnonzero(is_fixed)
        self._fixed = self._fixed[np.argsort(self._low[self._fixed, self._variable], kind="stable")]
        self._value: OffsetArray = self._low[self._fixed, self._variable]

    def groups(self, frame: Frame) -> list[tuple[Group, BoolArray | None]]:
        """In order; the flags say which commands of the group matter, None means all."""
        if self._few:
            return [(group, None) for group in self._groups]
        flags = self._free.copy()
        present = np.unique(frame.column(self._variable)).astype(np.int64)
        first = np.searchsorted(self._value, present)
        length = np.searchsorted(self._value, present, side="right") - first
        within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        flags[self._fixed[np.repeat(first, length) + within]] = True
        open_commands = np.flatnonzero(flags)
        columns = [frame.column(variable) for variable in range(self._low.shape[1])]
        lowest = np.array([int(column.min()) for column in columns])
        highest = np.array([int(column.max()) for column in columns])
        touched = (self._low[open_commands] <= highest) & (self._high[open_commands] >= lowest)
        flags[open_commands] = touched.all(axis=1)
        owners = np.searchsorted(self._start, np.flatnonzero(flags), side="right") - 1
        return [
            (self._groups[number], flags[self._start[number] : self._start[number + 1]])
            for number in np.unique(owners).tolist()
        ]
