"""How a log is to be read, where the user says so: the same words in a terminal, in Python and in a file.

A reading can be saved, so that the same log, or the next one, is read in the same way by every command:

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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tightrope.data.columns import TIME, WATCHED_UNTIL, StateForm, StateNames, column_entries, parse_columns
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.engines import LOCAL, Place, parse_place
from tightrope.data.event_stream import Recent
from tightrope.data.rows import map_entries
from tightrope.errors import InputError, Location, check_type
from tightrope.late import dataclass

DESIGNS = {
    "fixed": SamplingKind.TRAJECTORIES,
    "adaptive": SamplingKind.ADAPTIVE,
    "generative": SamplingKind.GENERATIVE_FIXED,
    **{kind.value: kind for kind in SamplingKind},
}
"""`fixed`: episodes under a policy fixed in advance; `generative`: draws per choice fixed in advance."""


COMPLETE, AS_READ, BY_TIME, OUTAGE = "complete", "as-read", "time", "outage"
"""What may be stated of a log: that its episodes are whole, and in which order its rows happened."""

ROW_WORDS = ("watched_until", "until_now", "gaps", "drop_duplicates")
"""Options that speak of single rows and their times, which a table of counts does not have."""


def event_number(name: str, text: str | None) -> int | None:
    """The number of an event as people write it, and `watch` prints it: 38207 or 38,207."""
    if text is None:
        return None
    if not re.fullmatch(r"\d+|\d{1,3}(,\d{3})+", text.strip()):
        raise InputError(
            f"`{name}` is '{text}', not the number of an event",
            hint="events are counted from 1 in the order of the log, as `watch` prints them; dates and "
            "episodes are not read here",
        )
    return int(text.replace(",", ""))


@dataclass(frozen=True)
class LogReadOptions:
    """What the user says about a log; None where nothing is said.

    `states` is index, variables or own. `columns` and `maps` are those of `--columns` and `--map`: their
    texts, or mappings. `design` says how the data were collected, `planned_episodes` how many episodes were
    planned. `format` is that of files whose names do not say it. `engine` and `scheduler` say where parts of
    the log are counted (`tightrope.data.engines`). `ends` = "complete" states that every episode is whole;
    `watched_until` is the time up to which all were watched, or the column that says so of each episode,
    `until_now` that those that are not over went on until the log's last instant. `order`
    states that rows stand "as-read", in the order in which they happened, or that one clock runs for all
    episodes ("time"). `drop_duplicates` drops rows that were logged twice. `gaps` = "outage"
    states that rows are missing within episodes for reasons of their own. `reading` is the file of a saved
    reading (`tightrope.data.read_options`), which says all of this where nothing else is said. `since`,
    `window` and `chosen_at` say which events are kept (`tightrope.data.event_stream`). `known` names columns
    without a role that were written before the outcomes of their rows, `ignored` those that are not looked
    at, with commas between them.
    """

    states: StateNames | StateForm | str | None = None
    columns: Sequence[str] | Mapping[str, str] | None = None
    maps: Sequence[str] | Mapping[str, Any] | None = None
    design: SamplingDesign | SamplingKind | str | None = None
    planned_episodes: int | None = None
    skip_invalid: bool = False
    format: str | None = None
    threads: int | None = None
    engine: str = LOCAL
    scheduler: str | None = None
    since: int | None = None
    window: int | None = None
    chosen_at: int | None = None
    ends: str | None = None
    watched_until: str | float | None = None
    until_now: bool = False
    order: str | None = None
    drop_duplicates: bool = False
    reading: str | Path | None = None
    gaps: str | None = None
    known: str | None = None
    ignored: str | None = None
    overridden: tuple[str, ...] = ()

    def resolved(self) -> LogReadOptions:
        """With what a saved reading says where nothing else is; `overridden` notes what is not as it says."""
        if self.reading is None:
            return self
        saved, own, over = load_reading(self.reading), dict[str, Any](), list[str]()
        for name, value in saved.items():
            given = getattr(self, name)
            if given is None or given is False:
                own[name] = value
                continue
            if name in ("columns", "maps"):
                mine = column_entries(given) if name == "columns" else map_entries(given)
                over += [f"{name}: {role}" for role in mine if role in value and value[role] != mine[role]]
                own[name] = {**value, **mine}
            elif given != value:
                over.append(name)
        notes = [f"{word} is not as the reading {self.reading} has it" for word in over]
        return replace(self, **own, reading=None, overridden=tuple(notes))

    def saved(self, columns: Mapping[str, str], states: str | None) -> dict[str, Any]:
        """What a saved reading says: all columns as they were read, and whatever was said of the log."""
        columns = {role: name for role, name in columns.items() if role != WATCHED_UNTIL}
        given = parse_columns(self.columns, [role.removesuffix("'") for role in columns])
        timed = {TIME: f"{columns[TIME]}:{given.time_format}"} if given.time_format else {}
        values: dict[str, Any] = {name: getattr(self, name) for name in KINDS}
        stated = self.stated_design
        values["design"] = stated.value if isinstance(stated, SamplingKind) else None
        values["states"] = states
        return {**values, "columns": {**columns, **timed}, "maps": map_entries(self.maps or {})}

    def names(self, word: str) -> tuple[str, ...]:
        """The columns that `known` or `ignored` names."""
        return tuple(name.strip() for name in (getattr(self, word) or "").split(",") if name.strip())

    @property
    def place(self) -> Place:
        """Where parts are counted: what `engine` and `scheduler` say, checked."""
        return parse_place(self.engine, self.scheduler)

    def check(self) -> None:
        """Refuse words that mean nothing."""
        for name in ("columns", "maps"):
            if getattr(self, name) is not None:
                check_type(name, getattr(self, name), Sequence | Mapping, "a mapping, or texts")
        check_type("skip_invalid", self.skip_invalid, bool, "True or False")
        for name, known in (("ends", (COMPLETE,)), ("order", (AS_READ, BY_TIME)), ("gaps", (OUTAGE,))):
            value = getattr(self, name)
            if value is not None and value not in known:
                allowed = " or ".join(f"'{word}'" for word in known)
                raise InputError(f"`{name}` is {value!r}, and it may be {allowed}")
        for name in ("until_now", "drop_duplicates"):
            check_type(name, getattr(self, name), bool, "True or False")
        said_ends = [self.ends is not None, self.watched_until is not None, self.until_now]
        if sum(said_ends) > 1:
            raise InputError(
                "`ends`, `watched_until` and `until_now` each say how episodes ended", hint="give one of them"
            )
        for word in ("state_names", "stated_design", "place", "recent"):
            getattr(self, word)

    @property
    def recent(self) -> Recent | None:
        """`since`, `window` and `chosen_at`, checked; None where all events are kept."""
        if self.since is None and self.window is None and self.chosen_at is None:
            return None
        recent = Recent(self.since, self.window, self.chosen_at)
        if self.design is not None or self.planned_episodes is not None:
            raise InputError(
                "what is left of a log when its first events are left out follows no design, and no plan",
                hint="leave `design` and `planned_episodes` out: time-uniform methods need neither",
            )
        return recent

    @property
    def state_names(self) -> StateNames | None:
        """`states`, checked."""
        if self.states is None or isinstance(self.states, StateNames):
            return self.states
        word = self.states.value if isinstance(self.states, StateForm) else self.states
        try:
            return StateNames(word)
        except ValueError:
            known = ", ".join(names.value for names in StateNames)
            raise InputError(f"states are not named by '{word}'", hint=f"known are {known}") from None

    @property
    def stated_design(self) -> SamplingDesign | SamplingKind | None:
        """`design`, checked."""
        if self.planned_episodes is not None:
            check_type("planned_episodes", self.planned_episodes, int, "a number of episodes")
        if self.planned_episodes is not None and self.planned_episodes < 1:
            raise InputError(f"{self.planned_episodes} planned episodes are none: give a positive number")
        if self.design is None or isinstance(self.design, SamplingDesign | SamplingKind):
            return self.design
        check_type("design", self.design, str, "the name of a sampling design")
        if self.design not in DESIGNS:
            raise InputError(
                f"'{self.design}' is no sampling design",
                hint="known are fixed, generative and adaptive",
            )
        return DESIGNS[self.design]

    @property
    def stated_kind(self) -> SamplingKind | None:
        """The kind of `design`."""
        stated = self.stated_design
        return stated.kind if isinstance(stated, SamplingDesign) else stated

    @property
    def counts_episodes(self) -> bool:
        """Whether batches end after numbers of episodes."""
        return self.planned_episodes is not None or self.stated_kind is SamplingKind.TRAJECTORIES


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
    "known": str,
    "ignored": str,
}
"""The single values of a reading, in the order in which they are written."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def load_reading(path: str | Path) -> dict[str, Any]:
    """What a file says, by the names of `LogReadOptions`; unknown keys are refused with their place."""
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
        at = re.search(r"line (\d+), column (\d+)", str(error))
        here = place if at is None else _at(path, text, int(at[1]), int(at[2]))
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
    """The file of a reading, by the names of `LogReadOptions`; what is None or False is left out.

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
