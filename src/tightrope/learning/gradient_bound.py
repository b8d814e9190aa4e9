"""Values of policies in models with many parameters, from confidence spent along the value gradient.

A region with more than seven coordinates has too many vertices for coupled sets. A likelihood and bets on a
policy's value (`tightrope.statistics.bets`) leave a range of the value of every policy
(`tightrope.coupled.ball`). The true value lies in it and in the interval over the sets.

Up to a dozen parameters the joint region contains likelihood and bets, and the range costs no confidence.
Beyond, half of δ is for the event intervals of region and sets, half for likelihood and bets, split as in a
slab. The model fixes the halves before the data are used. Certificates prove only the interval over the sets.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tightrope.coupled.ball import LikelihoodBall, ball_of, range_over_ball
from tightrope.coupled.chain import chain_of
from tightrope.io.results import Interval
from tightrope.learning.bet_policy import PolicyBets, bets_of
from tightrope.learning.policy_solver import PolicyValue
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward
from tightrope.numerics.rounding import down, up
from tightrope.regions.bounds import expression_bounds
from tightrope.regions.joint import join_ledgers, split
from tightrope.regions.polytope import Polytope
from tightrope.statistics.bets import Levels, Slab, place_bets
from tightrope.statistics.confidence_budget import ConfidenceBudget, assumed_of
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.prequential import Evidence, prequential

if TYPE_CHECKING:
    from tightrope.learning.pipeline import Pipeline, Prepared, SolvedPolicies

MOST_ENTRIES = 2**24
"""Of rows times squared parameters; beyond that values are not modelled."""


@dataclass(frozen=True, eq=False)
class GradientBound:
    """The likelihood's ball, None where there is no evidence after the pilot, the bets, and the
    policies that were bet on last."""

    ball: LikelihoodBall | None
    slab: Slab | None
    policies: tuple[Policy, ...]
    functions: AffineFunctions
    ledger: ConfidenceBudget

    @staticmethod
    def of(chain: Pipeline, prepared: Prepared) -> GradientBound:
        """From the evidence that a joint region holds, else from the chain's data at their part of δ."""
        model, region = chain.model, prepared.region
        assert region is not None and prepared.intervals is not None
        coordinates = Coordinates.of(model.expressions, model.parameters)
        functions = coordinates.functions(model.expressions)
        maximiser = LikelihoodMaximiser.of(coordinates, functions)
        if region.kind.has_intervals:
            assert isinstance(region, Polytope) and region.evidence is not None  # else δ would be spent twice
            evidence, slab, bets, ledger = region.evidence, region.slab, chain.bets, region.ledger
        else:
            evidence, slab, bets, ledger = _beside(chain, prepared.intervals.ledger, maximiser)
        bounds = expression_bounds(region, model.expressions, prepared.intervals.expression_bounds())
        box = coordinates.lower, coordinates.upper
        ball = ball_of(evidence, functions, maximiser.lifted(evidence.estimate), box, bounds)
        return GradientBound(ball, slab, () if bets is None else bets.policies, functions, ledger)

    def range_of(self, chain: Pipeline, value: PolicyValue) -> Interval | str:
        """The range of a policy's value, or why there is none."""
        model, objective = chain.model, chain.objective
        if isinstance(objective.reward, ParametricReward):
            return "the rewards depend on parameters"
        if self.ball is None:
            return "there is no evidence after the pilot of the likelihood"
        made = chain_of(model, objective, value.policy)
        if isinstance(made, str):
            return made
        if made.rows * len(self.ball.centre) ** 2 > MOST_ENTRIES:
            return "the policy's chain is too large for a model of its value in all parameters"
        ends = range_over_ball(
            made, self.functions, self.ball, self.slab, chain.outcomes, objective.complement
        )
        if ends is None:
            return "no error bound could be verified: for some parameters a play may go on for ever"
        low, high = ends
        return Interval(down(1.0 - high), up(1.0 - low)) if objective.complement else Interval(low, high)


def _beside(
    chain: Pipeline, own: ConfidenceBudget, maximiser: LikelihoodMaximiser
) -> tuple[Evidence, Slab | None, PolicyBets | None, ConfidenceBudget]:
    """A likelihood and bets beside intervals that have a ledger of their own."""
    counts, outcomes, coordinates = chain.data, chain.outcomes, maximiser.coordinates
    delta = split(chain.split.of_probabilities, outcomes, chain.options.budget, along=True)[1]
    bets = bets_of(chain.model, chain.objective, chain.policy, counts.design, unasked=True)
    guard, slab, notes = delta, None, tuple[str, ...]()
    if bets is not None:
        levels = Levels.of(delta, bets.ends, len(coordinates.free), bets.guard_share)
        slab = place_bets(outcomes, counts, maximiser, bets, levels)
        guard, notes = levels.guard, (levels.note(), slab.plan.note(), bets.words, *slab.notes)
    evidence = prequential(coordinates, maximiser.functions, outcomes, counts, guard)
    method, assumed = "likelihood and bets along the value", evidence.assumption
    rest = ConfidenceBudget(
        delta,
        1,
        delta,
        method,
        "one statement",
        assumed,
        assumed_of(assumed, counts.design, tied=True, ordered=True),
        (*notes, evidence.note()),
    )
    both = join_ledgers(chain.split.of_probabilities, own, rest)
    joined = replace(both, events=own.events, gamma=own.gamma, method=own.method, budget=own.budget)
    return evidence, slab, bets, joined


def narrow(chain: Pipeline, solved: SolvedPolicies) -> SolvedPolicies:
    """What was solved over the sets, met with the ranges along values. As these hold for all policies at
    once, the one that was bet on takes the place of the robust one where it is guaranteed more."""
    prepared, maximises = solved.prepared, chain.objective.maximises
    along, tried = GradientBound.of(chain, prepared), list(solved.tried)
    prepared = replace(prepared, sets=replace(prepared.sets, ledger=along.ledger))

    def meet(value: PolicyValue, name: str) -> PolicyValue:
        begin, notes = time.perf_counter(), solved.solver.notes
        seen = along.range_of(chain, value)
        if isinstance(seen, str):
            notes.append(f"along the value of the {name}: {seen}")
            return value
        low, high = max(value.interval.lower, seen.lower), min(value.interval.upper, seen.upper)
        if low > high:
            notes.append(
                f"along the value of the {name} likelihood and bets leave {seen}, the sets {value.interval}: "
                "under the model they exclude each other with probability at most δ"
            )
            return value
        seconds = round(time.perf_counter() - begin, 6)
        tried.append((prepared.sets.kind.value, name, value.interval, 0.0, "at every choice anew"))
        share = "the region's" if prepared.region and prepared.region.kind.has_intervals else "at half of δ"
        tried.append(("along the value", name, seen, seconds, f"a likelihood and bets, {share}"))
        return replace(value, interval=Interval(low, high))

    robust, value = solved.robust, solved.value
    if robust is not None:
        own, robust = robust.policy, meet(robust, "robust policy")
        for betted in () if chain.objective.depends_on_step else along.policies:
            if betted == own:
                continue
            other = meet(solved.solver.evaluate(betted), "policy that was bet on")
            low, high = (
                other.interval.lower - robust.interval.lower,
                robust.interval.upper - other.interval.upper,
            )
            robust = other if (low if maximises else high) > 0.0 else robust
    if value is not None:
        value = meet(value, "given policy")
    return replace(solved, prepared=prepared, robust=robust, value=value, tried=tuple(tried))
