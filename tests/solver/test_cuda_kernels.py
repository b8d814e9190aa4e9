"""Every CUDA kernel against the CPU's kernels (over boxes bit by bit) and against exact rationals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cases import rectangular_models as regions
from cuda_cases import device, random_intervals, random_plain, random_structure, tied_values
from region_reference import generative
from tightrope.ambiguity.sets import rectangular
from tightrope.model.graph.qualitative import almost_sure, avoiding, positive
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction
from tightrope.regions.event_polytope import polytope_region
from tightrope.regions.registry import build_region, region_kind
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.rectangular import RectangularOperator
from tightrope.solver.cuda.backend import CudaBlock, Vector
from tightrope.solver.cuda.kernel import CudaOperator, place
from tightrope.solver.equations.system import NORMAL, System
from tightrope.solver.iteration.blocks import find_margins

pytestmark = pytest.mark.compiler

MIN, MAX = Direction.MIN, Direction.MAX


def models(seed: int) -> list[MDP | IntervalMDP]:
    rng = np.random.default_rng(seed)
    uniform, ragged = random_structure(rng, 25, True), random_structure(rng, 25, False)
    return [
        random_intervals(rng, uniform, coarse=True),
        random_intervals(rng, ragged, coarse=True),
        random_intervals(rng, uniform, coarse=False),
        random_plain(rng, uniform),
        random_plain(rng, ragged),
    ]


def system_of(kernel: IntervalOperator, rng: np.random.Generator, agent: bool, nature: bool) -> System:
    """Equations with rewards, discounts or neither."""
    structure = kernel.structure
    choices = structure.choices
    reward = rng.choice([-1.0, 0.0, 2.5], choices) if rng.random() < 0.5 else np.zeros(0)
    discount = np.full(choices, 0.9) if rng.random() < 0.3 else np.zeros(0)
    return System(
        structure,
        reward,
        discount,
        agent,
        nature,
        np.ones(choices, np.bool_),
        np.full(choices, NORMAL, np.int8),
        np.arange(structure.states, dtype=np.int32),
        -np.inf,
        np.inf,
        0.0,
    )


@pytest.mark.parametrize("seed", range(4))
def test_safe_values_answers_and_ties_are_those_of_the_cpu(seed: int) -> None:
    for model in models(seed):
        rng = np.random.default_rng(seed)
        host = IntervalOperator.of(model)
        there = place(host, device())
        for side in (False, True):
            values = tied_values(rng, host.structure.states)
            system = system_of(host, rng, side, not side)
            for upward in (False, True):
                expected = host.safe_choices(system, values, upward)
                assert np.array_equal(there.safe_choices(system, values, upward), expected)
            assert np.array_equal(there.answer(values, side), host.answer(values, side))
            expected = host.optimal_transitions(values, side)
            assert np.array_equal(there.optimal_transitions(values, side), expected)


def exact_optimum(model: IntervalMDP, choice: int, values: np.ndarray, maximise: bool) -> Fraction:
    """Sort and give in rationals; bounds that sum to 1 up to their rounding are scaled to do so."""
    first, last = model.structure.transition_start[choice : choice + 2]
    low = [Fraction(float(v)) for v in model.lower[first:last]]
    room = [Fraction(float(v)) - a for v, a in zip(model.upper[first:last], low, strict=True)]
    x = [Fraction(float(values[s])) for s in model.structure.successor[first:last]]
    rest, total = 1 - sum(low), sum((a * v for a, v in zip(low, x, strict=True)), Fraction(0))
    for j in sorted(range(len(x)), key=lambda j: -x[j] if maximise else x[j]):
        take = min(rest, room[j])
        total, rest = total + take * x[j], rest - take
    return total + rest * (max(x) if maximise else min(x))


def test_safe_values_enclose_the_exact_optimum() -> None:
    for model in models(9)[:3]:
        assert isinstance(model, IntervalMDP)
        host = IntervalOperator.of(model)
        there = place(host, device())
        rng = np.random.default_rng(5)
        values = rng.random(host.structure.states)
        for maximise in (False, True):
            system = system_of(host, np.random.default_rng(1), True, maximise)
            assert len(system.reward) == 0 == len(system.discount)
            low = there.safe_choices(system, values, False)
            high = there.safe_choices(system, values, True)
            for choice in range(host.structure.choices):
                exact = exact_optimum(model, choice, values, maximise)
                assert Fraction(low[choice]) <= exact <= Fraction(high[choice])
                assert high[choice] - low[choice] < 1e-13


@pytest.mark.parametrize("seed", range(3))
def test_sweeps_take_the_best_choice_and_measure_the_change(seed: int) -> None:
    for model in models(20 + seed):
        rng = np.random.default_rng(seed)
        host = IntervalOperator.of(model)
        there = place(host, device())
        structure = host.structure
        system = system_of(host, rng, bool(seed % 2), True)
        active = rng.random(structure.states) < 0.8
        block = CudaBlock(there, system, active)
        values = rng.random(structure.states)
        vector = block.state_vector(values)
        change = block.sweep(vector, None, 1e-300, frozen=False, measure=True)
        each = 0.5 * (host.safe_choices(system, values, False) + host.safe_choices(system, values, True))
        best = (np.maximum if system.agent_maximises else np.minimum).reduceat(
            each, structure.choice_start[:-1]
        )
        expected = np.where(active, best, values)
        result, taken = there.device.download(vector.after), there.device.download(block.taken)
        assert np.allclose(result, expected, rtol=1e-13, atol=1e-14)
        chosen = structure.choice_start[:-1] + taken
        assert np.allclose(each[chosen[active]], best[active], rtol=1e-13, atol=1e-14)
        moved = np.abs(result - values)[active] / np.maximum(np.abs(result[active]), 1e-300)
        assert change == pytest.approx(moved.max(), rel=1e-12)
        frozen = Vector(vector.now, there.device.upload(values))
        block.sweep(frozen, None, 1e-300, frozen=True, measure=False)
        assert np.array_equal(there.device.download(frozen.after), result)


@pytest.mark.parametrize("seed", range(3))
def test_margins_count_the_steps_that_are_left(seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_structure(rng, 12, bool(seed % 2))
    host = IntervalOperator.of(random_intervals(rng, structure, coarse=True))
    system = system_of(host, np.random.default_rng(1), False, True)
    system = replace(system, discount=np.full(structure.choices, 0.9))
    active = np.arange(12) < 9
    block = CudaBlock(place(host, device()), system, active)
    values = rng.random(12)
    vector = block.state_vector(values)
    block.sweep(vector, None, 1.0, frozen=False, measure=False)
    chosen = structure.choice_start[:-1] + block.device.download(block.taken)
    answer = host.answer(values, True)
    matrix = np.zeros((12, 12))
    for s in np.flatnonzero(active):
        for t in range(structure.transition_start[chosen[s]], structure.transition_start[chosen[s] + 1]):
            matrix[s, structure.successor[t]] += 0.9 * answer[t] * active[structure.successor[t]]
    steps = np.linalg.solve(np.eye(12) - matrix, active.astype(np.float64))
    margins, _ = find_margins(block, vector, block.xp.ones(block.groups), 100_000)
    found = block.device.download(margins)
    assert np.all(found <= steps[active] * (1 + 1e-9)) and np.all(found >= 0.5 * steps[active])


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(6))
def test_graph_fixpoints_are_those_of_the_worklists(seed: int) -> None:
    for model in models(40 + seed):
        rng = np.random.default_rng(seed)
        host = IntervalOperator.of(model)
        there = place(host, device())
        structure, size = host.structure, host.structure.states
        target = rng.random(size) < 0.1
        target[rng.integers(size)] = True
        within = rng.random(size) < 0.9
        choices = rng.random(structure.choices) < 0.9
        options = {"within": within, "choices": choices}
        for agent in (False, True):
            for nature in (False, True):
                who = (agent, nature)
                plain = Support(structure, host.lower, host.upper)
                drawn = positive(there.support, target, who, **options)
                assert np.array_equal(drawn.states, positive(plain, target, who, **options).states)
                sure = almost_sure(there.support, target, who, **options)
                expected = almost_sure(plain, target, who, **options)
                assert np.array_equal(sure.states, expected.states)
                missed = ~almost_sure(plain, target, who).states
                layers = avoiding(there.support, missed, who)
                expected = avoiding(plain, missed, who)
                assert np.array_equal(layers.states, expected.states)
                assert np.array_equal(layers.rank, expected.rank)


def rectangular_kernels() -> list[tuple[RectangularOperator, System]]:
    kernels = []
    for seed in (0, 3, 5):
        model = regions.random_model(seed, parameters=3 if seed == 3 else 2, states=6)
        region = polytope_region(regions.random_intervals(model, seed))
        kernel = RectangularOperator.of(rectangular(region, model))
        kernels.append((kernel, regions.system_of(model, kernel, MIN if seed else MAX)))
    model = regions.random_model(1, states=6)
    counts = generative(model, [Fraction(1, 3), Fraction(1, 2)], 60, np.random.default_rng(1))
    region = build_region(region_kind("ellipsoid"), model, counts, 0.01)
    kernel = RectangularOperator.of(rectangular(region, model))
    kernels.append((kernel, regions.system_of(model, kernel, MIN)))
    return kernels


@pytest.mark.costly("solver/test_cuda_solve.py::test_rectangular_sets")
def test_rectangular_sets_agree_with_the_cpu_whether_the_pool_is_known_or_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for in_advance in (2048, 0):
        monkeypatch.setattr("tightrope.solver.cuda.model.IN_ADVANCE", in_advance)
        for host, system in rectangular_kernels():
            there = CudaOperator(host, device())
            rng = np.random.default_rng(3)
            for _ in range(2):
                values = rng.random(host.structure.states)
                maximise = system.nature_maximises
                for upward in (False, True):
                    expected = host.safe_choices(system, values, upward)
                    assert np.allclose(
                        there.safe_choices(system, values, upward), expected, atol=1e-12, rtol=0
                    )
                assert np.allclose(there.answer(values, maximise), host.answer(values, maximise), atol=1e-9)
                kept = there.optimal_transitions(values, maximise)
                assert np.all(kept[there.answer(values, maximise) > 1e-9])
