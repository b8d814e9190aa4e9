"""Drafted models on their own log: outcomes that were never seen lead elsewhere, and count as the worst."""

from __future__ import annotations

import contextlib
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from adversary.archive import Forgery
from adversary.proved import NOT_COVERED, proved_code
from tightrope.data.writing import write_log
from tightrope.learning.draft import draft
from tightrope.numerics.arrays import invert
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


def mixed(done: int, lost: int) -> list[list[str]]:
    """Runs that are done and others that are lost, in a random order."""
    ends = np.random.default_rng(1).permutation(["done"] * done + ["lost"] * lost)
    return [["go", str(end)] for end in ends]


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
    paths = mixed(150, 50)
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
    log = log_of(mixed(30, 10))
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
    acted = log.append_column("action", pa.array(["left", "right"] * 20))
    choices = load(draft(acted, order="as-read").text, tmp_path)
    about, rows = tr.Problem(choices, 'Pmax=? [ F "done" ]'), tr.read_data(acted, choices, order="as-read")
    with pytest.raises(tr.InputError, match="differences of policies"):
        tr.compare(about, rows, tr.Policy.uniform(choices))
    numbered = draft(log, order="as-read").text.replace("free : (state'=1)", "0.5 : (state'=1)", 1)
    other = load(numbered, tmp_path)
    with pytest.raises(tr.InputError, match="not a free distribution"):
        tr.learn(tr.Problem(other, DONE), tr.read_data(log, other, order="as-read"))


def test_rows_that_lead_elsewhere_in_the_log_are_draws(tmp_path: Path) -> None:
    """A log of 20 runs that are done and 80 that go elsewhere bounds what is done by 20 of 100, not of 20."""
    model = load(draft(log_of(mixed(150, 50)), order="as-read").text, tmp_path)
    away = log_of([["go", "elsewhere_missed"], *[["go", "done"]], *[["go", "elsewhere_reached"]] * 3] * 20)
    reading = tr.read_data(away, model, order="as-read")
    result = tr.learn(tr.Problem(model, DONE), reading, delta=0.05, outcomes="none")
    assert 0.05 < result.interval.lower < 0.2 and result.interval.upper == 1.0
    low, high = open_intervals(np.array([20, 0]), 0.05, 80)
    assert low[0] < 0.2 < high[0] < 0.4 and (low[1], high[1]) == (0.0, unseen_mass(100, 81, 0.025))
    assert (low[2], high[2]) == (0.0, 1.0)
    seen = tr.learn(tr.Problem(model, DONE), reading, delta=0.05, outcomes="only").seen
    assert (seen.decided, seen.successes, seen.failures, seen.interval.upper) == (20, 20, 0, 1.0)


def certified(folder: Path) -> tuple[Any, pa.Table, Path]:
    """A drafted model, its own log, and the certificate of what is learned from both."""
    log = log_of(mixed(150, 50))
    model = load(draft(log, order="as-read", ends="complete").text, folder)
    problem = tr.Problem(model, DONE)
    result = tr.learn(problem, tr.read_data(log, model, order="as-read", ends="complete"), delta=0.05)
    assert result.verdict.word == "proved" and 0.5 < result.interval.lower < 0.75
    tr.certify(result, folder / "proof.cert")
    return problem, log, folder / "proof.cert"


def test_certificates_hold_what_was_never_seen(tmp_path: Path) -> None:
    problem, log, proof = certified(tmp_path)
    data = tr.read_data(log, problem.model, order="as-read", ends="complete")
    alone, compared = tr.verify(proof), tr.verify(proof, model=problem.model, property=DONE, data=data)
    assert alone.valid and compared.valid and compared.word == "proved"
    assert {"model", "property", "data"} <= {name for name, same in compared.bound.items() if same}
    lower, upper = compared.values["robust policy"]
    assert 0.5 < lower < 0.75 < upper < 0.95
    assert proved_code(proof) == NOT_COVERED


def forge_away(forgery: Forgery) -> int:
    """An event of an unseen outcome that is seldom: its upper end is far below 1."""
    lower, upper = forgery["learned.lower"], forgery["learned.upper"]
    return int(np.flatnonzero((lower == 0) & (upper < 0.2))[0])


def bound_lowered(forgery: Forgery) -> None:
    forgery["learned.upper"][forge_away(forgery)] *= 0.98


def named_end_raised(forgery: Forgery) -> None:
    event = int(np.argmax(np.where(forgery["learned.upper"] < 1, forgery["learned.lower"], 0)))
    forgery["learned.lower"][event] += 0.01


def seen_more_often(forgery: Forgery) -> None:
    """More draws of one kind than the intervals are of: the other kind's lower end no longer follows."""
    forgery["problem.data.batch_count"][0] *= 3


def smaller_delta(forgery: Forgery) -> None:
    forgery["problem.data.delta"] /= 2


def outcome_dropped(forgery: Forgery) -> None:
    forgery["problem.unseen"][:] = False


def method_of_known_outcomes(forgery: Forgery) -> None:
    forgery.drop("problem.unseen")
    forgery["problem.data.method"] = "beta-binomial"


def one_of_two_states_dropped(forgery: Forgery) -> None:
    forgery["problem.unseen"][np.flatnonzero(forgery["problem.unseen"])[0]] = False


@pytest.mark.parametrize(
    "forge",
    [
        bound_lowered,
        named_end_raised,
        seen_more_often,
        smaller_delta,
        outcome_dropped,
        method_of_known_outcomes,
        one_of_two_states_dropped,
    ],
)
def test_forged_bounds_of_what_was_never_seen_are_refused(forge: Any, tmp_path: Path) -> None:
    problem, log, proof = certified(tmp_path)
    data = tr.read_data(log, problem.model, order="as-read", ends="complete")
    forgery = Forgery.of(proof)
    forge(forgery)
    forged = forgery.save(tmp_path / "forged.cert")
    with contextlib.suppress(tr.InputError, tr.CannotCertify):
        assert not tr.verify(forged, model=problem.model, property=DONE, data=data).valid
    if forge in (method_of_known_outcomes, one_of_two_states_dropped):
        with pytest.raises(tr.CannotCertify, match="another model: 'unseen' differs"):
            tr.verify(forged, model=problem.model)
    else:
        with contextlib.suppress(tr.InputError, tr.CannotCertify):
            assert not tr.verify(forged).valid


def test_unseen_outcomes_need_their_method_and_a_row_of_their_own(tmp_path: Path) -> None:
    _, _, proof = certified(tmp_path)
    forgery = Forgery.of(proof)
    forgery["problem.data.method"] = "beta-binomial"
    with pytest.raises(tr.InputError, match="unseen outcomes have a method of their own"):
        tr.verify(forgery.save(tmp_path / "method.cert"))
    shared = Forgery.of(proof)
    expression, unseen = shared["problem.expression"], shared["problem.unseen"]
    leads = np.flatnonzero(unseen[shared["problem.graph.successor"]])
    expression[leads[1]] = expression[leads[0]]
    assert not tr.verify(shared.save(tmp_path / "shared.cert")).valid
    tied = Forgery.of(proof)  # two named outcomes count as one that was found: fewer are left to be found
    tied["problem.expression"][1] = tied["problem.expression"][0]
    tied["problem.polynomial"] = [
        line.replace("-1*0^1 -1*1^1", "-2*0^1") for line in tied["problem.polynomial"]
    ]
    for name, end in (("lower", 0.0), ("upper", 1.0)):
        ends = np.delete(tied[f"learned.{name}"], 1)
        ends[0] = end
        tied[f"learned.{name}"] = ends
    found = tr.verify(tied.save(tmp_path / "tied.cert"))
    assert any("shares some of them" in one.detail for one in found.checks if not one.passed)


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


@pytest.mark.parametrize(("corner", "pivot"), [(1.0, 0.0), (3.0, 1.0)])
def test_the_least_pivot_of_an_inverse_shows_a_curve_without_curvature(corner: float, pivot: float) -> None:
    """Newton's method makes no step where it is 0."""
    inverse = np.empty((2, 2))
    assert invert(np.array([[1.0, 1.0], [1.0, corner]]), inverse) == pivot
    assert pivot == 0.0 or inverse.tolist() == [[1.5, -0.5], [-0.5, 0.5]]


def walk_log(episodes: int, seed: int) -> pa.Table:
    """A walk between 0 and 5 whose steps are alike but next to the end."""
    random, paths = np.random.default_rng(seed), []
    for _ in range(episodes):
        path = [2]
        while 0 < path[-1] < 5:
            path.append(path[-1] + (1 if random.random() < (0.6 if path[-1] < 4 else 0.2) else -1))
        paths.append([str(x) for x in path])
    return log_of(paths)


def word_of(text: str, data: Any, folder: Path) -> str:
    """The verdict of learning from data with a model."""
    model = load(text, folder)
    reading = data if isinstance(data, tr.Counts) else tr.read_data(data, model, order="as-read")
    result = tr.learn(tr.Problem(model, "P=? [ F state=5 ]"), reading, outcomes="none")
    return result.verdict.word.value


def test_what_the_log_chose_beyond_names_is_nominal_on_it(tmp_path: Path) -> None:
    log = walk_log(200, 1)
    text = draft(log, order="as-read").text
    assert word_of(text, log, tmp_path) == "proved"
    tied = text
    for line in [line for line in text.splitlines() if line.startswith("//   [")]:
        row = line.removeprefix("//   ")
        plain = next(one for one in text.splitlines() if one.strip() == row.replace('free("tie1")', "free"))
        tied = tied.replace(plain, row)
    assert tied != text
    assert word_of(tied, log, tmp_path) == "nominal"
    assert word_of(tied, walk_log(200, 2), tmp_path) == "proved"
    closed = re.sub(r"(\[\] state=5 ->) .*;", r"\1 true;", text)
    assert closed != text
    assert word_of(closed, log, tmp_path) == "nominal"
    assert word_of(closed, walk_log(200, 2), tmp_path) == "proved"


def test_ties_chosen_on_a_part_are_learned_from_the_rest(tmp_path: Path) -> None:
    log = walk_log(300, 3)
    part = draft(log, order="as-read", select_on=0.5)
    assert part.ties and part.rest is not None
    assert word_of(part.text, part.rest, tmp_path) == "proved"
    assert word_of(part.text, log, tmp_path) == "nominal"


def test_a_revised_model_remembers_which_rows_chose_it(tmp_path: Path) -> None:
    random, rows = np.random.default_rng(0), []
    for _ in range(120):
        path = ["a"]
        while path[-1] in ("a", "b"):
            stops = 0.8 if path[-2:-1] == ["b"] else 0.2
            other, chance = ("done", stops) if path[-1] == "a" else ("lost", 0.2)
            following = other if random.random() < chance else "ab".replace(path[-1], "")
            path.append(following)
        rows.append(path)
    log = log_of(rows)
    model = load(draft(log, order="as-read", ends="complete").text, tmp_path)
    reading = tr.read_data(log, model, order="as-read", ends="complete")
    for words, expected in (({}, "nominal"), ({"select_on": 0.5}, "proved")):
        found = tr.doctor(tr.Problem(model, DONE), reading, amend="memory=prev", delta=0.1, **words)
        assert found.amended is not None
        made = found.amended.amended
        write_log(tmp_path / "log.csv", made.log, made.model.structure, found.amended.counts.design)
        again = load(made.prism(), tmp_path)
        result = tr.learn(tr.Problem(again, DONE), tr.read_data(tmp_path / "log.csv", again), delta=0.1)
        assert result.verdict.word.value == expected
        (tmp_path / "log.csv").unlink()
