"""Rows that depend, within units, on more than the model says: units may differ in any way.

Also of `monitoring/units.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.monitoring.units import weigh_within

PARAMETERS = tr.Parameters.box(p=(0, 1))
(P,) = PARAMETERS.symbols()


def coin(rounds: int) -> tr.ParametricMDP:
    """Tosses of one coin, by the number of tosses and of heads."""

    def successors(state: tuple[int, int]) -> dict[str, dict[tuple[int, int], object]]:
        n, heads = state
        if n == rounds:
            return {"end": {state: 1}}
        return {"toss": {(n + 1, heads + 1): P, (n + 1, heads): 1 - P}}

    return tr.build_from_function((0, 0), successors, PARAMETERS)


def fleet(
    model: tr.ParametricMDP, rounds: int, units: int, runs: int, repeats: float, seed: int
) -> tr.Counts:
    """Every unit has a coin of its own; a toss repeats the one before with some probability."""
    rng = np.random.default_rng(seed)
    episodes = []
    for p in rng.uniform(0.05, 0.95, units):
        for _ in range(runs):
            steps, heads, last = [], 0, None
            for n in range(rounds):
                last = last if last is not None and rng.random() < repeats else rng.random() < p
                steps.append(((n, heads), "toss", (n + 1, heads + last)))
                heads += last
            episodes.append(steps)
    return tr.read_data(episodes, model).counts


def weigh(rounds: int, units: int, runs: int, repeats: float, seed: int) -> tuple[float, str]:
    model = coin(rounds)
    counts = fleet(model, rounds, units, runs, repeats, seed)
    return weigh_within(model, counts.log(), np.repeat(np.arange(units), rounds * runs))


def test_units_that_differ_are_no_evidence() -> None:
    """The mean of an e-value is at most 1; by Markov's inequality few are above 20."""
    values = np.exp([weigh(3, 8, 5, 0.0, seed)[0] for seed in range(100)])
    assert values.mean() < 1.0 and (values > 20).sum() <= 5


@pytest.mark.parametrize(("rounds", "feature"), [(2, "the choice"), (5, "the choice")])
def test_tosses_that_repeat_are_found_in_many_small_units(rounds: int, feature: str) -> None:
    log_e, words = weigh(rounds, 400, 12, 0.9, 1)
    assert log_e > np.log(2_000) and words.startswith(feature)


def test_memory_within_units_is_found() -> None:
    """One state: the model has one distribution, and outcomes depend on the state before."""
    model = tr.build_from_rows([(s, "toss", {1: P, 2: 1 - P}) for s in range(3)], PARAMETERS)
    rng = np.random.default_rng(5)
    found = {}
    for repeats in (0.0, 0.6):
        episodes = []
        for p in rng.uniform(0.2, 0.8, 30):
            for _ in range(4):
                steps, state, older = [], 0, 0
                for _ in range(20):
                    heads = older == 1 if older and rng.random() < repeats else rng.random() < p
                    steps.append((state, "toss", 1 if heads else 2))
                    older, state = state, 1 if heads else 2
                episodes.append(steps)
        log = tr.read_data(episodes, model).counts.log()
        found[repeats] = weigh_within(model, log, np.repeat(np.arange(30), 80))
    assert found[0.0][0] < 0 and found[0.6][0] > np.log(2_000)
    assert found[0.6][1] == "the state before"


def test_units_whose_rows_refute_the_model_have_no_bounds(tmp_path: Path) -> None:
    """Two unknown coins, of which a random one is tossed: values are bounded by the model, not by returns."""
    parameters = tr.Parameters.box(p=(0, 1), q=(0, 1))
    p, q = parameters.symbols()

    def successors(state: tuple[int, int]) -> dict[str, dict[tuple[int, int], object]]:
        n, heads = state
        if n == 2:
            return {"end": {state: 1}}
        above, beside = (n + 1, heads + 1), (n + 1, heads)
        return {"toss": {above: p, beside: 1 - p}, "flip": {above: q, beside: 1 - q}}

    model = tr.build_from_function(
        (0, 0),
        successors,
        parameters,
        labels={"mixed": lambda state: state == (2, 1)},
        variables=lambda state: {"n": state[0], "h": state[1]},
    )
    rng = np.random.default_rng(2)
    names = ("unit", "episode", "step", "n", "h", "action", "n_next", "h_next")
    rows = []
    for unit in range(60):
        for run in range(40):
            first = int(rng.random() < 0.5)
            second = first if rng.random() < 0.95 else 1 - first
            actions = [("toss", "flip")[chosen] for chosen in rng.integers(2, size=2)]
            rows.append((f"u{unit}", f"{unit}-{run}", 0, 0, 0, actions[0], 1, first))
            rows.append((f"u{unit}", f"{unit}-{run}", 1, 1, first, actions[1], 2, first + second))
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    data = tr.read_data(table, model, order="as-read")
    problem = model.problem('Pmax=? [ F "mixed" ]')
    fleet = tr.learn_fleet(problem, data, "unit", delta=0.1)
    assert fleet.most.headline == "CONTRADICTED: the data do not fit the model"
    assert "within units, outcomes depend on the choice" in str(fleet.most.verdict.why)
    with pytest.raises(tr.CannotCertify, match="no certificate is written: within units"):
        fleet.certify(tmp_path / "forged.cert")


@pytest.mark.parametrize("times", [1, 2])
def test_copied_runs_of_units_bound_nothing(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that was written all the same does not hold against the data."""
    model = tr.build_from_rows(
        [(0, "", {1: P, 2: 1 - P}), (1, "", {1: 1}), (2, "", {2: 1})], PARAMETERS, labels={"won": [1]}
    )
    rng = np.random.default_rng(6)
    sides = [int(rng.random() < p) for p in rng.uniform(0.3, 0.7, 40) for _ in range(30)]
    rows = [
        (f"u{i // 30}", f"{copy}-{i}", 0, 2 - won) for copy in range(times) for i, won in enumerate(sides)
    ]
    names = ("unit", "episode", "state", "next_state")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    data = tr.read_data(table, model, order="as-read")
    fleet = tr.learn_fleet(model.problem('P=? [ F "won" ]'), data, "unit", delta=0.1)
    assert fleet.most.verdict.word == ("contradicted" if times > 1 else "proved")
    assert ("of 2,400 episodes repeat an earlier one" in str(fleet.most.verdict.why)) == (times > 1)
    monkeypatch.setattr("tightrope.fleet.refuted_within", lambda *_: None)
    forged = tr.learn_fleet(model.problem('P=? [ F "won" ]'), data, "unit", delta=0.1)
    forged.certify(tmp_path / "forged.cert")
    own = {"model": model, "property": 'P=? [ F "won" ]', "data": data}
    assert tr.verify(tmp_path / "forged.cert", **own).word == ("contradicted" if times > 1 else "proved")
