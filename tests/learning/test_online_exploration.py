"""Who collects the data of an online run, and when it may stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from online_cases import two_coins
from tightrope.cli.app import run as run_command
from tightrope.data.collection import GrowingCounts
from tightrope.data.counts import batch_ends
from tightrope.data.simulator import Simulator
from tightrope.errors import InputError
from tightrope.io.results import Interval
from tightrope.learning.online.exploration import Exploration, GapTarget
from tightrope.learning.online.learner import OnlineLearner
from tightrope.learning.online.run import OnlineRun, SimulatedEpisodes
from tightrope.model.policy import Policy
from tightrope.problem import Problem

GOAL = 'Pmax=? [ F "goal" ]'


def coin_learner(**asked: Any) -> OnlineLearner:
    return tr.online(Problem(two_coins(), GOAL), sets="expression", region="likelihood", **asked)


def tosses(seed: int = 1) -> SimulatedEpisodes:
    model = two_coins()
    stop = np.array([False, True, True])
    return SimulatedEpisodes(Simulator(model.instantiate([0.6, 0.3]), None, stop, 5, model.hash(), 1), seed)


def records(episodes: int, seed: int = 1, **asked: Any) -> tuple[OnlineLearner, list[dict[str, Any]]]:
    online = coin_learner(**asked)
    return online, list(OnlineRun(online, tosses(seed), episodes).records())


def test_the_policy_is_the_one_that_was_asked_for() -> None:
    for way in ("optimistic", "robust", "uniform"):
        online = tr.online(Problem(two_coins(), GOAL), sets="tied", explore=way, delta=0.1)
        for came_up in (1, 1, 2, 2, 2):  # the first coin: heads twice, tails three times
            online.observe(two_coins_toss(came_up))
        update = online.update()
        if way == "uniform":
            assert online.policy() == Policy.uniform(two_coins())
        else:  # one coin is seen to be good sometimes, the other may always be
            assert online.policy()["x=0"] == ("second" if way == "optimistic" else "first")
        assert (online.policy() == update.robust_policy) == (way == "robust")


def two_coins_toss(came_up: int) -> list[tuple[dict[str, int], str, dict[str, int]]]:
    return [({"x": 0}, "first", {"x": came_up})]


def test_unknown_ways_to_explore_are_refused() -> None:
    with pytest.raises(InputError, match="not one of designed, optimistic, robust, uniform"):
        tr.online(Problem(two_coins(), GOAL), explore="greedy")


@pytest.mark.parametrize(
    ("given", "interval", "reached"),
    [
        (0.1, Interval(0.4, 0.5), True),
        (0.1, Interval(0.4, 0.51), False),
        ("10%", Interval(1.0, 1.09), True),
        ("10%", Interval(0.9, 1.0), False),  # a tenth of the smaller end is less
        ("10%", Interval(-1.0, -0.92), True),
        ("50%", Interval(-0.1, 0.1), False),
        (5.0, Interval(3.0, np.inf), False),
    ],
)
def test_gaps_are_widths_or_shares_of_the_value(
    given: float | str, interval: Interval, reached: bool
) -> None:
    assert GapTarget.of(given).is_reached(interval) is reached


@pytest.mark.parametrize("given", [0, -1, "x", "5%%", "nan", "inf", True, "%"])
def test_gaps_that_mean_nothing_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match="not a positive number or percentage"):
        GapTarget.of(given)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("way", ["optimistic", "uniform"])
def test_a_run_stops_at_the_first_look_with_a_small_gap(way: str) -> None:
    online, found = records(3000, explore=way, until_gap=0.5)
    assert online.is_reached and online.episodes < 3000
    assert [record["reached"] for record in found] == [False] * (len(found) - 1) + [True]
    assert found[-1]["gap"] <= 0.5 < found[-2]["gap"]
    assert online.last_update is not None and online.last_update.interval is not None
    assert online.last_update.guarantee in tuple(online.last_update.interval)
    interval = online.result().robust.interval
    assert interval.width == pytest.approx(found[-1]["gap"], rel=1e-3)


def test_a_gap_that_is_out_of_reach_is_said_to_be() -> None:
    online, found = records(9, until_gap=1e-6)
    assert not online.is_reached and found[-1]["episode"] == 9 and found[-1]["reached"] is False


def test_batches_are_looked_at_where_no_choice_is_followed() -> None:
    online, found = records(40, explore="uniform")
    ends = batch_ends(40)
    assert [record["episode"] for record in found] == [0, *ends.tolist()]
    assert all("gap" not in record for record in found)
    followed = GrowingCounts(online.model, by_choice=True, by_batch=True)
    assert not followed.update_is_due


@pytest.mark.costly("test_a_run_stops_at_the_first_look_with_a_small_gap")
@pytest.mark.parametrize("way", ["designed", "uniform"])
def test_a_run_that_waits_for_a_gap_goes_on_where_it_was_stopped(way: str) -> None:
    whole, expected = records(50, explore=way, until_gap=1e-3)
    half, _ = records(23, explore=way, until_gap=1e-3)
    state = half.state()  # at the last look, before the 23rd episode
    again = coin_learner(explore=way, until_gap=1e-3)
    again.restore(state)
    assert again.policy() == half.policy()
    assert again.last_update is not None and half.last_update is not None
    assert again.last_update.interval == half.last_update.interval
    rest = list(OnlineRun(again, tosses(), 50).records())[1:]
    keys = ("episode", "steps", "guarantee", "gap", "reached")
    tail = [
        [record[key] for key in keys] for record in expected if record["episode"] > half.last_update.episode
    ]
    assert [[record[key] for key in keys] for record in rest] == tail
    assert whole.episodes == again.episodes == 50


MODEL = """\
dtmc
const double p;
module coin
  x : [0..2] init 0;
  [] x=0 -> p : (x'=1) + 1-p : (x'=2);
  [] x>0 -> true;
endmodule
label "goal" = x=1;
"""


def said(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> Any:
    assert run_command(["online", *arguments]) == code
    return capsys.readouterr()


def test_the_command_stops_at_the_gap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "coin.prism"
    path.write_text(MODEL)
    asked = (str(path), "--prop", 'P=? [ F "goal" ]', "--at", "p=0.5", "--explore", "uniform", "--json")
    out = said(capsys, 0, *asked, "--until-gap", "0.2", "--sets", "tied").out
    last = json.loads(out.splitlines()[-1])
    assert last["reached"] is True and last["gap"] <= 0.2 and last["episode"] < 2000
    err = said(capsys, 1, *asked, "--until-gap", "1%", "--max-episodes", "50", "--sets", "tied").err
    assert "the gap 1% was not reached" in err and "after 50 episodes" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give either --episodes N or --until-gap E"),
        (("--episodes", "5", "--until-gap", "0.1"), "give either --episodes N or --until-gap E"),
        (("--episodes", "5", "--max-episodes", "9"), "--max-episodes requires --until-gap"),
        (("--until-gap", "small"), "not a positive number or percentage"),
        (("--episodes", "5", "--explore", "greedy"), "greedy"),
    ],
)
def test_wrong_questions_are_refused(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in said(capsys, 2, "bench:betting(5)", *arguments).err


def test_every_way_has_a_word() -> None:
    assert [way.value for way in Exploration] == ["designed", "optimistic", "robust", "uniform"]
