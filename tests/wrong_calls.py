"""Wrong calls of the library, each by a name; `logs/wrong_calls.txt` has the words they are refused in."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

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


def plain() -> Any:
    return walk().instantiate(p=0.5)


def any_call(function: Any, *given: Any, **named: Any) -> Callable[[], object]:
    """A call that a type checker would not let pass."""
    return lambda: function()(*given, **named)


@cache
def betting() -> Any:
    return tr.load("bench:betting(5)")


DONE = 'Rmax=? [ F "done" ]'
ROUND = "ellipsoid"
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
    "learn: a model without a property": any_call(lambda: tr.learn, walk(), data()),
    "learn: a threshold": lambda: tr.learn(walk().problem('P>=0.5 [ F "home" ]'), data()),
    "learn: no parameters": lambda: tr.learn(tr.Problem(plain(), HOME), data()),
    "learn: no data": lambda: tr.learn(problem(), None),
    "learn: a missing file": lambda: tr.learn(problem(), "no/such/log.csv"),
    "learn: data of another model": lambda: tr.learn(betting().problem(DONE), data()),
    "learn: a confidence of one": lambda: tr.learn(problem(), data(), delta=0),
    "learn: a confidence of words": any_call(lambda: tr.learn, problem(), data(), delta="low"),
    "learn: unknown sets": lambda: tr.learn(problem(), data(), sets="loose"),
    "learn: an unknown region": lambda: tr.learn(problem(), data(), region="sphere"),
    "learn: sets without a region": lambda: tr.learn(problem(), data(), sets="tied", region="ellipsoid"),
    "learn: coupled over an ellipsoid": lambda: tr.learn(problem(), data(), sets="coupled", region=ROUND),
    "learn: options": any_call(lambda: tr.learn, problem(), data(), options=None),
    "learn: progress": any_call(lambda: tr.learn, problem(), data(), progress="yes"),
    "learn: fallback": any_call(lambda: tr.learn, problem(), data(), fallback="no"),
    "learn_all: one kind": lambda: tr.learn_all(problem(), data(), sets="tied"),
    "learn_all: an unknown kind": lambda: tr.learn_all(problem(), data(), kinds=["loose"]),
    "online: a number for the confidence": lambda: tr.online(problem(), delta=2),
    "online: an episode that is none": lambda: tr.online(problem(), sets="tied").observe([(2, "fly", 3)]),
    "solve: sets of data": lambda: tr.solve(problem(), sets="tied"),
    # --- certificates ---
    "verify: no file": lambda: tr.verify("no/such.cert"),
    "verify: a property without a model": lambda: tr.verify("no/such.cert", property=HOME),
}
