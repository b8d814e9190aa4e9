"""Tables of a campaign: for every instance one row a method, our figures with the paper's beside them.

Where several seeds were run, a row shows the seed with the median relative gap, a run that happened, and
how many seeds there are. The paper's figures are those of the table that gives building and solving
apart; ellipsoids are in their own table, and where tables differ most of them count. Nothing is
compared that was not run under the same protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tightrope.benchmarks.cells import Protocol
from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.methods import METHODS, Method
from tightrope.benchmarks.published import PublishedResult, disagreements, results_of
from tightrope.benchmarks.records import OK, Record
from tightrope.benchmarks.suite import list_instances, parse_bench

REFERENCE_TABLES = ("tab:results_udtmc_optpolicy_interval_relgap_split_runtime", "tab:bigtable")
"""Where the paper's figures are taken from: the tables with build and solve seconds, the first one first."""

OMITTED = {"rectangular/ellipsoid": "time-out on every instance, says the paper's text"}
"""Methods the paper speaks of without a row."""

OUR_COEFFICIENTS = ("aircraft", "engagement", "rover", "glider")
"""Families whose coefficients are ours throughout; those of parallel are for all sizes but 20."""


@dataclass(frozen=True)
class Row:
    """One method on one instance: a record, how many seeds it stands for, and the paper's cell."""

    method: Method
    record: Record | None
    seeds: int
    published: PublishedResult | None
    disputed: bool
    """Whether the paper's tables print different bounds or gaps for this cell."""

    @property
    def paper_timed_out(self) -> bool:
        return self.published is not None and self.published.timed_out


@dataclass(frozen=True)
class InstanceTable:
    """All rows of an instance under one protocol."""

    instance: Instance
    protocol: Protocol
    rows: tuple[Row, ...]

    @property
    def optimum(self) -> float | None:
        """V*, as measured; what all relative gaps are divided by."""
        for row in self.rows:
            if row.record is not None and row.record.status == OK:
                return row.record.optimum
        return None

    @property
    def is_papers_protocol(self) -> bool:
        return self.protocol == Protocol()

    @property
    def provenance(self) -> str:
        """What of the model is ours rather than the paper's."""
        instance = self.instance
        ours = instance.family in OUR_COEFFICIENTS or (
            instance.family == "parallel" and instance.arguments != (20,)
        )
        return "reconstructed model, our coefficients" if ours else "reconstructed model"


def instance_tables(records: Iterable[Record], with_missing: bool = False) -> list[InstanceTable]:
    """Tables in the order of the paper; `with_missing` adds rows of the paper that nobody has run yet."""
    found: dict[tuple[str, Protocol], dict[str, list[Record]]] = {}
    for record in records:
        cell = record.cell
        methods = found.setdefault((cell.instance, cell.protocol), {})
        methods.setdefault(cell.method, []).append(record)
    order = {instance.name: k for k, instance in enumerate(list_instances())}
    tables = []
    for name, protocol in sorted(found, key=lambda key: (order.get(key[0], len(order)), key[0], str(key[1]))):
        by_method = found[name, protocol]
        instance = parse_bench(name)
        published = papers_cells(instance) if protocol == Protocol() else {}
        rows = [
            _row(instance, method, by_method.get(method.name, []), published.get(method.name))
            for method in METHODS.values()
            if method.name in by_method or (with_missing and method.name in published)
        ]
        tables.append(InstanceTable(instance, protocol, tuple(rows)))
    return tables


def papers_cells(instance: Instance) -> dict[str, PublishedResult]:
    """What the paper prints for an instance, by method; where its tables differ, what most of them print."""
    printed: dict[str, list[PublishedResult]] = {}
    for result in results_of(instance):
        printed.setdefault(result.method, []).append(result)
    cells = {}
    for method, results in printed.items():
        votes = Counter(_figures(result) for result in results)
        usable = [r for table in REFERENCE_TABLES for r in results if r.table == table]
        if usable:
            cells[method] = max(usable, key=lambda r: votes[_figures(r)])  # the first of the best
    return cells


def _figures(result: PublishedResult) -> tuple[object, ...]:
    return result.lower, result.upper, result.relative_gap, result.timed_out


def _row(instance: Instance, method: Method, records: list[Record], published: PublishedResult | None) -> Row:
    disputed = any(
        (d.family, d.arguments, d.method) == (instance.family, instance.arguments, method.name)
        for d in disagreements()
    )
    return Row(method, _representative(records), len(records), published, disputed and published is not None)


def _representative(records: list[Record]) -> Record | None:
    """The record with the median gap among those that went well; any other where none did."""
    good = sorted((r for r in records if r.status == OK), key=lambda r: (r.relative_gap, r.cell.seed))
    if good:
        return good[(len(good) - 1) // 2]
    return records[0] if records else None
