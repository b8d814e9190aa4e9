"""Long-run averages: a policy for one, and what it is worth with confidence 1 − δ.

Statistics and sets are those of `learn`. Their hull, an interval for the probability of every transition,
holds the truth whenever they do; on it averages have certified bounds for every nature
(`tightrope.logic.long_run`). The policy is the one that looks best against nature; its interval is then
bounded anew, on the model that it leaves: nature against it gives one end, nature for it the other. Which
transitions are possible matters to averages: none may vanish, by the sets, by the domain, or by an
assumption.
"""

from __future__ import annotations

import time
from dataclasses import field

import numpy as np

from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.io.results import Interval
from tightrope.late import dataclass
from tightrope.learning.answers import hull_of
from tightrope.learning.learn import PlainQuestions
from tightrope.learning.options import Decisions, LearnOptions
from tightrope.learning.outcomes import Unobserved
from tightrope.learning.pipeline import Pipeline
from tightrope.learning.products import support_is_open
from tightrope.learning.result import rests_on
from tightrope.logic.long_run import average_policy, bound_average, read_average
from tightrope.logic.solving import Directions, under
from tightrope.logic.values import BoundedValue
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import bound_text
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query
from tightrope.problem import Problem
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.verdict import Assumed, Worth


@dataclass(frozen=True, eq=False, repr=False)
class LearnedAverage(Record):
    """The robust policy of a long-run average: with the ledger's confidence its average lies in `interval`.

    * `policy` is the given one where one was given.
    * `guarantee` is the end of it that the agent dislikes; `optimistic`: no policy does better.
    * `is_close`: the bounds are as close as was asked.
    * `contradiction`: words about an empty region, else None; tied sets were then used instead.
    * `outcomes`: why episodes alone do not show the average.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=("0.1", "0.9"))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "", {0: 1 - p, 1: p}), (1, "", {0: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"up": [0]})
    >>> data = [[(0, "", 1)]] * 50 + [[(0, "", 0)]] * 50
    >>> result = tr.learn(model.problem('Smax=? [ "up" ]'), data)
    >>> result.interval.lower < 2 / 3 < result.interval.upper
    True
    """

    text: str
    interval: Interval
    guarantee: float
    optimistic: float
    policy: Policy
    sets: Sets = field(repr=False)
    decisions: Decisions
    is_close: bool
    contradiction: str | None
    assumed: tuple[Assumed, ...]
    seconds: float = field(compare=False)
    problem: Problem = field(repr=False)
    counts: Counts | None = field(repr=False)
    options: LearnOptions = field(repr=False)
    given: Policy | None = field(default=None, repr=False)
    outcomes: Unobserved | None = None

    @property
    def ledger(self) -> ConfidenceBudget:
        """How δ was spent, and what must hold of the data."""
        return self.sets.ledger

    @property
    def verdict(self) -> Worth:
        """What the result is worth, in one word, with all that it rests on."""
        limit = None if self.is_close else "the averages were not found closely enough"
        return Worth.of(self.assumed, contradicted=self.contradiction, limit=limit)

    def headline(self) -> str:
        """The verdict in a line: the word, then the guarantee as far as it may be claimed."""
        side = "at least" if self.guarantee == self.interval.lower else "at most"
        sure = f"with confidence {1 - self.ledger.delta:.10g}" if self.ledger.delta else "over the domain"
        return self.verdict.headline(f"{side} {self.guarantee_text()}", sure)

    def guarantee_text(self) -> str:
        """The guarantee, rounded so that it holds as it is written."""
        return bound_text(self.guarantee, self.guarantee == self.interval.lower)

    def optimistic_text(self) -> str:
        """The optimistic value, rounded so that no policy does better than what is written."""
        return bound_text(self.optimistic, self.guarantee != self.interval.lower)

    def _title_(self) -> str:
        return f"LearnedAverage: {self.guarantee_text()} guaranteed"

    def _facts_(self) -> Facts:
        return [
            ("asked", self.text),
            ("verdict", self.headline()),
            ("robust policy", str(self.interval)),
            ("optimistic", f"{self.optimistic_text()}: no policy does better"),
        ]


class LongRunAverages(PlainQuestions):
    """The reduction of long-run averages, `R=? [ S ]` or `S=? [ a ]`: statistics and sets are the chain's,
    the solve is their own.
    """

    def apply(self, problem: Problem) -> Problem:
        """The problem as it is: the sets are those of any question about the model."""
        find_reward(problem.query)
        return problem

    @staticmethod
    def lift(chain: Pipeline, options: LearnOptions) -> LearnedAverage:
        """The policy for the average, and its interval over the hull of the sets."""
        given = chain.policy
        if chain.evaluation is not None or (
            given is not None and (not given.is_deterministic or given.steps is not None)
        ):
            raise InputError(
                "long-run averages are asked of policies that take one choice per state",
                hint="leave `policy` out",
            )
        begin = time.perf_counter()
        model, query = chain.model, chain.problem.query
        reward, directions = find_reward(query)
        decisions = chain.decide(options)
        if decisions.sets in (SetsKind.UNTIED, SetsKind.COUPLED) or decisions.bets:
            raise InputError(
                f"{decisions.sets.value} sets do not go with long-run averages",
                hint="--sets tied, parameter, expression or rectangular",
            )
        prepared = chain.prepare(decisions, sets_only=True)
        hull = _supported(hull_of(prepared, options), prepared.sets.model, query.text)
        precision, seconds = options.precision, options.seconds

        def solved(part: MDP | IntervalMDP, objective: Objective) -> Solution:
            return solve(part, objective, precision=precision / 4, seconds=seconds, threads=options.threads)

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
        interval = Interval(float(ends[0].bounds.lower[at]), float(ends[1].bounds.upper[at]))
        interval = interval.within(float(reward.min()), float(reward.max()))
        return LearnedAverage(
            query.text,
            interval,
            interval.lower if maximises else interval.upper,
            float((best.bounds.upper if maximises else best.bounds.lower)[at]),
            chain.made(Policy.of_choices(model.structure, choice)) if given is None else given,
            prepared.sets,
            decisions,
            all(_is_close(one, at, precision, reward) for one in (*ends, best)),
            prepared.contradiction,
            rests_on(prepared.sets.ledger, options, None),
            time.perf_counter() - begin,
            chain.problem,
            chain.counts,
            options,
            given,
            chain.observation if isinstance(chain.observation, Unobserved) else None,
        )


def find_reward(query: Query) -> tuple[FloatArray, Directions]:
    """The reward per choice whose average is asked for, and who wants what of it."""
    if query.kind is not QueryKind.LONG_RUN:
        raise query.error("a long-run average is wanted here: R=? [ S ] or S=? [ … ]", query.position)
    position = query.operator.position
    if query.is_threshold:
        raise query.error("learning needs a value to optimise, not a threshold", position)
    reward, directions = read_average(query)
    if isinstance(reward, ParametricReward):
        raise query.error("averages of rewards with parameters are not learned about", position)
    return reward.per_choice(query.structure), directions


def _supported(hull: IntervalMDP, model: ParametricMDP, text: str) -> IntervalMDP:
    """The hull, none of whose transitions may vanish."""
    vanishing = (hull.lower <= 0) & (hull.upper > 0)
    if vanishing.any():
        raise CannotCertify(support_is_open(text, model, int(np.argmax(vanishing))))
    return hull


def _is_close(average: BoundedValue, at: int, precision: float, reward: FloatArray) -> bool:
    size = max(1.0, float(np.abs(reward).max(initial=0.0)))
    width = float(average.bounds.upper[at] - average.bounds.lower[at])
    return average.missed is None and width <= 8 * precision * size
