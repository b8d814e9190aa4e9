"""Compare a certificate with the user's own model, property, data and policy.

A certificate is about the problem that is written in it. The user's own problem is built by the functions
that make certificates and compared with the one in the file as a whole, field by field. Options of the
statement (δ, the method, the sets, an assumed support) are the file's, and the verdict names what they
assume. `FOLLOWS` says which ends of which claims hold for the user's problem; nothing else is shown.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import cast

import numpy as np

from tightrope.beliefs.question import question_of
from tightrope.certify import problem as problems
from tightrope.certify.learned import to_data, with_episodes
from tightrope.certify.observed import BELIEFS, beside_beliefs, chain_problem, repeated_graph
from tightrope.certify.rates import OwnChain, own_chain
from tightrope.certify.solved import choices_by_step
from tightrope.continuous.discrete import embed
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError, ReadingWarning, shown
from tightrope.learning import outcomes as returns
from tightrope.learning.groups import counts_of_unit, second_half, units_in
from tightrope.learning.learn import TemporalFormulas, counted_anew
from tightrope.learning.observed import controlled
from tightrope.learning.options import chosen_with
from tightrope.learning.pipeline import counts_of
from tightrope.learning.rates import rates_refuted
from tightrope.model.continuous import CTMC, ParametricCTMC
from tightrope.model.mdp import JOINT_BOUNDS, MDP, IntervalMDP, counts_steps
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven
from tightrope.model.pomdp import POMDP, Controller, controller_of
from tightrope.model.structure import Structured
from tightrope.monitoring.episode_scores import PathRules
from tightrope.monitoring.examination import ALPHA, weigh_fit
from tightrope.monitoring.rate_fit import examine_rates
from tightrope.monitoring.units import refuted_within
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.properties.query import Query, decide
from tightrope.prism.properties.shape import EMBEDDED, refuse_time
from tightrope.problem import AnyModel, Problem, require_discrete
from tightrope.provenance import of_counts
from tightrope.statistics.costs import CostModel
from tightrope.verdict import AssumptionStatus
from tightrope_check.checker import unbound
from tightrope_check.fleet import FleetCertificate
from tightrope_check.problem import RUNS, Certificate, CertifiedObjective, CertifiedProblem, Claim
from tightrope_check.verdict import MEANING, Verdict

Bounds = tuple[float, float]
Property = Objective | Query | str


class Relation(Enum):
    """What the problem of a file is to the user's own, with which it was compared."""

    SAME = "the problem itself"
    JOINT = "the products of the bounds of commands that synchronise, which allow nature more"
    OUTER = "a model of beliefs in which no controller does worse, and one choice does what yours does"
    CHAIN = "the chain that the user's controller makes"
    AMENDED = "the problem itself, of a model that data chose: drafted, or revised from another one"


FOLLOWS = {
    Relation.SAME: ("both", "both"),
    Relation.JOINT: ("nature's", "nature's"),
    Relation.OUTER: ("far", "near"),
    Relation.CHAIN: ("none", "both"),
    Relation.AMENDED: ("both", "both"),
}
"""Which ends hold for the user's problem: of a claim about the best policy, and of one about a policy that is
the user's. *Near* is the end that a policy which does so well proves of the best one, the lower one of what
is maximised; *far* is the other; *nature's* is the end that she moves the value to where she may do more.
What is *amended* has its confidence only from data that did not choose the model (`_chosen_with_data`), and
nothing follows for the model that was revised: that is another problem."""


def ends_that_follow(relation: Relation, claim: Claim, objective: CertifiedObjective) -> tuple[bool, bool]:
    """Whether the lower and the upper end of a claim hold for the user's problem."""
    maximised, lifted = (
        (who == "MAX") != objective.complement for who in (objective.agent, objective.nature)
    )
    return {
        "both": (True, True),
        "none": (False, False),
        "near": (maximised, not maximised),
        "far": (not maximised, maximised),
        "nature's": (not lifted, lifted),
    }[FOLLOWS[relation][claim.policy != "free"]]


@dataclass(frozen=True, eq=False)
class Own:
    """What the user has: a model (at a point), what is asked of it, data, a policy and
    a baseline; `limit` is the comparison and the threshold of the property, where it has one, `misfit` how
    far the process may be from the model. `controlled`: the model is what the user's controller makes of
    another one, and how. `origin`: the user's model itself, which says what data chose it."""

    model: MDP | IntervalMDP | ParametricMDP
    objective: Objective | problems.Asked | None = None
    theta: Sequence[Fraction] | None = None
    counts: Counts | None = None
    policy: Policy | None = None
    limit: tuple[str, Fraction] | None = None
    misfit: float = 0.0
    baseline: Policy | None = None
    controlled: Relation | None = None
    origin: AnyModel | None = None

    def relation(self, problem: CertifiedProblem) -> Relation:
        """What the problem of a file must be to this one."""
        if self.controlled is not None:
            return self.controlled
        joint = isinstance(self.model, IntervalMDP) and self.model.factored is not None
        if joint and problem.graph.states == self.model.states:
            return Relation.JOINT
        structure = (self.origin or self.model).structure
        chosen = structure.made_from is not None or structure.named_from is not None
        return Relation.AMENDED if chosen else Relation.SAME


def own_of(
    certificate: Certificate,
    model: AnyModel,
    property: Property | None,
    at: Point | None = None,
    data: object = None,
    policies: Sequence[object] = (None, None),
    misfit: float = 0.0,
    translator: str | None = None,
) -> Own | OwnChain:
    """All that is compared with a certificate, as its maker takes it; `policies`: policy, baseline."""
    problem, observed, origin = certificate.problem, isinstance(model, POMDP), model
    policy, baseline = policies
    if at is not None and problem.law not in (("point", "plain") if observed else ("point",)):
        raise InputError("`at` requires a certificate about a point; this one is about no point")
    if problem.time is not None:
        given = {"policy": policy, "baseline": baseline, "misfit": misfit or None}
        if named := next((name for name, value in given.items() if value is not None), None):
            raise InputError(f"`{named}` cannot be used with certificates of chains in continuous time")
        return own_chain(model, property, at, data, problem.law)
    if isinstance(model, POMDP):
        query, point = None if property is None else Problem(model, property).query, None
        if isinstance(model.model, ParametricMDP) and problem.law != "domain":
            point = model.model.parameters.point(at or {})
        counts = None if data is None else counts_of(data, require_discrete(model.model))
        controller = None if policy is None else controller_of(model, policy)
        objective, limit = (None, None) if query is None else (query.objective, query.limit)
        own = own_controller(model, objective, point, counts, controller, limit, certificate)
    else:
        if problem.domain is not None and problem.domain.lower:
            model, data = without_numbers(model, data)
        plain, theta = require_discrete(embed(model) if isinstance(model, CTMC) else model), None
        question: tuple[Objective | problems.Asked | None, tuple[str, Fraction] | None] = (None, None)
        if property is not None:
            question = _question(plain, property, translator, isinstance(model, CTMC))
        counts = None if data is None else counts_of(data, plain)
        if isinstance(plain, ParametricMDP) and (at is not None or not plain.parameters.names):
            theta = plain.parameters.point({} if at is None else at)
        elif at is not None:
            raise InputError("`at` requires a parametric model; this model has no parameters")
        chosen = None if policy is None else _policy(plain, policy)
        own = Own(plain, question[0], theta, counts, chosen, question[1])
    usual = None if baseline is None else _policy(own.model, baseline)
    return replace(own, misfit=misfit, baseline=usual, origin=origin)


def _policy(model: Structured, given: object) -> Policy:
    """A policy as it is, of whatever structure; anything else as one of the model, or refused in words."""
    return given if isinstance(given, Policy) else Policy(model, cast(PolicyGiven, given))


def _question(
    model: AnyModel, property: Property, translator: str | None, timed: bool
) -> tuple[Objective | problems.Asked, tuple[str, Fraction] | None]:
    """What a property asks of a model, and its threshold; a long-run average or a temporal formula is read
    for itself. `timed`: the model is the jumps of a chain in continuous time, of which nothing that speaks of
    time is asked."""
    if timed and isinstance(property, str):
        refuse_time(parse_properties(property, "`property`"), EMBEDDED)
    query = Problem(model, property).query
    if query.is_plain:
        if isinstance(property, Query) and query.reading is not None:
            warnings.warn(query.reading.warning, ReadingWarning, stacklevel=2)
        if translator is not None:
            raise InputError("`ltl_translator` requires a temporal formula: leave it out")
        if timed and counts_steps(query.objective):
            raise InputError("the objective counts steps; a chain in continuous time has jumps")
        return query.objective, query.limit
    question = problems.asked_of(query, translator)
    if isinstance(property, Query) and question.reading is not None:
        warnings.warn(question.reading, ReadingWarning, stacklevel=2)
    if question.sides is not None:
        warnings.warn(question.sides.warning, ReadingWarning, stacklevel=2)
    return question, question.limit


def without_numbers(model: AnyModel, data: object) -> tuple[AnyModel, object]:
    """A model of numbers alone as `learn` takes it: the numbers are not used, and the counts are of that."""
    if not isinstance(model, MDP | ParametricMDP) or (isinstance(model, ParametricMDP) and model.parameters):
        return model, data
    free = ParametricMDP.without_numbers(model)
    return free, counted_anew(data, model, free)


def own_controller(
    pomdp: POMDP,
    objective: Objective | None,
    theta: Sequence[Fraction] | None,
    counts: Counts | None,
    controller: Controller | None,
    limit: tuple[str, Fraction] | None,
    certificate: Certificate,
) -> Own:
    """What the user has of a partially observable model, as what its certificates are about: the chain of the
    controller, over a domain or not, or the model of beliefs with the policy that does what it does."""
    recipe = "".join(certificate.about.get(name, "") for name in BELIEFS)
    over_domain = certificate.problem.law == "domain"
    if (over_domain or not recipe) and any(claim.policy == "free" for claim in certificate.claims):
        raise CannotCertify(
            "this certificate is about the chain of one controller, and claims the value of the best one"
        )
    if objective is None or controller is None:
        raise InputError(
            "a certificate about a controller is compared with a model, a property and a controller",
            hint="give --prop and --policy beside --model",
        )
    if not isinstance(objective, Objective):
        raise InputError("certificates of controllers are about one P or R over a simple path or a reward")
    if over_domain:
        problem = controlled(Problem(pomdp, objective), controller)
        assert problem.lift is not None
        seen = None if counts is None else problem.lift.to_product(counts)
        chain = problem.lift.model
        return Own(chain, problem.objective, None, seen, limit=limit, controlled=Relation.CHAIN)
    point = theta if certificate.problem.law == "point" else None
    if not recipe:
        model, question = chain_problem(pomdp, objective, controller)
        return Own(model, question, point, limit=limit, controlled=Relation.CHAIN)
    if isinstance(pomdp.model, IntervalMDP):
        raise CannotCertify("this certificate is about another model: one without intervals")
    graph = repeated_graph(question_of(pomdp, objective, () if theta is None else theta), recipe)
    built = beside_beliefs(graph, controller)
    policy = Policy.of_choices(built.model.structure, built.choice)
    return Own(built.model, built.objective, point, None, policy, limit, controlled=Relation.OUTER)


def compare(certificate: Certificate, own: Own | OwnChain) -> tuple[dict[str, bool | None], str | None]:
    """What was found to be the user's own, and the first thing that is not, in words."""
    bound = unbound(certificate)
    differences = _compare(certificate, own) if isinstance(own, Own) else own.differences(certificate)
    for name, trouble in differences:
        if trouble is not None:
            ranges = _ranges(certificate.problem, own, trouble) if isinstance(own, OwnChain) else ""
            return bound, f"this certificate is about {trouble}{ranges}"
        bound[name] = True
    return bound, None


def _compare(certificate: Certificate, own: Own) -> Iterator[tuple[str, str | None]]:
    """What was given, part by part, each with what the certificate is about instead."""
    problem = certificate.problem
    if (problem.law in ("point", "domain")) != hasattr(own.model, "expressions"):
        yield "model", "another model: one is parametric, the other is not"
        return
    branches = np.diff(problem.graph.transition_start) > 1
    allowed = np.zeros(problem.graph.choices) if problem.misfit is None else problem.misfit
    if np.any(allowed[branches] < own.misfit):
        yield "model", f"processes nearer to the model than a misfit of {own.misfit:g} allows"
        return
    mine, is_asked = _problem(certificate, own), own.objective is not None
    believed, translated = problem.automaton, mine.automaton
    if is_asked and believed and translated and believed.believed and not translated.believed:
        yield (
            "property",
            "an automaton that another program made of a formula; `ltl_translator` names the program that "
            "translates yours",
        )
        return
    controlled = " or another controller" if own.controlled is not None else ""
    revision = certificate.about.get("selection")
    words = f"; the file says its model was revised ({shown(str(revision))}): compare with the revised one"
    for name, trouble in problems.compare_problems(problem, mine, is_asked, controlled):
        revised = words if name == "model" and revision is not None else ""
        yield name, trouble and f"{trouble}{_ranges(problem, own, trouble)}{revised}"
    fleet = certificate if isinstance(certificate, FleetCertificate) else None
    first = certificate if fleet is None else fleet.parts[0]
    if is_asked and first.problem.data is not None and first.problem.data.returns is not None:
        yield "property", _refuted_returns(first, own)
    if own.counts is not None:
        differs = _data_difference(first, own, own.counts) if fleet is None else None
        yield "data", differs if fleet is None else _units_difference(fleet, own, own.counts)
    if own.policy is not None or own.controlled is not None:
        yield "policy", _policy_difference(certificate, own)
    if own.baseline is not None:
        yield "baseline", _side_difference(certificate, own.baseline, 1)


def _ranges(problem: CertifiedProblem, own: Own | OwnChain, trouble: str) -> str:
    """Where the ranges of a parameter differ: which they are, and the option that states one."""
    theirs, parameters = problem.domain, getattr(own.model, "parameters", None)
    if "'domain." not in trouble or theirs is None or parameters is None:
        return ""
    for name, *ends in zip(
        parameters.names, theirs.lower, theirs.upper, parameters.lower, parameters.upper, strict=False
    ):
        low, high, least, most = ends
        if (low, high) != (least, most):
            return (
                f": {name} lies in [{low}, {high}] there and in [{least}, {most}] in your model; "
                f'`params={{"{name}": ({low}, {high})}}` states the range of the file'
            )
    return ""


def _problem(certificate: Certificate, own: Own) -> CertifiedProblem:
    """The problem of the user's own model and question; data are compared apart."""
    problem, objective = certificate.problem, own.objective
    if problem.law == "point" and own.theta is None:
        raise InputError(
            "this certificate is about one point of the model", hint='give the point, with `at={"p": …}`'
        )
    model, question = own.model, problem.objective
    whole = objective is None and question.kind in (*RUNS, "DISCOUNTED")  # what has no meaning within a step
    if isinstance(model, IntervalMDP) and (whole or own.relation(problem) is Relation.JOINT):
        model = model.without_factors
    rebuilt = problems.to_problem(
        model,
        objective if objective is not None else _nothing(own.model, question),
        theta=own.theta if problem.law == "point" else None,
        assumed_support=problem.assumed_support,
    )
    return replace(rebuilt, misfit=problem.misfit)


def _nothing(model: Structured, question: CertifiedObjective) -> Objective:
    """An objective that stands where none is compared; it counts steps where the certificate's does."""
    nowhere = np.zeros(model.structure.states, dtype=np.bool_)
    steps = None if question.steps is None and question.lower_steps == 0 else 1
    return Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MAX, target=nowhere, upper_steps=steps)


def _refuted_returns(certificate: Certificate, own: Own) -> str | None:
    """Why paths of the user's model return more or less than the file says that episodes do."""
    data, model = certificate.problem.data, own.model
    assert data is not None and data.seen_delta is not None
    if not isinstance(own.objective, Objective):
        return "returns, and your property asks for none"
    least, most = (*data.seen_delta[1:].tolist(), math.inf)[:2]
    given = _given_policy(certificate, own)
    possible = np.ones(model.structure.choices, np.bool_) if given is None else given.probability > 0.0
    try:
        PathRules.of(model.structure, own.objective, possible).refuse_range((least, most))
    except (InputError, CannotCertify) as error:
        return f"a range of returns that cannot be: {error}"
    return None


def _given_policy(certificate: Certificate, own: Own) -> Policy | None:
    """The policy that a file calls given, as one of the user's model."""
    for claim in certificate.claims:
        weights = claim.weights(certificate.problem.graph.choices)
        if claim.name == "given policy" and weights is not None:
            return Policy(own.model, weights[: own.model.structure.choices])
    return None


def _data_difference(certificate: Certificate, own: Own, counts: Counts) -> str | None:
    problem, statement = certificate.problem, certificate.problem.data
    if statement is None:
        return "no data"
    costs, assumed = statement.costs, None
    if costs is not None:
        ends = None if costs.lower is None or costs.upper is None else (costs.lower, costs.upper)
        assumed = CostModel(ends, costs.deviation)
        try:
            if counts.costs is not None:
                assumed.check(counts.costs)
        except InputError as contradiction:
            return f"other data: {contradiction.message}"
    if statement.bets and not statement.method.endswith(("best", "difference")):
        given, planned = _given_policy(certificate, own), counts.design.bet_on
        if given is not None and planned and given.digest not in (*planned, counts.design.followed):
            return "bets on another policy than those that your data were collected to bet on"
    rebuilt = to_data(counts, statement.delta, statement.method, statement.shared_by, assumed)
    if statement.seen is not None and statement.seen_delta is not None:
        scores = _scored(certificate, own, counts, statement.seen_delta.tolist())
        if isinstance(scores, str):
            return scores
        rebuilt = with_episodes(rebuilt, scores, problem)
    rebuilt = replace(rebuilt, prior=statement.prior)  # which is stated, and in no data
    return problems.name_difference("other data", problems.first_difference(statement, rebuilt))


def _units_difference(fleet: FleetCertificate, own: Own, counts: Counts) -> str | None:
    """The file has all units of the data, or the half that is bounded where the others chose the policy."""
    if counts.log is None or not isinstance(own.model, ParametricMDP):
        return "units, and your data are counts"
    log = counts.log()
    names, number = units_in(log, fleet.about.get("column", ""))
    bounded = [unit.about["unit"] for unit in fleet.unit]
    half = [name for name, one in zip(names, second_half(names), strict=True) if one]
    if set(bounded) not in (set(names), set(half)) or (number == -1).any():
        return f"other units: {len(bounded):,}, and your data have {len(names):,}"
    if (
        own.policy is not None
        and len(bounded) == len(names)
        and not returns.chosen_before(own.policy, counts).holds
    ):
        return "units that chose your policy"
    for name, part in zip(bounded + bounded * bool(fleet.again), fleet.parts, strict=True):
        rows = counts_of_unit(log.subset(number == names.index(name)), own.model, counts.design)
        if trouble := _data_difference(part, own, rows):
            return f"{trouble} in unit {shown(name)!r}"
    return None


def _units_misfit(fleet: FleetCertificate, own: Own | OwnChain) -> str | None:
    """What the user's rows say against the model within units, as `learn` tests it."""
    counts = own.counts if isinstance(own, Own) else None
    if counts is None or counts.log is None or not isinstance(own.model, ParametricMDP):
        return None
    log = counts.log()
    names, number = units_in(log, fleet.about.get("column", ""))
    known = [names.index(one.about["unit"]) for one in fleet.unit if one.about["unit"] in names]
    parts = [log.subset(number == one) for one in known]
    by_returns = all(one.data.seen is not None for one in fleet.unit)
    return refuted_within(own.model, parts, counts, by_returns) if parts else None


def _scored(
    certificate: Certificate, own: Own, counts: Counts, about: list[float]
) -> returns.ObservedOutcomes | str:
    """What the user's own episodes come to, counted again, or why they do not; `about` is δ, and what returns
    lie between. Of a process with choices they are those of the given policy, unless the data name another,
    or of whoever acted, where it is about what was done."""
    question = own.objective.query if isinstance(own.objective, problems.Asked) else own.objective
    if question is None:
        return "what episodes came to, which is counted by the property: give yours as well"
    problem = Problem(own.model, question)
    if not isinstance(question, Objective):
        with warnings.catch_warnings(action="ignore"):
            problem = TemporalFormulas().apply(problem)
    policy = _given_policy(certificate, own)
    try:
        if any(claim.policy == "unknown" for claim in certificate.claims):  # its range is the model's own
            seen = returns.observe_done(problem, counts, about[0])
        else:
            seen = returns.observe(problem, counts, about[0], policy=policy, behaviour=policy)
    except InputError as error:
        return f"episodes of other data: {error.message}"
    return f"episodes of other data: {seen.reason}" if isinstance(seen, returns.Unobserved) else seen


def _claims_of(certificate: Certificate, policy: Policy) -> list[str]:
    """The claims that are about a policy, that which is called given first."""
    objective, same = certificate.problem.objective, []
    for claim in certificate.claims:
        weights = claim.weights(certificate.problem.graph.choices)
        if policy.has_memory or claim.policy not in ("fixed", "randomised"):
            continue
        if policy.steps is not None:
            if claim.choice is not None and claim.earlier is not None:
                choice, earlier = choices_by_step(policy.steps, objective)
                # behind these, states in the middle of a step have one choice each
                alike = np.array_equal(claim.choice[: len(choice)], choice) and np.array_equal(
                    claim.earlier, earlier
                )
                same += [claim.name] if alike else []
        elif weights is not None and (claim.earlier is None or len(claim.earlier) == 0):
            own = len(policy.probability)
            same += [claim.name] if np.array_equal(weights[:own], policy.probability) else []
    return sorted(same, key=lambda name: name != "given policy")


def _policy_difference(certificate: Certificate, own: Own) -> str | None:
    """The user's policy is the one that a claim calls given, or where there is none that of another claim. Of
    a controller's chain every policy is the controller; beside beliefs every claim about one is about it."""
    fixed = [claim.name for claim in certificate.claims if claim.policy != "free"]
    if own.controlled is Relation.CHAIN or (own.controlled is Relation.OUTER and not fixed):
        return None
    assert own.policy is not None
    if certificate.problem.automaton is not None and certificate.claims[0].name != "given policy":
        return "policies with the memory of its automaton, and yours has none"
    if any(claim.pair is not None for claim in certificate.claims):
        return _side_difference(certificate, own.policy, 0)
    same = _claims_of(certificate, own.policy)
    if own.controlled is Relation.OUTER and set(same) != set(fixed):
        return "another controller: not every claim about a policy is about yours"
    if not same:
        return "other policies than the given one"
    if "given policy" in fixed and "given policy" not in same:
        return f"another policy: yours is its {same[0]}, and its given policy is another one"
    return None


def _side_difference(certificate: Certificate, policy: Policy, side: int) -> str | None:
    """The user's policy is that on one side of the difference: the new one, or the baseline."""
    pair = next((claim.pair for claim in certificate.claims if claim.pair is not None), None)
    if pair is None:
        return "no difference between policies, and a baseline is given"
    if certificate.claims[int(pair[side])].policy == "unknown":
        return "a difference to what was done, which your data show, and a baseline is given"
    if certificate.claims[int(pair[side])].name in _claims_of(certificate, policy):
        return None
    return ("another policy than yours", "a difference to another baseline than yours")[side]


def tie_verdict(
    verdict: Verdict, certificate: Certificate, own: Own | OwnChain, bound: Mapping[str, bool | None]
) -> Verdict:
    """A verdict about what was found to be the user's own: what holds there (`FOLLOWS`), which claim answers
    the question, and whether a threshold is met. An automaton that is the translation of the user's property
    means what it says."""
    problem = certificate.problem
    relation = own.relation(problem) if isinstance(own, Own) else Relation.SAME
    assumed = [one for one in verdict.assumptions if one[2] != MEANING or not bound["property"]]
    if relation is Relation.JOINT:
        assumed.append(("joint bounds", "yes", JOINT_BOUNDS))
    assumed += _chosen_with_data(certificate, own)
    if isinstance(certificate, FleetCertificate):
        refuted = verdict.contradicted or _units_misfit(certificate, own)
        return replace(verdict, bound=bound, assumptions=tuple(assumed), contradicted=refuted)
    values, best = _what_follows(certificate, relation)
    about = _claim_asked_for(certificate, own, values)
    misfit, doubts = _misfit(own)
    tied = replace(verdict, bound=bound, assumptions=(*assumed, *doubts), values=values, claim=about)
    tied = replace(tied, contradicted=verdict.contradicted or misfit)
    if own.limit is None:
        return tied
    if tied.word != "proved":
        return replace(tied, answer="not certified")
    is_of_policy = relation is Relation.CHAIN or (own.policy is not None and relation is not Relation.OUTER)
    lower, upper = values[about] if is_of_policy and about is not None else best
    return replace(tied, answer=decide(*own.limit, lower, upper))


def _misfit(own: Own | OwnChain) -> tuple[str | None, list[tuple[str, str, str]]]:
    """Why the user's data do not fit the user's model, or what leaves it in doubt, as `learn` tests it."""
    if isinstance(own, OwnChain):
        if own.exposure is None or not isinstance(own.model, ParametricCTMC):
            return None, []
        return rates_refuted(examine_rates(own.model, own.exposure, alpha=ALPHA)), []
    if own.counts is None or not isinstance(own.model, ParametricMDP):
        return None, []
    fit = weigh_fit(own.model, own.counts)
    is_open = fit.is_doubt and not fit.is_refutation
    refuted = returns.refutation(own.counts, fit)
    doubts = [("model", "unknown", fit.text)] if is_open else []
    return None if refuted is None else refuted.partition(". Worst")[0], doubts


def _chosen_with_data(certificate: Certificate, own: Own | OwnChain) -> list[tuple[str, str, str]]:
    """That the user's model, or the policy that the file singles out, was made from the user's data; without
    these the counts of the file are all that is known of its data."""
    about = certificate.parts[0] if isinstance(certificate, FleetCertificate) else certificate
    stated, given = about.problem.data, own.counts if isinstance(own, Own) else own.exposure
    if stated is None:
        return []
    transitions, structure = certificate.problem.graph.transitions, own.model.structure
    seen = stated.totals(np.arange(transitions), transitions)
    known = structure if structure.transitions == transitions else None
    rows = (None if given is None else given.provenance) or of_counts(known, seen)
    chosen = [*chosen_with(getattr(own, "origin", None) or own.model, (), lambda: rows)]
    chosen = [one for one in chosen if one.kept is not AssumptionStatus.YES]
    if isinstance(own, Own) and own.counts is not None:
        bets_on_it = stated.bets and not stated.method.endswith("best")
        for policy in (own.policy, own.baseline) if bets_on_it or stated.seen is not None else ():
            if policy is not None and "given policy" in _claims_of(certificate, policy):
                before = returns.chosen_before(policy, own.counts)
                chosen += [] if before.holds else [before]
    return [(one.name, one.kept.value, one.why) for one in chosen]


def _what_follows(certificate: Certificate, relation: Relation) -> tuple[dict[str, Bounds], Bounds]:
    """What holds of every claim's quantity in the user's problem, and of the best policy's value."""
    objective = certificate.problem.objective
    maximises = (objective.agent == "MAX") != objective.complement
    least, most = objective.range if objective.is_probability else (-math.inf, math.inf)
    values, best = dict[str, Bounds](), [least, most]
    for claim in certificate.claims:
        low, high = ends_that_follow(relation, claim, objective)
        lower, upper = claim.lower if low else least, claim.upper if high else most
        if claim.pair is not None and not (low and high):
            lower, upper = -math.inf, math.inf
        values[claim.name] = lower, upper
        if claim.policy in ("pair", "unknown"):  # a difference is no value, what was done no best policy's
            continue
        if maximises or claim.policy == "free":
            best[0] = max(best[0], lower)
        if not maximises or claim.policy == "free":
            best[1] = min(best[1], upper)
    if "value" in values:
        values["value"] = best[0], best[1]
    if relation is Relation.OUTER and "given policy" in values:  # it is no better than the best one
        lower, upper = values["given policy"]
        values["given policy"] = (lower, min(upper, best[1])) if maximises else (max(lower, best[0]), upper)
    return values, (best[0], best[1])


def _claim_asked_for(
    certificate: Certificate, own: Own | OwnChain, values: Mapping[str, Bounds]
) -> str | None:
    """The claim that answers the user's question: about the policy that was given, or the best one."""
    if "difference" in values and own.limit is None:
        return "difference"
    if own.policy is not None and (not isinstance(own, Own) or own.controlled is not Relation.OUTER):
        return next(iter(_claims_of(certificate, own.policy)), None)
    return next((name for name in ("value", "robust policy", "given policy") if name in values), None)
