"""Wrong calls of the library, each by a name; `logs/wrong_calls.txt` has the words they are refused in."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import tightrope as tr

HOME = 'Pmax=? [ F "home" ]'


@cache
def walk() -> Any:
    """A walk to one end of five places, with an unknown step."""
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()

    def successors(place: int) -> Any:
        if place in (0, 4):
            return {"stay": {place: 1}}
        return {"walk": {place + 1: p, place - 1: 1 - p}, "rest": {place: 1}}

    return tr.build_from_function(2, successors, parameters, labels={"home": lambda place: place == 4})


@cache
def problem() -> tr.Problem:
    return tr.Problem(walk(), HOME)


@cache
def data() -> tr.Counts:
    return tr.Simulator(walk().instantiate(p=0.5), model_hash=walk().hash()).generative(100, seed=1)


@cache
def learned() -> Any:
    return tr.learn(problem(), data(), delta=0.1, sets="tied")


def uniform() -> Any:
    return tr.Policy.uniform(walk())


def plain() -> Any:
    return walk().instantiate(p=0.5)


def any_call(function: Any, *given: Any, **named: Any) -> Callable[[], object]:
    """A call that a type checker would not let pass; the data are simulated when it is made."""
    return lambda: function()(*(data() if each is data else each for each in given), **named)


def by_function(successors: Any, **words: Any) -> Callable[[], object]:
    """A model from state 0 on, with one parameter."""
    return any_call(lambda: tr.build_from_function, 0, successors, **words)


def stay(state: int) -> Any:
    return {"stay": {state: 1}}


def symbol() -> Any:
    return tr.Parameters.box(p=(0, 1)).symbols()[0]


def frame(**columns: Any) -> Any:
    return pa.table(columns)


@cache
def betting() -> Any:
    return tr.load("bench:betting(5)")


DONE = 'Rmax=? [ F "done" ]'
ROUND = "ellipsoid"
EPISODES = [[(2, "walk", 3), (3, "walk", 4)]]
END: tuple[int, str, Any] = (1, "b", {1: 1})
P = np.array([[[0.5, 0.5], [0.0, 1.0]]])

CALLS: dict[str, Callable[[], object]] = {
    # --- loading ---
    "load: no file": lambda: tr.load("no/such/model.prism"),
    "load: an unknown ending": lambda: tr.load(__file__),
    "load: a number": any_call(lambda: tr.load, 3),
    "load: an unknown benchmark": lambda: tr.load("bench:rovr(10,10)"),
    "load: constants of a benchmark": lambda: tr.load("bench:betting(5)", const={"n": 3}),
    "load: constants that are no mapping": any_call(lambda: tr.load, "bench:betting(5)", const="n=3"),
    "load: a range that is one number": any_call(lambda: tr.load, "bench:betting(5)", params={"p": 0.5}),
    "load: ranges that are no mapping": any_call(lambda: tr.load, "bench:betting(5)", params=[0.5]),
    "load: a range the wrong way round": lambda: tr.load("bench:betting(5)", params={"p": (0.9, 0.1)}),
    "load: an unknown parameter": lambda: tr.load("bench:betting(5)", params={"r": (0, 1)}),
    "load: a range of words": lambda: tr.load("bench:betting(5)", params={"p": ("low", "high")}),
    # --- problems ---
    "Problem: a file for the model": any_call(lambda: tr.Problem, "model.prism", HOME),
    "Problem: nothing for the model": any_call(lambda: tr.Problem, None, HOME),
    "Problem: a number for the property": any_call(lambda: tr.Problem, plain(), 3),
    "Problem: an unknown label": lambda: walk().problem('Pmax=? [ F "hom" ]'),
    "Problem: a text that ends too early": lambda: walk().problem("Pmax=? [ F"),
    "Problem: no reward structure": lambda: walk().problem('Rmax=? [ F "home" ]'),
    "Problem: a discount of a probability": lambda: walk().problem(HOME, discount=0.9),
    "Problem: nobody decides": lambda: walk().problem('P=? [ F "home" ]'),
    "Problem: an objective of another model": lambda: tr.Problem(betting(), problem().objective),
    "Problem.at: an unknown parameter": lambda: problem().at(q=0.5),
    "Problem.at: no value": lambda: problem().at(),
    "Problem.at: outside": lambda: problem().at(p=0.95),
    "Problem.at: a word": lambda: problem().at(p="half"),
    "Problem.at: a truth value": lambda: problem().at(p=True),
    "Problem.at: not a number": lambda: problem().at(p=float("nan")),
    "Problem.at: a model without parameters": lambda: tr.Problem(plain(), HOME).at(p=0.5),
    "Problem.answer: a value": lambda: problem().answer(0, 1),
    # --- numbers and parameters ---
    "instantiate: too many values": lambda: walk().instantiate([0.5, 0.5]),
    "instantiate: a text": lambda: walk().instantiate("p=0.5"),
    "instantiate: twice": lambda: walk().instantiate({"p": 0.5}, p=0.5),
    "Parameters.box: one number": any_call(lambda: tr.Parameters.box, p=0.5),
    "Parameters.box: nothing between": lambda: tr.Parameters.box(p=(0.7, 0.3)),
    "build_from_rows: rounded numbers": lambda: tr.build_from_rows([(0, "a", {0: 0.1 + 0.2, 1: 0.7}), END]),
    "build_from_rows: a sum above one": lambda: tr.build_from_rows([(0, "a", {0: 0.5, 1: 0.7}), END]),
    "build_from_rows: no states": lambda: tr.build_from_rows([]),
    # --- arrays ---
    "from_arrays: a matrix": lambda: tr.from_arrays(P[0]),
    "from_arrays: not square": lambda: tr.from_arrays(np.zeros((1, 2, 3))),
    "from_arrays: a sum below one": lambda: tr.from_arrays(P * 0.5),
    "from_arrays: rewards of another shape": lambda: tr.from_arrays(P, np.zeros(3)),
    "from_arrays: names of other actions": lambda: tr.from_arrays(P, actions=["a", "b"]),
    "from_arrays: a label outside": lambda: tr.from_arrays(P, labels={"goal": [2]}),
    # --- solving ---
    "solve: no property": lambda: tr.solve(plain()),
    "solve: a property twice": lambda: tr.solve(tr.Problem(plain(), HOME), HOME),
    "solve: a text": any_call(lambda: tr.solve, "model.prism", HOME),
    "solve: parameters": lambda: tr.solve(tr.Problem(problem().model, 'Smax=? [ "goal" ]')),
    "solve: an unknown argument": any_call(lambda: tr.solve, plain(), HOME, epsilon=1e-3),
    "solve: a misspelt argument": any_call(lambda: tr.solve, plain(), HOME, thread=2),
    "solve: a precision of zero": lambda: tr.solve(plain(), HOME, precision=0),
    "solve: a precision of words": any_call(lambda: tr.solve, plain(), HOME, precision="fine"),
    "solve: an unknown device": lambda: tr.solve(plain(), HOME, device="tpu"),
    "solve: no threads": lambda: tr.solve(plain(), HOME, threads=0),
    "solve: no seconds": lambda: tr.solve(plain(), HOME, seconds=-1),
    "solve: a start of another length": lambda: tr.solve(plain(), HOME, start=np.zeros(3)),
    # --- learning ---
    "learn: a model without a property": any_call(lambda: tr.learn, walk(), data),
    "learn: a threshold": lambda: tr.learn(walk().problem('P>=0.5 [ F "home" ]'), data()),
    "learn: no parameters": lambda: tr.learn(tr.Problem(plain(), HOME), data()),
    "learn: no data": lambda: tr.learn(problem(), None),
    "learn: a missing file": lambda: tr.learn(problem(), "no/such/log.csv"),
    "learn: data of another model": lambda: tr.learn(betting().problem(DONE), data()),
    "learn: a confidence of one": lambda: tr.learn(problem(), data(), delta=0),
    "learn: a confidence of words": any_call(lambda: tr.learn, problem(), data, delta="low"),
    "learn: unknown sets": lambda: tr.learn(problem(), data(), sets="loose"),
    "learn: an unknown region": lambda: tr.learn(problem(), data(), region="sphere"),
    "learn: sets without a region": lambda: tr.learn(problem(), data(), sets="tied", region="ellipsoid"),
    "learn: coupled over an ellipsoid": lambda: tr.learn(problem(), data(), sets="coupled", region=ROUND),
    "learn: options": any_call(lambda: tr.learn, problem(), data, options=None),
    "learn: progress": any_call(lambda: tr.learn, problem(), data, progress="yes"),
    "learn: fallback": any_call(lambda: tr.learn, problem(), data, fallback="no"),
    "learn_all: one kind": lambda: tr.learn_all(problem(), data(), sets="tied"),
    "learn_all: an unknown kind": lambda: tr.learn_all(problem(), data(), kinds=["loose"]),
    "online: a number for the confidence": lambda: tr.online(problem(), delta=2),
    "online: an episode that is none": lambda: tr.online(problem(), sets="tied").observe([(2, "fly", 3)]),
    "solve: sets of data": lambda: tr.solve(problem(), sets="tied"),
    "learn: a confidence": any_call(lambda: tr.learn, problem(), data, confidence=0.95),
    "learn: a significance": any_call(lambda: tr.learn, problem(), data, alpha=0.05),
    "learn: a property by its place": any_call(lambda: tr.learn, walk(), HOME, data),
    "learn: without data": any_call(lambda: tr.learn, problem()),
    "learn: the problem twice": any_call(lambda: tr.learn, problem(), data, problem=problem()),
    "learn: data and problem in each other's place": any_call(lambda: tr.learn, data, problem()),
    "learn: a mapping for the data": lambda: tr.learn(problem(), {"state": [2]}),
    "learn: an array for the data": lambda: tr.learn(problem(), np.zeros((2, 2))),
    "learn: a step of two": lambda: tr.learn(problem(), [[(2, "walk")]]),
    "learn: a state that does not exist": lambda: tr.learn(problem(), [[(9, "walk", 3)]]),
    "learn: a policy about no state": lambda: tr.learn(problem(), data(), policy={9: "walk"}),
    "learn_all: a confidence": any_call(lambda: tr.learn_all, problem(), data, confidence=0.9),
    "online: a confidence": any_call(lambda: tr.online, problem(), confidence=0.9),
    "plan: a width": any_call(lambda: tr.plan, problem(), data, width=0.1),
    "improve: a confidence": any_call(lambda: tr.improve, problem(), data, baseline={}, confidence=0.9),
    # --- models by functions, mappings and tables ---
    "function: a list": any_call(lambda: tr.build_from_function, 0, [1]),
    "function: nothing": any_call(lambda: tr.build_from_function, 0, None),
    "function: gives nothing": by_function(lambda s: None),
    "function: gives a list": by_function(lambda s: [("go", 1)]),
    "function: gives a distribution": by_function(lambda s: {1: 0.5, 0: 0.5}),
    "function: a list of successors": by_function(lambda s: {"go": [(0, 1)]}),
    "function: fails": by_function(lambda s: {"go": {s + 1: 1}} if s < 3 else 1 / 0),
    "function: two arguments": by_function(lambda s, a: {0: 1}),
    "function: no number": by_function(lambda s: {"go": {0: None}}),
    "function: not a number": by_function(lambda s: {"go": {0: float("nan")}}),
    "function: a word": by_function(lambda s: {"go": {0: "p"}}),
    "function: no parameters": by_function(lambda s: {"go": {0: symbol(), 1: 1 - symbol()}}),
    "function: no name of an action": by_function(lambda s: {None: {0: 1}}),
    "function: no actions": by_function(lambda s: {}),
    "function: a list as a state": any_call(lambda: tr.build_from_function, [0], lambda s: {}),
    "function: an unknown argument": by_function(stay, rewards={}),
    "function: parameters that are none": any_call(lambda: tr.build_from_function, 0, stay, {"p": (0, 1)}),
    "mapping: a state without an entry": by_function({0: {"go": {1: 1}}}),
    "mapping: nothing of an action": by_function({0: {"go": None}}),
    "table: a missing column": by_function(frame(state=[0], action=["go"], to=[0], probability=[1])),
    "table: an empty cell": by_function(frame(state=[0], action=[None], next_state=[0], probability=[1])),
    "table: a row twice": by_function(
        frame(state=[0, 0], action=["a", "a"], next_state=[0, 0], probability=[0.5, 0.5])
    ),
    "labels: one function": by_function(stay, labels=lambda s: True),
    "labels: a state that does not exist": by_function(stay, labels={"goal": [7]}),
    "labels: a function that fails": by_function(stay, labels={"goal": lambda s: s.x}),
    "labels: a number": by_function(stay, labels={"goal": 0}),
    "labels: a mask": by_function(stay, labels={"goal": [False]}),
    "labels: a mask of rows": lambda: tr.build_from_rows([(0, "a", {0: 1})], labels={"goal": [False]}),
    "labels: states with answers": by_function(stay, labels={"goal": {0: False}}),
    "labels: a list as a state": by_function(stay, labels={"goal": [[0]]}),
    "labels: a function that says text": by_function(stay, labels={"goal": lambda s: "no"}),
    "successors: actions named alike": by_function(lambda s: {1: {0: 1}, "1": {0: 1}}),
    "rewards: a number": by_function(stay, state_rewards={"cost": 1}),
    "rewards: nothing": by_function(stay, state_rewards={"cost": lambda s: None}),
    "rewards: too few arguments": by_function(stay, choice_rewards={"cost": lambda s: 1}),
    "rewards: a choice that does not exist": by_function(stay, choice_rewards={"cost": {(0, "fly"): 1}}),
    "variables: a mapping": by_function(stay, variables={"x": 1}),
    "variables: words": by_function(stay, variables=lambda s: {"x": "a"}),
    "rows: a mapping": any_call(lambda: tr.build_from_rows, {0: {"go": {0: 1}}}),
    "rows: a table": any_call(lambda: tr.build_from_rows, frame(state=[0])),
    "rows: a name as a successor": any_call(lambda: tr.build_from_rows, [(0, "go", {"b": 1})]),
    "rows: three ends": any_call(lambda: tr.build_from_rows, [(0, "go", {0: (0, 0.5, 1)})]),
    "rows: too few rewards": lambda: tr.build_from_rows([(0, "a", {0: 1})], choice_rewards={"x": []}),
    "rows: words as values": any_call(lambda: tr.build_from_rows, [END], valuations={"x": ["a"]}),
    "rates: nothing": any_call(lambda: tr.build_ctmc_from_function, 0, lambda s: None),
    "rates: actions": any_call(lambda: tr.build_ctmc_from_function, 0, lambda s: {"go": {0: 1}}),
    "rates: a name as a successor": any_call(lambda: tr.build_ctmc_from_rows, [(0, {"b": 1})]),
    "POMDP: an observation that fails": lambda: tr.POMDP.from_function(0, stay, observe=lambda s: s.x),
    # --- constraints and symbols ---
    "where: an unknown parameter": lambda: tr.Parameters.box(p=(0, 1), where="p+r<=1"),
    "where: a product": lambda: tr.Parameters.box(p=(0, 1), q=(0, 1), where="p*q<=1"),
    "where: nothing is left": lambda: tr.Parameters.box(p=(0, 1), q=(0, 1), where="p+q<=-1"),
    "where: no comparison": lambda: tr.Parameters.box(p=(0, 1), where="p"),
    "Parameters: words": any_call(lambda: tr.Parameters, ("p",), ("a",), ("b",)),
    "symbols: a comparison": lambda: symbol() <= 1,
    "symbols: a number": lambda: float(symbol()),
    "symbols: a root": any_call(lambda: symbol().__pow__, 0.5),
    "symbols: by nothing": lambda: symbol() / 0,
    # --- policies and monitors ---
    "policy: a function that fails": lambda: tr.Policy(walk(), lambda state: state.x),
    "policy: no such state": lambda: tr.Policy.uniform(walk()).action(99),
    "policy: random": lambda: tr.Policy.uniform(walk()).action(2),
    "policy: one state for many": any_call(lambda: tr.Policy.uniform(walk()).predict, 3),
    "policy: a table of other columns": any_call(lambda: tr.Policy.uniform(walk()).predict, frame(x=[1])),
    "policy: a step of words": any_call(lambda: tr.Policy.uniform(walk()).at, "first"),
    "policy: a seed of words": any_call(lambda: tr.Policy.uniform(walk()).act, 2, rng="a"),
    "Monitor: a confidence": any_call(lambda: tr.Monitor, walk(), confidence=0.9),
    "Monitor: nothing": any_call(lambda: tr.Monitor(walk()).update, None),
    "Monitor: a mapping": any_call(lambda: tr.Monitor(walk()).update, {"state": [2]}),
    "Monitor: counts": lambda: tr.Monitor(walk()).update(data()),
    "Monitor: counts of another model": lambda: tr.Monitor(betting()).update(data()),
    "Simulator: samples of words": any_call(lambda: tr.Simulator(plain()).generative, "many", seed=1),
    "Simulator: a seed of words": any_call(lambda: tr.Simulator(plain()).generative, 10, seed="x"),
    "simulate_times: no seed": any_call(lambda: tr.simulate_times, plain(), 10),
    "MDP: words": any_call(lambda: tr.MDP, plain().structure, "half"),
    # --- certificates ---
    "verify: no file": lambda: tr.verify("no/such.cert"),
    "verify: a word misspelt": any_call(lambda: tr.verify, "no/such.cert", modl=1),
    "verify: a property without a model": lambda: tr.verify("no/such.cert", property=HOME),
    # --- methods ---
    "free: further arguments": any_call(lambda: tr.free, "a", 3, 4),
    "Policy.save: a number": any_call(lambda: uniform().save, 3),
    "Policy.save: an unknown argument": any_call(lambda: uniform().save, "x.json", overwrite=True),
    "Policy.act: an unknown argument": any_call(lambda: uniform().act, 2, random=3),
    "Policy.uniform: no model": any_call(lambda: tr.Policy.uniform),
    "Policy.predict: no states": any_call(lambda: uniform().predict),
    "LearningResult.plot: an unknown argument": any_call(lambda: learned().plot, axes=1),
    "LearningResult.report: a number": any_call(lambda: learned().report, 3),
    "LearningResult.save: an unknown argument": any_call(lambda: learned().save, "x", overwite=True),
    "LearningResult.find_breakdown_point: by its place": any_call(
        lambda: learned().find_breakdown_point, 0.5
    ),
    "ParametricMDP.problem: nothing": any_call(lambda: walk().problem),
    "ParametricMDP.save: nothing": any_call(lambda: walk().save),
    "Problem.at: numbers one by one": any_call(lambda: problem().at, 1, 2),
    "Simulator.episodes: no seed": any_call(lambda: tr.Simulator(plain()).episodes, 3),
    "Simulator.episodes: an unknown argument": any_call(lambda: tr.Simulator(plain()).episodes, 3, sed=1),
    "Counts.to_dataframe: no model": any_call(lambda: data().to_dataframe),
    "OnlineLearner.observe: nothing": any_call(lambda: tr.online(problem(), delta=0.1).observe),
    "Monitor.update: nothing": any_call(lambda: tr.Monitor(walk(), alpha=0.1).update),
    # --- numbers, counts and records ---
    "Interval: the wrong way round": lambda: tr.Interval(2, 1),
    "Interval: one end": any_call(lambda: tr.Interval, 1),
    "Interval: three ends": any_call(lambda: tr.Interval, 0, 1, 2),
    "Interval: words": any_call(lambda: tr.Interval, "low", "high"),
    "Interval: not a number": lambda: tr.Interval(float("nan"), 1),
    "Interval: a word inside": lambda: "a" in tr.Interval(0, 1),
    "LearningResult.headline: a word": any_call(lambda: learned().headline, "a"),
    "LearningResult.headline: no digits": lambda: learned().headline(0),
    "LearningResult.headline: half a digit": any_call(lambda: learned().headline, 2.5),
    "LearningResult.save: a number of exports": any_call(lambda: learned().save, "x", exports=3),
    "learn_all: no kinds": lambda: tr.learn_all(problem(), data(), kinds=[]),
    "improve: a number to keep": any_call(lambda: tr.improve, problem(), data, baseline=uniform(), keep=3),
    "solve: half a thread": any_call(lambda: tr.solve, plain(), HOME, threads=1.5),
    "doctor: a word misspelt": any_call(lambda: tr.doctor, problem(), EPISODES, selct_on=0.5),
    "doctor: a level of words": any_call(lambda: tr.doctor, problem(), EPISODES, alpha="low"),
    "policy: a negative seed": lambda: uniform().act(2, rng=-1),
    "Simulator: half an episode": any_call(lambda: tr.Simulator(plain()).episodes, 2.5, seed=1),
    "Counts: lists": any_call(lambda: tr.Counts, [1], [0, 1], None, "x"),
    "Counts: no model": any_call(lambda: data().to_dataframe, "x"),
    "Counts: a number more": any_call(lambda: data().__add__, 3),
    "Counts: so many words": any_call(lambda: data().times, "a"),
    "Counts: fewer than none": lambda: data().times(-1),
    "from_arrays: rows of two lengths": lambda: tr.from_arrays([[[1], [1, 2]]]),
    "MDP: nothing": any_call(lambda: tr.MDP, None, None),
    "Objective: a word": any_call(lambda: tr.Objective, "reach", None, None),
    "LinearConstraint: words": any_call(lambda: tr.LinearConstraint, ("a",), "b"),
}
