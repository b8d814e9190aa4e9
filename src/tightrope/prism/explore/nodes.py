"""Nodes that expressions are compiled to: frames, computations on them, and their builder (`NodeGraph`).

Integer and exact real arithmetic and logic are folded and interned as the graph grows.
One graph belongs to one set of ranges of the variables; a command whose guard narrows them has a
graph of its own, in which more bounds are decided.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, TypeAlias, TypeVar, cast

import numpy as np

from tightrope.numerics.arrays import AnyArray, BoolArray, OffsetArray
from tightrope.numerics.jit import inlined
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.expand.expressions import COMPARISONS, apply
from tightrope.prism.parse.syntax import Call, Complaint, Position

# Frames, the rows on which expressions are evaluated, and integer and boolean computations on them.
#
# A frame stands for some states of the frontier, with one lazy array per variable. `select` gives a subset of
# rows: a branch of a conditional is evaluated only where its condition holds. `cache` keeps shared values.
#
# An expression is compiled once into a graph of interned nodes, each one NumPy operation per frame. Integer
# nodes carry bounds by interval arithmetic from the variables' ranges. Computations that fit int64 cannot
# overflow, others use Python's integers; comparisons that bounds decide become constants; updates that
# provably stay in range are not checked. A node with `fails` may raise (a division by zero), so it must not
# run on rows where a condition shields it.

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
        """The frame of the rows with these numbers, in increasing order; a row may come several times."""
        if len(rows) == self.size and np.array_equal(rows, np.arange(self.size)):
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


N = TypeVar("N", bound=ValueNode)
Operator = Callable[..., Value]
"""Of numbers or arrays."""


class NodeGraph:
    """`ranges[v]` are the bounds of variable v in the rows that nodes of this graph will see."""

    def __init__(self, ranges: Sequence[tuple[int, int]]):
        self._ranges = tuple(ranges)
        self._known: dict[Hashable, ValueNode] = {}
        self.true = Boolean(lambda frame: True, frozenset(), False, True)
        self.false = Boolean(lambda frame: False, frozenset(), False, False)

    # --- integers --------------------------------------------------------------------------

    def constant(self, value: int) -> Integer:
        return self._intern(
            ("constant", value), lambda: Integer(lambda frame: value, frozenset(), False, value, value)
        )

    def variable(self, index: int) -> Integer:
        low, high = self._ranges[index]
        if low == high:
            return self.constant(low)
        return self._intern(
            ("variable", index),
            lambda: _of_origin(
                Integer(lambda frame: frame.column(index), frozenset((index,)), False, low, high),
                VARIABLE,
                (),
            ),
        )

    def add(self, a: Integer, b: Integer) -> Integer:
        if a.constant == 0:
            return b
        if b.constant == 0:
            return a
        return self._binary("+", a, b, operator.add, a.low + b.low, a.high + b.high)

    def subtract(self, a: Integer, b: Integer) -> Integer:
        if b.constant == 0:
            return a
        return self._binary("-", a, b, operator.sub, a.low - b.high, a.high - b.low)

    def negate(self, a: Integer) -> Integer:
        return self.multiply(self.constant(-1), a)

    def multiply(self, a: Integer, b: Integer) -> Integer:
        if a.constant == 1:
            return b
        if b.constant == 1:
            return a
        corners = (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
        return self._binary("*", a, b, operator.mul, min(corners), max(corners))

    def floor_divide(self, a: Integer, b: Integer) -> Integer:
        """⌊a / b⌋ for b ≥ 1."""
        if b.constant == 1:
            return a
        corners = (a.low // b.low, a.low // b.high, a.high // b.low, a.high // b.high)
        return self._binary("//", a, b, operator.floordiv, min(corners), max(corners))

    def modulo(self, a: Integer, b: Integer) -> Integer:
        """a mod b for b ≥ 1: the remainder in 0..b−1, for negative a too."""
        if a.low >= 0 and a.high < b.low and not b.fails:
            return a
        low, high = 0, b.high - 1
        if a.constant is not None and b.constant is not None:
            low = high = a.constant % b.constant
        return self._binary("mod", a, b, operator.mod, low, high)

    def minimum(self, a: Integer, b: Integer) -> Integer:
        return self._extreme("min", a, b, np.minimum, min(a.low, b.low), min(a.high, b.high))

    def maximum(self, a: Integer, b: Integer) -> Integer:
        return self._extreme("max", a, b, np.maximum, max(a.low, b.low), max(a.high, b.high))

    def _extreme(self, name: str, a: Integer, b: Integer, function: Operator, low: int, high: int) -> Integer:
        for one, other in ((a, b), (b, a)):
            first, second = (one, other) if name == "min" else (other, one)
            if first.high <= second.low and not other.fails:
                return one
        return self._binary(name, a, b, function, low, high)

    def absolute(self, a: Integer) -> Integer:
        return self.maximum(a, self.negate(a))

    def power_bits(self, a: Integer, b: Integer) -> int:
        """A bound on the size of a to the power b."""
        return b.high * (max(abs(a.low), abs(a.high), 1) - 1).bit_length()

    def power(self, a: Integer, b: Integer) -> Integer:
        """a to the power b for b ≥ 0."""
        exponents = {b.low, b.high, max(b.low, b.high - 1)}
        bases = {a.low, a.high, *(z for z in (0, -1) if a.low <= z <= a.high)}
        corners = [x**k for x in bases for k in exponents]
        return self._binary("pow", a, b, operator.pow, min(corners), max(corners))

    def choose(self, condition: Boolean, a: Integer, b: Integer) -> Integer:
        if condition.constant is not None:
            return a if condition.constant else b
        if a is b and not condition.fails:
            return a
        low, high = min(a.low, b.low), max(a.high, b.high)

        def run(frame: StateFrame) -> Value:
            return np.where(condition.value(frame), a.value(frame), b.value(frame))

        def run_lazily(frame: StateFrame) -> Value:
            mask = frame.mask(condition.value(frame))
            result = np.empty(frame.size, dtype=object if a.wide or b.wide else np.int64)
            for rows, branch in ((np.flatnonzero(mask), a), (np.flatnonzero(~mask), b)):
                if len(rows):
                    result[rows] = branch.value(frame.select(rows))
            return result

        lazy = a.fails or b.fails or a.wide or b.wide  # NumPy has no integers that are wide
        return self._integer("choose", (condition, a, b), run_lazily if lazy else run, low, high)

    def checked(self, a: Integer, wrong: str, bound: int, message: str, position: Position | None) -> Integer:
        """`a`, where running it complains about rows with `a wrong bound`, such as `a < 1`."""
        compare = COMPARISONS[wrong]
        low, high = a.low, a.high
        if wrong == "<":
            low, high = max(low, bound), max(high, bound)
            if a.low >= bound:
                return a
        elif wrong == "=":
            if not a.low <= bound <= a.high:
                return a
            low, high = low + (low == bound), high - (high == bound)
            low, high = min(low, high), max(low, high)

        def run(frame: StateFrame) -> Value:
            value = a.value(frame)
            bad = compare(value, bound)
            if frame.size and np.any(bad):
                frame.fail(message, position, bad)
            return value

        return self._integer("checked", (a,), run, low, high, fails=True, extra=(wrong, bound, position))

    def opaque(self, children: Sequence[ValueNode], run: Run, low: int, high: int) -> Integer:
        """A node with its own computation, never interned."""
        variables = frozenset[int]().union(*(child.variables for child in children))
        return Integer(run, variables, True, low, high)

    # --- truth values ----------------------------------------------------------------------

    def truth(self, value: bool) -> Boolean:
        return self.true if value else self.false

    def boolean_variable(self, index: int) -> Boolean:
        low, high = self._ranges[index]
        if low == high:
            return self.truth(low == 1)
        return self._intern(
            ("boolean", index),
            lambda: _of_origin(
                Boolean(lambda frame: frame.column(index), frozenset((index,)), False), VARIABLE, ()
            ),
        )

    def compare(self, relation: str, a: Integer, b: Integer) -> Boolean:
        decided = None if a.fails or b.fails else _decide(relation, a, b)
        if decided is not None:
            return self.truth(decided)
        function = COMPARISONS[relation]
        if a.wide or b.wide:
            return self._boolean(
                relation, (a, b), lambda frame: function(exact(a.value(frame)), exact(b.value(frame)))
            )
        return self._boolean(relation, (a, b), lambda frame: function(a.value(frame), b.value(frame)))

    def both(self, a: Boolean, b: Boolean) -> Boolean:
        return self._junction("&", a, b, True)

    def either(self, a: Boolean, b: Boolean) -> Boolean:
        return self._junction("|", a, b, False)

    def negation(self, a: Boolean) -> Boolean:
        if a.constant is not None:
            return self.truth(not a.constant)
        return self._boolean("!", (a,), lambda frame: np.logical_not(a.value(frame)))

    def same(self, a: Boolean, b: Boolean) -> Boolean:
        for one, other in ((a, b), (b, a)):
            if one.constant is not None:
                return other if one.constant else self.negation(other)
        return self._boolean("<=>", (a, b), lambda frame: a.value(frame) == b.value(frame))

    def choose_truth(self, condition: Boolean, a: Boolean, b: Boolean) -> Boolean:
        return self.either(self.both(condition, a), self.both(self.negation(condition), b))

    def _junction(self, name: str, a: Boolean, b: Boolean, neutral: bool) -> Boolean:
        """a & b (`neutral` true) or a | b (false); b runs only where a leaves the answer open."""
        if a.constant is not None:
            return b if a.constant == neutral else a
        if b.constant is not None and (b.constant == neutral or not a.fails):
            return a if b.constant == neutral else b
        combine = operator.and_ if neutral else operator.or_

        def run_lazily(frame: StateFrame) -> Value:
            result = frame.mask(a.value(frame)).copy()
            rows = np.flatnonzero(result == neutral)
            if len(rows):
                result[rows] = b.value(frame.select(rows))
            return result

        if b.fails:
            return self._boolean(name, (a, b), run_lazily)
        return self._boolean(name, (a, b), lambda frame: combine(a.value(frame), b.value(frame)))

    # --- interning -------------------------------------------------------------------------

    def _binary(self, name: str, a: Integer, b: Integer, function: Operator, low: int, high: int) -> Integer:
        if not (a.wide or b.wide) and not is_wide(low, high):
            return self._integer(
                name, (a, b), lambda frame: function(a.value(frame), b.value(frame)), low, high
            )
        finish = exact if is_wide(low, high) else machine
        return self._integer(
            name,
            (a, b),
            lambda frame: finish(function(exact(a.value(frame)), exact(b.value(frame)))),
            low,
            high,
        )

    def _integer(
        self,
        name: str,
        children: Sequence[ValueNode],
        run: Run,
        low: int,
        high: int,
        fails: bool = False,
        extra: tuple[Hashable, ...] = (),
    ) -> Integer:
        fails = fails or any(child.fails for child in children)
        if low == high and not fails:
            return self.constant(low)
        variables = frozenset[int]().union(*(child.variables for child in children))
        key = (name, *(child.uid for child in children), *extra)
        return self._intern(
            key, lambda: _of_origin(Integer(run, variables, fails, low, high), name, children)
        )

    def _boolean(self, name: str, children: Sequence[ValueNode], run: Run) -> Boolean:
        variables = frozenset[int]().union(*(child.variables for child in children))
        fails = any(child.fails for child in children)
        key = (name, *(child.uid for child in children))
        return self._intern(key, lambda: _of_origin(Boolean(run, variables, fails), name, children))

    def _intern(self, key: Hashable, make: Callable[[], N]) -> N:
        if (known := self._known.get(key)) is None:
            made = self._known[key] = make()
            return made
        known.shared |= bool(known.variables)
        return cast(N, known)


def _of_origin(node: N, name: str, children: Sequence[ValueNode]) -> N:
    """The node, which remembers what it was made of unless that fails or exceeds int64."""
    wide = any(isinstance(each, Integer) and each.wide for each in (node, *children))
    if not (wide or node.fails):
        node.origin = name, tuple(children)
    return node


def _decide(relation: str, a: Integer, b: Integer) -> bool | None:
    """The truth value of a comparison that the bounds decide."""
    if a.high < b.low:
        return relation in ("<", "<=", "!=")
    if a.low > b.high:
        return relation in (">", ">=", "!=")
    if a.low == a.high == b.low == b.high or a is b:
        return relation in ("=", "<=", ">=")
    if a.high <= b.low and relation in ("<=", ">"):
        return relation == "<="
    if a.low >= b.high and relation in (">=", "<"):
        return relation == ">="
    return None


# Exact real numbers as a pair of integer nodes: numerator over a positive denominator.
#
# Most reals of a model are integers scaled by constants, `0.0003*money`, so their denominator is one
# constant for all rows and arithmetic on them is plain integer arithmetic, without a single gcd. Only
# a division by something that varies makes the denominator vary too. Fractions are brought to lowest
# terms when they leave as a `RationalArray`.

_MOST_BITS = 20_000
"""What `arithmetic` admits."""


@dataclass(frozen=True)
class Number:
    """numerator / denominator with denominator ≥ 1; `is_integer` is PRISM's type int."""

    numerator: Integer
    denominator: Integer
    is_integer: bool

    @property
    def constant(self) -> Fraction | None:
        if self.numerator.constant is None or self.denominator.constant is None:
            return None
        return Fraction(self.numerator.constant, self.denominator.constant)

    @property
    def variables(self) -> frozenset[int]:
        return self.numerator.variables | self.denominator.variables

    def array(self, frame: StateFrame) -> RationalArray:
        """The values in all rows, in lowest terms."""
        numerator = integers(self.numerator, frame)
        if self.denominator.constant == 1:
            return RationalArray.from_integers(numerator)
        return RationalArray.ratio(numerator, integers(self.denominator, frame))


def integers(node: Integer, frame: StateFrame) -> Column:
    """The values of a node with one entry per row."""
    value = node.value(frame)
    if isinstance(value, np.ndarray):
        return value
    return np.full(frame.size, value, dtype=object if node.wide else np.int64)


def _scalars(number: Number, frame: StateFrame) -> Sequence[int | Fraction]:
    """The values row by row, ints for PRISM's ints."""
    if number.is_integer:
        return [int(value) for value in integers(number.numerator, frame)]
    return number.array(frame).to_fractions()


class NodeArithmetic:
    """PRISM's operations on numbers, as nodes of one graph."""

    def __init__(self, graph: NodeGraph):
        self.graph = graph
        self._one = graph.constant(1)

    def literal(self, value: Fraction | int, is_integer: bool) -> Number:
        exact = Fraction(value)
        constant = self.graph.constant
        return Number(constant(exact.numerator), constant(exact.denominator), is_integer)

    def integer(self, node: Integer) -> Number:
        return Number(node, self._one, True)

    def add(self, a: Number, b: Number) -> Number:
        return self._over_common(self.graph.add, a, b)

    def negate(self, a: Number) -> Number:
        return Number(self.graph.negate(a.numerator), a.denominator, a.is_integer)

    def multiply(self, a: Number, b: Number) -> Number:
        multiply = self.graph.multiply
        first, second = self._cancel(a.numerator, b.denominator)
        third, fourth = self._cancel(b.numerator, a.denominator)
        return self._number(multiply(first, third), multiply(second, fourth), a, b)

    def divide(self, a: Number, b: Number, position: Position | None) -> Number:
        return self.multiply(Number(a.numerator, a.denominator, False), self._inverse(b, position))

    def _inverse(self, a: Number, position: Position | None) -> Number:
        graph = self.graph
        divisor = graph.checked(a.numerator, "=", 0, "division by zero", position)
        if divisor.low > 0:
            return Number(a.denominator, divisor, False)
        if divisor.high < 0:
            return Number(graph.negate(a.denominator), graph.negate(divisor), False)
        negative = graph.compare("<", divisor, graph.constant(0))
        numerator = graph.choose(negative, graph.negate(a.denominator), a.denominator)
        size = graph.checked(graph.absolute(divisor), "<", 1, "division by zero", position)
        return Number(numerator, size, False)

    def compare(self, relation: str, a: Number, b: Number) -> Boolean:
        left, right, _ = self._common(a, b)
        return self.graph.compare(relation, left, right)

    def choose(self, condition: Boolean, a: Number, b: Number) -> Number:
        if condition.constant is not None:
            chosen = a if condition.constant else b
            return Number(chosen.numerator, chosen.denominator, a.is_integer and b.is_integer)
        if a.denominator.constant is not None and b.denominator.constant is not None:
            left, right, denominator = self._common(a, b)
        else:
            left, right = a.numerator, b.numerator
            denominator = self.graph.choose(condition, a.denominator, b.denominator)
        return self._number(self.graph.choose(condition, left, right), denominator, a, b)

    def minimum(self, a: Number, b: Number) -> Number:
        return self._over_common(self.graph.minimum, a, b)

    def maximum(self, a: Number, b: Number) -> Number:
        return self._over_common(self.graph.maximum, a, b)

    def floor(self, a: Number) -> Number:
        return self.integer(self.graph.floor_divide(a.numerator, a.denominator))

    def ceil(self, a: Number) -> Number:
        return self.negate(self.floor(self.negate(a)))

    def round(self, a: Number) -> Number:
        """Half rounds up, as in PRISM: ⌊a + 1/2⌋."""
        return self.floor(self.add(a, self.literal(Fraction(1, 2), False)))

    def modulo(self, a: Number, b: Number, position: Position | None) -> Number:
        message = "the divisor of 'mod' is not positive"
        divisor = self.graph.checked(b.numerator, "<", 1, message, position)
        return self.integer(self.graph.modulo(a.numerator, divisor))

    def power(self, a: Number, b: Number, call: Call) -> Number:
        """Exact for whole exponents; otherwise as `arithmetic` has it for single values."""
        graph, position = self.graph, call.position
        if b.denominator.constant != 1:
            return self.row_by_row(call, a, b)
        exponent = b.numerator
        if a.is_integer and b.is_integer:
            message = "'pow' of integers with a negative exponent"
            exponent = graph.checked(exponent, "<", 0, message, position)
        zero = graph.constant(0)
        up, down = graph.maximum(exponent, zero), graph.maximum(graph.negate(exponent), zero)
        sizes = [graph.power_bits(base, k) for base in (a.numerator, a.denominator) for k in (up, down)]
        if max(sizes) > _MOST_BITS:
            return self.row_by_row(call, a, b)
        numerator = graph.power(a.numerator, up)
        denominator = graph.power(a.denominator, up)
        result = Number(numerator, denominator, a.is_integer and b.is_integer)
        if exponent.low >= 0:
            return result
        below = Number(graph.power(a.numerator, down), self._one, False)
        return self.multiply(
            self.divide(result, below, position), Number(graph.power(a.denominator, down), self._one, False)
        )

    def row_by_row(self, call: Call, first: Number, second: Number) -> Number:
        """A function computed for one value after the other, where arrays have nothing to offer."""
        is_integer = call.function == "pow" and first.is_integer and second.is_integer
        nodes = (first.numerator, first.denominator, second.numerator, second.denominator)

        def pair(frame: StateFrame) -> Value:
            table = np.empty((frame.size, 2), dtype=object)
            operands = zip(_scalars(first, frame), _scalars(second, frame), strict=True)
            for row, values in enumerate(operands):
                try:
                    result = Fraction(apply(call, values))
                except Complaint as complaint:
                    frame.fail(complaint.message, complaint.position, np.arange(frame.size) == row)
                table[row] = result.numerator, result.denominator
            return table.T

        both = self.graph.opaque(nodes, pair, 0, 0)
        both.shared = True
        limit = 2**_MOST_BITS
        numerator = self.graph.opaque(nodes, lambda frame: integers(both, frame)[0], -limit, limit)
        if is_integer:
            return self.integer(numerator)
        denominator = self.graph.opaque(nodes, lambda frame: integers(both, frame)[1], 1, limit)
        return Number(numerator, denominator, False)

    # --- denominators ----------------------------------------------------------------------

    def _over_common(self, operation: Callable[[Integer, Integer], Integer], a: Number, b: Number) -> Number:
        left, right, denominator = self._common(a, b)
        return self._number(operation(left, right), denominator, a, b)

    def _number(self, numerator: Integer, denominator: Integer, a: Number, b: Number) -> Number:
        numerator, denominator = self._cancel(numerator, denominator)
        return Number(numerator, denominator, a.is_integer and b.is_integer)

    def _cancel(self, a: Integer, b: Integer) -> tuple[Integer, Integer]:
        """The pair without its common factor, where both are constants."""
        if a.constant is None or b.constant is None:
            return a, b
        divisor = math.gcd(a.constant, b.constant)
        constant = self.graph.constant
        return constant(a.constant // divisor), constant(b.constant // divisor)

    def _common(self, a: Number, b: Number) -> tuple[Integer, Integer, Integer]:
        """Numerators over one denominator."""
        multiply, constant = self.graph.multiply, self.graph.constant
        if a.denominator is b.denominator:
            return a.numerator, b.numerator, a.denominator
        if a.denominator.constant is not None and b.denominator.constant is not None:
            shared = math.lcm(a.denominator.constant, b.denominator.constant)
            left = multiply(a.numerator, constant(shared // a.denominator.constant))
            right = multiply(b.numerator, constant(shared // b.denominator.constant))
            return left, right, constant(shared)
        left = multiply(a.numerator, b.denominator)
        right = multiply(b.numerator, a.denominator)
        return left, right, multiply(a.denominator, b.denominator)
