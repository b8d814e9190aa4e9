"""The benchmark of plain models still runs, agrees with Storm, and keeps what others wrote on its page."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from benchmark_script import run_benchmark
from places import TESTS

SCRIPT = TESTS.parent / "benchmarks" / "plain_models.py"


@pytest.mark.long
def test_smoke_run_agrees_with_storm(tmp_path: Path) -> None:
    results = tmp_path / "plain_models.json"
    finished = run_benchmark("plain_models.py", "--smoke", "--json", results)
    assert finished.returncode == 0, finished.stderr
    *rows, start = json.loads(results.read_text(encoding="utf-8"))
    assert len({row["model"] for row in rows}) >= 10
    for ours, storm in zip(rows[::2], rows[1::2], strict=True):
        assert (ours["tool"], storm["tool"]) == ("tightrope", "storm")
        assert ours["model"] == storm["model"]
        assert 0 < ours["lower"] <= ours["upper"] <= ours["lower"] * (1 + 1e-6)
        assert abs(storm["value"] / ours["lower"] - 1) < 3e-6
    assert start["tightrope"] > 0


def test_disagreement_is_reported() -> None:
    disagreements = runpy.run_path(str(SCRIPT))["disagreements"]
    ours = {"model": "crowds", "lower": 0.25, "upper": 0.2500001}
    assert disagreements([ours, {"value": 0.25}]) == []
    for value in (0.24, 0.26):
        assert "crowds" in disagreements([ours, {"value": value}])[0]


def test_page_is_replaced_between_its_marks(tmp_path: Path) -> None:
    script = runpy.run_path(str(SCRIPT))
    row = {"model": "crowds", "transitions": 10, "build": 1.0, "check": 2.0, "memory": 100.0}
    rows = [
        row | {"tool": "tightrope", "lower": 0.5, "upper": 0.5},
        row | {"tool": "storm", "value": 0.5, "build": 2.0},
    ]
    script["add_ratios"](*rows)
    assert rows[0]["build_ratio"] == 2.0
    (tmp_path / "solving.md").write_text("# Solving\n", encoding="utf-8")
    before = [row | {"tool": "tightrope", "check": 4.0}, {"model": "start-up", "tightrope": 2.0}]
    for start in (0.5, 0.7):
        script["document"](rows, {"tightrope": start, "storm": 0.2, "turns": 3}, tmp_path, before)
    text = (tmp_path / "solving.md").read_text(encoding="utf-8")
    assert text.startswith("# Solving\n") and text.count("## Plain models") == 1
    assert "| crowds | 1.00 → 1.00 | 4.000 → 2.000 | 100 → 100 |" in text
    assert "Start-up: 2.00 → 0.70 CPU seconds." in text
    assert "0.70 CPU seconds" in text and "| crowds | tightrope | 10 | 1.00 |" in text
