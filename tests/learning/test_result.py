"""Results draw themselves, are saved and read back, and are certified: the methods of results.

Also of `io/stored_arrays.py`, `saved.py`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import tightrope as tr
from cases.coins import counted, two_coins
from report_cases import STORED
from tightrope.cli.app import run
from tightrope.io.coding import to_text
from tightrope.report.plotting import small_figure

PROPERTY = 'Pmax=? [ F "won" ]'


@pytest.fixture(scope="module")
def learned() -> tr.LearningResult:
    model = two_coins()
    data = counted(model, (800, 200), (400, 600))
    return tr.learn(tr.Problem(model, PROPERTY), data, delta=0.001, sets="expression", region="polytope")


@pytest.fixture(scope="module")
def saved(learned: tr.LearningResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned.save(tmp_path_factory.mktemp("saved") / "run")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_a_result_read_back_says_the_same(learned: tr.LearningResult, saved: Path) -> None:
    back = tr.load_result(saved, model=learned.model)
    assert back == learned and learned == back
    assert back == tr.load_result(saved / "result.json")
    assert hash(back) == hash(tr.load_result(saved))
    assert (back.guarantee, back.interval) == (learned.guarantee, learned.interval)
    assert back.parameters == learned.parameters
    assert (back.kind, back.status, back.verdict) == (learned.kind, learned.status, learned.verdict)
    assert back.optimistic_value == learned.optimistic_value
    assert list(back.ledger.lines) == list(learned.ledger.lines)
    assert back.policy.digest == learned.policy.digest
    assert back.to_json() == json.loads(to_text(learned.to_json()))
    assert len(repr(back).splitlines()) <= 10 and "confidence 0.999" in repr(back)
    other = tr.learn(learned.problem, learned.counts, delta=0.01, sets="expression", region="polytope")
    assert back != other and back != 7


def test_policy_files_outside_of_the_folder_are_refused(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(saved, folder)
    text = (folder / "result.json").read_text()
    (folder / "robust-policy.json").rename(tmp_path / "robust-policy.json")
    (folder / "result.json").write_text(text.replace('"robust-policy.json"', '"../robust-policy.json"'))
    result = tr.load_result(folder)
    with pytest.raises(tr.InputError, match="lies outside of the folder of its result"):
        _ = result.policy
    assert run(["report", str(folder)]) == 2


def test_what_is_saved_is_what_the_command_writes(saved: Path) -> None:
    names = sorted(path.name for path in saved.iterdir())
    assert names == [
        "optimistic-policy.json",
        "result.json",
        "robust-policy.json",
        "tightrope-manifest.json",
    ]


def test_a_model_that_is_not_the_one_is_refused(learned: tr.LearningResult, saved: Path) -> None:
    with pytest.raises(tr.InputError, match=r"cannot be loaded from 'a model of \d+ states'"):
        _ = tr.load_result(saved).policy
    other = tr.load("bench:betting(5)")
    with pytest.raises(tr.InputError, match="this result is about another model"):
        tr.load_result(saved, model=other)


def test_files_of_this_version_load_and_others_are_refused(tmp_path: Path) -> None:
    found = tr.load_result(STORED)
    assert found.guarantee == pytest.approx(0.2702208, abs=1e-6)
    assert [each.kind.value for each in found.all][-2:] == ["rectangular", "coupled"]
    assert found.all[0].guarantee < found.guarantee
    assert found.all[-1] == found != found.all[0]
    content = json.loads((STORED / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**content, "a later key": 1}))
    assert tr.load_result(tmp_path) == found
    for version in (1, 3):
        (tmp_path / "result.json").write_text(json.dumps({**content, "version": version}))
        with pytest.raises(tr.InputError, match=f"has version {version}, and 2 is understood"):
            tr.load_result(tmp_path)


def test_pictures_are_axes_that_can_be_changed(learned: tr.LearningResult) -> None:
    axes = learned.plot(reference=0.5)
    assert axes.get_title(loc="left").startswith("PROVED: probability >= 0.") and axes.get_xlim()[0] < 0.5
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][-1] == "reference 0.5"
    axes.set_title("mine")
    _, mine = pyplot.subplots()
    for draw in (learned.plot, learned.plot_widths, learned.plot_events):
        mine.clear()
        assert draw(ax=mine) is mine
        assert mine.get_xlabel() and (mine.lines or mine.patches)
    assert learned.plot_policy(ax=mine) is mine


def test_wrong_calls_are_refused_in_words(learned: tr.LearningResult) -> None:
    wrong: Any = learned
    any_tr: Any = tr
    for call, words in (
        (lambda: wrong.plot(Figure()), "`ax` is a Figure, not matplotlib's Axes"),
        (lambda: wrong.plot(reference="a lot"), "`reference` is a str, not a number"),
        (lambda: wrong.plot_policy(which=7), "there is no policy 7"),
        (lambda: wrong.save(7), "`path` is an int, not the name of a file or directory"),
        (lambda: wrong.report(None), "`path` is None, not the name"),
        (lambda: tr.certify(wrong, 1.5), "`path` is a float, not the name"),
        (lambda: wrong.save("somewhere", exports=["pdf"]), "export"),
        (lambda: any_tr.load_result(7), "`path` is an int, not the name"),
        (lambda: tr.plot_curve(cast(Any, 7)), "`data` are neither"),
    ):
        with pytest.raises(tr.InputError, match=re.escape(words)):
            call()


def test_regions_are_drawn_pair_by_pair_or_as_boxes(learned: tr.LearningResult) -> None:
    (boxes,) = learned.plot_regions().axes
    assert boxes.get_xlabel().startswith("place in the domain")
    found = tr.load_result(STORED)
    pairs = found.plot_regions().axes
    shown = [(axes.get_xlabel(), axes.get_ylabel()) for axes in pairs]  # what the data pin down comes first
    assert shown == [(f"theta{x} (no unit)", f"theta{y} (no unit)") for x, y in ((2, 3), (1, 3), (1, 2))]
    (one,) = found.plot_regions(x="theta2", y="theta3").axes
    assert (one.get_xlabel(), one.get_ylabel()) == ("theta2 (no unit)", "theta3 (no unit)")
    with pytest.raises(tr.InputError, match="there is no region over x='p' and y=None"):
        found.plot_regions(x="p")
    with pytest.raises(tr.InputError, match="there is no state variable 'z'"):
        found.plot_policy(x="z")
    assert found.plot_policy(x="x", y="y", which="optimistic").get_xlabel() == "x (state variable)"


@pytest.mark.usefixtures("empty_pictures")
def test_the_report_of_a_result_in_memory(learned: tr.LearningResult, saved: Path, tmp_path: Path) -> None:
    page = learned.report(tmp_path / "report.html").read_text()
    again = tr.load_result(saved).report(tmp_path / "again.html").read_text()
    for words in ("PROVED: probability", 'id="policy-map"', 'id="parameters"', "confidence 0.999"):
        assert words in page and words in again
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(tr.InputError, match=r"mine\.html"):
        learned.report(tmp_path / "mine.html")


def test_a_result_is_certified_and_verified(learned: tr.LearningResult, tmp_path: Path) -> None:
    proved = tr.certify(learned, tmp_path / "run.cert")
    assert proved["robust policy"].lower <= learned.guarantee
    verdict = tr.verify(tmp_path / "run.cert", model=learned.model, property=PROPERTY, data=learned.counts)
    assert verdict.valid and verdict.not_tied == ("policy",)
    (tmp_path / "mine.cert").write_text("mine")
    with pytest.raises(tr.InputError, match=r"mine\.cert"):
        tr.certify(learned, tmp_path / "mine.cert")


def test_a_learning_curve_from_updates_records_and_files(tmp_path: Path) -> None:
    records = [
        {"episode": n, "guarantee": 1 - 1 / n, "performance": None, "seconds": 0.1, "elapsed": 0.1 * n}
        for n in (1, 10, 100)
    ]
    figure = tr.plot_curve(records, title="coins", value="probability")
    above, below = figure.axes
    assert isinstance(above, Axes) and above.get_ylabel() == "probability"
    assert below.get_xlabel() == "episodes" and below.get_xscale() == "log"
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert len(tr.plot_curve(tmp_path).axes) == 2
    with pytest.raises(tr.InputError, match="there is no update to draw"):
        tr.plot_curve([])
    with pytest.raises(tr.InputError, match="cannot read records"):
        tr.plot_curve(tmp_path / "nothing")


def test_the_small_figure_stands_alone(learned: tr.LearningResult) -> None:
    text = small_figure(learned.interval, learned.guarantee, learned.optimistic_value)
    assert text.startswith('<svg role="img" aria-label="interval from 0.') and text.endswith("</svg>")
    assert "<script" not in text and len(text) < 20_000


def test_results_import_no_matplotlib() -> None:
    script = "import sys, tightrope.learning.result; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
