"""Static types, by PRISM's rules.

An int may stand where a double is expected, never the reverse; `/` and `log` give doubles;
`floor`, `ceil`, `round` and `mod` ints; `+ - *`, `min`, `max` and `pow` ints if all operands are.
`=` and `!=` compare two numbers or two bools.
"""

from __future__ import annotations

from collections.abc import Mapping

from tightrope.prism.parse import syntax
from tightrope.prism.parse.diagnostics import Complaint, position_of, suggestion

Scope = Mapping[str, syntax.Type]

_ARITHMETIC = frozenset("+-*/")
_LOGIC = frozenset(["&", "|", "=>", "<=>"])
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
        return _binary(expression, scope)
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
    if not isinstance(expression, syntax.Call):
        raise Complaint(
            "operators of properties (P, R, A, E, filter, F, G, …) cannot stand here", position_of(expression)
        )
    return _call(expression, scope)


def check_type(expression: syntax.Expression, scope: Scope, expected: syntax.Type, what: str) -> None:
    """Complain unless an expression may stand where `what` wants a value of type `expected`."""
    found = type_of(expression, scope)
    if found is expected or (expected is syntax.Type.DOUBLE and found is syntax.Type.INT):
        return
    hint = None
    wanted = "a number" if expected is syntax.Type.DOUBLE else _article(expected)
    if expected is syntax.Type.INT and found is syntax.Type.DOUBLE:
        hint = "floor(…), ceil(…) and round(…) turn a double into an int"
    raise Complaint(f"{what} must be {wanted}, but this is {_article(found)}", position_of(expression), hint)


def _article(type_: syntax.Type) -> str:
    return {syntax.Type.INT: "an int", syntax.Type.DOUBLE: "a double", syntax.Type.BOOL: "a bool"}[type_]


def _binary(expression: syntax.Binary, scope: Scope) -> syntax.Type:
    left, right = type_of(expression.left, scope), type_of(expression.right, scope)
    operator = expression.operator
    if operator in _LOGIC:
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


def _call(expression: syntax.Call, scope: Scope) -> syntax.Type:
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
    if arity is None and count < 2:
        raise Complaint(f"{function} takes at least 2 arguments, not {count}", position)


def _common(left: syntax.Type, right: syntax.Type) -> syntax.Type:
    return left if left is right else syntax.Type.DOUBLE


def _need_number(found: syntax.Type, operand: syntax.Expression, operator: str) -> None:
    if found is syntax.Type.BOOL:
        raise Complaint(f"'{operator}' wants numbers, but this is a bool", position_of(operand))


def _need_bool(found: syntax.Type, operand: syntax.Expression, operator: str) -> None:
    if found is not syntax.Type.BOOL:
        raise Complaint(f"'{operator}' wants a bool, but this is {_article(found)}", position_of(operand))
