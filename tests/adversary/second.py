"""The second checker, `verify_standalone.py`, as a module."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "verify_standalone.py"

_spec = importlib.util.spec_from_file_location("verify_standalone", SCRIPT)
assert _spec is not None and _spec.loader is not None
second = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(second)


UNREAD = 3
"""Its exit code for kinds that it does not read."""


def is_read(name: str) -> bool:
    """Whether it reads the kind of an honest certificate of this name."""
    unread = ("coupled", "ellipsoid", "costs", "quotients", "polytope/steps")
    return name == "walk/polytope/coupled-cost" or not any(kind in name for kind in unread)


def second_verdict(path: Path) -> int:
    """Its exit code."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return int(second.main([str(path)]))
