"""The tables of `tightrope bench`: printed, or written as Markdown, LaTeX or text; nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tightrope.cli.output import print_json, say
from tightrope.errors import InputError
from tightrope.io.output_file import OutputFile, claim_file
from tightrope.io.written_by import FIGURE, GENERATED, TABLES

if TYPE_CHECKING:
    from tightrope.benchmarks.online_cells import OnlineRecord
    from tightrope.benchmarks.records import Record


def print_records(records: list[Record], as_json: bool) -> None:
    """Tables and a summary for people, rows for programs."""
    from tightrope.benchmarks.comparison import summary
    from tightrope.benchmarks.table_formats import text_summary, text_tables
    from tightrope.benchmarks.tables import instance_tables

    if as_json:
        print_json({"rows": [record.to_json() for record in records]})
        return
    shown = instance_tables(records)
    typer.echo(text_tables(shown))
    typer.echo(text_summary(summary(shown)), nl=False)


def show_tables(directory: Path, output: Path | None, as_json: bool, overwrite: bool = False) -> None:
    """The tables of a directory's records, on stdout or in a file."""
    from tightrope.benchmarks.online_cells import ONLINE_FILE, read_online
    from tightrope.benchmarks.records import FILE_NAME, read_records

    claimed = None if output is None else claim_file(output, TABLES, overwrite)
    curves = directory / ONLINE_FILE
    online = read_online(curves) if curves.is_file() else []
    path = directory if directory.is_file() else directory / FILE_NAME
    records = read_records(path) if path.is_file() or not online else []
    if claimed is None:
        if as_json:
            rows = [record.to_json() for record in records]
            print_json({"rows": rows, "online": [record.to_json() for record in online]})
            return
        if records:
            print_records(records, False)
        if online:
            print_online(online)
        return
    from tightrope.io.atomic import atomic_write

    text = _render(records, online, directory, claimed)
    claimed.check()
    with atomic_write(claimed.path) as file:
        file.write(text)
    say(f"{claimed.path} written from {len(records) + len(online)} records")


def print_online(online: list[OnlineRecord]) -> None:
    """The tables of learning curves for people."""
    from tightrope.benchmarks.online_tables import (
        groups,
        make_kept_table,
        make_reached_table,
        soon_table,
        summary_lines,
    )
    from tightrope.cli.output import print_table

    shown = groups(online)
    for title, table in (
        ("Episodes to the guarantee that tied sets end with", soon_table(shown)),
        ("Whether the guarantees were kept", make_kept_table(shown)),
        ("After all episodes", make_reached_table(shown)),
    ):
        print_table(title, table.columns, [[cell.strip("`") for cell in row] for row in table.rows])
    for line in summary_lines(shown):
        typer.echo(line)


def _render(records: list[Record], online: list[OnlineRecord], directory: Path, claimed: OutputFile) -> str:
    """The tables in the format that the file's name asks for."""
    output = claimed.path
    from tightrope.benchmarks.comparison import summary
    from tightrope.benchmarks.results_page import online_section, results_page
    from tightrope.benchmarks.table_formats import latex_tables, text_summary, text_tables
    from tightrope.benchmarks.tables import instance_tables

    shown = instance_tables(records, with_missing=True)
    match output.suffix:
        case ".md":
            section = online_section(online, _draw(online, claimed)) if online else None
            return results_page(records, directory.as_posix(), output.as_posix(), section)
        case ".tex" | ".txt" if not records:
            raise InputError(
                f"{directory} holds learning curves alone, and these are shown on pages",
                hint="end the file's name in .md",
            )
        case ".tex":
            return latex_tables(shown)
        case ".txt":
            return f"{GENERATED}`\n\n{text_tables(shown)}\n{text_summary(summary(shown))}"
    raise InputError(
        f"cannot tell what {output} should be", hint="end its name in .md (Markdown), .tex (LaTeX) or .txt"
    )


def _draw(online: list[OnlineRecord], page: OutputFile) -> str:
    """Draw the curves into `images` beside the page; where the page finds them."""
    from tightrope.benchmarks.results_page import CURVES
    from tightrope.report.learning_curve import SUFFIXES, write_campaign_curves

    images = page.path.parent / "images"
    images.mkdir(exist_ok=True)
    for suffix in SUFFIXES:
        claim_file(images / f"{CURVES}.{suffix}", FIGURE, page.overwrite)
    write_campaign_curves(online, images / CURVES)
    return f"images/{CURVES}.svg"
