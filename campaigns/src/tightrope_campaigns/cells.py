"""Cells of campaigns: instance × method × seed under one protocol, and the runs of the learning curves.

A method is one of the sets of the paper's three result tables, or one of ours beyond them.

The paper's methods run as it describes them: Clopper–Pearson intervals at δ / |Λ_unk| (`budget=paper`), and
for ellipsoids its own radius (R = 1/2), whose proof has a gap. Whether a method's assumption holds of the
protocol's trajectories is said by the ledger of each cell. The protocol is that of the paper's
uniform-sampling tables: 10^5 trajectories of the policy that picks uniformly, each until the objective is
decided or at the family's cap, δ = 0.001. What is measured is the certified interval of the policy that is
optimal in the true model.

The paper's second setting are learning curves, one run of `tightrope online` each: its six learning
instances, every kind of sets, δ = 0.001. Regions are time-uniform throughout, for the data are adaptive: the
polytope of beta-binomial intervals, as close to the paper's as is sound, and beside it our likelihood region.
Episodes per family are as many as show where the curves lead; more of them cost time, not validity.

    >>> [method.name for method in choose_methods("tied,expression/likelihood")]
    ['tied', 'expression/likelihood']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tightrope.benchmarks.families import FAMILIES
from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import list_instances, parse_bench
from tightrope.errors import InputError
from tightrope_campaigns.published import results_of

if TYPE_CHECKING:
    from tightrope.learning.options import LearnOptions

PAPER, OURS, ALL = "paper", "ours", "all"


@dataclass(frozen=True)
class Method:
    """One way from counts to sets; `name` is `sets` or `sets/region`, as in `PublishedResult.method`.

    `region`, `interval`, `budget` and `ellipsoid` are the values of `tightrope learn`'s options of these
    names; None leaves a choice that does not matter here. `label` is what a table's row is called, `short`
    the same where there is little room.
    """

    name: str
    label: str
    short: str
    sets: str
    region: str | None
    interval: str | None
    budget: str
    ellipsoid: str
    in_paper: bool

    def options(self, seconds: float = float("inf")) -> LearnOptions:
        """The options of `learn` that make this method."""
        from tightrope.ambiguity.sets import SetsKind
        from tightrope.learning.options import LearnOptions
        from tightrope.regions.registry import region_kind
        from tightrope.statistics.estimates import Budget, IntervalMethod
        from tightrope.statistics.least_squares import EllipsoidVersion

        return LearnOptions(
            region=None if self.region is None else region_kind(self.region),
            sets=SetsKind(self.sets),
            interval=None if self.interval is None else IntervalMethod(self.interval),
            budget=Budget(self.budget),
            ellipsoid=EllipsoidVersion(self.ellipsoid),
            seconds=seconds,
            threads=1,
        )


def _paper(name: str, label: str, short: str, ellipsoid: str = "sound") -> Method:
    sets, _, region = name.partition("/")
    return Method(name, label, short, sets, region or None, "clopper-pearson", "paper", ellipsoid, True)


def _ours(name: str, label: str, short: str, region: str | None, interval: str | None = None) -> Method:
    return Method(name, label, short, name.partition("/")[0], region, interval, "tied", "sound", False)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _paper("tied", "parameter tying", "tied"),
        _paper("parameter/polytope", "parameter-wise", "parameter"),
        _paper("expression/polytope", "expression-wise", "expression"),
        _paper("rectangular/polytope", "rectangular", "rectangular"),
        _paper("parameter/ellipsoid", "parameter-wise, ellipsoid", "param. ellipsoid", "paper"),
        _paper("expression/ellipsoid", "expression-wise, ellipsoid", "expr. ellipsoid", "paper"),
        _paper("rectangular/ellipsoid", "rectangular, ellipsoid", "rect. ellipsoid", "paper"),
        _ours("untied", "untied", "untied", None, "clopper-pearson"),
        _ours("expression/likelihood", "expression-wise, likelihood", "expr. likelihood", "likelihood"),
        _ours("rectangular/likelihood", "rectangular, likelihood", "rect. likelihood", "likelihood"),
        # Over the polytope of the paper's methods, so that the gaps can be compared.
        replace(_paper("coupled/polytope", "coupled", "coupled"), in_paper=False),
        _ours("coupled/likelihood", "coupled, likelihood", "coupl. likelih.", "likelihood"),
        _ours("rectangular/slab", "rectangular, slab", "rect. slab", "slab"),
        _ours("coupled/slab", "coupled, slab", "coupl. slab", "slab"),
        _ours("expression/anytime", "expression-wise, anytime", "expr. anytime", "polytope", "beta-binomial"),
        _ours("rectangular/anytime", "rectangular, anytime", "rect. anytime", "polytope", "beta-binomial"),
        _ours(
            "expression/sound-ellipsoid", "expression-wise, sound ellipsoid", "expr. sound ell.", "ellipsoid"
        ),
        _ours("expression/l1", "expression-wise, L1", "expr. L1", "l1"),
    )
}
"""By name, in the order of the tables."""


def choose_methods(text: str) -> tuple[Method, ...]:
    """Methods by name, separated by commas, in the tables' order; `paper`, `ours` and `all` are groups."""
    chosen: set[str] = set()
    for part in (part.strip() for part in text.split(",")):
        if part in (PAPER, OURS, ALL):
            chosen |= {m.name for m in METHODS.values() if part == ALL or m.in_paper == (part == PAPER)}
        elif part in METHODS:
            chosen.add(part)
        else:
            close = get_close_matches(part, METHODS, 1)
            suggestion = f"did you mean {close[0]}? " if close else ""
            names = ", ".join((PAPER, OURS, ALL, *METHODS))
            raise InputError(f"--methods: there is no method '{part}'", hint=f"{suggestion}there are {names}")
    return tuple(method for name, method in METHODS.items() if name in chosen)


QUICK_INSTANCES = (
    "aircraft(50,10)",
    "betting(50)",
    "engagement(100)",
    "rover(50,50)",
    "glider(21,17)",
    "parallel(5)",
)
QUICK_METHODS = "tied,parameter/polytope,expression/polytope,rectangular/polytope,expression/likelihood"
"""What `--quick` selects: every family, and every kind of sets, in a few minutes."""

MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Protocol:
    """How the data are sampled and at which level the bounds hold."""

    episodes: int = 100_000
    delta: float = 0.001

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise InputError(f"the number of episodes is {self.episodes}, but it must be at least 1")
        if not 0 < self.delta < 1:
            raise InputError(f"δ is {self.delta}, not within (0, 1)", hint="e.g. --delta 0.001")


@dataclass(frozen=True)
class CellLimits:
    """What one cell may use: seconds of building and solving together, and bytes of memory."""

    seconds: float = 7200.0
    memory: int = 20 << 30

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InputError(f"the time limit is {self.seconds}, not a positive number of seconds")
        if self.memory < 64 << 20:
            raise InputError(f"the memory limit is {self.memory} bytes; nothing runs in less than 64 MiB")


@dataclass(frozen=True)
class Cell:
    """One run: `instance` and `method` by their names."""

    instance: str
    method: str
    seed: int
    protocol: Protocol = Protocol()

    @property
    def problem(self) -> Instance:
        return parse_bench(self.instance)

    @property
    def way(self) -> Method:
        return METHODS[self.method]

    def __str__(self) -> str:
        return f"{self.instance} {self.method} seed {self.seed}"


def campaign_cells(
    instances: Iterable[Instance], methods: Sequence[Method], seeds: Sequence[int], protocol: Protocol
) -> list[Cell]:
    """All cells: instance by instance, and seed by seed, so that cells that share data follow each other."""
    return [
        Cell(instance.name, method.name, seed, protocol)
        for instance in instances
        for seed in seeds
        for method in methods
    ]


def choose_instances(names: Sequence[str]) -> tuple[Instance, ...]:
    """Instances by name; a family's name stands for its rows in the paper's tables, no name for all rows."""
    chosen: dict[str, Instance] = {}
    for name in names or tuple(FAMILIES):
        if name.removeprefix("bench:") in FAMILIES:
            family = name.removeprefix("bench:")
            result = [i for i in list_instances() if i.family == family and results_of(i)]
        else:
            result = [parse_bench(name)]
        chosen.update((instance.name, instance) for instance in result)
    return tuple(chosen.values())


def quick_selection() -> tuple[tuple[Instance, ...], tuple[Method, ...]]:
    """What `--quick` runs where nothing else is named."""
    return choose_instances(QUICK_INSTANCES), choose_methods(QUICK_METHODS)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds as numbers and ranges.

    >>> parse_seeds("1-3,7")
    (1, 2, 3, 7)
    """
    seeds: dict[int, None] = {}
    for part in (part.strip() for part in text.split(",")):
        match = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last - first >= MOST_SEEDS:
            raise InputError(
                f"--seeds: '{part}' is neither a seed nor a range of seeds", hint="write 1,2 or 1-5"
            )
        seeds.update(dict.fromkeys(range(first, last + 1)))
    return tuple(seeds)


def parse_size(text: str) -> int:
    """Bytes from a number with a unit.

    >>> parse_size("24GiB"), parse_size("500M")
    (25769803776, 524288000)
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if match is None:
        raise InputError(f"'{text}' is not an amount of memory", hint="write e.g. 24GiB or 500MiB")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def parse_duration(text: str) -> float:
    """Seconds from a number with a unit; seconds where there is none.

    >>> parse_duration("2h"), parse_duration("90"), parse_duration("10min")
    (7200.0, 90.0, 600.0)
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|min|h)?\s*", text)
    if match is None:
        raise InputError(f"'{text}' is not a duration", hint="write e.g. 90s, 10min or 2h")
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600}[match[2] or "s"]


ONLINE_INSTANCES = (
    "aircraft(20,10)",
    "betting(25)",
    "engagement(50)",
    "rover(10,10)",
    "glider(11,9)",
    "parallel(6)",
)
"""The paper's, in its order."""

ONLINE_EPISODES = {
    "aircraft": 5_000,
    "betting": 5_000,
    "engagement": 5_000,
    "rover": 5_000,
    "glider": 5_000,
    "parallel": 2_000,
}

ONLINE_METHODS: dict[str, tuple[str, str | None]] = {
    "untied": ("untied", None),
    "tied": ("tied", None),
    "parameter": ("parameter", "polytope"),
    "expression": ("expression", "polytope"),
    "rectangular": ("rectangular", "polytope"),
    "expression/likelihood": ("expression", "likelihood"),
    "coupled": ("coupled", "polytope"),
}
"""Sets and region of each method, by name."""

BY_NAME_ONLY = ("coupled",)
"""Methods that run only where they are named: an update of theirs costs ten times that of another."""

ONLINE_BASELINE = "tied"


@dataclass(frozen=True)
class OnlineCell:
    """One run."""

    instance: str
    method: str
    seed: int
    episodes: int
    delta: float = 0.001

    @property
    def problem(self) -> Instance:
        return parse_bench(self.instance)

    def __str__(self) -> str:
        return f"{self.instance} {self.method} seed {self.seed}"


def online_cells(
    names: Sequence[str], methods: str | None, seeds: Sequence[int], episodes: int | None, delta: float
) -> list[OnlineCell]:
    """All cells, instance by instance; families stand for their learning instance, no name for all six."""
    if not 0 < delta < 1:
        raise InputError(f"δ is {delta}, not within (0, 1)", hint="e.g. --delta 0.001")
    chosen = _online_methods(methods)
    cells = []
    for name in dict.fromkeys(_learning_instance(name) for name in names or ONLINE_INSTANCES):
        family = parse_bench(name).family
        for seed in seeds:
            cells += [
                OnlineCell(name, method, seed, episodes or ONLINE_EPISODES[family], delta)
                for method in chosen
            ]
    return cells


def _learning_instance(name: str) -> str:
    plain = name.removeprefix("bench:")
    for known in ONLINE_INSTANCES:
        if known.partition("(")[0] == plain:
            return known
    return parse_bench(plain).name


def _online_methods(text: str | None) -> list[str]:
    if text is None:
        return [name for name in ONLINE_METHODS if name not in BY_NAME_ONLY]
    wanted = [part.strip() for part in text.split(",")]
    for part in wanted:
        if part not in ONLINE_METHODS:
            close = get_close_matches(part, ONLINE_METHODS, 1)
            suggestion = f"did you mean {close[0]}? " if close else ""
            raise InputError(
                f"--methods: there is no method '{part}' of learning online",
                hint=f"{suggestion}there are {', '.join(ONLINE_METHODS)}",
            )
    return [name for name in ONLINE_METHODS if name in wanted]
