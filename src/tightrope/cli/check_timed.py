"""`check` for models in continuous time: at a point, or over the whole domain of the parameters."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from tightrope.cli.check_composed import ComposedAnswer, SolveOptions, answer_composed, report_answers
from tightrope.cli.check_domain import DomainSets
from tightrope.cli.model_source import TimedModel, load_timed
from tightrope.cli.options import parse_constants
from tightrope.cli.output import leave, peak_memory, print_facts, print_json, print_verdict, warn
from tightrope.cli.progress import phase_progress
from tightrope.cli.questions import PropertyTexts
from tightrope.errors import InputError
from tightrope.io.answers import DomainAnswer
from tightrope.numerics.text import interval_text
from tightrope.prism.properties.query import Query, read_query
from tightrope.prism.properties.resolve import PropertyOptions
from tightrope.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.cli.check import Request


def check_timed(asked: Request, properties: PropertyTexts, how: SolveOptions) -> None:
    """Compute and print."""
    if not properties.files:
        raise InputError(
            "no property is given", hint="say what to compute with --prop 'P=? [ F<=10 \"goal\" ]'"
        )
    constants = parse_constants(asked.const)
    over_domain = asked.sets is not None
    stop = None if asked.build_all or over_domain else properties.boundary(constants)
    given = properties.model_constants(constants)
    loaded = load_timed(asked.model, given, asked.param, asked.domain, stop, quiet=asked.at is not None)
    options, structure = PropertyOptions(constants=constants, is_timed=True), loaded.model.structure
    queries = [
        read_query(one, file, structure, options) for file in properties.files for one in file.properties
    ]
    if not queries:
        raise InputError("there is no property to check")
    if over_domain:
        _check_domain(asked, loaded, queries, how)
        return
    chain = loaded.model.instantiate(loaded.point(asked.at))
    answers: list[ComposedAnswer] = []
    for query in queries:
        with phase_progress() as progress:
            progress("solve")
            answers.append(answer_composed(query, chain, how, asked.all_states))
    for answered in answers:
        for reading in answered.answer.readings:
            warn(reading)
    report_answers(loaded.source, loaded, answers, asked.json)
    sys.stdout.flush()
    leave(Verdict.worst([answer.verdict for answer in answers]))


def _check_domain(asked: Request, loaded: TimedModel, queries: Sequence[Query], how: SolveOptions) -> None:
    """Bounds that hold for every point of the domain: rates in intervals, picked anew at every moment."""
    from tightrope.logic.operators import Effort
    from tightrope.logic.over_rates import bound_over_rates
    from tightrope.model.continuous import over_box

    if len(queries) != 1:
        raise InputError(f"--sets goes with one property, not {len(queries)}")
    parameters = loaded.model.parameters
    if asked.sets not in (None, DomainSets.EXPRESSION):
        raise InputError(
            f"--sets {asked.sets.value} is not there for continuous time", hint="write --sets expression"
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
        found = bound_over_rates(chain, queries[0], effort)
    seconds = {"build": round(loaded.seconds, 6), "solve": round(time.perf_counter() - begin, 6)}
    verdict = Verdict.of(limit="; ".join(found.missed) or None)
    if asked.json:
        print_json(
            DomainAnswer(
                model=loaded.source,
                question=queries[0].text,
                verdict=verdict.word,
                why=verdict.why,
                assumptions=[],
                sets="expression",
                policy="none: a chain has no choices",
                lower=found.lower,
                upper=found.upper,
                status="certified" if verdict.is_proved else "limit",
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
        print_verdict(verdict, verdict.headline(interval_text(found.lower, found.upper), "over the domain"))
        facts = [("value", f"{interval_text(found.lower, found.upper)} over the domain (expression sets)")]
        facts += [("note", note) for note in found.notes]
        facts.append(("seconds", f"{seconds['build']:.3g} to build, {seconds['solve']:.3g} to solve"))
        print_facts(queries[0].text, facts)
    sys.stdout.flush()
    leave(verdict)
