"""Runs that begin in different states: the draw of the first one is in the model, and nobody counts it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.prism.load import load_prism_text

PARAMETERS = tr.Parameters.box(p=(0.05, 0.95))
(P,) = PARAMETERS.symbols()
ROWS = {
    "good": {"go": {"good": 1 - P, "won": P}},
    "bad": {"go": {"bad": 0.5, "good": 0.5}},
    "won": {"": {"won": 1}},
}


def _model(initial: object) -> tr.ParametricMDP:
    model = tr.build_from_function(
        initial,
        ROWS.__getitem__,
        PARAMETERS,
        labels={"won": lambda state: state == "won", "bad": lambda state: state == "bad"},
        choice_rewards={"steps": lambda state, action: 1 if action else 0},
    )
    assert isinstance(model, tr.ParametricMDP)
    return model


@pytest.mark.parametrize(
    "text",
    [
        'P=? [ F<=3 "won" ]',
        'P=? [ F "won" ]',
        'P=? [ X "won" ]',
        'P=? [ G<=2 !"won" ]',
        'P=? [ !"bad" U<=4 "won" ]',
        'P=? [ F[2,3] "won" ]',
        'R{"steps"}=? [ C<=3 ]',
        'R{"steps"}=? [ F "won" ]',
        'P=? [ F !"bad" ]',
    ],
)
def test_the_value_is_the_mean_of_those_of_the_first_states(text: str) -> None:
    share = {"good": 0.25, "bad": 0.75}
    mixed = tr.solve(_model(share).problem(text).at(p=0.3)).bounds
    alone = {state: tr.solve(_model(state).problem(text).at(p=0.3)).bounds for state in share}
    mean = sum(share[state] * np.mean(alone[state]) for state in share)
    assert mixed is not None and np.allclose(mixed, mean, atol=1e-7)


DRAWN = """dtmc
const double h;
module m
  s : [0..3];
  [start] s=0 -> 0.25 : (s'=1) + 0.75 : (s'=2);
  [go] s=1 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [go] s=2 -> 0.5 : (s'=2) + 0.5 : (s'=3);
  [end] s=3 -> true;
endmodule
label "start" = s=0; label "won" = s=3;
rewards "all" true : 1; endrewards
rewards "paid" [start] true : 5; [go] true : 2; endrewards
rewards "unknown" true : h; endrewards
"""


def test_the_draw_earns_nothing() -> None:
    """Rewards of all states counted it, so that three steps earned four."""
    model = load_prism_text(DRAWN, box="h=0:1")
    values = {'R{"all"}=? [ C<=3 ]': 3, 'R{"paid"}=? [ F "won" ]': 5, 'R{"paid"}=? [ C<=1 ]': 2}
    for text, value in values.items():
        solved = tr.solve(model.instantiate(h=1), text)
        assert solved.bounds == pytest.approx((value, value), abs=1e-6)
    with pytest.raises(InputError, match="rewards with parameters"):
        model.problem('R{"unknown"}=? [ C<=3 ]')
    earned = DRAWN.replace("true : h", "s>0 : h")
    drawn = tr.solve(load_prism_text(earned, box="h=0:1").problem('R{"unknown"}=? [ C<=3 ]').at(h=0.5))
    assert drawn.bounds == pytest.approx((1.5, 1.5), abs=1e-6)


@pytest.mark.parametrize("text", ['R{"steps"}=? [ Cdiscount=0.9 ]', 'P=? [ F ("won" & (X "won")) ]'])
def test_questions_that_would_count_the_draw_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="draw"):
        tr.Problem(_model({"good": 0.5, "bad": 0.5}), text)


def test_episodes_in_python_do_not_show_the_draw() -> None:
    model = _model({"good": tr.free, "bad": tr.free})
    runs = [[("good", "go", "won")], [("bad", "go", "good"), ("good", "go", "won")], [("good", "go", "good")]]
    counts = tr.read_data(runs, model).counts
    start = model.structure.transition_start[model.structure.choice_start[model.structure.initial]]
    assert counts.transition[start : start + 2].tolist() == [2, 1] and counts.steps == 7
    assert counts.log is not None and counts.log().previous.tolist() == [-1, 0, -1, 2, 3, -1, 5]
    with pytest.raises(InputError, match="no transition"):
        tr.read_data([[("won", "", "won")]], model)


def test_files_do_not_show_it_either_and_the_share_is_learned(tmp_path: Path) -> None:
    model = _model({"good": tr.free, "bad": tr.free})
    truth = tr.Simulator(_model({"good": 0.7, "bad": 0.3}).instantiate(p=0.6), model_hash=model.hash())
    path, lines = tmp_path / "log.csv", ["episode,step,state,action,next_state"]
    structure = model.structure
    assert structure.state_names is not None
    for block in truth.trajectories(400, seed=4):
        for episode, step, transition in zip(block.episode, block.step, block.transition, strict=True):
            source = structure.choice_state[structure.transition_choice[transition]]
            if source != structure.initial:
                names = [structure.state_names[s] for s in (source, structure.successor[transition])]
                lines.append(f"{episode},{step - 1},{names[0]},go,{names[1]}")
    path.write_text("\n".join(lines) + "\n")
    counts = tr.read_data(path, model, ends="complete", order="as-read").counts
    assert np.array_equal(counts.transition, truth.episodes(400, seed=4).transition)
    result = tr.learn(model.problem('P=? [ X "won" ]'), counts, delta=0.05)
    assert result.interval.lower <= 0.7 * 0.6 <= result.interval.upper and result.interval.upper < 0.65
    with pytest.raises(InputError, match="cannot be numbered"):
        tr.read_data(path, model, ends="complete", order="as-read", since=3)
    path.write_text("episode,step,state,action,next_state\n1,0,won,,won\n")
    with pytest.raises(InputError, match="which is not an initial state of the model"):
        tr.read_data(path, model, ends="complete")


def test_states_by_number_and_by_variables() -> None:
    rows = [(0, "a", {1: 1}), (1, "", {1: 1})]
    numbers = tr.build_from_rows(rows, initial={0: 0.5, 1: 0.5}, labels={"end": [1]})
    assert list(numbers.structure.state_names or ()) == [0, 1, -1] and numbers.states == 3
    variables = tr.build_from_rows(rows, initial={0: 1}, valuations={"b": [True, False], "x": [4, 5]})
    assert variables.structure.valuations["x"].tolist() == [4, 5, 6]
    with pytest.raises(InputError, match="true or false"):
        tr.build_from_rows(rows, initial={0: 1}, valuations={"b": [True, False]})
    with pytest.raises(InputError, match=r"refers to 2, and the states are 0\.\.1"):
        tr.build_from_rows(rows, initial={2: 1})


def test_prism_text_says_it_by_an_action_and_a_label() -> None:
    text = """dtmc
const double p;
module m
  s : [0..3];
  [start] s=0 -> free : (s'=1) + free : (s'=2);
  [] s=1 -> p : (s'=3) + 1-p : (s'=1);
  [] s=2 -> 1 : (s'=1);
endmodule
label "start" = s=0; label "won" = s=3;
"""
    model = load_prism_text(text, box="p=0.1:0.9")
    assert model.structure.draws_start
    objective = model.problem('P=? [ F<=3 "won" ]').objective
    assert objective.upper_steps == 4
