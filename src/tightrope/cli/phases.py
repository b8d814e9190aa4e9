"""A sign of life on stderr while a long computation runs: what is being done, and for how long already.

Silent where stderr is no terminal, and for the first moment, so that quick phases leave no flicker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from tightrope.cli.first_run import tell_when_compiling

PATIENCE = 0.4
"""Seconds before the first line is shown."""

PhaseProgress = Callable[[str], None]
"""Called with what begins, in a few words."""


@contextmanager
def phase_progress() -> Iterator[PhaseProgress]:
    """A callback for phases; the line it draws disappears at the end of the block."""
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    tell_when_compiling()
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    display = Progress(*columns, console=Console(stderr=True), transient=True)
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
