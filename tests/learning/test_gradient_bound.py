"""Many shared parameters: the ball of a likelihood, wealth and values as quadratics, what `learn` says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from effort import repeats
from tightrope.certify.certify import OVER_THE_SETS, learned_file
from tightrope.certify.learned import certificate_of
from tightrope.coupled.ball import LikelihoodBall, Wealth, ball_of, largest, least_eigenvalue, wealth_below
from tightrope.data.design import SamplingKind
from tightrope.learning.coupling import GradientBound
from tightrope.learning.options import LearnOptions
from tightrope.learning.pipeline import Pipeline, Serves
from tightrope.regions.joint import split
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import prequential
from tightrope_check.checker import check

QUESTION = 'Pmax=? [ F "goal" ]'
SIZE = 13


@cache
def shared() -> tuple[Any, dict[str, Fraction], Any]:
    """Thirteen parameters; each of eight rows leads to the goal and to the end by sums of two."""
    random = np.random.default_rng(5)
    truth = {f"p{i}": Fraction(int(random.integers(100, 400)), 1000) for i in range(SIZE)}
    parameters = tr.Parameters.box(**dict.fromkeys(truth, ("0.02", "0.6")))
    p, rows, states = parameters.symbols(), [], 8
    for s in range(states):
        for action in range(2):
            i, j, k = random.choice(SIZE, size=3, replace=False)
            goal, end = (p[i] + p[k]) / 4, (p[j] + p[k]) / 6
            onward = (s + 1 + 3 * action) % states
            rows.append((s, f"a{action}", {states: goal, states + 1: end, onward: 1 - goal - end}))
    rows += [(states, "", {states: 1}), (states + 1, "", {states + 1: 1})]
    model = tr.build_from_rows(
        rows, parameters, labels={"goal": [states]}, initial=dict.fromkeys(range(states), "1/8")
    )
    return model, truth, model.instantiate(**truth)


def data(episodes: int, seed: int, planned: bool = True) -> Any:
    model, _, truth = shared()
    counts = tr.Simulator(truth, model_hash=model.hash(), threads=1).episodes(episodes, seed=seed)
    policy = first_actions()
    design = replace(counts.design, bet_on=(policy.digest,))
    if not planned:
        design = replace(design, kind=SamplingKind.ADAPTIVE, planned=None)
    return replace(counts, design=design)


def first_actions() -> Any:
    model = shared()[0]
    names = [model.structure.action_name(c) for c in range(model.choices)]
    return tr.Policy(model, [float(name != "a1") for name in names])


@cache
def along(planned: bool = True, text: str = QUESTION) -> tuple[Pipeline, GradientBound]:
    model = shared()[0]
    options = LearnOptions(outcomes="none")
    chain = Pipeline.start(
        model.problem(text),
        data(20_000, 1, planned),
        0.01,
        options=options,
        policy=first_actions(),
        serves=Serves.REFINED,
    )
    decisions = chain.decide(options)
    assert decisions.along
    return chain, GradientBound.of(chain, chain.prepare(decisions))


def true_value(text: str = QUESTION, policy: Any = None) -> float:
    model, _, truth = shared()
    solution = tr.solve(truth.problem(text), policy=None if policy is None else policy.probability)
    return float(solution.lower[model.initial])


def inside(ball: LikelihoodBall, number: int, seed: int) -> np.ndarray:
    """Points of the ball, most of them near its surface."""
    random = np.random.default_rng(seed)
    y = random.standard_normal((number, len(ball.centre)))
    return y / np.linalg.norm(y, axis=1)[:, None] * ball.radius * random.random((number, 1)) ** 0.1


def test_the_ball_holds_all_that_the_likelihood_leaves() -> None:
    model = shared()[0]
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    evidence = prequential(Outcomes.of(model), data(2000, 3), 0.01)
    x = LikelihoodMaximiser.of(coordinates, functions).lifted(evidence.estimate)
    size = len(functions)
    box = coordinates.lower, coordinates.upper
    ball = ball_of(evidence, functions, x, box, (np.zeros(size), np.ones(size)))
    assert ball is not None
    inverse, random, farthest, met = (
        np.linalg.inv(ball.axes),
        np.random.default_rng(1),
        0.0,
        evidence.weight > 0,
    )
    for _ in range(300):  # on rays from the estimate to the end of the region, within the domain
        way = ball.axes @ random.standard_normal(len(x))
        low, high = 0.0, 100.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            f = functions.constant + functions.linear @ (x + middle * way)
            good = np.all(f[met] > 0) and np.all(f <= 1)
            good = good and float(evidence.weight[met] @ np.log(f[met])) >= evidence.threshold
            low, high = (middle, high) if good else (low, middle)
        end = x + low * way
        f = functions.constant + functions.linear @ end
        assert np.all(f >= ball.low - 1e-9) and np.all(f <= ball.high + 1e-9)
        farthest = max(farthest, float(np.linalg.norm(inverse @ (end - ball.centre))))
    assert 0.6 * ball.radius < farthest <= ball.radius


@pytest.mark.thinned(2)
@pytest.mark.parametrize("planned", [True, False])
def test_wealth_is_never_below_its_quadratic(planned: bool) -> None:
    chain, found = along(planned)
    ball, slab = found.ball, found.slab
    assert ball is not None and slab is not None and len(slab.every) == (1 if planned else 12)
    wide = replace(ball, low=0.3 * ball.low, high=np.minimum(2.0 * ball.high, 1.0), radius=3.0 * ball.radius)
    closest = np.inf
    for own in (ball, wide):  # in the wide one some signatures do not take part everywhere
        for side in (0, 1):
            for wagers in slab.wagers[side][-4:]:
                near = np.clip(ball.middle, own.low, own.high)
                below = wealth_below(wagers, chain.outcomes, own, near)
                for y in inside(own, 20, side):
                    f = own.middle + own.gradient @ y
                    if np.any(f < own.low) or np.any(f > own.high):
                        continue
                    wealth = wagers.log_wealth(chain.outcomes, f)
                    bound = below.constant + below.slope @ y - y @ below.bend @ y
                    assert bound <= wealth + 1e-9 * (1 + abs(wealth))
                    closest = min(closest, wealth - bound)
    assert closest < 1.0


def test_the_largest_value_is_a_bound_and_close() -> None:
    random = np.random.default_rng(2)
    for size in (2, 5, 14):
        curve = random.standard_normal((size, size))
        value = 0.3, random.standard_normal(size), 0.5 * (curve + curve.T)
        y = random.standard_normal((4000, size))
        y *= 2.0 / np.linalg.norm(y, axis=1)[:, None]
        best = 0.3 + y @ value[1] + np.einsum("ki,ij,kj->k", y, value[2], y)
        for _ in range(60):  # ascent on the sphere from the best of them
            y += 0.05 * (value[1] + 2.0 * y @ value[2])
            y *= 2.0 / np.maximum(np.linalg.norm(y, axis=1)[:, None], 2.0)
            best = np.maximum(best, 0.3 + y @ value[1] + np.einsum("ki,ij,kj->k", y, value[2], y))
        bound = largest(value, None, 0.0, 2.0)
        assert best.max() <= bound <= best.max() + 1e-3 * (1 + abs(best.max()))
        wealth = Wealth(0.5, 3.0 * value[1], np.eye(size) * 0.01)
        met = largest(value, wealth, 1.0, 2.0)
        held = 0.5 + y @ wealth.slope - np.einsum("ki,ij,kj->k", y, wealth.bend, y) < 1.0
        over = 0.3 + y @ value[1] + np.einsum("ki,ij,kj->k", y, value[2], y)
        assert met <= bound and over[held].max(initial=-np.inf) <= met
        flat = largest(
            (0.0, value[1], np.zeros((size, size))),
            Wealth(0.5, 3.0 * value[1], np.zeros((size, size))),
            1.0,
            9.0,
        )
        assert 0.5 / 3.0 <= flat <= 0.5 / 3.0 + 1e-3  # slope·y ≤ (level − constant)/3 is all there is


def test_eigenvalues_are_bounded_from_below() -> None:
    matrix = np.array([[2.0, 1.0], [1.0, 2.0]])  # 1 and 3
    least = least_eigenvalue(matrix, 0.5)
    assert least is not None and 0.99 < least <= 1.0
    assert least_eigenvalue(np.array([[1.0, 1.0], [1.0, 1.0]]), 0.5) is None
    assert least_eigenvalue(-np.eye(3), 0.5) is None


def test_learn_narrows_along_the_value_and_holds() -> None:
    model, policy = shared()[0], first_actions()
    problem, value = model.problem(QUESTION), true_value(policy=policy)
    common: dict[str, Any] = {"delta": 0.01, "policy": policy, "outcomes": "none"}
    for seed, planned in ((1, True), (2, False))[: repeats(2)]:
        counts = data(20_000, seed, planned)
        own = tr.learn(problem, counts, **common)
        sets = tr.learn(problem, counts, region="polytope", **common)
        assert own.value is not None and sets.value is not None
        assert value in own.value.interval and value in sets.value.interval
        assert own.value.interval.width < 0.4 * sets.value.interval.width
        assert own.guarantee > sets.guarantee and true_value(policy=own.robust.policy) in own.interval
        of = {"robust policy", "policy that was bet on", "given policy"}
        assert {row[1] for row in own.tried} == of and len(own.tried) == 6
        assert {row[0] for row in own.tried} == {"expression", "along the value"}
        assert "a likelihood and bets along values" in own.decisions.reasons[-1]
        assert own.ledger.delta == 0.01
        assert own.intervals is not None and own.intervals.ledger.delta == pytest.approx(0.004)


def test_other_ends_other_questions() -> None:
    for text in ('Pmin=? [ F "goal" ]', 'Pmax=? [ F<=5 "goal" ]', 'Pmax=? [ G !"goal" ]'):
        chain, found = along(True, text)
        policy = first_actions()
        solved = chain.solve(chain.prepare(chain.decide(chain.options)), chain.options, np.inf)
        assert solved.value is not None
        seen = found.range_of(chain, solved.value)
        assert not isinstance(seen, str), seen
        assert true_value(text, policy) in seen and seen.width < 0.1


def test_few_data_say_why_and_keep_the_sets() -> None:
    model = shared()[0]
    result = tr.learn(model.problem(QUESTION), data(60, 1), delta=0.01, outcomes="none")
    assert any("along the value of the robust policy" in note for note in result.notes)
    assert true_value() >= result.guarantee


def test_certificates_prove_the_sets() -> None:
    model, counts = shared()[0], data(20_000, 1)
    result = tr.learn(model.problem(QUESTION), counts, delta=0.01, outcomes="none")
    certificate = certificate_of(result, counts)
    (claim,) = certificate.claims
    sets = [row[2].lower for row in result.tried if row[0] == "expression"]
    assert claim.lower == pytest.approx(min(sets, key=lambda one: abs(one - claim.lower)), abs=1e-6)
    assert claim.lower < result.guarantee - 0.05
    verdict = check(certificate)
    assert verdict.valid, verdict


@cache
def nine() -> tuple[Any, Any]:
    """Nine parameters, each of six rows with two of them."""
    parameters = tr.Parameters.box(**{f"p{i}": ("0.02", "0.3") for i in range(9)})
    p, random, rows = parameters.symbols(), np.random.default_rng(2), []
    for s in range(6):
        for action in range(2):
            i, j = random.choice(9, size=2, replace=False)
            rows.append((s, f"a{action}", {7: p[i], (s + 2) % 6: p[j], s + 1: 1 - p[i] - p[j]}))
    rows += [(6, "", {6: 1}), (7, "", {7: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [6]})
    return model, model.instantiate([Fraction(int(one), 1000) for one in random.integers(50, 250, size=9)])


def test_of_nine_parameters_the_joint_region_has_the_evidence() -> None:
    """No further part of δ: likelihood, bets and ledger are the region's, and the sets are certified."""
    model, truth = nine()
    counts = tr.Simulator(truth, model_hash=model.hash(), threads=1).episodes(3000, seed=4)
    options = LearnOptions(outcomes="none")
    chain = Pipeline.start(model.problem(QUESTION), counts, 0.01, options=options, serves=Serves.REFINED)
    decisions = chain.decide(options)
    assert decisions.along and not decisions.spends_along and decisions.region.value == "joint"
    prepared = chain.prepare(decisions)
    found = GradientBound.of(chain, prepared)
    assert found.ledger is prepared.region.ledger and found.slab is prepared.region.slab
    assert prepared.intervals.ledger.delta == pytest.approx(split(0.01, bets=True)[0], rel=0)
    result = tr.learn(model.problem(QUESTION), counts, delta=0.01, outcomes="none")
    quick = tr.learn(model.problem(QUESTION), counts, delta=0.01, outcomes="none", effort="quick")
    single = tr.learn(model.problem(QUESTION), counts, delta=0.01, outcomes="none", region="polytope")
    true = float(tr.solve(truth.problem(QUESTION)).lower[model.initial])
    assert result.interval.lower <= true <= result.interval.upper
    assert result.interval.width < 0.75 * min(quick.interval.width, single.interval.width)
    assert result.tried[-1][4] == "a likelihood and bets, the region's" and result.ledger == quick.ledger
    file = learned_file(result)
    assert file.notes == (OVER_THE_SETS,) and learned_file(quick).notes == ()
    assert file.values["robust policy"][0] == pytest.approx(quick.guarantee, abs=1e-6)
    assert check(certificate_of(result, counts)).valid


def test_quick_and_chosen_regions_stay_as_they_were() -> None:
    model, counts = shared()[0], data(500, 1)
    for options in ({"effort": "quick"}, {"region": "polytope"}, {"sets": "tied"}):
        result = tr.learn(model.problem(QUESTION), counts, outcomes="none", **options)
        assert not result.decisions.along and not result.tried
