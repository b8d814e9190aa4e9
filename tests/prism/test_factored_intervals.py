"""Interval commands that move together: their factors, against recursion and all products.

Also of `solver/iteration/games.py`.
"""

from __future__ import annotations

import io
import json
import pickle
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from benchmark_script import run_benchmark
from effort import repeats
from factored_reference import Modules, Nature, State, Values, backup, nested, products
from random_programs import ProgramWriter
from tightrope.certify.certify import certify
from tightrope.certify.verification import verify
from tightrope.cli.app import main
from tightrope.errors import CannotCertify, InputError, ReadingWarning
from tightrope.learning.solve import solve
from tightrope.model.mdp import JOINT_BOUNDS, FactoredRows, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.structure import RewardStructure
from tightrope.prism.load import load_prism_text
from tightrope.problem import Problem
from tightrope.solver.bellman.factored import FactoredOperator
from tightrope.solver.solution import Solution
from tightrope.solver.solve import attained
from tightrope_check.archive import load

CLOSE = 1e-9


def interval(text: str) -> IntervalMDP:
    model = load_prism_text(text, "test.prism")
    assert isinstance(model, IntervalMDP)
    return model


def factored(text: str) -> IntervalMDP:
    model = interval(text)
    assert model.factored is not None
    return model


def state_of(model: IntervalMDP, number: int) -> State:
    return tuple(int(column[number]) for column in model.valuations.values())


def solved(model: IntervalMDP, question: str | Objective) -> tuple[Solution, Solution]:
    """Over factors, and over joint bounds."""
    both = solve(model, question, precision=1e-11), solve(model.without_factors, question, precision=1e-11)
    assert both[0].is_factored and not both[1].is_factored
    return both


def values_of(modules: Modules, seed: int) -> Values:
    """A value for every joint state, drawn."""
    draw = np.random.default_rng(seed)
    return {state: Fraction(int(draw.integers(0, 9))) for state in modules.states}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sizes", [(2, 3), (3, 3), (2, 2, 2), (3, 2, 2)])
def test_one_step_is_the_recursion_and_between_products_and_joint_bounds(sizes: tuple[int, ...]) -> None:
    """Every state of random programs; exact numbers lie within the verified bounds."""
    narrower = strict = 0
    for seed in range(3):
        modules = Modules.drawn(seed, sizes, 2)
        values = values_of(modules, seed)
        model = factored(modules.text())
        last = np.array([float(values[state_of(model, number)]) for number in range(model.states)])
        nothing = RewardStructure(np.zeros(model.states))
        for agent, nature in ((True, False), (True, True), (False, True)):
            sides = (Direction.MAX if maximises else Direction.MIN for maximises in (agent, nature))
            kind = ObjectiveKind.CUMULATIVE
            here, joint = solved(model, Objective(kind, *sides, upper_steps=1, reward=nothing, terminal=last))
            exact = backup(modules, nested, values, agent, nature)
            least = backup(modules, products, values, agent, nature)
            for number in range(model.states):
                found, product_ = exact[state_of(model, number)], least[state_of(model, number)]
                assert Fraction(here.lower[number]) <= found <= Fraction(here.upper[number])
                assert here.upper[number] - here.lower[number] < CLOSE
                worse = (product_ <= found) if nature else (found <= product_)
                assert worse
                strict += found != product_
                gain = (joint.upper[number] - here.upper[number]) * (1 if nature else -1)
                assert gain > -CLOSE
                narrower += gain > CLOSE
    assert narrower > 3 and strict > 0


def back_up_steps(modules: Modules, nature: Nature, target: State, steps: int) -> Values:
    """The probability of the target within so many steps, of the best agent against the worst nature."""
    values = {state: Fraction(int(state == target)) for state in modules.states}
    for _ in range(steps):
        values = {**backup(modules, nature, values, True, False), target: Fraction(1)}
    return values


@pytest.mark.parametrize("seed", [1, 5])
def test_many_steps_are_the_recursion_and_between_products_and_joint_bounds(seed: int) -> None:
    modules, target = Modules.drawn(seed, (2, 3), 2), (1, 2)
    model = factored(modules.text('label "goal" = x0=1 & x1=2;\nrewards true : 1; endrewards'))
    here, joint = solved(model, 'Pmaxmin=? [ F<=3 "goal" ]')
    recursion, least = (back_up_steps(modules, nature, target, 3) for nature in (nested, products))
    for number in range(model.states):
        state = state_of(model, number)
        assert Fraction(here.lower[number]) <= recursion[state] <= Fraction(here.upper[number])
        assert Fraction(joint.lower[number]) <= recursion[state] <= least[state]
    for question, reward in (('Pmaxmin=? [ F "goal" ]', 0), ('Rmaxmin=? [ F "goal" ]', 1)):
        found = solved(model, question)[0]
        if not np.isfinite(found.upper).all():
            continue
        values = dict.fromkeys(modules.states, Fraction(0))
        values |= {state_of(model, i): Fraction(x) for i, x in enumerate(found.lower.tolist())}
        stepped = backup(modules, nested, values, True, False)
        for number in np.flatnonzero(~model.labels["goal"]).tolist():
            state = state_of(model, number)
            assert float(stepped[state] + reward) == pytest.approx(float(values[state]), rel=1e-9)


TEAM = """mdp
module a
  x : [0..2] init 0;
  [go] x=0 -> [0.1,0.4] : (x'=1) + [0.6,0.9] : true;
  [go] x>0 -> true;
  [rest] true -> [0.8,0.9] : (x'=0) + [0.1,0.2] : true;
endmodule
module b
  y : [0..1] init 0;
  [go] y=0 -> [0.2,0.5] : (y'=1) + [0.5,0.8] : true;
  [go] y=1 -> [0.05,0.3] : (y'=0) + [0.7,0.95] : true;
  [rest] true -> 0.5 : (y'=1) + 0.5 : (y'=0);
endmodule
module c
  z : [0..1] init 0;
  [go] z=0 -> 0.3 : (z'=1) + 0.7 : true;
  [go] z=1 -> [0.1,0.2] : (z'=0) + [0.8,0.9] : true;
endmodule
label "both" = x=1 & y=1;
label "low" = z=0;
rewards [go] true : 1; [rest] true : 3; endrewards
"""
QUESTIONS = [
    'Pmaxmin=? [ "low" U "both" ]',
    'Pmaxmax=? [ "low" U "both" ]',
    'Pminmax=? [ "low" W "both" ]',
    'Pmaxmin=? [ G !"both" ]',
    'Rminmax=? [ F "both" ]',
    'Rminmin=? [ F "both" ]',
    'Pmaxmin=? [ F<=4 "both" ]',
    'Pminmax=? [ X "low" ]',
    'Pmaxmin=? [ F[2,5] "both" ]',
    'Pmaxmin=? [ "low" U>=2 "both" ]',
    "Rminmax=? [ C<=5 ]",
]


@pytest.fixture(scope="module")
def team() -> IntervalMDP:
    return factored(TEAM)


@pytest.mark.parametrize("question", QUESTIONS)
def test_factors_are_never_worse_than_joint_bounds(team: IntervalMDP, question: str) -> None:
    here, joint = solved(team, question)
    assert here.is_certified and joint.is_certified
    helpful = here.objective.nature.value == "max"
    if here.objective.complement:
        helpful = not helpful
    for number in range(team.states):
        if helpful:
            assert here.lower[number] <= joint.upper[number] + CLOSE
        else:
            assert here.upper[number] >= joint.lower[number] - CLOSE


def test_discounts_are_those_of_steps(team: IntervalMDP) -> None:
    """Rewards of 1 per step and a discount of 0.9 are worth 10, however many factors a step has."""
    steps = factored(TEAM.replace("[rest] true : 3;", "[rest] true : 1;"))
    solution = solve(Problem(steps, "Rmaxmin=? [ C ]", discount=0.9), precision=1e-10)
    assert solution.is_factored and solution.lower[0] == pytest.approx(10) == solution.upper[0]
    half = np.full(team.choices, 0.5)
    half[np.repeat(np.diff(team.choice_start) == 1, np.diff(team.choice_start))] = 1.0
    mixed = solve(Problem(steps, "Rmaxmin=? [ C ]", discount=0.9), policy=half, precision=1e-10)
    assert mixed.is_factored and mixed.lower[0] == pytest.approx(10) == mixed.upper[0]


def test_policies_are_evaluated_over_factors(team: IntervalMDP) -> None:
    for question in (
        'Pmaxmin=? [ F<=4 "both" ]',
        'Rminmax=? [ F "both" ]',
        'Pmaxmin=? [ "low" U>=2 "both" ]',
    ):
        best, joint = solved(team, question)
        again = attained(best, best.policy)
        side = "lower" if best.objective.agent.value == "max" else "upper"
        assert getattr(again, side) == pytest.approx(float(getattr(best, side)[0]), rel=1e-9)
        assert abs(float(best.lower[0]) - float(joint.lower[0])) > 1e-4
    weights = np.repeat(1.0 / np.diff(team.choice_start), np.diff(team.choice_start))
    for question in (
        'Pmaxmin=? [ F<=4 "both" ]',
        'Pmaxmin=? [ "low" U "both" ]',
        'Pmaxmin=? [ "low" U>=2 "both" ]',
    ):
        mixed = solve(team, question, policy=weights, precision=1e-10)
        free = solve(team, question, precision=1e-10)
        assert mixed.is_factored and mixed.upper[0] <= free.upper[0] + CLOSE
        joint = solve(team.without_factors, question, policy=weights, precision=1e-10)
        assert mixed.lower[0] >= joint.lower[0] - CLOSE


def test_graph_analysis_sees_the_factors() -> None:
    """Nature cannot make two independent coins differ for ever; over joint bounds it can."""
    coins = """dtmc
module a x : [0..1]; [t] x=0 -> [0,1] : (x'=1) + [0,1] : (x'=0); [t] x=1 -> [0,1] : (x'=1) + [0,1] : (x'=0);
endmodule
module b y : [0..1]; [t] true -> 0.5 : (y'=1) + 0.5 : (y'=0); endmodule
module c t : [0..1]; [t] true -> (t'=1); endmodule
label "same" = x=y & t=1;"""
    here, joint = solved(factored(coins), 'Pmin=? [ F "same" ]')
    assert (here.lower[0], here.upper[0]) == (1.0, 1.0)
    assert (joint.lower[0], joint.upper[0]) == (0.0, 0.0)
    assert solved(factored(coins), 'Pmin=? [ X "same" ]')[0].lower[0] == pytest.approx(0.5)


def test_one_factor_with_freedom_is_exact() -> None:
    """Points come last, wherever they are written: nature cannot look at them."""
    for order in ("pq", "qp"):
        coin = {
            "p": "module p x : [0..1]; [t] true -> 0.3 : (x'=1) + 0.7 : (x'=0); endmodule",
            "q": "module q y : [0..1]; [t] true -> [0.2,0.6] : (y'=1) + [0.4,0.8] : (y'=0); endmodule",
        }
        model = factored("dtmc " + "\n".join(coin[name] for name in order) + '\nlabel "same" = x=y;')
        here, joint = solved(model, 'Pmax=? [ X "same" ]')
        assert here.upper[0] == pytest.approx(0.2 * 0.3 + 0.8 * 0.7)
        assert joint.upper[0] == pytest.approx(0.74)


def test_equal_parts_of_trees_are_kept_once() -> None:
    """Of n coins with one result each, a step passes through n − 1 states in the middle of it, not 2ⁿ."""
    module = "module m{0} x{0} : bool; [t] !done -> [0.3,0.6] : true + [0.4,0.7] : true; endmodule"
    idle = interval(
        "dtmc " + "\n".join(module.format(i) for i in range(4)) + "\nmodule d done : bool; "
        "[t] !done -> [0.1,0.3] : (done'=true) + [0.7,0.9] : true; endmodule"
    )
    rows = idle.factored
    assert rows is None or rows.structure.states == idle.states
    counted = (
        "module m{0} x{0} : bool; [t] true -> [0.3,0.6] : (x{0}'=true) + [0.4,0.7] : (x{0}'=false); endmodule"
    )
    model = factored("dtmc " + "\n".join(counted.format(i) for i in range(4)))
    assert model.factored is not None
    # The same tree for each of 16 states: 2 + 4 + 8 outcomes of the first one, two and three coins.
    assert model.factored.structure.states == 16 + 14
    assert [last - first for first, last in model.factored.layers] == [8, 4, 2]


def test_states_that_draw_among_commands_and_updates_that_never_happen() -> None:
    """A chain in which two commands of one module, and one that moves alone, are enabled: a third each."""
    text = """dtmc
module a x : [0..3]; [t] x=0 -> [0.2,0.5] : (x'=1) + [0.5,0.8] : (x'=2) + 0 : (x'=x+7);
 [t] x=0 -> [0.1,0.3] : (x'=1) + [0.7,0.9] : true; [t] x>0 -> true;
 [] x=0 -> [0.4,0.6] : (x'=3) + [0.4,0.6] : true;
endmodule
module b y : [0..1]; [t] y=0 -> [0.1,0.4] : (y'=1) + [0.6,0.9] : true; [t] y=1 -> true; endmodule
label "end" = (x=1 & y=1) | (x=2 & y=0) | x=3;"""
    model = factored(text)
    joint = np.split(model.successor, model.transition_start[1:-1])
    assert reached(model) == [set(row.tolist()) for row in joint]
    here, other = solved(model, 'Pmax=? [ X "end" ]')
    # x becomes 1 with p, then y with q; x becomes 2 with 1 - p, then y does not with 1 - q: q may differ.
    first = max(p * 0.4 + (1 - p) * 0.9 for p in (0.2, 0.5))
    second, third = 0.3 * 0.4, 0.6
    assert here.upper[0] == pytest.approx((first + second + third) / 3)
    assert other.upper[0] > here.upper[0] + 1e-3


def test_natures_answer_is_a_product_tree(team: IntervalMDP) -> None:
    solution = solve(team, 'Rminmax=? [ F "both" ]', precision=1e-10)
    found = solution.witness()
    assert np.add.reduceat(found, team.transition_start[:-1]) == pytest.approx(np.ones(team.choices))
    assert np.all(found >= team.lower - 1e-12) and np.all(found <= team.upper + 1e-12)
    ahead = np.add.reduceat(found * solution.upper[team.successor], team.transition_start[:-1])
    backed = ahead + np.where(
        np.array(team.structure.action_names)[team.structure.action_of_choice] == "go", 1, 3
    )
    goal = team.labels["both"]
    least = np.minimum.reduceat(backed, team.choice_start[:-1])
    assert least[~goal] == pytest.approx(solution.upper[~goal])


def test_models_keep_their_factors_and_know_themselves_without(team: IntervalMDP) -> None:
    again = pickle.loads(pickle.dumps(team))
    assert again == team and again.factored == team.factored
    assert team.without_factors != team and team.without_factors.hash() == team.hash()
    joint = team.without_factors
    assert joint.without_factors is joint
    assert interval(TEAM.split("module b")[0]).factored is None
    rows = team.factored
    assert rows is not None and "middle of a step" in repr(rows)
    with pytest.raises(InputError, match="layers before their own"):
        FactoredRows(rows.structure, rows.lower, rows.upper, rows.layer_start[[0, -1]])
    with pytest.raises(InputError, match="one choice each"):
        FactoredRows(rows.structure, rows.lower, rows.upper, np.array([1, rows.structure.states]))


def reached(model: IntervalMDP) -> list[set[int]]:
    """The states in which the tree of every choice ends."""
    rows = model.factored
    assert rows is not None
    game, ends = rows.structure, [{state} for state in range(rows.states)]

    def ends_of(choice: int) -> set[int]:
        begin, end = game.transition_start[[choice, choice + 1]]
        return set().union(*(ends[target] for target in game.successor[begin:end].tolist()))

    for choice in range(rows.choices, game.choices):
        ends.append(ends_of(choice))
    return [ends_of(choice) for choice in range(rows.choices)]


def test_trees_of_random_programs_end_where_their_choices_lead() -> None:
    """Overlapping commands, guards across modules, globals; every outcome ranges within its joint bounds."""
    checked = 0
    for seed in range(repeats(60)):
        text = ProgramWriter(seed, "interval").program()
        model = interval(text.replace("mdp", "dtmc", 1) if seed % 2 else text)  # a chain draws among commands
        if model.factored is None:
            continue
        joint = np.split(model.successor, model.transition_start[1:-1])
        assert reached(model) == [set(row.tolist()) for row in joint]
        kernel, checked = FactoredOperator.of(model), checked + 1
        for state in range(min(model.states, 6)):
            mark = (np.arange(model.states) == state).astype(np.float64)
            leads = model.successor == state
            for maximise in (False, True):
                found = kernel.answer(mark, maximise)[leads]
                assert np.all(found >= model.lower[leads] - 1e-12)
                assert np.all(found <= model.upper[leads] + 1e-12)
    assert checked >= repeats(8)


# --- what is proved, and what is said ----------------------------------------------------------


def test_certificates_are_about_factors_where_no_steps_are_counted(team: IntervalMDP, tmp_path: Path) -> None:
    for number, question in enumerate(QUESTIONS[:6]):
        file = tmp_path / f"{number}.cert"
        proved = certify(Problem(team, question), file)["value"]
        assert load(file).certificate.problem.graph.states > team.states  # those in the middle of a step
        verdict = verify(file, model=team, property=question, exact=number == 0)
        assert verdict.valid and verdict.not_tied == ()
        assert verdict.values["value"] == (proved.lower, proved.upper)
    fixed = solve(team, QUESTIONS[4]).policy
    certify(Problem(team, QUESTIONS[4]), tmp_path / "fixed.cert", policy=fixed)
    assert verify(tmp_path / "fixed.cert", model=team, policy=fixed).valid
    other = replace_intervals(TEAM)
    with pytest.raises(CannotCertify, match="another model"):
        verify(tmp_path / "0.cert", model=other)


def replace_intervals(text: str) -> IntervalMDP:
    return factored(text.replace("[0.2,0.5] : (y'=1) + [0.5,0.8]", "[0.2,0.6] : (y'=1) + [0.4,0.8]"))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "question",
    [
        'Pmaxmin=? [ F<=4 "both" ]',
        'Pmaxmin=? [ "low" U>=2 "both" ]',
        'Pmaxmax=? [ F[1,3] "both" ]',
        "Rminmax=? [ C<=5 ]",
    ],
)
def test_certificates_are_about_factors_where_steps_are_counted(
    team: IntervalMDP, tmp_path: Path, question: str
) -> None:
    best, file = solve(team, question, precision=1e-9), tmp_path / "steps.cert"
    proved = certify(Problem(team, question), file, precision=1e-9)["value"]
    problem = load(file).certificate.problem
    assert problem.passing is not None and not problem.passing[: team.states].any()
    assert problem.passing[team.states :].all() and problem.graph.states > team.states
    assert proved.lower <= best.lower[0] + 1e-8 and best.upper[0] - 1e-8 <= proved.upper
    assert proved.width <= 1e-8
    verdict = verify(file, model=team, property=question)
    assert verdict.valid and verdict.not_tied == () and verdict.assumes == ()
    assert verify(file, model=team).valid
    with pytest.raises(CannotCertify, match="another model"):
        verify(file, model=replace_intervals(TEAM))
    weights = np.repeat(1.0 / np.diff(team.choice_start), np.diff(team.choice_start))
    for policy in (best.policy, Policy(team, weights)):
        certify(Problem(team, question), tmp_path / "given.cert", policy=policy)
        assert verify(tmp_path / "given.cert", model=team, property=question, policy=policy).valid


def test_certificates_are_about_joint_bounds_where_draws_are_unknown(
    team: IntervalMDP, tmp_path: Path
) -> None:
    question = "Rmaxmin=? [ Cdiscount=0.9 ]"
    with pytest.warns(ReadingWarning, match="products of their bounds"):
        certify(Problem(team, question), tmp_path / "discounted.cert")
    assert load(tmp_path / "discounted.cert").certificate.problem.graph.states == team.states
    assert verify(tmp_path / "discounted.cert", model=team, property=question).valid
    with pytest.warns(ReadingWarning, match="products of their bounds"):
        certify(Problem(team, QUESTIONS[0]), tmp_path / "raised.cert", assume_support=1e-6)
    assert verify(tmp_path / "raised.cert", model=team, property=QUESTIONS[0]).valid
    question = 'Pmaxmin=? [ F<=4 "both" ]'  # one of the joint bounds is proved of this model, too
    certify(Problem(team.without_factors, question), tmp_path / "joint.cert")
    for model in (team, team.without_factors):
        assert verify(tmp_path / "joint.cert", model=model, property=question).valid


def run(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert end.value.code == 0, err.getvalue()
    return out.getvalue(), err.getvalue()


def test_check_says_which_sets_an_answer_is_about(tmp_path: Path) -> None:
    file = tmp_path / "team.prism"
    file.write_text(TEAM)
    out, err = run("check", str(file), "--prop", 'Pmaxmin=? [ F<=4 "both" ]', "--json")
    assert "notes" not in json.loads(out) and "use the factors" in err and JOINT_BOUNDS not in err
    narrow, proof = json.loads(out)["lower"], ("--certificate", str(tmp_path / "a.cert"))
    out, err = run("check", str(file), "--prop", 'Pmaxmin=? [ F<=4 "both" ]', "--json", *proof)
    assert "notes" not in json.loads(out) and JOINT_BOUNDS not in err
    assert json.loads(out)["lower"] == pytest.approx(narrow)
    asked, proof = "Rmaxmin=? [ Cdiscount=0.9 ]", ("--certificate", str(tmp_path / "b.cert"))
    out, err = run("check", str(file), "--prop", asked, "--json", *proof)
    assert json.loads(out)["notes"] == [JOINT_BOUNDS] and JOINT_BOUNDS in err
    out, _ = run("check", str(file), "--prop", 'Pmaxmin=? [ F "both" ]', "--assume-support", "1e-6")
    assert "products of their bounds" in " ".join(out.split())


def test_answers_say_which_sets_they_are_about(team: IntervalMDP) -> None:
    plain = solve(team, 'Pmaxmin=? [ F<=4 "both" ] + 0')
    assert plain.readings == () and plain.bounds is not None
    assert plain.bounds[0] == pytest.approx(float(solve(team, 'Pmaxmin=? [ F<=4 "both" ]').lower[0]))
    with pytest.warns(ReadingWarning):
        average = solve(team, "Rmaxmin=? [ S ]")
        several = solve(team, 'multi(Pmax>=0.1 [ F "both" ], Pmax>=0.1 [ F "low" ])')
        raised = solve(team, 'Pmaxmin>=0.1 [ F "both" ] & true', assume_support=1e-6)
    for one in (average, several, raised):
        assert JOINT_BOUNDS in one.readings


OBSERVER = """module observer
  seen : bool init false;
  [go] true -> (seen'=seen | x=1);
  [rest] true -> (seen'=seen | x=1);
endmodule
"""


def test_temporal_formulas_are_answered_factor_by_factor(team: IntervalMDP, tmp_path: Path) -> None:
    """As on a model that remembers by itself, and where the rest of a formula holds for ever, without it."""
    watched = factored(TEAM.replace("label", OBSERVER + "label", 1))
    low, gains = 'filter(min, {}, "init")', []
    for formula, simple, on in (
        ("F (x=1 & (F (y=0 & z=1)))", "F ((seen | x=1) & y=0 & z=1)", watched),
        ('(G F "both") & ("low" U "both")', '"low" U "both"', team),
    ):
        for sides in ("Pmaxmin", "Pmaxmax"):
            with pytest.warns(ReadingWarning, match="the path is read as"):
                found = solve(team, low.format(f"{sides}=? [ {formula} ]"))
                joint = solve(team.without_factors, f"{sides}=? [ {formula} ]")
            assert JOINT_BOUNDS not in found.readings
            assert found.bounds is not None and joint.bounds is not None
            same = solve(on, f"{sides}=? [ {simple} ]")
            assert found.bounds[0] == pytest.approx(float(same.lower[0]), rel=1e-5)
            gains.append((found.bounds[0] - joint.bounds[0]) * (1 if sides == "Pmaxmin" else -1))
    assert min(gains) > -1e-6 and max(gains) > 1e-3
    with pytest.warns(ReadingWarning):
        steered = solve(team, 'Pmaxmin=? [ (G F "both") & ("low" U "both") ]', controller=True)
        until = solve(team, "Rminmax=? [ F (x=1 & (X y=1)) ]")
        joint = solve(team.without_factors, "Rminmax=? [ F (x=1 & (X y=1)) ]")
    assert steered.attained is not None and steered.bounds is not None
    assert steered.attained[0] == pytest.approx(steered.bounds[0], rel=1e-5)
    assert until.bounds is not None and joint.bounds is not None
    assert until.bounds[1] < joint.bounds[0]
    with pytest.warns(ReadingWarning) as told:
        problem = Problem(team, 'Pmaxmin=? [ "low" U (x=1 & (X y=1)) ]')
        proved = certify(problem, tmp_path / "ltl.cert")["value"]
    assert JOINT_BOUNDS in [str(one.message) for one in told]
    assert verify(tmp_path / "ltl.cert", model=team).valid and 0 < proved.lower < 1


@pytest.mark.long
def test_the_benchmark_holds_on_small_instances(tmp_path: Path) -> None:
    """Points that Storm answers, all products, factors, joint bounds (also Storm's): each in the next."""
    finished = run_benchmark("factored_intervals.py", "--smoke", "--storm", "-o", tmp_path / "rows.json")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert [row["family"] for row in rows[::2]] == ["machines(3)", "herman(3)", "walkers(5)"]
    assert all(row["holds"] and row["ratio"] < 0.95 for row in rows)
    assert rows[0]["widths"]["factored"] == pytest.approx(rows[0]["widths"]["exact"], rel=1e-9)
