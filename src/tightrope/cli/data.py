"""`tightrope data LOG… --model M`: how a log is read, and what it holds."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tightrope.atomic import atomic_write
from tightrope.cli import options
from tightrope.cli.data_display import print_description
from tightrope.cli.model_source import load_model
from tightrope.cli.options import option
from tightrope.cli.output import print_json, warn
from tightrope.cli.progress import reading_progress
from tightrope.cli.records import CountedLogOptions, takes
from tightrope.data.saved_reading import reading_text
from tightrope.io.answers import DataAnswer
from tightrope.io.coding import from_plain, to_plain
from tightrope.io.output import FIGURE, READING, claim_file
from tightrope.learning.log_description import LogDescription, describe_log, describe_reading
from tightrope.statistics.estimates import check_delta


@dataclass(frozen=True, kw_only=True)
class Request:
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
    delta: Annotated[float, option("--delta", "All intervals hold together at level 1 − D.", "D")] = 0.05
    plot: Annotated[Path | None, option("--plot", "Draw it, too: a .png, .svg or .pdf file.", "FILE")] = None
    output: Annotated[
        Path | None,
        option("-o --output", "Save the reading, for --reading of every command: NAME.reading.toml.", "FILE"),
    ] = None
    overwrite: options.Overwrite = False
    json: options.Json = False
    reading: CountedLogOptions


@takes(Request)
def data(asked: Request) -> None:
    """Say how a log is read for a model, and what it holds.

    Rows, episodes, how each column was read, values that the model does not know, which choices were visited
    how often, and what the log says about each expression and parameter, with intervals that hold at any time
    of looking. Rows that cannot be counted are left out and shown. The options are those of
    'tightrope learn', which reads the log in the same way.

    Example: tightrope data 'runs/*.csv' --model model.prism --param p=0.1:0.9 --plot log.png
    """
    run(asked)


def run(asked: Request) -> None:
    """Describe the log, print it, and draw it where that is wanted."""
    check_delta(asked.delta)
    figure = None
    if asked.plot is not None:
        from tightrope.report.log_figure import check_figure

        check_figure(asked.plot)
        figure = claim_file(asked.plot, FIGURE, asked.overwrite)
    saved = None if asked.output is None else claim_file(asked.output, READING, asked.overwrite)
    log = asked.reading.request(asked.logs)
    files = log.files()
    model = load_model(asked.model, asked.const, asked.param, asked.domain).model
    begin = time.perf_counter()
    if log.minari is not None:
        description = describe_reading(log.read(model, files), model, asked.delta)
    else:
        with reading_progress() as progress:
            description = describe_log(files, model, log.options, asked.delta, progress)
    seconds = time.perf_counter() - begin
    _warn_about(description)
    if asked.json:
        plot = None if asked.plot is None else str(asked.plot)
        facts = {**description.to_json(), "plot": plot, "seconds": round(seconds, 6)}
        print_json(from_plain(to_plain(facts), DataAnswer))
    else:
        print_description(_title(asked), description)
    if saved is not None:
        saved.check()
        with atomic_write(saved.path) as file:
            file.write(reading_text(log.options.saved(description.columns, description.states)))
        if not asked.json:
            _say_next(asked)
    if figure is not None:
        from tightrope.report.log_figure import write_log_figure

        sys.stdout.flush()  # the answer comes before files, which may fail
        figure.check()
        write_log_figure(figure.path, _title(asked), description)


def _say_next(asked: Request) -> None:
    """The command that comes next."""
    data = " ".join(f"--data {shlex.quote(log)}" for log in asked.logs)
    reading = shlex.quote(str(asked.output))
    typer.echo(f"next: tightrope learn {shlex.quote(asked.model)} --prop P {data} --reading {reading}")


def _title(asked: Request) -> str:
    return f"{', '.join(asked.logs)} for {asked.model}"


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
