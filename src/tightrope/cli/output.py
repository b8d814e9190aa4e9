"""Output of a command: a first line to quote and at most nine more lines, or JSON; the rest on stderr.

`Content` is what a command prints below its first line: rows of a label and a value, tables, and what
`--verbose` adds. In JSON a value that is not finite is the string "inf", "-inf" or "nan", which `float()`
reads. A progress line on stderr shows during long operations, only on a terminal and after a moment.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, NoReturn
from unicodedata import combining, east_asian_width

import typer

from tightrope.cli import late
from tightrope.cli.flags import as_flags
from tightrope.errors import CannotCertify, shown

if TYPE_CHECKING:
    from msgspec import Struct

    from tightrope.data.log_counts import ReadProgress
    from tightrope.io.output import FileKind, OutputFile
    from tightrope.verdict import Assessment

Row = tuple[str, object]
"""A label with its value: nothing is shown of None and of an empty one, a row for each text of several."""

Rows = Sequence[Row]

WIDTH, LABEL = 80, 10
MOST_LINES, MOST_ROWS, LEAST_TABLE = 10, 12, 3
LINES_OF_A_ROW, LINES_OF_A_REASON = 2, 4
KEPT = ("reason", "hint", "next")
"""Rows that are shown first."""

WHOLE = ("next", "hint")
"""Rows that are never shortened; the first is a command to paste, on one line."""


def print_json(result: Struct | Mapping[str, object]) -> None:
    """One JSON object on one line of stdout: a record of `tightrope.io.results`, or a mapping."""
    if _gathered is not None:
        _gathered.append(late.coding.to_plain(result))
    else:
        typer.echo(json.dumps(late.coding.to_plain(result), allow_nan=False))


_gathered: list[object] | None = None


@contextmanager
def gathering_json() -> Iterator[None]:
    """With --json the objects that are printed inside are printed as one list in the end."""
    global _gathered
    if not common.json:
        yield
        return
    gathered: list[object] = []
    _gathered = gathered
    try:
        yield
    finally:
        _gathered = None
        if gathered:
            typer.echo(json.dumps(gathered, allow_nan=False))


@dataclass
class Common:
    """What every command takes, and what the user typed."""

    json: bool = False
    quiet: bool = False
    """Answers alone, without rows and messages beside warnings."""
    verbose: bool = False
    """All rows, tables and notes."""
    accept_nominal: bool = False
    overwrite: bool = False
    markdown: bool = False
    """Answers for the page of a job in continuous integration."""
    typed: Sequence[str] = ()


common = Common()
"""Of the command that runs."""


def set_common(typed: Sequence[str] = (), flags: Collection[str] = ()) -> None:
    """Begin a run: what was typed, and the names of the fields above that it sets."""
    for name in vars(common):
        setattr(common, name, name in flags)
    common.typed = typed


def typed(*more: str) -> str:
    """The command of this run with further options, as it is typed in a shell."""
    return command(*common.typed, *more)


def command(*words: str) -> str:
    """A command as it is typed in a shell."""
    return shlex.join(["tightrope", *words])


TECHNICAL = re.compile(r"facets|vertices|tangent cuts|rounds of rows|coordinates,")
"""In notes about how regions are made, which mean little to most readers."""


def shown_notes(notes: Iterable[str]) -> list[tuple[str, str]]:
    """Notes as rows; technical ones with --verbose alone."""
    return [("note", note) for note in notes if common.verbose or not TECHNICAL.search(note)]


@dataclass(frozen=True)
class Table:
    """Columns with units in their heads: names first, then numbers, aligned on the right, or text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numeric: bool = True


def text_rows(rows: Rows) -> Iterator[tuple[str, str]]:
    """The rows as they are shown.

    >>> list(text_rows([("states", 1200), ("limit", None), ("note", ["one", "two"])]))
    [('states', '1,200'), ('note', 'one'), ('note', 'two')]
    """
    for label, value in rows:
        if isinstance(value, int):
            yield label, group(value)
        elif isinstance(value, Iterable) and not isinstance(value, str):
            yield from ((label, str(text)) for text in value)
        elif value is not None and value != "":
            yield label, str(value)


@dataclass(frozen=True)
class Content:
    """What a command prints below its first line.

    `rows` are those of every run, the most important first. `table` follows them. `more` and `tables` are
    printed with `--verbose` only.
    """

    rows: Rows = ()
    more: Rows = ()
    table: Table | None = None
    tables: Sequence[Table] = ()

    def __post_init__(self) -> None:
        for name in ("rows", "more"):
            object.__setattr__(self, name, list(text_rows(getattr(self, name))))


def render(first: str, content: Content, verbose: bool, colour: bool = False) -> str:
    """The text of an answer.

    >>> rows = [("property", "P=? [ F a ]"), ("next", "x")]
    >>> print(render("PROVED: probability >= 0.7", Content(rows), verbose=False))
    PROVED: probability >= 0.7
      property   P=? [ F a ]
      next       x
    """
    rows = list(text_rows([*content.rows, *(content.more if verbose else ())]))
    width = max([LABEL, *(len(label) for label, _ in rows)])
    blocks = [(label, _block(label, value, width, verbose)) for label, value in rows]
    table = [] if content.table is None else table_lines(content.table, verbose)
    if not verbose:
        blocks, table = _within(blocks, table, MOST_LINES - 1)
    lines, before = [shown(first)], ""
    for label, block in blocks:
        for number, line in enumerate(block):
            name = label if number == 0 and label != before else ""
            head = f"{name:<{width}}"
            head = typer.style(head, fg="cyan") if colour and name else head
            lines.append(f"  {head} {line}".rstrip())
        before = label
    lines += table
    for extra in content.tables if verbose else ():
        lines += ["", *table_lines(extra, verbose)]
    return "\n".join(lines)


def _within(
    blocks: list[tuple[str, list[str]]], table: list[str], room: int
) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """Choose rows and lines of a table: doubts, hints and the next command, the table, other rows."""
    must = sum(len(lines) for label, lines in blocks if label in KEPT)
    if len(table) > max(room - must, LEAST_TABLE):
        most = max(room - must, LEAST_TABLE) - 1
        table = [*table[:most], f"  {len(table) - most:,} more (--verbose)"]
    left = room - len(table)
    if sum(len(lines) for _, lines in blocks) <= left:
        return blocks, table
    visible: set[int] = set()
    for row in sorted(
        range(len(blocks)), key=lambda row: (blocks[row][0] != "next", blocks[row][0] not in KEPT)
    ):
        left -= len(blocks[row][1])
        if left < 1:
            break
        visible.add(row)
    more = ("more", [f"{count(len(blocks) - len(visible), 'row')} (--verbose)"])
    return [*(block for row, block in enumerate(blocks) if row in visible), more], table


def _block(label: str, value: str, width: int, verbose: bool) -> list[str]:
    """The lines of a value; long ones are shortened unless all is wanted."""
    value = shown(value, "\n")
    if label == WHOLE[0]:
        return [value]
    lines = [line for part in value.split("\n") for line in _wrap(part, WIDTH - width - 3)]
    most = max(LINES_OF_A_REASON if label == "reason" else LINES_OF_A_ROW, value.count("\n") + 1)
    if verbose or label in WHOLE or len(lines) <= most:
        return lines
    last = lines[most - 1]
    while len(last) > WIDTH - width - 5:
        last = last.rpartition(" ")[0]
    return [*lines[: most - 1], f"{last.rstrip(' ,;:(')} …"]


def _wrap(text: str, width: int) -> list[str]:
    if _columns_of(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def table_lines(table: Table, verbose: bool) -> list[str]:
    """A table within 80 columns; its first 12 rows unless all are wanted."""
    rows = list(table.rows)
    hidden = 0 if verbose else max(0, len(rows) - MOST_ROWS)
    cells = [list(table.columns), *([*map(shown, row)] for row in rows[: len(rows) - hidden])]
    widths = [max(map(_columns_of, column)) for column in zip(*cells, strict=True)]
    while sum(widths) + 2 * len(widths) > WIDTH and max(widths) > 12:
        widths[widths.index(max(widths))] -= 1
    lines = [shown(table.title)] if table.title else []
    for row in cells if any(table.columns) else cells[1:]:
        parts = [_wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        for number in range(max(map(len, parts))):
            texts = [part[number] if number < len(part) else "" for part in parts]
            aligned: list[str] = []
            for text, width in zip(texts, widths, strict=True):
                blank = " " * (width - _columns_of(text))
                aligned.append(blank + text if table.numeric and aligned else text + blank)
            lines.append(f"  {'  '.join(aligned)}".rstrip())
    return [*lines, *([f"  {hidden:,} more (--verbose)"] if hidden else [])]


def _columns_of(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def show(first: str, content: Content) -> None:
    """Print an answer for people; with --quiet its first line, and why it is not proved."""
    if common.quiet:
        content = Content([row for row in content.rows if row[0] == "reason"])
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    text = markdown(first, content) if common.markdown else render(first, content, common.verbose, colour)
    typer.echo(text)


def markdown(first: str, content: Content) -> str:
    """An answer as Markdown, for the summary of a job in continuous integration.

    >>> print(markdown("PROVED: probability >= 0.7", Content([("property", "P=? [ F a|b ]")])))
    ### PROVED: probability >= 0.7
    <BLANKLINE>
    | | |
    |---|---|
    | property | P=? [ F a\\|b ] |
    """
    tables: list[Sequence[Sequence[str]]] = [[("", ""), *text_rows([*content.rows, *content.more])]]
    tables += [
        [table.columns, *table.rows] for table in (content.table, *content.tables) if table is not None
    ]
    lines = [f"### {first}"]
    for head, *rows in tables:
        lines += ["", _markdown_row(head), "|---" * len(head) + "|", *map(_markdown_row, rows)]
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    """A row of a table, with marks of Markdown as they are."""
    texts = (re.sub(r"([|<*_`])", r"\\\1", " ".join(cell.split())) for cell in cells)
    return "".join(f"| {text} " if text else "| " for text in texts) + "|"


def print_facts(title: str, facts: Rows, record: Struct | Mapping[str, object] | None = None) -> None:
    """Rows below a title, all of them; nothing with --quiet. With --json the record in their place."""
    if record is not None and common.json:
        print_json(record)
    elif not common.quiet:
        typer.echo(render(title, Content(facts), True))


def claim(path: Path | None, kind: FileKind) -> OutputFile | None:
    """The file of this kind that may be written there; None where none is named."""
    return None if path is None else late.output.claim_file(path, kind, common.overwrite)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table, all rows of it."""
    if not common.quiet:
        typer.echo("\n".join(table_lines(Table(columns, rows, title), verbose=True)))


def answer(
    verdict: Assessment,
    headline: str,
    record: Struct | Mapping[str, object],
    content: Callable[[], Content] = Content,
) -> None:
    """Print the answer before any file is written, which may fail."""
    if common.json:
        print_json(record)
    else:
        rest = content()
        show(headline, Content([*doubts_of(verdict), *rest.rows], rest.more, rest.table, rest.tables))
    sys.stdout.flush()


def answer_refuted(
    error: CannotCertify, verdict: Assessment, record: Struct | Mapping[str, object]
) -> NoReturn:
    """The answer of a computation that ended because the data refute the model; the error stays for JSON."""
    hint = as_flags(str(error)).partition("\nhint: ")[2]
    answer(verdict, verdict.headline(""), record, lambda: Content([("hint", hint)] if hint else []))
    if common.json:
        raise error
    raise typer.Exit(verdict.exit_code)


def doubts_of(verdict: Assessment) -> list[tuple[str, str]]:
    """Why a result is not proved, and what would make it so: each once."""
    whys = [one.why for one in verdict.assumptions if not one.holds]
    if verdict.word.value in ("contradicted", "limit") and verdict.why:
        whys = [verdict.why, *(whys if verdict.word.value == "limit" else ())]
    reasons, hints = [], []
    for why in dict.fromkeys(whys):
        why = why.removeprefix("the data contradict the model: ").partition(" Worst: ")[0].rstrip(".")
        parts = [part.removeprefix("tested: ") for part in why.split("; ") if part != _MODEL_RIGHT]
        advice = [part for part in parts if "--" in as_flags(part) or "'tightrope " in part]
        reasons.append("; ".join(part for part in parts if part not in advice) or why)
        hints += [as_flags(part) for part in advice if len(advice) < len(parts)]
    return list(
        text_rows([("reason", dict.fromkeys(map(as_flags, reasons))), ("hint", dict.fromkeys(hints))])
    )


_MODEL_RIGHT = (
    "it has the states and transitions of the real process, and the true parameters lie in its domain"
)


def assumed_facts(verdict: Assessment) -> Rows:
    """What the user states of the data, apart from the model itself, which is tested."""
    stated = [one for one in verdict.assumptions if one.kept.value == "stated"]
    whys = [one.why.removeprefix("the method needs that ") for one in stated if one.name != "model"]
    texts = [why.partition("; ")[0].partition(" (--")[0] for why in whys]
    return [("assumes", "; ".join(texts))]


def leave(verdict: Assessment) -> None:
    """Exit 0 if proved, or nominal and that is accepted; beside JSON, stderr says why not."""
    if verdict.is_proved or (common.accept_nominal and verdict.word.value == "nominal"):
        return
    if common.json:
        raise CannotCertify(f"{verdict.word.value}: {verdict.why}")
    raise typer.Exit(verdict.exit_code)


def say(text: str) -> None:
    """A message beside the result: on stderr; with --quiet warnings alone."""
    if common.quiet and not text.startswith("warning: "):
        return
    typer.echo(shown(text, "\t\n"), err=True)


def warn(text: str) -> None:
    """A warning, on stderr."""
    say(f"warning: {text}")


def spent(seconds: Mapping[str, float]) -> Rows:
    """Time by phases, and the largest amount of memory.

    >>> spent({"build": 0.2, "solve": 2.0})[0]
    ('time', '2.2 s (build 0.2, solve 2)')
    """
    phases = ", ".join(f"{phase} {spent:.2g}" for phase, spent in seconds.items())
    time = f"{sum(seconds.values()):.2g} s ({phases})" if seconds else ""
    return [("time", time), ("memory", f"{late.machine.peak_memory() / 2**20:,.0f} MiB at most")]


def count(number: int, what: str) -> str:
    """`1 episode`, `1,200 episodes`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


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
        late.jit.when_compiling(lambda: say(late.jit.COMPILING))


@contextmanager
def phase_progress() -> Iterator[PhaseProgress]:
    """A callback for phases; the line it draws disappears at the end of the block."""
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    from rich.console import Console
    from rich.markup import escape
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
        display.update(task, description=escape(what))

    try:
        yield show
    finally:
        if patience.ident:
            if PATIENCE:
                patience.cancel()
            patience.join()
        display.stop()


@contextmanager
def phase(what: str) -> Iterator[PhaseProgress]:
    """The same, with what begins."""
    with phase_progress() as show:
        show(what)
        yield show


@contextmanager
def build_progress(what: str) -> Iterator[BuildProgress]:
    """The same for builders."""
    with phase_progress() as show:
        yield lambda states, transitions: show(
            f"building {what}: {states:,} states, {transitions:,} transitions"
        )


@contextmanager
def reading_progress() -> Iterator[Callable[[ReadProgress], None] | None]:
    """The same for logs, with rows, bytes and the time left; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    begin = time.monotonic()
    with phase_progress() as show:
        yield lambda done: show(
            progress_line(done.rows, done.bytes, done.total_bytes, time.monotonic() - begin)
        )


def progress_line(rows: int, read: int, total: int, seconds: float) -> str:
    """`reading: 1,200,000 rows, 30 of 120 MB, 12 s left`."""
    line = f"reading: {group(rows)} rows, {read / 1e6:.0f} of {total / 1e6:.0f} MB"
    if 0 < read <= total and seconds > 0:
        line += f", {seconds * (total - read) / read:.0f} s left"
    return line
