"""The options that commands share, each written once: its name, help, and how its text is read.

A command takes them as parameters:

    def info(model: Model, const: Const = None, domain: Domain = None, json: Json = False) -> None: ...
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import Enum
from typing import Annotated

import typer

from tightrope.errors import InputError, Location


class DeviceName(Enum):
    """Where values are computed; what is asked for is used or refused, never replaced."""

    CPU = "cpu"
    CUDA = "cuda"


class StatesOption(Enum):
    """How a log names states."""

    INDEX = "index"
    VARIABLES = "variables"
    OWN = "own"


class DesignOption(Enum):
    """How data were collected."""

    FIXED = "fixed"
    ADAPTIVE = "adaptive"
    GENERATIVE = "generative"


MODEL_HELP = (
    "A PRISM file (.prism .nm .pm), a DRN file (.drn), explicit files (.tra, or their common base name), "
    "or a benchmark such as 'bench:betting(50)'."
)

Model = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False)]
Const = Annotated[
    list[str] | None,
    typer.Option(
        "--const", metavar="n=50,k=2", help="Values for the model's undefined constants.", show_default=False
    ),
]
Cost = Annotated[
    str | None,
    typer.Option(
        "--cost",
        metavar="TEXT|FILE",
        help="What designed data cost: 'episode=1,step=0.01', or a JSON file with prices per action.",
        show_default=False,
    ),
]
Avoid = Annotated[
    str | None,
    typer.Option(
        "--avoid",
        metavar="FORMULA",
        help="States that designed episodes rarely meet, such as '\"crash\"'.",
        show_default=False,
    ),
]
AtMost = Annotated[
    float | None,
    typer.Option(
        "--at-most",
        metavar="P",
        help="With --avoid: their certified probability in an episode.",
        show_default=False,
    ),
]
Delta = Annotated[
    float, typer.Option("--delta", metavar="D", help="The guarantee may fail with this probability.")
]
Param = Annotated[
    str | None,
    typer.Option(
        "--param",
        metavar="p=0.1:0.9,q=0:1",
        help="The interval each parameter may lie in; [0,1] where none is given.",
        show_default=False,
    ),
]
Domain = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="'0.1<=p<=0.9, p+q<=1'",
        help="The set the parameters may lie in, as linear constraints.",
        show_default=False,
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="p=0.55,q=0.0004",
        help="A point in parameter space; a benchmark knows its true one.",
        show_default=False,
    ),
]
Prop = Annotated[
    str | None,
    typer.Option(
        "--prop",
        metavar="PROPERTY",
        help="What to compute, such as 'Pmax=? [ F \"goal\" ]'; a benchmark has a default.",
        show_default=False,
    ),
]
Discount = Annotated[
    float | None,
    typer.Option(
        "--discount", metavar="GAMMA", help="Discount rewards: the meaning of 'C'.", show_default=False
    ),
]
TerminalReward = Annotated[
    str | None,
    typer.Option(
        "--terminal-reward",
        metavar="NAME",
        help="The reward structure whose state rewards are the values of target states.",
        show_default=False,
    ),
]
LtlTranslator = Annotated[
    str | None,
    typer.Option(
        "--ltl-translator",
        metavar="COMMAND",
        help="Let this command translate LTL: a formula on its standard input, or in place of {} among its "
        "arguments, a deterministic automaton in HOA on its standard output. It is believed.",
        show_default=False,
    ),
]
AssumeSupport = Annotated[
    float | None,
    typer.Option(
        "--assume-support",
        metavar="EPS",
        help="Nature cannot cut transitions: lower bounds of 0 become EPS.",
        show_default=False,
    ),
]
CostRange = Annotated[
    str | None,
    typer.Option(
        "--cost-range",
        metavar="LOW,HIGH",
        help="Observed costs (a column 'cost') lie between these two numbers: parameters in rewards are "
        "learned from them.",
        show_default=False,
    ),
]
CostSd = Annotated[
    float | None,
    typer.Option(
        "--cost-sd",
        metavar="S",
        help="In place of --cost-range: a bound on the standard deviation of a cost, given state and action.",
        show_default=False,
    ),
]
CoupledGap = Annotated[
    float | None,
    typer.Option(
        "--coupled-gap",
        metavar="SHARE",
        help="With --sets coupled: stop when at most this share of the interval is without witnesses (0.02).",
        show_default=False,
    ),
]
Data = Annotated[
    list[str],
    typer.Option(
        "--data",
        metavar="FILE|DIR|'*.csv'|s3://…|-",
        help="Logs of steps or tables of counts: .csv, .jsonl (also .gz, .zst), .parquet, .arrow; patterns, "
        "directories, object stores, - for standard input, or minari:NAME; read in the order given.",
        show_default=False,
    ),
]
States = Annotated[
    StatesOption | None,
    typer.Option(
        "--states",
        help="How the log names states, where its columns leave that open: by the model's index, its "
        "variables, or its author's own names.",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar='"wear=level, wear\'=next_level, action=cmd"',
        help="Which column is what; 'step=' uses none, 'next_state=' takes the next row's state.",
        show_default=False,
    ),
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="'action: 0=repair, 1=run'",
        help="What values mean in the model: names, or other units ('wear: *10').",
        show_default=False,
    ),
]
Design = Annotated[
    DesignOption | None,
    typer.Option(
        "--design",
        help="How the data were collected: under a policy fixed in advance (fixed), with draws per choice "
        "fixed in advance (generative), or neither (adaptive, assumed where nothing is said).",
        show_default=False,
    ),
]
PlannedEpisodes = Annotated[
    int | None,
    typer.Option(
        "--planned-episodes",
        metavar="N",
        min=1,
        help="How many episodes were planned before the first one.",
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="EVENT",
        help="Leave out the events before this one: after a change, numbered as 'watch' prints them.",
        show_default=False,
    ),
]
Window = Annotated[
    int | None,
    typer.Option(
        "--window", metavar="N", min=1, help="Leave out all but the last N events.", show_default=False
    ),
]
ChosenAt = Annotated[
    str | None,
    typer.Option(
        "--chosen-at",
        metavar="EVENT",
        help="With --since and --window: how many events had been seen when that was decided, e.g. that of "
        "an alarm; 0: it was planned. Else the confidence is nominal.",
        show_default=False,
    ),
]
DataFormatName = Annotated[
    str | None,
    typer.Option(
        "--data-format",
        metavar="csv|jsonl|parquet|arrow",
        help="What the data are where names do not say it, also csv.gz and the like.",
        show_default=False,
    ),
]
SkipInvalid = Annotated[
    bool,
    typer.Option(
        "--skip-invalid",
        help="Drop rows that cannot be read or that the model excludes, and count them; the confidence is "
        "then nominal.",
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|dask|dask://HOST:PORT",
        help="Where the log is counted: by this machine's cores, or by the workers of a Dask cluster, which "
        "must see the same files.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="HOST:PORT",
        help="With --engine dask: a scheduler that is running; else workers start on this machine.",
        show_default=False,
    ),
]
Device = Annotated[
    DeviceName,
    typer.Option(
        "--device",
        help="Where values are computed: the CPU, or a GPU (needs tightrope[gpu]), as in --device cuda.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="Threads that compute values on the CPU: one per core, at most 8, unless given. The same number "
        "gives the same digits.",
        show_default=False,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace files that exist and that tightrope did not write, too; directories stay protected.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]


def require_coupled(gap: float | None, is_coupled: bool) -> None:
    """Refuse a gap of coupled values where none are asked for."""
    if gap is not None and not is_coupled:
        raise InputError(
            "--coupled-gap goes with coupled values, and none are asked for",
            hint="add --sets coupled, or leave --coupled-gap out",
        )


def require_device(device: DeviceName) -> None:
    """Refuse a device that is not there before anything else is done."""
    if device is not DeviceName.CPU:
        from tightrope.solver.cuda.device import open_device

        open_device(device.value)


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


def parse_cost_range(text: str | None) -> tuple[float, float] | None:
    """`0,5` as two numbers."""
    if text is None:
        return None
    try:
        low, high = (float(piece) for piece in text.split(","))
    except ValueError:
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        problem = f"--cost-range is '{text}', not two numbers, the smaller one first"
        raise InputError(problem, hint="e.g. --cost-range 0,5")
    return low, high
