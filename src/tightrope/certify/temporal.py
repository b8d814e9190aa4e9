"""The certificate of a temporal formula's value: the model, the automaton, and vectors over their product.

The product and what is won in it are derived by the checker's own code (`certificate.game.product`), here as
there; the solver then only bounds the probability of reaching that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.certificate.claim import Certificate
from tightrope.certificate.game.laws import boxes_of
from tightrope.certificate.game.product import MOST_PAIRS, Product, product_of
from tightrope.certificate.numbers import FLOAT64
from tightrope.certificate.problem import Problem as Certified
from tightrope.certify.solved import to_claim, to_words, value_hints
from tightrope.errors import CannotCertify
from tightrope.logic.solving import Solve
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Structure


def temporal_certificate(
    problem: Certified, model: MDP | IntervalMDP, solve: Solve, about: Mapping[str, Any] | None = None
) -> Certificate:
    """The certificate of a temporal problem; `model` is what is solved, over the states of the problem."""
    product = product_of(problem, boxes_of(problem, FLOAT64)[0], MOST_PAIRS)
    if not product.check.passed:
        raise CannotCertify(
            f"certificates of temporal formulas need a graph that nature cannot change: {product.check.name} "
            f"{product.check.detail}"
        )
    solution = solve(_model_of(product, model), objective_of(product))
    initial = product.problem.graph.initial
    bounds = float(solution.lower[initial]), float(solution.upper[initial])
    claim = to_claim("value", bounds, None, problem.objective)
    return Certificate(problem, (claim,), (value_hints(solution, None),), about=to_words(about or {}))


def structure_of(product: Product) -> Structure:
    """The graph of the product, as the solver takes it."""
    graph = product.problem.graph
    return Structure(
        choice_start=graph.choice_start,
        transition_start=graph.transition_start,
        successor=graph.successor.astype(np.int32),
        initial_states=(graph.initial,),
        declared_mdp=True,
    )


def objective_of(product: Product) -> Objective:
    """Reaching what is won there."""
    asked = product.problem.objective
    nature = "MAX" if asked.nature == "ANY" else asked.nature
    return Objective(
        ObjectiveKind.UNTIL,
        Direction[asked.agent],
        Direction[nature],
        target=asked.target,
        complement=asked.complement,
    )


def _model_of(product: Product, model: MDP | IntervalMDP) -> MDP | IntervalMDP:
    structure, which = structure_of(product), product.transition
    if isinstance(model, MDP):
        return MDP(structure, model.probability[which])
    return IntervalMDP(structure, model.lower[which], model.upper[which])
