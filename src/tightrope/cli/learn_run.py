"""`tightrope learn`: read, learn, print, write.

Output files are claimed before the computation and written after the answer was printed.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import typer
from msgspec import UNSET, UnsetType, structs

import tightrope as tr
from tightrope.atomic import atomic_write, explain_errors
from tightrope.certify.region import refuse_uncertified
from tightrope.cli import options as cli_options
from tightrope.cli import output as screen
from tightrope.cli import sources
from tightrope.cli.result_display import fit_facts, show_comparison, show_result
from tightrope.cli.sources import AnyLoaded, Study, Subject
from tightrope.errors import CannotCertify, InputError
from tightrope.io import answers
from tightrope.io import output as io_output
from tightrope.io import results as io_results
from tightrope.io.coding import record_of, to_plain, to_text
from tightrope.io.output import OutputDirectory, OutputFile
from tightrope.io.results import Interval
from tightrope.learning import result_files
from tightrope.learning.options import decide
from tightrope.learning.result import CLOSE
from tightrope.loading import is_continuous
from tightrope.numerics.machine import peak_memory
from tightrope.numerics.text import interval_text, number_text, text_above, text_below
from tightrope.prism.properties.capabilities import QueryKind, Task, require_task
from tightrope.prism.properties.shape import kind_of
from tightrope.solver.solve import solve
from tightrope.statistics.estimates import check_delta
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.verdict import Word

if TYPE_CHECKING:
    from tightrope.certify.certificate_file import CertificateFile
    from tightrope.cli.learn import LearnRequest


class LearnAnswer(io_results.Outcome, kw_only=True):
    """`learn`: with `--sets all` that of the last kind, and all of them under `all`."""

    peak_memory: int
    true_value: Interval | None = None
    output: str | None = None
    all: list[io_results.Outcome] | UnsetType = UNSET
    data: io_results.ReadingFacts
    certificate: answers.ProvedFacts | UnsetType = UNSET


class EmptyAnswer(io_results.Judged, kw_only=True):
    """`learn --no-fallback` where the region is empty: no parameters fit the data."""

    empty: bool
    fallback: bool
    contradiction: str
    conflict: list[str] | None
    value: None
    robust_policy: None
    widths: None
    ledger: io_results.LedgerFacts
    seconds: dict[str, float]


NOT_TIMED = "unit policy tree export discount terminal_reward breakdown at observations no_fallback"
"""Options that cannot be used with chains in continuous time, beside those that the library refuses."""

NOT_OTHER = "unit breakdown tree export discount terminal_reward outcomes observations"
NO_ANSWER = "breakdowns and outcomes are about one P or R over a simple path or a reward"
OPTIMAL_AT_TRUTH = "optimal-at-truth"
MOST_RATES = 4
"""Rates that are printed; --verbose prints all in a table."""


class Finished(NamedTuple):
    """What is left after an answer was printed."""

    write: Callable[[], None]
    leave: Callable[[], None]


def run(request: LearnRequest) -> None:
    """Learn about every property, each at an equal share of δ; write files when all are answered."""
    several = [(file, each) for file in sources.Question.of(request).files for each in file.wanted]
    if len(several) < 2:
        finished = run_one(request)
        finished.write()
        finished.leave()
        return
    check_delta(request.delta)
    if request.certificate is not None:
        raise InputError(f"--certificate requires one property, not {len(several)}")
    if request.output is not None and request.output.suffix:
        raise InputError(f"answers to {len(several)} properties need a directory", hint="name one: -o DIR")
    share = f"{request.delta:g}/{len(several)}"
    screen.say(f"{len(several)} properties: all answers hold simultaneously, each at δ = {share}")
    worst, writes = 0, []
    with new_folder(request.output), screen.gathering_json():
        for number, (file, each) in enumerate(several, start=1):
            place = file.properties.index(each) + 1
            text = file.file if Path(file.file).suffix in sources.PROPERTY_SUFFIXES else file.source
            name = each.name if each.name and each.name.isidentifier() else f"{number:02}"
            output = None if request.output is None else request.output / name
            delta = request.delta / len(several)
            try:
                finished = run_one(replace(request, prop=f"{text}#{place}", delta=delta, output=output))
                writes.append(finished.write)
                finished.leave()
            except CannotCertify as error:
                screen.say(f"error: {each.text}: {error}")
                worst = error.exit_code
            except typer.Exit as left:
                worst = max(worst, left.exit_code)
        for write in writes:
            write()
    if worst:
        raise typer.Exit(worst)


def run_one(request: LearnRequest) -> Finished:
    """Learn about one property, and print the answer."""
    timed = is_continuous(request.model)
    other = None if timed else other_kind(request.prop)
    refuse_combinations(request, timed, other)
    cli_options.require_device(request.device)
    check_delta(request.delta)
    plain = not timed and other is None
    if request.unit is not None and plain:
        return learn_units(request)
    words, exports = request.learn_options(), result_files.parse_exports(request.export)
    files = LearnFiles.claim(request, timed, result_files.KIND if plain else "answer")
    if request.observations is not None:
        cli_options.refuse_log_options(request.reading)
    if not plain:
        return learn_answer(request, Study(request, answers=True), words, files)
    study = Study(request, temporal=True, untied=request.ignores_numbers, observed=True)
    return learn_policies(request, study, words, files, exports)


def refuse_combinations(request: LearnRequest, timed: bool, other: QueryKind | None) -> None:
    """Options that do not go with the model, the question, or each other."""
    if timed:
        cli_options.refuse_options(request, NOT_TIMED)
    elif other is not None:
        why = f"it cannot be used with {request.prop}: {NO_ANSWER}"
        cli_options.refuse_options(request, NOT_OTHER, why)
        if request.compares:
            cli_options.refuse("--sets all", why)
        if request.certificate is not None:
            require_task(other, str(request.prop), Task.LEARN_CERTIFICATE)
    cli_options.require_coupled(request.coupled_gap, request.is_coupled)
    certificate = request.certificate is not None
    sets = None if request.sets is None else request.sets.value
    cli_options.refuse_any(
        (
            timed and sets not in (None, "expression"),
            f"--sets {sets} is not supported for continuous time",
            "leave --sets out: it is expression",
        ),
        (request.no_verify and not certificate, "--no-verify requires --certificate: add a file"),
        (request.compares and certificate, "--certificate is for one kind of sets, not for --sets all"),
        (
            certificate and request.ellipsoid is EllipsoidVersion.PAPER,
            "--certificate has nothing to prove: the published ellipsoid is unsound and guarantees nothing",
            "leave --ellipsoid paper out: the sound ellipsoid (--region ellipsoid) has certificates",
        ),
        (
            request.export and request.output is None,
            "--export writes the learned model into the output directory",
            "add -o DIR",
        ),
        (
            request.tree is not None and (request.compares or request.policy is not None),
            "--tree cannot be used with --sets all or --policy",
            "learn with one kind of sets and without --policy for a tree",
        ),
        (
            request.policy == OPTIMAL_AT_TRUTH and other is not None,
            f"--policy {OPTIMAL_AT_TRUTH} requires one P or R over a simple path or a reward",
            "name a file with a policy",
        ),
    )


def learn_policies(
    request: LearnRequest,
    study: Study,
    words: tr.LearnOptions,
    files: LearnFiles,
    exports: Collection[result_files.Export],
) -> Finished:
    """Learn about one objective: policies, with their intervals."""
    subject = study.subject
    not_covered = _refuse_before(request, subject, words) if request.certificate is not None else []
    if subject.product is not None:
        why = "it writes the learned model, and that of a temporal formula is a product with its automaton"
        cli_options.refuse_options(request, "export", why)
    if subject.pomdp is not None:
        why = "it is not supported for partially observable models"
        cli_options.refuse_options(request, "export breakdown", why)
    with screen.phase_progress() as progress:
        given, true_value = _read_given_policy(request, subject, progress)
    if request.certificate is not None:
        _refuse_uncertified(given, study, words)
    reading = study.reading
    with screen.phase_progress() as progress:
        results = _learn(request, study, words, given, progress)
        if request.tree is not None:
            progress("a small decision tree")
            results[-1] = results[-1].with_tree(loss=request.most_lost)
        proof = _proof(request, results[0], reading.counts, subject, progress)
    written = None if request.output is None else str(request.output)
    record = _answer(results, subject.loaded, request.compares, written, reading)
    record.true_value = true_value
    if proof is not None:
        record.certificate = _proved_facts(request, proof, not_covered)

    def show() -> screen.Content:
        if request.compares:
            return show_comparison(subject.query.text, results, true_value, written)
        proved = {} if proof is None else {name: Interval.of(*ends) for name, ends in proof.values.items()}
        return show_result(results[0], true_value, written, proved)

    sources.answer_from(reading, results[-1], record, show)

    def fill(folder: Path, digest: str | None, progress: screen.PhaseProgress) -> None:
        setting = result_files.Setting(
            model=request.model,
            property=subject.query.text,
            delta=request.delta,
            constants=cli_options.parse_constants(request.const),
            data=study.about,
            command=["tightrope", *sys.argv[1:]],
            policy=request.policy,
            truth=subject.point_text(request.at),
            true_value=true_value,
        )
        content = result_files.document(results, reading.counts, words, setting)
        if digest is not None:
            content.certificate = io_results.CertificateFacts(digest, str(request.certificate))
        result_files.fill_results(folder, results, content, exports=exports, progress=progress)

    write = partial(files.write, result_files.RESULT, proof, fill)
    return Finished(write, lambda: leave_with(results))


def _learn(
    request: LearnRequest,
    study: Study,
    words: tr.LearnOptions,
    given: tr.Policy | str | None,
    progress: screen.PhaseProgress,
) -> list[tr.LearningResult]:
    """The result, or those of all kinds of sets, and the breakdown point of the last where it is wanted."""
    subject = study.subject
    if subject.pomdp is not None:
        progress("a controller that sees observations only")
    ask: Any = tr.learn_all if request.compares else tr.learn
    try:
        learned = ask(
            subject.observed_problem,
            study.reading,
            delta=request.delta,
            policy=given,
            progress=progress,
            **words.words,
        )
    except tr.EmptyRegion as error:
        screen.answer_refuted(error, error.verdict, _empty(error, subject.loaded))
    results: list[tr.LearningResult] = list(learned.values()) if request.compares else [learned]
    if request.breakdown is not None:
        progress("breakdown")
        rows, threshold = request.breakdown_words
        breakdown = results[-1].find_breakdown_point(rows=rows, threshold=threshold)
        results[-1] = replace(results[-1], breakdown=breakdown)
    return results


def leave_with(results: Sequence[tr.LearningResult]) -> None:
    """Leave with the last result, that of the sets asked for; warn of others that a limit stopped."""
    *others, answer = results
    for result in others:
        if result.verdict.word is Word.LIMIT:
            screen.warn(f"{result.kind.value} sets: {result.status}")
    screen.leave(answer.verdict)


def _read_given_policy(
    request: LearnRequest, subject: Subject, progress: screen.PhaseProgress
) -> tuple[tr.Policy | str | None, Interval | None]:
    """The policy to certify beside the robust one; the optimum at the true point where it is that one."""
    if request.policy is None or subject.pomdp is not None:
        return request.policy, None
    if request.policy != OPTIMAL_AT_TRUTH:
        return tr.Policy(subject.model, request.policy), None
    progress("solve: at the true point")
    problem = subject.problem
    model = problem.model
    assert isinstance(model, tr.ParametricMDP)
    solution = solve(model.instantiate(subject.loaded.point(request.at)), problem.objective)
    value, product = Interval.of(*solution.bounds), subject.product
    return solution.policy if product is None else product.controller(solution.policy), value


def _refuse_before(request: LearnRequest, subject: Subject, options: tr.LearnOptions) -> list[str]:
    """Refuse what no certificate holds; what this one will not be about, in words, before it is computed."""
    refuse_uncertified(subject.model, options.region)
    words = []
    if request.policy is None and subject.pomdp is not None:
        words = [
            "the certificate will be about the chosen controller: what no controller exceeds is not in "
            "it (`check --at` at the point of the robust optimum certifies that one)"
        ]
    elif request.policy is None and subject.product is not None:
        words = [
            "the certificate will be about the robust policy with the memory of the automaton that the "
            "checker derives, computed again there: verify --policy does not compare the policy that -o "
            "writes"
        ]
    for text in words:
        screen.warn(text)
    return words


def _refuse_uncertified(given: tr.Policy | str | None, study: Study, words: tr.LearnOptions) -> None:
    """Refuse policies, data and regions that no certificate holds, before anything is learned."""
    from tightrope.certify.solved import refuse_steps

    if isinstance(given, tr.Policy) and given.has_memory:
        raise InputError(
            "--certificate covers policies without memory, and --policy has a memory",
            hint="leave --certificate or --policy out",
        )
    if isinstance(given, tr.Policy):
        refuse_steps(given, study.subject.query.objective)
    model, counts = study.subject.model, study.reading.counts
    if missing := "; ".join(counts.design.censored):
        raise InputError(
            "--certificate: there is nothing to certify, because outcomes are missing from the data: "
            f"{missing}",
            hint="leave --certificate out, or complete the data",
        )
    refuse_uncertified(model, decide(model, counts, words).region)


def _proof(
    request: LearnRequest,
    result: Any,
    counts: tr.Counts | None,
    subject: Subject,
    progress: screen.PhaseProgress,
) -> CertificateFile | None:
    """The certificate where one is wanted."""
    from tightrope.certify.certify import learned_file

    if request.certificate is None:
        return None
    if not isinstance(result, tr.RateResult) and result.fit is not None and result.fit.is_refutation:
        screen.warn("no certificate is written: the data contradict the model")
        return None
    progress("the certificate")
    about = {
        "model": request.model,
        "model_hash": subject.loaded.model.hash(),
        "property": subject.query.text,
    }
    proof = learned_file(result, counts, about, not request.no_verify)
    for words in proof.notes:
        screen.warn(words)
    return proof


def _proved_facts(request: LearnRequest, proof: CertificateFile, notes: Sequence[str]) -> answers.ProvedFacts:
    policies = {name: Interval.of(*ends) for name, ends in proof.values.items()}
    return answers.ProvedFacts(
        proof.digest, str(request.certificate), policies, [*notes, *proof.notes] or UNSET
    )


def _answer(
    results: list[tr.LearningResult],
    loaded: AnyLoaded,
    several: bool,
    written: str | None,
    reading: tr.Reading,
) -> LearnAnswer:
    """The keys of the one result; with --sets all those of the last, and all under "all"."""
    outcomes = [result.outcome for result in results]
    main = structs.asdict(outcomes[-1])
    main["seconds"] = {"build": round(loaded.seconds, 6), **outcomes[-1].seconds}
    return LearnAnswer(
        **main,
        peak_memory=peak_memory(),
        output=written,
        all=outcomes if several else UNSET,
        data=sources.read_facts(reading),
    )


def _empty(error: tr.EmptyRegion, loaded: AnyLoaded) -> EmptyAnswer:
    return record_of(
        EmptyAnswer,
        error,
        empty=True,
        fallback=False,
        conflict=list(error.conflict.texts) if error.conflict is not None else None,
        value=None,
        robust_policy=None,
        widths=None,
        seconds={"build": round(loaded.seconds, 6)},
    )


ANSWERED = "the answer above stands; only the files are missing"


@dataclass(frozen=True)
class LearnFiles:
    """A directory, or one file with the policy or the chain; `alone`: a certificate outside of it."""

    directory: OutputDirectory | None
    single: OutputFile | None
    certificate: Path | None
    alone: OutputFile | None

    @staticmethod
    def claim(request: LearnRequest, timed: bool, kind: str) -> LearnFiles:
        """Refuse what must not or cannot be written; --overwrite is about files alone."""
        output, certificate, single = request.output, request.certificate, None
        if timed and output is not None and output.suffix != ".drn":
            raise InputError(
                "the learned interval chain in continuous time is written as one file",
                hint="write -o learned.drn",
            )
        if output is not None and kind == "answer" and output.suffix in (".json", ".drn"):
            single = screen.claim(output, io_output.DRN if timed else io_output.POLICY)
        folder = None if output is None or single is not None else io_output.claim(output, kind)
        place = None if certificate is None else Path(os.path.realpath(certificate.parent))
        apart = None if folder is not None and folder.path == place else certificate
        return LearnFiles(folder, single, certificate, screen.claim(apart, io_output.CERTIFICATE))

    def write(
        self,
        first: str,
        proof: CertificateFile | None,
        fill: Callable[[Path, str | None, screen.PhaseProgress], None],
    ) -> None:
        """Write the certificate, and what `fill` writes when told its digest; `first` comes last."""
        filling = nullcontext() if self.directory is None else self.directory.filling(first)
        try:
            with screen.phase_progress() as progress, filling as folder:
                digest = None
                if proof is not None and self.certificate is not None:
                    progress("write: the certificate")
                    inside = folder is not None and self.alone is None
                    target = folder / self.certificate.name if inside and folder else self.certificate
                    digest = proof.save(target if self.alone is None else self.alone.checked())
                if folder is not None:
                    fill(folder, digest, progress)
        except InputError as error:
            raise InputError(error.message, error.location, error.hint or ANSWERED) from error


@contextmanager
def new_folder(folder: Path | None) -> Iterator[None]:
    """The folder is there inside of the block; after an error a new one without files is gone."""
    is_new = folder is not None and not folder.exists()
    if folder is not None:
        with explain_errors(folder):
            folder.mkdir(exist_ok=True)
    try:
        yield
    finally:
        if folder is not None and is_new and not any(folder.iterdir()):
            folder.rmdir()


def other_kind(prop: str | None) -> QueryKind | None:
    """The kind of one property that is no single objective, on the model or on a product; else None."""
    if prop is None:
        return None
    kinds = [kind_of(one.formula, file) for file in sources.read_properties([prop]) for one in file.wanted]
    return kinds[0] if len(kinds) == 1 and kinds[0] not in (QueryKind.PLAIN, QueryKind.LTL) else None


def learn_answer(request: LearnRequest, study: Study, words: tr.LearnOptions, files: LearnFiles) -> Finished:
    """Learn about a property that is no single objective, or about a chain in continuous time."""
    subject, given_words = study.subject, dict(words.words)
    problem, timed = subject.problem, isinstance(subject.loaded.model, tr.ParametricCTMC)
    if timed:
        given_words.pop("sets", None)
    data: Any = study.exposure if timed else study.reading
    given = None if request.policy is None else tr.Policy(subject.model, request.policy)
    with screen.phase("solve") as progress:
        result = tr.learn(problem, data, delta=request.delta, policy=given, **cast(Any, given_words))
        assert not isinstance(result, tr.LearningResult)
        proof = _proof(request, result, None if timed else data.counts, subject, progress)
    record: Any = result.document(request.model)
    if not isinstance(result, tr.LearnedAnswer):
        record.seconds = {"build": round(subject.loaded.seconds, 6), **record.seconds}
    elif files.directory is not None:
        record.data = study.about
    if proof is not None:
        record.certificate = _proved_facts(request, proof, ())
    show = _show_answer if isinstance(result, tr.LearnedAnswer) else _show_rates
    sources.answer_from(data, result, record, lambda: show(result, record))

    def fill(folder: Path, digest: str | None, progress: screen.PhaseProgress) -> None:
        assert isinstance(result, tr.LearnedAnswer)
        beside = digest is not None and files.alone is None and request.certificate is not None
        fill_answer(folder, result, record, [Path(str(request.certificate)).name] if beside else [])

    def write() -> None:
        files.write(answers.ANSWER_FILE, proof, fill)
        if files.single is not None:
            _write_single(result, problem, files.single)

    return Finished(write, lambda: screen.leave(result.verdict))


def _write_single(result: Any, problem: tr.Problem, target: OutputFile) -> None:
    """The policy of an answer, or the learned chain."""
    if isinstance(result, tr.LearnedAnswer) and result.policy is None:
        raise InputError(f"{result.text} has no policy of its own", hint="name a directory: -o DIR")
    if isinstance(result, tr.LearnedAnswer) and result.policy is not None:
        result.policy.save(target.checked(), problem.model.hash(), to_plain(_certified_facts(result)))
    elif result.chain is not None:
        from tightrope.io.drn.write import write_drn

        write_drn(result.chain, target.checked())


def fill_answer(
    folder: Path, learned: tr.LearnedAnswer, record: answers.AnswerDocument, beside: Sequence[str] = ()
) -> None:
    """Write the document of an answer, its policy, and those that a mixture draws from."""
    several = None if learned.answer is None else learned.answer.achieved
    policies = {} if learned.policy is None else {"policy.json": learned.policy}
    for number, policy in enumerate(() if several is None else several.controllers, start=1):
        policies[f"policy-{number:02}.json"] = policy
    for name, policy in policies.items():
        policy.save(folder / name, record.model_hash, to_plain(_certified_facts(learned)))
    record.files = [*beside, *policies]
    with atomic_write(folder / answers.ANSWER_FILE) as file:
        file.write(to_text(record) + "\n")


def _certified_facts(learned: tr.LearnedAnswer) -> io_results.CertifiedFacts:
    interval = learned.interval or Interval(-math.inf, math.inf)
    return io_results.CertifiedFacts(
        question=learned.text,
        lower=interval.lower,
        upper=interval.upper,
        over=f"the hull of {learned.sets.kind.value} sets",
        confidence=1 - learned.ledger.delta,
        holds=learned.verdict.word in (Word.PROVED, Word.LIMIT),
        status=CLOSE if learned.is_close else "limit",
    )


def _show_answer(learned: Any, record: answers.AnswerDocument) -> screen.Content:
    rows: screen.Rows = [
        ("property", learned.text),
        *learned.facts(),
        ("certificate", _proved_text(record.certificate)),
        *screen.assumed_facts(learned.verdict),
        *fit_facts(learned),
    ]
    more: screen.Rows = [
        ("sets", f"the hull of {record.sets} sets"),
        ("default", learned.decisions.reasons),
        ("budget", record.ledger.lines),
        ("note", record.notes),
        *screen.spent({"solve": learned.seconds}),
    ]
    return screen.Content(rows, more)


def _proved_text(certificate: answers.ProvedFacts | UnsetType) -> str | None:
    if certificate is UNSET:
        return None
    proved = "; ".join(f"{interval} of the {name}" for name, interval in certificate.policies.items())
    return f"{certificate.file} proves {proved}"


def _show_rates(learned: Any, answer: answers.RateAnswer) -> screen.Content:
    tension = None if answer.outcomes is None else answer.outcomes.tension
    rates = [f"{one.rate} {interval_text(one.lower, one.upper)}" for one in answer.rates[:MOST_RATES]]
    facts: screen.Rows = [
        ("property", answer.question),
        ("reason", answer.why if answer.value is None else None),
        ("certificate", _proved_text(answer.certificate)),
        ("rate", rates),
        ("warning", tension if isinstance(tension, str) else None),
    ]
    more: screen.Rows = [
        ("returns", answer.outcomes and answer.outcomes.text),
        ("budget", answer.ledger.lines),
        ("note", answer.notes),
        *screen.spent(answer.seconds),
    ]
    columns = ("rate", "lower", "upper", "events", "exposure", "events/exposure")
    rows = [
        (
            one.rate,
            text_below(one.lower),
            text_above(one.upper),
            screen.group(one.events),
            number_text(one.exposure),
            "" if one.estimate is None else number_text(one.estimate),
        )
        for one in answer.rates
    ]
    return screen.Content(facts, more, tables=[screen.Table(columns, rows)])


NOT_WITH_UNITS = "observations export breakdown coupled_gap misfit at tree"
SHARE = 0.9
"""Of all units, where the user says nothing."""


def learn_units(request: LearnRequest) -> Finished:
    """Learn about the units of a log, and print the three answers."""
    assert request.unit is not None
    cli_options.refuse_options(request, NOT_WITH_UNITS, "it cannot be used with --unit")
    if request.compares:
        cli_options.refuse("--sets all", "it cannot be used with --unit")
    column, colon, text = request.unit.rpartition(":")
    name, share = (column, cli_options.parse_number(text, "the share of --unit")) if colon else (text, SHARE)
    files = LearnFiles.claim(request, False, "answer")
    if files.single is not None:
        raise InputError("--unit writes several files", hint="name a directory: -o DIR")
    study = Study(request, temporal=True)
    subject, reading = study.subject, study.reading
    policy = None if request.policy is None else tr.Policy(subject.model, request.policy)
    words = request.learn_options().words
    with screen.phase(f"units by '{name}'") as progress:
        fleet = tr.learn_fleet(
            subject.problem, reading, name, delta=request.delta, share=share, policy=policy, **words
        )
        record, proof = fleet.record(), None
        document = fleet.document(request.model)
        if request.certificate is not None:
            progress("the certificate")
            proof, values = fleet.certified_file(document, not request.no_verify)
            proved = answers.ProvedFacts(proof.digest, str(request.certificate), values)
            record.certificate = document.certificate = proved
    screen.answer(
        fleet.verdict,
        f"{fleet.most.verdict.word.name}: {fleet.most.text}",
        record,
        lambda: screen.Content(
            [
                *fleet.rows(),
                ("certificate", _proved_text(record.certificate)),
                *screen.assumed_facts(fleet.verdict),
                *sources.reading_facts(reading)[0],
            ],
            tables=[screen.Table(*fleet.table())],
        ),
    )

    def fill(folder: Path, digest: str | None, progress: screen.PhaseProgress) -> None:
        beside = digest is not None and files.alone is None and request.certificate is not None
        document.data = study.about
        fleet.fill(folder, record, document, [Path(str(request.certificate)).name] if beside else [])

    write = partial(files.write, answers.ANSWER_FILE, proof, fill)
    return Finished(write, lambda: screen.leave(fleet.verdict))
