"""Where we are tighter or faster than the paper's tables and where not, computed from records.

Against the paper a gap counts as the same where rounding explains the difference: its tables print gaps to
two digits after the point. The models are reconstructions, so such a comparison says as much about the model
as about the method; the comparison of our regions with the paper's polytope on the same data does not have
this flaw.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from tightrope.benchmarks.figures import gap_text, interval_text, seconds_text
from tightrope.benchmarks.methods import METHODS, Method
from tightrope.benchmarks.records import OK
from tightrope.benchmarks.table_cells import SHORT_STATUS
from tightrope.benchmarks.tables import OMITTED, InstanceTable, Row

BASELINE = "expression/polytope"
"""What our regions are measured against, on the same data."""


@dataclass(frozen=True)
class Verdicts:
    """For one method of the paper: the instances where we are …"""

    method: Method
    tighter: tuple[str, ...]
    same: tuple[str, ...]
    wider: tuple[str, ...]
    faster: tuple[str, ...]
    slower: tuple[str, ...]
    speedups: tuple[float, ...]


@dataclass(frozen=True)
class Ratios:
    """For one method: its gap divided by the baseline's on the same data, by instance."""

    method: Method
    ratio: dict[str, float]

    @property
    def mean(self) -> float:
        """The geometric mean."""
        return math.exp(math.fsum(math.log(r) for r in self.ratio.values()) / len(self.ratio))


def verdicts(tables: list[InstanceTable]) -> list[Verdicts]:
    """For every method of the paper that was run on an instance of the paper."""
    result = []
    for method in METHODS.values():
        rows = [(t, r) for t in tables for r in t.rows if r.method == method and _comparable(r)]
        if not rows:
            continue
        tight: dict[str, list[str]] = {"tighter": [], "same": [], "wider": []}
        fast: dict[bool, list[str]] = {True: [], False: []}
        speedups = []
        for table, row in rows:
            tight[_tightness(row)].append(table.instance.name)
            ratio = _speedup(row)
            speedups.append(ratio)
            fast[ratio >= 1.0].append(table.instance.name)
        result.append(
            Verdicts(
                method,
                tighter=tuple(tight["tighter"]),
                same=tuple(tight["same"]),
                wider=tuple(tight["wider"]),
                faster=tuple(fast[True]),
                slower=tuple(fast[False]),
                speedups=tuple(speedups),
            )
        )
    return result


def ratios(tables: list[InstanceTable]) -> list[Ratios]:
    """Every other method's gap beside the baseline's."""
    found: dict[str, dict[str, float]] = {}
    for table in tables:
        gaps = {row.method.name: row.record.relative_gap for row in table.rows if row.record is not None}
        base = gaps.get(BASELINE, math.nan)
        for name, gap in gaps.items():
            if name != BASELINE and 0 < base < math.inf and 0 < gap < math.inf:
                found.setdefault(name, {})[table.instance.name] = gap / base
    return [Ratios(METHODS[name], found[name]) for name in METHODS if name in found]


def summary(tables: list[InstanceTable]) -> list[str]:
    """One statement a line."""
    papers = [table for table in tables if table.is_papers_protocol]
    lines = [*_counts(tables), *(_verdict_line(verdict) for verdict in verdicts(papers))]
    lines += _time_outs(papers)
    lines += [_ratio_line(ratio) for ratio in ratios(tables)]
    return lines


def _comparable(row: Row) -> bool:
    record, published = row.record, row.published
    if record is None or record.status != OK or published is None or published.timed_out:
        return False
    return published.relative_gap is not None and published.build_seconds is not None


def _tightness(row: Row) -> str:
    assert row.record is not None and row.published is not None and row.published.relative_gap is not None
    printed = row.published.relative_gap
    exponent = printed.as_tuple().exponent
    assert isinstance(exponent, int)
    half = float(Decimal(5).scaleb(exponent - 1))
    gap = row.record.relative_gap
    if gap < float(printed) - half:
        return "tighter"
    return "wider" if gap > float(printed) + half else "same"


def _speedup(row: Row) -> float:
    assert row.record is not None and row.published is not None
    published = row.published
    assert published.build_seconds is not None and published.solve_seconds is not None
    return float(published.build_seconds + published.solve_seconds) / max(row.record.total_seconds, 1e-6)


def _counts(tables: list[InstanceTable]) -> list[str]:
    records = [row.record for table in tables for row in table.rows if row.record is not None]
    if not records:
        return ["No cell has been run."]
    statuses = Counter(record.status for record in records)
    told = ", ".join(f"{number} {status}" for status, number in statuses.most_common())
    good = [record for record in records if record.status == OK]
    inside = sum(bool(record.values.get("covers")) for record in good)
    sound = [record for record in good if record.values.get("holds")]
    sound_inside = sum(bool(record.values.get("covers")) for record in sound)
    return [
        f"{len(records)} cells shown: {told}.",
        f"The true value lies within {inside} of {len(good)} intervals, and within {sound_inside} of the "
        f"{len(sound)} whose assumption holds of the data.",
    ]


def _verdict_line(verdict: Verdicts) -> str:
    total = len(verdict.tighter) + len(verdict.same) + len(verdict.wider)
    middle = sorted(verdict.speedups)[(len(verdict.speedups) - 1) // 2]
    return (
        f"{verdict.method.label}, beside the paper on {_instances(total)}: "
        f"tighter on {len(verdict.tighter)}, the same on {len(verdict.same)}, "
        f"wider on {len(verdict.wider)}{_list_names(verdict.wider)}; "
        f"faster on {len(verdict.faster)}, slower on {len(verdict.slower)}{_list_names(verdict.slower)}, "
        f"{middle:.3g}× in the median (other machines)."
    )


def _time_outs(tables: list[InstanceTable]) -> list[str]:
    lines = []
    for table in tables:
        for row in table.rows:
            if row.paper_timed_out:
                lines.append(
                    f"Time-out in the paper: {table.instance.name}, {row.method.label}: {_fill(row)}."
                )
    for name in OMITTED:
        rows = [row for table in tables for row in table.rows if row.method.name == name]
        records = [row.record for row in rows if row.record is not None]
        done = [record.total_seconds for record in records if record.status == OK]
        if records:
            slowest = f", the slowest in {seconds_text(max(done))} s" if done else ""
            lines.append(
                f"Time-out in the paper on every instance: {METHODS[name].label}: "
                f"answered here on {len(done)} of {_instances(len(records))}{slowest}."
            )
    return lines


def _fill(row: Row) -> str:
    record = row.record
    if record is None:
        return "not run here yet"
    if record.status != OK:
        return f"{SHORT_STATUS[record.status]} here too" + (f", {record.message}" if record.message else "")
    interval = interval_text(record.lower, record.upper)
    return f"{interval}, gap {gap_text(record.relative_gap)}, in {seconds_text(record.total_seconds)} s"


def _ratio_line(ratio: Ratios) -> str:
    values = ratio.ratio
    worse = tuple(name for name, value in values.items() if value > 1.005)
    return (
        f"{ratio.method.label}: {ratio.mean:.2f} of the gap of {METHODS[BASELINE].label} sets "
        f"on the same data ({min(values.values()):.2f}–{max(values.values()):.2f} on "
        f"{_instances(len(values))}; wider on {len(worse)}{_list_names(worse)})."
    )


def _instances(number: int) -> str:
    return f"{number} instance{'' if number == 1 else 's'}"


def _list_names(names: tuple[str, ...]) -> str:
    return f" ({', '.join(names)})" if 0 < len(names) <= 6 else ""
