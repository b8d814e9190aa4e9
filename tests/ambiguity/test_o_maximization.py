"""Nature's problem at one choice, against the same in rationals: few successors, many, rows spread again."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.ambiguity.o_maximization import (
    FEW,
    ModelArrays,
    Row,
    Scratch,
    o_maximize,
    o_maximize_again,
    o_maximize_few,
)
from tightrope.numerics.arrays import FloatArray, IndexArray, read_only


class Choice(NamedTuple):
    """k successors 0..k−1 of an interval model, their bounds multiples of 2⁻¹⁰, and what they are worth."""

    successor: IndexArray
    lower: FloatArray
    upper: FloatArray
    values: FloatArray

    @property
    def model(self) -> ModelArrays:
        start = read_only(np.array([0, self.size]))
        return ModelArrays(start[:1], start, self.successor, self.lower, self.upper, False)

    @property
    def size(self) -> int:
        return len(self.successor)

    def optimum(self, maximise: bool) -> Fraction:
        low = [Fraction(float(v)) for v in self.lower]
        x = [Fraction(float(self.values[s])) for s in self.successor]
        rest = 1 - sum(low)
        total = sum((a * b for a, b in zip(low, x, strict=True)), Fraction(0))
        for i in sorted(range(self.size), key=lambda i: x[i], reverse=maximise):
            take = min(rest, Fraction(float(self.upper[i])) - low[i])
            total, rest = total + take * x[i], rest - take
        assert rest == 0
        return total


@st.composite
def choices(draw: st.DrawFn, most: int) -> Choice:
    k = draw(st.integers(1, most))
    parts = draw(st.lists(st.integers(0, 1024), min_size=k, max_size=k).filter(lambda p: sum(p) > 0))
    centre = np.floor(1024 * np.array(parts) / sum(parts)).astype(int)
    centre[int(np.argmax(centre))] += 1024 - centre.sum()
    below = draw(st.lists(st.integers(0, 300), min_size=k, max_size=k))
    above = draw(st.lists(st.integers(0, 300), min_size=k, max_size=k))
    few = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    values = draw(st.lists(st.one_of(few, st.floats(-10, 10, width=32)), min_size=k, max_size=k))
    return Choice(
        read_only(np.array(draw(st.permutations(range(k))), np.int32)),
        read_only(np.maximum(centre - below, 0) / 1024),
        read_only(np.minimum(centre + above, 1024) / 1024),
        np.array(values),
    )


def scratch(k: int) -> Scratch:
    return Scratch(np.arange(k, dtype=np.uint16), np.empty(k), np.empty(k))


@given(choice=choices(FEW), maximise=st.booleans())
def test_few_successors(choice: Choice, maximise: bool) -> None:
    found = o_maximize_few(0, choice.size, choice.model, choice.values, maximise)
    assert abs(Fraction(found) - choice.optimum(maximise)) < Fraction(1, 10**13)


@given(choice=choices(12), maximise=st.booleans())
def test_many_successors(choice: Choice, maximise: bool) -> None:
    found = o_maximize(Row(0, choice.size, choice.model, choice.values, maximise, scratch(choice.size)))
    assert abs(Fraction(found) - choice.optimum(maximise)) < Fraction(1, 10**13)


@given(choice=choices(8), before=st.randoms(use_true_random=False), maximise=st.booleans())
def test_a_row_spread_again_attains_the_optimum(choice: Choice, before, maximise: bool) -> None:
    leader, home, scale = np.arange(choice.size, dtype=np.int32), np.int32(choice.size - 1), 0.5
    possible = [i for i in range(choice.size) if choice.upper[i] > 0]
    before.shuffle(possible)
    again, low, room = (
        choice.successor[possible],
        choice.lower[possible],
        (choice.upper - choice.lower)[possible],
    )
    spread = np.empty(len(possible))
    entries = again, spread, low, room
    last, pivot, within = o_maximize_again(
        np.uint64(0), np.uint64(len(possible)), entries, choice.values, maximise, (leader, home, scale)
    )
    assert last == len(possible) and set(again.tolist()) == set(choice.successor[possible].tolist())
    x = choice.values[again] * (-1 if maximise else 1)
    assert np.all(np.diff(x) >= 0)
    value = scale * float(choice.optimum(maximise))
    assert spread @ choice.values[again] + within * choice.values[home] == pytest.approx(value, abs=1e-13)
    assert np.all(spread[again == home] == 0.0)
    masses = low + np.where(np.arange(last) < pivot, room, 0.0)
    outside = (np.arange(last) != pivot) & (again != home)
    assert spread[outside] == pytest.approx(scale * masses[outside], abs=1e-15)
    index = {int(s): i for i, s in enumerate(choice.successor)}
    assert all(low[j] == choice.lower[index[int(s)]] for j, s in enumerate(again))


def test_a_row_spread_again_drops_what_is_infinite_and_has_no_mass() -> None:
    values = np.array([1.0, np.inf, 2.0])
    column, low, room = np.array([0, 1, 2], np.int32), np.array([0.0, 0.0, 0.0]), np.array([0.75, 1.0, 0.75])
    weight, leader = np.empty(3), np.arange(3, dtype=np.int32)
    end, pivot, inside = o_maximize_again(
        np.uint64(0), np.uint64(3), (column, weight, low, room), values, False, (leader, -1, 1.0)
    )
    assert (end, pivot, inside) == (2, 1, 0.0)
    assert column[:2].tolist() == [0, 2] and weight[:2].tolist() == [0.75, 0.25]
