"""Formulas about one unknown model within intervals: bounds that hold for every such model.

Every operator is answered twice, with nature against and for its value; the answers enclose its value in
every plain model within the intervals. Thresholds hold, fail or stay open for all of them. Arithmetic, logic,
filters and quantiles (Kleene's logic, interval arithmetic) preserve this. On the agent's side the bound is a
guarantee: a policy attains it against nature without knowing the model.

* *A and E*: the same paths in all plain models if nature can cut no transition, else refused.
* *CVaR* of a minimising agent: nature maximises v + E[(X − v)⁺] / (1 − α) for every v, so the least over v
  bounds the agent's least CVaR in every model from above.
* *multi(…)*: achieved points hold for every nature; what one nature prevents stays open.
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
                "the curve of two objectives needs a model without uncertainty",
                multi.position,
                "ask for one value beside thresholds",
            )
        try:
            return [self._guaranteed(one, open_) for one in super().several(multi)]
        except Complaint as error:
            if "no policy meets" not in error.message:
                raise
            raise Complaint(
                "no policy meets all thresholds in every possible model",
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
