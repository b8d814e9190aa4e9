"""`certify`: write the certificate of an answer, for `verify` and other checkers.

It takes a result of learning or of bounding over a domain, or a problem, which is solved first: plain values,
temporal formulas, long-run averages. The certificate is about the model itself: for a parametric one at a
point, about its exact expressions there.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from fractions import Fraction
from os import PathLike
from typing import TypeAlias, Unpack, cast

from tightrope.atomic import path_of
from tightrope.beliefs.robust import RobustController
from tightrope.beliefs.solve import PartialSolution
from tightrope.certify.certificate_file import CertificateFile, Shown, answered_file, shown_value
from tightrope.certify.learned import certificate_of, composed_of, is_composed
from tightrope.certify.observed import controller_certificate
from tightrope.certify.problem import asked_of, provable
from tightrope.certify.rates import learned_rate_certificate, rate_certificate, rate_problem
from tightrope.certify.region import goes_by_intervals
from tightrope.certify.solved import about_problem, refuse_steps, solved_file
from tightrope.errors import CannotCertify, InputError, ReadingWarning, check_keywords, check_number
from tightrope.io.output import CERTIFICATE, OutputFile, claim_file
from tightrope.io.results import Interval
from tightrope.learning.answers import LearnedAnswer
from tightrope.learning.differences import Comparison
from tightrope.learning.doctor import AmendedAnswer
from tightrope.learning.rates import JOINT_METHOD, RateResult
from tightrope.learning.result import LearningResult
from tightrope.learning.solve import solve_observed
from tightrope.logic.model_checking import Answer, check_query
from tightrope.logic.product_problem import ProductLift
from tightrope.logic.timed import RateBounds, bound_over_rates
from tightrope.model.continuous import CTMC, ParametricCTMC, over_box
from tightrope.model.mdp import JOINT_BOUNDS, IntervalMDP
from tightrope.model.parameters import Point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.pomdp import POMDP, Controller, controller_of
from tightrope.prism.properties.capabilities import has_own_certificate
from tightrope.problem import AnyModel, Problem, problem_of, require_discrete
from tightrope.solver.solution import Solution, SolveOptions
from tightrope.solver.solve import SolveWords, solve
from tightrope.verdict import Word
from tightrope_check.problem import Certificate

BY_RATES = (
    "the certificate depends on an interval for every rate, not on the likelihood of all rates together: it "
    "may prove less than the answer says"
)
BY_INTERVALS = (
    "probabilities of this model are quotients: the certificate depends on an interval for every event, at "
    "every choice anew, and may prove less than the answer says"
)
OVER_THE_SETS = (
    "values were also bounded along themselves, by quadratics on a ball that certificates do not cover: this "
    "one proves the interval over the sets, which may be wider than the answer's"
)

Learned: TypeAlias = LearningResult | LearnedAnswer | RateResult | Comparison
"""What data have shown, and certificates hold."""


def certify(
    subject: Problem | Learned | AmendedAnswer,
    path: str | PathLike[str],
    *,
    at: Point | None = None,
    policy: object = None,
    precision: float = 1e-6,
    ltl_translator: str | None = None,
    overwrite: bool = False,
    **options: Unpack[SolveWords],
) -> dict[str, Interval]:
    """Write the certificate of an answer.

    Parameters
    ----------
    subject
        A result of `learn`, `compare` or `improve`, an answer of `doctor` on a revised model, or a problem.
    path : str or path
        A file that is not one of our certificates is refused, unless `overwrite` is set.
    at : mapping, optional
        The point of a parametric model; a chain in continuous time without it is certified over its domain.
    policy, precision, **options
        As for `solve`; with discounts, synchronised intervals are their joint bounds.
    ltl_translator : str, optional
        As for `solve`.

    Returns
    -------
    dict of str to Interval
        The proved interval of each policy. An internal error is raised if it contradicts the answer.

    Examples
    --------
    >>> import os, tempfile
    >>> import tightrope as tr
    >>> rows = [(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})]
    >>> problem = tr.build_from_rows(rows, labels={"end": [1]}).problem('Pmin=? [ F "end" ]')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     proved = tr.certify(problem, os.path.join(folder, "end.cert"))
    ...     verdict = tr.verify(os.path.join(folder, "end.cert"), model=problem.model)
    >>> verdict.valid, verdict.values, proved["value"].width
    (True, {'value': (1.0, 1.0)}, 0.0)

    A share of time, or the probability of a temporal formula:

    >>> rows = [(0, "go", {0: 0.5, 1: 0.5}), (1, "back", {0: 1})]
    >>> share = tr.Problem(tr.build_from_rows(rows, labels={"end": [1]}), 'S=? [ "end" ]')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     low, high = tr.certify(share, os.path.join(folder, "end.cert"))["value"]
    >>> low <= 1 / 3 <= high
    True
    """
    chosen: dict[str, str] = {}
    plain = at is None and policy is None and ltl_translator is None
    if isinstance(subject, AmendedAnswer):
        chosen = {"selection": f"{subject.amended.amendment.text}: {subject.selection.why}"}
        subject = _proved(subject)
    is_answer = isinstance(subject, LearnedAnswer) and subject.optimistic is None  # no average
    if isinstance(subject, Learned) and not is_answer:
        if options or not plain:
            raise InputError("a learned result takes no options: its certificate is about what was learned")
        claimed = claim_file(path_of(path), CERTIFICATE, overwrite)
        return _save(learned_file(subject, about=chosen), claimed)
    problem = problem_of(subject)
    words = check_keywords("certify", SolveWords, options)
    model = problem.model
    if isinstance(model, POMDP) and (ltl_translator is not None or set(words) - {"seconds"}):
        raise InputError(
            "a certificate of a partially observable model takes only a point, a policy, a precision and "
            "seconds"
        )
    if isinstance(model, ParametricCTMC | CTMC) and (
        words or policy is not None or ltl_translator is not None
    ):
        raise InputError("a certificate of a chain in continuous time takes only a point and a precision")
    theta = _point(model, at)
    claimed = claim_file(path_of(path), CERTIFICATE, overwrite)
    effort = SolveOptions(precision, translator=ltl_translator, **words)
    solved, given = _solved(problem, theta, effort, policy)
    source = {} if theta is None else {"at": [str(value) for value in theta]}
    return _save(certificate_file(problem, solved, theta, effort, given, source), claimed)


def _proved(answer: AmendedAnswer) -> LearningResult:
    """The result on a revised model, which was chosen without the data that it is learned from."""
    if answer.groups is not None:
        raise InputError(
            "certificates do not cover answers for groups: each uses predictions from all groups",
            hint="`split=COLUMN` has the same parameters, each learned alone, and is certified",
        )
    if answer.verdict.word is not Word.PROVED or not isinstance(answer.result, LearningResult):
        raise InputError(
            f"the answer on the revised model is not proved, so there is nothing to certify: "
            f"{answer.verdict.why or answer.selection.why}",
            hint="ask a question, and choose on one part of the log: `select_on`",
        )
    return answer.result


def certificate_file(
    problem: Problem,
    solved: object,
    theta: tuple[Fraction, ...] | None,
    effort: SolveOptions,
    policy: Policy | Controller | None = None,
    about: Mapping[str, object] | None = None,
    verify: bool = True,
) -> CertificateFile:
    """What proves an answer, about the model as it was given: at the point `theta`, or over its domain."""
    model, query = problem.model, problem.query
    words = {**about_problem(problem), **(about or {})}
    result = solved.result if isinstance(solved, RobustController) else solved
    if isinstance(result, Learned):
        return learned_file(result, about=words, verify=verify)
    if isinstance(model, POMDP):
        assert isinstance(solved, PartialSolution | RobustController) and not isinstance(policy, Policy)
        parts = controller_certificate(problem, solved, theta or (), effort.precision, policy, words)
        return answered_file(*parts, verify)
    if isinstance(model, ParametricCTMC | CTMC):
        assert isinstance(solved, RateBounds | Answer)
        ends = (solved.lower, solved.upper) if isinstance(solved, RateBounds) else solved.bounds
        shown = shown_value(ends, None if isinstance(solved, RateBounds) else solved.truth, query)
        proof = rate_certificate(rate_problem(model, query, theta), words, effort.precision)
        return answered_file(proof, shown, verify)
    assert isinstance(solved, Solution | Answer | None) and not isinstance(policy, Controller)
    return solved_file(problem, solved, theta, effort, policy, words, verify)


def learned_certificate(result: Learned, about: Mapping[str, object] | None = None) -> Certificate:
    """The certificate of any result of learning that has one."""
    if isinstance(result, RateResult):
        source = {"model_hash": result.model.hash(), "property": result.question}
        return learned_rate_certificate(result, {**source, **(about or {})})
    about = {"model_hash": result.problem.base.hash(), "property": result.problem.text, **(about or {})}
    if isinstance(result, Comparison):
        return certificate_of_difference(result, about)
    if is_composed(result):
        return composed_of(result, about)
    assert isinstance(result, LearningResult)
    return certificate_of(result, about=about)


def learned_file(
    result: Learned, about: Mapping[str, object] | None = None, verify: bool = True
) -> CertificateFile:
    """The same as it is written, if the data fit the model, it agrees with the result, and the checker
    confirms it; without `verify` a large one is not checked."""
    if (why := why_refuted(result)) is not None:
        raise CannotCertify(why)
    return answered_file(learned_certificate(result, about), shown_result(result), verify)


def why_refuted(result: Learned) -> str | None:
    """Why nothing is certified on data that refute the model; of rates `learned_rate_certificate` says so."""
    fit = None if isinstance(result, RateResult) else result.fit
    if fit is None or not fit.is_refutation:
        return None
    return f"no certificate is written: {str(fit.misfit).partition('. Worst')[0]}"


def shown_result(result: Learned) -> Shown:
    """What a result says of each policy."""
    if isinstance(result, Comparison):
        # The difference to the logged behaviour rests on bets, that of the certificate on two parts.
        return Shown({"difference": result.interval}, result.baseline is None)
    if isinstance(result, RateResult):
        joint = result.ledger.method == JOINT_METHOD
        return Shown({"value": result.interval}, joint, (BY_RATES,) if joint else ())
    refuted = result.verdict.word is Word.CONTRADICTED
    if isinstance(result, LearnedAnswer):
        assert result.interval is not None
        return Shown({"robust policy" if result.given is None else "given policy": result.interval}, refuted)
    robust, lift = result.robust.interval, result.problem.lift
    if isinstance(lift, ProductLift) and lift.temporal is not None:
        best = result.optimistic_value
        robust = Interval.of(-math.inf, best) if result.problem.maximises else Interval.of(best, math.inf)
    given = {} if result.value is None else {"given policy": result.value.interval}
    other = goes_by_intervals(result.model, result.decisions.sets, result.decisions.region)
    apart = refuted or (other and result.counts is not None)
    notes = (BY_INTERVALS,) * other + (OVER_THE_SETS,) * result.decisions.along
    return Shown({"robust policy": robust, **given}, apart, notes)


def certificate_of_difference(one: Comparison, about: Mapping[str, object] | None = None) -> Certificate:
    """The certificate of the best policy of a comparison: its value, the baseline's, and the difference. That
    to what was done is of the two apart: what the policy is worth over the region, and what episodes
    returned."""
    return certificate_of(one.as_result(), one.counts, about, one.best.value, one.baseline is None)


def _save(file: CertificateFile, claimed: OutputFile) -> dict[str, Interval]:
    """Write the file; the interval of every claim."""
    file.save(claimed.checked())
    return {name: Interval.of(low, high) for name, (low, high) in file.values.items()}


def _point(model: AnyModel, at: Point | None) -> tuple[Fraction, ...] | None:
    """The point of a parametric model; None over the domain of a chain in continuous time."""
    behind = model.model if isinstance(model, POMDP) else model
    if isinstance(behind, ParametricCTMC) and behind.parameters.names and at is None:
        return None
    if isinstance(behind, ParametricMDP | ParametricCTMC):
        return behind.parameters.point({} if at is None else at)
    if isinstance(behind, CTMC):
        return ()
    if at is not None:
        raise InputError("`at` requires a parametric model; this model has no parameters")
    return None


def _solved(
    problem: Problem, theta: tuple[Fraction, ...] | None, effort: SolveOptions, policy: object
) -> tuple[object, Policy | Controller | None]:
    """The answer, and the policy that was given; no answer of a temporal formula under one that draws."""
    model, query, support = problem.model, problem.query, effort.assume_support
    if isinstance(model, POMDP):
        controller = None if policy is None else controller_of(model, policy)
        return solve_observed(problem, controller, effort, theta or ()), controller
    if isinstance(model, ParametricCTMC | CTMC):
        if theta is None:
            assert isinstance(model, ParametricCTMC)
            box = over_box(model, model.parameters.lower, model.parameters.upper)
            return bound_over_rates(box, query, effort), None
        chain = model.instantiate(theta) if isinstance(model, ParametricCTMC) else model
        return check_query(query, chain, effort, everywhere=False), None
    model = require_discrete(model)
    given = as_policy(model, cast(PolicyGiven | None, policy))
    if has_own_certificate(query.kind):
        check_number("precision", effort.precision, 0, 1)
        if (reading := asked_of(query, effort.translator).reading) is not None:
            warnings.warn(reading, ReadingWarning, stacklevel=3)
        if isinstance(model, IntervalMDP) and model.factored is not None:
            warnings.warn(JOINT_BOUNDS, ReadingWarning, stacklevel=3)
        if given is not None and not given.is_deterministic:
            return None, given
        known = model.instantiate(theta) if isinstance(model, ParametricMDP) else model
        known = known.without_factors if isinstance(known, IntervalMDP) else known  # what it is about
        return check_query(query, known, effort, support, everywhere=False, policy=given), given
    refuse_steps(given, problem.objective)
    solved = problem if theta is None else problem.at(theta)
    if isinstance(model, IntervalMDP):
        solved = problem.with_model(provable(model, problem.objective, support))
        if solved.model is not model:
            warnings.warn(JOINT_BOUNDS, ReadingWarning, stacklevel=3)
    words = {name: getattr(effort, name) for name in SolveWords.__annotations__}
    return solve(solved, policy=given, precision=effort.precision, **words), given
