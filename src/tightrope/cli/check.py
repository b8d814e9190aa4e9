"""`tightrope check MODEL --prop P`: certified values of a plain or interval model, or at a point.

With `--sets S` it is a policy's certified interval over all instantiations in a domain.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np

import tightrope as tr
from tightrope.cli import check_answers, late, options, sources
from tightrope.cli import output as screen
from tightrope.cli.check_answers import About, Answered, DomainAnswer
from tightrope.cli.options import declare, option, switch, takes
from tightrope.cli.sources import Loaded, Question
from tightrope.errors import InputError
from tightrope.io.coding import record_of, to_plain
from tightrope.io.output import CERTIFICATE, POLICY, OutputFile, refuse_same
from tightrope.io.results import CertifiedFacts, Interval
from tightrope.loading import type_of
from tightrope.model.continuous import ParametricCTMC, over_box
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.pomdp import POMDP
from tightrope.numerics.jit import interpreting, stop_interpreting
from tightrope.numerics.machine import peak_memory
from tightrope.prism.properties.capabilities import QueryKind, Task
from tightrope.prism.properties.query import Query
from tightrope.problem import Problem
from tightrope.solver.part import PartSolver
from tightrope.solver.solution import Solution, SolveOptions
from tightrope.solver.solve import Workspace, attained, solve, solve_query
from tightrope.verdict import Assessment, Assumed

if TYPE_CHECKING:
    from tightrope.certify.certificate_file import CertificateFile
    from tightrope.logic.model_checking import Answer


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


@takes(CheckRequest, needs={"misfit": "sets --sets expression", "no_verify": "certificate"})
@interpreting()
def check(request: CheckRequest) -> None:
    """Compute certified bounds on the value of a plain or interval model, or of a parametric one at a point.

    The value lies between the two bounds; both are verified. With --sets, the bounds hold for a policy at all
    parameters in the domain of a parametric model.

    Example: tightrope check model.prism --prop 'Pmax=? [ F "goal" ]' --at p=0.55 --certificate goal.cert

    Example: tightrope check model.prism --domain '0.1<=p<=0.4' --policy policy.json --sets coupled
    """
    refuse_combinations(request)
    files = CheckFiles.claim(request)
    options.require_device(request.device)
    question = Question.of(request)
    if not request.prop:
        question = replace(question, files=sources.read_own_properties(request.model, question.constants))
    workspace = Workspace(request.device.value, request.threads)
    loaded, at, judge = load(request, question, files, workspace)
    queries = question.queries(loaded)
    refuse_queries(request, loaded, queries)
    hidden = isinstance(loaded.model, POMDP)
    if not hidden and splits_domain(request, loaded, queries):
        check_partition(request, loaded, queries, files.figure)
        return
    if not hidden and request.sets is not None:
        stop_interpreting()
        check_domain(request, loaded, queries[0], files)
        return
    case: PointSolver | late.check_partial.PartialSolver
    if hidden:
        case = late.check_partial.PartialSolver.of(request, loaded, files.certificate is not None)
    else:
        case = PointSolver.of(request, loaded, at, queries, workspace, judge)
    answers = []
    for query in queries:
        with screen.phase("solve"):
            answers.append(case.answer(query))
    for answer in answers if screen.common.json and not hidden else ():
        for note in answer.record.notes or ():
            screen.warn(note)
    verdict = check_answers.report_answers(loaded, answers, judge is not None and judge.solution is not None)
    first = answers[0]
    proof = None
    if files.certificate is not None:
        proof = certify(request, loaded, first.query, first.result, case.about)
    files.write(proof, lambda place: case.save(first, place), first.result)
    screen.leave(verdict)


def refuse_combinations(request: CheckRequest) -> None:
    """Options that make no sense, alone or together."""
    options.require_coupled(request.coupled_gap, request.sets is DomainSets.COUPLED)
    support, limit = request.assume_support, request.time_limit
    options.refuse_any(
        (not 0 < request.precision < math.inf, f"--precision is {request.precision}, not a positive number"),
        (support is not None and not 0 < support < 1, f"--assume-support is {support}, not within (0, 1)"),
        (limit is not None and not limit > 0, f"--time-limit is {limit}, not a positive number of seconds"),
    )


def load(
    request: CheckRequest, question: Question, files: CheckFiles, workspace: Workspace
) -> tuple[Loaded, str | None, PartSolver | None]:
    """Build the model; of a chain in continuous time its jumps, if a certificate does not speak of time."""
    kind = type_of(request.model)
    timed, untimed = kind == "ctmc", kind == "ma"
    if timed:
        options.refuse_options(request, NOT_TIMED)
    if untimed:
        options.refuse_options(request, "discount", "it cannot be used with Markov automata")
        options.refuse_any(
            (
                request.certificate is not None,
                "--certificate cannot be used with Markov automata: an optimal policy may depend on "
                "time, and certificates cannot prove its optimality",
                "leave --certificate out: the answer is proved without one",
            )
        )
        if question.is_timed:
            options.refuse_options(request, f"{NOT_TIMED} sets")
    whole = request.build_all or request.policy or request.sets or files.certificate or files.policy
    boundary = None if whole else question.boundary
    if timed and files.certificate is not None and request.sets is None and not question.is_timed:
        return question.load_embedded(request.at), None, None
    judge = None if boundary is None or timed else _part_solver(request, question, workspace)
    how = {"timed": True, "untimed": untimed, "observed": True, "quiet": timed and request.at is not None}
    loaded = question.load(boundary, **how, judge=judge)
    if request.observations is not None:
        loaded = replace(loaded, model=cast(POMDP, sources.seen_through(loaded, request.observations)[1]))
    return loaded, request.at, judge


def refuse_queries(request: CheckRequest, loaded: Loaded, queries: Sequence[Query]) -> None:
    """Options that make no sense for what is asked."""

    partial, several = isinstance(loaded.model, POMDP), len(queries) > 1
    if not partial and not isinstance(loaded.model, ParametricCTMC):
        for query in queries:
            for given in options.list_given(request, "certificate policy_out policy sets"):
                query.require(Task(f"check {given}"))
    for query in queries:
        if query.is_plain and query.reading is not None and screen.common.json:
            screen.warn(query.reading.warning)
    over = request.sets is not None and not partial
    draws_curve = request.figure is not None and not partial and not splits_domain(request, loaded, queries)
    options.refuse_any(
        (
            draws_curve and (several or not late.model_checking.is_curve(queries[0].formula)),
            "--figure requires one property that asks for two objectives",
            'multi(Pmax=? [ F "a" ], Pmin=? [ F "b" ])',
        ),
        (
            several and (request.certificate or request.policy_out),
            f"--certificate and --policy-out require one property, not {len(queries)}",
        ),
        (
            over and (request.absolute or request.all_states),
            "--absolute and --all-states cannot be used with --sets: leave them out",
        ),
        (over and several, f"--sets requires one property, not {len(queries)}"),
    )


@dataclass(frozen=True)
class CheckFiles:
    """The files to write: claimed before anything is computed, written after the answer was printed."""

    certificate: OutputFile | None
    policy: OutputFile | None
    figure: OutputFile | None

    @staticmethod
    def claim(request: CheckRequest) -> CheckFiles:
        """Refuse what must not or cannot be written."""
        refuse_same((request.certificate, request.policy_out, request.figure))
        figure = None
        if request.figure is not None:
            figure = late.write.check_picture(request.figure, screen.common.overwrite)
        certificate = screen.claim(request.certificate, CERTIFICATE)
        return CheckFiles(certificate, screen.claim(request.policy_out, POLICY), figure)

    def write(
        self, proof: CertificateFile | None, save: Callable[[Path], None] | None, curve: object = None
    ) -> None:
        """What was named, of the one property that is asked for: `save` writes its policy."""
        if proof is not None and self.certificate is not None:
            proof.save(self.certificate.checked())
        if self.figure is not None and curve is not None:
            late.curves.write_pareto_curve(cast("Answer", curve), self.figure)
        if self.policy is not None and save is not None:
            save(self.policy.checked())


def certify(
    request: CheckRequest, loaded: Loaded, query: Query, solved: object, about: About
) -> CertificateFile:
    """The certificate of what was solved; beside its problem it says where that came from."""
    problem, how, verify = Problem(loaded.model, query), request.solve_options(), not request.no_verify
    point, given, more = about
    source = {"model": loaded.source, "constants": options.parse_constants(request.const), **more}
    theta = None if point is None else tuple(point)
    is_plain = request.sets is None and isinstance(loaded.model, MDP | IntervalMDP | ParametricMDP)
    words = {**late.solved.about_problem(problem), **source}
    if is_plain:  # which loads less
        known, policy = cast("Solution | Answer", solved), cast("Policy | None", given)
        proof = late.solved.solved_file(problem, known, theta, how, policy, words, verify)
    else:
        proof = late.certify.certificate_file(problem, solved, theta, how, given, words, verify)
    for note in proof.notes:
        screen.warn(note)
    return proof


@dataclass(frozen=True, eq=False)
class PointSolver:
    """A model without parameters, or one at a point; `part` is what its build has solved already."""

    request: CheckRequest
    loaded: Loaded
    subject: MDP | IntervalMDP | tr.CTMC | tr.MarkovAutomaton
    point: Sequence[Fraction] | None
    policy: Policy | None
    workspace: Workspace
    part: Solution | None

    @staticmethod
    def of(
        request: CheckRequest,
        loaded: Loaded,
        at: str | None,
        queries: Sequence[Query],
        workspace: Workspace,
        judge: PartSolver | None,
    ) -> PointSolver:
        """What is solved, and the point it is at (None for models without expressions)."""
        model, first = loaded.model, queries[0]
        policy = None if request.policy is None else Policy(model, request.policy)
        subject, point = model, None
        if isinstance(model, ParametricMDP | ParametricCTMC):
            point = loaded.point(at)
            subject = model.instantiate(point)
        elif at is not None:
            raise InputError("--at requires a parametric model; this model has no parameters")
        elif first.options.is_timed and loaded.automaton is not None:
            subject = loaded.automaton
        if request.certificate is not None:
            _refuse_uncertified(loaded, first, policy)
        assert isinstance(subject, MDP | IntervalMDP | tr.CTMC | tr.MarkovAutomaton)
        part = None if judge is None else judge.solution
        return PointSolver(request, loaded, subject, point, policy, workspace, part)

    @property
    def how(self) -> SolveOptions:
        """How values are computed."""
        return self.request.solve_options()

    @property
    def about(self) -> About:
        """What a certificate is about: the model as it was given."""
        point = self.point if isinstance(self.loaded.model, ParametricMDP | ParametricCTMC) else None
        at = [str(value) for value in self.point or ()]
        return point, self.policy, {"at": at, "assume_support": self.how.assume_support}

    def answer(self, query: Query) -> Answered:
        """Solve, and say what came out."""
        begin, all_states, subject = time.perf_counter(), self.request.all_states, self.subject
        assumed, least = tuple[Assumed, ...](), self.how.assume_support
        if least is not None:
            words = f"every possible transition has a probability of at least {least:g}"
            assumed = (Assumed.stated("support", words),)
        helps = query.directions is not None and len({*query.directions}) == 1
        of_intervals = "the optimistic policy" if helps else "the robust policy"
        whose = of_intervals if isinstance(subject, IntervalMDP) else "the optimal policy"
        whose = "the given policy" if self.policy is not None else whose
        whose = whose if subject.structure.has_choices else ""
        if self.part is not None:
            record = check_answers.describe_solution(query, self.part, False, False, assumed)
            return Answered(query, self.part, self.part.seconds, record, whose)
        if query.is_plain and isinstance(subject, MDP | IntervalMDP):
            solution = self._solve(subject, query)
            factors = isinstance(subject, IntervalMDP) and subject.factored is not None
            record = check_answers.describe_solution(query, solution, all_states, factors, assumed)
            return Answered(query, solution, time.perf_counter() - begin, record, whose)
        how = replace(self.how, controller=self.request.policy_out is not None)
        answer = late.model_checking.check_query(
            query, subject, how, how.assume_support, all_states, policy=self.policy
        )
        shown = np.ones(subject.states, np.bool_) if all_states else answer.listed
        record = check_answers.describe_answer(query, answer, shown, assumed)
        return Answered(query, answer, answer.seconds, record, whose if query.kind is QueryKind.LTL else "")

    def _solve(self, model: MDP | IntervalMDP, query: Query) -> Solution:
        how = self.how
        if self.request.certificate is not None and isinstance(model, IntervalMDP):
            model = late.problem.provable(model, query.objective, how.assume_support)
        return solve_query(
            Problem(model, query),
            policy=self.policy,
            precision=how.precision,
            relative=how.relative,
            assume_support=how.assume_support,
            seconds=how.seconds,
            workspace=self.workspace,
        )

    def save(self, answer: Answered, place: Path) -> None:
        """Write the policy, with the interval that it attains, computed anew."""
        result = cast("Solution | Answer", answer.result)
        if isinstance(result, Solution):
            policy = self.policy or result.policy
            value = attained(result, policy, self.workspace)
            span, status = (value.lower, value.upper), value.status.name.lower().replace("_", "-")
        elif result.controller is None or result.attained is None:
            raise InputError(
                f"--policy-out cannot be used with {result.text}: its automaton is another program's",
                hint="leave --ltl-translator out",
            )
        else:
            policy, span, status = result.controller, result.attained, result.status
        over = "the interval model" if isinstance(self.loaded.model, IntervalMDP) else "the model"
        low, high = span
        facts = CertifiedFacts(question=answer.query.text, lower=low, upper=high, over=over, status=status)
        policy.save(place, self.loaded.model.hash(), to_plain(facts))


def _part_solver(request: CheckRequest, question: Question, workspace: Workspace) -> PartSolver | None:
    """What may end the build of a large model early; None where all states are wanted, or several answers."""
    if request.all_states or sum(len(file.wanted) for file in question.files) != 1:
        return None

    def ask(model: ParametricMDP) -> Problem | None:
        loaded = Loaded(model)
        if request.at is None and model.parameters.names:
            return None
        return Problem(model.instantiate(loaded.point(request.at)), question.queries(loaded)[0])

    return PartSolver(ask, request.solve_options(), workspace)


def splits_domain(request: CheckRequest, loaded: Loaded, queries: Sequence[Query]) -> bool:
    """Whether the question is where in the domain a threshold holds: no point is given, and none is known."""
    if request.open_share is not None or request.at or request.sets or loaded.benchmark is not None:
        return request.open_share is not None
    model = loaded.model
    has_domain = isinstance(model, ParametricMDP) and bool(model.parameters.names)
    return has_domain and all(query.is_threshold for query in queries)


def check_partition(
    request: CheckRequest, loaded: Loaded, queries: Sequence[Query], figure: OutputFile | None
) -> None:
    """Split the domain, print the parts, draw them."""
    options.refuse_options(request, NOT_SPLIT, "it cannot be used with parts of a domain")
    if len(queries) != 1:
        raise InputError(f"a domain is split for one property, not {len(queries)}")
    share = OPEN_SHARE if request.open_share is None else options.parse_share(request.open_share, "--open")
    with screen.phase("solve") as progress:
        seconds = request.solve_options().seconds
        parts = late.partition.partition(Problem(loaded.model, queries[0]), share, seconds, progress)
    verdict = check_answers.report_partition(loaded, queries[0], parts, share)
    if figure is not None:
        late.curves.write_partition(parts.names, parts.parts, queries[0].text, figure)
    screen.leave(verdict)


def _refuse_uncertified(loaded: Loaded, query: Query, policy: Policy | None) -> None:
    """What certificates are not about, before anything is computed."""
    starts = len(loaded.model.structure.initial_states)
    if starts > 1:
        raise InputError(
            f"certificates are about one initial state, and the model has {starts:,}",
            hint="leave --certificate out, or let one state be initial",
        )
    if policy is not None and query.is_plain:
        late.solved.refuse_steps(policy, query.objective)


NOTHING = dict.fromkeys(("witness", "gap", "coupled", "limit", "optimality_gap"))
"""What is there for one objective over parameters alone."""


@dataclass(frozen=True, eq=False)
class OverDomain:
    """What holds over a domain: the interval, more fields of the record, what is certified and written."""

    query: Query
    verdict: Assessment
    interval: Interval | None
    facts: Mapping[str, object]
    seconds: Mapping[str, float]
    result: object
    words: Mapping[str, object] = field(default_factory=dict)
    details: screen.Rows = ()
    save: Callable[[Path], None] | None = None


def check_domain(request: CheckRequest, loaded: Loaded, query: Query, files: CheckFiles) -> None:
    """Bounds that hold at every instantiation in the domain: compute, print, write."""
    find = _over_rates if isinstance(loaded.model, ParametricCTMC) else _over_parameters
    over, proof = find(request, loaded, query), None
    if files.certificate is not None:
        with screen.phase("the certificate"):
            proof = certify(request, loaded, over.query, over.result, (None, None, over.words))
    status = "certified" if over.verdict.is_proved else "limit"
    seconds = {"build": loaded.seconds, **over.seconds}
    answer = record_of(
        DomainAnswer,
        over,
        **{"status": status, **NOTHING, **over.facts},
        model=loaded.source,
        question=over.query.text,
        lower=None if over.interval is None else over.interval.lower,
        upper=None if over.interval is None else over.interval.upper,
        certificate=None if proof is None else Interval.of(*next(iter(proof.values.values()))),
        peak_memory=peak_memory(),
        seconds=check_answers.round_seconds(seconds),
    )
    check_answers.report_domain(answer, over.details)
    files.write(proof, over.save)
    screen.leave(over.verdict)


def _over_parameters(request: CheckRequest, loaded: Loaded, query: Query) -> OverDomain:
    """Of a policy; a property that is no single objective is answered over the hull of the sets."""
    assert request.sets is not None
    model, policy = loaded.model, None if request.policy is None else Policy(loaded.model, request.policy)
    if not isinstance(model, ParametricMDP) or not model.parameters.names:
        raise InputError(
            f"--sets refers to a domain of parameters, and {loaded.source} has none",
            hint="leave --sets out: plain and interval models have one value",
        )
    is_other = query.kind not in (QueryKind.PLAIN, QueryKind.LTL)
    problem = Problem(model, query) if is_other else _domain_problem(model, query)
    if request.certificate is not None:
        late.region.refuse_uncertified(model)
    if is_other:
        options.refuse_options(request, "at", f"it cannot be used with {problem.text} over a domain")
    chosen = tr.LearnOptions.of("solve", {**options.learn_words(request), "sets": request.sets.value})
    with screen.phase("solve") as progress:
        evaluated, whose = _domain_policy(loaded, problem, policy, request.at)
        result = late.solve.solve_over_domain(problem, chosen, evaluated, progress)
    if isinstance(result, tr.LearningResult):
        facts = {**_policy_facts(result), "policy": whose}
        details = late.result_display.list_coupled_facts(result)

        def save_policy(place: Path) -> None:
            exported = late.result_files.robust_policy(result)
            about = to_plain(exported.certified(result, problem.text))
            (policy or problem.controller(exported.policy)).save(place, model.hash(), about)

        ends, about = result.robust.interval, {"policy": whose}
        spent = result.seconds
        return OverDomain(
            problem.query, result.verdict, ends, facts, spent, result, about, details, save_policy
        )
    assert isinstance(result, tr.LearnedAnswer)
    facts = {"sets": f"the hull of {result.sets.kind.value}", "notes": [], "policy": whose}
    if result.answer is not None:
        facts |= {"truth": result.truth, "notes": list(result.answer.readings)}

    def save_found(place: Path) -> None:
        assert result.policy is not None
        result.policy.save(place, model.hash(), to_plain(late.learn_run.certified_facts(result)))

    spent = {"solve": result.seconds}
    return OverDomain(problem.query, result.verdict, result.interval, facts, spent, result, save=save_found)


def _policy_facts(result: tr.LearningResult) -> dict[str, object]:
    """The fields of the record about policies over sets."""
    facts: dict[str, object] = {"sets": result.decisions.sets.value, "notes": list(result.notes)}
    coupled = late.result.describe_coupled_value(result.robust.coupled, result.model.parameters.names)
    if coupled is not None:
        shown = {"status": coupled.status, "witness": coupled.witness, "gap": coupled.gap}
        facts |= {**shown, "coupled": coupled}
    if result.synthesis is not None:
        facts |= {name: getattr(result.synthesis, name) for name in ("limit", "optimality_gap")}
    return facts


def _domain_problem(model: ParametricMDP, query: Query) -> Problem:
    """What is asked over a domain: of a temporal formula, about a product."""
    problem = sources.temporal_product(model, query) or Problem(model, query)
    if problem.query.is_threshold:
        raise InputError(
            f"{problem.text} is true or false, and may be true at some instantiations only",
            hint="ask for the value, Pmax=? [ … ], and compare its bounds",
        )
    return problem


def _domain_policy(
    loaded: Loaded, problem: Problem, policy: Policy | None, at: str | None
) -> tuple[Policy | None, str]:
    """The policy to evaluate (None: find one), and what it is in words."""
    if policy is not None:
        if at is not None:
            raise InputError("--policy and --at both name a policy", hint="leave one of them out")
        return policy, "the given policy"
    if at is None:
        return None, "the most robust policy found"
    return solve(problem.at(loaded.point(at))).policy, f"the optimal policy at {at}"


def _over_rates(request: CheckRequest, loaded: Loaded, query: Query) -> OverDomain:
    """Of a chain in continuous time: rates in intervals, picked anew at every moment."""
    model = loaded.model
    assert isinstance(model, ParametricCTMC)
    if request.sets not in (None, DomainSets.EXPRESSION):
        raise InputError(
            f"--sets {request.sets.value} is not supported for continuous time",
            hint="write --sets expression",
        )
    if model.parameters.constraints:
        raise InputError(
            "bounds over the domain of a chain in continuous time are over a box, and this domain has "
            "constraints between parameters",
            hint="give ranges only: --param lam=0.1:0.3",
        )
    if request.certificate is not None:
        _refuse_uncertified(loaded, query, None)
    begin = time.perf_counter()
    with screen.phase("solve"):
        chain = over_box(model, model.parameters.lower, model.parameters.upper)
        result = late.timed.bound_over_rates(chain, query, request.solve_options())
    facts = {"sets": "expression", "policy": "none: a chain has no choices", "notes": list(result.notes)}
    verdict, spent = Assessment.of(limit="; ".join(result.missed) or None), time.perf_counter() - begin
    return OverDomain(
        query, verdict, Interval.of(result.lower, result.upper), facts, {"solve": spent}, result
    )
