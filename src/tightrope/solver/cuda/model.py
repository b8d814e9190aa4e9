"""A model in device memory: segments, tables of bounds, vertices of rectangular sets, and launches over them.

States with m choices of k successors each form a *segment*, stored transposed: successor j of choice a of its
i-th state is at slot (a·k + j)·n + i. Where few bounds are distinct, a slot holds an index into a table.
Records are words of eight bytes with the fields of `Segment`, `Model` and `System` in kernels.cu. A walk that
needs an unknown vertex stops, which costs tightness only; the host computes it between sweeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tightrope.ambiguity.rectangular_inner import UNKNOWN, Shape, neighbour
from tightrope.errors import CannotCertify
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import ArrayModule, BoolArray, DeviceArray, IndexArray, offsets
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.rectangular import RectangularOperator
from tightrope.solver.cuda.device import BLOCK, Device
from tightrope.solver.equations.system import NORMAL, System

PLAIN, INTERVAL, POLYTOPE, ELLIPSOID = range(4)

MOST_SCRATCH = 2**30
"""Bytes for the rows that threads sort in memory; where more would be needed, fewer threads run."""


class DeviceModel:
    """Segments and tables of a kernel's model in device memory, made once and used by every solve."""

    def __init__(self, kernel: IntervalOperator | RectangularOperator, device: Device):
        self.device = device
        structure = self.structure = kernel.structure
        if structure.choices >= 2**31:
            raise CannotCertify(f"the GPU kernels take less than 2^31 choices, not {structure.choices}")
        columns: list[DeviceArray] = [kernel.lower]
        self.pool: Pool | None = None
        dimension = 0
        if isinstance(kernel, RectangularOperator):
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
        values: dict[str, object] = {
            "choice_start": device.upload(structure.choice_start),
            "transition_start": device.upload(structure.transition_start),
        }
        if self.pool is not None:
            values |= self.pool.fields()
        self.record = DeviceRecord(device, MODEL, values)
        self.segments = [self._segment(rows) for rows in self.layout.segments]

    def _segment(self, rows: Segment) -> tuple[int, DeviceRecord, int]:
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
        return rows.k, DeviceRecord(self.device, SEGMENT, values), threads

    def each(
        self, name: str, system: DeviceSystem | None, arguments: Sequence[object], flags: str = ""
    ) -> None:
        """Launch `name<k, flags>` over every segment."""
        for index in range(len(self.segments)):
            self.one(index, name, system, arguments, flags)

    def one(
        self, index: int, name: str, system: DeviceSystem | None, arguments: Sequence[object], flags: str = ""
    ) -> None:
        """Launch over one segment: the records of model, system (if any) and segment, then `arguments`."""
        k, segment, threads = self.segments[index]
        records = [self.record.words, segment.words]
        if system is not None:
            records.insert(1, system.record.words)
        family = self.device.functions(self.options, k)
        self.device.launch(family[f"{name}<{k}{flags}>"], [*records, *arguments], threads)

    def launch(self, name: str, arguments: Sequence[object]) -> None:
        """Launch a kernel over vectors; it is compiled with those of any segment."""
        family = self.device.functions(self.options, self.segments[0][0])
        self.device.launch(family[name], arguments)

    def expanded(self) -> bool:
        """Add the vertices that walks asked for; whether there were any."""
        if self.pool is None or not self.pool.serve():
            return False
        self.record.update(**self.pool.fields())
        return True


class DeviceArrays:
    """The arrays of a system on a device; what is the same for all choices is a number."""

    def __init__(self, device: Device, system: System) -> None:
        self.system = system
        self.reward, self.reward_all = _shared(device, system.reward)
        self.discount, self.discount_all = _shared(device, system.discount)
        is_normal = not np.any(system.mode != NORMAL)
        self.lean = is_normal and self.reward is None and self.discount is None
        self.mode = None if is_normal else device.upload(system.mode)
        self.leader = device.upload(system.leader)
        self.groups: tuple[DeviceArray, DeviceArray] | None = None
        own = np.arange(len(system.leader), dtype=np.int32)
        if not np.array_equal(system.leader, own):
            order = np.argsort(system.leader, kind="stable").astype(np.int32)
            sizes = np.bincount(system.leader, minlength=len(order))
            shared = sizes[system.leader[order]] > 1
            members, sizes = order[shared], sizes[sizes > 1]
            start = offsets(sizes)
            self.groups = device.upload(start), device.upload(members)


class DeviceSystem:
    """Equations on a device: rewards, modes, groups, and which states are backed up."""

    def __init__(
        self,
        device: Device,
        system: System,
        active: BoolArray | None,
        largest: float = float("inf"),
        arrays: DeviceArrays | None = None,
    ):
        arrays = arrays or DeviceArrays(device, system)
        self.groups, self.lean = arrays.groups, arrays.lean
        self.active = None if active is None or active.all() else device.upload(active.view(np.uint8))
        self.record = DeviceRecord(
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
                "floor": float(max(system.floor, -largest)),
                "ceiling": float(min(system.ceiling, largest)),
                "slack": float(system.slack),
                "mode": arrays.mode,
                "leader": arrays.leader,
                "active": self.active,
            },
        )


def _shared(device: Device, each: DeviceArray) -> tuple[DeviceArray, float]:
    """(array, 0) of numbers per choice, or (None, number) where all are the same."""
    if len(each) == 0:
        return None, 0.0
    if each[0] == each[-1] and np.all(each == each[0]):
        return None, float(each[0])
    return device.upload(each), 0.0


MOST_SEGMENTS = 24
MOST_DISTINCT = 65_536
SAMPLE = 1 << 20
_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


@dataclass(frozen=True, eq=False)
class Segment:
    """One segment: `k` = 0 where rows are not transposed. `states` is None for first, first + 1, …

    Arrays are the device's; `table` holds the bounds of every slot where there are no `ids`.
    """

    k: int
    choices: int
    count: int
    first: int
    states: DeviceArray
    successor: DeviceArray
    ids: DeviceArray
    table: DeviceArray
    slot_start: DeviceArray
    longest: int

    def host_states(self, device: Device) -> IndexArray:
        if self.states is None:
            return np.arange(self.first, self.first + self.count, dtype=np.int32)
        result: IndexArray = device.download(self.states)
        return result


@dataclass(frozen=True, eq=False)
class Layout:
    """The segments, and the C types of their indices."""

    segments: tuple[Segment, ...]
    successor_type: str
    id_type: str
    slot_type: str
    distinct: int | None

    @property
    def bytes(self) -> int:
        """What a sweep reads of the segments."""
        return sum(
            part.nbytes for rows in self.segments for part in (rows.successor, rows.ids) if part is not None
        )


def lay_out(structure: Structure, columns: Sequence[DeviceArray], device: Device) -> Layout:
    """`columns` are per transition: what a row of the table holds."""
    xp = device.xp
    wide = structure.states > 65_536
    narrowed = structure.successor.view(np.uint32) if wide else structure.successor.astype(np.uint16)
    successor = device.upload(narrowed)
    on_device = [device.upload(column) for column in columns]
    ids, table = distinct_rows(xp, on_device)
    parts = []
    for states, k in _classes(structure, device):
        parts.append(_segment(structure, device, states, k, successor, ids, table, on_device))
    narrow = ids is None or ids.dtype == np.uint8
    return Layout(
        tuple(parts),
        "unsigned int" if wide else "unsigned short",
        "unsigned char" if narrow else "unsigned short",
        "unsigned int" if structure.transitions < 2**31 else "long long",
        None if table is None else len(table),
    )


def _classes(structure: Structure, device: Device) -> list[tuple[IndexArray, int]]:
    """States of each segment, in increasing order, and their k."""
    start = structure.choice_start
    count, length = np.diff(start), np.diff(structure.transition_start)
    if length.min() == length.max() in device.widths and count.min() == count.max() <= 4096:
        return [(np.arange(structure.states, dtype=np.int32), int(length[0]))]
    longest = np.maximum.reduceat(length, start[:-1])
    uniform = longest == np.minimum.reduceat(length, start[:-1])
    uniform &= np.isin(longest, np.array(device.widths)) & (count <= 4096)
    kind = np.where(uniform, count * (max(device.widths) + 1) + longest, 0)
    sizes = np.bincount(kind)
    often = np.argsort(-sizes, kind="stable")[: MOST_SEGMENTS + 1]
    result: list[tuple[IndexArray, int]] = []
    rest: BoolArray = np.ones(structure.states, np.bool_)
    for which in often:
        if which and sizes[which] >= device.least_rows:
            chosen = kind == which
            rest &= ~chosen
            result.append((np.flatnonzero(chosen).astype(np.int32), int(which % (max(device.widths) + 1))))
    if rest.any():
        result.append((np.flatnonzero(rest).astype(np.int32), 0))
    return result


def _segment(
    structure: Structure,
    device: Device,
    states: IndexArray,
    k: int,
    successor: DeviceArray,
    ids: DeviceArray,
    table: DeviceArray,
    columns: Sequence[DeviceArray],
) -> Segment:
    xp, count, first = device.xp, len(states), int(states[0])
    together = int(states[-1]) - first + 1 == count
    row = None if together else device.upload(states)
    begin = structure.transition_start[structure.choice_start[states]]
    if k == 0:
        end = structure.transition_start[structure.choice_start[states + 1]]
        slot_start = np.cumsum(end - begin) - (end - begin)
        source = device.upload(np.repeat(begin - slot_start, end - begin))
        source += xp.arange(len(source))
        lengths = np.maximum.reduceat(np.diff(structure.transition_start), structure.choice_start[:-1])
        choices, slots, longest = 0, 1, int(lengths[states].max())
        starts = device.upload(slot_start.astype(np.int64))
    else:
        source = device.upload(begin)
        choices = int(structure.choice_start[first + 1] - structure.choice_start[first])
        slots, longest, starts = choices * k, k, None
    shape = slots, len(source)
    slots_successor = xp.empty(shape, successor.dtype)
    slots_id = None if ids is None else xp.empty(shape, ids.dtype)
    slots_table = table if ids is not None else xp.empty((*shape, len(columns)))
    for q in range(slots):  # the transitions of a state follow each other
        slots_successor[q] = successor[source]
        if slots_id is not None:
            slots_id[q] = ids[source]
        else:
            for i, column in enumerate(columns):
                slots_table[q, :, i] = column[source]
        source += 1
    return Segment(k, choices, count, first, row, slots_successor, slots_id, slots_table, starts, longest)


def distinct_rows(xp: ArrayModule, columns: Sequence[DeviceArray]) -> tuple[DeviceArray, DeviceArray]:
    """(number of each row, table) if rows repeat enough for 16 bits, else (None, None)."""
    key = xp.zeros(len(columns[0]), np.uint64)
    for i, column in enumerate(columns):
        factor = (_MIX[1 + i % 2] * (2 * i + 1)) % 2**64
        bits = column.view(np.uint64) if column.dtype == np.float64 else column.astype(np.uint64)
        key = (key ^ (key >> np.uint64(29))) * np.uint64(_MIX[0]) + bits * np.uint64(factor)
        key ^= key >> np.uint64(32)
    keys = xp.unique(key[:: max(len(key) // SAMPLE, 1)])
    while len(keys) <= MOST_DISTINCT:
        number = xp.minimum(xp.searchsorted(keys, key), len(keys) - 1)
        missing = xp.flatnonzero(keys[number] != key)
        if len(missing) == 0:
            break
        keys = xp.unique(xp.concatenate([keys, key[missing[:SAMPLE]]]))
    if len(keys) > MOST_DISTINCT or 4 * len(keys) > len(key):
        return None, None
    example = xp.zeros(len(keys), np.int64)
    example[number] = xp.arange(len(key))
    table = xp.empty((len(keys), len(columns)))
    for i, column in enumerate(columns):
        table[:, i] = column[example]
        if not bool((table[number, i] == column).all()):  # two rows with one hash
            return None, None
    return number.astype(np.uint8 if len(keys) <= 256 else np.uint16), table


SEGMENT = "states choices row first successor id table slot_start scratch"
MODEL = (
    "choice_start transition_start joint vertex_of rows reach vertex ball link request request_room row_count"
)
SYSTEM = """reward discount reward_all discount_all rewarded discounted agent_maximises nature_maximises
    floor ceiling slack mode leader active"""


class DeviceRecord:
    """A structure as a launch passes it (`words`, one structured scalar); holds on to what it points to."""

    def __init__(self, device: Device, fields: str, values: Mapping[str, object]):
        self._device, self._fields = device, fields.split()
        assert set(values) <= set(self._fields)
        self._values = dict(values)
        self.words = self._pack()

    def update(self, **values: DeviceArray) -> None:
        """Later launches see these fields instead."""
        self._values |= values
        self.words = self._pack()

    def _pack(self) -> npt.NDArray[np.void]:
        words = np.zeros(len(self._fields), np.int64)
        for i, name in enumerate(self._fields):
            value = self._values.get(name)
            if isinstance(value, float):
                words[i : i + 1].view(np.float64)[0] = value
            elif isinstance(value, int | np.integer):
                words[i] = int(value)
            elif value is not None:
                words[i] = self._device.pointer(value)
        return words.view(np.dtype([("words", np.int64, (len(words),))]))


IN_ADVANCE = 2048
"""Vertices that are looked for before anything is asked."""

ROOM = 4096
"""Questions that a launch can leave behind."""


class Pool:
    """The device's copy of a shape: affine functions apart, which the layout's table holds."""

    def __init__(self, shape: Shape, choices: int, device: Device):
        self.shape, self.device, self.met = shape, device, shape.open_pool()
        self.joint = None if shape.joint.all() else device.upload(shape.joint.view(np.uint8))
        self.vertex_of = device.xp.full(choices, -1, np.int32)
        self.rows, self.reach = device.upload(shape.rows), device.upload(shape.reach)
        self.ball = device.upload(shape.ball) if len(shape.ball) else None
        self.request = device.xp.zeros(1 + 2 * ROOM, np.int32)
        self.vertex: DeviceArray = None
        self.link: DeviceArray = None
        if self.ball is None:
            self._explore()
            self._upload()

    def fields(self) -> dict[str, object]:
        names = ["joint", "vertex_of", "rows", "reach", "vertex", "ball", "link", "request"]
        sizes = {"request_room": ROOM, "row_count": len(self.shape.rows)}
        return {name: getattr(self, name) for name in names} | sizes

    def serve(self) -> bool:
        """Compute the neighbours asked for; whether any were."""
        if self.ball is not None:
            return False
        request = int(self.device.download(self.request[:1])[0])
        if request == 0:
            return False
        pairs = self.device.download(self.request[1 : 1 + 2 * min(request, ROOM)]).reshape(-1, 2)
        for vertex, leaving in pairs:
            self._look(int(vertex), int(leaving))
        self.request[:1] = 0
        self._upload()
        return True

    def _look(self, vertex: int, leaving: int) -> None:
        met = self.met
        place = len(self.shape.reach) + leaving
        if met.link[vertex, place] == UNKNOWN:
            met.link[vertex, place] = neighbour(self.shape.rows, met, vertex, leaving)

    def _explore(self) -> None:
        vertex, size = 0, len(self.shape.reach)
        while vertex < min(int(self.met.used[0]), IN_ADVANCE):
            for leaving in range(size):
                self._look(vertex, leaving)
            vertex += 1

    def _upload(self) -> None:
        known = int(self.met.used[0])
        self.vertex = self.device.upload(self.met.vertex[:known])
        self.link = self.device.upload(self.met.link[:known])
