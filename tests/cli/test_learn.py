"""`tightrope learn` and `tightrope demo`: JSON keys, exit codes, tables, files that are whole or absent."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from learning_cases import case, counts_of
from tightrope.cli.app import run
from tightrope.cli.learn_run import leave_with
from tightrope.cli.output import set_common
from tightrope.cli.result_display import BAR, bar, list_certified_facts, show_result
from tightrope.io.results import Interval
from tightrope.learning.learn import learn
from tightrope.verdict import Assessment

pytestmark = pytest.mark.usefixtures("built_once")

MODEL = "bench:betting(8)"
KEYS = {"empty", "fallback", "value", "robust_policy", "widths", "ledger", "seconds"}

COINS = """mdp
const double p;
module coins
  s : [0..2] init 0;
  [a] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [b] s=0 -> p/2 : (s'=1) + 1-p/2 : (s'=2);
  [stay] s>0 -> true;
endmodule
label "won" = s=1;
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "betting.parquet"
    assert run(["sample", MODEL, "--episodes", "2000", "--seed", "3", "-o", str(file)]) == 0
    return file


@pytest.fixture
def coins(tmp_path: Path) -> tuple[Path, Path]:
    """A model and counts that contradict it."""
    model, file = tmp_path / "coins.prism", tmp_path / "coins.csv"
    model.write_text(COINS)
    rows = ["0,a,1,900", "0,a,2,100", "0,b,1,100", "0,b,2,900"]
    file.write_text("s,action,s_next,count\n" + "\n".join(rows) + "\n")
    return model, file


def answer(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    assert run(["learn", *arguments, "--json"]) == code
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    result: dict[str, Any] = json.loads(out)
    return result


def test_the_keys_of_the_design(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, MODEL, "--data", str(data), "--delta", "0.01")
    assert set(result) >= KEYS
    assert (result["empty"], result["fallback"], result["value"]) == (False, False, None)
    assert set(result["seconds"]) == {"build", "statistics", "region", "sets", "fit", "solve"}
    assert result["robust_policy"]["lower"] == result["guarantee"] < result["robust_policy"]["upper"]
    assert (result["region"], result["sets"]) == ("joint", "rectangular")
    assert len(result["reasons"]) == 3 and "forecast" in result["reasons"][2]
    assert result["ledger"]["delta"] == 0.01
    assert result["widths"]["expressions"] == 372
    assert set(result["widths"]["parameters"]) == {"p", "q"}
    assert result["verdict"] == "proved" and result["status"] == "as close as was asked"


def test_a_policy_and_all_sets(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(
        capsys,
        MODEL,
        "--data",
        str(data),
        "--sets",
        "all",
        "--region",
        "polytope",
        "--policy",
        "optimal-at-truth",
        "-o",
        str(tmp_path / "out"),
    )
    rows = {row["sets"]: row["value"] for row in result["all"]}
    assert list(rows) == ["untied", "tied", "parameter", "expression", "rectangular", "coupled"]
    true = result["true_value"]["lower"]
    for value in rows.values():
        assert value["lower"] <= true <= value["upper"]
    width = {sets: value["upper"] - value["lower"] for sets, value in rows.items()}
    assert width["tied"] > width["expression"] >= width["rectangular"] * (1 - 1e-6)
    assert width["coupled"] <= width["rectangular"]
    assert result["output"] == str(tmp_path / "out")
    written = json.loads((tmp_path / "out" / "result.json").read_text())
    assert written["truth"]["at"] == {"p": "0.55", "q": "0.0004"}
    assert [r["sets"] for r in written["results"]] == list(rows)
    for entry in written["results"]:
        assert all((tmp_path / "out" / name).is_file() for name in entry["files"])


def test_the_written_policy_can_be_given_again(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = (MODEL, "--data", str(data), "--sets", "expression")
    first = answer(capsys, *common, "-o", str(tmp_path / "out"))
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == [
        "optimistic-policy.json",
        "result.json",
        "robust-policy.json",
        "tightrope-manifest.json",
    ]
    again = answer(capsys, *common, "--policy", str(tmp_path / "out" / "robust-policy.json"))
    assert again["value"]["lower"] == pytest.approx(first["robust_policy"]["lower"], rel=1e-6)
    assert again["value"]["upper"] == pytest.approx(first["robust_policy"]["upper"], rel=1e-6)


def test_the_learned_model_is_checked_to_the_same_values(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    result = answer(
        capsys, MODEL, "--data", str(data), "--sets", "tied", "-o", str(out), "--export", "drn,explicit"
    )
    for file in ("learned.drn", "learned.tra"):
        for prop, expected in (("Rmaxmin", result["guarantee"]), ("Rmaxmax", result["optimistic"])):
            assert run(["check", str(out / file), "--prop", f'{prop}=? [ F "done" ]', "--json"]) == 0
            checked = json.loads(capsys.readouterr().out)
            assert checked["lower"] == pytest.approx(expected, rel=2e-6)


def test_tables_fit_into_80_columns_and_explain_themselves(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["learn", MODEL, "--data", str(data)]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 10
    for word in ("PROVED: ", "property", "value", "policy ", "parameters", "model fit"):
        assert word in text
    assert run(["learn", MODEL, "--data", str(data), "--verbose"]) == 0
    text = capsys.readouterr().out
    assert run(["learn", MODEL, "--data", str(data), "--sets", "all", "--policy", "optimal-at-truth"]) == 0
    table = capsys.readouterr().out
    for line in (text + table).splitlines():
        assert len(line) <= 80
    for word in ("any policy", "default", "budget", "widths", "memory", "import"):
        assert word in text
    for word in ("untied", "tied", "parameter", "expression", "rectangular", "━", "│", "confidence"):
        assert word in table


def test_bars() -> None:
    assert bar(Interval(0.0, 1.0), 0.0, 1.0) == "━" * BAR
    assert bar(Interval(0.0, 0.0), 0.0, 1.0) == "━" + " " * (BAR - 1)
    assert bar(Interval(0.5, math.inf), 0.0, 1.0).endswith("━▶")
    assert bar(Interval(-5.0, 0.0), 0.0, 1.0).startswith("◀")
    assert bar(Interval(0.2, 0.8), 0.0, 1.0, 0.5).count("│") == 1
    assert len(bar(Interval(2.0, 2.0), 2.0, 2.0, 2.0)) == BAR


def test_a_certificate_that_is_not_written_leaves_none_of_this_run(
    coins: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What an earlier run wrote under the name is said to be of that run, and is left as it is."""
    model, file = coins
    fitting, proof = tmp_path / "fitting.csv", tmp_path / "coins.cert"
    fitting.write_text("s,action,s_next,count\n0,a,1,900\n0,a,2,100\n0,b,1,450\n0,b,2,550\n")
    common = (str(model), "--prop", 'Pmax=? [ F "won" ]', "--certificate", str(proof))
    refused = "warning: no certificate is written: the data contradict the model"
    assert run(["learn", *common, "--data", str(file)]) == 1
    said = capsys.readouterr().err
    assert refused in said and "earlier" not in said and not proof.exists()
    run(["learn", *common, "--data", str(fitting)])
    earlier = proof.read_bytes()
    capsys.readouterr()
    assert run(["learn", *common, "--data", str(file)]) == 1
    said = capsys.readouterr().err
    assert refused in said and f"; {proof} is from an earlier run\n" in said
    assert proof.read_bytes() == earlier


def test_an_empty_region(coins: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    model, file = coins
    common = (str(model), "--prop", 'Pmax=? [ F "won" ]', "--data", str(file), "--region", "polytope")
    result = answer(capsys, *common, code=1)
    assert (result["empty"], result["fallback"], result["sets"]) == (True, True, "tied")
    assert len(result["conflict"]) == 2 and result["verdict"] == "contradicted"
    assert "no parameters of the domain explain the data" in result["contradiction"] == result["why"]
    assert result["robust_policy"]["lower"] > 0.8
    stopped = answer(capsys, *common, "--no-fallback", code=1)
    assert set(stopped) >= KEYS
    assert (stopped["empty"], stopped["fallback"], stopped["robust_policy"]) == (True, False, None)
    assert stopped["conflict"] == result["conflict"]
    assert run(["learn", *common]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("CONTRADICTED: the data do not fit the model\n")
    assert captured.out.count("the region is empty") == 1 and captured.err == ""


def test_limits_are_exit_code_1(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limited = ("bench:engagement(3)", "--time-limit", "1e-9", "--sets", "tied")
    file = data.parent / "engagement.parquet"
    assert run(["sample", "bench:engagement(3)", "--episodes", "50", "-o", str(file)]) == 0
    capsys.readouterr()
    result = answer(capsys, *limited, "--data", str(file), code=1)
    assert "time limit" in result["status"]
    assert result["robust_policy"]["upper"] == "inf"


def test_a_nominal_confidence_is_said_aloud(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [MODEL, "--data", str(data), "--sets", "tied", "--interval", "clopper-pearson"]
    assert run(["learn", *arguments]) == 1
    said = capsys.readouterr()
    assert said.err == "" and said.out.startswith("NOMINAL: expected ")
    assert said.out.splitlines()[0].endswith(", not guaranteed") and "reason" in said.out
    assert run(["learn", *arguments, "--accept-nominal"]) == 0
    assert capsys.readouterr().out.startswith("NOMINAL: ")
    assert run(["learn", *arguments[:-2]]) == 0
    assert capsys.readouterr().err == ""
    paper = ["--sets", "expression", "--ellipsoid", "paper"]
    assert run(["learn", MODEL, "--data", str(data), *paper]) == 1
    assert "the published proof has a gap" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--delta", "0"], "0 < delta < 1"),
        (["--sets", "loose"], "loose"),
        (["--export", "drn,pdf", "-o", "new"], "--export is 'pdf', not one of drn, explicit, umb"),
        (["--export", "drn"], "add -o DIR"),
        (["--region", "likelihood", "--sets", "tied"], "no use for the region likelihood"),
        (["--sets", "untied", "--region", "polytope"], "no use for the region polytope"),
        (["--sets", "rectangular", "--intersect"], "'rectangular+tied' is not one of"),
        (["--sets", "parameter+tied", "--region", "likelihood"], "or leave --sets parameter+tied out"),
        (["--sets", "all", "--certificate", "x.cert"], "is for one kind of sets"),
        (["--ellipsoid", "paper", "--certificate", "x.cert"], "unsound and guarantees nothing"),
        (["--breakdown", ":4"], "write --breakdown all, or --breakdown all:0.9"),
        (["--breakdown", "p:x"], "the value of --breakdown is 'x', not a number"),
        (["--outcomes", "some"], "--outcomes is 'some'"),
        (["--outcomes", "policy=x"], "--outcomes has no part 'policy'"),
        (["--outcomes", "only", "--outcomes", "none"], "--outcomes is both only and none"),
        (["--outcomes", "range=5,1"], "e.g. --outcomes range=0,5"),
        (["--outcomes", "none", "--outcomes", "range=0,5"], "leave --outcomes range out"),
        (["--prop", 'P>=0.5 [ F "done" ]'], "is true or false"),
        (["--prop", 'Rmax=? [ F "nowhere" ]'], "nowhere"),
        (["--policy", "nosuch.json"], "nosuch.json"),
        (["--precision", "0"], "--precision is 0"),
        (["--time-limit", "0"], "--time-limit is 0"),
        (["--assume-support", "2"], "--assume-support is 2"),
        (["-o", "/nonexistent/out"], "there is no directory"),
    ],
)
def test_wrong_input(
    arguments: list[str], message: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["learn", MODEL, "--data", str(data), *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["--breakdown"], ["--breakdown", "all"]),
        (["--breakdown-of", "p", "--threshold=6"], ["--breakdown", "p:6"]),
        (["--return-range", "0,30"], ["--outcomes", "range=0,30"]),
        (["--effort", "high"], ["--sets", "high"]),
    ],
)
def test_options_of_earlier_versions_are_read(
    old: list[str], new: list[str], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for options in (old, new):
        level = [] if "high" in options else ["--sets", "quick"]
        assert run(["learn", MODEL, "--data", str(data), *level, *options]) == 0
        answers.append(capsys.readouterr())
    assert answers[0].out == answers[1].out
    noted = f"note: {old[0]} is now written {new[0]} " in answers[0].err
    assert noted == (old[0] != new[0])


def test_certificates_say_what_they_prove(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "learned.cert"
    region = ["--region", "ellipsoid", "--sets", "expression", "--certificate", str(file)]
    folder = tmp_path / "out"
    result = answer(capsys, MODEL, "--data", str(data), *region, "-o", str(folder))
    assert run(["verify", str(file), "--json"]) == 0
    verified = json.loads(capsys.readouterr().out)
    assert result["certificate"] == {
        "file": str(file),
        "digest": verified["digest"],
        "policies": verified["policies"],
    }
    written = json.loads((folder / "result.json").read_text())
    assert written["certificate"] == {"digest": verified["digest"], "file": str(file)}
    proved, shown = verified["policies"]["robust policy"], result["robust_policy"]
    assert proved["lower"] == pytest.approx(shown["lower"], rel=1e-9)
    assert proved["upper"] == pytest.approx(shown["upper"], rel=1e-9)


def test_certificates_that_prove_less_are_shown() -> None:
    name = MODEL.removeprefix("bench:")
    result = learn(case(name).problem, counts_of(name), delta=0.05, sets="tied")
    own = result.robust.interval
    assert list_certified_facts(result, {"robust policy": own}) == []
    wider = Interval(own.lower - 0.25, own.upper)
    rows = show_result(result, None, None, {"robust policy": wider}).rows
    assert any(f"proves {wider}" in value for _, value in rows)


def test_wrong_data_and_models(
    data: Path, coins: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = coins
    assert run(["learn", "bench:betting(9)", "--data", str(data)]) == 2
    assert "sampled from a different model" in capsys.readouterr().err
    prop = ["--prop", 'Pmax=? [ F "won" ]']
    assert run(["learn", str(model), "--data", str(tmp_path / "no.csv"), *prop]) == 2
    assert "no.csv" in capsys.readouterr().err
    assert run(["learn", str(model), "--data", str(file)]) == 2
    assert "no property" in capsys.readouterr().err
    bad = tmp_path / "bad.csv"
    bad.write_text(file.read_text() + "1,a,2,3\n")
    assert run(["learn", str(model), "--data", str(bad), *prop]) == 2
    assert "row 5" in capsys.readouterr().err
    assert run(["learn", str(model), "--data", str(bad), *prop, "--skip-invalid", "--verbose"]) == 1
    assert "1 row was dropped (1 disabled action)" in capsys.readouterr().out
    assert run(["export", str(model), "--at", "p=0.5", "-o", str(tmp_path / "fixed.drn")]) == 0
    assert run(["learn", str(tmp_path / "fixed.drn"), "--data", str(file), *prop]) == 2
    assert "nothing to learn" in capsys.readouterr().err


def test_a_directory_with_other_files_is_left_alone(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert run(["learn", MODEL, "--data", str(data), "-o", str(tmp_path / "mine")]) == 2
    assert "was not changed" in capsys.readouterr().err
    assert [f.name for f in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    for _ in range(2):
        arguments = ["--sets", "tied", "-o", str(tmp_path / "out"), "--json"]
        assert run(["learn", MODEL, "--data", str(data), *arguments]) == 0
    assert sorted(f.name for f in tmp_path.iterdir()) == ["mine", "out"]


def test_ctrl_c_leaves_nothing_behind(data: Path, tmp_path: Path) -> None:
    """Interrupted at a random moment, also while writing: the directory is whole or absent."""
    command = [sys.executable, "-m", "tightrope", "learn", MODEL, "--data", str(data), "--sets", "all"]
    for number, wait in enumerate((0.6, 1.6)):
        out = tmp_path / f"out{number}"
        process = subprocess.Popen(
            [*command, "-o", str(out)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode in (0, 130, -signal.SIGINT), errors
        left = [f.name for f in tmp_path.iterdir() if f != out]
        assert not [name for name in left if name.startswith(".")]
        if out.exists():
            assert (out / "result.json").is_file()


@pytest.mark.usefixtures("empty_pictures")
def test_the_demo_tells_its_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "demo"
    assert run(["demo", "-o", str(out), "--episodes", "500"]) == 0
    text = capsys.readouterr().out
    for word in ("rover", "untied", "rectangular", "PROVED", str(out / "results" / "result.json")):
        assert word in text
    assert (out / "data.parquet").is_file()
    assert run(["verify", str(out / "rover.cert")]) == 0
    assert "<html" in (out / "report.html").read_text()
    assert (out / "results" / "rectangular" / "robust-policy.json").is_file()
    (tmp_path / "file").write_text("")
    assert run(["demo", "-o", str(tmp_path / "file")]) == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("gone.csv", None, "No such file"), ("notes.txt", "a,b\n", ".csv"), ("empty.csv", "", "empty")],
)
def test_what_is_no_data_file_is_refused_before_the_model_is_built(
    name: str,
    content: str | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tightrope.cli.sources.load_subject", lambda *asked: pytest.fail("built"))
    file = tmp_path / name
    if content is not None:
        file.write_text(content)
    assert run(["learn", MODEL, "--data", str(file), "--delta", "0.1"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["learn", "demo"])
def test_help_needs_no_compiler(command: str) -> None:
    program = (
        "import sys; from tightrope.cli.app import run; "
        f"run(['{command}', '--help']); sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_coupled_sets(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = (MODEL, "--data", str(data), "--region", "polytope", "--sets", "coupled")
    out, proof = tmp_path / "out", tmp_path / "coupled.cert"
    result = answer(capsys, *common, "--certificate", str(proof), "-o", str(out))
    assert result["sets"] == "coupled" and result["verdict"] == "proved"
    found = result["coupled"]["robust_policy"]
    assert found["status"] == "exact" and found["gap"] < 1e-3
    assert found["rectangular"]["lower"] <= result["robust_policy"]["lower"] <= result["coupled"]["limit"]
    assert result["coupled"]["candidates"][0]["origin"] == "robust over the rectangular sets"
    for end, bound in (("lowest", "lower"), ("highest", "upper")):
        witness = found["witness"][end]
        assert set(witness["at"]) == {"p", "q"}
        assert witness["lower"] == pytest.approx(result["robust_policy"][bound], rel=1e-4)
    assert sorted(path.name for path in out.iterdir()) == [
        "optimistic-policy.json",
        "result.json",
        "robust-policy.json",
        "tightrope-manifest.json",
    ]
    assert run(["verify", str(proof)]) == 0
    assert run(["export", str(out), "-o", str(tmp_path / "model.drn")]) == 2
    assert "no interval model can represent" in capsys.readouterr().err
    assert run(["learn", *common, "--verbose"]) == 0
    assert "lowest at" in capsys.readouterr().out
    assert run(["learn", *common, "--coupled-gap", "0"]) == 2
    assert "not within" in capsys.readouterr().err
    assert run(["learn", *(word if word != "polytope" else "ellipsoid" for word in common)]) == 2
    assert "half-spaces" in capsys.readouterr().err
    elsewhere = [word if word != "coupled" else "expression" for word in common]
    assert run(["learn", *elsewhere, "--coupled-gap", "0.1"]) == 2
    assert "--coupled-gap requires coupled values" in capsys.readouterr().err


def test_coupled_sets_fall_back_to_tied_ones(
    coins: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = coins
    question = ("--prop", 'Pmax=? [ F "won" ]', "--delta", "0.01")
    result = answer(capsys, str(model), "--data", str(file), *question, "--sets", "coupled", code=1)
    assert result["fallback"] and result["sets"] == "tied" and result["coupled"] is None


def test_checking_the_learned_model_repeats_the_guarantee(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, log, out = tmp_path / "coins.prism", tmp_path / "log.csv", tmp_path / "out"
    model.write_text(COINS)
    log.write_text("s,action,s_next,count\n0,a,1,30\n0,a,2,10\n0,b,1,4\n0,b,2,6\n")
    asked = ("--data", str(log), "--prop", 'Pmax=? [ F "won" ]', "--sets", "expression", "-o", str(out))
    learned = answer(capsys, str(model), *asked, "--export", "explicit,drn")
    assert (out / "learned.props").read_text() == 'Pmaxmin=? [ F "won" ]\n'
    for name in ("learned.tra", "learned.drn"):
        assert run(["check", str(out / name), "--prop", str(out / "learned.props"), "--json"]) == 0
        checked = json.loads(capsys.readouterr().out)
        assert checked["lower"] == pytest.approx(learned["guarantee"], rel=1e-6)
    assert run(["check", str(out / "learned.tra"), "--prop", 'Pmax=? [ F "won" ]', "--json"]) == 0
    kind = json.loads(capsys.readouterr().out)
    assert kind["lower"] > learned["guarantee"] and kind["read_as"] == 'Pmaxmax=? [ F "won" ]'


def stopped(name: str, limit: str | None = None) -> Any:
    return SimpleNamespace(kind=SimpleNamespace(value=name), status=limit, verdict=Assessment.of(limit=limit))


def test_sets_that_a_limit_stopped_do_not_spoil_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """With --sets all the answer is the last row, that of the tightest sets."""
    set_common()
    leave_with([stopped("untied", "the time limit was reached"), stopped("rectangular")])
    assert " ".join(capsys.readouterr().err.split()) == "warning: untied sets: the time limit was reached"
    with pytest.raises(typer.Exit):
        leave_with([stopped("untied"), stopped("rectangular", "the time limit was reached")])


def test_several_properties_share_delta(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All answers hold together: each gets its share; selections name some of them."""
    model, data, properties = tmp_path / "m.prism", tmp_path / "d.csv", tmp_path / "q.props"
    model.write_text(
        "mdp const double p; module m s : [0..2]; [a] s=0 -> p : (s'=1) + 1-p : (s'=2); "
        "[b] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2); [] s>0 -> true; endmodule label \"goal\" = s=1;"
    )
    data.write_text("state,action,next_state,count\n0,a,1,80\n0,a,2,23\n")
    properties.write_text(
        '"reach": Pmax=? [ F "goal" ];\nPmin=? [ F<=3 "goal" ];\n"not": P>=0.5 [ F "goal" ];'
    )
    words = ["learn", str(model), "--data", str(data), "--json", "--sets", "quick"]
    words += ["--states", "index", "--design", "fixed", "--accept-nominal", "--delta"]
    asked = ["--prop", f"{properties}#reach,2", "-o", str(tmp_path / "out")]
    assert run([*words, "0.04", *asked]) == 0
    together = json.loads(capsys.readouterr().out)
    assert [each["ledger"]["delta"] for each in together] == [0.02, 0.02]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["02", "reach"]
    properties.write_text(properties.read_text().replace('"reach"', '"../reach"'))
    assert run([*words, "0.04", "--prop", f"{properties}#1,2", "-o", str(tmp_path / "again")]) == 0
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["01", "02"]
    assert not (tmp_path / "reach").exists() and capsys.readouterr()
    properties.write_text(properties.read_text().replace('"../reach"', '"reach"'))
    assert run([*words, "0.02", "--prop", f"{properties}#reach"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert alone["robust_policy"] == together[0]["robust_policy"]
    earlier = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    for where in ("new", "out"):  # the last property is wrong: nothing of the first ones is written
        assert run([*words, "0.03", "--prop", str(properties), "-o", str(tmp_path / where)]) == 2
        assert "is true or false, but learning needs a value" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert earlier == {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert run([*words, "0.02", "--prop", str(properties), "--certificate", str(tmp_path / "c")]) == 2
    assert "--certificate requires one property, not 3" in capsys.readouterr().err
    assert run([*words, "0.02", "--prop", f"{properties}#other"]) == 2
    assert "there is no property 'other'" in capsys.readouterr().err


def test_units_have_three_answers_with_their_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`cli/learn_run.py`"""
    model, log = tmp_path / "run.prism", tmp_path / "log.csv"
    model.write_text(
        "dtmc\nconst double p;\nmodule m\n s:[0..2] init 0;\n [run] s=0 -> p:(s'=1) + 1-p:(s'=2);\n"
        ' [] s>0 -> true;\nendmodule\nlabel "ok" = s=1;\n'
    )
    rows = [f"{40 * u + i},u{u},0,run,{1 if (u + i) % 9 else 2}" for u in range(30) for i in range(40)]
    log.write_text("\n".join(["episode,pump,s,action,next_s", *rows]) + "\n")
    asked = ["learn", str(model), "--param", "p=0:1", "--prop", 'P=? [ F "ok" ]', "--data", str(log)]
    assert run([*asked, "--delta", "0.1", "--unit", "pump", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == answer["most"]["verdict"] == "proved"
    assert len(answer["units"]) == 30 and answer["share"] == 0.9
    assert answer["most"]["bounds"]["lower"] == min(one["bounds"]["lower"] for one in answer["units"])
    assert 8 / 9 > answer["average"]["bounds"]["lower"] > 0.7
    assert run([*asked, "--delta", "0.1", "--unit", "pump:0.99"]) == 1
    assert "LIMIT: 30 units give no bound for 99 % of all units" in capsys.readouterr().out
    assert run([*asked, "--unit", "pumps"]) == 2
    assert "the column 'pumps' is not in the log" in capsys.readouterr().err
    assert run([*asked, "--unit", "pump", "--certificate", str(tmp_path / "c.cert")]) == 1
    assert "no certificate is written: 30 units give no bound" in capsys.readouterr().err
