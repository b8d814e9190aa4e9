"""Priors seed predictions: a good one narrows, a bad one costs width, none costs confidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from adversary.proved import NOT_COVERED, proved_code
from effort import repeats
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import prequential
from tightrope.statistics.priors import Prior, read_priors
from tightrope_check.checker import check

QUESTION = 'Pmax=? [ F "won" ]'
TRUTH = (0.75, 0.3)


def two_coins() -> tr.ParametricMDP:
    """Both coins have to show heads, one after the other."""
    parameters = tr.Parameters.box(p=("0.01", "0.99"), q=("0.01", "0.99"))
    p, q = parameters.symbols()
    rows = [(0, "a", {1: p, 3: 1 - p}), (1, "a", {2: q, 3: 1 - q}), (2, "", {2: 1}), (3, "", {3: 1})]
    return tr.build_from_rows(rows, parameters, labels={"won": [2]})


def simulated(model: tr.ParametricMDP, episodes: int, seed: int) -> tr.Counts:
    truth = model.instantiate(p=TRUTH[0], q=TRUTH[1])
    return tr.Simulator(truth, model_hash=model.hash()).episodes(episodes, seed=seed)


def test_a_good_prior_narrows_a_bad_one_costs_width_and_both_hold() -> None:
    model = two_coins()
    counts, problem = simulated(model, 400, 5), model.problem(QUESTION)
    common = {"delta": 0.01, "region": "likelihood", "outcomes": "none"}
    plain = tr.learn(problem, counts, **common).interval
    good = tr.learn(problem, counts, prior=["p ~ beta(750, 250)", "q ~ beta(300,700)"], **common)
    bad = tr.learn(problem, counts, prior={"p": (5, 95), "q": (95, 5)}, **common)
    value = TRUTH[0] * TRUTH[1]
    assert good.interval.width < 0.85 * plain.width and bad.interval.width > plain.width
    assert value in plain and value in good.interval and value in bad.interval
    assert "prior p ~ beta(750, 250), q ~ beta(300, 700)" in "\n".join(good.ledger.lines)
    default = tr.learn(problem, counts, delta=0.01, prior="p ~ beta(3, 1)", outcomes="none")
    assert default.decisions.region is not None and default.decisions.region.value == "likelihood"


def test_a_prior_is_a_part_of_the_certificate(tmp_path: Path) -> None:
    model = two_coins()
    problem, counts = model.problem(QUESTION), simulated(model, 300, 7)
    stated = ["p ~ beta(30, 10)", "q ~ beta(3, 7)"]
    common = {"delta": 0.01, "outcomes": "none", "sets": "rectangular"}
    result = tr.learn(problem, counts, prior=stated, **common)
    certificate = certificate_of(result, counts)
    verdict = check(certificate)
    assert verdict.valid, verdict
    assert any("the prior does not depend on these data" in line for line in verdict.assumes)
    data = certificate.problem.data
    assert data is not None and data.prior is not None
    np.testing.assert_array_equal(data.prior, [[0, 30, 10], [1, 3, 7]])
    path = tmp_path / "result.cert"
    as_file(certificate).save(path)
    assert proved_code(path) in (0, NOT_COVERED)
    for wrong in (None, np.array([[0.0, 1.0, 300.0], [1.0, 300.0, 1.0]])):
        other = replace(certificate, problem=replace(certificate.problem, data=replace(data, prior=wrong)))
        assert not check(other).valid
    nobody = replace(data, prior=np.array([[7.0, 1.0, 1.0]]))
    assert not check(replace(certificate, problem=replace(certificate.problem, data=nobody))).valid
    for broken in ([[0.5, 1.0, 1.0]], [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]):
        changed = replace(data, prior=np.array(broken))
        with pytest.raises(tr.InputError, match="not a certificate"):
            check(replace(certificate, problem=replace(certificate.problem, data=changed)))


def test_the_result_of_last_year_is_a_prior(tmp_path: Path) -> None:
    model = two_coins()
    problem = model.problem(QUESTION)
    before = tr.learn(problem, simulated(model, 2000, 1), delta=0.01)
    before.save(tmp_path / "last")
    priors = read_priors(tmp_path / "last")
    assert [prior.parameter for prior in priors] == ["p", "q"]
    for prior, truth in zip(priors, TRUTH, strict=True):
        assert abs(prior.a / (prior.a + prior.b) - truth) < 0.05 and 100 < prior.a + prior.b < 3000
    common = {"delta": 0.01, "region": "likelihood", "outcomes": "none"}
    counts = simulated(model, 400, 2)
    seeded = tr.learn(problem, counts, prior=tmp_path / "last", **common)
    assert seeded.interval.width < tr.learn(problem, counts, **common).interval.width


@pytest.mark.parametrize(
    "prior, words",
    [
        ("p ~ gamma(1, 2)", "no prior"),
        ("p ~ beta(1)", "no prior"),
        ("p ~ beta(x, 2)", "x is not a number above 0"),
        ("p ~ beta(0, 2)", "0 is not a number above 0"),
        ("p ~ beta(1, inf)", "inf is not a number"),
        ("r ~ beta(1, 2)", "the parameters are: p, q"),
        ("p ~ beta(1, 1e6)", "outside of the domain"),
        (["p ~ beta(1, 2)", "p ~ beta(2, 2)"], "'p' twice"),
        ({"p": 3}, "not two numbers"),
        (7, "not a prior"),
        ("nowhere/last-year", "no directory of a result"),
    ],
)
def test_wrong_priors_are_refused_in_words(prior: object, words: str) -> None:
    model = two_coins()
    with pytest.raises(tr.InputError) as refusal:
        tr.learn(model.problem(QUESTION), simulated(model, 20, 1), prior=prior)  # type: ignore[arg-type]
    assert words in str(refusal.value)


def test_a_prior_needs_the_likelihood_region_and_an_order() -> None:
    model = two_coins()
    counts, problem = simulated(model, 20, 1), model.problem(QUESTION)
    for words in ({"region": "polytope"}, {"sets": "tied"}, {"intersect": True}):
        with pytest.raises(tr.InputError, match="likelihood"):
            tr.learn(problem, counts, prior="p ~ beta(1, 1)", **words)
    with pytest.raises(tr.InputError, match="order"):
        tr.learn(problem, replace(counts, batches=None), prior="p ~ beta(1, 1)")
    with pytest.raises(tr.InputError, match="compare"):
        tr.compare(problem, counts, tr.Policy.uniform(model), prior="p ~ beta(1, 1)")


def test_confidence_does_not_depend_on_the_prior() -> None:
    model = two_coins()
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions, outcomes = coordinates.functions(model.expressions), Outcomes.of(model)
    truth = functions.linear @ np.array(TRUTH) + functions.constant
    far, misses = (Prior("p", 1.0, 40.0), Prior("q", 40.0, 1.0)), 0
    runs = repeats(60)
    for seed in range(runs):
        evidence = prequential(outcomes, simulated(model, 60, seed), 0.1, None, far)
        misses += float(evidence.weight @ np.log(np.maximum(truth, 1e-300))) < evidence.threshold
    assert misses <= 0.1 * runs
