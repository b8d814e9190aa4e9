"""Exact real numbers as a pair of integer nodes: numerator over a positive denominator.

Most reals of a model are integers scaled by constants, `0.0003*money`, so their denominator is one
constant for all rows and arithmetic on them is plain integer arithmetic, without a single gcd. Only
a division by something that varies makes the denominator vary too. Fractions are brought to lowest
terms when they leave as a `RationalArray`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.numerics.rationals import RationalArray
from tightrope.prism.expand.arithmetic import apply
from tightrope.prism.explore.frame import Boolean, Frame, Integer
from tightrope.prism.explore.graph import Graph
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Call, Position

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

    def array(self, frame: Frame) -> RationalArray:
        """The values in all rows, in lowest terms."""
        numerator = integers(self.numerator, frame)
        if self.denominator.constant == 1:
            return RationalArray.from_integers(numerator)
        return RationalArray.ratio(numerator, integers(self.denominator, frame))


def integers(node: Integer, frame: Frame) -> Any:
    """The values of a node with one entry per row."""
    value = node.value(frame)
    if isinstance(value, np.ndarray):
        return value
    return np.full(frame.size, value, dtype=object if node.wide else np.int64)


def _scalars(number: Number, frame: Frame) -> Sequence[int | Fraction]:
    """The values row by row, ints for PRISM's ints."""
    if number.is_integer:
        return [int(value) for value in integers(number.numerator, frame)]
    return number.array(frame).to_fractions()


class Arithmetic:
    """PRISM's operations on numbers, as nodes of one graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._one = graph.constant(1)

    def literal(self, value: Fraction | int, is_integer: bool) -> Number:
        exact = Fraction(value)
        constant = self.graph.constant
        return Number(constant(exact.numerator), constant(exact.denominator), is_integer)

    def integer(self, node: Integer) -> Number:
        return Number(node, self._one, True)

    def add(self, a: Number, b: Number) -> Number:
        left, right, denominator = self._common(a, b)
        return self._number(self.graph.add(left, right), denominator, a, b)

    def subtract(self, a: Number, b: Number) -> Number:
        left, right, denominator = self._common(a, b)
        return self._number(self.graph.subtract(left, right), denominator, a, b)

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
        left, right, denominator = self._common(a, b)
        return self._number(self.graph.minimum(left, right), denominator, a, b)

    def maximum(self, a: Number, b: Number) -> Number:
        left, right, denominator = self._common(a, b)
        return self._number(self.graph.maximum(left, right), denominator, a, b)

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
            return self._row_by_row(call, (a, b))
        exponent = b.numerator
        if a.is_integer and b.is_integer:
            message = "'pow' of integers with a negative exponent"
            exponent = graph.checked(exponent, "<", 0, message, position)
        zero = graph.constant(0)
        up, down = graph.maximum(exponent, zero), graph.maximum(graph.negate(exponent), zero)
        sizes = [graph.power_bits(base, k) for base in (a.numerator, a.denominator) for k in (up, down)]
        if max(sizes) > _MOST_BITS:
            return self._row_by_row(call, (a, b))
        numerator = graph.power(a.numerator, up)
        denominator = graph.power(a.denominator, up)
        result = Number(numerator, denominator, a.is_integer and b.is_integer)
        if exponent.low >= 0:
            return result
        below = Number(graph.power(a.numerator, down), self._one, False)
        return self.multiply(
            self.divide(result, below, position),
            Number(graph.power(a.denominator, down), self._one, False),
        )

    def logarithm(self, a: Number, b: Number, call: Call) -> Number:
        return self._row_by_row(call, (a, b))

    def _row_by_row(self, call: Call, arguments: tuple[Number, Number]) -> Number:
        """A function computed for one value after the other, where arrays have nothing to offer."""
        first, second = arguments
        is_integer = call.function == "pow" and first.is_integer and second.is_integer
        nodes = (first.numerator, first.denominator, second.numerator, second.denominator)

        def pair(frame: Frame) -> tuple[Any, Any]:
            table = np.empty((frame.size, 2), dtype=object)
            operands = zip(_scalars(first, frame), _scalars(second, frame), strict=True)
            for row, values in enumerate(operands):
                try:
                    result = Fraction(apply(call, values))
                except Complaint as complaint:
                    frame.fail(complaint.message, complaint.position, np.arange(frame.size) == row)
                table[row] = result.numerator, result.denominator
            return table[:, 0], table[:, 1]

        both = self.graph.opaque(nodes, pair, 0, 0)
        both.shared = True
        limit = 2**_MOST_BITS
        numerator = self.graph.opaque(nodes, lambda frame: both.value(frame)[0], -limit, limit)
        if is_integer:
            return self.integer(numerator)
        denominator = self.graph.opaque(nodes, lambda frame: both.value(frame)[1], 1, limit)
        return Number(numerator, denominator, False)

    # --- denominators ----------------------------------------------------------------------

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
