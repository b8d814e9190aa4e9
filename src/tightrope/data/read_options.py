"""How a log is to be read, where the user says so: the words (`tightrope.io.log_words`), checked, and what
they mean for a log."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Parameter, Signature, signature
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from tightrope.data.columns import TIME, WATCHED_UNTIL, StateNames, column_entries, form_of, parse_columns
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.engines import Place, parse_place
from tightrope.data.rows import map_entries
from tightrope.errors import InputError, check_keywords, check_type
from tightrope.io.log_words import KINDS, WORDS, LogWords, load_reading

DESIGNS = {
    "fixed": SamplingKind.TRAJECTORIES,
    "adaptive": SamplingKind.ADAPTIVE,
    "generative": SamplingKind.GENERATIVE_FIXED,
    **{kind.value: kind for kind in SamplingKind},
}
"""`fixed`: episodes under a policy fixed in advance; `generative`: draws per choice fixed in advance."""


COMPLETE, AS_READ, BY_TIME = "complete", "as-read", "time"
"""What may be stated of a log: that its episodes are whole, and in which order its rows happened."""


class Recent(NamedTuple):
    """What is to be kept: the events from number `since` on, or the last `window` of them."""

    since: int | None = None
    window: int | None = None
    chosen_at: int | None = None


@dataclass(frozen=True)
class LogReadOptions(LogWords):
    """What the user says about a log, with what that means."""

    @staticmethod
    def of(function: str, words: Mapping[str, object], besides: Sequence[str] = ()) -> LogReadOptions:
        """The keyword arguments of a function that reads logs, with a saved reading, checked."""
        names = [one.name for one in fields(LogReadOptions) if one.name != "overridden"]
        options = LogReadOptions(**check_keywords(function, names, words, besides)).resolved()
        options.check()
        return options

    def given(self, about: str) -> list[str]:
        """The words about something that are given, for messages."""
        return [f"`{name}`" for name, one in WORDS.items() if about in one.about and getattr(self, name)]

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

    def saved(self, columns: Mapping[str, str], states: str | None) -> dict[str, object]:
        """What a saved reading says: all columns as they were read, and whatever was said of the log."""
        columns = {role: name for role, name in columns.items() if role != WATCHED_UNTIL}
        given = parse_columns(self.columns, [role.removesuffix("'") for role in columns])
        timed = {TIME: f"{columns[TIME]}:{given.time_format}"} if given.time_format else {}
        values: dict[str, object] = {name: getattr(self, name) for name in KINDS}
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
        for name, one in WORDS.items():
            value, known = getattr(self, name), (one.metavar or "").split("|")
            if one.kind is bool:
                check_type(name, value, bool, "True or False")
            elif one.kind == list[str] and value is not None:
                check_type(name, value, Sequence | Mapping, "a mapping, or texts")
            elif name in ("ends", "order", "gaps") and value is not None and value not in known:
                allowed = " or ".join(f"'{word}'" for word in known)
                raise InputError(f"`{name}` is {value!r}, and it may be {allowed}")
        said_ends = [self.ends is not None, self.watched_until is not None, self.until_now]
        if sum(said_ends) > 1:
            raise InputError(
                "`ends`, `watched_until` and `until_now` each state how episodes ended",
                hint="give one of them",
            )
        for name in ("state_names", "stated_design", "place", "recent"):
            getattr(self, name)

    @property
    def recent(self) -> Recent | None:
        """`since`, `window` and `chosen_at`, checked; None where all events are kept."""
        given = {name: getattr(self, name) for name in Recent._fields}
        if set(given.values()) == {None}:
            return None
        counted = "events are counted from 1 in the order of the log, as `watch` prints them"
        for name, value in given.items():
            if isinstance(value, str):  # as people write it, and `watch` prints it: 38207 or 38,207
                if not re.fullmatch(r"\d+|\d{1,3}(,\d{3})+", value.strip()):
                    hint = f"{counted}; dates and episodes are not read here"
                    raise InputError(f"`{name}` is '{value}', not the number of an event", hint=hint)
                given[name] = value = int(value.replace(",", ""))
            least = int(name != "chosen_at")
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (is_number and value >= least):
                message = f"`{name}` is {value!r}, not a number of events from {least} on"
                raise InputError(message, hint=counted)
        recent = Recent(**given)
        if recent.since is not None and recent.window is not None:
            raise InputError("`since` and `window` both select events", hint="leave one of them out")
        if recent.since is None and recent.window is None:
            raise InputError(
                "`chosen_at` is the time at which events were selected, and none are",
                hint="add `since` or `window`, or leave `chosen_at` out",
            )
        if self.design is not None or self.planned_episodes is not None:
            raise InputError(
                "a log without its first events has no sampling design and no plan",
                hint="leave `design` and `planned_episodes` out: time-uniform methods need neither",
            )
        return recent

    @property
    def state_names(self) -> StateNames | None:
        """`states`, checked."""
        return form_of(self.states, StateNames)

    @property
    def stated_design(self) -> SamplingDesign | SamplingKind | None:
        """`design`, checked."""
        if self.planned_episodes is not None:
            check_type("planned_episodes", self.planned_episodes, int, "a number of episodes")
        if self.planned_episodes is not None and self.planned_episodes < 1:
            raise InputError(f"`planned_episodes` is {self.planned_episodes}, not a positive number")
        if self.design is None or isinstance(self.design, SamplingDesign | SamplingKind):
            return self.design
        check_type("design", self.design, str, "the name of a sampling design")
        if self.design not in DESIGNS:
            raise InputError(
                f"'{self.design}' is not a sampling design",
                hint="known values: fixed, generative and adaptive",
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


P = ParamSpec("P")
M = TypeVar("M")
R = TypeVar("R")


def with_words(
    record: Callable[P, LogReadOptions],
) -> Callable[[Callable[[object, M, LogReadOptions], R]], Callable[Concatenate[object, M, P], R]]:
    """Let a function of data, a model and the record take the fields of the record as keyword arguments."""

    def decorate(read: Callable[[object, M, LogReadOptions], R]) -> Callable[Concatenate[object, M, P], R]:
        @functools.wraps(read)
        def call(data: object, model: M, **words: object) -> R:
            return read(data, model, LogReadOptions.of(read.__name__, words))

        given = [one for one in signature(record).parameters.values() if one.name != "overridden"]
        own = [*signature(read).parameters.values()][:2]
        words = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in given]
        vars(call)["__signature__"] = Signature([*own, *words])
        return cast("Callable[Concatenate[object, M, P], R]", call)

    return decorate
