"""`tightrope plan MODEL --data F --gap E`: how much more data, collected how."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

import tightrope as tr
from tightrope.ambiguity.sets import SetsKind
from tightrope.cli import late, options
from tightrope.cli import output as screen
from tightrope.cli.options import declare, switch, takes
from tightrope.errors import CannotCertify, InputError
from tightrope.io.answers import LABEL, Aim, Target, round_forecast
from tightrope.io.coding import Real, record_of
from tightrope.io.log_words import LOG_WORDS
from tightrope.numerics.text import number_text, text_above
from tightrope.statistics.estimates import IntervalMethod, check_delta
from tightrope.verdict import Word

if TYPE_CHECKING:  # late: `--help` needs nothing of it
    from tightrope.cli.sources import Study
    from tightrope.design.plan import Plan, Strategy


@dataclass(frozen=True, kw_only=True)
class PlanRequest(options.StudyOptions):
    """The options of the command."""

    data: options.Data = None
    observations: options.Observations = None
    gap: str | None = declare(
        "--gap",
        "Target: this width of the robust policy's interval, absolute or as a share of its value.",
        "E|E%",
    )
    optimality: float | None = declare(
        "--optimality", "Target: this distance between guarantee and optimistic value.", "E"
    )
    above: float | None = declare("--above", "Target: a guarantee of at least T (for costs: at most T).", "T")
    budget: int | None = declare("--budget", "Forecast the gap after N more episodes.", "N")
    improve: str | None = declare(
        "--improve",
        "Target: a proved improvement over this policy, with data collected as before.",
        "FILE|uniform|do-nothing",
    )
    sets: SetsKind | None = declare("--sets", "What nature may pick from.")
    interval: IntervalMethod | None = declare("--interval", "The intervals of events.")
    policy: str | None = declare(
        "--policy", "Plan for the interval of this policy instead of the robust one.", "FILE"
    )
    within_cap: int | None = declare(
        "--within-cap",
        "Longest episode in steps (benchmarks have a default); required if episodes need not end.",
        "N",
        min=1,
    )
    cost: options.Cost = None
    avoid: options.Avoid = None
    at_most: options.AtMost = None
    generative: bool = switch(
        "--generative", "Plan numbers of draws per choice, for a simulator that can sample any choice."
    )
    refuted: bool = switch("--refuted", "Plan even if the data refute the model; the exit code stays 1.")
    assume_support: options.AssumeSupport = None
    coupled_gap: options.CoupledGap = None
    device: options.Device = options.DeviceName.CPU
    threads: options.Threads = None
    output: Path | None = declare(
        "-o --output", "Write the plan, the exploration policies and the figure.", "DIR"
    )

    @property
    def words(self) -> dict[str, Any]:
        """What goes to `tightrope.plan` as it is, where it is given."""
        names = ["optimality", "above", "budget", "cost", "avoid", "at_most", "generative", "refuted"]
        given = {name: getattr(self, name) for name in names}
        return options.learn_words(self) | {
            name: value for name, value in given.items() if value is not None and value is not False
        }


@takes(PlanRequest, {"data": LOG_WORDS, "check": options.SOLVING})
def plan(request: PlanRequest) -> None:
    """Forecast how many more episodes a target gap needs, and design their exploration.

    The output shows the gap now, the episodes needed with the designed, robust, optimistic and uniform
    policy, and a randomised policy for the next stage. --verbose shows the sources of the gap. A forecast is
    not a guarantee: run 'tightrope learn' on the new data. With --improve the target is a proved improvement
    over the given policy. Exit code 1: the target cannot be reached.

    Example: tightrope plan 'bench:rover(10,10)' --data pilot.parquet --gap 0.015 -o plan
    """
    options.require_device(request.device)
    begin = time.perf_counter()
    check_delta(request.delta)
    options.require_coupled(request.coupled_gap, request.sets is SetsKind.COUPLED)
    if request.improve is not None:
        return _plan_improvement(request)
    if request.observations is not None:
        options.refuse_log_options(request.reading)
    Target.of(request.gap, request.optimality, request.above, request.budget)
    claimed = None if request.output is None else late.plan.claim_plan(request.output)
    study = late.sources.Study(request, any_kind=True, observed=True)
    reading, outcome = study.reading, _collection(request, study)
    document = late.plan.plan_document(outcome, request.model)
    document.data = study.about
    document.seconds = round(time.perf_counter() - begin, 6)
    document.output = UNSET if request.output is None else str(request.output)
    table = screen.Table(_columns(outcome), [_row(outcome, one) for one in outcome.strategies])
    more = [*_details(outcome), ("time", f"{document.seconds:.2g} s")]
    shown = screen.Content(_first(outcome, request.output), more, table if outcome.strategies else None)
    late.sources.answer_from(reading, outcome, document, lambda: shown)
    if request.output is not None:
        late.plan.write_plan(request.output, outcome, document, claimed)
    if not outcome.status.is_answered:
        raise CannotCertify(_why_not(outcome))
    screen.leave(outcome.verdict)


def _collection(request: PlanRequest, study: Study) -> Plan:
    subject = study.subject
    given, pomdp, bench = request.policy, subject.pomdp, subject.loaded.benchmark
    policy: Any = None
    if given is not None:
        policy = tr.Policy(subject.model, given) if pomdp is None else late.pomdp.controller_of(pomdp, given)
    try:
        with screen.phase_progress() as progress:
            return tr.plan(
                subject.problem,
                study.reading.counts,
                delta=request.delta,
                gap=request.gap,
                policy=policy,
                progress=progress,
                within_cap=request.within_cap or (None if bench is None else bench.episode_cap),
                **request.words,
            )
    except late.planner.NothingToPlan as error:
        screen.answer_refuted(error, error.verdict, {**error.verdict.facts, "strategies": []})


class ImprovementPlanAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`plan --improve`: what is proved now, what is possible at the estimate, and more episodes until
    anything is proved, and until a share of what is possible; a forecast."""

    verdict: Word
    improvement: Real
    possible: Real
    episodes_so_far: int
    episodes: Real
    share: float
    share_episodes: Real
    curve: list[tuple[int, float]]
    label: str
    delta: float


def _plan_improvement(request: PlanRequest) -> None:
    others = "gap optimality above budget policy within_cap cost avoid at_most generative refuted output "
    others += "observations"
    for name in others.split():
        if getattr(request, name):
            raise InputError(
                f"`{name}` cannot be used with `improve`, which plans more data of the same kind"
            )
    study = late.sources.Study(request)
    subject, reading = study.subject, study.reading
    chosen = ("region", "assume_support", "coupled_gap", "threads")
    words = {name: value for name, value in request.words.items() if name in chosen}
    outcome = late.more_of_same.plan_improvement(
        subject.problem,
        reading.counts,
        request.improve or late.differences.UNIFORM,
        delta=request.delta,
        **words,
    )
    label = LABEL.replace("`learn`", "`improve`")
    record = record_of(
        ImprovementPlanAnswer,
        outcome,
        verdict=outcome.now.verdict.word,
        improvement=outcome.now.improvement,
        episodes_so_far=outcome.episodes,
        episodes=outcome.proved,
        share_episodes=outcome.most,
        label=label,
        delta=request.delta,
    )

    rows = [
        ("property", subject.query.text),
        ("possible", f"improvement of about {number_text(outcome.possible)}, at the estimate"),
        ("forecast", f"about {round_forecast(outcome.proved)} more episodes until any is proved"),
        ("", f"about {round_forecast(outcome.most)} until {outcome.share:.0%} of it is proved"),
    ]
    late.sources.answer_from(reading, outcome.now, record, lambda: screen.Content(rows, [("note", label)]))
    if not math.isfinite(outcome.proved):
        raise CannotCertify("no number of episodes that was tried proves an improvement")
    screen.leave(outcome.now.verdict)


MOST_ROWS = 8
"""Signatures that are listed, those with most draws."""
MOST_TEXT = 40
"""Characters of an expression that are shown."""


def _first(outcome: Plan, written: Path | None) -> list[tuple[str, str]]:
    """What is asked for, what to collect next, and what is in the way."""
    target = outcome.target.text
    if outcome.target.relative and outcome.gap_asked is not None:
        target += f": {number_text(outcome.gap_asked)}, at the estimated value {number_text(outcome.value)}"
    rows = [("property", outcome.problem.text), ("target", f"{target}; value now {outcome.interval}")]
    if outcome.status is not late.plan.PlanStatus.PLANNED:
        rows.append(("status", outcome.status.value))
    if outcome.unidentifiable:
        rows.append(("no data on", "; ".join(outcome.unidentifiable)))
    if outcome.draws is not None:
        file = "see --verbose" if written is None else f"{written}/{late.plan.DRAWS_FILE}"
        rows.append(("collect", f"{outcome.next_episodes:,} draws ({file}), then plan again"))
    if (made := outcome.exploration) is not None:
        file = "the designed policy (-o DIR)" if written is None else f"{written}/{late.plan.POLICY_FILE}"
        rows.append(("collect", f"{outcome.next_episodes:,} episodes with {file}, then plan again"))
        if made.certified is not None:
            rows.append(("to avoid", f"in at most {text_above(made.certified)} of its episodes, certified"))
    if written is not None:
        rows.append(("written", str(written)))
    return rows


def _details(outcome: Plan) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    if outcome.hangs_on:
        shares = [f"{one.text} ({one.share:.0%})" for one in outcome.hangs_on]
        facts.append(("gap due to", "; ".join(shares)))
    if outcome.draws is not None:
        for row in outcome.draws.table[:MOST_ROWS]:
            shown = row.signature[0][:MOST_TEXT] + "…" * (len(row.signature[0]) > MOST_TEXT)
            choices = f"{row.draws:,} of the {row.choices:,} choices"
            facts.append(("draw", f"{choices} with {shown}, such as {row.example}"))
    if (made := outcome.exploration) is not None:
        several = "1 policy" if len(made.shares) == 1 else f"{len(made.shares)} policies, mixed into one"
        near = f"within {made.optimality:.1%} of the best exploration at the estimate ({made.solves} solves)"
        if not math.isfinite(made.optimality):
            near = "with the safest policy mixed in, since the best exploration is not certified"
        facts.append(("design", f"{several}; {near}"))
    facts += [("note", note) for note in outcome.notes]
    return [*facts, ("forecast", LABEL.removeprefix("a forecast, "))]


def _columns(outcome: Plan) -> tuple[str, ...]:
    what = "gap to expect" if outcome.target.aim is Aim.BUDGET else f"more {outcome.unit}"
    first = ("collect with", what, "likely range")
    if outcome.unit == "draws":
        return first
    return (*first, "steps", *(["cost"] if _has_prices(outcome) else []))


def _has_prices(outcome: Plan) -> bool:
    return any(one.cost != 1.0 for one in outcome.strategies)


def _row(outcome: Plan, one: Strategy) -> tuple[str, ...]:
    name = f"{one.name} policy" if one.name != "uniform" else one.name
    if outcome.unit == "draws":
        name, last = f"{one.name} draws", []
    else:
        last = [round_forecast(one.total_steps) if math.isfinite(one.total_steps) else "–"]
        if _has_prices(outcome):
            last.append(round_forecast(one.total_cost) if math.isfinite(one.total_cost) else "–")
    if outcome.target.aim is Aim.BUDGET:
        gap = one.curve(outcome.target.amount)
        return name, number_text(gap.expected), f"{number_text(gap.low)} to {number_text(gap.high)}", *last
    if not math.isfinite(one.low):
        return name, "beyond 10⁹", "", *last
    high = round_forecast(one.high) if math.isfinite(one.high) else "10⁹ and more"
    return name, round_forecast(one.episodes), f"{round_forecast(one.low)} to {high}", *last


def _why_not(outcome: Plan) -> str:
    if outcome.unidentifiable:
        return (
            f"{outcome.status.value}: under every policy the data tell nothing about "
            f"{'; '.join(outcome.unidentifiable)}, which the gap depends on"
        )
    if outcome.status is late.plan.PlanStatus.BEYOND:
        return f"{outcome.target.text} is {outcome.status.value}, even with designed exploration"
    return f"{outcome.target.text}: {outcome.status.value}; {'; '.join(outcome.notes)}"
