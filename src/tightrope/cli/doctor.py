"""`tightrope doctor MODEL --data F`: test a model against a log and propose fixes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

import tightrope as tr
from tightrope.ambiguity.sets import SetsKind
from tightrope.cli import late, options
from tightrope.cli import output as screen
from tightrope.cli.flags import as_flags
from tightrope.cli.options import declare, takes
from tightrope.cli.output import phase_progress
from tightrope.errors import InputError
from tightrope.io.coding import Real, record_of
from tightrope.io.log_words import LOG_WORDS
from tightrope.io.results import Breakdown, FindingFacts, Interval, Judged, ObservedFacts, power_text
from tightrope.numerics.text import number_text
from tightrope.statistics.estimates import check_delta
from tightrope.verdict import Word

if TYPE_CHECKING:  # late: `--help` needs nothing of it
    from tightrope.cli.sources import Loaded
    from tightrope.learning.amendments import Amended, Diagnosed
    from tightrope.learning.doctor import AmendedAnswer
    from tightrope.learning.groups import Groups

MOST_SHOWN = 20
"""Groups that are shown to people."""

MOST_FINDINGS = 2
"""Findings that are printed without --verbose."""


class GroupFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one group of a log; `alone` is what its own rows say at the same level."""

    name: str
    episodes: int
    rows: int
    value: Interval
    alone: Interval


class GroupsFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The answers for all groups of a column, which hold together. `average` is the value of the average
    group; `new_unit` the probability with which that of a new, exchangeable one is among them, at least."""

    column: str
    average: Interval
    new_unit: float
    groups: list[GroupFacts]


class AmendedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The answer on the amended model; `selection` says how choosing it was paid for."""

    amendment: str
    verdict: Word
    why: str
    selection: str
    value: Interval | None
    delta: float | None
    e_value: Real
    alarm: bool
    states: int
    parameters: int
    claims: str
    groups: GroupsFacts | None = None


class DoctorAnswer(Judged, kw_only=True):
    """`doctor`: the verdict on the model as it is, findings by their effect on the answer, what holds anyway.

    `value` is the answer of the model as it is alone, `estimate` the same at the best fit; null where nothing
    is asked. `amended` is there with --amend. `unit` is a column of blocks that differ.
    """

    alarm: bool
    e_value: Real
    alpha: float
    rows: int
    first_alarm: int | None
    value: Interval | None
    estimate: float | None
    findings: list[FindingFacts]
    unit: str | None
    breakdown: Breakdown | None
    outcomes: ObservedFacts | None
    amended: AmendedFacts | None
    output: str | None
    log: str | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class DoctorRequest(options.StudyOptions):
    """The options of the command."""

    alpha: float = declare("--alpha", "The probability of a false alarm of all tests.", "A", default=0.001)
    sets: SetsKind | None = declare("--sets", "What nature may pick from.")
    amend: str | None = declare(
        "--amend",
        "Also answer on a revised model: memory=prev|prev2|action|revisit|seen:STATE|count:STATE:N|"
        "since-entry:N|since-start:N, split=COLUMN, groups=COLUMN, costs=COLUMN, untie, free, or auto; "
        "in continuous time rates=since-entry|since-start|clock|prev|column:NAME, phase=N, untie, auto.",
        "WHAT",
    )
    cost_range: options.CostRange = None
    select_on: float | None = declare(
        "--select-on", "Search for findings in this share of the log; learn from the rest.", "SHARE"
    )
    select_by: str | None = declare("--select-by", "'e-values': select and learn on all data, at δ/K.", "HOW")
    cluster: str | None = declare("--cluster", "The column whose values --select-on divides.", "COLUMN")
    seed: int = declare("--seed", "Seed of the division.", "S", default=0, min=0)
    output: Path | None = declare("-o --output", "Write the revised model, a PRISM file.", "FILE")
    log_out: Path | None = declare(
        "--log-out", "Write the log for the revised model: the part to learn from.", "FILE"
    )
    time_limit: options.TimeLimit = None
    threads: options.Threads = None


@takes(
    DoctorRequest,
    {"data": LOG_WORDS, "check": options.SOLVING},
    {"output log_out": "amend --amend memory=prev"},
)
def doctor(request: DoctorRequest) -> None:
    """Test a model against a log and propose fixes.

    One test covers all assumptions: whether the next outcome depends on earlier states, elapsed time, the
    unit, a column of the log or the date; whether tied choices differ; whether an expression is wrong. Each
    finding shows the value without that assumption and the smallest revision that removes it. Findings that
    change the value most come first. --amend answers on a revised model, -o writes it. Exit code 0 only if
    nothing is contradicted and the answer is proved.

    Example: tightrope doctor model.prism --prop 'P=? [ F "done" ]' --data runs.csv

    Example: tightrope doctor model.prism --prop 'P=? [ F "done" ]' --data runs.csv --amend auto \\
    --select-on 0.5 -o model2.prism --log-out runs2.csv
    """
    begin = time.perf_counter()
    check_delta(request.delta)
    model_file, log_file = (
        screen.claim(request.output, late.output.PRISM),
        screen.claim(request.log_out, late.output.DATA),
    )
    log = late.sources.LogRequest.of(request.reading, request.data or ())
    tables = log.tables()
    subject, loaded = _subject(request)
    timed = isinstance(loaded.model, tr.ParametricCTMC)
    if timed and (model_file or log_file):
        raise InputError("a revised model in continuous time cannot be written as a PRISM file")
    if timed:
        reading: tr.Exposure | tr.Reading = late.exposure.exposure_of(
            tables, loaded.model.structure, log.options
        )
    else:
        reading = log.read(loaded.discrete, tables)
    with phase_progress() as progress:
        result = tr.doctor(
            subject,
            reading,
            delta=request.delta,
            alpha=request.alpha,
            amend=request.amend,
            select_on=request.select_on,
            select_by=request.select_by,
            cluster=request.cluster,
            seed=request.seed,
            progress=progress,
            **options.learn_words(request),
        )
    answer = _answer(result, request, time.perf_counter() - begin)
    late.sources.answer_from(reading, result, answer, lambda: _shown(result, answer, timed))
    if result.amended is not None and result.amended.counts is not None:
        made = cast("Amended", result.amended.amended)
        if model_file is not None:
            model_file.write(made.prism())
        if log_file is not None:
            late.writing.write_log(
                log_file.checked(), made.log, made.model.structure, result.amended.counts.design
            )
    screen.leave(result.verdict)


def _subject(request: DoctorRequest) -> tuple[object, Loaded]:
    """The problem, or the model alone where nothing is asked, and the model."""
    question = late.sources.Question.of(request)
    loaded = question.load(timed=True)
    if request.prop is None and loaded.benchmark is None:
        return loaded.model, loaded
    query = question.query(loaded, "`doctor` answers one property")
    return tr.Problem(loaded.model, query), loaded


def _answer(result: tr.Diagnosis, request: DoctorRequest, seconds: float) -> DoctorAnswer:
    return record_of(
        DoctorAnswer,
        result,
        result.examination,
        request,
        alpha=request.alpha,
        findings=[one.record(result.model) for one in result.findings],
        amended=None if result.amended is None else _amended(result.amended),
        log=None if request.log_out is None else str(request.log_out),
        seconds=round(seconds, 6),
    )


def _amended(answer: AmendedAnswer) -> AmendedFacts:
    made = answer.amended
    return record_of(
        AmendedFacts,
        answer,
        answer.examination,
        made,
        made.model,
        amendment=made.amendment.text,
        selection=answer.selection.why,
        parameters=len(made.model.parameters),
    )


def _shown(result: tr.Diagnosis, answer: DoctorAnswer, timed: bool) -> screen.Content:
    """The findings, those that change the answer most first."""

    power, alarm = power_text(result.examination.log_e_value), f"alarm at {1 / answer.alpha:,.0f}"
    evidence = f"e-value {power} after {screen.count(answer.rows, 'row')} ({alarm})"
    known, findings, value = result.result, result.findings, None
    if answer.value is not None:
        is_empty = known.fallback if isinstance(known, tr.LearningResult) else known and known.value is None
        is_refuted = result.verdict.word is Word.CONTRADICTED and not is_empty
        value = _value(answer.value, answer.estimate)
        value = f"none; under the contradicted model {answer.value}" if is_refuted else value
    fixable = result.amended is None and any(one.amendment is not None for one in findings)
    files = () if timed else ("-o", "revised.prism", "--log-out", "revised.csv")
    hidden = len(findings) - MOST_FINDINGS
    rows: screen.Rows = [
        ("evidence", None if screen.doubts_of(result.verdict) else evidence),
        ("value", value),
        ("units", answer.unit and f"tightrope learn … --unit {answer.unit} bounds most of them"),
        *(row for one in findings[:MOST_FINDINGS] for row in _told(result, one)),
        ("findings", None if findings else "none"),
        ("finding", f"{hidden} more (--verbose)" if hidden > 0 else None),
        *([] if result.amended is None else _amended_rows(result, result.amended)),
        ("next", screen.typed("--amend", "auto", "--select-on", "0.5", *files) if fixable else None),
        ("breakdown", answer.breakdown and answer.breakdown.text),
    ]
    more = [row for one in findings[MOST_FINDINGS:] for row in _told(result, one)]
    return screen.Content(rows, [*more, ("returns", answer.outcomes and answer.outcomes.text)])


def _amended_rows(result: tr.Diagnosis, amended: AmendedAnswer) -> screen.Rows:
    return [
        ("revised", amended.amended.amendment.words(result.model)),
        ("its value", amended.value and f"{amended.verdict.word.value}: {amended.value}"),
        *([] if amended.groups is None else _group_facts(amended.groups)),
        ("evidence against it", power_text(amended.examination.log_e_value)),
        ("selection", amended.selection.why),
    ]


def _group_facts(groups: Groups) -> list[tuple[str, str]]:
    """The answers for groups, the lowest first; of many those at both ends."""
    size, shown = len(groups.groups), sorted(groups.groups, key=lambda one: one.value.lower)
    facts = [("average group", f"{_value(groups.average, None)}, each of {size:,} counted once")]
    facts.append(("new unit", f"within the answer with probability {groups.new_unit:.4g}, if exchangeable"))
    if size > MOST_SHOWN:
        shown = [*shown[: MOST_SHOWN // 2], *shown[-MOST_SHOWN // 2 :]]
    for one in shown:
        beside = f"alone {_value(one.alone, None)}; {one.rows:,} rows"
        facts.append((f"{groups.column} {one.name}", f"{_value(one.value, None)} ({beside})"))
    return facts


def _told(result: tr.Diagnosis, one: Diagnosed) -> list[tuple[str, str]]:
    """A finding in three rows: what, how strong and what it does, what fixes it."""
    strength = f"e-value {power_text(one.finding.log_e_value)}"
    if one.value is not None:
        strength += f"; value without the assumption: {_value(one.value, one.estimate)}"
    if one.effect is not None:
        strength += f" ({one.effect:+.4g})"
    fix = f"none: {as_flags(one.why or '')}"
    if one.amendment is not None and one.log_e_after is not None:
        left = "no evidence is left" if one.mends else "evidence is left"
        fix = f"{one.amendment.words(result.model)}; then {left}, e-value {power_text(one.log_e_after)}"
    return [("finding", one.finding.text), ("effect", strength), ("fix", fix)]


def _value(value: Interval, estimate: float | None) -> str:
    return f"{value}" if estimate is None else f"{value}, {number_text(estimate)} at the best fit"
