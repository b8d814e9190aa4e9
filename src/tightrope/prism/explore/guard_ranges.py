"""What a guard says about single variables: `x<5 & b` leaves x at most 4 and b true.

Only conjuncts that compare one variable with a constant are read; ignoring the others is always
right, the ranges are then wider than need be. An empty range means that the guard never holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tightrope.prism.parse.syntax import Binary, Expression, Literal, Name, Type, Unary

Ranges = list[tuple[int, int]]

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def ranges_under(guard: Expression, ranges: Sequence[tuple[int, int]], number: Mapping[str, int]) -> Ranges:
    """The ranges of all variables in states where the guard holds."""
    narrowed = list(ranges)
    open_conjuncts = [guard]
    while open_conjuncts:
        part = open_conjuncts.pop()
        if isinstance(part, Binary) and part.operator == "&":
            open_conjuncts += [part.left, part.right]
        elif (bounds := _bounds(part)) is not None:
            name, low, high = bounds
            if name in number:
                known_low, known_high = narrowed[number[name]]
                narrowed[number[name]] = (
                    known_low if low is None else max(low, known_low),
                    known_high if high is None else min(high, known_high),
                )
    return narrowed


def _bounds(part: Expression) -> tuple[str, int | None, int | None] | None:
    match part:
        case Name(name):
            return name, 1, 1
        case Unary("!", Name(name)):
            return name, 0, 0
        case Binary(relation, Name(name), right) if relation in _MIRRORED:
            value = _value(right)
        case Binary(relation, left, Name(name)) if relation in _MIRRORED:
            relation, value = _MIRRORED[relation], _value(left)
        case _:
            return None
    if value is None:
        return None
    match relation:
        case "=":
            return name, math.ceil(value), math.floor(value)
        case "<":
            return name, None, math.ceil(value) - 1
        case "<=":
            return name, None, math.floor(value)
        case ">":
            return name, math.floor(value) + 1, None
        case _:
            return name, math.ceil(value), None


def _value(expression: Expression) -> Fraction | None:
    match expression:
        case Literal(value, kind) if kind is not Type.BOOL:
            return Fraction(value)
        case Unary("-", Literal(value, kind)) if kind is not Type.BOOL:
            return -Fraction(value)
    return None
