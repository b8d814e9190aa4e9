"""`draft`: a model from a log loads, reads the log by its names, and learning from it covers the truth.

Also of `cli/draft.py`.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.learning.draft import draft

NAMES = ["idle", "at work", "down", "done"]
CHANCES = np.array([[0.2, 0.7, 0.1, 0.0], [0.3, 0.0, 0.2, 0.5], [0, 0, 1, 0], [0, 0, 0, 1]])
TRUTH = float(np.linalg.solve(np.eye(2) - CHANCES[:2, :2], CHANCES[:2, 3])[0])


def machine_log(episodes: int, seed: int) -> pa.Table:
    """Runs of a machine, by the names of its states: one row per step."""
    random, rows = np.random.default_rng(seed), list[tuple[Any, ...]]()
    for run_number in range(episodes):
        state, step = 0, 0
        while state < 2:
            after = int(random.choice(4, p=CHANCES[state]))
            rows.append((run_number, step, NAMES[state], NAMES[after], f"u{run_number % 3}"))
            state, step = after, step + 1
    return pa.table(
        dict(zip(("run", "t", "state", "next_state", "unit"), zip(*rows, strict=True), strict=True))
    )


def agent_log(episodes: int, seed: int) -> pa.Table:
    """Runs that begin in two states and stop anywhere: the state of every step alone."""
    random, rows = np.random.default_rng(seed), list[tuple[Any, ...]]()
    law = np.array([[0.1, 0.5, 0.3], [0.4, 0.1, 0.2], [0.3, 0.4, 0.1]])
    for run_number in range(episodes):
        state, step = int(random.random() < 0.3), 0
        while True:
            rows.append((run_number, step, ("read", "edit", "test")[state]))
            after = int(random.choice(4, p=[*law[state], 1 - law[state].sum()]))
            step += 1
            if after == 3 and step > 1:
                break
            state = after if after < 3 else state
    return pa.table(dict(zip(("episode", "step", "state"), zip(*rows, strict=True), strict=True)))


def load(text: str, folder: Path) -> Any:
    (folder / "drafted.prism").write_text(text)
    return tr.load(folder / "drafted.prism")


def test_a_draft_is_read_and_learned_from_and_covers_the_true_value(tmp_path: Path) -> None:
    covered = 0
    for seed in range(8):
        log = machine_log(150, seed)
        drafted = draft(log)
        model = load(drafted.text, tmp_path)
        reading = tr.read_data(log, model)
        assert reading.counts.steps == log.num_rows and not reading.dropped
        result = tr.learn(tr.Problem(model, 'P=? [ F "done" ]'), reading, delta=0.1, sets="tied")
        covered += result.interval.lower <= TRUTH <= result.interval.upper
    assert covered == 8
    assert (drafted.states, drafted.choices, drafted.free) == (6, 6, 4)
    assert sum("-> free : " in line for line in drafted.text.splitlines()) == 4
    assert model.structure.labels["at_work"].sum() == 1
    assert any("unseen outcomes are possible" in line for line in drafted.assumptions)
    assert any("column unit" in line for line in drafted.assumptions)


def test_the_model_of_a_draft_is_that_of_its_text(tmp_path: Path) -> None:
    log = pa.table({"state": ["a", "a", "b"], "action": ["go"] * 3, "next_state": ["a", "b", "b"]})
    drafted = draft(log)
    (tmp_path / "model.prism").write_text(drafted.text)
    model, loaded = drafted.model, tr.load(tmp_path / "model.prism")
    assert isinstance(loaded, tr.ParametricMDP) and model.hash() == loaded.hash()
    assert model.structure.named_from == loaded.structure.named_from is not None
    assert drafted.model is model


def test_costs_become_rewards_whose_means_are_parameters(tmp_path: Path) -> None:
    log = machine_log(200, 3)
    varies = [
        4.0 if state == "idle" else float(row % 3) for row, state in enumerate(log["state"].to_pylist())
    ]
    log = log.append_column("cost", pa.array(varies))
    drafted = draft(log, order="as-read", ends="complete")
    lines = drafted.text.split("\n")
    earned = lines[lines.index('rewards "cost"') + 1 : lines.index("endrewards")]
    assert [line.partition(" // ")[0] for line in earned] == [
        f"  [] state={state} : mean_cost_{place};" for place, state in enumerate(range(2))
    ]
    assert sorted("4 at every visit" in line for line in earned) == [False, True]
    assert any("standard deviation 0.8" in line for line in earned)
    assert any("no cost is certain" in line for line in drafted.assumptions)
    model = drafted.model
    assert {"mean_cost_0", "mean_cost_1"} <= set(model.parameters.names)
    reading = tr.read_data(log, load(drafted.text, tmp_path), order="as-read", ends="complete")
    assert reading.counts.costs is not None and reading.counts.costs.number == len(log)
    reached = tr.learn(tr.Problem(model, drafted.question), reading, delta=0.1, outcomes="none")
    assert reached.verdict.word == "proved"
    with pytest.raises(InputError, match="have no bound"):
        tr.Problem(model, 'R{"cost"}=? [ F "done" ]')


def test_costs_are_learned_once_unseen_outcomes_are_deleted(tmp_path: Path) -> None:
    random, rows = np.random.default_rng(4), list[tuple[Any, ...]]()
    for run_number in range(100):
        rows += [(run_number, "idle", "idle", cost) for cost in random.integers(1, 3, random.geometric(0.25))]
        rows[-1] = (run_number, "idle", "done", rows[-1][3])
    log = pa.table(dict(zip(("run", "state", "next_state", "reward"), zip(*rows, strict=True), strict=True)))
    text = re.sub(r" \+ free : \(state'=[23]\)", "", draft(log, order="as-read").text)
    text = re.sub(r"  \[\] state=[23] .*\n|label .elsewhere.*\n", "", text).replace("[0..3]", "[0..1]")
    text = re.sub(r"-> free : (\S+);", r"-> \1;", text)
    (tmp_path / "drafted.prism").write_text(text)
    model = tr.load(tmp_path / "drafted.prism", params={"mean_cost_0": (0, 4)})
    problem = tr.Problem(model, 'R{"cost"}=? [ F "done" ]')
    result = tr.learn(problem, tr.read_data(log, model, order="as-read"), delta=0.1, cost_range=(0, 4))
    assert result.interval.lower < 6.0 < result.interval.upper < 12.0  # four steps of 1.5
    assert result.verdict.word == "nominal" and "drafted from these data" in str(result.verdict)


def test_several_first_states_and_ends_anywhere_are_rows_of_their_own(tmp_path: Path) -> None:
    log = agent_log(200, 3)
    drafted = draft(log, ends="complete", order="as-read")
    model = load(drafted.text, tmp_path)
    reading = tr.read_data(log, model, ends="complete", order="as-read")
    assert reading.counts.steps == log.num_rows - 200 + 2 * 200
    assert not reading.counts.design.censored
    assert sum("rows were added" in note for note in reading.notes) == 2
    rows = reading.counts.log()
    assert rows.over.all() and rows.episodes == 200
    first = rows.state(model.structure)[rows.begins]
    assert set(first.tolist()) == {model.structure.initial}
    begun = rows.begins
    assert np.array_equal(rows.previous < 0, begun)
    assert np.array_equal(
        rows.state(model.structure)[~begun], model.structure.successor[rows.transition[rows.previous[~begun]]]
    )
    shares = np.bincount(rows.transition[begun], minlength=model.structure.transitions)
    names, seen = log["state"].to_pylist(), log["step"].to_pylist()
    edits = sum(name == "edit" and step == 0 for name, step in zip(names, seen, strict=True))
    assert sorted(shares[shares > 0].tolist()) == sorted([edits, 200 - edits])


def test_ties_are_comments_unless_they_are_chosen_on_a_part(tmp_path: Path) -> None:
    random, rows = np.random.default_rng(1), list[tuple[Any, ...]]()
    for episode in range(400):
        x = 1
        while 0 < x < 5:
            after = x + (1 if random.random() < (0.6 if x < 4 else 0.2) else -1)
            rows.append((episode, x, after))
            x = after
    log = pa.table(dict(zip(("episode", "x", "x_next"), zip(*rows, strict=True), strict=True)))
    whole = draft(log)
    assert [(tie.rows, tie.shape) for tie in whole.ties] == [(("x=1", "x=2", "x=3"), "the same steps")]
    assert 'free("tie1") : (x\'=0)' in whole.text and len(load(whole.text, tmp_path).parameters.free) == 6
    part = draft(log, select_on=0.5, seed=2)
    model = load(part.text, tmp_path)
    assert len(model.parameters.free) == 4
    assert part.rest is not None and part.rest.design.episodes == 200
    assert part.rest.model_hash == model.hash()
    assert any("learn from the others alone" in line for line in part.assumptions)


def test_the_command_writes_a_model_and_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, model, rest = (str(tmp_path / name) for name in ("log.csv", "m.prism", "rest.csv"))
    csv.write_csv(machine_log(60, 5), log)
    assert run(["draft", log, "-o", model, "--select-on", "0.5", "--rest", rest, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["states"], answer["choices"], answer["free"], answer["ties"]) == (6, 6, 4, [])
    read = tr.read_data(rest, tr.load(model))
    assert read.counts.design.episodes == 30
    assert run(["draft", log, "-o", model]) == 2
    assert "exists" in capsys.readouterr().err
    assert run(["draft", log, "-o", str(tmp_path / "n.prism"), "--select-on", "0.5"]) == 2
    assert not (tmp_path / "n.prism").exists()


def test_names_cannot_leave_their_comments(tmp_path: Path) -> None:
    name = "// b\n  [] state=0 -> (state'=2);\u2028x"
    log = {"episode": [1, 1, 2], "state": ["a", name, "a"], "next_state": [name, "c", "c"]}
    (tmp_path / "model.prism").write_text(draft(pa.table(log)).text)
    model = tr.load(tmp_path / "model.prism")
    counts = tr.read_data(pa.table(log), model).counts
    assert (model.states, counts.steps) == (5, 3)
    assert sorted(counts.transition.tolist())[-3:] == [1, 1, 1]


@pytest.mark.parametrize(
    ("state", "after", "words"),
    [
        (["01", "1", "01"], ["1", "2", "2"], "'01' and '1' are one number"),
        (["true", "1", "0"], ["1", "0", "0"], "are one number"),
        (["²", "1", "²"], ["1", "3", "3"], "letters a to z"),
        (["a", "init", "a"], ["init", "b", "b"], "called 'init'"),
    ],
)
def test_names_that_could_be_read_otherwise(state: list[str], after: list[str], words: str) -> None:
    log = pa.table({"episode": [1, 1, 2], "state": state, "next_state": after})
    with pytest.raises(tr.InputError, match=words):
        draft(log)


@pytest.mark.parametrize(
    ("first", "second"), [("1", "0"), ("true", "false"), ("7", "-3"), ("1.0", "0.0"), ("1e0", "+0")]
)
def test_numbers_among_names_keep_their_values(first: str, second: str, tmp_path: Path) -> None:
    """States are numbers and next states are names: once the first state that stood there was number 0, and
    every row was counted for the other one."""
    rows = [f"{k},{(first, second)[k % 2]},{('good', 'bad')[k % 2]}" for k in range(40)]
    (tmp_path / "log.csv").write_text("\n".join(["episode,state,next_state", *rows]))
    text = draft(tmp_path / "log.csv").text
    assert f"// {first}: 20 visits: good 20" in text and f"// {second}: 20 visits: bad 20" in text


def test_a_log_without_a_step() -> None:
    with pytest.raises(tr.InputError, match="no step"):
        draft(pa.table({"episode": [1], "state": ["a"]}))


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ({"a": [1], "b": [2]}, "no column of states was found"),
        ({"choice": [0], "state": [1], "next_state": [2]}, "numbers the choices of a model"),
        ({"state": ["a b", "a-b"], "next_state": ["c", "c"]}, "same identifier 'a_b'"),
        ({"x": [1], "x_next": [2], "y": [None]}, None),
        ({"state": [str(i) for i in range(2_001)], "next_state": ["0"] * 2_001}, "more than 2,000"),
        ({"state": [None], "next_state": [None]}, "no row with a state"),
    ],
)
def test_what_no_model_can_be_drafted_from_is_refused(log: dict[str, Any], words: str | None) -> None:
    if words is None:
        assert draft(pa.table(log)).states == 4
        return
    with pytest.raises(InputError, match=words):
        draft(pa.table(log))


@pytest.mark.parametrize(
    ("words", "variable", "label"),
    [
        (["--columns", "state=Condition,episode=Unit,step=Week"], "state", "New"),
        (["--columns", "condition=Condition,episode=Unit,step=Week"], "condition", "New"),
        (["--variables", "Condition", "--columns", "episode=Unit,step=Week"], "condition", "New"),
        (
            [
                "--columns",
                "state=Condition,episode=Unit,step=Week",
                "--map",
                "state: New=a, Worn=b, Failed=c",
            ],
            "state",
            "a",
        ),
    ],
)
def test_every_way_to_name_the_state_works_and_so_does_the_next_command(
    words: list[str], variable: str, label: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random, rows = np.random.default_rng(4), list[tuple[Any, ...]]()
    for unit in range(40):
        path = [0]
        while path[-1] < 2:
            path.append(path[-1] + int(random.random() < 0.5))
        rows += [(unit, week, ("New", "Worn", "Failed")[state]) for week, state in enumerate(path)]
    table = dict(zip(("Unit", "Week", "Condition"), zip(*rows, strict=True), strict=True))
    log, model = str(tmp_path / "log.csv"), str(tmp_path / "m.prism")
    csv.write_csv(pa.table(table), log)
    assert run(["draft", log, "-o", model, "--ends", "complete", *words]) == 0
    loaded = tr.load(model)
    assert list(loaded.structure.valuations) == [variable] and label in loaded.structure.labels
    (following,) = re.findall("^  next +tightrope (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert run([*shlex.split(following), "--outcomes", "none"]) == 0
    assert capsys.readouterr().out.startswith("PROVED: ")


def test_a_hint_about_names_works_when_it_is_followed(tmp_path: Path) -> None:
    log = pa.table({"episode": [1, 1, 2], "state": ["a", "init", "a"], "next_state": ["init", "b", "b"]})
    with pytest.raises(tr.InputError) as refused:
        draft(log)
    (given,) = re.findall("`maps='(.*)'`", refused.value.hint or "")
    assert "s_3" in draft(log, maps=[given]).text


def test_the_rest_keeps_what_is_missing_from_the_log(tmp_path: Path) -> None:
    log, model, rest = (str(tmp_path / name) for name in ("log.csv", "m.prism", "rest.csv"))
    rows = machine_log(60, 5).to_pylist()
    rows[7]["next_state"] = None
    csv.write_csv(pa.Table.from_pylist(rows), log)
    assert run(["draft", log, "-o", model, "--select-on", "0.5", "--rest", rest, "--skip-invalid"]) == 0
    assert tr.read_data(rest, tr.load(model)).counts.design.censored
