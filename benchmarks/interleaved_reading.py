"""How fast logs are read whose times interleave over many files: rows per second and peak memory.

    python benchmarks/interleaved_reading.py --rows 100000000 --files 40
    python benchmarks/interleaved_reading.py --rows 10000000 --files 40 --units 12

The walks on a grid of `reading_speed.py`, with a column `time` in place of step numbers. File k has every
40th instant, so the order in time goes through all files at once, and batches follow it. With `--units` the
rows of so many units stand between each other within every file. The counts of all batches are compared
with those of the rows sorted by time, for logs of at most a million rows. Each run is a process of its own;
a first, small run compiles.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tightrope.data.counts import batch_ends
from tightrope.data.reading import read_data

COMPARED = 1_000_000


def load_walks() -> ModuleType:
    """The benchmark of reading in order, whose walks these are."""
    spec = importlib.util.spec_from_file_location(
        "reading_speed", Path(__file__).with_name("reading_speed.py")
    )
    assert spec is not None and spec.loader is not None
    walks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(walks)
    return walks


def write(folder: Path, rows: int, files: int, units: int) -> int:
    """The log, in files of equal size; the number of its bytes."""
    walks = load_walks()
    random = np.random.default_rng(1)
    each = rows // files // (walks.EPISODE * units) * walks.EPISODE * units
    for number in range(files):
        part = walks.table(number * (each // walks.EPISODE), each, random).drop_columns(["step"])
        if units > 1:
            block = np.arange(walks.EPISODE * units).reshape(units, walks.EPISODE).T.reshape(-1)
            order = (np.arange(each // len(block))[:, None] * len(block) + block[None, :]).reshape(-1)
            part = part.take(pa.array(order))
        instants = np.arange(each, dtype=np.int64) * files + number
        part = part.add_column(1, "time", pa.array(instants))
        pq.write_table(
            part, folder / f"part-{number:02d}.parquet", row_group_size=1 << 19, compression="zstd"
        )
    return sum(path.stat().st_size for path in folder.iterdir())


def is_exact(folder: Path, counts: object) -> bool:
    """Whether every batch holds what it holds of the rows sorted by time."""
    whole = pq.read_table(folder).sort_by([("time", "ascending")])
    moved = np.zeros(len(whole), dtype=np.int64)
    for name in ("x", "y"):
        moved |= whole[name].to_numpy() != whole[f"{name}_next"].to_numpy()
    ends = np.concatenate([[0], batch_ends(len(whole))])
    structure = load_walks().grid().structure
    source = structure.choice_state[structure.transition_choice]
    goes = (structure.successor != source).astype(np.int64)
    batches = counts.batches  # type: ignore[attr-defined]
    seen = [int(count @ goes[transition]) for transition, count in batches]
    sizes = [int(count.sum()) for _, count in batches]
    wanted = [int(moved[a:b].sum()) for a, b in pairwise(ends)]
    return seen == wanted and sizes == np.diff(ends).tolist()


def measure(folder: Path, threads: int | None) -> dict[str, float]:
    """Read the log once; called in a process of its own."""
    model = load_walks().grid()
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), 20_000, 2, 2)
        read_data(Path(name), model, order="time", ends="complete")
    begin, before = time.perf_counter(), os.times()
    reading = read_data(folder, model, threads=threads, order="time", ends="complete", observers=())
    seconds, after = time.perf_counter() - begin, os.times()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu = after.user + after.system - before.user - before.system
    exact = reading.rows > COMPARED or is_exact(folder, reading.counts)
    return {
        "rows": reading.rows,
        "seconds": seconds,
        "cpu": cpu,
        "peak_mib": peak,
        "batches": len(reading.counts.batches or ()),
        "exact": float(exact),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--units", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(Path(asked.measure), asked.threads or None)))
        return
    with tempfile.TemporaryDirectory() as name:
        size = write(Path(name), asked.rows, asked.files, asked.units)
        words = [sys.executable, __file__, "--measure", name, "--threads", str(asked.threads)]
        found = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    print(
        f"{found['rows']:,.0f} rows, {size / 1e6:,.0f} MB in {asked.files} files, {asked.units} at once: "
        f"{found['seconds']:.2f} s ({found['cpu']:.2f} s of CPU), "
        f"{found['rows'] / found['seconds'] / 1e6:.2f} million rows a second, "
        f"peak {found['peak_mib']:.0f} MiB, {found['batches']:.0f} batches, "
        + ("exact" if found["exact"] else "WRONG")
    )


if __name__ == "__main__":
    main()
