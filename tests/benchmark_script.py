"""Runs a script of `benchmarks/` in this process: what is imported and compiled is not paid for twice."""

from __future__ import annotations

import contextlib
import io
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ITSELF = ("--here", "--measure")
"""The options with which a script calls itself, to measure one thing in a process of its own."""

_run_process = subprocess.run


class Finished(NamedTuple):
    """What a script ended with and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run_benchmark(script: str, *arguments: str | Path, processes: bool = False) -> Finished:
    """The script as if called on the command line; anything but a regular end is raised.

    Where it calls itself to measure one thing, that is done here as well, unless with `processes`."""
    path = BENCHMARKS / script
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", [str(path), *map(str, arguments)]),
        mock.patch.object(sys, "path", [str(BENCHMARKS), *sys.path]),
        mock.patch.object(subprocess, "run", _run_process if processes else _run_here),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
            if isinstance(end.code, str):
                err.write(end.code)
    return Finished(code, out.getvalue(), err.getvalue())


def _run_here(command: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Instead of `subprocess.run`: calls of a script of `benchmarks/` without a process."""
    program, *words = command
    if program != sys.executable or words[1:2] not in ([one] for one in ITSELF):
        return _run_process(command, **options)
    done = run_benchmark(Path(words[0]).name, *words[1:])
    if options.get("stdout") is not None:
        options["stdout"].write(done.stdout)
    return subprocess.CompletedProcess(command, *done)
