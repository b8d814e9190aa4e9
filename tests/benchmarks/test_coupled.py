"""A smoke run of `benchmarks/coupled_speed.py`, so that it cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


@pytest.mark.long
def test_small_instances_are_measured(tmp_path: Path) -> None:
    output = tmp_path / "results" / "speed.json"
    finished = run_benchmark("coupled_speed.py", "--smoke", "--episodes", "1000", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    glider, aircraft = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert glider["lower"] < 20.88 < glider["upper"]
    for row in (glider, aircraft):
        assert row["missed"] == [] and row["gap"] <= 0.02
        assert 0.0 < row["coupled"] <= row["rectangular"] <= row["expression"] * (1 + 1e-6)
    assert aircraft["of_rectangular"] < 0.9
    assert "glider(11,9)" in finished.stdout
