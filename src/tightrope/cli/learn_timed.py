"""`learn` for chains in continuous time: a log with times in, intervals of rates and of the value out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tightrope.cli.model_source import TimedModel, load_timed
from tightrope.cli.options import parse_constants
from tightrope.cli.output import (
    group,
    leave,
    memory_text,
    peak_memory,
    print_facts,
    print_json,
    print_table,
    print_verdict,
)
from tightrope.cli.progress import phase_progress
from tightrope.cli.questions import read_properties
from tightrope.errors import InputError
from tightrope.numerics.text import interval_text, text_above, text_below

if TYPE_CHECKING:
    from tightrope.cli.learn import Request
    from tightrope.io.answers import RateAnswer
    from tightrope.learning.rates import RateResult


def learn_timed(request: Request) -> None:
    """Learn, print, write."""
    from tightrope.data.exposure import exposure_of
    from tightrope.io.output import DRN as DRN_FILE
    from tightrope.io.output import claim_file
    from tightrope.learning.rates import learn_value
    from tightrope.logic.operators import Effort
    from tightrope.prism.properties.query import read_query
    from tightrope.prism.properties.resolve import PropertyOptions

    if request.prop is None:
        hint = "say what to compute with --prop 'P=? [ F<=10 \"goal\" ]'"
        raise InputError("no property is given", hint=hint)
    if not 0 < request.delta < 1:
        raise InputError(f"--delta is {request.delta}, not within (0, 1)")
    output = request.output
    if output is not None and output.suffix != ".drn":
        raise InputError(
            "of a chain in continuous time the learned interval chain is written, as one file",
            hint="write -o learned.drn",
        )
    claimed = None if output is None else claim_file(output, DRN_FILE, False)
    constants = parse_constants(request.const)
    asked = read_properties([request.prop])
    properties = [(p, file) for file in asked.files for p in file.properties]
    if len(properties) != 1:
        raise InputError(f"learning goes with one property, not {len(properties)}")
    loaded = load_timed(request.model, asked.model_constants(constants), request.param, request.domain)
    options = PropertyOptions(constants=constants, is_timed=True)
    query = read_query(*properties[0], loaded.model.structure, options)
    with phase_progress() as progress:
        progress("data")
        asked_log = request.reading.request(request.data).options
        exposure = exposure_of(request.data, loaded.model.structure, asked_log)
        progress("solve")
        effort = Effort(request.precision)
        result = learn_value(loaded.model, query, exposure, request.delta, effort, request.region)
    answer = rate_answer(loaded, result)
    if request.json:
        print_json(answer)
    else:
        print_verdict(result.verdict, result.headline())
        _print(answer)
    sys.stdout.flush()
    if claimed is not None and result.chain is not None:
        from tightrope.io.drn.write import write_rates

        claimed.check()
        write_rates(result.chain, claimed.path)
    leave(result.verdict, request.accept_nominal, answer.question)


def rate_answer(loaded: TimedModel, result: RateResult) -> RateAnswer:
    """The document of a result."""
    from tightrope.io.answers import RateAnswer, RateFacts, TimedLogFacts
    from tightrope.io.results import Span, WidthFacts, assumed_facts
    from tightrope.learning.outcome import ledger_facts
    from tightrope.learning.result import CLOSE
    from tightrope.regions.rate_box import box_of

    verdict = result.verdict
    value = None if result.value is None else Span(result.value.lower, result.value.upper)
    widths = None
    if result.chain is not None:
        unknown = result.model.expressions.nonconstant
        open_part = (result.chain.upper - result.chain.lower)[unknown]
        widths = WidthFacts(
            float(open_part.mean()),
            float(open_part.max()),
            len(unknown),
            box_of(result.region, result.model.parameters.names),
        )
    return RateAnswer(
        model=loaded.source,
        question=result.question,
        verdict=verdict.word,
        why=verdict.why,
        assumptions=assumed_facts(verdict),
        empty=result.value is None,
        fallback=False,
        value=value,
        robust_policy=value,
        widths=widths,
        rates=[
            RateFacts(text, low, high, k, t, k / t if t > 0 else None)
            for text, low, high, k, t in result.rates
        ],
        ledger=ledger_facts(result.ledger),
        status="empty" if result.value is None else "limit" if result.value.missed else CLOSE,
        notes=[] if result.value is None else list(result.value.notes),
        data=TimedLogFacts(
            result.data.rows,
            result.data.episodes,
            int(result.data.jumps.sum()),
            float(result.data.waited.sum()),
            result.data.censored,
            [result.data.read_as],
        ),
        peak_memory=peak_memory(),
        seconds={
            "build": round(loaded.seconds, 6),
            **{name: round(spent, 6) for name, spent in result.seconds.items()},
        },
    )


def _print(answer: RateAnswer) -> None:
    log = answer.data
    facts = [
        ("read as", "; ".join(log.read_as)),
        (
            "log",
            f"{_count(log.jumps, 'jump')} in {_count(log.episodes, 'episode')}, time {log.time:.6g}, "
            f"{_count(log.censored, 'sojourn')} cut off",
        ),
    ]
    if answer.value is None:
        facts.append(("value", answer.why))
    else:
        facts.append(("value", interval_text(answer.value.lower, answer.value.upper, 6)))
    facts += [("ledger", line) for line in answer.ledger.lines]
    facts += [("note", note) for note in answer.notes]
    spent = ", ".join(f"{seconds:.3g} {phase}" for phase, seconds in answer.seconds.items())
    print_facts(answer.question, [*facts, ("seconds", spent), ("memory", memory_text())])
    rows = [
        (
            one.rate,
            text_below(one.lower, 6),
            text_above(one.upper, 6),
            group(one.events),
            f"{one.exposure:.6g}",
            "" if one.estimate is None else f"{one.estimate:.6g}",
        )
        for one in answer.rates
    ]
    print_table("", ("rate", "lower", "upper", "events", "exposure", "events/exposure"), rows)


def _count(number: int, what: str) -> str:
    return f"{group(number)} {what}{'' if number == 1 else 's'}"
