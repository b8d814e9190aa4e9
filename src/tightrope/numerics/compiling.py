"""Notice of the first kernel that has to be compiled: what comes out of a cache says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tightrope.numerics.jit import when_numba_is_there


def when_compiling(tell: Callable[[], None]) -> None:
    """Call `tell` once, when this process compiles a kernel for the first time."""
    when_numba_is_there(lambda: _listen(tell))


def _listen(tell: Callable[[], None]) -> None:
    from numba.core import event

    events: Any = event  # which carry no types

    class FirstCompile(event.Listener):
        def __init__(self) -> None:
            self.has_told = False

        def on_start(self, event: Any) -> None:
            if not self.has_told:
                self.has_told = True
                tell()

        def on_end(self, event: Any) -> None:
            """Nothing to say."""

    events.register("numba:compile", FirstCompile())
