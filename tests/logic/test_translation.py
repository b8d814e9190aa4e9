"""Temporal formulas: by their meaning on lassos, by Storm on MDPs, by all vertices of intervals."""

from __future__ import annotations

import itertools
import random
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import stormpy

import tightrope as tr
from effort import repeats
from tightrope.logic.formula import (
    FALSE,
    TRUE,
    after,
    atom,
    both,
    either,
    eventually,
    globally,
    guesses,
    is_co_safe,
    is_safe,
    progression,
    until,
)

ATOMS = ("a", "b", "c")
Tree = tuple[Any, ...]
Rows = list[tuple[int, str, dict[int, Any]]]


def random_formula(rng: random.Random, depth: int) -> Tree:
    if depth == 0:
        return ("atom", rng.choice(ATOMS))
    operator = rng.choice(["!", "&", "|", "=>", "X", "F", "G", "F", "G", "U", "W", "R", "F<=2", "G[1,2]"])
    arity = 2 if operator in ("&", "|", "=>", "U", "W", "R") else 1
    return (operator, *(random_formula(rng, rng.randint(0, depth - 1)) for _ in range(arity)))


def text(tree: Tree) -> str:
    operator, *parts = tree
    if operator == "atom":
        return f'"{parts[0]}"'
    if len(parts) == 1:
        return f"({operator} {text(parts[0])})"
    return f"({text(parts[0])} {operator} {text(parts[1])})"


def holds(tree: Tree, labels: dict[str, np.ndarray], successor: np.ndarray) -> np.ndarray:
    """Where a formula holds on a graph in which every state has one successor: fixpoints, as defined."""
    operator, *parts = tree
    if operator == "atom":
        return labels[parts[0]]
    values = [holds(part, labels, successor) for part in parts]
    if operator == "!":
        return ~values[0]
    if operator in ("&", "|", "=>"):
        left, right = values
        return left & right if operator == "&" else (~left if operator == "=>" else left) | right
    if operator == "X":
        return values[0][successor]
    if operator in ("F<=2", "G[1,2]"):
        once, twice = values[0][successor], values[0][successor][successor]
        return values[0] | once | twice if operator == "F<=2" else once & twice
    everything = np.ones(len(successor), np.bool_)
    left, right = values if len(values) == 2 else (everything if operator == "F" else ~everything, values[0])
    found = ~everything if operator in "FU" else everything
    for _ in range(len(successor) + 1):
        following = found[successor]
        found = right & (left | following) if operator in "GR" else right | (left & following)
    return found


def quietly(model: tr.MDP | tr.IntervalMDP | tr.ParametricMDP, asked: str, **options: Any) -> tr.Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tr.ReadingWarning)
        return tr.solve(model, asked, **options)


def test_formulas_hold_on_lassos_as_they_are_defined() -> None:
    rng = random.Random(1)
    states = 30
    for number in range(40):
        successor = np.array([rng.randrange(states) for _ in range(states)])
        labels = {name: np.array([rng.random() < 0.5 for _ in range(states)]) for name in ATOMS}
        model = tr.build_from_rows(
            [(s, "", {int(successor[s]): 1}) for s in range(states)],
            labels={name: np.flatnonzero(members).tolist() for name, members in labels.items()},
        )
        tree = random_formula(rng, 4 if number % 4 else 2)
        if tree[0] in ("atom", "&", "|", "!", "=>"):
            tree = ("G", ("F", tree))
        found = quietly(model, f"P=? [ {text(tree)} ]")
        expected = holds(tree, labels, successor).astype(float)
        assert found.lower is not None and found.upper is not None
        assert (found.lower == expected).all() and (found.upper == expected).all(), text(tree)


def random_mdp(rng: random.Random, states: int) -> tr.MDP:
    rows: Rows = []
    for s in range(states):
        for c in range(rng.randint(1, 2)):
            leads_to = {*rng.sample(range(states), rng.randint(1, 3)), *([states - 1] if s == c == 0 else [])}
            weights = {t: rng.randint(1, 4) for t in leads_to}
            total = sum(weights.values())
            rows.append((s, f"c{c}", {t: f"{w}/{total}" for t, w in weights.items()}))
    labels = {name: rng.sample(range(states), rng.randint(1, 3)) for name in ATOMS}
    model = tr.build_from_rows(rows, labels=labels)
    assert isinstance(model, tr.ParametricMDP)
    return model.instantiate()


SHAPES = [
    ("G", ("F", ("atom", "a"))),
    ("F", ("G", ("atom", "a"))),
    ("&", ("G", ("F", ("atom", "a"))), ("F", ("G", ("|", ("atom", "b"), ("atom", "c"))))),
    ("=>", ("G", ("F", ("atom", "a"))), ("G", ("F", ("atom", "b")))),
    ("&", ("F", ("&", ("atom", "a"), ("X", ("atom", "b")))), ("G", ("!", ("atom", "c")))),
    ("U", ("|", ("atom", "a"), ("X", ("atom", "b"))), ("G", ("F", ("atom", "c")))),
    ("X", ("X", ("U", ("atom", "a"), ("atom", "b")))),
    ("G", ("=>", ("atom", "a"), ("F", ("atom", "b")))),
]


def without_implications(tree: Tree) -> Tree:
    """As Storm reads paths: it knows no => between them."""
    operator, *parts = tree
    if operator == "atom":
        return tree
    inner = tuple(without_implications(part) for part in parts)
    return ("|", ("!", inner[0]), inner[1]) if operator == "=>" else (operator, *inner)


@pytest.mark.parametrize("direction", ["max", "min"])
def test_values_on_mdps_are_those_of_storm(direction: str) -> None:
    rng = random.Random(7)
    for number in range(16):
        model = random_mdp(rng, 6)
        tree = SHAPES[number] if number < len(SHAPES) else ("G", ("F", random_formula(rng, 2)))
        if "W" in text(tree) or "R" in text(tree) or "[" in text(tree) or "<=" in text(tree):
            tree = SHAPES[number % len(SHAPES)]
        asked = f"P{direction}=? [ {text(tree)} ]"
        (parsed,) = stormpy.parse_properties(f"P{direction}=? [ {text(without_implications(tree))} ]")
        theirs = stormpy.model_checking(tr.to_stormpy(model), parsed)
        ours = quietly(model, asked)
        assert ours.lower is not None and ours.upper is not None
        for s in range(model.states):
            value = float(theirs.get_value(s))
            assert ours.lower[s] - 1e-5 <= value <= ours.upper[s] + 1e-5, (asked, s)


def test_intervals_contain_every_vertex_and_the_extremes_are_reached() -> None:
    rng = random.Random(3)
    for _ in range(repeats(4)):
        rows: Rows = []
        for s in range(4):
            one, other = rng.sample(range(4), 2)
            low = rng.choice([0.1, 0.25])
            rows.append((s, "", {one: (low, 0.75), other: (0.25, 1 - low)}))
        labels = {"a": [0, 2], "b": [1]}
        model = tr.build_from_rows(rows, labels=labels)
        for path in ('(F G "a") | ((G F "a") & (X "b"))', '("a" U (G F "b")) & (X X "a")'):
            most = quietly(model, f"Pmax=? [ {path} ]").bounds
            least = quietly(model, f"Pmin=? [ {path} ]").bounds
            assert most is not None and least is not None
            values = []
            for ends in itertools.product((0, 1), repeat=4):
                points = []
                for (s, name, pair), end in zip(rows, ends, strict=True):
                    (one, (low, _)), (other, _) = pair.items()
                    first = low if end else 1 - 0.25
                    points.append((s, name, {one: first, other: 1 - first}))
                found = quietly(tr.build_from_rows(points, labels=labels), f"P=? [ {path} ]").bounds
                assert found is not None
                values.append(sum(found) / 2)
            assert least[0] - 1e-6 <= min(values) and max(values) <= most[1] + 1e-6


def test_prefix_independent_formulas_on_intervals_are_decided_by_stationary_picks() -> None:
    rows: Rows = [
        (0, "", {1: (0.2, 0.6), 2: (0.4, 0.8)}),
        (1, "", {1: 1}),
        (2, "", {2: (0.5, 0.75), 3: (0.25, 0.5)}),
        (3, "", {2: 1}),
    ]
    model = tr.build_from_rows(rows, labels={"a": [3], "b": [1, 2]})
    assert quietly(model, 'Pmax=? [ G F "a" ]').bounds == pytest.approx((0.8, 0.8))
    assert quietly(model, 'Pmin=? [ G F "a" ]').bounds == pytest.approx((0.4, 0.4))
    assert quietly(model, 'Pmax=? [ F G "b" ]').bounds == pytest.approx((0.6, 0.6))


def test_the_agent_wins_where_nature_is_against_it() -> None:
    rows: Rows = [
        (0, "risk", {1: (0.3, 0.5), 2: (0.5, 0.7)}),
        (0, "wait", {0: 1}),
        (1, "", {1: 1}),
        (2, "", {0: 1}),
    ]
    model = tr.build_from_rows(rows, labels={"home": [0], "lost": [1], "shop": [2]})
    worst = quietly(model, 'Pmaxmin=? [ (F "shop") & (G F "home") ]').bounds
    assert worst == pytest.approx((0.5, 0.5))
    assert quietly(model, 'Pmaxmin=? [ G F "shop" ]').bounds == (0.0, 0.0)
    assert quietly(model, 'Pmaxmax=? [ (F "shop") & (G F "home") ]').bounds == pytest.approx((0.7, 0.7))
    assert quietly(model, 'Pminmax=? [ (F "shop") & (G F "home") ]').bounds == (0.0, 0.0)


def test_where_nature_can_cut_transitions_only_safe_and_co_safe_formulas_are_answered() -> None:
    rows: Rows = [(0, "", {0: (0, 0.5), 1: (0.5, 1)}), (1, "", {1: (0.5, 1), 0: (0, 0.5)})]
    model = tr.build_from_rows(rows, labels={"a": [1]})
    with pytest.raises(tr.InputError, match="nature can remove transitions"):
        quietly(model, 'Pmax=? [ G F "a" ]')
    assert quietly(model, 'Pmin=? [ G F "a" ]', assume_support=0.01).bounds == (1.0, 1.0)
    assert quietly(model, 'Pmin=? [ X X "a" ]').bounds == pytest.approx((0.5, 0.5))
    assert quietly(model, 'Pmax=? [ G ((X "a") | "a") ]').bounds == (1.0, 1.0)


def test_the_reading_of_a_path_is_reported() -> None:
    model = tr.build_from_rows([(0, "", {0: 1})], labels={"a": [0], "b": []})
    with pytest.warns(tr.ReadingWarning, match=r'the path is read as G \(F \("a" & \(F \(G "b"\)\)\)\)'):
        found = tr.solve(model, 'P=? [ G F "a" & (F G "b") ]')
    assert found.bounds == (0.0, 0.0)
    assert quietly(model, 'P=? [ (G F "a") & !(F G "b") ]').bounds == (1.0, 1.0)


def test_progression_is_canonical() -> None:
    a, b = atom(0), atom(1)
    assert either(both(a, b), a) == a and both(either(a, b), a) == a
    assert both(a, atom(0, False)) == FALSE
    assert after(until(a, b), 0b01) == until(a, b) and after(until(a, b), 0b10) == TRUE
    assert after(globally(either(atom(0, False), eventually(b))), 0b01) == both(
        eventually(b), globally(either(atom(0, False), eventually(b)))
    )
    assert is_co_safe(until(a, b)) and not is_safe(until(a, b)) and is_safe(globally(a))
    automaton, left = progression(globally(eventually(a)), (0, 1))
    assert automaton.states == len(left) == 2
    assert len(list(guesses(globally(eventually(a))))) == 3


def test_formulas_that_are_too_large_are_refused_in_words() -> None:
    model = tr.build_from_rows([(0, "", {1: 1}), (1, "", {0: 1})], labels={"a": [0]})
    many = " & ".join(f'(G F<={k} "a")' for k in range(1, 3))
    assert quietly(model, f"P=? [ {many} ]").bounds == (1.0, 1.0)
    with pytest.raises(tr.InputError, match="a step bound is at most 500"):
        quietly(model, 'P=? [ G F<=501 "a" ]')
    labels = {f"a{i}": [s for s in range(8) if s >> i & 1] for i in range(3)}
    cube = tr.build_from_rows([(s, "", {(s + 1) % 8: 1}) for s in range(8)], labels=labels)
    nested = " & ".join(
        f'(G F ("a{i}" & (X "a{j}"))) & (F G ("a{i}" | (X "a{j}")))' for i in range(3) for j in range(2)
    )
    with pytest.raises(tr.InputError, match="supports at most 12"):
        quietly(cube, f"P=? [ {nested} ]")


def test_rewards_until_a_co_safe_path_is_satisfied() -> None:
    rows: Rows = [(0, "", {1: 0.5, 2: 0.5}), (1, "", {0: 1}), (2, "", {0: 1})]
    model = tr.build_from_rows(rows, labels={"a": [1], "b": [2]}, state_rewards={"steps": [1, 1, 1]})
    # The coin falls at steps 1, 3, 5, …: 3 times until both sides were seen, 4 times until a then b.
    assert quietly(model, 'R=? [ (F "a") & (F "b") ]').bounds == pytest.approx((5, 5), abs=1e-4)
    assert quietly(model, 'R=? [ X X "init" ]').bounds == pytest.approx((2, 2))
    assert quietly(model, 'R=? [ F ("a" & (X X "b")) ]').bounds == pytest.approx((7, 7), abs=1e-4)
    assert quietly(model, 'R=? [ X "a" ]').bounds == (float("inf"), float("inf"))
    assert quietly(model, 'R<=6 [ (F "a") & (F "b") ]').truth == "true"
    with pytest.raises(tr.InputError, match="it is not co-safe"):
        quietly(model, 'R=? [ G "a" ]')
    with pytest.raises(tr.InputError, match="until a path formula is satisfied are not supported here"):
        _ = tr.Problem(model, 'R=? [ (F "a") & (F "b") ]').objective


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("X true", 5),
        ('X "all"', 5),
        ("X s>=0", 5),
        ("X !false", 5),
        ("X (s=1 | s=2)", 5),
        ("X X true", 10),
        ("(X X true) U s=1", 10),
        ("true & (X F[1,2] true)", 10),
        ("(X true) & (F s=3)", 15),
        ("X false", float("inf")),
    ],
)
def test_a_reward_until_a_path_counts_the_steps_of_what_is_certain(path: str, expected: float) -> None:
    rows: Rows = [(s, "", {min(s + 1, 3): 1}) for s in range(4)]
    model = tr.build_from_rows(
        rows, labels={"all": range(4)}, state_rewards={"r": [5] * 4}, valuations={"s": range(4)}
    )
    assert quietly(model, f"R=? [ {path} ]").bounds == pytest.approx((expected, expected))


def test_several_initial_states_have_the_least_and_the_greatest_value() -> None:
    rows: Rows = [
        (0, "", {2: "1/4", 3: "3/4"}),
        (1, "", {2: "1/2", 3: "1/2"}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    made = tr.build_from_rows(rows, labels={"a": [2]})
    assert isinstance(made, tr.ParametricMDP)
    plain = made.instantiate()
    model = tr.MDP(replace(plain.structure, initial_states=np.array([0, 1])), plain.probability)
    found = quietly(model, 'P=? [ X (G (F "a")) ]')
    assert found.bounds == pytest.approx((0.25, 0.5), abs=1e-6) and found.is_certified
    assert quietly(model, 'P>=0.3 [ X (G (F "a")) ]').truth == "false"
    assert quietly(model, 'P>=0.2 [ X (G (F "a")) ]').truth == "true"
