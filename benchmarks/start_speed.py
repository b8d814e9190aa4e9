"""How long a start takes: `import tightrope`, and the command line's list of commands.

    python benchmarks/start_speed.py [--repeats 9]

CPU seconds beyond those of the bare interpreter, the least of several starts, so that a busy machine matters
little. Leaves with status 1 where the import takes 50 ms or more, or `tightrope --help` 150 ms or more.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys

LIMITS = {"import tightrope": 0.050, "tightrope --help": 0.150}
COMMANDS = {
    "import tightrope": ["-c", "import tightrope"],
    "tightrope --help": ["-m", "tightrope", "--help"],
}


def spent(arguments: list[str], repeats: int) -> float:
    """CPU seconds of the interpreter with these arguments, the least of several."""
    found = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=os.environ)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    interpreter = spent(["-c", "pass"], repeats)
    print(f"{'python':20} {interpreter * 1e3:6.0f} ms of CPU time")
    slow = False
    for name, arguments in COMMANDS.items():
        more = spent(arguments, repeats) - interpreter
        slow |= more >= LIMITS[name]
        print(f"{name:20} {more * 1e3:+6.0f} ms, limit {LIMITS[name] * 1e3:.0f}")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
