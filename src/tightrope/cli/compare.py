"""`tightrope compare`: certified differences between policies, and between two logs; `tightrope improve`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tightrope as tr
from tightrope.atomic import atomic_write
from tightrope.cli import late, options
from tightrope.cli import output as screen
from tightrope.cli.options import SOLVING, declare, option, takes
from tightrope.cli.sources import LogRequest, Question, Study, Subject, answer_from, prove, read_facts
from tightrope.errors import InputError
from tightrope.fleet.versions import SUCCESS, compare_versions
from tightrope.io import answers
from tightrope.io.coding import record_of, to_text
from tightrope.io.log_words import LOG_WORDS
from tightrope.io.output import CERTIFICATE, POLICY, REPORT, OutputDirectory, claim, refuse_same
from tightrope.io.results import Interval, ReadingFacts
from tightrope.loading import is_continuous
from tightrope.numerics.text import bound_text, bounded
from tightrope.statistics.estimates import check_delta

if TYPE_CHECKING:
    from tightrope.coupled.result import Witness


NOT_OF_LOGS = (
    "data policy baseline output certificate report region coupled_gap assume_support time_limit threads"
)

MOST_CHANGES = 3
"""States that are printed where policies differ; all of them are in the JSON and on the page."""


Baseline = Annotated[
    str | None,
    option("--baseline", "The policy in use; uniform by default.", "FILE|uniform|do-nothing|logged"),
]
PolicyFile = Annotated[
    Path | None,
    option("-o --output", "Write the best policy (.json), or a directory with all results.", "FILE|DIR"),
]


@dataclass(frozen=True, kw_only=True)
class ComparedOptions(options.StudyOptions):
    """What both commands take."""

    baseline: Baseline = None
    assume_support: options.AssumeSupport = None
    coupled_gap: options.CoupledGap = None
    precision: options.Precision = 1e-6
    time_limit: options.TimeLimit = None
    threads: options.Threads = None
    output: PolicyFile = None
    report: Path | None = declare("--report", "Write both policies side by side, as one HTML page.", "FILE")
    unit: str = declare(
        "--unit", "The unit of values (EUR); with --before the column of units (tasks).", "NAME", default=""
    )
    certificate: options.CertificateFile = None


@dataclass(frozen=True, kw_only=True)
class CompareRequest(ComparedOptions):
    """The options of the command."""

    model: options.Model = ""
    data: options.Data = None
    policy: list[str] | None = declare("--policy", "A policy to compare; the option may be repeated.", "FILE")
    before: list[str] | None = declare("--before", "Compare two logs: the runs before a change.", "LOG")
    after: list[str] | None = declare("--after", "With --before: the runs after it.", "LOG")
    cost: str | None = declare(
        "--cost", "With --before: a column of costs, and the largest cost of a run.", "COLUMN:MOST"
    )
    margin: float | None = declare(
        "--margin", "With --before: exit code 0 only if success fell by at most this.", "SHARE"
    )


@takes(CompareRequest, {"data": LOG_WORDS, "check": SOLVING})
def compare(request: CompareRequest) -> None:
    """Bound the differences between policies and a baseline, or between two logs.

    Each difference is bounded over one region of parameters for both policies. With probability at least
    1 - delta all differences lie in their intervals. Two policies share the same unknown parameters, so their
    difference is known far better than either value.

    With --before and --after the runs of two logs are compared: success ('P=? [ F "success" ]', or --prop),
    cost, and what each step contributes. No model is needed. Without --unit the bounds are time-uniform: the
    command may be repeated after every run.

    Example: tightrope compare 'bench:betting(25)' --data log.parquet --policy new.json --baseline old.json

    Example: tightrope compare --before old/ --after new/ --unit task --margin 0.05 --delta 0.05
    """
    if request.before or request.after:
        return compare_logs(request)
    policies = request.policy or []
    if not (request.model and policies):
        raise InputError("compare takes MODEL, --data and --policy, or two logs: --before and --after")
    answer(request, lambda subject: partial(tr.compare, policy=policies_of(subject, policies)))


def compare_logs(request: CompareRequest) -> None:
    """Compare the runs of two logs."""
    options.refuse_options(request, NOT_OF_LOGS, "it cannot be used with --before")
    if not (request.before and request.after):
        raise InputError("--before and --after belong together")
    column, colon, most = (request.cost or "").rpartition(":")
    if request.cost and not colon:
        raise InputError("--cost names no largest cost", hint="e.g. --cost tokens:5000")
    question: tr.Problem | str = request.prop or SUCCESS
    if request.model:
        named = Question.of(request, [str(question)])
        loaded = named.load()
        question = tr.Problem(loaded.model, named.query(loaded, "one property is required here"))
    result = compare_versions(
        request.before,
        request.after,
        question,
        unit=request.unit or None,
        cost=(column, options.parse_number(most, "the largest cost")) if request.cost else None,
        margin=request.margin,
        delta=request.delta,
        options=LogRequest.of(request.reading, ()).options,
    )
    rows = [*result.rows(), *screen.assumed_facts(result.verdict)]
    shown = screen.Content(rows, tables=[screen.Table(*result.table())])
    screen.answer(result.verdict, result.headline(), result.record(), lambda: shown)
    screen.leave(result.verdict)


def policies_of(subject: Subject, files: list[str]) -> dict[str, tr.Policy]:
    """The policies in files, by their names; by their paths where two have one name."""

    names = [Path(file).name for file in files]
    shown = [name if names.count(name) == 1 else file for file, name in zip(files, names, strict=True)]
    return {name: tr.Policy(subject.model, file) for name, file in zip(shown, files, strict=True)}


def answer(request: ComparedOptions, ask: Callable[[Subject], Callable[..., tr.Comparison]]) -> None:
    """Read, compute, print, write: the same for both commands."""
    check_delta(request.delta)
    single = None if request.output is None or request.output.suffix != ".json" else request.output
    refuse_same([request.output, request.certificate, request.report])
    directory = None if request.output is None or single is not None else claim(request.output, "improve")
    claimed, page = screen.claim(single, POLICY), screen.claim(request.report, REPORT)
    proof = screen.claim(request.certificate, CERTIFICATE)
    if is_continuous(request.model):
        raise late.differences.refuse_chains()
    study = Study(request, any_kind=True)
    subject = study.subject
    reading, call, words = study.reading, ask(subject), options.learn_words(request)
    with screen.phase_progress() as progress:
        given = {
            "baseline": request.baseline or late.differences.UNIFORM,
            "delta": request.delta,
            "progress": progress,
        }
        result = call(subject.problem, reading.counts, **given, **words)
    facts = to_answer(result, read_facts(reading), request)
    answer_from(reading, result, facts, lambda: _shown(request, result))
    document = answers.ComparisonDocument(
        model=request.model,
        model_hash=subject.model.hash(),
        question=result.problem.text,
        headline=result.headline(),
        answer=facts,
    )
    if directory is not None:
        _fill(directory, result, document)
    if claimed is not None and result.controller is None:
        screen.say("no policy is written, because no improvement on the log is proved")
    elif claimed is not None and result.controller is not None:
        result.controller.save(claimed.checked(), subject.model.hash())
    if page is not None:
        both = {"today": result.baseline, "new": result.controller}
        plain = {name: one for name, one in both.items() if one is not None and not one.has_memory}
        drawn = late.policy_map.map_policies(plain) if len(plain) == len(both) else None
        page.write(late.page.comparison_page(document.answer, document.headline, document.about, drawn))
    if proof is not None and (made := prove(result, request.model, proof.path)) is not None:
        made.save(proof.checked())
        proved = Interval.of(*made.values["difference"])
        screen.say(f"certificate: {proof.path} proves a difference in {proved}")
        if result.baseline is None:
            screen.say(f"it may prove less than is shown above: {late.differences.APART}")
    screen.leave(result.verdict)


def _fill(directory: OutputDirectory, result: tr.Comparison, document: answers.ComparisonDocument) -> None:
    """Write both policies and the document."""
    with directory.filling(answers.COMPARISON_FILE) as folder:
        for name, policy in (("today", result.baseline), ("new", result.controller)):
            if policy is not None:
                policy.save(folder / answers.POLICY_FILES[name], document.model_hash)
        with atomic_write(folder / answers.COMPARISON_FILE) as file:
            file.write(to_text(document) + "\n")


def wall(result: tr.Comparison, unit: str) -> str:
    """The summary sentence."""
    if result.improvement <= 0.0:
        return f"No policy is proved to be better than {result.baseline_name}: keep it."
    amount = bound_text(result.improvement, True) + (f" {unit}" if unit else "")
    gains = "gains" if result.problem.maximises else "saves"
    changes = (f" Largest change: {one.new} instead of {one.today} in {one.state}." for one in result.changes)
    return f"The change to {result.best.name} {gains} at least {amount}.{next(changes, '')}"


def to_answer(
    result: tr.Comparison, data: ReadingFacts, request: ComparedOptions
) -> answers.ComparisonAnswer:
    """The keys of `--json`."""
    output = request.output
    names = result.parameters.names

    def point(witness: Witness | None) -> dict[str, float] | None:
        return None if witness is None else dict(zip(names, witness.theta.tolist(), strict=True))

    return record_of(
        answers.ComparisonAnswer,
        result,
        difference=result.interval,
        policy=result.best.name,
        baseline=result.baseline_name,
        candidates=[
            answers.CandidateAnswer(
                one.name, one.interval, one.separate, point(one.lowest), point(one.highest)
            )
            for one in result.differences
        ],
        sentence=wall(result, request.unit),
        data=data,
        seconds=round(result.seconds, 6),
        output=None if output is None or result.controller is None else str(output),
    )


def _shown(request: ComparedOptions, result: tr.Comparison) -> screen.Content:
    """What is printed: the differences, what else is bounded, and where the policies differ."""
    hidden, done = len(result.changes) - MOST_CHANGES, request.output is not None
    limit = None if result.limit is None else bounded(result.limit, is_lower=False)
    rows: screen.Rows = [
        ("property", result.problem.text),
        ("difference", f"{result.interval} for {result.best.name} against {result.baseline_name}"),
        *(("satisfied" if one.holds else "violated", f"{one.text}: {one.interval}") for one in result.kept),
        ("limit", limit and f"certified improvement of any policy {limit}"),
        *(
            ("change", f"{one.state}: {one.new} instead of {one.today}{share}")
            for one in result.changes[:MOST_CHANGES]
            for share in ["" if one.share is None else f", about {one.share:.0%} of the gain"]
        ),
        ("change", f"{screen.count(hidden, 'more state')} (--json)" if hidden > 0 else None),
        ("written", request.output if done and result.controller is not None else None),
        *screen.assumed_facts(result.verdict),
    ]
    table = screen.Table(
        ("policy", f"difference to {result.baseline_name}", "intervals subtracted"),
        [(one.name, str(one.interval), str(one.separate)) for one in result.differences],
    )
    more: screen.Rows = [
        ("summary", wall(result, request.unit)),
        *screen.shown_notes(result.notes),
        *(("order", f"{one[0]} is better than {one[1]}") for one in result.order),
        ("time", f"{result.seconds:.2g} s"),
    ]
    several = len(getattr(request, "policy", None) or ()) > 1
    return screen.Content(rows, more, table if several else None, [] if several else [table])


@dataclass(frozen=True, kw_only=True)
class ImproveRequest(ComparedOptions):
    """The options of the command."""

    keep: list[str] | None = declare(
        "--keep",
        "A property that must not get worse; the option may be repeated.",
        "'P>=baseline [ F \"goal\" ]'",
    )
    candidate: list[str] | None = declare(
        "--candidate", "A policy to try and start from; the option may be repeated.", "FILE"
    )


@takes(ImproveRequest, {"data": LOG_WORDS, "check": SOLVING})
def improve(request: ImproveRequest) -> None:
    """Find the policy with the largest certified improvement over a baseline.

    All differences hold simultaneously with probability at least 1 - delta, for any number of candidates. The
    search ends when no other choice in a single state is certified to gain more. If nothing is certified to
    be better, the baseline is the answer. Properties to keep are bounded over the same parameters and use no
    additional delta: 'P>=baseline [ … ]', 'R{"cost"}<=baseline+5 [ … ]', 'P>=0.9 [ … ]'.

    Example: tightrope improve 'bench:betting(25)' --data log.parquet --baseline old.json -o new.json
    """

    def ask(subject: Subject) -> Callable[..., tr.Comparison]:
        given = policies_of(subject, request.candidate) if request.candidate else None
        return partial(tr.improve, keep=request.keep or (), candidate=given)

    answer(request, ask)
