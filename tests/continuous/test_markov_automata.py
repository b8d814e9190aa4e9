"""Markov automata in DRN, PRISM and JANI files, beside Storm, by hand and by a differential equation."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.continuous import decisions
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
    'Tmin=? [ F "goal" ]': 'Tmin=? [ F "goal" ]',
    'Pmax=? [ F<=1.5 "goal" ]': 'Pmax=? [ F<=1.5 "goal" ]',
    'Pmin=? [ !"left" U<=2 "goal" ]': 'Pmin=? [ !"left" U<=2 "goal" ]',
    'Smax=? [ "goal" ]': 'LRAmax=? [ "goal" ]',
}
PROGRAM = """ma // states wait, or choose at once
const double slow;
module m
  s : [0..4] init 0;
  [a] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [b] s=0 -> (s'=2);
  <> s=1 -> 3 : (s'=0) + 1 : (s'=3);
  <> s=2 -> slow : (s'=0) + 0.5 : (s'=3);
  <> s=3 -> 2 : (s'=0);
  <> s=0 -> 7 : (s'=4);
endmodule
module n
  x : bool init false;
  <> !x & s=3 -> 0 : (x'=true);
endmodule
rewards "c" s=1 : 2; [a] true : 5; [] s=2 : 7; endrewards
label "goal" = s=3;
"""
RACE = "ma module m s : [0..2]; <> s=0 -> 1 : (s'=1); <> s=0 -> 3 : (s'=2); endmodule"


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
        ('Pmax=? [ X "goal" ]', "X is not supported for Markov automata"),
        ('R{"cost"}max=? [ C<=2 ]', "rewards up to or at a time are not supported for Markov automata"),
        ('Pmax=? [ F (F<=3 "goal") ]', "only at the single temporal operator of P"),
        ('quantile(min k, Pmax>=0.9 [ F<=k "goal" ])', "quantiles"),
    ],
)
def test_questions_without_an_answer_are_refused(
    file: Path, asked: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError) as raised:
        tr.solve(tr.load(file), asked)
    assert what in str(raised.value)
    assert run(["check", str(file), "--prop", asked]) == 2
    assert what in capsys.readouterr().err


def test_check_answers_and_other_commands_refuse(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(file), "--prop", 'R{"time"}min=? [ F "goal" ]', "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lower"] == pytest.approx(19 / 11, rel=1e-6)
    words = ["check", str(file), "--prop", 'Pmax=? [ F "left" ]', "--certificate", "c"]
    assert run(words) == 2
    refusal = capsys.readouterr().err
    assert "--certificate cannot be used with Markov automata: an optimal policy may depend on" in refusal
    assert "leave --certificate out: the answer is proved without one" in refusal
    assert run(["export", str(file), "-o", str(file.with_name("n.drn"))]) == 2
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


@pytest.fixture
def program(tmp_path: Path) -> Path:
    target = tmp_path / "m.prism"
    target.write_text(PROGRAM)
    return target


def test_programs_are_read(program: Path) -> None:
    """Maximal progress: (s=4) is never reached; a rate of 0 does not happen."""
    automaton = tr.load(program, const={"slow": 0.25})
    assert automaton.states == 4 and automaton.exit_rate.tolist() == [0, 4, 0.75, 2]
    assert automaton.structure.rewards["c"].choice.tolist() == [5, 0, 0, 7, 0]


def test_answers_about_programs_are_those_of_storm(program: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    text = PROGRAM.replace("const double slow;", "").replace("slow", "0.25").replace("<> s=0", "// ")
    program.write_text(text.replace("<> !x & s=3 -> 0", "[never] x -> 1"))
    automaton = tr.load(program)
    theirs = stormpy.parse_prism_program(str(program))
    for asked in (
        'Tmax=? [ F "goal" ]',
        'R{"c"}max=? [ F "goal" ]',
        'R{"c"}min=? [ F "goal" ]',
        'Pmax=? [ F<=1 "goal" ]',
        'Pmin=? [ F<=1 "goal" ]',
        "LRAmax=? [ s=1 ]",
        "LRAmin=? [ s=1 ]",
        'R{"c"}max=? [ LRA ]',
        'R{"c"}min=? [ LRA ]',
    ):
        bounds = tr.solve(automaton, asked).bounds
        (formula,) = stormpy.parse_properties(asked, theirs)
        built = stormpy.build_model(theirs, [formula])
        value = stormpy.model_checking(built, formula).get_value(0)
        assert bounds[1] - bounds[0] <= 1e-6 * max(1, bounds[1])
        assert bounds[0] - 1e-5 * max(1, value) <= value <= bounds[1] + 1e-5 * max(1, value), asked


def test_commands_of_one_state_race(tmp_path: Path) -> None:
    """Rates 1 and 3: the second wins three times out of four, after 1/4 on average. Whoever waits for
    (s=2) until 1 sees it with 3/4·(1 − e^−4)."""
    target = tmp_path / "race.prism"
    target.write_text(RACE)
    with pytest.warns(UserWarning, match="deadlock"):
        automaton = tr.load(target)
    assert automaton.exit_rate.tolist() == [4, 1, 1]
    for asked, value in (
        ("P=? [ F s=2 ]", 0.75),
        ("Tmax=? [ F s>0 ]", 0.25),
        ("Pmax=? [ F<=1 s=2 ]", 0.75 * (1 - np.exp(-4))),
        ("Pmin=? [ F[0.5,1] s=2 ]", 0.75 * (1 - np.exp(-4))),
        ("Pmax=? [ G<=0.5 s=0 ]", np.exp(-2)),
        ("Pmin=? [ s=0 U>=0.5 s=2 ]", 0.75 * np.exp(-2)),
        ("Smin=? [ s=2 ]", 0.75),
    ):
        bounds = tr.solve(automaton, asked).bounds
        assert bounds[0] - 1e-12 <= value <= bounds[1] + 1e-12 and bounds[1] - bounds[0] < 1e-6, asked


def _solve_differential_equation(
    automaton: tr.MarkovAutomaton,
    goal: np.ndarray,
    time: float,
    best: Callable[..., float] = min,
    rounds: int = 40,
) -> float:
    """v' = E·(P w − v), w what v is worth once the best of immediate choices has been made."""
    structure = automaton.structure
    rows = [range(*structure.transition_start[c : c + 2]) for c in range(structure.choices)]
    rate, steps = automaton.exit_rate, 400

    def mean(choice: int, values: np.ndarray) -> float:
        return sum(automaton.probability[t] * values[structure.successor[t]] for t in rows[choice])

    def chosen(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        for _ in range(rounds):
            for s in np.flatnonzero((rate == 0) & ~goal):
                values[s] = best(mean(c, values) for c in range(*structure.choice_start[s : s + 2]))
        return values

    def slope(values: np.ndarray) -> np.ndarray:
        now = chosen(values)
        moving = [mean(int(c), now) - v for c, v in zip(structure.choice_start[:-1], values, strict=True)]
        return np.where(goal, 0.0, rate * np.array(moving))

    values, h = goal.astype(float), time / steps
    for _ in range(steps):
        values = values + h * slope(values + h / 2 * slope(values))
    return float(chosen(values)[0])


def test_immediate_circles_beside_the_differential_equation() -> None:
    rows = [
        (0, "go", {0: 1 / 6, 1: 1 / 3, 3: 0.5}),
        (0, "try", {1: 0.5, 2: 0.5}),
        (1, "on", {0: 0.375, 1: 0.375, 2: 0.25}),
        (2, "", {1: 1}),
        (3, "", {2: 0.5, 4: 0.5}),
        (4, "", {4: 1}),
    ]
    mdp = tr.build_from_rows(rows, labels={"end": [4]}).instantiate()
    automaton = tr.MarkovAutomaton(mdp.structure, mdp.probability, np.array([0, 0, 3.5, 3.0, 1.0]))
    value = _solve_differential_equation(automaton, np.arange(5) == 4, 1.5)
    low, high = tr.solve(automaton, 'Pmin=? [ F<=1.5 "end" ]').bounds
    assert high - low <= 1e-6 and low - 2e-5 <= value <= high + 2e-5


JOBS = """ma // by a risky fast or a safe slow way; what is best depends on the time that is left
const int K;
module jobs
  n : [0..K] init 0; s : [0..3] init 0; e : [0..2] init 0;
  [fast] s=0 & n<K -> (s'=1);
  [slow] s=0 & n<K -> (s'=2) & (e'=0);
  <> s=1 -> 3 : (s'=0) & (n'=n+1) + 1.5 : (s'=3);
  <> s=2 & e<2 -> 5 : (e'=e+1);
  <> s=2 & e=2 -> 5 : (s'=0) & (n'=n+1) & (e'=0);
  <> s=3 -> 0.4 : (s'=0);
  <> s=0 & n=K -> 1 : true;
endmodule
label "done" = n=K;
"""


def test_choices_that_change_with_the_time_left(tmp_path: Path) -> None:
    """The values of finer and finer Poisson clocks, which took minutes."""
    target = tmp_path / "jobs.ma"
    target.write_text(JOBS)
    for size, asked, value in (
        (5, 'Pmax=? [ F<=3 "done" ]', 0.62727894354),
        (20, 'Pmax=? [ F<=12 "done" ]', 0.59521104326),
    ):
        answer = tr.solve(tr.load(target, const={"K": size}), asked)
        low, high = answer.bounds
        assert answer.verdict.is_proved and high - low <= 1e-6
        assert low - 1e-9 <= value <= high + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_slices_of_time_beside_the_differential_equation(seed: int) -> None:
    generator = np.random.default_rng(seed)
    waiting, immediate = 4, 3
    end = waiting + immediate
    rows: list[tuple[int, str, dict[int, float]]] = []
    for state in range(waiting + immediate):
        waits = state % 2 == 1 or state >= 2 * immediate
        for choice in range(1 if waits else 3):
            behind = [s for s in range(end + 1) if s % 2 == 1 or s >= 2 * immediate or s > state]
            successors = generator.choice(behind, 2, replace=False)
            share = generator.integers(1, 8) / 8
            rows.append((state, f"c{choice}", {int(successors[0]): share, int(successors[1]): 1 - share}))
    rows.append((end, "", {end: 1}))
    mdp = tr.build_from_rows(
        [(s, a, {t: p for t, p in d.items() if p}) for s, a, d in rows], labels={"end": [end]}
    )
    model = mdp.instantiate()
    rate = np.where(np.diff(model.structure.choice_start) > 1, 0.0, generator.uniform(0.3, 6, end + 1))
    automaton = tr.MarkovAutomaton(model.structure, model.probability, rate)
    for asked, best in (("Pmin", min), ("Pmax", max)):
        value = _solve_differential_equation(automaton, np.arange(end + 1) == end, 1.25, best, 3)
        answer = tr.solve(automaton, f'{asked}=? [ F<=1.25 "end" ]', precision=1e-7)
        low, high = answer.bounds
        assert answer.verdict.is_proved and high - low <= 1e-7
        assert low - 2e-6 <= value <= high + 2e-6


def test_slices_that_are_too_large_after_the_deadline_are_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "_MOST_NUMBERS", 0)
    target = tmp_path / "long.ma"
    target.write_text(
        "ma module m s : [0..3]; [a] s=0 -> (s'=1); [b] s=0 -> (s'=2); <> s=1 -> 0.01 : (s'=3) + 20 : (s'=0);"
        " <> s=2 -> 0.02 : (s'=3) + 10 : (s'=1); <> s=3 -> 1 : true; endmodule"
    )
    automaton = tr.load(target)
    reached = np.arange(automaton.states) == 3
    horizon = decisions.EventHorizon(Fraction(10), 1e-18, True, 0.0, 1, 1e-9)
    (low, high), _ = decisions.expect_optimally(
        automaton, ~reached, reached.astype(float), np.zeros(4), horizon
    )
    exact = tr.solve(automaton, "Pmax=? [ F<=10 s=3 ]").bounds
    assert low[0] <= exact[1] and exact[0] <= high[0] and high[0] > 0.05


def test_rare_events_of_an_automaton(tmp_path: Path) -> None:
    target = tmp_path / "rare.ma"
    target.write_text(
        "ma module m s : [0..3]; <> s=0 -> 1e-5 : (s'=1); <> s=1 -> 2 : (s'=0) + 1e-4 : (s'=3);"
        " [a] s=2 -> (s'=0); [b] s=2 -> (s'=1); <> s=3 -> 1 : true; endmodule"
    )
    low, high = tr.solve(tr.load(target), "Pmax=? [ F<=3 s=3 ]").bounds
    slow, fast = np.roots([1, 2 + 1e-4 + 1e-5, 1e-9])[::-1]
    value = 1 + (slow * np.exp(3 * fast) - fast * np.exp(3 * slow)) / (fast - slow)
    assert 1e-10 < low <= high * (1 + 1e-12) and high - low <= 1e-6 * low
    assert abs(value - low) < 1e-14


def test_runs_in_which_time_stops_are_refused(tmp_path: Path) -> None:
    target = tmp_path / "zeno.prism"
    target.write_text("ma module m s : [0..1]; [] s=0 -> true; <> s=1 -> 1 : true; endmodule")
    automaton = tr.load(target)
    assert tr.solve(automaton, "Pmax=? [ F s=1 ]").bounds == (0, 0)
    for asked in ("Pmax=? [ F<=1 s=1 ]", "Smax=? [ s=1 ]"):
        if asked.startswith("P"):
            assert tr.solve(automaton, asked).bounds == (0, 0)
            continue
        with pytest.raises(InputError, match=r"in state \(s=0\) choices can be made forever while no time"):
            tr.solve(automaton, asked)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RACE.replace("ma", "ctmc", 1), "1:27: commands <> with rates are those of Markov automata"),
        (RACE.replace("<>", "<go>", 1), "1:26: a Markovian command moves alone, and has no action"),
        (RACE.replace("1 :", "-1 :", 1), "the number -1 is negative"),
        (RACE.replace("module", "const double r; module", 1).replace("1 :", "r :", 1), "have no parameters"),
        (RACE.replace("ma", "ctmdp", 1), "only dtmc, mdp, pomdp, ctmc, ma, pta and popta are"),
    ],
)
def test_wrong_programs_are_refused(tmp_path: Path, text: str, message: str) -> None:
    target = tmp_path / "wrong.prism"
    target.write_text(text)
    with pytest.raises(InputError) as raised:
        tr.load(target)
    assert message in str(raised.value)


def test_jani(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is immediate comes first, rates race: 1/4 of a unit until one of them, the second in 3/4."""

    def edge(source: str, *targets: tuple[str, float], **more: object) -> dict[str, object]:
        to = [{"location": name, "probability": {"exp": p}} for name, p in targets]
        return {"location": source, "destinations": to, **more}

    edges = [
        edge("a", ("b", 0.5), ("c", 0.5)),
        edge("a", ("c", 1), action="skip"),
        edge("a", ("d", 1), rate={"exp": 9}),
        edge("b", ("c", 1), rate={"exp": 1}),
        edge("b", ("d", 1), rate={"exp": 3}),
        edge("c", ("c", 1), rate={"exp": 1}),
        edge("d", ("d", 1), rate={"exp": 1}),
    ]
    at_d = {"op": "=", "left": "m_location", "right": 3}
    bound = {"op": "F", "exp": at_d, "time-bounds": {"upper": 1}}
    content = {
        "jani-version": 1,
        "name": "race",
        "type": "ma",
        "actions": [{"name": "skip"}],
        "automata": [
            {
                "name": "m",
                "locations": [{"name": name} for name in "abcd"],
                "initial-locations": ["a"],
                "edges": edges,
            }
        ],
        "system": {"elements": [{"automaton": "m"}], "syncs": [{"synchronise": ["skip"], "result": "skip"}]},
        "properties": [
            {
                "name": "soon",
                "expression": {
                    "op": "filter",
                    "fun": "max",
                    "states": {"op": "initial"},
                    "values": {"op": "Pmax", "exp": bound},
                },
            }
        ],
    }
    target = tmp_path / "m.jani"
    target.write_text(json.dumps(content))
    automaton = tr.load(target)
    assert automaton.exit_rate.tolist() == [0, 4, 1, 1]
    assert run(["check", str(target), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    value = 0.5 * 0.75 * (1 - np.exp(-4))
    assert answer["lower"] <= value <= answer["upper"] <= answer["lower"] + 1e-6
    edges[3]["action"] = "skip"
    target.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"automata\[0\].edges\[3\]: an edge with a rate moves alone"):
        tr.load(target)


CATCH_UP = """ma // a pool of a fifth of all miners goes on with its own chain, or gives it up
const int D = 3; const double again;
module m
  len : [0..D] init 0; diff : [-8..D] init 0; s : [0..2] init 0;
  [go] s=0 & !(len=D & diff>0) -> 1-again : (s'=1) + again : (s'=2);
  [back] s=2 -> (s'=0);
  [reset] s=0 & diff<0 -> (s'=1) & (len'=0) & (diff'=0);
  <> s=1 -> 0.2/12 : (s'=0)&(len'=min(D,len+1))&(diff'=min(D,diff+1))
    + 0.8/12 : (s'=0)&(diff'=len=0?0:max(-8,diff-1));
  <> s=0 & len=D & diff>0 -> 1 : true;
endmodule
label "win" = len=D & diff>0;
"""


def test_choices_in_circles_that_take_no_time_change_no_value(tmp_path: Path) -> None:
    """A choice that is made again with 1/2 is worth as much: bounds were apart after 43 s."""
    target = tmp_path / "catch-up.ma"
    target.write_text(CATCH_UP)
    once, again = (tr.load(target, const={"again": share}) for share in (0, 0.5))
    for asked in ('Pmax=? [ F<=700 "win" ]', 'Pmin=? [ F<=700 "win" ]', 'Pmax=? [ F<=0.5 "win" ]'):
        answers = [tr.solve(automaton, asked) for automaton in (once, again)]
        assert all(answer.verdict.is_proved for answer in answers)
        (low, high), (other_low, other_high) = (answer.bounds for answer in answers)
        assert max(high - low, other_high - other_low) <= 1e-6 * max(high, 1e-3), asked
        assert low <= other_high and other_low <= high, asked
