"""The figure of a campaign's learning curves: one panel per instance, drawn from records."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from matplotlib.figure import Figure

from tightrope.atomic import path_of
from tightrope.benchmarks.suite import parse_bench
from tightrope.report.curves import Panel, RunCurve, Series, curves, draw_curves, save
from tightrope.report.statement import quantity_of
from tightrope.report.style import PAPER, WIDTH
from tightrope_campaigns.records import ONLINE_FILE, OnlineRecord, read_online
from tightrope_campaigns.results_page import Group, groups


def plot_campaign(path: str | PathLike[str]) -> Figure:
    """The learning curves of a campaign (`tightrope bench --online -o DIR`): one panel per instance.

    >>> import tightrope as tr
    >>> from tightrope_campaigns.curves import plot_campaign
    >>> try:
    ...     plot_campaign("no-such-campaign")
    ... except tr.InputError as error:
    ...     print(error)
    there are no records: no file no-such-campaign
    """
    from matplotlib import pyplot

    place = path_of(path)
    panels = panels_of(read_online(place / ONLINE_FILE if place.is_dir() else place))
    columns = min(len(panels), 2)
    size = (WIDTH if columns == 1 else 1.25 * WIDTH, 3.5 * -(-len(panels) // columns) + 0.5)
    with PAPER.style():
        figure: Figure = pyplot.figure(figsize=size, layout="constrained")
        draw_curves(panels, figure)
    return figure


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
