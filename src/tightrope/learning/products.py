"""Learning about products of models with automata.

If the formula is neither safe nor co-safe, its winning end components are those of a model in which no
transition vanishes. The true model is one if every expression is positive at the true parameters. This is
shown for each transition by the domain or a positive lower bound of the learned sets, or is assumed. After an
empty region the domain shows nothing.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.options import Decisions, LearnOptions
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.ranges import ranges_over_box
from tightrope.numerics.arrays import BoolArray
from tightrope.problem import Problem


def refuse_for_product(decisions: Decisions, policy: Policy | None = None) -> None:
    """Untied sets know a choice by its place, and a product has many copies of it; slabs bet on no memory."""
    if decisions.sets is SetsKind.UNTIED:
        raise InputError(
            "untied sets cannot be used with temporal formulas or finite-memory policies: each copy of a "
            "choice would need its own data",
            hint="--sets tied",
        )
    if policy is not None and decisions.needs_bets:
        raise InputError(
            "a slab (betting region) does not support temporal formulas and finite-memory policies",
            hint="leave --region slab out",
        )


def require_support(problem: Problem, sets: Sets, contradicted: bool, options: LearnOptions) -> None:
    """Show that no transition of the true model vanishes, or say that it is not shown."""
    if _needs_support(problem, options):
        model, positive = sets.model, sets.lower > 0
        if not contradicted:
            positive |= _positive_in_domain(model, options)
        if not positive.all():
            raise CannotCertify(support_is_open(problem.text, model, int(np.argmin(positive))))


def _needs_support(problem: Problem, options: LearnOptions) -> bool:
    return problem.lift is not None and problem.lift.needs_support and options.assume_support is None


def _positive_in_domain(model: ParametricMDP, options: LearnOptions) -> BoolArray:
    """The transitions that the domain says are possible."""
    low, _ = ranges_over_box(model.expressions, model.parameters.lower, model.parameters.upper)
    return (low > options.misfit)[model.expression]


def support_is_open(text: str, model: ParametricMDP, transition: int) -> str:
    """Words about a transition that may vanish."""
    return (
        f"{text} depends on which transitions are possible, and neither the domain nor the data show "
        f"that the probability {model.expressions.text(int(model.expression[transition]))} is positive\n"
        "hint: narrow the domain (--domain), collect more data, or say that no transition vanishes: "
        "`assume_support`"
    )


def require_support_of_domain(problem: Problem, options: LearnOptions, is_split: bool = False) -> None:
    """The same where there are no data, or not yet: the domain alone can show it. Where it is split nothing
    is assumed."""
    model = problem.base
    if not _needs_support(problem, options) or not isinstance(model, ParametricMDP):
        return
    positive = _positive_in_domain(model, options)
    if not positive.all():
        expression = int(model.expression[np.argmin(positive)])
        raise InputError(
            f"{problem.text} depends on which transitions are possible, and the domain does not show that "
            f"the probability {model.expressions.text(expression)} is positive",
            hint="narrow the domain (--domain)"
            + ("" if is_split else ", or say that no transition vanishes: `assume_support`"),
        )


def steered_question(
    problem: Problem, policy: PolicyGiven, counts: Counts
) -> tuple[Problem, Policy, Counts] | None:
    """The question and counts on the product with a given policy's memory; None: it has none."""
    given = as_policy(problem.base, policy)
    if given is None or not (given.has_memory or problem.lift is not None):
        return None
    from tightrope.logic.product_problem import steer  # with automata, which few questions need

    return steer(problem, given, counts)


def notes(problem: Problem) -> tuple[str, ...]:
    """What a reader of a result must be told."""
    assert problem.lift is not None
    lines = [
        f"the model has {problem.base.states:,} states, with what a policy must remember "
        f"{problem.model.states:,}"
    ]
    if problem.is_of_controller:
        lines.append(
            "the guarantee is about a controller that sees observations only; what it reads is drawn as "
            "the model says, independently given the state"
        )
    if problem.lift.needs_support:
        lines.append("no transition of the true model vanishes: by the domain, the data or an assumption")
    return tuple(lines)
