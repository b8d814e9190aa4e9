"""Output of a command: a table or one JSON object on stdout, the rest on stderr.

In JSON a value that is not finite is the string "inf", "-inf" or "nan", which `float()` reads. A progress
line on stderr shows during long operations, only on a terminal and after a moment.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from threading import Timer
from typing import TYPE_CHECKING

import typer

from tightrope.errors import shown

if TYPE_CHECKING:
    from msgspec import Struct

    from tightrope.data.log_counts import ReadProgress
    from tightrope.verdict import Assessment


def print_json(result: Struct | Mapping[str, object]) -> None:
    """One JSON object on one line of stdout: a record of `tightrope.io.results`, or a mapping."""
    from tightrope.io.coding import to_plain

    if _gathered is not None:
        _gathered.append(to_plain(result))
    else:
        typer.echo(json.dumps(to_plain(result), allow_nan=False))


_gathered: list[object] | None = None


@contextmanager
def gathering_json() -> Iterator[None]:
    """The objects that are printed inside are printed as one list in the end."""
    global _gathered
    gathered: list[object] = []
    _gathered = gathered
    try:
        yield
    finally:
        _gathered = None
        if gathered:
            typer.echo(json.dumps(gathered, allow_nan=False))


_quiet = _verbose = False


def be_quiet(quiet: bool) -> None:
    """Print answers alone: no tables, no messages beside warnings and errors."""
    global _quiet
    _quiet = quiet


def be_verbose(verbose: bool) -> None:
    """Print technical notes, too."""
    global _verbose
    _verbose = verbose


TECHNICAL = re.compile(r"facets|vertices|tangent cuts|rounds of rows|coordinates,")
"""In notes about how regions are made, which mean little to most readers."""


def shown_notes(notes: Iterable[str]) -> list[tuple[str, str]]:
    """Notes as rows of a table; technical ones with --verbose alone."""
    return [("note", note) for note in notes if _verbose or not TECHNICAL.search(note)]


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """A table of two columns, name and value; long values wrap within the terminal."""
    print_table(title, ("", ""), facts, numeric=False)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: bool = True
) -> None:
    """A table; the first column names the row, the others hold numbers (right-aligned) or text."""
    if _quiet:
        return
    cells = [[shown(cell, "\t\n") for cell in row] for row in rows]
    if (text := plain_table(shown(title, "\t\n"), columns, cells, numeric=numeric)) is not None:
        typer.echo(text)
        return
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
    for row in cells:
        table.add_row(*map(Text, row))
    Console(color_system=None if "NO_COLOR" in os.environ else "auto").print(table)


ASKS_FOR_COLOUR = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


def plain_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: bool
) -> str | None:
    """The table as rich writes it into files and pipes, without rich, which takes 60 ms to import; None where
    it would wrap, for a terminal, and where characters are not one column wide."""
    if sys.stdout.isatty() or any(name in os.environ for name in ASKS_FOR_COLOUR) or not rows:
        return None
    lines = [columns, *rows] if any(columns) else rows
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    total = sum(widths) + 3 * (len(widths) - 1) + 2
    texts = [title, *(cell for row in lines for cell in row)]
    is_plain = all(text.isprintable() and (text.isascii() or _is_narrow(text)) for text in texts)
    if not is_plain or len(title) > total or total > _columns():
        return None

    def line(row: Sequence[str]) -> str:
        aligned = (
            cell.rjust(width) if numeric and index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return f" {'   '.join(aligned)} "

    blank = " " * total
    head = [line(columns), f" {'─' * (total - 2)} "] if any(columns) else []
    return "\n".join([*([title.ljust(total)] if title else []), blank, *head, *map(line, rows), blank])


def _is_narrow(text: str) -> bool:
    from unicodedata import combining, east_asian_width

    return all(east_asian_width(letter) in "NaAH" and not combining(letter) for letter in text)


def _columns() -> int:
    """The width that rich takes: as told, else that of a terminal around, else 80."""
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"])
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with suppress(OSError, ValueError):
                return os.get_terminal_size(stream.fileno()).columns or 80
    return 80


def print_line(text: str) -> None:
    """A line about the input, before any result; none with --quiet."""
    if not _quiet:
        typer.echo(text)


def print_verdict(verdict: Assessment, headline: str) -> None:
    """The verdict before everything else: its line, and why it is not `proved` where it is not."""
    typer.echo(shown("\n".join([headline, *(f"  {reason}" for reason in verdict.reasons)]), "\t\n"))


def answer(
    verdict: Assessment,
    headline: str,
    record: Struct | Mapping[str, object],
    as_json: bool,
    show: Callable[[], None] | None = None,
) -> None:
    """The answer, before any file is written, which may fail: as JSON, or the verdict and what else `show`
    prints."""
    if as_json:
        print_json(record)
    else:
        print_verdict(verdict, headline)
        if show is not None:
            show()
    sys.stdout.flush()


def leave(verdict: Assessment, accept_nominal: bool = False, about: str = "") -> None:
    """The exit code follows the verdict: 0 for `proved`, and for `nominal` where that is accepted."""
    from tightrope.errors import CannotCertify
    from tightrope.verdict import Word

    if verdict.is_proved or (accept_nominal and verdict.word is Word.NOMINAL):
        return
    accept = "\nhint: --accept-nominal leaves with exit code 0 all the same"
    hint = accept if verdict.word is Word.NOMINAL else ""
    raise CannotCertify(f"{about and f'{about}: '}{verdict.word.value}: {verdict.why}{hint}")


def say(text: str) -> None:
    """A message beside the result: on stderr; with --quiet warnings alone."""
    if _quiet and not text.startswith("warning: "):
        return
    typer.echo(shown(text, "\t\n"), err=True)


def warn(text: str) -> None:
    """A warning, on stderr."""
    say(f"warning: {text}")


def memory_text() -> str:
    """How much memory this process has had at most, in words."""
    from tightrope.numerics.machine import peak_memory

    return f"{peak_memory() / 2**20:,.0f} MiB at most"


def group(number: int) -> str:
    """1234567 as '1,234,567'."""
    return f"{number:,}"


BuildProgress = Callable[[int, int], None]
"""Called by a builder now and then with the states and transitions so far."""

PhaseProgress = Callable[[str], None]
"""Called with what begins, in a few words."""

PATIENCE = 0.4
"""Seconds before the first line is shown."""


@cache
def tell_when_compiling() -> None:
    """Have one line on stderr, where it is a terminal, as soon as a kernel is compiled."""
    if sys.stderr.isatty():
        from tightrope.numerics.jit import COMPILING, when_compiling

        when_compiling(lambda: say(COMPILING))


@contextmanager
def build_progress(what: str) -> Iterator[BuildProgress]:
    """A callback for builders; the line it draws disappears at the end of the block."""
    if not sys.stderr.isatty():
        yield _ignore
        return
    tell_when_compiling()
    from rich.console import Console
    from rich.markup import escape
    from rich.status import Status

    begin = time.monotonic()
    status = Status(f"building {escape(what)}", console=Console(stderr=True))
    running = False

    def show(states: int, transitions: int) -> None:
        nonlocal running
        seconds = time.monotonic() - begin
        if seconds < PATIENCE:
            return
        status.update(
            f"building {escape(what)}: {states:,} states, {transitions:,} transitions, {seconds:.0f} s"
        )
        if not running:
            running = True
            status.start()

    try:
        yield show
    finally:
        status.stop()


def _ignore(states: int, transitions: int) -> None:
    """Nobody is watching."""


@contextmanager
def phase_progress() -> Iterator[PhaseProgress]:
    """A callback for phases; the line it draws disappears at the end of the block."""
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import Progress as Display
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    tell_when_compiling()
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    display = Display(*columns, console=Console(stderr=True), transient=True)
    task = display.add_task("", total=None)
    patience = Timer(PATIENCE, display.start)
    patience.daemon = True

    def show(what: str) -> None:
        if not patience.ident:
            patience.start()
        display.reset(task, description=what)

    try:
        yield show
    finally:
        patience.cancel()
        if patience.ident:
            patience.join()
        display.stop()


@contextmanager
def reading_progress() -> Iterator[Callable[[ReadProgress], None] | None]:
    """A line on stderr with rows, bytes and the time left; silent where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.status import Status

    begin = time.monotonic()
    status = Status("reading", console=Console(stderr=True))
    shown = 0.0

    def show(progress: ReadProgress) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - begin < PATIENCE or now - shown < 0.1:
            return
        shown = now
        status.update(progress_line(progress.rows, progress.bytes, progress.total_bytes, now - begin))
        status.start()

    try:
        yield show
    finally:
        status.stop()


def progress_line(rows: int, read: int, total: int, seconds: float) -> str:
    """`reading: 1,200,000 rows, 30 of 120 MB, 12 s left`."""
    line = f"reading: {group(rows)} rows, {read / 1e6:.0f} of {total / 1e6:.0f} MB"
    if 0 < read <= total and seconds > 0:
        line += f", {seconds * (total - read) / read:.0f} s left"
    return line
