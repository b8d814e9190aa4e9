"""`tightrope check`: values, thresholds, points, policies, certificates, and wrong questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tightrope.certificate.format.archive import load
from tightrope.cli.app import run

WALK = """\
mdp
const int n;
const double p;
module walk
  x : [0..n] init 1;
  [left]  x>0 & x<n -> p : (x'=x-1) + 1-p : (x'=x+1);
  [right] x>0 & x<n -> p : (x'=x+1) + 1-p : (x'=x-1);
  [] x=0 | x=n -> true;
endmodule
label "home" = x=n;
label "lost" = x=0;
rewards "steps" x>0 & x<n : 1; endrewards
rewards "prize" x=n : 10; endrewards
"""

INTERVAL = """\
dtmc
module coin
  side : [0..2] init 0;
  [] side=0 -> [0.2,0.4] : (side'=1) + [0.5,0.9] : (side'=2);
  [] side>0 -> true;
endmodule
label "one" = side=1;
"""

PROPS = """\
const int k;
"win": Pmax=? [ F "home" ];
"soon": Pmax=? [ F<=k "home" ];
Rmin=? [ F ("home" | "lost") ]
"""

HOME = 'Pmax=? [ F "home" ]'
AT = ("--const", "n=4", "--at", "p=3/5")


@pytest.fixture(autouse=True)
def in_a_directory_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "walk.prism").write_text(WALK)
    (tmp_path / "coin.pm").write_text(INTERVAL)
    (tmp_path / "walk.props").write_text(PROPS)
    (tmp_path / "empty.props").write_text("")
    (tmp_path / "broken.props").write_text("Pmax=? [ F ]\n")
    (tmp_path / "policy.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def answer(capsys, *arguments):
    """The JSON object that `check` prints, alone on stdout."""
    assert run(["check", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def ruin(p, start, goal):
    """The probability to reach `goal` before 0, one step up with probability p."""
    r = (1 - p) / p
    return (1 - r**start) / (1 - r**goal)


def test_the_value_at_a_point_is_enclosed(capsys):
    found = answer(capsys, "walk.prism", *AT, "--prop", HOME)
    exact = ruin(0.6, 1, 4)
    assert found["lower"] <= exact <= found["upper"]
    assert found["upper"] - found["lower"] <= 1e-6
    assert found["status"] == "certified"
    assert set(found["seconds"]) == {"build", "solve"}
    low = answer(capsys, "walk.prism", *AT, "--prop", 'Pmin=? [ F "home" ]')
    assert low["lower"] <= ruin(0.4, 1, 4) <= low["upper"]


def test_interval_models_and_both_natures(capsys):
    for prop, value in (("Pmaxmin", 0.2), ("Pmaxmax", 0.4)):
        found = answer(capsys, "coin.pm", "--prop", f'{prop}=? [ F "one" ]')
        assert (found["lower"], found["upper"]) == (pytest.approx(value), pytest.approx(value))


def test_thresholds_are_answered(capsys):
    yes = answer(capsys, "walk.prism", *AT, "--prop", 'Pmax>=0.4 [ F "home" ]')
    no = answer(capsys, "walk.prism", *AT, "--prop", 'Pmax>=0.6 [ F "home" ]')
    assert (yes["answer"], no["answer"]) == ("true", "false")


def test_several_properties_and_a_file_of_them(capsys):
    both = answer(capsys, "walk.prism", *AT, "--prop", HOME, "--prop", 'Pmin=? [ F "home" ]')
    assert [one["property"] for one in both["properties"]] == [HOME, 'Pmin=? [ F "home" ]']
    constants = ("--const", "n=4", "--const", "k=2", "--at", "p=3/5")
    three = answer(capsys, "walk.prism", *constants, "--prop", "walk.props")["properties"]
    assert [one.get("name") for one in three] == ["win", "soon", None]
    assert three[0]["lower"] == pytest.approx(ruin(0.6, 1, 4), abs=1e-6)
    assert three[1]["lower"] == three[1]["upper"] == 0.0
    assert three[2]["upper"] > 1


def test_rewards_discounts_and_terminal_rewards(capsys):
    stay = answer(capsys, "walk.prism", *AT, "--prop", 'R{"steps"}max=? [ C ]', "--discount", "0.5")
    assert 1 < stay["lower"] <= stay["upper"] < 2
    ends = 'R{"steps"}max=? [ F ("home" | "lost") ]'
    plain = answer(capsys, "walk.prism", *AT, "--prop", ends)
    more = answer(capsys, "walk.prism", *AT, "--prop", ends, "--terminal-reward", "prize")
    assert more["lower"] > plain["upper"]


def test_all_states_and_the_precision(capsys):
    found = answer(
        capsys, "walk.prism", *AT, "--prop", HOME, "--all-states", "--precision", "1e-3", "--absolute"
    )
    assert len(found["states"]) == 5
    by_name = {row["state"]: row for row in found["states"]}
    assert by_name["(x=4)"]["lower"] == 1.0
    assert by_name["(x=2)"]["action"] == "right"


def test_policies_are_written_and_evaluated(capsys):
    found = answer(capsys, "walk.prism", *AT, "--prop", HOME, "--policy-out", "best.json")
    again = answer(capsys, "walk.prism", *AT, "--prop", HOME, "--policy", "best.json")
    assert again["lower"] == pytest.approx(found["lower"], abs=1e-6)
    worst = answer(capsys, "walk.prism", *AT, "--prop", 'Pmin=? [ F "home" ]', "--policy", "best.json")
    assert worst["lower"] == pytest.approx(found["lower"], abs=1e-6)


def test_certificates_are_written_and_prove_what_is_printed(capsys):
    found = answer(capsys, "walk.prism", *AT, "--prop", HOME, "--certificate", "home.cert")
    loaded = load("home.cert").certificate
    (claim,) = loaded.claims
    assert (claim.lower, claim.upper) == (found["lower"], found["upper"])
    assert loaded.problem.law == "point"
    assert loaded.about["property"] == HOME
    assert run(["verify", "home.cert"]) == 0
    capsys.readouterr()
    answer(capsys, "coin.pm", "--prop", 'Pmaxmin=? [ F "one" ]', "--certificate", "coin.cert")
    assert run(["verify", "coin.cert", "--exact"]) == 0


def test_words_for_people(capsys):
    assert run(["check", "walk.prism", *AT, "--prop", HOME, "--all-states"]) == 0
    printed = capsys.readouterr().out
    assert HOME in printed and "certified" in printed and "right" in printed


WRONG = [
    ((), "--prop"),
    (("--prop", "Pmax=? [ F ]"), "Pmax=? [ F ]"),
    (("--prop", 'Pmax=? [ F "nowhere" ]'), "nowhere"),
    (("--prop", HOME, "--precision", "0"), "--precision"),
    (("--prop", HOME, "--precision", "inf"), "--precision"),
    (("--prop", HOME, "--time-limit", "-1"), "--time-limit"),
    (("--prop", HOME, "--assume-support", "2"), "--assume-support"),
    (("--prop", HOME, "--policy", "policy.json"), "policy.json"),
    (("--prop", HOME, "--policy", "nowhere.json"), "nowhere.json"),
    (("--prop", HOME, "--prop", HOME, "--certificate", "two.cert"), "one property"),
    (("--prop", HOME, "--prop", HOME, "--policy-out", "two.json"), "one property"),
    (("--prop", HOME, "--certificate", "nowhere/home.cert"), "nowhere"),
    (("--prop", "nowhere.props"), "nowhere.props"),
    (("--prop", "empty.props"), "empty.props"),
    (("--prop", "broken.props"), "broken.props:1"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[" ".join(a) or "no property" for a, _ in WRONG])
def test_wrong_questions_exit_with_2_and_say_why(capsys, arguments, words):
    assert run(["check", "walk.prism", *AT, *arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_points_belong_to_parametric_models_only(capsys):
    assert run(["check", "coin.pm", "--prop", 'Pmaxmin=? [ F "one" ]', "--at", "p=0.5"]) == 2
    assert "--at" in capsys.readouterr().err
    assert run(["check", "walk.prism", "--const", "n=4", "--prop", HOME]) == 2
    assert "--at" in capsys.readouterr().err
    assert run(["check", "walk.prism", "--const", "n=4", "--at", "q=1", "--prop", HOME]) == 2
    assert "q" in capsys.readouterr().err
