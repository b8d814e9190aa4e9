"""A smoke run of `benchmarks/domain_parts.py`: both tools decide the domain, and their verdicts agree."""

from __future__ import annotations

import json
from pathlib import Path

from benchmark_script import run_benchmark


def test_parts_agree_with_parameter_lifting(tmp_path: Path) -> None:
    output = tmp_path / "rows.json"
    finished = run_benchmark("domain_parts.py", "--smoke", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    rows = json.loads(output.read_text(encoding="utf-8"))
    assert [row["case"] for row in rows] == ["retransmission(4,2)", "crowds(10,2)"]
    assert all(row["agree"] and max(row["open"], row["storm_open"]) <= 0.05 for row in rows)
