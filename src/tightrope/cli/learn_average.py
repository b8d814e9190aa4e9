"""`learn` for long-run averages: a log in, a robust policy and the interval of its average out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tightrope.cli.log_source import print_reading
from tightrope.cli.model_source import load_model
from tightrope.cli.options import parse_constants
from tightrope.cli.output import leave, memory_text, peak_memory, print_facts, print_json, print_verdict
from tightrope.cli.progress import phase_progress
from tightrope.cli.questions import read_properties
from tightrope.errors import InputError
from tightrope.io.answers import AverageAnswer
from tightrope.io.coding import to_plain
from tightrope.io.output import POLICY, claim_file
from tightrope.io.results import CertifiedFacts, Span, assumed_facts
from tightrope.learning.averages import LearnedAverage, learn_average_of
from tightrope.learning.outcome import ledger_facts
from tightrope.learning.result import CLOSE
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.shape import kind_of

if TYPE_CHECKING:
    from tightrope.cli.learn import Request


def asks_average(prop: str | None) -> bool:
    """Whether one long-run average is asked for."""
    if prop is None:
        return False
    files = read_properties([prop]).files
    kinds = [kind_of(one.formula, file) for file in files for one in file.properties]
    return kinds == [QueryKind.LONG_RUN]


def run_average(asked: Request) -> None:
    """Learn, print, write the policy where a file is named."""
    refused = {
        "--certificate": asked.certificate,
        "--policy": asked.policy,
        "--export": asked.export,
        "--sets all": asked.compares or None,
        "--discount": asked.discount,
        "--terminal-reward": asked.terminal_reward,
    }
    for option, value in refused.items():
        if value is not None:
            raise InputError(
                f"{option} does not go with {asked.prop}: learning about long-run averages finds one policy "
                "and its interval",
                hint=f"leave {option} out",
            )
    if asked.output is not None and asked.output.suffix != ".json":
        raise InputError("of a long-run average the policy is written, as one file", hint="-o policy.json")
    claimed = None if asked.output is None else claim_file(asked.output, POLICY, asked.overwrite)
    files, constants = asked.log.files(), parse_constants(asked.const)
    properties = read_properties([] if asked.prop is None else [asked.prop])
    loaded = load_model(asked.model, properties.model_constants(constants), asked.param, asked.domain)
    if not isinstance(loaded.model, ParametricMDP) or not loaded.model.parameters.names:
        raise InputError(
            f"{asked.model} has no parameters: there is nothing to learn about it",
            hint="'tightrope check' computes the values of such a model",
        )
    (query,) = properties.queries(loaded, constants)
    reading = asked.log.read(loaded.model, files)
    with phase_progress() as progress:
        progress("solve")
        found = learn_average_of(loaded.model, query, reading.counts, asked.delta, asked.learn_options())
    if asked.json:
        print_json(_answer(asked.model, found))
    else:
        print_verdict(found.verdict, found.headline())
        print_reading(reading)
        _print(found)
    sys.stdout.flush()
    if claimed is not None:
        claimed.check()
        found.policy.save(claimed.path, loaded.model.hash(), to_plain(_certified_facts(found)))
    leave(found.verdict, asked.accept_nominal, found.text)


def _status(found: LearnedAverage) -> str:
    return CLOSE if found.is_close else "limit"


def _certified_facts(found: LearnedAverage) -> CertifiedFacts:
    return CertifiedFacts(
        question=found.text,
        lower=found.interval.lower,
        upper=found.interval.upper,
        over=f"the hull of {found.sets.kind.value} sets",
        confidence=1 - found.ledger.delta,
        holds=found.ledger.holds,
        status=_status(found),
    )


def _answer(source: str, found: LearnedAverage) -> AverageAnswer:
    verdict = found.verdict
    return AverageAnswer(
        model=source,
        question=found.text,
        verdict=verdict.word,
        why=verdict.why,
        assumptions=assumed_facts(verdict),
        robust_policy=Span(found.interval.lower, found.interval.upper),
        guarantee=found.guarantee,
        optimistic=found.optimistic,
        sets=found.sets.kind.value,
        ledger=ledger_facts(found.ledger),
        status=_status(found),
        notes=list(found.sets.notes),
        peak_memory=peak_memory(),
        seconds={"solve": round(found.seconds, 6)},
    )


def _print(found: LearnedAverage) -> None:
    facts = [
        ("guarantee", found.guarantee_text()),
        ("robust policy", str(found.interval)),
        ("optimistic", f"{found.optimistic_text()}: no policy does better"),
        ("sets", f"the hull of {found.sets.kind.value} sets"),
        *(("why", reason) for reason in found.decisions.reasons),
        *(("ledger", line) for line in found.ledger.lines),
        ("seconds", f"{found.seconds:.3g}"),
        ("memory", memory_text()),
    ]
    print_facts(found.text, facts)
