"""What `tightrope watch` does: read, weigh, report."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from tightrope.cli.model_source import load_model
from tightrope.cli.output import print_json, print_table
from tightrope.data.event_stream import Events, split_at_excluded
from tightrope.data.read_options import ReadOptions
from tightrope.errors import InputError
from tightrope.formats.atomic import check_target
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.checkpoint import load_monitor, save_monitor
from tightrope.monitoring.following import Following
from tightrope.monitoring.monitor import Monitor
from tightrope.monitoring.suspects import Suspect

ALARM = 1
PAUSE = 0.5
"""Seconds between looks at a log that grows."""

SHOWN = 5


@dataclass(frozen=True)
class WatchRequest:
    """The options of the command."""

    subject: tuple[str, list[str] | None, str | None, str | None]
    places: tuple[str, ...]
    options: ReadOptions
    alpha: float
    follow: bool
    every: int
    stop: bool
    checkpoint: Path | None
    strict: bool
    json: bool


class AlarmRaised(Exception):
    """The first alarm, where the user wants to stop there."""


def run(asked: WatchRequest) -> None:
    """Watch the log; leaves with code 1 where there is an alarm."""
    asked.options.check()
    model = load_model(*asked.subject).model
    if not isinstance(model, ParametricMDP):
        raise InputError(
            "watch needs a model with parameters",
            hint="declare what is not known as an undefined constant: const double p;",
        )
    monitor = Monitor(model, alpha=asked.alpha)
    log = Following(asked.places, model.structure, asked.options, asked.strict)
    if "-" in asked.places and (len(asked.places) > 1 or asked.checkpoint is not None):
        raise InputError("standard input stands alone: it can neither be joined with files nor read again")
    if asked.checkpoint is not None:
        check_target(asked.checkpoint)
    if asked.checkpoint is not None and asked.checkpoint.exists():
        log.read.update(load_monitor(asked.checkpoint, monitor))
    watching = _Watching(asked, monitor, log)
    with _interruptible(), suppress(AlarmRaised):
        watching.run()
    watching.report(final=True)
    watching.keep()
    if monitor.alarm:
        raise typer.Exit(ALARM)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends the watch and is no failure."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("", err=True)


class _Watching:
    """One run of the command."""

    def __init__(self, asked: WatchRequest, monitor: Monitor, log: Following):
        self.asked = asked
        self.monitor = monitor
        self.log = log
        self.told = False
        self.alarmed = monitor.alarm
        self.due = monitor.events + asked.every if asked.every else math.inf
        self.begin = time.perf_counter()

    def run(self) -> None:
        if self.log.is_stream:
            while self.log.take_stream(self.take, PAUSE):
                pass
            return
        if not self.asked.follow:
            self.log.take_all(self.take)
            return
        while True:
            if self.log.take_new(self.take):
                self.keep()
            time.sleep(PAUSE)

    def take(self, events: Events) -> None:
        """Weigh a chunk; say so where a report is due or an alarm is new."""
        self.say_how_read()
        is_new = False
        for part in split_at_excluded(events):
            if hasattr(part, "text"):
                self.monitor.exclude(part.text)
            else:
                self.monitor.observe(part)
            if self.monitor.alarm and not self.alarmed:
                self.alarmed = is_new = True
                self.report()
        if self.alarmed and self.asked.stop:
            raise AlarmRaised
        if self.monitor.events >= self.due:
            self.due = self.monitor.events + self.asked.every
            if not is_new:
                self.report()
            self.keep()

    def keep(self) -> None:
        """Write what is known, between two chunks."""
        if self.asked.checkpoint is not None:
            save_monitor(self.asked.checkpoint, self.monitor, self.log.read)

    def say_how_read(self) -> None:
        if not self.told and self.log.read_as:
            self.told = True
            typer.echo(f"read as: {self.log.read_as}", err=self.asked.json)

    def report(self, final: bool = False) -> None:
        """One line of JSON, or a line for people; a table in the end."""
        self.monitor.look()
        monitor = self.monitor
        suspects = monitor.explain(SHOWN) if final or monitor.alarm else []
        if self.asked.json:
            print_json(self._facts(suspects))
            return
        self.say_how_read()
        typer.echo(verdict(monitor))
        if final and self.log.dropped:
            typer.echo(
                f"NOMINAL: {_dropped(self.log)}; the rate of false alarms holds only if nothing is left out"
            )
        if final and suspects:
            print_suspects(suspects, monitor.alarm)

    def _facts(self, suspects: list[Suspect]) -> dict[str, Any]:
        monitor = self.monitor
        log_e = monitor.log_evidence
        return {
            "alarm": monitor.alarm,
            "e_value": monitor.evidence,
            "log_e_value": log_e,
            "alpha": monitor.alpha,
            "events": monitor.events,
            "first_alarm": monitor.first_alarm,
            "suspects": [suspect.to_json() for suspect in suspects],
            "parameters": monitor.parameters() if monitor.events else {},
            "read": dict(self.log.read),
            "dropped": dict(self.log.dropped),
            "nominal": bool(self.log.dropped),
            "seconds": round(time.perf_counter() - self.begin, 6),
        }


def _dropped(log: Following) -> str:
    """`3 rows left out (2 unknown state, 1 missing value)`."""
    reasons = ", ".join(f"{times:,} {reason}" for reason, times in log.dropped.items())
    return f"{sum(log.dropped.values()):,} rows left out ({reasons})"


def verdict(monitor: Monitor) -> str:
    """One line: what the evidence says after how many events."""
    log_e = monitor.log_evidence
    shown = "∞" if math.isinf(log_e) and log_e > 0 else f"10^{log_e / math.log(10):.1f}"
    facts = f"{monitor.events:,} events, e-value {shown}, alarm at {1 / monitor.alpha:,.0f}"
    if monitor.first_alarm is not None:
        return f"ALARM at event {monitor.first_alarm:,}: the data contradict the model ({facts})"
    if log_e >= 0.5 * math.log(1.0 / monitor.alpha):
        return f"evidence against the model is growing ({facts})"
    return f"fits ({facts})"


def print_suspects(suspects: list[Suspect], alarm: bool) -> None:
    """What speaks most against the model."""
    rows = []
    for suspect in suspects:
        log_e = suspect.log_e_value
        shown = "∞" if math.isinf(log_e) else f"10^{log_e / math.log(10):.1f}"
        rows.append((suspect.kind, suspect.text, _details(suspect), shown))
    title = "What the data contradict" if alarm else "What fits worst (no alarm)"
    print_table(title, ("kind", "where", "seen against best fit", "e-value"), rows, numeric=False)


def _details(suspect: Suspect) -> str:
    if suspect.moved:
        return "; ".join(
            f"{name}: {before:.4g} → {after:.4g} ({errors:+.1f} standard errors)"
            for name, before, after, errors in suspect.moved[:3]
        )
    return "; ".join(
        f"{seen.outcome}: {seen.count:,} times, {seen.observed:.4f} against {seen.expected:.4f}"
        for seen in suspect.outcomes[:4]
    )
