"""What commands print for people holds as it is written: rounded to the safe side, compared with JSON."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tightrope as tr
from tightrope.cli.app import run

NUMBER = r"-?[\d.,]*\d(?:e[-+]?\d+)?"
INTERVAL = re.compile(rf"\[({NUMBER}), ({NUMBER})\]")

MODEL = """mdp
const double p;
module repair
  s : [0..2] init 0;
  [a] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [b] s=0 -> p/3 : (s'=1) + 1-p/3 : (s'=2);
  [wait] s=2 -> 1/7 : (s'=0) + 6/7 : (s'=1);
  [stay] s=1 -> true;
endmodule
rewards s!=1 : 1/3; endrewards
label "up" = s=1;
"""
QUESTIONS = ('Pmax=? [ F<=3 "up" ]', 'Pmin=? [ F<=3 "up" ]', 'Rmin=? [ F "up" ]', 'Rmax=? [ F "up" ]')


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    place = tmp_path_factory.mktemp("shown")
    model, log = place / "repair.prism", place / "repair.csv"
    model.write_text(MODEL)
    log.write_text("s,action,s_next,count\n0,a,1,613\n0,a,2,787\n0,b,1,177\n0,b,2,933\n")
    return str(model), str(log)


def outputs(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, dict[str, Any]]:
    """What one command prints for people, and its JSON."""
    assert run(list(arguments)) == 0
    text = capsys.readouterr().out
    assert run([*arguments, "--json"]) == 0
    return text, json.loads(capsys.readouterr().out)


def fact(text: str, name: str) -> str:
    found = re.search(rf"^\s*{re.escape(name)}\s+(.*)$", text, re.MULTILINE)
    assert found is not None, text
    return found[1]


def assert_outward(text: str, span: dict[str, float]) -> None:
    """The interval in the text contains the one of the JSON, and is hardly wider."""
    found = INTERVAL.search(text)
    assert found is not None, text
    lower, upper = (float(end.replace(",", "")) for end in found.groups())
    assert lower <= span["lower"] <= span["upper"] <= upper
    assert lower == pytest.approx(span["lower"], rel=2e-4)
    assert upper == pytest.approx(span["upper"], rel=2e-4)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("question", QUESTIONS)
def test_learn_rounds_guarantee_and_intervals_to_the_safe_side(
    files: tuple[str, str], question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model, log = files
    common = ("learn", model, "--prop", question, "--data", log, "--ends", "complete")
    text, found = outputs(capsys, *common, "--sets", "rectangular")
    span = found["robust_policy"]
    assert_outward(fact(text, "value"), span)
    guarantee = float(re.search(rf"[<>]= ({NUMBER}) ", text)[1].replace(",", ""))
    if "max" in question:
        assert span["lower"] * (1 - 1e-4) < guarantee <= span["lower"]
    else:
        assert span["upper"] <= guarantee < span["upper"] * (1 + 1e-4)
    text, found = outputs(capsys, *common, "--sets", "all")
    for row in found["all"]:
        kind = row["sets"]
        shown = re.search(rf"^\W*{kind}[*!]*\s+({NUMBER})\s+({NUMBER})\s", text, re.MULTILINE)
        assert shown is not None, text
        assert float(shown[1]) <= row["robust_policy"]["lower"]
        assert float(shown[2]) >= row["robust_policy"]["upper"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_check_and_verify_round_outward(
    files: tuple[str, str], question: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = str(tmp_path / "proof.cert")
    text, found = outputs(capsys, "check", files[0], "--prop", question, "--at", "p=0.3")
    assert_covers(text, found)
    text, found = outputs(capsys, "check", files[0], "--prop", question, "--at", "p=0.3", "--verbose")
    assert_outward(fact(text, "bounds"), found)
    options = ("--at", "p=0.3", "--certificate", proof)
    assert run(["check", files[0], "--prop", question, *options]) == 0
    capsys.readouterr()
    text, found = outputs(capsys, "verify", proof)
    (span,) = found["policies"].values()
    assert_covers(text, span)


def assert_covers(text: str, span: dict[str, float]) -> None:
    """The number in the first line is within its error of both bounds."""
    found = re.search(rf" = ({NUMBER}) \(error <= ({NUMBER})\)", text.splitlines()[0])
    assert found is not None, text
    value, error = (Fraction(one.replace(",", "")) for one in found.groups())
    assert abs(value - Fraction(span["lower"])) <= error and abs(value - Fraction(span["upper"])) <= error
    assert error <= abs(value) / 10**4


def test_limiting_events_are_shown_within_their_domain() -> None:
    """Of 320 visits alone follows a lower end of 0.90; the domain says 0.91."""
    parameters = tr.Parameters.box(p=("91/100", 1))
    (p,) = parameters.symbols()
    rows = [(0, "", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [1]})
    log = [[(0, "", 1)]] * 300 + [[(0, "", 2)]] * 20
    result = tr.learn(model.problem('P=? [ F "goal" ]'), log, delta=0.05, region="polytope")
    shown = " ".join(one.text for one in result.binding.events)
    low, high = map(float, INTERVAL.findall(shown)[0])
    assert low == 0.91 and low < high < 1.0


def test_an_infinite_reward_is_said_plainly() -> None:
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    model = tr.build_from_rows(
        [(0, "", {0: p, 1: 1 - p}), (1, "", {1: 1})], parameters, state_rewards={"r": [1, 1]}
    )
    result = tr.learn(model.problem('R{"r"}max=? [ C ]'), [[(0, "", 1)]] * 2, delta=0.05)
    assert result.guarantee == float("inf")
    assert "expected r is infinite (discount it, or bound the steps)" in result.headline()
