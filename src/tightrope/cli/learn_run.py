"""`tightrope learn`: read, learn, print, write.

Output files are claimed before the computation and written after the answer was printed.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import typer
from msgspec import UNSET, Struct, UnsetType, structs

import tightrope as tr
from tightrope.atomic import atomic_write, explain_errors
from tightrope.cli import late, sources
from tightrope.cli import options as cli_options
from tightrope.cli import output as screen
from tightrope.cli.result_display import fit_facts, show_comparison, show_result
from tightrope.cli.sources import Study, Subject
from tightrope.errors import CannotCertify, InputError
from tightrope.io import answers
from tightrope.io import output as io_output
from tightrope.io import results as io_results
from tightrope.io.coding import record_of, to_plain, to_text
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
    answer, how = learn_answer, {"answers": True}
    if not timed and other is None and request.unit is not None:
        answer, how = learn_units, {"temporal": True}
    elif not timed and other is None:
        how = {"temporal": True, "untied": request.kind == "untied", "observed": True}
        answer = learn_policies
    words, exports = request.learn_options(), result_files.parse_exports(request.export)
    files = LearnFiles.claim(request, timed, result_files.KIND if answer is learn_policies else "answer")
    if request.observations is not None:
        cli_options.refuse_log_options(request.reading)
    return answer(Learning(request, words, exports, files, Study(request, **how)))


def refuse_combinations(request: LearnRequest, timed: bool, other: QueryKind | None) -> None:
    """Options that do not go with the model, the question, or each other."""
    if timed:
        cli_options.refuse_options(request, NOT_TIMED)
    elif other is not None or request.unit is not None:
        why = f"it cannot be used with {'--unit' if other is None else f'{request.prop}: {NO_ANSWER}'}"
        cli_options.refuse_options(request, NOT_WITH_UNITS if other is None else NOT_OTHER, why)
        if request.kind == "all":
            cli_options.refuse("--sets all", why)
    certificate, folder = request.certificate is not None, request.output
    if other is not None and certificate:
        require_task(other, str(request.prop), Task.LEARN_CERTIFICATE)
    cli_options.require_coupled(request.coupled_gap, request.kind in ("coupled", "all"))
    several = request.unit is not None and folder is not None and folder.suffix in SINGLE
    cli_options.refuse_any(
        (several, "--unit writes several files", "name a directory: -o DIR"),
        (
            timed and request.kind not in (None, "expression"),
            f"--sets {request.kind} is not supported for continuous time",
            "leave --sets out: it is expression",
        ),
        (request.kind == "all" and certificate, "--certificate is for one kind of sets, not for --sets all"),
        (
            certificate and request.ellipsoid is EllipsoidVersion.PAPER,
            "--certificate has nothing to prove: the published ellipsoid is unsound and guarantees nothing",
            "leave --ellipsoid paper out: the sound ellipsoid (--region ellipsoid) has certificates",
        ),
        (
            request.tree is not None and (request.kind == "all" or request.policy is not None),
            "--tree cannot be used with --sets all or --policy",
            "learn with one kind of sets and without --policy for a tree",
        ),
        (
            request.policy == OPTIMAL_AT_TRUTH and other is not None,
            f"--policy {OPTIMAL_AT_TRUTH} requires one P or R over a simple path or a reward",
            "name a file with a policy",
        ),
    )


@dataclass(frozen=True, eq=False)
class Learning:
    """A question with its data, how it is answered, and the files to write."""

    request: LearnRequest
    words: tr.LearnOptions
    exports: Sequence[result_files.Export]
    files: LearnFiles
    study: Study

    def prove(
        self, result: tr.LearningResult | tr.LearnedAnswer | tr.RateResult, progress: screen.PhaseProgress
    ) -> CertificateFile | None:
        """The certificate where one is wanted."""
        if (file := self.request.certificate) is None:
            return None
        progress("the certificate")
        return sources.prove(result, self.request.model, file, not self.request.no_verify)

    def proved(
        self, proof: CertificateFile | None, notes: Sequence[str] = ()
    ) -> answers.ProvedFacts | UnsetType:
        """What is said of a certificate; `notes` are what it is not about."""
        if proof is None:
            return UNSET
        policies = {name: Interval.of(*ends) for name, ends in proof.values.items()}
        file, missing = str(self.request.certificate), [*notes, *proof.notes]
        return answers.ProvedFacts(proof.digest, file, policies, missing or UNSET)


def learn_policies(about: Learning) -> Finished:
    """Learn about one objective: policies, with their intervals."""
    request, study, words = about.request, about.study, about.words
    subject = study.subject
    not_covered = _refuse_before(request, subject, words) if request.certificate is not None else []
    if subject.is_temporal:
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
        results = _learn(about, given, progress)
        if request.tree is not None:
            progress("a small decision tree")
            results[-1] = results[-1].with_tree(loss=cli_options.parse_share(request.tree, "--tree"))
        proof = about.prove(results[0], progress)
    written = None if request.output is None else str(request.output)
    record = _record(about, results, true_value, about.proved(proof, not_covered))

    def show() -> screen.Content:
        if request.kind == "all":
            return show_comparison(subject.query.text, results, true_value, written)
        proved = {} if proof is None else {name: Interval.of(*ends) for name, ends in proof.values.items()}
        return show_result(results[0], true_value, written, proved)

    sources.answer_from(reading, results[-1], record, show)

    def fill(folder: Path, progress: screen.PhaseProgress) -> None:
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
        if proof is not None:
            content.certificate = io_results.CertificateFacts(proof.digest, str(request.certificate))
        result_files.fill_results(folder, results, content, exports=about.exports, progress=progress)

    write = partial(about.files.write, result_files.RESULT, proof, fill)
    return Finished(write, lambda: leave_with(results))


def _record(
    about: Learning,
    results: Sequence[tr.LearningResult],
    true_value: Interval | None,
    certificate: answers.ProvedFacts | UnsetType,
) -> LearnAnswer:
    """The keys of --json: with --sets all those of the last result."""
    request, outcomes = about.request, [result.outcome for result in results]
    main = structs.asdict(outcomes[-1])
    main["seconds"] = {"build": round(about.study.subject.loaded.seconds, 6), **outcomes[-1].seconds}
    return LearnAnswer(
        **main,
        peak_memory=peak_memory(),
        true_value=true_value,
        output=None if request.output is None else str(request.output),
        all=outcomes if request.kind == "all" else UNSET,
        data=sources.read_facts(about.study.reading),
        certificate=certificate,
    )


def _learn(
    about: Learning, given: tr.Policy | str | None, progress: screen.PhaseProgress
) -> list[tr.LearningResult]:
    """The result, or those of all kinds of sets, and the breakdown point of the last where it is wanted."""
    request, study = about.request, about.study
    subject = study.subject
    if subject.pomdp is not None:
        progress("a controller that sees observations only")
    ask = partial(tr.learn_all if request.kind == "all" else tr.learn, subject.problem, study.reading)
    try:
        learned = ask(delta=request.delta, policy=given, progress=progress, **about.words.words)
    except tr.EmptyRegion as error:
        empty = record_of(
            EmptyAnswer,
            error,
            empty=True,
            fallback=False,
            conflict=None if error.conflict is None else list(error.conflict.texts),
            value=None,
            robust_policy=None,
            widths=None,
            seconds={"build": round(subject.loaded.seconds, 6)},
        )
        screen.answer_refuted(error, error.verdict, empty)
    results = list(learned.values()) if isinstance(learned, dict) else [cast(tr.LearningResult, learned)]
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
    if subject.is_temporal:
        problem = late.product_problem.product_problem(subject.model, subject.query)[0]
    solution = solve(problem.at(subject.loaded.point(request.at)))
    policy = solution.policy if problem.lift is None else problem.controller(solution.policy)
    return policy, Interval.of(*solution.bounds)


def _refuse_before(request: LearnRequest, subject: Subject, options: tr.LearnOptions) -> list[str]:
    """Refuse what no certificate holds; what this one will not be about, in words, before it is computed."""
    late.region.refuse_uncertified(subject.model, options.region)
    words = []
    if request.policy is None and subject.pomdp is not None:
        words = [
            "the certificate will be about the chosen controller: what no controller exceeds is not in "
            "it (`check --at` at the point of the robust optimum certifies that one)"
        ]
    elif request.policy is None and subject.is_temporal:
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
    if isinstance(given, tr.Policy) and given.has_memory:
        raise InputError(
            "--certificate covers policies without memory, and --policy has a memory",
            hint="leave --certificate or --policy out",
        )
    if isinstance(given, tr.Policy):
        late.solved.refuse_steps(given, study.subject.query.objective)
    model, counts = study.subject.model, study.reading.counts
    if missing := "; ".join(counts.design.censored):
        raise InputError(
            "--certificate: there is nothing to certify, because outcomes are missing from the data: "
            f"{missing}",
            hint="leave --certificate out, or complete the data",
        )
    late.region.refuse_uncertified(model, decide(model, counts, words).region)


CHAIN = "learned.drn"
ANSWERED = "the answer above stands; only the files are missing"
SINGLE = (".json", ".drn")
"""The endings of a file with the policy or the chain of an answer, in place of a directory."""


@dataclass(frozen=True)
class LearnFiles:
    """A directory or a `single` file; a certificate has a name `inside` of it, or is a file `apart`."""

    directory: io_output.OutputDirectory | None
    single: io_output.OutputFile | None
    inside: str | None
    apart: io_output.OutputFile | None

    @staticmethod
    def claim(request: LearnRequest, timed: bool, kind: str) -> LearnFiles:
        """Refuse what must not or cannot be written; --overwrite is about files alone."""
        output, certificate, single, folder = request.output, request.certificate, None, None
        if timed and output is not None and output.suffix == ".json":
            raise InputError(
                "the learned interval chain in continuous time is written as .drn",
                hint="write -o learned.drn, or -o DIR",
            )
        if output is not None and kind == "answer" and output.suffix in SINGLE:
            single = screen.claim(output, io_output.DRN if timed else io_output.POLICY)
        elif output is not None:
            folder = io_output.claim(output, kind)
        if certificate is None or folder is None or folder.path != Path(os.path.realpath(certificate.parent)):
            return LearnFiles(folder, single, None, screen.claim(certificate, io_output.CERTIFICATE))
        return LearnFiles(folder, single, certificate.name, None)

    def write(
        self, first: str, proof: CertificateFile | None, fill: Callable[[Path, screen.PhaseProgress], None]
    ) -> None:
        """Write the certificate, and what `fill` writes into the directory; `first` comes last."""
        filling = nullcontext() if self.directory is None else self.directory.filling(first)
        try:
            with screen.phase_progress() as progress, filling as folder:
                if proof is not None:
                    progress("write: the certificate")
                if proof is not None and self.apart is not None:
                    proof.save(self.apart.checked())
                elif proof is not None and folder is not None and self.inside is not None:
                    proof.save(folder / self.inside)
                if folder is not None:
                    fill(folder, progress)
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


def learn_answer(about: Learning) -> Finished:
    """Learn about a property that is no single objective, or about a chain in continuous time."""
    request, study, words = about.request, about.study, about.words.words
    subject, problem = study.subject, study.subject.problem
    timed = isinstance(problem.model, tr.ParametricCTMC)
    if timed:
        words.pop("sets", None)
    data: tr.Exposure | tr.Reading = study.exposure if timed else study.reading
    with screen.phase("solve") as progress:
        result = tr.learn(problem, data, delta=request.delta, policy=request.policy, **words)
        assert not isinstance(result, tr.LearningResult)
        proof = about.prove(result, progress)
    if isinstance(result, tr.LearnedAnswer):
        document = result.document(request.model)
        document.data = UNSET if about.files.directory is None else study.about
        document.certificate = about.proved(proof)
        record: Struct = document
        show = partial(_show_answer, result, document)
    else:
        rates = result.document(request.model)
        rates.seconds = {"build": round(subject.loaded.seconds, 6), **rates.seconds}
        rates.certificate = about.proved(proof)
        record, show = rates, partial(_show_rates, rates)
        document = result.answer(rates, {"file": ", ".join(study.log.places)})
    sources.answer_from(data, result, record, show)

    def fill(folder: Path, progress: screen.PhaseProgress) -> None:
        fill_answer(folder, result, document, None if proof is None else about.files.inside)

    def write() -> None:
        about.files.write(answers.ANSWER_FILE, proof, fill)
        if (target := about.files.single) is None:
            return
        if isinstance(result, tr.RateResult):
            if result.chain is not None:
                result.chain.save(target.checked())
        elif result.policy is None:
            raise InputError(f"{result.text} has no policy of its own", hint="name a directory: -o DIR")
        else:
            result.policy.save(target.checked(), problem.model.hash(), to_plain(certified_facts(result)))

    return Finished(write, lambda: screen.leave(result.verdict))


def fill_answer(
    folder: Path,
    learned: tr.LearnedAnswer | tr.RateResult,
    record: answers.AnswerDocument,
    beside: str | None = None,
) -> None:
    """Write the document of an answer, its policy with those that a mixture draws from, or its chain."""
    files = [] if beside is None else [beside]
    if isinstance(learned, tr.LearnedAnswer):
        several = None if learned.answer is None else learned.answer.achieved
        policies = {} if learned.policy is None else {"policy.json": learned.policy}
        for number, policy in enumerate(() if several is None else several.controllers, start=1):
            policies[f"policy-{number:02}.json"] = policy
        for name, policy in policies.items():
            policy.save(folder / name, record.model_hash, to_plain(certified_facts(learned)))
        files += policies
    elif learned.chain is not None:
        learned.chain.save(folder / CHAIN)
        files.append(CHAIN)
    record.files = files
    with atomic_write(folder / answers.ANSWER_FILE) as file:
        file.write(to_text(record) + "\n")


def certified_facts(learned: tr.LearnedAnswer) -> io_results.CertifiedFacts:
    """What the file of its policy says of an answer."""
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


def _show_answer(learned: tr.LearnedAnswer, record: answers.AnswerDocument) -> screen.Content:
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


def _show_rates(answer: answers.RateAnswer) -> screen.Content:
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


def learn_units(about: Learning) -> Finished:
    """Learn about the units of a log, and print the three answers."""
    request, study = about.request, about.study
    subject, reading = study.subject, study.reading
    column, colon, text = (request.unit or "").rpartition(":")
    name, share = (column, cli_options.parse_number(text, "the share of --unit")) if colon else (text, SHARE)
    learn = partial(tr.learn_fleet, delta=request.delta, share=share, policy=request.policy)
    with screen.phase(f"units by '{name}'") as progress:
        fleet = learn(subject.problem, reading, name, **about.words.words)
        record, document, proof = fleet.record(), fleet.document(request.model), None
        if request.certificate is not None:
            progress("the certificate")
            proof, values = fleet.certified_file(document, not request.no_verify)
            proved = answers.ProvedFacts(proof.digest, str(request.certificate), values)
            record.certificate = document.certificate = proved

    def show() -> screen.Content:
        certificate = ("certificate", _proved_text(record.certificate))
        rows = [*fleet.rows(), certificate, *screen.assumed_facts(fleet.verdict)]
        read, _ = sources.reading_facts(reading)
        return screen.Content([*rows, *read], tables=[screen.Table(*fleet.table())])

    screen.answer(fleet.verdict, document.headline, record, show)

    def fill(folder: Path, progress: screen.PhaseProgress) -> None:
        document.data = study.about
        fleet.fill(folder, record, document, [] if about.files.inside is None else [about.files.inside])

    write = partial(about.files.write, answers.ANSWER_FILE, proof, fill)
    return Finished(write, lambda: screen.leave(fleet.verdict))
