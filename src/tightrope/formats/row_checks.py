"""What can be wrong with the rows of a model file, found on whole arrays.

Each function returns the index of the first offender, or None; the reader knows where it stands.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np

from tightrope.model.expressions import Expressions
from tightrope.model.mdp import SUM_TOLERANCE
from tightrope.model.polynomial import Polynomial
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray


def first_unknown_state(successor: IndexArray, states: int) -> int | None:
    """The first transition that leads to no state of the model."""
    return _first((successor < 0) | (successor >= states))


def first_empty_row(start: OffsetArray) -> int | None:
    return _first(np.diff(start) == 0)


def first_duplicate(transition_start: OffsetArray, successor: IndexArray) -> int | None:
    """The first transition whose choice already had one to the same state."""
    choice = np.repeat(np.arange(len(transition_start) - 1), np.diff(transition_start))
    rising = (successor[1:] > successor[:-1]) | (choice[1:] != choice[:-1])
    if rising.all():
        return None
    order = np.lexsort((successor, choice))
    same = (successor[order[1:]] == successor[order[:-1]]) & (choice[order[1:]] == choice[order[:-1]])
    again = order[1:][same]
    return int(again.min()) if len(again) else None


def first_outside(lower: FloatArray, upper: FloatArray) -> int | None:
    """The first transition whose bounds are no part of [0, 1]."""
    return _first(~((lower >= 0) & (upper <= 1) & (lower <= upper)))


def first_wrong_sum(transition_start: OffsetArray, lower: FloatArray, upper: FloatArray) -> int | None:
    """The first choice for which no distribution lies within the bounds (equal bounds: a plain model)."""
    low = np.add.reduceat(lower, transition_start[:-1])
    high = np.add.reduceat(upper, transition_start[:-1])
    return _first((low > 1 + SUM_TOLERANCE) | (high < 1 - SUM_TOLERANCE))


def first_wrong_exact_sum(
    transition_start: OffsetArray, expression: IndexArray, expressions: Expressions
) -> int | None:
    """The first choice whose expressions do not sum to 1. Slow: for messages."""
    one = Polynomial.constant(1)
    functions = [expressions.function(e) for e in range(len(expressions))]
    seen: set[tuple[int, ...]] = set()
    starts = transition_start.tolist()
    for choice, (start, end) in enumerate(pairwise(starts)):
        row = tuple(expression[start:end].tolist())
        if row not in seen:
            seen.add(row)
            if reduce(add, (functions[e] for e in row), Polynomial({})) != one:
                return choice
    return None


def _first(wrong: BoolArray) -> int | None:
    return int(np.argmax(wrong)) if wrong.any() else None
