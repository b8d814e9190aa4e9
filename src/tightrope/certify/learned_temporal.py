"""What is learned about a temporal formula, once more over the product that a certificate derives.

A result of `learn` is about the product of the model with what is left of the formula, and finds out inside
end components how it is won. A certificate holds one automaton of the whole formula (`whole_automaton`), and
the checker derives the product with that. Values are the same; vectors and policies are about other states.
So the result is computed again there: the same data, tied in the same way, the same confidence.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.certificate.checker import check
from tightrope.certificate.nature import Boxes
from tightrope.certificate.numbers import FLOAT64
from tightrope.certificate.problem import Certificate
from tightrope.certify.asked import Asked, asked_of
from tightrope.certify.problem import to_problem
from tightrope.certify.temporal import derive_product, objective_of, structure_of
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.pipeline import Pipeline
from tightrope.learning.result import LearningResult
from tightrope.logic.product_problem import ProductProblem
from tightrope.model.product import Product


def learn_again(result: LearningResult, counts: Counts) -> tuple[LearningResult, Asked]:
    """The result over the product of a certificate, and what is asked in its words; `counts` are those of
    the model. Coupled sets become rectangular ones: their proofs are about policies without memory."""
    problem, decisions = result.problem, result.decisions
    assert isinstance(problem, ProductProblem) and problem.asked is not None
    if result.ledger.delta == 0:
        raise InputError(
            f"certificates over a domain do not cover the automaton behind {problem.text}",
            hint="leave the certificate out",
        )
    if result.value is not None:
        raise InputError(
            "certificates of temporal formulas are about the robust policy, and a policy is given",
            hint="leave the certificate or the policy out",
        )
    if decisions.bets:
        raise InputError(
            "a slab bets on a policy, and certificates of temporal formulas do not cover its memory",
            hint="leave the certificate out, or take --region polytope",
        )
    asked = asked_of(problem.asked)
    made = _certified_product(problem, asked)
    options = replace(result.options, sets=decisions.sets, region=decisions.region)
    if decisions.sets is SetsKind.COUPLED:
        options = replace(options, sets=SetsKind.RECTANGULAR)
    learner = Pipeline.start(made, counts, result.ledger.delta, options=options)
    return learner.result(options), asked


def require_proved(certificate: Certificate) -> None:
    """Refuse what the checker would not confirm: data about states that no play reaches count in the model
    and not in the product."""
    failed = [one for one in check(certificate).checks if not one.passed]
    if failed:
        raise CannotCertify(
            f"no certificate is written: over the model itself this does not hold: {failed[0].name} "
            f"({failed[0].detail})"
        )


def _certified_product(problem: ProductProblem, asked: Asked) -> ProductProblem:
    base = problem.base
    certified = to_problem(base, asked)
    possible = (np.diff(base.expressions.row_start) > 0)[base.expression].astype(np.float64)
    boxes = Boxes(
        FLOAT64,
        certified.graph.transition_start,
        certified.graph.successor,
        np.arange(base.transitions),
        possible,
        possible,
        np.ones(base.choices, dtype=np.bool_),
    )
    found = derive_product(certified, boxes)
    assert asked.automaton is not None
    memories = asked.automaton.memories
    product = Product(
        structure_of(found),
        (found.key // memories).astype(np.int32),
        (found.key % memories).astype(np.int32),
        found.choice,
        found.transition,
    )
    query = problem.query.with_objective(objective_of(certified, found), product.structure)
    return ProductProblem(base, product, query, needs_support=problem.needs_support, asked=problem.asked)
