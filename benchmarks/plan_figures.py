"""The figures of planning, from the rows of plan_experiment.py and plan_forecasts.py.

    python benchmarks/plan_figures.py EXPERIMENT.jsonl FORECASTS.jsonl -o docs/images

`savings.png`: episodes until the same certified gap, designed beside robust and optimistic exploration.
`forecasts.png`: episodes that were needed over those that were forecast, with the printed ranges.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from plan_experiment import CASES, SEEDS, known_rows, summary
from plan_forecasts import WITHIN, read
from tightrope.report.style import GREY, PAPER, WIDTH

COLOURS = {"designed": "#0b63b0", "robust": "#0a7d55", "optimistic": "#a65a00", "uniform": GREY}
MARKS = {100: "o", 571: "s", 2000: "^"}


def savings(rows: dict[tuple[Any, ...], dict[str, Any]]) -> Figure:
    """Bars of geometric means, the designed one with how many times fewer it is."""
    found = [
        one
        for case in CASES
        if case.at_most is None and (one := summary(case, rows, list(SEEDS))) is not None
    ]
    with PAPER.style():
        figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
        axes = figure.subplots()
        for place, way in enumerate(("designed", "robust", "optimistic")):
            height = [one["episodes"][way] for one in found]
            at = np.arange(len(found)) + 0.27 * (place - 1)
            axes.bar(at, height, 0.25, color=COLOURS[way], label=way)
            if way == "designed":
                for x, y, one in zip(at, height, found, strict=True):
                    axes.text(x + 0.12, y * 1.06, f"÷ {one['factor']:.2f}", ha="right", fontsize=7)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_xticks(range(len(found)), [one["instance"].replace("(", "\n(") for one in found])
        axes.set_ylim(bottom=100)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("episodes until the gap")
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def forecasts(rows: list[dict[str, Any]]) -> Figure:
    """A mark per forecast: needed over forecast against the forecast, the range as a line."""
    known = [row for row in rows if row["needed"] is not None and row["forecast"] > 0]
    with PAPER.style():
        figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
        axes = figure.subplots()
        axes.axhspan(
            1 / WITHIN, WITHIN, color="#0b63b0", alpha=0.07, linewidth=0, label=f"within × {WITHIN:g}"
        )
        axes.axhline(1.0, color=GREY, lw=0.8)
        for row in known:
            expected, colour = row["forecast"], COLOURS[row["way"]]
            ends = [max(row["low"], 1.0) / expected, min(row["high"], 1e9) / expected]
            axes.plot([expected] * 2, ends, color=colour, lw=0.8, alpha=0.35)
            axes.plot(expected, row["needed"] / expected, MARKS[row["pilot"]], color=colour, ms=3.5)
        for way in ("designed", "robust", "uniform"):
            axes.plot([], [], "-", color=COLOURS[way], label=way)
        for pilot, mark in MARKS.items():
            axes.plot([], [], mark, color="#1c2024", ms=3.5, label=f"pilot of {pilot:,}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(0.1, 10)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("episodes that were forecast")
        axes.set_ylabel("needed / forecast, and the range")
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", type=Path)
    parser.add_argument("forecasts", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images"))
    asked = parser.parse_args()
    drawn = {
        "savings": savings(known_rows(asked.experiment)),
        "forecasts": forecasts([row for file in asked.forecasts for row in read(file)]),
    }
    for name, figure in drawn.items():
        with PAPER.style():
            figure.savefig(asked.output / f"{name}.png", dpi=160)
    return 0


if __name__ == "__main__":
    sys.exit(main())
