"""A smoke run of `benchmarks/suite_sizes.py`, so that it cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


@pytest.mark.long
def test_one_instance_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    output = tmp_path / "results" / "sizes.json"
    finished = run_benchmark("suite_sizes.py", "glider(11,9)", "-o", output, processes=True)
    assert finished.returncode == 0, finished.stderr
    (row,) = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert (row["states"], row["transitions"], row["expressions"]) == (99, 1316, 227)
    assert row["faults"] == []
    assert 20.875 < row["lower"] <= row["upper"] < 20.885
    assert row["build_seconds"] > 0 and row["peak_mib"] > 0
    assert "glider(11,9)" in finished.stdout
