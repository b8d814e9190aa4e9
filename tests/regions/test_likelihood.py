"""The likelihood region: evidence by hand, cuts that never cut the region, limits and verdicts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from effort import repeats
from region_reference import coins, counts_of, generative, simplex
from tightrope.data.counts import Batches, Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.errors import InputError
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.monitoring.examination import weigh_fit
from tightrope.regions.bounds import expression_bounds, parameter_box
from tightrope.regions.halfspaces import Origin
from tightrope.regions.likelihood import LIKELIHOOD, LogLikelihood
from tightrope.regions.region import RegionTask, Relaxation
from tightrope.statistics.bets import Predictions
from tightrope.statistics.confidence_budget import Assumption
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Evidence, prequential

F = Fraction
P, Q, R = (Polynomial.variable(i) for i in range(3))


def evidence_of(model: ParametricMDP, counts: Counts, delta: float) -> Evidence:
    return prequential(Outcomes.of(model), counts, delta)


def in_batches(model: ParametricMDP, batches: list[list[int]], kind: SamplingKind) -> Counts:
    parts = []
    for batch in batches:
        seen = np.array(batch, dtype=np.int64)
        parts.append((np.flatnonzero(seen), seen[seen > 0]))
    return Counts.from_batches(
        Batches.from_parts(parts), model.transition_start, SamplingDesign(kind), model.hash()
    )


def test_smoothed_estimate_of_a_coin_is_krichevsky_trofimov() -> None:
    model = coins(Parameters.unit_box(("p",)), [P])
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    maximiser = LikelihoodMaximiser(coordinates, functions)
    weight = np.zeros(len(model.expressions))
    head, tail = model.expressions.index_of(P), model.expressions.complement[model.expressions.index_of(P)]
    for heads, tails in ((0, 0), (3, 7), (0, 50), (1000, 1)):
        weight[head], weight[tail] = heads, tails
        expected = (heads + 0.5) / (heads + tails + 1)
        assert maximiser.estimate(weight)[0] == pytest.approx(expected, rel=1e-4)


def test_threshold_is_the_prequential_likelihood_by_hand() -> None:
    model = coins(Parameters.unit_box(("p",)), [P])
    batches = [[2, 1, 0, 0], [1, 2, 0, 0], [3, 1, 0, 0]]
    evidence = evidence_of(model, in_batches(model, batches, SamplingKind.ADAPTIVE), 0.05)
    by_hand = 0.0
    heads = tails = 0
    for batch in batches:
        guess = (heads + 0.5) / (heads + tails + 1)
        by_hand += batch[0] * math.log(guess) + batch[1] * math.log(1 - guess)
        heads, tails = heads + batch[0], tails + batch[1]
    # Adaptive data: no pilot yet, and the choice among pilots costs log(1·2).
    expected = by_hand - math.log(20) - math.log(2)
    assert evidence.pilot == 0 and evidence.assumption is Assumption.ADAPTIVE_ANYTIME
    assert evidence.threshold <= expected + 1e-9
    assert evidence.threshold == pytest.approx(expected, abs=1e-3)


def test_region_of_a_coin_is_its_level_set() -> None:
    model = coins(Parameters.unit_box(("p",)), [P])
    counts = generative(model, [F(3, 10)], 500, np.random.default_rng(2))
    evidence = evidence_of(model, counts, 0.05)
    region = LIKELIHOOD.build(RegionTask(model, counts, 0.05))
    low, high = (float(v[0]) for v in parameter_box(region))
    table = model.expressions
    head = table.index_of(P)
    heads, tails = evidence.weight[head], evidence.weight[table.complement[head]]

    def level(p: float) -> float:
        return heads * math.log(p) + tails * math.log(1 - p)

    assert level(low) <= evidence.threshold and level(high) <= evidence.threshold
    assert level(low + 0.03 * (high - low)) > evidence.threshold
    assert level(high - 0.03 * (high - low)) > evidence.threshold


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("parameters", "expressions", "truth"),
    [
        (Parameters.unit_box(("p", "q")), [P, Q / 2 + P / 2, Q], [F(3, 10), F(3, 5)]),
        (Parameters.unit_box(("p", "q")), [P * Q, P / 2 + Q / 3], [F(3, 10), F(3, 5)]),
        (Parameters.unit_box(("p",)), [P * P, P / 2], [F(2, 5)]),
        (simplex("a", "b", "c"), [P / 2 + Q / 4, R, Q], [F(1, 5), F(1, 2), F(3, 10)]),
        (Parameters.box(p=("0.2", "0.35"), q=(0, 1)), [P, Q / 2 + P / 2], [F(3, 10), F(3, 5)]),
    ],
)
def test_every_parameter_above_the_threshold_is_in_the_polytope(
    parameters: Parameters, expressions: list[Polynomial], truth: list[Fraction]
) -> None:
    model = coins(parameters, expressions)
    counts = generative(model, truth, 600, np.random.default_rng(12))
    region = LIKELIHOOD.build(RegionTask(model, counts, 0.05))
    evidence = evidence_of(model, counts, 0.05)
    functions = region.coordinates.functions(model.expressions)
    likelihood = LogLikelihood(functions, evidence.weight, evidence.threshold)
    assert region.relaxation is Relaxation.OUTER and region.contains(truth)
    low, high = parameter_box(region)
    rng = np.random.default_rng(13)
    size = len(parameters)
    grown = 0.3 * (high - low)
    lower = np.maximum(low - grown, [float(v) for v in parameters.lower])
    upper = np.minimum(high + grown, [float(v) for v in parameters.upper])
    thetas = rng.uniform(lower, upper, size=(4000, size))
    if parameters.constraints:
        thetas[:, -1] = 1.0 - thetas[:, :-1].sum(axis=1)
        thetas = thetas[np.all(thetas >= 0, axis=1)]
    x = region.coordinates.lift(thetas)
    above = likelihood.values(x) >= evidence.threshold
    assert 20 < above.sum() < len(thetas)
    matrix, bound = region.facets
    assert np.all(x[above] @ matrix.T <= bound + 1e-12)
    every = model.expressions.values_many(thetas[above])
    e_low, e_high = expression_bounds(region, model.expressions)
    assert np.all(every >= e_low - 1e-12) and np.all(every <= e_high + 1e-12)
    assert np.all(thetas[above] >= low - 1e-12) and np.all(thetas[above] <= high + 1e-12)
    assert any("tangent cuts" in note for note in region.notes)
    assert region.evidence is not None and region.cut_points is not None
    for row in np.flatnonzero(region.system.origin == Origin.CUT):
        point = region.cut_points[region.system.index[row]]
        again, limit = likelihood.cut(point, region.coordinates.lower, region.coordinates.upper)
        assert np.array_equal(again, region.system.matrix[row]) and limit == region.system.bound[row]


def test_five_parameters_use_directions_and_stay_within_the_excess() -> None:
    names = tuple("abcde")
    parameters = Parameters.unit_box(names)
    expressions = [Polynomial.variable(i) * Polynomial.constant(F(1, 2)) + P / 4 for i in range(5)]
    model = coins(parameters, expressions)
    truth = [F(2, 5), F(1, 2), F(3, 5), F(1, 3), F(9, 20)]
    counts = generative(model, truth, 2000, np.random.default_rng(3))
    region = LIKELIHOOD.build(RegionTask(model, counts, 0.05))
    assert region.contains(truth) and region.vertices is None
    evidence = evidence_of(model, counts, 0.05)
    functions = region.coordinates.functions(model.expressions)
    likelihood = LogLikelihood(functions, evidence.weight, evidence.threshold)
    low, high = region.bounding_box
    rng = np.random.default_rng(4)
    centre = LikelihoodMaximiser(region.coordinates, functions).lifted(evidence.estimate)
    rays = centre + rng.normal(size=(3000, 5)) * (high - low)
    points = centre + 0.999 * (likelihood.boundary(centre, rays)[:, None]) * (rays - centre)
    inside = np.all((points >= 0) & (points <= 1), axis=1)
    assert np.all(points[inside] >= low) and np.all(points[inside] <= high)
    reached = points[inside].max(axis=0) - points[inside].min(axis=0)
    assert np.all(high - low <= 1.15 * reached)


def test_pilots_follow_the_plan_or_are_paid_for() -> None:
    model = coins(Parameters.unit_box(("p",)), [P])
    planned = generative(model, [F(1, 2)], 1000, np.random.default_rng(5))
    assert planned.batches is not None
    evidence = evidence_of(model, planned, 0.05)
    ends = np.cumsum([count.sum() for _, count in planned.batches])
    assert ends[evidence.pilot - 1] <= 0.1 * ends[-1] < ends[evidence.pilot]
    assert evidence.assumption is Assumption.TRAJECTORIES
    adaptive = Counts.from_batches(
        planned.batches, planned.transition_start, SamplingDesign(SamplingKind.ADAPTIVE), planned.model_hash
    )
    paid = evidence_of(model, adaptive, 0.05)
    assert paid.shares is not None and paid.assumption is Assumption.ADAPTIVE_ANYTIME
    assert paid.pilot == 10 * np.flatnonzero(paid.shares)[0]
    region = LIKELIHOOD.build(RegionTask(model, adaptive, 0.05))
    assert region.ledger.holds and region.ledger.notes == (paid.note(),)


def test_pilots_are_mixed_where_nothing_was_planned() -> None:
    """The threshold by hand: batches count by the shares of the pilots that end before them, at KL(π‖w)."""
    model = coins(Parameters.unit_box(("p",)), [P])
    rng = np.random.default_rng(8)
    sizes = [max(1, round(1.25**b)) for b in range(34)]
    heads = [int(rng.binomial(n, 0.3)) for n in sizes]
    batches = [[k, n - k, 0, 0] for k, n in zip(heads, sizes, strict=True)]
    evidence = evidence_of(model, in_batches(model, batches, SamplingKind.ADAPTIVE), 0.05)
    shares = evidence.shares
    assert shares is not None and shares.sum() == 1.0 and np.count_nonzero(shares) >= 2
    assert np.array_equal(shares * 1024, np.rint(shares * 1024))
    expected = -math.log(20) - sum(
        share * math.log(share * (j + 1) * (j + 2)) for j, share in enumerate(shares) if share
    )
    known, seen, weight = [0, 0], np.zeros(2), np.zeros(2)
    for number, (k, n) in enumerate(zip(heads, sizes, strict=True)):
        counted = float(shares[: number // 10 + 1].sum())
        guess = (known[0] + 0.5) / (sum(known) + 1)
        expected += counted * (k * math.log(guess) + (n - k) * math.log(1 - guess))
        seen = np.array([k, n - k])
        weight += counted * seen
        known = [known[0] + k, known[1] + n - k]
    assert evidence.threshold <= expected + 1e-9
    assert evidence.threshold == pytest.approx(expected, abs=1e-3)
    head = model.expressions.index_of(P)
    assert [evidence.weight[head], evidence.weight[model.expressions.complement[head]]] == weight.tolist()
    assert "pilots, mixed: the first" in evidence.note()
    LIKELIHOOD.build(RegionTask(model, in_batches(model, batches, SamplingKind.ADAPTIVE), 0.05))


def test_mixed_pilots_cover_at_all_times_at_once() -> None:
    """Whoever stops as soon as the truth is left out succeeds with probability at most δ."""
    model = coins(Parameters.unit_box(("p",)), [P])
    outcomes = Outcomes.of(model)
    head = model.expressions.index_of(P)
    tail = model.expressions.complement[head]
    sizes = [max(1, round(1.25**b)) for b in range(28)]
    delta, truth, missed, runs = 0.2, 0.15, 0, repeats(60)
    rng = np.random.default_rng(17)
    for _ in range(runs):
        batches = [[int(k), n - int(k), 0, 0] for n, k in zip(sizes, rng.binomial(sizes, truth), strict=True)]
        predictions = Predictions()
        for looks in range(10, len(batches) + 1):
            counts = in_batches(model, batches[:looks], SamplingKind.ADAPTIVE)
            evidence = prequential(outcomes, counts, delta, predictions)
            value = evidence.weight[head] * math.log(truth) + evidence.weight[tail] * math.log(1 - truth)
            if value < evidence.threshold:
                missed += 1
                break
    assert missed <= delta * runs


def test_without_batches_the_region_is_refused_and_without_data_it_is_the_domain() -> None:
    model = coins(Parameters.unit_box(("p",)), [P])
    with pytest.raises(InputError, match="batches"):
        LIKELIHOOD.build(
            RegionTask(model, counts_of(model, [3, 4, 0, 0], SamplingKind.GENERATIVE_FIXED), 0.05)
        )
    nothing = LIKELIHOOD.build(RegionTask(model, in_batches(model, [], SamplingKind.ADAPTIVE), 0.05))
    low, high = parameter_box(nothing)
    assert (low[0], high[0]) == (0.0, 1.0)


def test_a_wrong_model_leaves_the_likelihood_region_as_it_is() -> None:
    """It is contradicted by a test apart (`tightrope.monitoring.examination`)."""
    wrong = coins(Parameters.unit_box(("p",)), [P, P / 2])
    contradicting = in_batches(wrong, [[450, 50, 400, 100, 0, 0]] * 4, SamplingKind.ADAPTIVE)
    assert not LIKELIHOOD.build(RegionTask(wrong, contradicting, 0.05)).emptiness.is_empty
    assert weigh_fit(wrong, contradicting).alarm


@pytest.mark.parametrize("size", [2, 5])
def test_a_parameter_never_seen_keeps_its_domain(size: int) -> None:
    names = tuple("abcde"[:size])
    model = coins(Parameters.unit_box(names), [Polynomial.variable(i) for i in range(size)])
    rng = np.random.default_rng(7)
    batches = []
    for batch in range(25):
        heads = rng.binomial(2 + batch, 0.4, size)
        heads_and_tails = np.stack([heads, 2 + batch - heads], axis=1)
        heads_and_tails[-1] = 0
        batches.append([*heads_and_tails.ravel().tolist(), 0, 0])
    region = LIKELIHOOD.build(RegionTask(model, in_batches(model, batches, SamplingKind.ADAPTIVE), 0.05))
    low, high = parameter_box(region)
    assert not region.emptiness.is_empty and region.contains([F(2, 5)] * size)
    assert low[-1] < 1e-6 and high[-1] > 1 - 1e-6
    assert np.all(low[:-1] > 0.2) and np.all(high[:-1] < 0.65)
