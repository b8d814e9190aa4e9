"""The solver beside Storm on random models: ordinary and interval ones, P and R, all directions Storm has.

Storm's interval check stops on a residual, so its values are compared with a tolerance; ours are bounds.
Interval models have positive lower bounds, as Storm assumes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import stormpy

from tightrope.io.drn.write import write_drn
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.solver import solve

STATES = 40
TOLERANCE = 1e-4
"""Storm has been seen 2e-5 away from the verified bounds, at a precision of 1e-6."""


def random_models(seed: int) -> tuple[MDP, IntervalMDP]:
    """The same structure with probabilities, and with intervals around them; the last state is the goal."""
    rng = np.random.default_rng(seed)
    lengths, successors, weights, choices = [], [], [], []
    for s in range(STATES):
        count = int(rng.integers(1, 4))
        choices.append(count)
        for _ in range(count):
            k = int(rng.integers(1, 5))
            near = np.clip(s + rng.integers(-4, 6, size=8), 0, STATES - 1)
            reached = np.unique(rng.choice(near, size=k))
            lengths.append(len(reached))
            successors.append(reached)
            weights.append(rng.dirichlet(np.full(len(reached), 2.0)) if len(reached) > 1 else np.ones(1))
    probability = np.concatenate(weights)
    goal = np.arange(STATES) == STATES - 1
    structure = Structure(
        choice_start=np.concatenate([[0], np.cumsum(choices)]),
        transition_start=np.concatenate([[0], np.cumsum(lengths)]),
        successor=np.concatenate(successors).astype(np.int32),
        labels={
            "goal": goal,
            "trap": np.arange(STATES) == int(rng.integers(1, STATES - 1)),
            "init": np.arange(STATES) == 0,
        },
        rewards={"cost": RewardStructure(state=rng.integers(1, 4, size=STATES).astype(float))},
    )
    lower = np.where(probability < 1, probability * 0.8, 1.0)
    upper = np.where(probability < 1, np.minimum(probability * 1.3, 1.0), 1.0)
    return MDP(structure, probability), IntervalMDP(structure, lower, upper)


def stored(model: MDP | IntervalMDP, folder: Path) -> object:
    path = folder / "model.drn"
    write_drn(model, path)
    kind = stormpy.Interval if isinstance(model, IntervalMDP) else float
    return stormpy.build_model_from_drn[kind](str(path))


def storm_values(built: object, formula: str, mode: object = None) -> np.ndarray:
    asked = stormpy.parse_properties(formula)[0]
    if mode is None:
        environment = stormpy.environments.default(built)
        result = stormpy.model_checking(built, asked, environment=environment)
    else:
        result = stormpy.model_checking(built, asked, uncertainty_resolution_mode=mode)
    return np.array([result.get_value(s) for s in range(STATES)], dtype=float)


def objective(structure: Structure, kind: str, agent: Direction, nature: Direction) -> Objective:
    goal, trap = structure.labels["goal"], structure.labels["trap"]
    if kind == "P":
        return Objective(ObjectiveKind.UNTIL, agent, nature, target=goal, allowed=~trap)
    return Objective(ObjectiveKind.REACH_REWARD, agent, nature, target=goal, reward=structure.rewards["cost"])


def assert_agree(ours: object, storm: np.ndarray, note: object) -> None:
    infinite = np.isinf(storm)
    assert np.array_equal(np.isinf(ours.lower), infinite), note
    scale = np.maximum(np.abs(storm[~infinite]), 1e-3)
    assert np.all(ours.lower[~infinite] - storm[~infinite] <= TOLERANCE * scale), note
    assert np.all(storm[~infinite] - ours.upper[~infinite] <= TOLERANCE * scale), note
    assert ours.is_certified


@pytest.mark.thinned(2)
@pytest.mark.parametrize("agent", Direction)
@pytest.mark.parametrize("kind", ["P", "R"])
def test_ordinary_models(kind: str, agent: Direction, tmp_path: Path) -> None:
    formula = {"P": '[ !"trap" U "goal" ]', "R": '[ F "goal" ]'}[kind]
    for seed in range(12):
        model, _ = random_models(seed)
        storm = storm_values(stored(model, tmp_path), f"{kind}{agent.value}=? {formula}")
        assert_agree(solve(model, objective(model.structure, kind, agent, agent)), storm, seed)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("robust", [True, False])
@pytest.mark.parametrize("agent", Direction)
@pytest.mark.parametrize("kind", ["P", "R"])
def test_interval_models(kind: str, agent: Direction, robust: bool, tmp_path: Path) -> None:
    formula = {"P": '[ !"trap" U "goal" ]', "R": '[ F "goal" ]'}[kind]
    modes = stormpy.UncertaintyResolutionMode
    nature = agent.opposite if robust else agent
    for seed in range(8):
        _, model = random_models(seed)
        mode = modes.ROBUST if robust else modes.COOPERATIVE
        storm = storm_values(stored(model, tmp_path), f"{kind}{agent.value}=? {formula}", mode)
        assert_agree(solve(model, objective(model.structure, kind, agent, nature)), storm, seed)
