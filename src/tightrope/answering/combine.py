"""Values combined by the operators and functions of expressions: arithmetic, comparisons, logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from tightrope.answering.values import Bounds, Truth, round_half_up
from tightrope.numerics.arrays import FloatArray
from tightrope.prism.expand.check import check_arity
from tightrope.prism.expand.traverse import children
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.property_syntax import ValueOperator
from tightrope.prism.parse.syntax import Binary, Call, Conditional, Expression, Unary

_WHOLE: dict[str, Callable[[FloatArray], FloatArray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": round_half_up,
}


def combine_values(expression: Expression, values: Sequence[Truth | Bounds]) -> Truth | Bounds:
    """The value of an expression, from those of its parts."""
    parts = children(expression)
    if isinstance(expression, Unary):
        if expression.operator == "!":
            return as_truth(values[0], parts[0]).negated()
        return as_number(values[0], parts[0]).negated()
    if isinstance(expression, Binary):
        logic = expression.operator in ("&", "|", "=>", "<=>")
        if logic or (expression.operator in ("=", "!=") and isinstance(values[0], Truth)):
            one, other = (as_truth(value, part) for value, part in zip(values, parts, strict=True))
            return _logic(expression.operator, one, other)
        first, second = (as_number(value, part) for value, part in zip(values, parts, strict=True))
        return _arithmetic(expression.operator, first, second)
    if isinstance(expression, Conditional):
        return _conditional(as_truth(values[0], parts[0]), values[1], values[2], expression)
    assert isinstance(expression, Call)
    return _call(expression, [as_number(value, part) for value, part in zip(values, parts, strict=True)])


def as_truth(value: Truth | Bounds, expression: Expression) -> Truth:
    """The truth of an expression, or a complaint where it is a number."""
    if isinstance(value, Truth):
        return value
    hint = None
    if isinstance(expression, ValueOperator):
        letter = "R" if expression.is_reward else "P"
        hint = f"inside a formula an operator has a threshold: {letter}>=0.5 [ … ]"
    raise Complaint("this is a number, where true or false is wanted", position_of(expression), hint)


def as_number(value: Truth | Bounds, expression: Expression) -> Bounds:
    """The bounds of an expression, or a complaint where it is true or false."""
    if isinstance(value, Bounds):
        return value
    raise Complaint("this is true or false, where a number is wanted", position_of(expression))


def _logic(operator: str, one: Truth, other: Truth) -> Truth:
    if operator == "&":
        return one.both(other)
    if operator in ("|", "=>"):
        return (one if operator == "|" else one.negated()).either(other)
    return one.same(other).negated() if operator == "!=" else one.same(other)


def _arithmetic(operator: str, first: Bounds, second: Bounds) -> Truth | Bounds:
    if operator == "+":
        return first.plus(second)
    if operator == "-":
        return first.plus(second.negated())
    if operator == "*":
        return first.times(second)
    if operator == "/":
        return first.divided_by(second)
    return first.compared(operator, second)


def _conditional(
    condition: Truth, then: Truth | Bounds, otherwise: Truth | Bounds, expression: Conditional
) -> Truth | Bounds:
    if isinstance(then, Truth) and isinstance(otherwise, Truth):
        chosen = condition.both(then).either(condition.negated().both(otherwise))
        holds, fails = then.holds & otherwise.holds, then.fails & otherwise.fails  # whatever the condition
        return Truth(chosen.holds | holds, chosen.fails | fails)
    one, other = as_number(then, expression.then), as_number(otherwise, expression.otherwise)
    known = [condition.holds, condition.fails]
    lower = np.select(known, [one.lower, other.lower], np.minimum(one.lower, other.lower))
    upper = np.select(known, [one.upper, other.upper], np.maximum(one.upper, other.upper))
    return Bounds(lower, upper, max(one.unit, other.unit))


def _call(expression: Call, values: Sequence[Bounds]) -> Bounds:
    function = expression.function
    check_arity(function, len(values), expression.position)
    if function in ("log", "mod"):
        raise Complaint(f"{function} of a result is not supported", expression.position)
    if function in _WHOLE:
        return values[0].through(_WHOLE[function])
    return reduce(Bounds.smaller if function == "min" else Bounds.larger, values)
