"""Text files of other tools: what can be wrong with their rows, and errors that point into them.

Readers go through a file once, line by line, and keep only arrays. Where something turns out wrong
later (a state that does not exist, probabilities that do not sum to 1), `line_number` goes through
the file a second time for the place; a good file never pays for it.

Rows are checked on whole arrays. Each of these functions returns the index of the first offender, or None;
the reader knows where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import NoReturn

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model.expressions import Expressions
from tightrope.model.mdp import SUM_TOLERANCE
from tightrope.model.polynomial import Polynomial
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text_reading import reading


def fail(
    path: Path, line: int, text: str, message: str, token: str | None = None, hint: str | None = None
) -> NoReturn:
    """Raise the error at this line, at the column where `token` stands in it."""
    column = text.find(token) + 1 if token else 0
    shown = text.rstrip("\r\n")
    if column == 0:
        column = len(shown) - len(shown.lstrip()) + 1
    raise InputError(message, Location(str(path), line, column, shown), hint)


def fail_at_nth(
    path: Path,
    index: int,
    counts: Callable[[str], bool],
    message: str,
    after: int = 0,
    hint: str | None = None,
) -> NoReturn:
    """Raise the error at the `index`-th line after line `after` that `counts` says yes to."""
    with reading(path) as file:
        seen = 0
        for number, line in enumerate(file, 1):
            if number > after and counts(line):
                if seen == index:
                    fail(path, number, line, message, hint=hint)
                seen += 1
    raise InputError(message, Location(str(path)), hint)


def shorten(text: str, length: int = 60) -> str:
    """The text for a message: in quotes, long ones cut."""
    stripped = text.strip()
    return f"'{stripped if len(stripped) <= length else stripped[:length] + '…'}'"


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
