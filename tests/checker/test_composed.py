"""Certificates of learned averages, and of temporal formulas over a domain and with a given policy.

Honest ones against values at points of the region, and forged ones, which are refused.

Also of `certify/learned.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from adversary.proved import proved_code
from tightrope.certify.certificate_file import as_file
from tightrope.certify.certify import learned_certificate
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate

pytestmark = [
    pytest.mark.usefixtures("in_python"),
    pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning"),
]
FOREVER, SOON = 'Pmax=? [ (G F "mid") & (F G !"end") ]', 'Pmin=? [ F ("mid" & (X "up")) ]'
AVERAGE = 'R{"cost"}min=? [ S ]'


@cache
def model(loops: bool = False) -> tr.ParametricMDP:
    """With `loops` every state is left again; else 3 and 5, or 4, keep the play."""
    parameters = tr.Parameters.box(p=("0.1", "0.9"), q=("0.1", "0.9"))
    p, q = parameters.symbols()
    rows: list[Any] = [
        (0, "a", {0: 1 - p, 1: p}),
        (0, "b", {0: 1 - q, 2: q}),
        (1, "", {0: "1/2", 3: "1/2"}),
        (2, "x", {2: "1/2", 0: "1/4", 4: "1/4"}),
        (2, "y", {1: 1}),
        (3, "s", {3: p, 5: 1 - p}),
        (3, "t", {3: 1} if not loops else {0: 1}),
        (4, "", {4: 1} if not loops else {0: "1/2", 4: "1/2"}),
        (5, "", {3: 1}),
    ]
    labels = {"up": [0, 5], "mid": [1, 5], "end": [2, 4]}
    built = tr.build_from_rows(rows, parameters, labels=labels, state_rewards={"cost": [1, 3, 0, 2, 1, 5]})
    assert isinstance(built, tr.ParametricMDP)
    return built


def mixed(loops: bool = False) -> tr.Policy:
    return tr.Policy(model(loops), np.array([0.5, 0.5, 1, 0.75, 0.25, 0.5, 0.5, 1, 1]))


def plain(loops: bool = False) -> tr.Policy:
    return tr.Policy(model(loops), np.array([0, 1, 1, 1, 0, 1, 0, 1, 1.0]))


@cache
def data(loops: bool = False) -> Any:
    truth = model(loops).instantiate(p="0.6", q="0.3")
    return tr.Simulator(truth, model_hash=model(loops).hash()).generative(60, seed=1)


@cache
def certificate(text: str, whose: str, over: str) -> Certificate:
    loops = text == AVERAGE
    problem = tr.Problem(model(loops), text)
    policy = {"plain": plain(loops), "mixed": mixed(loops)}.get(whose)
    if over == "domain":
        return learned_certificate(tr.solve(problem, policy=policy, sets="expression"))
    words = {"region": over} if over == "likelihood" else {"sets": over}
    return learned_certificate(tr.learn(problem, data(loops), delta=0.05, policy=policy, **words))


HONEST = [
    (AVERAGE, "robust", "tied"),
    (AVERAGE, "plain", "likelihood"),
    (AVERAGE, "robust", "domain"),
    (FOREVER, "mixed", "tied"),
    (FOREVER, "plain", "domain"),
    (FOREVER, "mixed", "domain"),
    (FOREVER, "robust", "domain"),
    (SOON, "mixed", "likelihood"),
    (SOON, "robust", "domain"),
]


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("text", "whose", "over"), HONEST)
def test_honest_ones_hold_at_points_and_in_both_arithmetics(
    text: str, whose: str, over: str, tmp_path: Path
) -> None:
    loops, made = text == AVERAGE, certificate(text, whose, over)
    policy = {"plain": plain(loops), "mixed": mixed(loops)}.get(whose)
    as_file(made).save(tmp_path / "c")
    own: dict[str, Any] = {"model": model(loops), "property": text}
    if over != "domain":
        own["data"] = data(loops)
    if policy is not None:
        own["policy"] = policy
    for exact in (False, True):
        verdict = tr.verify(tmp_path / "c", exact=exact, **own)
        assert verdict.word == "proved" and verdict.not_tied == (() if policy is not None else ("policy",))
    (claim,) = made.claims
    points = [("0.6", "0.3")] if over != "domain" else [("0.6", "0.3"), ("0.1", "0.9"), ("0.9", "0.1")]
    for p, q in points:
        low, high = value_at(text, claim, p, q)
        assert claim.lower <= high + 1e-9 and low - 1e-9 <= claim.upper
    if policy is not None:
        other = mixed(loops) if whose == "plain" else plain(loops)
        with pytest.raises(tr.CannotCertify, match="other policies than the given one"):
            tr.verify(tmp_path / "c", model=model(loops), policy=other)


def value_at(text: str, claim: Any, p: str, q: str) -> tuple[float, float]:
    """The value of the claimed policy at a point: what its own chain says; of the robust policy of a
    formula, which has a memory, what no policy exceeds."""
    loops = text == AVERAGE
    at = model(loops).instantiate(p=p, q=q)
    if claim.name == "robust policy" and not loops:
        low, high = tr.solve(at, text).bounds
        return (low, 1.0) if text.startswith("Pmin") else (0.0, high)
    weights = claim.weights(model(loops).choices)
    structure = at.structure
    rows: list[Any] = []
    for s in range(structure.states):
        row: dict[int, float] = {}
        for c in range(*structure.choice_start[s : s + 2]):
            for t in range(*structure.transition_start[c : c + 2]):
                to = int(structure.successor[t])
                row[to] = row.get(to, 0.0) + weights[c] * at.probability[t]
        rows.append((s, "", row))
    labels = {"up": [0, 5], "mid": [1, 5], "end": [2, 4]}
    chain = tr.build_from_rows(rows, labels=labels, state_rewards={"cost": [1, 3, 0, 2, 1, 5]})
    found = tr.solve(chain, text).bounds
    assert found is not None
    return found


def forged(made: Certificate, claim: dict[str, Any], values: dict[str, Any], **problem: Any) -> Certificate:
    changed = replace(made.problem, **problem) if problem else made.problem
    return replace(
        made,
        problem=changed,
        claims=(replace(made.claims[0], **claim),),
        values=(replace(made.values[0], **values),),
    )


def raised(vector: Any, by: float) -> Any:
    return vector + by


def attacks() -> list[tuple[str, Certificate]]:
    """As one who knows the code and wants a wrong answer accepted."""
    average, over = certificate(AVERAGE, "plain", "likelihood"), certificate(AVERAGE, "robust", "domain")
    given, whole = certificate(FOREVER, "mixed", "domain"), certificate(FOREVER, "robust", "domain")
    lazy = certificate(FOREVER, "plain", "domain")
    found = []
    for name, made in (("average", average), ("domain", over)):
        (claim,), (hints,) = made.claims, made.values
        found += [
            (f"{name}: the claim alone", forged(made, {"lower": claim.upper}, {})),
            (
                f"{name}: gain and claim",
                forged(made, {"lower": claim.lower + 0.1, "upper": 9.0}, {"lower": raised(hints.lower, 0.1)}),
            ),
            (
                f"{name}: a lower gain above",
                forged(made, {"lower": 0.0, "upper": claim.lower}, {"upper": raised(hints.lower, -0.01)}),
            ),
            (
                f"{name}: a bias that is flat",
                forged(made, {}, {"lower_bias": np.zeros(6), "lower": hints.lower}),
            ),
            (
                f"{name}: another policy",
                forged(made, {"choice": np.array([0, 2, 3, 6, 7, 8]), "lower": 1.9, "upper": 9.0}, {}),
            ),
            (
                f"{name}: of rewards that are not there",
                forged(made, {}, {}, objective=replace(made.problem.objective, reward=np.full(9, 7.0))),
            ),
        ]
    found += [
        ("given: the claim alone", forged(given, {"lower": 0.95, "upper": 1.0}, {})),
        (
            "given: all win",
            forged(given, {"lower": 1.0, "upper": 1.0}, {"lower": np.ones(len(given.values[0].lower))}),  # type: ignore[arg-type]
        ),
        (
            "given: nobody wins",
            forged(given, {"lower": 0.0, "upper": 0.0}, {"upper": np.zeros(len(given.values[0].lower))}),  # type: ignore[arg-type]
        ),
        # In the end component of 3 the free agent wins, and the policy that stays in 3 by t does not.
        (
            "given: the vectors of a policy that wins",
            forged(
                whole,
                {"name": "given policy", "policy": "fixed", "choice": np.array([0, 2, 4, 6, 7, 8])},
                {"witness": None},
            ),
        ),
        (
            "given: an action of no weight wins",
            forged(
                lazy,
                {"policy": "randomised", "choice": None, "lower": 0.9, "upper": 1.0,
                 "weight": np.array([1, 0, 1, 0.5, 0.5, 0, 1, 1, 1.0])},
                {},
            ),
        ),
        (
            "given: weights that are none",
            forged(given, {"weight": np.array([0.5, 0.7, 1, 0.75, 0.25, 0.5, 0.5, 1, 1])}, {}),
        ),
        ("given: of a free policy", forged(given, {"policy": "free", "weight": None, "lower": 0.99}, {})),
        (
            "given: two claims",
            replace(
                given, claims=given.claims + whole.claims, values=given.values + whole.values
            ),
        ),
        (
            "given: by steps",
            forged(lazy, {"earlier": np.array([[1, 0, 0]]), "lower": 0.9}, {}),
        ),
        (
            "given: an automaton that takes all",
            forged(
                given, {"lower": 1.0, "upper": 1.0}, {},
                automaton=replace(given.problem.automaton, repeated=~given.problem.automaton.repeated),
            ),
        ),
    ]  # fmt: skip
    return found


def test_forged_ones_are_refused(tmp_path: Path) -> None:
    accepted = []
    for number, (name, forgery) in enumerate(attacks()):
        try:
            valid = check(forgery, FLOAT64).valid, check(forgery, RATIONAL).valid
            as_file(forgery).save(tmp_path / f"{number}.cert")
            again = proved_code(tmp_path / f"{number}.cert")
        except tr.InputError:
            continue
        if any(valid) or again == 0:
            accepted.append((name, valid, again))
    assert accepted == []


def test_what_has_no_meaning_is_no_certificate() -> None:
    made, bets = certificate(AVERAGE, "plain", "likelihood"), certificate(SOON, "mixed", "likelihood")
    learned, data_of = made.learned, made.problem.data
    assert learned is not None and data_of is not None and bets.problem.data is not None
    earned = replace(made.problem.objective, reward=None, earned=np.zeros(9, dtype=np.int64))
    pair = replace(made.claims[0], name="difference", policy="pair", choice=None, pair=np.array([0, 0]))
    for forgery, words in (
        (forged(made, {}, {}, objective=earned), "averages are of rewards that are known"),
        (forged(made, {}, {}, data=replace(data_of, method="slab")), "bets are about sums"),
        (forged(bets, {}, {}, data=replace(bets.problem.data, method="slab")), "bets are about sums"),
        (
            replace(made, claims=(*made.claims, pair), values=(*made.values, type(made.values[0])())),
            "a difference of averages",
        ),
    ):
        with pytest.raises(tr.InputError, match=words):
            check(forgery)


def test_what_is_not_covered_is_said(tmp_path: Path) -> None:
    problem = tr.Problem(model(True), AVERAGE)
    with pytest.raises(tr.InputError, match="policies that take one choice per state"):
        tr.certify(problem, tmp_path / "c", at={"p": "0.6", "q": "0.3"}, policy=mixed(True))
    proved = tr.certify(problem, tmp_path / "c", at={"p": "0.6", "q": "0.3"}, policy=plain(True))
    low, high = tr.solve(problem.at(p="0.6", q="0.3"), policy=plain(True)).bounds
    assert proved["given policy"].lower <= high and low <= proved["given policy"].upper
    verdict = tr.verify(tmp_path / "c", model=model(True), at={"p": "0.6", "q": "0.3"}, policy=plain(True))
    assert verdict.word == "proved" and load(tmp_path / "c").certificate.claims[0].name == "given policy"
    forever = tr.Problem(model(), FOREVER)
    controller = tr.learn(forever, data(), delta=0.05, sets="tied").controller
    remembered = tr.learn(forever, data(), delta=0.05, sets="tied", policy=controller)
    with pytest.raises(tr.InputError, match="about policies without memory"):
        tr.certify(remembered, tmp_path / "d")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("text", ['R{"cost"}min=? [ S ]', 'Pmin=? [ (F "mid") & (F<=3 "up") ]'])
def test_default_regions_that_bet_have_certificates(text: str, tmp_path: Path) -> None:
    """With eight unknown expressions in the order of time; a slab that was asked for has none."""
    parameters = tr.Parameters.box(**dict.fromkeys("pqru", ("0.1", "0.9")))
    p, q, r, u = parameters.symbols()
    rows = [
        (0, "a", {1: p, 2: 1 - p}),
        (0, "b", {1: q, 2: 1 - q}),
        (1, "", {0: r, 3: 1 - r}),
        (2, "", {0: u, 3: 1 - u}),
        (3, "", {0: 1}),
    ]
    built = tr.build_from_rows(
        rows, parameters, labels={"mid": [1], "up": [2]}, state_rewards={"cost": [1, 3, 0, 2]}
    )
    problem = tr.Problem(built, text)
    truth = built.instantiate(p="0.6", q="0.3", r="0.5", u="0.4")
    log = tr.Simulator(truth, model_hash=built.hash(), cap=6).episodes(40, seed=1)
    result = tr.learn(problem, log, delta=0.05)
    assert result.decisions.region is not None and result.decisions.region.bets
    tr.certify(result, tmp_path / "c")
    verdict = tr.verify(tmp_path / "c", model=built, data=log)
    low, high = tr.solve(truth, text).bounds
    assert verdict.word == "proved" and result.interval is not None
    (claim,) = load(tmp_path / "c").certificate.claims
    assert claim.lower <= high and low <= claim.upper <= result.interval.upper + 0.15
    if "S" not in text:
        with pytest.raises(tr.InputError, match="a slab bets on"):
            tr.certify(tr.learn(problem, log, delta=0.05, region="slab"), tmp_path / "d")
