"""Expressions as text, for comparison in tests."""

from __future__ import annotations

from tightrope.errors import InputError
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.parse.syntax import (
    Binary,
    Call,
    Conditional,
    Expression,
    Label,
    Literal,
    Name,
    Unary,
    children,
)


def parse_expression(text: str, file: str) -> Expression:
    """A lone expression, labels allowed: the only property of its text."""
    parsed = parse_properties(text, file).properties
    if len(parsed) != 1 or not parsed[0].text:
        raise InputError("one expression is required here")
    return parsed[0].formula


def shown(expression: Expression) -> str:
    """The expression with every operation in parentheses."""
    if isinstance(expression, Literal):
        return str(expression.value).lower()
    if isinstance(expression, Name):
        return expression.name
    if isinstance(expression, Label):
        return f'"{expression.name}"'
    parts = [shown(child) for child in children(expression)]
    if isinstance(expression, Unary):
        return f"({expression.operator}{parts[0]})"
    if isinstance(expression, Binary):
        return f"({parts[0]} {expression.operator} {parts[1]})"
    if isinstance(expression, Conditional):
        return f"({parts[0]} ? {parts[1]} : {parts[2]})"
    assert isinstance(expression, Call)
    return f"{expression.function}({', '.join(parts)})"
