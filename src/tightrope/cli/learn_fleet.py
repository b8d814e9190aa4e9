"""`tightrope learn --unit COLUMN`: what holds for most units, for the next one and for the average one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tightrope.cli import options as cli_options
from tightrope.cli import output as screen
from tightrope.cli import sources
from tightrope.errors import InputError
from tightrope.fleet import Fleet, FleetAnswer, learn_fleet
from tightrope.io.results import Interval, Judged
from tightrope.model.policy import Policy
from tightrope.numerics.text import interval_text
from tightrope.problem import Problem

if TYPE_CHECKING:
    from tightrope.cli.learn import LearnRequest

NOT_WITH_UNITS = "observations certificate output export breakdown coupled_gap misfit at"
SHARE = 0.9
"""Of all units, where the user says nothing."""

WORST = 3
"""Units that are printed."""


class UnitFacts(msgspec.Struct, kw_only=True):
    """One unit: each end fails with the probability `miss` of the answer at most."""

    unit: str
    episodes: int
    bounds: Interval


class FleetFacts(Judged, kw_only=True):
    """One of the three answers; no bounds where the data allow none."""

    text: str
    bounds: Interval | None


class FleetDocument(Judged, kw_only=True):
    """`learn --unit`."""

    unit: str
    delta: float
    share: float
    most: FleetFacts
    next_unit: FleetFacts
    average: FleetFacts
    units: list[UnitFacts]
    chosen_on: list[str]


def learn_units(request: LearnRequest) -> None:
    """Learn about the units of a log, and print the three answers."""
    assert request.unit is not None
    cli_options.refuse_options(request, NOT_WITH_UNITS, "it cannot be used with --unit")
    if request.compares:
        cli_options.refuse("--sets all", "it cannot be used with --unit")
    column, colon, text = request.unit.rpartition(":")
    name, share = (column, cli_options.parse_number(text, "the share of --unit")) if colon else (text, SHARE)
    tables = request.log.tables()
    subject = sources.load_subject(request, True)
    if not isinstance(subject.problem, Problem) or subject.pomdp is not None:
        raise InputError("--unit is not supported for partially observable models", hint="leave --unit out")
    reading = request.log.read(subject.model, tables)
    policy = None if request.policy is None else Policy(subject.model, request.policy)
    words = request.learn_options().words
    with screen.phase_progress() as progress:
        progress(f"units by '{name}'")
        fleet = learn_fleet(
            subject.problem, reading, name, delta=request.delta, share=share, policy=policy, **words
        )
    screen.answer(
        fleet.verdict,
        f"{fleet.most.verdict.word.name}: {fleet.most.text}",
        _document(fleet),
        lambda: _show(fleet, sources.reading_facts(reading)[0]),
    )
    screen.leave(fleet.verdict)


def _facts(answer: FleetAnswer) -> FleetFacts:
    verdict = answer.verdict
    return FleetFacts(
        verdict=verdict.word,
        why=verdict.why,
        assumptions=list(verdict.assumptions),
        text=answer.text,
        bounds=answer.bounds,
    )


def _document(fleet: Fleet) -> FleetDocument:
    verdict = fleet.verdict
    return FleetDocument(
        verdict=verdict.word,
        why=verdict.why,
        assumptions=list(verdict.assumptions),
        unit=fleet.column,
        delta=fleet.delta,
        share=fleet.share,
        most=_facts(fleet.most),
        next_unit=_facts(fleet.next_unit),
        average=_facts(fleet.average),
        units=[UnitFacts(unit=one.name, episodes=one.episodes, bounds=one.interval) for one in fleet.units],
        chosen_on=list(fleet.chosen_on),
    )


def _show(fleet: Fleet, data: screen.Rows) -> screen.Content:
    others = (fleet.next_unit, fleet.average)
    rows = [(one.kind, f"{one.verdict.word.name}: {one.text}") for one in others]
    episodes = sum(one.episodes for one in fleet.units)
    chosen = f"; the policy was chosen on {len(fleet.chosen_on):,} others" if fleet.chosen_on else ""
    rows.append(("units", f"{len(fleet.units):,} by '{fleet.column}', {episodes:,} episodes{chosen}"))
    ordered = sorted(fleet.units, key=lambda one: (one.interval.lower + one.interval.upper, one.name))
    worst = ordered if fleet.maximises else ordered[::-1]
    shown = (f"{one.name} {interval_text(one.interval.lower, one.interval.upper)}" for one in worst[:WORST])
    rows.append(("worst", ", ".join(shown)))
    rows += screen.assumed_facts(fleet.verdict)
    table = screen.Table(
        ("unit", "episodes", "bounds"),
        [
            (one.name, f"{one.episodes:,}", interval_text(one.interval.lower, one.interval.upper))
            for one in worst
        ],
    )
    return screen.Content([*rows, *data], tables=[table])
