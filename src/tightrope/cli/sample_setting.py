"""Where and how `tightrope sample` walks: policy, end of episodes, the model at its true point, and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope.cli.model_source import LoadedModel
from tightrope.cli.questions import PropertyTexts
from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.data.sampled_costs import CostSource
    from tightrope.data.simulator import Simulator
    from tightrope.data.steered_simulator import SteeredSimulator
    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.numerics.arrays import BoolArray

DEFAULT_CAP = 1000
"""Steps after which an episode is cut off, where neither --cap nor a benchmark says otherwise."""

UNIFORM = "uniform"


@dataclass(frozen=True)
class Setting:
    """How to walk: the policy, where and when an episode ends, and the property that decides it."""

    policy: Policy | None
    stop: BoolArray | None
    cap: int
    text: str | None


def setting_of(
    loaded: LoadedModel, asked: PropertyTexts, constants: Mapping[str, str], cap: int | None, policy: str
) -> Setting:
    from tightrope.data.stopping import deciding_steps, find_decided_states
    from tightrope.model.policy import Policy

    structure = loaded.model.structure
    benchmark = loaded.benchmark
    limit = cap if cap is not None else benchmark.episode_cap if benchmark is not None else DEFAULT_CAP
    taken = None if policy == UNIFORM else Policy(structure, policy)
    if not asked.files and benchmark is None:
        return Setting(taken, None, limit, None)
    questions = asked.queries(loaded, constants)
    if len(questions) != 1:
        raise InputError(f"one property decides when an episode ends, not {len(questions)}")
    objective = questions[0].objective
    steps = deciding_steps(objective)
    if steps is not None:
        limit = max(1, min(limit, steps))
    return Setting(taken, find_decided_states(objective, structure.states), limit, questions[0].text)


def simulator_at(
    loaded: LoadedModel, setting: Setting, at: str | None
) -> tuple[Simulator | SteeredSimulator, dict[str, str]]:
    """The model at the point that was asked for, ready to walk, and the point in words."""
    from tightrope.data.simulator import Simulator
    from tightrope.data.steered_simulator import SteeredSimulator

    mdp, point = _at_point(loaded, at)
    if setting.policy is not None and setting.policy.has_memory:
        there = setting.policy, setting.stop, setting.cap, loaded.model.hash()
        return SteeredSimulator(mdp, *there), point
    return Simulator(mdp, setting.policy, setting.stop, setting.cap, loaded.model.hash()), point


def _at_point(loaded: LoadedModel, at: str | None) -> tuple[MDP, dict[str, str]]:
    from tightrope.benchmarks.instance import decimal_text
    from tightrope.model.mdp import MDP, IntervalMDP

    model = loaded.model
    if isinstance(model, IntervalMDP):
        raise InputError("an interval model has no single set of probabilities to draw from")
    point = loaded.point(at)
    if isinstance(model, MDP):
        return model, {}
    named = zip(model.parameters.names, point, strict=True)
    return model.instantiate(point), {name: decimal_text(value) for name, value in named}


def cost_source(
    text: str,
    loaded: LoadedModel,
    asked: PropertyTexts,
    constants: Mapping[str, str],
    at: str | None,
    seed: int,
) -> CostSource:
    """Costs around the rewards that the property asks for, or the only ones of the model."""
    from tightrope.data.sampled_costs import CostNoise, CostSource, mean_costs, reward_of

    structure = loaded.model.structure
    wanted = None
    if asked.files or loaded.benchmark is not None:
        objective = asked.queries(loaded, constants)[0].objective
        wanted = objective.reward if objective.is_reward else None
    reward = wanted if wanted is not None else reward_of(structure.rewards)
    point = list(loaded.point(at))
    return CostSource(mean_costs(reward, structure, point), CostNoise.parse(text), seed)
