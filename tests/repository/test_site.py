"""The site: it builds without a warning, loads nothing from the net, fits any screen, and its code runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import draw_diagrams
import matplotlib
import matplotlib.pyplot as plt
import pytest
from generated_parts import MOVED
from run_pages import TUTORIALS, PageError, notebook, run_page, same_output

import tightrope
from browser import browser
from places import TESTS
from tightrope.cli.commands import COMMANDS

ROOT = TESTS.parent
DOCS = ROOT / "docs"
PAGES = [
    path
    for pattern in (
        "start/*.md",
        "tutorials/*.md",
        "how-to/*.md",
        "gallery/*.md",
        "doctor.md",
        "improve.md",
        "reference/output.md",
    )
    for path in sorted(DOCS.glob(pattern))
    if re.search(r"^```(python|sh)$", path.read_text(encoding="utf-8"), re.MULTILINE)
]


FRAME = "<body><iframe style='border: 0; height: 800px; visibility: hidden'></iframe></body>"
"""Pages are laid out in one frame of one window, and not painted: that costs half of opening them."""

LOADED = """new Promise((done) => {
  const frame = document.querySelector('iframe');
  frame.style.width = '%dpx';
  frame.onload = () => done(true);
  frame.src = %s;
})"""
SHOWN = """(() => {
  const frame = document.querySelector('iframe');
  frame.style.width = '%dpx';
  const page = frame.contentDocument;
  const texts = page.querySelectorAll('article p, article li, article h1, article h2');
  return {
    width: page.documentElement.scrollWidth,
    right: Math.max(...[...texts].filter((e) => !e.closest('table'))
      .map((e) => e.getBoundingClientRect().right), 0),
    paper: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
    pictures: [...page.images].filter((i) => i.complete && (i.naturalWidth === 0 || i.alt === ''))
      .map((i) => i.src),
  };
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` builds it, warnings being errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        str(DOCS),
        str(folder),
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
def test_pages_load_nothing_from_the_net(site: Path) -> None:
    loads = re.compile(r'<(?:script|img|link|iframe)[^>]*?(?:src|href)="(https?:)?//[^"]*"')
    for page in site.rglob("*.html"):
        assert not loads.search(page.read_text(encoding="utf-8")), page.name


@pytest.mark.long
def test_every_command_option_and_public_name_is_in_the_reference(site: Path) -> None:
    commands = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f'id="{command.name}"' in commands
    assert "--certificate" in commands and "May be repeated." in commands
    reference = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").rglob("*.html"))
    for name in tightrope.__all__:
        assert len(re.findall(rf'<dt [^>]*id="tightrope\.{name}"', reference)) == 1, name


@pytest.mark.long
@pytest.mark.browser
def test_pages_fit_every_screen_in_light_and_dark(site: Path) -> None:
    """All of them, each loaded once, wide in light and narrow in dark: width and colour are apart."""
    moved = {site / f"{old}.html" for old in MOVED}
    assert all(page.is_file() for page in moved)
    pages = sorted(set(site.rglob("*.html")) - moved)
    assert len(pages) > 40
    frame = site / "frame.html"
    frame.write_text(FRAME, encoding="utf-8")
    wrong = []
    with browser("--allow-file-access-from-files") as tab:
        tab.open(frame, 1400, 900)
        for page in pages:
            name = str(page.relative_to(site))
            tab.events.clear()
            tab.show(1400, 900, "light")
            tab.evaluate(LOADED % (1280, json.dumps(page.as_uri())))
            for width, scheme in ((1280, "light"), (380, "dark")):
                tab.show(1400, 900, scheme)
                shown = tab.evaluate(SHOWN % width)
                if shown["width"] > width or shown["right"] > width + 1:
                    wrong.append(f"{name}: {shown['width']} or {shown['right']} wide at {width}")
                if (shown["paper"] == "rgb(255, 255, 255)") != (scheme == "light"):
                    wrong.append(f"{name}: {shown['paper']} in {scheme}")
                wrong += [f"{name}: {source} is not seen or not told" for source in shown["pictures"]]
            wrong += [f"{name}: {problem}" for problem in tab.problems()]
            assert page.as_uri() in tab.requests()
            wrong += [url for url in tab.requests() if not url.startswith(("file:", "data:"))]
    frame.unlink()
    assert wrong == [], "\n".join(wrong)


def test_addresses_of_earlier_versions_lead_to_pages() -> None:
    for old, new in MOVED.items():
        page, _, heading = new.partition("#")
        assert not (DOCS / f"{old}.md").exists(), old
        text = (DOCS / page).with_suffix(".md").read_text(encoding="utf-8")
        titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert not heading or heading in {title.lower().replace(" ", "-") for title in titles}, new


@pytest.mark.thinned(13)
@pytest.mark.parametrize("page", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_code_of_a_page_does_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Every block runs, in order; `run_page` fails where one prints something else than the page shows."""
    matplotlib.use("Agg")
    if page.stem == "papers":  # all figures of a report, which are drawn and looked at in its own tests
        request.getfixturevalue("empty_pictures")
    monkeypatch.setenv("COLUMNS", "100")
    ran = run_page(page, tmp_path)["__ran__"]
    plt.close("all")
    lines = page.read_text(encoding="utf-8").split("\n")
    fences = [number for number, line in enumerate(lines, 1) if re.match("```(python|sh|.*title=)", line)]
    assert ran == fences and fences


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda path: path.stem)
def test_notebooks_are_their_pages(page: Path) -> None:
    """Their cells are what the test above runs; outputs are those that the page shows."""
    written = page.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert written == notebook(page.read_text(encoding="utf-8")), "run docs/_tools/run_pages.py --notebooks"
    cells = json.loads(written)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 3 and not any(
        line.startswith(("%", "!")) for text in code for line in text.split("\n")
    )


def test_logs_of_the_tutorials_are_what_their_scripts_write(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, DOCS / "tutorials" / "data" / "make_press_log.py"], cwd=tmp_path, check=True
    )
    written = (tmp_path / "press-log.csv").read_text(encoding="utf-8")
    assert written == (DOCS / "tutorials" / "data" / "press-log.csv").read_text(encoding="utf-8")


def test_diagrams_are_what_their_script_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw_diagrams, "IMAGES", tmp_path)
    draw_diagrams.draw_all()
    for picture in tmp_path.glob("*.svg"):
        assert picture.read_text(encoding="utf-8") == (DOCS / "images" / picture.name).read_text(
            encoding="utf-8"
        )


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("value 0.12345\n", "value 0.12349", True),
        ("value 0.12\n", "value 0.13", False),
        ("takes about 100 more", "takes about 90 more", True),
        ("built in 0.2 s", "built in 17 s\n seconds  solve 0.3", True),
        ("first\n…\nlast", "first\nmiddle\nmore\nlast", True),
        ("first\n…\nlast", "first\nmiddle", False),
        ("first", "first\nsecond", False),
        ("the model: …", "the model: and so on", True),
        ("[0.5, 1]", "[0.5, 1] and more", False),
    ],
)
def test_outputs_are_compared_up_to_the_last_digits(shown: str, printed: str, same: bool) -> None:
    assert same_output(shown, printed) is same


def test_a_page_that_shows_something_else_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(6 * 7)\n```\n\n```text\n43\n```\n")
    with pytest.raises(PageError, match=r"page.md:5: the page shows\n43\n\nbut this came out:\n42"):
        run_page(page, tmp_path)
    page.write_text("```sh\ntightrope info nosuch.prism\n```\n")
    with pytest.raises(PageError, match="ended with exit code 2"):
        run_page(page, tmp_path)
    page.write_text("![a figure](images/tutorials/nosuch.svg)\n")
    with pytest.raises(PageError, match=r"shows nosuch\.svg, which its code does not save"):
        run_page(page, tmp_path)
