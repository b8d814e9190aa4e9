"""How fast logs are read: Parquet files on all cores, and compressed CSV; rows per second and peak memory.

    python benchmarks/reading_speed.py --rows 100000000 --files 40
    python benchmarks/reading_speed.py --rows 5000000 --format csv.gz
    python benchmarks/reading_speed.py --rows 100000000 --files 10 --tests
    python benchmarks/reading_speed.py --rows 10000000 --frames

The log tells of walks on a grid: episode, step, both variables, the action's name, both next variables.
Each run is a process of its own, so that its peak memory is that of reading. A first, small run compiles.
With `--tests` the log is read once more with the tables of the tests of every row, which logs of more than a
million rows have. With `--frames` the same rows are learned from as Parquet files and as data frames, in
turns, in one process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tightrope.data.fit_tables import observers_for
from tightrope.data.reading import read_data
from tightrope.learning.learn import learn
from tightrope.model.builder import build_from_rows
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP

SIDE = 40
ACTIONS = ("right", "up")
EPISODE = 50
"""Steps of an episode."""


def grid() -> ParametricMDP:
    """Walk right or up on a torus; a step may be missed."""
    parameters = Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    rows = []
    for x in range(SIDE):
        for y in range(SIDE):
            here = SIDE * x + y
            rows.append((here, "right", {SIDE * ((x + 1) % SIDE) + y: p, here: 1 - p}))
            rows.append((here, "up", {SIDE * x + (y + 1) % SIDE: p, here: 1 - p}))
    cells = np.arange(SIDE * SIDE)
    variables = {"x": (cells // SIDE).tolist(), "y": (cells % SIDE).tolist()}
    model = build_from_rows(rows, parameters, valuations=variables)
    assert isinstance(model, ParametricMDP)
    return model


def table(first: int, rows: int, random: np.random.Generator) -> pa.Table:
    """Whole episodes, from number `first` on."""
    episodes = rows // EPISODE
    action = random.integers(0, 2, (episodes, EPISODE), dtype=np.int8)
    moved = random.random((episodes, EPISODE), dtype=np.float32) < 2 / 3
    steps = [np.cumsum(moved & (action == kind), axis=1, dtype=np.int16) for kind in (0, 1)]
    after = [(s % SIDE).astype(np.int16) for s in steps]
    before = [np.roll(a, 1, axis=1) for a in after]
    for b in before:
        b[:, 0] = 0
    names = pa.DictionaryArray.from_arrays(pa.array(action.reshape(-1)), pa.array(ACTIONS))
    return pa.table(
        {
            "episode": np.repeat(np.arange(first, first + episodes, dtype=np.int32), EPISODE),
            "step": np.tile(np.arange(EPISODE, dtype=np.int32), episodes),
            "x": before[0].reshape(-1),
            "y": before[1].reshape(-1),
            "action": names,
            "x_next": after[0].reshape(-1),
            "y_next": after[1].reshape(-1),
        }
    )


def write(folder: Path, rows: int, files: int, kind: str) -> int:
    """The log, in files of equal size; the number of its bytes."""
    random = np.random.default_rng(1)
    each = rows // files // EPISODE * EPISODE
    for number in range(files):
        part = table(number * (each // EPISODE), each, random)
        path = folder / f"part-{number}.{kind}"
        if kind == "parquet":
            pq.write_table(part, path, row_group_size=1 << 19, compression="zstd")
        else:
            part = part.set_column(4, "action", part.column("action").cast(pa.string()))
            with gzip.open(path, "wb", compresslevel=1) as file:
                pyarrow.csv.write_csv(part, file)
    return sum(path.stat().st_size for path in folder.iterdir())


def measure(folder: Path, threads: int | None, tests: bool = False) -> dict[str, float]:
    """Read the log once, perhaps with tables for `tests`; called in a process of its own."""
    model = grid()
    with tempfile.TemporaryDirectory() as name:
        small = Path(name)
        write(small, 10_000, 2, "parquet")
        read_data(small, model, observers=observers_for(model) if tests else ())
    before = os.times()
    begin = time.perf_counter()
    reading = read_data(folder, model, threads=threads, observers=observers_for(model) if tests else ())
    seconds = time.perf_counter() - begin
    after = os.times()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu = after.user + after.system - before.user - before.system
    check = int(reading.counts.transition @ np.arange(len(reading.counts.transition)))
    return {"rows": reading.rows, "seconds": seconds, "cpu": cpu, "peak_mib": peak, "check": check}


def run(rows: int, files: int, kind: str, threads: int | None, tests: bool = False) -> list[dict[str, float]]:
    """Write a log, read it in another process, with `tests` once more, and say how fast that was."""
    with tempfile.TemporaryDirectory() as name:
        size = write(Path(name), rows, files, kind)
        words = [sys.executable, __file__, "--measure", name, "--threads", str(threads or 0)]
        results = [
            json.loads(subprocess.run([*words, *more], check=True, capture_output=True).stdout)
            for more in ([], ["--tests"])[: 1 + tests]
        ]
    return [{**one, "bytes": size, "rows_per_second": one["rows"] / one["seconds"]} for one in results]


def compare_frames(rows: int, rounds: int = 3) -> dict[str, dict[str, float]]:
    """Seconds of `learn` from Parquet files and from frames of the same rows: the best of some rounds."""
    problem = grid().problem("Pmax=? [ F<=5 x=4 ]")
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), rows, 1, "parquet")  # of several files, the tests ask whether files differ
        table = pq.read_table(name)
        frame = table.to_pandas()
        sources = {
            "Parquet files": name,
            "pandas, categories": frame,
            "pandas, strings": frame.astype({"action": "str"}),
            "pyarrow": table,
        }
        found = {each: {"seconds": np.inf, "cpu": np.inf} for each in sources}
        results = [learn(problem, pq.read_table(name).slice(0, 10_000), sets="tied")]
        for _ in range(rounds):
            for each, source in sources.items():
                before, begin = os.times(), time.perf_counter()
                results.append(learn(problem, source, sets="tied"))
                seconds, after = time.perf_counter() - begin, os.times()
                cpu = after.user + after.system - before.user - before.system
                found[each] = {
                    "seconds": min(seconds, found[each]["seconds"]),
                    "cpu": min(cpu, found[each]["cpu"]),
                }
    assert all(result == results[1] for result in results[2:]), "the same rows, the same result"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--format", default="parquet", choices=("parquet", "csv.gz"))
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--tests", action="store_true", help="once more with tables for the tests")
    parser.add_argument("--frames", action="store_true", help="data frames beside Parquet files")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(Path(asked.measure), asked.threads or None, asked.tests)))
        return
    if asked.frames:
        found = compare_frames(asked.rows)
        base = found["Parquet files"]
        for name, took in found.items():
            seconds, cpu = took["seconds"], took["cpu"]
            print(
                f"learn from {asked.rows:,} rows, {name:20} {seconds:6.2f} s, {cpu:6.2f} s of CPU: "
                f"{seconds / base['seconds']:.2f} and {cpu / base['cpu']:.2f} times the Parquet files"
            )
        return
    results = run(asked.rows, asked.files, asked.format, asked.threads or None, asked.tests)
    for result, words in zip(results, ("", ", with tables for the tests"), strict=False):
        megabytes = f"{result['bytes'] / 1e6:,.0f} MB"
        print(
            f"{result['rows']:,.0f} rows, {megabytes} in {asked.files} {asked.format} files{words}: "
            f"{result['seconds']:.2f} s ({result['cpu']:.2f} s of CPU), "
            f"{result['rows_per_second'] / 1e6:.2f} million rows a second, peak {result['peak_mib']:.0f} MiB"
        )


if __name__ == "__main__":
    main()
