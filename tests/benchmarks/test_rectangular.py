"""A smoke run of `benchmarks/rectangular_speed.py`, so that it cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark
from learning_cases import case


@pytest.mark.long
def test_one_small_instance_is_measured(tmp_path: Path) -> None:
    output = tmp_path / "results" / "speed.json"
    finished = run_benchmark("rectangular_speed.py", "glider(5,5)", "--episodes", "500", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    wide, tight = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert (wide["sets"], tight["sets"]) == ("expression", "rectangular")
    optimum = case("glider(5,5)").optimum
    assert wide["lower"] <= tight["lower"] < optimum < tight["upper"] <= wide["upper"]
    assert tight["faults"] == [] and tight["vertices_met"] > 1
    assert set(tight["seconds"]) == {"statistics", "region", "sets", "robust", "optimistic"}
    assert "glider(5,5)" in finished.stdout
