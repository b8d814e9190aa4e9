"""Bounds as text, rounded to the safe side: lower bounds down, upper bounds up.

Numbers start from their shortest decimal form, as in JSON. Text files are UTF-8, plain or compressed.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from tightrope.errors import InputError, Location, similar_file
from tightrope_check.report import DIGITS as DIGITS
from tightrope_check.report import bounded as bounded
from tightrope_check.report import confidence_text as confidence_text
from tightrope_check.report import interval_text as interval_text
from tightrope_check.report import round_text
from tightrope_check.report import text_above as text_above
from tightrope_check.report import text_below as text_below
from tightrope_check.report import value_text as value_text


def number_text(value: float, digits: int = DIGITS) -> str:
    """Round a number that is no bound to the nearest.

    >>> number_text(2 / 3), number_text(6120.04), number_text(0.1, 2)
    ('0.66667', '6,120', '0.1')
    """
    return round_text(value, digits)


def bound_text(value: float, is_lower: bool, digits: int = DIGITS) -> str:
    """A bound on one side: rounded down where it is a lower one, up where it is an upper one.

    >>> bound_text(2 / 3, True, 4), bound_text(2 / 3, False, 4), bounded(2 / 3, True, 4)
    ('0.6666', '0.6667', '>= 0.6666')
    >>> text_below(1234567.8), text_below(float("-inf")), confidence_text(0.1 / 3), confidence_text(1e-12)
    ('1,234,500', '-inf', '0.96666', '0.999999999999')
    >>> interval_text(1 / 3, 2 / 3, 4), interval_text(0.5, 0.5000004), interval_text(1e13, 1e99)
    ('[0.3333, 0.6667]', '[0.5, 0.5000004]', '[1e13, 1e99]')
    >>> value_text(0.9774999999, 0.9775000001), value_text(0.25, 0.5), value_text(2.0, 2.0)
    ('= 0.9775 (error <= 1.1e-10)', 'in [0.25, 0.5]', '= 2')
    """
    return text_below(value, digits) if is_lower else text_above(value, digits)


def sure_text(delta: float) -> str:
    """How sure a claim is: at a confidence, or over all parameters of a domain where nothing was learned."""
    return f"confidence {confidence_text(delta)}" if delta else "over the domain"


def claim_text(question: str, relation: str, subject: str = "") -> str:
    """What is claimed: the quantity that a property asks for, the relation, and whose it is.

    >>> claim_text('Pmax=? [ F "a" ]', ">= 0.7", "the robust policy")
    'probability >= 0.7 for the robust policy'
    >>> claim_text('R{"time"}min=? [ F "a" ]', "<= 12")
    'expected time <= 12'
    """
    return f"{quantity_of(question)} {relation}{subject and f' for {subject}'}"


def quantity_of(question: str) -> str:
    """The quantity that a property asks for.

    >>> [quantity_of(text) for text in ("Pmin=? [ X a ]", "Rmin=? [ S ]", "LRAmax=? [ a ]", "T=? [ F a ]")]
    ['probability', 'long-run average cost', 'long-run probability', 'expected time']
    """
    operator = _ASKED.match(question)
    if operator is None:
        return "value"
    if operator["kind"] in ("S", "LRA"):
        return "long-run probability"
    reward = (operator["name"] or ("cost" if operator["way"].startswith("min") else "reward")).replace(
        "_", " "
    )
    if operator["kind"] == "R" and re.search(r"\[ *(S|LRA)\b[^\]]*\] *$", question):
        return f"long-run average {reward}"
    return {"P": "probability", "T": "expected time", "R": f"expected {reward}"}[operator["kind"]]


_ASKED = re.compile(r'(?P<kind>P|S|LRA|R|T)(?:\{"?(?P<name>[^"}]*)"?\})?(?P<way>(?:min|max)*)(?=[<>=\[ ])')


GZIP = ".gz"
"""The ending of compressed files, which are read as what they hold."""


@contextmanager
def reading(path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """The file as text; what goes wrong with it becomes an `InputError` that names it."""
    try:
        opened = gzip.open if path.suffix == GZIP else open
        with cast(TextIO, opened(path, "rt", encoding=encoding)) as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"this is not a gzip file, or it is cut off: {error}", Location(str(path))
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("this is not a text file in UTF-8", Location(str(path))) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", hint=similar_file(path)) from error


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


def plain_suffix(path: Path) -> str:
    """The ending that says what is in the file: `.drn` of `m.drn` and of `m.drn.gz`."""
    return path.with_suffix("").suffix if path.suffix == GZIP else path.suffix
