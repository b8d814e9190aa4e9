"""A Spark session whose two executors are processes of this machine."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def session(folder: Path) -> Iterator[Any]:
    """Two executors of one core each, in processes of their own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "FATAL",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        started = (
            SparkSession.builder.master("local-cluster[2,1,1024]").appName("tests").config(map=settings)
        ).getOrCreate()
    try:
        yield started
    finally:
        started.stop()


def executors() -> list[int]:
    """The processes of the executors, by their numbers."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"CoarseGrainedExecutorBackend" in place.read_bytes():
                found.append(int(place.parent.name))
        except OSError:
            continue
    return sorted(found)
