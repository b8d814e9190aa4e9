"""Pictures of models: what the graph says, the part of a large model, and marked choices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.model.picture import HIDDEN, MARK, part_of


def machine() -> tr.ParametricMDP:
    rows = [
        (0, "run", {0: 0.9, 1: 0.1}),
        (0, "service", {0: 1}),
        (1, "run", {1: 0.75, 2: 0.25}),
        (1, "service", {0: 1}),
        (2, "", {2: 1}),
    ]
    return tr.build_from_rows(rows, labels={"bad": [2]}, state_names=["ok", "worn", "failed"])


def test_graph_holds_states_choices_and_probabilities() -> None:
    text = machine().to_dot()
    assert re.findall(r'^  s\d \[label="(.*?)"', text, re.M) == ["ok", "worn", "failed\\nbad"]
    assert re.findall(r'-> c\d \[label="(\w+)"', text) == ["run", "service", "run", "service"]
    assert 'c2 -> s1 [label="3/4"];' in text and 'c2 -> s2 [label="1/4"];' in text
    assert 's2 -> s2 [label="1"];' in text  # one choice without a name: no dot
    assert MARK not in text


def test_choices_of_a_policy_are_marked() -> None:
    model = machine()
    choices = part_of(model, {"ok": "run", "worn": "service"}, 10).choices
    assert [(choice.state, choice.action) for choice in choices if choice.is_taken] == [
        (0, "run"),
        (1, "service"),
        (2, ""),
    ]
    assert model.to_dot({"ok": "run", "worn": "service"}).count(MARK) == 6


def test_large_models_are_shown_around_the_initial_state() -> None:
    model = tr.load("bench:rover(4,4)")
    part = part_of(model, None, 7)
    assert len(part.steps) == 7
    assert sorted(part.steps.values()) == [0, 1, 1, 1, 1, 2, 2]
    assert f'label="{HIDDEN}"' in model.to_dot(most=7)
    assert HIDDEN not in machine().to_dot()


@pytest.mark.parametrize("kind", ["interval", "rates", "point"])
def test_probabilities_of_other_models_are_numbers(kind: str) -> None:
    if kind == "interval":
        model = tr.build_from_rows([(0, "go", {0: (0.25, 0.5), 1: (0.5, 0.75)}), (1, "", {1: 1})])
        assert '[label="[0.5, 0.75]"]' in model.to_dot()
    elif kind == "rates":
        chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: 3})])
        assert '[label="3"]' in chain.instantiate().to_dot() and '[label="3"]' in chain.to_dot()
    else:
        assert '[label="0.1"]' in machine().instantiate().to_dot()


def test_drawing_names_states_and_actions() -> None:
    axes = machine().plot({"ok": "run", "worn": "service"})
    texts = {text.get_text() for text in axes.texts}
    assert {"ok", "worn", "failed\nbad", "run", "service", "3/4", "1/4"} <= texts


def test_info_writes_the_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, graph = tmp_path / "machine.drn", tmp_path / "machine.dot"
    machine().save(file)
    assert run(["info", str(file), "--dot", str(graph), "--states", "2"]) == 0
    text = graph.read_text(encoding="utf-8")
    assert text.startswith("digraph model {") and text.count(HIDDEN) == 1
    assert run(["info", str(file), "--policy", "policy.json"]) == 2
    assert "add --dot FILE" in capsys.readouterr().err
    graph.write_text("mine", encoding="utf-8")
    assert run(["info", str(file), "--dot", str(graph)]) == 2
    assert graph.read_text(encoding="utf-8") == "mine"


def test_no_states_are_refused() -> None:
    with pytest.raises(tr.InputError, match="`most` is 0"):
        machine().to_dot(most=0)
