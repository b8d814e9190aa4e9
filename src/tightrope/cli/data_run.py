"""What `tightrope data` does: read, describe, draw, print."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from tightrope.cli.data_display import print_description
from tightrope.cli.model_source import load_model
from tightrope.cli.output import print_json, warn
from tightrope.cli.progress import reading_progress
from tightrope.formats.documents.answers import DataAnswer
from tightrope.formats.documents.coding import from_plain, to_plain
from tightrope.formats.output_file import claim_file
from tightrope.formats.written_by import FIGURE
from tightrope.learning.log_description import LogDescription, describe_log, describe_reading
from tightrope.statistics.estimates import check_delta

if TYPE_CHECKING:
    from tightrope.cli.data import Request


def run(asked: Request) -> None:
    """Describe the log, print it, and draw it where that is wanted."""
    check_delta(asked.delta)
    figure = None
    if asked.plot is not None:
        from tightrope.report.log_figure import check_figure

        check_figure(asked.plot)
        figure = claim_file(asked.plot, FIGURE, asked.overwrite)
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
    if figure is not None:
        from tightrope.report.log_figure import write_log_figure

        sys.stdout.flush()  # the answer comes before files, which may fail
        figure.check()
        write_log_figure(figure.path, _title(asked), description)


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
