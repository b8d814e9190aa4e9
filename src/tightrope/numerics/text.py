"""Bounds as text, rounded to the safe side: lower bounds down, upper bounds up.

Numbers start from their shortest decimal form, as in JSON. Text files are UTF-8, plain or compressed.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import TextIO, cast

from tightrope.errors import InputError, Location

DIGITS = 9


def text_below(value: float, digits: int = DIGITS) -> str:
    """The number with so many digits, rounded down: a lower bound stays one where it is written.

    >>> text_below(0.123456), text_below(2 / 3, 4), text_below(float("-inf"))
    ('0.123456', '0.6666', '-inf')
    """
    return _round(value, digits, ROUND_FLOOR)


def text_above(value: float, digits: int = DIGITS) -> str:
    """The same, rounded up."""
    return _round(value, digits, ROUND_CEILING)


def bound_text(value: float, is_lower: bool, digits: int = DIGITS) -> str:
    """A bound on one side: rounded down where it is a lower one, up where it is an upper one.

    >>> bound_text(2 / 3, True, 4), bound_text(2 / 3, False, 4)
    ('0.6666', '0.6667')
    """
    return text_below(value, digits) if is_lower else text_above(value, digits)


def guarantee_text(value: float, is_lower: bool, digits: int = DIGITS) -> str:
    """A bound on one side in words.

    >>> guarantee_text(2 / 3, True, 4), guarantee_text(float("inf"), False)
    ('at least 0.6666', 'no finite upper bound')
    """
    if math.isinf(value) and value > 0.0:
        endless = "the expected reward is infinite (discount it, or bound the steps)"
        return endless if is_lower else "no finite upper bound"
    return f"at {'least' if is_lower else 'most'} {bound_text(value, is_lower, digits)}"


def interval_text(lower: float, upper: float, digits: int = DIGITS) -> str:
    """An interval, both ends rounded outward.

    >>> interval_text(1 / 3, 2 / 3, 4), interval_text(math.inf, math.inf)
    ('[0.3333, 0.6667]', 'infinite')
    """
    if lower == math.inf:
        return "infinite"
    return f"[{text_below(lower, digits)}, {text_above(upper, digits)}]"


def _round(value: float, digits: int, mode: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    shortest = Decimal(repr(float(value)))
    return f"{float(Context(prec=digits, rounding=mode).plus(shortest)):.{digits}g}"


GZIP = ".gz"
"""The ending of compressed files, which are read as what they hold."""


@contextmanager
def reading(path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """The file as text; what goes wrong with it becomes an `InputError` that names it."""
    try:
        with _open(path, encoding) as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"this is not a gzip file, or it is cut off: {error}", Location(str(path))
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("this is not a text file in UTF-8", Location(str(path))) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def read_program_text(path: Path) -> str:
    """The text of a program or of properties: UTF-8, or Latin-1 where it is not, as older files are."""
    try:
        with reading(path) as file:
            return file.read()
    except InputError as error:
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise
        with reading(path, "latin-1") as file:
            text = file.read()
        if "\0" in text:
            raise
        return text


def _open(path: Path, encoding: str) -> TextIO:
    if path.suffix == GZIP:
        return cast(TextIO, gzip.open(path, "rt", encoding=encoding))
    return open(path, encoding=encoding)


def plain_suffix(path: Path) -> str:
    """The ending that says what is in the file: `.drn` of `m.drn` and of `m.drn.gz`."""
    return path.with_suffix("").suffix if path.suffix == GZIP else path.suffix
