"""The process of one cell: a task as JSON on stdin, what happens as JSON lines on the first standard output.

Every line is one of `{"phase": …}`, as phases begin, and at the end `{"result": …}` or
`{"status": …, "message": …}`. Whatever a library prints goes to stderr. The process ends with its parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from tightrope.errors import CannotCertify, InputError
from tightrope_campaigns.cells import Cell, Protocol

ADDRESS_SPACE_SLACK = 8 << 30
"""Address space is more than memory: libraries and thread stacks reserve what they never touch."""

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Do what stdin says, and say how it went."""
    end_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    task = json.loads(sys.stdin.read())

    def say(**fields: object) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    try:
        limit = int(task["memory"]) + ADDRESS_SPACE_SLACK
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        say(result=perform(task, lambda phase: say(phase=phase)))
    except MemoryError:
        say(status="out-of-memory", message="an allocation failed")
    except (InputError, CannotCertify) as error:
        say(status="refused", message=str(error))
    except Exception as error:
        say(status="error", message=f"{type(error).__name__}: {error}")


def end_with_parent() -> None:
    """From now on the system kills this process when the one that started it dies."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def perform(task: dict[str, Any], progress: Any) -> dict[str, object]:
    """`prepare` the shared files of a cell, or `measure` it."""
    from tightrope_campaigns.measurement import measure, prepare

    cell = Cell(task["instance"], task["method"], task["seed"], Protocol(task["episodes"], task["delta"]))
    directory = Path(task["directory"])
    if task["task"] == "prepare":
        progress("simulate")
        prepare(directory, cell)
        return {}
    return measure(directory, cell, task["seconds"], progress)


if __name__ == "__main__":
    main()
