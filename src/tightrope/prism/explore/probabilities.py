"""Tables of the explorer: distinct keys, polynomials and probabilities, each handled by its number.

`KeyIndex` numbers keys, `PolynomialIndex` polynomials. `Probabilities` is the interface for what transitions
have: evaluate a command's updates for some rows; add, multiply and share entries. Here it is implemented for
polynomials; combinations are computed at the end of the exploration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from fractions import Fraction
from functools import partial, reduce
from operator import add
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model import numbers as door
from tightrope.model.expressions import Expressions, without_unused
from tightrope.model.polynomial import (
    Function,
    Monomial,
    Polynomial,
    PolynomialArray,
    PolynomialList,
    RationalFunction,
    parts,
    quotient,
    reduce_quotients,
)
from tightrope.numerics.arrays import AnyArray, BoolArray, ExactIntegers, IndexArray, OffsetArray
from tightrope.numerics.jit import inlined, kernel
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.compile import Compiler, Ratio, Terms, polynomials
from tightrope.prism.explore.nodes import StateFrame
from tightrope.prism.parse.syntax import Complaint, GuardedCommand, Literal, Position

# Hash tables that number keys and polynomials densely, in order of first appearance.
#
# A state is a row of int64 words. `KeyIndex` looks up a whole array in one compiled pass: open addressing
# with linear probing over int32 numbers, keys stored once and contiguously, as the list of all states. The
# table is at most half full and doubles. Numbers depend only on the order of appearance, on every machine.

_LARGEST = 2**31 - 2
_LOW_WORD = 2**32 - 1


@kernel
def _mix(mixed: np.uint64, word: int) -> np.uint64:
    mixed = (mixed ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@kernel
def _slot(mixed: np.uint64, shift: np.uint64) -> np.int64:
    return np.int64((mixed * np.uint64(0xBF58476D1CE4E5B9)) >> shift)


@kernel
def _hash(keys: OffsetArray, row: int, shift: np.uint64) -> np.int64:
    """The upper bits of a multiplicative mix of the row's words."""
    mixed = np.uint64(0)
    for word in range(keys.shape[1]):
        mixed = _mix(mixed, keys[row, word])
    return _slot(mixed, shift)


class KeyTable(NamedTuple):
    """The arrays of an index, for kernels that look keys up one by one; valid until the index grows."""

    slots: IndexArray
    shift: np.uint64
    stored: OffsetArray


@inlined
def number_key(table: KeyTable, count: int, keys: OffsetArray, side: int, row: int) -> int:
    """The number of the key that keys[side, row] begins with: `count` if new, −1 if it does not fit."""
    slots, stored = table.slots, table.stored
    words = stored.shape[1]
    mixed = np.uint64(0)
    for word in range(words):
        mixed = _mix(mixed, keys[side, row, word])
    slot = _slot(mixed, table.shift)
    while slots[slot] >= 0:
        same = True
        for word in range(words):
            if stored[slots[slot], word] != keys[side, row, word]:
                same = False
                break
        if same:
            return int(slots[slot])
        slot = (slot + 1) & (len(slots) - 1)
    if count >= min(len(stored), len(slots) // 2):
        return -1
    for word in range(words):
        stored[count, word] = keys[side, row, word]
    slots[slot] = count
    return count


@kernel
def _insert(
    slots: IndexArray,
    shift: np.uint64,
    stored: OffsetArray,
    count: int,
    keys: OffsetArray,
    begin: int,
    out: IndexArray,
) -> tuple[int, int]:
    """Number keys[begin:] until one does not fit; (rows done, keys stored)."""
    table, side = KeyTable(slots, shift, stored), np.expand_dims(keys, 0)
    for row in range(begin, len(keys)):
        number = number_key(table, count, side, 0, row)
        if number < 0:
            return row, count
        count += number == count
        out[row] = number
    return len(keys), count


@kernel
def _rehash(stored: OffsetArray, count: int, slots: IndexArray, shift: np.uint64) -> None:
    mask = len(slots) - 1
    for row in range(count):
        slot = _hash(stored, row, shift)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row


class KeyIndex:
    """A growing set of keys of `words` int64 words each, numbered 0, 1, … as they appear."""

    def __init__(self, words: int = 1, bits: int = 6):
        self._stored: OffsetArray = np.empty((1 << (bits - 1), words), dtype=np.int64)
        self._count = 0
        self._set_slots(bits)

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> OffsetArray:
        """All keys, one row each, in the order of their numbers; a view that is valid until `insert`."""
        return self._stored[: self._count]

    def insert(self, keys: OffsetArray) -> IndexArray:
        """The number of every row; rows not met before get the next numbers.

        >>> index = KeyIndex()
        >>> index.insert(np.array([[7], [3], [7]])).tolist(), index.keys.tolist()
        ([0, 1, 0], [[7], [3]])
        """
        out: IndexArray = np.empty(len(keys), dtype=np.int32)
        done = 0
        while True:
            done, self._count = _insert(*self.table, self._count, keys, done, out)
            if done == len(keys):
                return out
            self.grow()

    @property
    def table(self) -> KeyTable:
        return KeyTable(self._slots, self._shift, self._stored)

    def adopt(self, count: int) -> None:
        """Know of the keys that `number_key` has added to the table: there are `count` now."""
        self._count = count

    def grow(self) -> None:
        """Make room for more keys."""
        if self._count >= _LARGEST:
            raise InputError(f"the model has more than {_LARGEST} states", hint="use a smaller instance")
        if self._count == len(self._stored):
            larger: OffsetArray = np.empty((2 * self._count, self._stored.shape[1]), dtype=np.int64)
            larger[: self._count] = self._stored
            self._stored = larger
        if 2 * self._count >= len(self._slots):
            self._set_slots(self._bits + 1)
            _rehash(self._stored, self._count, self._slots, self._shift)

    def _set_slots(self, bits: int) -> None:
        self._bits = bits
        self._shift = np.uint64(64 - bits)
        self._slots: npt.NDArray[np.int32] = np.full(1 << bits, -1, dtype=np.int32)


# Distinct polynomials numbered as they appear, by the hundred thousand.
#
# A polynomial is a path in a tree: a node is its parent with one more term, by increasing number of the
# monomial. Distinct coefficients are numbered first, so a node is a key of two words, and interning a batch
# takes one pass of the hash index per monomial. Quotients are polynomials in more variables.

_NOTHING = 2**63 - 1
"""In a row of terms: there are no more."""

_LARGE = -1
"""Stands for the denominator of a coefficient beyond int64, which is listed elsewhere."""


class PolynomialIndex:
    """Number 0 is the polynomial 0 and number 1 the polynomial 1."""

    ZERO = 0
    ONE = 1

    def __init__(self, parameter_names: Sequence[str]):
        self.parameter_names = tuple(parameter_names)
        self._monomials: list[Monomial] = []
        self._monomial_number: dict[Monomial, int] = {}
        self._coefficients = KeyIndex(2)
        self._coefficients.insert(np.array([[0, 1]]))
        self._large: list[Fraction] = []
        self._large_number: dict[Fraction, int] = {}
        self._nodes = KeyIndex(2)
        self._polynomials = KeyIndex(1)
        self._base: list[int] = []
        self._below: list[int] = []
        self._denominators: list[int] = []
        self._reciprocals: dict[int, Monomial] = {self.ONE: ()}
        for constant in (0, 1):
            self.add_array(PolynomialArray.constant(RationalArray.constant(constant, 1)))

    def __len__(self) -> int:
        return len(self._polynomials)

    def add_array(self, polynomials: PolynomialArray) -> IndexArray:
        """The numbers of all polynomials of the batch."""
        node: OffsetArray = np.zeros((len(polynomials), 1), dtype=np.int64)
        by_number = sorted((self._number(m), c) for m, c in polynomials.terms.items())
        for number, coefficient in by_number:
            rows = np.flatnonzero(np.not_equal(coefficient.numerator, 0))
            if len(rows):
                keys = np.empty((len(rows), 2), dtype=np.int64)
                keys[:, 0] = node[rows, 0]
                keys[:, 1] = np.int64(number << 32) | self._coefficient_numbers(coefficient.take(rows))
                node[rows, 0] = self._nodes.insert(keys) + 1
        return self._polynomials.insert(node)

    def add_quotients(self, tops: PolynomialArray, bottoms: PolynomialArray) -> IndexArray:
        """The numbers of quotients in lowest terms; those with the denominator 1 are polynomials."""
        below = self.add_array(bottoms)
        if (below == self.ONE).all():
            return self.add_array(tops)
        distinct, first, position = np.unique(below, return_index=True, return_inverse=True)
        position = position.reshape(-1)
        for n in distinct[np.argsort(first)].tolist():
            self._reciprocal(n)
        reciprocals = [self._reciprocal(n) for n in distinct.tolist()]
        words: OffsetArray = np.full((len(tops), len(tops.terms)), _NOTHING, dtype=np.int64)
        number: OffsetArray = np.zeros(len(distinct), dtype=np.int64)
        for j, (monomial, coefficient) in enumerate(tops.terms.items()):
            rows = np.flatnonzero(np.not_equal(coefficient.numerator, 0))
            used = np.flatnonzero(np.bincount(position[rows], minlength=len(distinct)))
            number[used] = [self._number((*monomial, *reciprocals[i])) for i in used.tolist()]
            words[rows, j] = number[position[rows]] << 32
            words[rows, j] |= self._coefficient_numbers(coefficient.take(rows))
        words.sort(axis=1)
        node: OffsetArray = np.zeros((len(words), 1), dtype=np.int64)
        for column in words.T:
            rows = np.flatnonzero(column != _NOTHING)
            node[rows, 0] = self._nodes.insert(np.stack([node[rows, 0], column[rows]], axis=1)) + 1
        return self._polynomials.insert(node)

    def functions(self, numbers: ExactIntegers) -> list[Function]:
        """The functions with these numbers, one by one."""
        tops, bottoms = self.sides(numbers)
        result: list[Function] = []
        for row in range(len(numbers)):
            top, bottom = tops.polynomial(row), bottoms.polynomial(row)
            result.append(top if bottom.is_constant else RationalFunction(top, bottom))
        return result

    def sides(self, numbers: ExactIntegers) -> tuple[PolynomialArray, PolynomialArray]:
        """Numerators and denominators of the functions with these numbers, in lowest terms."""
        if not self._denominators:
            one = PolynomialArray.constant(RationalArray.constant(1, len(numbers)))
            return self.polynomials(numbers), one
        below: IndexArray = np.full(len(numbers), self.ONE, dtype=np.int32)
        of_monomial = np.array(self._below, dtype=np.int32)
        for row, monomial, _ in self._terms(numbers):
            below[row] = of_monomial[monomial]
        return self.polynomials(numbers), self.polynomials(below)

    def polynomials(self, numbers: ExactIntegers) -> PolynomialArray:
        """The batch of the polynomials with these numbers; of quotients the numerators."""
        result: dict[int, IndexArray] = {}
        base = np.array(self._base, dtype=np.int64)
        for row, monomial, coefficient in self._terms(numbers):
            monomial = base[monomial]
            for m in np.unique(monomial).tolist():
                column = result.setdefault(m, np.zeros(len(numbers), dtype=np.int32))
                here = monomial == m
                column[row[here]] = coefficient[here]
        terms = {self._monomials[m]: self._rationals(column) for m, column in sorted(result.items())}
        return PolynomialArray(terms, len(numbers))

    def freeze(self, used: IndexArray) -> tuple[Expressions, IndexArray]:
        """The table of the expressions in `used` in the order of their numbers, and `used` as its rows."""
        present = np.zeros(len(self), dtype=np.bool_)
        present[used] = True
        renumber = (np.cumsum(present) - 1).astype(np.int32)
        parts = list(self._terms(np.flatnonzero(present)))
        row, monomial, coefficient = (
            np.concatenate([part[i] for part in parts]) if parts else np.zeros(0, dtype=np.int64)
            for i in range(3)
        )
        expressions = Expressions.of_terms(
            self.parameter_names,
            self._monomials,
            int(present.sum()),
            row,
            monomial,
            self._rationals(coefficient),
            PolynomialList(self.polynomials(np.array(self._denominators, dtype=np.int64))),
        )
        return without_unused(expressions), renumber[used]

    def _terms(self, numbers: ExactIntegers) -> Iterator[tuple[OffsetArray, OffsetArray, OffsetArray]]:
        """(position, monomial, coefficient) of all terms, the last terms of all polynomials first."""
        position: OffsetArray = np.arange(len(numbers), dtype=np.int64)
        node = self._polynomials.keys[numbers, 0]
        while True:
            open_rows = np.flatnonzero(node)
            if not len(open_rows):
                return
            position, node = position[open_rows], node[open_rows]
            keys = self._nodes.keys[node - 1]
            yield position, keys[:, 1] >> 32, keys[:, 1] & _LOW_WORD
            node = keys[:, 0]

    def _coefficient_numbers(self, values: RationalArray) -> IndexArray:
        keys = np.empty((len(values), 2), dtype=np.int64)
        if values.numerator.dtype != object and values.denominator.dtype != object:
            keys[:, 0], keys[:, 1] = values.numerator, values.denominator
            return self._coefficients.insert(keys)
        for row, value in enumerate(values.to_fractions()):
            if abs(value.numerator) < 2**63 and value.denominator < 2**63:
                keys[row] = value.numerator, value.denominator
                continue
            number = self._large_number.setdefault(value, len(self._large))
            if number == len(self._large):
                self._large.append(value)
            keys[row] = number, _LARGE
        return self._coefficients.insert(keys)

    def _rationals(self, coefficient: ExactIntegers) -> RationalArray:
        keys = self._coefficients.keys[coefficient]
        numerator, denominator = keys[:, 0].copy(), keys[:, 1].copy()
        large = np.flatnonzero(denominator == _LARGE)
        if not len(large):
            return RationalArray(numerator, denominator)
        exact_numerator, exact_denominator = numerator.astype(object), denominator.astype(object)
        for row in large.tolist():
            value = self._large[int(numerator[row])]
            exact_numerator[row], exact_denominator[row] = value.numerator, value.denominator
        return RationalArray(exact_numerator, exact_denominator)

    def _number(self, monomial: Monomial) -> int:
        number = self._monomial_number.get(monomial)
        if number is None:
            number = self._monomial_number[monomial] = len(self._monomials)
            self._monomials.append(monomial)
            reciprocal = monomial[-1][0] - len(self.parameter_names) if monomial else -1
            self._base.append(number)
            self._below.append(self.ONE)
            if reciprocal >= 0:
                self._base[number] = self._number(monomial[:-1])
                self._below[number] = self._denominators[reciprocal]
        return number

    def _reciprocal(self, denominator: int) -> Monomial:
        """1/g for the polynomial g with this number, as the variable that stands for it."""
        known = self._reciprocals.get(denominator)
        if known is None:
            known = ((len(self.parameter_names) + len(self._denominators), 1),)
            self._denominators.append(denominator)
            self._reciprocals[denominator] = known
        return known

    @property
    def has_quotients(self) -> bool:
        return bool(self._denominators)


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
