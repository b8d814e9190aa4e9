"""Interval probabilities `[0.1,0.3] : …`, exact until they leave as outward-rounded float64.

The sum of two intervals is the interval of the sums (capped at 1 above), a point times an interval
scales its bounds. The product of two proper intervals, where two commands of a synchronisation have
them, is the interval of the products. The products of all distributions of
two commands are no interval set, so this encloses them: bounds stay bounds, but nature may do a
little more than the two commands allow. `is_outer` says that it happened, and the user is warned.

Before they are multiplied, bounds are narrowed to what the distributions of their own command attain: l ≤ p_i
may be raised to 1 − Σ of the other upper bounds, and u lowered to 1 − Σ of the other lower bounds. That
leaves the set of the command as it is, so products of narrowed bounds enclose all products of distributions,
too, and are never wider than those of the bounds as written (which PRISM and Storm take). Every number of the
table therefore has two pairs of bounds, as written and narrowed; what does not synchronise keeps the first.

What nature can do may hang on whether bounds sum to exactly 1. Upper bounds that do so, or exceed it, still
do once rounded up. Lower bounds that do leave one distribution, which the command is then read as, likewise
all upper bounds. Upper bounds that stay below 1 by so little that rounding hides it are refused, and so are
bounds that no double may stand for (`tightrope.model.numbers`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from tightrope.model import numbers as door
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.compile import Compiler
from tightrope.prism.explore.deferred import Operation
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.key_index import KeyIndex
from tightrope.prism.explore.probabilities import Distribution, Probabilities
from tightrope.prism.explore.ratio import Number
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Command

Bounds = tuple[Fraction, Fraction]

_ONE = Fraction(1)
_CLOSE = Fraction(1, 2**40)
_MOST_COMBINED = 10
"""Of commands with more updates only all upper bounds but one are compared with 1."""


class IntervalProbabilities(Probabilities):
    """Distinct pairs (lower, upper); 0 is [0,0] and 1 is [1,1]."""

    def __init__(self) -> None:
        self.is_outer = False
        self._pairs = {operation: KeyIndex() for operation in Operation}
        self._results: dict[Operation, list[int]] = {operation: [] for operation in Operation}
        self._bounds: list[Bounds] = []
        self._narrowed: list[Bounds] = []
        self._number: dict[tuple[Bounds, Bounds], int] = {}
        self._freedom: FloatArray = np.zeros(0)
        self.intern((Fraction(0), Fraction(0)))
        self.intern((_ONE, _ONE))

    def intern(self, bounds: Bounds, narrowed: Bounds | None = None) -> int:
        """The number of bounds, with what is known of them beside that."""
        both = bounds, narrowed or bounds
        number = self._number.setdefault(both, len(self._bounds))
        if number == len(self._bounds):
            door.bound(bounds[0], -math.inf)
            door.bound(bounds[1], math.inf)
            self._bounds.append(both[0])
            self._narrowed.append(both[1])
        return number

    def lower(self) -> FloatArray:
        """The lower bounds, rounded down."""
        return RationalArray.from_fractions(low for low, _ in self._bounds).to_float_down()

    def upper(self) -> FloatArray:
        """The upper bounds, rounded up."""
        return RationalArray.from_fractions(high for _, high in self._bounds).to_float_up()

    def freedom(self) -> FloatArray:
        """How far the narrowed bounds are apart, about."""
        new = [float(high - low) for low, high in self._narrowed[len(self._freedom) :]]
        self._freedom = np.append(self._freedom, new)
        return self._freedom

    def compile(self, compiler: Compiler, command: Command) -> Distribution:
        bounds = []
        for update in command.updates:
            low = compiler.number(update.probability)
            bounds.append((low, low if update.upper is None else compiler.number(update.upper)))
        return IntervalDistribution(self, command, bounds)

    def combine(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        try:
            return self._combined(operation, left, right)
        except door.NotHeldError as error:
            raise Complaint(f"intervals of commands that go together: {error.message}", None) from None

    def _combined(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        pair = self._pairs[operation].insert(((left.astype(np.int64) << 32) | right).reshape(-1, 1))
        result = self._results[operation]
        for key in self._pairs[operation].keys[len(result) :, 0].tolist():
            result.append(self._combine(operation, key >> 32, key & 0xFFFFFFFF))
        return np.array(result, dtype=np.int32)[pair]

    def _combine(self, operation: Operation, left: int, right: int) -> int:
        written, narrowed = self._bounds[left], self._narrowed[left]
        if operation is Operation.SHARE:
            return self.intern(_scale(written, Fraction(1, right)), _scale(narrowed, Fraction(1, right)))
        other, other_narrowed = self._bounds[right], self._narrowed[right]
        if operation is Operation.SUM:
            return self.intern(_sum(written, other), _sum(narrowed, other_narrowed))
        for one, (low, high) in ((left, other), (right, written)):
            if low == high:
                return self.intern(_scale(self._bounds[one], low), _scale(self._narrowed[one], low))
        self.is_outer = True
        return self.intern((narrowed[0] * other_narrowed[0], narrowed[1] * other_narrowed[1]))


class IntervalDistribution(Distribution):
    """One interval an update, such that some distribution lies within all of them."""

    def __init__(
        self, table: IntervalProbabilities, command: Command, bounds: Sequence[tuple[Number, Number]]
    ):
        self._table = table
        self._command = command
        self._bounds = bounds
        self._told_apart: set[tuple[Fraction, ...]] = set()
        numbers = [number for pair in bounds for number in pair]
        self.variables = frozenset[int]().union(*(number.variables for number in numbers))

    def evaluate(self, frame: Frame) -> IndexArray:
        lower = [low.array(frame).to_fractions() for low, _ in self._bounds]
        upper = [high.array(frame).to_fractions() for _, high in self._bounds]
        result: IndexArray = np.empty((frame.size, len(self._bounds)), dtype=np.int32)
        for row in range(frame.size):
            low, high = [each[row] for each in lower], [each[row] for each in upper]
            for column, update in enumerate(self._command.updates):
                if not 0 <= low[column] <= high[column] <= 1:
                    raise Complaint(
                        f"[{low[column]}, {high[column]}] is no interval of probabilities in state "
                        f"{frame.describe(row)}",
                        update.position,
                    )
            least, most = sum(low), sum(high)
            if not least <= 1 <= most:
                words = f"lower bounds of this command sum to {least} > 1"
                if least <= 1:
                    words = f"upper bounds of this command sum to {most} < 1"
                raise Complaint(
                    f"the {words} in state {frame.describe(row)}, so no distribution fits",
                    self._command.position,
                )
            if least == 1 or most == 1:  # one distribution fits
                low = high = low if least == 1 else high
            elif tuple(high) not in self._told_apart:
                self._tell_apart(high, frame.describe(row))
            for column, (a, b) in enumerate(zip(low, high, strict=True)):
                narrowed = max(a, 1 - sum(high) + b), min(b, 1 - sum(low) + a)
                try:
                    result[row, column] = self._table.intern((a, b), narrowed)
                except door.NotHeldError as error:
                    position = self._command.updates[column].position
                    raise Complaint(f"{error.message}, in state {frame.describe(row)}", position) from None
        return result

    def _tell_apart(self, upper: Sequence[Fraction], state: str) -> None:
        """Refuse upper bounds, some of which sum to less than 1 but to 1 once they are float64."""
        rounded = [Fraction(float(x)) for x in RationalArray.from_fractions(upper).to_float_up()]
        count = len(upper)
        sizes = range(1, count) if count <= _MOST_COMBINED else (1, count - 1)
        for some in (c for size in sizes for c in combinations(range(count), size)):
            missing = 1 - sum(upper[i] for i in some)
            if 0 < missing < _CLOSE and sum(rounded[i] for i in some) >= 1:
                update = self._command.updates[some[-1]]
                raise Complaint(
                    f"upper bounds of this command miss 1 by {float(missing):.2g} in state {state}, "
                    "which is less than float64 can tell, and what nature can do depends on it",
                    update.position,
                    "write bounds that sum to 1 exactly, or that stay below it by 1e-15 or more",
                )
        self._told_apart.add(tuple(upper))


def _scale(bounds: Bounds, factor: Fraction) -> Bounds:
    return bounds[0] * factor, bounds[1] * factor


def _sum(left: Bounds, right: Bounds) -> Bounds:
    return left[0] + right[0], min(_ONE, left[1] + right[1])
