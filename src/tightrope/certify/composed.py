"""Certificates of learned averages and temporal formulas, over the bounds that the checker itself derives.

The checker derives bounds of single probabilities at every choice (`tightrope_check.learned`). Over these an
average has a gain and a bias on each side, and a formula the probability of reaching the targets of its
product: for a given policy in the chain that it leaves, otherwise by the most robust policy. Both ends hold
whatever nature picks at every step, on all of a domain; those of a result may be narrower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.certify import learned
from tightrope.certify import solved as claims
from tightrope.certify.problem import Asked, asked_of
from tightrope.certify.region import prune, region_for, with_region
from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.learning.answers import LearnedAnswer
from tightrope.learning.result import LearningResult
from tightrope.logic.product_problem import ProductLift
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.problem import Problem
from tightrope.solver.solve import solve
from tightrope_check.nature import Boxes
from tightrope_check.numbers import FLOAT64
from tightrope_check.problem import Certificate, CertifiedProblem, Claim, ValueHints

ENDS = (Direction.MIN, Direction.MAX)


def is_composed(result: LearningResult | LearnedAnswer) -> bool:
    """Whether the certificate of a result is made here: of averages, of formulas over a domain or of a given
    policy."""
    if isinstance(result, LearnedAnswer):
        return True
    lift = result.problem.lift
    temporal = isinstance(lift, ProductLift) and lift.temporal is not None
    return temporal and (result.value is not None or result.ledger.delta == 0)


def composed_of(
    result: LearningResult | LearnedAnswer, about: Mapping[str, object] | None = None
) -> Certificate:
    """The certificate of an average or a formula, and of the counts it was learned from."""
    problem, lift, seen = result.problem, result.problem.lift, result.counts
    temporal = lift.temporal if isinstance(lift, ProductLift) else None
    if seen is not None and isinstance(lift, ProductLift) and seen.model_hash != lift.base.hash():
        seen = lift.to_base(seen)
    question = asked_of(problem.query if temporal is None else temporal)
    given = _given(result)
    plain = _learn_sets(result, seen)
    with learned.as_contradiction():
        outcomes = None if isinstance(result, LearnedAnswer) else result.seen
        proved = learned.prove_sets(
            plain, learned.no_counts(plain.model) if seen is None else seen, question, outcomes
        )
        name = "robust policy" if given is None else "given policy"
        draft = _claimed(proved, question, name, result, given)
        words = {**(about or {}), **learned.words_of(plain)}
        draft = replace(with_region(draft, proved.proof), about=claims.to_words(words))
        draft = prune(replace(draft, claims=learned.met_with_episodes(draft, outcomes)))
    return draft


def _given(result: LearningResult | LearnedAnswer) -> Policy | None:
    """The given policy, as one of the model."""
    given = result.given
    if given is None and isinstance(result, LearningResult) and result.value is not None:
        raise InputError(
            "the policy is one of the product with the formula's automaton, and certificates are about "
            "policies of the model",
            hint="leave the certificate or the policy out",
        )
    if given is not None and (given.has_memory or given.depends_on_step):
        raise InputError(
            "certificates of temporal formulas and averages are about policies without memory",
            hint="leave the certificate or the policy out",
        )
    return given


def _learn_sets(result: LearningResult | LearnedAnswer, counts: Counts | None) -> LearningResult:
    """The result of a question that asks nothing: its statistics, region and sets are those of any."""
    kind = result.decisions.sets
    kind = SetsKind.EXPRESSION if kind in (SetsKind.COUPLED, SetsKind.RECTANGULAR) else kind
    base = result.problem.base
    assert isinstance(base, ParametricMDP)
    region = None if counts is None else region_for(base, result)
    nothing = np.zeros(base.states, dtype=np.bool_)
    nowhere = Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MAX, target=nothing)
    return learned.compute_again(Problem(base, nowhere), counts, result, kind, region)


def _claimed(
    proved: learned.ProvedSets,
    question: Asked,
    name: str,
    result: LearningResult | LearnedAnswer,
    given: Policy | None,
) -> Certificate:
    """The draft with its claim and the vectors behind it."""
    draft, precision = proved.draft, result.options.precision
    link = type(proved.link)(with_region(draft, proved.proof), FLOAT64, proved.link.statements)
    boxes, problem = link.model_boxes(), draft.problem
    hull = IntervalMDP(result.problem.base.structure, boxes.lower[boxes.label], boxes.upper[boxes.label])
    how = result.options
    solved = partial(solve, precision=precision / 4, seconds=how.seconds, threads=how.threads)
    if isinstance(result, LearnedAnswer):
        claim = claims.to_claim(name, problem.objective.range, given or result.policy, problem.objective)
        claim, hints = claims.average_claim(problem, boxes, claim, hull, ENDS, precision / 4, solved)
    else:
        claim, hints = _temporal(problem, boxes, name, hull, given, solved)
    return replace(draft, claims=(claim,), values=(hints,))


def _temporal(
    problem: CertifiedProblem,
    boxes: Boxes,
    name: str,
    hull: IntervalMDP,
    given: Policy | None,
    solved: claims.Solve,
) -> tuple[Claim, ValueHints]:
    """Of a given policy of the model, or of the most robust one of the product."""
    claim = None if given is None else claims.to_claim(name, (0.0, 1.0), given, problem.objective)
    model, objective, policy = claims.product_model(problem, boxes, claim, hull, given)
    if policy is None:
        policy = solved(model, replace(objective, nature=objective.agent.opposite)).policy
    low, high = (solved(model, replace(objective, nature=nature), policy=policy) for nature in ENDS)
    between = claims.claim_between(name, low, high, policy, problem.objective)
    if claim is not None:
        between = replace(claim, lower=between.lower, upper=between.upper)
    return between, claims.value_hints(low, policy, high)
