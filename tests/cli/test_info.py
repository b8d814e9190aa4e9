"""`tightrope info`: the facts of a model, from every kind of source, and what is wrong with a source."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from named_models import load_model
from tightrope.cli.app import run
from tightrope.cli.options import ModelOptions
from tightrope.cli.sources import Question
from tightrope.errors import InputError
from tightrope.io.drn.write import write_drn
from tightrope.io.explicit import write_explicit

WALK = """\
mdp
const int n;
const double p;
const double q;
module walk
  x : [0..n] init 1;
  [left]  x>0 & x<n -> p : (x'=x-1) + 1-p : (x'=x+1);
  [right] x>0 & x<n -> p*q : (x'=x+1) + 1-p*q : (x'=x-1);
  [] x=0 -> true;
endmodule
label "home" = x=n;
rewards "steps" true : 1; endrewards
"""

COIN = "dtmc\nmodule coin\n  side : [0..2] init 0;\n  [] side=0 -> 1/3 : (side'=1) + 2/3 : (side'=2);\n"
COIN += "  [] side>0 -> true;\nendmodule\n"

INTERVAL = COIN.replace("1/3 :", "[0.2,0.4] :").replace("2/3 :", "[0.5,0.9] :")


@pytest.fixture(autouse=True)
def in_a_directory_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test stands in a directory with some models, at a terminal of 80 columns."""
    (tmp_path / "walk.prism").write_text(WALK)
    (tmp_path / "coin.pm").write_text(COIN)
    (tmp_path / "interval.nm").write_text(INTERVAL)
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "nameless").write_text("nothing")
    (tmp_path / "binary.prism").write_bytes(b"mdp \xff\xfe\x00")
    (tmp_path / "empty.prism").write_text("")
    (tmp_path / "empty.drn").write_text("")
    (tmp_path / "empty.tra").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def facts(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """The JSON object that `info` prints, alone on stdout."""
    assert run(["info", *arguments, "--json"]) == 0
    result: dict[str, object] = json.loads(capsys.readouterr().out)
    return result


def test_json_has_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    result = facts(capsys, "walk.prism", "--const", "n=3", "--param", "p=0.1:0.9")
    seconds = result.pop("seconds")
    assert isinstance(seconds, float)
    assert seconds > 0
    assert result == {
        "model": "walk.prism",
        "type": "parametric MDP",
        "states": 4,
        "choices": 6,
        "transitions": 10,
        "parameters": ["p", "q"],
        "free_distributions": 0,
        "domain": "0.1<=p<=0.9, 0<=q<=1",
        "expressions": 5,
        "nonconstant_expressions": 4,
        "degree": 2,
        "unproved_expressions": 0,
        "labels": ["home", "init", "deadlock"],
        "label_states": {"init": 1, "deadlock": 1, "home": 1},
        "rewards": ["steps"],
        "deadlocks": 1,
    }


def test_the_table_is_for_people_and_the_warning_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", "walk.prism", "--const", "n=1000", "--const", "q=1/2"]) == 0
    out, err = capsys.readouterr()
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.strip()}
    assert rows["type"] == "parametric MDP"
    assert rows["states"] == "1,001"
    assert rows["parameters"] == "p"
    assert rows["expressions"] == "5 (4 not constant, degree 1)"
    assert rows["deadlocks"] == "1 (each given a self-loop)"
    assert max(map(len, out.splitlines())) <= 80
    assert err.startswith("warning: ")
    assert "deadlock" in err


@pytest.mark.parametrize(
    ("source", "kind", "expressions"),
    [("coin.pm", "DTMC", 3), ("interval.nm", "interval DTMC", 0)],
)
def test_kinds_of_models(
    source: str, kind: str, expressions: int, capsys: pytest.CaptureFixture[str]
) -> None:
    result = facts(capsys, source)
    assert (result["type"], result["expressions"]) == (kind, expressions)
    assert (result["states"], result["choices"], result["transitions"]) == (3, 3, 4)
    assert (result["parameters"], result["degree"], result["deadlocks"]) == ([], 0, 0)


def test_every_format_gives_the_same_facts(capsys: pytest.CaptureFixture[str]) -> None:
    walk = load_model("walk.prism", ["n=3"], "p=0.1:0.9").model
    write_drn(walk, Path("copy.drn"))
    original = facts(capsys, "walk.prism", "--const", "n=3", "--param", "p=0.1:0.9")
    copy = facts(capsys, "copy.drn")
    own = ("model", "seconds")
    assert {k: v for k, v in copy.items() if k not in own} == {
        k: v for k, v in original.items() if k not in own
    }

    write_explicit(load_model("interval.nm").model, Path("files"))
    expected = facts(capsys, "interval.nm")
    for source in ("files.tra", "files"):
        result = facts(capsys, source)
        assert {k: v for k, v in result.items() if k not in own} == {
            k: v for k, v in expected.items() if k not in own
        }


def test_a_benchmark_brings_its_domain_property_and_true_point(capsys: pytest.CaptureFixture[str]) -> None:
    result = facts(capsys, "bench:betting(25)")
    assert (result["states"], result["transitions"], result["expressions"]) == (3625, 27703, 1283)
    narrowed = facts(capsys, "bench:betting(5)", "--param", "p=0.5:0.6")
    assert str(narrowed["domain"]).startswith("0.5<=p<=0.6, 0<=q<=")

    betting = load_model("bench:betting(5)")
    assert betting.benchmark is not None
    assert betting.benchmark.property_text == 'Rmax=? [ F "done" ]'
    assert betting.point(None) == (Fraction("0.55"), Fraction("0.0004"))
    assert betting.point("q=0,p=1/2") == (Fraction(1, 2), Fraction(0))


def test_other_models_must_be_given_where_and_what() -> None:
    walk = load_model("walk.prism", ["n=3,q=0.5"])
    with pytest.raises(InputError, match="the model has parameters: p") as caught:
        walk.point(None)
    assert caught.value.hint == "give a point with --at p=…"
    with pytest.raises(InputError, match="no property is given"):
        Question.of(ModelOptions(model="walk.prism")).queries(walk)
    assert load_model("coin.pm").point(None) == ()


WRONG = [
    (["missing.prism"], "there is no file missing.prism", "a model is a .prism/.nm/.pm file"),
    (["wlak.prism"], "there is no file wlak.prism", "did you mean walk.prism?"),
    (["no/such/model.prism"], "there is no file no/such/model.prism", "a model is"),
    (["folder"], "folder is a directory, not a model", "a model is"),
    (["/dev/null"], "/dev/null is not a regular file", "a model is"),
    (["notes.txt"], "cannot tell what notes.txt is: files ending in '.txt' are not known", "a model is"),
    (["nameless"], "cannot tell what nameless is: files without an ending are not known", "a model is"),
    ([""], "the name of the model is empty", "a model is"),
    (["binary.prism"], "binary.prism", ""),
    (["empty.prism"], "empty.prism", ""),
    (["empty.drn"], "empty.drn", ""),
    (["empty.tra"], "empty.tra", ""),
    (["bench:"], "'bench:' does not name a benchmark", "bench:NAME(ARGS)"),
    (["bench:beting(5)"], "there is no benchmark family 'beting'", "did you mean betting(n)?"),
    (["bench:betting"], "'bench:betting' has 0 arguments, betting takes 1", "bench:betting(n)"),
    (["bench:betting(x)"], "n must be an integer, got 'x'", "bench:betting(n)"),
    (["bench:betting(0)"], "n must be at least 1, got 0", ""),
    (["bench:betting(5)", "--const", "n=6"], "--const cannot be used with bench:betting(5)", "betting.prism"),
    (["bench:betting(5)", "--param", "r=0:1"], "'r' is not a parameter of the model", "p, q"),
    (["bench:betting(5)", "--domain", "p"], "a comparison is missing here", "p, q"),
    (["walk.prism"], "undefined constant: int n", "--const n=…"),
    (["walk.prism", "--const", "n"], "--const:1:1: 'n' does not give a constant its value", "n=50"),
    (["walk.prism", "--const", "n=3,n=4"], "--const:1:5: constant 'n' is given twice", ""),
    (["walk.prism", "--const", "n=three"], "'three' is not a value for the int constant 'n'", "50"),
    (["walk.prism", "--const", "n=3,m=4"], "the model has no constant 'm'", ""),
    (["walk.prism", "--const", "n=3", "--param", "p=0.9:0.1"], "the range of 'p' is empty", ""),
    (["walk.prism", "--const", "n=3", "--param", "p=0.1"], "':' expected", ""),
    (["walk.prism", "--const", "n=3", "--param", "r=0:1"], "'r' is not a parameter of the model", "p, q"),
    (["walk.prism", "--const", "n=3", "--param", "p=0:1,"], "an entry is missing after the last comma", ""),
    (["walk.prism", "--const", "n=3", "--param", "p=2:3"], "not within [0, 1]", "narrow the domain"),
    (["walk.prism", "--const", "n=3", "--domain", "p*q<=1"], "a product of parameters cannot be used", ""),
    (["walk.prism", "--const", "n=3", "--domain", "p+q<=-1"], "the domain is empty", "loosen"),
    (
        ["walk.prism", "--const", "n=3", "--param", "p=0.1:0.2", "--domain", "2*p>=1"],
        "--param, or else the model, says 1/10 to 1/5, and --domain at least 1/2",
        "in common",
    ),
    (
        ["bench:betting(5)", "--param", "p=0.1:0.2", "--domain", "p>=0.5"],
        "--param, or else the model, says 1/10 to 1/5, and --domain at least 1/2",
        "in common",
    ),
    (["walk.prism", "--const", "n=3", "--domain", "p ? q"], "unexpected character '?'", ""),
    (["coin.pm", "--param", "p=0:1"], "'p' is not a parameter of the model", "none"),
    (["walk.prism", "coin.pm"], "unexpected extra argument", "tightrope info --help"),
    (["walk.prism", "--cosnt", "n=3"], "No such option: --cosnt", "tightrope info --help"),
    ([], "Missing argument 'MODEL'", "tightrope info --help"),
]


@pytest.mark.parametrize(("arguments", "message", "hint"), WRONG)
def test_wrong_sources_and_options_exit_2(
    arguments: list[str], message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["info", *arguments, "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.split("error: ", 1)[1]
    if hint:
        assert hint in err.split("\nhint: ", 1)[1]


def test_constants_and_domains_do_not_go_with_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    write_drn(load_model("coin.pm").model, Path("coin.drn"))
    write_explicit(load_model("interval.nm").model, Path("files"))
    assert run(["info", "coin.drn", "--const", "n=3"]) == 2
    told = capsys.readouterr().err
    assert "--const cannot be used with coin.drn: only PRISM and JANI models have constants" in told
    assert run(["info", "files.tra", "--domain", "p<=1"]) == 2
    assert (
        "--domain cannot be used with files.tra: explicit files have no parameters" in capsys.readouterr().err
    )


def test_a_domain_that_is_too_large_is_narrowed_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where affine probabilities leave [0, 1]: derived, said first, and listed by every verdict."""
    model, log, proof = tmp_path / "m.prism", tmp_path / "log.csv", tmp_path / "goal.cert"
    model.write_text(
        "dtmc const double p; const double q; module m s : [0..3];"
        " [] s=0 -> 2*p : (s'=1) + 1-2*p : (s'=2); [] s=1 -> p : (s'=2) + q : (s'=3) + 1-p-q : (s'=0);"
        " [] s>=2 -> true; endmodule"
    )
    assert run(["info", str(model)]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith(
        "warning: the domain is narrowed to 0<=p<=1/2, 0<=q<=1, p + q <= 1: elsewhere"
    )
    assert "0<=p<=0.5, 0<=q<=1, p + q <= 1" in shown.out
    asked = [str(model), "--prop", "P=? [ F s=3 ]", "--param", "p=0.1:0.9,q=0.1:0.3", "--json"]
    assert run(["check", *asked, "--sets", "expression"]) == 0
    shown = capsys.readouterr()
    (domain,) = (one for one in json.loads(shown.out)["assumptions"] if one["name"] == "domain")
    assert domain["kept"] == "yes" and "narrowed to 1/10<=p<=1/2, 1/10<=q<=3/10:" in domain["why"]
    assert shown.err.startswith("warning: the domain is narrowed")
    at = ["--at", "p=0.3,q=0.2", "--episodes", "40", "--seed", "1", "--raw", "-o", str(log)]
    assert run(["sample", str(model), *at]) == 0
    capsys.readouterr()
    assert run(["learn", *asked, "--data", str(log), "--certificate", str(proof)]) == 0
    learned = json.loads(capsys.readouterr().out)
    assert domain in learned["assumptions"]
    assert run(["verify", str(proof), "--model", str(model), *asked[1:-1], "--data", str(log)]) == 0
    capsys.readouterr()
    model.write_text(model.read_text().replace("2*p :", "3*p*p :").replace("1-2*p", "1-3*p*p"))
    assert run(["info", str(model)]) == 2
    assert "the probability 3*p^2 is 3 at p=1" in capsys.readouterr().err
