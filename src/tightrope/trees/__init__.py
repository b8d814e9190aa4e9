"""Small decision trees whose guarantee is close to that of the robust policy.

`grow` searches for a tree (`tightrope.trees.search`) by what it would lose under one nature
(`tightrope.trees.losses`), solves it as a given policy over all of nature's sets, and searches on where that
shows that it loses more. Nothing of the search enters the guarantee. The sets contain the true probabilities
with the confidence of the result whatever policy is evaluated, so a tree costs no further δ.
"""

from __future__ import annotations

import math
from typing import Protocol, TypeVar

from msgspec import structs

from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError, check_number
from tightrope.io.coding import Interval
from tightrope.model.policy import Policy
from tightrope.problem import Problem
from tightrope.rules.rule import Columns, Guarantee
from tightrope.rules.states import columns_of
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.trees.losses import LossModel
from tightrope.trees.search import TreeSearch

MOST_STATES = 200_000
"""States with a decision up to which a tree is searched."""

MOST_TESTS = 31
"""Inner nodes of a tree."""

ATTEMPTS = 4


class PolicyInterval(Protocol):
    """A policy that was solved, with the certified interval of its value."""

    @property
    def policy(self) -> Policy: ...
    @property
    def interval(self) -> Interval: ...
    @property
    def solutions(self) -> tuple[Solution, Solution]: ...


V_co = TypeVar("V_co", bound=PolicyInterval, covariant=True)


class TreeSource(Protocol[V_co]):
    """What is needed of a learned result; `evaluate` solves a policy over its sets."""

    @property
    def problem(self) -> Problem: ...
    @property
    def counts(self) -> Counts | None: ...
    @property
    def ledger(self) -> ConfidenceBudget: ...
    @property
    def robust(self) -> PolicyInterval: ...
    @property
    def guarantee(self) -> float: ...
    def evaluate(self, policy: Policy) -> V_co: ...
    def headline_of(self, guarantee: float, whose: str) -> str: ...


def grow(result: TreeSource[V_co], loss: float, most: int = MOST_TESTS) -> tuple[Policy, V_co]:
    """The smallest tree found that loses at most `loss`, as a policy with its rule, and its value."""
    check_number("loss", loss, 0, 1)
    problem, robust, maximises = result.problem, result.robust, result.problem.maximises
    if problem.lift is not None or problem.is_of_controller or robust.policy.depends_on_step:
        raise InputError("trees are for policies that need the state alone; this one has a memory")
    if not math.isfinite(result.guarantee):
        raise InputError("the robust policy guarantees nothing, so there is nothing that a tree could keep")
    losses, search, values = _open(robust.solutions[0 if maximises else 1], result.counts)
    goal, allowed, best = result.guarantee, 0.9 * loss, math.inf
    for _ in range(ATTEMPTS):
        tree, _ = search.find(allowed, most)
        if not losses.reaches(*losses.policy(search.actions(tree))):
            rule = search.rule(tree)
            policy = Policy.of_choices(losses.structure, losses.follow(rule.decide(values)))
            value = result.evaluate(policy)
            reached = value.interval.lower if maximises else value.interval.upper
            less = goal - reached if maximises else reached - goal
            best = min(best, lost := 0.0 if less <= 0 else less / abs(goal) if goal else math.inf)
            if lost <= loss:
                promise = Guarantee(
                    question=problem.text,
                    headline=result.headline_of(reached, "the tree"),
                    guarantee=reached,
                    robust=goal,
                    confidence=1 - result.ledger.delta,
                )
                rule = structs.replace(rule, promise=promise)
                return policy.having(rule=rule, _made_from=robust.policy._made_from), value
        allowed = 0.4 * allowed
    raise CannotCertify(
        f"no tree of at most {most} tests was found that loses at most {loss:.3g} of the guarantee; the best "
        f"one loses {best:.3g}. Allow a larger loss, or export the policy as a table"
    )


def _open(solution: Solution, counts: Counts | None) -> tuple[LossModel, TreeSearch, Columns]:
    """The losses of policies against the robust one, the search over them, and the columns of all states."""
    if not solution.is_initial_certified:  # a limit left its values wide
        solution = solve(solution.kernel, solution.objective, precision=solution.precision)
    losses = LossModel.of(solution, solution.choice)
    if not len(losses.rows):
        raise InputError("the value does not depend on a decision, so there is no tree to find")
    if len(losses.rows) > MOST_STATES:
        raise InputError(
            f"trees are searched in models of up to {MOST_STATES:,} states with a decision, not "
            f"{len(losses.rows):,}",
            hint="export the policy as a table",
        )
    columns, values = columns_of(losses.structure, None if counts is None else counts.names)
    within = {name: column[losses.rows] for name, column in values.items()}
    return losses, TreeSearch.over(losses, columns, within), values
