"""`tightrope learn --unit COLUMN`: what holds for most units, for the next one and for the average one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tightrope.cli import options as cli_options
from tightrope.cli import output as screen
from tightrope.cli import sources
from tightrope.fleet import Fleet, learn_fleet
from tightrope.io.coding import record_of
from tightrope.io.results import Interval, Judged
from tightrope.model.policy import Policy
from tightrope.numerics.text import interval_text

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
    study = sources.Study(request, request.log, temporal=True)
    subject, reading = study.subject, study.reading
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


def _document(fleet: Fleet) -> FleetDocument:
    units = [UnitFacts(unit=one.name, episodes=one.episodes, bounds=one.interval) for one in fleet.units]
    return record_of(FleetDocument, fleet, unit=fleet.column, units=units)


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
