"""What is true of the problem in a file is not said of the user's problem where it does not follow."""

from __future__ import annotations

import json
import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from adversary.honest import MACHINES, quietly
from adversary.judge import verify
from tightrope.beliefs.graph import BeliefGraph
from tightrope.beliefs.question import question_of
from tightrope.certify.certificate_file import as_file
from tightrope.certify.comparison import FOLLOWS, Relation
from tightrope.certify.observed import beside_beliefs
from tightrope.certify.problem import ASKED, compare_problems, to_problem
from tightrope.certify.solved import to_certificate
from tightrope.data.writing import write_log
from tightrope.prism.load import load_prism_text
from tightrope.provenance import NAMED, Provenance
from tightrope.solver.solve import solve
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.problem import CertifiedProblem
from tightrope_check.report import headline

GUESS = """pomdp
observables o endobservables
module coin
  s : [0..6]; o : [0..4];
  [toss] s=0 -> 1/2:(s'=1)&(o'=1) + 1/2:(s'=2)&(o'=1);
  [wait] s=1 | s=2 -> (s'=s+2)&(o'=2);
  [heads] s=3 -> (s'=5)&(o'=3);
  [heads] s=4 -> (s'=6)&(o'=4);
  [tails] s=3 -> (s'=6)&(o'=4);
  [tails] s=4 -> (s'=5)&(o'=3);
  [] s>=5 -> true;
endmodule
init s=0 & o=0 endinit
label "right" = s=5;
"""
"""Every controller guesses right with probability 1/2; one that is told the state always does."""


def outer_certificate(pomdp, objective, controller):
    """A file about beliefs of which all but the first are told the state: true of these, and of nobody."""
    graph = BeliefGraph.of(question_of(pomdp, objective, ()))
    built = beside_beliefs(graph, controller)
    problem = to_problem(built.model, built.objective)
    best = solve(built.model, built.objective, precision=1e-9)
    free = to_certificate(problem, best, None, {"beliefs": graph.recipe()})
    given = to_certificate(problem, best, best.policy, {})
    return free, given, built


@pytest.fixture
def guess(tmp_path: Path):
    path = tmp_path / "guess.prism"
    path.write_text(GUESS)
    pomdp = tr.load(path)
    controller = tr.Controller.memoryless(pomdp, [0] * pomdp.observations)
    controller.save(tmp_path / "controller.json")
    return path, pomdp, controller


def test_the_value_of_an_outer_model_is_not_that_of_controllers(guess, tmp_path: Path) -> None:
    path, pomdp, controller = guess
    objective = tr.Problem(pomdp, 'Pmax=? [ F "right" ]').objective
    free, given, _ = outer_certificate(pomdp, objective, controller)
    assert check(free).valid and free.claims[0].lower > 0.999
    as_file(free).save(tmp_path / "free.cert")
    own = ["--model", str(path), "--policy", str(tmp_path / "controller.json"), "--prop"]
    found = verify(tmp_path / "free.cert", *own, 'Pmax=? [ F "right" ]')
    assert found.result is not None and (found.result["lower"], found.result["upper"]) == (0.0, 1.0)
    assert found.result["policies"] == {"value": {"lower": 0.0, "upper": 1.0}}
    assert "probability in [0, 1]" in found.result["headline"]
    found = verify(tmp_path / "free.cert", *own, 'Pmax>=0.9 [ F "right" ]')
    assert found.code == 1 and found.result is not None and found.result["answer"] == "not certified"
    # A policy of the outer model that is told the state is not the controller.
    both = replace(free, claims=(*free.claims, *given.claims), values=(*free.values, *given.values))
    as_file(both).save(tmp_path / "both.cert")
    assert check(both).valid and both.claims[1].lower > 0.999
    found = verify(tmp_path / "both.cert", *own, 'Pmax=? [ F "right" ]')
    assert found.code == 1 and "another controller" in found.err
    with pytest.raises(tr.CannotCertify, match="another controller"):
        tr.verify(tmp_path / "both.cert", model=pomdp, property='Pmax=? [ F "right" ]', policy=controller)
    # The honest file says what holds, at both ends.
    honest = tr.certify(tr.Problem(pomdp, 'Pmax=? [ F "right" ]'), tmp_path / "honest.cert")
    verdict = tr.verify(
        tmp_path / "honest.cert", model=pomdp, property='Pmax=? [ F "right" ]', policy=controller
    )
    assert verdict.values["value"] == pytest.approx((0.5, 0.5), abs=1e-6) and honest["value"].upper >= 0.5


BANDIT = """mdp
const double p; const double q;
module m
 s:[0..2] init 0;
 [a] s=0 -> p:(s'=1) + 1-p:(s'=2);
 [b] s=0 -> q:(s'=1) + 1-q:(s'=2);
 [] s>0 -> true;
endmodule
label "won" = s=1;
rewards "gain" s=1 : 1; endrewards
"""


def write_policy(path: Path, choice: int) -> Path:
    row = {"state": {"s": 0}, "choice": choice}
    path.write_text(json.dumps({"format": "tightrope policy", "version": 1, "model": None, "policy": [row]}))
    return path


def test_the_first_line_is_about_the_policy_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "m.prism").write_text(BANDIT)
    weak = write_policy(tmp_path / "weak.json", 1)
    model = tr.load(tmp_path / "m.prism", params={"p": (0, 1), "q": (0, 1)})
    log = [[(0, "a", 1)]] * 180 + [[(0, "a", 2)]] * 20 + [[(0, "b", 1)]] * 20 + [[(0, "b", 2)]] * 180
    log = [[((one,), a, (two,)) for one, a, two in episode] for episode in log]
    result = tr.learn(tr.Problem(model, 'Pmax=? [ F "won" ]'), log, delta=0.01, policy=weak, outcomes="none")
    tr.certify(result, tmp_path / "c.cert")
    names = [claim.name for claim in load(tmp_path / "c.cert").certificate.claims]
    assert names == ["robust policy", "given policy"]
    own = ["--model", str(tmp_path / "m.prism"), "--param", "p=0:1,q=0:1", "--prop", 'Pmax=? [ F "won" ]']
    found = verify(tmp_path / "c.cert", *own, "--policy", str(weak))
    assert found.accepted and found.result is not None and found.result["upper"] < 0.25
    assert "for the given policy" in found.result["headline"]
    assert found.result["policies"]["given policy"] == {
        "lower": found.result["lower"],
        "upper": found.result["upper"],
    }
    found = verify(tmp_path / "c.cert", *own)
    assert found.result is not None and found.result["lower"] > 0.7
    assert "for the robust policy" in found.result["headline"]
    # Without the domain: which it is, and how to say it.
    found = verify(tmp_path / "c.cert", *own[:2], "--param", "p=0.1:0.9,q=0:1", *own[4:])
    assert found.code == 1 and "p lies in [0, 1] there and in [1/10, 9/10] in your model" in found.err
    assert "--param p=0:1" in found.err


def test_joint_bounds_hold_at_the_end_that_nature_moves_to(tmp_path: Path) -> None:
    (tmp_path / "machines.prism").write_text(MACHINES)
    with warnings.catch_warnings(action="ignore"):
        model = tr.load(tmp_path / "machines.prism")
    target = "[ F<=3 x=1 & y=1 ]"
    exact = tr.solve(model.problem(f"Pmaxmin=? {target}")).bounds
    joint = tr.certify(model.without_factors.problem(f"Pmaxmin=? {target}"), tmp_path / "joint.cert")
    assert joint["value"].upper < exact[0] - 0.001
    limit = (joint["value"].upper + exact[0]) / 2
    own = ["--model", str(tmp_path / "machines.prism"), "--prop"]
    found = verify(tmp_path / "joint.cert", *own, f"Pmaxmin<={limit} {target}")
    assert found.code == 1 and found.result is not None and found.result["answer"] == "not certified"
    found = verify(tmp_path / "joint.cert", *own, f"Pmaxmin=? {target}")
    assert found.result is not None and found.result["upper"] == 1.0
    assert found.result["lower"] == joint["value"].lower
    # Of the complement she moves the other end.
    other = tr.certify(
        model.without_factors.problem("Pmaxmin=? [ G<=3 !(x=1 & y=1) ]"), tmp_path / "never.cert"
    )
    found = verify(tmp_path / "never.cert", *own, "Pmaxmin=? [ G<=3 !(x=1 & y=1) ]")
    assert found.result is not None and found.result["upper"] == 1.0
    assert found.result["lower"] == other["value"].lower


def test_who_collected_a_log_is_what_its_header_says(tmp_path: Path) -> None:
    (tmp_path / "m.prism").write_text(BANDIT)
    first, second = (write_policy(tmp_path / f"{i}.json", i) for i in (0, 1))
    sample = ["sample", str(tmp_path / "m.prism"), "--at", "p=0.9,q=0.1", "--param", "p=0:1,q=0:1"]
    log = str(tmp_path / "log.csv")
    words = [*sample, "--episodes", "200", "--seed", "1", "--policy", str(first), "--raw", "-o", log]
    assert quietly(words)[0] == 0
    about = ["--param", "p=0:1,q=0:1", "--prop", 'Pmax=? [ F "won" ]', "--data", log]
    learn = ["learn", str(tmp_path / "m.prism"), *about, "--certificate", str(tmp_path / "c.cert")]
    assert quietly([*learn, "--policy", str(first)])[0] == 0
    own = ["--model", str(tmp_path / "m.prism"), *about]
    assert verify(tmp_path / "c.cert", *own, "--policy", str(first)).accepted
    code, _, err = quietly([*learn, "--policy", str(second), "--outcomes", f"behaviour={second}"])
    assert code == 2 and "record another policy" in err
    # A forger says that the other policy made these episodes.
    honest = load(tmp_path / "c.cert").certificate
    assert honest.problem.data is not None and honest.problem.data.seen is not None
    given = next(claim for claim in honest.claims if claim.name == "given policy")
    turned = np.where(np.arange(3) == 0, 1, given.choice).astype(np.int64)
    forged = replace(
        honest,
        claims=(replace(given, choice=turned, lower=0.0, upper=1.0),),
        values=(honest.values[honest.claims.index(given)],),
    )
    as_file(forged).save(tmp_path / "forged.cert")
    found = verify(tmp_path / "forged.cert", *own, "--policy", str(second))
    assert found.code == 1 and "record another policy" in found.err


def test_returns_that_the_model_refutes_are_refused_with_and_without_data(tmp_path: Path) -> None:
    parameters = tr.Parameters.box(q=("0", "0.01"))
    (q,) = parameters.symbols()
    rows = [(0, "", {1: q, 2: 1 - q}), (1, "", {2: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"end": [2]}, state_rewards={"r": [10, 100_000, 0]})
    problem = model.problem('R=? [ F "end" ]')
    result = tr.learn(problem, [[(0, "", 2)]] * 400, delta=0.1)
    tr.certify(result, tmp_path / "c.cert")
    honest = load(tmp_path / "c.cert").certificate
    data = honest.problem.data
    assert data is not None and data.seen_delta is not None and data.seen_delta[2] == pytest.approx(100_010)
    assert tr.verify(tmp_path / "c.cert", model=model, property='R=? [ F "end" ]').valid
    ends = np.array([data.seen_delta[0], 10.0, 11.0])
    forged = replace(honest, problem=replace(honest.problem, data=replace(data, seen_delta=ends)))
    as_file(forged).save(tmp_path / "forged.cert")
    for more in ({}, {"data": [[(0, "", 2)]] * 400}):
        with pytest.raises(tr.CannotCertify, match="at most 11: a path returns 100010"):
            tr.verify(tmp_path / "forged.cert", model=model, property='R=? [ F "end" ]', **more)


def two_stages(provenance: Provenance | None = None, named: Provenance | None = None) -> tr.ParametricMDP:
    """A chain whose second step may depend on the first one; lines say which data chose it."""
    lines = [] if provenance is None else [provenance.comment()]
    lines += [] if named is None else [named.comment(NAMED)]
    return load_prism_text("\n".join([*lines, "dtmc", STAGES]))


STAGES = """const double p;
module m
  s : [0..3] init 0;
  [] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [] s=1 -> p : (s'=3) + 1-p : (s'=2);
  [] s>1 -> true;
endmodule
label "end" = s=3;
"""


def draw_stages(episodes: int, seed: int) -> list[Any]:
    random, log = np.random.default_rng(seed), []
    for _ in range(episodes):
        up = random.random(2) < 0.7
        second = [((1,), "", (3 if up[1] else 2,))]
        log.append([((0,), "", (1,)), *second] if up[0] else [((0,), "", (2,))])
    return log


def test_model_that_data_chose_needs_other_data(tmp_path: Path) -> None:
    """Whatever the file says: what the user's model file says of its data counts."""
    plain = two_stages()
    log, other = (tr.read_data(draw_stages(120, seed), plain, ends="complete") for seed in (1, 2))
    result = tr.learn(plain.problem('P=? [ F "end" ]'), log, delta=0.1, outcomes="none")
    tr.certify(result, tmp_path / "c.cert")
    words = {"property": 'P=? [ F "end" ]'}
    honest = tr.verify(tmp_path / "c.cert", model=plain, data=log, **words)
    assert (honest.word, honest.values) == ("proved", tr.verify(tmp_path / "c.cert").values)
    for amended in (two_stages(log.counts.provenance), two_stages(named=log.counts.provenance)):
        for data in ({"data": log}, {}):  # the counts of the file are those of the log
            verdict = tr.verify(tmp_path / "c.cert", model=amended, **words, **data)
            assert (verdict.word, verdict.values) == ("nominal", honest.values)
            assert "model chosen without this log" in {name for name, _, _ in verdict.assumptions}
    verdict = tr.verify(tmp_path / "c.cert", model=two_stages(other.counts.provenance), data=log, **words)
    assert verdict.word == "proved"
    # Without the log nothing shows that the model was chosen without it: it is listed.
    verdict = tr.verify(tmp_path / "c.cert", model=two_stages(other.counts.provenance), **words)
    assert ("model chosen without this log", "stated") in {one[:2] for one in verdict.assumptions}


def test_certificate_of_a_revised_model_says_nothing_of_the_original(tmp_path: Path) -> None:
    plain = two_stages()
    log = tr.read_data(draw_stages(300, 3), plain, ends="complete", order="as-read")
    asked = plain.problem('P=? [ F "end" ]')
    found = tr.doctor(asked, log, amend="memory=prev", delta=0.1, select_on=0.5, outcomes="none").amended
    assert found is not None and found.verdict.is_proved
    proved = tr.certify(found, tmp_path / "c.cert")
    with pytest.raises(tr.CannotCertify, match=r"another model: .* its model was revised .*memory=prev"):
        tr.verify(tmp_path / "c.cert", model=plain, property='P=? [ F "end" ]')
    made = found.amended
    again = load_prism_text(made.prism())
    write_log(tmp_path / "rest.csv", made.log, made.model.structure, found.counts.design)
    words = {"model": again, "property": 'P=? [ F "end" ]'}
    verdict = tr.verify(tmp_path / "c.cert", data=tmp_path / "rest.csv", **words)
    assert verdict.word == "proved" and [tr.Interval(*one) for one in verdict.values.values()] == [
        *proved.values()
    ]
    names = {name: status for name, status, _ in verdict.assumptions}
    assert names.get("model chosen without this log") in (None, "stated")


def test_every_field_of_a_problem_is_compared_as_one_part() -> None:
    """A field that is added later is the model's until somebody says otherwise."""
    names = {one.name for one in fields(CertifiedProblem)}
    assert {*ASKED, "data"} < names and set(FOLLOWS) == set(Relation)
    model = tr.build_from_rows([(0, "", {0: 0.5, 1: 0.5}), (1, "", {1: 1})], labels={"end": [1]})
    problem = to_problem(model, model.problem('P=? [ F "end" ]').objective)
    assert dict(compare_problems(problem, problem, True)) == {"model": None, "property": None}
    for name in names - {"data"}:
        other = replace(problem, **{name: object()})
        wanted = "property" if name in ASKED else "model"
        found = {part for part, why in compare_problems(other, problem, True) if why is not None}
        assert found == {wanted}, name


def test_the_first_line_names_whose_value_it_is(tmp_path: Path) -> None:
    model = tr.build_from_rows([(0, "", {0: 0.5, 1: 0.5}), (1, "", {1: 1})], labels={"end": [1]})
    tr.certify(model.problem('P=? [ F "end" ]'), tmp_path / "c.cert")
    proof = load(tmp_path / "c.cert").certificate
    verdict = tr.verify(tmp_path / "c.cert", model=model)
    assert headline(verdict, proof) == "VALID: probability = 1"
