"""The code of the README and of the reference pages under docs/ runs, on small problems in place of theirs.

Tutorials and how-to pages bring all they need (`test_site`). The pages here show fragments about your own
model, log and result: these are prepared, and benchmarks and numbers of episodes are replaced by small ones.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from run_pages import Block, blocks_of

import tightrope as tr
from places import TESTS
from tightrope.cli.app import run

pytestmark = pytest.mark.usefixtures("empty_pictures")
ROOT = TESTS.parent
DOCS = ROOT / "docs"

GRID = """mdp
const int n = 5;
const double p;
module robot
  x : [0..n-1] init 0;
  y : [0..n-1] init 0;
  [up] y<n-1 -> p : (y'=y+1) + 1-p : true;
  [right] x<n-1 -> p : (x'=x+1) + 1-p : true;
  [stay] x=n-1 & y=n-1 -> true;
endmodule
label "goal" = x=n-1 & y=n-1;
label "done" = x=n-1 & y=n-1;
rewards true : 1; endrewards
"""

MACHINE = """mdp
const double p;
module machine
  s : [0..2] init 0;
  [run] s<2 -> p : (s'=s+1) + 1-p : true;
  [repair] s=1 -> (s'=0);
  [stay] s=2 -> true;
endmodule
label "done" = s=2;
label "goal" = s=2;
label "heads" = s=2;
"""

SMALL = (
    (r"bench:\w+\([\d,]+\)", "bench:betting(4)"),
    (r"\bINSTANCE\b", "'bench:betting(4)'"),
    (r"--episodes \d+", "--episodes 60"),
    (r"--gap 1%", "--gap 30%"),
    (r"\b100_000\b", "100"),
    (r"< 1000\b", "< 12"),
)
NOT_RUN = ("warmup", "COMMAND")
"""A minute of compiling, and a word for any command."""


def smaller(text: str) -> str:
    for pattern, replacement in SMALL:
        text = re.sub(pattern, replacement, text)
    return text


def code_of(page: Path) -> list[Block]:
    return [
        block
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.language in ("python", "sh") and block.title is None
    ]


def command_lines(block: Block) -> list[list[str]]:
    if "--device cuda" in block.text:
        return []
    lines = smaller(block.text.replace("\\\n", " ")).splitlines()
    kept = [line for line in lines if line.startswith("tightrope ") and not any(w in line for w in NOT_RUN)]
    return [shlex.split(line, comments=True)[1:] for line in kept]


def model_file(name: str, text: str) -> tr.ParametricMDP:
    Path(name).write_text(text)
    model = tr.load(name, params={"p": (0.1, 0.9)})
    assert isinstance(model, tr.ParametricMDP)
    return model


def machine_log() -> list[tuple[int, int, str, int]]:
    """Rows of episode, state, action and next state."""
    random = np.random.default_rng(1)
    rows = []
    for episode in range(60):
        state = 0
        for _ in range(30):
            action = "repair" if state == 1 and random.random() < 0.3 else "run"
            after = 0 if action == "repair" else state + int(random.random() < 0.7)
            rows.append((episode, state, action, after))
            state = after
            if state == 2:
                break
    return rows


# --- shells ---------------------------------------------------------------------------------------


WHOLE = ("doctor", "improve", "output")
WHOLE_FOLDERS = ("start", "tutorials", "how-to", "gallery")
"""Pages whose blocks build on each other: `test_site` runs them."""

SHELL_PAGES = [
    page
    for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
    if page.stem not in WHOLE
    and any(command_lines(block) for block in code_of(page) if block.language == "sh")
]


@pytest.mark.thinned(5)
@pytest.mark.parametrize("page", SHELL_PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    grid = model_file("model.prism", GRID)
    Path("machine.prism").write_text(MACHINE)
    shutil.copy(ROOT / "tests" / "models" / "rewards" / "inventory.prism", "shop.prism")
    columns = ["episode", "s", "action", "s_next"]
    pd.DataFrame(machine_log(), columns=columns).to_csv("log.csv", index=False)
    tr.Policy.uniform(grid).save("policy.json")
    assert run(["sample", "bench:betting(4)", "--episodes", "100", "-o", "data.parquet"]) == 0
    for block in code_of(page):
        for words in command_lines(block) if block.language == "sh" else ():
            code = run(words)
            assert code == 0, f"{page.name}:{block.line}: {shlex.join(words)}\n{capsys.readouterr().err}"


# --- Python ---------------------------------------------------------------------------------------

PYTHON_PAGES = [
    page
    for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
    if page.stem not in WHOLE and any(block.language == "python" for block in code_of(page))
]


@pytest.mark.thinned(5)
@pytest.mark.parametrize("page", PYTHON_PAGES, ids=lambda page: page.stem)
def test_every_snippet_of_a_page_runs_alone(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in a namespace of its own: nothing is taken for granted but the files that the page shows."""
    monkeypatch.chdir(tmp_path)
    run = 0
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.title is not None:
            Path(block.title).write_text(block.text)
        elif block.language == "python":
            code = compile("\n" * block.line + smaller(block.text), page.name, "exec")
            exec(code, {"__name__": "page"})
            run += 1
    assert run > 0
    plt.close("all")


def test_every_snippet_is_run() -> None:
    """All fences of Python and of shells are in a page that is run: here, or from top to bottom."""
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    with_code = {page for page in pages if code_of(page)}
    whole = {page for page in with_code if page.parent.name in WHOLE_FOLDERS or page.stem in WHOLE}
    alone = {*PYTHON_PAGES, *SHELL_PAGES}
    left = {page.name for page in with_code - whole - alone}
    assert left == set()
    assert sum(len(code_of(page)) for page in with_code) >= 140
