"""A model laid out for a GPU: states of one shape together and transposed, bounds as rows of a small table.

States whose choices all have k successors, and who have the same number m of choices, form a *segment*:
successor j of choice a of its i-th state is at slot (a·k + j)·n + i. Neighbouring threads work on
neighbouring states and so read neighbouring words. What is left (mixed or long choices, shapes that few
states have) is one segment in the model's own order.

A transition's bounds (for rectangular sets with its expression) are mostly one of a few: then a slot holds
their number in 8 or 16 bits instead of two float64, and a sweep's traffic is that of indices. Distinct bounds
are found by a hash of their bits, and the table is compared with what it stands for, bit by bit, before it is
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, IndexArray
from tightrope.solver.cuda.device import Device

MOST_SEGMENTS = 24
MOST_DISTINCT = 65_536
SAMPLE = 1 << 20
_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


@dataclass(frozen=True, eq=False)
class Rows:
    """One segment: `k` = 0 where rows are not transposed. `states` is None for first, first + 1, …

    Arrays are the device's; `table` holds the bounds of every slot where there are no `ids`.
    """

    k: int
    choices: int
    count: int
    first: int
    states: Any
    successor: Any
    ids: Any
    table: Any
    slot_start: Any
    longest: int

    def host_states(self, device: Device) -> IndexArray:
        if self.states is None:
            return np.arange(self.first, self.first + self.count, dtype=np.int32)
        result: IndexArray = device.download(self.states)
        return result


@dataclass(frozen=True, eq=False)
class Layout:
    """The segments, and the C types of their indices."""

    segments: tuple[Rows, ...]
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


def lay_out(structure: Structure, columns: Sequence[Any], device: Device) -> Layout:
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
    successor: Any,
    ids: Any,
    table: Any,
    columns: Sequence[Any],
) -> Rows:
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
    return Rows(k, choices, count, first, row, slots_successor, slots_id, slots_table, starts, longest)


def distinct_rows(xp: Any, columns: Sequence[Any]) -> tuple[Any, Any]:
    """(number of each row, table) if rows repeat enough for 16 bits, else (None, None)."""
    key = xp.zeros(len(columns[0]), np.uint64)
    for column, factor in zip(columns, _mixers(len(columns)), strict=True):
        bits = column.view(np.uint64) if column.dtype == np.float64 else column.astype(np.uint64)
        key = (key ^ (key >> np.uint64(29))) * np.uint64(_MIX[0]) + bits * np.uint64(factor)
        key ^= key >> np.uint64(32)
    found = xp.unique(key[:: max(len(key) // SAMPLE, 1)])
    while len(found) <= MOST_DISTINCT:
        number = xp.minimum(xp.searchsorted(found, key), len(found) - 1)
        missing = xp.flatnonzero(found[number] != key)
        if len(missing) == 0:
            break
        found = xp.unique(xp.concatenate([found, key[missing[:SAMPLE]]]))
    if len(found) > MOST_DISTINCT or 4 * len(found) > len(key):
        return None, None
    example = xp.zeros(len(found), np.int64)
    example[number] = xp.arange(len(key))
    table = xp.empty((len(found), len(columns)))
    for i, column in enumerate(columns):
        table[:, i] = column[example]
        if not bool((table[number, i] == column).all()):  # two rows with one hash
            return None, None
    return number.astype(np.uint8 if len(found) <= 256 else np.uint16), table


def _mixers(count: int) -> list[int]:
    return [(_MIX[1 + i % 2] * (2 * i + 1)) % 2**64 for i in range(count)]
