"""The page `docs/results/paper.md` and its tables of learning curves, from records and the paper's tables.

The tables say what was reached, how soon, and whether it was true.
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

from tightrope.io.output import GENERATED
from tightrope_campaigns.cells import METHODS, ONLINE_BASELINE, ONLINE_INSTANCES, ONLINE_METHODS, Protocol
from tightrope_campaigns.published import NOTES, RESULT_TABLES
from tightrope_campaigns.records import OnlineRecord, Record, describe
from tightrope_campaigns.tables import (
    INFINITY,
    NOTHING,
    OMITTED,
    InstanceTable,
    bound_text,
    instance_tables,
    list_used_marks,
    markdown_tables,
    our_figures,
    papers_figures,
    seconds_text,
    summary,
    wider_rows,
)

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
        result = sorted(value(record) for record in self.by_method.get(method, []))
        return result[(len(result) - 1) // 2] if result else math.nan


def groups(records: Iterable[OnlineRecord]) -> list[Group]:
    """The records in the order of the paper."""
    result: dict[tuple[str, int, float], dict[str, list[OnlineRecord]]] = {}
    for record in records:
        cell = record.cell
        methods = result.setdefault((cell.instance, cell.episodes, cell.delta), {})
        methods.setdefault(cell.method, []).append(record)
    order = {name: number for number, name in enumerate(ONLINE_INSTANCES)}
    return [
        Group(*key, {name: result[key][name] for name in ONLINE_METHODS if name in result[key]})
        for key in sorted(result, key=lambda key: (order.get(key[0], len(order)), key))
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
        if ONLINE_BASELINE not in group.by_method:
            continue
        upward = not group.sample.maximises
        level = _middle([record.last["guarantee"] for record in group.by_method[ONLINE_BASELINE]], upward)
        if not math.isfinite(level):
            continue
        idle = _find_needed(group, ONLINE_BASELINE, level, False) == 0.0
        needed = {method: _find_needed(group, method, level, idle) for method in group.by_method}
        cells = [_soon(needed.get(method, math.nan), needed[ONLINE_BASELINE]) for method in methods]
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
        f"{len(runs)} runs with {updates:,} updates: in {broken} of the runs a guarantee exceeded the true "
        f"performance of its policy; δ allows {allowed:.3g} on average"
    ]
    unsure = sum(int(record.facts["uncertified"]) for record in runs)
    if unsure:
        lines.append(
            f"in {unsure:,} updates the refinement of a value stopped early, because few data make some "
            "guarantees astronomical; these bounds are verified, but wider"
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


INTRODUCTION = """\
# Results

{generated} {source} -o {target}`. [campaigns.md](../../campaigns/README.md)
describes such campaigns, and [benchmarks.md](../benchmarks.md) the models and which parts of them are ours.

Every row has the certified interval of the policy that is optimal in the true model, from {episodes:,}
trajectories of the uniform policy, at δ = {delta:g}. `gap` is (upper − lower) / V*. `build` is the time from
counts to the uncertain model, `solve` the time from there to both ends of the interval. Bounds are rounded
outward. The columns from `paper` on are the paper's figures, from its machine and its models. Our models are
reconstructions; the line above a table states if the coefficients are ours, too. `cap` is the length at which
an episode is cut off, which the paper does not state.
"""


WIDER = """\
## Why wider than the paper

Rows with a figure of the paper use the paper's method: Clopper–Pearson intervals at δ over the number of
unknown expressions, and the same sets. On trajectories their level is nominal (°), because the numbers of
visits are not fixed in advance. So the interval method does not explain why a row is wider. The column *any
time* uses intervals whose level holds, and *likelihood* uses our region on the same data.

The remaining reasons are the model and the data. The paper does not print all coefficients and true points,
nor the length at which episodes are cut off. We measured the effect of this length (`python
benchmarks/episode_caps.py`: expression-wise, 100,000 episodes, seed 1). On glider(21,17) the gap is 0.0154,
0.0133, 0.0077 and 0.0033 at caps of 50, 100, 200 and 1,000 steps. On engagement(100) it is 0.203, 0.114 and
0.095 at 100, 1,000 and 10,000. Elsewhere we infer that the coefficients are the reason, because nothing else
remains. Rows with the paper's coefficients differ by at most 2 %, as they would for another sample.
"""

_ALONE = "; episodes end by themselves"
CAUSES = {
    "aircraft": f"coefficients: the four modes are ours{_ALONE}",
    "betting": f"another sample: the coefficients are the paper's{_ALONE}",
    "engagement": "coefficients, all ours; the cap, to which the gap is sensitive",
    "rover": f"coefficients: waves, zones and weights are ours{_ALONE}",
    "glider": "the cap of 100 steps is ours: ten times that makes the gap four times smaller; coefficients",
    "parallel": f"coefficients, ours up to 10 rounds{_ALONE}",
}
"""What is different where a row is wider than the paper's, by family."""


def make_wider_table(tables: list[InstanceTable]) -> Table:
    """Every row that is wider than the paper's, beside what holds at any time, and why."""
    rows: list[Row] = []
    for table, row in wider_rows(tables):
        sets = row.method.name.partition("/")[0]
        beside = {other.method.name: our_figures(other)[0] for other in table.rows}
        family = table.instance.family
        exact = family == "parallel" and table.instance.arguments == (20,)
        cause = CAUSES["betting" if exact else family]
        infinite = our_figures(row)[0] == INFINITY
        rows.append(
            (
                f"`{table.instance.name}`",
                row.method.label,
                our_figures(row)[0],
                papers_figures(row)[0],
                beside.get(f"{sets}/anytime", NOTHING),
                beside.get(f"{sets}/likelihood", NOTHING),
                "tied sets leave the cost without a bound here; " + cause if infinite else cause,
            )
        )
    columns = ("instance", "sets", "its method, here", "paper", "any time", "likelihood", "why")
    return Table(columns, tuple(rows))


def results_page(records: Sequence[Record], source: str, target: str, online: str | None = None) -> str:
    """The page, from records; `online` is the section on learning curves, where there are some."""
    tables = instance_tables(records, with_missing=True)
    protocol = Protocol()
    parts = [
        INTRODUCTION.format(
            generated=GENERATED,
            source=source,
            target=target,
            episodes=protocol.episodes,
            delta=protocol.delta,
        ).rstrip(),
        "## Summary\n\n" + "\n".join(f"- {line}" for line in summary(tables)),
        "## Measured on\n\n" + "\n".join(f"- {line}" for line in _circumstances(records)),
        WIDER.rstrip(),
        make_wider_table(tables).markdown(),
        "## Marks and methods\n\n" + "\n".join(f"- {line}" for line in _legend(tables)),
        markdown_tables(tables).rstrip(),
        *([] if online is None else [online.rstrip()]),
        "## Inconsistencies in the paper's tables\n\n" + "\n".join(f"- {note}" for note in NOTES),
    ]
    return "\n\n".join(parts) + "\n"


def _circumstances(records: Sequence[Record]) -> list[str]:
    lines = []
    for record in records:
        line = describe({"machine": record.machine, "versions": record.versions})
        if line not in lines:
            lines.append(line)
    limits = sorted({(record.limits.seconds, record.limits.memory) for record in records})
    message = "; ".join(f"{seconds:g} s, {memory / (1 << 30):.3g} GiB" for seconds, memory in limits)
    return [*lines, f"limits of a cell: {message}", f"seeds: {_seeds(records)}"]


def _seeds(records: Sequence[Record]) -> str:
    return ", ".join(str(seed) for seed in sorted({record.cell.seed for record in records}))


def _legend(tables: list[InstanceTable]) -> list[str]:
    lines = [f"{mark} {meaning}" for mark, meaning in list_used_marks(tables)]
    lines.append("TO: time-out; OOM: out of memory; –: no figure; ∞: an infinite value")
    for name, remark in OMITTED.items():
        lines.append(f"{METHODS[name].label}: {remark}")
    lines.append(f"the paper's tables: {', '.join(f'`{table}`' for table in RESULT_TABLES)}")
    return lines


CURVES = "online-curves"
"""The stem of the figure's files."""

CURVES_INTRODUCTION = """\
## Learning online

This is the paper's second setting, recorded by `tightrope bench --online` ({episodes}; seeds {seeds};
δ = {delta}). The optimistic policy collects data, and an update follows whenever the visits of some choice
have doubled ([online.md](../online.md)). All methods are time-uniform, because the data are adaptive:
`parameter`, `expression` and `rectangular` sets use the polytope of beta-binomial intervals. Bounds are
rounded to the safe side.
"""

SOON = """\
### Episodes to the same guarantee

The table counts the episodes that a method needs for the final guarantee of `tied` sets, in the median over
the seeds (`never`: not within the run). The number in brackets is the factor by which `tied` sets need more.
If the final guarantee of `tied` sets holds without any data, the table counts episodes to a better one.
"""


def online_section(records: Sequence[OnlineRecord], image: str | None) -> str:
    """The section, with the figure at `image` where there is one."""
    shown = groups(records)
    by_episodes: dict[int, list[str]] = {}
    for group in shown:
        by_episodes.setdefault(group.episodes, []).append(group.instance)
    episodes = "; ".join(f"{n:,} episodes of {', '.join(names)}" for n, names in by_episodes.items())
    introduction = CURVES_INTRODUCTION.format(
        episodes=episodes,
        seeds=", ".join(str(seed) for seed in sorted({record.cell.seed for record in records})),
        delta=", ".join(f"{delta:g}" for delta in sorted({group.delta for group in shown})),
    )
    figure = (
        f"![Performance and guarantee against episodes, one panel a family, runtimes below]({image})\n\n"
        "The figure shows the performance of the robust policy on the true model (solid) and its guarantee\n"
        "(dashed), as medians over the seeds. Bands are the range and the quartiles. The lower panels show\n"
        "the total time of a run."
        if image is not None
        else None
    )
    parts = [
        introduction.rstrip(),
        "\n".join(f"- {line}" for line in summary_lines(shown)),
        figure,
        SOON.rstrip(),
        soon_table(shown).markdown(),
        "### Validity of the guarantees",
        make_kept_table(shown).markdown(),
        "### After all episodes",
        make_reached_table(shown).markdown(),
        "Measured on " + "; ".join(describe(record.facts) for record in _distinct(records)) + ".",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _distinct(records: Sequence[OnlineRecord]) -> list[OnlineRecord]:
    """One record of each machine and set of versions."""
    return list({describe(record.facts): record for record in records}.values())
