"""The benchmark of build speed still runs, and judges its goals as its text says."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from benchmark_script import run_benchmark
from places import TESTS

SCRIPT = TESTS.parent / "benchmarks" / "build_speed.py"


@pytest.mark.long
def test_smoke_run_writes_a_row_for_every_build(tmp_path: Path) -> None:
    results = tmp_path / "results" / "build_speed.json"
    finished = run_benchmark("build_speed.py", "--smoke", "--json", results)
    assert finished.returncode == 0, finished.stderr
    rows = json.loads(results.read_text(encoding="utf-8"))
    assert [(row["tool"], row["instance"]) for row in rows] == [
        ("tightrope", "betting(25)"),
        ("storm", "betting(25)"),
        ("tightrope", "rover(10,10)"),
    ]
    assert [row["transitions"] for row in rows] == [27703, 27703, 24515]
    assert all(row["cpu_seconds"] > 0 and row["transitions_a_second"] > 0 for row in rows)
    assert rows[0]["times_as_fast"] > 0
    assert len(finished.stdout.splitlines()) == 4


def test_quotients_beside_polynomials(tmp_path: Path) -> None:
    results = tmp_path / "quotients.json"
    finished = run_benchmark("quotient_build.py", "--smoke", "--json", results)
    assert finished.returncode == 0, finished.stderr
    rows = json.loads(results.read_text(encoding="utf-8"))
    assert [row["kind"] for row in rows] == ["one", "per column", "per state"]
    assert [row["expressions"] for row in rows] == [row["polynomial_expressions"] for row in rows]


@pytest.mark.long
def test_coverage_of_quotients(tmp_path: Path) -> None:
    """Three logs: the script runs, resumes, and no region misses all of them."""
    rows = tmp_path / "coverage.jsonl"
    finished = run_benchmark("quotient_coverage.py", "--smoke", "-o", rows)
    assert finished.returncode == 0, finished.stderr
    found = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    assert {row["region"]: row["replications"] for row in found} == dict.fromkeys(
        ("polytope", "likelihood", "ellipsoid", "tied"), 3
    )
    assert all(row["misses"] <= 1 for row in found)


def test_goals() -> None:
    missed = runpy.run_path(str(SCRIPT))["missed"]
    good = {
        "tool": "tightrope",
        "instance": "rover(50,50)",
        "transitions": 1_003_861,
        "transitions_a_second": 2_000_000,
        "bytes_a_transition": 80.0,
        "times_as_fast": 12.0,
    }
    assert missed([good]) == []
    assert missed([{**good, "times_as_fast": 9.9}]) == ["rover(50,50): only 9.9 times as fast as Storm"]
    assert missed([{**good, "transitions_a_second": 900_000}]) == [
        "rover(50,50): only 900,000 transitions a second"
    ]
    assert missed([{**good, "bytes_a_transition": 201.0}]) == ["rover(50,50): 201.0 bytes a transition"]
    assert missed([{**good, "tool": "storm", "transitions_a_second": 1}]) == []
