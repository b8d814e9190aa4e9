"""Costs in logs: exact sums, intervals that hold at all times, rows of the region, and what is refused.

Also of `regions/costs.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from places import TESTS
from tightrope.cli.app import run
from tightrope.data.costs import CostNoise, CostSums
from tightrope.errors import InputError
from tightrope.model.structure import ParametricReward
from tightrope.statistics.costs import CostEvents, Group, Spread, interval, spread_evidence

INVENTORY = TESTS / "models" / "rewards" / "inventory.prism"
RANGES = {"d": (0.2, 0.6), "h": (0.1, 0.5)}
ASKED = 'R{"cost"}min=? [ F "end" ]'
ARGUMENTS = [str(INVENTORY), "--param", "d=0.2:0.6,h=0.1:0.5", "--prop", ASKED]


@pytest.fixture(scope="module")
def model() -> tr.ParametricMDP:
    found = tr.load(INVENTORY, params=RANGES)
    assert isinstance(found, tr.ParametricMDP)
    return found


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """What `sample --costs` writes, as a table without anything else that the file says."""
    file = tmp_path_factory.mktemp("log") / "log.csv"
    more = ["--at", "d=0.4,h=0.25", "--episodes", "400", "--seed", "5", "--raw", "--states", "variables"]
    assert run(["sample", *ARGUMENTS, *more, "--costs", "two-point:0,4", "-o", str(file)]) == 0
    return pd.read_csv(file, comment="#")


@pytest.fixture(scope="module")
def learned(model: tr.ParametricMDP, log: pd.DataFrame) -> Any:
    return tr.learn(model.problem(ASKED), log, delta=0.05, cost_range=(0, 4), region="polytope")


def test_sums_are_exact_however_the_log_is_cut() -> None:
    random = np.random.default_rng(1)
    cost = random.normal(size=400) * 10.0 ** random.integers(-9, 9, size=400)
    of = random.integers(0, 4, size=400)
    whole = CostSums.observed(of, cost)
    for transition, sums in whole.of.items():
        own = [Fraction(value) for value in cost[of == transition].tolist()]
        assert sums == (len(own), sum(own), sum(value * value for value in own))
    assert CostSums.observed(of[:7], cost[:7]) + CostSums.observed(of[7:], cost[7:]) == whole


def test_an_interval_excludes_what_its_supermartingale_excludes() -> None:
    """Against the definition in plain doubles: inside no process has reached its level, outside one has."""
    random = np.random.default_rng(2)
    for spread, costs in (
        (Spread(reach=Fraction(2)), 2 * random.random(300)),
        (Spread(deviation=Fraction(1)), random.normal(0.7, 1, size=300)),
    ):
        count, total, square = CostSums.observed(np.zeros(300, np.int64), costs).of[0]
        group = Group(Fraction(1), Fraction(0), count, total, square)
        low, high = interval([group], spread, Fraction(1, 20), (Fraction(-50), Fraction(50)))
        ends = [_largest(costs, float(end), spread) for end in (low, high)]
        assert ends == pytest.approx([0, 0], abs=1e-6) and low < costs.mean() < high
        assert _largest(costs, float(low) - 0.01, spread) > 0 > _largest(costs, float(low) + 0.01, spread)
        assert float(high - low) < 5.2 * costs.std() / np.sqrt(300) * 1.6


def _largest(costs: np.ndarray[Any, Any], mean: float, spread: Spread) -> float:
    """The largest exponent minus its level, of both signs."""
    best = -np.inf
    for scale in range(26):
        step, squared, fixed = (float(one) for one in spread.terms(Fraction(1), scale))
        level = np.log(2 * (scale + 1) * (scale + 2) / 0.05)
        error = costs - mean
        for sign in (1, -1):
            best = max(best, float((sign * step * error - squared * error**2 - fixed).sum() - level))
    return best


def test_rewards_up_to_a_factor_and_a_constant_are_one_event(model: tr.ParametricMDP) -> None:
    reward = model.rewards["cost"]
    assert isinstance(reward, ParametricReward)
    events = CostEvents.of(reward, model.structure)
    table = events.expressions(model.parameters.names)
    assert [table.text(event) for event in range(len(table))] == ["3*h", "4*d"]
    parts = {reward.expressions.text(row): part for row, part in events.parts.items()}
    assert parts["h + 1"] == (0, Fraction(1, 3), 1) and parts["3*h"] == (0, 1, 0)


def test_costs_narrow_what_no_probability_says(
    model: tr.ParametricMDP, log: pd.DataFrame, learned: Any
) -> None:
    problem = model.problem(ASKED)
    without = tr.learn(problem, log, delta=0.05, region="polytope")
    assert any("costs in the data are not used" in note for note in without.notes)
    assert without.widths.parameter_upper[1] == 0.5 and learned.widths.parameter_upper[1] < 0.36
    assert learned.interval.width < 0.6 * without.interval.width
    value = tr.solve(problem.at(d=0.4, h=0.25), policy=learned.policy).at_initial_states
    assert learned.interval.lower <= value.lower and value.upper <= learned.interval.upper
    assert learned.ledger.delta == 0.05 and learned.ledger.of_costs == 0.025
    lines = " ".join(learned.ledger.lines)
    assert "δ = 0.025 of 0.05" in lines and "costs: δ = 0.025 for 2 events" in lines
    assert "assuming that costs lie within [0, 4]" in lines


@pytest.mark.parametrize(
    ("region", "words"), [("likelihood", {"cost_sd": 2.0}), ("l1", {"cost_range": (0, 4)})]
)
def test_other_regions_have_the_same_rows(
    model: tr.ParametricMDP, log: pd.DataFrame, region: str, words: dict[str, Any]
) -> None:
    result = tr.learn(model.problem(ASKED), log, delta=0.05, region=region, sets="expression", **words)
    assert 0.1 < result.widths.parameter_lower[1] < 0.25 < result.widths.parameter_upper[1] < 0.45
    assert result.region is not None and result.region.contains([0.4, 0.25])


def test_costs_that_contradict_the_domain_leave_no_region(log: pd.DataFrame) -> None:
    narrow = tr.load(INVENTORY, params={"d": (0.2, 0.6), "h": (0.45, 0.5)})
    result = tr.learn(narrow.problem(ASKED), log, delta=0.05, cost_range=(0, 4), region="polytope")
    assert result.contradiction is not None and "observed costs" in result.contradiction
    assert result.interval.upper > 0


@pytest.mark.parametrize("region", [None, "polytope", "likelihood", "joint"])
def test_costs_have_all_of_delta_where_no_probability_is_unknown(region: str | None, tmp_path: Path) -> None:
    (c,) = (parameters := tr.Parameters.box(c=(0, 4))).symbols()
    rows = [(0, "a", {0: "1/2", 1: "1/2"}), (0, "b", {1: 1}), (1, "", {1: 1})]
    rewards = {"r": [c, 2 * c, 0]}
    known = tr.build_from_rows(rows, parameters, labels={"goal": [1]}, choice_rewards=rewards)
    problem, log = known.problem('Rmin=? [ F "goal" ]'), [(0, "a", 0, 0.5), (0, "a", 1, 1.5)] * 60
    names = ["state", "action", "next_state", "cost"]
    table = pd.DataFrame(log, columns=names).assign(episode=np.arange(120) // 2)
    result = tr.learn(problem, table, delta=0.1, cost_range=(0, 8), region=region)
    assert result.ledger.delta == result.ledger.of_costs == 0.1 and 2.0 in result.interval
    assert result.guarantee < 4.5
    result.save(tmp_path / "run")
    assert tr.load_result(tmp_path / "run", model=known) == result
    refuted = tr.learn(problem, table.assign(cost=7.5), delta=0.1, cost_range=(0, 8), region=region)
    assert "with probability at most 0.1" in str(refuted.contradiction)


def test_a_missing_cost_is_a_missing_outcome(model: tr.ParametricMDP, log: pd.DataFrame) -> None:
    holes = log.astype({"cost": float})
    holes.loc[2, "cost"] = np.nan
    with pytest.raises(InputError, match="row 3: column 'cost' has no value"):
        tr.read_data(holes, model)
    reading = tr.read_data(holes, model, skip_invalid=True)
    assert reading.counts.design.censored and reading.counts.costs is not None
    assert reading.counts.costs.number == len(log) - 1
    wrong = log.astype({"cost": object})
    wrong.loc[2, "cost"] = "free"
    with pytest.raises(InputError, match="row 3: column 'cost' holds 'free', which is not a cost"):
        tr.read_data(wrong.astype(str), model)


def test_a_log_without_next_states_has_the_same_costs(model: tr.ParametricMDP, log: pd.DataFrame) -> None:
    expected = tr.read_data(log, model).counts
    rows = log.drop(columns=["stock_next", "day_next", "choice"])
    last = log[log.step == 5]
    ends = pd.DataFrame(
        {"episode": last.episode, "step": 6, "stock": last.stock_next, "day": last.day_next, "action": None}
    )
    whole = pd.concat([rows, ends]).sort_values(["episode", "step"], kind="stable")
    found = tr.read_data(whole, model).counts
    assert found.costs == expected.costs and found.costs is not None
    shuffled = tr.read_data(whole.sample(frac=1.0, random_state=3), model).counts
    assert shuffled.costs == expected.costs


def test_names_of_the_column(model: tr.ParametricMDP, log: pd.DataFrame) -> None:
    renamed = log.rename(columns={"cost": "Reward"})
    reading = tr.read_data(renamed, model)
    assert "cost = Reward" in reading.read_as[0] and reading.counts.costs is not None
    with pytest.raises(InputError, match="the columns 'Reward' and 'r' could each be the cost"):
        tr.read_data(renamed.assign(r=1.0), model)
    assert tr.read_data(renamed, model, columns="cost=").counts.costs is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"cost_range": (4, 0)}, "`cost_range` is .4, 0., not two numbers"),
        ({"cost_sd": -1.0}, "`cost_sd` is -1.0, not a positive number"),
        ({"cost_sd": 1.0, "cost_range": (0, 4)}, "alternative assumptions about costs"),
        ({"cost_range": (0, 4), "sets": "tied"}, "tied sets have none"),
        ({"cost_range": (0, 4), "region": "ellipsoid"}, "not an ellipsoid"),
    ],
)
def test_what_is_refused(
    model: tr.ParametricMDP, log: pd.DataFrame, words: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        tr.learn(model.problem(ASKED), log, **words)


def test_costs_where_there_are_none(model: tr.ParametricMDP, log: pd.DataFrame) -> None:
    problem = model.problem(ASKED)
    with pytest.raises(InputError, match="requires data with costs"):
        tr.learn(problem, log.drop(columns="cost"), cost_range=(0, 4))
    with pytest.raises(InputError, match="requires a property with a reward that depends on parameters"):
        tr.learn(model.problem('Pmax=? [ F "end" ]'), log, cost_range=(0, 4))
    with pytest.raises(InputError, match="solve has no argument `cost_range`"):
        tr.solve(problem, sets="rectangular", cost_range=(0, 4))
    with pytest.raises(InputError, match="`online` keeps none"):
        tr.online(problem, cost_sd=1.0)


def test_the_options_of_the_command(
    capsys: pytest.CaptureFixture[str], log: pd.DataFrame, tmp_path: Path
) -> None:
    file = tmp_path / "bills.csv"
    log.to_csv(file, index=False)
    words = ["learn", *ARGUMENTS, "--data", str(file), "--delta", "0.05", "--sets", "expression"]
    assert run([*words, "--cost-range", "0,4", "--verbose"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "episode, step, cost" in shown and "costs lie within [0, 4]" in shown
    assert run(["data", str(file), "--model", *ARGUMENTS[:3]]) == 0
    assert "2,400 costs from 0 to 4" in " ".join(capsys.readouterr().out.split())
    for given, message in (
        (["--cost-range", "5"], "--cost-range is '5', not two numbers"),
        (["--cost-range", "5,1"], "--cost-range is '5,1', not two numbers, the smaller one first"),
        (["--cost-range", "0,inf"], "hint: e.g. --cost-range 0,5"),
        (["--cost-range", "sd=0"], "--cost-range sd is 0.0, not a positive number"),
        (["--cost-range", "sd=x"], "--cost-range sd is 'x', not a number"),
    ):
        assert run([*words, *given]) == 2
        assert message in capsys.readouterr().err
    assert run([*words, "--cost-range", "0,3"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("CONTRADICTED: ") and "outside of the range [0, 3] that is stated" in said.out
    assert "hint state a wider range of costs (--cost-range), or a larger bound on" in " ".join(
        said.out.split()
    )


def test_noise_of_samples(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    mean = np.full(20_000, 0.5)
    for text, deviation in (
        ("exact", 0.0),
        ("two-point:0,2", 0.866),
        ("uniform:0.3", 0.1732),
        ("normal:2", 2.0),
    ):
        drawn = CostNoise.parse(text).draw(mean, random)
        assert drawn.mean() == pytest.approx(0.5, abs=0.05) and drawn.std() == pytest.approx(
            deviation, rel=0.05
        )
    more = ["--at", "d=0.4,h=0.25", "--episodes", "2", "-o", str(tmp_path / "x.csv")]
    for given, message in (
        (["--costs", "exact"], "--costs requires --raw"),
        (["--raw", "--costs", "noise:1"], "--costs is 'noise:1', which is not a distribution of costs"),
        (["--raw", "--costs", "two-point:0,1"], "outside of 0 and 1, the values that are drawn"),
    ):
        assert run(["sample", *ARGUMENTS, *more, *given]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "x.csv").exists()


def test_rewards_with_parameters_in_python() -> None:
    parameters = tr.Parameters.box(p=(0.1, 0.9), h=(0, 3))
    p, h = parameters.symbols()
    model = tr.build_from_rows(
        [(0, "go", {0: p, 1: 1 - p}), (1, "", {1: 1})],
        parameters,
        labels={"end": [1]},
        choice_rewards={"c": [h, 0]},
        transition_rewards={"c": [{0: 2 * h, 1: 1}, {}]},
    )
    assert isinstance(model, tr.ParametricMDP)
    reward = model.rewards["c"]
    assert isinstance(reward, ParametricReward) and reward.by_transition is not None
    assert [reward.expressions.text(row) for row in reward.expression] == ["2*p*h - p + h + 1", "0"]
    assert [reward.expressions.text(row) for row in reward.by_transition] == ["3*h", "h + 1", "0"]
    problem = model.problem('R{"c"}min=? [ F "end" ]')
    # Two steps on average, each of which costs 3h or h + 1 with equal probability.
    assert tr.solve(problem.at(p=0.5, h=1)).at_initial_states.lower == pytest.approx(5)
    random = np.random.default_rng(6)
    rows = [(0, "go", int(end), 2.0 if end else 3.0) for end in random.random(2000) < 0.5]
    table = pd.DataFrame(rows, columns=["state", "action", "next_state", "cost"])
    table["cost"] += random.choice([-0.5, 0.5], size=len(table))
    table["episode"] = table.next_state.cumsum().shift(fill_value=0)
    result = tr.learn(problem, table, delta=0.05, cost_range=(0, 9), region="polytope")
    low, high = result.widths.parameter_lower[1], result.widths.parameter_upper[1]
    assert 0.9 < low < 1 < high < 1.1
    assert result.interval.lower < 5 < result.interval.upper
    with pytest.raises(InputError, match="which does not lead there"):
        tr.build_from_rows([(0, "", {0: 1})], transition_rewards={"c": [{1: 2.0}]})
    with pytest.raises(InputError, match="the model has intervals"):
        tr.build_from_rows(
            [(0, "", {0: (0.5, 1), 1: (0, 0.5)}), (1, "", {1: 1})], transition_rewards={"c": [{1: 2}, {}]}
        )


def pairs_of(random: np.random.Generator, costs: int, draw: str, deviation: float) -> CostSums:
    """Costs of two kinds of steps with different means, of which the next depends on what was seen."""
    found, before = [], 0.0
    for number in range(costs):
        kind = int(before > 0.5 * deviation) if number % 3 else 0
        noise = random.standard_normal()
        if draw != "normal":  # ±1; rare: ±7 in one of 49 cases, else 0
            noise = np.sign(noise)
        if draw == "rare":
            noise *= 7.0 * (random.random() < 1 / 49)
        before = deviation * noise
        found.append((kind, 3.0 * kind + before))
    return CostSums({}, 0.0, 0.0, tuple(found))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("draw", ["normal", "sign", "rare"])
def test_costs_that_keep_to_the_stated_deviation_raise_no_alarm(draw: str) -> None:
    """At most one in ten of e-values reaches 10: false alarms at level 0.1, whatever the shape."""
    random, rows = np.random.default_rng(8), np.array([0, 1])
    reached = sum(
        max(spread_evidence(cut(sums, n), rows, 2.0)[0] for n in range(2, 61, 7)) >= math.log(10.0)
        for sums in (pairs_of(random, 60, draw, 2.0) for _ in range(300))
    )
    assert reached <= 42  # 30 expected at most; 42 is beyond the 0.99 quantile of the binomial


def cut(sums: CostSums, number: int) -> CostSums:
    return CostSums(sums.of, sums.least, sums.most, sums.first[:number])


def test_costs_that_spread_three_times_as_much_are_found() -> None:
    random, rows = np.random.default_rng(9), np.array([0, 1])
    found = [spread_evidence(pairs_of(random, 120, "normal", 6.0), rows, 2.0)[0] for _ in range(30)]
    assert min(found) > math.log(1e6)
    narrow = [spread_evidence(pairs_of(random, 2000, "normal", 2.6), rows, 2.0)[0] for _ in range(5)]
    assert min(narrow) > math.log(1e3), "thirty percent more, with more data"


def test_costs_that_contradict_what_is_stated_are_a_verdict(
    model: tr.ParametricMDP, log: pd.DataFrame
) -> None:
    problem = model.problem(ASKED)
    assert tr.learn(problem, log, delta=0.05, cost_sd=2.0, region="polytope").refuted_costs is None
    for words, said in (
        (
            {"cost_sd": 0.05},
            "the costs contradict that the standard deviation of a cost given the past is at",
        ),
        ({"cost_range": (0, 3)}, "a cost in the data is 4, outside of the range [0, 3] that is stated"),
    ):
        result = tr.learn(problem, log, delta=0.05, region="polytope", **words)
        assert result.verdict.word.value == "contradicted" and result.refuted_costs is not None
        assert said in result.refuted_costs
        with pytest.raises(InputError, match="there is nothing to prove"):
            tr.certify(result, "unwritten.cert")


def test_the_first_costs_are_the_same_however_a_log_is_cut() -> None:
    random = np.random.default_rng(4)
    transition, cost = random.integers(0, 5, 9000), random.standard_normal(9000)
    whole = CostSums.observed(transition, cost)
    parts = CostSums()
    for first in range(0, 9000, 700):
        parts += CostSums.observed(transition[first : first + 700], cost[first : first + 700])
    assert parts == whole and parts.first == whole.first and len(whole.first) == 4096
