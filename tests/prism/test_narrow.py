"""Exploring state by state gives the very model that whole frames give, and the same complaints."""

from __future__ import annotations

import random

import numpy as np
import pytest

from prism_text import parse_expression
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.expand.model import expand
from tightrope.prism.explore import search
from tightrope.prism.explore.narrow import NarrowSearch
from tightrope.prism.explore.search import explore_until
from tightrope.prism.parse.parser import parse_model

SYNCHRONISED = """mdp
module clock
  x : [0..60] init 0;
  b : bool init false;
  [tick] x<60 -> 1/4 : (x'=x+1) + 3/4 : (x'=x+1) & (b'=!b);
  [tick] x<40 & b -> 0.5 : (x'=x+2) + 0.5 : true;
  [skip] mod(x,7)=3 -> (x'=min(x+5,60));
endmodule
module counter
  n : [0..3] init 0;
  [tick] n<3 -> 1/3 : (n'=n+1) + 2/3 : (n'=n);
  [tick] n=3 | b -> (n'=b ? 0 : max(n-1,1));
  [] x>30 & n!=2 <=> b -> n/4 : (n'=0) + 1-n/4 : (n'=3-n);
endmodule
"""

CHAIN = """dtmc
module walk
  x : [0..50] init 0;
  z : [-3..3] init 0;
  [] x<50 & z<3 -> 0.5 : (x'=x+1) & (z'=z+1) + 0.25 : (x'=x+1) & (z'=-3) + 0.25 : (x'=x+1);
  [] x=25 & z=0 -> (x'=x+1);
  [] z=3 -> (z'=0);
endmodule
"""

TWO_WORDS = "mdp\nmodule m\n  x : [0..90] init 0;\n" + "".join(
    f"  y{i} : [0..{2**30}] init {i};\n" for i in range(4)
)
TWO_WORDS += "  [a] x<90 -> 0.1 : (x'=x+1) & (y3'=x*x) + 0.9 : (x'=x+1);\nendmodule\n"


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lets states be explored one by one from the start; the numbers of states explored so."""
    explored: list[int] = []
    original = NarrowSearch.run

    def run(self: NarrowSearch) -> int:
        explored.append(original(self))
        return explored[-1]

    monkeypatch.setattr(NarrowSearch, "run", run)
    monkeypatch.setattr(search, "_PATIENCE", 0)
    monkeypatch.setattr(search, "_WORTH", 0)
    return explored


def build(text: str, by_frames: bool, stop: str | None = None) -> tuple[ParametricMDP, list[str]]:
    """The model of a program and what was warned about."""
    program, warnings = expand(parse_model(text, "m.prism")), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        if by_frames:
            patch.setattr(search, "_PATIENCE", 10**9)
        condition = None if stop is None else parse_expression(stop, "stop")
        model, _ = explore_until(program, condition, warn=warnings.append)
    assert isinstance(model, ParametricMDP)
    return model, warnings


def assert_equal(left: ParametricMDP, right: ParametricMDP) -> None:
    a, b = left.structure, right.structure
    for name in ("choice_start", "transition_start", "successor", "action"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.action_names == b.action_names
    for variable, values in a.valuations.items():
        np.testing.assert_array_equal(values, b.valuations[variable])
    one, other = ([str(m.expressions.polynomial(e)) for e in m.expression.tolist()] for m in (left, right))
    assert one == other


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("text", "stop", "share"),
    [
        (SYNCHRONISED, None, 0.8),
        (SYNCHRONISED, "x=31 & !b", 0.8),
        (CHAIN, None, 0.5),
        (TWO_WORDS, None, 0.9),
    ],
)
def test_states_one_by_one_make_the_model_of_frames(
    text: str, stop: str | None, share: float, one_by_one: list[int]
) -> None:
    expected, said = build(text, True, stop)
    assert not one_by_one
    found, also_said = build(text, False, stop)
    assert_equal(found, expected)
    assert also_said == said
    assert sum(one_by_one) >= share * expected.states


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(7))
def test_random_programs(seed: int, one_by_one: list[int]) -> None:
    text = random_program(random.Random(seed))
    expected, said = build(text, True)
    found, also_said = build(text, False)
    assert_equal(found, expected)
    assert also_said == said
    assert sum(one_by_one) > 0 or expected.states < 20


def test_a_value_out_of_range_is_said_as_ever(one_by_one: list[int]) -> None:
    text = "mdp\nmodule m\n x : [0..70] init 0;\n [a] true -> 0.5 : (x'=x+1) + 0.5 : (x'=x);\nendmodule\n"
    with pytest.raises(InputError, match=r"'x' becomes 71, outside its range 0\.\.70, in state \(x=70\)"):
        build(text, False)
    assert sum(one_by_one) >= 60


def test_what_cannot_be_translated_is_left_to_frames(one_by_one: list[int]) -> None:
    """A division that may fail."""
    text = "mdp\nmodule m\n x : [0..70] init 0;\n [a] x<70 & mod(70,70-x)>=0 -> (x'=x+1);\nendmodule\n"
    assert build(text, False)[0].states == 71
    assert not one_by_one


def random_program(draw: random.Random) -> str:
    """Two modules that share an action, with guards and updates of many kinds; deeper than wide."""
    mdp = draw.random() < 0.7
    lines = [
        "mdp" if mdp else "dtmc",
        "module one",
        "  x : [0..40] init 0;",
        "  b : bool init false;",
        "  s : [-2..2] init 0;",
    ]
    for _ in range(draw.randint(2, 4)):
        guard = draw.choice(["b", "!b", "s<=0", "mod(x,3)=1", "x>5 | b", "s!=1 => b", "true", "x*2>s+9"])
        first = draw.choice(["(x'=x+1)", "(x'=x+1) & (b'=!b)", "(x'=x+1) & (s'=max(-2,s-1))"])
        second = draw.choice(["(x'=x+1) & (s'=mod(x,3)-1)", "(x'=min(40,x+2))", "(x'=x+1) & (b'=x>s)"])
        weight = draw.choice(["0.5", "1/3", "0.25", "x/41"])
        action = draw.choice(["", "go", "own"])
        lines.append(f"  [{action}] x<40 & ({guard}) -> {weight} : {first} + 1-{weight} : {second};")
    lines += ["endmodule", "module two", "  n : [0..2] init 0;"]
    for _ in range(draw.randint(1, 3)):
        guard = draw.choice(["n<2", "n=2", "true", "n!=1 | b", "x>20"])
        update = draw.choice(
            ["0.5 : (n'=2-n) + 0.5 : (n'=0)", "(n'=b ? 0 : 1)", "n/2 : (n'=0) + 1-n/2 : true"]
        )
        lines.append(f"  [{draw.choice(['go', 'go', ''])}] {guard} -> {update};")
    return "\n".join([*lines, "endmodule", ""])
