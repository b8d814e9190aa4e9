"""What was done as a baseline: scores have the mean of returns, and claims are true as often as is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.data.counts import Counts
from tightrope.learning.logged import Block, LoggedBaseline
from tightrope.solver.solve import solve

TRUTH = (0.8, 0.3)


def machine(acyclic: bool = True) -> tr.ParametricMDP:
    """Two gambles and a safe way to the end, three times over; or the same for ever."""
    parameters = tr.Parameters.box(p=(0.05, 0.95), q=(0.05, 0.95))
    p, q = parameters.symbols()
    rows: list[Any] = []
    for level in range(3):
        up, down = (level + 1, 4) if acyclic or level < 2 else (0, 4)
        rows += [
            (level, "bold", {up: p, down: 1 - p}),
            (level, "calm", {up: q, level if not acyclic else down: 1 - q}),
        ]
    rows += [(3, "stay", {3: 1}), (4, "stay", {4: 1} if acyclic else {0: 1})]
    reward = [3 if a == "bold" else 2 for _, a, _ in rows[:6]] + [0, 0]
    return tr.build_from_rows(
        rows, parameters, choice_rewards={"gain": reward}, labels={"top": [3], "low": [4]}
    )


QUESTIONS = ['Pmax=? [ F "top" ]', 'Pmin=? [ F "low" ]', 'R{"gain"}max=? [ C<=3 ]', 'R{"gain"}max=? [ C ]']


def asked(question: str) -> tuple[tr.Problem, Any]:
    model = machine("C ]" not in question)
    discount = {"discount": 0.9} if "C ]" in question else {}
    return tr.Problem(model, question, **discount), model.instantiate(TRUTH)


def value(problem: tr.Problem, truth: Any, policy: tr.Policy) -> float:
    return float(solve(truth, problem.objective, policy=policy).lower[problem.model.initial])


@pytest.mark.thinned(2)
@pytest.mark.parametrize("question", QUESTIONS)
def test_scores_have_the_mean_of_what_was_done(question: str) -> None:
    """At the true parameters, whatever h is; and no path scores more than the top."""
    problem, truth = asked(question)
    model = problem.model
    some = tr.Policy(model, lambda s: {"bold": 0.7, "calm": 0.3} if s < 3 else None)
    data = tr.Simulator(truth, policy=some, model_hash=model.hash(), cap=60).episodes(2000, seed=2)
    logged = LoggedBaseline(problem, data, 0.05)
    region = tr.learn(problem, data, delta=0.05, region="likelihood", sets="expression").region
    random = np.random.default_rng(4)
    h = np.where(logged.decided, np.nan_to_num(logged.rules.decided), random.random(model.states))
    block = Block(0, logged.episodes, logged.sign * h if logged._takes_h else None, (1.0,))
    logged.blocks = [block]
    (scored,) = logged.scored(region)
    scores = scored.offset + scored.slope @ np.array(TRUTH)
    assert np.all(scores <= scored.top + 1e-9)
    true = logged.sign * value(problem, truth, some)
    assert abs(scores.mean() - true) < 4.5 * scores.std() / np.sqrt(len(scores)) + 1e-3


def test_bets_that_exclude_what_the_model_allows_are_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = asked(QUESTIONS[0])
    data = tr.Simulator(truth, model_hash=problem.model.hash(), cap=60).episodes(50, seed=1)
    bold = tr.Policy(problem.model, lambda s: "bold" if s < 3 else None)
    result = tr.compare(problem, data, bold, baseline="logged", delta=0.1)
    assert result.contradiction is None
    monkeypatch.setattr(LoggedBaseline, "bound", lambda *about: (1.5, 1.5))
    result = tr.compare(problem, data, bold, baseline="logged", delta=0.1)
    assert result.contradiction is not None and result.verdict.word.value == "contradicted"


@pytest.mark.thinned(2)
@pytest.mark.parametrize("question", QUESTIONS[:3])
def test_claims_are_true(question: str) -> None:
    """Over a behaviour that is best at the truth nothing is claimed; over another, no more than is true."""
    problem, truth = asked(question)
    model = problem.model
    best, some = solve(truth, problem.objective).policy, tr.Policy.uniform(model)
    sign = 1.0 if problem.maximises else -1.0
    claimed = []
    for seed in range(2):
        for policy in (best, some):
            simulator = tr.Simulator(truth, policy=policy, model_hash=model.hash(), cap=60)
            result = tr.improve(problem, simulator.episodes(200, seed=seed), baseline="logged", delta=0.1)
            assert result.baseline is None and result.delta == 0.1 and result.improvement >= 0.0
            if result.policy is not None:
                gain = sign * (value(problem, truth, result.policy) - value(problem, truth, policy))
                assert result.improvement <= gain
                claimed.append(policy is some)
    assert claimed == [True] * 2


def test_a_behaviour_with_a_memory_is_a_baseline() -> None:
    """Whoever acts by what it saw before is compared with as it is; several policies hold together."""
    problem, _ = asked(QUESTIONS[0])
    model, random = problem.model, np.random.default_rng(6)
    episodes = []
    for _ in range(300):
        state, moves, bold = 0, [], random.random() < 0.5  # a mood that lasts for an episode
        while state < 3:
            luck = random.random() < (TRUTH[0] if bold else TRUTH[1])
            after = state + 1 if luck else 4
            moves.append((state, "bold" if bold else "calm", after))
            state = after
        episodes.append(moves)
    done = 0.5 * TRUTH[0] ** 3 + 0.5 * TRUTH[1] ** 3
    policies = {name: tr.Policy(model, dict.fromkeys(range(3), name)) for name in ("bold", "calm")}
    data = tr.read_data(episodes, model, ends="complete").counts
    result = tr.compare(problem, data, policies, "logged", delta=0.05)
    low = {one.name: one.interval.lower for one in result.differences}
    assert 0.0 < low["bold"] <= TRUTH[0] ** 3 - done and low["calm"] <= TRUTH[1] ** 3 - done
    assert ("bold", "the behaviour policy") in result.order and ("bold", "calm") in result.order
    assert "episodes" in {one.name for one in result.verdict.assumptions}


def test_what_the_logged_baseline_refuses() -> None:
    problem, truth = asked(QUESTIONS[0])
    data = tr.Simulator(truth, model_hash=problem.model.hash()).episodes(50, seed=1)
    bare = Counts(data.transition, data.transition_start, data.design, data.model_hash)
    with pytest.raises(tr.InputError, match="needs episodes"):
        tr.improve(problem, bare, baseline="logged", delta=0.05)
    with pytest.raises(tr.InputError, match="known baseline"):
        tr.improve(problem, data, baseline="logged", keep=['P>=baseline [ F "top" ]'], delta=0.05)
    with pytest.raises(tr.CannotCertify, match="no improvement is proved"):
        tr.improve(problem, data, baseline="logged", delta=1e-9).as_result()


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("question", "region"), [(0, "slab"), (1, "likelihood"), (2, "polytope")])
def test_what_a_certificate_holds_of_it(tmp_path: Path, question: int, region: str) -> None:
    """Two parts at half of δ each, the model's and the episodes'; tied to model, data and policy."""
    problem, truth = asked(QUESTIONS[question])
    model, some = problem.model, tr.Policy.uniform(problem.model)
    data = tr.Simulator(truth, model_hash=model.hash(), cap=60).episodes(400, seed=3)
    result = tr.improve(problem, data, baseline="logged", delta=0.05, region=region)
    proved = tr.certify(result, tmp_path / "done.cert")
    assert result.policy is not None
    done, new = value(problem, truth, some), value(problem, truth, result.policy)
    assert proved["what was done"].lower <= done <= proved["what was done"].upper
    assert proved["difference"].lower <= new - done <= proved["difference"].upper
    assert proved["difference"].lower > 0.0 or proved["difference"].upper < 0.0
    own = {"model": model, "property": problem.objective, "data": data, "policy": result.policy}
    verdict = tr.verify(tmp_path / "done.cert", **own)
    assert verdict.word == "proved" and verdict.not_tied == () and "baseline" not in verdict.bound
    assert any("draws of one unknown behaviour policy" in one for one in verdict.assumes)
    less = tr.Simulator(truth, model_hash=model.hash(), cap=60).episodes(400, seed=4)
    wrong = {
        "other data": {"data": less},
        "another policy": {"policy": some},
        "which your data show": {"baseline": some},
    }
    for words, given in wrong.items():
        with pytest.raises(tr.CannotCertify, match=words):
            tr.verify(tmp_path / "done.cert", **{**own, **given})


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = tr.benchmark("betting(5)")
    log = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(1500, seed=1).log()
    structure = bench.model.structure
    choice = structure.transition_choice[log.transition]
    names = [structure.action_names[structure.action_of_choice[c]] for c in choice]
    rows = zip(
        log.episode, structure.choice_state[choice], names, structure.successor[log.transition], strict=True
    )
    lines = ["episode,state,action,next_state", *(",".join(map(str, row)) for row in rows)]
    Path("log.csv").write_text("\n".join(lines))
    few = [
        "--data",
        "log.csv",
        "--states",
        "index",
        "--ends",
        "complete",
        "--baseline",
        "logged",
        "--delta",
        "0.05",
        "-o",
        "new.json",
        "--certificate",
        "new.cert",
    ]
    capsys.readouterr()
    assert run(["improve", "bench:betting(5)", *few]) == 0
    shown, beside = capsys.readouterr()
    assert "new.cert proves a difference in [" in beside and "the observed returns" in beside
    own = ["--model", "bench:betting(5)", "--policy", "new.json", *few[:6]]
    assert run(["verify", "new.cert", *own]) == 0
    assert "for the policy against the observed policy" in capsys.readouterr().out
    assert shown.startswith("PROVED: improvement in expected reward >= ")
    assert (tmp_path / "new.json").exists()
