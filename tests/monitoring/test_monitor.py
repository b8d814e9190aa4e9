"""Evidence against a model: bounds against exact numbers, false alarms, and what is found and named.

Also of `monitoring/e_process.py`.
"""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.best_fit import BestFit
from tightrope.monitoring.departures import free_prediction
from tightrope.monitoring.monitor import Monitor, next_look
from tightrope.monitoring.promise import ReturnsWatch
from tightrope.prism.load import load_prism_text

TEXT = """mdp
const double p;
const double q;
module m
  s : [0..3] init 0;
  [a] s=0 -> p:(s'=1) + (1-p):(s'=2);
  [a] s=1 -> p:(s'=1) + (1-p):(s'=3);
  [b] s=0 -> q:(s'=1) + p*q:(s'=2) + (1-q-p*q):(s'=3);
  [c] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [d] s=1 -> p/2:(s'=0) + (1-p/2):(s'=1);
  [e] s>1 -> (s'=0);
endmodule
"""


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    found = load_prism_text(TEXT, "m.prism", box="p=0.1:0.9,q=0.05:0.45")
    assert isinstance(found, ParametricMDP)
    return found


def chances(model: ParametricMDP, p: float, q: float) -> np.ndarray:
    return np.array(model.instantiate({"p": Fraction(str(p)), "q": Fraction(str(q))}).probability)


def draw(model: ParametricMDP, chance: np.ndarray, events: int, rng: np.random.Generator) -> np.ndarray:
    """Choices in turn, outcomes at random."""
    start = model.transition_start
    wide = np.flatnonzero(np.diff(start) > 1)
    found = np.empty(events, dtype=np.int64)
    for choice, places in ((c, np.arange(i, events, len(wide))) for i, c in enumerate(wide)):
        low, high = start[choice], start[choice + 1]
        found[places] = low + rng.choice(high - low, len(places), p=chance[low:high] / chance[low:high].sum())
    return found


def action_choice(model: ParametricMDP, action: str, state: int = 0) -> int:
    structure = model.structure
    first, last = structure.choice_start[state], structure.choice_start[state + 1]
    return next(c for c in range(first, last) if structure.action_name(c) == action)


def test_the_best_fit_is_bounded_from_above_and_closely(model: ParametricMDP) -> None:
    fit = BestFit.of(model)
    rng = np.random.default_rng(1)
    grid = [(p, q) for p in np.linspace(0.1, 0.9, 41) for q in np.linspace(0.05, 0.45, 41)]
    for events in (3, 50, 2000):
        seen = draw(model, chances(model, 0.6, 0.2), events, rng)
        weight = np.bincount(model.expression[seen], minlength=len(model.expressions)).astype(float)
        upper = fit.upper(weight, fit.search(weight))
        used = np.flatnonzero(weight)
        best = max(
            sum(
                weight[e] * math.log(float(model.expressions.polynomial(int(e)).evaluate([p, q])))
                for e in used
            )
            for p, q in (
                grid if events < 2000 else [(x, y) for x, y in grid if abs(x - 0.6) + abs(y - 0.2) < 0.1]
            )
        )
        assert best <= upper
        wherever = fit.upper(weight, fit.centre)
        assert upper <= wherever + 1e-6  # any point gives a bound, the best fit the best
        assert upper - best < 1.5  # p·q is free within its envelope, which costs a little


def test_the_bound_is_tight_without_products() -> None:
    coin = load_prism_text(
        "dtmc const double p; module m s:[0..1] init 0; [] true -> p:(s'=0) + (1-p):(s'=1); endmodule",
        "coin.prism",
        box="p=0.2:0.9",
    )
    fit = BestFit.of(coin)
    for heads, tails, best in ((30, 70, 0.3), (5, 95, 0.2), (99, 1, 0.9), (1, 0, 0.9)):
        weight = np.zeros(len(coin.expressions))
        for number, expression in ((heads, "p"), (tails, "1 - p")):
            index = next(
                e for e in range(len(weight)) if coin.expressions.polynomial(e).text(["p"]) == expression
            )
            weight[index] = number
        exact = heads * math.log(best) + tails * math.log(1 - best)
        assert exact <= fit.upper(weight, fit.search(weight)) < exact + 1e-2


def test_free_predictions_are_those_of_the_half_mixture() -> None:
    """Against the product of (count so far + ½)/(events so far + k/2), in rationals."""
    rng = np.random.default_rng(3)
    seen = rng.integers(0, 12, 7).astype(float)
    part = np.array([0, 0, 1, 1, 1, 2, 2], dtype=np.int32)
    width = np.array([2, 3, 2])
    found = free_prediction(seen, part, 3, width)
    for number in range(3):
        counts = seen[part == number].astype(int)
        value, total = Fraction(1), 0
        for count in counts:
            for k in range(count):
                value *= Fraction(2 * k + 1, 2) / (total + Fraction(int(width[number]), 2))
                total += 1
        exact = math.log(value)
        assert exact - 1e-8 < found[number] <= exact + 1e-13


def test_looks_do_not_depend_on_what_is_seen_nor_on_portions(model: ParametricMDP) -> None:
    data = draw(model, chances(model, 0.6, 0.2), 700, np.random.default_rng(5))
    whole, portions = Monitor(model), Monitor(model)
    whole.observe(data)
    for part in np.array_split(data, 13):
        portions.observe(part)
    assert whole.log_evidence == portions.log_evidence
    assert whole.events == portions.events == 700 and not whole.alarm
    assert next_look(700) == 764


def test_false_alarms_are_rare_under_the_model(model: ParametricMDP) -> None:
    """At the edge of the domain, too; 24 streams at α = 0.2 would allow some five."""
    alarms = 0
    for seed in range(12):
        for point in ((0.6, 0.2), (0.9, 0.05)):
            monitor = Monitor(model, alpha=0.2)
            monitor.observe(draw(model, chances(model, *point), 300, np.random.default_rng([seed, 7])))
            alarms += monitor.alarm
    assert alarms <= 3


def test_a_change_of_a_parameter_is_found_dated_and_named(model: ParametricMDP) -> None:
    rng = np.random.default_rng(11)
    monitor = Monitor(model, alpha=0.001)
    monitor.observe(draw(model, chances(model, 0.4, 0.2), 3000, rng))
    assert not monitor.alarm
    monitor.observe(draw(model, chances(model, 0.7, 0.2), 1500, rng))
    assert monitor.alarm and monitor.first_alarm is not None and 3000 < monitor.first_alarm <= 4000
    first = monitor.explain()[0]
    assert first.kind == "drift" and first.since is not None and 2600 <= first.since <= 3400
    moved = first.moved[0]
    name, before, after, errors = moved.parameter, moved.before, moved.after, moved.standard_errors
    assert name == "p" and abs(before - 0.4) < 0.05 and abs(after - 0.7) < 0.06 and errors > 4
    assert monitor.evidence >= 1000.0


def test_a_warning_comes_before_the_alarm_and_not_without_a_change(model: ParametricMDP) -> None:
    rng = np.random.default_rng(31)
    monitor = Monitor(model, alpha=0.001)
    monitor.observe(draw(model, chances(model, 0.4, 0.2), 3000, rng))
    assert not monitor.warning
    monitor.observe(draw(model, chances(model, 0.55, 0.2), 2500, rng))
    assert monitor.first_warning is not None and monitor.first_alarm is not None
    assert 3000 < monitor.first_warning <= monitor.first_alarm
    assert monitor.explain()[0].text.startswith("parameter p since event")


def test_a_wrong_expression_is_named_first(model: ParametricMDP) -> None:
    """Action d leads back with p/2 + 0.2 instead of p/2."""
    chance = chances(model, 0.4, 0.2)
    choice = action_choice(model, "d", 1)
    low = model.transition_start[choice]
    chance[low : low + 2] = chance[low : low + 2] + np.array([0.2, -0.2])
    monitor = Monitor(model, alpha=0.001)
    monitor.observe(draw(model, chance, 3000, np.random.default_rng(13)))
    assert monitor.alarm
    first = monitor.explain()[0]
    assert first.kind == "expression" and first.text == "as in choice 'd' of state (s=1)"
    seen = {one.outcome: one for one in first.outcomes}
    assert abs(seen["1/2*p"].observed - 0.4) < 0.05 and seen["1/2*p"].expected < 0.3


def test_a_broken_tie_is_named_first(model: ParametricMDP) -> None:
    """Action a of states 0 and 1 are said to be equal, and c is known; only state 1 departs."""
    chance = chances(model, 0.4, 0.2)
    choice = action_choice(model, "a", 1)
    low = model.transition_start[choice]
    chance[low : low + 2] = [0.7, 0.3]
    monitor = Monitor(model, alpha=0.001)
    monitor.observe(draw(model, chance, 4000, np.random.default_rng(17)))
    assert monitor.alarm
    first = monitor.explain()[0]
    assert (first.kind, first.text) == ("tie", "choice 'a' of state (s=1)")


def test_a_coin_that_is_known_to_be_fair_and_is_not(model: ParametricMDP) -> None:
    chance = chances(model, 0.4, 0.2)
    low = model.transition_start[action_choice(model, "c")]
    chance[low : low + 2] = [0.65, 0.35]
    monitor = Monitor(model, alpha=0.001)
    monitor.observe(draw(model, chance, 4000, np.random.default_rng(19)))
    assert monitor.alarm and monitor.explain()[0].text == "choice 'c' of state (s=0)"


def test_what_the_model_excludes_is_an_alarm_at_once(model: ParametricMDP) -> None:
    monitor = Monitor(model)
    monitor.observe(np.zeros(5, dtype=np.int64))
    monitor.exclude("runs.csv:7: row 6: no such transition")
    assert monitor.alarm and monitor.first_alarm == 6 and monitor.evidence == math.inf
    first = monitor.explain()[0]
    assert (first.kind, first.text) == ("excluded", "runs.csv:7: row 6: no such transition")
    assert first.log_e_value is None


def test_a_monitor_goes_on_from_its_state(model: ParametricMDP) -> None:
    data = draw(model, chances(model, 0.4, 0.2), 2500, np.random.default_rng(23))
    straight = Monitor(model)
    straight.observe(data)
    first, second = Monitor(model), Monitor(model)
    first.observe(data[:1100])
    second.restore(first.state())
    second.observe(data[1100:])
    assert second.log_evidence == straight.log_evidence and second.events == 2500
    assert [s.text for s in second.explain()] == [s.text for s in straight.explain()]


def test_episodes_of_steps_are_taken(model: ParametricMDP) -> None:
    monitor = Monitor(model)
    monitor.update([[((0,), "a", (1,)), ((1,), "a", (3,))], [((0,), "c", (2,))]])
    assert monitor.events == 3
    with pytest.raises(InputError, match="episode 0, step 0"):
        monitor.update([[((0,), "nothing", (1,))]])


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1])
def test_wrong_levels_are_refused(model: ParametricMDP, alpha: float) -> None:
    with pytest.raises(InputError, match="`alpha` is"):
        Monitor(model, alpha=alpha)


def test_returns_below_the_guaranteed_bound_raise_an_alarm_and_others_do_not() -> None:
    rng = np.random.default_rng(29)
    kept = sum(_alarm(rng.random(400) < 0.9, 0.9) for _ in range(100))
    broken = [_alarm(rng.random(400) < 0.8, 0.9) for _ in range(20)]
    assert kept <= 8 and sum(broken) >= 18  # α = 0.05
    cost = ReturnsWatch(2.0, low=0.0, high=10.0, alpha=0.01, least=False)
    for value in rng.uniform(3.0, 5.0, 300):
        cost.add(float(value))
    assert cost.alarm and 3.5 < cost.mean < 4.5
    with pytest.raises(InputError, match="outside of 0 to 10"):
        cost.add(11.0)


def _alarm(successes: np.ndarray, promised: float) -> bool:
    watch = ReturnsWatch(promised, low=0.0, high=1.0, alpha=0.05)
    for success in successes:
        watch.add(float(success))
    return pickle.loads(pickle.dumps(watch)).alarm
