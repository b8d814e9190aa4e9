"""The page `docs/results.md`: everything on it comes from records and from the paper's published tables."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.benchmarks.cells import Protocol
from tightrope.benchmarks.comparison import summary
from tightrope.benchmarks.machine import describe
from tightrope.benchmarks.methods import METHODS
from tightrope.benchmarks.online_cells import OnlineRecord
from tightrope.benchmarks.online_tables import (
    groups,
    make_kept_table,
    make_reached_table,
    soon_table,
    summary_lines,
)
from tightrope.benchmarks.published import NOTES, RESULT_TABLES
from tightrope.benchmarks.records import Record
from tightrope.benchmarks.table_cells import list_used_marks
from tightrope.benchmarks.table_formats import markdown_tables
from tightrope.benchmarks.tables import OMITTED, InstanceTable, instance_tables
from tightrope.io.written_by import GENERATED

INTRODUCTION = """\
# Results

{generated} {source} -o {target}`; nothing here is typed by hand. How to run such
a campaign: [campaigns.md](campaigns.md). What the models are, and what of them is ours:
[benchmarks.md](benchmarks.md).

Every row is the certified interval of the policy that is optimal in the true model, from {episodes:,}
trajectories of the policy that picks uniformly, at δ = {delta:g}. `gap` is (upper − lower) / V*.
`build` goes from counts to the uncertain model, `solve` from there to both ends of the interval. Bounds
are rounded outward. The columns from `paper` on are the paper's figures, from its own machine and its
own models; ours are reconstructions, and where the coefficients are ours too the line above the table
says so. `cap` is the length at which an episode is cut off, which the paper does not state.
"""


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
        "## Marks and methods\n\n" + "\n".join(f"- {line}" for line in _legend(tables)),
        markdown_tables(tables).rstrip(),
        *([] if online is None else [online.rstrip()]),
        "## What does not fit together in the paper's tables\n\n" + "\n".join(f"- {note}" for note in NOTES),
    ]
    return "\n\n".join(parts) + "\n"


def _circumstances(records: Sequence[Record]) -> list[str]:
    lines = []
    for record in records:
        line = describe({"machine": record.machine, "versions": record.versions})
        if line not in lines:
            lines.append(line)
    limits = sorted({(record.limits.seconds, record.limits.memory) for record in records})
    told = "; ".join(f"{seconds:g} s, {memory / (1 << 30):.3g} GiB" for seconds, memory in limits)
    return [*lines, f"limits of a cell: {told}", f"seeds: {_seeds(records)}"]


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

The paper's second setting, recorded by `tightrope bench --online` ({episodes}; seeds {seeds}; δ = {delta}).
Data are collected by the optimistic policy, and everything is computed anew whenever some choice's visits
have doubled ([online.md](online.md)). All methods here are time-uniform, for adaptive data need it:
`parameter`, `expression` and `rectangular` sets are those of the polytope of beta-binomial intervals. Bounds
are rounded to the safe side.
"""

SOON = """\
### Episodes to the same guarantee

How many episodes each method needs for the guarantee that `tied` sets have at the end, and in brackets how
many times fewer than `tied` needs for it itself (median over the seeds; `never`: not within the run). Where
`tied` sets end with what holds without any data, it is the episodes to any better guarantee.
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
        "Performance of the robust policy on the true model (solid) and what is guaranteed of it (dashed);\n"
        "median over the seeds, with bands from the smallest to the largest and between the quartiles.\n"
        "Below: the total time of a run."
        if image is not None
        else None
    )
    parts = [
        introduction.rstrip(),
        "\n".join(f"- {line}" for line in summary_lines(shown)),
        figure,
        SOON.rstrip(),
        soon_table(shown).markdown(),
        "### Whether the guarantees were kept",
        make_kept_table(shown).markdown(),
        "### After all episodes",
        make_reached_table(shown).markdown(),
        "Measured on " + "; ".join(describe(record.facts) for record in _distinct(records)) + ".",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _distinct(records: Sequence[OnlineRecord]) -> list[OnlineRecord]:
    """One record of each machine and set of versions."""
    return list({describe(record.facts): record for record in records}.values())
