"""Probabilities that are quotients of polynomials: evaluated on whole frames, brought to lowest terms
once each.

Numerators and denominators are numbered as polynomials are, on arrays; every distinct pair is then
reduced by itself. Sums and products of transitions that carry quotients are computed a distinct pair at a
time, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from tightrope.model.polynomial import Polynomial
from tightrope.model.polynomial_array import PolynomialArray
from tightrope.model.rational_function import Function, quotient
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.prism.explore.compile import Ratio, Terms
from tightrope.prism.explore.deferred import Operation
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.polynomial_index import PolynomialIndex
from tightrope.prism.parse.syntax import Command

_ONE = Polynomial.constant(1)


class Quotients:
    """The probabilities of a command's updates: polynomials or quotients that add up to 1 as functions."""

    def __init__(self, table: PolynomialIndex, command: Command, ratios: Sequence[Terms | Ratio]):
        self._table = table
        self._command = command
        self._ratios = ratios
        self._entry: dict[tuple[int, int], int] = {}
        self._sums = set[tuple[int, ...]]()
        sides = [side for each in ratios for side in _sides(each) if side is not None]
        numbers = [number for side in sides for number in side.values()]
        self.variables = frozenset[int]().union(*(number.variables for number in numbers))

    def entries(self, frame: Frame) -> IndexArray:
        """The entries of the table for every update (columns) in every row."""
        columns = [self._column(each, frame) for each in self._ratios]
        entries = np.stack(columns, axis=1)
        self._check_sums(entries, frame)
        return entries

    def _column(self, ratio: Terms | Ratio, frame: Frame) -> IndexArray:
        """The entries of the table for one update in all rows."""
        top, bottom = _sides(ratio)
        above = self._numbers(top, frame)
        if bottom is None:
            return above
        below = self._numbers(bottom, frame)
        zero: BoolArray = below == self._table.ZERO
        if zero.any():
            frame.fail("a probability of this command divides by 0", self._command.position, zero)
        pairs = (above.astype(np.int64) << 32) | below
        distinct, position = np.unique(pairs, return_inverse=True)
        keys = [(pair >> 32, pair & (2**32 - 1)) for pair in distinct.tolist()]
        fresh = [key for key in keys if key not in self._entry]
        if fresh:
            tops = self._table.functions(np.array([key[0] for key in fresh]))
            bottoms = self._table.functions(np.array([key[1] for key in fresh]))
            reduced = [_reduced(a, b) for a, b in zip(tops, bottoms, strict=True)]
            numbers = self._table.add_functions(reduced)
            self._entry.update(zip(fresh, numbers.tolist(), strict=True))
        found = np.array([self._entry[key] for key in keys], dtype=np.int32)
        entries: IndexArray = found[position.reshape(-1)]
        return entries

    def _numbers(self, terms: Terms, frame: Frame) -> IndexArray:
        values = {m: number.array(frame) for m, number in terms.items()}
        return self._table.add_array(PolynomialArray(values, frame.size))

    def _check_sums(self, entries: IndexArray, frame: Frame) -> None:
        """Every distinct combination of entries once."""
        distinct, position = np.unique(entries, axis=0, return_inverse=True)
        listed = np.unique(distinct)
        functions = dict(zip(listed.tolist(), self._table.functions(listed), strict=True))
        for row, combination in enumerate(map(tuple, distinct.tolist())):
            if combination in self._sums:
                continue
            total: Function = reduce(add, [functions[entry] for entry in combination])
            if total != _ONE:
                found = total.text(self._table.parameter_names)
                message = f"the probabilities of this command sum to {found}, not 1,"
                frame.fail(message, self._command.position, position.reshape(-1) == row)
            self._sums.add(combination)


def combined(
    table: PolynomialIndex, operation: Operation, left: OffsetArray, right: OffsetArray
) -> IndexArray:
    """Sums, products or shares of entries of a table that has rational functions, each distinct pair once."""
    pairs, position = np.unique(np.stack([left, right], axis=1), axis=0, return_inverse=True)
    first = table.functions(pairs[:, 0])
    if operation is Operation.SHARE:
        results: list[Function] = [a / int(n) for a, n in zip(first, pairs[:, 1].tolist(), strict=True)]
    else:
        second = table.functions(pairs[:, 1])
        both = zip(first, second, strict=True)
        results = [a + b if operation is Operation.SUM else a * b for a, b in both]
    return table.add_functions(results)[position.reshape(-1)]


def _reduced(top: Function, bottom: Function) -> Function:
    assert isinstance(top, Polynomial)
    assert isinstance(bottom, Polynomial)
    return quotient(top, bottom)


def _sides(ratio: Terms | Ratio) -> tuple[Terms, Terms | None]:
    return (ratio.numerator, ratio.denominator) if isinstance(ratio, Ratio) else (ratio, None)
