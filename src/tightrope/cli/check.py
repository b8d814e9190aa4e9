"""`tightrope check MODEL --prop P`: certified values of a plain or interval model, or at a point.

With `--sets S` it is a policy's certified interval over all instantiations in a domain.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tightrope import __version__
from tightrope.cli import options
from tightrope.cli.check_answers import (
    ComposedAnswer,
    DomainAnswer,
    PlainAnswer,
    answer_composed,
    certify_composed,
    claim_figure,
    refuse_composed,
    report_answers,
    require_curve,
    support_assumed,
    write_controller,
    write_figure,
)
from tightrope.cli.options import (
    DeviceName,
    ModelOptions,
    list_given,
    option,
    parse_constants,
    refuse,
    refuse_options,
    require_coupled,
    require_device,
    takes,
)
from tightrope.cli.output import (
    leave,
    memory_text,
    peak_memory,
    phase_progress,
    print_facts,
    print_json,
    print_verdict,
    warn,
)
from tightrope.cli.sources import (
    LoadedModel,
    PropertyTexts,
    TimedModel,
    load_embedded,
    load_model,
    load_timed,
    read_own_properties,
    read_properties,
)
from tightrope.errors import InputError
from tightrope.io.coding import to_plain
from tightrope.io.output import CERTIFICATE, POLICY, OutputFile, claim_file, refuse_same
from tightrope.io.results import Interval
from tightrope.loading import ModelRequest, is_continuous, is_markov_automaton
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.numerics.jit import interpreting, stop_interpreting
from tightrope.numerics.text import interval_text
from tightrope.prism.properties.query import Query, read_query
from tightrope.prism.properties.resolve import PropertyOptions
from tightrope.prism.properties.shape import refuse_time
from tightrope.problem import Problem
from tightrope.solver.iteration.budget import SolveOptions
from tightrope.solver.solve import solve, solve_query
from tightrope.solver.workspace import Workspace
from tightrope.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.io.output import OutputFile
    from tightrope.learning.options import LearnOptions
    from tightrope.learning.result import LearningResult
    from tightrope.model.policy import Policy


class DomainSets(Enum):
    """What nature may pick from, within the domain."""

    EXPRESSION = "expression"
    RECTANGULAR = "rectangular"
    COUPLED = "coupled"


Props = Annotated[
    list[str] | None,
    option(
        "--prop",
        "A property such as 'Pmax=? [ F \"goal\" ]', or a .props file; may be repeated.",
        "PROPERTY|FILE",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Request(ModelOptions):
    """The options of the command."""

    prop: Props = None
    at: options.At = None
    discount: options.Discount = None
    terminal_reward: options.TerminalReward = None
    policy: Annotated[Path | None, option("--policy", "Evaluate this policy.", "FILE")] = None
    sets: Annotated[
        DomainSets | None,
        option(
            "--sets",
            "Bound a parametric model over its whole domain: nature picks parameters at every choice "
            "anew (expression, rectangular), or once for the whole run (coupled). The policy is that of "
            "--policy, the optimal one at --at, or the most robust one found.",
        ),
    ] = None
    coupled_gap: options.CoupledGap = None
    precision: Annotated[float, option("--precision", "How close the two bounds must come.", "EPS")] = 1e-6
    absolute: Annotated[
        bool, option("--absolute", "Read --precision as an absolute distance, not relative.")
    ] = False
    assume_support: options.AssumeSupport = None
    ltl_translator: options.LtlTranslator = None
    time_limit: options.TimeLimit = None
    certificate: options.CertificateFile = None
    policy_out: Annotated[Path | None, option("--policy-out", "Write the policy found, as JSON.", "FILE")] = (
        None
    )
    figure: Annotated[
        Path | None,
        option("--figure", "Draw the curve of two objectives, multi(…), as .pdf, .png or .svg.", "FILE"),
    ] = None
    device: options.Device = DeviceName.CPU
    threads: options.Threads = None
    all_states: Annotated[bool, option("--all-states", "Bounds for every state.")] = False
    build_all: Annotated[
        bool,
        option(
            "--build-all",
            "Explore all states of a PRISM model. Without it, states behind a target or a forbidden "
            "state are left out: they do not change the value.",
        ),
    ] = False
    overwrite: options.Overwrite = False
    json: options.Json = False

    def solve_options(self) -> SolveOptions:
        """How values are computed."""
        return SolveOptions(
            self.precision,
            not self.absolute,
            seconds=math.inf if self.time_limit is None else self.time_limit,
            threads=self.threads,
            device=self.device.value,
            assume_support=self.assume_support,
            translator=self.ltl_translator,
        )


NOT_TIMED = "policy_out policy discount terminal_reward assume_support coupled_gap figure"
"""Options that do not go with chains in continuous time."""


@takes(Request)
@interpreting()
def check(request: Request) -> None:
    """Certified bounds on the value of a plain or interval model, or of a parametric one at a point.

    The lower and the upper bound are verified, not residuals: the value lies between them. With --sets,
    bounds on a policy's value over all instantiations in the domain of a parametric model.

    Example: tightrope check model.prism --prop 'Pmax=? [ F "goal" ]' --at p=0.55 --certificate goal.cert

    Example: tightrope check model.prism --domain '0.1<=p<=0.4' --policy policy.json --sets coupled
    """
    _check_options(request.precision, request.assume_support, request.time_limit)
    require_coupled(request.coupled_gap, request.sets is DomainSets.COUPLED)
    certificate, policy_out = request.certificate, request.policy_out
    refuse_same((certificate, policy_out, request.figure))
    proof_file = None if certificate is None else claim_file(certificate, CERTIFICATE, request.overwrite)
    policy_file = None if policy_out is None else claim_file(policy_out, POLICY, request.overwrite)
    drawn_file = None if request.figure is None else claim_figure(request.figure, request.overwrite)
    require_device(request.device)
    constants = parse_constants(request.const)
    properties = read_properties(request.prop) if request.prop else read_own_properties(request.model)
    how = request.solve_options()
    timed, at = is_continuous(request.model), request.at
    if timed:
        refuse_options(request, NOT_TIMED)
        if certificate and request.sets:
            refuse("--certificate with --sets")
    if timed and certificate is None:
        check_timed(request, properties, how)
        return
    untimed = is_markov_automaton(request.model)
    if untimed:
        refuse_options(request, "certificate discount", "it does not go with Markov automata")
        for file in properties.files:
            refuse_time(file)
    everything = request.build_all or any((request.sets, request.policy, certificate, policy_out))
    boundary = None if everything else properties.boundary(constants)
    given_constants = properties.model_constants(constants)
    if timed:
        embedded = ModelRequest(
            request.model, parse_constants(given_constants), request.param, request.domain
        )
        loaded, at = load_embedded(embedded, at, properties.files), None
    else:
        loaded = load_model(request.model, given_constants, request.param, request.domain, boundary, untimed)
    queries = properties.queries(loaded, constants, request.discount, request.terminal_reward)
    refuse_composed(queries, list_given(request, "certificate policy_out policy sets"))
    if request.figure is not None:
        require_curve(queries)
    structure = loaded.model.structure
    for query in queries:
        if query.is_plain and query.reading is not None:
            warn(query.reading.warning)
    if len(queries) > 1 and (certificate or policy_out):
        raise InputError(f"--certificate and --policy-out go with one property, not {len(queries)}")
    given = None if request.policy is None else Policy(loaded.model, request.policy)
    if request.sets is not None:
        if request.absolute or request.all_states:
            raise InputError("--absolute and --all-states do not go with --sets: leave them out")
        stop_interpreting()
        from tightrope.ambiguity.sets import SetsKind
        from tightrope.learning.options import COUPLED_GAP, LearnOptions

        wanted = LearnOptions(
            sets=SetsKind(request.sets.value),
            precision=request.precision,
            assume_support=request.assume_support,
            seconds=float("inf") if request.time_limit is None else request.time_limit,
            device=request.device.value,
            threads=request.threads,
            coupled_gap=COUPLED_GAP if request.coupled_gap is None else request.coupled_gap,
        )
        over = DomainQuestion(request.model, loaded, queries, request.sets, given, at)
        check_domain(over, wanted, constants, proof_file, policy_file, request.json)
        return
    subject, point = _subject(loaded, at)
    if certificate is not None and len(structure.initial_states) > 1:
        raise InputError(
            f"certificates are about one initial state, and the model has {len(structure.initial_states):,}",
            hint="leave --certificate out, or let one state be initial",
        )
    if certificate is not None and given is not None and queries[0].is_plain:
        from tightrope.certify.solved import refuse_steps

        refuse_steps(given, queries[0].objective)
    workspace = Workspace(how.device, how.threads)
    answers: list[PlainAnswer | ComposedAnswer] = []
    for query in queries:
        begin = time.perf_counter()
        with phase_progress() as progress:
            progress("solve")
            if not query.is_plain:
                controlled = policy_file is not None
                answers.append(answer_composed(query, subject, how, request.all_states, controlled))
                continue
            solution = solve_query(
                Problem(_provable(subject, query, certificate, request.assume_support), query),
                policy=given,
                precision=how.precision,
                relative=how.relative,
                assume_support=how.assume_support,
                seconds=how.seconds,
                workspace=workspace,
            )
        seconds = time.perf_counter() - begin
        factors = isinstance(subject, IntervalMDP) and subject.factored is not None
        assumed = support_assumed(request.assume_support)
        answers.append(PlainAnswer(query, solution, seconds, request.all_states, factors, assumed))
    for answered in answers:
        if isinstance(answered, ComposedAnswer):
            for reading in answered.answer.readings:
                warn(reading)
        else:
            for note in answered.notes:
                warn(note)
    report_answers(request.model, loaded, answers, request.json)
    sys.stdout.flush()  # the answer comes before files, which may fail
    first = answers[0]
    if proof_file is not None:
        about = {
            "tightrope": __version__,
            "model": request.model,
            "model_hash": loaded.model.hash(),
            "constants": constants,
            "property": first.text,
            "at": [str(value) for value in point or ()],
            "assume_support": request.assume_support,
        }
        at_point = point if isinstance(loaded.model, ParametricMDP) else None
        if isinstance(first, ComposedAnswer):
            whole = loaded.model
            certify_composed(proof_file, first, queries[0], whole, at_point, how, about)
    if proof_file is not None and isinstance(first, PlainAnswer):
        from tightrope.certify.certificate_file import save_certificate
        from tightrope.certify.problem import to_problem
        from tightrope.certify.solved import to_certificate

        support = request.assume_support if isinstance(loaded.model, IntervalMDP) else None
        problem = to_problem(loaded.model, first.query.objective, theta=at_point, assumed_support=support)
        proof = to_certificate(problem, first.solution, given, about)
        proof_file.check()
        save_certificate(proof, proof_file.path)
    if drawn_file is not None:
        write_figure(drawn_file, first)
    if policy_file is not None and isinstance(first, ComposedAnswer):
        spoken_of = "the interval model" if isinstance(loaded.model, IntervalMDP) else "the model"
        write_controller(policy_file, first, loaded.model.hash(), spoken_of)
    if policy_file is not None and isinstance(first, PlainAnswer):
        _write_policy(policy_file, loaded, first, given, workspace)
    leave(Verdict.worst([answer.verdict for answer in answers]))


def _check_options(precision: float, assume_support: float | None, time_limit: float | None) -> None:
    if not 0 < precision < float("inf"):
        raise InputError(f"--precision is {precision}, not a positive number")
    if assume_support is not None and not 0 < assume_support < 1:
        raise InputError(f"--assume-support is {assume_support}, not within (0, 1)")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"--time-limit is {time_limit}, not a positive number of seconds")


def _subject(loaded: LoadedModel, at: str | None) -> tuple[MDP | IntervalMDP, Sequence[Fraction] | None]:
    """What is solved, and the point it is at (None for models without expressions)."""
    model = loaded.model
    if isinstance(model, ParametricMDP):
        point = loaded.point(at)
        return model.instantiate(point), point
    if at is not None:
        raise InputError("--at goes with parametric models, this one has no parameters")
    return model, None


def _provable(
    subject: MDP | IntervalMDP, query: Query, certificate: Path | None, assume_support: float | None
) -> MDP | IntervalMDP:
    """What is solved for a question, and proved where a certificate is wanted."""
    if certificate is None or not isinstance(subject, IntervalMDP):
        return subject
    from tightrope.certify.problem import provable

    return provable(subject, query.objective, assume_support)


def _write_policy(
    target: OutputFile, loaded: LoadedModel, answer: PlainAnswer, given: Policy | None, workspace: Workspace
) -> None:
    """The policy with the interval that it attains, computed anew."""
    from tightrope.io.results import CertifiedFacts
    from tightrope.solver.solve import attained

    solution = answer.solution
    chosen = given or solution.policy
    result = attained(solution, chosen, workspace)
    certified = CertifiedFacts(
        question=answer.query.text,
        lower=result.lower,
        upper=result.upper,
        over="the interval model" if isinstance(loaded.model, IntervalMDP) else "the model",
        status=result.status.name.lower().replace("_", "-"),
    )
    target.check()
    chosen.save(target.path, loaded.model.hash(), to_plain(certified))


@dataclass(frozen=True, eq=False)
class DomainQuestion:
    """What is asked: a parametric model, a property, sets, and a policy where one is given."""

    source: str
    loaded: LoadedModel
    queries: list[Query]
    sets: DomainSets
    policy: Policy | None
    at: str | None


def check_domain(
    request: DomainQuestion,
    options: LearnOptions,
    constants: Mapping[str, str],
    certificate: OutputFile | None,
    policy_out: OutputFile | None,
    json: bool,
) -> None:
    """Compute, print the interval, write what is wanted."""
    from tightrope.ambiguity.sets import SetsKind
    from tightrope.certify.certificate_file import as_file
    from tightrope.certify.learned import certificate_of
    from tightrope.certify.region import refuse_uncertified
    from tightrope.cli.output import phase_progress
    from tightrope.learning.solve import solve_over_domain
    from tightrope.logic.product_problem import ProductProblem

    model, problem = _domain_subject(request)
    query = problem.query
    if certificate is not None and isinstance(problem, ProductProblem):
        raise InputError(
            "--certificate does not go with a temporal formula over a domain", hint="leave --certificate out"
        )
    if certificate is not None:
        refuse_uncertified(model, SetsKind(request.sets.value))
    with phase_progress() as progress:
        fixed, whose = _domain_policy(request, problem)
        result = solve_over_domain(problem, options, fixed, progress)
        proof = None
        if certificate is not None:
            progress("the certificate")
            about = {
                "tightrope": __version__,
                "model": request.source,
                "model_hash": model.hash(),
                "constants": dict(constants),
                "property": query.text,
                "policy": whose,
            }
            proof = as_file(certificate_of(result, about=about))
    _report_domain(
        request, query, result, whose, None if proof is None else next(iter(proof.values.values())), json
    )
    sys.stdout.flush()  # the answer comes before files, which may fail
    if proof is not None and certificate is not None:
        certificate.check()
        proof.save(certificate.path)
    if policy_out is not None:
        from tightrope.learning.result_files import robust_policy

        answer = robust_policy(result)
        policy_out.check()
        certified = to_plain(answer.certified(result, query.text))
        policy = request.policy or answer.policy
        if isinstance(problem, ProductProblem):
            policy = problem.controller(answer.policy)
        policy.save(policy_out.path, model.hash(), certified)
    leave(result.verdict, about=query.text)


def _domain_subject(request: DomainQuestion) -> tuple[ParametricMDP, Problem]:
    """The model that was named, and the problem: of a temporal formula one about a product."""
    from tightrope.logic.product_problem import product_problem

    model = request.loaded.model
    if not isinstance(model, ParametricMDP) or not model.parameters.names:
        raise InputError(
            f"--sets speaks of a domain of parameters, and {request.source} has none",
            hint="leave --sets out: plain and interval models have one value",
        )
    if len(request.queries) != 1:
        raise InputError(f"--sets goes with one property, not {len(request.queries)}")
    first = request.queries[0]
    problem: Problem
    if first.is_plain:
        problem = Problem(model, first)
    else:
        if request.policy is not None:
            raise InputError(
                f"--policy does not go with {first.text} over a domain: a policy with memory is wanted",
                hint="leave --policy out, or ask at a point",
            )
        problem, reading = product_problem(model, first)
        warn(reading)
    query = problem.query
    if query.is_threshold:
        raise InputError(
            f"{query.text} is true or false, and may be true at some instantiations only",
            hint="ask for the value, Pmax=? [ … ], and compare its bounds",
        )
    return model, problem


def _domain_policy(request: DomainQuestion, problem: Problem) -> tuple[Policy | None, str]:
    """The policy to evaluate (None: find one), and what it is in words."""
    if request.policy is not None:
        if request.at is not None:
            raise InputError("--policy and --at each name a policy here", hint="leave one of them out")
        return request.policy, "the given policy"
    if request.at is None:
        return None, "the most robust policy found"
    model = problem.model
    assert isinstance(model, ParametricMDP)
    best = solve(model.instantiate(request.loaded.point(request.at)), problem.objective)
    return best.policy, f"the optimal policy at {request.at}"


def _report_domain(
    request: DomainQuestion,
    query: Query,
    result: LearningResult,
    whose: str,
    proved: tuple[float, float] | None,
    json: bool,
) -> None:
    from tightrope.cli.result_display import list_coupled_facts
    from tightrope.learning.result import describe_coupled_value

    interval = result.robust.interval
    names = result.model.parameters.names
    coupled = describe_coupled_value(result.robust.coupled, names)
    verdict = result.verdict
    status = "certified" if verdict.is_proved else "limit"
    if json:
        synthesis = result.synthesis
        answer = DomainAnswer(
            model=request.source,
            question=query.text,
            verdict=verdict.word,
            why=verdict.why,
            assumptions=list(verdict.assumptions),
            sets=request.sets.value,
            policy=whose,
            lower=interval.lower,
            upper=interval.upper,
            status=status if coupled is None else coupled.status,
            witness=None if coupled is None else coupled.witness,
            gap=None if coupled is None else coupled.gap,
            coupled=coupled,
            limit=None if synthesis is None else synthesis.limit,
            optimality_gap=None if synthesis is None else synthesis.optimality_gap,
            certificate=None if proved is None else Interval(*proved),
            notes=list(result.notes),
            peak_memory=peak_memory(),
            seconds={
                "build": round(request.loaded.seconds, 6),
                **{phase: round(seconds, 6) for phase, seconds in result.seconds.items()},
            },
        )
        print_json(answer)
        return
    print_verdict(verdict, verdict.headline(str(interval), "over the domain"))
    shown = [
        ("policy", whose),
        ("value", f"{interval} over the domain ({request.sets.value} sets)"),
        *list_coupled_facts(result),
    ]
    if proved is not None:
        shown.append(("certificate", f"proves {interval_text(*proved)}"))
    shown += [("note", note) for note in result.notes]
    spent = f"{request.loaded.seconds:.3g} to build, {sum(result.seconds.values()):.3g} to solve"
    print_facts(query.text, [*shown, ("seconds", spent), ("memory", memory_text())])


def check_timed(request: Request, properties: PropertyTexts, how: SolveOptions) -> None:
    """Compute and print."""
    if not properties.files:
        raise InputError(
            "no property is given", hint="say what to compute with --prop 'P=? [ F<=10 \"goal\" ]'"
        )
    constants = parse_constants(request.const)
    over_domain = request.sets is not None
    stop = None if request.build_all or over_domain else properties.boundary(constants)
    given = properties.model_constants(constants)
    loaded = load_timed(
        request.model, given, request.param, request.domain, stop, quiet=request.at is not None
    )
    options, structure = PropertyOptions(constants=constants, is_timed=True), loaded.model.structure
    queries = [
        read_query(one, file, structure, options) for file in properties.files for one in file.properties
    ]
    if not queries:
        raise InputError("there is no property to check")
    if over_domain:
        _check_rate_domain(request, loaded, queries, how)
        return
    chain = loaded.model.instantiate(loaded.point(request.at))
    answers: list[ComposedAnswer] = []
    for query in queries:
        with phase_progress() as progress:
            progress("solve")
            answers.append(answer_composed(query, chain, how, request.all_states))
    for answered in answers:
        for reading in answered.answer.readings:
            warn(reading)
    report_answers(loaded.source, loaded, answers, request.json)
    sys.stdout.flush()
    leave(Verdict.worst([answer.verdict for answer in answers]))


def _check_rate_domain(
    request: Request, loaded: TimedModel, queries: Sequence[Query], how: SolveOptions
) -> None:
    """Bounds that hold for every point of the domain: rates in intervals, picked anew at every moment."""
    from tightrope.logic.timed import bound_over_rates
    from tightrope.model.continuous import over_box

    if len(queries) != 1:
        raise InputError(f"--sets goes with one property, not {len(queries)}")
    parameters = loaded.model.parameters
    if request.sets not in (None, DomainSets.EXPRESSION):
        raise InputError(
            f"--sets {request.sets.value} is not there for continuous time", hint="write --sets expression"
        )
    if parameters.constraints:
        raise InputError(
            "bounds over the domain of a chain in continuous time are over a box, and this domain has "
            "constraints between parameters",
            hint="give ranges only: --param lam=0.1:0.3",
        )
    begin = time.perf_counter()
    chain = over_box(loaded.model, parameters.lower, parameters.upper)
    with phase_progress() as progress:
        progress("solve")
        result = bound_over_rates(chain, queries[0], how)
    seconds = {"build": round(loaded.seconds, 6), "solve": round(time.perf_counter() - begin, 6)}
    verdict = Verdict.of(limit="; ".join(result.missed) or None)
    if request.json:
        print_json(
            DomainAnswer(
                model=loaded.source,
                question=queries[0].text,
                verdict=verdict.word,
                why=verdict.why,
                assumptions=[],
                sets="expression",
                policy="none: a chain has no choices",
                lower=result.lower,
                upper=result.upper,
                status="certified" if verdict.is_proved else "limit",
                witness=None,
                gap=None,
                coupled=None,
                limit=None,
                optimality_gap=None,
                certificate=None,
                notes=list(result.notes),
                peak_memory=peak_memory(),
                seconds=seconds,
            )
        )
    else:
        print_verdict(verdict, verdict.headline(interval_text(result.lower, result.upper), "over the domain"))
        facts = [("value", f"{interval_text(result.lower, result.upper)} over the domain (expression sets)")]
        facts += [("note", note) for note in result.notes]
        facts.append(("seconds", f"{seconds['build']:.3g} to build, {seconds['solve']:.3g} to solve"))
        print_facts(queries[0].text, facts)
    sys.stdout.flush()
    leave(verdict)
