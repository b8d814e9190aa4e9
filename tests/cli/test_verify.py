"""`tightrope verify`: certificates that are valid, changed, damaged, or about something else."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import tightrope
from learning_cases import case, counts_of
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.cli.app import run
from tightrope.data.writing import write_counts
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.learn import learn
from tightrope_check.archive import load

pytestmark = pytest.mark.usefixtures("built_once")

FAMILY = "aircraft(8,4)"
MODEL = f"bench:{FAMILY}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a certificate of a value and one of a learned result, and its data."""
    place = tmp_path_factory.mktemp("certificates")
    arguments = ["check", MODEL, "--certificate", str(place / "value.cert"), "--json"]
    assert run(arguments) == 0
    subject, counts = case(FAMILY), counts_of(FAMILY)
    result = learn(subject.problem, counts, delta=0.05, region="polytope", sets="rectangular")
    as_file(certificate_of(result, counts, {"model": FAMILY})).save(place / "learned.cert")
    write_counts(place / "data.csv", counts, subject.model.structure)
    return place


def report(capsys, *arguments):
    code = run(["verify", *map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("exact", [(), ("--exact",)])
def test_values_are_checked_again(capsys, folder, exact):
    code, found = report(capsys, folder / "value.cert", *exact)
    assert code == 0
    assert found["valid"] and found["kind"] == "value"
    names = [check["name"] for check in found["checked"]]
    assert "value: the upper bound is inductive" in names and "value: the lower bound is inductive" in names
    assert all(check["passed"] for check in found["checked"])
    assert found["lower"] <= found["upper"]
    assert found["about"]["model"] == MODEL
    assert found["bound"] == {"model": False, "property": False, "data": None, "policy": None}


@pytest.mark.parametrize("exact", [(), ("--exact",)])
def test_learned_results_are_checked_link_by_link(capsys, folder, exact):
    code, found = report(capsys, folder / "learned.cert", *exact)
    assert code == 0
    assert found["valid"] and found["kind"] == "learning" and found["delta"] == 0.05
    names = [check["name"] for check in found["checked"]]
    for link in (
        "probabilities of every choice sum to 1",
        "bounds of expressions are derived",
        "robust policy: the lower bound is inductive",
        "robust policy: the upper bound is inductive",
        "robust policy: the claim",
    ):
        assert link in names
    assert any(name.startswith("events' intervals follow from the counts") for name in names)
    assert found["policies"]["robust policy"] == {"lower": found["lower"], "upper": found["upper"]}
    assert any("recorded design" in line for line in found["assumes"])
    assert found["bound"] == {"model": False, "property": False, "data": False, "policy": False}


def test_the_first_line_is_for_laymen_and_says_what_it_is_tied_to(capsys, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["verify", str(folder / "learned.cert")]) == 0
    printed = capsys.readouterr().out
    first, second, *_ = printed.splitlines()
    assert first.startswith("VALID: probability >= 0.") and first.endswith(
        " for the robust policy, confidence 0.95"
    )
    assert second.startswith("  compared   nothing of yours (add --model MODEL, --prop P,")
    assert len(printed.splitlines()) <= 10 and " passed" in printed and "assumes" in printed
    assert run(["verify", str(folder / "learned.cert"), "--model", MODEL]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert "your model, property; not data, policy (add --data FILE" in second
    assert run(["verify", str(folder / "value.cert"), "--model", MODEL]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("VALID: ") and "not " not in second


def test_certificates_are_tied_to_model_property_data_and_policy(capsys, folder, tmp_path):
    policy = tmp_path / "policy.json"
    assert run(["check", MODEL, "--policy-out", str(policy), "--json"]) == 0
    again = ["check", MODEL, "--policy", str(policy), "--certificate", str(tmp_path / "given.cert"), "--json"]
    assert run(again) == 0
    capsys.readouterr()
    own = ["--model", MODEL, "--data", folder / "data.csv"]
    code, found = report(capsys, folder / "learned.cert", *own)
    assert code == 0
    assert found["bound"] == {"model": True, "property": True, "data": True, "policy": False}
    code, found = report(capsys, tmp_path / "given.cert", "--model", MODEL, "--policy", policy)
    assert code == 0
    assert found["bound"] == {"model": True, "property": True, "data": None, "policy": True}


def test_certificates_of_something_else_are_refused(capsys, folder, tmp_path):
    counts, structure = counts_of(FAMILY), case(FAMILY).model.structure
    moved = counts.transition.copy()
    often = np.argsort(moved)[-2:]
    moved[often] += [1, -1]
    write_counts(tmp_path / "more.csv", replace(counts, transition=moved, batches=None), structure)
    turned = 'Pmin=? [ !"collision" U "goal" ]'
    for name, options, words in (
        ("value", ["--model", "bench:aircraft(8,5)"], "another model: 'graph."),
        ("value", ["--model", MODEL, "--at", "theta1=0.4,theta2=0.3,theta3=0.1"], "another model: 'theta'"),
        ("value", ["--model", MODEL, "--prop", turned], "another property: 'agent'"),
        ("learned", ["--model", MODEL, "--data", str(tmp_path / "more.csv")], "other data: 'batch_"),
        ("learned", ["--model", MODEL, "--param", "theta1=0.1:0.9"], "another model: 'domain.lower'"),
        ("learned", ["--model", MODEL, "--prop", turned], "another property: 'agent'"),
    ):
        code = run(["verify", str(folder / f"{name}.cert"), *options])
        captured = capsys.readouterr()
        assert code == 1, (options, captured.err)
        assert words in captured.err and captured.out == "", (options, captured.err)
        if "--at" not in options and "--param" not in options:  # as with --model alone
            code, found = report(capsys, folder / f"{name}.cert", *options)
            assert code == 1 and not found["valid"] and words in found["checked"][0]["detail"]
            assert found["bound"]["model"] is ("another model" not in words)


def test_options_about_a_model_need_one(capsys, folder):
    for option in (
        ["--prop", 'Pmax=? [ F "goal" ]'],
        ["--data", "x.csv"],
        ["--at", "p=1"],
        ["--policy", "p.json"],
    ):
        assert run(["verify", str(folder / "value.cert"), *option]) == 2
        assert f"{option[0]} requires --model" in capsys.readouterr().err


def test_the_same_from_python(folder):
    subject = case(FAMILY)
    verdict = tightrope.verify(folder / "learned.cert")
    assert verdict.valid and verdict.not_tied == ("model", "property", "data", "policy")
    own = {"model": subject.model, "property": subject.objective, "data": counts_of(FAMILY)}
    assert tightrope.verify(folder / "learned.cert", **own).not_tied == ("policy",)
    from_file = tightrope.verify(folder / "learned.cert", model=subject.model, data=folder / "data.csv")
    assert from_file.not_tied == ("property", "policy")
    with pytest.raises(CannotCertify, match="one is parametric"):
        tightrope.verify(folder / "value.cert", model=subject.truth)
    with pytest.raises(InputError, match="one point"):
        tightrope.verify(folder / "value.cert", model=subject.model)
    with pytest.raises(CannotCertify, match="another model: 'theta'"):
        tightrope.verify(folder / "value.cert", model=subject.model, at=[Fraction(1, 3)] * 3)


def test_words_of_a_file_are_shown_as_its_own_and_never_reach_the_terminal_raw(capsys, folder, tmp_path):
    loaded = load(folder / "value.cert").certificate
    lying = replace(loaded, about={"model": "\x1b[2J\x1b[31mbench:rover(125,125)\u202e"})
    as_file(lying).save(tmp_path / "lying.cert")
    assert run(["verify", str(tmp_path / "lying.cert"), "--verbose"]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and "\u202e" not in printed
    assert "the file says" in printed and "nothing of yours" in printed


def test_what_is_assumed_is_derived_and_said(capsys, tmp_path):
    model = tmp_path / "coin.prism"
    model.write_text(
        "mdp\nmodule m\n s:[0..2] init 0;\n [] s=0 -> [0,1]:(s'=1) + [0,1]:(s'=2);\n"
        " [] s>0 -> true;\nendmodule\n"
    )
    proof = tmp_path / "coin.cert"
    asked = ["--prop", "Pmaxmin=? [ F s=1 ]", "--assume-support", "0.25", "--certificate", str(proof)]
    assert run(["check", str(model), *asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lower"] == pytest.approx(0.25, abs=1e-12)
    code, found = report(capsys, proof)
    assert code == 0
    assert found["assumes"] == ["every possible transition has a probability of at least 0.25"]
    certificate = load(proof).certificate
    without = replace(certificate, problem=replace(certificate.problem, assumed_support=None))
    as_file(without).save(proof)
    assert report(capsys, proof)[0] == 1


def test_claims_that_are_not_proved_exit_with_1(capsys, folder, tmp_path):
    value = load(folder / "value.cert").certificate
    lower = value.values[0].lower
    raised = np.where((lower > 0) & (lower < 0.9), lower + 1e-3, lower)
    as_file(replace(value, values=(replace(value.values[0], lower=raised),))).save(tmp_path / "value.cert")
    learned = load(folder / "learned.cert").certificate
    data = replace(learned.problem.data, delta=learned.problem.data.delta / 2)
    as_file(replace(learned, problem=replace(learned.problem, data=data))).save(tmp_path / "learned.cert")
    for name in ("value.cert", "learned.cert"):
        code, found = report(capsys, tmp_path / name)
        assert code == 1 and not found["valid"]
        assert run(["verify", str(tmp_path / name)]) == 1
        captured = capsys.readouterr()
        assert captured.out.startswith("NOT VALID: ") and captured.err == ""


def test_files_that_are_no_certificates_exit_with_2(capsys, folder, tmp_path):
    (tmp_path / "text.cert").write_text("not a certificate")
    (tmp_path / "empty.cert").write_bytes(b"")
    data = bytearray((folder / "learned.cert").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "damaged.cert").write_bytes(bytes(data))
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    (tmp_path / "folder").mkdir()
    for name in ("text.cert", "empty.cert", "damaged.cert", "arrays.npz", "folder", "nowhere.cert"):
        assert run(["verify", str(tmp_path / name)]) == 2, name
        captured = capsys.readouterr()
        assert name in captured.err and "Traceback" not in captured.err
        assert captured.out == ""


def test_exact_is_for_small_models(capsys, folder, monkeypatch):
    monkeypatch.setattr("tightrope_check.checker.MOST_EXACT_WORK", 10)
    for name in ("value.cert", "learned.cert"):
        assert run(["verify", str(folder / name), "--exact"]) == 2
        assert "--exact" in capsys.readouterr().err


def test_the_checker_loads_nothing_of_what_it_checks(folder):
    """Neither solvers nor statistics, regions, sets or learning, nor what they are compiled with."""
    code = (
        "import sys; from tightrope.cli.app import run\n"
        f"assert run(['verify', {str(folder / 'learned.cert')!r}, '--json']) == 0\n"
        "parts = {name.split('.')[1] for name in sys.modules if name.startswith('tightrope.')}\n"
        "foreign = {'solver', 'learning', 'statistics', 'regions', 'ambiguity', 'data', 'prism'}\n"
        "assert not parts & foreign, parts\n"
        "assert not {'numba', 'highspy', 'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


GAME = """mdp
const double p;
module m
 s:[0..2] init 0;
 [a] s=0 -> p:(s'=1) + 1-p:(s'=2);
 [b] s=0 -> 3/10:(s'=1) + 7/10:(s'=2);
 [] s>0 -> true;
endmodule
label "goal" = s=1;
rewards "cost"
 [a] true : 2;
 [b] true : 3;
endrewards
"""


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Values at p = 0.6, of the best policy and of [b], and a robust policy learned from data drawn there."""
    place = tmp_path_factory.mktemp("game")
    model, known = str(place / "game.prism"), ["--param", "p=0.1:0.9"]
    (place / "game.prism").write_text(GAME)
    rows = '"policy": [{"state": {"s": 0}, "choice": 1}]'
    (place / "b.json").write_text(f'{{"format": "tightrope policy", "version": 1, "model": null, {rows}}}')
    point = [*known, "--at", "p=0.6", "--certificate"]
    for name, prop, more in (
        ("max", 'Pmax=? [ F "goal" ]', []),
        ("globally", 'Pmin=? [ G !"goal" ]', []),
        ("next", "Pmax=? [ (X s=1) | (F s=1) ]", []),
        ("cost", 'R{"cost"}min=? [ F s>0 ]', []),
        ("given", 'Pmax=? [ F "goal" ]', ["--policy", str(place / "b.json")]),
    ):
        assert (
            run(["check", model, "--prop", prop, *point, str(place / f"{name}.cert"), *more, "--json"]) == 0
        )
    data = str(place / "data.csv")
    drawn = [*known, "--at", "p=0.6", "--generative", "400", "--seed", "1", "-o", data]
    assert run(["sample", model, *drawn, "--json"]) == 0
    learned = ["--prop", 'Pmax=? [ F "goal" ]', "--data", data, "--delta", "0.01", "--sets", "tied"]
    assert (
        run(["learn", model, *known, *learned, "--certificate", str(place / "learned.cert"), "--json"]) == 0
    )
    return place


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("name", "prop", "answer"),
    [
        ("max", 'Pmax>=0.5 [ F "goal" ]', "true"),
        ("max", 'Pmax>=0.9 [ F "goal" ]', "false"),
        ("max", 'Pmax<=0.9 [ F "goal" ]', "true"),
        ("max", 'Pmax>0.61 [ F "goal" ]', "false"),
        ("max", 'P<0.7 [ F "goal" ]', "true"),
        ("globally", 'P>=0.5 [ G !"goal" ]', "false"),
        ("globally", 'P>=0.3 [ G !"goal" ]', "true"),
        ("globally", 'Pmin<0.3 [ G !"goal" ]', "false"),
        ("next", "Pmax>=0.9 [ (X s=1) | (F s=1) ]", "false"),
        ("next", "Pmax>=0.5 [ (X s=1) | (F s=1) ]", "true"),
        ("cost", 'R{"cost"}min<=2.5 [ F s>0 ]', "true"),
        ("cost", 'R{"cost"}min>2.1 [ F s>0 ]', "false"),
        ("cost", 'R{"cost"}min>=1.9 [ F s>0 ]', "true"),
        ("given", 'Pmax>=0.25 [ F "goal" ]', "true"),
        ("given", 'Pmax>=0.5 [ F "goal" ]', "not certified"),  # another policy may be better
        ("learned", 'Pmax>=0.5 [ F "goal" ]', "true"),
        ("learned", 'Pmax>=0.9 [ F "goal" ]', "not certified"),
        ("learned", 'Pmax<0.9 [ F "goal" ]', "not certified"),
        ("max", 'Pmax=? [ F "goal" ]', None),
    ],
)
def test_thresholds_are_decided_by_what_is_certified(capsys, game, name, prop, answer):
    own = ["--model", game / "game.prism", "--param", "p=0.1:0.9", "--prop", prop]
    own += [] if name == "learned" else ["--at", "p=0.6"]
    code, found = report(capsys, game / f"{name}.cert", *own)
    assert found.get("answer") == answer and found["valid"]
    assert code == (0 if answer in (None, "true") else 1)
    assert found["verdict"] == ("limit" if answer == "not certified" else "proved")
    assert run(["verify", str(game / f"{name}.cert"), *map(str, own)]) == code
    words = {None: "VALID: ", "true": "VALID: true, ", "false": "FALSE: ", "not certified": "UNDECIDED: "}
    assert capsys.readouterr().out.startswith(words[answer])
    if name in ("max", "cost") and answer is not None:  # as `check` decides it
        assert run(["check", *map(str, own[1:]), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["answer"] == answer
    model = tightrope.load(game / "game.prism", params={"p": (0.1, 0.9)})
    at = {} if name == "learned" else {"at": {"p": 0.6}}
    if name not in ("cost",):
        assert tightrope.verify(game / f"{name}.cert", model=model, property=prop, **at).answer == answer


def test_a_threshold_of_ones_own_policy_is_about_that_policy(capsys, game):
    own = [
        "--model",
        game / "game.prism",
        "--param",
        "p=0.1:0.9",
        "--at",
        "p=0.6",
        "--policy",
        game / "b.json",
    ]
    for prop, answer in (('Pmax>=0.5 [ F "goal" ]', "false"), ('Pmax>0.29 [ F "goal" ]', "true")):
        code, found = report(capsys, game / "given.cert", *own, "--prop", prop)
        assert (code, found["answer"]) == (int(answer == "false"), answer)


def test_names_of_files_do_not_reach_the_terminal_raw(capsys, folder, tmp_path):
    wild = tmp_path / "\x1b[2J\x1b[31mVALID\nVALID: at least 1\x1b[0m.cert"
    wild.write_bytes((folder / "value.cert").read_bytes())
    commands = [
        ["verify", str(wild)],
        ["verify", str(wild), "--model", str(wild)],
        ["verify", f"{wild}.nowhere"],
        ["check", str(wild)],
        ["check", f"{wild}.prism"],
        ["info", str(wild)],
        ["learn", MODEL, "--data", str(wild)],
        ["data", str(wild), "--model", MODEL],
        ["watch", MODEL, "--data", f"{wild}.csv"],
        ["report", str(wild)],
        ["check", MODEL, "--policy", str(wild)],
        ["check", MODEL, "--prop", f"{wild}.props"],
        ["check", MODEL, "--prop", str(wild)],
    ]
    for command in commands:
        code = run(command)
        assert code in (0, 1, 2), command
        captured = capsys.readouterr()
        for text in (captured.out, captured.err):
            assert all(c in "\t\n" or c.isprintable() for c in text), (command, text)
        if command[0] == "verify" and len(command) == 2:
            assert "\nVALID: at least 1" not in captured.out + captured.err, command
