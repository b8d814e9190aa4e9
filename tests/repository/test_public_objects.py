"""Every public class: pickles and deep copies are equal, texts short, cards markup, arrays frozen.

A class that becomes public and is in neither table below makes the first test fail.
"""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.design.exploration import Explore
from tightrope.errors import Location
from tightrope.io.results import Anomaly
from tightrope.learning.learn import TemporalFormulas
from tightrope.learning.online.exploration import OnDrift
from tightrope.model.parameters import LinearConstraint
from tightrope.numerics.record import MOST_LINES, WIDTH, Record
from tightrope.regions.region import Conflict
from tightrope_check.problem import Certificate

GOAL = 'Pmax=? [ F "goal" ]'


@cache
def model() -> tr.ParametricMDP:
    parameters = tr.Parameters.box(p=(0.1, 0.9), q=(0.2, 0.8))
    p, q = parameters.symbols()

    def moves(x: int) -> dict[str, dict[int, Any]]:
        if x == 2:
            return {"": {2: 1}}
        return {"a": {2: p, x: 1 - p}, "b": {2: p * q, (x + 1) % 2: 1 - p * q}}

    built = tr.build_from_function(
        0,
        moves,
        parameters,
        labels={"goal": lambda x: x == 2},
        state_rewards={"steps": lambda x: 1.0},
        variables=lambda x: {"x": x},
    )
    assert isinstance(built, tr.ParametricMDP)
    return built


@cache
def temporal() -> tr.Problem:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        return TemporalFormulas().apply(tr.Problem(model(), 'Pmax=? [ G (F "goal") ]'))


@cache
def counts() -> tr.Counts:
    return simulator().episodes(200, 1)


@cache
def simulator() -> tr.Simulator:
    return tr.Simulator(model().instantiate(p=0.5, q=0.5), model_hash=model().hash(), cap=50)


@cache
def result(sets: str = "expression", region: str | None = None, text: str = GOAL) -> tr.LearningResult:
    words: Any = {} if region is None else {"region": region}
    return tr.learn(model().problem(text), counts(), delta=0.1, sets=sets, **words)


@cache
def interval_model() -> tr.IntervalMDP:
    return result().sets.interval_model()


@cache
def learner() -> tr.OnlineLearner:
    made = tr.online(model().problem(GOAL), sets="tied")
    made.observe([(0, "a", 2)])
    return made


def certificate() -> Certificate:
    from tightrope.certify.problem import to_problem
    from tightrope.certify.solved import to_certificate

    mdp = simulator().mdp
    solution = tr.solve(mdp, GOAL)
    return to_certificate(to_problem(mdp, solution.objective), solution)


@cache
def verdict() -> tr.Verdict:
    from tightrope_check.checker import check

    return check(certificate())


@cache
def saved() -> tr.SavedResult:
    with tempfile.TemporaryDirectory() as folder:
        result().save(folder)
        return tr.load_result(folder, model=model())


@cache
def plan() -> tr.Plan:
    problem = model().problem('R{"steps"}min=? [ F "goal" ]')
    return tr.plan(problem, counts(), delta=0.1, gap=0.1, region="likelihood", within_cap=50)


@cache
def chain() -> tr.ParametricCTMC:
    parameters = tr.Parameters.box(lam=(0.1, 2))
    (lam,) = parameters.symbols()
    rows: Any = [(0, {1: lam}), (1, {0: 1, 2: lam})]
    built = tr.build_ctmc_from_rows(rows, parameters, labels={"on": [1]}, state_rewards={"on": [0, lam, 1]})
    assert isinstance(built, tr.ParametricCTMC)
    return built


@cache
def automaton() -> tr.MarkovAutomaton:
    mdp = simulator().mdp
    waits = np.diff(mdp.structure.choice_start) == 1
    return tr.MarkovAutomaton(mdp.structure, mdp.probability, np.where(waits, 2.0, 0.0))


@cache
def rate_result() -> tr.RateResult:
    log = tr.simulate_times(chain().instantiate(lam=0.5), 50, seed=1, time=9)
    return tr.learn(tr.Problem(chain(), 'P=? [ F<=2 "on" ]'), log, delta=0.1)


def reading() -> tr.Reading:
    return tr.read_data([[(0, "a", 0), (0, "b", 2)], [(0, "a", 2)]], model())


def observed() -> Any:
    """Two states that look alike."""
    rows = [(0, "l", {0: 1}), (0, "r", {1: 1}), (1, "l", {0: 1}), (1, "r", {1: 1})]
    return tr.POMDP(tr.build_from_rows(rows, labels={"b": [1]}), np.array([0, 0], np.int32), ("dark",))


EXAMPLES: dict[str, Callable[[], Any]] = {
    "POMDP": lambda: observed(),
    "Controller": lambda: tr.Controller.memoryless(observed(), [0]),
    "CTMC": lambda: chain().instantiate(lam=0.5),
    "Exposure": lambda: rate_result().data,
    "ParametricCTMC": lambda: chain(),
    "RateBounds": lambda: rate_result().value,
    "RateResult": lambda: rate_result(),
    "TimedRows": lambda: tr.simulate_times(chain().instantiate(lam=0.5), 5, seed=1, time=9),
    "Benchmark": lambda: tr.benchmark("betting(3)"),
    "Check": lambda: verdict().checks[0],
    "Comparison": lambda: tr.compare(
        model().problem('Pmax=? [ F "goal" ]'), counts(), tr.Policy.uniform(model()), "do-nothing", delta=0.1
    ),
    "Conflict": lambda: Conflict((0, 1), ("p ≤ 0.2", "p ≥ 0.3")),
    "Counts": counts,
    "CoupledValue": lambda: result("coupled").robust.coupled,
    "Diagnosis": lambda: tr.doctor(model().problem(GOAL), counts(), delta=0.1),
    "Decisions": lambda: result().decisions,
    "FiniteMemoryChoices": lambda: temporal().controller(tr.solve(temporal().at(p=0.5, q=0.5)).policy).memory,
    "ProductLift": lambda: temporal().lift,
    "Explore": lambda: Explore("designed", cost="step=1", avoid='"goal"', at_most=0.5),
    "Expressions": lambda: model().expressions,
    "Interval": lambda: result().interval,
    "IntervalMDP": interval_model,
    "LearnedAnswer": lambda: tr.learn(tr.Problem(model(), 'filter(max, Pmax=? [ X "goal" ])'), counts()),
    "LearnOptions": lambda: tr.LearnOptions(sets="tied"),
    "LearningResult": result,
    "ConfidenceBudget": lambda: result().ledger,
    "LinearConstraint": lambda: LinearConstraint((tr.exact("1/2"),), tr.exact(1)),
    "Location": lambda: Location("model.prism", 3, 4, "line"),
    "MarkovAutomaton": lambda: automaton(),
    "MDP": lambda: simulator().mdp,
    "Objective": lambda: model().problem('Pmax=? [ F<=3 "goal" ]').objective,
    "ModelFit": lambda: result().fit,
    "Monitor": lambda: tr.Monitor(model()).update([[(0, "a", 0), (0, "b", 2)]] * 9),
    "OnDrift": lambda: OnDrift("stop", alpha=0.01),
    "OnlineLearner": learner,
    "Parameters": lambda: model().parameters,
    "ParametricMDP": model,
    "Plan": plan,
    "Policy": lambda: tr.Policy.uniform(model()),
    "PolicyValue": lambda: result().robust,
    "Polynomial": lambda: model().expressions.polynomial(1),
    "RationalFunction": lambda: 1 / (1 + model().expressions.polynomial(1)),
    "Problem": lambda: model().problem(GOAL),
    "Reading": reading,
    "Region": lambda: result().region,
    "RewardStructure": lambda: model().rewards["steps"],
    "SamplingDesign": lambda: counts().design,
    "SavedResult": lambda: saved(),
    "Sets": lambda: result().sets,
    "Shield": lambda: tr.Shield.of(tr.solve(simulator().mdp, GOAL), slack=0.1),
    "Simulator": simulator,
    "Answer": lambda: tr.solve(simulator().mdp, '1 - Pmax=? [ F "goal" ]'),
    "Solution": lambda: tr.solve(simulator().mdp, GOAL),
    "TimeVaryingChoices": lambda: tr.solve(simulator().mdp, 'Pmax=? [ F<=3 "goal" ]').steps,
    "Strategy": lambda: plan().strategies[0],
    "Structure": lambda: model().structure,
    "Anomaly": lambda: Anomaly("tie", "choice 'a' of state 0", 3.5),
    "Trajectories": lambda: next(simulator().trajectories(3, 1)),
    "Update": lambda: learner().last_update,
    "Verdict": lambda: verdict(),
    "Witness": lambda: result("coupled").robust.coupled.lowest,
}
"""One object of every public class but enumerations and errors, and of those that come with them."""

MUTABLE = {"Monitor", "OnlineLearner", "Shield"}
"""Objects that grow: they pickle and print, and are equal to themselves alone."""

WRITABLE = {("Verdict", "values"), ("Verdict", "bound")}
"""Mappings that are told to readers; nothing relies on them."""


def public_classes() -> dict[str, type]:
    found = {name: getattr(tr, name) for name in tr.__all__}
    return {name: kind for name, kind in found.items() if isinstance(kind, type)}


def test_every_public_class_is_in_the_battery() -> None:
    missing = {
        name
        for name, kind in public_classes().items()
        if name not in EXAMPLES and not issubclass(kind, Enum | Exception)
    }
    assert not missing, "add an example for each of these, so that the battery runs on it"


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", EXAMPLES)
def test_pickles_copies_and_texts(name: str) -> None:
    one = EXAMPLES[name]()
    assert one is not None
    again, deep = pickle.loads(pickle.dumps(one)), copy.deepcopy(one)
    assert type(again) is type(one) and type(deep) is type(one)
    if name not in MUTABLE:
        assert again == one == deep
        assert name == "Verdict" or hash(again) == hash(one) == hash(deep)
        assert one != "something else" and pickle.loads(pickle.dumps(again)) == one
    lines = repr(one).splitlines()
    assert 1 <= len(lines) <= MOST_LINES and len(repr(one)) < 1200, repr(one)
    assert repr(again) == repr(one)
    if isinstance(one, Record):
        assert all(len(line) <= WIDTH for line in lines)
    if isinstance(one, Record | tr.OnlineLearner):
        assert well_formed(one._repr_html_()) and "tightrope-card" in one._repr_html_()


PLAIN = {"Interval": "lower", "Polynomial": "terms", "RationalFunction": "numerator"}
"""An attribute of those that are no dataclasses."""


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in MUTABLE])
def test_nothing_can_be_written_to(name: str) -> None:
    one = EXAMPLES[name]()
    for each in (one, pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        attributes = [entry.name for entry in fields(each)] if is_dataclass(each) else [PLAIN[name]]
        for attribute in attributes:
            with pytest.raises((AttributeError, FrozenInstanceError)):
                setattr(each, attribute, 1)
            value = getattr(each, attribute)
            if isinstance(value, np.ndarray):
                assert not value.flags.writeable, (name, attribute)
            assert not isinstance(value, dict | list | set) or (name, attribute) in WRITABLE, (
                name,
                attribute,
            )


@pytest.mark.parametrize("name", ["untied", "tied", "parameter", "rectangular", "coupled"])
def test_results_over_all_sets_pickle_and_compare(name: str) -> None:
    check_result(result(name))


@pytest.mark.parametrize("region", ["l1", "ellipsoid", "likelihood"])
def test_results_over_all_regions_pickle_and_compare(region: str) -> None:
    check_result(result("rectangular" if region != "l1" else "expression", region))
    check_result(result("rectangular", None, 'Pmax=? [ F<=3 "goal" ]'))


def check_result(one: tr.LearningResult) -> None:
    again = pickle.loads(pickle.dumps(one))
    assert again == one == copy.deepcopy(one)
    assert again.to_json() == one.to_json() and again.guarantee == one.guarantee
    other = replace(one, notes=("another",))
    assert other != one and again != other
    assert len(repr(one).splitlines()) == 5 + len(one.verdict.doubts), repr(one)


def test_equality_tells_apart() -> None:
    base = model()
    assert base.instantiate(p=0.5, q=0.5) == simulator().mdp != base.instantiate(p=0.5, q=0.25)
    assert base.problem(GOAL) == base.problem(GOAL) != base.problem('Pmin=? [ F "goal" ]')
    assert counts() != simulator().episodes(200, 2)
    assert result() == tr.learn(base.problem(GOAL), counts(), delta=0.1, sets="expression")
    assert result() != result("tied")
    assert tr.Parameters.box(p=(0, 1)) != tr.Parameters.box(p=(0, 0.5))
    assert base.structure != replace(base.structure, initial_states=(1,))
    assert base.structure != replace(base.structure, action_names=("b", "a", ""))
    nan = replace(base.rewards["steps"], state=np.array([np.nan]))
    assert nan == replace(base.rewards["steps"], state=np.array([np.nan]))


def test_a_result_prints_what_counts() -> None:
    text = 'Pmax=? [ F<=2 "goal" ]'
    one = result(text=text)
    shown = repr(one).splitlines()
    assert shown[0].startswith(f"LearningResult: {text} ≥ 0.")
    assert [line.split()[0] for line in shown[1:]] == ["verdict", "interval", "assumes", "sets"]
    assert "confidence 0.9" in shown[1]
    written = float(shown[0].split()[-1])
    assert 0 < written <= one.guarantee, "rounded to the safe side"


def test_errors_pickle() -> None:
    error = tr.InputError("what", Location("f", 1, 2, "text"), "hint")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.hint == "hint" and again.location == error.location


def test_pickles_are_about_as_large_as_the_arrays() -> None:
    """What was computed on the way (indices, caches) is not sent to workers."""
    bench = tr.benchmark("betting(20)")
    large, problem, truth = bench.model, bench.problem, bench.at_truth
    solution = tr.solve(truth)
    _ = (large.hash(), large.structure.choice_state, solution.policy, repr(solution), repr(large))
    for one in (large, problem, truth, solution, solution.policy):
        size, arrays = len(pickle.dumps(one)), array_bytes(one, set())
        assert size <= 1.15 * arrays + 6000, (type(one).__name__, size, arrays)


def array_bytes(value: Any, seen: set[int]) -> int:
    """Bytes of all arrays that an object's fields hold."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        return sum(array_bytes(getattr(value, entry.name), seen) for entry in fields(value))
    if hasattr(value, "numerator") and isinstance(value.numerator, np.ndarray):
        return value.numerator.nbytes + value.denominator.nbytes
    if hasattr(value, "values") and callable(value.values):
        return sum(array_bytes(each, seen) for each in value.values())
    return sum(array_bytes(each, seen) for each in value) if isinstance(value, tuple) else 0


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fine = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.fine = self.fine and bool(self.open) and self.open.pop() == tag


def well_formed(markup: str) -> bool:
    parser = _Tags()
    parser.feed(markup)
    return parser.fine and not parser.open


def test_cards_escape_what_users_wrote() -> None:
    built = tr.build_from_rows([(0, "<b>", {0: 1})], labels={"<script>": [0]})
    assert "<script>" not in built._repr_html_() and "&lt;script&gt;" in built._repr_html_()
