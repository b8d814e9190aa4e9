"""The joint region: intervals of events and a slab together, what is refined by default, and certificates."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from adversary.proved import NOT_COVERED, proved_code
from learning_cases import case, counts_of
from places import TESTS
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.coupled.result import CoupledStatus
from tightrope.coupled.value import Tree
from tightrope.data.design import SamplingKind
from tightrope.learning import bet_policy, coupling
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.regions.joint import JOINT, split
from tightrope.regions.polytope import Polytope
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.search.value_slopes import GraphQuestion, best_steps, step_slopes
from tightrope_check.statistics.joint import former_share

DELTA = 0.01
SMALL = "betting(4)"


@pytest.mark.parametrize(
    ("events", "free", "share"),
    [
        (1, 1, 0.1),
        (11, 6, 0.1),
        (23, 6, 0.5),
        (24, 6, 0.9),
        (27, 7, 0.5),
        (15, 8, 0.1),
        (31, 8, 0.5),
        (32, 8, 0.9),
    ],
)
def test_the_split_of_files_from_before_follows_from_the_model(events: int, free: int, share: float) -> None:
    assert float(former_share(events, free)) == share
    betting = 0.5 if free > 7 and events < 4 * free else 0.9
    assert float(former_share(events, free, bets=True)) == betting


@pytest.mark.parametrize(("bets", "share"), [(True, Fraction(9, 10)), (False, Fraction(3, 5))])
def test_the_parts_of_the_split_make_delta(bets: bool, share: Fraction) -> None:
    of_events, rest = map(Fraction, split(DELTA, bets))
    assert rest <= share * Fraction(DELTA) and of_events <= (1 - share) * Fraction(DELTA)
    assert float(of_events + rest) == pytest.approx(DELTA, rel=1e-12)


def test_the_default_is_joint_and_says_what_it_forecasts() -> None:
    known, counts = case(SMALL), counts_of(SMALL)
    result = learn(known.problem, counts, delta=DELTA)
    assert result.region is not None and result.region.kind.value == "joint"
    assert result.region.contains(known.instance.truth)
    assert "forecast width" in result.decisions.reasons[-1]
    assert result.ledger.delta == DELTA and result.ledger.holds
    quick = learn(known.problem, counts, delta=DELTA, effort="quick")
    assert quick.decisions.sets.value == "rectangular" and quick.tried == ()
    single = [
        learn(known.problem, counts, delta=DELTA, region=r, sets="rectangular")
        for r in ("polytope", "likelihood")
    ]
    value = known.value_of(known.policy)
    assert value - result.guarantee <= 1.1 * min(value - one.guarantee for one in single)
    with pytest.raises(tr.InputError, match="effort"):
        LearnOptions(effort="much")


def test_what_pays_is_refined_and_proved() -> None:
    known, counts = case("aircraft(5,3)"), counts_of("aircraft(5,3)")
    result = learn(known.problem, counts, delta=DELTA, policy=known.policy)
    assert result.decisions.sets.value == "coupled"
    kinds = [sets for sets, *_ in result.tried]
    assert kinds[0] == "rectangular" and kinds[-1] == "coupled"
    (_, _, before, _, _), (_, _, after, _, _) = result.tried[0], result.tried[-1]
    assert before.lower <= after.lower <= after.upper <= before.upper
    assert after.width < 0.96 * before.width
    proof = certificate_of(result, counts)
    assert (
        proof.problem.data is not None
        and proof.problem.data.method == "beta-binomial+9/10 value slab of the best"
    )
    assert check(proof).valid
    assert [claim.name for claim in proof.claims] == ["robust policy", "given policy"]


def _stolen(proof: Any, **changes: Any) -> Any:
    return replace(proof, problem=replace(proof.problem, data=replace(proof.problem.data, **changes)))


def test_the_checker_takes_no_more_than_delta() -> None:
    """One part at all of δ, another δ, bets on whom it suits, intervals of another level: all refused."""
    known, counts = case(SMALL), counts_of(SMALL)
    proof = certificate_of(learn(known.problem, counts, delta=DELTA), counts)
    data = proof.problem.data
    assert data is not None and data.method == "beta-binomial+9/10 value slab" and check(proof).valid
    for changes in (
        {"method": "value slab"},
        {"method": "beta-binomial+slab"},
        {"method": "beta-binomial+slab of the best"},
        {"method": "beta-binomial+3/5 likelihood"},
        {"method": "beta-binomial"},
        {"method": "beta-binomial+likelihood"},
        {"method": "clopper-pearson+value slab"},
        {"delta": 1.5 * DELTA},
        {"delta": 0.5 * DELTA},
    ):
        try:
            verdict = check(_stolen(proof, **changes))
        except (ValueError, ArithmeticError):
            continue
        claimed = changes.get("delta", DELTA) > DELTA
        assert claimed or not verdict.valid or verdict.word != "proved", changes


def test_the_proved_checker_covers_intervals_and_a_likelihood(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bet_policy, "why_no_bets", lambda *about: "of a test")
    known, counts = case(SMALL), counts_of(SMALL)
    result = learn(known.problem, counts, delta=DELTA, region="joint", sets="expression")
    proof = certificate_of(result, counts)
    assert proof.problem.data is not None and proof.problem.data.method == "beta-binomial+3/5 likelihood"
    assert check(proof).valid
    former = {"method": "beta-binomial+likelihood"}  # a tenth for the intervals, by the rule of before
    assert not check(_stolen(proof, **former)).valid
    for name, changes, code in (
        ("honest", {}, 0),
        ("less", {"delta": 0.5 * DELTA}, 1),
        ("former", former, 1),
    ):
        as_file(_stolen(proof, **changes)).save(tmp_path / name)
        assert proved_code(tmp_path / name) in (code, NOT_COVERED)
    for word in ("slab", "value slab"):
        as_file(_stolen(proof, method=f"beta-binomial+{word}")).save(tmp_path / word)
        assert proved_code(tmp_path / word) in (1, NOT_COVERED)


@pytest.mark.parametrize(
    ("second", "now", "value"),
    [
        ("likelihood", "3/5 likelihood", (0.0477060915, 0.5766583719)),
        ("value slab", "9/10 value slab", (0.0001275505, 0.3900738752)),
    ],
)
def test_files_from_before_are_read_by_their_rule(
    second: str, now: str, value: tuple[float, float], tmp_path: Path
) -> None:
    """Four and eight coins in a row: the likelihood had a tenth of δ, and the slab a half."""
    path = TESTS / "stored" / f"joint-{second.split()[-1]}-before.cert"
    before = load(path).certificate
    assert before.problem.data is not None and before.problem.data.method == f"beta-binomial+{second}"
    verdict = check(before)
    assert verdict.valid and verdict.values["robust policy"] == pytest.approx(value)
    assert proved_code(path) == 0
    renamed = _stolen(before, method=f"beta-binomial+{now}")
    assert not check(renamed).valid
    as_file(renamed).save(tmp_path / "renamed")
    assert proved_code(tmp_path / "renamed") == 1


@pytest.mark.costly("test_the_default_is_joint_and_says_what_it_forecasts")
def test_a_cap_on_refining_is_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    known, counts = case("aircraft(5,3)"), counts_of("aircraft(5,3)")
    whole = learn(known.problem, counts, delta=DELTA, policy=known.policy)
    assert isinstance(whole.region, Polytope)
    cells = coupling.count_cells(known.model, whole.region)
    assert 100 < cells < 2000  # rows along the policies' values came after they were counted
    assert not any("refining ended" in note for note in whole.notes)
    monkeypatch.setattr(Tree, "refine", lambda *about: CoupledStatus.CELL_LIMIT)
    monkeypatch.setattr(Tree, "attains", lambda *about: False)
    less = learn(known.problem, counts, delta=DELTA, policy=known.policy)
    words = r"coupled sets: refining ended at its limit of (\d+) cells; `effort` high goes on"
    (limit,) = [int(match[1]) for match in map(partial(re.fullmatch, words), less.notes) if match]
    assert cells <= limit < 1.2 * cells


def test_a_policy_that_was_there_before_the_data_is_bet_on() -> None:
    known, counts = case(SMALL), counts_of(SMALL)
    planned = replace(counts, design=replace(counts.design, bet_on=(known.policy.digest,)))
    lines = learn(known.problem, planned, delta=DELTA, policy=known.policy).ledger.lines
    assert "bets are on the given policy, as was planned before the data came" in lines
    unplanned = learn(known.problem, counts, delta=DELTA, policy=known.policy)
    assert "bets are on the policy that was best by the data before them" in unplanned.ledger.lines
    assert not any(one.name == "given policy" for one in unplanned.assumptions)


@pytest.mark.costly("test_what_pays_is_refined_and_proved")
def test_slabs_for_bounded_steps() -> None:
    """A slab and coupled sets narrow the guarantee of a policy that depends on the step."""
    known, counts = case("aircraft(5,3)"), counts_of("aircraft(5,3)")
    bounded = tr.Problem(known.model, 'Pmax=? [ !"collision" U<=8 "goal" ]')
    wide = learn(bounded, counts, delta=DELTA, region="likelihood", sets="rectangular")
    result = learn(bounded, counts, delta=DELTA)
    assert result.policy.depends_on_step
    assert wide.guarantee < result.guarantee <= result.robust.interval.upper
    raw = replace(counts, design=replace(counts.design, kind=SamplingKind.ADAPTIVE, planned=None))
    assert learn(bounded, raw, delta=DELTA).guarantee > wide.guarantee


def test_slopes_of_bounded_steps_are_those_of_differences() -> None:
    start, move = np.arange(4), np.array([0, 2, 3, 4])
    question = GraphQuestion(
        start, move, np.array([1, 2, 1, 2]), 0, "UNTIL", True, False, 0, 3, None, None,
        np.array([False, True, False]), None, None,
    )  # fmt: skip
    probability = np.array([0.3, 0.7, 1.0, 1.0])
    choices = best_steps(question, probability)
    assert choices is not None and len(choices) == 3
    slopes = step_slopes(question, choices, probability)
    assert slopes is not None
    assert slopes[1][0] == pytest.approx(1.0) and slopes[1][1] == pytest.approx(0.0)


@pytest.mark.costly("test_the_default_is_joint_and_says_what_it_forecasts")
def test_the_default_of_many_coordinates_is_joint() -> None:
    """Over expression sets, too, the default keeps near the better of what can be chosen."""
    parameters = tr.Parameters.box(**{f"p{i}": ("0.02", "0.3") for i in range(9)})
    free = parameters.symbols()
    rows: list[Any] = [
        (
            i,
            "",
            {4: free[3 * i], 5: free[3 * i + 1], 0: free[3 * i + 2], i + 1: 1 - sum(free[3 * i : 3 * i + 3])},
        )
        for i in range(1, 3)
    ]
    rows.append((0, "", {4: free[0], 5: free[1], 2: free[2], 1: 1 - free[0] - free[1] - free[2]}))
    model = tr.build_from_rows(
        [*rows, *((s, "", {s: 1}) for s in (3, 4, 5))], parameters, labels={"end": [3]}
    )
    truth = model.instantiate([Fraction(10 + i, 100) for i in range(9)])
    counts = tr.Simulator(truth, model_hash=model.hash()).episodes(500, seed=1)
    problem = model.problem('Pmax=? [ F "end" ]')
    quick, result = (
        learn(problem, counts, delta=DELTA, outcomes="none", effort=e) for e in ("quick", "normal")
    )
    assert all(
        (one.decisions.region, one.sets.kind.value) == (JOINT, "expression") for one in (quick, result)
    )
    single = [
        learn(problem, counts, delta=DELTA, outcomes="none", region=region).interval.width
        for region in ("polytope", "likelihood")
    ]
    assert quick.interval.width <= 1.03 * min(single) < 0.95 * max(single)
    assert result.interval.width < 0.97 * min(single)
    true = float(tr.solve(truth.problem('Pmax=? [ F "end" ]')).lower[model.initial])
    assert result.interval.lower < true < result.interval.upper
    assert check(certificate_of(result, counts)).valid
