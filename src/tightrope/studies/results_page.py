"""The page `docs/results.md`: everything on it comes from records and from the paper's published tables."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.formats.written_by import GENERATED
from tightrope.studies.cells import Protocol
from tightrope.studies.comparison import summary
from tightrope.studies.machine import describe
from tightrope.studies.methods import METHODS
from tightrope.studies.published import NOTES, RESULT_TABLES
from tightrope.studies.records import Record
from tightrope.studies.table_cells import list_used_marks
from tightrope.studies.table_formats import markdown_tables
from tightrope.studies.tables import OMITTED, InstanceTable, instance_tables

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
