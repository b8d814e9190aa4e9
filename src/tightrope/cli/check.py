"""`tightrope check MODEL --prop P`: certified values of a plain or interval model, or at a point.

With `--sets S` it is a policy's certified interval over all instantiations in a domain.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np

from tightrope import __version__
from tightrope.cli import check_answers, options, sources
from tightrope.cli import output as screen
from tightrope.cli.check_answers import Answered, DomainAnswer
from tightrope.cli.options import declare, option, switch, takes
from tightrope.cli.sources import LoadedModel, PropertyTexts, TimedModel
from tightrope.errors import InputError
from tightrope.io.coding import to_plain
from tightrope.io.output import CERTIFICATE, POLICY, OutputFile, refuse_same
from tightrope.io.results import CertifiedFacts, Interval
from tightrope.loading import ModelRequest, is_continuous, is_markov_automaton
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.pomdp import POMDP
from tightrope.numerics.jit import interpreting, stop_interpreting
from tightrope.numerics.machine import peak_memory
from tightrope.numerics.text import text_above, text_below
from tightrope.prism.properties.capabilities import QueryKind, Task
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.shape import speaks_of_time
from tightrope.problem import Problem, require_discrete
from tightrope.solver.part import PartSolver
from tightrope.solver.solution import Solution, SolveOptions
from tightrope.solver.solve import Workspace, attained, solve, solve_query
from tightrope.verdict import Assessment

if TYPE_CHECKING:
    from tightrope.certify.certificate_file import CertificateFile
    from tightrope.logic.model_checking import Answer
    from tightrope.model.continuous import CTMC, MarkovAutomaton


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
class CheckRequest(options.ModelOptions):
    """The options of the command."""

    prop: Props = None
    at: options.At = None
    observations: options.Observations = None
    discount: options.Discount = None
    terminal_reward: options.TerminalReward = None
    policy: Path | None = declare("--policy", "Evaluate this policy.", "FILE")
    sets: DomainSets | None = declare(
        "--sets",
        "Bound a parametric model over its domain: nature picks parameters at every choice "
        "(expression, rectangular) or once per run (coupled). The policy is that of --policy, the "
        "optimal one at --at, or the most robust one found.",
    )
    coupled_gap: options.CoupledGap = None
    open_share: str | None = declare(
        "--open",
        "Split the domain of a parametric model into parts where a threshold holds or fails, until at most "
        "this share stays open (5%, the default without --at).",
        "SHARE",
    )
    precision: float = declare("--precision", "Largest distance between the two bounds.", "EPS", default=1e-6)
    absolute: bool = switch("--absolute", "Treat --precision as absolute, not relative.")
    assume_support: options.AssumeSupport = None
    misfit: options.Misfit = None
    ltl_translator: options.LtlTranslator = None
    time_limit: options.TimeLimit = None
    certificate: options.CertificateFile = None
    no_verify: options.NoVerify = False
    policy_out: Path | None = declare("--policy-out", "Write the policy found, as JSON.", "FILE")
    figure: Path | None = declare(
        "--figure",
        "Draw the Pareto curve of multi(…) with two objectives, or the parts of a domain (.pdf, .png, .svg).",
        "FILE",
    )
    device: options.Device = options.DeviceName.CPU
    threads: options.Threads = None
    all_states: bool = switch("--all-states", "Print bounds for every state.")
    build_all: bool = switch(
        "--build-all",
        "Explore all states of a PRISM model. By default, exploration stops at target and "
        "forbidden states, and in a large model when the bounds of the initial state are close "
        "enough.",
    )

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


NOT_TIMED = "policy_out open_share policy discount terminal_reward assume_support misfit coupled_gap figure"
"""Options that cannot be used with chains in continuous time."""

OPEN_SHARE = 0.05
"""The share of a domain that may stay open unless --open says more."""

NOT_SPLIT = "at policy sets discount terminal_reward assume_support misfit certificate policy_out all_states"
"""Options that cannot be used with parts of a domain."""


@takes(CheckRequest)
@interpreting()
def check(request: CheckRequest) -> None:
    """Compute certified bounds on the value of a plain or interval model, or of a parametric one at a point.

    The value lies between the two bounds; both are verified. With --sets, the bounds hold for a policy at all
    parameters in the domain of a parametric model.

    Example: tightrope check model.prism --prop 'Pmax=? [ F "goal" ]' --at p=0.55 --certificate goal.cert

    Example: tightrope check model.prism --domain '0.1<=p<=0.4' --policy policy.json --sets coupled
    """
    _check_options(request.precision, request.assume_support, request.time_limit)
    options.require_coupled(request.coupled_gap, request.sets is DomainSets.COUPLED)
    if request.misfit is not None and request.sets is None:
        raise InputError("--misfit requires bounds over a domain of parameters", hint="add --sets expression")
    files = CheckFiles.claim(request)
    options.require_device(request.device)
    constants = options.parse_constants(request.const)
    if request.prop:
        properties = sources.read_properties(request.prop)
    else:
        properties = sources.read_own_properties(request.model, constants)
    timed, untimed, at = is_continuous(request.model), is_markov_automaton(request.model), request.at
    if timed:
        options.refuse_options(request, NOT_TIMED)
    if untimed:
        options.refuse_options(request, "discount", "it cannot be used with Markov automata")
        if request.certificate is not None:
            raise InputError(
                "--certificate cannot be used with Markov automata: an optimal policy may depend on "
                "time, and certificates cannot prove its optimality",
                hint="leave --certificate out: the answer is proved without one",
            )
        if any(speaks_of_time(file) for file in properties.files):
            options.refuse_options(request, f"{NOT_TIMED} sets")
    everything = request.build_all or any((request.sets, *files.named))
    boundary = None if everything or request.policy else properties.boundary(constants)
    workspace, judge = Workspace(request.device.value, request.threads), None
    const, param, domain = properties.model_constants(constants), request.param, request.domain
    loaded: LoadedModel | TimedModel
    spoken = request.sets is not None or any(speaks_of_time(file) for file in properties.files)
    if timed and files.certificate is not None and not spoken:
        embedded = ModelRequest(request.model, options.parse_constants(const), param, domain)
        loaded, at, timed = sources.load_embedded(embedded, at, properties.files), None, False
    elif timed:
        loaded = sources.load_timed(request.model, const, param, domain, boundary, quiet=at is not None)
    else:
        judge = None if boundary is None else _part_solver(request, properties, constants, workspace)
        loaded = sources.load_model(request.model, const, param, domain, boundary, untimed, True, judge)
    if request.observations is not None:
        from tightrope.cli.sources import seen_through

        loaded = replace(cast(Any, loaded), model=seen_through(cast(Any, loaded), request.observations)[1])
    queries = properties.queries(loaded, constants, request.discount, request.terminal_reward)
    partial = isinstance(loaded.model, POMDP)
    if not timed and not partial:
        for query in queries:
            for given in options.list_given(request, "certificate policy_out policy sets"):
                query.require(Task(f"check {given}"))
    splits = _splits_domain(request, loaded, queries)
    if request.figure is not None and not partial and not splits:
        _require_curve(queries)
    for query in queries:
        if query.is_plain and query.reading is not None and screen.common.json:
            screen.warn(query.reading.warning)
    if len(queries) > 1 and (request.certificate or request.policy_out):
        raise InputError(f"--certificate and --policy-out require one property, not {len(queries)}")
    if isinstance(loaded.model, POMDP):
        from tightrope.cli.check_partial import check_partial

        check_partial(request, loaded, queries, files.policy, files.certificate)
        return
    if splits:
        _check_partition(request, loaded, queries, files.figure)
        return
    if request.sets is not None:
        if request.absolute or request.all_states:
            raise InputError("--absolute and --all-states cannot be used with --sets: leave them out")
        if len(queries) != 1:
            raise InputError(f"--sets requires one property, not {len(queries)}")
        stop_interpreting()
        check_domain(request, loaded, queries[0], files)
        return
    policy = None if request.policy is None else Policy(loaded.model, request.policy)
    subject, point = _subject(loaded, at, queries[0].options.is_timed)
    if files.certificate is not None:
        _refuse_uncertified(loaded, queries[0], policy)
    how = request.solve_options()
    answers: list[Answered] = []
    part = None if judge is None else judge.solution
    for query in queries:
        with screen.phase_progress() as progress:
            progress("solve")
            answers.append(_answer(request, subject, query, policy, how, workspace, part))
    for note in [note for answer in answers if screen.common.json for note in answer.record.notes or ()]:
        screen.warn(note)
    verdict = Assessment.worst([answer.verdict for answer in answers])
    check_answers.report_answers(loaded, answers, verdict, part is not None)
    sys.stdout.flush()  # the answer comes before files, which may fail
    files.write(answers[0], loaded, point, policy, how, workspace, constants)
    screen.leave(verdict)


@dataclass(frozen=True)
class CheckFiles:
    """The files to write: claimed before anything is computed, written after the answer was printed."""

    certificate: OutputFile | None
    policy: OutputFile | None
    figure: OutputFile | None
    verify: bool = True

    @staticmethod
    def claim(request: CheckRequest) -> CheckFiles:
        """Refuse what must not or cannot be written."""
        if request.no_verify and request.certificate is None:
            raise InputError("--no-verify requires --certificate: add a file")
        refuse_same((request.certificate, request.policy_out, request.figure))
        figure = None
        if request.figure is not None:
            from tightrope.report.write import check_picture

            figure = check_picture(request.figure, screen.common.overwrite)
        certificate = screen.claim(request.certificate, CERTIFICATE)
        policy = screen.claim(request.policy_out, POLICY)
        return CheckFiles(certificate, policy, figure, not request.no_verify)

    @property
    def named(self) -> tuple[OutputFile | None, ...]:
        """Those that are about all states."""
        return self.certificate, self.policy

    def write(
        self,
        answer: Answered,
        loaded: LoadedModel | TimedModel,
        point: Sequence[Fraction] | None,
        policy: Policy | None,
        how: SolveOptions,
        workspace: Workspace,
        constants: Mapping[str, str],
    ) -> None:
        """What was named, of the one property that is asked for."""
        result = answer.result
        if self.certificate is not None:
            about = {
                **about_model(loaded, answer.query, constants),
                "at": [str(value) for value in point or ()],
                "assume_support": how.assume_support,
            }
            _certify(self.certificate, answer, loaded, point, policy, how, about, self.verify)
        if self.figure is not None:
            from tightrope.report.curves import write_pareto_curve

            assert not isinstance(result, Solution)
            write_pareto_curve(result, self.figure)
        if self.policy is not None:
            controller, span, status = _attained(result, policy, workspace)
            certified = CertifiedFacts(
                question=answer.query.text,
                lower=span[0],
                upper=span[1],
                over="the interval model" if isinstance(loaded.model, IntervalMDP) else "the model",
                status=status,
            )
            controller.save(self.policy.checked(), loaded.model.hash(), to_plain(certified))


def about_model(
    loaded: LoadedModel | TimedModel, query: Query, constants: Mapping[str, str]
) -> dict[str, object]:
    """What a certificate says beside its problem: where that came from."""
    return {
        "tightrope": __version__,
        "model": loaded.source,
        "model_hash": loaded.model.hash(),
        "constants": dict(constants),
        "property": query.text,
    }


def _attained(
    result: Solution | Answer, policy: Policy | None, workspace: Workspace
) -> tuple[Policy, tuple[float, float], str]:
    """The policy, the interval that it attains, computed anew, and how that ended."""
    if isinstance(result, Solution):
        chosen = policy or result.policy
        value = attained(result, chosen, workspace)
        return chosen, (value.lower, value.upper), value.status.name.lower().replace("_", "-")
    if result.controller is None or result.attained is None:
        raise InputError(
            f"--policy-out cannot be used with {result.text}: its automaton is another program's",
            hint="leave --ltl-translator out",
        )
    return result.controller, result.attained, result.status


def _certify(
    target: OutputFile,
    answer: Answered,
    loaded: LoadedModel | TimedModel,
    point: Sequence[Fraction] | None,
    policy: Policy | None,
    how: SolveOptions,
    about: Mapping[str, object],
    verify: bool,
) -> None:
    """Write the certificate, about the model as it was given."""
    from tightrope.certify.certificate_file import answered_file, shown_value
    from tightrope.certify.problem import asked_of, to_problem
    from tightrope.certify.solved import composed_certificate, to_certificate
    from tightrope.model.continuous import ParametricCTMC

    result, query = answer.result, answer.query
    if isinstance(loaded.model, ParametricCTMC):
        from tightrope.certify.rates import rate_certificate, rate_problem

        proof = rate_certificate(rate_problem(loaded.model, answer.query, point), about, how.precision)
        file = answered_file(proof, shown_value(result.bounds, result.truth, query), verify)
        file.save(target.checked())
        return
    model = require_discrete(loaded.model)
    theta = point if isinstance(model, ParametricMDP) else None
    if isinstance(result, Solution):
        support = how.assume_support if isinstance(model, IntervalMDP) else None
        problem = to_problem(model, query.objective, theta=theta, assumed_support=support)
        proof = to_certificate(problem, result, policy, about)
    else:
        temporal = asked_of(query, how.translator)
        proof = composed_certificate(model, temporal, theta, how, how.assume_support, about, policy)
        claim, bounds = proof.claims[0], result.bounds
        if bounds is not None and (claim.lower < bounds[0] or claim.upper > bounds[1]):
            low, high = text_below(claim.lower), text_above(claim.upper)
            screen.warn(f"the certificate proves [{low}, {high}], a slightly wider interval than the answer")
    shown = shown_value(result.bounds, result.truth, query)
    if not isinstance(result, Solution) and isinstance(model, IntervalMDP) and model.factored is not None:
        assert query.directions is not None
        shown = shown.beyond(query.directions[1])
    file = answered_file(proof, shown, verify)
    file.save(target.checked())


def _answer(
    request: CheckRequest,
    subject: MDP | IntervalMDP | CTMC | MarkovAutomaton,
    query: Query,
    policy: Policy | None,
    how: SolveOptions,
    workspace: Workspace,
    part: Solution | None,
) -> Answered:
    """Solve, and say what came out; `part` was found while the model was built."""
    begin = time.perf_counter()
    assumed = check_answers.support_assumed(request.assume_support)
    helps = query.directions is not None and len({*query.directions}) == 1
    of_intervals = "the optimistic policy" if helps else "the robust policy"
    whose = of_intervals if isinstance(subject, IntervalMDP) else "the optimal policy"
    whose = "the given policy" if policy is not None else whose
    whose = whose if subject.structure.has_choices else ""
    if part is not None:
        record = check_answers.describe_solution(query, part, False, False, assumed)
        return Answered(query, part, part.seconds, record, whose)
    if query.is_plain and isinstance(subject, MDP | IntervalMDP):
        model: MDP | IntervalMDP = subject
        if request.certificate is not None and isinstance(subject, IntervalMDP):
            from tightrope.certify.problem import provable

            model = provable(subject, query.objective, request.assume_support)
        solution = solve_query(
            Problem(model, query),
            policy=policy,
            precision=how.precision,
            relative=how.relative,
            assume_support=how.assume_support,
            seconds=how.seconds,
            workspace=workspace,
        )
        factors = isinstance(subject, IntervalMDP) and subject.factored is not None
        record = check_answers.describe_solution(query, solution, request.all_states, factors, assumed)
        return Answered(query, solution, time.perf_counter() - begin, record, whose)
    from tightrope.logic.model_checking import check_query

    how = replace(how, controller=request.policy_out is not None)
    answer = check_query(query, subject, how, how.assume_support, request.all_states, policy=policy)
    shown = np.ones(subject.states, np.bool_) if request.all_states else answer.listed
    record = check_answers.describe_answer(query, answer, shown, assumed)
    return Answered(query, answer, answer.seconds, record, whose if query.kind is QueryKind.LTL else "")


def _part_solver(
    request: CheckRequest, properties: PropertyTexts, constants: Mapping[str, str], workspace: Workspace
) -> PartSolver | None:
    """What may end the build of a large model early; None where all states are wanted, or several answers."""
    if request.all_states or sum(len(file.wanted) for file in properties.files) != 1:
        return None

    def ask(model: ParametricMDP) -> Problem | None:
        loaded = LoadedModel(request.model, model, 0.0)
        if request.at is None and model.parameters.names:
            return None
        query = properties.queries(loaded, constants, request.discount, request.terminal_reward)[0]
        return Problem(model.instantiate(loaded.point(request.at)), query)

    return PartSolver(ask, request.solve_options(), workspace)


def _check_options(precision: float, assume_support: float | None, time_limit: float | None) -> None:
    if not 0 < precision < float("inf"):
        raise InputError(f"--precision is {precision}, not a positive number")
    if assume_support is not None and not 0 < assume_support < 1:
        raise InputError(f"--assume-support is {assume_support}, not within (0, 1)")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"--time-limit is {time_limit}, not a positive number of seconds")


def _splits_domain(request: CheckRequest, loaded: LoadedModel | TimedModel, queries: Sequence[Query]) -> bool:
    """Whether the question is where in the domain a threshold holds: no point is given, and none is known."""
    if request.open_share is not None or request.at or request.sets or loaded.benchmark is not None:
        return request.open_share is not None
    model = loaded.model
    has_domain = isinstance(model, ParametricMDP) and bool(model.parameters.names)
    return has_domain and all(query.is_threshold for query in queries)


def _check_partition(
    request: CheckRequest,
    loaded: LoadedModel | TimedModel,
    queries: Sequence[Query],
    figure: OutputFile | None,
) -> None:
    """Split the domain, print the parts, draw them."""
    from tightrope.learning.solve import solve_partition

    options.refuse_options(request, NOT_SPLIT, "it cannot be used with parts of a domain")
    if len(queries) != 1:
        raise InputError(f"a domain is split for one property, not {len(queries)}")
    share = OPEN_SHARE if request.open_share is None else options.parse_share(request.open_share, "--open")
    with screen.phase_progress() as progress:
        progress("solve")
        seconds = math.inf if request.time_limit is None else request.time_limit
        partition = solve_partition(Problem(loaded.model, queries[0]), share, seconds)
    verdict = check_answers.report_partition(loaded, queries[0], partition, share)
    if figure is not None:
        from tightrope.report.curves import write_partition

        write_partition(partition, queries[0].text, figure)
    screen.leave(verdict)


def _require_curve(queries: Sequence[Query]) -> None:
    """A figure is that of two objectives which are both asked for."""
    from tightrope.logic.model_checking import is_curve

    if len(queries) != 1 or not is_curve(queries[0].formula):
        raise InputError(
            "--figure requires one property that asks for two objectives",
            hint='multi(Pmax=? [ F "a" ], Pmin=? [ F "b" ])',
        )


def _refuse_uncertified(loaded: LoadedModel | TimedModel, query: Query, policy: Policy | None) -> None:
    """What certificates are not about, before anything is computed."""
    starts = len(loaded.model.structure.initial_states)
    if starts > 1:
        raise InputError(
            f"certificates are about one initial state, and the model has {starts:,}",
            hint="leave --certificate out, or let one state be initial",
        )
    if policy is not None and query.is_plain:
        from tightrope.certify.solved import refuse_steps

        refuse_steps(policy, query.objective)


def _subject(
    loaded: LoadedModel | TimedModel, at: str | None, is_timed: bool
) -> tuple[MDP | IntervalMDP | CTMC | MarkovAutomaton, Sequence[Fraction] | None]:
    """What is solved, and the point it is at (None for models without expressions)."""
    model = loaded.model
    if not isinstance(model, MDP | IntervalMDP):
        point = loaded.point(at)
        return model.instantiate(point), point
    if at is not None:
        raise InputError("--at requires a parametric model; this model has no parameters")
    if is_timed and loaded.automaton is not None:
        return loaded.automaton, None
    return model, None


NOTHING = dict.fromkeys(("witness", "gap", "coupled", "limit", "optimality_gap"))
"""What is there for one objective over parameters alone."""


@dataclass(frozen=True, eq=False)
class OverDomain:
    """What was found over a domain, whatever the model and the property: the interval where there is one,
    more fields of the record, what makes the certificate, and the policy that may be written."""

    query: Query
    verdict: Assessment
    interval: Interval | None
    facts: Mapping[str, Any]
    seconds: Mapping[str, float]
    certify: Callable[[Mapping[str, object]], CertificateFile]
    about: str = ""
    details: Sequence[tuple[str, str]] = ()
    controller: Callable[[], tuple[Policy, CertifiedFacts]] | None = None


def check_domain(
    request: CheckRequest, loaded: LoadedModel | TimedModel, query: Query, files: CheckFiles
) -> None:
    """Bounds that hold at every instantiation in the domain: compute, print, write."""
    from tightrope.model.continuous import ParametricCTMC

    find = _over_rates if isinstance(loaded.model, ParametricCTMC) else _over_parameters
    result, proof = find(request, loaded, query, files), None
    if files.certificate is not None:
        with screen.phase_progress() as progress:
            progress("the certificate")
            proof = result.certify(about_model(loaded, result.query, options.parse_constants(request.const)))
        for note in proof.notes:
            screen.warn(note)
    status = "certified" if result.verdict.is_proved else "limit"
    answer = DomainAnswer(
        model=loaded.source,
        question=result.query.text,
        **result.verdict.facts,
        lower=None if result.interval is None else result.interval.lower,
        upper=None if result.interval is None else result.interval.upper,
        certificate=None if proof is None else Interval(*next(iter(proof.values.values()))),
        **{"status": status, **NOTHING, **result.facts},
        peak_memory=peak_memory(),
        seconds=check_answers.round_seconds({"build": loaded.seconds, **result.seconds}),
    )
    check_answers.report_domain(answer, result.details)
    sys.stdout.flush()  # the answer comes before files, which may fail
    if proof is not None and files.certificate is not None:
        proof.save(files.certificate.checked())
    if files.policy is not None and result.controller is not None:
        policy, certified = result.controller()
        policy.save(files.policy.checked(), loaded.model.hash(), to_plain(certified))
    screen.leave(result.verdict)


def _over_parameters(
    request: CheckRequest, loaded: LoadedModel | TimedModel, query: Query, files: CheckFiles
) -> OverDomain:
    """Of a policy; a property that is no single objective is answered over the hull of the sets."""
    from tightrope.ambiguity.sets import SetsKind
    from tightrope.certify.certify import learned_file
    from tightrope.certify.region import refuse_uncertified
    from tightrope.cli.result_display import list_coupled_facts
    from tightrope.learning.options import LearnOptions
    from tightrope.learning.result import describe_coupled_value
    from tightrope.learning.result_files import robust_policy
    from tightrope.learning.solve import solve_over_domain

    assert request.sets is not None
    policy = None if request.policy is None else Policy(loaded.model, request.policy)
    model, kind = loaded.model, SetsKind(request.sets.value)
    if not isinstance(model, ParametricMDP) or not model.parameters.names:
        raise InputError(
            f"--sets refers to a domain of parameters, and {loaded.source} has none",
            hint="leave --sets out: plain and interval models have one value",
        )
    is_other = query.kind not in (QueryKind.PLAIN, QueryKind.LTL)
    problem = Problem(model, query) if is_other else _domain_problem(model, query)
    if files.certificate is not None:
        refuse_uncertified(model)
    if is_other:
        options.refuse_options(request, "at", f"it cannot be used with {problem.text} over a domain")
    chosen = LearnOptions.of("solve", {**options.learn_words(request), "sets": kind})
    with screen.phase_progress() as progress:
        progress("solve")
        evaluated, whose = _domain_policy(loaded, problem, policy, request.at)
        result: Any = solve_over_domain(problem, chosen, evaluated, progress)
    if is_other:
        facts: dict[str, Any] = {"sets": f"the hull of {result.sets.kind.value}", "notes": []}
        if result.answer is not None:
            facts |= {"truth": result.truth, "notes": list(result.answer.readings)}
        interval, seconds, about, details = result.interval, {"solve": result.seconds}, {}, []
    else:
        facts = {"sets": kind.value, "notes": list(result.notes)}
        coupled = describe_coupled_value(result.robust.coupled, model.parameters.names)
        if coupled is not None:
            shown = {"status": coupled.status, "witness": coupled.witness, "gap": coupled.gap}
            facts |= {**shown, "coupled": coupled}
        if result.synthesis is not None:
            facts |= {name: getattr(result.synthesis, name) for name in ("limit", "optimality_gap")}
        interval, seconds, about = result.robust.interval, result.seconds, {"policy": whose}
        details = list_coupled_facts(result)

    def certify(source: Mapping[str, object]) -> CertificateFile:
        return learned_file(result, about={**source, **about}, verify=files.verify)

    def controller() -> tuple[Policy, CertifiedFacts]:
        if is_other:
            return result.policy, CertifiedFacts(
                question=problem.text,
                lower=result.interval.lower,
                upper=result.interval.upper,
                over=f"{result.sets.kind.value} sets",
                status="certified" if result.is_close else "precision-limit",
            )
        exported = robust_policy(result)
        return policy or problem.controller(exported.policy), exported.certified(result, problem.text)

    made = (problem.query, result.verdict, interval, {**facts, "policy": whose}, seconds, certify)
    return OverDomain(*made, problem.text, details, controller)


def _domain_problem(model: ParametricMDP, query: Query) -> Problem:
    """What is asked over a domain: of a temporal formula, about a product."""
    from tightrope.logic.product_problem import product_problem

    problem = Problem(model, query)
    if not query.is_plain:
        problem, reading = product_problem(model, query)
        screen.warn(reading)
    if problem.query.is_threshold:
        raise InputError(
            f"{problem.text} is true or false, and may be true at some instantiations only",
            hint="ask for the value, Pmax=? [ … ], and compare its bounds",
        )
    return problem


def _domain_policy(
    loaded: LoadedModel | TimedModel, problem: Problem, policy: Policy | None, at: str | None
) -> tuple[Policy | None, str]:
    """The policy to evaluate (None: find one), and what it is in words."""
    if policy is not None:
        if at is not None:
            raise InputError("--policy and --at both name a policy", hint="leave one of them out")
        return policy, "the given policy"
    if at is None:
        return None, "the most robust policy found"
    return solve(problem.at(loaded.point(at))).policy, f"the optimal policy at {at}"


def _over_rates(
    request: CheckRequest, loaded: LoadedModel | TimedModel, query: Query, files: CheckFiles
) -> OverDomain:
    """Of a chain in continuous time: rates in intervals, picked anew at every moment."""
    from tightrope.certify.certificate_file import answered_file, shown_value
    from tightrope.certify.rates import rate_certificate, rate_problem
    from tightrope.logic.timed import bound_over_rates
    from tightrope.model.continuous import ParametricCTMC, over_box

    assert isinstance(loaded.model, ParametricCTMC)
    model, parameters = loaded.model, loaded.model.parameters
    if request.sets not in (None, DomainSets.EXPRESSION):
        raise InputError(
            f"--sets {request.sets.value} is not supported for continuous time",
            hint="write --sets expression",
        )
    if parameters.constraints:
        raise InputError(
            "bounds over the domain of a chain in continuous time are over a box, and this domain has "
            "constraints between parameters",
            hint="give ranges only: --param lam=0.1:0.3",
        )
    if files.certificate is not None:
        _refuse_uncertified(loaded, query, None)
    begin = time.perf_counter()
    with screen.phase_progress() as progress:
        progress("solve")
        chain = over_box(model, parameters.lower, parameters.upper)
        result = bound_over_rates(chain, query, request.solve_options())

    def certify(about: Mapping[str, object]) -> CertificateFile:
        proof = rate_certificate(rate_problem(model, query, None), about, request.precision)
        return answered_file(proof, shown_value((result.lower, result.upper)), files.verify)

    whose = {"sets": "expression", "policy": "none: a chain has no choices", "notes": list(result.notes)}
    verdict, spent = Assessment.of(limit="; ".join(result.missed) or None), time.perf_counter() - begin
    return OverDomain(query, verdict, Interval(result.lower, result.upper), whose, {"solve": spent}, certify)
