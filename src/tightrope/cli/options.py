"""Shared options of commands, and the records of options that commands take.

Options of a command are the fields of a record:

    @dataclass(frozen=True, kw_only=True)
    class PlanRequest(SubjectOptions):
        gap: str | None = declare("--gap", "The width that is wanted.", "E")

    @takes(PlanRequest)
    def plan(request: PlanRequest) -> None: ...

Fields that are records stand for their fields. Help shows options in the panels of `PANELS`. An option of
many commands is described in the help of one (`elsewhere`); the others refer to it.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, get_args, get_type_hints

import typer
from typer.models import ArgumentInfo

from tightrope.cli import late
from tightrope.cli.flags import OPTIONS
from tightrope.errors import InputError, Location
from tightrope.io.log_words import LogWords

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class DeviceName(Enum):
    """Where values are computed; what is asked for is used or refused, never replaced."""

    CPU = "cpu"
    CUDA = "cuda"


def option(names: str, help: str, metavar: str | None = None, **checks: Any) -> Any:
    """An option by its names, such as "-o --output"; `checks` are those of typer, such as `min=1`."""
    return typer.Option(*names.split(), help=as_written(help), metavar=metavar, **checks)


def declare(
    names: str, help: str, metavar: str | None = None, *, default: object = None, **checks: object
) -> Any:
    """A field of a record that is an option which no other command has, with its default."""
    return field(default=default, metadata={OPTION: option(names, help, metavar, **checks)})


def switch(names: str, help: str) -> Any:
    """The same of an option that takes no value and is off unless given."""
    return declare(names, help, default=False)


OPTION, WORD = "option", "word"
"""What fields have that are options; `tightrope.data.read_options` has the words."""


def as_written(text: str) -> str:
    """Help that rich shows as it is: '[gpu]' would be a style and vanish."""
    return re.sub(r"\[(?=[a-zA-Z/@#])", r"\\[", text)


MODEL_HELP = (
    "A PRISM file (.prism .nm .pm), a DRN file (.drn), explicit files (.tra, or their common base name), "
    "or a benchmark such as 'bench:betting(50)'."
)

Model = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)]
Const = Annotated[
    list[str] | None, option("--const", "Values for the model's undefined constants.", "n=50,k=2")
]
Cost = Annotated[
    str | None,
    option(
        "--cost",
        "The cost of data: 'episode=1,step=0.01', or a JSON file with prices per action.",
        "TEXT|FILE",
    ),
]


Region = Annotated[
    str | None,
    option(
        "--region",
        "The confidence set of parameters.",
        "[polytope|l1|ellipsoid|likelihood|slab|joint|chi2]",
        autocompletion=lambda incomplete: [
            one for one in late.registry.region_names() if one.startswith(incomplete)
        ],
    ),
]
Avoid = Annotated[
    str | None, option("--avoid", "States to avoid in designed episodes, such as '\"crash\"'.", "FORMULA")
]
AtMost = Annotated[
    float | None,
    option(
        "--at-most", "With --avoid: the largest certified probability of meeting them in an episode.", "P"
    ),
]
Delta = Annotated[float, option("--delta", "The guarantee may fail with this probability.", "D")]
Param = Annotated[
    str | None, option("--param", "The interval of each parameter; [0,1] by default.", "p=0.1:0.9,q=0:1")
]
Domain = Annotated[
    str | None,
    option("--domain", "The domain of the parameters, as linear constraints.", "'0.1<=p<=0.9, p+q<=1'"),
]
At = Annotated[
    str | None,
    option("--at", "A parameter point; default for benchmarks: the true parameters.", "p=0.55,q=0.0004"),
]
Prop = Annotated[
    str | None,
    option("--prop", "The property, such as 'Pmax=? [ F \"goal\" ]'; benchmarks have a default.", "PROPERTY"),
]
Discount = Annotated[
    float | None, option("--discount", "Discount factor per step, for rewards 'C'.", "GAMMA")
]
TerminalReward = Annotated[
    str | None,
    option("--terminal-reward", "Add this reward structure's state reward when a target is reached.", "NAME"),
]
LtlTranslator = Annotated[
    str | None,
    option(
        "--ltl-translator",
        "Translate LTL with this command. It gets the formula on standard input, or in place of "
        "{} in its arguments, and prints a deterministic automaton in HOA. The translation is not "
        "checked.",
        "COMMAND",
    ),
]
AssumeSupport = Annotated[
    float | None,
    option("--assume-support", "Assume that every possible transition has probability at least EPS.", "EPS"),
]
Misfit = Annotated[
    float | None,
    option("--misfit", "Model error per choice (total variation) that the guarantee allows for.", "EPS"),
]
CostRange = Annotated[
    str | None,
    option(
        "--cost-range",
        "Observed costs (a column 'cost') lie between these two numbers, or have at most this standard "
        "deviation, given state and action: parameters in rewards are learned from them, rewards of numbers "
        "tested.",
        "LOW,HIGH|sd=S",
    ),
]
CoupledGap = Annotated[
    float | None,
    option(
        "--coupled-gap",
        "With --sets coupled: the share of the interval that may lack witnesses (default 0.02).",
        "SHARE",
    ),
]
_DATA = option(
    "--data",
    "Logs of steps or tables of counts: .csv, .jsonl (also .gz, .zst), .parquet, .arrow; patterns, "
    "directories, object stores, - for standard input, or minari:NAME; read in the order given.",
    "FILE|DIR|'*.csv'|s3://…|-",
)
Data = Annotated[list[str] | None, _DATA]


def refuse_log_options(reading: LogWords) -> None:
    """Refuse what says how logs are read, beside labelled readings, which are read in one way."""
    refuse_options(reading, " ".join(one.name for one in fields(reading)), "it requires --data")


def places_of(data: list[str] | None, observations: str | None) -> list[str]:
    """Where the data are."""
    if (data is None) == (observations is None):
        raise InputError("give either --data FILE, or --observations FILE with labelled readings of a sensor")
    return data or [str(observations)]


Observations = Annotated[
    str | None,
    option(
        "--observations",
        "Labelled sensor readings (CSV: variables of the model, reading, count). 'learn' and "
        "'plan' use them in place of --data; controllers then observe the model through this "
        "sensor.",
        "FILE",
    ),
]
Device = Annotated[
    DeviceName, option("--device", "Compute on the CPU or on a GPU (cuda; needs tightrope[gpu]).")
]
Threads = Annotated[
    int | None,
    option(
        "--threads",
        "Threads on the CPU; default: one per core, at most 8. The same number gives the same digits.",
        "N",
    ),
]
Precision = Annotated[float, option("--precision", "Relative precision of values.", "EPS")]
TimeLimit = Annotated[float | None, option("--time-limit", "Stop refining after this time.", "SECONDS")]
CertificateFile = Annotated[
    Path | None, option("--certificate", "Write a certificate for 'tightrope verify'.", "FILE")
]
NoVerify = Annotated[
    bool,
    option(
        "--no-verify", "Write a large certificate without checking it first; small ones are always checked."
    ),
]
Env = Annotated[str | None, option("--env", "Simulate this Gymnasium environment.", "MODULE:FACTORY")]
ConvertObs = Annotated[
    str | None, option("--convert-obs", "Converts its observations to states.", "MODULE:FUNCTION")
]
Actions = Annotated[str | None, option("--actions", "Names of its actions 0, 1, ….", "A,B,…")]


def require_coupled(gap: float | None, is_coupled: bool) -> None:
    """Refuse a gap of coupled values where none are asked for."""
    if gap is not None and not is_coupled:
        raise InputError(
            "--coupled-gap requires coupled values", hint="add --sets coupled, or leave --coupled-gap out"
        )


def require_device(device: DeviceName) -> None:
    """Refuse a device that is not there before anything else is done."""
    if device is not DeviceName.CPU:
        late.device.open_device(device.value)


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def parse_constants(texts: Sequence[str] | None) -> dict[str, str]:
    """`n=50,k=2` as {"n": "50", "k": "2"}; the option may be given several times.

    >>> parse_constants(["n=50,k=2", "fast=true"])
    {'n': '50', 'k': '2', 'fast': 'true'}
    """
    constants: dict[str, str] = {}
    for text in texts or ():
        column = 1
        for entry in text.split(","):
            here = Location("--const", 1, column + len(entry) - len(entry.lstrip()), text)
            name, equals, value = (part.strip() for part in entry.partition("="))
            if not equals or not value or not _IDENTIFIER.match(name):
                problem = f"{entry.strip()!r} does not give a constant its value"
                raise InputError(problem, here, "write it as --const n=50,k=2")
            if name in constants:
                raise InputError(f"constant {name!r} is given twice", here)
            constants[name] = value
            column += len(entry) + 1
    return constants


def parse_number(text: str, flag: str) -> float:
    """A number within the value of an option."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{flag} is {text!r}, not a number") from None


def parse_share(text: str, flag: str) -> float:
    """A share of a whole.

    >>> parse_share("5%", "--open"), parse_share("0.05", "--open")
    (0.05, 0.05)
    """
    return parse_number(text.removesuffix("%"), flag) / (100 if text.endswith("%") else 1)


def parse_costs(text: str | None) -> dict[str, object]:
    """What `--cost-range` states: two numbers, or a bound on the standard deviation.

    >>> parse_costs("0,5"), parse_costs("sd=2"), parse_costs(None)
    ({'cost_range': (0.0, 5.0)}, {'cost_sd': 2.0}, {})
    """
    if text is None:
        return {}
    if text.startswith("sd="):
        return {"cost_sd": parse_number(text.removeprefix("sd="), "--cost-range sd")}
    return {"cost_range": parse_range(text, "--cost-range ")}


def parse_range(text: str, flag: str) -> tuple[float, float]:
    """`0,5` as two numbers; `flag` with what stands before the value."""
    try:
        low, high = (float(piece) for piece in text.split(","))
    except ValueError:
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        problem = f"{flag.rstrip(' =')} is '{text}', not two numbers, the smaller one first"
        raise InputError(problem, hint=f"e.g. {flag}0,5")
    return low, high


R = TypeVar("R")


PANELS = {
    "Model and property": "const param domain prop discount terminal_reward ltl_translator build_all",
    "Log": "data cost_range outcomes",
    "Collection": """episodes seed explore until_gap max_episodes cost avoid at_most cap within_cap generative
        draws env convert_obs actions on_drift watched raw costs bet_on append""",
    "Aim": "gap optimality above",
    "Method": """delta alpha region sets interval budget ellipsoid no_fallback policy baseline
        allow_loss at assume_support misfit breakdown slack patience shield""",
    "Effort": "precision absolute coupled_gap time_limit device threads",
    "Output": """output certificate policy_out figure plot export all_states every follow stop checkpoint""",
}
"""The panels of a command's help, and the fields of the options in each; others are in the last one."""

_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}

SOLVING = "discount terminal_reward assume_support precision coupled_gap time_limit device threads"
"""What a question means in detail, and how it is solved: described by `tightrope check --help`."""


def takes(
    record: type[R],
    elsewhere: Mapping[str, str] = MappingProxyType({}),
    needs: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[[R], None]], Callable[..., None]]:
    """Let typer see the fields of a record as the options of a command, which is called with the record.

    `elsewhere`: the fields of options that are described in the help of another command, by its name.
    `needs`: fields that mean nothing without another one, and what to add where that is not its option.
    """
    homes = {name: command for command, names in elsewhere.items() for name in names.split()}

    def decorate(command: Callable[[R], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: object) -> None:
            request = _build(record, given)
            for names, text in needs.items():
                other, _, more = text.partition(" ")
                if (named := list_given(request, names)) and not list_given(request, other):
                    flag = flag_of(other)
                    raise InputError(f"{named[0]} requires {flag}", hint=f"add {more or flag}")
            command(request)

        parameters = list(_list_parameters(record, homes))
        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}{_describe_hidden(parameters, homes)}"
        return run

    return decorate


def _describe_hidden(parameters: Sequence[inspect.Parameter], homes: Mapping[str, str]) -> str:
    """A paragraph on the options that are described elsewhere."""
    lists: dict[str, list[str]] = {}
    for each in parameters:
        if each.name in homes:
            lists.setdefault(homes[each.name], []).append(OPTIONS.get(each.name, flag_of(each.name)))
    text = [f"{', '.join(names)} (see 'tightrope {home} --help')" for home, names in lists.items()]
    return f"\n\nOptions beyond those listed here: {'; '.join(text)}." if text else ""


def flag_of(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"


def _list_parameters(record: type, homes: Mapping[str, str]) -> Iterator[inspect.Parameter]:
    kinds = _kinds(record)
    for each in _said(record):
        kind = kinds.get(each.name)
        if is_dataclass(kind):
            assert isinstance(kind, type)
            yield from _list_parameters(kind, homes)
            continue
        if (word := each.metadata.get(WORD)) is not None:
            base = word.kind if word.kind is bool or each.default else word.kind | None
            info = option(word.flag, word.help, word.metavar)
        else:
            base, note = (kind, each.metadata[OPTION]) if OPTION in each.metadata else get_args(kind)
            info = copy(note)
        if not isinstance(info, ArgumentInfo):
            info.rich_help_panel = _PANEL_OF.get(each.name, None if word is None else "Log")
            info.hidden = each.name in homes
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        yield inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[base, info]
        )


def _said(record: type[DataclassInstance]) -> list[Field[object]]:
    """The fields that are options; of what says how logs are read, those with words for it."""
    every = list(fields(record))
    return [each for each in every if WORD in each.metadata] or every


def _build(record: Any, given: Mapping[str, object]) -> Any:
    kinds = _kinds(record)
    return record(
        **{
            each.name: _build(kind, given) if is_dataclass(kind := kinds.get(each.name)) else given[each.name]
            for each in _said(record)
        }
    )


@functools.cache
def _kinds(record: type) -> dict[str, object]:
    """The types of a record's fields, but of those that words describe."""
    is_of_words = any(WORD in each.metadata for each in fields(record))
    return {} if is_of_words else get_type_hints(record, None, None, True)


def list_given(request: DataclassInstance, names: str | None = None) -> list[str]:
    """The options of a record that are given, of those by these names of fields or of all."""
    given, usual = [], {each.name: each.default for each in fields(request)}
    for name in names.split() if names is not None else usual:
        value = getattr(request, name)
        if not (value is None or value is False or value == [] or value == usual[name]):
            given.append(OPTIONS.get(name, flag_of(name)))
    return given


def learn_words(request: DataclassInstance) -> dict[str, Any]:
    """The arguments of `learn` that the fields of a request give, by their names."""
    named = {each.name: getattr(request, each.name) for each in fields(request)}
    words = {name: value for name, value in named.items() if name in late.options.LearnKwargs.__annotations__}
    words |= {"seconds": named.get("time_limit"), "cost_range": None} | parse_costs(named.get("cost_range"))
    plain = {name: one.value if isinstance(one, DeviceName) else one for name, one in words.items()}
    return {name: one for name, one in plain.items() if one is not None}


IN_TIME = "it cannot be used with continuous time"


def refuse_options(request: DataclassInstance, names: str, why: str = IN_TIME) -> None:
    """Refuse options of a record, by the names of its fields, that make no sense for the model given."""
    for option in list_given(request, names):
        refuse(option, why)


def refuse_any(*cases: tuple[object, str] | tuple[object, str, str | None]) -> None:
    """Refuse the first case that is there, in its words, with its hint."""
    for is_wrong, problem, *hint in cases:
        if is_wrong:
            raise InputError(problem, hint=hint[0] if hint else None)


def refuse(option: str, why: str = IN_TIME) -> NoReturn:
    """An option that is there, and why it must not be."""
    raise InputError(f"{option}: {why}", hint=f"leave {option} out")


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model."""

    model: Model
    const: Const = None
    param: Param = None
    domain: Domain = None


@dataclass(frozen=True, kw_only=True)
class SubjectOptions(ModelOptions):
    """Which model, and what is asked of it."""

    prop: Prop = None
    discount: Discount = None
    terminal_reward: TerminalReward = None


@dataclass(frozen=True, kw_only=True)
class StudyOptions(SubjectOptions):
    """The same, and which data answer it."""

    data: Data
    delta: Delta = 0.001
    region: Region = None
    reading: LogWords
