"""Statistics of certificates, derived again: binomial tails, mixtures, events, against exact values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tightrope.certificate.binomial import mixture_evidence, tail_above, tail_below
from tightrope.certificate.events_check import Unexplained, tally
from tightrope.certificate.inner import as_fraction
from tightrope.certificate.interval_check import binomial_tail, radius_holds, unproved
from tightrope.certificate.polynomials import complement, multiplied, substituted
from tightrope.certificate.space import Space, polynomial_range
from tightrope.certificate.statistics_check import budget_check
from tightrope.statistics.confidence_sequence import beta_binomial
from tightrope.statistics.intervals import clopper_pearson, hoeffding
from tightrope.statistics.weissman import weissman_radius

METHODS = {"clopper-pearson": clopper_pearson, "hoeffding": hoeffding, "beta-binomial": beta_binomial}


def whole(*values):
    return np.array(values, dtype=np.int64)


def extended(*values):
    return np.array(values, dtype=np.longdouble)


def test_known_tails():
    # Six heads of six, five or six of six, and the stopping rule that makes 7/128 of two ends.
    assert binomial_tail(6, 6, Fraction(1, 2)) == Fraction(1, 64)
    assert binomial_tail(5, 6, Fraction(1, 2)) == Fraction(7, 64)
    assert binomial_tail(1, 3, Fraction(1, 3)) == Fraction(19, 27)
    assert binomial_tail(0, 3, Fraction(1, 3)) == 1


@pytest.mark.parametrize("n", [1, 2, 7, 32, 33, 60, 301])
def test_tails_enclose_the_exact_ones_closely(n):
    for k in sorted({1, n // 7 + 1, n // 2 + 1, n}):
        for p in (0.001, 0.1, 0.3, 0.5, 0.9):
            if n * p >= k:
                continue
            exact = binomial_tail(k, n, Fraction(p))
            above = as_fraction(tail_above(whole(k), whole(n), extended(p))[0])
            below = as_fraction(tail_below(whole(n - k), whole(n), extended(1) - extended(p))[0])
            assert exact <= above <= exact * (1 + Fraction(1, 10**13))
            assert exact <= below <= exact * (1 + Fraction(1, 10**13))


@pytest.mark.parametrize("n", [1, 5, 40, 300])
def test_the_mixture_is_enclosed_from_below(n):
    for k in {0, n // 3, n}:
        for p in (0.01, 0.4, 0.97):
            ratio = Fraction(math.comb(2 * k, k) * math.comb(2 * (n - k), n - k), 4**n * math.comb(n, k))
            ratio /= Fraction(p) ** k * (1 - Fraction(p)) ** (n - k)
            exact = math.log(ratio.numerator) - math.log(ratio.denominator)
            found = float(mixture_evidence(whole(k), whole(n), extended(p))[0])
            assert exact - 1e-11 <= found <= exact + 1e-11


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_intervals_pass_and_tighter_ones_do_not(method, exactly):
    rng = np.random.default_rng(3)
    most = 300 if exactly else 10**6
    trials = (10 ** rng.uniform(0, math.log10(most), 60)).astype(np.int64) + 1
    successes = (trials * rng.beta(0.5, 0.5, 60)).astype(np.int64)
    trials[0] = successes[0] = 0
    gamma = 1e-4
    lower, upper = METHODS[method](successes, trials, gamma)
    assert not unproved(method, successes, trials, gamma, lower, upper, exactly).any()
    assert not unproved(
        method, successes, trials, gamma, lower * 0.9, upper + (1 - upper) * 0.1, exactly
    ).any()
    tighter = lower + 1e-6 * (upper - lower)
    inside = lower > 0
    assert unproved(method, successes, trials, gamma, tighter, upper, exactly)[inside].all()
    tighter = upper - 1e-6 * (upper - lower)
    inside = upper < 1
    assert unproved(method, successes, trials, gamma, lower, tighter, exactly)[inside].all()
    assert unproved(method, successes, trials, gamma / 1.01, lower, upper, exactly)[inside].all()


def test_intervals_that_make_no_sense_are_unproved():
    bad = [(-1, 5, 0.0, 1.0), (6, 5, 0.0, 1.0), (2, 5, -0.1, 1.0), (2, 5, 0.6, 0.4), (2, 5, 0.0, 1.1)]
    for k, n, low, high in bad:
        found = unproved("hoeffding", whole(k), whole(n), 0.1, np.array([low]), np.array([high]))
        assert found.tolist() == [True]
    # An end on the wrong side of the rate is no bound, however small the tail there.
    for method in METHODS:
        found = unproved(method, whole(5), whole(10), 0.1, np.array([0.99]), np.array([1.0]))
        assert found.tolist() == [True]


def test_radii():
    radius = float(weissman_radius(whole(3), whole(200), 0.01)[0])
    assert radius_holds(radius, 3, 200, 0.01)
    assert not radius_holds(radius * 0.999, 3, 200, 0.01)
    assert radius_holds(2.0, 3, 0, 0.01)


def test_shares_of_delta_add_up_exactly():
    assert budget_check(0.05, 0.05 / 4, 4, "events").passed
    assert not budget_check(0.05, math.nextafter(0.05 / 3, 1), 3, "events").passed
    assert not budget_check(0.05, 0.0, 3, "events").passed
    assert not budget_check(1.5, 0.1, 3, "events").passed
    assert not budget_check(float("nan"), 0.1, 3, "events").passed


P = {((0, 1),): Fraction(1)}


def test_events_are_tallied_by_choice():
    # choice 0: p, 1 − p; choice 1: 1 − p, p (one trial a visit); choice 2: p/2 twice.
    half = {((0, 1),): Fraction(1, 2)}
    rest = complement(P)
    polynomials = [P, rest, half]
    start, expression = whole(0, 2, 4, 7), whole(0, 1, 1, 0, 2, 2, 1)
    counts = whole(3, 7, 4, 6, 1, 2, 5)
    successes, trials = tally(start, expression, counts, polynomials, [P])
    assert (successes.tolist(), trials.tolist()) == ([3 + 6 + 3], [10 + 10 + 8])
    successes, trials = tally(start, expression, counts, polynomials, [P, rest])
    assert (successes.tolist(), trials.tolist()) == ([12, 16], [28, 28])
    with pytest.raises(Unexplained):
        tally(start, expression, counts, polynomials, [half])
    with pytest.raises(Unexplained):
        tally(start, expression, counts, polynomials, [P, P])


def test_spaces_check_their_substitution():
    domain = {"lower": ["0", "0"], "upper": ["1", "1"], "constraints": [[["1", "1"], "1", True]]}
    good = {"free": [0], "substitution": [["1", "0"], ["-1", "1"]], "products": [[0, 0]]}
    space = Space(domain, good)
    product = multiplied(P, {((1, 1),): Fraction(1)})
    assert space.affine(product) == ([Fraction(1), Fraction(-1)], Fraction(0))
    assert substituted(product, space.substitution) == {((0, 1),): 1, ((0, 2),): -1}
    assert space.contains([Fraction(1, 3)])
    assert not space.contains([Fraction(4, 3)])
    for wrong in ([["1", "0"], ["-1", "9/10"]], [["1", "0"], ["1", "0"]], [["1", "0"]]):
        with pytest.raises(ValueError, match=r"follow|fit"):
            Space(domain, good | {"substitution": wrong})
    with pytest.raises(ValueError, match="product"):
        Space(domain, good | {"products": [[0, 1]]})


def test_ranges_of_polynomials():
    p, q = {((0, 1),): Fraction(1)}, {((1, 1),): Fraction(1)}
    low, high = [Fraction(1, 4), Fraction(0)], [Fraction(3, 4), Fraction(1, 2)]
    assert polynomial_range(multiplied(p, q), low, high) == (0, Fraction(3, 8))
    assert polynomial_range(complement(p), low, high) == (Fraction(1, 4), Fraction(3, 4))
    bent = multiplied(p, complement(p))  # p(1 − p): between 3/16 and the Bernstein bound 5/16 ≥ 1/4
    assert polynomial_range(bent, low, high) == (Fraction(3, 16), Fraction(5, 16))
