"""Smoke runs of `benchmarks/doctor_power.py` and `doctor_false_alarms.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


@pytest.mark.long
def test_planted_departures_are_found_and_named(tmp_path: Path) -> None:
    output = tmp_path / "power.jsonl"
    run_benchmark("doctor_power.py", "--smoke", "-o", output)
    row = json.loads(output.read_text(encoding="utf-8"))
    assert row["anytime"] <= 6.0 and row["named"] >= 0.9


def test_right_models_are_not_refuted(tmp_path: Path) -> None:
    output = tmp_path / "false.jsonl"
    run_benchmark("doctor_false_alarms.py", "--smoke", "-o", output)
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 6 and all(row["alarms"] == 0 for row in rows)


def test_every_row_is_tested_by_tables(tmp_path: Path) -> None:
    output = tmp_path / "tables.jsonl"
    run_benchmark("fit_tables.py", "--smoke", "-o", output)
    rows = {row["part"]: row for row in map(json.loads, output.read_text(encoding="utf-8").splitlines())}
    assert rows["right"]["alarms"] == rows["changes"]["false"] == 0
    assert rows["wrong"]["prev_named"] == rows["wrong"]["column_named"] == 1
    assert rows["few"]["prev"] == 2 and rows["few"]["unit"] + rows["few"]["column"] >= 2
    assert rows["changes"]["found"] >= 16 and rows["coins"]["log_e"] > 3_000.0
