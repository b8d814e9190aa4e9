"""CTL, nested operators, filters and arithmetic over results: `tr.solve` and `check`.

Also of `logic/operators.py`, `logic/values.py`, `logic/temporal.py`.
"""

from __future__ import annotations

import json
import random
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.logic.evaluate import UndecidedError
from tightrope.logic.values import StateBounds, StateTruth, round_half_up
from tightrope.model.graph import components as branching
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, ObjectiveKind
from tightrope.model.structure import RewardStructure

ROWS = [
    (0, "try", {1: "1/2", 2: "1/4", 3: "1/4"}),
    (0, "wait", {0: "1/2", 2: "1/2"}),
    (1, "", {1: 1}),
    (2, "", {2: 1}),
    (3, "", {1: "1/8", 3: "7/8"}),
]


@pytest.fixture(scope="module")
def model() -> tr.ParametricMDP:
    built = tr.build_from_rows(
        ROWS,
        labels={"goal": [1], "trap": [2], "slow": [3]},
        state_rewards={"steps": [1, 0, 0, 1]},
    )
    assert isinstance(built, tr.ParametricMDP)
    return built


def answer(model: Any, text: str, **options: Any) -> tr.Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        return tr.solve(model, text, **options)


# --- branching time ---------------------------------------------------------------------------------------


def on_paths(
    successors: list[set[int]], operator: str, left: set[int], right: set[int], every: bool
) -> set[int]:
    """CTL by the definition of its fixpoints, state by state."""
    states = set(range(len(successors)))

    def before(found: set[int]) -> set[int]:
        if every:
            return {s for s in states if successors[s] <= found}
        return {s for s in states if successors[s] & found}

    if operator == "X":
        return before(right)
    found = set() if operator in "FU" else states
    while True:
        step = right | (left & before(found))
        if operator in "GR":
            step = right & (left | before(found))
        if step == found:
            return found
        found = step


@pytest.mark.parametrize("every", [True, False])
def test_branching_time_is_decided_by_the_graph(every: bool) -> None:
    rng = random.Random(5)
    letter = "A" if every else "E"
    for _ in range(12):
        rows: list[tuple[int, str, dict[int, Any]]] = []
        for s in range(7):
            for c in range(rng.randint(1, 2)):
                chosen = rng.sample(range(7), rng.randint(1, 2))
                rows.append((s, f"c{c}", {t: Fraction(1, len(chosen)) for t in chosen}))
        a, b = (set(rng.sample(range(7), 4)) for _ in "ab")
        built = tr.build_from_rows(rows, labels={"a": sorted(a), "b": sorted(b)})
        successors = [{t for r in rows if r[0] == s for t in r[2]} for s in range(7)]
        everything, nothing = set(range(7)), set[int]()
        for text, operator, left in [
            ('X "b"', "X", nothing),
            ('F "b"', "F", everything),
            ('G "b"', "G", nothing),
            ('"a" U "b"', "U", a),
            ('"a" W "b"', "W", a),
            ('"a" R "b"', "R", a),
        ]:
            found = answer(built, f"{letter} [ {text} ]").holds
            assert found is not None
            assert set(np.flatnonzero(found)) == on_paths(successors, operator, left, b, every), text
            negated = answer(built, f"{letter} [ !({text}) ]").holds
            other = answer(built, f"!{'E' if every else 'A'} [ {text} ]").holds
            assert negated is not None and other is not None and (negated == other).all()


def test_paths_are_those_that_nature_can_make_possible() -> None:
    rows = [(0, "", {0: (0.2, 1), 1: (0, 0.8)}), (1, "", {1: 1})]
    built = tr.build_from_rows(rows, labels={"end": [1]})
    assert answer(built, 'E [ F "end" ]').truth == "true"
    assert answer(built, 'A [ F "end" ]').truth == "false"
    assert isinstance(built, tr.IntervalMDP)
    assert branching.some_next(Support.of(built), np.array([False, True])).tolist() == [True, True]


def test_branching_time_takes_any_path() -> None:
    rows = [(0, "stay", {0: 0.5, 1: 0.5}), (0, "go", {2: 1}), (1, "", {0: 1}), (2, "", {2: 1})]
    built = tr.build_from_rows(rows, labels={"one": [1], "end": [2]})
    for text, truth in [
        ('E [ G F "one" ]', "true"),
        ('A [ G F "one" ]', "false"),
        ('A [ (F "end") | (G F !"end") ]', "true"),
        ('E [ (F "one") & (F "end") ]', "true"),
        ('E [ (G F "one") & (F "end") ]', "false"),
        ('A [ G (!"one" | (X !"end")) ]', "true"),
        ('E [ X X "end" ]', "true"),
        ('E [ F<=0 "one" ]', "false"),
        ('E [ F<=1 "one" ]', "true"),
        ('A [ F<=5 "end" ]', "false"),
        ('A [ G[1,2] "end" ]', "false"),
        ('E [ "one" ]', "false"),
        ('A [ !"one" ]', "true"),
    ]:
        assert answer(built, text).truth == truth, text
    assert answer(built, 'filter(count, E [ G F "one" ], true)').bounds == (2, 2)


# --- operators inside formulas ------------------------------------------------------------------------------


def test_operators_inside_formulas_are_decided_per_state(model: tr.ParametricMDP) -> None:
    # In state 3 the goal is certain, in state 0 it has probability 3/4 at most, in state 2 it has 0.
    assert answer(model, 'Pmax=? [ F P>=0.9 [ F "goal" ] ]').bounds == pytest.approx((0.75, 0.75))
    assert answer(model, 'Pmin=? [ G P>0 [ F "goal" ] ]').bounds == pytest.approx((0.0, 0.0))
    assert answer(model, 'P>=0.2 [ X ("slow" & P>=1 [ F "goal" ]) ]').truth == "false"  # whatever it chooses
    assert answer(model, 'Pmax>=0.2 [ X ("slow" & P>=1 [ F "goal" ]) ]').truth == "true"
    assert answer(model, 'E [ F R<=8.5 [ F "goal" | "trap" ] & "slow" ]').truth == "true"
    assert answer(model, 'A [ G ("trap" => P<=0 [ F "goal" ]) ] & Pmax<0.8 [ F "goal" ]').truth == "true"
    assert answer(model, 'label "sure" = P>=1 [ F "goal" ]; Pmax=? [ X "sure" ]').bounds == pytest.approx(
        (0.75, 0.75)
    )


def test_thresholds_that_bounds_straddle_are_not_guessed() -> None:
    third = tr.build_from_rows(
        [(0, "", {0: "1/3", 1: "1/3", 2: "1/3"}), (1, "", {1: 1}), (2, "", {2: 1})], labels={"goal": [1]}
    )
    with pytest.raises(UndecidedError, match=r'P>=0.5 \[ F "goal" \] is not decided in 1 state, such as 0'):
        answer(third, 'P=? [ X P>=0.5 [ F "goal" ] ]')
    assert answer(third, 'P=? [ X P>=0.4999 [ F "goal" ] ]').bounds == pytest.approx((2 / 3, 2 / 3))
    outer = answer(third, 'P>=0.5 [ F "goal" ] | "goal"')
    assert outer.truth == "not certified" and not outer.is_certified
    assert answer(third, 'P>=0.5 [ F "goal" ] | "init"').truth == "true"


def test_on_interval_models_a_threshold_is_about_all_of_nature() -> None:
    built = tr.build_from_rows(
        [(0, "", {1: (0.4, 0.6), 2: (0.4, 0.6)}), (1, "", {1: 1}), (2, "", {2: 1})], labels={"goal": [1]}
    )
    assert answer(built, 'E [ X true ] & P>=0.39 [ F "goal" ]').truth == "true"
    assert answer(built, 'E [ X true ] & P>=0.5 [ F "goal" ]').truth == "false"
    assert answer(built, 'E [ X true ] & Pmax>=0.5 [ F "goal" ]').truth == "true"


# --- filters and arithmetic ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ('filter(min, Pmax=? [ F "goal" ])', 0, 0),
        ('filter(max, Pmax=? [ F "goal" ], !"goal" & !"slow")', 0.75, 0.75),
        ('filter(sum, Pmax=? [ F "goal" ])', 2.75, 2.75),
        ('filter(+, Pmax=? [ F "goal" ])', 2.75, 2.75),
        ('filter(avg, Pmax=? [ F "goal" ])', 0.6875, 0.6875),
        ('filter(first, Pmax=? [ F "goal" ], "slow" | "goal")', 1, 1),
        ('filter(state, Pmax=? [ F "goal" ], "init")', 0.75, 0.75),
        ('filter(range, Pmax=? [ F "goal" ])', 0, 1),
        ('filter(count, P>=0.9 [ F "goal" ])', 2, 2),
        ('filter(count, "goal" | "trap")', 2, 2),
        ('filter(printall, Pmax=? [ F "goal" ], "slow")', 0.75, 0.75),
        ('round(1 + Pmax=? [ F "goal" ])', 2, 2),
        ('floor(Pmax=? [ F "goal" ]) + ceil(Pmax=? [ F "goal" ])', 1, 1),
        ('Pmax=? [ F "goal" ] - Pmin=? [ F "goal" ]', 0.75, 0.75),
        ('Pmax=? [ F "goal" ] / 3 * 2', 0.5, 0.5),
        ('pow(Pmax=? [ F "goal" ], 2)', 0.5625, 0.5625),
        ('max(Pmax=? [ F "goal" ], 0.8, 1/3)', 0.8, 0.8),
        ('min(Rmax=? [ F "goal" ], 7)', 7, 7),
        ('Rmax=? [ F "goal" ] * 0', float("-inf"), float("inf")),
        ('P>=0.1 [ F "goal" ] ? 1 : 2 * filter(max, Pmax=? [ F "goal" ])', 2, 2),
        ("-1/3", -1 / 3, -1 / 3),
    ],
)
def test_numbers(model: tr.ParametricMDP, text: str, lower: float, upper: float) -> None:
    found = answer(model, text)
    assert found.bounds is not None
    assert found.bounds == pytest.approx((lower, upper), abs=1e-6)
    assert found.bounds[0] <= lower <= upper <= found.bounds[1] or text == "-1/3"
    assert found.is_certified == (lower != float("-inf"))


def test_rewards_of_one_moment(model: tr.ParametricMDP, tmp_path: Path) -> None:
    def value(text: str) -> float:
        bounds = answer(model, text).bounds
        assert bounds is not None and bounds[1] - bounds[0] < 1e-12
        return sum(bounds) / 2

    assert value("Rmax=? [ I=0 ]") == 1 and value("Rmin=? [ I=0 ]") == 1
    assert value("Rmin=? [ I=1 ]") == pytest.approx(0.25)
    assert value("Rmax=? [ I=1 ]") == pytest.approx(0.5)
    assert value("Rmax=? [ I=2 ]") == pytest.approx(
        0.25
    )  # wait twice, or wait and try, or try: 1/4, 1/8, 7/32
    assert value("filter(max, Rmax=? [ I=2 ])") == pytest.approx(49 / 64)
    assert answer(model, "Rmax<=0.2 [ I=1 ] | false").truth == "false"
    with pytest.raises(tr.InputError, match="instantaneous rewards I=k are not supported here"):
        _ = tr.Problem(model, "Rmax=? [ I=1 ]").objective
    last = tr.Objective(
        ObjectiveKind.CUMULATIVE,
        Direction.MAX,
        Direction.MIN,
        upper_steps=1,
        reward=RewardStructure(),
        terminal=np.ones(4),
    )
    with pytest.raises(tr.InputError, match="certificates do not cover instantaneous rewards"):
        tr.certify(tr.Problem(model, last), tmp_path / "last.cert")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('filter(forall, P>=0 [ F "goal" ])', "true"),
        ('filter(&, P>=0.5 [ F "goal" ])', "false"),
        ('filter(exists, P>=0.5 [ F "goal" ])', "true"),
        ('filter(|, P>=0.5 [ F "goal" ], "trap")', "false"),
        ('filter(argmax, Pmax=? [ F "goal" ])', "false"),
        ('filter(argmin, Pmin=? [ F "goal" ])', "true"),
        ('Pmax=? [ F "goal" ] > Pmin=? [ F "goal" ]', "true"),
        ('Pmax=? [ F "goal" ] != 0.25 & Pmax=? [ F "goal" ] < 4/5', "true"),
        ('(Pmax=? [ F "goal" ] >= 0.5) <=> "trap"', "false"),
        ('"init"', "true"),
        ('"goal" | "trap"', "false"),
    ],
)
def test_verdicts(model: tr.ParametricMDP, text: str, verdict: str) -> None:
    assert answer(model, text).truth == verdict


def test_listed_states(model: tr.ParametricMDP) -> None:
    def listed(text: str) -> list[int]:
        found = answer(model, text).listed
        assert found is not None
        return np.flatnonzero(found).tolist()

    assert listed('filter(print, Pmax=? [ F "goal" ])') == [0, 1, 3]
    assert listed('filter(printall, Pmax=? [ F "goal" ], !"goal")') == [0, 2, 3]
    assert listed('filter(print, P>=0.9 [ F "goal" ])') == [1, 3]
    assert listed('filter(argmin, Pmax=? [ F "goal" ])') == [2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('filter(min, "goal")', "is about numbers, not a formula that is true or false"),
        ('filter(forall, Pmax=? [ F "goal" ])', "is about a formula that is true or false, not a number"),
        ('filter(state, Pmax=? [ F "goal" ])', "is about one state, but 4 are meant"),
        ('filter(max, Pmax=? [ F "goal" ], false)', "has no states"),
        ('1 + filter(range, Pmax=? [ F "goal" ])', "a range of values is not a number"),
        ('Pmax=? [ F "goal" ] & "goal"', "this is a number, where true or false is required"),
        ('1 + P>=0.5 [ F "goal" ]', "this is true or false, where a number is required"),
        ('Pmax=? [ F Pmax=? [ F "goal" ] ]', "inside a formula an operator has a threshold"),
        ('log(Pmax=? [ F "goal" ], 2)', "log of a result is not supported"),
        ('pow(Pmax=? [ F "goal" ], 0.5)', "the exponent of a result is a whole number from -1000 to 1000"),
        ('P=? [ F "goal" ] + 1', "P=\\? is ambiguous: the model has choices"),
        ('R{"steps"}max=? [ G "goal" ]', "it is not co-safe"),
    ],
)
def test_what_has_no_answer_is_refused(model: tr.ParametricMDP, text: str, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        answer(model, text)


def test_interval_arithmetic_encloses_exact_results() -> None:
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=200), rng.normal(size=200) * 1e3
    one, other = StateBounds(left, left), StateBounds(right, right)
    for bounds, exact in [
        (one.plus(other), [Fraction(a) + Fraction(b) for a, b in zip(left, right, strict=True)]),
        (one.times(other), [Fraction(a) * Fraction(b) for a, b in zip(left, right, strict=True)]),
        (one.divided_by(other), [Fraction(a) / Fraction(b) for a, b in zip(left, right, strict=True)]),
    ]:
        ends = zip(bounds.lower, exact, bounds.upper, strict=True)
        assert all(Fraction(low) <= value <= Fraction(high) for low, value, high in ends)
        assert np.all(bounds.upper - bounds.lower <= 1e-15 * np.maximum(np.abs(bounds.upper), 1))
    wide = StateBounds(np.array([-1.0, 1.0]), np.array([2.0, 3.0]))
    assert wide.times(wide).lower.tolist() == pytest.approx([-2, 1])
    assert np.isneginf(wide.divided_by(wide).lower[0]) and wide.divided_by(wide).upper[1] >= 3
    assert round_half_up(np.array([0.5, 0.49999999999999994, -0.5, 1.5, np.inf])).tolist() == [
        1,
        0,
        0,
        2,
        np.inf,
    ]
    third = StateBounds(np.array([1 / 3]), np.array([1 / 3]))
    assert third.meets(">=", Fraction(1, 3)).fails.tolist() == [True]  # the double below a third
    assert third.meets("<", Fraction(1, 3)).holds.tolist() == [True]


def test_logic_with_open_parts() -> None:
    yes, no, open_ = (
        StateTruth(np.array([h]), np.array([f])) for h, f in ((True, False), (False, True), (False, False))
    )
    assert open_.both(no).fails[0] and open_.either(yes).holds[0]
    assert open_.both(yes).is_open[0] and open_.negated().is_open[0] and open_.same(no).is_open[0]


# --- the command line ---------------------------------------------------------------------------------------

PROGRAM = """dtmc
module m
  s : [0..3];
  [] s=0 -> 0.5:(s'=1) + 0.25:(s'=2) + 0.25:(s'=3);
  [] s=1 | s=2 -> true;
  [] s=3 -> 0.5:(s'=3) + 0.5:(s'=0);
endmodule
label "goal" = s=1;
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "m.prism"
    path.write_text(PROGRAM)
    return str(path)


def test_check_answers_them_all(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [
        "E [ F s=2 ]",
        'P=? [ F "goal" ] * 3',
        'P=? [ (G F s=0) | (F G "goal") ]',
        'filter(print, P>=1 [ F "goal" ])',
    ]
    assert run(["check", program, *(part for text in texts for part in ("--prop", text)), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["properties"]
    assert found[0]["answer"] == "true" and "lower" not in found[0]
    assert found[1]["lower"] <= 2 <= found[1]["upper"] and found[1]["upper"] - found[1]["lower"] < 1e-5
    assert found[2]["lower"] <= 2 / 3 <= found[2]["upper"]
    assert found[2]["notes"] == ['the path is read as (G (F (s = 0))) | (F (G "goal"))']
    assert found[3]["verdicts"] == {"(s=1)": "true"}


def test_check_prints_states_and_says_what_it_read(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", program, "--prop", 'filter(printall, P=? [ F "goal" ])']) == 0
    printed = capsys.readouterr().out
    assert "(s=3)" in printed and "0.66666" in printed
    assert run(["check", program, "--prop", 'A [ G !"goal" ]', "--all-states"]) == 0
    printed = capsys.readouterr().out
    assert "false" in printed and "(s=2)" in printed
    assert run(["check", program, "--prop", 'P=? [ G F "goal" ]']) == 0
    out, err = capsys.readouterr()
    assert 'note       the path is read as G (F "goal")\n' in out and err == ""


@pytest.mark.parametrize("option", ["--certificate", "--policy-out"])
def test_certificates_and_policies_of_them_are_refused_in_words(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    file = tmp_path / "out"
    assert run(["check", program, "--prop", "E [ F s=2 ]", option, str(file)]) == 2
    assert not file.exists()
    assert f"{option} cannot be used with E [ F (s = 2) ]" in capsys.readouterr().err


def test_what_is_not_decided_ends_with_a_status(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", program, "--prop", "P>=1/3 [ F s=2 ] & true"]) == 1
    shown = capsys.readouterr()
    assert "not certified" in shown.out and "the bounds of its parts leave it open" in shown.out
    assert run(["check", program, "--prop", "P=? [ X P>=1/3 [ F s=2 ] ]"]) == 1
    assert "is not decided in 2 states, such as (s=0)" in capsys.readouterr().err


def test_where_one_objective_is_needed_they_are_refused(model: tr.ParametricMDP) -> None:
    for text in (
        'E [ F "goal" ]',
        '1 + P=? [ F "goal" ]',
        'Pmax=? [ G F "goal" ]',
        'Pmax=? [ F P>=1 [ X "goal" ] ]',
    ):
        with pytest.raises(tr.InputError, match=r"tr\.solve take"):
            _ = tr.Problem(model, text).objective


def test_conditional_probabilities_are_quotients() -> None:
    rows = [(0, "", {1: "1/4", 2: "1/4", 3: "1/2"}), (1, "", {4: "1/3", 5: "2/3"}), (2, "", {4: 1})]
    rows += [(s, "", {s: 1}) for s in (3, 4, 5)]
    model = tr.build_from_rows(rows, labels={"a": [1], "b": [4], "c": [3]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        for asked, expected in (
            ('P=? [ F "a" || F "b" ]', 1 / 4),  # 1/12 of 1/12 + 1/4
            ('P=? [ F "b" || G !"c" ]', 2 / 3),
            ('P=? [ X "a" || G !"b" ]', 1 / 4),  # 1/6 of 1/6 + 1/2
            ('1 - P=? [ F "b" || F "a" ]', 2 / 3),
            ('P=? [ F (G "b") || (F "a") & (G !"c") ]', 1 / 3),
        ):
            found = tr.solve(model, asked)
            assert found.is_certified and found.bounds == pytest.approx((expected, expected), abs=1e-6)
        assert tr.solve(model, 'P>=0.3 [ F "b" || F "a" ]').truth == "true"
        with pytest.raises(tr.InputError, match="has probability 0 in the initial state"):
            tr.solve(model, 'P=? [ F "a" || F ("b" & "c") ]')
    two = tr.build_from_rows([(0, "x", {0: 1}), (0, "y", {1: 1}), (1, "", {1: 1})], labels={"a": [1]})
    with pytest.raises(tr.InputError, match="conditional probabilities are not supported here"):
        _ = tr.Problem(two, 'Pmax=? [ F "a" || G "a" ]').objective
