"""Import settings of logs: the same names in the terminal, in Python and in a file.

    reading = 1
    states = "variables"
    ends = "complete"

    [columns]
    wear = "Verschleiss"
    time = "Zeit:%d.%m.%Y %H:%M"

    [maps]
    action = "W=repair, B=run"

The keys are names of options. Options given beside such a file take precedence.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError, Location, check_type

if TYPE_CHECKING:
    from tightrope.data.columns import StateForm, StateNames
    from tightrope.data.design import SamplingDesign, SamplingKind

LOCAL = "local"
"""This machine, where logs are read unless something else is said."""


@dataclass(frozen=True)
class LogWord:
    """How a field of `LogWords` is said elsewhere: its option in a terminal, with what it takes there
    (`kind`); the type of its value in a saved reading, None where that has no such key. `about`: what a log
    must have, so that the word means something."""

    flag: str
    help: str
    metavar: str | None
    kind: object = str
    saved: type | UnionType | None = None
    about: str = ""


WORD = "word"
STEPS, ROWS = "steps", "rows"
"""What words are about: logs of steps, not those in continuous time; single rows and their times, which
tables of counts do not have."""


def word(
    flag: str,
    help: str,
    metavar: str | None = None,
    kind: object = str,
    *,
    default: object = None,
    saved: type | UnionType | None = None,
    about: str = "",
) -> Any:
    """A field that can be said in a terminal."""
    default = False if kind is bool else default
    return field(default=default, metadata={WORD: LogWord(flag, help, metavar, kind, saved, about)})


@dataclass(frozen=True)
class LogWords:
    """What the user says about a log; None where nothing is said.

    In Python `columns` and `maps` are texts as in a terminal, or mappings. `threads` read a log on this
    machine, and `progress` is told now and then how far they are. `observers` make what takes the events of
    long logs: None stands for the tables of the tests of fit. `overridden` are the words that are not as a
    saved reading has them.
    """

    states: StateNames | StateForm | str | None = word(
        "--states",
        "How the log names states: by the model's index, its variables, or user-defined names. By "
        "default the columns decide.",
        "index|variables|own",
        saved=str,
    )
    columns: Sequence[str] | Mapping[str, str] | None = word(
        "--columns",
        "The role of columns; 'step=' uses none, 'next_state=' takes the next row's state.",
        '"wear=level, wear\'=next_level, action=cmd"',
        list[str],
    )
    maps: Sequence[str] | Mapping[str, object] | None = word(
        "--map",
        "Convert values to those of the model: names, or units ('wear: *10').",
        "'action: 0=repair, 1=run'",
        list[str],
    )
    format: str | None = word(
        "--data-format",
        "File format, if the file name does not show it; also csv.gz etc.",
        "csv|jsonl|parquet|arrow",
        saved=str,
    )
    design: SamplingDesign | SamplingKind | str | None = word(
        "--design",
        "Sampling design: a policy fixed in advance (fixed), a number of draws per choice fixed "
        "in advance (generative), or neither (adaptive, the default).",
        "fixed|adaptive|generative",
        saved=str,
        about=STEPS,
    )
    planned_episodes: int | None = word(
        "--planned-episodes", "Number of episodes planned in advance.", "N", int, saved=int, about=STEPS
    )
    ends: str | None = word(
        "--ends",
        "State that no row is missing at the end of an episode. Not needed if a column or an "
        "absorbing state shows how episodes ended.",
        "complete",
        saved=str,
    )
    watched_until: str | float | None = word(
        "--watched-until",
        "The time until which all episodes were observed, or a column with that time.",
        "TIME",
        saved=str | float | int,
        about=ROWS,
    )
    until_now: bool = word(
        "--until-now",
        "State that unfinished episodes were observed until the last time of the log. Actions "
        "without an outcome at that time are excluded.",
        kind=bool,
        saved=bool,
        about=ROWS,
    )
    order: str | None = word(
        "--order",
        "State that rows are in time order (as-read), or that all episodes share one clock (time).",
        "as-read|time",
        saved=str,
        about=STEPS,
    )
    gaps: str | None = word(
        "--gaps",
        "State that gaps do not depend on outcomes: each gap ends an episode, and the next row "
        "begins another.",
        "outage",
        saved=str,
        about=f"{STEPS} {ROWS}",
    )
    drop_duplicates: bool = word(
        "--drop-duplicates",
        "Drop rows that repeat the one before, at the same time or step.",
        kind=bool,
        saved=bool,
        about=ROWS,
    )
    skip_invalid: bool = word(
        "--skip-invalid",
        "Drop and count rows that are invalid or that the model excludes; the result is then nominal.",
        kind=bool,
        saved=bool,
        about=STEPS,
    )
    known: str | None = word(
        "--known",
        "State that these columns were written before the outcome of their row. Without it, a "
        "contradiction by a column makes the result nominal.",
        "COLUMNS",
        saved=str,
    )
    ignored: str | None = word(
        "--ignored", "Columns to leave out of the model-fit test.", "COLUMNS", saved=str
    )
    since: int | str | None = word(
        "--since",
        "Exclude the events before this one, numbered as 'watch' prints them.",
        "EVENT",
        about=STEPS,
    )
    window: int | None = word("--window", "Use only the last N events.", "N", int, about=STEPS)
    chosen_at: int | str | None = word(
        "--chosen-at",
        "With --since or --window: the last event seen when you chose it, such as that of an "
        "alarm; 0 if planned. Without it the result is nominal.",
        "EVENT",
        about=STEPS,
    )
    reading: str | Path | None = word(
        "--reading",
        "Use import settings saved by 'tightrope data -o'; other options take precedence.",
        "FILE",
        Path,
    )
    engine: str = word(
        "--engine",
        "Where the log is counted: on this machine, or by workers of a Dask or Spark cluster that "
        "see the same files.",
        "local|dask|spark|dask://HOST:PORT|spark://HOST:PORT",
        default=LOCAL,
    )
    scheduler: str | None = word(
        "--scheduler",
        "With --engine dask or spark: a running scheduler; without it workers start on this machine.",
        "HOST:PORT",
    )
    threads: int | None = None
    progress: Callable[[Any], None] | None = None
    observers: tuple[Any, ...] | None = None
    overridden: tuple[str, ...] = ()


VERSION = 1
MOST_BYTES = 1 << 20
TABLES = ("columns", "maps")
WORDS: Mapping[str, LogWord] = {
    one.name: one.metadata[WORD] for one in fields(LogWords) if WORD in one.metadata
}
"""What can be said in a terminal, by the names of the fields."""

LOG_WORDS = " ".join(name for name in WORDS if name != "reading")
"""The fields of options that `tightrope data --help` describes for all commands."""

KINDS = {name: one.saved for name, one in WORDS.items() if one.saved is not None}
"""The single values of a reading, in the order in which they are written."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def load_reading(path: str | Path) -> dict[str, Any]:
    """What a file says, by the names of `LogWords`; unknown keys are refused with their place."""
    check_type("reading", path, str | Path, "the name of a file")
    place = Location(str(path))
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise InputError(f"a file of import settings has at most {MOST_BYTES:,} bytes", place)
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"the import settings cannot be read: {words}", place) from error
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        at = re.search(r"line (\d+), column (\d+)", str(error))
        here = place if at is None else _at(path, text, int(at[1]), int(at[2]))
        raise InputError(f"the import settings are not TOML: {str(error).split(' (at')[0]}", here) from error
    if content.pop("reading", None) != VERSION:
        raise InputError(
            f"this is not a file of import settings: it does not begin with reading = {VERSION}",
            place,
            "`tightrope data LOG --model M -o NAME.reading.toml` writes one",
        )
    for name, value in content.items():
        if name not in (*KINDS, *TABLES):
            known = ", ".join((*KINDS, *TABLES))
            raise InputError(
                f"import settings have no key '{name}'", _find(path, text, name), f"known values: {known}"
            )
        entries = value.items() if name in TABLES and isinstance(value, dict) else None
        if name in TABLES and (entries is None or not all(isinstance(one, str) for _, one in entries)):
            raise InputError(f"'{name}' is not a table of texts", _find(path, text, name))
        fits = isinstance(value, bool) == (KINDS.get(name) is bool)
        if name in KINDS and not (fits and isinstance(value, KINDS[name])):
            raise InputError(f"'{name}' is {value!r}, which is not a value", _find(path, text, name))
    return content


def reading_text(values: Mapping[str, Any]) -> str:
    """The file of a reading, by the names of `LogWords`; what is None or False is left out.

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
            keys = {role: role if _BARE.fullmatch(role) else _value(role) for role in table}
            lines += ["", f"[{name}]", *(f"{key} = {_value(table[role])}" for role, key in keys.items())]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


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
