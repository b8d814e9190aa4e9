"""Whether the rows of a trajectory file hang together.

Within an episode each row continues where the one before ended, steps rise by one, and nothing follows
an end. The rows of an episode stand together, in order. An episode that was cut off (`truncated`) did not
end in its last state: no transition is invented for it, and none for one that `terminated`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.data.row_columns import EPISODE, STEP, TERMINATED, TRUNCATED, shown_value
from tightrope.formats.data_columns import distinct, truth_values, whole_numbers
from tightrope.formats.data_problems import Problem, ProblemCodes, mark
from tightrope.formats.data_table import Chunk, DataTable
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, OffsetArray


class ChainCheck:
    """Follows the rows from chunk to chunk; knows the last row of the chunk before."""

    def __init__(self, table: DataTable):
        self.path = table.path
        self.has_episodes = EPISODE in table.columns
        self.has_steps = STEP in table.columns and self.has_episodes
        self.flags = tuple(name for name in (TERMINATED, TRUNCATED) if name in table.columns)
        used = ((EPISODE, self.has_episodes), (STEP, self.has_steps))
        self.names = (*(name for name, there in used if there), *self.flags)
        self.episodes = 0
        self._begun = False
        self._episode: Any = None
        self._step = 0
        self._first_step = 0
        self._next_state = 0
        self._sound = False
        self._ended = False
        self._before: OffsetArray = np.empty(0, dtype=np.int64)

    @property
    def follows_episodes(self) -> bool:
        """Whether the file says where one episode ends and the next begins."""
        return self.has_episodes or bool(self.flags)

    def check(
        self, chunk: Chunk, state: OffsetArray, next_state: OffsetArray, problems: ProblemCodes
    ) -> OffsetArray:
        """Mark rows that do not follow; the number of each row's episode, from 0."""
        rows = chunk.rows
        ended = np.zeros(rows, dtype=np.bool_)
        for name in self.flags:
            ended |= truth_values(chunk.columns[name], name, self.path, problems)
        ended_before = _shifted(ended, self._ended)
        if not self.follows_episodes:
            return np.zeros(rows, dtype=np.int64)
        new = self._new_episodes(chunk, ended_before, problems)
        if self.has_episodes:
            mark(problems, ~new & ended_before, Problem.AFTER_THE_END)
        if self.has_steps:
            self._check_steps(chunk, new, problems)
        sound = problems == Problem.NONE
        follows = ~new & _shifted(sound, self._sound)
        self._before = _shifted(next_state, self._next_state)
        mark(problems, follows & (self._before != state), Problem.BROKEN_CHAIN)
        number = self.episodes - 1 + np.cumsum(new)
        self.episodes = int(number[-1]) + 1
        self._begun = True
        self._next_state, self._sound = int(next_state[-1]), bool(sound[-1])
        self._ended = bool(ended[-1])
        return number.astype(np.int64)

    def _new_episodes(self, chunk: Chunk, ended_before: BoolArray, problems: ProblemCodes) -> BoolArray:
        if not self.has_episodes:
            new: BoolArray = ended_before.copy()
            new[0] |= not self._begun
            return new
        values, codes = distinct(chunk.columns[EPISODE])
        mark(problems, codes < 0, Problem.MISSING_VALUE)
        if "" in values:
            mark(problems, codes == values.index(""), Problem.MISSING_VALUE)
        new = np.r_[True, np.diff(codes) != 0]
        new[0] = not self._begun or shown_value(chunk, EPISODE, 0) != self._episode
        self._episode = shown_value(chunk, EPISODE, chunk.rows - 1)
        return new

    def _check_steps(self, chunk: Chunk, new: BoolArray, problems: ProblemCodes) -> None:
        step = whole_numbers(chunk.columns[STEP], STEP, self.path, problems)
        if not self._begun:
            self._first_step = int(step[0])
        expected = np.where(new, self._first_step, _shifted(step, self._step) + 1)
        mark(problems, step != expected, Problem.MISSING_STEP)
        self._step = int(step[-1])

    def explain(self, chunk: Chunk, row: int, problem: Problem, state: int, structure: Structure) -> str:
        """The words for a problem that the last `check` has found."""
        episode = shown_value(chunk, EPISODE, row) if self.has_episodes else "?"
        if problem is Problem.BROKEN_CHAIN:
            there, here = structure.state_name(int(self._before[row])), structure.state_name(state)
            return f"episode {episode} goes on in state {here}, but the row before led to state {there}"
        if problem is Problem.AFTER_THE_END:
            return f"episode {episode} goes on after the row before said that it ended"
        step = shown_value(chunk, STEP, row)
        return (
            f"step {step} of episode {episode} does not follow the row before; the rows of an episode stand "
            f"together and count their steps from {self._first_step}"
        )


def _shifted(values: npt.NDArray[Any], before: Any) -> npt.NDArray[Any]:
    """The value of the row before, for every row."""
    result = np.empty_like(values)
    result[0] = before
    result[1:] = values[:-1]
    return result
