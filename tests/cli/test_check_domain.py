"""`tightrope check --sets`: intervals over a domain, their certificates, and questions that make no sense."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from coupled_cases import KINDS, random_case
from tightrope import Problem
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.solver.solve import solve
from tightrope_check.archive import load
from tightrope_check.checker import check

# The second trial undoes the first: nature would like another p there.
TURN = """\
mdp
const double p;
module m
  s : [0..4] init 0;
  [go] s=0 -> p:(s'=1) + 1-p:(s'=4);
  [a] s=1 -> 1-p:(s'=2) + p:(s'=0);
  [b] s=1 -> 0.5:(s'=2) + 0.5:(s'=4);
  [go] s=2 -> p:(s'=3) + 1-p:(s'=0);
  [stay] s>=3 -> true;
endmodule
label "goal" = s=3;
"""


@pytest.fixture
def turn(tmp_path: Path) -> Path:
    path = tmp_path / "turn.prism"
    path.write_text(TURN)
    return path


def answer(capsys: pytest.CaptureFixture[str], model: Path, *more: str, code: int = 0) -> dict:
    asked = ["check", str(model), "--prop", 'Pmax=? [ F "goal" ]', "--domain", "0.2<=p<=0.7", *more, "--json"]
    assert run(asked) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_three_kinds_of_sets_nest_and_are_certified(turn, tmp_path, capsys):
    found = {}
    for sets in ("expression", "rectangular", "coupled"):
        file = tmp_path / f"{sets}.cert"
        policy = tmp_path / "policy.json"
        more = ("--at", "p=0.6") if sets == "expression" else ("--policy", str(policy))
        found[sets] = answer(
            capsys, turn, "--sets", sets, *more, "--certificate", str(file), "--policy-out", str(policy)
        )
        assert run(["verify", str(file), "--json"]) == 0
        checked = json.loads(capsys.readouterr().out)
        assert checked["valid"] and "delta" not in checked  # certain: there are no data
        assert checked["lower"] == pytest.approx(found[sets]["lower"], rel=1e-6)
        assert checked["upper"] == pytest.approx(found[sets]["upper"], rel=1e-6)
    wide, tight = found["rectangular"], found["coupled"]
    assert tight["status"] == "exact" and tight["gap"] < 1e-4
    assert tight["upper"] - tight["lower"] < 0.9 * (wide["upper"] - wide["lower"])
    for end in ("lowest", "highest"):
        witness = tight["witness"][end]
        assert 0.2 - 1e-9 <= witness["at"]["p"] <= 0.7 + 1e-9
        assert tight["lower"] <= witness["lower"] <= witness["upper"] <= tight["upper"]
    assert found["expression"]["witness"] is None


def test_without_a_policy_one_is_found_with_its_optimality_gap(turn, tmp_path, capsys):
    found = answer(capsys, turn, "--sets", "coupled")
    assert found["policy"] == "the most robust policy found"
    assert found["lower"] <= found["limit"] and found["optimality_gap"] == found["limit"] - found["lower"]
    assert run(["check", str(turn), "--prop", 'Pmax=? [ F "goal" ]', "--domain", "0.2<=p<=0.7",
                "--sets", "coupled", "--policy-out", str(tmp_path / "p.json"), "--verbose"]) == 0  # fmt: skip
    text = capsys.readouterr().out
    assert "lowest at" in text and "any policy <= " in text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--sets", "coupled", "--all-states"), "cannot be used with --sets"),
        (("--sets", "coupled", "--coupled-gap", "2"), "not within"),
        (("--sets", "coupled", "--prop", 'P>=0.5 [ F "goal" ]'), "one property"),
        (("--sets", "tied"), "tied"),
        (("--sets", "rectangular", "--coupled-gap", "0.1"), "--coupled-gap requires coupled values"),
        (("--at", "p=0.5", "--coupled-gap", "0.1"), "--coupled-gap requires coupled values"),
    ],
)
def test_questions_that_make_no_sense(turn, capsys, more, words):
    asked = ["check", str(turn), "--prop", 'Pmax=? [ F "goal" ]', "--domain", "0.2<=p<=0.7", *more]
    assert run(asked) == 2
    assert words in capsys.readouterr().err


def test_models_and_properties_without_a_domain(turn, tmp_path, capsys):
    assert run(["check", str(turn), "--prop", 'P>=0.5 [ F "goal" ]', "--sets", "coupled"]) == 2
    assert "true at some instantiations" in capsys.readouterr().err
    plain = tmp_path / "plain.prism"
    plain.write_text(TURN.replace("const double p;", "const double p = 0.5;"))
    assert run(["check", str(plain), "--prop", 'Pmax=? [ F "goal" ]', "--sets", "coupled"]) == 2
    assert "has none" in capsys.readouterr().err


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", KINDS)
def test_certificates_over_domains_hold_for_every_objective(kind, tmp_path):
    for cyclic, products in ((False, False), (True, True)):
        case = random_case(1, kind, cyclic=cyclic, products=products)
        result = tr.solve(Problem(case.model, case.objective), policy=case.policy)
        certificate = certificate_of(result)
        as_file(certificate).save(tmp_path / "one.cert")
        verdict = check(load(tmp_path / "one.cert").certificate)
        assert [one.name for one in verdict.checks if not one.passed] == []
        low, high = verdict.values["given policy"]
        parameters = case.model.parameters
        for corner in product(*zip(parameters.lower, parameters.upper, strict=True)):
            there = solve(case.model.instantiate(corner), case.objective, policy=case.policy)
            assert low <= there.upper[case.model.initial] and there.lower[case.model.initial] <= high
        assert certificate.learned is not None
        if certificate.learned.coupled:
            interval = result.robust.interval
            assert np.allclose([low, high], [interval.lower, interval.upper], rtol=1e-5, atol=1e-9)


def test_sets_from_data_need_data():
    case = random_case(1, "reach", cyclic=False, products=False)
    with pytest.raises(InputError, match="come from data"):
        tr.solve(Problem(case.model, case.objective), sets="tied")
