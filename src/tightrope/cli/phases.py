"""A sign of life on stderr while a long computation runs: what is being done, and for how long.

Silent where stderr is no terminal, and for the first moment, so that quick phases leave no flicker.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    display = Progress(*columns, console=Console(stderr=True), transient=True)
    task = display.add_task("", total=None)
    begin = time.monotonic()
    running = False

    def show(what: str) -> None:
        nonlocal running
        display.update(task, description=what)
        if not running and time.monotonic() - begin > PATIENCE:
            running = True
            display.start()

    try:
        yield show
    finally:
        display.stop()
