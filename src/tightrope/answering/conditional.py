"""Conditional probabilities P(path | condition) of Markov chains, and the paths of A and E.

Where nobody decides anything the quotient of two probabilities is all there is to it: those of both paths
together, and of the condition. Its bounds are the quotients of theirs, rounded outward. With choices or
intervals the best policy for the quotient is another problem, and is refused.

A and E are decided by the graph of possible transitions.
"""

from __future__ import annotations

import numpy as np

from tightrope.answering.temporal import PathBounds, Solve, bound_path
from tightrope.answering.values import Bounds
from tightrope.automata import formula as ltl
from tightrope.automata.formula import Formula
from tightrope.model.graph import branching
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP
from tightrope.model.objective import Direction
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.property_syntax import Branching, PathFormula, PathOperator
from tightrope.prism.properties.shape import check_is_path, is_simple_path, without_negation
from tightrope.prism.properties.state_formulas import StateFormulas

Both = tuple[Formula, Formula]
"""A formula and its negation."""


def bound_conditional(
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
    quotient = Bounds(first.lower, first.upper).divided_by(Bounds(second.lower, second.upper))
    bounds = Bounds(np.maximum(quotient.lower, 0.0), np.minimum(quotient.upper, 1.0))
    return bounds, (first, second)


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
