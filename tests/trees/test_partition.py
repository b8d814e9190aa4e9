"""Parts of a domain: every verdict against values in closed form, and what is refused."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.solver.solution import FALSE, OPEN, TRUE
from tightrope.trees.partition import Partition

GAME = """dtmc
const double p;
const double q;
module game
  s : [0..3] init 0;
  [] s=0 -> p : (s'=1) + 1-p : (s'=0);
  [] s=1 -> q : (s'=2) + (1-q)*p : (s'=3) + (1-q)*(1-p) : (s'=0);
  [] s>=2 -> true;
endmodule
label "goal" = s=2;
rewards "steps" s<2 : 1; endrewards
"""
CHOICE = """mdp
const double p;
const double q;
module choice
  s : [0..2] init 0;
  [left] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [right] s=0 -> q : (s'=1) + 1-q : (s'=2);
  [] s>0 -> true;
endmodule
label "goal" = s=1;
"""
FOUR = """mdp
const double p;
const double q;
const double r;
const double t;
module four
  s : [0..4] init 0;
  [left] s=0 -> p : (s'=1) + 1-p : (s'=4);
  [right] s=0 -> q : (s'=2) + 1-q : (s'=0);
  [on] s=1 -> r : (s'=3) + 1-r : (s'=4);
  [on] s=2 -> t : (s'=3) + 1-t : (s'=4);
  [] s>2 -> true;
endmodule
label "goal" = s=3;
"""
FOREVER = """mdp
const double p;
const double q;
module forever
  s : [0..2] init 0;
  [try] s=0 -> p : (s'=1) + 1-p : (s'=0);
  [bet] s=0 -> q : (s'=1) + 1-q : (s'=2);
  [] s>0 -> true;
endmodule
label "goal" = s=1;
rewards "steps" true : 1; endrewards
"""
QUOTIENT = """dtmc
const double p;
const double q;
module race
  s : [0..2] init 0;
  [] s=0 -> p/(p+q) : (s'=1) + q/(p+q) : (s'=2);
  [] s>0 -> true;
endmodule
label "goal" = s=1;
"""
BOX = {"p": (0.1, 0.9), "q": (0.2, 0.9)}


def wins(p: float, q: float) -> float:
    """The probability that the game is won."""
    return q / (q + (1 - q) * p)


def lasts(p: float, q: float) -> float:
    """Expected steps of the game: W = (1 + p) / (p·(1 − (1 − q)(1 − p)))."""
    return (1 + p) / (p * (1 - (1 - q) * (1 - p)))


def load(text: str, folder: Path, params: dict[str, tuple[float, float]] = BOX) -> tr.ParametricMDP:
    path = folder / "model.prism"
    path.write_text(text, encoding="utf-8")
    model = tr.load(path, params=params)
    assert isinstance(model, tr.ParametricMDP)
    return model


def split(model: tr.ParametricMDP, text: str, share: float = 0.05) -> Partition:
    found = tr.solve(model, text, open_share=share)
    assert isinstance(found, Partition)
    return found


def wrong_points(found: Partition, is_true: Callable[..., bool], points: int = 2000) -> int:
    """Drawn points whose part says otherwise, or that no part holds."""
    draw, wrong = random.Random(1), 0
    for _ in range(points):
        at = [draw.uniform(*BOX.get(name, (0.3, 0.9))) for name in found.names]
        parts = [
            part
            for part in found.parts
            if all(side.lower <= x <= side.upper for side, x in zip(part.box, at, strict=True))
        ]
        truth = {True: TRUE, False: FALSE}[
            is_true(*(at[found.names.index(name)] for name in sorted(found.names)))
        ]
        wrong += not parts or any(part.truth not in (truth, OPEN) for part in parts)
    return wrong


QUESTIONS: list[tuple[str, str, Callable[[float, float], bool]]] = [
    (GAME, 'P>=0.7 [ F "goal" ]', lambda p, q: wins(p, q) >= 0.7),
    (GAME, 'P<0.6 [ F "goal" ]', lambda p, q: wins(p, q) < 0.6),
    (GAME, 'P>0.4 [ G !"goal" ]', lambda p, q: 1 - wins(p, q) > 0.4),
    (GAME, 'P>=0.3 [ F<=2 "goal" ]', lambda p, q: p * q >= 0.3),
    (GAME, 'P>=0.3 [ (F<=2 "goal") & (F s=2) ]', lambda p, q: p * q >= 0.3),
    (GAME, 'R{"steps"}<=4 [ F s>=2 ]', lambda p, q: lasts(p, q) <= 4),
    (CHOICE, 'P>=0.4 [ F "goal" ]', lambda p, q: min(p, q) >= 0.4),
    (CHOICE, 'Pmax>=0.6 [ F "goal" ]', lambda p, q: max(p, q) >= 0.6),
    (CHOICE, 'P<=0.6 [ F "goal" ]', lambda p, q: max(p, q) <= 0.6),
    (FOREVER, 'R{"steps"}max<=3 [ F "goal" ]', lambda p, q: False),
    (FOREVER, 'R{"steps"}min<=3 [ F "goal" ]', lambda p, q: p >= 1 / 3),
    (QUOTIENT, 'P>=0.5 [ F "goal" ]', lambda p, q: p >= q),
]


@pytest.mark.parametrize(
    ("text", "is_true", "most"),
    [
        ('Pmax>=0.5 [ F "goal" ]', lambda p, q, r, t: max(p * r, t) >= 0.5, 200),
        ('P>=0.3 [ F "goal" ]', lambda p, q, r, t: min(p * r, t) >= 0.3, 800),
        ('P<0.5 [ G !"goal" ]', lambda p, q, r, t: 1 - min(p * r, t) < 0.5, 60),
    ],
)
def test_one_policy_decides_parts_of_four_parameters(
    text: str, is_true: Callable[..., bool], most: int, tmp_path: Path
) -> None:
    """Its model holds for many parts: bounds that nature picks at every choice are computed for few."""
    model, lines = load(FOUR, tmp_path, {**BOX, "r": (0.3, 0.9), "t": (0.3, 0.9)}), list[str]()
    found = tr.solve(model, text, open_share=0.2, progress=lines.append)
    assert isinstance(found, Partition)
    assert found.share(OPEN) <= 0.2
    assert wrong_points(found, is_true) == 0
    assert found.enclosures <= most
    assert lines[-1].startswith("solve: ")
    assert "% of the domain open" in lines[-1]


@pytest.mark.parametrize(("model", "text", "is_true"), QUESTIONS)
def test_verdicts_of_parts_agree_with_closed_forms(
    model: str, text: str, is_true: Callable[[float, float], bool], tmp_path: Path
) -> None:
    found = split(load(model, tmp_path), text, 0.06)
    assert found.share(OPEN) <= 0.06
    assert found.share(TRUE) + found.share(FALSE) + found.share(OPEN) == pytest.approx(1)
    assert found.share(FALSE) > 0.05
    assert found.share(TRUE) > 0.05 or text.startswith('R{"steps"}max')
    assert wrong_points(found, is_true) == 0


def test_domains_to_zero_and_one_are_split(tmp_path: Path) -> None:
    """At p = 0 the game never ends: the parts around it are undecided by models alone."""
    model = load(GAME, tmp_path, {"p": (0, 1), "q": (0, 1)})
    found = split(model, 'P>=0.7 [ F "goal" ]', 0.1)
    assert found.share(OPEN) <= 0.1
    whole = 3 / 7 * math.log(10 / 3)  # the area above q = 0.7·p / (0.3 + 0.7·p)
    assert whole - 0.1 <= found.share(TRUE) <= whole
    for part in found.parts:
        inside = [0.5 * (side.lower + side.upper) for side in part.box]
        if part.truth != OPEN:
            assert (part.truth == TRUE) == (wins(*inside) >= 0.7)


def test_no_time_leaves_all_open(tmp_path: Path) -> None:
    found = tr.solve(load(GAME, tmp_path), 'P>=0.7 [ F "goal" ]', open_share=0.01, seconds=0.0)
    assert isinstance(found, Partition)
    assert found.share(OPEN) == 1.0
    assert len(found.parts) == 1


@pytest.mark.parametrize(
    ("text", "params", "words"),
    [
        ('P=? [ F "goal" ]', BOX, "asks for a value"),
        ('S>=0.5 [ "goal" ]', BOX, "one probability or reward"),
        ('P>=0.5 [ F "goal" ]', {"p": (0.5, 0.5), "q": (0.2, 0.2)}, "single point"),
    ],
)
def test_what_cannot_be_split_is_refused(
    text: str, params: dict[str, tuple[float, float]], words: str, tmp_path: Path
) -> None:
    with pytest.raises(tr.InputError, match=words):
        split(load(GAME, tmp_path, params), text)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.05, math.nan, math.inf])
def test_a_share_outside_0_and_1_is_refused(
    share: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(tr.InputError, match="not between 0 and 1"):
        split(load(GAME, tmp_path), 'P>=0.7 [ F "goal" ]', share)
    asked = ("check", str(tmp_path / "model.prism"), "--param", "p=0.1:0.9,q=0.2:0.9")
    assert run([*asked, "--prop", 'P>=0.7 [ F "goal" ]', f"--open={share}"]) == 2
    assert "not between 0 and 1" in capsys.readouterr().err


def test_constraints_between_parameters_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.prism").write_text(GAME, encoding="utf-8")
    model = tr.load(tmp_path / "m.prism", domain="p+q<=1, 0.1<=p")
    with pytest.raises(tr.InputError, match="constraints between parameters"):
        tr.solve(model, 'P>=0.5 [ F "goal" ]', open_share=0.05)


def test_a_formula_that_needs_the_possible_transitions_is_refused_without_advice_that_is_none(
    tmp_path: Path,
) -> None:
    (tmp_path / "m.prism").write_text(GAME, encoding="utf-8")
    model = tr.load(tmp_path / "m.prism", params={"p": (0, 1), "q": (0, 1)})
    with pytest.raises(tr.InputError, match="narrow the domain") as caught:
        tr.solve(model, 'P>=0.5 [ G (F "goal") ]', open_share=0.05)
    assert "assume_support" not in str(caught.value)


def test_check_splits_a_domain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(GAME, tmp_path)
    model, box = str(tmp_path / "model.prism"), "p=0.1:0.9,q=0.2:0.9"
    asked = ("check", model, "--param", box, "--prop", 'P>=0.7 [ F "goal" ]')
    code = run([*asked, "--json", "--open", "10%"])
    answer = json.loads(capsys.readouterr().out)
    assert (code, answer["verdict"], answer["parameters"]) == (0, "proved", ["p", "q"])
    assert answer["holds"] + answer["fails"] + answer["open"] == pytest.approx(1)
    assert answer["open"] <= 0.1
    assert {part["truth"] for part in answer["parts"]} == {"true", "false", "not certified"}
    figure = tmp_path / "parts.svg"
    assert run([*asked, "--figure", str(figure)]) == 0
    out = capsys.readouterr().out
    assert out.startswith('PROVED: P>=0.7 [ F "goal" ] holds on ')
    assert len(out.splitlines()) <= 10
    assert "fails: " in figure.read_text(encoding="utf-8")


def test_time_limit_is_a_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(GAME, tmp_path)
    model = str(tmp_path / "model.prism")
    asked = ("--param", "p=0.1:0.9,q=0.2:0.9", "--prop", 'P>=0.7 [ F "goal" ]')
    code = run(["check", model, *asked, "--time-limit", "1e-9", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert (code, answer["verdict"], answer["open"]) == (1, "limit", 1.0)
    assert answer["why"] == "more than 5% of the domain is open: raise --time-limit or --open"


def test_parts_where_transitions_vanish_are_decided_for_the_models_there() -> None:
    (p,) = (parameters := tr.Parameters.box(p=(0, 1))).symbols()
    rows = [(0, "", {0: p, 1: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"end": [1]}, choice_rewards={"r": [0, 1, 0]})
    found = split(model, "R<1 [ C ]", 0.3)  # 0 at p = 1, infinite elsewhere
    assert {part.truth for part in found.parts if part.box[0].upper == 1.0} == {OPEN}
    assert {part.truth for part in found.parts if part.box[0].upper < 1.0} == {FALSE}
    with pytest.raises(tr.InputError, match="depends on which transitions are possible"):
        split(model, 'P>0.5 [ G F "end" ]')
