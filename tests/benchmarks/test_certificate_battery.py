"""A smoke run of `benchmarks/certificate_battery.py`, so that it cannot rot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


def _run(*arguments: str) -> str:
    run = run_benchmark("certificate_battery.py", *arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


ONLY = "- clopper-pearson/tied", "polytope/expression", "likelihood/rectangular", "slab/coupled"


@pytest.mark.long
def test_four_combinations_on_a_small_instance(tmp_path: Path) -> None:
    results = tmp_path / "rows.jsonl"
    options = "--smoke", "--episodes", "100", "--exact", "0", "--limit", "0", "--results", str(results)
    options = *options, "--only", *ONLY
    _run(*options)
    lines = results.read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert len(found) == len(ONLY)
    assert all(row["valid"] for row in found), [row for row in found if not row["valid"]]
    results.write_text("\n".join(lines[:-1]) + "\n")  # a run that was killed before the last row
    assert "4 certificates valid, 0 failed, 0 not made" in _run(*options)
    assert results.read_text().splitlines()[:-1] == lines[:-1]
    table = _run("--table", str(results)).splitlines()
    assert table[0].startswith("| instance | transitions | from | untied |")
    assert len(table) == 2 + len(ONLY)
