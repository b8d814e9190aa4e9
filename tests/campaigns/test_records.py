"""Records: what is written is read back, torn lines are repaired, finished cells are not run again."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tightrope.errors import InputError
from tightrope_campaigns.cells import Cell, CellLimits, Protocol
from tightrope_campaigns.records import Record, RecordFile, Status, read_records

MACHINE = {"cores": 2, "memory": 24 << 30, "cpu": "a CPU"}
VERSIONS = {"python": "3.11.7", "tightrope": "0.1"}


def record(seed: int = 1, status: Status = "ok", method: str = "tied", **values: Any) -> Record:
    cell = Cell("betting(50)", method, seed)
    return Record(cell, CellLimits(60.0, 1 << 30), status, None, values, MACHINE, VERSIONS)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    wide = record(2, lower=14.5, upper=math.inf, relative_gap=math.inf, seconds={"solve": 0.5}, covers=True)
    failed = record(3, "time-out", "rectangular/polytope")
    with RecordFile(path) as file:
        file.append(wide)
        file.append(failed)
    first, second = read_records(path)
    assert (first.lower, first.upper, first.relative_gap) == (14.5, math.inf, math.inf)
    assert first.solve_seconds == 0.5
    assert first.cell == wide.cell and first.limits == wide.limits
    assert second.status == "time-out" and second.cell == failed.cell
    line = json.loads(path.read_text().splitlines()[0])
    assert line["upper"] == "inf" and line["cap"] == 1000 and line["episodes"] == 100_000
    assert line["machine"] == MACHINE and line["versions"] == VERSIONS


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_passed_over_and_then_repaired(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "records.jsonl"
    with RecordFile(path) as file:
        file.append(record(1))
        file.append(record(2))
    path.write_bytes(path.read_bytes()[:-cut])
    assert [r.cell.seed for r in read_records(path)] == [1]
    with RecordFile(path) as file:
        assert [c.seed for c in file.open_cells([record(1).cell, record(2).cell], CellLimits())] == [2]
        file.append(record(2))
    assert [r.cell.seed for r in read_records(path)] == [1, 2]
    assert path.read_text().count("\n") == 2


def test_the_last_record_of_a_cell_counts(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with RecordFile(path) as file:
        file.append(record(1, "error"))
        file.append(record(1, lower=1.0))
    (only,) = read_records(path)
    assert only.status == "ok" and only.lower == 1.0


def test_two_campaigns_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with (
        RecordFile(path),
        pytest.raises(InputError, match="another campaign is writing"),
        RecordFile(path),
    ):
        pass
    with RecordFile(path) as file:
        assert file.records == {}


@pytest.mark.parametrize(
    ("status", "limits", "settled"),
    [
        ("ok", CellLimits(1e6, 1 << 40), True),
        ("refused", CellLimits(1e6, 1 << 40), True),
        ("error", CellLimits(1.0, 1 << 30), False),
        ("time-out", CellLimits(60.0, 1 << 40), True),
        ("time-out", CellLimits(61.0, 1 << 30), False),
        ("out-of-memory", CellLimits(1e6, 1 << 30), True),
        ("out-of-memory", CellLimits(60.0, 2 << 30), False),
    ],
)
def test_a_cell_is_run_again_where_that_can_tell_more(
    status: Status, limits: CellLimits, settled: bool
) -> None:
    assert record(1, status).settles(limits) is settled


def test_another_protocol_is_another_cell(tmp_path: Path) -> None:
    cells: Sequence[Cell] = [
        record(1).cell,
        Cell("betting(50)", "tied", 1, Protocol(1000)),
        Cell("betting(50)", "tied", 1, Protocol(delta=0.05)),
    ]
    with RecordFile(tmp_path / "records.jsonl") as file:
        file.append(record(1))
        assert file.open_cells(cells, CellLimits()) == cells[1:]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "{}",
        '{"format": 2}',
        "null",
        "\x00" * 40,
        json.dumps({**record().to_json(), "method": "x"}),
    ],
)
def test_what_is_no_record_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "records.jsonl"
    with RecordFile(path) as file:
        file.append(record(1))
    with path.open("a") as out:
        out.write(line + "\n")
    with pytest.raises(InputError, match=r"records.jsonl:2:1: this is not a record of a campaign"):
        read_records(path)


def test_no_file_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no records: no file"):
        read_records(tmp_path / "records.jsonl")
