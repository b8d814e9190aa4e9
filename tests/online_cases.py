"""Small models to learn online, and what a run of them consists of."""

from __future__ import annotations

from functools import cache
from typing import Any

import tightrope as tr
from learning_cases import Case, case
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.learning.online.learner import OnlineLearner
from tightrope.learning.online.run import SimulatedEpisodes, Truth
from tightrope.model.builder import build_from_function
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP


def learner(name: str, **asked: Any) -> OnlineLearner:
    problem = case(name)
    return tr.online(problem.problem, **asked)


def simulator(problem: Case) -> Simulator:
    stop = find_decided_states(problem.objective, problem.model.states)
    return Simulator(problem.truth, None, stop, problem.instance.episode_cap, problem.model.hash(), threads=1)


def source(name: str, seed: int = 1) -> SimulatedEpisodes:
    return SimulatedEpisodes(simulator(case(name)), seed)


def truth(name: str) -> Truth:
    problem = case(name)
    return Truth(problem.truth, problem.objective)


@cache
def two_coins() -> ParametricMDP:
    """Toss the coin p or the coin q once; heads (x = 1) is the goal, tails (x = 2) is not."""
    parameters = Parameters.box(p=(0, 1), q=(0, 1))
    p, q = parameters.symbols()

    def successors(x: int) -> dict[str, dict[int, Any]]:
        if x == 0:
            return {"first": {1: p, 2: 1 - p}, "second": {1: q, 2: 1 - q}}
        return {"stay": {x: 1}}

    model = build_from_function(
        0, successors, parameters, labels={"goal": lambda x: x == 1}, variables=lambda x: {"x": x}
    )
    assert isinstance(model, ParametricMDP)
    return model
