"""Certificates of what episodes came to, beside the model: honest ones, and what a forger would try."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from adversary.archive import Forgery
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingKind
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate

REACH, AVOID, SOON = 'P=? [ F "goal" ]', 'P=? [ G !"goal" ]', 'P=? [ F<=3 "goal" ]'


def chain() -> tr.ParametricMDP:
    parameters = tr.Parameters.box(p=(0.05, 0.95))
    (p,) = parameters.symbols()
    rows = [
        (0, "a", {1: p, 2: 1 - p}),
        (1, "a", {3: p, 0: 1 - p}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    return tr.build_from_rows(rows, parameters, labels={"goal": [3]})


def planned(number: int = 400) -> Counts:
    model = chain()
    simulator = tr.Simulator(model.instantiate({"p": 0.6}), model_hash=model.hash())
    return simulator.episodes(number, seed=2)


def unplanned() -> list[list[tuple[int, str, int]]]:
    rng, episodes = np.random.default_rng(0), []
    for _ in range(400):
        state, steps = 0, []
        while state in (0, 1):
            to = {0: (1, 2), 1: (3, 0)}[state][0 if rng.random() < 0.6 else 1]
            steps.append((state, "a", to))
            state = to
        episodes.append(steps)
    return episodes


def honest(property: str = REACH, data: Any = None) -> Certificate:
    result = tr.learn(chain().problem(property), planned() if data is None else data, delta=0.01)
    return certificate_of(result)


def forged(certificate: Certificate, **fields: Any) -> Certificate:
    """With other fields of the data."""
    data = replace(certificate.problem.data, **fields)
    return replace(certificate, problem=replace(certificate.problem, data=data))


def claiming(certificate: Certificate, lower: float, upper: float) -> Certificate:
    return replace(certificate, claims=(replace(certificate.claims[0], lower=lower, upper=upper),))


def both(certificate: Certificate) -> tuple[bool, bool]:
    """Whether a certificate is valid, in both arithmetics."""
    return check(certificate, FLOAT64).valid, check(certificate, RATIONAL).valid


@pytest.mark.thinned(2)
@pytest.mark.parametrize("property", [REACH, AVOID, SOON])
@pytest.mark.parametrize("is_planned", [True, False])
def test_honest(property: str, is_planned: bool, tmp_path: Path) -> None:
    """The certificate proves the intersection, of the user's own log, at δ₁ + δ₂."""
    data: Any = planned() if is_planned else unplanned()
    model = chain()
    result = tr.learn(model.problem(property), data, delta=0.01)
    file = tmp_path / "chain.cert"
    tr.certify(result, file)
    verdict = tr.verify(file, model=model, property=property, data=data)
    assert verdict.word == "proved" and verdict.not_tied == ("policy",)
    lower, upper = verdict.values["robust policy"]
    assert lower == pytest.approx(result.interval.lower, abs=1e-9)
    assert upper == pytest.approx(result.interval.upper, abs=1e-9)
    assert ("fixed in advance" in verdict.assumes[-1]) == is_planned
    assert tr.verify(file, exact=True).word == "proved"
    statement = certificate_of(result).problem.data
    assert statement.total_delta == pytest.approx(0.01) and statement.delta < 0.01
    with pytest.raises(tr.CannotCertify, match="give yours as well"):
        tr.verify(file, model=model, data=data)


def test_without_episodes_nothing_is_said_of_them() -> None:
    result = tr.learn(chain().problem(REACH), planned(), delta=0.01, outcomes="none")
    data = certificate_of(result).problem.data
    assert data.seen is None and data.seen_delta is None and data.delta == 0.01


def test_claims_narrower_than_both_parts_are_refused() -> None:
    certificate = honest()
    lower, upper = certificate.claims[0].lower, certificate.claims[0].upper
    assert both(certificate) == (True, True)
    assert both(claiming(certificate, lower + 1e-6, upper)) == (False, False)
    assert both(claiming(certificate, lower, upper - 1e-6)) == (False, False)
    assert both(claiming(certificate, lower - 1e-6, upper + 1e-6)) == (True, True)


def test_episodes_that_are_dropped_or_swapped_prove_less() -> None:
    certificate = honest()
    method, number, successes, failures = certificate.problem.data.seen.tolist()
    assert both(forged(certificate, seen=None, seen_delta=None)) == (False, False)
    swapped = forged(certificate, seen=np.array([method, number, failures, successes]))
    assert both(swapped) == (False, False)
    undecided = forged(certificate, seen=np.array([method, number, successes - 40, failures - 40]))
    assert both(undecided) == (False, False)
    smaller = forged(certificate, seen_delta=certificate.problem.data.seen_delta / 100)
    assert both(smaller) == (False, False)


def test_episodes_that_the_model_excludes_contradict_it() -> None:
    certificate = honest()
    method, number, *_ = certificate.problem.data.seen.tolist()
    for successes in (0, number):
        wrong = forged(certificate, seen=np.array([method, number, successes, number - successes]))
        for lower, upper in ((0.0, 1.0), (0.4, 0.5)):
            assert check(claiming(wrong, lower, upper)).word == "contradicted"
            assert both(claiming(wrong, lower, upper)) == (False, False)


def test_what_cannot_be_is_no_certificate(tmp_path: Path) -> None:
    certificate = honest()
    data = certificate.problem.data
    method, number, successes, failures = data.seen.tolist()
    assert method == 0
    cases: list[dict[str, Any]] = [
        {"seen": np.array([0, number, successes + 1, failures])},
        {"seen": np.array([0, number, -1, failures])},
        {"seen": np.array([2, number, successes, failures])},
        {"seen": np.array([0, number, successes])},
        {"seen": np.array([0, number + 1, successes + 1, failures])},
        {"seen": None},
        {"seen_delta": None},
        {"seen_delta": np.array([0.0])},
        {"seen_delta": np.array([-0.001])},
        {"seen_delta": np.array([0.9995])},
        {"seen_delta": np.array([0.001, 0.001])},
        {"anytime": True},
        {"design": "adaptive", "planned": None},
        {"design": "adaptive", "planned": 500},
    ]
    for case in cases:
        with pytest.raises(tr.InputError, match="this is not a certificate"):
            check(forged(certificate, **case))
        as_file(certificate).save(tmp_path / "a.cert")
        forgery = Forgery.of(tmp_path / "a.cert")
        for name, value in case.items():
            if value is None:
                forgery.drop(f"problem.data.{name}")
            else:
                forgery[f"problem.data.{name}"] = value
        with pytest.raises(tr.InputError):
            tr.verify(forgery.save(tmp_path / "b.cert"))
    sizes = np.full(certificate.problem.graph.choices, 0.02)
    with pytest.raises(tr.InputError, match="of a chain"):
        check(replace(certificate, problem=replace(certificate.problem, misfit=sizes)))


def test_a_process_with_choices_has_no_episodes_of_its_own() -> None:
    """Episodes of a policy are not those of the best one."""
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "a", {1: p, 2: 1 - p}), (0, "b", {2: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [1]})
    data = [[(0, "a", 1)]] * 80 + [[(0, "a", 2)]] * 20
    certificate = certificate_of(tr.learn(model.problem('Pmax=? [ F "goal" ]'), data, delta=0.01))
    assert check(certificate).valid and certificate.problem.data.seen is None
    with pytest.raises(tr.InputError, match="of a chain"):
        check(forged(certificate, seen=np.array([1, 100, 80, 20]), seen_delta=np.array([0.01])))


def test_other_episodes_than_those_of_the_log(tmp_path: Path) -> None:
    """A forger who counts better than the log does is found by `data`, which counts again."""
    data, model = planned(), chain()
    certificate = honest(data=data)
    method, number, successes, failures = certificate.problem.data.seen.tolist()
    better = forged(certificate, seen=np.array([method, number, successes + 2, failures - 2]))
    better = claiming(better, 0.0, 1.0)
    assert check(better).valid  # it is about what is written in it
    file = tmp_path / "better.cert"
    as_file(better).save(file)
    with pytest.raises(tr.CannotCertify, match="'seen' differs"):
        tr.verify(file, model=model, property=REACH, data=data)
    other = forged(certificate, seen=np.array([1, number, successes, failures]))
    as_file(claiming(other, 0.0, 1.0)).save(file)
    with pytest.raises(tr.CannotCertify, match="'seen' differs"):
        tr.verify(file, model=model, property=REACH, data=data)


def test_values_of_0_and_1_are_no_contradiction() -> None:
    """What cannot happen, and did not; what must, and did. One episode that says otherwise refutes it."""
    for property, value, fits, wrong in (
        ("P=? [ F false ]", 0.0, [0, 400, 0, 400], [0, 400, 1, 399]),
        ("P=? [ F true ]", 1.0, [0, 400, 400, 0], [0, 400, 399, 1]),
    ):
        certificate, share = honest(property), np.array([0.001])
        assert (certificate.claims[0].lower, certificate.claims[0].upper) == (value, value)
        assert both(forged(certificate, seen=np.array(fits), seen_delta=share)) == (True, True)
        refuted = forged(certificate, seen=np.array(wrong), seen_delta=share)
        assert check(refuted).word == "contradicted" and both(refuted) == (False, False)


def slots() -> tr.ParametricMDP:
    parameters = tr.Parameters.box(p=(0.05, 0.95), q=(0.05, 0.95))
    p, q = parameters.symbols()
    rows = [(0, "a", {1: p, 2: 1 - p}), (0, "b", {1: q, 2: 1 - q}), (1, "", {1: 1}), (2, "", {2: 1})]
    return tr.build_from_rows(rows, parameters, labels={"goal": [1]})


def test_episodes_of_a_given_policy_refers_to_it_alone(tmp_path: Path) -> None:
    """The checker takes its claim from the episodes, and what is said of other policies from the model."""
    model = slots()
    policy = tr.Policy(model, [0.5, 0.5, 1.0, 1.0])
    truth = model.instantiate(p=0.4, q=0.8)
    data = tr.Simulator(truth, policy, model_hash=model.hash()).episodes(600, seed=3)
    result = tr.learn(model.problem('Pmax=? [ F "goal" ]'), data, delta=0.01, policy=policy, sets="tied")
    assert result.value is not None and result.seen is not None
    certificate = certificate_of(result)
    assert certificate.problem.data.seen is not None and both(certificate) == (True, True)
    file = tmp_path / "policy.cert"
    as_file(certificate).save(file)
    verdict = tr.verify(file, model=model, property='Pmax=? [ F "goal" ]', data=data, policy=policy)
    assert verdict.word == "proved" and "draws of the given policy" in verdict.assumes[-1]
    assert verdict.values["given policy"] == pytest.approx(
        (result.value.interval.lower, result.value.interval.upper), abs=1e-9
    )
    robust, given = certificate.claims
    assert (robust.name, given.name) == ("robust policy", "given policy")
    narrow = replace(robust, lower=given.lower, upper=given.upper)
    assert both(replace(certificate, claims=(narrow, given))) == (False, False)
    swapped = replace(narrow, name="given policy"), replace(given, name="robust policy")
    assert both(replace(certificate, claims=swapped)) == (False, False)
    narrower = replace(given, lower=given.lower + 1e-6)
    assert both(replace(certificate, claims=(robust, narrower))) == (False, False)
    assert both(forged(certificate, seen=None, seen_delta=None)) == (False, False)
    alone = replace(certificate, claims=(robust,), values=certificate.values[:1])
    with pytest.raises(tr.InputError, match="of a chain, or of a given policy"):
        check(alone)
    forgery = Forgery.of(file)
    forgery["claims.1.name"] = "value"
    with pytest.raises(tr.InputError):
        tr.verify(forgery.save(file))


@pytest.mark.parametrize("path", ['F "goal"', '!(F "goal")'])
def test_a_temporal_formula_of_a_chain(path: str, tmp_path: Path) -> None:
    """Counted in the product, and of the user's own log once more."""
    property, model, data = f'P=? [ (G F "goal") | (X X X {path}) ]', chain(), planned()
    if path.startswith("!"):
        property = 'P=? [ G F !"goal" ]'
    with warnings.catch_warnings(action="ignore"):
        result = tr.learn(model.problem(property), data, delta=0.01, sets="tied")
        certificate = certificate_of(result)
        assert certificate.problem.data.seen is not None and both(certificate) == (True, True)
        file = tmp_path / "temporal.cert"
        as_file(certificate).save(file)
        verdict = tr.verify(file, model=model, property=property, data=data)
    assert verdict.word == "proved"
    lower, upper = verdict.values["robust policy"]
    assert (lower, upper) == pytest.approx((result.interval.lower, result.interval.upper), abs=1e-9)
    method, number, successes, failures = certificate.problem.data.seen.tolist()
    assert successes + failures == number == 400 and successes != failures
    swapped = forged(certificate, seen=np.array([method, number, failures, successes]))
    assert both(swapped) == (False, False)
    assert both(claiming(certificate, lower + 1e-6, upper)) == (False, False)


STEPS = 'R{"steps"}=? [ C<=6 ]'


def earning() -> tr.ParametricMDP:
    parameters = tr.Parameters.box(p=(0.05, 0.95), q=(0.05, 0.95))
    p, q = parameters.symbols()
    rows = [(0, "a", {1: p, 2: 1 - p}), (1, "a", {0: q, 2: 1 - q}), (2, "", {2: 1})]
    return tr.build_from_rows(rows, parameters, labels={"end": [2]}, state_rewards={"steps": [1.0, 0.5, 0.0]})


def returned(is_planned: bool) -> Any:
    """200 episodes, their number fixed in advance or not."""
    if is_planned:
        model = earning()
        return tr.Simulator(model.instantiate(p=0.6, q=0.3), model_hash=model.hash()).episodes(200, seed=3)
    rng, episodes = np.random.default_rng(3), []
    for _ in range(200):
        state, steps = 0, []
        while state != 2:
            to = (1 - state) if rng.random() < (0.6, 0.3)[state] else 2
            steps.append((state, "a", to))
            state = to
        episodes.append(steps)
    return episodes


@pytest.mark.thinned(3)
@pytest.mark.parametrize("is_planned", [True, False])
@pytest.mark.parametrize("property", [STEPS, 'R{"steps"}=? [ F "end" ]'])
def test_returns_are_proved_beside_the_model(property: str, is_planned: bool, tmp_path: Path) -> None:
    """Both ends where returns have a limit, the lower one alone where not; the log is scored again."""
    model, data, file = earning(), returned(is_planned), tmp_path / "a.cert"
    result = tr.learn(model.problem(property), data, delta=0.01)
    tr.certify(result, file)
    verdict = tr.verify(file, model=model, property=property, data=data)
    assert verdict.word == "proved" and "; each returns at least" in verdict.assumes[-1]
    assert ("at most" in verdict.assumes[-1]) == (property == STEPS)
    assert ("fixed in advance" in verdict.assumes[-1]) == is_planned
    lower, upper = verdict.values["robust policy"]
    assert lower == pytest.approx(result.interval.lower, rel=1e-5)
    assert upper == pytest.approx(result.interval.upper, rel=1e-5)
    other = returned(is_planned)[:-1] if not is_planned else planned_less()
    with pytest.raises(tr.CannotCertify, match="other data"):
        tr.verify(file, model=model, property=property, data=other)


def planned_less() -> Counts:
    model = earning()
    return tr.Simulator(model.instantiate(p=0.6, q=0.3), model_hash=model.hash()).episodes(199, seed=3)


def test_forged_returns_prove_nothing_more() -> None:
    certificate = certificate_of(tr.learn(earning().problem(STEPS), returned(True), delta=0.01))
    data = certificate.problem.data
    rows, (share, low, high) = data.returns, data.seen_delta
    lower, upper = certificate.claims[0].lower, certificate.claims[0].upper
    assert check(certificate).valid and data.seen.tolist() == [2, 200, 0, 0]
    assert low == pytest.approx(1.0) and high == pytest.approx(4.5)
    assert not check(claiming(certificate, lower + 1e-5, upper)).valid
    assert not check(claiming(certificate, lower, upper - 1e-5)).valid
    assert not check(forged(certificate, seen_delta=np.array([share / 50, low, high]))).valid
    assert not check(forged(certificate, seen=None, seen_delta=None, returns=None)).valid
    assert not check(forged(certificate, returns=rows[rows[:, 0] == 1])).valid
    many = rows[rows[:, 0] == 0][-1:] * np.array([1, 1, 0]) + np.array([0, 0, 200])
    assert check(claiming(forged(certificate, returns=many), 1.0, 4.5)).word == "contradicted"
    cases: list[dict[str, Any]] = [
        {"seen": np.array([1, 200, 0, 0])},
        {"seen": np.array([3, 200, 1, 0])},
        {"seen": np.array([4, 200, 0, 0])},
        {"seen_delta": np.array([share])},
        {"seen_delta": np.array([share, high, low])},
        {"seen_delta": np.array([share, low])},
        {"returns": rows[::-1].copy()},
        {"returns": rows * np.array([1, 1, 0.5])},
        {"returns": rows + np.array([0, 0, 200])},
        {"returns": rows * np.array([1, 0, 1])},
        {"returns": None},
        {"anytime": True},
    ]
    for case in cases:
        with pytest.raises(tr.InputError, match="this is not a certificate"):
            check(forged(certificate, **case))
    reach = honest()
    with pytest.raises(tr.InputError, match="rewards that are known"):
        check(forged(reach, seen=data.seen, seen_delta=data.seen_delta, returns=rows))


def test_a_model_of_numbers_is_compared_without_them(tmp_path: Path) -> None:
    """What `learn --sets untied` made of it; other numbers are the same model then, another graph is not."""
    rows: list[Any] = [(0, "a", {1: 0.5, 2: 0.5}), (1, "a", {3: "1/3", 0: "2/3"})]
    ends: list[Any] = [(2, "", {2: 1}), (3, "", {3: 1})]
    model = tr.build_from_rows([*rows, *ends], labels={"goal": [3]})
    data = tr.Simulator(model.instantiate(), model_hash=model.hash()).episodes(300, seed=1)
    tr.certify(tr.learn(model.problem(REACH), data, delta=0.05, sets="untied"), tmp_path / "a.cert")
    for own in (model, model.instantiate()):
        verdict = tr.verify(tmp_path / "a.cert", model=own, property=REACH, data=data)
        assert verdict.word == "proved" and verdict.not_tied == ("policy",)
    other = tr.build_from_rows([(0, "a", {1: 0.5, 3: 0.5}), rows[1], *ends], labels={"goal": [3]})
    with pytest.raises(tr.CannotCertify, match="another model"):
        tr.verify(tmp_path / "a.cert", model=other, property=REACH)


def test_a_plan_that_was_reached_proves_a_fixed_number() -> None:
    """Clopper–Pearson of an adaptive log; the plan is stated."""
    counts = planned()
    design = replace(counts.design, kind=SamplingKind.ADAPTIVE)
    certificate = honest(data=replace(counts, design=design))
    data = certificate.problem.data
    assert data is not None and data.seen is not None
    assert (data.design, data.planned, data.episodes, int(data.seen[0])) == ("adaptive", 400, 400, 0)
    assert both(certificate) == (True, True)
    assert "their number was fixed in advance" in " ".join(check(certificate).assumes)
