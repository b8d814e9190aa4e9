"""Parts of the PRISM language that few models use: compositions, several initial states, unbounded ints."""

from __future__ import annotations

import gzip
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stormpy
from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
from places import TESTS
from prism_reference import choices_of
from tightrope.errors import InputError
from tightrope.io.drn.write import write_drn
from tightrope.io.explicit import write_explicit
from tightrope.io.umb import write_umb
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.modules import compose
from tightrope.prism.load import load_prism_text
from tightrope.prism.parse.parser import parse_model
from tightrope.prism.parse.syntax import ActionRenaming, ModuleName, Parallel

MODELS = TESTS / "models"
COMPOSED = MODELS / "symbolic" / "composed.prism"
"""Storm builds compositions only symbolically, so it is not part of the battery of models."""


# --- system … endsystem -----------------------------------------------------------------------------


def moves(part: Any, own: dict[str, list[tuple[str | None, int]]]) -> tuple[list[Any], set[str]]:
    """What a composition can do, move by move, and its alphabet: the definition, without shortcuts.

    `own` lists the enabled commands of each module; a move is its label and the commands that make it up.
    """
    if isinstance(part, ModuleName):
        listed = [(action, frozenset([(part.name, number)])) for action, number in own[part.name]]
        return listed, {action for action, _ in listed if action}
    if isinstance(part, Parallel):
        (left, left_names), (right, right_names) = moves(part.left, own), moves(part.right, own)
        together = left_names & right_names if part.actions is None else set(part.actions)
        alone = [move for move in (*left, *right) if move[0] not in together]
        joint = [
            (a, ours | theirs) for (a, ours), (b, theirs) in product(left, right) if a == b and a in together
        ]
        return alone + joint, left_names | right_names
    inner, names = moves(part.inner, own)
    assert isinstance(part, ActionRenaming)
    mapping = dict(part.renaming)
    renamed = [(None if a is None else mapping.get(a, a), c) for a, c in inner]
    return renamed, {mapping.get(name, name) for name in names} - {None}


ACTIONS = st.sampled_from("abc")


@st.composite
def compositions(draw: Any, names: tuple[str, ...] = ("m0", "m1", "m2")) -> str:
    if len(names) == 1:
        text = names[0]
    else:
        cut = draw(st.integers(1, len(names) - 1))
        left, right = draw(compositions(names[:cut])), draw(compositions(names[cut:]))
        between = draw(st.sampled_from(["||", "|||", "|[a]|", "|[b,c]|", "|[a,b,c]|"]))
        text = f"(({left}) {between} ({right}))"
    after = draw(st.sampled_from(["", "", "hide", "rename"]))
    if after == "hide":
        return f"{text} / {{{draw(ACTIONS)}}}"
    if after == "rename":
        return f"{text} {{{draw(ACTIONS)} <- {draw(ACTIONS)}}}"
    return text


COMMANDS = st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1, max_size=3)


@given(system=compositions(), actions=st.tuples(COMMANDS, COMMANDS, COMMANDS))
def test_compositions_do_what_their_definition_says(system: str, actions: tuple[list[str], ...]) -> None:
    modules = "".join(
        f"module m{i} x{i}:[0..9]; {' '.join(f'[{a}] true -> (x{i}:=0);' for a in own)} endmodule ".replace(
            f"(x{i}:=0)", f"(x{i}'=0)"
        )
        for i, own in enumerate(actions)
    )
    parsed = parse_model(f"mdp {modules} system {system} endsystem", "m.prism")
    assert parsed.system is not None
    own = {f"m{i}": [(a or None, k) for k, a in enumerate(each)] for i, each in enumerate(actions)}
    expected = Counter(moves(parsed.system, own)[0])
    found: Counter[Any] = Counter()
    for one in compose(parsed.modules, parsed.system):
        ways = [
            [(f"m{m}", k) for k, c in enumerate(parsed.modules[m].commands) if c.action == action]
            for m, action in one.parts
        ]
        found.update((one.action, frozenset(chosen)) for chosen in product(*ways))
    assert found == expected


FLAT = """
mdp
const double p = 0.8;
module all
  a : [0..2] init 0; n : [0..2] init 0; b : [0..2] init 0;
  [make] a=0 -> p : (a'=1) + 1-p : (a'=2);
  [] a=1 & n<2 -> (a'=0) & (n'=n+1);
  [fix] a=2 -> 0.5 : (a'=0) + 0.5 : true;
  [log] a=0 -> 0.5 : (a'=2) + 0.5 : true;
  [take] n>0 & b=0 -> p : (n'=n-1) & (b'=1) + 1-p : (n'=n-1) & (b'=2);
  [] n=2 -> 0.1 : (n'=1) + 0.9 : true;
  [log] b=1 -> (b'=0);
  [fix] b=2 -> 0.5 : (b'=0) + 0.5 : true;
  [log] b=0 -> 0.5 : (b'=2) + 0.5 : true;
endmodule
rewards "work" [make] true : 1; [fix] true : 5; [] true : 0.25; endrewards
label "stuck" = a=2 & b=2;
"""


def test_a_composition_is_the_model_written_out_by_hand() -> None:
    composed = tr.load(COMPOSED)
    flat = load_prism_text(FLAT, "flat.prism")
    assert choices_of(composed, action_names=True) == choices_of(flat, action_names=True)
    for each in (composed, flat):
        assert tr.solve(each.problem("Rmax=? [ C<=5 ]").at()).at_initial_states.lower == pytest.approx(10.5)


@pytest.mark.parametrize("asked", ['Pmax=? [ F<=6 "stuck" ]', 'Pmax=? [ (a<2) U<=9 "stuck" ]'])
def test_a_composition_against_storm(asked: str) -> None:
    program = stormpy.parse_prism_program(str(COMPOSED), simplify=False)
    program = program.substitute_constants()
    (formula,) = stormpy.parse_properties(asked, program)
    symbolic = stormpy.build_symbolic_model(program, [formula])
    result = stormpy.model_checking(symbolic, formula)
    result.filter(stormpy.create_filter_initial_states(symbolic))
    theirs = result.get_max()
    ours = tr.solve(tr.load(COMPOSED).problem(asked).at()).at_initial_states
    assert ours.lower - 1e-9 <= theirs <= ours.upper + 1e-9


def test_rewards_and_globals_go_by_what_is_visible() -> None:
    head = "mdp global g:[0..1]; module m x:bool; [a] !x -> (x'=true) & (g'=1); endmodule "
    copy = "module n = m [x=y] endmodule "
    built = load_prism_text(
        f"{head}{copy}system m ||| n {{a <- b}} endsystem "
        'rewards "r" [a] true : 1; [b] true : 10; [] true : 100; endrewards',
        "m.prism",
    )
    assert built.structure.action_names == ("", "a", "b")
    assert tr.solve(built.problem('R{"r"}max=? [ C<=4 ]').at()).at_initial_states.upper == pytest.approx(11)
    with pytest.raises(InputError, match="'g' may not be assigned in a synchronised command"):
        load_prism_text(f"{head}{copy}system m || n endsystem", "m.prism")


WRONG_SYSTEMS = [
    ("m ||| m", "module 'm' stands twice in system … endsystem"),
    ("m", "module 'n' does not stand in system … endsystem"),
    ("m || k", "there is no module 'k'"),
    ("m || n {a<-b, a<-c}", "action 'a' is renamed twice"),
    ("m || n endsystem system m || n", "there is a second system … endsystem"),
]


@pytest.mark.parametrize(("system", "message"), WRONG_SYSTEMS)
def test_wrong_compositions(system: str, message: str) -> None:
    modules = "module m x:bool; [a] x -> true; endmodule module n y:bool; [a] y -> true; endmodule"
    with pytest.raises(InputError, match=message):
        expand(parse_model(f"mdp {modules} system {system} endsystem", "m.prism"))


# --- several initial states -------------------------------------------------------------------------


def ruin(x: int, n: int, p: Fraction) -> Fraction:
    """The probability to come to n before 0, in steps up with probability p."""
    odds = (1 - p) / p
    return Fraction(x, n) if odds == 1 else (1 - odds**x) / (1 - odds**n)


def test_values_over_several_initial_states() -> None:
    model = tr.load(MODELS / "several_initial.prism", const={"N": 4})
    p = Fraction(1, 4)
    solution = tr.solve(model.problem('P=? [ F "rich" ]').at(p=p))
    found = solution.at_initial_states
    exact = [ruin(x, 4, chance) for x in (1, 2) for chance in (p, Fraction(1, 2))]
    assert found.states == 4
    assert found.least[0] <= min(exact) <= found.least[1] < found.least[0] + 1e-6
    assert found.greatest[0] <= max(exact) <= found.greatest[1] < found.greatest[0] + 1e-6
    assert "over 4 initial states" in repr(solution)
    assert "4 states, such as (x=1,b=false)" in repr(model)


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        ('P>=0.02 [ F "rich" ]', "true"),
        ('P>=0.4 [ F "rich" ]', "false"),
        ('P<=0.4 [ F "rich" ]', "false"),
        ('P<=0.6 [ F "rich" ]', "true"),
        ('P>=0.02 [ F "rich" ] & P<0.1 [ X "rich" ]', "true"),
        ('P>=0.02 [ F "rich" ] & P>=0.4 [ F "rich" ]', "false"),
        ('filter(min, P=? [ F "rich" ], "init") < 0.03', "true"),
    ],
)
def test_a_property_is_true_where_it_holds_in_all_initial_states(asked: str, verdict: str) -> None:
    model = tr.load(MODELS / "several_initial.prism", const={"N": 4}).instantiate(p=0.25)
    assert tr.solve(model, asked).truth == verdict


def test_questions_about_one_state_are_refused() -> None:
    model = tr.load(MODELS / "several_initial.prism", const={"N": 4})
    problem = model.problem('P=? [ F "rich" ]')
    with pytest.raises(InputError, match="the model has 4 initial states, and this is about one"):
        tr.solve(problem, sets="rectangular")


@pytest.mark.parametrize(
    ("ending", "write"), [("drn", write_drn), ("umb", write_umb), ("tra", write_explicit)]
)
def test_several_initial_states_are_written_and_read(ending: str, write: Any, tmp_path: Path) -> None:
    model = tr.load(MODELS / "several_initial.prism", const={"N": 4}).instantiate(p=0.25)
    target = tmp_path / f"m.{ending}"
    write(model, target)
    assert tr.load(target).structure.initial_states == (0, 1, 2, 3)


# --- the rest ---------------------------------------------------------------------------------------


def test_an_int_without_a_range_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.prism.explore.search._MOST_UNBOUNDED", 5000)
    with pytest.raises(InputError) as caught:
        load_prism_text("dtmc module m n : int; [] true -> 0.5:(n'=n+1) + 0.5:(n'=n-1); endmodule", "m.prism")
    assert "more than 5,000 states can be reached, and 'n' has no range" in str(caught.value)
    assert "hint: give it a range, such as  n : [0..1000];" in str(caught.value)


@pytest.mark.parametrize("call", ["min(x, y, 4)", "max(0-x, y)", "mod(x, 3)", "pow(y, 2)", "floor(x/2)"])
def test_old_function_calls_mean_the_new_ones(call: str) -> None:
    name, _, rest = call.partition("(")
    text = "mdp module m x:[0..9] init 5; y:[0..2] init 1; [] x<9 -> (x'=x+1); endmodule formula f = {};"
    new, old = (expand(parse_model(text.format(c), "m.prism")) for c in (call, f"func({name}, {rest}"))
    assert new.formulas == old.formulas


def test_initial_values_and_ranges_may_be_quotients_that_are_whole() -> None:
    text = "mdp const int N = {}; module m x:[0..3*N/2] init N/2; endmodule"
    variable = expand(parse_model(text.format(6), "m.prism")).variables[0]
    assert (variable.low, variable.high, variable.initial) == (0, 9, 3)
    with pytest.raises(InputError, match="a bound of the range of 'x' must be whole, but this is 15/2"):
        expand(parse_model(text.format(5), "m.prism"))


def test_constants_that_nothing_uses_need_no_value() -> None:
    text = "mdp const int k; const bool c; module m x:[0..{}] init 0; endmodule"
    assert expand(parse_model(text.format(2), "m.prism")).parameters == ()
    with pytest.raises(InputError, match="undefined constant: int k"):
        expand(parse_model(text.format("k"), "m.prism"))


def test_compressed_files(tmp_path: Path) -> None:
    for name in ("walk.prism", "walk.drn"):
        source = tmp_path / name
        if name.endswith("prism"):
            source.write_text((MODELS / "random_walk.prism").read_text())
        else:
            write_drn(tr.load(MODELS / "random_walk.prism", const={"B": 5}), source)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(source.read_bytes()))
        const = {"const": {"B": 5}} if name.endswith("prism") else {}
        assert tr.load(tmp_path / f"{name}.gz", **const).hash() == tr.load(source, **const).hash()
    cut = tmp_path / "cut.prism.gz"
    cut.write_bytes((tmp_path / "walk.prism.gz").read_bytes()[:-20])
    for bad in (cut, tmp_path / "plain.drn.gz"):
        if not bad.exists():
            bad.write_text("@type: MDP\n")
        with pytest.raises(InputError, match="not a gzip file, or it is cut off"):
            tr.load(bad)
    (tmp_path / "m.umb.gz").write_bytes(b"")
    with pytest.raises(InputError, match="only PRISM, JANI and DRN files are read compressed"):
        tr.load(tmp_path / "m.umb.gz")


def test_total_rewards_of_both_signs_where_they_end() -> None:
    text = """mdp module m x:[0..3] init 1;
      [risk] x=1 -> 0.5:(x'=0) + 0.5:(x'=2); [safe] x=1 -> (x'=2);
      [again] x=2 -> 0.5:(x'=1) + 0.5:(x'=3); {} [] x=0|x=3 -> true; endmodule
      rewards [risk] true : 4; [safe] true : -1; [again] true : -2; endrewards"""
    model = load_prism_text(text.format(""), "m.prism")
    # v1 = max(4 + v2/2, v2 - 1), v2 = -2 + v1/2, so v1 = 4 with `risk`.
    for asked, exact in (("Rmax=? [ C ]", Fraction(4)), ("Rmin=? [ C ]", Fraction(-6))):
        found = tr.solve(model.problem(asked).at()).at_initial_states
        assert found.lower <= exact <= found.upper and found.upper - found.lower < 1e-5
    endless = load_prism_text(text.format("[back] x=2 -> (x'=1);"), "m.prism")
    with pytest.raises(InputError, match=r"from state \(x=1\) rewards may go on forever"):
        tr.solve(endless.problem("Rmax=? [ C ]").at())


def test_transition_rewards_of_plain_models_are_expected_ones(tmp_path: Path) -> None:
    for suffix, text in {
        "tra": "2 2 3\n0 0 0 0.25 a\n0 0 1 0.75 a\n1 0 1 1\n",
        "lab": '0="init" 1="end"\n0: 0\n1: 1\n',
        "trew": "2 2 2\n0 0 0 8\n0 0 1 -4\n",
    }.items():
        (tmp_path / f"m.{suffix}").write_text(text)
    model = tr.load(tmp_path / "m.tra")
    (reward,) = model.rewards.values()
    np.testing.assert_array_equal(reward.choice, [-1.0, 0.0])
    # v = -1 + v/4
    found = tr.solve(model.problem('Rmin=? [ F "end" ]')).at_initial_states
    assert found.lower <= Fraction(-4, 3) <= found.upper
    (tmp_path / "m.tra").write_text("2 2 3\n0 0 0 [0.2,0.3] a\n0 0 1 [0.7,0.8] a\n1 0 1 [1,1]\n")
    with pytest.raises(InputError, match="depends on probabilities that are intervals"):
        tr.load(tmp_path / "m.tra")
