"""What an ordinary run leaves out is there, and nothing else is left out."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import thinned

LEFT_OUT = *thinned.THINNED, *thinned.BENCHMARKS, *thinned.LONG, *thinned.COSTLY


@pytest.mark.parametrize("name", [*LEFT_OUT, *thinned.COSTLY.values()])
def test_names_are_those_of_tests(name: str) -> None:
    file, _, test = name.partition("::")
    assert re.search(rf"^def {test}\(", (Path(__file__).parent / file).read_text(), re.MULTILINE)


def test_what_stands_for_a_costly_test_is_run() -> None:
    assert not {*thinned.COSTLY.values()} & {*thinned.BENCHMARKS, *thinned.LONG, *thinned.COSTLY}


def test_one_in_so_many_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinned, "WHOLE", False)
    monkeypatch.setattr(thinned, "THINNED", {"a.py::test_b": 3})
    names = [
        *(f"tests/a.py::test_b[{i}]" for i in range(7)),
        "tests/a.py::test_c[0]",
        "tests/a.py::test_c[1]",
    ]
    names.append(f"tests/{thinned.LONG[0]}")
    left: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left.extend(items))
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    config: Any = SimpleNamespace(args=["tests/a.py::test_b"], hook=hook)
    thinned.thin(config, items)
    assert len(items) == 10 and not left
    config.args = ["tests"]
    thinned.thin(config, items)
    assert [item.nodeid for item in items] == [names[i] for i in (0, 3, 6, 7, 8)] and len(left) == 5
