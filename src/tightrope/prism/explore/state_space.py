"""The variables of a program as the explorer sees them: numbers, ranges, keys and names.

Values of variables packed into int64 words, by mixed radix.

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
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.compile import Compiler, Scope
from tightrope.prism.explore.frame import Column, Frame
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Type

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


_INT32 = 2**31


class StateSpace:
    """All states that the ranges allow; the explorer finds those that can be reached."""

    def __init__(self, program: Program):
        self.variables = program.variables
        self._initial_values = program.initial_values
        for variable in self.variables:
            if variable.low < -_INT32 or variable.high >= _INT32:
                raise Complaint(
                    f"the range {variable.low}..{variable.high} of '{variable.name}' exceeds 32-bit integers",
                    variable.position,
                )
        self.ranges = [(variable.low, variable.high) for variable in self.variables]
        self.number = {variable.name: i for i, variable in enumerate(self.variables)}
        self.is_boolean = [variable.type is Type.BOOL for variable in self.variables]
        self.layout = KeyLayout(self.ranges)
        self.scope = Scope(
            self.number,
            frozenset(v.name for v in self.variables if v.type is Type.BOOL),
            {name: i for i, name in enumerate(program.parameters)},
        )

    def compiler(self, ranges: list[tuple[int, int]] | None = None) -> Compiler:
        """A compiler for rows with these ranges, by default all states."""
        return Compiler(self.scope, self.ranges if ranges is None else ranges)

    @property
    def initial(self) -> OffsetArray:
        """The keys of the initial states, one row each."""
        values = np.array(self._initial_values, dtype=np.int64)
        return self.layout.encode(list(values.T), len(values))

    def frame(self, keys: OffsetArray) -> Frame:
        """The states with these keys, ready for evaluation."""
        values = self.layout.decode(keys)
        columns: list[Column | None] = [
            values[i] != 0 if is_boolean else values[i] for i, is_boolean in enumerate(self.is_boolean)
        ]
        return Frame(columns, len(keys), lambda row: self.describe(values[:, row]))

    def describe(self, values: OffsetArray) -> str:
        """`(x=1,b=true)`"""
        shown = (
            f"{variable.name}={str(bool(value)).lower() if variable.type is Type.BOOL else int(value)}"
            for variable, value in zip(self.variables, values, strict=True)
        )
        return f"({','.join(shown)})"
