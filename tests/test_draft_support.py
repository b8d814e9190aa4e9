"""Drafted models on their own log: outcomes that were never seen lead elsewhere, and count as the worst."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.learning.draft import draft
from tightrope.monitoring.best_fit import _solve
from tightrope.statistics.intervals import open_intervals, unseen_mass

DONE = 'P=? [ F "done" ]'


def load(text: str, folder: Path) -> Any:
    (folder / "drafted.prism").write_text(text)
    return tr.load(folder / "drafted.prism")


def log_of(paths: list[list[str]]) -> pa.Table:
    rows = [
        (number, step, *pair) for number, path in enumerate(paths) for step, pair in enumerate(pairwise(path))
    ]
    names = ("run", "t", "state", "next_state")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def learned(log: pa.Table, folder: Path, text: str = DONE, delta: float = 0.05, **words: Any) -> Any:
    model = load(draft(log, order="as-read", **words).text, folder)
    reading = tr.read_data(log, model, order="as-read", **words)
    return tr.learn(tr.Problem(model, text), reading, delta=delta, outcomes="none")


def test_twelve_of_twelve_prove_no_certainty(tmp_path: Path) -> None:
    result = learned(log_of([["go", "done"]] * 12), tmp_path)
    assert result.verdict.word == "proved"
    # one row: δ/2, half of it for what was never seen, half of that for one outcome
    assert result.interval.lower == pytest.approx((0.05 / 8) ** (1 / 11), abs=1e-6)
    assert result.interval.upper == 1.0


def test_what_comes_after_a_last_state_is_unknown_unless_episodes_are_over_there(tmp_path: Path) -> None:
    paths = [["go", "done"]] * 150 + [["go", "lost"]] * 50
    open_ones = learned(log_of(paths), tmp_path)
    assert open_ones.verdict.word == "proved" and open_ones.interval.upper == 1.0
    assert 0.5 < open_ones.interval.lower < 0.75
    whole = learned(log_of(paths), tmp_path, ends="complete")
    assert whole.verdict.word == "proved"
    assert 0.5 < whole.interval.lower < 0.75 < whole.interval.upper < 0.95


def test_the_end_of_episodes_is_no_value_of_a_variable(tmp_path: Path) -> None:
    table = pa.table({"run": range(60), "x": [1] * 60, "x_next": [2] * 60})
    text = draft(table, ends="complete", order="as-read").text
    model = load(text, tmp_path)
    end = int(np.flatnonzero(model.structure.labels["end"])[0])
    for formula, holds in (("P=? [ F x>2 ]", False), ('P=? [ F "end" ]', True)):
        target = tr.Problem(model, formula).objective.target
        assert target is not None and bool(target[end]) is holds
    reading = tr.read_data(table, model, ends="complete", order="as-read")
    result = tr.learn(tr.Problem(model, "P=? [ F x>2 ]"), reading, delta=0.05, outcomes="none")
    assert result.interval.lower == 0.0 and 0.0 < result.interval.upper < 0.5


def test_rewards_after_what_was_never_seen_are_the_worst(tmp_path: Path) -> None:
    log = log_of([["go", "done"]] * 40)
    text = draft(log, order="as-read").text + 'rewards "steps" true : 1; endrewards\n'
    model = load(text, tmp_path)
    reading = tr.read_data(log, model, order="as-read")
    result = tr.learn(tr.Problem(model, 'R{"steps"}=? [ F "done" ]'), reading, delta=0.05, outcomes="none")
    assert result.interval.lower == pytest.approx(1.0) and result.interval.upper == np.inf
    for formula in ('R{"steps"}=? [ C<=5 ]', 'R{"steps"}=? [ S ]', 'P=? [ G F "done" ]'):
        with pytest.raises(tr.InputError, match="elsewhere"):
            _ = tr.Problem(model, formula)


def test_what_does_not_know_of_elsewhere_is_refused(tmp_path: Path) -> None:
    log = log_of([["go", "done"]] * 30 + [["go", "lost"]] * 10)
    model = load(draft(log, order="as-read").text, tmp_path)
    problem, reading = tr.Problem(model, DONE), tr.read_data(log, model, order="as-read")
    for words in (
        {"sets": "untied"},
        {"region": "likelihood"},
        {"sets": "coupled"},
        {"assume_support": 0.01},
    ):
        with pytest.raises(tr.InputError):
            tr.learn(problem, reading, **words)
    with pytest.raises(tr.InputError, match="certificates do not hold"):
        tr.certify(tr.learn(problem, reading), tmp_path / "proof.cert")
    mixed = (tmp_path / "drafted.prism").read_text().replace("free : (state'=1)", "0.5 : (state'=1)", 1)
    other = load(mixed, tmp_path)
    with pytest.raises(tr.InputError, match="no free distribution"):
        tr.learn(tr.Problem(other, DONE), tr.read_data(log, other, order="as-read"))


LAWS = {
    "one rare outcome": np.array([0.97, 0.03]),
    "many": 0.5 ** np.r_[1:12, 11],
    "nothing twice": np.full(3_000, 1 / 3_000),
    "half of it rare": np.r_[0.5, np.full(500, 1 / 1_000)],
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_bounds_of_seen_and_unseen_outcomes_hold_at_all_times(law: Any) -> None:
    """Whoever stops when a bound excludes the truth finds such a moment with probability at most γ."""
    random, gamma, misses = np.random.default_rng(3), 0.2, 0
    for _ in range(40):
        seen = np.zeros(len(law), dtype=np.int64)
        for draw in random.choice(len(law), size=50, p=law):
            seen[draw] += 1
            named = np.flatnonzero(seen)
            low, high = open_intervals(seen[named], gamma)
            truth = np.append(law[named], 1.0 - law[named].sum())
            if np.any(truth < low - 1e-12) or np.any(truth > high + 1e-12):
                misses += 1
                break
    assert misses <= gamma * 40 + 3 * np.sqrt(gamma * (1 - gamma) * 40)
    assert unseen_mass(12, 1, 0.05) == pytest.approx(1 - 0.025 ** (1 / 11), abs=1e-6)


def drafted_truth(random: np.random.Generator) -> tuple[np.ndarray[Any, Any], float]:
    """A chain on seven states with rare successors, and the probability that it is done (state 6)."""
    law = np.zeros((7, 7))
    for state in range(5):
        law[state] = random.dirichlet(np.full(7, 0.15)) * 0.9
        law[state, 6] += 0.1
    law[5, 5] = law[6, 6] = 1.0
    return law, float(np.linalg.solve(np.eye(5) - law[:5, :5], law[:5, 6])[0])


def test_what_is_proved_of_drafted_logs_is_true(tmp_path: Path) -> None:
    """A few of the 300 logs of benchmarks/selection_coverage.py."""
    misses, certain = 0, 0
    for seed in range(15):
        random = np.random.default_rng(seed)
        law, truth = drafted_truth(random)
        paths = []
        for _ in range(12):
            path = [0]
            while path[-1] < 5:
                path.append(int(random.choice(7, p=law[path[-1]])))
            paths.append(["s0", "s1", "s2", "s3", "s4", "lost", "done"][s] for s in path)
        result = learned(log_of([list(path) for path in paths]), tmp_path, delta=0.1, ends="complete")
        low, high = result.interval
        assert result.verdict.word == "proved"
        misses += not low <= truth <= high
        certain += low == 1.0 or high == 0.0
    assert misses <= 3 and certain == 0


def test_a_step_without_curvature_is_none() -> None:
    right = np.ones(2)
    _solve(np.array([[1.0, 1.0], [1.0, 1.0]]), right)
    assert right.tolist() == [0.0, 0.0]
