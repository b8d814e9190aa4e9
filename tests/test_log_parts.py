"""Counting a log in parts gives what counting it in one piece gives, wherever it is cut and however dirty."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import repeats
from tightrope.data.fold import Fold
from tightrope.data.log_counts import describe
from tightrope.data.observers import CountTally, count_part
from tightrope.data.read_options import LogReadOptions
from tightrope.data.reading import Reading, plan_reading, read_data
from tightrope.errors import InputError
from tightrope.io.table.opening import open_tables
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


def test_a_clean_log_is_counted_in_full_however_states_are_told(tmp_path: Path) -> None:
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
    partials = [pickle.loads(pickle.dumps(count_part(sent, part))) for part in plan.parts()]
    assert len(partials) == 3
    tally = CountTally(plan)
    whole = Fold(plan, (tally,))
    for partial in partials:
        whole.merge(partial)
    whole.finish()
    counts = describe(plan, whole, tally, LogReadOptions())
    assert counts.count.tolist() == read_data(tmp_path, MODEL).counts.transition.tolist()
