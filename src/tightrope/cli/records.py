"""A command's options as one record: each is a field, declared once, and the command takes the record.

    @dataclass(frozen=True, kw_only=True)
    class Request(SubjectOptions):
        gap: Annotated[str | None, option("--gap", "The width that is wanted.", "E")] = None

    @takes(Request)
    def plan(asked: Request) -> None: ...

Fields that are records themselves stand for their fields. The records here are those that commands share.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_type_hints

from tightrope.cli import options
from tightrope.cli.flags import OPTIONS
from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.cli.log_source import LogRequest

R = TypeVar("R")


def takes(record: type[R]) -> Callable[[Callable[[R], None]], Callable[..., None]]:
    """Let typer see the fields of a record as the options of a command, which is called with the record."""

    def decorate(command: Callable[[R], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: object) -> None:
            command(_build(record, given))

        parameters = list(_list_parameters(record))
        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _list_parameters(record: type) -> Iterator[inspect.Parameter]:
    kinds = get_type_hints(record, include_extras=True)
    for field in fields(record):
        if is_dataclass(kind := kinds[field.name]):
            assert isinstance(kind, type)
            yield from _list_parameters(kind)
        else:
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            yield inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )


def _build(record: Any, given: Mapping[str, object]) -> Any:
    kinds = get_type_hints(record)
    return record(
        **{
            field.name: _build(kind, given) if is_dataclass(kind := kinds[field.name]) else given[field.name]
            for field in fields(record)
        }
    )


def list_given(asked: Any, names: str | None = None) -> list[str]:
    """The options of a record that are given, of those by these names of fields or of all."""
    given = []
    for name in names.split() if names is not None else (field.name for field in fields(asked)):
        value = getattr(asked, name)
        if not (value is None or value is False or value == []):
            given.append(OPTIONS.get(name, f"--{name.replace('_', '-')}"))
    return given


def refuse_options(asked: object, names: str, why: str = "it does not go with continuous time") -> None:
    """Refuse options of a record, by the names of its fields, that make no sense for the model given."""
    for option in list_given(asked, names):
        refuse(option, why)


def refuse(option: str, why: str = "it does not go with continuous time") -> NoReturn:
    """An option that is there, and why it must not be."""
    raise InputError(f"{option}: {why}", hint=f"leave {option} out")


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model."""

    model: options.Model
    const: options.Const = None
    param: options.Param = None
    domain: options.Domain = None


@dataclass(frozen=True, kw_only=True)
class SubjectOptions(ModelOptions):
    """Which model, and what is asked of it."""

    prop: options.Prop = None
    discount: options.Discount = None
    terminal_reward: options.TerminalReward = None


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """How a log is read, under the names of `ReadOptions`."""

    states: options.States = None
    columns: options.Columns = None
    maps: options.Map = None
    format: options.DataFormatName = None
    skip_invalid: options.SkipInvalid = False
    ends: options.Ends = None
    watched_until: options.WatchedUntil = None
    until_now: options.UntilNow = False
    order: options.Order = None
    drop_duplicates: options.DropDuplicates = False
    gaps: options.Gaps = None
    reading: options.ReadingFile = None

    def request(self, places: Sequence[str]) -> LogRequest:
        """The log at these places, read as these options say."""
        from tightrope.cli.log_source import LogRequest
        from tightrope.data.read_options import ReadOptions, event_number

        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in given.items():
            if isinstance(value, Enum):
                given[name] = value.value
            elif name in ("since", "chosen_at"):
                given[name] = event_number(name, value)
        return LogRequest(tuple(places), ReadOptions(**given).resolved())


@dataclass(frozen=True, kw_only=True)
class DesignedLogOptions(LogOptions):
    """… and how it was collected."""

    design: options.Design = None
    planned_episodes: options.PlannedEpisodes = None


@dataclass(frozen=True, kw_only=True)
class CountedLogOptions(DesignedLogOptions):
    """… and where it is counted."""

    engine: options.EngineName = "local"
    scheduler: options.Scheduler = None
