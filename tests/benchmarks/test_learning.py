"""Smoke runs of the benchmarks of learning, speed and coverage, so that they cannot rot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmark_script import run_benchmark


def smoke(script: str, output: Path) -> Any:
    finished = run_benchmark(script, "--smoke", "--json", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return json.loads(output.read_text(encoding="utf-8"))


@pytest.mark.long
def test_learning_is_timed_by_phase(tmp_path: Path) -> None:
    rows = smoke("learn_speed.py", tmp_path / "speed.json")
    assert [(row["instance"], row["method"]) for row in rows] == [
        ("betting(8)", "parameter/polytope"),
        ("glider(4,4)", "rectangular/likelihood+certificate"),
    ]
    given, certified = rows
    assert given["lower"] <= given["optimum"] <= given["upper"]
    assert certified["certificate"]["valid"] and certified["certificate"]["bytes"] > 0
    assert given["certificate"] is None
    for row in rows:
        assert set(row["phases"]) == {"statistics", "region", "sets", "fit", "solve"}
        assert 0 < row["peak_gib"] < 4
        assert row["problems"] == []


@pytest.mark.long
def test_certified_intervals_cover(tmp_path: Path) -> None:
    content = smoke("end_to_end_coverage.py", tmp_path / "coverage.json")
    assert content["delta"] == 0.05
    assert len(content["rows"]) == 10
    assert {row["replications"] for row in content["rows"]} == {3}
    assert all(row["coverage"] >= 0.6 and row["holds"] for row in content["rows"])
