"""Chains in continuous time written in Python: the same as those of PRISM files, or refused in words."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.model.continuous import IntervalCTMC
from tightrope.prism.load import load_prism_text

FARM = """
ctmc
const int N = 3; const double lam; const double mu;
module farm
  up : [0..N] init N;
  [fail] up>0 -> lam*up : (up'=up-1);
  [repair] up<N -> mu : (up'=up+1);
endmodule
label "down" = up=0;
rewards "cost" true : N-up; [repair] true : 5; endrewards
"""


class Farm(NamedTuple):
    up: int


def build_farm() -> tr.ParametricCTMC:
    parameters = tr.Parameters.box(lam=(0.01, 10), mu=(0.01, 10))
    lam, mu = parameters.symbols()

    def rates(farm: Farm) -> dict[Farm, Any]:
        return {Farm(farm.up - 1): lam * farm.up, Farm(farm.up + 1): mu if farm.up < 3 else 0}

    built = tr.build_ctmc_from_function(
        Farm(3),
        rates,
        parameters,
        labels={"down": lambda farm: farm.up == 0},
        state_rewards={"cost": lambda farm: 3 - farm.up},
        transition_rewards={"cost": lambda farm, later: 5 if later.up > farm.up else 0},
    )
    assert isinstance(built, tr.ParametricCTMC)
    return built


def test_a_function_builds_what_a_prism_file_says(tmp_path: Path) -> None:
    ours, theirs = build_farm(), load_prism_text(FARM, box="lam=0.01:10,mu=0.01:10")
    assert ours.valuations["up"].tolist() == theirs.valuations["up"].tolist() == [3, 2, 1, 0]
    at = {"lam": 0.3, "mu": 1}
    one, other = ours.instantiate(at), theirs.instantiate(at)
    assert one.rate.tolist() == other.rate.tolist() and one.successor.tolist() == other.successor.tolist()
    for asked in ('P=? [ F<=6 "down" ]', 'R{"cost"}=? [ C<=4 ]', "S=? [ up>1 ]", 'R{"cost"}=? [ F "down" ]'):
        assert tr.solve(one, asked).bounds == tr.solve(other, asked).bounds
    log = tr.simulate_times(one, 20, seed=3, time=30)
    assert log.table().column_names == ["episode", "time", "up"]
    learned = [
        tr.learn(tr.Problem(model, 'P=? [ F<=6 "down" ]'), log, delta=0.1).value for model in (ours, theirs)
    ]
    assert learned[0] == learned[1]
    one.save(tmp_path / "farm.drn")
    assert tr.load(tmp_path / "farm.drn").instantiate().rate.tolist() == one.rate.tolist()


def test_intervals_of_rates_hold_rewards_of_both_signs() -> None:
    chain = tr.build_ctmc_from_rows(
        [(0, {1: (1, 2), 2: (3, 4)}), (1, {0: 0.1})],
        states=3,
        labels={"end": [2]},
        state_rewards={"gain": [10, 0, 0]},
        transition_rewards={"gain": [{1: 1, 2: -1}, {}]},
    )
    assert isinstance(chain, IntervalCTMC)
    assert chain.lower[:2].tolist() == [1, 3] and chain.upper[:2].tolist() == [2, 4]
    assert Fraction(chain.lower[2]) <= Fraction(1, 10) <= Fraction(chain.upper[2])
    low, high = chain.earned["gain"]
    assert (low[0], high[0]) == (10 + 1 - 4, 10 + 2 - 3)
    assert chain.labels["deadlock"].tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("rows", "words", "message"),
    [
        ([(0, {1: 1}), (0, {1: 2})], {}, "state 0 has two rows"),
        ([(0, "go", {1: 1})], {}, "is not a row of a chain in continuous time"),
        ([(0, {1: -1})], {}, "the rate -1 is negative"),
        ([(0, {1: (2, 1)})], {}, "[2, 1] is not an interval of rates"),
        ([(0, {1: 1})], {"state_rewards": {"r": [1]}}, "'r' has 1 rewards, not 2"),
        (
            [(0, {1: 1})],
            {"transition_rewards": {"r": [{0: 1}]}},
            "the successor 0 of choice number 0 of state 0",
        ),
        ([(0, {1: 1})], {"states": 1}, "state 0 leads to state 1, but the states are 0..0"),
        ([], {}, "a model needs at least one state"),
    ],
)
def test_wrong_chains_are_refused_in_words(rows: Any, words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        tr.build_ctmc_from_rows(rows, **words)
    assert message in str(raised.value)


def test_quotients_and_parameters_beside_intervals_are_refused() -> None:
    parameters = tr.Parameters.box(a=(1, 2), b=(1, 2))
    a, b = parameters.symbols()
    with pytest.raises(InputError, match="not a quotient"):
        tr.build_ctmc_from_rows([(0, {1: a / (a + b)})], parameters)
    with pytest.raises(InputError, match="cannot have parameters in its rates"):
        tr.build_ctmc_from_rows([(0, {1: a, 0: (1, 2)})], parameters)
    with pytest.raises(InputError, match="not a CTMC"):
        chain: Any = tr.build_ctmc_from_rows([(0, {1: a})], parameters)
        tr.simulate_times(chain, 1, seed=0, time=1)
