"""Rows of a slab with the guard's evidence taken off: below what they bound, in both programs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from learning_cases import case
from tightrope.learning.bet_policy import PolicyBets
from tightrope.regions import slab
from tightrope.regions.region import RegionTask
from tightrope.regions.slab import SLAB
from tightrope.regions.slab_rows import Terms, line_below
from tightrope.statistics.bets import GUARD_SHARE
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.logarithms import log_up
from tightrope_check.numbers import RATIONAL, as_fraction
from tightrope_check.statistics.slab import LineBelow

SIZE = 4
TIMES = (0.0, 5e-324, 1e-9, 0.003, 0.05, 0.4, 3.0, 2.0**20)


def drawn(seed):
    """Expressions of one group with bounds, stakes that take part within them, and weights."""
    draw = np.random.default_rng(seed)
    lower = 10.0 ** draw.uniform(-6, -0.2, SIZE)
    upper = np.minimum(lower * 10.0 ** (draw.uniform(0, 1.2, SIZE) * draw.integers(0, 2, SIZE)), 1.0)
    scale = 10.0 ** draw.uniform(-5, -0.31, (3, SIZE)) * lower
    stake = np.where(draw.random(SIZE) < 0.4, scale, -scale)
    seen = draw.integers(0, 10 ** draw.integers(1, 6), (3, SIZE))
    weight = np.where(draw.random(SIZE) < 0.8, draw.integers(1, 10**5, SIZE), 0)
    inside = np.concatenate([draw.uniform(lower, upper, (4, SIZE)), [lower, upper]])
    near = lower + draw.uniform(-0.3, 1.3, SIZE) * (upper - lower)
    return SimpleNamespace(**{k: v for k, v in locals().items() if k not in ("draw", "scale", "seed")})


def most(one, times, f):
    """Not below Σ seen·log(1 + stake/f) − times·Σ weight·log f, in rationals."""
    at, total = RATIONAL.array(f), Fraction(0)
    for stake, seen in zip(one.stake, one.seen, strict=True):
        logs = log_up(1 + RATIONAL.array(stake) / at)
        total += sum(int(k) * as_fraction(v) for k, v in zip(seen, logs, strict=True))
    logs = log_up(1 / at)
    return total + Fraction(times) * sum(
        int(k) * as_fraction(v) for k, v in zip(one.weight, logs, strict=True)
    )


def slope_and_height_of_the_checker(one, times):
    near = np.clip(one.near, np.maximum(one.lower, 1e-9 * one.upper), one.upper)
    line = LineBelow((one.lower, one.upper), near)
    if times:
        line.off = RATIONAL.array([Fraction(times)]) * one.weight.astype(object)
    outcomes = SimpleNamespace(expression=np.arange(SIZE), start=np.array([0, SIZE]))
    line.add(outcomes, one.stake, one.seen, RATIONAL.array([1])[0])
    slope, height = line.total()
    return [as_fraction(a) for a in slope], as_fraction(height)


def lines(one, times):
    """(slopes, constant) by both programs."""
    met = one.seen > 0
    e = np.broadcast_to(np.arange(SIZE), one.stake.shape)[met]
    terms = Terms(one.stake[met], one.seen[met].astype(np.float64), e, 0.0)
    mine = line_below(terms, one.lower, one.upper, one.near, one.weight.astype(np.float64), times)
    yield [Fraction(a) for a in mine.slope.tolist()], Fraction(mine.constant)
    yield slope_and_height_of_the_checker(one, times)


@pytest.mark.parametrize("seed", range(12))
def test_lines_of_both_programs_are_below_and_agree(seed):
    one = drawn(seed)
    for times in TIMES:
        found = []
        for slope, height in lines(one, times):
            gaps = []
            for f in one.inside:
                value = height + sum(a * Fraction(v) for a, v in zip(slope, f.tolist(), strict=True))
                gaps.append(float(most(one, times, f) - value))
                assert gaps[-1] >= 0.0, (times, f)
            found.append(gaps)
        size = float(one.seen.sum()) + 20.0 * times * float(one.weight.sum())
        assert found[0] == pytest.approx(found[1], rel=1e-6, abs=1e-12 * size)


def test_from_some_times_on_lines_are_tangents():
    """With enough evidence taken off nothing is lost at the point itself; chords alone lose there."""
    for seed in range(30):
        one = drawn(seed)
        one.near = np.clip(one.near, one.lower, one.upper)
        one.weight = np.maximum(one.weight, 1)
        needed = 3.0 * float((one.seen.sum(axis=0) / one.weight).max())
        (slope, height), chords = (slope_and_height_of_the_checker(one, times) for times in (needed, 0.0))
        lost = []
        for (rises, constant), times in (((slope, height), needed), (chords, 0.0)):
            value = constant + sum(a * Fraction(v) for a, v in zip(rises, one.near.tolist(), strict=True))
            lost.append(float(most(one, times, one.near) - value))
        assert 0 <= lost[0] <= 1e-9 * max(1.0, needed * float(one.weight.sum()))
        wide = (one.upper > 1.5 * one.lower) & (one.near > one.lower) & (one.near < one.upper)
        if np.any(wide & np.any((one.stake < -0.1 * one.lower) & (one.seen > 10), axis=0)):
            assert lost[1] > 0.01


def test_tangents_narrow_a_slab_along_the_value(monkeypatch):
    """parallel(2), 300 episodes: the width along the gradient of the value, with and without evidence."""
    known = case("parallel(2)")
    counts = known.counts(300, 5)

    def width():
        bets = PolicyBets(known.model, known.objective, known.policy)
        bets.guard_share = GUARD_SHARE
        region = SLAB.build(RegionTask(known.model, counts, 0.001, gradient=bets))
        x = Outcomes.of(known.model).maximiser.lifted(region.evidence.estimate)
        low, high = region.support(np.array(bets(x, 1.0)))
        return float(high[0] - low[0]), region.slab.rows

    narrow, rows = width()
    assert any(row.guard > 0 for stage in rows for row in stage)
    monkeypatch.setattr(slab._Stage, "add_tangents", lambda self, centre, aims: None)
    wide, rows = width()
    assert all(row.guard == 0 for stage in rows for row in stage)
    assert 0.5 * wide < narrow < 0.97 * wide


def test_a_search_that_cannot_begin_leaves_the_chords():
    """Where the estimate is not inside of everything there are no tangents, and the region stands."""
    known = case("betting(4)")
    counts, outcomes = known.counts(300, 3), Outcomes.of(known.model)
    bets = PolicyBets(known.model, known.objective, known.policy)
    region = SLAB.build(RegionTask(known.model, counts, 0.05, gradient=bets))
    stage = slab._Stage(region, outcomes, replace(region.slab, rows=()))
    for side in region.slab.sides:
        stage.add_chords(side, region.emptiness.witness)
    outside = region.bounding_box[1] + 1.0
    stage.add_tangents(outside, [(0, np.ones(len(outside)))])
    assert all(row.guard == 0 for row in stage.made) and len(stage.points) == len(region.cut_points)
