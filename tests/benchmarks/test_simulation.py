"""A smoke run of `benchmarks/simulation_speed.py`, so that it cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


@pytest.mark.long
def test_all_simulators_walk_and_all_files_are_read(tmp_path: Path) -> None:
    output = tmp_path / "results" / "speed.json"
    finished = run_benchmark("simulation_speed.py", "--smoke", "--json", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    results = json.loads(output.read_text(encoding="utf-8"))
    assert [(row["tool"], row["steps"]) for row in results["walks"]] == [
        ("tightrope", 260_000),
        ("gymnasium", 2_600),
        ("storm", 2_600),
    ]
    assert [(row["file"], row["rows"]) for row in results["readings"]] == [
        ("parquet, states by variables", 99_996),
        ("csv, states by variables", 10_010),
    ]
    assert all(row["cpu_seconds"] > 0 for row in results["walks"] + results["readings"])
    assert "steps/s" in finished.stdout
