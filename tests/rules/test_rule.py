"""Rules in words, and states and actions as rules name them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.rules.rule import Branch, Column, DecisionRule, Leaf, RuleTest
from tightrope.rules.states import columns_of, name_choices

WEAR = Column(name="wear", kind="int", names={"0": "new", "1": "worn"})
ON = Column(name="on", kind="bool")
AGE = Column(name="age", kind="int")


def rule(tree: Branch | Leaf) -> DecisionRule:
    return DecisionRule(columns=[WEAR, ON, AGE], actions=["run", "service"], tree=tree)


def test_small_trees_are_one_sentence() -> None:
    tree = Branch(RuleTest(left="age", bound=1), Leaf("run"), Leaf("service"))
    assert rule(tree).sentence() == "If age is at most 1, run; otherwise service."
    nested = Branch(RuleTest(left="on", bound=0), Leaf("run"), tree)
    assert rule(nested).sentence() == "If not on, run; otherwise if age is at most 1, run; otherwise service."
    assert rule(Leaf("run")).sentence() == "Always run."
    assert rule(nested).nodes == 2
    assert rule(nested).words() == [
        (0, "if not on: run"),
        (0, "otherwise:"),
        (1, "if age is at most 1: run"),
        (1, "otherwise: service"),
    ]


@pytest.mark.parametrize(
    ("test", "holds", "fails"),
    [
        (RuleTest(left="wear", bound=0), "wear is at most new", "wear is at least worn"),
        (RuleTest(left="wear", bound=0, equal=True), "wear is new", "wear is not new"),
        (
            RuleTest(left="age", right="wear", sign=-1, bound=0),
            "age is at most wear",
            "age is greater than wear",
        ),
        (
            RuleTest(left="age", right="wear", sign=-1, bound=-1),
            "age is less than wear",
            "age is at least wear",
        ),
        (
            RuleTest(left="age", right="wear", sign=1, bound=4),
            "age + wear is at most 4",
            "age + wear is at least 5",
        ),
    ],
)
def test_tests_and_their_negations_in_words(test: RuleTest, holds: str, fails: str) -> None:
    columns = rule(Leaf("run")).by_name
    assert (test.words(columns), test.words(columns, holds=False)) == (holds, fails)


def test_a_rule_decides_and_is_read_back(tmp_path: Path) -> None:
    tree = Branch(RuleTest(left="age", right="wear", sign=-1, bound=0), Leaf("service"), Leaf("run"))
    columns = {"age": np.array([0, 1, 2]), "wear": np.array([1, 1, 1]), "on": np.array([True, True, False])}
    assert rule(tree).decide(columns).tolist() == [1, 1, 0]
    file = tmp_path / "rule.json"
    file.write_bytes(msgspec.json.encode(rule(tree)))
    assert DecisionRule.read(file) == rule(tree)
    file.write_text('{"columns": []}')
    with pytest.raises(InputError, match="this is not a decision rule"):
        DecisionRule.read(file)
    with pytest.raises(InputError, match="cannot read"):
        DecisionRule.read(tmp_path / "none.json")


def test_columns_are_variables_places_of_tuples_names_or_labels() -> None:
    rows = [(0, "go", {1: 1}), (1, "", {1: 1})]
    columns, values = columns_of(tr.build_from_rows(rows, state_names=[(0, "a"), (1, "b")]).structure)
    assert [(one.name, one.kind) for one in columns] == [("state_1", "int"), ("state_2", "text")]
    assert values["state_2"].tolist() == ["a", "b"]
    (column,), _ = columns_of(tr.build_from_rows(rows, labels={"worn": [1]}).structure)
    assert (column.name, column.call(1), column.call(0)) == ("state", "worn", "0")


def test_choices_without_a_name_of_their_own_are_numbered() -> None:
    rows = [(0, "go", {1: 1}), (0, "go", {2: 1}), (0, "stay", {0: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    names, number = name_choices(tr.build_from_rows(rows).structure)
    assert [names[k] for k in number] == ["choice 0", "choice 1", "stay", "", ""]
