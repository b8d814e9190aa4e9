"""Forms of properties and models that Storm answers as well, in the same or in other words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tightrope as tr

POWERS = """mdp // exponents that depend on a variable, and negative ones
module m
  s : [0..3]; n : [1..2] init 1;
  [a] s=0 -> pow(0.5,n) : (s'=1) + 1-pow(0.5,n) : (s'=2);
  [b] s=0 & n<2 -> (n'=n+1);
  [] s=1 -> 0.25 : (s'=3) + 0.75 : (s'=2);
  [] s>=2 -> true;
endmodule
rewards "r" s=0 : 2; [a] s=0 : pow(2.0,-n); endrewards
"""
LOOPS = """mdp // loops of reward zero, and a state formula in place of a path
module m
  s : [0..2];
  [a] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=0);
  [b] s=0 -> (s'=2);
  [c] s=2 -> (s'=0);
  [d] s=2 -> 0.9 : (s'=1) + 0.1 : (s'=2);
  [] s=1 -> true;
endmodule
rewards "r" [a] true : 3; [d] true : 1; endrewards
"""
CHAIN = """ctmc
module m
  s : [0..2];
  [] s=0 -> 2 : (s'=1);
  [] s=1 -> 1 : (s'=0) + 0.5 : (s'=2);
  [] s=2 -> 1 : true;
endmodule
rewards "zero" s=2 : 0; endrewards
rewards "some" s=1 : 1; endrewards
"""
AUTOMATON = """ma
module m
  s : [0..3];
  [a] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [b] s=0 -> (s'=2);
  <> s=1 -> 3 : (s'=0) + 1 : (s'=3);
  <> s=2 -> 0.7 : (s'=0) + 0.5 : (s'=3);
  <> s=3 -> 1 : true;
endmodule
"""
CASES = [
    ("m.prism", POWERS, "Pmax=? [ F s=3 ]", None),
    ("m.prism", POWERS, "Pmin=? [ F s=3 ]", None),
    ("m.prism", POWERS, 'R{"r"}max=? [ F s>=2 ]', None),
    ("m.prism", POWERS, 'R{"r"}min=? [ F s>=2 ]', None),
    ("m.prism", LOOPS, 'R{"r"}min=? [ F s=1 ]', None),
    ("m.prism", LOOPS, 'R{"r"}max=? [ F s=1 ]', None),
    ("m.prism", LOOPS, 'R{"r"}min=? [ s=0 ]', 'R{"r"}min=? [ F s=0 ]'),
    ("m.prism", LOOPS, 'Pmax=? [ F{"r"}<=4 s=1 ]', None),
    ("m.prism", LOOPS, 'Pmin=? [ F{"r"}<=2 s=1 ]', None),
    ("m.prism", LOOPS, "Pmax=? [ !(s=2) W<=2 s=1 ]", "Pmin=? [ !(s=1) U<=2 (s=2 & !(s=1)) ]"),
    ("m.prism", LOOPS, "Pmin=? [ !(s=2) W<=2 s=1 ]", "Pmax=? [ !(s=1) U<=2 (s=2 & !(s=1)) ]"),
    ("m.prism", LOOPS, "Smax=? [ s=0 ]", "LRAmax=? [ s=0 ]"),
    ("m.sm", CHAIN, 'R{"some"}=? [ C<=2 ]', None),
    ("m.sm", CHAIN, 'R{"zero"}=? [ C<=2 ]', None),
    ("m.ma", AUTOMATON, "Tmin=? [ F s=3 ]", None),
    ("m.ma", AUTOMATON, "Pmax=? [ F<=1.5 s=3 ]", None),
    ("m.ma", AUTOMATON, "Smin=? [ s=3 ]", "LRAmin=? [ s=3 ]"),
]


@pytest.mark.filterwarnings("ignore::tightrope.errors.ReadingWarning")
@pytest.mark.parametrize(("name", "text", "ours", "theirs"), CASES)
def test_values_are_those_of_storm(
    name: str, text: str, ours: str, theirs: str | None, tmp_path: Path
) -> None:
    stormpy: Any = pytest.importorskip("stormpy")
    file = tmp_path / name
    file.write_text(text)
    model = tr.load(file)
    answer: Any = tr.solve(model if name == "m.ma" else model.instantiate(), ours)
    low, high = (answer.lower, answer.upper) if answer.bounds is None else answer.bounds
    program = stormpy.parse_prism_program(str(file), prism_compatibility=True)
    (wanted,) = stormpy.parse_properties(theirs or ours, program)
    built = stormpy.build_model(program, [wanted])
    value = stormpy.model_checking(built, wanted, only_initial_states=True).get_value(built.initial_states[0])
    if " W" in ours:  # Storm is asked for the complement
        value = 1 - value
    assert low - 2e-5 <= value <= high + 2e-5
    assert high - low <= 1e-5 or low == high
