"""Certificates of controllers that see observations: both ends, tied to model, property and controller."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import tightrope as tr
from beliefs.test_pomdp import CAMERA, MAZE, random_pomdp
from tightrope.beliefs.question import question_of
from tightrope.beliefs.solve import solve_partial
from tightrope.certify.certificate_file import as_file
from tightrope.certify.comparison import compare, own_controller
from tightrope.certify.observed import certificate_of_controller, controller_certificate, repeated_graph
from tightrope.certify.verification import verify_file
from tightrope.cli.app import run
from tightrope.model.pomdp import controller_of
from tightrope_check.budget import STEPS, OverBudget, WorkBudget
from tightrope_check.checker import check
from tightrope_check.numbers import RATIONAL

GOAL = 'Rmin=? [ F "goal" ]'


def tied(pomdp, objective, controller, certificate):
    own = own_controller(pomdp, objective, (), None, controller, None, certificate)
    return compare(certificate, own)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("seed", "text", "rewards"),
    [
        (0, 'Pmax=? [ F "goal" ]', False),
        (1, 'Pmin=? [ F "goal" ]', False),
        (2, 'Pmax=? [ F<=5 "goal" ]', False),
        (3, 'Pmin=? [ G !"goal" ]', False),
        (4, "Rmax=? [ C<=4 ]", True),
        (5, "Rmin=? [ C<=4 ]", True),
    ],
)
def test_certificates_prove_both_ends_in_rationals(seed, text, rewards):
    pomdp = random_pomdp(seed, rewards)
    objective = tr.Problem(pomdp, text).objective
    solved = solve_partial(pomdp, objective, precision=1e-3, seconds=600, beliefs=200)
    proof = certificate_of_controller(solved.graph, solved.controller)
    verdict = check(proof, RATIONAL)
    assert verdict.valid, [one for one in verdict.checks if not one.passed]
    low, high = verdict.values["value"]
    assert low == pytest.approx(solved.lower, abs=1e-6) and high == pytest.approx(solved.upper, abs=1e-6)
    bound, trouble = tied(pomdp, objective, solved.controller, proof)
    assert trouble is None and bound == {"model": True, "property": True, "data": None, "policy": True}


def test_what_is_forged_is_refused(tmp_path):
    path = tmp_path / "maze.prism"
    path.write_text(MAZE)
    pomdp = tr.load(path)
    objective = tr.Problem(pomdp, GOAL).objective
    solved = solve_partial(pomdp, objective, seconds=600)
    proof = certificate_of_controller(solved.graph, solved.controller)
    assert check(proof).valid and check(proof).values["value"] == pytest.approx((4.3, 4.3), abs=1e-6)

    # A better value than the controller has, and a better lower bound than all controllers obey.
    for claim, name in ((replace(proof.claims[0], upper=4.2, lower=4.1), "value"),):
        assert not check(replace(proof, claims=(claim, proof.claims[1]))).valid, name
    # A model in which a belief leads to success more often proves more, and is not the user's.
    problem = proof.problem
    likelier = problem.probability.copy()
    start, row = problem.graph.transition_start, 5
    likelier[start[row] : start[row + 1]] = 1 / (start[row + 1] - start[row])
    row = next(c for c in range(problem.graph.choices) if start[c + 1] - start[c] > 1)
    likelier[start[row]] *= 0.5
    likelier[start[row] + 1] += likelier[start[row]]
    other = replace(proof, problem=replace(problem, probability=likelier))
    _, trouble = tied(pomdp, objective, solved.controller, other)
    assert "another model or another controller" in trouble
    # Rewards are a part of the property.
    cheaper = replace(problem.objective, reward=problem.objective.reward * 0.5)
    _, trouble = tied(
        pomdp, objective, solved.controller, replace(proof, problem=replace(problem, objective=cheaper))
    )
    assert "another property or another controller" in trouble
    # Another controller, with the same model and property.
    worse = tr.Controller(pomdp, np.zeros_like(solved.controller.following), solved.controller.action)
    try:
        _, trouble = tied(pomdp, objective, worse, proof)
    except tr.CannotCertify as error:
        trouble = str(error)
    assert "another controller" in trouble or "may miss the target" in trouble


def hidden_states():
    """Three states that look the same: there are infinitely many beliefs."""
    rows = [
        (s, name, {0: f"{3 + k}/97", 1: f"{41 - k}/97", 2: f"{53 - s}/97", 3: f"{s}/97"})
        for s in range(3)
        for k, name in enumerate("ab")
    ]
    model = tr.build_from_rows([*rows, (3, "a", {3: 1})], labels={"goal": [3]})
    return tr.POMDP(model, np.array([0, 0, 0, 1]), ("behind", "goal"))


def test_a_recipe_of_beliefs_is_charged_before_it_is_followed(tmp_path):
    """Beliefs with ever longer weights, and the same split again and again, from a few kilobytes."""
    pomdp = hidden_states()
    objective = tr.Problem(pomdp, 'Pmax=? [ F "goal" ]').objective
    question = question_of(pomdp, objective, ())
    recipe = " ".join(f"e{number}" for number in range(700))
    with pytest.raises(OverBudget, match="the beliefs of its recipe"), WorkBudget(0.001).counting():
        repeated_graph(question, recipe)
    with WorkBudget(1.0).counting() as enough:
        assert len(repeated_graph(question, recipe[:29])) > 10
    assert 0 < enough.steps < 0.001 * STEPS
    solved = solve_partial(pomdp, objective, seconds=600, beliefs=50)
    proof = certificate_of_controller(solved.graph, solved.controller)
    long = replace(proof, about={**proof.about, "beliefs": recipe})
    as_file(long).save(tmp_path / "long.cert")
    own = partial(own_controller, pomdp, objective, (), None, solved.controller, None)
    with pytest.raises(OverBudget, match="the beliefs of its recipe"):
        verify_file(tmp_path / "long.cert", WorkBudget(0.001), own=own)


def test_certificates_name_as_many_beliefs_as_there_are(tmp_path):
    """A text of a certificate has at most 4,096 characters: longer recipes were cut, and then refused."""
    pomdp = hidden_states()
    objective = tr.Problem(pomdp, 'Pmax=? [ F "goal" ]').objective
    solved = solve_partial(pomdp, objective, seconds=600, beliefs=50)
    graph = solved.graph
    while len(graph.recipe()) < 5000:
        graph.expand(next(n for n in range(len(graph)) if graph.kind[n] == "cut"))
    proof = certificate_of_controller(graph, solved.controller)
    as_file(proof).save(tmp_path / "long.cert")
    own = partial(own_controller, pomdp, objective, (), None, solved.controller, None)
    assert verify_file(tmp_path / "long.cert", WorkBudget(60), own=own).verdict.valid
    graph.history.extend(["k0"] * 60_000)
    with pytest.raises(tr.CannotCertify, match="more beliefs than a certificate names"):
        certificate_of_controller(graph, solved.controller)


def test_a_controller_that_may_miss_the_target_proves_nothing(tmp_path):
    path = tmp_path / "maze.prism"
    path.write_text(MAZE)
    pomdp = tr.load(path)
    solved = solve_partial(pomdp, tr.Problem(pomdp, GOAL).objective, seconds=600)
    idle = tr.Controller.memoryless(pomdp, [0] * pomdp.observations)
    with pytest.raises(tr.CannotCertify, match="may miss the target"):
        certificate_of_controller(solved.graph, idle)


def test_learned_controllers_are_certified_and_tied(tmp_path, capsys):
    parameters = tr.Parameters.box(e=("0.01", "0.4"))
    (e,) = parameters.symbols()
    rows = [(0, "go", {1: "1/2", 2: "1/2"}), (1, "look", {3: 1 - e, 4: e}), (2, "look", {5: 1 - e, 6: e})]
    rows += [(s, a, {(7 if (a == "l") == (s in (3, 4)) else 8): 1}) for s in (3, 4, 5, 6) for a in "lr"]
    rows += [(7, "", {7: 1}), (8, "", {8: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"won": [7]})
    pomdp = tr.POMDP(model, [0, 1, 1, 2, 3, 3, 2, 4, 5], ("begin", "door", "left", "right", "won", "lost"))
    problem = tr.Problem(pomdp, 'Pmax=? [ F "won" ]')
    right, wrong = ([[(0, "go", s), (s, "look", s + 2 + s - 1 + miss)] for s in (1, 2)] for miss in (0, 1))
    data = ([*right] * 9 + wrong) * 10
    result = tr.learn(problem, data, delta=0.01)
    path = tmp_path / "c.cert"
    proved = tr.certify(result, path)
    assert proved["robust policy"].lower == pytest.approx(result.guarantee, abs=1e-9)
    chosen = result.problem.lift.chosen
    verdict = tr.verify(
        path, model=pomdp, property='Pmax=? [ F "won" ]', data=data, policy=chosen, exact=True
    )
    assert verdict.word == "proved" and verdict.not_tied == ()
    other = {"left": "l", "right": "l"}
    with pytest.raises(tr.CannotCertify, match="another controller"):
        tr.verify(path, model=pomdp, property='Pmax=? [ F "won" ]', policy=other)
    with pytest.raises(tr.CannotCertify, match="other data"):
        tr.verify(path, model=pomdp, property='Pmax=? [ F "won" ]', data=data[1:], policy=chosen)
    with pytest.raises(tr.InputError, match="a model, a property and a controller"):
        tr.verify(path, model=pomdp)


def test_check_writes_a_certificate_that_verify_ties(tmp_path, capsys):
    path, out, proof = tmp_path / "maze.prism", tmp_path / "c.json", tmp_path / "maze.cert"
    path.write_text(MAZE)
    words = ["check", str(path), "--prop", GOAL, "--time-limit", "600"]
    assert run([*words, "--policy-out", str(out), "--certificate", str(proof)]) == 0
    about = ["verify", str(proof), "--model", str(path), "--prop", GOAL]
    assert run([*about, "--policy", str(out), "--exact"]) == 0
    assert "your model, property, policy" in capsys.readouterr().out
    assert run([*about[:-1], 'Rmax=? [ F "goal" ]', "--policy", str(out)]) == 1


BOUNDED = CAMERA.replace("const double err;", "").replace("1-err", "[0.8,0.95]").replace("err", "[0.05,0.2]")
AT, OVER = ("--at", "err=0.1"), ("--param", "err=0.05:0.2", "--sets", "coupled")


def write_camera(folder, text):
    """The model, and two controllers of it: one goes where the camera says, the other always left."""
    path = folder / "camera.prism"
    path.write_text(text)
    constant = {"params": {"err": ("0.05", "0.2")}} if "const" in text else {}
    pomdp = tr.load(path, **constant)
    for name, second in (("trusting", "right"), ("stubborn", "left")):
        acts = {"(step=2,seen=1)": "left", "(step=2,seen=2)": second}
        controller_of(pomdp, acts).save(folder / f"{name}.json")
    return path, folder / "trusting.json", folder / "stubborn.json"


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("text", "prop", "where", "low", "high"),
    [
        (CAMERA, "Pmax=?", AT, 0.9, 0.9),
        (CAMERA, "Pmax=?", OVER, 0.8, 0.95),
        (BOUNDED, "Pmaxmin=?", (), 0.8, 0.8),
        (BOUNDED, "Pmaxmax=?", (), 0.95, 0.95),
    ],
)
def test_certificates_of_given_controllers_are_tied(tmp_path, capsys, text, prop, where, low, high):
    path, trusting, stubborn = write_camera(tmp_path, text)
    proof, ask = tmp_path / "c.cert", ["--prop", f'{prop} [ F "through" ]']
    words = ["check", str(path), *ask, *where, "--certificate", str(proof)]
    assert run([*words, "--policy", str(trusting)]) == 0
    tie = ["verify", str(proof), "--exact", *(where if where != OVER else OVER[:2])]
    capsys.readouterr()
    assert run([*tie, "--model", str(path), *ask, "--policy", str(trusting), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["lower"], said["upper"]) == pytest.approx((low, high), abs=2e-3)
    assert said["lower"] <= low and high <= said["upper"] and "value" not in said["policies"]
    assert said["bound"] == {"model": True, "property": True, "data": None, "policy": True}
    # Another controller, model or property is refused, by name.
    assert run([*tie, "--model", str(path), *ask, "--policy", str(stubborn)]) == 1
    assert "another model or another controller" in capsys.readouterr().err
    assert (
        run([*tie, "--model", str(path), "--prop", f'{prop} [ G !"through" ]', "--policy", str(trusting)])
        == 1
    )
    assert "another property or another controller" in capsys.readouterr().err
    path.write_text(text.replace("0.5:(door'=1)", "0.25:(door'=1)").replace("0.5:", "0.75:"))
    assert run([*tie, "--model", str(path), *ask, "--policy", str(trusting)]) == 1
    assert "another model or another controller" in capsys.readouterr().err
    # A threshold is decided for the given controller, on both sides.
    path.write_text(text)
    for limit, answer in ((low - 0.1, "true"), (high + 0.04, "false")):
        decided = ["--prop", f'{prop.replace("=?", f">={limit}")} [ F "through" ]']
        run([*tie, "--model", str(path), *decided, "--policy", str(trusting), "--json"])
        assert json.loads(capsys.readouterr().out)["answer"] == answer


def test_certificates_at_a_point_are_tied_in_python(tmp_path):
    path, trusting, stubborn = write_camera(tmp_path, CAMERA)
    pomdp = tr.load(path, params={"err": ("0.05", "0.2")})
    prop, proof, at = 'Pmax=? [ F "through" ]', tmp_path / "c.cert", {"err": "0.1"}
    problem = tr.Problem(pomdp, prop)
    for given, claims in ((trusting, {"given policy"}), (None, {"value", "given policy"})):
        proved = tr.certify(problem, proof, at=at, policy=given, overwrite=True)
        assert set(proved) == claims and tuple(proved["given policy"]) == pytest.approx((0.9, 0.9), abs=1e-6)
        verdict = tr.verify(proof, model=pomdp, property=prop, at=at, policy=trusting, exact=True)
        assert verdict.word == "proved" and verdict.not_tied == ()
        for wrong in ({"at": {"err": "0.2"}, "policy": trusting}, {"at": at, "policy": stubborn}):
            with pytest.raises(tr.CannotCertify, match="another model or another controller"):
                tr.verify(proof, model=pomdp, property=prop, **wrong)


def test_what_is_forged_about_a_given_controller_is_refused(tmp_path):
    path, trusting, _ = write_camera(tmp_path, BOUNDED)
    pomdp = tr.load(path)
    problem, trusted = tr.Problem(pomdp, 'Pmaxmin=? [ F "through" ]'), controller_of(pomdp, trusting)
    solved = tr.solve(problem, policy=trusted)
    proof, _ = controller_certificate(problem, solved, (), 1e-6, trusted)
    (claim,) = proof.claims
    assert check(proof, RATIONAL).values == {"given policy": pytest.approx((0.8, 0.8), abs=1e-6)}
    for better in ({"lower": 0.85, "upper": 0.95}, {"lower": 0.7, "upper": 0.75}):
        assert not check(replace(proof, claims=(replace(claim, **better),))).valid
    # Sets that are narrower than the user's prove more, and are not the user's.
    narrow = replace(proof, problem=replace(proof.problem, lower=np.maximum(proof.problem.lower, 0.15)))
    assert "another model or another controller" in tied(pomdp, problem.objective, trusted, narrow)[1]
    # The same number as one about all controllers.
    free = replace(proof, claims=(replace(claim, name="value", policy="free", choice=None),))
    with pytest.raises(tr.CannotCertify, match="claims the value of the best one"):
        tied(pomdp, problem.objective, trusted, free)
    over = replace(proof.problem, lower=None, upper=None, expression=np.zeros(1), polynomial=())
    for about in ({}, {"beliefs": "0"}):  # over a domain there are no beliefs, whatever it says
        with pytest.raises(tr.CannotCertify, match="claims the value of the best one"):
            tied(pomdp, problem.objective, trusted, replace(free, problem=over, about=about))
    # Beliefs have no intervals.
    with pytest.raises(tr.CannotCertify, match="one without intervals"):
        tied(pomdp, problem.objective, trusted, replace(proof, about={"beliefs": "0"}))


@pytest.mark.parametrize(("text", "prop", "where"), [(BOUNDED, "Pmaxmin=?", ()), (CAMERA, "Pmax=?", OVER)])
def test_the_guarantee_of_the_chosen_controller_is_certified(tmp_path, capsys, text, prop, where):
    path, _, stubborn = write_camera(tmp_path, text)
    proof, out = tmp_path / "c.cert", tmp_path / "chosen.json"
    ask = ["--prop", f'{prop} [ F "through" ]']
    assert run(["check", str(path), *ask, *where, "--certificate", str(proof), "--policy-out", str(out)]) == 0
    tie = ["verify", str(proof), "--model", str(path), *ask, *where[:2]]
    capsys.readouterr()
    assert run([*tie, "--policy", str(out)]) == 0
    assert capsys.readouterr().out.startswith("VALID: probability >= 0.79")
    assert run([*tie, "--policy", str(stubborn)]) == 1
