"""Campaigns on a Dask cluster: a real scheduler and two workers, one of which is killed midway."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import campaign_child as child
from dask_cluster import cluster, mute_listener
from tightrope.cli.app import run
from tightrope.data.dask_engine import connect
from tightrope.data.engines import parse_place
from tightrope.errors import CannotCertify, InputError
from tightrope_campaigns.campaign import Campaign, Engine, parse_engine
from tightrope_campaigns.cells import Cell, CellLimits
from tightrope_campaigns.records import Record, read_records

COMMAND = (sys.executable, child.__file__)
LIMITS = CellLimits(60.0, 1 << 30)
CELLS = [Cell("betting(5)", "tied", child.SLOW + number) for number in range(4)]


def _runs(directory: Path) -> list[tuple[int, int]]:
    """(seed, worker) of every cell that was begun."""
    path = directory / "runs"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(line.split()[0]), int(line.split()[1])) for line in lines]


@pytest.mark.long
def test_no_cell_is_lost_or_doubled_when_a_worker_is_killed_and_a_scheduler_that_goes_away_is_said(
    tmp_path: Path,
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    with cluster(tmp_path) as (address, process, workers):
        pids = {worker.pid for worker in workers}

        def kill_one() -> None:
            """Once both work and something has been finished."""
            for _ in range(1200):
                begun = _runs(results)
                if {worker for _, worker in begun} == pids and len(begun) >= 3:
                    os.kill(begun[-1][1], signal.SIGKILL)
                    return
                time.sleep(0.02)

        killer = threading.Thread(target=kill_one)
        killer.start()
        engine = Engine("dask", address, command=COMMAND)
        records = Campaign(CELLS, LIMITS, engine, results).run()
        killer.join()
        assert sorted(worker.poll() is None for worker in workers) == [False, True]
        (left,) = (worker.pid for worker in workers if worker.poll() is None)
        alone = tmp_path / "alone"  # a single worker does the work itself
        (record,) = Campaign(CELLS[:1], LIMITS, engine, alone).run()
        assert record.status == "ok" and _runs(alone) == [(CELLS[0].seed, left)]
        _kill_the_scheduler_on_the_way(process, engine, tmp_path / "broken off")
    assert [record.cell for record in records] == CELLS
    assert {record.status for record in records} == {"ok"}
    assert [record.lower for record in records] == [cell.seed for cell in CELLS]
    written = Counter(record.cell.seed for record in read_records(results / "records.jsonl"))
    assert written == Counter(cell.seed for cell in CELLS)
    assert (results / "records.jsonl").read_text().count("\n") == len(CELLS)
    begun = Counter(seed for seed, _ in _runs(results))
    assert set(begun) == {cell.seed for cell in CELLS}
    assert begun.total() > len(CELLS)  # what the dead worker had begun was begun again


def _kill_the_scheduler_on_the_way(process: subprocess.Popen[bytes], engine: Engine, results: Path) -> None:
    """The records so far are kept, and the campaign ends without it."""

    def kill(record: Record, done: int, total: int) -> None:
        process.kill()
        process.wait()

    with pytest.raises(CannotCertify, match="the Dask scheduler went away; the records so far are kept"):
        Campaign(CELLS[:2], LIMITS, engine, results).run(kill)
    assert len(read_records(results / "records.jsonl")) == 1
    records = Campaign(CELLS[:2], LIMITS, Engine("local", command=COMMAND), results).run()
    assert [record.status for record in records] == ["ok"] * 2


@pytest.mark.long
def test_workers_started_on_this_machine(tmp_path: Path) -> None:
    engine = Engine("dask", jobs=1, command=COMMAND)
    (record,) = Campaign([Cell("betting(5)", "tied", child.OK)], LIMITS, engine, tmp_path).run()
    assert (record.status, record.lower) == ("ok", child.OK)


def test_a_finished_campaign_needs_no_cluster(tmp_path: Path) -> None:
    Campaign(CELLS[:1], LIMITS, Engine("local", command=COMMAND), tmp_path).run()
    nobody = Engine("dask", "tcp://127.0.0.1:9")
    (record,) = Campaign(CELLS[:1], LIMITS, nobody, tmp_path).run()
    assert record.lower == child.SLOW


def test_engines_by_name() -> None:
    assert parse_engine("local", 3) == Engine("local", None, 3)
    assert parse_engine("dask").parallel == max(1, len(os.sched_getaffinity(0)) // 2)
    assert parse_engine("dask://host.example:8786") == Engine("dask", "tcp://host.example:8786")
    assert parse_engine("dask://[::1]:80").address == "tcp://[::1]:80"
    for address in ("host.example:8786", "tcp://host.example:8786"):
        assert parse_engine("dask", scheduler=address) == Engine("dask", "tcp://host.example:8786")


@pytest.mark.parametrize(
    "text", ["", "ray", "dask:8786", "dask://host", "dask://host:0", "dask://host:99999"]
)
def test_what_is_no_engine_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not an engine"):
        parse_engine(text)


def test_jobs_are_for_this_machine() -> None:
    with pytest.raises(InputError, match="--jobs cannot be used with a running scheduler"):
        parse_engine("dask://host:8786", 2)


@pytest.mark.parametrize(
    ("engine", "scheduler", "message"),
    [
        ("local", "host:8786", '`scheduler` requires `engine="dask"`'),
        ("dask", "host", "'host' is not the address of a scheduler"),
        ("dask", "host:0", "'host:0' is not the address of a scheduler"),
        ("dask://host:1", "host:2", "each name a scheduler"),
    ],
)
def test_schedulers_that_are_none_are_refused(engine: str, scheduler: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_engine(engine, scheduler=scheduler)


def test_a_dead_scheduler_is_an_input_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with mute_listener() as port:
        pass  # nobody listens there any more
    arguments = ["bench", "betting(5)", "-o", str(tmp_path / "out"), "--engine", "dask"]
    assert run([*arguments, "--scheduler", f"127.0.0.1:{port}"]) == 2
    assert capsys.readouterr().err == (
        f"error: no Dask scheduler answers at tcp://127.0.0.1:{port}: Connection refused\n"
        "hint: is it running, and is this its address? 'dask scheduler' starts one and prints it\n"
    )
    assert not (tmp_path / "out").exists()


def test_what_is_no_scheduler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.data.engines.CONNECT_SECONDS", 1)
    with (
        mute_listener() as port,
        pytest.raises(InputError, match=rf"no Dask scheduler answers at tcp://127.0.0.1:{port}"),
        connect(parse_place("dask", f"127.0.0.1:{port}"), 1),
    ):
        pass
