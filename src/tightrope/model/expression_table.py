"""The growing table of distinct expressions, for whoever builds a model.

Expressions are interned: two functions get the same index exactly when they are equal, which for
polynomials and for rational functions in lowest terms means equal coefficients. Sums and products of
indices are computed once and remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tightrope.model.expressions import Expressions
from tightrope.model.polynomial import Monomial, Polynomial, monomial_order
from tightrope.model.polynomial_array import PolynomialArray, PolynomialList
from tightrope.model.rational_function import Function
from tightrope.model.reciprocals import Reciprocals, without_unused
from tightrope.numerics.arrays import IndexArray

_Row = tuple[tuple[int, int, int], ...]
"""((monomial number, numerator, denominator), …) by increasing monomial number; no zeros."""


class ExpressionTable:
    """Index 0 is the polynomial 0 and index 1 the polynomial 1; `freeze` drops what is unused."""

    ZERO = 0
    ONE = 1

    def __init__(self, parameter_names: Sequence[str]):
        self.parameter_names = tuple(parameter_names)
        self._monomials: list[Monomial] = []
        self._monomial_number: dict[Monomial, int] = {}
        self._rows: list[_Row] = []
        self._row_number: dict[_Row, int] = {}
        self._sums: dict[tuple[int, ...], int] = {}
        self._products: dict[tuple[int, int], int] = {}
        self._reciprocals = Reciprocals(len(self.parameter_names))
        self.add(Polynomial({}))
        self.add(Polynomial.constant(1))

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, function: Function) -> int:
        polynomial = self._reciprocals.extend(function)
        row = sorted((self._number(m), c.numerator, c.denominator) for m, c in polynomial.terms.items())
        return self._intern(tuple(row))

    def add_array(self, polynomials: PolynomialArray) -> IndexArray:
        """The indices of all polynomials of the batch; distinct rows are looked at once."""
        size = len(polynomials)
        by_number = sorted((self._number(m), c) for m, c in polynomials.terms.items())
        numbers = [number for number, _ in by_number]
        columns = [part for _, c in by_number for part in (c.numerator, c.denominator)]
        if any(column.dtype == object for column in columns):
            indices = [self.add(polynomials.polynomial(i)) for i in range(size)]
            return np.array(indices, dtype=np.int32)
        table = np.stack(columns, axis=1).astype(np.int64)
        distinct, inverse = np.unique(table, axis=0, return_inverse=True)
        interned = np.empty(len(distinct), dtype=np.int32)
        for position, values in enumerate(distinct.tolist()):
            row = tuple(
                (number, values[2 * j], values[2 * j + 1])
                for j, number in enumerate(numbers)
                if values[2 * j] != 0
            )
            interned[position] = self._intern(row)
        return interned[inverse.reshape(-1)]

    def sum(self, indices: Sequence[int]) -> int:
        key = tuple(sorted(indices))
        if key not in self._sums:
            total: Function = Polynomial({})
            for index in key:
                total = total + self.function(index)
            self._sums[key] = self.add(total)
        return self._sums[key]

    def product(self, left: int, right: int) -> int:
        if left == self.ONE:
            return right
        if right == self.ONE:
            return left
        key = (left, right) if left <= right else (right, left)
        if key not in self._products:
            self._products[key] = self.add(self.function(left) * self.function(right))
        return self._products[key]

    def scaled(self, index: int, factor: Fraction) -> int:
        return self.add(self.function(index) * factor)

    def function(self, index: int) -> Function:
        row = Polynomial({self._monomials[m]: Fraction(n, d) for m, n, d in self._rows[index]})
        return self._reciprocals.function(row)

    def freeze(self, used: IndexArray) -> tuple[Expressions, IndexArray]:
        """The table of the expressions in `used`, and `used` renumbered to it.

        The order is that of first interning, so the same model gives the same table.
        """
        present = np.zeros(len(self._rows), dtype=np.bool_)
        present[used] = True
        kept = np.flatnonzero(present)
        renumber = np.cumsum(present) - 1
        order = sorted(range(len(self._monomials)), key=lambda m: monomial_order(self._monomials[m]))
        position = {old: new for new, old in enumerate(order)}
        rows = [sorted((position[m], n, d) for m, n, d in self._rows[index]) for index in kept.tolist()]
        monomials = tuple(self._monomials[m] for m in order)
        denominators = PolynomialList.of(self._reciprocals.denominators)
        frozen = Expressions.from_rows(self.parameter_names, monomials, rows, denominators)
        return without_unused(frozen), renumber[used].astype(np.int32)

    def _number(self, monomial: Monomial) -> int:
        number = self._monomial_number.get(monomial)
        if number is None:
            number = len(self._monomials)
            self._monomial_number[monomial] = number
            self._monomials.append(monomial)
        return number

    def _intern(self, row: _Row) -> int:
        index = self._row_number.get(row)
        if index is None:
            index = len(self._rows)
            self._row_number[row] = index
            self._rows.append(row)
        return index
