"""Statistics of certificates, derived again: binomial tails, mixtures, events, against exact values.

Also of `tightrope_check/special.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from effort import repeats
from tightrope.certify.problem import to_domain
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.statistics.coordinates import solve_equalities
from tightrope.statistics.intervals import beta_binomial, clopper_pearson, hoeffding, weissman_radius
from tightrope_check.budget import OverBudget, WorkBudget
from tightrope_check.coordinates import Space, add, multiply, polynomial_range
from tightrope_check.evidence import Data, Domain
from tightrope_check.learned import Learned
from tightrope_check.nature import Graph
from tightrope_check.numbers import FLOAT64
from tightrope_check.statistics.balls import Balls
from tightrope_check.statistics.binomial import Intervals
from tightrope_check.statistics.intervals import EventCounts
from tightrope_check.statistics.likelihood import Predictor, pilot_of
from tightrope_check.statistics.outcomes import ChoiceKinds, SeenOutcomes
from tightrope_check.verdict import Contradiction

METHODS = {"clopper-pearson": clopper_pearson, "hoeffding": hoeffding, "beta-binomial": beta_binomial}


def whole(*values):
    return np.array(values, dtype=np.int64)


def binomial_tail(k, n, p):
    """P(Bin(n, p) ≥ k), exactly."""
    return sum((math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), Fraction(0))


@pytest.mark.parametrize("n", [1, 2, 7, 32, 33, 60, 151])
def test_tails_decide_as_exact_ones_do(n):
    """At γ/2 a little above the tail of a lower end, and a little below it."""
    for k in sorted({1, n // 7 + 1, n // 2 + 1, n}):
        for p in (0.001, 0.1, 0.3, 0.5, 0.9):
            if n * p >= k:
                continue
            tail = binomial_tail(k, n, Fraction(p))
            for factor, wrong in ((1 + Fraction(1, 10**11), False), (1 - Fraction(1, 10**11), True)):
                intervals = Intervals("clopper-pearson", 2 * tail * factor)
                ends = np.array([p]), np.array([1.0])
                assert intervals.unproved(whole(k), whole(n), *ends).tolist() == [wrong]


@pytest.mark.parametrize("n", [1, 5, 40, 300])
def test_the_mixture_decides_as_the_exact_one_does(n):
    for k in {n // 3, n} - {0}:
        p = 0.5 * k / n
        ratio = Fraction(math.comb(2 * k, k) * math.comb(2 * (n - k), n - k), 4**n * math.comb(n, k))
        ratio /= Fraction(p) ** k * (1 - Fraction(p)) ** (n - k)
        for factor, wrong in ((1 + Fraction(1, 10**11), False), (1 - Fraction(1, 10**11), True)):
            intervals = Intervals("beta-binomial", factor / ratio)
            assert intervals.unproved(whole(k), whole(n), np.array([p]), np.array([1.0])).tolist() == [wrong]


@pytest.mark.parametrize("method", METHODS)
def test_intervals_pass_and_tighter_ones_do_not(method):
    rng = np.random.default_rng(3)
    most = 10**6
    trials = (10 ** rng.uniform(0, math.log10(most), 60)).astype(np.int64) + 1
    successes = (trials * rng.beta(0.5, 0.5, 60)).astype(np.int64)
    trials[0] = successes[0] = 0
    gamma = 1e-4
    lower, upper = METHODS[method](successes, trials, gamma)

    def unproved(low, high, level=Fraction(gamma)):
        return Intervals(method, level).unproved(successes, trials, low, high)

    assert not unproved(lower, upper).any()
    assert not unproved(lower * 0.9, upper + (1 - upper) * 0.1).any()
    inside = lower > 0
    assert unproved(lower + 1e-6 * (upper - lower), upper)[inside].all()
    inside = upper < 1
    assert unproved(lower, upper - 1e-6 * (upper - lower))[inside].all()
    assert unproved(lower, upper, Fraction(gamma) / 2)[inside].all()


def test_intervals_that_make_no_sense_are_unproved():
    bad = [(6, 5, 0.0, 1.0), (2, 5, -0.1, 1.0), (2, 5, 0.6, 0.4), (2, 5, 0.0, 1.1)]
    for method in METHODS:
        intervals = Intervals(method, Fraction(1, 10))
        for k, n, low, high in bad:
            assert intervals.unproved(whole(k), whole(n), np.array([low]), np.array([high])).tolist() == [
                True
            ]
        # An end on the wrong side of the rate is no bound, however small the tail there.
        found = intervals.unproved(whole(5), whole(10), np.array([0.99]), np.array([1.0]))
        assert found.tolist() == [True]


P = {((0, 1),): Fraction(1)}


REST = add({(): Fraction(1)}, P, -1)


def kinds_of(starts, expression):
    """Of a graph of one state, whose choices have these transitions."""
    return ChoiceKinds.of(Graph(whole(0, len(starts) - 1), starts, 0 * expression, 0), expression)


def outcomes_of(starts, expression, counts):
    return SeenOutcomes.of(kinds_of(starts, expression), counts)


def known_of(polynomials, space, outcomes=None, starts=None, expression=None):
    """What statements are made about, of a learned result."""
    unknown, used = np.array([any(one) for one in polynomials]), range(len(polynomials))
    return SimpleNamespace(
        n=FLOAT64, polynomials=polynomials, space=space, outcomes=outcomes, unknown=unknown, used=used,
        expression=expression, kinds=None if starts is None else kinds_of(starts, expression),
    )  # fmt: skip


@pytest.mark.parametrize("expressions", [3, 10**9])
def test_choices_of_one_kind_have_the_same_expressions(expressions):
    """Against tuples, with few expressions and with numbers so large that they are sorted."""
    draw = np.random.default_rng(5)
    widths = draw.integers(1, 5, 300)
    starts = np.concatenate([[0], np.cumsum(widths)])
    few = np.sort(draw.integers(0, expressions, 3))
    label = few[draw.integers(0, 3, starts[-1])]
    kinds = kinds_of(starts, label)
    keys = []
    for first, last in pairwise(starts.tolist()):
        counted = sorted(Counter(label[first:last].tolist()).items())
        keys.append((len(counted), [e for e, _ in counted], [times for _, times in counted]))
    order = sorted({repr(key): key for key in keys}.values())
    assert kinds.of_choice.tolist() == [order.index(key) for key in keys]
    for choice, key in enumerate(keys):
        own = slice(kinds.start[choice], kinds.start[choice + 1])
        assert kinds.expression[own].tolist() == key[1] and kinds.multiplicity[own].tolist() == key[2]
    assert np.array_equal(kinds.expression[kinds.of_transition], label)


def test_wide_choices_are_counted_before_they_are_compared():
    wide = np.concatenate([np.arange(20_000), np.arange(20_000)])
    with WorkBudget(1.0).counting(), pytest.raises(OverBudget, match="outcomes of choices"):
        kinds_of(whole(0, 20_000, 40_000), wide)
    with WorkBudget(0.1).counting():
        assert kinds_of(whole(0, 20_000, 20_001), wide[:20_001]).of_choice.tolist() == [1, 0]


def test_events_are_tallied_by_choice():
    # choice 0: p, 1 − p; choice 1: 1 − p, p (one trial a visit); choice 2: p/2 twice.
    half = {((0, 1),): Fraction(1, 2)}
    polynomials = [P, REST, half]
    shape = whole(0, 2, 4, 7), whole(0, 1, 1, 0, 2, 2, 1)
    outcomes = outcomes_of(*shape, whole(3, 7, 4, 6, 1, 2, 5))
    assert len(outcomes.start) == 3 and outcomes.of_choice.tolist() == [0, 0, 1]
    domain = Domain((Fraction(0),), (Fraction(1),), (), (), np.zeros(0, dtype=np.bool_))
    about = known_of(polynomials, Space(domain, []), outcomes, *shape)
    assert Learned.distributions(about).passed
    assert not Learned.distributions(known_of([P, P, half], about.space, outcomes, *shape)).passed
    tied, paper = (EventCounts(about, paired) for paired in (True, False))
    assert tied.polynomials == [P]
    assert (tied.successes.tolist(), tied.trials.tolist()) == ([3 + 6 + 3], [10 + 10 + 8])
    assert paper.polynomials == [P, REST]
    assert (paper.successes.tolist(), paper.trials.tolist()) == ([12, 16], [28, 28])
    assert tied.links == {0: [(0, 1, False)], 1: [(0, 1, True)], 2: [(0, 2, False)]}


def test_rows_of_balls():
    polynomials = [P, REST]
    outcomes = outcomes_of(whole(0, 2), whole(0, 1), whole(30, 70))
    space = Space(domain_of(["0"], ["1"]), polynomials)
    about = known_of(polynomials, space, outcomes)
    balls, points = Balls(about, Fraction(1, 100)), np.zeros((0, 1))
    linear, bound = balls.row(0, 1, points)
    radius = float(weissman_radius(whole(2), whole(100), 0.01)[0])
    assert linear == [1] and float(bound) == pytest.approx(0.3 + radius / 2, rel=1e-12)
    for index, part in ((0, 0), (0, 3), (1, 1)):
        with pytest.raises(ValueError, match="no such set"):
            balls.row(index, part, points)


def domain_of(lower, upper, *constraints):
    """Constraints are (coefficients, bound, is_equality)."""
    return Domain(
        tuple(map(Fraction, lower)),
        tuple(map(Fraction, upper)),
        tuple(Fraction(c) for row, _, _ in constraints for c in row),
        tuple(Fraction(bound) for _, bound, _ in constraints),
        np.array([equal for _, _, equal in constraints], dtype=np.bool_),
    )


def test_coordinates_follow_from_the_domain():
    """No file says which parameters are free: an index of −1 once made any relation follow."""
    q = {((1, 1),): Fraction(1)}
    space = Space(domain_of(["0", "0"], ["1", "1"], (["1", "1"], "1", True)), [multiply(P, q)])
    assert space.free == [0] and space.substitution == [{((0, 1),): 1}, {((0, 1),): -1, (): 1}]
    assert space.products == [(0, 0)]
    assert space.affine(multiply(P, q)) == ([Fraction(1), Fraction(-1)], Fraction(0))
    fixed = Space(domain_of(["0", "1/4"], ["1", "1/4"]), [multiply(P, q)])
    assert fixed.free == [0] and fixed.affine(multiply(P, q)) == ([Fraction(1, 4)], Fraction(0))
    alone = Space(domain_of(["1/2"], ["1/2"]), [P])
    assert alone.free == [0]  # one parameter always stays free


def test_coordinates_are_those_of_learning():
    """The same rule in both programs, so that regions can be certified as they are."""
    rng, compared = np.random.default_rng(2), 0
    for _ in range(repeats(40)):
        size = int(rng.integers(1, 5))
        rows = [
            LinearConstraint(
                tuple(map(Fraction, rng.integers(-2, 3, size).tolist())),
                Fraction(1),
                bool(rng.random() < 0.7),
            )
            for _ in range(int(rng.integers(0, 4)))
        ]
        fixed = rng.random(size) < 0.2
        parameters = Parameters(
            tuple(f"p{i}" for i in range(size)),
            (Fraction(0),) * size,
            tuple(Fraction(0) if one else Fraction(1) for one in fixed),
            tuple(rows),
        )
        equal = [[*row.coefficients, row.bound] for row in rows if row.is_equality]
        equal += [[*np.eye(size)[i], 0] for i in np.flatnonzero(fixed)]
        table = np.array(equal, dtype=np.float64).reshape(-1, size + 1)
        try:
            space = Space(to_domain(parameters), [])
        except Contradiction:  # the checker refuses such a domain, and rightly so
            assert np.linalg.matrix_rank(table) > np.linalg.matrix_rank(table[:, :-1])
            continue
        compared += 1
        free, substitution = solve_equalities(parameters)
        assert space.free == list(free)
        assert space.substitution == [dict(one.terms) for one in substitution]
    assert compared >= repeats(40) // 2


def design(kind, episodes=None):
    none = whole()
    return Data(0.1, "likelihood", "events", kind, True, False, False, whole(0), none, none, episodes)


def test_pilots_follow_from_the_design():
    assert pilot_of(design("generative-fixed"), [1, 2, 7, 90]) == (3, None)
    sizes = [5] * 13
    assert pilot_of(design("trajectories", 20), sizes) == (2, None)  # they end at 1, 2, 3, … of 20
    assert pilot_of(design("trajectories", 30), sizes) == (0, 0)  # another number of batches: no plan
    assert pilot_of(design("adaptive", 20), [1] * 150) == (10, 1)
    assert pilot_of(design("adaptive"), []) == (0, 0)


def test_estimates_are_inside_and_smoothed():
    """A coin is estimated as (K + ½)/(N + 1), also where the middle of the box is outside of the domain."""
    space = Space(domain_of(["0"], ["1"]), [P])
    estimate = Predictor(space, np.array([[1.0], [-1.0]]), np.array([0.0, 1.0])).estimate
    assert estimate(np.array([3.0, 5.0])) == pytest.approx([3.5 / 9])
    assert estimate(np.zeros(2)) == pytest.approx([0.5])
    corner = domain_of(["0", "0", "0"], ["1", "1", "1"], (["1", "1", "1"], "1/1000", False))
    found = Predictor(Space(corner, []), np.zeros((0, 3)), np.zeros(0)).estimate(np.zeros(0))
    assert (found > 1e-5).all() and found.sum() < 0.999e-3


def test_ranges_of_polynomials():
    q = {((1, 1),): Fraction(1)}
    low, high = [Fraction(1, 4), Fraction(0)], [Fraction(3, 4), Fraction(1, 2)]
    assert polynomial_range(multiply(P, q), low, high) == (0, Fraction(3, 8))
    assert polynomial_range(REST, low, high) == (Fraction(1, 4), Fraction(3, 4))
    bent = multiply(P, REST)  # p(1 − p): between 3/16 and the Bernstein bound 5/16 ≥ 1/4
    assert polynomial_range(bent, low, high) == (Fraction(3, 16), Fraction(5, 16))
