"""Values combined by the operators and functions of expressions: arithmetic, comparisons, logic, and filters.

`filter(kind, operand, states)` makes one answer of the values of many states. Bounds of a minimum are the
minima of the bounds, and so on: all of these are monotone in every value. A count lies between the states
that certainly satisfy the operand and those that may; `argmin` and `argmax` hold where a state certainly
attains the extremum, and fail where it certainly does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from tightrope.logic.values import Bounds, Truth, round_half_up
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.rounding import error_factor
from tightrope.prism.expand.expressions import check_arity, children
from tightrope.prism.parse.property_syntax import Filter, ValueOperator
from tightrope.prism.parse.syntax import Binary, Call, Complaint, Conditional, Expression, Unary, position_of

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
    return first.compare(operator, second)


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


_OF_TRUTH = frozenset(["forall", "exists", "count"])
_OF_NUMBERS = frozenset(["min", "max", "sum", "avg", "range", "argmin", "argmax"])


def apply_filter(asked: Filter, operand: Truth | Bounds, states: BoolArray) -> Truth | Bounds:
    """The value in every state: the same everywhere, or where states are listed, that of each state."""
    kind = asked.kind
    if not states.any():
        raise Complaint(
            f"filter({kind}, …) has no states: none satisfies what it is restricted to", asked.position
        )
    if kind in _OF_TRUTH and isinstance(operand, Bounds):
        raise Complaint(
            f"filter({kind}, …) is about a formula that is true or false, not a number", asked.position
        )
    if kind in _OF_NUMBERS and isinstance(operand, Truth):
        raise Complaint(
            f"filter({kind}, …) is about numbers, not a formula that is true or false", asked.position
        )
    if kind == "state" and np.count_nonzero(states) > 1:
        raise Complaint(
            f"filter(state, …) is about one state, but {np.count_nonzero(states):,} are meant",
            asked.position,
            "filter(first, …), min or max take several",
        )
    if kind in ("print", "printall"):
        return operand
    if isinstance(operand, Truth):
        return _of_truth(kind, operand, states)
    return _of_numbers(kind, operand, states)


def _of_truth(kind: str, operand: Truth, states: BoolArray) -> Truth | Bounds:
    size, holds, fails = len(states), operand.holds[states], operand.fails[states]
    if kind == "count":
        return _constant(float(holds.sum()), float((~fails).sum()), size)
    if kind == "forall":
        return _settle(bool(holds.all()), bool(fails.any()), size)
    if kind == "exists":
        return _settle(bool(holds.any()), bool(fails.all()), size)
    return _settle(bool(holds[0]), bool(fails[0]), size)  # first, and the only one of `state`


def _of_numbers(kind: str, operand: Bounds, states: BoolArray) -> Truth | Bounds:
    size, lower, upper = len(states), operand.lower[states], operand.upper[states]
    if kind in ("argmin", "argmax"):
        sign = operand if kind == "argmin" else operand.negated()
        low, high = sign.lower[states], sign.upper[states]
        least = np.partition(low, 1)[:2] if len(low) > 1 else np.append(low, np.inf)
        others = np.where((sign.lower == least[0]) & states, least[1], least[0])
        attains = states & (sign.upper <= others)
        return Truth(attains, ~states | (sign.lower > high.min()))
    if kind == "min":
        return _constant(float(lower.min()), float(upper.min()), size)
    if kind == "max":
        return _constant(float(lower.max()), float(upper.max()), size)
    if kind == "range":
        return _constant(float(lower.min()), float(upper.max()), size)
    if kind in ("sum", "avg"):
        total = _constant(_total(lower, False), _total(upper, True), size)
        count = float(len(lower))
        return total if kind == "sum" else total.divided_by(_constant(count, count, size))
    return _constant(float(lower[0]), float(upper[0]), size)  # first, and the only one of `state`


def _total(values: FloatArray, upward: bool) -> float:
    """A sum, rounded outward; of −∞ and ∞ together nothing is known."""
    if not np.isfinite(values).all():
        both = np.isposinf(values).any() and np.isneginf(values).any()
        return (np.inf if upward else -np.inf) if both else float(values.sum())
    if not np.any(values % 1) and np.abs(values).sum() < 2.0**53:
        return float(values.sum())  # whole numbers: exact
    error = error_factor(len(values) + 2) * float(np.abs(values).sum()) + 1e-300
    total = float(values.sum())
    return float(np.nextafter(total + error, np.inf) if upward else np.nextafter(total - error, -np.inf))


def _constant(lower: float, upper: float, size: int) -> Bounds:
    return Bounds(np.full(size, lower), np.full(size, upper))


def _settle(holds: bool, fails: bool, size: int) -> Truth:
    return Truth(np.full(size, holds), np.full(size, fails))
