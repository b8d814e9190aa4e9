"""Tables of learning curves, computed from records: what was reached, how soon, and whether it was true.

*How soon*: the episodes after which a method's guarantee is as good as the one that `tied` sets have after
all their episodes (median over the seeds of both), and how many times fewer they are than `tied` needs
itself. Where `tied` sets end with what holds without data, the guarantee in question is any better one.
*Whether it was true*: guarantees that exceed the true performance of their policy. With time-uniform
methods a run contains one with probability at most δ, so δ·runs is what is to be expected at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tightrope.benchmarks.figures import INFINITY, NOTHING, bound_text, seconds_text
from tightrope.benchmarks.online_cells import BASELINE, ONLINE_INSTANCES, ONLINE_METHODS, OnlineRecord

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A header and rows of text; the first column names the row."""

    columns: Row
    rows: tuple[Row, ...]

    def markdown(self) -> str:
        lines = [self.columns, tuple("---" for _ in self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True, eq=False)
class Group:
    """All runs of one instance under one protocol, by method."""

    instance: str
    episodes: int
    delta: float
    by_method: dict[str, list[OnlineRecord]]

    @property
    def sample(self) -> OnlineRecord:
        return next(iter(self.by_method.values()))[0]

    def median(self, method: str, value: Callable[[OnlineRecord], float]) -> float:
        """The lower median over the seeds (the worse one of guarantees), NaN where there are none."""
        found = sorted(value(record) for record in self.by_method.get(method, []))
        return found[(len(found) - 1) // 2] if found else math.nan


def groups(records: Iterable[OnlineRecord]) -> list[Group]:
    """The records in the order of the paper."""
    found: dict[tuple[str, int, float], dict[str, list[OnlineRecord]]] = {}
    for record in records:
        cell = record.cell
        methods = found.setdefault((cell.instance, cell.episodes, cell.delta), {})
        methods.setdefault(cell.method, []).append(record)
    order = {name: number for number, name in enumerate(ONLINE_INSTANCES)}
    return [
        Group(*key, {name: found[key][name] for name in ONLINE_METHODS if name in found[key]})
        for key in sorted(found, key=lambda key: (order.get(key[0], len(order)), key))
    ]


def make_reached_table(shown: Sequence[Group]) -> Table:
    """What was guaranteed, and attained, after all episodes."""
    rows: list[Row] = []
    for group in shown:
        for method, runs in group.by_method.items():
            upward = not group.sample.maximises
            ends = [record.last["guarantee"] for record in runs]
            rows.append(
                (
                    f"`{group.instance}`" if method == next(iter(group.by_method)) else "",
                    method,
                    bound_text(_middle(ends, upward), upward),
                    f"{bound_text(min(ends), upward)} – {bound_text(max(ends), upward)}",
                    _short(group.median(method, lambda record: record.last["performance"])),
                    _short(group.sample.optimum),
                    str(round(group.median(method, lambda record: record.updates))),
                    seconds_text(group.median(method, lambda record: record.facts["cpu_seconds"])),
                    str(len(runs)),
                )
            )
    columns = (
        *("instance", "sets", "guarantee", "over seeds", "performance", "V*"),
        *("updates", "CPU s", "seeds"),
    )
    return Table(columns, tuple(rows))


def soon_table(shown: Sequence[Group]) -> Table:
    """Episodes to the guarantee that `tied` sets end with, and how many times fewer than theirs."""
    methods = list(ONLINE_METHODS)
    rows: list[Row] = []
    for group in shown:
        if BASELINE not in group.by_method:
            continue
        upward = not group.sample.maximises
        level = _middle([record.last["guarantee"] for record in group.by_method[BASELINE]], upward)
        if not math.isfinite(level):
            continue
        idle = _find_needed(group, BASELINE, level, False) == 0.0
        needed = {method: _find_needed(group, method, level, idle) for method in group.by_method}
        cells = [_soon(needed.get(method, math.nan), needed[BASELINE]) for method in methods]
        shown_level = bound_text(level, upward)
        rows.append((f"`{group.instance}`", f"beyond {shown_level}" if idle else shown_level, *cells))
    return Table(("instance", "guarantee", *methods), tuple(rows))


def make_kept_table(shown: Sequence[Group]) -> Table:
    """How many runs and updates broke a guarantee, beside what δ allows."""
    rows: list[Row] = []
    for method in ONLINE_METHODS:
        runs = [record for group in shown for record in group.by_method.get(method, [])]
        if runs:
            allowed = sum(record.cell.delta for record in runs)
            rows.append(
                (
                    method,
                    str(len(runs)),
                    f"{sum(record.updates for record in runs):,}",
                    str(sum(record.broken for record in runs)),
                    str(sum(record.broken > 0 for record in runs)),
                    f"{allowed:.3g}",
                    runs[0].facts["assumption"],
                )
            )
    columns = ("sets", "runs", "updates", "broken guarantees", "runs with one", "δ·runs", "valid for")
    return Table(columns, tuple(rows))


def summary_lines(shown: Sequence[Group]) -> list[str]:
    """What the tables add up to, in words."""
    runs = [record for group in shown for records in group.by_method.values() for record in records]
    broken = sum(record.broken > 0 for record in runs)
    allowed = sum(record.cell.delta for record in runs)
    updates = sum(record.updates for record in runs)
    lines = [
        f"{len(runs)} runs with {updates:,} updates: in {broken} of the runs a guarantee was better than the "
        f"true performance of its policy; δ allows {allowed:.3g} of them on average"
    ]
    unsure = sum(int(record.facts["uncertified"]) for record in runs)
    if unsure:
        lines.append(
            f"{unsure:,} updates gave up refining a value (few data make some guarantees astronomical); "
            "their bounds are verified, and wider"
        )
    return lines


def _find_needed(group: Group, method: str, level: float, better: bool) -> float:
    return group.median(method, lambda record: record.first_reaching(level, better))


def _soon(episodes: float, baseline: float) -> str:
    if math.isnan(episodes):
        return NOTHING
    if math.isinf(episodes):
        return "never"
    if math.isinf(baseline):
        return f"{episodes:,.0f}"
    factor = baseline / max(episodes, 1.0)
    return f"{episodes:,.0f} ({factor:.{0 if factor >= 10 else 1}f}×)"


def _middle(values: Sequence[float], upward: bool) -> float:
    """The median, the worse of the two middle ones: the larger one of costs."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2 if upward else (len(ordered) - 1) // 2]


def _short(value: float) -> str:
    return INFINITY if math.isinf(value) else f"{value:.4g}"
