"""`tightrope online MODEL --at … --episodes N`: explore, certify, repeat.

A run shows a live line on stderr where that is a terminal, and a table of its records at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

import tightrope as tr
from tightrope.ambiguity.sets import SetsKind
from tightrope.cli import late, options
from tightrope.cli import output as screen
from tightrope.cli.learn_run import fill_answer
from tightrope.cli.options import declare, takes
from tightrope.cli.result_display import fit_facts, hints_of, parameter_facts, policy_facts, value_of
from tightrope.cli.sources import Subject, episode_end, load_subject, longest
from tightrope.data.columns import StateForm
from tightrope.data.steps import SteppedEnvironment, load_named, make_environment
from tightrope.design.exploration import AS_GOOD, Explore, Explored
from tightrope.errors import CannotCertify, InputError
from tightrope.io.answers import ANSWER_FILE
from tightrope.io.coding import Real, from_plain, record_of
from tightrope.io.output import claim, file_digest
from tightrope.io.results import Judged
from tightrope.learning.online import run
from tightrope.learning.online.exploration import (
    Answer,
    Collecting,
    Exploration,
    GapTarget,
    OnDrift,
    default_exploration,
)
from tightrope.learning.online.learner import ITERATIONS, EvenLearner
from tightrope.learning.online.run import Line, Source, Truth
from tightrope.learning.result_files import RESULT, Setting, document, fill_results
from tightrope.monitoring.monitor import DEFAULT_ALPHA
from tightrope.numerics import text as texts
from tightrope.numerics.machine import peak_memory
from tightrope.statistics.estimates import Budget, IntervalMethod
from tightrope.verdict import Assessment, Word

MOST_EPISODES = 1_000_000
"""After which a run gives up that waits for a gap."""


@dataclass(frozen=True, kw_only=True)
class OnlineRequest(options.SubjectOptions):
    """The options of the command."""

    episodes: int | None = declare("--episodes", "Total number of episodes.", "N", min=1)
    explore: Exploration | None = declare(
        "--explore",
        "The policy that collects the episodes. Default: designed with --until-gap, else optimistic.",
    )
    until_gap: str | None = declare(
        "--until-gap", "Stop when the robust policy's interval has this width (5%: of the value).", "E|E%"
    )
    max_episodes: int | None = declare(
        "--max-episodes", f"With --until-gap: give up after so many ({MOST_EPISODES:,}).", "N", min=1
    )
    data: Path | None = declare("--data", "Start with these episodes, a file of 'tightrope sample'.", "FILE")
    cost: options.Cost = None
    avoid: options.Avoid = None
    at_most: options.AtMost = None
    baseline: str | None = declare(
        "--baseline",
        "Collect only with policies that are proved to be at least as good as this one.",
        "FILE|uniform|do-nothing",
    )
    allow_loss: float = declare("--allow-loss", "With --baseline: the allowed loss.", "L", default=0.0, min=0)
    at: options.At = None
    seed: int = declare("--seed", "Same seed, same episodes.", "S", default=0, min=0)
    delta: float = declare(
        "--delta", "The probability that any guarantee of the run fails.", "D", default=0.001
    )
    region: options.Region = None
    sets: SetsKind | None = declare("--sets", "What nature may pick from.")
    interval: IntervalMethod | None = declare(
        "--interval", "The intervals of events; only beta-binomial holds for adaptive data."
    )
    budget: Budget = declare("--budget", "How events share δ.", default=Budget.TIED)
    output: Path | None = declare("-o --output", "Save the run here; the same command resumes it.", "DIR")
    assume_support: options.AssumeSupport = None
    precision: options.Precision = 1e-6
    cap: int | None = declare(
        "--cap", "Longest episode in steps (default 1000, or the benchmark's value).", "STEPS", min=1
    )
    env: options.Env = None
    convert_obs: options.ConvertObs = None
    actions: options.Actions = None
    states: StateForm | None = declare(
        "--states", "With --env: 'index' states that observations are the model's state indices."
    )
    on_drift: Answer | None = declare(
        "--on-drift", "Monitor the model fit; the action if the data contradict the model."
    )
    alpha: float | None = declare(
        "--alpha", "With --on-drift: the probability of ever raising a false alarm (default 0.001).", "A"
    )
    device: options.Device = options.DeviceName.CPU
    threads: options.Threads = None

    @property
    def most_episodes(self) -> int:
        """Episodes altogether, at most."""
        return self.episodes or self.max_episodes or MOST_EPISODES

    @property
    def exploration(self) -> Explore:
        """Who collects the episodes, and under which bounds."""
        kind = self.explore or default_exploration(self.until_gap)
        return Explore(kind, cost=self.cost, avoid=self.avoid, at_most=self.at_most)

    def learn_options(self) -> tr.LearnOptions:
        """What is said about how to learn."""
        return tr.LearnOptions.of("online", {**options.learn_words(self), "iterations": ITERATIONS})


NEEDS = {
    "max_episodes": "until_gap",
    "allow_loss": "baseline",
    "alpha": "on_drift",
    "convert_obs actions states": "env",
}


@takes(OnlineRequest, {"check": options.SOLVING, "sample": "convert_obs actions states"}, NEEDS)
def online(request: OnlineRequest) -> None:
    """Learn a robust policy while collecting data.

    An exploration policy (--explore) collects the episodes. At each update tightrope computes it again, with
    the robust policy and its guarantee. With probability at least 1 - delta all guarantees of a run hold, so
    it may stop when its gap is small enough (--until-gap). With -o, an interrupted run resumes at its last
    update.

    The guarantees assume an environment that does not change. With --on-drift a monitor detects changes:
    'warn' continues, 'stop' ends the run with exit code 1, 'restart' discards all data before the alarm; the
    guarantees since then hold simultaneously with probability at least 1 - delta.

    Example: tightrope online 'bench:rover(10,10)' --episodes 10000 --seed 1 --sets expression -o run

    Example: tightrope online model.prism --env plant:make --episodes 5000 --on-drift restart
    """
    options.require_device(request.device)
    if (request.episodes is None) == (request.until_gap is None):
        hint = "with --until-gap, --max-episodes N says when to give up"
        raise InputError("give either --episodes N or --until-gap E", hint=hint)
    subject = load_subject(request, any_kind=True)
    if not subject.query.is_plain and not subject.is_temporal:
        collect_evenly(request, subject)
        return
    if subject.is_temporal and request.env is not None:
        raise InputError(
            f"--env cannot be used with temporal formulas such as {subject.query.text}: the "
            "collecting policy has a memory",
            hint="in Python, tr.online takes episodes, and problem.controller(learner.policy()) acts in them",
        )
    if request.output is not None:
        claim(request.output, run.KIND)
    problem = late.learn.plain_problem(subject.problem)
    source, truth, cap = _source(request, subject, problem)
    learner = _learner(request, subject, problem, cap)
    question = _question(request, subject, learner, cap)
    records: list[Line] = []
    with nullcontext() if request.output is None else run.Journal(request.output, question) as journal:
        whole = run.OnlineRun(learner, source, request.most_episodes, truth, journal)
        with screen.phase_progress() as progress:
            for record in whole.records():
                records.append(record)
                progress(_progress_line(record, request.most_episodes, problem.maximises))
                if screen.common.json:
                    screen.print_json({**record, "peak_memory": peak_memory()})
        result = learner.result() if request.output is not None or not screen.common.json else None
        if result is not None and not screen.common.json:
            explored = _describe_exploration(request.exploration, learner)
            verdict, shown = _verdict(records, result), show_run(subject, records, result, explored, request)
            relation = texts.bounded(float(records[-1]["guarantee"]), problem.maximises)
            proved = texts.claim_text(subject.query.text, relation, "the robust policy")
            first = verdict.headline(proved, texts.sure_text(request.delta))
            screen.answer(verdict, first, {}, lambda: shown)
        if request.output is not None and result is not None:
            _write(request, subject, learner, result, records)
    last = records[-1]
    if learner.target is not None and not last["reached"]:
        raise _not_reached(learner.target, f": it is {float(last['gap']):.6g}", last["episode"])
    screen.leave(_verdict(records, result))


def _learner(request: OnlineRequest, subject: Subject, problem: tr.Problem, cap: int) -> tr.OnlineLearner:
    alpha = DEFAULT_ALPHA if request.alpha is None else request.alpha
    return tr.online(
        problem,
        delta=request.delta,
        explore=replace(request.exploration, cap=cap),
        until_gap=request.until_gap,
        planned_episodes=request.episodes if request.until_gap is None else None,
        data=None if request.data is None else tr.read_data(request.data, subject.model).counts,
        on_drift=None if request.on_drift is None else OnDrift(request.on_drift, alpha),
        baseline=request.baseline,
        allow_loss=request.allow_loss,
        **request.learn_options().words,
    )


def _not_reached(target: GapTarget, gap: str, episodes: int) -> CannotCertify:
    return CannotCertify(
        f"the gap {target.text} was not reached{gap} after {episodes:,} episodes\n"
        "hint: --max-episodes allows more; 'tightrope plan' forecasts how many are needed"
    )


def _verdict(records: list[Line], result: tr.LearningResult | None) -> Assessment:
    """That of the last update; and of the test of the model, where it was made."""
    last = records[-1]
    answer = from_plain(last, Judged).judged
    return answer if result is None else Assessment.worst([result.verdict, answer])


def _source(
    request: OnlineRequest, subject: Subject, problem: tr.Problem
) -> tuple[Source, Truth | None, int]:
    """Where episodes come from, the true model where it is known, and the cap on an episode's length."""
    model, objective = problem.model, problem.objective
    assert isinstance(model, tr.ParametricMDP)
    stop, cap = episode_end(model.states, objective, longest(subject.loaded, request.cap))
    if request.env is not None:
        given, listed, env = request.convert_obs, request.actions, make_environment(request.env)
        convert = None if given is None else load_named(given, "--convert-obs")
        actions = None if listed is None else listed.split(",")
        environment = SteppedEnvironment(
            env, model, stop, cap, convert_obs=convert, actions=actions, states=request.states
        )
        known = request.at is not None
        truth = Truth(model.instantiate(subject.loaded.point(request.at)), objective) if known else None
        return run.EnvironmentEpisodes(environment, request.seed), truth, cap
    mdp = model.instantiate(subject.loaded.point(request.at))
    simulated = run.SimulatedEpisodes(tr.Simulator(mdp, None, stop, cap, model.hash()), request.seed)
    return simulated, Truth(mdp, objective), cap


def _question(
    request: OnlineRequest, subject: Subject, learner: tr.OnlineLearner, cap: int
) -> dict[str, object]:
    """Everything that the records depend on, under the names that users know; not how many there are."""
    decisions = learner.decisions
    return {
        "model": request.model,
        "model hash": subject.model.hash(),
        "property": subject.query.text,
        "discount": request.discount,
        "terminal reward": request.terminal_reward,
        "delta": request.delta,
        "region": decisions.region.value if decisions.region else None,
        "sets": decisions.sets.value,
        "interval": decisions.interval.value,
        "budget": request.budget.value,
        "assumed support": request.assume_support,
        "precision": request.precision,
        "exploration": request.exploration.kind.value,
        "cost": request.exploration.price.text,
        "states to avoid": request.exploration.avoid,
        "allowed probability": request.exploration.at_most,
        "data to begin with": None if request.data is None else file_digest(request.data),
        "gap to reach": None if learner.target is None else learner.target.text,
        "seed": request.seed,
        "cap": cap,
        "point": None if request.env and not request.at else subject.point_text(request.at),
        "environment": request.env,
        "conversion of observations": request.convert_obs,
        "actions": request.actions,
        "states": request.states.value if request.states else None,
        "baseline": None if learner.floor is None else learner.floor.policy.digest,
        "allowed loss": request.allow_loss,
        "answer to drift": None if request.on_drift is None else request.on_drift.value,
        "alpha": None if learner.guard is None else learner.guard.monitor.alpha,
    }


def _write(
    request: OnlineRequest,
    subject: Subject,
    learner: tr.OnlineLearner,
    result: tr.LearningResult,
    records: list[Line],
) -> None:
    """The result as `tightrope learn -o` writes it, and the figure."""
    assert request.output is not None
    setting = Setting(
        model=request.model,
        property=subject.query.text,
        delta=request.delta,
        constants=options.parse_constants(request.const),
        data={
            "source": request.env or "simulation",
            "seed": request.seed,
            "updates": len(records),
            **({} if learner.guard is None else {"forgotten_episodes": learner.data.before[0]}),
        },
        command=["tightrope", *sys.argv[1:]],
        truth=subject.point_text(request.at) if request.env is None or request.at else None,
    )
    counts = learner.problem.to_base(learner.data.counts())
    content = document([result], counts, learner.options, setting)
    about = {
        "title": f"{request.model.removeprefix('bench:')}: {subject.query.text}",
        "value": "value",
        "sets": result.kind.value,
    }
    with claim(request.output, run.KIND).filling(RESULT, run.LIVE) as folder:
        fill_results(folder, [result], content)
        late.curves.write_curve(folder, records, about)


def _describe_exploration(request: Explore, learner: tr.OnlineLearner) -> str:
    """Who collected, and what is said of it."""
    result = learner.last_design if isinstance(learner.last_design, Explored) else None
    words = [f"{request.kind.value} policy"]
    if not request.price.is_by_episode:
        words.append(f"by cost ({request.price.text})")
    if result is not None and result.design is not None:
        words.append(f"within {100 * result.design.optimality:.2g}% of the best at the estimate")
        is_as_good = result.greedy is not None and result.greedy <= 1.0 + AS_GOOD
        words += ["which the robust policy is, too"] if is_as_good else []
    if result is not None and result.certified is not None:
        words.append(
            f"{request.avoid} in at most {texts.text_above(result.certified, 4)} of episodes, certified"
        )
    return ", ".join(words)


def _progress_line(record: Line, episodes: int, floor: bool) -> str:
    """Episodes done, and what is guaranteed so far; whether from below."""
    line = f"{record['episode']:,} of {episodes:,} episodes, guarantee {_bound(record['guarantee'], floor)}"
    return f"{line}, optimistic {_bound(record['optimistic'], not floor)}"


def show_run(
    subject: Subject,
    records: Sequence[Line],
    result: tr.LearningResult,
    explored: str,
    request: OnlineRequest,
) -> screen.Content:
    """What the records add up to; some of them, with --verbose."""
    floor, last = subject.problem.maximises, records[-1]
    known = any(record["performance"] is not None for record in records)
    hold = len(records) - sum(record["holds"] is False for record in records)
    validated = f"{hold} of {len(records)} guarantees hold at the true parameters"
    best = None if last.get("best_guarantee") is None else _bound(last["best_guarantee"], floor)
    is_better = (
        best not in (None, _bound(last["guarantee"], floor)) and result.verdict.word is not Word.CONTRADICTED
    )
    rows: screen.Rows = [
        *hints_of(result),
        ("property", subject.query.text),
        ("value", value_of(result)),
        ("best so far", f"{best} (all updates hold simultaneously)" if is_better else None),
        *policy_facts(result),
        ("data", f"{_size(last['episode'], last['steps'])}, {screen.count(len(records), 'update')}"),
        ("explored", explored),
        ("gap", _gap(last) if "reached" in last else None),
        ("baseline", _above(records) if "above_baseline" in last else None),
        ("validation", validated if known else None),
        ("drift", _drift(records) if "drift" in last else None),
        *fit_facts(result),
        ("written", request.output),
    ]
    more: screen.Rows = [
        *parameter_facts(result),
        ("default", result.decisions.reasons),
        ("budget", result.ledger.lines),
        *screen.spent({}),
    ]
    return screen.Content(rows, more, tables=[_table(records, known, best is not None, floor)])


def _size(episodes: int, steps: int) -> str:
    return f"{screen.count(episodes, 'episode')}, {screen.count(steps, 'step')}"


def _table(records: Sequence[Line], known: bool, together: bool, floor: bool) -> screen.Table:
    columns = ["episode", "steps", "guarantee", *(["best so far"] if together else [])]
    columns += [*(["performance"] if known else []), "optimistic", "seconds"]
    rows = [
        [
            screen.group(record["episode"]),
            screen.group(record["steps"]),
            _bound(record["guarantee"], floor),
            *([_bound(record.get("best_guarantee"), floor)] if together else []),
            *([_number(record["performance"])] if known else []),
            _bound(record["optimistic"], not floor),
            f"{record['elapsed']:.3g}",
        ]
        for record in records
    ]
    return screen.Table(columns, rows, "Updates")


def _gap(last: Line) -> str:
    result = f"{_bound(last['gap'], False)} after {screen.group(last['episode'])} episodes"
    return result if last["reached"] else f"{result}: more than was asked for"


def _above(records: Sequence[Line]) -> str:
    lower, upper = (float(records[-1]["above_baseline"][end]) for end in ("lower", "upper"))
    return (
        "no collecting policy is below it (or by what is allowed), with the confidence of the run; the "
        f"last one exceeds it by {texts.interval_text(lower, upper)}"
    )


def _drift(records: Sequence[Line]) -> str:
    result = records[-1]["drift"]
    text = f"{result['events']:,} events, "
    if result["alarm"]:
        text += f"alarm at event {result['first_alarm']:,}"
    else:
        text += f"no alarm (a false one has probability at most {result['alpha']:g})"
    if result["restarts"]:
        text += f"; {result['restarts']:,} restarts, the last after {result['since']:,} episodes"
    return text


def _bound(value: object, is_lower: bool) -> str:
    return "–" if value is None else texts.bound_text(float(str(value)), is_lower)


def _number(value: object) -> str:
    return "–" if value is None else texts.number_text(float(str(value)))


REFUSED = "env data cost baseline avoid at_most on_drift discount terminal_reward"


class OnlineAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """One line of `online`: what is known after so many episodes. A number lies between `lower` and `upper`,
    a property is `truth`; `reached` says that the gap that was asked for is."""

    episode: int
    steps: int
    question: str = msgspec.field(name="property")
    verdict: Word
    why: str
    lower: Real | None
    upper: Real | None
    truth: str | None
    guarantee: Real | None
    reached: bool
    seconds: float
    peak_memory: int


def collect_evenly(request: OnlineRequest, subject: Subject) -> None:
    """Simulate, answer, repeat."""
    text = subject.query.text
    why = f"it cannot be used with {text}, for which episodes are collected evenly"
    options.refuse_options(request, REFUSED, why)
    if request.explore not in (None, Exploration.UNIFORM):
        raise InputError(
            f"--explore {request.explore.value} cannot be used with {text}",
            hint="leave --explore out: episodes are collected evenly for it",
        )
    directory = None if request.output is None else claim(request.output, "answer")
    how, words = Collecting(until_gap=request.until_gap), request.learn_options().words
    learner = EvenLearner(subject.problem, request.delta, words, how)
    answers = []
    for answer in _answers(request, subject, learner):
        answers.append(answer)
        if screen.common.json:
            screen.print_json(answer)
    result, last = learner.last_result, answers[-1]
    assert isinstance(result, tr.LearnedAnswer)
    if not screen.common.json:
        rows = [(str(one.episode), f"{one.steps:,}", _known(one)) for one in answers]
        shown = screen.Content(
            [("property", text), *result.facts(), ("data", _size(last.episode, last.steps))],
            tables=[screen.Table(("episodes", "steps", "known"), rows, "Updates")],
        )
        screen.answer(result.verdict, result.headline(), {}, lambda: shown)
    if directory is not None:
        with directory.filling(ANSWER_FILE) as folder:
            fill_answer(folder, result, result.document(request.model))
    if learner.target is not None and not last.reached:
        raise _not_reached(learner.target, "", last.episode)
    screen.leave(result.verdict)


def _answers(request: OnlineRequest, subject: Subject, learner: EvenLearner) -> Iterator[OnlineAnswer]:
    """What is known after 1, 2, 4, … episodes."""
    truth = subject.model.instantiate(subject.loaded.point(request.at))
    simulator = tr.Simulator(truth, None, None, longest(subject.loaded, request.cap), subject.model.hash())
    source = run.SimulatedEpisodes(simulator, request.seed)
    while learner.episodes < request.most_episodes and not learner.is_reached:
        begin, last = time.perf_counter(), max(1, 2 * learner.episodes)
        source.collect(learner.policy(), learner.data, min(last, request.most_episodes))
        result = learner.update()
        assert isinstance(result, tr.LearnedAnswer)
        interval = result.interval
        yield record_of(
            OnlineAnswer,
            result,
            learner.data,
            episode=learner.episodes,
            question=result.text,
            lower=None if interval is None else interval.lower,
            upper=None if interval is None else interval.upper,
            reached=learner.is_reached,
            seconds=round(time.perf_counter() - begin, 6),
            peak_memory=peak_memory(),
        )


def _known(one: OnlineAnswer) -> str:
    return one.truth or texts.interval_text(float(one.lower or 0.0), float(one.upper or 0.0))
