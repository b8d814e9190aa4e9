"""Conditional probabilities P(path | condition).

Without choices the value is the quotient of two probabilities, rounded outward. With choices the largest
quotient is a reachability probability in another model (Baier, Klein, Klüppelholz, Märcker, 2014): on the
product with both formulas the goal is every end component that satisfies both almost surely, and where the
condition can be made to fail almost surely, a choice leads back to the first state. The least quotient is 1
minus the largest one of the negated path. On interval models nature must not be able to cut a transition.
"""

from __future__ import annotations

import numpy as np

from tightrope.logic import formula as ltl
from tightrope.logic.accepting import winning_states
from tightrope.logic.formula import Formula
from tightrope.logic.solving import Directions, Solve, reaching, rearranged, require_constant
from tightrope.logic.temporal import PathBounds, bound_path
from tightrope.logic.translation import is_co_safe, progression, refuse_large
from tightrope.logic.values import StateBounds
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction
from tightrope.model.product import Letters, beside, product_of
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.solver.solution import Solution

Both = tuple[Formula, Formula]
"""A formula and its negation."""


MOST_STARTS = 200
"""With choices every state that is asked for is a separate problem."""


def bound_quotient(
    model: MDP,
    path: Both,
    condition: Both,
    atoms: list[BoolArray],
    starts: OffsetArray,
    solve: Solve,
    translator: str | None,
) -> tuple[StateBounds, tuple[PathBounds, PathBounds]]:
    """The quotient, and the two probabilities that it is made of: of both together, of the condition."""
    together = ltl.both(path[0], condition[0]), ltl.either(path[1], condition[1])
    directions = Direction.MAX, Direction.MIN
    first, second = (
        bound_path(model, formula, atoms, directions, starts, solve, translator)
        for formula in (together, condition)
    )
    quotient = first.bounds.divided_by(second.bounds)
    bounds = StateBounds(np.maximum(quotient.lower, 0.0), np.minimum(quotient.upper, 1.0))
    return bounds, (first, second)


def bound_beginning_anew(
    model: MDP | IntervalMDP,
    path: Both,
    condition: Both,
    atoms: list[BoolArray],
    directions: Directions,
    start: int,
    solve: Solve,
) -> Solution | None:
    """The best conditional probability from one state; None where no policy makes the condition possible."""
    require_constant(model, "conditional probabilities with choices")
    letters, complement = Letters.of(atoms, model.states), directions[0] is Direction.MIN
    together = ltl.both(path[1] if complement else path[0], condition[0])
    automata, lefts = [], []
    for formula in (together, *condition):
        if not is_co_safe(formula):
            refuse_large(formula)
        automaton, left = progression(formula, letters.bits)
        automata.append(automaton)
        lefts.append(left)
    whole, parts = beside(automata, letters.bits)
    product = product_of(Support.of(model), letters, whole, np.array([start]))
    there = product.model(model)
    goal, holds, fails = (
        winning_states(there, product, [left[states[i]] for states in parts], letters)
        for i, left in enumerate(lefts)
    )
    if not holds.any():
        return None
    again = np.flatnonzero(fails & ~goal)
    owner = np.concatenate([there.structure.choice_state, again])
    rows = np.concatenate([np.arange(there.choices), np.full(len(again), -1)])
    longer, _ = rearranged(there, owner, rows)
    return solve(longer, reaching(directions, goal, complement=complement))
