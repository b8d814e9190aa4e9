"""A small instance of each benchmark family with data, shared by the tests of learning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tightrope.ambiguity.sets import SetsKind
from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.counts import Counts
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.learning.options import LearnOptions
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.problem import Problem
from tightrope.regions.region import RegionKind
from tightrope.solver.solve import solve
from tightrope.statistics.estimates import Budget, IntervalMethod

FAMILIES = ("aircraft(5,3)", "betting(8)", "engagement(2)", "rover(4,4)", "glider(5,5)", "parallel(2)")
EPISODES = 3000
SEED = 4

PAPER = LearnOptions(budget=Budget.PAPER, interval=IntervalMethod.CLOPPER_PEARSON)
"""The protocol of the paper's tables."""


@dataclass(frozen=True, eq=False)
class Case:
    """A model at its true point, the policy that is optimal there, and how to sample it."""

    instance: Instance
    model: ParametricMDP
    truth: MDP
    objective: Objective
    policy: Policy
    optimum: float

    @property
    def problem(self) -> Problem:
        return Problem(self.model, self.objective)

    def counts(self, episodes: int = EPISODES, seed: int = SEED) -> Counts:
        return self._simulator().episodes(episodes, seed)

    def generative(self, samples: int, seed: int = SEED) -> Counts:
        return self._simulator().generative(samples, seed)

    def value_of(self, policy: Policy) -> float:
        """A policy's value in the true model."""
        solution = solve(self.truth, self.objective, policy=policy)
        return float(0.5 * (solution.lower + solution.upper)[self.model.initial])

    def _simulator(self) -> Simulator:
        stop = find_decided_states(self.objective, self.model.states)
        return Simulator(self.truth, None, stop, self.instance.episode_cap, self.model.hash(), threads=1)


@cache
def case(name: str) -> Case:
    """The family's instance of that name; counts under its own protocol."""
    instance = parse_bench(name)
    model = load(instance)
    objective = question(instance, model.structure).objective
    truth = model.instantiate(instance.truth)
    best = solve(truth, objective)
    value = float(best.lower[model.initial])
    return Case(instance, model, truth, objective, best.policy, value)


@cache
def counts_of(name: str) -> Counts:
    return case(name).counts()


def options(region: RegionKind | None, sets: SetsKind) -> LearnOptions:
    return LearnOptions(region=region, sets=sets)
