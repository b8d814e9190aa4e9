"""What `tightrope learn` does: read, learn, write, print.

Apart from the command's options, so that its help needs none of this.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from tightrope.cli.learn_average import asks_average, run_average
from tightrope.cli.learn_output import Outputs
from tightrope.cli.learn_table import options_that_hold, print_comparison, print_result
from tightrope.cli.log_source import about_log, print_reading, read_facts
from tightrope.cli.model_source import LoadedModel
from tightrope.cli.options import parse_constants, require_coupled
from tightrope.cli.output import leave, peak_memory, print_json, print_verdict, warn
from tightrope.cli.progress import PhaseProgress, phase_progress
from tightrope.cli.subject import Subject, load_subject
from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.io.answers import EmptyAnswer, LearnAnswer, ProvedFacts, ReadingFacts
from tightrope.io.coding import from_plain, to_plain
from tightrope.io.results import assumed_facts
from tightrope.learning.document import Setting, document
from tightrope.learning.learn import Learner, comparable_kinds
from tightrope.learning.options import LearnOptions, decide
from tightrope.learning.outcome import ledger_facts, outcome_of, span_of
from tightrope.learning.result import Interval, LearningResult
from tightrope.learning.result_files import parse_exports
from tightrope.learning.stages import EmptyRegion
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.monitoring.model_fit import ModelFit
from tightrope.statistics.estimates import check_delta
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.statistics.ledger import COMPLETE, SAMPLING, Assumption
from tightrope.verdict import Word

if TYPE_CHECKING:
    from tightrope.certify.certificate_file import CertificateFile
    from tightrope.cli.learn import Request
    from tightrope.data.reading import Reading

OPTIMAL_AT_TRUTH = "optimal-at-truth"


def run(asked: Request) -> None:
    """Learn, write what is wanted, print the result."""
    check_delta(asked.delta)
    require_coupled(asked.coupled_gap, asked.is_coupled)
    if asked.compares and asked.certificate is not None:
        raise InputError("--certificate goes with one kind of sets, not with --sets all")
    if asked.certificate is not None and asked.ellipsoid is EllipsoidVersion.PAPER:
        raise InputError(
            "--certificate has nothing to prove: the published ellipsoid is unsound and guarantees nothing",
            hint="leave --ellipsoid paper out: the sound ellipsoid (--region ellipsoid) has certificates",
        )
    if asks_average(asked.prop):
        run_average(asked)
        return
    options = asked.learn_options()
    exports = parse_exports(asked.export)
    if exports and asked.output is None:
        raise InputError("--export writes the learned model into the output directory", hint="add -o DIR")
    outputs = Outputs.claimed(asked.output, asked.certificate, asked.overwrite)
    files = asked.log.files()
    constants = parse_constants(asked.const)
    subject = load_subject(asked, temporal=True)
    if asked.certificate is not None:
        _refuse_quotients(subject, options)
        for words in _not_covered(subject):
            warn(words)
    if subject.product is not None and exports:
        raise InputError(
            "--export writes the learned model, and that of a temporal formula is a product with its "
            "automaton",
            hint="leave --export out",
        )
    loaded, question = subject.loaded, subject.query
    with phase_progress() as progress:
        given = _read_given_policy(subject, asked.policy, asked.at, progress)
        steering = None if given is None else given.policy
        if steering is not None and steering.has_memory and asked.certificate is not None:
            raise InputError(
                "--certificate is about policies without memory, and --policy is one with a memory",
                hint="leave --certificate or --policy out",
            )
        if steering is not None and asked.certificate is not None:
            from tightrope.certify.solved import refuse_steps

            refuse_steps(steering, question.objective)
        true_value = given.true_value if given is not None else None
    reading = asked.log.read(subject.model, files)
    if asked.certificate is not None and reading.counts.design.censored:
        raise InputError(
            "--certificate has nothing to prove, because outcomes are missing from the data: "
            f"{'; '.join(reading.counts.design.censored)}",
            hint="leave --certificate out, or complete the data",
        )
    if asked.certificate is not None:
        _refuse_quotients(subject, options, reading.counts)
    with phase_progress() as progress:
        learner = Learner(
            subject.problem,
            reading.counts,
            asked.delta,
            options=options,
            policy=given.policy if given is not None else None,
            progress=progress,
            together=asked.compares,
        )
        try:
            results = _results(learner, options, asked.compares)
        except EmptyRegion as error:
            if asked.json:
                print_json(_empty(error, loaded))
            else:
                print_verdict(error.verdict, error.verdict.headline(""))
            raise
        proof = _proof(results[0], reading.counts, subject, progress) if asked.certificate else None
    _warn_about(results, reading)
    _print(asked, results, subject, true_value, proof, reading)
    content = None
    if asked.output is not None:
        setting = Setting(
            model=asked.model,
            property=question.text,
            delta=asked.delta,
            constants=constants,
            data=about_log(asked.log, files, reading),
            command=["tightrope", *sys.argv[1:]],
            policy=asked.policy,
            truth=subject.point_text(asked.at),
            true_value=true_value,
        )
        content = document(results, reading.counts, options, setting)
    with phase_progress() as progress, outputs.writing(progress) as writer:
        writer.write(proof, results, content, exports=exports)
    leave_with(results, asked.accept_nominal)


def leave_with(results: Sequence[LearningResult], accept_nominal: bool) -> None:
    """The answer is the last result, that of the sets asked for; with `--sets all`, of the tightest ones.

    The others are there for comparison: one that a limit stopped has bounds that are wider, and says so.
    """
    *others, answer = results
    for result in others:
        if result.verdict.word is Word.LIMIT:
            warn(f"{result.kind.value} sets: {result.status}")
    leave(answer.verdict, accept_nominal, f"{answer.kind.value} sets")


@dataclass(frozen=True, eq=False)
class _Given:
    """The policy to certify beside the robust one; the optimum at the true point where it is that one."""

    policy: Policy
    true_value: Interval | None


def _read_given_policy(
    subject: Subject, policy: str | None, at: str | None, progress: PhaseProgress
) -> _Given | None:
    from tightrope.model.policy import Policy
    from tightrope.solver.solve import solve

    if policy is None:
        return None
    if policy != OPTIMAL_AT_TRUTH:
        return _Given(Policy(subject.model, policy), None)
    progress("solve: at the true point")
    problem = subject.problem
    model = problem.model
    assert isinstance(model, ParametricMDP)
    solution = solve(model.instantiate(subject.loaded.point(at)), problem.objective)
    value = Interval(float(solution.lower[model.initial]), float(solution.upper[model.initial]))
    if subject.product is not None:
        return _Given(subject.product.controller(solution.policy), value)
    return _Given(solution.policy, value)


def _results(learner: Learner, options: LearnOptions, several: bool) -> list[LearningResult]:
    if not several:
        return [learner.result(options)]
    return learner.results([options.with_sets(kind) for kind in comparable_kinds(options)])


def _not_covered(subject: Subject) -> list[str]:
    """What a certificate will not be about, in words, before it is computed."""
    if subject.product is None:
        return []
    return [
        "the certificate will be about the robust policy with the memory of the automaton that the checker "
        "derives, computed again there: verify --policy does not compare the policy that -o writes"
    ]


def _refuse_quotients(subject: Subject, options: LearnOptions, counts: Counts | None = None) -> None:
    """Whether certificates hold what is asked of quotients, before it is computed."""
    from tightrope.certify.quotients import refuse_quotients

    model = subject.model
    if isinstance(model, ParametricMDP) and model.expressions.denominators:
        sets, region = options.sets, options.region
        if counts is not None:
            decided = decide(model, counts, options)
            sets, region = decided.sets, decided.region
        refuse_quotients(model, sets, region)


def _proof(
    result: LearningResult, counts: Counts, subject: Subject, progress: PhaseProgress
) -> CertificateFile:
    from tightrope.certify.certificate_file import as_file
    from tightrope.certify.learned import certificate_of

    progress("the certificate")
    about = {"model": subject.source, "model_hash": subject.model.hash(), "property": subject.query.text}
    return as_file(certificate_of(result, counts, about))


def _print(
    asked: Request,
    results: list[LearningResult],
    subject: Subject,
    true_value: Interval | None,
    proof: CertificateFile | None,
    reading: Reading,
) -> None:
    """The answer; it is on the screen before anything is written, which may fail."""
    proved = {} if proof is None else {name: Interval(*ends) for name, ends in proof.values.items()}
    written = None if asked.output is None else str(asked.output)
    if asked.json:
        answer = _answer(results, subject.loaded, asked.compares, written, reading)
        answer.true_value = None if true_value is None else span_of(true_value)
        if proof is not None:
            policies = {policy: span_of(interval) for policy, interval in proved.items()}
            answer.certificate = ProvedFacts(
                proof.digest, str(asked.certificate), policies, _not_covered(subject) or UNSET
            )
        print_json(answer)
        sys.stdout.flush()
        return
    print_verdict(results[-1].verdict, results[-1].headline())
    print_reading(reading)
    if asked.compares:
        print_comparison(subject.query.text, results, true_value, written)
    else:
        print_result(subject.query.text, results[0], true_value, written, proved)
    sys.stdout.flush()


def _warn_about(results: list[LearningResult], reading: Reading) -> None:
    for missing in reading.counts.design.censored:
        warn(f"{missing}: what is missing may depend on how it came out, so the confidence is nominal")
    for result in results:
        if result.contradiction is not None:
            warn(f"{result.contradiction} Tied sets were used instead.")
            break
    if (refuted := results[-1].refuted_costs) is not None:
        hint = "state a wider range of costs (--cost-range), or a larger bound on their deviation (--cost-sd)"
        warn(f"{refuted}\nhint: {hint}")
    fit = results[-1].fit
    if fit is not None and fit.misfit is not None:
        warn(f"{fit.misfit}\nhint: {_what_to_do(fit)}")
    for ledger in dict.fromkeys(result.ledger for result in results):
        if ledger.assumption is Assumption.NONE:
            warn(f"{ledger.method}: nothing is guaranteed, for comparison with published figures only")
        for one in ledger.assumptions:
            if one.holds or one.name == COMPLETE or ledger.assumption is Assumption.NONE:
                continue
            if one.name != SAMPLING:
                warn(f"{one.name}: {one.why}: the confidence is nominal")
            elif not ledger.censored:
                warn(
                    f"{ledger.method} assumes {ledger.assumption.value}, and the data were not collected in "
                    f"this way: the confidence is nominal\nhint: {options_that_hold(ledger)} holds for them"
                )


def _what_to_do(fit: ModelFit) -> str:
    """About a model that is contradicted."""
    if fit.suspects and fit.suspects[0].kind == "drift":
        return "watch says when the parameters changed, and --since leaves out what came before"
    return "--sets tied needs least of the model: that equal expressions have equal probabilities"


def _answer(
    results: list[LearningResult], loaded: LoadedModel, several: bool, written: str | None, reading: Reading
) -> LearnAnswer:
    """DESIGN's keys of the one result; with --sets all those of the last, and all under "all"."""
    outcomes = [outcome_of(result) for result in results]
    main = structs.asdict(outcomes[-1])
    main["seconds"] = {"build": round(loaded.seconds, 6), **outcomes[-1].seconds}
    return LearnAnswer(
        **main,
        peak_memory=peak_memory(),
        output=written,
        all=outcomes if several else UNSET,
        data=from_plain(to_plain(read_facts(reading)), ReadingFacts),
    )


def _empty(error: EmptyRegion, loaded: LoadedModel) -> EmptyAnswer:
    return EmptyAnswer(
        empty=True,
        fallback=False,
        verdict=error.verdict.word,
        why=error.verdict.why,
        assumptions=assumed_facts(error.verdict),
        contradiction=error.contradiction,
        conflict=list(error.conflict.texts) if error.conflict is not None else None,
        value=None,
        robust_policy=None,
        widths=None,
        ledger=ledger_facts(error.ledger),
        seconds={"build": round(loaded.seconds, 6)},
    )
