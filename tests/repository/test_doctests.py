"""The examples in docstrings do what they show."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import tightrope

SOURCE = Path(tightrope.__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in sorted(SOURCE.rglob("*.py"))
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.M)
]


def test_every_public_name_has_an_example() -> None:
    silent = [name for name in tightrope.__all__ if ">>>" not in (getattr(tightrope, name).__doc__ or "")]
    assert silent == []


@pytest.mark.thinned(7)
@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
