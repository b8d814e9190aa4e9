"""A campaign is a list of cells: instance × method × seed, all under one protocol.

The protocol is that of the paper's uniform-sampling tables: 10^5 trajectories of the policy that picks
uniformly, each until the objective is decided or at the family's cap, δ = 0.001. What is measured is the
certified interval of the policy that is optimal in the true model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tightrope.benchmarks.families import FAMILIES
from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.methods import METHODS, Method, choose_methods
from tightrope.benchmarks.published import results_of
from tightrope.benchmarks.suite import list_instances, parse_bench
from tightrope.errors import InputError

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
            found = [i for i in list_instances() if i.family == family and results_of(i)]
        else:
            found = [parse_bench(name)]
        chosen.update((instance.name, instance) for instance in found)
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
