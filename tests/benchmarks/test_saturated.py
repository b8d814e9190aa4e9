"""A smoke run of `benchmarks/saturated_logs.py`: free rows and parameters written by hand agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


@pytest.mark.long
def test_unconstrained_rows_are_answered_by_default(tmp_path: Path) -> None:
    output = tmp_path / "saturated.json"
    finished = run_benchmark("saturated_logs.py", "--smoke", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    rows = json.loads(output.read_text(encoding="utf-8"))
    assert [row["written"] for row in rows] == ["free", "by hand"] * 2
    assert all(row["sets"] == "tied" and row["lower"] <= row["truth"] <= row["upper"] for row in rows)
