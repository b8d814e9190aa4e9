"""The report in a browser: nothing is asked of the network, nothing goes wrong, every picture is drawn.

Each test opens the page in the same headless Chromium, which `make system-deps` installs.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from browser import Browser, browser
from online_cases import two_coins
from report_cases import copy_stored
from tightrope.io.results import read_result
from tightrope.problem import Problem
from tightrope.report.draw_regions import pairs_of
from tightrope.report.page import page
from tightrope.report.policy_map import MapVariable, PolicyMap
from tightrope.report.write import write_report

pytestmark = pytest.mark.browser

SCREENS = [(1280, "light"), (360, "light"), (390, "dark")]

EMPTY_PICTURES = """
[...document.querySelectorAll('figure svg:not([aria-hidden])')].filter((picture) => {
  const marks = [...picture.querySelectorAll('rect, circle, path, use')];
  const drawn = marks.filter((mark) => { const b = mark.getBBox(); return b.width + b.height > 0; });
  return drawn.length < 2 || picture.querySelectorAll('text').length < 3;
}).map((picture) => picture.getAttribute('aria-label'))
"""

CONTRASTS = """
(() => {
  const channel = (v) => v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
  const light = (c) => { const [r, g, b] = c.match(/[0-9.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c) && c !== 'transparent') return c; } return 'rgb(255, 255, 255)'; };
  const found = {};
  const texts = 'h1, h2, p, li, dt, dd, a, summary, figcaption, th, td, footer, svg text';
  for (const e of document.querySelectorAll(texts)) {
    const style = getComputedStyle(e), ink = e.closest('svg') ? style.fill : style.color;
    found[ink + ' on ' + behind(e)] = ratio(ink, behind(e));
  }
  return found;
})()
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_stored(tmp_path_factory.mktemp("report") / "aircraft")


@pytest.fixture(scope="module")
def report(result: Path) -> Path:
    return write_report(result)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def test_what_goes_wrong_in_a_page_is_seen(chromium: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://example.invalid/a.png'><script>console.error('b'); nothing()</script>")
    chromium.open(bad)
    told = " ".join(chromium.problems())
    assert "'b'" in told and "nothing is not defined" in told and "ERR_NAME_NOT_RESOLVED" in told
    assert "http://example.invalid/a.png" in chromium.requests()


def tip(chromium: Browser, words: str) -> str:
    """What the tip says once it has these words: it may still show those of another mark."""
    shown = "document.getElementById('tip')"
    chromium.wait(
        lambda: chromium.evaluate(f"!{shown}.hidden && {shown}.textContent.includes({json.dumps(words)})")
    )
    text = chromium.evaluate(f"{shown}.textContent")
    assert isinstance(text, str)
    return text


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_page_opens_alone_and_whole(
    chromium: Browser, report: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    chromium.open(report, width, 800, scheme)
    assert chromium.problems() == []
    assert chromium.requests() == [report.resolve().as_uri()]
    assert chromium.evaluate("document.querySelectorAll('figure').length") == 6
    assert chromium.evaluate(EMPTY_PICTURES) == []
    assert (
        chromium.evaluate("document.querySelectorAll('figure:not(:has(.legend text, .legend li))').length")
        == 0
    )
    assert chromium.evaluate("document.documentElement.scrollWidth") == width
    dark = chromium.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert dark == (scheme == "dark")
    black = "[...document.querySelectorAll('figure svg path, figure svg use')]"
    black += ".filter((m) => [getComputedStyle(m).fill, getComputedStyle(m).stroke].includes('rgb(0, 0, 0)'))"
    assert chromium.evaluate(f"{black}.length") == 0
    contrasts = chromium.evaluate(CONTRASTS)
    assert len(contrasts) >= 4
    assert {pair: ratio for pair, ratio in contrasts.items() if ratio < 4.5} == {}
    smallest = chromium.evaluate(
        "Math.min(...[...document.querySelectorAll('figure svg text')].map((t) => {"
        " const m = t.getScreenCTM();"
        " return parseFloat(getComputedStyle(t).fontSize) * Math.hypot(m.a, m.b); }))"
    )
    assert smallest >= 9.0
    chromium.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 50_000
    assert chromium.problems() == []


def test_marks_tell_their_numbers(chromium: Browser, report: Path, result: Path) -> None:
    chromium.open(report)
    run = read_result(result)
    chromium.point_at("#intervals g[data-tip^=coupled] path")
    assert tip(chromium, "robust policy [").startswith("coupled\nrobust policy [")
    chromium.point_at("#widths g[data-tip] path")
    tip(chromium, "before the data")
    chromium.point_at("#binding g[data-tip] path")
    tip(chromium, "seen ")
    chromium.point_at("h1")
    chromium.wait(lambda: chromium.evaluate("document.getElementById('tip').hidden"))
    tips = (
        "new Set([...document.querySelectorAll('#intervals g[data-tip*=robust]')].map((g) => g.dataset.tip))"
    )
    assert chromium.evaluate(f"{tips}.size") == len(run.shown)


def test_the_report_is_printed_on_five_pages(chromium: Browser, report: Path) -> None:
    chromium.open(report)
    printed = chromium.tab("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
    content = base64.b64decode(printed["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", content)) == 5
    assert b"/MediaBox [0 0 59" in content  # A4: 595 by 842 points


def test_a_panel_reads_coordinates_and_regions(chromium: Browser, report: Path, result: Path) -> None:
    chromium.open(report)
    chromium.point_at("#regions .panel .truth use")
    lines = tip(chromium, "inside: ").split("\n")
    run = read_result(result)
    truth = run.true_point
    for line, name in zip(lines, pairs_of(run)[0], strict=False):
        shown, _, value = line.partition(" = ")
        assert shown == name
        assert float(value) == pytest.approx(truth[name], abs=0.005)
    assert lines[2] == "inside: polytope, ellipsoid, likelihood"
    assert chromium.evaluate("document.querySelectorAll('.cross line').length") == 2


def choose(chromium: Browser, label: str, option: str) -> None:
    chromium.evaluate(
        f"""(() => {{
          const label = [...document.querySelectorAll('#policy-controls label')]
            .find((l) => l.firstChild.textContent === {json.dumps(label)});
          const box = label.querySelector('select');
          box.value = [...box.options].find((o) => o.textContent === {json.dumps(option)}).value;
          box.dispatchEvent(new Event('change'));
        }})()"""
    )


def policy_state(chromium: Browser) -> Any:
    return chromium.evaluate(
        """({labels: [...document.querySelectorAll('#policy-map .label')].map((t) => t.textContent),
             cells: document.querySelectorAll('#policy-map .cell').length,
             says: document.getElementById('policy-map').getAttribute('aria-label'),
             actions: [...document.querySelectorAll('#policy-legend li')].map((t) => t.textContent)})"""
    )


def digits(value: float) -> str:
    """As the page writes numbers."""
    return f"{float(f'{value:.4g}'):.15g}"


def test_the_slider_moves_the_value(chromium: Browser, tmp_path: Path) -> None:
    """One toss of p, then perhaps one of q: the value of the robust policy is p, that of the given one q."""
    model = two_coins()
    problem = Problem(model, 'Pmax=? [ F "goal" ]')
    data = [[(0, "first", 1 + (i % 4 == 0))] for i in range(80)]
    data += [[(0, "second", 1 + (i % 4 != 0))] for i in range(80)]
    learned = tr.learn(problem, data, delta=0.1, policy={0: "second"}, sets="parameter")
    chromium.open(learned.report(tmp_path / "page.html"), 390)
    slider, says = (
        "document.querySelector('.whatif input')",
        "document.getElementById('whatif-says').textContent",
    )
    texts = []
    for end in ("min", "max"):
        chromium.evaluate(f"{slider}.value = {slider}.{end}; {slider}.dispatchEvent(new Event('input')); 0")
        texts.append(chromium.evaluate(says))
    (first, *_), assumed = learned._what_if().curves, learned.parameters["p"]
    for text, i in zip(texts, (0, -1), strict=True):
        x, q = first.grid[i], first.others[i]["q"]
        assert (
            assumed.lower <= x <= assumed.upper and x in learned.interval
        )  # and so is the value, which is p
        shown = f"p = {digits(x)} (best fit: q = {digits(q)}): probability of the robust policy {digits(x)}, "
        assert text.startswith(f"{shown}of the given policy {digits(q)}.")
        assert "The robust policy has 0." in text
    box = "document.querySelector('.whatif select')"
    chromium.evaluate(f"{box}.value = 1; {box}.dispatchEvent(new Event('change')); 0")
    assert chromium.evaluate(says).startswith("q = 0.2") and "(best fit: p = 0.7" in chromium.evaluate(says)
    assert chromium.evaluate("document.querySelectorAll('#whatif-map .curve').length") == 2
    assert chromium.evaluate("document.documentElement.scrollWidth") == 390
    assert chromium.problems() == []


def test_the_policy_is_drawn_over_the_variables_that_are_chosen(
    chromium: Browser, report: Path, result: Path
) -> None:
    chromium.open(report)
    written = json.loads((result / "coupled" / "robust-policy.json").read_text())
    entries = [
        {"state": dict(zip(written["variables"], state, strict=True)), "action": action}
        for state, action, _ in written["policy"]
    ]
    before = policy_state(chromium)
    assert before["labels"] == ["x (state variable)", "y (state variable)"]
    choose(chromium, "other_y", "any")
    everywhere = policy_state(chromium)
    assert everywhere["cells"] == len({(e["state"]["x"], e["state"]["y"]) for e in entries})
    choose(chromium, "across", "other_y")
    after = policy_state(chromium)
    assert after["labels"] == ["other_y (state variable)", "y (state variable)"]
    choose(chromium, "x", "3")
    held = policy_state(chromium)
    there = [e for e in entries if e["state"]["x"] == 3]
    assert held["cells"] == len(there) == len({(e["state"]["other_y"], e["state"]["y"]) for e in there})
    assert set(held["actions"]) == {e["action"] for e in there}
    choose(chromium, "policy", "optimistic")
    assert policy_state(chromium)["says"].startswith("optimistic policy over other_y and y")
    chromium.point_at("#policy-map .cell")
    tip(chromium, "other_y = ")
    assert chromium.problems() == []


@pytest.mark.costly("test_the_page_opens_alone_and_whole")
@pytest.mark.usefixtures("empty_pictures")
def test_large_and_one_dimensional_policies_are_drawn(
    chromium: Browser, result: Path, tmp_path: Path
) -> None:
    run = read_result(result)
    index = np.arange(100_000, dtype=np.int64)
    many = tuple(str(i) for i in range(40))
    pair = tuple(MapVariable(name, many, (index // step) % 40) for name, step in (("a", 1), ("b", 40)))
    few, names = index[:4000], tuple(f"action {i}" for i in range(12))
    line = (MapVariable("a", many, few % 40),)
    cases = {
        "large": (
            PolicyMap(pair, ("left", "right"), {"robust": index % 2, "optimistic": index % 2}),
            1600,
            2,
        ),
        "line": (PolicyMap(line, names, {"robust": few % 40 % 12}), 40, 12),
    }
    for name, (policies, cells, actions) in cases.items():
        file = tmp_path / f"{name}.html"
        file.write_text(page(run, policies))
        assert file.stat().st_size < 1_000_000
        chromium.open(file)
        assert chromium.problems() == []
        drawn = policy_state(chromium)
        assert (drawn["cells"], len(drawn["actions"])) == (cells, actions)
