"""`tightrope report RESULT -o report.html`: a result as one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tightrope.cli.options import option
from tightrope.cli.output import common, print_json
from tightrope.errors import shown


class ReportAnswer(msgspec.Struct, frozen=True):
    """`report`: what was written."""

    report: str
    files: list[str]


def report(
    result: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT",
            help="A directory written by learn -o, plan -o or improve -o, or its result.json, plan.json …",
        ),
    ],
    output: Annotated[
        Path | None, option("-o --output", "The page; report.html beside the result by default.", "FILE")
    ] = None,
    beside: Annotated[
        list[Path] | None,
        option(
            "--with", "Another result on the same model, to compare regions and values; repeatable.", "RESULT"
        ),
    ] = None,
    certificate: Annotated[
        Path | None, option("--certificate", "The certificate that the page checks in the browser.", "FILE")
    ] = None,
    figures: Annotated[
        Path | None, option("--figures", "Also write every figure as PDF, for papers.", "DIR")
    ] = None,
    picture: Annotated[
        Path | None, option("--picture", "Also write one picture of the result (.png, .pdf or .svg).", "FILE")
    ] = None,
) -> None:
    """Write a result as one HTML page that opens offline, and as figures for papers.

    The page holds the answer with its guarantee and assumptions, the value intervals of all sets, the
    parameter regions, the widths before and after, limiting data, the policy, timings, the confidence budget
    and the provenance. The page of a plan holds the forecasts with their figure, the design and the next
    step.

    Example: tightrope report results -o report.html
    """
    from tightrope.io.answers import answer_file, comparison_file
    from tightrope.io.output import refuse_same
    from tightrope.io.plans import plan_file
    from tightrope.report.write import drawn_from, refuse_beside_plans, write_report
    from tightrope.saved import load_result

    others, overwrite = beside or [], common.overwrite
    refuse_same((output, picture))
    if (planned := plan_file(result) or answer_file(result) or comparison_file(result)) is not None:
        refuse_beside_plans(planned, [figures, picture])
    if figures is not None or picture is not None:
        from tightrope.report.write import check_figures, check_picture, write_figures, write_picture

        if figures is not None:
            check_figures(figures, overwrite)
        if picture is not None:
            check_picture(picture, overwrite)
    with drawn_from(result):
        written = [
            write_report(
                result,
                output,
                beside=others,
                certificate=certificate,
                overwrite=overwrite,
                what_if=lambda: load_result(result)._what_if(),
            )
        ]
        if figures is not None:
            written += write_figures(result, figures, beside=others, overwrite=overwrite)
        if picture is not None:
            written.append(write_picture(result, picture, beside=others, overwrite=overwrite))
    if common.json:
        print_json(ReportAnswer(report=str(written[0]), files=[str(file) for file in written]))
    else:
        typer.echo("\n".join(shown(str(file)) for file in written))
