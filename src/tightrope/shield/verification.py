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
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, ranges
from tightrope.shield import Shield
from tightrope.shield.table import GRAPH, PriceRows, ShieldTable, price_rows
from tightrope_check.archive import LoadedCertificate
from tightrope_check.checker import Game
from tightrope_check.laws import boxes_of
from tightrope_check.learned import Learned
from tightrope_check.nature import BoundVector, Graph
from tightrope_check.numbers import FLOAT64
from tightrope_check.problem import Certificate
from tightrope_check.product import in_product
from tightrope_check.verdict import Check

MARGIN = 2.0**-44
"""Prices are larger by this share of 1 + |v|: sums may round differently on another machine."""

TITLES = {"value": "values", "fallback": "fallbacks", "settled": "decided states", "price": "prices"}


def rest_on(shield: Shield, proof: LoadedCertificate) -> Shield:
    """The same shield with the vector, the fallback policy and the prices of a certificate."""
    (graph, rows), table = _certified(proof.certificate, MARGIN), shield.table
    facts = structs.replace(table.facts, certificate=proof.digest)
    if table.memory is not None:  # the certificate has its own order of the product's states
        order, own = np.lexsort((table.memory, table.state)), table.structure
        choices, successor = ranges(own.choice_start, order)[0], graph.successor.astype(np.int32)
        arrays = graph.choice_start, graph.transition_start, successor, (graph.initial,)
        structure = Structure(*arrays, own.action_of_choice[choices], own.action_names)
        table = replace(table, structure=structure, choice=table.choice[choices], state=table.state[order])
        table = replace(table, ranking=table.ranking[order], memory=None)
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
    (graph, rows), problem = _certified(proof.certificate), proof.certificate.problem
    table, facts, objective = shield.table, shield.table.facts, problem.objective
    yield "certificate", f"it rests on another one: {facts.certificate}" * (facts.certificate != proof.digest)
    pairs = ((table.structure, graph), (table.base, problem.graph))
    same = all(np.array_equal(getattr(a, name), getattr(b, name)) for a, b in pairs for name in GRAPH[:3])
    same = same and all(a.initial_states == (b.initial,) for a, b in pairs) and _is_copy(table)
    yield "model", "it is about another model" * (not same)
    if not same:
        return
    least, most = objective.range
    alike = (objective.agent == "MAX", objective.complement) == (facts.maximises, facts.complement)
    alike &= facts.range[0] <= least and most <= facts.range[1]
    never_waits = objective.kind == "DISCOUNTED" or objective.steps is not None
    never_waits |= objective.kind in ("UNTIL", "TEMPORAL") and objective.agent == "MIN"
    alike &= facts.needs_patience or never_waits
    yield "question", "it is about another question" * (not alike)
    known = 1.0 if problem.data is None else 1 - problem.data.total_delta
    claimed = 1.0 if facts.confidence is None else facts.confidence
    yield "confidence", f"it claims more than {known:.6g}" * (claimed > known)
    for name, needed in rows._asdict().items():
        mine, words = getattr(table, name), "it is not that of the certificate"
        alike = mine.shape == needed.shape and not (name == "settled" and table.won.any())
        wrong = np.argwhere(mine < needed if name == "price" else mine != needed) if alike else [[0]]
        if name == "price" and len(wrong):
            words = f"{table.structure.choice_name(int(wrong[0][-1]))} has a lower price"
        yield TITLES[name], words if len(wrong) else ""


def _is_copy(table: ShieldTable) -> bool:
    """Whether the structure is the model, each of whose states may stand there several times."""
    own, base, initial = table.structure, table.base, table.state[table.structure.initial]
    states = own.choice_start, base.choice_start, table.state
    levels = states, (own.transition_start, base.transition_start, table.choice)
    same = all(np.array_equal(np.diff(start), np.diff(of)[which]) for start, of, which in levels)
    choices, transitions = (ranges(of, which)[0] for _, of, which in levels)
    same &= np.array_equal(choices, table.choice) and bool(initial == base.initial)
    same &= np.array_equal(base.successor[transitions], table.state[own.successor])
    return same and table.controller is None


def _certified(certificate: Certificate, margin: float = 0.0) -> tuple[Graph, PriceRows]:
    """The graph that a certificate is about (of a product, if it has an automaton), and the parts of a shield
    that it proves, in float64 on the safe side."""
    problem, graph, objective = certificate.problem, certificate.problem.graph, certificate.problem.objective
    names = [one.name in ("value", "robust policy") for one in certificate.claims]
    number, upward = names.index(True) if any(names) else 0, objective.agent == "MIN"
    hints, claim = certificate.values[number], certificate.claims[number]
    value, fallback = hints.upper if upward else hints.lower, claim.choice
    fallback = hints.witness if fallback is None else fallback
    helps = objective.nature == objective.agent and problem.law == "interval"
    timed = problem.time is not None or problem.passing is not None or objective.kind == "AVERAGE"
    is_found = objective.steps is not None or not (value is None or fallback is None)
    if not any(names) or helps or timed or not is_found:
        raise InputError(
            "certificates do not cover shields of averages and time",
            hint="leave the certificate out: the shield holds without one",
        )
    with np.errstate(all="ignore"):
        learned = Learned(certificate, FLOAT64) if problem.law == "domain" else None
        if learned is not None and not all(one.passed for one in learned.checks()):
            raise InputError("the certificate is not valid", hint="tightrope verify says why")
        boxes = boxes_of(problem, FLOAT64)[0] if learned is None else learned.model_boxes()
        if problem.automaton is not None:
            certificate, boxes, check = in_product(certificate, boxes)
            if check.name != "the automaton settles what it accepts":  # then accepting is not reaching
                raise InputError(
                    "certificates do not cover shields of formulas about infinite runs",
                    hint="leave the certificate out: the shield holds without one",
                )
            graph, objective = certificate.problem.graph, certificate.problem.objective
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
            (settled, given), steps = objective.boundary(graph.states), objective.lower_steps
            last = np.where(settled, given, value), fallback, settled
        rows = price_rows(objective, steps, last, graph.choice_start, after, not upward, margin)
        if last is not None:
            rows.price[-1][rows.fallback[-1]] = 0.0
        return graph, rows
