"""A sign of life on stderr while a long build runs; silent where stderr is no terminal.

The line appears only after a moment, so that a quick build leaves nothing flickering behind.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tightrope.cli.first_run import tell_when_compiling

BuildProgress = Callable[[int, int], None]
"""Called by a builder now and then with the states and transitions so far."""

PATIENCE = 0.4
"""Seconds before the first line is shown."""


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
