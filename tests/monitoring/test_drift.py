"""Evidence for a change: the past's martingale exactly, its tangents, and the bound on a sum of terms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.best_fit import BestFit, log_chances_of
from tightrope.monitoring.drift import POWERS, Compensation, JointTerms, log_weight, weigh_terms
from tightrope.prism.load import load_prism_text
from tightrope.statistics.outcomes import Outcomes

TEXT = """mdp
const double p;
const double q;
module m
  s : [0..2] init 0;
  [a] s=0 -> p:(s'=1) + (1-p):(s'=2);
  [b] s=0 -> q/2:(s'=0) + q/2:(s'=1) + (1-q):(s'=2);
  [c] s=0 -> p*q:(s'=1) + (1-p*q):(s'=2);
  [d] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [e] s>0 -> (s'=0);
endmodule
"""


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    found = load_prism_text(TEXT, "m.prism", box="p=0.1:0.9,q=0.05:0.45")
    assert isinstance(found, ParametricMDP)
    return found


def exact(model: ParametricMDP, p: float, q: float) -> np.ndarray:
    """The probability of every transition."""
    values = {"p": Fraction(f"{p:.4f}"), "q": Fraction(f"{q:.4f}")}
    return np.array(model.instantiate(values).probability)


def per_expression(model: ParametricMDP, chance: np.ndarray) -> np.ndarray:
    found = np.zeros(len(model.expressions))
    found[model.expression] = chance
    return found


def predictions(fit: BestFit, *point: float) -> np.ndarray:
    inside, found = log_chances_of(fit, np.array([point]))
    assert inside[0]
    return found[0]


def filled(model: ParametricMDP, fit: BestFit, seed: int) -> tuple[Compensation, np.ndarray]:
    """A few periods of events drawn at (0.4, 0.3), predicted from all around; and events per expression."""
    rng = np.random.default_rng(seed)
    found = Compensation(fit, Outcomes.of(model))
    chance = exact(model, 0.4, 0.3)
    start = model.transition_start
    total = np.zeros(len(model.expressions))
    for point in ((0.5, 0.2), (0.45, 0.25), (0.38, 0.32)):
        drawn = np.concatenate(
            [
                start[c] + rng.choice(start[c + 1] - start[c], 40, p=chance[start[c] : start[c + 1]])
                for c in range(4)
            ]
        )
        index, count = np.unique(drawn, return_counts=True)
        found.add(index, count)
        np.add.at(total, model.expression[index], count)
        found.close(predictions(fit, *point))
    return found, total


def test_weights_of_candidates_sum_to_less_than_one() -> None:
    weight = np.exp(log_weight(np.arange(1.0, 20001.0)))
    tail = 128.5**0.25 / 20128.5**0.25  # the integral of the rest, which is more than its sum
    assert 0.999 < weight.sum() + tail <= 1.0
    assert np.all(np.diff(weight, 2) > 0.0)  # convex: each is at most its integral from ½ before to ½ after


@pytest.mark.parametrize("truth", [(0.4, 0.3), (0.1, 0.45)])
def test_the_compensated_power_of_past_predictions_is_a_martingale(
    model: ParametricMDP, truth: tuple[float, float]
) -> None:
    """All sequences of three events, predicted from the past and chosen by a policy that looks at it."""
    fit, outcomes = BestFit.of(model), Outcomes.of(model)
    chance = exact(model, *truth)
    at = per_expression(model, chance)
    start = model.transition_start
    mean = np.zeros(len(POWERS))
    for picks in itertools.product(range(3), repeat=3):
        past = Compensation(fit, outcomes)
        likelihood, ratio, choice, low = 1.0, 0.0, 0, 0.3
        for pick in picks:
            transition = int(start[choice]) + pick
            if transition >= start[choice + 1]:
                likelihood = 0.0
                break
            predicted = predictions(fit, low, 0.2)
            likelihood *= chance[transition]
            expression = int(model.expression[transition])
            ratio += predicted[expression] - math.log(at[expression])
            past.add(np.array([transition]), np.array([1]))
            past.close(predicted)
            choice, low = (choice + 1 + pick) % 3, low + 0.1 * pick
        if likelihood > 0.0:
            mean += likelihood * np.exp(POWERS * ratio + past.given_back(at)[-1])
    assert np.all(mean <= 1.0 + 1e-12) and np.all(mean > 1.0 - 1e-9)


def test_tangents_of_what_is_given_back_lie_above_and_touch(model: ParametricMDP) -> None:
    fit = BestFit.of(model)
    past, _ = filled(model, fit, 1)
    share = np.array([[0.2, 0.5, 0.3], [0.1, 0.0, 0.6], [0.0, 1.0, 0.25]])
    here = per_expression(model, exact(model, 0.42, 0.27))
    tangent = past.tangent(here, share)

    def given(chance: np.ndarray) -> float:
        return float((np.diff(past.given_back(chance), axis=0) * share).sum())

    assert tangent.level + tangent.tilt @ here == pytest.approx(-given(here), abs=1e-9)
    assert given(here) > 0.1
    for p, q in itertools.product(np.linspace(0.1, 0.9, 9), np.linspace(0.05, 0.45, 9)):
        there = per_expression(model, exact(model, p, q))
        assert -given(there) <= tangent.level + tangent.tilt @ there + 1e-12


def test_a_sum_of_terms_is_bounded_from_below_and_closely(model: ParametricMDP) -> None:
    fit = BestFit.of(model)
    past, total = filled(model, fit, 2)
    since = np.zeros((2, len(total)))
    since[:, model.expression[model.transition_start[:3]]] = [[30.0, 10.0, 8.0], [22.0, 6.0, 9.0]]
    before = np.stack([total, total + since[0] - since[1]])
    closed = np.array([3, 2])
    terms = JointTerms(fit, past, before, since, closed)
    base = np.array([[-150.0, -80.0, -60.0], [-149.0, -81.0, -59.0]])
    shares, most, _ = terms.bound(base, base, fit.centre)
    found = weigh_terms(shares, base, most)
    assert shares.sum() == pytest.approx(1.0)
    values = []
    for p, q in itertools.product(np.linspace(0.1, 0.9, 41), np.linspace(0.05, 0.45, 41)):
        chance = per_expression(model, exact(model, p, q))
        logs = np.log(np.where(chance > 0.0, chance, 1.0))
        explained = POWERS * (before @ logs)[:, None] + (since @ logs)[:, None]
        values.append(np.logaddexp.reduce((base - explained + past.given_back(chance)[closed]).ravel()))
    assert found <= min(values) and found > min(values) - 0.15
