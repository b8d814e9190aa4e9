"""A smoke run of `benchmarks/coverage_experiment.py`: every claim holds, and what must fail fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "coverage_experiment.py"


def test_claims_hold_and_counterexamples_fail(tmp_path: Path) -> None:
    output = tmp_path / "coverage.json"
    command = [sys.executable, str(SCRIPT), "--smoke", "-o", str(output)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 3 * 3 * 8 + 3
    assert all(row["ok"] for row in rows)
    stopped = {row["method"]: row for row in rows if row["design"] == "stopped on exclusion"}
    assert stopped["clopper-pearson"]["miss_rate"] > 0.05
    assert stopped["beta-binomial"]["miss_rate"] <= 0.05
    assert stopped["ellipsoid, as published"]["miss_rate"] > 0.05
    anytime = {row["method"] for row in rows if row["design"] == "adaptive" and row["claimed"]}
    assert anytime == {"beta-binomial", "ellipsoid", "likelihood"}
