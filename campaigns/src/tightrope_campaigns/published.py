"""The paper's published tables as data, beside which our own figures are printed.

Every number is kept as it was printed (`Decimal`), with the label of its table and the row in it.
Tables repeat one another, and not always with the same numbers: `disagreements()` lists the cells
that differ, `NOTES` what else does not fit together. Nothing here was measured by us.

| table | what it holds |
|---|---|
| `tab:stats_same_suite` | sizes of the instances sampled uniformly |
| `tab:stats_same_suite_learning` | sizes of the instances of online learning |
| `tab:results_udtmc_optpolicy_interval_relgap_total` | bounds from 10^5 uniform trajectories, total seconds |
| `tab:results_udtmc_optpolicy_interval_relgap_split_runtime` | the same, build and solve seconds apart |
| `tab:bigtable` | the same with ellipsoids beside polytopes |
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

from tightrope.benchmarks.instance import Instance

SIZES_TABLES = ("tab:stats_same_suite", "tab:stats_same_suite_learning")
RESULT_TABLES = (
    "tab:results_udtmc_optpolicy_interval_relgap_total",
    "tab:results_udtmc_optpolicy_interval_relgap_split_runtime",
    "tab:bigtable",
)

NOTES = (
    "betting (150): |S|, |T| and |Λ| in tab:stats_same_suite are those of n = 135, not of n = 150.",
    "betting (150): width / relative gap gives V* ≈ 61.7 in the two tables without ellipsoids and V* ≈ "
    "59.5 (that of n = 135) in tab:bigtable.",
    "betting (50): all bounds of tab:bigtable differ from those of the other two tables.",
    "glider (106, 99): |S| = 4757 is 71·67, and tab:bigtable calls the instance (71, 67).",
    "glider (106, 99): about 76 in the tables without ellipsoids, 104 in tab:bigtable; tied [66.4, "
    "35254] against [87, 30071].",
    "glider (51, 47): three different optima. Parameter- and expression-wise bounds are about 59 in the "
    "tables without ellipsoids, rectangular ones 68 in the split one, all are 101 in tab:bigtable. The "
    "tied interval [62.3, 20001] excludes 59; its relative gap 293.07 belongs to V* = 68.03.",
    "glider (51, 47), rectangular: 6268 s in total, but 9267 s to build alone in the split table, which "
    "is beyond the stated time-out of 7200 s.",
    "parallel (5), tied: [24, 29.4] in two tables, [24.3, 44.7] in the split one, where the relative "
    "gap 0.64 belongs to V* ≈ 31.9 and the times add up to 2.58 s instead of 0.31 s.",
    "Build and solve seconds of tab:bigtable differ from the split table throughout, also where the "
    "bounds agree: they come from other runs.",
    "|Θ| is 6 for aircraft, 4 for glider and 3 for parallel betting in the tables of sizes, but four, "
    "two and two in the descriptions; rover's five channel modes are mixed by six parameters.",
)
"""What does not fit together in the paper's tables, besides the cells that `disagreements` lists."""

_DATA = Path(__file__).parent / "published_tables"


@dataclass(frozen=True)
class PublishedSizes:
    """One row of a table of sizes; `arguments` are those of our instance of that size."""

    table: str
    row: int
    family: str
    printed: str
    arguments: tuple[int, ...]
    states: int
    transitions: int
    parameters: int
    expressions: int
    kind: str
    """`probability` or `reward`."""


@dataclass(frozen=True)
class PublishedResult:
    """One method's cells in one row of a table of results.

    `sets` is the kind of sets in our words, `region` the region behind it (None for the tied
    intervals, which need none). Bounds and gap are None and `timed_out` holds where the table
    says TO. `seconds` is the total, given by one table; the others give its two parts.
    """

    table: str
    row: int
    family: str
    printed: str
    arguments: tuple[int, ...]
    sets: str
    region: str | None
    lower: Decimal | None
    upper: Decimal | None
    relative_gap: Decimal | None
    seconds: Decimal | None
    build_seconds: Decimal | None
    solve_seconds: Decimal | None
    timed_out: bool

    @property
    def method(self) -> str:
        """`expression/ellipsoid`, `tied`."""
        return self.sets if self.region is None else f"{self.sets}/{self.region}"

    def implied_optimum(self) -> tuple[float, float] | None:
        """The V* that bounds and relative gap are compatible with, all being rounded figures."""
        if self.lower is None or self.upper is None or not self.relative_gap:
            return None
        least = (self.upper - _half(self.upper)) - (self.lower + _half(self.lower))
        most = (self.upper + _half(self.upper)) - (self.lower - _half(self.lower))
        slack = _half(self.relative_gap)
        return float(least / (self.relative_gap + slack)), float(most / (self.relative_gap - slack))


@dataclass(frozen=True)
class Disagreement:
    """One quantity of one method on one instance that different tables print differently."""

    family: str
    arguments: tuple[int, ...]
    method: str
    quantity: str
    values: tuple[tuple[str, Decimal | None], ...]
    """(table, value) for every table that has the cell."""


@cache
def read_published_sizes() -> tuple[PublishedSizes, ...]:
    """All rows of the tables of sizes, in the paper's order."""
    return tuple(
        PublishedSizes(
            table=line["table"],
            row=int(line["row"]),
            family=line["family"],
            printed=line["printed"],
            arguments=_arguments(line["arguments"]),
            states=int(line["states"]),
            transitions=int(line["transitions"]),
            parameters=int(line["parameters"]),
            expressions=int(line["expressions"]),
            kind=line["kind"],
        )
        for line in _lines("sizes.csv")
    )


@cache
def read_published_results() -> tuple[PublishedResult, ...]:
    """All cells of the tables of results, in the paper's order."""
    return tuple(
        PublishedResult(
            table=line["table"],
            row=int(line["row"]),
            family=line["family"],
            printed=line["printed"],
            arguments=_arguments(line["arguments"]),
            sets=line["sets"],
            region=None if line["region"] == "none" else line["region"],
            lower=_number(line["lower"]),
            upper=_number(line["upper"]),
            relative_gap=_number(line["relative_gap"]),
            seconds=_number(line["seconds"]),
            build_seconds=_number(line["build_seconds"]),
            solve_seconds=_number(line["solve_seconds"]),
            timed_out="TO" in (line["seconds"], line["build_seconds"], line["solve_seconds"]),
        )
        for line in _lines("results.csv")
    )


def sizes_of(instance: Instance) -> PublishedSizes | None:
    """The paper's sizes of an instance, where it has any."""
    rows = [
        r for r in read_published_sizes() if (r.family, r.arguments) == (instance.family, instance.arguments)
    ]
    return rows[0] if rows else None


def results_of(instance: Instance) -> tuple[PublishedResult, ...]:
    """What the paper's tables say about an instance."""
    return tuple(
        r
        for r in read_published_results()
        if (r.family, r.arguments) == (instance.family, instance.arguments)
    )


@cache
def disagreements() -> tuple[Disagreement, ...]:
    """Bounds and gaps that two tables print for the same cell, but differently."""
    cells: dict[tuple[str, tuple[int, ...], str], list[PublishedResult]] = {}
    for result in read_published_results():
        cells.setdefault((result.family, result.arguments, result.method), []).append(result)
    answer: list[Disagreement] = []
    for (family, arguments, method), results in cells.items():
        for quantity in ("lower", "upper", "relative_gap"):
            values = tuple((r.table, getattr(r, quantity)) for r in results)
            if len({value for _, value in values}) > 1:
                answer.append(Disagreement(family, arguments, method, quantity, values))
    return tuple(answer)


def _lines(name: str) -> Iterator[dict[str, str]]:
    with (_DATA / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _arguments(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split())


def _number(text: str) -> Decimal | None:
    return None if text in ("", "TO") else Decimal(text)


def _half(value: Decimal) -> Decimal:
    """Half a unit of the last printed digit."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return Decimal(5).scaleb(exponent - 1)
