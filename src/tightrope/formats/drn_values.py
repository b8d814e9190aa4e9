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

from fractions import Fraction
from typing import Protocol

import numpy as np

from tightrope.formats.number_text import exact_number, nearest_double
from tightrope.formats.polynomial_text import parse_polynomial
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import IndexArray
from tightrope.numerics.rationals import RationalArray

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


class NumberValues:
    """Doubles and intervals; `value_type` None lets the values decide."""

    def __init__(self, value_type: str | None):
        self.value_type = value_type
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.has_intervals = value_type in ("double-interval", "rational-interval")

    def code(self, text: str) -> int:
        if text.startswith("["):
            if self.value_type not in (None, "double-interval", "rational-interval"):
                raise ValueError(f"an interval in a model of value type {self.value_type}")
            low, high = split_interval(text)
            self.has_intervals = True
        else:
            low = high = text
        if self.value_type == "rational-interval":
            lower, upper = _rounded_outwards(exact_number(low), exact_number(high))
        else:
            lower, upper = nearest_double(low), nearest_double(high)
        if text.startswith("[") and lower <= 1:
            upper = min(upper, 1.0)  # Storm adds up intervals of merged successors beyond 1
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def reward(self, text: str) -> float:
        if not text.startswith("["):
            return nearest_double(text)
        low, high = split_interval(text)
        if exact_number(low) != exact_number(high):
            raise ValueError("a reward known only up to an interval is not supported")
        return nearest_double(low)

    def model(self, structure: Structure, codes: IndexArray) -> Model:
        lower = np.array(self.lower, dtype=np.float64)[codes]
        if not self.has_intervals:
            return MDP(structure, lower)
        return IntervalMDP(structure, lower, np.array(self.upper, dtype=np.float64)[codes])


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


def split_interval(text: str) -> tuple[str, str]:
    """The two ends of `[0.1, 0.3]`, as texts."""
    inner = text.strip()
    low, comma, high = inner.removeprefix("[").removesuffix("]").partition(",")
    if not inner.startswith("[") or not inner.endswith("]") or not comma:
        raise ValueError("an interval such as [0.1, 0.3] expected")
    return low, high


def _rounded_outwards(low: Fraction, high: Fraction) -> tuple[float, float]:
    try:
        return (
            float(RationalArray.from_fractions([low]).to_float_down()[0]),
            float(RationalArray.from_fractions([high]).to_float_up()[0]),
        )
    except OverflowError as error:
        raise ValueError("too large for a double") from error
