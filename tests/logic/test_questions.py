"""Conditional probabilities with choices, quantiles, CVaR and late rewards: by hand, and what is refused.

Hundreds of random models of each stand in `benchmarks/question_battery.py`, of which a few run here.

Also of `logic/reward_bounds.py`.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import tightrope as tr
from benchmark_script import run_benchmark
from tightrope.logic.reward_bounds import find_quantile, read_threshold
from tightrope.logic.values import StateTruth
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.parse.property_syntax import Quantile

pytestmark = pytest.mark.usefixtures("in_python")

Rows = list[tuple[int, str, dict[int, Any]]]


def value(model: Any, text: str) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        found = tr.solve(model, text)
    assert found.is_certified and found.bounds is not None, (text, found.missed)
    return found.bounds


def about(number: float) -> Any:
    return pytest.approx((number, number), abs=1e-5)


@pytest.fixture(scope="module")
def two_ways() -> Any:
    """From 0 a sure way to 1 with 1/4, or a gamble: 1 and 2 each with 1/4, else back to 0."""
    rows: Rows = [
        (0, "sure", {1: "1/4", 3: "3/4"}),
        (0, "gamble", {1: "1/4", 2: "1/4", 0: "1/2"}),
        (1, "", {1: 1}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    labels = {"good": [1], "bad": [2], "known": [1, 2], "lost": [3]}
    return tr.build_from_rows(rows, labels=labels, state_rewards={"cost": [2, 0, 0, 0]})


def test_conditional_probabilities_with_choices(two_ways: Any) -> None:
    assert value(two_ways, 'Pmax=? [ F "good" || F "known" ]') == about(1)  # sure, and never the gamble
    assert value(two_ways, 'Pmin=? [ F "good" || F "known" ]') == about(0.5)
    assert value(two_ways, 'Pmax=? [ F "bad" || G !"lost" ]') == about(0.5)
    assert value(two_ways, 'Pmax=? [ F<=1 "good" || F "known" ]') == about(1)
    assert value(two_ways, 'Pmin=? [ F G "good" || G F "known" ]') == about(0.5)
    assert value(two_ways, 'filter(max, Pmin=? [ F "good" || F "known" ], "init" | "good")') == about(1)
    with pytest.warns(tr.ReadingWarning, match="and the condition as  F"):
        assert tr.solve(two_ways, 'Pmin>=0.4 [ F "good" || F "known" ]').truth == "true"
    with pytest.raises(tr.InputError, match="has probability 0 in the initial state"):
        value(two_ways, 'Pmax=? [ F "good" || G "bad" ]')


def test_conditional_probabilities_of_interval_models() -> None:
    rows: Rows = [
        (0, "try", {1: (0.25, 0.5), 2: (0.125, 0.25), 3: (0.25, 0.625)}),
        (1, "", {1: 1}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, labels={"good": [1], "known": [1, 2]})
    assert value(model, 'Pmax=? [ F "good" || F "known" ]') == about(0.8)  # 1/2 beside 1/8
    assert value(model, 'Pmin=? [ F "good" || F "known" ]') == about(0.5)  # 1/4 beside 1/4
    cut = tr.build_from_rows([(0, "", {0: (0, 0.8), 1: (0.2, 1)}), (1, "", {1: 1})], labels={"a": [1]})
    with pytest.raises(tr.InputError, match="conditional probabilities with choices are supported only if"):
        tr.solve(cut, 'Pmax=? [ F "a" || F "a" ]')


def test_quantiles_are_not_sought_for_long_where_the_limit_is_open() -> None:
    """Three limits: it holds, fails, and is open; what is tried beyond 1,024 is for the first alone."""
    tried: list[int] = []

    def decide(operator: Any) -> StateTruth:
        bound = operator.path.bound
        k = float("inf") if bound is None else float(bound.upper.value)
        tried.append(int(min(k, 1e6)))
        return StateTruth(np.array([k > 3000, False, False]), np.array([k <= 3000, True, k < 5]))

    text = 'quantile(min k, Pmax>=0.8 [ F{"cost"}<=k "known" ])'
    query = read_threshold(cast(Quantile, parse_properties(text, "p").properties[0].formula))
    bounds, number = find_quantile(query, decide, np.ones(3, np.bool_))
    assert (bounds.lower.tolist(), bounds.upper.tolist()) == ([3001, np.inf, 5], [3001, np.inf, np.inf])
    assert number < 30 and max(k for k in tried if k < 1e6) == 4096
    tried.clear()
    find_quantile(query, decide, np.array([False, True, True]))
    assert max(k for k in tried if k < 1e6) == 1024


def test_quantiles(two_ways: Any) -> None:
    # A gamble a round, two of cost each: known by cost 2r with 1 - 2^-r.
    assert value(two_ways, 'quantile(min k, Pmax>=0.8 [ F{"cost"}<=k "known" ])') == (6, 6)
    assert value(two_ways, 'quantile(max k, Pmax<0.8 [ F{"cost"}<=k "known" ])') == (5, 5)
    at_the_value = tr.solve(two_ways, 'quantile(min k, Pmax>=0.875 [ F{"cost"}<=k "known" ])')
    assert at_the_value.bounds == (6, 8) and at_the_value.status == "not-certified"
    assert value(two_ways, 'quantile(min k, Pmax>0.7 [ F<=k "known" ])') == (2, 2)
    assert value(two_ways, 'quantile(min k, Pmin>=0.3 [ F{"cost"}<=k "known" ])') == (float("inf"),) * 2
    assert value(two_ways, 'quantile(max k, Pmin>=0.2 [ G{"cost"}<=k !"known" ])') == (5, 5)
    assert value(two_ways, 'quantile(max k, Pmin>=0.5 [ F{"cost"}>=k "lost" ])') == (-float("inf"),) * 2
    assert value(two_ways, 'quantile(max k, Pmax>=0.5 [ !(F<=k "known") ])') == (float("inf"),) * 2
    assert value(two_ways, '2 * quantile(min k, Pmax>0.7 [ F<=k "known" ]) + 1') == about(5)
    everywhere = tr.solve(two_ways, 'quantile(min k, Pmax>0.7 [ F<=k "known" ])').lower
    assert everywhere is not None and everywhere.tolist() == [2, 0, 0, float("inf")]


def test_tails_of_costs(two_ways: Any) -> None:
    tries: Rows = [(0, "", {0: "1/2", 1: "1/2"}), (1, "", {1: 1})]
    chain = tr.build_from_rows(tries, labels={"end": [1]}, state_rewards={"cost": [1, 0]})
    # A tenth of all plays: those of 5 and more (1/16, with mean 6), the rest of those of 4.
    assert value(chain, 'CVaR{"cost",0.9}=? [ F "end" ]') == about((6 / 16 + 4 * 0.0375) / 0.1)
    assert value(chain, "CVaR{0}=? [ C ]") == about(2)
    idle = tr.build_from_rows([(0, "x", {0: 1}), (0, "y", {0: 1})], state_rewards={"cost": [0]})
    assert value(idle, "CVaR{0.25}max=? [ C<=1 ]") == value(idle, "CVaR{0.5}min=? [ C<=2 ]") == (0, 0)
    assert value(two_ways, 'CVaR{"cost",0.5}min=? [ C<=3 ]') == about(2)
    assert value(two_ways, 'CVaR{"cost",0.5}max=? [ C<=3 ]') == about(5)  # gambles: 2, 4, 6, 6 in quarters
    assert value(two_ways, 'CVaR{"cost",0.5}min=? [ F "known" ]') == about(6)
    assert value(two_ways, 'CVaR{"cost",0.5}max=? [ F "known" ]') == (float("inf"),) * 2
    # 0 or 4, or 2 for certain: the worst half of either has the mean 2, of a mixture (1/3 for certain) 8/3.
    safe: Rows = [(0, "x", {1: "3/4", 2: "1/4"}), (0, "y", {3: 1}), *((s, "", {4: 1}) for s in (1, 2, 3))]
    mixed = tr.build_from_rows(
        [*safe, (4, "", {4: 1})], labels={"end": [4]}, state_rewards={"cost": [0, 0, 4, 2, 0]}
    )
    assert value(mixed, 'CVaR{"cost",0.5}max=? [ F "end" ]') == about(8 / 3)
    assert value(mixed, 'CVaR{"cost",0.5}min=? [ F "end" ]') == about(2)


def test_rewards_of_late_steps(two_ways: Any) -> None:
    assert value(two_ways, 'R{"cost"}max=? [ C[0,2] ]') == value(two_ways, 'R{"cost"}max=? [ C<=2 ]')
    assert value(two_ways, 'R{"cost"}max=? [ C[2,4] ]') == about(2 * (1 / 4 + 1 / 8))
    assert value(two_ways, 'R{"cost"}min=? [ C[1,4] ]') == about(0)
    assert value(two_ways, 'R{"cost"}max=? [ C>=2 ]') == about(2 * (1 / 4 + 1 / 8) / (1 - 1 / 4))
    assert value(two_ways, 'R{"cost"}max=? [ C>2 ]') == about(1 / 2)
    loop = tr.build_from_rows([(0, "", {0: 1})], state_rewards={"cost": [1]})
    assert value(loop, "R=? [ C>=5 ]") == (float("inf"),) * 2
    pivot = tr.build_from_rows(
        [(0, "", {1: (0.25, 0.5), 2: (0.5, 0.75)}), (1, "", {1: 1}), (2, "", {2: 1})],
        state_rewards={"cost": [0, 4, 0]},
    )
    assert value(pivot, "Rmax=? [ C[1,2] ]") == about(2) and value(pivot, "Rmin=? [ C[1,3] ]") == about(2)


def test_what_is_refused(two_ways: Any) -> None:
    half = tr.build_from_rows([(0, "", {0: 1})], labels={"a": [0]}, state_rewards={"cost": [0.5]})
    interval = tr.build_from_rows(
        [(0, "x", {0: (0.25, 0.5), 1: (0.5, 0.75)}), (0, "y", {1: 1}), (1, "", {1: 1})],
        labels={"a": [1]},
        state_rewards={"cost": [1, 0]},
    )
    for subject, asked, message in (
        (two_ways, 'quantile(max k, Pmax>=0.9 [ F{"cost"}<=k "known" ])', "holds from some k on: the least"),
        (two_ways, 'quantile(min k, Pmax=? [ F{"cost"}<=k "known" ])', "about one P with a threshold"),
        (two_ways, 'quantile(min k, Pmax>=0.9 [ F{"cost"}<=k+1 "known" ])', "the variable k alone"),
        (two_ways, 'quantile(min k, Pmax>=0.9 [ F "known" ])', "F, G or U with a bound"),
        (two_ways, 'quantile(min k, Pmax>=0.9 [ F{"price"}<=k "known" ])', "no reward structure"),
        (half, 'CVaR{"cost",0.5}=? [ C<=2 ]', "not all whole numbers from 0 on, as it needs"),
        (half, 'CVaR{"cost",1}=? [ C<=2 ]', r"the level of CVaR is 1, not within \[0, 1\)"),
        (two_ways, 'CVaR{"cost",0.5}=? [ C<=2 ]', r"CVaR=\? is ambiguous: the model has choices"),
        (interval, 'CVaR{"cost",0.5}minmax=? [ F "a" ]', "where agent and nature are against each other"),
        (two_ways, 'R{"cost"}max=? [ C[3,1] ]', "is empty"),
        (two_ways, "filter(min, R<=3 [ C ], true) + 1", "about numbers"),
    ):
        with pytest.raises(tr.InputError, match=message):
            tr.solve(subject, asked)
    for asked, message in (
        ('CVaR{"cost",0.5}min=? [ C<=2 ]', "CVaR is not supported here"),
        ('R{"cost"}min=? [ C>=2 ]', "rewards from a step on, C>=k and C"),
        ('quantile(min k, Pmax>=0.9 [ F<=k "known" ])', "one P or R is required here"),
    ):
        with pytest.raises(tr.InputError, match=message):
            _ = tr.Problem(two_ways, asked).objective


@pytest.mark.long
def test_the_battery_finds_no_value_outside(tmp_path: Path) -> None:
    output = tmp_path / "battery.json"
    finished = run_benchmark("question_battery.py", "--smoke", "-o", output)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    rows = json.loads(output.read_text())
    assert sum(row["asked"] for row in rows) >= 80 and not any(row["crashed"] for row in rows)
    assert sum(row["refused"] for row in rows) <= 1  # operators inside that intervals leave open
