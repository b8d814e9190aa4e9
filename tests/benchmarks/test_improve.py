"""A smoke run of `benchmarks/improve_experiment.py`, so that it cannot rot."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark_script import run_benchmark


def test_no_rival_proves_more() -> None:
    finished = run_benchmark("improve_experiment.py", "--rivals", "--instances", "betting(5)")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "HCPI" in finished.stdout and "A/B" in finished.stdout


@pytest.mark.long
def test_differences_take_fewer_episodes_than_two_intervals(tmp_path: Path) -> None:
    """In parts, of which the table is put together."""
    record = str(tmp_path / "cells.jsonl")
    for way in ("rectangular", "difference"):
        run_benchmark("improve_experiment.py", "--smoke", "--ways", way, "--record", record)
    finished = run_benchmark(
        "improve_experiment.py", "--merge", record, "--ways", "rectangular", "difference"
    )
    assert finished.returncode in (0, 1), finished.stdout + finished.stderr
    rows = [line.split() for line in finished.stdout.splitlines() if line.startswith("betting(5)")]
    assert [row[1] for row in rows][:2] == ["uniform", "soft"]
    for row in rows:
        apart, together = (float(number.replace(",", "")) for number in row[2:4])
        assert 10 < together < 0.8 * apart and row[4:] == ["1"]


@pytest.mark.long
def test_slabs_of_differences_hold_the_true_value() -> None:
    finished = run_benchmark("improve_experiment.py", "--coverage", "2", "--instances", "betting(5)")
    assert finished.returncode == 0 and finished.stdout.count("outside 0 of 2 at delta") == 2
