"""Formulas about one model of which intervals are all that is known: bounds that hold wherever it lies.

Every operator is answered twice, with nature against and for its value, and the two answers enclose what it
is worth in every plain model within the intervals: the largest value of nature's is at least any of them. So
thresholds hold, fail or stay open whatever the model is, and what is made of them by arithmetic, logic,
filters and quantiles (Kleene's logic, interval arithmetic) encloses the answer in that model. On the agent's
side the bound is a guarantee: a policy attains it against nature, and needs to know nothing of the model.

* *Paths of A and E* are those of all plain models alike where nature can cut no transition, else refused.
* *CVaR* of an agent that minimises: of v + E[(X − v)⁺] / (1 − α) nature against the agent has the largest
  value for every v, so the least over v bounds the agent's least CVaR in every model from above.
* *multi(…)*: what is attained is attained whatever nature does; what is impossible against one nature may be
  possible in the true model, so it is left open.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tightrope.logic.evaluate import Evaluation
from tightrope.logic.multi_objective import Achieved
from tightrope.logic.operators import Operators
from tightrope.logic.solving import require_constant
from tightrope.logic.values import StateBounds, StateTruth
from tightrope.numerics.arrays import OffsetArray
from tightrope.prism.parse.property_syntax import Branching, Filter, Multi, Quantile, ValueOperator
from tightrope.prism.parse.syntax import Complaint


class UncertainEvaluation(Evaluation):
    """The formulas of one query on every plain model within an interval model."""

    why_open = "the sets leave its value on both sides of the threshold"

    def _make_operators(self) -> Operators:
        return UncertainOperators(self.model, self.query, self.effort, self._formulas, self._decide_states)

    def _operator(
        self, expression: ValueOperator | Branching | Filter | Quantile
    ) -> StateTruth | StateBounds:
        if isinstance(expression, Branching):
            require_constant(self.model, "A and E")
        return super()._operator(expression)

    def several(self, multi: Multi) -> list[Achieved]:
        open_ = [one for one in multi.objectives if isinstance(one, ValueOperator) and one.comparison is None]
        if len(open_) > 1:
            raise Complaint(
                "the curve of two objectives is that of one model, and here many are possible",
                multi.position,
                "ask for one value beside thresholds",
            )
        try:
            return [self._guaranteed(one, open_) for one in super().several(multi)]
        except Complaint as error:
            if "no policy meets" not in error.message:
                raise
            raise Complaint(
                "no policy meets the thresholds together in every model that is possible here",
                multi.position,
                "collect more data, or ask for less",
            ) from None

    @staticmethod
    def _guaranteed(achieved: Achieved, open_: list[ValueOperator]) -> Achieved:
        if achieved.bounds is None:
            is_open = achieved.verdict == "false"
            return replace(achieved, verdict="not certified") if is_open else achieved
        most = float("inf") if open_[0].is_reward else 1.0
        lower, upper = achieved.bounds
        bounds = (lower, most) if open_[0].agent == "max" else (0.0, upper)
        return replace(achieved, bounds=bounds)


class UncertainOperators(Operators):
    """Operators with nature against and for their value."""

    is_enclosing = True

    def bounds(
        self, operator: ValueOperator, precision: float, starts: OffsetArray, is_whole: bool
    ) -> tuple[StateBounds, Fraction | None]:
        ends = []
        for nature in ("min", "max"):
            agent = operator.agent
            if agent is None and not self.structure.has_choices:
                agent = nature
            elif agent is None and operator.comparison is not None:
                agent = "min" if operator.comparison.startswith(">") else "max"
            directed = operator if agent is None else replace(operator, agent=agent, nature=nature)
            ends.append(super().bounds(directed, precision, starts, is_whole))
        (low, threshold), (high, _) = ends
        return StateBounds(low.lower, high.upper, max(low.unit, high.unit)), threshold
