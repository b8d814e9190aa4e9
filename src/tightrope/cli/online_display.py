"""How a run looks: a live line on stderr where that is a terminal, and a table of its records at the end."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from tightrope.cli.output import group, memory_text, print_facts, print_table
from tightrope.cli.subject import Subject
from tightrope.learning.result import LearningResult
from tightrope.numerics.text import bound_text, interval_text
from tightrope.verdict import Verdict

SHOWN_DIGITS = 6
ROWS = 16
"""Of the table: the first record, the last, and some between at growing distances."""


class RunDisplay:
    """Episodes done, and what is guaranteed so far; silent where stderr is no terminal."""

    def __init__(self, episodes: int, wanted: bool):
        self._episodes = episodes
        self._wanted = wanted and sys.stderr.isatty()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._wanted:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("episodes"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=self._episodes)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, record: Mapping[str, Any]) -> None:
        """The latest record."""
        if self._bar is not None:
            floor = _is_floor(record)
            parts = [f"update {record['update']}", f"guarantee {_bound(record['guarantee'], floor)}"]
            if record["performance"] is not None:
                parts.append(f"performance {_number(record['performance'])}")
            parts.append(f"optimistic {_bound(record['optimistic'], not floor)}")
            self._bar.update(self._task, completed=record["episode"], description=", ".join(parts))


def headline(verdict: Verdict, record: Mapping[str, Any], delta: float) -> str:
    """The verdict of a run in a line: the guarantee of its last update, as far as it may be claimed."""
    floor = _is_floor(record)
    claim = f"at {'least' if floor else 'most'} {_bound(record['guarantee'], floor)}"
    return verdict.headline(claim, f"with confidence {1 - delta:.10g}")


def print_run(
    subject: Subject,
    records: Sequence[Mapping[str, Any]],
    result: LearningResult,
    explored: str,
    written: str | None,
) -> None:
    """Some of the records, and what they add up to."""
    floor = _is_floor(records[-1])
    known = any(record["performance"] is not None for record in records)
    together = any(record.get("best_guarantee") is not None for record in records)
    columns = ["episode", "steps", "guarantee", *(["best so far"] if together else [])]
    columns += [*(["performance"] if known else []), "optimistic", "seconds"]
    rows = [
        [
            group(record["episode"]),
            group(record["steps"]),
            _bound(record["guarantee"], floor),
            *([_bound(record.get("best_guarantee"), floor)] if together else []),
            *([_number(record["performance"])] if known else []),
            _bound(record["optimistic"], not floor),
            f"{record['elapsed']:.3g}",
        ]
        for record in choose_records(records)
    ]
    print_table(subject.query.text, columns, rows)
    robust = result.robust.interval
    last = records[-1]
    facts = [
        ("updates", group(len(records))),
        ("explored", explored),
        *((("gap", _gap(last)),) if "reached" in last else ()),
        ("memory", memory_text()),
        ("sets", f"{result.kind.value} ({result.sets.relaxation.value})"),
        ("region", result.decisions.region.value if result.decisions.region else "none"),
        ("robust policy", interval_text(robust.lower, robust.upper, SHOWN_DIGITS)),
        *(
            (("best guarantee", _best(records, floor)),)
            if records[-1].get("best_guarantee") is not None
            else ()
        ),
        *((("kept", _count_kept(records)),) if known else ()),
        *((("drift", _drift(records)),) if "drift" in records[-1] else ()),
        *((("model fit", result.fit.text),) if result.fit is not None else ()),
        *(("why", reason) for reason in result.decisions.reasons),
        *(("ledger", line) for line in result.ledger.lines),
        *((("written", written),) if written else ()),
    ]
    print_facts("", facts)


def choose_records(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """At most `ROWS` of the records, evenly spread over the logarithm of the episodes."""
    if len(records) <= ROWS:
        return list(records)
    last = max(records[-1]["episode"], 2)
    kept: dict[int, Mapping[str, Any]] = {}
    for number, record in enumerate(records):
        cell = 0 if record["episode"] == 0 else 1 + int((ROWS - 2) * _share(record["episode"], last))
        kept[cell if number < len(records) - 1 else ROWS] = record
    return [kept[cell] for cell in sorted(kept)]


def _share(episode: int, last: int) -> float:
    from math import log

    return min(log(episode) / log(last), 1 - 1e-9)


def _best(records: Sequence[Mapping[str, Any]], floor: bool) -> str:
    return f"{_bound(records[-1]['best_guarantee'], floor)} (of all updates, which hold together)"


def _gap(last: Mapping[str, Any]) -> str:
    found = f"{_bound(last['gap'], False)} after {group(last['episode'])} episodes"
    return found if last["reached"] else f"{found}: more than was asked for"


def _drift(records: Sequence[Mapping[str, Any]]) -> str:
    found = records[-1]["drift"]
    said = f"{found['events']:,} events, "
    if found["alarm"]:
        said += f"alarm at event {found['first_alarm']:,}"
    else:
        said += f"no alarm (a false one has probability at most {found['alpha']:g})"
    if found["restarts"]:
        said += f"; {found['restarts']:,} restarts, the last after {found['since']:,} episodes"
    return said


def _count_kept(records: Sequence[Mapping[str, Any]]) -> str:
    broken = sum(record["holds"] is False for record in records)
    return f"{len(records) - broken} of {len(records)} guarantees, compared with the truth"


def _is_floor(record: Mapping[str, Any]) -> bool:
    """Whether the guarantee is a lower bound: the optimistic value lies on its other side."""
    return float(record["guarantee"]) <= float(record["optimistic"])


def _bound(value: object, is_lower: bool) -> str:
    return "–" if value is None else bound_text(float(str(value)), is_lower, SHOWN_DIGITS)


def _number(value: object) -> str:
    return "–" if value is None else f"{float(str(value)):.{SHOWN_DIGITS}g}"
