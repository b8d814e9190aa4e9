"""The rows an expression is evaluated on: one array per variable, gathered only when asked for.

A frame stands for some states of the frontier. `select` gives the frame of a subset of its rows,
which is how the branch of a conditional is evaluated only where its condition holds. Values that
several expressions share are kept in `cache` for as long as the frame lives.

Integer and truth-valued computations on frames, with the range of every result known beforehand.

An expression is compiled once into a graph of nodes and then run on frame after frame; a node costs
one NumPy operation a frame. Every integer node carries bounds of its values, by interval arithmetic
from the ranges of the variables. They serve three ends: a computation whose bounds fit int64 cannot
overflow and one that does not fit runs on Python's integers (exact in both cases), comparisons that
the bounds decide become constants, and updates that provably stay in range are not checked.

Nodes are interned: equal computations are one node, run once a frame. `fails` says that running a
node may raise (a division by zero, say), so it must not run on rows where a condition shields it.
"""

from __future__ import annotations

import itertools
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


Run = Callable[[Frame], Any]

VARIABLE = "variable"
"""The origin of the value of a variable."""

INT64_LOW, INT64_HIGH = -(2**63), 2**63 - 1

_numbers = itertools.count()


class Node:
    """`value(frame)` is an array with one entry a row, or a Python scalar that stands for all rows.

    `origin` names the operation and its operands where these are int64 and cannot fail: what
    `tightrope.prism.explore.instructions` can translate.
    """

    __slots__ = ("_run", "fails", "origin", "shared", "uid", "variables")

    def __init__(self, run: Run, variables: frozenset[int], fails: bool):
        self._run = run
        self.origin: tuple[str, tuple[Node, ...]] | None = None
        self.variables = variables
        self.fails = fails
        self.shared = False
        self.uid = next(_numbers)

    def value(self, frame: Frame) -> Any:
        if not self.shared:
            return self._run(frame)
        cache = frame.cache
        if self.uid in cache:
            return cache[self.uid]
        result = self._run(frame)
        cache[self.uid] = result
        return result


class Integer(Node):
    """low ≤ value ≤ high in every row that the node may be run on."""

    __slots__ = ("high", "low", "wide")

    def __init__(self, run: Run, variables: frozenset[int], fails: bool, low: int, high: int):
        super().__init__(run, variables, fails)
        self.low = low
        self.high = high
        self.wide = low < INT64_LOW or high > INT64_HIGH

    @property
    def constant(self) -> int | None:
        """The value, where it is one and the same for all rows and cannot fail."""
        return self.low if self.low == self.high and not self.fails else None


class Boolean(Node):
    """A truth value; `constant` is None where it depends on the row."""

    __slots__ = ("constant",)

    def __init__(self, run: Run, variables: frozenset[int], fails: bool, constant: bool | None = None):
        super().__init__(run, variables, fails)
        self.constant = constant


def exact(value: Any) -> Any:
    """The same integers as Python's own, which never overflow."""
    return value.astype(object) if isinstance(value, np.ndarray) else int(value)


def machine(value: Any) -> Any:
    """Integers known to fit, back in int64."""
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)
