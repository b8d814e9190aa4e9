"""Shields against the certificates that they rest on: what follows is accepted, what is forged is refused."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.shield import DECIDED, Shield
from tightrope.shield.verification import check_shield, rest_on
from tightrope_check.archive import load


def learned(goal: str = 'Pmax=? [ F "goal" ]') -> Any:
    parameters = tr.Parameters.box(p=("0.1", "0.9"), q=("0.1", "0.9"))
    p, q = parameters.symbols()
    rows = [(0, "try", {1: p, 2: 1 - p}), (0, "risk", {1: q, 2: 1 - q}), (0, "wait", {0: 1})]
    rows += [(1, "", {1: 1}), (2, "again", {0: p, 2: 1 - p}), (2, "stop", {3: 1}), (3, "", {3: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [1], "dead": [3], "mid": [0, 2]})
    truth = model.instantiate(p=0.7, q=0.5)
    data = tr.Simulator(truth, model_hash=model.hash()).episodes(300, seed=1)
    return tr.learn(model.problem(goal), data, delta=0.1)


def certified(folder: Path, goal: str = 'Pmax=? [ F "goal" ]', slack: float = 0.1) -> tuple[Shield, Any]:
    result = learned(goal)
    tr.certify(result, folder / "goal.cert", overwrite=True)
    proof = load(folder / "goal.cert")
    shield = rest_on(result.shield(slack=slack), proof)
    shield.save(folder / "shield.json")
    return shield, proof


@pytest.mark.parametrize("goal", ['Pmax=? [ F "goal" ]', 'Pmin=? [ F "dead" ]', 'Pmax=? [ G !"dead" ]'])
def test_a_certified_shield_is_verified_with_its_certificate(tmp_path: Path, goal: str) -> None:
    shield, _ = certified(tmp_path, goal)
    verdict = tr.verify(tmp_path / "goal.cert", shield=tmp_path / "shield.json")
    assert verdict.valid and sum(one.name.startswith("shield: ") for one in verdict.checks) == 5
    plain = learned(goal).shield(slack=0.1)
    assert shield.promise == pytest.approx(plain.promise, abs=1e-6)
    assert set(shield.allowed(0)) == set(plain.allowed(0))


def test_a_model_without_data_has_certified_shields_as_well(tmp_path: Path) -> None:
    rows = [(0, "safe", {1: (0.8, 0.9), 2: (0.1, 0.2)}), (0, "fast", {1: (0.7, 0.9), 2: (0.1, 0.3)})]
    model = tr.build_from_rows([*rows, (1, "", {1: 1}), (2, "", {2: 1})], labels={"crash": [2]})
    problem = model.problem('Pminmax=? [ F "crash" ]')
    tr.certify(problem, tmp_path / "crash.cert")
    shield = rest_on(Shield.of(tr.solve(problem), slack=0.15), load(tmp_path / "crash.cert"))
    assert shield.promise == pytest.approx(0.35) and shield.allowed(0)["fast"] == pytest.approx(0.1)
    shield.save(tmp_path / "shield.json")
    assert tr.verify(tmp_path / "crash.cert", shield=tmp_path / "shield.json").valid


COSTS = ('R{"cost"}min=? [ F "goal" ]', 'R{"cost"}max=? [ C<=5 ]', 'R{"cost"}max=? [ Cdiscount=0.9 ]')


@pytest.mark.parametrize("goal", COSTS)
def test_shields_of_costs_are_certified(tmp_path: Path, goal: str) -> None:
    rows = [(0, "safe", {1: 0.8, 0: 0.2}), (0, "fast", {1: 0.5, 0: 0.5}), (1, "", {1: 1})]
    model = tr.build_from_rows(rows, labels={"goal": [1]}, choice_rewards={"cost": [1.0, 1.5, 0.0]})
    problem = model.problem(goal)
    tr.certify(problem, tmp_path / "cost.cert")
    plain = Shield.of(tr.solve(problem), slack=0.5)
    shield = rest_on(plain, load(tmp_path / "cost.cert"))
    assert shield.promise == pytest.approx(plain.promise) and shield.allowed(0) == pytest.approx(
        plain.allowed(0)
    )
    shield.save(tmp_path / "shield.json")
    assert tr.verify(tmp_path / "cost.cert", shield=tmp_path / "shield.json").valid
    document = json.loads((tmp_path / "shield.json").read_text())
    (tmp_path / "shield.json").write_text(json.dumps({**document, "range": [0.0, 0.5]}))
    failed = [
        one.name
        for one in check_shield(tmp_path / "shield.json", load(tmp_path / "cost.cert"))
        if not one.passed
    ]
    assert failed == ["shield: facts"]


def read(document: dict[str, Any], name: str) -> Any:
    """An array of a file, which may be written to."""
    return np.frombuffer(base64.b64decode(document["arrays"][name]), kind(name)).copy()


def write(document: dict[str, Any], name: str, values: Any) -> None:
    data = np.asarray(values).astype(kind(name)).tobytes()
    document["arrays"][name] = base64.b64encode(data).decode()


def kind(name: str) -> str:
    return {"value": "<f8", "price": "<f8"}.get(name, "<i4")


def lower_price(document: dict[str, Any]) -> None:
    price = read(document, "price")
    price[price > 1e-3] *= 0.999
    write(document, "price", price)


def raise_value(document: dict[str, Any]) -> None:
    write(document, "value", read(document, "value") + 1e-9)


def other_fallback(document: dict[str, Any]) -> None:
    write(document, "choice", [2, 3, 4, 6])


def free_everywhere(document: dict[str, Any]) -> None:
    write(document, "ranking", [DECIDED] * 4)


@pytest.mark.parametrize(
    "forge, name",
    [
        (lower_price, "prices"),
        (raise_value, "values"),
        (other_fallback, "fallbacks"),
        (free_everywhere, "decided states"),
        (lambda document: document.update(confidence=0.99), "facts"),
        (lambda document: document.update(confidence=None), "facts"),
        (lambda document: document.update(needs_patience=False), "facts"),
        (lambda document: document.update(complement=True), "facts"),
        (lambda document: document.update(certificate="0" * 64), "facts"),
    ],
)
def test_forged_shields_fail(tmp_path: Path, forge: Callable[[dict[str, Any]], None], name: str) -> None:
    _, proof = certified(tmp_path)
    path = tmp_path / "shield.json"
    document = json.loads(path.read_text())
    forge(document)
    path.write_text(json.dumps(document))
    failed = [one.name for one in check_shield(path, proof) if not one.passed]
    assert f"shield: {name}" in failed
    assert not tr.verify(tmp_path / "goal.cert", shield=path).valid


def test_a_shield_of_another_model_and_a_slack_below_0_are_refused(tmp_path: Path) -> None:
    _, proof = certified(tmp_path)
    rows = [(0, "a", {1: 0.5, 2: 0.5}), (1, "", {1: 1}), (2, "", {2: 1})]
    other = tr.build_from_rows(rows, labels={"goal": [1]})
    path = tmp_path / "other.json"
    Shield.of(tr.solve(other, 'Pmax=? [ F "goal" ]'), slack=0.1).save(path)
    (only,) = check_shield(path, proof)
    assert not only.passed and only.detail == "the shield is about another model"
    path = tmp_path / "shield.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "slack": -0.5}))
    with pytest.raises(InputError, match=r"the slack is -0\.5"):
        tr.verify(tmp_path / "goal.cert", shield=path)


@pytest.mark.parametrize(
    "goal",
    [
        'Pmax=? [ F<=6 "goal" ]',
        'Pmin=? [ F<=6 "dead" ]',
        'Pmax=? [ !"dead" U<=5 "goal" ]',
        'Pmax=? [ F[2,6] "goal" ]',
        'Pmax=? [ F>=2 "goal" ]',
        'Pmax=? [ X "goal" ]',
    ],
)
def test_shields_of_step_bounds_are_certified_step_by_step(tmp_path: Path, goal: str) -> None:
    shield, proof = certified(tmp_path, goal)
    assert tr.verify(tmp_path / "goal.cert", shield=tmp_path / "shield.json").valid
    plain = learned(goal).shield(slack=0.1)
    assert shield.promise == pytest.approx(plain.promise, abs=1e-6)
    assert shield.table.price.shape == plain.table.price.shape
    assert np.allclose(shield.table.price, plain.table.price, atol=1e-6)
    document = json.loads((tmp_path / "shield.json").read_text())
    price = shield.table.price.copy()
    free = np.repeat(shield.table.ranking == DECIDED, np.diff(shield.table.first))
    late = np.flatnonzero((price > 1e-3) & ~free)[-1]
    price[late] *= 0.999  # of the last step that has one
    write(document, "price", price)
    (tmp_path / "forged.json").write_text(json.dumps(document))
    failed = [one.name for one in check_shield(tmp_path / "forged.json", proof) if not one.passed]
    assert failed == ["shield: prices"]
    write(document, "ranking", np.full(len(shield.table.ranking), DECIDED))
    (tmp_path / "forged.json").write_text(json.dumps(document))
    assert any(not one.passed for one in check_shield(tmp_path / "forged.json", proof))
    document = json.loads((tmp_path / "shield.json").read_text())
    write(document, "following", np.zeros(len(shield.table.value)))  # the steps are never counted
    (tmp_path / "forged.json").write_text(json.dumps(document))
    failed = [one.name for one in check_shield(tmp_path / "forged.json", proof) if not one.passed]
    assert failed == ["shield: rows"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("goal", ['Pmax=? [ F ("mid" & (X "goal")) ]', 'Pmin=? [ F ("mid" & (X "dead")) ]'])
def test_shields_of_formulas_that_are_settled_are_certified(tmp_path: Path, goal: str) -> None:
    shield, proof = certified(tmp_path, goal)
    assert tr.verify(tmp_path / "goal.cert", shield=tmp_path / "shield.json").valid
    plain = learned(goal).shield(slack=0.1)
    assert shield.promise == pytest.approx(plain.promise, abs=1e-6)
    rows, own = shield.table.fallback, shield.table.structure
    assert shield.table.ranking.min() == DECIDED and len(rows.state) > own.states
    assert np.allclose(np.sort(shield.table.price), np.sort(plain.table.price), atol=1e-6)
    rng = np.random.default_rng(1)
    for _ in range(20):  # both follow the same plays, also where only the fallback may act
        one, two, state = shield.fresh(), plain.fresh(), 0
        for _ in range(8):
            allowed = sorted(one.allowed(state))
            assert set(allowed) == set(two.allowed(state))
            assert one.promise == pytest.approx(two.promise, abs=1e-6)
            action = allowed[int(rng.integers(len(allowed)))]
            one.take(state, action), two.take(state, action)
            after = own.successor[own.transition_start[one._by] : own.transition_start[one._by + 1]]
            state = int(rng.choice(after))
    for name in ("price", "state", "memory", "following"):
        document = json.loads((tmp_path / "shield.json").read_text())
        array = read(document, name)
        array[array > 0] = array[array > 0] * 0.999 if name == "price" else array[array > 0] - 1
        write(document, name, array)
        (tmp_path / "forged.json").write_text(json.dumps(document))
        with contextlib.suppress(InputError):  # the file may not fit together
            assert any(not one.passed for one in check_shield(tmp_path / "forged.json", proof)), name


@pytest.mark.filterwarnings("ignore")
def test_a_product_that_begins_in_a_twin_of_the_initial_state_is_refused(tmp_path: Path) -> None:
    parameters = tr.Parameters.box(p=("0.1", "0.9"), q=("0.1", "0.9"))
    p, q = parameters.symbols()
    rows = [(s, name, {1: x, 2: 1 - x}) for s in (0, 3) for name, x in (("try", p), ("risk", q))]
    rows += [(1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [1], "mid": [0]})
    log = [[(0, "try", 1)]] * 8 + [[(0, "risk", 2)]] * 4
    result = tr.learn(model.problem('Pmax=? [ F ("mid" & (X "goal")) ]'), log, delta=0.1)
    tr.certify(result, tmp_path / "goal.cert")
    path, proof = tmp_path / "shield.json", load(tmp_path / "goal.cert")
    shield = rest_on(result.shield(slack=0.1), proof)
    shield.save(path)
    assert all(one.passed for one in check_shield(path, proof))
    document, table = json.loads(path.read_text()), shield.table
    rows, twin = table.fallback, table.fallback.state == 0
    write(document, "state", np.where(twin, 3, rows.state))
    shift = table.structure.choice_start[3] - table.structure.choice_start[0]
    write(document, "choice", np.where(twin, rows.choice + shift, rows.choice))
    write(document, "initial_states", [3])
    path.write_text(json.dumps(document))
    (only,) = check_shield(path, proof)
    assert not only.passed and only.detail == "the shield is about another model"


@pytest.mark.filterwarnings("ignore")
def test_formulas_about_infinite_runs_are_not_covered(tmp_path: Path) -> None:
    result = learned('Pmax=? [ G (F "goal") ]')
    tr.certify(result, tmp_path / "goal.cert")
    with pytest.raises(InputError, match="formulas about infinite runs"):
        rest_on(result.shield(slack=0.1), load(tmp_path / "goal.cert"))


def test_renamed_actions_are_found_with_the_model(tmp_path: Path) -> None:
    certified(tmp_path)
    path, model = tmp_path / "shield.json", learned().model
    assert tr.verify(tmp_path / "goal.cert", shield=path, model=model).valid
    document = json.loads(path.read_text())
    names = document["action_names"]
    first, second = names.index("try"), names.index("risk")
    names[first], names[second] = names[second], names[first]
    path.write_text(json.dumps(document))
    verdict = tr.verify(tmp_path / "goal.cert", shield=path, model=model)
    assert [one.name for one in verdict.checks if not one.passed] == ["shield: names"]
