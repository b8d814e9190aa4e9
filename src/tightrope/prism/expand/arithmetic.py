"""The operators and functions of the PRISM language on single exact values.

Integers are integers, doubles are exact rationals: `0.1 + 0.2 = 0.3` holds. PRISM's rules where
they are easily missed:

* `/` is real division whatever the types, `mod` wants a positive divisor and is never negative,
* `round` rounds halves up, `pow` of two ints is an int and wants a natural exponent,
* `log(x, b)` and `pow` with a fractional exponent are exact where the result is rational and that
  is easy to see (`log(8,2)`, `pow(4,0.5)`), else the nearest double of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Binary, Call, Expression, Literal, Position, Type, Unary

Value = int | Fraction | bool
Number = int | Fraction

_MOST_BITS = 20_000
"""Numbers beyond this size are a mistake in the model, and exact arithmetic would stall on them."""

_COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}
_LOGIC: dict[str, Callable[[bool, bool], bool]] = {
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
    operator = node.operator
    if operator in _LOGIC:
        return _LOGIC[operator](bool(left), bool(right))
    if operator in _COMPARISONS:
        return _COMPARISONS[operator](left, right)
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if right == 0:
        raise Complaint("division by zero", node.position)
    return Fraction(left) / Fraction(right)


def _call(node: Call, operands: Sequence[Value]) -> Value:
    function = node.function
    if function in ("min", "max"):
        best = min(operands) if function == "min" else max(operands)
        return Fraction(best) if any(isinstance(operand, Fraction) for operand in operands) else best
    if function == "floor":
        return math.floor(operands[0])
    if function == "ceil":
        return math.ceil(operands[0])
    if function == "round":
        return math.floor(Fraction(operands[0]) + Fraction(1, 2))
    if function == "mod":
        return _modulo(int(operands[0]), int(operands[1]), node.position)
    if function == "pow":
        return _power(operands[0], operands[1], node.position)
    return _logarithm(Fraction(operands[0]), Fraction(operands[1]), node.position)


def _modulo(dividend: int, divisor: int, position: Position | None) -> int:
    if divisor <= 0:
        raise Complaint(f"mod needs a positive divisor, not {divisor}", position)
    return dividend % divisor


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
