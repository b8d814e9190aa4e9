"""JANI: what we write is what Storm reads, what Storm's examples hold is what we read; both ways agree."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import stormpy
import stormpy.examples.files as examples

import tightrope as tr
from benchmark_script import run_benchmark
from places import TESTS
from prism.test_language_forms import TIMED
from same_model import assert_same_model, read_jani
from storm import MODELS, Case, cases, plain_from_storm, plain_from_tightrope
from tightrope.benchmarks.suite import parse_bench
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.io.jani.read import read_program, read_properties
from tightrope.io.jani.write import as_program, write_jani
from tightrope.model.structure import ParametricReward
from tightrope.prism.load import load_prism, load_prism_text
from tightrope.prism.load import read_program as read_prism_program

CASES = [case for case in cases() if case.kind != "interval" and "several" not in case.file]
COMPOSED = TESTS / "models" / "symbolic" / "composed.prism"


def written(case: Case, folder: Path, **more: str) -> Path:
    target = folder / "model.jani"
    write_jani(read_prism_program(case.path, {**case.constants, **more}), target)
    return target


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_written_is_read_back(case: Case, tmp_path: Path) -> None:
    model = load_prism(case.path, constants=case.constants)
    assert_same_model(read_jani(written(case, tmp_path)), model)


STORM_CASES = [case for case in CASES if case.states < 400]


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", STORM_CASES, ids=str)
def test_storm_reads_what_is_written(case: Case, tmp_path: Path) -> None:
    """At a point: Storm has no valuations of states beside parameters in JANI."""
    point = {name: str(Fraction(3 + i, 11 + 2 * i)) for i, name in enumerate(case.parameters)}
    target = written(case, tmp_path, **point)
    parsed, _ = stormpy.parse_jani_model(str(target))
    options = stormpy.BuilderOptions(build_full=True)
    model, built = read_jani(target), stormpy.build_model[stormpy.Rational](parsed, options=options)
    theirs = plain_from_storm(built, {}, only=list(model.valuations))
    ours = plain_from_tightrope(model, {}, action_names=built.is_nondeterministic_model)
    names = {
        variable["name"]: variable.get("comment") for variable in json.loads(target.read_text())["variables"]
    }
    shared = [name for name in theirs.labels if names.get(name) is None]
    assert theirs.initial == ours.initial and theirs.counts == ours.counts
    assert {name: theirs.labels[name] for name in shared} == {name: ours.labels[name] for name in shared}
    assert by_amount(theirs.choices) == by_amount(ours.choices)


def by_amount(choices: Any) -> Any:
    """What is earned in order of size: a structure without a name has one with Storm."""
    return {
        state: Counter({(name, tuple(sorted(earned)), row): k for (name, earned, row), k in own.items()})
        for state, own in choices.items()
    }


def test_a_composition_is_written(tmp_path: Path) -> None:
    write_jani(read_prism_program(COMPOSED), tmp_path / "m.jani")
    assert_same_model(read_jani(tmp_path / "m.jani"), load_prism(COMPOSED))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("file", "const", "asked"),
    [
        (examples.jani_dtmc_die, "", "P=? [ F s=7 & d=6 ]"),
        (str(Path(examples.jani_dtmc_die).with_name("brp.jani")), "N=4,MAX=2", "P=? [ F s=5 ]"),
    ],
)
def test_storms_examples(file: str, const: str, asked: str) -> None:
    parsed, _ = stormpy.parse_jani_model(file)
    if const:
        parsed, _ = stormpy.instantiate_constants(parsed, const)
    (formula,) = stormpy.parse_properties(asked, parsed)
    model = stormpy.build_model[float](parsed, [formula])
    value = stormpy.model_checking(model, formula)[model.initial_states[0]]
    given = dict(part.split("=") for part in const.split(",") if part)
    solution = tr.solve(tr.Problem(read_jani(file, given), asked).at())
    assert solution.at_initial_states.lower == pytest.approx(float(value), rel=1e-5)


# --- by hand: what PRISM files do not have ------------------------------------------------------------

SENDER: dict[str, Any] = {
    "name": "sender",
    "variables": [
        {"name": "n", "type": {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 3}}
    ],
    "restrict-initial": {"exp": {"op": "=", "left": "n", "right": 3}},
    "locations": [{"name": "busy"}, {"name": "done", "transient-values": [{"ref": "over", "value": True}]}],
    "initial-locations": ["busy"],
    "edges": [
        {
            "location": "busy",
            "action": "send",
            "guard": {"exp": {"op": ">", "left": "n", "right": 1}},
            "destinations": [
                {
                    "location": "busy",
                    "probability": {"exp": "p"},
                    "assignments": [
                        {"ref": "n", "value": {"op": "-", "left": "n", "right": 1}},
                        {"ref": "cost", "value": 2},
                    ],
                },
                {
                    "location": "busy",
                    "probability": {"exp": {"op": "-", "left": 1, "right": "p"}},
                    "assignments": [{"ref": "cost", "value": 5}],
                },
            ],
        },
        {
            "location": "busy",
            "action": "send",
            "guard": {"exp": {"op": "≤", "left": "n", "right": 1}},
            "destinations": [{"location": "done", "assignments": [{"ref": "cost", "value": 7}]}],
        },
        {"location": "done", "destinations": [{"location": "done"}]},
    ],
}
LINE: dict[str, Any] = {
    "jani-version": 1,
    "name": "line",
    "type": "mdp",
    "actions": [{"name": "send"}, {"name": "tick"}, {"name": "both"}],
    "constants": [{"name": "p", "type": "real"}],
    "variables": [
        {"name": "n", "type": "bool", "initial-value": False},
        {"name": "cost", "type": "real", "transient": True, "initial-value": 0.0},
        {"name": "over", "type": "bool", "transient": True, "initial-value": False},
    ],
    "automata": [
        SENDER,
        {
            "name": "clock",
            "locations": [{"name": "here"}],
            "initial-locations": ["here"],
            "edges": [
                {
                    "location": "here",
                    "action": "tick",
                    "destinations": [
                        {"location": "here", "assignments": [{"ref": "n", "value": {"op": "¬", "exp": "n"}}]}
                    ],
                }
            ],
        },
    ],
    "system": {
        "elements": [{"automaton": "sender"}, {"automaton": "clock"}],
        "syncs": [{"synchronise": ["send", "tick"], "result": "both"}],
    },
}


def put(content: Any, folder: Path) -> Path:
    target = folder / "m.jani"
    target.write_text(json.dumps(content), encoding="utf-8")
    return target


def test_locations_rewards_by_destination_and_synchronised_globals(tmp_path: Path) -> None:
    file = put(LINE, tmp_path)
    model = read_jani(file, {"p": "1/4"})
    assert list(model.valuations) == ["n", "sender_location", "sender_n"]
    assert model.structure.action_names == ("", "both")
    assert model.rewards["cost"].choice is not None
    # p·2 + (1-p)·5 = 17/4 for each of the sends that may fail, 1/p of which are needed twice, then 7.
    solution = tr.solve(tr.Problem(model, 'R{"cost"}max=? [ F "over" ]').at())
    exact = 2 * 4 * Fraction(17, 4) + 7
    assert solution.at_initial_states.lower <= exact <= solution.at_initial_states.upper
    parsed, _ = stormpy.parse_jani_model(str(file))
    parsed, _ = stormpy.instantiate_constants(parsed, "p=0.25")
    (formula,) = stormpy.parse_properties('Pmax=? [ F<=4 "over" ]')
    options = stormpy.BuilderOptions(build_full=True)
    theirs = stormpy.build_model[float](parsed, options=options)
    value = stormpy.model_checking(theirs, formula)[theirs.initial_states[0]]
    ours = tr.solve(tr.Problem(model, 'Pmax=? [ F<=4 "over" ]').at()).at_initial_states
    assert ours.lower - 1e-12 <= value <= ours.upper + 1e-12


def edited(path: list[Any], value: Any) -> Any:
    content = json.loads(json.dumps(LINE))
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return content


MISTAKES: list[tuple[list[Any], Any, str]] = [
    (["type"], "sha", "type: models of type sha are not supported: only dtmc, mdp, ctmc, ma, pta are"),
    (["functions"], {}, "functions: a list […] is expected here"),
    (
        ["variables", 0, "type"],
        {"kind": "datatype", "ref": "int"},
        "variables[0].type: 'ref' is not understood here",
    ),
    (["variables", 0, "type"], "clock", "variables[0].type: the type clock is not supported"),
    (["variables", 0, "type"], "real", "variables[0]: variable 'n' cannot be real"),
    (
        ["automata", 0, "edges", 0, "rate"],
        {"exp": 1},
        "automata[0].edges[0]: rates belong to continuous time",
    ),
    (
        ["automata", 0, "edges", 0, "guard", "exp"],
        {"op": "∃"},
        "automata[0].edges[0].guard.exp: the operator '∃'",
    ),
    (["automata", 0, "edges", 0, "guard", "exp"], "m", "automata[0].edges[0].guard.exp: 'm' is not declared"),
    (
        ["automata", 0, "edges", 0, "guard", "exp"],
        3,
        "automata[0].edges[0].guard.exp: '&' wants a bool, but this is an int",
    ),
    (
        ["automata", 0, "initial-locations"],
        ["x"],
        "automata[0].initial-locations[0]: there is no location 'x'",
    ),
    (["system", "elements", 1, "automaton"], "x", "system.elements[1]: there is no automaton 'x'"),
    (["system", "syncs", 0, "synchronise"], ["send"], "system.syncs[0]: 1 actions for 2 automata"),
    (["automata", 0, "edges", 1, "destinations"], [], "automata[0].edges[1]: an edge needs a destination"),
    (["variables", 1, "initial-value"], 3, "variables[1]: 'cost' is earned, so its initial value must be 0"),
]


@pytest.mark.parametrize(("path", "value", "message"), MISTAKES)
def test_mibets_are_named_by_their_paths(path: list[Any], value: Any, message: str, tmp_path: Path) -> None:
    file = put(edited(path, value), tmp_path)
    with pytest.raises(InputError) as caught:
        read_jani(file, {"p": "1/4"})
    assert str(caught.value).startswith(f"{file}: {message}")


def test_what_destinations_earn_depends_on_parameters(tmp_path: Path) -> None:
    reward = read_jani(put(LINE, tmp_path)).rewards["cost"]
    assert isinstance(reward, ParametricReward)
    assert {reward.expressions.text(row) for row in reward.expression} == {"5 - 3*p", "7", "0"}


def test_writes_that_clash_are_refused(tmp_path: Path) -> None:
    clash = edited(
        ["automata", 0, "edges", 1, "destinations", 0, "assignments"], [{"ref": "n", "value": True}]
    )
    clash["automata"][0]["variables"], clash["automata"][0]["edges"] = [], clash["automata"][0]["edges"][1:]
    clash["automata"][0]["edges"][0]["guard"]["exp"] = "n"
    del clash["automata"][0]["restrict-initial"]
    with pytest.raises(
        InputError, match=r"system.syncs\[0\]: two automata that move together may both assign 'n'"
    ):
        read_jani(put(clash, tmp_path), {"p": "1/4"})


def test_files_that_are_no_json(tmp_path: Path) -> None:
    (tmp_path / "m.jani").write_text('{"jani-version": 1,\n "name": }')
    with pytest.raises(InputError, match=r"m.jani:2:10: this is not JSON: Expecting value"):
        read_jani(tmp_path / "m.jani")
    (tmp_path / "m.jani").write_text('{"type": "mdp", "constants": [NaN]}')
    with pytest.raises(InputError, match="NaN is not a number"):
        read_jani(tmp_path / "m.jani")


def test_the_command_writes_and_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "b.jani"
    assert run(["export", "bench:betting(3)", "-o", str(target)]) == 0
    assert "JANI has no place for the domain of the parameters" in capsys.readouterr().err
    instance = parse_bench("bench:betting(3)")
    assert tr.load(target, domain=instance.domain).hash() == tr.load("bench:betting(3)").hash()
    assert run(["export", str(target), "--at", "p=0.5,q=0", "-o", str(tmp_path / "c.jani"), "--json"]) == 0
    assert read_program(tmp_path / "c.jani").parameters == ()
    drn = tmp_path / "b.drn"
    tr.load("bench:betting(3)").save(drn)
    assert run(["export", str(drn), "-o", str(target), "--overwrite"]) == 0
    assert "give it when reading: --domain" in capsys.readouterr().err
    again = tr.load(target, domain=instance.domain)
    assert again.transitions == tr.load("bench:betting(3)").transitions


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "file", ["races.prism", "biased_die.prism", "cubic.prism", "deadlocks.prism", "merging.prism"]
)
@pytest.mark.filterwarnings("ignore:.*deadlocks")
def test_states_and_transitions_become_one_automaton(file: str, tmp_path: Path) -> None:
    """A DRN file as JANI has the same states, by their variables, and the same choices at a point."""
    model = load_prism(MODELS / file)
    model.save(tmp_path / "m.drn")
    write_jani(as_program(tr.load(tmp_path / "m.drn"), "m.drn"), tmp_path / "m.jani")
    again = tr.load(tmp_path / "m.jani")
    point = {name: Fraction(k + 2, 11) for k, name in enumerate(model.parameters.names)}
    ours, theirs = (plain_from_tightrope(each, point, action_names=True) for each in (model, again))
    assert ours.choices == theirs.choices
    assert ours.labels == theirs.labels
    assert ours.state_rewards == theirs.state_rewards
    assert ours.initial == theirs.initial


def test_what_no_program_holds() -> None:
    plain = tr.build_from_rows([(0, "a b", {0: 1})])
    with pytest.raises(InputError, match="cannot have the action name 'a b'"):
        as_program(plain, "m")
    thirds = tr.build_from_rows([(0, "go", {0: "1/3", 1: "2/3"}), (1, "", {1: 1})]).instantiate()
    with pytest.raises(InputError, match=r"choice 'go' of state 0: the decimals of its probabilities sum to"):
        as_program(thirds, "m")
    rows = [(0, "go", {0: 1}), (0, "go", {1: 1}), (1, "", {1: 1})]
    twice = tr.build_from_rows(rows, choice_rewards={"cost": [1, 2, 0]})
    with pytest.raises(InputError, match="two choices 'go' of one state earn different rewards 'cost'"):
        as_program(twice, "m")


PROPERTIES: list[tuple[Any, str]] = [
    (
        {"op": "Pmax", "exp": {"op": "F", "exp": "over", "step-bounds": {"upper": 4}}},
        "Pmax=? [ F<=(4) (over) ]",
    ),
    (
        {
            "op": "≥",
            "left": {"op": "Pmin", "exp": {"op": "G", "exp": {"op": "¬", "exp": "over"}}},
            "right": 0.5,
        },
        "P>=0.5 [ G (!over) ]",
    ),
    (
        {"op": "Emax", "exp": "cost", "accumulate": ["steps"], "reach": "over"},
        'R{"cost"}max=? [ F (over) ]',
    ),
    ({"op": "Emin", "exp": 1, "accumulate": ["steps"], "reach": "over"}, 'R{"steps"}min=? [ F (over) ]'),
    ({"op": "Emin", "exp": 1, "accumulate": ["steps"], "step-instant": 4}, 'R{"steps"}min=? [ C<=4 ]'),
    ({"op": "Emax", "exp": "cost", "accumulate": ["steps"], "step-instant": 3}, 'R{"cost"}max=? [ C<=3 ]'),
    ({"op": "Emax", "exp": "cost", "step-instant": 3}, 'R{"cost"}max=? [ I=3 ]'),
    (
        {"op": "Emin", "exp": 1, "reach": "over"},
        "an expected value on reaching a state, without 'accumulate', is not read",
    ),
    (
        {"op": "Emin", "exp": 1, "accumulate": ["steps"], "reach": "over", "step-instant": 4},
        "an expected value needs one of 'reach' and 'step-instant'",
    ),
    (
        {"op": "Emin", "exp": 1, "accumulate": ["steps"], "reach": "over", "reward-instants": []},
        "'reward-instants' is not understood here",
    ),
    (
        {"op": "Emin", "exp": 1, "accumulate": ["steps", "exit"], "reach": "over"},
        "1 is accumulated over 'time' in continuous time, elsewhere over 'steps' or 'exit'",
    ),
    (
        {"op": "Pmax", "exp": {"op": "F", "exp": "over", "reward-bounds": []}},
        "Pmax=? [ F (over) ]",
    ),
    (
        {
            "op": "Pmax",
            "exp": {
                "op": "F",
                "exp": "over",
                "reward-bounds": [{"exp": 1, "accumulate": ["steps"], "bounds": {"upper": 4}}],
            },
        },
        'Pmax=? [ F^{rew{"steps"}<=(4)} (over) ]',
    ),
    (
        {
            "op": "Pmax",
            "exp": {
                "op": "F",
                "exp": "over",
                "reward-bounds": [{"exp": 1, "accumulate": ["steps"], "bounds": {"lower": 1, "upper": 4}}],
            },
        },
        'Pmax=? [ F^{rew{"steps"}[1,4]} (over) ]',
    ),
    (
        {
            "op": "Pmax",
            "exp": {
                "op": "F",
                "exp": "over",
                "reward-bounds": [{"exp": 1, "accumulate": ["steps"], "bounds": {"upper": 4}}] * 2,
                "step-bounds": {"upper": 5},
            },
        },
        'Pmax=? [ F^{steps<=(5),rew{"steps"}<=(4),rew{"steps"}<=(4)} (over) ]',
    ),
    ({"op": "Pmax", "exp": {"op": "F", "exp": "over", "step-bounds": {}}}, "a bound is 'lower' or 'upper'"),
    (
        {"op": "Emax", "exp": "cost", "accumulate": ["exit"], "reach": "over"},
        "'cost' is earned by edges, and the property does not accumulate 'steps'",
    ),
    ({"op": "Smax", "exp": "over"}, "Smax=? [ over ]"),
    ({"op": "Smin", "exp": "cost", "accumulate": ["steps"]}, 'R{"cost"}min=? [ S ]'),
    ({"op": "Smin", "exp": "cost", "reach": "over"}, "'reach' is not understood here"),
    (
        {"op": "=", "left": {"op": "Pmin", "exp": {"op": "F", "exp": "over"}}, "right": 1},
        "(Pmin=? [ F (over) ]) = 1",
    ),
    (
        {"op": "≥", "left": {"op": "Pmin", "exp": {"op": "F", "exp": "over"}}, "right": 1, "upper": 1},
        "'upper' is not understood here",
    ),
    (
        {"op": "≤", "left": {"op": "Pmin", "exp": {"op": "F", "exp": "over"}}, "right": 1},
        "(Pmin=? [ F (over) ]) <= 1",
    ),
]


def test_properties_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = [
        {
            "name": f"number {i}",
            "expression": {"op": "filter", "fun": "max", "states": {"op": "initial"}, "values": asked},
        }
        for i, (asked, _) in enumerate(PROPERTIES)
    ]
    file = put(edited(["properties"], listed), tmp_path)
    found = read_properties(file)
    assert [each.text or each.reason for each in found] == [text for _, text in PROPERTIES]
    assert run(["check", str(file), "--const", "p=0.25", "--json"]) == 0
    out, err = capsys.readouterr()
    answers = json.loads(out)["properties"]
    # Two sends of which each takes 1/p tries, and a last one: 9 steps, 41 in cost.
    # A try costs 4.25, and the third step is the last one with probability 1/16: 12.75 + 2.75/16.
    # It is over for ever with probability 1, and then nothing costs anything any more.
    values = [round(answer["lower"], 3) for answer in answers if "lower" in answer]
    assert values == [0.156, 0.0, 41.0, 9.0, 4.0, 12.922, 0.0, 1.0, 0.156, 0.156, 0.156, 1.0, 0.0]
    assert [answer["answer"] for answer in answers if "lower" not in answer] == ["true", "true"]
    assert "the property 'number 0' of" in err and "is left out: 'reach' is not understood here" in err


def compared(left: Any, operator: str, right: Any) -> dict[str, Any]:
    return {"op": operator, "left": left, "right": right}


def test_bounds_and_averages_are_those_of_storm(tmp_path: Path) -> None:
    """Of the properties that Storm reads itself: several reward bounds, and shares of time."""
    edges = [
        {
            "location": "l",
            "guard": {"exp": compared("s", guard, 2)},
            "destinations": [
                {
                    "location": "l",
                    "probability": {"exp": share},
                    "assignments": [{"ref": "s", "value": to}, {"ref": "cost", "value": cost}],
                }
                for share, to in ((0.25, one), (0.75, other))
            ],
        }
        for guard, one, other, cost in (("<", 2, 1, 1), ("<", 0, 2, 3), ("=", 0, 1, 2))
    ]
    content = {
        "jani-version": 1,
        "name": "ring",
        "type": "mdp",
        "features": ["derived-operators"],
        "variables": [
            {
                "name": "s",
                "type": {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 2},
                "initial-value": 0,
            },
            {"name": "cost", "type": "real", "transient": True, "initial-value": 0},
        ],
        "automata": [{"name": "a", "locations": [{"name": "l"}], "initial-locations": ["l"], "edges": edges}],
        "system": {"elements": [{"automaton": "a"}]},
    }
    bounds = [
        {"exp": "cost", "accumulate": ["steps"], "bounds": {"upper": 6}},
        {"exp": 1, "accumulate": ["steps"], "bounds": {"upper": 4}},
    ]
    reached = {"op": "F", "exp": compared("s", "=", 2), "reward-bounds": bounds}
    asked = [
        {"op": operator, "exp": exp}
        for operators, exp in ((("Pmax", "Pmin"), reached), (("Smax", "Smin"), compared("s", "=", 2)))
        for operator in operators
    ]
    content["properties"] = [
        {
            "name": f"p{number}",
            "expression": {"op": "filter", "fun": "max", "states": {"op": "initial"}, "values": one},
        }
        for number, one in enumerate(asked)
    ]
    file = put(content, tmp_path)
    model, ours = read_jani(file), [each.text for each in read_properties(file)]
    assert ours[0] == 'Pmax=? [ F^{rew{"cost"}<=(6),rew{"steps"}<=(4)} (s = 2) ]'
    parsed, theirs = stormpy.parse_jani_model(str(file))
    for text, formula in zip(ours, theirs, strict=True):
        built = stormpy.build_model(parsed, [formula])
        checked = stormpy.model_checking(built, formula, only_initial_states=True)
        found = tr.solve(model, text).bounds
        value = checked.get_value(built.initial_states[0])
        assert found is not None and found[0] - 1e-5 <= value <= found[1] + 1e-5, text


LATE = compared("x", "≥", 4)
TIMED_LINE: dict[str, Any] = {
    "jani-version": 1,
    "name": "sender",
    "type": "pta",
    "constants": [{"name": "D", "type": "int", "value": 2}],
    "variables": [
        {"name": "done", "type": "bool", "transient": True, "initial-value": False},
        {"name": "energy", "type": "real", "transient": True, "initial-value": 0},
    ],
    "automata": [
        {
            "name": "sender",
            "variables": [{"name": "x", "type": "clock", "initial-value": 0}],
            "locations": [
                {
                    "name": "send",
                    "time-progress": {"exp": compared("x", "≤", "D")},
                    "transient-values": [{"ref": "energy", "value": 2}],
                },
                {"name": "wait", "time-progress": {"exp": compared("x", "≤", 5)}},
                {"name": "end", "transient-values": [{"ref": "done", "value": True}]},
            ],
            "initial-locations": ["send"],
            "edges": [
                {
                    "location": "send",
                    "guard": {"exp": compared("x", "≥", 1)},
                    "assignments": [{"ref": "energy", "value": 5}],
                    "destinations": [
                        {"location": "end", "probability": {"exp": 0.7}},
                        {
                            "location": "wait",
                            "probability": {"exp": 0.3},
                            "assignments": [{"ref": "x", "value": 0}],
                        },
                    ],
                },
                {
                    "location": "wait",
                    "guard": {"exp": compared("x", "≥", 3)},
                    "destinations": [{"location": "send", "assignments": [{"ref": "x", "value": 0}]}],
                },
                {"location": "end", "destinations": [{"location": "end"}]},
            ],
        }
    ],
    "system": {"elements": [{"automaton": "sender"}]},
    "properties": [
        {
            "name": "time",
            "expression": {"op": "Emin", "exp": 1, "accumulate": ["time"], "reach": "done"},
        },
        {
            "name": "soon",
            "expression": {
                "op": "Pmin",
                "exp": {"op": "F", "exp": "done", "time-bounds": {"upper": 8}},
            },
        },
        {
            "name": "energy",
            "expression": {"op": "Emin", "exp": "energy", "accumulate": ["time", "steps"], "reach": "done"},
        },
    ],
}


@pytest.mark.parametrize("is_global", [False, True])
def test_timed_automata_have_digital_clocks(tmp_path: Path, is_global: bool) -> None:
    """The same automaton as in the PRISM language (test_language), where values are worked out by hand."""
    content = json.loads(json.dumps(TIMED_LINE))
    if is_global:
        content["variables"] += content["automata"][0].pop("variables")
    file = put(content, tmp_path)
    model, twin = read_jani(file), load_prism_text(TIMED)
    assert (model.states, model.transitions) == (twin.states, twin.transitions)
    texts = [each.text for each in read_properties(file)]
    assert texts == [
        'R{"time"}min=? [ F (done) ]',
        "Pmin=? [ F<=(8) (done) ]",
        'R{"energy"}min=? [ F (done) ]',
    ]
    for text, value in zip(texts, (1.9 / 0.7, 0.7, 10), strict=True):
        for subject, asked in ((model, text), (twin, text.replace("(done)", '"done"'))):
            assert tr.solve(subject, asked).bounds == pytest.approx((value, value), abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exp": compared("x", "<", "D")}, "clock 'x' is compared by <"),
        ({"exp": compared({"op": "max", "left": "x", "right": 1}, "≤", "D")}, "where it is negated"),
        ({"exp": {"op": "¬", "exp": compared("x", "≤", "D")}}, "where it is negated"),
    ],
)
def test_what_digital_clocks_cannot_say(tmp_path: Path, change: Any, message: str) -> None:
    content = json.loads(json.dumps(TIMED_LINE))
    content["automata"][0]["locations"][0]["time-progress"] = change
    with pytest.raises(InputError, match=message):
        read_jani(put(content, tmp_path))
    content["type"] = "mdp"
    with pytest.raises(InputError, match="the type clock is not supported"):
        read_jani(put(content, tmp_path))


def test_a_clock_is_looked_at_by_one_automaton(tmp_path: Path) -> None:
    content = json.loads(json.dumps(TIMED_LINE))
    content["variables"] += content["automata"][0].pop("variables")
    watcher = {
        "name": "watcher",
        "locations": [{"name": "l"}],
        "initial-locations": ["l"],
        "edges": [
            {"location": "l", "guard": {"exp": compared("x", "≥", 4)}, "destinations": [{"location": "l"}]}
        ],
    }
    content["automata"].append(watcher)
    content["system"]["elements"].append({"automaton": "watcher"})
    with pytest.raises(InputError, match="clock 'x' stands in guards of other modules"):
        read_jani(put(content, tmp_path))
    late = {"op": "Pmax", "exp": {"op": "F", "exp": LATE}}
    content["properties"] = [{"name": "late", "expression": late}]
    content["automata"].pop()
    content["system"]["elements"].pop()
    file = put(content, tmp_path)
    (text,) = [each.text for each in read_properties(file)]
    with pytest.raises(InputError, match="clock"):
        tr.solve(read_jani(file), text)


def test_several_initial_states_are_not_written(tmp_path: Path) -> None:
    program = read_prism_program(next(case for case in cases() if "several" in case.file).path, {"N": "4"})
    with pytest.raises(InputError, match="several initial states are not written as JANI"):
        write_jani(program, tmp_path / "m.jani")
    with pytest.raises(InputError, match="JANI has no interval probabilities"):
        write_jani(replace(program, is_interval=True), tmp_path / "m.jani")


def test_round_trips_of_all_formats(tmp_path: Path) -> None:
    finished = run_benchmark("format_round_trips.py", "betting(3)", "-o", tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert finished.returncode == 0 and [row["same"] for row in rows] == [True] * 4
