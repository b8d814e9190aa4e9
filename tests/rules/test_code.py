"""Exported code, compiled and run on all states, does what the policy does."""

from __future__ import annotations

import ctypes
import itertools
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.rules.code import ENDINGS, format_of, write_rule
from tightrope.rules.rule import Branch, Column, DecisionRule, Leaf, RuleMemory, RuleRow, RuleTest

Decide = Callable[..., Any]
COMPILER = shutil.which("cc") or shutil.which("gcc")


def in_python(rule: DecisionRule, folder: Path) -> Decide:
    scope: dict[str, Any] = {}
    exec(compile(write_rule(rule, "python"), "policy.py", "exec"), scope)
    return scope["policy"]


def in_c(rule: DecisionRule, folder: Path) -> Decide:
    """A compiled function; where there is no compiler, the names in the source at least."""
    assert COMPILER is not None
    source, library = folder / "policy.c", folder / "policy.so"
    source.write_text(write_rule(rule, "c"))
    command = [COMPILER, "-Wall", "-Werror", "-std=c99", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    policy = ctypes.CDLL(str(library)).policy

    def decide(*state: Any) -> Any:
        *values, last = state if rule.memory is RuleMemory.MEMORY else (*state, 0)
        memory = ctypes.c_int(last)
        plain = [value.encode() if isinstance(value, str) else ctypes.c_longlong(value) for value in values]
        more = [ctypes.byref(memory)] if rule.memory is RuleMemory.MEMORY else []
        action = policy(*plain, *more)
        if action < 0:
            raise KeyError(state)
        return (rule.actions[action], memory.value) if more else rule.actions[action]

    return decide


def in_sql(rule: DecisionRule, folder: Path) -> Decide:
    database = sqlite3.connect(":memory:")
    extra = {RuleMemory.NONE: [], RuleMemory.STEP: ["step"], RuleMemory.MEMORY: ["memory"]}[rule.memory]
    names = [*(column.name for column in rule.columns), *extra]
    quoted = ", ".join(json.dumps(name) for name in names)
    database.execute(f"CREATE TABLE states ({quoted})")
    database.executescript(write_rule(rule, "sql"))

    def decide(*state: Any) -> Any:
        database.execute("DELETE FROM states")
        database.execute(f"INSERT INTO states VALUES ({', '.join('?' * len(names))})", state)
        row = database.execute("SELECT * FROM decisions").fetchone()[len(names) :]
        if row[0] is None:
            raise KeyError(state)
        return row if rule.memory is RuleMemory.MEMORY else row[0]

    return decide


LANGUAGES = [in_python, in_sql, *([in_c] if COMPILER else [])]


@cache
def rover() -> tuple[tr.ParametricMDP, tr.Policy]:
    bench = tr.benchmark("rover(10,10)")
    return bench.model, tr.solve(bench.at_truth).policy


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_table_agrees_on_every_state(language: Any, tmp_path: Path) -> None:
    model, policy = rover()
    decide, structure = language(policy.as_rule(), tmp_path), model.structure
    columns = [column.tolist() for column in structure.valuations.values()]
    states = list(zip(*columns, strict=True))
    actions = [structure.action_name(choice) for choice in policy.choice.tolist()]
    wrong = [state for state, action in zip(states, actions, strict=True) if decide(*state) != action]
    assert wrong == [] and len(states) == 5139
    with pytest.raises(KeyError):
        decide(*(99 for _ in columns))


def tree() -> DecisionRule:
    """Every kind of test, with names that are words of the languages."""
    columns = [
        Column(name="int", kind="int"),
        Column(name="is", kind="int"),
        Column(name="sent", kind="bool"),
        Column(name="where", kind="text"),
    ]
    low = Branch(RuleTest(left="int", bound=1), Leaf('say "hi" */'), Leaf("it's"))
    over = Branch(RuleTest(left="int", right="is", sign=-1, bound=-1), low, Leaf("ü?"))
    both = Branch(RuleTest(left="int", right="is", sign=1, bound=5), over, Leaf(""))
    home = Branch(RuleTest(left="where", bound="o\"k'", equal=True), both, Leaf("away"))
    actions = ['say "hi" */', "it's", "ü?", "", "away", "off"]
    return DecisionRule(
        columns=columns, actions=actions, tree=Branch(RuleTest(left="sent", bound=0), Leaf("off"), home)
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_tree_agrees_on_every_state(language: Any, tmp_path: Path) -> None:
    rule = tree()
    decide = language(rule, tmp_path)
    states = list(itertools.product(range(4), range(4), (False, True), ("o\"k'", "else")))
    names = [column.name for column in rule.columns]
    columns = {name: np.array(values) for name, values in zip(names, zip(*states, strict=True), strict=True)}
    expected = [rule.actions[action] for action in rule.decide(columns)]
    assert [decide(*state) for state in states] == expected
    assert set(expected) == set(rule.actions)


@pytest.mark.parametrize("language", LANGUAGES)
def test_policies_with_a_memory_or_by_steps_agree(language: Any, tmp_path: Path) -> None:
    rows = [(0, "left", {1: 1}), (0, "right", {2: 1}), (1, "", {0: 1}), (2, "", {0: 1})]
    model = tr.build_from_rows(rows, labels={"a": [1], "b": [2]})
    turns = tr.Policy(model, tr.FiniteMemoryChoices([0, 1, 0, 2], [0, 1, 1, 0], [0, 2, 1, 3], [1, 1, 0, 0]))
    decide = language(turns.as_rule(), tmp_path)
    for state, memory in ((0, 0), (1, 1), (0, 1), (2, 0)):
        assert decide(state, memory) == (turns.act(state, memory=memory), turns.next_memory(state, memory))
    with pytest.raises(KeyError):
        decide(1, 0)
    later = tr.Policy(model, tr.TimeVaryingChoices([0, 3, 4, 5], [0, 2, 7, 0, 0], [0, 1, 0, 2, 3]))
    (inner := tmp_path / "steps").mkdir()
    decide = language(later.as_rule(), inner)
    for state, step in itertools.product(range(3), range(10)):
        assert decide(state, step) == later.act(state, step=step)


def test_documents_and_graphs(tmp_path: Path) -> None:
    rule = tree()
    text = write_rule(rule, "markdown")
    assert "- if not sent: off\n- otherwise:\n  - if where is o\"k':" in text
    graph = write_rule(rule, "dot")
    assert "\ndigraph tree {\n" in graph and graph.count("->") == 10
    _, policy = rover()
    policy.export(tmp_path / "policy.json")
    assert DecisionRule.read(tmp_path / "policy.json") == policy.as_rule()
    table = DecisionRule(
        columns=[Column(name="x", kind="int", names={"0": "a|b"})], actions=["go"], table=[RuleRow([0], "go")]
    )
    assert write_rule(table, "markdown").endswith("| x | action |\n| --- | --- |\n| a\\|b | go |\n")
    with pytest.raises(InputError, match="graphs are drawn of trees"):
        write_rule(table, "dot")
    assert [format_of(Path(f"a{ending}"), None) for ending in ENDINGS] == list(ENDINGS.values())
    with pytest.raises(InputError, match="names no format"):
        format_of(Path("a.txt"), None)
    with pytest.raises(InputError, match="`to` is 'rust'"):
        format_of(Path("a.txt"), "rust")
    with pytest.raises(InputError, match="a randomised policy is no rule"):
        tr.Policy.uniform(policy.structure).export(tmp_path / "policy.py")


def named(*states: Any, **words: Any) -> tr.Policy:
    """A policy of three states in a row that goes on and leaves, with these names."""
    first, second, last = states
    rows = {first: {"go": {second: 1}, "stay": {first: 1}}, second: {"stay": {second: 1}, "leave": {last: 1}}}
    model = tr.build_from_function(first, {**rows, last: {"": {last: 1}}}, **words)
    return tr.Policy.of_choices(model.structure, np.array([0, 3, 4]))


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_beyond_32_bits_agree(language: Any, tmp_path: Path) -> None:
    states = 5, 5 + 2**32, -(2**40)
    decide = language(named(*states).as_rule(), tmp_path)
    assert [decide(state) for state in states] == ["go", "leave", ""]


@pytest.mark.parametrize(
    "policy", [lambda: named(1, "1", 2), lambda: named(0, 1, 2, variables=lambda state: {"x": state // 2})]
)
def test_states_that_columns_do_not_tell_apart_have_no_table(policy: Callable[[], tr.Policy]) -> None:
    with pytest.raises(InputError, match="several states have the same"):
        policy().as_rule()
