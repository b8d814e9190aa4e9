"""`tightrope shield MODEL --data LOG --slack E -o S`: let any agent act within a guaranteed bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

import tightrope as tr
from tightrope.atomic import atomic_write_bytes
from tightrope.cli import options
from tightrope.cli import output as screen
from tightrope.cli.options import SOLVING, declare, takes
from tightrope.cli.sources import Question, Study, temporal_product
from tightrope.io.log_words import LOG_WORDS
from tightrope.io.output import CERTIFICATE, SHIELD, refuse_same
from tightrope.numerics.text import bounded, claim_text, number_text, sure_text
from tightrope.shield.verification import rest_on
from tightrope.solver.solve import solve
from tightrope_check.archive import load

NOT_OF_RESULTS = "prop data region at const param domain certificate delta discount terminal_reward precision"


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
        "--patience", "Steps without progress before the fallback policy takes over.", "N", min=0
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

    Every choice has a price: what it gives up of the bound. The agent may take what the slack of its episode
    can pay. The bound holds for every agent, also one that learns or works against it. With data, the model
    is learned as by 'learn'. Without, it is a plain or interval model, or a parametric one at a point. A
    directory of 'learn -o' is used with the intervals that it holds. With --certificate, a certificate of the
    bound is written as well, and 'verify --shield' checks the prices against it.

    Example: tightrope shield model.prism --prop 'Pmin=? [ F "crash" ]' --data log.csv --slack 0.02 -o s.json
    """
    refuse_same([request.output, request.certificate])
    target, proved = screen.claim(request.output, SHIELD), screen.claim(request.certificate, CERTIFICATE)
    with screen.phase("shield"):
        result, proof = _shield_of(request)
    answer = result.describe()
    relation = bounded(answer.promise, answer.maximises != answer.complement)
    claim = claim_text(answer.question, relation, "any agent under the shield")
    sure = "" if answer.confidence is None else sure_text(round(1 - answer.confidence, 15))
    patience = "" if answer.patience is None else f", patience {screen.count(answer.patience, 'step')}"
    removed = [f"{one.action or 'unnamed'} ({screen.count(one.states, 'state')})" for one in answer.removed]
    rows: screen.Rows = [
        ("property", answer.question),
        ("slack", f"{number_text(answer.slack)} per episode{patience}"),
        ("allows", f"several actions in {answer.free_states:,} of {screen.count(answer.states, 'state')}"),
        ("forbids", ", ".join(removed) or "no action"),
        *screen.assumed_facts(answer.judged),
        ("written", request.output),
        ("certificate", request.certificate),
    ]
    screen.answer(result.verdict, answer.judged.headline(claim, sure), answer, lambda: screen.Content(rows))
    if target is not None:
        result.save(target.checked())
    if proved is not None:
        with atomic_write_bytes(proved.checked()) as file:
            file.write(proof)
    screen.leave(result.verdict)


def _shield_of(request: ShieldRequest) -> tuple[tr.Shield, bytes]:
    """The shield of a result, of data, or of a model alone; with --certificate its values and prices are
    those that the certificate proves, whose file has this content."""
    slack, patience, words = request.slack, request.patience, options.learn_words(request)
    if Path(request.model).is_dir() or Path(request.model).name == "result.json":
        options.refuse_options(request, NOT_OF_RESULTS, "it cannot be used with a result")
        return tr.load_result(request.model).shield(slack=slack, patience=patience), b""
    if request.data:
        options.refuse_options(request, "at", "it cannot be used with --data")
        study = Study(request, temporal=True)
        learned = tr.learn(study.subject.problem, study.reading, delta=request.delta, **words)
        assert isinstance(learned, tr.LearningResult)
        made, certify = learned.shield(slack=slack, patience=patience), partial(tr.certify, learned)
    else:
        options.refuse_log_options(request.reading)
        options.refuse_options(request, "region", "it requires --data")
        question = Question.of(request)
        loaded = question.load()
        query, point = question.query(loaded, "a shield is about one property"), loaded.point(request.at)
        subject = tr.Problem(loaded.model, query)
        certify = partial(tr.certify, subject, at=point or None)
        problem = temporal_product(loaded.model, query) or subject
        if not problem.query.is_plain:
            raise query.refusal()
        known = problem.at(point) if isinstance(problem.model, tr.ParametricMDP) else problem
        made = tr.Shield.of(solve(known, **words), problem, slack=slack, patience=patience)
    if request.certificate is None:
        return made, b""
    with TemporaryDirectory() as folder:  # what is refused leaves no certificate
        certify(place := Path(folder) / "certificate")
        return rest_on(made, load(place)), place.read_bytes()
