"""Smoke runs of the benchmark of exploration, so that it cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


@pytest.mark.long
def test_ways_to_explore_are_compared_once(tmp_path: Path) -> None:
    output = tmp_path / "rows.jsonl"
    finished = run_benchmark("plan_experiment.py", "--smoke", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    lines = output.read_text(encoding="utf-8")
    rows = {row["way"]: row for row in map(json.loads, lines.splitlines())}
    assert set(rows) == {"designed", "robust", "optimistic", "safe"}
    assert all(row["reached"] for row in rows.values())
    assert rows["designed"]["episodes"] < 0.9 * min(rows[way]["episodes"] for way in ("robust", "optimistic"))
    assert rows["safe"]["crashes"] <= rows["safe"]["certified"] <= rows["safe"]["at_most"]
    assert run_benchmark("plan_experiment.py", "--smoke", "-o", output).stdout == finished.stdout
    assert output.read_text(encoding="utf-8") == lines


@pytest.mark.long
def test_guarantees_of_a_few_designed_runs_hold() -> None:
    finished = run_benchmark("plan_experiment.py", "--coverage", "3")
    assert json.loads(finished.stdout)["missed"] <= 1


@pytest.mark.long
def test_forecasts(tmp_path: Path) -> None:
    finished = run_benchmark("plan_forecasts.py", "--smoke", "--out", tmp_path / "rows.jsonl")
    assert finished.returncode == 0, finished.stderr
    row = json.loads((tmp_path / "rows.jsonl").read_text())
    assert row["low"] <= row["needed"] <= row["high"]
    assert "| aircraft(3,2) | 1 |" in finished.stdout
