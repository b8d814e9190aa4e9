"""Are the costs of a log those of the reward that is asked for: the test that `learn` and `doctor` make.

It has a level α of its own and changes no interval. Probabilities do not depend on costs, so a model is not
refuted by them; an answer in wrong costs is nominal.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.data.columns import COST, HABITS
from tightrope.data.episode_log import EpisodeLog
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.monitoring.departures import bet_on_all
from tightrope.monitoring.examination import Finding
from tightrope.problem import Problem
from tightrope.statistics.costs import mean_evidence


def cost_finding(
    problem: Problem, log: EpisodeLog, alpha: float, bounds: tuple[float, float] | None
) -> Finding | None:
    """Whether the costs of a log are those of the reward that is asked for, where both are there.

    A log in which every choice always costs the same is compared number by number. Otherwise costs are taken
    to be random, with the model's reward as their mean given the past: that is tested where `bounds` on them
    are stated, at a level α of its own (`tightrope.statistics.costs`), choice by choice without paying for
    each. Probabilities do not depend on costs, so that the model itself is not refuted by them.
    """
    reward = asked_reward(problem)
    wanted = {COST, *HABITS[COST], *(() if reward is None else problem.model.structure.rewards)}
    name = next(
        (one for one in log.columns if one.lower() in wanted and log.columns[one].values is not None), ""
    )
    if reward is None or not name:
        return None
    structure, values = problem.model.structure, log.columns[name].values
    assert values is not None
    seen = np.isfinite(values)
    choice, cost = log.choice(structure)[seen], values[seen]
    expected = reward.per_choice(structure)[choice]
    apart = np.abs(cost - expected)
    first = cost[np.unique(choice, return_index=True)[1]][np.unique(choice, return_inverse=True)[1]]
    if (cost == first).all():
        wrong = apart > 1e-6 * np.maximum(1.0, np.abs(expected))
        log_e = math.inf if wrong.any() else -math.inf
    elif bounds is None:
        return None
    else:
        each = mean_evidence(cost, expected, choice.astype(np.int32), bounds)
        logs = np.array(list(each.values()))
        log_e = bet_on_all(logs, structure.choices)
        wrong = choice == list(each)[int(np.argmax(logs))]
    if log_e < math.log(1.0 / alpha):
        return None
    at = int(choice[wrong][0])
    here = choice == at
    text = (
        f"{structure.choice_name(at)} costs {cost[here].mean():.6g} in column '{name}' ({int(here.sum()):,} "
        f"rows), and the model says {expected[here][0]:.6g}"
    )
    contexts = tuple(dict.fromkeys(choice[wrong].tolist()))
    return Finding("cost", f"cost:{name}", text, log_e, contexts=contexts, effect=float(apart.mean()))


def asked_reward(problem: Problem) -> RewardStructure | None:
    """The reward of numbers that a question is about."""
    objective = problem.query.plain_objective if isinstance(problem.model, ParametricMDP) else None
    reward = None if objective is None else objective.reward
    if reward is None or isinstance(reward, ParametricReward):
        return None
    return next((one for one in problem.model.structure.rewards.values() if one is reward), None)
