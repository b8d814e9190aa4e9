"""Probabilities that are quotients of polynomials: evaluated on whole frames, brought to lowest terms
together.

While states are explored a quotient is a pair of polynomials in the table, numerator over denominator
(`Operation.QUOTIENT`); all of them are reduced in the end, as arrays as long as it is proved that
nothing cancels (`tightrope.model.rational_function`), and one by one where something may. So are
sums, products and shares of quotients.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from tightrope.model.polynomial import Polynomial, PolynomialArray
from tightrope.model.rational_function import Function, parts, quotient, reduce_quotients
from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.compile import Ratio, Terms
from tightrope.prism.explore.deferred import Deferred, Operation
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.polynomial_index import PolynomialIndex
from tightrope.prism.parse.syntax import Command

_ONE = Polynomial.constant(1)

Sides = tuple[PolynomialArray, PolynomialArray]
"""Numerators and denominators, these 1 where an update has a polynomial."""


class Quotients:
    """The probabilities of a command's updates: polynomials or quotients that add up to 1 as functions."""

    def __init__(self, table: PolynomialIndex, command: Command, ratios: Sequence[Terms | Ratio]):
        self._table = table
        self._command = command
        self._ratios = ratios
        self._sums = set[tuple[int, ...]]()
        sides = [(r.numerator, r.denominator) if isinstance(r, Ratio) else (r,) for r in ratios]
        numbers = [number for each in sides for side in each for number in side.values()]
        self.variables = frozenset[int]().union(*(number.variables for number in numbers))

    def numbers(self, deferred: Deferred, frame: Frame) -> IndexArray:
        """The numbers of quotients to be computed, for every update (columns) in every row."""
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

    def _sides(self, ratio: Terms | Ratio, frame: Frame) -> Sides:
        if not isinstance(ratio, Ratio):
            one = PolynomialArray.constant(RationalArray.constant(1, frame.size))
            return _values(ratio, frame), one
        bottom = _values(ratio.denominator, frame)
        zero = bottom.is_zero()
        if zero.any():
            frame.fail("a probability of this command divides by 0", self._command.position, zero)
        return _values(ratio.numerator, frame), bottom

    def _check_sums(self, entries: IndexArray, frame: Frame) -> None:
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
                found = total.text(self._table.parameter_names)
                message = f"the probabilities of this command sum to {found}, not 1,"
                frame.fail(message, self._command.position, position.reshape(-1) == row)
            self._sums.add(combination)


def combined(
    table: PolynomialIndex, operation: Operation, left: OffsetArray, right: OffsetArray
) -> IndexArray:
    """Quotients of polynomials, and sums, products or shares of entries of a table that has quotients."""
    tops, bottoms = _batch(table, left)
    if operation is Operation.SHARE:
        return _entries(table, tops.divide(RationalArray.from_integers(right)), bottoms)
    other, below = _batch(table, right)
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


def _values(terms: Terms, frame: Frame) -> PolynomialArray:
    return PolynomialArray({m: number.array(frame) for m, number in terms.items()}, frame.size)
