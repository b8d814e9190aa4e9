"""A smoke run of `benchmarks/cost_coverage.py`: claims hold, and intervals are what their definition says."""

from __future__ import annotations

import json
from pathlib import Path

from benchmark_script import run_benchmark


def test_intervals_of_costs_cover(tmp_path: Path) -> None:
    output = tmp_path / "coverage.jsonl"
    finished = run_benchmark("cost_coverage.py", "--smoke", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    lines = output.read_text(encoding="utf-8")
    rows = [json.loads(line) for line in lines.splitlines()]
    claimed = [row for row in rows if row["claimed"]]
    assert len(claimed) == 4 and all(row["misses"] <= 1 for row in claimed)
    again = run_benchmark("cost_coverage.py", "--smoke", "-o", output)
    assert again.returncode == 0 and output.read_text(encoding="utf-8") == lines
