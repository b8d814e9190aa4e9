"""A model on a device: its segments, the pool of vertices of rectangular sets, launches over all segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightrope.errors import CannotCertify
from tightrope.numerics.arrays import BoolArray
from tightrope.solver.cuda.device import BLOCK, Device
from tightrope.solver.cuda.layout import Rows, lay_out
from tightrope.solver.cuda.pool import Pool
from tightrope.solver.cuda.records import MODEL, SEGMENT, SYSTEM, Record
from tightrope.solver.equations.system import NORMAL, System
from tightrope.solver.kernels.interval_kernel import IntervalKernel
from tightrope.solver.kernels.rectangular_kernel import RectangularKernel

PLAIN, INTERVAL, POLYTOPE, ELLIPSOID = range(4)

MOST_SCRATCH = 2**30
"""Bytes for the rows that threads sort in memory; where more would be needed, fewer threads run."""


class DeviceModel:
    """Segments and tables of a kernel's model in device memory, made once and used by every solve."""

    def __init__(self, kernel: IntervalKernel | RectangularKernel, device: Device):
        self.device = device
        structure = self.structure = kernel.structure
        if structure.choices >= 2**31:
            raise CannotCertify(f"the GPU kernels take less than 2^31 choices, not {structure.choices}")
        columns: list[Any] = [kernel.lower]
        self.pool: Pool | None = None
        dimension = 0
        if isinstance(kernel, RectangularKernel):
            shape = kernel.shape
            dimension = len(shape.reach)
            kind = ELLIPSOID if len(shape.ball) else POLYTOPE
            affine = shape.affine[shape.expression]
            columns += [kernel.upper, *(np.ascontiguousarray(column) for column in affine.T)]
            if dimension % 2:
                columns.append(np.zeros(structure.transitions))  # rows are read in pairs
            self.pool = Pool(shape, structure.choices, device)
        else:
            kind = PLAIN if kernel.is_plain else INTERVAL
            if kind == INTERVAL:
                columns.append(kernel.upper)
        self.layout = lay_out(structure, columns, device)
        self.options = (
            f"-DKIND={kind}",
            f"-DDIMENSION={dimension}",
            f"-DSUCCESSOR={self.layout.successor_type}",
            f"-DID={self.layout.id_type}",
            f"-DSLOT={self.layout.slot_type}",
            f"-DDIRECT={int(self.layout.distinct is None)}",
        )
        values: dict[str, Any] = {
            "choice_start": device.upload(structure.choice_start),
            "transition_start": device.upload(structure.transition_start),
        }
        if self.pool is not None:
            values |= self.pool.fields()
        self.record = Record(device, MODEL, values)
        self.segments = [self._segment(rows) for rows in self.layout.segments]

    def _segment(self, rows: Rows) -> tuple[int, Record, int]:
        scratch, threads = None, self.device.threads
        if rows.k == 0 and rows.longest > 3:
            room = MOST_SCRATCH // (64 * rows.longest) // BLOCK * BLOCK
            threads = max(min(threads, room), BLOCK)
            scratch = self.device.xp.empty(8 * rows.longest * threads)
        values = {
            "states": rows.count,
            "choices": rows.choices,
            "row": rows.states,
            "first": rows.first,
            "successor": rows.successor,
            "id": rows.ids,
            "table": rows.table,
            "slot_start": rows.slot_start,
            "scratch": scratch,
        }
        return rows.k, Record(self.device, SEGMENT, values), threads

    def each(self, name: str, system: DeviceSystem | None, arguments: Sequence[Any], flags: str = "") -> None:
        """Launch `name<k, flags>` over every segment."""
        for index in range(len(self.segments)):
            self.one(index, name, system, arguments, flags)

    def one(
        self, index: int, name: str, system: DeviceSystem | None, arguments: Sequence[Any], flags: str = ""
    ) -> None:
        """Launch over one segment: the records of model, system (if any) and segment, then `arguments`."""
        k, segment, threads = self.segments[index]
        records = [self.record.words, segment.words]
        if system is not None:
            records.insert(1, system.words)
        family = self.device.functions(self.options, k)
        self.device.launch(family[f"{name}<{k}{flags}>"], [*records, *arguments], threads)

    def launch(self, name: str, arguments: Sequence[Any]) -> None:
        """Launch a kernel over vectors; it is compiled with those of any segment."""
        family = self.device.functions(self.options, self.segments[0][0])
        self.device.launch(family[name], arguments)

    def system(
        self,
        system: System,
        active: BoolArray | None,
        largest: float = float("inf"),
        arrays: SystemArrays | None = None,
    ) -> DeviceSystem:
        """The equations on the device, iterates cut off at `largest`."""
        return DeviceSystem(self.device, system, active, largest, arrays)

    def expanded(self) -> bool:
        """Add the vertices that walks asked for; whether there were any."""
        if self.pool is None or not self.pool.serve():
            return False
        self.record.update(**self.pool.fields())
        return True


class SystemArrays:
    """The arrays of a system on a device; what is the same for all choices is a number."""

    def __init__(self, device: Device, system: System) -> None:
        self.system = system
        self.reward, self.reward_all = _shared(device, system.reward)
        self.discount, self.discount_all = _shared(device, system.discount)
        is_normal = not np.any(system.mode != NORMAL)
        self.lean = is_normal and self.reward is None and self.discount is None
        self.mode = None if is_normal else device.upload(system.mode)
        self.leader = device.upload(system.leader)
        self.groups: tuple[Any, Any] | None = None
        own = np.arange(len(system.leader), dtype=np.int32)
        if not np.array_equal(system.leader, own):
            order = np.argsort(system.leader, kind="stable").astype(np.int32)
            sizes = np.bincount(system.leader, minlength=len(order))
            shared = sizes[system.leader[order]] > 1
            members, sizes = order[shared], sizes[sizes > 1]
            start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
            self.groups = device.upload(start), device.upload(members)


class DeviceSystem:
    """Equations on a device: rewards, modes, groups, and which states are backed up."""

    def __init__(
        self,
        device: Device,
        system: System,
        active: BoolArray | None,
        largest: float = float("inf"),
        arrays: SystemArrays | None = None,
    ):
        arrays = arrays or SystemArrays(device, system)
        self.groups, self.lean = arrays.groups, arrays.lean
        self.active = None if active is None or active.all() else device.upload(active.view(np.uint8))
        self.record = Record(
            device,
            SYSTEM,
            {
                "reward": arrays.reward,
                "discount": arrays.discount,
                "reward_all": arrays.reward_all,
                "discount_all": arrays.discount_all,
                "rewarded": int(len(system.reward) > 0),
                "discounted": int(len(system.discount) > 0),
                "agent_maximises": int(system.agent_maximises),
                "nature_maximises": int(system.nature_maximises),
                "floor": float(system.floor),
                "ceiling": float(min(system.ceiling, largest)),
                "slack": float(system.slack),
                "mode": arrays.mode,
                "leader": arrays.leader,
                "active": self.active,
            },
        )

    @property
    def words(self) -> Any:
        return self.record.words


def _shared(device: Device, each: Any) -> tuple[Any, float]:
    """(array, 0) of numbers per choice, or (None, number) where all are the same."""
    if len(each) == 0:
        return None, 0.0
    if each[0] == each[-1] and np.all(each == each[0]):
        return None, float(each[0])
    return device.upload(each), 0.0
