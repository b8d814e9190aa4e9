"""`tightrope sample`: what it writes is what it says, and reads back to what was simulated."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.cli.app import run
from tightrope.data.design import SamplingKind, find_decided_states
from tightrope.data.reading import read_data
from tightrope.data.simulator import Simulator
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.prism.load import load_prism

WALK = """\
mdp
const int n;
const double p;
module walk
  x : [0..n] init 2;
  up : bool init false;
  [left]  x>0 & x<n -> p : (x'=x-1) + 1-p : (x'=x+1)&(up'=true);
  [right] x>0 & x<n -> p/2 : (x'=x+1) + 1-p/2 : (x'=x-1);
  [] x=0 | x=n -> true;
endmodule
formula middle = x=3;
label "home" = x=n;
"""

ENVIRONMENT = """
import gymnasium
class Walk(gymnasium.Env):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.up = 2, False
        return (self.x, self.up), {}
    def step(self, action):
        luck = self.np_random.random()
        if action == 0:
            back = luck < 0.25
            self.up |= not back
        else:
            back = luck >= 0.125
        self.x += -1 if back else 1
        return (self.x, self.up), 0.0, self.x in (0, 5), False, {}
def double(observation):
    return {"x": observation[0], "up": observation[1]}
"""


@pytest.fixture(autouse=True)
def in_a_directory_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "walk.prism").write_text(WALK)
    (tmp_path / "sampled_walk_environment.py").write_text(ENVIRONMENT)
    (tmp_path / "coin.nm").write_text(
        "dtmc\nmodule m\n x : [0..1];\n [] x=0 -> [0.2,0.4] : (x'=1) + [0.5,0.9] : (x'=0);\n"
        " [] x=1 -> true;\nendmodule\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")


WALKING = ("walk.prism", "--const", "n=5", "--at", "p=0.25")


def walk() -> ParametricMDP:
    model = load_prism("walk.prism", {"n": "5"})
    assert isinstance(model, ParametricMDP)
    return model


def sampled(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """The JSON object that `sample` prints, alone on stdout."""
    assert run(["sample", *arguments, "--json"]) == 0
    result: dict[str, object] = json.loads(capsys.readouterr().out)
    return result


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["sample", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ["d.csv", "d.parquet"])
@pytest.mark.parametrize(
    "form", [(), ("--raw",), ("--states", "variables"), ("--raw", "--states", "variables")]
)
def test_the_file_holds_what_was_simulated(
    capsys: pytest.CaptureFixture[str], name: str, form: tuple[str, ...]
) -> None:
    said = sampled(capsys, *WALKING, "--episodes", "200", "--seed", "5", "-o", name, *form)
    model = walk()
    simulator = Simulator(model.instantiate([Fraction(1, 4)]), model_hash=model.hash())
    expected = simulator.episodes(200, 5)
    reading = read_data(name, model)
    assert reading.counts == expected
    assert (said["episodes"], said["steps"], said["file"]) == (200, expected.steps, name)
    assert isinstance(said["seconds"], float) and said["seconds"] > 0
    assert reading.metadata is not None
    kept = {key: reading.metadata[key] for key in ("seed", "policy", "cap", "at", "source", "property")}
    assert kept == {
        "seed": 5,
        "policy": "uniform",
        "cap": 1000,
        "at": {"p": "0.25"},
        "source": "walk.prism",
        "property": None,
    }


def test_a_benchmark_brings_its_point_property_and_cap(capsys: pytest.CaptureFixture[str]) -> None:
    said = sampled(capsys, "bench:rover(10,10)", "--episodes", "300", "--seed", "2", "-o", "r.parquet")
    instance = parse_bench("rover(10,10)")
    model = load(instance)
    stop = find_decided_states(question(instance, model.structure).objective, model.states)
    mdp = model.instantiate(instance.truth)
    simulator = Simulator(mdp, stop=stop, cap=instance.episode_cap, model_hash=model.hash())
    counts = read_data("r.parquet", model).counts
    assert counts == simulator.episodes(300, 2)
    assert said["cap"] == 1000
    crash = model.structure.labels["crash"][model.structure.choice_state]
    assert counts.visits[crash].sum() == 0


def test_a_property_ends_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    prop = "Pmax=? [ F<=7 middle ]"
    said = sampled(capsys, *WALKING, "--episodes", "50", "--prop", prop, "-o", "d.csv")
    assert said["cap"] == 7
    model = walk()
    counts = read_data("d.csv", model).counts
    assert counts.visits[model.structure.valuations["x"][model.structure.choice_state] == 3].sum() == 0


def test_the_generative_model(capsys: pytest.CaptureFixture[str]) -> None:
    said = sampled(capsys, *WALKING, "--generative", "40", "-o", "g.parquet")
    model = walk()
    counts = read_data("g.parquet", model).counts
    assert np.all(counts.visits == 40)
    assert counts.design.kind is SamplingKind.GENERATIVE_FIXED
    assert (said["episodes"], said["steps"]) == (None, 40 * model.choices)


def test_a_policy_file(capsys: pytest.CaptureFixture[str]) -> None:
    model = walk()
    structure = model.structure
    left = Policy.of_choices(structure, structure.choice_start[:-1])
    with open("left.json", "w") as stream:
        left.write(stream)
    sampled(capsys, *WALKING, "--episodes", "50", "--policy", "left.json", "-o", "d.csv")
    counts = read_data("d.csv", model).counts
    assert {structure.action_name(int(c)) for c in np.flatnonzero(counts.visits)} == {"left"}


def test_an_environment(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (
        "--const",
        "n=5",
        "--episodes",
        "40",
        "--seed",
        "3",
        "--env",
        "sampled_walk_environment:Walk",
    )
    said = sampled(capsys, "walk.prism", *arguments, "-o", "e.parquet")
    model = walk()
    counts = read_data("e.parquet", model).counts
    assert counts.steps == said["steps"]
    assert counts.design.kind is SamplingKind.TRAJECTORIES
    convert = ("--convert-obs", "sampled_walk_environment:double", "--actions", "left,right")
    sampled(capsys, "walk.prism", *arguments, *convert, "-o", "e.csv")
    assert read_data("e.csv", model).counts == counts
    assert json.loads(pq.read_schema("e.parquet").metadata[b"tightrope"])["env"] == (
        "sampled_walk_environment:Walk"
    )


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sample", *WALKING, "--episodes", "1000", "-o", "d.csv"]) == 0
    printed = capsys.readouterr().out
    for words in ("episodes", "1,000", "steps", "in absorbing states", "d.csv"):
        assert words in printed


def test_an_episode_that_is_over_before_it_starts_is_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    prop = "Pmax=? [ F x=2 ]"
    assert run(["sample", *WALKING, "--episodes", "5", "--prop", prop, "-o", "d.csv", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["steps"] == 0
    assert captured.err.startswith("warning: no step was taken")
    assert read_data("d.csv", walk()).counts.steps == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*WALKING, "-o", "d.csv"), "give one of --episodes N, --generative N and --draws FILE"),
        (
            (*WALKING, "--episodes", "1", "--generative", "1", "-o", "d.csv"),
            "give one of --episodes N, --generative N and --draws FILE",
        ),
        ((*WALKING, "--episodes", "0", "-o", "d.csv"), "Invalid value for '--episodes'"),
        ((*WALKING, "--episodes", "1", "--cap", "0", "-o", "d.csv"), "Invalid value for '--cap'"),
        ((*WALKING, "--episodes", "1", "--seed", str(2**64), "-o", "d.csv"), "must be between 0 and 2^64"),
        ((*WALKING, "--episodes", "1", "-o", "d.txt"), "a data file ends in .csv, .parquet, .pq, not '.txt'"),
        ((*WALKING, "--episodes", "1", "-o", "none/d.csv"), "cannot write none/d.csv: there is no directory"),
        (
            (*WALKING, "--generative", "1", "--raw", "-o", "d.csv"),
            "--raw is for simulated trajectories only",
        ),
        ((*WALKING, "--generative", "1", "--env", "a:b", "-o", "d.csv"), "--env is for --episodes"),
        ((*WALKING, "--episodes", "1", "--policy", "no.json", "-o", "d.csv"), "cannot read the policy"),
        (("walk.prism", "--const", "n=5", "--episodes", "1", "-o", "d.csv"), "the model has parameters: p"),
        (("coin.nm", "--episodes", "1", "-o", "d.csv"), "no single set of probabilities to draw from"),
        ((*WALKING[:-1], "p=2", "--episodes", "1", "-o", "d.csv"), "outside the domain"),
    ],
)
def test_wrong_options_exit_with_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert message in failure(capsys, *arguments)
    assert not Path("d.csv").exists()
