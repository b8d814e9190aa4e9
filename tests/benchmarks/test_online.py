"""A smoke run of `benchmarks/online_speed.py`, so that it cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


@pytest.mark.long
def test_small_runs_are_measured_and_agree_with_fresh_learning(tmp_path: Path) -> None:
    output = tmp_path / "speed.json"
    finished = run_benchmark("online_speed.py", "--smoke", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    content = json.loads(output.read_text(encoding="utf-8"))
    assert content["faults"] == []
    for row in content["rows"]:
        assert row["disagreement"] < 1e-5 and row["compared"] >= 3 and row["updates"] > 5
        assert 0 < row["update_ms"] < row["learn_ms"] * 2
