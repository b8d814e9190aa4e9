"""Tables in memory are read as the Parquet file of the same rows is: the same counts, the same words."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.io.table import arrow, data_table, files

SIDE = 3
Rows = dict[str, list[Any]]


def torus() -> tr.ParametricMDP:
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()

    def moves(state: tuple[int, int]) -> dict[str, dict[tuple[int, int], Any]]:
        x, y = state
        return {
            "right": {((x + 1) % SIDE, y): p, state: 1 - p},
            "up": {(x, (y + 1) % SIDE): p, state: 1 - p},
        }

    built = tr.build_from_function((0, 0), moves, parameters, variables=lambda s: {"x": s[0], "y": s[1]})
    assert isinstance(built, tr.ParametricMDP)
    return built


MODEL = torus()


def log(seed: int, rows: int) -> Rows:
    """Walks of random lengths."""
    rng = np.random.default_rng(seed)
    columns: Rows = {name: [] for name in ("episode", "step", "x", "y", "action", "x_next", "y_next")}
    episode = 0
    while len(columns["x"]) < rows:
        x = y = 0
        for step in range(int(rng.integers(1, 9))):
            action, moved = ("right", "up")[int(rng.integers(2))], bool(rng.random() < 0.6)
            after = ((x + (action == "right") * moved) % SIDE, (y + (action == "up") * moved) % SIDE)
            for name, value in zip(columns, (episode, step, x, y, action, *after), strict=True):
                columns[name].append(value)
            x, y = after
        episode += 1
    return columns


def _batches(rows: Rows) -> Iterator[Any]:
    yield from pa.table(rows).to_batches(max_chunksize=7)


def _episodes(rows: Rows) -> Iterator[list[tuple[Any, Any, Any]]]:
    listed = list(zip(*rows.values(), strict=True))
    for _, steps in itertools.groupby(listed, key=lambda row: row[0]):
        yield [((x, y), action, (after_x, after_y)) for _, _, x, y, action, after_x, after_y in steps]


FORMS: dict[str, Callable[[Rows], Any]] = {
    "pandas": pd.DataFrame,
    "pandas of objects": lambda rows: pd.DataFrame(rows).astype({"action": object}),
    "pandas categories": lambda rows: pd.DataFrame(rows).astype({"action": "category", "x": "int8"}),
    "pandas with missing values allowed": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "pandas indexed by episode and step": lambda rows: pd.DataFrame(rows).set_index(["episode", "step"]),
    "polars": pl.DataFrame,
    "polars categories": lambda rows: pl.DataFrame(rows).cast({"action": pl.Categorical, "x": pl.UInt8}),
    "pyarrow": pa.table,
    "a record batch": lambda rows: pa.RecordBatch.from_pydict(rows),
    "a list of record batches": lambda rows: list(_batches(rows)),
    "a reader of record batches": lambda rows: pa.RecordBatchReader.from_batches(
        pa.table(rows).schema, _batches(rows)
    ),
    "a generator of record batches": _batches,
}


@pytest.fixture(scope="module", params=range(2))
def rows(request: pytest.FixtureRequest) -> Rows:
    return log(request.param, 60)


@pytest.fixture(scope="module")
def from_file(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> tr.Reading:
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pq.write_table(pa.table(rows), path, row_group_size=16)
    return tr.read_data(path, MODEL)


@pytest.mark.parametrize("form", FORMS)
def test_tables_count_as_their_file_does(form: str, rows: Rows, from_file: tr.Reading) -> None:
    reading = tr.read_data(FORMS[form](rows), MODEL)
    assert reading.counts == from_file.counts
    assert (reading.rows, reading.dropped) == (from_file.rows, {})
    if "index" not in form:
        assert reading.read_as == from_file.read_as


def test_episodes_count_as_the_file_does(rows: Rows, from_file: tr.Reading) -> None:
    for given in (_episodes(rows), list(_episodes(rows))):
        counts = tr.read_data(given, MODEL).counts
        assert np.array_equal(counts.transition, from_file.counts.transition)
        assert counts.batches == from_file.counts.batches
        assert counts.design.episodes == from_file.counts.design.episodes


def test_columns_are_named_by_the_caller(rows: Rows, from_file: tr.Reading) -> None:
    names = {"episode": "run", "step": "t", "x": "a", "y": "b", "action": "cmd", "x_next": "c", "y_next": "d"}
    said = {"x": "a", "y": "b", "x'": "c", "y'": "d", "action": "cmd", "episode": "run", "step": "t"}
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        renamed = make({names[name]: column for name, column in rows.items()})
        assert tr.read_data(renamed, MODEL, columns=said).counts == from_file.counts
        with pytest.raises(InputError, match="the table"):
            tr.read_data(renamed, MODEL)


def test_parts_of_a_table_are_counted_apart(rows: Rows, from_file: tr.Reading, monkeypatch: Any) -> None:
    """Groups smaller than an episode, and chunks smaller than a group."""
    monkeypatch.setattr(arrow, "GROUP_ROWS", 5)
    monkeypatch.setattr(data_table, "CHUNK_ROWS", 3)
    monkeypatch.setattr("tightrope.data.read_plan.PART_ROWS", 5)
    opened = arrow.InMemory().hold(pa.table(rows), "the table")
    assert opened.group_rows is not None and sum(opened.group_rows) == len(rows["x"])
    chunks = list(opened.chunks(["x"], groups=range(1, 3)))
    assert chunks[0].first_row == 6 and sum(chunk.rows for chunk in chunks) == 10
    assert [v for chunk in chunks for v in chunk.columns["x"].to_pylist()] == rows["x"][5:15]
    for threads in (1, 2):
        assert tr.read_data(pd.DataFrame(rows), MODEL, threads=threads).counts == from_file.counts


def test_long_streams_of_batches_go_through_a_file(
    rows: Rows, from_file: tr.Reading, monkeypatch: Any
) -> None:
    monkeypatch.setattr(files, "MOST_IN_MEMORY", 1000)
    assert tr.read_data(_batches(rows), MODEL).counts == from_file.counts


WRONG: list[tuple[str, Callable[[Rows], Rows]]] = [
    ("an action that is not enabled", lambda rows: rows | {"action": ["fly", *rows["action"][1:]]}),
    ("a state that is none", lambda rows: rows | {"x": [9, *rows["x"][1:]]}),
    ("a value that is missing", lambda rows: rows | {"y": [None, *rows["y"][1:]]}),
    ("a transition that is none", lambda rows: rows | {"x_next": [2, *rows["x_next"][1:]]}),
    ("a column that is missing", lambda rows: {k: v for k, v in rows.items() if k != "action"}),
]


@pytest.mark.parametrize(("what", "spoil"), WRONG)
def test_wrong_rows_are_refused_in_the_words_for_files(
    what: str, spoil: Callable[[Rows], Rows], tmp_path: Path
) -> None:
    rows = spoil(log(5, 20))
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(rows), path)
    with pytest.raises(InputError) as of_file:
        tr.read_data(path, MODEL)
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        with pytest.raises(InputError) as of_table:
            tr.read_data(make(rows), MODEL)
        assert of_table.value.message.replace("3.0", "3") == of_file.value.message
        assert str(of_table.value.location) == "the table"
    if what != "a column that is missing":
        dropped = tr.read_data(path, MODEL, skip_invalid=True).dropped
        assert dropped and tr.read_data(pd.DataFrame(rows), MODEL, skip_invalid=True).dropped == dropped


def test_tables_that_are_no_tables_are_refused() -> None:
    with pytest.raises(InputError, match="the table cannot be read as columns of one type each") as caught:
        tr.read_data(pd.DataFrame({"x": [1, "one"], "y": [0, {}]}), MODEL)
    assert caught.value.hint is not None and "leave out columns" in caught.value.hint
    with pytest.raises(InputError, match="there are no episodes"):
        tr.read_data(iter(()), MODEL)
    for wrong in (3, None):
        with pytest.raises(InputError, match="cannot be read"):
            tr.read_data(wrong, MODEL)
    with pytest.raises(InputError, match="rows"):
        tr.read_data(pd.DataFrame(log(1, 5)).iloc[:0], MODEL)


def test_learning_takes_a_frame(rows: Rows, from_file: tr.Reading) -> None:
    problem = MODEL.problem("Pmax=? [ F<=4 x=2 ]")
    frame = pd.DataFrame(rows)
    learned = tr.learn(problem, frame, delta=0.1, sets="tied")
    assert learned == tr.learn(problem, from_file, delta=0.1, sets="tied")


def test_counts_come_back_as_a_table(rows: Rows, from_file: tr.Reading) -> None:
    table = from_file.to_arrow(MODEL)
    assert table.column_names == ["x", "y", "action", "choice", "next_x", "next_y", "count"]
    frame = pd.DataFrame(rows)
    grouped = frame.groupby(["x", "y", "action", "x_next", "y_next"]).size().to_dict()
    assert {
        (r["x"], r["y"], r["action"], r["next_x"], r["next_y"]): r["count"] for r in table.to_pylist()
    } == grouped
    assert from_file.to_dataframe(MODEL)["count"].sum() == from_file.counts.steps
    other = tr.build_from_rows([(0, "a", {0: 1})])
    with pytest.raises(InputError, match="the counts are of another model"):
        from_file.to_arrow(other)


def test_values_come_as_tables_with_states_and_actions() -> None:
    problem = MODEL.problem("Pmax=? [ F<=4 x=2 ]")
    solution = tr.solve(problem.at(p=0.5))
    frame = solution.to_dataframe()
    assert list(frame.columns) == ["x", "y", "lower", "upper", "action", "choice"]
    at_start = frame[(frame.x == 0) & (frame.y == 0)].iloc[0]
    assert at_start.lower <= 11 / 16 <= at_start.upper and at_start.action == "right"
    mixed = tr.solve(problem.at(p=0.5), policy=tr.Policy.uniform(MODEL)).to_arrow()
    assert mixed.column("action").null_count == mixed.column("choice").null_count == 9
    learned = tr.learn(problem, pd.DataFrame(log(2, 200)), delta=0.1, sets="expression")
    table = learned.to_dataframe()
    assert list(table.columns) == ["x", "y", "lower", "upper", "optimistic", "action", "choice"]
    start = table[(table.x == 0) & (table.y == 0)].iloc[0]
    assert (start.lower, start.upper) == (learned.interval.lower, learned.interval.upper)
    assert start.action == "right" and bool((table.lower <= table.upper).all())


def test_pandas_is_optional(monkeypatch: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    policy = tr.Policy.uniform(MODEL)
    with pytest.raises(InputError, match="data frames need the package 'pandas'") as caught:
        policy.to_dataframe()
    assert caught.value.hint == "pip install 'tightrope[pandas]', or use to_arrow()"
    assert policy.to_arrow().num_rows == 18


def test_names_of_variables_are_kept_in_tables() -> None:
    structure = replace(
        tr.build_from_rows([(0, "a", {0: 1})]).structure, valuations={"action": np.array([5])}
    )
    table = tr.Policy.uniform(structure).to_arrow()
    assert table.column_names == ["action", "action_", "choice", "probability"]
    assert table.column("action").to_pylist() == [5] and table.column("action_").to_pylist() == ["a"]
