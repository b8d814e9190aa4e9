"""`tightrope shield MODEL --data LOG --slack E -o S`: let any agent act within a guaranteed bound."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import tightrope as tr
from tightrope.cli import options
from tightrope.cli import output as screen
from tightrope.cli.options import SOLVING, declare, takes
from tightrope.cli.sources import Question, Study, temporal_product
from tightrope.errors import InputError
from tightrope.io.answers import ShieldAnswer
from tightrope.io.log_words import LOG_WORDS
from tightrope.io.output import SHIELD, refuse_same
from tightrope.numerics.text import bounded, claim_text, number_text, sure_text
from tightrope.shield.verification import rest_on
from tightrope.solver.solve import solve
from tightrope_check.archive import load

RESULT = "result.json"
MOST_REMOVED = 4
"""Actions that are printed; all of them are in the JSON."""


@dataclass(frozen=True, kw_only=True)
class ShieldRequest(options.StudyOptions):
    """The options of the command."""

    model: Annotated[
        str, typer.Argument(metavar="MODEL|RESULT", help="A model, or the directory of a result of 'learn'.")
    ]
    data: options.Data = None
    slack: float = declare(
        "--slack", "How much of the guaranteed bound the agent may give up in an episode.", "E", default=0.0
    )
    patience: int | None = declare(
        "--patience",
        "Steps of an episode that may bring the agent no nearer to its target, before the fallback policy "
        "takes over.",
        "N",
        min=0,
    )
    at: options.At = None
    assume_support: options.AssumeSupport = None
    precision: options.Precision = 1e-6
    time_limit: options.TimeLimit = None
    threads: options.Threads = None
    certificate: options.CertificateFile = None
    output: Path | None = declare("-o --output", "Write the shield, as JSON.", "FILE")


@takes(ShieldRequest, {"data": LOG_WORDS, "check": SOLVING})
def shield(request: ShieldRequest) -> None:
    """Compute a shield: any agent may act, and a guaranteed bound still holds for the whole run.

    Every choice has a price: what it gives up of the bound. An episode starts with the slack, and the agent
    may take any choice that it can afford. The bound holds for every agent, also one that learns or works
    against it. With data, the model is learned as by 'learn'. Without, it is a plain or interval model, or a
    parametric one at a point. A directory of 'learn -o' is used with the intervals that it holds.

    With --certificate, a certificate of the bound is written as well, and 'verify --shield' checks the prices
    against it.

    Example: tightrope shield model.prism --prop 'Pmin=? [ F "crash" ]' --data log.csv --slack 0.02 -o s.json
    """
    refuse_same([request.output, request.certificate])
    target = screen.claim(request.output, SHIELD)
    with screen.phase("shield"):
        result = _shield_of(request)
    answer = result.describe()
    relation = bounded(answer.promise, answer.maximises != answer.complement)
    claim = claim_text(answer.question, relation, "any agent under the shield")
    sure = "" if answer.confidence is None else sure_text(round(1 - answer.confidence, 15))
    if target is not None:
        result.save(target.checked())
    headline = answer.judged.headline(claim, sure)
    screen.answer(result.verdict, headline, answer, lambda: _shown(request, answer))
    screen.leave(result.verdict)


def _shield_of(request: ShieldRequest) -> tr.Shield:
    """The shield of a result, of data, or of a model alone; with --certificate its values and prices are
    those that the certificate proves."""
    slack, patience, point = request.slack, request.patience, None
    if Path(request.model).is_dir() or Path(request.model).name == RESULT:
        given = options.list_given(request, "prop data region at const param domain certificate")
        if given:
            raise InputError(f"{given[0]} cannot be used with a result", hint="name the model and its data")
        return tr.load_result(request.model).shield(slack=slack, patience=patience)
    subject: tr.LearningResult | tr.Problem
    if request.data:
        options.refuse_options(request, "at", "it cannot be used with --data")
        study, words = Study(request, temporal=True), options.learn_words(request)
        learned = tr.learn(study.subject.problem, study.reading, delta=request.delta, **words)
        assert isinstance(learned, tr.LearningResult)
        subject, made = learned, learned.shield(slack=slack, patience=patience)
    else:
        options.refuse_log_options(request.reading)
        options.refuse_options(request, "region", "it requires --data")
        question = Question.of(request)
        loaded = question.load()
        query = question.query(loaded, "a shield is about one property")
        problem = temporal_product(loaded.model, query)
        if problem is None and not query.is_plain:
            raise query.refusal()
        subject = problem or tr.Problem(loaded.model, query)
        point = loaded.point(request.at) if isinstance(loaded.model, tr.ParametricMDP) else None
        solved = solve(subject if point is None else subject.at(point), **options.learn_words(request))
        made = tr.Shield.of(solved, subject, slack=slack, patience=patience)
    if request.certificate is None:
        return made
    tr.certify(subject, request.certificate, at=point, overwrite=screen.common.overwrite)
    return rest_on(made, load(request.certificate))


def _shown(request: ShieldRequest, answer: ShieldAnswer) -> screen.Content:
    patience = "" if answer.patience is None else f", patience {screen.count(answer.patience, 'step')}"
    removed = [f"{one.action or 'unnamed'} ({screen.count(one.states, 'state')})" for one in answer.removed]
    more = f", {len(removed) - MOST_REMOVED} more (--json)" if len(removed) > MOST_REMOVED else ""
    rows: screen.Rows = [
        ("property", answer.question),
        ("slack", f"{number_text(answer.slack)} per episode{patience}"),
        ("allows", f"several actions in {answer.free_states:,} of {screen.count(answer.states, 'state')}"),
        ("forbids", ", ".join(removed[:MOST_REMOVED]) + more or "no action"),
        *screen.assumed_facts(answer.judged),
        ("written", request.output),
        ("certificate", request.certificate),
    ]
    return screen.Content(rows)
