"""A smoke run of `benchmarks/coverage_experiment.py`: every claim holds, and what must fail fails."""

from __future__ import annotations

import json
from pathlib import Path

from benchmark_script import run_benchmark


def test_claims_hold_and_counterexamples_fail(tmp_path: Path) -> None:
    output = tmp_path / "coverage.json"
    finished = run_benchmark("coverage_experiment.py", "--smoke", "-o", output)
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
