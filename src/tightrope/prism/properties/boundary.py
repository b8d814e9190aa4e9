"""Boundary states of a question: those behind which nothing needs to be explored.

The value is fixed (1, 0 or the terminal reward) at target states and at states that an until forbids:

    F b, a U b        b or !a          (an upper bound on the steps changes nothing)
    G b, a W b, a R b  !b;  !a or b;  !b or a     (the complement's target and forbidden states)
    R [ F b ]         b

There is no boundary for other questions, nor for formulas that are no property of a single state or may fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from tightrope.errors import InputError
from tightrope.model.structure import Structure
from tightrope.prism.expand.expressions import check_type, fold
from tightrope.prism.expand.program import Definitions, Program
from tightrope.prism.parse import syntax
from tightrope.prism.parse.property_syntax import (
    PathFormula,
    PathOperator,
    Property,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
)
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.shape import kind_of, without_negation
from tightrope.prism.properties.state_formulas import StateFormulas

Boundary = Callable[[Program], syntax.Expression | None]
"""For a program, where exploration may stop; None where all states count."""


@dataclass(frozen=True)
class BoundaryOf:
    """The boundary of properties: a state is on it if it is on that of every property."""

    files: Sequence[PropertyFile]
    constants: Mapping[str, str]

    def __call__(self, program: Program) -> syntax.Expression | None:
        if program.is_interval and program.type is not syntax.ModelType.DTMC:
            return None  # a property reads differently where no choice is left
        try:
            result = [_boundary(p, file, program, self.constants) for file in self.files for p in file.wanted]
        except (syntax.Complaint, InputError, _NotLocalError):
            return None
        known = [expression for expression in result if expression is not None]
        if not known or len(known) < len(result):
            return None
        return reduce(lambda a, b: syntax.Binary("&", a, b, None), known)


class _NotLocalError(Exception):
    """The formula speaks of more than a state's variables."""


def _boundary(
    property_: Property, file: PropertyFile, program: Program, constants: Mapping[str, str]
) -> syntax.Expression | None:
    operator = property_.formula
    if kind_of(operator, file) is not QueryKind.PLAIN:
        return None
    assert isinstance(operator, ValueOperator)
    formulas = StateFormulas(file, _no_states(program), Definitions.of(program), constants)
    writer = _BoundaryWriter(file, program, formulas)
    path = operator.path if isinstance(operator.path, RewardFormula) else without_negation(operator.path)[0]
    if isinstance(path, RewardFormula):
        return writer.write(path.target) if path.operator is RewardOperator.REACH and path.target else None
    if not isinstance(path, PathFormula) or path.operator is PathOperator.NEXT:
        return None
    if path.bound is not None and path.bound.lower is not None:
        return None
    right = writer.write(path.right)
    if path.operator is PathOperator.EVENTUALLY:
        return right
    if path.operator is PathOperator.GLOBALLY:
        return syntax.Unary("!", right, None)
    assert path.left is not None
    left = writer.write(path.left)
    if path.operator is PathOperator.RELEASE:
        return syntax.Binary("|", left, syntax.Unary("!", right, None), None)
    return syntax.Binary(
        "|", right, syntax.Unary("!", left, None), None
    )  # until, and weak until: the same states


@dataclass(frozen=True, eq=False)
class _BoundaryWriter:
    """Formulas of a property file written out over the variables of a program."""

    file: PropertyFile
    program: Program
    formulas: StateFormulas

    def write(self, expression: syntax.Expression) -> syntax.Expression:
        written = self._without_labels(self.formulas.inlined(expression), ())
        constants = self.formulas.constants
        variables = {variable.name: variable.type for variable in self.program.variables}
        check_type(written, {**constants.types, **variables}, syntax.Type.BOOL, "a state formula")
        return fold(written, constants.values)

    def _without_labels(self, expression: syntax.Expression, opened: tuple[str, ...]) -> syntax.Expression:
        if isinstance(expression, syntax.Label):
            name = expression.name
            for label in self.file.labels:
                if label.name == name and name not in opened:
                    return self._without_labels(self.formulas.inlined(label.expression), (*opened, name))
            for label in self.program.labels:
                if label.name == name:
                    return label.expression
            raise _NotLocalError
        parts = tuple(self._without_labels(child, opened) for child in syntax.children(expression))
        return syntax.with_children(expression, parts)


def _no_states(program: Program) -> Structure:
    """The names of a program on a structure of one state, to read formulas by."""
    return Structure(
        np.array([0, 1]),
        np.array([0, 1]),
        np.array([0]),
        labels={label.name: np.zeros(1, np.bool_) for label in program.labels},
        valuations={
            variable.name: np.zeros(1, np.bool_ if variable.type is syntax.Type.BOOL else np.int32)
            for variable in program.variables
        },
    )
