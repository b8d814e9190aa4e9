"""`check` for models in continuous time: at a point, or over the whole domain of the parameters."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import structs

from tightrope.cli.check_composed import ComposedAnswer, SolveOptions, answer_composed
from tightrope.cli.output import memory_text, peak_memory, print_facts, print_json, print_table, warn
from tightrope.cli.phases import phase_progress
from tightrope.cli.questions import Asked, AskedProperty
from tightrope.cli.timed_model import TimedModel, load_timed
from tightrope.errors import CannotCertify, InputError
from tightrope.formats.documents.answers import Built, CheckAnswer, DomainAnswer
from tightrope.numerics.text import interval_text
from tightrope.prism.properties.resolve import PropertyOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class TimedQuestion:
    """What is asked: the model by its name and options, the properties, and where to look."""

    source: str
    asked: Asked
    constants: Mapping[str, str]
    param: str | None
    domain: str | None
    at: str | None
    sets: str | None
    build_all: bool
    all_states: bool


def check_timed(question: TimedQuestion, how: SolveOptions, json: bool) -> None:
    """Compute and print."""
    if not question.asked.files:
        raise InputError(
            "no property is given", hint="say what to compute with --prop 'P=? [ F<=10 \"goal\" ]'"
        )
    over_domain = question.sets is not None
    stop = None if question.build_all or over_domain else question.asked.boundary(question.constants)
    given = question.asked.model_constants(question.constants)
    loaded = load_timed(
        question.source, given, question.param, question.domain, stop, quiet=question.at is not None
    )
    options = PropertyOptions(constants=question.constants)
    parts = [AskedProperty(p, file, options) for file in question.asked.files for p in file.properties]
    if not parts:
        raise InputError("there is no property to check")
    if over_domain:
        _check_domain(question, loaded, parts, how, json)
        return
    chain = loaded.model.instantiate(loaded.point(question.at))
    answers: list[ComposedAnswer] = []
    for part in parts:
        with phase_progress() as progress:
            progress("solve")
            answers.append(answer_composed(part, chain, how, question.all_states))
    for answered in answers:
        for reading in answered.answer.readings:
            warn(reading)
    _report(loaded, answers, json)
    sys.stdout.flush()
    if not all(answer.is_answered for answer in answers):
        raise CannotCertify("; ".join(answer.trouble for answer in answers if not answer.is_answered))


def _report(loaded: TimedModel, answers: Sequence[ComposedAnswer], as_json: bool) -> None:
    if as_json:
        results = [answer.record() for answer in answers]
        seconds = {
            "build": round(loaded.seconds, 6),
            "solve": round(sum(answer.seconds for answer in answers), 6),
        }
        head = structs.asdict(results[0]) if len(results) == 1 else {"properties": results}
        built = Built(loaded.model.states, not loaded.is_partial)
        document = CheckAnswer(
            model=loaded.source, **head, built=built, seconds=seconds, peak_memory=peak_memory()
        )
        print_json(document)
        return
    for answer in answers:
        facts = answer.facts()
        if loaded.is_partial:
            size = f"{loaded.model.states:,} states"
            facts.append(("built", f"{size}, none behind targets or forbidden ones (--build-all)"))
        facts.append(("seconds", f"{loaded.seconds:.3g} to build, {answer.seconds:.3g} to solve"))
        facts.append(("memory", memory_text()))
        print_facts(answer.text, facts)
        if (table := answer.table()) is not None:
            print_table("", *table)


def _check_domain(
    question: TimedQuestion, loaded: TimedModel, parts: Sequence[AskedProperty], how: SolveOptions, json: bool
) -> None:
    """Bounds that hold for every point of the domain: rates in intervals, picked anew at every moment."""
    from tightrope.answering.operators import Effort
    from tightrope.answering.over_rates import bound_over_rates
    from tightrope.model.continuous import over_box

    if len(parts) != 1:
        raise InputError(f"--sets goes with one property, not {len(parts)}")
    parameters = loaded.model.parameters
    if question.sets != "expression":
        raise InputError(
            f"--sets {question.sets} is not there for continuous time", hint="write --sets expression"
        )
    if parameters.constraints:
        raise InputError(
            "bounds over the domain of a chain in continuous time are over a box, and this domain has "
            "constraints between parameters",
            hint="give ranges only: --param lam=0.1:0.3",
        )
    begin = time.perf_counter()
    chain = over_box(loaded.model, parameters.lower, parameters.upper)
    effort = Effort(how.precision, how.relative, how.limits, how.threads, how.device)
    with phase_progress() as progress:
        progress("solve")
        found = bound_over_rates(chain, parts[0].what, parts[0].file, parts[0].options, effort)
    seconds = {"build": round(loaded.seconds, 6), "solve": round(time.perf_counter() - begin, 6)}
    status = "certified" if not found.missed else "limit"
    if json:
        print_json(
            DomainAnswer(
                model=loaded.source,
                question=parts[0].what.text,
                sets="expression",
                policy="none: a chain has no choices",
                lower=found.lower,
                upper=found.upper,
                status=status,
                witness=None,
                gap=None,
                coupled=None,
                limit=None,
                optimality_gap=None,
                certificate=None,
                notes=list(found.notes),
                peak_memory=peak_memory(),
                seconds=seconds,
            )
        )
    else:
        facts = [("value", f"{interval_text(found.lower, found.upper)} over the domain (expression sets)")]
        facts += [("status", status), *(("note", note) for note in found.notes)]
        facts.append(("seconds", f"{seconds['build']:.3g} to build, {seconds['solve']:.3g} to solve"))
        print_facts(parts[0].what.text, facts)
    sys.stdout.flush()
    if found.missed:
        raise CannotCertify("; ".join(found.missed))
