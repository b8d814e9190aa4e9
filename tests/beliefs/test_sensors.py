"""Sensors whose readings are drawn in every state, and tables of labelled readings that are learned from."""

import itertools
import json
import os
import re
import time
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from places import TESTS
from tightrope.beliefs import robust
from tightrope.beliefs.solve import evaluate, solve_partial
from tightrope.cli.app import run
from tightrope.data.labelled import with_sensor
from tightrope.learning import observed as learning
from tightrope.learning.observed import choose_controller
from tightrope.learning.options import LearnOptions
from tightrope.model.pomdp import controller_of, observed

TAXI = """
mdp
module runway
  place : [0..4] init 2;
  [left]  place>0&place<4 -> 0.8 : (place'=place-1) + 0.2 : (place'=place);
  [hold]  place>0&place<4 -> 0.02 : (place'=place-1) + 0.96 : (place'=place) + 0.02 : (place'=place+1);
  [right] place>0&place<4 -> 0.8 : (place'=place+1) + 0.2 : (place'=place);
  [stop] place=0|place=4 -> true;
endmodule
label "off" = place=0 | place=4;
rewards "moves" [left] true : 1; [right] true : 1; place=2 : 3; endrewards
"""
LABELS = "place,camera,count\n1,left,1900\n1,middle,100\n2,left,50\n2,middle,3900\n2,right,50\n"
LABELS += "3,middle,100\n3,right,1900\n"


@pytest.fixture
def taxi(tmp_path):
    path = tmp_path / "taxi.prism"
    path.write_text(TAXI)
    return path


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "text",
    [
        'Pmin=? [ F<=6 "off" ]',
        'Pmax=? [ F[2,5] "off" ]',
        "Pmax=? [ X place=1 ]",
        'R{"moves"}max=? [ C<=5 ]',
        'R{"moves"}min=? [ F "off" ]',
    ],
)
def test_a_sensor_that_never_errs_changes_no_answer(taxi, text):
    plant = tr.load(taxi)
    exact = observed(plant, [{f"at {place}": 1} for place in plant.structure.valuations["place"].tolist()])
    assert exact.pace == 2
    seen = tr.solve(exact, text, seconds=600)
    known = tr.solve(plant.problem(text)).bounds
    assert seen.lower == pytest.approx(known[0], abs=1e-5)
    assert seen.upper == pytest.approx(known[1], abs=1e-5)


@pytest.mark.costly("test_a_sensor_that_never_errs_changes_no_answer")
def test_a_sensor_that_errs_costs_and_one_that_says_nothing_costs_most(taxi):
    plant, text = tr.load(taxi), 'Pmin=? [ F<=6 "off" ]'

    def value(error):
        rows = []
        for place in plant.structure.valuations["place"].tolist():
            if place in (0, 4):
                rows.append("end")
            else:
                rows.append({str(k): 1 - error if k == place else error / 2 for k in (1, 2, 3)})
        return tr.solve(observed(plant, rows), text, seconds=600, precision=1e-3)

    right, often, blind = value(Fraction(0)), value(Fraction(1, 10)), value(Fraction(2, 3))
    assert right.upper <= often.upper + 1e-6 and often.lower <= blind.upper + 1e-6
    assert often.lower > right.upper and blind.lower > often.upper


def test_builders_take_what_is_seen():
    rows = [
        (0, "go", {1: 0.5, 2: 0.5}),
        (1, "l", {3: 1}),
        (1, "r", {4: 1}),
        (2, "l", {4: 1}),
        (2, "r", {3: 1}),
    ]
    rows += [(3, "", {3: 1}), (4, "", {4: 1})]
    seen = {0: "begin", 1: {"a": 0.9, "b": 0.1}, 2: {"a": 0.1, "b": 0.9}, 3: "won", 4: "lost"}
    pomdp = tr.POMDP.from_rows(rows, observe=seen, labels={"won": [3]})
    assert tr.solve(pomdp, 'Pmax=? [ F "won" ]').interval.lower == pytest.approx(0.9, abs=1e-6)
    with pytest.raises(tr.InputError, match="says nothing about state 4"):
        tr.POMDP.from_rows(rows, observe={k: v for k, v in seen.items() if k < 4})
    with pytest.raises(tr.InputError, match="has no reading at all"):
        tr.POMDP.from_rows(rows, observe={**seen, 1: {}})


def test_readings_are_counted_at_their_sensor(taxi, tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text(LABELS)
    pomdp, reading = with_sensor(tr.load(taxi), table)
    assert pomdp.names == ("sensing", "left", "middle", "right", "unseen", "ended")
    own, counts = pomdp.structure, reading.counts
    at = int(own.choice_start[list(own.valuations["place"]).index(2)])
    span = slice(int(own.transition_start[at]), int(own.transition_start[at + 1]))
    assert counts.transition[span].tolist() == [50, 3900, 50, 0] and counts.steps == 8000
    frame = pd.read_csv(table).astype({"count": "float64"})  # as a join or a pivot leaves counts
    assert with_sensor(tr.load(taxi), frame)[1].counts.steps == 8000
    with pytest.raises(tr.InputError, match=r"observations: row 1: the count is 4\.5"):
        with_sensor(tr.load(taxi), frame.assign(count=4.5))
    with pytest.raises(tr.InputError, match="observations: row 1: the count is missing"):
        with_sensor(tr.load(taxi), frame.assign(count=float("nan")))
    rows = [{"place": 1, "camera": "left"}] * 3
    assert with_sensor(tr.load(taxi), rows)[1].counts.steps == 3


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("place,camera,count\n,left,3\n", "labels.csv:2: row 1: place is missing"),
        ("place,camera,count\n1,,3\n", "labels.csv:2: row 1: the reading is missing"),
        ("place,camera,count\n7,left,3\n", "labels.csv:2: row 1: no state of the model has place=7"),
        ("place,camera,count\n1,left,-3\n", "no whole number of at least 0"),
        ("place,camera,count\n1,left,2.5\n", "no whole number of at least 0"),
        ("place,camera,count\n1.5,left,2\n", "place is '1.5'"),
        ("place,camera,light,count\n1,left,dark,2\n", "there are: 'camera', 'light'"),
        ("spot,camera,count\n1,left,2\n", "no column says in which state"),
        ("place,camera,count\n1,left\n", "labels.csv:2"),
        ("place,camera,camera\n1,left,left\n", "camera"),
        ("place,camera,count\n", "the table has no rows"),
        ("place,camera,count\n1,unseen,4\n", "'unseen' is not a reading"),
    ],
)
def test_wrong_tables_are_refused(taxi, tmp_path, table, words, capsys):
    (tmp_path / "labels.csv").write_text(table)
    line = [
        "learn",
        str(taxi),
        "--prop",
        'Pmin=? [ F<=4 "off" ]',
        "--observations",
        str(tmp_path / "labels.csv"),
    ]
    assert run(line) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("command", ["learn", "plan"])
def test_options_of_logs_do_not_go_with_labelled_readings(taxi, tmp_path, command, capsys):
    table = tmp_path / "labels.csv"
    table.write_text(LABELS)
    words = [command, str(taxi), "--prop", 'Pmin=? [ F<=4 "off" ]', "--observations", str(table)]
    assert run([*words, "--design", "generative-fixed"]) == 2
    assert "--design" in capsys.readouterr().err


def test_labelled_readings_go_with_simple_questions(taxi, tmp_path, capsys):
    table = tmp_path / "labels.csv"
    table.write_text(LABELS)
    assert run(["learn", str(taxi), "--prop", 'R{"moves"}min=? [ S ]', "--observations", str(table)]) == 2
    assert "--observations" in capsys.readouterr().err


def test_data_come_from_one_place(taxi, capsys):
    assert run(["learn", str(taxi), "--prop", 'Pmin=? [ F<=4 "off" ]']) == 2
    assert "--observations" in capsys.readouterr().err


def test_a_controller_is_learned_from_labelled_readings(taxi, tmp_path, capsys):
    table, out, proof = tmp_path / "labels.csv", tmp_path / "out", tmp_path / "taxi.cert"
    table.write_text(LABELS)
    about = ["--prop", 'Pmin=? [ F<=4 "off" ]', "--observations", str(table)]
    words = [
        "learn",
        str(taxi),
        *about,
        "--delta",
        "0.01",
        "-o",
        str(out),
        "--certificate",
        str(proof),
        "--json",
    ]
    assert run(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "proved" and 0 < answer["guarantee"] < 0.01
    assert "what no controller exceeds is not in it" in answer["certificate"]["not_covered"][0]
    assert any(one["name"] == "readings" for one in answer["assumptions"])
    written = json.loads((out / "robust-controller.json").read_text())
    assert {row[1] for row in written["controller"]} <= {
        "sensing",
        "left",
        "middle",
        "right",
        "unseen",
        "ended",
    }
    tie = [
        "verify",
        str(proof),
        "--model",
        str(taxi),
        *about,
        "--policy",
        str(out / "robust-controller.json"),
    ]
    assert run(tie) == 0
    assert "your model, property, data, policy" in capsys.readouterr().out
    # The controller at work: simulated with the sensor as it was counted, and watched.
    log = tmp_path / "log.csv"
    simulated = ["sample", str(taxi), *about, "--policy", str(out / "robust-controller.json"), "-o", str(log)]
    assert run([*simulated, "--episodes", "300", "--raw", "--states", "variables", "--seed", "1"]) == 0
    rows = [line.split(",") for line in log.read_text().splitlines()[2:]]
    seen = [row[7] for row in rows if row[5] == '"sensing"' and row[2] == "2"]
    assert abs(seen.count("2") / len(seen) - 3900 / 4000) < 0.03  # 2 is the number of "middle"
    capsys.readouterr()
    watching = ["watch", str(taxi), "--observations", str(table), "--data", str(log), "--result", str(out)]
    assert run([*watching, "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["verdict"] == "proved" and said["returns"]["episodes"] == 300 and said["events"] == len(rows)
    assert said["returns"]["left_policy"] == said["returns"]["cut_off"] == 0
    # What bounds the robust optimum is proved at a point of the region.
    result = tr.load_result(out)
    assert result.robust_optimum == answer["robust_optimum"] < answer["guarantee"]
    table.write_text(LABELS.replace("3900", "3901"))
    assert run(tie) == 1 and "other data" in capsys.readouterr().err


def test_the_bound_on_the_robust_optimum_is_proved_at_a_point(taxi, tmp_path, capsys):
    table, proof, written = (str(tmp_path / name) for name in ("labels.csv", "point.cert", "controller.json"))
    Path(table).write_text(LABELS)
    text = 'Pmin=? [ F<=2 "off" ]'
    pomdp, reading = with_sensor(tr.load(taxi), table)
    result = tr.learn(tr.Problem(pomdp, text), reading.counts, delta=0.01)
    assert result.robust_point is not None and result.robust_optimum is not None
    at = ",".join(f"{name}={value}" for name, value in result.robust_point.items())
    about = ["--prop", text, "--observations", table, "--at", at]
    assert run(["check", str(taxi), *about, "--certificate", proof, "--policy-out", written, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["lower"] <= answer["upper"] and abs(answer["lower"] - result.robust_optimum) < 1e-3
    assert run(["verify", proof, "--model", str(taxi), *about, "--policy", written]) == 0
    capsys.readouterr()
    other = [*about[:-1], at.replace("=", "=1/2*", 1)]
    assert run(["verify", proof, "--model", str(taxi), *other, "--policy", written]) == 1
    assert result.region.contains([Fraction(value) for value in result.robust_point.values()])


def test_a_sensor_of_which_nothing_was_counted_is_not_simulated(taxi, tmp_path, capsys):
    table = tmp_path / "labels.csv"
    table.write_text("\n".join(line for line in LABELS.splitlines() if not line.startswith("3,")))
    words = [
        "sample",
        str(taxi),
        "--observations",
        str(table),
        "--episodes",
        "3",
        "-o",
        str(tmp_path / "d.csv"),
    ]
    assert run(words) == 2
    assert "the table has no reading of the sensor at place=3" in " ".join(capsys.readouterr().err.split())


def test_what_is_learned_covers_the_true_value(taxi):
    plant, text = tr.load(taxi), 'Pmin=? [ F<=3 "off" ]'
    truth = {1: (0.93, 0.07, 0.0), 2: (0.02, 0.96, 0.02), 3: (0.0, 0.07, 0.93)}
    places = plant.structure.valuations["place"].tolist()
    named = ("left", "middle", "right")
    real = observed(
        plant, [dict(zip(named, truth[p], strict=True)) if p in truth else "ended" for p in places]
    )
    chosen = {"left": "right", "middle": "hold", "right": "left"}
    value = tr.solve(real, text, policy=chosen).interval
    rng, missed = np.random.default_rng(7), 0
    count = int(os.environ.get("TIGHTROPE_REPLICATIONS", "12"))
    for _ in range(count):
        rows = [
            {"place": p, "camera": name, "count": int(n)}
            for p, row in truth.items()
            for name, n in zip(named, rng.multinomial(150, row), strict=True)
        ]
        pomdp, reading = with_sensor(plant, rows)
        given = {**chosen, "unseen": "hold"}
        result = tr.learn(tr.Problem(pomdp, text), reading.counts, delta=0.1, policy=given, sets="expression")
        low, high = result.interval
        missed += not (low <= value.upper and value.lower <= high)
    print(f"{missed} of {count} missed")
    assert missed <= 0.1 * count


@pytest.mark.costly("test_a_controller_is_learned_from_labelled_readings")
def test_more_readings_are_planned(taxi, tmp_path, capsys):
    table = tmp_path / "labels.csv"
    table.write_text(LABELS)
    words = ["plan", str(taxi), "--prop", 'Pmin=? [ F<=4 "off" ]', "--observations", str(table)]
    assert run([*words, "--delta", "0.01", "--above", "0.001", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    (strategy,) = plan["strategies"]
    more = strategy["episodes"]
    assert 1_000 < more < 60_000 and plan["episodes_so_far"] == 8000
    scaled = 1 + more / 8000
    lines = [line.split(",") for line in LABELS.splitlines()[1:]]
    rows = [{"place": int(a), "camera": b, "count": round(int(n) * scaled)} for a, b, n in lines]
    pomdp, reading = with_sensor(tr.load(taxi), rows)
    result = tr.learn(tr.Problem(pomdp, 'Pmin=? [ F<=4 "off" ]'), reading.counts, delta=0.01)
    assert 0.0008 < result.guarantee < 0.0012


def test_a_controller_at_work_earns_its_value(taxi, tmp_path):
    """Played by hand against a plant and a camera of our own, with readings that it has never seen."""
    table = tmp_path / "labels.csv"
    table.write_text(LABELS)
    pomdp, reading = with_sensor(tr.load(taxi), table)
    problem = tr.Problem(pomdp, 'Pmin=? [ F<=4 "off" ]')
    play = tr.learn(problem, reading.counts, delta=0.01).problem.lift.chosen.player()
    moves = {"left": (-1, 0.8), "right": (1, 0.8)}
    camera = {1: ("left", 0.95), 2: ("middle", 0.975), 3: ("right", 0.95)}
    rng, off = np.random.default_rng(3), 0
    for _ in range(4000):
        play.reset()
        place = 2
        for _ in range(4):
            name, likely = camera[place]
            seen = (
                name if rng.random() < likely else "middle" if place != 2 else rng.choice(["left", "right"])
            )
            action = play(str(seen))
            if action == "hold":
                place += int(rng.choice([-1, 0, 1], p=[0.02, 0.96, 0.02]))
            else:
                step, chance = moves[action]
                place += step if rng.random() < chance else 0
            if place in (0, 4):
                off += 1
                break
    assert off <= 25
    play.reset()
    assert play("fog") in ("left", "hold", "right")


def doubtful_sensor(seed, kind):
    """A small random plant, of which a sensor with an unknown error sees which of two halves it is in: one
    error for both, or any two within the same bounds."""
    rng = np.random.default_rng(seed)
    low = int(rng.integers(5, 30))
    high = low + int(rng.integers(1, 20))
    states = int(rng.integers(2, 4))
    rows = []
    for s in range(states):
        for a in "lr":
            towards = rng.choice(states + 2, size=2, replace=False).tolist()
            weight = Fraction(int(rng.integers(1, 5)), 5)
            rows.append((s, a, {towards[0]: weight, towards[1]: 1 - weight}))
    rows += [(states, "", {states: 1}), (states + 1, "", {states + 1: 1})]
    parameters = None
    right: object = ((100 - high) / 100, (100 - low) / 100)
    wrong: object = (low / 100, high / 100)
    if kind != "intervals":
        parameters = tr.Parameters.box(e=(Fraction(low, 100), Fraction(high, 100)))
        (wrong,) = parameters.symbols()
        right = 1 - wrong
    seen = {
        s: dict(zip(("low", "high")[:: 1 if 2 * s < states else -1], (right, wrong), strict=True))
        for s in range(states)
    }
    ends = {states: "won", states + 1: "lost"}
    labels = {"won": [states]}
    return tr.POMDP.from_rows(rows, parameters, observe={**seen, **ends}, labels=labels), low, high


def some_points(pomdp, low, high, rng):
    """Points of what is possible, both ends and the middle among them."""
    if isinstance(pomdp.model, tr.ParametricMDP):
        return [(Fraction(4 * low + (high - low) * k, 400),) for k in range(5)]
    start, made = pomdp.structure.transition_start.tolist(), []
    for share in (0, 1, Fraction(1, 2), None, None):
        point = []
        for begin, end in itertools.pairwise(start):
            bounds = list(zip(pomdp.model.lower[begin:end], pomdp.model.upper[begin:end], strict=True))
            if end - begin == 1 or bounds[0][0] == bounds[0][1]:
                own = [Fraction(repr(float(a))).limit_denominator(100) for a, _ in bounds]
            else:
                a, b = (Fraction(repr(float(x))) for x in bounds[0])
                t = Fraction(int(rng.integers(0, 9)), 8) if share is None else share
                own = [a + t * (b - a), 1 - a - t * (b - a)]
            point += own
        made.append(tuple(point))
    return made


KINDS = ("domain", "intervals", "learned")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(int(os.environ.get("TIGHTROPE_REPLICATIONS", "3"))))
def test_robust_controllers_against_brute_force(seed):
    """All controllers without memory, at some points: none guarantees more than the bound on the robust
    optimum, none does better anywhere than that on the true one, and the guarantee holds at every point. 300:
    TIGHTROPE_REPLICATIONS=300 pytest tests/beliefs/test_sensors.py -k brute_force"""
    kind, best = KINDS[seed % 3], ("max", "min")[seed // 3 % 2]
    text = f'P{best}{"min" if best == "max" else "max"}=? [ F<=3 "won" ]'
    text = text if kind == "intervals" else f'P{best}=? [ F<=3 "won" ]'
    pomdp, low, high = doubtful_sensor(seed, kind)
    sign, rng = 1 if best == "max" else -1, np.random.default_rng(seed)
    problem = tr.Problem(pomdp, text)
    points = some_points(pomdp, low, high, rng)
    if kind == "learned":
        ends = pomdp.structure.successor[:2].tolist()
        first, right, wrong = (pomdp.structure.state_name(s).strip("'") for s in (0, *ends))
        errs = int(rng.binomial(200, float(points[int(rng.integers(5))][0])))
        data = [[(first, "sensing", wrong)]] * errs + [[(first, "sensing", right)]] * (200 - errs)
        result = tr.learn(problem, data, delta=0.1, region="polytope", outcomes="none")
        controller, looked = result.problem.lift.chosen, list(result.problem.lift.optima)
        points = [point for point in (*points, *looked) if result.region.contains(point)]
        assert result.robust_optimum is not None and result.status == "as close as was asked"
    else:
        result = tr.solve(problem)
        controller, points = result.controller, [*points, *result.points]
        for point in result.points:
            if kind == "intervals":
                start = pomdp.structure.transition_start[:-1]
                own = np.array([float(value) for value in point])
                assert (own >= pomdp.model.lower).all() and (own <= pomdp.model.upper).all()
                assert np.add.reduceat(np.array(point, object), start).tolist() == [1] * len(start)

    def value(one, point):
        return sign * evaluate(pomdp, problem.objective, one, point).bounds[0]

    own = [value(controller, point) for point in points]
    offered = [range(max(1, len(actions))) for actions in pomdp.actions]
    best_guarantee, best = -np.inf, -np.inf
    for action in itertools.product(*offered):
        values = [value(tr.Controller.memoryless(pomdp, list(action)), point) for point in points]
        best_guarantee, best = max(best_guarantee, min(values, default=-np.inf)), max(best, *values)
    assert sign * result.guarantee <= min(own) + 1e-6
    assert best_guarantee <= sign * result.robust_optimum + 1e-6
    assert max(best, *own) <= sign * result.true_optimum + 1e-6
    assert sign * result.guarantee <= sign * result.robust_optimum + 1e-6
    # Nothing better at a point, with any memory, is beyond the bound of the true optimum.
    point = points[int(rng.integers(len(points)))]
    there = solve_partial(pomdp, problem.objective, point=point, precision=1e-3)
    assert sign * (there.lower if sign > 0 else there.upper) <= sign * result.true_optimum + 1e-6


def test_with_a_nature_that_helps_the_near_end_is_what_is_attained_for_certain(monkeypatch):
    """Bounds of the controller's value are apart where a solver stops early: the far one is not attained."""
    pomdp, _, _ = doubtful_sensor(1, "intervals")
    problem = tr.Problem(pomdp, 'Pmaxmax=? [ F<=3 "won" ]')
    truth = tr.solve(problem).bounds[0]

    def apart(*given, **limits):
        low, high = evaluate(*given, **limits).bounds
        return SimpleNamespace(bounds=(low - 0.05, high + 0.05))

    monkeypatch.setattr(robust, "evaluate", apart)
    low, high = tr.solve(problem).bounds
    assert truth - 0.051 <= low <= truth <= high


@pytest.mark.costly("test_what_is_learned_covers_the_true_value")
def test_the_choice_is_no_worse_than_a_rule_whatever_the_clock_says(tmp_path, monkeypatch):
    """The tutorial's example for fewer steps: rare readings are not rounded away, and rules without memory
    are tried before beliefs are."""
    page = (TESTS.parent / "docs/tutorials/taxi.md").read_text()
    for name, text in re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', page, re.S):
        (tmp_path / name).write_text(text)
    pomdp, reading = with_sensor(tr.load(tmp_path / "taxi.prism"), tmp_path / "labels.csv")
    problem = tr.Problem(pomdp, 'Pmin=? [ F<=4 "off" ]')
    rule = controller_of(pomdp, {"left": "right", "middle": "hold", "right": "left", "unseen": "hold"})
    monkeypatch.setattr(learning, "WORK", 2_000)
    chosen = choose_controller(problem, reading.counts, LearnOptions()).chosen
    monkeypatch.setattr(time, "perf_counter", itertools.count(0.0, 1e4).__next__)
    again = choose_controller(problem, reading.counts, LearnOptions()).chosen
    assert np.array_equal(chosen.following, again.following) and np.array_equal(chosen.action, again.action)
    late = choose_controller(problem, reading.counts, LearnOptions(seconds=1.0))
    assert late.cut
    cut = late.chosen
    ended = tr.learn(problem, reading.counts, delta=0.01, seconds=1.0)
    assert "time limit ended the choice of a controller" in ended.status
    assert ended.verdict.word.value == "limit" and ended.outcome.status == ended.status
    monkeypatch.undo()
    theirs, *ours = (
        tr.learn(problem, reading.counts, delta=0.01, policy=one).guarantee for one in (rule, chosen, cut)
    )
    assert theirs < 0.0008 and max(ours) <= theirs
