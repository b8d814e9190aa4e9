"""Amendments: each planted departure is mended by its own, and what is written reads back the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.data.writing import write_log
from tightrope.learning.amendments import Amended, Amendment, amend
from tightrope.prism.load import load_prism_text

OPTIONS: dict[str, Any] = {"delta": 0.1, "sets": "tied", "outcomes": "none"}


@cache
def agent() -> tr.ParametricMDP:
    """Reads (0), edits (1), runs (2), until it is done (3)."""
    parameters = tr.Parameters.box(p=(0, 1), q=(0, 1))
    p, q = parameters.symbols()
    rows = [
        (0, "go", {1: p, 2: 1 - p}),
        (1, "go", {0: q, 2: 1 - q}),
        (2, "go", {0: "1/2", 1: "1/4", 3: "1/4"}),
        (3, "", {3: 1}),
    ]
    return tr.build_from_rows(rows, parameters, labels={"edit": [1], "done": [3]})


Law = Callable[[list[int], int], list[float]]
"""Probabilities of (edit after reading, read after editing), by the states so far and the episode."""


def simulate(law: Law, episodes: int, seed: int = 1) -> list[list[tuple[int, str, int]]]:
    rng = np.random.default_rng(seed)
    result = []
    for number in range(episodes):
        path, steps = [0], []
        while path[-1] != 3:
            edit, read = law(path, number)
            state = path[-1]
            if state == 0:
                following = 1 if rng.random() < edit else 2
            elif state == 1:
                following = 0 if rng.random() < read else 2
            else:
                following = int(rng.choice([0, 1, 3], p=[0.5, 0.25, 0.25]))
            steps.append((state, "go", following))
            path.append(following)
        result.append(steps)
    return result


def question() -> tr.Problem:
    return agent().problem('P=? [ !"edit" U "done" ]')


def amended(
    text: str, law: Law, episodes: int = 600, choices: tuple[int, ...] | None = None
) -> tuple[Amended, Any]:
    data = tr.read_data(simulate(law, episodes), agent())
    change = Amendment.of(text)
    made = amend(question(), data.counts.log(), Amendment(change.kind, change.feature, choices))
    return made, data


def learned(made: Amended, data: Any) -> tr.LearningResult:
    return tr.learn(made.problem, made.counts(data.counts), **OPTIONS)


def covers(result: tr.LearningResult, value: float) -> bool:
    return result.interval.lower <= value <= result.interval.upper


def unedited(edit: float) -> float:
    """The probability of never editing, where reading leads to an edit with this probability until then."""
    return (1 - edit) * 0.25 / (1 - (1 - edit) * 0.5)


def by_seen(path: list[int], number: int) -> list[float]:
    return [0.8 if 1 in path[:-1] else 0.3, 0.5]


def by_previous(path: list[int], number: int) -> list[float]:
    return [0.8 if len(path) > 1 and path[-2] == 2 else 0.3, 0.5]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("feature", ["seen:edit", "count:edit:2"])
def test_whether_it_has_edited_before(feature: str) -> None:
    made, data = amended(f"memory={feature}", by_seen)
    truth = unedited(0.3)
    assert not covers(tr.learn(question(), data, **OPTIONS), truth)
    assert covers(learned(made, data), truth)
    assert made.counts(data.counts).steps == data.counts.steps


def test_the_state_before() -> None:
    made, data = amended("memory=prev", by_previous)
    # From the start .7 of the runs come to state 2; from there, back to reading, .2 do.
    again = 0.25 / (1 - 0.5 * 0.2)
    truth = 0.7 * again
    assert not covers(tr.learn(question(), data, **OPTIONS), truth)
    assert covers(learned(made, data), truth)
    assert {"p__start", "p__1", "p__2"} <= set(made.model.parameters.shown.names)


def test_a_memory_at_some_choices_only_is_smaller() -> None:
    whole, data = amended("memory=prev", by_previous)
    part, _ = amended("memory=prev", by_previous, choices=(0,))
    assert part.model.states < whole.model.states
    assert "q" in part.model.parameters.names
    assert len(part.model.parameters.free) == 0
    narrow, wide = learned(part, data).interval, learned(whole, data).interval
    assert narrow.upper - narrow.lower < wide.upper - wide.lower


def test_steps_since_the_beginning() -> None:
    made, data = amended("memory=since-start:3", lambda path, _: [0.3 if len(path) == 1 else 0.8, 0.5])
    truth = 0.7 * 0.25 / (1 - 0.5 * 0.2)
    assert not covers(tr.learn(question(), data, **OPTIONS), truth)
    assert covers(learned(made, data), truth)


def test_a_column_of_the_log(tmp_path: Path) -> None:
    """Every second episode is a night's: the answer is that of the mixture, draws and all."""
    episodes = simulate(lambda _, number: [0.9 if number % 2 else 0.2, 0.5], 800)
    lines = ["episode,state,action,next_state,shift"]
    for number, steps in enumerate(episodes):
        shift = "night" if number % 2 else "day"
        lines += [f"{number},{at},{action},{to},{shift}" for at, action, to in steps]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    data = tr.read_data(tmp_path / "log.csv", agent())
    truth = 0.5 * unedited(0.9) + 0.5 * unedited(0.2)
    made = amend(question(), data.counts.log(), Amendment.of("split=shift"))
    assert not covers(tr.learn(question(), data, **OPTIONS), truth)
    assert covers(learned(made, data), truth)
    assert {"p__day", "p__night"} <= set(made.model.parameters.names)
    drawn = made.counts(data.counts).visits[-1]
    assert drawn == 800
    again = load_prism_text(made.prism())
    assert again.states == made.model.states


def test_a_broken_tie_and_a_wrong_expression() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "a", {1: p, 2: 1 - p}), (1, "a", {3: p, 2: 1 - p}), (2, "", {2: 1}), (3, "", {3: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"won": [3]})
    rng = np.random.default_rng(3)
    episodes = []
    for _ in range(500):
        second = (1, "a", 3 if rng.random() < 0.3 else 2)
        episodes.append([(0, "a", 1), second] if rng.random() < 0.8 else [(0, "a", 2)])
    problem, data = model.problem('P=? [ F "won" ]'), tr.read_data(episodes, model)
    assert not covers(tr.learn(problem, data, **OPTIONS), 0.24)
    made = amend(problem, data.counts.log(), Amendment("untie", "", (1,)))
    assert made.model.parameters.names == ("p", "p__1_a")
    assert covers(learned(made, data), 0.24)
    fixed = [(0, "a", {1: "1/2", 2: "1/2"}), (1, "a", {3: "1/2", 2: "1/2"}), (2, "", {2: 1}), (3, "", {3: 1})]
    known = tr.build_from_rows(fixed, labels={"won": [3]})
    counted = tr.read_data(episodes, known)
    free = amend(known.problem('P=? [ F "won" ]'), counted.counts.log(), Amendment.of("untie"))
    assert len(free.model.parameters.free) == 2
    assert covers(learned(free, counted), 0.24)
    tied = amend(known.problem('P=? [ F "won" ]'), counted.counts.log(), Amendment.of("free"))
    assert len(tied.model.parameters.free) == 1


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", ["memory=prev", "memory=seen:edit", "memory=revisit", "untie", "free"])
def test_what_is_written_reads_back_the_same(text: str, tmp_path: Path) -> None:
    made, data = amended(text, by_seen, 200)
    model = load_prism_text(made.prism())
    write_log(tmp_path / "log.csv", made.log, made.model.structure, data.counts.design)
    again = tr.learn(model.problem(question().text), tr.read_data(tmp_path / "log.csv", model), **OPTIONS)
    own = learned(made, data)
    assert again.interval.lower == pytest.approx(own.interval.lower, abs=1e-9)
    assert again.interval.upper == pytest.approx(own.interval.upper, abs=1e-9)
    assert again.counts is not None and again.counts.steps == data.counts.steps


def test_rows_after_a_gap_are_left_out() -> None:
    data = tr.read_data(simulate(by_seen, 50), agent())
    log = data.counts.log()
    kept = np.ones(len(log), np.bool_)
    third = np.flatnonzero((log.previous >= 0) & (log.previous[log.previous] >= 0))[0]
    lost = int(log.previous[third])
    kept[lost] = False
    part = log.select(kept)
    made = amend(question(), part, Amendment.of("memory=seen:edit"))
    assert "left out" in made.claims
    assert len(made.log) < len(part)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("memory", "is not a revision"),
        ("order=2", "is not a revision"),
        ("memory=dream", "'dream' is not a memory"),
        ("memory=seen:nowhere", "no state or label 'nowhere'"),
        ("memory=since-start:x", "'x' is not a number"),
        ("split=shift", "the column 'shift' is not in the log"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    data = tr.read_data(simulate(by_seen, 5), agent())
    with pytest.raises(tr.InputError, match=words):
        amend(question(), data.counts.log(), Amendment.of(text))
