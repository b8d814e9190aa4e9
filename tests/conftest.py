"""What every test relies on: property tests draw the same examples on every run, ordinary ones half of them.

How many: `effort.py`. An ordinary run tries one of K cases of a test marked `thinned(K)`, and no test
marked `long` or `costly`; a run with `TIGHTROPE_WHOLE=1` tries all, and so does a run that names a test.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from functools import cache
from typing import Any

import pytest

from effort import WHOLE
from tightrope.benchmarks.suite import load as _build

# Tests start hundreds of processes: each would compile the package's modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What tests write need not survive a loss of power: waiting for the disk takes longer than many a test.
os.fsync = lambda descriptor: None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what an ordinary run does not try."""
    if WHOLE or any("::" in str(argument) for argument in config.args):
        return
    seen: Counter[str] = Counter()
    tried, left_out = [], []
    for item in items:
        name = item.nodeid.partition("[")[0]
        thinned = item.get_closest_marker("thinned")
        is_left_out = any(item.get_closest_marker(mark) for mark in ("long", "costly")) or (
            thinned is not None and seen[name] % thinned.args[0] != 0
        )
        (left_out if is_left_out else tried).append(item)
        seen[name] += 1
    config.hook.pytest_deselected(items=left_out)
    items[:] = tried


def pytest_collection_finish() -> None:
    """What was imported stays: the garbage collector need not walk through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture
def empty_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are written with nothing drawn on them: for tests of files, not of what they show."""
    from matplotlib.figure import Figure

    from tightrope.report.style import Picture

    def draw_nothing(self: Figure, renderer: Any) -> None:
        pass

    monkeypatch.setattr(Figure, "draw", draw_nothing)
    monkeypatch.setattr(Picture, "figure", lambda self, *run: Figure())


@cache
def _built(instance: Any) -> Any:
    return _build(instance)


@pytest.fixture
def built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances of the suite are built once in a process: for tests of what is done with them."""
    monkeypatch.setattr("tightrope.benchmarks.suite.load", lambda instance, progress=None: _built(instance))


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are not compiled yet run in Python, as in `check`: for tests on models of few states."""
    from tightrope.numerics import jit

    monkeypatch.setattr(jit, "_allowance", 1 << 40)
