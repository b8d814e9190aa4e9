"""Graph analysis against definitions spelled out: closures, enumerated policies, enumerated subsets."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import repeats
from exact_reference import TinyModel, brute_force, random_model, vertices
from tightrope.model.graph.components import (
    acyclic_components,
    backward_reachable,
    forward_reachable,
    maximal_end_components,
    strongly_connected_components,
)
from tightrope.model.graph.qualitative import almost_sure, avoiding, positive
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Structure


def chain_of(edges: list[list[int]]) -> Support:
    """A chain that moves uniformly along the edges (a self-loop where there are none)."""
    rows = [sorted(set(row)) or [s] for s, row in enumerate(edges)]
    structure = Structure(
        choice_start=np.arange(len(rows) + 1),
        transition_start=np.cumsum([0] + [len(row) for row in rows]),
        successor=np.array([t for row in rows for t in row], np.int32),
    )
    return Support.of(MDP(structure, np.array([1 / len(row) for row in rows for _ in row])))


def closure(support: Support) -> np.ndarray:
    """reach[s, t]: a path of any length, 0 included."""
    structure = support.structure
    reach = np.eye(structure.states, dtype=bool)
    reach[structure.choice_state[structure.transition_choice], structure.successor] = True
    for k in range(structure.states):
        reach |= reach[:, k : k + 1] & reach[k : k + 1, :]
    return reach


graphs = st.integers(1, 9).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n)
)


@given(graphs)
def test_components_are_mutual_reachability_in_reverse_topological_order(edges: list[list[int]]) -> None:
    support = chain_of(edges)
    found = strongly_connected_components(support)
    ordered = acyclic_components(support)
    assert (ordered is not None) == found.is_acyclic
    if ordered is not None:
        assert ordered.order.tolist() == found.order.tolist() and ordered.is_acyclic
    reach = closure(support)
    component = found.component
    size = len(component)
    for s, t in product(range(size), range(size)):
        assert (component[s] == component[t]) == (reach[s, t] and reach[t, s])
        if reach[s, t]:
            assert component[t] <= component[s]
    assert sorted(found.order) == list(range(size))
    for k in range(len(found)):
        members = found.order[found.start[k] : found.start[k + 1]]
        assert set(members) == set(np.flatnonzero(component == k))
        loops = any(t in members for s in members for t in (edges[s] or [s]))
        assert found.cyclic[k] == loops


@given(graphs, st.integers(0, 8))
def test_reachability_both_ways(edges: list[list[int]], state: int) -> None:
    support = chain_of(edges)
    size = support.structure.states
    seed = np.arange(size) == state % size
    reach = closure(support)
    assert np.array_equal(forward_reachable(support, seed), reach[seed].any(axis=0))
    assert np.array_equal(backward_reachable(support, seed), reach[:, seed].any(axis=1))
    blocked = np.zeros(size, np.bool_)
    assert np.array_equal(forward_reachable(support, seed, through=blocked), seed)
    assert np.array_equal(backward_reachable(support, seed, through=blocked), seed)


def test_a_long_path_needs_no_recursion() -> None:
    size = 300_000
    structure = Structure(
        choice_start=np.arange(size + 1),
        transition_start=np.arange(size + 1),
        successor=np.append(np.arange(1, size), 0).astype(np.int32),
    )
    found = strongly_connected_components(Support.of(MDP(structure, np.ones(size))))
    assert len(found) == 1 and found.cyclic[0]


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("agent", "nature"), list(product(Direction, Direction)))
def test_qualitative_sets_are_the_values_zero_and_one(agent: Direction, nature: Direction) -> None:
    for seed in range(repeats(50)):
        rng = np.random.default_rng(seed)
        model = random_model(rng, int(rng.integers(2, 5)), denominator=int(rng.choice([8, 10])))
        target = np.zeros(model.states, np.bool_)
        target[rng.integers(model.states)] = True
        allowed = rng.random(model.states) < 0.85
        values = brute_force(
            model, Objective(ObjectiveKind.UNTIL, agent, nature, target=target, allowed=allowed)
        )
        support = Support.of(model.model())
        players = (agent is Direction.MAX, nature is Direction.MAX)
        some = positive(support, target, players, within=allowed)
        sure = almost_sure(support, target, players, within=allowed)
        assert some.states.tolist() == [value > 0 for value in values], seed
        assert sure.states.tolist() == [value == 1 for value in values], seed
        everywhere = almost_sure(support, target, players).states
        layers = avoiding(support, ~everywhere, players)
        assert np.array_equal(layers.states, ~everywhere)
        assert_progress(model, some.rank, some.states & ~target, target, *players)


def assert_progress(
    model: TinyModel,
    rank: np.ndarray,
    ranked: np.ndarray,
    target: np.ndarray,
    agent_reaches: bool,
    nature_reaches: bool,
) -> None:
    """Whoever is ranked enters a smaller rank with positive probability, whatever the opposition does."""
    some = {True: any, False: all}
    for s in np.flatnonzero(ranked):
        smaller = {t for t in range(model.states) if target[t] or (ranked[t] and rank[t] < rank[s])}
        assert some[agent_reaches](
            some[nature_reaches](any(t in smaller for t, _ in vertex) for vertex in vertices(choice))
            for choice in model.choices[s]
        )


def all_end_components(model: TinyModel) -> set[frozenset[int]]:
    """Every set of states that agent and nature together can stay in and move about in."""
    subsets = chain.from_iterable(combinations(range(model.states), k) for k in range(1, model.states + 1))
    return {frozenset(subset) for subset in subsets if _is_end_component(model, set(subset))}


def _is_end_component(model: TinyModel, inside: set[int]) -> bool:
    edges: dict[int, set[int]] = {}
    for s in inside:
        edges[s] = set()
        stays = False
        for choice in model.choices[s]:
            keeping = [v for v in vertices(choice) if all(t in inside for t, _ in v)]
            stays |= bool(keeping)
            edges[s] |= {t for v in keeping for t, _ in v}
        if not stays:
            return False
    for s in inside:
        found, queue = {s}, [s]
        while queue:
            for t in edges[queue.pop()] - found:
                found.add(t)
                queue.append(t)
        if found != inside:
            return False
    return True


def test_maximal_end_components() -> None:
    for seed in range(repeats(120)):
        rng = np.random.default_rng(seed)
        model = random_model(rng, int(rng.integers(2, 6)), intervals=bool(seed % 4))
        found = maximal_end_components(Support.of(model.model()))
        sets = {frozenset(np.flatnonzero(found.component == k).tolist()) for k in range(found.count)}
        every = all_end_components(model)
        assert sets == {x for x in every if not any(x < y for y in every)}, seed
        alone = maximal_end_components(Support.of(model.model()), nature_stays=False)
        for k in range(alone.count):
            members = frozenset(np.flatnonzero(alone.component == k).tolist())
            assert any(members <= x for x in sets), seed


def test_support_reads_bounds_as_nature_can_use_them() -> None:
    tight = Fraction(1, 2)
    model = TinyModel(
        (
            (((0, tight, tight), (1, tight, Fraction(1)), (2, Fraction(0), Fraction(1))),),
            (((0, Fraction(0), Fraction(1)),),),
            (((0, Fraction(0), Fraction(7, 10)), (1, Fraction(0), Fraction(3, 10))),),
        )
    )
    support = Support.of(model.model())
    assert support.possible.tolist() == [True, True, False, True, True, True]
    assert support.certain.tolist() == [True, True, False, True, True, True]
    assert support.is_constant
