"""Building for the question: states behind targets and forbidden ones are left out; no value changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tightrope.cli.app import run
from tightrope.prism.load import build_model, read_text
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.properties.query import BoundaryOf, read_query
from tightrope.solver.solve import solve

MODEL = """mdp
const int N = 4;
formula far = x>=N;
module walk
  x : [-1..9] init 0;
  b : bool init false;
  [up] x>=0 & x<9 -> 0.6 : (x'=x+1) + 0.4 : (x'=x-1);
  [flip] x>=0 & !b -> 0.5 : (b'=true) + 0.5 : true;
endmodule
label "far" = far;
label "lost" = x=-1;
rewards "steps"
  [up] true : 1;
  b : 2;
endrewards
"""

STOPPING = (
    ('Pmax=? [ F "far" ]', 10),
    ('Pmin=? [ !b U "far" ]', 10),
    ("Pmax=? [ F<=6 x=3 ]", 8),
    ("Pmax=? [ G !far ]", 10),
    ("Pmin=? [ !far W b ]", 6),
    ('Rmin=? [ F "far" | "lost" ]', 12),
    ("Pmax=? [ x<2 U far ]", 6),
)
LOOKING_ON = (
    'Pmax=? [ F>=2 "far" ]',
    'Pmax=? [ X "far" ]',
    "Rmax=? [ C<=5 ]",
    'Pmax=? [ F "deadlock" ]',
    'Pmax=? [ F "far" & !"init" ]',
    "Pmax=? [ F 1/(x-2) > 2 ]",
)


def answer(text: str, boundary: bool) -> tuple[int, bool, float, float]:
    file = parse_properties(text, "--prop")
    read = build_model(read_text(MODEL), boundary=BoundaryOf((file,), {}) if boundary else None)
    structure = read.model.structure
    question = read_query(file.properties[0], file, structure)
    solution = solve(read.model.instantiate(()), question.objective)
    return structure.states, read.is_partial, float(solution.lower[0]), float(solution.upper[0])


@pytest.mark.parametrize(("text", "states"), STOPPING)
def test_values_are_those_of_the_whole_model(text: str, states: int) -> None:
    everything, part = answer(text, False), answer(text, True)
    assert everything[:2] == (22, False)
    assert part[0] <= states + 4 < 22
    assert part[1]
    assert part[2] <= everything[3]
    assert everything[2] <= part[3]
    assert part[3] - part[2] <= 2e-6 * part[3]


@pytest.mark.parametrize("text", LOOKING_ON[:-1])
def test_questions_that_look_on_build_everything(text: str) -> None:
    assert answer(text, True) == answer(text, False)


def test_a_formula_that_may_fail_is_left_to_the_property() -> None:
    file = parse_properties(LOOKING_ON[-1], "--prop")
    assert build_model(read_text(MODEL), boundary=BoundaryOf((file,), {})).model.states == 22


def test_several_properties_stop_where_all_do() -> None:
    file = parse_properties(
        'const int k; label "low" = x<=k; Pmax=? [ F "far" ]; Pmax=? [ F far & "low" ];', "p"
    )
    read = build_model(read_text(MODEL), boundary=BoundaryOf((file,), {"k": "4"}))
    assert read.is_partial
    assert read.model.states == 12
    file = parse_properties('Pmax=? [ F "far" ]; Rmax=? [ C<=3 ];', "p")
    assert not build_model(read_text(MODEL), boundary=BoundaryOf((file,), {})).is_partial


def test_what_is_left_out_is_no_deadlock_and_earns_nothing() -> None:
    warnings: list[str] = []
    file = parse_properties('Pmax=? [ F "far" ]', "--prop")
    read = build_model(read_text(MODEL), warn=warnings.append, boundary=BoundaryOf((file,), {}))
    structure = read.model.structure
    far = structure.labels["far"]
    assert not (structure.labels["deadlock"] & far).any()
    assert all("x=-1" in text for text in warnings)
    reward = structure.rewards["steps"].choice
    assert reward is not None
    assert (reward[structure.choice_start[:-1][far]] == 0).all()


def test_check_says_what_it_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "walk.prism"
    path.write_text(MODEL, encoding="utf-8")
    command = ["check", str(path), "--prop", 'Pmax=? [ F "far" ]']
    found = {}
    for options in ((), ("--build-all",), ("--policy-out", str(tmp_path / "policy.json"))):
        assert run([*command, *options, "--json"]) == 0
        found[options[:1]] = json.loads(capsys.readouterr().out)
    assert found[()]["built"] == {"states": 12, "all": False}
    assert found[("--build-all",)]["built"] == {"states": 22, "all": True}
    assert found[("--policy-out",)]["built"] == {"states": 22, "all": True}
    assert found[()]["lower"] <= found[("--build-all",)]["upper"]
    assert run([*command, "--verbose"]) == 0
    assert "12 states, none behind targets" in capsys.readouterr().out
    assert run(["info", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["states"] == 22
