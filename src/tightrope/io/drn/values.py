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

from tightrope.io.number_text import NumberValues, exact_number, reward_text
from tightrope.io.polynomial_text import parse_function, parse_polynomial
from tightrope.model import door
from tightrope.model.continuous import ParametricCTMC
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.model.rational_function import parts
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import IndexArray

Model = ParametricMDP | IntervalMDP | MDP
Amount = float | Polynomial
"""A reward. A number that no double holds is a polynomial, too, so that it stays exact beside others."""


class Values(Protocol):
    """Texts that mean something wrong raise ValueError."""

    def code(self, text: str) -> int:
        """The number of this value, the same for the same value."""
        ...

    def reward(self, text: str) -> Amount:
        """A reward: a number, or a polynomial where there are parameters."""
        ...

    def model(self, structure: Structure, codes: IndexArray) -> Model | ParametricCTMC: ...


class ExactValues:
    """Polynomials in the parameters and quotients of these; without parameters, rationals."""

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        self.index = {name: k for k, name in enumerate(parameters.names)}
        self.table = ExpressionTable(parameters.names)

    def code(self, text: str) -> int:
        if text.startswith("["):
            raise ValueError("an interval in a model of exact values")
        function = parse_function(text, self.index)
        for side in parts(function):
            _check_coefficients(side)
        return self.table.add(function)

    def reward(self, text: str) -> Amount:
        polynomial = parse_polynomial(text, self.index)
        _check_coefficients(polynomial)
        return polynomial if not polynomial.is_constant else exact_amount(polynomial.constant_term)

    def model(self, structure: Structure, codes: IndexArray) -> Model:
        expressions, expression = self.table.freeze(codes)
        return ParametricMDP(structure, expression, expressions, self.parameters)


class PlainValues(NumberValues):
    """Numbers and intervals; rewards stay exact."""

    def reward(self, text: str) -> Amount:
        return exact_amount(exact_number(reward_text(text)))


def exact_amount(value: Fraction) -> Amount:
    """A reward that is a number: its double, where it is one."""
    number = door.double(value)
    return number if Fraction(number) == value else Polynomial.constant(value)


def _check_coefficients(polynomial: Polynomial) -> None:
    for coefficient in polynomial.terms.values():
        door.double(coefficient)
