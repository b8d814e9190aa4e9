"""Bets: exact sums, predictability, a fair game at the truth, and rows that contain what they must."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from learning_cases import case
from tightrope.data.counts import Batches, Counts, batch_ends
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.errors import InputError
from tightrope.learning.bet_policy import PolicyBets
from tightrope.model.polynomial import Polynomial
from tightrope.regions.bounds import expression_bounds
from tightrope.regions.region import RegionTask
from tightrope.regions.slab import SLAB
from tightrope.regions.slab_rows import line_below, pool_terms, row_of
from tightrope.statistics.bets import Ends, Levels, best_shares, place_bets, price_of_shares, scales, schedule
from tightrope.statistics.coordinates import Coordinates, _substitute
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.search.betting import GRID, BetTable, shorten, with_the_domains_help

PRODUCTS, PLAIN = "glider(5,5)", "betting(4)"
EPISODES = 2000


@cache
def counts_of(name, seed=4):
    return case(name).counts(EPISODES, seed)


@cache
def setting(name):
    known = case(name)
    coordinates = Coordinates.of(known.model.expressions, known.model.parameters)
    functions = coordinates.functions(known.model.expressions)
    return known, functions, LikelihoodMaximiser.of(coordinates, functions), Outcomes.of(known.model)


def slab_of(name, counts, delta=0.05):
    known, _, _, outcomes = setting(name)
    gradient = PolicyBets(known.model, known.objective, known.policy)
    return place_bets(outcomes, counts, gradient, Levels.of(delta))


@cache
def default_slab(name):
    return slab_of(name, counts_of(name))


def unplanned(counts):
    return replace(counts, design=SamplingDesign(SamplingKind.ADAPTIVE, None, counts.steps))


def exact_slopes(maximiser, model, t, h):
    """J(t)·h of every expression in rationals, by differentiating the exact polynomials."""
    coordinates = maximiser.coordinates
    t, h = ([Fraction(float(value)) for value in vector] for vector in (t, h))
    slopes = []
    for e in range(len(model.expressions)):
        terms = Polynomial({})
        for monomial, coefficient in model.expressions.polynomial(e).terms.items():
            terms = terms + _substitute(monomial, coordinates.substitution) * Polynomial.constant(coefficient)
        total = Fraction(0)
        for term, coefficient in terms.terms.items():
            for index, exponent in term:
                value = coefficient * exponent * h[index]
                for other, power in term:
                    value *= t[other] ** (power - 1 if other == index else power)
                total += value
        slopes.append(total)
    return slopes


@pytest.mark.parametrize("name", [PRODUCTS, PLAIN])
def test_bets_are_the_exact_slopes_cut_down_and_never_better_than_fair(name):
    known, _, maximiser, outcomes = setting(name)
    slab = default_slab(name)
    assert len(slab.plan.placed) >= 5
    table = BetTable(maximiser.search, outcomes.expression, outcomes.multiplicity, outcomes.start)
    t = slab.wagers[0][0].bets[-1].t
    h = 0.01 * np.random.default_rng(2).normal(size=len(t))
    exact, stake = exact_slopes(maximiser, known.model, t, h), table.stakes(t, h)
    for k, (a, b) in enumerate(pairwise(outcomes.start.tolist())):
        met = [exact[e] for e in outcomes.expression[a:b].tolist()]
        kept = [Fraction(value) for value in stake[a:b].tolist()]
        total = sum(int(m) * value for m, value in zip(outcomes.multiplicity[a:b], kept, strict=True))
        assert total <= 0 and float(total) > -1e-13, k
        largest = max(range(b - a), key=lambda o: abs(met[o]))
        factor = kept[largest] / met[largest] if met[largest] else Fraction(1)
        power = Fraction(2) ** round(math.log2(factor))
        assert power <= 1
        assert all(abs(mine - power * slope) <= 4 * GRID for mine, slope in zip(kept, met, strict=True))


@pytest.mark.parametrize("name", [PRODUCTS, PLAIN])
def test_bets_of_a_slab_are_whole_multiples_and_never_better_than_fair(name):
    _, _, _, outcomes = setting(name)
    for bets in (bets for side in default_slab(name).wagers for bets in side[0].bets):
        units = [Fraction(value) / Fraction(GRID) for value in bets.stake.tolist()]
        assert any(units) and all(unit.denominator == 1 for unit in units)
        terms = [int(m) * unit for m, unit in zip(outcomes.multiplicity, units, strict=True)]
        assert all(sum(terms[a:b]) <= 0 for a, b in pairwise(outcomes.start.tolist()))


@pytest.mark.parametrize("name", [PRODUCTS, PLAIN])
def test_no_bet_takes_more_than_a_quarter_of_what_was_estimated(name):
    _, functions, maximiser, outcomes = setting(name)
    for wagers in default_slab(name).wagers:
        for bets in wagers[0].bets:
            f = (functions.linear @ maximiser.lifted(bets.t) + functions.constant)[outcomes.expression]
            losing = bets.stake < 0
            assert np.all(-bets.stake[losing] <= 0.25 * f[losing] * (1 + 1e-9))


@pytest.mark.parametrize("name", [PRODUCTS, PLAIN])
def test_the_game_is_fair_or_worse_wherever_the_true_value_is(name):
    """The expected factor of one visit of any signature is at most 1 at any parameters of the domain."""
    _, functions, maximiser, outcomes = setting(name)
    draw = np.random.default_rng(8)
    lower = maximiser.coordinates.lower[: len(maximiser.coordinates.free)]
    upper = maximiser.coordinates.upper[: len(lower)]
    for bets in (wagers[0].bets[0] for wagers in default_slab(name).wagers):
        for _ in range(20):
            t = draw.uniform(lower, upper)
            f = (functions.linear @ maximiser.lifted(t) + functions.constant)[outcomes.expression]
            stands = (bets.stake >= 0) | (f >= -2 * bets.stake)
            part = np.logical_and.reduceat(stands, outcomes.start[:-1])
            chance = outcomes.multiplicity * np.where(f > 0, f, 0.0)
            factor = np.where(f > 0, 1.0 + bets.stake / np.where(f > 0, f, 1.0), 0.0)
            assert np.all(factor[part[outcomes.signature]] >= -1e-12)
            mean = np.add.reduceat(chance * factor, outcomes.start[:-1])
            assert np.all(mean[part] <= 1 + 1e-9)


def test_bets_follow_from_earlier_batches_alone():
    """Other outcomes from some batch on change no bet that was placed by then."""
    counts = counts_of(PLAIN)
    slab = default_slab(PLAIN)
    third = slab.plan.placed[2]
    parts = [*counts.batches][:third] + [*counts_of(PLAIN, seed=9).batches][third:]
    design = replace(counts.design, steps=sum(int(count.sum()) for _, count in parts))
    mixed = Counts.from_batches(Batches.from_parts(parts), counts.transition_start, design, counts.model_hash)
    other = slab_of(PLAIN, mixed)
    assert other.plan.placed == slab.plan.placed
    for mine, theirs in zip(slab.wagers, other.wagers, strict=True):
        for number in range(3):
            assert np.array_equal(mine[0].bets[number].stake, theirs[0].bets[number].stake)
        assert not np.array_equal(mine[0].bets[3].stake, theirs[0].bets[3].stake)


def test_the_schedule_follows_the_plan_and_not_what_came():
    counts = counts_of(PLAIN)
    sizes = np.array([float(count.sum()) for _, count in counts.batches])
    planned = schedule(counts, sizes)
    assert planned.planned == EPISODES - batch_ends(EPISODES)[planned.pilot - 1]
    assert batch_ends(EPISODES)[planned.pilot - 1] <= 0.03 * EPISODES < batch_ends(EPISODES)[planned.pilot]
    early = 30
    ended = Counts.from_batches(
        Batches.from_parts([*counts.batches][:early]),
        counts.transition_start,
        SamplingDesign(SamplingKind.ADAPTIVE, int(batch_ends(10**6)[early - 1]), planned=EPISODES),
        counts.model_hash,
    )
    cut = schedule(ended, sizes[:early])
    assert (cut.pilot, cut.planned) == (planned.pilot, planned.planned)
    assert cut.placed == tuple(batch for batch in planned.placed if batch < early)
    late = replace(counts, design=replace(counts.design, late_plan=True))
    assert schedule(late, sizes).planned is None
    open_end = schedule(unplanned(counts), sizes)
    assert (open_end.planned, open_end.pilot, open_end.placed[0]) == (None, 10, 10)


def test_counts_without_batches_are_refused():
    counts = counts_of(PLAIN)
    known = case(PLAIN)
    without = Counts(counts.transition, counts.transition_start, counts.design, counts.model_hash)
    gradient = PolicyBets(known.model, known.objective, known.policy)
    with pytest.raises(InputError, match="need data in time-ordered batches"):
        SLAB.build(RegionTask(known.model, without, 0.05, gradient=gradient))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("name", "is_planned"), [(PLAIN, True), (PRODUCTS, True), (PRODUCTS, False)])
def test_rows_and_polytope_contain_every_point_that_the_betting_strategies_leave(name, is_planned):
    known, functions, maximiser, outcomes = setting(name)
    counts = counts_of(name) if is_planned else unplanned(counts_of(name))
    gradient = PolicyBets(known.model, known.objective, known.policy)
    region = SLAB.build(RegionTask(known.model, counts, 0.05, gradient=gradient))
    slab = region.slab
    assert len(slab.every) == (1 if is_planned else 12)
    guard = region.evidence
    draw = np.random.default_rng(21)
    free = len(maximiser.coordinates.free)
    low, high = (end[:free] for end in region.bounding_box)
    spread = 0.3 * (high - low)
    t = draw.uniform(low - spread, high + spread, size=(600 if is_planned else 120, free))
    t = t[[maximiser.is_inside(point) for point in t]]
    x = np.array([maximiser.lifted(point) for point in t])
    f = x @ functions.linear.T + functions.constant
    with np.errstate(divide="ignore", invalid="ignore"):
        used = guard.weight > 0
        fits = np.log(f[:, used]) @ guard.weight[used] >= guard.threshold
    weight = np.log([scale.weight for scale in slab.every])
    kept = []
    for i in np.flatnonzero(fits).tolist():
        wealth = [
            np.logaddexp.reduce(weight + [one.log_wealth(outcomes, f[i]) for one in side])
            for side in slab.wagers
        ]
        if max(wealth) < slab.price[0] - 1e-9:
            kept.append(i)
    assert len(kept) > (20 if is_planned else 6)
    theta = maximiser.coordinates.parameters_at(x[kept])
    inside = [bool(np.all(region.system.excess(x[i]) <= 1e-9)) for i in kept]
    assert all(inside), theta[~np.array(inside)][:3]
    assert len(kept) < len(t)


def test_lines_lie_below_the_wealth_on_all_of_a_box():
    known, functions, maximiser, outcomes = setting(PRODUCTS)
    region = SLAB.build(
        RegionTask(
            known.model,
            counts_of(PRODUCTS),
            0.05,
            gradient=PolicyBets(known.model, known.objective, known.policy),
        )
    )
    lower, upper = expression_bounds(region, known.model.expressions)
    draw = np.random.default_rng(2)
    free = len(maximiser.coordinates.free)
    low, high = (end[:free] for end in region.bounding_box)
    points = [maximiser.lifted(t) for t in draw.uniform(low, high, size=(300, free))]
    values = [functions.linear @ x + functions.constant for x in points]
    values = [f for f in values if np.all((f >= lower - 1e-12) & (f <= upper + 1e-12))]
    assert len(values) > 20
    for wagers in region.slab.wagers:
        for near in (lower, upper, values[0]):
            line = line_below(pool_terms([(1.0, wagers[0])], outcomes, lower, upper), lower, upper, near)
            row, bound = row_of(line, functions, 3.0, *region.bounding_box)
            for f in values:
                assert line.constant + line.slope @ f <= wagers[0].log_wealth(outcomes, f) + 1e-9
            for x in points:
                f = functions.linear @ x + functions.constant
                if line.constant + line.slope @ f <= 3.0:
                    assert row @ x <= bound + 1e-12


def test_the_domain_helps_where_a_face_is_near():
    inverse = np.array([[2.0, 0.5], [0.5, 1.0]])
    wanted = np.array([1.0, 0.3])
    faces = np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])

    def cost(share, room):
        normal = wanted + share @ faces
        return math.sqrt(2 * 4.0 * normal @ inverse @ normal) + share @ room

    far = np.full(3, 100.0)
    assert np.array_equal(with_the_domains_help(wanted, inverse, faces, far, 4.0), wanted)
    near = np.array([0.4, 0.7, 0.2])
    found = with_the_domains_help(wanted, inverse, faces, near, 4.0)
    best = minimize(cost, np.ones(3), args=(near,), bounds=[(0, None)] * 3, tol=1e-14)
    assert found == pytest.approx(wanted + best.x @ faces, abs=1e-4)
    assert best.fun < cost(np.zeros(3), near) - 0.1


def test_components_of_bets_have_few_bits():
    draw = np.random.default_rng(1).normal(size=200) * 10.0 ** np.arange(-10, 10).repeat(10)
    short = shorten(draw)
    assert np.all(np.abs(short - draw) <= 2.0**-12 * np.abs(draw))
    mantissa, _ = np.frexp(short)
    assert np.array_equal(np.ldexp(mantissa, 12), np.rint(np.ldexp(mantissa, 12)))


def test_shares_of_scales_sum_to_one_and_their_price_is_that_of_the_best():
    every = scales(None)
    assert sum(scale.weight for scale in every) < 1
    wealth = np.linspace(-30.0, 3.0, len(every))
    weight = np.array([scale.weight for scale in every])
    share = best_shares(weight, wealth)
    assert share.sum() == 1.0
    mixture = np.logaddexp.reduce(np.log(weight) + wealth)
    assert share @ wealth - price_of_shares(weight, share) == pytest.approx(mixture, abs=0.05)
    assert share @ wealth - price_of_shares(weight, share) <= mixture
    assert [scale.weight for scale in scales(100.0)] == [1.0]


def test_levels_never_exceed_delta():
    for delta in (0.001, 0.05, 0.1, 0.3, 1e-9):
        levels = Levels.of(delta)
        assert levels.lower == levels.upper == pytest.approx(4.5 * levels.guard)
        single = [Levels.of(delta, end, d) for end in (Ends.LOWER, Ends.UPPER) for d in (1, 6)]
        for split in (levels, *single):
            assert sum(map(Fraction, (split.guard, *split.sides))) <= Fraction(delta)
            assert split.guard + sum(split.sides) == pytest.approx(delta)


def test_a_guard_beside_one_betting_strategy_costs_little():
    """Of the likelihood region's half width √(2·(R + log(1/δ))), R = 1.8 per parameter."""
    for delta in (0.001, 0.1):
        for dimension in (1, 2, 4, 6, 7):
            levels = Levels.of(delta, Ends.LOWER, dimension)
            assert levels.upper == 0.0
            before = 1.8 * dimension - math.log(delta)
            after = 1.8 * dimension - math.log(levels.guard)
            assert math.sqrt(after / before) <= 1.026
    assert Levels.of(0.001, Ends.UPPER, 6).lower == 0.0
    assert Levels.of(0.001, Ends.LOWER, 100).guard == pytest.approx(6e-4)
    assert Levels.of(0.1, Ends.LOWER, 2).guard == pytest.approx(0.074)
