"""How a log is to be read, where the user says so: the same words on the command line and in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tightrope.data.cluster import LOCAL, Place, parse_place
from tightrope.data.column_names import TIME, WATCHED_UNTIL, column_entries, parse_columns
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.recent import Recent
from tightrope.data.saved_reading import KINDS, load_reading
from tightrope.data.state_form import StateForm, StateNames
from tightrope.data.value_maps import map_entries
from tightrope.errors import InputError, check_type

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
class ReadOptions:
    """What the user says about a log; None where nothing is said.

    `states` is index, variables or own. `columns` and `maps` are those of `--columns` and `--map`: their
    texts, or mappings. `design` says how the data were collected, `planned_episodes` how many episodes were
    planned. `format` is that of files whose names do not say it. `engine` and `scheduler` say where parts of
    the log are counted (`tightrope.data.cluster`). `ends` = "complete" states that every episode is whole;
    `watched_until` is the time up to which all were watched, or the column that says so of each episode,
    `until_now` that those that are not over went on until the log's last instant. `order`
    states that rows stand "as-read", in the order in which they happened, or that one clock runs for all
    episodes ("time"). `drop_duplicates` drops rows that were logged twice. `gaps` = "outage"
    states that rows are missing within episodes for reasons of their own. `reading` is the file of a saved
    reading (`tightrope.data.saved_reading`), which says all of this where nothing else is said. `since`,
    `window` and `chosen_at` say which events are kept (`tightrope.data.recent`).
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
    said: tuple[str, ...] = ()

    def resolved(self) -> ReadOptions:
        """With what a saved reading says where nothing else is said; `said` are the words in which that was
        overridden."""
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
        return replace(self, **own, reading=None, said=tuple(notes))

    def saved(self, columns: Mapping[str, str], states: str | None) -> dict[str, Any]:
        """What a saved reading says: all columns as they were read, and whatever was said of the log."""
        columns = {role: name for role, name in columns.items() if role != WATCHED_UNTIL}
        given = parse_columns(self.columns, [role.removesuffix("'") for role in columns])
        timed = {TIME: f"{columns[TIME]}:{given.time_format}"} if given.time_format else {}
        kept: dict[str, Any] = {name: getattr(self, name) for name in KINDS}
        stated = self.stated_design
        kept["design"] = stated.value if isinstance(stated, SamplingKind) else None
        kept["states"] = states
        return {**kept, "columns": {**columns, **timed}, "maps": map_entries(self.maps or {})}

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
                said = " or ".join(f"'{word}'" for word in known)
                raise InputError(f"`{name}` is {value!r}, and it may be {said}")
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
        found = Recent(self.since, self.window, self.chosen_at)
        if self.design is not None or self.planned_episodes is not None:
            raise InputError(
                "what is left of a log when its first events are left out follows no design, and no plan",
                hint="leave `design` and `planned_episodes` out: time-uniform methods need neither",
            )
        return found

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
