"""From fixpoint equations to verified bounds: decide what graphs decide, collapse, order, solve block by
block, certify.

The steps, each in a file of its own:

1. An acyclic system needs one backward pass with safe rounding, and nothing else.
2. Otherwise states whose value the graph alone decides (0, 1, ∞) get it exactly: `decided`.
3. End components in which someone could idle are collapsed: `quotient`. What is left has one solution.
   Games that keep such components (nature cuts transitions against the agent) go through `games`.
   Small systems are then solved at once where no kernel has been compiled yet: `dense`.
4. Components in reverse topological order (`ordering`), each to a verified bound (`blocks`).
5. `certify` picks the policy and the ranking and checks every inequality once more on the model as given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tightrope.model.policy_choices import TimeVaryingChoices
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, read_only
from tightrope.numerics.jit import is_interpreting, kernel, stop_interpreting
from tightrope.solver.equations.decided import Decision, decide
from tightrope.solver.equations.equations import Equations, Meaning
from tightrope.solver.equations.quotient import Quotient, collapse
from tightrope.solver.equations.system import System
from tightrope.solver.iteration.backend import Backend, Portion
from tightrope.solver.iteration.blocks import BlockSolver
from tightrope.solver.iteration.budget import Goal, Progress
from tightrope.solver.iteration.certify import certify
from tightrope.solver.iteration.dense import solve_densely
from tightrope.solver.iteration.games import play
from tightrope.solver.solution import Status


@dataclass(frozen=True, eq=False)
class Fixpoint:
    """Bounds of the equations' value, a policy that attains the agent's one, and the ranking that
    certifies the owners'. `shortfall` says why they may be wider than asked.
    """

    lower: FloatArray
    upper: FloatArray
    policy: OffsetArray
    ranking: OffsetArray
    unit: float
    steps: TimeVaryingChoices | None = None
    shortfall: Status | None = None


def solve_equations(backend: Backend, equations: Equations, goal: Goal, progress: Progress) -> Fixpoint:
    """Verified bounds for every state, within the precision of `goal` unless it is said why not."""
    system, structure = equations.system, equations.system.structure
    lower, upper = equations.value.copy(), equations.value.copy()
    settled = equations.fixed.copy()
    if equations.can_idle:
        sinks = equations.value_loops(backend.find_loops(system))
        lower[sinks.states], upper[sinks.states] = sinks.value, sinks.value
        settled[sinks.states] = True
    schedule = backend.schedule_acyclic(system, settled)
    if schedule is not None and schedule.ranking is not None:
        policy = default_policy(equations)
        for level in schedule.levels:
            for portion in level:
                backend.back_up(system, portion, lower, upper, policy)
        ranking = schedule.ranking
        if equations.meaning is Meaning.TOTAL:
            ranking = ranking * (structure.states + 1)  # every state a layer of its own
        return Fixpoint(lower, upper, policy, ranking, system.unit)

    decision = decide(backend.support, equations)
    known = decision.states
    lower[known], upper[known] = decision.value[known], decision.value[known]
    settled = equations.fixed | known
    shortfall = None
    if not settled.all():  # else the graph has decided everything
        quotient = _collapse(backend, equations, settled)
        dense = _solve_densely(backend, equations, quotient, settled, lower, goal)
        if dense is not None:
            found = _finish(backend, equations, decision, dense, None)
            if found.shortfall is None:
                return found
            stop_interpreting()
        if quotient.is_exact:
            solver = BlockSolver(backend, equations, quotient.system, goal)
            shortfall = _solve_blocks(solver, settled, (lower, upper), progress)
        else:
            played = play(backend, equations, goal, progress, solve_equations)
            lower, upper, shortfall = played.lower, played.upper, played.shortfall
    return _finish(backend, equations, decision, (lower, upper), shortfall or progress.limit)


def _collapse(backend: Backend, equations: Equations, settled: BoolArray) -> Quotient:
    """The system with its idle end components collapsed, where there are any."""
    system = equations.system
    if not equations.can_idle or not backend.may_idle(system, settled):
        return Quotient(system, True)
    agent_owns, nature_owns = equations.agent_owns, equations.nature_owns
    if agent_has_no_choice(system, settled):
        if backend.kernel.lower is backend.kernel.upper:
            return Quotient(system, True)  # a Markov chain: where it stays for ever the graph has decided
        agent_owns = nature_owns
    return collapse(backend.support, system, ~settled, agent_owns, nature_owns)


def _solve_densely(
    backend: Backend,
    equations: Equations,
    quotient: Quotient,
    settled: BoolArray,
    values: FloatArray,
    goal: Goal,
) -> tuple[FloatArray, FloatArray] | None:
    """Bounds of a small system where no kernel has been compiled yet; after this, much work is to come."""
    if not is_interpreting():
        return None
    found = None
    if quotient.is_exact:
        found = solve_densely(backend.kernel, quotient.system, settled, values, goal.precision, goal.relative)
    if found is None:
        stop_interpreting()
    return found


def _solve_blocks(
    solver: BlockSolver, settled: BoolArray, bounds: tuple[FloatArray, FloatArray], progress: Progress
) -> Status | None:
    """Fill in the bounds of all states that are not settled, level by level.

    After k of K blocks one may be precision·(1 + k/K)/2 wide: a block adds to the width it inherits, never
    the other way round."""
    backend, system = solver.backend, solver.system
    schedule = backend.schedule(system, settled)
    unused = np.empty(system.structure.states, np.int64)
    cyclic = sum(portion.is_cyclic for level in schedule.levels for portion in level)
    done, shortfall = 0, None
    for level in schedule.levels:
        for portion in level:
            if not portion.is_cyclic:
                backend.back_up(system, portion, *bounds, unused)
        blocks = [portion for portion in level if portion.is_cyclic]
        done += len(blocks)
        goal = 0.5 * solver.goal.precision * (1 + done / max(cyclic, 1))
        for portion in blocks:
            if portion.is_large or len(blocks) == 1:
                shortfall = solver.solve(portion, bounds, goal, progress) or shortfall
        beside = [portion for portion in blocks if not portion.is_large]
        if len(blocks) > 1 and beside:
            shortfall = _solve_beside(solver, beside, bounds, goal, progress) or shortfall
    return shortfall


def _solve_beside(
    solver: BlockSolver,
    blocks: Sequence[Portion],
    bounds: tuple[FloatArray, FloatArray],
    goal: float,
    progress: Progress,
) -> Status | None:
    """Solve blocks that do not depend on each other, each from the same progress: what one learns on the way
    reaches later levels only, so that the result does not depend on who is first.
    """
    begin = progress.fork()
    forks = [begin.fork() for _ in blocks]
    tasks = [
        partial(solver.solve, portion, bounds, goal, fork)
        for portion, fork in zip(blocks, forks, strict=True)
    ]
    found = solver.backend.run_together(tasks)
    progress.join(begin, forks)
    return next((status for status in found if status is not None), None)


def _finish(
    backend: Backend,
    equations: Equations,
    decision: Decision,
    bounds: tuple[FloatArray, FloatArray],
    shortfall: Status | None,
) -> Fixpoint:
    found = certify(backend, equations, decision, *bounds)
    if not found.holds:
        shortfall = shortfall or Status.PRECISION_LIMIT
    unit = equations.system.unit
    return Fixpoint(found.lower, found.upper, found.policy, found.ranking, unit, shortfall=shortfall)


def default_policy(equations: Equations) -> OffsetArray:
    """The first enabled choice of every state; one with a reward where a total reward is maximised."""
    system, structure = equations.system, equations.system.structure
    policy = structure.choice_start[:-1].copy()
    preferred = [] if system.enabled.all() else [system.enabled]
    if equations.meaning is Meaning.TOTAL and system.agent_maximises:
        preferred.append(system.enabled & (system.reward > 0))
    for mask in preferred:
        _prefer(structure.choice_start, read_only(mask), policy)
    return policy


@kernel
def _prefer(choice_start: OffsetArray, mask: BoolArray, policy: OffsetArray) -> None:
    """The first choice of the mask in every state that has one."""
    for s in range(len(policy)):
        for c in range(choice_start[s], choice_start[s + 1]):
            if mask[c]:
                policy[s] = c
                break


def agent_has_no_choice(system: System, settled: BoolArray) -> bool:
    open_choices = np.add.reduceat(system.enabled.astype(np.int32), system.structure.choice_start[:-1])
    return bool(np.all(settled | (open_choices <= 1)))
