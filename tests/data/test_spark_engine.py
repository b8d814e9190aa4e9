"""Reading logs on Spark gives exactly what one machine gives, also when an executor dies on the way.

Also of `io/table/frames.py`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

import tightrope as tr
from engine_cases import read_in_continuous_time, read_suite, same_exposure, same_reading
from log_cases import FOLDER, machine
from spark_cluster import executors, session
from tightrope.cli.app import run
from tightrope.data.log_counts import ReadProgress

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::FutureWarning")]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two executors; the last test that needs them kills one."""
    with session(tmp_path_factory.mktemp("spark")) as started:
        yield started


def test_every_log_is_read_as_on_one_machine(spark: Any, tmp_path: Path) -> None:
    read_suite(engine="spark")
    read_in_continuous_time(tmp_path, engine="spark")


def test_commands_take_the_engine(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["data", str(FOLDER / "canonical.csv"), "--model", str(FOLDER / "machine.prism")]
    asked += ["--param", "p=0.1:0.9,q=0.1:0.9"]
    shown = []
    for engine in ("local", "spark"):
        assert run([*asked, "--engine", engine]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1].replace(" --engine spark", "")  # the next command names the engine


def test_data_frames_are_read_where_they_lie(spark: Any) -> None:
    model, table = machine(), pyarrow.csv.read_csv(FOLDER / "canonical.csv")
    frame = spark.createDataFrame(table).repartition(3, "episode").sortWithinPartitions("episode", "step")
    far = tr.read_data(frame, model)
    same_reading(far, tr.read_data(frame.toArrow(), model))
    assert far.rows == len(table) and far.counts.log is not None and len(far.counts.log()) == len(table)
    with pytest.raises(tr.InputError, match="data frames of Spark are read by Spark"):
        tr.read_data(frame, model, engine="dask")
    with pytest.raises(tr.InputError, match="another Spark session is active"):
        tr.read_data(FOLDER / "canonical.csv", model, engine="spark", scheduler="spark://elsewhere:7077")
    chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: 1})])
    rows = tr.simulate_times(chain.instantiate(), 20, seed=3, time=10).table()
    timed = spark.createDataFrame(rows).repartition(2, "episode").sortWithinPartitions("episode", "time")
    same_exposure(tr.read_exposure(timed, chain), tr.read_exposure(timed.toArrow(), chain))


def test_nothing_is_lost_when_an_executor_is_killed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tightrope.data.spark_engine.PARTS_OF_JOB", 2)
    model, table = machine(), pyarrow.csv.read_csv(FOLDER / "canonical.csv")
    table = table.sort_by([("episode", "ascending"), ("step", "ascending")])
    size = -(-len(table) // 12)
    for number in range(12):
        pyarrow.csv.write_csv(table.slice(number * size, size), tmp_path / f"part-{number:02}.csv")
    killed: list[int] = []

    def kill_one(progress: ReadProgress) -> None:
        if not killed:
            killed.append(executors()[0])
            os.kill(killed[0], signal.SIGKILL)

    far = tr.read_data(tmp_path, model, engine="spark", progress=kill_one)
    assert killed
    same_reading(far, tr.read_data(tmp_path, model))
