"""Counting a log in parts gives what counting it in one piece gives, wherever it is cut and however dirty."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

from effort import repeats
from tightrope.data.columns import TIME
from tightrope.data.counts import batch_ends
from tightrope.data.fit_tables import CountTable, FitTables
from tightrope.data.fold import Fold, fold_part
from tightrope.data.free_columns import free_columns
from tightrope.data.log_counts import CountTally, count_fold, describe
from tightrope.data.read_options import LogReadOptions
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.data.reading import Reading, plan_reading, read_data
from tightrope.errors import InputError
from tightrope.io.table.data_table import Chunk, DataTable
from tightrope.io.table.files import open_tables
from tightrope.io.table.text import Csv
from tightrope.model.builder import build_from_rows
from tightrope.model.parametric_mdp import ParametricMDP

MODEL = build_from_rows(
    [
        (0, "go", {0: "1/2", 1: "1/2"}),
        (0, "wait", {0: 1}),
        (1, "go", {0: "1/3", 1: "1/3", 2: "1/3"}),
        (1, "wait", {1: 1}),
        (2, "go", {2: 1}),
    ]
)
assert isinstance(MODEL, ParametricMDP)


def simulated(seed: int, episodes: int, longest: int = 7) -> dict[str, list[Any]]:
    """A clean log with ends, one row per step."""
    random = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("episode", "step", "state", "action", "next_state", "terminated", "truncated")
    }
    for episode in range(episodes):
        state, length = 0, int(random.integers(1, longest))
        for step in range(length):
            action = "go" if state == 2 or random.random() < 0.7 else "wait"
            here = MODEL.structure.choice_start[state] + (action == "wait")
            first, last = MODEL.structure.transition_start[here : here + 2]
            following = int(MODEL.structure.successor[random.integers(first, last)])
            row = (episode, step, state, action, following, following == 2, step == length - 1)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
            if following == 2:
                columns["truncated"][-1] = False
                break
            state = following
    return columns


def spoiled(columns: dict[str, list[Any]], seed: int, share: float) -> dict[str, list[Any]]:
    """Some values replaced by others, some rows left out, some by another's."""
    random = np.random.default_rng(seed)
    result = {name: list(values) for name, values in columns.items()}
    rows = len(result["state"])
    for row in np.flatnonzero(random.random(rows) < share):
        name = str(random.choice(["state", "next_state", "action", "step", "terminated", "episode"]))
        bad = {"action": "fly", "terminated": True, "episode": None, "step": None}
        result[name][row] = bad.get(name, random.choice([None, 0, 1, 2, 9]))
        if name in ("state", "next_state") and result[name][row] is not None:
            result[name][row] = int(result[name][row])
    keep = random.random(rows) >= share / 2
    return {name: [v for v, k in zip(values, keep, strict=True) if k] for name, values in result.items()}


def outcome(path: Path, **words: Any) -> tuple[Any, ...]:
    """Everything a reading says, or the words of its refusal."""
    try:
        reading: Reading = read_data(path, MODEL, **words)
    except InputError as error:
        return (error.message,)
    counts = reading.counts
    batches = None if counts.batches is None else [(t.tolist(), c.tolist()) for t, c in counts.batches]
    while batches and batches[-1] == ([], []):
        batches.pop()
    return counts.transition.tolist(), batches, counts.design, dict(reading.dropped), reading.rows


SHAPES = {
    "all": ("episode", "step", "state", "action", "next_state", "terminated", "truncated"),
    "no ends": ("episode", "step", "state", "action", "next_state"),
    "no steps": ("episode", "state", "action", "next_state", "terminated", "truncated"),
    "ends alone": ("state", "action", "next_state", "terminated", "truncated"),
    "next row": ("episode", "step", "state", "action", "terminated", "truncated"),
    "next row, no steps": ("episode", "state", "action"),
    "next row, steps alone": ("step", "state", "action"),
}


@settings(max_examples=repeats(6))
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.0, 0.0, 0.05, 0.3]),
    group=st.integers(1, 9),
)
def test_parts_sum_to_the_whole(
    tmp_path_factory: pytest.TempPathFactory, shape: str, seed: int, share: float, group: int
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    columns = spoiled(simulated(seed, 8), seed, share)
    table = pa.table({name: columns[name] for name in SHAPES[shape]})
    pq.write_table(table, folder / "one.parquet")
    pq.write_table(table, folder / "many.parquet", row_group_size=group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tightrope.data.read_plan.PART_ROWS", 1)
        for words in ({"skip_invalid": True}, {}):
            whole = outcome(folder / "one.parquet", threads=1, **words)
            for threads in (1, 3):
                parts = outcome(folder / "many.parquet", threads=threads, **words)
                # Of several faults in one log, parts may name another one first.
                assert parts == whole if len(whole) > 1 else len(parts) == 1
        patch.setattr("tightrope.io.table.data_table.CHUNK_ROWS", 3)
        assert (
            outcome(folder / "one.parquet", threads=1, skip_invalid=True)[0]
            == outcome(folder / "many.parquet", threads=1, skip_invalid=True)[0]
        )


def test_a_clean_log_is_counted_in_full_however_states_are_reported(tmp_path: Path) -> None:
    columns = simulated(1, 300)
    full = np.zeros(MODEL.transitions, dtype=np.int64)
    for state, action, following in zip(
        columns["state"], columns["action"], columns["next_state"], strict=True
    ):
        choice = MODEL.structure.choice_start[state] + (action == "wait")
        first, last = MODEL.structure.transition_start[choice : choice + 2]
        full[first + MODEL.structure.successor[first:last].tolist().index(following)] += 1
    path = tmp_path / "log.parquet"
    for names in SHAPES.values():
        pq.write_table(pa.table({name: columns[name] for name in names}), path)
        counts = read_data(path, MODEL).counts
        if "next_state" in names:
            assert counts.transition.tolist() == full.tolist()
            assert counts.design.censored == ()
        else:
            assert np.all(counts.transition <= full) and counts.steps < full.sum()


def test_files_are_parts_of_one_log(tmp_path: Path) -> None:
    """An episode goes on in the next file where its steps do; otherwise names belong to their file."""
    columns = simulated(2, 60)
    whole = pa.table({name: columns[name] for name in SHAPES["next row"]})
    pq.write_table(whole, tmp_path / "whole.parquet")
    cut = next(i for i in range(100, 200) if columns["episode"][i - 1] == columns["episode"][i])
    for number, part in enumerate((whole.slice(0, cut), whole.slice(cut))):
        pq.write_table(part, tmp_path / f"part-{number}.parquet")
    together = outcome(tmp_path / "whole.parquet")
    assert outcome(str(tmp_path / "part-*.parquet"), threads=1) == together  # type: ignore[arg-type]
    assert outcome(str(tmp_path / "part-*.parquet"), threads=2) == together  # type: ignore[arg-type]


def test_parts_can_be_counted_elsewhere(tmp_path: Path) -> None:
    """Plan, parts and partial counts are plain data: another process counts the same."""
    table = pa.table(simulated(4, 200))
    for number in range(3):
        part = table.slice(number * 200, 200 if number < 2 else None)
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=50)
    tables = open_tables(tmp_path)
    plan = plan_reading(tables, MODEL.structure, LogReadOptions())
    sent = pickle.loads(pickle.dumps(plan))
    partials = [pickle.loads(pickle.dumps(fold_part(count_fold(sent, part), part))) for part in plan.parts()]
    assert len(partials) == 3
    tally = CountTally(plan)
    whole = Fold(plan, (tally,))
    for partial in partials:
        whole.merge(partial)
    whole.finish()
    counts = describe(plan, whole).counts
    assert counts.transition.tolist() == read_data(tmp_path, MODEL).counts.transition.tolist()


class Elsewhere:
    """An engine whose worker is this process."""

    def run(self, work: Any, plan: ReadPlan, parts: Sequence[Part]) -> Iterator[Any]:
        for part in parts:
            yield pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(plan)), part)))


@pytest.mark.parametrize("shape", ["no ends", "next row", "ends alone"])
def test_text_files_in_parts_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """Workers do not know how many rows stand before their file, and batches follow the numbers of rows."""
    columns = simulated(4, 120)
    table = pa.table({name: columns[name] for name in SHAPES[shape]})
    for number, (begin, end) in enumerate(pairwise([0, 70, 71, 160, len(table)])):
        csv.write_csv(table.slice(begin, end - begin), tmp_path / f"{number}.csv")
    here = read_data(tmp_path, MODEL, ends="complete")
    read: Counter[str] = Counter()
    pieces = Csv.pieces

    def watched(self: Csv, table: DataTable, *arguments: Any) -> Iterator[Any]:
        yield from pieces(self, table, *arguments)
        read[Path(table.path).name] += 1

    monkeypatch.setattr(Csv, "pieces", watched)
    monkeypatch.setattr("tightrope.data.reading.engine_at", lambda *_: nullcontext(Elsewhere()))
    far = read_data(tmp_path, MODEL, ends="complete", engine="dask")
    assert read == {f"{number}.csv": 1 for number in range(4)}
    assert far.counts == here.counts and far.counts.batches == here.counts.batches
    assert far.counts.provenance == here.counts.provenance and here.counts.batches is not None


@pytest.mark.parametrize("order", ["shuffled", "time", "plan of episodes", "steps"])
def test_engines_sort_and_find_instants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    """Rows out of order, and the times at which batches end, are read by the engine as well."""
    columns = interleaved(simulated(4, 120), 5)
    left_out = {"time": {"step"}, "steps": {"time"}}.get(order, set())
    table = pa.table({name: values for name, values in columns.items() if name not in left_out})
    if order != "plan of episodes":
        table = table.take(np.random.default_rng(6).permutation(len(table)))
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=70)
    monkeypatch.setattr("tightrope.data.read_plan.PART_ROWS", 1)
    words: dict[str, Any] = {"ends": "complete"}
    words |= {"planned_episodes": 120} if order == "plan of episodes" else {}
    here = read_data(tmp_path, MODEL, **words)
    for limit in ("MOST_KEPT", "MOST_SORTED"):
        monkeypatch.setattr(f"tightrope.data.time_order.{limit}", 0)
    there = read_data(tmp_path, MODEL, **words)
    monkeypatch.setattr("tightrope.data.reading.engine_at", lambda *_: nullcontext(Elsewhere()))
    far = read_data(tmp_path, MODEL, engine="dask", **words)
    for other in (there, far):
        assert other.counts == here.counts and other.counts.batches == here.counts.batches
        assert other.counts.provenance == here.counts.provenance and other.notes == here.notes
    assert (order == "plan of episodes") == (not any("out of order" in note for note in here.notes))


def interleaved(columns: dict[str, list[Any]], seed: int) -> dict[str, list[Any]]:
    """The rows of all episodes between each other, each episode in its order, with times and costs."""
    random = np.random.default_rng(seed)
    rest = {
        name: np.flatnonzero(np.array(columns["episode"]) == name).tolist()
        for name in set(columns["episode"])
    }
    order = []
    while rest:
        name = sorted(rest)[int(random.integers(len(rest)))]
        order.append(rest[name].pop(0))
        rest = {name: rows for name, rows in rest.items() if rows}
    result = {name: [values[row] for row in order] for name, values in columns.items()}
    result["time"] = np.cumsum(random.integers(1, 3, len(order))).tolist()
    return result


def folded(plan: ReadPlan, pieces: list[list[list[Chunk]]], by_name: bool, is_placed: bool = True) -> Any:
    """All that the folds of a log say; parts are merged from the right within each piece, then the pieces.
    Where it is not `is_placed`, parts do not know how many rows stand before them."""

    def fold(first: int, is_first: bool) -> Fold:
        part = None if is_first else Part(0, None, first if is_placed else None)
        beside = free_columns(plan, for_tables=True)
        result = Fold(plan, by_name=by_name, part=part, beside=beside)
        result.observers = (CountTally(plan, not result.waits_for_place), FitTables(plan.structure))
        return result

    whole = fold(0, is_first=True)
    for parts in pieces:
        folds = []
        for chunks in parts:
            folds.append(fold(chunks[0].first_row - 1, is_first=False))
            for chunk in chunks:
                folds[-1].update(chunk, 0)
            folds[-1] = pickle.loads(pickle.dumps(folds[-1]))
            folds[-1].plan = folds[-1].observers[0].plan = plan
        while len(folds) > 1:
            later = folds.pop()
            folds[-1].merge(later)
        whole.merge(folds[0])
    whole.finish()
    tally, tables = whole.observers
    assert isinstance(tally, CountTally) and isinstance(tables, FitTables)
    log = describe(plan, whole)
    counts, design = log.counts, log.counts.design
    assert counts.batches is not None
    kept = {name: counter.table() for name, counter in tables.counters.items()}
    return (
        [(t.tolist(), c.tolist()) for t, c in counts.batches],
        design.censored,
        dict(log.dropped),
        (log.rows, design.episodes, design.open_end, design.order, design.ends),
        (whole.notes.tolist(), whole.shows_one_clock, sorted(tables.changes)),
        counts.costs,
        [one.text() for one in log.seen],
        [(name, *(column.tolist() for column in _columns(kept[name]))) for name in sorted(kept)],
    )


def _columns(table: CountTable) -> tuple[Any, ...]:
    return table.value, table.transition, table.number


TIMED = {
    "time": ("episode", "time", "state", "action", "next_state", "cost"),
    "time, next row": ("episode", "time", "state", "action", "truncated"),
    "time, ends": ("episode", "time", "state", "action", "next_state", "terminated", "truncated"),
}


@settings(max_examples=repeats(25), deadline=None)
@given(
    shape=st.sampled_from(sorted(SHAPES | TIMED)),
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.0, 0.0, 0.1]),
    mixed=st.booleans(),
    data=st.data(),
)
def test_a_fold_does_not_depend_on_where_a_log_is_cut(
    shape: str, seed: int, share: float, mixed: bool, data: st.DataObject
) -> None:
    """Parts begin anywhere, also within episodes that stand between each other, and are merged in any
    grouping: counts, batches, notes, costs, digests and tables for tests are the same, bit for bit."""
    names = (SHAPES | TIMED)[shape]
    mixed = mixed and "episode" in names
    columns = simulated(seed, 9)
    columns["cost"] = np.random.default_rng(seed).normal(size=len(columns["state"])).tolist()
    columns["time"] = list(range(len(columns["state"])))
    columns = interleaved(columns, seed) if mixed else columns
    columns = spoiled(columns, seed, share)
    columns["site"] = np.random.default_rng(seed).choice(["a", "b", "7", ""], len(columns["state"])).tolist()
    table = pa.table({name: columns[name] for name in (*names, "site")})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tightrope.io.table.data_table.CHUNK_ROWS", 1)
        plan = plan_reading(open_tables(table), MODEL.structure, LogReadOptions(skip_invalid=True))
        rows = list(plan.tables[0].chunks((*plan.columns[0].names, "site")))
    if TIME in names and mixed:
        times = np.array(columns["time"])
        plan = replace(plan, boundaries=np.sort(times)[batch_ends(len(times)) - 1][:-1])
    (one,) = plan.tables[0].chunks((*plan.columns[0].names, "site"))
    cuts = data.draw(st.lists(st.integers(1, max(1, len(rows) - 1)), max_size=6, unique=True).map(sorted))
    parts = [rows[a:b] for a, b in pairwise([0, *cuts, len(rows)]) if b > a]
    groups = data.draw(st.integers(1, len(parts)))
    pieces = [parts[i : i + groups] for i in range(0, len(parts), groups)]
    whole = folded(plan, [[[one]]], mixed)
    assert folded(plan, pieces, mixed) == whole
    assert folded(plan, pieces, mixed, is_placed=False) == whole
