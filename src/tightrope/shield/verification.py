"""Shields that follow from certificates: the certified vector, its policy, and prices over certified sets.

The certificate proves v ≤ q(fallback) in every state (for a minimising agent, u ≥ q). What is left is
arithmetic: price(c) ≥ v(s) − q(c) at every choice, where q is the checker's own bound on nature's problem.
`rest_on` computes prices in this way, `check_shield` recomputes them for a shield from a file.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from os import PathLike

import numpy as np
from msgspec import structs

from tightrope.errors import InputError
from tightrope.model.policy_file import FiniteMemoryChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import same
from tightrope.shield import DECIDED, GRAPH, Shield, ShieldTable, by_step, price_choices
from tightrope_check.archive import LoadedCertificate
from tightrope_check.checker import Game
from tightrope_check.laws import boxes_of
from tightrope_check.learned import Learned
from tightrope_check.nature import BoundVector
from tightrope_check.numbers import FLOAT64
from tightrope_check.product import product_of
from tightrope_check.verdict import Check

MARGIN = 2.0**-44
"""Prices are larger by this share of 1 + |v|: sums may round differently on another machine."""


def rest_on(shield: Shield, proof: LoadedCertificate) -> Shield:
    """The same shield with the vector, the fallback policy and the prices of a certificate."""
    table = _proved(shield.table, proof, MARGIN)
    return Shield(table, shield.initial_slack, shield.patience_of_episode)


def check_shield(
    path: str | PathLike[str], proof: LoadedCertificate, model: Structure | None = None
) -> list[Check]:
    """Compare the shield in a file with a valid certificate, and its names with the user's `model`."""
    mine = Shield.load(path).table
    try:
        needed = _proved(mine, proof)
    except (InputError, ValueError) as error:
        return [Check("shield: prices", False, str(error))]
    rows = [(one.fallback.state, one.fallback.memory, one.fallback.following) for one in (mine, needed)]
    if not same(*rows):
        return [Check("shield: rows", False, "they are not those of model and automaton")]
    facts = structs.asdict(needed.facts)
    other = [name for name, one in structs.asdict(mine.facts).items() if one != facts[name]]
    free = (mine.ranking == DECIDED) & (needed.ranking != DECIDED)
    checks = [
        Check("facts", not other, f"{', '.join(other)} of another certificate" if other else ""),
        Check.everywhere("values", mine.value != needed.value, "row"),
        Check.everywhere("fallbacks", mine.fallback.choice != needed.fallback.choice, "row"),
        Check.everywhere("decided states", free, "row"),
        Check.everywhere("prices", mine.price < needed.price, "price"),
    ]
    if model is not None:
        checks.append(Check("names", mine.is_about(model), "those of states and actions in the model"))
    return [replace(one, name=f"shield: {one.name}") for one in checks]


def _proved(mine: ShieldTable, proof: LoadedCertificate, margin: float = 0.0) -> ShieldTable:
    """The table that a certificate proves of the model and question of a shield, in float64 on the safe side;
    with the memory of its automaton, if it has one."""
    base, facts, product, certificate = mine.structure, mine.facts, None, proof.certificate
    problem, hints, claim = certificate.problem, certificate.values[0], certificate.claims[0]
    objective, graph, automaton = problem.objective, problem.graph, problem.automaton
    parts = [[getattr(one, name) for name in GRAPH[:3]] for one in (base, graph)]
    if not same(*parts) or base.initial_states != (graph.initial,):
        raise InputError("the shield is about another model")
    upward, fallback = objective.agent == "MIN", hints.witness if claim.choice is None else claim.choice
    value = hints.upper if upward else hints.lower
    refusal = InputError(
        "certificates do not cover shields of averages, of time and of formulas about infinite runs",
        hint="leave the certificate out: the shield holds without one",
    )
    helps = objective.nature == objective.agent and problem.law == "interval"
    timed = problem.time is not None or problem.passing is not None or objective.kind == "AVERAGE"
    last = None if value is None or fallback is None or objective.steps is not None else (value, fallback)
    steps = objective.lower_steps if objective.steps is None else objective.steps
    lost = last is None and objective.steps is None
    if claim.name not in ("value", "robust policy") or helps or timed or lost:
        raise refusal
    with np.errstate(all="ignore"):
        learned = Learned(certificate, FLOAT64) if problem.law == "domain" else None
        boxes = boxes_of(problem, FLOAT64)[0] if learned is None else learned.model_boxes()
        if automaton is not None and value is not None:
            product = product_of(graph, automaton, objective.agent, boxes, len(value))
            if product.check.name != "the automaton settles what it accepts":  # accepting is not reaching
                raise refusal
            boxes, graph = product.lift(boxes), product.graph
            objective = replace(objective, kind="UNTIL", target=product.target)
        if learned is not None:
            boxes, problem = learned.boxes(boxes, 0, upward), learned.priced(problem, upward)
        earned = problem.objective.reward
        reward = np.zeros(graph.choices) if earned is None else earned
        game = Game(FLOAT64, objective, np.arange(graph.states), graph.choice_start, boxes, reward)

        def after(value: FloatArray) -> FloatArray:
            reached = game.choices(BoundVector.of(FLOAT64, value), upward)
            return np.where(reached.infinite, inf, reached.number)

        ranking = hints.upper_ranking if upward and hints.upper_ranking is not None else hints.lower_ranking
        ranking = np.zeros(graph.states, np.int64) if ranking is None else ranking
        known = structs.asdict(facts) | {"certificate": proof.digest}
        if problem.data is not None:
            known["confidence"] = min(facts.confidence or 1.0, 1 - problem.data.total_delta)
        start = graph.choice_start
        facts, choice, columns = price_choices(objective, start, steps, last, after, ranking, known, margin)
    rows = by_step(choice, steps)
    if product is not None:
        state, memory = np.divmod(product.key, automaton.memories)
        following = automaton.successor[memory, automaton.letters[state]]
        rows = FiniteMemoryChoices(state, memory, product.choice[choice], following)
    return ShieldTable(facts, base, rows, *columns)
