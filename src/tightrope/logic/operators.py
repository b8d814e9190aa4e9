"""The value of one operator, P, R, S or CVaR, with certified bounds.

Directions and thresholds are read here for all kinds of operators. Notes are collected: how a text was read,
what was missed or trusted, a policy.

*Conditional probabilities.* Without choices the value is the quotient of two probabilities, rounded outward.
With choices the largest quotient is a reachability probability in another model (Baier, Klein, Klüppelholz,
Märcker, 2014): on the product with both formulas the goal is every end component that satisfies both almost
surely, and where the condition can be made to fail almost surely, a choice leads back to the first state. The
least quotient is 1 minus the largest one of the negated path. On interval models nature must not be able to
cut a transition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.logic import formula as ltl
from tightrope.logic import reward_bounds, values
from tightrope.logic.accepting import winning_states
from tightrope.logic.formula import Formula, is_co_safe, progression, refuse_large
from tightrope.logic.long_run import average_policy, bound_average
from tightrope.logic.temporal import PathBounds, SteeredPath, Translator, bound_path, bound_reward
from tightrope.model.graph.support import Support
from tightrope.model.mdp import JOINT_BOUNDS, MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.product import Letters, beside, product_of
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.prism.parse.property_syntax import RewardFormula, ValueOperator, spell
from tightrope.prism.parse.syntax import Complaint, Expression, Type, position_of
from tightrope.prism.properties import resolve
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.shape import check_is_path, co_safe_path, is_path, operator_kind
from tightrope.solver.solution import Solution, SolveOptions, Status
from tightrope.solver.solve import Attained, limits_of, solve

Both = tuple[Formula, Formula]
"""A formula and its negation."""


MOST_STARTS = 200
"""With choices every state that is asked for is a separate problem."""


def bound_quotient(
    model: MDP,
    path: Both,
    condition: Both,
    atoms: list[BoolArray],
    starts: OffsetArray,
    solve: values.Solve,
    translator: str | None,
) -> tuple[values.StateBounds, tuple[PathBounds, PathBounds]]:
    """The quotient, and the two probabilities that it is made of: of both together, of the condition."""
    together = ltl.both(path[0], condition[0]), ltl.either(path[1], condition[1])
    directions = Direction.MAX, Direction.MIN
    first, second = (
        bound_path(model, formula, atoms, directions, starts, solve, translator)
        for formula in (together, condition)
    )
    quotient = first.bounds.divided_by(second.bounds)
    bounds = values.StateBounds(np.maximum(quotient.lower, 0.0), np.minimum(quotient.upper, 1.0))
    return bounds, (first, second)


def bound_beginning_anew(
    model: MDP | IntervalMDP,
    path: Both,
    condition: Both,
    atoms: list[BoolArray],
    directions: values.Directions,
    start: int,
    solve: values.Solve,
) -> Solution | None:
    """The best conditional probability from one state; None where no policy makes the condition possible."""
    values.require_constant(model, "conditional probabilities with choices")
    letters, complement = Letters.of(atoms, model.states), directions[0] is Direction.MIN
    together = ltl.both(path[1] if complement else path[0], condition[0])
    automata, lefts = [], []
    for formula in (together, *condition):
        if not is_co_safe(formula):
            refuse_large(formula)
        automaton, left = progression(formula, letters.bits)
        automata.append(automaton)
        lefts.append(left)
    whole, parts = beside(automata, letters.bits)
    product = product_of(Support.of(model), letters, whole, np.array([start]))
    there = product.model(model)
    goal, holds, fails = (
        winning_states(there, product, [left[states[i]] for states in parts], letters)
        for i, left in enumerate(lefts)
    )
    if not holds.any():
        return None
    again = np.flatnonzero(fails & ~goal)
    owner = np.concatenate([there.structure.choice_state, again])
    rows = np.concatenate([np.arange(there.choices), np.full(len(again), -1)])
    longer, _ = values.rearranged(there, owner, rows)
    return solve(longer, values.reaching(directions, goal, complement=complement))


_PLAIN = (QueryKind.PLAIN, QueryKind.INSTANTANEOUS)


@dataclass(frozen=True, eq=False)
class OperatorTask:
    """An operator, who wants what, and from which states: all, or those that count."""

    operator: ValueOperator
    directions: values.Directions
    starts: OffsetArray
    precision: float
    is_whole: bool


class Operators:
    """The operators of one query on one model. `readings` are what a reader must be told."""

    is_enclosing = False
    """Bounds need only enclose the values of all models within the intervals (`logic.evaluate`)."""

    def __init__(
        self,
        model: MDP | IntervalMDP,
        query: Query,
        effort: SolveOptions,
        formulas: resolve.StateFormulas,
        nested: Callable[[Expression], BoolArray],
    ):
        self.model, self.structure = model, model.structure
        self.file, self.options, self.effort = query.syntax, query.options, effort
        self._formulas, self._nested = formulas, nested
        self.readings: list[str] = []
        self.iterations = 0
        self.missed: list[str] = []
        self.trusts_translator = False
        self.steered: SteeredPath | None = None

    def bounds(
        self, operator: ValueOperator, precision: float, starts: OffsetArray, is_whole: bool
    ) -> tuple[values.StateBounds, Fraction | None]:
        """Certified bounds of the value that an operator is about, and what it is compared with."""
        kind = operator_kind(operator)
        answer: Callable[[OperatorTask], values.StateBounds] = getattr(self, f"_{kind.name.lower()}")
        if isinstance(operator.path, RewardFormula) and kind not in _PLAIN:
            self._refuse_options(operator)
        elif kind not in _PLAIN:
            resolve.refuse_reward_options(self.options)
        agent, nature, reading = resolve.read_directions(operator, self.file, self.structure, self.options)
        if kind not in (*_PLAIN, QueryKind.LTL, QueryKind.CO_SAFE_REWARD):
            self.tell_joint()
        bounds = answer(OperatorTask(operator, (agent, nature), starts, precision, is_whole))
        if reading is not None:
            self.tell(reading.warning)
        return bounds, resolve.threshold_of(operator, self._formulas)

    def solve(
        self, model: MDP | IntervalMDP, objective: Objective, precision: float, policy: Policy | None = None
    ) -> Solution:
        """One solve, with the effort that was asked for."""
        return solve(model, objective, policy=policy, **limits_of(self.effort.within(precision)))

    @property
    def _joint(self) -> MDP | IntervalMDP:
        """The model without the factors of synchronised intervals: what products are made of."""
        return self.model.without_factors if isinstance(self.model, IntervalMDP) else self.model

    def tell_joint(self) -> MDP | IntervalMDP:
        """The model without factors, which a reader is told of where it has some."""
        joint = self._joint
        if joint is not self.model:
            self.tell(JOINT_BOUNDS)
        return joint

    def tell(self, reading: str) -> None:
        """Remember what a reader must be told, once."""
        if reading not in self.readings:
            self.readings.append(reading)

    def _solver(self, precision: float) -> values.Solve:
        return lambda model, objective: self.solve(model, objective, precision)

    def _note(self, task: OperatorTask, *solutions: Solution) -> None:
        for solution in solutions:
            self.iterations += solution.iterations
            if not solution.is_certified:
                self._miss(task, solution.status.value)

    def _noted_factors(self, task: OperatorTask, solution: Solution) -> None:
        """The same, of a solution that takes factors where the model has some."""
        if not solution.is_factored:
            self.tell_joint()
        self._note(task, solution)

    def _miss(self, task: OperatorTask, why: str) -> None:
        self.missed.append(f"{self.file.text_of(task.operator)}: {why}")

    def _refuse_options(self, operator: ValueOperator) -> None:
        if self.options.discount is not None or self.options.terminal_reward is not None:
            raise Complaint(
                "discounts and terminal rewards are for F, C<=k and C only, not for averages, CVaR, "
                "rewards of late steps, or rewards until a path formula is satisfied",
                operator.position,
            )

    # --- the kinds: a method for each that one operator can be ----------------------------

    def _plain(self, task: OperatorTask) -> values.StateBounds:
        objective = resolve.read_objective(
            task.operator, self.file, self.structure, self.options, self._nested
        )
        solution = self.solve(self.model, objective, task.precision)
        self._noted_factors(task, solution)
        return values.StateBounds(solution.lower, solution.upper)

    _instantaneous = _plain

    def _reward_bounded(self, task: OperatorTask) -> values.StateBounds:
        assert isinstance(task.operator.path, Expression)
        earned = reward_bounds.expand_reward_bound(task.operator.path, self._formulas, self.structure)
        assert earned is not None
        result = reward_bounds.bound_rewarded(
            self._joint, earned, task.directions, task.starts, self._solver(task.precision)
        )
        self._note(task, result.solution)
        return result.bounds

    def _ltl(self, task: OperatorTask) -> values.StateBounds:
        path = task.operator.path
        assert isinstance(path, Expression)
        check_is_path(path)
        self.tell(f"the path is read as {spell(path, self.file)}")
        translator = Translator(self._formulas)
        result = bound_path(
            self.model,
            translator.both_ways(path),
            translator.atoms,
            task.directions,
            task.starts,
            self._solver(task.precision),
            self.effort.translator,
        )
        if self.effort.controller and task.is_whole and not result.is_believed:
            self.steered = result.steered(self.model)
        self._believe(result)
        self._noted_factors(task, result.solution)
        return result.bounds

    def _co_safe_reward(self, task: OperatorTask) -> values.StateBounds:
        """A reward that is earned until a co-safe path formula is satisfied."""
        assert isinstance(task.operator.path, RewardFormula)
        path = co_safe_path(task.operator.path)
        assert path is not None
        reward = resolve.reward_structure_of(task.operator, self.structure)
        meaning = "" if is_path(path) else ": 0 where that holds at once, else infinite; F … waits for it"
        self.tell(f"the path is read as {spell(path, self.file)}{meaning}")
        translator = Translator(self._formulas, counts_steps=True)
        formula, _ = translator.both_ways(path)
        if not is_co_safe(formula):
            raise Complaint(
                "rewards are added up until a path formula is satisfied for certain, and this one can "
                "always fail later: it is not co-safe",
                position_of(path),
                "write it with F, U and X only",
            )
        nobody = np.zeros(self.structure.states, np.bool_)
        objective = Objective(ObjectiveKind.REACH_REWARD, *task.directions, target=nobody, reward=reward)
        solver = self._solver(task.precision)
        result = bound_reward(self.model, formula, translator.atoms, objective, task.starts, solver)
        self._noted_factors(task, result.solution)
        return result.bounds

    def _late_reward(self, task: OperatorTask) -> values.StateBounds:
        """A reward of late steps."""
        path = task.operator.path
        assert isinstance(path, RewardFormula)
        reward = resolve.reward_structure_of(task.operator, self.structure).per_choice(self.structure)
        steps = resolve.steps_of(path.window, self._formulas, path.position)
        solver = self._solver(task.precision)
        bounds, solutions = reward_bounds.bound_window(
            self._joint, reward, steps, task.directions, task.starts, solver
        )
        self._note(task, *solutions)
        return bounds

    def _conditional(self, task: OperatorTask) -> values.StateBounds:
        """P(path and condition) / P(condition)."""
        operator = task.operator
        assert operator.condition is not None and isinstance(operator.path, Expression)
        check_is_path(operator.path)
        path, given = spell(operator.path, self.file), spell(operator.condition, self.file)
        self.tell(f"the path is read as {path}  and the condition as  {given}")
        translator = Translator(self._formulas)
        both = translator.both_ways(operator.path), translator.both_ways(operator.condition)
        if isinstance(self._joint, MDP) and not self.structure.has_choices:
            bounds, parts = bound_quotient(
                self._joint,
                *both,
                translator.atoms,
                task.starts,
                self._solver(task.precision / 10),
                self.effort.translator,
            )
            for part in parts:
                self._believe(part)
                self.iterations += part.solution.iterations
            impossible = parts[1].bounds.upper == 0
        else:
            bounds, impossible = self._begin_anew(task, both, translator.atoms)
        if impossible[list(self.structure.initial_states)].any():
            raise Complaint(
                f"the condition {given} has probability 0 in the initial state, so nothing is known under it",
                position_of(operator.condition),
            )
        return bounds

    def _begin_anew(
        self, task: OperatorTask, both: tuple[Both, Both], atoms: list[BoolArray]
    ) -> tuple[values.StateBounds, BoolArray]:
        """With choices or intervals: every state is a separate problem."""
        starts, states = task.starts, self.structure.states
        if len(starts) > MOST_STARTS:
            if not task.is_whole:
                raise Complaint(
                    "inside a formula or a filter conditional probabilities with choices are answered for "
                    f"models of up to {MOST_STARTS} states: every state is a problem of its own",
                    task.operator.position,
                )
            self.tell("conditional probabilities with choices are those of the initial states")
            starts = np.array(self.structure.initial_states)
        lower, upper = np.zeros(states), np.ones(states)
        impossible = np.zeros(states, np.bool_)
        for start in starts.tolist():
            result = bound_beginning_anew(
                self._joint, *both, atoms, task.directions, start, self._solver(task.precision)
            )
            impossible[start] = result is None
            if result is None:
                continue
            lower[start], upper[start] = result.lower[0], result.upper[0]
            self.iterations += result.iterations
            if not result.is_certified:
                self._miss(task, f"not close enough in state {self.structure.state_name(start)}")
        return values.StateBounds(lower, upper), impossible

    def _long_run(self, task: OperatorTask) -> values.StateBounds:
        """A long-run average, or the share of time in some states."""
        operator = task.operator
        reward = resolve.reward_structure_of(operator, self.structure) if operator.is_reward else None
        return self._average(task, self._joint, reward, task.directions)

    def _average(
        self,
        task: OperatorTask,
        model: MDP | IntervalMDP,
        reward: RewardStructure | None,
        directions: values.Directions,
    ) -> values.StateBounds:
        """The long-run average of a reward in a model, that of being in the states asked about if None."""
        is_share = reward is None
        if reward is None:
            path = task.operator.path
            assert isinstance(path, RewardFormula) and path.target is not None
            reward = RewardStructure(self._formulas.states(path.target).astype(np.float64))
        earned, solve = reward.per_choice(model.structure), self._solver(task.precision / 4)
        result = bound_average(model, earned, directions, task.precision, solve)
        if self.effort.controller and task.is_whole:
            choice, nature = average_policy(model, earned, directions, task.precision, solve), directions[1]
            chain = bound_average(
                values.under(model, choice), earned[choice], (nature, nature), task.precision, solve
            )
            low, high = (
                float(end[self.structure.initial]) for end in (chain.bounds.lower, chain.bounds.upper)
            )
            status = Status.CERTIFIED if chain.missed is None else Status.PRECISION_LIMIT
            policy = Policy.of_choices(self.structure, choice)
            self.steered = SteeredPath(policy, Attained(low, high, status))
        bounds = self._noted(task, result)
        if not is_share:
            return bounds
        return values.StateBounds(np.maximum(bounds.lower, 0.0), np.minimum(bounds.upper, 1.0), bounds.unit)

    def _noted(self, task: OperatorTask, result: values.BoundedValue) -> values.StateBounds:
        self.iterations += result.iterations
        if result.missed is not None:
            self._miss(task, result.missed)
        return result.bounds

    def _cvar(self, task: OperatorTask) -> values.StateBounds:
        """The mean of the worst part of all plays."""
        operator = task.operator
        assert operator.cvar_level is not None
        level = self._formulas.number(operator.cvar_level, Type.DOUBLE, "the level of CVaR")
        if not 0 <= level < 1:
            raise Complaint(
                f"the level of CVaR is {float(level):g}, not within [0, 1)", position_of(operator.cvar_level)
            )
        agent, nature = task.directions
        has_choices, is_interval = self.structure.has_choices, isinstance(self._joint, IntervalMDP)
        if is_interval and not has_choices:
            agent = nature
        if is_interval and agent is not nature and not (self.is_enclosing and agent is Direction.MIN):
            raise Complaint(
                "CVaR where agent and nature are against each other is not supported",
                operator.position,
                "CVaR{…}minmin and CVaR{…}maxmax are bounds of it",
            )
        if not is_interval and not has_choices:
            agent = nature = Direction.MIN
        costs = resolve.read_objective(operator, self.file, self.structure, self.options, self._nested)
        reward = costs.reward
        assert reward is not None
        cost = reward_bounds.whole_rewards(reward, self.structure, "of this CVaR", "it", operator.position)
        objective = Objective(
            costs.kind,
            agent,
            nature,
            target=costs.target,
            upper_steps=costs.upper_steps,
            reward=RewardStructure(choice=cost),
        )
        problem = reward_bounds.CvarProblem(self._joint, objective, level, self._solver(task.precision / 10))
        if agent is Direction.MIN:
            result = reward_bounds.bound_least_cvar(problem, task.starts, self.structure.states)
        else:
            starts = task.starts
            if len(starts) > MOST_STARTS:
                self.tell("CVaR…max is that of the initial states")
                starts = np.array(self.structure.initial_states)
            result = reward_bounds.bound_largest_cvar(
                problem, starts, self.structure.states, level, task.precision / 2
            )
        return self._noted(task, result)

    def _believe(self, bounds: PathBounds) -> None:
        if bounds.is_believed:
            self.trusts_translator = True
            self.tell(
                f"automata of formulas that are neither safe nor co-safe are taken from "
                f"{self.effort.translator}, and believed"
            )
