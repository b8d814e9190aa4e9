"""`tightrope export`: formats by the file's ending, points, and refusals."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tightrope as tr
from same_model import assert_same_model
from storm import MODELS
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.io.drn.read import read_drn
from tightrope.io.explicit import read_explicit
from tightrope.model.mdp import MDP
from tightrope.prism.load import load_prism

DIE = str(MODELS / "biased_die.prism")


def test_a_drn_file_keeps_the_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "die.drn"
    assert run(["export", DIE, "--domain", "p+q<=1", "-o", str(file), "--json"]) == 0
    assert_same_model(read_drn(file), load_prism(DIE, domain="p+q<=1"))
    result = json.loads(capsys.readouterr().out)
    assert result["files"] == [str(file)]
    assert (result["states"], result["choices"], result["transitions"]) == (13, 13, 20)
    assert set(result["seconds"]) == {"build", "write"}


@pytest.mark.parametrize("name", ["die", "die.tra"])
def test_explicit_files_at_a_point(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", DIE, "--at", "p=1/3,q=0.25", "-o", str(tmp_path / name)]) == 0
    expected = load_prism(DIE).instantiate([Fraction(1, 3), 0.25])
    model = read_explicit(tmp_path / "die")
    assert isinstance(model, MDP)
    assert_same_model(model, expected)
    assert "die.tra" in "".join(capsys.readouterr().out.split())


def test_one_format_to_another(tmp_path: Path) -> None:
    grid = str(MODELS / "interval_grid.prism")
    assert run(["export", grid, "-o", str(tmp_path / "a.drn")]) == 0
    assert run(["export", str(tmp_path / "a.drn"), "-o", str(tmp_path / "b")]) == 0
    assert run(["export", str(tmp_path / "b.tra"), "-o", str(tmp_path / "c.drn")]) == 0
    assert_same_model(load_prism(grid), read_drn(tmp_path / "c.drn"))


@pytest.mark.parametrize("interval", [False, True])
def test_rewards_of_branches_in_umb_files_are_expectations(interval: bool, tmp_path: Path) -> None:
    """umbi adds rewards of branches to a file of ours: 1 + ¼·8 + ¾·4 = 6, and 1 + 3 where all are alike."""
    import umbi.umb

    half = (0.25, 0.75) if interval else None
    rows = [(0, "go", {0: half or 0.25, 1: half or 0.75}), (1, "stay", {1: 1})]
    model = tr.build_from_rows(rows, choice_rewards={"cost": [1, 0]})
    (model if interval else model.instantiate()).save(tmp_path / "m.umb")
    archive = umbi.umb.read(tmp_path / "m.umb")
    assert archive.annotations is not None
    for earned, expected in (([3, 3, 0], 4.0), ([8, 4, 0], 6.0)):
        archive.annotations["rewards"]["cost"]["branches"] = [float(value) for value in earned]
        archive.index.annotations["rewards"]["cost"].applies_to = ["choices", "branches"]
        umbi.umb.write(archive, tmp_path / "branches.umb")
        if interval and expected == 6.0:
            with pytest.raises(InputError, match="differ between branches of choice 0, and the model has"):
                tr.load(tmp_path / "branches.umb")
        else:
            assert tr.load(tmp_path / "branches.umb").rewards["cost"].choice.tolist() == [expected, 0.0]


def test_umb_files_and_directories_of_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import umbi.umb

    assert run(["export", DIE, "--at", "p=1/3,q=0.25", "-o", str(tmp_path / "die.umb")]) == 0
    archive = umbi.umb.read(tmp_path / "die.umb", strict=True)
    assert archive.branch_to_probability is not None and len(archive.branch_to_probability) == 20
    data, results = tmp_path / "data.parquet", tmp_path / "results"
    assert run(["sample", DIE, "--at", "p=1/3,q=0.25", "--episodes", "50", "-o", str(data)]) == 0
    learn = ["learn", DIE, "--prop", 'P=? [ F "six" ]', "--data", str(data), "-o", str(results)]
    assert run([*learn, "--sets", "tied", "--export", "drn"]) == 0
    assert run(["export", str(results), "-o", str(tmp_path / "learned.umb")]) == 0
    learned = umbi.umb.read(tmp_path / "learned.umb", strict=True)
    assert str(learned.index.transition_system.branch_probability_type.type) == "double-interval"
    assert run([*learn, "--sets", "all", "--export", "drn"]) == 0
    assert run(["export", str(results), "-o", str(tmp_path / "again.umb")]) == 2
    assert "a learned model for each kind of sets" in capsys.readouterr().err
    assert run([*learn]) == 0
    assert run(["export", str(results), "-o", str(tmp_path / "again.umb")]) == 2
    assert "learn again with --export drn" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "{folder}/m.xyz"], "cannot tell which format"),
        (["-o", "{folder}/m.tra"], "the model has parameters: p, q"),
        (["-o", "{folder}/m.tra", "--at", "p=0.5"], "no value for parameter q"),
        (["-o", "{folder}/m.drn", "--at", "p=0.5,q=2"], "lies outside the domain"),
        (["-o", "{folder}/nowhere/m.drn"], "there is no directory"),
        ([], "--output"),
    ],
)
def test_refusals(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", DIE, *(argument.format(folder=tmp_path) for argument in arguments)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_tree_is_learned_written_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data, out = "bench:aircraft(6,3)", str(tmp_path / "data.parquet"), tmp_path / "out"
    assert run(["sample", model, "--episodes", "2000", "--seed", "1", "-o", data]) == 0
    capsys.readouterr()
    words = ["learn", model, "--data", data, "--sets", "tied", "--tree", "1%", "-o", str(out), "--json"]
    assert run(words) == 0
    answer = json.loads(capsys.readouterr().out)
    promise = answer["tree"]["promise"]
    assert promise["guarantee"] == answer["value"]["lower"] >= 0.99 * answer["robust_policy"]["lower"]
    assert run(["export", "--policy", str(out), "--to", "python"]) == 0
    scope: dict[str, Any] = {}
    exec(capsys.readouterr().out, scope)
    loaded = tr.load(model)
    given = tr.Policy(loaded, out / "given-policy.json")
    for state in range(loaded.states):
        values = {name: int(column[state]) for name, column in loaded.structure.valuations.items()}
        assert scope["policy"](**values) == given[values]
    assert run(["learn", model, "--data", data, "--tree", "x"]) == 2
    assert "--tree is 'x', not a number" in capsys.readouterr().err


def test_a_controller_is_exported_with_its_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data, out = "bench:aircraft(3,2)", str(tmp_path / "data.parquet"), tmp_path / "out"
    assert run(["sample", model, "--episodes", "200", "--seed", "1", "-o", data]) == 0
    prop = 'Pmax=? [ (F "goal") & (G !"collision") ]'
    assert run(["learn", model, "--prop", prop, "--data", data, "--sets", "tied", "-o", str(out)]) == 0
    file = tmp_path / "policy.py"
    assert run(["export", "--policy", str(out), "-o", str(file), "--json"]) == 0
    scope: dict[str, Any] = {}
    exec(file.read_text(), scope)
    policy = tr.Policy(tr.load(model), out / "robust-controller.json")
    rows = list(zip(*policy.memory.columns, strict=True))
    for state, memory, choice, following in rows:
        values = [int(column[state]) for column in policy.structure.valuations.values()]
        assert scope["policy"](*values, int(memory)) == (policy.structure.action_name(int(choice)), following)
    capsys.readouterr()
    assert run(["export", "--policy", str(out), "-o", str(file)]) == 0  # a rule of ours is replaced
    file.write_text("mine")
    assert run(["export", "--policy", str(out), "-o", str(file)]) == 2
    assert run(["export", "--policy", str(out)]) == 2
    assert run(["export", "--to", "c"]) == 2
    assert run(["export", DIE, "-o", str(tmp_path / "a.drn"), "--to", "c"]) == 2
    assert "--to requires --policy" in capsys.readouterr().err
