"""Table of distinct probabilities, which the explorer handles by number.

`Probabilities` is the interface: evaluate a command's updates for some rows; add, multiply and share entries.
Here it is implemented for polynomials; combinations are computed at the end of the exploration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial, reduce
from operator import add

import numpy as np
import numpy.typing as npt

from tightrope.model import numbers as door
from tightrope.model.polynomial import (
    Function,
    Polynomial,
    PolynomialArray,
    parts,
    quotient,
    reduce_quotients,
)
from tightrope.numerics.arrays import AnyArray, BoolArray, ExactIntegers, IndexArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.compile import Compiler, Ratio, Terms, polynomials
from tightrope.prism.explore.frame import StateFrame
from tightrope.prism.explore.key_index import KeyIndex, PolynomialIndex
from tightrope.prism.parse.syntax import Complaint, GuardedCommand, Literal, Position

ZERO, ONE = 0, 1
"""The numbers of the probabilities 0 and 1 in every table."""


class Distribution(ABC):
    """The probabilities of the updates of one command."""

    variables: frozenset[int]

    @abstractmethod
    def evaluate(self, frame: StateFrame) -> IndexArray:
        """The number of every update's probability (columns) in every row; complains if they are none."""


class Probabilities(ABC):
    """The table of distinct probabilities of one model."""

    @abstractmethod
    def compile(self, compiler: Compiler, command: GuardedCommand) -> Distribution:
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

    def compile(self, compiler: Compiler, command: GuardedCommand) -> Distribution:
        if all(isinstance(update.probability, Literal) for update in command.updates):
            return ConstantDistribution(self, compiler, command)
        ratios = [compiler.ratio(update.probability) for update in command.updates]
        if any(isinstance(each, Ratio) for each in ratios):
            if self.are_rates or command.has_rates:
                raise Complaint("a rate must be a polynomial, not a quotient", command.position)
            return Quotients(self, command, ratios)
        terms = [each for each in ratios if not isinstance(each, Ratio)]
        return PolynomialDistribution(self, command, terms)

    def combine(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        return self.deferred.combine(operation, left, right)

    def resolve(self) -> IndexArray:
        """The entry of the table behind every number."""
        return self.deferred.resolve(partial(combined, self.table))


def check_held(values: PolynomialArray, frame: StateFrame, position: Position | None) -> None:
    """Complain about coefficients that no double may stand for (`tightrope.model.numbers`)."""
    for coefficient in values.terms.values():
        if (wrong := door.first_not_held(coefficient)) is not None:
            frame.fail(f"{door.why_not(coefficient[wrong])},", position, np.arange(frame.size) == wrong)


class ConstantDistribution(Distribution):
    """Probabilities that are the same in all states; equal ones of other commands are looked up."""

    variables = frozenset[int]()

    def __init__(self, owner: PolynomialProbabilities, compiler: Compiler, command: GuardedCommand):
        self._owner = owner
        self._compiler = compiler
        self._command = command

    def evaluate(self, frame: StateFrame) -> IndexArray:
        updates, known = self._command.updates, self._owner.constants
        values = (each.probability.value for each in updates if isinstance(each.probability, Literal))
        key = (self._command.has_rates, *values)
        row = known.get(key)
        if row is None:
            terms = [self._compiler.terms(update.probability) for update in updates]
            alone = frame.select(np.zeros(1, dtype=np.int64))
            row = PolynomialDistribution(self._owner, self._command, terms).evaluate(alone)
            known[key] = row
        return np.repeat(row, frame.size, axis=0)


class PolynomialDistribution(Distribution):
    """One polynomial an update, adding up to the polynomial 1 unless they are rates."""

    def __init__(self, owner: PolynomialProbabilities, command: GuardedCommand, terms: Sequence[Terms]):
        self._owner = owner
        self._table = owner.table
        self._deferred = owner.deferred
        self._command = command
        self._terms = terms
        numbers = [number for update in terms for number in update.values()]
        self.variables = frozenset[int]().union(*(number.variables for number in numbers))

    def evaluate(self, frame: StateFrame) -> IndexArray:
        values = [polynomials(update, frame) for update in self._terms]
        for value, update in zip(values, self._command.updates, strict=True):
            check_held(value, frame, update.position)
        if not (self._owner.are_rates or self._command.has_rates):
            self._check_sum(reduce(add, values), frame)
        return self._deferred.entries(np.stack([self._table.add_array(value) for value in values], axis=1))

    def _check_sum(self, total: PolynomialArray, frame: StateFrame) -> None:
        wrong: BoolArray = np.full(frame.size, () not in total.terms)
        for monomial, coefficient in total.terms.items():
            wrong |= np.not_equal(coefficient.numerator, 0 if monomial else 1).astype(np.bool_)
            wrong |= np.not_equal(coefficient.denominator, 1).astype(np.bool_)
        if wrong.any():
            result = total.polynomial(int(np.flatnonzero(wrong)[0])).text(self._table.parameter_names)
            message = f"the probabilities of this command sum to {result}, not 1,"
            frame.fail(message, self._command.position, wrong)


# Probabilities that are quotients of polynomials: evaluated on whole frames, brought to lowest terms
# together.
#
# While states are explored a quotient is a pair of polynomials in the table, numerator over denominator
# (`Operation.QUOTIENT`); all of them are reduced in the end, as arrays as long as it is proved that
# nothing cancels (`tightrope.model.polynomial`), and one by one where something may. So are
# sums, products and shares of quotients.

_ONE = Polynomial.constant(1)

Sides = tuple[PolynomialArray, PolynomialArray]
"""Numerators and denominators, these 1 where an update has a polynomial."""


class Quotients(Distribution):
    """Polynomials and quotients of polynomials, adding up to 1 as rational functions."""

    def __init__(
        self, owner: PolynomialProbabilities, command: GuardedCommand, ratios: Sequence[Terms | Ratio]
    ):
        self._table, self._deferred = owner.table, owner.deferred
        self._command = command
        self._ratios = ratios
        self._sums = set[tuple[int, ...]]()
        sides = [(r.numerator, r.denominator) if isinstance(r, Ratio) else (r,) for r in ratios]
        numbers = [number for each in sides for side in each for number in side.values()]
        self.variables = frozenset[int]().union(*(number.variables for number in numbers))

    def evaluate(self, frame: StateFrame) -> IndexArray:
        deferred = self._deferred
        sides = [self._sides(each, frame) for each in self._ratios]
        both = PolynomialArray.concatenate([each for side in zip(*sides, strict=True) for each in side])
        tops, bottoms = self._table.add_array(both).reshape(2, len(sides), frame.size).swapaxes(1, 2)
        if not _sum_to_one(sides):
            self._check_sums(np.concatenate([tops, bottoms], axis=1), frame)
        plain = (bottoms == self._table.ONE) | (tops == self._table.ZERO)
        numbers = deferred.entries(tops)
        rows = np.nonzero(~plain)
        below = deferred.entries(bottoms[rows])
        numbers[rows] = deferred.combine(Operation.QUOTIENT, numbers[rows], below)
        return numbers

    def _sides(self, ratio: Terms | Ratio, frame: StateFrame) -> Sides:
        if not isinstance(ratio, Ratio):
            one = PolynomialArray.constant(RationalArray.constant(1, frame.size))
            return polynomials(ratio, frame), one
        bottom = polynomials(ratio.denominator, frame)
        zero = bottom.is_zero()
        if zero.any():
            frame.fail("a probability of this command divides by 0", self._command.position, zero)
        return polynomials(ratio.numerator, frame), bottom

    def _check_sums(self, entries: IndexArray, frame: StateFrame) -> None:
        """Every distinct combination of numerators and denominators once, as rational functions."""
        distinct, position = np.unique(entries, axis=0, return_inverse=True)
        listed = np.unique(distinct)
        polynomials = dict(zip(listed.tolist(), self._table.polynomials(listed).list_all(), strict=True))
        updates = entries.shape[1] // 2
        for row, combination in enumerate(map(tuple, distinct.tolist())):
            if combination in self._sums:
                continue
            pairs = zip(combination[:updates], combination[updates:], strict=True)
            total: Function = reduce(add, [quotient(polynomials[a], polynomials[b]) for a, b in pairs])
            if total != _ONE:
                result = total.text(self._table.parameter_names)
                message = f"the probabilities of this command sum to {result}, not 1,"
                frame.fail(message, self._command.position, position.reshape(-1) == row)
            self._sums.add(combination)


def combined(
    table: PolynomialIndex, operation: Operation, left: OffsetArray, right: OffsetArray
) -> IndexArray:
    """Sums, products, shares or quotients of entries, brought to lowest terms where there are quotients."""
    tops, bottoms = _batch(table, left)
    is_plain = operation is not Operation.QUOTIENT and not table.has_quotients
    if operation is Operation.SHARE:
        tops = tops.divide(RationalArray.from_integers(right))
        return table.add_array(tops) if is_plain else _entries(table, tops, bottoms)
    other, below = _batch(table, right)
    if is_plain:
        return table.add_array(tops + other if operation is Operation.SUM else tops * other)
    if operation is Operation.QUOTIENT:
        return _entries(table, tops, other)
    if operation is Operation.PRODUCT:
        return _entries(table, tops * other, bottoms * below)
    same = table.add_array(bottoms) == table.add_array(below)
    top = PolynomialArray.where(same, tops + other, tops * below + other * bottoms)
    return _entries(table, top, PolynomialArray.where(same, bottoms, bottoms * below))


def _batch(table: PolynomialIndex, entries: OffsetArray) -> Sides:
    """Far fewer entries are distinct than there are pairs of them."""
    distinct, position = np.unique(entries, return_inverse=True)
    tops, bottoms = table.sides(distinct)
    return tops.take(position.reshape(-1)), bottoms.take(position.reshape(-1))


def _entries(table: PolynomialIndex, tops: PolynomialArray, bottoms: PolynomialArray) -> IndexArray:
    """The entries of quotients, each brought to lowest terms."""
    reduced = reduce_quotients(tops, bottoms)
    rows = np.flatnonzero(~reduced.settled)
    if not len(rows):
        return table.add_quotients(reduced.tops, reduced.bottoms)
    pairs = zip(tops.take(rows).list_all(), bottoms.take(rows).list_all(), strict=True)
    known: dict[tuple[Polynomial, Polynomial], Function] = {}
    functions = [known.get(pair) or known.setdefault(pair, quotient(*pair)) for pair in pairs]
    exact = zip(*(parts(function) for function in functions), strict=True)
    entries: IndexArray = np.empty(len(tops), dtype=np.int32)
    entries[rows] = table.add_quotients(*(PolynomialArray.from_polynomials(side) for side in exact))
    rows = np.flatnonzero(reduced.settled)
    entries[rows] = table.add_quotients(reduced.tops.take(rows), reduced.bottoms.take(rows))
    return entries


def _sum_to_one(sides: Sequence[Sides]) -> bool:
    """Is it plain to see in all rows that the updates add up to 1: over one denominator, as polynomials?"""
    shared = next((bottom for _, bottom in sides if bottom.terms.keys() != {()}), None)
    tops: list[PolynomialArray] = []
    for top, bottom in sides:
        if shared is None:
            return False
        if bottom.terms.keys() == {()}:
            tops.append((top * shared).divide(bottom.terms[()]))
        elif bottom.terms == shared.terms:
            tops.append(top)
        else:
            return False
    return shared is not None and bool((reduce(add, tops) - shared).is_zero().all())


# Sums, products and shares of probabilities, written down during exploration and computed at its end.
#
# The explorer only needs to know which transitions carry the same combination of probabilities, not
# what it comes to. Each distinct combination gets the next number; in the end all combinations of the
# same depth are computed together, exactly, in a few vector operations.


class Growing:
    """An array that grows by doubling; `values` is a view that is valid until the next `append`."""

    def __init__(self, dtype: npt.DTypeLike, width: int | None = None):
        self._array: AnyArray = np.empty((16,) if width is None else (16, width), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> AnyArray:
        return self._array[: self._length]

    def append(self, values: AnyArray) -> None:
        length = self._length + len(values)
        if length > len(self._array):
            larger = np.empty((max(length, 2 * len(self._array)), *self._array.shape[1:]), self._array.dtype)
            larger[: self._length] = self.values
            self._array = larger
        self._array[self._length : length] = values
        self._length = length


_LOW_WORD = 2**32 - 1


class Operation(Enum):
    """How two numbers are combined; SHARE divides by plain numbers, QUOTIENT polynomials."""

    SUM = 0
    PRODUCT = 1
    SHARE = 2
    QUOTIENT = 3


Compute = Callable[[Operation, ExactIntegers, ExactIntegers], IndexArray]
"""The table entries of the combinations of two arrays of table entries."""


class Deferred:
    """Numbers for entries of a table and for combinations of numbers."""

    def __init__(self) -> None:
        self._entries = KeyIndex()
        self._number_of_entry = Growing(np.int32)
        self._pairs = {operation: KeyIndex() for operation in Operation}
        self._number_of_pair = {operation: Growing(np.int32) for operation in Operation}
        self._depth = Growing(np.int32)

    def entries(self, entries: IndexArray) -> IndexArray:
        """The numbers of entries of the table."""
        position = self._entries.insert(entries.reshape(-1, 1).astype(np.int64))
        fresh = len(self._entries) - len(self._number_of_entry)
        if fresh:
            self._number_of_entry.append(self._number_rows(np.zeros(fresh, dtype=np.int32)))
        numbers: IndexArray = self._number_of_entry.values[position]
        return numbers.reshape(entries.shape)

    def combine(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        """The numbers of the combinations of two arrays of numbers."""
        index, number = self._pairs[operation], self._number_of_pair[operation]
        pair = index.insert(((left.astype(np.int64) << 32) | right).reshape(-1, 1))
        if len(index) > len(number):
            first, second = _sides(index.keys[len(number) :, 0])
            depth = self._depth.values[first] + 1
            if operation is not Operation.SHARE:
                depth = np.maximum(depth, self._depth.values[second] + 1)
            number.append(self._number_rows(depth))
        return number.values[pair]

    def pairs(self, operation: Operation) -> tuple[KeyIndex, IndexArray]:
        """The pairs combined so far, as left·2^32 + right, and the numbers of the results."""
        return self._pairs[operation], self._number_of_pair[operation].values

    def resolve(self, compute: Compute) -> IndexArray:
        """The table entry behind every number."""
        entry: IndexArray = np.zeros(len(self._depth), dtype=np.int32)
        entry[self._number_of_entry.values] = self._entries.keys[:, 0]
        for depth in range(1, int(self._depth.values.max(initial=0)) + 1):
            for operation, index in self._pairs.items():
                number = self._number_of_pair[operation].values
                now = np.flatnonzero(self._depth.values[number] == depth)
                if len(now):
                    left, right = _sides(index.keys[now, 0])
                    other = right if operation is Operation.SHARE else entry[right]
                    entry[number[now]] = compute(operation, entry[left], other)
        return entry

    def _number_rows(self, depth: IndexArray) -> IndexArray:
        first = len(self._depth)
        self._depth.append(depth)
        return np.arange(first, len(self._depth), dtype=np.int32)


def _sides(pairs: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
    return pairs >> 32, pairs & _LOW_WORD
