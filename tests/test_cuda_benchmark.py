"""The GPU benchmark still runs, here on the emulated device, and its models are what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "gpu_speed.py"


def test_smoke_run_measures_sweeps_and_compares_solves(tmp_path: Path) -> None:
    results = tmp_path / "gpu_speed.json"
    command = [sys.executable, str(SCRIPT), "--smoke", "--emulated", "-o", str(results)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
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
