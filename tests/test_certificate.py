"""Certificates: what the solver claims is proved again, and no mutation of a claim gets through."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from exact_reference import INFINITE, brute_force, random_model, random_objective
from tightrope.certificate.certificate import Certificate, Claim, Problem
from tightrope.certificate.checker import verify
from tightrope.certificate.exact import verify_exactly
from tightrope.errors import InputError
from tightrope.model.builder import build_from_rows
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Parameters
from tightrope.model.structure import RewardStructure
from tightrope.solver.solve import solve
from tightrope.solver.to_certificate import to_certificate

UNBOUNDED = [ObjectiveKind.UNTIL, ObjectiveKind.REACH_REWARD, ObjectiveKind.TOTAL, ObjectiveKind.DISCOUNTED]
BOTH = [Direction.MAX, Direction.MIN]


def failures(checks):
    return [check for check in checks if not check.passed]


def certify(model, objective, policy=None):
    return to_certificate(solve(model, objective, policy=policy), policy=policy)


@pytest.mark.parametrize("agent", BOTH)
@pytest.mark.parametrize("nature", BOTH)
@pytest.mark.parametrize("kind", UNBOUNDED)
def test_solutions_are_proved_by_both_checkers(kind, agent, nature):
    rng = np.random.default_rng([UNBOUNDED.index(kind), BOTH.index(agent), BOTH.index(nature)])
    for _ in range(35):
        tiny = random_model(rng, int(rng.integers(2, 6)), intervals=bool(rng.random() < 0.7))
        objective = random_objective(rng, tiny, kind, agent, nature)
        certificate = certify(tiny.model(), objective)
        assert failures(verify(certificate)) == []
        assert failures(verify_exactly(certificate)) == []


@pytest.mark.parametrize("kind", UNBOUNDED)
def test_fixed_and_randomised_policies_are_proved(kind):
    rng = np.random.default_rng(7 + UNBOUNDED.index(kind))
    for round_ in range(36):
        tiny = random_model(rng, int(rng.integers(2, 6)), intervals=bool(rng.random() < 0.7))
        agent, nature = BOTH[int(rng.integers(2))], BOTH[int(rng.integers(2))]
        objective = random_objective(rng, tiny, kind, agent, nature)
        start = tiny.structure.choice_start
        if round_ % 2:
            policy = np.array([rng.integers(a, b) for a, b in pairwise(start)])
        else:
            policy = np.concatenate(
                [np.array([1.0]) if b - a == 1 else np.array([0.25, 0.75]) for a, b in pairwise(start)]
            )
        certificate = certify(tiny.model(), objective, policy)
        assert failures(verify(certificate)) == []
        assert failures(verify_exactly(certificate)) == []


@pytest.mark.parametrize("steps", [(0, 0), (0, 3), (1, 4), (2, None)])
def test_step_bounds_are_computed_again(steps):
    lower, upper = steps
    rng = np.random.default_rng(11)
    for _ in range(25):
        tiny = random_model(rng, 4)
        base = random_objective(
            rng, tiny, ObjectiveKind.UNTIL, BOTH[int(rng.integers(2))], BOTH[int(rng.integers(2))]
        )
        certificate = certify(tiny.model(), replace(base, lower_steps=lower, upper_steps=upper))
        assert failures(verify(certificate)) == []
        assert failures(verify_exactly(certificate)) == []
        raised = replace(certificate.claim, lower=np.minimum(certificate.claim.upper + 1e-3, 2.0))
        assert failures(verify(replace(certificate, claim=raised)))


def test_next_and_cumulative_rewards_are_computed_again():
    rng = np.random.default_rng(12)
    for _ in range(25):
        tiny = random_model(rng, 4)
        target = np.array([True, False, True, False])
        rewards = RewardStructure(state=np.array([1.0, -2.0, 0.0, 0.5]))
        for objective in (
            Objective(ObjectiveKind.NEXT, Direction.MAX, Direction.MIN, target=target),
            Objective(ObjectiveKind.CUMULATIVE, Direction.MIN, Direction.MAX, reward=rewards, upper_steps=5),
        ):
            certificate = certify(tiny.model(), objective)
            assert failures(verify(certificate)) == []
            assert failures(verify_exactly(certificate)) == []


def walk():
    """A parametric walk on 0..4 with a choice of speed, at p = 2/5."""
    parameters = Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    rows = []
    for x in range(5):
        if x in (0, 4):
            rows.append((x, "stay", {x: 1}))
        else:
            rows.append((x, "slow", {x + 1: p / 2, x: 0.5, x - 1: 0.5 - p / 2}))
            rows.append((x, "fast", {x + 1: p * p, x - 1: 1 - p * p}))
    return build_from_rows(rows, parameters, labels={"home": [4]})


def walk_certificate(kind=ObjectiveKind.UNTIL, agent=Direction.MAX):
    model, theta = walk(), [Fraction(2, 5)]
    structure = model.structure
    target = model.labels["home"] | ((np.arange(5) == 0) if kind is ObjectiveKind.REACH_REWARD else False)
    reward = (
        RewardStructure(state=np.array([0.0, 1, 1, 1, 0])) if kind is ObjectiveKind.REACH_REWARD else None
    )
    objective = Objective(kind, agent, agent.opposite, target=target, reward=reward)
    assert structure.states == 5
    return to_certificate(solve(model.instantiate(theta), objective), point=(model, theta))


def test_a_point_of_a_parametric_model_is_checked_in_rationals_from_its_expressions():
    certificate = walk_certificate()
    assert certificate.problem.sets == "point"
    assert failures(verify(certificate)) == []
    assert failures(verify_exactly(certificate)) == []


def mutated(certificate, part, name, change):
    holder = getattr(certificate, part)
    array = getattr(holder, name).copy()
    return replace(certificate, **{part: replace(holder, **{name: change(array)})})


def at(index, value):
    def change(array):
        array[index] = value
        return array

    return change


MUTATIONS = [
    ("a lower bound raised", ObjectiveKind.UNTIL, "claim", "lower", lambda v: np.where(v > 0, v + 1e-4, v)),
    ("one lower bound raised", ObjectiveKind.UNTIL, "claim", "lower", at(2, 0.6)),
    ("an upper bound lowered", ObjectiveKind.UNTIL, "claim", "upper", lambda v: v - 1e-4),
    ("a negative upper bound", ObjectiveKind.UNTIL, "claim", "upper", at(0, -1.0)),
    ("a bound that is no number", ObjectiveKind.UNTIL, "claim", "lower", at(1, np.nan)),
    ("the other choice", ObjectiveKind.UNTIL, "claim", "policy", at(2, 4)),
    ("a choice of another state", ObjectiveKind.UNTIL, "claim", "policy", at(2, 0)),
    ("a flat ranking", ObjectiveKind.UNTIL, "claim", "ranking", lambda v: np.zeros_like(v)),
    ("another target", ObjectiveKind.UNTIL, "problem", "target", lambda v: np.zeros_like(v)),
    ("another successor", ObjectiveKind.UNTIL, "problem", "successor", at(1, 0)),
    ("a successor out of range", ObjectiveKind.UNTIL, "problem", "successor", at(1, 99)),
    ("another expression", ObjectiveKind.UNTIL, "problem", "expression", at(1, 0)),
    ("a cost bound lowered", ObjectiveKind.REACH_REWARD, "claim", "upper", lambda v: v * 0.999),
    (
        "a cost bound raised",
        ObjectiveKind.REACH_REWARD,
        "claim",
        "lower",
        lambda v: np.where(v > 0, v * 1.001, v),
    ),
    ("an infinite cost claimed", ObjectiveKind.REACH_REWARD, "claim", "lower", at(2, np.inf)),
    ("a larger cost", ObjectiveKind.REACH_REWARD, "problem", "reward", lambda v: v * 1.01),
    ("a smaller cost", ObjectiveKind.REACH_REWARD, "problem", "reward", lambda v: v * 0.99),
    ("a negative cost", ObjectiveKind.REACH_REWARD, "problem", "reward", at(2, -1.0)),
    ("no way to the target", ObjectiveKind.REACH_REWARD, "claim", "ranking", lambda v: np.zeros_like(v)),
]


@pytest.mark.parametrize(
    ("words", "kind", "part", "name", "change"), MUTATIONS, ids=[m[0] for m in MUTATIONS]
)
def test_changing_a_number_that_matters_makes_both_checkers_fail(words, kind, part, name, change):
    agent = Direction.MAX if kind is ObjectiveKind.UNTIL else Direction.MIN
    certificate = walk_certificate(kind, agent)
    assert failures(verify(certificate)) == []
    broken = mutated(certificate, part, name, change)
    assert failures(verify(broken)), words
    assert failures(verify_exactly(broken)), words


def test_the_truth_is_within_every_certified_interval_and_claims_beyond_it_fail():
    rng = np.random.default_rng(5)
    for _ in range(120):
        kind = UNBOUNDED[int(rng.integers(4))]
        tiny = random_model(rng, int(rng.integers(2, 5)))
        objective = random_objective(rng, tiny, kind, BOTH[int(rng.integers(2))], BOTH[int(rng.integers(2))])
        certificate = certify(tiny.interval_model(), objective)
        truth = brute_force(tiny, objective)
        for s, value in enumerate(truth):
            exact = np.inf if value >= INFINITE else value
            assert certificate.claim.lower[s] <= exact <= certificate.claim.upper[s]
            if value >= INFINITE:
                below = mutated(certificate, "claim", "upper", at(s, 1e6))
                assert failures(verify(below))
            else:
                above = mutated(certificate, "claim", "lower", at(s, float(value) + 1e-3))
                under = mutated(certificate, "claim", "upper", at(s, float(value) - 1e-3))
                assert failures(verify(above)) and failures(verify_exactly(above))
                assert failures(verify(under)) and failures(verify_exactly(under))


def loop(kind, lower, upper, successor=(0, 2, 1, 2), **fields):
    """State 0 stays or goes to state 2, each with probability 1/2; 1 is the target; both others stay."""
    exactly = np.array([0.5, 0.5, 1.0, 1.0])
    until = kind == "UNTIL"
    problem = Problem(
        kind=kind,
        agent="MAX",
        nature="MIN",
        choice_start=np.arange(4),
        transition_start=np.array([0, 2, 3, 4]),
        successor=np.array(successor, dtype=np.int32),
        initial=0,
        sets="interval",
        lower=exactly,
        upper=exactly,
        target=np.array([False, True, False]) if until else None,
        reward=None if until else np.zeros(3),
        discount=None if until else 0.5,
        lower_steps=fields.pop("lower_steps", 0),
    )
    claim = Claim(
        np.array(lower), np.array(upper), policy=np.arange(3), ranking=np.array([1, 0, 0]), **fields
    )
    return Certificate(problem, claim)


IMPOSSIBLE = [
    ("a way to the target through −∞", loop("UNTIL", [0.9, 1, -np.inf], [1.0, 1, 1])),
    ("an infinite probability", loop("UNTIL", [np.inf, 1, 0], [np.inf, 1, 1])),
    ("an infinite discounted reward", loop("DISCOUNTED", [np.inf, 0, 0], [np.inf, 1, 1])),
    (
        "a tail that is no number",
        loop(
            "UNTIL",
            [0.0, 1, 0],
            [1.0, 1, 1],
            lower_steps=1,
            tail_lower=np.array([np.nan, 1, 0]),
            tail_upper=np.ones(3),
        ),
    ),
    (
        "targets that are numbers",
        mutated(loop("UNTIL", [0.0, 1, 0], [1.0, 1, 1]), "problem", "target", np.int8),
    ),
    (
        "ranks that are no integers",
        mutated(loop("UNTIL", [0.0, 1, 0], [1.0, 1, 1]), "claim", "ranking", np.float64),
    ),
]


@pytest.mark.parametrize(("words", "certificate"), IMPOSSIBLE, ids=[words for words, _ in IMPOSSIBLE])
def test_values_no_objective_can_have_prove_nothing(words, certificate):
    assert failures(verify(certificate)), words
    assert failures(verify_exactly(certificate)), words


def test_a_single_choice_with_a_weight_next_to_one_is_that_choice():
    certificate = loop("UNTIL", [0.0, 1, 0], [1.0, 1, 1], successor=(0, 1, 1, 2))
    almost = np.array([1.0 - 2.0**-52, 1.0, 1.0])
    claim = replace(certificate.claim, policy_kind="randomised", policy=None, weight=almost)
    assert failures(verify(replace(certificate, claim=claim))) == []
    short = replace(claim, upper=np.array([1.0 - 2.0**-53, 1.0, 1.0]))
    assert failures(verify(replace(certificate, claim=short)))


def test_files_round_trip_and_any_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "walk.cert"
    certificate = replace(walk_certificate(), about={"model": "walk"})
    certificate.save(path)
    again = Certificate.load(path)
    assert again.digest() == certificate.digest()
    assert again.value == certificate.value
    assert again.about == {"model": "walk"}
    assert [p.name for p in tmp_path.iterdir()] == ["walk.cert"]
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(3)
    noticed = 0
    for position in rng.choice(len(data), 60, replace=False).tolist():
        broken = data.copy()
        broken[position] ^= 0xFF
        path.write_bytes(bytes(broken))
        try:
            noticed += Certificate.load(path).digest() == certificate.digest()
        except InputError:
            noticed += 1
    assert noticed == 60


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 but nothing behind it"])
def test_what_is_no_certificate_is_refused(tmp_path, content):
    path = tmp_path / "broken.cert"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a certificate"):
        Certificate.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.cert: cannot be read"):
        Certificate.load(tmp_path / "nowhere.cert")
