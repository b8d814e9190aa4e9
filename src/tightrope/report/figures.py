"""The figures of a report with matplotlib: for papers (PDF) and for pages (PNG, SVG).

Every function takes a run (`tightrope.report.write.load_run`) and returns a `matplotlib.figure.Figure`;
nothing is shown, and no global state of matplotlib is touched.

    run = load_run("results")
    intervals(run).savefig("intervals.pdf")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon, Rectangle

from tightrope.errors import InputError
from tightrope.formats.atomic import atomic_path
from tightrope.formats.output_directory import added_file, check_added
from tightrope.formats.output_file import OutputFile, claim_file
from tightrope.formats.written_by import FIGURE, figure_metadata
from tightrope.report.before import ranges_before_data
from tightrope.report.figure_style import (
    ACTIONS,
    GREY,
    PHASES,
    REGIONS,
    SETS,
    TRUTH,
    WIDTH,
    legend_below,
    plain_axes,
    styled,
)
from tightrope.report.plot_events import event_rows
from tightrope.report.plot_intervals import value_range
from tightrope.report.plot_regions import panel_range
from tightrope.report.plot_timings import phases_of
from tightrope.report.plot_widths import ranking
from tightrope.report.policy_figure import draw_policy
from tightrope.report.policy_map import PolicyMap
from tightrope.report.reading import Run
from tightrope.report.statement import quantity, statement
from tightrope.report.write import load_policies, load_run

Draw = Callable[[Run], Figure | None]


@styled
def intervals(run: Run) -> Figure:
    """Value intervals of all sets side by side."""
    figure = Figure(figsize=(WIDTH, 0.9 + 0.34 * len(run.outcomes)), layout="constrained")
    draw_intervals(run, figure.subplots())
    return figure


def draw_intervals(run: Run, axes: Axes) -> None:
    low, high = value_range(run)
    axes.set_xlim(low, high)
    for row, outcome in enumerate(run.outcomes):
        colour = SETS.get(outcome.sets, GREY)
        both = outcome.given is not None
        for span, shift, paint in (
            (outcome.robust, -0.17 if both else 0.0, colour),
            (outcome.given, 0.17, "black"),
        ):
            if span is None:
                continue
            left, right = max(span.lower, low), min(span.upper, high)
            axes.barh(row + shift, right - left, 0.3 if both else 0.46, left=left, color=paint)
            for end, beyond, marker in ((low, span.lower < low, "<"), (high, span.upper > high, ">")):
                if beyond:
                    axes.plot(end, row + shift, marker, color=paint, markersize=6, clip_on=False)
        if low <= outcome.optimistic <= high:
            axes.plot(outcome.optimistic, row, "o", mfc="white", mec=TRUTH["optimistic"], ms=5)
    axes.set_yticks(range(len(run.outcomes)), [outcome.label for outcome in run.outcomes])
    axes.invert_yaxis()
    keys: list[Patch | Line2D] = [Patch(color=SETS.get(run.main.sets, GREY), label="robust policy")]
    if any(outcome.given for outcome in run.outcomes):
        keys.append(Patch(color="black", label="given policy"))
    keys.append(Line2D([], [], ls="", marker="o", mfc="white", mec=TRUTH["optimistic"], label="optimistic"))
    if run.true_value is not None:
        axes.axvline(run.true_value.lower, color=TRUTH["truth"], lw=1.2)
        keys.append(Line2D([], [], color=TRUTH["truth"], label="best at the true point"))
    plain_axes(axes, f"value ({quantity(run)})", "")
    legend_below(axes, keys)


@styled
def regions(run: Run) -> Figure | None:
    """Shadows of the regions on every pair of parameters; None where there is no pair."""
    pairs = list(dict.fromkeys(pair for region in run.regions for pair in region.polygons))
    if not pairs:
        return None
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=(2.35 * columns, 2.2 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(pairs) :]:
        axes.set_axis_off()
    for axes, pair in zip(grid, pairs, strict=False):
        for region in run.regions:
            colour = REGIONS.get(region.kind, GREY)
            if pair in region.polygons:
                corners = list(region.polygons[pair])
                axes.add_patch(Polygon(corners, facecolor=colour, alpha=0.18))
                axes.add_patch(Polygon(corners, fill=False, edgecolor=colour, lw=1.1))
            if all(name in region.box for name in pair):
                x, y = (region.box[name] for name in pair)
                at = (x.lower, y.lower)
                axes.add_patch(Rectangle(at, x.width, y.width, fill=False, ec=colour, lw=0.8, ls="--"))
        if all(name in run.truth for name in pair):
            axes.plot(run.truth[pair[0]], run.truth[pair[1]], "o", color=TRUTH["truth"], ms=4)
        axes.set_xlim(*panel_range(run, pair, 0))
        axes.set_ylim(*panel_range(run, pair, 1))
        plain_axes(axes, pair[0], pair[1])
    keys: list[Patch | Line2D] = [
        Patch(facecolor=REGIONS.get(r.kind, GREY), alpha=0.4, label=r.kind) for r in run.regions if r.polygons
    ]
    keys.append(Line2D([], [], color=GREY, ls="--", label="its box"))
    if run.truth:
        keys.append(Line2D([], [], ls="", marker="o", color=TRUTH["truth"], label="true point"))
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), frameon=False)
    return figure


@styled
def widths(run: Run) -> Figure | None:
    """Widths per expression before the data and after; None where nothing is unknown."""
    shown = ranking(run)
    if not shown:
        return None
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    axes = figure.subplots()
    place = range(1, len(shown) + 1)
    before = [span.width for span in ranges_before_data(run, shown)]
    axes.plot(place, before, "_", color=GREY, ms=5, label="before the data")
    for outcome in run.outcomes:
        after = [outcome.bounds[i].width for i in shown]
        axes.plot(place, after, ".", color=SETS.get(outcome.sets, GREY), ms=3.5, label=outcome.label)
    axes.set_ylim(bottom=0.0)
    plain_axes(axes, "expression (rank by final width)", "width (probability)")
    legend_below(axes, None)
    return figure


@styled
def events(run: Run) -> Figure | None:
    """Which data bind: events with their intervals; None where a run kept no events."""
    rows = event_rows(run)
    if not rows:
        return None
    figure = Figure(figsize=(WIDTH, 0.9 + 0.2 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for at, row in enumerate(rows):
        span = row.event.interval
        colour = TRUTH["truth"] if row.side else "0.78"
        axes.barh(at, span.width, 0.6, left=span.lower, color=colour)
        if row.final is not None:
            axes.barh(at, row.final.width, 0.22, left=row.final.lower, color=SETS["rectangular"])
        if row.event.trials:
            axes.plot(row.event.successes / row.event.trials, at, ".", color="black", ms=4)
    names = [row.event.text if len(row.event.text) < 34 else row.event.text[:33] + "…" for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=6)
    axes.invert_yaxis()
    plain_axes(axes, "probability of the event", "")
    keys: list[Patch | Line2D] = [
        Patch(color=TRUTH["truth"], label="event that binds"),
        Patch(color="0.78", label="other event"),
        Patch(color=SETS["rectangular"], label=f"bounds in {run.main.label} sets"),
        Line2D([], [], ls="", marker=".", color="black", label="frequency"),
    ]
    legend_below(axes, keys, most=2)
    return figure


@styled
def timings(run: Run) -> Figure:
    """Seconds a phase for every kind of sets."""
    figure = Figure(figsize=(WIDTH, 0.9 + 0.3 * len(run.outcomes)), layout="constrained")
    axes = figure.subplots()
    done = [0.0] * len(run.outcomes)
    for i, phase in enumerate(phases_of(run)):
        seconds = [outcome.seconds.get(phase, 0.0) for outcome in run.outcomes]
        axes.barh(range(len(done)), seconds, 0.6, left=done, color=PHASES[i % len(PHASES)], label=phase)
        done = [a + b for a, b in zip(done, seconds, strict=True)]
    axes.set_yticks(range(len(done)), [outcome.label for outcome in run.outcomes])
    axes.invert_yaxis()
    plain_axes(axes, "time (seconds)", "")
    legend_below(axes, None)
    return figure


@styled
def policy(policies: PolicyMap, x: str | None = None, y: str | None = None, name: str = "robust") -> Figure:
    """The policy as a heat map over two state variables (`x`, `y`: their names)."""
    figure = Figure(figsize=(WIDTH * 0.75, WIDTH * 0.62), layout="constrained")
    draw_policy(policies, figure.subplots(), ACTIONS, x, y, name)
    return figure


@styled
def overview(run: Run, policies: PolicyMap | None) -> Figure:
    """One picture of a result: the answer, the intervals of all sets, and the policy."""
    figure = Figure(figsize=(8.6, 4.1), layout="constrained")
    figure.suptitle(f"{statement(run).headline}  ({run.model})", fontsize=11, fontweight="bold")
    if policies is None:
        draw_intervals(run, figure.subplots())
        return figure
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
    draw_intervals(run, left)
    left.set_title("value intervals, all sets", fontsize=9)
    draw_policy(policies, right, ACTIONS)
    right.set_title(f"robust policy ({run.main.label} sets)", fontsize=9)
    return figure


SUFFIXES = (".pdf", ".png", ".svg")

FIGURES: dict[str, Draw] = {
    "intervals": intervals,
    "regions": regions,
    "widths": widths,
    "events": events,
    "timings": timings,
}


def write_figures(
    result: str | Path,
    folder: str | Path,
    *,
    beside: Sequence[str | Path] = (),
    suffix: str = ".pdf",
    overwrite: bool = False,
) -> list[Path]:
    """Write every figure that the result has something to show in; their paths."""
    check_figures(folder, overwrite, suffix)
    run = load_run(result, beside)
    policies = load_policies(run)
    drawn = {name: draw(run) for name, draw in FIGURES.items()}
    drawn["policy"] = policy(policies) if policies is not None else None
    drawn["overview"] = overview(run, policies)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error
    written = []
    for name, figure in drawn.items():
        if figure is not None:
            written.append(Path(folder) / f"{name}{suffix}")
            with added_file(written[-1], "report", overwrite=overwrite) as place:
                _save(figure, place)
    return written


def check_figures(folder: str | Path, overwrite: bool = False, suffix: str = ".pdf") -> None:
    """Refuse a directory in which a figure's name is taken by a file that is not ours."""
    if Path(folder).is_dir():
        for name in (*FIGURES, "policy", "overview"):
            check_added(Path(folder) / f"{name}{suffix}", overwrite)


def check_picture(target: str | Path, overwrite: bool = False) -> OutputFile:
    """Refuse a file that no picture can or must be written to."""
    if Path(target).suffix not in SUFFIXES:
        raise InputError(f"cannot draw {target}", hint="end its name in .pdf, .png or .svg")
    return claim_file(target, FIGURE, overwrite)


def write_picture(
    result: str | Path, target: str | Path, *, beside: Sequence[str | Path] = (), overwrite: bool = False
) -> Path:
    """Write the overview as .png, .pdf or .svg."""
    claimed = check_picture(target, overwrite)
    run = load_run(result, beside)
    figure = overview(run, load_policies(run))
    claimed.check()
    return _save(figure, claimed.path)


@styled
def _save(figure: Figure, target: Path) -> Path:
    with atomic_path(target) as temporary:
        kind = target.suffix[1:]
        figure.savefig(temporary, format=kind, dpi=150, metadata=figure_metadata(kind))
    return target
