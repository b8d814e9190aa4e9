"""Certificates of chains in continuous time: at points, over domains, with learned rates; forgeries."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import tightrope as tr
from adversary.archive import Forgery
from tightrope.certify.rates import learned_rate_certificate, rate_certificate, rate_problem
from tightrope.cli.app import run
from tightrope.errors import CannotCertify
from tightrope.prism.load import load_prism_text
from tightrope.statistics.rates import gamma_poisson
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.numbers import RATIONAL
from tightrope_check.rates import PoissonWindow
from tightrope_check.statistics.rates import RateClass, excludes

CHAIN = """ctmc
const double lam; const double mu;
module m
 s : [0..3] init 0;
 [] s=0 -> 2*lam : (s'=1);
 [fail] s=1 -> mu : (s'=0) + lam : (s'=2);
 [] s=2 -> 2*mu : (s'=1) + lam*mu : (s'=3);
 [] s=3 -> 1 : (s'=0);
endmodule
label "on" = s=1; label "dead" = s=3; label "bad" = s=2;
rewards "cost" s=1 : 2; s=2 : 3; [fail] true : 1; endrewards
"""
TRUTH = {"lam": Fraction(1, 2), "mu": Fraction(1)}
ASKED = [
    'P=? [ F<=2 "dead" ]',
    'P=? [ G<=2 !"dead" ]',
    'P=? [ !"bad" U[1,3] "on" ]',
    'P=? [ !"on" U>=1 "dead" ]',
    'P=? [ !"bad" U "dead" ]',
    'R{"cost"}=? [ C<=3 ]',
    'R{"cost"}=? [ I=3 ]',
    'R{"cost"}=? [ F "dead" ]',
    'R{"cost"}=? [ S ]',
    'S=? [ "on" ]',
]


@pytest.fixture(scope="module")
def model() -> Any:
    return load_prism_text(CHAIN, box="lam=0.1:2,mu=0.3:3")


@pytest.fixture(scope="module")
def log(model: Any) -> Any:
    return tr.simulate_times(model.instantiate(TRUTH), 200, seed=1, time=20)


def truth(question: str) -> float:
    """By matrix exponentials and linear equations, in float64."""
    rates = {(0, 1): 1.0, (1, 0): 1.0, (1, 2): 0.5, (2, 1): 2.0, (2, 3): 0.5, (3, 0): 1.0}

    def generator(still: tuple[int, ...]) -> np.ndarray:
        q = np.zeros((4, 4))
        for (a, b), rate in rates.items():
            if a not in still:
                q[a, b] += rate
                q[a, a] -= rate
        return q

    earned = np.array([0.0, 2 + 1.5, 3.0, 0.0])
    unit = np.eye(4)
    pi = np.linalg.solve(np.vstack([generator(()).T[:3], np.ones(4)]), unit[3])
    to_dead = np.append(np.linalg.solve(-generator(())[:3, :3], earned[:3]), 0.0)
    later = expm(2 * generator((1, 2))) @ unit[1]
    until = expm(generator((2,))) @ np.where([1, 1, 0, 1], later, 0)
    block = np.zeros((5, 5))
    block[:4, :4], block[:4, 4] = generator(()), earned
    return {
        'P=? [ F<=2 "dead" ]': (expm(2 * generator((3,))) @ unit[3])[0],
        'P=? [ G<=2 !"dead" ]': 1 - (expm(2 * generator((3,))) @ unit[3])[0],
        'P=? [ !"bad" U[1,3] "on" ]': until[0],
        'P=? [ !"on" U>=1 "dead" ]': 0.0,
        'P=? [ !"bad" U "dead" ]': 0.0,
        'R{"cost"}=? [ C<=3 ]': expm(3 * block)[0, 4],
        'R{"cost"}=? [ I=3 ]': (expm(3 * generator(())) @ np.array([0, 2.0, 3, 0]))[0],
        'R{"cost"}=? [ F "dead" ]': to_dead[0],
        'R{"cost"}=? [ S ]': pi @ earned,
        'S=? [ "on" ]': pi[1],
    }[question]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("question", ASKED)
def test_certificates_hold_the_true_value_in_both_arithmetics(
    model: Any, log: Any, question: str, tmp_path: Path
) -> None:
    """At the point closely, over the domain and from data around it, in both arithmetics;
    what `learn` says by intervals of rates is what is certified, or a little more."""
    value, path = truth(question), tmp_path / "a.cert"
    problem = tr.Problem(model, question)
    result = tr.learn(problem, log, delta=0.05, region="polytope")
    for subject, words in ((problem, {"at": TRUTH}), (problem, {}), (result, {})):
        low, high = tr.certify(subject, path, overwrite=True, **words)["value"]
        assert low <= value + 1e-9 and value - 1e-9 <= high
        if words:
            assert high - low <= 1e-6 * max(1, value)
        assert tr.verify(path).valid
    assert tr.verify(path, exact=True).valid
    assert low >= result.interval.lower - 1e-6 * max(1, abs(low))
    assert high <= result.interval.upper + 1e-6 * max(1, abs(high))
    tied = tr.verify(path, model=model, property=question, data=log)
    assert tied.word == "proved" and tied.not_tied == ()


def test_random_chains_lie_within_their_certificates() -> None:
    """Known rates, among them some that differ by a factor of a thousand; the closest end is a rational."""
    draw = np.random.default_rng(5)
    for _ in range(6):
        size = int(draw.integers(2, 6))
        rows = []
        for s in range(size):
            others = draw.permutation([t for t in range(size) if t != s])[: draw.integers(1, size)]
            rows.append((s, {int(t): Fraction(int(draw.integers(1, 2000)), 500) for t in others}))
        chain = tr.build_ctmc_from_rows(rows, labels={"end": [size - 1]}).instantiate()
        generator = np.zeros((size, size))
        for s, row in rows:
            for t, rate in row.items():
                generator[s, t] += float(rate) * (s != size - 1)
                generator[s, s] -= float(rate) * (s != size - 1)
        time = Fraction(int(draw.integers(1, 30)), 10)
        expected = expm(float(time) * generator)[0, size - 1]
        problem = rate_problem(chain, tr.Problem(chain, f'P=? [ F<={float(time)} "end" ]').query, ())
        claim = rate_certificate(problem).claims[0]
        assert claim.lower - 1e-12 <= expected <= claim.upper + 1e-12 and claim.upper - claim.lower < 1e-9


@pytest.mark.parametrize("mean", [Fraction(0), Fraction(1, 3), Fraction(5), Fraction(4001, 20)])
def test_poisson_windows_against_many_digits(mean: Fraction) -> None:
    getcontext().prec = 60
    window = PoissonWindow.of(mean)
    rate = Decimal(mean.numerator) / Decimal(mean.denominator)
    for upward in (False, True):
        sums = Fraction(0)
        for k, weight in enumerate(window.weights(upward), start=window.first):
            exact = (-rate).exp() * (rate**k if k else 1) / math.factorial(k)
            near = Fraction(exact)
            assert (weight >= near if upward else weight <= near) or abs(weight / near - 1) < Fraction(
                1, 10**50
            )
            assert abs(weight - near) <= Fraction(1, 10**20)
            sums += weight
        assert abs(sums - 1) < Fraction(1, 10**20)
        later = window.later(upward)
        assert all(a >= b for a, b in pairwise(later)) and len(later) == window.last + 1
    assert all(a <= b for a, b in zip(window.later(False), window.later(True), strict=True))


@pytest.mark.parametrize(("jumps", "exposure"), [(0, 3.0), (1, 0.5), (40, 17.25), (12345, 1e4)])
def test_rates_are_excluded_where_the_mixture_says_so(jumps: int, exposure: float) -> None:
    """The ends of the confidence sequence are, and what is a little further inside is not."""
    one = RateClass({}, jumps, Fraction(exposure), Fraction(3, 4))
    low, high = gamma_poisson(jumps, exposure, 0.75, 0.01)
    level = Fraction(0.01)
    assert excludes(one, Fraction(high * (1 + 1e-9)), level, True)
    assert not excludes(one, Fraction(high * (1 - 1e-6)), level, True)
    if jumps:
        assert excludes(one, Fraction(low * (1 - 1e-9)), level, False)
        assert not excludes(one, Fraction(low * (1 + 1e-6)), level, False)
        assert not excludes(one, Fraction(low), level, True) and not excludes(
            one, Fraction(high), level, False
        )


FORGED = {
    "a larger lower rate": ("learned.rate_lower", lambda a: a * 1.01),
    "a smaller upper rate": ("learned.rate_upper", lambda a: a * 0.99),
    "a rate on the other side": ("learned.rate_upper", lambda a: a * 0.5),
    "less confidence asked of the rates": ("problem.data.delta", lambda d: d / 2),
    "a longer exposure": ("problem.data.waited", lambda a: a * 1.01),
    "fewer jumps": ("problem.data.batch_count", lambda a: np.maximum(a - 200, 1)),
    "another time": ("problem.time", lambda t: [t[0], "21/10"]),
    "a higher lower end": ("claims.0.lower", lambda x: x * 1.001),
    "a lower upper end": ("claims.0.upper", lambda x: x * 0.999),
    "no intervals": ("learned.rate_lower", lambda a: a[:-1]),
    "an infinite lower rate": ("learned.rate_lower", lambda a: a + math.inf),
    "a negative time": ("problem.time", lambda t: ["-1", t[1]]),
    "three times": ("problem.time", lambda t: [*t, "3"]),
    "no exposure": ("problem.data.waited", None),
    "no time": ("problem.time", None),
    "rewards": ("problem.objective.kind", lambda k: "TOTAL"),
    "an average": ("problem.objective.kind", lambda k: "AVERAGE"),
    "another target": ("problem.objective.target", lambda a: ~a),
    "a step": ("problem.objective.upper_steps", lambda a: 3),
    "an assumed support": ("problem.assumed_support", lambda a: 0.1),
    "other rates": ("problem.polynomial", lambda p: [f"{p[1]}", *p[1:]]),
    "another method": ("problem.data.method", lambda m: "beta-binomial"),
    "a given policy": ("claims.0.name", lambda n: "given policy"),
    "more successes": ("problem.data.seen", lambda a: a + np.array([0, 0, 150, -150])),
}


@pytest.mark.parametrize("name", FORGED)
def test_no_forgery_is_accepted(name: str, tmp_path: Path, honest: Path) -> None:
    """Each changes one field, so that what is claimed does not follow any more, or nothing is said at all."""
    forgery = Forgery.of(honest)
    field, change = FORGED[name]
    if change is None:
        del forgery.arrays[field]
    else:
        forgery[field] = change(forgery[field])
    path = forgery.save(tmp_path / "forged.cert")
    for exact in (False, True):
        try:
            accepted = tr.verify(path, exact=exact).valid
        except (tr.InputError, CannotCertify):
            accepted = False
        assert not accepted


@pytest.fixture(scope="module")
def honest(model: Any, log: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rates") / "honest.cert"
    tr.certify(tr.learn(tr.Problem(model, ASKED[0]), log, delta=0.05), path)
    assert tr.verify(path).valid
    return path


def test_what_is_not_the_user_s_own_is_named(model: Any, log: Any, honest: Path) -> None:
    other = tr.simulate_times(model.instantiate(TRUTH), 200, seed=2, time=20)
    for words, why in (
        ({"property": 'P=? [ F<=3 "dead" ]'}, "another property: 'time' differs"),
        ({"property": ASKED[0], "data": other}, "other data: '"),
        ({"data": log}, "what episodes came to"),
    ):
        with pytest.raises(CannotCertify, match=why):
            tr.verify(honest, model=model, **words)
    discrete = tr.build_from_rows([(0, "a", {0: 1})])
    with pytest.raises(CannotCertify, match="a chain in continuous time, and your model is none"):
        tr.verify(honest, model=discrete)
    narrower = load_prism_text(CHAIN, box="lam=0.1:1.9,mu=0.3:3")
    with pytest.raises(CannotCertify, match=r"another model: .* lies in .* states the range of the file"):
        tr.verify(honest, model=narrower)


def test_what_cannot_be_certified_says_why(model: Any, log: Any, tmp_path: Path) -> None:
    for question in ('P=? [ F<=2 "dead" || F "on" ]', 'P=? [ F ("on" & (F "bad")) ]'):
        with pytest.raises(tr.InputError):
            tr.certify(tr.Problem(model, question), tmp_path / "a.cert", at=TRUTH)
    few = tr.simulate_times(model.instantiate(lam=2, mu=3), 40, seed=1, time=50)
    narrow = tr.Problem(model, ASKED[0])
    result = tr.learn(narrow, few, delta=0.05)
    proof = learned_rate_certificate(result)
    assert check(proof).valid and check(proof, RATIONAL).valid
    assert not list(tmp_path.glob("*.cert"))


def test_a_target_at_once_counts_though_it_is_not_allowed(tmp_path: Path) -> None:
    """From time 0 on is at any time; a step later, the initial state may not be left by what is allowed."""
    file, proof = tmp_path / "two.prism", tmp_path / "proof"
    file.write_text("ctmc module m s:[0..1] init 0; [] s=0 -> 2:(s'=1); [] s=1 -> 1:(s'=0); endmodule")
    for time, value in (("0", 1), ("1", 0)):
        asked = ["--prop", f"P=? [ s=1 U>={time} s=0 ]", "--certificate", str(proof), "--overwrite"]
        assert run(["check", str(file), *asked]) == 0
        assert run(["verify", str(proof), "--model", str(file), "--prop", asked[1], "--json"]) == 0
        (claim,) = load(proof).certificate.claims
        assert claim.lower <= value <= claim.upper and claim.upper - claim.lower < 1e-9


@pytest.mark.parametrize("asked", ["R=? [ I=0.25 ]", "R=? [ C<=2 ]"])
def test_rewards_of_a_chain_that_are_all_0_are_0(asked: str, tmp_path: Path) -> None:
    rows = [(0, {1: 2}), (1, {0: 3})]
    chain = tr.build_ctmc_from_rows(rows, state_rewards={"": [0, 0]}).instantiate()
    proved = tr.certify(tr.Problem(chain, asked), tmp_path / "c.cert")
    assert tuple(proved["value"]) == (0, 0) and tr.verify(tmp_path / "c.cert", exact=True).valid
