"""The section on learning curves of `docs/results.md`: everything on it comes from records."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.studies.machine import describe
from tightrope.studies.online_records import OnlineRecord
from tightrope.studies.online_tables import (
    groups,
    make_kept_table,
    make_reached_table,
    soon_table,
    summary_lines,
)

CURVES = "online-curves"
"""The stem of the figure's files."""

INTRODUCTION = """\
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
    introduction = INTRODUCTION.format(
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
