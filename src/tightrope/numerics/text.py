"""Bounds as text, rounded to the safe side: lower bounds down, upper bounds up.

Numbers start from their shortest decimal form, as in JSON. Text files are UTF-8, plain or compressed.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from tightrope.errors import InputError, Location
from tightrope_check.report import DIGITS as DIGITS
from tightrope_check.report import interval_text as interval_text
from tightrope_check.report import text_above as text_above
from tightrope_check.report import text_below as text_below


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
