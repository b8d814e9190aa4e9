"""Expressions from parser actions, shared by models and properties.

The parser calls one method of a builder for every rule of `grammar.lark` it has recognised, with
the parts already built. Long chains of `&`, `|`, `+ -` or `*` become balanced trees: the value
is the same in exact arithmetic, the order of the operands too, and no later pass has to recurse
a thousand levels deep for a guard of a thousand terms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from lark import Token, Transformer

from tightrope.prism.parse import syntax
from tightrope.prism.parse.diagnostics import Complaint, position_of, suggestion

FUNCTIONS = ("min", "max", "floor", "ceil", "round", "pow", "mod", "log")

_RESERVED_TEXT = """
    bool const ctmc double dtmc endinit endmodule endrewards endsystem false formula func global init int
    label max mdp min module nondeterministic probabilistic rewards stochastic system true
"""
RESERVED = frozenset(_RESERVED_TEXT.split())
"""Words that can name nothing. PRISM reserves more (F, C, clock …); like Storm, we let a model use them."""

_LONGEST_LEFT_CHAIN = 16
_MOST_DIGITS = 400
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class ExpressionBuilder(Transformer[Token, object]):
    """One method a rule; the argument holds the rule's parts in their order."""

    def integer(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Literal(int(_check_number(parts[0])), syntax.Type.INT, at(parts[0]))

    def decimal(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Literal(Fraction(str(_check_number(parts[0]))), syntax.Type.DOUBLE, at(parts[0]))

    def truth(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Literal(parts[0] == "true", syntax.Type.BOOL, at(parts[0]))

    def name(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Name(identifier(parts[0]), at(parts[0]))

    def quoted(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Label(parts[0][1:-1], at(parts[0]))

    def call(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        """`min(a, b)`, or `func(min, a, b)` as older files have it."""
        function = cast(Token, parts[0])
        if function not in FUNCTIONS:
            raise Complaint(
                f"unknown function '{function}'", at(function), suggestion(function, FUNCTIONS, "functions")
            )
        return syntax.Call(str(function), tuple(cast(list[syntax.Expression], parts[1:])), at(function))

    def unary(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        operator = cast(Token, parts[0])
        return syntax.Unary(str(operator), cast(syntax.Expression, parts[1]), at(operator))

    def conditional(self, parts: list[syntax.Expression]) -> syntax.Expression:
        return syntax.Conditional(parts[0], parts[1], parts[2], position_of(parts[0]))

    def left_chain(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        return _chain_left(*_chain(parts))

    def junction(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        return _balance(*_chain(parts))

    def sum(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        return _balance(*_chain(parts))

    def product(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        # Regrouping a quotient could divide by what is multiplied with, which may be 0.
        operands, operators = _chain(parts)
        return (_chain_left if "/" in operators else _balance)(operands, operators)

    def lone_expression(self, parts: list[syntax.Expression]) -> syntax.Expression:
        return parts[0]


def at(token: Token) -> syntax.Position:
    """Where a token starts."""
    return syntax.Position(token.line or 1, token.column or 1)


def identifier(token: Token) -> str:
    """The name a token spells, which may not be one of PRISM's own words."""
    if token in RESERVED:
        raise Complaint(
            f"'{token}' is a reserved word of the PRISM language and cannot be a name",
            at(token),
            "choose another name",
        )
    return str(token)


def unquote_identifier(token: Token, kind: str) -> str:
    """The name between quotes, where PRISM wants an identifier."""
    name = token[1:-1]
    if not _IDENTIFIER.fullmatch(name):
        raise Complaint(
            f"{token} cannot name a {kind}: letters, digits and '_' only, no digit first", at(token)
        )
    return name


def _check_number(token: Token) -> Token:
    _, _, exponent = token.lower().partition("e")
    if len(token) > _MOST_DIGITS or abs(int(exponent or 0)) > _MOST_DIGITS:
        raise Complaint(f"this number has more than {_MOST_DIGITS} digits", at(token))
    return token


def _chain(parts: Sequence[Token | syntax.Expression]) -> tuple[list[syntax.Expression], list[str]]:
    """Operands and the operators between them."""
    return cast(list[syntax.Expression], list(parts[::2])), [str(operator) for operator in parts[1::2]]


def _chain_left(operands: Sequence[syntax.Expression], operators: Sequence[str]) -> syntax.Expression:
    result = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        result = syntax.Binary(operator, result, operand, position_of(result))
    return result


def _balance(operands: Sequence[syntax.Expression], operators: Sequence[str]) -> syntax.Expression:
    """a - b + c - d as (a - b) + (c - d): behind a minus, the right half changes its signs."""
    if len(operands) <= _LONGEST_LEFT_CHAIN:
        return _chain_left(operands, operators)
    middle = len(operands) // 2
    joint = operators[middle - 1]
    right_operators = list(operators[middle:])
    if joint == "-":
        right_operators = ["-" if operator == "+" else "+" for operator in right_operators]
    left = _balance(operands[:middle], operators[: middle - 1])
    right = _balance(operands[middle:], right_operators)
    return syntax.Binary(joint, left, right, position_of(left))
