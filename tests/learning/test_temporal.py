"""Temporal formulas learned about: intervals hold the truth, controllers attain what is promised of them.

Also of `learning/products.py`.
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
from tightrope.learning.learn import TemporalFormulas
from tightrope.logic.product_problem import steer
from tightrope.model.graph.support import Support
from tightrope.model.product import lift_model, product_with_memory
from tightrope.prism.load import load_prism_text

FORMULAS = [
    '(G F "a") & (G F "b")',
    '(F G "a") | (G F "b")',
    '(G F "a") => (G F "b")',
    'F ("a" & (X (F "b")))',
    '(F "a") & (G !"c")',
    'G ("a" => (F "b"))',
    '(F ("b" & (X "c"))) & (G F "a")',
]


def temporal(model: tr.ParametricMDP, asked: str) -> tr.Problem:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        return TemporalFormulas().apply(tr.Problem(model, asked))


def bounds_of(model: Any, asked: str) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        found = tr.solve(model, asked).bounds
    assert found is not None
    return found


def random_model(rng: random.Random, states: int = 8) -> tr.ParametricMDP:
    parameters = tr.Parameters.box(p=("1/10", "9/10"), q=("1/10", "9/10"))
    p, q = parameters.symbols()
    rows: list[Any] = []
    for s in range(states):
        if s >= states - 3:  # plays may get stuck
            rows.append((s, "c0", {s: 1} if s < states - 1 else {s - 3: "1/2", s: "1/2"}))
            continue
        for c in range(rng.randint(1, 2)):
            one, other = rng.sample(range(states), 2)
            shape = rng.choice([p, q, p * q, "1/3"])
            rows.append((s, f"c{c}", {one: shape, other: "2/3" if shape == "1/3" else 1 - shape}))
    labels = {name: rng.sample(range(states), 3) for name in "abc"}
    model = tr.build_from_rows(rows, parameters, labels=labels)
    assert isinstance(model, tr.ParametricMDP)
    return model


def value_under(model: tr.MDP, controller: tr.Policy, asked: str) -> tuple[float, float]:
    """Of the chain that a controller leaves of an MDP, by the evaluation of formulas."""
    product, policy = product_with_memory(model, controller, Support.of(model))
    beside = lift_model(model, product)
    rows = []
    for s, c in enumerate(policy.choice):
        span = range(*beside.transition_start[c : c + 2])
        rows.append((s, "", {int(beside.successor[t]): float(beside.probability[t]) for t in span}))
    labels = {name: np.flatnonzero(members).tolist() for name, members in beside.labels.items()}
    chain = tr.build_from_rows(rows, labels=labels)
    return bounds_of(chain.instantiate(), asked.replace("Pmax", "P").replace("Pmin", "P"))


@pytest.mark.usefixtures("in_python")
def test_intervals_hold_the_true_value_and_controllers_attain_it() -> None:
    rng = random.Random(4)
    strict = 0
    for number in range(7):
        model = random_model(rng)
        direction = "max" if number % 3 else "min"
        path = FORMULAS[number % len(FORMULAS)]
        asked = f"P{direction}=? [ {path} ]"
        truth = model.instantiate(p=Fraction(rng.randint(2, 8), 10), q=Fraction(rng.randint(2, 8), 10))
        data = tr.Simulator(truth, model_hash=model.hash()).generative(400, seed=number)
        problem = temporal(model, asked)
        best = bounds_of(truth, asked)
        result = tr.learn(problem, data, delta=1e-6, sets="tied")
        controller = result.controller
        attained = value_under(truth, controller, asked)
        assert result.interval.lower - 1e-6 <= attained[1] and attained[0] <= result.interval.upper + 1e-6
        if direction == "max":
            assert result.guarantee <= best[1] <= result.optimistic_value + 1e-6
        else:
            assert result.guarantee >= best[0] >= result.optimistic_value - 1e-6
        assert result.optimistic_value == pytest.approx(best[0], abs=0.5)
        strict += 0 < result.guarantee < 1
        # at the truth itself the controller of the best policy attains the optimum
        at_truth = tr.solve(problem.at(p=Fraction(1, 2), q=Fraction(1, 2)))
        exact = model.instantiate(p=Fraction(1, 2), q=Fraction(1, 2))
        optimum, reached = (
            bounds_of(exact, asked),
            value_under(exact, problem.controller(at_truth.policy), asked),
        )
        assert reached == pytest.approx(optimum, abs=1e-5), (number, asked)
    assert strict >= 1


def test_counts_are_lifted_once_each_and_ties_stay() -> None:
    model = random_model(random.Random(9))
    truth = model.instantiate(p=0.5, q=0.5)
    counts = tr.Simulator(truth, model_hash=model.hash()).episodes(50, seed=2)
    problem = temporal(model, 'Pmax=? [ (G F "a") & (G F "b") ]')
    assert problem.model.states > model.states
    up = problem.to_product(counts)
    assert up.steps == counts.steps
    assert up.batches is not None and counts.batches is not None and len(up.batches) == len(counts.batches)
    for e in range(len(model.expressions)):
        assert (
            up.transition[problem.model.expression == e].sum()
            == counts.transition[model.expression == e].sum()
        )


@pytest.fixture(scope="module")
def shuttle() -> tr.ParametricMDP:
    """A robot that shuttles between a and b over a slippery way past a hole."""
    parameters = tr.Parameters.box(p=("1/10", "9/10"))
    (p,) = parameters.symbols()
    rows = [
        (0, "left", {1: 1}),
        (0, "right", {2: p, 3: 1 - p}),
        (1, "back", {0: 1}),
        (2, "back", {0: 1}),
        (2, "jump", {4: "1/2", 2: "1/2"}),
        (3, "retry", {0: "1/2", 5: "1/2"}),
        (4, "", {4: 1}),
        (5, "", {5: 1}),
    ]
    model = tr.build_from_rows(rows, parameters, labels={"a": [1], "b": [2], "home": [4], "hole": [5]})
    assert isinstance(model, tr.ParametricMDP)
    return model


def test_given_policies_have_the_value_of_what_they_do_not_what_could_be_done(
    shuttle: tr.ParametricMDP,
) -> None:
    asked = 'Pmax=? [ (F "a") & (F (G "home")) ]'
    problem = temporal(shuttle, asked)
    data = tr.Simulator(shuttle.instantiate(p=0.5), model_hash=shuttle.hash()).generative(2000, seed=1)
    lazy = tr.learn(problem, data, delta=0.01, sets="tied", policy={0: "left", 2: "back"})
    assert lazy.value is not None and tuple(lazy.value.interval) == (0.0, 0.0)
    hasty = tr.learn(problem, data, delta=0.01, sets="tied", policy={0: "right", 2: "jump"})
    assert hasty.value is not None and tuple(hasty.value.interval) == (0.0, 0.0)  # it never sees a
    again = tr.learn(problem, data, delta=0.01, sets="tied", policy=lazy.controller)
    assert again.value is not None
    assert again.value.interval.lower == pytest.approx(lazy.guarantee, abs=1e-5)
    assert 2 / 3 in again.value.interval
    loop = tr.learn(
        temporal(shuttle, 'Pmax=? [ (G F "a") & (G !"hole") ]'), data, delta=0.01, policy=lazy.controller
    )
    assert loop.value is not None and tuple(loop.interval) == (1.0, 1.0)
    assert loop.value.interval.upper == 0.0  # that controller goes home, and sees a once


def test_plain_questions_about_a_controller(shuttle: tr.ParametricMDP) -> None:
    data = tr.Simulator(shuttle.instantiate(p=0.5), model_hash=shuttle.hash()).generative(2000, seed=1)
    first_left = tr.learn(
        temporal(shuttle, 'Pmax=? [ (F "a") & (F (G "home")) ]'), data, delta=0.01, sets="tied"
    )
    plain = tr.learn(
        shuttle.problem('Pmax=? [ F "home" ]'), data, delta=0.01, policy=first_left.controller, sets="tied"
    )
    assert plain.value is not None
    assert tuple(plain.value.interval) == pytest.approx(tuple(first_left.interval), abs=1e-5)


def test_every_row_is_tested_against_the_model_itself() -> None:
    """A coin that repeats its last side: frequencies fit, the order does not."""
    parameters = tr.Parameters.box(p=("1/10", "9/10"))
    (p,) = parameters.symbols()
    model = tr.build_from_rows(
        [(state, "toss", {1: p, 2: 1 - p}) for state in range(3)],
        parameters,
        labels={"heads": [1], "tails": [2]},
    )
    rng = random.Random(1)

    def toss(repeats: float) -> list[tuple[int, str, int]]:
        steps, state = [], 0
        for _ in range(40):
            after = state if state and rng.random() < repeats else rng.choice((1, 2))
            steps.append((state, "toss", after))
            state = after
        return steps

    problem = temporal(model, 'P=? [ (F<=2 "heads") & (F<=3 "tails") ]')
    for repeats, word in ((0.0, "proved"), (0.5, "contradicted")):
        result = tr.learn(problem, [toss(repeats) for _ in range(50)], delta=0.05)
        assert isinstance(result, tr.LearningResult) and result.problem.lift is not None
        assert result.fit.rows_tested == result.fit.events == 2000
        assert result.verdict.word.value == word


def test_support_that_is_not_shown_is_no_guarantee() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "", {1: p, 0: 1 - p}), (1, "", {0: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"a": [1]})
    assert isinstance(model, tr.ParametricMDP)
    problem = temporal(model, 'Pmax=? [ G F "a" ]')
    with pytest.raises(tr.CannotCertify, match="neither the domain nor the data show that the probability"):
        tr.learn(problem, [[(0, "", 0)]] * 5, delta=0.01, sets="tied")
    seen = tr.learn(problem, [[(0, "", 0)]] * 50 + [[(0, "", 1)]] * 50, delta=0.01, sets="tied")
    assert seen.guarantee == 1.0
    assumed = tr.learn(problem, [[(0, "", 0)]] * 5, delta=0.01, sets="tied", assume_support=0.01)
    assert assumed.guarantee == 1.0 and any("assumed" in note for note in assumed.notes)


def test_what_does_not_go_with_temporal_formulas_is_said(shuttle: tr.ParametricMDP, tmp_path: Path) -> None:
    problem = temporal(shuttle, 'Pmax=? [ (F "a") & (F (G "home")) ]')
    data = tr.Simulator(shuttle.instantiate(p=0.5), model_hash=shuttle.hash()).generative(50, seed=1)
    with pytest.raises(tr.InputError, match="untied sets cannot be used with temporal formulas"):
        tr.learn(problem, data, sets="untied")
    given = tr.learn(problem, data, sets="tied", policy={0: "left", 2: "back"})
    proved = tr.certify(given, tmp_path / "a.cert")["given policy"]
    assert given.value is not None and proved.lower == pytest.approx(given.value.interval.lower, abs=1e-6)
    assert "robust policy" in tr.certify(tr.solve(problem), tmp_path / "b.cert")
    with pytest.raises(tr.InputError, match="untied sets cannot be used with temporal formulas"):
        tr.online(problem, sets="untied")
    assert tr.plan(problem, data, gap=1.0).status.value == "reached already"
    anything = tr.Parameters.box(p=(0, 1))
    (p,) = anything.symbols()
    vague = tr.build_from_rows([(0, "", {0: 1 - p, 1: p}), (1, "", {0: 1})], anything, labels={"a": [1]})
    assert isinstance(vague, tr.ParametricMDP)
    for learn in (tr.online, tr.solve):
        with pytest.raises(tr.InputError, match="the domain does not show that the probability"):
            learn(temporal(vague, 'Pmax=? [ G (F "a") ]'))
    with pytest.raises(tr.InputError, match="the robust policy has no memory"):
        _ = tr.learn(shuttle.problem('Pmax=? [ F "home" ]'), data, sets="tied").controller


def test_online_learns_about_the_product(shuttle: tr.ParametricMDP) -> None:
    """What the last update says is what `learn` says about the same episodes of the model."""
    problem = temporal(shuttle, 'Pmax=? [ (F "a") & (F ("b" & (X (F "home")))) & (G !"hole") ]')
    learner = tr.online(problem, delta=0.01, sets="tied")
    controller = problem.controller(learner.policy())
    assert controller.act(0, memory=0) == "left"  # first to a
    there, back, missed = (0, "right", 2), [(0, "left", 1), (1, "back", 0)], (0, "right", 3)
    episodes = [[*back, there, (2, "jump", 4)]] * 12 + [[*back, missed, (3, "retry", 5)]] * 4
    for episode in episodes:
        learner.observe(episode)
    update, result = learner.update(), learner.result()
    again = tr.learn(problem, episodes, delta=0.01, sets="tied", interval="beta-binomial")
    assert update.guarantee == pytest.approx(result.guarantee, abs=1e-9)
    assert result.guarantee == pytest.approx(again.guarantee, abs=1e-6)
    assert 0 < update.guarantee < 0.75 < update.optimistic
    assert result.counts is not None and result.counts.steps == 16 * 4
    begun = tr.online(problem, delta=0.01, sets="tied", data=tr.read_data(episodes, shuttle).counts)
    assert begun.update().guarantee == pytest.approx(update.guarantee, abs=1e-9)


def test_bounds_over_a_domain_hold_at_its_points(shuttle: tr.ParametricMDP) -> None:
    asked = 'Pmax=? [ (F "a") & (F ("b" & (X (F "home")))) ]'
    problem = temporal(shuttle, asked)
    for sets in ("expression", "coupled"):
        found = tr.solve(problem, sets=sets)
        values = [bounds_of(shuttle.instantiate(p=p), asked)[1] for p in (0.1, 0.9)]
        assert found.interval.lower <= values[0] + 1e-6 and found.interval.upper >= values[0] - 1e-6
        assert found.interval.lower == pytest.approx(values[0], abs=1e-4)  # the least p is the worst


def test_the_command_line_looks_at_domains_and_goes_online(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, policy = tmp_path / "m.prism", tmp_path / "policy.json"
    file.write_text(
        "mdp const double p; module m s:[0..2]; [a] s=0 -> p:(s'=1) + 1-p:(s'=2); [b] s=1 -> (s'=0);"
        " [c] s=2 -> (s'=2); endmodule"
    )
    asked = ["--prop", "Pmax=? [ F (s=1 & (X (F s=2))) ]", "--domain", "0.3<=p<=0.6"]
    words = ["check", str(file), *asked, "--sets", "expression", "--policy-out", str(policy), "--json"]
    assert run(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lower"] == pytest.approx(0.3, abs=1e-5) and found["upper"] == pytest.approx(0.6, abs=1e-5)
    assert json.loads(policy.read_text())["format"] == "tightrope controller"
    assert run(["check", str(file), *asked, "--sets", "coupled", "--certificate", str(tmp_path / "c")]) == 0
    assert run(["verify", str(tmp_path / "c"), "--model", str(file), *asked]) == 0
    assert "VALID: probability >= 0.29999" in capsys.readouterr().out
    assert run(["online", str(file), *asked, "--at", "p=0.5", "--episodes", "20", "--json"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["episode"] == 20 and last["guarantee"] <= last["performance"] == pytest.approx(0.5, abs=1e-6)
    assert run(["online", str(file), *asked, "--episodes", "2", "--env", "x:y"]) == 2
    assert "--env cannot be used with temporal formulas" in capsys.readouterr().err


def test_simulated_controllers_do_what_they_say(shuttle: tr.ParametricMDP) -> None:
    problem = temporal(shuttle, 'Pmax=? [ (F "a") & (F (G "home")) ]')
    truth = shuttle.instantiate(p=0.5)
    controller = problem.controller(tr.solve(problem.at(p=0.5)).policy)
    counts = tr.Simulator(truth, controller, cap=100).episodes(3000, seed=5)
    assert counts.visits[0] == 3000  # left once in every episode, first
    arrived = counts.transition[shuttle.successor == 4][0]
    assert abs(arrived / 3000 - 2 / 3) < 0.05
    blocks = list(tr.Simulator(truth, controller, cap=100).trajectories(20, seed=5))
    first = blocks[0].transition[blocks[0].step == 0]
    assert (first == 0).all() and len(first) == 20
    with pytest.raises(tr.InputError, match="a finite-memory policy requires episodes"):
        tr.Simulator(truth, controller).generative(3, seed=5)


def test_controllers_survive_their_files(shuttle: tr.ParametricMDP, tmp_path: Path) -> None:
    problem = temporal(shuttle, 'Pmax=? [ (F "a") & (F (G "home")) ]')
    controller = problem.controller(tr.solve(problem.at(p=0.5)).policy)
    controller.save(tmp_path / "c.json")
    assert tr.Policy(shuttle.structure, tmp_path / "c.json") == controller
    controller.save(tmp_path / "c.dot")
    assert "\ndigraph controller {\n" in (tmp_path / "c.dot").read_text()
    document = json.loads((tmp_path / "c.json").read_text())
    for spoil, message in (
        (lambda d: d["controller"].pop(0), "no row for the initial state|moves to a memory that has no row"),
        (lambda d: d["controller"][0].__setitem__(2, "up"), "not 'up'"),
        (lambda d: d["controller"][0].__setitem__(1, -1), "not a memory's number"),
        (lambda d: d["controller"].append(d["controller"][0]), "two rows for one state and memory"),
        (lambda d: d.update(version=9), "version 9 of the format"),
    ):
        bad = json.loads(json.dumps(document))
        spoil(bad)
        (tmp_path / "bad.json").write_text(json.dumps(bad))
        with pytest.raises(tr.InputError, match=message):
            tr.Policy(shuttle.structure, tmp_path / "bad.json")


@pytest.mark.costly("test_intervals_hold_the_true_value_and_controllers_attain_it")
@pytest.mark.usefixtures("empty_pictures")
def test_the_command_line_learns_samples_and_evaluates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ran(*arguments: str, code: int = 0) -> str:
        assert run(list(arguments)) == code, capsys.readouterr().err
        return capsys.readouterr().out

    source = tmp_path / "m.prism"
    source.write_text(
        """mdp
        const double p;
        module m
          s : [0..5];
          [left] s=0 -> (s'=1);
          [right] s=0 -> p: (s'=2) + 1-p: (s'=3);
          [back] s=1 | s=2 -> (s'=0);
          [jump] s=2 -> 0.5: (s'=4) + 0.5: (s'=2);
          [retry] s=3 -> 0.5: (s'=0) + 0.5: (s'=5);
          [] s>=4 -> true;
        endmodule
        label "a" = s=1; label "home" = s=4;
        """
    )
    asked = 'Pmax=? [ (F "a") & (F (G "home")) ]'
    common = [str(source), "--domain", "0.1<=p<=0.9"]
    data, out = tmp_path / "d.parquet", tmp_path / "out"
    ran("sample", *common, "--at", "p=0.5", "--episodes", "500", "--cap", "30", "-o", str(data))
    learn = ["learn", *common, "--prop", asked, "--data", str(data), "--delta", "0.01"]
    guarantee = json.loads(ran(*learn, "-o", str(out), "--json"))["robust_policy"]["lower"]
    assert 0.4 < guarantee <= 2 / 3
    file = out / "robust-controller.json"
    assert json.loads(file.read_text())["certified"]["lower"] == pytest.approx(guarantee, abs=1e-6)
    assert (out / "robust-controller.dot").is_file() and (out / "optimistic-controller.json").is_file()
    value = json.loads(ran(*learn, "--policy", str(file), "--json"))["value"]
    assert value["lower"] == pytest.approx(guarantee, abs=1e-5)
    best = json.loads(ran(*learn, "--policy", "optimal-at-truth", "--at", "p=0.5", "--json"))["true_value"]
    assert best["lower"] == pytest.approx(2 / 3, abs=1e-5)
    more = tmp_path / "more.parquet"
    ran("sample", *common, "--at", "p=0.5", "--episodes", "9", "--policy", str(file), "-o", str(more))
    proof = tmp_path / "c.cert"
    assert run([*learn, "--certificate", str(proof), "--json"]) == 0
    captured = capsys.readouterr()  # what is not covered is said beforehand
    said = json.loads(captured.out)["certificate"]
    assert said["policies"]["robust policy"]["lower"] == pytest.approx(guarantee, abs=1e-5)
    assert len(said["not_covered"]) == 1 and f"warning: {said['not_covered'][0]}" in captured.err
    unbound = ["verify", str(proof), "--model", *common, "--policy", str(file)]
    assert run(unbound) in (1, 2) and "memory" in capsys.readouterr().err
    tied = ["--model", *common, "--prop", asked, "--data", str(data), "--json"]
    verified = json.loads(ran("verify", str(proof), *tied))
    assert verified["valid"] and verified["bound"]["data"] is verified["bound"]["property"] is True
    assert run([*learn, "--policy", str(file), "--certificate", str(tmp_path / "d.cert")]) == 2
    assert "--policy has a memory" in capsys.readouterr().err
    ran("report", str(out), "--certificate", str(proof))


def test_certificates_are_about_the_models_own_data(shuttle: tr.ParametricMDP, tmp_path: Path) -> None:
    truth = shuttle.instantiate(p=0.5)
    data = tr.Simulator(truth, model_hash=shuttle.hash()).episodes(300, seed=1)
    asked = 'Pmax=? [ (G (F "a")) & (G (F "b")) ]'
    problem = temporal(shuttle, asked)
    assert problem.to_base(problem.to_product(data)) == data
    for region, sets in (("likelihood", "rectangular"), ("polytope", "coupled"), ("ellipsoid", "expression")):
        result = tr.learn(problem, data, delta=0.01, region=region, sets=sets)
        (found,) = tr.certify(result, tmp_path / "c.cert", overwrite=True).values()
        assert found.lower == pytest.approx(result.guarantee, abs=1e-4)
        for exact in (False, True):
            verdict = tr.verify(tmp_path / "c.cert", model=shuttle, property=asked, data=data, exact=exact)
            assert verdict.valid and verdict.not_tied == ("policy",), verdict
    parameters = tr.Parameters.box(p=("1/10", "9/10"), q=("1/10", "9/10"))
    p, q = parameters.symbols()
    rows: list[Any] = [(0, "", {2: q, 1: 1 - q}), (1, "", {1: 1}), (2, "", {2: 1})]
    rows += [(3, "", {0: p, 2: 1 - p})]  # no play gets there, and its event shares the confidence
    lonely = tr.build_from_rows(rows, parameters, labels={"a": [1]})
    assert isinstance(lonely, tr.ParametricMDP)
    seen = tr.Simulator(lonely.instantiate(p=0.5, q=0.5), model_hash=lonely.hash()).generative(50, seed=1)
    apart = tr.learn(temporal(lonely, 'Pmax=? [ G (F "a") ]'), seen, delta=0.01, sets="tied")
    with pytest.raises(tr.CannotCertify, match="no certificate is written"):
        tr.certify(apart, tmp_path / "d.cert")
    other = tr.Simulator(truth, model_hash=shuttle.hash()).episodes(300, seed=2)
    with pytest.raises(tr.CannotCertify, match="about other data"):
        tr.verify(tmp_path / "c.cert", model=shuttle, data=other)


def test_steered_problems_keep_constants_of_the_property(shuttle: tr.ParametricMDP) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        asked_for = tr.Problem(shuttle, 'const int k; Pmax=? [ (F<=k "a") & (F "home") ]', const={"k": 3})
        problem = TemporalFormulas().apply(asked_for)
    counts = tr.Simulator(shuttle.instantiate(p=0.5), model_hash=shuttle.hash()).generative(50, seed=1)
    asked, policy, up = steer(problem, tr.Policy(shuttle, {0: "left", 2: "back"}), counts)
    assert policy.structure is asked.model.structure and up.steps == counts.steps


def test_check_writes_the_controller_of_a_temporal_formula(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "m.prism", tmp_path / "c.json"
    source.write_text(
        "mdp module m s:[0..3]; [l] s=0 -> 0.5:(s'=1) + 0.5:(s'=3); [r] s=0 -> 0.75:(s'=2) + 0.25:(s'=0);"
        "[b] s=1|s=2 -> (s'=0); [] s=3 -> true; endmodule"
    )
    asked = ["check", str(source), "--prop", "Pmax=? [ (F s=1) & (G F s=2) ]", "--policy-out", str(out)]
    assert run(asked) == 0
    written = json.loads(out.read_text())
    assert written["certified"]["lower"] == pytest.approx(0.5, abs=1e-5)
    model = tr.load(str(source))
    assert isinstance(model, tr.ParametricMDP)
    controller = tr.Policy(model.structure, out)
    mdp = model.instantiate()
    product, policy = product_with_memory(mdp, controller, Support.of(mdp))
    assert tr.solve(lift_model(mdp, product), "Pmax=? [ F s=1 ]", policy=policy).lower[0] == pytest.approx(
        0.5, abs=1e-5
    )
    assert run([*asked, "--overwrite"]) == 0 and run(asked) == 0  # a controller of ours may be replaced
    interval = tmp_path / "i.prism"
    interval.write_text(
        source.read_text().replace("0.5:(s'=1) + 0.5:(s'=3)", "[0.4,0.6]:(s'=1) + [0.4,0.6]:(s'=3)")
    )
    asked = ["check", str(interval), "--prop", "Pmaxmin=? [ (F s=1) & (G F s=2) ]", "--policy-out", str(out)]
    assert run(asked) == 0
    assert json.loads(out.read_text())["certified"]["lower"] == pytest.approx(0.4, abs=1e-5)
    assert run([*asked[:-1], str(tmp_path / "n.json"), "--prop", "A [ F s=1 ]"]) == 2
    capsys.readouterr()


def test_rewards_with_parameters_are_lifted_with_the_model() -> None:
    moves = "[a] x=0 -> c:(x'=1) + 1-c:(x'=0); [b] x=1 -> (x'=0);"
    text = f"mdp const double c; module m x:[0..1]; {moves} endmodule"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = load_prism_text(f"{text} rewards [a] true : 3*c; endrewards")
    assert isinstance(model, tr.ParametricMDP)
    problem = temporal(model, "Pmax=? [ (G F x=1) & (F X x=0) ]")
    priced = problem.model.instantiate(c=0.5).rewards[""]
    cost = priced.per_choice(problem.model.structure)
    assert set(cost.tolist()) == {0.0, 1.5} and problem.model.states > model.states
