"""Numbers and rows of other tools' text files, and errors that point into them.

*Numbers* (`tightrope.model.function_text`) are exact or the nearest double. Each distinct text is parsed once
(`code`). Bounds of exact rational intervals are rounded outwards; `tightrope.model.numbers` names the numbers
that are refused.

*Rows* are checked on whole arrays (`RowCheck`), from one pass through the file. After an error `fail_at_nth`
reads the file again to find the line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model import numbers as door
from tightrope.model.function_text import DECIMAL, exact_number
from tightrope.model.mdp import MDP, SUM_TOLERANCE, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text import reading


def nearest_double(text: str) -> float:
    """The double nearest to the number; ValueError where none may stand for it."""
    stripped = text.strip()
    match = DECIMAL.fullmatch(stripped)
    if match is None:
        return door.double(exact_number(stripped))
    value = float(stripped)
    if not math.isfinite(value):
        raise ValueError("too large for a double")
    if abs(value) < door.TINY and any(digit in "123456789" for digit in re.split("[eE]", stripped)[0]):
        raise ValueError("not 0, but too small for a double, of which the least is 2.3e-308")
    return value


def nearest_bound(text: str) -> float:
    """The same for a bound of an interval."""
    value = nearest_double(text)
    return door.bound(exact_number(text)) if value == 1 else value


def decimal_text(value: float) -> str:
    """The shortest decimal that is read back as this double; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


class NumberValues:
    """Doubles and intervals; `value_type` None lets the values decide."""

    def __init__(self, value_type: str | None):
        self.value_type = value_type
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.texts: list[tuple[str, str]] = []
        self.has_intervals = value_type in ("double-interval", "rational-interval")
        self._exact: dict[int, door.Bounds] = {}

    def code(self, text: str) -> int:
        is_interval = text.startswith("[")
        if is_interval:
            if self.value_type not in (None, "double-interval", "rational-interval"):
                raise ValueError(f"an interval in a model of value type {self.value_type}")
            low, high = split_interval(text)
            self.has_intervals = True
        else:
            low = high = text
        if self.value_type == "rational-interval":
            least, most = exact_number(low), exact_number(high)
            lower, upper = (
                door.bound(least, -math.inf),
                door.bound(min(most, max(least, Fraction(1))), math.inf),
            )
        elif is_interval:
            lower, upper = nearest_bound(low), nearest_bound(high)
        else:
            lower = upper = nearest_double(text)
        if is_interval and lower <= 1:
            upper = min(upper, 1.0)  # Storm adds up intervals of merged successors beyond 1
        self.lower.append(lower)
        self.upper.append(upper)
        self.texts.append((low, high))
        return len(self.lower) - 1

    def exact(self, code: int) -> door.Bounds:
        """The bounds as they are written."""
        if code not in self._exact:
            low, high = (exact_number(text) for text in self.texts[code])
            self._exact[code] = (low, min(high, max(low, Fraction(1))))
        return self._exact[code]

    def bounds(self, start: OffsetArray, codes: IndexArray) -> tuple[FloatArray, FloatArray]:
        """The numbers of all transitions of a model; in one of intervals bounds are settled (`door`)."""
        lower, upper = (np.array(ends, dtype=np.float64)[codes] for ends in (self.lower, self.upper))
        if not self.has_intervals:
            return lower, upper
        for code, value in enumerate(self.lower):
            if value == self.upper[code] == 1 and self.exact(code)[0] != 1 and (codes == code).any():
                index = int(np.argmax(codes == code))
                raise door.NotHeldError("not 1, and the double nearest to it is", index=index)
        return door.settle_rows(start, lower, upper, lambda t: self.exact(int(codes[t])))

    def model(self, structure: Structure, codes: IndexArray) -> MDP | IntervalMDP:
        lower, upper = self.bounds(structure.transition_start, codes)
        return IntervalMDP(structure, lower, upper) if self.has_intervals else MDP(structure, lower)


def with_numbers(model: Any, files: str) -> Any:
    """A model with numbers on its transitions, for `files` that hold nothing else; parameters are refused."""
    parameters = getattr(model, "parameters", None)
    if parameters is None:
        return model
    if parameters.names:
        raise InputError(
            f"{files} hold numbers only, and this model has parameters ({parameters.listed})",
            hint='write the model at a point (`at={"p": 0.5}`), or write a .drn file',
        )
    return model.instantiate(())


def reward_text(text: str) -> str:
    """The number of a reward, which may be written as an interval of one."""
    if not text.startswith("["):
        return text
    low, high = split_interval(text)
    if exact_number(low) != exact_number(high):
        raise ValueError("a reward known only up to an interval is not supported")
    return low


def split_interval(text: str) -> tuple[str, str]:
    """The two ends of `[0.1, 0.3]`, as texts."""
    inner = text.strip()
    low, comma, high = inner.removeprefix("[").removesuffix("]").partition(",")
    if not inner.startswith("[") or not inner.endswith("]") or not comma:
        raise ValueError("an interval such as [0.1, 0.3] expected")
    return low, high


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


def whole_number(text: str) -> int | None:
    """A number of at most nine digits; None where the text is none."""
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdecimal() and len(stripped) < 10 else None


@dataclass(frozen=True)
class RowCheck:
    """Refuse rows that fit no model, at the place of the first; `choice` is the file's name for a choice."""

    start: OffsetArray
    successor: IndexArray
    choice: str
    fail_at_transition: Callable[[int, str], NoReturn]
    fail_at_choice: Callable[[int, str], NoReturn]

    def check_targets(self, states: int) -> None:
        """Every choice leads to states of the model, and to none of them twice."""
        start, successor = self.start, self.successor
        if (empty := first_true(np.diff(start) == 0)) is not None:
            self.fail_at_choice(empty, f"this {self.choice} has no transition")
        if (bad := first_true((successor < 0) | (successor >= states))) is not None:
            self.fail_at_transition(bad, unknown_state(successor[bad], states))
        choice = np.repeat(np.arange(len(start) - 1), np.diff(start))
        if ((successor[1:] > successor[:-1]) | (choice[1:] != choice[:-1])).all():
            return
        order = np.lexsort((successor, choice))
        same = (successor[order[1:]] == successor[order[:-1]]) & (choice[order[1:]] == choice[order[:-1]])
        if same.any():
            again = int(order[1:][same].min())
            what = f"a second transition of this {self.choice} to state {successor[again]}"
            self.fail_at_transition(again, what)

    def check_probabilities(self, lower: FloatArray, upper: FloatArray, hint: str = "") -> None:
        """Check that bounds lie in [0, 1] and contain a distribution; `hint` is for numbers above 1."""
        bad = first_true(~((lower >= 0) & (upper <= 1) & (lower <= upper)))
        if bad is not None:
            what = "a probability lies within [0, 1], this one does not"
            self.fail_at_transition(bad, what + hint * bool(lower[bad] > 1))
        low, high = (np.add.reduceat(bounds, self.start[:-1]) for bounds in (lower, upper))
        wrong = first_true((low > 1 + SUM_TOLERANCE) | (high < 1 - SUM_TOLERANCE))
        if wrong is None:
            return
        row = slice(self.start[wrong], self.start[wrong + 1])
        total = f"[{low[wrong]:.12g}, {high[wrong]:.12g}]"
        if (lower[row] == upper[row]).all():
            what = f"the probabilities of this {self.choice} sum to {low[wrong]:.12g}, not 1"
        else:
            what = f"no distribution fits these intervals: their bounds sum to {total}"
        self.fail_at_choice(wrong, what)


def unknown_state(state: int, states: int) -> str:
    """What is wrong with the number of a state that there is not."""
    return f"there is no state {state}: the states are 0 to {states - 1}"


def first_true(wrong: BoolArray) -> int | None:
    """The index of the first offender, or None."""
    return int(np.argmax(wrong)) if wrong.any() else None
