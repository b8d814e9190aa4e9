"""What stands behind the colon of a DRN transition: doubles, intervals, or exact expressions.

A reader of values turns a text into a small integer once (`code`) and a model out of all of them at
the end (`model`). Which kind of model comes out is decided by the file alone:

| value type | model |
|---|---|
| `double` | `MDP` of the nearest doubles |
| `double-interval` | `IntervalMDP` of the nearest doubles |
| `rational-interval` | `IntervalMDP`, bounds rounded outwards to doubles |
| `rational` | `ParametricMDP` without parameters: exact stays exact |
| `parametric` | `ParametricMDP` |

A file without a value type and without parameters holds doubles, or intervals where it has brackets.
"""

from __future__ import annotations

from typing import Protocol

from tightrope.formats.polynomial_text import parse_polynomial
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import IndexArray

Model = ParametricMDP | IntervalMDP | MDP


class Values(Protocol):
    """Texts that mean something wrong raise ValueError."""

    def code(self, text: str) -> int:
        """The number of this value, the same for the same value."""
        ...

    def reward(self, text: str) -> float:
        """A reward, which is a number in every kind of model."""
        ...

    def model(self, structure: Structure, codes: IndexArray) -> Model: ...


class ExactValues:
    """Polynomials in the parameters; without parameters, rationals."""

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        self.index = {name: k for k, name in enumerate(parameters.names)}
        self.table = ExpressionTable(parameters.names)

    def code(self, text: str) -> int:
        if text.startswith("["):
            raise ValueError("an interval in a model of exact values")
        return self.table.add(parse_polynomial(text, self.index))

    def reward(self, text: str) -> float:
        polynomial = parse_polynomial(text, self.index)
        if not polynomial.is_constant:
            raise ValueError("a reward that depends on the parameters is not supported")
        try:
            return float(polynomial.constant_term)
        except OverflowError as error:
            raise ValueError("too large for a double") from error

    def model(self, structure: Structure, codes: IndexArray) -> Model:
        expressions, expression = self.table.freeze(codes)
        return ParametricMDP(structure, expression, expressions, self.parameters)
