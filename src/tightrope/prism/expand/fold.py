"""Substitution of constants, and folding of everything they decide.

A subtree without variables and parameters becomes a literal, so that the explorer meets small
trees. Where a constant decides a conditional, an `&`, an `|` or an `=>`, the part that is never
evaluated disappears unseen: `N=0 ? 0 : 1/N` is fine for N = 0. A constant part whose evaluation
fails stays as it is: it is an error only if it is ever evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from tightrope.prism.expand.arithmetic import Value, apply, literal
from tightrope.prism.expand.traverse import children, with_children
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Binary, Call, Conditional, Expression, Literal, Name, Type

_NEUTRAL = {"&": True, "|": False}


def fold(expression: Expression, constants: Mapping[str, Expression]) -> Expression:
    """The expression with constants' names replaced and all that is constant computed."""
    if isinstance(expression, Name):
        value = constants.get(expression.name)
        if isinstance(value, Literal):
            return Literal(value.value, value.type, expression.position)
        return expression if value is None else value
    if isinstance(expression, Literal):
        return expression
    if isinstance(expression, Conditional):
        condition = fold(expression.condition, constants)
        if isinstance(condition, Literal):
            return fold(expression.then if condition.value else expression.otherwise, constants)
        branches = fold(expression.then, constants), fold(expression.otherwise, constants)
        return with_children(expression, (condition, *branches))
    if isinstance(expression, Binary) and expression.operator in ("&", "|", "=>"):
        return _fold_logic(expression, constants)
    operands = tuple(fold(child, constants) for child in children(expression))
    if isinstance(expression, Call) and expression.function == "pow" and _is_double(expression, constants):
        operands = tuple(_as_double(operand) for operand in operands)
    return _compute(with_children(expression, operands), operands)


def value_of(expression: Expression) -> Value:
    """The value of an expression without names; complains where it has none (1/0)."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Conditional):
        return value_of(expression.then if value_of(expression.condition) else expression.otherwise)
    if isinstance(expression, Binary) and expression.operator in ("&", "|", "=>"):
        left = bool(value_of(expression.left))
        if _decides(expression.operator, left):
            return expression.operator != "&"
        return value_of(expression.right)
    if isinstance(expression, Name):
        raise Complaint(f"'{expression.name}' is not a constant", expression.position)
    return apply(expression, [value_of(child) for child in children(expression)])


def _fold_logic(expression: Binary, constants: Mapping[str, Expression]) -> Expression:
    left = fold(expression.left, constants)
    operator = expression.operator
    if isinstance(left, Literal):
        if _decides(operator, bool(left.value)):
            return literal(operator != "&", expression.position)
        return fold(expression.right, constants)
    right = fold(expression.right, constants)
    if isinstance(right, Literal) and right.value is _NEUTRAL.get(operator):
        return left
    return with_children(expression, (left, right))


def _decides(operator: str, left: bool) -> bool:
    """Whether the left operand alone gives the result (true, but for `&`)."""
    return left if operator == "|" else not left


def _is_double(expression: Expression, constants: Mapping[str, Expression]) -> bool:
    """The static type of a number, which `b ? 1 : 0.5` keeps when the constant b decides it.

    Only `pow` needs to know: 2 to the power -1 is an error for ints and 1/2 for doubles.
    """
    if isinstance(expression, Literal):
        return expression.type is Type.DOUBLE
    if isinstance(expression, Name):
        value = constants.get(expression.name)
        return value is not None and _is_double(value, {})
    if isinstance(expression, Conditional):
        return _is_double(expression.then, constants) or _is_double(expression.otherwise, constants)
    if isinstance(expression, Binary) and expression.operator == "/":
        return True
    if isinstance(expression, Call) and expression.function in ("floor", "ceil", "round", "mod", "log"):
        return expression.function == "log"
    return any(_is_double(child, constants) for child in children(expression))


def _as_double(operand: Expression) -> Expression:
    if isinstance(operand, Literal) and operand.type is Type.INT:
        return Literal(Fraction(operand.value), Type.DOUBLE, operand.position)
    return operand


def _compute(expression: Expression, operands: tuple[Expression, ...]) -> Expression:
    values = [operand.value for operand in operands if isinstance(operand, Literal)]
    if not operands or len(values) < len(operands):
        return expression
    try:
        return literal(apply(expression, values), getattr(expression, "position", None))
    except Complaint:
        return expression
