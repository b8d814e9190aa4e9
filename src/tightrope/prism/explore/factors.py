"""Which choices of an interval program are products of independent factors, and their trees.

The commands of a synchronisation draw independently, each within its own intervals. Where two or more of them
have several outcomes and one has some freedom, the joint intervals say less than is known, and the choice
gets a tree: a row for the first factor, behind each of its outcomes one for the second, and so on. What that
encloses and why: `tightrope.model.factored`. The factor with most freedom (Σ upper − lower over its outcomes,
of narrowed bounds) comes first, factors without any last, equal ones as their modules are written.

The states are known already: this goes through them once more, command by command as the search did, so that
every combination of commands is found at its place among the choices of a state. Combinations whose factors
have equally many outcomes, one after the other, are treated together, whichever commands they are of. States
of a Markov chain that draws among several commands keep the joint intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from tightrope.prism.explore.probabilities import ZERO
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
    trees = IntervalTrees(len(states), probabilities)
    for begin in range(0, len(states), _ROWS):
        going_on = begin + np.flatnonzero(~rows.stopped[begin : begin + _ROWS])
        if len(going_on):
            keys, choice = states.keys[going_on], rows.choice_start[going_on]
            for combinations in _combinations(space.frame(keys), groups, choice, is_chain):
                _plant(combinations, keys, states, probabilities.freedom(), trees)
    assert len(states) == len(rows.stopped)  # every outcome is a state that was found
    return trees.finish(rows) if len(trees) else None


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
    """Choices of the model, the row of each, and which factors it is the product of, one column per part."""

    row: OffsetArray
    choice: OffsetArray
    factor: OffsetArray
    factors: Factors


def _combinations(
    frame: Frame, groups: Sequence[Group], choice: OffsetArray, is_chain: bool
) -> Iterator[Combinations]:
    """Those of every group of several parts; `choice` is the first one of each row."""
    found = [_enabled(group, frame) for group in groups]
    counts = [[_count(part, frame.size) for part in parts] for parts in found]
    several = [np.prod(count, axis=0) for count in counts]
    wanted = np.sum(several, axis=0) == 1 if is_chain else np.ones(frame.size, dtype=np.bool_)
    for parts, count, number in zip(found, counts, several, strict=True):
        rows = np.flatnonzero((number > 0) & wanted)
        if len(parts) > 1 and len(rows):
            taking = np.zeros(frame.size, dtype=np.bool_)
            taking[rows] = True
            sides = [_alternatives(part, frame, taking) for part in parts]
            row = np.repeat(rows, number[rows])
            place = np.arange(len(row)) - np.repeat(np.cumsum(number[rows]) - number[rows], number[rows])
            factor: OffsetArray = np.empty((len(row), len(parts)), dtype=np.int64)
            rest, before = place, sum(map(len, sides))
            for column in reversed(range(len(parts))):
                before -= len(sides[column])
                own = np.where(taking, count[column], 0)
                first = before + np.cumsum(own) - own
                factor[:, column] = first[row] + rest % own[row]
                rest = rest // own[row]
            yield Combinations(row, choice[row] + place, factor, Factors.of(sides))
        choice = choice + number


def _enabled(group: Group, frame: Frame) -> Enabled:
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


def _plant(
    found: Combinations, keys: OffsetArray, states: KeyIndex, freedom: FloatArray, trees: IntervalTrees
) -> None:
    """Give trees to the choices that are worth it."""
    factors = found.factors
    width = factors.width[found.factor]
    free = np.round(freedom[factors.probability].sum(axis=1), _DIGITS)[found.factor]
    worth = np.flatnonzero(((width > 1).sum(axis=1) > 1) & (free > 0).any(axis=1))
    if not len(worth):
        return
    order = np.argsort(np.where(width == 1, 1.0, -free)[worth], axis=1, kind="stable")
    factor = np.take_along_axis(found.factor[worth], order, axis=1)
    shapes, shape = np.unique(factors.width[factor], axis=0, return_inverse=True)
    for number, widths in enumerate(shapes.tolist()):
        alike = np.flatnonzero(shape.reshape(-1) == number)
        size = max(1, _OUTCOMES // prod(widths))
        for first in range(0, len(alike), size):
            at = alike[first : first + size]
            levels = [(factors, factor[at, level], w) for level, w in enumerate(widths)]
            root = _grow(keys[found.row[worth[at]]], levels, states, trees)
            trees.plant(found.choice[worth[at]], root)


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
