"""Certificates of ellipsoids: least squares derived again from counts, in every kind of sets."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from learning_cases import FAMILIES, case, counts_of
from test_certificate_learning import added, certified, changed, failures, lowered, rewritten, tightened
from tightrope.certificate.ellipsoid_check import Ellipsoid, _root_up
from tightrope.certificate.inner import as_fraction
from tightrope.certificate.learning import LearningCertificate
from tightrope.certificate.learning_check import Chain, verify_learning
from tightrope.certificate.region_rows import Origin
from tightrope.errors import CannotCertify
from tightrope.learning.certificate import certificate_of
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.statistics.outcomes import Outcomes

AIRCRAFT, BETTING, ENGAGEMENT, ROVER, GLIDER, PARALLEL = FAMILIES


def ellipsoid_of(certificate) -> Ellipsoid:
    chain = Chain(certificate)
    chain.statistics()
    assert chain.ellipsoid is not None
    return chain.ellipsoid


@pytest.mark.parametrize("sets", ["parameter", "expression", "rectangular"])
@pytest.mark.parametrize("family", [AIRCRAFT, BETTING, ENGAGEMENT, ROVER])
def test_results_are_proved_as_they_are(family, sets):
    result, certificate = certified(family, "ellipsoid", sets)
    assert failures(verify_learning(certificate)) == []
    assert not result.fallback and certificate.data.sets == sets
    low, high = certificate.values()["robust policy"]
    assert low == pytest.approx(result.robust.interval.lower, rel=1e-9)
    assert high == pytest.approx(result.robust.interval.upper, rel=1e-9)
    truth = case(family).value_of(result.robust.policy)
    assert low <= truth * (1 + 1e-6) and truth <= high * (1 + 1e-6)


def test_products_are_covered():
    result, certificate = certified(PARALLEL, "ellipsoid", "rectangular")
    assert result.region.coordinates.is_lifted
    assert set(certificate.region.row[:, 0].tolist()) >= {Origin.ENVELOPE, Origin.TANGENT}
    assert failures(verify_learning(certificate)) == []


@pytest.mark.parametrize("sets", ["expression", "rectangular"])
def test_the_same_in_rationals(sets):
    _, certificate = certified(AIRCRAFT, "ellipsoid", sets)
    assert failures(verify_learning(certificate, exactly=True)) == []


def test_rectangular_values_need_the_closed_form():
    """They are better than those of expression sets, and the checker proves them from the ellipsoid."""
    wide, narrow = (certified(AIRCRAFT, "ellipsoid", sets)[1] for sets in ("expression", "rectangular"))
    assert wide.values()["robust policy"][0] < narrow.values()["robust policy"][0] - 1e-3
    relaxed = replace(narrow, data=replace(narrow.data, sets="expression"))
    assert failures(verify_learning(relaxed))


def test_the_ellipsoid_is_that_of_least_squares():
    """By plain floating point, one observation a visit."""
    subject, counts = case(ENGAGEMENT), counts_of(ENGAGEMENT)
    result, certificate = certified(ENGAGEMENT, "ellipsoid", "expression")
    found = ellipsoid_of(certificate)
    coordinates = result.region.coordinates
    functions = coordinates.functions(subject.model.expressions)
    outcomes = Outcomes.of(subject.model)
    seen = outcomes.pooled(counts)
    visits = outcomes.visits(seen)[outcomes.signature]
    origin, half = (coordinates.lower + coordinates.upper) / 2, (coordinates.upper - coordinates.lower) / 2
    times = outcomes.multiplicity
    slope = functions.linear[outcomes.expression] * times[:, None] * half
    level = (functions.constant + functions.linear @ origin)[outcomes.expression] * times
    size = coordinates.size
    matrix = 0.1 * np.eye(size) + (slope * visits[:, None]).T @ slope
    centre = np.linalg.solve(matrix, slope.T @ (seen - visits * level))
    growth = np.linalg.slogdet(matrix / 0.1)[1]
    beta = np.sqrt((growth + 2 * np.log(1 / 0.05)) / 2) + np.sqrt(0.1 * size)
    assert found.centre.astype(float) == pytest.approx(centre, rel=1e-9)
    assert float(found.beta) == pytest.approx(beta, rel=1e-10)
    assert found.beta <= found.radius <= found.beta * (1 + Fraction(1, 10**12))
    directions = np.random.default_rng(3).normal(size=(20, size))
    q = directions * half
    norm = np.sqrt((q * np.linalg.solve(matrix, q.T).T).sum(axis=1))
    expected = directions @ origin + q @ centre + beta * norm
    extended = found.upper_bounds(directions.astype(np.longdouble), np.zeros(20, dtype=np.int32))
    assert extended.astype(float) == pytest.approx(expected, rel=1e-9)
    found.directions = directions
    for i in range(20):
        _, bound = found.row(i, 0)
        assert bound <= as_fraction(extended[i]) <= bound + Fraction(1, 10**15)


def test_nothing_is_bounded_in_no_direction():
    _, certificate = certified(AIRCRAFT, "ellipsoid", "expression")
    found = ellipsoid_of(certificate)
    nothing = np.zeros((2, len(found.half)), dtype=np.longdouble)
    assert found.upper_bounds(nothing, np.zeros(2, dtype=np.int32)).tolist() == [0, 0]


def test_roots_are_rounded_up():
    for value in (Fraction(2), Fraction(1, 3), Fraction(4), Fraction(1, 2**1400), Fraction(10**60, 7)):
        root = _root_up(value)
        assert value < root**2 < value * (1 + Fraction(1, 2**70))
    assert _root_up(Fraction(0)) == 0
    with pytest.raises(ValueError, match="negative"):
        _root_up(Fraction(-1))


def another_level(certificate):
    """A smaller δ, spent in full: the ellipsoid is larger."""
    delta = certificate.data.delta * 0.999
    return replace(certificate, data=replace(certificate.data, delta=delta, gamma=delta))


def counted_again(certificate):
    """One more of what was seen last."""
    counts = certificate.data.counts.copy()
    counts[np.flatnonzero(counts)[-1]] += 1
    return replace(certificate, data=replace(certificate.data, counts=counts))


MUTATIONS = [
    ("a count", changed("data", "counts", lambda a: np.where(a == a.max(), a + 1, a))),
    ("another count", counted_again),
    ("half the counts", changed("data", "counts", lambda a: a // 2)),
    ("no counts", changed("data", "counts", lambda a: 0 * a)),
    ("counts beyond measure", changed("data", "counts", lambda a: a * 2**50)),
    ("delta", changed("data", "delta", lambda d: d * 0.9)),
    ("delta and gamma", another_level),
    ("delta of 1", changed("data", "delta", lambda _: 1.0)),
    ("gamma", changed("data", "gamma", lambda g: g * 2)),
    ("the method", changed("data", "method", lambda _: "beta-binomial")),
    ("the domain", rewritten("data", "domain", lambda d: d | {"upper": ["2"] * len(d["upper"])})),
    ("tangents' directions", changed("region", "cut_point", lambda a: a[::-1])),
    ("a direction that is no number", changed("region", "cut_point", lambda a: a * np.nan)),
    ("a tangent that is not there", changed("region", "row", lambda a: a + np.array([0, 1000, 0]))),
    ("a basis out of range", changed("region", "bound_basis", added(0, 10_000))),
    ("bases of the box", changed("region", "box_basis", lambda a: np.full_like(a, -1))),
    ("a smaller box", changed("region", "box_upper", lambda a: a - 1e-6)),
    ("transitions' lower bounds", changed("problem", "lower", tightened)),
    ("transitions' upper bounds", changed("problem", "upper", lowered)),
    ("lower values", changed("guarantee", "lower", lambda a: np.where((a > 0) & (a < 1), a + 1e-5, a))),
    ("upper values", changed("guarantee", "upper", lambda a: np.where((a > 0) & (a < 1), a - 1e-5, a))),
]


@pytest.mark.parametrize(("words", "mutate"), MUTATIONS, ids=[words for words, _ in MUTATIONS])
@pytest.mark.parametrize("sets", ["expression", "rectangular"])
def test_mutations_fail(words, mutate, sets):
    _, certificate = certified(AIRCRAFT, "ellipsoid", sets)
    assert failures(verify_learning(mutate(certificate))), words


@pytest.mark.parametrize("region", ["ellipsoid", "likelihood", "l1"])
def test_events_count_only_where_they_are_derived(region):
    """Made-up intervals of events do not become rows of another region."""
    _, certificate = certified(AIRCRAFT, region, "rectangular")
    _, other = certified(AIRCRAFT, "polytope", "rectangular")
    names = ("event_expression", "event_multiplicity", "event_lower", "event_upper")
    data = replace(certificate.data, **{name: getattr(other.data, name) for name in names})
    assert failures(verify_learning(certificate)) == []
    assert failures(verify_learning(replace(certificate, data=data)))


def test_files_round_trip(tmp_path):
    _, certificate = certified(AIRCRAFT, "ellipsoid", "rectangular")
    certificate.save(tmp_path / "learned.cert")
    again = LearningCertificate.load(tmp_path / "learned.cert")
    assert again.digest() == certificate.digest()
    assert failures(verify_learning(again)) == []


def test_the_published_ellipsoid_is_refused_in_words():
    subject, counts = case(ROVER), counts_of(ROVER)
    options = LearnOptions(ellipsoid=EllipsoidVersion.PAPER)
    result = learn(
        subject.model, counts, 0.05, subject.objective, region="ellipsoid", sets="expression", options=options
    )
    with pytest.raises(CannotCertify, match="nothing is guaranteed"):
        certificate_of(result, counts)


def test_steps_are_covered_by_the_expression_sets():
    subject, counts = case(AIRCRAFT), counts_of(AIRCRAFT)
    objective = replace(subject.objective, upper_steps=3)
    result = learn(subject.model, counts, 0.05, objective, region="ellipsoid", sets="rectangular")
    certificate = certificate_of(result, counts)
    assert certificate.data.sets == "expression"
    assert failures(verify_learning(certificate)) == []
    low, high = certificate.values()["robust policy"]
    assert low <= result.robust.interval.lower and result.robust.interval.upper <= high
