"""Episodes that stand in a log several times under other names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.exposure import Pieces
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.copies import weigh_copies, weigh_repeated, weigh_timed_copies
from tightrope.monitoring.examination import examine, weigh_fit
from tightrope.statistics.outcomes import Outcomes


def coin() -> ParametricMDP:
    parameters = tr.Parameters.box(p=(0.0, 1.0))
    (p,) = parameters.symbols()
    return tr.build_from_rows([(s, "", {0: p, 1: 1 - p}) for s in (0, 1)], parameters, labels={"one": [1]})


def tosses(parts: Sequence[Sequence[int]]) -> tuple[ParametricMDP, EpisodeLog]:
    """Episodes of a coin that is thrown for ever."""
    model = coin()
    steps = [np.array([2 * a + b for a, b in itertools.pairwise((0, *one))]) for one in parts]
    return model, EpisodeLog.of_parts(steps, model.structure, model.hash())


@pytest.mark.parametrize("heads", [0.5, 0.8, 0.97])
def test_the_evidence_for_copies_has_a_mean_of_at_most_one(heads: float) -> None:
    """All logs of three episodes with three steps."""
    mean, largest = 0.0, -math.inf
    for sides in itertools.product((0, 1), repeat=9):
        model, log = tosses([sides[:3], sides[3:6], sides[6:]])
        log_e, number = weigh_copies(Outcomes.of(model), log).log_e, sum(sides)
        mean += heads ** (9 - number) * (1.0 - heads) ** number * math.exp(log_e)
        largest = max(largest, log_e)
    assert mean <= 1.0
    assert largest > -3.5, largest


@pytest.mark.parametrize("length", [3, 12])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_log_that_was_written_twice_under_other_names_is_no_evidence_twice(times: int, length: int) -> None:
    """Episodes of three steps are eight in all: equal ones are common, whole logs in the same order not."""
    sides = np.random.default_rng(3).integers(0, 2, (60, length)).tolist()
    model, log = tosses(sides * times)
    seen = examine(model, log, alpha=0.001, first=20)
    assert seen.alarm == (times > 1)
    texts = [one.text for one in seen.findings if one.kind == "copy"]
    number = 60 * (times - 1)
    copied = f"{number} of {60 * times} episodes repeat an earlier one row by row: count each once"
    assert texts == ([copied] if times > 1 else [])
    design = SamplingDesign(SamplingKind.TRAJECTORIES)
    assert weigh_fit(model, log.counts(model, design)).alarm == (times > 1)


@pytest.mark.parametrize(
    "sides",
    [
        [[1]] * 80 + [[0]] * 20,
        [[1], [1], [0], [1], [0]] * 40,
        [[1, 0], [0, 1], [1, 1]] * 30,
        [[int(one % 8 == 0), int(one % 7 == 0)] for one in range(240)],
    ],
)
def test_logs_that_are_written_by_a_rule_are_no_copies(sides: list[list[int]]) -> None:
    model, log = tosses(sides)
    assert not weigh_copies(Outcomes.of(model), log).copied.any()


def test_shuffled_copies_are_found_where_episodes_are_long() -> None:
    rng = np.random.default_rng(5)
    sides = rng.integers(0, 2, (60, 20)).tolist()
    model, log = tosses([*sides, *rng.permutation(np.array(sides)).tolist()])
    copies = weigh_copies(Outcomes.of(model), log)
    assert np.flatnonzero(copies.copied).tolist() == list(range(60, 120))
    assert copies.log_e > 100.0


def test_a_copy_that_stands_before_what_it_copies_is_no_copy() -> None:
    """Rows of two equal episodes by turns are copies only if each stands behind the row that it repeats."""
    model, log = tosses([(0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1)] * 2)
    outcomes, rows = Outcomes.of(model), np.arange(12)
    for first, later, copies in ((2 * rows, 2 * rows + 1, [1]), (2 * rows + (rows == 5), None, [])):
        place = np.r_[first, np.setdiff1d(np.arange(24), first) if later is None else later]
        order = np.argsort(place)
        previous = np.where(log.previous >= 0, place[log.previous], -1)[order].astype(np.int32)
        mixed = replace(log, transition=log.transition[order], episode=log.episode[order], previous=previous)
        assert np.flatnonzero(weigh_copies(outcomes, mixed).copied).tolist() == copies


@pytest.mark.parametrize("heads", [0.5, 0.9])
@pytest.mark.parametrize("units", [1, 2])
def test_the_evidence_for_repeated_runs_has_a_mean_of_at_most_one(heads: float, units: int) -> None:
    """All logs of six runs with one step; the second half may be of a unit with other chances."""
    mean, largest = 0.0, -math.inf
    for sides in itertools.product((0, 1), repeat=6):
        _, log = tosses([[one] for one in sides])
        log_e = weigh_repeated(log, np.arange(6) // 3 if units == 2 else None).log_e
        chances = np.repeat([heads, 1.0 - heads if units == 2 else heads], 3)
        mean += math.prod(np.where(sides, chances, 1.0 - chances)) * math.exp(log_e)
        largest = max(largest, log_e)
    assert mean <= 1.0
    assert largest > -8.0, largest


def test_repeated_runs_are_found_whatever_they_are_made_of() -> None:
    """Scripts of ten steps: the model of single steps is wrong, and runs are drawn anew all the same."""
    rng = np.random.default_rng(2)
    scripts = rng.integers(0, 2, (5, 10)).tolist()
    runs = [scripts[k] for k in rng.integers(0, 5, 80)]
    _, once = tosses(runs)
    _, twice = tosses([*runs, *runs])
    units = np.repeat(np.arange(4), 40)
    assert weigh_repeated(once).log_e < 0.0 and not weigh_repeated(once).copied.any()
    for unit in (None, units):
        copies = weigh_repeated(twice, unit)
        assert copies.log_e > 50.0 and np.flatnonzero(copies.copied).tolist() == list(range(80, 160))


def stretches(episodes: Sequence[Sequence[int]], window: int) -> Pieces:
    """Two states by turns; an episode is watched for so long, and its last sojourn is cut off."""
    rows = []
    for number, lasted in enumerate(episodes):
        passed = 0
        for place, one in enumerate(lasted):
            ends = passed + one <= window
            rows.append((place % 2, one if ends else window - passed, place % 2 if ends else -1, number))
            passed += one
            if passed >= window:
                break
    state, duration, transition, episode = np.array(rows).T
    nothing = np.zeros(len(rows))
    return Pieces(state, duration * 1.0, transition, episode, nothing, nothing, state, None, {})


@pytest.mark.parametrize("window", [3, 100])
@pytest.mark.parametrize("stay", [0.2, 0.6])
def test_the_evidence_for_timed_copies_has_a_mean_of_at_most_one(stay: float, window: int) -> None:
    """All logs of three episodes with two sojourns of 1 to 3 steps, whatever times were rounded to."""
    chance = [1.0 - stay, stay * (1.0 - stay), stay**2]
    mean, largest = 0.0, -math.inf
    for times in itertools.product(range(3), repeat=6):
        lasted = [[1 + one for one in times[k : k + 2]] for k in (0, 2, 4)]
        log_e = weigh_timed_copies(stretches(lasted, window)).log_e
        mean += math.prod(chance[one] for one in times) * math.exp(log_e)
        largest = max(largest, log_e)
    assert mean <= 1.0
    assert largest > -4.0, largest


@pytest.mark.parametrize(("digits", "length"), [(6, 4), (2, 20)])
@pytest.mark.parametrize("times", [1, 2])
def test_timed_logs_that_were_written_twice_are_no_evidence_twice(
    digits: int, length: int, times: int
) -> None:
    """Also where times were rounded to a hundredth, so that equal ones are common."""
    rng = np.random.default_rng(7)
    parameters = tr.Parameters.box(on=(0.1, 10.0), off=(0.1, 10.0))
    on, off = parameters.symbols()
    model = tr.build_ctmc_from_rows([(0, {1: on}), (1, {0: off})], parameters, labels={"up": [1]})
    lasted = np.maximum(np.round(rng.exponential(1.0, (40, length)), digits), 10.0**-digits)
    table = {
        "episode": np.repeat(np.arange(40 * times), length),
        "state": np.tile(np.arange(length) % 2, 40 * times),
        "duration": np.tile(lasted.ravel(), times),
    }
    question = model.problem('P=? [ F<=1 "up" ]')
    result = tr.learn(question, tr.read_exposure(pa.table(table), model, ends="complete"), delta=0.05)
    assert result.verdict.word == ("contradicted" if times > 1 else "proved")
    if times > 1:
        assert "40 of 80 episodes repeat an earlier one row by row" in result.verdict.why


def test_what_copied_episodes_returned_counts_for_nothing() -> None:
    sides = np.random.default_rng(4).integers(0, 2, (80, 12)).tolist()
    model, log = tosses([*sides, *sides])
    question = model.problem('P=? [ F<=3 "one" ]')
    counts = log.counts(model, SamplingDesign(SamplingKind.TRAJECTORIES))
    result = tr.learn(question, counts, delta=0.05)
    assert result.verdict.word == "contradicted" and "80 of 160 episodes repeat" in result.verdict.why
    assert result.seen is None and result.outcomes is not None
    assert "no independent draws" in result.outcomes.text


@pytest.mark.parametrize("heads", [0.5, 0.8])
@pytest.mark.parametrize("names", [(0, 1, 0, 1), (0, 0, 0, 0), (0, 1, 2, 0)])
def test_the_evidence_for_namesakes_has_a_mean_of_at_most_one(heads: float, names: tuple[int, ...]) -> None:
    """All logs of four episodes with two steps, some of which share a name."""
    mean, largest = 0.0, -math.inf
    for sides in itertools.product((0, 1), repeat=8):
        model, log = tosses([sides[k : k + 2] for k in (0, 2, 4, 6)])
        log = replace(log, names=np.array(names)[log.episode])
        log_e, number = weigh_copies(Outcomes.of(model), log).log_e, sum(sides)
        mean += heads ** (8 - number) * (1.0 - heads) ** number * math.exp(log_e)
        largest = max(largest, log_e)
    assert mean <= 1.0
    assert largest > -4.0, largest


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("clock", ["2024-01-01 {:02d}:{:02d}:{:02d}", None])
def test_files_that_overlap_are_no_evidence_twice(tmp_path: Path, clock: str | None, share: float) -> None:
    """Runs of one toss that stand in two exports, with the same names, at the same times."""
    parameters = tr.Parameters.box(p=(0.01, 0.99))
    (p,) = parameters.symbols()
    rows = [(0, "go", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, valuations={"x": [0, 1, 2]}, labels={"good": [1]})
    side, size = np.random.default_rng(6).integers(1, 3, 600), 300
    for name, first in (("a", 0), ("b", size - int(share * size))):
        times = [clock.format(k // 3600, k // 60 % 60, k % 60) if clock else k for k in range(2 * size)]
        lines = [f"{k},{times[k]},0,go,{side[k]}" for k in range(first, first + size)]
        header = "episode,time,x,action,x_next" if clock else "episode,note,x,action,x_next"
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    reading = tr.read_data(tmp_path, model, order="time" if clock else "as-read")
    result = tr.learn(model.problem('P=? [ F "good" ]'), reading, delta=0.05)
    assert result.verdict.word == ("contradicted" if share else "proved")
    if share:
        assert f"{int(share * size)} of 600 episodes repeat an earlier one" in result.verdict.why


def test_files_that_number_their_runs_alike_are_no_copies(tmp_path: Path) -> None:
    """Three machines with one file each: runs have the same names, begin at once, and are others."""
    rng, model = np.random.default_rng(8), coin()
    for machine in range(3):
        sides = rng.integers(0, 2, (40, 3))
        lines = [
            f"{k},{100 * k + j},{a},{b}"
            for k, one in enumerate(sides.tolist())
            for j, (a, b) in enumerate(itertools.pairwise((0, *one)))
        ]
        (tmp_path / f"{machine}.csv").write_text("\n".join(["episode,time,state,next_state", *lines]) + "\n")
    question = model.problem('P=? [ F<=3 "one" ]')
    reading = tr.read_data(tmp_path, model, states="index", order="time", ends="complete")
    result = tr.learn(question, reading, delta=0.05)
    assert result.verdict.word == "proved"


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_timed_files_that_overlap_are_no_evidence_twice(tmp_path: Path, share: float) -> None:
    rng = np.random.default_rng(7)
    parameters = tr.Parameters.box(on=(0.1, 10.0), off=(0.1, 10.0))
    on, off = parameters.symbols()
    model = tr.build_ctmc_from_rows([(0, {1: on}), (1, {0: off})], parameters, labels={"up": [1]})
    lasted, size = np.round(np.maximum(rng.exponential(1.0, 200), 0.001), 3), 100
    for name, first in (("a", 0), ("b", size - int(share * size))):
        lines = [f"{k},{10 * k},0\n{k},{10 * k + lasted[k]},1" for k in range(first, first + size)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["episode,time,state", *lines]) + "\n")
    exposure = tr.read_exposure(tmp_path, model, ends="complete")
    result = tr.learn(model.problem('P=? [ F<=1 "up" ]'), exposure, delta=0.05)
    assert result.verdict.word == ("contradicted" if share else "proved")
