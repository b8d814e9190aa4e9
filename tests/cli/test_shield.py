"""`tightrope shield`: from data, a result, or a model alone; its files and its words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tightrope as tr
from tightrope.cli.app import run

MODEL = """mdp
const double p;
const double q;
module m
  s : [0..2] init 0;
  [safe] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [fast] s=0 -> q : (s'=1) + 1-q : (s'=2);
  [] s>0 -> true;
endmodule
label "goal" = s=1;
"""
PROP = 'Pmax=? [ F "goal" ]'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.prism").write_text(MODEL)
    at = ["--at", "p=0.9,q=0.8", "--episodes", "400", "--seed", "1"]
    assert run(["sample", "m.prism", *at, "--prop", PROP, "--raw", "--quiet", "-o", "log.csv"]) == 0
    return tmp_path


def shield(*words: str, capsys: Any, code: int = 0) -> str:
    capsys.readouterr()
    assert run(["shield", *words]) == code
    return str(capsys.readouterr().out)


DATA = ["m.prism", "--prop", PROP, "--data", "log.csv", "--delta", "0.1"]


def test_a_shield_from_data_says_what_it_promises(folder: Path, capsys: Any) -> None:
    text = shield(*DATA, "--slack", "0.25", "-o", "s.json", capsys=capsys)
    lines = text.splitlines()
    assert lines[0].startswith("PROVED: probability >= 0.") and len(lines) <= 10
    assert lines[0].endswith(" for any agent under the shield, confidence 0.9")
    assert "  allows     several actions in 1 of 3 states" in lines and "  forbids    no action" in lines
    answer = json.loads(shield(*DATA, "--slack", "0.25", "--json", capsys=capsys))
    assert answer["verdict"] == "proved" and answer["states"] == 3 and answer["free_states"] == 1
    assert (answer["slack"], answer["patience"], answer["removed"]) == (0.25, 100, [])
    loaded = tr.Shield.load("s.json")
    assert loaded.promise == answer["promise"] and set(loaded.allowed({"s": 0})) == {"safe", "fast"}


def test_without_slack_the_worse_action_is_removed(folder: Path, capsys: Any) -> None:
    text = shield(*DATA, capsys=capsys)
    assert "  forbids    fast (1 state)" in text.splitlines()


def test_a_result_has_a_shield(folder: Path, capsys: Any) -> None:
    assert run(["learn", *DATA, "-o", "results", "--quiet"]) == 0
    answer = json.loads(shield("results", "--slack", "0.02", "--json", capsys=capsys))
    direct = json.loads(shield(*DATA, "--slack", "0.02", "--json", capsys=capsys))
    assert answer["promise"] == pytest.approx(direct["promise"], abs=1e-6)
    assert answer["made_from"] == direct["made_from"] and answer["confidence"] == 0.9
    assert tr.load_result("results").shield(slack=0.02).promise == answer["promise"]


def test_models_without_data_have_shields(folder: Path, capsys: Any) -> None:
    text = shield("m.prism", "--prop", PROP, "--at", "p=0.9,q=0.8", "--slack", "0.05", capsys=capsys)
    assert text.startswith("PROVED: probability >= 0.8")
    Path("i.prism").write_text(MODEL.replace("const double p;", "").replace("const double q;", ""))
    text = Path("i.prism").read_text().replace("1-p", "[0.05,0.15]").replace("p :", "[0.85,0.95] :")
    Path("i.prism").write_text(text.replace("1-q", "0.2").replace("q :", "0.8 :"))
    answer = json.loads(shield("i.prism", "--prop", "Pmaxmin=? [ F s=1 ]", "--json", capsys=capsys))
    assert answer["promise"] == pytest.approx(0.85) and answer["confidence"] is None


def test_a_certificate_is_written_and_verified(folder: Path, capsys: Any) -> None:
    shield(*DATA, "--slack", "0.05", "-o", "s.json", "--certificate", "s.cert", capsys=capsys)
    assert run(["verify", "s.cert", "--shield", "s.json"]) == 0
    assert "12 of 12 passed" in capsys.readouterr().out
    Path("s.json").write_text(Path("s.json").read_text().replace('"slack":0.05', '"slack":-1'))
    assert run(["verify", "s.cert", "--shield", "s.json"]) == 2
    assert "the slack is -1" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_a_refused_certificate_leaves_the_files_as_they_were(folder: Path, capsys: Any) -> None:
    shield(*DATA, "--certificate", "s.cert", capsys=capsys)
    before, lasting = Path("s.cert").read_bytes(), [*DATA[:2], 'Pmax=? [ G (F "goal") ]', *DATA[3:]]
    for file in ("s.cert", "new.cert"):
        shield(*lasting, "--certificate", file, "-o", "s.json", capsys=capsys, code=2)
    assert Path("s.cert").read_bytes() == before
    assert not Path("new.cert").exists() and not Path("s.json").exists()


@pytest.mark.filterwarnings("ignore")
def test_formulas_and_models_without_parameters_have_certified_shields(folder: Path, capsys: Any) -> None:
    at, rest = ["--at", "p=0.9,q=0.8"], ["--slack", "0.05", "-o", "s.json", "--certificate", "s.cert"]
    shield("m.prism", "--prop", 'Pmax=? [ X ("goal" & (X "goal")) ]', *at, *rest, capsys=capsys)
    assert run(["verify", "s.cert", "--shield", "s.json"]) == 0
    Path("n.prism").write_text(MODEL.replace("double p", "double p=0.9").replace("double q", "double q=0.8"))
    shield("n.prism", "--prop", PROP, *rest, "--overwrite", capsys=capsys)
    assert run(["verify", "s.cert", "--shield", "s.json"]) == 0
    shield("n.prism", "--prop", PROP, *at, capsys=capsys, code=2)  # there is nothing to be at


@pytest.mark.parametrize(
    "words, message",
    [
        (["m.prism", "--prop", PROP, "--at", "p=0.9,q=0.8", "--slack", "-1"], "the slack is -1"),
        (["m.prism", "--prop", PROP, "--slack", "0.1"], "the model has parameters"),
        (["m.prism", "--prop", "Pmax=? [ F<=99999999 s=1 ]", "--at", "p=0.9,q=0.8"], "50,000,000 prices"),
        (["m.prism", "--prop", 'R{"a"}max=? [ S ]', "--at", "p=0.9,q=0.8"], "reward"),
        (["m.prism", "--prop", PROP, "--at", "p=0.9,q=0.8", "-o", "m.prism"], "exists and is"),
    ],
)
def test_wrong_calls(folder: Path, capsys: Any, words: list[str], message: str) -> None:
    capsys.readouterr()
    assert run(["shield", *words]) == 2
    assert message in capsys.readouterr().err


def test_averages_are_refused_in_words(folder: Path, capsys: Any) -> None:
    capsys.readouterr()
    assert run(["shield", "m.prism", "--prop", 'LRAmax=? [ "goal" ]', "--at", "p=0.9,q=0.8"]) == 2
    assert "error: " in capsys.readouterr().err
