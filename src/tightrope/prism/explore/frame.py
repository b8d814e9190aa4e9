"""Frames, the rows on which expressions are evaluated, and integer and boolean computations on them.

A frame stands for some states of the frontier, with one lazy array per variable. `select` gives a subset of
rows: a branch of a conditional is evaluated only where its condition holds. `cache` keeps shared values.

An expression is compiled once into a graph of interned nodes, each one NumPy operation per frame. Integer
nodes carry bounds by interval arithmetic from the variables' ranges. Computations that fit int64 cannot
overflow, others use Python's integers; comparisons that bounds decide become constants; updates that provably
stay in range are not checked. A node with `fails` may raise (a division by zero), so it must not run on rows
where a condition shields it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias

import numpy as np

from tightrope.numerics.arrays import AnyArray, BoolArray, OffsetArray
from tightrope.numerics.jit import inlined
from tightrope.prism.parse.syntax import Complaint, Position

Column: TypeAlias = AnyArray
"""The values of one variable: int64, or bool for a boolean variable."""

Value = int | bool | Column
"""Of a node: an array with an entry per row, or one number or truth value for all of them."""


class StateFrame:
    """`size` rows; `describe` names the state of a row in messages."""

    __slots__ = ("_columns", "_describe", "_parent", "_rows", "cache", "size")

    def __init__(
        self,
        columns: Sequence[Column | None],
        size: int,
        describe: Callable[[int], str],
        parent: StateFrame | None = None,
        rows: OffsetArray | None = None,
    ):
        self._columns = list(columns)
        self.size = size
        self._describe = describe
        self._parent = parent
        self._rows = rows
        self.cache: dict[int, Value] = {}

    def column(self, variable: int) -> Column:
        """The values of a variable in these rows."""
        values = self._columns[variable]
        if values is None:
            assert self._parent is not None and self._rows is not None
            values = self._parent.column(variable)[self._rows]
            self._columns[variable] = values
        return values

    def select(self, rows: OffsetArray) -> StateFrame:
        """The frame of the rows with these numbers, in increasing order."""
        if len(rows) == self.size:
            return self
        return StateFrame(
            (None,) * len(self._columns), len(rows), lambda row: self._describe(int(rows[row])), self, rows
        )

    def mask(self, value: Value) -> BoolArray:
        """A truth value as an array with one entry per row."""
        if isinstance(value, np.ndarray):
            return value
        return np.full(self.size, bool(value))

    def fail(self, message: str, position: Position | None, mask: Value) -> NoReturn:
        """Complain about the first row in which `mask` holds."""
        row = int(np.flatnonzero(self.mask(mask))[0])
        raise Complaint(f"{message} in state {self._describe(row)}", position)

    def describe(self, row: int) -> str:
        """The state of a row, for messages."""
        return self._describe(row)


Run = Callable[[StateFrame], Value]

VARIABLE = "variable"
"""The origin of the value of a variable."""

_numbers = itertools.count()


class ValueNode:
    """`value(frame)`: an array or a scalar for all rows; `origin` if it is int64 and cannot fail."""

    __slots__ = ("_run", "fails", "origin", "shared", "uid", "variables")

    def __init__(self, run: Run, variables: frozenset[int], fails: bool):
        self._run = run
        self.origin: tuple[str, tuple[ValueNode, ...]] | None = None
        self.variables = variables
        self.fails = fails
        self.shared = False
        self.uid = next(_numbers)

    def value(self, frame: StateFrame) -> Value:
        if not self.shared:
            return self._run(frame)
        cache = frame.cache
        if self.uid in cache:
            return cache[self.uid]
        result = self._run(frame)
        cache[self.uid] = result
        return result


class Integer(ValueNode):
    """low ≤ value ≤ high in every row that the node may be run on."""

    __slots__ = ("high", "low", "wide")

    def __init__(self, run: Run, variables: frozenset[int], fails: bool, low: int, high: int):
        super().__init__(run, variables, fails)
        self.low = low
        self.high = high
        self.wide = is_wide(low, high)

    @property
    def constant(self) -> int | None:
        """The value, where it is one and the same for all rows and cannot fail."""
        return self.low if self.low == self.high and not self.fails else None


class Boolean(ValueNode):
    """A truth value; `constant` is None where it depends on the row."""

    __slots__ = ("constant",)

    def __init__(self, run: Run, variables: frozenset[int], fails: bool, constant: bool | None = None):
        super().__init__(run, variables, fails)
        self.constant = constant


def is_wide(low: int, high: int) -> bool:
    """Whether int64 does not hold all integers from low to high."""
    return low < -(2**63) or high >= 2**63


def exact(value: Value) -> int | Column:
    """The same integers as Python's own, which never overflow."""
    return value.astype(object) if isinstance(value, np.ndarray) else int(value)


def machine(value: Value) -> int | Column:
    """Integers known to fit, back in int64."""
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


# Guards and updates as instructions over int64 registers, for a compiled loop that runs them state by state.
#
# NumPy runs a node on a whole frame in one call, which is best where frames are large; a frame of a few
# states costs as many calls. Here the nodes of an expression become a short list of instructions (operation,
# target, a, b, c), which `run` follows for one state. The first registers are the variables of the program,
# constants have registers that are never written. Only what cannot fail and stays within int64 is translated
# (`ValueNode.origin`), so the instructions compute what the nodes do; anything else is `Untranslatable`.

(ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, MINIMUM, MAXIMUM, CHOOSE) = range(8)
(EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, AND, OR, NOT, REQUIRE) = range(8, 18)
"""REQUIRE leaves the list, with the answer no, where register a is 0."""

_CODE = {
    "+": ADD,
    "-": SUBTRACT,
    "*": MULTIPLY,
    "//": DIVIDE,
    "mod": MODULO,
    "min": MINIMUM,
    "max": MAXIMUM,
    "choose": CHOOSE,
    "=": EQUAL,
    "<=>": EQUAL,
    "!=": UNEQUAL,
    "<": LESS,
    "<=": AT_MOST,
    ">": MORE,
    ">=": AT_LEAST,
    "&": AND,
    "|": OR,
    "!": NOT,
}


class Untranslatable(Exception):
    """A node that may fail, or whose numbers may exceed int64."""


class Instructions:
    """Grows list by list; `code` and `registers` are what `run` works on."""

    def __init__(self, variables: int):
        self._code: list[tuple[int, int, int, int, int]] = []
        self._initial = [0] * variables
        self._constants: dict[int, int] = {}

    @property
    def code(self) -> OffsetArray:
        return np.array(self._code, dtype=np.int64).reshape(-1, 5)

    @property
    def registers(self) -> OffsetArray:
        """A register per variable, and further ones, among them the constants."""
        return np.array(self._initial, dtype=np.int64)

    def condition(self, node: Boolean) -> tuple[int, int]:
        """A list that is left early where the condition does not hold; its begin and end."""
        begin = len(self._code)
        known: dict[int, int] = {}
        for conjunct in _conjuncts(node):
            self._code.append((REQUIRE, 0, self._translate(conjunct, known), 0, 0))
        return begin, len(self._code)

    def values(self, nodes: Sequence[ValueNode]) -> tuple[int, int, list[int]]:
        """A list that computes the nodes: its begin, its end, and the registers of the results."""
        begin = len(self._code)
        known: dict[int, int] = {}
        result = [self._translate(node, known) for node in nodes]
        return begin, len(self._code), result

    def _translate(self, node: ValueNode, known: dict[int, int]) -> int:
        """The register that holds the node's value once the instructions so far have run."""
        if node.uid in known:
            return known[node.uid]
        if isinstance(node, Integer | Boolean) and node.constant is not None:
            return self._constant(int(node.constant))
        if node.origin is None or (node.origin[0] != VARIABLE and node.origin[0] not in _CODE):
            raise Untranslatable
        name, children = node.origin
        if name == VARIABLE:
            (register,) = node.variables
            return register
        operands = [self._translate(child, known) for child in children]
        operands += [0] * (3 - len(operands))
        target = self._new(0)
        self._code.append((_CODE[name], target, operands[0], operands[1], operands[2]))
        known[node.uid] = target
        return target

    def _constant(self, value: int) -> int:
        if is_wide(value, value):
            raise Untranslatable
        if value not in self._constants:
            self._constants[value] = self._new(value)
        return self._constants[value]

    def _new(self, value: int) -> int:
        self._initial.append(value)
        return len(self._initial) - 1


def _conjuncts(node: Boolean) -> list[ValueNode]:
    """The conditions whose conjunction it is, from left to right."""
    result: list[ValueNode] = []
    rest: list[ValueNode] = [node]
    while rest:
        part = rest.pop()
        if part.origin is not None and part.origin[0] == "&":
            rest += reversed(part.origin[1])
        else:
            result.append(part)
    return result


@inlined
def run(code: OffsetArray, begin: int, end: int, registers: OffsetArray) -> bool:
    """Follow a list of instructions; whether all that it requires holds."""
    for at in range(begin, end):
        operation = code[at, 0]
        a = registers[code[at, 2]]
        if operation == REQUIRE:
            if a == 0:
                return False
            continue
        b = registers[code[at, 3]]
        if operation == EQUAL:
            value = np.int64(a == b)
        elif operation == ADD:
            value = a + b
        elif operation == SUBTRACT:
            value = a - b
        elif operation == MULTIPLY:
            value = a * b
        elif operation == DIVIDE:
            value = a // b
        elif operation == MODULO:
            value = a % b
        elif operation == MINIMUM:
            value = min(a, b)
        elif operation == MAXIMUM:
            value = max(a, b)
        elif operation == CHOOSE:
            value = b if a != 0 else registers[code[at, 4]]
        elif operation == UNEQUAL:
            value = np.int64(a != b)
        elif operation == LESS:
            value = np.int64(a < b)
        elif operation == AT_MOST:
            value = np.int64(a <= b)
        elif operation == MORE:
            value = np.int64(a > b)
        elif operation == AT_LEAST:
            value = np.int64(a >= b)
        elif operation == AND:
            value = a & b
        elif operation == OR:
            value = a | b
        else:
            value = np.int64(a == 0)
        registers[code[at, 1]] = value
    return True
