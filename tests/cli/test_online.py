"""`tightrope online` as a user meets it: JSON lines, a table, a directory, an environment, refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.data.steps import SteppedEnvironment
from tightrope.learning.online.learner import OnlineLearner
from tightrope.learning.online.run import EnvironmentEpisodes, Journal, OnlineRun
from tightrope.model.policy import Policy
from tightrope.prism.load import load_prism
from tightrope.problem import Problem

WALK = """mdp
const double p; const double q;
module walk
  x : [0..3] init 1;
  [slow] x>0 & x<3 -> p : (x'=x+1) + 1-p : (x'=x-1);
  [fast] x>0 & x<3 -> q : (x'=x+1) + 1-q : (x'=x-1);
  [stay] x=0 | x=3 -> true;
endmodule
label "home" = x=3;
"""
HOME = 'Pmax=? [ F "home" ]'
KEYS = {"episode", "steps", "guarantee", "performance", "seconds", "optimistic", "width", "holds", "status"}


class WalkEnv(gymnasium.Env[Any, Any]):
    """The walk with p = 0.6 and q = 0.8 as an environment."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(4)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x = 1
        return {"x": self.x}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.x += 1 if self.np_random.random() < (0.6, 0.8)[action] else -1
        return {"x": self.x}, 0.0, self.x in (0, 3), False, {}


@pytest.fixture
def walk(tmp_path: Path) -> str:
    path = tmp_path / "walk.prism"
    path.write_text(WALK)
    return str(path)


def asked(model: str, *more: str) -> list[str]:
    return ["online", model, "--prop", HOME, "--param", "p=0.1:0.9,q=0.1:0.9", *more]


def test_one_json_line_an_update(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = asked(walk, "--at", "p=0.6,q=0.8", "--episodes", "300", "--seed", "2", "--json")
    assert run(command) == 0
    captured = capsys.readouterr()
    records = [json.loads(line) for line in captured.out.splitlines()]
    assert set(records[0]) >= KEYS and captured.err == ""
    assert [record["update"] for record in records] == list(range(len(records)))
    assert records[0]["episode"] == 0 and records[-1]["episode"] == 300
    assert records[-1]["guarantee"] <= records[-1]["performance"] <= records[-1]["optimistic"]
    assert records[-1]["performance"] == pytest.approx(0.8**2 / (1 - 0.8 * 0.2), abs=1e-6)
    assert all(record["holds"] for record in records)


@pytest.mark.usefixtures("empty_pictures")
def test_a_table_and_a_directory(walk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "run"
    command = asked(walk, "--at", "p=0.6,q=0.8", "--episodes", "200", "-o", str(output))
    assert run([*command, "--verbose"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "best so far" in shown
    assert "guarantee" in shown and "beta-binomial" in shown and "may stop at any time" in shown
    names = {path.name for path in output.iterdir()}
    figures = {f"learning-curve.{suffix}" for suffix in ("pdf", "svg", "png")}
    assert names == figures | {
        "records.jsonl",
        "checkpoint.npz",
        "result.json",
        "robust-policy.json",
        "optimistic-policy.json",
        "tightrope-manifest.json",
    }
    model = load_prism(walk, {}, box="p=0.1:0.9,q=0.1:0.9")
    assert Policy(model.structure, output / "robust-policy.json").is_deterministic
    content = json.loads((output / "result.json").read_text())
    last = json.loads((output / "records.jsonl").read_text().splitlines()[-1])
    assert content["results"][0]["guarantee"] == pytest.approx(last["guarantee"], rel=1e-9)
    assert content["data"]["design"]["kind"] == "adaptive"
    assert run([*command[:-2], "--seed", "9", "-o", str(output)]) == 2
    assert "its seed is 0, not 9" in capsys.readouterr().err


def test_a_table_of_coupled_sets_without_a_gap_that_was_asked_for(
    walk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(asked(walk, "--at", "p=0.6,q=0.8", "--episodes", "20", "--sets", "coupled")) == 0
    assert "more than was asked for" not in capsys.readouterr().out


def test_fixed_design_intervals_are_labelled(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    point = ("--at", "p=0.6,q=0.8", "--episodes", "20", "--json")
    assert run(asked(walk, *point, "--sets", "tied", "--interval", "clopper-pearson")) == 1
    said = capsys.readouterr()
    assert "error: nominal: sampling" in said.err
    assert {json.loads(line)["verdict"] for line in said.out.splitlines()} == {"nominal"}


def test_infinite_guarantees_are_strings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["online", "bench:engagement(4)", "--episodes", "2", "--sets", "untied", "--json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["guarantee"] == "inf" and first["width"] == "inf"


@pytest.mark.usefixtures("empty_pictures")
def test_an_environment_in_the_loop(
    walk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "envs.py").write_text("from cli.test_online import WalkEnv\n")
    monkeypatch.chdir(tmp_path)
    output = tmp_path / "run"
    command = asked(walk, "--env", "envs:WalkEnv", "--episodes", "120", "--actions", "slow,fast", "--json")
    assert run([*command, "-o", str(output)]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert records[-1]["episode"] == 120 and records[-1]["performance"] is None
    assert records[-1]["holds"] is None and 0 < records[-1]["guarantee"] < 0.8
    again = [*command, "--at", "p=0.6,q=0.8"]
    assert run(again) == 0
    known = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["guarantee"] for r in known] == [r["guarantee"] for r in records], "the seed decides"
    assert known[-1]["performance"] == pytest.approx(0.8**2 / (1 - 0.8 * 0.2), abs=1e-6)


def test_an_environment_goes_on_where_it_stopped(walk: str, tmp_path: Path) -> None:
    model = load_prism(walk, {}, box="p=0.1:0.9,q=0.1:0.9")

    def learned(directory: str, *ends: int) -> OnlineLearner:
        for end in ends:
            one = tr.online(Problem(model, HOME), sets="tied")
            stepped = SteppedEnvironment(WalkEnv(), model, actions=["slow", "fast"])
            with Journal(tmp_path / directory, {"model": "walk"}) as journal:
                list(OnlineRun(one, EnvironmentEpisodes(stepped, 4), end, None, journal).records())
        return one

    at_once, in_parts = learned("a", 60), learned("b", 23, 60)
    assert at_once.data.counts() == in_parts.data.counts() and in_parts.episodes == 60


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--episodes", "5"], "the model has parameters"),
        (["--episodes", "0", "--at", "p=0.6,q=0.8"], "--episodes"),
        (["--episodes", "5", "--at", "p=2,q=0.8"], "outside the domain"),
        (["--episodes", "5", "--at", "p=0.6,q=0.8", "--actions", "a"], "requires --env"),
        (["--episodes", "5", "--at", "p=0.6,q=0.8", "--sets", "tied", "--region", "l1"], "no use for"),
        (["--episodes", "5", "--at", "p=0.6,q=0.8", "--delta", "2"], "delta is 2"),
        (["--episodes", "5", "--env", "nothing"], "module:name"),
    ],
)
def test_what_means_nothing_is_refused(
    walk: str, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(asked(walk, *more)) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""


@pytest.mark.thinned(2)
@pytest.mark.usefixtures("empty_pictures")
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--env", "envs:Broken"], "(x=7) is not a reachable state"),
        (["--env", "envs:WalkEnv", "--actions", "fast"], "the environment has no number for choice 'slow'"),
        (["--at", "p=2,q=0.8"], "outside the domain"),
        (["--at", "p=0.6,q=0.8", "--sets", "tied", "--region", "l1"], "no use for"),
    ],
)
def test_a_failed_start_leaves_nothing_behind(
    walk: str,
    tmp_path: Path,
    more: list[str],
    message: str,
    exists: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "envs.py").write_text(
        "from cli.test_online import WalkEnv\n"
        "class Broken(WalkEnv):\n"
        "    def reset(self, **options):\n"
        "        super().reset(**options)\n"
        "        return [7], {}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "envs", raising=False)
    output = tmp_path / "run"
    if exists:
        output.mkdir()
    before = sorted(tmp_path.iterdir())
    assert run(asked(walk, "--episodes", "5", *more, "-o", str(output))) == 2
    assert message in capsys.readouterr().err
    after = sorted(path for path in tmp_path.iterdir() if path.name != "__pycache__")
    assert after == before and (not exists or list(output.iterdir()) == [])
    assert run(asked(walk, "--episodes", "5", "--at", "p=0.6,q=0.8", "-o", str(output))) == 0
