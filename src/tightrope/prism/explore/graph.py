"""The builder of nodes: integer arithmetic and logic, folded and interned as it grows.

One graph belongs to one set of ranges of the variables; a command whose guard narrows them has a
graph of its own, in which more bounds are decided.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from tightrope.prism.explore.frame import VARIABLE, Boolean, Frame, Integer, Node, exact, machine
from tightrope.prism.parse.syntax import Position

N = TypeVar("N", bound=Node)

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Graph:
    """`ranges[v]` are the bounds of variable v in the rows that nodes of this graph will see."""

    def __init__(self, ranges: Sequence[tuple[int, int]]):
        self._ranges = tuple(ranges)
        self._known: dict[Hashable, Any] = {}
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
        if a.high <= b.low and not b.fails:
            return a
        if b.high <= a.low and not a.fails:
            return b
        return self._binary("min", a, b, np.minimum, min(a.low, b.low), min(a.high, b.high))

    def maximum(self, a: Integer, b: Integer) -> Integer:
        if a.low >= b.high and not b.fails:
            return a
        if b.low >= a.high and not a.fails:
            return b
        return self._binary("max", a, b, np.maximum, max(a.low, b.low), max(a.high, b.high))

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

        def run(frame: Frame) -> Any:
            return np.where(condition.value(frame), a.value(frame), b.value(frame))

        def run_lazily(frame: Frame) -> Any:
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
        compare = _COMPARE[wrong]
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

        def run(frame: Frame) -> Any:
            value = a.value(frame)
            bad = compare(value, bound)
            if frame.size and np.any(bad):
                frame.fail(message, position, bad)
            return value

        return self._integer("checked", (a,), run, low, high, fails=True, extra=(wrong, bound, position))

    def opaque(self, children: Sequence[Node], run: Callable[[Frame], Any], low: int, high: int) -> Integer:
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
        function = _COMPARE[relation]
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

        def run_lazily(frame: Frame) -> Any:
            result = frame.mask(a.value(frame)).copy()
            rows = np.flatnonzero(result == neutral)
            if len(rows):
                result[rows] = b.value(frame.select(rows))
            return result

        if b.fails:
            return self._boolean(name, (a, b), run_lazily)
        return self._boolean(name, (a, b), lambda frame: combine(a.value(frame), b.value(frame)))

    # --- interning -------------------------------------------------------------------------

    def _binary(
        self, name: str, a: Integer, b: Integer, function: Callable[[Any, Any], Any], low: int, high: int
    ) -> Integer:
        if not (a.wide or b.wide) and fits(low, high):
            return self._integer(
                name, (a, b), lambda frame: function(a.value(frame), b.value(frame)), low, high
            )
        finish = machine if fits(low, high) else exact
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
        children: Sequence[Node],
        run: Callable[[Frame], Any],
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

    def _boolean(self, name: str, children: Sequence[Node], run: Callable[[Frame], Any]) -> Boolean:
        variables = frozenset[int]().union(*(child.variables for child in children))
        fails = any(child.fails for child in children)
        key = (name, *(child.uid for child in children))
        return self._intern(key, lambda: _of_origin(Boolean(run, variables, fails), name, children))

    def _intern(self, key: Hashable, make: Callable[[], N]) -> N:
        known: N | None = self._known.get(key)
        if known is None:
            known = make()
            self._known[key] = known
        elif known.variables:
            known.shared = True
        return known


def _of_origin(node: N, name: str, children: Sequence[Node]) -> N:
    """The node, which remembers what it was made of unless that fails or exceeds int64."""
    wide = any(isinstance(each, Integer) and each.wide for each in (node, *children))
    if not (wide or node.fails):
        node.origin = name, tuple(children)
    return node


def fits(low: int, high: int) -> bool:
    """Whether all integers from low to high are int64."""
    return low >= -(2**63) and high < 2**63


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
