"""The cells of the paper's second setting: learning curves, one run of `tightrope online` each.

The six learning instances of the paper, every kind of sets, δ = 0.001. Regions are time-uniform throughout,
for the data are adaptive: the polytope of beta-binomial intervals, as close to the paper's as is sound, and
beside it our likelihood region. Episodes a family are as many as show where the curves lead; more of them
cost time, not validity.

Records of learning curves: one JSON object a run, its updates as columns, thinned out.

Episodes are cut into `CELLS` cells a decade, and of the updates in each the last one is kept; the numbers of
updates, of broken guarantees and of uncertified solves are over all updates. Infinities are written as "inf".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.line_file import LineFile, whole_lines
from tightrope.benchmarks.suite import parse_bench
from tightrope.errors import InputError, Location
from tightrope.numerics.arrays import FloatArray

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


ONLINE_FILE = "online.jsonl"
FORMAT = "online 1"
CELLS = 24
COLUMNS = ("episode", "steps", "guarantee", "performance", "optimistic", "elapsed")


@dataclass(frozen=True, eq=False)
class OnlineRecord:
    """What became of a run; `columns` are those of the updates that were kept."""

    cell: OnlineCell
    columns: Mapping[str, FloatArray]
    facts: Mapping[str, Any] = field(hash=False)

    @property
    def updates(self) -> int:
        return int(self.facts["updates"])

    @property
    def broken(self) -> int:
        """Updates whose guarantee exceeds the true performance of its policy."""
        return int(self.facts["broken"])

    @property
    def optimum(self) -> float:
        return float(self.facts["optimum"])

    @property
    def maximises(self) -> bool:
        return bool(self.facts["maximises"])

    @property
    def last(self) -> dict[str, float]:
        return {name: float(column[-1]) for name, column in self.columns.items()}

    def first_reaching(self, level: float, better: bool = False) -> float:
        """The episodes after which the guarantee is as good as `level`, or `better`; ∞ where it never is."""
        gain = self.columns["guarantee"] - level if self.maximises else level - self.columns["guarantee"]
        good = gain > 1e-6 * abs(level) if better else gain >= 0
        return float(self.columns["episode"][np.argmax(good)]) if good.any() else math.inf

    def to_json(self) -> dict[str, Any]:
        cell = self.cell
        return {
            "format": FORMAT,
            "instance": cell.instance,
            "method": cell.method,
            "seed": cell.seed,
            "episodes": cell.episodes,
            "delta": cell.delta,
            **{name: _plain(column) for name, column in self.columns.items()},
            "facts": dict(self.facts),
        }

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> OnlineRecord:
        """Read what `to_json` wrote; a KeyError, TypeError or ValueError says it is no record."""
        if fields["format"] != FORMAT or fields["method"] not in ONLINE_METHODS:
            raise ValueError(f"of format {fields['format']}, method {fields['method']}")
        cell = OnlineCell(
            fields["instance"],
            fields["method"],
            int(fields["seed"]),
            int(fields["episodes"]),
            float(fields["delta"]),
        )
        columns = {name: np.array([float(value) for value in fields[name]]) for name in COLUMNS}
        return OnlineRecord(cell, columns, dict(fields["facts"]))


def thin(records: Sequence[Mapping[str, Any]]) -> dict[str, FloatArray]:
    """The columns of the records that are kept: the first one, and the last one of every cell."""
    kept: dict[int, Mapping[str, Any]] = {}
    for record in records:
        episode = record["episode"]
        kept[-1 if episode == 0 else math.floor(CELLS * math.log10(episode))] = record
    return {
        name: np.array([float(kept[cell][name]) for cell in sorted(kept)], dtype=np.float64)
        for name in COLUMNS
    }


class OnlineFile(LineFile):
    """The records of a directory, held by this process alone while it is open."""

    records: dict[OnlineCell, OnlineRecord]

    def read(self) -> None:
        self.records = {record.cell: record for record in read_online(self.path)}

    def append(self, record: OnlineRecord) -> None:
        self.append_line(json.dumps(record.to_json(), allow_nan=False))
        self.records[record.cell] = record


def read_online(path: Path) -> list[OnlineRecord]:
    """All whole records of a file, the last one of every cell."""
    records: dict[OnlineCell, OnlineRecord] = {}
    for number, line in enumerate(whole_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = OnlineRecord.from_json(json.loads(line))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = line.decode("utf-8", "replace")[:200]
            raise InputError(
                f"this is not a record of a learning curve: {error}", Location(str(path), number, 1, text)
            ) from None
        records[record.cell] = record
    return list(records.values())


def _plain(values: Iterable[float]) -> list[float | int | str]:
    """Seven digits are more than a curve needs; whole numbers as such."""
    shown: list[float | int | str] = []
    for value in values:
        if not math.isfinite(value):
            shown.append(str(float(value)))
        else:
            shown.append(int(value) if value == int(value) else float(f"{value:.7g}"))
    return shown
