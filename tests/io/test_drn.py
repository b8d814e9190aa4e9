"""DRN files: Storm reads ours, we read Storm's, and a round trip returns the same model."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stormpy
from stormpy import io

from same_model import assert_same_model
from storm import Case, build_with_storm, cases, plain_from_storm, plain_from_tightrope
from tightrope.errors import InputError
from tightrope.io.drn.read import read_drn
from tightrope.io.drn.write import write_drn
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism

CASES = [case for case in cases() if case.constants.get("N") != "16"]  # Storm reads that one for seconds


def point_of(case: Case) -> dict[str, Fraction]:
    return {name: Fraction(2 + k, 13 + 2 * k) for k, name in enumerate(case.parameters)}


def write_with_storm(model: Any, path: Path, placeholders: bool = True) -> None:
    options = io.DirectEncodingExporterOptions()
    options.allow_placeholders = placeholders
    io.export_to_drn(model, str(path), options=options)


def read_with_storm(path: Path, kind: str) -> Any:
    options = io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    types = {
        "parametric": stormpy.RationalFunction,
        "rational": stormpy.Rational,
        "double": float,
        "interval": stormpy.RationalInterval,
    }
    return stormpy.build_model_from_drn[types[kind]](str(path), options=options)


# --- with Storm -------------------------------------------------------------------------------------


@pytest.mark.thinned(7)
@pytest.mark.parametrize("placeholders", [True, False], ids=["placeholders", "inline"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_reads_what_storm_writes(case: Case, placeholders: bool, tmp_path: Path) -> None:
    storm = build_with_storm(case.path, case.constants, case.kind, tmp_path)
    file = tmp_path / "storm.drn"
    write_with_storm(storm, file, placeholders)
    theirs = plain_from_storm(storm, point_of(case))
    ours = plain_from_tightrope(read_drn(file), point_of(case), action_names=storm.is_nondeterministic_model)
    assert ours.counts == theirs.counts
    assert ours.variables == theirs.variables
    assert ours.initial == theirs.initial
    # Storm's files do not name labels that no state has.
    assert {k: v for k, v in ours.labels.items() if v} == {k: v for k, v in theirs.labels.items() if v}
    assert ours.state_rewards == theirs.state_rewards
    assert ours.choices == theirs.choices


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_storm_reads_what_we_write(case: Case, tmp_path: Path) -> None:
    model = load_prism(case.path, constants=case.constants)
    file = tmp_path / "ours.drn"
    write_drn(model, file)
    kind = {"plain": "rational"}.get(case.kind, case.kind)
    storm = read_with_storm(file, kind)
    theirs = plain_from_storm(storm, point_of(case))
    names = not model.structure.is_chain
    ours = plain_from_tightrope(model, point_of(case), action_names=names, by_index=True)
    assert ours.counts == theirs.counts
    assert ours.initial == theirs.initial
    assert {k: v for k, v in ours.labels.items() if v} == theirs.labels
    assert ours.state_rewards == theirs.state_rewards
    assert ours.choices == theirs.choices


def test_storm_reads_our_doubles(tmp_path: Path) -> None:
    model = load_prism(CASES[0].path).instantiate([Fraction(1, 3), Fraction(1, 7)])
    write_drn(model, tmp_path / "m.drn")
    storm = read_with_storm(tmp_path / "m.drn", "double")
    values = [t.value for state in storm.states for action in state.actions for t in action.transitions]
    assert values == model.probability.tolist()


# --- round trips ------------------------------------------------------------------------------------


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_round_trip_returns_the_same_model(case: Case, tmp_path: Path) -> None:
    model = load_prism(case.path, constants=case.constants)
    write_drn(model, tmp_path / "m.drn")
    again = read_drn(tmp_path / "m.drn")
    assert_same_model(model, again)
    assert model.hash() == again.hash()
    write_drn(again, tmp_path / "n.drn")
    assert (tmp_path / "m.drn").read_bytes() == (tmp_path / "n.drn").read_bytes()


def test_doubles_survive_to_the_last_bit(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.file == "cubic.prism")
    model = load_prism(case.path).instantiate([Fraction(1, 3), Fraction(314159, 1000003)])
    write_drn(model, tmp_path / "m.drn")
    again = read_drn(tmp_path / "m.drn")
    assert isinstance(again, MDP)
    assert again.probability.tobytes() == model.probability.tobytes()
    assert model.hash() == again.hash()


def test_the_domain_comes_back(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.file == "merging.prism")
    model = load_prism(case.path, domain="0.1<=p<=0.9, p+q<=1")
    write_drn(model, tmp_path / "m.drn")
    again = read_drn(tmp_path / "m.drn")
    assert isinstance(again, ParametricMDP)
    assert again.parameters == model.parameters
    assert again.parameters.constraints != ()
    narrowed = read_drn(tmp_path / "m.drn", box="p=0.25:0.5")
    assert isinstance(narrowed, ParametricMDP)
    assert narrowed.parameters == Parameters.box(p=("1/4", "1/2"), q=(0, 1))
    cut = read_drn(tmp_path / "m.drn", domain="p<=1/2")
    assert isinstance(cut, ParametricMDP)
    assert cut.parameters == Parameters.box(p=(0, "1/2"), q=(0, 1))


# --- what a file means ------------------------------------------------------------------------------

SMALL = """@type: MDP
@parameters

@reward_models
steps
@nr_states
2
@nr_choices
3
@model
state 0 [0] init "two words"
\taction go [1.5]
\t\t0 : {low}
\t\t1 : {high}
\taction __NOLABEL__ [0]
\t\t1 : 1
state 1 [0.25] goal
\taction wait [0]
\t\t1 : 1
"""


def small(tmp_path: Path, text: str) -> Any:
    file = tmp_path / "small.drn"
    file.write_text(text, encoding="utf-8")
    return read_drn(file)


def test_a_small_file(tmp_path: Path) -> None:
    model = small(tmp_path, SMALL.format(low="0.3", high="0.7"))
    assert isinstance(model, MDP)
    assert model.structure.action_names == ("go", "", "wait")
    assert model.probability.tolist() == [0.3, 0.7, 1, 1]
    assert model.successor.tolist() == [0, 1, 1, 1]
    assert model.initial == 0
    assert {name: members.tolist() for name, members in model.labels.items()} == {
        "init": [True, False],
        "deadlock": [False, False],
        "two words": [True, False],
        "goal": [False, True],
    }
    assert model.rewards["steps"].state.tolist() == [0, 0.25]
    assert model.rewards["steps"].choice.tolist() == [1.5, 0, 0]


def test_brackets_make_an_interval_model(tmp_path: Path) -> None:
    model = small(tmp_path, SMALL.format(low="[0.1, 0.4]", high="[0.6,0.9]"))
    assert isinstance(model, IntervalMDP)
    assert model.lower.tolist() == [0.1, 0.6, 1, 1]
    assert model.upper.tolist() == [0.4, 0.9, 1, 1]


def test_rational_intervals_are_rounded_outwards(tmp_path: Path) -> None:
    text = SMALL.format(low="[1/3, 2/5]", high="[3/5, 2/3]")
    model = small(tmp_path, text.replace("@parameters", "@value_type: rational-interval\n@parameters"))
    for transition, (low, high) in enumerate([("1/3", "2/5"), ("3/5", "2/3"), (1, 1)]):
        lower, upper = Fraction(model.lower[transition]), Fraction(model.upper[transition])
        assert lower <= Fraction(low) <= Fraction(high) <= upper
        assert Fraction(np.nextafter(model.lower[transition], 2)) > Fraction(low)


def test_rationals_stay_exact(tmp_path: Path) -> None:
    text = SMALL.format(low="1/3", high="2/3")
    model = small(tmp_path, text.replace("@parameters", "@value_type: rational\n@parameters"))
    assert isinstance(model, ParametricMDP)
    assert model.parameters.names == ()
    assert model.expressions.exact_values(())[int(model.expression[0])] == Fraction(1, 3)


def test_files_without_action_lines(tmp_path: Path) -> None:
    text = "@type: DTMC\n@nr_states\n2\n@model\nstate 0 init\n0 : 0.5\n1 : 0.5\nstate 1\n1 : 1\n"
    model = small(tmp_path, text)
    assert model.structure.is_chain
    assert model.probability.tolist() == [0.5, 0.5, 1]


def test_valuations_of_storm_with_gaps(tmp_path: Path) -> None:
    """Storm writes `!b` for a false variable and nothing for a true one."""
    text = (
        "@type: DTMC\n@nr_states\n3\n@model\nstate 0 init\n//[!b\t& x=-2]\n1 : 1\n"
        "state 1\n//[\t& x=0]\n2 : 1\nstate 2\n//[\t& x=5]\n2 : 1\n"
    )
    valuations = small(tmp_path, text).valuations
    assert {name: column.tolist() for name, column in valuations.items()} == {
        "b": [False, True, True],
        "x": [-2, 0, 5],
    }


ORDERS = ["[3, 4] init", "init [3, 4]", "init [3,4] far", "far init   [ 3 , 4 ]", 'init "far away"[3, 4]']


@pytest.mark.parametrize("entry", ORDERS)
def test_rewards_stand_before_or_behind_labels(entry: str, tmp_path: Path) -> None:
    text = SMALL_WITH_REWARDS.replace("[3, 4] init", entry)
    model = small(tmp_path, text)
    assert model.structure.labels["init"].tolist() == [True, False]
    assert model.structure.rewards["cost"].state.tolist() == [3.0, 0.0]
    assert model.structure.rewards["time"].state.tolist() == [4.0, 0.0]
    assert model.structure.rewards["cost"].choice.tolist() == [5.0, 0.0]


SMALL_WITH_REWARDS = """@type: MDP
@parameters

@reward_models
cost time
@nr_states
2
@nr_choices
2
@model
state 0 [3, 4] init
\taction a [5, 6]
\t\t1 : 1
state 1 target [0, 0]
\taction a [0, 0]
\t\t1 : 1
"""

NOT_UNDERSTOOD = [
    ("[3, 4] init", "init [3, 4] [1, 2]", 21, "a second list of rewards for this state"),
    ("[3, 4] init", "init [3]", 14, "1 rewards for 2 reward models"),
    ("[3, 4] init", "!1 init", 9, "'!1' is an exit rate, which states of continuous-time models have"),
    (
        "[3, 4] init",
        "init {0}",
        14,
        "'{0}' is an observation, which states of partially observable models have",
    ),
    ("[3, 4] init", "init // start", 14, "a comment behind a state"),
    ("[3, 4] init", "init[3, 4]", 9, "'init[3,' is neither a label nor rewards: it has '[' within"),
    ("[3, 4] init", "[3, 4]init", 15, "a space is missing before 'init'"),
    ("[3, 4] init", "[3, 4 init", 9, "']' is missing behind the rewards"),
    ("[3, 4] init", 'init "far', 14, "a quotation mark is not closed"),
    ("action a [5, 6]", "action a [5, 6] [7, 8]", 18, "unexpected '[7, 8]' behind the action"),
]


@pytest.mark.parametrize(("old", "new", "column", "message"), NOT_UNDERSTOOD)
def test_what_is_not_understood_is_refused(
    old: str, new: str, column: int, message: str, tmp_path: Path
) -> None:
    text = SMALL_WITH_REWARDS.replace(old, new)
    line = 1 + next(i for i, each in enumerate(text.splitlines()) if new in each)
    with pytest.raises(InputError) as caught:
        small(tmp_path, text)
    place = f"{tmp_path / 'small.drn'}:{line}:{column}"
    assert str(caught.value).splitlines()[0] == f"{place}: {message}"


def test_an_interval_reward_that_is_a_point(tmp_path: Path) -> None:
    text = SMALL.format(low="[0.1, 0.4]", high="[0.6,0.9]").replace("[1.5]", "[[1.5, 1.5]]")
    assert small(tmp_path, text).rewards["steps"].choice.tolist() == [1.5, 0, 0]
