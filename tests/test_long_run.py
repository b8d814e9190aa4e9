"""Long-run averages and steady states: against Storm, against hand-made values, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import stormpy

import tightrope as tr

Rows = list[tuple[int, str, dict[int, Any]]]


def bounds(model: Any, text: str) -> tuple[float, float]:
    found = tr.answer(model, text)
    assert found.bounds is not None and found.is_certified, found.missed
    return found.bounds


def test_averages_by_hand() -> None:
    rows: Rows = [
        (0, "left", {1: 1}),
        (0, "right", {2: "1/4", 3: "3/4"}),
        (1, "", {1: "1/2", 0: "1/2"}),
        (2, "", {2: 1}),
        (3, "", {4: 1}),
        (4, "", {3: 1}),
    ]
    model = tr.build_from_rows(
        rows, labels={"one": [1], "even": [2, 4]}, state_rewards={"r": [0, 3, 8, -4, 1]}
    )
    # Left for ever: a third of the time in 0, two thirds in 1. Right: 8 with 1/4, else -3/2 on average.
    assert bounds(model, "Rmax=? [ S ]") == pytest.approx((2, 2), abs=1e-5)
    assert bounds(model, "Rmin=? [ LRA ]") == pytest.approx((0.875, 0.875), abs=1e-5)
    assert bounds(model, 'Smax=? [ "one" ]') == pytest.approx((2 / 3, 2 / 3), abs=1e-5)
    assert bounds(model, 'Smin=? [ "one" ]') == pytest.approx((0, 0), abs=1e-6)
    assert bounds(model, 'LRAmax=? [ "even" ]') == pytest.approx((0.625, 0.625), abs=1e-5)
    assert bounds(model, 'filter(max, Smax=? [ "even" ])') == pytest.approx((1, 1), abs=1e-6)
    assert tr.answer(model, 'Smax>=0.6 [ "one" ] & S<=0.7 [ "one" ]').verdict == "true"


@pytest.mark.parametrize("direction", ["max", "min"])
def test_averages_are_those_of_storm(direction: str) -> None:
    rng = random.Random(11)
    for _ in range(10):
        rows: Rows = []
        for s in range(6):
            for c in range(rng.randint(1, 2)):
                leads_to = {*rng.sample(range(6), rng.randint(1, 2)), *([5] if s == c == 0 else [])}
                rows.append((s, f"c{c}", {t: f"1/{len(leads_to)}" for t in leads_to}))
        rewards = [rng.randint(0, 9) for _ in range(6)]
        model = tr.build_from_rows(rows, labels={"a": [0, 5]}, state_rewards={"r": rewards})
        assert isinstance(model, tr.ParametricMDP)
        for ours, theirs in [
            (f'R{{"r"}}{direction}=? [ S ]', f'R{{"r"}}{direction}=? [ LRA ]'),
            (f'S{direction}=? [ "a" ]', f'LRA{direction}=? [ "a" ]'),
        ]:
            (parsed,) = stormpy.parse_properties(theirs)
            value = stormpy.model_checking(tr.to_stormpy(model.instantiate()), parsed)
            found = tr.answer(model, ours)
            assert found.lower is not None and found.upper is not None
            expected = np.array([float(value.get_value(s)) for s in range(6)])
            assert (found.lower - 1e-5 <= expected).all() and (expected <= found.upper + 1e-5).all()
            assert (found.upper - found.lower <= 1e-5 * max(1, *rewards)).all()


def test_what_is_not_answered_is_refused() -> None:
    interval = tr.build_from_rows(
        [(0, "", {0: (0.2, 0.8), 1: (0.2, 0.8)}), (1, "", {0: 1})], labels={"a": [1]}
    )
    with pytest.raises(tr.InputError, match="long-run averages of interval models are not supported"):
        tr.answer(interval, 'Smax=? [ "a" ]')
    two = tr.build_from_rows([(0, "x", {0: 1}), (0, "y", {1: 1}), (1, "", {0: 1})], labels={"a": [1]})
    with pytest.raises(tr.InputError, match=r"S=\? has no answer here: the model has choices"):
        tr.answer(two, 'S=? [ "a" ]')
    with pytest.raises(tr.InputError, match="long-run averages are not supported here"):
        tr.Problem(two, 'Smax=? [ "a" ]')
    with pytest.raises(tr.InputError, match="the model has no reward structure"):
        tr.answer(two, "Rmax=? [ S ]")
