"""State formulas of properties as sets of states.

A state formula is an expression over the model's variables, constants and formulas and over labels: those of
the property file, those of the model, and "init" and "deadlock", which every model has. Labels become boolean
columns beside the variables, then the whole formula is evaluated on all states at once. Operators inside (P,
R, A, E, filter) become columns too, where who asks can evaluate them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.expand import expressions
from tightrope.prism.expand.constants import resolve_constants
from tightrope.prism.expand.model import BUILT_IN_LABELS, check_labels
from tightrope.prism.expand.program import Definitions
from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse import syntax
from tightrope.prism.properties.shape import STATE_OPERATORS, has_operators, is_path


class StateFormulas:
    """Evaluates the expressions of one property file on one structure."""

    def __init__(
        self,
        file: formulas.PropertyFile,
        structure: Structure,
        definitions: Definitions,
        given: Mapping[str, str],
        nested: Callable[[syntax.Expression], BoolArray] | None = None,
    ):
        self._nested = nested
        self._clocks = definitions.clocks
        self._structure = structure
        self._variables = {
            name: syntax.Type.BOOL if column.dtype == np.bool_ else syntax.Type.INT
            for name, column in structure.valuations.items()
        }
        self._check_declarations(file, definitions)
        self._labels = {label.name: label for label in file.labels}
        self._open_labels: list[str] = []
        self._formulas = expressions.Inliner(definitions.formulas, "formulas")
        outer = {name: expressions.literal(value, None) for name, value in definitions.constants.items()}
        declared = {constant.name for constant in file.constants}
        self.constants = resolve_constants(
            file.constants,
            {name: text for name, text in given.items() if name in declared},
            self._formulas,
            self._variables,
            outer,
            parameters_allowed=False,
            used={part.name for part in syntax.parts_of(file) if isinstance(part, syntax.Name)},
        )

    def inlined(self, expression: syntax.Expression) -> syntax.Expression:
        """The expression with the model's formulas written out; no formula may speak of a clock."""
        written_out = self._formulas.inline(expression)
        for part in syntax.parts_of(written_out):
            if isinstance(part, syntax.Name) and part.name in self._clocks:
                raise syntax.Complaint(
                    f"'{part.name}' is a clock, which counts only as far as the model compares it",
                    part.position,
                    "compare it in a guard of its module that sets a variable, and ask for that variable",
                )
        return written_out

    def states(self, expression: syntax.Expression) -> BoolArray:
        """The states in which a formula holds."""
        written_out = self.inlined(expression)
        if isinstance(written_out, syntax.Label):
            return self.label(written_out.name, written_out.position)
        folded, columns = self._folded(written_out, syntax.Type.BOOL, "a state formula")
        if isinstance(folded, syntax.Literal):
            return np.full(self._structure.states, bool(folded.value), dtype=np.bool_)
        members: BoolArray = self._evaluate(folded, columns)
        return members

    def is_number(self, expression: syntax.Expression) -> bool:
        """Whether an expression without operators is a number in every state, and not true or false."""
        columns: dict[str, BoolArray] = {}
        written_out = self._labels_as_columns(self.inlined(expression), columns)
        return expressions.type_of(written_out, self._scope(written_out, columns)) is not syntax.Type.BOOL

    def numbers(self, expression: syntax.Expression) -> tuple[FloatArray, FloatArray]:
        """The doubles around the exact value in every state; both are the value where it is a double."""
        folded, columns = self._folded(self.inlined(expression), syntax.Type.DOUBLE, "an expression")
        if isinstance(folded, syntax.Literal):
            exact = RationalArray.constant(Fraction(folded.value), self._structure.states)
        else:
            values = self._evaluate(folded, columns)
            exact = values if isinstance(values, RationalArray) else RationalArray.from_integers(values)
        return exact.to_float_down() + 0.0, exact.to_float_up() + 0.0  # no zero has a sign

    def number(self, expression: syntax.Expression, type_: syntax.Type, what: str) -> Fraction:
        """The value of a threshold or a step bound."""
        if has_operators(expression) or is_path(expression):
            raise syntax.Complaint(f"{what} must be constant", syntax.position_of(expression))
        written_out = self._formulas.inline(expression)
        for name in syntax.names(written_out):
            if name.name in self._variables:
                raise syntax.Complaint(
                    f"{what} must be constant, but depends on variable '{name.name}'", name.position
                )
        expressions.check_type(written_out, self.constants.types, type_, what)
        return Fraction(expressions.value_of(expressions.fold(written_out, self.constants.values)))

    def label(self, name: str, position: syntax.Position | None) -> BoolArray:
        """The states with a label."""
        if name in self._labels:
            return self._find_label(name, position)
        members = self._structure.labels.get(name)
        if members is not None:
            return members
        if name in BUILT_IN_LABELS:
            built_in = np.zeros(self._structure.states, dtype=np.bool_)
            built_in[self._structure.initial] = name == "init"
            return built_in
        known = {*self._labels, *self._structure.labels, *BUILT_IN_LABELS}
        raise syntax.Complaint(
            f'there is no label "{name}"', position, syntax.suggestion(name, known, "labels")
        )

    def _find_label(self, name: str, position: syntax.Position | None) -> BoolArray:
        if name in self._open_labels:
            circle = " → ".join([*self._open_labels, name])
            raise syntax.Complaint(f"labels refer to each other in a circle: {circle}", position)
        self._open_labels.append(name)
        members = self.states(self._labels[name].expression)
        self._open_labels.pop()
        return members

    def _labels_as_columns(
        self, expression: syntax.Expression, columns: dict[str, BoolArray]
    ) -> syntax.Expression:
        """The formula with every label replaced by the (otherwise impossible) name of a column."""
        if isinstance(expression, syntax.Label):
            column = f'"{expression.name}"'
            columns[column] = self.label(expression.name, expression.position)
            return syntax.Name(column, expression.position)
        if isinstance(expression, formulas.PathFormula):
            raise syntax.Complaint(
                f"{expression.operator.value} cannot stand here: a formula about states is required",
                expression.position,
                "it is about paths, and stands inside P=? [ … ], A [ … ] or E [ … ]",
            )
        if isinstance(expression, STATE_OPERATORS):
            if self._nested is None:
                raise syntax.Complaint(
                    f"{_operator_name(expression)} inside another formula is not supported here",
                    syntax.position_of(expression),
                    "`check` and tr.solve take it, of models whose states are seen",
                )
            column = f'"operator {len(columns)}"'
            columns[column] = self._nested(expression)
            return syntax.Name(column, syntax.position_of(expression))
        return syntax.with_children(
            expression,
            tuple(self._labels_as_columns(child, columns) for child in syntax.children(expression)),
        )

    def _folded(
        self, written_out: syntax.Expression, type_: syntax.Type, what: str
    ) -> tuple[syntax.Expression, dict[str, BoolArray]]:
        """What is left of an expression of this type, and the columns that its labels are."""
        columns: dict[str, BoolArray] = {}
        without_labels = self._labels_as_columns(written_out, columns)
        expressions.check_type(without_labels, self._scope(without_labels, columns), type_, what)
        return expressions.fold(without_labels, self.constants.values), columns

    def _scope(
        self, expression: syntax.Expression, columns: Mapping[str, BoolArray]
    ) -> dict[str, syntax.Type]:
        scope = {**self.constants.types, **self._variables, **dict.fromkeys(columns, syntax.Type.BOOL)}
        self._suggest_quotes(expression, scope)
        return scope

    def _evaluate(self, expression: syntax.Expression, columns: Mapping[str, BoolArray]) -> Any:
        from tightrope.prism.explore.compile import evaluate

        states = self._structure.states
        used = {name.name for name in syntax.names(expression)}
        valuations = {
            name: column if column.dtype == np.bool_ else column.astype(np.int64)
            for name, column in self._structure.valuations.items()
            if name in used
        }
        return evaluate(expression, {**valuations, **columns}, states)

    def _suggest_quotes(self, expression: syntax.Expression, scope: Mapping[str, syntax.Type]) -> None:
        for name in syntax.names(expression):
            if name.name not in scope and (name.name in self._labels or name.name in self._structure.labels):
                raise syntax.Complaint(
                    f"'{name.name}' is not declared", name.position, f'a label is quoted: "{name.name}"'
                )

    def _check_declarations(self, file: formulas.PropertyFile, definitions: Definitions) -> None:
        selected = {*self._variables, *definitions.constants, *definitions.formulas}
        for constant in file.constants:
            if constant.name in selected:
                raise syntax.Complaint(f"'{constant.name}' is declared twice", constant.position)
            selected.add(constant.name)
        check_labels(file.labels)
        for label in file.labels:
            if label.name in self._structure.labels:
                raise syntax.Complaint(f'the model has a label "{label.name}" already', label.position)


def _operator_name(expression: syntax.Expression) -> str:
    if isinstance(expression, formulas.ValueOperator):
        return "R" if expression.is_reward else "P"
    if isinstance(expression, formulas.Branching):
        return "A" if expression.is_universal else "E"
    return "quantile" if isinstance(expression, formulas.Quantile) else "filter"
