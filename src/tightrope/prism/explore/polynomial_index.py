"""Distinct polynomials numbered as they appear, by the hundred thousand.

`ExpressionTable` interns one polynomial after the other; the explorer interns batches. A polynomial
is a path: its terms, by increasing number of the monomial, lead from the root of a tree (the
polynomial 0) from node to node, and a node is its parent with one more term. Distinct coefficients
are numbered first, so a node is a key of two words, and interning a batch takes one pass of the
hash index a monomial. Equal polynomials end at the same node. Rational functions are polynomials here in more
variables (`tightrope.model.reciprocals`); `rational` says which numbers are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from tightrope.model.expressions import Expressions
from tightrope.model.polynomial import Monomial, Polynomial, monomial_order
from tightrope.model.polynomial_array import PolynomialArray
from tightrope.model.rational_function import Function, RationalFunction
from tightrope.model.reciprocals import Reciprocals, without_unused
from tightrope.numerics.arrays import ExactIntegers, IndexArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.key_index import KeyIndex

_LOW_WORD = 2**32 - 1
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
        self._reciprocals = Reciprocals(len(self.parameter_names))
        self.rational = set[int]()
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

    def add_functions(self, functions: Sequence[Function]) -> IndexArray:
        """The numbers of functions, polynomials and rational ones."""
        rows = [
            sorted((self._number(m), c) for m, c in self._reciprocals.extended(function).terms.items())
            for function in functions
        ]
        flat = [term for row in rows for term in row]
        coefficient = self._coefficient_numbers(RationalArray.from_fractions([c for _, c in flat]))
        word = (np.array([m for m, _ in flat], dtype=np.int64) << 32) | coefficient
        length = np.array([len(row) for row in rows], dtype=np.int64)
        start = np.cumsum(length) - length
        node: OffsetArray = np.zeros((len(rows), 1), dtype=np.int64)
        for depth in range(int(length.max(initial=0))):
            longer = np.flatnonzero(length > depth)
            keys = np.stack([node[longer, 0], word[start[longer] + depth]], axis=1)
            node[longer, 0] = self._nodes.insert(keys) + 1
        numbers = self._polynomials.insert(node)
        self.rational.update(
            n for n, f in zip(numbers.tolist(), functions, strict=True) if isinstance(f, RationalFunction)
        )
        return numbers

    def functions(self, numbers: ExactIntegers) -> list[Function]:
        """The functions with these numbers."""
        found: list[dict[Monomial, Fraction]] = [{} for _ in range(len(numbers))]
        for row, monomial, coefficient in self._terms(numbers):
            values = self._rationals(coefficient).to_fractions()
            for i, m, value in zip(row.tolist(), monomial.tolist(), values, strict=True):
                found[i][self._monomials[m]] = value
        return [self._reciprocals.function(Polynomial(terms)) for terms in found]

    def polynomials(self, numbers: ExactIntegers) -> PolynomialArray:
        """The batch of the polynomials with these numbers."""
        found: dict[int, IndexArray] = {}
        for row, monomial, coefficient in self._terms(numbers):
            for m in np.unique(monomial).tolist():
                column = found.setdefault(m, np.zeros(len(numbers), dtype=np.int32))
                here = monomial == m
                column[row[here]] = coefficient[here]
        terms = {self._monomials[m]: self._rationals(column) for m, column in sorted(found.items())}
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
        kept = sorted(
            np.flatnonzero(np.bincount(monomial)).tolist(), key=lambda m: monomial_order(self._monomials[m])
        )
        place = np.zeros(len(self._monomials), dtype=np.int64)
        place[kept] = np.arange(len(kept))
        order = np.lexsort((place[monomial], row))
        row_start: OffsetArray = np.zeros(int(present.sum()) + 1, dtype=np.int64)
        np.cumsum(np.bincount(row, minlength=len(row_start) - 1), out=row_start[1:])
        expressions = Expressions(
            self.parameter_names,
            tuple(self._monomials[m] for m in kept),
            row_start,
            place[monomial[order]].astype(np.int32),
            self._rationals(coefficient[order]),
            self._reciprocals.denominators,
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
        number = self._monomial_number.setdefault(monomial, len(self._monomials))
        if number == len(self._monomials):
            self._monomials.append(monomial)
        return number
