"""Certificates about rewards with parameters: ranges over the region, intervals of costs derived again."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.pipeline import counts_of
from tightrope_check.checker import check
from tightrope_check.numbers import RATIONAL
from tightrope_check.problem import Certificate

ASKED = 'R{"cost"}min=? [ F "end" ]'


@pytest.fixture(scope="module")
def model() -> tr.ParametricMDP:
    """A queue that is served at a cost h, or 2h + 1 with a better chance."""
    parameters = tr.Parameters.box(p=(0.2, 0.8), h=(0, 2))
    p, h = parameters.symbols()
    rows = [(0, "slow", {0: 1 - p, 1: p}), (0, "fast", {0: (1 - p) / 2, 1: (1 + p) / 2}), (1, "", {1: 1})]
    rewards = {"cost": [h, 2 * h + 1, 0]}
    found = tr.build_from_rows(rows, parameters, labels={"end": [1]}, choice_rewards=rewards)
    assert isinstance(found, tr.ParametricMDP)
    return found


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    random = np.random.default_rng(8)
    rows = []
    for episode in range(300):
        state = 0
        while state == 0:
            fast = random.random() < 0.3
            state = int(random.random() < (0.75 if fast else 0.5))
            cost = (3.0 if fast else 1.0) + random.choice([-0.5, 0.5])
            rows.append((episode, 0, "fast" if fast else "slow", state, cost))
    return pd.DataFrame(rows, columns=["episode", "state", "action", "next_state", "cost"])


@pytest.fixture(scope="module")
def proof(model: tr.ParametricMDP, log: pd.DataFrame) -> Certificate:
    result = tr.learn(model.problem(ASKED), log, delta=0.05, region="polytope", cost_range=(0, 4))
    found = certificate_of(result, counts_of(log, model))
    claim = found.claims[0]
    assert claim.lower == pytest.approx(result.interval.lower, rel=1e-6)
    assert claim.upper == pytest.approx(result.interval.upper, rel=1e-6)
    return found


def test_costs_are_checked_from_their_sums(proof: Certificate) -> None:
    verdict = check(proof)
    assert verdict.valid and not verdict.nominal
    assert "costs lie within [0, 4]" in verdict.assumes
    assert any("1 rewards share δ = 0.025" in one.detail for one in verdict.checks)
    assert check(proof, RATIONAL).valid
    low, high = proof.claims[0].lower, proof.claims[0].upper
    assert low < 2 < high < 2.7  # slow: a step costs 1, two are needed


def _with_costs(proof: Certificate, **changed: Any) -> Certificate:
    data = proof.problem.data
    assert data is not None and data.costs is not None
    costs = replace(data.costs, **changed)
    return replace(proof, problem=replace(proof.problem, data=replace(data, costs=costs)))


def test_what_does_not_follow_is_refused(proof: Certificate) -> None:
    hints, data = proof.learned, proof.problem.data
    assert hints is not None and data is not None and data.costs is not None
    assert hints.cost_upper is not None and hints.cost_lower is not None
    narrower = replace(hints, cost_upper=hints.cost_upper - 1e-6)
    higher = replace(hints, cost_lower=hints.cost_lower + 1e-6)
    for forged in (narrower, higher, replace(hints, cost_lower=None, cost_upper=None)):
        assert not check(replace(proof, learned=forged)).valid
    total = tuple(value * 2 for value in data.costs.total)
    for changed in ({"total": total}, {"upper": 40.0}, {"count": data.costs.count * 2}):
        assert not check(_with_costs(proof, **changed)).valid
    claim = replace(proof.claims[0], upper=proof.claims[0].upper - 1e-3)
    assert not check(replace(proof, claims=(claim,))).valid
    assert not check(replace(proof, problem=replace(proof.problem, data=replace(data, delta=0.01)))).valid
    for changed in ({"deviation": 1.0}, {"lower": None}, {"transition": data.costs.transition[::-1].copy()}):
        with pytest.raises(InputError):
            check(_with_costs(proof, **changed))


def test_sums_that_no_costs_within_the_range_have_are_refused(proof: Certificate) -> None:
    """The forger states a narrower range than the data keep to; the costs are 2.5 or 3.5, and 0.5 or 1.5."""
    for lower, upper in ((0.0, 2.9), (2.0, 4.0), (0.9, 4.0), (0.0, 3.01)):
        verdict = check(_with_costs(proof, lower=lower, upper=upper))
        assert not verdict.valid and "do not lie within" in verdict.checks[-1].detail
    data = proof.problem.data
    assert data is not None and data.costs is not None
    squares = tuple(value / 2 for value in data.costs.square)
    assert not check(_with_costs(proof, square=squares)).valid


def test_data_outside_of_the_stated_range_are_not_those_of_a_certificate(
    proof: Certificate, model: tr.ParametricMDP, log: pd.DataFrame, tmp_path: Path
) -> None:
    """3.5 is outside of [0, 3.4], which sums alone do not say: whoever has the data sees it."""
    forged = _with_costs(proof, upper=3.4)
    assert check(forged).valid
    as_file(forged).save(tmp_path / "forged.cert")
    tr.verify(tmp_path / "forged.cert", model=model)
    with pytest.raises(CannotCertify, match=r"a cost in the data is 3\.5, outside of the range \[0, 3\.4\]"):
        tr.verify(tmp_path / "forged.cert", model=model, property=ASKED, data=log)


def test_more_is_claimed_of_rewards_than_is_proved(proof: Certificate) -> None:
    """Without the bases of rewards their range is that over the box, and the claim no longer follows."""
    hints, polynomial = proof.learned, proof.problem.polynomial
    assert hints is not None and hints.region is not None and polynomial is not None
    earned = proof.problem.objective.earned
    assert earned is not None
    cheaper = list(polynomial)
    cheaper[int(earned[0])] = {((1, 1),): Fraction(3)}
    assert not check(replace(proof, problem=replace(proof.problem, polynomial=tuple(cheaper)))).valid
    objective = replace(proof.problem.objective, reward=np.zeros(3))
    with pytest.raises(InputError, match="rewards are given twice"):
        check(replace(proof, problem=replace(proof.problem, objective=objective)))


@pytest.mark.parametrize("sets", ["expression", "rectangular", "coupled"])
def test_over_a_domain(model: tr.ParametricMDP, sets: str) -> None:
    result = tr.solve(model.problem(ASKED), sets=sets)
    verdict = check(certificate_of(result))
    low, high = verdict.values["robust policy"]
    # fast: at p = 0.8, h = 0 one step costs 1 and succeeds with 0.9; at p = 0.2, h = 2 it costs 5, with 0.6
    assert verdict.valid and low == pytest.approx(1 / 0.9) and high == pytest.approx(5 / 0.6)


def test_files_are_tied_to_model_property_and_data(
    model: tr.ParametricMDP, log: pd.DataFrame, tmp_path: Path
) -> None:
    problem, file = model.problem(ASKED), tmp_path / "learned.cert"
    log = log.assign(time=range(len(log)))
    result = tr.learn(problem, log, delta=0.05, region="likelihood", cost_sd=0.6, sets="expression")
    tr.certify(result, file)
    verdict = tr.verify(file, model=model, property=ASKED, data=log)
    assert verdict.valid and verdict.bound["data"] and verdict.bound["property"]
    assert tr.verify(file, model=model).valid
    dearer = log.assign(cost=log.cost + 0.25)
    with pytest.raises(CannotCertify, match="other data: 'costs"):
        tr.verify(file, model=model, data=dearer)
    point = tmp_path / "point.cert"
    tr.certify(problem, point, at={"p": "1/3", "h": "1/7"})
    found = tr.verify(point, model=model, property=ASKED, at={"p": "1/3", "h": "1/7"})
    assert found.valid and found.values["value"][0] == pytest.approx(3 / 7)


def test_costs_by_successor_have_none(log: pd.DataFrame, tmp_path: Path) -> None:
    parameters = tr.Parameters.box(p=(0.2, 0.8), h=(0, 2))
    p, h = parameters.symbols()
    rows = [(0, "slow", {0: 1 - p, 1: p}), (1, "", {1: 1})]
    model = tr.build_from_rows(
        rows, parameters, labels={"end": [1]}, transition_rewards={"cost": [{0: h, 1: h}, {}]}
    )
    slow = log[log.action == "slow"].assign(
        episode=lambda table: table.next_state.cumsum().shift(fill_value=0)
    )
    result = tr.learn(model.problem(ASKED), slow, delta=0.05, cost_range=(0, 4), region="polytope")
    with pytest.raises(InputError, match="costs of rewards that differ by successor"):
        tr.certify(result, tmp_path / "x.cert")
    assert not (tmp_path / "x.cert").exists()
