"""Partial observation: exact beliefs, bounds that hold for every controller, what is learned of one.

Also of `beliefs/graph.py`, `cli/check_partial.py`.
"""

import itertools
import json
import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import tightrope as tr
from benchmark_script import run_benchmark
from effort import repeats
from places import TESTS
from tightrope.beliefs.graph import BeliefGraph
from tightrope.beliefs.question import question_of
from tightrope.beliefs.solve import mixtures, solve_partial
from tightrope.cli.app import run
from tightrope.monitoring.promise import Promise, PromiseWatch
from tightrope.prism.load import load_prism_text

MAZE = """
pomdp
observables o endobservables
module maze
  s : [-1..13]; o : [0..7];
  [place] s=-1 -> 1/10:(s'=0)&(o'=1) + 1/10:(s'=1)&(o'=2) + 1/10:(s'=2)&(o'=3) + 1/10:(s'=3)&(o'=2)
    + 1/10:(s'=4)&(o'=4) + 1/10:(s'=5)&(o'=5) + 1/10:(s'=6)&(o'=5) + 1/10:(s'=7)&(o'=5)
    + 1/10:(s'=8)&(o'=6) + 1/10:(s'=9)&(o'=6);
  [north] s<=4&s>=0 -> true;
  [north] s=5 -> (s'=0)&(o'=1);
  [north] s=6 -> (s'=2)&(o'=3);
  [north] s=7 -> (s'=4)&(o'=4);
  [north] s=8|s=9 -> (s'=s=8?5:7)&(o'=5);
  [south] s=1|s=3|s=8|s=9 -> true;
  [south] s=0|s=2|s=4 -> (s'=5+floor(s/2))&(o'=5);
  [south] s=5|s=7 -> (s'=s=5?8:9)&(o'=6);
  [south] s=6 -> (s'=10)&(o'=7);
  [east] s>=4 & s<=9 -> true;
  [east] s=0|s=2 -> (s'=s+1)&(o'=2);
  [east] s=1|s=3 -> (s'=s+1)&(o'=s=1?3:4);
  [west] s=0 | (s>=5 & s<=9) -> true;
  [west] s=1|s=3 -> (s'=s-1)&(o'=s=1?1:3);
  [west] s=2|s=4 -> (s'=s-1)&(o'=2);
  [done] s=10 -> true;
endmodule
init s=-1 & o=0 endinit
label "goal" = s=10;
rewards s!=-1 : 1; endrewards
"""


def hidden(rows, labels, seen, rewards=None):
    model = tr.build_from_rows(rows, labels=labels)
    if rewards is not None:
        from dataclasses import replace

        from tightrope.model.structure import RewardStructure

        own = replace(model.structure, rewards={"": RewardStructure(np.array(rewards, float), None)})
        model = replace(model, structure=own)
    return tr.POMDP(model, np.array(seen, np.int32), tuple(f"o{k}" for k in range(max(seen) + 1)))


def random_pomdp(seed, with_rewards=False, with_trap=True):
    rng = np.random.default_rng(seed)
    states, looks, actions = int(rng.integers(3, 7)), int(rng.integers(1, 4)), 2
    rows, seen = [], rng.integers(0, looks, states)
    for s in range(states):
        for a in range(actions):
            targets = rng.choice(states + 1 + with_trap, size=int(rng.integers(1, 4)), replace=False)
            weight = rng.integers(1, 4, len(targets))
            total = int(weight.sum())
            rows.append(
                (s, f"a{a}", {int(t): Fraction(int(w), total) for t, w in zip(targets, weight, strict=True)})
            )
    rows += [(states, "", {states: 1}), (states + 1, "", {states + 1: 1})]
    looks = [*seen.tolist(), looks, looks + 1]
    rewards = [*rng.integers(0, 3, states).tolist(), 0, 0] if with_rewards else None
    order = sorted(set(looks))
    return hidden(rows, {"goal": [states]}, [order.index(o) for o in looks], rewards)


def exact_horizon(pomdp, objective, depth):
    """The best probability within `depth` steps over all controllers: all histories, exactly."""
    model = pomdp.model
    own, p = model.structure, model.expressions.exact_values(()).to_fractions()
    best = max if objective.agent.value == "max" else min

    def value(belief, left):
        won = sum((w for s, w in belief.items() if objective.target[s]), Fraction(0))
        alive = {s: w for s, w in belief.items() if not objective.target[s]}
        if not alive or left == 0:
            return won
        look = pomdp.observation[next(iter(alive))]
        options = []
        for k in range(len(pomdp.actions[look])):
            parts = {}
            for s, w in alive.items():
                c = int(pomdp.aligned[own.choice_start[s] + k])
                for t in range(int(own.transition_start[c]), int(own.transition_start[c + 1])):
                    to = int(own.successor[t])
                    part = parts.setdefault(int(pomdp.observation[to]), {})
                    part[to] = part.get(to, Fraction(0)) + w * p[int(model.expression[t])]
            options.append(sum((value(part, left - 1) for part in parts.values()), Fraction(0)))
        return won + best(options)

    return value({own.initial: Fraction(1)}, depth)


def test_maze_is_solved_exactly(tmp_path):
    path = tmp_path / "maze.prism"
    path.write_text(MAZE)
    model = tr.load(path)
    solved = tr.solve(model, 'Rmin=? [ F "goal" ]', precision=1e-4, seconds=3600)
    assert solved.is_certified
    assert solved.lower <= 4.3 <= solved.upper and solved.upper - solved.lower < 1e-3
    again = tr.solve(model, 'Rmin=? [ F "goal" ]', policy=solved.controller)
    assert again.lower <= again.upper <= solved.upper + 1e-6


SEEDS = range(int(os.environ.get("TIGHTROPE_REPLICATIONS", "12")))
"""More of them: TIGHTROPE_REPLICATIONS=500 pytest tests/beliefs/test_pomdp.py -k every_controller"""


@pytest.mark.thinned(5)
@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_hold_for_every_controller(seed):
    pomdp = random_pomdp(seed)
    for text in ('Pmax=? [ F<=4 "goal" ]', 'Pmin=? [ F<=4 "goal" ]'):
        objective = tr.Problem(pomdp, text).objective
        solved = solve_partial(pomdp, objective, precision=1e-6, seconds=math.inf, beliefs=3000)
        truth = float(exact_horizon(pomdp, objective, 4))
        assert solved.lower - 1e-9 <= truth <= solved.upper + 1e-9, text
        assert solved.upper - solved.lower < 1e-4
    text = 'Pmax=? [ F "goal" ]'
    objective = tr.Problem(pomdp, text).objective
    coarse = solve_partial(pomdp, objective, precision=0.05, seconds=math.inf, beliefs=40)
    assert float(exact_horizon(pomdp, objective, 5)) <= coarse.upper + 1e-9
    best = 0.0
    offered = [range(max(1, len(actions))) for actions in pomdp.actions]
    for action in itertools.product(*offered):
        value = tr.solve(pomdp, text, policy=tr.Controller.memoryless(pomdp, list(action)))
        best = max(best, value.lower)
    assert best <= coarse.upper + 1e-9
    assert coarse.attained[0] <= coarse.upper + 1e-9 and coarse.lower == coarse.attained[0]


WAITING = """pomdp
observables o endobservables
module m
  s : [0..3]; o : [0..2];
  [] s=0 -> 0.5 : (s'=1)&(o'=1) + 0.5 : (s'=2)&(o'=1);
  [wait] o=1 -> true;
  [l] s=1 -> (s'=3)&(o'=2);  [r] s=1 -> true;
  [l] s=2 -> true;           [r] s=2 -> (s'=3)&(o'=2);
  [] s=3 -> true;
endmodule
label "done" = s=3;
rewards [l] true : 2; [r] true : 3; endrewards
"""


def test_waiting_for_nothing_is_no_way_to_a_target():
    """Waiting costs nothing and reaches nothing: 2 for the left door, and 3 for the right one half of the
    time. The outer model once summed up rewards without regard to the target: a lower bound of 0, where even
    perfect information needs 2.5."""
    solved = tr.solve(load_prism_text(WAITING), 'Rmin=? [ F "done" ]')
    assert solved.is_certified and solved.bounds == pytest.approx((3.5, 3.5), rel=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_lower_bound_of_a_cost_is_worse_than_perfect_information(seed):
    pomdp = random_pomdp(seed, with_rewards=True, with_trap=seed % 3 == 0)
    text = 'Rmin=? [ F "goal" ]'
    objective = tr.Problem(pomdp, text).objective
    solved = solve_partial(pomdp, objective, precision=1e-3, beliefs=30, work=1e4)
    told = tr.solve(pomdp.model, text)
    assert solved.lower >= told.lower[pomdp.structure.initial] * (1 - 1e-6)
    offered = [range(max(1, len(actions))) for actions in pomdp.actions]
    for action in itertools.product(*offered):
        value = tr.solve(pomdp, text, policy=tr.Controller.memoryless(pomdp, list(action)))
        assert value.upper >= solved.lower * (1 - 1e-9)


def test_what_always_holds_is_the_rest_of_what_happens():
    for seed, least in ((1, "min"), (4, "max")):
        pomdp = random_pomdp(seed)
        opposite = "max" if least == "min" else "min"
        reached = tr.solve(pomdp, f'P{opposite}=? [ F<=4 "goal" ]', seconds=3600)
        avoided = tr.solve(pomdp, f'P{least}=? [ G<=4 !"goal" ]', seconds=3600)
        truth = 1 - float(exact_horizon(pomdp, reached.objective, 4))
        assert avoided.lower <= truth <= avoided.upper
        assert avoided.upper == pytest.approx(1 - reached.lower, abs=1e-6)
        assert avoided.lower == pytest.approx(1 - reached.upper, abs=1e-6)


def test_beliefs_are_exact_and_near_ones_are_not_merged():
    # Looking moves the belief a little towards one side, forever: infinitely many beliefs, all different.
    rows = [(0, "", {1: Fraction(1, 2), 2: Fraction(1, 2)})]
    for s in (1, 2):
        good = Fraction(499999, 10**6) if s == 1 else Fraction(500001, 10**6)
        for at in (s, s + 2):
            rows.append((at, "look", {s: good, s + 2: 1 - good}))
            rows += [(at, "one", {5 if s == 1 else 6: 1}), (at, "two", {6 if s == 1 else 5: 1})]
    rows += [(5, "", {5: 1}), (6, "", {6: 1})]
    pomdp = hidden(rows, {"won": [5]}, [0, 1, 1, 2, 2, 3, 4])
    question = question_of(pomdp, tr.Problem(pomdp, 'Pmax=? [ F "won" ]').objective)
    graph = BeliefGraph.of(question)
    for number in range(40):
        graph.expand(number)
    mixed = [b for b in graph.belief if len(b[1]) == 2]
    assert len(mixed) == len(set(mixed)) > 30
    assert all(math.gcd(*b[2]) == 1 for b in graph.belief)
    for moves in graph.moves:
        for move in moves:
            assert sum(move.weight) + move.success <= move.total
    # No probability leaks: where nothing stops, the masses of an expanded belief sum to one exactly.
    first = graph.question.pomdp.structure.action_names.index("look")
    for number, kind in enumerate(graph.kind):
        look = graph.question.looks[graph.belief[number][0]][0]
        if kind == "expanded" and first in pomdp.actions[look]:
            move = graph.moves[number][pomdp.actions[look].index(first)]
            assert sum(move.weight) == move.total


def test_split_beliefs_are_mixtures_of_what_they_are_split_into():
    """Interpolation is exact and is repeated from its recipe."""
    pomdp = tr.load(TESTS.parent / "benchmarks/pomdp/grid.prism", const={"N": 4})
    objective = tr.Problem(pomdp, 'R{"steps"}min=? [ F "goal" ]').objective
    solved = solve_partial(pomdp, objective, precision=1e-3, seconds=math.inf, beliefs=100)
    assert solved.lower <= 4.7016 <= solved.upper
    graph = solved.graph
    assert graph.kind.count("split") > 5
    for number, kind in enumerate(graph.kind):
        if kind != "split":
            continue
        look, states, weights = graph.belief[number]
        (move,) = graph.moves[number]
        mixture = dict.fromkeys(states, Fraction(0))
        for part, mass in zip(move.successor, move.weight, strict=True):
            seen, inside, own = graph.belief[part]
            assert seen == look and (graph.kind[part] == "expanded" or len(own) == 1) and mass > 0
            for state, weight in zip(inside, own, strict=True):
                mixture[state] += Fraction(mass, move.total) * Fraction(weight, sum(own))
        assert mixture == {s: Fraction(w, sum(weights)) for s, w in zip(states, weights, strict=True)}
        assert sum(move.weight) == move.total and move.success == 0 and move.reward == 0
    number, (points, told) = next((n, own) for n, own in graph.into.items() if len(own[0]) > 1)
    for wrong in ((points, told[:-1]), (points, (told[0],) * len(told)), (points[:1] * len(points), told)):
        with pytest.raises(ValueError, match="belief is"):
            graph.split(number, *wrong)
    again = BeliefGraph.repeated(graph.question, graph.recipe())
    assert again.belief == graph.belief and again.moves == graph.moves and again.kind == graph.kind
    _, states, weights = graph.belief[number]
    _, inside, own = graph.belief[points[0]]
    whole = dict(zip(states, weights, strict=True))
    ratio = {s: Fraction(whole[s], w) for s, w in zip(inside, own, strict=True)}
    most = max(ratio, key=ratio.get)
    assert ratio[most] > min(ratio.values())
    with pytest.raises(ValueError, match="not a mixture"):
        again.split(number, points[:1], [most])  # less than nothing would be left of another state


def test_mixtures_are_the_cheapest_ones():
    rng = np.random.default_rng(4)
    points, beliefs = (rng.dirichlet(np.ones(4), size) for size in (9, 40))
    corner, worth = rng.random(4), rng.random(9)
    found, basis = mixtures(beliefs, points, corner, worth)
    column, price = np.concatenate([np.eye(4), points]), np.concatenate([corner, worth])
    for belief, value, own in zip(beliefs, found, basis, strict=True):
        best = linprog(price, A_eq=column.T, b_eq=belief)
        share = np.linalg.solve(column[own].T, belief)
        assert abs(value - best.fun) < 1e-9 and share.min() > -1e-9 and abs(share @ price[own] - value) < 1e-9


def test_a_target_that_every_controller_misses_is_infinitely_far():
    rows = [
        (0, "", {1: "1/2", 2: "1/2"}),
        (1, "l", {3: 1}),
        (1, "r", {4: 1}),
        (2, "l", {4: 1}),
        (2, "r", {3: 1}),
    ]
    rows += [(3, "", {3: 1}), (4, "", {4: 1})]
    pomdp = hidden(rows, {"won": [3]}, [0, 1, 1, 2, 3], [1, 1, 1, 0, 0])
    solved = tr.solve(pomdp, 'Rmin=? [ F "won" ]', seconds=3600)
    assert solved.lower == solved.upper == math.inf and solved.is_certified


def test_the_benchmark_meets_storm():
    done = run_benchmark("partial_observation.py", "--smoke", "--seconds", "600")
    assert done.returncode == 0 and "unfolding completed" in done.stdout


def two_looks():
    """Two looks through one sensor that says yes with probability p; what is won is that they differ."""
    parameters = tr.Parameters.box(p=("0.2", "0.8"))
    (p,) = parameters.symbols()
    rows = [(0, "", {1: p, 2: 1 - p}), (1, "", {3: p, 4: 1 - p}), (2, "", {4: p, 3: 1 - p})]
    rows += [(3, "", {3: 1}), (4, "", {4: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"differ": [4]})
    return tr.POMDP(model, [0, 1, 2, 3, 3], ("start", "one", "two", "end"))


def test_static_nature_is_weaker_than_one_that_remembers():
    """One p for both looks: 2p(1 − p) over [.2, .8] is [.32, .5]. A nature that draws p anew when it has seen
    the first look wins with any probability of [.2, .8]."""
    pomdp = two_looks()
    only = tr.Controller.memoryless(pomdp, [0, 0, 0, 0])
    static = tr.solve(pomdp, 'Pmax=? [ F "differ" ]', policy=only)
    assert static.interval.lower == pytest.approx(0.32, abs=2e-3)
    assert static.interval.upper == pytest.approx(0.5, abs=2e-3)
    problem = tr.Problem(pomdp, 'Pmax=? [ F "differ" ]')
    for given in (None, only):
        at = tr.solve(problem.at(p=0.3), policy=given).bounds
        assert at[0] <= 0.42 <= at[1] and at[1] - at[0] < 1e-3
    low, high = (
        tr.solve(pomdp.model, f'P{nature}=? [ F "differ" ]', sets="expression") for nature in ("min", "max")
    )
    assert low.interval.lower == pytest.approx(0.2, abs=1e-6)
    assert high.interval.upper == pytest.approx(0.8, abs=1e-6)


def test_learning_covers_the_controllers_true_value():
    """A sensor that errs with an unknown probability: logs at δ = .1, the true value inside."""
    parameters = tr.Parameters.box(p=("0.05", "0.45"))
    (p,) = parameters.symbols()
    rows = [(0, "", {1: Fraction(1, 2), 2: Fraction(1, 2)})]
    for s in (1, 2):  # look: the reading is right with probability 1 − p
        rows.append((s, "look", {2 * s + 1: 1 - p, 2 * s + 2: p}))
    for s in (3, 4, 5, 6):
        left = s in (3, 4)
        rows += [(s, "left", {7 if left else 8: 1}), (s, "right", {8 if left else 7: 1})]
    rows += [(7, "", {7: 1}), (8, "", {8: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"won": [7]})
    pomdp = tr.POMDP(model, [0, 1, 1, 2, 3, 3, 2, 4, 5], ("start", "dark", "L", "R", "won", "lost"))
    problem = tr.Problem(pomdp, 'Pmax=? [ F "won" ]')
    truth, misses = 0.8, 0
    rng = np.random.default_rng(5)
    for _ in range(repeats(40, 8)):
        wrong = int(rng.binomial(100, 1 - truth))
        data = [[(0, "", 1), (1, "look", 4)]] * wrong + [[(0, "", 1), (1, "look", 3)]] * (100 - wrong)
        result = tr.learn(problem, data, delta=0.1, region="polytope", outcomes="none")
        assert result.controller.has_memory
        misses += not result.interval.lower <= truth <= result.interval.upper
        assert result.guarantee > 0.5
    learned = result.controller
    low, high = tr.solve(problem.at(p="0.3"), policy=learned).bounds
    assert low <= 0.7 <= high <= low + 1e-6
    rows = learned.memory
    choice = np.where(rows.state == 4, 5, rows.choice)
    sees = tr.FiniteMemoryChoices(rows.state, rows.memory, choice, rows.following)
    with pytest.raises(tr.InputError, match="different things in states that look like R"):
        tr.solve(problem.at(p="0.3"), policy=tr.Policy(model, sees))
    assert any("independently given the state" in note for note in result.notes)
    assert misses <= repeats(8, 8)
    with pytest.raises(tr.InputError, match="needs a policy that is chosen before the data"):
        tr.learn(problem, data, delta=0.1, region="slab")


def test_the_controller_is_chosen_for_the_worst_that_the_data_allow():
    """A good sensor of which little is known, and a fair one of which much is: the second is taken."""
    parameters = tr.Parameters.box(a=("0.01", "0.5"), b=("0.01", "0.5"))
    a, b = parameters.symbols()
    rows = [(0, "go", {1: Fraction(1, 2), 2: Fraction(1, 2)})]
    for s in (1, 2):
        right, wrong = (3, 4) if s == 1 else (6, 5)
        rows += [(s, "A", {right: 1 - a, wrong: a}), (s, "B", {right: 1 - b, wrong: b})]
    for s in (3, 4, 5, 6):
        rows += [(s, "l", {7 if s in (3, 4) else 8: 1}), (s, "r", {8 if s in (3, 4) else 7: 1})]
    rows += [(7, "", {7: 1}), (8, "", {8: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"won": [7]})
    pomdp = tr.POMDP(model, [0, 1, 1, 2, 3, 2, 3, 4, 5], ("go", "dark", "L", "R", "won", "lost"))
    data = [[(0, "go", 1), (1, "A", 3)]] * 18 + [[(0, "go", 1), (1, "A", 4)]] * 2
    data += [[(0, "go", 1), (1, "B", 3)]] * 1700 + [[(0, "go", 1), (1, "B", 4)]] * 300
    result = tr.learn(tr.Problem(pomdp, 'Pmax=? [ F "won" ]'), data, delta=0.01, region="polytope")
    chosen = result.problem.lift.chosen
    _, node = chosen.act(0, "go")
    assert chosen.act(node, "dark")[0] == "B" and 0.8 < result.guarantee < 0.85


def test_controllers_are_written_and_read(tmp_path, capsys):
    path, out = tmp_path / "maze.prism", tmp_path / "c.json"
    path.write_text(MAZE)
    words = ["check", str(path), "--prop", 'Rmin=? [ F "goal" ]', "--json"]
    assert run([*words, "--policy-out", str(out), "--time-limit", "600"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["lower"] <= 4.3 <= answer["upper"] and answer["verdict"] == "proved"
    assert json.loads(out.read_text())["format"] == "tightrope observer"
    assert run([*words, "--policy", str(out)]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["upper"] == pytest.approx(4.3, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MAZE.replace("observables o endobservables", ""), "a pomdp says what is observed"),
        (MAZE.replace("observables o", "observables q"), "observable 'q' is not a variable"),
        (MAZE.replace("pomdp", "mdp"), "observables belong to models of type pomdp"),
        (MAZE.replace("[south] s=1|s=3|s=8", "[south] s=1|s=8"), "look alike"),
        (MAZE.replace("observables o endo", "observables o, o endo"), "'o' is observed twice"),
    ],
)
def test_wrong_models_are_refused(tmp_path, text, message):
    path = tmp_path / "maze.prism"
    path.write_text(text)
    with pytest.raises(tr.InputError, match=message):
        tr.load(path)


def test_formulas_are_refused_in_words(tmp_path, capsys):
    path, log = tmp_path / "m.prism", tmp_path / "log.csv"
    path.write_text(MAZE.replace("1/10:(s'=0)", "p:(s'=0)").replace("1/10:(s'=1)", "(1/5-p):(s'=1)"))
    path.write_text(path.read_text().replace("pomdp", "pomdp\nconst double p;"))
    log.write_text("episode,s,o,action,next_s,next_o\n0,-1,0,place,0,1\n")
    for text in ('Pmax=? [ F (o=2 & (F "goal")) ]', 'multi(Pmax=? [ F "goal" ], P>=0.1 [ F o=2 ])'):
        words = ["learn", str(path), "--prop", text, "--param", "p=0.05:0.15", "--data", str(log)]
        assert run(words) == 2
        assert "partially observable" in capsys.readouterr().err


CAMERA = """
pomdp
const double err;
observables step, seen endobservables
module camera
  door : [0..2]; seen : [0..2]; step : [0..3];
  [draw] step=0 -> 0.5:(door'=1)&(step'=1) + 0.5:(door'=2)&(step'=1);
  [look] step=1 -> 1-err : (seen'=door)&(step'=2) + err : (seen'=3-door)&(step'=2);
  [left] step=2 -> (step'=3)&(seen'=(door=1?1:2));
  [right] step=2 -> (step'=3)&(seen'=(door=2?1:2));
  [done] step=3 -> true;
endmodule
label "through" = step=3 & seen=1;
"""


def test_controllers_are_simulated_and_their_models_watched(tmp_path, capsys, empty_pictures):
    """`sample` with a controller, `learn` from that, `report`, `watch` with the right and a wrong domain."""
    path, out, log = tmp_path / "camera.prism", tmp_path / "c.json", tmp_path / "log.csv"
    path.write_text(CAMERA)
    assert run(["info", str(path), "--param", "err=0.01:0.4", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["type"] == "parametric POMDP" and facts["observations"] == 6
    about = ["--prop", 'Pmax=? [ F "through" ]']
    assert run(["check", str(path), *about, "--at", "err=0.1", "--policy-out", str(out)]) == 0
    box = ["--param", "err=0.01:0.4"]
    simulated = ["sample", str(path), *about, *box, "--at", "err=0.1", "--policy", str(out), "--seed", "3"]
    assert run([*simulated, "--episodes", "2000", "--raw", "-o", str(log)]) == 0
    capsys.readouterr()
    result = tmp_path / "result"
    given = ["--policy", str(out), "-o", str(result), "--json"]
    assert run(["learn", str(path), *about, *box, "--data", str(log), *given]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert 0.85 < answer["guarantee"] < 0.9
    assert answer["robust_optimum"] == answer["true_optimum"] == answer["optimistic"]  # none was looked for
    assert run(["report", str(result), "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "<td>(step=2,seen=1)</td><td>left</td>" in page and "no controller guarantees better" in page
    assert run(["watch", str(path), *box, "--data", str(log), "--json"]) == 0
    capsys.readouterr()
    assert run(["watch", str(path), "--param", "err=0.15:0.4", "--data", str(log), "--json"]) == 1
    capsys.readouterr()
    watched = ["watch", str(path), *box, "--result", str(result), "--json", "--data"]
    assert run([*watched, str(log)]) == 0
    returns = json.loads(capsys.readouterr().out)["returns"]
    assert returns["episodes"] == 2000 and returns["left_policy"] == 0 and 0.88 < returns["mean"] < 0.92
    assert returns["promised"] == answer["guarantee"] and not returns["alarm"]
    simulated[simulated.index("err=0.1")] = "err=0.3"
    worse = str(tmp_path / "worse.csv")
    assert run([*simulated, "--episodes", "2000", "--raw", "-o", worse]) == 0
    capsys.readouterr()
    assert run([*watched, worse]) == 1
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["returns"]["alarm"] and answer["first_alarm"] <= 6000 and answer["returns"]["mean"] < 0.75
    other = tmp_path / "other.json"
    swapped = out.read_text().replace('"left"', '"#"').replace('"right"', '"left"').replace("#", "right")
    other.write_text(swapped)
    assert run([*watched, str(log), "--policy", str(other)]) == 2
    assert "no guaranteed bound for this controller" in capsys.readouterr().err
    model = tr.load(path, params={"err": ("0.01", "0.4")})
    assert model.problem('Pmax=? [ F "through" ]').model is model
    (written,) = model.save(tmp_path / "camera.drn")
    assert tr.load(written).names == model.names


def test_guaranteed_bounds_of_controllers_with_a_memory_are_watched():
    """Right, then left is the promise. An episode that goes left at once, or right twice, has left it."""
    rows = [
        (0, "l", {0: 1}),
        (0, "r", {0: "1/2", 1: "1/2"}),
        (1, "l", {2: 1}),
        (1, "r", {0: 1}),
        (2, "", {2: 1}),
    ]
    model = tr.build_from_rows(rows, labels={"won": [2]})
    pomdp = tr.POMDP(model, [0, 0, 1], ("dark", "won"))
    controller = tr.Controller(pomdp, [[1, 0], [0, 0]], [[1, 0], [0, 0]])
    objective = tr.Problem(pomdp, 'Pmax=? [ F<=2 "won" ]').objective
    promise = Promise(objective, controller.policy, 0.5, True)
    watch = PromiseWatch(model.structure, promise, 0.01)
    l0, r00, r01, l12, r10 = range(5)
    won, lost = [r01, l12], [r00, l0]
    for episode in (won, lost, won, [l0, r01], [r00, r00], [r01, r10], won):
        watch.observe(np.array(episode), np.arange(len(episode)) == 0, 1)
    assert (watch.returns.episodes, watch.left, watch.cut) == (7, 3, 0)
    assert watch.mean == pytest.approx(6 / 7)  # what does not show counts as won
    begun = PromiseWatch(model.structure, promise, 0.01)
    begun.observe(np.array([r01]), np.array([True]), 1)
    again = PromiseWatch(model.structure, promise, 0.01)
    again.restore(begun.state())
    again.observe(np.array([l12]), np.array([False]), 2)
    assert again.returns.episodes == 1 and again.mean == 1.0 and again.left == 0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        # What is observed does not tell apart states whose choices differ.
        (
            "step, seen endo",
            "seen endo",
            "(door=0,seen=0,step=0) and (door=1,seen=0,step=1) look alike, (seen=0),",
        ),
        # An action is not there in all states that look so.
        (
            "[left] step=2",
            "[left] step=2 & door=1",
            "(step=2,seen=2), but offer other actions: 'left', 'right' and",
        ),
        ('"through" = step', '"through" = stair', "camera.prism:13:"),
    ],
)
def test_what_cannot_be_observed_is_refused_with_names_and_place(tmp_path, capsys, old, new, words):
    path = tmp_path / "camera.prism"
    path.write_text(CAMERA.replace(old, new))
    assert run(["check", str(path), "--prop", 'Pmax=? [ F "through" ]', "--at", "err=0.1"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "camera.prism" in message and words in message, message


def test_a_controller_for_other_observations_is_refused_with_names_and_place(tmp_path, capsys):
    for name, text in (("camera", CAMERA), ("named", CAMERA.replace("step, seen endo", "step, door endo"))):
        (tmp_path / f"{name}.prism").write_text(text)
    camera, other = str(tmp_path / "camera.prism"), str(tmp_path / "named.prism")
    about = ["--prop", 'Pmax=? [ F "through" ]', "--at", "err=0.1"]
    out = str(tmp_path / "c.json")
    assert run(["check", other, *about, "--policy-out", out]) == 0
    capsys.readouterr()
    assert run(["check", camera, *about, "--policy", out]) == 2
    message = capsys.readouterr().err
    assert "c.json" in message and "row 1: there is no observation '(step=0,door=0)'" in message
    one, two = (tr.load(file, params={"err": ("0.01", "0.4")}) for file in (camera, other))
    rule = tr.Controller.memoryless(two, [0] * two.observations)
    with pytest.raises(tr.InputError, match=r"\(step=0,door=0\) is one of the controller alone"):
        tr.solve(one, 'Pmax=? [ F "through" ]', policy=rule)
    (tmp_path / "named.prism").write_text(CAMERA.replace("[right]", "[straight]"))
    three = tr.load(other, params={"err": ("0.01", "0.4")})
    rule = tr.Controller.memoryless(three, [0] * three.observations)
    with pytest.raises(tr.InputError, match=r"on seeing \(step=2,seen=1\) it has left, straight"):
        tr.solve(one, 'Pmax=? [ F "through" ]', policy=rule)


def test_wrong_controllers_are_refused(tmp_path):
    pomdp = random_pomdp(3)
    text = 'Pmax=? [ F "goal" ]'
    for given, message in (
        ({"nothing": "a0"}, "there is no observation 'nothing'"),
        ({"o0": "a7"}, "there is no action 'a7'"),
        (7, "no controller"),
    ):
        with pytest.raises(tr.InputError, match=message):
            tr.solve(pomdp, text, policy=given)
    path: Path = tmp_path / "c.json"
    head = '"format": "tightrope observer", "version": 1'
    for document, message in (
        ("[", "not JSON"),
        ('{"format": "tightrope policy"}', "sees observations"),
        (f'{{{head}, "controller": [[0, "o0"]]}}', "row 1 is not"),
        (f'{{{head}, "controller": [[0, "x", "a0", 0]]}}', "row 1: there is no"),
    ):
        path.write_text(document)
        with pytest.raises(tr.InputError, match=message):
            tr.solve(pomdp, text, policy=path)
    with pytest.raises(tr.InputError, match="partially observable"):
        tr.solve(pomdp, text, sets="rectangular")
    with pytest.raises(tr.InputError, match="partially observable"):
        tr.learn_all(tr.Problem(pomdp, text), [[]])


HIDDEN_CLOCKS = """popta
observables o endobservables
module m
  s : [0..4] init 0; o : [0..2] init 0; x : clock;
  invariant (s=0 => x<=2) & (s=1 | s=2 => x<=3) endinvariant
  [start] s=0 & x>=1 -> 0.6 : (s'=1) & (o'=1) & (x'=0) + 0.4 : (s'=2) & (o'=1) & (x'=0);
  [early] s=1 & x<=1 -> (s'=3) & (o'=2);
  [early] s=2 & x<=1 -> (s'=4) & (o'=2);
  [late] s=1 & x>=2 -> 0.5 : (s'=3) & (o'=2) + 0.5 : (s'=4) & (o'=2);
  [late] s=2 & x>=2 -> (s'=3) & (o'=2);
  [end] s>=3 -> true;
endmodule
"""


def test_timed_automata_that_hide_states_show_their_clocks(tmp_path):
    """By hand: early succeeds with 0.6, late with 0.6/2 + 0.4; who saw the state would have 1."""
    path = tmp_path / "m.prism"
    path.write_text(HIDDEN_CLOCKS)
    pomdp = tr.load(path)
    for asked, value in (
        ("Pmax=? [ F s=3 ]", 0.7),
        ("Pmin=? [ F s=3 ]", 0.6),
        ('R{"time"}min=? [ F s>=3 ]', 1),
        ('R{"time"}max=? [ F s>=3 ]', 5),
    ):
        answer = tr.solve(pomdp, asked)
        assert (answer.lower, answer.upper) == pytest.approx((value, value), abs=1e-6), asked
    listed = tmp_path / "listed.prism"
    listed.write_text(HIDDEN_CLOCKS.replace("observables o end", "observables o, x end"))
    assert tr.load(listed).hash() == pomdp.hash()
    listed.write_text(HIDDEN_CLOCKS.replace("endmodule", 'endmodule observable "late" = x>=2;'))
    with pytest.raises(tr.InputError, match="clock 'x' stands in labels, formulas, rewards, observables"):
        tr.load(listed)
