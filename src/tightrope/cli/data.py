"""`tightrope data LOG… --model M`: how a log is read, and what it holds."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs

from tightrope.atomic import atomic_write
from tightrope.cli import options
from tightrope.cli.flags import as_flags
from tightrope.cli.options import declare, option, takes
from tightrope.cli.output import group, print_facts, print_json, print_table, reading_progress, warn
from tightrope.cli.sources import LogRequest, load_model, read_facts
from tightrope.data.counts import Coverage
from tightrope.data.reading_hints import UnknownValue
from tightrope.io.coding import from_plain
from tightrope.io.log_words import LogWords, reading_text
from tightrope.io.output import FIGURE, READING, claim_file
from tightrope.io.results import DesignFacts, ReadingFacts
from tightrope.learning.log_description import LogDescription, PointEstimates, describe_log
from tightrope.numerics.text import interval_text
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
class DataRequest:
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
    const: options.Const = None
    param: options.Param = None
    domain: options.Domain = None
    delta: float = declare("--delta", "All intervals hold together at level 1 − D.", "D", default=0.05)
    plot: Path | None = declare("--plot", "Draw it, too: a .png, .svg or .pdf file.", "FILE")
    output: Path | None = declare(
        "-o --output", "Save the reading, for --reading of every command: NAME.reading.toml.", "FILE"
    )
    overwrite: options.Overwrite = False
    json: options.Json = False
    reading: LogWords


@takes(DataRequest)
def data(request: DataRequest) -> None:
    """Say how a log is read for a model, and what it holds.

    Rows, episodes, how each column was read, values that the model does not know, which choices were visited
    how often, and what the log says about each expression and parameter, with intervals that hold at any time
    of looking. Rows that cannot be counted are left out and shown. The options are those of
    'tightrope learn', which reads the log in the same way.

    Example: tightrope data 'runs/*.csv' --model model.prism --param p=0.1:0.9 --plot log.png
    """
    check_delta(request.delta)
    figure = None
    if request.plot is not None:
        from tightrope.report.log_figure import check_figure

        check_figure(request.plot)
        figure = claim_file(request.plot, FIGURE, request.overwrite)
    saved = None if request.output is None else claim_file(request.output, READING, request.overwrite)
    log = LogRequest.of(request.reading, request.logs)
    tables = log.tables()
    model = load_model(request.model, request.const, request.param, request.domain).model
    begin = time.perf_counter()
    with reading_progress() as progress:
        watched = replace(log.options, progress=progress)
        description = describe_log(tables, model, watched, request.delta)
    seconds = time.perf_counter() - begin
    _warn_about(description)
    if request.json:
        print_json(_answer(description, request.plot, seconds))
    else:
        print_description(_title(request), description)
    if saved is not None:
        saved.check()
        with atomic_write(saved.path) as file:
            file.write(reading_text(log.options.saved(description.columns, description.states)))
        if not request.json:
            _say_next(request)
    if figure is not None:
        from tightrope.report.log_figure import write_log_figure

        sys.stdout.flush()  # the answer comes before files, which may fail
        write_log_figure(figure.checked(), _title(request), description)


def _answer(description: LogDescription, plot: Path | None, seconds: float) -> DataAnswer:
    reading, design = description.reading, description.reading.counts.design
    return DataAnswer(
        **structs.asdict(read_facts(reading)),
        verdict=description.verdict.word.value,
        order=design.order,
        ends=design.ends,
        episodes=design.episodes,
        steps=reading.counts.steps,
        bytes=description.bytes,
        files=list(reading.files),
        columns=dict(description.columns),
        design=from_plain(design.to_json(), DesignFacts),
        refused=description.refused,
        unknown={kind: tuple(entries) for kind, entries in description.unknown.items()},
        coverage=description.coverage,
        estimates=description.estimates,
        plot=None if plot is None else str(plot),
        seconds=round(seconds, 6),
    )


def _say_next(request: DataRequest) -> None:
    """The command that comes next."""
    data = " ".join(f"--data {shlex.quote(log)}" for log in request.logs)
    reading = shlex.quote(str(request.output))
    typer.echo(f"next: tightrope learn {shlex.quote(request.model)} --prop P {data} --reading {reading}")


def _title(request: DataRequest) -> str:
    return f"{', '.join(request.logs)} for {request.model}"


def _warn_about(description: LogDescription) -> None:
    left_out = sum(description.reading.dropped.values())
    if description.refused is not None:
        warn(
            f"{left_out:,} of {description.reading.rows:,} rows cannot be counted, and 'tightrope learn' "
            "refuses the log\nhint: mend the log or its reading (--columns, --map, --states); "
            "--skip-invalid leaves such rows out, and the confidence is then nominal"
        )
    estimates = description.estimates
    if estimates is not None and estimates.conflict:
        warn("no parameter of the domain fits the data: the model or the reading of the log is wrong")


SCALE = 16
"""Characters of a bar."""

LONGEST = 17
"""Characters of an expression's text."""

NAMED = 3
"""Choices of each kind that are named."""

MOST_ROWS = 12
"""Rows of a table; the rest is counted."""

FINE, PLAIN = ("█", "━", "●", "·"), ("#", "=", "o", ".")


def print_description(title: str, description: LogDescription) -> None:
    """Everything, the way a log is read first."""
    print_facts(title, _facts(description))
    _print_unknown(description)
    _print_coverage(description.coverage)
    if description.estimates is not None:
        _print_estimates(description.estimates)


def _facts(description: LogDescription) -> Iterator[tuple[str, str]]:
    reading = description.reading
    counts, design = reading.counts, reading.counts.design
    for line in reading.read_as:
        yield "read as", line
    if len(reading.files) > 1:
        yield "files", f"{len(reading.files)}, from {reading.files[0]} to {reading.files[-1]}"
    yield "rows", group(reading.rows)
    yield "episodes", "not told" if design.episodes is None else group(design.episodes)
    yield "transitions", f"{group(counts.steps)} counted"
    if counts.costs is not None:
        costs = counts.costs
        yield "costs", f"{group(costs.number)}, from {costs.least:g} to {costs.most:g}"
    if description.bytes is not None:
        yield "bytes", group(description.bytes)
    yield "design", design.kind.value
    yield "verdict", description.verdict.word.value
    for assumed in (design.order, design.ends):
        yield assumed.name, f"{assumed.kept.value}: {assumed.why}"
    for line in reading.notes:
        yield "note", as_flags(line)
    for reason, rows in reading.dropped.items():
        yield "left out", f"{group(rows)} {'row' if rows == 1 else 'rows'}: {reason}"
    if description.refused is not None:
        yield "learn says", as_flags(description.refused)
    for line in design.censored:
        yield "missing", f"{line}: the confidence is nominal"
    coverage = description.coverage
    yield "states", f"in {group(coverage.states_visited)} of {group(coverage.states)} something was done"
    several = (
        f"{group(coverage.open_visited)} of the {group(coverage.open_choices)} with more than one outcome"
    )
    yield "choices", f"{group(coverage.visited)} of {group(coverage.choices)} visited, {several}"
    for rare in coverage.fewest_visits[:NAMED]:
        yield "fewest visits", f"{group(rare.visits)}: {rare.choice}"
    if coverage.never_visited:
        shown = coverage.never_visited[:NAMED]
        more = coverage.open_choices - coverage.open_visited - len(shown)
        yield "never visited", "; ".join(shown) + (f"; {group(more)} more" if more > 0 else "")


def _print_unknown(description: LogDescription) -> None:
    rows = [
        (kind, entry.value, group(entry.rows))
        for kind, entries in description.unknown.items()
        for entry in entries
    ]
    if rows:
        print_table("unknown to the model, as it stands in the log", ("what", "value", "rows"), rows)


def _print_coverage(coverage: Coverage) -> None:
    full, _, _, empty = _glyphs()
    most = max((action.visits for action in coverage.actions), default=0)
    rows: list[tuple[str, ...]] = []
    for action in coverage.actions[:MOST_ROWS]:
        size = 0 if most == 0 else max(int(action.visits > 0), round(SCALE * action.visits / most))
        shares = (f"{group(action.visited)} of {group(action.choices)}", group(action.visits))
        rows.append((action.action or "unlabelled", *shares, (full * size).ljust(SCALE, empty)))
    _and_more(rows, len(coverage.actions), "more")
    print_table("visits by action", ("action", "choices visited", "visits", ""), rows)


def _print_estimates(estimates: PointEstimates) -> None:
    rows: list[tuple[str, ...]] = []
    if estimates.parameters:
        ends = [end for p in estimates.parameters for end in (p.lower, p.upper)]
        low, high = min(0.0, *ends), max(1.0, *ends)
        for p in estimates.parameters[:MOST_ROWS]:
            bar = _bar(p.estimate, (p.lower, p.upper), (low, high))
            rows.append((p.parameter, _estimate(p.estimate, p.lower, p.upper), bar))
        _and_more(rows, len(estimates.parameters), "more")
        print_table("parameters", ("", "estimate", f"{low:g} to {high:g}"), rows)
    rows = []
    met = [e for e in estimates.expressions if e.visits]
    for e in sorted(met, key=lambda e: e.visits)[:MOST_ROWS]:
        seen = f"{group(e.seen)} of {group(e.visits)}"
        bar = _bar(e.estimate, (e.lower, e.upper), (0.0, 1.0))
        rows.append((_short(e.expression), seen, _estimate(e.estimate, e.lower, e.upper), bar))
    _and_more(rows, len(met), "more")
    _and_more(rows, len(rows) + len(estimates.expressions) - len(met), "never met")
    if rows:
        columns = ("", "seen of visits", "estimate", "0 to 1")
        print_table("expressions, the least visited first", columns, rows)
    words = [("intervals", estimates.label)]
    words += [("contradiction", text) for text in estimates.conflict]
    print_facts("", words)


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
    point = "" if estimate is None else f"{estimate:.3g} "
    return f"{point}{interval_text(lower, upper, 3)}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _and_more(rows: list[tuple[str, ...]], total: int, what: str) -> None:
    if total > len(rows):
        rows.append((f"{group(total - len(rows))} {what}", "", "", "")[: len(rows[0]) if rows else 4])


def _glyphs() -> Sequence[str]:
    """What bars are made of, on terminals that know no more than ASCII, too."""
    try:
        "".join(FINE).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return FINE
