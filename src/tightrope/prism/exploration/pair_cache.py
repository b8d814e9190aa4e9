"""An operation on pairs of numbers, each distinct pair computed once.

Merging successors adds two expressions and synchronisation multiplies two; millions of transitions
ask for a few thousand distinct pairs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.prism.exploration.key_index import KeyIndex

_LOW_WORD = 2**32 - 1


class PairCache:
    """`compute(left, right)` gives the results of some distinct pairs."""

    def __init__(self, compute: Callable[[OffsetArray, OffsetArray], IndexArray]):
        self._compute = compute
        self._index = KeyIndex()
        self._result: IndexArray = np.zeros(0, dtype=np.int32)

    def __call__(self, left: IndexArray, right: IndexArray) -> IndexArray:
        keys = (left.astype(np.int64) << 32) | right
        known = len(self._result)
        number = self._index.insert(keys.reshape(-1, 1))
        if len(self._index) > known:
            fresh = self._index.keys[known:, 0]
            self._result = np.concatenate([self._result, self._compute(fresh >> 32, fresh & _LOW_WORD)])
        return self._result[number]
