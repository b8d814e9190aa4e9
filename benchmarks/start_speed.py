"""How long a start takes: `import tightrope`, the list of commands, and `check` of a model of four states.

    python benchmarks/start_speed.py [--repeats 9]

CPU seconds beyond those of the bare interpreter, the least of several starts, so that a busy machine matters
little. Leaves with status 1 where the import takes 50 ms or more, `tightrope --help` 150 ms or more, or
`tightrope check` 450 ms or more, or where one holds more than 90 MB. The first start of each writes the
bytecode, which the others read.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

LIMITS = {"import tightrope": 0.050, "tightrope --help": 0.150, "tightrope check": 0.450}
MEMORY = 90.0
PROGRAM = """mdp
module walk
  s : [0..3] init 0;
  [a] s=0 -> 0.4 : (s'=1) + 0.6 : (s'=2);
  [b] s=0 -> 0.5 : (s'=3) + 0.5 : (s'=2);
  [c] s=1 -> 0.3 : (s'=0) + 0.7 : (s'=3);
  [d] s>=2 -> true;
endmodule
label "goal" = s=3;
"""


def commands(program: Path) -> dict[str, list[str]]:
    """What is started, by name."""
    check = ["check", str(program), "--prop", 'Pmax=? [ F "goal" ]']
    return {
        "import tightrope": ["-c", "import tightrope"],
        "tightrope --help": ["-m", "tightrope", "--help"],
        "tightrope check": ["-m", "tightrope", *check],
    }


def spent(arguments: list[str], repeats: int) -> tuple[float, float]:
    """CPU seconds of the interpreter with these arguments, the least of several; the megabytes it held, or
    those of what was started before, if they are more.
    """
    found = []
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    interpreter, _ = spent(["-c", "pass"], repeats)
    print(f"{'python':20} {interpreter * 1e3:6.0f} ms of CPU time")
    slow = False
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "walk.prism"
        program.write_text(PROGRAM, "utf-8")
        for name, arguments in commands(program).items():
            seconds, megabytes = spent(arguments, repeats)
            more = seconds - interpreter
            slow |= more >= LIMITS[name] or megabytes > MEMORY
            limits = f"limits {LIMITS[name] * 1e3:.0f} and {MEMORY:.0f}"
            print(f"{name:20} {more * 1e3:+6.0f} ms, {megabytes:3.0f} MB, {limits}")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
