"""A smoke run of `benchmarks/certificate_battery.py`, so that it cannot rot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "certificate_battery.py"


def test_every_combination_on_a_small_instance(tmp_path):
    rows = tmp_path / "rows.json"
    command = [
        sys.executable,
        str(SCRIPT),
        "--smoke",
        "--episodes",
        "300",
        "--exact",
        "0",
        "--json",
        str(rows),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(rows.read_text())
    assert len(found) == 6 + 4 * 4 - 1
    assert all(row["valid"] for row in found), [row for row in found if not row["valid"]]
