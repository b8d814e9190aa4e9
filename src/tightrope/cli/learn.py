"""`tightrope learn MODEL --prop P --data F --delta D`: a robust policy and its certified interval."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.learn_table import print_comparison, print_result
from tightrope.cli.model_source import LoadedModel, load_model
from tightrope.cli.options import At, Const, Domain, Json, Model, Param, Prop, parse_constants
from tightrope.cli.output import print_json, warn
from tightrope.cli.phases import PhaseProgress, phase_progress
from tightrope.cli.questions import Discount, TerminalReward, read_properties
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.document import Setting, document
from tightrope.learning.learn import ALL_KINDS, Learner
from tightrope.learning.options import LearnOptions
from tightrope.learning.policies import depends_on_step
from tightrope.learning.result import Interval, LearningResult
from tightrope.learning.result_files import check_directory, write_results
from tightrope.learning.stages import EmptyRegion
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.region.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod, check_delta
from tightrope.statistics.events import Budget
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.statistics.ledger import Assumption
from tightrope.uncertainty.sets import SetsKind

if TYPE_CHECKING:
    from tightrope.data.reading import Reading
    from tightrope.learning.learn import Policy
    from tightrope.prism.question import Question

OPTIMAL_AT_TRUTH = "optimal-at-truth"


class SetsOption(Enum):
    """The kinds of sets, or all of them beside each other."""

    UNTIED = "untied"
    TIED = "tied"
    PARAMETER = "parameter"
    EXPRESSION = "expression"
    RECTANGULAR = "rectangular"
    ALL = "all"


def learn(
    model: Model,
    data: Annotated[
        Path,
        typer.Option(
            "--data", metavar="FILE", help="A .csv or .parquet file of steps or counts.", show_default=False
        ),
    ],
    delta: Annotated[
        float, typer.Option("--delta", metavar="D", help="The guarantee may fail with this probability.")
    ] = 0.001,
    prop: Prop = None,
    region: Annotated[
        RegionKind | None,
        typer.Option("--region", help="The confidence set of parameters.", show_default=False),
    ] = None,
    sets: Annotated[
        SetsOption | None,
        typer.Option("--sets", help="What nature may pick from; 'all' compares.", show_default=False),
    ] = None,
    interval: Annotated[
        IntervalMethod | None,
        typer.Option("--interval", help="The intervals of events.", show_default=False),
    ] = None,
    budget: Annotated[Budget, typer.Option("--budget", help="How events share δ.")] = Budget.TIED,
    ellipsoid: Annotated[
        EllipsoidVersion, typer.Option("--ellipsoid", help="'paper' is the published one, which is unsound.")
    ] = EllipsoidVersion.SOUND,
    intersect: Annotated[
        bool, typer.Option("--intersect", help="Meet parameter sets with the tied intervals.")
    ] = False,
    no_fallback: Annotated[
        bool,
        typer.Option("--no-fallback", help="Stop where the region is empty, instead of using tied sets."),
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE|optimal-at-truth",
            help="Certify this policy's interval as well.",
            show_default=False,
        ),
    ] = None,
    at: At = None,
    const: Const = None,
    param: Param = None,
    domain: Domain = None,
    discount: Discount = None,
    terminal_reward: TerminalReward = None,
    assume_support: Annotated[
        float | None,
        typer.Option(
            "--assume-support",
            metavar="EPS",
            help="Nature cannot cut transitions: lower bounds of 0 become EPS.",
            show_default=False,
        ),
    ] = None,
    precision: Annotated[
        float, typer.Option("--precision", metavar="EPS", help="How closely values are computed (relative).")
    ] = 1e-6,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit", metavar="SECONDS", help="Stop refining after so long.", show_default=False
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE", help="Write a certificate for 'tightrope verify'."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Write results, policies and the learned model."),
    ] = None,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Leave the learned model out of the output directory.")
    ] = False,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Drop rows that the model excludes, and count them.")
    ] = False,
    json: Json = False,
) -> None:
    """Learn a robust policy and its certified interval from data.

    With probability at least 1 - delta the policy's true value lies in its interval. What is not given is
    decided from the model and from how the data were sampled, never from what was seen; every default is
    explained. With --sets all, every kind of sets is solved and compared.

    Example: tightrope learn 'bench:betting(50)' --data data.parquet --delta 0.001 -o results
    """
    check_delta(delta)
    several = sets is SetsOption.ALL
    if several and certificate is not None:
        raise InputError("--certificate goes with one kind of sets, not with --sets all")
    options = LearnOptions(
        region=region,
        sets=None if sets is None or several else SetsKind(sets.value),
        interval=interval,
        budget=budget,
        ellipsoid=ellipsoid,
        intersect=intersect,
        fallback=not no_fallback,
        precision=precision,
        assume_support=assume_support,
        seconds=float("inf") if time_limit is None else time_limit,
    )
    if output is not None:
        check_directory(output)
    constants = parse_constants(const)
    asked = read_properties([] if prop is None else [prop])
    loaded = load_model(model, asked.model_constants(constants), param, domain)
    question = _one(asked.questions(loaded, constants, discount, terminal_reward))
    subject = _Subject.of(model, loaded, question)
    with phase_progress() as progress:
        given = _given_policy(subject, policy, at, progress)
        reading = _read(subject, data, skip_invalid, progress)
        learner = Learner(
            subject.model,
            reading.counts,
            delta,
            question.objective,
            options=options,
            policy=given.policy if given is not None else None,
            progress=progress,
        )
        try:
            results = _results(learner, options, several)
        except EmptyRegion as error:
            if json:
                print_json(_empty(error, loaded))
            raise
        written = None
        if certificate is not None:
            _certify(results[0], reading.counts, certificate, subject, progress)
        if output is not None:
            setting = Setting(
                model=model,
                property=question.text,
                delta=delta,
                constants=constants,
                data=_about(data, reading),
                command=["tightrope", *sys.argv[1:]],
                policy=policy,
                truth=_point(subject, at),
                true_value=given.true_value if given is not None else None,
            )
            content = document(results, reading.counts, options, setting)
            write_results(output, results, content, models=not no_model, progress=progress)
            written = str(output)
    _warn_about(results, reading)
    true_value = given.true_value if given is not None else None
    if json:
        print_json(_json(results, loaded, several, written, true_value))
    elif several:
        print_comparison(question.text, results, true_value, written)
    else:
        print_result(question.text, results[0], true_value, written)
    stopped = [result for result in results if not result.is_certified]
    if stopped:
        raise CannotCertify(f"{stopped[0].sets.kind.value} sets: {stopped[0].status}")


@dataclass(frozen=True)
class _Subject:
    """What is learned about: a parametric model and one question."""

    source: str
    loaded: LoadedModel
    model: ParametricMDP
    question: Question

    @staticmethod
    def of(source: str, loaded: LoadedModel, question: Question) -> _Subject:
        if not isinstance(loaded.model, ParametricMDP) or not loaded.model.parameters.names:
            raise InputError(
                f"{source} has no parameters: there is nothing to learn about it",
                hint="'tightrope check' computes the values of such a model",
            )
        return _Subject(source, loaded, loaded.model, question)


@dataclass(frozen=True, eq=False)
class _Given:
    """The policy to certify beside the robust one; the optimum at the true point where it is that one."""

    policy: Policy
    true_value: Interval | None


def _one(questions: list[Question]) -> Question:
    if len(questions) != 1:
        raise InputError(f"learning goes with one property, not {len(questions)}")
    question = questions[0]
    if question.is_threshold:
        raise InputError(
            f"{question.text} is true or false, but learning needs a value to optimise",
            hint="ask for the value: Pmax=? [ … ]",
        )
    return question


def _given_policy(
    subject: _Subject, policy: str | None, at: str | None, progress: PhaseProgress
) -> _Given | None:
    from tightrope.formats.policy import read_policy
    from tightrope.solver.solve import solve

    if policy is None:
        return None
    if policy != OPTIMAL_AT_TRUTH:
        read = read_policy(policy, subject.model.structure)
        return _Given(read.choice.astype("int64") if read.is_deterministic else read.probability, None)
    if depends_on_step(subject.question.objective):
        raise InputError(
            f"the optimal policy for {subject.question.text} depends on the step: it is no choice a state",
            hint="leave --policy out; the robust policy's interval is computed in any case",
        )
    progress("solve: at the true point")
    solution = solve(subject.model.instantiate(subject.loaded.point(at)), subject.question.objective)
    initial = subject.model.initial
    return _Given(solution.policy, Interval(float(solution.lower[initial]), float(solution.upper[initial])))


def _read(subject: _Subject, data: Path, skip_invalid: bool, progress: PhaseProgress) -> Reading:
    from tightrope.data.reading import read_counts

    progress(f"reading {data.name}")
    return read_counts(data, subject.model, skip_invalid=skip_invalid)


def _results(learner: Learner, options: LearnOptions, several: bool) -> list[LearningResult]:
    if not several:
        return [learner.result(options)]
    return [learner.result(options.with_sets(kind)) for kind in ALL_KINDS]


def _certify(
    result: LearningResult, counts: Counts, path: Path, subject: _Subject, progress: PhaseProgress
) -> None:
    from tightrope.learning.certificate import certificate_of

    progress("write: the certificate")
    about = {"model": subject.source, "model_hash": subject.model.hash(), "property": subject.question.text}
    certificate_of(result, counts, about).save(path)


def _point(subject: _Subject, at: str | None) -> dict[str, str] | None:
    """The true parameters, where they are known."""
    from tightrope.experiments.instance import decimal_text

    if at is None and subject.loaded.benchmark is None:
        return None
    point = subject.loaded.point(at)
    return {n: decimal_text(v) for n, v in zip(subject.model.parameters.names, point, strict=True)}


def _about(data: Path, reading: Reading) -> dict[str, object]:
    from hashlib import sha256

    with data.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    known = ("source", "seed", "policy", "cap", "at", "property")
    return {
        "file": str(data),
        "sha256": digest.hexdigest(),
        "rows": reading.rows,
        "dropped": dict(reading.dropped),
        "sampled": {key: value for key, value in (reading.metadata or {}).items() if key in known},
    }


def _warn_about(results: list[LearningResult], reading: Reading) -> None:
    for reason, rows in reading.dropped.items():
        warn(f"{rows} rows dropped: {reason}")
    for result in results:
        if result.verdict is not None:
            warn(f"{result.verdict} Tied sets were used instead.")
            break
    misfits = [result.misfit for result in results if result.misfit is not None]
    if misfits:
        warn(f"{misfits[0]}\nhint: --region polytope falls back to tied sets, which need less of the model")
    for ledger in dict.fromkeys(result.ledger for result in results):
        if ledger.assumption is Assumption.NONE:
            warn(f"{ledger.method}: nothing is guaranteed, for comparison with published figures only")
        elif not ledger.holds:
            warn(
                f"{ledger.method} assumes {ledger.assumption.value}, and the data were not collected in this "
                "way: the confidence is nominal. --interval beta-binomial holds for them"
            )


def _json(
    results: list[LearningResult],
    loaded: LoadedModel,
    several: bool,
    written: str | None,
    true_value: Interval | None,
) -> dict[str, object]:
    """DESIGN's keys of the one result; with --sets all those of the last, and all under "all"."""
    facts = dict(results[-1].to_json())
    seconds = facts["seconds"]
    assert isinstance(seconds, dict)
    facts["seconds"] = {"build": round(loaded.seconds, 6), **seconds}
    facts["true_value"] = true_value.to_json() if true_value is not None else None
    facts["output"] = written
    if several:
        facts["all"] = [result.to_json() for result in results]
    return facts


def _empty(error: EmptyRegion, loaded: LoadedModel) -> dict[str, object]:
    return {
        "empty": True,
        "fallback": False,
        "verdict": error.verdict,
        "conflict": list(error.conflict.texts) if error.conflict is not None else None,
        "value": None,
        "robust_policy": None,
        "widths": None,
        "ledger": error.ledger.to_json(),
        "seconds": {"build": round(loaded.seconds, 6)},
    }
