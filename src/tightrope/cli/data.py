"""`tightrope data LOG… --model M`: how a log is read, and what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli.options import (
    MODEL_HELP,
    Columns,
    Const,
    DataFormatName,
    Design,
    Domain,
    EngineName,
    Json,
    Map,
    Overwrite,
    Param,
    PlannedEpisodes,
    Scheduler,
    SkipInvalid,
    States,
)


def data(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG",
            help="Files, patterns, directories, object stores, - for standard input, or minari:NAME; "
            "read in the order given.",
            show_default=False,
        ),
    ],
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="MODEL", help=MODEL_HELP, show_default=False)
    ],
    const: Const = None,
    param: Param = None,
    domain: Domain = None,
    states: States = None,
    columns: Columns = None,
    value_maps: Map = None,
    design: Design = None,
    planned_episodes: PlannedEpisodes = None,
    data_format: DataFormatName = None,
    skip_invalid: SkipInvalid = False,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    delta: Annotated[
        float, typer.Option("--delta", metavar="D", help="All intervals hold together at level 1 − D.")
    ] = 0.05,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw it, too: a .png, .svg or .pdf file.", show_default=False
        ),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Say how a log is read for a model, and what it holds.

    Rows, episodes, how each column was read, values that the model does not know, which choices were visited
    how often, and what the log says about each expression and parameter, with intervals that hold at any time
    of looking. Rows that cannot be counted are left out and shown. The options are those of
    'tightrope learn', which reads the log in the same way.

    Example: tightrope data 'runs/*.csv' --model model.prism --param p=0.1:0.9 --plot log.png
    """
    from tightrope.cli.data_run import DataRequest, run
    from tightrope.cli.log_source import LogRequest
    from tightrope.data.read_options import ReadOptions

    options = ReadOptions(
        states=None if states is None else states.value,
        columns=columns,
        maps=value_maps,
        design=None if design is None else design.value,
        planned_episodes=planned_episodes,
        skip_invalid=skip_invalid,
        format=data_format,
        engine=engine,
        scheduler=scheduler,
    )
    log = LogRequest(tuple(logs), options)
    run(DataRequest(log, model, const, param, domain, delta, plot, overwrite, json))
