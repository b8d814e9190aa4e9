"""Values of variables packed into int64 words, by mixed radix.

A variable with values low..high takes one digit of radix high−low+1. Digits fill a word as long as
the product of the radices stays within 2^62, then the next word starts; models whose states need a
second word are rare. Assigning a variable changes the key by (new − old)·stride in one word, so the
key of a successor is the key of its source plus a sum of such steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.prism.explore.frame import Column

_WORD = 2**62


@kernel
def _decode(
    keys: OffsetArray,
    word: OffsetArray,
    stride: OffsetArray,
    radix: OffsetArray,
    low: OffsetArray,
    out: OffsetArray,
) -> None:
    for variable in range(len(word)):
        at, divisor, modulus, lowest = word[variable], stride[variable], radix[variable], low[variable]
        for row in range(len(keys)):
            out[variable, row] = (keys[row, at] // divisor) % modulus + lowest


class KeyLayout:
    """Where each of several variables with known ranges sits in a key of `words` words."""

    def __init__(self, ranges: Sequence[tuple[int, int]]):
        self.word: OffsetArray = np.zeros(len(ranges), dtype=np.int64)
        self.stride: OffsetArray = np.ones(len(ranges), dtype=np.int64)
        self.low: OffsetArray = np.array([low for low, _ in ranges], dtype=np.int64)
        self.radix: OffsetArray = np.array([high - low + 1 for low, high in ranges], dtype=np.int64)
        used, word = 1, 0
        for variable, radix in enumerate(self.radix.tolist()):
            if used * radix > _WORD:
                used, word = 1, word + 1
            self.word[variable] = word
            self.stride[variable] = used
            used *= radix
        self.words = word + 1
        self.size = math.prod(self.radix.tolist())

    def encode(self, columns: Sequence[Column], size: int) -> OffsetArray:
        """The keys of `size` rows, one column per variable."""
        keys: OffsetArray = np.zeros((size, self.words), dtype=np.int64)
        for variable, column in enumerate(columns):
            digit = column - self.low[variable] if self.low[variable] else column
            keys[:, self.word[variable]] += digit * self.stride[variable]
        return keys

    def decode(self, keys: OffsetArray) -> OffsetArray:
        """The values behind the keys: one row per variable."""
        out: OffsetArray = np.empty((len(self.low), len(keys)), dtype=np.int64)
        _decode(keys, self.word, self.stride, self.radix, self.low, out)
        return out

    def all_keys(self) -> OffsetArray:
        """Every key there is, for layouts of one word."""
        return np.arange(self.size, dtype=np.int64).reshape(-1, 1)
