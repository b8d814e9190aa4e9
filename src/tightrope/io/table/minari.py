"""Minari datasets (`minari:NAME`, or an object with `iterate_episodes`) as tables, one row per step.

Columns are `episode`, `step`, `observation`, `action`, `next_observation`, `terminated` and `truncated`.
A mapping of observations becomes columns `observation.x`, a sequence `observation.0`, `observation.1`, …
beside the whole. The metadata name these (`observation`) and say that actions go by number (`actions`), so
that variables may be given by their order and actions by theirs (`tightrope.data.columns`).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.table.arrow import InMemory
from tightrope.io.table.data_table import DataTable, LogFile, LogFormat
from tightrope.numerics.late import pa


def load_minari(name: str) -> Any:
    """A Minari dataset that is on this machine, by its name."""
    try:
        return importlib.import_module("minari").load_dataset(name)
    except ImportError as error:
        raise InputError(
            "Minari datasets need the package 'minari', which is not installed",
            hint="pip install 'tightrope[minari]'",
        ) from error
    except (FileNotFoundError, ValueError) as error:
        raise InputError(f"cannot load the Minari dataset '{name}': {error}") from error


class Minari(LogFormat):
    """Recorded episodes of environments."""

    name, scheme = "Minari", "minari:"

    def accepts(self, data: Any) -> bool:
        return hasattr(data, "iterate_episodes")

    def open(self, file: LogFile) -> DataTable:
        return self.hold(load_minari(file.path.removeprefix("minari:")), file.name)

    def hold(self, data: Any, name: str) -> DataTable:
        steps = [_steps(number, one) for number, one in enumerate(data.iterate_episodes())]
        if not steps:
            raise InputError("the dataset has no episodes", Location(name))
        try:
            table = pa.concat_tables([pa.table(columns) for columns in steps], promote_options="permissive")
        except pa.ArrowException as error:
            message = f"the observations of episodes differ in kind: {str(error).splitlines()[0]}"
            raise InputError(message, Location(name)) from error
        parts = [one for one in table.column_names if one.startswith("observation.")]
        about = {"actions": "numbers", "observation": parts or ["observation"]}
        return replace(InMemory().hold(table, name), metadata=about)


def _steps(number: int, episode: Any) -> dict[str, Any]:
    """The columns of one episode."""
    size = len(episode.actions)
    columns = {"episode": np.full(size, number), "step": np.arange(size)}
    for name, values in _columns("observation", episode.observations):
        columns |= {name: values[:-1], f"next_{name}": values[1:]}
    columns |= dict(_columns("action", episode.actions))
    for name in ("terminated", "truncated"):
        ends = getattr(episode, name.removesuffix("ed") + "ions", None)
        columns[name] = np.zeros(size, dtype=np.bool_) if ends is None else np.asarray(ends, dtype=np.bool_)
    return {name: values.tolist() for name, values in columns.items()}


def _columns(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    """Arrays of numbers or texts, one entry per observation."""
    if isinstance(values, dict | tuple):
        for part, entries in values.items() if isinstance(values, dict) else enumerate(values):
            yield from _columns(f"{name}.{part}", entries)
        return
    array = np.asarray(values)
    rows = array.reshape(len(array), -1)
    if array.ndim > 1 and rows.shape[1] > 1:
        yield from ((f"{name}.{part}", column) for part, column in enumerate(rows.T))
    yield name, rows[:, 0] if rows.shape[1] == 1 else rows
