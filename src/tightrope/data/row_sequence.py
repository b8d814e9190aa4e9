"""How the rows of a log follow each other: which continue an episode, where steps are missing or out of
order.

One compiled pass over rows in the order of the log. A row continues the episode of the row before where
both bear its name; without names an episode ends where a flag says so, or where steps begin again. Within
an episode

* steps rise by one; a jump is a *gap*: rows are missing there, and no transition leads across;
* so is a *hole*: a longer silence than the clock's usual step, in a log whose times tick (`find_tick`);
* a step that does not rise, a time that falls, or an episode that begins late mean rows *out of order*;
* two rows of one episode at one instant are wrong: one of them is a copy, or they are of two episodes;
* each row begins where the one before ended, and nothing follows an end.

An episode that is not marked as over and stops in a state that can be left has an *open* end. Nobody knows
whether a row is missing there.

Where a log has no next states, a row's is the state of the row that continues it. What the pass cannot know
is what stands before its first row; `Partial` joins that later (`tightrope.data.partial_counts`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tightrope.data.model_index import UNKNOWN
from tightrope.data.rows import LogRows
from tightrope.io.table.columns import RowProblem
from tightrope.late import dataclass
from tightrope.model.structure import frozen_array
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.jit import kernel

HAS_EPISODES, HAS_STEPS, HAS_TIME, HAS_ENDS, FROM_NEXT_ROW, IS_SORTED, IN_STRANDS = 1, 2, 4, 8, 16, 32, 64
"""What the log has and how it is read, as bits. In strands, episodes stand between each other."""

GAPS, MISSING, OUT_OF_ORDER, HOLES, TIME_FALLS = range(5)
EPISODES, START_LOW, START_HIGH = range(5, 8)
RELATIONS = 5
OPEN_ENDS, OPEN_EARLIEST, LAST_TIME, FIRST_LOW, FIRST_HIGH = range(8, 13)
HEAD_OPEN, HEAD_TIME, NOTES = range(13, 16)
"""Places in the notes of a pass; the first are on how two rows follow each other. `HEAD_OPEN` says whether
its first episode has an open end, −1 until that has ended. `TIME_FALLS` are rows that are not later than the
row before, whatever their episodes; `OPEN_EARLIEST` is the earliest last row of an episode with an open end;
`FIRST_LOW` and `FIRST_HIGH` are the first and the last beginning of an episode.
"""

BEGUN, AT_EPISODE, AT_STEP, AT_TIME, AT_CLOCK, AT_NEXT, ENDED, CLOSED, SOUND, IS_HEAD, CARRIED = range(11)
"""Places in what is carried from row to row."""

LATEST, EARLIEST = 2**63 - 1, -(2**63)

_NONE = int(RowProblem.NONE)
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


@dataclass(frozen=True, eq=False)
class FollowState:
    """What is carried from row to row, and the notes that were taken."""

    carry: OffsetArray
    notes: OffsetArray

    @staticmethod
    def before_all() -> FollowState:
        """Nothing stands before the first row."""
        return FollowState(np.zeros(CARRIED, dtype=np.int64), no_notes())

    @property
    def is_open(self) -> bool:
        """Whether the last episode so far could go on, and nothing says that it is over."""
        return not self.carry[ENDED] and not self.carry[CLOSED]

    def copy(self) -> FollowState:
        """The same rows before, and no notes."""
        return FollowState(self.carry.copy(), no_notes())


def no_notes() -> OffsetArray:
    """The notes of a pass that has seen nothing."""
    notes = np.zeros(NOTES, dtype=np.int64)
    notes[[START_LOW, OPEN_EARLIEST, FIRST_LOW]] = LATEST
    notes[[START_HIGH, LAST_TIME, FIRST_HIGH]] = EARLIEST
    notes[HEAD_OPEN] = -1
    return notes


@dataclass(frozen=True)
class Marks:
    """Of each row: whether it begins an episode, and whether it continues the row before without a gap."""

    is_new: BoolArray
    continues: BoolArray


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
        result: OffsetArray = np.rint(counted).astype(np.int64)
        return result


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


def follow(
    bits: int,
    start: int,
    rows: LogRows,
    closed: BoolArray,
    state: FollowState,
    tick: Tick | None = None,
    known: BoolArray | None = None,
) -> Marks:
    """Follow rows from number `start` on: mark those that are wrong, take notes, and fill in next states.

    Rows before `start` have been followed already and wait for their next states, and so have those that are
    `known`, each the last of its episode so far. `closed` says of each row whether it leads to a state that
    nothing leaves. What is known of the rows before is in `state`, and afterwards what is known of these.
    """
    clock = (tick or Tick()).parts(rows.time)
    if known is None:
        known = np.zeros(len(rows), dtype=np.bool_)
    numbers = (rows.episode, rows.step, rows.time, rows.state, rows.next_state, clock)
    marks = Marks(np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_))
    _follow_rows(
        bits,
        start,
        tuple(frozen_array(column, np.int64) for column in numbers),
        tuple(frozen_array(flag, np.bool_) for flag in (rows.placed, rows.ended, closed, known)),
        (marks.is_new, marks.continues),
        rows.problems,
        state.carry,
        state.notes,
    )
    if bits & FROM_NEXT_ROW:
        rows.next_state = np.full(len(rows), UNKNOWN, dtype=np.int64)
        rows.next_state[:-1][marks.continues[1:]] = rows.state[1:][marks.continues[1:]]
    return marks


@kernel
def _follow_rows(
    bits: int,
    start: int,
    numbers: tuple[OffsetArray, ...],
    flags: tuple[BoolArray, ...],
    marks: tuple[BoolArray, BoolArray],
    problems: npt.NDArray[np.int8],
    carry: OffsetArray,
    notes: OffsetArray,
) -> None:
    """`numbers` are episode, step, time, state, next state and parts of the clock's step; `flags` whether a
    row's place can be read, whether its episode ended, `closed`, and `known`.
    """
    episode, step, time, state, next_state, clock = numbers
    placed, ended, closed, known = flags
    is_new, continues = marks
    has_episodes, has_steps = bits & HAS_EPISODES != 0, bits & HAS_STEPS != 0
    has_time, has_ends = bits & HAS_TIME != 0, bits & HAS_ENDS != 0
    from_next, is_sorted = bits & FROM_NEXT_ROW != 0, bits & IS_SORTED != 0
    strands = bits & IN_STRANDS != 0
    in_strands = strands and has_episodes
    must_chain = has_episodes or has_steps or has_ends
    for i in range(start, len(episode)):
        if not placed[i]:
            carry[SOUND] = 0
            continue
        begun = carry[BEGUN] != 0
        new = not begun
        sound = problems[i] == _NONE
        if not known[i]:
            if has_time:
                if begun and not strands and time[i] <= carry[AT_TIME]:
                    notes[TIME_FALLS] += 1
                notes[LAST_TIME] = max(notes[LAST_TIME], time[i])
            if begun:
                if has_episodes:
                    new = episode[i] != carry[AT_EPISODE]
                elif has_steps and step[i] <= carry[AT_STEP]:
                    new = True
                elif has_ends:
                    new = carry[ENDED] != 0
                elif not (has_steps or from_next):
                    new = True
            gap = False
            repeated = False
            disordered = False
            if not new and has_steps:
                jump = step[i] - carry[AT_STEP]
                if jump > 1:
                    gap = True
                    notes[GAPS] += 1
                    notes[MISSING] += jump - 1
                repeated = jump == 0 and is_sorted
                disordered = jump <= 0 and not repeated
            elif not new and has_time:
                disordered = time[i] < carry[AT_TIME]
                repeated = time[i] == carry[AT_TIME]
                if clock[i] - carry[AT_CLOCK] > SILENCE:
                    gap = True
                    notes[HOLES] += 1
            if disordered:
                notes[OUT_OF_ORDER] += 1
            if new and begun:
                is_open = carry[ENDED] == 0 and carry[CLOSED] == 0
                if carry[IS_HEAD] != 0 and not strands:
                    notes[HEAD_OPEN] = 1 if is_open else 0
                    notes[HEAD_TIME] = carry[AT_TIME]
                elif is_open and not in_strands:
                    note_open_end(carry[AT_TIME], notes)
            is_new[i] = new
            if new and (begun or strands):
                begin_episode(step[i], has_steps, time[i], notes)
            if sound and repeated:
                problems[i] = _REPEATED_STEP if has_steps else _REPEATED_TIME
            elif sound and not new and not disordered and has_episodes and carry[ENDED] != 0:
                problems[i] = _AFTER_THE_END
            elif sound and carry[SOUND] != 0 and not (new or gap or disordered):
                if not from_next and must_chain and carry[AT_NEXT] != state[i]:
                    problems[i] = _BROKEN_CHAIN
                else:
                    continues[i] = True
        carry[IS_HEAD] = 1 if not begun else (0 if new else carry[IS_HEAD])
        carry[BEGUN] = 1
        carry[AT_EPISODE] = episode[i]
        carry[AT_STEP] = step[i]
        carry[AT_TIME] = time[i]
        carry[AT_CLOCK] = clock[i]
        carry[AT_NEXT] = next_state[i]
        carry[ENDED] = 1 if ended[i] else 0
        carry[CLOSED] = 1 if closed[i] else 0
        carry[SOUND] = 1 if sound else 0


@kernel
def begin_episode(step: int, has_steps: bool, time: int, notes: OffsetArray) -> None:
    """Note that an episode begins, and at which step and time."""
    notes[EPISODES] += 1
    notes[FIRST_LOW] = min(notes[FIRST_LOW], time)
    notes[FIRST_HIGH] = max(notes[FIRST_HIGH], time)
    if has_steps:
        notes[START_LOW] = min(notes[START_LOW], step)
        notes[START_HIGH] = max(notes[START_HIGH], step)


@kernel
def note_open_end(time: int, notes: OffsetArray) -> None:
    """Note that an episode stops here, is not marked as over, and could go on."""
    notes[OPEN_ENDS] += 1
    notes[OPEN_EARLIEST] = min(notes[OPEN_EARLIEST], time)


def add_notes(total: OffsetArray, more: OffsetArray) -> None:
    """Notes of another pass, added to these; what concerns the head is left to the join."""
    for place in (GAPS, MISSING, OUT_OF_ORDER, HOLES, TIME_FALLS, EPISODES, OPEN_ENDS):
        total[place] += more[place]
    for place in (START_LOW, OPEN_EARLIEST, FIRST_LOW):
        total[place] = min(total[place], more[place])
    for place in (START_HIGH, LAST_TIME, FIRST_HIGH):
        total[place] = max(total[place], more[place])
