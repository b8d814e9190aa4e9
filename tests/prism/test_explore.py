"""Exploration finds the states, choices and exact probabilities that a slow reference finds."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_reference import choices_of, explore_slowly
from tightrope.errors import InputError
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.search import explore_until
from tightrope.prism.load import load_prism, load_prism_text
from tightrope.prism.parse.parser import parse_model


def program_of(text: str) -> Program:
    return expand(parse_model(text, "test.prism"), {})


def parametric(text: str, **options: Any) -> ParametricMDP:
    model = load_prism_text(text, "test.prism", **options)
    assert isinstance(model, ParametricMDP)
    return model


def interval(text: str) -> IntervalMDP:
    model = load_prism_text(text, "test.prism")
    assert isinstance(model, IntervalMDP)
    return model


def assert_agrees(text: str) -> None:
    program = program_of(text)
    reference = explore_slowly(program)
    model, _ = explore_until(program, None)
    assert isinstance(model, ParametricMDP)
    is_mdp = program.type.value == "mdp"
    assert choices_of(model, action_names=is_mdp) == reference.choices
    names = list(model.valuations)
    states = list(zip(*(model.valuations[name].astype(int).tolist() for name in names), strict=True))
    assert {states[s] for s in np.flatnonzero(model.labels["deadlock"])} == reference.deadlocks
    for label in program.labels:
        found = {states[s] for s in np.flatnonzero(model.labels[label.name])}
        assert found == reference.labels.get(label.name, set())
    for name, rewards in reference.state_rewards.items():
        found_rewards = model.rewards[name].state
        assert found_rewards is not None
        assert found_rewards.tolist() == [float(rewards[state]) for state in states]


# --- random programs --------------------------------------------------------------------------------

_GUARDS = ["true", "x{m}<3", "x{m}>0 & b{m}", "x{m}=y", "!b{m} | x{o}>1", "x{m}+x{o}<=4", "mod(x{m},2)=0"]
_TARGETS = [
    "(x{m}'=min(x{m}+1,3))",
    "(x{m}'=max(x{m}-1,0)) & (b{m}'=!b{m})",
    "(x{m}'=mod(x{m}+x{o}+1,4))",
    "(x{m}'=x{o})",
    "(b{m}'=x{m}>x{o})",
    "(x{m}'=b{m} ? 0 : 3)",
    "true",
]
_PROBABILITIES = [
    ["1"],
    ["p", "1-p"],
    ["0.25", "0.5", "0.25"],
    ["x{m}/3", "1-x{m}/3"],
    ["p*(x{m}+1)/4", "(1-p)*(x{m}+1)/4", "1-(x{m}+1)/4"],
    ["p*q", "p*(1-q)", "1-p"],
    ["x{o}=0 ? 0 : q/(x{o}+x{m})", "x{o}=0 ? 1 : 1-q/(x{o}+x{m})"],
]


@st.composite
def _programs(draw: st.DrawFn) -> str:
    modules = draw(st.integers(1, 3))
    lines = [draw(st.sampled_from(["mdp", "dtmc"])), "const double p; const double q;", "global y : [0..2];"]
    for m in range(modules):
        other = draw(st.integers(0, modules - 1))
        lines += [f"module m{m}", f"x{m} : [0..3] init {draw(st.integers(0, 3))};", f"b{m} : bool;"]
        for _ in range(draw(st.integers(1, 3))):
            action = draw(st.sampled_from(["", "", "a", "b"]))
            guard = draw(st.sampled_from(_GUARDS))
            probabilities = draw(st.sampled_from(_PROBABILITIES))
            updates = []
            for probability in probabilities:
                target = draw(st.sampled_from(_TARGETS + (["(y'=mod(y+1,3))"] if not action else [])))
                updates.append(f"{probability} : {target}")
            lines.append(f"[{action}] {guard} -> {' + '.join(updates)};".format(m=m, o=other))
        lines.append("endmodule")
    lines += ['label "low" = x0<2 & y=0;', 'rewards "r" b0 : x0/3; y>0 : 0.1*y+x0; endrewards']
    return "\n".join(lines)


@given(_programs())
def test_random_programs_agree_with_the_reference(text: str) -> None:
    assert_agrees(text)


def test_programs_of_many_commands_agree_with_the_reference() -> None:
    rng = np.random.default_rng(11)
    commands = {"m": [], "n": []}
    for name, variable, other in (("m", "x", "y"), ("n", "y", "x")):
        for k in range(30):
            action = ["", "", "a", "b"][int(rng.integers(4))]
            guard = [f"{variable}={k}", f"{variable}>={k} & {variable}<{k + 3} & {other}!=0", f"{other}={k}"]
            targets = [f"({variable}'={int(rng.integers(30))})" for _ in range(2)]
            commands[name].append(
                f"[{action}] {guard[int(rng.integers(3))]} -> p : {targets[0]} + 1-p : {targets[1]};"
            )
    assert_agrees(
        "mdp const double p;"
        f"module m x : [0..29] init 7; {' '.join(commands['m'])} endmodule "
        f"module n y : [0..29] init 3; {' '.join(commands['n'])} endmodule"
    )


# --- single constructs ------------------------------------------------------------------------------


def test_synchronisation_of_three_modules_multiplies_and_blocks() -> None:
    assert_agrees(
        """mdp const double p;
        module a x : [0..2]; [go] x<2 -> p : (x'=x+1) + 1-p : true; [stop] x=2 -> true; endmodule
        module b u : [0..2]; [go] u<2 -> 0.5 : (u'=u+1) + 0.5 : true; [go] u=1 -> (u'=0); endmodule
        module c v : [0..2]; [go] v<x+1 -> (v'=v+1); [go] true -> p : (v'=0) + 1-p : true; endmodule"""
    )


def test_a_blocked_synchronisation_does_not_evaluate_updates() -> None:
    # x would leave its range, but the other module is not ready for it.
    model = parametric(
        """mdp module a x : [0..2]; [go] true -> (x'=x+1); endmodule
        module b y : [0..2]; [go] y<2 -> (y'=y+1); endmodule"""
    )
    assert (model.states, int(model.labels["deadlock"].sum())) == (3, 1)


def test_equal_successors_merge_and_keep_the_order_of_updates() -> None:
    model = parametric(
        """dtmc const double p; const double q; module m x : [0..3];
        [] x=0 -> p/2 : (x'=1) + 1-p-q : (x'=2) + p/2 : (x'=1) + q : (x'=3); [] x>0 -> true; endmodule""",
        domain="p+q<=1",
    )
    assert model.transitions == 6
    assert model.successor[:3].tolist() == [1, 2, 3]
    texts = [model.expressions.text(int(e)) for e in model.expression[:3]]
    assert texts == ["p", "1 - p - q", "q"]


def test_a_choice_with_many_outcomes_merges_too() -> None:
    updates = " + ".join(f"1/100 : (x'={k % 30})" for k in range(100))
    model = parametric(f"dtmc module m x : [0..99]; [] x=0 -> {updates}; [] x>0 -> true; endmodule")
    assert (model.states, model.transitions) == (30, 30 + 29)
    first = model.expressions.values(())[model.expression[:30]]
    assert first.tolist() == [0.04] * 10 + [0.03] * 20


def test_impossible_updates_are_dropped_without_being_evaluated() -> None:
    model = parametric(
        """dtmc const double p; module m x : [0..3];
        [] true -> x/3 : (x'=x-1) + 1-x/3 : (x'=x+1) + p-p : (x'=100); endmodule"""
    )
    assert (model.states, model.transitions) == (4, 6)


def test_expressions_that_cancel_when_merged_are_dropped() -> None:
    model = parametric(
        """dtmc const double p; module m x : [0..2];
        [] x=0 -> p-0.5 : (x'=1) + 1 : (x'=2) + 0.5-p : (x'=1); [] x=2 -> true; endmodule""",
        domain="p=0.5",
    )
    assert model.transitions == 3  # 0 -> 2, and the self-loops of 2 and of the state 1 once seen
    assert model.successor[0] == model.valuations["x"].tolist().index(2)


def test_deadlocks_get_a_self_loop_a_label_and_a_warning() -> None:
    heard: list[str] = []
    model = parametric(
        """mdp module m x : [0..2]; [go] x<2 -> (x'=x+1); endmodule
        rewards "r" true : 1; [go] true : 2; [] true : 5; endrewards""",
        warn=heard.append,
    )
    assert model.labels["deadlock"].tolist() == [False, False, True]
    assert model.labels["init"].tolist() == [True, False, False]
    assert model.successor.tolist() == [1, 2, 2]
    assert model.structure.action_name(2) == ""
    assert heard == ["state (x=2) is a deadlock and was given a self-loop"]
    rewards = model.rewards["r"]
    assert rewards.state is not None and rewards.state.tolist() == [1, 1, 1]
    assert rewards.choice is not None and rewards.choice.tolist() == [2, 2, 0]


def test_a_chain_draws_uniformly_among_enabled_commands() -> None:
    heard: list[str] = []
    model = parametric(
        """dtmc const double p; module m x : [0..3];
        [a] x=0 -> p : (x'=1) + 1-p : (x'=2); [b] x=0 -> (x'=3); [] x=0 -> (x'=1); [] x>0 -> true;
        endmodule
        rewards "r" [a] true : 3; [b] true : 4; [] x=0 : 5; [a] true : 1/2; endrewards""",
        warn=heard.append,
    )
    assert (model.states, model.choices, model.transitions) == (4, 4, 6)
    texts = {
        int(s): model.expressions.text(int(e))
        for s, e in zip(model.successor[:3], model.expression[:3], strict=True)
    }
    assert texts == {1: "1/3*p + 1/3", 2: "1/3 - 1/3*p", 3: "1/3"}
    assert model.rewards["r"].choice is not None
    assert model.rewards["r"].choice.tolist() == [12.5 / 3, 0, 0, 0]
    assert len(heard) == 1 and "(x=0)" in heard[0] and "equally likely" in heard[0]


def test_equal_choices_of_an_mdp_stay_apart_in_order_of_the_commands() -> None:
    model = parametric(
        """mdp module m x : [0..1]; [b] true -> (x'=1); [] true -> (x'=1); [a] true -> (x'=1);
        [b] true -> (x'=1); endmodule"""
    )
    assert [model.structure.action_name(c) for c in range(4)] == ["b", "", "a", "b"]
    assert model.choices == 8


def test_states_of_several_words() -> None:
    variables = "".join(f"v{i} : [-2000000000..2000000000] init {i};" for i in range(5))
    model = parametric(
        f"""mdp const double p; module m {variables} b : bool;
        [up] v0<3 -> p : (v0'=v0+1) & (v4'=v4-7) + 1-p : (b'=!b);
        [big] v3<1000 -> (v3'=v3+1999999000) & (v1'=-v1); endmodule"""
    )
    assert len(choices_of(model)) == model.states == 4 * 2 * 2
    assert set(model.valuations["v3"].tolist()) == {3, 1999999003}
    assert set(model.valuations["v4"].tolist()) == {4, -3, -10, -17}
    assert set(model.valuations["v1"].tolist()) == {1, -1}


def test_rewards_are_the_nearest_doubles_of_exact_sums() -> None:
    model = parametric(
        """mdp module m x : [0..3]; [go] x<3 -> (x'=x+1); [stay] true -> true; endmodule
        rewards "cost" true : 0.1; x>0 : 0.2; [go] true : x/3; [go] x=1 : 1/6; endrewards
        rewards x=2 : -7; endrewards"""
    )
    cost = model.rewards["cost"]
    assert cost.state is not None and cost.choice is not None
    assert cost.state.tolist() == [0.1, 0.3, 0.3, 0.3]
    assert cost.choice.tolist() == [0, 0, 0.5, 0, 2 / 3, 0, 0]
    assert model.rewards[""].state is not None
    assert model.rewards[""].state.tolist() == [0, 0, -7, 0]
    assert model.rewards[""].choice is None


def test_a_model_of_one_state_without_parameters() -> None:
    model = parametric("dtmc module m b : bool init true; [a] true -> true; endmodule")
    assert (model.states, model.transitions, len(model.parameters)) == (1, 1, 0)
    assert model.valuations["b"].tolist() == [True]


def test_progress_receives_the_final_numbers() -> None:
    seen: list[tuple[int, int]] = []
    model = parametric(
        "mdp module m x : [0..9]; [] x<9 -> (x'=x+1); [] x=9 -> true; endmodule",
        progress=lambda s, t: seen.append((s, t)),
    )
    assert seen[-1] == (model.states, model.transitions)


def test_box_and_domain() -> None:
    text = "dtmc const double p; module m x:[0..1]; [] true -> p+0.5 : (x'=1) + 0.5-p : true; endmodule"
    with pytest.warns(UserWarning, match="narrow"):
        assert parametric(text).parameters.upper == (Fraction(1, 2),)
    squared = text.replace("p+0.5", "p*p+0.5").replace("0.5-p", "0.5-p*p")
    with pytest.raises(InputError, match=r"not within \[0, 1\]"):
        parametric(squared)
    assert parametric(text, box="p=0:0.5").parameters.upper == (Fraction(1, 2),)
    assert parametric(text, domain="p<=1/4").parameters.upper == (Fraction(1, 4),)


# --- intervals --------------------------------------------------------------------------------------


def test_intervals_are_rounded_outward_and_merge() -> None:
    model = interval(
        """mdp module m x : [0..2]; [] x=0 -> [0.1,0.3] : (x'=1) + [0.2,0.4] : (x'=2) + [0.1,0.9] : (x'=1);
        [] x>0 -> 0.3 : (x'=0) + 0.7 : true; endmodule"""
    )
    exact = [(Fraction(2, 10), Fraction(1)), (Fraction(2, 10), Fraction(4, 10))]
    for t, (low, high) in enumerate(exact):
        assert Fraction(float(model.lower[t])) <= low <= high <= Fraction(float(model.upper[t]))
    assert model.lower[:2] == pytest.approx([0.2, 0.2], abs=1e-16)
    assert model.upper[0] == 1
    assert Fraction(float(model.lower[2])) < Fraction(3, 10) < Fraction(float(model.upper[2]))


def test_a_point_synchronises_with_an_interval() -> None:
    model = interval(
        """dtmc module m x : [0..1]; [a] true -> [0.25,0.5] : (x'=1) + [0.5,0.75] : (x'=0); endmodule
        module n y : [0..1]; [a] true -> 0.5 : (y'=1) + 0.5 : (y'=0); endmodule"""
    )
    assert model.transitions == 16
    assert sorted(set(model.lower.tolist())) == [0.125, 0.25]
    assert sorted(set(model.upper.tolist())) == [0.25, 0.375]


def test_intervals_synchronise_by_the_products_of_their_bounds_with_a_warning() -> None:
    warnings: list[str] = []
    model = load_prism_text(
        """mdp module m x : [0..1]; [a] x=0 -> [0.1,0.5] : (x'=1) + [0.5,0.9] : (x'=0); endmodule
        module n y : [0..1]; [a] y=0 -> [0.25,0.5] : (y'=1) + [0.5,0.75] : (y'=0); endmodule""",
        "test.prism",
        warn=warnings.append,
    )
    assert isinstance(model, IntervalMDP)
    assert sorted(model.lower[:4].tolist()) == pytest.approx([0.025, 0.05, 0.125, 0.25])
    assert sorted(model.upper[:4].tolist()) == pytest.approx([0.25, 0.375, 0.45, 0.675])
    assert any("products of their bounds" in text for text in warnings)


def vertices(bounds: list[tuple[Fraction, Fraction]]) -> list[list[Fraction]]:
    """The vertices of all distributions within bounds: all but one at an end of their intervals."""
    found = []
    for free in range(len(bounds)):
        others = [pair for i, pair in enumerate(bounds) if i != free]
        for ends in product(*others):
            rest = 1 - sum(ends)
            if bounds[free][0] <= rest <= bounds[free][1]:
                found.append([*ends[:free], rest, *ends[free:]])
    return found


def test_products_of_narrowed_bounds_hold_all_products_of_distributions() -> None:
    """Against the vertices of both commands, beside the products of the bounds as written."""
    draw = random.Random(13)
    narrower = 0
    for _ in range(12):
        commands = []
        for _ in range(2):
            centre = [draw.randint(1, 6) for _ in range(3)]
            share = [Fraction(c, sum(centre)) for c in centre]
            commands.append(
                [
                    (s * Fraction(draw.randint(2, 10), 10), s + (1 - s) * Fraction(draw.randint(0, 5), 10))
                    for s in share
                ]
            )
        updates = [" + ".join(f"[{a},{b}] : (v'={i})" for i, (a, b) in enumerate(c)) for c in commands]
        first, second = (text.replace("v'", f"{name}'") for text, name in zip(updates, "xy", strict=True))
        model = load_prism_text(
            f"""mdp module m x : [0..3] init 3; [a] x=3 -> {first}; endmodule
            module n y : [0..3] init 3; [a] y=3 -> {second}; endmodule""",
            warn=lambda text: None,
        )
        assert isinstance(model, IntervalMDP)
        x, y = (model.valuations[name][model.successor[:9]].tolist() for name in "xy")
        for t, (i, j) in enumerate(zip(x, y, strict=True)):
            (a, b), (c, d) = commands[0][i], commands[1][j]
            products = [p[i] * q[j] for p in vertices(commands[0]) for q in vertices(commands[1])]
            assert model.lower[t] <= min(products)
            assert max(products) <= model.upper[t]
            assert float(min(products)) == pytest.approx(model.lower[t]), "the bounds are attained"
            assert float(max(products)) == pytest.approx(model.upper[t])
            assert Fraction(float(model.lower[t])) >= a * c * (1 - Fraction(1, 2**50))
            narrower += model.upper[t] < float(b * d) - 1e-9
    assert narrower > 20


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "mdp module m x : [0..3] init 1; b : bool;\n [] true -> (x'=2*x); endmodule",
            "test.prism:2:14: command []: 'x' becomes 4, outside its range 0..3, in state (x=2,b=false)",
        ),
        (
            "mdp const double p; module m x : [0..3];\n [] true -> p : (x'=1) + p : (x'=2); endmodule",
            "test.prism:2:2: the probabilities of this command sum to 2*p, not 1, in state (x=0)",
        ),
        (
            "mdp module m x : [0..3];\n [] x<3 -> (x'=x+1);\n"
            " [] true -> 1/(3-x) : true + 1-1/(3-x) : true; endmodule",
            "test.prism:3:13: division by zero in state (x=3)",
        ),
        (
            "mdp module m x : [0..3];\n [] x<=2 -> x/2 : (x'=0) + (2-x)/3 + 1/3 : (x'=x+1); endmodule",
            "sum to 7/6, not 1, in state (x=1)",
        ),
        (
            "mdp module m x : [0..3];\n [] 1/x>0 -> true; endmodule",
            "test.prism:2:5: division by zero in state (x=0)",
        ),
        (
            "mdp module m x : [0..3];\n [] true -> [0.1,0.2] : (x'=1) + [0.3,0.4] : (x'=2); endmodule",
            "the upper bounds of this command sum to 3/5 < 1 in state (x=0), so no distribution fits",
        ),
        (
            "mdp module m x : [0..3];\n [] true -> [0.8,0.9] : (x'=1) + [0.3,0.4] : (x'=2); endmodule",
            "the lower bounds of this command sum to 11/10 > 1 in state (x=0)",
        ),
        (
            "mdp module m x : [0..3];\n [] true -> [x/2,0.9] : (x'=1) + [0.1,1] : (x'=x+1); endmodule",
            "[1, 9/10] is not an interval of probabilities in state (x=2)",
        ),
    ],
)
def test_errors_say_where_and_in_which_state(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_prism_text(text, "test.prism")
    assert message in str(caught.value)


def test_unreadable_files(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="cannot read"):
        load_prism(tmp_path / "none.prism")
    binary = tmp_path / "binary.prism"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        load_prism(binary)


# --- large polynomials ------------------------------------------------------------------------------


def repeated(times: int) -> str:
    formulas = "".join(f"formula f{i + 1} = f{i}*(1-f{i});\n" for i in range(times))
    return (
        f"dtmc\nconst double p;\nformula f0 = p;\n{formulas}module m s:[0..2];\n"
        f"[] s=0 -> f{times} : (s'=1) + 1-f{times} : (s'=2);\n[] s>0 -> true;\nendmodule\n"
    )


def test_products_beyond_a_size_are_refused_at_once() -> None:
    with pytest.raises(InputError) as caught:
        load_prism_text(repeated(9), "test.prism")  # degree 512
    assert str(caught.value) == (
        "test.prism:10:14: this product is a polynomial of degree 128 with up to 129 terms, which is more "
        "than tightrope computes with (terms times degree may be 12000)\n"
        "    formula f7 = f6*(1-f6);\n"
        "                 ^\n"
        "hint: let a variable of the model count the steps that the factors stand for, or give a parameter "
        "a value with `const`"
    )


def test_powers_beyond_a_size_are_refused() -> None:
    text = "dtmc const double p; module m s:[0..1]; [] true -> {} : (s'=1) + 1-{} : true; endmodule"
    for small in ("pow(p,1000)", "pow(1-p,30)"):
        assert load_prism_text(text.replace("{}", small), "test.prism").states == 2
    for large in ("pow(1-p,400)", "pow(p+1/2-p*p,120)"):
        with pytest.raises(InputError, match=r"test\.prism:1:52: this product is a polynomial of degree"):
            load_prism_text(text.replace("{}", large), "test.prism")
    with pytest.raises(InputError, match="a polynomial of degree 100000 is beyond 1000"):
        load_prism_text(text.replace("{}", "pow(p,100000)"), "test.prism")
