"""The probabilities of a command, remembered for every combination of variables they depend on.

A command's probabilities depend on few variables, so they are computed once for each distinct
combination of their values and looked up after that: exact arithmetic costs nothing a state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.prism.explore.deferred import Growing
from tightrope.prism.explore.frame import Column, Frame
from tightrope.prism.explore.key_index import KeyIndex
from tightrope.prism.explore.probabilities import ZERO, Distribution
from tightrope.prism.explore.state_space import KeyLayout, StateSpace
from tightrope.prism.parse.diagnostics import Complaint

_PATIENCE = 6
_FEW, _SHARE = 1024, 16
"""After `_PATIENCE` rounds of new combinations, those still missing are evaluated together if all
in all there are `_FEW`, or `_SHARE` times as many as are known: a round costs more than a combination."""


class DistributionMemory:
    """The probabilities of a command, for every combination of the variables they depend on.

    `has_zero[u]` says that update u had probability 0 in some combination met so far.
    """

    def __init__(
        self, distribution: Distribution, ranges: Sequence[tuple[int, int]], space: StateSpace, updates: int
    ):
        self._distribution = distribution
        self.variables = sorted(distribution.variables)
        self.layout = KeyLayout([ranges[v] for v in self.variables])
        self._index = KeyIndex(self.layout.words)
        self._space = space
        self._known = Growing(np.int32, updates)
        self._rounds = 0
        self._looked_ahead = False
        self.has_zero = np.zeros(updates, dtype=np.bool_)

    @property
    def known(self) -> IndexArray:
        """The numbers of the combinations met so far, a row each."""
        return self._known.values

    @property
    def keys_known(self) -> OffsetArray:
        """The keys of these combinations."""
        if not self.variables:
            return np.zeros((len(self._known), 1), dtype=np.int64)
        return self._index.keys[: len(self._known)]

    def numbers(self, frame: Frame) -> IndexArray:
        """The number of every update's probability (columns) in every row."""
        if not self.variables:
            if not len(self._known):
                self._remember(self._distribution.evaluate(frame.select(np.zeros(1, dtype=np.int64))))
            return np.repeat(self._known.values, frame.size, axis=0)
        keys = self.layout.encode([frame.column(v) for v in self.variables], frame.size)
        combination = self._index.insert(keys)
        if len(self._index) > len(self._known):
            self._learn(frame, combination)
        numbers: IndexArray = self._known.values[combination]
        return numbers

    def _learn(self, frame: Frame, combination: IndexArray) -> None:
        """Evaluate the new combinations, and after a few such rounds all that are left, if few are."""
        known = len(self._known)

        def describe(row: int) -> str:
            return frame.describe(int(np.flatnonzero(combination == known + row)[0]))

        self._evaluate(describe)
        self._rounds += 1
        few = self.layout.size <= max(_FEW, _SHARE * len(self._known))
        if self._rounds >= _PATIENCE and few and not self._looked_ahead:
            self._look_ahead()

    def _look_ahead(self) -> None:
        self._looked_ahead = True
        if self.layout.words == 1:
            met = self._index.keys.copy()
            self._index.insert(self.layout.all_keys())
            try:
                self._evaluate(lambda row: "that is never reached")
            except Complaint:
                # Some combination makes no sense; it need not be reachable, so wait and see.
                self._index = KeyIndex(self.layout.words)
                self._index.insert(met)

    def _evaluate(self, describe: Callable[[int], str]) -> None:
        values = self.layout.decode(self._index.keys[len(self._known) :])
        columns: list[Column | None] = [None] * len(self._space.variables)
        for variable, column in zip(self.variables, values, strict=True):
            columns[variable] = column != 0 if self._space.is_boolean[variable] else column
        if values.shape[1]:
            self._remember(self._distribution.evaluate(Frame(columns, values.shape[1], describe)))

    def _remember(self, numbers: IndexArray) -> None:
        self._known.append(numbers)
        self.has_zero |= (numbers == ZERO).any(axis=0)
