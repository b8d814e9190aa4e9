"""Counting on a Dask cluster gives exactly the counts of one machine, also when a worker dies on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dask_cluster import Cluster, cluster, mute_listener
from engine_cases import read_in_continuous_time, read_suite
from tightrope import load, read_data
from tightrope.cli.app import run
from tightrope.data.log_counts import ReadProgress
from tightrope.errors import CannotCertify, InputError
from tightrope.model.parametric_mdp import ParametricMDP

WALK = """mdp const double p;
module walk
  x : [0..4] init 2;
  [walk] x>0 & x<4 -> p : (x'=x+1) + 1-p : (x'=x-1);
  [run] x=3 -> 1/2 : (x'=4) + 1/2 : (x'=2);
  [stay] x=0 | x=4 -> true;
endmodule
"""
FILES, EPISODES = 16, 60


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that does all the counting; the last tests that need it kill a worker, then the scheduler."""
    with cluster(tmp_path_factory.mktemp("dask")) as found:
        yield found


@pytest.fixture
def model(tmp_path: Path) -> ParametricMDP:
    path = tmp_path / "walk.prism"
    path.write_text(WALK)
    loaded = load(path, params={"p": (0.1, 0.9)})
    assert isinstance(loaded, ParametricMDP)
    return loaded


def episodes(random: np.random.Generator, first: int) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in ("episode", "step", "x", "action", "x_next")}
    for episode in range(first, first + EPISODES):
        x, step = 2, 0
        while x not in (0, 4):
            action = "run" if x == 3 and random.random() < 0.5 else "walk"
            after = x + 1 if random.random() < 0.6 else x - 1
            for name, value in zip(columns, (episode, step, x, action, after), strict=True):
                columns[name].append(value)
            x, step = after, step + 1
    return columns


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Parquet files of several row groups, with episodes that go across groups; then text files."""
    folder = tmp_path / "runs"
    folder.mkdir()
    random = np.random.default_rng(7)
    for number in range(FILES):
        table = pa.table(episodes(random, number * EPISODES))
        if number < FILES - 4:
            pq.write_table(table, folder / f"part-{number:02}.parquet", row_group_size=50)
        else:
            pyarrow.csv.write_csv(table, folder / f"part-{number:02}.csv")
    return folder


def test_every_log_is_read_as_on_one_machine(two_workers: Cluster, tmp_path: Path) -> None:
    read_suite(engine="dask", scheduler=two_workers.address)
    read_in_continuous_time(tmp_path, engine="dask", scheduler=two_workers.address)


def test_wrong_rows_are_reported_and_dropped_as_on_one_machine(
    two_workers: Cluster,
    tmp_path: Path,
    model: ParametricMDP,
    dataset: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = dataset / "part-13.csv"
    bad.write_text(bad.read_text() + '1,2\n9999,0,2,"fly",3\n')
    clean, dirty = sorted(dataset.glob("*-0*.parquet"))[:2], sorted(dataset.glob("*.csv"))
    with pytest.raises(InputError) as here:
        read_data(dirty, model)
    address = two_workers.address
    with pytest.raises(InputError) as far:
        read_data(dirty, model, engine="dask", scheduler=address)
    assert str(far.value) == str(here.value)
    words: dict[str, Any] = {"engine": "dask", "scheduler": address, "skip_invalid": True}
    both = read_data([*clean, *dirty], model, **words)
    asked = ["data", str(dataset), "--model", str(tmp_path / "walk.prism"), "--param", "p=0.1:0.9"]
    assert run([*asked, "--skip-invalid", "--engine", "dask", "--scheduler", address, "--json"]) == 0
    assert '"wrong number of fields": 1' in capsys.readouterr().out
    alone = read_data([*clean, *dirty], model, skip_invalid=True)
    assert both.counts == alone.counts and both.dropped == alone.dropped
    assert alone.dropped == {"wrong number of fields": 1, "disabled action": 1}


@pytest.mark.long
def test_the_counts_are_those_of_one_machine_when_a_worker_is_killed(
    two_workers: Cluster,
    tmp_path: Path,
    model: ParametricMDP,
    dataset: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tightrope.data.read_plan.PART_ROWS", 50)
    here = read_data(dataset, model, threads=1)
    assert here.counts.batches is not None and here.counts.design.episodes == FILES * EPISODES
    address, _, workers = two_workers
    monkeypatch.chdir(tmp_path)  # not where the workers are
    killed_at: list[int] = []

    def kill_one(progress: ReadProgress) -> None:
        if not killed_at:
            killed_at.append(progress.rows)
            workers[0].kill()

    far = read_data("runs", model, engine="dask", scheduler=address, progress=kill_one)
    assert workers[0].wait(30) != 0 and workers[1].poll() is None
    assert 0 < killed_at[0] < here.rows / 10
    assert far.counts == here.counts
    assert (far.rows, far.dropped) == (here.rows, here.dropped)


@pytest.mark.long
def test_a_scheduler_that_goes_away_is_said_without_a_traceback(
    two_workers: Cluster,
    model: ParametricMDP,
    dataset: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tightrope.data.read_plan.PART_ROWS", 50)
    address, process, _ = two_workers

    def kill(progress: ReadProgress) -> None:
        process.kill()
        process.wait()

    parts = sorted(dataset.glob("*.parquet"))
    with pytest.raises(CannotCertify, match="the Dask scheduler went away while the log was counted"):
        read_data(parts, model, engine="dask", scheduler=address, progress=kill)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("command", ["data", "learn"])
def test_a_dead_scheduler_is_an_input_error(
    command: str, tmp_path: Path, model: ParametricMDP, dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mute_listener() as port:
        pass  # nobody listens there any more
    source, address = str(tmp_path / "walk.prism"), f"127.0.0.1:{port}"
    asked = {
        "data": ["data", str(dataset), "--model", source],
        "learn": ["learn", source, "--data", str(dataset), "--prop", "Pmax=? [ F x=4 ]"],
    }[command]
    assert run([*asked, "--param", "p=0.1:0.9", "--engine", "dask", "--scheduler", address]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"error: no Dask scheduler answers at tcp://{address}: Connection refused\n")
    assert said.out == ""
