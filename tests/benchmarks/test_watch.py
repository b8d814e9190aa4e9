"""`benchmarks/watch_experiment.py` runs, goes on where it stopped, and says what it misses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark_script import run_benchmark


@pytest.mark.long
def test_a_little_of_the_experiment(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    done = run_benchmark("watch_experiment.py", "--smoke", "-o", rows)
    assert done.returncode == 0, done.stderr
    parts = [json.loads(line)["part"] for line in rows.read_text().splitlines()]
    assert (parts.count("false"), parts.count("delay"), parts.count("named")) == (4, 1, 3)
    found = {row["name"]: row for row in map(json.loads, rows.read_text().splitlines())}
    jump = found["betting(25)/0/0"]
    assert not jump["false"] and jump["alarm"] >= jump["warning"] > 0 and jump["named"] == "p"
    assert all(found[f"{what}/0"]["first"] for what in ("coefficient", "tie", "outcome"))
    assert parts.count("fit") == 4 and "above" in found["inside, adaptive/0"]
    assert not found["nothing/30000/0"]["batches"]["alarm"]
    assert (
        found["coefficient/30000/0"]["batches"]["alarm"] and found["coefficient/30000/0"]["batches"]["first"]
    )
    assert found["1/500/7/0"]["found"] >= 8 and found["1/500/0/0"]["found"] == 0
    before = rows.read_text()
    again = run_benchmark("watch_experiment.py", "--smoke", "--table", "-o", rows)
    assert again.stdout.count("| all | ") == 2
    assert rows.read_text() == before and "| all | 8 | 0 (0.00%) | 0 (0.00%) |" in again.stdout
