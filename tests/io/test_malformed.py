"""Broken model files: what is said, and where. One row a mistake.

Each row changes one thing in a good file. `{file}` in the expected text stands for the file's name,
and the text is all of the first line of the message.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cases.explicit_files import DOUBLES, DRN, DTMC_TRA, LAB, MDP_TRA, SREW, STA, TREW, put
from tightrope.errors import InputError
from tightrope.io.drn.read import read_drn
from tightrope.io.explicit import read_explicit

DRN_MISTAKES = [
    ("@type: MDP\n", "", "{file}:14:1: the section @type is missing before @model"),
    ("@type: MDP", "@type: SMG", "{file}:2:8: games are not supported; tightrope reads MDP and DTMC"),
    ("@type: MDP", "@type: CTMC", "{file}:20:2: a second action in a state of a CTMC"),
    (
        "@type: MDP",
        "@type: POMDP",
        "{file}:16:1: state 0 has no observation: in a partially observable model all states have one",
    ),
    ("@type: MDP", "@type: LTS", "{file}:2:1: unknown model type 'LTS'; tightrope reads MDP, DTMC and POMDP"),
    ("@type: MDP", "@type: MDP\n@type: MDP", "{file}:3:1: the section @type occurs twice"),
    ("@type: MDP", "@kind: MDP", "{file}:2:1: unknown section '@kind'"),
    ("parametric", "float", "{file}:3:1: unknown value type 'float'"),
    ("parametric", "double", "{file}:15:1: a model of value type double has no parameters"),
    ("p q\n", "p p\n", "{file}:5:1: a parameter is named twice"),
    ("@nr_states\n2", "@nr_states\ntwo", "{file}:12:1: the number of states expected, found 'two'"),
    ("@nr_states\n2", "@nr_states\n-2", "{file}:12:1: the number of states expected, found '-2'"),
    ("@nr_states\n2\n", "", "{file}:13:1: the section @nr_states is missing before @model"),
    ("@nr_states\n2", "@nr_states\n3", "{file}: the file declares 3 states and has 2"),
    ("@nr_choices\n3", "@nr_choices\n2", "{file}: the file declares 2 choices and has 3"),
    ("@model\n", "", "{file}:15:1: 'state 0 [0] init' is not expected before @model"),
    (
        "$0 : 1/2*p + 3/10",
        "$0 = 1/2*p",
        "{file}:7:1: a placeholder such as '$0 : 1/2*p' expected, found '$0 = 1/2*p'",
    ),
    ("$1 : 7/10", "$0 : 7/10", "{file}:8:1: the placeholder $0 is defined twice"),
    (
        "$0 : 1/2*p",
        "$0 : 1/2*x",
        "{file}:7:10: '1/2*x + 3/10': 'x' is not a parameter of the model (they are: p, q)",
    ),
    (
        "$0 : 1/2*p",
        "$0 : 1/(2+p)",
        "{file}:17:2: choice 'go' of state 0: probabilities sum to (6 - p^2)/(2*p + 4), not 1",
    ),
    ("0 : $0", "0 : $7", "{file}:18:7: the placeholder '$7' is not defined"),
    ("0 : q", "0 : q+", "{file}:21:9: 'q+': a number, a parameter or '(' expected, but the text ends"),
    ("0 : q", "0 : [0.1, 0.2]", "{file}:21:7: '[0.1, 0.2]': an interval in a model of exact values"),
    ("0 : q", "0 : 1/3", "{file}:20:2: choice 'stay' of state 0: probabilities sum to 4/3 - q, not 1"),
    ("1 : 1-q", "2 : 1-q", "{file}:22:3: there is no state 2: the states are 0 to 1"),
    ("1 : 1-q", "0 : 1-q", "{file}:22:3: a second transition of this action to state 0"),
    ("1 : 1-q", "1", "{file}:22:3: a transition such as '3 : 0.5' expected, found '1'"),
    ("1 : 1-q", "1x : 1-q", "{file}:22:3: '1x' is not the number of a state"),
    ("1 : 1-q", "99999999999 : 1-q", "{file}:22:3: '99999999999' is not the number of a state"),
    ("1 : 1-q", "to 1 : 1-q", "{file}:22:3: 'to 1 : 1-q' is not a line of a model"),
    ("\t\t0 : q\n\t\t1 : 1-q\n", "", "{file}:20:2: this action has no transition"),
    ("state 1 ", "state 2 ", "{file}:23:7: state 1 expected here, found '2'"),
    ("state 1 ", "state one ", "{file}:23:7: state 1 expected here, found 'one'"),
    ("[1/4]", "[1/4, 2]", "{file}:23:9: 2 rewards for 1 reward models"),
    (
        "[1/4]",
        "[1/p]",
        "{file}:23:10: '1/p': 1/p is not a polynomial: quotients are for probabilities only",
    ),
    ("[1/4]", "[1/4", "{file}:23:9: ']' is missing behind the rewards"),
    ("[1/4]", "[x]", "{file}:23:10: 'x': 'x' is not a parameter of the model (they are: p, q)"),
    ("[0] init", "[0]", "{file}: no state has the label 'init', so the initial state is not known"),
    ("goal", '"goal', "{file}:23:15: a quotation mark is not closed"),
    ("go [1.5]", "go [1.5] now", "{file}:17:18: unexpected 'now' behind the action"),
    ("@type: MDP", "@type: DTMC", "{file}:20:2: a second action in a state of a DTMC"),
    ("state 0 [0] init\n", "", "{file}:16:2: an action before the first state"),
    ("state 0 [0] init\n\taction go [1.5]\n", "", "{file}:18:2: an action before the first state"),
    ("// a comment", '//@tightrope {"version": 1}', "{file}:1:1: the comment //@tightrope is damaged"),
    ("// a comment", '//@tightrope {"version": 9}', "{file}:1:1: notes of version 9, not 1"),
    ("p q\n", "p q r\xff\n", None),
]


@pytest.mark.parametrize(("old", "new", "message"), DRN_MISTAKES)
def test_drn(old: str, new: str, message: str | None, tmp_path: Path) -> None:
    assert old in DRN
    file = tmp_path / "m.drn"
    if message is None:
        file.write_bytes(DRN.replace(old, new).encode("latin-1"))
        message = "{file}: this is not a text file in UTF-8"
    else:
        file.write_text(DRN.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_drn(file)
    assert str(caught.value).splitlines()[0] == message.format(file=file)
    assert caught.value.exit_code == 2


def test_the_good_drn_file_is_good(tmp_path: Path) -> None:
    (tmp_path / "m.drn").write_text(DRN, encoding="utf-8")
    assert read_drn(tmp_path / "m.drn").states == 2


@pytest.mark.parametrize("lines", range(25))
def test_a_drn_file_cut_off(lines: int, tmp_path: Path) -> None:
    """After any number of whole lines: an error that says so."""
    file = tmp_path / "m.drn"
    file.write_text("".join(DRN.splitlines(keepends=True)[:lines]), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_drn(file)
    if lines == 24:
        assert str(caught.value).splitlines()[0] == f"{file}:24:2: this action has no transition"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1 : 0.5", "1 : 0.4", "{file}:20:2: the probabilities of this action sum to 0.9, not 1"),
        ("1 : 0.5", "1 : 1.5", "{file}:22:3: a probability lies within [0, 1], this one does not"),
        ("1 : 0.5", "1 : -0.5", "{file}:22:3: a probability lies within [0, 1], this one does not"),
        ("1 : 0.5", "1 : nan", "{file}:22:7: 'nan': not a number"),
        ("1 : 0.5", "1 : 1e999", "{file}:22:7: '1e999': too large for a double"),
        ("1 : 0.5", "1 : half", "{file}:22:7: 'half': not a number"),
        ("1 : 0.5", "1 : ", "{file}:22:1: '': not a number"),
        (
            "1 : 0.5",
            "1 : [0.5, 0.5]",
            "{file}:22:7: '[0.5, 0.5]': an interval in a model of value type double",
        ),
    ],
)
def test_drn_of_doubles(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "m.drn"
    file.write_text(DOUBLES.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_drn(file)
    assert str(caught.value).splitlines()[0] == message.format(file=file)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[0.5, 0.4]", "{file}:22:3: a probability lies within [0, 1], this one does not"),
        ("[0.6, 0.7]", "{file}:20:2: no distribution fits these intervals: their bounds sum to [1.1, 1.2]"),
        ("[0.1, 0.4]", "{file}:20:2: no distribution fits these intervals: their bounds sum to [0.6, 0.9]"),
        ("[0.1]", "{file}:22:7: '[0.1]': an interval such as [0.1, 0.3] expected"),
        ("[0.1, 0.4", "{file}:22:7: '[0.1, 0.4': an interval such as [0.1, 0.3] expected"),
    ],
)
def test_drn_of_intervals(value: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "m.drn"
    text = DOUBLES.replace("1 : 0.5", f"1 : {value}", 1).replace(
        "@value_type: double", "@value_type: double-interval"
    )
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_drn(file)
    assert str(caught.value).splitlines()[0] == message.format(file=file)


EXPLICIT_MISTAKES = [
    (
        "tra",
        "3 4 6\n",
        "",
        "{tra}:1:1: the numbers of states, choices and transitions expected, found '0 0 1 0.5 a'",
    ),
    ("tra", "3 4 6", "3", "{tra}:1:1: two numbers (a DTMC) or three (an MDP) expected on the first line"),
    (
        "tra",
        "3 4 6",
        "mdp",
        "{tra}:1:1: this is Storm's own dialect of explicit files, which is not read",
    ),
    ("tra", "3 4 6", "3 4 7", "{tra}:1:1: the first line announces 7 transitions, the file has 6"),
    ("tra", "3 4 6", "3 5 6", "{tra}:1:1: the first line announces 5 choices, the file has 4"),
    ("tra", "3 4 6", "4 4 6", "{tra}: state 3 has no transition"),
    ("tra", "3 4 6", "0 4 6", "{tra}:1:1: the model has no state"),
    ("tra", "2 0 2 1", "2 0 9 1", "{tra}:7:1: there is no state 9: the states are 0 to 2"),
    ("tra", "2 0 2 1", "7 0 2 1", "{tra}:7:1: there is no state 7: the states are 0 to 2"),
    ("tra", "2 0 2 1", "2 1 2 1", "{tra}:7:1: the choices of state 2 are not numbered 0, 1, …"),
    ("tra", "2 0 2 1", "2 0 2", "{tra}:7:1: 'from choice to probability' expected, found '2 0 2'"),
    ("tra", "2 0 2 1", "2 0 2 one", "{tra}:7:7: 'one': not a number"),
    ("tra", "2 0 2 1", "2 0 x 1", "{tra}:7:5: 'x' is not a number of a state or choice"),
    ("tra", "2 0 2 1", "2 -1 2 1", "{tra}:7:1: the choices of a state are numbered from 0"),
    ("tra", "2 0 2 1", "2 0 2 1 a b", "{tra}:7:11: unexpected 'b' at the end"),
    ("tra", "2 0 2 1", "2 0 2 0.9", "{tra}:7:1: the probabilities of this choice sum to 0.9, not 1"),
    ("tra", "2 0 2 1", "2 0 2 1.5", "{tra}:7:1: a probability lies within [0, 1], this one does not"),
    (
        "tra",
        "2 0 2 1",
        "2 0 2 [0.1,0.2]",
        "{tra}:7:1: no distribution fits these intervals: their bounds sum to [0.1, 0.2]",
    ),
    ("tra", "0 0 2 0.5 a", "0 0 1 0.5 a", "{tra}:3:1: a second transition of this choice to state 1"),
    ("tra", "0 0 2 0.5 a", "0 0 2 0.5 z", "{tra}:3:1: a second action name for the same choice"),
    ("lab", '0="init"', "init", '{lab}:1:1: labels such as 0="init" 1="goal" expected on the first line'),
    ("lab", '2="goal"', '2="init"', "{lab}:1:22: label '2=\"init\"' is declared twice"),
    ("lab", "2: 1 2", "9: 1 2", "{lab}:3:1: there is no state 9: the states are 0 to 2"),
    ("lab", "2: 1 2", "2: 1 7", "{lab}:3:6: '7' is not the number of a label"),
    ("lab", "2: 1 2", "two: 1", "{lab}:3:1: the number of a state expected, found 'two'"),
    ("lab", "1: 0\n", "", "{lab}: no state has the label 'init'"),
    ("sta", "(x,b)", "x,b", "{sta}:1:1: a list such as (0,true) expected, found 'x,b'"),
    ("sta", "(x,b)", "(x,x)", "{sta}:1:1: two variables have one name"),
    ("sta", "1:(1,true)\n", "", "{sta}: state 1 is not described"),
    ("sta", "1:(1,true)", "0:(1,true)", "{sta}:3:1: state 0 is described twice"),
    ("sta", "1:(1,true)", "1:(1)", "{sta}:3:1: 1 values for 2 variables"),
    ("sta", "1:(1,true)", "1:(1.5,true)", "{sta}:3:4: '1.5' is neither a whole number nor true or false"),
    ("sta", "1:(1,true)", "1:(true,true)", "{sta}: variable 'x' is a number in some states only"),
    ("srew", "3 2", "4 2", "{srew}:1:1: rewards for 4 states, but the model has 3"),
    ("srew", "3 2", "3 3", "{srew}: the first line announces 3 rewards, the file has 2"),
    ("srew", "2 0.5", "3 0.5", "{srew}:3:1: there is no state 3: the states are 0 to 2"),
    ("srew", "2 0.5", "0 0.5", "{srew}:3:1: a second reward for state 0"),
    ("srew", "2 0.5", "2 much", "{srew}:3:3: 'much': not a number"),
    ("srew", "2 0.5", "2", "{srew}:3:1: 1 numbers and a reward expected, found '2'"),
    ("trew", "0 0 2 1", "0 0 0 1", "{trew}:3:1: a reward for a transition that the model does not have"),
    ("trew", "0 0 2 1", "0 0 1 1", "{trew}:3:1: a second reward for the same transition"),
    ("trew", "0 0 2 1\n", "", "{trew}: the first line announces 2 rewards, the file has 1"),
]


@pytest.mark.parametrize(("which", "old", "new", "message"), EXPLICIT_MISTAKES)
def test_explicit(which: str, old: str, new: str, message: str, tmp_path: Path) -> None:
    texts = {"tra": MDP_TRA, "lab": LAB, "sta": STA, "srew": SREW, "trew": TREW}
    assert old in texts[which]
    texts[which] = texts[which].replace(old, new, 1)
    base = put(tmp_path, **texts)
    with pytest.raises(InputError) as caught:
        read_explicit(base)
    names = {suffix: base.with_suffix(f".{suffix}") for suffix in texts}
    assert str(caught.value).splitlines()[0] == message.format(**names)
    assert caught.value.exit_code == 2


def test_explicit_without_its_main_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*m\.tra: No such file or directory"):
        read_explicit(put(tmp_path, lab=LAB))


def test_reward_files_that_disagree(tmp_path: Path) -> None:
    base = put(
        tmp_path, tra=DTMC_TRA, srew='# Reward structure "a"\n2 0\n', trew='# Reward structure "b"\n2 0\n'
    )
    with pytest.raises(InputError, match="call their reward structure 'a' and 'b'"):
        read_explicit(base)
