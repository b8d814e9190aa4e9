"""Interval rows one after the other, as trees whose equal parts are kept once.

A node is a row: the successors of one factor's outcomes, each with the number of its interval. Successors are
states of the model, or other nodes. Nodes are built from the leaves up, so that equal ones are the same:
outcomes of probability 0 are dropped, those that lead to the same successor become one with their intervals
added (what the sum of some entries of the distributions within intervals can be is the sum of the intervals,
exactly), and a row with one successor left is that successor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.prism.explore.assemble import Pieces, Rows
from tightrope.prism.explore.key_index import KeyIndex
from tightrope.prism.explore.probabilities import ONE, ZERO, Probabilities

_MOST = 2**31 - 2


@dataclass(frozen=True, eq=False)
class TreeRows:
    """The rows of a model's choices, then one row for each state in the middle of a step, in layers: see
    `tightrope.model.mdp`."""

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
        self._choice, self._root = Pieces(np.int64), Pieces(np.int32)

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

    def finish(self, rows: Rows) -> TreeRows:
        """The rows of all choices of the model, of which some have trees."""
        choice, root = self._choice.joined(), self._root.joined()
        start, successor, probability = self._table()
        kept = self._inner_nodes(root, start, successor)
        order = np.flatnonzero(kept)[np.argsort(self._height[kept], kind="stable")]
        state = np.full(len(kept), -1, dtype=np.int64)
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
        taken = np.arange(new_start[-1]) + np.repeat(every_start[source] - new_start[:-1], length)
        layers = np.bincount(self._height[order], minlength=1)[1:]
        return TreeRows(
            new_start,
            renamed[every_successor[taken]].astype(np.int32),
            every_number[taken].astype(np.int32),
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
