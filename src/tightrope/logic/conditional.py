"""Conditional probabilities P(path | condition), and the paths of A and E.

Where nobody decides anything the quotient of two probabilities is all there is to it: those of both paths
together, and of the condition. Its bounds are the quotients of theirs, rounded outward.

With choices the largest quotient over all policies under which the condition is possible is that of reaching
a goal in another model (Baier, Klein, Klüppelholz, Märcker, 2014): plays in which the condition fails begin
anew. On the product of the model with automata of both formulas the goal is every end component in which path
and condition are satisfied almost surely; where the condition can be made to fail almost surely a further
choice leads back to the first state. A policy that reaches the goal with probability g per attempt, begins
anew with r and does neither with n = 1 − g − r attains at least g / (g + n) of the quotient; and whatever a
policy attains of the quotient is approached by one that begins anew once it is nearly certain that the
condition fails. The least quotient is 1 minus the largest one of the negated path. All of it holds for each
fixed pick of nature; on interval models of which it can cut no transition, the goal and the places to begin
anew are the same for all picks, nature's best answer in the other model needs no memory, and is one in this.

A and E are decided by the graph of possible transitions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.logic import formula as ltl
from tightrope.logic.formula import Formula
from tightrope.logic.solving import Directions, Solve, reaching, require_constant, with_choices
from tightrope.logic.temporal import PathBounds, bound_path
from tightrope.logic.translation import is_co_safe, progression, refuse_large
from tightrope.logic.values import Bounds
from tightrope.logic.winning import winning_states
from tightrope.model.graph import components as branching
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction
from tightrope.model.product import Letters, beside, product_of
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.prism.parse.property_syntax import Branching, PathFormula, PathOperator
from tightrope.prism.parse.syntax import Complaint, position_of
from tightrope.prism.properties.shape import check_is_path, is_simple_path, without_negation
from tightrope.prism.properties.state_formulas import StateFormulas

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
) -> tuple[Bounds, tuple[PathBounds, PathBounds]]:
    """The quotient, and the two probabilities that it is made of: of both together, of the condition."""
    together = ltl.both(path[0], condition[0]), ltl.either(path[1], condition[1])
    directions = Direction.MAX, Direction.MIN
    first, second = (
        bound_path(model, formula, atoms, directions, starts, solve, translator)
        for formula in (together, condition)
    )
    quotient = first.bounds.divided_by(second.bounds)
    bounds = Bounds(np.maximum(quotient.lower, 0.0), np.minimum(quotient.upper, 1.0))
    return bounds, (first, second)


@dataclass(frozen=True, eq=False)
class Given:
    """The value in one state; `is_possible`: some policy makes the condition possible there."""

    lower: float
    upper: float
    is_possible: bool
    iterations: int
    is_certified: bool


def bound_beginning_anew(
    model: MDP | IntervalMDP,
    path: Both,
    condition: Both,
    atoms: list[BoolArray],
    directions: Directions,
    start: int,
    solve: Solve,
) -> Given:
    """The best conditional probability from one state, where somebody decides."""
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
        return Given(0.0, 1.0, False, 0, True)
    again = np.flatnonzero(fails & ~goal)
    longer, _ = with_choices(there, again, np.zeros(len(again), np.int64))
    solution = solve(longer, reaching(directions, goal, complement=complement))
    ends = float(solution.lower[0]), float(solution.upper[0])
    return Given(*ends, True, solution.iterations, solution.is_certified)


def decide_branching(expression: Branching, formulas: StateFormulas, support: Support) -> BoolArray:
    """The states in which A [ … ] or E [ … ] holds."""
    path, negated = without_negation(expression.path)
    check_is_path(expression.path)
    if not isinstance(path, PathFormula) or not is_simple_path(path):
        raise Complaint(
            "A and E take one of X F G U W R over state formulas, as in CTL",
            position_of(expression.path) or expression.position,
            "combine several of them: A [ F x=1 ] & A [ F x=2 ]; or ask P>=1 [ … ], which takes any path",
        )
    if path.bound is not None:
        raise Complaint(
            "A and E take no bound on steps", path.position, "ask P>=1 [ F<=k … ] or P>0 [ F<=k … ]"
        )
    every = expression.is_universal != negated
    left = None if path.left is None else formulas.states(path.left)
    found = branching_states(support, path.operator, left, formulas.states(path.right), every)
    return ~found if negated else found


def branching_states(
    support: Support, operator: PathOperator, left: BoolArray | None, right: BoolArray, every: bool
) -> BoolArray:
    """The states from which every path, or some path, satisfies an operator over sets of states."""
    all_ = np.ones(len(right), np.bool_)
    if operator is PathOperator.NEXT:
        return (branching.every_next if every else branching.some_next)(support, right)
    if operator is PathOperator.GLOBALLY:
        return (branching.every_always if every else branching.some_always)(support, right)
    if operator in (PathOperator.EVENTUALLY, PathOperator.UNTIL):
        until = branching.every_until if every else branching.some_until
        return until(support, all_ if left is None else left, right)
    assert left is not None
    weak = branching.every_weak_until if every else branching.some_weak_until
    if operator is PathOperator.WEAK_UNTIL:
        return weak(support, left, right)
    return weak(support, right, left & right)  # a R b is b W (a & b)
