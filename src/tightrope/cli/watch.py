"""`tightrope watch MODEL --data LOG`: does the model still fit, with a known rate of false alarms."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

import tightrope as tr
from tightrope.atomic import check_target
from tightrope.cli import late, options
from tightrope.cli.options import ModelOptions, declare, option, refuse_any, switch, takes
from tightrope.cli.output import Content, command, common, count, leave, print_json, show
from tightrope.errors import InputError, Location
from tightrope.io.coding import Real, record_of
from tightrope.io.log_words import LOCAL, LOG_WORDS, LogWords
from tightrope.io.results import Anomaly, Judged, ModelFit, power_text
from tightrope.numerics.text import bounded, number_text
from tightrope.prism.properties.capabilities import QueryKind, Task, require_task
from tightrope.verdict import Assessment, Assumed

if TYPE_CHECKING:  # late: `--help` needs nothing of it
    from tightrope.cli.sources import Loaded
    from tightrope.data.episode_log import LogEvents
    from tightrope.monitoring.following import Following
    from tightrope.monitoring.promise import Promise, PromiseWatch


class ReturnsFacts(msgspec.Struct, frozen=True):
    """A promise about a policy, beside the returns of its episodes.

    Of the `episodes` that were weighed some left the policy and some were cut off; what they do not show
    counts as good as it can be. Those that began `elsewhere` than in the initial state are not among them.
    `first_alarm` is the number of the event at which the evidence had reached 1/`alpha`.
    """

    policy: str
    promised: Real
    at_least: bool
    episodes: int
    left_policy: int
    cut_off: int
    elsewhere: int
    mean: float | None
    log_e_value: Real
    alpha: float
    alarm: bool
    first_alarm: int | None
    nominal: bool


class ShieldedFacts(msgspec.Struct, frozen=True):
    """Steps of agents under a shield: those with a price, the slack that was spent in all and the least that
    was left in an episode, and steps that the shield does not allow."""

    steps: int
    priced: int
    spent: float
    least_slack: float
    forbidden: int


class WatchRecord(Judged, kw_only=True):
    """A line of `watch --json`.

    With `--result` an `alarm` is one of the model or of the returns, each at half of `alpha`; `model_alpha`
    is the model's part. `e_value` and `log_e_value` are the evidence against the model, an alarm where it
    reaches 1/`model_alpha`; `first_alarm` the number of the event of the first alarm; `first_warning` that
    of the detector of changes, which has a rate of false alarms only. `nominal`: rows were left out, or their
    order or ends are not known, so that the level holds in name only. `verdict`: contradicted
    where there is an alarm, limit where nothing was read, nominal where the level holds in name only; proved
    says that the test is valid and raised no alarm.
    """

    alarm: bool
    e_value: Real
    log_e_value: Real
    alpha: float
    model_alpha: float
    events: int
    first_alarm: int | None
    first_warning: int | None
    suspects: list[Anomaly]
    parameters: dict[str, float]
    returns: ReturnsFacts | None
    shield: ShieldedFacts | None
    read: dict[str, int]
    dropped: dict[str, int]
    nominal: bool
    final: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class WatchRequest(ModelOptions):
    """The options of the command."""

    data: Annotated[
        list[str],
        option(
            "--data -d",
            "Files, patterns or directories, read in the order given; - reads JSON lines from "
            "standard input.",
            "LOG",
        ),
    ]
    alpha: float = declare(
        "--alpha", "The probability that the test ever raises a false alarm.", "A", default=0.001
    )
    follow: bool = switch("--follow -f", "Follow growing and new files until interrupted.")
    every: int = declare(
        "--every",
        "Report after every N events; 0: at the end, and with --follow at every change.",
        "N",
        default=0,
        min=0,
    )
    stop: bool = switch("--stop", "Stop at the first alarm.")
    checkpoint: Path | None = declare(
        "--checkpoint", "Save the state of the test here after every report, and resume from it.", "FILE"
    )
    result: Path | None = declare(
        "--result", "Also compare returns with the guaranteed bound of this result.", "DIR"
    )
    policy: str | None = declare(
        "--policy",
        "Test the bound of the policy given by 'learn --policy' instead of the robust policy's.",
        "FILE",
    )
    shield: Path | None = declare(
        "--shield", "Also compare steps and returns with what this shield allows and guarantees.", "FILE"
    )
    observations: options.Observations = None
    strict: bool = switch(
        "--strict", "Report a transition that the model excludes as an error, not as an alarm."
    )
    terminal_reward: options.TerminalReward = None
    reading: LogWords


@takes(WatchRequest, {"data": LOG_WORDS}, {"policy terminal_reward": "result"})
def watch(request: WatchRequest) -> None:
    """Test whether data still fit a model while they arrive, and report what changed.

    The evidence is an e-value: under the model the probability that it ever reaches 1/alpha is at most alpha,
    for all parameters and all policies that collect the data, at any number of interim analyses. It tests
    single distributions, tied choices, changed parameters, and transitions that the model excludes. The first
    rows are tested as in `learn`, for dependence beyond state and action.

    With --result the returns of episodes under the policy are compared with the guaranteed bound; with
    --shield those of agents under a shield, whose steps have prices. Model and returns have half of alpha
    each.

    Exit code 0: the test is valid and raised no alarm, 1: an alarm, or nothing to test, 2: wrong input.

    Example: tightrope watch model.prism --data runs/ --follow --every 10000 --checkpoint watch.npz
    """
    refuse_combinations(request)
    log_request = late.sources.LogRequest.of(request.reading, request.data)
    places, options = log_request.places, log_request.options
    options.check()
    if options.recent is not None or options.place.kind != LOCAL:
        word = "engine" if options.recent is None else "since` and `window"
        raise InputError(f"`{word}`: watch processes all events in order on this machine")
    loaded, pomdp, _ = late.sources.seen_through(
        late.sources.Question.of(request, []).load(observed=True), request.observations
    )
    model = loaded.model
    if not isinstance(model, tr.ParametricMDP):
        raise InputError(
            "watch needs a model with parameters",
            hint="declare an unknown probability as an undefined constant: const double p;",
        )
    promised, returns = None, None
    if request.shield is not None:
        promised, returns = read_shield(request, loaded)
    elif request.result is not None:
        promised = read_promise(request, request.result, loaded, pomdp)
        returns = late.promise.PromiseWatch(model.structure, promised.promise, 0.5 * request.alpha)
    monitor = tr.Monitor(
        model, alpha=late.examination.SHARES["events"] * request.alpha * (1.0 if promised is None else 0.5)
    )
    log = late.following.Following(places, model.structure, options, request.strict, promised is not None)
    if "-" in places and (len(places) > 1 or request.checkpoint is not None):
        raise InputError("standard input cannot be combined with files or read again")
    if request.checkpoint is not None:
        check_target(request.checkpoint)
    if request.checkpoint is not None and request.checkpoint.exists():
        log.read.update(late.following.load_monitor(request.checkpoint, monitor, returns))
    watching = _Watching(request, monitor, log, promised, returns)
    try:
        with suppress(AlarmRaised):
            watching.run()
    except KeyboardInterrupt:  # ends the watch, and is no failure
        typer.echo("", err=True)
    watching.examine()
    watching.report(final=True)
    watching.keep()
    if watching.alarm:
        raise typer.Exit(ALARM)
    leave(watching.verdict)


def refuse_combinations(request: WatchRequest) -> None:
    """Options that make no sense, alone or together."""
    others = [name for name in ("result", "checkpoint", "observations") if getattr(request, name) is not None]
    refuse_any(
        (
            request.shield is not None and others,
            f"--shield and --{'/'.join(others[:1])} cannot be used together",
        ),
        (
            not 0.0 < request.alpha < 1.0,
            f"`alpha` is {request.alpha:g}, but it is a probability between 0 and 1",
        ),
    )


def describe(monitor: tr.Monitor, log_e: float, alpha: float, first_alarm: int | None) -> str:
    """What the evidence says, in one line."""
    if first_alarm is not None:
        return f"alarm at event {first_alarm:,}: the data do not fit the model"
    if monitor.first_warning is not None:
        return f"warning at event {monitor.first_warning:,}: the parameters seem to have changed"
    if log_e >= 0.5 * math.log(1.0 / alpha):
        return "evidence against the model is growing"
    return "no evidence against the model" if monitor.events else "no events were read"


def returns_facts(watched: PromiseWatch) -> list[tuple[str, str]]:
    """Whether the returns agree with the guaranteed bound."""
    watch, promise = watched.returns, watched.promise
    bound = bounded(promise.bound, promise.least)
    seen = "no episodes yet"
    if watch.episodes:
        seen = f"{number_text(watched.mean or 0.0)} on average in {count(watch.episodes, 'episode')}"
    counted = f"{watched.left:,} left the policy, {watched.cut:,} were cut off"
    word = "agree with the guaranteed bound"
    if watched.first_alarm is not None:
        word = f"contradict the guaranteed bound: alarm at event {watched.first_alarm:,}"
    e_value = f"e-value {power_text(watch.log_capital)}, alarm at {1 / watch.alpha:,.0f}"
    return [("returns", f"{word} ({e_value})"), ("", f"{seen}, guaranteed {bound}; {counted}")]


def shielded_facts(watched: PromiseWatch | None) -> ShieldedFacts | None:
    """What the agents of a log did under a shield."""
    if watched is None or not hasattr(watched, "shield"):
        return None
    names = ("steps", "priced", "spent", "least", "forbidden")
    return ShieldedFacts(*(getattr(watched, name) for name in names))


def shield_facts(watched: PromiseWatch | None) -> list[tuple[str, str]]:
    """The same as a row."""
    if (facts := shielded_facts(watched)) is None:
        return []
    steps = f"{count(facts.steps, 'step')}, {facts.priced:,} with a price, {facts.forbidden:,} not allowed"
    return [("shield", f"{steps}; least slack left {number_text(facts.least_slack)}")]


def anomaly_facts(suspects: list[Anomaly], alarm: bool) -> list[tuple[str, str]]:
    """What speaks most against the model; where there is an alarm, only what does."""
    rows: list[tuple[str, str]] = []
    for one in suspects:
        if alarm and rows and one.log_evidence <= 0.0:
            continue
        text = one.text.removeprefix("the parameters ").replace(" are not those before", "")
        label = "change" if one.kind == "drift" else "anomaly"
        rows.append((label, f"{text}: {one.details} (e-value {power_text(one.log_evidence)})"))
    return rows


ALARM = 1
PAUSE = 0.5
"""Seconds between looks at a log that grows."""

CONTROLLER = "robust-controller.json"
"""The controller that a result is about, in its directory."""

SHOWN = 5
SHOWN_BRIEFLY = 2
BY_ROWS = ("memory", "column", "unit")
"""What the rows of a log show, and events one by one do not."""

FIRST_LOOK = 96
"""Events of a growing log after which its rows are first examined; then when it has grown by a quarter."""


class AlarmRaised(Exception):
    """The first alarm, where the user wants to stop there."""


class _Watching:
    """One run of the command."""

    def __init__(
        self,
        request: WatchRequest,
        monitor: tr.Monitor,
        log: Following,
        promised: Promised | None = None,
        returns: PromiseWatch | None = None,
    ):
        self.request = request
        self.monitor = monitor
        self.log = log
        self.promised = promised
        self.returns = returns
        self.fit: ModelFit | None = None
        """What rows and counts say beside the events, when they were last looked at."""
        self.examine_at = float(FIRST_LOOK)
        self.state = ""
        self.alarmed = self.alarm
        self.due = monitor.events + request.every if request.every else math.inf
        self.begin = time.perf_counter()

    @property
    def alarm(self) -> bool:
        """Whether there is one of the model or of the returns."""
        return self.model_alarm is not None or (self.returns is not None and self.returns.alarm)

    @property
    def model_alarm(self) -> int | None:
        """The event of the first alarm of the model."""
        return _first(self.monitor, self.fit)

    @property
    def first_alarm(self) -> int | None:
        """The event of the first of them."""
        return _first(self.monitor, self.fit, self.returns)

    @property
    def model_alpha(self) -> float:
        """The part of alpha that is for the model."""
        return self.request.alpha * (1.0 if self.returns is None else 0.5)

    @property
    def log_evidence(self) -> float:
        """All evidence against the model, a logarithm."""
        own = self.monitor.log_evidence + math.log(late.examination.SHARES["events"])
        return own if self.fit is None else max(own, self.fit.log_e_value)

    @property
    def is_live(self) -> bool:
        """Whether data come in while this runs: then a new state of the model is said when it comes."""
        return self.request.follow or self.log.is_stream

    @property
    def verdict(self) -> Assessment:
        """That of the test of the model, and of the promise where one is watched."""
        assumed = [self.log.order, self.log.ends]
        if self.log.dropped:
            dropped = ", ".join(f"{times:,} {reason}" for reason, times in self.log.dropped.items())
            words = f"{sum(self.log.dropped.values()):,} rows left out ({dropped})"
            assumed.append(Assumed.violated(late.confidence_budget.COMPLETE, words))
        result = self.monitor.assess(assumed)
        if self.fit is not None and self.fit.alarm and (result.is_proved or self.fit.is_refutation):
            result = Assessment.of(result.assumptions, contradicted=self.fit.misfit)
        if self.returns is None or self.promised is None:
            return result
        if self.promised.nominal:
            promise = Assumed.violated("promise", "the result that states the bound is not proved")
            result = Assessment.worst([result, Assessment.of([promise])])
        if self.returns.alarm and result.is_proved:
            return Assessment.of(result.assumptions, contradicted="the returns contradict the bound")
        return result

    def run(self) -> None:
        if self.log.is_stream:
            while self.log.take_stream(self.take, PAUSE):
                self.examine_live()
            return
        if not self.request.follow:
            self.log.take_all(self.take)
            return
        while True:
            if self.log.take_new(self.take):
                self.examine_live()
                self.keep()
            time.sleep(PAUSE)

    def examine(self) -> None:
        """Weigh rows and counts of what was read, as `learn` does."""
        monitor = self.monitor
        is_settled = monitor.impossible is not None or (self.alarm and (self.is_live or self.request.stop))
        if (
            0
            < monitor.events
            <= (late.following.MOST_KEPT if self.log.is_stream else late.examination.MOST_READ)
            and not is_settled
        ):
            counts = self.log.counts(monitor.model, self.request.follow)
            if counts.steps == monitor.events:
                self.fit = late.examination.weigh_fit(monitor.model, counts, self.model_alpha, monitor)

    def examine_live(self) -> None:
        """The same while data come in, where they have grown enough."""
        if self.monitor.events < self.examine_at:
            return
        self.examine_at = 1.25 * self.monitor.events
        self.examine()
        if self.alarm and not self.alarmed:
            self.alarmed = True
            self.report(with_anomalies=True)
            if self.request.stop:
                raise AlarmRaised

    def take(self, events: LogEvents) -> None:
        """Weigh a chunk; say so where a report is due or an alarm is new."""
        is_new = False
        for part in events.split():
            if isinstance(part, late.fold.Excluded):
                self.monitor.exclude(part.text)
                if self.returns is not None:
                    self.returns.exclude(self.monitor.events)
            else:
                self.monitor.observe(part[0])
                if self.returns is not None:
                    self.returns.observe(*part, self.monitor.events)
            if self.alarm and not self.alarmed:
                self.alarmed = is_new = True
                self.report(with_anomalies=self.is_live)
        if self.alarmed and self.request.stop:
            raise AlarmRaised
        if self.is_live and not self.request.every:
            state = self.words.split(" ", 1)[0]
            if state != self.state and not is_new:
                self.report()
            self.state = state
        if self.monitor.events >= self.due:
            self.due = self.monitor.events + self.request.every
            if not is_new:
                self.report()
            self.keep()

    @property
    def words(self) -> str:
        """What the evidence says now."""
        return describe(self.monitor, self.log_evidence, self.model_alpha, self.model_alarm)

    def keep(self) -> None:
        """Write what is known, between two chunks."""
        if self.request.checkpoint is not None:
            late.following.save_monitor(self.request.checkpoint, self.monitor, self.log.read, self.returns)

    def report(self, final: bool = False, with_anomalies: bool = False) -> None:
        """One line of JSON, or a line for people; in the end, or if wanted, also what fits worst."""
        self.monitor.look()
        monitor, returns = self.monitor, self.returns
        suspects = monitor.explain(SHOWN) if final or monitor.alarm else []
        if self.fit is not None and monitor.impossible is None and (final or self.fit.alarm):
            suspects += [one for one in self.fit.suspects if one.kind in BY_ROWS]
            suspects = sorted(suspects, key=lambda anomaly: -anomaly.log_evidence)[:SHOWN]
        if returns is not None and returns.alarm:
            suspects.append(returns.anomaly())
            suspects.sort(key=lambda anomaly: -anomaly.log_evidence)
        if common.json:
            print_json(self._record(suspects, final))
            return
        if not final and not self.is_live and not self.request.every:
            return
        verdict, rows = self.verdict, [("evidence", self.evidence)]
        first = f"{'NO ALARM' if verdict.is_proved else verdict.word.name}: {self.words}"
        if not final and not with_anomalies:
            typer.echo(f"{first}; {self.evidence}")
            return
        rows += [("reason", f"{doubt}: the rate of false alarms is nominal") for doubt in verdict.doubts]
        rows += [] if returns is None else returns_facts(returns)
        rows += shield_facts(returns)
        anomalies = anomaly_facts(suspects, self.alarm)
        rows += anomalies[:SHOWN_BRIEFLY] if self.alarm else []
        rows += [("next", self.next_command(suspects))] if final and self.alarm and not self.is_live else []
        more = anomalies[SHOWN_BRIEFLY:] if self.alarm else anomalies
        more += [("import", self.log.read_as)] if self.log.read_as else []
        more += [] if self.promised is None else [("bound", self.promised.words)]
        show(first, Content(rows, more))

    @property
    def evidence(self) -> str:
        """The e-value, and the level of an alarm."""
        power, events = power_text(self.log_evidence), count(self.monitor.events, "event")
        return f"e-value {power} after {events} (alarm at {1 / self.model_alpha:,.0f})"

    def next_command(self, suspects: list[Anomaly]) -> str:
        """Learn from what came after a change; look for what else is wrong."""
        request, event = self.request, self.model_alarm
        words = [*late.sources.model_words(request)]
        words += [word for place in request.data for word in ("--data", place)]
        words += late.sources.log_options(request.reading)
        if event is None or not suspects or suspects[0].kind != "drift" or event >= self.monitor.events:
            return command("doctor", request.model, *words)
        question = late.sources.example_property(self.monitor.model)
        since = ("--since", str(event + 1), "--chosen-at", str(event))
        return command("learn", request.model, "--prop", question, *words, *since)

    def _record(self, suspects: list[Anomaly], final: bool) -> WatchRecord:
        monitor = self.monitor
        returns = None
        if self.returns is not None and self.promised is not None:
            returns = ReturnsFacts(**self.returns.facts(), nominal=self.promised.nominal)
        return record_of(
            WatchRecord,
            self,
            self.request,
            monitor,
            self.log,
            e_value=math.inf if self.log_evidence > 700.0 else math.exp(self.log_evidence),
            log_e_value=self.log_evidence,
            suspects=suspects,
            parameters=monitor.parameters() if monitor.events else {},
            returns=returns,
            shield=shielded_facts(self.returns),
            nominal=bool(self.verdict.doubts),
            final=final,
            seconds=round(time.perf_counter() - self.begin, 6),
        )


def _first(*tests: tr.Monitor | ModelFit | PromiseWatch | None) -> int | None:
    """The event of the first alarm of some tests."""
    events = (None if test is None else test.first_alarm for test in tests)
    return min((event for event in events if event is not None), default=None)


@dataclass(frozen=True)
class Promised:
    """A promise, what is said about it, and whether it holds in name only."""

    promise: Promise
    words: str
    nominal: bool


def read_promise(
    request: WatchRequest, directory: Path, loaded: Loaded, pomdp: tr.POMDP | None = None
) -> Promised:
    """The promise that a result makes about its robust policy, or about the policy that it was given."""
    model = loaded.model
    assert isinstance(model, tr.ParametricMDP)
    if (answered := late.answers.answer_file(directory)) is not None:
        require_task(QueryKind.COMPOSED, late.answers.read_answer(answered).question, Task.WATCH)
    result = tr.load_result(directory, model=model)
    document = result.document
    span, name = result.interval, "the robust policy" if pomdp is None else "the controller"
    parsed = late.parser.parse_properties(document.question, "the result's property")
    require_task(late.shape.kind_of(parsed.properties[0].formula, parsed), document.question, Task.WATCH)

    def read(file: Path | str) -> tr.Policy:
        return tr.Policy(model, file) if pomdp is None else late.pomdp.controller_of(pomdp, file).policy

    own = result.file.parent / CONTROLLER
    place = Location(str(result.file))
    if request.policy is None:
        policy = result.policy if pomdp is None else read(own)
    elif pomdp is not None:
        policy = read(request.policy)
        if read(own).digest != policy.digest:
            raise InputError("the result has no guaranteed bound for this controller", place)
    else:
        policy = read(request.policy)
        if result.value is None:
            raise InputError(
                "the result has a guaranteed bound for its own policy only, not for a given one",
                place,
                "leave --policy out, or learn with --policy and the same file",
            )
        span, name = result.value, f"the policy {request.policy}"
        named = document.policy
        if named is not None and Path(named).is_file() and read(named).digest != policy.digest:
            raise InputError(f"the result is about the policy {named}, and this is another", place)
    maximises, problem = document.maximises, result.problem
    bound = span.lower if maximises else span.upper
    if problem.query.options.discount is not None:
        raise InputError("episodes do not show discounted rewards in full", place)
    if request.terminal_reward is not None:
        problem = tr.Problem(model, document.question, terminal_reward=request.terminal_reward)
    objective = problem.objective if pomdp is None else pomdp.paced(problem.objective)
    promise = late.promise.Promise(objective, policy, bound, maximises, name)
    words = (
        f"{result.headline()}; episodes that take another choice or are cut off count as if all had gone "
        "well from there on"
    )
    return Promised(promise, words, not result.verdict.is_proved)


def read_shield(request: WatchRequest, loaded: Loaded) -> tuple[Promised, PromiseWatch]:
    """What a shield promises of every agent, and the watch of it."""
    assert request.shield is not None
    shield = tr.Shield.load(request.shield)
    text = shield.table.facts.question
    own = loaded.benchmark is not None and loaded.benchmark.property_text == text
    question = late.sources.Question.of(request, [] if own else [text])
    query = replace(question, request=replace(request, terminal_reward=None)).queries(loaded)[0]
    if not query.is_plain:
        raise InputError(f"a shield of {text} cannot be watched", hint="watch the model without --shield")
    watch = late.watching.ShieldWatch(tr.Problem(loaded.model, query), shield, 0.5 * request.alpha)
    words = "episodes that leave the shield or are cut off count as if all had gone well from there on"
    return Promised(watch.promise, words, not shield.verdict.is_proved), watch
