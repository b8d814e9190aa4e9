"""`tightrope draft LOG… -o MODEL.prism`: a model from a log, every assumption a comment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tightrope.cli import late
from tightrope.cli.options import declare, option, takes
from tightrope.cli.output import Content, Rows, claim, command, common, count, print_json, show
from tightrope.cli.sources import DRAFTED_FROM, LogRequest, log_options
from tightrope.errors import InputError
from tightrope.io.coding import record_of
from tightrope.io.log_words import LogWords
from tightrope.io.output import DATA, PRISM, claim_file
from tightrope.learning.draft import Draft, Tie, draft_tables
from tightrope.learning.groups import units_in
from tightrope.prism.load import load_prism_text


class DraftAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`draft`: what was proposed. `free` counts the rows with several outcomes; `ties` are comments of the
    model, unless they were chosen on a part of the log, of which `rest` is the other."""

    states: int
    choices: int
    free: int
    ties: tuple[Tie, ...]
    assumptions: tuple[str, ...]
    rows: int
    episodes: int | None
    file: str
    rest: str | None


@dataclass(frozen=True, kw_only=True)
class DraftRequest:
    """The options of the command."""

    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG", help="Files, patterns or directories; read in the order given."),
    ]
    output: Annotated[Path, option("-o --output", "The model in the PRISM language.", "FILE")]
    variables: str | None = declare(
        "--variables", "The columns of a state, if no single column contains it.", "X,Y"
    )
    select_on: float | None = declare(
        "--select-on", "Choose ties on this share of the episodes; needs --rest.", "SHARE"
    )
    rest: Path | None = declare(
        "--rest", "Write the other episodes here, to learn from: a .csv file.", "FILE"
    )
    seed: int = declare("--seed", "Seed of the choice of episodes for ties.", "N", default=0)
    unit: str | None = declare("--unit", "The column of units that differ, for the command after.", "COLUMN")
    reading: LogWords


@takes(DraftRequest)
def draft(request: DraftRequest) -> None:
    """Draft a model from a log, with every assumption as a comment.

    The model has the observed states and actions. Unseen outcomes stay possible and count as the worst case,
    so 'learn' may use the same log. Ties are comments; with --select-on they are part of the model, which is
    then learned from the other episodes.

    Example: tightrope draft runs.csv -o runs.prism
    """
    if (request.select_on is None) != (request.rest is None):
        raise InputError(
            "`select_on` requires `rest`, and `rest` requires `select_on`: parameters are tied on one "
            "part of the log and learned from the other"
        )
    if request.rest is not None and request.rest.suffix != ".csv":
        raise InputError(f"--rest writes a .csv file, not {request.rest}")
    model = claim_file(request.output, PRISM, common.overwrite)
    rest = claim(request.rest, DATA)
    log = LogRequest.of(request.reading, request.logs)
    names = [name.strip() for name in (request.variables or "").split(",") if name.strip()]
    result = draft_tables(log.tables(), log.options, names, request.select_on, request.seed)
    log_of = result.reading.counts.log
    if request.unit is not None and log_of is not None:
        units_in(log_of(), request.unit)
    places = request.logs if request.rest is None else [str(request.rest)]
    named = (request.rest is not None or not log_options(request.reading)) and "".join(places).isprintable()
    origin = "".join(f"{DRAFTED_FROM}{place}\n" for place in places) if named else ""
    model.write(result.text + origin)
    if rest is not None and result.rest is not None:
        assert result.rest.log is not None
        structure = load_prism_text(result.text).structure
        late.writing.write_log(rest.checked(), result.rest.log(), structure, result.rest.design)
    if common.json:
        reading, design = result.reading, result.reading.counts.design
        other = request.rest and str(request.rest)
        print_json(record_of(DraftAnswer, result, reading, design, file=str(request.output), rest=other))
        return
    rows, choices = count(result.reading.rows, "row"), count(result.choices, "choice")
    first = f"DRAFTED: {count(result.states, 'state')} and {choices} from {rows} of {', '.join(request.logs)}"
    show(first, _shown(request, result))


def _shown(request: DraftRequest, result: Draft) -> Content:
    """What was drafted, and the command that comes next."""
    next_words = ["learn", str(request.output), "--prop", result.question]
    for name in request.logs if request.rest is None else [str(request.rest)]:
        next_words += ["--data", name]
    next_words += log_options(request.reading) if request.rest is None else []
    next_words += [] if request.unit is None else ["--unit", request.unit]
    rows: Rows = [
        ("model", request.output),
        ("rest", request.rest),
        ("unknown", f"{count(result.free, 'distribution')} with several outcomes"),
        ("next", command(*next_words)),
        ("tie", [f"{'; '.join(tie.rows)} ({tie.shape})" for tie in result.ties]),
        ("assumes", result.assumptions),
    ]
    return Content(rows)
