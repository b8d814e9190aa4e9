"""PRISM's explicit files: round trips, and what PRISM itself writes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases.explicit_files import DTMC_TRA, LAB, MDP_TRA, put
from same_model import assert_same_model
from storm import Case, cases
from tightrope.errors import InputError
from tightrope.io.explicit import read_explicit, write_explicit
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism

CASES = cases()


def concrete(case: Case) -> Any:
    """The model, at a point with unwieldy doubles where it has parameters."""
    model = load_prism(case.path, constants=case.constants)
    if isinstance(model, ParametricMDP):
        return model.instantiate([Fraction(2 + k, 13 + 2 * k) for k in range(len(model.parameters.names))])
    return model


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_round_trip_returns_the_same_model(case: Case, tmp_path: Path) -> None:
    model = concrete(case)
    written = write_explicit(model, tmp_path / "m")
    assert_same_model(model, read_explicit(tmp_path / "m"))
    assert_same_model(model, read_explicit(tmp_path / "m.tra"))
    contents = {file.name: file.read_bytes() for file in written}
    write_explicit(read_explicit(tmp_path / "m"), tmp_path / "m")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == contents


def test_an_mdp(tmp_path: Path) -> None:
    model = read_explicit(
        put(tmp_path, tra=MDP_TRA, lab=LAB, sta="(x,b)\n0:(0,true)\n2:(-7,false)\n1:(1,true)\n")
    )
    assert isinstance(model, MDP)
    assert model.choice_start.tolist() == [0, 2, 3, 4]
    assert model.transition_start.tolist() == [0, 2, 3, 5, 6]
    assert model.successor.tolist() == [1, 2, 0, 0, 2, 2]
    assert model.probability.tolist() == [0.5, 0.5, 1, 0.25, 0.75, 1]
    assert [model.structure.action_name(c) for c in range(4)] == ["a", "b", "", ""]
    assert model.initial == 1
    assert model.labels["goal"].tolist() == [False, False, True]
    assert model.valuations["x"].tolist() == [0, 1, -7]
    assert model.valuations["b"].dtype == np.bool_


def test_a_chain_without_labels_starts_in_state_0(tmp_path: Path) -> None:
    model = read_explicit(put(tmp_path, tra=DTMC_TRA))
    assert model.structure.is_chain
    assert model.initial == 0
    assert model.labels["init"].tolist() == [True, False]


def test_rows_in_any_order(tmp_path: Path) -> None:
    head, *rows = MDP_TRA.splitlines()
    shuffled = "\n".join([head, *reversed(rows)])
    (tmp_path / "plain").mkdir()
    straight = read_explicit(put(tmp_path / "plain", tra=MDP_TRA))
    model = read_explicit(put(tmp_path, tra=shuffled))
    targets = [sorted(model.successor[a:b]) for a, b in zip([0, 2, 3, 5], [2, 3, 5, 6], strict=True)]
    assert targets == [[1, 2], [0], [0, 2], [2]]
    assert model.choice_start.tolist() == straight.choice_start.tolist()


def test_intervals(tmp_path: Path) -> None:
    model = read_explicit(put(tmp_path, tra="2 2 3\n0 0 0 [0.1,0.3] a\n0 0 1 [0.7, 0.9] a\n1 0 1 1\n"))
    assert isinstance(model, IntervalMDP)
    assert model.lower.tolist() == [0.1, 0.7, 1]
    assert model.upper.tolist() == [0.3, 0.9, 1]


def test_rewards_of_prism(tmp_path: Path) -> None:
    model = read_explicit(
        put(
            tmp_path,
            tra=MDP_TRA,
            srew1='# Reward structure "time"\n# State rewards\n3 1\n0 2.5\n',
            trew2='# Reward structure: "cost"\n3 4 3\n0 0 1 7\n0 0 2 7\n2 0 2 1/4\n',
            srew2='# Reward structure: "cost"\n3 0\n',
            srew3="3 1\n2 1\n",
        )
    )
    assert list(model.rewards) == ["time", "cost", "3"]
    assert model.rewards["time"].state.tolist() == [2.5, 0, 0]
    assert model.rewards["time"].choice is None
    assert model.rewards["cost"].state.tolist() == [0, 0, 0]
    assert model.rewards["cost"].choice.tolist() == [7, 0, 0, 0.25]


def test_rewards_of_a_chain(tmp_path: Path) -> None:
    model = read_explicit(put(tmp_path, tra=DTMC_TRA, trew="2 2\n0 0 3\n0 1 3\n"))
    assert model.rewards[""].choice.tolist() == [3, 0]


def test_parameters_cannot_be_written(tmp_path: Path) -> None:
    model = load_prism(CASES[0].path)
    with pytest.raises(InputError, match=r"hold numbers only, and this model has parameters \(p, q\)"):
        write_explicit(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_another_model_are_not_mixed_in(tmp_path: Path) -> None:
    model = read_explicit(put(tmp_path, tra=DTMC_TRA))
    put(tmp_path, srew1="2 0\n")
    with pytest.raises(InputError, match=r"m1\.srew belongs to another model"):
        write_explicit(model, tmp_path / "m")
    (tmp_path / "m1.srew").rename(tmp_path / "m2.srew")  # no part of m: there is no m1
    write_explicit(model, tmp_path / "m")


def test_rewards_of_a_neighbour_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "walk.tra").write_text(DTMC_TRA)
    for name in ("walk1", "walk2", "walk21"):
        (tmp_path / f"{name}.srew").write_text("2 1\n0 7\n")
    (tmp_path / "walk2.tra").write_text(DTMC_TRA)
    (tmp_path / "walk1.sta").write_text("(x)\n0:(0)\n1:(1)\n")
    (tmp_path / "walk2.lab").write_text('0="init"\n1: 0\n')
    model = read_explicit(tmp_path / "walk.tra")
    assert dict(model.rewards) == {} and model.initial == 0 and dict(model.valuations) == {}
    other = read_explicit(tmp_path / "walk2.tra")
    assert other.rewards[""].state.tolist() == [7, 0] and other.initial == 1
    (tmp_path / "walk.srew").write_text("2 1\n1 5\n")
    assert read_explicit(tmp_path / "walk").rewards[""].state.tolist() == [0, 5]


def test_numbered_rewards_end_where_another_model_begins(tmp_path: Path) -> None:
    base = put(tmp_path, tra=DTMC_TRA, srew1="2 1\n0 1\n", srew2="2 1\n0 2\n", srew4="2 1\n0 4\n")
    assert list(read_explicit(base).rewards) == ["1", "2"]
    (tmp_path / "m2.tra").write_text(DTMC_TRA)
    assert list(read_explicit(base).rewards) == ["1"]


@pytest.mark.parametrize("header", ["# Transitions (DTMC)\n", "# Transitions (IDTMC)\n", "# exported\n"])
def test_the_type_in_a_header(header: str, tmp_path: Path) -> None:
    model = read_explicit(put(tmp_path, tra=header + DTMC_TRA))
    assert model.structure.is_chain
    mdp = read_explicit(put(tmp_path, tra="2 2 3\n0 0 0 0.1\n0 0 1 0.9\n1 0 1 1\n"))
    assert not mdp.structure.is_chain and not mdp.structure.has_choices


REFUSED_HEADERS = [
    (
        "# comment\n# Transitions (POMDP)\n",
        "2:16: POMDP: partially observable models are not supported; tightrope reads DTMC, MDP and their "
        "interval versions, IDTMC and IMDP",
    ),
    (
        "# Transitions (Foo)\n",
        "1:16: unknown model type 'Foo'; tightrope reads DTMC, MDP and their interval versions, IDTMC "
        "and IMDP",
    ),
    ("# Transitions (MDP)\n", "2:1: two numbers for an MDP, which line 1 says this is"),
    ("dtmc\n", "1:1: this is Storm's own dialect of explicit files, which is not read"),
    ("ctmc\n", "1:1: this is Storm's own dialect of explicit files, which is not read"),
]


@pytest.mark.parametrize(("header", "message"), REFUSED_HEADERS)
def test_types_that_are_not_read_are_refused_by_name(header: str, message: str, tmp_path: Path) -> None:
    base = put(tmp_path, tra=header + DTMC_TRA)
    with pytest.raises(InputError) as caught:
        read_explicit(base)
    assert str(caught.value).splitlines()[0] == f"{base}.tra:{message}"
