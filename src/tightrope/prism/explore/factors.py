"""Which choices of an interval program are products of independent factors, and their trees.

The commands of a synchronisation draw independently, each within its own intervals. Where two or more of them
have several outcomes and one has some freedom, the joint intervals say less than is known, and the choice
gets a tree: a row for the first factor, behind each of its outcomes one for the second, and so on. What that
encloses and why: `tightrope.model.mdp`. The factor with most freedom (Σ upper − lower over its outcomes,
of narrowed bounds) comes first, factors without any last, equal ones as their modules are written.

The states are known already: this goes through them once more, command by command as the search did, so that
every combination of commands is found at its place among the choices of a state. Combinations whose factors
have equally many outcomes, one after the other, are treated together, whichever commands they are of. Where a
Markov chain draws among several combinations, the tree begins with that draw: nature picks for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.prism.explore.alternatives import Alternatives, by_row
from tightrope.prism.explore.assemble import Rows
from tightrope.prism.explore.compiled_command import CompiledCommand
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.interval_probabilities import IntervalProbabilities
from tightrope.prism.explore.interval_trees import IntervalTrees, TreeRows
from tightrope.prism.explore.key_index import KeyIndex
from tightrope.prism.explore.probabilities import ONE, ZERO
from tightrope.prism.explore.state_space import StateSpace
from tightrope.prism.explore.synchronise import Group

_ROWS = 2**12
_OUTCOMES = 2**18
"""States looked at, and joint outcomes held, at a time, roughly."""

_DIGITS = 9
"""Freedoms that agree to so many digits are the same."""

Enabled = list[list[tuple[CompiledCommand, BoolArray]]]
"""For every part of a group its commands, and in which rows they are enabled."""


def find_factors(
    space: StateSpace,
    groups: Sequence[Group],
    states: KeyIndex,
    rows: Rows,
    probabilities: IntervalProbabilities,
    is_chain: bool,
) -> TreeRows | None:
    """The rows of all choices, with trees where factors say more than joint intervals; None if nowhere."""
    if all(len(group.parts) == 1 for group in groups):
        return None
    search = _Search(space, groups, states, rows, probabilities)
    for begin in range(0, len(states), _ROWS):
        going_on = begin + np.flatnonzero(~rows.stopped[begin : begin + _ROWS])
        if len(going_on):
            search.look(going_on, is_chain)
    assert len(states) == len(rows.stopped)  # every outcome is a state that was found
    return search.trees.finish(rows) if len(search.trees) else None


@dataclass(frozen=True, eq=False)
class Factors:
    """What single commands do in single states: the steps of their possible outcomes and the numbers of
    their intervals, `width` of them each."""

    step: OffsetArray
    probability: IndexArray
    width: OffsetArray

    @staticmethod
    def of(parts: Sequence[Alternatives]) -> Factors:
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
        return Factors(step, probability, width)


@dataclass(frozen=True, eq=False)
class Combinations:
    """One command per part: the row, the place among those of the row, and the factors, a column per part."""

    row: OffsetArray
    place: OffsetArray
    factor: OffsetArray
    factors: Factors


class _Search:
    """Goes through states and gives trees to the choices that are worth it."""

    def __init__(
        self,
        space: StateSpace,
        groups: Sequence[Group],
        states: KeyIndex,
        rows: Rows,
        probabilities: IntervalProbabilities,
    ):
        self._space, self._groups, self._states, self._rows = space, groups, states, rows
        self._probabilities = probabilities
        self.trees = IntervalTrees(len(states), probabilities)

    def look(self, numbers: OffsetArray, is_chain: bool) -> None:
        """The states with these numbers."""
        keys, first = self._states.keys[numbers], self._rows.choice_start[numbers]
        frame = self._space.frame(keys)
        found = [_find_enabled(group, frame) for group in self._groups]
        counts = [[_count(part, frame.size) for part in parts] for parts in found]
        several = [np.prod(count, axis=0) for count in counts]
        total = np.sum(several, axis=0)
        drawn = total > 1 if is_chain else np.zeros(frame.size, dtype=np.bool_)
        roots: IndexArray = np.zeros((frame.size, int(total[drawn].max(initial=0))), dtype=np.int32)
        worth = np.zeros(frame.size, dtype=np.bool_)
        before = np.zeros(frame.size, dtype=np.int64)
        for parts, count, number in zip(found, counts, several, strict=True):
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

    def _gains(self, found: Combinations) -> BoolArray:
        """Where factors say more than joint intervals."""
        several = (found.factors.width[found.factor] > 1).sum(axis=1) > 1
        result: BoolArray = several & (self._freedom(found) > 0).any(axis=1)
        return result

    def _freedom(self, found: Combinations) -> FloatArray:
        each = self._probabilities.freedom()[found.factors.probability].sum(axis=1)
        result: FloatArray = np.round(each, _DIGITS)[found.factor]
        return result

    def _roots(self, found: Combinations, which: OffsetArray, keys: OffsetArray) -> IndexArray:
        """The roots of the trees of some combinations."""
        root: IndexArray = np.zeros(len(which), dtype=np.int32)
        if not len(which):
            return root
        factors = found.factors
        last = np.where(factors.width[found.factor] == 1, 1.0, -self._freedom(found))[which]
        factor = np.take_along_axis(found.factor[which], np.argsort(last, axis=1, kind="stable"), axis=1)
        shapes, shape = np.unique(factors.width[factor], axis=0, return_inverse=True)
        for number, widths in enumerate(shapes.tolist()):
            alike = np.flatnonzero(shape.reshape(-1) == number)
            size = max(1, _OUTCOMES // prod(widths))
            for first in range(0, len(alike), size):
                at = alike[first : first + size]
                levels = [(factors, factor[at, level], w) for level, w in enumerate(widths)]
                root[at] = _grow(keys[found.row[which[at]]], levels, self._states, self.trees)
        return root


def _combine(frame: Frame, parts: Enabled, count: Sequence[OffsetArray], taking: BoolArray) -> Combinations:
    """The combinations of a group in some rows, in which all parts take part."""
    sides = [_alternatives(part, frame, taking) for part in parts]
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
    return Combinations(row, place, factor, Factors.of(sides))


def _find_enabled(group: Group, frame: Frame) -> Enabled:
    return [
        [(command, mask) for command in part if (mask := command.enabled(frame)) is not None]
        for part in group.parts
    ]


def _count(part: list[tuple[CompiledCommand, BoolArray]], size: int) -> OffsetArray:
    result: OffsetArray = np.zeros(size, dtype=np.int64)
    for _, mask in part:
        result += mask
    return result


def _alternatives(
    part: list[tuple[CompiledCommand, BoolArray]], frame: Frame, taking: BoolArray
) -> Alternatives:
    """What the commands of one part do in the rows where all parts take part, in the order of rows."""
    found = (command.alternatives(frame, mask & taking) for command, mask in part)
    return by_row([each for each in found if each is not None], frame.size)


def _grow(
    keys: OffsetArray,
    levels: Sequence[tuple[Factors, OffsetArray, int]],
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
