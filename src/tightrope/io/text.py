"""Numbers and lines of other tools' text files, and errors that point into them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model import numbers as door
from tightrope.model.function_text import DECIMAL, exact_number
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray
from tightrope.numerics.text import reading


def nearest_double(text: str) -> float:
    """The double nearest to the number; ValueError where none may stand for it."""
    stripped = text.strip()
    if DECIMAL.fullmatch(stripped) is None:
        return door.double(exact_number(stripped))
    value = float(stripped)
    if not math.isfinite(value):
        raise ValueError("too large for a double")
    if abs(value) < door.TINY and any(digit in "123456789" for digit in re.split("[eE]", stripped)[0]):
        raise ValueError("not 0, but too small for a double, of which the least is 2.3e-308")
    return value


def decimal_text(value: float) -> str:
    """The shortest decimal that is read back as this double; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def distinct_texts(values: FloatArray) -> tuple[list[str], IndexArray]:
    """The texts of many numbers, equal ones once, and which of them each number has."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return [decimal_text(value) for value in distinct.tolist()], inverse.reshape(-1).astype(np.int32)


def texts_of(values: FloatArray) -> list[str]:
    """The text of each number."""
    texts, which = distinct_texts(values)
    return [texts[k] for k in which.tolist()]


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


class TextLine(NamedTuple):
    """A line of a file."""

    path: Path
    number: int
    text: str

    def fail(self, message: str, token: str | None = None, hint: str | None = None) -> NoReturn:
        """Raise the error here, at the column where `token` stands."""
        column = self.text.find(token) + 1 if token else 0
        shown = self.text.rstrip("\r\n")
        if column == 0:
            column = len(shown) - len(shown.lstrip()) + 1
        raise InputError(message, Location(str(self.path), self.number, column, shown), hint)


def refuse(path: str | Path, message: str, hint: str | None = None) -> NoReturn:
    """Raise an error about a whole file."""
    raise InputError(message, Location(str(path)), hint)


@contextmanager
def located(path: str | Path) -> Iterator[None]:
    """Errors without a place are those of a file."""
    try:
        yield
    except InputError as error:
        raise InputError(error.message, error.location or Location(str(path)), error.hint) from None


def fail_at_nth(
    path: Path, index: int, counts: Callable[[str], bool], message: str, after: int = 0
) -> NoReturn:
    """Raise the error at the `index`-th line after line `after` that `counts` says yes to."""
    with reading(path) as file:
        seen = 0
        for number, line in enumerate(file, 1):
            if number > after and counts(line):
                if seen == index:
                    TextLine(path, number, line).fail(message)
                seen += 1
    refuse(path, message)


def shorten(text: str, length: int = 60) -> str:
    """The text for a message: in quotes, long ones cut."""
    stripped = text.strip()
    return f"'{stripped if len(stripped) <= length else stripped[:length] + '…'}'"


def whole_number(text: str) -> int | None:
    """A number of at most nine digits; None where the text is none."""
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdecimal() and len(stripped) < 10 else None


def truth_or_number(text: str) -> int | bool | None:
    """The value of a variable: true, false or a whole number; None where the text is none."""
    if text in ("true", "false"):
        return text == "true"
    return None if whole_number(text.removeprefix("-")) is None else int(text)


def unknown_state(state: int, states: int) -> str:
    """What is wrong with the number of a state that there is not."""
    return f"there is no state {state}: the states are 0 to {states - 1}"


def first_true(wrong: BoolArray) -> int | None:
    """The index of the first offender, or None."""
    return int(np.argmax(wrong)) if wrong.any() else None
