"""Tables of a campaign as text, Markdown and LaTeX: our figures with the paper's beside them, and a summary.

For every instance there is one row per method. Where several seeds were run, a row shows the seed with the
median relative gap, a run that happened, and how many seeds there are. The paper's figures are those of the
table that gives building and solving apart; ellipsoids are in their own table, and where tables differ most
of them count. Nothing is compared that was not run under the same protocol.

The summary says where we are tighter or faster than the paper's tables and where not. Against the paper a
gap counts as the same where rounding explains the difference: its tables print gaps to two digits after the
point. The models are reconstructions, so such a comparison says as much about the model as about the method;
the comparison of our regions with the paper's polytope on the same data does not have this flaw.

Numbers have few digits, and intervals are rounded outward, for they are guarantees.

>>> interval_text(14.54321, 65.30001)
'[14.54, 65.31]'
>>> gap_text(0.05432), gap_text(127.351), gap_text(float("inf"))
('0.054', '127', '∞')
>>> seconds_text(0.01234), seconds_text(44.95), seconds_text(4464.2)
('0.012', '45.0', '4464')
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import list_instances, parse_bench
from tightrope.io.output import GENERATED
from tightrope_campaigns.cells import METHODS, Method, Protocol
from tightrope_campaigns.published import PublishedResult, disagreements, results_of
from tightrope_campaigns.records import OK, Record

INFINITY = "∞"
NOTHING = "–"

LARGE = 1e6
"""From here on numbers are written with a power of ten."""


def bound_text(value: float, upward: bool, digits: int = 4) -> str:
    """A bound in so many significant digits (and at most as many after the point), rounded outward."""
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return INFINITY if value > 0 else f"-{INFINITY}"
    exact = Decimal(value)
    direction = ROUND_CEILING if upward else ROUND_FLOOR
    if abs(value) >= LARGE:
        mantissa = exact.scaleb(-exact.adjusted()).quantize(Decimal("0.01"), direction)
        return f"{mantissa}e{exact.adjusted()}"
    places = digits if exact == 0 else min(digits, max(0, digits - 1 - exact.adjusted()))
    rounded = exact.quantize(Decimal(1).scaleb(-places), direction)
    text = format(rounded, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def interval_text(lower: float, upper: float) -> str:
    return f"[{bound_text(lower, False)}, {bound_text(upper, True)}]"


def gap_text(value: float) -> str:
    """A relative gap in about three significant digits."""
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return INFINITY
    if value >= LARGE:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return seconds_text(value)


def seconds_text(value: float) -> str:
    if math.isnan(value):
        return NOTHING
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.9995 else f"{value:.3f}"


def memory_text(value: int | None) -> str:
    """Bytes in MiB."""
    return NOTHING if value is None else f"{value / (1 << 20):.0f}"


def print_figure(value: Decimal | None) -> str:
    """A figure as the paper prints it."""
    return NOTHING if value is None else format(value, "f")


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
    result: dict[tuple[str, Protocol], dict[str, list[Record]]] = {}
    for record in records:
        cell = record.cell
        methods = result.setdefault((cell.instance, cell.protocol), {})
        methods.setdefault(cell.method, []).append(record)
    order = {instance.name: k for k, instance in enumerate(list_instances())}
    tables = []
    for name, protocol in sorted(
        result, key=lambda key: (order.get(key[0], len(order)), key[0], str(key[1]))
    ):
        by_method = result[name, protocol]
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


DISPUTED = "†"
NOMINAL = "°"
EMPTY = "∅"
COARSE = "~"
MISSED = "!"

MARKS = (
    (DISPUTED, "the paper's tables print different figures for this cell"),
    (NOMINAL, "trajectories violate the method's assumption, so its confidence level is nominal"),
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


WIDTH = 80

LONG_COLUMNS = (
    *("method", "lower", "upper", "gap", "build s", "solve s", "MiB", "seeds"),
    *("paper", "gap", "build s", "solve s"),
)
SHORT_COLUMNS = ("method", "interval", "gap", "build", "solve", "paper", "gap", "s")


def text_tables(tables: list[InstanceTable]) -> str:
    """For the terminal: at most 80 columns."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = StringIO()
    console = Console(file=out, width=WIDTH, color_system=None, legacy_windows=False)
    for table in tables:
        console.print(Text(title(table), style="bold"))
        console.print(Text(subtitle(table)))
        shown = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
        for index, column in enumerate(SHORT_COLUMNS):
            shown.add_column(column, justify="left" if index in (0, 1, 5) else "right", overflow="fold")
        for row in table.rows:
            gap, build, solve, _ = our_figures(row)
            shown.add_row(
                *(Text(cell) for cell in (row.method.short, our_interval(row) + our_marks(row), gap)),
                *(Text(cell) for cell in (build, solve, papers_interval(row))),
                *(Text(cell) for cell in (papers_figures(row)[0], papers_total(row))),
            )
        console.print(shown)
        console.print()
    for mark, meaning in list_used_marks(tables):
        console.print(Text(f"{mark} {meaning}"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def text_summary(lines: list[str]) -> str:
    """Statements as an indented list within 80 columns."""
    from textwrap import fill

    return "".join(
        fill(line, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False) + "\n"
        for line in lines
    )


def markdown_tables(tables: list[InstanceTable]) -> str:
    """A section a family, a table an instance."""
    return "\n".join(_by_family(tables, _markdown_heading, _markdown_table))


def latex_tables(tables: list[InstanceTable]) -> str:
    """One booktabs table an instance."""
    marks = list_used_marks(tables)
    lines = [f"% {GENERATED}`; needs booktabs and amssymb"]
    lines += [f"% {mark} {meaning}" for mark, meaning in marks]
    lines += _by_family(tables, lambda instance: f"% {instance.family}", _latex_table)
    return "\n".join(lines) + "\n"


def _by_family(
    tables: Iterable[InstanceTable],
    heading: Callable[[Instance], str],
    body: Callable[[InstanceTable], list[str]],
) -> list[str]:
    lines: list[str] = []
    family = ""
    for table in tables:
        if table.instance.family != family:
            family = table.instance.family
            lines += [heading(table.instance), ""]
        lines += [*body(table), ""]
    return lines


def _long_row(row: Row) -> list[str]:
    lower, upper = our_bounds(row)
    gap, build, solve, memory = our_figures(row)
    name = row.method.label + ("" if row.method.in_paper else " (ours)")
    seeds = str(row.seeds) if row.seeds else ""
    ours = [name, lower, upper + our_marks(row), gap, build, solve, memory, seeds]
    return [*ours, papers_interval(row), *papers_figures(row)]


# --- Markdown ------------------------------------------------------------------------------


def _markdown_heading(instance: Instance) -> str:
    return f"## {instance.family}"


def _markdown_table(table: InstanceTable) -> list[str]:
    return [
        f"### {title(table)}",
        "",
        subtitle(table).replace("|", "\\|"),
        "",
        "| " + " | ".join(LONG_COLUMNS) + " |",
        "|---" * len(LONG_COLUMNS) + "|",
        *("| " + " | ".join(_long_row(row)) + " |" for row in table.rows),
    ]


# --- LaTeX ---------------------------------------------------------------------------------

_LATEX = {
    "∞": r"$\infty$",
    "†": r"$^{\dagger}$",
    "°": r"$^{\circ}$",
    "∅": r"$^{\varnothing}$",
    "~": r"$^{\sim}$",
    "–": "--",
    "Λ": r"$\Lambda$",
    "δ": r"$\delta$",
    "|": r"$|$",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "^": r"\^{}",
    "\\": r"\textbackslash{}",
}


def _latex_table(table: InstanceTable) -> list[str]:
    columns = [*LONG_COLUMNS[:8], *LONG_COLUMNS[8:]]
    return [
        r"\begin{table}",
        rf"\caption{{{_escape(title(table))}: {_escape(subtitle(table))}.}}",
        r"\centering\small",
        r"\begin{tabular}{lrrrrrrrlrrr}",
        r"\toprule",
        r"& \multicolumn{7}{c}{tightrope} & \multicolumn{4}{c}{paper} \\",
        r"\cmidrule(lr){2-8}\cmidrule(lr){9-12}",
        " & ".join(["method", *columns[1:8], "interval", *columns[9:]]) + r" \\",
        r"\midrule",
        *(" & ".join(map(_escape, _long_row(row))) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def _escape(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


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
    result: dict[str, dict[str, float]] = {}
    for table in tables:
        gaps = {row.method.name: row.record.relative_gap for row in table.rows if row.record is not None}
        base = gaps.get(BASELINE, math.nan)
        for name, gap in gaps.items():
            if name != BASELINE and 0 < base < math.inf and 0 < gap < math.inf:
                result.setdefault(name, {})[table.instance.name] = gap / base
    return [Ratios(METHODS[name], result[name]) for name in METHODS if name in result]


def summary(tables: list[InstanceTable]) -> list[str]:
    """One statement a line."""
    papers = [table for table in tables if table.is_papers_protocol]
    lines = [*_counts(tables), *(_verdict_line(verdict) for verdict in verdicts(papers))]
    lines += _time_outs(papers)
    lines += [_ratio_line(ratio) for ratio in ratios(tables)]
    return lines


def wider_rows(tables: list[InstanceTable]) -> list[tuple[InstanceTable, Row]]:
    """The rows whose gap is larger than the paper prints, whatever its last digit stands for."""
    return [
        (table, row)
        for table in tables
        for row in table.rows
        if _comparable(row) and _tightness(row) == "wider"
    ]


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
    message = ", ".join(f"{number} {status}" for status, number in statuses.most_common())
    good = [record for record in records if record.status == OK]
    inside = sum(bool(record.values.get("covers")) for record in good)
    sound = [record for record in good if record.values.get("holds")]
    sound_inside = sum(bool(record.values.get("covers")) for record in sound)
    return [
        f"{len(records)} cells shown: {message}.",
        f"The true value lies within {inside} of {len(good)} intervals, and within {sound_inside} of the "
        f"{len(sound)} whose data satisfy the method's assumption.",
    ]


def _verdict_line(verdict: Verdicts) -> str:
    total = len(verdict.tighter) + len(verdict.same) + len(verdict.wider)
    middle = sorted(verdict.speedups)[(len(verdict.speedups) - 1) // 2]
    return (
        f"{verdict.method.label}, compared with the paper on {_instances(total)}: "
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
        f"{ratio.method.label}: {ratio.mean:.2f} times the gap of {METHODS[BASELINE].label} sets "
        f"on the same data ({min(values.values()):.2f}–{max(values.values()):.2f} on "
        f"{_instances(len(values))}; wider on {len(worse)}{_list_names(worse)})."
    )


def _instances(number: int) -> str:
    return f"{number} instance{'' if number == 1 else 's'}"


def _list_names(names: tuple[str, ...]) -> str:
    return f" ({', '.join(names)})" if 0 < len(names) <= 6 else ""
