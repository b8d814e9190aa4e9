"""Smoke runs of the benchmarks of slabs, so that they cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


@pytest.mark.long
def test_widths_are_measured_once(tmp_path: Path) -> None:
    output = tmp_path / "results" / "widths.jsonl"
    finished = run_benchmark("slab_widths.py", "--smoke", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    lines = output.read_text(encoding="utf-8")
    plain, slab = map(json.loads, lines.splitlines())
    assert (plain["region"], slab["region"]) == ("likelihood", "slab")
    assert 0.0 < slab["gap"] < 0.95 * plain["gap"] and plain["covered"] and slab["covered"]
    assert run_benchmark("slab_widths.py", "--smoke", "-o", output).stdout == finished.stdout
    assert output.read_text(encoding="utf-8") == lines


@pytest.mark.long
def test_pilots_of_several_shares_are_compared() -> None:
    finished = run_benchmark("pilot_shares.py", "--smoke")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    name, *columns = finished.stdout.splitlines()[-1].split()
    assert name == "betting(8)" and 0.5 < float(columns[1]) < 0.95  # 10 % of a plan, beside no plan


@pytest.mark.long
def test_intervals_of_a_few_replications_hold() -> None:
    """At δ = 0.1 more than half of three misses in one regime is no accident."""
    finished = run_benchmark("slab_coverage.py", "--smoke", "planned", "rare")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert max(json.loads(finished.stdout).values()) <= 1


@pytest.mark.long
def test_the_default_is_as_narrow_as_what_can_be_chosen(tmp_path: Path) -> None:
    """A row that a file has is not measured again, and a part that has none measures none."""
    words = ("default_widths.py", "--smoke", "--records", str(tmp_path / "rows.jsonl"))
    other = run_benchmark(*words, "--part", "2/2")
    assert other.stdout.splitlines()[-1] == "0 rows, 0 missed" and not (tmp_path / "rows.jsonl").exists()
    finished = run_benchmark(*words, "--part", "1/2")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    *_, row, last = finished.stdout.splitlines()
    assert float(row.split()[-1]) < 1.06 and last == "1 rows, 0 missed"
    assert run_benchmark(*words, "--merge").stdout == finished.stdout
