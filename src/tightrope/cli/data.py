"""`tightrope data LOG… --model M`: how a log is read, and what it holds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli import late, options, sources
from tightrope.cli import output as screen
from tightrope.cli.flags import as_flags
from tightrope.cli.options import declare, option, takes
from tightrope.data.counts import Counts, Coverage
from tightrope.data.row_validation import UnknownValue
from tightrope.io.coding import from_plain, record_of
from tightrope.io.log_words import LogWords, reading_text
from tightrope.io.output import FIGURE, READING
from tightrope.io.results import DesignFacts, ReadingFacts
from tightrope.learning.log_description import LogDescription, PointEstimates, describe_log
from tightrope.numerics.text import interval_text, number_text
from tightrope.problem import Model
from tightrope.statistics.estimates import check_delta
from tightrope.verdict import Assumed


class DataAnswer(ReadingFacts, kw_only=True, frozen=True):
    """`data`: how a log is read for a model, and what it holds; `verdict` is the best that a result from it
    can be worth."""

    verdict: str
    order: Assumed
    ends: Assumed
    episodes: int | None
    steps: int
    bytes: int | None
    files: list[str]
    columns: dict[str, str]
    design: DesignFacts
    refused: str | None
    unknown: dict[str, tuple[UnknownValue, ...]]
    coverage: Coverage
    estimates: PointEstimates | None
    plot: str | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class DataRequest(options.ModelOptions):
    """The options of the command."""

    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG",
            help="Files, patterns, directories, object stores, - for standard input, or minari:NAME; "
            "read in the order given.",
        ),
    ]
    model: Annotated[str, option("--model -m", options.MODEL_HELP, "MODEL")]
    delta: float = declare("--delta", "All intervals hold simultaneously at level 1 − D.", "D", default=0.05)
    plot: Path | None = declare("--plot", "Also draw the log (.png, .svg, .pdf).", "FILE")
    output: Path | None = declare(
        "-o --output", "Save the import settings for other commands: NAME.reading.toml.", "FILE"
    )
    reading: LogWords


@takes(DataRequest)
def data(request: DataRequest) -> None:
    """Describe a log for a model: rows, coverage, estimates, import settings.

    It prints rows, episodes, the role of each column, values that the model does not have, visits of choices,
    and time-uniform intervals for each expression and parameter. Rows that cannot be counted are excluded and
    listed. 'tightrope learn' takes the same options and reads the log in the same way.

    Example: tightrope data 'runs/*.csv' --model model.prism --param p=0.1:0.9 --plot log.png
    """
    check_delta(request.delta)
    figure = None
    if request.plot is not None:
        late.log_figure.check_figure(request.plot)
        figure = screen.claim(request.plot, FIGURE)
    saved = screen.claim(request.output, READING)
    log = sources.LogRequest.of(request.reading, request.logs)
    tables = log.tables()
    model = sources.Question.of(request, []).load().discrete
    begin = time.perf_counter()
    with screen.reading_progress() as progress:
        watched = replace(log.options, progress=progress)
        description = describe_log(tables, model, watched, request.delta)
    seconds = time.perf_counter() - begin
    verdict, read = description.verdict, description.reading
    counted = f"{read.rows - sum(read.dropped.values()):,} of {screen.count(read.rows, 'row')}"
    claim = f"{counted} of {', '.join(request.logs)} can be used with {request.model}"
    if screen.common.json:
        screen.print_json(_answer(description, request.plot, seconds))
    else:
        screen.show(verdict.headline(claim, proved="READ"), _shown(request, description, model))
    if saved is not None:
        saved.write(reading_text(log.options.saved(description.columns, description.states)))
    if figure is not None:
        sys.stdout.flush()  # the answer comes before files, which may fail
        title = f"{', '.join(request.logs)} for {request.model}"
        late.log_figure.write_log_figure(figure.checked(), title, description)


def _answer(description: LogDescription, plot: Path | None, seconds: float) -> DataAnswer:
    reading, design = description.reading, description.reading.counts.design
    return record_of(
        DataAnswer,
        description,
        sources.read_facts(reading),
        design,
        verdict=description.verdict.word.value,
        steps=reading.counts.steps,
        files=list(reading.files),
        columns=dict(description.columns),
        design=from_plain(design.to_json(), DesignFacts),
        unknown={kind: tuple(entries) for kind, entries in description.unknown.items()},
        coverage=description.coverage,
        estimates=description.estimates,
        plot=None if plot is None else str(plot),
        seconds=round(seconds, 6),
    )


def _next(request: DataRequest, model: Model) -> str:
    """The command that comes next."""
    words = ["learn", request.model, "--prop", sources.example_property(model), *sources.model_words(request)]
    words += [word for log in request.logs for word in ("--data", log)]
    if request.output is not None:
        return screen.command(*words, "--reading", str(request.output))
    return screen.command(*words, *sources.log_options(request.reading))


SCALE = 16
"""Characters of a bar."""

LONGEST = 17
"""Characters of an expression's text."""

NAMED = 3
"""Choices of each kind that are named."""

FINE, PLAIN = ("█", "━", "●", "·"), ("#", "=", "o", ".")


def _shown(request: DataRequest, description: LogDescription, model: Model) -> screen.Content:
    """What is printed: what cannot be counted first, then how much there is, then the import settings."""
    reading, coverage = description.reading, description.coverage
    design = reading.counts.design
    counts, refused, estimates = reading.counts, description.refused, description.estimates
    unknown = [
        f"the model has no such {kind}: "
        + ", ".join(f"{entry.value} ({screen.count(entry.rows, 'row')})" for entry in entries[:NAMED])
        + "; --map converts names and units"
        for kind, entries in description.unknown.items()
    ]
    fix = "fix the log or its import settings (--columns, --map), or add --skip-invalid"
    size = f"{screen.count(counts.steps, 'transition')} counted"
    size += "" if design.episodes is None else f" in {screen.count(design.episodes, 'episode')}"
    visited = f"{coverage.visited:,} of {coverage.choices:,} choices visited"
    several = f"{coverage.open_visited:,} of the {coverage.open_choices:,} with several outcomes"
    hidden = coverage.open_choices - coverage.open_visited - NAMED
    unvisited = [*coverage.never_visited[:NAMED], *([f"{hidden:,} more"] if hidden > 0 else [])]
    rows: screen.Rows = [
        ("reason", refused and f"'tightrope learn' refuses the log: {as_flags(refused)}"),
        ("hint", [*unknown, *([fix] if refused is not None else [])]),
        *screen.doubts_of(description.verdict),
        ("excluded", [f"{screen.count(n, 'row')}: {reason}" for reason, n in reading.dropped.items()]),
        ("data", f"{size}{_costs(counts)}"),
        ("parameters", estimates and _intervals(estimates)),
        ("coverage", f"{visited}, {several}"),
        ("unvisited", "; ".join(unvisited) if coverage.never_visited else None),
        ("note", map(as_flags, reading.notes)),
        ("written", request.output),
        ("next", _next(request, model) if refused is None else None),
    ]
    tables = [_coverage(coverage), *([] if estimates is None else _estimates(estimates))]
    return screen.Content(rows, list(_settings(description)), tables=tables)


def _costs(counts: Counts) -> str:
    costs = counts.costs
    if costs is None:
        return ""
    span = f"{number_text(costs.least)} to {number_text(costs.most)}"
    return f", {screen.count(costs.number, 'cost')} from {span}"


def _intervals(estimates: PointEstimates) -> str:
    shown = [f"{p.parameter} {interval_text(p.lower, p.upper)}" for p in estimates.parameters[:NAMED]]
    more = len(estimates.parameters) - len(shown)
    return ", ".join([*shown, *([f"{more} more (--verbose)"] if more else [])]) or "none"


def _settings(description: LogDescription) -> Iterator[screen.Row]:
    """The import settings and the rest."""
    reading, coverage = description.reading, description.coverage
    design = reading.counts.design
    yield "import", reading.read_as
    if len(reading.files) > 1:
        yield "files", f"{len(reading.files)}, from {reading.files[0]} to {reading.files[-1]}"
    yield "bytes", description.bytes
    yield "design", design.kind.value
    for assumed in (design.order, design.ends):
        yield assumed.name, f"{assumed.kept.value}: {assumed.why}"
    yield "states", f"{coverage.states_visited:,} of {coverage.states:,} visited"
    for rare in coverage.fewest_visits[:NAMED]:
        yield "fewest visits", f"{rare.visits:,}: {rare.choice}"
    yield "intervals", description.estimates and description.estimates.label


def _coverage(coverage: Coverage) -> screen.Table:
    full, _, _, empty = _glyphs()
    most = max((action.visits for action in coverage.actions), default=0)
    rows: list[tuple[str, ...]] = []
    for action in coverage.actions:
        size = 0 if most == 0 else max(int(action.visits > 0), round(SCALE * action.visits / most))
        shares = (f"{action.visited:,} of {action.choices:,}", screen.group(action.visits))
        rows.append((action.action or "unlabelled", *shares, (full * size).ljust(SCALE, empty)))
    return screen.Table(("action", "choices visited", "visits", ""), rows, "Visits by action")


def _estimates(estimates: PointEstimates) -> Iterator[screen.Table]:
    rows: list[tuple[str, ...]] = []
    if estimates.parameters:
        ends = [end for p in estimates.parameters for end in (p.lower, p.upper)]
        low, high = min(0.0, *ends), max(1.0, *ends)
        for p in estimates.parameters:
            bar = _bar(p.estimate, (p.lower, p.upper), (low, high))
            rows.append((p.parameter, _estimate(p.estimate, p.lower, p.upper), bar))
        yield screen.Table(("parameter", "estimate", f"{low:g} to {high:g}"), rows, "Parameters")
    rows = []
    for e in sorted((e for e in estimates.expressions if e.visits), key=lambda e: e.visits):
        seen = f"{e.seen:,} of {e.visits:,}"
        bar = _bar(e.estimate, (e.lower, e.upper), (0.0, 1.0))
        rows.append((_short(e.expression), seen, _estimate(e.estimate, e.lower, e.upper), bar))
    if rows:
        columns = ("expression", "seen of visits", "estimate", "0 to 1")
        yield screen.Table(columns, rows, "Expressions, the least visited first")


def _bar(estimate: float | None, interval: tuple[float, float], scale: tuple[float, float]) -> str:
    """An interval with its estimate, on a line from one end of the scale to the other."""
    _, line, point, empty = _glyphs()
    cells = [empty] * SCALE
    for cell in range(_cell(interval[0], scale), _cell(interval[1], scale) + 1):
        cells[cell] = line
    if estimate is not None:
        cells[_cell(estimate, scale)] = point
    return "".join(cells)


def _cell(value: float, scale: tuple[float, float]) -> int:
    low, high = scale
    return min(SCALE - 1, max(0, int(SCALE * (value - low) / (high - low))))


def _estimate(estimate: float | None, lower: float, upper: float) -> str:
    point = "" if estimate is None else f"{number_text(estimate)} "
    return f"{point}{interval_text(lower, upper)}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _glyphs() -> Sequence[str]:
    """What bars are made of, on terminals that know no more than ASCII, too."""
    try:
        "".join(FINE).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return FINE
