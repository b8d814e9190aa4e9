"""One iteration, two devices: the CPU and the CUDA kernels take the same decisions in the same order.

Every call that crosses the face of `solver.iteration.backend` is recorded, with what was decided from its
answer. The devices sweep differently, one state after the other or all at once, so how many sweeps a stretch
takes is left out; near the solution, with policies evaluated by factorisation, everything else must agree.

Also of `solver/bellman/operator.py`, `solver/iteration/backend.py`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from cases.slow_models import cost_grid, hesitant_walk, ladder, two_ways
from cuda_cases import DEVICE, device, random_intervals, random_structure
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray
from tightrope.solver import solution as options_and_results
from tightrope.solver.equations import system
from tightrope.solver.iteration import blocks, fixpoint
from tightrope.solver.solution import widest, width
from tightrope.solver.solve import solve

pytestmark = pytest.mark.compiler

MIN, MAX = Direction.MIN, Direction.MAX
Case = tuple[MDP | IntervalMDP, Objective]

QUIET = {"xp", "groups", "take", "put", "gather", "upload", "download", "state_vector", "kernel", "support"}
"""What carries data and decides nothing."""

SWEEPS = {"evaluate", "count_steps"}
"""What is repeated as often as the device needs."""


class Recorder:
    """A backend, or a block's, that writes down what it is asked and what the answers come to."""

    def __init__(self, inner: Any, trace: list[str]) -> None:
        self._inner, self._trace = inner, trace

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in QUIET or not callable(found):
            return found

        def call(*given: Any, **named: Any) -> Any:
            answer = found(*given, **named)
            decided = _decided(name, answer)
            if name not in SWEEPS or not self._trace or self._trace[-1] != decided:
                self._trace.append(decided)
            return Recorder(answer, self._trace) if name == "open_block" else answer

        return call


def _decided(name: str, answer: Any) -> str:
    if name == "find_missing":
        return f"{name}: {'holds' if bool((answer <= 0).all()) else 'fails'}"
    if name == "factorise":
        return f"{name}: {'solved' if answer > 0 else 'singular'}"
    if name in ("factorise_steps", "find_progress"):
        return f"{name}: {'none' if answer is None else 'found'}"
    if name == "schedule":
        cyclic = [portion.is_cyclic for level in answer.levels for portion in level]
        return f"{name}: {sum(cyclic)} cyclic, acyclic {answer.ranking is not None}"
    return name


def trace_of(
    case: Case, where: str, start: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], Any]:
    trace: list[str] = []
    original = fixpoint.solve_equations

    def recorded(backend: Any, *given: Any) -> Any:
        return original(Recorder(backend, trace), *given)

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["tightrope.solver.solve"], "solve_equations", recorded)
        patch.setattr(options_and_results, "PATIENCE", 0)
        solution = solve(*case, device=where, start=start, iterations=20_000)
    return trace, solution


def strongly_connected(seed: int) -> Case:
    """Intervals over a cycle with chords, discounted: one component that no graph decides."""
    rng = np.random.default_rng(seed)
    structure = random_structure(rng, 14, uniform=True)
    successor = structure.successor.copy()
    first = structure.transition_start[structure.choice_start[:-1]]
    successor[first] = (np.arange(14) + 1) % 14
    cycle = Structure(structure.choice_start, structure.transition_start, successor)
    model = random_intervals(rng, cycle, coarse=False)
    reward = RewardStructure(state=rng.integers(1, 9, 14) / 4.0)
    return model, Objective(ObjectiveKind.DISCOUNTED, MAX, MIN, reward=reward, discount=0.95)


CASES: dict[str, Case] = {
    "ladder": ladder(4, 2.0**-4),
    "ladder beyond float64": ladder(4, 2.0**-8),
    "two ways, MAX": two_ways(0.001, MAX, tilt=2.0**-36),
    "two ways, MIN": two_ways(0.001, MIN, tilt=2.0**-36),
    "hesitant walk": hesitant_walk(60),
    "grid": cost_grid(8, 4),
    "random": strongly_connected(3),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", CASES)
def test_both_devices_take_the_same_decisions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device()
    start = 1.0001 * solve(*CASES[name]).lower
    here, on_cpu = trace_of(CASES[name], "cpu", start, monkeypatch)
    there, on_device = trace_of(CASES[name], DEVICE, start, monkeypatch)
    assert there == here
    assert "judge" in here and any(step.startswith("find_missing: holds") for step in here)
    assert on_device.status is on_cpu.status
    assert np.allclose(on_device.lower, on_cpu.lower, rtol=1e-6) and np.allclose(
        on_device.upper, on_cpu.upper, rtol=1e-6
    )


def test_constants_of_the_iteration_exist_once() -> None:
    """Those that both devices follow are defined on this side of the face alone."""
    from tightrope.solver.cuda import backend as cuda_backend

    decided = {
        name for module in (blocks, options_and_results, fixpoint) for name in vars(module) if name.isupper()
    }
    decided -= set(vars(system))  # what a mode of a state is called
    assert {"FIRST_SHIFT", "CLOSENESS", "PATIENCE", "RELAXED"} <= decided
    assert not decided & {name for name in vars(cuda_backend) if name.isupper()}


@pytest.mark.parametrize(
    ("lower", "upper", "unit"),
    [
        ([0.0, 0.25, 1.0], [0.0, 0.5, 1.0], 0.0),
        ([0.0, 2.0], [np.inf, 2.5], 0.0),
        ([np.inf, 2.0], [np.inf, 2.5], 0.0),
        ([-3.0, 1.0], [-2.0, 1.5], 0.0),
        ([1.0, 4.0], [1.5, 4.5], 8.0),
        ([], [], 0.0),
    ],
)
def test_the_largest_width_is_that_of_all(lower: list[float], upper: list[float], unit: float) -> None:
    bounds = np.array(lower), np.array(upper)
    for relative in (False, True):
        assert widest(*bounds, relative, unit) == width(*bounds, relative, unit).max(initial=0.0)


def test_a_bound_that_is_no_number_is_never_narrow() -> None:
    assert not widest(np.array([np.nan, 0.5]), np.array([1.0, 0.5]), True) <= 1e300
