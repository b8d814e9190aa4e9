"""Verifying a certificate, and tying it to one's own model, property, data and policy.

A certificate is about the problem that is written in it. Here that problem is built again, from what the user
trusts, and compared with the one in the file, field by field. Options of the statement (δ, the method, the
sets, an assumed support) are the file's; what they mean is in the verdict's own words.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.certificate.archive import load
from tightrope.certificate.budget import WorkBudget
from tightrope.certificate.checker import check, unbound
from tightrope.certificate.numbers import FLOAT64, RATIONAL
from tightrope.certificate.problem import RUNS, Certificate, CertifiedObjective, CertifiedProblem
from tightrope.certificate.verdict import MEANING, Verdict
from tightrope.certify.fields_compared import first_difference, name_difference
from tightrope.errors import CannotCertify, InputError, ReadingWarning, check_type
from tightrope.late import dataclass
from tightrope.model.mdp import JOINT_BOUNDS
from tightrope.numerics.text import interval_text, text_above, text_below
from tightrope.verdict import Assumed, Kept, Worth

if TYPE_CHECKING:
    from tightrope.certify.problem import Asked
    from tightrope.certify.rates import OwnChain
    from tightrope.data.counts import Counts
    from tightrope.learning.outcomes import ObservedOutcomes
    from tightrope.model.continuous import CTMC, ParametricCTMC
    from tightrope.model.mdp import MDP, IntervalMDP
    from tightrope.model.objective import Objective
    from tightrope.model.parameters import Point
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.model.policy import Policy
    from tightrope.model.pomdp import POMDP, Controller


@dataclass(frozen=True, eq=False)
class Own:
    """What the user has: a model (at a point), what is asked of it, data, a policy and
    a baseline; `limit` is the comparison and the threshold of the property, where it has one, `misfit` how
    far the process may be from the model. `is_controlled`: the model is what the user's controller makes of
    another one."""

    model: MDP | IntervalMDP | ParametricMDP
    objective: Objective | Asked | None = None
    theta: Sequence[Fraction] | None = None
    counts: Counts | None = None
    policy: Policy | None = None
    limit: tuple[str, Fraction] | None = None
    misfit: float = 0.0
    baseline: Policy | None = None
    is_controlled: bool = False


def verify(
    certificate: str | Path,
    *,
    model: MDP | IntervalMDP | ParametricMDP | CTMC | ParametricCTMC | POMDP | None = None,
    property: Objective | str | None = None,
    at: Point | None = None,
    data: Any = None,
    policy: Policy | Controller | None = None,
    baseline: Policy | None = None,
    misfit: float = 0.0,
    ltl_translator: str | None = None,
    exact: bool = False,
    budget: float | str | None = None,
) -> Verdict:
    """Check a certificate; with a model, a property, data or a policy of one's own, check that it is about
    these.

    A `CTMC` stands for its embedded chain where the certificate is about that, as those of questions without
    time at a point are; a model of numbers, where the certificate is about unknown probabilities, for the
    same without its numbers. Of a `POMDP` the policy is a controller.
    `data` are counts, or a log as `read_data` takes it. `policy` and `baseline` are those of a difference:
    the first's value less the second's. `misfit`: the claims have to hold as well where the
    process is within so much, in total variation, of the model at every choice. `ltl_translator` is the
    command that makes LTL an automaton, where the certificate's was made by another program, too. `budget`:
    the work that the check may take, 600 (seconds), "10min" or "10x"; beyond it, and beyond 60 s without it
    (600 s if `exact`), it is refused before it is done.

    A `CannotCertify` names the first field in which the certificate speaks of something else. Whether it
    proves its claims is the verdict's `valid`; what that is worth, in one word, its `word`: proved, nominal,
    contradicted where the data refute the model, limit where a threshold is not decided; whether a property
    with a threshold is true, its `answer`; what was not tied to anything, its `not_tied`.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> problem = model.problem('Pmax=? [ F "heads" ]')
    >>> result = tr.learn(problem, [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20, delta=0.01)
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     proved = tr.certify(result, os.path.join(folder, "coin.cert"))
    ...     verdict = tr.verify(os.path.join(folder, "coin.cert"), model=model)
    >>> verdict.word, verdict.not_tied
    ('proved', ('property', 'data', 'policy'))
    """
    if model is None and not (
        property is None
        and data is None
        and policy is None
        and baseline is None
        and at is None
        and misfit == 0
    ):
        raise InputError(
            "a property, data, a point or a policy can only be compared beside a model", hint="add `model`"
        )
    check_type("certificate", certificate, str | Path, "the name of a file")
    allowed = WorkBudget.of(budget, exact)
    loaded = load(certificate, allowed).certificate
    observed = hasattr(model, "observation")  # beliefs at a point are a plain model
    if at is not None and loaded.problem.law not in (("point", "plain") if observed else ("point",)):
        raise InputError("`at` goes with certificates about a point, this one is about none")
    if model is None:
        return check(loaded, RATIONAL if exact else FLOAT64, allowed)
    if loaded.problem.time is not None:
        chain = _own_chain(model, property, at, data, loaded.problem.law)
        bound, trouble = compare(loaded, chain)
        if trouble is not None:
            raise CannotCertify(trouble)
        return tie_verdict(check(loaded, RATIONAL if exact else FLOAT64, allowed), loaded, chain, bound)
    if observed:
        own = _own_controller(model, property, at, data, policy, loaded)
    else:
        if loaded.problem.domain is not None and loaded.problem.domain.lower:
            model, data = without_numbers(model, data)
        own = _own(model, property, at, data, policy, ltl_translator)
    usual = baseline if observed else _as_policy(own.model, baseline)
    own = replace(own, misfit=misfit, baseline=usual)
    bound, trouble = compare(loaded, own)
    if trouble is not None:
        raise CannotCertify(trouble)
    return tie_verdict(check(loaded, RATIONAL if exact else FLOAT64, allowed), loaded, own, bound)


def _own_chain(model: Any, property: Any, at: Any, data: Any, law: str) -> OwnChain:
    from tightrope.certify.rates import own_chain
    from tightrope.data.exposure import Exposure, read_exposure
    from tightrope.problem import Problem

    query = None if property is None else Problem(model, property).query
    if data is not None and not isinstance(data, Exposure):
        data = read_exposure(data, model.structure)
    return own_chain(model, query, at, data, law)


def tie_verdict(
    verdict: Verdict, certificate: Certificate, own: Own | OwnChain, bound: Mapping[str, bool | None]
) -> Verdict:
    """A verdict beside what was found to be the user's own, and how that was read: an automaton that is the
    translation of the user's property means what it says; a threshold is met or not."""
    from tightrope.model.mdp import IntervalMDP

    assumed = [one for one in verdict.assumptions if one[2] != MEANING or not bound["property"]]
    joint = isinstance(own.model, IntervalMDP) and own.model.factored is not None
    if joint and certificate.problem.graph.states == own.model.states:  # it can be read in two ways
        assumed.append(("joint bounds", "yes", JOINT_BOUNDS))
    tied = replace(verdict, bound=bound, assumptions=tuple(assumed))
    if own.limit is None:
        return tied
    return replace(tied, answer=_answer(certificate, own) if tied.word == "proved" else "not certified")


def _answer(certificate: Certificate, own: Own | OwnChain) -> str:
    """Whether the value meets the user's threshold: that of the user's policy, or of the best one, which no
    policy betters."""
    from tightrope.prism.properties.query import decide

    assert own.limit is not None
    objective = certificate.problem.objective
    maximises = (objective.agent == "MAX") != objective.complement
    own_claims = None if own.policy is None else _claims_of(certificate, own.policy)
    lower, upper = objective.range
    for claim in certificate.claims:
        if claim.policy in ("pair", "unknown"):  # a difference is no value, what was done no best policy's
            continue
        exact = claim.policy == "free" if own_claims is None else claim.name in own_claims
        if exact or (own_claims is None and maximises):
            lower = max(lower, claim.lower)
        if exact or (own_claims is None and not maximises):
            upper = min(upper, claim.upper)
    return decide(*own.limit, lower, upper)


def worth(verdict: Verdict) -> Worth:
    """The verdict as all surfaces show it; a check that fails is an assumption that is not kept."""
    assumed = [Assumed(name, Kept(status), words) for name, status, words in verdict.assumptions]
    failed = [f"{one.name}: {one.detail}" for one in verdict.checks if not one.passed]
    if failed:
        assumed.insert(0, Assumed("proof", Kept.NO, failed[0]))
    undecided = "the bounds lie on both sides of the threshold" if verdict.answer == "not certified" else None
    whole = Worth.of(assumed, contradicted=verdict.contradicted)
    return Worth.of(assumed, limit=undecided) if whole.is_proved else whole


def headline(verdict: Verdict, certificate: Certificate) -> str:
    """The verdict in one line that a layman reads, before everything else."""
    if verdict.contradicted is not None:
        return f"CONTRADICTED: {verdict.contradicted}; nothing is proved"
    failed = [f"{one.name}: {one.detail}" for one in verdict.checks if not one.passed]
    if failed:
        return f"NOT VALID: {failed[0]}"
    claim, data = certificate.claims[0], certificate.problem.data
    objective = certificate.problem.objective
    pair = next((one for one in certificate.claims if one.pair is not None), None)
    if pair is not None and verdict.answer is None:
        unknown = any(one.policy == "unknown" for one in certificate.claims)
        ends = interval_text(pair.lower, pair.upper)
        whose = "what was done" if unknown else "the baseline"
        statement = f"the policy's value less that of {whose} lies within {ends}"
    elif claim.policy == "free" or verdict.answer in ("false", "not certified"):
        statement = f"the value lies within {interval_text(claim.lower, claim.upper)}"
    elif (objective.agent == "MAX") != objective.complement:
        statement = f"at least {text_below(claim.lower)}"
    else:
        statement = f"at most {text_above(claim.upper)}"
    if verdict.nominal:
        why = next(words for _, status, words in verdict.assumptions if status not in ("yes", "stated"))
        return f"NOMINAL: {statement}, which is not guaranteed: {why.removeprefix('NOMINAL: ')}"
    sure = "" if data is None else f" with confidence {confidence_text(data.total_delta)}"
    tied = [name for name, is_tied in verdict.bound.items() if is_tied]
    listed = " and ".join([", ".join(tied[:-1]), tied[-1]] if len(tied) > 1 else tied)
    of = f", of your {listed}" if tied else ", of what is written in the file"
    word = {None: "VALID: ", "true": "VALID: true, ", "false": "FALSE: "}.get(verdict.answer, "UNDECIDED: ")
    return f"{word}{statement}{sure}{of}"


def confidence_text(delta: float) -> str:
    """1 − δ, which is never 1."""
    short = f"{1 - delta:.9g}"
    return f"1 - {delta:g}" if short == "1" else short


def without_numbers(model: Any, data: Any) -> tuple[Any, Any]:
    """A model of numbers alone as `learn` takes it: the numbers are not used, and the counts are of that."""
    from tightrope.learning.learn import counted_anew
    from tightrope.model.mdp import MDP
    from tightrope.model.parametric_mdp import ParametricMDP

    if not isinstance(model, MDP | ParametricMDP) or (isinstance(model, ParametricMDP) and model.parameters):
        return model, data
    free = ParametricMDP.without_numbers(model)
    return free, counted_anew(data, model, free)


def _own(model: Any, property: Any, at: Any, data: Any, policy: Any, translator: str | None) -> Own:
    from tightrope.continuous.discrete import embed
    from tightrope.learning.learn import counts_of
    from tightrope.model.continuous import CTMC
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.problem import require_discrete

    timed = isinstance(model, CTMC)
    own = require_discrete(embed(model) if timed else model)
    objective, limit = (None, None) if property is None else _objective(own, property, translator, timed)
    counts = None if data is None else counts_of(data, own)
    theta = None
    if isinstance(own, ParametricMDP) and (at is not None or not own.parameters.names):
        theta = own.parameters.point({} if at is None else at)
    elif at is not None:
        raise InputError("`at` goes with parametric models, and this one has no parameters")
    return Own(own, objective, theta, counts, _as_policy(own, policy), limit)


def _as_policy(model: Any, given: Any) -> Policy | None:
    """A policy as it is, of whatever structure; anything else as one of the model, or refused in words."""
    from tightrope.model.policy import Policy, as_policy

    return given if isinstance(given, Policy) else as_policy(model, given)


def _own_controller(
    pomdp: Any, property: Any, at: Any, data: Any, policy: Any, certificate: Certificate
) -> Own:
    from tightrope.learning.learn import counts_of
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.model.pomdp import controller_of
    from tightrope.problem import Problem

    model = pomdp.model
    query = None if property is None else Problem(pomdp, property).query
    parametric = isinstance(model, ParametricMDP) and certificate.problem.law != "domain"
    theta = model.parameters.point(at or {}) if parametric else None
    counts = None if data is None else counts_of(data, model)
    controller = None if policy is None else controller_of(pomdp, policy)
    if query is None:
        return own_controller(pomdp, None, theta, counts, controller, None, certificate)
    return own_controller(pomdp, query.objective, theta, counts, controller, query.limit, certificate)


def own_controller(
    pomdp: POMDP,
    objective: Any,
    theta: Sequence[Fraction] | None,
    counts: Counts | None,
    controller: Controller | None,
    limit: tuple[str, Fraction] | None,
    certificate: Certificate,
) -> Own:
    """What the user has of a partially observable model, as what its certificates are about."""
    from tightrope.certify.observed import as_certified, only_policy

    recipe, law = certificate.about.get("beliefs"), certificate.problem.law
    if (recipe is None or law == "domain") and any(claim.policy == "free" for claim in certificate.claims):
        raise CannotCertify(
            "this certificate is about the chain of one controller, and claims the value of the best one"
        )
    model, asks, seen = as_certified(pomdp, objective, theta, counts, controller, certificate.problem, recipe)
    point = theta if law == "point" else None
    return Own(model, asks, point, seen, only_policy(model), limit, is_controlled=True)


def _objective(
    model: Any, property: Any, translator: str | None, timed: bool
) -> tuple[Objective | Asked, tuple[str, Fraction] | None]:
    """What a property asks of a model, and its threshold; a long-run average or a temporal formula is read
    for itself. `timed`: the model is the jumps of a chain in continuous time, of which nothing that speaks of
    time is asked."""
    from tightrope.certify.problem import asked_of
    from tightrope.model.mdp import IntervalMDP, counts_steps
    from tightrope.prism.parse.parser import parse_properties
    from tightrope.prism.properties.capabilities import has_own_certificate
    from tightrope.prism.properties.query import pick, read_query
    from tightrope.prism.properties.resolve import PropertyOptions
    from tightrope.prism.properties.shape import EMBEDDED, kind_of, refuse_time
    from tightrope.problem import Problem

    if isinstance(property, str):
        file = parse_properties(property, "`property`")
        if timed:
            refuse_time(file, EMBEDDED)
        if has_own_certificate(kind_of(pick(file).formula, file)):
            options = PropertyOptions(is_interval=isinstance(model, IntervalMDP))
            question = asked_of(read_query(pick(file), file, model.structure, options), translator)
            if question.sides is not None:
                warnings.warn(question.sides.warning, ReadingWarning, stacklevel=4)
            return question, question.limit
    query = Problem(model, property).query
    objective = query.objective
    if timed and counts_steps(objective):
        raise InputError("the objective counts steps: of a chain in continuous time they are jumps, not time")
    return objective, query.limit


def compare(certificate: Certificate, own: Own | OwnChain) -> tuple[dict[str, bool | None], str | None]:
    """What was found to be the user's own, and the first thing that is not, in words."""
    bound = unbound(certificate)
    differences = _compare(certificate, own) if isinstance(own, Own) else own.differences(certificate)
    for name, trouble in differences:
        if trouble is not None:
            return bound, f"this certificate is about {trouble}"
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
    theirs = _problem(certificate, own)
    ours = replace(theirs, objective=problem.objective, automaton=problem.automaton, data=problem.data)
    if own.objective is None and problem.objective.earned is not None and problem.polynomial is not None:
        known = ours.polynomial or ()  # rewards are a part of the property
        ours = replace(ours, polynomial=(*known, *problem.polynomial[len(known) :]))
    controlled = " or another controller" if own.is_controlled else ""
    yield "model", name_difference(f"another model{controlled}", first_difference(problem, ours))
    if own.objective is not None:
        believed, translated = problem.automaton, theirs.automaton
        if believed and translated and believed.believed and not translated.believed:
            yield (
                "property",
                "an automaton that another program made of a formula; `ltl_translator` names the program "
                "that translates yours",
            )
            return
        other = replace(problem, automaton=theirs.automaton)
        differs = first_difference(problem.objective, theirs.objective) or first_difference(problem, other)
        yield "property", name_difference(f"another property{controlled}", differs)
    if own.counts is not None:
        yield "data", _data_difference(certificate, own, own.counts)
    if own.is_controlled:
        yield "policy", None
    elif own.policy is not None:
        yield "policy", _policy_difference(certificate, own.policy)
    if own.baseline is not None:
        yield "baseline", _side_difference(certificate, own.baseline, 1)


def _data_difference(certificate: Certificate, own: Own, counts: Counts) -> str | None:
    from tightrope.certify.learned import to_data, with_episodes
    from tightrope.statistics.costs import CostModel

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
    rebuilt = to_data(counts, statement.delta, statement.method, statement.shared_by, assumed)
    if statement.seen is not None and statement.seen_delta is not None:
        found = _scored(certificate, own, counts, statement.seen_delta.tolist())
        if isinstance(found, str):
            return found
        rebuilt = with_episodes(rebuilt, found, problem)
    rebuilt = replace(rebuilt, prior=statement.prior)  # which is stated, and in no data
    return name_difference("other data", first_difference(statement, rebuilt))


def _scored(certificate: Certificate, own: Own, counts: Counts, about: list[float]) -> ObservedOutcomes | str:
    """What the user's own episodes come to, counted again, or why they do not; `about` is δ, and what returns
    lie between. Of a process with choices they are taken to be those of the given policy, as the certificate
    says that it assumes, or of whoever acted, where it is about what was done."""
    from tightrope.certify.problem import Asked
    from tightrope.learning.outcomes import Unobserved, observe, observe_done
    from tightrope.learning.products import TemporalFormulas
    from tightrope.model.objective import Objective
    from tightrope.model.policy import Policy
    from tightrope.problem import Problem

    question = own.objective.query if isinstance(own.objective, Asked) else own.objective
    if question is None:
        return "what episodes came to, which is counted by the property: give yours as well"
    problem = Problem(own.model, question)
    if not isinstance(question, Objective):
        with warnings.catch_warnings(action="ignore"):
            problem = TemporalFormulas().apply(problem)
    policy = None
    for claim in certificate.claims:
        weights = claim.weights(certificate.problem.graph.choices)
        if claim.name == "given policy" and weights is not None:
            policy = Policy(own.model, weights[: own.model.structure.choices])
    ends = (about[1], about[2] if about[2:] else math.inf) if about[1:] else None
    try:
        if any(claim.policy == "unknown" for claim in certificate.claims):  # its range is the model's own
            seen = observe_done(problem, counts, about[0])
        else:
            seen = observe(problem, counts, about[0], policy=policy, behaviour=policy, return_range=ends)
    except InputError as error:
        return f"episodes of other data: {error.message}"
    return f"episodes of other data: {seen.reason}" if isinstance(seen, Unobserved) else seen


def _claims_of(certificate: Certificate, policy: Policy) -> list[str]:
    """The claims that are about a policy."""
    from tightrope.certify.solved import choices_by_step

    objective, same = certificate.problem.objective, []
    for claim in certificate.claims:
        weights = claim.weights(certificate.problem.graph.choices)
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
    return same


def _policy_difference(certificate: Certificate, policy: Policy) -> str | None:
    """The user's policy is the one that a claim calls given, or where there is none that of another claim."""
    if certificate.problem.automaton is not None and certificate.claims[0].name != "given policy":
        return "policies with a memory, and yours has none"
    if any(claim.pair is not None for claim in certificate.claims):
        return _side_difference(certificate, policy, 0)
    same = _claims_of(certificate, policy)
    given = any(claim.name == "given policy" for claim in certificate.claims)
    if not same:
        return "other policies than the given one"
    if given and "given policy" not in same:
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


def _problem(certificate: Certificate, own: Own) -> CertifiedProblem:
    """The problem of the user's own model and question; data are compared apart."""
    from tightrope.certify.problem import to_problem
    from tightrope.model.mdp import IntervalMDP

    problem, objective = certificate.problem, own.objective
    if problem.law == "point" and own.theta is None:
        raise InputError(
            "this certificate is about one point of the model", hint='give the point, with `at={"p": …}`'
        )
    model, question = own.model, problem.objective
    whole = objective is None and question.kind in (*RUNS, "DISCOUNTED")  # what has no meaning within a step
    if isinstance(model, IntervalMDP) and (whole or problem.graph.states == model.states):
        model = model.without_factors  # it is about the joint bounds, which enclose the factors
    rebuilt = to_problem(
        model,
        objective if objective is not None else _nothing(own.model, question),
        theta=own.theta if problem.law == "point" else None,
        assumed_support=problem.assumed_support,
    )
    return replace(rebuilt, misfit=problem.misfit)


def _nothing(model: Any, question: CertifiedObjective) -> Objective:
    """An objective that stands where none is compared; it counts steps where the certificate's does."""
    from tightrope.model.objective import Direction, Objective, ObjectiveKind

    nowhere = np.zeros(model.structure.states, dtype=np.bool_)
    steps = None if question.steps is None and question.lower_steps == 0 else 1
    return Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MAX, target=nowhere, upper_steps=steps)
