"""Certificates of ellipsoids: least squares derived again from counts, in every kind of sets."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cases.learned_certificates import added, certified, changed, failures, moved, proved, values
from learning_cases import FAMILIES, case, counts_of
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.errors import CannotCertify
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.problem import Problem
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.archive import load
from tightrope_check.learned import Learned, RowOrigin
from tightrope_check.numbers import FLOAT64, RATIONAL, as_fraction
from tightrope_check.statistics.ellipsoid import EllipsoidRows

AIRCRAFT, BETTING, ENGAGEMENT, ROVER, GLIDER, PARALLEL = FAMILIES


def ellipsoid_of(certificate, n=FLOAT64) -> EllipsoidRows:
    return Learned(certificate, n).statements.sources[RowOrigin.TANGENT]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("family", "sets"),
    [(AIRCRAFT, "parameter"), *((family, "rectangular") for family in (AIRCRAFT, BETTING, ENGAGEMENT, ROVER))]
    + [(family, "expression") for family in (AIRCRAFT, ENGAGEMENT)],
)
def test_results_are_proved_as_they_are(family, sets):
    result, certificate = certified(family, "ellipsoid", sets)
    assert failures(certificate) == []
    assert not result.fallback and (certificate.values[0].lower_basis is not None) == (sets == "rectangular")
    low, high = values(certificate)["robust policy"]
    assert low == pytest.approx(result.robust.interval.lower, rel=1e-9)
    assert high == pytest.approx(result.robust.interval.upper, rel=1e-9)
    truth = case(family).value_of(result.robust.policy)
    assert low <= truth * (1 + 1e-6) and truth <= high * (1 + 1e-6)


def test_products_are_covered():
    result, certificate = certified(PARALLEL, "ellipsoid", "rectangular")
    assert result.region.coordinates.is_lifted
    assert set(certificate.learned.region.row[:, 0].tolist()) >= {RowOrigin.ENVELOPE, RowOrigin.TANGENT}
    assert failures(certificate) == []


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sets", ["expression", "rectangular"])
def test_the_same_in_rationals(sets):
    _, certificate = certified(AIRCRAFT, "ellipsoid", sets)
    assert failures(certificate, exactly=True) == []


def test_rectangular_values_need_the_closed_form():
    """They are better than those of expression sets, and the checker proves them from the ellipsoid."""
    wide, narrow = (certified(AIRCRAFT, "ellipsoid", sets)[1] for sets in ("expression", "rectangular"))
    assert values(wide)["robust policy"][0] < values(narrow)["robust policy"][0] - 1e-3
    assert failures(moved(narrow, "values.0.lower_basis", lambda a: a * 0 - 1))


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
    assert RATIONAL.floats(found.centre) == pytest.approx(centre, rel=1e-9)
    assert float(found.beta) == pytest.approx(beta, rel=1e-10)
    assert found.beta <= as_fraction(found.radius) <= found.beta * (1 + Fraction(1, 10**12))
    directions = np.random.default_rng(3).normal(size=(20, size))
    q = directions * half
    norm = np.sqrt((q * np.linalg.solve(matrix, q.T).T).sum(axis=1))
    expected = directions @ origin + q @ centre + beta * norm
    near = found.within(FLOAT64).upper_bounds(directions, None)
    assert near == pytest.approx(expected, rel=1e-9)
    for i, bound in enumerate(FLOAT64.fractions(near)):
        tangent = found.row(i, 0, directions)[1]
        assert tangent <= bound <= tangent + Fraction(1, 10**11)


def test_nothing_is_bounded_in_no_direction():
    _, certificate = certified(AIRCRAFT, "ellipsoid", "expression")
    found = ellipsoid_of(certificate)
    nothing = np.zeros((2, len(found.half)))
    assert found.within(FLOAT64).upper_bounds(nothing, None).tolist() == [0, 0]
    assert found.upper_bounds(RATIONAL.array(nothing), None).tolist() == [0, 0]


def counted_again(certificate):
    """One more of what was seen last."""
    return moved(certificate, "problem.data.batch_count", added(-1, 1))


DATA, REGION = "problem.data", "learned.region"
MUTATIONS = [
    ("a count", changed(f"{DATA}.batch_count", lambda a: np.where(a == a.max(), a + 1, a))),
    ("another count", counted_again),
    ("half the counts", changed(f"{DATA}.batch_count", lambda a: np.maximum(a // 2, 1))),
    ("counts beyond measure", changed(f"{DATA}.batch_count", lambda a: a * 2**50)),
    ("delta", changed(f"{DATA}.delta", lambda d: d * 0.999)),
    ("delta of 1", changed(f"{DATA}.delta", 1.0)),
    ("the method", changed(f"{DATA}.method", "beta-binomial")),
    ("the domain", changed("problem.domain.upper", lambda a: tuple(2 * value for value in a))),
    ("tangents' directions", changed(f"{REGION}.point", lambda a: a[::-1])),
    ("a direction that is not a number", changed(f"{REGION}.point", lambda a: a * np.nan)),
    ("a tangent that is not there", changed(f"{REGION}.row", lambda a: a + np.array([0, 1000, 0]))),
    ("a basis out of range", changed(f"{REGION}.box_basis", added(0, 10_000))),
    ("lower values", changed("values.0.lower", lambda a: np.where((a > 0) & (a < 1), a + 1e-5, a))),
    ("upper values", changed("values.0.upper", lambda a: np.where((a > 0) & (a < 1), a - 1e-5, a))),
]


@pytest.mark.thinned(5)
@pytest.mark.parametrize(("words", "mutate"), MUTATIONS, ids=[words for words, _ in MUTATIONS])
@pytest.mark.parametrize("sets", ["expression", "rectangular"])
def test_mutations_fail(words, mutate, sets):
    assert failures(mutate(proved("aircraft(4,3)", "ellipsoid", sets))), words


@pytest.mark.thinned(3)
@pytest.mark.parametrize("region", ["ellipsoid", "likelihood", "l1"])
def test_events_count_only_where_they_are_derived(region):
    """Made-up intervals of events do not become rows of another region."""
    _, certificate = certified(AIRCRAFT, region, "rectangular")
    _, other = certified(AIRCRAFT, "polytope", "rectangular")
    own = {name: getattr(other.learned, name) for name in ("lower", "upper")}
    assert failures(certificate) == []
    assert failures(replace(certificate, learned=replace(certificate.learned, **own)))


def test_files_round_trip(tmp_path):
    _, certificate = certified(AIRCRAFT, "ellipsoid", "rectangular")
    digest = as_file(certificate).save(tmp_path / "learned.cert")
    again = load(tmp_path / "learned.cert")
    assert again.digest == digest
    assert failures(again.certificate) == []


def test_the_published_ellipsoid_is_refused_in_words():
    subject, counts = case(ROVER), counts_of(ROVER)
    options = LearnOptions(ellipsoid=EllipsoidVersion.PAPER)
    result = learn(
        subject.problem, counts, delta=0.05, region="ellipsoid", sets="expression", **options.words
    )
    with pytest.raises(CannotCertify, match="nothing is guaranteed"):
        certificate_of(result, counts)


def test_steps_are_covered_by_the_expression_sets():
    subject, counts = case(AIRCRAFT), counts_of(AIRCRAFT)
    objective = replace(subject.objective, upper_steps=3)
    result = learn(
        Problem(subject.model, objective), counts, delta=0.05, region="ellipsoid", sets="rectangular"
    )
    certificate = certificate_of(result, counts)
    assert certificate.values[0].lower_basis is None
    assert failures(certificate) == []
    low, high = values(certificate)["robust policy"]
    assert low <= result.robust.interval.lower and result.robust.interval.upper <= high
