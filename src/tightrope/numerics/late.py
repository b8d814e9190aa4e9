"""Libraries that take a tenth of a second and more to load: imported when something of them is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LateModule:
    """A module whose attributes are looked up, and the module imported, when they are asked for first."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return self.__dict__.setdefault(name, getattr(import_module(self._name), name))


pa, pc, pq = LateModule("pyarrow"), LateModule("pyarrow.compute"), LateModule("pyarrow.parquet")
fs, arrow_csv, arrow_json = (LateModule(f"pyarrow.{name}") for name in ("fs", "csv", "json"))
sparse, csgraph, linalg = (LateModule(f"scipy.sparse{name}") for name in ("", ".csgraph", ".linalg"))
highspy, optimize, futures = map(LateModule, ("highspy", "scipy.optimize", "concurrent.futures"))
