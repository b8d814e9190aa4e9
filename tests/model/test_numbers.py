"""Numbers of files at the model's door: what a double would change is refused with its place, or read right.

Each case was once answered with a value that is false about the file.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.model.numbers import bound, double, show
from tightrope.prism.load import load_prism_text

pytestmark = pytest.mark.usefixtures("in_python")

REACH = 'Pmax=? [ F "goal" ]'
ROBUST = 'Pmaxmin=? [ F "goal" ]'
EARN = 'Rmax=? [ F "goal" ]'
TINY_REWARD = "rewards s=0 : 1e-400; endrewards"
HALVES = "0.5 : (s'=1) + 0.5 : (s'=0)"


def prism(updates: str, more: str = "", kind: str = "mdp", before: str = "") -> str:
    return (
        f"{kind} {before} module m s : [0..3];\n[a] s=0 -> {updates};\n[] s>0 -> 1:true;\nendmodule\nlabel "
        f'"goal" = s=1;\n{more}'
    )


def check(path: Path, prop: str, *more: str) -> tuple[int, dict[str, object], str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["check", str(path), "--prop", prop, "--json", *more])
    return code, json.loads(out.getvalue()) if out.getvalue() else {}, err.getvalue()


def refused(path: Path, prop: str, words: str, place: str | None, *more: str) -> None:
    """Exit code 2, the value in words, and the place behind the name of the file."""
    code, _, message = check(path, prop, *more)
    assert code == 2, message
    assert words in message
    if place is not None:
        assert re.search(rf"error: \S+\.\w+:{place}: ", message), message


TOGETHER = """mdp
module a x : [0..1];
  [go] x=0 -> {0} : (x'=1) + {1} : (x'=0);
endmodule
module b y : [0..1];
  [go] y=0 -> {0} : (y'=1) + {1} : (y'=0);
endmodule
label "goal" = x=1 & y=1;
"""

PROGRAMS = [
    ("interval", prism("[1e-400,0.5] : (s'=1) + [0.5,1] : (s'=0)"), ROBUST, "2:12"),
    ("product", prism("[1e-200*1e-200,0.5] : (s'=1) + [0.5,1] : (s'=0)"), ROBUST, "2:12"),
    ("interval near 1", prism("[0,1-1e-20] : (s'=0) + [0,1] : (s'=1)"), ROBUST, "2:12"),
    ("denormal", prism("5e-324 : (s'=1) + 7e-324 : (s'=2) + 1-12e-324 : (s'=0)"), REACH, "2:12"),
    ("probability", prism("1e-400 : (s'=1) + 1-1e-400 : (s'=0)"), REACH, "2:12"),
    ("power", prism("pow(0.5,2000) : (s'=1) + 1-pow(0.5,2000) : (s'=0)"), REACH, "2:12"),
    ("together", TOGETHER.format("1e-200", "1-1e-200"), REACH, "3:3"),
    ("intervals together", TOGETHER.format("[1e-200,0.5]", "[0.5,1]"), ROBUST, "6:3"),
    ("reward", prism(HALVES, TINY_REWARD), EARN, "6:9"),
    ("large reward", prism(HALVES, "rewards s=0 : 1e300*1e300; endrewards"), EARN, "6:9"),
    (
        "rewards that cancel",
        prism(HALVES, "rewards s=0 : 1; [a] true : -0.99999999999999999999; endrewards"),
        EARN,
        "6:9",
    ),
    ("rate", prism("1e-400 : (s'=1)", kind="ctmc"), 'P=? [ F "goal" ]', "2:12"),
    ("quotient", prism("1e-200 : (s'=1) + 1e200 : (s'=2)", kind="ctmc"), 'P=? [ F "goal" ]', None),
    ("rate reward", prism("1 : (s'=1)", TINY_REWARD, kind="ctmc"), 'R=? [ F "goal" ]', "6:9"),
]


@pytest.mark.parametrize(("name", "text", "prop", "place"), PROGRAMS, ids=[case[0] for case in PROGRAMS])
def test_programs(tmp_path: Path, name: str, text: str, prop: str, place: str | None) -> None:
    path = tmp_path / "m.prism"
    path.write_text(text)
    code, _, message = check(path, prop)
    assert code == 2, message
    assert any(words in message for words in ("too small", "too large", "misses 1", "miss 1", "cancel"))
    if place is not None:
        assert f"m.prism:{place}: " in message


def test_the_average_of_commands(tmp_path: Path) -> None:
    """A Markov chain draws among two commands: half of a number that is just large enough."""
    path = tmp_path / "m.prism"
    more = "rewards [a] true : pow(2.0,-1022); endrewards"
    path.write_text(prism("(s'=1)", more, kind="dtmc").replace("[] s>0", "[b] s=0 -> (s'=1); [] s>0"))
    refused(path, 'R=? [ F "goal" ]', "1.11254e-308 is not 0, but too small", "6:9")


@pytest.mark.parametrize("option", ["--at", "--const"])
def test_points_and_constants(tmp_path: Path, option: str) -> None:
    path = tmp_path / "m.prism"
    path.write_text(prism("p : (s'=1) + 1-p : (s'=0)", before="const double p;"))
    refused(
        path,
        REACH,
        "1e-400 is not 0, but too small",
        "2:12" if option == "--const" else None,
        option,
        "p=1e-400",
    )
    path.write_text(prism("p*p : (s'=1) + 1-p*p : (s'=0)", before="const double p;"))
    refused(path, REACH, "1e-400 is not 0, but too small", None, option, "p=1e-200")
    path.write_text(prism(HALVES, "rewards s=0 : p; endrewards", before="const double p;"))
    refused(path, EARN, "1e-400 is not 0, but too small", None, option, "p=1e-400")


def test_thresholds_are_compared_exactly(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(prism("(s'=2)"))
    assert check(path, 'Pmax>=1e-400 [ F "goal" ]')[1]["answer"] == "false"
    path.write_text(prism("(s'=1)"))
    assert check(path, 'Pmax>0.99999999999999999999 [ F "goal" ]')[1]["answer"] == "true"
    assert check(path, 'Pmax<=0.99999999999999999999 [ F "goal" ]')[1]["answer"] == "false"


def drn(rows: list[str], kind: str, reward: str = "", choice: str = "", parameters: str = "") -> str:
    one = "[1, 1]" if "interval" in kind else "1"
    names = "r" if reward else ""
    head = f"@type: MDP\n@value_type: {kind}\n@parameters\n{parameters}\n@reward_models\n{names}\n"
    body = "".join(f"{row}\n" for row in rows)
    loops = "".join(f"state {s}{label}\naction a\n{s} : {one}\n" for s, label in ((1, " goal"), (2, "")))
    return f"{head}@nr_states\n3\n@model\nstate 0{reward} init\naction a{choice}\n{body}{loops}"


FILES = [
    (drn(["0 : [0.5,1]", "1 : [1e-400,0.5]"], "double-interval"), ROBUST, "13:5"),
    (drn(["0 : [0.5,1]", "1 : [1e-400,0.5]"], "rational-interval"), ROBUST, "13:5"),
    (drn(["0 : [0, 0.99999999999999999]", "1 : [0,1]"], "double-interval"), ROBUST, "12:5"),
    (drn(["0 : [0, 0.99999999999999999]", "1 : [0,1]"], "rational-interval"), ROBUST, "12:5"),
    (drn(["0 : 0.99999999999999999", "1 : [0,1]"], "double-interval"), ROBUST, "12:1"),
    (drn(["0 : [0,0.3]", "1 : [0,1]", "2 : [0,0.69999999999999999]"], "rational-interval"), ROBUST, "12:1"),
    (drn(["0 : 1", "1 : 1e-400"], "double"), REACH, "13:5"),
    (drn(["0 : 1", "1 : 5e-324"], "double"), REACH, "13:5"),
    (drn(["0 : 1", "1 : 1/1e400"], "double"), REACH, "13:5"),
    (drn(["0 : 1-1e-400", "1 : 1e-400"], "rational"), REACH, "13:5"),
    (drn(["0 : 1-1e-400*p", "1 : 1e-400*p"], "parametric", parameters="p"), REACH, "12:5"),
    (drn(["0 : 0.5", "1 : 0.5"], "double", " [1e-400]"), EARN, "10:10"),
    (drn(["0 : 0.5", "1 : 0.5"], "rational", " [1e-400]"), EARN, "10:10"),
    (drn(["0 : 0.5", "1 : 0.5"], "double", " [1]", " [-0.99999999999999999999]"), EARN, "11:1"),
]


@pytest.mark.parametrize(("text", "prop", "place"), FILES)
def test_drn(tmp_path: Path, text: str, prop: str, place: str) -> None:
    path = tmp_path / "m.drn"
    path.write_text(text)
    refused(path, prop, f"m.drn:{place}: ", place)


@pytest.mark.parametrize("kind", ["double-interval", "rational-interval"])
def test_bounds_that_sum_to_1_leave_nothing(tmp_path: Path, kind: str) -> None:
    """0.3 + 0.7 is 1, and less than 1 as doubles: nature may avoid the goal, or must."""
    path = tmp_path / "m.drn"
    path.write_text(drn(["0 : [0,0.3]", "1 : [0,1]", "2 : [0,0.7]"], kind))
    code, found, _ = check(path, ROBUST)
    assert code == 0 and found["lower"] == found["upper"] == 0
    path.write_text(drn(["0 : [0.3,0.5]", "1 : [0,1]", "2 : [0.7,0.9]"], kind))
    code, found, _ = check(path, 'Pmaxmax=? [ F "goal" ]')
    assert code == 0 and found["lower"] == found["upper"] == 0
    model = tr.load(str(path))
    assert np.all(model.upper[[1]] == 0)


ROWS = "3 3 4\n0 0 0 {0}\n0 0 1 {1}\n1 0 1 1\n2 0 2 1\n"
EXPLICIT = [
    (ROWS.format("[0.5,1]", "[1e-400,0.5]"), ROBUST, {}, "m.tra:3:7"),
    (ROWS.format("[0,0.99999999999999999]", "[0,1]"), ROBUST, {}, "m.tra:2:7"),
    (ROWS.format("1", "1e-400"), REACH, {}, "m.tra:3:7"),
    (ROWS.format("0.5", "0.5"), EARN, {"srew": "3 1\n0 1e-400\n"}, "m.srew:2:3"),
    (ROWS.format("0.5", "0.5"), EARN, {"trew": "3 3 1\n0 0 1 1e-400\n"}, "m.trew:2:7"),
    (ROWS.format("1", "1e-200"), EARN, {"trew": "3 3 1\n0 0 1 1e-200\n"}, "m.trew:2:1"),
    (
        ROWS.format("0.5", "0.5"),
        EARN,
        {
            "srew": "3 1\n0 1\n",
            "trew": "3 3 2\n0 0 0 -0.99999999999999999999\n0 0 1 -0.99999999999999999999\n",
        },
        "m.trew",
    ),
]


@pytest.mark.parametrize(("text", "prop", "more", "place"), EXPLICIT)
def test_explicit_files(tmp_path: Path, text: str, prop: str, more: dict[str, str], place: str) -> None:
    (tmp_path / "m.tra").write_text(text)
    (tmp_path / "m.lab").write_text('0="init" 1="goal"\n0: 0\n1: 1\n')
    for suffix, content in more.items():
        (tmp_path / f"m.{suffix}").write_text(content)
    refused(tmp_path / "m.tra", prop, f"{place}: ", None)


def test_rewards_that_cancel_on_average(tmp_path: Path) -> None:
    """0.9 · 1 − 0.1 · 9 is 0; 0.5 · 1 − 0.5 · 0.99999999999999999999 is not."""
    (tmp_path / "m.lab").write_text('0="init" 1="goal"\n0: 0\n1: 1\n')
    (tmp_path / "m.tra").write_text(ROWS.format("0.9", "0.1"))
    (tmp_path / "m.trew").write_text("3 3 2\n0 0 0 1\n0 0 1 -9\n")
    assert tr.load(str(tmp_path / "m.tra")).rewards[""].choice.tolist() == [0, 0, 0]
    (tmp_path / "m.tra").write_text(ROWS.format("0.5", "0.5"))
    (tmp_path / "m.trew").write_text("3 3 2\n0 0 0 1\n0 0 1 -0.99999999999999999999\n")
    assert tr.load(str(tmp_path / "m.tra")).rewards[""].choice[0] == 5e-21


def test_jani(tmp_path: Path) -> None:
    """The same programs, written as JANI."""
    path = tmp_path / "m.jani"
    location = {"name": "l"}
    edge = {
        "location": "l",
        "guard": {"exp": {"op": "=", "left": "s", "right": 0}},
        "destinations": [
            {"location": "l", "probability": {"exp": "TINY"}, "assignments": [{"ref": "s", "value": 1}]},
            {"location": "l", "probability": {"exp": {"op": "-", "left": 1, "right": "TINY"}}},
        ],
    }
    content = {
        "jani-version": 1,
        "name": "m",
        "type": "mdp",
        "variables": [
            {"name": "s", "type": {"kind": "bounded", "base": "int", "upper-bound": 1}, "initial-value": 0}
        ],
        "automata": [{"name": "a", "locations": [location], "initial-locations": ["l"], "edges": [edge]}],
        "system": {"elements": [{"automaton": "a"}]},
    }
    text = json.dumps(content)
    path.write_text(text.replace('"TINY"', "1e-400"))
    refused(path, "Pmax=? [ F s=1 ]", "1e-400 is not 0, but too small", None)
    for number in ("1e-999999999", "1e999999999", "1" * 5000):
        path.write_text(text.replace('"TINY"', number))
        refused(path, "Pmax=? [ F s=1 ]", "digits", None)


@pytest.mark.parametrize("text", ["0x1p-3", "1_0e-1", "nan", "inf", "٠.٥", "0.5f", "1e", "½", "1e999999999"])
def test_what_is_no_number(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.drn"
    path.write_text(drn(["0 : 0.5", f"1 : {text}"], "double"))
    refused(path, REACH, f"'{text}'", "13:5")


@pytest.mark.parametrize("rate", ["[0,1]", "nan", "1e999999999", "2.5+"])
def test_exit_rates(tmp_path: Path, rate: str) -> None:
    path = tmp_path / "m.drn"
    path.write_text(f"@type: CTMC\n@nr_states\n1\n@model\nstate 0 !{rate} init\naction a\n0 : 2.5\n")
    with pytest.raises(InputError, match=r"the exit rate .* of state 0"):
        tr.load(str(path))


def test_umb_files(tmp_path: Path) -> None:
    rows = [(0, "a", {0: 0.5, 1: 0.5}), (1, "a", {1: 1})]
    model = tr.build_from_rows(rows, state_rewards={"r": [1, 0]}).instantiate()
    tiny = np.array([1.0, 2.0**-1074, 1.0])
    tr.MDP(model.structure, tiny).save(tmp_path / "m.umb")
    with pytest.raises(InputError, match="denormal"):
        tr.load(str(tmp_path / "m.umb"))


Builder = Callable[[], object]
BUILT: list[tuple[Builder, str]] = [
    (lambda: tr.build_from_rows([(0, "", {0: "1e-400", 1: (0, 1)}), (1, "", {1: 1})]), "1e-400"),
    (
        lambda: tr.build_from_rows([(0, "", {0: (0, 1 - Fraction(1, 10**20)), 1: (0, 1)}), (1, "", {1: 1})]),
        "1e-20",
    ),
    (
        lambda: tr.build_from_rows([(0, "", {0: "1e-400", 1: 1 - Fraction(1, 10**400)}), (1, "", {1: 1})]),
        "1e-400",
    ),
    (lambda: tr.build_from_rows([(0, "", {0: 1})], state_rewards={"r": ["1e-400"]}), "1e-400"),
    (lambda: tr.build_from_rows([(0, "", {0: 1})], choice_rewards={"r": [5e-324]}), "denormal"),
    (lambda: tr.build_from_rows([(0, "", {0: 1})], choice_rewards={"r": [Fraction(10**400)]}), "too large"),
    (
        lambda: tr.build_from_rows(
            [(0, "", {0: 1})], state_rewards={"r": [1]}, choice_rewards={"r": ["-0.99999999999999999999"]}
        ),
        "cancel",
    ),
    (lambda: tr.from_arrays(np.array([[[1.0, 5e-324], [0.0, 1.0]]])), "denormal"),
    (
        lambda: tr.from_arrays(
            np.array([[[1.0, 1e-200], [0.0, 1.0]]]), np.array([[[0.0, 1e-200], [0.0, 0.0]]])
        ),
        "1e-400",
    ),
    (lambda: tr.build_ctmc_from_rows([(0, {1: "1e-400"}), (1, {1: 1})]), "1e-400"),
]


@pytest.mark.parametrize(("build", "words"), BUILT)
def test_builders(build: Builder, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        build()


def test_numbers_that_are_held() -> None:
    assert double(Fraction(1, 10**300)) == 1e-300
    assert bound(Fraction(1, 10), -1e9) == 0.09999999999999999
    assert bound(Fraction(1, 10), 1e9) == 0.1
    assert show(Fraction(-3, 10**500)) == "-3e-500"
    model = load_prism_text(prism("1e-300 : (s'=1) + 1-1e-300 : (s'=0)"))
    assert 1e-300 in model.instantiate().probability


def test_wide_integers_stay_exact() -> None:
    """2⁶³ beside a negative number is no double on the way."""
    text = prism(HALVES, "rewards true : s=0 ? 9223372036854775809 - 9223372036854775808 : -1; endrewards")
    model = load_prism_text(text)
    assert model.rewards[""].state.tolist() == [1.0, -1.0]
