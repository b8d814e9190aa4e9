"""`tightrope check`: values, thresholds, points, policies, certificates, and wrong questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tightrope.cli.app import run
from tightrope_check.archive import load

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


CHOOSING = """\
mdp
module coin
  side : [0..2] init 0;
  [a] side=0 -> [0.4,0.9] : (side'=1) + [0.1,0.6] : (side'=2);
  [b] side>0 -> true;
endmodule
label "one" = side=1;
"""


@pytest.mark.parametrize("more", ["", "  [c] side=2 -> true;\n"])
def test_one_direction_on_an_interval_mdp_means_nature_for_the_agent(more, tmp_path, capsys):
    """Whatever the number of choices: the declared type alone counts."""
    (tmp_path / "c.prism").write_text(CHOOSING.replace("endmodule", more + "endmodule"))
    for name in ("c.prism", "c.tra", "c.drn"):
        if name != "c.prism":
            assert run(["export", "c.prism", "-o", name]) == 0
        capsys.readouterr()
        assert run(["check", name, "--prop", 'Pmax=? [ F "one" ]', "--json"]) == 0
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert found["lower"] == pytest.approx(0.9) and found["upper"] == pytest.approx(0.9)
        assert found["read_as"] == 'Pmaxmax=? [ F "one" ]'
        assert found["robust_form"] == 'Pmaxmin=? [ F "one" ]'
        assert " ".join(err.split()) == (
            "warning: with one direction, nature helps the agent of an interval MDP, as in PRISM: read as "
            'Pmaxmax=? [ F "one" ]; the value that is guaranteed whatever nature does is '
            'Pmaxmin=? [ F "one" ]'
        )
    assert run(["check", "c.prism", "--prop", 'Pmin=? [ F "one" ]']) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert 'read as Pminmin=? [ F "one" ]: nature helps the agent. Robust: Pminmax=? [ F "one" ]' in out
    robust = answer(capsys, "c.prism", "--prop", found["robust_form"])
    assert robust["upper"] == pytest.approx(0.4) and "read_as" not in robust


def test_on_an_interval_chain_the_letter_is_natures(capsys):
    for prop, value in (("Pmin", 0.2), ("Pmax", 0.4)):
        found = answer(capsys, "coin.pm", "--prop", f'{prop}=? [ F "one" ]')
        assert found["upper"] == pytest.approx(value) and "read_as" not in found


FAINT = """\
mdp
module m
  s : [0..3] init 0;
  [a] s=0 -> 0.5:(s'=1) + 0.5-1e-18:(s'=2) + 1e-18:(s'=3);
  [b] s=3 -> [1e-15,1e-15]:(s'=1) + [0,0.9999999999999982]:(s'=3) + [0,1]:(s'=2);
  [c] s=1 | s=2 -> true;
endmodule
"""


def test_the_status_is_that_of_what_was_asked(tmp_path, capsys):
    """State 3 cannot be computed to any precision, and hardly matters."""
    (tmp_path / "faint.prism").write_text(FAINT)
    found = answer(capsys, "faint.prism", "--prop", "Pmaxmax=? [ F s=1 ]")
    assert found["status"] == "certified"
    assert found["lower"] == pytest.approx(0.5) and found["upper"] == pytest.approx(0.5)
    assert run(["check", "faint.prism", "--prop", "Pmaxmax=? [ F s=1 ]", "--all-states", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "precision-limit"


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
    assert HOME in printed and printed.startswith("PROVED: ") and "right" in printed


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


DIE = """\
dtmc
module die
  s : [0..3] init 0;
  [] s=0 -> 1/2 : (s'=1) + 1/2 : (s'=3);
  [] s=1 -> 1/2 : (s'=0) + 1/2 : (s'=2);
  [] s>1 -> true;
endmodule
"""
"""State 2 is reached with probability 1/3."""


def test_bounds_are_refined_until_they_decide_a_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    Path("die.prism").write_text(DIE)
    for threshold, answer in (("0.3333333333", "true"), ("0.33333333334", "false")):
        assert run(["check", "die.prism", "--prop", f"P>={threshold} [ F s=2 ]", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["answer"] == answer
    assert run(["check", "die.prism", "--prop", "P>=1/3 [ F s=2 ]", "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["answer"] == "not certified" and document["upper"] - document["lower"] < 1e-12
    assert "on both sides of the threshold" in printed.err and "certified: the bounds" not in printed.err


def test_constants_of_a_property_file_that_nothing_uses_need_no_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("die.prism").write_text(DIE)
    for text in ("S=? [ s=2 ]", "filter(max, S=? [ s=2 ], s=2)", "P=? [ F s=2 ]"):
        Path("unused.props").write_text(f"const int k;\nconst double u;\nconst bool b;\n{text}\n")
        assert run(["check", "die.prism", "--prop", "unused.props"]) == 0
    Path("used.props").write_text("const double u;\nfilter(max, S=? [ s=2 ] + u)\n")
    assert run(["check", "die.prism", "--prop", "used.props"]) == 2
    assert "used.props:1:14: undefined constant: double u" in capsys.readouterr().err


def test_infinite_rewards_are_said_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.prism"
    model.write_text(
        'mdp module m s : [0..1]; [] s=0 -> true; [] s=1 -> true; endmodule rewards "r" true : 1; endrewards'
    )
    assert run(["check", str(model), "--prop", 'R{"r"}min=? [ F s=1 ]']) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("PROVED: expected r is infinite")
    assert "inf," not in shown and "discount" not in shown
    assert run(["check", str(model), "--prop", 'R{"r"}max=? [ C ]']) == 0
    assert "expected r is infinite (discount it, or bound the steps)" in capsys.readouterr().out
    assert run(["check", str(model), "--prop", "quantile(min k, Pmax>=0.9 [ F<=k s=1 ])"]) == 0
    assert capsys.readouterr().out.startswith("PROVED: value is infinite")


@pytest.mark.parametrize("where", [("--sets", "expression"), ("--at", "p=0.5")])
def test_policies_of_averages_are_written(
    where: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, policy = tmp_path / "m.prism", tmp_path / "best.json"
    model.write_text(
        "mdp const double p; module m s : [0..1]; [a] s=0 -> p : (s'=1) + 1-p : (s'=0); [b] s=0 -> (s'=1);"
        " [c] s=1 -> (s'=0); endmodule"
    )
    asked = ["check", str(model), "--param", "p=0.2:0.8", *where, "--prop", "Smin=? [ s=1 ]", "--json"]
    assert run([*asked, "--policy-out", str(policy)]) == 0
    best = json.loads(capsys.readouterr().out)
    written = json.loads(policy.read_text())
    assert [row[1] for row in written["policy"] if row[0] == [0]] == ["a"]
    assert written["certified"]["upper"] == pytest.approx(float(best["upper"]), abs=1e-6)
    assert run([*asked, "--policy", str(policy)]) == 0
    again = json.loads(capsys.readouterr().out)
    assert [again[end] for end in ("lower", "upper")] == [
        pytest.approx(float(best[end]), abs=1e-6) for end in ("lower", "upper")
    ]
