"""The pictures of a result as files: for papers (PDF) and for pages (PNG, SVG).

run = load_run("results")
INTERVALS.figure(run).savefig("intervals.pdf")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from tightrope.atomic import atomic_path
from tightrope.errors import InputError
from tightrope.io.output import FIGURE, OutputFile, add_file, check_added, claim_file, figure_metadata
from tightrope.io.results import ResultDocument
from tightrope.report.draw_events import EVENTS
from tightrope.report.draw_fit import EVIDENCE, WORST
from tightrope.report.draw_intervals import INTERVALS, draw_intervals
from tightrope.report.draw_policy import draw_policy
from tightrope.report.draw_regions import regions_figure
from tightrope.report.draw_timings import TIMINGS
from tightrope.report.draw_widths import WIDTHS
from tightrope.report.policy_map import PolicyMap
from tightrope.report.statement import statement
from tightrope.report.style import PAPER, WIDTH, plain
from tightrope.report.write import load_policies, load_run

SUFFIXES = (".pdf", ".png", ".svg")

FILES = {
    "intervals": INTERVALS,
    "widths": WIDTHS,
    "events": EVENTS,
    "fit": EVIDENCE,
    "observed": WORST,
    "timings": TIMINGS,
}
"""The pictures that are written each to a file of its name; regions, policy and overview come on top."""

NAMES = (*FILES, "regions", "policy", "overview")


def policy_figure(
    policies: PolicyMap, x: str | None = None, y: str | None = None, name: str = "robust"
) -> Figure:
    """The policy as a heat map over two state variables (`x`, `y`: their names)."""
    with PAPER.style():
        figure = Figure(figsize=(WIDTH * 0.75, WIDTH * 0.62), layout="constrained")
        draw_policy(policies, figure.subplots(), x, y, name)
    return figure


def overview(run: ResultDocument, policies: PolicyMap | None) -> Figure:
    """One picture of a result: the answer, the intervals of all sets, and the policy."""
    with PAPER.style():
        figure = Figure(figsize=(8.6, 4.1), layout="constrained")
        figure.suptitle(
            plain(f"{statement(run).headline}  ({run.model.title})"), fontsize=11, fontweight="bold"
        )
        if policies is None:
            draw_intervals(run, figure.subplots())
            return figure
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        draw_intervals(run, left)
        left.set_title("value intervals, all sets", fontsize=9)
        draw_policy(policies, right)
        right.set_title(f"robust policy ({run.main.label} sets)", fontsize=9)
    return figure


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
    drawn = {name: picture.figure(run) if picture.applies(run) else None for name, picture in FILES.items()}
    drawn["regions"] = regions_figure(run)
    drawn["policy"] = policy_figure(policies) if policies is not None else None
    drawn["overview"] = overview(run, policies)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error
    written = []
    for name, figure in drawn.items():
        if figure is not None:
            written.append(Path(folder) / f"{name}{suffix}")
            with add_file(written[-1], "report", overwrite=overwrite) as place:
                save_figure(figure, place)
    return written


def check_figures(folder: str | Path, overwrite: bool = False, suffix: str = ".pdf") -> None:
    """Refuse a directory in which a figure's name is taken by a file that is not ours."""
    if Path(folder).is_dir():
        for name in NAMES:
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
    return save_figure(figure, claimed.path)


def save_figure(figure: Figure, target: Path) -> Path:
    """Write a figure whole or not at all, with the mark of ours inside."""
    with PAPER.style(), atomic_path(target) as temporary:
        kind = target.suffix[1:]
        figure.savefig(temporary, format=kind, dpi=150, metadata=figure_metadata(kind))
    return target
