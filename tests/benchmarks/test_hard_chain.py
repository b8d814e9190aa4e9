"""`benchmarks/hard_chain.py`: the row of the README is what it prints."""

from __future__ import annotations

import json
from pathlib import Path

from benchmark_script import run_benchmark
from places import TESTS

ROOT = TESTS.parent


def test_the_row_of_the_first_page_is_printed(tmp_path: Path) -> None:
    finished = run_benchmark("hard_chain.py", "--steps", "6", "18", "--json", tmp_path / "rows.json")
    short, row = json.loads((tmp_path / "rows.json").read_text())
    assert short["lower"] <= 0.5 <= short["upper"] and short["is_certified"]
    assert row["lower"] <= 0.5 <= row["upper"] and row["upper"] - row["lower"] <= 1e-6
    assert not row["lower"] <= row["storm"] <= row["upper"] and abs(row["storm"] - 0.5) <= 1e-6
    assert "[0.4999998, 0.5000002]" in finished.stdout and f"{row['storm']:.8g}" == "0.49999975"
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert "certified [0.4999998, 0.5000002] with 18 steps" in text and "answers 0.49999975," in text
