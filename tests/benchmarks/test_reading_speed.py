"""The benchmark of reading runs, and threads count what one thread counts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from places import TESTS

BENCHMARK = TESTS.parent / "benchmarks" / "reading_speed.py"


def load_benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reading_speed", BENCHMARK)
    assert spec is not None and spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    return benchmark


@pytest.mark.costly("test_times_that_interleave_over_files_are_counted_exactly")
def test_frames_are_learned_from_like_files() -> None:
    found = load_benchmark().compare_frames(20_000, rounds=1)
    assert set(found) == {"Parquet files", "pandas, categories", "pandas, strings", "pyarrow"}
    assert all(took["seconds"] > 0 for took in found.values())


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "csv.gz"])
def test_the_benchmark_counts_every_row_on_any_number_of_threads(kind: str, tmp_path: Path) -> None:
    benchmark = load_benchmark()
    assert benchmark.write(tmp_path, 30_000, 3, kind) > 0
    one, three = (benchmark.measure(tmp_path, threads) for threads in (1, 3))
    tested = benchmark.measure(tmp_path, 1, tests=True)
    assert one["rows"] == three["rows"] == tested["rows"] == 30_000
    assert one["check"] == three["check"] == tested["check"] > 0
    assert one["seconds"] > 0


@pytest.mark.thinned(2)
@pytest.mark.parametrize("units", [1, 5])
def test_times_that_interleave_over_files_are_counted_exactly(units: int, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "interleaved_reading", BENCHMARK.with_name("interleaved_reading.py")
    )
    assert spec is not None and spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    benchmark.write(tmp_path, 40_000, 4, units)
    found = benchmark.measure(tmp_path, 2)
    assert found["rows"] == 40_000 and found["exact"] == 1.0 and found["batches"] == 48
