"""From fixpoint equations to verified bounds (docs/proofs/values.md).

Acyclic systems take one backward pass. Otherwise the graph decides values 0, 1 and ∞, idle end components are
collapsed (games that keep some go through `games`), and blocks are solved in reverse topological order.
Small ordinary models are solved by dense policy iteration while no kernel is compiled.

`certify` checks every inequality on the original model. A choice is *good* if its safe backup attains the
agent's bound. Where the agent owns progress, `attract` draws states to the goal through good choices, and the
order is the ranking. An owning nature may use transitions of an optimal answer or, with slack, any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tightrope.model.graph.support import Ranked
from tightrope.numerics.arrays import BoolArray, DeviceArray, FloatArray, OffsetArray
from tightrope.numerics.jit import is_interpreting, stop_interpreting
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.equations.system import (
    CLOSED,
    EXIT,
    Decision,
    Equations,
    Meaning,
    Quotient,
    System,
    agent_has_no_choice,
    collapse,
    decide,
    first_choices,
)
from tightrope.solver.iteration.backend import Backend, Portion
from tightrope.solver.iteration.blocks import BlockSolver
from tightrope.solver.iteration.finite_horizon import weigh
from tightrope.solver.solution import Fixpoint, Progress, SolveOptions, Status


def solve_equations(
    backend: Backend, equations: Equations, goal: SolveOptions, progress: Progress
) -> Fixpoint:
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
        dense = _solve_densely(backend, quotient, settled, lower, goal)
        if dense is not None:
            fixpoint = certify(backend, equations, decision, dense, None)
            if fixpoint.shortfall is None:
                return fixpoint
            stop_interpreting()
        if quotient.is_exact:
            solver = BlockSolver(backend, equations, quotient.system, goal)
            shortfall = _solve_blocks(solver, settled, (lower, upper), progress)
            if shortfall is Status.PRECISION_LIMIT and dense is None:  # as without compiled kernels
                dense = solve_densely(backend.kernel, quotient.system, settled, lower, goal)
                again = None if dense is None else certify(backend, equations, decision, dense, None)
                if again is not None and again.shortfall is None:
                    return again
        else:
            from tightrope.solver.iteration.games import play

            lower, upper, shortfall = play(backend, equations, goal, progress, solve_equations)
    return certify(backend, equations, decision, (lower, upper), shortfall or progress.limit)


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
    backend: Backend, quotient: Quotient, settled: BoolArray, values: FloatArray, goal: SolveOptions
) -> tuple[FloatArray, FloatArray] | None:
    """Bounds of a small system where no kernel has been compiled yet; after this, much work is to come."""
    if not is_interpreting():
        return None
    bounds = None
    if quotient.is_exact:
        bounds = solve_densely(backend.kernel, quotient.system, settled, values, goal)
    if bounds is None:
        stop_interpreting()
    return bounds


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
    """Solve independent blocks from the same progress, so that the result does not depend on who is first."""
    begin = progress.fork()
    forks = [begin.fork() for _ in blocks]
    tasks = [
        partial(solver.solve, portion, bounds, goal, fork)
        for portion, fork in zip(blocks, forks, strict=True)
    ]
    statuses = solver.backend.run_together(tasks)
    progress.join(begin, forks)
    return next((status for status in statuses if status is not None), None)


def default_policy(equations: Equations) -> OffsetArray:
    """The first enabled choice of every state; one with a reward where a total reward is maximised."""
    system, structure = equations.system, equations.system.structure
    policy: OffsetArray = structure.choice_start[:-1].copy()
    preferred = [] if system.enabled.all() else [system.enabled]
    if equations.meaning is Meaning.TOTAL and system.agent_maximises:
        preferred.append(system.enabled & (system.reward > 0))
    for mask in preferred:
        first = first_choices(structure, mask)
        policy = np.where(first >= 0, first, policy)
    return policy


LARGEST_DENSE = 400
"""Most equations that are solved densely."""

FIRST_SHIFT = 1e-4
"""The first shift, as a part of the precision."""

SMALLEST_SHIFT = 1e-12
"""Below this, rounding errors of a solution are of the same size."""

MOST_ROUNDS = 100
GAIN = 1e-13
"""Relative gain for which a choice is exchanged."""


@dataclass(frozen=True, eq=False)
class _Choices:
    """The open choices in order of their equations: x(owner) = opt_c [constant(c) + matrix(c)·x]."""

    first: OffsetArray
    owner: OffsetArray
    constant: FloatArray
    matrix: FloatArray
    maximise: bool

    def solve(self, shift: FloatArray, policy: OffsetArray) -> tuple[FloatArray, OffsetArray] | None:
        """The solution of x = opt_c [constant + matrix·x] + shift and its choices; None without success."""
        sign = 1.0 if self.maximise else -1.0
        identity = np.eye(len(self.first))
        for _ in range(MOST_ROUNDS):
            try:
                open_rows = identity - self.matrix[policy]
                x: FloatArray = np.linalg.solve(open_rows, self.constant[policy] + shift).astype(np.float64)
            except np.linalg.LinAlgError:
                return None
            if not np.all(np.isfinite(x)):
                return None
            each = sign * (self.constant + self.matrix @ x + shift[self.owner])
            best = np.maximum.reduceat(each, self.first)
            better = best > each[policy] + GAIN * np.abs(each[policy])
            if not better.any():
                return x, policy
            at = np.flatnonzero(each == best[self.owner])
            first_best = np.empty(len(self.first), np.int64)
            first_best[self.owner[at[::-1]]] = at[::-1]
            policy = np.where(better, first_best, policy)
        return None

    def leaving(self) -> OffsetArray | None:
        """A policy that leaves the open states almost surely: every choice leads closer to the way out."""
        inside = self.matrix > 0.0
        drawn = np.zeros(len(self.first), np.bool_)
        policy = np.full(len(self.first), -1, np.int64)
        exits = np.isfinite(self.constant) & (self.matrix.sum(axis=1) < 1.0 - 1e-9)
        usable = np.isfinite(self.constant)
        while not drawn.all():
            leads = usable & (exits | inside[:, drawn].any(axis=1)) & ~drawn[self.owner]
            now = np.flatnonzero(leads)[::-1]
            if not len(now):
                return None
            policy[self.owner[now]] = now
            drawn[self.owner[now]] = True
        return policy


def solve_densely(
    kernel: BellmanOperator, system: System, settled: BoolArray, values: FloatArray, goal: SolveOptions
) -> tuple[FloatArray, FloatArray] | None:
    """Bounds of all states, those that are `settled` as in `values`; None where this is not the way."""
    open_states = np.flatnonzero(~settled)
    is_leader = np.zeros(len(settled), np.bool_)
    is_leader[system.leader[open_states]] = True
    leaders = np.flatnonzero(is_leader)
    if kernel.lower is not kernel.upper or len(leaders) > LARGEST_DENSE or system.unit > 0:
        return None
    choices = _open_choices(kernel, system, settled, values, leaders)
    if choices is None:
        return None
    policy = choices.leaving()
    solution = None if policy is None else choices.solve(np.zeros(len(leaders)), policy)
    if solution is None:
        return None
    middle, policy = solution
    reference, precision = np.abs(middle) if goal.relative else np.ones(len(middle)), goal.precision
    if not np.all(reference > 0.0):
        return None
    shift = max(precision * FIRST_SHIFT, SMALLEST_SHIFT)
    number = np.searchsorted(leaders, system.leader[open_states])
    for _ in range(4):
        low = choices.solve(-shift * reference, policy)
        high = choices.solve(shift * reference, policy)
        if low is None or high is None:
            return None
        gap = float(((high[0] - low[0]) / reference).max())
        if gap <= 0.9 * precision:
            lower, upper = values.copy(), values.copy()
            lower[open_states] = np.maximum(low[0], system.floor)[number]
            upper[open_states] = np.minimum(high[0], system.ceiling)[number]
            return lower, upper
        shift *= 0.5 * precision / gap
        if shift < SMALLEST_SHIFT:
            return None
    return None


def _open_choices(
    kernel: BellmanOperator, system: System, settled: BoolArray, values: FloatArray, leaders: OffsetArray
) -> _Choices | None:
    structure = system.structure
    open_choice = ~settled[structure.choice_state] & (system.mode != CLOSED)
    if np.any(system.mode[open_choice] == EXIT):
        return None
    choice = np.flatnonzero(open_choice)
    owner = np.searchsorted(leaders, system.leader[structure.choice_state[choice]])
    order = np.argsort(owner, kind="stable")
    choice, owner = choice[order], owner[order]
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    if len(first) < len(leaders):
        return None
    row = np.full(structure.choices, -1, np.int64)
    row[choice] = np.arange(len(choice))
    used = np.flatnonzero(open_choice[structure.transition_choice] & (kernel.upper > 0.0))
    source, target = row[structure.transition_choice[used]], structure.successor[used]
    weight = kernel.upper[used]
    if len(system.discount):
        weight = weight * system.discount[choice[source]]
    outside = settled[target]
    constant = system.reward[choice].copy() if len(system.reward) else np.zeros(len(choice))
    np.add.at(constant, source[outside], weight[outside] * values[target[outside]])
    matrix = np.zeros((len(choice), len(leaders)))
    inner = np.searchsorted(leaders, system.leader[target[~outside]])
    np.add.at(matrix, (source[~outside], inner), weight[~outside])
    return _Choices(first, owner, constant, matrix, system.agent_maximises)


def certify(
    backend: Backend,
    equations: Equations,
    decision: Decision,
    bounds: tuple[FloatArray, FloatArray],
    shortfall: Status | None,
) -> Fixpoint:
    """Check L ≤ Φ(L) and Φ(U) ≤ U everywhere and find the policy and ranking that go with them; a bound that
    does not hold is widened to what is known anyway."""
    lower, upper = bounds
    system, structure = equations.system, equations.system.structure
    placed = _Placed(backend, equations, lower, upper)
    judged = backend.judge(equations, placed.low, placed.high)
    low_holds = bool((placed.fixed | placed.is_endless | judged.low_holds).all())
    high_holds = bool((placed.fixed | judged.high_holds).all())
    policy, ranking = judged.policy, np.zeros(structure.states, np.int64)
    if equations.can_idle:
        owns = equations.agent_owns
        open_choice = judged.good if owns else backend.upload(system.enabled)
        drawn = _keep_progress(placed, decision.progress, open_choice) or _draw(
            placed, open_choice, judged.slack, owns
        )
        if equations.owners_maximise:
            low_holds &= drawn.is_complete
        else:
            high_holds &= drawn.is_complete
        ranking = drawn.ranking
        if owns:
            np.copyto(policy, drawn.policy, where=drawn.policy >= 0)
        infinite = decision.states & np.isposinf(decision.value)
        ranking[infinite] = decision.layer[infinite]
        if system.agent_maximises:
            shown = infinite & (decision.witness >= 0)
            policy[shown] = decision.witness[shown]
    free = ~equations.fixed
    if not low_holds:
        lower = np.where(free & ~np.isposinf(lower), system.floor, lower)
    if not high_holds:
        upper = np.where(free & ~decision.states, system.ceiling, upper)
    if not (low_holds and high_holds):
        shortfall = shortfall or Status.PRECISION_LIMIT
    return Fixpoint(lower, upper, policy, ranking, system.unit, shortfall=shortfall)


class _Placed:
    """Both bounds in the place where they are checked, and which states rest on progress."""

    def __init__(self, backend: Backend, equations: Equations, lower: FloatArray, upper: FloatArray) -> None:
        self.backend, self.equations = backend, equations
        self.low, self.high = backend.upload(lower), backend.upload(upper)
        self.fixed = backend.upload(equations.fixed)
        self.is_endless = self.low == np.inf

    @property
    def values(self) -> DeviceArray:
        """The bound on the owners' side."""
        return self.low if self.equations.owners_maximise else self.high

    @property
    def needs_rank(self) -> DeviceArray:
        """States whose bound on the owners' side rests on progress."""
        if self.equations.owners_maximise:
            return ~self.fixed & (self.low > 0) & ~self.is_endless
        return ~self.fixed & (self.high < np.inf)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The ranking, choices that lead down in it (−1: none), and whether every state in need has a rank."""

    ranking: OffsetArray
    policy: OffsetArray
    is_complete: bool


def _keep_progress(placed: _Placed, known: Ranked | None, open_choice: DeviceArray) -> _Drawn | None:
    """The ranking by which the graph has decided, if of just the states in need by open choices."""
    backend, equations = placed.backend, placed.equations
    nature_picks = equations.nature_owns and backend.kernel.lower is not backend.kernel.upper
    if known is None or nature_picks or backend.xp is not np:
        return None
    within = placed.needs_rank
    if not np.array_equal(within, known.states & ~equations.fixed):
        return None
    if equations.agent_owns and not open_choice[known.witness[within]].all():
        return None
    ranking = known.rank.astype(np.int64)
    return _Drawn(ranking, known.witness, True)


def _draw(placed: _Placed, open_choice: DeviceArray, slack: DeviceArray, agent_joins: bool) -> _Drawn:
    """Rank the states whose bound rests on progress; `slack[c]`: the choice is better than required."""
    backend, equations = placed.backend, placed.equations
    within = placed.needs_rank
    start = ~within & ~placed.is_endless if equations.owners_maximise else placed.fixed
    transitions = None
    if equations.nature_owns and backend.kernel.lower is not backend.kernel.upper:
        transitions = backend.keep_transitions(placed.values, equations.system.nature_maximises, slack)
    earning = None
    if equations.meaning is Meaning.TOTAL:
        earning = np.full(len(equations.fixed), -1, np.int64)
        choices = backend.download(open_choice).astype(np.bool_)
        now = _earn(equations, backend.download(within), choices, agent_joins, earning)
        start, open_choice = start | backend.upload(now), backend.upload(choices)
    joins = agent_joins, equations.nature_owns
    rank, witness = backend.attract(transitions, within, start, open_choice, joins)
    is_complete = bool((~within | (rank >= 0)).all())
    ranking = backend.download(rank).astype(np.int64)
    np.maximum(ranking, 0, out=ranking)
    through: OffsetArray = backend.download(witness)
    if earning is not None:
        through = np.where(through >= 0, through, earning)
    return _Drawn(ranking, through, is_complete)


def rank_mixture(
    backend: Backend,
    equations: Equations,
    weights: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    of_chain: OffsetArray,
) -> OffsetArray:
    """The ranking of a randomised policy; layers of infinite values are kept from its chain (`of_chain`)."""
    structure = equations.system.structure
    if not equations.can_idle:
        return np.zeros(structure.states, np.int64)
    lower, upper = bounds
    upward = not equations.owners_maximise
    values = upper if upward else lower
    each = backend.backups.safe_choices(equations.system, values, upward)
    backed = weigh(each, weights, structure.choice_start[:-1], np.diff(structure.choice_start), upward)
    slack = (backed < values) if upward else (backed > values)
    placed = _Placed(backend, equations, lower, upper)
    slack_there = backend.upload(slack[structure.choice_state])
    ranking = _draw(placed, backend.upload(weights > 0), slack_there, True).ranking
    endless = np.flatnonzero(np.isposinf(lower))
    ranking[endless] = of_chain[endless]
    if equations.meaning is Meaning.TOTAL and len(endless):
        layer = of_chain[endless] // (len(of_chain) + 1)
        place = np.empty(len(endless), np.int64)
        place[np.argsort(of_chain[endless], kind="stable")] = np.arange(1, len(endless) + 1)
        ranking[endless] = layer * (structure.states + 1) + place
    return ranking


def _earn(
    equations: Equations, within: BoolArray, open_choice: BoolArray, agent_joins: bool, policy: OffsetArray
) -> BoolArray:
    """States where a total reward is earned instead of progress; the agent's choices there."""
    system, structure = equations.system, equations.system.structure
    rewarded = open_choice & (system.reward > 0)
    if agent_joins:
        first = first_choices(structure, rewarded)
        now = within & (first >= 0)
        policy[now] = first[now]
        return now
    open_choice &= ~rewarded
    none_left: BoolArray = np.add.reduceat(open_choice.astype(np.int32), structure.choice_start[:-1]) == 0
    return within & none_left
