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
from typing import NamedTuple

import numpy as np
from msgspec import structs

from tightrope.errors import InputError
from tightrope.model.policy_file import FiniteMemoryChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.shield import Shield
from tightrope.shield.table import PriceRows, prices_of, rows_by_step
from tightrope_check.archive import LoadedCertificate
from tightrope_check.checker import Game
from tightrope_check.laws import boxes_of
from tightrope_check.learned import Learned
from tightrope_check.nature import BoundVector, Graph
from tightrope_check.numbers import FLOAT64
from tightrope_check.problem import Certificate
from tightrope_check.product import AutomatonProduct, product_of
from tightrope_check.verdict import Check

SETTLES = "the automaton settles what it accepts"
"""The check of a product (`tightrope_check.product`) in which accepting is reaching."""

MARGIN = 2.0**-44
"""Prices are larger by this share of 1 + |v|: sums may round differently on another machine."""


def rest_on(shield: Shield, proof: LoadedCertificate) -> Shield:
    """The same shield with the vector, the fallback policy and the prices of a certificate."""
    (rows, graph, product), table = _certified(proof.certificate, MARGIN), shield.table
    facts = structs.replace(table.facts, certificate=proof.digest)
    if product is not None and table.memory is not None:  # the certificate has its own order of states
        parts = ProductParts.of(proof.certificate, product, rows)
        memories = int(table.memory.max()) + 1
        places = (parts.state, parts.memory), (table.state, table.memory)
        key, own = (state.astype(np.int64) * memories + memory for state, memory in places)
        order = np.argsort(own)
        if not np.array_equal(own[order], key):
            raise InputError("the shield does not follow from its certificate: other states of the product")
        action, successor = table.base.action_of_choice[product.choice], graph.successor.astype(np.int32)
        ends, names = (graph.initial,), table.base.action_names
        lifted = Structure(graph.choice_start, graph.transition_start, successor, ends, action, names)
        table = replace(table, structure=lifted, ranking=table.ranking[order], won=table.won[order])
        table = replace(table, **parts._asdict())
    made = replace(shield, table=replace(table, facts=facts, **rows._asdict()))
    if wrongs := [wrong for _, wrong in _wrongs(made, proof) if wrong]:
        raise InputError(f"the shield does not follow from its certificate: {wrongs[0]}")
    return made.start()


def check_shield(
    path: str | PathLike[str], proof: LoadedCertificate, model: Structure | None = None
) -> list[Check]:
    """Compare the shield in a file with a certificate, and its names with the user's `model`."""
    shield = Shield.load(path)
    try:
        wrongs = list(_wrongs(shield, proof))
    except InputError as error:
        wrongs = [("kind", error.message)]
    if model is not None:
        wrongs.append(("names", "" if shield.table.is_about(model) else "they are not those of the model"))
    return [Check(f"shield: {name}", not wrong, wrong) for name, wrong in wrongs]


def _wrongs(shield: Shield, proof: LoadedCertificate) -> Iterator[tuple[str, str]]:
    """What is compared, and what is wrong with it."""
    table, facts, problem = shield.table, shield.table.facts, proof.certificate.problem
    (needed, graph, product), structure, objective = (
        _certified(proof.certificate),
        table.structure,
        problem.objective,
    )
    yield "certificate", f"it rests on another one: {facts.certificate}" * (facts.certificate != proof.digest)
    names = ("choice_start", "transition_start", "successor")
    pairs = ((structure, graph), (table.base, problem.graph))
    same = all(np.array_equal(getattr(one, name), getattr(two, name)) for one, two in pairs for name in names)
    same &= structure.initial_states == (graph.initial,) and (table.controller is None) == (product is None)
    yield "model", "it is about another model" * (not same)
    if not same:
        return
    parts = {} if product is None else ProductParts.of(proof.certificate, product, needed)._asdict()
    for name, part in parts.items():
        both = [one.columns if name == "controller" else one for one in (getattr(table, name), part)]
        yield name, "it is not that of the certificate" * (not np.array_equal(both[0], both[1]))
    question = (objective.agent == "MAX", objective.complement, objective.range)
    never_waits = objective.kind == "DISCOUNTED" or objective.steps is not None
    never_waits |= objective.kind in ("UNTIL", "TEMPORAL") and objective.agent == "MIN"
    alike = question == (facts.maximises, facts.complement, facts.range)
    alike &= facts.needs_patience or never_waits
    yield "question", "it is about another question" * (not alike)
    known = 1.0 if problem.data is None else 1 - problem.data.total_delta
    claimed = 1.0 if facts.confidence is None else facts.confidence
    yield "confidence", f"it claims more than {known:.6g}" * (claimed > known)
    for name in ("value", "fallback"):
        differs = not np.array_equal(getattr(table, name), getattr(needed, name))
        yield f"{name}s", "they are not those of the certificate" * differs
    alike = table.settled.shape == needed.settled.shape
    wrong = not alike or bool(np.any(table.settled & ~needed.settled)) or bool(table.won.any())
    yield "decided states", "they are not those of the certificate" * wrong
    low = np.argwhere(table.price < needed.price)[:, 1] if alike else [0]
    yield "prices", f"{structure.choice_name(int(low[0]))} has a lower price" if len(low) else ""


class ProductParts(NamedTuple):
    """The parts of a shield that are about the product with an automaton, which settles what it accepts."""

    state: IndexArray
    memory: IndexArray
    choice: OffsetArray
    controller: FiniteMemoryChoices

    @staticmethod
    def of(certificate: Certificate, product: AutomatonProduct, rows: PriceRows) -> ProductParts:
        automaton = certificate.problem.automaton
        state, memory = np.divmod(product.key, automaton.memories)
        following = automaton.successor[memory, automaton.letters[state]]
        controller = FiniteMemoryChoices(state, memory, product.choice[rows.fallback[0]], following)
        return ProductParts(state.astype(np.int32), memory.astype(np.int32), product.choice, controller)


def _certified(
    certificate: Certificate, margin: float = 0.0
) -> tuple[PriceRows, Graph, AutomatonProduct | None]:
    """Vector, prices, fallback and decided states that a certificate proves, in float64 on the safe side; the
    graph that they are about, and the product with an automaton that it is."""
    problem, graph, objective = certificate.problem, certificate.problem.graph, certificate.problem.objective
    names = [one.name in ("value", "robust policy") for one in certificate.claims]
    number, upward = names.index(True) if any(names) else 0, objective.agent == "MIN"
    hints, claim = certificate.values[number], certificate.claims[number]
    value, fallback = hints.upper if upward else hints.lower, claim.choice
    fallback = hints.witness if fallback is None else fallback
    helps = objective.nature == objective.agent and problem.law == "interval"
    by_steps = objective.steps is not None
    timed = problem.time is not None or problem.passing is not None or objective.kind == "AVERAGE"
    covered = any(names) and not helps and not timed
    if not covered or (not by_steps and (value is None or fallback is None)):
        raise InputError(
            "certificates do not cover shields of averages and time",
            hint="leave the certificate out: the shield holds without one",
        )
    with np.errstate(all="ignore"):
        learned = Learned(certificate, FLOAT64) if problem.law == "domain" else None
        if learned is not None and not all(one.passed for one in learned.checks()):
            raise InputError("the certificate is not valid", hint="tightrope verify says why")
        boxes = boxes_of(problem, FLOAT64)[0] if learned is None else learned.model_boxes()
        product = None
        if problem.automaton is not None:
            assert value is not None
            product = product_of(graph, problem.automaton, objective.agent, boxes, len(value))
            if product.check.name != SETTLES:
                raise InputError(
                    "certificates do not cover shields of formulas about infinite runs",
                    hint="leave the certificate out: the shield holds without one",
                )
            graph, boxes = product.graph, product.lift(boxes)
            objective = replace(objective, kind="UNTIL", target=product.target)
        sets = boxes if learned is None else learned.boxes(boxes, number, upward)
        priced = problem if learned is None else learned.priced(problem, upward)
        reward = np.zeros(graph.choices) if priced.objective.reward is None else priced.objective.reward
        game = Game(FLOAT64, objective, np.arange(graph.states), graph.choice_start, sets, reward)

        def after(value: FloatArray) -> FloatArray:
            reached = game.choices(BoundVector.of(FLOAT64, value), upward)
            return np.where(reached.infinite, inf, reached.number)

        rows = None
        if not by_steps:
            assert value is not None and fallback is not None
            settled, given = objective.boundary(graph.states)
            value = np.where(settled, given, value)
            price = prices_of(value, after(value), graph.choice_start, not upward, margin)
            price[fallback] = 0.0
            rows = PriceRows(value[None], price[None], fallback[None], settled[None])
        steps = objective.lower_steps if objective.steps is None else objective.steps
        rows = rows_by_step(objective, steps, rows, graph.choice_start, after, not upward, margin)
        return rows, graph, product
