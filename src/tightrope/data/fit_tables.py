"""Tables of counts by which a model is tested on every row of a log.

`FitTables` counts each transition by the value of a feature: the previous transition, the steps since the
episode began and since the state was entered (in powers of 2), the episode, and columns without a role.
Tables of parts add up. Tests: `tightrope.monitoring.urns`.

*Bounded memory.* Above `MOST_KEYS` entries a table keeps the values whose hash begins with `level` zeros and
merges all others. Hashes do not depend on outcomes, but their number of zeros may: `CountTable.log_weight` is
the price of that choice.

*Changes.* `VisitGrid` counts outcomes at fixed numbers of visits, 16 per octave, in processing order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.data.rows import EventBatch
from tightrope.model.expressions import Signatures
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import AnyArray, BoolArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

MOST_KEYS, MOST_OF_PART = 1 << 18, 1 << 16
"""Entries of a table, and of that of a part of a log."""

MOST_LEVELS = 40

WHOLE = 0.9
"""The weight of a table without sampling; the rest is for those with."""

WAITING = 1 << 16
"""Events that are counted at once."""

OTHERS = -2
"""The value that stands for all values that a table does not keep; −1 is that of rows without one."""

BINS = 64
"""Bins of steps since the state was entered, for each bin of steps since the episode began."""

FIRST_VISITS, PER_OCTAVE = 16, 16
_SIZES = FIRST_VISITS * 2.0 ** (np.arange(16 * 34) / PER_OCTAVE)
VISITS = np.unique(np.rint(np.r_[0.0, _SIZES]).astype(np.int64))
"""Numbers of visits at which counts are kept."""


@dataclass(frozen=True, eq=False)
class CountTable:
    """How often each transition came at each value of a feature (−1: it has none), by value and transition.

    With a `level` above 0 only values are kept whose hash begins with so many zeros, and
    `OTHERS` stands for the rest.
    """

    value: OffsetArray
    transition: OffsetArray
    number: OffsetArray
    level: int = 0

    @staticmethod
    def of(value: AnyArray, transition: AnyArray, number: OffsetArray | None = None) -> CountTable:
        """The table of rows, each of which stands for `number` of them."""
        counter = TableCounter(1 << 62)
        counter.add(value.astype(np.int64), transition.astype(np.int64), ONE if number is None else number)
        return counter.table()

    def select(self, rows: BoolArray) -> CountTable:
        return CountTable(self.value[rows], self.transition[rows], self.number[rows], self.level)

    def by(self, value: AnyArray) -> CountTable:
        """The table of a coarser feature; `value` is by entry."""
        return replace(CountTable.of(value, self.transition, self.number), level=self.level)

    @property
    def log_weight(self) -> float:
        """The weight of a table with this level among those with any, a logarithm."""
        weight = WHOLE if self.level == 0 else (1.0 - WHOLE) / (self.level * (self.level + 1.0))
        return math.log(weight)


def mixed_bits(value: Any) -> Any:
    """63 bits of a value, or of an array of them."""
    mixed = (value ^ (value >> 31)) * -7046029254386353131
    mixed = (mixed ^ (mixed >> 29)) * -4658895280553007687
    return (mixed ^ (mixed >> 32)) & 0x7FFFFFFFFFFFFFFF


_hash_one = kernel(mixed_bits)


ONE = np.ones(1, dtype=np.int64)

Pairs = tuple[OffsetArray, OffsetArray, OffsetArray]
"""Values, transitions, and how often they came together."""


class TableCounter:
    """Counts pairs of a value and a transition as they come, in a table of open addressing.

    That of a later part of a log (`is_later`) holds rows once it is full: they are counted when it is merged.
    """

    def __init__(self, most: int = MOST_KEYS, is_later: bool = False):
        self.most, self.level, self.used = min(most, MOST_OF_PART) if is_later else most, 0, 0
        self.held: list[Pairs] | None = [] if is_later else None
        self._make(1 << 7)

    def _make(self, size: int) -> None:
        self.slots = np.zeros((size, 3), dtype=np.int64)
        self.slots[:, 1] = -1

    def add(self, value: OffsetArray, transition: OffsetArray, number: OffsetArray = ONE) -> None:
        """Count rows, each so often as `number` says (its last entry is for all that follow)."""
        done = 0
        while done < len(value) and not self.held:
            limit, rows = len(self.slots) // 2, (value, transition, number)
            if self.level < MOST_LEVELS:
                limit = min(limit, self.most)
            done, self.used = _count(rows, done, self.slots, self.used, limit, self.level)
            if done < len(value):
                is_small = self.used < self.most or self.level == MOST_LEVELS
                if self.held is not None and not is_small:
                    break
                self._count_again(*((4, 0) if is_small else (1, 1)))
        if done < len(value) and self.held is not None:
            self.held.append((value[done:], transition[done:], number[min(done, len(number) - 1) :]))

    def _count_again(self, growth: int, levels: int) -> None:
        """Make room: more of it, or fewer values."""
        rows = self._rows()
        self.level, self.used = self.level + levels, 0
        self._make(growth * len(self.slots))
        self.add(*rows)

    def merge(self, later: TableCounter) -> None:
        if later.level > self.level:
            self._count_again(1, later.level - self.level)
        for rows in (later._rows(), *(later.held or ())):
            self.add(*rows)

    def _rows(self) -> Pairs:
        value, transition, number = np.ascontiguousarray(self.slots[self.slots[:, 1] >= 0].T)
        return value, transition, number

    def table(self) -> CountTable:
        value, transition, number = self._rows()
        order = np.lexsort((transition, value))
        return CountTable(value[order], transition[order], number[order], self.level)


@kernel
def _count(
    rows: Pairs, first: int, slots: npt.NDArray[np.int64], used: int, limit: int, level: int
) -> tuple[int, int]:
    """Count rows from `first` on until `limit` places are used; the first row that was not counted."""
    value, transition, number = rows
    mask, last = len(slots) - 1, len(number) - 1
    before, v, h = OTHERS, OTHERS, 0
    for i in range(first, len(value)):
        t = transition[i]
        if t < 0:
            continue
        if value[i] != before:
            before = v = value[i]
            h = _hash_one(v)
            if level > 0 and v >= 0 and h >> (63 - level) != 0:
                v = OTHERS
        # most rows have others: these stand near each other
        place = 2 * t if v == OTHERS else (h ^ (t * 0x9E3779B97F4A7)) * 0x2545F4914F6CDD1D >> 30
        place &= mask
        while slots[place, 1] >= 0 and (slots[place, 1] != t or slots[place, 0] != v):
            place = (place + 1) & mask
        if slots[place, 1] < 0:
            if used >= limit:
                return i, used
            slots[place, 0], slots[place, 1] = v, t
            used += 1
        slots[place, 2] += number[min(i, last)]
    return len(value), used


class VisitGrid:
    """How often each outcome was seen at fixed numbers of visits to its distribution.

    `outcome_of` is by transition (−1: not looked at); outcomes of context i are start[i]:start[i+1]. The grid
    of a later part of a log (`is_later`) holds its outcomes until it is merged.
    """

    def __init__(self, outcome_of: IndexArray, start: OffsetArray, is_later: bool = False):
        self.outcome_of, self.start = outcome_of, start
        self.context_of = np.repeat(np.arange(len(start) - 1), np.diff(start))
        self.visits = np.zeros(len(start) - 1, dtype=np.int64)
        self.reached = np.zeros(len(start) - 1, dtype=np.int64)
        self.seen = np.zeros(len(self.context_of), dtype=np.int64)
        self.context: list[OffsetArray] = []
        self.counted: list[OffsetArray] = []
        self.held: list[AnyArray] | None = [] if is_later else None
        self.is_ordered = True
        """Whether events came in the order of the log and of time; else nothing is to be concluded."""
        self.span: tuple[tuple[int, int], tuple[int, int]] | None = None
        """Place and time of the first and of the last event."""

    @staticmethod
    def of(structure: Structure, signatures: Signatures, is_later: bool = False) -> VisitGrid:
        """For the distributions of a model that have several outcomes; tied choices have one together."""
        member = np.arange(len(signatures.expression), dtype=np.int32)
        member[np.diff(signatures.start)[signatures.of_member] < 2] = -1
        outcome_of = signatures.spread(structure.transition_start, member)
        return VisitGrid(outcome_of, signatures.start, is_later)

    def add(
        self, transition: OffsetArray, place: OffsetArray | None = None, moment: OffsetArray | None = None
    ) -> None:
        """Events in the order of the log; the numbers of their rows rise, and so should their times."""
        if place is not None and moment is not None and len(place):
            first, last = (int(place[0]), int(moment[0])), (int(place[-1]), int(moment[-1]))
            self.is_ordered &= bool(np.all(np.diff(moment) >= 0))
            self._follow_on((first, last))
        outcome = self.outcome_of[transition]
        outcome = outcome[outcome >= 0]
        if self.held is not None:
            self.held.append(outcome.astype(np.min_scalar_type(len(self.seen))))
            return
        self._follow(outcome.astype(np.int64))

    def _follow(self, outcome: OffsetArray) -> None:
        widest, done = int(np.diff(self.start).max(initial=1)), 0
        state = (VISITS, self.visits, self.reached, self.seen)
        while done < len(outcome):
            context, counted = np.empty(1024, dtype=np.int64), np.empty(1024 * widest, dtype=np.int64)
            done, number, size = _visit(outcome, done, self.context_of, self.start, state, context, counted)
            self.context.append(context[:number].copy())
            self.counted.append(counted[:size].copy())

    def _follow_on(self, span: tuple[tuple[int, int], tuple[int, int]]) -> None:
        if self.span is not None:
            self.is_ordered &= all(a <= b for a, b in zip(self.span[1], span[0], strict=True))
            span = self.span[0], span[1]
        self.span = span

    def merge(self, later: VisitGrid) -> None:
        self.is_ordered &= later.is_ordered and later.held is not None
        if later.held is None:
            return
        if later.span is not None:
            self._follow_on(later.span)
        if self.held is not None:
            self.held += later.held
            return
        for outcome in later.held:
            self._follow(outcome.astype(np.int64))

    def counts(self) -> list[npt.NDArray[np.int64]]:
        """Of each context a row for every number of `VISITS` that was reached, from 0 on, by outcome."""
        nothing = np.empty(0, dtype=np.int64)
        context, counted = (np.concatenate([nothing, *parts]) for parts in (self.context, self.counted))
        width = np.diff(self.start)
        size = width[context]
        at, order = np.cumsum(size) - size, np.argsort(context, kind="stable")
        limits = np.searchsorted(context[order], np.arange(len(width) + 1))
        result = []
        for one, wide in enumerate(width.tolist()):
            begin = at[order[limits[one] : limits[one + 1]]]
            rows = counted[begin[:, None] + np.arange(wide)] if len(begin) else np.empty((0, wide), np.int64)
            result.append(np.concatenate([np.zeros((1, wide), dtype=np.int64), rows]))
        return result


@kernel
def _visit(
    outcome: OffsetArray,
    first: int,
    context_of: OffsetArray,
    start: OffsetArray,
    state: tuple[OffsetArray, OffsetArray, OffsetArray, OffsetArray],
    context: OffsetArray,
    counted: OffsetArray,
) -> tuple[int, int, int]:
    """Follow outcomes until there is no more room for counts; the outcome to go on with, how many times
    counts were kept, and how many there are."""
    visits, number, reached, seen = state
    filled, size = 0, 0
    for i in range(first, len(outcome)):
        o = outcome[i]
        c = context_of[o]
        number[c] += 1
        seen[o] += 1
        if reached[c] + 1 < len(visits) and number[c] == visits[reached[c] + 1]:
            reached[c] += 1
            context[filled] = c
            filled += 1
            for other in range(start[c], start[c + 1]):
                counted[size] = seen[other]
                size += 1
            if filled == len(context):
                return i + 1, filled, size
    return len(outcome), filled, size


LAGGED = "<"
"""Before the name of a column: what the row says that is continued (−1: none)."""

LARGEST = np.int64(np.iinfo(np.int64).max)


@dataclass
class FitTables:
    """The tables of a log: an observer of its events.

    Of the first `WAITING` events nothing is counted until more come: small logs are tested row by row.
    """

    structure: Structure
    grid: VisitGrid | None = None
    most: int = field(default_factory=lambda: MOST_KEYS)
    is_later: bool = False
    rows: int = 0
    counters: dict[str, TableCounter] = field(default_factory=dict)
    waiting: list[dict[str, OffsetArray]] = field(default_factory=list)
    changes: set[str] = field(default_factory=set)
    """Columns whose values change within episodes: rows have the value of the row before."""

    def update(self, events: EventBatch) -> None:
        names = ("transition", "before", "episode", "place", "time")
        values = {name: getattr(events, name) for name in names}
        values["steps"] = dyadic(events.since_start) * BINS + dyadic(events.since_entry)
        for name, code in events.columns.items():  # numbers from 0 on, −1 where there is none
            values[f"column:{name}"] = np.where(code < -1, mixed_bits(code), code).astype(np.int64)
            own = events.columns.get(name[1:]) if name.startswith(LAGGED) else None
            if own is not None and np.any((code != own) & (events.before >= 0)):
                self.changes.add(name[1:])
        known = events.transition >= 0
        if not known.all():
            values = {name: value[known] for name, value in values.items()}
        self.rows += len(values["transition"])
        self.waiting.append(values)
        if sum(len(one["transition"]) for one in self.waiting) >= WAITING:
            self._count()

    def _count(self) -> None:
        """Count what waits."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        values = {name: np.concatenate([one[name] for one in waiting]) for name in waiting[0]}
        transition = values.pop("transition").astype(np.int64)
        place, moment = values.pop("place"), values.pop("time")
        values["unit:episode"] = values.pop("episode").astype(np.int64) & LARGEST
        for name, value in values.items():
            if name not in self.counters:
                most, is_later = max(self.most, 4 * self.structure.transitions), self.is_later
                self.counters[name] = TableCounter(most, is_later)
            self.counters[name].add(value.astype(np.int64), transition)
        if np.any(place[1:] < place[:-1]):
            order = np.argsort(place, kind="stable")
            transition, place, moment = transition[order], place[order], moment[order]
        if self.grid is not None:
            self.grid.add(transition, place, moment)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "structure": None}

    def __add__(self, later: FitTables) -> FitTables:
        """The tables of both; of two logs that were counted apart nothing is said about changes."""
        both = replace(deepcopy(self), structure=self.structure)
        both.merge(deepcopy(later))
        return both

    def merge(self, later: FitTables) -> None:
        self.rows += later.rows
        self.changes |= later.changes
        if not self.counters and not later.counters:
            self.waiting += later.waiting
            return
        self._count()
        later._count()
        for name, counter in later.counters.items():
            if name in self.counters:
                self.counters[name].merge(counter)
            else:
                self.counters[name] = counter
        if self.grid is not None and later.grid is not None:
            self.grid.merge(later.grid)

    def finish(self) -> FitTables:
        self._count()
        return self

    def table(self, feature: str) -> CountTable | None:
        """The table of a feature, None where none is kept."""
        source = {"prev": "before", "action": "before", "since-start": "steps", "since-entry": "steps"}
        name, (kind, _, column) = source.get(feature, feature), feature.partition(":")
        if kind in ("unit", "column") and name != "unit:episode":
            name = f"column:{LAGGED if column in self.changes else ''}{column}"
        if name not in self.counters:
            return None
        table, structure = self.counters[name].table(), self.structure
        value: AnyArray = table.value
        if name == "before":
            value = structure.transition_choice[value]
            value = structure.choice_state[value] if feature == "prev" else structure.action_of_choice[value]
        elif name == "steps":
            value = value // BINS if feature == "since-start" else value % BINS
        else:
            return table
        return table.by(np.where(table.value < 0, table.value, value))


def _dyadic(steps: AnyArray) -> OffsetArray:
    return (np.frexp(steps + 1.0)[1] - 1).astype(np.int64)


_FIRST = _dyadic(np.arange(1 << 12))


def dyadic(steps: AnyArray) -> OffsetArray:
    """0, 1–2, 3–6, 7–14, …"""
    return _FIRST[steps] if steps.max(initial=0) < len(_FIRST) else _dyadic(steps)


def _make_tables(structure: Structure, grid: VisitGrid, is_later: bool, is_ordered: bool) -> FitTables:
    return FitTables(structure, VisitGrid(grid.outcome_of, grid.start, is_later), is_later=is_later)


def observers_for(model: object) -> tuple[Callable[[bool, bool], FitTables], ...]:
    """What takes the events of a log while they are counted, so that its model can be tested on every row."""
    if not isinstance(model, ParametricMDP):
        return ()
    return (partial(_make_tables, model.structure, VisitGrid.of(model.structure, model.signatures)),)
