"""A limit hits its own cell and nothing else; whatever happens to a process becomes a record."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import campaign_child as child
from tightrope_campaigns.campaign import Campaign, Engine, run_cell
from tightrope_campaigns.cells import Cell, CellLimits
from tightrope_campaigns.records import Record, read_records

COMMAND = (sys.executable, child.__file__)
LIMITS = CellLimits(1.5, 150 << 20)


def run(seed: int, directory: Path, limits: CellLimits = LIMITS) -> Record:
    return run_cell(Cell("betting(5)", "tied", seed), limits, str(directory), COMMAND)


def test_a_cell_that_goes_well(tmp_path: Path) -> None:
    record = run(child.OK, tmp_path)
    assert (record.status, record.message) == ("ok", None)
    assert (record.lower, record.upper, record.relative_gap) == (1.0, math.inf, 0.5)
    assert (record.build_seconds, record.solve_seconds, record.total_seconds) == (0.75, 0.125, 0.875)
    assert set(record.machine) == {"cores", "memory", "cpu"}
    assert record.machine["cores"] == len(os.sched_getaffinity(0))
    assert record.versions["python"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("seed", "status", "message"),
    [
        (child.FOREVER, "time-out", "more than 1.5 s (build)"),
        (child.GREEDY, "out-of-memory", "more than 150 MiB (build)"),
        (child.CRASH, "error", "ended by signal SIGSEGV"),
        (child.EXIT, "error", "ended with exit code 1: something broke"),
        (child.REFUSED, "refused", "no such sets"),
        (child.KILLED, "out-of-memory", "killed by the system (build)"),
    ],
)
def test_every_way_to_fail_is_a_status(tmp_path: Path, seed: int, status: str, message: str) -> None:
    record = run(seed, tmp_path, CellLimits(1.5 if seed == child.FOREVER else 60.0, 150 << 20))
    assert (record.status, record.message) == (status, message)
    assert math.isnan(record.lower)
    if seed == child.FOREVER:
        assert record.values["seconds"]["total"] > 0
    if seed == child.GREEDY:
        assert record.peak_memory is not None and record.peak_memory > 150 << 20


def test_what_a_cell_has_started_is_killed_with_it(tmp_path: Path) -> None:
    assert run(child.FAMILY, tmp_path).status == "time-out"
    assert _ends(int((tmp_path / "grandchild").read_text()))


def test_much_output_on_stderr_blocks_nothing(tmp_path: Path) -> None:
    assert run(child.TALKATIVE, tmp_path).status == "ok"


def test_a_machine_that_does_not_see_the_directory_helps_itself(tmp_path: Path) -> None:
    assert run(child.OK, tmp_path / "elsewhere").status == "ok"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.costly("test_every_way_to_fail_is_a_status")
def test_a_limit_kills_only_its_own_cell(tmp_path: Path) -> None:
    seeds = (child.OK, child.FOREVER, child.GREEDY, child.TALKATIVE)
    cells = [Cell("betting(5)", "tied", seed) for seed in seeds]
    records = Campaign(cells, LIMITS, Engine("local", jobs=2, command=COMMAND), tmp_path).run()
    assert [record.status for record in records] == ["ok", "time-out", "out-of-memory", "ok"]


INTERRUPTED = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of shells start deaf to it
from tightrope_campaigns.campaign import Campaign
from tightrope_campaigns.cells import Cell, CellLimits
from tightrope_campaigns.campaign import Engine
cells = [Cell("betting(5)", "tied", seed) for seed in (1, 101, 2)]
engine = Engine("local", jobs=1, command=(sys.executable, sys.argv[1]))
Campaign(cells, CellLimits(), engine, Path(sys.argv[2])).run()
"""


def test_an_interrupted_campaign_leaves_no_process_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", INTERRUPTED, child.__file__, str(tmp_path)]
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL, start_new_session=True) as campaign:
        runs = tmp_path / "runs"
        assert _wait(lambda: runs.exists() and runs.read_text().endswith("\n"))
        campaign.send_signal(signal.SIGINT)
        assert campaign.wait(20) != 0
    assert _ends(int(runs.read_text().split()[2]))
    path = tmp_path / "records.jsonl"
    assert [record.cell.seed for record in read_records(path)] == [child.OK]
    cells = [Cell("betting(5)", "tied", seed) for seed in (child.OK, 101)]
    records = Campaign(cells, CellLimits(), Engine("local", jobs=1, command=COMMAND), tmp_path).run()
    assert [record.status for record in records] == ["ok", "ok"]
    assert path.read_text().count("\n") == 2


def _wait(condition: Callable[[], bool]) -> bool:
    """Whether the condition comes true within half a minute."""
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.05)
    return False


def _ends(process: int) -> bool:
    """Whether a process is gone, or a corpse that nobody has collected, before long."""

    def gone() -> bool:
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    return _wait(gone)
