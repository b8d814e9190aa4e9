"""How fast engines read a log: rows per second of threads, Dask and Spark with 1 and 2 workers.

    python benchmarks/engine_speed.py --rows 4000000

The log is that of `reading_speed.py`, in Parquet files. Workers are processes of this machine, started before
the clock is; a first reading, not measured, lets them compile. Counts are compared with those of one thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reading_speed import grid, write
from tightrope.data.reading import read_data


@contextmanager
def threads(workers: int) -> Iterator[dict[str, Any]]:
    yield {"threads": workers}


@contextmanager
def dask(workers: int) -> Iterator[dict[str, Any]]:
    import distributed

    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        yield {"engine": "dask", "scheduler": cluster.scheduler_address}


@contextmanager
def spark(workers: int) -> Iterator[dict[str, Any]]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "FATAL"}
    own = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.master(f"local-cluster[{workers},1,1024]").config(map=quiet | own)
    session = builder.getOrCreate()
    try:
        yield {"engine": "spark"}
    finally:
        session.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--engines", default="threads,dask,spark")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    model, known = grid(), {"threads": threads, "dask": dask, "spark": spark}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), asked.rows, asked.files, "parquet")
        expected = read_data(folder, model, threads=1)
        print("| engine | workers | rows per second |\n|---|---|---|")
        for name in asked.engines.split(","):
            for workers in (1, 2):
                with known[name](workers) as words:
                    read_data(folder, model, **words)
                    begin = time.perf_counter()
                    far = read_data(folder, model, **words)
                    seconds = time.perf_counter() - begin
                assert far.counts == expected.counts
                print(f"| {name} | {workers} | {far.rows / seconds:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
