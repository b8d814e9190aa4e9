"""One value over all rates within intervals: what a chain is worth for the worst and the best of nature.

A chain in continuous time has no choices, so P=?, Pmin=? and Pmax=? ask for the same number, which depends on
the rates alone. With intervals of rates that number lies between its bounds for nature against and for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.errors import InputError
from tightrope.logic.operators import Effort
from tightrope.logic.timed import TimedEvaluation
from tightrope.logic.values import Bounds
from tightrope.model.continuous import IntervalCTMC
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import interval_text
from tightrope.prism.parse.property_syntax import ValueOperator
from tightrope.prism.properties.query import Query

NATURE = (
    "nature picks rates within their intervals at every moment anew: the bounds hold for all fixed rates "
    "within, and for rates that change with time"
)


@dataclass(frozen=True, eq=False, repr=False)
class RateBounds(Record):
    """`lower ≤ value ≤ upper` at the initial states, whatever the rates within their intervals.

    >>> import tightrope as tr
    >>> tr.RateBounds(0.25, 0.5, 12, ())
    RateBounds: [0.25, 0.5]
    """

    lower: float
    upper: float
    iterations: int
    missed: tuple[str, ...]
    notes: tuple[str, ...] = (NATURE,)

    def _title_(self) -> str:
        return f"RateBounds: {interval_text(self.lower, self.upper)}"

    def _facts_(self) -> Facts:
        return [("missed", text) for text in self.missed]


def value_operator(query: Query) -> ValueOperator:
    """The one P, R or S of a query that asks for a number."""
    operator = query.operator
    if query.is_threshold:
        raise InputError(
            f"{query.text} is true or false, and may be true for some rates only",
            hint="ask for the value, P=? [ … ], and compare its bounds",
        )
    return operator


def bound_over_rates(chain: IntervalCTMC, query: Query, effort: Effort) -> RateBounds:
    """Bounds on the value of a property over all rates of an interval chain."""
    value_operator(query)
    ends: list[Bounds] = []
    missed: list[str] = []
    steps = 0
    for direction in ("min", "max"):
        directed = query.with_nature(direction)
        evaluation = TimedEvaluation(chain, directed, effort)
        found = evaluation.value(directed.operator, everywhere=False)
        assert isinstance(found, Bounds)
        ends.append(found)
        missed += evaluation.operators.missed
        steps += evaluation.operators.iterations
    at = list(chain.initial_states)
    return RateBounds(
        float(ends[0].lower[at].min()), float(ends[1].upper[at].max()), steps, tuple(dict.fromkeys(missed))
    )
