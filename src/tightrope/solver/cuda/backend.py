"""A GPU as the place where a model is solved.

What differs from the CPU is how the order is found: levels of the acyclic part come from rounds on the device
and are backed up level by level, one launch for each and segment; all other states form one block (`block`),
since a device sweeps many components as fast as one. Whether any end component could be idled in is asked of
the device first; only if so are the components found, on the host. Masks and bounds that certificates are
made of stay there; the policy, the ranking and the verdict come back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.solver.cuda.block import CudaBlock
from tightrope.solver.cuda.kernel import CudaKernel, place
from tightrope.solver.cuda.model import SystemArrays
from tightrope.solver.equations.equations import Equations
from tightrope.solver.equations.system import System
from tightrope.solver.iteration.backend import Backend, BlockBackend, Judgement, Portion, Schedule
from tightrope.solver.kernels.kernel import Backups, Kernel

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class CudaPortion:
    """States above level 0, level after level, or those below, which are on cycles or lead there."""

    level: IndexArray
    is_cyclic: bool
    is_large: bool = True


class CudaBackend:
    """The host's kernel, and the same on the device."""

    def __init__(self, kernel: Kernel, there: CudaKernel) -> None:
        self.kernel, self.there, self._device = kernel, there, there.device
        self.xp = self._device.xp
        self._arrays: SystemArrays | None = None

    def _arrays_of(self, system: System) -> SystemArrays:
        """Sent once for steps that follow each other."""
        if self._arrays is None or self._arrays.system is not system:
            self._arrays = SystemArrays(self._device, system)
        return self._arrays

    @property
    def backups(self) -> Backups:
        return self.there

    @property
    def support(self) -> Support:
        return self.there.support

    def upload(self, of_host: Any) -> Any:
        return self._device.upload(of_host)

    def download(self, values: Any) -> Any:
        return self._device.download(values)

    def beside(self, kernel: Kernel) -> Backend:
        return CudaBackend(kernel, place(kernel, self._device))

    def run_together(self, tasks: Sequence[Callable[[int], T]]) -> list[T]:
        return [task(0) for task in tasks]

    def find_loops(self, system: System) -> BoolArray:
        return self.there.graph.only_loops(system.enabled)

    def schedule(self, system: System, settled: BoolArray) -> Schedule:
        level = self.there.graph.levels(system.enabled, settled)
        lowest, last = int(level.min(initial=0)), int(level.max(initial=0))
        parts = [CudaPortion(level, False)] if last > 0 else []
        if lowest < 0:
            parts.append(CudaPortion(level, True))
        return Schedule([[part] for part in parts], None if lowest < 0 else level.astype(np.int64))

    def schedule_acyclic(self, system: System, settled: BoolArray) -> Schedule | None:
        found = self.schedule(system, settled)
        return None if found.ranking is None else found

    def may_idle(self, system: System, settled: BoolArray) -> bool:
        if len(system.reward) and system.smallest_reward > 0:
            return False
        idle = system.enabled & (system.reward == 0) if len(system.reward) else system.enabled.copy()
        staying = ~settled
        self.there.graph.settle(None, np.zeros(len(staying), np.bool_), True, True, staying, idle)
        return bool(staying.any())

    def back_up(
        self, system: System, portion: Portion, lower: FloatArray, upper: FloatArray, policy: OffsetArray
    ) -> None:
        assert isinstance(portion, CudaPortion)
        device, model, level = self._device, self.there.model, portion.level
        last = int(level.max(initial=0))
        equations = model.system(replace(system, leader=np.arange(len(level), dtype=np.int32)), None)
        low, high, chosen = device.upload(lower), device.upload(upper), device.upload(policy)
        queues = []
        for rows in model.layout.segments:
            of_row = level[rows.host_states(device)]
            order = np.argsort(of_row, kind="stable").astype(np.int32)
            ends = np.searchsorted(of_row[order], np.arange(last + 1), side="right")
            queues.append((device.upload(order), ends))
        for turn in range(1, last + 1):
            for index, (order, ends) in enumerate(queues):
                begin, end = int(ends[turn - 1]), int(ends[turn])
                if end > begin:
                    arguments = [order[begin:end], np.int64(end - begin), low, high, chosen]
                    while True:
                        model.one(index, "backward", equations, arguments)
                        if not model.expanded():
                            break
        lower[:], upper[:] = device.download(low), device.download(high)
        policy[:] = device.download(chosen)

    def open_block(
        self, equations: Equations, system: System, portion: Portion, lower: FloatArray, worker: int
    ) -> BlockBackend:
        assert isinstance(portion, CudaPortion)
        return CudaBlock(self.there, system, portion.level < 0, self._arrays_of(system))

    def judge(self, equations: Equations, lower: Any, upper: Any) -> Judgement:
        xp, system, structure = self.xp, equations.system, equations.system.structure
        enabled = None if system.enabled.all() else self.upload(system.enabled.view(np.uint8))
        good, slack = xp.empty(structure.choices, np.uint8), xp.empty(structure.choices, np.uint8)
        low_holds, high_holds = xp.empty(structure.states, np.bool_), xp.empty(structure.states, np.bool_)
        policy = xp.empty(structure.states, np.int64)
        owners_maximise = np.bool_(equations.owners_maximise)
        arguments = [lower, upper, enabled, owners_maximise, low_holds, high_holds, policy, good, slack]
        equations_there = self.there.model.system(system, None, arrays=self._arrays_of(system))
        self.there.repeat("judge", arguments, equations_there)
        return Judgement(low_holds, high_holds, self.download(policy), good, slack)

    def keep_transitions(self, values: Any, nature_maximises: bool, slack: Any) -> Any:
        kept = self.xp.empty(self.kernel.structure.transitions, np.uint8)
        self.there.repeat("optimal", [values, np.bool_(nature_maximises), slack.view(np.uint8), kept])
        return kept

    def attract(
        self, kept: Any, within: Any, start: Any, open_choice: Any, joins: tuple[bool, bool]
    ) -> tuple[Any, Any]:
        level = self.xp.where(start, np.int32(0), np.int32(-1)).astype(np.int32)
        witness = self.xp.full(len(level), -1, np.int64)
        flags = within.view(np.uint8), open_choice.view(np.uint8)
        self.there.graph.draw(kept, *flags, *joins, level, witness)
        return level, witness
