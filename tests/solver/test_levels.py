"""Orders of models without cycles: successors first, levels that do not depend on each other, fixed parts.

Also of `solver/iteration/parallel_block.py`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.solver import solve
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.equations.ordering import (
    AcyclicOrder,
    cut_levels,
    level_states,
    order_acyclic,
    order_structure,
)
from tightrope.solver.equations.system import equations_of


def random_dag(seed: int, states: int = 60) -> Structure:
    """One to three choices of one to three successors with larger numbers, renumbered; the last ones loop."""
    rng = np.random.default_rng(seed)
    name = rng.permutation(states)
    rows: list[list[list[int]]] = [[] for _ in range(states)]
    for s in range(states):
        for _ in range(int(rng.integers(1, 4)) if s < states - 4 else 1):
            later = rng.choice(np.arange(s + 1, states), min(int(rng.integers(1, 4)), states - s - 1), False)
            rows[name[s]].append(sorted(name[later].tolist()) if s < states - 4 else [int(name[s])])
    lengths = [len(choice) for row in rows for choice in row]
    return Structure(
        choice_start=np.cumsum([0, *(len(row) for row in rows)]),
        transition_start=np.cumsum([0, *lengths]),
        successor=np.array([to for row in rows for choice in row for to in choice], np.int32),
    )


def edges(structure: Structure) -> tuple[OffsetArray, OffsetArray]:
    return structure.choice_state[structure.transition_choice].astype(np.int64), structure.successor.astype(
        np.int64
    )


def assert_fits(order: AcyclicOrder, structure: Structure, settled: BoolArray) -> None:
    source, to = edges(structure)
    open_ = ~settled[source]
    assert np.all(order.ranking[to[open_]] < order.ranking[source[open_]])
    states, start = order.levels.states, order.levels.start
    assert sorted(states.tolist()) == np.flatnonzero(~settled).tolist()
    level = np.zeros(structure.states, np.int64)
    for k in range(len(start) - 1):
        assert start[k] < start[k + 1]
        level[states[start[k] : start[k + 1]]] = k + 1
    inside = open_ & ~settled[to]
    assert np.all(level[to[inside]] < level[source[inside]])


@pytest.mark.parametrize("seed", range(4))
def test_successors_come_first(seed: int) -> None:
    structure = random_dag(seed)
    loops = np.zeros(structure.states, np.bool_)
    source, to = edges(structure)
    loops[source[source == to]] = True
    order = order_structure(structure)
    assert order is not None and order_structure(structure) is order
    assert_fits(order, structure, loops)
    more = loops | (np.random.default_rng(seed).random(structure.states) < 0.3)
    narrowed = order_acyclic(structure, lambda: np.ones(structure.transitions, np.bool_), more)
    assert narrowed is not None
    assert_fits(narrowed, structure, more)
    assert order_acyclic(structure, lambda: np.zeros(0, np.bool_), more.copy()) is narrowed


def test_loops_that_are_not_settled_are_cycles() -> None:
    structure = random_dag(1)
    nothing = np.zeros(structure.states, np.bool_)
    assert order_acyclic(structure, lambda: np.ones(structure.transitions, np.bool_), nothing) is None
    reward = RewardStructure(state=np.ones(structure.states))
    kind, discount = ObjectiveKind.DISCOUNTED, 0.5
    objective = Objective(kind, Direction.MAX, Direction.MIN, reward=reward, discount=discount)
    length = np.diff(structure.transition_start)
    even = np.repeat(1.0 / length, length)
    solution = solve(IntervalMDP(structure, even * 0.9, np.minimum(even * 1.1, 1.0)), objective)
    assert np.allclose(solution.lower, 2.0, rtol=1e-5) and np.allclose(solution.upper, 2.0, rtol=1e-5)


def test_an_order_for_a_cycle_that_a_target_cuts() -> None:
    structure = Structure(np.arange(4), np.arange(4), np.array([1, 2, 0], np.int32))
    assert order_structure(structure) is None
    every = np.ones(3, np.bool_)
    order = order_acyclic(structure, lambda: every, np.array([False, False, True]))
    assert order is not None and order.levels.states.tolist() == [1, 0]
    assert order_acyclic(structure, lambda: every, np.zeros(3, np.bool_)) is None


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_stages_are_cut_into_parts(workers: int) -> None:
    structure = random_dag(5, 200)
    order = order_structure(structure)
    assert order is not None
    levels = order.levels
    stages = cut_levels(levels, structure, workers, 6)
    assert stages[0, 0] == 0 and stages[-1, -1] == len(levels.states)
    assert np.array_equal(stages[1:, 0], stages[:-1, -1]) and np.all(np.diff(stages, axis=1) >= 0)
    together = [row for row in stages if row[1] < row[-1]]
    assert workers == 1 or len(together) > 2
    for row in together:  # one level, in parts that differ by little
        assert row[0] in levels.start and row[-1] in levels.start
        work = structure.transition_start[structure.choice_start]
        each = [sum(int(work[s + 1] - work[s]) for s in levels.states[a:b]) for a, b in pairwise(row)]
        assert max(each) - min(each) <= 2 * 9
    again = level_states(structure, np.ones(structure.transitions, np.bool_), levels.states)
    assert again.start.tolist() == levels.start.tolist()


@pytest.mark.parametrize("maximise", [False, True])
def test_passes_have_the_bits_of_single_backups(maximise: bool) -> None:
    """Both bounds are spread together in a pass, and one by one in backups of all choices."""
    rng = np.random.default_rng(11)
    structure = random_dag(6, 150)
    length = np.diff(structure.transition_start)
    even = np.repeat(1.0 / length, length)
    slack = rng.random(len(even)) * 0.3
    model = IntervalMDP(structure, np.maximum(even - slack, 0.0), np.minimum(even + slack, 1.0))
    reward = RewardStructure(choice=rng.random(structure.choices))
    target = np.zeros(structure.states, np.bool_)
    source, to = edges(structure)
    target[source[source == to]] = True
    nature = Direction.MAX if maximise else Direction.MIN
    objective = Objective(ObjectiveKind.REACH_REWARD, Direction.MAX, nature, target=target, reward=reward)
    found = solve(model, objective)
    kernel = IntervalOperator.of(model)
    every = np.ones(structure.choices, np.bool_)
    system = equations_of(objective, structure, kernel.support, every).system
    starts = structure.choice_start[:-1]
    for upward, values in ((False, found.lower), (True, found.upper)):
        best = np.maximum.reduceat(kernel.safe_choices(system, values, upward), starts)
        assert np.array_equal(best[~target], values[~target])
