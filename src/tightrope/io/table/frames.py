"""Tables of other programs: recorded episodes of Minari, and data frames of Spark.

*Minari* (`minari:NAME`, or an object with `iterate_episodes`): one row per step, with the columns `episode`,
`step`, `observation`, `action`, `next_observation`, `terminated` and `truncated`. A mapping of observations
becomes columns `observation.x`, a sequence `observation.0`, `observation.1`, … beside the whole. The metadata
name these (`observation`) and say that actions go by number (`actions`), so that variables may be given by
their order and actions by theirs (`tightrope.data.columns`).

*Spark*: partitions are groups of rows that are read where they lie (`tightrope.data.spark_engine`). This
process reads them one after the other where it needs the first rows, or all of them in their order.
"""

from __future__ import annotations

import importlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.table.arrow import InMemory, columns_of
from tightrope.io.table.data_table import DataTable, LogFile, LogFormat, Piece, Ragged
from tightrope.numerics.arrays import AnyArray
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

    def accepts(self, data: object) -> bool:
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


def _steps(number: int, episode: Any) -> dict[str, list[object]]:
    """The columns of one episode."""
    size = len(episode.actions)
    columns: dict[str, AnyArray] = {"episode": np.full(size, number), "step": np.arange(size)}
    for name, values in _columns("observation", episode.observations):
        columns |= {name: values[:-1], f"next_{name}": values[1:]}
    columns |= dict(_columns("action", episode.actions))
    for name in ("terminated", "truncated"):
        ends = getattr(episode, name.removesuffix("ed") + "ions", None)
        columns[name] = np.zeros(size, dtype=np.bool_) if ends is None else np.asarray(ends, dtype=np.bool_)
    return {name: values.tolist() for name, values in columns.items()}


def _columns(name: str, values: object) -> Iterator[tuple[str, AnyArray]]:
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


SCHEMA = "number long, rows long, content binary"


class SparkFrames(LogFormat):
    """Data frames; their groups are their partitions."""

    name, groups_are_parts = "Spark's data frame", True

    def accepts(self, data: object) -> bool:
        return hasattr(data, "mapInArrow") and hasattr(data, "sparkSession")

    def hold(self, data: Any, name: str) -> DataTable:
        rows: Counter[int] = Counter()
        for row in feed(data.select(data.columns[:1]), _size).collect():
            rows[row["number"]] += row["rows"]
        groups = tuple(rows[number] for number in range(max(rows, default=-1) + 1))
        return DataTable(name, tuple(data.columns), None, self, group_rows=groups, content=data)

    def pieces(
        self, table: DataTable, names: Sequence[str], ragged: Ragged, groups: range | None
    ) -> Iterator[Piece]:
        for row in feed(table.content.select(*names), _pack).toLocalIterator():
            if groups is None or row["number"] in groups:
                for batch in pa.ipc.open_stream(bytes(row["content"])):
                    yield columns_of(batch, names), batch.num_rows, 0


def feed(frame: Any, read: Callable[[Iterable[object]], Iterator[object]]) -> Any:
    """The frame of the rows that `read` makes of the record batches of each partition."""
    with warnings.catch_warnings():  # about versions of pandas, which is not used
        warnings.simplefilter("ignore")
        return frame.mapInArrow(read, SCHEMA)


def as_row(rows: int, content: bytes = b"") -> object:
    """A record batch of one row of `SCHEMA`, with the number of the partition that a worker reads."""
    return pa.record_batch({"number": [partition()], "rows": [rows], "content": [content]})


def partition() -> int:
    return int(importlib.import_module("pyspark").TaskContext.get().partitionId())


def _size(batches: Iterable[Any]) -> Iterator[object]:
    yield as_row(sum(batch.num_rows for batch in batches))


def _pack(batches: Iterable[Any]) -> Iterator[object]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield as_row(batch.num_rows, sink.getvalue().to_pybytes())
