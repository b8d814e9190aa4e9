"""`tightrope questions`: which kinds of properties go with which commands and models."""

from __future__ import annotations

import typer

from tightrope.cli.output import common, print_json, print_table
from tightrope.prism.properties.capabilities import capability_rows, counted


def questions() -> None:
    """Show which commands and kinds of models support which properties.

    For an unsupported property a command gives the reason and an alternative. docs/properties.md has the same
    table.

    Example: tightrope questions --json
    """
    rows = capability_rows()
    if common.json:
        shares = {name: {"work": work, "of": size} for name, (work, size) in counted().items()}
        print_json({"questions": rows, "cells": shares})
        return
    for row in rows:
        name, example = row["property"], row["example"]
        cells = [(task, text) for task, text in row.items() if task not in ("property", "example", "answer")]
        refused = ", ".join(task for task, text in cells if text == "–") or "nothing"
        columns = ", ".join(task for task, text in cells if text == "yes")
        facts = [("example", example), ("supported by", columns), ("not by", refused)]
        print_table(name, ("", ""), facts, numeric=False)
    (work, size), (most, whole) = counted().values()
    typer.echo(
        f"{work} of {size} cells work ({work / size:.1%}), a column for every command; with all options "
        f"{most} of {whole} ({most / whole:.1%})"
    )
