"""Text files as they come: UTF-8, plain or compressed, and what may be wrong with them in words."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from tightrope.errors import InputError, Location

GZIP = ".gz"
"""The ending of compressed files, which are read as what they hold."""


@contextmanager
def reading(path: Path) -> Iterator[TextIO]:
    """The file as UTF-8 text; what goes wrong with it becomes an `InputError` that names it."""
    try:
        with _open(path) as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"this is not a gzip file, or it is cut off: {error}", Location(str(path))
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("this is not a text file in UTF-8", Location(str(path))) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _open(path: Path) -> TextIO:
    if path.suffix == GZIP:
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8"))
    return open(path, encoding="utf-8")


def plain_suffix(path: Path) -> str:
    """The ending that says what is in the file: `.drn` of `m.drn` and of `m.drn.gz`."""
    return path.with_suffix("").suffix if path.suffix == GZIP else path.suffix
