"""Verify files one after the other in one process, and say for each what it took.

    python measured.py SMALLER FILE…

The reader has one part of its room in SMALLER. One JSON object a line: path, exit code, seconds of processor
time, the peak of resident memory so far in MiB, and what was printed.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
import time
from pathlib import Path

from tightrope.cli.app import run
from tightrope_check import archive
from tightrope_check.statistics import binomial

binomial._MOST_TERMS //= 10  # of a tail: what is measured then takes a tenth of the time, too


def peak_memory() -> float:
    """MiB; that of `getrusage` would be at least what the process that started this one had."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


def main(paths: list[str], room: int = 6 << 30) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (room, room))  # a bomb shall not take the machine with it
    for path in paths:
        out, err = io.StringIO(), io.StringIO()
        begin = time.process_time()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["verify", path, "--json"])
        record = {
            "path": path,
            "code": code,
            "seconds": time.process_time() - begin,
            "peak": peak_memory(),
            "out": out.getvalue()[:2000],
            "err": err.getvalue()[:2000],
        }
        sys.__stdout__.write(json.dumps(record) + "\n")
        sys.__stdout__.flush()


if __name__ == "__main__":
    archive.ROOM //= int(sys.argv[1])
    main(sys.argv[2:])
