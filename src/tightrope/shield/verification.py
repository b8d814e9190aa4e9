"""Shields that follow from certificates: the certified vector, its policy, and prices over certified sets.

The certificate proves v ≤ q(fallback) in every state (for a minimising agent, u ≥ q). What is left is
arithmetic: price(c) ≥ v(s) − q(c) at every choice, where q is the checker's own bound on nature's problem.
`rest_on` computes prices in this way, `check_shield` recomputes them for a shield from a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from os import PathLike

import numpy as np
from msgspec import structs

from tightrope.errors import InputError
from tightrope.model.policy_file import FiniteMemoryChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, ranges
from tightrope.numerics.record import same
from tightrope.shield import GRAPH, Shield, ShieldTable, price_table
from tightrope.verdict import Assessment
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
    table = _proved(shield.table.structure, proof, MARGIN)
    facts = structs.replace(shield.table.facts, certificate=proof.digest, range=table.facts.range)
    made = replace(shield, table=replace(table, facts=facts))
    if wrongs := [wrong for _, wrong in _wrongs(made.table, proof) if wrong]:
        raise InputError(f"the shield does not follow from its certificate: {wrongs[0]}")
    return made.start()


def check_shield(
    path: str | PathLike[str], proof: LoadedCertificate, model: Structure | None = None
) -> list[Check]:
    """Compare the shield in a file with a certificate, and its names with the user's `model`."""
    table = Shield.load(path).table
    try:
        wrongs = list(_wrongs(table, proof))
    except (InputError, ValueError) as error:
        wrongs = [("kind", str(error))]
    if model is not None:
        wrongs.append(("names", "" if table.is_about(model) else "they are not those of the model"))
    return [Check(f"shield: {name}", not wrong, wrong) for name, wrong in wrongs]


def _wrongs(mine: ShieldTable, proof: LoadedCertificate) -> Iterator[tuple[str, str]]:
    """What is compared, and what is wrong with it."""
    facts, structure, graph = mine.facts, mine.structure, proof.certificate.problem.graph
    rests = "it rests on another one" if facts.certificate else "it names none"
    yield "certificate", rests * (facts.certificate != proof.digest)
    parts = [[getattr(one, name) for name in GRAPH[:3]] for one in (structure, graph)]
    alike = same(*parts) and structure.initial_states == (graph.initial,)
    needed = _proved(structure, proof) if alike else mine
    rows = [(one.fallback.state, one.fallback.memory, one.fallback.following) for one in (mine, needed)]
    alike &= same(*rows) and mine.ranking.min() >= 0
    yield "model", "it is about another model" * (not alike)
    if not alike:
        return
    names = ("maximises", "complement", "range", "needs_patience")
    alike = all(getattr(facts, name) == getattr(needed.facts, name) for name in names)
    yield "question", "it is about another question" * (not alike)
    claimed, sure = (1.0 if one.confidence is None else one.confidence for one in (facts, needed.facts))
    yield "confidence", f"it claims more than {sure:.6g}" * (claimed > sure)
    other = "it is not that of the certificate"
    yield "values", other * (not same(mine.value, needed.value))
    yield "fallbacks", other * (not same(mine.fallback.choice, needed.fallback.choice))
    yield "decided states", other * (not same(mine.settled, needed.settled))
    lower = ranges(structure.choice_start, mine.fallback.state)[0][mine.price < needed.price]
    yield "prices", f"{structure.choice_name(lower[0])} has a lower price" if len(lower) else ""


def _proved(base: Structure, proof: LoadedCertificate, margin: float = 0.0) -> ShieldTable:
    """The shield of the model `base` that a certificate proves, in float64 on the safe side; with the memory
    of its automaton, if it has one."""
    certificate, problem, structure, product = proof.certificate, proof.certificate.problem, base, None
    objective, graph, automaton = problem.objective, problem.graph, problem.automaton
    names = [one.name in ("value", "robust policy") for one in certificate.claims]
    number, upward = names.index(True) if any(names) else 0, objective.agent == "MIN"
    hints, given = certificate.values[number], certificate.claims[number].choice
    value, fallback = hints.upper if upward else hints.lower, hints.witness if given is None else given
    helps = objective.nature == objective.agent and problem.law == "interval"
    timed = problem.time is not None or problem.passing is not None or objective.kind == "AVERAGE"
    is_found = objective.steps is not None or not (value is None or fallback is None)
    hint = "leave the certificate out: the shield holds without one"
    if not any(names) or helps or timed or not is_found:
        raise InputError("certificates do not cover shields of averages and time", hint=hint)
    with np.errstate(all="ignore"):
        learned = Learned(certificate, FLOAT64) if problem.law == "domain" else None
        if learned is not None and not all(one.passed for one in learned.checks()):
            raise InputError("the certificate is not valid", hint="tightrope verify says why")
        boxes = boxes_of(problem, FLOAT64)[0] if learned is None else learned.model_boxes()
        if automaton is not None and value is not None:
            product = product_of(graph, automaton, objective.agent, boxes, len(value))
            if product.check.name != "the automaton settles what it accepts":  # accepting is not reaching
                words = "certificates do not cover shields of formulas about infinite runs"
                raise InputError(words, hint=hint)
            boxes, graph = product.lift(boxes), product.graph
            objective = replace(objective, kind="UNTIL", target=product.target)
            structure = Structure(
                graph.choice_start, graph.transition_start, graph.successor.astype(np.int32), (graph.initial,)
            )
        sets = boxes if learned is None else learned.boxes(boxes, number, upward)
        priced = problem if learned is None else learned.priced(problem, upward)
        reward = np.zeros(graph.choices) if priced.objective.reward is None else priced.objective.reward
        game = Game(FLOAT64, objective, np.arange(graph.states), graph.choice_start, sets, reward)

        def after(value: FloatArray) -> FloatArray:
            reached = game.choices(BoundVector.of(FLOAT64, value), upward)
            return np.where(reached.infinite, inf, reached.number)

        last, steps = None, objective.steps
        if steps is None:
            assert value is not None and fallback is not None
            (settled, end), steps = objective.boundary(graph.states), objective.lower_steps
            last = np.where(settled, end, value), fallback, settled
        ranking = hints.upper_ranking if upward and hints.upper_ranking is not None else hints.lower_ranking
        ranking = np.zeros(graph.states, np.int64) if ranking is None else ranking
        sure = None if problem.data is None else 1 - problem.data.total_delta
        known = Assessment.of([]).facts | {"question": "", "confidence": sure, "certificate": proof.digest}
        table = price_table(objective, structure, steps, last, after, ranking, known, margin)
    if last is not None:
        table.price[-graph.choices :][fallback] = 0.0
    if product is None:
        return table
    state, memory = np.divmod(product.key, automaton.memories)
    choice, following = (
        product.choice[table.fallback.choice],
        automaton.successor[memory, automaton.letters[state]],
    )
    return replace(table, structure=base, fallback=FiniteMemoryChoices(state, memory, choice, following))
