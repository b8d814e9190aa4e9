"""The order of a log in time: the instants at which batches end.

*Batches follow the clock*, and no row has to be moved for that: counting gives each row to the batch of its
own time. A batch ends with the instant in which its last row came, by rank: row number 1, 2, 3, … 8, 10, 12,
… in time order. Rows of one instant are never parted. Under a plan of episodes a batch ends when the episode
after its last one begins. Both are stopping times: they depend on what happened up to then, never on what
came later. The instants are found exactly, in a few passes over the times alone: a histogram says where the
ranks lie, and only the times there are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tightrope.data.columns import EPISODE, STEP, TIME
from tightrope.data.counts import batch_ends
from tightrope.data.fold import Fold, fold_part
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.data.row_sequence import OUT_OF_ORDER, Tick, find_tick
from tightrope.data.rows import TimeKind, identities
from tightrope.errors import InputError
from tightrope.io.table.columns import ProblemCodes, RowProblem
from tightrope.io.table.data_table import Chunk
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.late import pa

MOST_SORTED = 1 << 22
"""Times that are sorted at once, where the ranks that are sought lie."""

MOST_KEPT = 1 << 21
"""Times that are sorted in memory; those of longer logs are read for every pass."""

PIECE = 1 << 17
"""Rows whose times are in memory at once, in each thread."""

LOOKED_AT = 1 << 17
"""Rows of a log by which the usual step of its clock is found."""

Found = TypeVar("Found")


def end_instants(plan: ReadPlan, begins: OffsetArray | None = None) -> OffsetArray:
    """The last instants of all batches but the last: of rows, or of episodes that begin at these times."""
    if begins is not None:
        return np.sort(begins)[batch_ends(len(begins))[:-1]] - 1
    if sum(table.most_rows for table in plan.tables) <= MOST_KEPT:
        times = np.sort(_joined(_each(plan, np.asarray)), kind="stable")
        return times[batch_ends(len(times))[:-1] - 1]
    extents = [extent for part in _each(plan, _extent) for extent in part if extent[0]]
    numbers, lows, highs = zip(*extents, strict=True)
    ranks, low = batch_ends(sum(numbers)), min(lows)
    at: npt.NDArray[np.uint64] = np.zeros(len(ranks), dtype=np.uint64)
    begun, bits = at.view(np.int64), (max(highs) - low).bit_length()
    while bits:  # of each rank: the upper bits `at` of its time, and how many rows have lower ones
        heads, first = np.unique(at, return_index=True)
        fewer = max(0, bits - (16 if len(heads) == 1 else 10))
        spans = _Spans(low, heads, bits, fewer)
        counted = np.zeros((len(heads), 1 << spans.wide), dtype=np.int64)
        for part in _each(plan, spans.count):
            counted += sum(part)
        upto = (begun[first][:, None] + np.cumsum(counted, axis=1)).ravel()
        place, bits, number = np.searchsorted(upto, ranks), fewer, counted.ravel()
        upper = (heads[:, None] << spans.wide) + np.arange(1 << spans.wide, dtype=np.uint64)
        at, begun = upper.ravel()[place].astype(np.uint64), (upto - number)[place]
        if bits and number[np.unique(place)].sum() <= MOST_SORTED:
            near = np.sort(_joined(_each(plan, _Spans(low, np.unique(at), bits, bits).within)))
            place = np.searchsorted(near, (at << bits).view(np.int64) + low)
            instants: OffsetArray = near[place + ranks - begun - 1]
            return instants[:-1]
    return at[:-1].view(np.int64) + np.int64(low)


@dataclass(frozen=True)
class _Spans:
    """Stretches of time by their bits above the lowest `bits`, from `low` on; bins leave out `fewer`."""

    low: int
    begins: npt.NDArray[np.uint64]
    bits: int
    fewer: int

    @property
    def wide(self) -> int:
        return self.bits - self.fewer

    def within(self, times: OffsetArray) -> OffsetArray:
        """The times that lie in one of them."""
        upper = (times - self.low).view(np.uint64) >> self.bits
        place = np.minimum(np.searchsorted(self.begins, upper), len(self.begins) - 1)
        inside: BoolArray = self.begins[place] == upper
        return times[inside]

    def count(self, times: OffsetArray) -> OffsetArray:
        """How many times lie in each bin of each stretch."""
        inside = times if len(self.begins) == 1 else self.within(times)
        since = (inside - self.low).view(np.uint64)
        place = ((since >> self.fewer) & ((1 << self.wide) - 1)).view(np.int64)
        if len(self.begins) > 1:
            place += np.searchsorted(self.begins, since >> self.bits) << self.wide
        bins = np.bincount(place, minlength=len(self.begins) << self.wide)
        return bins.reshape(len(self.begins), -1)


def _extent(times: OffsetArray) -> tuple[int, int, int]:
    return (len(times), int(times.min()), int(times.max())) if len(times) else (0, 0, 0)


def _each(plan: ReadPlan, work: Callable[[OffsetArray], Found]) -> Iterator[list[Found]]:
    """What comes out for the times of every part, piece by piece, so that few are in memory at once."""
    return plan.run(partial(_over_times, work))


def _over_times(work: Callable[[OffsetArray], Found], plan: ReadPlan, part: Part) -> list[Found]:
    results, waiting = list[Found](), [np.empty(0, dtype=np.int64)]
    for times in _times_of(plan, part.table, part.groups):
        waiting.append(times)
        if sum(map(len, waiting)) >= PIECE:
            results.append(work(np.concatenate(waiting)))
            waiting = waiting[:1]
    return [*results, work(np.concatenate(waiting))]


def _joined(parts: Iterable[list[OffsetArray]]) -> OffsetArray:
    return np.concatenate([times for part in parts for times in part])


def begin_times(plan: ReadPlan) -> OffsetArray:
    """When each episode begins: the earliest time of each name."""
    return _earliest(list(plan.run(_begins)))[1]


def _begins(plan: ReadPlan, part: Part) -> tuple[OffsetArray, OffsetArray]:
    decoder, names = plan.decoder(part.table), plan.columns[part.table].names
    every = map(decoder.decode, plan.tables[part.table].chunks(names, None, part.groups))
    placed = (rows[rows.placed] for rows in every)
    return _earliest([_earliest([(rows.episode, rows.time)]) for rows in placed])


def _earliest(parts: Sequence[tuple[OffsetArray, OffsetArray]]) -> tuple[OffsetArray, OffsetArray]:
    """The earliest time of each name."""
    nothing = np.empty(0, dtype=np.int64)
    names, times = (np.concatenate(each) for each in zip((nothing, nothing), *parts, strict=True))
    order = np.lexsort((times, names))
    each, first = np.unique(names[order], return_index=True)
    return each, times[order][first]


def moment_of(value: str | float, plan: ReadPlan) -> int:
    """A time that the user gives, as those of the log are read."""
    chunk = next(iter(plan.tables[0].chunks((plan.roles[TIME],))))
    decoder, name = plan.decoder(0), plan.roles[TIME]
    kind = chunk.columns[name].type
    wanted = pa.array([value if isinstance(value, str) else repr(value)])
    flags: ProblemCodes = np.zeros(1, dtype=np.int8)
    try:
        if pa.types.is_temporal(kind):
            wanted = wanted.cast(kind)
        moment = int(decoder.times(Chunk(1, 1, {name: wanted}), flags)[0])
    except (InputError, pa.ArrowInvalid):
        flags[0] = RowProblem.NOT_A_NUMBER
    if flags[0]:
        raise InputError(f"`watched_until` is {value!r}, which is neither a time of the log nor its column")
    return moment


def with_clock(plan: ReadPlan) -> ReadPlan:
    """The plan with the usual step of the clock, by the first rows of the log, and with what times are."""
    columns = plan.columns[0]
    if TIME not in columns.roles or columns.is_counted:
        return plan
    decoder, looked = plan.decoder(0), 0
    times, names, kinds = [], [], set[TimeKind]()
    wanted = [columns.roles[one] for one in (TIME, EPISODE) if one in columns.roles]
    for chunk in plan.tables[0].chunks(wanted):
        flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        time = decoder.times(chunk, flags)
        episode = np.zeros(chunk.rows, dtype=np.int64)
        if EPISODE in columns.roles:
            episode = identities(chunk.columns[columns.roles[EPISODE]], flags)
        times.append(time[flags == RowProblem.NONE])
        names.append(episode[flags == RowProblem.NONE])
        if (kind := decoder.time_kind_of(chunk)) is not None:
            kinds.add(kind)
        looked += chunk.rows
        if looked >= LOOKED_AT:
            break
    others = (TimeKind.ZONED, TimeKind.DATE, TimeKind.FLOAT)
    kind = next((kind for kind in others if kind in kinds), TimeKind.INTEGER)
    tick = Tick()
    if len(kinds) == 1:
        is_float = kind is TimeKind.FLOAT
        tick = find_tick(np.concatenate(names)[:LOOKED_AT], np.concatenate(times)[:LOOKED_AT], is_float)
    return replace(plan, tick=tick, time_kind=kind if kinds else None)


def are_in_time(plan: ReadPlan, strictly: bool) -> bool:
    """Whether every row is later than the row before, over all tables, or at least at the same instant."""
    last = np.empty(0, dtype=np.int64)
    for times in (times for table in range(len(plan.tables)) for times in _times_of(plan, table)):
        rising = np.concatenate([last, times])
        if np.any(np.diff(rising) < int(strictly)):
            return False
        last = rising[-1:]
    return True


def _times_of(plan: ReadPlan, table: int, groups: range | None = None) -> Iterator[OffsetArray]:
    """The times of a table that can be read, chunk by chunk."""
    decoder, name = plan.decoder(table), plan.columns[table].roles[TIME]
    for chunk in plan.tables[table].chunks((name,), None, groups):
        flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        times = decoder.times(chunk, flags)
        yield times if not flags.any() else times[flags == RowProblem.NONE]


def times_fall(plan: ReadPlan) -> bool:
    """Whether a log that only times put in order is out of order: what looks wrong may be only that."""
    if TIME not in plan.roles or STEP in plan.roles:
        return False
    options = replace(plan.options, skip_invalid=True, drop_duplicates=False)
    fold = Fold(replace(plan, options=options), by_name=True)
    return any(fold_part(fold, part).notes[OUT_OF_ORDER] for part in plan.parts())
