"""`tightrope data LOG… --model M`: how a log is read, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli import options
from tightrope.cli.options import option
from tightrope.cli.records import CountedLogOptions, takes


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
    from tightrope.cli.data_run import run

    run(asked)
