"""Forgetting what came before a change: which events are kept, and when the confidence is nominal."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.data.design import SamplingKind
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP

PROPERTY = 'Pmax=? [ F "won" ]'
EPISODES = [[(0, "a", 1)]] * 30 + [[(0, "a", 2)], [(0, "b", 1)], [(0, "b", 2)]] * 5
"""45 events: 30 wins of `a`, then lost and won by turns."""


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, name, {1: p, 2: 1 - p}) for name in ("a", "b")] + [(1, "", {1: 1}), (2, "", {2: 1})]
    return tr.build_from_rows(rows, parameters, labels={"won": [1]})


def as_table(episodes: list[list[tuple[int, str, int]]]) -> pa.Table:
    steps = [(number, *step) for number, episode in enumerate(episodes) for step in episode]
    names = ("episode", "state", "action", "next_state")
    return pa.table({name: [step[i] for step in steps] for i, name in enumerate(names)})


@pytest.mark.parametrize("form", ["episodes", "table", "two tables"])
@pytest.mark.parametrize("words", [{"since": 31}, {"window": 15}], ids=str)
def test_events_are_left_out_of_whatever_has_an_order(
    model: ParametricMDP, form: str, words: dict[str, int]
) -> None:
    data: object = EPISODES
    if form == "table":
        data = as_table(EPISODES)
    elif form == "two tables":
        data = [as_table(EPISODES[:20]), as_table(EPISODES[20:])]
    options = {} if form == "episodes" else {"states": "index"}
    reading = tr.read_data(data, model, **words, **options)
    assert reading.counts.transition.tolist()[:4] == [0, 5, 5, 5]
    assert reading.counts.batches is not None and reading.counts.steps == 15
    assert reading.kept is not None and (reading.kept.first, reading.kept.last) == (31, 45)
    assert reading.notes == ("events 31 to 45 are kept, the 30 before are left out",)
    fresh = tr.read_data(EPISODES[30:], model).counts
    assert np.array_equal(fresh.batches.start, reading.counts.batches.start)
    assert reading.counts.design.kind is SamplingKind.ADAPTIVE and reading.counts.design.episodes is None


@pytest.mark.parametrize(
    ("chosen_at", "holds", "said"),
    [
        (None, False, "nothing says that this was decided before those that are kept were seen"),
        (0, True, "as was decided in advance: what is kept is fresh"),
        (30, True, "as was decided when 30 had been seen: what is kept is fresh"),
        (31, False, "as was decided when events up to 31 had been seen"),
    ],
)
def test_the_confidence_holds_for_what_had_not_been_seen(
    model: ParametricMDP, chosen_at: int | None, holds: bool, said: str
) -> None:
    problem = model.problem(PROPERTY)
    result = tr.learn(problem, EPISODES, sets="tied", since=31, chosen_at=chosen_at)
    assert result.ledger.holds is holds and result.counts.steps == 15
    assert bool(result.fit.nominal) is not holds
    reading = tr.read_data(EPISODES, model, since=31, chosen_at=chosen_at)
    assert reading.kept.holds is holds
    assert said in (reading.notes[0] if holds else reading.counts.design.censored[0])
    assert reading.kept.to_json() == {
        "first": 31,
        "last": 45,
        "left_out": 30,
        "chosen_at": chosen_at,
        "holds": holds,
    }


def test_keeping_everything_is_no_loss(model: ParametricMDP) -> None:
    for words in ({"since": 1}, {"window": 45}, {"window": 1000}):
        reading = tr.read_data(EPISODES, model, **words)
        assert reading.counts.design.censored == () and reading.kept.left_out == 0
        assert np.array_equal(reading.counts.transition, tr.read_data(EPISODES, model).counts.transition)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"since": 46}, "`since` is event 46, but the data have 45 events"),
        ({"since": 0}, "`since` is 0, not a number of events from 1 on"),
        ({"since": True}, "`since` is True, not a number"),
        ({"window": 1.5}, "`window` is 1.5, not a number"),
        ({"since": 3, "window": 4}, "`since` and `window` both select events"),
        ({"chosen_at": 4}, "`chosen_at` is the time at which events were selected, and none are"),
        ({"since": 3, "chosen_at": 46}, "`chosen_at` is event 46, but the data have 45 events"),
        ({"since": 3, "design": "fixed"}, "has no sampling design and no plan"),
    ],
)
def test_what_means_nothing_is_refused(model: ParametricMDP, words: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        tr.read_data(EPISODES, model, **words)


def test_what_has_no_order_is_refused(model: ParametricMDP, tmp_path: Path) -> None:
    problem = model.problem(PROPERTY)
    counts = tr.read_data(EPISODES, model).counts
    with pytest.raises(InputError, match="`since` excludes events, and counts do not record their order"):
        tr.learn(problem, counts, since=3)
    table = pa.table({"state": [0, 0], "action": ["a", "a"], "next_state": [1, 2], "count": [3, 4]})
    with pytest.raises(InputError, match="a table of counts does not record the order of events"):
        tr.learn(problem, tr.read_data(table, model, states="index", since=3))
    columns = {"episode": [0, 1, 0, 1], "step": [1, 0, 0, 1], "state": [1, 0, 0, 2]}
    mixed = pa.table({**columns, "action": ["", "a", "a", ""], "next_state": [1, 2, 1, 2]})
    with pytest.raises(InputError, match="not in order of time"):
        tr.read_data(mixed, model, states="index", since=3)
    wrong = as_table([*EPISODES, [(0, "a", 0)]])
    with pytest.raises(InputError, match="rows were dropped, so events cannot be numbered"):
        tr.read_data(wrong, model, states="index", since=3, skip_invalid=True)


def test_the_command_takes_the_numbers_that_watch_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "log.parquet")
    assert run(["sample", "bench:betting(5)", "--episodes", "300", "--seed", "1", "--raw", "-o", file]) == 0
    steps = tr.read_data(file, tr.load("bench:betting(5)")).counts.steps
    begin = ["learn", "bench:betting(5)", "--data", file, "--sets", "tied"]
    capsys.readouterr()
    assert run([*begin, "--since", f"{steps - 499:,}", "--chosen-at", str(steps - 500), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["data"]["kept"]["left_out"] == steps - 500 and answer["data"]["kept"]["holds"] is True
    assert answer["ledger"]["holds"] is True and answer["fit"]["events"] == 500
    assert run([*begin, "--window", "500"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"note events {steps - 499:,} to {steps:,} are kept" in said and said.startswith("NOMINAL: ")
    for wrong in ("2026-11-01", "12,34", "-3", "episode 4"):
        assert run([*begin, f"--since={wrong}"]) == 2
        assert f"--since is '{wrong}', not the number of an event" in capsys.readouterr().err
