"""The rows an expression is evaluated on: one array per variable, gathered only when asked for.

A frame stands for some states of the frontier. `select` gives the frame of a subset of its rows,
which is how the branch of a conditional is evaluated only where its condition holds. Values that
several expressions share are kept in `cache` for as long as the frame lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Position

Column = npt.NDArray[Any]
"""The values of one variable: int64, or bool for a boolean variable."""


class Frame:
    """`size` rows; `describe` names the state of a row in messages."""

    __slots__ = ("_columns", "_describe", "_parent", "_rows", "cache", "size")

    def __init__(
        self,
        columns: Sequence[Column | None],
        size: int,
        describe: Callable[[int], str],
        parent: Frame | None = None,
        rows: OffsetArray | None = None,
    ):
        self._columns = list(columns)
        self.size = size
        self._describe = describe
        self._parent = parent
        self._rows = rows
        self.cache: dict[int, Any] = {}

    def column(self, variable: int) -> Column:
        """The values of a variable in these rows."""
        values = self._columns[variable]
        if values is None:
            assert self._parent is not None and self._rows is not None
            values = self._parent.column(variable)[self._rows]
            self._columns[variable] = values
        return values

    def select(self, rows: OffsetArray) -> Frame:
        """The frame of the rows with these numbers, in increasing order."""
        if len(rows) == self.size:
            return self
        return Frame((None,) * len(self._columns), len(rows), self._describe_selected(rows), self, rows)

    def mask(self, value: Any) -> BoolArray:
        """A truth value as an array with one entry per row."""
        if isinstance(value, np.ndarray):
            return value
        return np.full(self.size, bool(value))

    def fail(self, message: str, position: Position | None, mask: Any) -> NoReturn:
        """Complain about the first row in which `mask` holds."""
        row = int(np.flatnonzero(self.mask(mask))[0])
        raise Complaint(f"{message} in state {self._describe(row)}", position)

    def describe(self, row: int) -> str:
        """The state of a row, for messages."""
        return self._describe(row)

    def _describe_selected(self, rows: OffsetArray) -> Callable[[int], str]:
        return lambda row: self._describe(int(rows[row]))
