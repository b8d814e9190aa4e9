"""The cells of the paper's second setting: learning curves, one run of `tightrope online` each.

The six learning instances of the paper, every kind of sets, δ = 0.001. Regions are time-uniform throughout,
for the data are adaptive: the polytope of beta-binomial intervals, as close to the paper's as is sound, and
beside it our likelihood region. Episodes a family are as many as show where the curves lead; more of them
cost time, not validity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from tightrope.errors import InputError
from tightrope.studies.instance import Instance
from tightrope.studies.suite import parse_bench

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

BASELINE = "tied"


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
    chosen = _methods(methods)
    cells = []
    for name in dict.fromkeys(_instance(name) for name in names or ONLINE_INSTANCES):
        family = parse_bench(name).family
        for seed in seeds:
            cells += [
                OnlineCell(name, method, seed, episodes or ONLINE_EPISODES[family], delta)
                for method in chosen
            ]
    return cells


def _instance(name: str) -> str:
    plain = name.removeprefix("bench:")
    for known in ONLINE_INSTANCES:
        if known.partition("(")[0] == plain:
            return known
    return parse_bench(plain).name


def _methods(text: str | None) -> list[str]:
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
