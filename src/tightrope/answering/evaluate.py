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

from tightrope.answering.filters import filtered
from tightrope.answering.temporal import Translator, bound_path
from tightrope.answering.values import Bounds, Truth, rounded
from tightrope.errors import CannotCertify
from tightrope.model.graph import branching
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.expand.check import check_arity
from tightrope.prism.parse.diagnostics import Complaint, Source, position_of
from tightrope.prism.parse.property_syntax import (
    Branching,
    Filter,
    PathFormula,
    PathOperator,
    PropertyFile,
    RewardFormula,
    ValueOperator,
)
from tightrope.prism.parse.spelling import spelled
from tightrope.prism.parse.syntax import Binary, Call, Conditional, Expression, Type, Unary
from tightrope.prism.properties.resolve import (
    PropertyOptions,
    formulas_of,
    read_directions,
    refuse_reward_options,
    resolve_operator,
    threshold_of,
)
from tightrope.prism.properties.shape import (
    check_is_path,
    has_operators,
    is_simple_path,
    without_negation,
)
from tightrope.prism.properties.state_formulas import StateFormulas
from tightrope.solver.assumed_support import assume_support as with_support
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

    def states(self, expression: Expression) -> BoolArray:
        """The states in which a state formula holds."""
        return self._formulas.states(expression)

    def _value(self, expression: Expression) -> Truth | Bounds:
        if isinstance(expression, ValueOperator | Branching | Filter):
            known = self._done.get(id(expression))
            if known is None:
                known = self._done[id(expression)] = (expression, self._operator(expression))
            return known[1]
        if not has_operators(expression):
            if self._formulas.is_number(expression):
                return Bounds(*self._formulas.numbers(expression))
            return Truth.of(self._formulas.states(expression))
        if isinstance(expression, Unary):
            inner = self._value(expression.operand)
            if expression.operator == "!":
                return _truth(inner, expression.operand).negated()
            return _number(inner, expression.operand).negated()
        if isinstance(expression, Binary):
            return self._binary(expression)
        if isinstance(expression, Conditional):
            return self._conditional(expression)
        assert isinstance(expression, Call)
        return self._call(expression)

    def _operator(self, expression: ValueOperator | Branching | Filter) -> Truth | Bounds:
        if isinstance(expression, Branching):
            return Truth.of(self._branching(expression))
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
        if isinstance(operator.path, RewardFormula) or is_simple_path(operator.path):
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
            everywhere = np.arange(self.structure.states)
            starts = everywhere if operator is not self._top else np.array([self.structure.initial])
            found = bound_path(
                self.model,
                path,
                translator.atoms,
                (agent, nature),
                starts,
                lambda model, objective: self._solve(model, objective, precision),
                self.effort.translator,
            )
            if self.effort.translator is not None:
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

    def _solve(self, model: MDP | IntervalMDP, objective: Objective, precision: float) -> Solution:
        effort = self.effort
        return solve(
            model,
            objective,
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
        value = _truth(self._value(expression), expression)
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

    def _branching(self, expression: Branching) -> BoolArray:
        """Decided by the graph of possible transitions."""
        path, negated = without_negation(expression.path)
        check_is_path(expression.path)
        if not isinstance(path, PathFormula) or not is_simple_path(path):
            raise Complaint(
                "A and E take one of X F G U W R over state formulas, as in CTL",
                position_of(expression.path) or expression.position,
                "combine several of them: A [ F x=1 ] & A [ F x=2 ]; or ask P>=1 [ … ], which takes any path",
            )
        if path.bound is not None:
            raise Complaint(
                "A and E take no bound on steps", path.position, "ask P>=1 [ F<=k … ] or P>0 [ F<=k … ]"
            )
        every = expression.is_universal != negated
        right = self._formulas.states(path.right)
        left = None if path.left is None else self._formulas.states(path.left)
        found = _paths(self._support, path.operator, left, right, every)
        return ~found if negated else found

    def _binary(self, expression: Binary) -> Truth | Bounds:
        operator = expression.operator
        left, right = self._value(expression.left), self._value(expression.right)
        if operator in ("&", "|", "=>", "<=>") or (operator in ("=", "!=") and isinstance(left, Truth)):
            one, other = _truth(left, expression.left), _truth(right, expression.right)
            if operator == "&":
                return one.both(other)
            if operator in ("|", "=>"):
                return (one if operator == "|" else one.negated()).either(other)
            return one.same(other) if operator != "!=" else one.same(other).negated()
        first, second = _number(left, expression.left), _number(right, expression.right)
        if operator == "+":
            return first.plus(second)
        if operator == "-":
            return first.plus(second.negated())
        if operator == "*":
            return first.times(second)
        if operator == "/":
            return first.divided_by(second)
        return first.compared(operator, second)

    def _conditional(self, expression: Conditional) -> Truth | Bounds:
        condition = _truth(self._value(expression.condition), expression.condition)
        then, otherwise = self._value(expression.then), self._value(expression.otherwise)
        if isinstance(then, Truth) and isinstance(otherwise, Truth):
            yes, no = condition.both(then), condition.negated().both(otherwise)
            same = Truth(then.holds & otherwise.holds, then.fails & otherwise.fails)
            either = yes.either(no)
            return Truth(either.holds | same.holds, either.fails | same.fails)
        one, other = _number(then, expression.then), _number(otherwise, expression.otherwise)
        lower = np.where(
            condition.holds,
            one.lower,
            np.where(condition.fails, other.lower, np.minimum(one.lower, other.lower)),
        )
        upper = np.where(
            condition.holds,
            one.upper,
            np.where(condition.fails, other.upper, np.maximum(one.upper, other.upper)),
        )
        return Bounds(lower, upper, max(one.unit, other.unit))

    def _call(self, expression: Call) -> Bounds:
        function, arguments = expression.function, expression.arguments
        check_arity(function, len(arguments), expression.position)
        if function in ("log", "mod"):
            raise Complaint(f"{function} of a result is not supported", expression.position)
        values = [_number(self._value(argument), argument) for argument in arguments]
        if function == "floor":
            return values[0].through(np.floor)
        if function == "ceil":
            return values[0].through(np.ceil)
        if function == "round":
            return values[0].through(rounded)
        if function == "pow":
            exponent = self._formulas.number(arguments[1], Type.DOUBLE, "the exponent of a result")
            if exponent.denominator != 1 or not 0 <= exponent <= MOST_POWER:
                raise Complaint(
                    f"the exponent of a result is a whole number from 0 to {MOST_POWER}",
                    position_of(arguments[1]),
                )
            ones = np.ones(self.structure.states)
            return reduce(Bounds.times, [values[0]] * int(exponent), Bounds(ones, ones))
        return reduce(Bounds.smaller if function == "min" else Bounds.larger, values)


def _paths(
    support: Support, operator: PathOperator, left: BoolArray | None, right: BoolArray, every: bool
) -> BoolArray:
    all_ = np.ones(len(right), np.bool_)
    if operator is PathOperator.NEXT:
        return (branching.every_next if every else branching.some_next)(support, right)
    if operator is PathOperator.GLOBALLY:
        return (branching.every_always if every else branching.some_always)(support, right)
    if operator in (PathOperator.EVENTUALLY, PathOperator.UNTIL):
        until = branching.every_until if every else branching.some_until
        return until(support, all_ if left is None else left, right)
    assert left is not None
    weak = branching.every_weak_until if every else branching.some_weak_until
    if operator is PathOperator.WEAK_UNTIL:
        return weak(support, left, right)
    return weak(support, right, left & right)  # a R b is b W (a & b)


def _truth(value: Truth | Bounds, expression: Expression) -> Truth:
    if isinstance(value, Truth):
        return value
    hint = None
    if isinstance(expression, ValueOperator):
        letter = "R" if expression.is_reward else "P"
        hint = f"inside a formula an operator has a threshold: {letter}>=0.5 [ … ]"
    raise Complaint("this is a number, where true or false is wanted", position_of(expression), hint)


def _number(value: Truth | Bounds, expression: Expression) -> Bounds:
    if isinstance(value, Bounds):
        return value
    raise Complaint("this is true or false, where a number is wanted", position_of(expression))
