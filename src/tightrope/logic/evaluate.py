"""The value of a formula in every state, from the inside out.

Operators with a value (P, R) are solved with certified bounds for every state; a threshold then holds where
the bound on its side meets it and fails where the other one misses it. A formula inside the path of another
operator must be decided in every state, since it says what is asked: where the bounds of a state stay on both
sides of its threshold (a value that is exactly the threshold, most often) the question is answered by
`UndecidedError`, in words, never by a guess. A and E are decided by the graph of all transitions that nature
can make possible.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np

from tightrope.errors import CannotCertify
from tightrope.logic.combine import apply_filter, as_number, as_truth, combine_values
from tightrope.logic.conditional import decide_branching
from tightrope.logic.multi_question import MultiAnswer, answer_multi
from tightrope.logic.operators import Effort, Operators
from tightrope.logic.quantile import find_quantile, read_threshold
from tightrope.logic.values import Bounds, Truth
from tightrope.model.graph.support import Support
from tightrope.model.mdp import JOINT_BOUNDS, MDP, IntervalMDP
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.prism.expand.expressions import check_arity, children
from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse.property_syntax import spell
from tightrope.prism.parse.syntax import Call, Complaint, Expression, Source, Type, position_of
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.shape import has_operators
from tightrope.prism.properties.state_formulas import StateFormulas
from tightrope.solver.equations.assumed_support import assume_support as with_support
from tightrope.solver.solution import Solution

MOST_POWER = 1000
FINEST = 1e-12
"""How close bounds are looked for once more where they leave a threshold inside a formula open."""


class UndecidedError(CannotCertify):
    """Bounds of a formula inside another one lie on both sides of its threshold."""


class Evaluation:
    """The formulas of one query on one model; `operators` has what a reader must be told of them."""

    def __init__(
        self,
        model: MDP | IntervalMDP,
        query: Query,
        effort: Effort,
        assume_support: float | None = None,
    ):
        self.model = model if assume_support is None else with_support(model, assume_support)
        self.structure = model.structure
        self.query, self.file, self.options, self.effort = query, query.syntax, query.options, effort
        self._support = Support.of(self.model)
        self._formulas: StateFormulas = query.state_formulas(self._decide_states)
        self.operators = self._make_operators()
        if isinstance(model, IntervalMDP) and model.factored is not None and assume_support is not None:
            self.operators.tell(JOINT_BOUNDS)
        self._whole: Expression | None = None
        self._top: Expression | None = None
        self._done: dict[int, tuple[Expression, Truth | Bounds]] = {}

    def _make_operators(self) -> Operators:
        return Operators(self.model, self.query, self.effort, self._formulas, self._decide_states)

    def value(self, expression: Expression, everywhere: bool = True) -> Truth | Bounds:
        """What an expression is worth in every state, or at least in the initial one."""
        self._whole, self._top = expression, None if everywhere else expression
        try:
            return self._value(expression)
        except Complaint as complaint:
            raise complaint.in_source(Source(self.file.source, self.file.file)) from None

    def several(self, asked: formulas.Multi) -> list[MultiAnswer]:
        """What is achieved of several objectives at once, from every initial state."""

        def solved(model: MDP | IntervalMDP, objective: Objective, policy: Policy | None) -> Solution:
            return self.operators.solve(model, objective, self.effort.precision / 4, policy)

        if self.options.is_interval:
            self.operators.tell("in multi(…) nature is against every objective")
        if len(self.structure.initial_states) > 1:
            self.operators.tell("points of multi(…) are those of the first initial state")
        try:
            about = (
                asked,
                self.file,
                self.operators.tell_joint(),
                self._formulas,
                self.effort.precision,
                solved,
            )
            return [answer_multi(*about, start) for start in self.structure.initial_states]
        except Complaint as complaint:
            raise complaint.in_source(Source(self.file.source, self.file.file)) from None

    def states(self, expression: Expression) -> BoolArray:
        """The states in which a state formula holds."""
        return self._formulas.states(expression)

    def _value(self, expression: Expression) -> Truth | Bounds:
        if isinstance(expression, formulas.Multi):
            raise Complaint("multi(…) stands alone", expression.position)
        if isinstance(
            expression, formulas.ValueOperator | formulas.Branching | formulas.Filter | formulas.Quantile
        ):
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
        return combine_values(expression, [self._value(part) for part in children(expression)])

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

    def _operator(
        self, expression: formulas.ValueOperator | formulas.Branching | formulas.Filter | formulas.Quantile
    ) -> Truth | Bounds:
        if isinstance(expression, formulas.Branching):
            return Truth.of(decide_branching(expression, self._formulas, self._support))
        if isinstance(expression, formulas.Filter):
            if expression.kind == "range" and expression is not self._whole:
                raise Complaint(
                    "the range of values is no number: filter(range, …) stands alone", expression.position
                )
            restricted = np.ones(self.structure.states, np.bool_)
            if expression.states is not None:
                restricted = self._formulas.states(expression.states)
            return apply_filter(expression, self._value(expression.operand), restricted)
        if isinstance(expression, formulas.Quantile):
            return self._quantile(expression)
        bounds, threshold = self._bounds(expression, self.effort.precision)
        if threshold is None:
            return bounds
        assert expression.comparison is not None
        return bounds.meets(expression.comparison, threshold)

    def _bounds(self, operator: formulas.ValueOperator, precision: float) -> tuple[Bounds, Fraction | None]:
        """Certified bounds of the value that an operator is about, and what it is compared with."""
        is_whole = operator is self._whole
        return self.operators.bounds(operator, precision, self._starts(operator), is_whole)

    def _quantile(self, asked: formulas.Quantile) -> Bounds:
        """The least or largest bound for which a threshold is met."""
        threshold = read_threshold(asked)
        for constant in (*self._formulas.constants.types, *self.structure.valuations):
            if constant == asked.variable:
                raise Complaint(
                    f"'{asked.variable}' means something already, a quantile's variable is a new name",
                    asked.position,
                )
        starts = self._starts(asked)
        wanted = np.zeros(self.structure.states, np.bool_)
        wanted[starts] = True

        def decide(operator: formulas.ValueOperator) -> Truth:
            bounds, limit = self.operators.bounds(operator, self.effort.precision, starts, False)
            assert operator.comparison is not None and limit is not None
            truth = bounds.meets(operator.comparison, limit)
            if (truth.is_open & wanted).any():
                finest = min(FINEST, self.effort.precision)
                bounds, _ = self.operators.bounds(operator, finest, starts, False)
                truth = bounds.meets(operator.comparison, limit)
            return truth

        found, _ = find_quantile(threshold, decide, wanted)
        return found

    def _starts(self, operator: Expression) -> OffsetArray:
        """The states from which a product is built: all, or the initial ones where only they count."""
        if self.effort.controller and operator is self._whole:
            return np.array([self.structure.initial])
        states = range(self.structure.states)
        return np.array(self.structure.initial_states if operator is self._top else states)

    def _decide_states(self, expression: Expression) -> BoolArray:
        """Where a formula inside another one holds; every state must be decided."""
        value = as_truth(self._value(expression), expression)
        if value.is_open.any() and isinstance(expression, formulas.ValueOperator):
            bounds, threshold = self._bounds(expression, min(FINEST, self.effort.precision))
            assert threshold is not None and expression.comparison is not None
            value = bounds.meets(expression.comparison, threshold)
            self._done[id(expression)] = (expression, value)
        if not value.is_open.any():
            return value.holds
        state = int(np.argmax(value.is_open))
        text, where = spell(expression, self.file), self.structure.state_name(state)
        more = int(np.count_nonzero(value.is_open))
        raise UndecidedError(
            f"{text} is not decided in {more:,} state{'s' if more > 1 else ''}, such as {where}: the "
            "certified bounds of its value lie on both sides of the threshold. The value may be the "
            f"threshold itself; move it by more than {FINEST:g}"
        )
