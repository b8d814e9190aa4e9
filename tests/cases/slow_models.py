"""Models on which plain iteration is slow: ladders, long walks, equally good ways, costs on a grid."""

from __future__ import annotations

import numpy as np

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure


def ladder(rungs: int, smallest: float) -> tuple[IntervalMDP, Objective]:
    """Climb with a probability of at least `smallest` a rung, else fall to the ground; or wait a step.

    Nature against the agent: the expected number of steps is Σ smallest^-k for k = 1..rungs."""
    successor, lower, upper = [], [], []
    for rung in range(rungs):
        successor += [0, rung + 1, rung]
        lower += [0.0, smallest, 1.0]
        upper += [1 - smallest, 1.0, 1.0]
    structure = Structure(
        choice_start=np.append(2 * np.arange(rungs + 1), 2 * rungs + 1),
        transition_start=np.append(np.cumsum([0, *([2, 1] * rungs)]), 3 * rungs + 1),
        successor=np.array([*successor, rungs], np.int32),
        rewards={"steps": RewardStructure(state=np.append(np.ones(rungs), 0.0))},
    )
    model = IntervalMDP(structure, np.array([*lower, 1.0]), np.array([*upper, 1.0]))
    objective = Objective(
        ObjectiveKind.REACH_REWARD,
        Direction.MIN,
        Direction.MAX,
        target=np.arange(rungs + 1) == rungs,
        reward=structure.rewards["steps"],
    )
    return model, objective


def two_ways(leave: float, agent: Direction, tilt: float = 0.0) -> tuple[MDP, Objective]:
    """A short way and one that is left with probability 4·leave a step; whichever the agent takes, the values
    of states 0 to 3 are ½. With a `tilt` the long way reaches the target a little less often, so that
    rounding has no say in which one is the better.
    """
    long = [(0, 2 * leave), (4, leave * (1 - tilt)), (5, leave * (1 + tilt))]
    rows = [
        [(1, 1.0)],
        [(2, 1.0)],
        [(0, 0.2), (4, 0.4), (5, 0.4)],
        [*long, (3, 1 - 4 * leave)],
        [*long, (2, 1 - 4 * leave)],
        [(4, 1.0)],
        [(5, 1.0)],
    ]
    structure = Structure(
        choice_start=np.array([0, 2, 3, 4, 5, 6, 7]),
        transition_start=np.cumsum([0, *(len(row) for row in rows)]),
        successor=np.array([s for row in rows for s, _ in row], np.int32),
    )
    model = MDP(structure, np.array([p for row in rows for _, p in row]))
    objective = Objective(ObjectiveKind.UNTIL, agent, agent, target=np.arange(6) == 4)
    return model, objective


def hesitant_walk(length: int) -> tuple[IntervalMDP, Objective]:
    """Walk back or on, or wait for one chance in fifty to move on: as long as possible, nature in a hurry.

    The value is length² + 49·length; on the way there are policies whose equations have no solution."""
    rows = []
    for state in range(length):
        rows += [
            [(max(state - 1, 0), 0.5, 0.52), (state + 1, 0.48, 0.5)],
            [(state, 0.0, 1.0), (state + 1, 0.0, 0.02)],
        ]
    rows.append([(length, 1.0, 1.0)])
    structure = Structure(
        choice_start=np.append(2 * np.arange(length + 1), 2 * length + 1),
        transition_start=np.cumsum([0, *(len(row) for row in rows)]),
        successor=np.array([to for row in rows for to, _, _ in row], np.int32),
        rewards={"steps": RewardStructure(state=np.append(np.ones(length), 0.0))},
    )
    lower, upper = (np.array([entry[i] for row in rows for entry in row]) for i in (1, 2))
    objective = Objective(
        ObjectiveKind.REACH_REWARD,
        Direction.MAX,
        Direction.MIN,
        target=np.arange(length + 1) == length,
        reward=structure.rewards["steps"],
    )
    return IntervalMDP(structure, lower, upper), objective


def cost_grid(side: int, every: int) -> tuple[IntervalMDP, Objective]:
    """Four moves that slip to either side, and stations every so many cells that end the trip."""
    cells = np.arange(side * side)
    x, y = cells % side, cells // side
    ways = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    to = [((x + dx) % side) + side * ((y + dy) % side) for dx, dy in ways]
    successor = np.stack([np.stack([to[a], to[(a + 1) % 4], to[a - 1]], 1) for a in range(4)], 1)
    station = (x % every == 0) & (y % every == 0)
    structure = Structure(
        4 * np.arange(len(cells) + 1), 3 * np.arange(4 * len(cells) + 1), successor.ravel().astype(np.int32)
    )
    slip = 0.05 + 0.05 * (cells % 3)
    lower = np.repeat(np.stack([0.8 - 2 * slip, slip / 2, slip / 2], 1), 4, axis=0).ravel()
    upper = np.repeat(np.stack([1 - slip, slip * 2, slip * 2], 1), 4, axis=0).ravel()
    cost = RewardStructure(state=1.0 + (cells % 5 == 0))
    objective = Objective(
        ObjectiveKind.REACH_REWARD, Direction.MIN, Direction.MAX, target=station, reward=cost
    )
    return IntervalMDP(structure, lower, upper), objective
