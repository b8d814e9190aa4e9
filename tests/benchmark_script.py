"""Runs a script of `benchmarks/` in this process: what is imported and compiled is not paid for twice."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from pathlib import Path
from typing import NamedTuple
from unittest import mock

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


class Finished(NamedTuple):
    """What a script ended with and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run_benchmark(script: str, *arguments: str | Path) -> Finished:
    """The script as if called on the command line; anything but a regular end is raised."""
    path = BENCHMARKS / script
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", [str(path), *map(str, arguments)]),
        mock.patch.object(sys, "path", [str(BENCHMARKS), *sys.path]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Finished(code, out.getvalue(), err.getvalue())
