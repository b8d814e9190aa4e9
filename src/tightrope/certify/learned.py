"""The certificate of a learned result: the problem, claims, and hints for a checker that trusts none.

What the checker needs beyond the result is computed here: bases that prove the projected bounds, the steps of
bound tightening, cut points of the likelihood region, and a basis for every choice of rectangular sets.
Events, coordinates and plug-ins are the checker's own. A bound that is not proved as it is moves outward to
what is proved, and the policies are evaluated again over the larger sets: a certificate never claims more
than it proves.

A certificate about a temporal formula holds one automaton of the whole formula (`whole_automaton`), and the
checker derives the product with that. So the result is computed again there, with the same data, tying and
confidence.

*Averages and formulas* over a domain or of a given policy have claims over the bounds of single probabilities
that the checker derives: a gain and a bias on each side, or the probability of reaching the targets of the
product. Both ends hold whatever nature picks at every step; those of a result may be narrower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tightrope.ambiguity import sets as uncertainty
from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.certify import region as regions
from tightrope.certify import solved as plain
from tightrope.certify.coupled import with_coupled_proofs
from tightrope.certify.problem import Asked, asked_of, to_problem
from tightrope.coupled.result import CoupledValue
from tightrope.data.counts import Counts
from tightrope.data.design import ENDS, ORDER, SamplingDesign, SamplingKind
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.answers import LearnedAnswer
from tightrope.learning.observed import ControllerLift
from tightrope.learning.options import SEEDED, LearnOptions, learn_costs
from tightrope.learning.outcomes import ObservedOutcomes
from tightrope.learning.pipeline import Pipeline
from tightrope.learning.policy_solver import PolicySolver, PolicyValue
from tightrope.learning.result import LearningResult
from tightrope.logic.product_problem import ProductLift
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.product import Product
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.numerics.rounding import difference, round_up
from tightrope.problem import Problem, require_discrete
from tightrope.provenance import CHOSEN
from tightrope.regions.ellipsoid import Ellipsoid
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import RegionKind
from tightrope.regions.registry import region_kind
from tightrope.solver.bellman.rectangular import RectangularOperator
from tightrope.solver.solve import solve
from tightrope.statistics.bets import PARTS
from tightrope.statistics.confidence_budget import Assumption
from tightrope.statistics.costs import CostModel
from tightrope.statistics.estimates import IntervalMethod, transition_intervals
from tightrope.verdict import Assumed, AssumptionStatus
from tightrope_check import evidence
from tightrope_check import problem as certified
from tightrope_check.evidence import LearnedHints, RegionHints
from tightrope_check.learned import Learned, ProjectedRegion
from tightrope_check.nature import Boxes
from tightrope_check.numbers import FLOAT64
from tightrope_check.problem import Certificate, CertifiedProblem, Claim, ValueHints
from tightrope_check.statistics import episodes
from tightrope_check.statistics.costs import Costs, reward_ends
from tightrope_check.verdict import Contradiction

RewardEnds = tuple[RewardStructure, RewardStructure]


def certificate_of(
    result: LearningResult,
    counts: Counts | None = None,
    about: Mapping[str, object] | None = None,
    difference: CoupledValue | None = None,
    done: bool = False,
) -> Certificate:
    """The certificate of a result and the counts it was learned from (those of the result where none are
    given; without any it is about the whole domain); none where they refute the model. With a `difference` it
    also claims that of the result's policy and the given one; if `done`, that to what was done, which the
    result's episodes show."""
    seen = result.counts if counts is None else counts
    with as_contradiction():
        draft = _certificate_of(result, no_counts(result.model) if seen is None else seen, about, difference)
        if not done:
            return draft
        (policy,), objective = draft.claims, draft.problem.objective
        usual = _met(Claim("what was done", "unknown", *objective.range), draft.problem, result.seen)
        both = replace(draft, claims=(policy, usual), values=(*draft.values, ValueHints()))
        return _with_difference(both)


@contextmanager
def as_contradiction() -> Iterator[None]:
    """Nothing is written where data refute the model."""
    try:
        yield
    except Contradiction as finding:
        raise CannotCertify(
            f"no certificate is written: the data contradict the model ({finding}), and over an empty region "
            "everything would be proved"
        ) from finding


def no_counts(model: ParametricMDP) -> Counts:
    """The counts of what was never seen."""
    nothing = np.zeros(model.transitions, dtype=np.int64)
    design = SamplingDesign(SamplingKind.GENERATIVE_FIXED)
    return Counts(nothing, model.transition_start, design, model.hash())


def _certificate_of(
    result: LearningResult,
    counts: Counts,
    about: Mapping[str, object] | None = None,
    difference: CoupledValue | None = None,
) -> Certificate:
    question, seen = None, result.seen
    lift = result.problem.lift
    if isinstance(lift, ProductLift) and lift.temporal is not None:
        if counts.model_hash != lift.base.hash():
            counts = lift.to_base(counts)
        result, question = learn_again(result, counts)
    elif isinstance(lift, ControllerLift) and counts.model_hash == lift.base.hash():
        counts = lift.to_product(counts)  # the certificate is about the controller's chain
    if result.value is not None and result.value.policy.structure is not result.model.structure:
        raise InputError(
            "certificates are about policies without memory, and a controller is given",
            hint="leave the certificate or the controller out",
        )
    if regions.goes_by_intervals(result.model, result.decisions.sets, result.decisions.region):
        result = _by_intervals(result, counts, difference)
    region = result.region if result.contradiction is None else None
    _refuse_open(result, counts)
    if result.value is not None:
        plain.refuse_steps(result.value.policy, result.objective)
    proved = prove_sets(result, counts, question, seen, difference is not None)
    draft, link, proof = proved.draft, proved.link, proved.proof
    solved, is_other = _sets_to_prove(result, proved)
    values = [("given policy", result.value)] if result.value is not None else []
    if result.value is not result.robust:
        values.insert(0, ("robust policy", result.robust))
    ends = _reward_ends(link, proof, draft)
    if is_other or ends is not None:
        values = [(name, _evaluate_again(result, value, solved, ends)) for name, value in values]
    made = [_claim(name, value, draft.problem.objective) for name, value in values]
    claims, hints = zip(*made, strict=True)
    words = {**(about or {}), **words_of(result)}
    draft = replace(
        regions.with_region(draft, proof), claims=claims, values=hints, about=plain.to_words(words)
    )
    draft = replace(draft, claims=met_with_episodes(draft, seen))
    if proof is not None and solved.kind is SetsKind.RECTANGULAR:
        draft = regions.prove_choices(link, proved.projected, draft, result)
    draft = regions.prune(draft)
    coupled = [None if ends is not None else value.coupled for _, value in values]
    if difference is not None:
        draft = _with_difference(draft)
        coupled.append(difference)
    if isinstance(region, Polytope) and any(coupled):
        aligned, points = regions.row_names(result, region, proved.events)
        draft = with_coupled_proofs(draft, aligned, points, coupled, link.statements)
    return draft


def _sets_to_prove(result: LearningResult, proved: ProvedSets) -> tuple[Sets, bool]:
    """The sets that are proved, and whether values over them are other ones than the result's."""
    region = result.region if result.contradiction is None else None
    widened = _widen(proved.link, proved.projected, proved.sets, proved.wanted, result.model.expression)
    by_step, divides = result.objective.depends_on_step, proved.link.problem.denominator is not None
    wide = False
    if isinstance(region, Polytope) and region.coordinates.is_lifted and not divides:
        wide = not regions.contains(region.bounding_box, proved.projected.box)  # rows depend on the box
    is_rectangular = isinstance(result.robust.solutions[0].kernel, RectangularOperator)
    relaxed = is_rectangular and (by_step or divides or wide)
    solved = widened or proved.sets
    if proved.draft.problem.misfit is not None:
        solved = uncertainty.widened(solved, proved.draft.problem.misfit)
    if relaxed or (divides and solved.kind is SetsKind.RECTANGULAR):
        solved = replace(solved, kind=SetsKind.EXPRESSION, region=None)
    return solved, widened is not None or by_step or relaxed


def _by_intervals(result: LearningResult, counts: Counts, difference: CoupledValue | None) -> LearningResult:
    """The same policies over an interval for every event at the same confidence, and the polytope of these.

    Whatever the policies were chosen by, the intervals hold for all of them at once.
    """
    if difference is not None:
        raise InputError(
            "certificates do not cover differences of policies in models whose probabilities are quotients",
            hint="leave the certificate out, or certify the result of `learn` for each policy",
        )
    known = None if result.counts is None else counts
    over = compute_again(result.problem, known, result, SetsKind.EXPRESSION, region_kind("polytope"))
    robust, value = (
        None if one is None else _evaluate_again(result, replace(one, coupled=None), over.sets)
        for one in (result.robust, result.value)
    )
    assert robust is not None
    return replace(over, robust=robust, value=value, outcomes=result.outcomes, given=result.given)


def _refuse_open(result: LearningResult, counts: Counts) -> None:
    """Refuse what certificates do not hold, and data for which no confidence holds."""
    region = result.region if result.contradiction is None else None
    regions.refuse_uncertified(result.model, None if region is None else region.kind)
    if region is not None and result.ledger.assumption is Assumption.NONE:
        raise CannotCertify(f"nothing is guaranteed, so there is nothing to certify: {result.ledger.method}")
    reward = result.objective.reward
    by_successor = isinstance(reward, ParametricReward) and reward.by_transition is not None
    if result.ledger.of_costs and by_successor:
        raise InputError(
            "certificates do not cover costs of rewards that differ by successor: none is written",
            hint="leave the certificate out, or learn without `cost_range` and `cost_sd`",
        )
    doubtful = [one for one in result.ledger.assumptions if not one.holds]
    open_ones = [one for one in doubtful if one.name in (ENDS, ORDER) or one.name.endswith(CHOSEN)]
    doubts = "; ".join(f"{one.name}: {one.why}" for one in open_ones)
    if doubts:
        raise InputError(
            f"the result is nominal ({doubts}): no confidence holds for it, so there is nothing to certify",
            hint="leave the certificate out, or state the missing facts about the data",
        )
    if counts.design.censored:
        raise InputError(
            f"outcomes are missing from the data ({'; '.join(counts.design.censored)}): no confidence holds "
            "for them, so there is nothing to certify",
            hint="leave the certificate out, or complete the data",
        )


@dataclass(frozen=True, eq=False)
class ProvedSets:
    """The sets of a result, what they are `wanted` to be, and what the checker proves of them."""

    draft: Certificate
    events: regions.EventMap | None
    link: Learned
    proof: RegionHints | None
    projected: ProjectedRegion
    sets: Sets
    wanted: regions.Wanted


def prove_sets(
    result: LearningResult,
    counts: Counts,
    question: Asked | None,
    seen: ObservedOutcomes | None,
    gains: bool = False,
) -> ProvedSets:
    """From data, or the domain, to bounds of expressions; refused where no confidence holds. `gains`: bets
    are on what is gained over the given policy."""
    _refuse_open(result, counts)
    first, region = result.robust.solutions[0], result.region if result.contradiction is None else None
    sets = result.sets.narrow or replace(result.sets, lower=first.kernel.lower, upper=first.kernel.upper)
    draft, events = _draft(result, counts, question, seen, gains)
    size, expression = len(result.model.expressions), result.model.expression
    lower, upper = np.zeros(size), np.ones(size)
    np.maximum.at(lower, expression, sets.lower)
    np.minimum.at(upper, expression, sets.upper)
    wanted, link = (np.minimum(lower, upper), np.maximum(lower, upper)), Learned(draft, FLOAT64)
    if isinstance(region, Polytope) and region.slab is not None:
        draft, link = regions.prove_slab(link, draft, region, events)
    proof: RegionHints | None = None
    if isinstance(region, Ellipsoid):
        proof = regions.prove_ellipsoid(link, result, region, wanted)
    elif region is not None:
        proof = regions.prove_region(link, result, events, wanted)
    return ProvedSets(draft, events, link, proof, link.project(proof), sets, wanted)


def _with_difference(draft: Certificate) -> Certificate:
    """The claim that the first policy's value less the second's lies between what both intervals say."""
    first, second = draft.claims
    pair = np.arange(2, dtype=np.int64)
    low, high = 0.0 - difference(second.upper, first.lower), difference(first.upper, second.lower)
    claim = Claim("difference", "pair", low, high, pair=pair)
    return replace(draft, claims=(first, second, claim), values=(*draft.values, ValueHints()))


def words_of(result: LearningResult) -> dict[str, str]:
    """What the user states of the data, in words; nothing in the certificate could show it."""
    stated = [one for one in result.ledger.assumptions if one.kept is AssumptionStatus.STATED]
    return {"stated": "; ".join(f"{one.name}: {one.why}" for one in stated)} if stated else {}


def _draft(
    result: LearningResult,
    counts: Counts,
    question: Asked | None,
    seen: ObservedOutcomes | None,
    gains: bool,
) -> tuple[Certificate, regions.EventMap | None]:
    """The problem and the intervals of events or transitions; of claims only whose policy is given."""
    data, support = data_of(result, counts), result.assumed_support
    if gains and data is not None and data.bets:
        data = replace(data, method="value slab of the difference")
    if question is None:
        problem = to_problem(result.model, result.objective, data=data, assumed_support=support)
    else:
        base = require_discrete(result.problem.base)
        problem = to_problem(base, question, data=data, assumed_support=support)
    if misfit := result.options.misfit:
        problem = replace(problem, misfit=np.full(problem.graph.choices, misfit))
    elif data is not None and seen is not None:
        problem = replace(problem, data=with_episodes(data, seen, problem))
    given = None if result.value is None else result.value.policy
    unknown = plain.to_claim("given policy", problem.objective.range, given, problem.objective)
    claims = () if given is None else (unknown,)
    hints = LearnedHints()
    if result.ledger.of_costs:
        about = (result.model, result.objective, counts, result.sets.ledger.delta)
        costs = learn_costs(*about, result.options)
        assert costs is not None
        if costs.contradiction is not None:
            raise InputError(f"there is nothing to prove: {costs.contradiction}", hint="write no certificate")
        hints = LearnedHints(cost_lower=costs.lower, cost_upper=costs.upper)
    if isinstance(result.region, Polytope) and result.region.evidence is not None:
        shares = result.region.evidence.shares
        if shares is not None:
            hints = replace(hints, pilot_share=(shares * PARTS).astype(np.int64))
    draft = Certificate(problem, claims=claims, learned=hints)
    if data is None or not data.has_intervals:
        return draft, None
    if data.shared_by == "transitions":
        method = IntervalMethod(data.method)
        own = transition_intervals(result.model, counts, data.delta, method)
        return replace(draft, learned=replace(hints, lower=own.lower, upper=own.upper)), None
    assert result.intervals is not None
    events = regions.EventMap(result.intervals, Learned(draft, FLOAT64))
    lower, upper = events.bounds()
    return replace(draft, learned=replace(hints, lower=lower, upper=upper)), events


def _widen(
    link: Learned, projected: ProjectedRegion, sets: Sets, wanted: regions.Wanted, expressions: IndexArray
) -> Sets | None:
    """Sets moved outward to what is proved, or None where everything is proved as it is."""
    wrong = [] if sets.kind is SetsKind.UNTIED else regions.open_ends(link, projected.bounds, wanted)
    if not wrong:
        return None
    lower, upper = sets.lower.copy(), sets.upper.copy()
    for expression, side in wrong:
        proved = projected.bounds.ends(expression)[side]
        at = expressions == expression
        if side:
            upper[at] = np.maximum(upper[at], min(round_up(proved), 1.0))
        else:
            lower[at] = np.minimum(lower[at], max(-round_up(-proved), 0.0))
    return replace(sets, lower=lower, upper=upper)


def _reward_ends(link: Learned, proof: RegionHints | None, draft: Certificate) -> RewardEnds | None:
    """Rewards with parameters at the ends that are proved; None where there are none."""
    if draft.problem.objective.earned is None:
        return None
    certified = reward_ends(Learned(regions.with_region(draft, proof), FLOAT64, link.statements))
    least, most = (RewardStructure(choice=end) for end in certified)
    return least, most


def _evaluate_again(
    result: LearningResult, value: PolicyValue, sets: Sets, ends: RewardEnds | None = None
) -> PolicyValue:
    """The same policy over other sets, with rewards at these ends where they have parameters."""
    low = value.solutions[0]
    options = LearnOptions(precision=low.precision)
    solver = PolicySolver(sets, result.objective, options)
    solver.reward_ends = ends
    return replace(solver.evaluate(value.policy), coupled=value.coupled)


def _claim(
    name: str, value: PolicyValue, objective: certified.CertifiedObjective
) -> tuple[Claim, ValueHints]:
    """Nature against the value gives its lower vector, nature for it the upper one."""
    ends = {solution.objective.nature: solution for solution in value.solutions}
    low, high = ends[Direction.MIN], ends[Direction.MAX]
    return plain.claim_between(name, low, high, value.policy, objective), plain.value_hints(
        low, value.policy, high
    )


def learn_again(result: LearningResult, counts: Counts) -> tuple[LearningResult, Asked]:
    """The result over the product of a certificate, and what is asked in its words; `counts` are those of
    the model. Coupled sets become rectangular ones: their proofs are about policies without memory."""
    problem, decisions = result.problem, result.decisions
    assert isinstance(problem.lift, ProductLift) and problem.lift.temporal is not None
    question = asked_of(problem.lift.temporal)
    made = _certified_product(problem, problem.lift, question)
    sets = SetsKind.RECTANGULAR if decisions.couples else decisions.sets
    region = regions.region_for(result.model, result)
    return compute_again(made, counts, result, sets, region), question


def compute_again(
    problem: Problem,
    counts: Counts | None,
    result: LearningResult | LearnedAnswer,
    sets: SetsKind,
    region: RegionKind | None,
) -> LearningResult:
    """The answer of another problem, sets and region at the same confidence; without counts over the
    domain."""
    options = result.options if counts is None else result.options.without_outcomes
    region = None if counts is None else region
    prior = options.prior if region == region_kind(SEEDED) else ()
    options = replace(options, sets=sets, region=region, prior=prior)
    return Pipeline.start(problem, counts, result.sets.ledger.delta, options=options).result(options)


def _certified_product(problem: Problem, lift: ProductLift, question: Asked) -> Problem:
    base = lift.base
    certified = to_problem(base, question)
    possible = (np.diff(base.expressions.row_start) > 0)[base.expression].astype(np.float64)
    boxes = Boxes(
        FLOAT64,
        certified.graph.transition_start,
        certified.graph.successor,
        np.arange(base.transitions),
        possible,
        possible,
        np.ones(base.choices, dtype=np.bool_),
    )
    derived = plain.derive_product(certified, boxes)
    assert question.automaton is not None
    memories = question.automaton.memories
    product = Product(
        plain.structure_of(derived),
        (derived.key // memories).astype(np.int32),
        (derived.key % memories).astype(np.int32),
        derived.choice,
        derived.transition,
    )
    query = problem.query.with_objective(plain.objective_of(certified, derived), product.structure)
    return Problem.lifted(ProductLift(base, product, lift.needs_support, temporal=lift.temporal), query)


def to_data(
    counts: Counts, delta: float, method: str, shared_by: str, assumed: CostModel | None = None
) -> evidence.Data:
    """Batches in time order where the method uses the order; one batch of everything otherwise. Costs are a
    part of it where something is `assumed` of them."""
    design, batches, ordered = counts.design, counts.batches, evidence.METHODS[method].ordered
    if ordered and batches is not None:
        start, transition, count = batches.start, batches.transition, batches.count
    else:
        transition = np.flatnonzero(counts.transition)
        count = counts.transition[transition]
        start = np.array([0, len(transition)])
    return evidence.Data(
        delta=float(delta),
        method=method,
        shared_by=shared_by,
        design=design.kind.value,
        repeats=bool(design.repeats),
        censored=bool(design.censored),
        anytime=bool(design.anytime),
        batch_start=start.astype(np.int64),
        batch_transition=transition.astype(np.int64),
        batch_count=count.astype(np.int64),
        episodes=design.episodes if design.by_episodes else None,
        planned=None if design.late_plan else design.planned,
        costs=None if assumed is None else to_costs(counts, assumed),
        stated=stated_numbers(design.ends, *([design.order] if ordered else [])),
    )


def stated_numbers(*needed: Assumed) -> OffsetArray | None:
    """The numbers of what is said of data: of the ends of episodes, and of the order where it matters."""
    stated = {(one.name, one.kept.value) for one in needed}
    numbers = [i for i, (name, status, _) in enumerate(evidence.STATED) if (name, status) in stated]
    return np.array(numbers, dtype=np.int64) if numbers else None


def to_costs(counts: Counts, assumed: CostModel) -> Costs:
    """The sums of observed costs."""
    seen = {} if counts.costs is None else counts.costs.of
    listed = [seen[transition] for transition in sorted(seen)]
    low, high = (None, None) if assumed.bounds is None else assumed.bounds
    return Costs(
        transition=np.array(sorted(seen), dtype=np.int64),
        count=np.array([count for count, _, _ in listed], dtype=np.int64),
        total=tuple(total for _, total, _ in listed),
        square=tuple(square for _, _, square in listed),
        lower=low,
        upper=high,
        deviation=assumed.deviation,
    )


def with_episodes(
    data: evidence.Data, seen: ObservedOutcomes, problem: certified.CertifiedProblem
) -> evidence.Data:
    """The data with what episodes came to, where certificates cover that: nothing weighed."""
    if problem.misfit is not None or seen.from_steps or seen.is_weighted:
        return data
    if seen.returns is not None:
        numbers = [3 if seen.planned is None else 2, seen.episodes, 0, 0]
        limits = [end for end in seen.ends if math.isfinite(end)]
        rows = [
            np.stack([np.full(len(tally.value), float(side)), tally.value, tally.count], axis=1)
            for side, tally in enumerate(seen.returns[: len(limits)])
        ]
        listed = np.concatenate(rows)
        return replace(
            data,
            seen=np.array(numbers, dtype=np.int64),
            seen_delta=np.array([seen.delta, *limits]),
            returns=listed[listed[:, 1] > 0.0],
        )
    assert seen.successes is not None and seen.failures is not None
    ends = [seen.successes, seen.failures]
    if seen.complement != problem.objective.complement:
        ends.reverse()
    numbers = [episodes.METHODS.index(seen.method), seen.episodes, *ends]
    return replace(data, seen=np.array(numbers, dtype=np.int64), seen_delta=np.array([seen.delta]))


def met_with_episodes(draft: Certificate, seen: ObservedOutcomes | None) -> tuple[Claim, ...]:
    """The claims of a draft, each met with what episodes prove of it."""
    return tuple(_met(one, draft.problem, seen) for one in draft.claims)


def _met(claim: Claim, problem: certified.CertifiedProblem, seen: ObservedOutcomes | None) -> Claim:
    """A claim met with what episodes prove, as far as the checker confirms it."""
    if seen is None or problem.data is None or problem.data.seen is None:
        return claim
    if not episodes.is_about(problem, claim):
        return claim
    least, most = (0.0, 1.0) if seen.returns is None else seen.ends
    for slack in (0.0, 1e-15, 1e-12, 1e-9, 1e-6):
        lower = max(claim.lower, least + (seen.interval.lower - least) * (1 - slack))
        upper = min(claim.upper, seen.interval.upper)
        if math.isfinite(most):
            upper = min(claim.upper, most - (most - seen.interval.upper) * (1 - slack))
        if lower > upper:
            raise Contradiction("the values of the model and those of episodes exclude each other")
        wanted = replace(claim, lower=lower, upper=upper)
        if episodes.improved(problem, wanted, claim.lower, claim.upper) == (lower, upper):
            return wanted
    return claim


def data_of(result: LearningResult, counts: Counts) -> evidence.Data | None:
    """The data behind a result; None where it is about the whole domain."""
    ledger = result.sets.ledger
    if ledger.delta == 0:
        return None
    region = result.region if result.contradiction is None else None
    method = ledger.method if result.model.structure.elsewhere is None else "unseen mass"
    if region is not None and result.sets.kind not in (SetsKind.UNTIED, SetsKind.TIED):
        method = method if region.kind.is_of_intervals else region.kind.certificate or method
        slab = region.slab if isinstance(region, Polytope) else None
        if region.kind.has_intervals:
            assert result.intervals is not None
            whose = "" if result.value is None or slab is None or slab.given else " of the best"
            second = "3/5 likelihood" if slab is None else f"9/10 value slab{whose}"
            method = f"{result.intervals.ledger.method}+{second}"
    shared_by = "events"
    if evidence.METHODS[method].module in ("intervals", "joint"):
        if result.sets.kind is SetsKind.UNTIED:
            shared_by = "transitions"
        elif result.intervals is not None and result.intervals.ledger.budget == "paper":
            shared_by = "outcomes"
    assumed = result.options.cost_model if ledger.of_costs else None
    data = to_data(counts, ledger.delta, method, shared_by, assumed)
    names, priors = result.model.parameters.names, result.options.prior if method == "likelihood" else ()
    if not priors:
        return data
    listed = sorted((float(names.index(one.parameter)), one.a, one.b) for one in priors)
    return replace(data, prior=np.array(listed))


# --- averages and formulas -----------------------------------------------------------------

NATURES = (Direction.MIN, Direction.MAX)


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
    over = _learn_sets(result, seen)
    with as_contradiction():
        outcomes = None if isinstance(result, LearnedAnswer) else result.seen
        proved = prove_sets(over, no_counts(over.model) if seen is None else seen, question, outcomes)
        name = "robust policy" if given is None else "given policy"
        draft = _claimed(proved, question, name, result, given)
        words = {**(about or {}), **words_of(over)}
        draft = replace(regions.with_region(draft, proved.proof), about=plain.to_words(words))
        draft = regions.prune(replace(draft, claims=met_with_episodes(draft, outcomes)))
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
    region = None if counts is None else regions.region_for(base, result)
    nothing = np.zeros(base.states, dtype=np.bool_)
    nowhere = Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MAX, target=nothing)
    return compute_again(Problem(base, nowhere), counts, result, kind, region)


def _claimed(
    proved: ProvedSets,
    question: Asked,
    name: str,
    result: LearningResult | LearnedAnswer,
    given: Policy | None,
) -> Certificate:
    """The draft with its claim and the vectors behind it."""
    draft, precision = proved.draft, result.options.precision
    link = Learned(regions.with_region(draft, proved.proof), FLOAT64, proved.link.statements)
    boxes, problem = link.model_boxes(), draft.problem
    hull = IntervalMDP(result.problem.base.structure, boxes.lower[boxes.label], boxes.upper[boxes.label])
    how = result.options
    solved = partial(solve, precision=precision / 4, seconds=how.seconds, threads=how.threads)
    if isinstance(result, LearnedAnswer):
        claim = plain.to_claim(name, problem.objective.range, given or result.policy, problem.objective)
        claim, hints = plain.average_claim(problem, boxes, claim, hull, NATURES, precision / 4, solved)
    else:
        claim, hints = _temporal(problem, boxes, name, hull, given, solved)
    return replace(draft, claims=(claim,), values=(hints,))


def _temporal(
    problem: CertifiedProblem,
    boxes: Boxes,
    name: str,
    hull: IntervalMDP,
    given: Policy | None,
    solved: plain.Solve,
) -> tuple[Claim, ValueHints]:
    """Of a given policy of the model, or of the most robust one of the product."""
    claim = None if given is None else plain.to_claim(name, (0.0, 1.0), given, problem.objective)
    model, objective, policy = plain.product_model(problem, boxes, claim, hull, given)
    if policy is None:
        policy = solved(model, replace(objective, nature=objective.agent.opposite)).policy
    low, high = (solved(model, replace(objective, nature=nature), policy=policy) for nature in NATURES)
    between = plain.claim_between(name, low, high, policy, problem.objective)
    if claim is not None:
        between = replace(claim, lower=between.lower, upper=between.upper)
    return between, plain.value_hints(low, policy, high)
