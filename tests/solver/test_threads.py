"""Several threads: bounds that hold whatever their number, and the same bits for the same number."""

from __future__ import annotations

import runpy
import threading
import time
from threading import get_ident
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from cases import rectangular_models as regions
from cases.exact_values import KINDS, assert_encloses, draw
from exact_reference import brute_force, random_objective
from places import TESTS
from tightrope.ambiguity.sets import rectangular
from tightrope.data.simulator import Simulator
from tightrope.errors import InputError
from tightrope.learning import pipeline
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.team import MOST_THREADS, Aside, Team, count_threads
from tightrope.regions.event_polytope import polytope_region
from tightrope.solver import Solution, Status, solve
from tightrope.solver.iteration import host
from tightrope.solver.iteration.parallel_block import ParallelBlock
from tightrope.solver.solve import operator_of

SCRIPT = TESTS.parent / "benchmarks" / "solve_speed.py"
MIN, MAX = Direction.MIN, Direction.MAX


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Parts of a few groups, levels of a few states; the number of parts of every block that was cut."""
    cut: list[int] = []
    original = ParallelBlock.__init__

    def counted(self: ParallelBlock, whole: Any, scratch: Any, team: Team) -> None:
        cut.append(len(scratch))
        original(self, whole, scratch, team)

    monkeypatch.setattr(ParallelBlock, "__init__", counted)
    monkeypatch.setattr(host, "LEAST_GROUPS", 4)
    monkeypatch.setattr(host, "LEAST_TRANSITIONS", 0)
    monkeypatch.setattr(host, "LEAST_OF_LEVEL", 2)
    monkeypatch.setattr(host, "LEAST_CHOICES", 2)
    return cut


def assert_same_bits(a: Solution, b: Solution) -> None:
    assert np.array_equal(a.lower, b.lower) and np.array_equal(a.upper, b.upper)
    assert np.array_equal(a.policy, b.policy) and a.iterations == b.iterations


def assert_overlap(a: Solution, b: Solution) -> None:
    assert a.status is b.status
    assert np.all(a.lower <= b.upper) and np.all(b.lower <= a.upper)


@pytest.mark.parametrize("event", ["P", "R"])
def test_a_block_cut_into_parts_has_the_same_value(event: str, small_parts: list[int]) -> None:
    model, objective, _ = runpy.run_path(str(SCRIPT))["grid"](14, 14, event)
    one = solve(model, objective, threads=1)
    assert not small_parts
    for threads in (2, 3):
        several = solve(model, objective, threads=threads)
        assert_overlap(several, one)
        assert several.is_certified and several.gap <= 1e-6
        assert small_parts.pop() == threads
        assert_same_bits(several, solve(model, objective, threads=threads))


def test_blocks_of_ordinary_models_stay_whole(small_parts: list[int]) -> None:
    """Over-relaxed sweeps gain more there than parts beside each other, which do without."""
    ends = [(0, "stay", {0: 1.0}), (60, "stay", {60: 1.0})]
    walk = [(s, "go", {s - 1: 0.5, s + 1: 0.5}) for s in range(1, 60)]
    model = tr.build_from_rows([*ends, *walk], initial=15).instantiate()
    objective = Objective(ObjectiveKind.UNTIL, MAX, MAX, target=np.arange(61) == 60)
    one, two = solve(model, objective, threads=1), solve(model, objective, threads=2)
    assert not small_parts
    assert_same_bits(one, two)
    assert two.lower[model.initial] <= 0.25 <= two.upper[model.initial] and two.is_certified


@pytest.mark.parametrize("kind", KINDS)
def test_small_random_models_are_enclosed_whatever_is_cut(
    kind: ObjectiveKind, small_parts: list[int]
) -> None:
    """End components that are collapsed, zero bounds, ties, infinite rewards."""
    for seed in range(300, 304):
        rng, model = draw(seed)
        for agent, nature in ((MIN, MAX), (MAX, MAX)):
            objective = random_objective(rng, model, kind, agent, nature)
            solution = solve(model.model(), objective, threads=2)
            assert_encloses(solution, brute_force(model, objective), seed)
            assert solution.is_certified, (seed, solution.status)


def rooms(count: int) -> tuple[IntervalMDP, Objective]:
    """Independent rooms of five cells in a ring, each left with some luck, and a hall that leads to all."""
    size, states = 5, 5 * count + 2
    successor, lower, upper, lengths = [], [], [], []
    for room in range(count):
        for cell in range(size):
            here = room * size + cell
            after = room * size + (cell + 1) % size
            successor += [after, here, states - 1]
            lower += [0.5, 0.05, 0.02 + 0.001 * room]
            upper += [0.9, 0.3, 0.1]
            lengths.append(3)
    successor += [room * size for room in range(count)] + [states - 1]
    lower += [0.5 / count] * count + [1.0]
    upper += [1.0] * count + [1.0]
    structure = Structure(
        choice_start=np.arange(states + 1),
        transition_start=np.cumsum([0, *lengths, count, 1]),
        successor=np.array(successor, np.int32),
        rewards={"steps": RewardStructure(state=np.append(np.ones(states - 1), 0.0))},
    )
    objective = Objective(
        ObjectiveKind.REACH_REWARD,
        MIN,
        MAX,
        target=np.arange(states) == states - 1,
        reward=structure.rewards["steps"],
    )
    return IntervalMDP(structure, np.array(lower), np.array(upper)), objective


def test_blocks_beside_each_other_are_solved_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "LEAST_TRANSITIONS", 0)
    together: list[int] = []
    original = Team.run

    def counted(self: Team, tasks: Any) -> Any:
        together.append(len(tasks))
        return original(self, tasks)

    monkeypatch.setattr(Team, "run", counted)
    model, objective = rooms(12)
    one, two = solve(model, objective, threads=1), solve(model, objective, threads=2)
    assert_overlap(two, one)
    assert two.is_certified and max(together) == 12
    assert_same_bits(two, solve(model, objective, threads=2))


def test_passes_over_acyclic_models_have_the_bits_of_one_thread(small_parts: list[int]) -> None:
    """Levels cut among threads read what lower levels left, and nothing else."""
    rng = np.random.default_rng(7)
    states, width = 400, 3
    ahead = np.minimum(np.arange(states)[:, None] + rng.integers(1, 60, (states, width)), states - 1)
    ahead[:, 0] = np.minimum(np.arange(states) + 20, states - 1)
    structure = Structure(
        np.arange(states + 1), width * np.arange(states + 1), ahead.ravel().astype(np.int32)
    )
    middle = rng.dirichlet(np.ones(width), states).ravel()
    model = IntervalMDP(structure, np.maximum(middle - 0.1, 0.0), np.minimum(middle + 0.1, 1.0))
    objective = Objective(ObjectiveKind.UNTIL, MAX, MIN, target=np.arange(states) == states - 7)
    one, three = solve(model, objective, threads=1), solve(model, objective, threads=3)
    assert_same_bits(three, one)
    assert 0 < one.lower[0] < 1 and not small_parts


def test_levels_where_rounding_does_not_tell_who_gets_anything(small_parts: list[int]) -> None:
    """0.1 + 0.2 + 0.7 in float64 may leave something for the fourth successor: decided exactly, by whoever
    meets such a choice."""
    rng = np.random.default_rng(3)
    states, ends = 304, 4
    ahead = [np.sort(s + 1 + rng.choice(min(40, states - 1 - s), 4, False)) for s in range(states - ends)]
    tight = np.tile([0.1, 0.2, 0.7, 0.5], (states - ends, 1))
    tight[rng.random(states - ends) < 0.5] = 0.4
    structure = Structure(
        choice_start=np.arange(states + 1),
        transition_start=np.cumsum([0] + [4] * (states - ends) + [1] * ends),
        successor=np.concatenate([*ahead, np.arange(states - ends, states)]).astype(np.int32),
    )
    lower = np.concatenate([np.zeros(4 * (states - ends)), np.ones(ends)])
    model = IntervalMDP(structure, lower, np.concatenate([tight.ravel(), np.ones(ends)]))
    objective = Objective(ObjectiveKind.UNTIL, MAX, MIN, target=np.arange(states) == states - 2)
    one, three = solve(model, objective, threads=1), solve(model, objective, threads=3)
    assert_same_bits(three, one)
    assert np.all(one.lower <= one.upper)


def test_rectangular_sets(small_parts: list[int]) -> None:
    model = regions.random_model(1, cyclic=True)
    intervals = regions.random_intervals(model, 1)
    kernel = operator_of(rectangular(polytope_region(intervals), model, intervals.expression_bounds()))
    objective = regions.reach(model, MAX, MIN)
    one, two = solve(kernel, objective, threads=1), solve(kernel, objective, threads=2)
    assert_overlap(two, one)
    assert np.allclose(one.lower, two.lower, rtol=2e-6) and np.allclose(one.upper, two.upper, rtol=2e-6)
    assert_same_bits(two, solve(kernel, objective, threads=2))


def test_limits_hold_with_several_threads(small_parts: list[int]) -> None:
    model, objective, _ = runpy.run_path(str(SCRIPT))["grid"](14, 14, "P")
    limited = solve(model, objective, iterations=20, threads=2)
    assert limited.status is Status.ITERATION_LIMIT and limited.iterations < 60
    exact = solve(model, objective, threads=1)
    assert np.all(limited.lower <= exact.upper) and np.all(exact.lower <= limited.upper)


@pytest.mark.costly("test_levels_of_rectangular_sets")
def test_learning_with_several_threads_gives_the_same_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (host, pipeline):
        monkeypatch.setattr(module, "LEAST_TRANSITIONS", 0)
    asked = tr.benchmark("aircraft(10,5)")
    simulator = Simulator(asked.at_truth.model, cap=asked.episode_cap, model_hash=asked.model.hash())
    data = simulator.episodes(200, seed=3)
    one, two = (tr.learn(asked.problem, data, delta=0.01, threads=threads) for threads in (1, 2))
    assert two.interval.lower == pytest.approx(one.interval.lower, rel=1e-6)
    assert two.interval.upper == pytest.approx(one.interval.upper, rel=1e-6)
    assert np.array_equal(one.optimistic.policy, two.optimistic.policy)
    assert two.fit is not None and two.fit == one.fit
    assert two.binding == one.binding and np.array_equal(two.widths.expression, one.widths.expression)
    assert set(two.seconds) == set(one.seconds)


def test_levels_of_rectangular_sets(small_parts: list[int]) -> None:
    model = regions.random_model(2, cyclic=False)
    intervals = regions.random_intervals(model, 2)
    kernel = operator_of(rectangular(polytope_region(intervals), model, intervals.expression_bounds()))
    objective = regions.reach(model, MAX, MIN)
    one, two = solve(kernel, objective, threads=1), solve(kernel, objective, threads=2)
    assert_overlap(two, one)
    assert_same_bits(two, solve(kernel, objective, threads=2))


def test_no_process_waits_for_a_failed_worker() -> None:
    from tightrope.numerics.lockstep import ENDED, WAITING, go_through, open_progress, wait_for_all

    progress = open_progress(2)

    def follow(worker: int) -> None:
        def walk() -> int:
            if worker == 1:
                raise ValueError("no more")
            return ENDED if wait_for_all(progress[16:], 5) else WAITING

        go_through(walk, progress, worker)

    with Team(2) as team, pytest.raises(ValueError, match="no more"):
        team.run([follow, follow])


def test_what_is_done_aside() -> None:
    for is_beside in (False, True):
        with Aside(get_ident, is_beside) as task:
            task.begin()
            task.wait()
            assert (task.get() != get_ident()) is is_beside
        with pytest.raises(ZeroDivisionError), Aside(lambda: 1 // 0, is_beside) as failing:
            failing.begin()
            failing.get()


def test_a_team_answers_in_order_and_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    with Team(3) as team:
        workers: list[int] = team.run([lambda worker: worker] * 7)
        assert workers == [0, 1, 2, 0, 1, 2, 0]
        times = team.run([lambda _, i=i: (time.sleep(0.002 * (5 - i)), i)[1] for i in range(5)])
        assert times == [0, 1, 2, 3, 4]
    assert threading.active_count() == before


def test_an_error_of_a_worker_reaches_the_caller() -> None:
    def fail(worker: int) -> None:
        raise ValueError(f"worker {worker}")

    with Team(2) as team:
        with pytest.raises(ValueError, match="worker 1"):
            team.run([lambda _: None, fail, lambda _: None])
        assert team.run([lambda _: 1, lambda _: 2]) == [1, 2], "the team works on"


def test_how_many_threads() -> None:
    assert count_threads(3) == 3
    assert 1 <= count_threads() <= MOST_THREADS
    model, objective = rooms(2)
    with pytest.raises(InputError, match="`threads` is 0, not a number above 0"):
        solve(model, objective, threads=0)
