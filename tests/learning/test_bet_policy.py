"""Several betting strategies: their policies, their directions, and what their mixture excludes.

Also of `tightrope_check/search/smoothed_likelihood.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import tightrope as tr
from learning_cases import case
from tightrope.certify.learned import certificate_of
from tightrope.data.design import SamplingKind
from tightrope.data.simulator import Simulator
from tightrope.learning.bet_policy import PolicyBets, question_of
from tightrope.problem import Problem
from tightrope.regions.halfspaces import Origin
from tightrope.statistics import bets as statistics_bets
from tightrope.statistics.bets import Levels, place_bets
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.checker import check
from tightrope_check.search import betting
from tightrope_check.search.betting import POINTS, SMOOTHED, BetTable, TargetPolicies, signs_of
from tightrope_check.search.value_slopes import best_at_points, best_policy, met_choices

pytestmark = pytest.mark.usefixtures("built_once")


@cache
def two_ways(p="0.5", q="0.5"):
    """Two machines, to be used twice: the best policy uses the better one only."""
    parameters = tr.Parameters.box(p=("0.05", "0.95"), q=("0.05", "0.95"))
    rows = [(state, name, {state + 1: name, 3: f"1-{name}"}) for state in (0, 1) for name in ("p", "q")] + [
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, parameters, labels={"done": [2]})
    problem = Problem(model, 'Pmax=? [ F "done" ]')
    return problem, Simulator(model.instantiate(p=p, q=q), None, None, 4, model.hash(), threads=1)


def table_of(model, smoothed=SMOOTHED):
    coordinates = Coordinates.of(model.expressions, model.parameters)
    maximiser = LikelihoodMaximiser.of(coordinates, coordinates.functions(model.expressions))
    outcomes = Outcomes.of(model)
    tied = outcomes.expression, outcomes.multiplicity, outcomes.start
    return maximiser, outcomes, BetTable(maximiser.search, *tied, smoothed)


def weights_of(model, outcomes, counts):
    total = np.sum(outcomes.pooled_batches(counts), axis=0)
    return total, np.bincount(outcomes.expression, total, len(model.expressions.is_constant)) * (
        ~model.expressions.is_constant
    )


def test_signs_are_uncorrelated_and_the_first_five_take_all_values():
    signs = signs_of(31)
    assert np.array_equal(signs.T @ signs, POINTS * np.eye(31)) and not signs.sum(axis=0).any()
    assert len(np.unique(signs[:, :5], axis=0)) == POINTS == 32
    assert np.array_equal(signs_of(40)[:, 31:], signs[:, :9])


def test_points_lie_inside_the_domain_and_are_spread_as_the_information_says():
    problem, simulator = two_ways("0.9", "0.5")
    model = problem.model
    maximiser, outcomes, table = table_of(model)
    _, weight = weights_of(model, outcomes, simulator.episodes(60, 5))
    t = table.estimate(maximiser.start, weight)
    near = table.around(t, weight, model.expression)
    inverse = np.linalg.inv(table.information(t, weight, 1.0, 1.0))
    assert near.root @ near.root.T == pytest.approx(inverse, rel=1e-9, abs=1e-15)
    assert np.array_equal(near.root, np.tril(near.root))
    search = maximiser.search
    assert np.all(search.bounds - near.points @ search.faces.T > 0.0)
    whole = np.all(np.abs(near.points - t - signs_of(len(t)) @ near.root.T) < 1e-6, axis=1)
    assert 0 < whole.sum() < POINTS  # those that would lie outside are drawn in
    chance = near.probability(3)
    assert chance.shape == (3, len(model.expression)) and near.probability(0).shape[0] == 0
    sums = np.add.reduceat(chance, model.structure.transition_start[:-1], axis=1)
    assert sums == pytest.approx(np.ones_like(sums))


def test_points_are_found_for_parameters_of_very_different_sizes():
    """In units of a millionth of the other: the same points, up to their unit."""
    points = []
    for unit in (1, 10**6):
        parameters = tr.Parameters.box(p=("1/20", "19/20"), q=(f"{unit}/20", f"{19 * unit}/20"))
        rows = [(0, "a", {1: "p", 0: "1-p"}), (0, "b", {1: f"q/{unit}", 0: f"1-q/{unit}"}), (1, "", {1: 1})]
        model = tr.build_from_rows(rows, parameters, labels={"done": [1]})
        maximiser, outcomes, table = table_of(model)
        truth = model.instantiate(p="0.3", q=str(unit * 0.6))
        counts = Simulator(truth, None, None, 4, model.hash(), threads=1).episodes(100, 3)
        _, weight = weights_of(model, outcomes, counts)
        t = table.estimate(maximiser.start, weight)
        near = table.around(t, weight, model.expression)
        points.append(near.points / [1, unit])
    assert points[0] == pytest.approx(points[1], rel=1e-6)
    assert len(np.unique(points[0], axis=0)) == 4


def test_bets_narrow_the_direction_that_is_wanted():
    """What the bets of a batch narrow is the gradient of their log-wealth; with all of the smoothing's
    curvature it turns away from the value's where data say little."""
    known = case("rover(4,4)")
    model, counts = known.model, known.counts(3000, 5)
    cosine = {}
    for smoothed in (SMOOTHED, 1.0):
        maximiser, outcomes, table = table_of(model, smoothed)
        seen, weight = weights_of(model, outcomes, counts)
        t = table.estimate(maximiser.start, weight)
        gradient = PolicyBets(model, known.objective, known.policy)
        wanted = gradient(maximiser.lifted(t), None)[0] @ maximiser.jacobian(t)
        inverse = np.linalg.inv(table.information(t, weight, 1.0, 1e-9))
        length = np.sqrt(2.0 * 7.0 / (wanted @ inverse @ wanted))
        own = np.linalg.solve(table.information(t, weight, 1.0), wanted) * length
        stake = table.stakes(t, own)
        f = (maximiser.search.linear @ maximiser.lifted(t) + maximiser.search.constant)[outcomes.expression]
        slope = (maximiser.search.linear @ maximiser.jacobian(t))[outcomes.expression]
        narrowed = (seen * stake / (f * (f + stake))) @ slope
        along = np.sqrt((narrowed @ inverse @ narrowed) * (wanted @ inverse @ wanted))
        cosine[smoothed] = float(narrowed @ inverse @ wanted / along)
    assert cosine[SMOOTHED] > 0.998 > 0.98 > cosine[1.0]


@pytest.mark.parametrize("name", ["betting(4)", "aircraft(5,3)", "rover(4,4)"])
def test_the_best_policies_of_many_points_are_those_of_each(name):
    known = case(name)
    question = question_of(known.model, known.objective)
    assert question.layers is not None
    maximiser, _, _ = table_of(known.model)
    draw = np.random.default_rng(3)
    coordinates, size = Coordinates.of(known.model.expressions, known.model.parameters), len(maximiser.start)
    every = []
    for t in draw.uniform(coordinates.lower[:size], coordinates.upper[:size], size=(7, size)):
        f = maximiser.search.linear @ maximiser.lifted(t) + maximiser.search.constant
        every.append(np.clip(f, 0.0, 1.0)[known.model.expression])
    together = best_at_points(question, np.array(every))
    assert np.array_equal(together, [best_policy(question, one) for one in every])
    assert len(np.unique(together, axis=0)) > 1
    taken = np.zeros(known.model.choices)
    taken[together[0]] = 1.0
    met = met_choices(question, taken)
    assert 0 < len(met) <= len(together[0]) and np.isin(met, together[0]).all()


def look(targets, problem, counts, share):
    """(first choices of the policies, their slopes), at the estimate of counts."""
    model = problem.model
    maximiser, outcomes, table = table_of(model)
    _, weight = weights_of(model, outcomes, counts)
    t = table.estimate(maximiser.start, weight)
    f = np.clip(maximiser.search.linear @ maximiser.lifted(t) + maximiser.search.constant, 0.0, 1.0)
    found = targets.slopes(f[model.expression], share, table.around(t, weight, model.expression))
    return [int(np.flatnonzero(policy)[0]) for policy in targets.held], found


def test_betting_strategies_stay_move_and_settle():
    """Each of two machines of similar value has a strategy. A strategy leaves a machine that turns out worse
    only in the first quarter of the plan."""
    problem, even = two_ways()
    targets = TargetPolicies(question_of(problem.model, problem.objective))
    first, slopes = look(targets, problem, even.episodes(100, 3), 0.03)
    assert sorted(first) == [0, 1] and len(slopes) == 2 and not targets.frozen
    again, _ = look(targets, problem, even.episodes(200, 4), 0.1)
    assert again == first  # each with the machine it had
    clear = two_ways("0.8", "0.3")[1].episodes(300, 3)
    moved, slopes = look(targets, problem, clear, 0.2)
    assert moved == [0, 0] and len(slopes) == 2 and not targets.frozen
    look(targets, problem, even.episodes(500, 3), 0.3)
    assert targets.frozen
    kept, _ = look(targets, problem, clear, 0.6)
    assert sorted(kept) == [0, 1]
    single = TargetPolicies(question_of(problem.model, problem.objective))
    assert look(single, problem, clear, 0.03)[0] == [0]


def test_points_are_fewer_in_large_models(monkeypatch):
    problem, even = two_ways()
    question = question_of(problem.model, problem.objective)
    assert TargetPolicies(question).points == POINTS
    monkeypatch.setattr(betting, "MOST_MOVES", 5 * len(question.successor))
    assert TargetPolicies(question).points == 5
    steps = Problem(problem.model, 'Pmax=? [ F<=4 "done" ]').objective
    assert TargetPolicies(question_of(problem.model, steps)).points == 1
    monkeypatch.setattr(betting, "MOST_MOVES", 0)
    alone = TargetPolicies(question)
    assert len(look(alone, problem, even.episodes(100, 3), 0.03)[0]) == 1


def learned(episodes=600, seed=7):
    problem, simulator = two_ways()
    counts = simulator.episodes(episodes, seed)
    return tr.learn(problem, counts, delta=0.01, region="joint", outcomes="none"), counts


def test_several_betting_strategies_guarantee_more_than_one_and_are_proved(monkeypatch):
    """Means of five seeds: V* is .25, and a betting strategy who has to choose is wrong half of the time."""
    result, counts = learned()
    slab = result.region.slab
    assert slab.strategies == 2 and [one.weight for one in slab.every] == [0.5, 0.5]
    assert "2 betting strategies split the initial wealth, one per candidate policy" in result.ledger.lines
    certificate = certificate_of(result, counts)
    assert certificate.problem.data.method == "beta-binomial+9/10 value slab"
    verdict = check(certificate)
    assert verdict.valid and verdict.values["robust policy"][0] == pytest.approx(result.guarantee, abs=1e-6)
    several = np.mean([learned(seed=seed)[0].guarantee for seed in range(5)])
    monkeypatch.setattr(betting, "MOST_TARGETS", 1)
    assert learned()[0].region.slab.strategies == 1
    one = np.mean([learned(seed=seed)[0].guarantee for seed in range(5)])
    assert one < several < 0.25


def test_rows_of_a_mixture_leave_every_point_that_it_leaves():
    result, _ = learned(seed=1)
    region, slab, outcomes = result.region, result.region.slab, Outcomes.of(result.model)
    assert len({tuple(row.share) for stage in slab.rows for row in stage}) > 1
    functions = region.coordinates.functions(result.model.expressions)
    maximiser = LikelihoodMaximiser.of(region.coordinates, functions)
    weight, evidence = np.log([scale.weight for scale in slab.every]), region.evidence
    kept, (side,), rows = 0, slab.sides, region.system.origin == Origin.SLAB
    low, high = region.system.lower[:2], region.system.upper[:2]
    for t in np.random.default_rng(2).uniform(low - 0.02, high + 0.02, size=(400, 2)):
        x = maximiser.lifted(t)
        f = functions.linear @ x + functions.constant
        wealth = [one.log_wealth(outcomes, f) for one in slab.wagers[side]]
        likely = float(evidence.weight @ np.log(f)) >= evidence.threshold
        if likely and np.logaddexp.reduce(weight + wealth) < slab.price[side]:
            kept += 1
            assert np.all(region.system.excess(x)[rows] <= 1e-9)
    assert kept > 50 and rows.sum() > 1


def test_few_data_and_no_plan_have_one_betting_strategy():
    problem, simulator = two_ways()
    outcomes = table_of(problem.model)[1]
    for episodes, planned, strategies in ((200, 200, 1), (600, 600, 2), (600, None, 1)):
        counts = simulator.episodes(episodes, 7)
        if planned is None:
            open_end = replace(counts.design, kind=SamplingKind.ADAPTIVE, planned=None)
            counts = replace(counts, design=open_end)
        bets = PolicyBets(problem.model, problem.objective, None, counts.design)
        slab = place_bets(outcomes, counts, bets, Levels.of(0.05, bets.ends, 2))
        assert (slab.strategies, len(slab.every)) == (strategies, 12 if planned is None else strategies)
    assert statistics_bets.FEW * 2 > 200 * 0.97


def test_shares_of_betting_strategies_that_are_not_there_are_refused():
    """The checker computes the number of betting strategies: it refuses files with another number, and files
    that claim an older format with one strategy."""
    result, counts = learned(seed=1)
    honest = certificate_of(result, counts)
    assert check(honest).valid

    def refused(certificate):
        return [one.detail for one in check(certificate).checks if not one.passed]

    def with_shares(change):
        stages = tuple(replace(stage, share=change(stage.share)) for stage in honest.learned.slab)
        return replace(honest, learned=replace(honest.learned, slab=stages))

    fits = "the points or shares of a slab do not fit its bets"
    for change in (lambda s: s[:, :1], lambda s: np.hstack([s, s])):
        assert any(fits in why for why in refused(with_shares(change)))
    assert any("without shares" in why for why in refused(with_shares(np.zeros_like)))
    for word in ("beta-binomial+slab", "beta-binomial+slab of the best"):
        data = replace(honest.problem.data, method=word)
        assert any(
            fits in why for why in refused(replace(honest, problem=replace(honest.problem, data=data)))
        )
