"""Functions and arrays of JANI: read as Storm reads them, and as the same model without them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import stormpy

import tightrope as tr
from same_model import assert_same_model, read_jani
from storm import plain_from_storm, plain_from_tightrope
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.io.jani.read import read_program, read_properties
from tightrope.io.jani.write import write_jani


def op(operator: str, left: Any, right: Any) -> dict[str, Any]:
    return {"op": operator, "left": left, "right": right}


def at(array: Any, *indices: Any) -> Any:
    for index in indices:
        array = {"op": "aa", "exp": array, "index": index}
    return array


def call(function: str, *arguments: Any) -> dict[str, Any]:
    return {"op": "call", "function": function, "args": list(arguments)}


def bounded(low: Any, high: Any) -> dict[str, Any]:
    return {"kind": "bounded", "base": "int", "lower-bound": low, "upper-bound": high}


def array_of(base: Any) -> dict[str, Any]:
    return {"kind": "array", "base": base}


def function(name: str, type_: Any, parameters: dict[str, Any], body: Any) -> dict[str, Any]:
    listed = [{"name": key, "type": each} for key, each in parameters.items()]
    return {"name": name, "type": type_, "parameters": listed, "body": body}


def edge(guard: Any, *destinations: tuple[Any, dict[str, Any] | list[tuple[Any, Any]]]) -> dict[str, Any]:
    made = []
    for probability, assigned in destinations:
        pairs = assigned.items() if isinstance(assigned, dict) else assigned
        assignments = [{"ref": ref, "value": value} for ref, value in pairs]
        made.append({"location": "here", "probability": {"exp": probability}, "assignments": assignments})
    return {"location": "here", "action": "go", "guard": {"exp": guard}, "destinations": made}


def model(variables: list[Any], edges: list[Any], functions: list[Any] | None = None, **more: Any) -> Any:
    """One automaton with one location."""
    over = {"name": "over", "type": "bool", "transient": True, "initial-value": False}
    done = more.pop("over", False)
    here = {"name": "here", "transient-values": [{"ref": "over", "value": done}]}
    automaton = {"name": "main", "locations": [here], "initial-locations": ["here"], "edges": edges}
    automaton |= more.pop("local", {})
    return {
        "jani-version": 1,
        "name": "m",
        "type": "mdp",
        "features": ["arrays", "functions", "derived-operators"],
        "actions": [{"name": "go"}],
        "variables": [*variables, over],
        "functions": functions or [],
        "automata": [automaton],
        "system": {"elements": [{"automaton": "main"}], "syncs": [{"synchronise": ["go"], "result": "go"}]},
        **more,
    }


def put(content: Any, folder: Path, name: str = "m.jani") -> Path:
    target = folder / name
    target.write_text(json.dumps(content), encoding="utf-8")
    return target


# A walker fills three cells in any order; a cell may be lost again. `i` is where it stands.
CELLS = model(
    variables=[
        {"name": "i", "type": bounded(0, 2), "initial-value": 0},
        {
            "name": "a",
            "type": array_of(bounded(0, 2)),
            "initial-value": {"op": "ac", "var": "k", "length": "N", "exp": op("-", 1, op("%", "k", 2))},
        },
        {"name": "b", "type": array_of("bool"), "initial-value": {"op": "av", "elements": [False, True]}},
    ],
    functions=[
        function("up", "int", {"x": "int"}, {"op": "min", "left": 2, "right": op("+", "x", 1)}),
        function("next", bounded(0, 2), {"x": bounded(0, 2)}, op("%", call("up", op("%", "x", 2)), "N")),
        function("sum", "int", {"c": array_of("int")}, op("+", op("+", at("c", 0), at("c", 1)), at("c", 2))),
        function("chance", "real", {"of": "int"}, op("/", op("+", "of", 1), 5)),
    ],
    edges=[
        edge(
            op("<", at("a", "i"), 2),
            (call("chance", at("a", "i")), [(at("a", "i"), call("up", at("a", "i")))]),
            (
                op("-", 1, call("chance", at("a", "i"))),
                [("i", call("next", "i")), (at("b", 0), {"op": "¬", "exp": at("b", 1)})],
            ),
        ),
        edge(
            op(">", call("sum", "a"), 1),
            (1, [("i", call("next", "i")), (at("b", op("%", "i", 2)), op("=", at("a", 0), at("a", "i")))]),
        ),
    ],
    over=op("∧", op("=", call("sum", "a"), 6), at("b", 1)),
    constants=[{"name": "N", "type": "int", "value": 3}],
)


def test_storm_reads_the_same(tmp_path: Path) -> None:
    file = put(CELLS, tmp_path)
    ours = read_jani(file)
    assert list(ours.valuations) == ["i", "a_at_0", "a_at_1", "a_at_2", "b_at_0", "b_at_1"]
    parsed, _ = stormpy.parse_jani_model(str(file))
    built = stormpy.build_model[stormpy.Rational](parsed, options=stormpy.BuilderOptions(build_full=True))
    theirs = plain_from_storm(built, {}, only=list(ours.valuations))
    plain = plain_from_tightrope(ours, {}, action_names=True)
    assert theirs.initial == plain.initial and theirs.counts == plain.counts
    assert theirs.labels["over"] == plain.labels["over"]
    assert theirs.choices == plain.choices


def test_what_is_written_keeps_the_checks(tmp_path: Path) -> None:
    """Nothing of an array is left in the program but variables and checks; both readers take it back."""
    target = tmp_path / "again.jani"
    write_jani(read_program(put(CELLS, tmp_path)), target)
    assert "arrays" in json.loads(target.read_text())["features"]
    ours = read_jani(target)
    assert_same_model(ours, read_jani(tmp_path / "m.jani"))
    built = stormpy.build_model[float](stormpy.parse_jani_model(str(target))[0])
    assert (built.nr_states, built.nr_transitions) == (ours.structure.states, ours.structure.transitions)
    write_jani(read_program(put(EVALUATED[0][0], tmp_path)), target)
    with pytest.raises(InputError, match=r"this index is outside of the array, .* in state \(x=2,"):
        read_jani(target)


def probability(content: Any, folder: Path, asked: str = 'Pmax=? [ F "over" ]', **const: str) -> float:
    found = tr.solve(tr.Problem(read_jani(put(content, folder), const), asked).at()).at_initial_states
    assert found.upper - found.lower < 1e-9
    return float(found.lower)


GRID = {
    "name": "grid",
    "type": array_of(array_of("bool")),
    "initial-value": {
        "op": "ac",
        "var": "r",
        "length": "N",
        "exp": {"op": "ac", "var": "c", "length": op("+", "r", 1), "exp": op("=", "r", "c")},
    },
}
ROW = {"name": "r", "type": bounded(0, 5), "initial-value": 1}


def test_nested_arrays_of_different_lengths(tmp_path: Path) -> None:
    """Rows of 1, 2, 3, … cells, true on the diagonal: names, a whole row at once, an element of a row."""
    edges = [
        edge(
            at("grid", "r", 1),
            ("p", [(at("grid", "r", 0), at("grid", 0, 0)), ("r", 2)]),
            (op("-", 1, "p"), [(at("grid", 1), {"op": "av", "elements": [True, False]})]),
        ),
        edge(op("∧", op("=", "r", 2), at("grid", 1, 0)), (1, [(at("grid", op("-", "r", 1), 1), False)])),
    ]
    constants = [{"name": "N", "type": "int"}, {"name": "p", "type": "real"}]
    content = model([GRID, ROW], edges, constants=constants, over={"op": "¬", "exp": at("grid", 1, 1)})
    made = read_jani(put(content, tmp_path), {"N": "3", "p": "1/3"})
    cells = [f"grid_at_{r}_at_{c}" for r in range(3) for c in range(r + 1)]
    assert list(made.valuations) == [*cells, "r"]
    assert probability(content, tmp_path, N="3", p="1/3") == 1
    assert probability(content, tmp_path, "Pmax=? [ F r=2 ]", N="3", p="1/3") == pytest.approx(1 / 3)


INDEX = {"name": "x", "type": bounded(-1, 3), "initial-value": 0}
PAIR = {"name": "a", "type": array_of(bounded(0, 9)), "initial-value": {"op": "av", "elements": [4, 7]}}


def moved(step: Any, assigned: list[tuple[Any, Any]], guard: Any = True) -> Any:
    return model([INDEX, PAIR], [edge(guard, (1, [("x", step), *assigned]))])


OUTSIDE = "this index is outside of the array, whose 2 elements are 0..1"
FIRST = "automata[0].edges[0].destinations[0].assignments"
EVALUATED: list[tuple[Any, str]] = [
    (
        moved(op("+", "x", 1), [(at("a", 0), at("a", "x"))]),
        f"{FIRST}[1].value.index: {OUTSIDE} in state (x=2,",
    ),
    (moved(op("+", "x", 1), [(at("a", "x"), 1)]), f"{FIRST}[1].ref.index: {OUTSIDE} in state (x=2,"),
    (
        moved(op("max", -1, op("-", "x", 1)), [(at("a", "x"), 1)]),
        f"{FIRST}[1].ref.index: {OUTSIDE} in state (x=-1,",
    ),
    (moved(1, [(at("a", 2), 1)]), f"{FIRST}[1].ref.index: {OUTSIDE}"),
    (
        moved(1, [], guard=op("=", at({"op": "av", "elements": [3]}, "x"), 3)),
        "automata[0].edges[0].guard.exp.left.index: this index is outside of the array",
    ),
    (
        moved(1, [(at("a", "x"), 1), (at("a", 1), 2)]),
        f"{FIRST}[2]: one update assigns an element of 'a' twice in state (x=1,",
    ),
    (
        moved(1, [(at("a", 0), call("half", op("*", 3, "x")))])
        | {"functions": [function("half", "int", {"of": bounded(0, 2)}, "of")]},
        f"{FIRST}[1].value.args[0]: the argument 'of' of 'half' is outside of its bounds in state (x=1,",
    ),
    (
        moved(1, [(at("a", 0), call("twice", "x"))])
        | {"functions": [function("twice", bounded(0, 1), {"of": "int"}, op("*", 2, "of"))]},
        f"{FIRST}[1].value: what 'twice' gives is outside of its bounds in state (x=1,",
    ),
]


@pytest.mark.parametrize(("content", "message"), EVALUATED)
def test_what_is_wrong_in_a_state_is_an_error(content: Any, message: str, tmp_path: Path) -> None:
    file = put(content, tmp_path)
    with pytest.raises(InputError) as caught:
        read_jani(file)
    assert str(caught.value).startswith(f"{file}: {message}")


def test_only_what_is_evaluated_is_checked(tmp_path: Path) -> None:
    """x goes to 3, and a[x] stands behind x < 2 only: in a guard, in a choice, in what other edges assign."""
    inside = op("∧", op("<", "x", 2), op("=", at("a", "x"), 7))
    chosen = {"op": "ite", "if": op("<", "x", 2), "then": at("a", "x"), "else": 0}
    counted = edge(op("<", "x", 3), (1, [("x", op("+", "x", 1)), (at("a", 0), chosen)]))
    swap = [(at("a", "x"), at("a", op("-", 1, "x"))), (at("a", op("-", 1, "x")), at("a", "x"))]
    content = model([INDEX, PAIR], [counted, edge(inside, (1, swap))], over=inside)
    made = read_jani(put(content, tmp_path))
    assert max(made.valuations["x"]) == 3
    states = {
        tuple(int(column[s]) for column in made.valuations.values()) for s in range(made.structure.states)
    }
    # (0,4,7) → (1,4,7), and by a swap there → (1,7,4); then a[0] becomes a[1], and then 0.
    assert states == {(0, 4, 7), (1, 4, 7), (1, 7, 4), (2, 7, 7), (2, 4, 4), (3, 0, 7), (3, 0, 4)}


def test_names_of_a_function_are_those_of_its_place(tmp_path: Path) -> None:
    """`shift` means the global x, also where an automaton with its own x calls it, and with x as argument."""
    shift = function("shift", "int", {"y": "int"}, op("+", "y", "x"))
    own = function("own", "int", {"y": "int"}, op("*", 10, op("+", call("shift", "y"), "x")))
    content = model(
        [{"name": "x", "type": bounded(0, 9), "initial-value": 2}],
        [edge(op("=", "x", 3), (1, [("to", call("own", op("+", "x", 1))), ("x", 4)]))],
        [shift],
        local={
            "functions": [own],
            "variables": [
                {"name": "x", "type": bounded(0, 9), "initial-value": 3},
                {"name": "to", "type": "int", "initial-value": call("shift", -2)},
            ],
        },
    )
    with pytest.raises(InputError, match="must be constant, but depends on variable 'x'"):
        read_jani(put(content, tmp_path))
    content["automata"][0]["variables"][1]["initial-value"] = 0
    made = read_jani(put(content, tmp_path))
    assert list(made.valuations) == ["x", "main_x", "to"]
    assert sorted(map(int, made.valuations["to"])) == [0, 10 * ((4 + 2) + 3)]


REFUSED: list[tuple[Any, str]] = [
    (
        [function("f", "int", {}, call("g")), function("g", "int", {}, call("f"))],
        "functions[0].body: functions refer to each other in a circle: f → g → f",
    ),
    (
        [function("f", "int", {"y": "int"}, op("+", call("f", "y"), 1))],
        "functions[0].body.left: functions refer to each other in a circle: f → f",
    ),
    (
        [function("f", "int", {}, call("h"))],
        "functions[0].body: there is no function 'h'\nhint: the functions are: f",
    ),
    (
        [function("f", "int", {}, 1), function("f", "int", {}, 2)],
        "functions[1]: the function 'f' is declared twice",
    ),
    ([function("f", "int", {}, True)], "functions[0]: what 'f' gives must be an int, but this is a bool"),
    ([function("f", "int", {}, "z")], "functions[0]: 'z' is not declared"),
    ([function("f", "int", {}, at("x", 0))], "functions[0].body.exp: an array is expected here"),
    (
        [function("f", "int", {}, at("a", 0.5))],
        "functions[0].body.index: the index of an array must be an int, but this is a double",
    ),
    ([function("f", "int", {}, "a")], "functions[0]: what 'f' gives must be a single value, and is an array"),
    (
        [function("f", "int", {}, op("+", "a", 1))],
        "functions[0].body.left: a single value is expected here, and this is an array",
    ),
    (
        [function("f", "int", {"y": "int"}, "y"), function("g", "int", {}, call("f"))],
        "functions[1].body: 'f' takes 1 argument, and 0 are given",
    ),
    (
        [function("f", "int", {"y": "int"}, "y"), function("g", "int", {}, call("f", 0.5))],
        "functions[1].body.args[0]: the argument 'y' of 'f' must be an int, but this is a double",
    ),
    (
        [function("f", "int", {"y": array_of("int")}, at("y", 0)), function("g", "int", {}, call("f", "x"))],
        "functions[1].body.args[0]: the argument 'y' of 'f' must be an array",
    ),
    (
        [{**function("f", "int", {}, 1), "parameters": [{"name": "y", "type": "int"}] * 2}],
        "functions[0].parameters[1]: the parameter 'y' is declared twice",
    ),
    (
        [
            function("f0", "int", {"y": "int"}, op("+", "y", "y")),
            *(
                function(f"f{k}", "int", {"y": "int"}, call(f"f{k - 1}", call(f"f{k - 1}", "y")))
                for k in range(1, 9)
            ),
        ],
        "functions[1].body: written out, this expression has more than 20,000 parts",
    ),
]


@pytest.mark.parametrize(("functions", "message"), REFUSED)
def test_functions_that_are_refused(functions: list[Any], message: str, tmp_path: Path) -> None:
    file = put(model([INDEX, PAIR], [], functions), tmp_path)
    with pytest.raises(InputError) as caught:
        read_jani(file)
    assert str(caught.value).startswith(f"{file}: {message}")


def array(**more: Any) -> dict[str, Any]:
    return {**PAIR, **more}


WRONG_ARRAYS: list[tuple[Any, str]] = [
    (model([{"name": "a", "type": array_of("int")}], []), "variables[0]: array 'a' needs an initial value"),
    (model([array(transient=True)], []), "variables[0]: the array 'a' cannot be transient"),
    (model([array(type=array_of("real"))], []), "variables[0]: array 'a' cannot be of reals"),
    (
        model([array(**{"initial-value": 3})], []),
        "variables[0].initial-value: the initial value of 'a' must be an array",
    ),
    (
        model([array(**{"initial-value": {"op": "av", "elements": [True]}})], []),
        "variables[0].initial-value: the initial value of 'a' must be an int, but this is a bool",
    ),
    (
        model([array(**{"initial-value": {"op": "av", "elements": [10]}})], []),
        "variables[0].initial-value.elements[0]: the initial value 10 of 'a_at_0' is outside its range",
    ),
    (
        model([INDEX, array(**{"initial-value": {"op": "ac", "var": "k", "length": "x", "exp": 1}})], []),
        "variables[1].initial-value.length: the length of an array must be a constant natural number",
    ),
    (
        model([array(**{"initial-value": {"op": "ac", "var": "k", "length": 10001, "exp": 1}})], []),
        "variables[0].initial-value: an array may have at most 10,000 elements",
    ),
    (
        model([PAIR, {"name": "a_at_1", "type": "bool", "initial-value": True}], []),
        "variables[1]: 'a_at_1' is declared twice",
    ),
    (
        moved(1, [("a", {"op": "av", "elements": [1]})]),
        f"{FIRST}[1]: the value assigned to 'a' has another length",
    ),
    (moved(1, [(at("x", 0), 1)]), f"{FIRST}[1].ref.exp: 'x' is not an array"),
    (moved(1, [(at("a", 0, 0), 1)]), f"{FIRST}[1].ref.index: 'a' is not an array of so many levels"),
    (moved(1, [(at("a", 0), 1), (at("a", 0), 1)]), f"{FIRST}[2]: one update assigns 'a' twice"),
    (moved(1, [("a", "a"), (at("a", "x"), 1)]), f"{FIRST}[2]: one update assigns 'a' twice"),
    (
        moved(1, [(op("+", "x", 1), 1)]),
        f"{FIRST}[1].ref: only assignments to variables and elements of arrays",
    ),
]


@pytest.mark.parametrize(("content", "message"), WRONG_ARRAYS)
def test_arrays_that_are_refused(content: Any, message: str, tmp_path: Path) -> None:
    file = put(content, tmp_path)
    with pytest.raises(InputError) as caught:
        read_jani(file)
    assert str(caught.value).startswith(f"{file}: {message}")


def test_properties_refers_to_elements_and_call_functions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def reach(goal: Any) -> dict[str, Any]:
        values = {"op": "Pmax", "exp": {"op": "F", "exp": goal}}
        return {"op": "filter", "fun": "max", "states": {"op": "initial"}, "values": values}

    goals = [op("=", call("sum", "a"), 5), at("b", op("-", "N", 2)), op("=", at("a", "i"), 2)]
    listed = [{"name": f"number {k}", "expression": reach(goal)} for k, goal in enumerate(goals)]
    content = {**CELLS, "properties": listed, "constants": [{"name": "N", "type": "int"}]}
    file = put(content, tmp_path)
    texts = [each.text or each.reason for each in read_properties(file, {"N": "3"})]
    assert texts[:2] == ["Pmax=? [ F (((a_at_0 + a_at_1) + a_at_2) = 5) ]", "Pmax=? [ F (b_at_1) ]"]
    assert texts[2] == "an index that depends on the state, or an argument with bounds, is not read here"
    assert run(["check", str(file), "--const", "N=3", "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["properties"]
    assert [round(answer["lower"], 6) for answer in answers] == [1.0, 1.0]
