"""What a command prints: a table for people or one JSON object for programs on stdout, the rest on stderr.

JSON knows no infinities: a value that is not finite is written as the string "inf", "-inf" or
"nan", which `float()` reads back.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from tightrope.errors import shown

if TYPE_CHECKING:
    from msgspec import Struct

    from tightrope.verdict import Verdict


def print_json(result: Struct | Mapping[str, object]) -> None:
    """One JSON object on one line of stdout: a record of `tightrope.io.documents`, or a mapping."""
    from tightrope.io.coding import to_plain

    typer.echo(json.dumps(to_plain(result), allow_nan=False))


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """A table of two columns, name and value; long values wrap within the terminal."""
    print_table(title, ("", ""), facts, numeric=False)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: bool = True
) -> None:
    """A table; the first column names the row, the others hold numbers (right-aligned) or text."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(shown(title, "\t\n"), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_header=any(columns),
        pad_edge=False,
    )
    for index, column in enumerate(columns):
        table.add_column(
            Text(column),
            style="cyan" if index == 0 else "",
            justify="right" if numeric and index > 0 else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(shown(cell, "\t\n")) for cell in row))
    Console().print(table)


def print_verdict(verdict: Verdict, headline: str) -> None:
    """The verdict before everything else: its line, and why it is not `proved` where it is not."""
    typer.echo(shown("\n".join([headline, *(f"  {reason}" for reason in verdict.reasons)]), "\t\n"))


def leave(verdict: Verdict, accept_nominal: bool = False, about: str = "") -> None:
    """The exit code follows the verdict: 0 for `proved`, and for `nominal` where that is accepted."""
    from tightrope.errors import CannotCertify
    from tightrope.verdict import Word

    if verdict.is_proved or (accept_nominal and verdict.word is Word.NOMINAL):
        return
    accept = "\nhint: --accept-nominal leaves with exit code 0 all the same"
    hint = accept if verdict.word is Word.NOMINAL else ""
    raise CannotCertify(f"{about and f'{about}: '}{verdict.word.value}: {verdict.why}{hint}")


def say(text: str) -> None:
    """A message beside the result: on stderr."""
    typer.echo(shown(text, "\t\n"), err=True)


def warn(text: str) -> None:
    """A warning, on stderr."""
    say(f"warning: {text}")


def peak_memory() -> int:
    """Bytes that this process has had in memory at most so far."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def memory_text() -> str:
    """The same in words."""
    return f"{peak_memory() / 2**20:,.0f} MiB at most"


def group(number: int) -> str:
    """1234567 as '1,234,567'."""
    return f"{number:,}"
