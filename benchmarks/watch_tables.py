"""The tables of `watch_experiment.py`, as they stand in docs/watching.md, and which goals are missed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import beta

Row = dict[str, Any]


def tables(rows: Mapping[str, Sequence[Row]]) -> tuple[str, list[str]]:
    """All tables that there are rows for, as Markdown."""
    parts = {
        "false": _false_alarms,
        "delay": _delays,
        "named": _named,
        "beside": _beside,
        "fit": _false_alarms,
        "power": _power,
        "halfway": _halfway,
        "speed": _speed,
        "kill": _kill,
    }
    found, missed = [], []
    for part, make in parts.items():
        if rows.get(part):
            text, goals = make(rows[part])
            found.append(text)
            missed += goals
    return "\n\n".join(found), missed


def _false_alarms(rows: Sequence[Row]) -> tuple[str, list[str]]:
    total: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        for case in (row["name"].rsplit("/", 1)[0], "all"):
            total[case][0] += row["streams"]
            total[case][1] += row["above"]["0.05"]
            total[case][2] += row["above"]["0.01"]
    lines = ["| streams | number | alarms at α = 0.05 | at α = 0.01 |", "|---|---|---|---|"]
    missed = []
    for case in sorted(total, key=lambda name: (name == "all", name)):
        count, five, one = total[case]
        lines.append(f"| {case} | {count:,} | {five} ({five / count:.2%}) | {one} ({one / count:.2%}) |")
        for alpha, alarms in ((0.05, five), (0.01, one)):
            least = float(beta.ppf(0.001, alarms, count - alarms + 1)) if alarms else 0.0
            if least > alpha:
                missed.append(f"{case}: more false alarms than α = {alpha:g}")
    return "\n".join(lines), missed


def _mean(values: Sequence[float | None]) -> float:
    known = [math.inf if value is None else value for value in values]
    return sum(known) / len(known)


def _delays(rows: Sequence[Row]) -> tuple[str, list[str]]:
    lines = [
        "| a tenth of the range | runs | past | warning | oracle, run length 1/α | ratio "
        "| alarm | oracle, probability α | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["name"].rsplit("/", 1)[0]].append(row)
    missed = []
    for name, group in groups.items():
        kept = [row for row in group if not row["false"] and not row["false_warning"]]
        if not kept:
            continue
        warning, alarm, run, ever = (
            _mean([row[key] for row in kept]) for key in ("warning", "alarm", "oracle_run", "oracle_ever")
        )
        lines.append(
            f"| {name.split('/')[0]} | {len(kept)} | {kept[0]['past']:,} | {warning:,.0f} | {run:,.0f} "
            f"| {warning / run:.1f} | {alarm:,.0f} | {ever:,.0f} | {alarm / ever:.1f} |"
        )
        for what, ratio in (("warning", warning / run), ("alarm", alarm / ever)):
            if ratio > 4.0:
                missed.append(f"{name}: the {what} takes {ratio:.1f} times as long as its oracle, not 4")
        early = [row for row in group if row["false"]]
        if early:
            missed.append(f"{name}: {len(early)} of {len(group)} streams had a false alarm before the jump")
    return "\n".join(lines), missed


def _named(rows: Sequence[Row]) -> tuple[str, list[str]]:
    lines = ["| what is wrong | runs | found | named first | median events |", "|---|---|---|---|---|"]
    words = {"coefficient": "a coefficient", "tie": "a tie", "outcome": "an outcome too many"}
    missed = []
    for what, name in words.items():
        group = [row for row in rows if row["name"].startswith(what + "/")]
        if not group:
            continue
        found, first = (sum(row[key] for row in group) / len(group) for key in ("alarm", "first"))
        events = sorted(row["events"] or math.inf for row in group)[len(group) // 2]
        lines.append(f"| {name} | {len(group)} | {found:.0%} | {first:.0%} | {events:,.0f} |")
        if min(found, first) < 0.9:
            missed.append(f"{name}: found in {found:.0%}, named first in {first:.0%}")
    return "\n".join(lines), missed


def _beside(rows: Sequence[Row]) -> tuple[str, list[str]]:
    """For each method the level with the shortest mean delay among those with at most 1 false alarm in 20."""
    lines = ["| method | level | false alarms | found | mean delay of those |", "|---|---|---|---|---|"]
    names = {
        "oracle": "CUSUM that knows both",
        "monitor": "`watch`, α = 0.05",
        "chi-square": "χ² per choice, Bonferroni",
        "adwin": "ADWIN on residuals",
    }
    for method, name in names.items():
        null = [row for row in rows if row["name"].startswith(f"{method}/null/")]
        jump = [row for row in rows if row["name"].startswith(f"{method}/jump/")]
        if not null or not jump:
            continue
        best = None
        for level in jump[0]["delays"]:
            alarms = sum(row["delays"][level] is not None for row in null)
            delays = [row["delays"][level] for row in jump if row["delays"][level] is not None]
            mean = sum(delays) / len(delays) if delays else math.inf
            entry = (-len(delays), mean, level, alarms)
            if alarms <= len(null) / 20 and (best is None or entry < best):
                best = entry
        if best is None:
            lines.append(f"| {name} | none of those tried | – | – | – |")
            continue
        count, mean, level, alarms = best
        if count == 0:
            lines.append(f"| {name} | any of those tried | {alarms} of {len(null)} | none | – |")
            continue
        lines.append(
            f"| {name} | {level} | {alarms} of {len(null)} | {-count} of {len(jump)} | {mean:,.0f} |"
        )
    return "\n".join(lines), []


def _halfway(rows: Sequence[Row]) -> tuple[str, list[str]]:
    lines = [
        "| parameters | episodes | change, standard errors | logs | contradicted |",
        "|---|---|---|---|---|",
    ]
    groups: dict[tuple[int, int, float], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        group = groups[row["coins"], row["episodes"], row["errors"]]
        group[0] += row["sets"]
        group[1] += row["found"]
    missed = []
    for (coins, episodes, errors), (sets, found) in groups.items():
        lines.append(f"| {coins} | {episodes:,} | {errors:g} | {sets:,} | {found} ({found / sets:.1%}) |")
        if errors and found < 0.8 * sets:
            missed.append(
                f"{coins} parameters, {episodes:,} episodes: a change was found in {found} of {sets}"
            )
    null = [group for (_, _, errors), group in groups.items() if not errors]
    logs, alarms = (sum(group[i] for group in null) for i in (0, 1))
    if alarms > 0.001 * logs:
        missed.append(f"{alarms} of {logs:,} logs without a change contradict the model")
    return "\n".join(lines), missed


def _power(rows: Sequence[Row]) -> tuple[str, list[str]]:
    lines = [
        "| what is wrong | events | data sets | contradicted, in batches | named first "
        "| without order | named first |",
        "|---|---|---|---|---|---|---|",
    ]
    words = {"nothing": "nothing", "coefficient": "a coefficient", "tie": "a tie"}
    groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        what, size, _ = row["name"].split("/")
        groups[what, int(size)].append(row)
    missed = []
    for (what, size), group in sorted(
        groups.items(), key=lambda item: (list(words).index(item[0][0]), item[0][1])
    ):
        cells = []
        for how in ("batches", "no order"):
            found = [row[how] for row in group if row[how]["alarm"]]
            first = sum(each["first"] for each in found)
            named = f"{first} of {len(found)}" if found and what != "nothing" else "–"
            cells += [f"{len(found) / len(group):.0%}", named]
        lines.append(f"| {words[what]} | {size:,} | {len(group)} | " + " | ".join(cells) + " |")
        if what == "nothing" and any(row[how]["alarm"] for row in group for how in ("batches", "no order")):
            missed.append(f"a right model is contradicted by {size:,} events")
    return "\n".join(lines), missed


def _speed(rows: Sequence[Row]) -> tuple[str, list[str]]:
    lines = ["| events | CPU seconds, all of it | events per second | peak memory |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: row["events"]):
        rate = row["events"] / row["cpu_seconds"]
        used = f"{row['cpu_seconds']:.1f} | {rate:,.0f}"
        lines.append(f"| {row['events']:,} | {used} | {row['megabytes']:.0f} MB |")
    largest = max(rows, key=lambda row: row["events"])
    rate = largest["events"] / largest["cpu_seconds"]
    missed = [] if rate >= 1e6 else [f"{rate:,.0f} events per second from Parquet, not 1,000,000"]
    return "\n".join(lines), missed


def _kill(rows: Sequence[Row]) -> tuple[str, list[str]]:
    same = all(row["same"] for row in rows)
    words = "the same e-value" if same else "another e-value"
    missed = [] if same else ["a killed watch comes to another e-value"]
    return f"Killed while following a file and started again: {words}.", missed
