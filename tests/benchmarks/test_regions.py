"""Smoke runs of `benchmarks/region_speed.py` and `benchmarks/region_widths.py`, so that they cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


def run(script: str, output: Path) -> tuple[list[dict[str, object]], str]:
    finished = run_benchmark(script, "--smoke", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    rows: list[dict[str, object]] = json.loads(output.read_text(encoding="utf-8"))["rows"]
    return rows, finished.stdout


@pytest.mark.long
def test_speed_is_measured_part_by_part(tmp_path: Path) -> None:
    rows, text = run("region_speed.py", tmp_path / "speed.json")
    assert {row["instance"] for row in rows} == {"rover(10,10)", "aircraft(20,10)", "glider(11,9)"}
    assert all(row["truth_inside"] and row["ok"] for row in rows)
    assert "rover(10,10)" in text


@pytest.mark.long
def test_widths_are_relative_to_the_papers_polytope(tmp_path: Path) -> None:
    rows, _ = run("region_widths.py", tmp_path / "widths.json")
    width = {(str(row["instance"]), str(row["region"])): float(str(row["relative_width"])) for row in rows}
    for instance in ("aircraft(20,10)", "betting(25)", "glider(11,9)"):
        assert width[instance, "polytope, paper"] == 1.0
        assert width[instance, "tied intervals"] > 1.0 > width[instance, "polytope, tied"]
        assert width[instance, "likelihood"] < 0.5 < width[instance, "polytope, time-uniform"]
    assert all(row["covered"] == row["seeds"] for row in rows)
