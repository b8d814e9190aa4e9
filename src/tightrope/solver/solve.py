"""`solve`: from a model and an objective to verified bounds, a policy and what makes them checkable."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from tightrope.errors import InputError
from tightrope.model.mdp import MDP, FactoredRows, IntervalMDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.policy import PolicyGiven, as_policy
from tightrope.model.policy_choices import TimeVaryingChoices
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rounding import down, up
from tightrope.solver.equations.assumed_support import assume_support as with_support
from tightrope.solver.equations.equations import Equations
from tightrope.solver.equations.reduction import equations_of, horizon_system
from tightrope.solver.iteration.backend import Backend
from tightrope.solver.iteration.budget import Budget, Goal, Progress
from tightrope.solver.iteration.certify import rank_mixture
from tightrope.solver.iteration.fixpoint import Fixpoint, solve_equations
from tightrope.solver.iteration.horizon import Rule, Tail, look_ahead
from tightrope.solver.kernels.factored_kernel import FactoredKernel
from tightrope.solver.kernels.interval_kernel import IntervalKernel
from tightrope.solver.kernels.kernel import Backups, Kernel
from tightrope.solver.kernels.randomised import Mixture, check_choices, check_weights, mix
from tightrope.solver.solution import GameBounds, Solution, Status, widest
from tightrope.solver.workspace import Workspace

ForSolver = OffsetArray | FloatArray | TimeVaryingChoices | None
"""A choice per state, a probability per choice, a choice per state and step; None: the agent is free."""


@dataclass(frozen=True)
class Limits:
    """When to give up refining. What is returned then is still verified, and the status says so."""

    iterations: int = 1_000_000
    seconds: float = float("inf")


def solve(
    model: MDP | IntervalMDP | Kernel | FactoredKernel,
    objective: Objective,
    *,
    policy: PolicyGiven | None = None,
    precision: float = 1e-6,
    relative: bool = True,
    assume_support: float | None = None,
    limits: Limits | None = None,
    threads: int | None = None,
    device: str = "cpu",
    start: FloatArray | None = None,
    workspace: Workspace | None = None,
) -> Solution:
    """Verified bounds on the value of every state, and a policy that attains the agent's one.

    * `policy`: None lets the agent choose; a `Policy`, or what one can be made of, is evaluated. One that
      depends on the step is for properties with a step bound.
    * The solve stops when upper − lower ≤ precision·|value| at every state (≤ precision if not `relative`).
    * `assume_support` EPS replaces lower bounds of 0 under a positive upper bound by min(EPS, upper):
      nature can then cut no transition (constant support).
    * `threads` work on the CPU: on blocks that do not depend on each other, and on parts of large ones. None:
      one per core that this process may use, at most 8. The same number gives the same bits; another one
      gives bounds that are verified as well, and may differ in digits beyond the precision.
    * `device`: "cpu", or "cuda" for the current GPU through CuPy (`tightrope[gpu]`); what is verified is the
      same. A `workspace` that is given says where, and keeps the model there for further solves with the
      same kernel.
    * `start` are values to look from, one per state, such as those of a similar model. A hint: it saves
      iterations, and what is returned is verified as ever.

    An interval model with independent factors (`model.factored`) is solved over what these allow together,
    unless a support is assumed: then over the joint bounds.

    Raises `InputError` for objectives that have no sound meaning here, with the reason.
    """
    begin = time.perf_counter()
    if not 0 < precision < 1:
        raise InputError(f"the precision is {precision}, not within (0, 1)")
    workspace = workspace or Workspace(device, threads)
    limits = limits or Limits()
    objective = objective.on(model.structure)
    kernel: Kernel | FactoredKernel
    if isinstance(model, IntervalMDP) and model.factored is not None and assume_support is None:
        kernel = FactoredKernel.of(model)
    elif isinstance(model, MDP | IntervalMDP):
        kernel = IntervalKernel.of(model if assume_support is None else with_support(model, assume_support))
    elif assume_support is not None:
        raise InputError(
            "constant support is assumed of interval models; other sets fix theirs when they are built"
        )
    else:
        kernel = model
    progress = Progress(Budget(limits.iterations, begin + limits.seconds))
    if start is not None:
        if np.shape(start) != (kernel.structure.states,):
            raise InputError(
                f"start has the shape {np.shape(start)}, but the model has {kernel.structure.states} states"
            )
        start = _complement(start, False) if objective.complement else start
    goal = Goal(precision, relative, start)
    given = as_policy(kernel.structure, policy)
    fixed = None if given is None else given.for_solver
    game = None
    if not isinstance(kernel, FactoredKernel):
        with workspace.open(kernel) as backend:
            fixpoint = _Solve(backend, objective, goal, progress).run(fixed)
    elif objective.is_bounded:
        fixpoint = _look_ahead(kernel, objective, progress, fixed)
    else:
        with workspace.open(kernel.game) as backend:
            whole = _solve_game(kernel.rows, backend, objective, goal, progress, fixed)
        fixpoint = _first_states(whole, kernel.rows.states)
        if objective.lower_steps == 0:
            game = GameBounds(whole.lower, whole.upper, whole.policy, whole.ranking)
        else:
            tail = Tail(fixpoint.lower, fixpoint.upper, _settled(objective, fixed), fixpoint.policy)
            fixpoint = _look_ahead(kernel, objective, progress, fixed, tail)
    lower, upper = fixpoint.lower, fixpoint.upper
    if objective.complement:
        lower, upper = _complement(fixpoint.upper, False), _complement(fixpoint.lower, True)
    gap = widest(lower, upper, relative, fixpoint.unit)
    missed = fixpoint.shortfall or progress.limit or Status.PRECISION_LIMIT
    return Solution(
        objective=objective,
        lower=lower,
        upper=upper,
        choice=fixpoint.policy,
        ranking=fixpoint.ranking,
        fixpoint_lower=fixpoint.lower,
        fixpoint_upper=fixpoint.upper,
        status=Status.CERTIFIED if gap <= precision else missed,
        gap=gap,
        precision=precision,
        relative=relative,
        iterations=progress.iterations,
        seconds=time.perf_counter() - begin,
        kernel=kernel,
        steps=fixpoint.steps,
        unit=fixpoint.unit,
        weight=given.weight if given is not None and not given.is_deterministic else None,
        game=game,
    )


def _settled(objective: Objective, policy: ForSolver) -> int:
    """From which step on nothing is counted any more, and a policy takes one choice per state."""
    horizon = policy.horizon if isinstance(policy, TimeVaryingChoices) else 0
    return max(horizon, objective.lower_steps)


def _solve_game(
    rows: FactoredRows,
    backend: Backend,
    objective: Objective,
    goal: Goal,
    progress: Progress,
    policy: ForSolver,
) -> Fixpoint:
    """The game of independent factors, `backend` has it, from the step on from which none is counted."""
    if isinstance(policy, TimeVaryingChoices) and objective.lower_steps > 0:
        policy = policy.at(_settled(objective, policy))
    if policy is not None and not isinstance(policy, TimeVaryingChoices):
        if np.issubdtype(policy.dtype, np.floating):
            policy = rows.lift_weights(policy.astype(np.float64))
        else:
            policy = rows.lift_choices(policy.astype(np.int64))
    if goal.start is not None:
        goal = replace(goal, start=_extend(goal.start, rows.structure.states))
    lifted = rows.lift(replace(objective, lower_steps=0))
    return _Solve(backend, lifted, goal, progress, rows.choices).run(policy)


def _first_states(found: Fixpoint, states: int) -> Fixpoint:
    """The part of a fixpoint that is about the first states."""
    return replace(
        found,
        lower=found.lower[:states],
        upper=found.upper[:states],
        policy=found.policy[:states],
        ranking=found.ranking[:states],
    )


def _look_ahead(
    backups: Backups,
    objective: Objective,
    progress: Progress,
    policy: ForSolver,
    tail: Tail | None = None,
) -> Fixpoint:
    """The value of an objective with a step bound, of a policy if one is given; `tail` is what follows the
    steps that are counted, where these are not all."""
    structure = backups.structure
    rule = Rule()
    enabled: BoolArray = np.ones(structure.choices, np.bool_)
    if isinstance(policy, TimeVaryingChoices):
        policy.refuse_for(structure)
        rule = Rule(steps=policy)
    elif policy is not None and np.issubdtype(policy.dtype, np.floating):
        weights = check_weights(structure, policy.astype(np.float64))
        rule, enabled = Rule(weights), weights > 0
    elif policy is not None:
        enabled[:] = False
        enabled[check_choices(structure, policy.astype(np.int64))] = True
    system = horizon_system(objective, structure, enabled)
    if tail is not None and rule.weights is not None:
        tail = replace(tail, policy=None)
    ahead = look_ahead(backups, system, objective, rule, progress, tail)
    ranking = np.zeros(structure.states, np.int64)
    if rule.weights is not None:
        return Fixpoint(ahead.lower, ahead.upper, _certain_choices(structure, enabled), ranking, system.unit)
    steps = ahead.steps if rule.steps is None else rule.steps
    return Fixpoint(ahead.lower, ahead.upper, ahead.policy, ranking, system.unit, steps)


def _certain_choices(structure: Structure, used: BoolArray) -> OffsetArray:
    """The choice of every state in which one alone is used, −1 elsewhere."""
    owner = structure.choice_state[used]
    chosen = np.full(structure.states, -1, np.int64)
    chosen[owner] = np.flatnonzero(used)
    chosen[np.bincount(owner, minlength=structure.states) > 1] = -1
    return chosen


@dataclass(frozen=True, eq=False)
class _Solve:
    backend: Backend
    objective: Objective
    goal: Goal
    progress: Progress
    counted: int | None = None
    """Choices from this one on take no step: they lie in the middle of one."""

    @property
    def kernel(self) -> Kernel:
        return self.backend.kernel

    def run(self, policy: ForSolver) -> Fixpoint:
        structure = self.kernel.structure
        if self.objective.is_bounded:
            return _look_ahead(self.backend.backups, self.objective, self.progress, policy)
        if isinstance(policy, TimeVaryingChoices):
            return self._by_step(policy)
        enabled = np.ones(structure.choices, np.bool_)
        if policy is None:
            return self._free(enabled)
        if np.issubdtype(policy.dtype, np.floating):
            return self._solve_randomised(check_weights(structure, policy.astype(np.float64)))
        enabled[:] = False
        enabled[check_choices(structure, policy.astype(np.int64))] = True
        return self._free(enabled)

    def _free(self, enabled: BoolArray) -> Fixpoint:
        structure, objective = self.kernel.structure, self.objective
        support = self.backend.support
        equations = self._in_steps(equations_of(objective, structure, support, enabled))
        fixpoint = solve_equations(self.backend, equations, self.goal, self.progress)
        if objective.lower_steps == 0:
            return fixpoint
        tail = Tail(fixpoint.lower, fixpoint.upper, objective.lower_steps, fixpoint.policy)
        ahead = look_ahead(self.backend.backups, equations.system, objective, Rule(), self.progress, tail)
        return Fixpoint(ahead.lower, ahead.upper, ahead.policy, fixpoint.ranking, 0.0, ahead.steps)

    def _in_steps(self, equations: Equations, origin: OffsetArray | None = None) -> Equations:
        """The equations with a discount where a step is taken, and nowhere else; `origin` of each choice, −1
        where it is none of the model's."""
        if self.objective.kind is not ObjectiveKind.DISCOUNTED or (origin is None and self.counted is None):
            return equations
        system = equations.system
        number = np.arange(len(system.discount)) if origin is None else origin
        steps = number >= 0 if self.counted is None else (number >= 0) & (number < self.counted)
        return replace(equations, system=replace(system, discount=np.where(steps, system.discount, 1.0)))

    def _by_step(self, policy: TimeVaryingChoices) -> Fixpoint:
        """The value of a policy that depends on the step; after its horizon it is a choice per state."""
        structure, objective = self.kernel.structure, self.objective
        policy.refuse_for(structure)
        if objective.lower_steps == 0:
            raise InputError(
                "the policy depends on the step, and such policies are evaluated for properties with a step "
                "bound only",
                hint="give a policy that takes one choice per state",
            )
        rule, ranking = Rule(steps=policy), np.zeros(structure.states, np.int64)
        settled = max(policy.horizon, objective.lower_steps)
        enabled = np.zeros(structure.choices, np.bool_)
        enabled[policy.at(settled)] = True
        support = self.backend.support
        equations = equations_of(objective, structure, support, enabled)
        last = solve_equations(self.backend, equations, self.goal, self.progress)
        tail = Tail(last.lower, last.upper, settled, policy.at(settled))
        system = replace(equations.system, enabled=np.ones(structure.choices, np.bool_))
        ahead = look_ahead(self.backend.backups, system, objective, rule, self.progress, tail)
        return Fixpoint(ahead.lower, ahead.upper, ahead.policy, ranking, 0.0, policy)

    def _solve_randomised(self, weights: FloatArray) -> Fixpoint:
        structure, objective, kernel = self.kernel.structure, self.objective, self.kernel
        used = weights > 0
        if not isinstance(kernel, IntervalKernel):
            raise InputError("a randomised policy needs an ordinary or an interval model")
        mixture = mix(kernel, weights)
        chain = mixture.kernel.structure
        lifted = _lift(objective, structure, mixture)
        equations = equations_of(lifted, chain, mixture.kernel.support, np.ones(chain.choices, np.bool_))
        equations = self._in_steps(equations, mixture.origin)
        goal = self.goal
        if goal.start is not None:
            goal = replace(goal, start=_extend(goal.start, chain.states))
        there = self.backend.beside(mixture.kernel)
        solved = solve_equations(there, equations, goal, self.progress)
        lower, upper = solved.lower[: structure.states], solved.upper[: structure.states]
        support = self.backend.support
        original = self._in_steps(equations_of(objective, structure, support, used))
        unit = solved.unit
        ranking = rank_mixture(self.backend, original, weights, (lower, upper), solved.ranking)
        if objective.lower_steps:
            tail = Tail(lower, upper, objective.lower_steps)
            backups, rule = self.backend.backups, Rule(weights)
            ahead = look_ahead(backups, original.system, objective, rule, self.progress, tail)
            lower, upper = ahead.lower, ahead.upper
        return Fixpoint(lower, upper, _certain_choices(structure, used), ranking, unit)


def _lift(objective: Objective, structure: Structure, mixture: Mixture) -> Objective:
    """The objective on the states of the chain: new states are no targets, and allowed."""
    more = mixture.kernel.structure.states - structure.states
    reward = None
    if objective.reward is not None:
        each = objective.reward.per_choice(structure)
        origin = mixture.origin
        reward = RewardStructure(choice=np.where(origin >= 0, each[np.maximum(origin, 0)], 0.0))
    return replace(
        objective,
        target=None if objective.target is None else np.append(objective.target, np.zeros(more, np.bool_)),
        allowed=None if objective.allowed is None else np.append(objective.allowed, np.ones(more, np.bool_)),
        terminal=None if objective.terminal is None else np.append(objective.terminal, np.zeros(more)),
        reward=reward,
        lower_steps=0,
    )


def _extend(start: FloatArray, states: int) -> FloatArray:
    """Values to start from for more states, of which nothing is known."""
    return np.append(start, np.full(states - len(start), np.nan))


def _complement(values: FloatArray, upward: bool) -> FloatArray:
    """1 − values, rounded outward; 0 and 1 are exact."""
    exact = (values == 0) | (values == 1)
    plain = 1.0 - values
    moved = np.minimum(up(plain), 1.0) if upward else np.maximum(down(plain), 0.0)
    return np.where(exact, plain, moved)
