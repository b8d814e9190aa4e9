"""The arithmetic lies: true inequalities miss by less than a double holds, and a forger claims the rest.

Every operation of the kernel has operands at its edge here: probabilities, bounds, weights, rewards and
values that are denormal, far below all doubles or next to the largest one; discounts next to 1; sums that
cancel. What a file claims is held against the value in exact rationals; with the true value it is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest

from adversary.judge import verify
from adversary.truth_values import Question, is_allowed
from exact_reference import TinyModel
from tightrope.certify.certificate_file import as_file
from tightrope.model.objective import Direction, ObjectiveKind
from tightrope.model.objective import Objective as Asked
from tightrope.model.structure import RewardStructure
from tightrope_check.checker import check
from tightrope_check.evidence import Domain, LearnedHints, RegionHints
from tightrope_check.nature import Graph
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate, CertifiedObjective, CertifiedProblem, Claim, ValueHints

ETA = Fraction(5e-324)
ONE = Fraction(1)
LEAST = {
    "2^-1074": ETA,
    "3*2^-1074": 3 * ETA,
    "2^-1075": Fraction(1, 2**1075),
    "2^-1022": Fraction(1, 2**1022),
    "2^-16445": Fraction(1, 2**16445),
    "2^-16494": Fraction(1, 2**16494),
    "10^-5000": Fraction(1, 10**5000),
    "2^-60": Fraction(1, 2**60),
}

Row = list[tuple[int, Fraction]]
Rows = list[list[Row]]
"""For every state its choices."""


@dataclass(frozen=True)
class Attack:
    """A false certificate, and the value of its problem."""

    name: str
    certificate: Certificate
    weights: list[list[Fraction]] | None = None

    @property
    def truth(self) -> Fraction:
        return truth_of(self.certificate.problem, self.weights)


def objective(kind: str, **more: object) -> CertifiedObjective:
    given = {"agent": "MAX", "nature": "ANY", "complement": False, "lower_steps": 0} | more
    return CertifiedObjective(kind, **given)


def at_point(rows: Rows, asked: CertifiedObjective) -> CertifiedProblem:
    """Probabilities are constants of a model with one parameter: any rationals."""
    graph, flat = graph_of(rows)
    value = sorted({p for _, p in flat})
    label = np.array([value.index(p) for _, p in flat])
    constants = tuple({(): p} if p else {} for p in value)
    return CertifiedProblem(graph, asked, expression=label, polynomial=constants, theta=(ONE,))


def by_doubles(rows: Rows, asked: CertifiedObjective) -> CertifiedProblem:
    graph, flat = graph_of(rows)
    return CertifiedProblem(graph, asked, probability=np.array([float(p) for _, p in flat]))


def by_intervals(
    rows: Rows, asked: CertifiedObjective, upper: list[float], support: float | None = None
) -> CertifiedProblem:
    """The rows are the lower bounds."""
    graph, flat = graph_of(rows)
    bounds = {"lower": np.array([float(p) for _, p in flat]), "upper": np.array(upper)}
    return CertifiedProblem(graph, asked, **bounds, assumed_support=support)


def graph_of(rows: Rows) -> tuple[Graph, Row]:
    choices = [row for state in rows for row in state]
    flat = list(chain.from_iterable(choices))
    offsets = [np.cumsum([0, *(len(one) for one in some)]) for some in (rows, choices)]
    return Graph(*offsets, np.array([t for t, _ in flat]), 0), flat


def truth_of(problem: CertifiedProblem, weights: list[list[Fraction]] | None = None) -> Fraction:
    """The value in exact rationals, at the initial state; doubles are made to sum to 1."""
    graph, asked = problem.graph, problem.objective
    if problem.law == "interval":
        lower, upper = ([Fraction(p) for p in ends.tolist()] for ends in (problem.lower, problem.upper))
        if problem.assumed_support is not None:
            lower = [
                a or min(Fraction(problem.assumed_support), b) for a, b in zip(lower, upper, strict=True)
            ]
    elif problem.law == "point":
        lower = upper = [problem.polynomial[e].get((), Fraction(0)) for e in problem.expression.tolist()]
    else:
        held = [Fraction(p) for p in problem.probability.tolist()]
        start = graph.transition_start.tolist()
        sums = [sum(held[a:b]) for a, b in pairwise(start) for _ in range(a, b)]
        lower = upper = [p / total for p, total in zip(held, sums, strict=True)]
    entries = list(zip(graph.successor.tolist(), lower, upper, strict=True))
    of = graph.transition_start.tolist()
    rows = [tuple(e for e in entries[a:b] if e[2] > 0) for a, b in pairwise(of)]
    of = graph.choice_start.tolist()
    model = TinyModel(tuple(tuple(rows[a:b]) for a, b in pairwise(of)))
    nature = Direction[asked.nature if asked.nature != "ANY" else "MAX"]
    question = Asked(
        ObjectiveKind[asked.kind],
        Direction[asked.agent],
        nature,
        reward=None if asked.reward is None else RewardStructure(choice=asked.reward),
        target=asked.target,
        upper_steps=asked.upper_steps,
        discount=asked.discount,
        complement=asked.complement,
    )
    return Question(model, question, 0).value(weights)


def vectors(lower: list[float], upper: list[float], ranking: list[int] | None = None) -> ValueHints:
    """Ranks that fall towards the states with larger numbers, and the first choice as witness."""
    size = len(lower)
    ranks = np.array(ranking if ranking is not None else range(size - 1, -1, -1))
    return ValueHints(np.array(lower), np.array(upper), ranks, witness=np.arange(size))


def forged(name: str, problem: CertifiedProblem, hints: ValueHints, low: float, high: float) -> Attack:
    return Attack(name, Certificate(problem, (Claim("value", "free", low, high),), (hints,)))


STAY = [[(1, ONE)]], [[(2, ONE)]]
GOAL = np.array([False, False, True])


def drips(least: Fraction, into: int) -> Rows:
    """State 0 stays, but for a little probability of state 1 (lost) or 2 (the goal)."""
    return [[[(0, 1 - least), (into, least)]], *STAY]


def reaching() -> Iterator[Attack]:
    """What drips away is all of it, in the end."""
    lost = vectors([0.4998, 0, 1], [1.0, 1, 1]), 0.4998, 1.0
    found = vectors([0.0, 0, 1], [0.0002, 0, 1]), 0.0, 0.0002
    asked = objective("UNTIL", target=GOAL)
    for name, least in LEAST.items():
        for into, made in ((1, lost), (2, found)):
            where = "lost" if into == 1 else "found"
            yield forged(f"{where}-at-point-{name}", at_point(drips(least, into), asked), *made)
            if least >= ETA:
                yield forged(f"{where}-by-doubles-{name}", by_doubles(drips(least, into), asked), *made)
    target, off = np.arange(6) == 2, Fraction(9, 20 * 2**54)
    for name, least in LEAST.items():  # the doubles next to what stays sum to less than 1
        for into, low, high in ((1, 0.4998, 1.0), (2, 0.0, 0.6002)):
            row = [(0, Fraction(1, 4) - 3 * off - least), *((s, Fraction(1, 4) + off) for s in (3, 4, 5))]
            back = [[[(0, ONE)]]] * 3
            problem = at_point([[[*row, (into, least)]], *STAY, *back], objective("UNTIL", target=target))
            lower = [low, 0, 1, low, low, low] if into == 1 else [0.0, 0, 1, 0, 0, 0]
            upper = [1.0] * 6 if into == 1 else [high, 0, 1, high, high, high]
            hints = vectors(lower, upper, [1, 0, 0, 2, 2, 2])
            where = "lost" if into == 1 else "found"
            yield forged(f"{where}-spread-{name}", problem, hints, low, high)
    for nature, support in (("MAX", None), ("MIN", None), ("MAX", 5e-324), ("MIN", 5e-324)):
        into, made = (1, lost) if nature == "MAX" else (2, found)
        rows = drips(ETA, into)
        rows[0][0][0] = (0, Fraction(0))
        if support is not None:
            rows[0][0][1] = (into, Fraction(0))
        owned = replace(asked, nature=nature)
        name = f"nature-{nature}-must-drip-{'assumed' if support else 'written'}"
        yield forged(name, by_intervals(rows, owned, [1.0, 1.0, 1.0, 1.0], support), *made)


def weighing() -> Iterator[Attack]:
    """A policy that drips: weight 2⁻¹⁰⁷⁴ on the choice that leaves."""
    for into, low, high in ((1, 0.4998, 1.0), (2, 0.0, 0.0002)):
        rows = [[[(0, ONE)], [(into, ONE)]], *STAY]
        problem = at_point(rows, objective("UNTIL", target=GOAL))
        weight = np.array([1.0, 5e-324, 1.0, 1.0])
        top = [1.0, 1, 1] if into == 1 else [0.0002, 0, 1]
        hints = ValueHints(np.array([low, 0, 1]), np.array(top), np.array([2, 1, 0]))
        share = [[1 / (1 + ETA), ETA / (1 + ETA)], [ONE], [ONE]]
        claimed = Claim("given policy", "randomised", low, high, weight=weight)
        name = "weight-lost" if into == 1 else "weight-found"
        yield Attack(name, Certificate(problem, (claimed,), (hints,)), share)


def stepping() -> Iterator[Attack]:
    """Steps that the checker makes: what is below all doubles is not 0, and 1 less that is not 1."""
    once = objective("UNTIL", target=GOAL, upper_steps=1)
    for name in ("2^-1075", "10^-5000", "2^-16445"):
        least = LEAST[name]
        rare, sure = (at_point(drips(p, 2), once) for p in (least, 1 - least))
        yield forged(f"step-is-not-0-{name}", rare, ValueHints(), 0.0, 0.0)
        yield forged(f"step-is-no-double-{name}", rare, ValueHints(), 5e-324, 1.0)
        yield forged(f"step-is-not-1-{name}", sure, ValueHints(), 1.0, 1.0)
        turned = replace(sure, objective=replace(once, complement=True))
        yield forged(f"step-complement-{name}", turned, ValueHints(), 0.0, 0.0)
    jackpot = np.array([0.0, 0.0, 1e308])
    for name, high in (("2^-1074", 1e-16), ("2^-1075", 1e-16), ("10^-5000", 0.0)):
        asked = objective("CUMULATIVE", reward=jackpot, upper_steps=2)
        yield forged(f"step-jackpot-{name}", at_point(drips(LEAST[name], 2), asked), ValueHints(), 0.0, high)
    many = objective("UNTIL", target=GOAL, upper_steps=1000)
    rows = drips(Fraction(1, 3), 2)
    near = float(truth_of(at_point(drips(Fraction(1, 2**60), 2), many)))
    yield forged(
        "steps-add-up", at_point(drips(Fraction(1, 2**60), 2), many), ValueHints(), 0.0, near * (1 - 1e-15)
    )
    ten = objective("UNTIL", target=GOAL, upper_steps=10)
    exact = truth_of(at_point(rows, ten))
    high = np.nextafter(float(exact), 0.0) if Fraction(float(exact)) >= exact else float(exact)
    yield forged("steps-last-digit", at_point(rows, ten), ValueHints(), 0.0, float(high))


def earning() -> Iterator[Attack]:
    """Rewards that vanish in sums, and sums that vanish in rounding."""
    target = np.array([False, False, True])
    for kind in ("TOTAL", "REACH_REWARD"):
        more = {"target": target} if kind == "REACH_REWARD" else {}
        asked = objective(kind, agent="MIN", reward=np.array([1.0, 0.0, 0.0]), **more)
        problem = at_point(drips(ETA, 2), asked)
        yield forged(f"absorbed-{kind}", problem, vectors([0.0, 0, 0], [1e308, 0, 0]), 0.0, 1e308)
        small = replace(problem, objective=replace(asked, reward=np.array([5e-324, 0.0, 0.0])))
        small = replace(at_point(drips(Fraction(1, 2), 2), small.objective))
        yield forged(f"denormal-above-{kind}", small, vectors([0.0, 0, 0], [5e-324, 0, 0]), 0.0, 5e-324)
        yield forged(f"denormal-below-{kind}", small, vectors([1.5e-323, 0, 0], [1.0, 0, 0]), 1.5e-323, 1.0)
    asked = objective("REACH_REWARD", agent="MIN", reward=np.array([3.0, 0.0, 0.0]), target=target)
    for name in ("2^-1074", "10^-5000"):
        missed = at_point([[[(2, 1 - LEAST[name]), (1, LEAST[name])]], *STAY], asked)
        yield forged(f"missed-{name}", missed, vectors([0.0, 0, 0], [3.0, 0, 0]), 0.0, 3.0)
        hints = vectors([0.0, 0, 0], [3.0, np.inf, 0])
        yield forged(f"missed-infinitely-{name}", missed, hints, 0.0, 3.0)


def discounting() -> Iterator[Attack]:
    """Discounts next to 1 and next to 0, and values that cancel."""
    near = 1 - 2.0**-53
    alone = [[[(0, ONE)]]]
    for name, low, high in (("above", 0.0, 2.0**53 - 1), ("below", 2.0**53 + 2, 1e17)):
        asked = objective("DISCOUNTED", reward=np.array([1.0]), discount=near)
        hints = vectors([low], [high])
        yield forged(f"discount-next-to-1-{name}", at_point(alone, asked), hints, low, high)
    asked = objective("DISCOUNTED", reward=np.array([1.0]), discount=5e-324)
    yield forged("discount-next-to-0", at_point(alone, asked), vectors([0.0], [1.0]), 0.0, 1.0)
    asked = objective("DISCOUNTED", reward=np.array([5e-324]), discount=0.5)
    yield forged("discount-of-denormals", at_point(alone, asked), vectors([0.0], [5e-324]), 0.0, 5e-324)
    large = 2.0**1000
    for name, first, second, p in (
        ("thirds", large, -large / 2, Fraction(1, 3)),
        ("digits", large, -np.nextafter(large, 0), Fraction(1, 2)),
    ):
        rows = [[[(1, p), (2, 1 - p)]], *STAY]
        asked = objective("DISCOUNTED", reward=np.array([0.0, first, second]), discount=0.5)
        problem = at_point(rows, asked)
        exact = float(truth_of(problem))
        ends = [2 * first, 2 * second]
        below, above = exact - 1.0 - abs(exact) / 2**20, exact + 1.0 + abs(exact) / 2**20
        hints = vectors([exact, *ends], [below, *ends])
        yield forged(
            f"cancelled-above-{name}", problem, replace(hints, lower=hints.upper), below - 1e300, below
        )
        hints = vectors([above, *ends], [above, *ends])
        yield forged(f"cancelled-below-{name}", problem, hints, above, above)


ATTACKS = [*reaching(), *weighing(), *stepping(), *earning(), *discounting()]


def fails(certificate: Certificate, n: object) -> list[str]:
    return [one.name for one in check(certificate, n).checks if not one.passed]


def test_there_are_many() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.thinned(3)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attacks_are_refused(attack: Attack) -> None:
    (claimed,) = attack.certificate.claims
    assert not is_allowed(claimed.lower, claimed.upper, attack.truth), "what is claimed is true"
    for n in (FLOAT64, RATIONAL):
        assert fails(attack.certificate, n)


@pytest.mark.parametrize("name", LEAST)
def test_the_true_value_is_accepted(name: str) -> None:
    """Not refused for their numbers: with true claims the same problems pass, to the last digit."""
    least, asked = LEAST[name], objective("UNTIL", target=GOAL)
    for into, end in ((1, 0.0), (2, 1.0)):
        hints = vectors([end, 0, 1], [end, 0, 1])
        problems = [at_point(drips(least, into), asked)]
        if least >= ETA:
            problems.append(by_doubles(drips(least, into), asked))
        for problem in problems:
            for n in (FLOAT64, RATIONAL):
                assert not fails(Certificate(problem, (Claim("value", "free", end, end),), (hints,)), n)
    once = objective("UNTIL", target=GOAL, upper_steps=1)
    low, high = (float(ends[0]) for ends in FLOAT64.enclose([least]))
    steps = Certificate(
        at_point(drips(least, 2), once), (Claim("value", "free", low, high),), (ValueHints(),)
    )
    assert not fails(steps, FLOAT64) and not fails(steps, RATIONAL)


def test_steps_are_right_to_the_last_digit() -> None:
    problem = at_point(drips(Fraction(1, 3), 2), objective("UNTIL", target=GOAL, upper_steps=10))
    low, high = (float(ends[0]) for ends in FLOAT64.enclose([truth_of(problem)]))
    assert not fails(Certificate(problem, (Claim("value", "free", low, high),), (ValueHints(),)), FLOAT64)


def test_numbers_that_are_no_probabilities_by_less_than_a_double_are_refused() -> None:
    """−θ² and 1 + θ² at θ = 10⁻³⁹⁹⁹: their signs are not those of the nearest doubles."""
    theta = Fraction(1, 10**3999)
    for sign in (1, -1):
        small, rest = {((0, 2),): ONE * sign}, {(): ONE, ((0, 2),): ONE * -sign}
        graph, _ = graph_of(drips(ONE / 2, 2))
        problem = CertifiedProblem(
            graph,
            objective("UNTIL", target=GOAL),
            expression=np.array([1, 0, 2, 2]),
            polynomial=(small, rest, {(): ONE}),
            theta=(theta,),
        )
        hints, claimed = vectors([0.0, 0, 1], [1.0, 1, 1]), (Claim("value", "free", 0.0, 1.0),)
        for n in (FLOAT64, RATIONAL):
            failed = fails(Certificate(problem, claimed, (hints,)), n)
            assert failed == ([] if sign == 1 else ["the sets of distributions are valid"])


def test_averages_drip_too() -> None:
    """0 stays but for 2⁻¹⁰⁷⁴, 2 earns for ever: the average is 1, and not 0.0002."""
    for name in ("2^-1074", "10^-5000"):
        asked = objective("AVERAGE", reward=np.array([0.0, 0.0, 1.0]))
        problem = at_point(drips(LEAST[name], 2), asked)
        zeros = np.zeros(3)
        for low, high, valid in ((0.0, 0.0002, False), (0.0, 1.0, True)):
            hints = ValueHints(
                np.array([0.0, 0, 1]),
                np.array([high, 0, 1]),
                np.zeros(3, np.int64),
                witness=np.arange(3),
                lower_bias=zeros,
                upper_bias=zeros,
            )
            certificate = Certificate(problem, (Claim("value", "free", low, high),), (hints,))
            for n in (FLOAT64, RATIONAL):
                assert (not fails(certificate, n)) == valid
    asked = objective("AVERAGE", reward=np.array([5e-324, 0.0]))  # in turns: half of it on average
    problem = at_point([[[(1, ONE)]], [[(0, ONE)]]], asked)
    for bias in ([0.0, 0.0], [5e-324, 0.0]):
        ends = np.zeros(2), np.array(bias)
        hints = ValueHints(
            ends[0],
            ends[0],
            np.zeros(2, np.int64),
            witness=np.arange(2),
            lower_bias=ends[0],
            upper_bias=ends[1],
        )
        certificate = Certificate(problem, (Claim("value", "free", 0.0, 0.0),), (hints,))
        assert fails(certificate, FLOAT64) and fails(certificate, RATIONAL)


@pytest.mark.parametrize(("power", "scale"), [(499, 300), (700, 307), (5000, 300)])
def test_coefficients_too_small_for_doubles_count_over_a_domain(power: int, scale: int) -> None:
    """10⁻⁴⁹⁹·θ for θ up to 10³⁰⁰ drips away for every instantiation: P ≥ 0.99 for none."""
    drip = {((0, 1),): Fraction(1, 10**power)}
    stay = {(): ONE, ((0, 1),): -Fraction(1, 10**power)}
    graph, _ = graph_of(drips(ONE / 2, 1))
    top = Fraction(10**scale)
    domain = Domain((top / 2,), (top,), (), (), np.zeros(0, dtype=np.bool_))
    problem = CertifiedProblem(
        graph,
        objective("UNTIL", target=GOAL),
        expression=np.array([1, 0, 2, 2]),
        polynomial=(drip, stay, {(): ONE}),
        domain=domain,
    )
    none = np.zeros(0, np.int64)
    region = RegionHints(
        np.zeros((0, 3), np.int64), np.zeros((0, 1)), np.zeros((0, 1), np.int64), none, none,
        np.zeros((0, 1), np.int64), np.array([[0], [1]]),
    )  # fmt: skip
    for basis in (0, 1):
        for low in (0.99, 0.0):
            hints = replace(vectors([low, 0, 1], [1.0, 1, 1]), lower_basis=np.array([basis, -1, -1]))
            made = Certificate(
                problem, (Claim("value", "free", low, 1.0),), (hints,), LearnedHints(region=region)
            )
            for n in (FLOAT64, RATIONAL):
                failed = fails(made, n)
                assert failed == ([] if low == 0.0 else ["value: the lower bound is inductive"])


def test_a_power_of_a_parameter_drips_from_a_file(tmp_path: Path) -> None:
    """pow(q, 115) at q = 2⁻¹⁴³, as a file and by the command."""
    drip, stay = {((0, 115),): ONE}, {(): ONE, ((0, 115),): -ONE}
    graph, _ = graph_of(drips(ONE / 2, 1))
    asked = objective("UNTIL", target=GOAL)
    for into, (low, high) in ((1, (0.4998, 1.0)), (2, (0.0, 0.0002))):
        there = replace(graph, successor=np.array([0, into, 1, 2]))
        problem = CertifiedProblem(
            there,
            asked,
            expression=np.array([1, 0, 2, 2]),
            polynomial=(drip, stay, {(): ONE}),
            theta=(Fraction(1, 2**143),),
        )
        hints = vectors([low, 0, 1], [1.0, 1, 1] if into == 1 else [high, 0, 1])
        path = tmp_path / f"drip{into}.cert"
        as_file(Certificate(problem, (Claim("value", "free", low, high),), (hints,))).save(path)
        assert not verify(path).accepted and not verify(path, "--exact").accepted
