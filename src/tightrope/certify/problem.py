"""From a model and a question to the problem of a certificate, in its canonical form.

The question is one objective of the solver's, or `Asked`: a long-run average, or a temporal formula with the
automaton that recognises it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from tightrope.errors import InputError
from tightrope.logic.formula import is_co_safe, whole_automaton
from tightrope.logic.hoa import translate
from tightrope.logic.long_run import read_average
from tightrope.logic.temporal import Translator, sought_formula
from tightrope.logic.values import opposite
from tightrope.model.expressions import Expressions
from tightrope.model.mdp import MDP, IntervalMDP, counts_steps
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.product import Automaton, Letters, RabinPair
from tightrope.model.ranges import denominators, prove_signs
from tightrope.model.structure import ParametricReward, Structure
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.parse.property_syntax import RewardFormula, spell
from tightrope.prism.properties.capabilities import QueryKind, has_own_certificate
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.resolve import DirectionReading, refuse_reward_options
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope_check import evidence
from tightrope_check import problem as certified
from tightrope_check.fields import Polynomial, list_fields
from tightrope_check.nature import Graph
from tightrope_check.product import RabinAutomaton as CertifiedAutomaton


def to_problem(
    model: MDP | IntervalMDP | ParametricMDP,
    objective: Objective | Asked,
    *,
    theta: Sequence[Fraction] | None = None,
    assumed_support: float | None = None,
    data: evidence.Data | None = None,
) -> certified.CertifiedProblem:
    """The problem of a plain or interval model, of a parametric one at `theta` or over its domain.

    Of an interval model with independent factors (`tightrope.model.mdp`) it is the game that they make, or
    that of the joint bounds (`provable`): either encloses what the model allows.
    Quotients f/g are polynomials f·r, r a parameter more: at a point the number of r = 1/g stands behind
    those of the parameters, over a domain the denominators are listed, all of them positive.
    """
    passing = None
    if isinstance(model, IntervalMDP) and isinstance(objective, Objective):
        rows = provable(model, objective, assumed_support).factored
        if rows is not None:
            if counts_steps(objective):
                passing = np.arange(rows.structure.states) >= rows.states
            model, objective = IntervalMDP(rows.structure, rows.lower, rows.upper), rows.lift(objective)
    reward = automaton = None
    if isinstance(objective, Asked):
        question, automaton = objective.objective, objective.automaton
        if not isinstance(model, IntervalMDP):
            question = replace(question, nature="ANY")
    else:
        reward = objective.reward
        if theta is not None and isinstance(reward, ParametricReward):
            objective, reward = replace(objective, reward=reward.at(theta)), None
        question = to_objective(objective, model)
    problem = certified.CertifiedProblem(to_graph(model.structure), question, automaton=automaton)
    if isinstance(model, ParametricMDP):
        problem = _with_expressions(problem, model, reward, theta)
        return problem if theta is not None else replace(problem, data=data, assumed_support=assumed_support)
    kernel = IntervalOperator.of(model)  # rows that decimals brought off 1 are scaled
    lower, upper = (np.asarray(bound, dtype=np.float64) for bound in (kernel.lower, kernel.upper))
    if isinstance(model, MDP):
        return replace(problem, probability=lower)
    return replace(problem, lower=lower, upper=upper, assumed_support=assumed_support, passing=passing)


def _with_expressions(
    problem: certified.CertifiedProblem,
    model: ParametricMDP,
    reward: object,
    theta: Sequence[Fraction] | None,
) -> certified.CertifiedProblem:
    """Probabilities as expressions, those of a reward behind them: at a point, or over the domain."""
    polynomial, elsewhere = to_polynomials(model.expressions), model.structure.elsewhere
    denominators = model.expressions.denominators
    if theta is not None:
        point = tuple(Fraction(value) for value in theta)
        problem = replace(problem, theta=(*point, *(1 / g.evaluate(point) for g in denominators)))
    else:
        unseen = None if elsewhere is None else np.logical_or(*elsewhere)
        problem = replace(problem, domain=to_domain(model.parameters), unseen=unseen)
        if denominators:
            polynomial, positive = _with_positive_denominators(model, polynomial)
            problem = replace(problem, denominator=positive)
    if isinstance(reward, ParametricReward):
        polynomial += to_polynomials(reward.expressions)
    return replace(problem, expression=model.expression.astype(np.int64), polynomial=polynomial)


def provable(model: IntervalMDP, objective: Objective, assumed_support: float | None = None) -> IntervalMDP:
    """The model whose value a certificate proves: without its factors where these cannot be spoken of, since
    states in the middle of a step would be discounted, or have a support assumed that is joint outcomes'."""
    alone = objective.kind is ObjectiveKind.DISCOUNTED or assumed_support is not None
    return model.without_factors if alone else model


def to_graph(structure: Structure) -> Graph:
    return Graph(
        structure.choice_start.astype(np.int64),
        structure.transition_start.astype(np.int64),
        structure.successor.astype(np.int64),
        int(structure.initial),
    )


def to_objective(
    objective: Objective, model: MDP | IntervalMDP | ParametricMDP
) -> certified.CertifiedObjective:
    """What has no meaning for the kind is left out; nature has a say in interval models alone."""
    kind = objective.kind
    if kind is ObjectiveKind.CUMULATIVE and objective.terminal is not None:
        raise InputError("certificates do not cover instantaneous rewards (R [ I=k ])")
    reward = objective.reward if objective.is_reward else None
    earned = None
    if isinstance(reward, ParametricReward):
        assert isinstance(model, ParametricMDP)
        earned = len(model.expressions) + reward.expression.astype(np.int64)
    has_target = kind in (ObjectiveKind.UNTIL, ObjectiveKind.NEXT, ObjectiveKind.REACH_REWARD)
    steps = kind in (ObjectiveKind.UNTIL, ObjectiveKind.CUMULATIVE)
    return certified.CertifiedObjective(
        kind=kind.name,
        agent=objective.agent.name,
        nature=objective.nature.name if isinstance(model, IntervalMDP) else "ANY",
        complement=bool(objective.complement),
        lower_steps=int(objective.lower_steps) if kind is ObjectiveKind.UNTIL else 0,
        upper_steps=None if objective.upper_steps is None or not steps else int(objective.upper_steps),
        discount=None if objective.discount is None else float(objective.discount),
        reward=None if reward is None or earned is not None else reward.per_choice(model.structure),
        target=objective.target if has_target else None,
        allowed=objective.allowed if kind is ObjectiveKind.UNTIL else None,
        terminal=objective.terminal if kind is ObjectiveKind.REACH_REWARD else None,
        earned=earned,
    )


def to_polynomials(source: Expressions) -> tuple[Polynomial, ...]:
    """The expressions, each with its monomials in order."""
    names = [tuple((int(i), int(e)) for i, e in monomial) for monomial in source.monomials]
    terms = [
        (names[m], Fraction(c))
        for m, c in zip(source.monomial.tolist(), source.coefficient.to_fractions(), strict=True)
    ]
    return tuple(dict(sorted(terms[a:b])) for a, b in pairwise(source.row_start.tolist()))


def _with_positive_denominators(
    model: ParametricMDP, polynomial: tuple[Polynomial, ...]
) -> tuple[tuple[Polynomial, ...], tuple[Polynomial, ...]]:
    """Expressions and denominators, both with the other sign where a denominator is negative."""
    table = model.expressions
    sign = prove_signs(denominators(table), model.parameters).sign
    of_row = [sign[k] if k >= 0 else 1 for k in table.denominator_of.tolist()]
    turned = tuple(
        p if side > 0 else {m: -c for m, c in p.items()} for p, side in zip(polynomial, of_row, strict=True)
    )
    below = zip(to_polynomials(denominators(table)), sign, strict=True)
    return turned, tuple({m: c * side for m, c in g.items()} for g, side in below)


def to_domain(parameters: Parameters) -> evidence.Domain:
    rows = parameters.constraints
    return evidence.Domain(
        tuple(Fraction(value) for value in parameters.lower),
        tuple(Fraction(value) for value in parameters.upper),
        tuple(Fraction(c) for row in rows for c in row.coefficients),
        tuple(Fraction(row.bound) for row in rows),
        np.array([row.is_equality for row in rows], dtype=np.bool_),
    )


@dataclass(frozen=True, eq=False)
class Asked:
    """An objective in the words of a certificate, and the automaton where it is temporal. `reading` says how
    a path was read, `sides` how one direction was read where agent and nature both decide; `limit` is the
    comparison and the threshold, where there is one."""

    objective: certified.CertifiedObjective
    automaton: CertifiedAutomaton | None = None
    reading: str | None = None
    sides: DirectionReading | None = None
    limit: tuple[str, Fraction] | None = None
    query: Query | None = None


def asked_of(query: Query, translator: str | None = None) -> Asked:
    """What is asked, in the words of a certificate; `translator` is the command of another program, whose
    automata of formulas that are neither safe nor co-safe are taken."""
    if not has_own_certificate(query.kind):
        raise InputError(
            f"no certificate is about {query.text}: they are about one P or R over a simple path or a "
            "reward, one long-run average, or one P over a temporal formula"
        )
    structure, options = query.structure, query.options
    if query.kind is QueryKind.LONG_RUN:
        reward, (agent, nature) = read_average(query)
        average = certified.CertifiedObjective(
            kind="AVERAGE",
            agent=agent.name,
            nature=nature.name if options.is_interval else "ANY",
            complement=False,
            lower_steps=0,
            reward=reward.per_choice(structure),
        )
        return Asked(average, sides=query.reading, limit=query.limit)
    path, directions = query.operator.path, query.directions
    assert directions is not None and not isinstance(path, RewardFormula)
    with query.source.complaints():
        refuse_reward_options(options)
        atoms = Translator(query.state_formulas())
        sought = sought_formula(atoms.both_ways(path), directions)
    letters = Letters.of(atoms.atoms, structure.states)
    believed = translator is not None and not is_co_safe(sought.formula)
    if translator is not None and believed:
        automaton, pairs = translate(translator, sought.formula, len(atoms.atoms), letters.bits)
    else:
        automaton, pairs = whole_automaton(sought.formula, letters.bits)
    agent, nature = opposite(directions) if sought.complement else directions
    objective = certified.CertifiedObjective(
        kind="TEMPORAL",
        agent=agent.name,
        nature=nature.name if options.is_interval else "ANY",
        complement=sought.complement,
        lower_steps=0,
    )
    made = to_automaton(automaton, pairs, atoms.atoms, structure.states, believed)
    reading = f"the path is read as {spell(path, query.syntax)}"
    return Asked(objective, made, reading, query.reading, query.limit, query)


def to_automaton(
    automaton: Automaton, pairs: list[RabinPair], atoms: list[BoolArray], states: int, believed: bool = False
) -> CertifiedAutomaton:
    """In the words of a certificate."""
    marks = [(number, mask) for number, pair in enumerate(pairs) for mask in pair.repeated]
    shape = automaton.successor.shape
    return CertifiedAutomaton(
        atom=np.array(atoms, dtype=np.bool_).reshape(len(atoms), states),
        successor=automaton.successor.astype(np.int64),
        avoided=np.array([pair.avoided for pair in pairs], dtype=np.bool_).reshape(len(pairs), *shape),
        pair=np.array([number for number, _ in marks], dtype=np.int64),
        repeated=np.array([mask for _, mask in marks], dtype=np.bool_).reshape(len(marks), *shape),
        believed=believed,
    )


ASKED = ("objective", "automaton", "time")
"""The fields of a problem that are the property; `data` are compared apart, and all others are the model."""


def compare_problems(
    problem: certified.CertifiedProblem, own: certified.CertifiedProblem, is_asked: bool, controlled: str = ""
) -> Iterator[tuple[str, str | None]]:
    """The problem of a file and the user's own, as a whole: every field that differs is the model's, or the
    property's where one is given (`is_asked`)."""
    names = (*ASKED, "data")
    model = replace(own, **{name: getattr(problem, name) for name in names})
    if not is_asked and problem.objective.earned is not None and problem.polynomial is not None:
        known = model.polynomial or ()  # rewards are a part of the property
        model = replace(model, polynomial=(*known, *problem.polynomial[len(known) :]))
    yield "model", name_difference(f"another model{controlled}", first_difference(problem, model))
    if is_asked:
        question = replace(problem, **{name: getattr(own, name) for name in ASKED})
        differs = first_difference(problem, question)
        yield (
            "property",
            name_difference(f"another property{controlled}", differs and differs.removeprefix("objective.")),
        )


def name_difference(what: str, field: str | None) -> str | None:
    return None if field is None else f"{what}: '{field}' differs"


def first_difference(given: object, own: object, path: str = "") -> str | None:
    """The name of the first field in which two certificates, or parts of them, differ, or None."""
    for name, _ in list_fields(given):
        here, ours, inner = getattr(given, name), getattr(own, name), f"{path}{name}"
        if type(here) is not type(ours):
            return inner
        if isinstance(here, np.ndarray):
            if here.dtype != ours.dtype or not np.array_equal(here, ours):
                return inner
        elif is_dataclass(here) or (isinstance(here, tuple) and any(map(is_dataclass, here))):
            mine, yours = ((here,), (ours,)) if is_dataclass(here) else (here, ours)
            differences = [first_difference(a, b, f"{inner}.") for a, b in zip(mine, yours, strict=False)]
            if len(mine) != len(yours) or any(differences):
                return next(filter(None, differences), inner)
        elif here != ours:
            return inner
    return None
