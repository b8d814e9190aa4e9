"""How `tightrope watch` puts into words what a monitor says."""

from __future__ import annotations

import math

from tightrope.cli.output import print_table
from tightrope.monitoring.following import Following
from tightrope.monitoring.monitor import Monitor
from tightrope.monitoring.promise import PromiseWatch
from tightrope.monitoring.suspects import Suspect
from tightrope.numerics.text import bound_text


def describe_dropped(log: Following) -> str:
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
    if monitor.first_warning is not None:
        return (
            f"WARNING at event {monitor.first_warning:,}: the parameters seem to have changed ({facts}; "
            "warnings have a rate of false ones, alarms a probability)"
        )
    if log_e >= 0.5 * math.log(1.0 / monitor.alpha):
        return f"evidence against the model is growing ({facts})"
    return f"fits ({facts})"


def returns_verdict(watched: PromiseWatch) -> str:
    """One line: whether the returns agree with the promise."""
    watch, promise = watched.returns, watched.promise
    side = "at least" if promise.least else "at most"
    e_value = f"e-value 10^{watch.log_capital / math.log(10):.1f}, alarm at {1 / watch.alpha:,.0f}"
    seen = (
        f"{watch.episodes:,} episodes returned {watched.mean:.6g} on average"
        if watch.episodes
        else "none yet"
    )
    counted = f"{watched.left:,} left the policy, {watched.cut:,} were cut off"
    facts = f"{seen}, promised {side} {bound_text(promise.bound, promise.least, 6)}; {counted}; {e_value}"
    if watched.first_alarm is not None:
        return f"ALARM at event {watched.first_alarm:,}: the returns contradict the promise ({facts})"
    return f"returns agree with the promise ({facts})"


def print_suspects(suspects: list[Suspect], alarm: bool) -> None:
    """What speaks most against the model; where there is an alarm, only what does."""
    rows: list[tuple[str, str, str, str]] = []
    for suspect in suspects:
        if alarm and rows and suspect.log_e_value <= 0.0:
            continue
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
