"""The formats of log files, found by the endings of their names. A package of somebody else's adds one:

    [project.entry-points."tightrope.logs"]
    mine = "my_package.my_format:MyLogs"

`MyLogs` is a `LogFormat` with a name, endings and `batches(path)`, the record batches of a file.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath

from tightrope.io.registry import with_plugins
from tightrope.io.table.arrow import Arrow, Parquet
from tightrope.io.table.data_table import LogFormat
from tightrope.io.table.text import Csv, JsonLines

GROUP = "tightrope.logs"
BUILT_IN: tuple[LogFormat, ...] = (Csv(), JsonLines(), Parquet(), Arrow())
COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

Kind = tuple[LogFormat, str | None]
"""A format, and how it is compressed."""


@cache
def log_formats() -> tuple[LogFormat, ...]:
    """All formats: ours first, then those of other packages by their names."""
    return with_plugins(BUILT_IN, GROUP, LogFormat, "format of logs")


def format_of(name: str) -> Kind | None:
    """What an ending says: the format and the compression; None where it says nothing."""
    path = PurePosixPath(name.lower())
    compression = COMPRESSION.get(path.suffix)
    if compression is not None:
        path = path.with_suffix("")
    for known in (BUILT_IN, log_formats()) if path.suffix else ():
        for form in known:
            if path.suffix in form.suffixes:
                return None if compression and not form.is_text else (form, compression)
    return None


def endings() -> tuple[str, ...]:
    """The endings of all formats."""
    return tuple(ending for form in log_formats() for ending in form.suffixes)
