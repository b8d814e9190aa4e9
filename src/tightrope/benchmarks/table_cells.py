"""The texts of a table's cells, shared by all formats that tables are written in."""

from __future__ import annotations

from tightrope.benchmarks.figures import (
    NOTHING,
    bound_text,
    gap_text,
    interval_text,
    memory_text,
    print_figure,
    seconds_text,
)
from tightrope.benchmarks.records import OK
from tightrope.benchmarks.tables import OMITTED, InstanceTable, Row

DISPUTED = "†"
NOMINAL = "°"
EMPTY = "∅"
COARSE = "~"
MISSED = "!"

MARKS = (
    (DISPUTED, "the paper's tables print different figures for this cell"),
    (NOMINAL, "the method's assumption does not hold of trajectories: its confidence level is nominal"),
    (EMPTY, "the region was empty; tied sets were used instead"),
    (COARSE, "a limit was reached; the bounds hold but are wider than need be"),
    (MISSED, "the interval does not contain the true value"),
)
"""What stands behind a figure, and what it means."""

SHORT_STATUS = {"time-out": "TO", "out-of-memory": "OOM", "refused": "refused", "error": "error"}


def title(table: InstanceTable) -> str:
    """`betting(50), the paper's betting(150)`."""
    renamed = f" (the paper's {table.instance.paper_name})" if table.instance.paper_name else ""
    return f"{table.instance.name}{renamed}"


def subtitle(table: InstanceTable) -> str:
    """Sizes, optimum, cap and provenance."""
    instance, optimum = table.instance, table.optimum
    parts = []
    if instance.sizes is not None:
        sizes = instance.sizes
        parts.append(f"|S| {sizes.states:,}, |T| {sizes.transitions:,}, |Λ| {sizes.expressions:,}")
    if optimum is not None:
        parts.append(f"V* {optimum:.5g}")
    parts.append(f"cap {instance.episode_cap:,}")
    if not table.is_papers_protocol:
        parts.append(f"{table.protocol.episodes:,} episodes, δ {table.protocol.delta:g}")
    parts.append(table.provenance)
    return "; ".join(parts)


def our_marks(row: Row) -> str:
    record = row.record
    if record is None or record.status != OK:
        return ""
    values = record.values
    return "".join(
        mark
        for mark, holds in (
            (NOMINAL, not values.get("holds", True)),
            (EMPTY, values.get("empty", False)),
            (COARSE, not values.get("certified", True)),
            (MISSED, not values.get("covers", True)),
        )
        if holds
    )


def our_interval(row: Row) -> str:
    record = row.record
    if record is None:
        return "not run"
    if record.status != OK:
        return SHORT_STATUS[record.status]
    return interval_text(record.lower, record.upper)


def our_bounds(row: Row) -> tuple[str, str]:
    record = row.record
    if record is None or record.status != OK:
        return our_interval(row), NOTHING
    return bound_text(record.lower, False), bound_text(record.upper, True)


def our_figures(row: Row) -> tuple[str, str, str, str]:
    """Relative gap, build seconds, solve seconds, memory."""
    record = row.record
    if record is None:
        return NOTHING, NOTHING, NOTHING, NOTHING
    return (
        gap_text(record.relative_gap),
        seconds_text(record.build_seconds),
        seconds_text(record.solve_seconds),
        memory_text(record.peak_memory),
    )


def papers_interval(row: Row) -> str:
    published = row.published
    if published is None:
        return "TO" if row.method.name in OMITTED else ""
    mark = DISPUTED if row.disputed else ""
    if published.timed_out:
        return f"TO{mark}"
    return f"[{print_figure(published.lower)}, {print_figure(published.upper)}]{mark}"


def papers_figures(row: Row) -> tuple[str, str, str]:
    """Relative gap, build seconds, solve seconds; empty where the paper has no such row."""
    published = row.published
    if published is None or published.timed_out:
        return "", "", ""
    return (
        print_figure(published.relative_gap),
        print_figure(published.build_seconds),
        print_figure(published.solve_seconds),
    )


def papers_total(row: Row) -> str:
    published = row.published
    if published is None or published.build_seconds is None or published.solve_seconds is None:
        return ""
    return seconds_text(float(published.build_seconds + published.solve_seconds))


def list_used_marks(tables: list[InstanceTable]) -> list[tuple[str, str]]:
    """The marks that occur in these tables, with their meaning."""
    rows = [row for table in tables for row in table.rows]
    text = "".join(our_marks(row) for row in rows) + (DISPUTED if any(r.disputed for r in rows) else "")
    return [(mark, meaning) for mark, meaning in MARKS if mark in text]
