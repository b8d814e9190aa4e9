"""Ten logs of one system, each written in another way, give the same counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from log_cases import FOLDER, RUNS, machine, rows
from tightrope.data.reading import read_data
from tightrope.model.parametric_mdp import ParametricMDP

ODD = {
    "columns": [
        "wear=wear level, wear'=wear level after, broken=kaputt, broken'=kaputt after",
        "action=command, episode=Serial",
    ],
    "maps": ["wear: *10", "action: 0=repair, 1=run"],
}
COMMAND = {"columns": ["action=cmd"]}
LOGS: list[tuple[str, dict[str, Any], str, bool]] = [
    (
        "canonical.csv",
        {},
        "wear, broken, wear' = wear_next, broken' = broken_next, action, episode, step",
        True,
    ),
    (
        "odd-names.csv",
        ODD,
        "wear = wear level, broken = kaputt, wear' = wear level after, broken' = kaputt after, action = "
        "command, episode = Serial",
        True,
    ),
    (
        "nested.jsonl.gz",
        {},
        "wear = state.wear, broken = state.broken, wear' = next_state.wear, broken' = next_state.broken, "
        "action, episode",
        True,
    ),
    (
        "hive",
        {},
        "wear, broken, wear' = wear_next, broken' = broken_next, action, episode = trajectory, step = t",
        True,
    ),
    (
        "semicolons.csv.zst",
        {},
        "wear, broken, wear' = next_wear, broken' = next_broken, action = act, episode = rollout, "
        "step = timestep",
        True,
    ),
    ("table.arrow", {}, "wear, broken, wear', broken', action = a, episode = ep, step = t", True),
    (
        "next-row.csv",
        COMMAND,
        "wear, broken, action = cmd, episode = run; next states from the next row of the episode",
        False,
    ),
    (
        "shuffled.csv.gz",
        {},
        "wear, broken, wear' = wear_next, broken' = broken_next, action, episode = run_id, time",
        True,
    ),
    (
        "index.parquet",
        {"states": "index"},
        "state = s, next_state = s_next, action, truncated = timeout, done",
        True,
    ),
    ("counted.csv", {}, "wear, broken, wear', broken', action, count = counts", False),
]


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    return machine()


@pytest.fixture(scope="module")
def expected(model: ParametricMDP) -> list[int]:
    """Counted by hand."""
    structure = model.structure
    wear, broken = structure.valuations["wear"], structure.valuations["broken"]
    count = np.zeros(model.transitions, dtype=np.int64)
    for row in rows():
        state = int(np.flatnonzero((wear == row["wear"]) & (broken == row["broken"]))[0])
        after = int(np.flatnonzero((wear == row["wear_next"]) & (broken == row["broken_next"]))[0])
        first, last = structure.choice_start[state], structure.choice_start[state + 1]
        choice = next(c for c in range(first, last) if structure.action_name(c) == row["cmd"])
        begin, end = structure.transition_start[choice], structure.transition_start[choice + 1]
        count[begin + structure.successor[begin:end].tolist().index(after)] += 1
    assert count.sum() == len(rows()) > 400
    return count.tolist()


@pytest.mark.parametrize(("name", "words", "read_as", "in_time"), LOGS, ids=[log[0] for log in LOGS])
def test_the_same_counts(
    model: ParametricMDP, expected: list[int], name: str, words: dict[str, Any], read_as: str, in_time: bool
) -> None:
    reading = read_data(FOLDER / name, model, **words)
    assert reading.counts.transition.tolist() == expected
    assert reading.dropped == {}
    assert reading.counts.design.censored == ()
    form = "the model's index" if words.get("states") == "index" else "the model's variables"
    assert reading.read_as[0] == f"states by {form}; {read_as}"
    if name != "counted.csv":
        assert reading.counts.design.episodes == RUNS
    canonical = read_data(FOLDER / "canonical.csv", model).counts
    if in_time:
        assert reading.counts.batches == canonical.batches


def test_maps_are_shown(model: ParametricMDP) -> None:
    reading = read_data(FOLDER / "odd-names.csv", model, **ODD)  # type: ignore[arg-type]
    assert reading.read_as[1:] == ("values mapped: wear: *10", "values mapped: action: 0=repair, 1=run")


BLANK = "run,wear,broken,cmd\n0,0,,\n0,1,,R\n0,0,,\n1,2,,R\n1,1,,\n1,2,,\n1,3,,\n1,3,X,\n"
SPELLED = """run,wear,broken,cmd
0,0,false,run
0,1,false,repair
0,0,false,run
1,2,false,repair
1,1,false,run
1,2,false,run
1,3,false,run
1,3,true,
"""
"""The same; where it is broken the machine does not run, and the log ends. The first run was cut off."""


def test_empty_cells_mean_what_a_map_says(model: ParametricMDP, tmp_path: Path) -> None:
    (tmp_path / "spelled.csv").write_text(SPELLED)
    plain = read_data(tmp_path / "spelled.csv", model, **COMMAND)  # type: ignore[arg-type]
    assert plain.counts.transition.sum() == 6 and plain.counts.design.censored
    (tmp_path / "blank.csv").write_text(BLANK)
    maps = ["broken: X=true, =false", "action: R=repair, =run"]
    table = pa.Table.from_pylist(
        [
            dict(zip(BLANK.split()[0].split(","), (cell or None for cell in line.split(",")), strict=True))
            for line in BLANK.split()[1:]
        ]
    )
    in_python = {"broken": {"X": True, None: False}, "action": {"R": "repair", "": "run"}}
    for source, words in ((tmp_path / "blank.csv", maps), (table, in_python)):
        reading = read_data(source, model, maps=words, columns=["action=cmd", "next_state="])
        assert reading.counts.transition.tolist() == plain.counts.transition.tolist()
        assert reading.counts.design.censored == plain.counts.design.censored
        assert reading.read_as[1:] == tuple(f"values mapped: {text}" for text in maps)


def test_the_logs_are_what_the_script_writes(tmp_path: Path) -> None:
    from log_cases import write_logs

    write_logs(tmp_path)
    for path in sorted(FOLDER.rglob("*.csv")):
        assert (tmp_path / path.relative_to(FOLDER)).read_text() == path.read_text()
