"""What stands on the transitions of a model: a number for each distinct probability.

The explorer handles probabilities as numbers of a table only. `Probabilities` says what the table
must do: evaluate the updates of a command for some rows, and add, multiply and share entries. Here
for polynomials in the parameters; intervals have their own file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from tightrope.model import numbers as door
from tightrope.model.polynomial import PolynomialArray
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.compile import Compiler, Ratio, Terms
from tightrope.prism.explore.deferred import Deferred, Operation
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.polynomial_index import PolynomialIndex
from tightrope.prism.explore.quotients import Quotients, combined
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Command, Literal, Position

ZERO, ONE = 0, 1
"""The numbers of the probabilities 0 and 1 in every table."""


class Distribution(ABC):
    """The probabilities of the updates of one command."""

    variables: frozenset[int]

    @abstractmethod
    def evaluate(self, frame: Frame) -> IndexArray:
        """The number of every update's probability (columns) in every row.

        Complains about rows in which they do not make a distribution.
        """


class Probabilities(ABC):
    """The table of distinct probabilities of one model."""

    @abstractmethod
    def compile(self, compiler: Compiler, command: Command) -> Distribution:
        """The probabilities of a command's updates, ready for evaluation."""

    @abstractmethod
    def combine(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        """The numbers of sums, products or shares, for arrays of numbers."""

    def sum(self, left: IndexArray, right: IndexArray) -> IndexArray:
        return self.combine(Operation.SUM, np.minimum(left, right), np.maximum(left, right))

    def product(self, left: IndexArray, right: IndexArray) -> IndexArray:
        """Where one factor is 0 or 1 there is nothing to compute; that is the common case."""
        low, high = np.minimum(left, right), np.maximum(left, right)
        result: IndexArray = np.where(low == ONE, high, low)
        rows = np.flatnonzero(low > ONE)
        if len(rows):
            result[rows] = self.combine(Operation.PRODUCT, low[rows], high[rows])
        return result

    def share(self, number: IndexArray, count: IndexArray) -> IndexArray:
        """Probabilities divided by whole numbers."""
        return self.combine(Operation.SHARE, number, count)


class PolynomialProbabilities(Probabilities):
    """Polynomials in the parameters, exact; combinations of them are computed in the end."""

    def __init__(self, parameter_names: Sequence[str], are_rates: bool = False):
        self.are_rates = are_rates
        self.table = PolynomialIndex(parameter_names)
        self.deferred = Deferred()
        self.deferred.entries(np.array([self.table.ZERO, self.table.ONE], dtype=np.int32))
        self.constants: dict[tuple[object, ...], IndexArray] = {}

    def compile(self, compiler: Compiler, command: Command) -> Distribution:
        if all(isinstance(update.probability, Literal) for update in command.updates):
            return ConstantDistribution(self, compiler, command)
        ratios = [compiler.ratio(update.probability) for update in command.updates]
        if any(isinstance(each, Ratio) for each in ratios):
            if self.are_rates:
                raise Complaint("a rate is no polynomial in the parameters but a quotient", command.position)
            return QuotientDistribution(self, command, ratios)
        terms = [each for each in ratios if not isinstance(each, Ratio)]
        return PolynomialDistribution(self, command, terms)

    def combine(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        return self.deferred.combine(operation, left, right)

    def resolve(self) -> IndexArray:
        """The entry of the table behind every number."""
        return self.deferred.resolve(self._compute)

    def _compute(self, operation: Operation, left: OffsetArray, right: OffsetArray) -> IndexArray:
        if operation is Operation.QUOTIENT or self.table.has_quotients:
            return combined(self.table, operation, left, right)
        first = self._batch(left)
        match operation:
            case Operation.SUM:
                return self.table.add_array(first + self._batch(right))
            case Operation.PRODUCT:
                return self.table.add_array(first * self._batch(right))
            case Operation.SHARE:
                return self.table.add_array(first.divide(RationalArray.from_integers(right)))

    def _batch(self, entries: OffsetArray) -> PolynomialArray:
        """Far fewer entries are distinct than there are pairs of them."""
        distinct, position = np.unique(entries, return_inverse=True)
        return self.table.polynomials(distinct).take(position.reshape(-1))


def check_held(values: PolynomialArray, frame: Frame, position: Position | None) -> None:
    """Complain about coefficients that no double may stand for (`tightrope.model.numbers`)."""
    for coefficient in values.terms.values():
        if (wrong := door.first_not_held(coefficient)) is not None:
            frame.fail(f"{door.why_not(coefficient[wrong])},", position, np.arange(frame.size) == wrong)


class QuotientDistribution(Distribution):
    """Polynomials and quotients of polynomials, adding up to 1 as rational functions."""

    def __init__(self, owner: PolynomialProbabilities, command: Command, ratios: Sequence[Terms | Ratio]):
        self._deferred = owner.deferred
        self._quotients = Quotients(owner.table, command, ratios)
        self.variables = self._quotients.variables

    def evaluate(self, frame: Frame) -> IndexArray:
        return self._quotients.numbers(self._deferred, frame)


class ConstantDistribution(Distribution):
    """Probabilities that are the same in all states; equal ones of other commands are looked up."""

    variables = frozenset[int]()

    def __init__(self, owner: PolynomialProbabilities, compiler: Compiler, command: Command):
        self._owner = owner
        self._compiler = compiler
        self._command = command

    def evaluate(self, frame: Frame) -> IndexArray:
        updates, known = self._command.updates, self._owner.constants
        key = tuple(update.probability.value for update in updates if isinstance(update.probability, Literal))
        row = known.get(key)
        if row is None:
            terms = [self._compiler.terms(update.probability) for update in updates]
            alone = frame.select(np.zeros(1, dtype=np.int64))
            row = PolynomialDistribution(self._owner, self._command, terms).evaluate(alone)
            known[key] = row
        return np.repeat(row, frame.size, axis=0)


class PolynomialDistribution(Distribution):
    """One polynomial an update, adding up to the polynomial 1 unless they are rates."""

    def __init__(self, owner: PolynomialProbabilities, command: Command, terms: Sequence[Terms]):
        self._owner = owner
        self._table = owner.table
        self._deferred = owner.deferred
        self._command = command
        self._terms = terms
        numbers = [number for update in terms for number in update.values()]
        self.variables = frozenset[int]().union(*(number.variables for number in numbers))

    def evaluate(self, frame: Frame) -> IndexArray:
        values = [
            PolynomialArray({m: number.array(frame) for m, number in update.items()}, frame.size)
            for update in self._terms
        ]
        total = values[0]
        for value in values[1:]:
            total = total + value
        for value, update in zip(values, self._command.updates, strict=True):
            check_held(value, frame, update.position)
        if not self._owner.are_rates:
            self._check_sum(total, frame)
        return self._deferred.entries(np.stack([self._table.add_array(value) for value in values], axis=1))

    def _check_sum(self, total: PolynomialArray, frame: Frame) -> None:
        wrong: BoolArray = np.full(frame.size, () not in total.terms)
        for monomial, coefficient in total.terms.items():
            wrong |= np.not_equal(coefficient.numerator, 0 if monomial else 1).astype(np.bool_)
            wrong |= np.not_equal(coefficient.denominator, 1).astype(np.bool_)
        if wrong.any():
            found = total.polynomial(int(np.flatnonzero(wrong)[0])).text(self._table.parameter_names)
            message = f"the probabilities of this command sum to {found}, not 1,"
            frame.fail(message, self._command.position, wrong)
