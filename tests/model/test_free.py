"""Rows whose distribution is unknown altogether: `free` in PRISM text and in Python."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import pytest

import tightrope as tr
from tightrope.model.free import MOST_COORDINATES
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism_text

MODULE = "mdp\nmodule m\n s : [0..2] init 0;\n {}\n [] s>0 -> true;\nendmodule\n"
ROW = "[a] s=0 -> free : (s'=1) + free : (s'=2);"


def rows_of(model: object) -> list[list[str]]:
    assert isinstance(model, ParametricMDP)
    texts = [model.expressions.text(e) for e in model.expression.tolist()]
    starts = model.transition_start.tolist()
    return [texts[first:last] for first, last in itertools.pairwise(starts)]


def test_every_choice_has_a_free_distribution_of_its_own() -> None:
    text = MODULE.format(ROW + "\n [b] s<2 -> free : (s'=1) + free : (s'=2) + free : (s'=0);")
    model = load_prism_text(text)
    assert rows_of(model)[:3] == [
        ["free1_1", "1 - free1_1"],
        ["free2_1", "free2_2", "1 - free2_1 - free2_2"],
        ["free3_1", "free3_2", "1 - free3_1 - free3_2"],
    ]
    assert isinstance(model, ParametricMDP)
    assert model.free.tolist() == [True, True, True, False, False]
    assert [each.outcomes for each in model.parameters.free] == [2, 3, 3]
    assert model.parameters.shown.names == ()
    assert "free distributions  3" in repr(model)
    assert "free2_1" not in repr(model.parameters)
    assert model.unproved == ()


def test_a_name_is_shared_and_keeps_the_order_of_outcomes() -> None:
    text = """mdp module m
      s : [0..3] init 0;
      [] s<2 -> free("die") : (s'=s+1) + free("die") : (s'=s+2) + free("die") : (s'=2);
      [] s>1 -> true;
    endmodule"""
    model = load_prism_text(text)
    # In state 0 the second and the third outcome lead to state 2, in state 1 the first and the third.
    assert rows_of(model)[:2] == [
        ["free_die_1", "1 - free_die_1"],
        ["1 - free_die_2", "free_die_2"],
    ]
    rows = [
        (0, "a", {0: tr.free("x"), 1: tr.free("x")}),
        (1, "a", {1: tr.free("x"), 0: tr.free("x")}),
    ]
    assert rows_of(tr.build_from_rows(rows)) == [["free_x_1", "1 - free_x_1"]] * 2


def test_numbers_beside_free_leave_a_rest() -> None:
    text = MODULE.format("[a] s=0 -> 0.2 : (s'=0) + free : (s'=1) + free : (s'=2);")
    assert rows_of(load_prism_text(text))[0] == ["1/5", "4/5*free1_1", "4/5 - 4/5*free1_1"]
    model = tr.build_from_rows(
        [(0, "a", {0: "1/5", 1: tr.free, 2: tr.free}), (1, "", {1: 1}), (2, "", {2: 1})]
    )
    assert rows_of(model)[0] == ["1/5", "4/5*free1_1", "4/5 - 4/5*free1_1"]
    alone = MODULE.format("[a] s=0 -> 0.7 : (s'=0) + free : (s'=1);")
    assert rows_of(load_prism_text(alone))[0] == ["7/10", "3/10"]


def test_outcomes_that_lead_to_one_state_are_one() -> None:
    text = MODULE.format("[a] s=0 -> free : (s'=1) + free : (s'=2) + free : (s'=1);")
    model = load_prism_text(text)
    assert rows_of(model)[0] == ["free1_1", "1 - free1_1"]
    text = MODULE.format("[a] s=0 -> free : (s'=1) + free : (s'=1);")
    assert rows_of(load_prism_text(text))[0] == ["1"]


def test_free_commands_move_with_certain_ones() -> None:
    other = "module n x:[0..1]; [a] true -> {}; endmodule"
    certain = load_prism_text(MODULE.format(ROW) + other.format("(x'=1-x)"))
    assert rows_of(certain)[0] == ["free1_1", "1 - free1_1"]
    half = load_prism_text(MODULE.format(ROW) + other.format("0.5:(x'=0) + 0.5:(x'=1)"))
    assert rows_of(half)[0] == ["1/2*free1_1", "1/2*free1_1", "1/2 - 1/2*free1_1", "1/2 - 1/2*free1_1"]
    assert isinstance(half, ParametricMDP)
    assert not half.free.any()


def test_a_constant_may_be_called_free() -> None:
    text = "const double free=0.3;" + MODULE.format("[a] s=0 -> free : (s'=1) + 1-free : (s'=2);")
    assert rows_of(load_prism_text(text))[0] == ["3/10", "7/10"]


TOGETHER = "module n x:[0..1]; [a] true -> {}; endmodule"
REFUSED = [
    (MODULE.format("[a] s=0 -> 0.5*free : (s'=1) + free : (s'=2);"), "m:4:17", "'free' is not declared"),
    (MODULE.format("[a] s=0 -> free : (s'=1) + free(\"x\") : (s'=2);"), "m:4:2", "different names"),
    (MODULE.format('[a] s=0 -> free("") : (s\'=1) + free("") : (s\'=2);'), "m:4:13", "empty"),
    (
        MODULE.format("[a] s=0 -> 0.7 : (s'=0) + 0.7 : (s'=1) + free : (s'=1) + free : (s'=2);"),
        "m:4:43",
        "sum to more than 1",
    ),
    (MODULE.format("[a] s=0 -> [0.1,0.2] : (s'=1) + free : (s'=2);"), "m:4:2", "not both"),
    (
        "const double p;" + MODULE.format("[a] s=0 -> p : (s'=0) + free : (s'=1) + free : (s'=2);"),
        "m:4:26",
        "free probabilities and parameters",
    ),
    (MODULE.format(ROW) + TOGETHER.format("free:(x'=0) + free:(x'=1)"), "m:4:13", "two free commands"),
    (
        "const double p;" + MODULE.format(ROW) + TOGETHER.format("p:(x'=0) + 1-p:(x'=1)"),
        "m:4:13",
        "free probabilities and parameters",
    ),
    (
        MODULE.format(
            '[a] s=0 -> free("u") : (s\'=1) + free("u") : (s\'=2);\n [b] s=0 -> free("u") : (s\'=1);'
        ),
        "m:5:13",
        "has 1 outcomes here and 2 elsewhere",
    ),
]


@pytest.mark.parametrize(("text", "place", "message"), REFUSED)
def test_what_is_no_free_row_is_refused_where_it_stands(text: str, place: str, message: str) -> None:
    with pytest.raises(tr.InputError) as refused:
        load_prism_text(text, "m")
    assert str(refused.value).startswith(place + ":")
    assert message in str(refused.value)


def test_rates_cannot_be_free() -> None:
    with pytest.raises(tr.InputError, match="model:4:13: a rate cannot be free"):
        load_prism_text(MODULE.format(ROW).replace("mdp", "ctmc"))
    with pytest.raises(tr.InputError, match="free is not a number"):
        tr.build_ctmc_from_rows([(0, {1: tr.free}), (1, {0: 1})])  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({0: tr.free, 1: (0, 0.5)}, "both intervals and unconstrained distributions"),
        ({0: tr.free, 1: 1.5}, "sum to 3/2, nothing is left for free"),
        ({0: tr.free, 1: tr.free("a")}, "free probabilities of different names"),
    ],
)
def test_rows_in_python_are_refused_with_words(row: dict[int, object], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.build_from_rows([(0, "", row), (1, "", {1: 1})])  # type: ignore[list-item]


def test_names_in_python() -> None:
    with pytest.raises(tr.InputError, match="named by a text"):
        tr.free("")
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    with pytest.raises(tr.InputError, match="what is left is not a number"):
        tr.build_from_rows(
            [(0, "", {0: tr.free, 1: p, 2: tr.free}), (1, "", {1: 1}), (2, "", {2: 1})], parameters
        )
    with pytest.raises(tr.InputError, match="2 outcomes at one choice and 3 at another"):
        name = tr.free("x")
        tr.build_from_rows(
            [(0, "", {0: name, 1: name}), (1, "", {0: name, 1: name, 2: name}), (2, "", {2: 1})]
        )


def test_more_coordinates_than_tables_hold_are_refused() -> None:
    rows = [(s, "", {0: tr.free, s: tr.free}) for s in range(1, MOST_COORDINATES + 2)]
    with pytest.raises(tr.InputError, match="more than 5,000 unknown probabilities"):
        tr.build_from_rows([(0, "", {1: 1}), *rows])


def test_parameters_keep_their_numbers_and_names_do_not_clash() -> None:
    parameters = tr.Parameters.box(free1_1=(0, "1/2"))
    (p,) = parameters.symbols()
    rows = [(0, "", {0: p, 1: 1 - p}), (1, "", {0: tr.free, 1: tr.free})]
    model = tr.build_from_rows(rows, parameters, state_rewards={"r": [p, 0]})
    assert isinstance(model, ParametricMDP)
    assert model.parameters.names == ("free1_1", "free1__1")
    assert model.parameters.shown == parameters
    assert model.parameters.listed == "free1_1 and 1 free distribution"
    assert model.rewards["r"].at((Fraction(1, 4), Fraction(1, 3))).choice.tolist() == [0.25, 0.0]


def test_a_point_gives_the_probabilities_of_unconstrained_rows_too() -> None:
    model = load_prism_text(MODULE.format(ROW))
    assert isinstance(model, ParametricMDP)
    assert model.instantiate(free1_1="1/4").probability.tolist()[:2] == [0.25, 0.75]
    with pytest.raises(tr.InputError, match="1 free distribution belong"):
        model.instantiate({})


def test_written_with_parameters_and_read_back(tmp_path: Path) -> None:
    text = MODULE.format("[a] s=0 -> free : (s'=0) + free : (s'=1) + free : (s'=2);")
    model = load_prism_text(text)
    assert isinstance(model, ParametricMDP)
    model.save(tmp_path / "m.drn")
    assert (
        "// 1 free distribution: unconstrained distributions are written as parameters"
        in (tmp_path / "m.drn").read_text()
    )
    back = tr.load(tmp_path / "m.drn")
    assert isinstance(back, ParametricMDP)
    assert rows_of(back) == rows_of(model)
    assert back.parameters.text() == model.parameters.text()
    assert back.parameters.free == ()
