"""What `tightrope learn` does: read, learn, print, write.

What is written is claimed before anything is computed, and written after the answer was printed. A
certificate that is to lie in the output directory belongs to it, and is listed in its manifest. Long-run
averages give a policy and the interval of its average, chains in continuous time intervals of rates and of
the value.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType, structs

from tightrope.atomic import atomic_write
from tightrope.cli import options as cli_options
from tightrope.cli import output as screen
from tightrope.cli import sources
from tightrope.cli.result_display import options_that_hold, print_comparison, print_result
from tightrope.cli.sources import LoadedModel, Subject, TimedModel
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.io import answers
from tightrope.io import output as io_output
from tightrope.io import results as io_results
from tightrope.io.coding import to_plain, to_text
from tightrope.io.output import OutputDirectory, OutputFile
from tightrope.io.results import Interval
from tightrope.late import dataclass
from tightrope.learning import result_files
from tightrope.learning.answers import LearnedAnswer
from tightrope.learning.assumption_chain import refuted_rungs, what_to_do
from tightrope.learning.averages import LearnedAverage
from tightrope.learning.learn import comparable_kinds
from tightrope.learning.learn import learn as learn_about
from tightrope.learning.options import LearnOptions, decide
from tightrope.learning.pipeline import EmptyRegion, Pipeline, Serves
from tightrope.learning.result import CLOSE, LearningResult
from tightrope.loading import is_continuous
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.numerics.machine import peak_memory
from tightrope.numerics.text import interval_text, text_above, text_below
from tightrope.prism.properties.capabilities import QueryKind, Task, require_task
from tightrope.prism.properties.shape import kind_of
from tightrope.problem import Problem, require_discrete
from tightrope.statistics.confidence_budget import COMPLETE, SAMPLING, Assumption
from tightrope.statistics.estimates import check_delta
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.verdict import Assumed, Word

if TYPE_CHECKING:
    from tightrope.certify.certificate_file import CertificateFile
    from tightrope.cli.learn import LearnRequest
    from tightrope.data.reading import Reading
    from tightrope.learning.rates import RateResult


class LearnAnswer(io_results.Outcome, kw_only=True):
    """`learn`: with `--sets all` that of the last kind, and all of them under `all`."""

    peak_memory: int
    true_value: Interval | None = None
    output: str | None = None
    all: list[io_results.Outcome] | UnsetType = UNSET
    data: io_results.ReadingFacts
    certificate: answers.ProvedFacts | UnsetType = UNSET


class EmptyAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`learn --no-fallback` where the region is empty: no parameters fit the data."""

    verdict: Word
    why: str
    assumptions: list[Assumed]
    empty: bool
    fallback: bool
    contradiction: str
    conflict: list[str] | None
    value: None
    robust_policy: None
    widths: None
    ledger: io_results.LedgerFacts
    seconds: dict[str, float]


NOT_TIMED = """
    interval intersect policy export discount terminal_reward assume_support misfit breakdown
    breakdown_of threshold coupled_gap cost_range cost_sd at behaviour return_range prior
    observations
"""
NOT_TIMED_LOG = "design planned_episodes since window chosen_at skip_invalid order gaps"
"""Options that do not go with chains in continuous time."""

NO_ANSWER = "breakdowns and outcomes are about one P or R over a simple path or a reward"
OPTIMAL_AT_TRUTH = "optimal-at-truth"


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
        raise InputError(f"--certificate goes with one property, not {len(several)}")
    if request.output is not None and request.output.suffix:
        raise InputError(
            f"the answers to {len(several)} properties are written into a directory", hint="name one: -o DIR"
        )
    share = f"{request.delta:g}/{len(several)}"
    screen.warn(f"{len(several)} properties: all answers hold together, each at δ = {share}")
    troubles: list[str] = []
    with (
        io_output.appearing_together(request.output),
        screen.gathering_json() if request.json else nullcontext(),
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
                troubles.append(f"{each.text}: {error}")
    if troubles:
        raise CannotCertify("\n".join(troubles))


def run_one(request: LearnRequest) -> None:
    """Learn about one property, write what is wanted, print the result."""
    timed = is_continuous(request.model)
    if timed:
        cli_options.refuse_options(request, NOT_TIMED)
        cli_options.refuse_options(request.reading, NOT_TIMED_LOG)
        if request.sets is not None and request.sets.value != "expression":
            raise InputError(
                f"--sets {request.sets.value} is not there for continuous time",
                hint="leave --sets out: it is expression",
            )
    cli_options.require_device(request.device)
    check_delta(request.delta)
    if timed:
        learn_value(request, timed=True)
        return
    if request.threshold is not None and not request.breakdown and request.breakdown_of is None:
        raise InputError("--threshold is what a breakdown has to meet", hint="add --breakdown")
    cli_options.require_coupled(request.coupled_gap, request.is_coupled)
    if request.no_verify and request.certificate is None:
        raise InputError("--no-verify goes with --certificate: add a file")
    if request.compares and request.certificate is not None:
        raise InputError("--certificate goes with one kind of sets, not with --sets all")
    if request.certificate is not None and request.ellipsoid is EllipsoidVersion.PAPER:
        raise InputError(
            "--certificate has nothing to prove: the published ellipsoid is unsound and guarantees nothing",
            hint="leave --ellipsoid paper out: the sound ellipsoid (--region ellipsoid) has certificates",
        )
    other = other_kind(request.prop)
    if other is not None:
        why = f"it does not go with {request.prop}: {NO_ANSWER}"
        refused = "breakdown breakdown_of threshold export discount terminal_reward outcomes observations"
        cli_options.refuse_options(request, f"{refused} behaviour return_range", why)
        if request.certificate is not None:
            require_task(other, str(request.prop), Task.LEARN_CERTIFICATE)
        if request.compares:
            cli_options.refuse("--sets all", why)
        learn_value(request, timed=False)
        return
    options = request.learn_options()
    exports = result_files.parse_exports(request.export)
    if exports and request.output is None:
        raise InputError("--export writes the learned model into the output directory", hint="add -o DIR")
    outputs = LearnFiles.claim(request.output, request.certificate, request.overwrite)
    files = request.log.files()
    constants = cli_options.parse_constants(request.const)
    if request.observations is not None:
        cli_options.refuse_log_options(request.reading)
    untied, labelled = request.ignores_numbers, request.observations
    subject = sources.load_subject(request, True, untied, observed=True, labelled=labelled)
    if request.certificate is not None:
        _refuse_uncertified(subject, options)
        for words in _not_covered(subject, request.policy):
            screen.warn(words)
    if subject.product is not None and exports:
        raise InputError(
            "--export writes the learned model, and that of a temporal formula is a product with its "
            "automaton",
            hint="leave --export out",
        )
    if subject.pomdp is not None:
        why = "it is not there for partially observable models"
        cli_options.refuse_options(request, "export breakdown breakdown_of", why)
    loaded, question = subject.loaded, subject.query
    with screen.phase_progress() as progress:
        given, true_value = _read_given_policy(request, subject, progress)
        if given is not None and request.certificate is not None:
            from tightrope.certify.solved import refuse_steps

            if given.has_memory:
                raise InputError(
                    "--certificate is about policies without memory, and --policy is one with a memory",
                    hint="leave --certificate or --policy out",
                )
            refuse_steps(given, question.objective)
    reading = subject.labelled or request.log.read(subject.model, files)
    if request.certificate is not None:
        if missing := "; ".join(reading.counts.design.censored):
            raise InputError(
                f"--certificate has nothing to prove, because outcomes are missing from the data: {missing}",
                hint="leave --certificate out, or complete the data",
            )
        _refuse_uncertified(subject, options, reading.counts)
    with screen.phase_progress() as progress:
        if subject.pomdp is not None:
            from tightrope.learning.observed import observed_problem

            progress("a controller that sees observations only")
            problem = Problem(subject.pomdp, question)
            product = observed_problem(problem, reading.counts, options, request.policy)
            subject = replace(subject, product=product)
        alone = Serves.REFINED if subject.product is None else Serves.ONE
        learner = Pipeline.start(
            subject.problem,
            reading.counts,
            request.delta,
            options=options,
            policy=given,
            progress=progress,
            serves=Serves.SEVERAL if request.compares else alone,
        )
        try:
            if request.compares:
                results = learner.results([options.with_sets(kind) for kind in comparable_kinds(options)])
            else:
                results = [learner.result(options)]
        except EmptyRegion as error:
            if request.json:
                screen.print_json(_empty(error, loaded))
            else:
                screen.print_verdict(error.verdict, error.verdict.headline(""))
            raise
        if request.breakdown or request.breakdown_of is not None:
            progress("breakdown")
            breakdown = results[-1].find_breakdown(threshold=request.threshold, rows=request.breakdown_of)
            results[-1] = replace(results[-1], breakdown=breakdown)
        about = subject.model.hash(), subject.query.text
        proof = _proof(request, results[0], reading.counts, about, progress)
    _warn_about(results, reading)
    _print(request, results, subject, true_value, proof, reading)
    content = None
    if request.output is not None:
        setting = result_files.Setting(
            model=request.model,
            property=question.text,
            delta=request.delta,
            constants=constants,
            data=sources.about_log(request.log, files, reading),
            command=["tightrope", *sys.argv[1:]],
            policy=request.policy,
            truth=subject.point_text(request.at),
            true_value=true_value,
        )
        content = result_files.document(results, reading.counts, options, setting)
    with screen.phase_progress() as progress:
        outputs.write(proof, results, content, exports, progress)
    leave_with(results, request.accept_nominal)


def leave_with(results: Sequence[LearningResult], accept_nominal: bool) -> None:
    """The answer is the last result, that of the sets asked for; with `--sets all`, of the tightest ones.

    The others are there for comparison: one that a limit stopped has bounds that are wider, and says so.
    """
    *others, answer = results
    for result in others:
        if result.verdict.word is Word.LIMIT:
            screen.warn(f"{result.kind.value} sets: {result.status}")
    screen.leave(answer.verdict, accept_nominal, f"{answer.kind.value} sets")


def _read_given_policy(
    request: LearnRequest, subject: Subject, progress: screen.PhaseProgress
) -> tuple[Policy | None, Interval | None]:
    """The policy to certify beside the robust one; the optimum at the true point where it is that one."""
    from tightrope.solver.solve import solve

    if request.policy is None or subject.pomdp is not None:
        return None, None
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


def _not_covered(subject: Subject, policy: str | None) -> list[str]:
    """What a certificate will not be about, in words, before it is computed."""
    if subject.pomdp is not None and policy is None:
        return [
            "the certificate will be about the chosen controller: what no controller exceeds is not in "
            "it (`check --at` at the point of the robust optimum certifies that one)"
        ]
    if subject.product is None or policy is not None:
        return []
    return [
        "the certificate will be about the robust policy with the memory of the automaton that the checker "
        "derives, computed again there: verify --policy does not compare the policy that -o writes"
    ]


def _refuse_uncertified(subject: Subject, options: LearnOptions, counts: Counts | None = None) -> None:
    """Whether certificates hold what is asked, before it is computed."""
    from tightrope.certify.region import refuse_uncertified

    model = subject.model
    if isinstance(model, ParametricMDP):
        refuse_uncertified(model, options.region if counts is None else decide(model, counts, options).region)


def _proof(
    request: LearnRequest,
    result: Any,
    counts: Counts | None,
    question: tuple[str, str],
    progress: screen.PhaseProgress,
) -> CertificateFile | None:
    """The certificate where one is wanted; `question`: the digest of the model, and the property."""
    from tightrope.certify.certify import learned_file

    if request.certificate is None:
        return None
    progress("the certificate")
    about = {"model": request.model, "model_hash": question[0], "property": question[1]}
    proof = learned_file(result, counts, about, not request.no_verify)
    for words in proof.notes:
        screen.warn(words)
    return proof


def _proved_facts(request: LearnRequest, proof: CertificateFile, notes: Sequence[str]) -> answers.ProvedFacts:
    policies = {name: Interval(*ends) for name, ends in proof.values.items()}
    return answers.ProvedFacts(
        proof.digest, str(request.certificate), policies, [*notes, *proof.notes] or UNSET
    )


def _print(
    request: LearnRequest,
    results: list[LearningResult],
    subject: Subject,
    true_value: Interval | None,
    proof: CertificateFile | None,
    reading: Reading,
) -> None:
    """The answer; it is on the screen before anything is written, which may fail."""
    proved = {} if proof is None else {name: Interval(*ends) for name, ends in proof.values.items()}
    written = None if request.output is None else str(request.output)
    if request.json:
        answer = _answer(results, subject.loaded, request.compares, written, reading)
        answer.true_value = true_value
        if proof is not None:
            answer.certificate = _proved_facts(request, proof, _not_covered(subject, request.policy))
        screen.print_json(answer)
        sys.stdout.flush()
        return
    screen.print_verdict(results[-1].verdict, results[-1].headline())
    sources.print_reading(reading)
    if request.compares:
        print_comparison(subject.query.text, results, true_value, written)
    else:
        print_result(subject.query.text, results[0], true_value, written, proved)
    sys.stdout.flush()


def _warn_about(results: list[LearningResult], reading: Reading) -> None:
    for missing in reading.counts.design.censored:
        screen.warn(f"{missing}: what is missing may depend on how it came out, so the confidence is nominal")
    for result in results:
        if result.contradiction is not None:
            broken = (
                refuted_rungs(result.model, result.counts, None).get("tied")
                if result.counts is not None
                else None
            )
            hint = "" if broken is None else f"\nhint: --sets untied: a tie is broken as well, {broken}"
            screen.warn(f"{result.contradiction} Tied sets were used instead.{hint}")
            break
    if (refuted := results[-1].refuted_costs) is not None:
        hint = "state a wider range of costs (--cost-range), or a larger bound on their deviation (--cost-sd)"
        screen.warn(f"{refuted}\nhint: {hint}")
    seen = results[-1].seen
    if seen is not None and seen.contradiction is not None:
        screen.warn(
            f"{seen.contradiction}\nhint: the outcomes are what holds; --sets untied needs less of the model"
        )
    if seen is not None and seen.tension is not None:
        screen.warn(
            f"{seen.tension}\nhint: 'tightrope doctor' tests the model; --outcomes only does without it"
        )
    fit = results[-1].fit
    if fit is not None and fit.misfit is not None:
        screen.warn(f"{fit.misfit}\nhint: {what_to_do(results[-1])}")
    for ledger in dict.fromkeys(result.ledger for result in results):
        if ledger.assumption is Assumption.NONE:
            screen.warn(f"{ledger.method}: nothing is guaranteed, for comparison with published figures only")
        for one in ledger.assumptions:
            if one.holds or one.name == COMPLETE or ledger.assumption is Assumption.NONE:
                continue
            if one.name != SAMPLING:
                screen.warn(f"{one.name}: {one.why}: the confidence is nominal")
            elif not ledger.censored:
                screen.warn(
                    f"{ledger.method} assumes {ledger.assumption.value}, and the data were not collected in "
                    f"this way: the confidence is nominal\nhint: {options_that_hold(ledger)} holds for them"
                )


def _answer(
    results: list[LearningResult], loaded: LoadedModel, several: bool, written: str | None, reading: Reading
) -> LearnAnswer:
    """DESIGN's keys of the one result; with --sets all those of the last, and all under "all"."""
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


def _empty(error: EmptyRegion, loaded: LoadedModel) -> EmptyAnswer:
    return EmptyAnswer(
        empty=True,
        fallback=False,
        **error.verdict.facts,
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
    def claim(directory: Path | None, certificate: Path | None, overwrite: bool) -> LearnFiles:
        """Refuse what must not or cannot be written; `overwrite` is about the certificate alone."""
        claimed = None if directory is None else io_output.claim(directory, result_files.KIND)
        return LearnFiles(claimed, certificate, _beside(certificate, claimed, overwrite))

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


def learn_value(request: LearnRequest, timed: bool) -> None:
    """Learn about a property that is no single objective, or about a chain in continuous time: print the
    interval, and write a directory, or one file: the policy or the learned chain."""
    output = request.output
    if timed and output is not None and output.suffix != ".drn":
        raise InputError(
            "of a chain in continuous time the learned interval chain is written, as one file",
            hint="write -o learned.drn",
        )
    is_file = timed or (output is not None and output.suffix == ".json")
    claimed = directory = None
    if output is not None and is_file:
        claimed = io_output.claim_file(
            output, io_output.DRN if timed else io_output.POLICY, request.overwrite
        )
    elif output is not None:
        directory = io_output.claim(output, "answer")
    beside = _beside(request.certificate, directory, request.overwrite)
    files, constants = () if timed else request.log.files(), cli_options.parse_constants(request.const)
    properties = sources.read_properties([] if request.prop is None else [request.prop])
    load: Any = sources.load_timed if timed else sources.load_model
    loaded: LoadedModel | TimedModel = load(
        request.model, properties.model_constants(constants), request.param, request.domain
    )
    (query,) = properties.queries(loaded, constants)
    problem = Problem(loaded.model, query)
    words: dict[str, Any] = {**request.learn_options().words}
    sources.require_parameters(loaded)
    if timed:
        from tightrope.data.exposure import exposure_of

        words = {name: words[name] for name in ("region", "precision", "outcomes") if name in words}
        data: Any = exposure_of(request.places, loaded.model.structure, request.log.options)
    else:
        data = request.log.read(require_discrete(loaded.model), files)
    with screen.phase_progress() as progress:
        progress("solve")
        given = None
        if request.policy == OPTIMAL_AT_TRUTH:
            raise InputError(
                f"--policy {OPTIMAL_AT_TRUTH} goes with one P or R over a simple path or a reward",
                hint="name a file with a policy",
            )
        if request.policy is not None:  # not in continuous time: it was refused above
            given = Policy(require_discrete(problem.model), request.policy)
        result = learn_about(problem, data, delta=request.delta, policy=given, **words)
        about = problem.model.hash(), problem.text
        proof = _proof(request, result, None if timed else data.counts, about, progress)
    answer: answers.AnswerDocument | answers.RateAnswer = (
        rate_answer(loaded, result) if timed else answer_document(loaded, result)
    )
    if directory is not None and isinstance(answer, answers.AnswerDocument):
        answer.data = sources.about_log(request.log, files, data)
    if proof is not None:
        answer.certificate = _proved_facts(request, proof, ())
    if request.json:
        screen.print_json(answer)
    else:
        screen.print_verdict(result.verdict, result.headline())
        if isinstance(answer, answers.RateAnswer):
            _print_rates(answer)
        else:
            sources.print_reading(data)
            _print_answer(result, answer)
    sys.stdout.flush()
    if proof is not None and beside is not None:
        proof.save(beside.checked())
    if directory is not None and isinstance(answer, answers.AnswerDocument):
        inside = None if beside is not None or request.certificate is None else request.certificate.name
        write_answer(directory, result, answer, problem.model.hash(), inside, proof)
    elif claimed is not None and not timed:
        if result.policy is None:
            raise InputError(f"{result.text} has no policy of its own", hint="name a directory: -o DIR")
        claimed.check()
        certified = to_plain(_certified_facts(result, answer.status))
        result.policy.save(claimed.path, problem.model.hash(), certified)
    elif claimed is not None and result.chain is not None:
        from tightrope.io.drn.write import write_drn

        write_drn(result.chain, claimed.checked())
    screen.leave(result.verdict, request.accept_nominal, problem.text)


def _beside(wanted: Path | None, directory: OutputDirectory | None, overwrite: bool) -> OutputFile | None:
    """The place of a certificate that does not lie in the output directory."""
    if wanted is None or (directory is not None and Path(os.path.realpath(wanted.parent)) == directory.path):
        return None
    return io_output.claim_file(wanted, io_output.CERTIFICATE, overwrite)


def write_answer(
    directory: OutputDirectory,
    learned: LearnedAverage | LearnedAnswer,
    answer: answers.AnswerDocument,
    model_hash: str,
    name: str | None = None,
    proof: CertificateFile | None = None,
) -> None:
    """The directory of an answer: its document, the policy, those that a mixture draws from, and the
    certificate where it has a name there."""
    with directory.filling(answers.ANSWER_FILE) as folder:
        answer.files = []
        if proof is not None and name is not None:
            proof.save(folder / name)
            answer.files.append(name)
        several = learned.answer.achieved if isinstance(learned, LearnedAnswer) else None
        policies = {} if learned.policy is None else {"policy.json": learned.policy}
        for number, policy in enumerate(() if several is None else several.controllers, start=1):
            policies[f"policy-{number:02}.json"] = policy
        for name, policy in policies.items():
            policy.save(folder / name, model_hash, to_plain(_certified_facts(learned, answer.status)))
            answer.files.append(name)
        with atomic_write(folder / answers.ANSWER_FILE) as file:
            file.write(to_text(answer) + "\n")


def _certified_facts(learned: LearnedAverage | LearnedAnswer, status: str) -> io_results.CertifiedFacts:
    interval = learned.interval or Interval(-math.inf, math.inf)
    return io_results.CertifiedFacts(
        question=learned.text,
        lower=interval.lower,
        upper=interval.upper,
        over=f"the hull of {learned.sets.kind.value} sets",
        confidence=1 - learned.ledger.delta,
        holds=learned.ledger.holds,
        status=status,
    )


def answer_document(
    loaded: LoadedModel | TimedModel, learned: LearnedAverage | LearnedAnswer
) -> answers.AnswerDocument:
    """What is said of a property that is no single objective."""
    verdict = learned.verdict
    average = learned if isinstance(learned, LearnedAverage) else None
    other = learned if isinstance(learned, LearnedAnswer) else None
    return answers.AnswerDocument(
        model=loaded.source,
        model_hash=loaded.model.hash(),
        question=learned.text,
        **verdict.facts,
        headline=learned.headline(),
        value=None if other is None else other.interval,
        truth=None if other is None else other.truth,
        robust_policy=None if average is None else average.interval,
        guarantee=learned.guarantee,
        optimistic=None if average is None else average.optimistic,
        sets=learned.sets.kind.value,
        ledger=learned.ledger.record(),
        outcomes=None if average is None or average.outcomes is None else average.outcomes.record(),
        status=CLOSE if learned.is_close else "limit",
        notes=[*learned.sets.notes, *(() if other is None else other.answer.readings)],
        peak_memory=peak_memory(),
        seconds={"solve": round(learned.seconds, 6)},
    )


def _print_answer(learned: LearnedAverage | LearnedAnswer, answer: answers.AnswerDocument) -> None:
    facts = []
    if isinstance(learned, LearnedAverage):
        facts += [
            ("guarantee", learned.guarantee_text()),
            ("robust policy", str(learned.interval)),
            ("optimistic", f"{learned.optimistic_text()}: no policy does better"),
        ]
    else:
        facts += [("answer", learned.truth)] if learned.truth is not None else []
        facts += [("true value", str(learned.interval))] if learned.interval is not None else []
    facts += [
        *_proved_lines(answer.certificate),
        ("sets", f"the hull of {learned.sets.kind.value} sets"),
        *(("why", reason) for reason in learned.decisions.reasons),
        *(("ledger", line) for line in learned.ledger.lines),
        *(("note", note) for note in answer.notes),
        ("seconds", f"{learned.seconds:.3g}"),
        ("memory", screen.memory_text()),
    ]
    screen.print_facts(learned.text, facts)


def _proved_lines(certificate: answers.ProvedFacts | UnsetType) -> list[tuple[str, str]]:
    if certificate is UNSET:
        return []
    proved = "; ".join(f"{interval} of the {name}" for name, interval in certificate.policies.items())
    return [("certificate", f"{certificate.file} proves {proved}")]


def rate_answer(loaded: LoadedModel | TimedModel, result: RateResult) -> answers.RateAnswer:
    """The document of a result."""
    from tightrope.regions.rate_box import box_of

    verdict = result.verdict
    value = result.interval if math.isfinite(result.interval.lower) else None
    widths = None
    if result.chain is not None:
        unknown = result.model.expressions.nonconstant
        open_part = (result.chain.upper - result.chain.lower)[unknown]
        widths = io_results.WidthFacts(
            float(open_part.mean()),
            float(open_part.max()),
            len(unknown),
            box_of(result.region, result.model.parameters.names),
        )
    return answers.RateAnswer(
        model=loaded.source,
        question=result.question,
        **verdict.facts,
        empty=result.value is None,
        fallback=False,
        value=value,
        robust_policy=value,
        widths=widths,
        rates=[
            answers.RateFacts(text, low, high, k, t, k / t if t > 0 else None)
            for text, low, high, k, t in result.rates
        ],
        findings=[
            answers.RateFinding(one.text, one.feature, math.exp(min(one.log_e_value, 700.0)))
            for one in (() if result.fit is None else result.fit.findings)
        ],
        outcomes=None if result.outcomes is None else result.outcomes.record(),
        ledger=result.ledger.record(),
        status="empty" if result.value is None else "limit" if result.value.missed else CLOSE,
        notes=[*([] if result.value is None else result.value.notes), f"constant rates {result.fit_text}"],
        data=answers.TimedLogFacts(
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


def _print_rates(answer: answers.RateAnswer) -> None:
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
    facts += _proved_lines(answer.certificate)
    if answer.outcomes is not None:
        facts.append(("outcomes", answer.outcomes.text))
        facts += [("warning", answer.outcomes.tension)] if isinstance(answer.outcomes.tension, str) else []
    facts += [("ledger", line) for line in answer.ledger.lines]
    facts += [("note", note) for note in answer.notes]
    spent = ", ".join(f"{seconds:.3g} {phase}" for phase, seconds in answer.seconds.items())
    screen.print_facts(answer.question, [*facts, ("seconds", spent), ("memory", screen.memory_text())])
    rows = [
        (
            one.rate,
            text_below(one.lower, 6),
            text_above(one.upper, 6),
            screen.group(one.events),
            f"{one.exposure:.6g}",
            "" if one.estimate is None else f"{one.estimate:.6g}",
        )
        for one in answer.rates
    ]
    screen.print_table("", ("rate", "lower", "upper", "events", "exposure", "events/exposure"), rows)


def _count(number: int, what: str) -> str:
    return f"{screen.group(number)} {what}{'' if number == 1 else 's'}"
