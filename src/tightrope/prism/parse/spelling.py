"""Properties written out again, with every pair of parentheses that a reader may miss.

What is written is read back as the same tree; it also says how a text was read, where tools differ
(`F "a" & (G "b")` is `F ("a" & (G "b"))`, as in PRISM).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse import syntax


def spell(expression: syntax.Expression, file: formulas.PropertyFile) -> str:
    """The text of a formula of a file; its operators P and R as they stand there."""
    return _Speller(file).text(expression)


class _Speller:
    def __init__(self, file: formulas.PropertyFile):
        self._file = file

    def text(self, expression: syntax.Expression) -> str:
        match expression:
            case formulas.ValueOperator():
                return self._file.text_of(expression)
            case formulas.Branching(is_universal, path):
                return f"{'A' if is_universal else 'E'} [ {self.text(path)} ]"
            case formulas.Filter(kind, operand, states):
                parts = [kind, self.text(operand), *([] if states is None else [self.text(states)])]
                return f"filter({', '.join(parts)})"
            case formulas.Multi(objectives):
                return f"multi({', '.join(self.text(part) for part in objectives)})"
            case formulas.Quantile(is_least, variable, operand):
                return f"quantile({'min' if is_least else 'max'} {variable}, {self.text(operand)})"
            case formulas.PathFormula(operator, left, right, bound):
                begin = "" if left is None else f"{self.inner(left)} "
                return f"{begin}{operator.value}{self._bound(bound)} {self.inner(right)}"
            case syntax.Literal(value):
                return _number(value)
            case syntax.Name(name):
                return name
            case syntax.Label(name):
                return f'"{name}"'
            case syntax.Unary(operator, operand):
                return f"{operator}{self.inner(operand)}"
            case syntax.Binary(operator, left, right):
                return f"{self._operand(left, operator)} {operator} {self._operand(right, operator)}"
            case syntax.Conditional(condition, then, otherwise):
                return f"{self.inner(condition)} ? {self.inner(then)} : {self.inner(otherwise)}"
            case syntax.Call(function, arguments):
                return f"{function}({', '.join(self.text(argument) for argument in arguments)})"
        raise AssertionError(expression)

    def inner(self, expression: syntax.Expression) -> str:
        """The same as part of something larger."""
        text = self.text(expression)
        return (
            f"({text})"
            if isinstance(expression, formulas.PathFormula | syntax.Binary | syntax.Conditional)
            else text
        )

    def _operand(self, expression: syntax.Expression, operator: str) -> str:
        """Comparisons stand in & and | without parentheses, and chains of & or | too."""
        tight = (operator, "=", "!=", "<", "<=", ">", ">=") if operator in "&|" else ()
        is_clear = isinstance(expression, syntax.Binary) and expression.operator in tight
        return self.text(expression) if is_clear else self.inner(expression)

    def _bound(self, bound: formulas.StepBound | None) -> str:
        if bound is None:
            return ""
        if bound.reward is not None:
            return f'{{"{bound.reward}"}}{self._bound(replace(bound, reward=None))}'
        if bound.lower is not None and bound.upper is not None:
            if bound.lower == bound.upper:
                return f"={self.inner(bound.lower)}"
            return f"[{self.text(bound.lower)},{self.text(bound.upper)}]"
        if bound.upper is not None:
            return f"<{'' if bound.upper_strict else '='}{self.inner(bound.upper)}"
        assert bound.lower is not None
        return f">{'' if bound.lower_strict else '='}{self.inner(bound.lower)}"


def _number(value: int | Fraction | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    short = repr(float(value))
    return short if Fraction(short) == value else f"({value.numerator}/{value.denominator})"
