"""Which columns of a data file say what: states by index or by the model's variables, actions, counts.

| what | by index | by variables |
|---|---|---|
| state | `state` | `x`, `y`, … (all variables of the model) |
| next state | `next_state` | `x_next`, `y_next`, … |

`action` is a name or the number of the choice within its state; `choice` is that number beyond doubt. A
model with one choice in every state needs neither. A file with a column `count` is a table of counts,
any other has one row a transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tightrope.data.locate import ModelIndex, Taken
from tightrope.errors import InputError, Location
from tightrope.formats.data_columns import whole_numbers
from tightrope.formats.data_problems import ProblemCodes
from tightrope.formats.data_table import Chunk, DataTable
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import OffsetArray

STATE, NEXT_STATE, ACTION, CHOICE = "state", "next_state", "action", "choice"
EPISODE, STEP, TERMINATED, TRUNCATED = "episode", "step", "terminated", "truncated"
COUNT, BATCH = "count", "batch"
NEXT = "_next"
RESERVED = (STATE, NEXT_STATE, ACTION, CHOICE, EPISODE, STEP, TERMINATED, TRUNCATED, COUNT, BATCH)


@dataclass(frozen=True)
class RowColumns:
    """The columns that say from where, by what and to where a row goes."""

    state: tuple[str, ...]
    next_state: tuple[str, ...]
    by_index: bool
    action: str | None
    choice: str | None

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.state, *(n for n in (self.action, self.choice) if n is not None), *self.next_state)

    def decode(
        self, chunk: Chunk, index: ModelIndex, file: str, problems: ProblemCodes
    ) -> tuple[OffsetArray, Taken, OffsetArray]:
        """States, what was taken, and next states; values that are none are marked."""
        state = self._states(chunk, self.state, index, file, problems)
        taken = index.taken(
            chunk.columns[self.action] if self.action else None,
            chunk.columns[self.choice] if self.choice else None,
            file,
            problems,
        )
        next_state = self._states(chunk, self.next_state, index, file, problems)
        return state, taken, next_state

    def _states(
        self, chunk: Chunk, names: tuple[str, ...], index: ModelIndex, file: str, problems: ProblemCodes
    ) -> OffsetArray:
        values = [whole_numbers(chunk.columns[name], name, file, problems) for name in names]
        if self.by_index:
            return values[0]
        return index.state_index.states(dict(zip(index.state_index.names, values, strict=True)))


def find_columns(table: DataTable, structure: Structure) -> RowColumns:
    """Decide how the file gives states and actions, or say which columns are missing."""
    present = set(table.columns)
    variables = tuple(structure.valuations)
    successors = tuple(name + NEXT for name in variables)
    by_index = {STATE, NEXT_STATE} <= present
    if not by_index:
        clash = [name for name in variables if name in RESERVED or name + NEXT in (*variables, *RESERVED)]
        if clash:
            raise _missing(
                table,
                [STATE, NEXT_STATE],
                f"the model's variable '{clash[0]}' clashes with the names of other columns, "
                "so states must be given by index",
            )
        if not variables:
            raise _missing(
                table, [STATE, NEXT_STATE], "the model has no variables, so states are given by index"
            )
        if not present.issuperset(variables + successors):
            by_variables = ", ".join(variables + successors)
            raise _missing(table, [STATE, NEXT_STATE], f"or, for states by variables, {by_variables}")
    action = ACTION if ACTION in present else None
    choice = CHOICE if CHOICE in present else None
    if action is None and choice is None and not structure.is_chain:
        raise _missing(table, [ACTION], f"or '{CHOICE}': some states of the model have more than one choice")
    if by_index:
        return RowColumns((STATE,), (NEXT_STATE,), True, action, choice)
    return RowColumns(variables, successors, False, action, choice)


def shown_value(chunk: Chunk, name: str, row: int) -> Any:
    """A value as it stands in the file."""
    return chunk.columns[name][row].as_py()


def _missing(table: DataTable, names: list[str], why: str) -> InputError:
    absent = [name for name in names if name not in table.columns]
    there = ", ".join(table.columns)
    return InputError(
        f"missing column{'s' if len(absent) > 1 else ''} {', '.join(absent)} ({why})",
        Location(table.path),
        f"the file has the columns {there}",
    )
