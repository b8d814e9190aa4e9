"""`solve`: from a model and an objective to verified bounds and a policy.

Rectangular sets in which no choice has three unknown successors are exactly their intervals, as p is then one
number in an interval, and are solved as such. The operator verifies the guaranteed bound. The other bound
shows how closely the sets were solved. If nature could change the graph of a cyclic model, it is recomputed
against nature's fixed answer to the guaranteed bound (`tightrope.solver.bellman.rectangular`): any commitment
of nature bounds what nature can achieve.

`attained` evaluates a policy in its exported form. Its new verified bounds must not contradict the solve, and
the better one is kept on the agent's side. A `Workspace` keeps a model on the GPU between solves and changes
no value.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack, cast

import numpy as np

from tightrope.errors import CannotCertify, InputError, check_number, check_type
from tightrope.model.mdp import MDP, FactoredRows, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.policy_file import TimeVaryingChoices
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rounding import down, up
from tightrope.numerics.team import Team, count_threads
from tightrope.numerics.text import interval_text
from tightrope.prism.properties.query import Query
from tightrope.problem import Model, Problem, problem_of, require_discrete
from tightrope.solver.bellman.factored import FactoredOperator
from tightrope.solver.bellman.interval import IntervalOperator, Mixture, mix
from tightrope.solver.bellman.operator import Backups, BellmanOperator
from tightrope.solver.elimination import refine
from tightrope.solver.equations.system import Equations, equations_of, horizon_system
from tightrope.solver.equations.system import assume_support as with_support
from tightrope.solver.iteration.backend import Backend
from tightrope.solver.iteration.finite_horizon import Rule, Tail, back_up_steps
from tightrope.solver.iteration.fixpoint import rank_mixture, solve_equations
from tightrope.solver.iteration.host import HostBackend
from tightrope.solver.solution import (
    FALSE,
    OPEN,
    TRUE,
    Fixpoint,
    Progress,
    Solution,
    SolveOptions,
    Status,
    widest,
)

if TYPE_CHECKING:
    from tightrope.ambiguity.sets import Sets
    from tightrope.solver.cuda.kernel import CudaOperator

ForSolver = OffsetArray | FloatArray | TimeVaryingChoices | None
"""A choice per state, a probability per choice, a choice per state and step; None: the agent is free."""


DEVICES = ("cpu", "cuda", "cuda-emulated")
"""The last one is for tests: every kernel of the GPU without one."""

Solvable: TypeAlias = "Problem | Model | Sets | BellmanOperator | FactoredOperator"
"""What `solve` takes: a problem, or, with a property or an objective, a model, sets, or an operator."""


class Workspace:
    """A device by name, the threads on the CPU (None: one per core), and the models on the device."""

    def __init__(self, device: str = "cpu", threads: int | None = None) -> None:
        self.device, self.threads = device, count_threads(threads)
        self._placed: dict[int, CudaOperator] = {}
        self._kernels: list[BellmanOperator] = []
        """Those placed: their numbers (`id`) are theirs as long as they live."""

    @contextmanager
    def open(self, kernel: BellmanOperator) -> Iterator[Backend]:
        """The kernel in its place, for one solve. What a device refuses is told in words."""
        if self.device == "cpu":
            with Team(self.threads) as team:
                yield HostBackend(kernel, team)
            return
        from tightrope.solver.cuda.backend import CudaBackend
        from tightrope.solver.cuda.device import explain_failures, open_device

        device = open_device(self.device)
        with explain_failures(device):
            yield CudaBackend(kernel, self.place(kernel))

    def place(self, kernel: BellmanOperator) -> CudaOperator:
        """The kernel on the device, laid out there once."""
        from tightrope.solver.cuda.device import open_device
        from tightrope.solver.cuda.kernel import place

        if id(kernel) not in self._placed:
            self._placed[id(kernel)] = place(kernel, open_device(self.device))
            self._kernels.append(kernel)
        return self._placed[id(kernel)]


class SolveWords(TypedDict, total=False):
    """Arguments of `solve` that other functions hand on."""

    assume_support: float | None
    seconds: float
    iterations: int
    threads: int | None
    device: str


class SolverWords(SolveWords, total=False):
    """All of them, as `SolveOptions` has them."""

    precision: float
    relative: bool
    start: FloatArray | None


@np.errstate(over="ignore", invalid="ignore")  # proofs hold beyond all doubles, too
def solve(
    problem: Solvable,
    property: str | Objective | None = None,
    *,
    policy: PolicyGiven | None = None,
    workspace: Workspace | None = None,
    **words: Unpack[SolverWords],
) -> Solution:
    """Verified bounds on the value of every state, and a policy that attains the agent's bound.

    * `problem`: a `Problem`, or a model, sets or their operator with the `property` beside it.
    * `policy`: None lets the agent choose; a `Policy`, or what one can be made of, is evaluated. One that
      depends on the step is for properties with a step bound.
    * The solve stops when upper − lower ≤ precision·|value| at every state (≤ precision if not `relative`).
    * `start`: initial values, one per state, such as those of a similar model. They only save iterations.
    * `assume_support=EPS` replaces lower bounds of 0 under a positive upper bound by min(EPS, upper): nature
      can then cut no transition (constant support).
    * An interval model whose commands synchronise is solved factor by factor (`solution.is_factored`); with
      `assume_support` over the products of their bounds.
    * `seconds`, `iterations`: when to stop refining. The bounds then found hold, and the status says so.
    * `threads` on the CPU. None: one per available core, at most 8. The same number gives the same bits;
      another gives verified bounds that may differ in digits beyond the precision.
    * `device`: "cpu", or "cuda" for the current GPU through CuPy (`tightrope[gpu]`), verified in the same
      way. A `workspace` determines the device and keeps the model there for further solves with the same
      operator.

    Raises `InputError` for objectives that have no sound meaning here, with the reason.

    >>> import tightrope as tr
    >>> solution = tr.solve(tr.benchmark("betting(5)").at_truth)
    >>> solution.is_certified
    True
    """
    begin, options = time.perf_counter(), SolveOptions(**words)
    _check_options(options)
    model, objective = _subject(problem, property)
    operator = _operator_of(model, options.assume_support)
    if (start := options.start) is not None:
        if np.shape(start) != (operator.structure.states,):
            raise InputError(
                f"start has the shape {np.shape(start)}, but the model has {operator.structure.states} states"
            )
        options = replace(options, start=_complement(start, False) if objective.complement else start)
    precision, relative = options.precision, options.relative
    progress = Progress(options.iterations, begin + options.seconds, precision=precision if relative else 0.0)
    workspace = workspace or Workspace(options.device, options.threads)
    given = as_policy(operator.structure, policy)
    fixed = None if given is None else given.for_solver
    fixpoint, game = _fixpoint_of(operator, objective, options, progress, fixed, workspace)
    lower, upper = fixpoint.lower, fixpoint.upper
    if objective.complement:
        lower, upper = _complement(fixpoint.upper, False), _complement(fixpoint.lower, True)
    gap = widest(lower, upper, relative, fixpoint.unit)
    missed = fixpoint.shortfall or progress.limit or Status.PRECISION_LIMIT
    solution = Solution(
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
        kernel=operator,
        steps=fixpoint.steps,
        unit=fixpoint.unit,
        weight=given.weight if given is not None and not given.is_deterministic else None,
        game=game,
    )
    if isinstance(operator, FactoredOperator) or objective.is_bounded or not operator.encloses_graph:
        return refine(solution, given is None)
    other = solve(_answered(solution), objective, policy=policy, workspace=workspace, **limits_of(options))
    return _against_answers(solution, other)


def _fixpoint_of(
    operator: BellmanOperator | FactoredOperator,
    objective: Objective,
    options: SolveOptions,
    progress: Progress,
    policy: ForSolver,
    workspace: Workspace,
) -> tuple[Fixpoint, Fixpoint | None]:
    """The fixpoint, and that of the whole game of independent factors where no steps are counted."""
    if not isinstance(operator, FactoredOperator):
        with workspace.open(operator) as backend:
            return _Solve(backend, objective, options, progress).run(policy), None
    if objective.is_bounded:
        return _finite_horizon(operator, objective, progress, policy), None
    with workspace.open(operator.game) as backend:
        whole = _solve_game(operator.rows, backend, objective, options, progress, policy)
    parts = ("lower", "upper", "policy", "ranking")
    first = replace(whole, **{part: getattr(whole, part)[: operator.rows.states] for part in parts})
    if objective.lower_steps == 0:
        return first, whole
    tail = Tail((first.lower, first.upper), _settled(objective, policy), first.policy)
    return _finite_horizon(operator, objective, progress, policy, tail), None


def _check_options(options: SolveOptions) -> None:
    check_number("precision", options.precision, 0, 1)
    check_number("iterations", options.iterations, 0)
    if options.seconds != 0:  # which is for callers whose time is up: what is verified then is still returned
        check_number("seconds", options.seconds, 0)
    check_type("relative", options.relative, bool, "True or False")
    if options.assume_support is not None:
        check_number("assume_support", options.assume_support, 0, 1)
    if options.threads is not None:
        check_type("threads", options.threads, int, "a whole number")
        check_number("threads", options.threads, 0)
    check_type("device", options.device, str, "the name of a device")
    if options.device not in DEVICES:
        raise InputError(f"`device` is {options.device!r}, not one of cpu, cuda")


def limits_of(options: SolveOptions) -> SolverWords:
    """What a further solve of the same question is to keep to."""
    return {
        "precision": options.precision,
        "relative": options.relative,
        "seconds": options.seconds,
        "iterations": options.iterations,
        "threads": options.threads,
        "device": options.device,
    }


def _subject(
    problem: Solvable, property: str | Objective | None
) -> tuple[MDP | IntervalMDP | BellmanOperator | FactoredOperator, Objective]:
    """The model, or the operator of one, and the objective on it."""
    if not isinstance(problem, Problem | Model):
        from tightrope.ambiguity.sets import Sets

        if isinstance(problem, Sets):
            problem = operator_of(problem)
    if isinstance(property, Objective) and not isinstance(problem, Problem | ParametricMDP):
        return problem, property.on(problem.structure)
    query = problem_of(cast(Problem | Model, problem), property)
    model = require_discrete(query.model)
    if isinstance(model, ParametricMDP):
        if model.parameters.names:
            raise InputError(
                f"the model has parameters: {model.parameters.listed}",
                hint=f"say where to look: problem.at({model.parameters.example(', ')})",
            )
        model = model.instantiate()
    return model, query.objective.on(model.structure)


def _operator_of(
    model: MDP | IntervalMDP | BellmanOperator | FactoredOperator, assume_support: float | None
) -> BellmanOperator | FactoredOperator:
    if isinstance(model, IntervalMDP) and model.factored is not None and assume_support is None:
        return FactoredOperator.of(model)
    if isinstance(model, MDP | IntervalMDP):
        return IntervalOperator.of(model if assume_support is None else with_support(model, assume_support))
    if assume_support is not None:
        raise InputError("`assume_support` requires an interval model")
    return model


def _settled(objective: Objective, policy: ForSolver) -> int:
    """From which step on nothing is counted any more, and a policy takes one choice per state."""
    horizon = policy.horizon if isinstance(policy, TimeVaryingChoices) else 0
    return max(horizon, objective.lower_steps)


def _solve_game(
    rows: FactoredRows,
    backend: Backend,
    objective: Objective,
    options: SolveOptions,
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
    if options.start is not None:
        options = replace(options, start=_extend(options.start, rows.structure.states))
    lifted = rows.lift(replace(objective, lower_steps=0))
    return _Solve(backend, lifted, options, progress, rows.choices).run(policy)


def _finite_horizon(
    backups: Backups, objective: Objective, progress: Progress, policy: ForSolver, tail: Tail | None = None
) -> Fixpoint:
    """The value of an objective with a step bound, or of a policy; `tail` follows counted steps."""
    structure = backups.structure
    rule, enabled = Rule(), _enabled(structure, policy)
    if isinstance(policy, TimeVaryingChoices):
        policy.refuse_for(structure)
        rule = Rule(steps=policy)
    elif policy is not None and np.issubdtype(policy.dtype, np.floating):
        weights = _weights(structure, policy)
        rule, enabled = Rule(weights), weights > 0
    system = horizon_system(objective, structure, enabled)
    if tail is not None and rule.weights is not None:
        tail = replace(tail, policy=None)
    ahead = back_up_steps(backups, system, objective, rule, progress, tail)
    if rule.weights is None:
        return ahead
    return replace(ahead, policy=_certain_choices(structure, enabled), steps=None)


def _enabled(structure: Structure, policy: ForSolver) -> BoolArray:
    """The choices that a policy with one per state leaves; all of them where it is of another kind."""
    if policy is None or isinstance(policy, TimeVaryingChoices) or np.issubdtype(policy.dtype, np.floating):
        return np.ones(structure.choices, np.bool_)
    enabled = np.zeros(structure.choices, np.bool_)
    enabled[Policy.of_choices(structure, policy.astype(np.int64)).choice] = True
    return enabled


def _weights(structure: Structure, policy: OffsetArray | FloatArray) -> FloatArray:
    """The policy's probabilities per choice, validated, with sums of 1."""
    weight = Policy(structure, policy.astype(np.float64)).weight
    assert weight is not None
    total = np.add.reduceat(weight, structure.choice_start[:-1])
    scaled: FloatArray = weight / np.repeat(total, np.diff(structure.choice_start))
    return scaled


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
    options: SolveOptions
    progress: Progress
    counted: int | None = None
    """Choices from this one on take no step: they lie in the middle of one."""

    @property
    def kernel(self) -> BellmanOperator:
        return self.backend.kernel

    def run(self, policy: ForSolver) -> Fixpoint:
        structure = self.kernel.structure
        if self.objective.is_bounded:
            return _finite_horizon(self.backend.backups, self.objective, self.progress, policy)
        if isinstance(policy, TimeVaryingChoices):
            return self._by_step(policy)
        if policy is not None and np.issubdtype(policy.dtype, np.floating):
            return self._solve_randomised(_weights(structure, policy))
        enabled = _enabled(structure, policy)
        objective, support = self.objective, self.backend.support
        equations = self._in_steps(equations_of(objective, structure, support, enabled))
        fixpoint = solve_equations(self.backend, equations, self.options, self.progress)
        if objective.lower_steps == 0:
            return fixpoint
        tail = Tail((fixpoint.lower, fixpoint.upper), objective.lower_steps, fixpoint.policy)
        ahead = back_up_steps(self.backend.backups, equations.system, objective, Rule(), self.progress, tail)
        return replace(ahead, ranking=fixpoint.ranking)

    def _in_steps(self, equations: Equations, origin: OffsetArray | None = None) -> Equations:
        """The equations with a discount only where a step is taken; `origin` −1: none of the model's."""
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
        settled = _settled(objective, policy)
        enabled = _enabled(structure, policy.at(settled))
        equations = equations_of(objective, structure, self.backend.support, enabled)
        last = solve_equations(self.backend, equations, self.options, self.progress)
        tail = Tail((last.lower, last.upper), settled, policy.at(settled))
        system = replace(equations.system, enabled=np.ones(structure.choices, np.bool_))
        rule = Rule(steps=policy)
        return back_up_steps(self.backend.backups, system, objective, rule, self.progress, tail)

    def _solve_randomised(self, weights: FloatArray) -> Fixpoint:
        structure, objective, kernel = self.kernel.structure, self.objective, self.kernel
        used = weights > 0
        if not isinstance(kernel, IntervalOperator):
            raise InputError("a randomised policy needs an ordinary or an interval model")
        mixture = mix(kernel, weights)
        chain = mixture.kernel.structure
        lifted = _lift(objective, structure, mixture)
        equations = equations_of(lifted, chain, mixture.kernel.support, np.ones(chain.choices, np.bool_))
        equations = self._in_steps(equations, mixture.origin)
        options = self.options
        if options.start is not None:
            options = replace(options, start=_extend(options.start, chain.states))
        there = self.backend.beside(mixture.kernel)
        solved = solve_equations(there, equations, options, self.progress)
        lower, upper = solved.lower[: structure.states], solved.upper[: structure.states]
        support = self.backend.support
        original = self._in_steps(equations_of(objective, structure, support, used))
        unit = solved.unit
        ranking = rank_mixture(self.backend, original, weights, (lower, upper), solved.ranking)
        if objective.lower_steps:
            tail = Tail((lower, upper), objective.lower_steps)
            backups, rule = self.backend.backups, Rule(weights)
            ahead = back_up_steps(backups, original.system, objective, rule, self.progress, tail)
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
    moved = objective.moved(lambda held, inner: np.append(held, np.full(more, inner)), reward)
    return replace(moved, lower_steps=0)


def _extend(start: FloatArray, states: int) -> FloatArray:
    """Values to start from for more states, of which nothing is known."""
    return np.append(start, np.full(states - len(start), np.nan))


def _complement(values: FloatArray, upward: bool) -> FloatArray:
    """1 − values, rounded outward; 0 and 1 are exact."""
    exact = (values == 0) | (values == 1)
    plain = 1.0 - values
    moved = np.minimum(up(plain), 1.0) if upward else np.maximum(down(plain), 0.0)
    return np.where(exact, plain, moved)


CLOSEST = 1e-13
"""How closely a value is bounded, relative to itself, where wider bounds leave its threshold open."""


def solve_query(
    problem: Problem,
    *,
    policy: PolicyGiven | None = None,
    workspace: Workspace | None = None,
    **words: Unpack[SolverWords],
) -> Solution:
    """`solve`, and where the property has a threshold its `truth`: bounds that leave it open are refined."""
    solution = solve(problem, policy=policy, workspace=workspace, **words)
    query = problem.query
    if not query.is_threshold:
        return solution
    truth = truth_of(query, solution)
    if truth == OPEN and solution.precision > CLOSEST:
        closer: SolverWords = {**words, "precision": CLOSEST, "relative": True, "start": _middle(solution)}
        finer = solve(problem, policy=policy, workspace=workspace, **closer)
        precision, relative = solution.precision, solution.relative
        gap = widest(finer.lower, finer.upper, relative, finer.unit)
        status = Status.CERTIFIED if gap <= precision else finer.status
        solution = replace(finer, gap=gap, precision=precision, relative=relative, status=status)
        truth = truth_of(query, solution)
    return replace(solution, truth=truth)


def _middle(solution: Solution) -> FloatArray:
    """Values to start from: the middle of bounds, 0 where there is none."""
    middle = 0.5 * (solution.lower + solution.upper)
    return np.where(np.isfinite(middle), middle, 0.0)


def truth_of(query: Query, solution: Solution) -> str:
    """Whether a property with a threshold holds in all initial states."""
    answers = {
        query.answer(float(solution.lower[state]), float(solution.upper[state]))
        for state in solution.kernel.structure.initial_states
    }
    return FALSE if FALSE in answers else TRUE if answers == {TRUE} else OPEN


def operator_of(sets: Sets) -> BellmanOperator:
    """The kernel of any sets; build it once and solve with it as often as needed."""
    from tightrope.ambiguity.region_shape import joint_choices
    from tightrope.ambiguity.sets import SetsKind

    if sets.kind is SetsKind.RECTANGULAR and joint_choices(sets).any():
        from tightrope.solver.bellman.rectangular import RectangularOperator

        return RectangularOperator.of(sets)
    return IntervalOperator.of(sets.interval_model())


def _answered(solution: Solution) -> IntervalOperator:
    """The model that nature's answers to the guaranteed bound fix."""
    kernel, minimises = solution.kernel, solution.objective.nature is Direction.MIN
    assert isinstance(kernel, BellmanOperator)
    guaranteed = solution.fixpoint_lower if minimises else solution.fixpoint_upper
    return IntervalOperator.plain(kernel.structure, kernel.answer(guaranteed.copy(), not minimises))


def _against_answers(solution: Solution, other: Solution) -> Solution:
    """The side without guarantee replaced by the value of the model that nature's answers fix."""
    objective, minimises = solution.objective, solution.objective.nature is Direction.MIN
    if minimises != objective.complement:
        lower, upper = solution.lower, other.upper
    else:
        lower, upper = other.lower, solution.upper
    side = "fixpoint_upper" if minimises else "fixpoint_lower"
    inner = replace(solution, **{side: getattr(other, side)})
    gap = widest(np.minimum(lower, upper), upper, solution.relative)
    failed = Status.PRECISION_LIMIT if solution.is_certified else solution.status
    status = Status.CERTIFIED if gap <= solution.precision else failed
    spent = solution.seconds + other.seconds
    return replace(inner, lower=lower, upper=upper, gap=gap, status=status, seconds=spent)


@dataclass(frozen=True)
class Attained:
    """Verified bounds of a policy's value at the initial state."""

    lower: float
    upper: float
    status: Status


def attained(solution: Solution, policy: Policy, workspace: Workspace | None = None) -> Attained:
    """The value of the policy that the solve found, evaluated on its own over the same model or sets."""
    initial = solution.kernel.structure.initial
    again = solve(
        solution.kernel,
        solution.objective,
        policy=policy,
        workspace=workspace or Workspace(threads=1),
        precision=solution.precision,
        relative=solution.relative,
        seconds=math.inf if solution.is_certified else max(solution.seconds, 1.0),
        start=_middle(solution),
    )
    lower, upper = float(again.lower[initial]), float(again.upper[initial])
    own_lower, own_upper = float(solution.lower[initial]), float(solution.upper[initial])
    maximises = (solution.objective.agent is Direction.MAX) != solution.objective.complement
    if upper < own_lower if maximises else lower > own_upper:
        attained, claimed = interval_text(lower, upper), interval_text(own_lower, own_upper)
        raise CannotCertify(
            f"the policy attains {attained} and not {claimed}, as was found: it is not written. "
            "This is a bug in tightrope; please report it"
        )
    if maximises:
        lower = max(lower, own_lower)
    else:
        upper = min(upper, own_upper)
    return Attained(lower, upper, again.initial_status)
