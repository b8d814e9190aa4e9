"""Certificates of small models, written by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tightrope.certify.problem import to_problem
from tightrope.certify.solved import to_certificate
from tightrope.model.builder import build_from_rows
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Parameters
from tightrope.model.structure import RewardStructure
from tightrope.solver.solve import solve
from tightrope_check.nature import Graph
from tightrope_check.problem import Certificate, CertifiedProblem, Claim, ValueHints
from tightrope_check.problem import CertifiedObjective as Asked


def walk():
    """A parametric walk on 0..4 with a choice of speed, at p = 2/5."""
    parameters = Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    rows = []
    for x in range(5):
        if x in (0, 4):
            rows.append((x, "stay", {x: 1}))
        else:
            rows.append((x, "slow", {x + 1: p / 2, x: 0.5, x - 1: 0.5 - p / 2}))
            rows.append((x, "fast", {x + 1: p * p, x - 1: 1 - p * p}))
    return build_from_rows(rows, parameters, labels={"home": [4]})


def walk_certificate(kind=ObjectiveKind.UNTIL, agent=Direction.MAX):
    model, theta = walk(), [Fraction(2, 5)]
    structure = model.structure
    target = model.labels["home"] | ((np.arange(5) == 0) if kind is ObjectiveKind.REACH_REWARD else False)
    reward = (
        RewardStructure(state=np.array([0.0, 1, 1, 1, 0])) if kind is ObjectiveKind.REACH_REWARD else None
    )
    objective = Objective(kind, agent, agent.opposite, target=target, reward=reward)
    assert structure.states == 5
    problem = to_problem(model, objective, theta=theta)
    return to_certificate(problem, solve(model.instantiate(theta), objective))


def loop(kind, lower, upper, successor=(0, 2, 1, 2), **fields):
    """State 0 stays or goes to state 2, each with probability 1/2; 1 is the target; both others stay."""
    exactly = np.array([0.5, 0.5, 1.0, 1.0])
    until = kind == "UNTIL"
    problem = CertifiedProblem(
        Graph(np.arange(4), np.array([0, 2, 3, 4]), np.array(successor), 0),
        Asked(
            kind=kind,
            agent="MAX",
            nature="MIN",
            complement=False,
            lower_steps=fields.pop("lower_steps", 0),
            target=np.array([False, True, False]) if until else None,
            reward=None if until else np.zeros(3),
            discount=None if until else 0.5,
        ),
        lower=exactly,
        upper=exactly,
    )
    hints = ValueHints(np.array(lower), np.array(upper), np.array([1, 0, 0]), witness=np.arange(3))
    return Certificate(problem, (Claim("value", "free", 0.0, 1.0),), (hints,))
