"""Verifying a certificate, and tying it to one's own model, property, data and policy.

A certificate is about the problem that is written in it. Here that problem is built again, from what the user
trusts, and compared with the one in the file, field by field. Options of the statement (δ, the method, the
sets, an assumed support) are the file's; what they mean is in the verdict's own words.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.certificate.budget import Budget
from tightrope.certificate.checker import check, unbound
from tightrope.certificate.claim import Certificate
from tightrope.certificate.format.archive import load
from tightrope.certificate.format.differences import first_difference
from tightrope.certificate.numbers import FLOAT64, RATIONAL
from tightrope.certificate.problem import Problem
from tightrope.certificate.verdict import MEANING, Verdict
from tightrope.errors import CannotCertify, InputError, ReadingWarning, check_type
from tightrope.model.factored import JOINT_BOUNDS

if TYPE_CHECKING:
    from tightrope.data.counts import Counts
    from tightrope.formats.policy import Policy
    from tightrope.model.continuous import CTMC
    from tightrope.model.mdp import MDP, IntervalMDP
    from tightrope.model.objective import Objective
    from tightrope.model.parameters import Point
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.proof.asked import Asked


@dataclass(frozen=True, eq=False)
class Own:
    """What the user has: a model (at a point), what is asked of it, data, a policy."""

    model: MDP | IntervalMDP | ParametricMDP
    objective: Objective | Asked | None = None
    theta: Sequence[Fraction] | None = None
    counts: Counts | None = None
    policy: Policy | None = None


def verify(
    certificate: str | Path,
    *,
    model: MDP | IntervalMDP | ParametricMDP | CTMC | None = None,
    property: Objective | str | None = None,
    at: Point | None = None,
    data: Any = None,
    policy: Policy | None = None,
    ltl_translator: str | None = None,
    exact: bool = False,
    budget: float | str | None = None,
) -> Verdict:
    """Check a certificate; with a model, a property, data or a policy of one's own, check that it is about
    these.

    A `CTMC` stands for its embedded chain, which certificates of chains in continuous time are about.
    `data` are counts, or a log as `read_data` takes it. `ltl_translator` is the command that makes LTL an
    automaton, where the certificate's was made by another program, too. `budget`: the work that the check may
    take, 600 (seconds), "10min" or "10x"; beyond it, and beyond 60 s without it (600 s if `exact`), it is
    refused before it is done.

    A `CannotCertify` names the first field in which the certificate speaks of something else. Whether it
    proves its claims is the verdict's `valid`; what was not tied to anything, its `not_tied`.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> problem = model.problem('Pmax=? [ F "heads" ]')
    >>> result = tr.learn(problem, [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20, delta=0.01)
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     proved = result.certify(os.path.join(folder, "coin.cert"))
    ...     verdict = tr.verify(os.path.join(folder, "coin.cert"), model=model)
    >>> verdict.valid, verdict.not_tied
    (True, ('property', 'data', 'policy'))
    """
    if model is None and not (property is None and data is None and policy is None and at is None):
        raise InputError(
            "a property, data, a point or a policy can only be compared beside a model", hint="add `model`"
        )
    check_type("certificate", certificate, str | Path, "the name of a file")
    allowed = Budget.of(budget, exact)
    loaded = load(certificate, allowed).certificate
    if at is not None and loaded.problem.law != "point":
        raise InputError("`at` goes with certificates about a point, this one is about none")
    bound, words = unbound(loaded), tuple[str, ...]()
    if model is not None:
        own = _own(model, property, at, data, policy, ltl_translator)
        bound, trouble = compare(loaded, own)
        if trouble is not None:
            raise CannotCertify(trouble)
        words = readings(loaded, own)
    return tie_verdict(check(loaded, RATIONAL if exact else FLOAT64, allowed), bound, words)


def tie_verdict(verdict: Verdict, bound: Mapping[str, bool | None], words: tuple[str, ...] = ()) -> Verdict:
    """A verdict beside what was found to be the user's own, and how that was read: an automaton that is the
    translation of the user's property means what it says."""
    assumes = [one for one in verdict.assumes if one != MEANING or not bound["property"]]
    return replace(verdict, bound=bound, assumes=(*assumes, *words))


def readings(certificate: Certificate, own: Own) -> tuple[str, ...]:
    """What a certificate took the user's model for, where it can be read in two ways."""
    from tightrope.model.mdp import IntervalMDP

    joint = isinstance(own.model, IntervalMDP) and own.model.factored is not None
    return (JOINT_BOUNDS,) if joint and certificate.problem.graph.states == own.model.states else ()


def _own(model: Any, property: Any, at: Any, data: Any, policy: Any, translator: str | None) -> Own:
    from tightrope.continuous.discrete import embed
    from tightrope.learning.learn import counts_of
    from tightrope.model.continuous import CTMC
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.problem import require_model

    timed = isinstance(model, CTMC)
    own = require_model(embed(model) if timed else model)
    objective = None if property is None else _objective(own, property, translator, timed)
    counts = None if data is None else counts_of(data, own)
    theta = None
    if isinstance(own, ParametricMDP) and (at is not None or not own.parameters.names):
        theta = own.parameters.point({} if at is None else at)
    elif at is not None:
        raise InputError("`at` goes with parametric models, and this one has no parameters")
    return Own(own, objective, theta, counts, policy)


def _objective(model: Any, property: Any, translator: str | None, timed: bool) -> Objective | Asked:
    """What a property asks of a model; a long-run average or a temporal formula is read for itself. `timed`:
    the model is the jumps of a chain in continuous time, of which nothing that speaks of time is asked."""
    from tightrope.model.factored import counts_steps
    from tightrope.model.mdp import IntervalMDP
    from tightrope.prism.parse.parser import parse_properties
    from tightrope.prism.properties.resolve import PropertyOptions, pick
    from tightrope.prism.properties.shape import EMBEDDED, refuse_time
    from tightrope.problem import Problem
    from tightrope.proof.asked import asked_of, is_certifiable

    if isinstance(property, str):
        file = parse_properties(property, "`property`")
        if timed:
            refuse_time(file, EMBEDDED)
        if is_certifiable(pick(file)):
            options = PropertyOptions(constants={}, is_interval=isinstance(model, IntervalMDP))
            asked = asked_of(pick(file), file, model.structure, options, translator)
            if asked.sides is not None:
                warnings.warn(asked.sides.warning, ReadingWarning, stacklevel=4)
            return asked
    objective = Problem(model, property).objective
    if timed and counts_steps(objective):
        raise InputError("the objective counts steps: of a chain in continuous time they are jumps, not time")
    return objective


def compare(certificate: Certificate, own: Own) -> tuple[dict[str, bool | None], str | None]:
    """What was found to be the user's own, and the first thing that is not, in words."""
    bound = unbound(certificate)
    for name, trouble in _compare(certificate, own):
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
    theirs = _problem(certificate, own)
    ours = replace(theirs, objective=problem.objective, automaton=problem.automaton, data=problem.data)
    if own.objective is None and problem.objective.earned is not None and problem.polynomial is not None:
        known = ours.polynomial or ()  # rewards are a part of the property
        ours = replace(ours, polynomial=(*known, *problem.polynomial[len(known) :]))
    yield "model", _differs("another model", first_difference(problem, ours))
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
        yield "property", _differs("another property", differs)
    if own.counts is not None:
        yield "data", _data_difference(problem, own.counts)
    if own.policy is not None:
        yield "policy", _policy_difference(certificate, own.policy)


def _data_difference(problem: Problem, counts: Counts) -> str | None:
    from tightrope.proof.data import to_data
    from tightrope.statistics.costs import CostModel

    statement = problem.data
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
    found = to_data(counts, statement.delta, statement.method, statement.shared_by, assumed)
    return _differs("other data", first_difference(statement, found))


def _policy_difference(certificate: Certificate, policy: Policy) -> str | None:
    """The user's policy is the one that a claim calls given, or where there is none that of another claim."""
    if certificate.problem.automaton is not None:
        return "policies with a memory, and yours has none"
    same = []
    for claim in certificate.claims:
        taken = claim.weight
        if claim.choice is not None:
            taken = np.zeros(certificate.problem.graph.choices)
            taken[claim.choice] = 1.0
        own = len(policy.probability)  # behind these, states in the middle of a step have one choice each
        if taken is not None and np.array_equal(taken[:own], policy.probability):
            same.append(claim.name)
    given = any(claim.name == "given policy" for claim in certificate.claims)
    if not same:
        return "other policies than the given one"
    if given and "given policy" not in same:
        return f"another policy: yours is its {same[0]}, and its given policy is another one"
    return None


def _differs(what: str, field: str | None) -> str | None:
    return None if field is None else f"{what}: '{field}' differs"


def _problem(certificate: Certificate, own: Own) -> Problem:
    """The problem of the user's own model and question; data are compared apart."""
    from tightrope.model.mdp import IntervalMDP
    from tightrope.proof.problem import to_problem

    problem, objective = certificate.problem, own.objective
    if problem.law == "point" and own.theta is None:
        raise InputError(
            "this certificate is about one point of the model", hint='give the point, with `at={"p": …}`'
        )
    model = own.model
    if isinstance(model, IntervalMDP) and problem.graph.states == model.states:
        model = model.without_factors  # it is about the joint bounds, which enclose the factors
    return to_problem(
        model,
        objective if objective is not None else _nothing(own.model),
        theta=own.theta if problem.law == "point" else None,
        assumed_support=problem.assumed_support,
    )


def _nothing(model: Any) -> Objective:
    """An objective that stands where none is compared."""
    from tightrope.model.objective import Direction, Objective, ObjectiveKind

    nowhere = np.zeros(model.structure.states, dtype=np.bool_)
    return Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MAX, target=nowhere)
