"""Chains in continuous time in files: every format both ways, by structure and values, and beside Storm.

Also of `io/rows.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.io.jani.read import read_properties
from tightrope.loading import ModelRequest, read_model

FARM = """
ctmc
const int N = 3; const double lam; const double mu;
module farm
  up : [0..N] init N;
  [fail] up>0 -> lam*up : (up'=up-1);
  [repair] up<N -> mu/2 : (up'=up+1) + mu/4 : (up'=min(N,up+2));
endmodule
module weather
  storm : bool init false;
  [fail] storm -> 3 : true;
  [fail] !storm -> 1 : true;
  [] true -> 0.1 : (storm'=!storm);
endmodule
label "down" = up=0;
rewards "lost" true : N-up; endrewards
rewards "cost" up<2 : 0.5; [repair] true : 5; [fail] storm : 7; endrewards
"""
END = """
ctmc
module end
  x : [0..2];
  [] x=0 -> 0.3 : (x'=1) + 1/3 : (x'=2);
  [] x=1 -> 2.5 : (x'=0);
endmodule
label "end" = x=2;
rewards "held" x=0 : 2; endrewards
"""
AT = {"lam": 0.3, "mu": 1}
ASKED = (
    'P=? [ F<=6 "down" ]',
    'R{"lost"}=? [ C<=4 ]',
    'R{"cost"}=? [ C<=4 ]',
    'R{"cost"}=? [ I=2 ]',
    "S=? [ up>1 ]",
    'R{"cost"}=? [ F "down" ]',
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The farm at a point, in every format."""
    folder = tmp_path_factory.mktemp("farm")
    (folder / "farm.sm").write_text(FARM)
    (folder / "end.sm").write_text(END)
    for name in ("farm.drn", "farm.tra", "farm.jani"):
        assert run(["export", str(folder / "farm.sm"), "--at", "lam=0.3,mu=1", "-o", str(folder / name)]) == 0
    return folder


def at_point(path: Path) -> tr.CTMC:
    model = tr.load(path, params=AT_BOX if path.suffix == ".sm" else None)
    assert isinstance(model, tr.ParametricCTMC)
    return model.instantiate(AT if model.parameters.names else {})


AT_BOX = {"lam": (0.1, 1), "mu": (0.1, 2)}


def assert_same_chain(one: tr.CTMC, other: tr.CTMC) -> None:
    """The same states by their variables, rates, labels and rewards, in whatever order."""
    names = list(one.valuations)
    orders = []
    for chain in (one, other):
        keys = np.stack([np.asarray(chain.valuations[name], dtype=int) for name in names], axis=1)
        orders.append(np.lexsort(keys.T))
        assert len(np.unique(keys, axis=0)) == chain.states
    dense = []
    for chain, order in zip((one, other), orders, strict=True):
        matrix = np.zeros((chain.states, chain.states))
        np.add.at(matrix, (chain.structure.transition_choice, chain.successor), chain.rate)
        dense.append(matrix[np.ix_(order, order)])
    assert np.allclose(dense[0], dense[1], rtol=1e-15)
    assert one.valuations.keys() == other.valuations.keys()
    for name, members in one.labels.items():
        assert (members[orders[0]] == other.labels[name][orders[1]]).all(), name
    for name in one.rewards:
        assert np.allclose(one.earned[name][orders[0]], other.earned[name][orders[1]], rtol=1e-14), name
        held = [c.rewards[name].per_choice(c.structure)[o] for c, o in zip((one, other), orders, strict=True)]
        assert (held[0] == held[1]).all(), name


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["farm.drn", "farm.tra", "farm.jani"])
def test_every_format_holds_the_chain(files: Path, name: str) -> None:
    ours, read = at_point(files / "farm.sm"), at_point(files / name)
    assert_same_chain(ours, read)
    for asked in ASKED:
        one, other = tr.solve(ours, asked).bounds, tr.solve(read, asked).bounds
        assert one is not None and other == pytest.approx(one, rel=1e-9)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("source", ["farm.drn", "farm.tra", "farm.jani"])
@pytest.mark.parametrize("target", ["drn", "tra", "jani"])
def test_all_formats_both_ways(files: Path, tmp_path: Path, source: str, target: str) -> None:
    assert run(["export", str(files / source), "-o", str(tmp_path / f"m.{target}")]) == 0
    assert_same_chain(at_point(files / source), at_point(tmp_path / f"m.{target}"))


def test_parameters_travel_in_drn_and_jani(files: Path, tmp_path: Path) -> None:
    plain = FARM.replace('rewards "cost" up<2 : 0.5; [repair] true : 5; [fail] storm : 7; endrewards\n', "")
    (tmp_path / "farm.sm").write_text(plain)
    box = "lam=0.1:1,mu=0.1:2"
    assert run(["export", str(tmp_path / "farm.sm"), "--param", box, "-o", str(tmp_path / "a.drn")]) == 0
    assert run(["export", str(tmp_path / "a.drn"), "-o", str(tmp_path / "b.jani")]) == 0
    assert run(["export", str(tmp_path / "farm.sm"), "-o", str(tmp_path / "c.jani")]) == 0
    first = tr.load(tmp_path / "a.drn")
    assert first.parameters.text() == "1/10<=lam<=1, 1/10<=mu<=2", "the domain is noted in the file"
    for name in ("b.jani", "c.jani"):
        other = tr.load(tmp_path / name, params=AT_BOX)
        assert_same_chain(first.instantiate(AT), other.instantiate(AT))
    with pytest.raises(InputError, match="files have no place for that"):
        tr.load(files / "farm.sm", params=AT_BOX).save(tmp_path / "no.drn")
    with pytest.raises(InputError, match="this model has parameters"):
        first.save(tmp_path / "no.tra")


@pytest.mark.filterwarnings("ignore:state .* is a deadlock")
def test_deadlocks_and_exact_numbers_survive(files: Path, tmp_path: Path) -> None:
    ours = tr.load(files / "end.sm")
    for name in ("end.drn", "end.jani", "end.tra"):
        assert run(["export", str(files / "end.sm"), "-o", str(tmp_path / name)]) == 0
        read = tr.load(tmp_path / name)
        assert_same_chain(ours.instantiate(), read.instantiate())
        assert "3/10" in [read.expressions.text(e) for e in range(len(read.expressions))]


def test_storm_reads_our_jani(files: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    built, _ = stormpy.parse_jani_model(str(files / "farm.jani"))
    chain = stormpy.build_model(built)
    assert "CTMC" in str(chain.model_type).upper() and chain.nr_states == 8
    formulas = stormpy.parse_properties("P=? [ F<=6 (up=0) ]", built)
    chain = stormpy.build_model(built, formulas)
    value = stormpy.model_checking(chain, formulas[0]).get_value(chain.initial_states[0])
    ours = tr.solve(at_point(files / "farm.sm"), ASKED[0]).bounds
    assert ours is not None and value == pytest.approx(ours[0], abs=1e-5)


def test_jani_of_storm_is_read(files: Path, tmp_path: Path) -> None:
    """As Storm turns a PRISM program into JANI: one rate per edge, probabilities at its destinations."""
    content: Any = json.loads((files / "farm.jani").read_text())
    for automaton in content["automata"]:
        for edge in automaton["edges"]:
            edge["destinations"] = [
                {**edge["destinations"][0], "probability": {"exp": 0.25}},
                {**edge["destinations"][0], "probability": {"exp": 0.75}},
            ]
    content["properties"] = [
        {
            "name": "soon",
            "expression": path_property("time-bounds"),
        },
        {
            "name": "steps",
            "expression": path_property("step-bounds"),
        },
        {
            "name": "by then",
            "expression": {"op": "Emax", "exp": 1, "accumulate": ["time"], "time-instant": 5},
        },
        {
            "name": "mean",
            "expression": {
                "op": "filter",
                "fun": "max",
                "states": {"op": "initial"},
                "values": {"op": "Emax", "exp": 1, "accumulate": ["time"], "reach": "down"},
            },
        },
    ]
    file = tmp_path / "m.jani"
    file.write_text(json.dumps(content))
    assert_same_chain(at_point(files / "farm.sm"), without_time(at_point(file)))
    texts = [each.text for each in read_properties(file)]
    assert texts == ["P=? [ F<=(6) (down) ]", None, 'R{"time"}=? [ C<=5 ]', 'R{"time"}=? [ F (down) ]']
    mean = tr.solve(at_point(file), 'R{"time"}=? [ F "down" ]').bounds
    assert mean is not None and mean[0] > 1
    first = content["automata"][0]["edges"][0]
    first["destinations"][1]["probability"]["exp"] = 0.5
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"edges\[0\].*its destinations sum to 0\.75, not to 1"):
        tr.load(file)
    del first["rate"]
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"automata\[0\].edges\[0\].*needs a rate"):
        tr.load(file)


def path_property(bounds: str) -> dict[str, Any]:
    path = {"op": "F", "exp": "down", bounds: {"upper": 6}}
    return {
        "op": "filter",
        "fun": "max",
        "states": {"op": "initial"},
        "values": {"op": "Pmax", "exp": path},
    }


def without_time(chain: tr.CTMC) -> tr.CTMC:
    assert chain.earned["time"].tolist() == [1.0] * chain.states
    return chain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "2 2\n0 1 2.5\n1 0 1\n",
            "this one does not; rates of a CTMC need a first line '# Transitions (CTMC)'",
        ),
        ("# Transitions (CTMC)\n2 2\n0 1 -1\n1 0 1\n", "a rate is a number of at least 0"),
        ("# Transitions (CTMC)\n2 2\n0 1 [1,2]\n1 0 1\n", "intervals of rates are not read"),
        ("# Transitions (CTMC)\n2 2\n0 1 x\n1 0 1\n", "x"),
        ("# Transitions (CTMC)\n2 2 2\n0 0 1 1\n1 0 0 1\n", "three numbers for a DTMC"),
        ("# Transitions (CTMC)\n2 1\n0 1 1\n", "state 1 has no transition"),
    ],
)
def test_wrong_explicit_files_are_refused_in_words(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.tra").write_text(text)
    with pytest.raises(InputError) as raised:
        tr.load(tmp_path / "m.tra")
    assert message in str(raised.value)


def test_single_transitions_earn_in_explicit_files(tmp_path: Path) -> None:
    (tmp_path / "m.tra").write_text("# Transitions (CTMC)\n2 3\n0 0 1\n0 1 2.5\n1 0 0.1\n")
    (tmp_path / "m.srew").write_text("2 1\n0 3\n")
    (tmp_path / "m.trew").write_text("2 1\n0 1 4\n")
    chain = tr.load(tmp_path / "m").instantiate()
    assert chain.earned[""].tolist() == [3 + 2.5 * 4, 0.0] and chain.rewards[""].state.tolist() == [3.0, 0.0]


@pytest.mark.parametrize(("written", "is_close"), [("1.23457", True), ("1.23456", True), ("1.2346", False)])
def test_exit_rates_of_six_digits_are_close_enough(tmp_path: Path, written: str, is_close: bool) -> None:
    """The sum is 1.234565; the rates count, and four digits are too few."""
    target = tmp_path / "m.drn"
    target.write_text(
        "@type: CTMC\n@parameters\n\n@reward_models\n\n@nr_states\n2\n@nr_choices\n2\n@model\n"
        f"state 0 !{written} init\n\taction 0\n\t\t0 : 0.234565\n\t\t1 : 1\n"
        "state 1 !1\n\taction 0\n\t\t1 : 1\n"
    )
    if is_close:
        assert at_point(target).exit_rate.tolist() == [1.234565, 1.0]
        return
    with pytest.raises(tr.InputError, match=r"the exit rate is 1.2346, but the rates of its transitions sum"):
        tr.load(target)


@pytest.mark.parametrize("name", ["farm.sm", "farm.jani", "farm.drn", "farm.tra"])
def test_discrete_time_is_required(files: Path, name: str) -> None:
    """By all that asks a question of discrete time, whatever the file."""
    with pytest.raises(InputError, match="models in discrete time are required here") as caught:
        read_model(ModelRequest(str(files / name), {}))
    assert caught.value.location is not None and caught.value.location.file == str(files / name)
