"""A smoke run of `benchmarks/improve_experiment.py`, so that it cannot rot."""

from __future__ import annotations

from benchmark_script import run_benchmark


def test_no_rival_proves_more() -> None:
    finished = run_benchmark("improve_experiment.py", "--rivals", "--instances", "betting(5)")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "HCPI" in finished.stdout and "A/B" in finished.stdout


def test_differences_take_fewer_episodes_than_two_intervals() -> None:
    finished = run_benchmark("improve_experiment.py", "--smoke", "--ways", "rectangular", "difference")
    assert finished.returncode in (0, 1), finished.stdout + finished.stderr
    rows = [line.split() for line in finished.stdout.splitlines() if line.startswith("betting(5)")]
    assert [row[1] for row in rows][:2] == ["uniform", "soft"]
    for row in rows:
        apart, together = (float(number.replace(",", "")) for number in row[2:])
        assert together <= apart
