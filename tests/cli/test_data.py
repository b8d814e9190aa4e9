"""`tightrope data`: how a log is read, what the model does not know, coverage, estimates and the figure.

Also of `report/log_figure.py`.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tightrope import Parameters, build_from_function, read_data
from tightrope.cli.app import run
from tightrope.cli.data import FINE, PLAIN, _bar, _glyphs
from tightrope.data.counts import ChoiceVisits, cover
from tightrope.learning.log_description import estimate_points
from tightrope.model.parametric_mdp import ParametricMDP

WALK = """mdp const double p;
module walk
  x : [0..4] init 2;
  [walk] x>0 & x<4 -> p : (x'=x+1) + 1-p : (x'=x-1);
  [run] x=3 -> 1/2 : (x'=4) + 1/2 : (x'=2);
  [stay] x=0 | x=4 -> true;
endmodule
"""
ROWS = [(2, "walk", 3), (3, "run", 4), (2, "walk", 1), (1, "walk", 0), (2, "walk", 3), (3, "walk", 4)]
HEAD = "episode,step,x,action,x_next"
MODEL = ["--model", "walk.prism", "--param", "p=0.1:0.9"]
KEYS = {"rows", "episodes", "columns", "unknown", "coverage", "estimates"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("walk.prism").write_text(WALK)
    lines = [f"{i // 2},{i % 2},{x},{a},{y}" for i, (x, a, y) in enumerate(ROWS)]
    Path("log.csv").write_text("\n".join([HEAD, *lines]) + "\n")


def described(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["data", *arguments, *MODEL, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_json_of_a_clean_log(capsys: pytest.CaptureFixture[str]) -> None:
    found = described("log.csv", capsys=capsys)
    assert found.keys() >= KEYS
    assert (found["rows"], found["episodes"], found["steps"]) == (6, 3, 6)
    assert found["bytes"] == Path("log.csv").stat().st_size
    assert found["columns"] == {
        "x": "x",
        "x'": "x_next",
        "action": "action",
        "episode": "episode",
        "step": "step",
    }
    assert found["design"]["kind"] == "adaptive"
    assert found["unknown"] == {} and found["dropped"] == {} and found["refused"] is None
    coverage = found["coverage"]
    assert (coverage["choices"], coverage["visited"]) == (6, 4)
    assert (coverage["open_choices"], coverage["open_visited"]) == (4, 4)
    assert coverage["actions"] == [
        {"action": "walk", "choices": 3, "visited": 3, "visits": 5},
        {"action": "run", "choices": 1, "visited": 1, "visits": 1},
        {"action": "stay", "choices": 2, "visited": 0, "visits": 0},
    ]
    assert coverage["fewest_visits"][0] == {"choice": "choice 'walk' of state (x=3)", "visits": 1}
    (expression,) = found["estimates"]["expressions"]
    assert (expression["expression"], expression["seen"], expression["visits"]) == ("p", 3, 5)
    assert expression["estimate"] == 0.6 and expression["lower"] < 0.6 < expression["upper"]
    (parameter,) = found["estimates"]["parameters"]
    assert parameter["parameter"] == "p"
    assert 0.1 - 1e-9 <= parameter["lower"] < parameter["estimate"] < parameter["upper"] <= 0.9 + 1e-9
    assert "time-uniform" in found["estimates"]["label"] and found["estimates"]["ledger"]["holds"]


def test_the_reading_is_that_of_learn(capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("log.csv").read_text()
    Path("log.csv").write_text(
        text.replace("action,x_next", "cmd,after").replace("walk", "0").replace("run", "1")
    )
    options = ["--columns", "action=cmd, x'=after", "--map", "action: 0=walk, 1=run"]
    found = described("log.csv", *options, capsys=capsys)
    assert found["columns"]["x'"] == "after" and found["columns"]["action"] == "cmd"
    assert [action["visits"] for action in found["coverage"]["actions"]] == [5, 1, 0]


def test_what_the_model_does_not_know_is_listed_with_counts(capsys: pytest.CaptureFixture[str]) -> None:
    bad = [
        "8,0,2,fly,3",
        "9,0,2,fly,3",
        "10,0,2,run,3",
        "11,0,2,walk,9",
        "12,0,9,walk,9",
        "13,0,3,run,1",
        "14,0,2,walk,?",
    ]
    Path("log.csv").write_text(Path("log.csv").read_text() + "\n".join(bad) + "\n")
    found = described("log.csv", capsys=capsys)
    assert found["unknown"] == {
        "states": [{"value": "x=9", "rows": 2}],
        "actions": [{"value": "fly", "rows": 2}],
        "actions not enabled": [{"value": "x=2, action=run", "rows": 1}],
        "impossible transitions": [{"value": "x=3, action=run, x'=1", "rows": 1}],
        "unreadable values": [
            {"value": "column 'x_next', read as next value of 'x': '?' looks like text", "rows": 1}
        ],
    }
    assert sum(found["dropped"].values()) == 7 and found["steps"] == 6
    assert found["refused"].startswith("log.csv:8: row 7: 'fly' is not enabled in state (x=2)")
    assert not found["estimates"]["ledger"]["holds"] and "nominal" in found["estimates"]["label"]
    said = described("log.csv", "--skip-invalid", capsys=capsys)
    assert said["refused"] is None and said["censored"]


def test_unknown_values_of_a_log_without_next_states(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["0,2,walk", "0,3,swim", "0,4,", "1,2,walk", "1,7,walk", "1,0,"]
    Path("log.csv").write_text("\n".join(["episode,x,action", *rows]) + "\n")
    found = described("log.csv", capsys=capsys)
    assert found["unknown"]["actions"] == [{"value": "swim", "rows": 1}]
    assert found["unknown"]["states"] == [{"value": "x=7", "rows": 1}]
    assert "impossible transitions" not in found["unknown"]


def test_a_log_of_which_nothing_can_be_counted_is_an_error_with_its_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("log.csv").write_text(f"{HEAD}\n0,0,2,amble,3\n0,1,3,amble,4\n")
    assert run(["data", "log.csv", *MODEL]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "not one of the 2 rows can be counted" in said.err
    assert "unknown to the model, with rows: actions: amble (2)" in said.err
    assert "--skip-invalid" not in said.err and "--map" in said.err


def test_the_text_shows_bars_in_eighty_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["data", "log.csv", *MODEL, "--verbose"]) == 0
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines() if not line.startswith("  next ")) <= 80
    assert "states by the model's variables" in shown
    assert "█" * 16 in shown and "█" * 3 + "·" * 13 in shown
    assert "●" in shown and "[" in shown
    assert "time-uniform" in shown


def test_terminals_without_unicode_get_plain_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _glyphs() == FINE
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert _glyphs() == PLAIN
    assert _bar(0.5, (0.25, 0.75), (0.0, 1.0)) == "....====o====..."


def test_a_model_without_parameters_has_coverage_and_no_estimates(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "walk.prism", "--param", "p=0.1:0.9", "--at", "p=0.6", "-o", "plain.drn"]) == 0
    Path("log.csv").write_text("state,action,next_state\n0,walk,1\n1,run,3\n0,walk,99\n")
    capsys.readouterr()
    assert run(["data", "log.csv", "--model", "plain.drn", "--json"]) == 2
    assert "say --states index" in capsys.readouterr().err
    assert (
        run(["data", "log.csv", "--model", "plain.drn", "--states", "index", "--plot", "l.svg", "--json"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["estimates"] is None and found["coverage"]["visited"] == 2
    assert found["unknown"] == {"states": [{"value": "99", "rows": 1}]}


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_figure(suffix: str, magic: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    found = described("log.csv", "--plot", f"log.{suffix}", capsys=capsys)
    assert found["plot"] == f"log.{suffix}"
    assert Path(f"log.{suffix}").read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["log.csv", "--plot", "log.gif"], "a figure ends in .png, .svg, .pdf"),
        (["log.csv", "--plot", "missing/log.png"], "there is no directory"),
        (["log.csv", "--delta", "2"], "delta is 2"),
        (["no.csv"], "no.csv"),
        (["log.csv", "--engine", "ray"], "'ray' is not an engine"),
        (["log.csv", "--scheduler", "localhost:8786"], "--scheduler requires --engine dask"),
    ],
)
def test_wrong_requests_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["data", *arguments, *MODEL]) == 2
    said = capsys.readouterr()
    assert message in said.err and said.out == ""


def test_a_log_that_contradicts_the_model_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """p and 1 − p cannot both be near 1: p is cut off at 0.2 by the domain, and the data say 1."""
    rows = ["x,action,x_next", *["2,walk,3"] * 300]
    Path("log.csv").write_text("\n".join(rows) + "\n")
    arguments = ["data", "log.csv", "--model", "walk.prism", "--param", "p=0.1:0.2", "--json"]
    assert run(arguments) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["estimates"]["parameters"] == [] and found["estimates"]["conflict"]
    assert found["verdict"] == "contradicted" and said.err == ""


def test_state_names_are_covered() -> None:
    parameters = Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()

    def successors(state: str) -> dict[str, dict[str, Any]]:
        return {"toss": {"heads": p, "tails": 1 - p}} if state == "start" else {"again": {"start": 1}}

    model = build_from_function("start", successors, parameters)
    assert isinstance(model, ParametricMDP)
    table = {"state": ["start", "heads", "start"], "action": ["toss", "again", "toss"]}
    import pyarrow as pa

    reading = read_data(pa.table({**table, "next_state": ["heads", "start", "tails"]}), model)
    coverage = cover(model.structure, reading.counts)
    assert (coverage.states_visited, coverage.visited, coverage.choices) == (2, 2, 3)
    assert coverage.never_visited == ()
    assert coverage.fewest_visits[0] == ChoiceVisits("choice 'again' of state 'heads'", 1)


def test_intervals_contain_the_true_value_and_estimates_come_close() -> None:
    """Two parameters in a product: the likeliest point is near the true one, the boxes contain it."""
    parameters = Parameters.box(p=(0.1, 0.9), q=(0.1, 0.9))
    p, q = parameters.symbols()

    def successors(x: int) -> dict[str, dict[int, Any]]:
        return {"both": {1: p * q, 2: 1 - p * q}, "one": {1: p, 2: 1 - p}} if x == 0 else {"back": {0: 1}}

    model = build_from_function(0, successors, parameters)
    assert isinstance(model, ParametricMDP)
    random = np.random.default_rng(5)
    rows = []
    for _ in range(4000):
        action = ("both", "one")[random.integers(2)]
        rows.append((0, action, 1 if random.random() < (0.42 if action == "both" else 0.6) else 2))
    import pyarrow as pa

    columns = dict(zip(("state", "action", "next_state"), map(list, zip(*rows, strict=True)), strict=True))
    found = estimate_points(model, read_data(pa.table(columns), model).counts, 0.05)
    for one, truth in zip(found.parameters, (0.6, 0.7), strict=True):
        assert one.lower <= truth <= one.upper
        assert abs(one.estimate - truth) < 0.05
    assert {e.expression for e in found.expressions} == {"p*q", "p"}
