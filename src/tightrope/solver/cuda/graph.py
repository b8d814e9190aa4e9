"""Graph fixpoints on a device, round by round over all states at once.

The sets are those of `tightrope.model.graph.qualitative`: fixpoints of a monotone operator do not depend on
the order. States drawn in round r enter those of earlier rounds, so the round is the certificate's rank.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import BoolArray, DeviceArray, IndexArray, OffsetArray
from tightrope.solver.cuda.model import DeviceModel

TURN = object()
ROUNDS = 8
"""Rounds between two looks at whether anything changes."""


class DeviceGraph:
    """Answers the questions of `tightrope.model.graph.qualitative` on the device (a `GraphEngine`)."""

    def __init__(self, model: DeviceModel):
        self._model, self._device = model, model.device

    def attract(
        self,
        transitions: BoolArray | None,
        within: BoolArray,
        open_choice: BoolArray,
        agent_joins: bool,
        nature_joins: bool,
        drawn: BoolArray,
        rank: IndexArray,
        witness: OffsetArray,
    ) -> int:
        """See `attractor.attract`; `rank` is the round in which a state was drawn."""
        level = self._level_of(drawn)
        choices = self._up(witness)
        fixed = (self._flags(transitions), self._flags(within), self._flags(open_choice))
        self.draw(*fixed, agent_joins, nature_joins, level, choices)
        found = self._device.download(level)
        new = (found > 0) & ~drawn
        np.copyto(rank, found, where=new)
        self._device.download(choices, witness)
        drawn |= new
        return int(np.count_nonzero(new))

    def draw(
        self,
        transitions: DeviceArray,
        within: DeviceArray,
        open_choice: DeviceArray,
        agent_joins: bool,
        nature_joins: bool,
        level: DeviceArray,
        witness: DeviceArray,
    ) -> None:
        """The same on arrays of the device; `level` is 0 for those drawn at the start, −1 for the others."""
        fixed = [transitions, within, open_choice, np.bool_(agent_joins), np.bool_(nature_joins)]
        self._rounds("attract", *fixed, TURN, level, witness)

    def settle(
        self,
        transitions: BoolArray | None,
        exempt: BoolArray,
        agent_joins: bool,
        nature_joins: bool,
        within: BoolArray,
        open_choice: BoolArray,
    ) -> int:
        """See `attractor.settle`."""
        inside, choices = self._flags(within), self._flags(open_choice)
        fixed = self._flags(transitions), self._flags(exempt)
        joins = np.bool_(agent_joins), np.bool_(nature_joins)
        self._rounds("settle", *fixed, *joins, inside, choices)
        before = int(np.count_nonzero(within))
        within[:] = self._device.download(inside).view(np.bool_)
        open_choice[:] = self._device.download(choices).view(np.bool_)
        return before - int(np.count_nonzero(within))

    def keep_or_sink(
        self,
        transitions: BoolArray | None,
        open_choice: BoolArray,
        agent_avoids: bool,
        nature_avoids: bool,
        found: BoolArray,
        inside: BoolArray,
        witness: OffsetArray,
    ) -> None:
        """The greatest subset of `inside` where the avoiders enter `found` or stay inside surely."""
        remaining, choices = self._flags(inside), self._up(witness)
        fixed = self._flags(transitions), self._flags(open_choice)
        joins = np.bool_(agent_avoids), np.bool_(nature_avoids)
        sunk = self._flags(found)
        self._rounds("keep_or_sink", *fixed, *joins, sunk, remaining, choices)
        inside[:] = self._device.download(remaining).view(np.bool_)
        witness[:] = self._device.download(choices)

    def only_loops(self, open_choice: BoolArray) -> BoolArray:
        """States without a way out."""
        out = self._device.xp.zeros(self._model.structure.states, np.uint8)
        self._model.each("only_loops", None, [self._flags(open_choice), out])
        result: BoolArray = self._device.download(out).view(np.bool_)
        return result

    def levels(self, open_choice: BoolArray, done: BoolArray) -> IndexArray:
        """Longest way from each state to the `done` ones (level 0); −1 where a cycle can be entered."""
        level = self._level_of(done)
        choices = self._flags(open_choice)
        self._rounds("peel", choices, TURN, level)
        result: IndexArray = self._device.download(level)
        return result

    def _rounds(self, kernel: str, *arguments: object) -> None:
        """Launch a kernel until nothing changes, with the number of the round in place of `TURN`."""
        turn = 0
        while True:
            changed = self._device.xp.zeros(1, np.int32)
            for _ in range(ROUNDS):
                turn += 1
                last = turn % ROUNDS == 0
                if last:
                    changed = self._device.xp.zeros(1, np.int32)
                given = [np.int32(turn) if each is TURN else each for each in arguments]
                self._model.each(kernel, None, [*given, changed])
            if not int(self._device.download(changed)[0]):
                return

    def _level_of(self, done: BoolArray) -> DeviceArray:
        """0 for those that are done, −1 for the others."""
        return self._up(done).astype(np.int32) - np.int32(1)

    def _up(self, values: DeviceArray) -> DeviceArray:
        return self._device.upload(values)

    def _flags(self, mask: BoolArray | None) -> DeviceArray:
        return None if mask is None else self._device.upload(np.ascontiguousarray(mask).view(np.uint8))
