"""What PRISM's and Storm's users write: older forms, shorter ones, and references between properties.

Also of `prism/parse/digital_clocks.py`.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope import provenance
from tightrope.cli.app import run
from tightrope.logic.model_checking import check_query
from tightrope.prism.load import load_prism_text
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.properties.query import read_query
from tightrope.solver.solution import SolveOptions

pytestmark = pytest.mark.usefixtures("in_python")

MODEL = """mdp
const double p = 0.5^2;
module m
  s : [0..3];
  [a] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [b] s=0 -> 0.5 : true + 0.5 : (s'=3);
  [] s=1 -> 0.5 : (s'=0) + 0.5 : (s'=2);
  [] s=2 -> (s'=0);
  [] s=3 -> true;
endmodule
label "one" = s=1;
label "end" = s=3;
rewards "cost" [a] true : 2; [b] true : 1; endrewards
"""


@pytest.fixture(scope="module")
def model() -> Any:
    return load_prism_text(MODEL)


def answer(model: Any, text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        result = tr.solve(model, text)
    return result.truth or pytest.approx(result.bounds, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Pmax=? [ "one" ]', 0),
        ("Pmax=? [ s=0 ]", 1),
        ('Pmax=? [ Pmax>0.2 [ X "one" ] ]', 1),
        ('Pmax=? [ P>0.2 [ X "one" ] ]', 0),
        ('Pmax=? [ F "one" {"end"} ]', 0),
        ('Pmax=? [ F "one" {s>0}{max} ]', 1),
        ('Pmin=? [ X "one" {s<3}{min} ]', 0),
        ('Rmin=? [ F "end" {s=1} ]', 2),
        ('Smax=? [ "end" {s=1} ]', 1),
        ('Pmax=? [ F^{"cost"}<=3 "end" ]', 0.875),
        ('Pmax=? [ F^{rew{"cost"}<=3} "end" ]', 0.875),
        ('Pmax=? [ F^{steps<=2} "end" ]', 0.75),
        ('Pmax=? [ F<=2 "end" ] ^ 2', 0.5625),
        ("2^3^2", 512),
        ("-2^2", -4),
        ("min(s)", 0),
        ('max(Pmax=? [ F<=2 "end" ])', 0.75),
        ("1.0/0.0", float("inf")),
    ],
)
def test_values(model: Any, text: str, expected: float) -> None:
    assert answer(model, text) == (expected, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('P>=1 [ "one" ]', "false"),
        ('Pmax>=0.1 [ F "one" {s<3} ]', "true"),
        ('Rmax=? [ F "end" ] = 1.0/0.0', "true"),
        ('Rmin<1.0/0.0 [ F "end" ]', "true"),
        ('R<1.0/0.0 [ F "end" ]', "false"),  # of every policy
        ('Rmax>=1.0/0.0 [ F "end" ]', "true"),
    ],
)
def test_truths(model: Any, text: str, expected: str) -> None:
    assert answer(model, text) == expected


def test_a_filter_in_braces_without_a_word_is_about_one_state(model: Any) -> None:
    with pytest.raises(tr.InputError, match="is about one state, but 3 are meant"):
        answer(model, 'Pmax=? [ F "one" {s>0} ]')


def test_properties_name_each_other_and_need_no_semicolon_before_filters(model: Any) -> None:
    text = """const double unused;
      "reach": Pmax=? [ F<=2 "end" ];
      "twice": "reach" * 2
      filter(max, "reach", s<3)
      "one": Pmax=? [ X "one" ];
      "inside": Pmax=? [ F "soon" ]; "soon": Pmax>0.9 [ F<=4 "end" ];
      "round": "about" + 1; "about": "round" + 1; "third": "round" + 1;
    """
    file = parse_properties(text, "properties")

    def bounds(number: int) -> Any:
        query = read_query(file.properties[number], file, model.structure)
        return check_query(query, model.instantiate(), SolveOptions()).bounds

    assert bounds(1) == pytest.approx((1.5, 1.5))
    assert bounds(2) == pytest.approx((0.75, 0.75))
    assert bounds(3) == pytest.approx((0.25, 0.25))  # a label of the model is a label
    assert bounds(4) == pytest.approx((1, 1))
    with pytest.raises(tr.InputError, match="refer to each other in a circle: round → about → round"):
        bounds(8)


def test_time_bounds_do_not_go_with_branching_time(tmp_path: Path) -> None:
    chain = "ctmc module m s : [0..1]; [] s=0 -> 2 : (s'=1); [] s=1 -> 1 : (s'=0); endmodule"
    (tmp_path / "m.prism").write_text(chain)
    with pytest.raises(tr.InputError, match="A and E take no bound on time"):
        tr.solve(tr.Problem(tr.load(tmp_path / "m.prism"), "E [ F<=2 s=1 ]"))


TIMED = """pta
const int D = 2;
module sender
  s : [0..2];
  x : clock;
  invariant (s=0 => x<=D) & (s=1 => x<=5) endinvariant
  [send] s=0 & x>=1 -> 0.7 : (s'=2) + 0.3 : (s'=1)&(x'=0);
  [retry] s=1 & x>=3 -> (s'=0)&(x'=0);
  [] s=2 -> true;
endmodule
label "done" = s=2;
rewards "energy" s=0 : 2; [send] true : 5; endrewards
"""


def test_timed_automata_have_digital_clocks() -> None:
    """Sending waits 1 to 2, a repetition 3 to 5: T = 1 + 0.3 (3 + T), and T = 2 + 0.3 (5 + T) at worst."""
    timed = load_prism_text(TIMED)
    assert answer(timed, 'Pmin=? [ F "done" ]') == (1, 1)
    assert answer(timed, 'R{"time"}min=? [ F "done" ]') == (1.9 / 0.7, 1.9 / 0.7)
    assert answer(timed, 'R{"time"}max=? [ F "done" ]') == (5, 5)
    assert answer(timed, 'R{"energy"}min=? [ F "done" ]') == (10, 10)
    for text, value in [  # one attempt in time, or two: the second ends after 1 + 3 + 1, or 2 + 5 + 2
        ('Pmax=? [ F<=4 "done" ]', 0.7),
        ('Pmax=? [ F<=5 "done" ]', 0.91),
        ('Pmin=? [ F^{rew{"time"}<=8} "done" ]', 0.7),
        ('Pmin=? [ F<=9 "done" ]', 0.91),
        ('Pmax=? [ G<=8 !"done" ]', 0.3),
        ("Pmax=? [ F>=3 s=0 ]", 0.3),
    ]:
        assert answer(timed, text) == (value, value)
    for text, message in [
        ('Pmax=? [ F (F<=3 "done") ]', "of a timed automaton"),
        ('Pmax=? [ F<3 "done" ]', "a bound on time with < or > is not one of digital clocks"),
        ('Pmax=? [ F{"energy"}<=3 "done" ]', "of a timed automaton"),
        ("Pmax=? [ F x>=1 ]", "is a clock"),
    ]:
        with pytest.raises(tr.InputError, match=message):
            answer(timed, text)


def test_rewards_called_time_that_are_not_time_bound_nothing(tmp_path: Path) -> None:
    other = load_prism_text(TIMED + 'rewards "time" s=0 : 2; endrewards')
    with pytest.raises(tr.InputError, match='the rewards "time" of this model are not its time'):
        answer(other, 'Pmax=? [ F<=3 "done" ]')
    file = parse_properties('"a": Pmax=? [ F "done" ]; "b": Pmin=? [ F<=9 "done" ];', "properties")
    timed, chosen = load_prism_text(TIMED), replace(file, chosen=(1,))
    query = read_query(file.properties[1], chosen, timed.structure)
    bounds = check_query(query, timed.instantiate(), SolveOptions()).bounds
    assert bounds == pytest.approx((0.91, 0.91))


def test_time_as_a_reward_of_a_chain_is_its_time(tmp_path: Path) -> None:
    text = "ctmc module m s : [0..1]; [] s=0 -> 2 : (s'=1); [] s=1 -> 1 : (s'=0); endmodule "
    for rewards, expected in (("", 1 - np.exp(-2)), ('rewards "time" true : 1; endrewards', 1 - np.exp(-2))):
        (tmp_path / "m.prism").write_text(text + rewards)
        chain = tr.load(tmp_path / "m.prism")
        assert answer(chain, 'P=? [ F^{rew{"time"}<=1} s=1 ]') == (expected, expected)
    (tmp_path / "m.prism").write_text(text + 'rewards "time" true : 2; endrewards')
    with pytest.raises(tr.InputError, match="bounds on rewards are not supported in continuous") as refused:
        answer(tr.load(tmp_path / "m.prism"), 'P=? [ F^{rew{"time"}<=1} s=1 ]')
    assert "F<=t a ] bounds the time itself" in str(refused.value.hint)


def test_time_as_a_reward_of_a_markov_automaton_is_its_time(tmp_path: Path) -> None:
    """Where nobody gave other rewards of that name."""
    text = "ma module m s : [0..2]; [] s=0 -> (s'=1); [] s=0 -> (s'=2); "
    text += "<> s=1 -> 2 : (s'=2); <> s=2 -> 1 : true; endmodule "
    (tmp_path / "m.prism").write_text(text)
    automaton = tr.load(tmp_path / "m.prism")
    expected = 1 - np.exp(-2)
    assert answer(automaton, 'Pmin=? [ F^{rew{"time"}<=1} s=2 ]') == (expected, expected)
    assert answer(automaton, 'Pmin=? [ F{"time"}<=1 s=2 ]') == (expected, expected)
    (tmp_path / "m.prism").write_text(text + 'rewards "time" true : 2; endrewards')
    with pytest.raises(tr.InputError, match="bounds on rewards are not supported in continuous"):
        answer(tr.load(tmp_path / "m.prism"), 'Pmin=? [ F^{rew{"time"}<=1} s=2 ]')


def test_constants_and_thresholds_of_multi_may_be_infinite() -> None:
    """The reward of `stay` is earned for ever, that of `go` once."""
    rows = [(0, "go", {1: 0.5, 2: 0.5}), (0, "stay", {0: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    rewards = {"stay": [0, 1, 0, 0], "go": [1, 0, 0, 0]}
    model = tr.build_from_rows(rows, labels={"g": [1]}, choice_rewards=rewards)
    file = parse_properties(
        'const double inf = 1.0/0.0; R{"stay"}max>=inf [ C ]; R{"go"}max<inf [ C ];', "properties"
    )
    for one in file.properties:
        query = read_query(one, file, model.structure)
        assert check_query(query, model.instantiate(), SolveOptions()).truth == "true"
    assert answer(model, 'multi(R{"stay"}max>=1.0/0.0 [ C ], P>=0.4 [ F "g" ])') == "true"
    assert answer(model, 'multi(R{"stay"}max>=1.0/0.0 [ C ], P>=0.6 [ F "g" ])') == "false"
    assert answer(model, 'multi(R{"go"}min<=1.0/0.0 [ C ], Pmax=? [ F "g" ])') == (0.5, 0.5)
    for text, why in (
        ('multi(R{"go"}max>=1.0/0.0 [ C ], P>=0.4 [ F "g" ])', "is not infinite, or not so beside costs"),
        ('multi(R{"go"}min<1.0/0.0 [ C ], P>=0.4 [ F "g" ])', "cannot be combined with other objectives"),
        ('multi(R{"go"}min<=1.0/0.0 [ C ])', "every objective of multi"),
        ('multi(P>=1.0/0.0 [ F "g" ], P>=0.4 [ F "g" ])', "division by zero"),
    ):
        with pytest.raises(tr.InputError, match=why):
            answer(model, text)


@pytest.mark.parametrize("guard", ["!(x<=1)", "(x<=1 => s=1)", "(x<=1)=false", "(x<=1 ? false : true)"])
def test_guards_that_turn_closed_comparisons_round_are_refused(guard: str) -> None:
    """`!(x<=1)` is `x>1`: open, and digital clocks would take it as x>=2."""
    with pytest.raises(tr.InputError, match="where it is negated"):
        load_prism_text(TIMED.replace("s=0 & x>=1", f"s=0 & {guard}"))


TWO_CLOCKS = """pta
module M s : [0..1]; x : clock; y : clock; [] s=0 & x>=1 -> (s'=1)&(x'=0); [] s=1 -> true; endmodule
"""
OTHER_CLOCK = TIMED + "module receiver = sender [ s=t, x=y ] endmodule "


@pytest.mark.parametrize(
    "text",
    [
        'label "t" = s=1 & x>=10; Pmax=? [ F "t" ]',
        'label "t" = "u"; label "u" = s=1 & x=y; Pmax=? [ F "t" ]',
        '"late": P>=0.5 [ F x>=2 ]; "all": Pmax=? [ F "late" ]',
        "filter(max, Pmax=? [ F s=1 ], x>=3)",
        'label "t" = P>=0.5 [ F x>=2 ]; Pmax=? [ F "t" ]',
        "multi(Pmax=? [ F x>=2 ], P>=0.5 [ F s=1 ])",
    ],
)
def test_a_property_that_refers_to_a_clock_is_refused_wherever_it_does(text: str) -> None:
    """A clock stops at one more than what its module compares it with: [0, 0] was proved where 1 is right."""
    timed = load_prism_text(TWO_CLOCKS)
    file = parse_properties(text, "properties")
    with pytest.raises(tr.InputError, match="is a clock, which counts only as far"):
        query = read_query(file.properties[-1], file, timed.structure)
        check_query(query, timed.instantiate(), SolveOptions())


@pytest.mark.parametrize("ending", ["drn", "jani", "umb", "tra"])
def test_files_of_timed_automata_keep_which_variables_are_clocks(tmp_path: Path, ending: str) -> None:
    """Read back, `F x>=10` was proved to be impossible, as the file's x stops at 2."""
    model = load_prism_text(TWO_CLOCKS).instantiate()
    for number in range(2):  # written, read and written again
        model.save(tmp_path / f"m{number}.{ending}")
        model = tr.load(tmp_path / f"m{number}.{ending}")
        with pytest.raises(tr.InputError, match="'x' is a clock, which counts only as far"):
            tr.solve(model, "Pmax=? [ F x>=10 ]")
        assert tr.solve(model, "Pmax=? [ F s=1 ]").bounds == (1, 1)


def test_lines_that_mark_files_never_change() -> None:
    """Files of earlier versions are read by them: without its mark a clock would be a plain variable."""
    assert provenance.CLOCK == "// clock, which counts no further than the model looks:"
    assert provenance.MEAN == "// mean over successors, earned in no play:"
    assert provenance.NAMED == "// successors from data:"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OTHER_CLOCK + 'label "late" = y>=9;', "clock 'y' stands in labels, formulas, rewards"),
        (OTHER_CLOCK + "module m v : [0..1]; [] y>=1 -> (v'=1); endmodule", "guards of other modules"),
        (TIMED + 'rewards "r" s=1 : x; endrewards', "clock 'x' stands in labels, formulas, rewards"),
        (TIMED.replace("(s'=0)&", "(s'=min(2,x))&"), "clock 'x' stands in updates"),
        (TIMED.replace("0.7 : (s'=2) + 0.3", "x/10 : (s'=2) + 1-x/10"), "clock 'x' stands in updates"),
        (TIMED + "module m v : [0..1]; [time] v=0 -> (v'=1); endmodule", "the action 'time'"),
        (TIMED + "module receiver = sender [ s=t, x=y, send=time ] endmodule ", "the action 'time'"),
        (TIMED + "module receiver = sender [ s=t, x=y, time=tick ] endmodule ", "the action 'time'"),
        (OTHER_CLOCK + "system sender ||| receiver endsystem", "share the passage of time"),
        (OTHER_CLOCK + "system sender || receiver / { time } endsystem", "share the passage of time"),
        (TIMED + "module c n : [0..3]; endmodule module q = sender [ s=t, x=y, s=y ] endmodule", "twice"),
        (
            TIMED.replace("s=1 & x>=3", "s=1 & x>=3 & n<=9")
            + "module c n : [0..3]; endmodule module q = sender [ s=t, x=y, n=y ] endmodule",
            "'n' becomes the clock 'y'",
        ),
    ],
)
def test_a_clock_stands_in_guards_of_its_module_alone(text: str, message: str) -> None:
    """In the copies of renamed modules, in updates and in rewards, too."""
    with pytest.raises(tr.InputError, match=message):
        load_prism_text(text)


def test_time_passes_for_all_clocks_in_a_composition() -> None:
    composed = load_prism_text(OTHER_CLOCK + 'label "both" = s=2 & t=2; system sender || receiver endsystem')
    assert answer(composed, 'Pmax=? [ F<=2 "both" ]') == (0.49, 0.49)
    with pytest.raises(tr.InputError, match="of a timed automaton"):
        file = parse_properties('label "soon" = P>=0.5 [ F<=2 "both" ]; Pmax=? [ F "soon" ]', "p")
        read_query(file.properties[0], file, composed.structure)


WALK = """dtmc
module m s : [0..3]; n : [0..2];
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2); [] s=1 -> (s'=3); [] s=2 -> 0.5 : (s'=0) + 0.5 : (s'=3);
  [] s=3 -> true;
endmodule
label "a" = s<=1; label "b" = s=3;
rewards s<3 : 1; endrewards
"""


@pytest.mark.parametrize("bound", ["<=2", "[1,2]", ">=1", ">1", "[2,3]"])
def test_a_bounded_weak_until_is_the_complement_of_an_until_with_its_bounds(bound: str) -> None:
    """As in PRISM, alone and inside a larger formula."""
    walk = load_prism_text(WALK)
    until = tr.solve(walk, f'P=? [ ("a" & !"b") U{bound} (!"a" & !"b") ]').lower[0]
    assert answer(walk, f'P=? [ "a" W{bound} "b" ]') == (1 - until, 1 - until)
    assert answer(walk, f'P=? [ ("a" W{bound} "b") & (F true) ]') == (1 - until, 1 - until)
    later = f'P=? [ X (X ("a" W{bound} "b")) ]', f'P=? [ !(X (X (("a" & !"b") U{bound} (!"a" & !"b")))) ]'
    assert answer(walk, later[0]).expected == pytest.approx(answer(walk, later[1]).expected)
    chain = load_prism_text(WALK.replace("dtmc", "ctmc"))
    until = tr.solve(chain, f'P=? [ ("a" & !"b") U{bound} (!"a" & !"b") ]').lower[0]
    assert answer(chain, f'P=? [ "a" W{bound} "b" ]') == (1 - until, 1 - until)


@pytest.mark.parametrize(
    ("text", "value"),
    [('R=? [ "a" ]', 0), ("R=? [ s=3 ]", np.inf), ("R=? [ true ]", 0), ("R=? [ false ]", np.inf)],
)
def test_a_state_formula_as_a_path_of_rewards_is_decided_at_once(text: str, value: float) -> None:
    """Of co-safe formulas: nothing is earned until it holds, and it never holds later."""
    assert answer(load_prism_text(WALK), text) == (value, value)


def test_powers_of_results_and_of_parameters_depend_on_the_state() -> None:
    walk = load_prism_text(WALK)
    half = "P=? [ X s=1 ]"
    assert answer(walk, f"filter(sum, pow(0.25+{half}, s))") == tuple([1 + 0.25 + 0.25**2 + 0.25**3] * 2)
    assert answer(walk, f"filter(max, pow(0.25+{half}, -s))") == (64, 64)
    with pytest.raises(tr.InputError, match="whole number from -1000 to 1000"):
        answer(walk, f"filter(max, pow({half}, s/2))")
    text = "dtmc const double p; module m s : [0..1]; n : [0..3]; [] s=0 & n<3 -> pow(p,-n)/8 : (s'=1) "
    text += "+ 1-pow(p,-n)/8 : (n'=n+1); [] s=1 | n=3 -> true; endmodule"
    model = load_prism_text(text, box="p=0.36:0.6")
    expected = 1 - (1 - 1 / 8) * (1 - 2.5 / 8) * (1 - 6.25 / 8)  # it was proved to be 1 − (7/8)³
    found = tr.solve(tr.Problem(model, "P=? [ F s=1 ]").at(p=0.4)).bounds
    assert found == pytest.approx((expected, expected))


def test_compositions_have_names() -> None:
    modules = "".join(
        f"module {name} {v}:[0..1]; [go] {v}=0 -> ({v}'=1); [] {v}=1 -> true; endmodule\n"
        for name, v in (("a", "s"), ("b", "t"), ("c", "u"))
    )
    named = 'system "ab" a || b endsystem system "ab" ||| c endsystem'
    assert load_prism_text(f"mdp\n{modules}{named}").states == 4
    assert load_prism_text(f"mdp\n{modules}system (a || b) ||| c endsystem").states == 4


def test_older_files_and_other_endings_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Latin-1 where a file is not UTF-8, `.ma`, `info` of a Markov automaton, a quotient of quotients."""
    chain = (
        "dtmc // \xe9t\xe9\nconst double p; module m s : [0..1]; [] s=0 -> p : (s'=1) + 1-p : true; endmodule"
    )
    (tmp_path / "old.prism").write_text(chain, encoding="latin-1")
    (tmp_path / "old.props").write_text("P=? [ X s=1 ] // \xe9", encoding="latin-1")
    given = [str(tmp_path / "old.prism"), "--prop", str(tmp_path / "old.props")]
    assert run(["check", *given, "--const", "p=3/2/6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lower"] == pytest.approx(0.25)
    assert run(["check", *given, "--const", "p=3/0/6"]) == 2
    automaton = "ma module m s : [0..1]; <> s=0 -> 2 : (s'=1); [] s=1 -> (s'=0); endmodule"
    (tmp_path / "small.ma").write_text(automaton)
    assert run(["info", str(tmp_path / "small.ma"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["type"], facts["states"], facts["transitions"]) == ("Markov automaton", 2, 2)
