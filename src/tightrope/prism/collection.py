"""Building large trees without the search for circles among them.

Python's collector looks through all objects again and again while they become more. Syntax trees hold no
circles, so for a long text that is a third of the time, for nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """The collector stays off inside, if it was on."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
