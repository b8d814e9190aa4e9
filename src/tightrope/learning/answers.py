"""Any other question: what data, or a domain, say about its answer in the true model.

Statistics and sets are those of `learn`. Their hull, an interval for the probability of every transition,
holds the truth whenever they do; on it the question is answered so that the answer holds wherever the model
lies (`tightrope.logic.uncertain`). So the answer in the true model lies in the interval with confidence
1 − δ, and a property that is said to be true is true there. Where one operator has an agent, its side of the
interval is a guarantee: one policy attains it whatever the model is. Under a given policy the question is
about the chain that the policy leaves.
"""

from __future__ import annotations

import time
from dataclasses import field

import numpy as np

from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.errors import InputError
from tightrope.io.results import Interval
from tightrope.late import dataclass
from tightrope.learning.learn import PlainQuestions
from tightrope.learning.options import Decisions, LearnOptions
from tightrope.learning.pipeline import Pipeline, Prepared
from tightrope.learning.result import rests_on
from tightrope.logic.model_checking import Answer, check_query
from tightrope.model.mdp import IntervalMDP
from tightrope.model.policy import Policy
from tightrope.model.ranges import ranges_over_box
from tightrope.model.structure import ParametricReward
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import bound_text
from tightrope.prism.parse.property_syntax import Multi, ValueOperator
from tightrope.prism.properties.query import Query
from tightrope.problem import Problem
from tightrope.solver.equations.system import assume_support
from tightrope.solver.solution import OPEN, SolveOptions
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.verdict import Assumed, Worth

SETS = (SetsKind.TIED, SetsKind.PARAMETER, SetsKind.EXPRESSION, SetsKind.RECTANGULAR)
"""Those that have a hull."""


@dataclass(frozen=True, eq=False, repr=False)
class LearnedAnswer(Record):
    """What is known of the answer in the true model, with the ledger's confidence.

    * A number lies in `interval`; a property that is true or false has a `truth`, "not certified" where the
      data leave it open.
    * `guarantee`: the end of the interval that one policy attains whatever the model is, where the question
      has an agent.
    * `policy`: the given one, where one was given.
    * `answer` has the same for every state, and the policies of `multi(…)`.
    * `contradiction`: words about an empty region, else None; tied sets were then used instead.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=("0.1", "0.9"))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "", {0: 1 - p, 1: p}), (1, "", {0: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"up": [0]})
    >>> data = [[(0, "", 1)]] * 50 + [[(0, "", 0)]] * 50
    >>> result = tr.learn(model.problem('filter(count, P>=0.2 [ X "up" ])'), data)
    >>> result.interval.lower, result.interval.upper
    (2.0, 2.0)
    """

    text: str
    interval: Interval | None
    truth: str | None
    guarantee: float | None
    answer: Answer = field(repr=False)
    policy: Policy | None
    sets: Sets = field(repr=False)
    decisions: Decisions
    contradiction: str | None
    assumed: tuple[Assumed, ...]
    seconds: float = field(compare=False)

    @property
    def ledger(self) -> ConfidenceBudget:
        """How δ was spent, and what must hold of the data."""
        return self.sets.ledger

    @property
    def is_close(self) -> bool:
        """Whether all parts were computed as closely as was asked."""
        return not self.answer.missed

    @property
    def verdict(self) -> Worth:
        """What the result is worth, in one word, with all that it rests on."""
        limit = "; ".join(self.answer.missed) or None
        if self.truth == OPEN:
            limit = f"{self.text} is true for some of the models that the data leave, and false for others"
        return Worth.of(self.assumed, contradicted=self.contradiction, limit=limit)

    @property
    def claim(self) -> str:
        """What is claimed, rounded so that it holds as it is written."""
        if self.interval is None:
            return self.truth or ""
        if self.guarantee is None:
            return str(self.interval)
        is_lower = self.guarantee == self.interval.lower
        return f"at {'least' if is_lower else 'most'} {bound_text(self.guarantee, is_lower)}"

    def headline(self) -> str:
        """The verdict in a line: the word, then the claim as far as it may be made."""
        sure = f"with confidence {1 - self.ledger.delta:.10g}" if self.ledger.delta else "over the domain"
        return self.verdict.headline(self.claim, sure)

    def _title_(self) -> str:
        return f"LearnedAnswer: {self.claim}"

    def _facts_(self) -> Facts:
        value = [] if self.interval is None else [("true value", str(self.interval))]
        return [("asked", self.text), ("verdict", self.headline()), *value]


class OtherQuestions(PlainQuestions):
    """The reduction of all that is no single objective: statistics and sets are the chain's, the answer is
    that of their hull."""

    def apply(self, problem: Problem) -> Problem:
        """The problem as it is: the sets are those of any question about the model."""
        if any(isinstance(reward, ParametricReward) for reward in problem.model.structure.rewards.values()):
            raise problem.query.error(
                "rewards with parameters are learned about for one P or R over a simple path or a reward",
                problem.query.position,
            )
        return problem

    @staticmethod
    def lift(chain: Pipeline, options: LearnOptions) -> LearnedAnswer:
        """The answer over the hull of the sets."""
        begin = time.perf_counter()
        decisions = chain.decide(options)
        if decisions.sets not in SETS or decisions.bets:
            raise InputError(
                f"{decisions.sets.value} sets do not go with {chain.problem.text}",
                hint="--sets tied, parameter, expression or rectangular",
            )
        if chain.evaluation is not None:
            raise InputError(
                "a policy with a memory is evaluated for one P over a path, or one R over a reward",
                hint="give a policy that takes one choice per state",
            )
        prepared = chain.prepare(decisions, sets_only=True)
        hull, query, policy = hull_of(prepared, options), chain.problem.query, chain.policy
        effort = SolveOptions(
            options.precision, iterations=options.iterations, seconds=options.seconds, threads=options.threads
        )
        answer = check_query(query, hull, effort, uncertain=True, policy=policy)
        interval = None if answer.bounds is None else Interval(*answer.bounds)
        return LearnedAnswer(
            query.text,
            interval,
            answer.truth,
            None if interval is None else _guarantee(query, interval),
            answer,
            policy,
            prepared.sets,
            decisions,
            prepared.contradiction,
            rests_on(prepared.sets.ledger, options, None),
            time.perf_counter() - begin,
        )


def _guarantee(query: Query, interval: Interval) -> float | None:
    formula = query.formula
    if isinstance(formula, Multi):
        formula = next(
            one for one in formula.objectives if isinstance(one, ValueOperator) and one.comparison is None
        )
    if not isinstance(formula, ValueOperator) or formula.agent is None or formula.comparison is not None:
        return None
    return interval.lower if formula.agent == "max" else interval.upper


def hull_of(prepared: Prepared, options: LearnOptions) -> IntervalMDP:
    """The sets as intervals; what the domain says of lower bounds counts where it is not refuted."""
    sets = prepared.sets
    model, lower = sets.model, sets.lower
    if prepared.contradiction is None and not options.misfit:  # the truth lies in the domain
        low, _ = ranges_over_box(model.expressions, model.parameters.lower, model.parameters.upper)
        lower = np.maximum(lower, np.minimum(low[model.expression], sets.upper))
    hull = IntervalMDP(model.structure, lower, sets.upper)
    if options.assume_support is None:
        return hull
    raised = assume_support(hull, options.assume_support)
    assert isinstance(raised, IntervalMDP)
    return raised
