"""The table of what works with what: the page shows it, and queries are answered or refused as it says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.prism.load import load_prism_text
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.properties.capabilities import (
    CAPABILITIES,
    ModelKind,
    QueryKind,
    Task,
    capability_rows,
    capability_table,
    require_task,
    supports,
)
from tightrope.prism.properties.query import parse_query
from tightrope.prism.properties.shape import kind_of

MODEL = """dtmc
const double p;
formula a = x=1;
formula b = x=3;
module m
  x : [0..3];
  [] x=0 -> p : (x'=1) + 1-p : (x'=2);
  [] x=1 -> p : (x'=3) + 1-p : (x'=0);
  [] x=2 -> 0.5 : (x'=0) + 0.5 : (x'=1);
  [] x=3 -> 1 : true;
endmodule
label "goal" = x=3;
label "up" = x<2;
label "crash" = x>3;
label "a" = x=1;
label "b" = x=3;
rewards "cost"
  x<3 : 1;
endrewards
"""
CHAIN = MODEL.replace("dtmc", "ctmc").replace("const double p;", "const double p = 0.6;")
EXAMPLES = [(kind, text) for kind, row in CAPABILITIES.items() for text in row.examples]


def model() -> tr.ParametricMDP:
    built = load_prism_text(MODEL, domain="0.1<=p<=0.9")
    assert isinstance(built, tr.ParametricMDP)
    return built


def test_every_kind_has_a_row_and_the_page_shows_them() -> None:
    assert list(CAPABILITIES) == list(QueryKind)
    page = Path(__file__).parents[1] / "docs" / "properties.md"
    assert capability_table() in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_examples_are_of_their_kind_and_answered(kind: QueryKind, text: str) -> None:
    file = parse_properties(text, "example")
    assert kind_of(file.properties[0].formula, file) is kind
    tr.solve(tr.Problem(model().instantiate(p=0.6), text))


@pytest.mark.parametrize("kind", QueryKind)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_continuous_time_takes_what_the_table_says(kind: QueryKind, tmp_path: Path) -> None:
    (tmp_path / "chain.prism").write_text(CHAIN)
    chain, row = tr.load(tmp_path / "chain.prism"), CAPABILITIES[kind]
    problem = tr.Problem(chain, row.examples[0])
    if ModelKind.CONTINUOUS in row.models:
        tr.solve(problem)
        return
    with pytest.raises(tr.InputError, match="in continuous time"):
        tr.solve(problem)


DATA = [[((0,), "", (1,)), ((1,), "", (3,))]] * 70 + [[((0,), "", (2,))]] * 30


def ask(kind: QueryKind) -> str:
    """The example of a kind, decided by these data where it has a threshold inside."""
    return CAPABILITIES[kind].examples[0].replace("P>=0.5", "P>=0.05")


@pytest.mark.parametrize("kind", QueryKind)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_every_kind_is_learned_about_and_encloses_the_truth(kind: QueryKind) -> None:
    problem = tr.Problem(model(), ask(kind))
    truth = tr.solve(problem.at(p="0.7"))
    for result in (
        tr.learn(problem, DATA),
        tr.learn(problem, DATA, policy=tr.Policy.of_choices(model().structure, np.arange(4))),
        tr.solve(problem, sets="expression"),
    ):
        if getattr(truth, "truth", None) is not None:
            assert result.truth == truth.truth
        else:
            low, high = truth.bounds
            assert result.interval.lower <= high and low <= result.interval.upper


@pytest.mark.parametrize("kind", QueryKind)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_every_kind_is_planned_for(kind: QueryKind) -> None:
    problem = tr.Problem(model(), ask(kind))
    made = tr.plan(problem, DATA, gap="50%", region="polytope", within_cap=50)
    assert made.status.is_answered


def test_most_cells_work_and_others_say_why() -> None:
    columns = [task for task in Task if task not in (Task.POLICY, Task.POLICY_OUT, Task.LEARN_CERTIFICATE)]
    assert len(columns) == 10
    cells = [row[task.value] for row in capability_rows() for task in columns]
    assert cells.count("yes") >= 0.85 * len(cells)
    for kind in QueryKind:
        for task in Task:
            if not supports(kind, task):
                with pytest.raises(tr.InputError, match="does not go with") as refused:
                    require_task(kind, "this", task)
                assert refused.value.hint


def test_the_command_shows_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["questions", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["questions"]
    assert [row["property"] for row in shown][4:] == [kind.value for kind in QueryKind][1:]
    assert run(["questions"]) == 0
    assert "long-run average" in capsys.readouterr().out


def test_an_answer_has_a_directory_and_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.prism").write_text(MODEL.replace("[] x=3 -> 1 : true", "[] x=3 -> 1 : (x'=0)"))
    given = [str(tmp_path / "m.prism"), "--param", "p=0.1:0.9"]
    log, where = str(tmp_path / "log.parquet"), tmp_path / "out"
    words = ["--at", "p=0.7", "--episodes", "40", "--cap", "9", "--seed", "1", "-o", log]
    assert run(["sample", *given, *words]) == 0
    asked = ["learn", *given, "--data", log]
    assert run([*asked, "--prop", 'R{"cost"}=? [ S ]', "-o", str(where)]) == 0
    assert sorted(file.name for file in where.iterdir())[:2] == ["answer.json", "policy.json"]
    assert run(["report", str(where)]) == 0
    assert "with confidence 0.999" in (where / "report.html").read_text(encoding="utf-8")
    assert run(["watch", *given, "--data", log, "--result", str(where)]) == 2
    assert "single episodes do not show what was promised" in capsys.readouterr().err
    assert run([*asked, "--prop", "R=? [ I=4 ]", "--policy", str(where / "policy.json"), "--json"]) == 0
    assert run(["plan", *given, "--data", log, "--prop", 'R{"cost"}=? [ C<=4 ]', "--gap", "0.1"]) == 0
    shown = capsys.readouterr()
    assert "as so far" in shown.out and "[inf, inf]" not in shown.out
    collect = ["online", *given, "--at", "p=0.7", "--episodes", "8", "--cap", "9", "--json"]
    assert run([*collect, "--prop", 'R{"cost"}=? [ S ]']) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["episode"] for line in lines] == [1, 2, 4, 8]
    assert all(line["lower"] < line["upper"] for line in lines)
    assert run(["check", *given, "--sets", "expression", "--prop", "P=? [ F x=3 {x=1} ]", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lower"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in QueryKind if not supports(kind, Task.CERTIFICATE)])
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_certificates_refuse_the_others(kind: QueryKind, tmp_path: Path) -> None:
    problem = tr.Problem(model().instantiate(p=0.6), CAPABILITIES[kind].examples[0])
    with pytest.raises(tr.InputError):
        tr.certify(problem, tmp_path / "x.cert")
    assert not (tmp_path / "x.cert").exists()


def test_commands_refuse_what_the_table_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every refusing cell of certificates and policies, through the command that it is about."""
    (tmp_path / "m.prism").write_text(MODEL)
    (tmp_path / "log.csv").write_text("state,next_state\n0,1\n")
    given, where = [str(tmp_path / "m.prism"), "--param", "p=0.1:0.9"], tmp_path / "out.file"
    cells = {
        Task.CERTIFICATE: ["check", *given, "--at", "p=0.6", "--certificate", str(where)],
        Task.POLICY_OUT: ["check", *given, "--at", "p=0.6", "--policy-out", str(where)],
        Task.LEARN_CERTIFICATE: ["learn", *given, "--data", str(tmp_path / "log.csv"), "--certificate"],
    }
    cells[Task.LEARN_CERTIFICATE].append(str(where))
    refused = [(kind, task) for kind in QueryKind for task in cells if not supports(kind, task)]
    assert len(refused) >= 25
    for kind, task in refused:
        assert run([*cells[task], "--prop", ask(kind)]) == 2
        shown = " ".join(capsys.readouterr().err.split())
        assert f"{task.word} does not go with" in shown and "hint: leave" in shown
        assert not where.exists()


def test_a_refusal_names_the_option_the_property_and_the_reason() -> None:
    query = parse_query('A [ F "goal" ]', model().structure)
    with pytest.raises(tr.InputError, match=r"--certificate does not go with A \[.*\]: certificates are"):
        query.require(Task.CERTIFICATE)
    query.require(Task.CHECK)
