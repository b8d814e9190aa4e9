"""Every script of `benchmarks/` starts: what it imports is there, and it says what it takes."""

from __future__ import annotations

import pytest

from benchmark_script import BENCHMARKS, run_benchmark

SCRIPTS = sorted(path.name for path in BENCHMARKS.glob("*.py") if "ArgumentParser(" in path.read_text())


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_start(script: str) -> None:
    finished = run_benchmark(script, "--help")
    assert finished.returncode == 0 and finished.stdout.startswith("usage: "), finished.stderr
