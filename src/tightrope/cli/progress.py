"""A sign of life on stderr while something long runs: a build, a log that is read, a computation.

Silent where stderr is no terminal, and for the first moment, so that what is quick leaves no flicker.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Timer
from typing import TYPE_CHECKING

from tightrope.cli.output import group, say

if TYPE_CHECKING:
    from tightrope.data.log_counts import ReadProgress
    from tightrope.data.reading import Progress

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
        from tightrope.numerics.compiling import when_compiling

        when_compiling(lambda: say("compiling kernels, first run only ('tightrope warmup' does it ahead)"))


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
def reading_progress() -> Iterator[Progress | None]:
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
