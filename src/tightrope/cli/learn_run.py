"""`tightrope learn`: read, learn, print, write.

Output files are claimed before the computation and written after the answer was printed. A certificate in the
output directory is listed in its manifest.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from msgspec import UNSET, UnsetType, structs

from tightrope.atomic import atomic_write
from tightrope.certify.region import refuse_uncertified
from tightrope.cli import options as cli_options
from tightrope.cli import output as screen
from tightrope.cli import sources
from tightrope.cli.learn_fleet import learn_units
from tightrope.cli.result_display import show_comparison, show_result
from tightrope.cli.sources import AnyLoaded, Subject
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.io import answers
from tightrope.io import output as io_output
from tightrope.io import results as io_results
from tightrope.io.coding import to_plain, to_text
from tightrope.io.output import OutputDirectory, OutputFile
from tightrope.io.results import Interval
from tightrope.learning import result_files
from tightrope.learning.answers import LearnedAnswer
from tightrope.learning.learn import learn as learn_about
from tightrope.learning.learn import learn_all
from tightrope.learning.options import LearnOptions, decide
from tightrope.learning.pipeline import EmptyRegion
from tightrope.learning.result import CLOSE, LearningResult
from tightrope.loading import is_continuous
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.numerics.machine import peak_memory
from tightrope.numerics.text import interval_text, number_text, text_above, text_below
from tightrope.prism.properties.capabilities import QueryKind, Task, require_task
from tightrope.prism.properties.shape import kind_of
from tightrope.problem import Problem
from tightrope.statistics.estimates import check_delta
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.verdict import Word

if TYPE_CHECKING:
    from tightrope.certify.certificate_file import CertificateFile
    from tightrope.cli.learn import LearnRequest
    from tightrope.data.reading import Reading


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


NOT_TIMED = "unit policy export discount terminal_reward breakdown at observations no_fallback"
"""Options that cannot be used with chains in continuous time, beside those that the library refuses."""

NOT_OTHER = "unit breakdown export discount terminal_reward outcomes observations"
NO_ANSWER = "breakdowns and outcomes are about one P or R over a simple path or a reward"
OPTIMAL_AT_TRUTH = "optimal-at-truth"
MOST_RATES = 4
"""Rates that are printed; --verbose prints all in a table."""


def run(request: LearnRequest) -> None:
    """Learn about every property that is asked, one after the other: all answers hold together, each at an
    equal share of δ. The exit code is that of the worst."""
    files = () if request.prop is None else sources.read_properties([request.prop]).files
    several = [(file, each) for file in files for each in file.wanted]
    if len(several) < 2:
        run_one(request)
        return
    check_delta(request.delta)
    if request.certificate is not None:
        raise InputError(f"--certificate requires one property, not {len(several)}")
    if request.output is not None and request.output.suffix:
        raise InputError(f"answers to {len(several)} properties need a directory", hint="name one: -o DIR")
    share = f"{request.delta:g}/{len(several)}"
    screen.say(f"{len(several)} properties: all answers hold simultaneously, each at δ = {share}")
    worst = 0
    with (
        io_output.appearing_together(request.output),
        screen.gathering_json(),
    ):
        for number, (file, each) in enumerate(several, start=1):
            place = file.properties.index(each) + 1
            text = file.file if Path(file.file).suffix in sources.PROPERTY_SUFFIXES else file.source
            name = each.name if each.name and each.name.isidentifier() else f"{number:02}"
            try:
                run_one(
                    replace(
                        request,
                        prop=f"{text}#{place}",
                        delta=request.delta / len(several),
                        output=None if request.output is None else request.output / name,
                    )
                )
            except CannotCertify as error:
                screen.say(f"error: {each.text}: {error}")
                worst = error.exit_code
            except typer.Exit as left:
                worst = max(worst, left.exit_code)
    if worst:
        raise typer.Exit(worst)


def run_one(request: LearnRequest) -> None:
    """Learn about one property, print the answer, write what is wanted."""
    timed, other = is_continuous(request.model), None
    if not timed:
        other = other_kind(request.prop)
    refuse_combinations(request, timed, other)
    cli_options.require_device(request.device)
    check_delta(request.delta)
    if request.unit is not None and not timed and other is None:
        learn_units(request)
    elif timed or other is not None:
        learn_answer(request, timed)
    else:
        learn_policies(request)


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
    for is_wrong, words, hint in (
        (
            timed and sets not in (None, "expression"),
            f"--sets {sets} is not supported for continuous time",
            "leave --sets out: it is expression",
        ),
        (request.no_verify and not certificate, "--no-verify requires --certificate: add a file", None),
        (
            request.compares and certificate,
            "--certificate is for one kind of sets, not for --sets all",
            None,
        ),
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
            request.policy == OPTIMAL_AT_TRUTH and other is not None,
            f"--policy {OPTIMAL_AT_TRUTH} requires one P or R over a simple path or a reward",
            "name a file with a policy",
        ),
    ):
        if is_wrong:
            raise InputError(words, hint=hint)


def learn_policies(request: LearnRequest) -> None:
    """Learn about one objective: policies, with their intervals."""
    options, exports = request.learn_options(), result_files.parse_exports(request.export)
    outputs = LearnFiles.claim(request.output, request.certificate)
    tables = request.log.tables()
    if request.observations is not None:
        cli_options.refuse_log_options(request.reading)
    untied, labelled = request.ignores_numbers, request.observations
    subject = sources.load_subject(request, True, untied, observed=True, labelled=labelled)
    not_covered = _refuse_before(request, subject, options) if request.certificate is not None else []
    if subject.product is not None and exports:
        raise InputError(
            "--export writes the learned model, and that of a temporal formula is a product with its "
            "automaton",
            hint="leave --export out",
        )
    if subject.pomdp is not None:
        why = "it is not supported for partially observable models"
        cli_options.refuse_options(request, "export breakdown", why)
    with screen.phase_progress() as progress:
        given, true_value = _read_given_policy(request, subject, progress)
    if isinstance(given, Policy) and request.certificate is not None:
        _refuse_given(given, subject)
    reading = subject.labelled or request.log.read(subject.model, tables)
    if request.certificate is not None:
        if missing := "; ".join(reading.counts.design.censored):
            raise InputError(
                "--certificate: there is nothing to certify, because outcomes are missing from the data: "
                f"{missing}",
                hint="leave --certificate out, or complete the data",
            )
        refuse_uncertified(subject.model, decide(subject.model, reading.counts, options).region)
    with screen.phase_progress() as progress:
        problem = subject.problem
        if subject.pomdp is not None:
            progress("a controller that sees observations only")
            problem = Problem(subject.pomdp, subject.query)
        ask: Any = learn_all if request.compares else learn_about
        try:
            learned = ask(
                problem, reading, delta=request.delta, policy=given, progress=progress, **options.words
            )
        except EmptyRegion as error:
            empty = _empty(error, subject.loaded)
            screen.answer_refuted(error, error.verdict, empty)
        results: list[LearningResult] = list(learned.values()) if request.compares else [learned]
        if request.breakdown is not None:
            progress("breakdown")
            rows, threshold = request.breakdown_words
            breakdown = results[-1].find_breakdown_point(rows=rows, threshold=threshold)
            results[-1] = replace(results[-1], breakdown=breakdown)
        proof = _proof(request, results[0], reading.counts, subject, progress)
    written = None if request.output is None else str(request.output)
    record = _answer(results, subject.loaded, request.compares, written, reading)
    record.true_value = true_value
    if proof is not None:
        record.certificate = _proved_facts(request, proof, not_covered)

    def show() -> screen.Content:
        data, settings = sources.reading_facts(reading)
        if request.compares:
            shown = show_comparison(subject.query.text, results, true_value, written, data)
        else:
            proved = {} if proof is None else {name: Interval(*ends) for name, ends in proof.values.items()}
            shown = show_result(results[0], true_value, written, proved, data)
        return replace(shown, more=[*shown.more, *settings])

    screen.answer(results[-1].verdict, results[-1].headline(), record, show)
    content = None
    if request.output is not None:
        setting = result_files.Setting(
            model=request.model,
            property=subject.query.text,
            delta=request.delta,
            constants=cli_options.parse_constants(request.const),
            data=sources.about_log(request.log, tables, reading),
            command=["tightrope", *sys.argv[1:]],
            policy=request.policy,
            truth=subject.point_text(request.at),
            true_value=true_value,
        )
        content = result_files.document(results, reading.counts, options, setting)
    with screen.phase_progress() as progress:
        outputs.write(proof, results, content, exports, progress)
    leave_with(results)


def leave_with(results: Sequence[LearningResult]) -> None:
    """The answer is the last result, that of the sets asked for; with `--sets all`, of the tightest ones.

    The others are there for comparison: one that a limit stopped has bounds that are wider, and says so.
    """
    *others, answer = results
    for result in others:
        if result.verdict.word is Word.LIMIT:
            screen.warn(f"{result.kind.value} sets: {result.status}")
    screen.leave(answer.verdict)


def _read_given_policy(
    request: LearnRequest, subject: Subject, progress: screen.PhaseProgress
) -> tuple[Policy | str | None, Interval | None]:
    """The policy to certify beside the robust one; the optimum at the true point where it is that one."""
    from tightrope.solver.solve import solve

    if request.policy is None or subject.pomdp is not None:
        return request.policy, None
    if request.policy != OPTIMAL_AT_TRUTH:
        return Policy(subject.model, request.policy), None
    progress("solve: at the true point")
    problem = subject.problem
    model = problem.model
    assert isinstance(model, ParametricMDP)
    solution = solve(model.instantiate(subject.loaded.point(request.at)), problem.objective)
    value = Interval(float(solution.lower[model.initial]), float(solution.upper[model.initial]))
    product = subject.product
    return solution.policy if product is None else product.controller(solution.policy), value


def _refuse_before(request: LearnRequest, subject: Subject, options: LearnOptions) -> list[str]:
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


def _refuse_given(given: Policy, subject: Subject) -> None:
    from tightrope.certify.solved import refuse_steps

    if given.has_memory:
        raise InputError(
            "--certificate covers policies without memory, and --policy has a memory",
            hint="leave --certificate or --policy out",
        )
    refuse_steps(given, subject.query.objective)


def _proof(
    request: LearnRequest,
    result: Any,
    counts: Counts | None,
    subject: Subject,
    progress: screen.PhaseProgress,
) -> CertificateFile | None:
    """The certificate where one is wanted."""
    from tightrope.certify.certify import learned_file

    if request.certificate is None:
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
    policies = {name: Interval(*ends) for name, ends in proof.values.items()}
    return answers.ProvedFacts(
        proof.digest, str(request.certificate), policies, [*notes, *proof.notes] or UNSET
    )


def _answer(
    results: list[LearningResult], loaded: AnyLoaded, several: bool, written: str | None, reading: Reading
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


def _empty(error: EmptyRegion, loaded: AnyLoaded) -> EmptyAnswer:
    return EmptyAnswer(
        **error.verdict.facts,
        empty=True,
        fallback=False,
        contradiction=error.contradiction,
        conflict=list(error.conflict.texts) if error.conflict is not None else None,
        value=None,
        robust_policy=None,
        widths=None,
        ledger=error.ledger.record(),
        seconds={"build": round(loaded.seconds, 6)},
    )


ANSWERED = "the answer above stands; only the files are missing"


@dataclass(frozen=True)
class LearnFiles:
    """The places that were named; `alone`: the certificate, where it does not lie in the directory."""

    directory: OutputDirectory | None
    certificate: Path | None
    alone: OutputFile | None

    @staticmethod
    def claim(directory: Path | None, certificate: Path | None) -> LearnFiles:
        """Refuse what must not or cannot be written; --overwrite is about the certificate alone."""
        claimed = None if directory is None else io_output.claim(directory, result_files.KIND)
        return LearnFiles(claimed, certificate, _beside(certificate, claimed))

    def write(
        self,
        proof: CertificateFile | None,
        results: list[LearningResult],
        content: io_results.ResultDocument | None,
        exports: Collection[result_files.Export],
        progress: screen.PhaseProgress,
    ) -> None:
        """The certificate, and the results with their document, which names it. All files take their places
        in the end; a failure says that the answer stands."""
        filling = nullcontext() if self.directory is None else self.directory.filling(result_files.RESULT)
        try:
            with filling as folder:
                if proof is not None and self.certificate is not None:
                    progress("write: the certificate")
                    if self.alone is not None:
                        self.alone.check()
                    target = self.certificate
                    if folder is not None and self.alone is None:
                        target = folder / target.name
                    digest = proof.save(target)
                    if content is not None:
                        content.certificate = io_results.CertificateFacts(digest, str(self.certificate))
                if folder is not None and content is not None:
                    result_files.fill_results(folder, results, content, exports=exports, progress=progress)
        except InputError as error:
            raise InputError(error.message, error.location, error.hint or ANSWERED) from error


def other_kind(prop: str | None) -> QueryKind | None:
    """The kind of one property that is no single objective, on the model or on a product; else None."""
    if prop is None:
        return None
    files = sources.read_properties([prop]).files
    kinds = [kind_of(one.formula, file) for file in files for one in file.wanted]
    return kinds[0] if len(kinds) == 1 and kinds[0] not in (QueryKind.PLAIN, QueryKind.LTL) else None


def learn_answer(request: LearnRequest, timed: bool) -> None:
    """Learn about a property that is no single objective, or about a chain in continuous time: print the
    interval, and write a directory, or one file: the policy or the learned chain."""
    output = request.output
    if timed and output is not None and output.suffix != ".drn":
        raise InputError(
            "the learned interval chain in continuous time is written as one file",
            hint="write -o learned.drn",
        )
    claimed = directory = None
    if output is not None and output.suffix in (".json", ".drn"):
        kind = io_output.DRN if timed else io_output.POLICY
        claimed = screen.claim(output, kind)
    elif output is not None:
        directory = io_output.claim(output, "answer")
    beside = _beside(request.certificate, directory)
    tables = request.log.tables()
    subject = sources.load_subject(request, answers=True)
    problem, words = subject.problem, dict[str, Any](request.learn_options().words)
    if timed:
        from tightrope.data.exposure import exposure_of

        words.pop("sets", None)
        data: Any = exposure_of(tables, problem.model.structure, request.log.options)
    else:
        data = request.log.read(subject.model, tables)
    given = None if request.policy is None else Policy(subject.model, request.policy)
    with screen.phase_progress() as progress:
        progress("solve")
        result = learn_about(problem, data, delta=request.delta, policy=given, **words)
        assert not isinstance(result, LearningResult)
        proof = _proof(request, result, None if timed else data.counts, subject, progress)
    record: Any
    if isinstance(result, LearnedAnswer):
        record = result.document(request.model)
        if directory is not None:
            record.data = sources.about_log(request.log, tables, data)
    else:
        record = result.document(request.model, subject.loaded.seconds)
    if proof is not None:
        record.certificate = _proved_facts(request, proof, ())

    def show() -> screen.Content:
        if isinstance(result, LearnedAnswer):
            facts, settings = sources.reading_facts(data)
            return _show_answer(result, record, facts, settings)
        return _show_rates(record)

    screen.answer(result.verdict, result.headline(), record, show)
    if proof is not None and beside is not None:
        proof.save(beside.checked())
    if directory is not None and isinstance(result, LearnedAnswer):
        inside = None if beside is not None or request.certificate is None else request.certificate.name
        write_answer(directory, result, record, inside, proof)
    elif claimed is not None and isinstance(result, LearnedAnswer):
        if result.policy is None:
            raise InputError(f"{result.text} has no policy of its own", hint="name a directory: -o DIR")
        result.policy.save(claimed.checked(), problem.model.hash(), to_plain(_certified_facts(result)))
    elif claimed is not None and not isinstance(result, LearnedAnswer) and result.chain is not None:
        from tightrope.io.drn.write import write_drn

        write_drn(result.chain, claimed.checked())
    screen.leave(result.verdict)


def _beside(wanted: Path | None, directory: OutputDirectory | None) -> OutputFile | None:
    """The place of a certificate that does not lie in the output directory."""
    if wanted is None or (directory is not None and Path(os.path.realpath(wanted.parent)) == directory.path):
        return None
    return screen.claim(wanted, io_output.CERTIFICATE)


def write_answer(
    directory: OutputDirectory,
    learned: LearnedAnswer,
    record: answers.AnswerDocument,
    name: str | None = None,
    proof: CertificateFile | None = None,
) -> None:
    """The directory of an answer: its document, the policy, those that a mixture draws from, and the
    certificate where it has a name there."""
    with directory.filling(answers.ANSWER_FILE) as folder:
        record.files = []
        if proof is not None and name is not None:
            proof.save(folder / name)
            record.files.append(name)
        several = None if learned.answer is None else learned.answer.achieved
        policies = {} if learned.policy is None else {"policy.json": learned.policy}
        for number, policy in enumerate(() if several is None else several.controllers, start=1):
            policies[f"policy-{number:02}.json"] = policy
        for name, policy in policies.items():
            policy.save(folder / name, record.model_hash, to_plain(_certified_facts(learned)))
            record.files.append(name)
        with atomic_write(folder / answers.ANSWER_FILE) as file:
            file.write(to_text(record) + "\n")


def _certified_facts(learned: LearnedAnswer) -> io_results.CertifiedFacts:
    interval = learned.interval or Interval(-math.inf, math.inf)
    return io_results.CertifiedFacts(
        question=learned.text,
        lower=interval.lower,
        upper=interval.upper,
        over=f"the hull of {learned.sets.kind.value} sets",
        confidence=1 - learned.ledger.delta,
        holds=learned.ledger.holds,
        status=CLOSE if learned.is_close else "limit",
    )


def _show_answer(
    learned: LearnedAnswer, record: answers.AnswerDocument, data: screen.Rows, settings: screen.Rows
) -> screen.Content:
    rows = [
        ("property", learned.text),
        *learned.facts(),
        *_proved_lines(record.certificate),
        *screen.assumed_facts(learned.verdict),
        *data,
    ]
    more = [
        ("sets", f"the hull of {record.sets} sets"),
        *(("default", reason) for reason in learned.decisions.reasons),
        *(("budget", line) for line in record.ledger.lines),
        *(("note", note) for note in record.notes),
        *settings,
        *screen.spent({"solve": learned.seconds}),
    ]
    return screen.Content(rows, more)


def _proved_lines(certificate: answers.ProvedFacts | UnsetType) -> list[tuple[str, str]]:
    if certificate is UNSET:
        return []
    proved = "; ".join(f"{interval} of the {name}" for name, interval in certificate.policies.items())
    return [("certificate", f"{certificate.file} proves {proved}")]


def _show_rates(answer: answers.RateAnswer) -> screen.Content:
    log = answer.data
    jumps, episodes = screen.count(log.jumps, "jump"), screen.count(log.episodes, "episode")
    cut = screen.count(log.censored, "sojourn")
    facts = [
        ("property", answer.question),
        *([("reason", answer.why)] if answer.value is None else []),
        *_proved_lines(answer.certificate),
        *(("rate", f"{one.rate} {interval_text(one.lower, one.upper)}") for one in answer.rates[:MOST_RATES]),
        ("data", f"{jumps} in {episodes}, time {number_text(log.time)}, {cut} cut off"),
    ]
    if answer.outcomes is not None:
        tension = answer.outcomes.tension
        facts += [("warning", tension)] if isinstance(tension, str) else []
    more = [
        *(("import", line) for line in log.read_as),
        *([] if answer.outcomes is None else [("returns", answer.outcomes.text)]),
        *(("budget", line) for line in answer.ledger.lines),
        *(("note", note) for note in answer.notes),
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
