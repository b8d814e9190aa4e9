"""Questions answered from a part of a large model: the bounds of every part hold for the whole one."""

from __future__ import annotations

import json
import runpy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import stormpy

from benchmark_script import BENCHMARKS
from tightrope.cli.app import run
from tightrope.model.objective import ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.explore import search
from tightrope.prism.explore.search import ModelPart
from tightrope.prism.load import build_model, read_text
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.properties.query import BoundaryOf, read_query
from tightrope.problem import Problem
from tightrope.solver.part import PartSolver, enclosing, is_enclosed
from tightrope.solver.solution import SolveOptions
from tightrope.solver.solve import Workspace, solve

SCRIPT = runpy.run_path(str(BENCHMARKS / "large_models.py"))

QUESTIONS = (
    'Pmax=? [ F "goal" ]',
    'Pmin=? [ F "goal" ]',
    'Pmax=? [ "safe" U "goal" ]',
    'Pmin=? [ F<=5 "goal" ]',
    'Pmax=? [ G !"goal" ]',
    'Pmin=? [ "goal" R "safe" ]',
    "Rmin=? [ F s>=20 ]",
    "Rmax=? [ F s>=20 ]",
)


def random_model(seed: int, states: int = 30) -> str:
    """An MDP over one variable, with two choices everywhere, one of which may be to stay."""
    generator = np.random.default_rng(seed)
    table = [f"(s={state} ? {to} : 0)" for state, to in enumerate(generator.integers(0, states, states))]
    goals = " | ".join(f"s={s}" for s in generator.integers(5, states, size=3).tolist())
    return f"""mdp
formula jump = {" + ".join(table)};
module walk
  s : [0..{states - 1}] init 0;
  [] true -> 0.6 : (s'=min(s+1, {states - 1})) + 0.4 : (s'=max(s-2, 0));
  [] mod(s, 5)!=0 -> 0.7 : (s'=jump) + 0.3 : (s'=s);
  [] mod(s, 7)=0 -> true;
endmodule
label "goal" = {goals};
label "safe" = mod(s, 11)!=9;
rewards
  s<20 : 1;
  [] s>=10 : 2;
endrewards
"""


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FIRST_PART", 6)
    monkeypatch.setattr(search, "PART_GROWTH", 2)


def problem_of(model: ParametricMDP, text: str) -> Problem:
    file = parse_properties(text, "--prop")
    return Problem(model.instantiate(()), read_query(file.properties[0], file, model.structure))


@dataclass
class Recorder(PartSolver):
    """Records the bounds of every part, and goes on until nothing waits."""

    seen: list[tuple[float, float]] = field(default_factory=list)

    def __call__(self, part: ModelPart) -> bool:
        problem = self.ask(part.model)
        assert is_enclosed(problem.objective, part)
        ends = [solve(problem.model, each) for each in enclosing(problem.objective, part.waiting)]
        below, above = ends[::-1] if problem.objective.complement else ends
        self.seen.append((float(below.lower[0]), float(above.upper[0])))
        return False


@pytest.mark.thinned(3)
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("text", QUESTIONS)
def test_every_part_encloses_the_value_of_the_whole(text: str) -> None:
    parts = 0
    for seed in range(3):
        program, asked = read_text(random_model(seed)), partial(problem_of, text=text)
        exact = solve(asked(build_model(program).model))
        low, high = float(exact.lower[0]), float(exact.upper[0])
        boundary = BoundaryOf((parse_properties(text, "--prop"),), {})
        recorder = Recorder(asked, SolveOptions(), Workspace())
        build_model(program, boundary=boundary, judge=recorder)
        for lower, upper in recorder.seen:
            assert lower <= high
            assert upper >= low
        parts += len(recorder.seen)
        judge = PartSolver(asked, SolveOptions(), Workspace())
        read = build_model(program, boundary=boundary, judge=judge)
        if judge.solution is not None:
            assert read.is_partial
            assert len(recorder.seen) > 0
            lower, upper = judge.solution.bounds
            assert lower <= high
            assert upper >= low
            assert lower == upper or upper - lower <= 1e-6 * upper
    assert parts >= 3


@pytest.mark.usefixtures("small_parts")
def test_a_threshold_is_decided_by_bounds_that_are_wide() -> None:
    program = read_text(FAR.replace("COST", "1"))
    for text, truth in (("P>0.4 [ F x=1 ]", "true"), ("P>0.6 [ F x=1 ]", None), ("P<0.4 [ F x=1 ]", "false")):
        judge = PartSolver(partial(problem_of, text=text), SolveOptions(), Workspace())
        boundary = BoundaryOf((parse_properties(text, "--prop"),), {})
        read = build_model(program, boundary=boundary, judge=judge)
        assert (None if judge.solution is None else judge.solution.truth) == truth
        assert (read.model.states < 20) == (truth is not None)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("kind", "each"), [("philosophers", 1), ("exclusion", 3)])
def test_large_models_are_answered_from_what_lies_near(
    kind: str, each: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Storm's values of the small instance are those of the large one, whose states nobody could list."""
    small, large = tmp_path / "small.prism", tmp_path / "large.prism"
    small.write_text(SCRIPT["MODELS"][kind](3), encoding="utf-8")
    large.write_text(SCRIPT["MODELS"][kind](12), encoding="utf-8")
    program = stormpy.parse_prism_program(str(small))
    for asked in SCRIPT["QUESTIONS"][::each]:
        properties = stormpy.parse_properties(asked, program)
        model = stormpy.build_model(program, properties)
        value = stormpy.model_checking(model, properties[0]).get_value(model.initial_states[0])
        assert run(["check", str(large), "--prop", asked, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["verdict"] == "proved"
        assert not found["built"]["all"]
        assert found["built"]["states"] < 40_000
        assert found["lower"] - 1e-5 <= value <= found["upper"] + 1e-5
    assert run(["check", str(large), "--prop", SCRIPT["QUESTIONS"][0], "--verbose"]) == 0
    assert "states, enough for this question (--build-all)" in capsys.readouterr().out


FAR = """mdp
module walk
  x : [0..60] init 0;
  [near] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2);
  [far] x>=2 & x<60 -> (x'=x+1);
endmodule
label "near" = x=1;
rewards "cost"
  x<50 : 1;
  x>=50 : COST;
endrewards
"""


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("options", "states"),
    [
        (["--prop", "P>0.4 [ F x=1 ]"], 9),
        (["--prop", "P>0.4 [ F x=1 ]", "--build-all"], 61),
        (["--prop", "P>0.4 [ F x=1 ]", "--all-states"], 61),
        (["--prop", 'P>0.4 [ F "near" | "deadlock" ]'], 61),
        (["--prop", "P>0.4 [ F x=1 ]", "--prop", "P>0.4 [ F x=2 ]"], 61),
        (["--prop", 'R{"cost"}>4.5 [ F x=1 | x=59 ]'], 14),
    ],
)
def test_check_builds_no_more_than_it_needs(
    options: list[str], states: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "far.prism"
    path.write_text(FAR.replace("COST", "1"), encoding="utf-8")
    assert run(["check", str(path), *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert abs(found["built"]["states"] - states) <= 3


def test_rewards_that_may_be_negative_far_away_are_not_bounded_by_parts() -> None:
    """The least reward until x is 60 is below anything that is earned near."""
    seen = []

    def judge(part: ModelPart) -> bool:
        file = parse_properties('R{"cost"}min=? [ F x=60 | x=1 ]', "--prop")
        objective = read_query(file.properties[0], file, part.model.structure).objective
        assert objective.kind is ObjectiveKind.REACH_REWARD
        seen.append(is_enclosed(objective, part))
        return False

    stop = parse_properties('R{"cost"}min=? [ F x=60 | x=1 ]', "--prop")
    for cost, known in (("1", True), ("-100", False), ("x-100", False)):
        seen.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search, "FIRST_PART", 6)
            program = read_text(FAR.replace("COST", cost))
            build_model(program, boundary=BoundaryOf((stop,), {}), judge=judge)
        assert seen == [known] * len(seen) != []
