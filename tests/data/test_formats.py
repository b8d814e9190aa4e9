"""Every kind of place a log may lie in, and every kind of table in Python, gives the same counts.

Also of `io/table/files.py`.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tightrope.cli.app import run
from tightrope.cli.output import progress_line
from tightrope.data.log_counts import ReadProgress
from tightrope.data.reading import read_data
from tightrope.errors import InputError
from tightrope.model.builder import build_from_function
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.verdict import AssumptionStatus

ROWS = [(0, 0, 3, 4), (0, 1, 4, 5), (0, 2, 5, 6), (1, 0, 3, 2), (1, 1, 2, 3), (1, 2, 3, 4)]
COLUMNS: dict[str, list[Any]] = {
    "episode": [row[0] for row in ROWS],
    "step": [row[1] for row in ROWS],
    "state": [row[2] for row in ROWS],
    "action": ["walk"] * len(ROWS),
    "next_state": [row[3] for row in ROWS],
}
CSV = "\n".join(
    [",".join(COLUMNS), *(",".join(map(str, row)) for row in zip(*COLUMNS.values(), strict=True))]
)
JSON_LINES = "\n".join(
    json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in zip(*COLUMNS.values(), strict=True)
)


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    built = build_from_function(
        3, lambda x: {"stay": {x: 1}} if x in (0, 6) else {"walk": {x + 1: "1/2", x - 1: "1/2"}}
    )
    assert isinstance(built, ParametricMDP)
    return built


@pytest.fixture(scope="module")
def expected(model: ParametricMDP, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("plain") / "log.csv"
    path.write_text(CSV + "\n")
    counts = read_data(path, model).counts
    assert counts.steps == 6 and counts.design.episodes == 2
    return counts


def write_all(folder: Path) -> list[Path]:
    table = pa.table(COLUMNS)
    (folder / "log.tsv").write_text(CSV.replace(",", "\t") + "\n")
    (folder / "semicolons.csv").write_text(CSV.replace(",", ";") + "\n")
    (folder / "log.csv.gz").write_bytes(gzip.compress((CSV + "\n").encode()))
    with pa.output_stream(folder / "log.csv.zst", compression="zstd") as stream:
        stream.write((CSV + "\n").encode())
    with pa.output_stream(folder / "log.csv.bz2", compression="bz2") as stream:
        stream.write((CSV + "\n").encode())
    (folder / "log.jsonl").write_text(JSON_LINES + "\n")
    (folder / "log.ndjson").write_text(JSON_LINES)
    (folder / "log.jsonl.gz").write_bytes(gzip.compress(JSON_LINES.encode()))
    pq.write_table(table, folder / "log.parquet", row_group_size=2)
    with pa.ipc.new_file(folder / "log.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    with pa.ipc.new_stream(folder / "stream.arrow", table.schema) as writer:
        writer.write_table(table)
    import pyarrow.feather

    pyarrow.feather.write_feather(table, folder / "log.feather", compression="zstd")
    return sorted(folder.iterdir())


def test_files_of_all_kinds(tmp_path: Path, model: ParametricMDP, expected: Any) -> None:
    paths = write_all(tmp_path)
    assert len(paths) == 12
    for path in paths:
        assert read_data(path, model).counts == expected, path.name


def test_a_directory_is_read_in_the_order_of_names(
    tmp_path: Path, model: ParametricMDP, expected: Any
) -> None:
    table = pa.table(COLUMNS)
    for number, start in ((2, 0), (10, 3)):
        folder = tmp_path / f"line={number}"
        folder.mkdir()
        pq.write_table(table.slice(start, 3), folder / "part.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "README.txt").write_text("no data")
    reading = read_data(tmp_path, model)
    assert reading.counts == expected
    assert [Path(name).parent.name for name in reading.files] == ["line=2", "line=10"]
    assert read_data(str(tmp_path / "line=*" / "*.parquet"), model).counts == expected
    assert read_data(str(tmp_path / "**" / "*.parquet"), model).counts == expected


def test_folders_give_columns(tmp_path: Path, model: ParametricMDP, expected: Any) -> None:
    for episode in (0, 1):
        folder = tmp_path / f"run={episode}"
        folder.mkdir()
        table = pa.table({name: values[3 * episode : 3 * episode + 3] for name, values in COLUMNS.items()})
        pq.write_table(table.drop_columns(["episode"]), folder / "part.parquet")
    reading = read_data(tmp_path, model)
    assert reading.counts == expected
    assert "episode = run" in reading.read_as[0]
    assert read_data(str(tmp_path / "*" / "part.parquet"), model).counts == expected
    alone = read_data(tmp_path / "run=0" / "part.parquet", model)
    assert "run" not in alone.read_as[0]
    assert "run" not in read_data(str(tmp_path / "run=0" / "*.parquet"), model).read_as[0]


@pytest.mark.parametrize("content", ["csv", "csv.gz", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("said", [True, False])
def test_standard_input(
    tmp_path: Path,
    model: ParametricMDP,
    expected: Any,
    content: str,
    said: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "log.csv").write_text(CSV + "\n")
    write_all(tmp_path)
    data = (tmp_path / f"log.{content}").read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    reading = read_data("-", model, format=content if said else None)
    assert reading.counts == expected
    assert reading.files == ("standard input",)


def test_a_format_that_is_said(tmp_path: Path, model: ParametricMDP, expected: Any) -> None:
    (tmp_path / "log.dat").write_text(CSV + "\n")
    assert read_data(tmp_path / "log.dat", model, format="csv").counts == expected
    with pytest.raises(InputError, match="'xls' is not a data format"):
        read_data(tmp_path / "log.dat", model, format="xls")


def test_an_object_store(model: ParametricMDP, expected: Any) -> None:
    store = fsspec.filesystem("memory")
    table = pa.table(COLUMNS)
    for number, start in ((0, 0), (1, 3)):
        with store.open(f"/bucket/day={number}/part.parquet", "wb") as file:
            pq.write_table(table.slice(start, 3), file)
    with store.open("/bucket2/log.csv.gz", "wb") as file:
        file.write(gzip.compress((CSV + "\n").encode()))
    for place in ("memory://bucket", "memory://bucket/*/part.parquet", "memory://bucket2/log.csv.gz"):
        reading = read_data(place, model)
        assert reading.counts == expected
        assert all(name.startswith("memory://") for name in reading.files)
    with pytest.raises(InputError, match="no file system is known for nowhere://"):
        read_data("nowhere://bucket/log.csv", model)


def test_tables_in_python(model: ParametricMDP, expected: Any) -> None:
    table = pa.table(COLUMNS)
    for data in (
        table,
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        table.to_batches()[0],
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2)),
        [table.slice(0, 3), table.slice(3)],
        pa.table({**COLUMNS, "action": pa.array(COLUMNS["action"]).dictionary_encode()}),
    ):
        assert read_data(data, model).counts == expected, type(data)
    shuffled = table.take(pa.array(np.random.default_rng(1).permutation(6)))
    reader = pa.RecordBatchReader.from_batches(shuffled.schema, shuffled.to_batches(max_chunksize=2))
    assert read_data(reader, model).counts.transition.tolist() == expected.transition.tolist()


def test_episodes_in_python(model: ParametricMDP, expected: Any) -> None:
    def episodes() -> Iterator[list[tuple[int, str, int]]]:
        for number in (0, 1):
            yield [(state, "walk", after) for episode, _, state, after in ROWS if episode == number]

    for given in (episodes(), list(episodes())):
        counts = read_data(given, model).counts
        assert counts.design.order.kept is counts.design.ends.kept is AssumptionStatus.STATED
        assert replace(counts, design=expected.design) == expected
    with pytest.raises(InputError, match="there are no episodes"):
        read_data(iter([]), model)
    with pytest.raises(InputError, match="data of the type int cannot be read"):
        read_data(7, model)


def test_progress_tells_rows_bytes_and_time(tmp_path: Path, model: ParametricMDP) -> None:
    path = tmp_path / "log.csv"
    path.write_text(CSV + "\n")
    told: list[tuple[int, int, int]] = []

    def watch(progress: ReadProgress) -> None:
        told.append((progress.rows, progress.bytes, progress.total_bytes))

    read_data(path, model, progress=watch)
    assert told[-1] == (6, path.stat().st_size, path.stat().st_size)
    assert progress_line(1_200_000, 30_000_000, 120_000_000, 4.0) == (
        "reading: 1,200,000 rows, 30 of 120 MB, 12 s left"
    )


def test_results_know_their_files(tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "2")):
        sampled = ["sample", "bench:betting(4)", "--episodes", "50", "--seed", seed]
        assert run([*sampled, "-o", str(tmp_path / f"{name}.csv")]) == 0
    data = [word for name in ("a", "b") for word in ("--data", str(tmp_path / f"{name}.csv"))]
    assert run(["learn", "bench:betting(4)", *data, "-o", str(tmp_path / "out")]) == 0
    content = json.loads((tmp_path / "out" / "result.json").read_text())
    files = content["data"]["files"]
    assert [Path(file["file"]).name for file in files] == ["a.csv", "b.csv"]
    assert files[0]["sha256"] != files[1]["sha256"] and len(files[0]["sha256"]) == 64
    assert content["data"]["design"]["episodes"] == 100


def _folder(path: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.csv", "b.csv"),
        ("a.csv", "b.csv.gz"),
        ("a.csv.gz", "b.csv.gz"),  # packed at other levels
        ("a.jsonl", "b.jsonl"),
        ("a.parquet", "b.parquet"),
    ],
)
def test_one_log_under_two_names_does_not_count_twice(
    model: ParametricMDP, tmp_path: Path, first: str, second: str
) -> None:
    for name, level in ((first, 1), (second, 9)):
        text = JSON_LINES if ".jsonl" in name else CSV
        if name.endswith("parquet"):
            pq.write_table(pa.table(COLUMNS), tmp_path / name)
        else:
            packed = gzip.compress(text.encode(), level) if name.endswith("gz") else text.encode()
            (tmp_path / name).write_bytes(packed)
    with pytest.raises(InputError, match=r"the same rows as .*: they would count twice") as refused:
        read_data(tmp_path, model)
    assert first in str(refused.value) and second in str(refused.value)


def test_what_is_no_copy_is_read(model: ParametricMDP, tmp_path: Path) -> None:
    header, *rows = CSV.splitlines()
    files = {
        "a.csv": CSV.encode(),
        "b.csv": "\n".join([header, *(f"{int(row[0]) + 2}{row[1:]}" for row in rows)]).encode(),
        "empty.csv": f"{header}\n".encode(),
        "empty too.csv": f"{header}\n".encode(),
    }
    assert read_data(_folder(tmp_path, files), model).rows == 12


def test_a_line_without_end_is_refused_before_it_is_in_memory(model: ParametricMDP, tmp_path: Path) -> None:
    """A few kilobytes that expand to a line of 64 MiB, in the header and behind it."""
    endless = b"x" * (1 << 26)
    for name, begin in (("head.csv.gz", b""), ("rows.csv.gz", CSV.encode() + b"\n"), ("rows.jsonl.gz", b"")):
        (tmp_path / name).write_bytes(gzip.compress(begin + endless, 1))
        with pytest.raises(InputError, match="a line has more than 1,048,576 bytes"):
            read_data(tmp_path / name, model)


@pytest.mark.parametrize("before", [0, 1200])
def test_json_that_nests_without_end_is_refused_in_words(
    model: ParametricMDP, tmp_path: Path, before: int
) -> None:
    deep = '{"state": ' + "[" * 200_000 + "]" * 200_000 + "}\n"
    (tmp_path / "log.jsonl").write_text('{"state": 1, "action": "walk", "next_state": 2}\n' * before + deep)
    with pytest.raises(InputError, match="nests too deeply"):
        read_data(tmp_path / "log.jsonl", model)


def test_keys_of_json_lines_may_come_late(model: ParametricMDP, tmp_path: Path) -> None:
    """Keys behind the first thousand lines were left out without a word: episodes had no ends."""
    path = tmp_path / "log.jsonl"

    def write(size: int, **first: object) -> None:
        there = {"state": 3, "action": "walk", "next_state": 4, "about": "x" * size, **first}
        back = {**there, "state": 4, "next_state": 3}
        lines = [{**(back if k % 2 else there), "time": k} for k in range(1200)]
        last = {**there, "time": 1200.5, "done": True}
        path.write_text("\n".join(json.dumps(one) for one in [*lines, last, {**there, "time": 1201}]))

    write(10)
    reading = read_data(path, model)
    assert (reading.rows, reading.counts.design.episodes) == (1202, 2)
    write(1000)
    with pytest.raises(InputError, match="row 1201: 'done' has no value in the first lines") as caught:
        read_data(path, model)
    assert caught.value.hint == "write it into the first line, as null if need be"
    write(1000, done=None)
    reading = read_data(path, model)
    assert (reading.rows, reading.counts.design.episodes) == (1202, 2)


PLUG_IN = """
import pyarrow as pa

from tightrope.io.table.data_table import LogFormat


class Walks(LogFormat):
    name, suffixes = "walks", (".walk",)

    def batches(self, path):
        for episode, line in enumerate(open(path)):
            x = [int(word) for word in line.split()]
            steps = {"episode": [episode] * (len(x) - 1), "step": list(range(len(x) - 1))}
            action = ["walk"] * (len(x) - 1)
            yield pa.record_batch({**steps, "state": x[:-1], "action": action, "next_state": x[1:]})
"""


def test_another_package_brings_a_format_of_logs(tmp_path: Path) -> None:
    """A distribution on the path, with its entry point: every way to read logs knows it."""
    (tmp_path / "walk_format.py").write_text(PLUG_IN)
    about = tmp_path / "walk_format-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: walk-format\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[tightrope.logs]\nwalks = walk_format:Walks\n")
    for name in ("a.walk", "b.dat"):
        (tmp_path / name).write_text("3 4 5 6\n3 2 3 4\n")
    script = """
        import tightrope as tr

        steps = {x: {"walk": {x + 1: "1/2", x - 1: "1/2"}} for x in range(1, 6)}
        model = tr.build_from_function(3, lambda x: steps.get(x, {"stay": {x: 1}}))
        read = tr.read_data("a.walk", model)
        assert (read.rows, read.counts.design.episodes, read.files) == (6, 2, ("a.walk",))
        assert tr.read_data("b.dat", model, format="walk").counts == read.counts
        for place, words in (("a.walk", {"format": "xls"}), ("none.txt", {})):
            try:
                tr.read_data(place, model, **words)
            except tr.InputError as error:
                assert "walk" in str(error), error
        print(read.counts.transition.sum())
    """
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    code = f"{path}\n{textwrap.dedent(script)}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr
