"""Every region with every kind of sets on every family: it works and covers the truth, or is refused."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

from effort import WHOLE
from learning_cases import FAMILIES, case, counts_of, options
from tightrope.ambiguity.sets import SetsKind
from tightrope.errors import InputError
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions, decide
from tightrope.learning.pipeline import Pipeline
from tightrope.learning.result import LearningResult
from tightrope.learning.solve import solve_over_domain
from tightrope.regions.region import RegionKind, RegionOptions
from tightrope.regions.registry import own_kinds, region_kind
from tightrope.statistics.estimates import IntervalMethod
from tightrope.statistics.least_squares import EllipsoidVersion

DELTA = 0.01
COSTLY = {
    ("engagement(2)", region_kind("likelihood")),
    ("parallel(2)", region_kind("polytope")),
    ("parallel(2)", region_kind("likelihood")),
    ("engagement(2)", region_kind("slab")),
    ("parallel(2)", region_kind("slab")),
}
"""Where coupled sets take seconds: thousands of vertices. The families have them over another region."""

OVER_A_REGION = tuple(kind for kind in SetsKind if kind.has_region)


def all_sets(name: str, region: RegionKind) -> dict[SetsKind, LearningResult]:
    known = case(name)
    asked = LearnOptions(region=region)
    learner = Pipeline.start(known.problem, counts_of(name), DELTA, options=asked, policy=known.policy)
    kinds = OVER_A_REGION if region != region_kind("polytope") else (SetsKind.TIED, *OVER_A_REGION)
    if region == region_kind("ellipsoid") or (name, region) in COSTLY:
        kinds = tuple(kind for kind in kinds if kind is not SetsKind.COUPLED)
    if region == region_kind("slab"):
        kinds = tuple(kind for kind in kinds if kind is not SetsKind.PARAMETER)
    return {kind: learner.result(asked.with_sets(kind)) for kind in kinds}


EVERYWHERE = (region_kind("polytope"), region_kind("likelihood"))
"""The defaults, on every family; other regions where there are costs, products, and neither."""
SOME_FAMILIES = ("aircraft(5,3)", "engagement(2)", "glider(5,5)")


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("name", "region"),
    [
        (name, r)
        for name in FAMILIES
        for r in own_kinds()
        if WHOLE or r in EVERYWHERE or name in SOME_FAMILIES
    ],
)
def test_every_combination_covers_the_true_value_and_nests(name: str, region: RegionKind) -> None:
    known = case(name)
    results = all_sets(name, region)
    for kind, result in results.items():
        assert result.contradiction is None
        assert result.status == "as close as was asked", kind
        assert result.value is not None
        assert known.optimum in result.value.interval, kind
        assert known.value_of(result.robust.policy) in result.robust.interval, kind
        assert result.region is None or result.region.contains(known.instance.truth)
        assert set(result.seconds) == {"statistics", "region", "sets", "fit", "solve"}
        assert result.ledger.delta == DELTA
        maximises = known.objective.agent.name == "MAX"
        best = result.optimistic_value
        assert (best >= known.optimum - 1e-9) if maximises else (best <= known.optimum + 1e-9)
    nested = [SetsKind.EXPRESSION, SetsKind.RECTANGULAR]
    if SetsKind.COUPLED in results:
        nested.append(SetsKind.COUPLED)
    _assert_nested(results, [kind for kind in (SetsKind.PARAMETER, *nested) if kind in results])
    if region == region_kind("polytope"):
        _assert_nested(results, [SetsKind.TIED, *nested])


def _assert_nested(results: dict[SetsKind, LearningResult], order: list[SetsKind]) -> None:
    """Theorem 2 in certified values, to the precision of the solver."""
    for outer, inner in pairwise(order):
        wide, tight = results[outer].value, results[inner].value
        assert wide is not None and tight is not None
        for a, b, sign in (
            (wide.interval.lower, tight.interval.lower, 1.0),
            (wide.interval.upper, tight.interval.upper, -1.0),
        ):
            if math.isfinite(b):
                assert sign * (b - a) >= -3e-6 * abs(b), (outer, inner)
            else:
                assert a == b
        allowed = 3e-6 * abs(results[inner].guarantee)
        if math.isfinite(results[outer].guarantee):
            better = results[inner].guarantee - results[outer].guarantee
            assert (better if _maximises(results[inner]) else -better) >= -allowed


def _maximises(result: LearningResult) -> bool:
    return result.objective.agent.name == "MAX"


@pytest.mark.parametrize("kind", [kind for kind in SetsKind if not kind.has_region])
def test_sets_without_a_region_refuse_one(kind: SetsKind) -> None:
    known = case("betting(8)")
    for region in own_kinds():
        if kind is SetsKind.TIED and region == region_kind("polytope"):
            assert decide(known.model, counts_of("betting(8)"), options(region, kind)).region is None
            continue
        with pytest.raises(InputError, match=f"they have no use for the region {region.value}"):
            options(region, kind)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"sets": "expression", "intersect": True}, "lie within them already"),
        ({"sets": "tied", "intersect": True}, "are these intervals"),
        (
            {"region": "ellipsoid", "sets": "parameter", "intersect": True},
            "hold simultaneously only where the region is made of these intervals; ellipsoid is not",
        ),
        (
            {"region": "polytope", "sets": "expression", "ellipsoid": "paper"},
            "but the region polytope is used",
        ),
        ({"sets": "tied", "ellipsoid": "paper"}, "but no region is used"),
        ({"sets": "tied", "region": "ellipsoid"}, "they have no use for the region ellipsoid"),
        ({"sets": "untied", "region": "polytope"}, "they have no use for the region polytope"),
        ({"sets": "coupled", "region": "ellipsoid"}, "half-spaces"),
        ({"sets": "coupled", "ellipsoid": "paper", "region": "ellipsoid"}, "half-spaces"),
        ({"sets": "untied", "budget": "paper"}, "`budget` divides δ among tied events"),
        ({"intersect": True, "region": "l1"}, "l1 is not"),
        ({"intersect": True, "ellipsoid": "paper"}, "made of these intervals; ellipsoid is not"),
    ],
)
def test_combinations_without_a_meaning_are_refused_when_the_options_are_made(
    asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        LearnOptions(**asked)


def test_names_of_choices_are_the_choices() -> None:
    """A name used to pass unchecked, and something else was computed than was asked for."""
    asked = LearnOptions(sets="tied", interval="hoeffding", budget="paper")
    assert asked.sets is SetsKind.TIED and asked.interval is IntervalMethod.HOEFFDING
    known = case("betting(8)")
    with pytest.raises(InputError, match="no use for the region ellipsoid"):
        learn(known.problem, counts_of("betting(8)"), delta=DELTA, **asked.words, region="ellipsoid")
    result = learn(known.problem, counts_of("betting(8)"), delta=DELTA, **asked.words)
    assert result.kind is SetsKind.TIED
    result = learn(known.problem, counts_of("betting(8)"), delta=DELTA, region="ellipsoid", sets="expression")
    assert result.kind is SetsKind.EXPRESSION


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"sets": "foo"},
            "`sets` is 'foo', not one of untied, tied, parameter, expression, rectangular, coupled",
        ),
        ({"sets": 3}, "`sets` is 3, not one of untied, "),
        ({"region": "sphere"}, "`region` is 'sphere', not one of polytope, l1, ellipsoid, likelihood"),
        ({"interval": ""}, "`interval` is '', not one of .*"),
        ({"budget": None}, "`budget` is None, not one of tied, paper"),
        ({"ellipsoid": "round"}, "`ellipsoid` is 'round', not one of .*"),
        ({"device": "tpu"}, "`device` is 'tpu', not one of cpu, cuda"),
        ({"fallback": "no"}, "`fallback` is 'no', not True or False"),
        ({"intersect": 1}, "`intersect` is 1, not True or False"),
        ({"precision": "1e-3"}, "`precision` is '1e-3', not a number"),
        ({"iterations": True}, "`iterations` is True, not a number"),
        ({"seconds": float("nan")}, "`seconds` is nan"),
    ],
)
def test_options_that_mean_nothing_are_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LearnOptions(**asked)


def test_the_options_of_a_region_are_checked_too() -> None:
    assert RegionOptions(interval="hoeffding").interval is IntervalMethod.HOEFFDING
    with pytest.raises(InputError, match=r"`interval` is 'wide', not one of .*"):
        RegionOptions(interval="wide")


def test_options_that_refers_to_data_are_refused_without_data() -> None:
    known = case("betting(8)")
    with pytest.raises(InputError, match="`interval` requires data"):
        solve_over_domain(known.problem, LearnOptions(sets="expression", interval=IntervalMethod.HOEFFDING))


def test_parameter_sets_met_with_the_tied_intervals_are_tighter() -> None:
    known = case("rover(4,4)")
    counts = counts_of("rover(4,4)")
    wide = learn(known.problem, counts, delta=DELTA, region="polytope", sets="parameter")
    tight = learn(
        known.problem, counts, delta=DELTA, **LearnOptions(sets=SetsKind.PARAMETER, intersect=True).words
    )
    assert tight.region is not None and tight.region.kind == region_kind("polytope")
    assert tight.guarantee > wide.guarantee
    assert tight.widths.mean < wide.widths.mean
    assert "met with the tied intervals" in tight.notes


def test_the_published_ellipsoid_is_labelled() -> None:
    known = case("engagement(2)")
    asked = LearnOptions(sets=SetsKind.EXPRESSION, ellipsoid=EllipsoidVersion.PAPER)
    result = learn(known.problem, counts_of("engagement(2)"), delta=DELTA, **asked.words)
    assert result.decisions.region == region_kind("ellipsoid")
    assert not result.ledger.holds
    assert "unsound" in result.ledger.method
