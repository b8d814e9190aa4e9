"""`check` of partially observable models: both ends of what a controller can reach, and the controller."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET

from tightrope.cli.check_answers import Answered, PropertyAnswer, report_answers
from tightrope.cli.options import refuse_options
from tightrope.cli.output import leave, phase_progress
from tightrope.errors import InputError
from tightrope.model.parameters import parse_point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP, controller_of
from tightrope.prism.properties.query import Query
from tightrope.solver.solution import OPEN
from tightrope.verdict import Worth

if TYPE_CHECKING:
    from tightrope.cli.check import CheckRequest
    from tightrope.io.output import OutputFile

NOT_PARTIAL = "sets misfit assume_support coupled_gap ltl_translator figure all_states terminal_reward"
"""Options that do not go with partially observable models."""

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
    from tightrope.beliefs.solve import closeness, solve_partial, value_of

    pomdp: POMDP = loaded.model
    refuse_options(request, NOT_PARTIAL, "it does not go with partially observable models")
    if len(queries) > 1 and (target is not None or certificate is not None):
        raise InputError(f"--certificate and --policy-out go with one property, not {len(queries)}")
    if certificate is not None and request.policy is not None:
        raise InputError(
            "--certificate goes with the best controller of a known model",
            hint="leave --policy out; of a given controller `learn` writes certificates",
        )
    point: Sequence[Any] = ()
    if isinstance(pomdp.model, ParametricMDP):
        names = pomdp.model.parameters.names
        point = _point(request.at, pomdp) if names or request.at else ()
    elif request.at is not None:
        raise InputError("--at goes with parametric models, this one has no parameters")
    given = None if request.policy is None else controller_of(pomdp, request.policy)
    limits = {"work": WORK} if request.time_limit is None else {"seconds": request.time_limit}
    answers = []
    for query in queries:
        objective = query.objective
        with phase_progress() as progress:
            progress("solve")
            if given is None:
                solved = solve_partial(
                    pomdp,
                    objective,
                    point=point,
                    precision=closeness(request.precision),
                    relative=not request.absolute,
                    **limits,
                )
            else:
                solved = value_of(pomdp, objective, given, request.precision, point)
        truth = query.answer(solved.lower, solved.upper) if query.is_threshold else None
        answered = solved.is_certified if truth is None else truth != OPEN
        verdict = Worth.of(limit=None if answered else f"{query.text}: {solved.status}")
        whose = (
            "the given controller" if given is not None else "every controller that sees observations only"
        )
        notes = [f"the bounds are about {whose}"]
        if given is None:
            found = (
                f"{solved.beliefs:,} beliefs expanded; the controller has {solved.controller.nodes:,} nodes"
            )
            notes.append(f"looked for: bounds within {closeness(request.precision):g} of each other")
            notes.append(f"gap {solved.upper - solved.lower:.3g}, {found}")
        record = PropertyAnswer(
            verdict=verdict.word,
            why=verdict.why,
            assumptions=[],
            question=query.text,
            name=query.name or UNSET,
            lower=solved.lower,
            upper=solved.upper,
            status="certified" if answered else "limit",
            answer=truth or UNSET,
            notes=notes,
        )
        answers.append(Answered(query, cast(Any, solved), solved.seconds, record))
    verdict = Worth.worst([answer.verdict for answer in answers])
    report_answers(loaded, answers, verdict, request.json)
    sys.stdout.flush()
    if target is not None:
        result: Any = answers[0].result
        target.check()
        low, high = result.attained
        result.controller.save(target.path, {"property": queries[0].text, "lower": low, "upper": high})
    if certificate is not None:
        _certify(certificate, answers[0].result, queries[0].text)
    leave(verdict)


def _certify(target: OutputFile, solved: Any, text: str) -> None:
    from tightrope.certify.certificate_file import save_certificate
    from tightrope.certify.observed import certificate_of_controller, certified_words

    if solved.graph is None:
        raise InputError(f"{text} is decided where a play begins: there is nothing to certify")
    about = certified_words(solved.pomdp, text)
    proof = certificate_of_controller(solved.graph, solved.controller, about)
    target.check()
    save_certificate(proof, target.path)


def _point(at: str | None, pomdp: POMDP) -> Sequence[Any]:
    assert isinstance(pomdp.model, ParametricMDP)
    parameters = pomdp.model.parameters
    if at is None:
        raise InputError(
            f"the model has parameters: {parameters.listed}",
            hint=f"say where to look with --at {parameters.example(',')}",
        )
    return tuple(parse_point(at, parameters.names, "--at"))
