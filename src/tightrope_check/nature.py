"""A graph, and nature's problem at its choices, bounded: opt { p·x : lower ≤ p ≤ upper, Σp = 1 }.

The maximum is the minimum over λ of the dual D(λ) = λ + Σ_i max(lower_i·(x_i − λ), upper_i·(x_i − λ)), convex
and piecewise linear with its kinks at the x_i. So any D(λ) is an upper bound of the maximum (λ is found in
doubles), and min_i D(x_i), each rounded down, is a lower bound. A minimum is the negative of a maximum.

Sets are read exactly as written (README); `single` marks choices whose box encloses one distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np

from tightrope_check import fields
from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.budget import spend, spend_on
from tightrope_check.fields import is_offsets
from tightrope_check.numbers import RATIONAL, Arithmetic, Numbers

_BLOCK = 1 << 14
MOST_STATES = 2**31


@dataclass(frozen=True, eq=False)
class Graph:
    """Choices of state s: choice_start[s] to choice_start[s+1]; transitions of a choice likewise."""

    choice_start: OffsetArray = fields.integers("STATES+1")
    transition_start: OffsetArray = fields.integers("CHOICES+1")
    successor: OffsetArray = fields.integers("TRANSITIONS")
    initial: int = fields.whole()

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    @property
    def choices(self) -> int:
        return len(self.transition_start) - 1

    @property
    def transitions(self) -> int:
        return len(self.successor)

    def trouble(self) -> str | None:
        if not 1 <= self.states < MOST_STATES or not is_offsets(self.choice_start, self.choices):
            return "the choices of states do not fit"
        if not is_offsets(self.transition_start, self.transitions):
            return "the transitions of choices do not fit"
        inside = max(self.successor.max(), self.initial) < self.states
        return None if inside else "a state's number is out of range"


@dataclass(frozen=True, eq=False)
class BoundVector:
    """Finite numbers; where `infinite`, +∞ stands in their place."""

    number: Numbers
    infinite: BoolArray

    @staticmethod
    def of(n: Arithmetic, doubles: FloatArray, used: OffsetArray | slice = slice(None)) -> BoundVector:
        """These doubles, as far as they are used."""
        number, infinite = n.zeros(len(doubles)), np.isinf(doubles)
        number[used] = n.array(np.where(infinite, 0.0, doubles)[used])
        return BoundVector(number, infinite)

    def within(self, n: Arithmetic, upward: bool) -> BoundVector:
        """The same, with the bound that says nothing where a number left the range of the arithmetic."""
        known = n.finite(self.number)
        if np.all(known):
            return self
        number = np.where(known, self.number, 0 if upward else -np.inf)
        return BoundVector(number, self.infinite | (upward & ~known))

    def take(self, index: OffsetArray | tuple[slice, slice]) -> BoundVector:
        return BoundVector(self.number[index], self.infinite[index])

    def below(self, other: BoundVector) -> BoolArray:
        """Where an entry is smaller than the other's."""
        return np.asarray(~self.infinite & (other.infinite | (self.number < other.number)))


@dataclass(frozen=True, eq=False)
class Boxes:
    """lower ≤ p ≤ upper for every transition; the bounds of transition t stand at label[t].

    `law`: the bounds at some labels, in rationals, where `lower` and `upper` only enclose these.
    """

    n: Arithmetic
    transition_start: OffsetArray
    successor: OffsetArray
    label: OffsetArray
    lower: Numbers
    upper: Numbers
    single: BoolArray
    law: Callable[[OffsetArray], tuple[Numbers, Numbers]] | None = None

    def bound(self, values: BoundVector, maximise: bool, upward: bool) -> BoundVector:
        """Not below nature's optimum at every choice if `upward`, not above it otherwise."""
        choices = len(self.transition_start) - 1
        number, infinite = self.n.zeros(choices), np.zeros(choices, dtype=np.bool_)
        for rows, table, single in self.blocks():
            x = values.take(self.successor[table])
            highest = upward if single else maximise
            lower, upper = self.rows(table)
            each = 1 if highest == upward or self.n.exact else 1 + table.shape[1]
            spend_on("nature's choices", 8 * table.size * each, self.n, lower, upper, x.number)
            spend("nature's choices", 400 * each)
            if x.infinite.any():
                infinite[rows] = self._is_infinite(lower, upper, x.infinite, highest, single)
                lower, upper = np.where(x.infinite, 0, lower), np.where(x.infinite, 0, upper)
            sign = 1 if highest else -1
            best = _maximum(self.n, lower, upper, sign * x.number, highest == upward)
            number[rows] = sign * best
        return BoundVector(number, infinite)

    def _is_infinite(
        self, lower: Numbers, upper: Numbers, bad: BoolArray, most: bool, single: bool
    ) -> BoolArray:
        """Where the optimum is +∞, `bad` marking the successors at which the vector is: exactly of nature's
        sets; of one distribution, where it may be for a maximum and where it must be for a minimum."""
        if most:
            can = upper > 0 if single else can_be_positive(self.n, lower, upper)
            return np.asarray(np.any(bad & can, axis=1))
        left = signs_of_sums(self.n, np.where(bad, 0, upper)) < 0
        return np.asarray(left | np.any(bad & (lower > 0), axis=1))

    def rows(self, table: OffsetArray) -> tuple[Numbers, Numbers]:
        """The bounds of a table of transitions."""
        label = self.label[table]
        return self.lower[label], self.upper[label]

    def only(self, choices: OffsetArray) -> Self:
        """These choices alone, in this order."""
        start, transitions = rows_of(self.transition_start, choices)
        part = replace(self, transition_start=start, single=self.single[choices])
        return replace(part, successor=self.successor[transitions], label=self.label[transitions])

    def exactly(self, choices: OffsetArray) -> Boxes:
        """These choices alone, in rationals."""
        part = self.only(choices)
        used = np.unique(part.label)
        spend("choices in rationals", len(self.lower))
        spend("choices in rationals", 2 * len(used), 100)
        lower, upper = RATIONAL.zeros(len(self.lower)), RATIONAL.zeros(len(self.lower))
        lower[used], upper[used] = self.bounds(used)
        return replace(part, n=RATIONAL, lower=lower, upper=upper, law=None)

    def bounds(self, labels: OffsetArray) -> tuple[Numbers, Numbers]:
        """What was written at some labels, in rationals."""
        if self.law is not None:
            return self.law(labels)
        return RATIONAL.array(self.lower[labels]), RATIONAL.array(self.upper[labels])

    def blocks(self) -> Iterator[tuple[OffsetArray, OffsetArray, bool]]:
        """(choices, table of their transitions, whether single) for choices with equally many transitions."""
        length = np.diff(self.transition_start)
        for k in np.unique(length).tolist():
            spend("choices of many widths", len(length) // 8 + 400)
            for single in (False, True):
                rows = np.flatnonzero((length == k) & (self.single == single))
                for first in range(0, len(rows), _BLOCK):
                    part = rows[first : first + _BLOCK]
                    yield part, self.transition_start[part][:, None] + np.arange(k), single


def rows_of(start: OffsetArray, choices: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
    """(offsets, transitions) of some choices."""
    first, length = start[choices], (start[1:] - start[:-1])[choices]
    offset = np.zeros(len(choices) + 1, dtype=np.int64)
    np.cumsum(length, out=offset[1:])
    return offset, np.repeat(first - offset[:-1], length) + np.arange(offset[-1])


def signs_of_sums(n: Arithmetic, entries: Numbers) -> OffsetArray:
    """The signs of Σ − 1 in every row of numbers ≥ 0, without rounding."""
    rest, doubt = excess(n, entries)
    signs: OffsetArray = (rest > 0).astype(np.int64) - (rest < 0)
    for row in np.flatnonzero((doubt > 0) & (abs(rest) <= doubt)).tolist():
        spend("sums of bounds", 3 * entries.shape[1], 1200)
        whole = sum(n.fractions(entries[row]), Fraction(0))
        signs[row] = (whole > 1) - (whole < 1)
    return signs


def can_be_positive(
    n: Arithmetic, lower: Numbers, upper: Numbers, before: Callable[[int], BoolArray] | None = None
) -> BoolArray:
    """Entries that some distribution of the box gives a positive probability, after it gave as much as it can
    to those before(entry)."""
    result: BoolArray = upper > 0
    for i in range(lower.shape[1]):
        unsure = np.flatnonzero(result[:, i] & ~(lower[:, i] > 0))
        if len(unsure):
            given = lower if before is None else np.where(before(i), upper, lower)
            result[unsure, i] = signs_of_sums(n, np.delete(given[unsure], i, axis=1)) < 0
    return result


def moves_always(n: Arithmetic, lower: Numbers, upper: Numbers, good: BoolArray) -> BoolArray:
    """Every distribution of the box gives `good` a positive probability."""
    result: BoolArray = np.any(good & (lower > 0), axis=1)
    unsure = np.flatnonzero(~result)
    result[unsure] = signs_of_sums(n, np.where(good[unsure], 0, upper[unsure])) < 0
    return result


def excess(n: Arithmetic, entries: Numbers) -> tuple[Numbers, Numbers]:
    """(Σ − 1 of every row, how far that may be off): what each addition loses is a number, and is added, too.

    Additions do not underflow, so that nothing is lost where every loss is 0.
    """
    spend_on("sums of bounds", 8 * entries.size, n, entries)
    spend("sums of bounds", 300 * entries.shape[1])
    if n.exact:
        return entries.sum(axis=1) - 1, np.zeros(len(entries), dtype=np.int64)
    total, lost, size = n.zeros(len(entries)) - 1, n.zeros(len(entries)), n.zeros(len(entries))
    for term in entries.T:
        added = total + term
        back = added - total
        loss = (total - (added - back)) + (term - back)
        total, lost, size = added, lost + loss, size + abs(loss)
    return total + lost, np.where(size > 0, n.error(entries.shape[1] + 2, size), 0)


def _maximum(n: Arithmetic, lower: Numbers, upper: Numbers, x: Numbers, above: bool) -> Numbers:
    """A bound on the maximum of p·x in every row, not below it if `above`, not above it otherwise; in
    rationals it is the maximum."""
    if x.shape[1] == 1:
        return x[:, 0]
    if not above and not n.exact:
        best = _dual(n, lower, upper, x, x[:, 0], -1)
        for i in range(1, x.shape[1]):
            best = np.minimum(best, _dual(n, lower, upper, x, x[:, i], -1))
        return best
    best = _dual(n, lower, upper, x, x[np.arange(len(x)), _kink(lower, upper, x)], 1)
    largest: Numbers = np.where(upper > 0, x, x.min(axis=1)[:, None]).max(axis=1)
    return np.minimum(best, largest)


def _dual(n: Arithmetic, lower: Numbers, upper: Numbers, x: Numbers, pivot: Numbers, sign: int) -> Numbers:
    """D(pivot), rounded up (sign 1) or down (sign −1)."""
    difference = x - pivot[:, None]
    weight = np.where(difference > 0, upper, lower)
    terms = weight * difference
    value = pivot + terms.sum(axis=1)
    if n.exact:
        return np.asarray(value)
    rounded = np.any((weight != 0) & (difference != 0), axis=1)
    slack = n.error(x.shape[1] + 4, abs(terms).sum(axis=1)) + n.error(2, abs(value))
    return np.asarray(value + np.where(rounded, sign * slack, 0))


def _kink(lower: Numbers, upper: Numbers, x: Numbers) -> OffsetArray:
    """Where the dual is smallest, up to rounding: what is spread in the order of values ends there."""
    order = np.argsort(-x, axis=1, kind="stable")
    room = 1 - lower.sum(axis=1)
    spread = np.cumsum(np.take_along_axis(upper - lower, order, axis=1), axis=1)
    last = np.minimum((spread < room[:, None]).sum(axis=1), x.shape[1] - 1)
    return np.asarray(order[np.arange(len(x)), last])
