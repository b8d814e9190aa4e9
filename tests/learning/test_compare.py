"""Certified differences between policies: against exact values, and what `improve` may and may not say.

Also of `cli/compare.py`.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.certify.certify import certificate_of_difference
from tightrope.cli.app import run
from tightrope.coupled.chain import chain_of
from tightrope.coupled.difference import bound_difference, difference_of
from tightrope.coupled.result import CoupledStatus
from tightrope.coupled.taylor import expand
from tightrope.errors import InputError
from tightrope.learning.differences import KeptText
from tightrope.model.policy import Policy
from tightrope.solver.solve import solve
from tightrope.statistics.coordinates import Coordinates
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL

pytestmark = pytest.mark.usefixtures("built_once")

QUESTIONS = [
    'Pmax=? [ F "goal" ]',
    'Pmin=? [ G !"goal" ]',
    'Rmin=? [ F "end" ]',
    'Pmax=? [ F<=4 "goal" ]',
    "Rmax=? [ C<=5 ]",
    'Pmax=? [ X "goal" ]',
]


def two_arms() -> tr.ParametricMDP:
    """A walk over five states with a safe and a bold move, whose chances share p and q."""
    parameters = tr.Parameters.box(p=(0.05, 0.95), q=(0.05, 0.95))
    p, q = parameters.symbols()
    rows = []
    for s in range(1, 4):
        rows.append((s, "safe", {s + 1: p, s - 1: 1 - p}))
        rows.append((s, "bold", {min(s + 2, 4): q * p, 0: 1 - q * p}))
    rows += [(0, "", {0: 1}), (4, "", {4: 1})]
    cost = [1.0 if action == "safe" else 2.0 if action else 0.0 for _, action, _ in rows]
    labels = {"goal": [4], "end": [0, 4], "three": [3]}
    model = tr.build_from_rows(rows, parameters, initial=2, labels=labels, choice_rewards={"": cost})
    assert isinstance(model, tr.ParametricMDP)
    return model


def policies(model: tr.ParametricMDP) -> tuple[Policy, Policy]:
    safe = Policy(model, dict.fromkeys((1, 2, 3), "safe"))
    mixed = Policy(model, {1: {"safe": 0.25, "bold": 0.75}, 2: "bold", 3: {"safe": 0.5, "bold": 0.5}})
    return safe, mixed


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_joined_chain_is_the_difference(question: str) -> None:
    """At single points its value is that of the one policy less that of the other."""
    model = two_arms()
    objective = model.problem(question).objective
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    safe, mixed = policies(model)
    chains = [chain_of(model, objective, policy) for policy in (safe, mixed)]
    joined = difference_of(*chains)
    for theta in ((0.5, 0.5), (0.3, 0.8), (0.9, 0.1)):
        point = model.instantiate(tuple(theta))
        values = [solve(point, objective, policy=policy, precision=1e-12) for policy in (safe, mixed)]
        low, high = ((v.fixpoint_lower[model.initial], v.fixpoint_upper[model.initial]) for v in values)
        x = coordinates.lift(np.array([theta]))[0]
        taylor = expand(joined, functions, x, np.zeros((len(x), 0)), 0.0, order=0)
        assert taylor is not None
        middle, error = taylor.constant[joined.initial], taylor.error[joined.initial]
        assert low[0] - high[1] - error <= middle <= low[1] - high[0] + error
        assert error < 1e-9


def learned(question: str, episodes: int = 400, **words: Any) -> tr.Comparison:
    model = two_arms()
    truth = model.instantiate((0.6, 0.7))
    data = tr.Simulator(truth, model_hash=model.hash()).episodes(episodes, seed=3)
    safe, mixed = policies(model)
    return tr.compare(model.problem(question), data, {"mixed": mixed}, safe, delta=0.05, **words)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("region", ["likelihood", "polytope"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_interval_holds_all_differences_of_the_region(question: str, region: str) -> None:
    """Differences at points of the region lie inside, and the interval inside the one of both apart."""
    result = learned(question, region=region)
    (row,) = result.differences
    assert row.separate.lower <= row.interval.lower <= row.interval.upper <= row.separate.upper
    model, objective = two_arms(), two_arms().problem(question).objective
    safe, mixed = policies(model)
    assert row.value is not None and row.lowest is not None and row.highest is not None
    random = np.random.default_rng(5)
    ends = row.lowest.theta, row.highest.theta
    for _ in range(12):
        share = random.random()
        theta = share * ends[0] + (1 - share) * ends[1]
        point = model.instantiate(tuple(theta.tolist()))
        values = [solve(point, objective, policy=policy, precision=1e-12) for policy in (mixed, safe)]
        start = model.initial
        low = values[0].lower[start] - values[1].upper[start]
        high = values[0].upper[start] - values[1].lower[start]
        assert row.interval.lower - 1e-9 <= low and high <= row.interval.upper + 1e-9


def test_a_difference_is_narrower_than_both_values() -> None:
    """Shared parameters cancel: the same log says far more about the difference than about either value."""
    row = learned('Rmin=? [ F "end" ]').best
    assert row.interval.width < 0.8 * row.separate.width


def test_a_policy_against_itself_differs_by_nothing() -> None:
    model = two_arms()
    data = tr.Simulator(model.instantiate((0.6, 0.7)), model_hash=model.hash()).episodes(50, seed=1)
    safe, _ = policies(model)
    result = tr.compare(model.problem(QUESTIONS[0]), data, safe, safe, delta=0.05)
    assert (result.interval.lower, result.interval.upper) == (0.0, 0.0)
    assert result.order == ()


def test_policies_that_depend_on_the_step() -> None:
    """The best policy of a horizon, unrolled: its difference holds the true one."""
    model = two_arms()
    problem = model.problem('Pmax=? [ F<=4 "goal" ]')
    truth = model.instantiate((0.6, 0.7))
    best = solve(truth, problem.objective).policy
    assert best.depends_on_step
    data = tr.Simulator(truth, model_hash=model.hash()).episodes(400, seed=3)
    safe, _ = policies(model)
    result = tr.compare(problem, data, best, safe, delta=0.05)
    values = [solve(truth, problem.objective, policy=policy) for policy in (best, safe)]
    true = float(values[0].lower[model.initial] - values[1].lower[model.initial])
    assert result.interval.lower <= true <= result.interval.upper
    assert result.interval.width < result.best.separate.width


@pytest.mark.thinned(2)
@pytest.mark.parametrize("question", ['Pmax=? [ F "goal" ]', 'Rmin=? [ F "end" ]', 'Pmax=? [ F<=4 "goal" ]'])
def test_improve_is_never_worse_than_the_baseline(question: str) -> None:
    """Its improvement is certified, at least 0, and true; no more than the limit."""
    model = two_arms()
    problem = model.problem(question)
    truth = model.instantiate((0.6, 0.7))
    for episodes in (5, 400):
        data = tr.Simulator(truth, model_hash=model.hash()).episodes(episodes, seed=7)
        result = tr.improve(problem, data, baseline="uniform", delta=0.05)
        assert result.improvement >= 0.0
        assert result.limit is None or result.improvement <= result.limit + 1e-9
        values = [solve(truth, problem.objective, policy=one) for one in (result.policy, result.baseline)]
        gain = float(values[0].lower[model.initial] - values[1].lower[model.initial])
        assert result.improvement <= (gain if problem.maximises else -gain) + 1e-6
    assert result.improvement > 0.0
    assert result.verdict.is_proved


@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_policies_with_memory_and_temporal_formulas() -> None:
    """Both have products of the same parameters; the controller found is as good as it is said to be."""
    model = two_arms()
    truth = model.instantiate((0.6, 0.7))
    data = tr.Simulator(truth, model_hash=model.hash()).episodes(800, seed=3)
    problem = model.problem('Pmax=? [ (F "three") & (F "goal") ]')
    result = tr.improve(problem, data, baseline="uniform", delta=0.05)
    assert result.improvement > 0.0 and result.controller.has_memory
    again = tr.compare(problem, data, result.controller, "uniform", delta=0.05)
    assert again.interval.lower == pytest.approx(result.interval.lower, abs=1e-3)
    plain = model.problem('Pmax=? [ F "goal" ]')
    safe, _ = policies(model)
    row = tr.compare(plain, data, result.controller, safe, delta=0.05).best
    lower = solve(truth, plain.objective, policy=safe).lower[model.initial]
    assert row.interval.lower <= 1.0 - lower and row.interval.width <= row.separate.width


def test_what_is_to_be_kept_is_kept() -> None:
    """A cheaper policy that reaches the goal less often is not taken where that is to be kept."""
    model = two_arms()
    data = tr.Simulator(model.instantiate((0.6, 0.7)), model_hash=model.hash()).episodes(2000, seed=7)
    problem = model.problem('Rmin=? [ F "end" ]')
    safe, _ = policies(model)
    free = tr.improve(problem, data, baseline=safe, delta=0.05)
    bound = tr.improve(problem, data, baseline=safe, delta=0.05, keep=['P>=baseline [ F "goal" ]'])
    assert free.improvement > 0.0
    assert all(one.holds for one in bound.kept)
    assert bound.improvement <= free.improvement
    assert bound.kept[0].interval.lower >= 0.0
    never = tr.improve(problem, data, baseline=safe, delta=0.05, keep=['P>=baseline+0.9 [ F "goal" ]'])
    assert never.policy == never.baseline and never.improvement == 0.0


@pytest.mark.parametrize(
    ("text", "offset", "relative", "at_least"),
    [
        ('P>=baseline [ F "goal" ]', 0.0, True, True),
        ('P >= baseline - 0.01 [ F "goal" ]', -0.01, True, True),
        ('R<=baseline+5 [ F "end" ]', 5.0, True, False),
        ('P>=0.25 [ F "goal" ]', 0.25, False, True),
    ],
)
def test_texts_of_what_is_kept(text: str, offset: float, relative: bool, at_least: bool) -> None:
    kept = KeptText.of(text, two_arms().problem(QUESTIONS[0]))
    assert (kept.offset, kept.relative, kept.at_least) == (offset, relative, at_least)


@pytest.mark.parametrize(
    "text", ["goal", 'P>baseline [ F "goal" ]', 'P>= [ F "goal" ]', 'P>=baseline [ F "x" ]']
)
def test_wrong_texts_of_what_is_kept(text: str) -> None:
    with pytest.raises(tr.InputError) as error:
        KeptText.of(text, two_arms().problem(QUESTIONS[0]))
    assert text in str(error.value)


def test_false_improvement_is_rare() -> None:
    """With a baseline that is the best at the truth an improvement is claimed at most δ of the time."""
    model = two_arms()
    problem = model.problem('Pmax=? [ F "goal" ]')
    truth = model.instantiate((0.5, 0.8))
    best = solve(truth, problem.objective).policy
    simulator = tr.Simulator(truth, model_hash=model.hash())
    claimed = sum(
        tr.improve(problem, simulator.episodes(60, seed=seed), baseline=best, delta=0.1).improvement > 0.0
        for seed in range(8)
    )
    assert claimed <= 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"baseline": "uniform", "sets": "tied"}, "coupled"),
        ({"baseline": 3}, "policy"),
        ({"baseline": "uniform", "misfit": 0.1}, "misfit"),
    ],
)
def test_refusals(words: dict[str, Any], message: str) -> None:
    model = two_arms()
    data = tr.Simulator(model.instantiate((0.6, 0.7)), model_hash=model.hash()).episodes(20, seed=1)
    with pytest.raises(tr.InputError, match=message):
        tr.improve(model.problem(QUESTIONS[0]), data, delta=0.05, **words)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("question", "region"),
    [*((one, "polytope") for one in QUESTIONS[:4]), (QUESTIONS[1], "slab"), ('Pmax=? [ F>=2 "goal" ]', "l1")],
)
def test_certificates_prove_the_difference(question: str, region: str) -> None:
    """As close as it was computed, in float64 and in rationals."""
    result = learned(question, region=region)
    made = certificate_of_difference(result)
    assert made.problem.data.method == {"slab": "value slab of the difference", "l1": "weissman"}.get(
        region, made.problem.data.method
    )
    for arithmetic in (FLOAT64, RATIONAL):
        verdict = check(made, arithmetic)
        assert verdict.valid, [one for one in verdict.checks if not one.passed]
    low, high = verdict.values["difference"]
    assert low == pytest.approx(result.interval.lower, abs=1e-7)
    assert high == pytest.approx(result.interval.upper, abs=1e-7)


def test_a_difference_answers_no_threshold(tmp_path: Path) -> None:
    """The value of a cost is not below 0, though it is less than the baseline's."""
    result = learned('Rmin=? [ F "end" ]', region="polytope")
    assert tr.certify(result, tmp_path / "d.cert")["difference"].upper < 0.0
    verdict = tr.verify(tmp_path / "d.cert", model=two_arms(), property='Rmin<=0.5 [ F "end" ]')
    assert verdict.answer != "true"


@pytest.mark.costly("test_certificates_prove_the_difference")
def test_a_slab_gains_with_many_episodes_and_loses_nothing_with_few() -> None:
    """Whether to bet is known from the plan: with few episodes it is the likelihood region at all of δ."""
    question = 'Rmin=? [ F "end" ]'
    few, alike = (learned(question, 60, region=one).interval for one in ("slab", "likelihood"))
    assert (few.lower, few.upper) == (alike.lower, alike.upper)
    bet, plain = (learned(question, 400, region=one).improvement for one in ("slab", "likelihood"))
    assert bet > 1.05 * plain


def test_a_slab_needs_a_baseline_that_was_not_chosen_by_the_data() -> None:
    model = two_arms()
    data = tr.Simulator(model.instantiate((0.6, 0.7)), model_hash=model.hash()).episodes(200, seed=3)
    problem = model.problem('Rmin=? [ F "end" ]')
    safe, _ = policies(model)
    names = [
        {one.name for one in tr.improve(problem, data, baseline=b, delta=0.05, region=r).verdict.assumptions}
        for b, r in ((safe, "slab"), ("uniform", "slab"), (safe, "likelihood"))
    ]
    assert ["policy chosen without this log" in one for one in names] == [True, False, False]
    own = tr.learn(problem, data, delta=0.05).policy
    seen, plain = (
        tr.improve(problem, data, baseline=own, delta=0.05, region=r) for r in ("slab", "likelihood")
    )
    assert seen.interval == plain.interval and seen.verdict.is_proved  # no bets on what the data chose


@pytest.mark.usefixtures("empty_pictures")
def test_chains_in_continuous_time_have_nothing_to_compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moves = " [] s=0 -> r : (s'=1);\n [] s=1 -> 1 : true;\n"
    text = f"ctmc\nconst double r;\nmodule m\n s:[0..1] init 0;\n{moves}endmodule\n"
    (tmp_path / "rates.prism").write_text(text + 'label "end" = s=1;\n')
    (tmp_path / "log.csv").write_text("episode,state,next_state,duration\n0,0,1,0.5\n")
    named = [str(tmp_path / "rates.prism"), "--param", "r=0.1:3", "--prop", 'T=? [ F "end" ]']
    assert run(["improve", *named, "--data", str(tmp_path / "log.csv")]) == 2
    shown = capsys.readouterr().err
    assert "has no choices: there is only one policy" in shown and "learn a model for each design" in shown
    model = tr.load(named[0], params={"r": (0.1, 3)})
    with pytest.raises(tr.InputError, match="no choices"):
        tr.improve(tr.Problem(model, 'T=? [ F "end" ]'), [], delta=0.05)


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`improve` writes a policy that `compare` finds better by as much."""
    monkeypatch.chdir(tmp_path)

    def call(command: str, *more: str) -> str:
        assert run([command, "bench:betting(5)", *more]) == 0
        return capsys.readouterr().out

    call("sample", "--episodes", "2000", "--seed", "1", "-o", "log.parquet")
    log = ("--data", "log.parquet", "--delta", "0.05")
    files = ("-o", "new.json", "--certificate", "new.cert", "--report", "page.html")
    answer = json.loads(call("improve", *log, *files, "--unit", "EUR", "--json"))
    shares = [one["share"] for one in answer["changes"]]
    assert sum(shares) == pytest.approx(1.0) and shares == sorted(shares, reverse=True)
    assert "gains at least" in answer["sentence"] and " EUR. Largest change: " in answer["sentence"]
    page = Path("page.html").read_text()
    assert (
        answer["sentence"] in page
        and page.count("<tr>") == len(answer["changes"]) + len(answer["candidates"]) + 2
    )
    own = ["verify", "new.cert", "--model", "bench:betting(5)", "--data", "log.parquet", "--policy"]
    tr.Policy.uniform(tr.load("bench:betting(5)")).save("uniform.json")
    assert run([*own, "new.json", "--baseline", "uniform.json"]) == 0
    shown = capsys.readouterr().out
    assert "difference" in shown and "baseline" in shown.split("assumes")[0]
    assert run([*own, "uniform.json"]) == 1 and run([*own, "new.json", "--baseline", "new.json"]) == 1
    assert "another baseline than yours" in capsys.readouterr().err
    assert answer["verdict"] == "proved" and answer["difference"]["lower"] > 0.0
    assert answer["improvement"] <= answer["limit"]
    again = json.loads(call("improve", *log, "--candidate", "new.json", "--json"))
    assert again["improvement"] >= answer["improvement"] and again["policy"] == "new.json"
    call("improve", *log, "-o", "out")
    assert run(["report", "out"]) == 0 and capsys.readouterr().out.split() == ["out/report.html"]
    page = Path("out/report.html").read_text()
    assert "Both policies by state variables" in page and "data:image" not in page
    assert page.count("<tr>") == len(answer["changes"]) + len(answer["candidates"]) + 2
    assert sorted(one.name for one in Path("out").glob("*.json")) == [
        "comparison.json",
        "policy.json",
        "tightrope-manifest.json",
        "today.json",
    ]
    again = json.loads(call("compare", *log, "--policy", "new.json", "--json"))
    assert again["difference"]["lower"] == pytest.approx(answer["difference"]["lower"], rel=1e-3)
    assert again["order"] == [["new.json", "the uniform policy"]]
    call("sample", "--episodes", "40", "--seed", "1", "-o", "few.parquet")
    few = ("--data", "few.parquet", "--delta", "0.05", "--improve", "uniform", "--json")
    forecast = json.loads(call("plan", *few))
    assert 0.0 < forecast["improvement"] < 0.8 * forecast["possible"]
    assert forecast["episodes"] == 0 < forecast["share_episodes"] < 2000
    shown = call("compare", *log, "--policy", "new.json")
    assert shown.startswith("PROVED: improvement in expected reward >= ")


def drawn(seed: int) -> tuple[tr.Problem, tr.Counts]:
    """Four states, two choices in each, two parameters, and 12 short episodes: little is known."""
    draw = np.random.default_rng(seed)
    parameters = tr.Parameters.box(p0=(0.05, 0.95), p1=(0.05, 0.95))
    symbols, rows, costs = parameters.symbols(), [], []
    for state, action in itertools.product(range(4), ("a0", "a1")):
        chance, (one, two) = symbols[draw.integers(2)], draw.choice(4, 2, replace=False).tolist()
        rows.append((state, action, {one: chance, two: 1 - chance}))
        costs.append(int(draw.integers(0, 100)))
    model = tr.build_from_rows(rows, parameters, choice_rewards={"c": costs})
    assert isinstance(model, tr.ParametricMDP)
    truth = model.instantiate(p0=float(draw.uniform(0.15, 0.85)), p1=float(draw.uniform(0.15, 0.85)))
    log = tr.Simulator(truth, model_hash=model.hash(), cap=4).episodes(12, seed=seed)
    return tr.Problem(model, 'R{"c"}min=? [ C ]', discount=0.9), log


@pytest.mark.parametrize(("seed", "before"), [(13, 12.91), (26, 38.07)])
def test_no_single_change_is_certified_to_gain_more(seed: int, before: float) -> None:
    """`before` is what the candidates without a search were certified to gain."""
    problem, log = drawn(seed)
    found = tr.improve(problem, log, baseline="do-nothing", delta=0.05)
    assert found.improvement > 1.08 * before and found.limit is not None
    assert found.improvement <= found.limit * (1 + 1e-6) and not any("limit" in one for one in found.notes)
    assert found.policy is not None and found.table is not None
    for state in range(4):
        changed = found.policy.choice.copy()
        changed[state] = 4 * state + 1 - changed[state]
        other = Policy.of_choices(problem.model.structure, changed)
        interval = found.table.difference("", other, wanted=(False, True)).interval
        assert -interval.upper <= 1.02 * found.improvement


def test_improve_starts_from_the_users_candidates() -> None:
    """A rule written by hand is one of the differences, and no answer is worse than it."""
    problem, log = drawn(26)
    hand = Policy.of_choices(problem.model.structure, np.array([1, 2, 4, 7]))
    alone = tr.compare(problem, log, hand, "do-nothing", delta=0.05).improvement
    found = tr.improve(problem, log, baseline="do-nothing", candidate={"by hand": hand}, delta=0.05)
    assert "by hand" in {one.name for one in found.differences} and found.improvement >= alone
    assert not any("made from these data" in note for note in found.notes)
    again = tr.improve(problem, log, baseline=hand, candidate=found.policy, delta=0.05)
    assert again.verdict.is_proved and again.improvement > 0.0
    assert any(note.startswith("the candidate was made from these data") for note in again.notes)
    with pytest.raises(InputError, match="a policy cannot be made of a value of the type int"):
        tr.improve(problem, log, baseline="do-nothing", candidate=3, delta=0.05)


@pytest.mark.parametrize("seed", [4, 12])
def test_improve_proves_what_compare_proves_of_the_same_policy(seed: int) -> None:
    """Bounds that told candidates apart were the answer, up to the share `coupled_gap` below `compare`."""
    problem, log = drawn(seed)
    found = tr.improve(problem, log, baseline="do-nothing", delta=0.05)
    assert found.policy is not None
    alone = tr.compare(problem, log, found.policy, "do-nothing", delta=0.05).improvement
    assert found.improvement >= alone * (1 - 1e-9)
    again = tr.improve(problem, log, baseline="do-nothing", candidate=found.policy, delta=0.05)
    assert again.improvement >= alone * (1 - 1e-9)


def test_the_search_under_a_bound_on_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the baseline alone, single choices at single steps lead as far as all candidates."""
    model = two_arms()
    safe, _ = policies(model)
    log = tr.Simulator(model.instantiate(p=0.4, q=0.9), model_hash=model.hash()).episodes(400, seed=1)
    problem = tr.Problem(model, 'Pmax=? [ F<=4 "goal" ]')
    usual = tr.improve(problem, log, baseline=safe, delta=0.1).improvement
    monkeypatch.setattr("tightrope.learning.differences.Differences.candidates", lambda self: [])
    monkeypatch.setattr("tightrope.learning.differences.Differences.corners", lambda self, most: [])
    found = tr.improve(problem, log, baseline=safe, delta=0.1)
    assert found.improvement > 0.0 and found.improvement >= 0.98 * usual
    assert found.best.name == "the local search policy"


def test_nothing_to_gain_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two coins in any order: every policy has the same value, and no difference is bounded."""
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    rows: list[Any] = [(0, "left", {1: p, 4: 1 - p}), (0, "right", {2: p, 4: 1 - p})]
    rows += [(1, "", {3: p, 4: 1 - p}), (2, "", {3: p, 4: 1 - p}), (3, "", {3: 1}), (4, "", {4: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"both": [3]})
    log = tr.Simulator(model.instantiate(p=0.5), model_hash=model.hash()).episodes(50, seed=1)
    monkeypatch.setattr("tightrope.learning.differences.bound_difference", _only_itself(bound_difference))
    found = tr.improve(tr.Problem(model, 'Pmax=? [ F "both" ]'), log, delta=0.1)
    assert found.improvement == 0.0 and found.limit is not None and found.limit < 1e-6
    assert found.policy == found.baseline


def test_a_difference_of_nothing_is_exact() -> None:
    """Neither policy comes to the state: both values are 0 everywhere, and no cell is split."""
    problem, log = drawn(26)
    found = tr.improve(problem, log, baseline="do-nothing", delta=0.05)
    asked = KeptText.of('P<=baseline [ F<=5 "init"&!"init" ]', problem)
    assert found.table is not None and found.policy is not None
    row = found.table.difference("", found.policy, objective=asked.objective)
    assert row.value is not None and row.value.status is CoupledStatus.EXACT and len(row.value.cells) <= 1
    assert row.interval.lower == pytest.approx(0.0, abs=1e-300) and row.interval.width < 1e-200


def _only_itself(bound: Any) -> Any:
    def bounded(sets: Any, one: Any, two: Any, **words: Any) -> Any:
        assert one.policy == two.policy
        return bound(sets, one, two, **words)

    return bounded


@pytest.mark.parametrize("command", ["improve", "compare"])
def test_models_without_choices_are_refused(command: str) -> None:
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    model = tr.build_from_rows([(0, "", {1: p, 0: 1 - p}), (1, "", {1: 1})], parameters, labels={"g": [1]})
    log = tr.Simulator(model.instantiate(p=0.5), model_hash=model.hash()).episodes(5, seed=1)
    problem, words = tr.Problem(model, 'P=? [ F<=3 "g" ]'), {} if command == "improve" else {"policy": [0, 1]}
    with pytest.raises(InputError, match="the model has one choice in every state: there is only one policy"):
        getattr(tr, command)(problem, log, delta=0.1, **words)
