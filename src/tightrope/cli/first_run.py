"""The first run after an installation compiles kernels; somebody who waits is told why."""

from __future__ import annotations

import sys
from functools import cache

from tightrope.cli.output import say


@cache
def tell_when_compiling() -> None:
    """Have one line on stderr, where it is a terminal, as soon as a kernel is compiled."""
    if sys.stderr.isatty():
        from tightrope.numerics.compiling import when_compiling

        when_compiling(lambda: say("compiling kernels, first run only ('tightrope warmup' does it ahead)"))
