"""The library as its page shows it: every line, on a small grid with an unknown slip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

import tightrope as tr
from places import TESTS
from tightrope.ambiguity.sets import SetsKind
from tightrope.cli.app import run
from tightrope.model.objective import ObjectiveKind
from tightrope.solver.solution import Status

GRID = """mdp
const int n;
const double p;
module rover
  x : [0..n] init 0;
  y : [0..n] init 0;
  [east] x<n -> p : (x'=x+1) + 1-p : true;
  [stay] x=n & y=n -> true;
  [north] y<n -> p : (y'=y+1) + 1-p : true;
endmodule
label "goal" = x=n & y=n;
rewards "steps" true : 1; endrewards
"""
"""Everything is reached surely; how long it takes is what the slip decides."""

DONE = 'Rmin=? [ F "goal" ]'


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("library")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "model.prism").write_text(GRID)
        matplotlib.use("Agg")
        source = ["model.prism", "--const", "n=2", "--param", "p=0.1:0.9", "--at", "p=0.6"]
        assert run(["sample", *source, "--episodes", "300", "--seed", "1", "-o", "log.parquet"]) == 0
        yield folder


@pytest.fixture(scope="module")
def model(here: Path) -> tr.ParametricMDP:
    loaded = tr.load("model.prism", const={"n": 2}, params={"p": (0.1, 0.9)})
    assert isinstance(loaded, tr.ParametricMDP)
    return loaded


@pytest.fixture(scope="module")
def result(model: tr.ParametricMDP) -> tr.LearningResult:
    problem = tr.Problem(model, DONE)
    data = tr.read_data("log.parquet", model, columns={"action": "action"})
    return tr.learn(problem, data, delta=0.001)


def test_load_takes_every_format(here: Path, model: tr.ParametricMDP) -> None:
    model.save("model.drn")
    assert tr.load("model.drn").hash() == tr.load(here / "model.drn").hash()
    plain = model.instantiate(p=0.5)
    plain.save("plain")
    plain.save("plain.umb")
    assert tr.load("plain.tra").states == tr.load("plain").states == tr.load("plain.umb").states == 9
    assert tr.load("bench:rover(4,4)").states > 100


def test_a_problem_is_made_of_a_model_and_a_property(model: tr.ParametricMDP) -> None:
    problem = tr.Problem(model, DONE)
    assert problem.objective.kind is model.problem(DONE).objective.kind is ObjectiveKind.REACH_REWARD
    by_constant = model.problem("Pmax=? [ F x=n & y=n ]")
    assert by_constant.objective.target is not None
    assert by_constant.objective.target.tolist() == model.labels["goal"].tolist()
    assert not problem.maximises and by_constant.maximises


def test_learning_gives_plain_names(result: tr.LearningResult) -> None:
    truth = 4 / 0.6
    assert result.interval.lower <= truth <= result.interval.upper == result.guarantee < 8
    assert list(result.parameters) == ["p"] and 0.6 in result.parameters["p"]
    assert result.problem.text == DONE and result.options == tr.LearnOptions()


def test_data_come_in_any_form(model: tr.ParametricMDP, result: tr.LearningResult) -> None:
    import pyarrow.parquet

    reading = tr.read_data("log.parquet", model)
    for data in (reading, reading.counts, "log.parquet", Path("log.parquet")):
        assert tr.learn(result.problem, data, delta=0.001).interval == result.interval
    frame = pyarrow.parquet.read_table("log.parquet").to_pandas()
    by_frame = tr.read_data(frame, model, states="index")
    assert by_frame.counts.transition.tolist() == reading.counts.transition.tolist()
    assert tr.learn(result.problem, by_frame, delta=0.001).guarantee >= result.guarantee - 1e-9


def test_progress_is_said_on_stderr(result: tr.LearningResult, capsys: pytest.CaptureFixture[str]) -> None:
    tr.learn(result.problem, "log.parquet", delta=0.001, sets="tied", progress=True)
    assert "tightrope: solve: the robust policy\n" in capsys.readouterr().err
    said: list[str] = []
    tr.learn(result.problem, "log.parquet", delta=0.001, sets="tied", progress=said.append)
    assert said[0] == "statistics"


def test_solving_at_a_point_and_of_intervals(model: tr.ParametricMDP, result: tr.LearningResult) -> None:
    solution = tr.solve(result.problem.at(p=0.55))
    assert solution.lower[0] <= 4 / 0.55 <= solution.upper[0]
    assert solution.status is Status.CERTIFIED
    interval_model = result.sets.interval_model()
    with pytest.warns(tr.ReadingWarning, match=r"read as R\{?.*minmin=\?"):
        kind = tr.solve(interval_model, DONE, threads=4)
    robust = tr.solve(interval_model, 'Rminmax=? [ F "goal" ]')
    assert kind.upper[0] < robust.upper[0] == pytest.approx(result.guarantee, rel=1e-4)


def test_one_shape_for_the_other_calls(result: tr.LearningResult) -> None:
    problem = result.problem
    every = tr.learn_all(problem, "log.parquet", delta=0.001, kinds=["tied", SetsKind.EXPRESSION])
    assert list(every) == [SetsKind.TIED, SetsKind.EXPRESSION]
    over = tr.solve(problem, sets="expression")
    assert over.interval.upper == pytest.approx(40) and over.counts is None
    learner = tr.online(problem, delta=0.001, sets="tied")
    update = learner.observe([({"x": 0, "y": 0}, "east", {"x": 1, "y": 0})])
    assert update is not None and update.episode == 1


def test_a_float_is_its_decimal_everywhere(model: tr.ParametricMDP) -> None:
    exact = tr.Parameters.box(p=(0.3, 0.7))
    assert exact.text() == "3/10<=p<=7/10" and exact.contains([0.3]) and exact.contains({"p": 0.3})
    narrow = tr.load("model.prism", const={"n": 2}, params={"p": (0.3, 0.7)})
    assert isinstance(narrow, tr.ParametricMDP)
    for point in ([0.3], {"p": 0.3}, {"p": "0.3"}, {"p": "3/10"}):
        assert narrow.instantiate(point).hash() == narrow.instantiate(p=0.3).hash()


CLIFF = """mdp
const int n;
const double p;
module rover
  x : [-1..n] init 0;
  y : [0..n] init 0;
  [east] x>=0 & x<n -> p : (x'=x+1) + 1-p : (x'=-1) & (y'=0);
  [north] x>=0 & y<n -> (1+p)/2 : (y'=y+1) + (1-p)/2 : (x'=-1) & (y'=0);
  [stay] x=-1 | (x=n & y=n) -> true;
endmodule
label "goal" = x=n & y=n;
label "done" = x=-1 | (x=n & y=n);
rewards "steps" true : 1; endrewards
"""


def test_every_line_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of `docs/python.md`, as it is written there."""
    page = TESTS.parent / "docs" / "python.md"
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    Path("model.prism").write_text(CLIFF)
    source = ["model.prism", "--const", "n=5", "--param", "p=0.1:0.9", "--at", "p=0.8"]
    assert run(["sample", *source, "--episodes", "200", "--seed", "1", "-o", "log.parquet"]) == 0
    names: dict[str, Any] = {"np": np}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, page.name, "exec"), names)
    result, again = names["result"], names["again"]
    assert result.guarantee == again.guarantee > 0.01
    assert result.guarantee <= 0.8**5 * 0.9**5 <= result.interval.upper
    assert names["verdict"].valid and names["verdict"].not_tied == ("property", "policy")
    assert names["solution"].is_certified
    assert Path("report.html").stat().st_size > 10_000
    assert isinstance(names["model"], tr.ParametricMDP) and names["model"].states == 3


def test_values_are_certified_from_python(model: tr.ParametricMDP, here: Path) -> None:
    problem = model.problem(DONE)
    proved = tr.certify(problem, here / "value.cert", at={"p": 0.55})["value"]
    verdict = tr.verify(here / "value.cert", model=model, property=DONE, at={"p": 0.55})
    assert verdict.valid and verdict.not_tied == ()
    solution = tr.solve(problem.at(p=0.55))
    assert verdict.values["value"] == (float(solution.lower[0]), float(solution.upper[0]))
    assert verdict.values["value"] == (proved.lower, proved.upper)
    with pytest.raises(tr.InputError, match="no value for parameter 'p'"):
        tr.certify(problem, here / "other.cert")
