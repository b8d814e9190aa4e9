"""The value of a formula in every state, from the inside out.

Operators with a value (P, R) are solved with certified bounds for every state; a threshold then holds where
the bound on its side meets it and fails where the other one misses it. A formula inside the path of another
operator must be decided in every state, since it says what is asked: where the bounds of a state stay on both
sides of its threshold (a value that is exactly the threshold, most often) the question is answered by
`UndecidedError`, in words, never by a guess. A and E are decided by the graph of all transitions that nature
can make possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce

import numpy as np

from tightrope.answering.combine import as_number, as_truth, combined
from tightrope.answering.conditional import bound_conditional, decide_branching
from tightrope.answering.filters import filtered
from tightrope.answering.long_run import bound_average
from tightrope.answering.multi_question import MultiAnswer, answer_multi
from tightrope.answering.reward_bounds import bound_rewarded, reward_bounded
from tightrope.answering.temporal import PathBounds, Steered, Translator, bound_path, bound_reward
from tightrope.answering.values import Bounds, Truth
from tightrope.automata.translation import is_co_safe
from tightrope.errors import CannotCertify
from tightrope.formats.policy import Policy
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.prism.expand.check import check_arity
from tightrope.prism.expand.traverse import children
from tightrope.prism.parse.diagnostics import Complaint, Source, position_of
from tightrope.prism.parse.property_syntax import (
    Branching,
    Filter,
    Multi,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
)
from tightrope.prism.parse.spelling import spelled
from tightrope.prism.parse.syntax import Call, Expression, Type
from tightrope.prism.properties.question import Reading
from tightrope.prism.properties.resolve import (
    PropertyOptions,
    formulas_of,
    read_directions,
    refuse_reward_options,
    resolve_operator,
    reward_structure_of,
    threshold_of,
)
from tightrope.prism.properties.shape import (
    check_is_path,
    co_safe_path,
    has_operators,
    is_simple_path,
)
from tightrope.prism.properties.state_formulas import StateFormulas
from tightrope.solver.equations.assumed_support import assume_support as with_support
from tightrope.solver.solution import Solution
from tightrope.solver.solve import Limits, solve

MOST_POWER = 1000
FINEST = 1e-12
"""How close bounds are looked for once more where they leave a threshold inside a formula open."""


class UndecidedError(CannotCertify):
    """Bounds of a formula inside another one lie on both sides of its threshold."""


@dataclass(frozen=True)
class Effort:
    """How the parts are solved."""

    precision: float = 1e-6
    relative: bool = True
    limits: Limits = field(default_factory=Limits)
    threads: int | None = None
    device: str = "cpu"
    translator: str | None = None
    """A command that translates LTL to HOA; None: ours."""
    controller: bool = False
    """Whether the policy of a temporal formula is wanted."""


class Evaluation:
    """The formulas of one property file on one model. `readings` are what a reader must be told."""

    def __init__(
        self,
        model: MDP | IntervalMDP,
        file: PropertyFile,
        options: PropertyOptions,
        effort: Effort,
        assume_support: float | None = None,
    ):
        self.model = model if assume_support is None else with_support(model, assume_support)
        self.structure = model.structure
        self.file, self.options, self.effort = file, options, effort
        self.readings: list[str] = []
        self.iterations = 0
        self.missed: list[str] = []
        self.believed = False
        self.steered: Steered | None = None
        self._support = Support.of(self.model)
        self._formulas: StateFormulas = formulas_of(file, self.structure, options, self._decided)
        self._whole: Expression | None = None
        self._top: Expression | None = None
        self._done: dict[int, tuple[Expression, Truth | Bounds]] = {}

    def value(self, expression: Expression, everywhere: bool = True) -> Truth | Bounds:
        """What an expression is worth in every state, or at least in the initial one."""
        self._whole, self._top = expression, None if everywhere else expression
        try:
            return self._value(expression)
        except Complaint as complaint:
            raise complaint.in_source(Source(self.file.source, self.file.file)) from None

    def several(self, asked: Multi) -> MultiAnswer:
        """What is achieved of several objectives at once, from the initial state."""

        def solved(model: MDP | IntervalMDP, objective: Objective, policy: Policy | None) -> Solution:
            return self._solve(model, objective, self.effort.precision / 4, policy)

        if self.options.is_interval:
            self._tell("in multi(…) nature is against every objective")
        try:
            return answer_multi(asked, self.file, self.model, self._formulas, self.effort.precision, solved)
        except Complaint as complaint:
            raise complaint.in_source(Source(self.file.source, self.file.file)) from None

    def states(self, expression: Expression) -> BoolArray:
        """The states in which a state formula holds."""
        return self._formulas.states(expression)

    def _value(self, expression: Expression) -> Truth | Bounds:
        if isinstance(expression, Multi):
            raise Complaint("multi(…) stands alone", expression.position)
        if isinstance(expression, ValueOperator | Branching | Filter):
            known = self._done.get(id(expression))
            if known is None:
                known = self._done[id(expression)] = (expression, self._operator(expression))
            return known[1]
        if not has_operators(expression):
            if self._formulas.is_number(expression):
                return Bounds(*self._formulas.numbers(expression))
            return Truth.of(self._formulas.states(expression))
        if isinstance(expression, Call) and expression.function == "pow":
            return self._power(expression)
        return combined(expression, [self._value(part) for part in children(expression)])

    def _power(self, expression: Call) -> Bounds:
        check_arity("pow", len(expression.arguments), expression.position)
        base, exponent = expression.arguments
        number = self._formulas.number(exponent, Type.DOUBLE, "the exponent of a result")
        if number.denominator != 1 or not 0 <= number <= MOST_POWER:
            raise Complaint(
                f"the exponent of a result is a whole number from 0 to {MOST_POWER}", position_of(exponent)
            )
        ones = np.ones(self.structure.states)
        return reduce(Bounds.times, [as_number(self._value(base), base)] * int(number), Bounds(ones, ones))

    def _operator(self, expression: ValueOperator | Branching | Filter) -> Truth | Bounds:
        if isinstance(expression, Branching):
            return Truth.of(decide_branching(expression, self._formulas, self._support))
        if isinstance(expression, Filter):
            if expression.kind == "range" and expression is not self._whole:
                raise Complaint(
                    "the range of values is no number: filter(range, …) stands alone", expression.position
                )
            restricted = np.ones(self.structure.states, np.bool_)
            if expression.states is not None:
                restricted = self._formulas.states(expression.states)
            return filtered(expression, self._value(expression.operand), restricted)
        bounds, threshold = self._bounds(expression, self.effort.precision)
        if threshold is None:
            return bounds
        assert expression.comparison is not None
        return bounds.meets(expression.comparison, threshold)

    def _bounds(self, operator: ValueOperator, precision: float) -> tuple[Bounds, Fraction | None]:
        """Certified bounds of the value that an operator is about, and what it is compared with."""
        if operator.condition is not None:
            return self._conditional(operator, precision), threshold_of(operator, self._formulas)
        reward_path = co_safe_path(operator.path) if isinstance(operator.path, RewardFormula) else None
        if isinstance(operator.path, RewardFormula) and operator.path.operator is RewardOperator.LONG_RUN:
            return self._long_run(operator, operator.path, precision), threshold_of(operator, self._formulas)
        if reward_path is not None:
            threshold = threshold_of(operator, self._formulas)
            found, reading = self._reward(operator, reward_path, precision)
            solution, bounds = found.solution, Bounds(found.lower, found.upper)
        elif not isinstance(operator.path, RewardFormula) and (
            earned := reward_bounded(operator.path, self._formulas, self.structure)
        ):
            refuse_reward_options(self.options)
            agent, nature, reading = read_directions(operator, self.file, self.structure, self.options)
            threshold, starts = threshold_of(operator, self._formulas), self._starts(operator)
            found = bound_rewarded(
                self.model, earned, (agent, nature), starts, lambda m, o: self._solve(m, o, precision)
            )
            solution, bounds = found.solution, Bounds(found.lower, found.upper)
        elif isinstance(operator.path, RewardFormula) or is_simple_path(operator.path):
            question = resolve_operator(operator, self.file, self.structure, self.options, self._decided)
            reading, threshold = question.reading, question.threshold
            solution = self._solve(self.model, question.objective, precision)
            bounds = Bounds(solution.lower, solution.upper)
        else:
            check_is_path(operator.path)
            refuse_reward_options(self.options)
            agent, nature, reading = read_directions(operator, self.file, self.structure, self.options)
            self._tell(f"the path is read as  {spelled(operator.path, self.file)}")
            threshold = threshold_of(operator, self._formulas)
            translator = Translator(self._formulas)
            path = translator.both_ways(operator.path)
            found = bound_path(
                self.model,
                path,
                translator.atoms,
                (agent, nature),
                self._starts(operator),
                lambda model, objective: self._solve(model, objective, precision),
                self.effort.translator,
            )
            if self.effort.controller and operator is self._whole and not found.is_believed:
                self.steered = found.steered(self.model)
            if found.is_believed:
                self.believed = True
                self._tell(
                    f"automata of formulas that are neither safe nor co-safe are taken from "
                    f"{self.effort.translator}, and believed"
                )
            solution, bounds = found.solution, Bounds(found.lower, found.upper)
        if reading is not None:
            self._tell(reading.warning)
        self.iterations += solution.iterations
        if not solution.is_certified:
            self.missed.append(f"{self.file.text_of(operator)}: {solution.status.value}")
        return bounds, threshold

    def _starts(self, operator: ValueOperator) -> OffsetArray:
        """The states from which a product is built: all, or the initial ones where only they count."""
        if self.effort.controller and operator is self._whole:
            return np.array([self.structure.initial])
        states = range(self.structure.states)
        return np.array(self.structure.initial_states if operator is self._top else states)

    def _reward(
        self, operator: ValueOperator, path: Expression, precision: float
    ) -> tuple[PathBounds, Reading | None]:
        """Bounds on a reward that is earned until a co-safe path formula is satisfied."""
        check_is_path(path)
        if self.options.discount is not None or self.options.terminal_reward is not None:
            raise Complaint(
                "discounts and terminal rewards do not go with rewards until a path formula is satisfied",
                operator.position,
            )
        agent, nature, reading = read_directions(operator, self.file, self.structure, self.options)
        reward = reward_structure_of(operator, self.structure)
        self._tell(f"the path is read as  {spelled(path, self.file)}")
        translator = Translator(self._formulas)
        formula, _ = translator.both_ways(path)
        if not is_co_safe(formula):
            raise Complaint(
                "rewards are added up until a path formula is satisfied for certain, and this one can "
                "always fail later: it is not co-safe",
                position_of(path),
                "write it with F, U and X only",
            )
        nobody = np.zeros(self.structure.states, np.bool_)
        objective = Objective(ObjectiveKind.REACH_REWARD, agent, nature, target=nobody, reward=reward)
        found = bound_reward(
            self.model,
            formula,
            translator.atoms,
            objective,
            self._starts(operator),
            lambda model, asked: self._solve(model, asked, precision),
        )
        return found, reading

    def _conditional(self, operator: ValueOperator, precision: float) -> Bounds:
        """P(path and condition) / P(condition), where nobody decides anything."""
        assert operator.condition is not None and isinstance(operator.path, Expression)
        check_is_path(operator.path)
        refuse_reward_options(self.options)
        if self.structure.has_choices or not isinstance(self.model, MDP):
            raise Complaint(
                "conditional probabilities are answered where nobody decides anything: on Markov chains",
                operator.position,
                "with choices or intervals the best policy for the quotient is another problem",
            )
        path, given = spelled(operator.path, self.file), spelled(operator.condition, self.file)
        self._tell(f"the path is read as  {path}  and the condition as  {given}")
        translator = Translator(self._formulas)
        bounds, parts = bound_conditional(
            self.model,
            translator.both_ways(operator.path),
            translator.both_ways(operator.condition),
            translator.atoms,
            self._starts(operator),
            lambda model, objective: self._solve(model, objective, precision / 10),
            self.effort.translator,
        )
        for part in parts:
            self.believed |= part.is_believed
            self.iterations += part.solution.iterations
        if (parts[1].upper[list(self.structure.initial_states)] == 0).any():
            raise Complaint(
                f"the condition {given} has probability 0 in the initial state, so nothing is known under it",
                position_of(operator.condition),
            )
        return bounds

    def _long_run(self, operator: ValueOperator, path: RewardFormula, precision: float) -> Bounds:
        """Bounds on a long-run average, or on the share of time in some states."""
        if self.options.discount is not None or self.options.terminal_reward is not None:
            raise Complaint(
                "discounts and terminal rewards do not go with long-run averages", operator.position
            )
        agent, nature, reading = read_directions(operator, self.file, self.structure, self.options)
        if reading is not None:
            self._tell(reading.warning)
        if operator.is_reward:
            reward = reward_structure_of(operator, self.structure)
        else:
            assert path.target is not None
            reward = RewardStructure(self._formulas.states(path.target).astype(np.float64))
        found = bound_average(
            self.model,
            reward.per_choice(self.structure),
            (agent, nature),
            precision,
            lambda model, asked: self._solve(model, asked, precision / 4),
        )
        self.iterations += found.iterations
        if found.missed is not None:
            self.missed.append(f"{self.file.text_of(operator)}: {found.missed}")
        lower, upper = found.bounds.lower, found.bounds.upper
        if not operator.is_reward:
            lower, upper = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
        return Bounds(lower, upper, found.bounds.unit)

    def _solve(
        self,
        model: MDP | IntervalMDP,
        objective: Objective,
        precision: float,
        policy: Policy | None = None,
    ) -> Solution:
        effort = self.effort
        return solve(
            model,
            objective,
            policy=policy,
            precision=precision,
            relative=effort.relative,
            limits=effort.limits,
            threads=effort.threads,
            device=effort.device,
        )

    def _tell(self, reading: str) -> None:
        if reading not in self.readings:
            self.readings.append(reading)

    def _decided(self, expression: Expression) -> BoolArray:
        """Where a formula inside another one holds; every state must be decided."""
        value = as_truth(self._value(expression), expression)
        if value.is_open.any() and isinstance(expression, ValueOperator):
            bounds, threshold = self._bounds(expression, min(FINEST, self.effort.precision))
            assert threshold is not None and expression.comparison is not None
            value = bounds.meets(expression.comparison, threshold)
            self._done[id(expression)] = (expression, value)
        if not value.is_open.any():
            return value.holds
        state = int(np.argmax(value.is_open))
        text, where = spelled(expression, self.file), self.structure.state_name(state)
        more = int(np.count_nonzero(value.is_open))
        raise UndecidedError(
            f"{text} is not decided in {more:,} state{'s' if more > 1 else ''}, such as {where}: the "
            "certified bounds of its value lie on both sides of the threshold. The value may be the "
            f"threshold itself; move it by more than {FINEST:g}"
        )
