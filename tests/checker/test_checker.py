"""Certificates of values: what the solver claims is proved again, and no mutation of a claim gets through.

Also of `tightrope_check/laws.py`, `tightrope_check/layers.py`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import tightrope as tr
from cases.value_certificates import loop, walk_certificate
from effort import repeats
from exact_reference import INFINITE, brute_force, random_model, random_objective
from tightrope.certify.certificate_file import as_file
from tightrope.certify.problem import first_difference, to_problem
from tightrope.certify.solved import to_certificate
from tightrope.errors import InputError
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.structure import RewardStructure
from tightrope.solver.solve import solve
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.nature import Graph
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate, CertifiedProblem, Claim, ValueHints
from tightrope_check.problem import CertifiedObjective as Asked

UNBOUNDED = [ObjectiveKind.UNTIL, ObjectiveKind.REACH_REWARD, ObjectiveKind.TOTAL, ObjectiveKind.DISCOUNTED]
BOTH = [Direction.MAX, Direction.MIN]


def failures(certificate, n=FLOAT64):
    """What fails: checks, or a field that does not hold what it should."""
    try:
        return [one for one in check(certificate, n).checks if not one.passed]
    except InputError as error:
        return [str(error)]


def proved(certificate):
    return failures(certificate) == [] and failures(certificate, RATIONAL) == []


def refused(certificate):
    return bool(failures(certificate)) and bool(failures(certificate, RATIONAL))


def certify(model, objective, policy=None):
    given = None if policy is None else Policy(model, policy)
    return to_certificate(to_problem(model, objective), solve(model, objective, policy=given), given)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("agent", BOTH)
@pytest.mark.parametrize("nature", BOTH)
@pytest.mark.parametrize("kind", UNBOUNDED)
def test_solutions_are_proved_by_both_checkers(kind, agent, nature):
    rng = np.random.default_rng([UNBOUNDED.index(kind), BOTH.index(agent), BOTH.index(nature)])
    for _ in range(repeats(35)):
        tiny = random_model(rng, int(rng.integers(2, 6)), intervals=bool(rng.random() < 0.7))
        objective = random_objective(rng, tiny, kind, agent, nature)
        certificate = certify(tiny.model(), objective)
        assert proved(certificate)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", UNBOUNDED)
def test_fixed_and_randomised_policies_are_proved(kind):
    rng = np.random.default_rng(7 + UNBOUNDED.index(kind))
    for round_ in range(repeats(36)):
        tiny = random_model(rng, int(rng.integers(2, 6)), intervals=bool(rng.random() < 0.7))
        agent, nature = BOTH[int(rng.integers(2))], BOTH[int(rng.integers(2))]
        objective = random_objective(rng, tiny, kind, agent, nature)
        start = tiny.structure.choice_start
        if round_ % 2:
            policy = np.array([rng.integers(b - a) for a, b in pairwise(start)])
        else:
            policy = np.concatenate(
                [np.array([1.0]) if b - a == 1 else np.array([0.25, 0.75]) for a, b in pairwise(start)]
            )
        certificate = certify(tiny.model(), objective, policy)
        assert proved(certificate)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("steps", [(0, 0), (0, 3), (1, 4), (2, None)])
def test_step_bounds_are_computed_again(steps):
    lower, upper = steps
    rng = np.random.default_rng(11)
    for _ in range(repeats(25)):
        tiny = random_model(rng, 4)
        base = random_objective(
            rng, tiny, ObjectiveKind.UNTIL, BOTH[int(rng.integers(2))], BOTH[int(rng.integers(2))]
        )
        certificate = certify(tiny.model(), replace(base, lower_steps=lower, upper_steps=upper))
        assert proved(certificate)
        (claim,) = certificate.claims
        raised = replace(claim, lower=claim.upper + 1e-3, upper=2.0)
        assert refused(replace(certificate, claims=(raised,)))


def test_next_and_cumulative_rewards_are_computed_again():
    rng = np.random.default_rng(12)
    for _ in range(repeats(25)):
        tiny = random_model(rng, 4)
        target = np.array([True, False, True, False])
        rewards = RewardStructure(state=np.array([1.0, -2.0, 0.0, 0.5]))
        for objective in (
            Objective(ObjectiveKind.NEXT, Direction.MAX, Direction.MIN, target=target),
            Objective(ObjectiveKind.CUMULATIVE, Direction.MIN, Direction.MAX, reward=rewards, upper_steps=5),
        ):
            certificate = certify(tiny.model(), objective)
            assert proved(certificate)


def test_a_point_of_a_parametric_model_is_checked_in_rationals_from_its_expressions():
    certificate = walk_certificate()
    assert certificate.problem.law == "point"
    assert proved(certificate)


def mutated(certificate, path, change):
    """The certificate with another array at a path such as problem.graph.successor or values.lower."""
    first, *rest = path.split(".")
    if first in ("claims", "values"):
        (held,) = getattr(certificate, first)
        return replace(certificate, **{first: (_changed(held, rest, change),)})
    return _changed(certificate, [first, *rest], change)


def _changed(holder, path, change):
    held = getattr(holder, path[0])
    new = _changed(held, path[1:], change) if len(path) > 1 else change(np.copy(held))
    return replace(holder, **{path[0]: new})


def at(index, value):
    def change(array):
        array[index] = value
        return array

    return change


MUTATIONS = [
    ("a lower bound raised", ObjectiveKind.UNTIL, "values.lower", lambda v: np.where(v > 0, v + 1e-4, v)),
    ("one lower bound raised", ObjectiveKind.UNTIL, "values.lower", at(2, 0.6)),
    ("an upper bound lowered", ObjectiveKind.UNTIL, "values.upper", lambda v: v - 1e-4),
    ("a negative upper bound", ObjectiveKind.UNTIL, "values.upper", at(0, -1.0)),
    ("a bound that is not a number", ObjectiveKind.UNTIL, "values.lower", at(1, np.nan)),
    ("the other choice", ObjectiveKind.UNTIL, "values.witness", at(2, 4)),
    ("a choice of another state", ObjectiveKind.UNTIL, "values.witness", at(2, 0)),
    ("a flat ranking", ObjectiveKind.UNTIL, "values.lower_ranking", lambda v: np.zeros_like(v)),
    ("another target", ObjectiveKind.UNTIL, "problem.objective.target", lambda v: np.zeros_like(v)),
    ("another successor", ObjectiveKind.UNTIL, "problem.graph.successor", at(1, 0)),
    ("a successor out of range", ObjectiveKind.UNTIL, "problem.graph.successor", at(1, 99)),
    ("another expression", ObjectiveKind.UNTIL, "problem.expression", at(1, 0)),
    ("a cost bound lowered", ObjectiveKind.REACH_REWARD, "values.upper", lambda v: v * 0.999),
    (
        "a cost bound raised",
        ObjectiveKind.REACH_REWARD,
        "values.lower",
        lambda v: np.where(v > 0, v * 1.001, v),
    ),
    ("an infinite cost claimed", ObjectiveKind.REACH_REWARD, "values.lower", at(2, np.inf)),
    ("a larger cost", ObjectiveKind.REACH_REWARD, "problem.objective.reward", lambda v: v * 1.01),
    ("a smaller cost", ObjectiveKind.REACH_REWARD, "problem.objective.reward", lambda v: v * 0.99),
    ("a negative cost", ObjectiveKind.REACH_REWARD, "problem.objective.reward", at(2, -1.0)),
    ("no way to the target", ObjectiveKind.REACH_REWARD, "values.lower_ranking", lambda v: np.zeros_like(v)),
]


@pytest.mark.parametrize(("words", "kind", "path", "change"), MUTATIONS, ids=[m[0] for m in MUTATIONS])
def test_changing_a_number_that_matters_makes_both_arithmetics_fail(words, kind, path, change):
    agent = Direction.MAX if kind is ObjectiveKind.UNTIL else Direction.MIN
    certificate = walk_certificate(kind, agent)
    widest = Claim("value", "free", *certificate.problem.objective.range)
    certificate = replace(certificate, claims=(widest,))
    assert proved(certificate)
    assert refused(mutated(certificate, path, change)), words


def test_the_true_value_is_within_every_certified_interval_and_claims_beyond_it_fail():
    rng = np.random.default_rng(5)
    for _ in range(repeats(60)):
        kind = UNBOUNDED[int(rng.integers(4))]
        tiny = random_model(rng, int(rng.integers(2, 5)))
        objective = random_objective(rng, tiny, kind, BOTH[int(rng.integers(2))], BOTH[int(rng.integers(2))])
        certificate = certify(tiny.interval_model(), objective)
        truth = brute_force(tiny, objective)
        (hints,) = certificate.values
        for s, value in enumerate(truth):
            exact = np.inf if value >= INFINITE else value
            assert hints.lower[s] <= exact <= hints.upper[s]
            if value >= INFINITE:
                assert failures(mutated(certificate, "values.upper", at(s, 1e6)))
            else:
                assert refused(mutated(certificate, "values.lower", at(s, float(value) + 1e-3)))
                assert refused(mutated(certificate, "values.upper", at(s, float(value) - 1e-3)))


def test_the_claim_is_compared_with_what_was_proved_also_of_a_complement():
    certificate = walk_certificate()
    graph = replace(certificate.problem.graph, initial=2)
    (hints,) = certificate.values
    claim = Claim("value", "free", float(hints.lower[2]), float(hints.upper[2]))
    certificate = replace(certificate, problem=replace(certificate.problem, graph=graph), claims=(claim,))
    assert proved(certificate)
    for change in ({"lower": claim.upper}, {"upper": claim.lower}):
        assert refused(replace(certificate, claims=(replace(claim, **change),)))
    objective = replace(certificate.problem.objective, complement=True)
    turned = replace(certificate, problem=replace(certificate.problem, objective=objective))
    low, high = 1 - Fraction(hints.upper[2]), 1 - Fraction(hints.lower[2])
    wide = Claim("value", "free", float(low) - 1e-15, float(high) + 1e-15)
    assert proved(replace(turned, claims=(wide,)))
    assert refused(replace(turned, claims=(replace(wide, lower=float(low) + 1e-9, upper=1.0),)))
    assert refused(replace(turned, claims=(replace(wide, upper=float(high) - 1e-9, lower=0.0),)))


IMPOSSIBLE = [
    ("a way to the target through −∞", loop("UNTIL", [0.9, 1, -np.inf], [1.0, 1, 1])),
    ("an infinite probability", loop("UNTIL", [np.inf, 1, 0], [np.inf, 1, 1])),
    ("an infinite discounted reward", loop("DISCOUNTED", [np.inf, 0, 0], [np.inf, 1, 1])),
    ("a tail that is not a number", loop("UNTIL", [np.nan, 1, 0], [1.0, 1, 1], lower_steps=1)),
    (
        "targets that are numbers",
        mutated(loop("UNTIL", [0.0, 1, 0], [1.0, 1, 1]), "problem.objective.target", np.int8),
    ),
    (
        "ranks that are no integers",
        mutated(loop("UNTIL", [0.0, 1, 0], [1.0, 1, 1]), "values.lower_ranking", np.float64),
    ),
    (
        "offsets without signs",
        mutated(loop("UNTIL", [0.0, 1, 0], [1.0, 1, 1]), "problem.graph.choice_start", np.uint8),
    ),
]


@pytest.mark.parametrize(("words", "certificate"), IMPOSSIBLE, ids=[words for words, _ in IMPOSSIBLE])
def test_values_no_objective_can_have_prove_nothing(words, certificate):
    with pytest.raises(InputError, match="this is not a certificate"):
        check(certificate)


def test_a_single_choice_with_a_weight_next_to_one_is_that_choice():
    certificate = loop("UNTIL", [0.0, 1, 0], [1.0, 1, 1], successor=(0, 1, 1, 2))
    almost = np.array([1.0 - 2.0**-52, 1.0, 1.0])
    claim = replace(certificate.claims[0], name="given policy", policy="randomised", weight=almost)
    hints = replace(certificate.values[0], witness=None)
    given = replace(certificate, claims=(claim,), values=(hints,))
    assert proved(given)
    short = replace(hints, upper=np.array([1.0 - 2.0**-53, 1.0, 1.0]))
    assert refused(replace(given, values=(short,)))


def rewards(kind, reward, upper_steps=None, discount=None):
    """One state that stays, with a reward at every step."""
    asked = Asked(
        kind=kind,
        agent="MAX",
        nature="ANY",
        complement=False,
        lower_steps=0,
        upper_steps=upper_steps,
        discount=discount,
        reward=np.array([reward]),
        target=np.array([False]) if kind == "REACH_REWARD" else None,
    )
    return CertifiedProblem(
        Graph(np.arange(2), np.arange(2), np.zeros(1, np.int64), 0), asked, probability=np.ones(1)
    )


def test_a_sum_beyond_the_doubles_is_no_infinity():
    problem = rewards("CUMULATIVE", -1.2e308, upper_steps=3)
    for low, high in ((1.7e308, np.inf), (-1.7e308, -1.7e308), (np.inf, np.inf)):
        assert refused(Certificate(problem, (Claim("value", "free", low, high),), (ValueHints(),)))
    honest = rewards("CUMULATIVE", -0.4e308, upper_steps=3)
    assert proved(Certificate(honest, (Claim("value", "free", -1.3e308, -1.1e308),), (ValueHints(),)))


@pytest.mark.parametrize(("kind", "discount"), [("DISCOUNTED", 0.5), ("TOTAL", None), ("REACH_REWARD", None)])
def test_objectives_without_steps_have_no_step_bound(kind, discount):
    problem = rewards(kind, 1.0, upper_steps=0, discount=discount)
    with pytest.raises(InputError, match="not the fields of"):
        check(Certificate(problem, (Claim("value", "free", 0.0, 0.0),), (ValueHints(),)))


def test_unbounded_negative_rewards_prove_nothing():
    problem = rewards("TOTAL", -1.0)
    hints = ValueHints(np.zeros(1), np.zeros(1), np.zeros(1, np.int64), witness=np.zeros(1, np.int64))
    assert refused(Certificate(problem, (Claim("value", "free", 0.0, 0.0),), (hints,)))


@pytest.mark.parametrize("learned", [False, True])
def test_no_certificate_is_written_that_would_be_refused(tmp_path, learned):
    """Every play ends, so the answer holds; what is believed of rewards is that they only grow."""
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    rows = [(0, "go", {0: 1 - p, 1: p}), (1, "stay", {1: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"end": [1]}, state_rewards={"": [-0.5, 0]})
    problem, file = model.problem('Rmax=? [ F "end" ]'), tmp_path / "end.cert"
    counts = tr.Simulator(model.instantiate(p=0.5), model_hash=model.hash()).generative(200, seed=1)
    subject, point = (tr.learn(problem, counts), None) if learned else (problem, (0.5,))
    with pytest.raises(tr.CannotCertify, match="negative reward"):
        tr.certify(subject, file, at=point)
    assert not file.exists()


def remainder(lower, upper, asked, hints):
    """State 0 with one choice of intervals to 1, to itself and to 2 (which stay)."""
    graph = Graph(np.arange(4), np.array([0, 3, 4, 5]), np.array([1, 0, 2, 1, 2]), 0)
    bounds = {"lower": np.array([*lower, 1.0, 1.0]), "upper": np.array([*upper, 1.0, 1.0])}
    low, high = hints
    vectors = ValueHints(np.array(low), np.array(high), np.array([1, 0, 0]), witness=np.arange(3))
    claim = Claim("value", "free", float(low[0]), float(high[0]))
    return Certificate(CertifiedProblem(graph, asked, **bounds), (claim,), (vectors,))


def test_no_remainder_is_too_small_to_count():
    """Nature must put 8·10⁻¹⁶ on state 2: the target is reached with probability 0.556, not 1."""
    target = np.array([False, True, False])
    asked = Asked("UNTIL", "MAX", "MAX", False, 0, target=target)
    least, most = [1e-15, 0.0, 0.0], [1e-15, 0.9999999999999982, 1.0]
    assert refused(remainder(least, most, asked, ([1.0, 1, 0], [1.0, 1, 0])))
    truth = Fraction(1e-15) / (1 - Fraction(0.9999999999999982))
    near = float(truth)
    assert proved(remainder(least, most, asked, ([near * (1 - 1e-9), 1, 0], [near * (1 + 1e-9), 1, 0])))
    assert refused(remainder(least, most, asked, ([near * (1 + 1e-9), 1, 0], [1.0, 1, 0])))


def test_a_remainder_that_cannot_be_avoided_makes_a_cost_infinite():
    """Nature cannot keep 4·10⁻¹⁶ away from state 2, where the target is missed: the cost is infinite."""
    target = np.array([False, True, False])
    asked = Asked("REACH_REWARD", "MIN", "MIN", False, 0, target=target, reward=np.array([3.0, 0.0, 0.0]))
    least, most = [0.0, 0.0, 0.0], [0.9999999999999995, 0.0, 1.0]
    finite = remainder(least, most, asked, ([3.0, 0, 0], [3.0, 0, np.inf]))
    assert refused(finite)
    assert proved(remainder(least, most, asked, ([np.inf, 0, np.inf], [np.inf, 0, np.inf])))


def test_rows_that_miss_one_by_rounding_as_a_whole_are_one_distribution():
    target = np.array([False, True, False])
    for nature in ("MAX", "MIN"):
        asked = Asked("UNTIL", "MAX", nature, False, 0, target=target)
        point = [0.1, 0.2, 0.7]
        assert sum(map(Fraction, point)) != 1
        assert proved(remainder(point, point, asked, ([0.125 - 1e-12, 1, 0], [0.125 + 1e-12, 1, 0])))
        assert refused(remainder(point, point, asked, ([0.125 + 1e-12, 1, 0], [1.0, 1, 0])))
        off = [0.1, 0.2, 0.7 + 1e-14]
        assert refused(remainder(off, off, asked, ([0.0, 1, 0], [1.0, 1, 0])))


def test_files_round_trip_and_any_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "walk.cert"
    certificate = replace(walk_certificate(), about={"model": "walk"})
    digest = as_file(certificate).save(path)
    again = load(path)
    assert again.digest == digest
    for part in ("problem", "claims", "values"):
        before, after = getattr(certificate, part), getattr(again.certificate, part)
        for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (before, after)), strict=True):
            assert first_difference(one, other) is None
    assert again.certificate.about == {"model": "walk"}
    assert [p.name for p in tmp_path.iterdir()] == ["walk.cert"]
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(3)
    noticed = 0
    for position in rng.choice(len(data), 60, replace=False).tolist():
        broken = data.copy()
        broken[position] ^= 0xFF
        path.write_bytes(bytes(broken))
        try:
            noticed += load(path).digest == digest
        except InputError:
            noticed += 1
    assert noticed == 60


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 but nothing behind it"])
def test_what_is_no_certificate_is_refused(tmp_path, content):
    path = tmp_path / "broken.cert"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a certificate"):
        load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.cert: cannot be read"):
        load(tmp_path / "nowhere.cert")
