"""Interval probabilities `[0.1,0.3] : …`, exact until they leave as outward-rounded float64.

The sum of two intervals is the interval of the sums (capped at 1 above), a point times an interval
scales its bounds. The product of two proper intervals, where two commands of a synchronisation have
them, is the interval of the products, as in PRISM and Storm. The products of all distributions of
two commands are no interval set, so this encloses them: bounds stay bounds, but nature may do a
little more than the two commands allow. `is_outer` says that it happened, and the user is warned.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.diagnostics import Complaint
from tightrope.prism.exploration.compile import Compiler
from tightrope.prism.exploration.deferred import Operation
from tightrope.prism.exploration.frame import Frame
from tightrope.prism.exploration.key_index import KeyIndex
from tightrope.prism.exploration.probabilities import Distribution, Probabilities
from tightrope.prism.exploration.ratio import Number
from tightrope.prism.syntax import Command

Bounds = tuple[Fraction, Fraction]

_ONE = Fraction(1)


class IntervalProbabilities(Probabilities):
    """Distinct pairs (lower, upper); 0 is [0,0] and 1 is [1,1]."""

    def __init__(self) -> None:
        self.is_outer = False
        self._pairs = {operation: KeyIndex() for operation in Operation}
        self._results: dict[Operation, list[int]] = {operation: [] for operation in Operation}
        self._bounds: list[Bounds] = []
        self._number: dict[Bounds, int] = {}
        self.intern((Fraction(0), Fraction(0)))
        self.intern((_ONE, _ONE))

    def intern(self, bounds: Bounds) -> int:
        number = self._number.setdefault(bounds, len(self._bounds))
        if number == len(self._bounds):
            self._bounds.append(bounds)
        return number

    def lower(self) -> FloatArray:
        """The lower bounds, rounded down."""
        return RationalArray.from_fractions(low for low, _ in self._bounds).to_float_down()

    def upper(self) -> FloatArray:
        """The upper bounds, rounded up."""
        return RationalArray.from_fractions(high for _, high in self._bounds).to_float_up()

    def compile(self, compiler: Compiler, command: Command) -> Distribution:
        bounds = []
        for update in command.updates:
            low = compiler.number(update.probability)
            bounds.append((low, low if update.upper is None else compiler.number(update.upper)))
        return IntervalDistribution(self, command, bounds)

    def combine(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        pair = self._pairs[operation].insert(((left.astype(np.int64) << 32) | right).reshape(-1, 1))
        result = self._results[operation]
        for key in self._pairs[operation].keys[len(result) :, 0].tolist():
            result.append(self._combined(operation, key >> 32, key & 0xFFFFFFFF))
        return np.array(result, dtype=np.int32)[pair]

    def _combined(self, operation: Operation, left: int, right: int) -> int:
        low, high = self._bounds[left]
        if operation is Operation.SHARE:
            return self.intern((low / right, high / right))
        other_low, other_high = self._bounds[right]
        if operation is Operation.SUM:
            return self.intern((low + other_low, min(_ONE, high + other_high)))
        self.is_outer |= low != high and other_low != other_high
        return self.intern((low * other_low, high * other_high))


class IntervalDistribution(Distribution):
    """One interval an update, such that some distribution lies within all of them."""

    def __init__(
        self, table: IntervalProbabilities, command: Command, bounds: Sequence[tuple[Number, Number]]
    ):
        self._table = table
        self._command = command
        self._bounds = bounds
        numbers = [number for pair in bounds for number in pair]
        self.variables = frozenset[int]().union(*(number.variables for number in numbers))

    def evaluate(self, frame: Frame) -> IndexArray:
        lower = [low.array(frame).to_fractions() for low, _ in self._bounds]
        upper = [high.array(frame).to_fractions() for _, high in self._bounds]
        result: IndexArray = np.empty((frame.size, len(self._bounds)), dtype=np.int32)
        for row in range(frame.size):
            for column, update in enumerate(self._command.updates):
                low, high = lower[column][row], upper[column][row]
                if not 0 <= low <= high <= 1:
                    raise Complaint(
                        f"[{low}, {high}] is no interval of probabilities in state {frame.describe(row)}",
                        update.position,
                    )
                result[row, column] = self._table.intern((low, high))
            least, most = sum(low[row] for low in lower), sum(high[row] for high in upper)
            if not least <= 1 <= most:
                words = f"lower bounds of this command sum to {least} > 1"
                if least <= 1:
                    words = f"upper bounds of this command sum to {most} < 1"
                raise Complaint(
                    f"the {words} in state {frame.describe(row)}, so no distribution fits",
                    self._command.position,
                )
        return result
