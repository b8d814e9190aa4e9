"""The page on statistics runs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from places import TESTS

PAGE = TESTS.parent / "docs" / "statistics.md"


def test_the_example_runs_and_says_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    lower, upper = names["lower"], names["upper"]
    assert isinstance(lower, np.ndarray) and isinstance(upper, np.ndarray)
    assert 0.25 < lower[0] < 0.3 < upper[0] < 0.35
    assert 0.45 < lower[1] < 0.6 < upper[1] < 0.75
    assert "δ = 0.01 shared by 2 events" in capsys.readouterr().out
