"""Certificates of long-run averages and of temporal formulas: honest ones verify, and hold Storm's value."""

from __future__ import annotations

import json
import random
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stormpy

import tightrope as tr
from tightrope.certify.certificate_file import as_file
from tightrope.cli.app import run
from tightrope.logic.formula import reduce_automaton
from tightrope.model.product import Automaton, RabinPair
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL

FORMULAS = [
    '(G F "a") & (G F "b")',
    '(F G "a") | (G F "b")',
    'F ("a" & (X (F "b")))',
    '(F "a") & (G !"c")',
    'G (!"a" | (F "b"))',
    '(F ("b" & (X "c"))) & (G F "a")',
]


def random_model(rng: random.Random, states: int, intervals: bool) -> Any:
    rows: list[tuple[int, str, dict[int, Any]]] = []
    for s in range(states):
        for c in range(rng.randint(1, 2)):
            leads = [s] if s == states - 1 else rng.sample(range(states), rng.randint(1, 3))
            if intervals and (len(leads) > 1 or s == 0):
                leads = leads if len(leads) > 1 else [leads[0], (leads[0] + 1) % states]
                entries = {t: (0.5 / len(leads), min(1.0, 1.5 / len(leads))) for t in leads}
            else:
                entries = {t: f"1/{len(leads)}" for t in leads}
            rows.append((s, f"c{c}", entries))
    labels = {name: rng.sample(range(states), 2) for name in "abc"}
    return tr.build_from_rows(
        rows, labels=labels, state_rewards={"r": [rng.randint(0, 9) for _ in range(states)]}
    )


def certified(model: Any, asked: str, path: Path) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        low, high = tr.certify(tr.Problem(model, asked), path, overwrite=True)["value"]
    return low, high


@pytest.mark.thinned(2)
@pytest.mark.parametrize("intervals", [False, True])
def test_honest_certificates_verify_and_hold_the_value(intervals: bool, tmp_path: Path) -> None:
    rng, path, strict = random.Random(21), tmp_path / "c.cert", 0
    for number in range(6):
        model = random_model(rng, 6, intervals)
        direction = rng.choice(["max", "min"])
        letters = direction + (rng.choice(["max", "min"]) if intervals else "")
        for asked in (
            f"P{letters}=? [ {FORMULAS[number]} ]",
            f'R{{"r"}}{letters}=? [ S ]',
            f'S{letters}=? [ "a" ]',
        ):
            low, high = certified(model, asked, path)
            for exact in (False, True):
                verdict = tr.verify(path, model=model, property=asked, exact=exact)
                assert verdict.valid and verdict.not_tied == () and verdict.assumes == (), (asked, verdict)
            solved = model.instantiate() if isinstance(model, tr.ParametricMDP) else model
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tr.ReadingWarning)
                bounds = tr.solve(solved, asked).bounds
            assert bounds is not None and high - low <= 2e-5 and low <= bounds[1] and bounds[0] <= high
            strict += low > 0 and high < 1
            if not intervals:
                words = asked.replace("[ S ]", "[ LRA ]").replace(f"S{direction}", f"LRA{direction}")
                (parsed,) = stormpy.parse_properties(words)
                value = stormpy.model_checking(tr.to_stormpy(solved), parsed).get_value(0)
                assert low - 1e-5 <= float(value) <= high + 1e-5, asked
    assert strict >= 3


def test_averages_of_several_components_by_hand(tmp_path: Path) -> None:
    rows = [
        (0, "left", {1: 1}),
        (0, "right", {2: "1/4", 3: "3/4"}),
        (1, "", {1: "1/2", 0: "1/2"}),
        (2, "", {2: 1}),
        (3, "", {4: 1}),
        (4, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, state_rewards={"r": [0, 3, 8, -4, 1]})
    assert certified(model, "Rmax=? [ S ]", tmp_path / "a.cert") == pytest.approx((2, 2), abs=1e-5)
    assert certified(model, "Rmin=? [ S ]", tmp_path / "b.cert") == pytest.approx((0.875, 0.875), abs=1e-5)
    found = load(tmp_path / "b.cert").certificate
    hints = found.values[0]
    assert hints.lower is not None and hints.lower_bias is not None
    for changed in (
        replace(hints, lower=hints.lower + 1e-3),
        replace(hints, lower_bias=np.zeros(5)),
        replace(hints, witness=np.array([0, 2, 3, 4, 5])),
    ):
        forged = replace(found, values=(changed,))
        assert not check(forged, FLOAT64).valid and not check(forged, RATIONAL).valid


def test_one_pick_of_nature_satisfies_both_inequalities(tmp_path: Path) -> None:
    """Nature, who minimises, would like another p for the gain than for the bias."""
    rows: list[Any] = [
        (0, "", {1: (0.2, 0.8), 2: (0.2, 0.8)}),
        (1, "", {1: (1, 1)}),
        (2, "", {2: (0.25, 0.75), 3: (0.25, 0.75)}),
        (3, "", {2: (1, 1)}),
    ]
    model = tr.build_from_rows(rows, state_rewards={"r": [50, 1, 0, 7]})
    # In {2, 3} she stays in 2 with 3/4: a fifth of the time in 3. She goes to 1 with 4/5.
    average = 0.8 * 1.0 + 0.2 * 7 / 5
    found = certified(model, "Rmaxmin=? [ S ]", tmp_path / "n.cert")
    assert found == pytest.approx((average, average), abs=1e-5)
    assert tr.verify(tmp_path / "n.cert", model=model, property="Rmaxmin=? [ S ]").valid


def test_the_command_line_ties_formula_and_automaton(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, proof = tmp_path / "m.prism", str(tmp_path / "m.cert")
    source.write_text(
        "mdp\nmodule m\n s : [0..2];\n [a] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);\n [b] s=0 -> (s'=0);\n"
        " [a] s>0 -> (s'=0);\nendmodule\n"
    )
    asked = ["--prop", "Pmax=? [ (G (F s=1)) & (G (s=1 => (X s=0))) ]"]
    assert run(["check", str(source), *asked, "--certificate", proof]) == 0
    capsys.readouterr()
    assert run(["verify", proof]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "compared nothing of yours (add --model MODEL, --prop P)" in shown
    assert "the automaton's meaning is not compared with any formula" in shown
    assert run(["verify", proof, "--model", str(source), *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bound"] == {"model": True, "property": True, "data": None, "policy": None}
    assert found["assumes"] == [] and (found["lower"], found["upper"]) == (1.0, 1.0)
    other = ["--prop", "Pmax=? [ (G (F s=1)) & (G (s=1 => (X s=2))) ]"]
    assert run(["verify", proof, "--model", str(source), *other]) == 1
    assert "about another property: 'automaton." in capsys.readouterr().err
    assert run(["check", str(source), "--prop", "P>=1 [ F P>=1 [ X s=1 ] ]", "--certificate", proof]) == 2
    assert "--certificate cannot be used with" in capsys.readouterr().err


def test_automata_of_other_programs_stay_trusted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, proof, hoa = tmp_path / "m.prism", str(tmp_path / "m.cert"), tmp_path / "answer.py"
    source.write_text("dtmc\nmodule m\n s : [0..1];\n [] true -> 0.5:(s'=0) + 0.5:(s'=1);\nendmodule\n")
    model = tr.load(str(source))
    asked = "P=? [ G (F s=1) ]"
    text = tr.to_hoa(model, asked)
    hoa.write_text(f"import sys\nsys.stdin.read()\nsys.stdout.write({text!r})\n")
    command = ["--ltl-translator", f"{sys.executable} {hoa}"]
    assert run(["check", str(source), "--prop", asked, *command, "--certificate", proof]) == 0
    capsys.readouterr()
    bound = ["--model", str(source), "--prop", asked]
    assert run(["verify", proof, *bound]) == 1
    assert "an automaton that another program made" in capsys.readouterr().err
    assert run(["verify", proof, *bound, *command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["assumes"][0].startswith("automaton-believed") and found["bound"]["property"] is True


def test_reduced_automata_accept_the_same(tmp_path: Path) -> None:
    successor = np.array([[1, 0], [2, 0], [1, 0], [3, 3]], np.int32)
    mark = np.zeros((4, 2), np.bool_)
    mark[1] = mark[2] = True
    none = np.zeros((4, 2), np.bool_)
    pairs = [RabinPair(mark, (mark,)), RabinPair(none, (mark,)), RabinPair(none, (mark, mark))]
    small, kept = reduce_automaton(Automaton(successor), pairs)
    assert small.states == 2 and len(kept) == 1
    assert small.successor.tolist() == [[1, 0], [1, 0]] and kept[0].repeated[0].tolist() == [
        [False] * 2,
        [True] * 2,
    ]


def test_where_nature_can_cut_transitions_only_what_settles_is_certified(tmp_path: Path) -> None:
    rows: list[Any] = [(0, "", {0: (0, 0.8), 1: (0.2, 1)}), (1, "", {0: (1, 1)})]
    model = tr.build_from_rows(rows, labels={"a": [1]})
    low, _ = certified(model, 'Pmaxmin=? [ F ("a" & (X (X "a"))) ]', tmp_path / "s.cert")
    assert low > 0.99 and tr.verify(tmp_path / "s.cert", exact=True).valid
    with pytest.raises(tr.InputError, match="nature can remove transitions"):
        certified(model, 'Pmaxmin=? [ G (F (!"a")) ]', tmp_path / "t.cert")
    assert not (tmp_path / "t.cert").exists()


def test_files_name_their_parts(tmp_path: Path) -> None:
    model = random_model(random.Random(1), 4, False)
    certified(model, 'Pmax=? [ G (F "a") ]', tmp_path / "c.cert")
    found = load(tmp_path / "c.cert").certificate
    assert as_file(found).digest == load(tmp_path / "c.cert").digest
    automaton = found.problem.automaton
    assert automaton is not None and automaton.successor.shape == (2, 2) and not automaton.believed
    assert automaton.atom.tolist() == [model.labels["a"].tolist()]
