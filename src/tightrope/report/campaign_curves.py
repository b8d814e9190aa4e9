"""The figure of a campaign of learning curves: one panel an instance, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tightrope.report.learning_curve import Panel, RunCurve, Series, curves, save
from tightrope.report.question_words import quantity_of
from tightrope.studies.online_records import OnlineRecord
from tightrope.studies.online_tables import Group, groups
from tightrope.studies.suite import parse_bench


def write_campaign_curves(records: Sequence[OnlineRecord], stem: Path) -> list[Path]:
    """Draw all instances and write the figure in all formats."""
    return save(curves(panels_of(records)), stem)


def panels_of(records: Sequence[OnlineRecord]) -> list[Panel]:
    """A panel per instance."""
    return [_panel(group) for group in groups(records)]


def _panel(group: Group) -> Panel:
    series = [Series(method, [_curve(record) for record in runs]) for method, runs in group.by_method.items()]
    value = parse_bench(group.instance).property_text
    return Panel(group.instance, quantity_of(value, "min=" not in value), series, group.sample.optimum)


def _curve(record: OnlineRecord) -> RunCurve:
    columns = record.columns
    return RunCurve(columns["episode"], columns["guarantee"], columns["performance"], columns["elapsed"])
