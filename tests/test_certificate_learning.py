"""Certificates of learned results: every family, region and kind of sets; no mutation gets through."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from learning_cases import FAMILIES, case, counts_of
from tightrope.certificate.learning import LearningCertificate
from tightrope.certificate.learning_check import verify_learning
from tightrope.certificate.region_rows import Origin
from tightrope.errors import InputError
from tightrope.learning.certificate import certificate_of
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.statistics.estimates import IntervalMethod

AIRCRAFT, BETTING, ENGAGEMENT, ROVER, GLIDER, PARALLEL = FAMILIES
COMBINATIONS = [
    (None, "untied"),
    (None, "tied"),
    ("polytope", "parameter"),
    ("polytope", "expression"),
    ("polytope", "rectangular"),
    ("l1", "rectangular"),
    ("likelihood", "rectangular"),
]


def failures(checks):
    return [check.name for check in checks if not check.passed]


@cache
def certified(family, region, sets, method=None):
    subject, counts = case(family), counts_of(family)
    options = LearnOptions(interval=None if method is None else IntervalMethod(method))
    result = learn(
        subject.model,
        counts,
        0.05,
        subject.objective,
        region=region,
        sets=sets,
        options=options,
        policy=subject.policy,
    )
    return result, certificate_of(result, counts, {"model": family})


@pytest.mark.parametrize(("region", "sets"), COMBINATIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_results_of_every_family_are_proved(family, region, sets):
    result, certificate = certified(family, region, sets)
    assert failures(verify_learning(certificate)) == []
    low, high = certificate.values()["robust policy"]
    assert low == pytest.approx(result.robust.interval.lower, rel=1e-6)
    assert high == pytest.approx(result.robust.interval.upper, rel=1e-6)
    truth = case(family).value_of(result.robust.policy)
    assert low <= truth * (1 + 1e-6) and truth <= high * (1 + 1e-6)
    assert certificate.data.sets == sets or result.fallback


@pytest.mark.parametrize(("region", "sets"), [(None, "untied"), *COMBINATIONS[3:]])
def test_the_same_in_rationals(region, sets):
    _, certificate = certified(AIRCRAFT, region, sets)
    assert failures(verify_learning(certificate, exactly=True)) == []


@pytest.mark.parametrize("method", ["clopper-pearson", "hoeffding", "beta-binomial"])
def test_every_interval_method_is_derived_again(method):
    for region, sets in ((None, "untied"), ("polytope", "expression")):
        _, certificate = certified(ENGAGEMENT, region, sets, method)
        assert failures(verify_learning(certificate)) == []
        narrower = replace(certificate, data=replace(certificate.data, gamma=certificate.data.gamma / 1.5))
        assert failures(verify_learning(narrower))


def test_randomised_policies_and_step_bounds_are_covered():
    subject, counts = case(ROVER), counts_of(ROVER)
    start = subject.model.choice_start
    weight = np.repeat(1.0 / np.diff(start), np.diff(start))
    uniform = learn(subject.model, counts, 0.05, subject.objective, sets="expression", policy=weight)
    certificate = certificate_of(uniform, counts)
    assert certificate.guarantees[1].policy_kind == "randomised"
    assert failures(verify_learning(certificate)) == []
    bounded = replace(subject.objective, upper_steps=4)
    for objective in (bounded, replace(bounded, agent=Direction.MIN), replace(bounded, lower_steps=1)):
        certificate = certificate_of(learn(subject.model, counts, 0.05, objective, sets="tied"), counts)
        assert certificate.guarantees[0].policy_kind == "free"
        assert failures(verify_learning(certificate)) == []
        guarantee = certificate.guarantees[0]
        tighter = replace(guarantee, lower=np.maximum(guarantee.lower, guarantee.upper - 1e-9))
        assert failures(verify_learning(replace(certificate, guarantees=(tighter,))))


def test_steps_of_rectangular_sets_are_covered_by_the_expression_sets_around_them():
    subject, counts = case(AIRCRAFT), counts_of(AIRCRAFT)
    objective = replace(subject.objective, upper_steps=3)
    result = learn(subject.model, counts, 0.05, objective, region="polytope", sets="rectangular")
    certificate = certificate_of(result, counts)
    assert certificate.data.sets == "expression"
    assert any("enclose" in line for line in certificate.covers)
    assert failures(verify_learning(certificate)) == []
    low, high = certificate.values()["robust policy"]
    assert low <= result.robust.interval.lower and result.robust.interval.upper <= high


def test_late_targets_are_covered():
    subject, counts = case(ROVER), counts_of(ROVER)
    objective = replace(subject.objective, lower_steps=2)
    for agent in (Direction.MAX, Direction.MIN):
        result = learn(
            subject.model,
            counts,
            0.05,
            replace(objective, agent=agent),
            sets="tied",
            policy=subject.policy,
        )
        certificate = certificate_of(result, counts)
        assert certificate.guarantees[0].lower_tail is not None
        assert failures(verify_learning(certificate)) == []


def test_rewards_costs_and_complements_are_covered():
    subject, counts = case(AIRCRAFT), counts_of(AIRCRAFT)
    target = subject.objective.target
    for agent in (Direction.MAX, Direction.MIN):
        objective = Objective(ObjectiveKind.UNTIL, agent, agent.opposite, target=target, complement=True)
        result = learn(subject.model, counts, 0.05, objective, region="polytope", sets="rectangular")
        certificate = certificate_of(result, counts)
        assert failures(verify_learning(certificate)) == []
        low, high = certificate.values()["robust policy"]
        assert low == pytest.approx(result.robust.interval.lower, abs=1e-6)
        assert high == pytest.approx(result.robust.interval.upper, abs=1e-6)


def test_assumed_supports_are_named_and_nothing_else_is_assumed():
    subject, counts = case(ROVER), counts_of(ROVER)
    options = LearnOptions(assume_support=1e-4)
    result = learn(subject.model, counts, 0.05, subject.objective, sets="untied", options=options)
    certificate = certificate_of(result, counts)
    if certificate.data.assumed_support is not None:
        assert any("assumed" in line for line in certificate.covers)
    assert failures(verify_learning(certificate)) == []


# --- mutations ------------------------------------------------------------------------------------------


def changed(part, name, change):
    """A mutation of an array or a number of one part."""

    def mutate(certificate):
        if part == "guarantee":
            holder = certificate.guarantees[0]
            mutated = replace(holder, **{name: _changed(getattr(holder, name), change)})
            return replace(certificate, guarantees=(mutated, *certificate.guarantees[1:]))
        holder = getattr(certificate, part)
        return replace(
            certificate, **{part: replace(holder, **{name: _changed(getattr(holder, name), change)})}
        )

    return mutate


def _changed(value, change):
    return change(value.copy() if isinstance(value, np.ndarray) else value)


def added(index, amount):
    def change(array):
        array.reshape(-1)[index] += amount
        return array

    return change


def tightened(array):
    """Every lower bound raised a little."""
    return np.where(array > 0, array + 1e-7, array)


def one_tightened(array):
    """The lower bound of one transition raised a little."""
    inside = np.flatnonzero((array > 0) & (array < 0.9))
    array[inside[len(inside) // 2]] += 1e-7
    return array


def lowered(array):
    return np.where(array < 1, array - 1e-7, array)


def another_policy(certificate):
    """The first state with a choice takes another one, where that makes a difference."""
    guarantee, start = certificate.guarantees[0], certificate.problem.choice_start
    policy = start[:-1] + (guarantee.policy - start[:-1] + 1) % np.diff(start)
    return replace(certificate, guarantees=(replace(guarantee, policy=policy),))


def rewritten(part, name, change):
    """A mutation of a header entry."""

    def mutate(certificate):
        holder = getattr(certificate, part)
        entry = change(dict(getattr(holder, name)))
        return replace(certificate, **{part: replace(holder, **{name: entry})})

    return mutate


def doubled_coefficient(expressions):
    rows = [list(row) for row in expressions["rows"]]
    at = next(i for i, row in enumerate(rows) if len(row) > 1)
    rows[at] = [[m, c + "1"] for m, c in rows[at]]
    return expressions | {"rows": rows}


POLYTOPE = [
    ("a count", changed("data", "counts", lambda a: np.where(a == a.max(), a + 1, a))),
    ("a negative count", changed("data", "counts", lambda a: np.where(a == a.max(), -a, a))),
    ("gamma", changed("data", "gamma", lambda g: g * 1.1)),
    ("delta", changed("data", "delta", lambda d: d * 0.9)),
    ("the method", changed("data", "method", lambda _: "hoeffding")),
    ("an event's lower bound", changed("data", "event_lower", tightened)),
    ("an event's upper bound", changed("data", "event_upper", lowered)),
    ("an event left out", changed("data", "event_expression", lambda a: a[:-1])),
    ("an event's expression", changed("data", "event_expression", added(0, 1))),
    ("a coefficient", rewritten("data", "expressions", doubled_coefficient)),
    ("the domain", rewritten("data", "domain", lambda d: d | {"lower": d["lower"][1:]})),
    ("the free parameters", rewritten("data", "coordinates", lambda c: c | {"free": c["free"][::-1][:1]})),
    ("a transition's expression", changed("data", "expression", added(0, 1))),
    ("a row's origin", changed("region", "row", lambda a: np.where([True, False, False], Origin.DOMAIN, a))),
    ("a row's side", changed("region", "row", lambda a: np.where([False, False, True], 1 - a, a))),
    (
        "bases of bounds",
        changed("region", "bound_basis", lambda a: np.where(a >= 0, (a + 1) % (a.max() + 1), a)),
    ),
    ("a basis out of range", changed("region", "bound_basis", added(0, 10_000))),
    ("which expression was bounded", changed("region", "bound_expression", lambda a: a[::-1])),
    ("a transition's lower bound", changed("problem", "lower", tightened)),
    ("a transition's upper bound", changed("problem", "upper", lowered)),
    ("one transition's lower bound", changed("problem", "lower", one_tightened)),
    ("all lower values", changed("guarantee", "lower", lambda a: np.where((a > 0) & (a < 1), a + 1e-5, a))),
    ("all upper values", changed("guarantee", "upper", lambda a: np.where((a > 0) & (a < 1), a - 1e-5, a))),
    ("the policy", another_policy),
    ("another target", changed("problem", "target", lambda a: ~a)),
    ("no guarantee", lambda certificate: replace(certificate, guarantees=())),
]


@pytest.mark.parametrize(("words", "mutate"), POLYTOPE, ids=[words for words, _ in POLYTOPE])
def test_mutations_of_a_polytope_certificate_fail(words, mutate):
    _, certificate = certified(AIRCRAFT, "polytope", "expression", "clopper-pearson")
    assert failures(verify_learning(certificate)) == []
    assert failures(verify_learning(mutate(certificate))), words


RECTANGULAR = [
    ("bases of choices", changed("region", "choice_basis", lambda a: a[::-1] if len(a) > 1 else a + 1)),
    ("no bases of choices", changed("guarantee", "lower_basis", lambda a: np.full_like(a, -1))),
    ("a choice's basis out of range", changed("guarantee", "lower_basis", lambda a: a + 10_000)),
    ("bases of the box", changed("region", "box_basis", lambda a: np.full_like(a, -1))),
    ("a smaller box", changed("region", "box_upper", lambda a: a - 1e-6)),
    ("sets that are not rectangular", changed("data", "sets", lambda _: "expression")),
    ("lower values", changed("guarantee", "lower", lambda a: np.where((a > 0) & (a < 1), a + 1e-5, a))),
]


@pytest.mark.parametrize(("words", "mutate"), RECTANGULAR, ids=[words for words, _ in RECTANGULAR])
def test_mutations_of_a_rectangular_certificate_fail(words, mutate):
    _, certificate = certified(AIRCRAFT, "polytope", "rectangular")
    assert certificate.guarantees[0].lower_basis is not None
    assert failures(verify_learning(mutate(certificate))), words


LIKELIHOOD = [
    ("a batch", changed("data", "batch_counts", lambda a: np.where(a == a.max(), a + 1, a))),
    ("another pilot", changed("data", "pilot", lambda p: p + 1)),
    ("a plug-in outside of the domain", changed("data", "plug_in", lambda a: a + 5.0)),
    ("plug-ins of other data", changed("data", "plug_in", lambda a: a[::-1])),
    ("delta", changed("data", "delta", lambda d: d / 10)),
    ("gamma", changed("data", "gamma", lambda g: g * 2)),
    ("cut points", changed("region", "cut_point", lambda a: a[::-1])),
    ("a transition's bound", changed("problem", "lower", tightened)),
]


@pytest.mark.parametrize(("words", "mutate"), LIKELIHOOD, ids=[words for words, _ in LIKELIHOOD])
def test_mutations_of_a_likelihood_certificate_fail(words, mutate):
    _, certificate = certified(AIRCRAFT, "likelihood", "rectangular")
    assert any("not covered" in line for line in certificate.covers)
    assert failures(verify_learning(mutate(certificate))), words


@pytest.mark.parametrize(
    ("words", "mutate"),
    [
        ("gamma", changed("data", "gamma", lambda g: g * 2)),
        ("a set of outcomes", changed("region", "row", lambda a: np.where([False, False, True], 1, a))),
        ("a choice", changed("region", "row", lambda a: np.where([False, True, False], 10**6, a))),
        ("half the counts", changed("data", "counts", lambda a: a // 2)),
    ],
)
def test_mutations_of_an_l1_certificate_fail(words, mutate):
    _, certificate = certified(AIRCRAFT, "l1", "rectangular")
    assert failures(verify_learning(mutate(certificate))), words


@pytest.mark.parametrize(
    ("words", "mutate"),
    [
        ("a count", changed("data", "counts", lambda a: np.where(a == a.max(), a + 1, a))),
        ("gamma", changed("data", "gamma", lambda g: g * 1.01)),
        ("a bound", changed("problem", "upper", lowered)),
    ],
)
def test_mutations_of_an_untied_certificate_fail(words, mutate):
    _, certificate = certified(AIRCRAFT, None, "untied")
    assert failures(verify_learning(mutate(certificate))), words


def test_rows_that_rest_on_proved_bounds_prove_no_bounds():
    """A bound must not follow from itself: rows of expressions serve choices only."""
    _, certificate = certified(AIRCRAFT, "polytope", "expression", "clopper-pearson")
    region = certificate.region
    e, side = int(region.bound_expression[0]), int(region.bound_side[0])
    row = np.vstack([region.row, [[int(Origin.EXPRESSION), e, 1 - side]]])
    basis = region.bound_basis.copy()
    basis[0, 0] = len(region.row)
    circular = replace(region, row=row, bound_basis=basis)
    assert failures(verify_learning(replace(certificate, region=circular)))
    front = replace(region, row=row[::-1])
    assert failures(verify_learning(replace(certificate, region=front)))


def test_files_round_trip(tmp_path):
    _, certificate = certified(AIRCRAFT, "likelihood", "rectangular")
    path = tmp_path / "learned.cert"
    certificate.save(path)
    again = LearningCertificate.load(path)
    assert again.digest() == certificate.digest()
    assert again.values() == certificate.values()
    assert again.covers == certificate.covers
    assert failures(verify_learning(again)) == []
    from tightrope.certificate.certificate import Certificate

    with pytest.raises(InputError, match="not a certificate of values"):
        Certificate.load(path)
