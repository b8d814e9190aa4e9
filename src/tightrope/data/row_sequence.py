"""How the rows of a log follow each other: which continue an episode, and which steps are missing or
disordered.

One compiled pass over rows that are grouped by episode, in the order of the log. Without names, an episode
ends at a flag, or where steps begin again. Within an episode

* steps rise by one; a jump is a *gap*, which no transition crosses;
* so is a *hole*: a longer silence than the clock's usual step, in a log whose times tick (`find_tick`);
* a step or a time that falls, or a late start, means rows *out of order*;
* two rows of one step, or at one instant, are wrong: a copy, or two episodes;
* each row begins where the one before ended, and nothing follows an end.

An episode not marked as over that stops in a state with successors has an *open* end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.io.table.columns import RowProblem
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.jit import kernel

GAPS, MISSING, OUT_OF_ORDER, HOLES, TIME_FALLS, EPISODES, OPEN_ENDS, LOST, COPIES = range(9)
UNWATCHED, ROWS_AT_ENDS, START_LOW, OPEN_EARLIEST, FIRST_LOW, DISORDERED_AT = range(9, 15)
START_HIGH, LAST_TIME, FIRST_HIGH, WATCHED_LONGEST, NOTES = range(15, 20)
"""Places in the notes of a pass: numbers, least and largest values. `TIME_FALLS` are rows that are not later
than the row before, whatever their episodes; `DISORDERED_AT` is the first place of a row out of order;
`LOST` are actions without an outcome, `COPIES` rows that were left out. `OPEN_EARLIEST` is the earliest last
row of an episode with an open end; `WATCHED_LONGEST` is the longest time from such a row to the end of
watching, in 1024ths of the clock's step, where a row says that; `UNWATCHED` are open episodes without it, and
`ROWS_AT_ENDS` rows at that time. `FIRST_LOW` and `FIRST_HIGH` are the first and the last beginning of an
episode.
"""

BROKEN, FOLLOWS, NOTHING = -3, -2, -1
"""What stands before a row: the row before it, with rows between whose place cannot be read, or without;
nothing; else the number of a last row of an episode before."""

LATEST, EARLIEST = 2**63 - 1, -(2**63)

_AFTER_THE_END = int(RowProblem.AFTER_THE_END)
_BROKEN_CHAIN = int(RowProblem.BROKEN_CHAIN)
_REPEATED_STEP = int(RowProblem.REPEATED_STEP)
_REPEATED_TIME = int(RowProblem.REPEATED_TIME)

PARTS = 1024
SILENCE = 1536
"""A hole is longer than one and a half usual steps of the clock, in 1024ths of one."""

LEAST_TICKS, REGULAR, JITTER = 8, 0.8, 0.1
"""A log's times tick where at least so many differences are there, and this share of them is the same, up to
this part of it: rows that come every week tick, though not at the same minute."""

OFTEN = 0.01
"""They may also be whole multiples of a step that is the difference of this share of rows."""


@dataclass(frozen=True)
class Tick:
    """The usual step of a log's clock, 0 where it has none; times may be floats (`rising_integers`).

    `is_regular`: nearly all rows are this far apart. Otherwise all are some steps apart, and nobody knows
    whether rows are missing between, or nothing happened.
    """

    step: float = 0.0
    is_float: bool = False
    is_regular: bool = False

    def clock(self, time: OffsetArray) -> FloatArray:
        """Times as numbers that can be subtracted."""
        if not self.is_float:
            return time.astype(np.float64)
        bits = np.where(time < 0, np.int64(-(2**63)) - time, time)
        return np.ascontiguousarray(bits).view(np.float64)

    def parts(self, time: OffsetArray) -> OffsetArray:
        """Times in 1024ths of a step; 0 for all where the clock has no usual step."""
        if not self.step:
            return np.zeros(len(time), dtype=np.int64)
        counted = np.clip(self.clock(time) / self.step * PARTS, -(2.0**60), 2.0**60)
        return np.rint(counted).astype(np.int64)


NO_TICK = Tick()


def find_tick(episode: OffsetArray, time: OffsetArray, is_float: bool) -> Tick:
    """The step that nearly all rows of one episode are apart, by some rows of the log."""
    order = np.lexsort((time, episode))
    clock = Tick(1.0, is_float).clock(time[order])
    apart = np.diff(clock)[(np.diff(episode[order]) == 0) & (np.diff(time[order]) > 0)]
    if len(apart) < LEAST_TICKS:
        return Tick(0.0, is_float)
    usual = float(np.median(apart))
    if np.mean(np.abs(apart - usual) <= JITTER * usual) >= REGULAR:
        return Tick(usual, is_float, is_regular=True)
    least = float(np.quantile(apart, OFTEN))
    whole = np.abs(apart / least - np.rint(apart / least)) <= 1e-3
    often = np.mean(np.abs(apart - least) <= 1e-6 * least) >= OFTEN
    return Tick(least if often and whole.all() else 0.0, is_float)


def no_notes() -> OffsetArray:
    """The notes of a pass that has seen nothing."""
    notes = np.zeros(NOTES, dtype=np.int64)
    notes[START_LOW:START_HIGH], notes[START_HIGH:] = LATEST, EARLIEST
    return notes


def add_notes(total: OffsetArray, more: OffsetArray) -> None:
    """Notes of another pass, added to these."""
    total[:START_LOW] += more[:START_LOW]
    total[START_LOW:START_HIGH] = np.minimum(total[START_LOW:START_HIGH], more[START_LOW:START_HIGH])
    total[START_HIGH:] = np.maximum(total[START_HIGH:], more[START_HIGH:])


class LogShape(NamedTuple):
    """What the rows of a log have, and how they are read; by name, episodes stand between each other."""

    has_episodes: bool
    has_steps: bool
    has_time: bool
    has_ends: bool
    from_next: bool
    by_name: bool = False


class RowPlace(NamedTuple):
    """Where rows stand: `clock` are times in parts of the clock's step, `place` rises with their place in the
    log; whether their episode is `ended` by a mark, or `closed` by a state that nothing leaves."""

    episode: OffsetArray
    step: OffsetArray
    time: OffsetArray
    clock: OffsetArray
    state: OffsetArray
    next_state: OffsetArray
    place: OffsetArray
    ended: BoolArray
    closed: BoolArray
    sound: BoolArray


class Marks(NamedTuple):
    """What is found of each row: `origin` is the place of its episode's first row; it `continues` the row
    before where there is no gap."""

    origin: OffsetArray
    since_start: OffsetArray
    since_entry: OffsetArray
    is_new: BoolArray
    continues: BoolArray


def no_marks(rows: int) -> Marks:
    """Room for what is found of so many rows."""
    numbers: list[OffsetArray] = [np.zeros(rows, dtype=np.int64) for _ in range(3)]
    flags: list[BoolArray] = [np.zeros(rows, dtype=np.bool_) for _ in range(2)]
    return Marks(numbers[0], numbers[1], numbers[2], flags[0], flags[1])


@kernel
def follow_rows(
    shape: LogShape,
    rows: RowPlace,
    after: OffsetArray,
    last: RowPlace,
    marks: Marks,
    last_marks: Marks,
    problems: npt.NDArray[np.int8],
    notes: OffsetArray,
) -> None:
    """Mark rows that are wrong, and take notes. `after` says what stands before each row: `FOLLOWS`,
    `BROKEN`, `NOTHING`, or the number of a row in `last`, of which `last_marks` are known."""
    has_episodes, has_steps, has_time, has_ends, from_next, by_name = shape
    must_chain = has_episodes or has_steps or has_ends
    name = step = time = clock = state = led = origin = since = entry = 0
    ended = closed = sound_before = False
    for i in range(len(problems)):
        begun = after[i] != NOTHING
        if after[i] >= 0:
            k = after[i]
            name, step, time, clock = last.episode[k], last.step[k], last.time[k], last.clock[k]
            state, led, ended, closed = last.state[k], last.next_state[k], last.ended[k], last.closed[k]
            sound_before, origin = last.sound[k], last_marks.origin[k]
            since, entry = last_marks.since_start[k], last_marks.since_entry[k]
        elif after[i] == BROKEN:
            sound_before = False
        new = not begun
        sound = rows.sound[i]
        if has_time:
            if begun and not by_name and rows.time[i] <= time:
                notes[TIME_FALLS] += 1
            notes[LAST_TIME] = max(notes[LAST_TIME], rows.time[i])
        if begun:
            if has_episodes:
                new = rows.episode[i] != name
            elif has_steps and rows.step[i] <= step:
                new = True
            elif has_ends:
                new = ended
            elif not (has_steps or from_next):
                new = True
        gap = repeated = disordered = False
        if not new and has_steps:
            jump = rows.step[i] - step
            if jump > 1:
                gap = True
                notes[GAPS] += 1
                notes[MISSING] += jump - 1
            repeated, disordered = jump == 0, jump < 0
        elif not new and has_time:
            disordered = rows.time[i] < time
            repeated = rows.time[i] == time
            if rows.clock[i] - clock > SILENCE:
                gap = True
                notes[HOLES] += 1
        if disordered:
            notes[OUT_OF_ORDER] += 1
            notes[DISORDERED_AT] = min(notes[DISORDERED_AT], rows.place[i])
        if new:
            if begun and not (ended or closed):
                notes[OPEN_ENDS] += 1
                notes[OPEN_EARLIEST] = min(notes[OPEN_EARLIEST], time)
            notes[EPISODES] += 1
            notes[FIRST_LOW] = min(notes[FIRST_LOW], rows.time[i])
            notes[FIRST_HIGH] = max(notes[FIRST_HIGH], rows.time[i])
            if has_steps:
                notes[START_LOW] = min(notes[START_LOW], rows.step[i])
                notes[START_HIGH] = max(notes[START_HIGH], rows.step[i])
            origin = rows.place[i]
        continues = False
        if sound and repeated:
            problems[i] = _REPEATED_STEP if has_steps else _REPEATED_TIME
        elif sound and not new and not disordered and has_episodes and ended:
            problems[i] = _AFTER_THE_END
        elif sound and sound_before and not (new or gap or disordered):
            if not from_next and must_chain and led != rows.state[i]:
                problems[i] = _BROKEN_CHAIN
            else:
                continues = True
        entry = entry + 1 if continues and rows.state[i] == state else 0
        since = 0 if new else since + 1
        marks.is_new[i], marks.continues[i], marks.origin[i] = new, continues, origin
        marks.since_start[i], marks.since_entry[i] = since, entry
        name, step, time, clock = rows.episode[i], rows.step[i], rows.time[i], rows.clock[i]
        state, led, sound_before = rows.state[i], rows.next_state[i], sound
        ended, closed = rows.ended[i], rows.closed[i]
