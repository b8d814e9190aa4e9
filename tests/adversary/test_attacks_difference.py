"""Attacks on certificates of differences, by one who knows the code: of values, of bets on the difference,
of a bounded number of steps with a policy that changes with the step, and of what was done by nobody knows
whom.

Also of `tightrope_check/difference.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from effort import repeats
from learning.test_compare import policies, two_arms
from learning.test_logged import asked
from tightrope.certify.certify import certificate_of_difference
from tightrope.certify.comparison import Own, compare
from tightrope.solver.solve import solve
from tightrope_check.checker import check
from tightrope_check.problem import Certificate

TRUTH = (0.6, 0.7)
ASKED = {"value": 'Rmin=? [ F "end" ]', "slab": 'Rmin=? [ F "end" ]', "steps": 'Pmax=? [ F<=4 "goal" ]'}


@pytest.fixture(scope="module", params=list(ASKED))
def proof(request: pytest.FixtureRequest) -> Certificate:
    model = two_arms()
    truth, problem = model.instantiate(TRUTH), model.problem(ASKED[request.param])
    safe, mixed = policies(model)
    data = tr.Simulator(truth, model_hash=model.hash()).episodes(400, seed=3)
    region = "slab" if request.param == "slab" else "polytope"
    new = solve(truth, problem.objective).policy if request.param == "steps" else mixed
    assert new.depends_on_step == (request.param == "steps")
    usual = mixed if request.param == "steps" else safe
    return certificate_of_difference(tr.compare(problem, data, new, usual, delta=0.05, region=region))


def claimed(proof: Certificate, **claim: Any) -> Certificate:
    return replace(proof, claims=(*proof.claims[:2], replace(proof.claims[2], **claim)))


def with_hints(proof: Certificate, **hints: Any) -> Certificate:
    assert proof.learned is not None
    last = proof.learned.coupled[-1]
    assert last.claim == 2
    return replace(
        proof, learned=replace(proof.learned, coupled=(*proof.learned.coupled[:-1], replace(last, **hints)))
    )


def is_refused(certificate: Certificate) -> bool:
    try:
        return certificate.trouble() is not None or not check(certificate).valid
    except tr.InputError:  # the door
        return True


def half_of(proof: Certificate) -> Certificate:
    """What is proved of all of the region is said of one half of it; nobody speaks of the other one."""
    assert proof.learned is not None
    hints, size = proof.learned.coupled[-1], proof.learned.coupled[-1].point.shape[1]
    first = np.concatenate([[0], 2 + hints.split_node]).astype(np.int64)
    along = np.concatenate([np.eye(size)[:1], hints.split_direction])
    return with_hints(
        proof,
        split_node=np.where(first == 2, 1, first),
        split_direction=along,
        split_value=np.concatenate([[0.01], hints.split_value]),
        node=np.where(hints.node == 0, 1, hints.node + 2),
    )


def with_policy(proof: Certificate, number: int, **claim: Any) -> Certificate:
    claims = list(proof.claims)
    claims[number] = replace(claims[number], **claim)
    return replace(proof, claims=tuple(claims))


def swapped(proof: Certificate, number: int) -> Certificate:
    """The policy of the other claim under this one's name and with its numbers."""
    other = proof.claims[1 - number]
    parts = {name: getattr(other, name) for name in ("policy", "choice", "weight", "earlier")}
    return with_policy(proof, number, **parts)


FORGED: dict[str, Callable[[Certificate], Certificate]] = {
    "less above": lambda p: claimed(p, upper=p.claims[2].upper - 1e-5),
    "more below": lambda p: claimed(p, lower=p.claims[2].lower + 1e-5),
    "the other way round": lambda p: claimed(p, pair=np.array([1, 0])),
    "mirrored": lambda p: claimed(p, lower=-p.claims[2].upper, upper=-p.claims[2].lower),
    "of itself": lambda p: claimed(p, pair=np.array([0, 2])),
    "of one policy": lambda p: claimed(p, pair=np.array([0, 0])),
    "another baseline": lambda p: swapped(p, 1),
    "another policy": lambda p: swapped(p, 0),
    "vectors beside it": lambda p: replace(
        p, values=(*p.values[:2], replace(p.values[0], lower=np.zeros(5)))
    ),
    "proofs of another claim": lambda p: with_hints(p, claim=1),
    "cells moved": lambda p: with_hints(p, point=p.learned.coupled[-1].point * 0.5),
    "half left out": lambda p: half_of(p),
}
OF_VALUES: dict[str, Callable[[Certificate], Certificate]] = {
    "models moved": lambda p: with_hints(p, value=p.learned.coupled[-1].value - 0.01),
    "models without errors": lambda p: with_hints(p, error=np.zeros_like(p.learned.coupled[-1].error)),
    "decided where it is not": lambda p: replace(
        p, values=(p.values[0], replace(p.values[1], lower=p.values[1].upper), p.values[2])
    ),
}
OF_BETS: dict[str, Callable[[Certificate], Certificate]] = {
    "bets on the value alone": lambda p: with_data(p, method="slab"),
    "bets beside intervals": lambda p: with_data(p, method="clopper-pearson+slab"),
    "bets without a baseline": lambda p: with_policy(p, 1, name="value"),
    "stages of nothing": lambda p: with_stages(p, lambda one: replace(one, share=0 * one.share)),
    "stages left out": lambda p: replace(p, learned=replace(p.learned, slab=())),
    "batches in another order": lambda p: with_data(p, **backwards(p.problem.data)),
}
OF_STEPS: dict[str, Callable[[Certificate], Certificate]] = {
    "the last step for all": lambda p: with_policy(p, 0, earlier=None),
    "steps that rise": lambda p: with_policy(p, 0, earlier=p.claims[0].earlier[::-1]),
    "a step beyond": lambda p: with_policy(p, 0, earlier=p.claims[0].earlier + np.array([9, 0, 0])),
    "models of steps": lambda p: with_hints(
        p, state=np.array([1]), value=np.zeros((1, 1)), slope=np.zeros((1, 1, 2))
    ),
    "more steps": lambda p: replace(
        p, problem=replace(p.problem, objective=replace(p.problem.objective, upper_steps=2))
    ),
}


def with_data(proof: Certificate, **data: Any) -> Certificate:
    return replace(proof, problem=replace(proof.problem, data=replace(proof.problem.data, **data)))


def with_stages(proof: Certificate, edit: Callable[[Any], Any]) -> Certificate:
    assert proof.learned is not None
    return replace(proof, learned=replace(proof.learned, slab=tuple(map(edit, proof.learned.slab))))


def backwards(data: Any) -> dict[str, Any]:
    """What came last comes first: bets would know what they are on."""
    spans = [slice(a, b) for a, b in zip(data.batch_start[:-1], data.batch_start[1:], strict=True)][::-1]
    return {
        "batch_start": np.concatenate([[0], np.cumsum([one.stop - one.start for one in spans])]),
        "batch_transition": np.concatenate([data.batch_transition[one] for one in spans]),
        "batch_count": np.concatenate([data.batch_count[one] for one in spans]),
    }


def test_forgeries_are_refused(proof: Certificate) -> None:
    assert not is_refused(proof)
    assert proof.problem.data is not None
    of_bets, of_steps = proof.problem.data.bets, proof.problem.objective.steps is not None
    every = FORGED | (OF_STEPS if of_steps else OF_VALUES)
    if of_bets:  # slower, and alike in the rest
        every = OF_BETS | {name: FORGED[name] for name in ("less above", "another baseline", "half left out")}
    for name, forge in every.items():
        assert is_refused(forge(proof)), name


GAIN = 'R{"gain"}max=? [ C<=3 ]'


@pytest.fixture(scope="module", params=['Pmax=? [ F "top" ]', GAIN])
def logged(request: pytest.FixtureRequest) -> tuple[Certificate, Own]:
    problem, truth = asked(request.param)
    data = tr.Simulator(truth, model_hash=problem.model.hash()).episodes(300, seed=3)
    result = tr.improve(problem, data, baseline="logged", delta=0.05, region="polytope")
    own = Own(problem.model, problem.objective, counts=data, policy=result.policy)
    return certificate_of_difference(result), own


def as_given(proof: Certificate) -> Certificate:
    """The policy that is praised is said to have made the episodes, whose value is then known twice."""
    policy = replace(proof.claims[0], name="given policy", lower=proof.claims[1].lower)
    return replace(proof, claims=(*proof.claims, policy), values=(*proof.values, proof.values[0]))


OF_EPISODES: dict[str, Callable[[Certificate], Certificate]] = {
    "less above": lambda p: claimed(p, upper=p.claims[2].upper - 1e-5),
    "more below": lambda p: claimed(p, lower=p.claims[2].lower + 1e-5),
    "the other way round": lambda p: claimed(p, pair=np.array([1, 0])),
    "done by the policy": lambda p: claimed(p, pair=np.array([0, 0])),
    "what was done less itself": lambda p: claimed(p, pair=np.array([1, 1])),
    "done worse": lambda p: with_policy(p, 1, upper=p.claims[1].upper - 1e-5),
    "done better": lambda p: with_policy(p, 1, lower=p.claims[1].lower + 1e-5),
    "done by the best policy": lambda p: with_policy(p, 1, policy="free"),
    "done by a given policy": lambda p: with_policy(p, 1, name="given policy"),
    "a policy of its own": lambda p: with_policy(p, 1, choice=p.claims[0].choice),
    "the policy is unknown": lambda p: with_policy(p, 0, policy="unknown", choice=None),
    "also a given policy": as_given,
    "vectors beside it": lambda p: replace(p, values=(p.values[0], p.values[0], p.values[2])),
    "without episodes": lambda p: with_data(p, seen=None, seen_delta=None, returns=None),
    "more episodes than there are": lambda p: with_data(p, seen=p.problem.data.seen + np.array([0, 9, 0, 0])),
    "all of the confidence": lambda p: with_data(p, seen_delta=1.0 + 0 * p.problem.data.seen_delta),
}


def test_forgeries_about_what_was_done_are_refused(logged: tuple[Certificate, Own]) -> None:
    proof, own = logged
    assert not is_refused(proof) and compare(proof, own)[1] is None
    for name, forge in OF_EPISODES.items():
        if name == "vectors beside it" and proof.values[0].lower is None:
            continue
        assert is_refused(forge(proof)), name
    for number in range(3):  # no chain of the model's stands behind what was done
        hints = replace(proof.learned, coupled=(SimpleNamespace(claim=number),))
        assert ("what was done" in str(replace(proof, learned=hints).trouble())) == (number > 0)


def test_other_episodes_are_not_the_users(logged: tuple[Certificate, Own]) -> None:
    """A file whose episodes came to less proves more, and is about another log."""
    proof, own = logged
    data = proof.problem.data
    assert data is not None and data.seen is not None
    if data.returns is None:
        worse = [with_data(proof, seen=data.seen + np.array([0, 0, -9, 9]))]
    else:
        narrow = data.seen_delta + np.array([0.0, 0.0, -0.5])
        more = data.returns.copy()
        more[-1, 2] += 9
        worse = [with_data(proof, seen_delta=narrow), with_data(proof, returns=more)]
    for one in worse:
        trouble = str(compare(one, own)[1])
        assert "other data" in trouble or "range of returns that cannot be" in trouble


def test_mutants_prove_no_more_than_holds(proof: Certificate) -> None:
    """Whatever is changed in the hints, what is accepted stays true of the region's own points."""
    random = np.random.default_rng(3)
    hints = proof.learned.coupled[-1]
    width = proof.claims[2].upper - proof.claims[2].lower
    narrower = claimed(proof, upper=proof.claims[2].upper - 0.05 * width)
    for _ in range(repeats(9)):
        name = str(random.choice(["value", "slope", "curve", "error", "dual", "point", "axes", "centre"]))
        array = getattr(hints, name).copy()
        if array.size == 0:
            continue
        place = tuple(random.integers(size) for size in array.shape)
        array[place] += random.normal() * 10.0 ** random.integers(-6, 1)
        if name == "error":
            array = np.abs(array)
        assert is_refused(with_hints(narrower, **{name: array}))
