"""Stands in for the process of a cell: does what the seed says, in the protocol of `cell_process`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tightrope_campaigns.cell_process import end_with_parent

OK, FOREVER, GREEDY, CRASH, EXIT, REFUSED, KILLED, FAMILY, TALKATIVE = range(1, 10)
SLOW = 100
"""From this seed on: 0.7 s of work, noted in the file `runs`."""


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def succeed(seed: int) -> None:
    seconds = {"statistics": 0.25, "region": 0.0, "sets": 0.5, "solve": 0.125}
    say(
        result={
            "lower": seed,
            "upper": float("inf"),
            "optimum": 10.0,
            "relative_gap": 0.5,
            "seconds": seconds,
        }
    )


def main() -> None:
    end_with_parent()
    order = json.load(sys.stdin)
    seed = order["seed"]
    if order["task"] == "prepare":
        say(result={})
        return
    say(phase="build")
    if seed == FOREVER:
        time.sleep(600)
    elif seed == GREEDY:
        held = []
        while True:
            held.append(bytearray(8 << 20))
            time.sleep(0.002)
    elif seed == CRASH:
        os.kill(os.getpid(), signal.SIGSEGV)
    elif seed == EXIT:
        sys.exit("something broke")
    elif seed == REFUSED:
        say(status="refused", message="no such sets")
        return
    elif seed == KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    elif seed == FAMILY:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(order["directory"], "grandchild").write_text(str(child.pid))
        time.sleep(600)
    elif seed == TALKATIVE:
        sys.stderr.write("x" * 1_000_000)
    elif seed >= SLOW:
        with Path(order["directory"], "runs").open("a") as runs:
            runs.write(f"{seed} {os.getppid()} {os.getpid()}\n")
        time.sleep(0.7)
    succeed(seed)


if __name__ == "__main__":
    main()
