"""Automata of other translators: the HOA format, and the command that `check --ltl-translator` runs."""

from __future__ import annotations

import json
import random
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.logic.accepting import states_meeting
from tightrope.logic.formula import FALSE, TRUE, atom, both, either, eventually, globally, next_, until
from tightrope.logic.hoa import ltl_text, read_hoa
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, ObjectiveKind
from tightrope.model.product import Letters, product_of

EITHER = """HOA: v1
name: "FG a0 | GF a1" /* a comment */
States: 1
Start: 0
AP: 2 "a1" "a0"
Alias: @b 0
acc-name: generalized-Rabin 2 0 1
Acceptance: 2 Fin(0) | Inf(1)
properties: trans-labels explicit-labels trans-acc deterministic complete
--BODY--
State: 0 "only"
[1&!@b] 0
[1&@b] 0 {1}
[!1&!0] 0 {0}
[!1&(0|f)] 0 {0 1}
--END--
"""
SAFE_THEN = """HOA: v1
States: 2
Start: 1
AP: 1 "a0"
Acceptance: 2 Inf(0)&Inf(1)
--BODY--
State: [t] 0 {0 1} 0
State: 1 [0] 0
--END--
"""


def test_conditions_become_pairs_over_the_letters_that_occur() -> None:
    automaton, pairs = read_hoa(EITHER, 2, (0b00, 0b01, 0b10))
    assert automaton.states == 2 and automaton.successor.tolist() == [[0, 0, 0], [1, 1, 1]]
    stays, repeats = pairs
    assert stays.avoided.tolist() == [[True, False, True], [True, True, True]] and stays.repeated == ()
    assert repeats.avoided.tolist() == [[False] * 3, [True] * 3]
    assert repeats.repeated[0].tolist() == [[False, False, True], [False] * 3]


def test_missing_edges_reject_and_marks_of_states_are_marks_of_their_edges() -> None:
    automaton, (pair,) = read_hoa(SAFE_THEN, 1, (0, 1))
    assert automaton.successor.tolist() == [[2, 1], [1, 1], [2, 2]]
    assert pair.avoided.tolist() == [[True, False], [False, False], [True, True]]
    assert [mask.tolist()[1] for mask in pair.repeated] == [[True, True], [True, True]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("HOA: v1", "never {", "does not begin with  HOA: v1"),
        ("[1&!@b] 0\n", "[1] 0\n", "it is not deterministic: state 0 has 2 edges for one letter"),
        ('"a1"', '"b"', "an atom 'b' that it was not asked about"),
        ("Inf(1)", "Inf(!1)", "complemented sets in the acceptance condition are not supported"),
        ("Inf(1)", "Or(1)", "unexpected 'Or' in the acceptance condition"),
        ("Start: 0", "Start: 0\nStart: 0", "it has 2 initial states"),
        ("Start: 0", "Start: 3", "state 3 is not described"),
        ("[1&@b] 0", "[1&@b] 0&0", "'&' stands where a number is required"),
        ("[1&@b]", "[1&7]", "unexpected '7' in a label"),
        ("--END--", "", "the text ends too early"),
        ("Acceptance: 2 Fin(0) | Inf(1)\n", "", "it has no Acceptance"),
        ("[1&!@b] 0\n[1&@b] 0 {1}\n[!1&!0] 0 {0}\n[!1&(0|f)] 0 {0 1}", "0", "edges without labels"),
    ],
)
def test_what_is_not_read_is_refused(old: str, new: str, message: str) -> None:
    assert old in EITHER
    with pytest.raises(tr.InputError) as caught:
        read_hoa(EITHER.replace(old, new), 2, (0, 1, 2, 3))
    assert message in str(caught.value) and str(caught.value).startswith("the automaton: ")


def test_formulas_are_written_as_translators_read_them() -> None:
    a, b = atom(0), atom(1, False)
    assert ltl_text(either(globally(eventually(a)), both(next_(b), until(a, b)))) == (
        "(((a0) U (!a1)) & X(!a1)) | (G(F(a0)))"
    )
    assert (ltl_text(TRUE), ltl_text(FALSE)) == ("true", "false")


SCRIPT = f"""
import sys
formula = sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read().strip()
if formula != "(F(G(a0))) | (G(F(a1)))":
    sys.exit("no such formula: " + formula)
print({EITHER!r})
"""
ASKED = 'Pmax=? [ (F G "a") | (G F "b") ]'


@pytest.fixture
def command(tmp_path: Path) -> str:
    (tmp_path / "translate.py").write_text(SCRIPT)
    return f"{sys.executable} {tmp_path / 'translate.py'}"


@pytest.mark.parametrize("place", ["", " {}"])
def test_an_external_automaton_gives_the_value_of_our_own(command: str, place: str) -> None:
    rows = [
        (0, "x", {1: 0.25, 2: 0.75}),
        (0, "y", {3: 1}),
        (1, "", {1: 1}),
        (2, "", {0: 0.5, 3: 0.5}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, labels={"a": [1], "b": [0]})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        theirs = tr.solve(model, ASKED, ltl_translator=command + place)
        ours = tr.solve(model, ASKED)
    assert any("are taken from" in str(warning.message) for warning in told)
    assert ours.lower is not None and theirs.lower is not None
    assert theirs.lower == pytest.approx(ours.lower) and ours.lower[0] == pytest.approx(0.4, abs=1e-6)


def test_check_runs_the_command_and_says_what_went_wrong(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "m.prism"
    program.write_text("dtmc module m s:[0..1]; [] true -> 0.5:(s'=0) + 0.5:(s'=1); endmodule")
    asked = ["check", str(program), "--prop", "P=? [ (F G s=0) | (G F s=1) ]", "--ltl-translator"]
    assert run([*asked, "no-such-command-anywhere"]) == 2
    assert "no-such-command-anywhere cannot be run" in capsys.readouterr().err
    assert run([*asked, command]) == 2  # s=1 is the negation of s=0: another formula
    shown = capsys.readouterr().err
    assert "ended with exit code 1 for (F(G(a0))) | (G(F(!a0)))" in shown and "no such formula" in shown
    program.write_text("dtmc module m s:[0..2]; [] true -> 0.5:(s'=0) + 0.25:(s'=1) + 0.25:(s'=2); endmodule")
    assert run([*asked, command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["lower"], found["upper"]) == (1.0, 1.0)
    assert any("and believed" in note for note in found["notes"])
    assert found["status"] == "automaton-believed"
    assert run([*asked, command, "--prop", "P=? [ F s=1 ]", "--json"]) == 0  # a plain one is ours
    both = json.loads(capsys.readouterr().out)["properties"]
    assert [one["status"] for one in both] == ["automaton-believed", "certified"]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "path",
    [
        '(G F "a") & ((F G "b") | (G F "c"))',
        '(F G "a") | (G F "b")',
        'G ("a" => (F "b"))',
        'F ("a" & (X "b"))',
        'G ("a" | (X "c"))',
        '("a" U (G "b")) | (X X "c")',
        '(G F "a") => (G F "b")',
    ],
)
def test_written_automata_have_the_values_of_their_formulas(path: str) -> None:
    rng = random.Random(7)
    for _ in range(3):
        rows = []
        for s in range(6):
            for c in range(rng.randint(1, 2)):
                one, other = rng.sample(range(6), 2)
                rows.append((s, f"c{c}", {one: 0.5, other: 0.5} if s < 5 else {s: 1}))
        model = tr.build_from_rows(rows, labels={name: rng.sample(range(6), 2) for name in "abc"})
        assert isinstance(model, tr.ParametricMDP)
        mdp = model.instantiate()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tr.ReadingWarning)
            expected = tr.solve(mdp, f"Pmax=? [ {path} ]").bounds
        text = tr.to_hoa(mdp, f"Pmax=? [ {path} ]")
        names = re.findall(r'/\* a\d: "(\w)" \*/', text)
        letters = Letters.of([mdp.labels[name] for name in names], mdp.states)
        automaton, pairs = read_hoa(text, len(names), letters.bits)
        product = product_of(Support.of(mdp), letters, automaton, np.zeros(1, np.int64))
        there = product.model(mdp)
        target = np.zeros(there.states, np.bool_)
        for pair in pairs:
            target |= states_meeting(Support.of(there), product, letters, pair)
        found = tr.solve(
            there, tr.Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MIN, target=target)
        )
        assert expected is not None
        assert (found.lower[0], found.upper[0]) == pytest.approx(expected, abs=1e-5)
