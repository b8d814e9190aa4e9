"""What a certificate of a long-run average or a temporal formula may claim about the problem it writes down.

Averages: every policy against every vertex of nature's sets, each a chain whose average is computed by powers
of its lazy matrix. Temporal formulas: the solver's own product, its end components by strongly connected
components, and its bounds: none of it is the checker's.
"""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np

from adversary.archive import Forgery
from exact_reference import vertices
from tightrope.logic.accepting import states_meeting
from tightrope.model.graph.support import Support
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.product import Automaton, Letters, RabinPair, product_of
from tightrope.model.structure import Structure
from tightrope.solver.solve import solve

SLACK = 1e-8


def average_of(forgery: Forgery, choices: tuple[tuple[tuple, ...], ...], weights: object) -> float:
    """Of a game whose choices are rows (successor, lower, upper); `weights` fixes a policy."""
    node, reward = forgery["problem.objective"], forgery["problem.objective.reward"]
    start = forgery["problem.graph.choice_start"].tolist()
    agent, nature = (max if node[who] != "MIN" else min for who in ("agent", "nature"))
    picks = [[_row(row, len(choices)) for row in vertices(choice)] for one in choices for choice in one]
    options = [range(a, b) for a, b in pairwise(start)]
    if weights is not None:
        options = [
            [c for c, w in zip(span, shares, strict=True) if w > 0]
            for span, shares in zip(options, weights, strict=True)
        ]
    values = []
    for policy in itertools.product(*options):
        chains = itertools.product(*(picks[c] for c in policy))
        earned = np.array([reward[c] for c in policy])
        initial = forgery["problem.graph.initial"]
        values.append(nature(_average(np.array(chain), earned, initial) for chain in chains))
    return agent(values)


def _row(row, states: int) -> np.ndarray:
    result = np.zeros(states)
    for t, p in row:
        result[t] += float(p)
    return result


def _average(matrix: np.ndarray, reward: np.ndarray, initial: int) -> float:
    lazy = (matrix + np.eye(len(matrix))) / 2
    for _ in range(60):
        lazy = lazy @ lazy
        lazy /= lazy.sum(axis=1, keepdims=True)
    return float(lazy[initial] @ reward)


def temporal_bounds(
    forgery: Forgery, low: list, high: list, choice: np.ndarray | None = None
) -> tuple[float, float]:
    """Of the automaton that a file writes down, on its model with these bounds of transitions; `choice` is a
    policy of the product, whose states certificates number by state and memory."""
    node = forgery["problem.objective"]
    structure = Structure(
        choice_start=forgery["problem.graph.choice_start"],
        transition_start=forgery["problem.graph.transition_start"],
        successor=forgery["problem.graph.successor"].astype(np.int32),
        initial_states=(forgery["problem.graph.initial"],),
        declared_mdp=True,
    )
    model = IntervalMDP(structure, *(np.array([float(p) for p in bound]) for bound in (low, high)))
    letters = Letters.of(list(forgery["problem.automaton.atom"]), model.states)
    automaton = Automaton(forgery["problem.automaton.successor"].astype(np.int32))
    pair, repeated = forgery["problem.automaton.pair"], forgery["problem.automaton.repeated"]
    product = product_of(Support.of(model), letters, automaton, np.array([structure.initial]))
    there = product.model(model)
    target = np.zeros(there.states, np.bool_)
    for number, avoided in enumerate(forgery["problem.automaton.avoided"]):
        one = RabinPair(avoided, tuple(repeated[pair == number]))
        target |= states_meeting(Support.of(there), product, letters, one)
    nature = Direction["MIN" if node["nature"] == "MIN" else "MAX"]
    objective = Objective(
        ObjectiveKind.UNTIL, Direction[node["agent"]], nature, target=target, complement=node["complement"]
    )
    policy = None
    if choice is not None:
        order = np.lexsort((product.memory, product.state))
        starts = np.diff(there.structure.choice_start)[order].cumsum() - np.diff(there.choice_start)[order]
        policy = np.empty(there.states, np.int64)
        policy[order] = choice - starts
    solution = solve(there, objective, policy=policy, precision=1e-9, relative=False)
    return float(solution.lower[0]), float(solution.upper[0])
