"""What solves ordinary models faster changes nothing that is found: sweeps, drawing in passes, relaxation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tightrope.cli import sources
from tightrope.model.graph.qualitative import MOST_PASSES, attract, positive
from tightrope.model.graph.support import Ranked, Support
from tightrope.model.mdp import MDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Structure
from tightrope.solver.bellman.gauss_seidel import sweep_plain
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.equations.system import Block, Rows, equations_of, longest_choices
from tightrope.solver.iteration.host import PROBE, OverRelaxation
from tightrope.solver.solution import Progress
from tightrope.solver.solve import solve


def random_mdp(seed: int, states: int) -> MDP:
    """Up to three choices per state, each with up to four successors; every fourth may have probability 0."""
    random = np.random.default_rng(seed)
    choices = random.integers(1, 4, states)
    width = random.integers(1, 5, int(choices.sum()))
    successor = np.concatenate([random.choice(states, k, replace=False) for k in width]).astype(np.int32)
    weight = [random.integers(0, 4, k) for k in width]
    row = [(w + (w.sum() == 0)) / (w + (w.sum() == 0)).sum() for w in weight]
    structure = Structure(
        choice_start=np.concatenate([[0], np.cumsum(choices)]),
        transition_start=np.concatenate([[0], np.cumsum(width)]),
        successor=successor,
    )
    return MDP(structure, np.concatenate(row))


def reach(model: MDP, agent: Direction) -> Objective:
    target = np.zeros(model.states, np.bool_)
    target[0] = True
    return Objective(ObjectiveKind.UNTIL, agent, Direction.MIN, target=target)


@pytest.mark.parametrize("agent", [Direction.MIN, Direction.MAX])
def test_a_plain_sweep_backs_up_one_state_after_the_other(agent: Direction) -> None:
    for seed in range(5):
        model = random_mdp(seed, 60)
        kernel, structure = IntervalOperator.of(model), model.structure
        enabled = np.ones(model.choices, np.bool_)
        system = equations_of(reach(model, agent), structure, kernel.support, enabled).system
        block = Block.of_states(np.arange(1, model.states, dtype=np.int32))
        rows = Rows.room_for(longest_choices(structure), block, with_bounds=False)
        values, shift = np.linspace(1.0, 0.0, model.states), np.zeros(len(block))
        expected = values.tolist()
        for _ in range(3):
            change = sweep_plain(kernel.arrays, system.arrays, block.arrays, rows, values, shift, 1e-300)
            assert change == sweep_in_order(model, kernel.lower.tolist(), expected, rows, agent)
            assert values.tolist() == expected


def sweep_in_order(
    model: MDP, probability: list[float], values: list[float], rows: Rows, agent: Direction
) -> float:
    """The largest relative change; `rows` hold the choices of just such a sweep."""
    structure, largest = model.structure, 0.0
    for g, state in enumerate(range(1, model.states)):
        worth: dict[int, float] = {}
        for choice in range(*structure.choice_start[state : state + 2].tolist()):
            x = 0.0
            for t in range(*structure.transition_start[choice : choice + 2].tolist()):
                if probability[t] > 0.0:
                    x += probability[t] * values[structure.successor[t]]
            worth[choice] = x
        best = (max if agent is Direction.MAX else min)(worth, key=worth.__getitem__)
        assert rows.choice[g] == best
        here = slice(rows.row_start[g], rows.row_end[g])
        dense = np.bincount(rows.column[here], rows.weight[here], model.states)
        dense[state] += rows.self_weight[g]
        own = slice(*structure.transition_start[best : best + 2])
        assert np.allclose(dense, np.bincount(structure.successor[own], probability[own], model.states))
        new, old = min(max(worth[best], 0.0), 1.0), values[state]
        if new != old:
            largest = max(largest, abs(new - old) / max(abs(new), 1e-300))
        values[state] = new
    return largest


@pytest.mark.parametrize("agent", [False, True])
def test_drawing_in_passes_draws_whom_a_worklist_draws(agent: bool) -> None:
    for seed in range(20):
        support = Support.of(random_mdp(seed, 40))
        structure = support.structure
        target = np.zeros(structure.states, np.bool_)
        target[seed % 7] = True
        within, choices = np.ones(structure.states, np.bool_), np.ones(structure.choices, np.bool_)
        found = positive(support, target, (agent, False))
        expected = Ranked.begin(target.copy())
        attract(support.arrays, within, choices, agent, False, expected, 0)
        assert np.array_equal(found.states, expected.states)
        assert_progress(support, found, target, agent)


def test_drawing_goes_on_where_passes_end() -> None:
    """A path numbered at random, so that each pass draws little."""
    length = 2 * MOST_PASSES + 100
    random = np.random.default_rng(3)
    order = np.concatenate([[0], 1 + random.permutation(length - 1)])
    successor = np.empty(length, np.int32)
    successor[order[1:]] = order[:-1]
    successor[0] = 0
    structure = Structure(np.arange(length + 1), np.arange(length + 1), successor)
    support = Support.of(MDP(structure, np.ones(length)))
    target = np.arange(length) == 0
    found = positive(support, target, (True, True))
    assert found.states.all()
    assert sorted(found.rank) == list(range(length))
    assert_progress(support, found, target, True)


def assert_progress(support: Support, found: Ranked, target: np.ndarray, agent: bool) -> None:
    """Whoever was drawn meets a smaller rank, through its witness or through every choice."""
    structure = support.structure
    for s in np.flatnonzero(found.states & ~target):
        first, last = structure.choice_start[s : s + 2]
        mine = [found.witness[s]] if agent else range(first, last)
        for c in mine:
            t = np.arange(structure.transition_start[c], structure.transition_start[c + 1])
            to = structure.successor[t[support.possible[t]]]
            assert (found.states[to] & (found.rank[to] < found.rank[s])).any()


def converging(rate: Callable[[float], float]) -> tuple[OverRelaxation, list[float], list[int]]:
    """Relaxation of sweeps whose change shrinks by rate(ω) each: (it, ω of each call, sweeps at which values
    were restored)."""
    relaxation, change, used, restored = OverRelaxation(), [1.0], [], []

    def sweep(most: int, factor: float) -> tuple[int, float]:
        used.append(factor)
        change[0] *= rate(factor) ** most
        return most, change[0]

    def keep() -> Callable[[], None]:
        kept = change[0]

        def restore() -> None:
            change[0] = kept
            restored.append(len(used))

        return restore

    for _ in range(12):
        relaxation.sweep(sweep, keep, 64, 0.0)
    return relaxation, used, restored


def test_relaxation_stops_where_it_no_longer_helps() -> None:
    relaxation, used, restored = converging(lambda omega: 0.95 + (omega - 1.3) ** 2)
    assert relaxation.is_settled
    assert relaxation.accepted == pytest.approx(1.3)
    assert max(used) == pytest.approx(1.4)
    assert len(restored) == 1, "what 1.4 did is taken back"


def test_fast_sweeps_are_not_relaxed() -> None:
    relaxation, used, _ = converging(lambda omega: 0.5)
    assert relaxation.accepted == 1.0
    assert set(used) == {1.0}


def test_few_sweeps_are_not_relaxed() -> None:
    asked = []
    done = OverRelaxation(factor=1.5).sweep(
        lambda most, factor: (asked.append(factor), (most, 0.5))[1], lambda: lambda: None, PROBE, 0.0
    )
    assert done == (PROBE, 0.5)
    assert asked == [1.0]


def test_a_slow_walk_is_bounded_as_asked() -> None:
    """P(hit the top before the bottom) of a walk with drift is known: (1 − r^i)/(1 − r^n)."""
    length = 3000
    states = np.arange(length + 1)
    inner = (states > 0) & (states < length)
    width = np.where(inner, 2, 1)
    successor = np.concatenate([[s - 1, s + 1] if inner[s] else [s] for s in states])
    probability = np.concatenate([[0.499, 0.501] if inner[s] else [1.0] for s in states])
    start = np.concatenate([[0], np.cumsum(width)])
    model = MDP(Structure(np.arange(length + 2), start, successor.astype(np.int32)), probability)
    objective = Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MAX, target=states == length)
    found = solve(model, objective, precision=1e-6, threads=1)
    ratio = 0.499 / 0.501
    exact = -np.expm1(states * np.log(ratio)) / -np.expm1(length * np.log(ratio))
    assert found.is_certified
    assert np.all(found.lower <= exact * (1 + 1e-9))
    assert np.all(exact <= found.upper * (1 + 1e-9))


def test_fill_is_expected_to_grow_as_it_has() -> None:
    progress = Progress()
    progress.note_fill(100, 4.0)
    assert not progress.may_factorise(90_000), "4·√900 is too much"
    progress.note_fill(10_000, 4.4)
    assert progress.may_factorise(90_000)
    assert progress.sweeps_per_factorisation == int(4 * 4.4**2)


def test_memory_is_given_back_where_that_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    class Allocator:
        def __init__(self, name: None):
            asked.append(name)

        def malloc_trim(self, room: int) -> None:
            asked.append(room)

    def refuse(name: None) -> None:
        asked.append("refused")
        raise TypeError("no such library")

    for library in (Allocator, refuse):
        monkeypatch.setattr(sources.ctypes, "CDLL", library)
        sources.give_back_memory()
    assert asked == [None, 0, "refused"]
