"""A reading that is saved: what the columns of a log are, what its values mean, its ends and its order, so
that the same log, or the next one, is read in the same way by every command.

    reading = 1
    states = "variables"
    ends = "complete"

    [columns]
    wear = "Verschleiss"
    time = "Zeit:%d.%m.%Y %H:%M"

    [maps]
    action = "W=repair, B=run"

The keys are the names of the options. What is given beside a reading takes the place of what it says.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, Location, check_type

VERSION = 1
MOST_BYTES = 1 << 20
TABLES = ("columns", "maps")
KINDS: Mapping[str, Any] = {
    "states": str,
    "format": str,
    "design": str,
    "planned_episodes": int,
    "ends": str,
    "watched_until": str | float | int,
    "until_now": bool,
    "order": str,
    "gaps": str,
    "drop_duplicates": bool,
    "skip_invalid": bool,
}
"""The single values of a reading, in the order in which they are written."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def load_reading(path: str | Path) -> dict[str, Any]:
    """What a file says, by the names of `ReadOptions`; unknown keys are refused with their place."""
    check_type("reading", path, str | Path, "the name of a file")
    place = Location(str(path))
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise InputError(f"a reading has at most {MOST_BYTES:,} bytes", place)
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"the reading cannot be read: {words}", place) from error
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r"line (\d+), column (\d+)", str(error))
        here = place if found is None else _at(path, text, int(found[1]), int(found[2]))
        raise InputError(f"the reading is no TOML: {str(error).split(' (at')[0]}", here) from error
    if content.pop("reading", None) != VERSION:
        raise InputError(
            f"this is no reading of a log: it does not begin with reading = {VERSION}",
            place,
            "`tightrope data LOG --model M -o NAME.reading.toml` writes one",
        )
    for name, value in content.items():
        if name not in (*KINDS, *TABLES):
            known = ", ".join((*KINDS, *TABLES))
            raise InputError(f"a reading has no key '{name}'", _find(path, text, name), f"known are {known}")
        entries = value.items() if name in TABLES and isinstance(value, dict) else None
        if name in TABLES and (entries is None or not all(isinstance(one, str) for _, one in entries)):
            raise InputError(f"'{name}' is no table of texts", _find(path, text, name))
        fits = isinstance(value, bool) == (KINDS.get(name) is bool)
        if name in KINDS and not (fits and isinstance(value, KINDS[name])):
            raise InputError(f"'{name}' is {value!r}, which says nothing", _find(path, text, name))
    return content


def reading_text(values: Mapping[str, Any]) -> str:
    """The file of a reading, by the names of `ReadOptions`; what is None or False is left out.

    >>> print(reading_text({"ends": "complete", "columns": {"time": "Zeit:%d.%m.%Y"}}))
    reading = 1
    ends = "complete"
    <BLANKLINE>
    [columns]
    time = "Zeit:%d.%m.%Y"
    <BLANKLINE>
    """
    lines = [f"reading = {VERSION}"]
    for name in KINDS:
        if (value := values.get(name)) is not None and value is not False:
            lines.append(f"{name} = {_value(value)}")
    for name in TABLES:
        if table := values.get(name):
            lines += ["", f"[{name}]", *(f"{_key(role)} = {_value(table[role])}" for role in table)]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _find(path: str | Path, text: str, name: str) -> Location:
    """Where a key stands."""
    form = re.compile(rf"\s*\[?\s*[\"']?{re.escape(name)}[\"']?\s*[=\].]")
    for number, line in enumerate(text.splitlines(), start=1):
        if form.match(line):
            return Location(str(path), number, None, line)
    return Location(str(path))


def _at(path: str | Path, text: str, line: int, column: int) -> Location:
    lines = text.splitlines()
    return Location(str(path), line, column, lines[line - 1] if line <= len(lines) else None)
