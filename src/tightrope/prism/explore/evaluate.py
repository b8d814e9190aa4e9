"""Exact values of an expression on whole arrays, PRISM's semantics.

Integers are int64 (Python's own where they do not fit), reals are exact rationals, expressions with
parameters are polynomials; `/` is division of reals, `log` and powers with broken exponents are the
nearest double taken as an exact number. The branches of `? :`, `&`, `|` and `=>` are evaluated only
in the rows where they count, so `x>0 & 1/x<y` is fine.

>>> from tightrope.prism.parse.syntax import Binary, Literal, Name, Type
>>> half = Binary("/", Name("x"), Literal(2, Type.INT))
>>> evaluate(half, {"x": np.array([1, 4])}, 2).to_fractions()
[Fraction(1, 2), Fraction(2, 1)]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model.polynomial import PolynomialArray
from tightrope.numerics.arrays import BoolArray, ExactIntegers
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.compile import Compiled, Compiler, Ratio, Scope
from tightrope.prism.explore.frame import Boolean, Column, Frame
from tightrope.prism.explore.ratio import Number, integers
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Expression

Values = BoolArray | ExactIntegers | RationalArray | PolynomialArray


def evaluate(
    expression: Expression,
    columns: Mapping[str, Column],
    size: int,
    parameters: Mapping[str, int] | None = None,
) -> Any:
    """The value in each of `size` rows: bools, integers, `RationalArray` or `PolynomialArray`.

    `columns` has the values of every variable (bool or int64), `parameters` the number of every
    parameter.
    """
    names = list(columns)
    arrays = [np.asarray(column) for column in columns.values()]
    booleans = frozenset(name for name, array in zip(names, arrays, strict=True) if array.dtype == np.bool_)
    scope = Scope({name: i for i, name in enumerate(names)}, booleans, parameters or {})
    ranges = [(int(array.min()), int(array.max())) if size else (0, 1) for array in arrays]

    def describe(row: int) -> str:
        return "(" + ",".join(f"{name}={array[row]}" for name, array in zip(names, arrays, strict=True)) + ")"

    try:
        compiled = Compiler(scope, ranges).compile(expression)
        return run(compiled, Frame(arrays, size, describe))
    except Complaint as complaint:
        raise plain_error(complaint) from None


def run(compiled: Compiled, frame: Frame) -> Values:
    """A compiled expression on a frame, with one entry per row."""
    if isinstance(compiled, Boolean):
        return frame.mask(compiled.value(frame))
    if isinstance(compiled, Number):
        if compiled.is_integer:
            values: ExactIntegers = integers(compiled.numerator, frame)
            return values
        return compiled.array(frame)
    if isinstance(compiled, Ratio):
        raise InputError("a polynomial is expected here, not a quotient of polynomials")
    return PolynomialArray({m: c.array(frame) for m, c in compiled.items()}, frame.size)


def plain_error(complaint: Complaint) -> InputError:
    """The error of an expression whose source is not at hand."""
    position = complaint.position
    location = Location("expression", position.line, position.column) if position else None
    return InputError(complaint.message, location, complaint.hint)
