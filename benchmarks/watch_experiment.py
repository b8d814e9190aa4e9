"""How often a watch raises a false alarm, how soon it finds a change, what it names, and how fast it reads.

    python benchmarks/watch_experiment.py                everything, an hour
    python benchmarks/watch_experiment.py --only delay   one part (several: repeat it)
    python benchmarks/watch_experiment.py --smoke        a little of each, seconds
    python benchmarks/watch_experiment.py --table        the tables of docs/watching.md from what is there

Rows are appended to bench-results/watch_experiment.jsonl as they come; those that are there stay as they are.

* false: streams under the model (inside the domain and on its boundary, choices in turn and chosen by a
  policy that chases deviations), 400 events each; whether the largest evidence at any look reaches 1/α. Goal:
  at most α.
* delay: one parameter jumps by a tenth of its range after a past of 50 (or 500) times log(1/α)/KL events.
  Events until the warning and the alarm, α = 0.001, beside two CUSUMs that know both values of the parameter:
  one with the threshold log(1/α), whose average run length to a false alarm is at least 1/α (the warning:
  half of that, in looks); one with the threshold log(n·KL/α), whose probability of a false alarm within the
  n events of the past is about α (the alarm: at most α, for ever). Goal: at most 4 times the oracle's mean.
* named: a coefficient is changed, a tie broken, an outcome added that the model excludes: whether there is an
  alarm, and whether it is what `explain` names first. Goal: 90 %.
* beside: the same jump at α = 0.05 found by χ² tests per choice with Bonferroni's correction and by ADWIN on
  residuals (needs `river`), both at levels at which at most 5 % of streams without a jump raise an alarm.
* fit: data sets of the model in batches, or without order, under the test that `learn` makes: how often its
  evidence ever reaches 1/α. Goal: at most α.
* power: how often that test, at its own α = 0.001, finds a changed coefficient or a broken tie.
* halfway: how often it finds that one parameter changes in the middle of a log, by 7 standard errors. Goals:
  80 % of 200 logs; at most α of 2,000 logs without a change.
* speed: events per second from Parquet on one core, and the peak of memory as the log grows.
* kill: a watch that is killed (SIGKILL) while it follows a file, and started again: the same e-value.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tightrope
from tightrope.monitoring.monitor import Monitor
from watch_batches import CASES, CHANGE, HALFWAY, LEVELS, SIZES, WRONG, false_fits, halfway, power
from watch_rivals import beside, cusum
from watch_streams import Jump, chances, draw, small, walk

Row = dict[str, Any]
BLOCK = 50
JUMPS = (("betting(25)", 0), ("glider(11,9)", 0), ("aircraft(20,10)", 0), ("rover(10,10)", 0))
ALPHA, PAST = 0.001, 50.0
LONGER = (("betting(25)", 0, 500.0), ("glider(11,9)", 0, 500.0))
"""Jumps that are measured after a longer past, too."""


def false_alarms(case: str, block: int, streams: int) -> Row:
    model = small()
    point, adaptive = CASES[case]
    chance = chances(model, *point)
    largest = []
    for number in range(streams):
        rng = np.random.default_rng([block, number, list(CASES).index(case)])
        monitor = Monitor(model, alpha=1e-9)  # so that it goes on judging
        monitor.observe(draw(model, chance, 400, rng, adaptive))
        monitor.look()
        largest.append(monitor.largest)
    above = {str(alpha): sum(value >= math.log(1 / alpha) for value in largest) for alpha in LEVELS}
    return {"streams": streams, "above": above}


def delay(name: str, parameter: int, run: int, past: float = PAST) -> Row:
    jump = Jump.of(name, parameter)
    scale = math.log(1 / ALPHA) / jump.information
    length = int(past * scale)
    monitor = Monitor(jump.model, alpha=ALPHA)
    monitor.observe(walk(jump.before, length, 1000 + run))
    early = monitor.first_alarm is not None
    warned_early = monitor.first_warning is not None
    after = walk(jump.after, int(40 * scale) + 5000, 5000 + run)
    step = max(64, int(scale / 10))
    for first in range(0, len(after), step):
        if monitor.alarm:
            break
        monitor.observe(after[first : first + step])
    ratios = jump.ratio[after]
    found = monitor.explain(1)
    return {
        "past": length,
        "information": jump.information,
        "false": early,
        "false_warning": warned_early,
        "alarm": None if monitor.first_alarm is None else monitor.first_alarm - length,
        "warning": None if monitor.first_warning is None else monitor.first_warning - length,
        "oracle_run": cusum(ratios, math.log(1 / ALPHA)),
        "oracle_ever": cusum(ratios, math.log(length * jump.information / ALPHA)),
        "named": found[0].moved[0].parameter if found and found[0].moved else None,
    }


def named(what: str, run: int) -> Row:
    model = small()
    chance = chances(model, "2/5", "1/5")
    structure = model.structure
    choice = {
        (int(structure.choice_state[c]), structure.action_name(c)): int(model.transition_start[c])
        for c in range(model.choices)
    }
    rng = np.random.default_rng([run, 7])
    monitor = Monitor(model, alpha=ALPHA)
    if what == "coefficient":  # p/2 is 0.7·p
        low = choice[1, "d"]
        chance[low : low + 2] = [0.28, 0.72] if chance[low] < 0.5 else [0.72, 0.28]
        expected = ("expression", "as in choice 'd' of state (s=1)")
    elif what == "tie":
        low = choice[1, "a"]
        chance[low : low + 2] = [0.5, 0.5]
        expected = ("tie", "choice 'a' of state (s=1)")
    else:
        expected = ("excluded", "an outcome that the model does not have")
    for _ in range(80):
        monitor.observe(draw(model, chance, 500, rng))
        if what == "outcome":
            monitor.exclude(expected[1])
        if monitor.alarm:
            break
    first = monitor.explain(1)[0]
    return {
        "alarm": monitor.alarm,
        "events": monitor.first_alarm,
        "first": (first.kind, first.text) == expected,
        "kind": first.kind,
        "said": first.text,
    }


def speed(events: int) -> Row:
    """The command itself on a Parquet log of so many events, in a process of its own."""
    from tightrope.cli.app import run as command

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        per_episode = 16.5
        words = ["sample", "bench:betting(25)", "--episodes", str(int(events / per_episode)), "--seed", "1"]
        assert command([*words, "--raw", "-o", str(log), "--json"]) == 0
        script = (
            "import json, time; from tightrope.cli.app import run; begin = time.process_time();"
            f"run(['watch', 'bench:betting(25)', '--data', {str(log)!r}, '--json']);"
            "status = open('/proc/self/status').read();"  # getrusage would count the parent's memory, too
            "print(json.dumps([time.process_time() - begin, int(status.split('VmHWM:')[1].split()[0])]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=_environment(), check=True
        )
    record, used = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    return {"events": record["events"], "cpu_seconds": used[0], "megabytes": used[1] / 1024}


def kill() -> Row:
    """Follow a growing file, be killed in between, go on: the evidence of one that was never interrupted."""
    model = small()
    structure = model.structure
    rng = np.random.default_rng(5)
    data = draw(model, chances(model, "2/5", "1/5"), 3000, rng)
    choice = structure.transition_choice[data]
    rows = [
        f"{structure.choice_state[c]},{structure.action_name(int(c))},{structure.successor[t]}\n"
        for c, t in zip(choice, data, strict=True)
    ]
    from watch_streams import SMALL

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "m.prism").write_text(SMALL)
        log = place / "log.csv"
        log.write_text("s,action,s'\n" + "".join(rows[:1700]))
        words = [sys.executable, "-m", "tightrope", "watch", "m.prism", "--param", "p=0.1:0.9,q=0.05:0.45"]
        words += ["--data", "log.csv", "--json"]
        kept = [*words, "--checkpoint", "kept.npz"]
        running = subprocess.Popen(
            [*kept, "--follow"], cwd=place, env=_environment(), stdout=subprocess.DEVNULL
        )
        try:
            waited = time.monotonic() + 120
            while not (place / "kept.npz").exists() and time.monotonic() < waited:
                time.sleep(0.1)
            with log.open("a") as file:
                file.writelines(rows[1700:])
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()
        both = [
            json.loads(
                subprocess.run(
                    command, cwd=place, env=_environment(), capture_output=True, text=True, check=False
                ).stdout.splitlines()[-1]
            )
            for command in (kept, words)
        ]
    return {"same": both[0]["e_value"] == both[1]["e_value"], "events": [one["events"] for one in both]}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(tightrope.__file__).parents[1])}


def planned(options: argparse.Namespace) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    """What there is to do: the part, the name of the row, and the arguments."""
    small_size = options.smoke
    blocks = range(1 if small_size else options.streams // BLOCK // len(CASES))
    yield from (
        ("false", f"{case}/{block}", (case, block, 2 if small_size else BLOCK))
        for block in blocks
        for case in CASES
    )
    runs = 1 if small_size else options.runs
    jumps = JUMPS[:1] if small_size else JUMPS
    yield from (
        ("delay", f"{name}/{parameter}/{run}", (name, parameter, run, 5.0 if small_size else PAST))
        for run in range(runs)
        for name, parameter in jumps
    )
    yield from (
        ("delay", f"{name}, longer past/{parameter}/{run}", (name, parameter, run, past))
        for run in range(0 if small_size else runs)
        for name, parameter, past in LONGER
    )
    yield from (
        ("named", f"{what}/{run}", (what, run))
        for run in range(1 if small_size else 5 * runs)
        for what in ("coefficient", "tie", "outcome")
    )
    yield from (
        ("fit", f"{case}/{block}", (case, block, 4 if small_size else 10 * BLOCK))
        for block in range(1 if small_size else math.ceil(options.streams / BLOCK / len(CASES) / 10))
        for case in CASES
    )
    yield from (
        ("power", f"{what}/{size}/{run}", (what, size, run))
        for run in range(1 if small_size else 2 * runs)
        for size in (SIZES[3:] if small_size else SIZES)
        for what in WRONG
    )
    yield from (
        ("halfway", f"{number}/{episodes}/{errors:g}/{block}", (number, episodes, errors, block, size))
        for number, episodes in (HALFWAY[:1] if small_size else HALFWAY)
        for errors, blocks in ((CHANGE, 4), (0.0, 10))
        for size in (10 if small_size else BLOCK,)
        for block in range(1 if small_size else blocks)
    )
    if not small_size:
        yield from (
            ("beside", f"{method}/{'null' if null else 'jump'}/{run}", (method, run, null))
            for run in range(3 * runs // 2)
            for null in (True, False)
            for method in ("oracle", "monitor", "chi-square", "adwin")
        )
        yield from (("speed", str(events), (events,)) for events in options.events)
        yield ("kill", "kill", ())


WORK = {
    "false": false_alarms,
    "delay": delay,
    "named": named,
    "beside": beside,
    "fit": false_fits,
    "power": power,
    "halfway": halfway,
    "speed": speed,
    "kill": kill,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=sorted(WORK), action="append")
    parser.add_argument("--smoke", action="store_true", help="a little of the first parts")
    parser.add_argument("--table", action="store_true", help="print the tables, measure nothing")
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--events", type=int, nargs="*", default=[10**6, 10**7])
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/watch_experiment.jsonl"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.exists() else []
    known: dict[tuple[str, str], Row] = {(row["part"], row["name"]): row for row in map(json.loads, lines)}
    for part, name, arguments in () if options.table else planned(options):
        if (options.only and part not in options.only) or (part, name) in known:
            continue
        begin = time.process_time()
        try:
            row = WORK[part](*arguments)
        except ModuleNotFoundError as missing:
            print(f"left out: {part} {name} needs {missing.name}")
            continue
        row = {"part": part, "name": name, **row, "cpu": round(time.process_time() - begin, 3)}
        known[part, name] = row
        with options.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    from watch_tables import tables

    grouped = defaultdict(list)
    for (part, _), row in known.items():
        grouped[part].append(row)
    text, missed = tables(grouped)
    print(text)
    print("\n".join(f"missed: {goal}" for goal in missed) or "no goal is missed")
    return 1 if missed and not options.smoke and not options.table else 0


if __name__ == "__main__":
    sys.exit(main())
