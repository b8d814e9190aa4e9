"""Certificates of coupled bounds: hand-made proofs, those of learned results; no mutation gets through.

Also of `certify/coupled.py`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import tightrope as tr
from cases.learned_certificates import failures, moved, values
from coupled_proofs import Prover, base_certificate, loop_model, objective_of, value_at
from learning_cases import FAMILIES, case, counts_of
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.data.simulator import Simulator
from tightrope.errors import InputError
from tightrope.learning.learn import learn
from tightrope.model.objective import ObjectiveKind
from tightrope.model.structure import RewardStructure
from tightrope_check import coupled
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.coupled import CoupledCheck, CoupledHints
from tightrope_check.learned import Learned
from tightrope_check.numbers import FLOAT64

AIRCRAFT, BETTING, ENGAGEMENT, ROVER, GLIDER, PARALLEL = FAMILIES
SPLITS = [(0, [1.0, 0.0], 0.4), (1, [0.0, 1.0], 0.15)]
POLICY = np.zeros(5, np.int64)


def with_claim(certificate, proof):
    """The certificate with the best bounds that the checker's own functions find."""
    certificate = with_proof(certificate, proof)
    check = CoupledCheck(Learned(certificate, FLOAT64), proof)
    ends = {int(node): check.own_ends(i) for i, node in enumerate(proof.node)}
    low, high = check.tree_ends(ends, (-np.inf, np.inf))
    lower, upper = np.nextafter(float(low), -np.inf), np.nextafter(float(high), np.inf)
    claim = certificate.claims[0]
    claim = replace(claim, lower=max(float(lower), claim.lower), upper=min(float(upper), claim.upper))
    return replace(certificate, claims=(claim,))


def with_proof(certificate, *proofs):
    return moved(certificate, "learned.coupled", proofs)


def over_sets(certificate):
    """What the vectors alone prove."""
    initial = certificate.problem.graph.initial
    return tuple(
        float(vector[initial]) for vector in (certificate.values[0].lower, certificate.values[0].upper)
    )


def proof_of(certificate):
    return certificate.learned.coupled[0]


@cache
def by_hand(duals=True):
    model = loop_model()
    certificate = base_certificate(model, objective_of(model), POLICY)
    return with_claim(certificate, Prover(model, certificate, SPLITS).proof([2, 3, 4], duals))


@pytest.mark.parametrize("exactly", [False, True])
def test_only_states_with_a_doubt_are_weighed_at_points(monkeypatch, exactly):
    """Decided states have none: most states of a large model are decided."""
    certificate, counts, weigh = by_hand(), [], coupled.total_doubt
    monkeypatch.setattr(coupled, "total_doubt", lambda *given: counts.append(len(given[1])) or weigh(*given))
    assert failures(certificate, exactly) == []
    assert len(counts) == 6 and set(counts) == {len(proof_of(certificate).state)} == {3}


def test_hand_made_proofs_hold_and_are_tighter_than_the_sets():
    certificate = by_hand()
    assert failures(certificate) == []
    low, high = values(certificate)["robust policy"]
    base_low, base_high = over_sets(certificate)
    assert base_low + 0.01 < low and high < base_high - 0.04
    model = loop_model()
    for p in ("0.3", "0.37", "0.5"):
        for q in ("0.1", "0.16", "0.2"):
            point = (Fraction(p), Fraction(q))
            least, most = value_at(model, objective_of(model), POLICY, point)
            assert low <= most and least <= high


def test_occupancies_help():
    with_duals, without = by_hand(True), by_hand(False)
    low, high = values(with_duals)["robust policy"]
    wide_low, wide_high = values(without)["robust policy"]
    assert wide_low < low and high < wide_high


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        (ObjectiveKind.DISCOUNTED, {"discount": 0.9}),
        (ObjectiveKind.UNTIL, {"upper_steps": 5}),
        (ObjectiveKind.UNTIL, {"upper_steps": 5, "lower_steps": 2}),
        (ObjectiveKind.NEXT, {}),
        (ObjectiveKind.CUMULATIVE, {"upper_steps": 4}),
        (ObjectiveKind.TOTAL, {}),
    ],
)
@pytest.mark.parametrize("randomised", [False, True])
def test_every_objective_has_proofs(kind, more, randomised):
    model = loop_model()
    if kind in (ObjectiveKind.DISCOUNTED, ObjectiveKind.CUMULATIVE, ObjectiveKind.TOTAL):
        more = more | {"reward": RewardStructure(choice=np.array([1.0, 2.0, 0.5, 0.25, 0.0, 0.0]))}
    objective = objective_of(model, kind, **more)
    if kind not in (ObjectiveKind.UNTIL, ObjectiveKind.NEXT):
        objective = replace(objective, target=None)
    policy = np.array([1.0, 0.25, 0.75, 1.0, 1.0, 1.0]) if randomised else POLICY
    certificate = base_certificate(model, objective, policy)
    prover = Prover(model, certificate, SPLITS)
    proof = prover.proof([2, 3, 4])
    if objective.is_bounded:
        empty = np.zeros(0, dtype=np.int64)
        proof = replace(
            proof, state=empty, value=np.zeros((0, 0)), slope=np.zeros((0, 0, 2)), curve=np.zeros((0, 0, 3)),
            error=np.zeros((0, 0)), dual=np.zeros((0, 0)),
        )  # fmt: skip
    base_low, base_high = values(certificate)["robust policy"]
    certificate = with_claim(certificate, proof)
    assert failures(certificate) == []
    low, high = values(certificate)["robust policy"]
    assert high - low <= 0.99 * (base_high - base_low)
    for point in ((Fraction("0.3"), Fraction("0.1")), (Fraction("0.5"), Fraction("0.1"))):
        least, most = value_at(model, objective, policy, point)
        assert low <= most and least <= high
    assert failures(moved(certificate, "claims.0.lower", low + 1e-9))


OCCUPANCIES = ("dual", "lower_dual", "upper_dual")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", [f.name for f in fields(CoupledHints) if f.name not in OCCUPANCIES])
def test_no_mutation_of_a_part_gets_through(name):
    """Every entry of every part: whatever is changed by more than the slack of the errors, fails."""
    certificate = by_hand()
    proof = proof_of(certificate)
    value = getattr(proof, name)
    if name == "claim":
        assert failures(with_proof(certificate, replace(proof, claim=1)))
        return
    if value.size == 0:
        grown = np.ones((3, *value.shape[1:]), dtype=value.dtype)
        assert failures(with_proof(certificate, replace(proof, **{name: grown})))
        return
    rng = np.random.default_rng(5)
    for place in rng.choice(value.size, size=min(value.size, 12), replace=False):
        changed = value.copy()
        if value.dtype.kind in "iu":
            changed.flat[place] += 1
        elif name == "error":
            changed.flat[place] *= 0.3
        else:
            changed.flat[place] -= 0.02 * np.sign(value.flat[place]) or 0.02
        mutated = with_proof(certificate, replace(proof, **{name: changed}))
        assert failures(mutated), (name, place)
    for damaged in (value[..., :-1], value.astype(np.float32), value.astype(np.complex128)):
        assert failures(with_proof(certificate, replace(proof, **{name: damaged})))


def test_the_occupancies_that_carry_an_end_cannot_be_changed():
    certificate = by_hand()
    proof = proof_of(certificate)
    lowest, highest = 2, 0  # of the proofs of nodes 2, 3, 4: where the value is least, and largest
    for name, cell in (("lower_dual", lowest), ("upper_dual", highest)):
        for other in (-1, len(proof.dual)):
            changed = getattr(proof, name).copy()
            changed[cell] = other
            assert failures(with_proof(certificate, replace(proof, **{name: changed})))
        dual = proof.dual.copy()
        dual[getattr(proof, name)[cell]] *= 0.5
        assert failures(with_proof(certificate, replace(proof, dual=dual)))


def test_the_same_in_rationals():
    certificate = by_hand()
    proof = proof_of(certificate)
    assert failures(certificate, exactly=True) == []
    for worse in (
        {"error": proof.error * 0.3},
        {"point": proof.point * 0.99},
        {"dual": proof.dual * 0.5},
        {"slope": proof.slope * 1.05},
    ):
        assert failures(with_proof(certificate, replace(proof, **worse)), exactly=True)
    model = loop_model()
    weights = np.array([1.0, 0.25, 0.75, 1.0, 1.0, 1.0])
    mixed = base_certificate(model, objective_of(model), weights)
    mixed = with_claim(mixed, Prover(model, mixed, SPLITS).proof([0], True))
    assert failures(mixed, exactly=True) == []
    assert failures(learned(GLIDER, "polytope")[1], exactly=True) == []


def test_a_cell_left_out_fails():
    certificate = by_hand()
    proof = proof_of(certificate)
    model = loop_model()
    partial = Prover(model, certificate, SPLITS).proof([2, 3], True)
    assert failures(with_proof(certificate, partial)) == ["robust policy: the claim"]
    assert failures(with_proof(certificate, proof, proof)) == []


@cache
def learned(family, region):
    subject, counts = case(family), counts_of(family)
    result = learn(subject.problem, counts, delta=0.05, region=region, sets="coupled", policy=subject.policy)
    return result, certificate_of(result, counts, {"model": family})


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("family", "region"),
    [
        (AIRCRAFT, "polytope"),
        (ENGAGEMENT, "l1"),
        (GLIDER, "polytope"),
        (GLIDER, "likelihood"),
        (BETTING, "polytope"),
    ],
)
def test_coupled_intervals_of_learned_results_are_proved(family, region):
    result, certificate = learned(family, region)
    assert failures(certificate) == []
    for name, value in (("robust policy", result.robust), ("given policy", result.value)):
        low, high = values(certificate)[name]
        assert low == pytest.approx(value.interval.lower, rel=2e-6)
        assert high == pytest.approx(value.interval.upper, rel=2e-6)
        assert value.coupled.rectangular_lost_nothing or certificate.learned.coupled


def test_learned_proofs_do_not_survive_other_counts_or_rows(tmp_path):
    _, certificate = learned(AIRCRAFT, "polytope")
    proof = proof_of(certificate)
    counts = certificate.problem.data.batch_count.copy()
    counts[counts.argmax()] += 40
    assert failures(moved(certificate, "problem.data.batch_count", counts))
    rows = proof.row.copy()
    rows[0] = rows[1]
    assert failures(with_proof(certificate, replace(proof, row=rows), *certificate.learned.coupled[1:]))
    as_file(certificate).save(tmp_path / "a.cert")
    again = load(tmp_path / "a.cert").certificate
    assert values(again) == values(certificate) and failures(again) == []


def test_a_proof_without_a_check_is_refused():
    """It would prove nothing, but the output would call the sets coupled."""
    certificate = by_hand()
    with pytest.raises(InputError, match="a coupled proof of no claim"):
        check(with_proof(certificate, replace(proof_of(certificate), claim=1)))


@cache
def by_steps():
    """A policy that takes other choices at its last steps, and parameters that cannot be large and small."""
    parameters = tr.Parameters.box(p=("0.05", "0.9"), q=("0.05", "0.9"))
    rows = [
        (0, "a", {1: "p", 3: "1-p"}), (0, "c", {2: "1/20+q/10", 0: "19/20-q/10"}),
        (1, "a", {2: "1-p", 0: "p"}), (1, "b", {2: "q/2", 1: "1-q/2"}),
        (2, "", {2: 1}), (3, "", {2: "q/8", 0: "1-q/8"}),
    ]  # fmt: skip
    model = tr.build_from_rows(rows, parameters, labels={"end": [2]})
    truth = model.instantiate(p="1/2", q="3/5")
    counts = Simulator(truth, None, None, 8, model.hash(), threads=1).episodes(300, 3)
    problem = model.problem('Pmax=? [ F<=6 "end" ]')
    result = learn(problem, counts, delta=0.05, sets="coupled", outcomes="none")
    return model, result, certificate_of(result, counts)


def value_by_steps(model, claim, p, q):
    """Of the choices that a claim lists, the last step first."""
    values, choice = np.array([0.0, 0.0, 1.0, 0.0]), claim.choice.copy()
    chance, start = model.instantiate(p=p, q=q).probability, model.transition_start[:-1]
    for step in range(5, -1, -1):
        for at, state, earlier in claim.earlier if claim.earlier is not None else ():
            choice[state] = earlier if at == step else choice[state]
        values = np.add.reduceat(chance * values[model.structure.successor], start)[choice]
        values[2] = 1.0
    return float(values[0])


def test_a_policy_by_steps_has_a_coupled_proof():
    model, result, certificate = by_steps()
    claim, value = certificate.claims[0], result.robust
    assert value.policy.depends_on_step and len(claim.earlier)
    rectangular = value.coupled.rectangular_lower, value.coupled.rectangular_upper
    assert rectangular[0] + 0.05 < claim.lower <= value.interval.lower
    assert value.interval.upper <= claim.upper < rectangular[1] - 0.05
    assert claim.upper - claim.lower < 1.02 * value.interval.width
    assert failures(certificate) == []
    draw, inside = np.random.default_rng(1), 0
    (low, high), region = result.region.bounding_box, result.region
    for p, q in draw.uniform(low[:2], high[:2], size=(200, 2)):
        if region.contains([p, q]):
            inside += 1
            assert claim.lower <= value_by_steps(model, claim, float(p), float(q)) <= claim.upper
    assert inside > 50


@pytest.mark.thinned(2)
@pytest.mark.parametrize("forged", ["ends", "early", "late", "last"])
def test_other_steps_and_other_ends_are_refused(forged):
    """Each is false of the policy that the claim then names, at the true parameters or at a witness."""
    model, result, certificate = by_steps()
    claim, truth = certificate.claims[0], (0.5, 0.6)
    if forged == "ends":
        lowest = result.robust.coupled.lowest
        claim, truth = replace(claim, lower=lowest.upper + 1e-6), lowest.theta
    elif forged == "last":
        claim = replace(claim, choice=np.array([1, 3, 4, 5]), earlier=None)
    elif forged == "early":
        claim = replace(claim, earlier=np.array([[3, 0, 1]]))
    else:
        claim = replace(claim, earlier=None)
    assert not claim.lower <= value_by_steps(model, claim, *truth) <= claim.upper
    assert failures(replace(certificate, claims=(claim,))) != []


def test_steps_without_a_bound_have_no_coupled_proof():
    """What the file says is refused at the door: nobody makes those steps."""
    certificate = by_steps()[2]
    objective = replace(certificate.problem.objective, lower_steps=2, upper_steps=None)
    problem = replace(certificate.problem, objective=objective)
    values = replace(certificate.values[0], lower=np.zeros(4), upper=np.ones(4))
    with pytest.raises(InputError, match="or steps without a bound"):
        check(replace(certificate, problem=problem, values=(values,)))
