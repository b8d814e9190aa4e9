"""Which choices of an interval program are products of independent factors, and their trees.

The commands of a synchronisation draw independently, each within its own intervals. Where two or more of them
have several outcomes and one has some freedom, the joint intervals say less than is known, and the choice
gets a tree: a row for the first factor, behind each of its outcomes one for the second, and so on. What that
encloses and why: `tightrope.model.factored`. The factor with most freedom (Σ upper − lower over its outcomes,
of narrowed bounds) comes first, factors without any last, equal ones as their modules are written.

The states are known already: this goes through them once more, command by command as the search did, so that
every combination of commands is found at its place among the choices of a state. States of a Markov chain
that draws among several commands keep the joint intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.prism.explore.assemble import Rows
from tightrope.prism.explore.compiled_command import CompiledCommand
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.interval_probabilities import IntervalProbabilities
from tightrope.prism.explore.interval_trees import IntervalTrees, TreeRows
from tightrope.prism.explore.key_index import KeyIndex
from tightrope.prism.explore.probabilities import ZERO
from tightrope.prism.explore.state_space import StateSpace
from tightrope.prism.explore.synchronise import Group

_OUTCOMES = 2**18
"""Joint outcomes held at a time, roughly."""

_DIGITS = 9
"""Freedoms that agree to so many digits are the same."""


@dataclass(frozen=True, eq=False)
class Factor:
    """The steps of one command's outcomes and the numbers of their intervals, one row per state."""

    step: OffsetArray
    probability: IndexArray

    def take(self, rows: OffsetArray) -> Factor:
        return Factor(self.step[rows], self.probability[rows])


@dataclass(frozen=True, eq=False)
class _Enabled:
    """A command, the states where it is enabled, and how many of its part are so before it."""

    command: CompiledCommand
    mask: BoolArray
    rank: OffsetArray


def find_factors(
    space: StateSpace,
    groups: Sequence[Group],
    states: KeyIndex,
    rows: Rows,
    probabilities: IntervalProbabilities,
    is_chain: bool,
) -> TreeRows | None:
    """The rows of all choices, with trees where factors say more than joint intervals; None if nowhere."""
    together = [group for group in groups if len(group.parts) > 1]
    if not together:
        return None
    search = _Search(space, groups, states, rows, probabilities, is_chain)
    widest = max(prod(max(_width(c) for c in part) for part in group.parts) for group in together)
    size = max(1, min(2**14, _OUTCOMES // widest))
    for begin in range(0, len(states), size):
        search.look(begin, min(begin + size, len(states)))
    return search.trees.finish(rows) if len(search.trees) else None


def _width(command: CompiledCommand) -> int:
    return 1 if command.never else len(command.updates)


class _Search:
    """Goes through states and plants the trees of their choices."""

    def __init__(
        self,
        space: StateSpace,
        groups: Sequence[Group],
        states: KeyIndex,
        rows: Rows,
        probabilities: IntervalProbabilities,
        is_chain: bool,
    ):
        self._space, self._groups, self._states, self._rows = space, groups, states, rows
        self._probabilities, self._is_chain = probabilities, is_chain
        self.trees = IntervalTrees(len(states), probabilities)

    def look(self, begin: int, end: int) -> None:
        """The choices of the states from `begin` to before `end`."""
        going_on = np.flatnonzero(~self._rows.stopped[begin:end])
        keys = self._states.keys[begin + going_on]
        if not len(keys):
            return
        frame = self._space.frame(keys)
        choice = self._rows.choice_start[begin + going_on]
        found = [(group, _enabled(group, frame)) for group in self._groups]
        counts = [_count(parts, frame.size) for _, parts in found]
        drawn = np.sum(counts, axis=0) > 1 if self._is_chain else np.zeros(frame.size, dtype=np.bool_)
        for (group, parts), count in zip(found, counts, strict=True):
            if len(group.parts) > 1 and count.any():
                for at, place, factors in _combinations(parts, frame, ~drawn):
                    self._add(keys[at], choice[at] + place, factors)
            choice = choice + count

    def _add(self, keys: OffsetArray, choice: OffsetArray, factors: list[Factor]) -> None:
        """One combination of commands in some states."""
        freedom = self._probabilities.freedom()
        free = np.stack([freedom[factor.probability].sum(axis=1) for factor in factors], axis=1)
        several = sum((factor.probability != ZERO).sum(axis=1) > 1 for factor in factors)
        worth = np.flatnonzero((several > 1) & (free > 0).any(axis=1))
        if not len(worth):
            return
        by_freedom = np.argsort(-np.round(free[worth], _DIGITS), axis=1, kind="stable")
        orders, which = np.unique(by_freedom, axis=0, return_inverse=True)
        for number, order in enumerate(orders.tolist()):
            at = worth[which.reshape(-1) == number]
            root = self._grow(keys[at], [factors[i].take(at) for i in order])
            self.trees.plant(choice[at], root)

    def _grow(self, keys: OffsetArray, factors: list[Factor]) -> IndexArray:
        """The roots of trees with a level per factor, in this order."""
        count, words = keys.shape
        reached, possible = keys[:, None, :], np.ones((count, 1), dtype=np.bool_)
        for factor in factors:
            reached = (reached[:, :, None, :] + factor.step[:, None, :, :]).reshape(count, -1, words)
            happens = factor.probability != ZERO
            possible = (possible[:, :, None] & happens[:, None, :]).reshape(count, -1)
        reached = np.where(possible[:, :, None], reached, keys[:, None, :])  # others are no states
        node = self._states.insert(np.ascontiguousarray(reached.reshape(-1, words)))
        assert len(self._states) == len(self._rows.stopped), (
            "every outcome is a state that the search has found"
        )
        for factor in reversed(factors):
            width = factor.probability.shape[1]
            inner = len(node) // (count * width)
            probability = np.repeat(factor.probability, inner, axis=0)
            node = self.trees.nodes(node.reshape(-1, width), probability)
        return node


def _enabled(group: Group, frame: Frame) -> list[list[_Enabled]]:
    """The enabled commands of every part."""
    parts = []
    for commands in group.parts:
        part, before = [], np.zeros(frame.size, dtype=np.int64)
        for command in commands:
            if (mask := command.enabled(frame)) is not None:
                part.append(_Enabled(command, mask, before))
                before = before + mask
        parts.append(part)
    return parts


def _count(parts: list[list[_Enabled]], size: int) -> OffsetArray:
    """How many choices a group has in every row."""
    result = np.ones(size, dtype=np.int64)
    for part in parts:
        result *= sum((one.mask for one in part), np.zeros(size, dtype=np.int64))
    return result


def _combinations(
    parts: list[list[_Enabled]], frame: Frame, wanted: BoolArray
) -> Iterator[tuple[OffsetArray, OffsetArray, list[Factor]]]:
    """(rows, places among the choices of the group, factors) of one command per part, all enabled."""
    sizes = [sum((one.mask for one in part), np.zeros(frame.size, dtype=np.int64)) for part in parts]
    for commands in product(*parts):
        mask, place = wanted.copy(), np.zeros(frame.size, dtype=np.int64)
        for one, size in zip(commands, sizes, strict=True):
            mask &= one.mask
            place = place * size + one.rank
        if not mask.any():
            continue
        factors = []
        for one in commands:
            found = one.command.alternatives(frame, mask)
            assert found is not None
            width = len(one.command.updates)
            step = found.step.reshape(-1, width, found.step.shape[1])
            factors.append(Factor(step, found.probability.reshape(-1, width)))
        rows = np.flatnonzero(mask)
        yield rows, place[rows], factors
