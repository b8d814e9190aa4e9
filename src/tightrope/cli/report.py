"""`tightrope report RESULT -o report.html`: a result as one page that opens offline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer

import tightrope as tr
from tightrope.cli import late
from tightrope.cli.options import declare, takes
from tightrope.cli.output import common, print_json
from tightrope.errors import shown


class ReportAnswer(msgspec.Struct, frozen=True):
    """`report`: what was written."""

    report: str
    files: list[str]


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """The options of the command."""

    result: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT",
            help="A directory written by learn -o, plan -o or improve -o, or its result.json, plan.json …",
        ),
    ]
    output: Path | None = declare(
        "-o --output", "The page; report.html beside the result by default.", "FILE"
    )
    beside: list[Path] | None = declare(
        "--with", "Another result on the same model, to compare regions and values; repeatable.", "RESULT"
    )
    certificate: Path | None = declare(
        "--certificate", "The certificate that the page checks in the browser.", "FILE"
    )
    figures: Path | None = declare("--figures", "Also write every figure as PDF, for papers.", "DIR")
    picture: Path | None = declare(
        "--picture", "Also write one picture of the result (.png, .pdf or .svg).", "FILE"
    )


@takes(ReportRequest)
def report(request: ReportRequest) -> None:
    """Write a result as one HTML page that opens offline, and as figures for papers.

    The page holds the answer with its guarantee and assumptions, the value intervals of all sets, the
    parameter regions, the widths before and after, limiting data, the policy, timings, the confidence budget
    and the provenance. The page of a plan holds the forecasts with their figure, the design and the next
    step.

    Example: tightrope report results -o report.html
    """
    result, figures, picture = request.result, request.figures, request.picture
    beside, overwrite = request.beside or [], common.overwrite
    late.output.refuse_same((request.output, picture))
    if (
        planned := late.answers.plan_file(result)
        or late.answers.answer_file(result)
        or late.answers.comparison_file(result)
    ) is not None:
        late.write.refuse_beside_plans(planned, [figures, picture])
    if figures is not None:
        late.write.check_figures(figures, overwrite)
    if picture is not None:
        late.write.check_picture(picture, overwrite)
    with late.write.drawn_from(result):
        page = late.write.write_report(
            result,
            request.output,
            beside=beside,
            certificate=request.certificate,
            overwrite=overwrite,
            what_if=lambda: tr.load_result(result)._what_if(),
        )
        files = [page]
        if figures is not None:
            files += late.write.write_figures(result, figures, beside=beside, overwrite=overwrite)
        if picture is not None:
            files.append(late.write.write_picture(result, picture, beside=beside, overwrite=overwrite))
    names = [str(file) for file in files]
    if common.json:
        print_json(ReportAnswer(report=names[0], files=names))
    else:
        typer.echo("\n".join(map(shown, names)))
