"""A kernel's backups on a device, for certificates, horizons and games, and the fixpoints of its graph.

`safe_choices` rounds as the host's kernels do, operation by operation: over boxes the two agree bit by bit.
Over rectangular sets a walk may end at another vertex; both values are safe.

Fixpoints run round by round over all states at once. The sets are those of
`tightrope.model.graph.qualitative`: fixpoints of a monotone operator do not depend on the order. States drawn
in round r enter those of earlier rounds, so the round is the certificate's rank.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tightrope.errors import InputError
from tightrope.model.graph.support import Joins, Ranked, Support
from tightrope.numerics.arrays import BoolArray, DeviceArray, FloatArray, IndexArray
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.operator import Backups
from tightrope.solver.bellman.rectangular import RectangularOperator
from tightrope.solver.cuda.device import Device
from tightrope.solver.cuda.model import DeviceModel, DeviceSystem
from tightrope.solver.equations.system import System

TURN = object()
ROUNDS = 8
"""Rounds between two looks at whether anything changes."""


class DeviceGraph:
    """Answers the questions of `tightrope.model.graph.qualitative` on the device (a `GraphEngine`)."""

    def __init__(self, model: DeviceModel):
        self._model, self._device = model, model.device

    def attract(
        self, usable: BoolArray | None, joins: Joins, within: BoolArray, choices: BoolArray, ranked: Ranked
    ) -> int:
        """The rank is the round in which a state was drawn."""
        level, witness = self._level_of(ranked.states), self._up(ranked.witness)
        self.draw(self._flags(usable), joins, self._flags(within), self._flags(choices), (level, witness))
        result = self._device.download(level)
        new = (result > 0) & ~ranked.states
        np.copyto(ranked.rank, result, where=new)
        self._device.download(witness, ranked.witness)
        ranked.states[new] = True
        return int(np.count_nonzero(new))

    def draw(
        self,
        usable: DeviceArray,
        joins: Joins,
        within: DeviceArray,
        choices: DeviceArray,
        ranked: tuple[DeviceArray, DeviceArray],
    ) -> None:
        """The same on arrays of the device; the level is 0 of those drawn at the start, −1 of the others."""
        level, witness = ranked
        self._rounds("attract", usable, within, choices, *map(np.bool_, joins), TURN, level, witness)

    def settle(
        self, usable: BoolArray | None, joins: Joins, exempt: BoolArray, within: BoolArray, choices: BoolArray
    ) -> int:
        inside, open_choice = self._flags(within), self._flags(choices)
        fixed = self._flags(usable), self._flags(exempt)
        self._rounds("settle", *fixed, *map(np.bool_, joins), inside, open_choice)
        before = int(np.count_nonzero(within))
        within[:] = self._device.download(inside).view(np.bool_)
        choices[:] = self._device.download(open_choice).view(np.bool_)
        return before - int(np.count_nonzero(within))

    def keep_or_sink(
        self, usable: BoolArray | None, avoids: Joins, choices: BoolArray, inside: BoolArray, layers: Ranked
    ) -> None:
        remaining, witness = self._flags(inside), self._up(layers.witness)
        fixed = self._flags(usable), self._flags(choices)
        sunk = self._flags(layers.states)
        self._rounds("keep_or_sink", *fixed, *map(np.bool_, avoids), sunk, remaining, witness)
        inside[:] = self._device.download(remaining).view(np.bool_)
        layers.witness[:] = self._device.download(witness)

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


class CudaOperator:
    """The backups of `host` on `device`."""

    def __init__(self, host: IntervalOperator | RectangularOperator, device: Device):
        self.device = device
        self.model = DeviceModel(host, device)
        self.structure, self.lower, self.upper = host.structure, host.lower, host.upper

    @cached_property
    def graph(self) -> DeviceGraph:
        return DeviceGraph(self.model)

    @cached_property
    def support(self) -> Support:
        """The graph of the model, whose fixpoints the device computes."""
        return Support(self.structure, self.lower, self.upper, engine=self.graph)

    def safe_choices(self, system: System, values: FloatArray, upward: bool) -> FloatArray:
        """Φ_c(values) for every choice, rounded to the side of `upward`."""
        out = self.device.xp.empty(self.structure.choices)
        arguments = [self.device.upload(values), np.bool_(upward), out]
        self.repeat("safe_choices", arguments, DeviceSystem(self.device, system, None))
        result: FloatArray = self.device.download(out)
        return result

    def optimal_transitions(self, values: FloatArray, maximise: bool) -> BoolArray:
        """Transitions of some optimal answer of nature; over a region those of one answer."""
        if self.lower is self.upper:
            return self.support.possible
        out = self.device.xp.empty(self.structure.transitions, np.uint8)
        self.repeat("optimal", [self.device.upload(values), np.bool_(maximise), None, out])
        result: BoolArray = self.device.download(out).view(np.bool_)
        return result

    def answer(self, values: FloatArray, maximise: bool) -> FloatArray:
        """Nature's optimal distribution at every choice."""
        out = self.device.xp.empty(self.structure.transitions)
        self.repeat("answers", [self.device.upload(values), np.bool_(maximise), out])
        result: FloatArray = self.device.download(out)
        return result

    def repeat(self, name: str, arguments: list[object], system: DeviceSystem | None = None) -> None:
        """Launch until no walk asks for a vertex."""
        while True:
            self.model.each(name, system, arguments)
            if not self.model.expanded():
                return


def place(kernel: Backups, device: Device) -> CudaOperator:
    """The kernel laid out on the device."""
    if not isinstance(kernel, IntervalOperator | RectangularOperator):
        raise InputError(f"no GPU kernels for sets of the kind {type(kernel).__name__}")
    return CudaOperator(kernel, device)
