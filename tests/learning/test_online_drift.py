"""A world that changes while it is explored: warn, stop, begin anew; and nothing where it does not."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import tightrope as tr
from online_cases import learner, source, truth, two_coins
from tightrope.cli.app import run
from tightrope.data.collection import GrowingCounts
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.online.exploration import STOPPED, OnDrift
from tightrope.learning.online.learner import OnlineLearner
from tightrope.learning.online.run import Journal, OnlineRun
from tightrope.model.policy import Policy

CHANGE = 120
EPISODES = 400
TIMES = ("seconds", "elapsed")


class ChangingCoins:
    """Tosses of two coins; from episode `CHANGE` on the better one is the worse. `told` are all tosses."""

    def __init__(self, change: int | None = CHANGE):
        self.change = change
        self.told: list[int] = []

    def collect(self, policy: Policy, data: GrowingCounts, last: int) -> None:
        while data.episodes < last and not data.update_is_due:
            number = data.number
            chances = (0.9, 0.2) if self.change is None or number < self.change else (0.1, 0.2)
            choice = int(policy.choice[0])
            heads = np.random.default_rng([7, number]).random() < chances[choice]
            data.add(np.array([2 * choice + int(not heads)], dtype=np.int64))
            assert len(self.told) == number, "no episode comes twice"
            self.told.append(2 * choice + int(not heads))


def coins(**asked: Any) -> OnlineLearner:
    return tr.online(two_coins().problem('Pmax=? [ F "goal" ]'), delta=0.01, sets="tied", **asked)


def timeless(records: list[dict[str, Any]], *, drift: bool = True) -> list[dict[str, Any]]:
    left_out = TIMES if drift else (*TIMES, "drift")
    return [{name: value for name, value in r.items() if name not in left_out} for r in records]


@pytest.mark.costly("test_restart_uses_fresh_data_alone")
def test_without_drift_a_guarded_run_is_the_run_without_guard() -> None:
    name = "betting(5)"
    plain = list(OnlineRun(learner(name, sets="expression"), source(name), 40, truth(name)).records())
    assert "drift" not in plain[-1]
    for mode in ("warn", "restart"):
        guarded = learner(name, sets="expression", on_drift=mode)
        records = list(OnlineRun(guarded, source(name), 40, truth(name)).records())
        assert timeless(records, drift=False) == timeless(plain)
        found = records[-1]["drift"]
        assert (found["alarm"], found["restarts"], found["since"]) == (False, 0, 0)
        assert found["events"] == records[-1]["steps"] == guarded.guard.monitor.events
    counted = np.zeros(guarded.model.transitions)
    guarded.data.listener = lambda transitions: np.add.at(counted, transitions, 1)
    before = guarded.data.counts().transition
    source(name).collect(guarded.policy(), guarded.data, 45)
    assert np.array_equal(counted, guarded.data.counts().transition - before), "told what is counted"


def test_warn_goes_on() -> None:
    with pytest.warns(UserWarning, match=r"after \d+ episodes: the data contradict the model since event"):
        records = list(OnlineRun(coins(on_drift="warn"), ChangingCoins(), EPISODES).records())
    plain = list(OnlineRun(coins(), ChangingCoins(), EPISODES).records())
    assert [r["guarantee"] for r in records] == [r["guarantee"] for r in plain]
    last = records[-1]
    assert last["episode"] == EPISODES and last["status"] == "as close as was asked"
    assert last["verdict"] == "contradicted" and last["drift"]["alarm"]
    assert CHANGE < last["drift"]["first_alarm"] < CHANGE + 150
    assert last["best_guarantee"] is None, "they do not hold simultaneously any more"
    assert all(r["best_guarantee"] is not None for r in records if not r["drift"]["alarm"])


def test_stop_ends_the_run_with_a_status() -> None:
    stopping = coins(on_drift="stop")
    with pytest.warns(UserWarning, match="the run stops here"):
        records = list(OnlineRun(stopping, ChangingCoins(), EPISODES).records())
    last = records[-1]
    assert CHANGE < last["episode"] < CHANGE + 150 and last["final"]
    assert last["status"] == STOPPED and stopping.is_stopped
    with pytest.raises(CannotCertify, match="stopped: the data contradict the model"):
        stopping.observe([(0, "first", 1)])


def test_restart_uses_fresh_data_alone() -> None:
    restarting, tossed = coins(on_drift=OnDrift("restart", alpha=0.01)), ChangingCoins()
    with pytest.warns(UserWarning, match="begins anew with the episodes that follow"):
        records = list(OnlineRun(restarting, tossed, EPISODES).records())
    last = records[-1]
    since = last["drift"]["since"]
    assert CHANGE < since < CHANGE + 150 and last["drift"]["restarts"] == 1 and not last["drift"]["alarm"]
    assert last["episode"] == EPISODES == restarting.episodes
    kept = np.bincount(tossed.told[since:], minlength=restarting.model.transitions)
    assert np.array_equal(restarting.data.counts().transition, kept)
    after = [r for r in records if r["drift"]["restarts"] == 1]
    assert (after[0]["episode"], after[0]["guarantee"]) == (since, 0.0), "it begins with nothing"
    assert last["best_guarantee"] == max(r["guarantee"] for r in after) <= 0.2
    assert max(r["guarantee"] for r in records) > 0.5
    fresh = coins()
    for transition in tossed.told[since:]:
        fresh.observe(np.array([transition], dtype=np.int64))
    assert fresh.preview().guarantee == last["guarantee"]
    assert restarting.result().guarantee == fresh.result().guarantee
    assert restarting.result().fit.verdict == "no evidence against it"


def test_in_python_episode_by_episode() -> None:
    tossed = ChangingCoins()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        list(OnlineRun(coins(on_drift="stop"), tossed, EPISODES).records())
    observing = tr.online(coins().problem, delta=0.01, sets="tied", on_drift="stop")
    with pytest.warns(UserWarning, match="the run stops here"):
        for transition in tossed.told:
            update = observing.observe(np.array([transition], dtype=np.int64))
            if observing.is_stopped:
                break
    assert update is not None and update.status == STOPPED
    assert observing.guard.monitor.first_alarm == observing.episodes, "one event per episode"
    for words, said in (
        ({"on_drift": "panic"}, "`on_drift` is 'panic'"),
        ({"on_drift": 3}, "`on_drift` is 3"),
        ({"on_drift": OnDrift("stop", alpha=2.0)}, "`alpha` is 2.0, not within"),
    ):
        with pytest.raises(InputError, match=said):
            coins(**words)


def restarted(directory: Path, episodes: int) -> list[dict[str, Any]]:
    """The records of a run that is kept in a directory, from its beginning."""
    tossed = ChangingCoins()
    with Journal(directory, {"model": "coins"}) as journal, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = OnlineRun(coins(on_drift="restart"), tossed, episodes, journal=journal)
        found = []
        for record in whole.records():
            tossed.told = [0] * whole.learner.data.number  # an earlier process was told
            found.append(record)
        return found


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return restarted(tmp_path_factory.mktemp("straight") / "run", EPISODES)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("pause", [60, CHANGE + 10, 250])
def test_a_run_that_was_interrupted_has_the_same_evidence(
    straight: list[dict[str, Any]], tmp_path: Path, pause: int
) -> None:
    last = timeless(restarted(tmp_path / "run", pause))[-1]
    resumed, expected = timeless(restarted(tmp_path / "run", EPISODES)), timeless(straight)
    if not last["final"]:  # an update at the end of a run: all rows were tested
        place = next(i for i, record in enumerate(expected) if record["update"] == last["update"])
        assert "not tested" in str(expected[place]["assumptions"]) and "all rows tested" in str(
            last["assumptions"]
        )
        expected[place] |= {"assumptions": last["assumptions"]}
    assert resumed == expected
    assert straight[-1]["drift"]["restarts"] == 1


class CoinsEnv(gymnasium.Env[Any, Any]):
    """The coins as an environment that changes after so many resets."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, 2, (1,), np.int64)
    resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        return np.array([0]), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        chance = (0.9, 0.2)[action] if self.resets < CHANGE else (0.1, 0.2)[action]
        return np.array([1 if self.np_random.random() < chance else 2]), 0.0, True, False, {}


MODEL = """mdp
const double p;
const double q;
module coins
  x : [0..2] init 0;
  [first] x=0 -> p:(x'=1) + (1-p):(x'=2);
  [second] x=0 -> q:(x'=1) + (1-q):(x'=2);
  [] x>0 -> true;
endmodule
label "goal" = x=1;
"""


@pytest.mark.usefixtures("empty_pictures")
def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "changing_envs", sys.modules[__name__])
    Path("coins.prism").write_text(MODEL)
    base = ["online", "coins.prism", "--prop", 'Pmax=? [ F "goal" ]', "--episodes", str(EPISODES)]
    base += ["--sets", "tied", "--env", "changing_envs:CoinsEnv", "--actions", "first,second"]
    assert run([*base, "--on-drift", "stop", "--json"]) == 1
    found = capsys.readouterr()
    last = json.loads(found.out.splitlines()[-1])
    assert last["status"] == STOPPED and last["drift"]["alarm"] and last["episode"] < CHANGE + 150
    assert "the data contradict the model since event" in found.err and STOPPED in found.err
    assert run([*base, "--verbose"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("CONTRADICTED: ") and "the data do not fit the model" in said
    assert "drift: the parameters since about event" in said
    assert run([*base, "--on-drift", "restart", "-o", "kept"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no alarm (a false one has probability at most 0.001); 1 restarts, the last after" in said
    document = json.loads(Path("kept/result.json").read_text())
    assert document["data"]["forgotten_episodes"] > CHANGE
    assert document["data"]["steps"] == EPISODES - document["data"]["forgotten_episodes"]
    assert run([*base, "--on-drift", "warn", "-o", "kept"]) == 2
    assert "its answer to drift is 'restart', not 'warn'" in capsys.readouterr().err
    assert run([*base, "--alpha", "0.1"]) == 2
    assert "--alpha requires --on-drift" in capsys.readouterr().err
