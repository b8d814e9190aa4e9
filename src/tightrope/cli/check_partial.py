"""`check` of partially observable models: both ends of what a controller can reach, and the controller."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET

from tightrope.beliefs.robust import RobustController
from tightrope.beliefs.solve import LATE, PartialSolution, closeness, solve_partial, value_of
from tightrope.cli.check_answers import Answered, PropertyAnswer, report_answers
from tightrope.cli.options import refuse_options
from tightrope.cli.output import leave, phase_progress
from tightrope.errors import InputError
from tightrope.learning.result import LearningResult
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parameters import parse_point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP, Controller, controller_of
from tightrope.numerics.text import interval_text
from tightrope.prism.properties.query import Query
from tightrope.problem import Problem
from tightrope.solver.solution import OPEN
from tightrope.verdict import Assessment, Word

if TYPE_CHECKING:
    from tightrope.cli.check import CheckRequest
    from tightrope.io.output import OutputFile

NOT_PARTIAL = "misfit open_share assume_support coupled_gap ltl_translator figure all_states terminal_reward"
"""Options that cannot be used with partially observable models."""

WORK = 100_000
"""How much work it does unless --time-limit is given: some ten seconds."""


def check_partial(
    request: CheckRequest,
    loaded: Any,
    queries: Sequence[Query],
    target: OutputFile | None,
    certificate: OutputFile | None,
) -> None:
    """Solve, print, write the controller and what proves its value."""
    from tightrope.learning.solve import solve as solve_any

    pomdp: POMDP = loaded.model
    refuse_options(request, NOT_PARTIAL, "it cannot be used with partially observable models")
    point: Sequence[Any] = ()
    robust = isinstance(pomdp.model, IntervalMDP)
    if isinstance(pomdp.model, ParametricMDP):
        names = pomdp.model.parameters.names
        robust = request.sets is not None and bool(names)
        if request.sets is not None and (not robust or request.at or request.sets.value != "coupled"):
            raise InputError(
                "--sets for a partially observable model is --sets coupled, without --at, and requires "
                "parameters",
                hint="leave --sets or --at out",
            )
        point = _point(request.at, pomdp) if (names or request.at) and not robust else ()
    elif request.at is not None or request.sets is not None:
        raise InputError("--at and --sets require a parametric model; this model has no parameters")
    if robust and certificate is not None and isinstance(pomdp.model, ParametricMDP):
        from tightrope.certify.region import refuse_uncertified

        refuse_uncertified(pomdp.model)
    given = None if request.policy is None else controller_of(pomdp, request.policy)
    close = closeness(request.precision)
    answers = []
    for query in queries:
        if pomdp.pace > 1:
            query = query.with_objective(pomdp.paced(query.objective), pomdp.structure)
        begin = time.perf_counter()
        with phase_progress() as progress:
            progress("solve")
            if robust:
                seconds = math.inf if request.time_limit is None else request.time_limit
                problem, own = Problem(pomdp, query), cast(Any, given)
                solved: Any = solve_any(problem, policy=own, precision=request.precision, seconds=seconds)
            elif given is None:
                limits = {"work": WORK} if request.time_limit is None else {"seconds": request.time_limit}
                relative = not request.absolute
                solved = solve_partial(
                    pomdp, query.objective, point=point, precision=close, relative=relative, **limits
                )
            else:
                solved = value_of(pomdp, query.objective, given, request.precision, point)
        lower, upper = (
            solved.bounds if isinstance(solved, PartialSolution | RobustController) else solved.interval
        )
        truth = query.answer(lower, upper) if query.is_threshold else None
        answered = _ended(solved) is None if truth is None else truth != OPEN
        verdict = Assessment.of(limit=None if answered else f"{query.text}: {_ended(solved) or 'left open'}")
        record = PropertyAnswer(
            **verdict.facts,
            question=query.text,
            name=query.name or UNSET,
            lower=lower,
            upper=upper,
            status="certified" if answered else "limit",
            answer=truth or UNSET,
            notes=_notes(solved, given is not None, close),
        )
        answers.append(Answered(query, solved, time.perf_counter() - begin, record))
    verdict = Assessment.worst([answer.verdict for answer in answers])
    report_answers(loaded, answers, verdict)
    sys.stdout.flush()
    if target is not None:
        result: Any = answers[0].result
        target.check()
        low, high = result.attained if isinstance(result, PartialSolution) else result.interval
        result.controller.save(target.path, {"property": queries[0].text, "lower": low, "upper": high})
    if certificate is not None:
        _certify(certificate, pomdp, queries[0], answers[0].result, given, point, request.precision)
    leave(verdict)


def _ended(solved: Any) -> str | None:
    """Why bounds are wider than was asked; None where they are not, or where no closeness was asked for."""
    if isinstance(solved, RobustController):
        return LATE if solved.cut else None
    if isinstance(solved, PartialSolution):
        return None if solved.is_certified else solved.status
    return None if solved.verdict.word is Word.PROVED else str(solved.status)


def _notes(solved: Any, is_given: bool, close: float) -> list[str]:
    """What the bounds are about."""
    if isinstance(solved, RobustController):
        better = "above" if solved.objective.maximises else "below"
        names = () if solved.where is None else solved.controller.pomdp.parameter_names
        at = ",".join(f"{name}={value}" for name, value in zip(names, solved.where or (), strict=False))
        return [
            f"the controller, of {solved.controller.nodes:,} nodes, guarantees {solved.guarantee:.6g}: its "
            f"value lies in {interval_text(*solved.interval)}, whatever the true model is",
            f"robust optimum: no controller guarantees anything {better} {solved.robust_optimum:.6g}, the "
            f"best at {len(solved.points)} single points"
            + (f" (check --at {at} --certificate FILE proves it)" if at else ""),
            f"true optimum: no controller has a value {better} {solved.true_optimum:.6g} in the true model, "
            "whatever it is",
        ]
    if is_given:
        return ["the bounds are about the given controller"]
    size = f"{solved.beliefs:,} beliefs expanded; the controller has {solved.controller.nodes:,} nodes"
    return [
        "the bounds are about every controller that sees observations only",
        f"looked for: bounds within {close:g} of each other",
        f"gap {solved.upper - solved.lower:.3g}, {size}",
    ]


def _certify(
    target: OutputFile,
    pomdp: POMDP,
    query: Query,
    solved: Any,
    given: Controller | None,
    point: Sequence[Any],
    precision: float,
) -> None:
    """Write what proves the answer: over a domain and of one controller about its chain, else both ends."""
    from tightrope.certify.certificate_file import answered_file, shown_value
    from tightrope.certify.certify import learned_file
    from tightrope.certify.observed import certificate_of_chain, certificate_of_controller, certified_words

    about = certified_words(pomdp, query.text)
    chosen = solved.controller if given is None and isinstance(solved, RobustController) else given
    result = solved.result if isinstance(solved, RobustController) else solved
    if isinstance(result, LearningResult):
        file = learned_file(result, about=about)
    elif chosen is not None:
        proof = certificate_of_chain(pomdp, query.objective, chosen, point, precision, about)
        file = answered_file(proof, shown_value((solved.interval.lower, solved.interval.upper)))
    elif solved.graph is None:
        raise InputError(f"{query.text} is decided in the initial state: there is nothing to certify")
    else:
        proof = certificate_of_controller(solved.graph, solved.controller, about)
        file = answered_file(proof, shown_value(solved.bounds))
    file.save(target.checked())


def _point(at: str | None, pomdp: POMDP) -> Sequence[Any]:
    assert isinstance(pomdp.model, ParametricMDP)
    parameters = pomdp.model.parameters
    if at is None:
        raise InputError(
            f"the model has parameters: {parameters.listed}",
            hint=f"say where to look with --at {parameters.example(',')}",
        )
    return tuple(parse_point(at, parameters.names, "--at"))
