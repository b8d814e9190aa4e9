"""The table of what works with what: the page shows it, and queries are answered or refused as it says.

Also of `cli/info.py`.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from places import TESTS
from tightrope.cli.app import run
from tightrope.model.continuous import over_box
from tightrope.prism.load import load_prism_text
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.properties.capabilities import (
    CAPABILITIES,
    ModelKind,
    QueryKind,
    Task,
    capability_rows,
    capability_table,
    counted,
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
EXAMPLES = [(kind, text) for kind, row in CAPABILITIES.items() for text in row.examples]


def model() -> tr.ParametricMDP:
    built = load_prism_text(MODEL, domain="0.1<=p<=0.9")
    assert isinstance(built, tr.ParametricMDP)
    return built


def test_every_kind_has_a_row_and_the_page_shows_them() -> None:
    assert list(CAPABILITIES) == list(QueryKind)
    page = TESTS.parent / "docs" / "properties.md"
    assert capability_table() in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_examples_are_of_their_kind_and_answered(kind: QueryKind, text: str) -> None:
    file = parse_properties(text, "example")
    assert kind_of(file.properties[0].formula, file) is kind
    tr.solve(tr.Problem(model().instantiate(p=0.6), text))


DATA = [[((0,), "", (1,)), ((1,), "", (3,))]] * 70 + [[((0,), "", (2,))]] * 30


def ask(kind: QueryKind) -> str:
    """The example of a kind, decided by these data where it has a threshold inside."""
    return CAPABILITIES[kind].examples[0].replace("P>=0.5", "P>=0.005")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", QueryKind)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_every_kind_is_learned_about_and_encloses_the_true_value(kind: QueryKind) -> None:
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


def test_most_cells_work_and_others_say_why() -> None:
    (work, size), (most, whole) = counted().values()
    assert (size, whole) == (10 * len(capability_rows()), len(Task) * len(capability_rows()))
    assert work >= 0.85 * size
    page = (TESTS.parent / "docs" / "properties.md").read_text(encoding="utf-8")
    assert f"{work} of {size} ({work / size:.1%})".replace("%", " %") in page
    assert f"{most} of {whole} ({most / whole:.1%})".replace("%", " %") in page
    assert most == sum(row[task.value] == "yes" for row in capability_rows() for task in Task)
    for kind in QueryKind:
        for task in Task:
            if not supports(kind, task):
                with pytest.raises(tr.InputError, match="cannot be used with") as refused:
                    require_task(kind, "this", task)
                assert refused.value.hint


def test_the_command_shows_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["questions", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (work, size), shown = counted()["commands"], told["questions"]
    assert told["cells"]["commands"] == {"work": work, "of": size}
    assert [row["property"] for row in shown][4:] == [kind.value for kind in QueryKind][1:]
    assert run(["questions"]) == 0
    said = capsys.readouterr().out
    assert "long-run average" in said and f"{work} of {size} cells work ({work / size:.1%})" in said


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
    assert "confidence 0.999" in (where / "report.html").read_text(encoding="utf-8")
    assert run(["watch", *given, "--data", log, "--result", str(where)]) == 2
    assert "single episodes do not show its value" in capsys.readouterr().err
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


ROWS = {row["property"]: row for row in capability_rows()}
CHEAPER = {
    'CVaR{"cost",0.9}min=? [ F "goal" ]': 'CVaR{"cost",0.5}min=? [ C<=3 ]',
    'quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])': 'quantile(min k, Pmax>=0.1 [ F<=k "goal" ])',
    'Pmax=? [ F P>=0.5 [ "up" U "goal" ] ]': 'Pmax=? [ F P>=0.005 [ "up" U "goal" ] ]',
}
"""Of the same kind; the last is decided everywhere on the domain."""


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, a log of it, and a policy."""
    folder = tmp_path_factory.mktemp("cells")
    (folder / "m.prism").write_text(MODEL)
    given = [str(folder / "m.prism"), "--param", "p=0.1:0.9", "--at", "p=0.7"]
    words = ["--raw", "--episodes", "60", "--cap", "12", "--seed", "1", "-o", str(folder / "log.parquet")]
    assert run(["sample", *given, *words]) == 0
    reach = ["--prop", 'Pmax=? [ F "goal" ]']
    assert run(["check", *given, *reach, "--policy-out", str(folder / "policy.json")]) == 0
    return folder


def commands(folder: Path, text: str) -> dict[Task, list[str]]:
    """Every task as a user types it; those that write do so under `out`, those that read a result behind
    those that write it."""
    given = [str(folder / "m.prism"), "--param", "p=0.1:0.9"]
    at, policy = ["--at", "p=0.7"], ["--policy", str(folder / "policy.json")]
    data, out = ["--data", str(folder / "log.parquet")], folder / "out"
    learn = ["learn", *given, *data, "--sets", "quick", "--prop", text]
    return {
        Task.CHECK: ["check", *given, *at, "--prop", text],
        Task.DOMAIN: ["check", *given, "--sets", "expression", "--prop", text],
        Task.POLICY: ["check", *given, *at, *policy, "--prop", text],
        Task.POLICY_OUT: ["check", *given, *at, "--policy-out", str(out / "policy.json"), "--prop", text],
        Task.CERTIFICATE: ["check", *given, *at, "--certificate", str(out / "check.cert"), "--prop", text],
        Task.LEARN: [*learn, "-o", str(out / "learned")],
        Task.LEARN_POLICY: [*learn, *policy],
        Task.LEARN_CERTIFICATE: [*learn, "--certificate", str(out / "learn.cert")],
        Task.REPORT: ["report", str(out / "learned")],
        Task.ONLINE: ["online", *given, *at, "--episodes", "2", "--cap", "9", "--prop", text],
        Task.PLAN: ["plan", *given, *data, "--gap", "50%", "--prop", text],
        Task.WATCH: ["watch", *given, *data, "--result", str(out / "learned")],
    }


WRITTEN = {
    Task.POLICY_OUT: "policy.json",
    Task.CERTIFICATE: "check.cert",
    Task.LEARN: "learned",
    Task.LEARN_CERTIFICATE: "learn.cert",
    Task.REPORT: "learned/report.html",
}


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.usefixtures("empty_pictures")
def test_every_cell_is_as_the_table_says(
    name: str, subject: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every task is run: what works ends with 0, and what is written is there and proves itself; what does
    not ends with 2, a reason and what to do instead, and writes nothing."""
    row, out = ROWS[name], subject / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for task, words in commands(subject, CHEAPER.get(row["example"], row["example"])).items():
        written = out / WRITTEN[task] if task in WRITTEN else None
        code, shown = run(words), capsys.readouterr()
        message = " ".join(shown.err.split())
        if row[task.value] == "yes":
            assert code == 0, (task, message)
            assert written is None or written.exists(), task
            assert written is not None or shown.out, task
        else:
            assert code == 2 and "hint: " in message, (task, message)
            assert f"{task.word} cannot be used with" in message or "cannot be watched" in message, (
                task,
                message,
            )
            assert written is None or not written.exists()
        if written is not None and written.suffix == ".cert" and written.exists():
            assert run(["verify", str(written)]) == 0, task


def of_kind(kind: ModelKind) -> Any:
    """A model of every kind with the states of `MODEL`."""
    fixed = MODEL.replace("const double p;", "const double p = 0.6;").partition("\n")[2]
    seen = fixed.replace("x : [0..3];", "x : [0..3]; y : bool;").replace("[] x", "[go] x")
    spread = "[0.5,0.7] : (x'={}) + [0.3,0.5] : (x'={})"
    loose = fixed.replace("p : (x'=1) + 1-p : (x'=2)", spread.format(1, 2))
    return {
        ModelKind.PLAIN: "dtmc\n" + fixed,
        ModelKind.INTERVAL: "mdp\n" + loose.replace("p : (x'=3) + 1-p : (x'=0)", spread.format(3, 0)),
        ModelKind.CONTINUOUS: "ctmc\n" + fixed,
        ModelKind.RATE_INTERVALS: MODEL.replace("dtmc", "ctmc").replace("1-p", "2-p"),
        ModelKind.AUTOMATON: "ma\n" + fixed.replace("[] x", "<> x").replace("<> x=2", "[] x=2"),
        ModelKind.OBSERVED: "pomdp\nobservables y endobservables\n" + seen,
    }[kind]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", ModelKind)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning", "ignore::UserWarning")
def test_models_answer_what_the_table_says(kind: ModelKind, tmp_path: Path) -> None:
    (tmp_path / "m.prism").write_text(of_kind(kind))
    is_uncertain = kind is ModelKind.RATE_INTERVALS
    model = tr.load(tmp_path / "m.prism", params="p=0.5:0.7" if is_uncertain else None)
    if is_uncertain:
        model = over_box(model, model.parameters.lower, model.parameters.upper)
    for row in ROWS.values():
        text = re.sub(r'\b([PRS])(\{"cost"\})?=\?', r"\1\2max=?", row["example"]).replace(
            "P>=0.5", "P>=0.005"
        )
        if row[kind.value] == "yes":
            answer = tr.solve(model, text)
            assert getattr(answer, "truth", None) or answer.bounds[0] <= answer.bounds[1], text
            continue
        with pytest.raises(tr.InputError) as refused:
            tr.solve(model, text)
        assert refused.value.hint, text


def test_a_refusal_names_the_option_the_property_and_the_reason() -> None:
    query = parse_query('A [ F "goal" ]', model().structure)
    with pytest.raises(tr.InputError, match=r"--certificate cannot be used with A \[.*\]: certificates are"):
        query.require(Task.CERTIFICATE)
    query.require(Task.CHECK)
