"""Notice of the first kernel that has to be compiled: what comes out of a cache says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import event

EVENTS: Any = event
"""numba's events, which carry no types."""


class _FirstCompile(event.Listener):
    def __init__(self, tell: Callable[[], None]):
        self.tell: Callable[[], None] | None = tell

    def on_start(self, event: Any) -> None:
        if self.tell is not None:
            tell, self.tell = self.tell, None
            tell()

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


def when_compiling(tell: Callable[[], None]) -> None:
    """Call `tell` once, when this process compiles a kernel for the first time."""
    EVENTS.register("numba:compile", _FirstCompile(tell))
