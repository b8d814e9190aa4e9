"""What the first answers of an installation cost, in CPU seconds of processes with empty caches.

    python benchmarks/first_start.py                          this environment
    python benchmarks/first_start.py --python VENV/bin/python one that a wheel was installed into
    python benchmarks/first_start.py --turns 9                the median of more runs

`check` asks a chain of two states, `learn` is the command of docs/start/five-minutes.md on the river, and
`tr.learn` the same in Python. Every run has a cache folder of its own that is empty. `nothing` and `numpy`
are a Python that does nothing, and one that imports numpy: on a busy machine all of them take longer. MB is
the most memory that a process held. Leaves with status 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "start" / "five-minutes.md"
CHAIN = """dtmc
module m s : [0..1] init 0; [] s=0 -> 0.5:(s'=1) + 0.5:(s'=0); [] s=1 -> true; endmodule
label "goal" = s=1;
"""
LEARN = """import tightrope as tr
model = tr.load("river.prism")
data = tr.read_data("mornings.csv", model, ends="complete")
tr.learn(tr.Problem(model, 'Pmax=? [ F "across" ]'), data, delta=0.01)
"""
ACROSS = 'learn river.prism --prop Pmax=?[F"across"] --data mornings.csv --ends complete --delta 0.01 -o out'
RUNS: dict[str, tuple[list[str], float | None]] = {
    "nothing": (["-c", ""], None),
    "numpy": (["-c", "import numpy"], None),
    "check": (["-m", "tightrope", "check", "chain.prism", "--prop", 'P=? [ F "goal" ]'], 0.45),
    "learn": (["-m", "tightrope", *ACROSS.split()], 4.0),
    "tr.learn": (["-c", LEARN], 4.0),
}
"""Arguments of Python, and the goal in CPU seconds."""


def measure(python: str, arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and MB of one run in a folder with the files, and with an empty cache."""
    page = PAGE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in re.findall(r'```\w+ title="([\w.]+)"\n(.*?)```', page, re.DOTALL):
            Path(folder, name).write_text(text, "utf-8")
        Path(folder, "chain.prism").write_text(CHAIN, "utf-8")
        env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")}
        cache = Path(folder, "cache")
        cache.mkdir(mode=0o700)
        words = {"stdout": subprocess.DEVNULL, "cwd": folder, "env": env | {"XDG_CACHE_HOME": str(cache)}}
        process = subprocess.Popen([python, *arguments], **words)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{' '.join(arguments)} ended with exit code {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", default=sys.executable, help="of the environment")
    parser.add_argument("--turns", type=int, default=5)
    asked = parser.parse_args()
    missed = False
    for name, (arguments, goal) in RUNS.items():
        runs = [measure(asked.python, arguments) for _ in range(asked.turns)]
        seconds = [spent for spent, _ in runs]
        middle = statistics.median(seconds)
        missed |= goal is not None and middle > goal
        words = "" if goal is None else f"  goal {goal:g}{'' if middle <= goal else '  MISSED'}"
        print(
            f"{name:9} first {seconds[0]:.3f} s, median {middle:.3f} s of {asked.turns}, "
            f"{max(size for _, size in runs):.0f} MB{words}",
            flush=True,
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
