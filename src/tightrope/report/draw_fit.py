"""Figures of model fit: evidence over time, and observed against expected frequencies.

Evidence is the logarithm of an e-value (`tightrope.monitoring.e_process`) over events, with the line that a
right model crosses with probability at most α. Expected frequencies have bands of ± 2 standard errors.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter
from matplotlib.transforms import blended_transform_factory
from msgspec import UnsetType

from tightrope.io.results import FITS, Anomaly, Look, ModelFit, ResultDocument, Seen
from tightrope.report.style import (
    FAINT,
    GREY,
    INK,
    PAPER_WHITE,
    SETS,
    TRUTH,
    NumberTable,
    Picture,
    legend_below,
    name_axes,
    name_rows,
    number,
    plain,
    shorten,
    tell,
)

SUSPECTS = 5
OUTCOMES = 3
"""Outcomes that are drawn of one choice, those that are furthest off."""

LONGEST = 52
VALUE = re.compile(r"\b\w+=-?\w+")
LOG = math.log(10.0)


def fit_of(run: ResultDocument) -> ModelFit | None:
    """The test of the main result; None without data, and in results of earlier versions."""
    fit = run.main.fit
    return None if isinstance(fit, UnsetType) else fit


def draw_evidence(run: ResultDocument, axes: Axes) -> None:
    """The evidence at all looks, the level of an alarm, and the first alarm."""
    fit = fit_of(run)
    assert fit is not None
    level = -math.log10(fit.alpha)
    shown = [look for look in fit.looks if math.isfinite(look.log_e_value)] or [Look(fit.events, 0.0)]
    events = [look.events for look in shown]
    values = [look.log_e_value / LOG for look in shown]
    colour = SETS["rectangular"]
    axes.plot(events, values, "-", color=colour, lw=1.2)
    for event, value in zip(events, values, strict=True):
        (dot,) = axes.plot([event], [value], ".", color=colour, ms=5)
        tell(dot, f"{event:,} events", f"e-value 10^{value:.2f}")
    axes.axhline(level, color=TRUTH, lw=1.2, ls="--")
    axes.axhline(0.0, color=GREY, lw=0.8, ls=":")
    keys: list[Patch | Line2D] = [
        Line2D([], [], color=colour, marker=".", ms=5, lw=1.2, label="evidence against the model"),
        Line2D([], [], color=TRUTH, ls="--", lw=1.2, label=f"alarm: {1.0 / fit.alpha:,.0f}"),
        Line2D([], [], color=GREY, ls=":", lw=0.8, label="no evidence: 1"),
    ]
    if fit.first_alarm is not None:
        axes.axvline(fit.first_alarm, color=TRUTH, lw=0.8)
        keys.insert(2, Line2D([], [], color=TRUTH, lw=0.8, label="first alarm"))
    if events[-1] > 50 * events[0]:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = min(*values, 0.0), max(*values, level)
    axes.set_ylim(low - 0.06 * (high - low), high + 0.08 * (high - low))
    name_axes(axes, "events (observed transitions)", "log10 of the e-value")
    legend_below(axes, keys)


def evidence_words(run: ResultDocument) -> str:
    """The verdict in a sentence for people."""
    fit = fit_of(run)
    assert fit is not None
    power = f"10^{fit.log_e_value / LOG:.1f}"
    words = {
        FITS: f"There is no evidence against the model: the e-value is {power} after {fit.events:,} events.",
        "evidence growing": f"Evidence against the model is growing: the e-value is {power} after "
        f"{fit.events:,} events. There is no alarm yet.",
        "model contradicted": f"The data contradict the model: the e-value is {power} after {fit.events:,} "
        "events. The guarantee does not hold: see the largest deviations.",
    }.get(fit.verdict, fit.text)
    if fit.first_alarm is not None:
        words += f" The alarm came after {fit.first_alarm:,} events."
    if fit.nominal:
        words += f" The rate of false alarms is not guaranteed ({'; '.join(fit.nominal)})."
    return words


def evidence_caption(run: ResultDocument) -> str:
    """How to read the picture."""
    fit = fit_of(run)
    assert fit is not None
    order = (
        ""
        if fit.ordered
        else " The counts have no order in time, so the test has less power and cannot detect changes of "
        "parameters."
    )
    return (
        f"{evidence_words(run)} The e-value compares alternatives (other expressions, unequal choices, "
        "changing parameters) with the model at its best fit. If the model is correct, the probability "
        f"that it ever reaches {1.0 / fit.alpha:,.0f} is at most {fit.alpha:g}. The test has its own level, "
        f"apart from the confidence of the guarantee.{order}"
    )


def _evidence_table(run: ResultDocument) -> NumberTable:
    fit = fit_of(run)
    assert fit is not None
    rows = [(f"{look.events:,}", f"10^{look.log_e_value / LOG:.2f}") for look in fit.looks]
    return NumberTable(f"Numbers: {len(rows)} interim analyses", ("events", "e-value"), rows)


@dataclass(frozen=True)
class Row:
    """An outcome of a choice that fits badly, and how often the choice was taken."""

    suspect: Anomaly
    seen: Seen
    visits: int

    @property
    def spread(self) -> float:
        """Two standard errors of the frequency, were the best fit the truth."""
        expected = min(max(self.seen.expected, 0.0), 1.0)
        return 2.0 * math.sqrt(expected * (1.0 - expected) / max(self.visits, 1))


def worst_rows(run: ResultDocument) -> list[Row]:
    """What is drawn: of each choice the outcomes that are furthest off, in their order."""
    fit = fit_of(run)
    rows: list[Row] = []
    shown = [] if fit is None else [suspect for suspect in fit.suspects if suspect.outcomes]
    for suspect in shown[:SUSPECTS]:
        visits = sum(seen.count for seen in suspect.outcomes)
        off = sorted(suspect.outcomes, key=lambda seen: -abs(seen.observed - seen.expected))[:OUTCOMES]
        rows += [Row(suspect, seen, visits) for seen in suspect.outcomes if seen in off]
    return rows


def draw_worst(run: ResultDocument, axes: Axes) -> None:
    """The outcomes as rows, under the names of the choices that they belong to."""
    at, places, labels = -1.0, [], []
    before: Anomaly | None = None
    for row in worst_rows(run):
        at += 1.0
        if row.suspect is not before:
            before = row.suspect
            place = blended_transform_factory(axes.figure.transFigure, axes.transData)
            head = axes.text(
                0.01, at, plain(shorten(_where(row.suspect), LONGEST)), va="center", transform=place
            )
            head.set(fontweight="bold", in_layout=False, backgroundcolor=PAPER_WHITE)
            tell(head, row.suspect.text)
            at += 1.0
        tips = [row.suspect.text, row.seen.outcome, f"seen {row.seen.count:,} of {row.visits:,} times"]
        tips.append(f"observed {number(row.seen.observed, 4)}, expected {number(row.seen.expected, 4)}")
        low, high = max(row.seen.expected - row.spread, 0.0), min(row.seen.expected + row.spread, 1.0)
        (bar,) = axes.barh([at], [high - low], 0.62, left=[low], color=FAINT, edgecolor=FAINT, lw=0.4)
        tell(bar, *tips)
        axes.plot([row.seen.expected], [at], "|", color=SETS["rectangular"], ms=9, mew=1.6)
        (dot,) = axes.plot([row.seen.observed], [at], ".", color=INK, ms=6)
        tell(dot, *tips)
        places.append(at)
        labels.append(_outcome(row))
    axes.set_xlim(-0.02, 1.02)
    name_rows(axes, places, labels, LONGEST // 2)
    axes.set_ylim(at + 0.6, -0.6)
    axes.grid(False, axis="y")
    name_axes(axes, "probability", "")
    keys: list[Patch | Line2D] = [
        Line2D([], [], ls="", marker=".", color=INK, ms=6, label="observed"),
        Line2D([], [], ls="", marker="|", color=SETS["rectangular"], ms=9, mew=1.6, label="best fit"),
        Patch(color=FAINT, label="± 2 standard errors"),
    ]
    legend_below(axes, keys)


def _where(suspect: Anomaly) -> str:
    return (
        suspect.text.removeprefix("as in ")
        .replace("choice ", "")
        .replace(" of state ", " in ")
        .replace("'", "")
    )


def _outcome(row: Row) -> str:
    """Where it leads, by the variables that change, or the expression of its probability."""
    text = row.seen.outcome.rpartition(" (")[0] if row.suspect.kind == "tie" else row.seen.outcome
    text = f"to {text.partition(' → ')[2]}" if " → " in text else text
    before = set(VALUE.findall(row.suspect.text))
    if not before or not (after := VALUE.findall(text)):
        return text
    return f"to {', '.join(value for value in after if value not in before)}".strip() or "no change"


def _worst_table(run: ResultDocument) -> NumberTable:
    fit = fit_of(run)
    rows: list[tuple[str, ...]] = []
    for suspect in () if fit is None else fit.suspects:
        own = "∞" if suspect.log_e_value is None else f"10^{suspect.log_e_value / LOG:.1f}"
        kind = suspect.kind
        rows += [
            (kind, suspect.text, s.outcome, f"{s.count:,}", number(s.observed, 4), number(s.expected, 4), own)
            for s in suspect.outcomes
        ]
        rows += [
            (
                kind,
                suspect.text,
                m.parameter,
                "–",
                f"{number(m.after, 4)} after",
                f"{number(m.before, 4)} before",
                own,
            )
            for m in suspect.moved
        ]
    return NumberTable(
        "Numbers: largest deviations",
        ("kind", "where", "outcome", "times", "observed", "expected", "own e-value"),
        rows,
    )


def worst_caption(run: ResultDocument) -> str:
    """How to read the picture; of many choices some are off by chance."""
    chosen = len({row.suspect.text for row in worst_rows(run)})
    return (
        f"Observed and expected frequencies of the {chosen} distributions with the largest deviations. "
        "Some deviations beyond two standard errors occur by chance; the e-value accounts for this."
    )


EVIDENCE = Picture(
    "fit",
    "Model fit",
    draw_evidence,
    lambda run: 2.9,
    evidence_words,
    _evidence_table,
    evidence_caption,
    lambda run: bool((fit := fit_of(run)) and fit.looks),
)

WORST = Picture(
    "observed",
    "Largest deviations",
    draw_worst,
    lambda run: 1.1 + 0.19 * (len(worst_rows(run)) + len({row.suspect.text for row in worst_rows(run)})),
    lambda run: f"Observed against expected for {len(worst_rows(run))} outcomes that fit worst",
    _worst_table,
    worst_caption,
    lambda run: bool(worst_rows(run)),
)
