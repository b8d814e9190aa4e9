"""Data files, written in chunks and atomically: Parquet or CSV by the name's ending.

The metadata (`tightrope.io.table.data_table`) go into Parquet's key-value metadata, or onto the first
line of a CSV file as a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.atomic import atomic_write_bytes
from tightrope.io.table.data_table import CSV_PREFIX, KEY, Metadata, encode, is_parquet

Columns = Mapping[str, npt.NDArray[Any]]
"""Columns of equal length: whole numbers, flags, or (indices into) text."""


def write_table(
    path: str | Path,
    column_types: Mapping[str, type],
    chunks: Iterable[Columns],
    metadata: Metadata,
    names: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Write the chunks one below the other.

    `column_types` says int, float, bool or str for each column; a text column holds indices into its `names`.
    """
    import pyarrow as pa

    kinds = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in column_types.items()])
    batches = (_batch(schema, columns, names or {}) for columns in chunks)
    with atomic_write_bytes(path) as file:
        if is_parquet(path):
            import pyarrow.parquet as pq

            schema = schema.with_metadata({KEY: encode(metadata)})
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for batch in batches:
                    writer.write_batch(batch.replace_schema_metadata(schema.metadata))
        else:
            from pyarrow import csv

            file.write(f"{CSV_PREFIX}{encode(metadata)}\n".encode())
            file.write((",".join(schema.names) + "\n").encode())
            options = csv.WriteOptions(include_header=False, quoting_style="needed")
            with csv.CSVWriter(file, schema, write_options=options) as writer:
                for batch in batches:
                    writer.write_batch(batch)


def _batch(schema: Any, columns: Columns, names: Mapping[str, tuple[str, ...]]) -> Any:
    import pyarrow as pa

    arrays = []
    for field in schema:
        values = columns[field.name]
        if field.name in names:
            indices = pa.array(np.asarray(values, dtype=np.int32))
            texts = pa.array(names[field.name], type=pa.string())
            arrays.append(pa.DictionaryArray.from_arrays(indices, texts).dictionary_decode())
        else:
            arrays.append(pa.array(values, type=field.type))
    return pa.record_batch(arrays, schema=schema)
