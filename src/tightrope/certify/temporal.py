"""The certificate of a temporal formula's value: the model, the automaton, and vectors over their product.

The product and what is won in it are derived by the checker's own code (`tightrope.certificate.product`),
here as there; the solver then only bounds the probability of reaching that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.certificate.laws import boxes_of
from tightrope.certificate.nature import Boxes
from tightrope.certificate.numbers import FLOAT64
from tightrope.certificate.problem import Certificate
from tightrope.certificate.problem import Problem as Certified
from tightrope.certificate.product import MOST_PAIRS, Product, product_of
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
    product = derive_product(problem, boxes_of(problem, FLOAT64)[0])
    if not product.check.passed:
        raise CannotCertify(
            f"certificates of temporal formulas need a graph that nature cannot change: {product.check.name} "
            f"{product.check.detail}"
        )
    solution = solve(_model_of(product, model), objective_of(problem, product))
    initial = product.graph.initial
    bounds = float(solution.lower[initial]), float(solution.upper[initial])
    claim = to_claim("value", bounds, None, problem.objective)
    return Certificate(problem, (claim,), (value_hints(solution, None),), about=to_words(about or {}))


def derive_product(problem: Certified, boxes: Boxes) -> Product:
    """The product as the checker derives it."""
    assert problem.automaton is not None
    return product_of(problem.graph, problem.automaton, problem.objective.agent, boxes, MOST_PAIRS)


def structure_of(product: Product) -> Structure:
    """The graph of the product, as the solver takes it."""
    graph = product.graph
    return Structure(
        choice_start=graph.choice_start,
        transition_start=graph.transition_start,
        successor=graph.successor.astype(np.int32),
        initial_states=(graph.initial,),
        declared_mdp=True,
    )


def objective_of(problem: Certified, product: Product) -> Objective:
    """Reaching what is won there."""
    asked = problem.objective
    nature = "MAX" if asked.nature == "ANY" else asked.nature
    return Objective(
        ObjectiveKind.UNTIL,
        Direction[asked.agent],
        Direction[nature],
        target=product.target,
        complement=asked.complement,
    )


def _model_of(product: Product, model: MDP | IntervalMDP) -> MDP | IntervalMDP:
    structure, which = structure_of(product), product.transition
    if isinstance(model, MDP):
        return MDP(structure, model.probability[which])
    return IntervalMDP(structure, model.lower[which], model.upper[which])
