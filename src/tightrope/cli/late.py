"""Modules that only some commands or answers need: `late.plan` is `tightrope.design.plan`, imported when
it is used first. `late.pyi` lists them."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType


@cache
def _modules() -> dict[str, str]:
    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    named = re.findall(r"^from (\S+) import (\w+) as", stub, re.MULTILINE)
    return {name: f"{package}.{name}" for package, name in named}


def __getattr__(name: str) -> ModuleType:
    if name not in _modules():
        raise AttributeError(f"no module is called {name!r} here")
    return import_module(_modules()[name])
