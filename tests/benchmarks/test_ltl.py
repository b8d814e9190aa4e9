"""A smoke run of `benchmarks/ltl_speed.py`, so that it cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

from benchmark_script import run_benchmark


def test_small_models_are_measured_and_agree_with_storm(tmp_path: Path) -> None:
    output = tmp_path / "ltl.json"
    finished = run_benchmark("ltl_speed.py", "--smoke", "patrol-order", "exclusion", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    rows = json.loads(output.read_text())
    assert [row["name"] for row in rows] == ["patrol-order", "exclusion"]
    assert all(row["lower"] == row["upper"] == row["theirs"] == 1.0 for row in rows)
