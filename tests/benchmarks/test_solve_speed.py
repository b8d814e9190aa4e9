"""The benchmark of solving still runs, and judges its goals as its text says."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from benchmark_script import run_benchmark
from places import TESTS

SCRIPT = TESTS.parent / "benchmarks" / "solve_speed.py"


@pytest.mark.long
def test_smoke_run_compares_with_storm(tmp_path: Path) -> None:
    results = tmp_path / "solve_speed.json"
    finished = run_benchmark("solve_speed.py", "--smoke", "--json", results)
    assert finished.returncode == 0, finished.stderr
    rows = json.loads(results.read_text(encoding="utf-8"))
    pairs = [(row["tool"], row["instance"]) for row in rows]
    assert pairs[:2] == [("tightrope", "grid-P(12)"), ("storm", "grid-P(12)")]
    assert pairs[-2:] == [("tightrope", "rooms-R(2)"), ("tightrope", "rover(10,10)@")]
    for ours, storm in zip(rows[0:6:2], rows[1:6:2], strict=True):
        assert ours["lower"] <= ours["upper"] <= ours["lower"] * (1 + 1e-6)
        assert abs(storm["value"] / ours["lower"] - 1) < 1e-5


def test_goals() -> None:
    missed = runpy.run_path(str(SCRIPT))["missed"]
    good = {"tool": "tightrope", "instance": "grid-P(150)", "seconds": 0.5, "times_as_fast": 3.5}
    assert missed([good]) == []
    assert "2.5 times" in missed([good | {"times_as_fast": 2.5}])[0]
    assert "4.0 s" in missed([{"tool": "tightrope", "instance": "rover(125,125)@", "seconds": 4.0}])[0]
    bounds = good | {"lower": 0.25, "upper": 0.25}
    assert missed([bounds, {"tool": "storm", "instance": "grid-P(150)", "value": 0.250001}]) == []
    for value in (0.24, 0.26):
        assert "outside" in missed([bounds, {"tool": "storm", "instance": "grid-P(150)", "value": value}])[0]
