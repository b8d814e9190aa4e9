"""The code of the README and of the reference pages under docs/ runs, on small problems in place of theirs.

Tutorials and how-to pages bring all they need (`test_site`). The pages here show fragments about your own
model, log and result: these are prepared, and benchmarks and numbers of episodes are replaced by small ones.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from run_pages import Block, blocks_of

import tightrope as tr
from tightrope.cli.app import run

pytestmark = pytest.mark.usefixtures("empty_pictures")
ROOT = Path(__file__).parent.parent
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

WALK = """mdp
const double p;
module walk
  x : [0..4] init 2;
  [walk] x>0 & x<4 -> p : (x'=x+1) + 1-p : (x'=x-1);
  [stay] x=0 | x=4 -> true;
endmodule
label "goal" = x=4;
"""

COIN = "mdp\nconst double p;\nmodule coin\n  s : [0..2] init 0;\n  [toss] s=0 -> p : (s'=1) + 1-p : (s'=2);\n"
COIN += '  [stay] s>0 -> true;\nendmodule\nlabel "heads" = s=1;\n'

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


def simulated(model: tr.ParametricMDP) -> tr.Simulator:
    return tr.Simulator(model.instantiate(p=0.7), model_hash=model.hash())


def learned(model: tr.ParametricMDP, label: str = "goal") -> dict[str, Any]:
    """The names that most fragments take for granted."""
    problem = tr.Problem(model, f'Pmax=? [ F "{label}" ]')
    data = simulated(model).episodes(200, seed=1)
    return {"tr": tr, "tightrope": tr, "model": model, "problem": problem, "data": data}


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


def machine_episodes() -> list[list[tuple[dict[str, int], str, dict[str, int]]]]:
    rows = machine_log()
    return [[({"s": s}, a, {"s": t}) for e, s, a, t in rows if e == episode] for episode in range(60)]


# --- shells ---------------------------------------------------------------------------------------


WHOLE = ("doctor", "improve")
"""Pages whose blocks build on each other: `test_site` runs them."""

SHELL_PAGES = [
    page
    for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
    if page.stem not in WHOLE
    and any(command_lines(block) for block in code_of(page) if block.language == "sh")
]


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


def for_certificates() -> dict[str, Any]:
    names = learned(model_file("machine.prism", MACHINE))
    assert (
        run(
            [
                "sample",
                "machine.prism",
                "--at",
                "p=0.7",
                "--episodes",
                "100",
                "--prop",
                'Pmax=? [ F "goal" ]',
                "-o",
                "runs.csv",
            ]
        )
        == 0
    )
    data = tr.read_data("runs.csv", names["model"])
    tr.certify(tr.learn(names["problem"], data, delta=0.01), "learned.cert")
    return names


def for_coupled() -> dict[str, Any]:
    return learned(model_file("machine.prism", MACHINE))


def for_data() -> dict[str, Any]:
    model = model_file("machine.prism", MACHINE)
    rows = [row[1:] for row in machine_log()]
    frame = pd.DataFrame(rows, columns=["s", "cmd", "s_next"])
    Path("logs").mkdir()
    frame.rename(columns={"cmd": "action"}).to_parquet("logs/a.parquet")
    numbered = [(s, {"repair": 0, "run": 1}[a], t) for s, a, t in rows]
    pd.DataFrame(numbered, columns=["state", "action", "next_state"]).to_csv("numbers.csv", index=False)
    return {
        "model": model,
        "episodes": machine_episodes(),
        "frame": frame,
        "path": "numbers.csv",
        "theta": [0.7],
    }


def for_learning() -> dict[str, Any]:
    Path("coin.prism").write_text(COIN)
    return {}


def for_online() -> dict[str, Any]:
    names = learned(model_file("machine.prism", MACHINE))
    random = np.random.default_rng(3)

    def run_one_episode(policy: tr.Policy) -> list[tuple[dict[str, int], str, dict[str, int]]]:
        state, steps = 0, []
        while state < 2 and len(steps) < 50:
            action = policy.act({"s": state}, rng=random)
            after = 0 if action == "repair" else state + int(random.random() < 0.7)
            steps.append(({"s": state}, action, {"s": after}))
            state = after
        return steps

    return {**names, "run_one_episode": run_one_episode}


def for_policies() -> dict[str, Any]:
    corner = GRID.replace("n = 5", "n = 2").replace("[right] x<n-1", "[right] y=0")
    corner = corner.replace("(x'=x+1)", "(x'=min(x+1,n-1))").replace("[stay] x=n-1 & y=n-1", "[stay] y=n-1")
    model = model_file("corner.prism", corner)
    uniform = tr.Policy.uniform(model)
    uniform.save("robust-policy.json")
    chosen = tr.Policy(model, lambda state: "up" if state["y"] == 0 else "stay")
    return {
        "model": model,
        "numbers": chosen.choice - model.structure.choice_start[:-1],
        "probabilities": uniform.probability,
    }


def for_python() -> dict[str, Any]:
    Path("model.prism").write_text(GRID.replace("n = 5;", "n;"))
    model = tr.load("model.prism", const={"n": 5}, params={"p": (0.1, 0.9)})
    assert isinstance(model, tr.ParametricMDP)
    arguments = ["--const", "n=5", "--at", "p=0.7", "--prop", 'Pmax=? [ F "goal" ]', "--episodes", "60"]
    assert run(["sample", "model.prism", *arguments, "-o", "log.parquet"]) == 0
    return {"np": np}


def for_reports() -> dict[str, Any]:
    assert (
        run(["online", "bench:betting(4)", "--episodes", "20", "--sets", "tied", "-o", "run-of-online"]) == 0
    )
    Path("campaign").mkdir()
    kept = (DOCS / "results" / "online.jsonl").read_text().splitlines(keepends=True)[:2]
    Path("campaign/online.jsonl").write_text("".join(kept))
    return learned(model_file("model.prism", GRID))


PYTHON_PAGES: dict[str, Callable[[], dict[str, Any]]] = {
    "benchmarks": dict,
    "certificates": for_certificates,
    "coupled": for_coupled,
    "data": for_data,
    "learning": for_learning,
    "models": lambda: {"tr": tr},
    "online": for_online,
    "planning": lambda: learned(model_file("walk.prism", WALK)),
    "policies": for_policies,
    "python": for_python,
    "reports": for_reports,
    "statistics": dict,
    "watching": lambda: {
        "tr": tr,
        "model": model_file("machine.prism", MACHINE),
        "episodes": machine_episodes(),
    },
}
"""What a page takes for granted."""

ELSEWHERE = ("load_minari(", "act(state")
"""Datasets and environments of others: `test_data_environments`, `test_policy_object`."""


def test_every_page_with_python_is_known() -> None:
    pages = {page.stem for page in DOCS.glob("*.md") if any(b.language == "python" for b in code_of(page))}
    assert pages == {*PYTHON_PAGES, *WHOLE}


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = PYTHON_PAGES[page]()
    path = DOCS / f"{page}.md"
    for block in code_of(path):
        if block.language == "python" and not any(word in block.text for word in ELSEWHERE):
            exec(compile("\n" * block.line + smaller(block.text), path.name, "exec"), names)
