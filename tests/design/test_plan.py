"""`plan`: forecasts against what comes, every kind of question, and questions without an answer.

Also of `cli/plan.py`, `design/more_of_same.py`, `design/planner.py`.
"""

from __future__ import annotations

import io
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import tightrope as tr
from effort import WHOLE
from tightrope.cli.app import run
from tightrope.data.collection import MixedEpisodes, append_episodes
from tightrope.data.counts import batch_ends
from tightrope.data.design import find_decided_states
from tightrope.design.directions import Directions, Information, expression_directions, find_directions
from tightrope.design.forecast import (
    Corrected,
    Curve,
    Gap,
    Past,
    episodes_until,
    plausible_points,
    smallest,
    total_width,
)
from tightrope.design.plan import PlanStatus, plan_document
from tightrope.io.answers import PlanDocument, round_forecast
from tightrope.io.coding import read_document
from tightrope.loading import Benchmark
from tightrope.report.plan_page import forecast_figure
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import prequential

NAME = "aircraft(5,3)"
OPTIONS: dict[str, Any] = {"delta": 0.01, "region": "likelihood"}


@cache
def bench() -> Benchmark:
    return tr.benchmark(NAME)


@cache
def simulator(policy: tr.Policy | None = None) -> tr.Simulator:
    stop = find_decided_states(bench().problem.objective, bench().model.states)
    return tr.Simulator(bench().at_truth.model, policy, stop, model_hash=bench().model.hash(), threads=1)


@cache
def pilot(episodes: int = 150) -> tr.Counts:
    return simulator().episodes(episodes, seed=3)


@cache
def planned() -> tr.Plan:
    return tr.plan(bench().problem, pilot(), gap=0.06, **OPTIONS)


@cache
def coin() -> Any:
    """A choice to toss one coin or another, then stop."""
    parameters = tr.Parameters.box(p=(0, 1), q=(0, 1))
    p, q = parameters.symbols()
    rows = [
        (0, "left", {1: p, 2: 1 - p}),
        (0, "right", {1: q, 2: 1 - q}),
        (1, "", {1: 1}),
        (2, "", {2: 1}),
    ]
    return tr.build_from_rows(rows, parameters, labels={"heads": [1]})


def tossed(episodes: int, policy: tr.Policy | None = None, seed: int = 1) -> tr.Counts:
    mdp = coin().instantiate(p=0.7, q=0.4)
    return tr.Simulator(mdp, policy, model_hash=coin().hash(), threads=1).episodes(episodes, seed)


# --- widths and curves ---------------------------------------------------------------------


def test_widths_meet_the_domain() -> None:
    information = Information.at(coin(), np.array([0.9, 0.5]))
    matrix, level = np.array([[30.0, 12.0], [12.0, 20.0]]), 4.0
    wanted = Directions.merged(np.array([[1.0, 0.3], [-0.2, 1.0]]), np.array([1.0, 2.0]))
    grid = np.stack(np.meshgrid(np.linspace(-0.9, 0.1, 801), np.linspace(-0.5, 0.5, 801)), axis=-1).reshape(
        -1, 2
    )
    inside = grid[np.einsum("ni,ij,nj->n", grid, matrix, grid) <= level]
    brute = sum(w * np.ptp(inside @ v) for v, w in zip(wanted.vector, wanted.weight, strict=True))
    found = total_width(information, wanted, matrix, level)
    assert found == pytest.approx(brute, rel=0.01)
    assert found < 0.95 * 2 * math.sqrt(level) * wanted.value(matrix)
    far = total_width(information, wanted, 1000 * matrix, level)
    assert far == pytest.approx(2 * math.sqrt(level) * wanted.value(1000 * matrix), rel=1e-9)


def test_expression_directions_are_what_pouring_finds() -> None:
    """Three successors, each probability with an interval of its own: a linear program per choice."""
    parameters = tr.Parameters.box(p=(0.1, 0.4), q=(0.1, 0.4))
    p, q = parameters.symbols()
    rows = [(0, "go", {1: p, 2: q, 3: 1 - p - q}), *((s, "", {s: 1}) for s in (1, 2, 3))]
    model = tr.build_from_rows(
        rows, parameters, labels={"end": [1, 2, 3]}, state_rewards={"gain": [0.0, 5.0, 1.0, 2.0]}
    )
    objective = tr.Problem(model, 'R{"gain"}max=? [ F "end" ]', terminal_reward="gain").objective
    information, matrix = Information.at(model, np.array([0.3, 0.2])), np.array([[9.0, 2.0], [2.0, 5.0]])
    found = expression_directions(information, objective, tr.Policy.uniform(model), matrix)
    assert found is not None
    half = np.sqrt(np.einsum("ei,ij,ej->e", information.slope, np.linalg.inv(matrix), information.slope))
    half = half[model.expression[:3]]
    best = linprog([-5.0, -1.0, -2.0], A_eq=np.ones((1, 3)), b_eq=[0.0], bounds=[(-h, h) for h in half])
    assert found.value(matrix) == pytest.approx(-best.fun, rel=1e-9)


def test_the_level_of_now_is_that_of_the_region() -> None:
    counts = append_episodes(pilot(), simulator(), 50, seed=4)
    model = bench().model
    outcomes = Outcomes.of(model)
    evidence = prequential(outcomes, counts, 0.01)
    information = Information.at(model, evidence.estimate)
    past = Past.of(information, counts, evidence)
    curve = Curve(information, _directions(information), past, 0.01, np.eye(information.size), 5.0)
    matrix, level, spread = curve.region(0)
    used = evidence.weight > 0
    likelihood = float(evidence.weight[used] @ np.log(information.probability[used]))
    assert level == pytest.approx(2 * (likelihood - evidence.threshold), rel=1e-6)
    np.testing.assert_allclose(matrix, information.of_counts(evidence.weight), rtol=1e-9)
    assert spread == 0.0


def _directions(information: Information) -> Directions:
    policy = tr.Policy.uniform(bench().model)
    found = find_directions(information, bench().problem.objective, policy, coupled=True)
    assert found is not None
    return found


@pytest.mark.costly("test_a_plan_says_how_many_and_how")
def test_the_level_to_come_is_right_on_average() -> None:
    """K after 20 times the pilot, over many continuations: the forecast is their mean, the spread theirs."""
    model, outcomes = coin(), Outcomes.of(coin())
    mdp = model.instantiate(p=0.7, q=0.4)
    drawn = tr.Simulator(mdp, None, model_hash=model.hash(), threads=1)
    forecast, spreads, came = [], [], []
    for seed in range(24):
        begin = append_episodes(drawn.episodes(20, seed), drawn, 10, seed)
        evidence = prequential(outcomes, begin, 0.01)
        weight = np.bincount(
            outcomes.expression, weights=outcomes.pooled(begin), minlength=len(model.expressions)
        )
        information = Information.at(
            model, Information.at(model, evidence.estimate).maximiser.estimate(weight)
        )
        past = Past.of(information, begin, evidence)
        visits = np.array([0.5, 0.5, 0.0, 0.0])
        wanted = Directions.merged(np.eye(2), np.ones(2))
        curve = Curve(information, wanted, past, 0.01, information.of_visits(visits), 1.0)
        _, level, spread = curve.region(570)
        forecast.append(level)
        spreads.append(2 * spread)
        later = append_episodes(begin, drawn, 570, seed + 100)
        evidence = prequential(outcomes, later, 0.01)
        point = Information.at(model, evidence.estimate)
        used = evidence.weight > 0
        likelihood = float(evidence.weight[used] @ np.log(point.probability[used]))
        came.append(2 * (likelihood - evidence.threshold))
    error = np.array(came) - np.array(forecast)
    assert abs(error.mean()) < 3 * error.std() / math.sqrt(len(error)) + 0.05 * np.mean(came)
    assert np.mean(np.abs(error) <= 2 * np.array(spreads)) >= 0.9
    assert np.mean(spreads) < 2.5 * error.std()


def test_plausible_points_are_normal_within_the_domain() -> None:
    """One direction is known well, of the other the domain says more than the data."""
    model = coin()
    information = Information.at(model, np.array([0.5, 0.5]))
    rows, bounds = information.maximiser.faces
    points = np.concatenate(
        [plausible_points(information, np.diag([10_000.0, 0.01 * k])) for k in range(1, 30, 2)]
    )
    assert np.all(points @ rows.T < bounds)
    extent = (bounds[: len(bounds) // 2] + bounds[len(bounds) // 2 :])[:2]
    assert points[:, 0].std() == pytest.approx(0.01, rel=0.3)
    assert points[:, 1].std() == pytest.approx(extent[1] / math.sqrt(12), rel=0.2)
    np.testing.assert_allclose(points.mean(axis=0), 0.5, atol=0.02)  # pairs are mirrored


def test_a_forecast_knows_where_else_the_estimate_may_be() -> None:
    """Elsewhere the directions weigh four times as much on one side, a quarter on the other."""
    model = coin()
    information = Information.at(model, np.array([0.5, 0.5]))
    drawn = tr.Simulator(model.instantiate(p=0.5, q=0.5), None, model_hash=model.hash(), threads=1)
    counts = drawn.episodes(400, 1)
    past = Past.of(information, counts)
    here = Directions.merged(np.eye(2), np.ones(2))
    beside = [
        (information.point + 0.01, Directions(here.vector, factor * here.weight)) for factor in (4.0, 0.25)
    ]
    matrix = information.of_visits(np.array([0.5, 0.5, 0.0, 0.0]))
    plain = Curve(information, here, past, 0.01, matrix, 1.0)
    aware = Curve(information, here, past, 0.01, matrix, 1.0, beside)
    assert aware.edge(0, 0) == plain.edge(0, 0)  # the data so far are what they are
    assert aware.edge(4096, 0) == pytest.approx(plain.edge(4096, 0), rel=1e-9)
    assert aware.edge(4096, 1) < plain.edge(4096, 1) / 4
    assert aware.edge(4096, 2) > plain.edge(4096, 2) * 4


class _Root:
    def __call__(self, episodes: float) -> Gap:
        return Gap(*(self.edge(episodes, which) for which in range(3)))

    def edge(self, episodes: float, which: int) -> float:
        return (1.0, 0.5, 2.0)[which] / math.sqrt(episodes + 1)


def test_smallest_and_inverse() -> None:
    assert smallest(lambda n: n >= 1000) == pytest.approx(1000, rel=0.01)
    assert smallest(lambda n: True) == 0.0
    assert smallest(lambda n: False) == math.inf
    until = episodes_until(_Root(), 0.01)
    assert until == pytest.approx((10_000, 2_500, 40_000), rel=0.02)


@pytest.mark.parametrize("now", [0.7, 1.0, 4.0])
def test_forecasts_begin_with_the_gap_of_now(now: float) -> None:
    corrected = Corrected(_Root(), now)
    assert corrected.edge(0, 0) == pytest.approx(now)
    far = corrected(10_000)
    assert far.expected == pytest.approx(0.01, rel=4e-4)
    near = corrected(1)
    assert near.low < near.expected < near.high


# --- more episodes after those that there are ------------------------------------------------


@pytest.mark.parametrize("first", [8, 20, 23])
def test_appended_batches_end_where_those_of_one_run_do(first: int) -> None:
    together = append_episodes(
        tossed(first), tr.Simulator(coin().instantiate(p=0.7, q=0.4), model_hash=coin().hash()), 30, 5
    )
    assert together.batches is not None
    sizes = [int(count.sum()) for _, count in together.batches]
    assert np.cumsum(sizes).tolist() == batch_ends(first + 30).tolist()
    assert (together.design.kind.value, together.design.episodes) == ("adaptive", first + 30)
    assert together.design.planned is None and together.steps == first + 30


# --- questions and answers -------------------------------------------------------------------


def test_a_plan_says_how_many_and_how() -> None:
    plan = planned()
    assert plan.status is PlanStatus.PLANNED and 0 < plan.gap_asked < plan.gap_now
    names = [one.name for one in plan.strategies]
    assert names == ["designed", "robust", "optimistic", "uniform"]
    for one in plan.strategies:
        assert one.low <= one.episodes <= one.high
        assert one.curve(one.episodes).expected == pytest.approx(plan.gap_asked, rel=0.1)
        assert np.all(np.diff(one.points[:, 0]) > 0)
    assert plan.episodes <= min(one.episodes for one in plan.strategies) * 1.02
    assert plan.exploration is not None and plan.exploration.optimality <= 0.01
    assert sum(plan.exploration.shares) == pytest.approx(1.0)
    assert plan.next_episodes == 130 or plan.next_episodes < plan.episodes
    assert plan.hangs_on and not plan.unidentifiable
    assert plan.exploration.policies and all(
        policy.made_from == pilot().provenance for policy in (plan.policy, *plan.exploration.policies)
    )


def test_what_comes_is_what_was_forecast() -> None:
    plan = planned()
    counts = append_episodes(pilot(), simulator(plan.policy), round(plan.episodes), seed=7)
    came = tr.learn(bench().problem, counts, **OPTIONS).robust.interval.width
    expected = plan.curve(plan.episodes)
    assert expected.low <= came <= expected.high


@pytest.fixture
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts look at two plausible points: for tests of what is asked, not of how sure the answer is."""
    monkeypatch.setattr("tightrope.design.forecast.PAIRS", 1)


@pytest.mark.usefixtures("few_points")
def test_other_aims() -> None:
    small = tr.benchmark("aircraft(3,2)")
    problem = small.problem
    stop = find_decided_states(problem.objective, small.model.states)
    simulated = tr.Simulator(small.at_truth.model, None, stop, model_hash=small.model.hash(), threads=1)
    data = simulated.episodes(150, seed=3)
    budget = tr.plan(problem, data, budget=3000, **OPTIONS)
    assert budget.episodes == 3000 and budget.gap_asked is None
    assert budget.curve(3000).expected < budget.gap_now
    value = budget.value
    beyond = tr.plan(problem, data, above=value + 0.02, **OPTIONS)
    assert beyond.status is PlanStatus.UNLIKELY and "cannot raise the guarantee beyond it" in beyond.notes[0]
    wide = tr.plan(problem, data, gap="900%", **OPTIONS)
    assert wide.gap_asked == pytest.approx(9 * value) and wide.status is PlanStatus.REACHED
    if not WHOLE:
        return
    close = tr.plan(problem, data, optimality=0.05, **OPTIONS)
    assert close.status is PlanStatus.PLANNED and close.gap_now >= budget.gap_now / 2
    mine = tr.plan(problem, data, budget=3000, policy=tr.Policy.uniform(small.model), **OPTIONS)
    assert [one.name for one in mine.strategies][:2] == ["designed", "given"]
    above = tr.plan(problem, data, above=value - 0.04, **OPTIONS)
    assert above.gap_asked == pytest.approx(0.08, rel=1e-3)


def known_or_cheap() -> tuple[tr.ParametricMDP, tr.Simulator]:
    """Pay 5 for certain, or 10 with an unknown probability, which is 0.25."""
    parameters = tr.Parameters.box(p=(0.0, 1.0))
    (p,) = parameters.symbols()
    rows = [(0, "safe", {3: 1}), (0, "risky", {1: p, 2: 1 - p}), (1, "pay", {3: 1}), (2, "go", {3: 1})]
    rows.append((3, "end", {3: 1}))
    costs = {"cost": [5, 0, 10, 0, 0]}
    model = tr.build_from_rows(rows, parameters, choice_rewards=costs, labels={"done": [3]})
    return model, tr.Simulator(model.instantiate(p=0.25), model_hash=model.hash())


@pytest.mark.usefixtures("few_points")
@pytest.mark.parametrize("path", ['F "done"', "C<=3"])
def test_a_guarantee_is_that_of_the_policy_which_data_come_to_choose(path: str) -> None:
    """20 episodes guarantee 5 by the safe choice, whose value no data change; 2,000 guarantee 3.1."""
    model, simulated = known_or_cheap()
    problem = tr.Problem(model, f'R{{"cost"}}min=? [ {path} ]')
    pilot, later = (simulated.episodes(number, seed=3) for number in (20, 2000))
    assert tr.learn(problem, pilot, delta=0.05).guarantee == pytest.approx(5.0, abs=1e-6)
    assert tr.learn(problem, later, delta=0.05).guarantee < 3.2
    found = tr.plan(problem, pilot, above=4.7, delta=0.05)
    assert found.status is PlanStatus.PLANNED and found.value < 4.5 and 10 < found.episodes < 100_000
    assert found.target.text == "a guarantee of at most 4.7"
    near = tr.plan(problem, pilot, above=4.0, delta=0.05)
    assert near.status is PlanStatus.UNLIKELY and "cannot raise the guarantee beyond it" in near.notes[0]
    assert tr.plan(problem, pilot, above=5.01, delta=0.05).status is PlanStatus.REACHED
    if path != "C<=3":
        never = tr.plan(problem, pilot, above=1.0, delta=0.05)
        assert never.status is PlanStatus.UNREACHABLE


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sets", ["coupled", "expression"])
def test_the_formula_is_that_of_the_sets(sets: str) -> None:
    """Over coupled sets `learn` would take a slab, and a plan is for likelihood regions all the same."""
    asked = OPTIONS if sets == "expression" else {"delta": OPTIONS["delta"]}
    plan = tr.plan(bench().problem, pilot(), budget=4000, sets=sets, **asked)
    assert plan.decisions.region is not None and plan.decisions.region.value == "likelihood"
    counts = append_episodes(pilot(), simulator(plan.policy), 4000, seed=9)
    came = tr.learn(bench().problem, counts, sets=sets, **OPTIONS).robust.interval.width
    expected = plan.curve(4000)
    assert expected.low <= came <= expected.high


@pytest.mark.costly("test_the_formula_is_that_of_the_sets")
def test_polytopes_are_forecast_by_their_own_intervals() -> None:
    """Few expressions, so that the region is the polytope: heads of one coin at most."""
    problem = coin().problem('Pmax=? [ F "heads" ]')
    plan = tr.plan(problem, tossed(100), delta=0.01, gap=0.05)
    assert plan.decisions.region is not None and plan.decisions.region.value == "polytope"
    counts = append_episodes(
        tossed(100),
        tr.Simulator(coin().instantiate(p=0.7, q=0.4), plan.policy, model_hash=coin().hash()),
        round(plan.episodes),
        3,
    )
    came = tr.learn(problem, counts, delta=0.01).robust.interval.width
    expected = plan.curve(plan.episodes)
    assert expected.low <= came <= expected.high
    assert plan.policy.probability[0] > 0.6, "tosses of the better coin are what is needed"


def test_a_direction_without_information_is_named() -> None:
    """An episode of one step never sees the second coin, on which the value depends."""
    parameters = tr.Parameters.box(p=(0, 1), q=(0.2, 0.9))
    p, q = parameters.symbols()
    rows = [(0, "", {1: p, 2: 1 - p}), (1, "", {3: q, 2: 1 - q}), (2, "", {2: 1}), (3, "", {3: 1})]
    problem = tr.build_from_rows(rows, parameters, labels={"end": [3]}).problem('Pmax=? [ F "end" ]')
    data = [[(0, "", 1)], [(0, "", 2)], [(0, "", 1)], [(0, "", 2)], [(0, "", 1)]] * 100
    plan = tr.plan(problem, data, delta=0.01, gap=0.01, within_cap=1, region="likelihood", refuted=True)
    assert plan.status is PlanStatus.UNREACHABLE and plan.unidentifiable == ("q",)


LOOP = """mdp
const double p;
module m
  s : [0..2] init 0;
  [try] s=0 -> p:(s'=1) + (1-p):(s'=2);
  [again] s=2 -> (s'=0);
  [rest] s=2 -> (s'=2);
  [end] s=1 -> true;
endmodule
label "goal" = s=1;
rewards "tries" [try] true : 1; endrewards
"""


def test_no_guarantee_yet_and_no_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One try that failed: tries may be needed for ever, and exploring is all that can be said."""
    (tmp_path / "loop.prism").write_text(LOOP)
    problem = tr.load(str(tmp_path / "loop.prism")).problem('R{"tries"}min=? [ F "goal" ]')
    data = tr.read_data([[(0, "try", 2)]], problem.model, states="index")
    with pytest.raises(tr.InputError, match="could be collected forever"):
        tr.plan(problem, data, gap=1.0, region="likelihood")
    plan = tr.plan(problem, data, gap=1.0, region="likelihood", within_cap=20)
    assert plan.status is PlanStatus.EXPLORE and plan.episodes == math.inf
    assert plan.policy.probability[1] == 1.0, "back to where something can be learned"
    with pytest.raises(tr.InputError, match="no forecast"):
        plan.curve(10)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "a plan needs an aim"),
        ({"gap": 0.1, "budget": 5}, "one aim"),
        ({"gap": "many"}, "neither a width nor a share"),
        ({"gap": -1}, "must be positive"),
        ({"budget": 2.5}, "not a whole number"),
        ({"gap": 0.1, "sets": "tied", "region": None}, "width of tied sets"),
        ({"gap": 0.1, "region": "slab"}, "width of a slab"),
        ({"gap": 0.1, "within_cap": 0}, "at least one step"),
        ({"gap": 0.1, "explore": 1}, "no argument `explore`"),
    ],
)
def test_wrong_questions(words: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.plan(bench().problem, pilot(), **{**OPTIONS, **words})


# --- the command -----------------------------------------------------------------------------


def test_policies_are_drawn_per_episode_by_their_shares() -> None:
    model = coin()
    left, right = (tr.Policy.of_choices(model, np.array([first, 2, 3])) for first in (0, 1))
    truth = tr.Simulator(model.instantiate(p=0.7, q=0.4), None, model_hash=model.hash(), threads=1)
    mixed = MixedEpisodes(truth, (0.3, 0.7), (left, right))
    counts = mixed.episodes(4000, seed=5)
    assert counts.visits[:2].sum() == 4000 and abs(int(counts.visits[0]) - 1200) < 4 * math.sqrt(840)
    assert counts.batches is not None and len(counts.batches) == len(truth.episodes(4000, 5).batches or ())
    for batch in (2, len(counts.batches)):  # every batch has its share, not the first the first policy's
        assert counts.through(batch).sum() > 0
    tossed_right = [int(counts.through(batch)[2:4].sum()) for batch in range(1, len(counts.batches) + 1)]
    assert 0 < tossed_right[len(tossed_right) // 2] < tossed_right[-1]
    again = append_episodes(tossed(50), mixed, 100, 5)
    assert (again.design.episodes, again.design.kind.value) == (150, "adaptive")
    with pytest.raises(tr.InputError, match="not to 1"):
        MixedEpisodes(truth, (0.2, 0.7), (left, right))


def _links(page: str) -> str:
    """What a page would load."""
    return " ".join(re.findall(r'(?:src|href)="([^"]*)"', page))


def test_the_forecast_is_drawn() -> None:
    document = plan_document(planned())
    drawn = io.BytesIO()
    figure = forecast_figure(document)
    figure.savefig(drawn, format="png")
    assert drawn.getvalue().startswith(b"\x89PNG") and len(drawn.getvalue()) > 10_000
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    for one in planned().strategies:
        assert f"{one.name}: {round_forecast(one.episodes)} more" in labels


@pytest.mark.usefixtures("empty_pictures", "built_once")
def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = f"bench:{NAME}"
    assert run(["sample", model, "--episodes", "150", "--seed", "3", "-o", "pilot.parquet"]) == 0
    asked = ["plan", model, "--data", "pilot.parquet", "--delta", "0.01", "--region", "likelihood"]
    capsys.readouterr()
    assert run([*asked, "--gap", "0.06", "-o", "plan"]) == 0
    printed = capsys.readouterr().out
    assert "episodes with plan/exploration-policy.json, then plan again" in printed
    assert "designed policy" in printed and "uniform" in printed
    assert printed.startswith("PROVED: gap ")
    found = read_document(tmp_path / "plan" / "plan.json", PlanDocument, "tightrope plan", 2)
    assert found.verdict == "proved" and [one.name for one in found.assumptions[-2:]] == ["model", "episodes"]
    assert found.forecast and found.strategies[0].episodes == planned().episodes
    assert {"gap_now", "gap_asked", "strategies", "design", "directions", "unidentifiable", "next"} <= set(
        json.loads((tmp_path / "plan" / "plan.json").read_text())
    )
    for suffix in ("pdf", "svg", "png"):
        assert (tmp_path / "plan" / f"forecast.{suffix}").stat().st_size > 500
    assert tr.Policy(bench().model, tmp_path / "plan" / "exploration-policy.json") == planned().policy
    assert len(list((tmp_path / "plan" / "policies").iterdir())) == len(planned().exploration.shares)  # type: ignore[union-attr]
    assert run(["report", "plan"]) == 0
    page = (tmp_path / "plan" / "report.html").read_text()
    assert "This is a forecast, not a guarantee" in page and "<svg" in page and "http" not in _links(page)
    assert f"<td>{round_forecast(planned().episodes)}</td>" in page and "0.06" in page
    capsys.readouterr()
    assert run(["report", "plan/plan.json", "--figures", "drawn"]) == 2 and not (tmp_path / "drawn").exists()
    assert "is a plan" in capsys.readouterr().err
    more = ["--policy", "plan/exploration-policy.json", "--episodes", "40", "--append", "pilot.parquet"]
    assert run(["sample", model, *more, "--seed", "3"]) == 0
    counts = tr.read_data("pilot.parquet", bench().model).counts
    assert (counts.design.episodes, counts.design.kind.value) == (190, "adaptive")
    alone = ["--policy", "plan/exploration-policy.json", "--episodes", "40", "-o", "more.parquet"]
    assert run(["sample", model, *alone]) == 0
    assert tr.read_data("more.parquet", bench().model).counts.design.kind.value == "trajectories"
    beside = tr.read_data(["pilot.parquet", "more.parquet"], bench().model).counts.design
    assert beside.kind.value == "adaptive", "whoever chose the policy had seen the pilot"
    drawn = ["sample", model, "--policy", "plan", "--episodes", "40", "-o", "drawn.parquet"]
    assert run(drawn) == 0 and run([*drawn, "--raw", "--overwrite"]) == 2
    assert tr.read_data("drawn.parquet", bench().model).counts.design.episodes == 40
    assert run([*drawn[:3], ".", *drawn[4:], "--overwrite"]) == 2
    assert "no plan with a policy" in capsys.readouterr().err
    assert run(["sample", model, *more, "--raw"]) == 2 and run(["sample", model, "--episodes", "3"]) == 2
    capsys.readouterr()
    monkeypatch.setattr("tightrope.design.forecast.PAIRS", 1)
    assert run([*asked, "--gap", "1e-7", "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["status"] == "beyond a thousand million episodes"
    assert "even with designed exploration" in captured.err
    assert run([*asked, "--gap", "0.1", "--above", "0.3"]) == 2
    assert "--gap, --optimality, --above and --budget" in capsys.readouterr().err


def test_a_refuted_model_is_not_planned_for() -> None:
    """Two coins that the model ties differ: more data do not help, and the first words say so."""
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "toss", {2: p, 3: 1 - p}), (2, "", {2: 1}), (3, "", {3: 1})]
    problem = tr.build_from_rows(rows, parameters, labels={"lost": [3]}).problem('Pmin=? [ F "lost" ]')
    rng = np.random.default_rng(7)
    episodes = []
    for _ in range(800):
        second = (1, "toss", 3 if rng.random() < 0.9 else 2)
        episodes.append([(0, "toss", 1), second] if rng.random() < 0.8 else [(0, "toss", 2)])
    with pytest.raises(tr.CannotCertify, match="nothing to plan: the data contradict the model") as caught:
        tr.plan(problem, episodes, gap=0.01, **OPTIONS)
    assert "tightrope doctor" in str(caught.value)
    outcome = tr.plan(problem, episodes, gap=0.01, refuted=True, **OPTIONS)
    assert outcome.verdict.word.value == "contradicted"
    assert outcome.headline() == "CONTRADICTED: the data do not fit the model"
