"""The certificate of a learned result: from counts to values, for a checker that trusts none of it.

What the checker needs beyond the result is computed here, once and only when a certificate is wanted: bases
that prove the projected bounds, the steps of bound tightening, plug-ins and cut points of the likelihood
region, and a basis for every choice of rectangular sets.

Proofs are checked with more digits than results are computed with, so bounds usually follow as they are.
Where one does not, by rounding or because it rested on something the checker does not know, it is moved
outward to what is proved and the policies are evaluated again over the larger sets: a certificate never
claims more than it proves, and its own values are the certified ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.certificate.certificate import Problem
from tightrope.certificate.learning import Data, Guarantee, LearningCertificate
from tightrope.certificate.learning_check import Chain
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.certificate_coupled import with_coupled_proofs
from tightrope.learning.certificate_covers import covered
from tightrope.learning.certificate_data import coordinates_text, domain_text, expressions_text
from tightrope.learning.certificate_ellipsoid import ellipsoid_proof
from tightrope.learning.certificate_proof import region_proof, with_choice_bases
from tightrope.learning.certificate_rows import Name, row_names
from tightrope.learning.policies import PolicySolver
from tightrope.learning.result import LearningResult, PolicyValue
from tightrope.model.objective import Direction, ObjectiveKind
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.region.ellipsoid import Ellipsoid
from tightrope.region.polytope import Polytope
from tightrope.region.region import RegionKind
from tightrope.solver.rectangular_kernel import RectangularKernel
from tightrope.solver.solution import Solution
from tightrope.solver.to_certificate import tail_of
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.ledger import Assumption
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import prequential
from tightrope.uncertainty.sets import Sets, SetsKind


def certificate_of(
    result: LearningResult, counts: Counts, about: Mapping[str, Any] | None = None
) -> LearningCertificate:
    """The certificate of a result and the counts it was learned from."""
    region = result.region if result.verdict is None else None
    if region is not None and result.ledger.assumption is Assumption.NONE:
        raise CannotCertify(f"nothing is guaranteed, so there is nothing to certify: {result.ledger.method}")
    if counts.design.censored:
        raise InputError(
            f"outcomes are missing from the data ({'; '.join(counts.design.censored)}): no confidence holds "
            "for them, so there is nothing to certify",
            hint="leave the certificate out, or complete the data",
        )
    if result.value is not None and result.value.steps is not None:
        raise InputError(
            "the given policy depends on the step, and certificates are about policies that take one choice "
            "per state",
            hint="leave the certificate or the policy out",
        )
    data = _data(result, counts)
    first = result.robust.solutions[0]
    sets = _solved_sets(result, first)
    problem = _problem(result, first, sets)
    draft = LearningCertificate(problem, data, ())
    names: list[Name | None] = []
    if region is None:
        chain = Chain(draft)
        if data.sets != "untied":
            chain.derive()
    elif isinstance(region, Ellipsoid):
        chain = ellipsoid_proof(result, region, draft)
    else:
        chain, names = region_proof(result, counts, draft)
    draft = chain.certificate
    widened = _widened(chain, sets)
    values = [("given policy", result.value)] if result.value is not None else []
    if result.value is not result.robust:
        values.insert(0, ("robust policy", result.robust))
    by_step = _depends_on_step(first)
    relaxed = by_step and isinstance(first.kernel, RectangularKernel)
    if relaxed:
        sets = replace(widened or sets, kind=SetsKind.EXPRESSION, region=None)
        draft = replace(draft, data=replace(data, sets=sets.kind.value))
    if widened is not None:
        draft = replace(draft, problem=replace(problem, lower=widened.lower, upper=widened.upper))
    if widened is not None or by_step:
        solved = sets if relaxed else widened or sets
        values = [(name, _again(result, name, value, solved)) for name, value in values]
    guarantees = tuple(_guarantee(name, value) for name, value in values)
    draft = replace(draft, guarantees=guarantees, about=about or {})
    draft = with_choice_bases(draft, names, [value for _, value in values])
    coupled = [value.coupled for _, value in values]
    if isinstance(region, Polytope) and any(coupled):
        aligned, points = row_names(result, counts, region)
        draft = with_coupled_proofs(draft, aligned, points, coupled)
    return replace(draft, covers=covered(draft, result))


def _data(result: LearningResult, counts: Counts) -> Data:
    model, ledger, intervals = result.model, result.ledger, result.intervals
    used = result.region if result.verdict is None else None
    coordinates = (
        used.coordinates if used is not None else Coordinates.of(model.expressions, model.parameters)
    )
    fields: dict[str, Any] = {}
    method = ledger.method
    kind = None if used is None else used.kind
    if ledger.delta == 0:
        method = "domain"
    elif result.sets.kind is not SetsKind.UNTIED and kind in (None, RegionKind.POLYTOPE):
        assert intervals is not None
        fields = {
            "event_expression": intervals.events.expression,
            "event_multiplicity": intervals.events.multiplicity,
            "event_lower": intervals.lower,
            "event_upper": intervals.upper,
        }
    elif kind is RegionKind.LIKELIHOOD:
        method = "likelihood"
        fields = _evidence(result, counts, Outcomes.of(model), coordinates)
    elif kind is RegionKind.ELLIPSOID:
        method = "ellipsoid"
    raised = result.robust.solutions[0].kernel.lower
    raised = raised[raised > result.sets.lower]
    return Data(
        delta=ledger.delta,
        method=method,
        gamma=ledger.gamma,
        assumption=ledger.assumption.value,
        sets=result.sets.kind.value,
        expressions=expressions_text(model),
        domain=domain_text(model.parameters),
        coordinates=coordinates_text(coordinates),
        expression=model.expression,
        counts=counts.transition,
        assumed_support=float(raised.max()) if len(raised) else None,
        **fields,
    )


def _evidence(
    result: LearningResult, counts: Counts, outcomes: Outcomes, coordinates: Coordinates
) -> dict[str, Any]:
    """Batches by expression, and the plug-ins that predicted them."""
    table = result.model.expressions
    functions = coordinates.functions(table)
    by_batch = np.array(
        [
            np.bincount(outcomes.expression, weights=seen, minlength=len(table)).astype(np.int64)
            for seen in outcomes.pooled_batches(counts)
        ]
    )
    evidence = prequential(coordinates, functions, outcomes, counts, result.ledger.delta)
    return {
        "batch_counts": by_batch,
        "plug_in": np.array(evidence.plug_ins).reshape(-1, len(coordinates.free)),
        "pilot": evidence.pilot,
        "fixed_amount": evidence.assumption is Assumption.TRAJECTORIES,
    }


def _solved_sets(result: LearningResult, solution: Solution) -> Sets:
    """The sets as they were solved, assumptions about supports included."""
    kernel = solution.kernel
    return replace(result.sets, lower=kernel.lower, upper=kernel.upper)


def _problem(result: LearningResult, solution: Solution, sets: Sets) -> Problem:
    objective, structure = solution.objective, result.model.structure
    return Problem(
        kind=objective.kind.name,
        agent=objective.agent.name,
        nature="MIN",
        choice_start=structure.choice_start,
        transition_start=structure.transition_start,
        successor=structure.successor,
        initial=structure.initial,
        sets="interval",
        lower=sets.lower,
        upper=sets.upper,
        lower_steps=objective.lower_steps,
        upper_steps=objective.upper_steps,
        discount=objective.discount,
        complement=objective.complement,
        reward=None if objective.reward is None else objective.reward.per_choice(structure),
        target=objective.target,
        allowed=objective.allowed,
        terminal=objective.terminal,
    )


def _widened(chain: Chain, sets: Sets) -> Sets | None:
    """Sets moved outward to what is proved, or None where everything is proved as it is."""
    if chain.data.sets == "untied":
        return None
    chain.written()
    wrong = chain.unproved()
    if not wrong:
        return None
    lower, upper = sets.lower.copy(), sets.upper.copy()
    for expression, side in wrong:
        proved = chain.bounds.proved(expression, side)
        at = chain.data.expression == expression
        if side:
            upper[at] = np.maximum(upper[at], min(_up(proved), 1.0))
        else:
            lower[at] = np.minimum(lower[at], max(-_up(-proved), 0.0))
    return replace(sets, lower=lower, upper=upper)


def _up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def _again(result: LearningResult, name: str, value: PolicyValue, sets: Sets) -> PolicyValue:
    """The same policy over other sets."""
    low = value.solutions[0]
    solver = PolicySolver(sets, result.objective, low.precision, None, math.inf, lambda _: None)
    if name == "robust policy" and _depends_on_step(low):
        return solver.robust_among_all()
    return replace(solver.evaluate(value.policy), coupled=value.coupled)


def _guarantee(name: str, value: PolicyValue) -> Guarantee:
    """Nature against the value gives its lower vector, nature for it the upper one."""
    ends = {solution.objective.nature: solution for solution in value.solutions}
    low, high = ends[Direction.MIN], ends[Direction.MAX]
    policy = value.policy
    randomised = bool(np.issubdtype(policy.dtype, np.floating))
    tails = tail_of(low, _fixed(name, low, policy)), tail_of(high, _fixed(name, high, policy))
    fields: dict[str, Any] = (
        {"policy_kind": "randomised", "weight": policy}
        if randomised
        else {
            "policy_kind": "fixed",
            "policy": np.asarray(policy, dtype=np.int64),
        }
    )
    if name == "robust policy" and _depends_on_step(low):
        own = tails[0] if low.objective.agent is Direction.MAX else tails[1]
        fields = {"policy_kind": "free", "policy": None if low.objective.is_bounded else own.policy}
    has_tail = tails[0] is not low
    return Guarantee(
        name=name,
        lower=low.fixpoint_lower,
        upper=high.fixpoint_upper,
        lower_ranking=tails[0].ranking,
        upper_ranking=tails[1].ranking if low.objective.kind is ObjectiveKind.REACH_REWARD else None,
        lower_tail=tails[0].fixpoint_lower if has_tail else None,
        upper_tail=tails[1].fixpoint_upper if has_tail else None,
        **fields,
    )


def _fixed(
    name: str, solution: Solution, policy: OffsetArray | FloatArray
) -> OffsetArray | FloatArray | None:
    """The policy that a solve was given; none for a robust policy that depends on the step."""
    return None if name == "robust policy" and _depends_on_step(solution) else policy


def _depends_on_step(solution: Solution) -> bool:
    objective = solution.objective
    return objective.is_bounded or objective.lower_steps > 0
