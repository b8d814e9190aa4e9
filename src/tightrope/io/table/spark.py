"""Spark's data frames: their partitions are groups of rows that can be read apart.

Partitions are read where they lie (`tightrope.data.spark_engine`). This process reads them one after the
other where it needs the first rows, or all of them in their order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tightrope.io.table.arrow import columns_of
from tightrope.io.table.data_table import DataTable, Piece, Ragged

SCHEMA = "number long, rows long, content binary"


def is_frame(data: Any) -> bool:
    """Whether it is a data frame of Spark."""
    return hasattr(data, "mapInArrow") and hasattr(data, "sparkSession")


@dataclass(frozen=True)
class SparkTable(DataTable):
    """A data frame; its groups are its partitions."""

    frame: Any = field(default=None, compare=False)
    groups_are_parts = True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "frame": None}  # it is of use in this process alone

    def _pieces(self, names: Sequence[str], ragged: Ragged, groups: range | None) -> Iterator[Piece]:
        import pyarrow as pa

        for row in feed(self.frame.select(*names), _pack).toLocalIterator():
            if groups is None or row["number"] in groups:
                for batch in pa.ipc.open_stream(bytes(row["content"])):
                    yield columns_of(batch, names), batch.num_rows, 0


def open_frame(frame: Any, name: str) -> SparkTable:
    """Count the rows of the partitions."""
    rows: dict[int, int] = {}
    for row in feed(frame.select(frame.columns[:1]), _size).collect():
        rows[row["number"]] = rows.get(row["number"], 0) + row["rows"]
    groups = tuple(rows.get(number, 0) for number in range(max(rows, default=-1) + 1))
    return SparkTable(name, tuple(frame.columns), None, group_rows=groups, frame=frame)


def feed(frame: Any, read: Callable[[Iterable[Any]], Iterator[Any]]) -> Any:
    """The frame of the rows that `read` makes of the record batches of each partition."""
    with warnings.catch_warnings():  # about versions of pandas, which is not used
        warnings.simplefilter("ignore")
        return frame.mapInArrow(read, SCHEMA)


def as_row(number: int, rows: int, content: bytes = b"") -> Any:
    """A record batch of one row of `SCHEMA`."""
    import pyarrow as pa

    return pa.record_batch({"number": [number], "rows": [rows], "content": [content]})


def partition() -> int:
    """The number of the partition that a worker reads."""
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())


def _size(batches: Iterable[Any]) -> Iterator[Any]:
    yield as_row(partition(), sum(batch.num_rows for batch in batches))


def _pack(batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield as_row(partition(), batch.num_rows, sink.getvalue().to_pybytes())
