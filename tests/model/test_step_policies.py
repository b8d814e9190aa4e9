"""Policies that depend on the step: found, written, read, followed and evaluated as what they are."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import repeats
from tightrope import load
from tightrope.certify.problem import to_problem
from tightrope.certify.solved import to_certificate
from tightrope.cli.app import run
from tightrope.data.simulator import Simulator
from tightrope.errors import InputError
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.policy_file import TimeVaryingChoices, TimeVaryingRecorder
from tightrope.model.structure import RewardStructure, Structure
from tightrope.solver.solve import attained, solve
from tightrope_check.checker import check as check_certificate
from tightrope_check.numbers import FLOAT64, RATIONAL

HURRY = """
// The safe way is long: with time left it is better, in the last steps only the risky one is in time.
mdp
const double p;
module walk
  s : [0..4] init 0;
  [safe]  s<3 -> 0.9 : (s'=s+1) + 0.1 : (s'=s);
  [risky] s<3 -> p : (s'=3) + 1-p : (s'=4);
  [wait]  s<3 -> true;
endmodule
label "goal" = s=3;
"""


def path_of(tmp_path: Path, text: str = HURRY) -> str:
    (tmp_path / "hurry.prism").write_text(text)
    return str(tmp_path / "hurry.prism")


def interval_model(random: np.random.Generator) -> IntervalMDP:
    states = int(random.integers(3, 6))
    choices = random.integers(1, 4, states)
    start, successor, lower, upper = [0], [], [], []
    for _ in range(int(choices.sum())):
        reached = np.sort(random.choice(states, int(random.integers(1, states + 1)), replace=False))
        share = random.dirichlet(np.ones(len(reached)))
        room = random.uniform(0, 0.2, len(reached))
        successor.extend(reached.tolist())
        lower.extend(np.maximum(share - room, 0.0).tolist() if len(reached) > 1 else [1.0])
        upper.extend(np.minimum(share + room, 1.0).tolist() if len(reached) > 1 else [1.0])
        start.append(len(successor))
    structure = Structure(
        choice_start=np.concatenate([[0], np.cumsum(choices)]).astype(np.int64),
        transition_start=np.array(start, dtype=np.int64),
        successor=np.array(successor, dtype=np.int32),
        initial_states=(0,),
    )
    return IntervalMDP(structure, np.array(lower), np.array(upper))


def objectives(model: IntervalMDP, random: np.random.Generator) -> list[Objective]:
    """Lower, upper and both step bounds, until and cumulative rewards, with and without a complement."""
    target = np.zeros(model.states, np.bool_)
    target[random.integers(1, model.states)] = True
    allowed = random.random(model.states) < 0.9
    allowed[0] = True
    reward = RewardStructure(choice=random.uniform(0, 2, model.choices))
    made = []
    for agent, nature, complement in product(Direction, Direction, (False, True)):
        for low, high in ((0, 3), (2, 5), (3, None), (0, 0)):
            made.append(
                Objective(
                    ObjectiveKind.UNTIL,
                    agent,
                    nature,
                    target=target,
                    allowed=allowed,
                    lower_steps=low,
                    upper_steps=high,
                    complement=complement,
                )
            )
        if not complement:
            made.append(Objective(ObjectiveKind.CUMULATIVE, agent, nature, upper_steps=4, reward=reward))
    return made


def by_hand(model: IntervalMDP, objective: Objective, policy: TimeVaryingChoices, steps: int) -> np.ndarray:
    """The value of the policy, backwards in time in plain floats; nature sorts its successors."""
    structure = model.structure
    target = np.zeros(model.states) if objective.target is None else objective.target.astype(float)
    value = target.copy() if objective.kind is ObjectiveKind.UNTIL else np.zeros(model.states)
    for step in range(steps - 1, -1, -1):
        new = np.zeros(model.states)
        for state, choice in enumerate(policy.at(step)):
            entry = slice(structure.transition_start[choice], structure.transition_start[choice + 1])
            low, high = model.lower[entry].copy(), model.upper[entry]
            values = value[structure.successor[entry]]
            order = np.argsort(values if objective.nature is Direction.MIN else -values)
            left = 1 - low.sum()
            for i in order:
                more = min(left, high[i] - low[i])
                low[i] += more
                left -= more
            earned = 0.0 if objective.reward is None else objective.reward.per_choice(structure)[choice]
            new[state] = earned + low @ values
        if objective.kind is ObjectiveKind.UNTIL:
            assert objective.allowed is not None
            if step >= objective.lower_steps:
                new = np.where(target > 0, 1.0, np.where(objective.allowed, new, 0.0))
            else:
                new = np.where(objective.allowed, new, 0.0)
        value = new
    return value


@pytest.mark.costly("test_certified_policies_by_steps_attain_what_is_claimed")
@pytest.mark.parametrize("seed", range(2))
def test_the_policy_by_steps_attains_what_the_solve_says(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    model = interval_model(random)
    for objective in objectives(model, random):
        solution = solve(model, objective, precision=1e-9)
        assert solution.steps is not None
        found = attained(solution, solution.policy)
        low, high = float(solution.lower[0]), float(solution.upper[0])
        assert low - 1e-7 <= found.lower <= found.upper <= high + 1e-7
        if solution.is_certified:
            assert (found.lower, found.upper) == pytest.approx((low, high), abs=1e-7)
        steps = objective.upper_steps if objective.upper_steps is not None else 400
        value = float(by_hand(model, objective, solution.steps, steps)[0])
        value = 1 - value if objective.complement else value
        assert found.lower - 1e-7 <= value <= found.upper + 1e-7
        policy = solution.policy
        with (tmp_path / "p.json").open("w") as file:
            policy.write(file)
        again = Policy(model.structure, tmp_path / "p.json")
        assert again.depends_on_step == policy.depends_on_step
        if again.steps is not None:
            forced = np.diff(model.structure.choice_start) == 1
            for step in range(solution.steps.horizon + 2):
                same = again.steps.at(step) == solution.steps.at(step)
                assert np.all(same | forced)
        assert np.array_equal(solution.steps.first, solution.choice)


def test_runs_backwards_and_by_step_are_the_same() -> None:
    random = np.random.default_rng(5)
    rows = random.integers(0, 3, (9, 7))
    recorder = TimeVaryingRecorder(rows[8], 8)
    for row in rows[7::-1]:
        recorder.before(row)
    policy = recorder.result()
    assert [policy.at(t).tolist() for t in range(9)] == rows.tolist()
    assert policy.at(50).tolist() == rows[8].tolist() and policy.horizon <= 8
    for steps in (0, 1, 4, 9, 12):
        backwards = [row.tolist() for row in policy.backwards(steps)]
        assert backwards == [policy.at(t).tolist() for t in range(steps - 1, -1, -1)]


def test_the_written_robust_policy_attains_the_guarantee(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file used to hold the first decision alone, which is worth less than the guarantee beside it."""
    model = path_of(tmp_path)
    data, out = str(tmp_path / "data.parquet"), tmp_path / "out"
    common = ["--param", "p=0.1:0.9", "--prop", 'Pmax=? [ F<=4 "goal" ]']
    assert run(["sample", model, "--at", "p=0.6", "--episodes", "500", "--prop", common[3], "-o", data]) == 0
    learned = ["learn", model, *common, "--data", data, "--json"]
    capsys.readouterr()
    assert run([*learned, "--sets", "tied", "-o", str(out)]) == 0
    result = json.loads(capsys.readouterr().out)
    text = json.loads((out / "robust-policy.json").read_text())
    assert text["version"] == 2 and text["certified"]["property"] == common[3]
    assert text["certified"]["lower"] == pytest.approx(result["guarantee"], rel=1e-6)
    assert text["certified"]["upper"] == pytest.approx(result["robust_policy"]["upper"], rel=1e-6)
    assert text["certified"]["confidence"] == pytest.approx(0.999)
    by_step = [entry for entry in text["policy"] if isinstance(entry[1], list)]
    assert by_step and by_step[0][1][0][0] == 0
    for name in ("robust", "optimistic"):
        certified = json.loads((out / f"{name}-policy.json").read_text())["certified"]
        file = str(out / f"{name}-policy.json")
        assert run([*learned, "--sets", "tied", "--policy", file]) == 0
        again = json.loads(capsys.readouterr().out)["value"]
        assert again["lower"] == pytest.approx(certified["lower"], rel=1e-6)
        assert again["upper"] == pytest.approx(certified["upper"], rel=1e-6)
    first = {
        entry[0][0]: entry[1][0][1] if isinstance(entry[1], list) else entry[1] for entry in text["policy"]
    }
    memoryless = {"format": "tightrope policy", "version": 1, "model": None, "policy": []}
    memoryless["policy"] = [{"state": {"s": s}, "action": a} for s, a in first.items()]
    (tmp_path / "first.json").write_text(json.dumps(memoryless))
    assert run([*learned, "--sets", "tied", "--policy", str(tmp_path / "first.json")]) == 0
    less = json.loads(capsys.readouterr().out)["value"]["lower"]
    assert less < result["guarantee"] - 0.01, "the first decision alone is worth less here"


def test_commands_follow_a_policy_by_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, policy = path_of(tmp_path), str(tmp_path / "best.json")
    prop = ["--prop", 'Pmax=? [ F<=4 "goal" ]']
    check = ["check", model, "--at", "p=0.6", *prop, "--param", "p=0.1:0.9"]
    assert run([*check, "--policy-out", policy, "--json"]) == 0
    best = json.loads(capsys.readouterr().out)
    certified = json.loads(Path(policy).read_text())["certified"]
    assert certified["lower"] == pytest.approx(best["lower"], abs=1e-9)
    assert run([*check, "--policy", policy, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lower"] == pytest.approx(best["lower"], abs=1e-9)
    data = str(tmp_path / "walks.parquet")
    sample = ["sample", model, "--at", "p=0.6", "--param", "p=0.1:0.9", *prop, "--policy", policy, "-o"]
    assert run([*sample, data, "--episodes", "2000", "--seed", "2"]) == 0
    assert run([*sample, str(tmp_path / "raw.csv"), "--episodes", "50", "--raw"]) == 0
    rows = (tmp_path / "raw.csv").read_text().splitlines()
    assert any("risky" in row for row in rows) and any("safe" in row for row in rows)
    capsys.readouterr()
    unbounded = ["check", model, "--at", "p=0.6", "--prop", 'Pmax=? [ F "goal" ]', "--policy", policy]
    assert run(unbounded) == 2
    assert "properties with a step bound only" in capsys.readouterr().err
    proof = str(tmp_path / "given.cert")
    assert run([*check, "--policy", policy, "--certificate", proof]) == 0
    own = ["--model", model, "--at", "p=0.6", "--param", "p=0.1:0.9", *prop]
    assert run(["verify", proof, *own, "--policy", policy]) == 0
    assert "your model, property, policy\n" in capsys.readouterr().out
    learn = ["learn", model, "--param", "p=0.1:0.9", *prop, "--data", data, "--at", "p=0.6"]
    assert run([*learn, "--policy", "optimal-at-truth"]) == 0
    assert run([*learn, "--policy", "optimal-at-truth", "--certificate", str(tmp_path / "c")]) == 0
    assert run(["verify", str(tmp_path / "c"), "--exact"]) == 0
    assert run([*learn, "--certificate", str(tmp_path / "c")]) == 0
    assert run(["verify", str(tmp_path / "c")]) == 0
    domain = ["check", model, "--param", "p=0.1:0.9", *prop, "--sets"]
    for sets in ("expression", "coupled"):
        assert run([*domain, sets, "--policy", policy]) == 0
        assert run([*domain, sets, "--policy-out", str(tmp_path / f"{sets}.json"), "--verbose"]) == 0
    assert "depends on the step" in capsys.readouterr().out


def test_simulated_values_are_the_certified_ones(tmp_path: Path) -> None:
    """Episodes that follow the policy reach the goal as often as the solver says."""
    from named_models import load_model

    loaded = load_model(path_of(tmp_path), None, "p=0.1:0.9", None)
    mdp = loaded.model.instantiate(loaded.point("p=0.6"))
    goal = mdp.labels["goal"]
    asked = Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MAX, target=goal, upper_steps=4)
    solution = solve(mdp, asked)
    assert solution.steps is not None and solution.steps.horizon > 0
    episodes = 40_000
    walk = Simulator(mdp, solution.policy, goal, 4)
    counts = walk.episodes(episodes, seed=7)
    reached = int(counts.transition[goal[mdp.successor]].sum())
    assert reached / episodes == pytest.approx(float(solution.lower[0]), abs=0.012)
    recorded = np.concatenate([block.transition for block in walk.trajectories(episodes, seed=7)])
    assert np.array_equal(np.bincount(recorded, minlength=mdp.transitions), counts.transition)
    first = Simulator(mdp, solution.policy.at(0), goal, 4).episodes(episodes, seed=7)
    less = int(first.transition[goal[mdp.successor]].sum())
    assert less < reached - 100


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([[[0], [[1, "safe", 0]]]], "the steps begin at 0 and increase"),
        ([[[0], [[0, "safe", 0], [0, "risky", 1]]]], "the steps begin at 0 and increase"),
        ([[[0], [["x", "safe", 0]]]], "does not say from which step on"),
        ([[[0], []]], "does not say from which step on"),
        ([[[0], [[0, "fly", 0]]]], "choice 0 is 'safe', not 'fly'"),
        ([[[7], "safe", 0]], "is not a reachable state"),
        ([[[0, 1], "safe", 0]], "a state is given by the variables s"),
        ([["safe"]], "is not an object"),
    ],
)
def test_wrong_files(tmp_path: Path, entries: list[Any], said: str) -> None:
    from named_models import load_model

    structure = load_model(path_of(tmp_path), None, "p=0.1:0.9", None).model.structure
    head = {"format": "tightrope policy", "version": 2, "variables": ["s"], "policy": entries}
    (tmp_path / "p.json").write_text(json.dumps(head))
    with pytest.raises(InputError, match=said):
        Policy(structure, tmp_path / "p.json")


COSTS = HURRY.replace(
    "label", 'rewards "cost"\n [safe] true : 1;\n [risky] true : 1.5;\n [wait] s=0 : 2;\nendrewards\nlabel'
)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("prop", ['Pmax=? [ F<=4 "goal" ]', 'R{"cost"}max=? [ C<=5 ]'])
def test_the_robust_policy_that_learn_writes_is_the_one_that_is_certified(
    prop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data, proof = path_of(tmp_path, COSTS), str(tmp_path / "walks.csv"), str(tmp_path / "learned.cert")
    known = ["--param", "p=0.1:0.9", "--prop", 'Pmax=? [ F<=4 "goal" ]']
    sample = [
        "sample",
        model,
        *known,
        "--at",
        "p=0.6",
        "--episodes",
        "400",
        "--seed",
        "3",
        "--policy",
        "uniform",
    ]
    assert run([*sample, "-o", data]) == 0
    folder = tmp_path / "results"
    assert run(["learn", model, *known, "--data", data, "--certificate", proof, "-o", str(folder)]) == 0
    policy = folder / "robust-policy.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deadlocks
        saved = Policy(load(model, params={"p": (0.1, 0.9)}), policy)
    assert saved.depends_on_step
    capsys.readouterr()
    own = ["--model", model, *known, "--data", data, "--policy"]
    for exact in ((), ("--exact",)):
        assert run(["verify", proof, *own, str(policy), *exact]) == 0
        assert "your model, property, data, policy\n" in capsys.readouterr().out
    steps = saved.steps
    assert steps is not None
    later = steps.choice.copy()
    place = int(np.flatnonzero(steps.step > 0)[0])
    state = int(np.searchsorted(steps.start, place, side="right")) - 1
    later[place] = next(
        c for c in range(*saved.structure.choice_start[state : state + 2].tolist()) if c != later[place]
    )
    with (tmp_path / "other.json").open("w") as file:
        Policy(saved.structure, TimeVaryingChoices(steps.start, steps.step, later)).write(file, None)
    for other in (str(tmp_path / "other.json"), str(tmp_path / "stationary.json")):
        with (tmp_path / "stationary.json").open("w") as file:
            saved.at(0).write(file, None)
        assert run(["verify", proof, *own, other]) == 1
        assert "other policies than the given one" in capsys.readouterr().err


def test_a_claim_about_another_policy_by_steps_is_not_proved(tmp_path: Path) -> None:
    """The first state is told to wait at a step: what was claimed of the better policy is refused."""
    from tightrope_check.archive import load as load_certificate
    from tightrope_check.checker import check

    model, proof = path_of(tmp_path), str(tmp_path / "given.cert")
    asked = ["--at", "p=0.6", "--param", "p=0.1:0.9", "--prop", 'Pmax=? [ F<=4 "goal" ]']
    policy = str(tmp_path / "best.json")
    assert run(["check", model, *asked, "--policy-out", policy]) == 0
    assert run(["check", model, *asked, "--policy", policy, "--certificate", proof]) == 0
    honest = load_certificate(proof).certificate
    (claim,) = honest.claims
    assert claim.earlier is not None and len(claim.earlier) > 0
    assert check(honest).valid and check(honest, RATIONAL).valid
    start = honest.problem.graph.choice_start
    for step in range(4):
        first = (claim.earlier[:, 1] != 0) | (claim.earlier[:, 0] > step)
        rows = np.concatenate([claim.earlier[first], [[step, 0, start[1] - 1]]])
        rows = rows[np.argsort(-rows[:, 0], kind="stable")]
        waiting = replace(honest, claims=(replace(claim, earlier=rows),))
        for numbers in (FLOAT64, RATIONAL):
            found = check(waiting, numbers)
            assert not found.valid, step
    for wrong in (
        [[4, 0, 0]],
        [[-1, 0, 0]],
        [[1, 5, 0]],
        [[1, 0, start[1]]],
        [[1, 0, 0], [2, 0, 1]],
        [[1, 0, 0]] * 2,
    ):
        with pytest.raises(InputError):
            check(replace(honest, claims=(replace(claim, earlier=np.array(wrong)),)))


def test_certified_policies_by_steps_attain_what_is_claimed() -> None:
    """Against a reference that goes through the steps one by one, on random interval models."""
    random = np.random.default_rng(11)
    for _ in range(repeats(12)):
        model = interval_model(random)
        for objective in objectives(model, random):
            if not (objective.is_bounded or objective.lower_steps):
                continue
            best = solve(model, objective)
            if best.policy.steps is None:
                continue
            again = solve(model, objective, policy=best.policy)
            proof = to_certificate(to_problem(model, objective), again, best.policy)
            assert proof.claims[0].earlier is not None
            verdict = check_certificate(proof)
            assert verdict.valid, (objective, verdict.checks)
            low, high = verdict.values["given policy"]
            initial = model.structure.initial
            assert low - 1e-9 <= best.upper[initial] and best.lower[initial] <= high + 1e-9
