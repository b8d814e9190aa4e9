"""Which state a log means is never guessed: variables, the author's own states, or a stated index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tightrope.cli.app import run
from tightrope.data.reading import read_data
from tightrope.errors import InputError
from tightrope.model.builder import build_from_function
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism

PRISM = """
mdp
const double p;
module m
  state : [0..2] init 2;
  [go] state=2 -> p:(state'=1) + 1-p:(state'=0);
  [go] state<2 -> true;
endmodule
label "goal" = state=1;
"""
"""The model numbers its states in the order in which they are found: 2, 1, 0 are its numbers 0, 1, 2."""

LOG = "state,action,next_state\n" + "2,go,1\n" * 20 + "2,go,0\n" * 80


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.prism").write_text(PRISM)
    (tmp_path / "x.prism").write_text(PRISM.replace("state", "x"))
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


def parametric(path: Path) -> ParametricMDP:
    model = load_prism(path)
    assert isinstance(model, ParametricMDP)
    return model


def learned(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert run(["learn", *words, "--prop", 'Pmax=? [ F "goal" ]', "--delta", "0.01", "--json"]) == code
    captured = capsys.readouterr()
    return dict(json.loads(captured.out)) if code == 0 else {"error": captured.err}


def test_a_column_named_like_a_variable_is_that_variable(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read as the model's numbers, 'state' says that the goal is reached from a state nothing leaves."""
    result = learned(capsys, str(folder / "m.prism"), "--data", str(folder / "log.csv"))
    assert 0.05 < result["guarantee"] < 0.2
    assert result["data"]["read_as"] == [
        "states by the model's variables; state, state' = next_state, action"
    ]
    words = [str(folder / "m.prism"), "--data", str(folder / "log.csv")]
    assert run(["learn", *words, "--prop", 'Pmax=? [ F "goal" ]', "--verbose"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "import states by the model's variables; state, state' = next_state" in shown


def test_bare_numbers_are_refused_for_a_model_with_variables(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = str(folder / "x.prism"), "--data", str(folder / "log.csv")
    message = learned(capsys, *words, code=2)["error"]
    assert (
        "the column 'state' does not say how it names states: the model names its states by its variables x"
        in message
    )
    assert "say --states index; where it holds the variable x, say --columns 'x=state'" in message
    by_variable = learned(capsys, *words, "--columns", "x=state, x'=next_state")
    assert 0.05 < by_variable["guarantee"] < 0.2


def test_an_index_is_one_where_it_is_said(folder: Path) -> None:
    model = parametric(folder / "x.prism")
    path = folder / "index.csv"
    path.write_text("state,action,next_state\n" + "0,go,1\n" * 20 + "0,go,2\n" * 80)
    reading = read_data(path, model, states="index")
    assert reading.counts.transition.tolist() == [20, 80, 0, 0]
    assert reading.read_as == ("states by the model's index; state, next_state, action",)


def test_a_file_for_this_very_model_needs_no_word(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(folder / "data.csv")
    assert run(["sample", str(folder / "m.prism"), "--at", "p=0.2", "--episodes", "100", "-o", target]) == 0
    assert "batch,state,choice,action,next_state,count" in Path(target).read_text()
    reading = read_data(target, parametric(folder / "m.prism"))
    assert reading.counts.visits.tolist() == [100, 0, 0]
    assert reading.read_as[0].startswith("states by the model's index")


def walk() -> ParametricMDP:
    model = build_from_function(
        2, lambda x: {"stay": {x: 1}} if x in (0, 4) else {"walk": {x + 1: "1/2", x - 1: "1/2"}}
    )
    assert isinstance(model, ParametricMDP)
    return model


def test_states_of_a_python_model_are_its_authors(tmp_path: Path) -> None:
    """State 2 is the model's number 0: read by number, this log would be impossible or about others."""
    path = tmp_path / "log.csv"
    path.write_text("s,a,s'\n2,walk,3\n3,walk,4\n2,walk,1\n1,walk,0\n")
    reading = read_data(path, walk())
    assert reading.counts.transition[:2].tolist() == [1, 1]
    assert reading.read_as == (
        "states as the model's author calls them; state = s, next_state = s', action = a",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "state,action,next_state\n0,walk,1\n0,walk,2\n1,walk,3\n1,walk,0\n",
            "these look like the model's numbers of its states (from 0) in the column 'state': "
            'say `states="index"`',
        ),
        (
            "state,action,next_state\n1,walk,2\n1,walk,3\n2,walk,4\n2,walk,1\n",
            "these look like the model's numbers of its states counted from 1 in the column 'state': say "
            "`states=\"index\"` and `maps='state: -1'`",
        ),
        (
            "next_state,action,state\n3,walk,4\n1,walk,0\n3,walk,4\n1,walk,0\n",
            'these look like state and next state the other way round: say `columns="state=next_state, '
            'next_state=state"`',
        ),
    ],
)
def test_a_wrong_looking_reading_names_the_one_that_fits(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_data(path, walk())
    assert caught.value.hint == words


def test_two_columns_for_one_role_are_refused(folder: Path) -> None:
    path = folder / "two.csv"
    path.write_text("x,act,a,next_x\n2,go,go,1\n")
    with pytest.raises(InputError) as caught:
        read_data(path, parametric(folder / "x.prism"))
    assert caught.value.message == "the columns 'act' and 'a' could each be the action"
    assert caught.value.hint == 'say which: `columns="action=act"`'


def test_all_files_are_used_in_their_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = folder / "a.csv", folder / "b.csv"
    one.write_text("x,action,x_next\n" + "2,go,1\n" * 30)
    two.write_text("x,action,x_next\n" + "2,go,0\n" * 70)
    model = parametric(folder / "x.prism")
    reading = read_data([one, two], model)
    assert reading.counts.transition.tolist() == [30, 70, 0, 0]
    assert reading.files == (str(one), str(two))
    assert reading.counts.batches is not None and reading.counts.batches[0][0].tolist() == [0]
    backwards = read_data([two, one], model).counts.batches
    assert backwards is not None and backwards[0][0].tolist() == [1]
    assert read_data(str(folder / "[ab].csv"), model).counts == reading.counts
    words = ["learn", str(folder / "x.prism"), "--data", str(one), "--data", str(two)]
    assert run([*words, "--prop", 'Pmax=? [ F "goal" ]', "--verbose"]) == 0
    said = "".join(capsys.readouterr().out.split())  # long lines are broken anywhere
    assert "in2files" in said and said.index(f"file{one}") < said.index(str(two))
    with pytest.raises(InputError, match="the file is given twice"):
        read_data([one, one], model)
