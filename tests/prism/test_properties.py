"""Properties: directions, path formulas against paths enumerated one by one, rewards, thresholds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tightrope.errors import InputError
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Definitions
from tightrope.prism.parse.parser import parse_model, parse_properties
from tightrope.prism.properties.query import parse_query, pick, read_query
from tightrope.prism.properties.resolve import PropertyOptions

MAX, MIN = Direction.MAX, Direction.MIN
X = np.array([0, 1, 2, 3, 1], dtype=np.int32)
B = np.array([False, True, False, True, False])


def structure(choices: tuple[int, ...] = (1, 1, 1, 1, 1)) -> Structure:
    """Five states in a ring with the given numbers of choices."""
    successors = [(state + 1) % 5 for state, count in enumerate(choices) for _ in range(count)]
    return Structure(
        choice_start=np.concatenate([[0], np.cumsum(choices)]).astype(np.int64),
        transition_start=np.arange(sum(choices) + 1, dtype=np.int64),
        successor=np.array(successors, dtype=np.int32),
        labels={"goal": X == 3, "bad": X == 2},
        rewards={
            "cost": RewardStructure(state=np.arange(5.0)),
            "time": RewardStructure(choice=np.ones(sum(choices))),
        },
        valuations={"x": X, "b": B},
    )


CHAIN = structure()
MDP = structure((1, 2, 1, 1, 1))


INTERVAL = PropertyOptions(is_interval=True)


def objective(text: str, where: Structure = CHAIN, options: PropertyOptions | None = None) -> Objective:
    return parse_query(text, where, options).objective


# --- directions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "agent", "nature"),
    [
        ("Pmax=?", MAX, MIN),
        ("Pmin=?", MIN, MAX),
        ("Pmaxmax=?", MAX, MAX),
        ("Pmaxmin=?", MAX, MIN),
        ("Pminmax=?", MIN, MAX),
        ("Pminmin=?", MIN, MIN),
        ("P>=0.5", MIN, MIN),
        ("P>0.5", MIN, MIN),
        ("P<=0.5", MAX, MAX),
        ("P<0.5", MAX, MAX),
        ("Pmax>=0.5", MAX, MIN),
        ("Pmin<0.5", MIN, MAX),
        ("Pmaxmax<0.5", MAX, MAX),
    ],
)
def test_who_decides_in_which_direction(operator: str, agent: Direction, nature: Direction) -> None:
    asked = objective(f'{operator} [ F "goal" ]', MDP)
    assert (asked.agent, asked.nature) == (agent, nature)
    turned = objective(f'{operator} [ G "goal" ]', MDP)
    assert (turned.agent, turned.nature, turned.complement) == (agent.opposite, nature.opposite, True)


def test_rewards_take_the_same_letters() -> None:
    for operator in ('R{"cost"}minmax', "Rminmax", 'R{"cost"}min', "Rmin"):
        asked = objective(f'{operator}=? [ F "goal" ]', MDP)
        assert (asked.agent, asked.nature) == (MIN, MAX)


def test_plain_questions_need_a_model_without_decisions() -> None:
    assert objective('P=? [ F "goal" ]').kind is ObjectiveKind.UNTIL
    with pytest.raises(InputError, match=r"P=\? is ambiguous: the model has choices"):
        objective('P=? [ F "goal" ]', MDP)
    with pytest.raises(InputError, match=r"R=\? is ambiguous: the model has choices"):
        objective("R=? [ C<=3 ]", MDP)
    with pytest.raises(InputError, match="interval probabilities, which nature chooses"):
        objective('P=? [ F "goal" ]', CHAIN, INTERVAL)


def test_on_an_interval_chain_one_letter_refers_to_nature() -> None:
    asked = objective('Pmax=? [ F "goal" ]', CHAIN, INTERVAL)
    assert (asked.agent, asked.nature) == (MAX, MAX)
    asked = objective('Pmax=? [ F "goal" ]', MDP, INTERVAL)
    assert (asked.agent, asked.nature) == (MAX, MAX)
    asked = objective('Pmax=? [ F "goal" ]', MDP)
    assert (asked.agent, asked.nature) == (MAX, MIN)


# --- path formulas -------------------------------------------------------------------------------

LENGTH = 5
"""Bounds stay below it, so every formula is decided on paths of this length."""

Holds = Callable[[int], bool]


def eventually(path: tuple[int, ...], right: Holds, low: int, high: int) -> bool:
    return any(right(path[i]) for i in range(low, high + 1))


def until(path: tuple[int, ...], left: Holds, right: Holds, low: int, high: int) -> bool:
    return any(right(path[i]) and all(left(s) for s in path[:i]) for i in range(low, high + 1))


def is_two_or_three(state: int) -> bool:
    return X[state] >= 2


def is_low(state: int) -> bool:
    return X[state] < 2


BOUNDS = [
    ("<=4", 0, 4),
    ("<4", 0, 3),
    ("=3", 3, 3),
    ("[1,3]", 1, 3),
    ("[0,0]", 0, 0),
    ("<=0", 0, 0),
    ("[2,2+2]", 2, 4),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("bound", "low", "high"), BOUNDS)
def test_bounded_formulas_hold_on_the_right_paths(bound: str, low: int, high: int) -> None:
    """The problem an objective states, and the formula itself, on every path of the complete graph."""
    meanings: list[tuple[str, Callable[[tuple[int, ...]], bool]]] = [
        (f"F{bound} x>=2", lambda p: eventually(p, is_two_or_three, low, high)),
        (f"G{bound} x>=2", lambda p: all(is_two_or_three(p[i]) for i in range(low, high + 1))),
        (f"x<2 U{bound} b", lambda p: until(p, is_low, lambda s: bool(B[s]), low, high)),
    ]
    if low == 0:
        meanings.append(
            (
                f"x<2 W{bound} b",
                lambda p: (
                    until(p, is_low, lambda s: bool(B[s]), 0, high)
                    or all(is_low(p[i]) for i in range(high + 1))
                ),
            )
        )
    for formula, meaning in meanings:
        stated = objective(f"P=? [ {formula} ]")
        assert (stated.lower_steps, stated.upper_steps) == (low, high)
        for path in itertools.product(range(5), repeat=LENGTH):
            assert holds(stated, path) == meaning(path), (formula, path)


def holds(stated: Objective, path: tuple[int, ...]) -> bool:
    """Whether a path counts for an objective, by its definition."""
    assert stated.kind is ObjectiveKind.UNTIL and stated.target is not None
    allowed = np.ones(5, np.bool_) if stated.allowed is None else stated.allowed
    target, high = stated.target, LENGTH - 1 if stated.upper_steps is None else stated.upper_steps
    reached = until(path, lambda s: bool(allowed[s]), lambda s: bool(target[s]), stated.lower_steps, high)
    return reached != stated.complement


def test_one_sided_lower_bounds() -> None:
    stated = objective("P=? [ F>=2 b ]")
    assert (stated.lower_steps, stated.upper_steps) == (2, None)
    assert objective("P=? [ G>2 b ]").lower_steps == 3


def test_unbounded_formulas() -> None:
    stated = objective('Pmax=? [ !"bad" U "goal" & b ]')
    assert stated.target is not None and stated.allowed is not None
    assert stated.target.tolist() == [False, False, False, True, False]
    assert stated.allowed.tolist() == [True, True, False, True, True]
    assert (stated.lower_steps, stated.upper_steps, stated.complement) == (0, None, False)
    weak = objective('Pmax=? [ x<2 W "goal" ]')
    assert weak.target is not None and weak.allowed is not None
    assert weak.target.tolist() == [False, False, True, False, False]
    assert weak.allowed.tolist() == [True, True, False, False, True]
    following = objective("P=? [ X b ]")
    assert following.kind is ObjectiveKind.NEXT and following.target is not None
    assert following.target.tolist() == B.tolist()


# --- state formulas ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "states"),
    [
        ('"goal"', [3]),
        ('"init"', [0]),
        ('"deadlock"', []),
        ("x=1", [1, 4]),
        ("x=1 & !b", [4]),
        ('"goal" | "bad" & true', [2, 3]),
        ("true", [0, 1, 2, 3, 4]),
        ("(x>1 ? b : x=0)", [0, 3]),
        ("mod(x,2)=0 <=> b", [4]),
        ("x/2>=1", [2, 3]),
        ("twice>N", [2, 3]),
        ("x=k", [2]),
        ('"near"', [2, 3, 4]),
    ],
)
def test_state_formulas(formula: str, states: list[int]) -> None:
    model = parse_model(
        "dtmc const int N = 3; formula twice = 2*x; module m x:[0..3]; b:bool; endmodule", "m.prism"
    )
    text = f'const int k = N-1; label "near" = "goal" | x=1 & !b | "bad"; P=? [ F {formula} ]'
    options = PropertyOptions(definitions=Definitions.of(expand(model)))
    target = parse_query(text, CHAIN, options).objective.target
    assert target is not None
    assert np.flatnonzero(target).tolist() == states


def test_property_constants_come_from_const() -> None:
    file = parse_properties("const int k; const double u; P>=u [ F<=k b ]", "p")
    given = {"k": "7", "u": "1/3", "N": "4"}
    question = read_query(file.properties[0], file, CHAIN, PropertyOptions(constants=given))
    assert (question.objective.upper_steps, question.threshold) == (7, Fraction(1, 3))


def test_properties_are_picked_by_name_or_number() -> None:
    file = parse_properties('"one": P=? [ X b ]; P=? [ F b ] "three": P=? [ G b ]', "p")
    assert [pick(file, name).text for name in ("one", "2", "three", "3")] == [
        "P=? [ X b ]",
        "P=? [ F b ]",
        "P=? [ G b ]",
        "P=? [ G b ]",
    ]
    for name, message in ((None, "one property is required, not 3"), ("four", "there is no property 'four'")):
        with pytest.raises(InputError, match=message):
            pick(file, name)


# --- rewards -------------------------------------------------------------------------------------


def test_reward_objectives() -> None:
    reach = objective('R{"cost"}=? [ F "goal" ]', CHAIN, PropertyOptions(terminal_reward="cost"))
    assert reach.kind is ObjectiveKind.REACH_REWARD
    assert reach.reward is CHAIN.rewards["cost"] and reach.terminal is not None
    assert reach.terminal.tolist() == [0, 1, 2, 3, 4]
    assert objective('R{"cost"}=? [ F "goal" ]').terminal is None
    steps = objective("R{2}=? [ C<=2*3 ]")
    assert (steps.kind, steps.upper_steps) == (ObjectiveKind.CUMULATIVE, 6)
    assert steps.reward is CHAIN.rewards["time"]
    assert objective("R=? [ C<6 ]").upper_steps == 5
    total = objective("R=? [ C ]")
    assert total.kind is ObjectiveKind.TOTAL and total.reward is CHAIN.rewards["cost"]
    discounted = objective("R=? [ C ]", CHAIN, PropertyOptions(discount=0.95))
    assert (discounted.kind, discounted.discount) == (ObjectiveKind.DISCOUNTED, 0.95)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "R=? [ C<=3 ]",
            PropertyOptions(discount=0.9),
            "`discount`: a discount factor is for the total reward only",
        ),
        (
            "P=? [ F b ]",
            PropertyOptions(discount=0.9),
            "`discount`: a discount factor is for rewards only",
        ),
        ("R=? [ C ]", PropertyOptions(discount=1.0), "`discount`: the discount factor is 1.0"),
        ("R=? [ C ]", PropertyOptions(discount=math.nan), "`discount`: the discount factor is nan"),
        (
            "R=? [ C ]",
            PropertyOptions(terminal_reward="cost"),
            "`terminal_reward`: a terminal reward needs target states",
        ),
        (
            "P=? [ F b ]",
            PropertyOptions(terminal_reward="cost"),
            "`terminal_reward`: a terminal reward is for rewards",
        ),
        (
            "R=? [ F b ]",
            PropertyOptions(terminal_reward="cots"),
            "`terminal_reward`: there is no reward structure 'cots'",
        ),
    ],
)
def test_options_that_do_not_fit(text: str, options: PropertyOptions, message: str) -> None:
    with pytest.raises(InputError) as caught:
        objective(text, CHAIN, options)
    assert str(caught.value).startswith(message)


# --- thresholds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comparison", "lower", "upper", "answer"),
    [
        (">=", 0.5, 0.6, "true"),
        (">=", 0.4, 0.6, "not certified"),
        (">=", 0.3, 0.4, "false"),
        (">=", 0.5, 0.5, "true"),
        (">", 0.5, 0.6, "not certified"),
        (">", 0.4, 0.5, "false"),
        (">", 0.51, 0.6, "true"),
        ("<=", 0.4, 0.5, "true"),
        ("<=", 0.5, 0.6, "not certified"),
        ("<=", 0.51, 0.6, "false"),
        ("<", 0.4, 0.5, "not certified"),
        ("<", 0.5, 0.6, "false"),
        ("<", 0.1, 0.49, "true"),
    ],
)
def test_thresholds_are_answered_from_bounds(
    comparison: str, lower: float, upper: float, answer: str
) -> None:
    question = parse_query(f"P{comparison}0.5 [ F b ]", CHAIN)
    assert question.is_threshold
    assert question.answer(lower, upper) == answer


def test_thresholds_are_exact() -> None:
    question = parse_query("P>=0.1 [ F b ]", CHAIN)
    assert question.threshold == Fraction(1, 10)
    assert question.answer(0.1, 0.1) == "true"  # the double 0.1 is a little more than 1/10
    assert parse_query("P<=0.1 [ F b ]", CHAIN).answer(0.1, 0.1) == "false"
    assert parse_query("R>=3 [ C ]", CHAIN).answer(math.inf, math.inf) == "true"
    assert parse_query("R<3 [ C ]", CHAIN).answer(0.0, math.inf) == "not certified"
    with pytest.raises(ValueError, match="threshold"):
        parse_query("P=? [ F b ]", CHAIN).answer(0, 1)
