"""The variables of a program as the explorer sees them: numbers, ranges, keys and names."""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import OffsetArray
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.compile import Compiler, Scope
from tightrope.prism.explore.frame import Column, Frame
from tightrope.prism.explore.key_layout import KeyLayout
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Type

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
