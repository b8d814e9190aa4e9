"""Several objectives: against linear programs over occupation measures, against vertices, and mixtures
re-evaluated."""

from __future__ import annotations

import itertools
import random
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import tightrope as tr
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.model.graph.support import Support
from tightrope.model.product import lift_model, product_with_memory

pytestmark = pytest.mark.usefixtures("in_python")

STATES = 7
LAST = STATES - 2


def random_rows(rng: random.Random) -> list[Any]:
    """Plays go on until one of the last two states: every choice may lead to a later state."""
    rows: list[Any] = [(s, "", {s: 1}) for s in range(LAST, STATES)]
    for s in range(LAST):
        for c in range(rng.randint(1, 3)):
            on, other = rng.randrange(s + 1, STATES), rng.randrange(STATES)
            share = rng.randint(1, 4)
            ends = {on: f"{share}/5", other: f"{5 - share}/5"} if on != other else {on: 1}
            rows.append((s, f"c{c}", ends))
    return rows


def random_model(rng: random.Random) -> tr.MDP:
    labels = {"a": rng.sample(range(1, STATES), 2), "b": rng.sample(range(1, STATES), 2)}
    rewards = {name: [rng.randint(0, 3) for _ in range(LAST)] + [0, 0] for name in "rq"}
    model = tr.build_from_rows(random_rows(rng), labels=labels, state_rewards=rewards)
    assert isinstance(model, tr.ParametricMDP)
    return model.instantiate()


def programme(model: tr.MDP, sign: tuple[float, float], kinds: tuple[str, str], least: float) -> float | None:
    """max sign₀·x₀ with sign₁·x₁ ≥ least, over expected visits of (state, a seen, b seen); None if
    impossible."""
    index = {key: n for n, key in enumerate(itertools.product(range(model.states), (0, 1), (0, 1)))}

    def enters(s: int, a: int, b: int) -> tuple[int, int, int]:
        return s, a | int(model.labels["a"][s]), b | int(model.labels["b"][s])

    columns: list[tuple[int, int]] = []
    flow, gains = [], []
    for (s, a, b), n in index.items():
        if s >= LAST:
            continue
        for c in range(*model.choice_start[s : s + 2]):
            column = np.zeros(len(index))
            column[n] += 1
            gain = {"a": 0.0, "b": 0.0, **{name: float(model.rewards[name].state[s]) for name in "rq"}}
            for t in range(*model.transition_start[c : c + 2]):
                there = enters(int(model.successor[t]), a, b)
                column[index[there]] -= model.probability[t]
                gain["a"] += model.probability[t] * (there[1] - a)
                gain["b"] += model.probability[t] * (there[2] - b)
            columns.append((n, c))
            flow.append(column)
            gains.append(gain)
    begin = np.zeros(len(index))
    begin[index[enters(0, 0, 0)]] = 1
    running = [n for (s, _, _), n in index.items() if s < LAST]
    first = np.array([gain[kinds[0]] for gain in gains])
    second = np.array([gain[kinds[1]] for gain in gains])
    found = linprog(
        -sign[0] * first,
        A_ub=[-sign[1] * second],
        b_ub=[-least],
        A_eq=np.array(flow).T[running],
        b_eq=begin[running],
    )
    return None if found.status != 0 else float(first @ found.x)


ASKED = [
    ('multi(Pmax=? [ F "a" ], P>={t} [ F "b" ])', (1.0, 1.0), ("a", "b")),
    ('multi(Pmax=? [ F "a" ], P<={t} [ F "b" ])', (1.0, -1.0), ("a", "b")),
    ('multi(Pmin=? [ F "a" ], P>={t} [ F "b" ])', (-1.0, 1.0), ("a", "b")),
    ('multi(P<={t} [ !(G !"b") ], Pmax=? [ F "a" ])', (1.0, -1.0), ("a", "b")),
    ('multi(R{{"r"}}min=? [ C ], P>={t} [ F "b" ])', (-1.0, 1.0), ("r", "b")),
    ('multi(R{{"r"}}max=? [ C ], P<={t} [ F "b" ])', (1.0, -1.0), ("r", "b")),
    ('multi(R{{"r"}}max=? [ C ], R{{"q"}}<={t} [ C ])', (1.0, -1.0), ("r", "q")),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("number", range(len(ASKED)))
def test_best_values_are_those_of_linear_programs(number: int) -> None:
    text, sign, kinds = ASKED[number]
    rng = random.Random(number)
    met = 0
    for _ in range(5):
        model, threshold = random_model(rng), rng.choice([0.13, 0.37, 0.61]) * (8 if kinds[1] == "q" else 1)
        expected = programme(model, sign, kinds, sign[1] * threshold)
        asked = text.format(t=threshold)
        if expected is None:
            with pytest.raises(tr.InputError, match="no policy meets all thresholds"):
                tr.solve(model, asked)
            continue
        found = tr.solve(model, asked)
        assert found.bounds is not None and found.is_certified, (found, expected)
        assert found.bounds[0] - 1e-5 <= expected <= found.bounds[1] + 1e-5
        met += 1
        assert found.achieved is not None and found.achieved.shares.sum() == pytest.approx(1)
        if kinds[0] == "a":  # what the mixture attains, evaluated again
            total = sum(
                share * value_under(model, controller, 'P=? [ F "a" ]')
                for share, controller in zip(found.achieved.shares, found.achieved.controllers, strict=True)
            )
            assert total == pytest.approx(expected, abs=1e-4)
    assert met >= 2


def value_under(model: tr.MDP, controller: tr.Policy, asked: str) -> float:
    product, policy = product_with_memory(model, controller, Support.of(model))
    beside = lift_model(model, product)
    return float(tr.solve(beside, asked.replace("P=", "Pmax="), policy=policy).lower[0])


def test_achievable_or_not() -> None:
    rng = random.Random(8)
    seen = set()
    for _ in range(5):
        model = random_model(rng)
        for most in (0.2, 0.55, 0.9):
            least = 0.37
            best = programme(model, (1.0, 1.0), ("a", "b"), least)
            verdict = tr.solve(model, f'multi(P>={most} [ F "a" ], P>={least} [ F "b" ])').truth
            expected = "true" if best is not None and best >= most else "false"
            if best is None or abs(best - most) > 1e-5:
                assert verdict == expected
                seen.add(verdict)
    assert seen == {"true", "false"}


def induced(model: tr.MDP, choice: Any) -> tr.MDP:
    """The chain of one choice per state."""
    rows = []
    for s, c in enumerate(choice):
        span = slice(*model.transition_start[c : c + 2])
        ends = zip(model.successor[span].tolist(), model.probability[span].tolist(), strict=True)
        rows.append((s, "", dict(ends)))
    labels = {name: np.flatnonzero(model.labels[name]).tolist() for name in ("a", "b", "c")}
    made = tr.build_from_rows(rows, labels=labels)
    assert isinstance(made, tr.ParametricMDP)
    return made.instantiate()


FOR_EVER = ('G (F "a")', 'F (G "b")', 'F "c"')


@pytest.mark.filterwarnings("ignore::tightrope.errors.ReadingWarning")
def test_what_happens_for_ever_beside_what_all_policies_attain() -> None:
    """Two of three formulas: policies without memory lie below the lines, controllers attain their points."""
    rng = random.Random(4)
    for _ in range(3):
        rows: list[Any] = []
        for s in range(4):
            for c in range(2 if s < 3 else 1):
                one, other = rng.sample(range(4), 2)
                rows.append((s, f"c{c}", {one: "1/4", other: "3/4"} if rng.random() < 0.5 else {one: 1}))
        labels = {name: rng.sample(range(4), 2) for name in ("a", "b", "c")}
        model = tr.build_from_rows(rows, labels=labels).instantiate()
        first, second = rng.sample(FOR_EVER, 2)
        found = tr.solve(model, f"multi(Pmax=? [ {first} ], Pmin=? [ {second} ])")
        assert found.status == "certified" and found.achieved is not None

        def values(chain: tr.MDP, asked: tuple[str, str] = (first, second)) -> list[float]:
            answers = [tr.solve(chain, f"P=? [ {path} ]").bounds for path in asked]
            return [ends[0] for ends in answers if ends is not None]

        for choice in itertools.product(*(range(*model.choice_start[s : s + 2]) for s in range(4))):
            high, low = values(induced(model, choice))
            beyond = found.achieved.weights @ np.array([high, 1 - low]) - found.achieved.limits
            assert (beyond <= 1e-5).all(), (choice, high, low)
        for controller, point in zip(found.achieved.controllers, found.achieved.points, strict=True):
            product, policy = product_with_memory(model, controller, Support.of(model))
            assert values(induced(lift_model(model, product), policy.choice)) == pytest.approx(
                point.tolist(), abs=1e-4
            )


@pytest.mark.filterwarnings("ignore::tightrope.errors.ReadingWarning")
def test_several_initial_states() -> None:
    rows: list[Any] = [(0, "x", {2: 1}), (0, "y", {3: 1}), (1, "", {2: "1/4", 3: "3/4"})]
    rows += [(s, "", {s: 1}) for s in (2, 3)]
    made = tr.build_from_rows(rows, labels={"a": [2], "b": [3]})
    model = tr.MDP(replace(made.structure, initial_states=np.array([0, 1])), made.instantiate().probability)
    found = tr.solve(model, 'multi(Pmax=? [ F "a" ], P>=0.4 [ F "b" ])')
    assert found.bounds == pytest.approx((0.25, 0.6), abs=1e-5)
    assert tr.solve(model, 'multi(P>=0.5 [ F "a" ], P>=0.4 [ F "b" ])').truth == "false"
    with pytest.raises(tr.InputError, match="is about one initial state"):
        tr.solve(model, 'multi(Pmax=? [ F "a" ], Pmax=? [ F "b" ])')


def test_the_curve_is_drawn(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file, figure = tmp_path / "m.prism", tmp_path / "curve.svg"
    file.write_text(
        "mdp module m s:[0..2]; [l] s=0 -> (s'=1); [r] s=0 -> (s'=2); [] s>0 -> true; endmodule "
        'rewards "cost" s=0 : 3; endrewards'
    )
    asked = 'multi(Pmax=? [ F s=1 ], R{"cost"}min=? [ C ])'
    assert run(["check", str(file), "--prop", asked, "--figure", str(figure)]) == 0
    assert "total reward" in figure.read_text() or figure.stat().st_size > 5000
    answer = tr.solve(tr.load(file), asked)
    assert isinstance(answer, tr.Answer)
    (axes,) = tr.plot_curve(answer).axes
    assert axes.get_xlabel() == "Pmax=? [ F s=1 ]  (probability)"
    assert axes.get_ylabel() == 'R{"cost"}min=? [ C ]  (total reward)'
    (_, line, _) = axes.lines
    assert line.get_ydata() == pytest.approx([3, 3][: len(line.get_ydata())], abs=1e-5)
    capsys.readouterr()
    assert run(["check", str(file), "--prop", "Pmax=? [ F s=1 ]", "--figure", str(figure)]) == 2
    assert "asks for two objectives" in capsys.readouterr().err


def test_the_curve_of_two_objectives() -> None:
    rows: list[Any] = [(0, "x", {1: 1}), (0, "y", {2: 1}), (0, "z", {4: 1}), (4, "", {1: "4/5", 3: "1/5"})]
    rows += [(s, "", {s: 1}) for s in (1, 2, 3)]
    model = tr.build_from_rows(rows, labels={"a": [1], "b": [2, 4]})
    found = tr.solve(model, 'multi(Pmax=? [ F "a" ], Pmax=? [ F "b" ])')
    assert found.status == "certified" and found.bounds is None and found.truth is None
    assert found.achieved is not None
    corners = {tuple(np.round(point, 5)) for point in found.achieved.points}
    assert {(1.0, 0.0), (0.8, 1.0)} <= corners
    limits = found.achieved.weights @ np.array([[1.0, 0.0], [0.8, 1.0]]).T
    assert (limits <= found.achieved.limits[:, None] + 1e-9).all()


def test_intervals_are_answered_against_every_vertex() -> None:
    low, high = 0.3, 0.6
    rows = [
        (0, "left", {1: (low, high), 2: (1 - high, 1 - low)}),
        (0, "right", {2: (low, high), 3: (1 - high, 1 - low)}),
        *((s, "", {s: 1}) for s in (1, 2, 3)),
    ]
    model = tr.build_from_rows(rows, labels={"a": [1, 3], "b": [2]})
    assert isinstance(model, tr.IntervalMDP)
    for asked, expected in (
        ('multi(P>=0.29 [ F "a" ], P>=0.39 [ F "b" ])', "true"),  # left: a at least 0.3, b at least 0.4
        ('multi(P>=0.5 [ F "a" ], P>=0.51 [ F "b" ])', "false"),  # one of the two happens
        ('multi(P>=0.36 [ F "a" ], P>=0.36 [ F "b" ])', "not certified"),  # nature differs by objective
    ):
        with pytest.warns(tr.ReadingWarning, match="nature opposes every objective"):
            assert tr.solve(model, asked).truth == expected


EARNING: list[Any] = [
    (0, "a", {1: 0.5, 2: 0.5}),
    (0, "b", {3: 1}),
    (1, "stay", {1: 1}),
    (2, "stay", {2: 1}),
    (3, "stay", {3: 1}),
]


def earning_for_ever() -> tr.MDP:
    """`x`, `y` and `z` are earned for ever in states 1, 3 and 2, `w` once: 2 by a, 3 by b."""
    rewards = {"x": [0, 1, 0, 0], "y": [0, 0, 0, 2], "z": [0, 0, 1, 0]}
    model = tr.build_from_rows(
        EARNING,
        labels={"one": [1]},
        state_rewards=rewards,
        choice_rewards={"w": [2, 3, 0, 0, 0]},
    )
    assert isinstance(model, tr.ParametricMDP)
    return model.instantiate()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ('multi(R{"x"}max=? [ C ], P>=0.4 [ F "one" ])', (np.inf, np.inf)),
        ('multi(R{"x"}max=? [ C ], R{"z"}>=1 [ C ])', (np.inf, np.inf)),
        ('multi(R{"w"}max=? [ C ], R{"x"}>=5 [ C ])', (3, 3)),
        ('multi(R{"x"}min=? [ C ], P>=0.3 [ F "one" ])', (np.inf, np.inf)),
        ('multi(R{"x"}min=? [ C ], P>=0.6 [ F "one" ])', "no policy meets all thresholds"),
        ('multi(R{"y"}max=? [ C ], P>=0.6 [ F "one" ])', "no policy meets all thresholds"),
        ('multi(R{"x"}>=3 [ C ], P>=0.3 [ F "one" ])', "true"),
        ('multi(R{"x"}>=3 [ C ], R{"y"}>=3 [ C ])', "true"),
        ('multi(R{"w"}>=2.4 [ C ], R{"x"}>5 [ C ], P>=0.2 [ F "one" ])', "true"),
        ('multi(R{"w"}>=2.8 [ C ], R{"x"}>5 [ C ], P>=0.2 [ F "one" ])', "false"),
        ('multi(R{"x"}<=4 [ C ], P>=0.3 [ F "one" ])', "false"),
        ('multi(R{"x"}<=4 [ C ], R{"y"}<=3 [ C ])', "false"),
        ('multi(R{"x"}max=? [ C ], R{"y"}max=? [ C ])', "can be infinite"),
        ('multi(R{"y"}max=? [ C ], Pmin=? [ F "one" ])', "can be infinite"),
    ],
)
def test_rewards_that_are_earned_for_ever(asked: str, expected: str | tuple[float, float]) -> None:
    model = earning_for_ever()
    if isinstance(expected, tuple):
        answer = tr.solve(model, asked)
        assert answer.status == "certified" and answer.bounds == pytest.approx(expected, rel=1e-6)
    elif expected in ("true", "false"):
        assert tr.solve(model, asked).truth == expected
    else:
        with pytest.raises(tr.InputError, match=expected):
            tr.solve(model, asked)


def test_where_every_policy_earns_for_ever_resting_is_optimal_nowhere() -> None:
    rows = [(0, "a", {1: 1}), (0, "b", {2: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, labels={"a": [1]}, state_rewards={"r": [0, 1, 2]})
    assert tr.solve(model, 'multi(Rmin=? [ C ], P>=0.5 [ F "a" ])').bounds == (np.inf, np.inf)
    assert tr.solve(model, 'multi(R<=5 [ C ], P>=0.5 [ F "a" ])').truth == "false"
    with pytest.raises(tr.InputError, match="one cost of multi"):
        tr.solve(model, 'multi(Rmin=? [ C ], Pmax=? [ F "a" ])')


def test_a_mixture_with_what_is_earned_for_ever_meets_what_was_asked() -> None:
    model = earning_for_ever()
    result = tr.solve(model, 'multi(R{"x"}>=3 [ C ], R{"w"}>=2.5 [ C ])').achieved
    assert result.shares.sum() == pytest.approx(1) and len(result.shares) == len(result.controllers)
    assert tr.solve(model, 'R{"x"}max=? [ C ]', policy=result.controllers[-1]).bounds[0] == np.inf
    assert result.shares[-1] > 0 and result.shares @ result.points[:, 1] >= 2.5


def test_points_are_distinct_and_none_is_negative() -> None:
    model = earning_for_ever()
    for asked in (
        'multi(Pmax=? [ F "one" ], Pmin=? [ F "one" ])',
        'multi(R{"x"}<=4 [ C ], P>=0.3 [ F "one" ])',
    ):
        points = tr.solve(model, asked).achieved.points
        assert (points >= 0).all() and not np.signbit(points).any()
        assert len({tuple(row) for row in points.tolist()}) == len(points)


def test_what_is_refused() -> None:
    model = random_model(random.Random(1))
    for asked, message in (
        ('multi(P=? [ F "a" ], P>=0.5 [ F "b" ])', "needs a direction"),
        ('1 + multi(Pmax=? [ F "a" ], P>=0.5 [ F "b" ])', "cannot be part of a formula"),
        ('multi(Pmax=? [ F "a" ], Pmax=? [ F "b" ], Pmax=? [ X "b" ])', "asks for 3 values at once"),
        ('multi(Rmax=? [ F "a" ], P>=0.5 [ F "b" ])', "rewards are total ones, or those of some steps"),
        ("multi(1, 2)", "are P and R operators"),
    ):
        with pytest.raises(tr.InputError, match=message):
            tr.solve(model, asked)
    loop = tr.build_from_rows([(0, "", {0: 1})], state_rewards={"r": [1]})
    with pytest.raises(tr.InputError, match="if any of them can be earned forever"):
        tr.solve(loop, "multi(Rmax=? [ C ], Rmin=? [ C ])")


def test_check_prints_points(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.prism"
    file.write_text("mdp module m s:[0..2]; [l] s=0 -> (s'=1); [r] s=0 -> (s'=2); [] s>0 -> true; endmodule")
    assert run(["check", str(file), "--prop", "multi(Pmax=? [ F s=1 ], Pmax=? [ F s=2 ])"]) == 0
    assert "points of the trade-off of multi(" in capsys.readouterr().out
    assert run(["check", str(file), "--prop", "multi(P>=0.4 [ F s=1 ], P>=0.5 [ F s=2 ])", "--json"]) == 0
    assert '"answer": "true"' in capsys.readouterr().out.replace('":"', '": "')


STEPS = """mdp
module m
  s : [0..3];
  [a] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [b] s=0 -> 0.2 : (s'=3) + 0.8 : (s'=0);
  [c] s=1 -> 0.7 : (s'=0) + 0.3 : (s'=3);
  [d] s=1 -> (s'=2);
  [e] s=2 -> 0.9 : (s'=0) + 0.1 : (s'=2);
  [f] s=3 -> true;
endmodule
rewards "c" s=1 : 2; [b] true : 1; s=3 : 1; endrewards
rewards "d" [a] true : 1; s=2 : 3; endrewards
"""


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "asked",
    [
        'multi(R{"c"}max=? [ C<=5 ], R{"d"}>=4 [ C<=6 ])',
        'multi(R{"d"}max=? [ C<=5 ], P>=0.4 [ F<=4 s=3 ])',
        'multi(R{"c"}min=? [ C<=5 ], P>=0.4 [ F<=4 s=3 ])',
        'multi(R{"d"}max=? [ C<6 ], R{"c"}<=3 [ C<=5 ])',
        'multi(R{"c"}>=4 [ C<=5 ], R{"d"}>=6 [ C<=6 ])',
    ],
)
def test_bounds_on_steps_beside_storm(asked: str, tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    file = tmp_path / "m.prism"
    file.write_text(STEPS)
    answer = tr.solve(tr.load(file), asked)
    program = stormpy.parse_prism_program(str(file))
    (formula,) = stormpy.parse_properties(asked.replace("C<6", "C<=5"), program)
    value = stormpy.model_checking(stormpy.build_model(program, [formula]), formula)
    if answer.bounds is None:
        assert answer.truth in str(value)
    else:
        assert answer.bounds[0] - 1e-4 <= value.get_value(0) <= answer.bounds[1] + 1e-4


def test_one_objective_of_some_steps_is_the_plain_one(tmp_path: Path) -> None:
    file = tmp_path / "m.prism"
    file.write_text(STEPS)
    model = tr.load(file)
    for steps in (0, 1, 7):
        alone = tr.solve(model, f'R{{"c"}}max=? [ C<={steps} ]').bounds
        among = tr.solve(model, f'multi(R{{"c"}}max=? [ C<={steps} ], P>=0 [ F s=3 ])').bounds
        assert among[0] - 1e-9 <= alone[1] and alone[0] <= among[1] + 1e-9
    with pytest.raises(InputError, match="a number of steps cannot be negative"):
        tr.solve(model, 'multi(R{"c"}max=? [ C<=-1 ], P>=0 [ F s=3 ])')


def test_a_threshold_that_every_policy_just_meets_gives_no_warning_of_numpy() -> None:
    """Rounding may leave it open whether a threshold on the boundary is met: −∞ was divided by itself."""
    rows = [(0, "", {0: 0.5, 1: 0.5}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, labels={"g": [1], "no": [2]}, choice_rewards={"r": [2, 0, 0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solved = tr.solve(model, 'multi(Rmax=? [ C ], P>=1 [ F "g" ])')
    lower, upper = solved.bounds
    assert lower <= 4 <= upper == pytest.approx(4)
    assert lower == pytest.approx(4) and solved.verdict.is_proved


def test_thresholds_that_the_graph_meets_are_met_exactly() -> None:
    """Probabilities 0 and 1 are those of the graph, without what rounding leaves of them."""
    rows = [(0, "a", {1: 0.5, 2: 0.5}), (0, "b", {1: 1}), (0, "c", {1: 0.7, 3: 0.3})]
    rows += [(s, "", {s: 1}) for s in (1, 2, 3)]
    model = tr.build_from_rows(rows, labels={"g": [1], "bad": [3]}, choice_rewards={"r": [2] * 3 + [0] * 3})
    assert tr.solve(model, 'multi(Pmax=? [ F "g" ], P<=0 [ F "bad" ])').bounds == (1, 1)
    assert tr.solve(model, 'multi(Pmin=? [ F "bad" ], P>=1 [ F "g" ])').bounds == (0, 0)
    assert tr.solve(model, 'multi(P<=0 [ F "bad" ], P>=1 [ F "g" ])').verdict.is_proved
    assert tr.solve(model, 'multi(R{"r"}min=? [ C ], P>=1 [ F "g" ])').bounds == pytest.approx((2, 2))
    lower, upper = tr.solve(model, 'multi(Pmax=? [ F "bad" ], P<=0.7 [ F "g" ])').bounds
    assert lower == pytest.approx(0.3, abs=1e-6) and upper == pytest.approx(0.3, abs=1e-6)


def test_initial_states_that_differ() -> None:
    """One of them pays for ever, or cannot meet the thresholds: bounds of both, or words that name it."""
    rows = [
        (0, "a", {2: 0.5, 3: 0.5}),
        (0, "b", {3: 1}),
        (1, "a", {1: 0.7, 2: 0.3}),
        (1, "d", {1: 1}),
        (2, "", {3: 1}),
        (3, "", {3: 1}),
    ]
    made = tr.build_from_rows(rows, labels={"g": [2]}, state_rewards={"r": [1, 1, 0, 0]}).instantiate()
    model = tr.MDP(replace(made.structure, initial_states=np.array([0, 1])), made.probability)
    with pytest.warns(tr.errors.ReadingWarning, match="first initial state"):
        answer = tr.solve(model, 'multi(R{"r"}min=? [ C ], P<=0.4 [ F "g" ])')
    assert answer.verdict.is_proved
    assert answer.lower[:2].tolist() == [pytest.approx(1, abs=1e-6), np.inf] and np.isposinf(answer.upper[1])
    with pytest.raises(tr.InputError, match="thresholds from the initial state"):
        tr.solve(model, 'multi(R{"r"}min=? [ C<=3 ], P>=0.6 [ F "g" ])')
