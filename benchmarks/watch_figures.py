"""The pictures of docs/watching.md: delays beside the oracles, and the evidence of one run with a jump.

    python benchmarks/watch_figures.py ROWS      writes docs/images/watch-delays.png and watch-run.png

ROWS is what `watch_experiment.py` has measured. The run is one of betting(25) with the same past and α.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from tightrope.monitoring.monitor import Monitor
from watch_streams import Jump, walk

ALPHA, PAST = 0.001, 50.0
KINDS = (
    ("oracle_run", "CUSUM that knows both, run length 1/α", "#8a93a0", "s"),
    ("warning", "warning", "#0b63b0", "o"),
    ("oracle_ever", "CUSUM that knows both, probability α", "#4d5561", "D"),
    ("alarm", "alarm", "#b3003c", "o"),
)


def draw_delays(rows: list[dict[str, object]], output: Path) -> None:
    """Events from jump to notice, run by run and on average, for every instance that was measured."""
    groups: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        if row["part"] == "delay" and not row["false"] and not row["false_warning"]:
            groups[str(row["name"]).split("/", 1)[0]].append(row)
    figure, axes = plt.subplots(figsize=(7.6, 0.85 * len(groups) + 1.6), dpi=150, layout="constrained")
    for place, group in enumerate(groups.values()):
        for offset, (key, label, colour, marker) in enumerate(KINDS):
            values = [float(str(row[key])) for row in group if row[key] is not None]
            level = place + 0.18 * (offset - 1.5)
            axes.plot(values, [level] * len(values), ".", color=colour, alpha=0.3, markersize=4)
            shown = label if place == 0 else None
            axes.plot(np.mean(values), level, marker, color=colour, markersize=6, label=shown)
    axes.set_xscale("log")
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_xlabel("events after a jump of one parameter by a tenth of its range (small: runs, large: mean)")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    figure.savefig(output)
    plt.close(figure)


def draw_run(output: Path) -> None:
    """The e-value, and what the detector says, as events come in."""
    jump = Jump.of("betting(25)", 0)
    length = int(PAST * math.log(1 / ALPHA) / jump.information)
    stream = np.concatenate([walk(jump.before, length, 1007), walk(jump.after, 9000, 5007)])
    monitor = Monitor(jump.model, alpha=ALPHA)
    monitor.observe(stream[: length - 6000])
    events, evidence = [], []
    for first in range(length - 6000, len(stream), 250):
        monitor.observe(stream[first : first + 250])
        events.append(monitor.events)
        evidence.append(monitor.log_evidence / math.log(10.0))
    figure, axes = plt.subplots(figsize=(7.6, 3.6), dpi=150, layout="constrained")
    axes.plot(events, evidence, color="#0b63b0", label="e-value of the watch")
    level = -math.log10(ALPHA)
    axes.axhline(level, color="#b3003c", linewidth=1.0, linestyle="--", label="1/α: alarm")
    axes.axvline(length, color="#4d5561", linewidth=1.0, linestyle=":", label="the parameter jumps")
    noticed = (("warning", monitor.first_warning, "^"), ("alarm", monitor.first_alarm, "o"))
    for name, event, marker in noticed:
        if event is not None:
            height = float(np.interp(event, events, evidence))
            label = f"{name}, {event - length:,} events later"
            axes.plot(event, height, marker, color="#b3003c", markersize=7, label=label)
    axes.set_xlabel("events")
    axes.set_ylabel("evidence against the model, log₁₀")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(output)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images"))
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.rows.read_text(encoding="utf-8").splitlines()]
    draw_delays(rows, options.output / "watch-delays.png")
    draw_run(options.output / "watch-run.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
