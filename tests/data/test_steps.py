"""Counts from a Gymnasium environment and from recorded datasets.

Also of `io/table/frames.py`.
"""

from __future__ import annotations

import builtins
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from tightrope.cli.app import run
from tightrope.data.counts import batch_ends
from tightrope.data.design import SamplingKind
from tightrope.data.reading import read_data
from tightrope.data.steps import (
    count_environment,
    count_minari,
    load_minari,
    load_named,
    make_environment,
)
from tightrope.errors import InputError
from tightrope.model.builder import build_from_function
from tightrope.model.policy import Policy
from tightrope.model.structure import Structured
from tightrope.prism.load import load_prism_text

LENGTH = 5


def corridor() -> Structured:
    """Walk right to the end; `step` may slip, `crawl` does not."""

    def successors(x: int) -> dict[str, dict[int, object]]:
        if x == LENGTH:
            return {"": {x: 1}}
        return {"step": {x + 1: "3/4", max(x - 1, 0): "1/4"}, "crawl": {x + 1: "1/2", x: "1/2"}}

    return build_from_function(1, successors, variables=lambda x: {"x": x})  # type: ignore[arg-type]


class CorridorEnv(gymnasium.Env[Any, Any]):
    """The same corridor as an environment; shows the position as an array, as dictionary, or badly."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, LENGTH, (1,), np.int64)

    def __init__(self, show: str = "array", teleports: bool = False, patience: int = 1000):
        self.show = show
        self.teleports = teleports
        self.patience = patience

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x, self.steps = 1, 0
        return self._shown(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        luck = self.np_random.random()
        if action == 0:
            self.x = self.x + 1 if luck < 0.75 else max(self.x - 1, 0)
        elif luck < 0.5:
            self.x += 1
        if self.teleports and self.x == 3:
            self.x = 5
        self.steps += 1
        return self._shown(), 0.0, self.x == LENGTH, self.steps >= self.patience, {}

    def _shown(self) -> Any:
        return {"array": np.array([self.x]), "dict": {"x": self.x}, "float": float(self.x), "text": "here"}[
            self.show
        ]


def make_corridor() -> CorridorEnv:
    return CorridorEnv()


def test_an_environment_is_counted() -> None:
    model = corridor()
    counts = count_environment(CorridorEnv(), model, 600, seed=1)
    assert counts.design.kind is SamplingKind.TRAJECTORIES
    assert counts.design.episodes == 600
    assert counts.design.steps == counts.steps
    assert counts.design.repeats
    assert counts.model_hash == model.hash()
    assert counts.batches is not None and len(counts.batches) == len(batch_ends(600))
    structure = model.structure
    for action, share in (("step", 0.75), ("crawl", 0.5)):
        chosen = [c for c in range(structure.choices) if structure.action_name(c) == action]
        visits = counts.visits[chosen].sum()
        forward = counts.transition[structure.transition_start[chosen]].sum()
        assert abs(forward / visits - share) < 5 * np.sqrt(share * (1 - share) / visits)


def test_the_seed_decides() -> None:
    model = corridor()
    first = count_environment(CorridorEnv(), model, 50, seed=3)
    assert count_environment(CorridorEnv("dict"), model, 50, seed=3) == first
    assert count_environment(CorridorEnv(), model, 50, seed=4) != first


def test_episodes_end_at_the_cap_when_truncated_and_in_stopping_states() -> None:
    model = corridor()
    assert count_environment(CorridorEnv(), model, 30, seed=1, cap=2).steps <= 60
    cut = count_environment(CorridorEnv(patience=1), model, 30, seed=1)
    assert cut.steps == 30
    stop = model.structure.valuations["x"] == 2
    stopped = count_environment(CorridorEnv(), model, 30, seed=1, stop=stop)
    visited = model.structure.choice_state[stopped.visits > 0]
    assert set(model.structure.valuations["x"][visited].tolist()) <= {0, 1}


def test_a_policy_and_the_names_of_actions() -> None:
    model = corridor()
    structure = model.structure
    crawl = np.array(
        [1.0 if structure.action_name(c) in ("crawl", "") else 0.0 for c in range(structure.choices)]
    )
    counts = count_environment(CorridorEnv(), model, 20, seed=1, policy=Policy(structure, crawl))
    assert {structure.action_name(c) for c in np.flatnonzero(counts.visits)} == {"crawl"}
    with pytest.raises(InputError, match="the model has no action 'jump'"):
        count_environment(CorridorEnv(), model, 1, seed=1, actions=["step", "jump"])
    with pytest.raises(InputError, match="the environment has no number for choice 'crawl' of state"):
        count_environment(CorridorEnv(), model, 20, seed=1, actions=["step"])


def test_observations_are_converted() -> None:
    model = corridor()
    plain = count_environment(CorridorEnv(), model, 20, seed=1)
    converted = count_environment(CorridorEnv("float"), model, 20, seed=1, convert_obs=lambda x: {"x": x})
    assert converted == plain


def test_an_observation_that_is_no_state_is_refused() -> None:
    model = corridor()
    with pytest.raises(InputError) as caught:
        count_environment(CorridorEnv("text"), model, 1, seed=1)
    assert caught.value.message == (
        "episode 0, start: the observation 'here' is none of the model's named states: 1, 2, 0, 3, 4, 5"
    )
    assert caught.value.hint is not None and "`convert_obs`" in caught.value.hint
    with pytest.raises(InputError, match=r"episode 0, start: \(x=77\) is not a reachable state of the model"):
        count_environment(CorridorEnv(), model, 1, seed=1, convert_obs=lambda x: {"x": 77})
    with pytest.raises(InputError, match="start: the observation 77 is none of the model's named states"):
        count_environment(CorridorEnv(), model, 1, seed=1, convert_obs=lambda x: 77)


def test_a_step_that_the_model_excludes_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"episode \d+, step \d+: the model has no transition of choice"
    ) as caught:
        count_environment(CorridorEnv(teleports=True), corridor(), 50, seed=1)
    assert (
        caught.value.hint == "data that the model excludes are evidence of a wrong model; they are not noise"
    )


# --- by name --------------------------------------------------------------------------------

MODULE = """
import gymnasium
class Env(gymnasium.Env):
    pass
def not_an_environment():
    return 42
constant = 7
"""


def test_environments_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_corridor.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    assert type(make_environment("my_corridor:Env")).__name__ == "Env"
    for spec, message in (
        ("my_corridor", "`env` 'my_corridor' is not of the form module:name"),
        ("no_such_module:make", "`env` no_such_module:make: cannot import no_such_module"),
        ("my_corridor:missing", "`env` my_corridor:missing: module my_corridor has no missing"),
        ("my_corridor:constant", "`env` my_corridor:constant: constant cannot be called"),
        ("my_corridor:not_an_environment", "the factory made a int, not a gymnasium.Env"),
    ):
        with pytest.raises(InputError) as caught:
            make_environment(spec)
        assert message in caught.value.message
    assert load_named("math:sqrt", "--convert-obs")(4) == 2


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *arguments: Any) -> Any:
        raise ModuleNotFoundError(f"No module named '{name}'")

    monkeypatch.setattr("tightrope.data.steps.importlib.import_module", refuse)
    with pytest.raises(InputError) as caught:
        make_environment("my:env")
    assert (
        caught.value.message == "Gymnasium environments need the package 'gymnasium', which is not installed"
    )
    assert caught.value.hint == "pip install 'tightrope[gym]'"
    with pytest.raises(InputError) as caught:
        load_minari("D4RL/door/human-v2")
    assert caught.value.message == "Minari datasets need the package 'minari', which is not installed"
    assert caught.value.hint == "pip install 'tightrope[minari]'"
    assert builtins.__import__ is real


# --- recorded datasets ----------------------------------------------------------------------


@dataclass
class Episode:
    """What Minari gives for an episode, as far as it is used."""

    observations: Any
    actions: np.ndarray


class Dataset:
    def __init__(self, *episodes: Episode):
        self.episodes = episodes

    def iterate_episodes(self) -> Any:
        return iter(self.episodes)


def test_a_recorded_dataset_is_counted() -> None:
    model = corridor()
    dataset = Dataset(
        Episode(np.array([[1], [2], [1], [2]]), np.array([0, 0, 1])),
        Episode({"x": np.array([1, 1])}, np.array([1])),
    )
    counts = count_minari(dataset, model)
    assert counts.design.kind is SamplingKind.ADAPTIVE
    assert (counts.design.episodes, counts.design.steps) == (2, 4)
    structure = model.structure
    seen = {
        (
            structure.state_name(int(structure.choice_state[structure.transition_choice[t]])),
            structure.action_name(int(structure.transition_choice[t])),
            structure.state_name(int(structure.successor[t])),
        ): int(counts.transition[t])
        for t in np.flatnonzero(counts.transition)
    }
    assert seen == {
        ("(x=1)", "step", "(x=2)"): 1,
        ("(x=2)", "step", "(x=1)"): 1,
        ("(x=1)", "crawl", "(x=2)"): 1,
        ("(x=1)", "crawl", "(x=1)"): 1,
    }


def test_a_recorded_dataset_that_does_not_fit_is_refused() -> None:
    model = corridor()
    with pytest.raises(InputError, match=r"episode 0, step 0: the action 5 is none of 0\.\.1"):
        count_minari(Dataset(Episode(np.array([[1], [2]]), np.array([5]))), model)
    with pytest.raises(
        InputError, match=r"episode 0, step 0: the action 'step' is not enabled in state \(x=5\)"
    ):
        count_minari(Dataset(Episode(np.array([[5], [5]]), np.array([0]))), model)
    with pytest.raises(InputError, match="episode 0, step 0: the model has no transition of choice 'step'"):
        count_minari(Dataset(Episode(np.array([[1], [4]]), np.array([0]))), model)


@pytest.mark.parametrize(
    ("observations", "names"),
    [
        (np.array([[0, 1], [1, 1], [1, 0]]), "x = observation.0, y = observation.1"),
        ({"y": np.array([1, 1, 0]), "x": np.array([0, 1, 1])}, "x = observation.x, y = observation.y"),
        ((np.array([0, 1, 1]), np.array([1, 1, 0])), "x = observation.0, y = observation.1"),
    ],
)
def test_the_steps_of_a_dataset_are_a_log(observations: Any, names: str) -> None:
    """Variables by their order or by their names, actions by their numbers in the model."""
    model = load_prism_text(
        "mdp module m x : [0..1] init 0; y : [0..1] init 1;\n"
        "[left] x=0 -> 1/2 : (x'=1) + 1/2 : true; [right] x=1 & y=1 -> (y'=0); [right] y=0 -> true; endmodule"
    )
    dataset = Dataset(Episode(observations, np.array([0, 1])))
    read = read_data(dataset, model)
    assert read.read_as[0].startswith("states by the model's variables; ") and names in read.read_as[0]
    assert read.read_as[1] == "values mapped: action: 0=left, 1=right"
    assert read.counts.transition.tolist() == count_minari(dataset, model).transition.tolist()
    with pytest.raises(InputError, match="row 2: column 'action' holds 7, which `maps='action: …'` does not"):
        read_data(Dataset(Episode(observations, np.array([0, 7]))), model)
    with pytest.raises(InputError, match="the dataset has no episodes"):
        read_data(Dataset(), model)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_real_minari_dataset_is_counted_and_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    import minari
    from minari.data_collector.episode_buffer import EpisodeBuffer

    ends = {"terminations": np.zeros(3, bool), "truncations": np.array([0, 0, 1], bool)}
    episodes = [
        EpisodeBuffer(
            id=i,
            observations=np.array([[1], [2], [1], [2]]),
            actions=np.array([0, 0, 1]),
            rewards=np.zeros(3),
            infos={},
            **ends,
        )
        for i in range(2)
    ]
    minari.create_dataset_from_buffers(
        "corridor/recorded-v0",
        episodes,
        observation_space=CorridorEnv.observation_space,
        action_space=CorridorEnv.action_space,
        data_format="arrow",
    )
    counts = count_minari(load_minari("corridor/recorded-v0"), corridor())
    assert (counts.design.kind, counts.design.episodes, counts.steps) == (SamplingKind.ADAPTIVE, 2, 6)
    assert sorted(counts.transition[counts.transition > 0].tolist()) == [2, 2, 2]
    prism = tmp_path / "corridor.prism"
    prism.write_text(
        f"mdp const double p; module walk x : [0..{LENGTH}] init 1;\n"
        f"[step] x<{LENGTH} -> p : (x'=x+1) + 1-p : (x'=max(x-1,0));\n"
        f"[crawl] x<{LENGTH} -> 1/2 : (x'=x+1) + 1/2 : true;\n"
        f"[] x={LENGTH} -> true; endmodule\n"
    )
    arguments = ["learn", str(prism), "--param", "p=0.1:0.9", "--data", "minari:corridor/recorded-v0"]
    assert run([*arguments, "--prop", f"Pmax=? [ F x={LENGTH} ]", "--json"]) == 0
    assert '"robust_policy": {"lower":' in capsys.readouterr().out
    assert run([*arguments, "--prop", f"Pmax=? [ F x={LENGTH} ]", "--skip-invalid"]) == 0
    assert run([*arguments, "--prop", f"Pmax=? [ F x={LENGTH} ]", "--map", "action: 0=fly, 1=crawl"]) == 2
    assert "is not enabled in state (x=1)" in capsys.readouterr().err
    read = read_data(load_minari("corridor/recorded-v0"), corridor())
    assert read.counts.transition.tolist() == counts.transition.tolist()
    assert read.counts.design.ends.holds and not read.counts.design.order.holds
    with pytest.raises(InputError, match="cannot load the Minari dataset 'corridor/missing-v0'"):
        load_minari("corridor/missing-v0")
