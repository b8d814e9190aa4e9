"""A certificate that contradicts the answer beside it is an internal error, whatever was asked; none is
written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from benchmark_script import run_benchmark
from tightrope.certify import certify as made
from tightrope.certify.certificate_file import Disagreement, Shown, require_agreement, shown_value
from tightrope.cli.app import INTERNAL_ERROR, run
from tightrope.errors import CannotCertify
from tightrope.io.results import Interval
from tightrope_check.archive import load
from tightrope_check.problem import Claim

TOSSES = """mdp
const double p;
module m
 s : [0..3] init 0;
 [go] s=0 -> p : (s'=1) + 1-p : (s'=2);
 [safe] s=0 -> 0.25 : (s'=1) + 0.75 : (s'=2);
 [] s=1 -> 0.5 : (s'=0) + 0.5 : (s'=1);
 [] s=2 -> 1 : (s'=3);
 [] s=3 -> 1 : (s'=3);
endmodule
label "one" = s=1; label "end" = s=3;
rewards "cost" s<2 : 1; endrewards
"""
RATES = """ctmc
const double lam;
module m
 s : [0..2] init 0;
 [] s=0 -> lam : (s'=1);
 [] s=1 -> 1 : (s'=0) + lam : (s'=2);
endmodule
label "end" = s=2;
"""
POINT = ["--at", "p=0.5"]
DOMAIN = ["--param", "p=0.4:0.6", "--sets", "expression"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "tosses.prism").write_text(TOSSES)
    (tmp_path / "rates.prism").write_text(RATES)
    return tmp_path


def moved(make: Callable[..., Any]) -> Callable[..., Any]:
    """The same certificate with claims of something else."""

    def wrong(*arguments: Any, **words: Any) -> Any:
        proof = make(*arguments, **words)
        far = tuple(replace(one, lower=one.upper + 0.5, upper=one.upper + 1) for one in proof.claims)
        return replace(proof, claims=far)

    return wrong


KINDS = [
    ("solved.to_certificate", "tosses", 'Pmax=? [ F "one" ]', POINT),
    ("solved.to_certificate", "tosses", 'P>=0.3 [ F "one" ]', POINT),
    ("solved.to_certificate", "tosses", 'R{"cost"}min=? [ C<=3 ]', POINT),
    ("solved.composed_certificate", "tosses", 'Pmax=? [ G F "end" ]', POINT),
    ("solved.composed_certificate", "tosses", 'R{"cost"}min=? [ S ]', POINT),
    ("certify.rate_certificate", "rates", 'P=? [ F<=2 "end" ]', ["--at", "lam=1"]),
    ("certify.rate_certificate", "rates", 'P=? [ F<=2 "end" ]', ["--param", "lam=0.5:1", *DOMAIN[2:]]),
    ("certify.certificate_of", "tosses", 'Pmax=? [ F "one" ]', DOMAIN),
    ("certify.composed_of", "tosses", 'Pmax=? [ (F "one") & (F "end") ]', DOMAIN),
    ("certify.composed_of", "tosses", 'Smax=? [ "one" ]', DOMAIN),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("maker", "model", "asked", "words"), KINDS)
def test_check_writes_no_certificate_that_contradicts_its_answer(
    maker: str, model: str, asked: str, words: list[str], files: Path, monkeypatch: Any, capsys: Any
) -> None:
    target = files / "a.cert"
    command = ["check", str(files / f"{model}.prism"), "--prop", asked, *words, "--certificate", str(target)]
    assert run(command) == 0 and target.exists()
    target.unlink()
    module, name = maker.split(".")
    place = __import__(f"tightrope.certify.{module}", fromlist=[name])
    monkeypatch.setattr(place, name, moved(getattr(place, name)))
    capsys.readouterr()
    assert run(command) == INTERNAL_ERROR and not target.exists()
    said = capsys.readouterr().err
    assert "internal error: Disagreement: the certificate proves a " in said and "Please report it" in said


def heads(asked: str, **words: Any) -> Any:
    """A coin that was tossed a hundred times."""
    (p,) = (box := tr.Parameters.box(p=(0, 1))).symbols()
    rows = [(0, "toss", {1: p, 2: 1 - p}), (0, "pass", {2: 1}), (1, "", {0: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, box, labels={"heads": [1]})
    data = [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20
    return tr.learn(model.problem(asked), data, delta=0.01, **words)


LEARNED = [
    ("certificate_of", 'Pmax=? [ F "heads" ]', {}),
    ("certificate_of", 'Pmax=? [ F "heads" ]', {"policy": {0: "toss"}}),
    ("composed_of", 'Smax=? [ "heads" ]', {}),
    ("certificate_of", 'Pmax=? [ X X (F "heads") ]', {}),
]


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("maker", "asked", "words"), LEARNED)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_certify_writes_none_that_contradicts_a_result(
    maker: str, asked: str, words: dict[str, Any], tmp_path: Path, monkeypatch: Any
) -> None:
    result = heads(asked, **words)
    tr.certify(result, tmp_path / "right.cert")
    monkeypatch.setattr(made, maker, moved(getattr(made, maker)))
    with pytest.raises(Disagreement, match="One of them is wrong"):
        tr.certify(result, tmp_path / "wrong.cert")
    assert [file.name for file in tmp_path.iterdir()] == ["right.cert"]


def test_two_statements_about_the_same_data_may_exclude_each_other(tmp_path: Path, monkeypatch: Any) -> None:
    """A likelihood region of rates and one interval for each: a finding about the data."""
    (lam,) = (box := tr.Parameters.box(lam=(0.01, 10))).symbols()
    model = tr.build_ctmc_from_rows([(0, {1: lam}), (1, {0: 2 * lam + 1})], box, labels={"on": [1]})
    log = tr.simulate_times(model.instantiate(lam=2), 40, seed=1, time=50)
    for region, error in (("likelihood", CannotCertify), ("polytope", Disagreement)):
        result = tr.learn(tr.Problem(model, 'S=? [ "on" ]'), log, delta=0.05, region=region)
        with monkeypatch.context() as patch:
            patch.setattr(made, "learned_rate_certificate", moved(made.learned_rate_certificate))
            with pytest.raises(error):
                tr.certify(result, tmp_path / "rates.cert")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("said", "claimed", "agrees"),
    [
        ((0.25, 0.5), (0.5, 0.75), True),
        ((0.25, 0.5), (0.5000000000000001, 0.75), False),
        ((1.0, 1.0), (0.0, 1e-13), False),
        ((0.0, 1.0), (0.3, 0.3), True),
        ((float("inf"), float("inf")), (7.0, float("inf")), True),
        ((float("inf"), float("inf")), (7.0, 8.0), False),
        ((0.0, 1.0), (float("nan"), 1.0), False),
    ],
)
def test_two_intervals_of_one_value_meet(
    said: tuple[float, float], claimed: tuple[float, float], agrees: bool
) -> None:
    proof = stands(Claim("value", "free", *claimed))
    if agrees:
        require_agreement(proof, shown_value(said))
        return
    with pytest.raises(Disagreement):
        require_agreement(proof, shown_value(said))


def stands(claim: Claim) -> Any:
    """Of a certificate the claims alone."""
    return type("Claimed", (), {"claims": (claim,)})()


def test_what_is_true_or_false_says_on_which_side_the_value_lies() -> None:
    model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})], labels={"end": [1]})
    for text, truth, above in (
        ('P>=0.4 [ F "end" ]', "true", True),
        ('P>0.4 [ F "end" ]', "false", False),
        ('P<0.4 [ F "end" ]', "true", False),
        ('P<=0.4 [ F "end" ]', "false", True),
    ):
        shown = shown_value(None, truth, tr.Problem(model, text).query)
        require_agreement(stands(Claim("value", "free", 0.4, 0.4)), shown)
        high, low = (stands(Claim("value", "free", end, end)) for end in (0.5, 0.3))
        require_agreement(high if above else low, shown)
        with pytest.raises(Disagreement):
            require_agreement(low if above else high, shown)


def test_an_answer_about_nothing_that_is_claimed_is_no_comparison() -> None:
    with pytest.raises(Disagreement, match="claims value, and the answer is about difference"):
        require_agreement(stands(Claim("value", "free", 0.0, 1.0)), Shown({"difference": Interval(0.0, 1.0)}))


def test_no_file_is_written_past_the_comparison() -> None:
    """`as_file` is called where answers are compared; of a policy that draws there is no other answer. The
    three answers of a fleet are those of its certificate, which is verified first."""
    source = Path(tr.__file__).parent
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"(?<!def )\bas_file\(", path.read_text())
    }
    assert found == {"certify/certificate_file.py", "fleet/__init__.py"}


def test_one_function_asks_whether_data_refute_the_model() -> None:
    """Before a certificate is written it is `why_refuted`, for the library and every command; `verify` tests
    the user's own data, and `watch` writes none."""
    source = Path(tr.__file__).parent
    files = [path for name in ("certify", "cli", "fleet") for path in (source / name).glob("*.py")]
    asking = {path.relative_to(source).as_posix() for path in files if ".is_refutation" in path.read_text()}
    assert asking == {"certify/certify.py", "certify/comparison.py", "cli/watch.py"}


SYNCHRONISED = """mdp
module a
 x : [0..2] init 0;
 [go] x=0 -> [0.2,0.6] : (x'=1) + [0.4,0.8] : (x'=2);
 [back] x>0 -> (x'=0);
endmodule
module b
 y : [0..2] init 0;
 [go] y=0 -> [0.3,0.7] : (y'=1) + [0.3,0.7] : (y'=2);
 [back] y>0 -> (y'=0);
endmodule
label "same" = x=y & x>0;
"""


@pytest.mark.parametrize("nature", ["max", "min"])
def test_synchronised_intervals_are_compared_on_one_side(
    nature: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """The answer is factor by factor, the certificate about products of bounds: further where nature wants
    it, and never the other way."""
    (tmp_path / "m.prism").write_text(SYNCHRONISED)
    target = tmp_path / "a.cert"
    asked = f'Pmax{nature}=? [ (X "same") & (X X true) ]'
    command = ["check", str(tmp_path / "m.prism"), "--prop", asked, "--certificate", str(target), "--json"]
    assert run(command) == 0
    answer = json.loads(capsys.readouterr().out)
    ((low, high),) = [(one.lower, one.upper) for one in load(target).certificate.claims]
    if nature == "max":
        assert low > answer["upper"]
    else:
        assert high < answer["lower"]
    place = __import__("tightrope.certify.solved", fromlist=["composed_certificate"])
    make, shift = place.composed_certificate, 0.3 if nature == "min" else -0.3

    def wrong(*arguments: Any, **words: Any) -> Any:
        proof = make(*arguments, **words)
        moved = replace(proof.claims[0], lower=answer["lower"] + shift, upper=answer["upper"] + shift)
        return replace(proof, claims=(moved,))

    monkeypatch.setattr(place, "composed_certificate", wrong)
    target.unlink()
    assert run(command) == INTERNAL_ERROR and not target.exists()


def test_a_slab_without_evidence_is_certified(tmp_path: Path) -> None:
    """Nothing is seen after the pilot: the region is the whole domain, and no point was cut at."""
    (p,) = (box := tr.Parameters.box(p=("0.1", "0.9"))).symbols()
    rows = [(0, "toss", {1: p, 2: 1 - p}), (0, "pass", {2: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, box, labels={"heads": [1]})
    data = [[(0, "pass", 2)]] * 40
    result = tr.learn(model.problem('Pmax=? [ F "heads" ]'), data, delta=0.05, region="slab")
    assert tuple(tr.certify(result, tmp_path / "a.cert")["robust policy"]) == pytest.approx((0.1, 0.9))
    assert tr.verify(tmp_path / "a.cert").valid


def test_verify_takes_what_a_policy_is_made_of(tmp_path: Path) -> None:
    rows = [(0, "go", {0: 0.5, 1: 0.5}), (0, "stay", {0: 1}), (1, "", {1: 1})]
    problem = tr.build_from_rows(rows, labels={"end": [1]}).problem('Pmax=? [ F "end" ]')
    model, path = problem.model, tmp_path / "a.cert"
    tr.certify(problem, path, policy={0: "go"})
    for policy in ({0: "go"}, np.array([1.0, 0.0, 1.0])):
        assert tr.verify(path, model=model, policy=policy).bound["policy"]
    with pytest.raises(CannotCertify, match="about other policies than the given one"):
        tr.verify(path, model=model, policy=np.array([0.0, 1.0, 1.0]))
    for wrong in (np.zeros(7), "nonsense.json"):
        with pytest.raises(tr.InputError):
            tr.verify(path, model=model, policy=wrong)


@pytest.mark.long
def test_the_battery_finds_no_contradiction(tmp_path: Path) -> None:
    finished = run_benchmark("agreement_battery.py", "--smoke", "-o", tmp_path / "battery.json")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    rows = json.loads((tmp_path / "battery.json").read_text())
    assert len(rows) == 7 and sum(row["certified"] for row in rows) >= 12
