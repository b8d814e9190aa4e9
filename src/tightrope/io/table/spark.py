"""Spark's data frames: their partitions are groups of rows that can be read apart.

Partitions are read where they lie (`tightrope.data.spark_engine`). This process reads them one after the
other where it needs the first rows, or all of them in their order.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tightrope.io.table.arrow import columns_of
from tightrope.io.table.data_table import DataTable, LogFormat, Piece, Ragged
from tightrope.numerics.late import pa

SCHEMA = "number long, rows long, content binary"


class SparkFrames(LogFormat):
    """Data frames; their groups are their partitions."""

    name, groups_are_parts = "Spark's data frame", True

    def accepts(self, data: Any) -> bool:
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


def feed(frame: Any, read: Callable[[Iterable[Any]], Iterator[Any]]) -> Any:
    """The frame of the rows that `read` makes of the record batches of each partition."""
    with warnings.catch_warnings():  # about versions of pandas, which is not used
        warnings.simplefilter("ignore")
        return frame.mapInArrow(read, SCHEMA)


def as_row(rows: int, content: bytes = b"") -> Any:
    """A record batch of one row of `SCHEMA`, with the number of the partition that a worker reads."""
    return pa.record_batch({"number": [partition()], "rows": [rows], "content": [content]})


def partition() -> int:
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())


def _size(batches: Iterable[Any]) -> Iterator[Any]:
    yield as_row(sum(batch.num_rows for batch in batches))


def _pack(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield as_row(batch.num_rows, sink.getvalue().to_pybytes())
