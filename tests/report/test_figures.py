"""The figures with matplotlib: they show the numbers of the result, and are written for papers.

Also of `report/draw_fit.py`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest
from fontTools import subset
from matplotlib.figure import Figure

from report_cases import copy_stored
from tightrope.errors import InputError
from tightrope.report import write as figures
from tightrope.report.draw_intervals import INTERVALS
from tightrope.report.draw_regions import regions_figure
from tightrope.report.write import load_policies, load_run


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_stored(tmp_path_factory.mktemp("report") / "aircraft")


def test_every_figure_has_labels_and_a_legend(result: Path) -> None:
    run = load_run(result)
    before = dict(matplotlib.rcParams)
    drawn = {name: picture.figure(run) for name, picture in figures.FILES.items() if picture.applies(run)}
    assert set(figures.FILES) - set(drawn) == {"fit", "observed"}  # an earlier version did not test the model
    for name, figure in {**drawn, "regions": regions_figure(run)}.items():
        assert isinstance(figure, Figure), name
        assert figure.legends or figure.axes[0].get_legend() is not None, name
        for axes in figure.axes:
            assert axes.get_xlabel(), name
            assert axes.patches or axes.lines, name
    assert dict(matplotlib.rcParams) == before


def test_bars_are_the_intervals(result: Path) -> None:
    run = load_run(result)
    (axes,) = INTERVALS.figure(run).axes
    bars = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    spans = [span for _, o in run.shown for span in (o.robust_policy, o.value) if span is not None]
    wanted = sorted((span.lower, span.upper) for span in spans)
    assert bars == [pytest.approx(pair) for pair in wanted]
    assert [text.get_text() for text in axes.get_yticklabels()] == [label for label, _ in run.shown]


def test_the_policy_over_named_variables(result: Path) -> None:
    policies = load_policies(load_run(result))
    assert policies is not None
    (axes,) = figures.policy_figure(policies, "other_y", "y", "optimistic").axes
    assert axes.get_xlabel() == "other_y (state variable)"
    assert axes.collections[0].get_array().shape == (5, 5, 4)
    with pytest.raises(InputError, match="no state variable 'z'"):
        figures.policy_figure(policies, "z", "y")
    with pytest.raises(InputError, match="there is no policy 'best'"):
        figures.policy_figure(policies, name="best")


@pytest.mark.long
def test_files_for_papers_are_the_same_each_time(
    result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = [*subset.Options._drop_tables_default, "GDEF", "GPOS", "GSUB"]  # read at length, for nothing
    monkeypatch.setattr(subset.Options, "_drop_tables_default", left_out)
    figures.write_figures(result, tmp_path / "f")
    picture = figures.write_picture(result, tmp_path / "r.png")
    names = sorted(file.name for file in (tmp_path / "f").glob("*.pdf"))
    assert names == [f"{n}.pdf" for n in ("events", "intervals", "overview", "policy", "regions", "widths")]
    assert all((tmp_path / "f" / name).read_bytes().startswith(b"%PDF") for name in names)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 200_000
    again = figures.write_picture(result, tmp_path / "again.pdf")
    assert again.read_bytes() == (tmp_path / "f" / "overview.pdf").read_bytes()
    with pytest.raises(InputError, match=r"end its name in \.pdf"):
        figures.write_picture(result, tmp_path / "r.gif")
