"""Interval probabilities `[0.1,0.3] : …`: exact bounds, and trees of factors for synchronised commands.

Intervals add (capped at 1 above), and points scale them. The product of two proper intervals of synchronised
commands is the interval of products. It encloses the products of their distributions, which are no interval
set; `is_outer` records this, and the user is warned.

Before multiplication bounds are narrowed to attained values: l is raised to 1 − Σ of the other upper bounds,
u lowered to 1 − Σ of the other lower bounds. The command's set stays the same, so the products still enclose
all products of distributions and are never wider than those of the written bounds (PRISM, Storm). Every
number has both pairs of bounds; commands that do not synchronise keep the written ones.

Sums of exactly 1 matter. Upper bounds that reach 1 still do once rounded up. Lower bounds that sum to 1 leave
one distribution, which the command is then read as; likewise all upper bounds. Upper bounds below 1 by less
than rounding shows are refused, as are numbers that `tightrope.model.numbers` refuses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np

from tightrope.errors import InputError
from tightrope.model import numbers as door
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.assemble import ModelRows, Survey
from tightrope.prism.explore.commands import (
    Alternatives,
    CommandGroup,
    EnabledPart,
    alternatives_of,
    by_row,
)
from tightrope.prism.explore.compile import Compiler
from tightrope.prism.explore.nodes import Number, StateFrame
from tightrope.prism.explore.probabilities import (
    ONE,
    ZERO,
    Distribution,
    Growing,
    KeyIndex,
    Operation,
    Probabilities,
)
from tightrope.prism.parse.syntax import Complaint, GuardedCommand

Bounds = tuple[Fraction, Fraction]

_ONE = Fraction(1)
_CLOSE = Fraction(1, 2**40)
_MOST_COMBINED = 10
"""Of commands with more updates only all upper bounds but one are compared with 1."""


class IntervalProbabilities(Probabilities):
    """Distinct pairs (lower, upper); 0 is [0,0] and 1 is [1,1]."""

    def __init__(self) -> None:
        self.is_outer = False
        self._pairs = {operation: KeyIndex() for operation in Operation}
        self._results: dict[Operation, list[int]] = {operation: [] for operation in Operation}
        self._bounds: list[Bounds] = []
        self._narrowed: list[Bounds] = []
        self._number: dict[tuple[Bounds, Bounds], int] = {}
        self._freedom: FloatArray = np.zeros(0)
        self.intern((Fraction(0), Fraction(0)))
        self.intern((_ONE, _ONE))

    def intern(self, bounds: Bounds, narrowed: Bounds | None = None) -> int:
        """The number of bounds, with what is known of them beside that."""
        both = bounds, narrowed or bounds
        number = self._number.setdefault(both, len(self._bounds))
        if number == len(self._bounds):
            door.bound(bounds[0], -math.inf)
            door.bound(bounds[1], math.inf)
            self._bounds.append(both[0])
            self._narrowed.append(both[1])
        return number

    def lower(self) -> FloatArray:
        """The lower bounds, rounded down."""
        return RationalArray.from_fractions(low for low, _ in self._bounds).to_float_down()

    def upper(self) -> FloatArray:
        """The upper bounds, rounded up."""
        return RationalArray.from_fractions(high for _, high in self._bounds).to_float_up()

    def freedom(self) -> FloatArray:
        """How far the narrowed bounds are apart, about."""
        new = [float(high - low) for low, high in self._narrowed[len(self._freedom) :]]
        self._freedom = np.append(self._freedom, new)
        return self._freedom

    def compile(self, compiler: Compiler, command: GuardedCommand) -> Distribution:
        bounds = []
        for update in command.updates:
            low = compiler.number(update.probability)
            bounds.append((low, low if update.upper is None else compiler.number(update.upper)))
        return IntervalDistribution(self, command, bounds)

    def combine(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        try:
            return self._combined(operation, left, right)
        except door.NotHeldError as error:
            raise Complaint(f"intervals of commands that go together: {error.message}", None) from None

    def _combined(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        pair = self._pairs[operation].insert(((left.astype(np.int64) << 32) | right).reshape(-1, 1))
        result = self._results[operation]
        for key in self._pairs[operation].keys[len(result) :, 0].tolist():
            result.append(self._combine(operation, key >> 32, key & 0xFFFFFFFF))
        return np.array(result, dtype=np.int32)[pair]

    def _combine(self, operation: Operation, left: int, right: int) -> int:
        written, narrowed = self._bounds[left], self._narrowed[left]
        if operation is Operation.SHARE:
            return self.intern(_scale(written, Fraction(1, right)), _scale(narrowed, Fraction(1, right)))
        other, other_narrowed = self._bounds[right], self._narrowed[right]
        if operation is Operation.SUM:
            return self.intern(_sum(written, other), _sum(narrowed, other_narrowed))
        for one, (low, high) in ((left, other), (right, written)):
            if low == high:
                return self.intern(_scale(self._bounds[one], low), _scale(self._narrowed[one], low))
        self.is_outer = True
        return self.intern((narrowed[0] * other_narrowed[0], narrowed[1] * other_narrowed[1]))


class IntervalDistribution(Distribution):
    """One interval an update, such that some distribution lies within all of them."""

    def __init__(
        self, table: IntervalProbabilities, command: GuardedCommand, bounds: Sequence[tuple[Number, Number]]
    ):
        self._table = table
        self._command = command
        self._bounds = bounds
        self._told_apart: set[tuple[Fraction, ...]] = set()
        numbers = [number for pair in bounds for number in pair]
        self.variables = frozenset[int]().union(*(number.variables for number in numbers))

    def evaluate(self, frame: StateFrame) -> IndexArray:
        lower = [low.array(frame).to_fractions() for low, _ in self._bounds]
        upper = [high.array(frame).to_fractions() for _, high in self._bounds]
        result: IndexArray = np.empty((frame.size, len(self._bounds)), dtype=np.int32)
        for row in range(frame.size):
            low, high = [each[row] for each in lower], [each[row] for each in upper]
            for column, update in enumerate(self._command.updates):
                if not 0 <= low[column] <= high[column] <= 1:
                    raise Complaint(
                        f"[{low[column]}, {high[column]}] is not an interval of probabilities in state "
                        f"{frame.describe(row)}",
                        update.position,
                    )
            least, most = sum(low), sum(high)
            if not least <= 1 <= most:
                words = f"lower bounds of this command sum to {least} > 1"
                if least <= 1:
                    words = f"upper bounds of this command sum to {most} < 1"
                raise Complaint(
                    f"the {words} in state {frame.describe(row)}, so no distribution fits",
                    self._command.position,
                )
            if least == 1 or most == 1:  # one distribution fits
                low = high = low if least == 1 else high
            elif tuple(high) not in self._told_apart:
                self._tell_apart(high, frame.describe(row))
            for column, (a, b) in enumerate(zip(low, high, strict=True)):
                narrowed = max(a, 1 - sum(high) + b), min(b, 1 - sum(low) + a)
                try:
                    result[row, column] = self._table.intern((a, b), narrowed)
                except door.NotHeldError as error:
                    position = self._command.updates[column].position
                    raise Complaint(f"{error.message}, in state {frame.describe(row)}", position) from None
        return result

    def _tell_apart(self, upper: Sequence[Fraction], state: str) -> None:
        """Refuse upper bounds, some of which sum to less than 1 but to 1 once they are float64."""
        rounded = [Fraction(float(x)) for x in RationalArray.from_fractions(upper).to_float_up()]
        count = len(upper)
        sizes = range(1, count) if count <= _MOST_COMBINED else (1, count - 1)
        for some in (c for size in sizes for c in combinations(range(count), size)):
            missing = 1 - sum(upper[i] for i in some)
            if 0 < missing < _CLOSE and sum(rounded[i] for i in some) >= 1:
                update = self._command.updates[some[-1]]
                raise Complaint(
                    f"upper bounds of this command miss 1 by {float(missing):.2g} in state {state}, "
                    "which is less than float64 can tell, and what nature can do depends on it",
                    update.position,
                    "write bounds that sum to 1 exactly, or that stay below it by 1e-15 or more",
                )
        self._told_apart.add(tuple(upper))


def _scale(bounds: Bounds, factor: Fraction) -> Bounds:
    return bounds[0] * factor, bounds[1] * factor


def _sum(left: Bounds, right: Bounds) -> Bounds:
    return left[0] + right[0], min(_ONE, left[1] + right[1])


# Interval rows one after the other, as trees whose equal parts are kept once.
#
# A node is a row: the successors of one factor's outcomes, each with the number of its interval. Successors
# are states of the model, or other nodes. Nodes are built from the leaves up, so that equal ones are the
# same: outcomes of probability 0 are dropped, those that lead to the same successor become one with their
# intervals added (what the sum of some entries of the distributions within intervals can be is the sum of the
# intervals, exactly), and a row with one successor left is that successor.

_MOST = 2**31 - 2


@dataclass(frozen=True, eq=False)
class TreeRows:
    """The rows of choices, then those of states in the middle of a step, in layers (`model.mdp`)."""

    transition_start: OffsetArray
    successor: IndexArray
    probability: IndexArray
    layer_start: OffsetArray


class IntervalTrees:
    """All distinct nodes over `own` states; numbered from there on, those below before those above."""

    def __init__(self, own: int, probabilities: Probabilities):
        self._own, self._probabilities = own, probabilities
        self._met: dict[int, KeyIndex] = {}
        self._meaning: dict[int, IndexArray] = {}
        self._rows: dict[int, KeyIndex] = {}
        self._number: dict[int, IndexArray] = {}
        self._height: IndexArray = np.zeros(0, dtype=np.int32)
        self._choice, self._root = Growing(np.int64), Growing(np.int32)

    def nodes(self, successor: IndexArray, probability: IndexArray) -> IndexArray:
        """The node of every row of two tables, one column per outcome."""
        width = successor.shape[1]
        if width == 1:
            return successor[:, 0]
        met = self._met.setdefault(width, KeyIndex(width))
        known = self._meaning.setdefault(width, np.zeros(0, dtype=np.int32))
        place = met.insert((successor.astype(np.int64) << 32) | probability)
        new = met.keys[len(known) :]
        if len(new):
            known = np.concatenate([known, self._reduce(new >> 32, new & 0xFFFFFFFF)])
            self._meaning[width] = known
        return known[place]

    def _reduce(self, successor: OffsetArray, probability: OffsetArray) -> IndexArray:
        """Nodes of rows that were not met before."""
        order = np.argsort(successor, axis=1, kind="stable")
        successor = np.take_along_axis(successor, order, axis=1)
        probability = np.take_along_axis(probability, order, axis=1)
        plain = (probability != ZERO).all(axis=1) & (successor[:, 1:] != successor[:, :-1]).all(axis=1)
        result: IndexArray = np.empty(len(successor), dtype=np.int32)
        result[plain] = self._intern((successor[plain] << 32) | probability[plain])
        for row in np.flatnonzero(~plain).tolist():
            merged: dict[int, int] = {}
            for target, number in zip(successor[row].tolist(), probability[row].tolist(), strict=True):
                if number != ZERO:
                    merged[target] = number if target not in merged else self._add(merged[target], number)
            keys = np.array([[(target << 32) | number for target, number in merged.items()]], dtype=np.int64)
            result[row] = keys[0, 0] >> 32 if len(merged) == 1 else self._intern(keys)[0]
        return result

    def _add(self, left: int, right: int) -> int:
        pair = (np.array([number], dtype=np.int32) for number in (left, right))
        return int(self._probabilities.sum(*pair)[0])

    def _intern(self, keys: OffsetArray) -> IndexArray:
        width = keys.shape[1]
        rows = self._rows.setdefault(width, KeyIndex(width))
        number = self._number.setdefault(width, np.zeros(0, dtype=np.int32))
        place = rows.insert(keys)
        new = rows.keys[len(number) :] >> 32
        if len(new):
            first = self._own + len(self._height)
            if first + len(new) > _MOST:
                raise InputError(
                    "the factors of this model have too many outcomes", hint="use a smaller instance"
                )
            height = np.append(0, self._height)[np.maximum(new - self._own + 1, 0)].max(axis=1) + 1
            self._height = np.append(self._height, height.astype(np.int32))
            number = np.append(number, np.arange(first, first + len(new), dtype=np.int32))
            self._number[width] = number
        return number[place]

    def plant(self, choice: OffsetArray, root: IndexArray) -> None:
        """What choices of the model do is what these nodes say."""
        self._choice.append(choice)
        self._root.append(root)

    def __len__(self) -> int:
        """The number of choices that have a tree."""
        return len(self._choice)

    def finish(self, rows: ModelRows) -> TreeRows:
        """The rows of all choices of the model, of which some have trees."""
        choice, root = self._choice.values, self._root.values
        start, successor, probability = self._table()
        remaining = self._inner_nodes(root, start, successor)
        order = np.flatnonzero(remaining)[np.argsort(self._height[remaining], kind="stable")]
        state = np.full(len(remaining), -1, dtype=np.int64)
        state[order] = self._own + np.arange(len(order))
        renamed = np.append(np.arange(self._own), state)
        # Rows are taken from one list: those of the model, those of the nodes, and one per lone successor.
        alone = np.unique(root[root < self._own])
        own = rows.transition_start, rows.successor.astype(np.int64), rows.probability.astype(np.int64)
        lone = np.arange(len(alone) + 1), alone.astype(np.int64), np.full(len(alone), ONE)
        every_start, every_successor, every_number = _join([own, (start, successor, probability), lone])
        source = np.arange(len(rows.transition_start) - 1)
        choices, nodes = len(source), len(start) - 1
        inner = choices + root - self._own
        source[choice] = np.where(root < self._own, choices + nodes + np.searchsorted(alone, root), inner)
        source = np.append(source, choices + order)
        length = np.diff(every_start)[source]
        new_start: OffsetArray = np.append(0, np.cumsum(length))
        selected = np.arange(new_start[-1]) + np.repeat(every_start[source] - new_start[:-1], length)
        layers = np.bincount(self._height[order], minlength=1)[1:]
        return TreeRows(
            new_start,
            renamed[every_successor[selected]].astype(np.int32),
            every_number[selected].astype(np.int32),
            self._own + np.append(0, np.cumsum(layers)),
        )

    def _table(self) -> tuple[OffsetArray, OffsetArray, OffsetArray]:
        """All nodes, in order, as rows."""
        length = np.zeros(len(self._height), dtype=np.int64)
        for width, number in self._number.items():
            length[number - self._own] = width
        start: OffsetArray = np.append(0, np.cumsum(length))
        entry: OffsetArray = np.empty(start[-1], dtype=np.int64)
        for width, number in self._number.items():
            entry[start[number - self._own][:, None] + np.arange(width)] = self._rows[width].keys
        return start, entry >> 32, entry & 0xFFFFFFFF

    def _inner_nodes(self, root: IndexArray, start: OffsetArray, successor: OffsetArray) -> BoolArray:
        """Nodes that a tree passes through on the way down; roots are choices of the model already."""
        used = np.zeros(len(self._height), dtype=np.bool_)
        used[root[root >= self._own] - self._own] = True
        inner = np.zeros_like(used)
        owner = np.repeat(np.arange(len(used)), np.diff(start))
        height = self._height[owner]
        for level in range(int(self._height.max(initial=0)), 1, -1):
            below = successor[(height == level) & used[owner]] - self._own
            below = below[below >= 0]
            used[below] = inner[below] = True
        return inner


def _join(
    tables: list[tuple[OffsetArray, OffsetArray, OffsetArray]],
) -> tuple[OffsetArray, OffsetArray, OffsetArray]:
    """Rows after rows."""
    shift = np.cumsum([0, *(len(successor) for _, successor, _ in tables)])
    starts = [start[:-1] + by for (start, _, _), by in zip(tables, shift, strict=False)]
    return (
        np.concatenate([*starts, shift[-1:]]),
        np.concatenate([successor for _, successor, _ in tables]),
        np.concatenate([number for _, _, number in tables]),
    )


# Which choices of an interval program are products of independent factors, and their trees.
#
# Where two or more commands of a synchronisation have several outcomes and one has some freedom, the choice
# gets a tree (`tightrope.model.mdp`): a row for the first factor, behind each of its outcomes one for the
# second, and so on. The factor with most freedom (Σ upper − lower, of narrowed bounds) comes first.
#
# This goes through the known states once more, command by command, so that every combination is found at
# its place among the choices of a state. Where a Markov chain draws among several, that draw comes first.

_ROWS = 2**12
_OUTCOMES = 2**18
"""States looked at, and joint outcomes held, at a time, roughly."""

_DIGITS = 9
"""Freedoms that agree to so many digits are the same."""


def find_factors(
    survey: Survey,
    groups: Sequence[CommandGroup],
    rows: ModelRows,
    probabilities: IntervalProbabilities,
    is_chain: bool,
) -> TreeRows | None:
    """The rows of all choices, with trees where factors say more than joint intervals; None if nowhere."""
    if all(len(group.parts) == 1 for group in groups):
        return None
    search, states = _FactorSearch(survey, groups, rows, probabilities), survey.states
    for begin in range(0, len(states), _ROWS):
        going_on = begin + np.flatnonzero(~rows.stopped[begin : begin + _ROWS])
        if len(going_on):
            search.look(going_on, is_chain)
    assert len(states) == len(rows.stopped)  # every outcome is a state that was found
    return search.trees.finish(rows) if len(search.trees) else None


@dataclass(frozen=True, eq=False)
class CommandFactors:
    """Outcomes of single commands in single states: steps and interval numbers, `width` each."""

    step: OffsetArray
    probability: IndexArray
    width: OffsetArray

    @staticmethod
    def of(parts: Sequence[Alternatives]) -> CommandFactors:
        """Part after part; outcomes that cannot happen are left out."""
        every = Alternatives.concatenate(parts)
        owner = np.repeat(np.arange(len(every)), np.diff(every.start))
        happens = np.flatnonzero(every.probability != ZERO)
        width = np.bincount(owner[happens], minlength=len(every))
        column = np.arange(len(happens)) - np.repeat(np.cumsum(width) - width, width)
        shape = len(every), int(width.max(initial=1))
        step: OffsetArray = np.zeros((*shape, every.step.shape[1]), dtype=np.int64)
        probability: IndexArray = np.full(shape, ZERO, dtype=np.int32)
        step[owner[happens], column] = every.step[happens]
        probability[owner[happens], column] = every.probability[happens]
        return CommandFactors(step, probability, width)


@dataclass(frozen=True, eq=False)
class Combinations:
    """One command per part: the row, the place among those of the row, and the factors, a column per part."""

    row: OffsetArray
    place: OffsetArray
    factor: OffsetArray
    factors: CommandFactors


class _FactorSearch:
    """Goes through states and gives trees to the choices that are worth it."""

    def __init__(
        self,
        survey: Survey,
        groups: Sequence[CommandGroup],
        rows: ModelRows,
        probabilities: IntervalProbabilities,
    ):
        self._space, self._states = survey.space, survey.states
        self._groups, self._rows, self._probabilities = groups, rows, probabilities
        self.trees = IntervalTrees(len(survey.states), probabilities)

    def look(self, numbers: OffsetArray, is_chain: bool) -> None:
        """The states with these numbers."""
        keys, first = self._states.keys[numbers], self._rows.choice_start[numbers]
        frame = self._space.frame(keys)
        result = [group.enabled(frame) for group in self._groups]
        none = np.zeros(frame.size, dtype=np.int64)
        counts = [[np.sum([none, *(mask for _, mask in part)], axis=0) for part in parts] for parts in result]
        several = [np.prod(count, axis=0) for count in counts]
        total = np.sum(several, axis=0)
        drawn = total > 1 if is_chain else np.zeros(frame.size, dtype=np.bool_)
        roots: IndexArray = np.zeros((frame.size, int(total[drawn].max(initial=0))), dtype=np.int32)
        worth = np.zeros(frame.size, dtype=np.bool_)
        before = np.zeros(frame.size, dtype=np.int64)
        for parts, count, number in zip(result, counts, several, strict=True):
            if len(parts) > 1 and (alone := (number > 0) & ~drawn).any():
                one = _combine(frame, parts, count, alone)
                at = np.flatnonzero(self._gains(one))
                root = self._roots(one, at, keys)
                self.trees.plant((first + before)[one.row[at]] + one.place[at], root)
            if (number[drawn] > 0).any():
                one = _combine(frame, parts, count, drawn & (number > 0))
                every = np.arange(len(one.row))
                roots[one.row, before[one.row] + one.place] = self._roots(one, every, keys)
                worth[one.row[self._gains(one)]] = True
            before = before + number
        for size in np.unique(total[worth]).tolist():
            at = np.flatnonzero(worth & (total == size))
            number = np.full((len(at), size), ONE, dtype=np.int32)
            share = self._probabilities.share(number.reshape(-1), np.full(number.size, size, dtype=np.int32))
            self.trees.plant(first[at], self.trees.nodes(roots[at, :size], share.reshape(number.shape)))

    def _gains(self, outcome: Combinations) -> BoolArray:
        """Where factors say more than joint intervals."""
        several = (outcome.factors.width[outcome.factor] > 1).sum(axis=1) > 1
        result: BoolArray = several & (self._freedom(outcome) > 0).any(axis=1)
        return result

    def _freedom(self, outcome: Combinations) -> FloatArray:
        each = self._probabilities.freedom()[outcome.factors.probability].sum(axis=1)
        result: FloatArray = np.round(each, _DIGITS)[outcome.factor]
        return result

    def _roots(self, result: Combinations, which: OffsetArray, keys: OffsetArray) -> IndexArray:
        """The roots of the trees of some combinations."""
        root: IndexArray = np.zeros(len(which), dtype=np.int32)
        if not len(which):
            return root
        factors = result.factors
        last = np.where(factors.width[result.factor] == 1, 1.0, -self._freedom(result))[which]
        factor = np.take_along_axis(result.factor[which], np.argsort(last, axis=1, kind="stable"), axis=1)
        shapes, shape = np.unique(factors.width[factor], axis=0, return_inverse=True)
        for number, widths in enumerate(shapes.tolist()):
            alike = np.flatnonzero(shape.reshape(-1) == number)
            size = max(1, _OUTCOMES // prod(widths))
            for first in range(0, len(alike), size):
                at = alike[first : first + size]
                levels = [(factors, factor[at, level], w) for level, w in enumerate(widths)]
                root[at] = _grow(keys[result.row[which[at]]], levels, self._states, self.trees)
        return root


def _combine(
    frame: StateFrame, parts: list[EnabledPart], count: Sequence[OffsetArray], taking: BoolArray
) -> Combinations:
    """The combinations of a group in some rows, in which all parts take part."""
    sides = [by_row(alternatives_of(part, frame, taking)) for part in parts]
    number = np.where(taking, np.prod(count, axis=0), 0)
    row = np.repeat(np.arange(frame.size), number)
    place = np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)
    factor: OffsetArray = np.empty((len(row), len(parts)), dtype=np.int64)
    rest, before = place, sum(map(len, sides))
    for column in reversed(range(len(parts))):
        before -= len(sides[column])
        own = np.where(taking, count[column], 0)
        first = before + np.cumsum(own) - own
        factor[:, column] = first[row] + rest % own[row]
        rest = rest // own[row]
    return Combinations(row, place, factor, CommandFactors.of(sides))


def _grow(
    keys: OffsetArray,
    levels: Sequence[tuple[CommandFactors, OffsetArray, int]],
    states: KeyIndex,
    trees: IntervalTrees,
) -> IndexArray:
    """The roots of trees from the states with these keys, with a level per factor, each of one width."""
    count, words = keys.shape
    reached = keys[:, None, :]
    for factors, factor, width in levels:
        step = factors.step[factor, :width]
        reached = (reached[:, :, None, :] + step[:, None, :, :]).reshape(count, -1, words)
    node = states.insert(np.ascontiguousarray(reached.reshape(-1, words)))
    for factors, factor, width in reversed(levels):
        inner = len(node) // (count * width)
        probability = np.repeat(factors.probability[factor, :width], inner, axis=0)
        node = trees.nodes(node.reshape(-1, width), probability)
    return node
