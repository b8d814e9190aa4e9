"""Markov automata in DRN files: what does not speak of time, beside Storm; the rest is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.errors import InputError

AUTOMATON = """@type: Markov Automaton
@parameters

@reward_models
cost
@nr_states
4
@nr_choices
5
@model
state 0 !0 [9] init
	action 0 [0]
		1 : 0.5
		2 : 0.5
	action 1 [5]
		2 : 1
state 1 !4 [2] left
	action 0 [0]
		0 : 0.75
		3 : 0.25
state 2 !0.75 [0]
	action 0 [0]
		0 : 0.3333333333333333
		3 : 0.6666666666666667
state 3 !1 [0] goal
	action 0 [0]
		3 : 1
"""
ASKED = {
    'R{"time"}min=? [ F "goal" ]': 'Tmin=? [ F "goal" ]',
    'R{"time"}max=? [ F "goal" ]': 'Tmax=? [ F "goal" ]',
    'R{"cost"}min=? [ F "goal" ]': 'R{"cost"}min=? [ F "goal" ]',
    'R{"cost"}max=? [ F "goal" ]': 'R{"cost"}max=? [ F "goal" ]',
    'Pmax=? [ F "left" ]': 'Pmax=? [ F "left" ]',
    'Pmin=? [ F "left" ]': 'Pmin=? [ F "left" ]',
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    target = tmp_path / "m.drn"
    target.write_text(AUTOMATON)
    return target


def test_values_are_those_of_storm(file: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    automaton = tr.load(file)
    assert isinstance(automaton, tr.MarkovAutomaton) and automaton.is_markovian.tolist() == [0, 1, 1, 1]
    built = stormpy.build_model_from_drn(str(file))
    for ours, theirs in ASKED.items():
        bounds = tr.solve(automaton, ours).bounds
        (formula,) = stormpy.parse_properties(theirs)
        value = stormpy.model_checking(built, formula).get_value(0)
        assert bounds is not None and bounds[0] - 1e-5 <= value <= bounds[1] + 1e-5, ours


def test_expected_times_by_hand(file: Path) -> None:
    """From 0: choice 1 goes to 2, which waits 4/3 and goes back with 1/3: x = 4/3 + x/3 = 2."""
    bounds = tr.solve(tr.load(file), 'R{"time"}max=? [ F "goal" ]').bounds
    assert bounds is not None and bounds[0] == pytest.approx(2, rel=1e-6) == bounds[1]


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ('Pmax=? [ F<=2 "goal" ]', "a bound on time, steps or rewards"),
        ('Pmax=? [ X "goal" ]', "X"),
        ('R{"cost"}max=? [ C<=2 ]', "rewards up to, at or after a time"),
        ('R{"cost"}max=? [ S ]', "rewards up to, at or after a time, or in the long run"),
        ('filter(max, Pmax=? [ F P>=0.5 [ F<=3 "goal" ] ])', "a bound on time"),
        ('E [ F<=3 "goal" ]', "a bound on time"),
        ('Smax=? [ "goal" ]', "in the long run"),
    ],
)
def test_questions_about_time_are_refused(
    file: Path, asked: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError) as raised:
        tr.solve(tr.load(file), asked)
    assert what in str(raised.value) and "only what does not speak of time is answered" in str(raised.value)
    assert run(["check", str(file), "--prop", asked]) == 2
    assert what in capsys.readouterr().err


def test_check_answers_and_other_commands_refuse(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(file), "--prop", 'R{"time"}min=? [ F "goal" ]', "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lower"] == pytest.approx(19 / 11, rel=1e-6)
    words = ["check", str(file), "--prop", 'Pmax=? [ F "left" ]', "--certificate", "c"]
    assert run(words) == 2
    assert "it does not go with Markov automata" in capsys.readouterr().err
    for command in (["info", str(file)], ["export", str(file), "-o", str(file.with_name("n.drn"))]):
        assert run(command) == 2
        assert "is a Markov automaton" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("state 0 !0 ", "state 0 !3 ", "waits, and has several choices"),
        ("state 1 !4 ", "state 1 ", "state 1 has no exit rate"),
        ("state 1 !4 ", "state 1 !-4 ", "the exit rate of state 1 is -4, not a number of at least 0"),
        ("0 : 0.75", "0 : 3", "a probability"),
        ("@parameters\n\n", "@value_type: parametric\n@parameters\np\n", "only plain ones are"),
    ],
)
def test_wrong_files_are_refused(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(AUTOMATON.replace(old, new))
    with pytest.raises(InputError) as raised:
        tr.load(file)
    assert message in str(raised.value)


def test_exit_rates_fit_the_states() -> None:
    mdp = tr.build_from_rows([(0, "", {0: 1})]).instantiate()
    with pytest.raises(InputError, match="2 exit rates for 1 states"):
        tr.MarkovAutomaton(mdp.structure, mdp.probability, np.array([1.0, 2.0]))
