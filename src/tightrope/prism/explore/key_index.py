"""Hash tables that number keys and polynomials densely, in order of first appearance.

A state is a row of int64 words. `KeyIndex` looks up a whole array in one compiled pass: open addressing with
linear probing over int32 numbers, keys stored once and contiguously, as the list of all states. The table is
at most half full and doubles. Numbers depend only on the order of appearance, on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model.expressions import Expressions, without_unused
from tightrope.model.polynomial import (
    Function,
    Monomial,
    PolynomialArray,
    PolynomialList,
    RationalFunction,
)
from tightrope.numerics.arrays import ExactIntegers, IndexArray, OffsetArray
from tightrope.numerics.jit import inlined, kernel
from tightrope.numerics.rationals import RationalArray

_LARGEST = 2**31 - 2


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

_LOW_WORD = 2**32 - 1
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
