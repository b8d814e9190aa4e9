"""Answers to other questions in the true model, from data or over a domain.

Statistics and sets are those of `learn`. Their hull has an interval for every transition and contains the
true model whenever the sets do. The answer holds for every model in the hull (`tightrope.logic.evaluate`),
so with confidence 1 − δ for the true one. If one operator has an agent, its end of the interval is a
guarantee: one policy attains it in every model. A given policy leaves a chain, which is asked instead.

*Long-run averages* have certified bounds for every nature on the hull (`logic.long_run`). No transition may
vanish: by the sets, by the domain, or by an assumption.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.io.answers import AnswerDocument
from tightrope.io.coding import record_of
from tightrope.io.results import Interval, ModelFit
from tightrope.learning.options import Decisions, LearnOptions
from tightrope.learning.outcomes import Unobserved
from tightrope.learning.pipeline import Pipeline, PlainQuestions, Prepared
from tightrope.learning.products import support_is_open
from tightrope.learning.result import CLOSE, assess, rests_on
from tightrope.logic.long_run import average_policy, bound_average, read_average
from tightrope.logic.model_checking import Answer, check_query
from tightrope.logic.values import BoundedValue, Directions, under
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction
from tightrope.model.policy import Policy
from tightrope.model.ranges import ranges_over_box
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.machine import peak_memory
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import bounded, claim_text, sure_text
from tightrope.prism.parse.property_syntax import Multi, ValueOperator
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query
from tightrope.problem import Problem
from tightrope.solver.equations.system import assume_support
from tightrope.solver.solution import OPEN, SolveOptions
from tightrope.solver.solve import solve
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.verdict import Assessment, Word

SETS = (SetsKind.TIED, SetsKind.PARAMETER, SetsKind.EXPRESSION, SetsKind.RECTANGULAR)
"""Those that have a hull."""


@dataclass(frozen=True, eq=False, repr=False)
class LearnedAnswer(Record):
    """The answer to any other question in the true model, with the confidence of `ledger`.

    * A number lies in `interval`; a property that is true or false has a `truth`, or "not certified".
    * `guarantee`: the end of the interval that one policy attains in every model; for a long-run average that
      of `policy`, beside `optimistic`, the bound for all policies.
    * `policy`: the given one, or the robust one of a long-run average.
    * `answer`: the same for every state, and the policies of `multi(…)`; None for long-run averages.
    * `contradiction`, `limit`: messages if the region was empty (tied sets are then used), and if the
      requested precision was missed. `outcomes`: why episodes alone do not show an average.
    * `fit`: the model-fit test, at a separate level; None without data.

    >>> import tightrope as tr
    >>> (p,) = (parameters := tr.Parameters.box(p=("0.1", "0.9"))).symbols()
    >>> rows = [(0, "", {0: 1 - p, 1: p}), (1, "", {0: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"up": [0]})
    >>> data = [[(0, "", 1)]] * 50 + [[(0, "", 0)]] * 50
    >>> result = tr.learn(model.problem('Smax=? [ "up" ]'), data)
    >>> result.interval.lower < 2 / 3 < result.interval.upper
    True
    """

    problem: Problem = field(repr=False)
    counts: Counts | None = field(repr=False)
    options: LearnOptions = field(repr=False)
    decisions: Decisions
    sets: Sets = field(repr=False)
    contradiction: str | None
    interval: Interval | None
    guarantee: float | None
    limit: str | None
    seconds: float = field(compare=False)
    truth: str | None = None
    optimistic: float | None = None
    policy: Policy | None = None
    given: Policy | None = field(default=None, repr=False)
    answer: Answer | None = field(default=None, repr=False)
    outcomes: Unobserved | None = None
    fit: ModelFit | None = None

    @property
    def text(self) -> str:
        """What was asked."""
        return self.problem.text

    @property
    def ledger(self) -> ConfidenceBudget:
        """How δ was spent, and what must hold of the data."""
        return self.sets.ledger

    @property
    def is_close(self) -> bool:
        """Whether all parts were computed as closely as was asked."""
        return self.limit is None

    @property
    def verdict(self) -> Assessment:
        """What the result is worth, in one word, with all that it rests on."""
        limit = self.limit
        if self.truth == OPEN:
            limit = f"{self.text} is true for some of the models that the data leave, and false for others"
        assumed = rests_on(self.ledger, self.options, self.fit, self.problem)
        return assess(assumed, self.counts, self.fit, self.contradiction, limit or CLOSE)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the question was read, and what else there is to say."""
        return (*self.sets.notes, *(() if self.answer is None else self.answer.readings))

    @property
    def claim(self) -> str:
        """What is claimed, rounded so that it holds as it is written."""
        if self.interval is None:
            return f"is {self.truth}"
        if self.guarantee is None:
            low, high = self.interval.lower, self.interval.upper
            if low == high and (np.isinf(low) or low == int(low)):  # other numbers are rounded in text
                return f"is {self.interval if np.isinf(low) else f'{low:,.0f}'}"
            return f"in {self.interval}"
        return bounded(self.guarantee, self._has_floor)

    @property
    def _has_floor(self) -> bool:
        query = self.problem.query
        return _agent(query) == "max" if query.directions is None else query.directions[0] is Direction.MAX

    def headline(self) -> str:
        """Return the verdict and the claim in one line."""
        claim = f"{self.text} {self.claim}" if self.interval is None else claim_text(self.text, self.claim)
        return self.verdict.headline(claim, sure_text(self.ledger.delta))

    def facts(self) -> Facts:
        """The answer, by the names that people read."""
        if self.contradiction is None and self.verdict.word is Word.CONTRADICTED:
            return [("value", f"none; under the contradicted model {self.interval or self.truth}")]
        if self.optimistic is not None and self.guarantee is not None:
            return [("value", f"{self.interval}; any policy {bounded(self.optimistic, not self._has_floor)}")]
        truth = [] if self.truth is None else [("answer", self.truth)]
        return [*truth, *([] if self.interval is None else [("true value", str(self.interval))])]

    def document(self, source: str) -> AnswerDocument:
        """What is written of it; `source`: where the model came from."""
        average = self.optimistic is not None
        return record_of(
            AnswerDocument,
            self,
            model=source,
            model_hash=self.problem.model.hash(),
            question=self.text,
            headline=self.headline(),
            value=None if average else self.interval,
            robust_policy=self.interval if average else None,
            sets=self.sets.kind.value,
            status=CLOSE if self.is_close else "limit",
            peak_memory=peak_memory(),
            seconds={"solve": round(self.seconds, 6)},
        )

    def _title_(self) -> str:
        return f"LearnedAnswer: {self.claim}"

    def _facts_(self) -> Facts:
        return [("asked", self.text), ("verdict", self.headline()), *self.facts()]


class OtherQuestions(PlainQuestions):
    """The reduction of all that is no single objective: statistics and sets are the chain's, the answer is
    that of their hull."""

    about = ""
    """What is asked, in the plural; the property itself where it is empty."""

    def apply(self, problem: Problem) -> Problem:
        """The problem as it is: the sets are those of any question about the model."""
        if any(isinstance(reward, ParametricReward) for reward in problem.model.structure.rewards.values()):
            raise problem.query.error(
                "rewards with parameters require one P or R over a simple path or a reward",
                problem.query.position,
            )
        return problem

    def refuse(self, chain: Pipeline) -> None:
        """Refuse policies that the question cannot be asked of."""
        if chain.evaluation is not None:
            raise InputError(
                "a policy with a memory requires one P over a path, or one R over a reward",
                hint="give a policy that takes one choice per state",
            )

    def lift(self, chain: Pipeline, options: LearnOptions) -> LearnedAnswer:
        """The answer over the hull of the sets."""
        begin, decisions = time.perf_counter(), chain.decide(options)
        if decisions.sets not in SETS or decisions.needs_bets:
            what = "a slab (betting region)" if decisions.needs_bets else f"{decisions.sets.value} sets"
            raise InputError(
                f"{what} cannot be used with {self.about or chain.problem.text}",
                hint="leave the region out; --sets tied, parameter, expression or rectangular",
            )
        self.refuse(chain)
        prepared = chain.prepare(decisions, sets_only=True)
        facts = self.answer(chain, hull_of(prepared, options), options)
        return LearnedAnswer(
            problem=chain.problem,
            counts=chain.counts,
            options=options,
            decisions=decisions,
            sets=prepared.sets,
            contradiction=prepared.contradiction,
            given=chain.policy,
            fit=None if chain.counts is None else chain.weigh_fit()[0],
            seconds=time.perf_counter() - begin,
            **facts,
        )

    def answer(self, chain: Pipeline, hull: IntervalMDP, options: LearnOptions) -> dict[str, Any]:
        """The fields of the answer that are about the question."""
        query, policy = chain.problem.query, chain.policy
        effort = SolveOptions(
            options.precision, iterations=options.iterations, seconds=options.seconds, threads=options.threads
        )
        answer = check_query(query, hull, effort, uncertain=True, policy=policy)
        interval, agent = None if answer.bounds is None else Interval.of(*answer.bounds), _agent(query)
        guarantee = None
        if interval is not None and agent is not None:
            guarantee = interval.lower if agent == "max" else interval.upper
        return {
            "interval": interval,
            "truth": answer.truth,
            "guarantee": guarantee,
            "limit": "; ".join(answer.missed) or None,
            "answer": answer,
            "policy": policy,
        }


def _agent(query: Query) -> str | None:
    """What the agent does to the one value that is asked for."""
    formula = query.formula
    if isinstance(formula, Multi):
        formula = next(
            one for one in formula.objectives if isinstance(one, ValueOperator) and one.comparison is None
        )
    return formula.agent if isinstance(formula, ValueOperator) and formula.comparison is None else None


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


class LongRunAverages(OtherQuestions):
    """The reduction of long-run averages, `R=? [ S ]` or `S=? [ a ]`: the solve is their own."""

    about = "long-run averages"

    def apply(self, problem: Problem) -> Problem:
        """The problem as it is: the sets are those of any question about the model."""
        find_reward(problem.query)
        return problem

    def refuse(self, chain: Pipeline) -> None:
        """Averages are those of policies that take one choice per state."""
        given = chain.policy
        if chain.evaluation is not None or (
            given is not None and (not given.is_deterministic or given.steps is not None)
        ):
            raise InputError(
                "long-run averages require policies that take one choice per state",
                hint="leave `policy` out",
            )

    def answer(self, chain: Pipeline, hull: IntervalMDP, options: LearnOptions) -> dict[str, Any]:
        """The policy for the average, and its interval over the hull."""
        given, model, precision = chain.policy, chain.model, options.precision
        reward, directions = find_reward(chain.problem.query)
        vanishing = (hull.lower <= 0) & (hull.upper > 0)
        if vanishing.any():
            raise CannotCertify(support_is_open(chain.problem.text, model, int(np.argmax(vanishing))))

        seconds, threads = options.seconds, options.threads
        solved = partial(solve, precision=precision / 4, seconds=seconds, threads=threads)
        choice = (
            average_policy(hull, reward, directions, precision, solved) if given is None else given.choice
        )
        steered, earned = under(hull, choice), reward[choice]
        ends = [
            bound_average(steered, earned, (nature, nature), precision, solved)
            for nature in (Direction.MIN, Direction.MAX)
        ]
        agent = directions[0]
        best = bound_average(hull, reward, (agent, agent), precision, solved)
        at, maximises = model.initial, agent is Direction.MAX
        interval = Interval.of(float(ends[0].bounds.lower[at]), float(ends[1].bounds.upper[at]))
        interval = interval.within(float(reward.min()), float(reward.max()))
        is_close = all(_is_close(one, at, precision, reward) for one in (*ends, best))
        return {
            "interval": interval,
            "guarantee": interval.lower if maximises else interval.upper,
            "optimistic": float((best.bounds.upper if maximises else best.bounds.lower)[at]),
            "policy": given or chain.made(Policy.of_choices(model.structure, choice)),
            "limit": None if is_close else "the averages were not found closely enough",
            "outcomes": seen if isinstance(seen := chain.split.observation, Unobserved) else None,
        }


def find_reward(query: Query) -> tuple[FloatArray, Directions]:
    """The reward per choice whose average is asked for, and who wants what of it."""
    if query.kind is not QueryKind.LONG_RUN:
        raise query.error("a long-run average is required here: R=? [ S ] or S=? [ … ]", query.position)
    position = query.operator.position
    if query.is_threshold:
        raise query.error("learning needs a value to optimise, not a threshold", position)
    reward, directions = read_average(query)
    if isinstance(reward, ParametricReward):
        raise query.error("learning does not support averages of rewards with parameters", position)
    return reward.per_choice(query.structure), directions


def _is_close(average: BoundedValue, at: int, precision: float, reward: FloatArray) -> bool:
    size = max(1.0, float(np.abs(reward).max(initial=0.0)))
    width = float(average.bounds.upper[at] - average.bounds.lower[at])
    return average.missed is None and width <= 8 * precision * size
