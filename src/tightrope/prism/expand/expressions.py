"""Expressions of the PRISM language: their parts, values, types, folding, and named ones written out."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter

from tightrope.prism.parse import syntax
from tightrope.prism.parse.syntax import (
    Binary,
    Call,
    Checked,
    Complaint,
    Conditional,
    Expression,
    Literal,
    Name,
    Position,
    Type,
    Unary,
    children,
    names,
    position_of,
    suggestion,
    with_children,
)


def rename(expression: Expression, renaming: Mapping[str, str]) -> Expression:
    """The expression with names replaced."""
    if isinstance(expression, Name):
        new = renaming.get(expression.name)
        return expression if new is None else Name(new, expression.position)
    return with_children(expression, tuple(rename(child, renaming) for child in children(expression)))


# The operators and functions of the PRISM language on single exact values.
#
# Integers are integers, doubles are exact rationals: `0.1 + 0.2 = 0.3` holds. PRISM's rules where
# they are easily missed:
#
# * `/` is real division whatever the types, `mod` wants a positive divisor and is never negative,
# * `round` rounds halves up, `pow` of two ints is an int and wants a natural exponent,
# * `log(x, b)` and `pow` with a fractional exponent are exact where the result is rational and that
#   is easy to see (`log(8,2)`, `pow(4,0.5)`), else the nearest double of it.

Value = int | Fraction | bool
Number = int | Fraction

_MOST_BITS = 20_000
"""Numbers beyond this size are a mistake in the model, and exact arithmetic would stall on them."""

COMPARISONS: dict[str, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
LOGIC: dict[str, Callable[[bool, bool], bool]] = {
    "&": lambda left, right: left and right,
    "|": lambda left, right: left or right,
    "=>": lambda left, right: not left or right,
    "<=>": lambda left, right: left == right,
}


def literal(value: Value, position: Position | None) -> Literal:
    """A literal of the value's own type: bool, int, or Fraction for double."""
    if isinstance(value, bool):
        return Literal(value, Type.BOOL, position)
    return Literal(value, Type.INT if isinstance(value, int) else Type.DOUBLE, position)


def apply(node: Expression, operands: Sequence[Value]) -> Value:
    """The value of a well-typed unary, binary or call node for the values of its operands."""
    if isinstance(node, Unary):
        (operand,) = operands
        return not operand if node.operator == "!" else -operand
    if isinstance(node, Binary):
        return _check(_binary(node, operands[0], operands[1]), node.position)
    assert isinstance(node, Call)
    return _check(_call(node, operands), node.position)


def _binary(node: Binary, left: Value, right: Value) -> Value:
    symbol = node.operator
    if symbol in LOGIC:
        return LOGIC[symbol](bool(left), bool(right))
    if symbol in COMPARISONS:
        return bool(COMPARISONS[symbol](left, right))
    if symbol == "+":
        return left + right
    if symbol == "-":
        return left - right
    if symbol == "*":
        return left * right
    if right == 0:
        raise Complaint("division by zero", node.position)
    return Fraction(left) / Fraction(right)


def _call(node: Call, operands: Sequence[Value]) -> Value:
    function = node.function
    if function in ("min", "max"):
        best = min(operands) if function == "min" else max(operands)
        return Fraction(best) if any(isinstance(operand, Fraction) for operand in operands) else best
    if function in ("floor", "ceil"):
        return math.floor(operands[0]) if function == "floor" else math.ceil(operands[0])
    if function == "round":
        return math.floor(Fraction(operands[0]) + Fraction(1, 2))
    if function == "mod":
        divisor = int(operands[1])
        if divisor <= 0:
            raise Complaint(f"mod needs a positive divisor, not {divisor}", node.position)
        return int(operands[0]) % divisor
    if function == "pow":
        return _power(operands[0], operands[1], node.position)
    return _logarithm(Fraction(operands[0]), Fraction(operands[1]), node.position)


def _power(base: Number, exponent: Number, position: Position | None) -> Number:
    if isinstance(base, int) and isinstance(exponent, int):
        if exponent < 0:
            raise Complaint(
                f"pow of two ints needs a natural exponent, not {exponent}",
                position,
                "write one of them as a double, such as 2.0, for a fraction as the result",
            )
        _check_power(base, 1, exponent, position)
        return int(base**exponent)
    base, exponent = Fraction(base), Fraction(exponent)
    if base == 0 and exponent < 0:
        raise Complaint("division by zero: a negative power of 0", position)
    if exponent.denominator == 1:
        _check_power(base.numerator, base.denominator, abs(int(exponent)), position)
        return Fraction(base ** int(exponent))
    if base < 0:
        raise Complaint(f"pow({base}, {exponent}) is not a real number", position)
    return _exact_root(base, exponent) or _from_double(lambda: float(base) ** float(exponent), position)


def _exact_root(base: Fraction, exponent: Fraction) -> Fraction | None:
    """base^exponent where a square root answers it exactly."""
    if exponent.denominator != 2 or abs(exponent) > 64:
        return None
    root = Fraction(math.isqrt(base.numerator), math.isqrt(base.denominator))
    return Fraction(root**exponent.numerator) if root * root == base and root else None


def _logarithm(argument: Fraction, base: Fraction, position: Position | None) -> Fraction:
    if argument <= 0:
        raise Complaint(f"log of {argument}: only positive numbers have one", position)
    if base <= 0 or base == 1:
        raise Complaint(f"log to base {base}: the base is positive and not 1", position)
    quotient = _from_double(lambda: _float_log(argument) / _float_log(base), position)
    near = round(quotient)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) * abs(near)
    return Fraction(near) if bits <= _MOST_BITS and base**near == argument else quotient


def _float_log(value: Fraction) -> float:
    """By parts, so that nothing overflows however large they are."""
    return math.log(value.numerator) - math.log(value.denominator)


def _from_double(compute: Callable[[], float], position: Position | None) -> Fraction:
    try:
        return Fraction(compute())
    except (OverflowError, ZeroDivisionError, ValueError):
        raise Complaint("the result does not fit into a double", position) from None


def _check_power(numerator: int, denominator: int, exponent: int, position: Position | None) -> None:
    grows = abs(numerator) > 1 or denominator > 1
    if grows and max(numerator.bit_length(), denominator.bit_length()) * exponent > _MOST_BITS:
        raise Complaint(f"this power has more than {_MOST_BITS} bits", position)


def _check(value: Value, position: Position | None) -> Value:
    size = (
        max(value.numerator.bit_length(), value.denominator.bit_length())
        if isinstance(value, Fraction)
        else value.bit_length()
    )
    if size > _MOST_BITS:
        raise Complaint(f"this number has more than {_MOST_BITS} bits", position)
    return value


# Static types, by PRISM's rules.
#
# An int may stand where a double is expected, never the reverse; `/` and `log` give doubles;
# `floor`, `ceil`, `round` and `mod` ints; `+ - *`, `min`, `max` and `pow` ints if all operands are.
# `=` and `!=` compare two numbers or two bools.

Scope = Mapping[str, syntax.Type]

_ARITHMETIC = frozenset("+-*/")
_EQUALITY = frozenset(["=", "!="])
_ARITY = {"floor": 1, "ceil": 1, "round": 1, "pow": 2, "mod": 2, "log": 2}


def type_of(expression: syntax.Expression, scope: Scope) -> syntax.Type:
    """The type of an expression over the names in scope; complains about unknown names and misfits."""
    if isinstance(expression, syntax.Literal):
        return expression.type
    if isinstance(expression, syntax.Name):
        known = scope.get(expression.name)
        if known is None:
            raise Complaint(
                f"'{expression.name}' is not declared",
                expression.position,
                suggestion(expression.name, scope),
            )
        return known
    if isinstance(expression, syntax.Label):
        return syntax.Type.BOOL
    if isinstance(expression, syntax.Unary):
        operand = type_of(expression.operand, scope)
        if expression.operator == "!":
            _need_bool(operand, expression.operand, "!")
        else:
            _need_number(operand, expression.operand, "-")
        return operand
    if isinstance(expression, syntax.Binary):
        return _type_of_binary(expression, scope)
    if isinstance(expression, syntax.Conditional):
        _need_bool(type_of(expression.condition, scope), expression.condition, "?")
        then, otherwise = type_of(expression.then, scope), type_of(expression.otherwise, scope)
        if (then is syntax.Type.BOOL) != (otherwise is syntax.Type.BOOL):
            raise Complaint(
                f"the branches of ? : are of types {then.value} and {otherwise.value}; both must be numbers"
                " or both bools",
                position_of(expression.otherwise),
            )
        return _common(then, otherwise)
    if isinstance(expression, Checked):
        type_of(expression.condition, scope)
        check_type(expression.value, scope, syntax.Type.INT, "a number that is checked")
        return syntax.Type.INT
    if not isinstance(expression, syntax.Call):
        raise Complaint(
            "operators of properties (P, R, A, E, filter, F, G, …) cannot stand here", position_of(expression)
        )
    return _type_of_call(expression, scope)


def check_type(expression: syntax.Expression, scope: Scope, expected: syntax.Type, what: str) -> None:
    """Complain unless an expression may stand where `what` wants a value of type `expected`."""
    actual = type_of(expression, scope)
    if actual is expected or (expected is syntax.Type.DOUBLE and actual is syntax.Type.INT):
        return
    hint = None
    wanted = "a number" if expected is syntax.Type.DOUBLE else _article(expected)
    if expected is syntax.Type.INT and actual is syntax.Type.DOUBLE:
        hint = "floor(…), ceil(…) and round(…) turn a double into an int"
    raise Complaint(f"{what} must be {wanted}, but this is {_article(actual)}", position_of(expression), hint)


def _article(type_: syntax.Type) -> str:
    return {syntax.Type.INT: "an int", syntax.Type.DOUBLE: "a double", syntax.Type.BOOL: "a bool"}[type_]


def _type_of_binary(expression: syntax.Binary, scope: Scope) -> syntax.Type:
    left, right = type_of(expression.left, scope), type_of(expression.right, scope)
    operator = expression.operator
    if operator in LOGIC:
        _need_bool(left, expression.left, operator)
        _need_bool(right, expression.right, operator)
        return syntax.Type.BOOL
    if operator in _EQUALITY:
        if (left is syntax.Type.BOOL) != (right is syntax.Type.BOOL):
            raise Complaint(
                f"'{operator}' compares {_article(left)} with {_article(right)}", position_of(expression)
            )
        return syntax.Type.BOOL
    _need_number(left, expression.left, operator)
    _need_number(right, expression.right, operator)
    if operator == "/":
        return syntax.Type.DOUBLE
    return _common(left, right) if operator in _ARITHMETIC else syntax.Type.BOOL


def _type_of_call(expression: syntax.Call, scope: Scope) -> syntax.Type:
    function, arguments = expression.function, expression.arguments
    check_arity(function, len(arguments), expression.position)
    types = [type_of(argument, scope) for argument in arguments]
    for type_, argument in zip(types, arguments, strict=True):
        _need_number(type_, argument, function)
        if function == "mod" and type_ is not syntax.Type.INT:
            raise Complaint("mod takes ints only", position_of(argument), "use floor(…)")
    if function in ("floor", "ceil", "round", "mod"):
        return syntax.Type.INT
    if function == "log":
        return syntax.Type.DOUBLE
    return syntax.Type.INT if all(type_ is syntax.Type.INT for type_ in types) else syntax.Type.DOUBLE


def check_arity(function: str, count: int, position: syntax.Position | None) -> None:
    """Complain about a call with the wrong number of arguments."""
    arity = _ARITY.get(function)
    if arity is not None and count != arity:
        raise Complaint(f"{function} takes {arity} argument{'s' if arity > 1 else ''}, not {count}", position)


def _common(left: syntax.Type, right: syntax.Type) -> syntax.Type:
    return left if left is right else syntax.Type.DOUBLE


def _need_number(actual: syntax.Type, operand: syntax.Expression, operator: str) -> None:
    if actual is syntax.Type.BOOL:
        raise Complaint(f"'{operator}' wants numbers, but this is a bool", position_of(operand))


def _need_bool(actual: syntax.Type, operand: syntax.Expression, operator: str) -> None:
    if actual is not syntax.Type.BOOL:
        raise Complaint(f"'{operator}' wants a bool, but this is {_article(actual)}", position_of(operand))


# Substitution of constants, and folding of everything they decide.
#
# A subtree without variables and parameters becomes a literal, so that the explorer meets small
# trees. Where a constant decides a conditional, an `&`, an `|` or an `=>`, the part that is never
# evaluated disappears unseen: `N=0 ? 0 : 1/N` is fine for N = 0. A constant part whose evaluation
# fails stays as it is: it is an error only if it is ever evaluated.

_NEUTRAL = {"&": True, "|": False}


def fold(expression: Expression, constants: Mapping[str, Expression], is_strict: bool = False) -> Expression:
    """The expression with constants' names replaced and all that is constant computed; `is_strict`: what has
    no value is a complaint."""
    if isinstance(expression, Name):
        value = constants.get(expression.name)
        if isinstance(value, Literal):
            return Literal(value.value, value.type, expression.position)
        return expression if value is None else value
    if isinstance(expression, Literal):
        return expression
    if isinstance(expression, Conditional):
        condition = fold(expression.condition, constants, is_strict)
        if isinstance(condition, Literal):
            return fold(expression.then if condition.value else expression.otherwise, constants, is_strict)
        branches = (fold(branch, constants, is_strict) for branch in (expression.then, expression.otherwise))
        return with_children(expression, (condition, *branches))
    if isinstance(expression, Binary) and expression.operator in ("&", "|", "=>"):
        return _fold_logic(expression, constants, is_strict)
    operands = tuple(fold(child, constants, is_strict) for child in children(expression))
    if isinstance(expression, Checked):
        condition = operands[0]
        if is_strict and isinstance(condition, Literal) and not condition.value:
            raise Complaint(expression.message, expression.position)
        is_right = isinstance(condition, Literal) and condition.value
        return operands[1] if is_right else with_children(expression, operands)
    if isinstance(expression, Call) and expression.function == "pow" and _is_double(expression, constants):
        operands = tuple(_as_double(operand) for operand in operands)
    return _compute(with_children(expression, operands), operands, is_strict)


def value_of(expression: Expression) -> Value:
    """The value of an expression without names; complains where it has none (1/0)."""
    result = fold(expression, {}, is_strict=True)
    for name in names(result):
        raise Complaint(f"'{name.name}' is not a constant", name.position)
    assert isinstance(result, Literal)
    return result.value


def _fold_logic(expression: Binary, constants: Mapping[str, Expression], is_strict: bool) -> Expression:
    left, operator = fold(expression.left, constants, is_strict), expression.operator
    if isinstance(left, Literal) and bool(left.value) is (operator == "|"):  # it gives the result alone
        return literal(operator != "&", expression.position)
    right = fold(expression.right, constants, is_strict)
    if isinstance(left, Literal):
        return right
    if isinstance(right, Literal) and right.value is _NEUTRAL.get(operator):
        return left
    return with_children(expression, (left, right))


def _is_double(expression: Expression, constants: Mapping[str, Expression]) -> bool:
    """The static type of a number, for `pow`: 2 to the power -1 is an error for ints, 1/2 for doubles."""
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


def _compute(expression: Expression, operands: tuple[Expression, ...], is_strict: bool) -> Expression:
    values = [operand.value for operand in operands if isinstance(operand, Literal)]
    if not operands or len(values) < len(operands):
        return expression
    try:
        return literal(apply(expression, values), getattr(expression, "position", None))
    except Complaint:
        if is_strict:
            raise
        return expression


# Named expressions written out wherever their name stands: formulas, and constants of parameters.
#
# PRISM inlines formulas before it renames modules: it is the content of a formula that a renaming
# changes, not its name. Inlining is the first pass over every expression, so it also bounds what
# the later passes meet: they may recurse, and they may copy.

MOST_LEVELS = 250
MOST_NODES = 200_000


@dataclass
class _Inlined:
    """An expression written out, with its number of nodes and levels."""

    expression: Expression
    nodes: int
    levels: int


class Inliner:
    """Definitions that may use each other in any order, but not in a circle."""

    def __init__(self, definitions: Mapping[str, Expression], kind: str):
        self._inlined: dict[str, _Inlined] = {}
        for name in dependency_order(definitions, kind):
            self._inlined[name] = self._inline(definitions[name], 1)

    def __contains__(self, name: str) -> bool:
        return name in self._inlined

    def definition(self, name: str) -> Expression:
        """What a name stands for, written out."""
        return self._inlined[name].expression

    def inline(self, expression: Expression) -> Expression:
        """The expression with every defined name replaced by what it stands for."""
        return self._inline(expression, 1).expression

    def _inline(self, expression: Expression, level: int) -> _Inlined:
        if isinstance(expression, Name):
            known = self._inlined.get(expression.name) or _Inlined(expression, 1, 1)
            _check_circles(expression, level + known.levels - 1, known.nodes)
            return known
        _check_circles(expression, level, 0)
        parts = [self._inline(child, level + 1) for child in children(expression)]
        if not parts:
            return _Inlined(expression, 1, 1)
        nodes = 1 + sum(part.nodes for part in parts)
        _check_circles(expression, level, nodes)
        new = with_children(expression, tuple(part.expression for part in parts))
        return _Inlined(new, nodes, 1 + max(part.levels for part in parts))


def dependency_order(definitions: Mapping[str, Expression], kind: str) -> list[str]:
    """The names so that each comes after those it uses; complains about circles."""
    places: dict[tuple[str, str], Position | None] = {}
    uses: dict[str, list[str]] = {}
    for name, expression in definitions.items():
        uses[name] = []
        for used in names(expression):
            if used.name in definitions:
                places.setdefault((name, used.name), used.position)
                uses[name].append(used.name)
    try:
        return list(TopologicalSorter(uses).static_order())
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]
        raise Complaint(
            f"{kind} refer to each other in a circle: {' → '.join(circle)}", places[circle[0], circle[1]]
        ) from None


def _check_circles(place: Expression, levels: int, nodes: int) -> None:
    if levels > MOST_LEVELS:
        raise Complaint(f"this expression is nested more than {MOST_LEVELS} deep", position_of(place))
    if nodes > MOST_NODES:
        raise Complaint(f"written out, this expression has more than {MOST_NODES} parts", position_of(place))
