"""The GPU benchmark still runs, here on the emulated device, and its models are what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark

pytestmark = pytest.mark.compiler


@pytest.mark.long
def test_smoke_run_measures_sweeps_and_compares_solves(tmp_path: Path) -> None:
    results = tmp_path / "gpu_speed.json"
    finished = run_benchmark("gpu_speed.py", "--smoke", "--emulated", "-o", results)
    assert finished.returncode == 0, finished.stderr
    found = json.loads(results.read_text(encoding="utf-8"))
    assert [row["model"] for row in found["sweeps"]] == [
        "2 successors",
        "3 successors",
        "4 successors",
        "polygon",
    ]
    assert all(row["distinct"] <= 256 and row["microseconds"] > 0 for row in found["sweeps"])
    (row,) = found["solves"]
    assert row["status"] == "CERTIFIED" and row["agree"] and row["gap"] <= 1e-6
