"""How the rows of a log follow each other: which continue an episode, where steps are missing or out of
order.

One compiled pass over rows in the order of the log. A row continues the episode of the row before where
both bear its name; without names an episode ends where a flag says so, or where steps begin again. Within
an episode

* steps rise by one; a jump is a *gap*: rows are missing there, and no transition leads across;
* a step that does not rise, a time that falls, or an episode that begins late mean rows *out of order*;
* each row begins where the one before ended, and nothing follows an end.

Where a log has no next states, a row's is the state of the row that continues it. What the pass cannot know
is what stands before its first row; `Partial` joins that later (`tightrope.data.partial`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tightrope.data.rows import Rows
from tightrope.data.state_index import UNKNOWN
from tightrope.formats.table.problems import Problem
from tightrope.model.structure import frozen_array
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.jit import kernel

HAS_EPISODES, HAS_STEPS, HAS_TIME, HAS_ENDS, FROM_NEXT_ROW, IS_SORTED = 1, 2, 4, 8, 16, 32
"""What the log has and how it is read, as bits."""

GAPS, MISSING, OUT_OF_ORDER, EPISODES, START_LOW, START_HIGH = range(6)
OPEN_ENDS, OPEN_SHORTEST, OPEN_LONGEST, LONGEST, HEAD_ROWS, HEAD_OPEN, NOTES = range(6, 13)
"""Places in the notes of a pass. `HEAD_ROWS` are the rows of its first episode, −1 until that has ended."""

BEGUN, EPISODE, STEP, TIME, NEXT, ENDED, CLOSED, SOUND, ROWS, IS_HEAD, CARRIED = range(11)
"""Places in what is carried from row to row."""

NEVER = 2**62

_NONE = int(Problem.NONE)
_AFTER_THE_END = int(Problem.AFTER_THE_END)
_BROKEN_CHAIN = int(Problem.BROKEN_CHAIN)
_REPEATED_STEP = int(Problem.REPEATED_STEP)


@dataclass(frozen=True, eq=False)
class FollowState:
    """What is carried from row to row, and the notes that were taken."""

    carry: OffsetArray
    notes: OffsetArray

    @staticmethod
    def before_all() -> FollowState:
        """Nothing stands before the first row."""
        return FollowState(np.zeros(CARRIED, dtype=np.int64), no_notes())

    def copy(self) -> FollowState:
        """The same rows before, and no notes."""
        return FollowState(self.carry.copy(), no_notes())


def no_notes() -> OffsetArray:
    """The notes of a pass that has seen nothing."""
    notes = np.zeros(NOTES, dtype=np.int64)
    notes[[START_LOW, OPEN_SHORTEST]] = NEVER
    notes[[START_HIGH, OPEN_LONGEST]] = -NEVER
    notes[HEAD_ROWS] = -1
    return notes


@dataclass(frozen=True)
class Marks:
    """Of each row: whether it begins an episode, and whether it continues the row before without a gap."""

    is_new: BoolArray
    continues: BoolArray


def follow(bits: int, start: int, rows: Rows, closed: BoolArray, state: FollowState) -> Marks:
    """Follow rows from number `start` on: mark those that are wrong, take notes, and fill in next states.

    Rows before `start` have been followed already and wait for their next states. `closed` says of each row
    whether it leads to a state that nothing leaves. What is known of the rows before is in `state`, and
    afterwards what is known of these.
    """
    numbers = (rows.episode, rows.step, rows.time, rows.state, rows.next_state)
    marks = Marks(np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_))
    _follow_rows(
        bits,
        start,
        tuple(frozen_array(column, np.int64) for column in numbers),
        tuple(frozen_array(flag, np.bool_) for flag in (rows.placed, rows.ended, closed)),
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
    """`numbers` are episode, step, time, state and next state; `flags` whether a row's place can be read,
    whether its episode ended, and `closed`.
    """
    episode, step, time, state, next_state = numbers
    placed, ended, closed = flags
    is_new, continues = marks
    has_episodes, has_steps = bits & HAS_EPISODES != 0, bits & HAS_STEPS != 0
    has_time, has_ends = bits & HAS_TIME != 0, bits & HAS_ENDS != 0
    from_next, is_sorted = bits & FROM_NEXT_ROW != 0, bits & IS_SORTED != 0
    must_chain = has_episodes or has_steps or has_ends
    for i in range(start, len(episode)):
        if not placed[i]:
            carry[SOUND] = 0
            continue
        begun = carry[BEGUN] != 0
        new = not begun
        if begun:
            if has_episodes:
                new = episode[i] != carry[EPISODE]
            elif has_steps and step[i] <= carry[STEP]:
                new = True
            elif has_ends:
                new = carry[ENDED] != 0
            elif not (has_steps or from_next):
                new = True
        gap = False
        repeated = False
        disordered = False
        if not new and has_steps:
            jump = step[i] - carry[STEP]
            if jump > 1:
                gap = True
                notes[GAPS] += 1
                notes[MISSING] += jump - 1
            elif jump == 0 and is_sorted:
                repeated = True
            disordered = jump <= 0 and not repeated
        elif not new and has_time and time[i] < carry[TIME]:
            disordered = True
        if disordered:
            notes[OUT_OF_ORDER] += 1
        if new and begun:
            is_open = has_ends and carry[ENDED] == 0 and carry[CLOSED] == 0
            if carry[IS_HEAD] != 0 and not is_sorted:
                notes[HEAD_ROWS] = carry[ROWS]
                notes[HEAD_OPEN] = 1 if is_open else 0
            else:
                end_episode(carry[ROWS], is_open, notes)
        is_new[i] = new
        if new and (begun or is_sorted):
            begin_episode(step[i], has_steps, notes)
        sound = problems[i] == _NONE
        if problems[i] == _NONE and repeated:
            problems[i] = _REPEATED_STEP
        elif problems[i] == _NONE and not new and not disordered and has_episodes and carry[ENDED] != 0:
            problems[i] = _AFTER_THE_END
        if new or gap or repeated or disordered:
            pass
        elif carry[SOUND] != 0 and problems[i] == _NONE:
            if not from_next and must_chain and carry[NEXT] != state[i]:
                problems[i] = _BROKEN_CHAIN
            else:
                continues[i] = True
        carry[IS_HEAD] = 1 if not begun else (0 if new else carry[IS_HEAD])
        carry[BEGUN] = 1
        carry[EPISODE] = episode[i]
        carry[STEP] = step[i]
        carry[TIME] = time[i]
        carry[NEXT] = next_state[i]
        carry[ENDED] = 1 if ended[i] else 0
        carry[CLOSED] = 1 if closed[i] else 0
        carry[SOUND] = 1 if sound else 0
        carry[ROWS] = 1 if new else carry[ROWS] + 1


@kernel
def begin_episode(step: int, has_steps: bool, notes: OffsetArray) -> None:
    """Note that an episode begins, and at which step."""
    notes[EPISODES] += 1
    if has_steps:
        notes[START_LOW] = min(notes[START_LOW], step)
        notes[START_HIGH] = max(notes[START_HIGH], step)


@kernel
def end_episode(rows: int, is_open: bool, notes: OffsetArray) -> None:
    """Note that an episode of so many rows is over; its end is not marked where it `is_open`."""
    notes[LONGEST] = max(notes[LONGEST], rows)
    if is_open:
        notes[OPEN_ENDS] += 1
        notes[OPEN_SHORTEST] = min(notes[OPEN_SHORTEST], rows)
        notes[OPEN_LONGEST] = max(notes[OPEN_LONGEST], rows)


def add_notes(total: OffsetArray, more: OffsetArray) -> None:
    """Notes of another pass, added to these; what concerns the head is left to the join."""
    for place in (GAPS, MISSING, OUT_OF_ORDER, EPISODES, OPEN_ENDS):
        total[place] += more[place]
    for place in (START_LOW, OPEN_SHORTEST):
        total[place] = min(total[place], more[place])
    for place in (START_HIGH, OPEN_LONGEST, LONGEST):
        total[place] = max(total[place], more[place])
