"""Models on which sweeps are slow or players could chase each other: values that few data make enormous.

Also of `solver/iteration/fixpoint.py`.
"""

from __future__ import annotations

import runpy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cases.slow_models import hesitant_walk, ladder, two_ways
from places import TESTS
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction
from tightrope.model.structure import RewardStructure, Structure
from tightrope.prism.load import load_prism_text
from tightrope.solver import Solution, Status, solve
from tightrope.solver import solution as options_and_results
from tightrope.solver.bellman.fixed_choices import Pace, sweep_fixed_agent
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.equations.system import Block, Rows, equations_of, longest_choices
from tightrope.solver.iteration import blocks, fixpoint, host

SCRIPT = TESTS.parent / "benchmarks" / "solve_speed.py"
ITERATIONS = 20_000


def steps(rungs: int, smallest: float) -> Fraction:
    return sum((1 / Fraction(smallest) ** k for k in range(1, rungs + 1)), Fraction(0))


def encloses(solution: Solution, exact: Fraction) -> bool:
    above = np.isinf(solution.upper[0]) or exact <= Fraction(solution.upper[0])
    return bool(Fraction(solution.lower[0]) <= exact and above)


@pytest.mark.parametrize(("rungs", "smallest"), [(3, 2.0**-3), (4, 2.0**-4), (5, 2.0**-4)])
def test_rewards_that_sweeps_would_take_for_ever_to_reach(rungs: int, smallest: float) -> None:
    solution = solve(*ladder(rungs, smallest), iterations=ITERATIONS)
    assert solution.is_certified and solution.iterations < 1000
    assert encloses(solution, steps(rungs, smallest))


def test_what_float64_cannot_carry_so_closely_ends_soon_with_bounds() -> None:
    wide = solve(*ladder(4, 2.0**-8), iterations=ITERATIONS)
    assert wide.status is Status.PRECISION_LIMIT and wide.iterations < 2000
    assert encloses(wide, steps(4, 2.0**-8))
    assert wide.gap < 1e-2
    hopeless = solve(*ladder(6, 2.0**-12), iterations=ITERATIONS)
    assert hopeless.status is Status.PRECISION_LIMIT and hopeless.iterations < 5000
    assert encloses(hopeless, steps(6, 2.0**-12))


@pytest.mark.parametrize("sweeps", [1, 5, 60])
@pytest.mark.parametrize("event", ["P", "R"])
def test_no_length_of_evaluation_makes_agent_and_nature_run_in_circles(
    sweeps: int, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, objective, _ = runpy.run_path(str(SCRIPT))["grid"](20, 20, event)
    usual = solve(model, objective)
    monkeypatch.setattr(blocks, "FROZEN_SWEEPS", sweeps)
    solution = solve(model, objective, iterations=ITERATIONS)
    assert solution.is_certified and usual.is_certified
    assert np.all(solution.lower <= usual.upper) and np.all(usual.lower <= solution.upper)


def test_a_kernel_used_again_gives_the_same_numbers() -> None:
    model, objective, _ = runpy.run_path(str(SCRIPT))["grid"](8, 8, "P")
    kernel = IntervalOperator.of(model)
    first = solve(kernel, objective)
    solve(*ladder(3, 0.125))
    again = solve(kernel, objective)
    assert np.array_equal(first.lower, again.lower) and np.array_equal(first.upper, again.upper)
    assert first.policy == again.policy and first.iterations == again.iterations


def test_evaluation_from_below_never_overshoots() -> None:
    """A value too high, were it only for one sweep, would lure the agent into waiting for it."""
    model, objective, _ = runpy.run_path(str(SCRIPT))["grid"](12, 12, "P")
    kernel = IntervalOperator.of(model)
    structure, support = model.structure, kernel.support
    equations = equations_of(objective, structure, support, np.ones(structure.choices, np.bool_))
    block = Block.of_states(np.flatnonzero(~equations.fixed).astype(np.int32))
    rows = Rows.room_for(longest_choices(structure), block, with_bounds=True)
    still = np.zeros(len(block))
    exact = solve(model, objective, precision=1e-9).upper
    workspace = kernel.open_workspace()
    values = equations.value.copy()
    for _ in range(4):
        kernel.sweep(equations.system, block, values, still, 1e-300, rows, workspace)
        for _ in range(5):
            before = values.copy()
            sweep_fixed_agent(
                equations.system.arrays, block.arrays, rows, still, values, 1, Pace(1e-300, 0.1)
            )
            assert np.all(values >= before * (1 - 1e-14)) and np.any(values > before)
            assert np.all(values <= exact)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("agent", list(Direction))
@pytest.mark.parametrize("leave", [0.1, 0.01, 0.001, 0.0002])
def test_equally_good_ways_of_different_length_in_blocks_too_large_to_factorise(
    leave: float, agent: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every value is ½, and the agent takes either way; a bound that stands off by the length of the shorter
    does not hold, since the longer one then looks better.
    """
    for module in (blocks, options_and_results):
        monkeypatch.setattr(module, "LARGEST_FACTORISATION", 0)
    solution = solve(*two_ways(leave, agent), iterations=50_000)
    assert solution.is_certified
    assert np.all(solution.lower[:4] <= 0.5) and np.all(solution.upper[:4] >= 0.5)
    assert np.all(solution.upper - solution.lower <= 1e-6)


@pytest.mark.costly("test_equally_good_ways_of_different_length_in_blocks_too_large_to_factorise")
def test_many_blocks_in_a_row_cost_no_more_each_than_few() -> None:
    """Each inherits the width of those before it, and may add to it next to nothing."""
    grid = runpy.run_path(str(SCRIPT))["grid"]
    spent = []
    for rooms in (20, 300):
        model, objective, _ = grid(16, 16 * rooms, "R", 16)
        solution = solve(model, objective)
        assert solution.is_certified
        spent.append(solution.iterations / rooms)
    assert spent[1] <= spent[0]


@pytest.mark.parametrize("length", [100, 300, 1000])
def test_choices_that_never_stop_at_first_do_not_rule_factorisation_out(length: int) -> None:
    solution = solve(*hesitant_walk(length), iterations=ITERATIONS)
    assert solution.is_certified and solution.iterations < 3000
    assert solution.lower[0] <= length**2 + 49 * length <= solution.upper[0]


def test_a_limit_of_precision_does_not_switch_the_other_limits_off() -> None:
    """Two hopeless ladders beside each other: the first ends with what float64 carries, the second at the
    limit of iterations.
    """
    one, objective = ladder(6, 2.0**-12)
    start, states = one.structure, one.structure.states
    structure = Structure(
        choice_start=np.append(start.choice_start, start.choice_start[1:] + start.choices),
        transition_start=np.append(start.transition_start, start.transition_start[1:] + start.transitions),
        successor=np.append(start.successor, start.successor + states),
        rewards={"steps": RewardStructure(state=np.tile(np.append(np.ones(6), 0.0), 2))},
    )
    model = IntervalMDP(structure, np.tile(one.lower, 2), np.tile(one.upper, 2))
    assert objective.target is not None
    both = replace(objective, target=np.tile(objective.target, 2), reward=structure.rewards["steps"])
    alone = solve(one, objective, iterations=ITERATIONS)
    assert alone.status is Status.PRECISION_LIMIT
    limited = solve(model, both, iterations=alone.iterations + 100)
    assert limited.iterations < alone.iterations + 200
    assert encloses(limited, steps(6, 2.0**-12))


TWO_CLOCKS = """mdp
module a
  s : [0..2]; x : [0..3];
  [time] s<2 | x<1 -> (x'=min(x+1,3));
  [] s=0 & x>=3 -> 0.9 : (s'=1)&(x'=0) + 0.1 : (x'=0);
  [go] s=1 & x>=1 -> 0.9 : (s'=0)&(x'=0) + 0.1 : (s'=2);
  [go] s=1 & x>=1 -> true;
endmodule
module b
  t : [0..2]; y : [0..2];
  [time] true -> (y'=min(y+1,2));
  [go] t=0 & y>=1 -> 0.9 : (t'=1)&(y'=0) + 0.1 : (t'=2)&(y'=0);
  [go] t=2 -> 0.9 : (y'=0) + 0.1 : (t'=0);
  [] t=1 & y>=2 -> (t'=2);
endmodule
label "a" = s=2;
rewards "r" [time] s=0 : 1; endrewards
"""


@pytest.mark.parametrize("is_dense", [True, False])
def test_the_progress_of_a_group_is_that_of_one_of_its_states(
    is_dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States that wait together for nothing have one value, and leave by one of them. `[time]` costs in s=0
    alone: three units, 1/0.9 times, and ten visits on average until `go` succeeds. Where iteration over
    blocks fails, small systems are solved densely as they are where no kernel is compiled."""
    if is_dense:
        monkeypatch.setattr(host, "find_progress", lambda *_: None)
    else:
        monkeypatch.setattr(fixpoint, "LARGEST_DENSE", 0)
    solution = solve(load_prism_text(TWO_CLOCKS), 'R{"r"}min=? [ F "a" ]')
    assert solution.is_certified
    assert solution.bounds == pytest.approx((100 / 3, 100 / 3), rel=1e-6)
