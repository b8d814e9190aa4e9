"""The benchmark of small trees: its smoke size meets the bar."""

from __future__ import annotations

from benchmark_script import run_benchmark


def test_the_smoke_size_is_small_and_loses_little() -> None:
    finished = run_benchmark("small_trees.py", "--smoke")
    assert finished.returncode == 0, finished.stderr
    cells = finished.stdout.strip().split("\n")[-1].split(" | ")
    assert cells[0] == "| aircraft(4,3)" and int(cells[2]) <= 15 and float(cells[3].removesuffix(" %")) <= 1
