"""A smoke run of `benchmarks/online_speed.py`, so that it cannot rot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "online_speed.py"


def test_small_runs_are_measured_and_agree_with_fresh_learning(tmp_path: Path) -> None:
    output = tmp_path / "speed.json"
    command = [sys.executable, str(SCRIPT), "--smoke", "-o", str(output)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    content = json.loads(output.read_text(encoding="utf-8"))
    assert content["faults"] == []
    for row in content["rows"]:
        assert row["disagreement"] < 1e-5 and row["compared"] >= 3 and row["updates"] > 5
        assert 0 < row["update_ms"] < row["learn_ms"] * 2
